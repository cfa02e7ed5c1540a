//! Live compliance, and the stored certificate.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Caller, ServiceError, envelopes as envelope_service, facts, shadow};
use crate::app::App;
use crate::components::Identity;
use crate::domain::clock::Timestamp;
use crate::domain::envelope::Envelope;

/// A compliance result as the API shows it.
#[derive(Serialize, JsonSchema)]
pub struct ComplianceView {
    pub compliant: bool,
    pub score: u32,
    pub evaluated_at: Timestamp,
    pub missing_requirements: Vec<String>,
    pub checks: Vec<CheckView>,
    pub rules_component: IdentityView,
}

/// One of the eight checks.
#[derive(Serialize, JsonSchema)]
pub struct CheckView {
    pub requirement: String,
    pub ucc_reference: String,
    pub satisfied: bool,
    pub detail: String,
}

/// Which component decided.
#[derive(Serialize, JsonSchema)]
pub struct IdentityView {
    pub name: String,
    pub version: String,
    pub sha256: String,
}

impl From<Identity> for IdentityView {
    fn from(identity: Identity) -> Self {
        Self {
            name: identity.name,
            version: identity.version,
            sha256: identity.sha256,
        }
    }
}

/// Evaluates the record as it stands, in any status.
pub async fn evaluate(
    app: &App,
    caller: &Caller,
    id: &str,
) -> Result<(Envelope, ComplianceView), ServiceError> {
    let envelope = envelope_service::get(app, caller, id).await?;
    let mut connection = app.store.read().await?;
    let facts = facts::compliance_facts(&mut connection, &envelope).await?;
    drop(connection);
    let rules = app.components.compliance(Some(&caller.org));
    let component = rules.identity()?;
    let evaluation = rules.evaluate(&facts)?;
    let record = envelope.id.as_str();
    app.shadows.evaluated(&caller.org, record, &facts, || {
        shadow::evaluation_answer(&evaluation)
    });
    let view = ComplianceView {
        compliant: evaluation.compliant,
        score: evaluation.score,
        evaluated_at: app.clock.now(),
        missing_requirements: evaluation.missing_requirements,
        checks: evaluation
            .checks
            .into_iter()
            .map(|check| CheckView {
                requirement: check.requirement,
                ucc_reference: check.ucc_reference,
                satisfied: check.satisfied,
                detail: check.detail,
            })
            .collect(),
        rules_component: component.into(),
    };
    Ok((envelope, view))
}

/// The stored certificate, byte for byte.
pub async fn certificate(app: &App, caller: &Caller, id: &str) -> Result<Bytes, ServiceError> {
    let envelope = envelope_service::get(app, caller, id).await?;
    let file = envelope
        .certificate
        .ok_or_else(|| ServiceError::NotFoundText("Certificate not yet generated".into()))?;
    Ok(app.files.get(&file).await?)
}
