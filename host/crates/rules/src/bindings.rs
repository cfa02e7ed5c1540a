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

pub mod funding {
    wasmtime::component::bindgen!({
        path: "../../../wit/funding",
        world: "funding-rules",
        additional_derives: [PartialEq, serde::Serialize, serde::Deserialize],
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

/// Defines the bindings of interfaces beside the world of a slot. They share its types.
macro_rules! optional {
    ($slot:ident, $path:literal, $types:literal; $($(#[$doc:meta])* $module:ident => $world:literal;)*) => {$(
        $(#[$doc])*
        pub mod $module {
            wasmtime::component::bindgen!({
                path: $path,
                inline: $world,
                with: { $types: super::$slot::holdfast::$slot::types },
                additional_derives: [PartialEq],
            });
        }
    )*};
}

optional! {
    placement, "../../../wit/placement", "holdfast:placement/types@1.0.0";

    /// Interface that components of slot `rules.placement` need not export.
    placement_additions => "
        package holdfast:optional;
        world placement-additions {
            export holdfast:placement/field-rules@1.0.0;
        }
    ";

    /// Interface of slot `rules.placement` that only the default component is asked for.
    placement_similarity => "
        package holdfast:optional;
        world placement-similarity {
            export holdfast:placement/similarity@1.0.0;
        }
    ";

    /// Interface that components of slot `rules.placement` need not export.
    placement_wordings => "
        package holdfast:optional;
        world placement-wordings {
            export holdfast:placement/wordings@1.0.0;
        }
    ";

    /// Interface that components of slot `rules.placement` need not export.
    placement_facts => "
        package holdfast:optional;
        world placement-facts {
            export holdfast:placement/facts@1.0.0;
        }
    ";
}

optional! {
    documents, "../../../wit/documents", "holdfast:documents/types@1.0.0";

    /// Interfaces that components of slot `rules.documents` need not export.
    document_additions => "
        package holdfast:optional;
        world document-additions {
            export holdfast:documents/handwriting@1.0.0;
            export holdfast:documents/completion@1.0.0;
            export holdfast:documents/signatures@1.0.0;
            export holdfast:documents/form-fields@1.0.0;
            export holdfast:documents/wording@1.0.0;
        }
    ";

    /// Interface of slot `rules.documents` that only the default component is asked for.
    document_watermarks => "
        package holdfast:optional;
        world document-watermarks {
            export holdfast:documents/watermarks@1.0.0;
        }
    ";

    /// Interface of slot `rules.documents` that only the default component is asked for.
    document_copies => "
        package holdfast:optional;
        world document-copies {
            export holdfast:documents/copies@1.0.0;
        }
    ";

    /// Interface of slot `rules.documents` that only the default component is asked for.
    document_excerpts => "
        package holdfast:optional;
        world document-excerpts {
            export holdfast:documents/excerpts@1.0.0;
        }
    ";

    /// Interface of slot `rules.documents` that only the default component is asked for.
    document_sources => "
        package holdfast:optional;
        world document-sources {
            export holdfast:documents/sources@1.0.0;
        }
    ";

    /// Interface of slot `rules.documents` that a component without it has no part in.
    document_values => "
        package holdfast:optional;
        world document-values {
            export holdfast:documents/values@1.0.0;
        }
    ";

    /// Interface of slot `rules.documents` that only the default component is asked for.
    document_variables => "
        package holdfast:optional;
        world document-variables {
            export holdfast:documents/variables@1.0.0;
        }
    ";

    /// Interface of slot `rules.documents` that only the default component is asked for.
    document_long_term => "
        package holdfast:optional;
        world document-long-term {
            export holdfast:documents/long-term@1.0.0;
        }
    ";

    /// Interface of slot `rules.documents` that has a fallback of its own.
    document_vaulting => "
        package holdfast:optional;
        world document-vaulting {
            export holdfast:documents/vaulting@1.0.0;
        }
    ";
}
