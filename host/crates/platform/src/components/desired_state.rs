//! Desired states of components: signed files from a repository. Applying one makes change requests, or for the
//! installation's own components, on which no organization decides, the activations themselves.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_store::SqlConnection;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::activation::{self, ActivationRequest, ChangeConsent};
use super::changes::{self, ChangeOfficer, NewChange, ProposedChange};
use super::following::default_component;
use super::{ComponentManager, ComponentOwner, record};
use crate::problems::ChangeProblem;
use crate::providers::instance::InstanceConfig;
use crate::{Core, ServiceError, ValidationIssue};
use holdfast_base::config::SecretText;
use holdfast_base::publishers;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::{
    Component, ComponentActivation, ComponentIdentity, InstanceReference,
};
use holdfast_domain::component_change::RequestedChange;
use holdfast_domain::component_state::{
    DesiredComponent, DesiredConfig, DesiredState, DesiredStatus, DesiredView, StateSigners,
    signed_bytes,
};
use holdfast_domain::hash::sha256;
use holdfast_domain::id::{ActivationId, OrgId};
use holdfast_store::component_state::{SignedBy, StateSignature, StoredState};
use holdfast_store::{
    StoreError, component_changes, component_state as rows, components, organizations,
};

/// Longest state, in bytes. The ledger has all of them.
const LONGEST: usize = 64 * 1024;

/// Secrets of provider instances by place, for example `provider.signing/acme`.
pub type StateSecrets = BTreeMap<String, BTreeMap<String, SecretText>>;

/// A state with its signatures.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "state": "version: 1\norganization: org_01jdk7m3e8f4x9s2w5v6b0c1da\ncomponents:\n  - slot: rules.compliance\n    …",
    "signatures": ["9Jx…"], "dry_run": true,
}]))]
pub struct SignedState {
    /// Content of `holdfast.components.yaml`.
    #[schemars(length(max = 65_536))]
    pub state: String,
    /// Ed25519 signatures in base64, over `holdfast component state v1`, a line feed and the state.
    #[serde(default)]
    #[schemars(length(max = 20))]
    pub signatures: Vec<String>,
    /// Bundles of Sigstore about the file, as `cosign sign-blob` makes them.
    #[serde(default)]
    #[schemars(length(max = 20))]
    pub bundles: Vec<Value>,
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
    /// Names of the publishers that signed it.
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
    // Otherwise a state that one organization has signed could be applied to another.
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
        // Secrets are not stored with a state, so their values are not compared here.
        let config = None;
        let compared = compared(core, &mut connection, owner, desired, config).await?;
        components.push(compared.view);
    }

    Ok(Some(StateView {
        version: stored.version,
        sha256: sha256(stored.content.as_bytes()),
        signed_by: names(&stored.signatures),
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
    let signatures = valid_signatures(core, &signers, signed).await?;
    if !signed.dry_run {
        enough(&signers, &signatures)?;
    }

    // After the signatures: no secret is matched with a file that too few people have signed.
    let configs = configs(&state, &signed.secrets, signed.dry_run)?;
    let stored = if signed.dry_run {
        None
    } else {
        // Before the state is stored: one that cannot be applied must not use up its version.
        check_scheduled(core, owner, &state, &configs).await?;
        let approval = (&signers, signatures.as_slice());
        Some(set(core, owner, &state, signed, approval).await?)
    };

    // One after the other, each committed by itself. After a crash the same state is applied again, and skips
    // those that are done.
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
                instead_of: found.others.iter().map(|one| one.id.clone()).collect(),
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
        signed_by: names(&signatures),
        signatures_required: signers.required(),
        set_by: stored.as_ref().map(|stored| stored.set_by.clone()),
        set_at: stored.map(|stored| stored.set_at),
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
    drop(connection);
    let signatures = valid_signatures(core, &signers, signed).await?;
    enough(&signers, &signatures)
}

fn names(signatures: &[StateSignature]) -> Vec<String> {
    let names = signatures.iter().map(|one| one.name.clone());
    names.collect()
}

/// Refuses to go on with a version after another state was set.
pub(super) async fn still_set(
    connection: &mut SqlConnection,
    owner: &ComponentOwner,
    version: u64,
) -> Result<(), ServiceError> {
    let stored = rows::get(connection, owner.org.as_ref()).await?;
    if stored.is_some_and(|stored| stored.version == version) {
        Ok(())
    } else {
        Err(ServiceError::Conflict(
            "Another state was set meanwhile".into(),
        ))
    }
}

/// Refuses a state of an organization that contradicts a scheduled activation, which is rolled back by a change of its
/// own. For the installation, the state rolls it back.
async fn check_scheduled(
    core: &Core,
    owner: &ComponentOwner,
    state: &DesiredState,
    configs: &BTreeMap<String, InstanceConfig>,
) -> Result<(), ServiceError> {
    // A state of the installation rolls such an activation back itself.
    if owner.org.is_none() {
        return Ok(());
    }

    let mut connection = core.store.read().await?;
    for desired in &state.components {
        let place = desired.place();
        let config = configs.get(&place);
        let found = compared(core, &mut connection, owner, desired, config).await?;
        if let Some(other) = found.others.first() {
            return Err(ServiceError::Conflict(format!(
                "{place}: another activation is scheduled for {}; roll it back first",
                other.effective_at
            )));
        }
    }

    Ok(())
}

fn enough(signers: &StateSigners, signatures: &[StateSignature]) -> Result<(), ServiceError> {
    let (given, required) = (signatures.len(), signers.required());
    if given >= required {
        Ok(())
    } else {
        Err(ChangeProblem::SignaturesMissing { given, required }.into())
    }
}

/// Returns who signs the states of an owner: its own signers, or else those of the installation.
async fn signers(
    core: &Core,
    connection: &mut SqlConnection,
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

/// Returns the valid signatures of a state, one for each publisher.
async fn valid_signatures(
    core: &Core,
    signers: &StateSigners,
    signed: &SignedState,
) -> Result<Vec<StateSignature>, ServiceError> {
    // Off the async threads, because a bundle has a chain of certificates and a proof of the log to check.
    let (core, signers, signed) = (core.clone(), signers.clone(), signed.clone());
    let valid = tokio::task::spawn_blocking(move || verified(&core, &signers, &signed));
    let failed = |error| ServiceError::Internal(format!("signatures of a state: {error}"));
    valid.await.map_err(failed)
}

fn verified(core: &Core, signers: &StateSigners, signed: &SignedState) -> Vec<StateSignature> {
    let message = signed_bytes(&signed.state);
    let file = [signed.state.as_bytes()];
    // By name, so that two signatures of one person count once.
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for bundle in signed.bundles.iter().map(Value::to_string) {
        // A statement about the file is no approval of it.
        if let Ok((proven, _)) = core.bundles.verify(&signers.keys, &file, &bundle)
            && let (Some(name), None) = (proven.publisher, proven.predicate_type)
        {
            found.insert(name, bundle);
        }
    }

    for (name, signature) in publishers::ed25519(&signers.keys, &message, &signed.signatures) {
        found.insert(name.to_owned(), signature.to_owned());
    }

    // With key or identity: the name in the settings can belong to another key later.
    let found = found.into_iter().filter_map(|(name, signature)| {
        let publisher = signers.keys.get(&name)?;
        let publisher = match (&publisher.key, &publisher.identity, &publisher.issuer) {
            (Some(key), _, _) => SignedBy::Key {
                public_key: key.clone(),
            },
            (None, Some(identity), Some(issuer)) => SignedBy::Identity {
                identity: identity.clone(),
                issuer: issuer.clone(),
            },
            _ => return None,
        };

        Some(StateSignature {
            name,
            publisher,
            signature,
        })
    });

    found.collect()
}

/// Returns the settings of provider instances by place, with their secrets. A dry run may lack secrets; then
/// those are not compared.
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
        // Secrets that the state does not name were not reviewed, and are dropped.
        let secrets: BTreeMap<&String, &str> = named
            .filter(|(name, _)| config.secrets.contains_key(*name))
            .map(|(name, secret)| (name, secret.reveal()))
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

    if issues.is_empty() {
        Ok(configs)
    } else {
        Err(ServiceError::Invalid(issues))
    }
}

/// Stores a state, with an entry of the component ledger. The same state again is left as it was set.
async fn set(
    core: &Core,
    owner: &ComponentOwner,
    state: &DesiredState,
    signed: &SignedState,
    (signers_before, signatures): (&StateSigners, &[StateSignature]),
) -> Result<StoredState, ServiceError> {
    let org = owner.org.as_ref();
    let mut tx = core.store.begin().await?;
    components::lock_changes(&mut tx).await?;
    let now = core.clock.now();

    // Now no other change can come in between: a key may have lost its trust.
    if signers(core, &mut tx, owner).await? != *signers_before {
        let message = "Who signs states was changed meanwhile";
        return Err(ServiceError::Conflict(message.into()));
    }

    let before = rows::get(&mut tx, org).await?;
    match before {
        Some(before) if before.content == signed.state => return Ok(before),
        Some(before) if state.version <= before.version => {
            return Err(ServiceError::Conflict(format!(
                "Version {} was set before; count up the version of the state",
                before.version
            )));
        }
        _ => {}
    }

    // The version and the content are stored before any change, so that a crash leaves a state that can be
    // applied again.
    let stored = StoredState {
        version: state.version,
        content: signed.state.clone(),
        signatures: signatures.to_vec(),
        set_by: owner.actor.clone(),
        set_at: now,
    };
    rows::put(&mut tx, org, &stored).await?;

    let details = json!({
        "version": state.version, "sha256": sha256(signed.state.as_bytes()), "state": signed.state,
        "signatures": signatures,
    });
    record(core, &mut tx, owner, "state.set", details).await?;
    tx.commit().await?;

    Ok(stored)
}

/// Desired component, compared with the active one.
struct ComparedComponent {
    view: DesiredView,
    /// The desired component, if it was uploaded.
    component: Option<Component>,
    /// Scheduled activations that the state does not want, the earliest first.
    others: Vec<ComponentActivation>,
}

/// Whether settings are those that a state wants, apart from the values of secrets.
fn is_like(kept: &InstanceConfig, wanted: &DesiredConfig) -> bool {
    let url = wanted.base_url.parse().ok();
    // Only the names of secrets: their values are not at hand.
    let names = kept.secrets.keys().eq(wanted.secrets.keys());
    let timeout = wanted.timeout_seconds.unwrap_or(kept.timeout_seconds);
    url.as_ref() == Some(&kept.base_url)
        && names
        && kept.allow_hosts == wanted.allow_hosts
        && kept.settings == wanted.settings
        && kept.timeout_seconds == timeout
}

async fn compared(
    core: &Core,
    connection: &mut SqlConnection,
    owner: &ComponentOwner,
    desired: &DesiredComponent,
    config: Option<&InstanceConfig>,
) -> Result<ComparedComponent, ServiceError> {
    let (org, now) = (owner.org.as_ref(), core.clock.now());
    let instance = desired.instance.as_deref().unwrap_or_default();
    let at = InstanceReference {
        org: org.cloned(),
        name: instance.to_owned(),
    };
    let has_settings = |sealed: Option<&str>| {
        let Some(wanted) = &desired.config else {
            return true;
        };

        let kept = sealed.and_then(|sealed| InstanceConfig::open(sealed, &core.cipher, &at));
        kept.is_some_and(|kept| match config {
            Some(config) => kept == *config,
            // The secrets are not at hand.
            None => is_like(&kept, wanted),
        })
    };

    let component = found(connection, owner, desired).await?;
    let live = components::live_of(connection, org, desired.slot).await?;
    let in_effect = activation::current(&live, instance, now);
    let active = active(core, connection, owner, desired, in_effect).await?;
    let is_active = active
        .as_ref()
        .is_some_and(|active| active.sha256 == desired.sha256)
        && has_settings(in_effect.and_then(|one| one.config.as_deref()));

    let scheduled = live
        .iter()
        .filter(|one| one.instance == instance && one.effective_at > now);
    let (wanted, mut others): (Vec<&ComponentActivation>, Vec<&ComponentActivation>) = scheduled
        .partition(|one| {
            let is_component = component
                .as_ref()
                .is_some_and(|found| found.id == one.component);
            let is_on_date = desired.effective_at == Some(one.effective_at);
            is_component && is_on_date && has_settings(one.config.as_deref())
        });
    others.sort_by_key(|one| (one.effective_at, &one.id));

    let others: Vec<ComponentActivation> = others.into_iter().cloned().collect();
    let requests = match org {
        Some(org) => component_changes::open(connection, org, now).await?,
        None => Vec::new(),
    };
    // A date that had passed by the time of the request was left out of it.
    let request = requests.into_iter().find(|change| {
        let is_it = matches!(
            &change.content.change,
            RequestedChange::Activate { component_id, instance, effective_at, .. }
                if component.as_ref().is_some_and(|found| found.id == *component_id)
                    && *instance == desired.instance
                    && *effective_at == desired.effective_at.filter(|at| *at > change.requested_at)
        );
        is_it && has_settings(change.config.as_deref())
    });

    let status = match () {
        () if is_active && others.is_empty() => DesiredStatus::Active,
        () if !wanted.is_empty() && others.is_empty() => DesiredStatus::Scheduled,
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
            active: active.filter(|active| active.sha256 != desired.sha256),
            change_id: request.map(|change| change.id),
            activation_id: None,
        },
        others,
        component,
    })
}

/// Returns the active component, by the database and not by what this node has loaded so far.
async fn active(
    core: &Core,
    connection: &mut SqlConnection,
    owner: &ComponentOwner,
    desired: &DesiredComponent,
    in_effect: Option<&ComponentActivation>,
) -> Result<Option<ComponentIdentity>, ServiceError> {
    let (org, now) = (owner.org.as_ref(), core.clock.now());
    let mut id = in_effect.map(|one| one.component.clone());
    // An organization without rules of its own is under those of the installation. Instances are not
    // inherited: their settings belong to their owner.
    if id.is_none() && org.is_some() && !desired.slot.is_provider() {
        let installation = components::live_of(connection, None, desired.slot).await?;
        id = activation::current(&installation, "", now).map(|one| one.component.clone());
    }

    match id {
        Some(id) => {
            let found = components::get(connection, org, &id).await?;
            Ok(found.map(|component| component.identity))
        }
        // An instance that is not set up.
        None if desired.slot.is_provider() => Ok(None),
        None => Ok(Some(default_component(desired.slot, "", now)?.identity)),
    }
}

/// Returns the desired component of the owner or the installation. One with the same name and version and other
/// bytes is not it.
async fn found(
    connection: &mut SqlConnection,
    owner: &ComponentOwner,
    desired: &DesiredComponent,
) -> Result<Option<Component>, StoreError> {
    // The owner's own component first: the installation may have one of the same name.
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

/// Activation that brings a slot to its desired state.
struct PlannedActivation<'a> {
    state: &'a DesiredState,
    desired: &'a DesiredComponent,
    component: &'a Component,
    config: Option<InstanceConfig>,
    /// Scheduled activations that the state does not want.
    instead_of: Vec<ActivationId>,
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
        // Without an officer it is the installation's own state, and its signatures are the approval.
        let Some(officer) = officer else {
            let request = ActivationRequest {
                component_id,
                config: self.config,
                instance: desired.instance.clone(),
                reason: Some(reason),
                effective_at,
            };

            let consent = ChangeConsent::State {
                version,
                instead_of: self.instead_of,
            };
            let made = activation::make(core, management, owner, desired.slot, request, &consent);
            let made = made.await?.activation_id;
            became(view, status, Some(made));

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

        // The policy needs no approval, so the request would only wait for its own requester.
        if change.approvals_required == 0 {
            let id = change.change_id.as_str();
            let made = changes::apply(core, management, officer, id).await?;
            became(view, status, made.activation_id);
        }

        Ok(())
    }
}

/// Notes that the desired component was activated.
fn became(view: &mut DesiredView, status: DesiredStatus, activation: Option<ActivationId>) {
    view.activation_id = activation;
    view.status = status;
    if status == DesiredStatus::Active {
        view.active = None;
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
