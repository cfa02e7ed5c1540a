//! Components that can be replaced at run time (contract, section 6): admission
//! (`admission.rs`), activation and rollback (`activation.rs`), following changes on every
//! node (`following.rs`), and loading on demand (`loading.rs`).

mod activation;
mod admission;
pub mod attestations;
pub mod behaviour;
pub mod changes;
pub mod decisions;
pub mod desired_state;
mod following;
pub mod instance_log;
pub mod live_shadow;
mod loading;
mod probe;
pub mod pull;
pub mod questions;
mod quota;
pub mod shadow;
pub mod trial;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

pub use crate::component_owner::ComponentOwner;
use crate::{Core, ServiceError};
use holdfast_components::ComponentError;
use holdfast_components::compiler::ComponentCompiler;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::{Component, ComponentIdentity, ConformanceResult, Slot};
use holdfast_domain::id::{ComponentId, OrgId};
use holdfast_domain::ledger::{LedgerEntry, NewEntry};
use holdfast_store::{WriteTransaction, components, ledger};

pub use activation::{
    ActivationRequest, ActivationView, RollbackRequest, SlotView, activate, roll_back, slots,
};
pub use admission::{ComponentUpload, UPLOAD_LIMIT, place, upload};
pub use following::{
    ActivationFollower, artifact, by_digest, bytes_of, follow, keep_defaults, kept, refresh,
    that_decided,
};

/// This node's state for managing components.
pub struct ComponentManager {
    /// Compiles uploaded components.
    pub compiler: ComponentCompiler,
    /// Activations that this node has applied.
    pub followed: ActivationFollower,
}

/// Loads a component for a call that needs it.
pub async fn load_on_demand(
    core: &Core,
    management: &Arc<ComponentManager>,
    slot: Slot,
    identity: &ComponentIdentity,
) -> Result<(), ComponentError> {
    loading::on_demand(core, management, slot, identity).await
}

/// A component.
#[derive(Clone, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "component_id": "cmp_01jt8s5gq2e6m9x4k7w3c5d8fa", "slot": "rules.compliance", "world": "compliance-rules",
    "name": "acme-compliance", "version": "1.2.0", "sha256": "9f86d081…", "size": 75029, "imports": [],
    "scope": "organization", "signed_by": null, "uploaded_by": "user:ada@acme.example",
    "created_at": "2026-05-04T15:04:05.000Z",
    "conformance": { "vectors_version": "1.0.0", "vectors": 56, "own_vectors": 12, "memory_bytes": 65536, "fuel": 31000, "slowest_us": 180,
        "not_reached": [] },
}]))]
pub struct ComponentView {
    pub component_id: ComponentId,
    pub slot: Slot,
    pub world: String,
    pub name: String,
    pub version: String,
    /// SHA-256 of the component's bytes.
    pub sha256: String,
    /// Size in bytes.
    pub size: i64,
    /// Interfaces that the component imports from the host.
    pub imports: Vec<String>,
    /// `organization`: owned by the caller's organization; `installation`: shared by all.
    pub scope: ComponentScope,
    /// Name of the trusted publisher that signed the component.
    pub signed_by: Option<String>,
    pub uploaded_by: String,
    pub created_at: Timestamp,
    pub conformance: ConformanceResult,
}

/// Scope of a component or activation.
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ComponentScope {
    Organization,
    Installation,
}

impl ComponentScope {
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
            scope: ComponentScope::of(component.org.as_ref()),
            component_id: component.id,
            world: component.slot.world().into(),
            slot: component.slot,
            name: component.identity.name,
            version: component.identity.version,
            sha256: component.identity.sha256,
            size: component.size,
            imports: component.imports,
            signed_by: component.signed_by,
            uploaded_by: component.uploaded_by,
            created_at: component.created_at,
            conformance: component.conformance,
        }
    }
}

/// Returns the object name of a component's bytes, which are never deleted.
fn object_name(sha256: &str) -> String {
    format!("components/{sha256}.wasm")
}

fn named(component: &Component) -> Value {
    let ComponentIdentity {
        name,
        version,
        sha256,
    } = &component.identity;
    json!({ "component_id": component.id, "name": name, "version": version, "sha256": sha256 })
}

/// Appends an entry to the owner's component ledger.
pub(super) async fn record(
    core: &Core,
    tx: &mut WriteTransaction,
    owner: &ComponentOwner,
    action: &str,
    details: Value,
) -> Result<(), ServiceError> {
    let entry = NewEntry {
        at: core.clock.now(),
        actor: owner.actor.clone(),
        action: action.into(),
        details,
    };
    ledger::append(tx, owner.org.as_ref(), owner, entry).await?;
    Ok(())
}

/// Returns the component ledger of an organization or the installation. It is hash-chained
/// like custody ledgers.
pub async fn history(
    core: &Core,
    owner: &ComponentOwner,
) -> Result<Vec<LedgerEntry>, ServiceError> {
    let mut connection = core.store.read().await?;
    Ok(ledger::list(&mut connection, owner.org.as_ref(), owner).await?)
}

/// Returns a component of the organization or the installation.
pub async fn get(core: &Core, owner: &ComponentOwner, id: &str) -> Result<Component, ServiceError> {
    let missing = ServiceError::NotFound("Component");
    // An id that does not parse is answered like one that does not exist.
    let Some(id) = ComponentId::parse(id) else {
        return Err(missing);
    };
    let mut connection = core.store.read().await?;
    let found = components::get(&mut connection, owner.org.as_ref(), &id).await?;

    // The server answers before it has stored the built-in ones.
    let found = found.or_else(|| following::built_in_component(&id, core.clock.now()));
    found.ok_or(missing)
}

/// Returns one page of the organization's and the installation's components, and the total
/// count.
pub async fn list(
    core: &Core,
    owner: &ComponentOwner,
    slot: Option<Slot>,
    page: i64,
    limit: i64,
) -> Result<(Vec<ComponentView>, i64), ServiceError> {
    let mut connection = core.store.read().await?;
    let org = owner.org.as_ref();
    let (found, total) = components::list(&mut connection, org, slot, page, limit).await?;
    Ok((found.into_iter().map(ComponentView::from).collect(), total))
}
