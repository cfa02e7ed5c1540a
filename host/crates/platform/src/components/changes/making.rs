//! Making an approved change.

use std::sync::Arc;

use serde_json::json;

use super::super::activation::{self, CheckedActivation, RollBack};
use super::super::{ComponentManager, ComponentOwner, following, get, record};
use super::approvers;
use super::policy::put_policy;
use super::requests::base;
use super::{
    ChangeOfficer, ChangeProblem, ChangeView, approvals, find, find_in, funding, hours, still_open,
    uploader, view,
};
use crate::permits::four_eyes::policy_of;
use crate::{Core, Problem, ServiceError, link_hosts};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::Component;
use holdfast_domain::component_change::{
    ChangePolicy, ChangeState, ComponentChange, RequestedChange,
};
use holdfast_domain::id::ActivationId;
use holdfast_store::{WriteTransaction, component_changes as rows, components};

/// Makes an approved change.
pub async fn apply(
    core: &Core,
    management: &Arc<ComponentManager>,
    officer: &ChangeOfficer,
    id: &str,
) -> Result<ChangeView, ServiceError> {
    let (owner, org) = (officer.owner(), &officer.caller.org);
    let change = find(core, org, id).await?;
    still_open(&change, core.clock.now())?;
    let component = match &change.content.change {
        // Loaded before the lock, which is one for all organizations.
        RequestedChange::Activate { component_id, .. } => {
            let component = get(core, &owner, component_id.as_str()).await?;
            following::prepare(core, management, &component).await?;
            Some(component)
        }
        RequestedChange::LinkHost { link_host, .. } => {
            // The host may have changed hands since the request.
            link_hosts::verified(core, org, link_host, &approvers::LINK_HOST).await?;
            None
        }
        _ => None,
    };

    let mut tx = core.store.begin().await?;
    components::begin_change(&mut tx).await?;

    // Again, now that no other change can come in between; one that came before is effective by now.
    let now = core.clock.now();
    let mut change = find_in(&mut tx, org, id).await?;
    still_open(&change, now)?;

    if let Some(problem) = moved(core, &mut tx, &change, component.as_ref(), now).await? {
        // Committed although the caller gets an error: the approvals were about another base, and are worth
        // nothing any more.
        let state = ChangeState::Outdated;
        rows::close(&mut tx, &change, state, &owner.actor, now, None).await?;
        let details = json!({ "change_id": change.id, "code": Problem::from(&problem).code });
        record(core, &mut tx, &owner, "change.outdated", details).await?;
        tx.commit().await?;
        return Err(problem.into());
    }

    // The policy of now, under the lock: a stricter one since the approvals counts.
    let policy = policy_of(core, &mut tx, org).await?;
    let approved_by = permit(core, &mut tx, &change, &policy, now).await?;
    let made = make(
        core,
        &mut tx,
        officer,
        &change,
        component,
        &approved_by,
        now,
    )
    .await?;

    // Fixed now: a later policy does not change what an emergency still needs.
    change.content.approvals_required = Some(change.content.change.reviews_required(&policy));
    rows::set_content(&mut tx, &change).await?;
    let state = ChangeState::Applied;
    rows::close(&mut tx, &change, state, &owner.actor, now, made.as_ref()).await?;
    let details = json!({
        "change_id": change.id, "activation_id": made, "requested_by": change.requested_by,
        "approved_by": approved_by, "emergency": change.content.is_emergency,
    });
    record(core, &mut tx, &owner, "change.applied", details).await?;

    tx.commit().await?;

    // Applied on this node at once. Other nodes poll for it.
    following::refresh(core, management).await?;
    view(core, find(core, org, id).await?).await
}

/// Returns the difference from the approved state, if there is one.
async fn moved(
    core: &Core,
    tx: &mut WriteTransaction,
    change: &ComponentChange,
    component: Option<&Component>,
    now: Timestamp,
) -> Result<Option<ChangeProblem>, ServiceError> {
    let (org, content) = (&change.org, &change.content);
    let base_moved = |is_same: bool| (!is_same).then_some(ChangeProblem::BaseMoved);
    let instance = match &content.change {
        // A policy has no activations. Its base is the policy that it replaces.
        RequestedChange::Policy { previous, .. } => {
            return Ok(base_moved(policy_of(core, tx, org).await? == *previous));
        }
        RequestedChange::Activate { slot, instance, .. }
        | RequestedChange::RollBack { slot, instance, .. } => activation::instance_of(
            core,
            &ComponentOwner::of(org.clone()),
            *slot,
            instance.as_deref(),
        )?,
        of_funding @ (RequestedChange::WaiveStipulation { .. }
        | RequestedChange::PublishFundingPack { .. }
        | RequestedChange::SubscribeFundingPack { .. }
        | RequestedChange::SetFunding { .. }) => {
            return Ok(base_moved(
                funding::is_unchanged(tx, org, of_funding).await?,
            ));
        }
        access => {
            return Ok(base_moved(approvers::is_unchanged(tx, org, access).await?));
        }
    };

    if let (RequestedChange::Activate { component: was, .. }, Some(is)) =
        (&content.change, component)
        && is.identity != *was
    {
        return Ok(Some(ChangeProblem::ComponentChanged));
    }

    let base = base(tx, org, &content.change, &instance, now).await?;
    Ok(base_moved(base.digest == content.base_digest))
}

/// Returns who approved a change, if that is enough.
async fn permit(
    core: &Core,
    tx: &mut WriteTransaction,
    change: &ComponentChange,
    policy: &ChangePolicy,
    now: Timestamp,
) -> Result<Vec<String>, ServiceError> {
    let (org, content) = (&change.org, &change.content);
    let reviews = rows::reviews(tx, org, &change.id).await?;
    let uploader = uploader(tx, change).await?;
    let approved_by = approvals(change, &reviews, policy, uploader.as_deref());
    // One other person is enough in an emergency. The missing approvals are due afterwards.
    if content.is_emergency {
        return if approved_by.is_empty() {
            Err(ChangeProblem::SecondPersonMissing.into())
        } else {
            Ok(approved_by)
        };
    }

    let required = content.change.reviews_required(policy);
    let required = usize::try_from(required).unwrap_or(usize::MAX);
    if approved_by.len() < required {
        let given = approved_by.len();
        return Err(ChangeProblem::ApprovalsMissing { given, required }.into());
    }

    // The comparison was with rules that may have been replaced since.
    let fresh = match (&content.comparison, content.change.slot()) {
        (Some(comparison), Some(slot)) => {
            // Also those of the installation may have changed.
            let active = following::active_rules(core, org, slot, now)?;
            comparison.at + hours(policy.shadow_valid_hours) > now && comparison.active == active
        }
        _ => false,
    };

    if policy.shadow_required && content.change.activates_rules() && !fresh {
        Err(ChangeProblem::ShadowStale.into())
    } else {
        Ok(approved_by)
    }
}

/// Makes a permitted change. Returns the activation that it made or rolled back.
async fn make(
    core: &Core,
    tx: &mut WriteTransaction,
    officer: &ChangeOfficer,
    change: &ComponentChange,
    component: Option<Component>,
    approved_by: &[String],
    now: Timestamp,
) -> Result<Option<ActivationId>, ServiceError> {
    let (content, owner) = (&change.content, &officer.owner());
    match (&content.change, component) {
        (
            RequestedChange::Activate {
                slot,
                instance,
                effective_at,
                ..
            },
            Some(component),
        ) => {
            let checked = CheckedActivation {
                instance: activation::instance_of(core, owner, *slot, instance.as_deref())?,
                component,
                config: change.config.clone(),
                reason: Some(content.reason.clone()),
                // A time that has passed in the meantime: from now on.
                effective_at: effective_at.filter(|at| *at > now),
                may_be_older: false,
            };

            let made = activation::activate_in(core, tx, owner, checked, Some(&change.id)).await?;
            Ok(Some(made.id))
        }
        (
            RequestedChange::RollBack {
                slot,
                instance,
                activation_id,
            },
            _,
        ) => {
            let instance = activation::instance_of(core, owner, *slot, instance.as_deref())?;
            let going_back = RollBack {
                slot: *slot,
                instance: &instance,
                activation: Some(activation_id.as_str()),
                reason: Some(content.reason.clone()),
            };

            let id = Some(&change.id);
            let back = activation::roll_back_in(core, tx, owner, going_back, id).await?;
            Ok(Some(back.id))
        }
        (RequestedChange::Policy { policy, previous }, _) => {
            let (org, id) = (&change.org, Some(&change.id));
            put_policy(core, tx, owner, org, previous, policy.clone(), id).await?;
            Ok(None)
        }
        (RequestedChange::Activate { .. }, None) => Err(ServiceError::NotFound("Component")),
        (
            RequestedChange::WaiveStipulation { .. }
            | RequestedChange::PublishFundingPack { .. }
            | RequestedChange::SubscribeFundingPack { .. }
            | RequestedChange::SetFunding { .. },
            _,
        ) => {
            funding::make(tx, officer, change, approved_by, now).await?;
            Ok(None)
        }
        _ => {
            approvers::make(tx, officer, change, approved_by, now).await?;
            Ok(None)
        }
    }
}
