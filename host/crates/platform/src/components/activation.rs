//! Activation of components: which one is active for an organization, and from when.

use std::collections::BTreeSet;
use std::sync::Arc;

use schemars::JsonSchema;
use semver::Version;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::changes::permit_alone;
use super::desired_state;
use super::following::{BrokenActivation, default_component, prepare, refresh};
use super::probe::probe;
use super::{ComponentManager, ComponentOwner, ComponentScope, ComponentView, get, named, record};
use crate::providers::instance::InstanceConfig;
use crate::{Core, ServiceError, ValidationIssue};
use holdfast_base::config::EMBEDDED;
use holdfast_components::room_component;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::{
    Component, ComponentActivation, InstanceReference, RolledBack, Slot,
};
use holdfast_domain::component_change::ProviderProbe;
use holdfast_domain::component_state::DesiredView;
use holdfast_domain::id::{ActivationId, ChangeId, ComponentId};
use holdfast_store::{WriteTransaction, components};

/// Number of activations in a slot's history.
const HISTORY: i64 = 100;
/// Depth of successive rollbacks per slot, owner and instance. Nodes read no older
/// activations.
const ROLLBACKS: usize = 10;

/// An activation of a component.
#[derive(Clone, Serialize, JsonSchema)]
pub struct ActivationView {
    pub activation_id: ActivationId,
    pub slot: Slot,
    /// Provider instance; null for rules.
    pub instance: Option<String>,
    pub component_id: ComponentId,
    pub scope: ComponentScope,
    pub reason: Option<String>,
    pub activated_by: String,
    pub created_at: Timestamp,
    /// Time from which the activation is effective.
    pub effective_at: Timestamp,
    pub rolled_back_at: Option<Timestamp>,
    pub rolled_back_by: Option<String>,
    pub rollback_reason: Option<String>,
    /// Callback URL to configure at the provider. Set for an organization's own instance of a
    /// provider that sends callbacks.
    pub callback_url: Option<String>,
    /// Result of a first call of the provider, in the answer to the activation of an organization's own
    /// instance. Null for rules, and for slots without a call that changes nothing.
    pub probe: Option<ProviderProbe>,
}

fn shown(core: &Core, activation: ComponentActivation) -> ActivationView {
    let (rolled_back_at, rolled_back_by, rollback_reason) = match activation.rolled_back {
        Some(back) => (Some(back.at), Some(back.by), back.reason),
        None => (None, None, None),
    };
    // Identity questions, text messages and conversions are answered within the call, so these slots have no callbacks.
    let calls_back = match activation.slot {
        Slot::Signing => Some("signing"),
        Slot::Payment => Some("payment"),
        Slot::Kba
        | Slot::Messaging
        | Slot::Conversion
        | Slot::Compliance
        | Slot::Lifecycle
        | Slot::Placement
        | Slot::Documents
        | Slot::Control
        | Slot::Funding => None,
    };

    let callback_url = match (&activation.org, &activation.config, calls_back) {
        (Some(org), Some(_), Some(kind)) => Some(format!(
            "{}/callbacks/{kind}/{}",
            core.config.base_url(),
            InstanceReference::own(org, &activation.instance)
        )),
        _ => None,
    };

    ActivationView {
        scope: ComponentScope::of(activation.org.as_ref()),
        activation_id: activation.id,
        slot: activation.slot,
        instance: Some(activation.instance).filter(|instance| !instance.is_empty()),
        component_id: activation.component,
        reason: activation.reason,
        activated_by: activation.activated_by,
        created_at: activation.created_at,
        effective_at: activation.effective_at,
        rolled_back_at,
        rolled_back_by,
        rollback_reason,
        callback_url,
        probe: None,
    }
}

/// A provider instance with its active component.
#[derive(Clone, Serialize, JsonSchema)]
pub struct InstanceView {
    pub instance: String,
    pub activation_id: ActivationId,
    pub component_id: ComponentId,
    /// Name of the component.
    pub name: String,
    pub version: String,
}

/// A slot with its active component and its history.
#[derive(Clone, Serialize, JsonSchema)]
pub struct SlotView {
    pub slot: Slot,
    pub world: String,
    /// Component that decides for the organization now; for providers, the one used for new
    /// templates.
    pub active: ComponentView,
    /// Provider instances that a component was activated for, by name; empty for rules.
    pub instances: Vec<InstanceView>,
    /// Reason why this node cannot load an activated component. Its calls are answered with 503,
    /// or by the previously active component.
    pub problem: Option<String>,
    /// What the desired state wants of this slot; empty if it does not name the slot.
    pub desired: Vec<DesiredView>,
    /// Activations of the organization and of the installation, newest first.
    pub history: Vec<ActivationView>,
}

/// Returns all slots with their active components and history.
pub async fn slots(
    core: &Core,
    management: &Arc<ComponentManager>,
    owner: &ComponentOwner,
) -> Result<Vec<SlotView>, ServiceError> {
    let desired = desired_state::of_slots(core, owner).await?;
    let mut connection = core.store.read().await?;
    let org = owner.org.as_ref();

    let mut all = Vec::new();
    for slot in Slot::ALL {
        let mut history =
            components::activations(&mut connection, org, Some(slot), HISTORY).await?;
        // Activations of the installation apply wherever the organization has none of its own.
        if org.is_some() {
            let global =
                components::activations(&mut connection, None, Some(slot), HISTORY).await?;
            history.extend(global);
        }

        history.sort_by(|one, other| other.id.cmp(&one.id));
        let instance = match (slot.is_provider(), org) {
            (true, Some(org)) => core.instance(slot, org),
            (true, None) => core.config.providers.default_of(slot).to_owned(),
            (false, _) => String::new(),
        };
        let instance = InstanceReference::parse(&instance);

        let active = core.components.active();
        let now = core.clock.now();
        let component = component_at(core, &mut connection, owner, slot, &instance.name).await?;
        let mut instances = Vec::new();
        let names = history.iter().map(|one| one.instance.as_str());
        let names: BTreeSet<&str> = names.filter(|name| !name.is_empty()).collect();
        for name in names {
            // All of its activations were rolled back, or the first one is still scheduled.
            let Some((live, _)) = active.at(slot, org, name, now) else {
                continue;
            };

            if let Some(component) = components::get(&mut connection, org, &live.component).await? {
                instances.push(InstanceView {
                    instance: name.to_owned(),
                    activation_id: live.activation.clone(),
                    component_id: component.id,
                    name: component.identity.name,
                    version: component.identity.version,
                });
            }
        }

        // Known to this node only: another node may have loaded the component.
        let broken = management.followed.broken();
        let of_slot =
            |one: &&BrokenActivation| history.iter().any(|known| known.id == one.activation);
        let problem = broken.iter().find(of_slot).map(|one| one.why.clone());
        all.push(SlotView {
            slot,
            world: slot.world().into(),
            active: component.into(),
            instances,
            problem,
            desired: desired_of(&desired, slot),
            history: history
                .into_iter()
                .map(|activation| shown(core, activation))
                .collect(),
        });
    }

    Ok(all)
}

/// Returns the active rules of a slot.
pub async fn active_component(
    core: &Core,
    connection: &mut holdfast_store::SqlConnection,
    owner: &ComponentOwner,
    slot: Slot,
) -> Result<Component, ServiceError> {
    component_at(core, connection, owner, slot, "").await
}

fn desired_of(desired: &[DesiredView], slot: Slot) -> Vec<DesiredView> {
    let of_slot = desired.iter().filter(|one| one.slot == slot);
    of_slot.cloned().collect()
}

/// Returns the active component of a slot, or of a provider's instance.
async fn component_at(
    core: &Core,
    connection: &mut holdfast_store::SqlConnection,
    owner: &ComponentOwner,
    slot: Slot,
    instance: &str,
) -> Result<Component, ServiceError> {
    let (org, now) = (owner.org.as_ref(), core.clock.now());
    let active = core.components.active();
    if let Some((live, _)) = active.at(slot, org, instance, now)
        && let Some(component) = components::get(connection, org, &live.component).await?
    {
        return Ok(component);
    }

    let built_in = default_component(slot, instance, now)?;

    // As it was stored first, with the time of that.
    let kept = components::get(connection, None, &built_in.id).await?;
    Ok(kept.unwrap_or(built_in))
}

/// Body of `POST /component-slots/{slot}/activate`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "component_id": "cmp_01jt8s5gq2e6m9x4k7w3c5d8fa", "reason": "Amended §9-105 takes effect",
    "effective_at": "2027-01-01T05:00:00.000Z",
}]))]
pub struct ActivationRequest {
    pub component_id: String,
    /// Configuration of the organization's own provider instance. If absent, the previous
    /// configuration stays.
    pub config: Option<InstanceConfig>,
    /// Provider instance: one of the organization's own, or for the operator a configured one.
    /// Cannot be `embedded`, which is built in. Rules have no instances.
    #[schemars(length(min = 1, max = 64))]
    pub instance: Option<String>,
    #[schemars(length(max = 500))]
    pub reason: Option<String>,
    /// Time from which the activation is effective, for example a statute's effective date.
    /// Defaults to now.
    pub effective_at: Option<Timestamp>,
}

/// Body of `POST /component-slots/{slot}/rollback`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "reason": "Check 4 refuses paper" }]))]
pub struct RollbackRequest {
    #[schemars(length(min = 1, max = 64))]
    pub instance: Option<String>,
    #[schemars(length(max = 500))]
    pub reason: Option<String>,
    /// Activation to roll back; defaults to the current one. Can name one that is not effective
    /// yet.
    pub activation_id: Option<String>,
}

/// An activation that was checked as far as possible without the present activations.
pub(super) struct CheckedActivation {
    pub component: Component,
    /// Empty for rules.
    pub instance: String,
    /// Sealed settings of the instance; none keeps the previous ones.
    pub config: Option<String>,
    pub reason: Option<String>,
    /// None: from now on.
    pub effective_at: Option<Timestamp>,
    /// Whether the component may be an older version of the active one.
    pub may_be_older: bool,
}

/// Checks a requested activation.
pub(super) async fn check(
    core: &Core,
    owner: &ComponentOwner,
    slot: Slot,
    request: ActivationRequest,
) -> Result<CheckedActivation, ServiceError> {
    let now = core.clock.now();
    let instance = instance_of(core, owner, slot, request.instance.as_deref())?;
    // Only the room's own component may read the room's records. An organization's component behind this name
    // would get them.
    if slot.is_provider() && instance == EMBEDDED {
        return Err(ServiceError::invalid(
            "reserved",
            &["instance"],
            "another instance",
            request.instance.as_deref().unwrap_or("undefined"),
            "embedded is the built-in instance, which no uploaded component answers for: name \
             another one",
        ));
    }

    let mut issues = Vec::new();
    if let Some(at) = request.effective_at
        && at < now
    {
        issues.push(ValidationIssue::new(
            "invalid_date",
            &["effective_at"],
            "a time to come",
            at.to_string(),
            "What was decided before cannot be decided anew",
        ));
    }

    if request.config.is_some() && !is_own(slot, owner, &instance) {
        issues.push(ValidationIssue::new(
            "unrecognized_keys",
            &["config"],
            "nothing",
            "an object",
            "Only a provider's instance of your own is set up here",
        ));
    }

    if let Some(config) = &request.config {
        issues.extend(config.issues(core.config.providers.allow_insecure));
    }

    if !issues.is_empty() {
        return Err(ServiceError::Invalid(issues));
    }

    // Last, because it reads the database, and the issues of the body are known without it.
    let component = get(core, owner, &request.component_id).await?;
    if component.slot != slot {
        return Err(ServiceError::Semantic(format!(
            "{} is for {}, not for {slot}",
            component.identity, component.slot
        )));
    }
    // By bytes, because an upload can have any name.
    if room_component().is_some_and(|room| room.identity.sha256 == component.identity.sha256) {
        return Err(ServiceError::Semantic(format!(
            "{} stands behind {EMBEDDED} and no other instance",
            component.identity
        )));
    }

    // Sealed before anything is stored, so that no row has the secrets in clear.
    let config = request.config.as_ref();
    let sealed = config.map(|config| config.sealed(&core.cipher, owner.org.as_ref(), &instance));
    Ok(CheckedActivation {
        config: sealed.transpose()?,
        component,
        instance,
        reason: request.reason,
        effective_at: request.effective_at,
        may_be_older: false,
    })
}

/// Activates a component in a slot.
pub async fn activate(
    core: &Core,
    management: &Arc<ComponentManager>,
    owner: &ComponentOwner,
    slot: Slot,
    request: ActivationRequest,
) -> Result<ActivationView, ServiceError> {
    // Refuse early, before a component is loaded and a provider asked. Decided again under the lock.
    permit_alone(core, &mut *core.store.read().await?, owner).await?;
    make(
        core,
        management,
        owner,
        slot,
        request,
        &ChangeConsent::Alone,
    )
    .await
}

/// Who agrees to an activation.
pub(super) enum ChangeConsent {
    /// The caller alone, where the policy permits that.
    Alone,
    /// Those who signed this version of the state. It may go back to an older version of a component, and these
    /// scheduled activations are rolled back.
    State {
        version: u64,
        instead_of: Vec<ActivationId>,
    },
}

/// Activates a component.
pub(super) async fn make(
    core: &Core,
    management: &Arc<ComponentManager>,
    owner: &ComponentOwner,
    slot: Slot,
    request: ActivationRequest,
    consent: &ChangeConsent,
) -> Result<ActivationView, ServiceError> {
    let mut checked = check(core, owner, slot, request).await?;
    checked.may_be_older = matches!(consent, ChangeConsent::State { .. });

    // Loaded here first, so that a component that cannot be loaded is not activated.
    prepare(core, management, &checked.component).await?;
    let probe = probe(core, management, owner, &checked).await?;
    let mut tx = core.store.begin().await?;
    // Begun after the vendor was asked: this lock is one for all organizations, and a vendor can be slow.
    components::begin_change(&mut tx).await?;

    // Again under the lock: the policy may have changed while the component was compiled.
    match consent {
        ChangeConsent::Alone => permit_alone(core, &mut tx, owner).await?,
        ChangeConsent::State {
            version,
            instead_of,
        } => {
            desired_state::still_set(&mut tx, owner, *version).await?;
            for activation in instead_of {
                let going_back = RollBack {
                    slot,
                    instance: &checked.instance,
                    activation: Some(activation.as_str()),
                    reason: checked.reason.clone(),
                };
                roll_back_in(core, &mut tx, owner, going_back, None).await?;
            }
        }
    }

    let activation = activate_in(core, &mut tx, owner, checked, None).await?;
    tx.commit().await?;

    // Applied on this node at once. Other nodes poll for it.
    refresh(core, management).await?;
    Ok(ActivationView {
        probe,
        ..shown(core, activation)
    })
}

/// Adds an activation, after [`components::begin_change`]: that serializes changes of components, so
/// that the present activations stay the same until the commit.
pub(super) async fn activate_in(
    core: &Core,
    tx: &mut WriteTransaction,
    owner: &ComponentOwner,
    checked: CheckedActivation,
    change: Option<&ChangeId>,
) -> Result<ComponentActivation, ServiceError> {
    let now = core.clock.now();
    let CheckedActivation {
        component,
        instance,
        config: new_config,
        reason,
        effective_at,
        may_be_older,
    } = checked;
    let (slot, effective_at) = (component.slot, effective_at.unwrap_or(now));
    let before = components::live_of(tx, owner.org.as_ref(), slot).await?;
    let before: Vec<&ComponentActivation> = counting(&before, &instance);

    let current = at(&before, now);
    if !may_be_older
        && let Some(current) = current
        && let Some(active) = components::get(tx, owner.org.as_ref(), &current.component).await?
    {
        older(&active, &component)?;
    }

    // An upgrade keeps the settings, so that no person has to enter the secrets again.
    let config = new_config
        .clone()
        .or_else(|| current.and_then(|current| current.config.clone()));
    if is_own(slot, owner, &instance) && config.is_none() {
        return Err(ServiceError::invalid(
            "invalid_type",
            &["config"],
            "an object",
            "undefined",
            "A new instance needs its settings",
        ));
    }

    let activation = ComponentActivation {
        id: ActivationId::new(),
        org: owner.org.clone(),
        slot,
        instance,
        component: component.id.clone(),
        config,
        reason,
        activated_by: owner.actor.clone(),
        created_at: now,
        effective_at,
        rolled_back: None,
    };

    components::activate(tx, &activation, &component).await?;

    // Nodes load all live activations, so those beyond the rollback depth leave the set.
    for old in superseded(&before, now) {
        components::supersede(tx, old, now).await?;
    }

    if let (Some(config), Some(current)) = (&new_config, current)
        && effective_at <= now
    {
        // Later activations that inherited the previous configuration get the new one, too.
        let later = before.iter().filter(|one| one.effective_at > now);
        for one in later.filter(|one| one.config == current.config) {
            components::set_config(tx, one, config).await?;
        }
    }

    let action = if effective_at > now {
        "component.scheduled"
    } else {
        "component.activated"
    };
    let mut details = json!({
        "activation_id": activation.id, "slot": slot, "instance": activation.instance,
        "component": named(&component), "reason": activation.reason, "effective_at": effective_at,
    });
    add_change(&mut details, change);

    record(core, tx, owner, action, details).await?;
    Ok(activation)
}

/// Names the change request behind a ledger entry, if there is one.
fn add_change(details: &mut Value, change: Option<&ChangeId>) {
    if let Some(change) = change {
        details["change_id"] = json!(change);
    }
}

/// Rolls back an activation, by default the current one. The previous one becomes active
/// again.
pub async fn roll_back(
    core: &Core,
    management: &Arc<ComponentManager>,
    owner: &ComponentOwner,
    slot: Slot,
    request: RollbackRequest,
) -> Result<ActivationView, ServiceError> {
    let instance = instance_of(core, owner, slot, request.instance.as_deref())?;
    let mut tx = core.store.begin().await?;
    components::begin_change(&mut tx).await?;
    // Under the lock, so that the policy cannot change before the commit.
    permit_alone(core, &mut tx, owner).await?;
    let RollbackRequest {
        reason,
        activation_id,
        ..
    } = request;
    let going_back = RollBack {
        slot,
        instance: &instance,
        activation: activation_id.as_deref(),
        reason,
    };
    let rolled_back = roll_back_in(core, &mut tx, owner, going_back, None).await?;

    tx.commit().await?;
    let shown = shown(core, rolled_back);
    refresh(core, management).await?;

    Ok(shown)
}

/// A rollback in a slot.
pub(super) struct RollBack<'a> {
    pub slot: Slot,
    /// Empty for rules.
    pub instance: &'a str,
    /// None: the current one.
    pub activation: Option<&'a str>,
    pub reason: Option<String>,
}

/// Rolls back an activation, after [`components::begin_change`].
pub(super) async fn roll_back_in(
    core: &Core,
    tx: &mut WriteTransaction,
    owner: &ComponentOwner,
    going_back: RollBack<'_>,
    change: Option<&ChangeId>,
) -> Result<ComponentActivation, ServiceError> {
    let now = core.clock.now();
    let RollBack {
        slot,
        instance,
        activation,
        reason,
    } = going_back;
    // Superseded activations are missing here: nodes no longer read them, so they cannot come back.
    let all = components::live_of(tx, owner.org.as_ref(), slot).await?;
    let counting = counting(&all, instance);
    let found = match activation {
        Some(id) => Some(
            *counting
                .iter()
                .find(|activation| activation.id.as_str() == id)
                .ok_or(ServiceError::NotFound("Activation"))?,
        ),
        None => at(&counting, now),
    };

    let Some(current) = found else {
        return Err(ServiceError::Conflict(
            "There is no activation to go back from".into(),
        ));
    };

    let rolled_back = RolledBack {
        at: now,
        by: owner.actor.clone(),
        reason,
    };
    components::roll_back(tx, current, &rolled_back).await?;
    let mut details = json!({
        "activation_id": current.id, "slot": slot, "instance": instance,
        "component_id": current.component, "reason": rolled_back.reason,
    });
    add_change(&mut details, change);

    record(core, tx, owner, "component.rolled_back", details).await?;
    Ok(ComponentActivation {
        rolled_back: Some(rolled_back),
        ..current.clone()
    })
}

/// Returns the activation of an instance that is effective at a time.
pub(super) fn current<'a>(
    all: &'a [ComponentActivation],
    instance: &str,
    now: Timestamp,
) -> Option<&'a ComponentActivation> {
    at(&counting(all, instance), now)
}

/// Returns the activations of one instance.
fn counting<'a>(all: &'a [ComponentActivation], instance: &str) -> Vec<&'a ComponentActivation> {
    all.iter()
        .filter(|activation| activation.instance == instance)
        .collect()
}

/// Returns the activation that is effective at a time.
fn at<'a>(counting: &[&'a ComponentActivation], now: Timestamp) -> Option<&'a ComponentActivation> {
    let begun = counting.iter().filter(|one| one.effective_at <= now);
    // Of two with the same time, the later one counts, as in `ActivationTable`.
    begun.max_by_key(|one| (one.effective_at, &one.id)).copied()
}

/// Returns the effective activations beyond the last ones, which stay available for rollback.
fn superseded<'a>(
    before: &[&'a ComponentActivation],
    now: Timestamp,
) -> Vec<&'a ComponentActivation> {
    let mut begun: Vec<_> = before
        .iter()
        .filter(|one| one.effective_at <= now)
        .collect();
    begun.sort_by_key(|one| std::cmp::Reverse((one.effective_at, &one.id)));
    // The new activation is one of the ten.
    begun.into_iter().skip(ROLLBACKS - 1).copied().collect()
}

/// Rejects activating an older version: going back is a rollback.
fn older(active: &Component, next: &Component) -> Result<(), ServiceError> {
    let version = |component: &Component| Version::parse(&component.identity.version).ok();
    // Versions are compared under one name only: two names have no order.
    if active.identity.name == next.identity.name && version(next) < version(active) {
        return Err(ServiceError::Conflict(format!(
            "{} is older than the active {}: roll back to go back",
            next.identity, active.identity.version
        )));
    }
    Ok(())
}

/// Validates the instance name of a request; empty for rules.
pub(super) fn instance_of(
    core: &Core,
    owner: &ComponentOwner,
    slot: Slot,
    named: Option<&str>,
) -> Result<String, ServiceError> {
    let refused = |expected: &str, message: String| {
        let received = named.unwrap_or("undefined");
        let path = &["instance"];
        ServiceError::invalid("invalid_string", path, expected, received, message)
    };

    if !slot.is_provider() {
        return match named {
            None => Ok(String::new()),
            Some(_) => Err(refused("undefined", "Rules have no instances".into())),
        };
    }

    let name = named.unwrap_or(EMBEDDED);
    // A name is part of callback addresses, and of references `org_….name`, which end at the dot.
    let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || !name.bytes().all(letters) {
        return Err(refused(
            "lower-case letters, digits and -",
            "Not an instance's name".into(),
        ));
    }

    let instances = core.config.providers.instances(slot);
    let configured = instances.is_some_and(|instances| instances.contains_key(name));
    if configured && owner.org.is_some() {
        return Err(refused(
            "an instance of your own",
            format!("{name} is an instance of the installation, whose operator says what runs it"),
        ));
    }
    if !configured && name != EMBEDDED && owner.org.is_none() {
        return Err(refused(
            "a configured instance",
            format!("{name} is not configured"),
        ));
    }

    Ok(name.to_owned())
}

/// Returns whether an organization configures this instance itself.
fn is_own(slot: Slot, owner: &ComponentOwner, instance: &str) -> bool {
    slot.is_provider() && owner.org.is_some() && instance != EMBEDDED
}
