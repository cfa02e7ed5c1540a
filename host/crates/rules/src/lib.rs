//! WebAssembly engines, artifacts and their compiler, and calls of rules.
//!
//! | File | Holds |
//! |---|---|
//! | `settings.rs` | what the engines compile with; the build script reads it too |
//! | `limits.rs` | what one call may use, by slot |
//! | `engine.rs` | the engines, and a store for one call |
//! | `gate.rs` | how many calls there may be at once |
//! | `artifact.rs` | from bytes to native code, through the cache on disk |
//! | `released.rs` | rules packs of earlier releases |
//! | `bindings.rs` | what `bindgen!` makes of `wit/` for rules |
//! | `slot.rs` | the components of a slot on this node, and one call |
//! | `rules.rs` | calls of compliance and lifecycle rules |
//! | `baseline.rs` | the answer of a built-in pack beside that of other compliance rules |
//! | `canaries.rs` | questions that a component must get right before it is used |
//! | `worlds.rs` | the WIT packages, and what each world grants |
//! | `inspection.rs` | what an unknown component is, and whether it fits a world |
//! | `compiler.rs` | compiling it, in a process of its own |
//! | `confinement.rs` | what that process gives up before it looks at the bytes |
//! | `background.rs` | threads that give way to those that serve requests |
//! | `metrics.rs` | what components did |
//!
//! Every call runs in a fresh instance, so that no state passes between
//! organizations and a trap harms one call alone.

#![allow(missing_docs, reason = "documented by its files")]

pub mod artifact;
pub mod background;
pub mod baseline;
pub mod bindings;
pub mod canaries;
pub mod compiler;
pub mod confinement;
pub mod engine;
pub mod error;
pub mod gate;
pub mod inspection;
pub mod limits;
pub mod metrics;
pub mod released;
pub mod rules;
pub mod settings;
pub mod slot;
pub mod worlds;

use std::path::PathBuf;

use limits::AllLimits;

pub use artifact::{Artifact, built_in, embedded, room as room_component};
pub use engine::Engines;
pub use error::{ComponentError, Failure};
pub use released::{is_reserved_name, known_compliance, known_digests};

/// Target of the spans that are for traces.
pub const TRACES: &str = "holdfast::traces";

/// The default compliance rules alone, with their native code in `cache`.
pub fn load_compliance(
    cache: PathBuf,
    cache_key: [u8; 32],
) -> Result<(Engines, rules::Compliance), ComponentError> {
    let engines = engines(AllLimits::default())?;
    let cache = artifact::NativeCodeCache::new(cache, cache_key);
    let compliance = rules::Compliance::load(&engines, &cache)?;
    Ok((engines, compliance))
}

/// One compliance component alone, with its native code in `cache`: `native`, or
/// code that this process makes. Only components that came with a release may be
/// compiled in this process.
pub fn compliance_alone(
    cache: PathBuf,
    cache_key: [u8; 32],
    artifact: &Artifact,
    native: Option<&[u8]>,
) -> Result<rules::Compliance, ComponentError> {
    let engines = engines(AllLimits::default())?;
    let cache = artifact::NativeCodeCache::new(cache, cache_key);
    if let Some(native) = native {
        let kept = cache.put(&engines.rules, &artifact.identity, native);
        kept.map_err(|error| ComponentError::unfit(&artifact.identity, &error))?;
    }
    rules::Compliance::load_other(&engines, &cache, artifact)
}

/// The engines, or why they cannot be had.
pub fn engines(limits: AllLimits) -> Result<Engines, ComponentError> {
    Engines::new(limits).map_err(|error| ComponentError {
        component: "engine".into(),
        kind: error::Failure::Link(format!("{error:#}")),
        by_document: false,
    })
}
