//! Answers in the shape of the contract: `{data}` and `{data, meta}`.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::json;

/// 200 with `{ data }`.
pub fn ok(data: impl Serialize) -> Response {
    Json(json!({ "data": data })).into_response()
}

/// 201 with `{ data }`.
pub fn created(data: impl Serialize) -> Response {
    (StatusCode::CREATED, ok(data)).into_response()
}

/// 200 with `{ data, meta }`.
pub fn page(data: impl Serialize, page: i64, limit: i64, total: i64) -> Response {
    Json(json!({ "data": data, "meta": { "page": page, "limit": limit, "total": total } }))
        .into_response()
}
