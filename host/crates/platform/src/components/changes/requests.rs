//! Requesting a change, and comparing its candidate with the active rules.

use std::sync::Arc;

use holdfast_store::SqlConnection;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::super::activation::{self, ActivationRequest};
use super::super::behaviour::{self, DiffRequest};
use super::super::shadow::{self, ReplayRequest};
use super::super::{ComponentManager, following, get, probe, record};
use super::approvers::{self, ProposedAccess};
use super::policy::{check_policy, policy};
use super::{ChangeOfficer, ChangeView, find, find_in, funding, hours, still_open, view};
use crate::access::single_sign_on::ChangeSingleSignOn;
use crate::access::users::NewUser;
use crate::funding_acts::packs::{NewVersion, PackSubscription};
use crate::providers::instance::InstanceConfig;
use crate::{Core, ServiceError, ValidationIssue, organizations};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::{Component, ComponentActivation, Slot};
use holdfast_domain::component_change::{
    ChangeComparison, ChangeContent, ChangePolicy, ChangeSource, ChangeState, ComponentChange,
    ProviderProbe, RequestedChange, VoidReason, change_permission,
};
use holdfast_domain::funding::FundingMode;
use holdfast_domain::hash::sha256;
use holdfast_domain::id::{ActivationId, ChangeId, OrgId};
use holdfast_domain::organization::Role;
use holdfast_store::{StoreError, component_changes as rows, components};

/// Open change requests of an organization.
const OPEN: i64 = 100;

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
    /// Changes the sign-in at the organization's own issuer, as `single_sign_on` of `PATCH /organization`; null ends it.
    SingleSignOn {
        /// Null: no issuer from now on.
        single_sign_on: Option<Box<ChangeSingleSignOn>>,
    },
    /// Leads new signing links to a host of the organization's own, as `PUT /organization/link-host`.
    LinkHost {
        /// Name of the host, which has to show the organization's id first.
        #[schemars(length(min = 1, max = 253))]
        link_host: String,
    },
    /// Invites a person, as `POST /users`.
    InviteUser {
        #[schemars(email, length(max = 200))]
        email: String,
        role: Role,
    },
    /// Gives a user another role, as `PATCH /users/{id}`.
    ChangeRole { user_id: String, role: Role },
    /// Separates a user from the account at the issuer, which the next sign-in binds again. With `into_user_id` it
    /// belongs to that user from now on, and the access of the first ends.
    MoveIdentity {
        user_id: String,
        /// User who gets the account; null separates it only.
        into_user_id: Option<String>,
    },
    /// Waives a stipulation of an envelope for the reason of the request, as
    /// `POST /envelopes/{id}/stipulations/{stipulation}/waiver`; or drops one of a template, and so of its envelopes.
    WaiveStipulation {
        /// Envelope; instead of a template.
        envelope_id: Option<String>,
        /// Template; instead of an envelope.
        template_id: Option<String>,
        /// Such as `proof_of_income`.
        #[schemars(length(min = 1, max = 64))]
        kind: String,
    },
    /// Publishes a funding pack, as `POST /funding-packs`, or with `pack_id` a further version of one.
    #[schemars(extend("examples" = [{
        "action": "publish_funding_pack", "pack_id": null, "name": "Prime",
        "component_id": "cmp_01jdk7m3e8f4x9s2w5v6b0c1dc", "description": "Terms up to 72 months",
    }]))]
    PublishFundingPack {
        /// Pack that gets a version; null publishes a new one.
        pack_id: Option<String>,
        /// Name of a new pack.
        #[schemars(length(min = 1, max = 100))]
        name: Option<String>,
        #[serde(flatten)]
        version: NewVersion,
    },
    /// Subscribes to a funding pack in place of another one, or ends the subscription to it, as
    /// `POST /funding-packs/{id}/subscription`.
    #[schemars(extend("examples" = [{
        "action": "subscribe_funding_pack", "pack_id": "fpk_01jdk7m3e8f4x9s2w5v6b0c1dc", "subscribed": true,
        "version": null,
    }]))]
    SubscribeFundingPack {
        /// The pack.
        pack_id: String,
        #[serde(flatten)]
        subscription: PackSubscription,
    },
    /// Changes what becomes of contracts that their funding rules stop, as `funding` of `PATCH /organization`.
    SetFunding { funding: FundingMode },
}

change_permission!(ProposedChange);

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
    // A policy, a role or a sign-in that passes without reviews would end the protection itself.
    if new.emergency && new.change.slot().is_none() {
        return Err(ServiceError::invalid(
            "invalid_value",
            &["emergency"],
            "false",
            "true",
            "Only components are changed in an emergency",
        ));
    }

    // Before the lock, which is one for all organizations: a candidate is compiled, compared and a vendor
    // asked.
    let proposed = propose(core, management, officer, &policy, new.change).await?;
    let compares = match &proposed.component {
        Some(component) if proposed.change.activates_rules() && !new.emergency => {
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
    // Counted under the lock, so that concurrent requests do not exceed it together.
    if rows::count_open(&mut tx, org, now).await? >= OPEN {
        let message = format!("There are {OPEN} open change requests; apply or withdraw some");
        return Err(ServiceError::Conflict(message));
    }

    // The approvals are about these activations. `apply` compares their digest.
    let base = base(&mut tx, org, &proposed.change, &proposed.instance, now).await?;
    if let RequestedChange::RollBack {
        slot,
        activation_id,
        ..
    } = &proposed.change
    {
        let all = components::live_of(&mut tx, Some(org), *slot).await?;
        let named = |one: &ComponentActivation| {
            one.id == *activation_id && one.instance == proposed.instance
        };
        if !all.iter().any(named) {
            return Err(ServiceError::NotFound("Activation"));
        }
    }

    // `approvals_required` is fixed when the change is applied; until then it follows the policy.
    let change = ComponentChange {
        id: ChangeId::new(),
        org: org.clone(),
        content: ChangeContent {
            change: proposed.change,
            reason: new.reason,
            source: new.source,
            is_emergency: new.emergency,
            base: base.current,
            base_digest: base.digest,
            comparison,
            probe: proposed.probe,
            approvals_required: None,
            identity: officer.identity.clone(),
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
        let message = "Say why the change is made";
        issues.push(ValidationIssue::of_length(
            &["reason"],
            &new.reason,
            500,
            message,
        ));
    }

    // Rules have a repository that reviewers can read. A provider's component may come from its vendor.
    if new.change.activates_rules() && new.source.is_none() {
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
            let (path, message) = (["source", member], "Name the repository and the commit");
            issues.push(ValidationIssue::of_length(&path, text, limit, message));
        }
    }

    if issues.is_empty() {
        Ok(())
    } else {
        Err(ServiceError::Invalid(issues))
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

impl CheckedChange {
    /// Returns a change that is of no slot, with a sealed secret that belongs to it.
    fn of_no_slot((change, config): ProposedAccess) -> Self {
        Self {
            change,
            instance: String::new(),
            component: None,
            config,
            probe: None,
        }
    }
}

async fn propose(
    core: &Core,
    management: &Arc<ComponentManager>,
    officer: &ChangeOfficer,
    present: &ChangePolicy,
    proposed: ProposedChange,
) -> Result<CheckedChange, ServiceError> {
    let owner = &officer.owner();
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
            // Reviewers see the vendor's answer with the request, because they cannot see the secrets.
            let probe = if slot.is_provider() {
                following::prepare(core, management, &checked.component).await?;
                probe::probe(core, management, owner, &checked).await?
            } else {
                None
            };

            Ok(CheckedChange {
                change: RequestedChange::Activate {
                    slot,
                    instance,
                    component_id: checked.component.id.clone(),
                    component: checked.component.identity.clone(),
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
            // Resolved now: the approvals are about this activation, even if another one is current later.
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
            let previous = present.clone();
            let change = RequestedChange::Policy { policy, previous };
            Ok(CheckedChange::of_no_slot((change, None)))
        }
        ProposedChange::SingleSignOn { single_sign_on } => {
            let proposed =
                approvers::propose_sign_on(core, officer, single_sign_on.map(|new| *new)).await?;
            Ok(CheckedChange::of_no_slot(proposed))
        }
        ProposedChange::LinkHost { link_host } => {
            let proposed = approvers::propose_link_host(core, officer, &link_host).await?;
            Ok(CheckedChange::of_no_slot(proposed))
        }
        ProposedChange::InviteUser { email, role } => {
            let proposed = approvers::propose_invitation(core, officer, &NewUser { email, role })?;
            Ok(CheckedChange::of_no_slot(proposed))
        }
        ProposedChange::ChangeRole { user_id, role } => {
            let proposed = approvers::propose_role(core, officer, &user_id, role).await?;
            Ok(CheckedChange::of_no_slot(proposed))
        }
        ProposedChange::MoveIdentity {
            user_id,
            into_user_id,
        } => {
            let into = into_user_id.as_deref();
            let proposed = approvers::propose_move(core, officer, &user_id, into).await?;
            Ok(CheckedChange::of_no_slot(proposed))
        }
        ProposedChange::WaiveStipulation {
            envelope_id,
            template_id,
            kind,
        } => {
            let of = (envelope_id.as_deref(), template_id.as_deref());
            let change = funding::propose_waiver(core, officer, of, kind).await?;
            Ok(CheckedChange::of_no_slot((change, None)))
        }
        ProposedChange::PublishFundingPack {
            pack_id,
            name,
            version,
        } => {
            let change = funding::propose_pack(core, officer, pack_id, name, version).await?;
            Ok(CheckedChange::of_no_slot((change, None)))
        }
        ProposedChange::SubscribeFundingPack {
            pack_id,
            subscription,
        } => {
            let org = &officer.caller.org;
            let change = funding::propose_subscription(core, org, &pack_id, &subscription).await?;
            Ok(CheckedChange::of_no_slot((change, None)))
        }
        ProposedChange::SetFunding { funding } => {
            let organization = organizations::read(core, &officer.caller.org).await?;
            let previous = organization.settings.funding;
            let change = RequestedChange::SetFunding { funding, previous };
            Ok(CheckedChange::of_no_slot((change, None)))
        }
    }
}

/// The activations on which a change is made.
pub(super) struct ChangeBase {
    /// The effective one.
    pub current: Option<ActivationId>,
    /// SHA-256 of the ids of all, those that are scheduled included.
    pub digest: String,
}

/// Returns the present activations where a change is made.
pub(super) async fn base(
    connection: &mut SqlConnection,
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
    // Sorted, so that the digest does not depend on the database.
    ids.sort_unstable();

    Ok(ChangeBase {
        current: activation::current(&all, instance, now).map(|one| one.id.clone()),
        digest: sha256(ids.join(" ").as_bytes()),
    })
}

/// Compares a candidate with the active rules on past records and on generated facts.
async fn compared(
    core: &Core,
    management: &Arc<ComponentManager>,
    officer: &ChangeOfficer,
    component: &Component,
) -> Result<ChangeComparison, ServiceError> {
    // By the service: a report that the requester hands in could be about another component.
    let (caller, all) = (&officer.caller, ReplayRequest::default());
    let id = component.id.as_str();
    let report = shadow::replay(core, management, caller, id, &all, |_| {}).await?;
    let generated = if behaviour::can_generate(component.slot) {
        let all = DiffRequest::default();
        let diff = behaviour::diff(core, management, caller, id, &all).await?;
        Some(behaviour::evidence(diff))
    } else {
        None
    };

    Ok(ChangeComparison {
        generated,
        at: core.clock.now(),
        active: report.active,
        compared: report.compared,
        differing: report.differing,
        failed: report.failed,
        groups: report.groups,
    })
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

    // Before the lock, because the rules run for a minute or more.
    let comparison = compared(core, management, officer, &component).await?;
    let mut tx = core.store.begin().await?;
    components::lock_changes(&mut tx).await?;
    // Again under the lock: a reviewer may have closed the request meanwhile.
    let mut change = find_in(&mut tx, org, id).await?;
    // A comparison takes a minute or more, in which the request may expire.
    still_open(&change, core.clock.now())?;
    change.content.comparison = Some(comparison.clone());
    rows::set_content(&mut tx, &change).await?;

    rows::void_approvals(&mut tx, &change, VoidReason::ComparedAgain).await?;
    let details = json!({ "change_id": change.id, "comparison": comparison });
    record(core, &mut tx, &owner, "change.compared", details).await?;
    tx.commit().await?;

    view(core, change).await
}
