//! The component's exports: one line for each function of the world.

#![expect(unsafe_code, reason = "the export macro writes the entry points")]

use crate::api::Result;
use crate::bindings::exports::holdfast::signing::signing::{
    Callback, CallbackError, CallbackSubject, Field, Guest, Submission, SubmissionRequest, Template,
};
use crate::bindings::holdfast::host::blobs;
use crate::bindings::holdfast::host::{clock, secrets};
use crate::callback::{self, HookSubject};
use crate::{submissions, templates};

struct DocusealComponent;

impl Guest for DocusealComponent {
    fn create_template(
        name: String,
        external_id: String,
        document: &blobs::Blob,
        fields: Vec<Field>,
    ) -> Result<Template> {
        templates::create(&name, &external_id, document, &fields)
    }

    fn read_template(template_id: String) -> Result<Template> {
        templates::read(&template_id)
    }

    fn add_fields(template_id: String, fields: Vec<Field>) -> Result<Template> {
        templates::add_fields(&template_id, &fields)
    }

    fn clone_template(template_id: String, name: String, external_id: String) -> Result<Template> {
        templates::clone(&template_id, &name, &external_id)
    }

    fn archive_template(template_id: String) -> Result<()> {
        templates::archive(&template_id)
    }

    fn create_submission(request: SubmissionRequest) -> Result<Submission> {
        submissions::create(&request)
    }

    fn read_submission(submission_id: String) -> Result<Submission> {
        submissions::read(&submission_id)
    }

    fn archive_submission(submission_id: String) -> Result<()> {
        submissions::archive(&submission_id)
    }

    fn signed_document(submission_id: String) -> Result<blobs::Blob> {
        submissions::signed_document(&submission_id)
    }

    fn read_callback(callback: Callback) -> std::result::Result<CallbackSubject, CallbackError> {
        let unverified = |why: &str| CallbackError::Unverified(why.into());
        let (_, header) = callback
            .headers
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("x-docuseal-signature"))
            .ok_or_else(|| unverified("no X-Docuseal-Signature header"))?;
        let signature = callback::parse_signature(header)
            .ok_or_else(|| unverified("the signature header is malformed"))?;
        // A recorded webhook could be replayed forever otherwise.
        if !callback::is_fresh(&signature, clock::now() / 1000) {
            return Err(unverified("the signature is too old"));
        }

        let secret = secrets::open("webhook_secret")
            .ok_or_else(|| unverified("no secret webhook_secret is configured"))?;
        // The host computes the digest: the secret never enters the memory of the plugin.
        let digest = secret.hmac_sha256(&callback::signed_message(&signature, &callback.body));
        if !callback::matches(&signature, &digest) {
            return Err(unverified("the signature does not match"));
        }

        match callback::read(&callback.body) {
            Some(HookSubject::Submission(id)) => Ok(CallbackSubject::Submission(id)),
            Some(HookSubject::Submitter(id, submission)) => {
                Ok(CallbackSubject::Submitter((id, submission)))
            }
            Some(HookSubject::Ignored) => Ok(CallbackSubject::Ignored),
            None => Err(CallbackError::Malformed("not a DocuSeal webhook".into())),
        }
    }
}

crate::bindings::export!(DocusealComponent with_types_in crate::bindings);
