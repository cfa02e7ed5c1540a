//! Slot `rules.documents`: writing and rendering PDFs.
//!
//! Values and pictures on pages ([`fill`]), the marks of authoritative and other copies ([`mark`]),
//! both copies for the vault ([`prepare_copies`]), marks that name the holder of a copy ([`watermark`]),
//! copies as files of their own ([`write_anew`]),
//! pictures as documents ([`picture_to_pdf`]), page images ([`page_image`]) and parts of them
//! ([`excerpt`]), joined documents
//! ([`merge`]), earlier signatures
//! ([`signatures`]), validation data and time stamps behind a seal ([`extend`], [`validation_data_of`]), form fields ([`form_fields`]), removed tags ([`strip_tags`]), the custody record ([`custody_record`])
//! and the certificate of completion ([`completion_certificate`]). Of documents of word processors, only variables are
//! read and written ([`find_variables`], [`replace_variables`]).
//!
//! Every upload is treated as hostile: a function that refuses one returns a [`DocumentError`] with
//! the reason. No function reads a clock or a random number, so equal input gives equal bytes. The
//! memory and time budget of the sandbox stops input that cannot be refused in advance (a decoder
//! that wants gigabytes).
//!
//! New content is not merged into existing content, except in [`write_anew`]. It is drawn on an *overlay* page of the size
//! at which the page is displayed, becomes a form XObject, and is painted on top through one
//! matrix. It stays searchable, and the original objects stay unchanged.

mod actions;
mod anew;
mod completion;
#[cfg(target_arch = "wasm32")]
mod component;
mod continuation;
mod contract;
mod custody;
mod error;
mod faces;
mod fill;
mod fit;
mod flatten;
mod form_fields;
mod geometry;
mod long_term;
mod look;
mod marks;
mod merge;
mod moment;
mod overlay;
mod painting;
mod palette;
mod picture;
mod read_back;
mod render;
mod revisions;
mod seal;
mod settle;
mod signatures;
mod source;
mod strip;
mod table;
mod target;
mod text;
pub mod typeset;
mod updating;
mod values;
mod variables;
mod vaulting;
mod watermarks;

pub use actions::without_actions;
pub use anew::write_anew;
pub use completion::completion_certificate;
pub use contract::{
    Area, BoxedValue, CheckResult, CompletionFacts, Continuation, CopyKind, CopyWords,
    CustodyFacts, CustodySection, CustodySheet, DocumentError, DocumentExtension, ExtensionRequest,
    FieldValue, FilledField, FlowingField, FormField, FormFieldKind, FoundSignature,
    FoundSignatures, HandwritingStyle, LaterChange, MarkRequest, MarkWords, Marked, Misfit,
    PageImage, Party, Picture, PictureFormat, RepairedDocument, SealRequest, SealSpace,
    SettledDocument, SignatureAppearance, SignatureCoverage, SignatureData, SignatureHandling,
    SignerSummary, SourceWarning, TableColumn, TableRow, TimelineEntry, TypedSignature,
    ValidationData, VariableValue, VaultCopies, VaultRequest, WatermarkRequest, WrittenField,
};
pub use custody::{custody_record, worded_custody_record};
pub use fill::{fill, fill_written};
pub use form_fields::form_fields;
pub use long_term::{extend, validation_data_of};
pub use marks::{mark, worded_mark};
pub use merge::merge;
pub use picture::picture_to_pdf;
pub use render::{excerpt, page_image};
pub use seal::prepare_seal;
pub use settle::{settle, unlock};
pub use signatures::signatures;
pub use strip::strip_tags;
pub use values::{check_values, draw_value, fill_flowing};
pub use variables::{find_variables, replace_variables};
pub use vaulting::prepare_copies;
pub use watermarks::watermark;
