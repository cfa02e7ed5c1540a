//! What people see of a record: who signed, what happened, and what the rules say.

use std::sync::Arc;

use crate::envelopes::compliance::{self, ComplianceView};
use holdfast_domain::envelope::{CustodianStatus, Envelope, Signer};
use holdfast_domain::ledger::LedgerEntry;
use holdfast_domain::organization::Organization;
use holdfast_platform::components::ComponentManager;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::row::OwnedEnvelope;
use holdfast_store::{integrity, ledger, organizations, signers};

/// A record with its history and its checks.
pub struct RecordOverview {
    pub organization: Organization,
    /// E-mail address of the custodian.
    pub custodian: Option<String>,
    pub signers: Vec<Signer>,
    pub compliance: ComplianceView,
    /// Whether the last integrity check found something stored that is missing or was changed.
    pub is_damaged: bool,
    /// The custody ledger, oldest entry first.
    pub history: Vec<LedgerEntry>,
}

/// Collects what there is about a record. The caller checks access first.
pub async fn record(
    core: &Core,
    management: &Arc<ComponentManager>,
    envelope: &Envelope,
) -> Result<RecordOverview, ServiceError> {
    let (org, id) = (&envelope.org, &envelope.id);
    let mut connection = core.store.read().await?;
    let organization = organizations::get(&mut connection, org)
        .await?
        .ok_or(ServiceError::NotFound("Envelope"))?;
    let custodians = signers::custodians(&mut connection, org, id).await?;
    let signers = signers::list(&mut connection, org, id).await?;

    let history = ledger::list(&mut connection, Some(org), id).await?;
    let checked = OwnedEnvelope {
        org: org.clone(),
        envelope: id.clone(),
    };
    let is_damaged = integrity::problems(&mut connection, &checked)
        .await?
        .is_some();

    // The evaluation takes connections of its own. Callers that hold one meanwhile could exhaust the
    // pool.
    drop(connection);

    let accepted = custodians
        .into_iter()
        .find(|custodian| custodian.status == CustodianStatus::Accepted);
    // The reader may be another party. The rules of the originator's organization decide about its
    // records.
    let originator = Caller::system(org.clone());
    let (_, compliance) =
        compliance::evaluate(core, management, &originator, id.as_str(), None).await?;

    Ok(RecordOverview {
        organization,
        custodian: accepted.map(|custodian| custodian.email),
        signers,
        compliance,
        is_damaged,
        history,
    })
}
