//! Partner API: the vault.

use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::response::IntoResponse as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::answers::EnvelopeView;
use crate::error::HttpError;
use crate::middleware::caller::{Authorized, PartnerCaller, VaultRead, VaultRelease};
use crate::middleware::extract::{ResourceId, ValidJson, ValidQuery};
use crate::middleware::once::IdempotencyKeyHeader;
use crate::reply::{DataReply, FileReply, Found, Pdf, Zip};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::EnvelopeStatus;
use holdfast_domain::id::{CustomerId, EnvelopeId};
use holdfast_domain::signature::SealState;
use holdfast_evidence::formats::CustodyLedger;
use holdfast_platform::Caller;
use holdfast_platform::lookup;
use holdfast_service::App;
use holdfast_service::envelopes::compliance::{self, ComplianceView, RulesAsOf};
use holdfast_service::vault::downloads::{self, IssuedLink, LIFE};
use holdfast_service::vault::vault_in::{self, VaultInEndpoint};
use holdfast_service::vault::vault_out::{self, ReleaseForm, ReleaseLinks};
use holdfast_service::vault::{completion, custody, custody_record, evidence_copy, long_term};

pub async fn vault_in_signed<C: Authorized>(
    State(app): State<App>,
    partner: C,
    ResourceId(id): ResourceId,
    once: IdempotencyKeyHeader,
) -> Result<Found<EnvelopeView>, HttpError> {
    vault_in(app, partner, id, once, VaultInEndpoint::Signed).await
}

pub async fn vault_in_upload<C: Authorized>(
    State(app): State<App>,
    partner: C,
    ResourceId(id): ResourceId,
    once: IdempotencyKeyHeader,
) -> Result<Found<EnvelopeView>, HttpError> {
    vault_in(app, partner, id, once, VaultInEndpoint::Upload).await
}

/// Vaults an envelope. The pipeline is repeatable and always gives the same answer, so the
/// idempotent answer needs no commit together with the change.
async fn vault_in<C: Authorized>(
    app: App,
    partner: C,
    id: String,
    once: IdempotencyKeyHeader,
    entrance: VaultInEndpoint,
) -> Result<Found<EnvelopeView>, HttpError> {
    once.answer(&app, partner.caller(), move |app, caller, _| async move {
        vault_in::vault_in(&app, &app.vault, &caller, &id, entrance).await
    })
    .await
}

/// Link to a stored file.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "signed_url": "https://holdfast.example/api/v2/downloads/0f3Jq…", "filename": "authoritative.pdf",
    "expires_in": 3600, "expires_at": "2026-11-21T10:30:00.000Z",
}]))]
pub struct LinkView {
    signed_url: String,
    filename: String,
    /// Lifetime in seconds.
    expires_in: u64,
    expires_at: Timestamp,
}

impl From<IssuedLink> for LinkView {
    fn from(link: IssuedLink) -> Self {
        Self {
            signed_url: link.url,
            filename: link.filename,
            expires_in: LIFE.as_secs(),
            expires_at: link.expires_at,
        }
    }
}

pub async fn signed_url(
    State(app): State<App>,
    partner: PartnerCaller<VaultRead>,
    ResourceId(id): ResourceId,
) -> Result<Found<LinkView>, HttpError> {
    let link = downloads::authoritative(&app, &partner.caller, &id).await?;
    Ok(DataReply::new(&link.into()))
}

pub async fn copy_signed_url<C: Authorized>(
    State(app): State<App>,
    partner: C,
    ResourceId(id): ResourceId,
) -> Result<Found<LinkView>, HttpError> {
    let link = downloads::copy(&app, partner.caller(), &id).await?;
    Ok(DataReply::new(&link.into()))
}

/// The stored certificate, unchanged.
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("examples" = [{
    "certificate_type": "ucc_9105_electronic_chattel_paper", "certificate_version": "1.0",
    "issued_at": "2026-11-21T09:41:08.911Z",
    "document_integrity": { "hash_algorithm": "SHA-256", "document_hash": "9f86d081884c7d65…" },
}]))]
pub struct CertificateView(Map<String, Value>);

pub async fn certificate<C: Authorized>(
    State(app): State<App>,
    partner: C,
    ResourceId(id): ResourceId,
) -> Result<Found<CertificateView>, HttpError> {
    let bytes = compliance::certificate(&app, partner.caller(), &id).await?;
    // Parsed for the answer's frame only. The stored bytes are what evidence is checked by.
    let certificate = serde_json::from_slice(&bytes)
        .map_err(|error| HttpError::internal(format!("stored certificate: {error}")))?;
    Ok(DataReply::new(&CertificateView(certificate)))
}

/// Evaluation of the current record.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "envelope_name": "Retail instalment contract 2041",
    "customer_id": "cust_01jdk7m3e8f4x9s2w5v6b0c1db", "external_id": "deal-2041",
    "envelope_status": "vaulted",
    "compliance": {
        "compliant": true, "score": 100, "evaluated_at": "2026-11-21T09:45:00.000Z",
        "missing_requirements": [], "checks": [],
        "rules_component": { "name": "holdfast-compliance", "version": "0.1.0", "sha256": "4be1…" },
    },
}]))]
pub struct EnvelopeCompliance {
    envelope_id: EnvelopeId,
    envelope_name: String,
    customer_id: CustomerId,
    external_id: Option<String>,
    envelope_status: EnvelopeStatus,
    compliance: ComplianceView,
    /// What the seal of the authoritative copy proves. Present for a record in the vault or released from it, if it has a
    /// seal.
    #[serde(skip_serializing_if = "Option::is_none")]
    seal: Option<SealState>,
}

/// Selection of the rules that evaluate a record.
#[derive(Deserialize, JsonSchema)]
pub struct ComplianceQuery {
    /// Applies to a released record: `now` evaluates it with today's rules. When absent, the rules
    /// in force at its release are used.
    as_of: Option<RulesAsOf>,
}

pub async fn compliance<C: Authorized>(
    State(app): State<App>,
    partner: C,
    ResourceId(id): ResourceId,
    ValidQuery(query): ValidQuery<ComplianceQuery>,
) -> Result<Found<EnvelopeCompliance>, HttpError> {
    let caller = partner.caller();
    let (envelope, compliance) =
        compliance::evaluate(&app, &app.management, caller, &id, query.as_of).await?;
    let seal = long_term::state(&app, &envelope).await?;
    Ok(DataReply::new(&EnvelopeCompliance {
        envelope_id: envelope.id,
        envelope_name: envelope.name,
        customer_id: envelope.customer,
        external_id: envelope.external_id,
        envelope_status: envelope.status,
        compliance,
        seal,
    }))
}

pub async fn custody<C: Authorized>(
    State(app): State<App>,
    partner: C,
    ResourceId(id): ResourceId,
) -> Result<Found<CustodyLedger>, HttpError> {
    let ledger = custody::ledger(&app, &app.vault, partner.caller(), &id).await?;
    Ok(DataReply::new(&ledger))
}

/// Links to the four files of a release, each valid for an hour. That to the authoritative copy, or to its paper
/// original, works for one complete download; a repeated release gives another one and ends it.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "authoritative_signed_url": "https://holdfast.example/api/v2/downloads/0f3Jq…",
    "authoritative_filename": "authoritative.pdf",
    "certified_vaulted_copy_signed_url": "https://holdfast.example/api/v2/downloads/0fW81…",
    "certified_vaulted_copy_filename": "certified-vaulted-copy.pdf",
    "compliance_certificate_signed_url": "https://holdfast.example/api/v2/downloads/0f9Ld…",
    "compliance_certificate_filename": "ucc-compliance-certificate.json",
    "vault_custody_record_signed_url": "https://holdfast.example/api/v2/downloads/0fKK2…",
    "vault_custody_record_filename": "vault-custody-record.pdf",
}]))]
pub struct ReleaseView {
    authoritative_signed_url: String,
    authoritative_filename: String,
    certified_vaulted_copy_signed_url: String,
    certified_vaulted_copy_filename: String,
    compliance_certificate_signed_url: String,
    compliance_certificate_filename: String,
    vault_custody_record_signed_url: String,
    vault_custody_record_filename: String,
}

impl From<&ReleaseLinks> for ReleaseView {
    fn from(release: &ReleaseLinks) -> Self {
        Self {
            authoritative_signed_url: release.authoritative.url.clone(),
            authoritative_filename: release.authoritative.filename.clone(),
            certified_vaulted_copy_signed_url: release.copy.url.clone(),
            certified_vaulted_copy_filename: release.copy.filename.clone(),
            compliance_certificate_signed_url: release.certificate.url.clone(),
            compliance_certificate_filename: release.certificate.filename.clone(),
            vault_custody_record_signed_url: release.custody_record.url.clone(),
            vault_custody_record_filename: release.custody_record.filename.clone(),
        }
    }
}

/// Releases an envelope. A repeat for the same recipient and purpose returns fresh links to the same archive, so
/// the idempotent answer needs no commit together with the change; another one is a 409 with
/// `code: released_to_another`.
pub async fn vault_out(
    State(app): State<App>,
    partner: PartnerCaller<VaultRelease>,
    ResourceId(id): ResourceId,
    once: IdempotencyKeyHeader,
    ValidJson(form): ValidJson<ReleaseForm>,
) -> Result<Found<ReleaseView>, HttpError> {
    once.answer(&app, &partner.caller, |app, caller, _| async move {
        vault_out::vault_out(&app, &caller, &id, form).await
    })
    .await
}

/// Returns the certificate of completion: a PDF for people that shows who signed when and how, with
/// a code that leads to a public verification page. 409 before the envelope is vaulted.
pub async fn completion_certificate<C: Authorized>(
    State(app): State<App>,
    partner: C,
    ResourceId(id): ResourceId,
) -> Result<FileReply<Pdf>, HttpError> {
    let envelope = lookup::envelope(&app, partner.caller(), &id).await?;
    let pdf = completion::certificate(&app, &envelope, None).await?;
    FileReply::of_bytes(&app, &format!("{id}-completion.pdf"), &pdf).await
}

/// Returns the custody record: a PDF for people. After the release it is the final one, with vaulting and
/// release in its history. 409 before the envelope is vaulted.
pub async fn custody_record<C: Authorized>(
    State(app): State<App>,
    partner: C,
    ResourceId(id): ResourceId,
) -> Result<FileReply<Pdf>, HttpError> {
    let pdf = custody_record::custody_record(&app, &app.management, partner.caller(), &id).await?;
    FileReply::of_bytes(&app, &format!("{id}-custody-record.pdf"), &pdf).await
}

/// Returns the evidence of a released envelope as one zip: an evidence copy, for verification. Every export is
/// an entry of the ledger. After a conversion to paper its PDF is called `evidence-copy.pdf`.
pub async fn bundle<C: Authorized>(
    State(app): State<App>,
    partner: C,
    method: Method,
    ResourceId(id): ResourceId,
) -> Result<FileReply<Zip>, HttpError> {
    send_bundle(&app, partner.caller(), &method, &id).await
}

/// Sends an evidence bundle. A HEAD request takes nothing out, so it is no export.
pub async fn send_bundle(
    app: &App,
    caller: &Caller,
    method: &Method,
    id: &str,
) -> Result<FileReply<Zip>, HttpError> {
    // axum answers HEAD with the handler of GET, which would write a ledger entry of an export.
    if method == Method::HEAD {
        custody::exportable(app, caller, id).await?;
        return Ok(FileReply::new(StatusCode::OK.into_response()));
    }
    let zip = custody::bundle(app, &app.vault, caller, id).await?;
    Ok(FileReply::named(&evidence_copy::file_name(id), zip))
}
