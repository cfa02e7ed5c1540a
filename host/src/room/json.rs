//! The room's records in DocuSeal's shapes. Pages are 0-based in answers.

use serde_json::{Value, json};

use super::{HOST, Room};
use crate::domain::clock::Timestamp;
use crate::store::room::{RoomField, RoomSubmission, RoomSubmitter, RoomTemplate};

/// The one document of a template has this attachment id.
pub(super) fn attachment_uuid(template: i64) -> String {
    format!("document-{template}")
}

pub(super) fn template(template: &RoomTemplate) -> Value {
    let attachment = attachment_uuid(template.id);
    json!({
        "id": template.id,
        "name": template.name,
        "external_id": template.external_id,
        "shared_link": false,
        "source": "api",
        "archived_at": template.archived_at,
        "created_at": template.created_at,
        "schema": [{ "attachment_uuid": attachment, "name": template.name }],
        "submitters": template.roles,
        "fields": template.fields.iter().map(|field| self::field(field, &attachment)).collect::<Vec<_>>(),
    })
}

fn field(field: &RoomField, attachment: &str) -> Value {
    json!({
        "uuid": field.uuid,
        "submitter_uuid": field.submitter_uuid,
        "name": field.name,
        "type": field.field_type,
        "required": field.required,
        "readonly": field.readonly,
        "default_value": field.default_value,
        "options": field.options.iter().map(|option| json!({ "value": option })).collect::<Vec<_>>(),
        "areas": field.areas.iter().map(|area| json!({
            "x": area.x, "y": area.y, "w": area.w, "h": area.h,
            "page": area.page.saturating_sub(1), "attachment_uuid": attachment,
        })).collect::<Vec<_>>(),
    })
}

/// Completed only once the executed document exists.
pub(super) fn submission_status(
    submission: &RoomSubmission,
    submitters: &[RoomSubmitter],
) -> &'static str {
    if submission.completed_at.is_some() {
        "completed"
    } else if submitters
        .iter()
        .any(|submitter| submitter.declined_at.is_some())
    {
        "declined"
    } else {
        "pending"
    }
}

pub(super) fn submission(submission: &RoomSubmission, submitters: &[RoomSubmitter]) -> Value {
    json!({
        "id": submission.id,
        "name": submission.name,
        "submitters_order": if submission.preserve_order { "preserved" } else { "random" },
        "status": submission_status(submission, submitters),
        "created_at": submission.created_at,
        "completed_at": submission.completed_at,
        "archived_at": submission.archived_at,
        "submitters": submitters
            .iter()
            .map(|submitter| self::submitter(submitter, &submission.fields))
            .collect::<Vec<_>>(),
    })
}

pub(super) fn submitter(submitter: &RoomSubmitter, fields: &[RoomField]) -> Value {
    let values: Vec<Value> = fields
        .iter()
        .filter(|field| field.submitter_uuid == submitter.role)
        .filter_map(|field| {
            let value = submitter.values.get(&field.name)?;
            Some(json!({
                "field": field.name,
                "type": field.field_type,
                "value": shown_value(field, value),
            }))
        })
        .collect();
    json!({
        "id": submitter.id,
        "submission_id": submitter.submission,
        "slug": submitter.slug,
        "email": submitter.email,
        "name": submitter.name,
        "role": submitter.role,
        "external_id": submitter.external_id,
        "status": submitter_status(submitter),
        "embed_src": format!("http://{HOST}/s/{}", submitter.slug),
        "opened_at": submitter.opened_at,
        "completed_at": submitter.completed_at,
        "declined_at": submitter.declined_at,
        "decline_reason": submitter.decline_reason,
        "metadata": { "consented_at": submitter.consented_at },
        "ip": submitter.ip,
        "ua": submitter.user_agent,
        "values": values,
    })
}

/// How a signature looks is nobody's business but the document's.
fn shown_value(field: &RoomField, value: &str) -> Value {
    if field.is_signature() && !value.is_empty() {
        "signed".into()
    } else {
        value.into()
    }
}

/// `started` is the room's own: DocuSeal tells of it by a callback only.
fn submitter_status(submitter: &RoomSubmitter) -> &'static str {
    let RoomSubmitter {
        completed_at,
        declined_at,
        started_at,
        opened_at,
        ..
    } = submitter;
    let set = |at: &Option<Timestamp>| at.is_some();
    if set(completed_at) {
        "completed"
    } else if set(declined_at) {
        "declined"
    } else if set(started_at) {
        "started"
    } else if set(opened_at) {
        "opened"
    } else {
        "awaiting"
    }
}

/// Where the executed document can be fetched. The URL is the credential.
pub(super) fn document_url(room: &Room, submission: &RoomSubmission) -> String {
    format!(
        "http://{HOST}/documents/{}/{}/{}",
        submission.org,
        submission.id,
        room.document_credential(&submission.org, submission.id)
    )
}
