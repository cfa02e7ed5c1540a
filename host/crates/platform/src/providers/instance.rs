//! Configuration of a provider instance that an organization activates with a plugin of its
//! own. The operator's instances are in the settings file.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use crate::{ServiceError, ValidationIssue};
use holdfast_adapters::delivery::guard::{self, AllowedAddresses};
use holdfast_base::config::SecretText;
use holdfast_domain::at_rest::AtRestCipher;
use holdfast_domain::component::InstanceReference;
use holdfast_domain::id::OrgId;

/// Configuration of an organization's provider instance.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{
    "base_url": "https://api.sign.example", "allow_hosts": ["api.sign.example", "files.sign.example"],
    "settings": { "region": "eu" }, "secrets": { "api_key": "…" }, "timeout_seconds": 10,
}]))]
pub struct InstanceConfig {
    /// Base URL of the provider's API; the plugin reads it as setting `base_url`.
    #[schemars(with = "String", length(max = 2000))]
    pub base_url: Url,
    /// Hosts that the plugin may connect to; defaults to the host of `base_url`.
    #[serde(default)]
    #[schemars(length(max = 20))]
    pub allow_hosts: Option<Vec<String>>,
    /// Further settings for the plugin.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Secrets that the plugin can use but not read. They are never shown again.
    #[serde(default)]
    pub secrets: BTreeMap<String, String>,
    /// Timeout of one request in seconds, 1 to 30.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 30))]
    pub timeout_seconds: u64,
}

fn ten() -> u64 {
    10
}

impl fmt::Debug for InstanceConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Settings and secrets must not reach the logs.
        formatter
            .debug_struct("InstanceConfig")
            .field("base_url", &self.base_url.as_str())
            .finish_non_exhaustive()
    }
}

impl InstanceConfig {
    /// Validates the configuration.
    pub fn issues(&self, allow_insecure: bool) -> Vec<ValidationIssue> {
        // The plugin sends secrets to this address, so it must not lead into the operator's own network.
        let refused =
            guard::check_url(&self.base_url, &AllowedAddresses::public(allow_insecure)).err();
        refused
            .map(|why| {
                ValidationIssue::new(
                    "invalid_url",
                    &["config", "base_url"],
                    "a public https URL",
                    self.base_url.as_str(),
                    why.to_string(),
                )
            })
            .into_iter()
            .collect()
    }

    /// Encrypts the configuration for storage, bound to this instance.
    pub fn sealed(
        &self,
        cipher: &AtRestCipher,
        org: Option<&OrgId>,
        name: &str,
    ) -> Result<String, ServiceError> {
        let text = serde_json::to_string(self)
            .map_err(|error| ServiceError::Internal(error.to_string()))?;
        let org = org.map_or("", OrgId::as_str);
        Ok(cipher.encrypt(&text, &Self::context(org, name)))
    }

    /// Returns the configuration with the names of the secrets only.
    pub fn without_secrets(&self) -> Value {
        let mut shown = json!(self);
        shown["secrets"] = json!(self.secrets.keys().collect::<Vec<_>>());
        shown
    }

    /// Decrypts a stored configuration. None if it was encrypted with a key this node lacks.
    pub fn open(sealed: &str, cipher: &AtRestCipher, instance: &InstanceReference) -> Option<Self> {
        let org = instance.org.as_ref().map_or("", OrgId::as_str);
        let context = Self::context(org, &instance.name);
        serde_json::from_str(&cipher.open(sealed, &context)?).ok()
    }

    /// Returns the context that binds the ciphertext to an instance; `org` is empty for the
    /// installation.
    pub fn context(org: &str, name: &str) -> String {
        format!("{org}.{name}")
    }

    /// Returns the settings as the plugin reads them, with `base_url`.
    pub fn all_settings(&self) -> BTreeMap<String, String> {
        let mut settings = self.settings.clone();
        let base_url = self.base_url.as_str().trim_end_matches('/').to_owned();
        settings.insert("base_url".into(), base_url);
        settings
    }

    /// Returns the hosts that the plugin may connect to.
    pub fn hosts(&self) -> Vec<String> {
        let own = || vec![self.base_url.host_str().unwrap_or_default().to_owned()];
        self.allow_hosts.clone().unwrap_or_else(own)
    }

    /// Returns the secrets by name.
    pub fn secret_texts(&self) -> BTreeMap<String, SecretText> {
        self.secrets
            .iter()
            .map(|(name, secret)| (name.clone(), SecretText::new(secret)))
            .collect()
    }

    /// Returns the timeout of one request.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_seconds)
    }
}
