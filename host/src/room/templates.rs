//! Templates of the room.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::api::{Account, Answer, Failure, page, parse, text};
use super::{Room, json, new_id, new_slug};
use crate::domain::field::Area;
use crate::domain::id::OrgId;
use crate::files::Area as FileArea;
use crate::store::Store;
use crate::store::room::{self as rooms, RoomField, RoomRole, RoomTemplate};

#[derive(Deserialize)]
struct CreateTemplate {
    name: String,
    #[serde(default)]
    external_id: Option<String>,
    documents: Vec<TemplateDocument>,
}

#[derive(Deserialize)]
struct TemplateDocument {
    file: String,
    #[serde(default)]
    fields: Vec<RequestedField>,
}

/// A field as it is requested: pages are 1-based, the role is a name.
#[derive(Deserialize)]
struct RequestedField {
    name: String,
    #[serde(rename = "type")]
    field_type: String,
    role: String,
    #[serde(default = "required_by_default")]
    required: bool,
    #[serde(default)]
    readonly: bool,
    #[serde(default)]
    default_value: Value,
    #[serde(default)]
    options: Vec<String>,
    areas: Vec<Area>,
}

fn required_by_default() -> bool {
    true
}

pub(super) async fn create_template(
    State(room): State<Room>,
    Account(org): Account,
    body: Bytes,
) -> Answer {
    let request: CreateTemplate = parse(&body)?;
    drop(body);
    let [document] = <[TemplateDocument; 1]>::try_from(request.documents)
        .map_err(|_| Failure::Invalid("exactly one document is supported".into()))?;
    let pdf = STANDARD
        .decode(document.file.as_bytes())
        .map_err(|_| Failure::Invalid("file is not base64".into()))?;
    let mut roles: Vec<RoomRole> = Vec::new();
    let fields = document
        .fields
        .into_iter()
        .map(|field| RoomField {
            uuid: new_slug(),
            submitter_uuid: role_uuid(&mut roles, &field.role),
            name: field.name,
            field_type: field.field_type,
            required: field.required,
            readonly: field.readonly,
            default_value: text(field.default_value),
            options: field.options,
            areas: field.areas,
        })
        .collect();
    let id = new_id();
    let file = room
        .files
        .put(
            FileArea::Room,
            &org,
            "templates",
            pdf.into(),
            "application/pdf",
        )
        .await?;
    let template = RoomTemplate {
        id,
        org,
        name: request.name,
        external_id: request.external_id,
        document_key: file.key,
        document_sha256: file.sha256,
        roles,
        fields,
        created_at: room.clock.now(),
        archived_at: None,
    };
    let mut tx = room.store.begin().await?;
    let id = rooms::upsert_template(&mut tx, &template).await?;
    tx.commit().await?;
    Ok(Json(json::template(&RoomTemplate { id, ..template })))
}

fn role_uuid(roles: &mut Vec<RoomRole>, name: &str) -> String {
    if let Some(role) = roles.iter().find(|role| role.name == name) {
        return role.uuid.clone();
    }
    let uuid = new_slug();
    roles.push(RoomRole {
        name: name.into(),
        uuid: uuid.clone(),
    });
    uuid
}

pub(super) async fn read_template(
    State(room): State<Room>,
    Account(org): Account,
    Path(id): Path<i64>,
) -> Answer {
    Ok(Json(json::template(
        &find_template(&room.store, &org, id).await?,
    )))
}

#[derive(Deserialize)]
pub(super) struct FindTemplates {
    external_id: String,
}

/// An external id names one template.
pub(super) async fn find_templates(
    State(room): State<Room>,
    Account(org): Account,
    Query(query): Query<FindTemplates>,
) -> Answer {
    let mut connection = room.store.read().await?;
    let found = rooms::template_by_external_id(&mut connection, &org, &query.external_id).await?;
    Ok(page(found.iter().map(json::template).collect()))
}

pub(super) async fn find_template(
    store: &Store,
    org: &OrgId,
    id: i64,
) -> Result<RoomTemplate, Failure> {
    let mut connection = store.read().await?;
    rooms::template(&mut connection, org, id)
        .await?
        .ok_or(Failure::NotFound)
}

#[derive(Deserialize)]
struct UpdateTemplate {
    name: Option<String>,
    submitters: Option<Vec<RoomRole>>,
    fields: Option<Vec<StoredField>>,
}

/// A field as it is written back: pages are 0-based, the role is a uuid.
#[derive(Deserialize)]
struct StoredField {
    uuid: Option<String>,
    submitter_uuid: String,
    name: String,
    #[serde(rename = "type")]
    field_type: String,
    #[serde(default)]
    required: bool,
    #[serde(default)]
    readonly: bool,
    #[serde(default)]
    default_value: Value,
    #[serde(default)]
    options: Vec<StoredOption>,
    areas: Vec<StoredArea>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum StoredOption {
    Text(String),
    Object { value: String },
}

#[derive(Deserialize)]
struct StoredArea {
    page: u32,
    x: f64,
    y: f64,
    w: f64,
    h: f64,
}

pub(super) async fn update_template(
    State(room): State<Room>,
    Account(org): Account,
    Path(id): Path<i64>,
    body: Bytes,
) -> Answer {
    let request: UpdateTemplate = parse(&body)?;
    let mut template = find_template(&room.store, &org, id).await?;
    if let Some(name) = request.name {
        template.name = name;
    }
    if let Some(submitters) = request.submitters {
        template.roles = submitters;
    }
    if let Some(fields) = request.fields {
        template.fields = fields.into_iter().map(stored_field).collect();
    }
    let known = |uuid: &str| template.roles.iter().any(|role| role.uuid == uuid);
    if let Some(field) = template
        .fields
        .iter()
        .find(|field| !known(&field.submitter_uuid))
    {
        return Err(Failure::Invalid(format!(
            "field {} has no role",
            field.name
        )));
    }
    let mut tx = room.store.begin().await?;
    rooms::update_template(&mut tx, &template).await?;
    tx.commit().await?;
    Ok(Json(
        json!({ "id": template.id, "updated_at": room.clock.now() }),
    ))
}

fn stored_field(field: StoredField) -> RoomField {
    RoomField {
        uuid: field.uuid.unwrap_or_else(new_slug),
        submitter_uuid: field.submitter_uuid,
        name: field.name,
        field_type: field.field_type,
        required: field.required,
        readonly: field.readonly,
        default_value: text(field.default_value),
        options: field
            .options
            .into_iter()
            .map(|option| match option {
                StoredOption::Text(value) | StoredOption::Object { value } => value,
            })
            .collect(),
        areas: field
            .areas
            .into_iter()
            .map(|area| Area {
                page: area.page + 1,
                x: area.x,
                y: area.y,
                w: area.w,
                h: area.h,
            })
            .collect(),
    }
}

pub(super) async fn archive_template(
    State(room): State<Room>,
    Account(org): Account,
    Path(id): Path<i64>,
) -> Answer {
    let mut template = find_template(&room.store, &org, id).await?;
    template.archived_at.get_or_insert(room.clock.now());
    let mut tx = room.store.begin().await?;
    rooms::update_template(&mut tx, &template).await?;
    tx.commit().await?;
    Ok(Json(
        json!({ "id": template.id, "archived_at": template.archived_at }),
    ))
}

#[derive(Deserialize)]
struct CloneTemplate {
    name: Option<String>,
    external_id: Option<String>,
}

pub(super) async fn clone_template(
    State(room): State<Room>,
    Account(org): Account,
    Path(id): Path<i64>,
    body: Bytes,
) -> Answer {
    let request: CloneTemplate = parse(&body)?;
    let source = find_template(&room.store, &org, id).await?;
    let clone = RoomTemplate {
        id: new_id(),
        name: request.name.unwrap_or_else(|| source.name.clone()),
        external_id: request.external_id,
        created_at: room.clock.now(),
        archived_at: None,
        ..source
    };
    let mut tx = room.store.begin().await?;
    let id = rooms::upsert_template(&mut tx, &clone).await?;
    tx.commit().await?;
    Ok(Json(json::template(&RoomTemplate { id, ..clone })))
}
