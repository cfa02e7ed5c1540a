//! WebAssembly and nothing else: engines, artifacts, typed calls, egress.
//!
//! | File | Holds |
//! |---|---|
//! | `settings.rs` | what the engines compile with; the build script reads it too |
//! | `engine.rs` | the engines, and a store for one call |
//! | `gate.rs` | how many calls there may be at once |
//! | `artifact.rs` | from bytes to native code, through the cache on disk |
//! | `released.rs` | rules packs of earlier releases |
//! | `bindings.rs` | what `bindgen!` makes of `wit/` |
//! | `slot.rs` | the components of a slot on this node, and one call |
//! | `registry.rs` | which of them is active for whom, since when |
//! | `rules.rs`, `documents.rs` | calls into the rules slots |
//! | `providers/` | calls into provider plugins, a file for each kind |
//! | `lent.rs` | what the host lends to a provider: blobs, secrets, settings, clock, log |
//! | `room.rs` | what the component of the signing room is lent beside |
//! | `wasi.rs` | what WASI asks for, for languages that cannot do without |
//! | `egress.rs` | how a provider's request leaves, and where it may go |
//! | `worlds.rs` | the WIT packages, and what each world grants |
//! | `inspection.rs` | what an unknown component is, and whether it fits a world |
//! | `compiler.rs` | compiling it, in a process of its own |
//! | `background.rs` | threads that give way to those that serve requests |
//! | `baseline.rs` | the answer of a built-in pack beside that of other compliance rules |
//! | `confinement.rs` | what that process gives up before it looks at the bytes |
//! | `conformance.rs` | questions with known answers that a candidate must get right |
//! | `script.rs` | a far end as a plugin's author writes it down |
//!
//! Every call runs in a fresh instance, so that no state passes between
//! organizations and a trap harms one call alone.

mod artifact;
mod background;
mod baseline;
mod bindings;
mod canaries;
pub mod compiler;
mod confinement;
mod conformance;
mod documents;
pub mod egress;
mod engine;
mod error;
mod gate;
pub mod inspection;
mod lent;
pub mod providers;
mod registry;
mod released;
pub mod room;
pub mod rules;
pub mod script;
mod settings;
mod slot;
mod wasi;
pub mod worlds;

use std::path::PathBuf;

use crate::config::limits::AllLimits;

pub use artifact::{Artifact, built_in, embedded, room as room_component};
pub use documents::{Documents, Placement};
pub use engine::Engines;
pub use error::{ComponentError, Failure};
pub use registry::{Activations, Components, Live};
pub use released::{is_reserved_name, known_compliance, known_digests};

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

fn engines(limits: AllLimits) -> Result<Engines, ComponentError> {
    Engines::new(limits).map_err(|error| ComponentError {
        component: "engine".into(),
        kind: error::Failure::Link(format!("{error:#}")),
        by_document: false,
    })
}
