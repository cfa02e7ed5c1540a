//! Change requests: a change of an organization's components, of who approves such changes, or of what the funding of its
//! contracts needs, that needs the approval of other people than its requester; the policy behind it, and its reviews. Each
//! step is an entry of the component ledger.

mod approvers;
mod funding;
mod making;
mod policy;
mod requests;
mod reviews;

use std::time::Duration;

use holdfast_store::SqlConnection;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::ComponentOwner;
use crate::permits::four_eyes::policy_of;
use crate::problems::ChangeProblem;
use crate::providers::instance::InstanceConfig;
use crate::{Caller, Core, ServiceError};
use holdfast_base::config::EMBEDDED;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::InstanceReference;
use holdfast_domain::component_change::{
    ChangeComparison, ChangePolicy, ChangeReview, ChangeSource, ChangeState, ComponentChange,
    ProviderProbe, RequestedChange, Verdict, VoidReason,
};
use holdfast_domain::id::{ActivationId, ChangeId, OrgId, TokenId};
use holdfast_domain::organization::Role;
use holdfast_domain::user::IssuerIdentity;
use holdfast_store::{StoreError, component_changes as rows, components};

pub use approvers::permit_second;
pub use making::apply;
pub(super) use policy::permit_alone;
pub use policy::{policy, set_by_operator, set_policy};
pub use requests::{NewChange, ProposedChange, compare, create};
pub use reviews::{NewReview, review, withdraw};

/// Change requests among which the waiting ones are looked for.
const LATEST: i64 = 100;

/// User who requests, reviews or applies changes.
pub struct ChangeOfficer {
    pub caller: Caller,
    pub role: Role,
    pub token: Option<TokenId>,
    /// Account at an issuer with which the user signed in.
    pub identity: Option<IssuerIdentity>,
}

impl ChangeOfficer {
    fn owner(&self) -> ComponentOwner {
        ComponentOwner::from(&self.caller)
    }

    /// Whether this is the person behind an actor of the ledger.
    fn is(&self, actor: &str) -> bool {
        same_person(&self.caller.actor, actor)
    }

    /// Whether this is the person who requested a change, also under another address of the same account.
    fn requested(&self, change: &ComponentChange) -> bool {
        self.is(&change.requested_by)
            || same_account(self.identity.as_ref(), change.content.identity.as_ref())
    }
}

/// Addresses of people differ in case only by accident.
fn same_person(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

fn same_account(one: Option<&IssuerIdentity>, other: Option<&IssuerIdentity>) -> bool {
    one.is_some() && one == other
}

/// A review of a change request.
#[derive(Clone, Serialize, JsonSchema)]
pub struct ReviewView {
    pub by: String,
    pub role: Role,
    pub verdict: Verdict,
    pub comment: Option<String>,
    pub at: Timestamp,
    /// Why an approval does not count any more.
    pub void: Option<VoidReason>,
}

/// A change request.
#[derive(Clone, Serialize, JsonSchema)]
pub struct ChangeView {
    pub change_id: ChangeId,
    pub state: ChangeState,
    pub change: RequestedChange,
    /// Settings of a provider instance while the request is open, with the names of the secrets only.
    pub config: Option<Value>,
    pub reason: String,
    pub source: Option<ChangeSource>,
    pub emergency: bool,
    /// Activation that was effective when the change was requested; null for a default component. If it is
    /// another one when the change is applied, all approvals are void.
    pub base_activation_id: Option<ActivationId>,
    /// How the candidate and the active rules differed on past records.
    pub comparison: Option<ChangeComparison>,
    /// Result of a first call of a provider with the requested settings.
    pub probe: Option<ProviderProbe>,
    pub requested_by: String,
    pub requested_at: Timestamp,
    pub expires_at: Timestamp,
    pub closed_by: Option<String>,
    pub closed_at: Option<Timestamp>,
    /// Activation that the change made or rolled back.
    pub activation_id: Option<ActivationId>,
    /// Oldest first.
    pub reviews: Vec<ReviewView>,
    /// Number of valid approvals, each by another person.
    pub approvals: usize,
    /// Number of approvals that the policy requires.
    pub approvals_required: usize,
    /// An emergency change was applied and lacks approvals.
    pub review_due: bool,
}

/// Lists the organization's change requests, newest first.
pub async fn list(
    core: &Core,
    org: &OrgId,
    before: Option<&ChangeId>,
    limit: i64,
) -> Result<Vec<ChangeView>, ServiceError> {
    let mut connection = core.store.read().await?;
    let found = rows::list(&mut connection, org, before, limit).await?;
    drop(connection);
    let mut views = Vec::new();
    for change in found {
        views.push(view(core, change).await?);
    }
    Ok(views)
}

/// Lists the latest change requests that are open, or lack a review after an emergency.
pub async fn waiting(core: &Core, org: &OrgId) -> Result<Vec<ChangeView>, ServiceError> {
    let mut connection = core.store.read().await?;
    let mut found = rows::list(&mut connection, org, None, LATEST).await?;
    drop(connection);
    let now = core.clock.now();
    let may_wait = |change: &ComponentChange| match state_at(change, now) {
        ChangeState::Open => true,
        ChangeState::Applied => change.content.is_emergency,
        _ => false,
    };
    // First by what the rows have: a view of each costs several reads.
    found.retain(may_wait);

    let mut views = Vec::new();
    for change in found {
        views.push(view(core, change).await?);
    }

    views.retain(|one| one.state == ChangeState::Open || one.review_due);
    Ok(views)
}

/// Returns a change request of the organization.
pub async fn find(core: &Core, org: &OrgId, id: &str) -> Result<ComponentChange, ServiceError> {
    let mut connection = core.store.read().await?;
    find_in(&mut connection, org, id).await
}

async fn find_in(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &str,
) -> Result<ComponentChange, ServiceError> {
    let unknown = || ServiceError::NotFound("Change request");
    let id = ChangeId::parse(id).ok_or_else(unknown)?;
    let found = rows::get(connection, org, &id).await?;
    found.ok_or_else(unknown)
}

/// Returns what the API shows of a change request.
pub async fn view(core: &Core, change: ComponentChange) -> Result<ChangeView, ServiceError> {
    let mut connection = core.store.read().await?;
    let reviews = rows::reviews(&mut connection, &change.org, &change.id).await?;
    // By the present policy: an approval of a role that no longer reviews does not count.
    let policy = policy_of(core, &mut connection, &change.org).await?;
    let uploader = uploader(&mut connection, &change).await?;
    drop(connection);
    let approvals = approvals(&change, &reviews, &policy, uploader.as_deref()).len();

    // A later policy does not excuse the reviews that an emergency still needs.
    let required = change.content.approvals_required;
    let required = required.unwrap_or_else(|| change.content.change.reviews_required(&policy));
    let required = usize::try_from(required).unwrap_or(usize::MAX);
    let state = state_at(&change, core.clock.now());
    let config = shown_config(core, &change);

    let content = change.content;
    Ok(ChangeView {
        change_id: change.id,
        state,
        change: content.change,
        config,
        reason: content.reason,
        source: content.source,
        emergency: content.is_emergency,
        base_activation_id: content.base,
        comparison: content.comparison,
        probe: content.probe,
        requested_by: change.requested_by,
        requested_at: change.requested_at,
        expires_at: change.expires_at,
        closed_by: change.closed_by,
        closed_at: change.closed_at,
        activation_id: change.activation,
        reviews: reviews.into_iter().map(ReviewView::from).collect(),
        approvals,
        approvals_required: required,
        review_due: content.is_emergency && state == ChangeState::Applied && approvals < required,
    })
}

/// Returns the sealed settings of a provider, with the names of the secrets only.
fn shown_config(core: &Core, change: &ComponentChange) -> Option<Value> {
    let RequestedChange::Activate { instance, .. } = &change.content.change else {
        return None;
    };
    // A key that this node lacks shows no settings, and the request stays readable.
    let at = InstanceReference::own(&change.org, instance.as_deref().unwrap_or(EMBEDDED));
    let config = InstanceConfig::open(change.config.as_deref()?, &core.cipher, &at)?;
    Some(config.without_secrets())
}

impl From<ChangeReview> for ReviewView {
    fn from(review: ChangeReview) -> Self {
        Self {
            by: review.by,
            role: review.role,
            verdict: review.verdict,
            comment: review.comment,
            at: review.at,
            void: review.void,
        }
    }
}

fn state_at(change: &ComponentChange, now: Timestamp) -> ChangeState {
    // No task closes expired requests. They count as expired from their time on.
    if change.state == ChangeState::Open && change.expires_at <= now {
        ChangeState::Expired
    } else {
        change.state
    }
}

/// Returns who uploaded the component of a change.
async fn uploader(
    connection: &mut SqlConnection,
    change: &ComponentChange,
) -> Result<Option<String>, StoreError> {
    let (RequestedChange::Activate { component_id, .. }
    | RequestedChange::PublishFundingPack { component_id, .. }) = &change.content.change
    else {
        return Ok(None);
    };
    let component = components::get(connection, Some(&change.org), component_id).await?;
    Ok(component.map(|component| component.uploaded_by))
}

/// Returns the people with a valid approval. The last verdict of each person is the valid one.
fn approvals(
    change: &ComponentChange,
    reviews: &[ChangeReview],
    policy: &ChangePolicy,
    uploader: Option<&str>,
) -> Vec<String> {
    let requester = change.content.identity.as_ref();
    let mut approved: Vec<&ChangeReview> = Vec::new();
    let answers = reviews.iter().filter(|one| one.verdict != Verdict::Comment);
    for review in answers {
        let account = review.identity.as_ref();
        // A person with two addresses has one account at the issuer, and one vote.
        approved.retain(|one| {
            !same_person(&one.by, &review.by) && !same_account(one.identity.as_ref(), account)
        });
        // The review was checked when it was given. The policy may have changed since.
        let counts = review.verdict == Verdict::Approve
            && review.void.is_none()
            && policy.lets_review(review.role)
            && !same_person(&review.by, &change.requested_by)
            && !same_account(account, requester)
            && !uploader.is_some_and(|uploader| same_person(uploader, &review.by));

        approved.extend(counts.then_some(review));
    }

    approved.into_iter().map(|one| one.by.clone()).collect()
}

fn still_open(change: &ComponentChange, now: Timestamp) -> Result<(), ChangeProblem> {
    match state_at(change, now) {
        ChangeState::Open => Ok(()),
        state => Err(ChangeProblem::Closed(state)),
    }
}

/// Deletes the sealed settings of expired requests.
pub async fn forget_expired(core: &Core) -> Result<(), ServiceError> {
    let mut tx = core.store.begin().await?;
    rows::forget_configs(&mut tx, core.clock.now()).await?;
    Ok(tx.commit().await?)
}

fn hours(hours: u32) -> Duration {
    Duration::from_secs(u64::from(hours) * 3600)
}
