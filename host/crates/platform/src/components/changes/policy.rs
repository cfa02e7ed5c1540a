//! The policy of changes: what a change of an organization's components needs.

use holdfast_store::SqlConnection;
use serde_json::json;

use super::super::{ComponentOwner, record};
use super::{ChangeOfficer, ChangeProblem};
use crate::permits::four_eyes::policy_of;
use crate::{Core, ServiceError, ValidationIssue};
use holdfast_base::publishers;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component_change::ChangePolicy;
use holdfast_domain::id::{ChangeId, OrgId};
use holdfast_domain::ledger::NewEntry;
use holdfast_store::{StoreError, WriteTransaction, components, ledger, organizations};

/// Returns the policy of an organization. Never weaker than the installation's.
pub async fn policy(core: &Core, org: &OrgId) -> Result<ChangePolicy, ServiceError> {
    let mut connection = core.store.read().await?;
    policy_of(core, &mut connection, org).await
}

/// Refuses a change without approvals where the policy requires some.
pub(in super::super) async fn permit_alone(
    core: &Core,
    connection: &mut SqlConnection,
    owner: &ComponentOwner,
) -> Result<(), ServiceError> {
    // The operators answer for the installation's own components: one, or those who sign its state.
    let Some(org) = &owner.org else {
        return if core.config.components.state.keys.is_empty() {
            Ok(())
        } else {
            Err(ChangeProblem::StateRequired.into())
        };
    };

    match policy_of(core, connection, org).await?.reviews_required {
        0 => Ok(()),
        _ => Err(ChangeProblem::ApprovalRequired.into()),
    }
}

/// Changes the policy where it requires no approvals yet.
pub async fn set_policy(
    core: &Core,
    officer: &ChangeOfficer,
    next: ChangePolicy,
) -> Result<ChangePolicy, ServiceError> {
    check_policy(&next, &[])?;
    let (owner, org) = (officer.owner(), &officer.caller.org);
    let mut tx = core.store.begin().await?;
    // The lock of all changes: no request is applied between the check and the write.
    components::lock_changes(&mut tx).await?;
    permit_alone(core, &mut tx, &owner).await?;
    let previous = policy_of(core, &mut tx, org).await?;
    put_policy(core, &mut tx, &owner, org, &previous, next, None).await?;

    tx.commit().await?;
    policy(core, org).await
}

/// Records that the operator changed the policy of an organization.
pub async fn set_by_operator(
    tx: &mut WriteTransaction,
    org: &OrgId,
    previous: &ChangePolicy,
    next: &ChangePolicy,
    now: Timestamp,
) -> Result<(), StoreError> {
    let owner = ComponentOwner {
        org: Some(org.clone()),
        ..ComponentOwner::installation()
    };
    let entry = NewEntry {
        at: now,
        actor: owner.actor.clone(),
        action: "policy.changed".into(),
        details: json!({ "previous": previous, "policy": next, "change_id": null }),
    };
    ledger::append(tx, Some(org), &owner, entry).await?;

    Ok(())
}

pub(super) fn check_policy(policy: &ChangePolicy, path: &[&str]) -> Result<(), ServiceError> {
    let of_key = || {
        let (name, why) = publishers::problem_of_signers(&policy.state.keys)?;
        Some(("state", format!("{name} {why}")))
    };
    let Some((member, why)) = policy.problem().or_else(of_key) else {
        return Ok(());
    };

    let path: Vec<&str> = path.iter().copied().chain([member]).collect();
    let received = json!(policy)[member].to_string();
    let issue = ValidationIssue::new("out_of_range", &path, &why, received, &why);
    Err(ServiceError::Invalid(vec![issue]))
}

pub(super) async fn put_policy(
    core: &Core,
    tx: &mut WriteTransaction,
    owner: &ComponentOwner,
    org: &OrgId,
    previous: &ChangePolicy,
    next: ChangePolicy,
    change: Option<&ChangeId>,
) -> Result<(), ServiceError> {
    // The settings are one document: a concurrent change of another one would be lost.
    organizations::lock(tx, org).await?;
    let organization = organizations::get(tx, org).await?;
    let mut organization = organization.ok_or(ServiceError::NotFound("Organization"))?;
    organization.settings.component_changes = next;
    organizations::set_settings(tx, &organization).await?;
    let policy = &organization.settings.component_changes;
    let details = json!({ "previous": previous, "policy": policy, "change_id": change });
    record(core, tx, owner, "policy.changed", details).await
}
