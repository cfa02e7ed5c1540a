//! `bindgen!` output for `wit/`: one module per world. No code outside
//! the crate names these modules; `rules.rs` re-exports the types that other code needs.

#![allow(missing_docs, clippy::all, reason = "generated from wit/")]

pub mod compliance {
    wasmtime::component::bindgen!({
        path: "../../../wit/compliance",
        world: "compliance-rules",
        additional_derives: [PartialEq, serde::Serialize, serde::Deserialize],
    });
}

pub mod lifecycle {
    wasmtime::component::bindgen!({
        path: "../../../wit/lifecycle",
        world: "lifecycle-rules",
        additional_derives: [PartialEq, serde::Serialize, serde::Deserialize],
    });
}

pub mod placement {
    wasmtime::component::bindgen!({
        path: "../../../wit/placement",
        world: "placement-rules",
        additional_derives: [PartialEq],
    });
}

pub mod documents {
    wasmtime::component::bindgen!({
        path: "../../../wit/documents",
        world: "documents-rules",
        additional_derives: [PartialEq],
    });
}
