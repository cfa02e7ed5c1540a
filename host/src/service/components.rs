//! Components that are replaced at run time: admitted, activated, rolled back
//! (contract, section 6), and followed by every node.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use ring::signature::{ED25519, UnparsedPublicKey};
use schemars::JsonSchema;
use semver::Version;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::provider_instance::InstanceConfig;
use super::{Caller, Issue, ServiceError, live_shadow};
use crate::app::App;
use crate::components::compiler::CompileError;
use crate::components::inspection::{Inspected, Reason};
use crate::components::{Activations, Artifact, ComponentError, Live, built_in, embedded};
use crate::config::{Config, EMBEDDED};
use crate::domain::clock::Timestamp;
use crate::domain::component::{Activation, Component, Conformance, Instance, RolledBack, Slot};
use crate::domain::hash::sha256;
use crate::domain::id::{ActivationId, ComponentId, OrgId};
use crate::domain::ledger::{Chain, LedgerEntry, NewEntry};
use crate::store::{Tx, components, ledger};

/// The largest component that is taken, in bytes.
pub const UPLOAD_LIMIT: u64 = 32 * 1024 * 1024;
/// Activations that a slot's history shows.
const HISTORY: i64 = 100;
/// How often a node looks whether something was changed.
const LOOK: Duration = Duration::from_millis(500);
/// How long it waits before it tries again to load what it could not.
const AGAIN: Duration = Duration::from_secs(5);

/// Whose components are changed, and by whom.
#[derive(Clone, Debug)]
pub struct Owner {
    /// None: the installation.
    pub org: Option<OrgId>,
    /// For the ledger.
    pub actor: String,
}

impl From<&Caller> for Owner {
    fn from(caller: &Caller) -> Self {
        Self {
            org: Some(caller.org.clone()),
            actor: caller.actor.clone(),
        }
    }
}

impl Owner {
    /// The operator, for everybody.
    pub fn installation() -> Self {
        Self {
            org: None,
            actor: "operator".into(),
        }
    }
}

/// The installation's ledger.
struct Installation;

impl Chain for Installation {
    fn chain(&self) -> &str {
        "installation"
    }
}

/// A component as the API shows it.
#[derive(Clone, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "component_id": "cmp_01jt8s5gq2e6m9x4k7w3c5d8fa", "slot": "rules.compliance", "world": "compliance-rules",
    "name": "acme-compliance", "version": "1.2.0", "sha256": "9f86d081…", "size": 75029, "imports": [],
    "scope": "organization", "signed_by": null, "uploaded_by": "user:ada@acme.example",
    "created_at": "2026-05-04T15:04:05.000Z",
    "conformance": { "vectors_version": "1.0.0", "vectors": 56, "memory_bytes": 65536, "fuel": 31000, "slowest_us": 180 },
}]))]
pub struct ComponentView {
    pub component_id: ComponentId,
    pub slot: Slot,
    pub world: String,
    pub name: String,
    pub version: String,
    /// Of its bytes.
    pub sha256: String,
    /// In bytes.
    pub size: i64,
    /// What it asks the host for.
    pub imports: Vec<String>,
    /// `organization`: yours; `installation`: everybody's.
    pub scope: Scope,
    /// The trusted key that signed it.
    pub signed_by: Option<String>,
    pub uploaded_by: String,
    pub created_at: Timestamp,
    pub conformance: Conformance,
}

/// Whose something is.
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    Organization,
    Installation,
}

impl Scope {
    fn of(org: Option<&OrgId>) -> Self {
        match org {
            Some(_) => Self::Organization,
            None => Self::Installation,
        }
    }
}

impl From<Component> for ComponentView {
    fn from(component: Component) -> Self {
        Self {
            scope: Scope::of(component.org.as_ref()),
            component_id: component.id,
            world: component.slot.world().into(),
            slot: component.slot,
            name: component.name,
            version: component.version,
            sha256: component.sha256,
            size: component.size,
            imports: component.imports,
            signed_by: component.signed_by,
            uploaded_by: component.uploaded_by,
            created_at: component.created_at,
            conformance: component.conformance,
        }
    }
}

/// What is uploaded.
pub struct Upload {
    /// Lower-case letters, digits and `-`.
    pub name: String,
    /// Semantic version.
    pub version: String,
    pub bytes: Bytes,
    /// Ed25519, over the bytes, in base64.
    pub signature: Option<String>,
}

/// Admits a component: true when it is new.
///
/// # Errors
/// [`ServiceError::NotAdmitted`] with every reason, and a conflict when its name and
/// version are taken by other bytes.
pub async fn upload<E: From<ServiceError>>(
    app: &App,
    owner: &Owner,
    upload: Upload,
    may: impl Fn(Slot) -> Result<(), E>,
) -> Result<(ComponentView, bool), E> {
    let version = checked(&upload)?;
    let digest = sha256(&upload.bytes);
    let mut connection = app.store.read().await.map_err(ServiceError::from)?;
    if let Some(known) = known(&mut connection, owner, &upload, &digest).await? {
        return Ok((known.into(), false));
    }
    let before = newest(&mut connection, owner, &upload.name).await?;
    drop(connection);
    let signed_by = signed_by(&app.config, &upload)?;
    let (inspected, native) = app
        .compiler
        .compile(upload.bytes.clone())
        .await
        .map_err(ServiceError::from)?;
    may(inspected.slot)?;
    let conformance = examine(app, &upload, inspected.slot, &native).await?;
    let reasons = grown(before.as_ref(), &version, &inspected);
    if !reasons.is_empty() {
        return Err(ServiceError::NotAdmitted(reasons).into());
    }
    let component = Component {
        id: ComponentId::new(),
        org: owner.org.clone(),
        slot: inspected.slot,
        name: upload.name.clone(),
        version: upload.version.clone(),
        sha256: digest,
        size: upload.bytes.len() as i64,
        imports: inspected.imports,
        conformance,
        signed_by,
        uploaded_by: owner.actor.clone(),
        created_at: app.clock.now(),
    };
    Ok(keep(app, owner, &upload, component).await?)
}

/// Its bytes first: what a row names is there.
async fn keep(
    app: &App,
    owner: &Owner,
    upload: &Upload,
    component: Component,
) -> Result<(ComponentView, bool), ServiceError> {
    app.files
        .keep(&object_name(&component.sha256), upload.bytes.clone())
        .await?;
    let mut tx = app.store.begin().await?;
    components::begin_change(&mut tx).await?;
    if let Some(known) = known(&mut tx, owner, upload, &component.sha256).await? {
        return Ok((known.into(), false));
    }
    components::insert(&mut tx, &component).await?;
    let details = json!({ "component": named(&component) });
    record(app, &mut tx, owner, "component.uploaded", details).await?;
    tx.commit().await?;
    Ok((component.into(), true))
}

/// Puts the questions of its slot to a component that is compiled.
async fn examine(
    app: &App,
    upload: &Upload,
    slot: Slot,
    native: &[u8],
) -> Result<Conformance, ServiceError> {
    let bytes = upload.bytes.clone();
    let artifact = Artifact::uploaded(slot, &upload.name, &upload.version, bytes);
    app.components.keep_native(&artifact, native)?;
    let conformance = app.components.examine(artifact).await;
    conformance.map_err(ServiceError::NotAdmitted)
}

impl From<CompileError> for ServiceError {
    fn from(error: CompileError) -> Self {
        match error {
            CompileError::Refused(reasons) => Self::NotAdmitted(reasons),
            CompileError::Io(error) => Self::Internal(format!("the compiler: {error}")),
        }
    }
}

fn checked(upload: &Upload) -> Result<Version, ServiceError> {
    let mut issues = Vec::new();
    let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let name = upload.name.as_str();
    if name.is_empty() || name.len() > 64 || !name.bytes().all(letters) {
        issues.push(Issue::new(
            "invalid_string",
            &["name"],
            "1 to 64 lower-case letters, digits and -",
            name,
            "Not a component's name",
        ));
    }
    let version = Version::parse(&upload.version);
    if version.is_err() || upload.version.len() > 64 {
        issues.push(Issue::new(
            "invalid_string",
            &["version"],
            "a semantic version, for example 1.2.0",
            upload.version.as_str(),
            "Not a semantic version",
        ));
    }
    match version {
        Ok(version) if issues.is_empty() => Ok(version),
        _ => Err(ServiceError::Invalid(issues)),
    }
}

/// The same component, when it was uploaded before.
async fn known(
    connection: &mut sqlx::AnyConnection,
    owner: &Owner,
    upload: &Upload,
    digest: &str,
) -> Result<Option<Component>, ServiceError> {
    let (org, name) = (owner.org.as_ref(), upload.name.as_str());
    let found = components::by_version(connection, org, name, &upload.version).await?;
    match found {
        Some(other) if other.sha256 != digest => Err(ServiceError::Conflict(format!(
            "{name} {} was uploaded before with other bytes",
            upload.version
        ))),
        found => Ok(found),
    }
}

/// The component of that name which is active, or was uploaded last.
async fn newest(
    connection: &mut sqlx::AnyConnection,
    owner: &Owner,
    name: &str,
) -> Result<Option<Component>, ServiceError> {
    Ok(components::newest_named(connection, owner.org.as_ref(), name).await?)
}

/// A new version asks for nothing that the one before did not, unless its major
/// version says so; and it stays in its slot.
fn grown(before: Option<&Component>, version: &Version, now: &Inspected) -> Vec<Reason> {
    let Some(before) = before else {
        return Vec::new();
    };
    if before.slot != now.slot {
        return vec![Reason::new(
            "version",
            format!(
                "{} {} is for {}, and this is for {}: give it another name",
                before.name, before.version, before.slot, now.slot
            ),
        )];
    }
    let same_major =
        Version::parse(&before.version).is_ok_and(|before| before.major == version.major);
    let interface = |import: &String| import.split('@').next().unwrap_or_default().to_owned();
    let had: Vec<String> = before.imports.iter().map(interface).collect();
    now.imports
        .iter()
        .filter(|import| same_major && !had.contains(&interface(import)))
        .map(|import| {
            Reason::new(
                "version",
                format!(
                    "asks for `{import}`, which {} {} did not: raise the major version",
                    before.name, before.version
                ),
            )
        })
        .collect()
}

/// The trusted key by which a component is signed; none when signatures are not
/// asked for.
fn signed_by(config: &Config, upload: &Upload) -> Result<Option<String>, ServiceError> {
    let keys = &config.components.trusted_keys;
    if keys.is_empty() {
        return Ok(None);
    }
    let refused = |message: &str| {
        ServiceError::NotAdmitted(vec![Reason::new("signature", message.to_owned())])
    };
    let Some(signature) = &upload.signature else {
        return Err(refused(
            "this installation admits signed components only: send `signature`, the Ed25519 \
             signature of the file in base64",
        ));
    };
    let signature = STANDARD
        .decode(signature.trim())
        .map_err(|_| refused("the signature is not base64"))?;
    let by = |key: &String| {
        let key = hex::decode(key).unwrap_or_default();
        let key = UnparsedPublicKey::new(&ED25519, key);
        key.verify(&upload.bytes, &signature).is_ok()
    };
    let found = keys.iter().find(|(_, key)| by(key));
    match found {
        Some((name, _)) => Ok(Some(name.clone())),
        None => Err(refused(
            "the signature is of none of the keys that this installation trusts",
        )),
    }
}

/// Where a component's bytes are kept for ever.
fn object_name(sha256: &str) -> String {
    format!("components/{sha256}.wasm")
}

fn named(component: &Component) -> Value {
    json!({
        "component_id": component.id, "name": component.name, "version": component.version,
        "sha256": component.sha256,
    })
}

pub(super) async fn record(
    app: &App,
    tx: &mut Tx,
    owner: &Owner,
    action: &str,
    details: Value,
) -> Result<(), ServiceError> {
    let entry = NewEntry {
        at: app.clock.now(),
        actor: owner.actor.clone(),
        action: action.into(),
        details,
    };
    match &owner.org {
        Some(org) => ledger::append(tx, Some(org), org, entry).await?,
        None => ledger::append(tx, None, &Installation, entry).await?,
    };
    Ok(())
}

/// What was decided about an organization's components, or the installation's,
/// chained as the custody ledgers are.
pub async fn history(app: &App, owner: &Owner) -> Result<Vec<LedgerEntry>, ServiceError> {
    let mut connection = app.store.read().await?;
    Ok(match &owner.org {
        Some(org) => ledger::list(&mut connection, Some(org), org).await?,
        None => ledger::list(&mut connection, None, &Installation).await?,
    })
}

/// One of the organization's, or of the installation's.
pub async fn get(app: &App, owner: &Owner, id: &str) -> Result<Component, ServiceError> {
    let missing = ServiceError::NotFound("Component");
    let Some(id) = ComponentId::parse(id) else {
        return Err(missing);
    };
    let mut connection = app.store.read().await?;
    let found = components::get(&mut connection, owner.org.as_ref(), &id).await?;
    found.ok_or(missing)
}

/// The organization's and the installation's.
pub async fn list(
    app: &App,
    owner: &Owner,
    slot: Option<Slot>,
    page: i64,
    limit: i64,
) -> Result<(Vec<ComponentView>, i64), ServiceError> {
    let mut connection = app.store.read().await?;
    let org = owner.org.as_ref();
    let (found, total) = components::list(&mut connection, org, slot, page, limit).await?;
    Ok((found.into_iter().map(ComponentView::from).collect(), total))
}

/// An activation as the API shows it.
#[derive(Clone, Serialize, JsonSchema)]
pub struct ActivationView {
    pub activation_id: ActivationId,
    pub slot: Slot,
    /// Of a provider; null for rules.
    pub instance: Option<String>,
    pub component_id: ComponentId,
    pub scope: Scope,
    pub reason: Option<String>,
    pub activated_by: String,
    pub created_at: Timestamp,
    /// From when on it counts.
    pub effective_at: Timestamp,
    pub rolled_back_at: Option<Timestamp>,
    pub rolled_back_by: Option<String>,
    pub rollback_reason: Option<String>,
    /// Where the provider sends its callbacks, for an instance of your own.
    pub callback_url: Option<String>,
}

fn shown(app: &App, activation: Activation) -> ActivationView {
    let (rolled_back_at, rolled_back_by, rollback_reason) = match activation.rolled_back {
        Some(back) => (Some(back.at), Some(back.by), back.reason),
        None => (None, None, None),
    };
    let callback_url = match (&activation.org, &activation.config) {
        (Some(org), Some(_)) => Some(format!(
            "{}/callbacks/signing/{}",
            app.config.base_url(),
            Instance::own(org, &activation.instance)
        )),
        _ => None,
    };
    ActivationView {
        scope: Scope::of(activation.org.as_ref()),
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
    }
}

/// A slot: what is active in it, and what was.
#[derive(Clone, Serialize, JsonSchema)]
pub struct SlotView {
    pub slot: Slot,
    pub world: String,
    /// What decides for the organization now; of a provider, for new templates.
    pub active: ComponentView,
    /// The organization's own activations and the installation's, newest first.
    pub history: Vec<ActivationView>,
}

/// Every slot.
pub async fn slots(app: &App, owner: &Owner) -> Result<Vec<SlotView>, ServiceError> {
    let mut connection = app.store.read().await?;
    let org = owner.org.as_ref();
    let mut all = Vec::new();
    for slot in Slot::ALL {
        let mut history =
            components::activations(&mut connection, org, Some(slot), HISTORY).await?;
        if org.is_some() {
            let global =
                components::activations(&mut connection, None, Some(slot), HISTORY).await?;
            history.extend(global);
        }
        history.sort_by(|one, other| other.id.cmp(&one.id));
        let instance = match (slot.is_provider(), org) {
            (true, Some(org)) => app.signing_instance(org),
            (true, None) => app.config.providers.signing.default.clone(),
            (false, _) => String::new(),
        };
        let instance = Instance::parse(&instance);
        let active = app.components.active();
        let now = app.clock.now();
        let live = active.at(slot, org, &instance.name, now);
        let component = match live {
            Some((live, _)) => components::by_sha256(&mut connection, &live.sha256).await?,
            None => None,
        };
        let component = match component {
            Some(component) => component,
            None => default_component(slot, now)?,
        };
        all.push(SlotView {
            slot,
            world: slot.world().into(),
            active: component.into(),
            history: history
                .into_iter()
                .map(|activation| shown(app, activation))
                .collect(),
        });
    }
    Ok(all)
}

/// The component that came with the binary, as one that was uploaded.
fn default_component(slot: Slot, at: Timestamp) -> Result<Component, ServiceError> {
    embedded()
        .find(|artifact| artifact.slot == slot)
        .map(|artifact| of_default(&artifact, at))
        .ok_or_else(|| ServiceError::Internal(format!("{slot} has no default component")))
}

fn of_default(artifact: &Artifact, at: Timestamp) -> Component {
    let identity = &artifact.identity;
    let mut digest = [0; 32];
    let _ = hex::decode_to_slice(&identity.sha256, &mut digest);
    Component {
        id: ComponentId::of_default(&digest),
        org: None,
        slot: artifact.slot,
        name: identity.name.clone(),
        version: identity.version.clone(),
        sha256: identity.sha256.clone(),
        size: artifact.bytes.len() as i64,
        imports: Vec::new(),
        conformance: Conformance {
            vectors_version: "built in".into(),
            vectors: 0,
            memory_bytes: 0,
            fuel: None,
            slowest_us: 0,
        },
        signed_by: None,
        uploaded_by: "system".into(),
        created_at: at,
    }
}

/// Keeps the components that came with this binary, so that what they decide can be
/// asked again when another binary serves.
pub async fn keep_defaults(app: &App) -> Result<(), ServiceError> {
    for artifact in built_in() {
        let component = of_default(&artifact, app.clock.now());
        let mut connection = app.store.read().await?;
        let there = components::get(&mut connection, None, &component.id).await?;
        drop(connection);
        if there.is_some() {
            continue;
        }
        let bytes = Bytes::from(artifact.bytes.into_owned());
        app.files
            .keep(&object_name(&component.sha256), bytes)
            .await?;
        let mut tx = app.store.begin().await?;
        components::insert(&mut tx, &component).await?;
        tx.commit().await?;
    }
    Ok(())
}

/// Body of `POST /component-slots/{slot}/activate`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "component_id": "cmp_01jt8s5gq2e6m9x4k7w3c5d8fa", "reason": "Amended §9-105 takes effect",
    "effective_at": "2027-01-01T05:00:00.000Z",
}]))]
pub struct Activate {
    pub component_id: String,
    /// What a provider's instance of your own is set up with. What was given before
    /// stays when this is absent.
    pub config: Option<InstanceConfig>,
    /// A provider's instance; `embedded` when absent. Another name is an instance
    /// of your own.
    #[schemars(length(min = 1, max = 64))]
    pub instance: Option<String>,
    #[schemars(length(max = 500))]
    pub reason: Option<String>,
    /// From when on it counts; at once when absent. Laws have effective dates.
    pub effective_at: Option<Timestamp>,
}

/// Body of `POST /component-slots/{slot}/rollback`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "reason": "Check 4 refuses paper" }]))]
pub struct RollBack {
    #[schemars(length(min = 1, max = 64))]
    pub instance: Option<String>,
    #[schemars(length(max = 500))]
    pub reason: Option<String>,
    /// An activation to take back that is not the current one, for example one that
    /// is yet to take effect.
    pub activation_id: Option<String>,
}

/// Puts a component into a slot.
pub async fn activate(
    app: &App,
    owner: &Owner,
    slot: Slot,
    request: Activate,
) -> Result<ActivationView, ServiceError> {
    let now = app.clock.now();
    let instance = instance_of(app, owner, slot, request.instance.as_deref())?;
    let effective_at = request.effective_at.unwrap_or(now);
    let mut issues = Vec::new();
    if request.effective_at.is_some_and(|at| at < now) {
        issues.push(Issue::new(
            "invalid_date",
            &["effective_at"],
            "a time to come",
            effective_at.to_string(),
            "What was decided before cannot be decided anew",
        ));
    }
    if request.config.is_some() && !is_own(slot, owner, &instance) {
        issues.push(Issue::new(
            "unrecognized_keys",
            &["config"],
            "nothing",
            "an object",
            "Only a provider's instance of your own is set up here",
        ));
    }
    if let Some(config) = &request.config {
        issues.extend(config.issues(app.config.providers.allow_insecure));
    }
    if !issues.is_empty() {
        return Err(ServiceError::Invalid(issues));
    }
    let component = get(app, owner, &request.component_id).await?;
    if component.slot != slot {
        return Err(ServiceError::Semantic(format!(
            "{} {} is for {}, not for {slot}",
            component.name, component.version, component.slot
        )));
    }
    prepare(app, &component).await?;
    let mut tx = app.store.begin().await?;
    components::begin_change(&mut tx).await?;
    let before = components::live_of(&mut tx, owner.org.as_ref(), slot).await?;
    let before: Vec<&Activation> = counting(&before, &instance);
    let current = at(&before, now);
    if let Some(current) = current
        && let Some(active) =
            components::get(&mut tx, owner.org.as_ref(), &current.component).await?
    {
        older(&active, &component)?;
    }
    let config = match &request.config {
        Some(config) => Some(config.sealed(&app.sealer, owner.org.as_ref(), &instance)?),
        None => current.and_then(|current| current.config.clone()),
    };
    if is_own(slot, owner, &instance) && config.is_none() {
        return Err(ServiceError::Invalid(vec![Issue::new(
            "invalid_type",
            &["config"],
            "an object",
            "undefined",
            "A new instance needs its settings",
        )]));
    }
    let activation = Activation {
        id: ActivationId::new(),
        org: owner.org.clone(),
        slot,
        instance,
        component: component.id.clone(),
        config,
        reason: request.reason,
        activated_by: owner.actor.clone(),
        created_at: now,
        effective_at,
        rolled_back: None,
    };
    components::activate(&mut tx, &activation, &component.sha256).await?;
    let action = match effective_at > now {
        true => "component.scheduled",
        false => "component.activated",
    };
    let details = json!({
        "activation_id": activation.id, "slot": slot, "instance": activation.instance,
        "component": named(&component), "reason": activation.reason, "effective_at": effective_at,
    });
    record(app, &mut tx, owner, action, details).await?;
    tx.commit().await?;
    refresh(app).await?;
    Ok(shown(app, activation))
}

/// Takes the current activation back: what was active before it is again.
pub async fn roll_back(
    app: &App,
    owner: &Owner,
    slot: Slot,
    request: RollBack,
) -> Result<ActivationView, ServiceError> {
    let now = app.clock.now();
    let instance = instance_of(app, owner, slot, request.instance.as_deref())?;
    let mut tx = app.store.begin().await?;
    components::begin_change(&mut tx).await?;
    let all = components::live_of(&mut tx, owner.org.as_ref(), slot).await?;
    let counting = counting(&all, &instance);
    let found = match &request.activation_id {
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
        reason: request.reason,
    };
    components::roll_back(&mut tx, current, &rolled_back).await?;
    let details = json!({
        "activation_id": current.id, "slot": slot, "instance": instance,
        "component_id": current.component, "reason": rolled_back.reason,
    });
    record(app, &mut tx, owner, "component.rolled_back", details).await?;
    tx.commit().await?;
    let shown = shown(
        app,
        Activation {
            rolled_back: Some(rolled_back),
            ..current.clone()
        },
    );
    refresh(app).await?;
    Ok(shown)
}

/// Those of an instance.
fn counting<'a>(all: &'a [Activation], instance: &str) -> Vec<&'a Activation> {
    all.iter()
        .filter(|activation| activation.instance == instance)
        .collect()
}

/// What counts at a time.
fn at<'a>(counting: &[&'a Activation], now: Timestamp) -> Option<&'a Activation> {
    let begun = counting.iter().filter(|one| one.effective_at <= now);
    begun.max_by_key(|one| (one.effective_at, &one.id)).copied()
}

/// A version is raised; whoever wants the one before rolls back.
fn older(active: &Component, next: &Component) -> Result<(), ServiceError> {
    let version = |component: &Component| Version::parse(&component.version).ok();
    if active.name == next.name && version(next) < version(active) {
        return Err(ServiceError::Conflict(format!(
            "{} {} is older than the active {}: roll back to go back",
            next.name, next.version, active.version
        )));
    }
    Ok(())
}

/// The instance that a request is about; empty for rules.
fn instance_of(
    app: &App,
    owner: &Owner,
    slot: Slot,
    named: Option<&str>,
) -> Result<String, ServiceError> {
    let refused = |expected: &str, message: String| {
        let received = named.unwrap_or("undefined");
        let path = &["instance"];
        ServiceError::Invalid(vec![Issue::new(
            "invalid_string",
            path,
            expected,
            received,
            message,
        )])
    };
    if !slot.is_provider() {
        return match named {
            None => Ok(String::new()),
            Some(_) => Err(refused("undefined", "Rules have no instances".into())),
        };
    }
    let name = named.unwrap_or(EMBEDDED);
    let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || !name.bytes().all(letters) {
        return Err(refused(
            "lower-case letters, digits and -",
            "Not an instance's name".into(),
        ));
    }
    let configured = app.config.providers.signing.instances.contains_key(name);
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

/// An instance that an organization sets up by itself.
fn is_own(slot: Slot, owner: &Owner, instance: &str) -> bool {
    slot.is_provider() && owner.org.is_some() && instance != EMBEDDED
}

/// Loads a component on this node, so that what cannot be loaded is not activated.
async fn prepare(app: &App, component: &Component) -> Result<(), ServiceError> {
    if app.components.has(component.slot, &component.sha256) {
        return Ok(());
    }
    let artifact = artifact(app, component).await?;
    let adding = app.clone();
    tokio::task::spawn_blocking(move || adding.components.add(&artifact))
        .await
        .map_err(|error| ServiceError::Internal(error.to_string()))??;
    Ok(())
}

/// A component's bytes, with native code for them on this node.
pub async fn artifact(app: &App, component: &Component) -> Result<Artifact, ServiceError> {
    let (slot, name, version) = (component.slot, &component.name, &component.version);
    let artifact = match built_in().find(|one| one.identity.sha256 == component.sha256) {
        Some(built_in) if built_in.is_compiled() => return Ok(built_in),
        Some(built_in) => built_in,
        None => {
            let name_of_object = object_name(&component.sha256);
            let bytes = app
                .files
                .kept(&name_of_object, &component.sha256, component.size)
                .await?;
            Artifact::uploaded(slot, name, version, bytes)
        }
    };
    let looking = app.clone();
    let (artifact, compiled) = tokio::task::spawn_blocking(move || {
        let compiled = looking.components.is_compiled(&artifact);
        (artifact, compiled)
    })
    .await
    .map_err(|error| ServiceError::Internal(error.to_string()))?;
    if !compiled {
        let bytes = Bytes::from(artifact.bytes.clone().into_owned());
        let (_, native) = app.compiler.compile(bytes).await?;
        app.components.keep_native(&artifact, &native)?;
    }
    Ok(artifact)
}

/// Which components this node has loaded, as of which revision.
#[derive(Default)]
pub struct Followed {
    revision: Option<i64>,
    /// What could not be loaded, and why.
    broken: BTreeMap<String, String>,
    tried_at: Option<std::time::Instant>,
}

impl Followed {
    /// What this node cannot load.
    pub fn broken(&self) -> impl Iterator<Item = (&str, &str)> {
        self.broken
            .iter()
            .map(|(component, why)| (component.as_str(), why.as_str()))
    }
}

/// Takes over what was activated since the last look.
pub async fn refresh(app: &App) -> Result<(), ServiceError> {
    let mut followed = app.followed.lock().await;
    let mut connection = app.store.read_urgently().await?;
    let revision = components::revision(&mut connection).await?;
    let again =
        !followed.broken.is_empty() && followed.tried_at.is_none_or(|at| at.elapsed() >= AGAIN);
    if followed.revision == Some(revision) && !again {
        return Ok(());
    }
    let live = components::live(&mut connection).await?;
    drop(connection);
    followed.tried_at = Some(std::time::Instant::now());
    followed.broken.clear();
    let before = app.components.active();
    let mut activations = Activations::default();
    for (activation, digest) in live {
        if !app.components.has(activation.slot, &digest)
            && let Err(error) = load(app, &activation, &digest).await
        {
            tracing::error!(
                activation = %activation.id, slot = %activation.slot, %error,
                "a component cannot be loaded on this node"
            );
            followed.broken.insert(digest.clone(), error.to_string());
            // This node goes on with what it had; where it had nothing, nobody is
            // answered by other rules than those that were chosen.
            let org = activation.org.as_ref();
            let now = app.clock.now();
            if before
                .at(activation.slot, org, &activation.instance, now)
                .is_some()
            {
                continue;
            }
            let kind = crate::components::Failure::Link(error.to_string());
            let component = activation.component.to_string();
            let error = ComponentError {
                component,
                kind,
                by_document: false,
            };
            app.components.add_broken(activation.slot, &digest, &error);
        }
        activations.add(
            activation.slot,
            activation.org,
            activation.instance,
            Live {
                activation: activation.id,
                effective_at: activation.effective_at,
                sha256: digest,
                config: activation.config,
            },
        );
    }
    app.components.switch(activations);
    live_shadow::follow(app).await?;
    app.metrics
        .components_broken
        .set(followed.broken.len() as i64);
    followed.revision = Some(revision);
    Ok(())
}

async fn load(app: &App, activation: &Activation, digest: &str) -> Result<(), ServiceError> {
    let mut connection = app.store.read_urgently().await?;
    let org = activation.org.as_ref();
    let component = components::get(&mut connection, org, &activation.component).await?;
    drop(connection);
    let component = component
        .filter(|component| component.sha256 == digest)
        .ok_or(ServiceError::NotFound("Component"))?;
    prepare(app, &component).await
}

/// Follows what other nodes and operators activate, until told to stop.
pub async fn follow(app: App, stop: CancellationToken) {
    let period = app.config.sweep_interval.unwrap_or(LOOK).min(LOOK);
    while !stop.is_cancelled() {
        if let Err(error) = refresh(&app).await {
            tracing::error!(%error, "activations could not be read");
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(period) => {}
        }
    }
}

/// A component by the digest that a decision names.
pub async fn by_digest(app: &App, digest: &str) -> Result<Artifact, ServiceError> {
    if let Some(default) = embedded().find(|artifact| artifact.identity.sha256 == digest) {
        return Ok(default);
    }
    let mut connection = app.store.read().await?;
    let component = components::by_sha256(&mut connection, digest).await?;
    drop(connection);
    let component = component.ok_or(ServiceError::NotFound("Component"))?;
    artifact(app, &component).await
}
