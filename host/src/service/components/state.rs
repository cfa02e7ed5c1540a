//! Desired states of components: signed files from a repository. Applying one makes change requests, or for the
//! installation's own components, on which no organization decides, the activations themselves.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{ED25519, UnparsedPublicKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::AnyConnection;

use super::activation::{self, ActivationRequest, component_at};
use super::changes::{self, ChangeOfficer, ChangeProblem, NewChange, ProposedChange};
use super::{ComponentManager, ComponentOwner, record};
use crate::domain::clock::Timestamp;
use crate::domain::component::{Component, ComponentActivation, InstanceReference};
use crate::domain::component_change::{ChangeState, ComponentChange, RequestedChange};
use crate::domain::component_state::{
    DesiredComponent, DesiredState, DesiredStatus, DesiredView, StateSigners, signed_bytes,
};
use crate::domain::hash::sha256;
use crate::domain::id::OrgId;
use crate::service::signing::provider_instance::InstanceConfig;
use crate::service::{Core, ServiceError, ValidationIssue};
use crate::store::component_state::StoredState;
use crate::store::{
    StoreError, component_changes, component_state as rows, components, organizations,
};

/// Change requests that are searched for an open one.
const REQUESTS: i64 = 200;
/// Longest state, in bytes.
const LONGEST: usize = 256 * 1024;

/// Secrets of provider instances by place, for example `provider.signing/acme`.
pub type StateSecrets = BTreeMap<String, BTreeMap<String, String>>;

/// A state with its signatures.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "state": "version: 1\norganization: org_01jdk7m3e8f4x9s2w5v6b0c1da\ncomponents:\n  - slot: rules.compliance\n    …",
    "signatures": ["9Jx…"], "dry_run": true,
}]))]
pub struct SignedState {
    /// Content of `holdfast.components.yaml`.
    #[schemars(length(max = 262_144))]
    pub state: String,
    /// Ed25519 signatures in base64, over `holdfast component state v1`, a line feed and the state.
    #[serde(default)]
    #[schemars(length(max = 20))]
    pub signatures: Vec<String>,
    /// Secrets that the state refers to, by slot and instance (`provider.signing/acme`) and by name.
    #[serde(default)]
    pub secrets: StateSecrets,
    /// Only compares. Needs no signatures.
    #[serde(default)]
    pub dry_run: bool,
}

/// A desired state, compared with the active components.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StateView {
    /// Version of the state.
    pub version: u64,
    /// SHA-256 of the file, lower-case hex.
    pub sha256: String,
    /// Names of the keys that signed it.
    pub signed_by: Vec<String>,
    /// Number of signatures that it needs.
    pub signatures_required: usize,
    /// Who set it; null in a dry run.
    pub set_by: Option<String>,
    pub set_at: Option<Timestamp>,
    pub components: Vec<DesiredView>,
}

/// Parses a state of an owner.
pub fn parsed(owner: &ComponentOwner, text: &str) -> Result<DesiredState, ServiceError> {
    let refused = |why: String| {
        let issue = ValidationIssue::new("invalid_value", &["state"], "a state", "a text", why);
        ServiceError::Invalid(vec![issue])
    };
    if text.len() > LONGEST {
        return Err(refused(format!("It has more than {LONGEST} bytes")));
    }
    let state: DesiredState =
        serde_saphyr::from_str(text).map_err(|error| refused(error.to_string()))?;
    if let Some(problem) = state.problem() {
        return Err(refused(problem));
    }
    if state.organization != owner.org {
        let whose = owner.org.as_ref().map_or("the installation", OrgId::as_str);
        return Err(refused(format!("It is not the state of {whose}")));
    }
    Ok(state)
}

/// Returns the last state that was set, compared with the active components.
pub async fn current(
    core: &Core,
    owner: &ComponentOwner,
) -> Result<Option<StateView>, ServiceError> {
    let mut connection = core.store.read().await?;
    let Some(stored) = rows::get(&mut connection, owner.org.as_ref()).await? else {
        return Ok(None);
    };
    let signers = signers(core, &mut connection, owner).await?;
    let state = parsed(owner, &stored.content)?;
    let mut components = Vec::new();
    for desired in &state.components {
        let config = None;
        let compared = compared(core, &mut connection, owner, desired, config).await?;
        components.push(compared.view);
    }
    Ok(Some(StateView {
        version: stored.version,
        sha256: sha256(stored.content.as_bytes()),
        signed_by: stored.signed_by,
        signatures_required: signers.required(),
        set_by: Some(stored.set_by),
        set_at: Some(stored.set_at),
        components,
    }))
}

/// Compares a state with the active components, and unless it is a dry run, sets and applies it. May be repeated:
/// components that are active, scheduled or requested are left alone.
pub async fn apply(
    core: &Core,
    management: &Arc<ComponentManager>,
    owner: &ComponentOwner,
    officer: Option<&ChangeOfficer>,
    signed: &SignedState,
) -> Result<StateView, ServiceError> {
    let state = parsed(owner, &signed.state)?;
    let mut connection = core.store.read().await?;
    let signers = signers(core, &mut connection, owner).await?;
    drop(connection);
    let signed_by = signed_by(&signers, signed);
    if !signed.dry_run {
        enough(&signers, &signed_by)?;
    }
    let configs = configs(&state, &signed.secrets, signed.dry_run)?;
    let mut set_at = None;
    if !signed.dry_run {
        set_at = Some(set(core, owner, &state, signed, &signed_by).await?);
    }
    let mut views = Vec::new();
    for desired in &state.components {
        let config = configs.get(&desired.place());
        let mut connection = core.store.read().await?;
        let mut found = compared(core, &mut connection, owner, desired, config).await?;
        drop(connection);
        if !signed.dry_run
            && found.view.status == DesiredStatus::Drifted
            && let Some(component) = &found.component
        {
            let change = PlannedActivation {
                state: &state,
                desired,
                component,
                config: config.cloned(),
            };
            change
                .make(core, management, owner, officer, &mut found.view)
                .await?;
        }
        views.push(found.view);
    }
    Ok(StateView {
        version: state.version,
        sha256: sha256(signed.state.as_bytes()),
        signed_by,
        signatures_required: signers.required(),
        set_by: set_at.map(|_| owner.actor.clone()),
        set_at,
        components: views,
    })
}

/// Refuses a state with too few signatures.
pub async fn check_signatures(
    core: &Core,
    owner: &ComponentOwner,
    signed: &SignedState,
) -> Result<(), ServiceError> {
    let mut connection = core.store.read().await?;
    let signers = signers(core, &mut connection, owner).await?;
    enough(&signers, &signed_by(&signers, signed))
}

fn enough(signers: &StateSigners, signed_by: &[String]) -> Result<(), ServiceError> {
    let (given, required) = (signed_by.len(), signers.required());
    match given >= required {
        true => Ok(()),
        false => Err(ChangeProblem::SignaturesMissing { given, required }.into()),
    }
}

/// Returns who signs the states of an owner: its own signers, or else those of the installation.
async fn signers(
    core: &Core,
    connection: &mut AnyConnection,
    owner: &ComponentOwner,
) -> Result<StateSigners, ServiceError> {
    let installation = || core.config.components.state.clone();
    let Some(org) = &owner.org else {
        return Ok(installation());
    };
    let organization = organizations::get(connection, org).await?;
    let own = organization.map(|found| found.settings.component_changes.state);
    Ok(own
        .filter(|own| !own.keys.is_empty())
        .unwrap_or_else(installation))
}

/// Returns the names of the keys that signed a state.
fn signed_by(signers: &StateSigners, signed: &SignedState) -> Vec<String> {
    let message = signed_bytes(&signed.state);
    let signatures: Vec<Vec<u8>> = signed
        .signatures
        .iter()
        .filter_map(|signature| STANDARD.decode(signature.trim()).ok())
        .collect();
    let has_signed = |key: &str| {
        let key = UnparsedPublicKey::new(&ED25519, hex::decode(key).unwrap_or_default());
        let mut signatures = signatures.iter();
        signatures.any(|signature| key.verify(&message, signature).is_ok())
    };
    let keys = signers.keys.iter();
    keys.filter(|(_, key)| has_signed(key))
        .map(|(name, _)| name.clone())
        .collect()
}

/// Returns the settings of provider instances by place, with their secrets. A dry run may lack secrets; then their
/// settings are not compared.
fn configs(
    state: &DesiredState,
    secrets: &StateSecrets,
    dry_run: bool,
) -> Result<BTreeMap<String, InstanceConfig>, ServiceError> {
    let (mut configs, mut issues) = (BTreeMap::new(), Vec::new());
    for desired in &state.components {
        let (Some(config), place) = (&desired.config, desired.place()) else {
            continue;
        };
        let given = secrets.get(&place);
        let missing = config
            .secrets
            .keys()
            .find(|name| !given.is_some_and(|given| given.contains_key(*name)));
        if let Some(name) = missing {
            if !dry_run {
                issues.push(ValidationIssue::new(
                    "invalid_type",
                    &["secrets", &place, name],
                    "a text",
                    "undefined",
                    "The state refers to this secret",
                ));
            }
            continue;
        }
        let named = given.into_iter().flatten();
        let secrets: BTreeMap<&String, &String> = named
            .filter(|(name, _)| config.secrets.contains_key(*name))
            .collect();
        let mut value = json!({
            "base_url": config.base_url, "allow_hosts": config.allow_hosts,
            "settings": config.settings, "secrets": secrets,
        });
        if let Some(seconds) = config.timeout_seconds {
            value["timeout_seconds"] = json!(seconds);
        }
        match serde_json::from_value(value) {
            Ok(config) => {
                configs.insert(place, config);
            }
            Err(error) => issues.push(ValidationIssue::new(
                "invalid_value",
                &["state"],
                "settings of a provider",
                place.as_str(),
                error.to_string(),
            )),
        }
    }
    match issues.is_empty() {
        true => Ok(configs),
        false => Err(ServiceError::Invalid(issues)),
    }
}

/// Stores a state, with an entry of the component ledger.
async fn set(
    core: &Core,
    owner: &ComponentOwner,
    state: &DesiredState,
    signed: &SignedState,
    signed_by: &[String],
) -> Result<Timestamp, ServiceError> {
    let org = owner.org.as_ref();
    let mut tx = core.store.begin().await?;
    components::lock_changes(&mut tx).await?;
    let now = core.clock.now();
    let before = rows::get(&mut tx, org).await?;
    match before {
        // The same state again.
        Some(before) if before.content == signed.state => return Ok(before.set_at),
        Some(before) if state.version <= before.version => {
            return Err(ServiceError::Conflict(format!(
                "Version {} was set before; count up the version of the state",
                before.version
            )));
        }
        _ => {}
    }
    let stored = StoredState {
        version: state.version,
        content: signed.state.clone(),
        signed_by: signed_by.to_vec(),
        set_by: owner.actor.clone(),
        set_at: now,
    };
    rows::put(&mut tx, org, &stored).await?;
    let details = json!({
        "version": state.version, "sha256": sha256(signed.state.as_bytes()), "signed_by": signed_by,
        "source": state.source,
    });
    record(core, &mut tx, owner, "state.set", details).await?;
    tx.commit().await?;
    Ok(now)
}

/// Desired component, compared with the active one.
struct ComparedComponent {
    view: DesiredView,
    /// The desired component, if it was uploaded.
    component: Option<Component>,
}

async fn compared(
    core: &Core,
    connection: &mut AnyConnection,
    owner: &ComponentOwner,
    desired: &DesiredComponent,
    config: Option<&InstanceConfig>,
) -> Result<ComparedComponent, ServiceError> {
    let (org, now) = (owner.org.as_ref(), core.clock.now());
    let instance = desired.instance.as_deref().unwrap_or_default();
    let component = found(connection, owner, desired).await?;
    let live = components::live_of(connection, org, desired.slot).await?;
    let of_instance = live.iter().filter(|one| one.instance == instance);
    let is_desired = |one: &&&ComponentActivation| {
        component
            .as_ref()
            .is_some_and(|found| found.id == one.component)
    };
    let scheduled = of_instance.clone().filter(|one| one.effective_at > now);
    let is_scheduled = scheduled.clone().any(|one| is_desired(&&one));
    let in_effect = of_instance
        .filter(|one| one.effective_at <= now)
        .max_by_key(|one| one.effective_at);
    let active = match (in_effect, desired.slot.is_provider()) {
        (None, true) => None,
        _ => Some(
            component_at(core, connection, owner, desired.slot, instance)
                .await?
                .identity,
        ),
    };
    let same_settings = match (config, in_effect.and_then(|one| one.config.as_deref())) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(config), Some(sealed)) => {
            let org = org.cloned();
            let name = instance.to_owned();
            let at = InstanceReference { org, name };
            InstanceConfig::open(sealed, &core.cipher, &at).as_ref() == Some(config)
        }
    };
    let is_active = active
        .as_ref()
        .is_some_and(|active| active.sha256 == desired.sha256);
    let request = match (&component, org) {
        (Some(component), Some(org)) => requested(connection, org, component, desired, now).await?,
        _ => None,
    };
    let status = match () {
        () if is_active && same_settings => DesiredStatus::Active,
        () if is_scheduled => DesiredStatus::Scheduled,
        () if component.is_none() => DesiredStatus::Missing,
        () if request.is_some() => DesiredStatus::Requested,
        () => DesiredStatus::Drifted,
    };
    Ok(ComparedComponent {
        view: DesiredView {
            slot: desired.slot,
            instance: desired.instance.clone(),
            component: desired.identity(),
            effective_at: desired.effective_at,
            status,
            active: active.filter(|_| !is_active),
            change_id: request.map(|change| change.id),
            activation_id: None,
        },
        component,
    })
}

/// Returns the desired component of the owner or the installation. One with the same name and version and other
/// bytes is not it.
async fn found(
    connection: &mut AnyConnection,
    owner: &ComponentOwner,
    desired: &DesiredComponent,
) -> Result<Option<Component>, StoreError> {
    for org in [owner.org.as_ref(), None] {
        let (name, version) = (&desired.name, &desired.version);
        let found = components::by_version(connection, org, name, version).await?;
        let found = found.filter(|found| found.identity.sha256 == desired.sha256);
        if let Some(found) = found.filter(|found| found.slot == desired.slot) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Returns the open request to activate this component.
async fn requested(
    connection: &mut AnyConnection,
    org: &OrgId,
    component: &Component,
    desired: &DesiredComponent,
    now: Timestamp,
) -> Result<Option<ComponentChange>, StoreError> {
    let found = component_changes::list(connection, org, None, REQUESTS).await?;
    let is_it = |change: &ComponentChange| {
        let is_open = change.state == ChangeState::Open && change.expires_at > now;
        let activates = matches!(
            &change.content.change,
            RequestedChange::Activate { component_id, instance, .. }
                if *component_id == component.id && *instance == desired.instance
        );
        is_open && activates
    };
    Ok(found.into_iter().find(is_it))
}

/// Activation that brings a slot to its desired state.
struct PlannedActivation<'a> {
    state: &'a DesiredState,
    desired: &'a DesiredComponent,
    component: &'a Component,
    config: Option<InstanceConfig>,
}

impl PlannedActivation<'_> {
    /// Requests the change, and makes it if no approval is needed.
    async fn make(
        self,
        core: &Core,
        management: &Arc<ComponentManager>,
        owner: &ComponentOwner,
        officer: Option<&ChangeOfficer>,
        view: &mut DesiredView,
    ) -> Result<(), ServiceError> {
        let (desired, version) = (self.desired, self.state.version);
        let reason = || format!("Version {version} of the desired state");
        let reason = desired.reason.clone().unwrap_or_else(reason);
        // A date that has passed means from now on.
        let effective_at = desired.effective_at.filter(|at| *at > core.clock.now());
        let status = match effective_at {
            Some(_) => DesiredStatus::Scheduled,
            None => DesiredStatus::Active,
        };
        let component_id = self.component.id.to_string();
        let Some(officer) = officer else {
            let request = ActivationRequest {
                component_id,
                config: self.config,
                instance: desired.instance.clone(),
                reason: Some(reason),
                effective_at,
            };
            let made = activation::make(core, management, owner, desired.slot, request, false);
            view.activation_id = Some(made.await?.activation_id);
            view.status = status;
            return Ok(());
        };
        let new = NewChange {
            change: ProposedChange::Activate {
                slot: desired.slot,
                component_id,
                instance: desired.instance.clone(),
                config: self.config,
                effective_at,
            },
            reason,
            source: desired.source.clone().or_else(|| self.state.source.clone()),
            compare: false,
            emergency: false,
        };
        let change = changes::create(core, management, officer, new).await?;
        view.change_id = Some(change.change_id.clone());
        view.status = DesiredStatus::Requested;
        if change.approvals_required == 0 {
            let id = change.change_id.as_str();
            let made = changes::apply(core, management, officer, id).await?;
            view.activation_id = made.activation_id;
            view.status = status;
        }
        Ok(())
    }
}

/// Returns what the views of slots show of the desired state.
pub(super) async fn of_slots(
    core: &Core,
    owner: &ComponentOwner,
) -> Result<Vec<DesiredView>, ServiceError> {
    // A state of before may no longer be readable; then there is nothing to compare with.
    match current(core, owner).await {
        Ok(state) => Ok(state.map_or_else(Vec::new, |state| state.components)),
        Err(ServiceError::Invalid(_)) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
