//! Types generated from `wit/documents`, used natively and in the sandbox.

#[allow(
    missing_docs,
    unsafe_code,
    clippy::all,
    reason = "generated; the contract's own comments are in the WIT file"
)]
pub(crate) mod bindings {
    wit_bindgen::generate!({
        path: "../../wit/documents",
        world: "default-documents",
        additional_derives: [PartialEq],
        pub_export_macro: true,
        default_bindings_module: "crate::contract::bindings",
    });
}

pub use bindings::exports::holdfast::documents::completion::{
    CompletionFacts, SignatureAppearance, SignerSummary, TypedSignature,
};
pub use bindings::exports::holdfast::documents::copies::SignatureHandling;
pub use bindings::exports::holdfast::documents::form_fields::{FormField, FormFieldKind};
pub use bindings::exports::holdfast::documents::handwriting::{HandwritingStyle, WrittenField};
pub use bindings::exports::holdfast::documents::long_term::{
    DocumentExtension, ExtensionRequest, SignatureData, ValidationData,
};
pub use bindings::exports::holdfast::documents::signatures::{
    FoundSignature, FoundSignatures, LaterChange, SignatureCoverage,
};
pub use bindings::exports::holdfast::documents::sources::{
    RepairedDocument, SettledDocument, SourceWarning,
};
pub use bindings::exports::holdfast::documents::values::{
    BoxedValue, Continuation, FlowingField, Misfit,
};
pub use bindings::exports::holdfast::documents::variables::VariableValue;
pub use bindings::exports::holdfast::documents::vaulting::{CopyWords, VaultCopies, VaultRequest};
pub use bindings::exports::holdfast::documents::watermarks::WatermarkRequest;
pub use bindings::exports::holdfast::documents::wording::{
    CustodySection, CustodySheet, MarkWords, TableColumn, TableRow,
};
pub use bindings::holdfast::documents::types::{
    Area, CheckResult, CopyKind, CustodyFacts, DocumentError, FieldValue, FilledField, MarkRequest,
    Marked, PageImage, Party, Picture, PictureFormat, SealRequest, SealSpace, TimelineEntry,
};
