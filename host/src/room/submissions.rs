//! Submissions of the room, their submitters and their documents.

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::api::{Account, Answer, Failure, page, parse, text};
use super::templates::find_template;
use super::{Room, json, new_id, new_slug};
use crate::domain::envelope::StoredFile;
use crate::domain::id::OrgId;
use crate::store::room::{self as rooms, RoomField, RoomSubmission, RoomSubmitter, RoomTemplate};

#[derive(Deserialize)]
struct CreateSubmission {
    template_id: i64,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    order: Option<String>,
    submitters: Vec<RequestedSubmitter>,
}

#[derive(Deserialize)]
struct RequestedSubmitter {
    role: String,
    email: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    external_id: Option<String>,
    #[serde(default)]
    fields: Vec<Prefill>,
}

#[derive(Deserialize)]
struct Prefill {
    name: String,
    default_value: Value,
}

pub(super) async fn create_submission(
    State(room): State<Room>,
    Account(org): Account,
    body: Bytes,
) -> Answer {
    let request: CreateSubmission = parse(&body)?;
    let template = match find_template(&room.store, &org, request.template_id).await {
        Err(Failure::NotFound) => return Err(Failure::Invalid("Template not found".into())),
        found => found?,
    };
    if template.archived_at.is_some() {
        return Err(Failure::Invalid("Template has been archived".into()));
    }
    if template.fields.is_empty() {
        return Err(Failure::Invalid("Template does not contain fields".into()));
    }
    if request.submitters.len() > template.roles.len() {
        return Err(Failure::Invalid(
            "Defined more signing parties than in template".into(),
        ));
    }
    let fields = fields_by_role_name(&template);
    let submission = RoomSubmission {
        id: new_id(),
        name: request.name.unwrap_or_else(|| template.name.clone()),
        preserve_order: request.order.as_deref() != Some("random"),
        document: (
            template.document_key.clone(),
            template.document_sha256.clone(),
        ),
        fields,
        signed: None,
        created_at: room.clock.now(),
        completed_at: None,
        archived_at: None,
        template: template.id,
        org,
    };
    let submitters = request
        .submitters
        .into_iter()
        .zip(0..)
        .map(|(requested, position)| invited(requested, position, &template, &submission))
        .collect::<Result<Vec<_>, _>>()?;
    let mut tx = room.store.begin().await?;
    rooms::insert_submission(&mut tx, &submission).await?;
    for submitter in &submitters {
        rooms::insert_submitter(&mut tx, submitter).await?;
    }
    tx.commit().await?;
    let answer = submitters
        .iter()
        .map(|submitter| json::submitter(submitter, &submission.fields))
        .collect();
    Ok(Json(Value::Array(answer)))
}

/// In a submission a field's `submitter_uuid` is the role's name: templates may
/// change afterwards, what was sent out does not.
///
/// Fields of one role with one name are one field in several places.
fn fields_by_role_name(template: &RoomTemplate) -> Vec<RoomField> {
    let name = |uuid: &str| {
        let role = template.roles.iter().find(|role| role.uuid == uuid);
        role.map(|role| role.name.clone()).unwrap_or_default()
    };
    let mut fields: Vec<RoomField> = Vec::new();
    for field in &template.fields {
        let role = name(&field.submitter_uuid);
        let same = fields
            .iter_mut()
            .find(|known| known.name == field.name && known.submitter_uuid == role);
        match same {
            Some(known) => {
                known.areas.extend(field.areas.iter().copied());
                known.required |= field.required;
            }
            None => fields.push(RoomField {
                submitter_uuid: role,
                ..field.clone()
            }),
        }
    }
    fields
}

fn invited(
    requested: RequestedSubmitter,
    position: i64,
    template: &RoomTemplate,
    submission: &RoomSubmission,
) -> Result<RoomSubmitter, Failure> {
    let role = template
        .roles
        .iter()
        .find(|role| role.name.eq_ignore_ascii_case(&requested.role))
        .ok_or_else(|| Failure::Invalid(format!("{} role doesn't exist", requested.role)))?;
    // Nobody signs for somebody else.
    let own = |name: &str| {
        submission.fields.iter().any(|field| {
            field.name == name && field.submitter_uuid == role.name && !field.is_signature()
        })
    };
    if let Some(prefill) = requested.fields.iter().find(|prefill| !own(&prefill.name)) {
        return Err(Failure::Invalid(format!("Unknown field: {}", prefill.name)));
    }
    let defaults = submission
        .fields
        .iter()
        .filter(|field| field.submitter_uuid == role.name && !field.is_signature())
        .filter_map(|field| Some((field.name.clone(), field.default_value.clone()?)));
    let prefilled = requested
        .fields
        .into_iter()
        .filter_map(|prefill| Some((prefill.name, text(prefill.default_value)?)));
    Ok(RoomSubmitter {
        id: new_id(),
        org: submission.org.clone(),
        submission: submission.id,
        position,
        slug: new_slug(),
        name: requested.name.unwrap_or_default(),
        email: requested.email,
        role: role.name.clone(),
        external_id: requested.external_id,
        values: defaults.chain(prefilled).collect(),
        opened_at: None,
        started_at: None,
        consented_at: None,
        completed_at: None,
        declined_at: None,
        decline_reason: None,
        ip: None,
        user_agent: None,
    })
}

pub(super) async fn read_submission(
    State(room): State<Room>,
    Account(org): Account,
    Path(id): Path<i64>,
) -> Answer {
    let mut connection = room.store.read().await?;
    let submission = rooms::submission(&mut connection, &org, id)
        .await?
        .ok_or(Failure::NotFound)?;
    let submitters = rooms::submitters(&mut connection, &org, id).await?;
    Ok(Json(json::submission(&submission, &submitters)))
}

pub(super) async fn archive_submission(
    State(room): State<Room>,
    Account(org): Account,
    Path(id): Path<i64>,
) -> Answer {
    let mut tx = room.store.begin().await?;
    let mut submission = rooms::lock_submission(&mut tx, &org, id)
        .await?
        .ok_or(Failure::NotFound)?;
    submission.archived_at.get_or_insert(room.clock.now());
    rooms::update_submission(&mut tx, &submission).await?;
    tx.commit().await?;
    Ok(Json(
        json!({ "id": submission.id, "archived_at": submission.archived_at }),
    ))
}

pub(super) async fn submission_documents(
    State(room): State<Room>,
    Account(org): Account,
    Path(id): Path<i64>,
) -> Answer {
    let mut connection = room.store.read().await?;
    let submission = rooms::submission(&mut connection, &org, id)
        .await?
        .ok_or(Failure::NotFound)?;
    if submission.signed.is_none() {
        return Err(Failure::Invalid("Submission is not completed".into()));
    }
    let url = json::document_url(&room, &submission);
    Ok(Json(json!({
        "id": submission.id,
        "documents": [{ "name": submission.name, "url": url }],
    })))
}

#[derive(Deserialize)]
pub(super) struct FindSubmitters {
    external_id: String,
    #[serde(default = "ten")]
    limit: i64,
}

fn ten() -> i64 {
    10
}

pub(super) async fn find_submitters(
    State(room): State<Room>,
    Account(org): Account,
    Query(query): Query<FindSubmitters>,
) -> Answer {
    let mut connection = room.store.read().await?;
    let limit = query.limit.clamp(1, 100);
    let found =
        rooms::submitters_by_external_id(&mut connection, &org, &query.external_id, limit).await?;
    Ok(page(
        found
            .iter()
            .map(|submitter| json::submitter(submitter, &[]))
            .collect(),
    ))
}

pub(super) async fn read_submitter(
    State(room): State<Room>,
    Account(org): Account,
    Path(id): Path<i64>,
) -> Answer {
    let mut connection = room.store.read().await?;
    let submitter = rooms::submitter(&mut connection, &org, id)
        .await?
        .ok_or(Failure::NotFound)?;
    let submission = rooms::submission(&mut connection, &org, submitter.submission)
        .await?
        .ok_or(Failure::NotFound)?;
    Ok(Json(json::submitter(&submitter, &submission.fields)))
}

pub(super) async fn document(
    State(room): State<Room>,
    Path((org, id, credential)): Path<(String, i64, String)>,
) -> Result<Response, Failure> {
    let org = OrgId::parse(&org).ok_or(Failure::NotFound)?;
    let expected = room.document_credential(&org, id);
    if !bool::from(subtle::ConstantTimeEq::ct_eq(
        expected.as_bytes(),
        credential.as_bytes(),
    )) {
        return Err(Failure::NotFound);
    }
    let mut connection = room.store.read().await?;
    let submission = rooms::submission(&mut connection, &org, id)
        .await?
        .ok_or(Failure::NotFound)?;
    drop(connection);
    let (key, sha256) = submission.signed.ok_or(Failure::NotFound)?;
    let file = StoredFile {
        key,
        sha256,
        size: 0,
        content_type: "application/pdf".into(),
    };
    let bytes = room.files.get(&file).await?;
    Ok((
        [(header::CONTENT_TYPE, "application/pdf")],
        Body::from(bytes),
    )
        .into_response())
}
