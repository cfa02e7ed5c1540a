//! A signing provider: implements the world of holdfast on top of the API of one vendor.
//!
//! `vendor.rs` sends requests and parses responses; this file maps each function of the world to
//! them. The host makes a fresh instance for every call, so no state survives a call.

mod vendor;

use serde_json::json;

use crate::exports::holdfast::signing::signing::{
    Blob, Callback, CallbackError, CallbackSubject, Field, Guest, ProviderError, Submission,
    SubmissionRequest, Template,
};
use crate::holdfast::host::http::BodyPart;
use crate::holdfast::host::secrets;

wit_bindgen::generate!({ path: "wit", world: "signing-provider", generate_all });

struct Component;

impl Guest for Component {
    /// The vendor returns the existing template for a known `external_id`.
    fn create_template(
        name: String,
        external_id: String,
        document: &holdfast::host::blobs::Blob,
        fields: Vec<Field>,
    ) -> Result<Template, ProviderError> {
        let fields: Vec<_> = fields.into_iter().map(vendor::Field::from).collect();
        let begin = json!({ "external_id": external_id, "name": name, "fields": fields });

        // The document goes directly from the host to the vendor, without passing through this
        // memory.
        let begin = begin.to_string();
        let body = vec![
            BodyPart::Text(format!("{},\"document\":\"", begin.trim_end_matches('}'))),
            BodyPart::BlobBase64(document),
            BodyPart::Text("\"}".into()),
        ];

        vendor::template(&vendor::send("POST", "/templates", body)?)
    }

    fn read_template(template_id: String) -> Result<Template, ProviderError> {
        vendor::template(&vendor::get(&format!("/templates/{template_id}"))?)
    }

    /// The host retries a call after a lost response, so fields that exist already are not added
    /// again.
    fn add_fields(template_id: String, fields: Vec<Field>) -> Result<Template, ProviderError> {
        let path = format!("/templates/{template_id}");
        let there: vendor::Template = vendor::parsed(&vendor::get(&path)?)?;
        let fields: Vec<_> = fields
            .into_iter()
            .map(vendor::Field::from)
            // The vendor has no idempotency key for fields, so the template itself shows what an earlier call
            // added.
            .filter(|field| !there.fields.contains(field))
            .collect();
        let body = json!({ "fields": fields });

        vendor::template(&vendor::send("POST", &format!("{path}/fields"), vendor::json(&body))?)
    }

    fn clone_template(
        template_id: String,
        name: String,
        external_id: String,
    ) -> Result<Template, ProviderError> {
        let body = json!({ "external_id": external_id, "name": name });
        let path = format!("/templates/{template_id}/copies");
        vendor::template(&vendor::send("POST", &path, vendor::json(&body))?)
    }

    fn archive_template(template_id: String) -> Result<(), ProviderError> {
        vendor::gone(vendor::send("DELETE", &format!("/templates/{template_id}"), Vec::new()))
    }

    fn create_submission(request: SubmissionRequest) -> Result<Submission, ProviderError> {
        let body = vendor::SubmissionRequest::from(request);
        vendor::submission(&vendor::send("POST", "/submissions", vendor::json(&body))?)
    }

    fn read_submission(submission_id: String) -> Result<Submission, ProviderError> {
        vendor::submission(&vendor::get(&format!("/submissions/{submission_id}"))?)
    }

    fn archive_submission(submission_id: String) -> Result<(), ProviderError> {
        vendor::gone(vendor::send("DELETE", &format!("/submissions/{submission_id}"), Vec::new()))
    }

    fn signed_document(submission_id: String) -> Result<Blob, ProviderError> {
        vendor::document(&format!("/submissions/{submission_id}/document"))
    }

    /// `X-Vendor-Signature` is the HMAC-SHA256 of the body, in hexadecimal.
    fn read_callback(callback: Callback) -> Result<CallbackSubject, CallbackError> {
        let unverified = |why: &str| CallbackError::Unverified(why.into());
        let (_, signature) = callback
            .headers
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("x-vendor-signature"))
            .ok_or_else(|| unverified("no X-Vendor-Signature header"))?;
        let secret = secrets::open("webhook_secret")
            .ok_or_else(|| unverified("no secret webhook_secret is configured"))?;
        // The host computes the digest: the secret never enters the memory of the plugin.
        let digest = secret.hmac_sha256(&callback.body);
        if !vendor::is_hex_of(signature, &digest) {
            return Err(unverified("the signature does not match"));
        }

        // Parsed only after the check, because the body is a stranger's until then. It names the submission,
        // and the host reads that back.
        let about: vendor::About = serde_json::from_slice(&callback.body)
            .map_err(|_| CallbackError::Malformed("not an Example Sign callback".into()))?;
        Ok(match (about.submission_id, about.submitter_id) {
            (Some(submission), Some(submitter)) => CallbackSubject::Submitter((submitter, submission)),
            (Some(submission), None) => CallbackSubject::Submission(submission),
            (None, _) => CallbackSubject::Ignored,
        })
    }
}

export!(Component);
