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
        additional_derives: [PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize],
    });
}

pub mod control {
    wasmtime::component::bindgen!({
        path: "../../../wit/control",
        world: "control-rules",
        additional_derives: [PartialEq, Eq, serde::Serialize, serde::Deserialize],
    });
}

pub mod placement {
    wasmtime::component::bindgen!({
        path: "../../../wit/placement",
        world: "placement-rules",
        additional_derives: [PartialEq, serde::Serialize, serde::Deserialize],
    });
}

pub mod documents {
    wasmtime::component::bindgen!({
        path: "../../../wit/documents",
        world: "documents-rules",
        additional_derives: [PartialEq],
    });
}

/// Interface that components of slot `rules.placement` need not export.
pub mod placement_additions {
    wasmtime::component::bindgen!({
        path: "../../../wit/placement",
        inline: "
            package holdfast:optional;
            world placement-additions {
                export holdfast:placement/field-rules@1.0.0;
            }
        ",
        world: "holdfast:optional/placement-additions",
        with: {
            "holdfast:placement/types@1.0.0": super::placement::holdfast::placement::types,
        },
        additional_derives: [PartialEq],
    });
}

/// Interface of slot `rules.placement` that only the default component is asked for.
pub mod placement_similarity {
    wasmtime::component::bindgen!({
        path: "../../../wit/placement",
        inline: "
            package holdfast:optional;
            world placement-similarity {
                export holdfast:placement/similarity@1.0.0;
            }
        ",
        world: "holdfast:optional/placement-similarity",
        with: {
            "holdfast:placement/types@1.0.0": super::placement::holdfast::placement::types,
        },
        additional_derives: [PartialEq],
    });
}

/// Interface that components of slot `rules.placement` need not export.
pub mod placement_wordings {
    wasmtime::component::bindgen!({
        path: "../../../wit/placement",
        inline: "
            package holdfast:optional;
            world placement-wordings {
                export holdfast:placement/wordings@1.0.0;
            }
        ",
        world: "holdfast:optional/placement-wordings",
        with: {
            "holdfast:placement/types@1.0.0": super::placement::holdfast::placement::types,
        },
        additional_derives: [PartialEq],
    });
}

/// Interfaces that components of slot `rules.documents` need not export.
pub mod document_additions {
    wasmtime::component::bindgen!({
        path: "../../../wit/documents",
        inline: "
            package holdfast:optional;
            world document-additions {
                export holdfast:documents/handwriting@1.0.0;
                export holdfast:documents/completion@1.0.0;
                export holdfast:documents/signatures@1.0.0;
                export holdfast:documents/form-fields@1.0.0;
                export holdfast:documents/wording@1.0.0;
            }
        ",
        world: "holdfast:optional/document-additions",
        with: {
            "holdfast:documents/types@1.0.0": super::documents::holdfast::documents::types,
        },
        additional_derives: [PartialEq],
    });
}

/// Interface of slot `rules.documents` that only the default component is asked for.
pub mod document_watermarks {
    wasmtime::component::bindgen!({
        path: "../../../wit/documents",
        inline: "
            package holdfast:optional;
            world document-watermarks {
                export holdfast:documents/watermarks@1.0.0;
            }
        ",
        world: "holdfast:optional/document-watermarks",
        with: {
            "holdfast:documents/types@1.0.0": super::documents::holdfast::documents::types,
        },
        additional_derives: [PartialEq],
    });
}

/// Interface of slot `rules.documents` that only the default component is asked for.
pub mod document_copies {
    wasmtime::component::bindgen!({
        path: "../../../wit/documents",
        inline: "
            package holdfast:optional;
            world document-copies {
                export holdfast:documents/copies@1.0.0;
            }
        ",
        world: "holdfast:optional/document-copies",
        with: {
            "holdfast:documents/types@1.0.0": super::documents::holdfast::documents::types,
        },
        additional_derives: [PartialEq],
    });
}

/// Interface of slot `rules.documents` that only the default component is asked for.
pub mod document_sources {
    wasmtime::component::bindgen!({
        path: "../../../wit/documents",
        inline: "
            package holdfast:optional;
            world document-sources {
                export holdfast:documents/sources@1.0.0;
            }
        ",
        world: "holdfast:optional/document-sources",
        with: {
            "holdfast:documents/types@1.0.0": super::documents::holdfast::documents::types,
        },
        additional_derives: [PartialEq],
    });
}

/// Interface of slot `rules.documents` that a component without it has no part in.
pub mod document_values {
    wasmtime::component::bindgen!({
        path: "../../../wit/documents",
        inline: "
            package holdfast:optional;
            world document-values {
                export holdfast:documents/values@1.0.0;
            }
        ",
        world: "holdfast:optional/document-values",
        with: {
            "holdfast:documents/types@1.0.0": super::documents::holdfast::documents::types,
        },
        additional_derives: [PartialEq],
    });
}

/// Interface of slot `rules.documents` that has a fallback of its own.
pub mod document_vaulting {
    wasmtime::component::bindgen!({
        path: "../../../wit/documents",
        inline: "
            package holdfast:optional;
            world document-vaulting {
                export holdfast:documents/vaulting@1.0.0;
            }
        ",
        world: "holdfast:optional/document-vaulting",
        with: {
            "holdfast:documents/types@1.0.0": super::documents::holdfast::documents::types,
        },
        additional_derives: [PartialEq],
    });
}
