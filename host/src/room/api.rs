//! The subset of DocuSeal's HTTP API that the signing plugin uses: its routes, its
//! credential and its errors. `templates.rs` and `submissions.rs` do the work.

use axum::extract::{DefaultBodyLimit, FromRequestParts};
use axum::http::{StatusCode, request::Parts};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Room;
use super::submissions::{
    archive_submission, create_submission, document, find_submitters, read_submission,
    read_submitter, submission_documents,
};
use super::templates::{
    archive_template, clone_template, create_template, find_templates, read_template,
    update_template,
};
use crate::domain::id::OrgId;
use crate::files::FilesError;
use crate::store::StoreError;

/// 50 MiB of document in base64, and its fields.
const BODY_LIMIT: usize = 72 * 1024 * 1024;

/// The room's API. Reached in-process only; see [`super::HOST`].
pub fn router(room: Room) -> Router {
    Router::new()
        .route("/templates", get(find_templates))
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
pub(super) struct Account(pub OrgId);

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
pub(super) enum Failure {
    NotAuthenticated,
    NotFound,
    Invalid(String),
    /// The disk is full.
    Full,
    Internal(String),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        if error.is_full() {
            return Self::Full;
        }
        Self::Internal(error.to_string())
    }
}

impl From<FilesError> for Failure {
    fn from(error: FilesError) -> Self {
        if error.is_full() {
            return Self::Full;
        }
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
            Self::Full => (StatusCode::INSUFFICIENT_STORAGE, json!({"status": 507})),
            Self::Internal(why) => {
                tracing::error!(error = why, "the signing room failed");
                (StatusCode::INTERNAL_SERVER_ERROR, json!({"status": 500}))
            }
        };
        (status, Json(body)).into_response()
    }
}

pub(super) type Answer = Result<Json<Value>, Failure>;

/// The page of a list with these rows.
pub(super) fn page(data: Vec<Value>) -> Json<Value> {
    Json(json!({ "pagination": { "count": data.len() }, "data": data }))
}

/// A value as text: the room keeps texts only.
pub(super) fn text(value: Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    }
}

pub(super) fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Failure> {
    serde_json::from_slice(body)
        .map_err(|error| Failure::Invalid(format!("JSON parse error: {error}")))
}
