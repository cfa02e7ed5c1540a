//! Change requests: a change of an organization's components that needs the approval of other people than
//! its requester, the policy behind it, and its reviews. Each step is an entry of the component ledger.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::AnyConnection;

use super::activation::{self, ActivationRequest, CheckedActivation, RollBack};
use super::shadow::{self, ReplayRequest};
use super::{ComponentManager, ComponentOwner, following, get, probe, record};
use crate::config::EMBEDDED;
use crate::domain::clock::Timestamp;
use crate::domain::component::{Component, InstanceReference, Slot};
use crate::domain::component_change::{
    ChangeComparison, ChangeContent, ChangePolicy, ChangeReview, ChangeSource, ChangeState,
    ComponentChange, ProviderProbe, RequestedChange, Verdict, VoidReason,
};
use crate::domain::hash::sha256;
use crate::domain::id::{ActivationId, ChangeId, OrgId, TokenId};
use crate::domain::ledger::NewEntry;
use crate::domain::organization::Role;
use crate::service::signing::provider_instance::InstanceConfig;
use crate::service::{Caller, Core, ServiceError, ValidationIssue};
use crate::store::{
    StoreError, WriteTransaction, component_changes as rows, components, ledger, organizations,
    tokens,
};

/// Open change requests of an organization.
const OPEN: i64 = 100;
/// Reviews and comments of one request.
const REVIEWS: usize = 200;

/// Reason why a change of components is not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeProblem {
    #[error("This change needs the approval of others: POST /component-changes requests it")]
    ApprovalRequired,
    #[error("{given} of {required} approvals are given")]
    ApprovalsMissing { given: usize, required: usize },
    #[error("A second person must approve an emergency change first")]
    SecondPersonMissing,
    #[error("You requested this change; another person reviews it")]
    RequesterReviews,
    #[error("You uploaded this component; another person reviews it")]
    UploaderReviews,
    #[error("The policy does not let your role review changes")]
    RoleReviews,
    #[error("This change request is {}", .0.as_str())]
    Closed(ChangeState),
    #[error("Another change was made since this one was requested; request it again")]
    BaseMoved,
    #[error("The component is not the one that was requested")]
    ComponentChanged,
    #[error("The comparison on past records is missing or too old; make it again")]
    ShadowStale,
}

impl ChangeProblem {
    /// Returns the code of the error response.
    pub fn code(&self) -> &'static str {
        match self {
            Self::ApprovalRequired => "approval_required",
            Self::ApprovalsMissing { .. } => "approvals_missing",
            Self::SecondPersonMissing => "second_person_missing",
            Self::RequesterReviews => "requester_reviews",
            Self::UploaderReviews => "uploader_reviews",
            Self::RoleReviews => "role_reviews",
            Self::Closed(_) => "change_closed",
            Self::BaseMoved => "base_moved",
            Self::ComponentChanged => "component_changed",
            Self::ShadowStale => "shadow_stale",
        }
    }
}

/// User who requests, reviews or applies changes.
pub struct ChangeOfficer {
    pub caller: Caller,
    pub role: Role,
    pub token: Option<TokenId>,
}

impl ChangeOfficer {
    fn owner(&self) -> ComponentOwner {
        ComponentOwner::from(&self.caller)
    }

    /// Whether this is the person behind an actor of the ledger.
    fn is(&self, actor: &str) -> bool {
        same_person(&self.caller.actor, actor)
    }
}

/// Addresses of people differ in case only by accident.
fn same_person(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

/// Change that a request proposes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum ProposedChange {
    /// Activates a component, as `POST /component-slots/{slot}/activate`.
    Activate {
        slot: Slot,
        component_id: String,
        #[schemars(length(min = 1, max = 64))]
        instance: Option<String>,
        config: Option<InstanceConfig>,
        effective_at: Option<Timestamp>,
    },
    /// Rolls back an activation; by default the current one.
    RollBack {
        slot: Slot,
        #[schemars(length(min = 1, max = 64))]
        instance: Option<String>,
        activation_id: Option<String>,
    },
    /// Changes the policy of changes.
    Policy { policy: ChangePolicy },
}

impl ProposedChange {
    /// Returns the slot; `None` for a change of the policy.
    pub fn slot(&self) -> Option<Slot> {
        match self {
            Self::Activate { slot, .. } | Self::RollBack { slot, .. } => Some(*slot),
            Self::Policy { .. } => None,
        }
    }
}

/// Body of `POST /component-changes`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "change": { "action": "activate", "slot": "rules.compliance", "component_id": "cmp_01jt8s5gq2e6m9x4k7w3c5d8fa",
                "effective_at": "2027-01-01T05:00:00.000Z" },
    "reason": "Amended §9-105 takes effect",
    "source": { "url": "https://git.acme.example/rules", "commit": "4f1c2ab" },
}]))]
pub struct NewChange {
    pub change: ProposedChange,
    #[schemars(length(min = 1, max = 500))]
    pub reason: String,
    /// Where the component comes from. Required for an activation of rules.
    pub source: Option<ChangeSource>,
    /// Compare the component with the active rules on past records, also if the policy does not require it.
    #[serde(default)]
    pub compare: bool,
    /// Needs one approval only and no comparison. The other approvals are due afterwards.
    #[serde(default)]
    pub emergency: bool,
}

/// Body of `POST /component-changes/{id}/reviews`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "verdict": "approve", "comment": "Counsel has agreed" }]))]
pub struct NewReview {
    pub verdict: Verdict,
    /// Required to refuse, and for a comment.
    #[schemars(length(min = 1, max = 2000))]
    pub comment: Option<String>,
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

/// Returns the policy of an organization. Never weaker than the installation's.
pub async fn policy(core: &Core, org: &OrgId) -> Result<ChangePolicy, ServiceError> {
    let mut connection = core.store.read().await?;
    policy_of(core, &mut connection, org).await
}

async fn policy_of(
    core: &Core,
    connection: &mut AnyConnection,
    org: &OrgId,
) -> Result<ChangePolicy, ServiceError> {
    let organization = organizations::get(connection, org).await?;
    let own = organization.map(|organization| organization.settings.component_changes);
    let own = own.unwrap_or_default();
    Ok(ChangePolicy {
        reviews_required: own
            .reviews_required
            .max(core.config.components.reviews_required),
        ..own
    })
}

/// Refuses a change without approvals where the policy requires some. With changes locked.
pub(super) async fn permit_alone(
    core: &Core,
    tx: &mut WriteTransaction,
    owner: &ComponentOwner,
) -> Result<(), ServiceError> {
    // The operator answers for the installation's own components.
    let Some(org) = &owner.org else {
        return Ok(());
    };
    match policy_of(core, tx, org).await?.reviews_required {
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

fn check_policy(policy: &ChangePolicy, path: &[&str]) -> Result<(), ServiceError> {
    let Some((member, why)) = policy.problem() else {
        return Ok(());
    };
    let path: Vec<&str> = path.iter().copied().chain([member]).collect();
    let received = json!(policy)[member].to_string();
    let issue = ValidationIssue::new("out_of_range", &path, "a value in range", received, why);
    Err(ServiceError::Invalid(vec![issue]))
}

async fn put_policy(
    core: &Core,
    tx: &mut WriteTransaction,
    owner: &ComponentOwner,
    org: &OrgId,
    previous: &ChangePolicy,
    next: ChangePolicy,
    change: Option<&ChangeId>,
) -> Result<(), ServiceError> {
    organizations::lock(tx, org).await?;
    let organization = organizations::get(tx, org).await?;
    let mut settings = organization
        .ok_or(ServiceError::NotFound("Organization"))?
        .settings;
    settings.component_changes = next;
    organizations::set_settings(tx, org, &settings).await?;
    let details = json!({
        "previous": previous, "policy": settings.component_changes, "change_id": change,
    });
    record(core, tx, owner, "policy.changed", details).await
}

/// Requests a change.
pub async fn create(
    core: &Core,
    management: &Arc<ComponentManager>,
    officer: &ChangeOfficer,
    new: NewChange,
) -> Result<ChangeView, ServiceError> {
    let (owner, org) = (officer.owner(), &officer.caller.org);
    check_reason(&new)?;
    let policy = policy(core, org).await?;
    if new.emergency && matches!(new.change, ProposedChange::Policy { .. }) {
        return Err(ServiceError::Invalid(vec![ValidationIssue::new(
            "invalid_value",
            &["emergency"],
            "false",
            "true",
            "The policy is not changed in an emergency",
        )]));
    }
    let proposed = propose(core, management, &owner, new.change).await?;
    let is_rules = proposed
        .change
        .slot()
        .is_some_and(|slot| !slot.is_provider());
    let compares = match &proposed.component {
        Some(component) if is_rules && !new.emergency => {
            (policy.shadow_required || new.compare).then_some(component)
        }
        _ => None,
    };
    let comparison = match compares {
        Some(component) => Some(compared(core, management, officer, component).await?),
        None => None,
    };
    let mut tx = core.store.begin().await?;
    components::lock_changes(&mut tx).await?;
    // After the lock: an activation that came before is effective by now.
    let now = core.clock.now();
    if rows::count_open(&mut tx, org, now).await? >= OPEN {
        let message = format!("There are {OPEN} open change requests; apply or withdraw some");
        return Err(ServiceError::Conflict(message));
    }
    let base = base(&mut tx, org, &proposed.change, &proposed.instance, now).await?;
    let change = match proposed.change {
        RequestedChange::Policy { policy, .. } => RequestedChange::Policy {
            policy,
            previous: policy_of(core, &mut tx, org).await?,
        },
        RequestedChange::RollBack {
            slot,
            instance,
            activation_id,
        } => {
            let all = components::live_of(&mut tx, Some(org), slot).await?;
            if !all
                .iter()
                .any(|one| one.id == activation_id && one.instance == proposed.instance)
            {
                return Err(ServiceError::NotFound("Activation"));
            }
            RequestedChange::RollBack {
                slot,
                instance,
                activation_id,
            }
        }
        activates => activates,
    };
    let change = ComponentChange {
        id: ChangeId::new(),
        org: org.clone(),
        content: ChangeContent {
            change,
            reason: new.reason,
            source: new.source,
            is_emergency: new.emergency,
            base: base.current,
            base_digest: base.digest,
            comparison,
            probe: proposed.probe,
            approvals_required: None,
        },
        config: proposed.config,
        state: ChangeState::Open,
        requested_by: owner.actor.clone(),
        requested_at: now,
        expires_at: now + hours(policy.expires_after_hours),
        closed_by: None,
        closed_at: None,
        activation: None,
    };
    rows::insert(&mut tx, &change, &proposed.instance).await?;
    // The settings of a provider stay sealed.
    let mut details = json!(change.content);
    details["change_id"] = json!(change.id);
    record(core, &mut tx, &owner, "change.requested", details).await?;
    tx.commit().await?;
    view(core, change).await
}

fn check_reason(new: &NewChange) -> Result<(), ServiceError> {
    let mut issues = Vec::new();
    let length = new.reason.trim().chars().count();
    if !(1..=500).contains(&length) {
        issues.push(ValidationIssue::new(
            "out_of_range",
            &["reason"],
            "1 to 500 characters",
            length.to_string(),
            "Say why the change is made",
        ));
    }
    let is_rules = new.change.slot().is_some_and(|slot| !slot.is_provider());
    let activates = matches!(new.change, ProposedChange::Activate { .. });
    if is_rules && activates && new.source.is_none() {
        issues.push(ValidationIssue::new(
            "invalid_type",
            &["source"],
            "an object",
            "undefined",
            "Rules come from a repository and a commit of it",
        ));
    }
    for (member, text, limit) in new
        .source
        .iter()
        .flat_map(|source| [("url", &source.url, 500), ("commit", &source.commit, 100)])
    {
        if text.trim().is_empty() || text.chars().count() > limit {
            issues.push(ValidationIssue::new(
                "out_of_range",
                &["source", member],
                format!("1 to {limit} characters"),
                text.as_str(),
                "Name the repository and the commit",
            ));
        }
    }
    match issues.is_empty() {
        true => Ok(()),
        false => Err(ServiceError::Invalid(issues)),
    }
}

/// A proposed change that was checked as far as possible without the present activations.
struct CheckedChange {
    change: RequestedChange,
    /// Empty for rules and for a change of the policy.
    instance: String,
    component: Option<Component>,
    /// Sealed settings.
    config: Option<String>,
    probe: Option<ProviderProbe>,
}

async fn propose(
    core: &Core,
    management: &Arc<ComponentManager>,
    owner: &ComponentOwner,
    proposed: ProposedChange,
) -> Result<CheckedChange, ServiceError> {
    match proposed {
        ProposedChange::Activate {
            slot,
            component_id,
            instance,
            config,
            effective_at,
        } => {
            let request = ActivationRequest {
                component_id,
                config,
                instance: instance.clone(),
                reason: None,
                effective_at,
            };
            let checked = activation::check(core, owner, slot, request).await?;
            let probe = match slot.is_provider() {
                true => {
                    following::prepare(core, management, &checked.component).await?;
                    probe::probe(core, management, owner, &checked).await?
                }
                false => None,
            };
            Ok(CheckedChange {
                change: RequestedChange::Activate {
                    slot,
                    instance,
                    component_id: checked.component.id.clone(),
                    component: checked.component.identity.clone(),
                    config: None,
                    effective_at,
                },
                instance: checked.instance,
                component: Some(checked.component),
                config: checked.config,
                probe,
            })
        }
        ProposedChange::RollBack {
            slot,
            instance,
            activation_id,
        } => {
            let name = activation::instance_of(core, owner, slot, instance.as_deref())?;
            let current = match activation_id {
                Some(id) => ActivationId::parse(&id),
                None => {
                    let mut connection = core.store.read().await?;
                    let all =
                        components::live_of(&mut connection, owner.org.as_ref(), slot).await?;
                    activation::current(&all, &name, core.clock.now()).map(|one| one.id.clone())
                }
            };
            Ok(CheckedChange {
                change: RequestedChange::RollBack {
                    slot,
                    instance,
                    activation_id: current.ok_or(ServiceError::NotFound("Activation"))?,
                },
                instance: name,
                component: None,
                config: None,
                probe: None,
            })
        }
        ProposedChange::Policy { policy } => {
            check_policy(&policy, &["change", "policy"])?;
            Ok(CheckedChange {
                change: RequestedChange::Policy {
                    previous: policy.clone(),
                    policy,
                },
                instance: String::new(),
                component: None,
                config: None,
                probe: None,
            })
        }
    }
}

/// The activations on which a change is made.
struct ChangeBase {
    /// The effective one.
    current: Option<ActivationId>,
    /// SHA-256 of the ids of all, those that are scheduled included.
    digest: String,
}

/// Returns the present activations where a change is made.
async fn base(
    connection: &mut AnyConnection,
    org: &OrgId,
    change: &RequestedChange,
    instance: &str,
    now: Timestamp,
) -> Result<ChangeBase, StoreError> {
    let all = match change.slot() {
        Some(slot) => components::live_of(connection, Some(org), slot).await?,
        None => Vec::new(),
    };
    let here = all.iter().filter(|one| one.instance == instance);
    let mut ids: Vec<&str> = here.map(|one| one.id.as_str()).collect();
    ids.sort_unstable();
    Ok(ChangeBase {
        current: activation::current(&all, instance, now).map(|one| one.id.clone()),
        digest: sha256(ids.join(" ").as_bytes()),
    })
}

async fn compared(
    core: &Core,
    management: &Arc<ComponentManager>,
    officer: &ChangeOfficer,
    component: &Component,
) -> Result<ChangeComparison, ServiceError> {
    let (caller, all) = (&officer.caller, ReplayRequest::default());
    let id = component.id.as_str();
    let report = shadow::replay(core, management, caller, id, &all, |_, _| {}).await?;
    Ok(ChangeComparison {
        at: core.clock.now(),
        active: report.active,
        compared: report.compared,
        differing: report.differing,
        failed: report.failed,
        groups: report.groups,
    })
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

/// Returns a change request of the organization.
pub async fn find(core: &Core, org: &OrgId, id: &str) -> Result<ComponentChange, ServiceError> {
    let mut connection = core.store.read().await?;
    find_in(&mut connection, org, id).await
}

async fn find_in(
    connection: &mut AnyConnection,
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
    let policy = policy_of(core, &mut connection, &change.org).await?;
    let uploader = uploader(&mut connection, &change).await?;
    drop(connection);
    let approvals = approvals(&change, &reviews, &policy, uploader.as_deref()).len();
    // A later policy does not excuse the reviews that an emergency still needs.
    let required = change.content.approvals_required;
    let required = required.unwrap_or(policy.reviews_required);
    let required = usize::try_from(required).unwrap_or(usize::MAX);
    let state = state_at(&change, core.clock.now());
    let mut content = change.content;
    show_config(
        core,
        &change.org,
        change.config.as_deref(),
        &mut content.change,
    );
    Ok(ChangeView {
        change_id: change.id,
        state,
        change: content.change,
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

/// Adds the sealed settings of a provider to an open request, with the names of the secrets only.
fn show_config(core: &Core, org: &OrgId, sealed: Option<&str>, change: &mut RequestedChange) {
    if let (
        Some(sealed),
        RequestedChange::Activate {
            instance, config, ..
        },
    ) = (sealed, change)
    {
        let at = InstanceReference::own(org, instance.as_deref().unwrap_or(EMBEDDED));
        let opened = InstanceConfig::open(sealed, &core.cipher, &at);
        *config = opened.map(|config| config.without_secrets());
    }
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
    match change.state == ChangeState::Open && change.expires_at <= now {
        true => ChangeState::Expired,
        false => change.state,
    }
}

/// Returns who uploaded the component of a change.
async fn uploader(
    connection: &mut AnyConnection,
    change: &ComponentChange,
) -> Result<Option<String>, StoreError> {
    let RequestedChange::Activate { component_id, .. } = &change.content.change else {
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
    let mut approved: Vec<String> = Vec::new();
    let answers = reviews.iter().filter(|one| one.verdict != Verdict::Comment);
    for review in answers {
        approved.retain(|by| !same_person(by, &review.by));
        let counts = review.verdict == Verdict::Approve
            && review.void.is_none()
            && policy.reviewers.contains(&review.role)
            && !same_person(&review.by, &change.requested_by)
            && !uploader.is_some_and(|uploader| same_person(uploader, &review.by));
        approved.extend(counts.then(|| review.by.clone()));
    }
    approved
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
        return Err(ServiceError::Invalid(vec![ValidationIssue::new(
            "out_of_range",
            &["comment"],
            "1 to 2000 characters",
            length.to_string(),
            "Say why",
        )]));
    }
    let (owner, org, now) = (officer.owner(), &officer.caller.org, core.clock.now());
    let mut tx = core.store.begin().await?;
    components::lock_changes(&mut tx).await?;
    // It may have been revoked since the request began.
    if let Some(token) = &officer.token
        && tokens::is_revoked(&mut tx, org, token).await?
    {
        return Err(ServiceError::NotAllowed("Your token was revoked"));
    }
    let change = find_in(&mut tx, org, id).await?;
    if rows::reviews(&mut tx, org, &change.id).await?.len() >= REVIEWS {
        let message = format!("The request has {REVIEWS} reviews; withdraw it and make a new one");
        return Err(ServiceError::Conflict(message));
    }
    let state = state_at(&change, now);
    let is_late = change.content.is_emergency && state == ChangeState::Applied;
    if state != ChangeState::Open && !is_late {
        return Err(ChangeProblem::Closed(state).into());
    }
    if new.verdict != Verdict::Comment {
        let policy = policy_of(core, &mut tx, org).await?;
        if !policy.reviewers.contains(&officer.role) {
            return Err(ChangeProblem::RoleReviews.into());
        }
        if officer.is(&change.requested_by) {
            return Err(ChangeProblem::RequesterReviews.into());
        }
        let uploader = uploader(&mut tx, &change).await?;
        if uploader.is_some_and(|uploader| officer.is(&uploader)) {
            return Err(ChangeProblem::UploaderReviews.into());
        }
    }
    let review = ChangeReview {
        by: owner.actor.clone(),
        role: officer.role,
        token: officer.token.clone(),
        verdict: new.verdict,
        comment,
        at: now,
        void: None,
    };
    rows::insert_review(&mut tx, &change, &review).await?;
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
    if !officer.is(&change.requested_by) && officer.role != Role::Admin {
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

/// Compares the candidate of an open request on past records again. Earlier approvals were about another
/// comparison and become void.
pub async fn compare(
    core: &Core,
    management: &Arc<ComponentManager>,
    officer: &ChangeOfficer,
    id: &str,
) -> Result<ChangeView, ServiceError> {
    let (owner, org, now) = (officer.owner(), &officer.caller.org, core.clock.now());
    let change = find(core, org, id).await?;
    still_open(&change, now)?;
    let component = match &change.content.change {
        RequestedChange::Activate {
            slot, component_id, ..
        } if !slot.is_provider() => get(core, &owner, component_id.as_str()).await?,
        _ => {
            let message = "Only rules are compared on past records";
            return Err(ServiceError::Conflict(message.into()));
        }
    };
    let comparison = compared(core, management, officer, &component).await?;
    let mut tx = core.store.begin().await?;
    components::lock_changes(&mut tx).await?;
    let mut change = find_in(&mut tx, org, id).await?;
    still_open(&change, now)?;
    change.content.comparison = Some(comparison.clone());
    rows::set_content(&mut tx, &change).await?;
    rows::void_approvals(&mut tx, &change, VoidReason::ComparedAgain).await?;
    let details = json!({ "change_id": change.id, "comparison": comparison });
    record(core, &mut tx, &owner, "change.compared", details).await?;
    tx.commit().await?;
    view(core, change).await
}

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
        RequestedChange::Activate { component_id, .. } => {
            let component = get(core, &owner, component_id.as_str()).await?;
            following::prepare(core, management, &component).await?;
            Some(component)
        }
        _ => None,
    };
    let mut tx = core.store.begin().await?;
    components::begin_change(&mut tx).await?;
    // Again, now that no other change can come in between; one that came before is effective by now.
    let now = core.clock.now();
    let change = find_in(&mut tx, org, id).await?;
    still_open(&change, now)?;
    if let Err(problem) = unchanged(core, &mut tx, &change, component.as_ref(), now).await? {
        let state = ChangeState::Outdated;
        rows::close(&mut tx, &change, state, &owner.actor, now, None).await?;
        let details = json!({ "change_id": change.id, "code": problem.code() });
        record(core, &mut tx, &owner, "change.outdated", details).await?;
        tx.commit().await?;
        return Err(problem.into());
    }
    let approved_by = permit(core, &mut tx, &change, now).await?;
    let made = make(core, &mut tx, &owner, &change, component, now).await?;
    let mut change = change;
    let policy = policy_of(core, &mut tx, org).await?;
    change.content.approvals_required = Some(policy.reviews_required);
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

/// Whether everything that was approved is still as it was.
async fn unchanged(
    core: &Core,
    tx: &mut WriteTransaction,
    change: &ComponentChange,
    component: Option<&Component>,
    now: Timestamp,
) -> Result<Result<(), ChangeProblem>, ServiceError> {
    let (org, content) = (&change.org, &change.content);
    let instance = match &content.change {
        RequestedChange::Policy { previous, .. } => {
            let same = policy_of(core, tx, org).await? == *previous;
            return Ok(same.then_some(()).ok_or(ChangeProblem::BaseMoved));
        }
        RequestedChange::Activate { slot, instance, .. }
        | RequestedChange::RollBack { slot, instance, .. } => activation::instance_of(
            core,
            &ComponentOwner::of(org.clone()),
            *slot,
            instance.as_deref(),
        )?,
    };
    if let (RequestedChange::Activate { component: was, .. }, Some(is)) =
        (&content.change, component)
        && is.identity != *was
    {
        return Ok(Err(ChangeProblem::ComponentChanged));
    }
    let base = base(tx, org, &content.change, &instance, now).await?;
    let same = base.digest == content.base_digest;
    Ok(same.then_some(()).ok_or(ChangeProblem::BaseMoved))
}

/// Returns who approved a change, if that is enough.
async fn permit(
    core: &Core,
    tx: &mut WriteTransaction,
    change: &ComponentChange,
    now: Timestamp,
) -> Result<Vec<String>, ServiceError> {
    let (org, content) = (&change.org, &change.content);
    let policy = policy_of(core, tx, org).await?;
    let reviews = rows::reviews(tx, org, &change.id).await?;
    let uploader = uploader(tx, change).await?;
    let approved_by = approvals(change, &reviews, &policy, uploader.as_deref());
    if content.is_emergency {
        return match approved_by.is_empty() {
            true => Err(ChangeProblem::SecondPersonMissing.into()),
            false => Ok(approved_by),
        };
    }
    let required = usize::try_from(policy.reviews_required).unwrap_or(usize::MAX);
    if approved_by.len() < required {
        let given = approved_by.len();
        return Err(ChangeProblem::ApprovalsMissing { given, required }.into());
    }
    let is_rules = content
        .change
        .slot()
        .is_some_and(|slot| !slot.is_provider());
    let activates = matches!(content.change, RequestedChange::Activate { .. });
    let fresh = match (&content.comparison, content.change.slot()) {
        (Some(comparison), Some(slot)) => {
            // Also those of the installation may have changed.
            let active = following::active_rules(core, org, slot, now)?;
            comparison.at + hours(policy.shadow_valid_hours) > now && comparison.active == active
        }
        _ => false,
    };
    match policy.shadow_required && is_rules && activates && !fresh {
        true => Err(ChangeProblem::ShadowStale.into()),
        false => Ok(approved_by),
    }
}

/// Makes a permitted change. Returns the activation that it made or rolled back.
async fn make(
    core: &Core,
    tx: &mut WriteTransaction,
    owner: &ComponentOwner,
    change: &ComponentChange,
    component: Option<Component>,
    now: Timestamp,
) -> Result<Option<ActivationId>, ServiceError> {
    let content = &change.content;
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
    }
}

fn hours(hours: u32) -> Duration {
    Duration::from_secs(u64::from(hours) * 3600)
}
