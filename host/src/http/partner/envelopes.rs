//! Envelopes as partners see them.

use axum::extract::{Path, State};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::domain::envelope::{Envelope, EnvelopeStatus};
use crate::domain::id::CustomerId;
use crate::http::caller::{EnvelopesRead, EnvelopesWrite, Partner};
use crate::http::error::HttpError;
use crate::http::extract::{Form, ValidJson, ValidQuery, page_and_limit};
use crate::http::reply;
use crate::service::{envelopes, uploads};
use crate::store::envelopes::Filter;

/// What a partner may see of `metadata`.
const PUBLIC_METADATA: [&str; 3] = ["document_source", "source_template_id", "bulk_send"];

#[derive(Deserialize)]
pub struct ListQuery {
    page: Option<i64>,
    limit: Option<i64>,
    customer_id: Option<String>,
    status: Option<String>,
}

pub async fn list(
    State(app): State<App>,
    partner: Partner<EnvelopesRead>,
    ValidQuery(query): ValidQuery<ListQuery>,
) -> Result<Response, HttpError> {
    let (page, limit) = page_and_limit(query.page, query.limit, 20, 100)?;
    let status = match query.status.as_deref() {
        None => None,
        Some(text) => Some(
            EnvelopeStatus::parse(text)
                .ok_or_else(|| HttpError::bad_request(format!("Unknown status: {text}")))?,
        ),
    };
    let customer = match query.customer_id.as_deref().map(CustomerId::parse) {
        None => None,
        Some(Some(customer)) => Some(customer),
        // A malformed id is one that nobody has.
        Some(None) => return Ok(reply::page(Vec::<Value>::new(), page, limit, 0)),
    };
    let filter = Filter { status, customer };
    let (found, total) = envelopes::list(&app, &partner.caller, &filter, page, limit).await?;
    let items: Vec<Value> = found.iter().map(list_item).collect();
    Ok(reply::page(items, page, limit, total))
}

pub async fn read(
    State(app): State<App>,
    partner: Partner<EnvelopesRead>,
    Path(id): Path<String>,
) -> Result<Response, HttpError> {
    Ok(reply::ok(view(
        &envelopes::get(&app, &partner.caller, &id).await?,
    )))
}

pub async fn status(
    State(app): State<App>,
    partner: Partner<EnvelopesRead>,
    Path(id): Path<String>,
) -> Result<Response, HttpError> {
    let envelope = envelopes::get(&app, &partner.caller, &id).await?;
    Ok(reply::ok(json!({
        "envelope_id": envelope.id,
        "status": envelope.status,
        "vaulted": envelope.vault.is_some(),
        "compliant": envelope.certificate.is_some(),
        "signed_at": envelope.signed_at,
        "updated_at": envelope.updated_at,
    })))
}

pub async fn create(
    State(app): State<App>,
    partner: Partner<EnvelopesWrite>,
    ValidJson(request): ValidJson<envelopes::CreateEnvelope>,
) -> Result<Response, HttpError> {
    let created = envelopes::create(&app, &partner.caller, request).await?;
    let mut view = view(&created.envelope);
    if let (Value::Object(members), Some(url)) = (&mut view, created.sign_url) {
        members.insert("sign_url".into(), url.into());
    }
    Ok(reply::created(view))
}

pub async fn upload(
    State(app): State<App>,
    partner: Partner<EnvelopesWrite>,
    Path(id): Path<String>,
    mut form: Form,
) -> Result<Response, HttpError> {
    let stored = uploads::upload(&app, &partner.caller, &id, form.file()?).await?;
    Ok(reply::created(json!({
        "path": stored.path,
        "hash": stored.file.sha256,
        "size": stored.file.size,
        "content_type": stored.file.content_type,
    })))
}

#[derive(Deserialize, JsonSchema)]
pub struct VoidRequest {
    #[schemars(length(max = 2000))]
    reason: Option<String>,
}

pub async fn void(
    State(app): State<App>,
    partner: Partner<EnvelopesWrite>,
    Path(id): Path<String>,
    ValidJson(request): ValidJson<VoidRequest>,
) -> Result<Response, HttpError> {
    Ok(reply::ok(view(
        &envelopes::void(&app, &partner.caller, &id, request.reason).await?,
    )))
}

pub async fn signing_links(
    State(app): State<App>,
    partner: Partner<EnvelopesRead>,
    Path(id): Path<String>,
) -> Result<Response, HttpError> {
    let links = envelopes::signing_links(&app, &partner.caller, &id).await?;
    let signers: Vec<Value> = links
        .into_iter()
        .map(|link| {
            json!({
                "name": link.signer.name,
                "email": link.signer.email,
                "slug": link.signer.provider_submitter,
                "embed_url": link.url,
                "status": link.signer.status,
            })
        })
        .collect();
    Ok(reply::ok(json!({ "signers": signers })))
}

/// An envelope as the partner surface shows it.
pub fn view(envelope: &Envelope) -> Value {
    let metadata: Map<String, Value> = PUBLIC_METADATA
        .iter()
        .filter_map(|key| Some(((*key).to_owned(), envelope.metadata.get(*key)?.clone())))
        .collect();
    json!({
        "envelope_id": envelope.id,
        "envelope_name": envelope.name,
        "status": envelope.status,
        "customer_id": envelope.customer,
        "external_id": envelope.external_id,
        "template_id": envelope.template,
        "envelope_kind": envelope.kind,
        "created_at": envelope.created_at,
        "updated_at": envelope.updated_at,
        "vaulted": envelope.vault.is_some(),
        "compliant": envelope.certificate.is_some(),
        "metadata": metadata,
    })
}

fn list_item(envelope: &Envelope) -> Value {
    json!({
        "envelope_id": envelope.id,
        "envelope_name": envelope.name,
        "status": envelope.status,
        "customer_id": envelope.customer,
        "external_id": envelope.external_id,
        "created_at": envelope.created_at,
        "updated_at": envelope.updated_at,
    })
}
