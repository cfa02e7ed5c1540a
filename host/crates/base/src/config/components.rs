//! `[components]`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use holdfast_domain::component_state::StateSigners;
use holdfast_domain::publisher::Publisher;

use super::limits::{AllLimits, LimitSettings};
use super::{ConfigError, SecretText, duration};

/// Rules for uploading components and limits on running them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ComponentSettings {
    /// Overrides of a call's default limits, by slot.
    pub limits: BTreeMap<String, LimitSettings>,
    /// Processor time that compiling one component may take.
    #[serde(deserialize_with = "duration")]
    #[schemars(with = "String")]
    pub compile_limit: Duration,
    /// Publishers by name: Ed25519 public keys in hex, or tables with `key` (PEM) or `identity` and `issuer` (Sigstore),
    /// and with `slots`. If there are any, only components signed by one of them are admitted. Earlier name: `trusted_keys`.
    #[serde(alias = "trusted_keys")]
    pub trusted: BTreeMap<String, Publisher>,
    /// Trusted root for bundles of Sigstore (`trusted_root.json`); that of the public instance, as of this
    /// release, if not set.
    pub sigstore_root_file: Option<PathBuf>,
    /// Program that compiles components in a separate process; default: this executable.
    pub compiler: Option<PathBuf>,
    /// Compiles components in this process. Set by `holdfast dev`, where the user and the author are one.
    #[serde(skip)]
    pub compiles_own_work: bool,
    /// Which uploads are accepted; default: `signed` in
    /// production or when trusted keys are set, otherwise `on`.
    pub uploads: Option<UploadPolicy>,
    /// Largest total size of one organization's components, in bytes.
    pub quota_bytes: u64,
    /// Largest number of components of one organization; each version counts.
    pub quota_versions: u32,
    /// Approvals that every organization's change of components needs; its own policy can require more.
    pub reviews_required: u32,
    /// People who sign the desired state of the installation's components, and that of organizations without keys of
    /// their own. If there are any, the installation's components are changed by a signed state only.
    pub state: StateSigners,
    /// Logins of OCI registries, by host and port.
    pub registries: BTreeMap<String, RegistryLogin>,
    /// Minutes of compile time per hour for one organization.
    pub quota_compile_minutes: u32,
    /// Size of this node's on-disk cache of native code. The least recently used code is evicted
    /// and compiled again on demand.
    pub native_code_bytes: u64,
}

/// Login of an OCI registry.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegistryLogin {
    /// Name of the user, which some registries ignore.
    pub username: String,
    /// File with the password or access token.
    pub password_file: PathBuf,
}

impl RegistryLogin {
    /// Reads the password.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn password(&self) -> std::io::Result<SecretText> {
        let text = std::fs::read_to_string(&self.password_file)?;
        // Editors append a newline, which is never part of the password.
        Ok(SecretText::new(text.trim_end()))
    }
}

/// Which components organizations may upload. The operator's own components are exempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UploadPolicy {
    /// Uploads are disabled.
    Off,
    /// Components signed with a trusted key.
    Signed,
    /// Every component that passes admission.
    On,
}

impl Default for ComponentSettings {
    fn default() -> Self {
        Self {
            limits: BTreeMap::new(),
            compile_limit: Duration::from_secs(120),
            trusted: BTreeMap::new(),
            sigstore_root_file: None,
            compiler: None,
            compiles_own_work: false,
            uploads: None,
            quota_bytes: 512 * 1024 * 1024,
            quota_versions: 200,
            reviews_required: 0,
            state: StateSigners::default(),
            registries: BTreeMap::new(),
            quota_compile_minutes: 20,
            native_code_bytes: 2 * 1024 * 1024 * 1024,
        }
    }
}

impl ComponentSettings {
    /// Returns the configured policy, or the default for the environment.
    pub fn uploads(&self, production: bool) -> UploadPolicy {
        // An operator who names publishers means to admit theirs only, in development too.
        let signed = production || !self.trusted.is_empty();
        self.uploads.unwrap_or(if signed {
            UploadPolicy::Signed
        } else {
            UploadPolicy::On
        })
    }

    /// Returns the limits of every slot.
    ///
    /// # Errors
    ///
    /// Fails on an unknown slot or limit.
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
    fn production_accepts_only_signed_uploads_by_default() {
        let mut settings = ComponentSettings::default();
        assert_eq!(settings.uploads(false), UploadPolicy::On);
        assert_eq!(settings.uploads(true), UploadPolicy::Signed);
        let key = Publisher::from("00".to_owned());
        settings.trusted.insert("counsel".into(), key);
        assert_eq!(settings.uploads(false), UploadPolicy::Signed);
        settings.uploads = Some(UploadPolicy::On);
        assert_eq!(settings.uploads(true), UploadPolicy::On);
    }
}
