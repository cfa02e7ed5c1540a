//! `[components]`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::{ConfigError, duration};
use crate::components::{AllLimits, LimitSettings};

/// What may be uploaded, and what components may use.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ComponentSettings {
    /// What a call may use, by slot, where it is not the default.
    pub limits: BTreeMap<String, LimitSettings>,
    /// How long a component may take to be compiled.
    #[serde(deserialize_with = "duration")]
    pub compile_limit: Duration,
    /// Ed25519 public keys by name, in hex; when there are any, only components
    /// signed with one of them are admitted.
    pub trusted_keys: BTreeMap<String, String>,
    /// The program that compiles, in a process of its own; default: this one.
    pub compiler: Option<PathBuf>,
}

impl Default for ComponentSettings {
    fn default() -> Self {
        Self {
            limits: BTreeMap::new(),
            compile_limit: Duration::from_secs(120),
            trusted_keys: BTreeMap::new(),
            compiler: None,
        }
    }
}

impl ComponentSettings {
    /// The limits of every slot.
    ///
    /// # Errors
    /// A slot or a limit that there is not.
    pub fn limits(&self) -> Result<AllLimits, ConfigError> {
        AllLimits::new(&self.limits).map_err(|why| ConfigError::Refused {
            key: "components.limits".into(),
            why,
        })
    }
}
