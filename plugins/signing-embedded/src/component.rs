//! The component's exports: one line for each function of the world.

#![expect(unsafe_code, reason = "the export macro writes the entry points")]

use crate::bindings::exports::holdfast::signing::signing::{
    Callback, CallbackError, CallbackSubject, Field, Guest, ProviderError, Submission,
    SubmissionRequest, Template,
};
use crate::bindings::holdfast::host::blobs::Blob;
use crate::bindings::holdfast::host::random;
use crate::{submissions, templates};

pub(crate) type Result<T> = std::result::Result<T, ProviderError>;

struct EmbeddedComponent;

impl Guest for EmbeddedComponent {
    fn create_template(
        name: String,
        external_id: String,
        document: &Blob,
        fields: Vec<Field>,
    ) -> Result<Template> {
        Ok(templates::create(name, external_id, document, fields))
    }

    fn read_template(template_id: String) -> Result<Template> {
        templates::find(&template_id).map(templates::shown)
    }

    fn add_fields(template_id: String, fields: Vec<Field>) -> Result<Template> {
        templates::add_fields(&template_id, fields)
    }

    fn clone_template(template_id: String, name: String, external_id: String) -> Result<Template> {
        templates::clone(&template_id, name, external_id)
    }

    fn archive_template(template_id: String) -> Result<()> {
        templates::archive(&template_id)
    }

    fn create_submission(request: SubmissionRequest) -> Result<Submission> {
        submissions::create(request)
    }

    fn read_submission(submission_id: String) -> Result<Submission> {
        submissions::find(&submission_id).map(submissions::shown)
    }

    fn archive_submission(submission_id: String) -> Result<()> {
        submissions::archive(&submission_id)
    }

    fn signed_document(submission_id: String) -> Result<Blob> {
        submissions::signed_document(&submission_id)
    }

    fn read_callback(_: Callback) -> std::result::Result<CallbackSubject, CallbackError> {
        let why = "the built-in signing room sends no callbacks";
        Err(CallbackError::Unverified(why.into()))
    }
}

/// Parses an id of the room as a number.
pub(crate) fn number(id: &str) -> Result<u64> {
    id.parse().map_err(|_| ProviderError::NotFound)
}

/// Mask of the 52 bits of an id.
const ID: u64 = (1 << 52) - 1;

/// Returns a random numeric id.
pub(crate) fn new_id() -> u64 {
    let bytes = random::bytes(8);
    let number = |number, byte: &u8| number << 8 | u64::from(*byte);
    bytes.iter().fold(0, number) & ID
}

/// Returns the numeric id for an external id (FNV-1a with 64 bits), so concurrent requests get
/// the same template.
pub(crate) fn id_of(external_id: &str) -> u64 {
    let mix = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    external_id.bytes().fold(0xcbf2_9ce4_8422_2325, mix) & ID
}

crate::bindings::export!(EmbeddedComponent with_types_in crate::bindings);
