//! Submissions: create, read, archive, fetch the signed document.

use serde_json::{Value, json};

use crate::api::{Result, call, fetch, json};
use crate::bindings::exports::holdfast::signing::signing::{
    Blob, ProviderError, Submission, SubmissionRequest,
};
use crate::bindings::holdfast::signing::types::{
    SignedValue, SignerStatus, SubmissionStatus, Submitter, SubmitterRequest,
};
use crate::templates::{self, text};
use crate::wire;

/// DocuSeal knows no idempotency key, so a submission with our external id is
/// looked for first. It would match an unknown role to another one and drop an
/// unknown prefill silently, so both are compared with the template here.
pub(crate) fn create(request: &SubmissionRequest) -> Result<Submission> {
    if let Some(existing) = find(&request.external_id)? {
        return read(&existing);
    }
    let template = templates::fetch(&request.template_id)?;
    for submitter in &request.submitters {
        check(&template, submitter)?;
    }
    let submitters: Vec<Value> = request
        .submitters
        .iter()
        .map(|submitter| submitted(submitter, &request.external_id))
        .collect();
    let body = json!({
        "template_id": template.id,
        "name": request.name,
        "send_email": false,
        "order": if request.preserve_order { "preserved" } else { "random" },
        "submitters": submitters,
    });
    let created: Vec<wire::Submitter> = call("POST", "/submissions", json(&body))?;
    let submission = created
        .first()
        .and_then(|submitter| submitter.submission_id)
        .ok_or_else(|| ProviderError::Unreachable("no submission in the answer".into()))?;
    read(&submission.to_string())
}

pub(crate) fn read(submission_id: &str) -> Result<Submission> {
    let submission: wire::Submission =
        call("GET", &format!("/submissions/{submission_id}"), Vec::new())?;
    Ok(Submission {
        submission_id: submission.id.to_string(),
        status: match submission.status.as_str() {
            "completed" => SubmissionStatus::Completed,
            "declined" => SubmissionStatus::Declined,
            "expired" => SubmissionStatus::Expired,
            _ => SubmissionStatus::Pending,
        },
        archived: submission.archived_at.is_some(),
        completed_at: submission.completed_at,
        submitters: submission.submitters.into_iter().map(submitter).collect(),
    })
}

pub(crate) fn archive(submission_id: &str) -> Result<()> {
    let _: Value = call(
        "DELETE",
        &format!("/submissions/{submission_id}"),
        Vec::new(),
    )?;
    Ok(())
}

/// Before everybody has signed, the documents are a preview that changes with
/// every value: it must never be taken for the contract.
pub(crate) fn signed_document(submission_id: &str) -> Result<Blob> {
    let submission: wire::Submission =
        call("GET", &format!("/submissions/{submission_id}"), Vec::new())?;
    if submission.status != "completed" || submission.completed_at.is_none() {
        return Err(ProviderError::Rejected(
            "the submission is not completed".into(),
        ));
    }
    let documents: wire::Documents = call(
        "GET",
        &format!("/submissions/{submission_id}/documents?merge=true"),
        Vec::new(),
    )?;
    match documents.documents.as_slice() {
        [document] => fetch(&document.url),
        documents => Err(ProviderError::Unreachable(format!(
            "{} documents instead of one",
            documents.len()
        ))),
    }
}

fn find(external_id: &str) -> Result<Option<String>> {
    let page: wire::Page<wire::Submitter> = call(
        "GET",
        &format!("/submitters?external_id={external_id}&limit=1"),
        Vec::new(),
    )?;
    let found = page
        .data
        .first()
        .filter(|submitter| submitter.external_id.as_deref() == Some(external_id));
    Ok(found
        .and_then(|submitter| submitter.submission_id)
        .map(|id| id.to_string()))
}

fn check(template: &wire::Template, submitter: &SubmitterRequest) -> Result<()> {
    let known = template
        .submitters
        .iter()
        .any(|role| role.name.eq_ignore_ascii_case(&submitter.role));
    if !known {
        return Err(ProviderError::Rejected(format!(
            "the template has no role {}",
            submitter.role
        )));
    }
    for (name, _) in &submitter.values {
        if !template.fields.iter().any(|field| field.name == *name) {
            return Err(ProviderError::Rejected(format!(
                "the template has no field {name}"
            )));
        }
    }
    Ok(())
}

fn submitted(submitter: &SubmitterRequest, external_id: &str) -> Value {
    let fields: Vec<Value> = submitter
        .values
        .iter()
        .map(|(name, value)| json!({ "name": name, "default_value": value }))
        .collect();
    json!({
        "role": submitter.role,
        "email": submitter.email,
        "name": submitter.name,
        "external_id": external_id,
        "metadata": { "envelope_id": external_id },
        "send_email": false,
        "fields": fields,
    })
}

fn submitter(submitter: wire::Submitter) -> Submitter {
    let status = match submitter.status.as_str() {
        "completed" => SignerStatus::Completed,
        "declined" => SignerStatus::Declined,
        "started" => SignerStatus::Started,
        "opened" => SignerStatus::Viewed,
        _ if submitter.opened_at.is_some() => SignerStatus::Viewed,
        _ => SignerStatus::Pending,
    };
    let mut attributes = Vec::new();
    for (name, value) in [
        ("slug", submitter.slug),
        ("ip", submitter.ip),
        ("user_agent", submitter.ua),
        ("opened_at", submitter.opened_at),
    ] {
        attributes.extend(value.map(|value| (name.to_owned(), value)));
    }
    Submitter {
        submitter_id: submitter.id.to_string(),
        name: submitter.name.unwrap_or_default(),
        email: submitter.email.unwrap_or_default(),
        role: submitter.role.unwrap_or_default(),
        status,
        signing_url: submitter.embed_src.unwrap_or_default(),
        completed_at: submitter.completed_at,
        decline_reason: submitter.decline_reason,
        values: submitter
            .values
            .iter()
            .map(|value| SignedValue {
                name: value.field.clone(),
                field_type: value.field_type.clone().unwrap_or_default(),
                value: text(&value.value),
            })
            .collect(),
        attributes,
    }
}
