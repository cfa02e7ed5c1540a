//! Submissions: create, read, archive, fetch the signed document.

use serde_json::{Value, json};

use crate::api::{Result, call, fetch_pdf, json};
use crate::bindings::exports::holdfast::signing::signing::{
    Blob, ProviderError, Submission, SubmissionRequest,
};
use crate::bindings::holdfast::host::log::{self, Level};
use crate::bindings::holdfast::signing::types::{
    SignedValue, SignerStatus, SubmissionStatus, Submitter, SubmitterRequest,
};
use crate::templates;
use crate::values::{entered, is_signature, percent_encoded, typed};
use crate::wire;

/// Creates a submission. DocuSeal has no idempotency keys, so the plugin looks for a submission
/// with our external id first, and again after a lost response, because the request may have
/// succeeded.
pub(crate) fn create(request: &SubmissionRequest) -> Result<Submission> {
    if let Some(existing) = find(&request.external_id)? {
        return as_requested(existing, request);
    }

    // Roles are compared with the present template, because it can have changed at DocuSeal since the host
    // read it.
    let template = templates::fetch(&request.template_id)?;
    let submitters = request
        .submitters
        .iter()
        .map(|submitter| submitted(&template, submitter, &request.external_id))
        .collect::<Result<Vec<Value>>>()?;
    // No mails of DocuSeal: the host invites signers, and only when it is their turn.
    let body = json!({
        "template_id": template.id,
        "name": request.name,
        "send_email": false,
        "order": if request.preserve_order { "preserved" } else { "random" },
        "submitters": submitters,
    });
    let submission = match call("POST", "/submissions", json(&body)).and_then(created) {
        Ok(submission) => submission,
        // The request may have succeeded although its response was lost.
        Err(ProviderError::Unreachable(why)) => find(&request.external_id)
            .ok()
            .flatten()
            .ok_or(ProviderError::Unreachable(why))?,
        Err(error) => return Err(error),
    };

    as_requested(submission, request)
}

/// Builds a submission from the response, which is a list of submitters.
fn created(submitters: Vec<wire::WireSubmitter>) -> Result<Submission> {
    // DocuSeal answers with the submitters and not with the submission.
    let id = submitters
        .first()
        .and_then(|submitter| submitter.submission_id)
        .ok_or_else(|| ProviderError::Unreachable("no submission in the answer".into()))?;
    Ok(ours(wire::Submission {
        id,
        status: "pending".into(),
        completed_at: None,
        archived_at: None,
        submitters,
        submission_events: Vec::new(),
        fields: Vec::new(),
    }))
}

/// Refuses a submission with other roles than requested. If the template has lost a role since it
/// was read, DocuSeal silently assigns another one; such a submission must not be signed.
fn as_requested(submission: Submission, request: &SubmissionRequest) -> Result<Submission> {
    let invited = |requested: &SubmitterRequest| {
        submission
            .submitters
            .iter()
            .any(|submitter| submitter.role.eq_ignore_ascii_case(&requested.role))
    };
    if request.submitters.iter().all(invited) {
        return Ok(submission);
    }

    // Archived, so no signer can complete the wrong submission.
    archive(&submission.submission_id)?;
    Err(ProviderError::Rejected(
        "a submitter was given another role than the requested one".into(),
    ))
}

/// Reads a submission with its fields, because values come without their types.
pub(crate) fn read(submission_id: &str) -> Result<Submission> {
    let mut submission: wire::Submission = call(
        "GET",
        &format!("/submissions/{submission_id}?include=fields"),
        Vec::new(),
    )?;
    // The evidence names the address from which a signer completed, and this answer lacks it.
    add_origins(&mut submission);
    Ok(ours(submission))
}

pub(crate) fn archive(submission_id: &str) -> Result<()> {
    let _: Value = call(
        "DELETE",
        &format!("/submissions/{submission_id}"),
        Vec::new(),
    )?;
    Ok(())
}

/// Fetches the executed document. Until all signers have completed, the documents are a preview
/// that changes with every value and must never be mistaken for the contract.
pub(crate) fn signed_document(submission_id: &str) -> Result<Blob> {
    let submission: wire::Submission =
        call("GET", &format!("/submissions/{submission_id}"), Vec::new())?;
    if status(&submission) != SubmissionStatus::Completed {
        return Err(ProviderError::Rejected(
            "the submission is not completed".into(),
        ));
    }

    let documents: wire::WireDocuments = call(
        "GET",
        &format!("/submissions/{submission_id}/documents?merge=true"),
        Vec::new(),
    )?;
    // Without `merge`, several files come. Any other number than one would vault a part of the contract.
    match documents.documents.as_slice() {
        [document] => fetch_pdf(&document.url),
        documents => Err(ProviderError::Unreachable(format!(
            "{} documents instead of one",
            documents.len()
        ))),
    }
}

/// Returns the newest submission with our external id, unless it is archived. An archived
/// submission was given up and cannot be signed.
fn find(external_id: &str) -> Result<Option<Submission>> {
    let query = percent_encoded(external_id);
    let page: wire::WirePage<wire::WireSubmitter> = call(
        "GET",
        &format!("/submitters?external_id={query}&limit=1"),
        Vec::new(),
    )?;
    let found = page
        .data
        .first()
        // A DocuSeal that ignores the parameter would return another submission.
        .filter(|submitter| submitter.external_id.as_deref() == Some(external_id))
        .and_then(|submitter| submitter.submission_id);
    let Some(id) = found else {
        return Ok(None);
    };

    let submission = read(&id.to_string())?;
    Ok(Some(submission).filter(|submission| !submission.archived))
}

/// Builds a submitter for the request. DocuSeal would replace an unknown role by the role at its
/// position in the list, so roles are compared with the template first. Prefilled values go into
/// the member in which DocuSeal rejects unknown names, only into fields of the own role, and never
/// into a signature.
fn submitted(
    template: &wire::Template,
    submitter: &SubmitterRequest,
    external_id: &str,
) -> Result<Value> {
    let role = template
        .submitters
        .iter()
        .find(|role| role.name.eq_ignore_ascii_case(&submitter.role))
        .ok_or_else(|| {
            ProviderError::Rejected(format!("the template has no role {}", submitter.role))
        })?;
    let prefill = |(name, value): &(String, String)| {
        let field = template
            .fields
            .iter()
            .find(|field| field.name == *name && field.submitter_uuid == role.uuid)
            .filter(|field| !is_signature(&field.field_type))
            .ok_or_else(|| {
                ProviderError::Rejected(format!("role {} has no field {name}", role.name))
            })?;

        Ok(json!({ "name": name, "default_value": typed(&field.field_type, value) }))
    };

    let fields = submitter
        .values
        .iter()
        .map(prefill)
        .collect::<Result<Vec<Value>>>()?;
    Ok(json!({
        "role": role.name,
        "email": submitter.email,
        "name": submitter.name,
        "external_id": external_id,
        "metadata": { "envelope_id": external_id },
        "send_email": false,
        "fields": fields,
    }))
}

fn status(submission: &wire::Submission) -> SubmissionStatus {
    match submission.status.as_str() {
        "completed" if submission.completed_at.is_some() => SubmissionStatus::Completed,
        "declined" => SubmissionStatus::Declined,
        "expired" => SubmissionStatus::Expired,
        _ => SubmissionStatus::Pending,
    }
}

fn ours(submission: wire::Submission) -> Submission {
    Submission {
        submission_id: submission.id.to_string(),
        status: status(&submission),
        archived: submission.archived_at.is_some(),
        submitters: submission
            .submitters
            .iter()
            .map(|submitter| self::submitter(submitter, &submission))
            .collect(),
        completed_at: submission.completed_at,
    }
}

/// Adds the address and browser from which a signer completed. DocuSeal reports them only in
/// webhooks and in this feed of the newest completions, which is not part of the published API. The
/// rest of the submission is valid without it.
fn add_origins(submission: &mut wire::Submission) {
    // The feed costs a call, so it is asked only about a signer without an origin.
    let lacks_origin =
        |submitter: &wire::WireSubmitter| submitter.status == "completed" && submitter.ip.is_none();
    if !submission.submitters.iter().any(lacks_origin) {
        return;
    }

    let feed: Result<wire::WirePage<wire::WireHook>> =
        call("GET", "/events/form/completed?limit=100", Vec::new());
    let completions = match feed {
        Ok(page) => page.data,
        // The feed is no part of the published API, so it may be missing.
        Err(ProviderError::NotFound) => return,
        Err(_) => {
            let message = "the feed of completions gives no origin of a signer";
            return log::write(Level::Warn, message);
        }
    };
    for submitter in submission.submitters.iter_mut().filter(|s| lacks_origin(s)) {
        let own = |hook: &&wire::WireHook| {
            hook.data.get("id").and_then(Value::as_i64) == Some(submitter.id)
        };
        if let Some(hook) = completions.iter().find(own) {
            let told = |key: &str| hook.data.get(key)?.as_str().map(str::to_owned);
            submitter.ip = told("ip");
            submitter.ua = told("ua");
        }
    }
}

fn submitter(submitter: &wire::WireSubmitter, submission: &wire::Submission) -> Submitter {
    let events: Vec<&wire::SubmissionEvent> = submission
        .submission_events
        .iter()
        .filter(|event| event.submitter_id == Some(submitter.id))
        .collect();
    let event = |event_type: &str| events.iter().find(|event| event.event_type == event_type);
    let reason = || {
        Some(
            event("decline_form")?
                .data
                .get("reason")?
                .as_str()?
                .to_owned(),
        )
    };

    let status = match submitter.status.as_str() {
        "completed" => SignerStatus::Completed,
        "declined" => SignerStatus::Declined,
        "started" => SignerStatus::Started,
        // The status may still be `opened`: only the events show that a signer has begun.
        _ if event("start_form").is_some() => SignerStatus::Started,
        "opened" => SignerStatus::Viewed,
        _ if submitter.opened_at.is_some() => SignerStatus::Viewed,
        _ => SignerStatus::Pending,
    };

    // Anyone with the API token can complete a form that its signer never opened.
    let method = if event("api_complete_form").is_some() {
        Some("api")
    } else {
        event("complete_form").map(|_| "form")
    };
    let consented_at = submitter.metadata.get("consented_at");
    // Attributes are optional evidence, so absent ones are left out and not sent as empty.
    let attributes = [
        ("slug", submitter.slug.as_deref()),
        ("ip", submitter.ip.as_deref()),
        ("user_agent", submitter.ua.as_deref()),
        ("opened_at", submitter.opened_at.as_deref()),
        ("completion_method", method),
        ("consented_at", consented_at.and_then(Value::as_str)),
    ];

    Submitter {
        submitter_id: submitter.id.to_string(),
        name: submitter.name.clone().unwrap_or_default(),
        email: submitter.email.clone().unwrap_or_default(),
        role: submitter.role.clone().unwrap_or_default(),
        status,
        signing_url: submitter.embed_src.clone().unwrap_or_default(),
        completed_at: submitter.completed_at.clone(),
        decline_reason: submitter.decline_reason.clone().or_else(reason),
        values: submitter
            .values
            .iter()
            .map(|value| signed_value(value, submitter, submission))
            .collect(),
        attributes: attributes
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
            .collect(),
    }
}

fn signed_value(
    value: &wire::SubmittedValue,
    submitter: &wire::WireSubmitter,
    submission: &wire::Submission,
) -> SignedValue {
    let own = |field: &&wire::SubmissionField| {
        field.name.as_deref() == Some(&value.field) && field.submitter_uuid == submitter.uuid
    };
    let field = submission.fields.iter().find(own);
    // A value without a known type counts as typed text, never as a signature.
    let field_type = value
        .field_type
        .as_deref()
        .or(field.map(|field| field.field_type.as_str()))
        .unwrap_or_default();

    SignedValue {
        name: value.field.clone(),
        field_type: field_type.into(),
        value: entered(field_type, &value.value),
    }
}
