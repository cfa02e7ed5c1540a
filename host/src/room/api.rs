//! The subset of DocuSeal's HTTP API that the signing plugin uses.

use axum::Json;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, FromRequestParts, Path, Query, State};
use axum::http::{StatusCode, header, request::Parts};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Room, json, new_id, new_slug};
use crate::domain::envelope::StoredFile;
use crate::domain::field::Area;
use crate::domain::id::OrgId;
use crate::files::{Area as FileArea, FilesError};
use crate::store::room::{
    self as rooms, RoomField, RoomRole, RoomSubmission, RoomSubmitter, RoomTemplate,
};
use crate::store::{Store, StoreError};

/// 50 MiB of document in base64, and its fields.
const BODY_LIMIT: usize = 72 * 1024 * 1024;

/// The room's API. Reached in-process only; see [`super::HOST`].
pub fn router(room: Room) -> Router {
    Router::new()
        .route("/templates/pdf", post(create_template))
        .route(
            "/templates/{id}",
            get(read_template)
                .put(update_template)
                .delete(archive_template),
        )
        .route("/templates/{id}/clone", post(clone_template))
        .route("/submissions", post(create_submission))
        .route(
            "/submissions/{id}",
            get(read_submission).delete(archive_submission),
        )
        .route("/submissions/{id}/documents", get(submission_documents))
        .route("/submitters", get(find_submitters))
        .route("/submitters/{id}", get(read_submitter))
        .route("/documents/{org}/{id}/{credential}", get(document))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .with_state(room)
}

/// The organization whose token came with the request.
struct Account(OrgId);

impl FromRequestParts<Room> for Account {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, room: &Room) -> Result<Self, Failure> {
        parts
            .headers
            .get("x-auth-token")
            .and_then(|token| token.to_str().ok())
            .and_then(|token| room.organization(token))
            .map(Self)
            .ok_or(Failure::NotAuthenticated)
    }
}

/// An answer that is not 200, in DocuSeal's shapes.
enum Failure {
    NotAuthenticated,
    NotFound,
    Invalid(String),
    Internal(String),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Internal(error.to_string())
    }
}

impl From<FilesError> for Failure {
    fn from(error: FilesError) -> Self {
        Self::Internal(error.to_string())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let (status, body) = match self {
            Self::NotAuthenticated => (
                StatusCode::UNAUTHORIZED,
                json!({"error": "Not authenticated"}),
            ),
            Self::NotFound => (StatusCode::NOT_FOUND, json!({"status": 404})),
            Self::Invalid(why) => (StatusCode::UNPROCESSABLE_ENTITY, json!({"error": why})),
            Self::Internal(why) => {
                tracing::error!(error = why, "the signing room failed");
                (StatusCode::INTERNAL_SERVER_ERROR, json!({"status": 500}))
            }
        };
        (status, Json(body)).into_response()
    }
}

type Answer = Result<Json<Value>, Failure>;

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
    default_value: Option<String>,
    #[serde(default)]
    options: Vec<String>,
    areas: Vec<Area>,
}

fn required_by_default() -> bool {
    true
}

async fn create_template(State(room): State<Room>, Account(org): Account, body: Bytes) -> Answer {
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
            default_value: field.default_value,
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

async fn read_template(
    State(room): State<Room>,
    Account(org): Account,
    Path(id): Path<i64>,
) -> Answer {
    Ok(Json(json::template(
        &find_template(&room.store, &org, id).await?,
    )))
}

async fn find_template(store: &Store, org: &OrgId, id: i64) -> Result<RoomTemplate, Failure> {
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
    default_value: Option<String>,
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

async fn update_template(
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
        default_value: field.default_value,
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

async fn archive_template(
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

async fn clone_template(
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
    default_value: String,
}

async fn create_submission(State(room): State<Room>, Account(org): Account, body: Bytes) -> Answer {
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
fn fields_by_role_name(template: &RoomTemplate) -> Vec<RoomField> {
    let name = |uuid: &str| {
        let role = template.roles.iter().find(|role| role.uuid == uuid);
        role.map(|role| role.name.clone()).unwrap_or_default()
    };
    template
        .fields
        .iter()
        .cloned()
        .map(|field| RoomField {
            submitter_uuid: name(&field.submitter_uuid),
            ..field
        })
        .collect()
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
    let own = |name: &str| {
        submission
            .fields
            .iter()
            .any(|field| field.name == name && field.submitter_uuid == role.name)
    };
    if let Some(prefill) = requested.fields.iter().find(|prefill| !own(&prefill.name)) {
        return Err(Failure::Invalid(format!("Unknown field: {}", prefill.name)));
    }
    let defaults = submission
        .fields
        .iter()
        .filter(|field| field.submitter_uuid == role.name)
        .filter_map(|field| Some((field.name.clone(), field.default_value.clone()?)));
    let prefilled = requested
        .fields
        .into_iter()
        .map(|prefill| (prefill.name, prefill.default_value));
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
        completed_at: None,
        declined_at: None,
        decline_reason: None,
        ip: None,
        user_agent: None,
    })
}

async fn read_submission(
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

async fn archive_submission(
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

async fn submission_documents(
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
struct FindSubmitters {
    external_id: String,
    #[serde(default = "ten")]
    limit: i64,
}

fn ten() -> i64 {
    10
}

async fn find_submitters(
    State(room): State<Room>,
    Account(org): Account,
    Query(query): Query<FindSubmitters>,
) -> Answer {
    let mut connection = room.store.read().await?;
    let limit = query.limit.clamp(1, 100);
    let found =
        rooms::submitters_by_external_id(&mut connection, &org, &query.external_id, limit).await?;
    let data: Vec<Value> = found
        .iter()
        .map(|submitter| json::submitter(submitter, &[]))
        .collect();
    Ok(Json(
        json!({ "pagination": { "count": data.len() }, "data": data }),
    ))
}

async fn read_submitter(
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

async fn document(
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

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Failure> {
    serde_json::from_slice(body)
        .map_err(|error| Failure::Invalid(format!("JSON parse error: {error}")))
}
