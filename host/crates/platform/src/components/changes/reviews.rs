//! Reviews of a change request, and its withdrawal.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::super::record;
use super::approvers::{InvitationTree, check_access};
use super::{
    ChangeOfficer, ChangeProblem, ChangeView, approvals, find, find_in, state_at, still_open,
    uploader, view,
};
use crate::permits::four_eyes::policy_of;
use crate::{Core, ServiceError, ValidationIssue};
use holdfast_domain::component_change::{ChangeReview, ChangeState, ComponentChange, Verdict};
use holdfast_domain::organization::Role;
use holdfast_store::{component_changes as rows, components};

/// Reviews and comments of one request.
const REVIEWS: usize = 200;

/// Body of `POST /component-changes/{id}/reviews`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "verdict": "approve", "comment": "Counsel has agreed" }]))]
pub struct NewReview {
    pub verdict: Verdict,
    /// Required to refuse, and for a comment.
    #[schemars(length(min = 1, max = 2000))]
    pub comment: Option<String>,
}

/// Adds a review. One refusal closes an open request.
pub async fn review(
    core: &Core,
    officer: &ChangeOfficer,
    id: &str,
    new: NewReview,
) -> Result<ChangeView, ServiceError> {
    let comment = new.comment.map(|comment| comment.trim().to_owned());
    let comment = comment.filter(|comment| !comment.is_empty());
    let length = comment
        .as_ref()
        .map_or(0, |comment| comment.chars().count());
    if length > 2000 || (length == 0 && new.verdict != Verdict::Approve) {
        let text = comment.as_deref().unwrap_or_default();
        let issue = ValidationIssue::of_length(&["comment"], text, 2000, "Say why");
        return Err(ServiceError::Invalid(vec![issue]));
    }

    let (owner, org, now) = (officer.owner(), &officer.caller.org, core.clock.now());
    let mut tx = core.store.begin().await?;
    // The lock of all changes: no approval is added while `apply` counts them.
    components::lock_changes(&mut tx).await?;
    let user = check_access(&mut tx, officer).await?;
    // The role of now: a token can still have an earlier one.
    let role = user.map_or(officer.role, |user| user.role);
    let change = find_in(&mut tx, org, id).await?;
    if rows::reviews(&mut tx, org, &change.id).await?.len() >= REVIEWS {
        let message = format!("The request has {REVIEWS} reviews; withdraw it and make a new one");
        return Err(ServiceError::Conflict(message));
    }

    let state = state_at(&change, now);
    // The approvals that an emergency did without are given afterwards.
    let is_late = change.content.is_emergency && state == ChangeState::Applied;
    if state != ChangeState::Open && !is_late {
        return Err(ChangeProblem::Closed(state).into());
    }

    if new.verdict != Verdict::Comment {
        let policy = policy_of(core, &mut tx, org).await?;
        if !policy.lets_review(role) {
            return Err(ChangeProblem::RoleReviews.into());
        }
        // Requester and uploader have made the change together: neither is a second person.
        if officer.requested(&change) {
            return Err(ChangeProblem::RequesterReviews.into());
        }

        let uploader = uploader(&mut tx, &change).await?;
        if uploader
            .as_ref()
            .is_some_and(|uploader| officer.is(uploader))
        {
            return Err(ChangeProblem::UploaderReviews.into());
        }

        // Only for approvals. A refusal gives no power, so an invitee may refuse.
        if new.verdict == Verdict::Approve {
            let reviews = rows::reviews(&mut tx, org, &change.id).await?;
            let approved = approvals(&change, &reviews, &policy, uploader.as_deref());
            let tree = InvitationTree::read(&mut tx, org).await?;
            may_approve(officer, &change, uploader, approved, &tree)?;
        }
    }

    let review = ChangeReview {
        by: owner.actor.clone(),
        role,
        token: officer.token.clone(),
        identity: officer.identity.clone(),
        verdict: new.verdict,
        comment,
        at: now,
        void: None,
    };

    rows::insert_review(&mut tx, &change, &review).await?;
    // A late refusal closes nothing, because the change is made.
    if new.verdict == Verdict::Refuse && state == ChangeState::Open {
        rows::close(
            &mut tx,
            &change,
            ChangeState::Refused,
            &owner.actor,
            now,
            None,
        )
        .await?;
    }

    let details = json!({
        "change_id": change.id, "verdict": review.verdict, "role": review.role,
        "comment": review.comment,
    });
    record(core, &mut tx, &owner, "change.reviewed", details).await?;
    tx.commit().await?;

    view(core, find(core, org, id).await?).await
}

/// Refuses an approval if the requester, the uploader or an earlier reviewer let the approver in, or the other way round: a
/// person who invites people could invite further addresses of their own.
fn may_approve(
    officer: &ChangeOfficer,
    change: &ComponentChange,
    uploader: Option<String>,
    approved: Vec<String>,
    tree: &InvitationTree,
) -> Result<(), ChangeProblem> {
    let actor = &officer.caller.actor;
    let mut others = approved;
    others.extend(uploader);
    others.push(change.requested_by.clone());

    if others.iter().any(|other| tree.are_related(actor, other)) {
        return Err(ChangeProblem::InviteeReviews);
    }
    if tree.is_unconfirmed(actor) {
        return Err(ChangeProblem::IdentityUnconfirmed);
    }

    Ok(())
}

/// Withdraws an open request, as its requester or as an admin.
pub async fn withdraw(
    core: &Core,
    officer: &ChangeOfficer,
    id: &str,
) -> Result<ChangeView, ServiceError> {
    let (owner, org, now) = (officer.owner(), &officer.caller.org, core.clock.now());
    let mut tx = core.store.begin().await?;
    components::lock_changes(&mut tx).await?;
    let change = find_in(&mut tx, org, id).await?;
    still_open(&change, now)?;

    if !officer.requested(&change) && !officer.role.counts_as(Role::Admin) {
        let message = "Only its requester and admins withdraw a change request";
        return Err(ServiceError::NotAllowed(message));
    }

    let state = ChangeState::Withdrawn;
    rows::close(&mut tx, &change, state, &owner.actor, now, None).await?;
    let details = json!({ "change_id": change.id });
    record(core, &mut tx, &owner, "change.withdrawn", details).await?;
    tx.commit().await?;

    view(core, find(core, org, id).await?).await
}
