//! WebAssembly and nothing else: engines, artifacts, typed calls, egress.
//!
//! | File | Holds |
//! |---|---|
//! | `settings.rs` | what the engines compile with; the build script reads it too |
//! | `engine.rs` | the engines and every budget |
//! | `artifact.rs` | from bytes to native code, through the cache on disk |
//! | `bindings.rs` | what `bindgen!` makes of `wit/` |
//! | `rules.rs` | calls into the four rules slots |
//! | `providers.rs` | calls into provider plugins |
//! | `lent.rs` | what the host lends to a provider: blobs, secrets, settings, clock, log |
//! | `egress.rs` | how a provider's request leaves, and where it may go |
//!
//! Every call runs in a fresh instance, so that no state passes between
//! organizations and a trap harms one call alone.

mod artifact;
mod bindings;
mod canaries;
pub mod egress;
mod engine;
mod error;
mod lent;
pub mod providers;
pub mod rules;
mod settings;

use std::path::PathBuf;

pub use artifact::{Artifact, Identity, embedded};
pub use engine::Engines;
pub use error::ComponentError;

use crate::metrics::ComponentMetrics;

/// Every active component of this process.
pub struct Components {
    /// The four rules slots.
    pub rules: rules::Rules,
    /// The provider slots.
    pub providers: providers::Providers,
    metrics: ComponentMetrics,
}

/// The compliance rules alone, with their native code in `cache`.
pub fn load_compliance(
    cache: PathBuf,
    cache_key: [u8; 32],
) -> Result<(Engines, rules::Compliance), ComponentError> {
    let engines = engines()?;
    let cache = artifact::NativeCodeCache::new(cache, cache_key);
    let compliance = rules::Compliance::load(&engines, &cache)?;
    Ok((engines, compliance))
}

fn engines() -> Result<Engines, ComponentError> {
    Engines::new().map_err(|error| ComponentError {
        component: "engine".into(),
        kind: error::Failure::Link(format!("{error:#}")),
        by_document: false,
    })
}

impl Components {
    /// Loads the default components. `cache` is a folder only this service
    /// writes, `cache_key` a secret of this node.
    pub fn load(cache: PathBuf, cache_key: [u8; 32]) -> Result<Self, ComponentError> {
        let engines = engines()?;
        let cache = artifact::NativeCodeCache::new(cache, cache_key);
        Ok(Self {
            rules: rules::Rules::load(&engines, &cache)?,
            providers: providers::Providers::load(&engines, &cache)?,
            metrics: engines.metrics.clone(),
        })
    }

    /// What they did.
    pub fn metrics(&self) -> ComponentMetrics {
        self.metrics.clone()
    }
}
