//! WebAssembly engines, artifacts and their compiler, and calls of rules.
//!
//! | File | Holds |
//! |---|---|
//! | `settings.rs` | compiler settings of the engines; the build script includes it too |
//! | `limits.rs` | resource limits of one call, by slot |
//! | `engine.rs` | the engines, and a store for one call |
//! | `gate.rs` | concurrency limits, and shares of memory and time by organization |
//! | `artifact.rs` | component bytes, and the on-disk cache of native code |
//! | `released.rs` | rules packs of earlier releases |
//! | `bindings.rs` | `bindgen!` output for the rules worlds of `wit/` |
//! | `slot.rs` | the components of a slot on this node, and one call |
//! | `contract_facts.rs` | facts of contracts, as placement rules read them |
//! | `faces.rs` | typefaces that the documents component asks for |
//! | `rules.rs` | calls of compliance and lifecycle rules |
//! | `baseline.rs` | comparison of other compliance rules with a built-in pack |
//! | `canaries.rs` | test calls that a component must pass before it is used |
//! | `worlds.rs` | the WIT packages, and the interfaces that each world grants |
//! | `inspection.rs` | slot, imports and types of an unknown component |
//! | `compiler.rs` | compiling unknown components in a child process |
//! | `confinement.rs` | sandbox of that child process |
//! | `values.rs` | values of components as JSON |
//! | `program.rs` | rules of any slot, called by name |
//! | `vectors.rs` | vectors of a team, inside its component |
//! | `known.rs`, `questions.rs` | known calls, and generated questions around them |
//! | `answers.rs` | parts of an answer, and how two answers differ |
//! | `branches.rs` | results and sentences that rules have |
//! | `behaviour.rs` | differences between two components |
//! | `background.rs` | low-priority threads |
//! | `metrics.rs` | failures and memory peaks by component |
//!
//! Every call runs in a fresh instance: no state passes between
//! organizations, and a trap affects only one call.

#![allow(missing_docs, reason = "documented by its files")]

pub mod answers;
pub mod artifact;
pub mod background;
pub mod baseline;
pub mod behaviour;
pub mod bindings;
pub mod branches;
pub mod canaries;
pub mod compiler;
pub mod confinement;
pub mod contract_facts;
mod drawing;
pub mod engine;
pub mod error;
mod faces;
pub mod gate;
pub mod inspection;
mod known;
pub mod limits;
pub mod metrics;
pub mod program;
pub mod questions;
pub mod released;
pub mod replay;
pub mod rules;
pub mod settings;
pub mod slot;
pub mod values;
pub mod vectors;
pub mod worlds;

use std::path::PathBuf;

use holdfast_default_components::SharedFile;
use holdfast_domain::component::Slot;

use limits::AllLimits;

pub use artifact::{
    ComponentArtifact, RulesBase, built_in, embedded, room as room_component, rules_template,
};
pub use engine::EngineSet;
pub use error::{CallFailure, ComponentError};
pub use released::{is_reserved_name, known_compliance, known_digests};

/// Tracing target of the spans that are exported as traces.
pub const TRACES: &str = "holdfast::traces";

/// Loads the default compliance rules only, with their native code in `cache`.
pub fn load_compliance(
    cache: PathBuf,
    cache_key: [u8; 32],
) -> Result<(EngineSet, rules::ComplianceRules), ComponentError> {
    let engines = engines(AllLimits::default())?;
    let cache = artifact::NativeCodeCache::new(cache, cache_key);
    let compliance = rules::ComplianceRules::load(&engines, &cache)?;
    Ok((engines, compliance))
}

/// Loads one compliance component only, with its native code in `cache`. Without `native`, this
/// process compiles the component, which is allowed only for components of a release.
pub fn compliance_alone(
    cache: PathBuf,
    cache_key: [u8; 32],
    artifact: &ComponentArtifact,
    native: Option<&[u8]>,
) -> Result<rules::ComplianceRules, ComponentError> {
    let engines = engines(AllLimits::default())?;
    let cache = artifact::NativeCodeCache::new(cache, cache_key);
    // A confined process compiled the unknown bytes. This one only stores the result and loads it.
    if let Some(native) = native {
        let kept = cache.put(&engines.rules, &artifact.identity, native);
        kept.map_err(|error| ComponentError::unfit(&artifact.identity, &error))?;
    }
    rules::ComplianceRules::load_other(&engines, &cache, artifact)
}

/// Loads one component of slot `rules.placement` only, to repeat the reading of facts. `native` is as for
/// [`compliance_alone`].
pub fn fact_reader_alone(
    cache: PathBuf,
    cache_key: [u8; 32],
    artifact: &ComponentArtifact,
    native: Option<&[u8]>,
) -> Result<contract_facts::LoneFactReader, ComponentError> {
    let engines = engines(AllLimits::default())?;
    let cache = artifact::NativeCodeCache::new(cache, cache_key);
    if let Some(native) = native {
        let kept = cache.put(engines.of(Slot::Placement), &artifact.identity, native);
        kept.map_err(|error| ComponentError::unfit(&artifact.identity, &error))?;
    }
    let active = slot::load(&engines, &cache, artifact)?;
    Ok(contract_facts::LoneFactReader(active))
}

/// Creates the engines.
///
/// # Errors
/// A file beside the program is missing or has another size, or the engines do not fit this machine.
pub fn engines(limits: AllLimits) -> Result<EngineSet, ComponentError> {
    let failed = |component: &str, kind| ComponentError {
        component: component.into(),
        kind,
        by_document: false,
    };

    // A missing file shows now, not with the first document that needs it. Hashing all files would be a large part of a
    // start, so the SHA-256 is checked when a file is used.
    for file in shared_files() {
        file.open()
            .map_err(|error| failed("files", CallFailure::Absent(error.to_string())))?;
    }

    EngineSet::new(limits)
        .map_err(|error| failed("engine", CallFailure::Link(format!("{error:#}"))))
}

/// Returns the files that come with the program, in it or beside it.
pub fn shared_files() -> impl Iterator<Item = &'static SharedFile> {
    let faces = faces::FACES.iter().map(|(_, face)| face);
    artifact::shared_files().chain(faces)
}
