//! `[components]`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::limits::{AllLimits, LimitSettings};
use super::{ConfigError, duration};

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
    /// Who may upload; default: `signed` in production and where there are trusted keys,
    /// else `on`.
    pub uploads: Option<Uploads>,
    /// Bytes of all components of one organization.
    pub quota_bytes: u64,
    /// How many components one organization may have, versions counted.
    pub quota_versions: u32,
    /// Minutes that compiling may take an hour for one organization.
    pub quota_compile_minutes: u32,
    /// Native code that is kept on this node's disk; what was not used for the longest
    /// time goes first, and is compiled again when it is needed.
    pub native_code_bytes: u64,
}

/// What organizations may upload. The operator's own components are not concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Uploads {
    /// Nothing.
    Off,
    /// What one of the trusted keys has signed.
    Signed,
    /// Every component that is admitted.
    On,
}

impl Default for ComponentSettings {
    fn default() -> Self {
        Self {
            limits: BTreeMap::new(),
            compile_limit: Duration::from_secs(120),
            trusted_keys: BTreeMap::new(),
            compiler: None,
            uploads: None,
            quota_bytes: 512 * 1024 * 1024,
            quota_versions: 200,
            quota_compile_minutes: 20,
            native_code_bytes: 2 * 1024 * 1024 * 1024,
        }
    }
}

impl ComponentSettings {
    /// What organizations may upload.
    pub fn uploads(&self, production: bool) -> Uploads {
        let signed = production || !self.trusted_keys.is_empty();
        self.uploads.unwrap_or(match signed {
            true => Uploads::Signed,
            false => Uploads::On,
        })
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn production_takes_signed_uploads_only_unless_it_is_set_otherwise() {
        let mut settings = ComponentSettings::default();
        assert_eq!(settings.uploads(false), Uploads::On);
        assert_eq!(settings.uploads(true), Uploads::Signed);
        settings.trusted_keys.insert("counsel".into(), "00".into());
        assert_eq!(settings.uploads(false), Uploads::Signed);
        settings.uploads = Some(Uploads::On);
        assert_eq!(settings.uploads(true), Uploads::On);
    }
}
