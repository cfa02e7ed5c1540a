//! The vault as partners see it.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::envelopes::view;
use crate::app::App;
use crate::http::caller::{ComplianceRead, Partner, VaultRead, VaultRelease, VaultWrite};
use crate::http::error::HttpError;
use crate::http::extract::ValidJson;
use crate::http::reply;
use crate::service::downloads::{self, IssuedLink, LIFE};
use crate::service::vault_in::{self, Entrance};
use crate::service::{
    compliance as compliance_service, custody as custody_service, vault_out as release,
};

pub async fn vault_in_signed(
    State(app): State<App>,
    partner: Partner<VaultWrite>,
    Path(id): Path<String>,
) -> Result<Response, HttpError> {
    let envelope = vault_in::vault_in(&app, &partner.caller, &id, Entrance::Signed).await?;
    Ok(reply::ok(view(&envelope)))
}

pub async fn vault_in_upload(
    State(app): State<App>,
    partner: Partner<VaultWrite>,
    Path(id): Path<String>,
) -> Result<Response, HttpError> {
    let envelope = vault_in::vault_in(&app, &partner.caller, &id, Entrance::Upload).await?;
    Ok(reply::ok(view(&envelope)))
}

pub async fn signed_url(
    State(app): State<App>,
    partner: Partner<VaultRead>,
    Path(id): Path<String>,
) -> Result<Response, HttpError> {
    Ok(link(
        downloads::authoritative(&app, &partner.caller, &id).await?,
    ))
}

pub async fn copy_signed_url(
    State(app): State<App>,
    partner: Partner<VaultRead>,
    Path(id): Path<String>,
) -> Result<Response, HttpError> {
    Ok(link(downloads::copy(&app, &partner.caller, &id).await?))
}

fn link(link: IssuedLink) -> Response {
    reply::ok(json!({
        "signed_url": link.url,
        "filename": link.filename,
        "expires_in": LIFE.as_secs(),
        "expires_at": link.expires_at,
    }))
}

pub async fn certificate(
    State(app): State<App>,
    partner: Partner<ComplianceRead>,
    Path(id): Path<String>,
) -> Result<Response, HttpError> {
    let bytes = compliance_service::certificate(&app, &partner.caller, &id).await?;
    let certificate: Value = serde_json::from_slice(&bytes)
        .map_err(|error| HttpError::internal(format!("stored certificate: {error}")))?;
    Ok(reply::ok(certificate))
}

pub async fn compliance(
    State(app): State<App>,
    partner: Partner<ComplianceRead>,
    Path(id): Path<String>,
) -> Result<Response, HttpError> {
    let (envelope, compliance) = compliance_service::evaluate(&app, &partner.caller, &id).await?;
    Ok(reply::ok(json!({
        "envelope_id": envelope.id,
        "envelope_name": envelope.name,
        "customer_id": envelope.customer,
        "external_id": envelope.external_id,
        "envelope_status": envelope.status,
        "compliance": compliance,
    })))
}

pub async fn custody(
    State(app): State<App>,
    partner: Partner<ComplianceRead>,
    Path(id): Path<String>,
) -> Result<Response, HttpError> {
    Ok(reply::ok(
        custody_service::ledger(&app, &partner.caller, &id).await?,
    ))
}

pub async fn vault_out(
    State(app): State<App>,
    partner: Partner<VaultRelease>,
    Path(id): Path<String>,
    ValidJson(form): ValidJson<release::ReleaseForm>,
) -> Result<Response, HttpError> {
    let release = release::vault_out(&app, &partner.caller, &id, form).await?;
    Ok(reply::ok(json!({
        "authoritative_signed_url": release.authoritative.url,
        "authoritative_filename": release.authoritative.filename,
        "certified_vaulted_copy_signed_url": release.copy.url,
        "certified_vaulted_copy_filename": release.copy.filename,
        "compliance_certificate_signed_url": release.certificate.url,
        "compliance_certificate_filename": release.certificate.filename,
        "vault_custody_record_signed_url": release.custody_record.url,
        "vault_custody_record_filename": release.custody_record.filename,
    }))
    .into_response())
}
