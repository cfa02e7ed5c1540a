//! Templates as partners see them.

use axum::extract::{Path, State};
use axum::response::Response;
use serde_json::{Value, json};

use crate::app::App;
use crate::http::caller::{EnvelopesWrite, Partner};
use crate::http::error::HttpError;
use crate::http::extract::{Form, ValidJson, valid};
use crate::http::reply;
use crate::service::templates::{self, AddFields, CreateTemplate};

pub async fn create(
    State(app): State<App>,
    partner: Partner<EnvelopesWrite>,
    mut form: Form,
) -> Result<Response, HttpError> {
    let file = form.file()?;
    let name = form
        .texts
        .remove("name")
        .filter(|name| !name.trim().is_empty())
        .ok_or_else(|| HttpError::bad_request("name is required"))?;
    let fields = match form
        .texts
        .get("fields_json")
        .filter(|text| !text.trim().is_empty())
    {
        None => None,
        Some(text) => {
            let fields: Value = serde_json::from_str(text).map_err(|error| {
                HttpError::bad_request(format!("fields_json is not valid JSON: {error}"))
            })?;
            if !fields.is_array() {
                return Err(HttpError::bad_request("fields_json must be an array"));
            }
            if fields.as_array().is_some_and(Vec::is_empty) {
                Some(Vec::new())
            } else {
                Some(valid::<AddFields>(json!({ "fields": fields }))?.fields)
            }
        }
    };
    let request = CreateTemplate {
        name,
        external_id: form.texts.remove("external_id").filter(|id| !id.is_empty()),
        file,
        fields,
    };
    let template = templates::create(&app, &partner.caller, request).await?;
    let number = template
        .provider_template
        .as_deref()
        .and_then(|id| id.parse::<i64>().ok());
    Ok(reply::ok(json!({
        "template_id": template.id,
        "provider_template_id": number,
        "name": template.name,
        "fields_added": template.fields.len(),
        "fields": template.fields,
    })))
}

pub async fn add_fields(
    State(app): State<App>,
    partner: Partner<EnvelopesWrite>,
    Path(id): Path<String>,
    ValidJson(request): ValidJson<AddFields>,
) -> Result<Response, HttpError> {
    let (template, added) = templates::add_fields(&app, &partner.caller, &id, request).await?;
    Ok(reply::ok(json!({
        "template_id": template.id,
        "fields_added": added.len(),
        "fields": added,
    })))
}
