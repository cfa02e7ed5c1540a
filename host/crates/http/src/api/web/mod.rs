//! The web-app surface, authenticated by bearer token.

pub mod administration;
pub mod bulk;
pub mod customers;
pub mod destructions;
pub mod fact_maps;
pub mod funding_packs;
pub mod holds;
pub mod insight;
pub mod packages;
pub mod persons;
pub mod search;
pub mod templates;
pub mod users;

use axum::extract::State;
use axum::http::Method;
use schemars::JsonSchema;
use serde::Serialize;

use crate::api::components::ComponentOfficer;
use crate::api::partner::answers::{EnvelopeView, OwnSigningLinks};
use crate::api::partner::funding::FundingQuery;
use crate::api::partner::vault::send_bundle;
use crate::error::HttpError;
use crate::middleware::act::ActOn;
use crate::middleware::caller::{WebCaller, may};
use crate::middleware::extract::{ResourceId, ValidJson, ValidQuery};
use crate::middleware::once::IdempotencyKeyHeader;
use crate::reply::{Created, DataReply, FileReply, Found, Zip};
use holdfast_domain::clock::Timestamp;
use holdfast_evidence::VerificationReport;
use holdfast_platform::components::shadow::{self, ReplayedDecision};
use holdfast_service::App;
use holdfast_service::builder::{self, IssuedSession, StartSession};
use holdfast_service::envelopes;
use holdfast_service::envelopes::consent::{self, EnvelopeConsent, VaultConsent};
use holdfast_service::envelopes::sending::{self, SendEnvelope};
use holdfast_service::retention::{self, RetentionView};
use holdfast_service::vault::{custody, vault_in};

/// Envelope as its own organization sees it.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "envelope_name": "Retail instalment contract 2041",
    "status": "completed", "customer_id": "cust_01jdk7m3e8f4x9s2w5v6b0c1db", "external_id": "deal-2041",
    "template_id": "tmpl_01jdk7m3e8f4x9s2w5v6b0c1da", "envelope_kind": "esign",
    "created_at": "2026-11-21T09:30:00.000Z", "updated_at": "2026-11-21T09:41:07.250Z",
    "vaulted": false, "compliant": false, "certificate_issued": false, "compliance_score": null,
    "metadata": { "document_source": "template" },
    "vault_error": {
        "step": "fetch", "message": "provider.signing cloud: the provider did not answer",
        "failures": 2, "failed_at": "2026-11-21T09:41:13.002Z",
    },
}]))]
pub struct OwnEnvelope {
    #[serde(flatten)]
    envelope: EnvelopeView,
    /// Reason why a signed envelope is not in the vault yet. Vault-in is retried until it succeeds.
    vault_error: Option<VaultError>,
    /// How long the record is kept. Absent if no retention schedule matches it.
    #[serde(skip_serializing_if = "Option::is_none")]
    retention: Option<RetentionView>,
}

/// Failed step of a vault-in.
#[derive(Serialize, JsonSchema)]
pub struct VaultError {
    /// `confirm`, `fetch`, `time`, `seal`, `copy`, `certify`, `record` or `settle`.
    step: String,
    message: String,
    /// Consecutive failures.
    failures: i64,
    failed_at: Timestamp,
}

pub async fn envelope(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::ReadEnvelopes>,
    ResourceId(id): ResourceId,
) -> Result<Found<OwnEnvelope>, HttpError> {
    let envelope = envelopes::get_with_destroyed(&app, &caller, &id).await?;
    // Partners do not see it: the message can name the organization's provider instances.
    let failure = vault_in::failure(&app, &envelope).await?;
    let retention = retention::of(&app, &envelope).await?;
    Ok(DataReply::new(&OwnEnvelope {
        envelope: EnvelopeView::from(&envelope),
        vault_error: failure.map(|failure| VaultError {
            step: failure.step,
            message: failure.message,
            failures: failure.count,
            failed_at: failure.at,
        }),
        retention,
    }))
}

/// Starts a session of the field builder.
pub async fn builder_session(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::Send>,
    once: IdempotencyKeyHeader,
    ValidJson(request): ValidJson<StartSession>,
) -> Result<Created<IssuedSession>, HttpError> {
    once.run(&app, &caller, |app, caller, _| async move {
        builder::start(&app, &app.access, &app.pages, &caller, &request).await
    })
    .await
}

/// Sends an envelope that was created unsent.
pub async fn send(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::Send>,
    ResourceId(id): ResourceId,
    ValidQuery(query): ValidQuery<FundingQuery>,
    once: IdempotencyKeyHeader,
    ValidJson(mut request): ValidJson<SendEnvelope>,
) -> Result<Found<EnvelopeView>, HttpError> {
    request.funding = query.funding;
    once.answer(&app, &caller, |app, caller, answer| async move {
        sending::send(
            &app,
            &app.vault.locks,
            &app.pages,
            &caller,
            &id,
            request,
            &answer,
        )
        .await
    })
    .await
}

/// Returns a fresh link for each signer.
pub async fn signing_links(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::Send>,
    ResourceId(id): ResourceId,
) -> Result<Found<OwnSigningLinks>, HttpError> {
    let links = envelopes::signing_links(&app, &caller, &id).await?;
    Ok(DataReply::new(&OwnSigningLinks::from(links)))
}

/// Sets or withdraws consent to unattended vaulting of an envelope.
pub async fn vault_consent(
    act: ActOn<WebCaller<may::Send>, VaultConsent>,
) -> Result<Found<EnvelopeConsent>, HttpError> {
    act.run(consent::of_envelope).await
}

/// Returns the evidence bundle of a released envelope as one zip.
pub async fn bundle(
    State(app): State<App>,
    officer: ComponentOfficer,
    method: Method,
    ResourceId(id): ResourceId,
) -> Result<FileReply<Zip>, HttpError> {
    send_bundle(&app, &officer.caller, &method, &id).await
}

/// Verifies the evidence of an envelope.
pub async fn verify(
    State(app): State<App>,
    officer: ComponentOfficer,
    ResourceId(id): ResourceId,
) -> Result<Found<VerificationReport>, HttpError> {
    let (vault, caller, trusted) = (&app.vault, &officer.caller, custody::own_trust(&app)?);
    let report = custody::verify(&app, &app.management, vault, caller, &id, trusted).await?;
    Ok(DataReply::new(&report))
}

/// Repeats all decisions about an envelope with the components that made them.
pub async fn replay(
    State(app): State<App>,
    officer: ComponentOfficer,
    ResourceId(id): ResourceId,
) -> Result<Found<Vec<ReplayedDecision>>, HttpError> {
    let envelope = envelopes::get(&app, &officer.caller, &id).await?;
    let org = &officer.caller.org;
    let replayed = shadow::replay_envelope(&app, &app.management, org, &envelope.id).await?;
    Ok(DataReply::new(&replayed))
}
