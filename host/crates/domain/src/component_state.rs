//! Desired state of components: a file in a repository, signed by the people who answer for it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::clock::Timestamp;
use super::component::{ComponentIdentity, Slot};
use super::component_change::ChangeSource;
use super::envelope::words;
use super::id::{ActivationId, ChangeId, OrgId};
use super::publisher::{Publisher, named_twice, problem_of};

/// First bytes of a signed message: signatures of other files are not valid for a state.
const CONTEXT: &[u8] = b"holdfast component state v1\n";

/// Returns the bytes that are signed (Ed25519) for a state.
pub fn signed_bytes(text: &str) -> Vec<u8> {
    [CONTEXT, text.as_bytes()].concat()
}

/// Begin of the environment variables with secrets that a state may name: it comes from others than the operator who
/// applies it.
const VARIABLES: &str = "HOLDFAST_STATE_";
/// Most components of a state.
const COMPONENTS: usize = 100;

/// People who sign states, and how many of them have to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StateSigners {
    /// Publishers by name: Ed25519 public keys in hex, or tables with a key in PEM or an identity of Sigstore.
    #[schemars(length(max = 20))]
    pub keys: BTreeMap<String, Publisher>,
    /// Number of publishers that have to sign; 0 is one.
    #[schemars(range(max = 20))]
    pub threshold: u32,
}

impl StateSigners {
    pub fn required(&self) -> usize {
        usize::try_from(self.threshold).unwrap_or(usize::MAX).max(1)
    }

    /// Returns why they cannot be used.
    pub fn problem(&self) -> Option<String> {
        // A broken key would only show when its signature is needed, so the setting is refused at once.
        if let Some((name, why)) = problem_of(&self.keys) {
            return Some(format!("{name} {why}"));
        }
        if let Some(name) = named_twice(&self.keys) {
            return Some(format!("{name} is named twice"));
        }
        // A state can name components of every slot. A signer that is limited to slots
        // would seem limited and would not be.
        if let Some((name, _)) = self.keys.iter().find(|(_, key)| !key.slots.is_empty()) {
            return Some(format!("{name} signs whole states, so it has no slots"));
        }

        // More required signatures than keys would lock the organization out of its own states.
        if self.keys.is_empty() || self.required() <= self.keys.len() {
            None
        } else {
            Some(format!(
                "{} signatures are required of {} keys",
                self.required(),
                self.keys.len()
            ))
        }
    }
}

/// `holdfast.components.yaml`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DesiredState {
    /// Counts up with each state, so that an old one cannot be applied again.
    pub version: u64,
    /// Owner of the components; none for the installation.
    pub organization: Option<OrgId>,
    /// Repository and commit, for entries without one.
    pub source: Option<ChangeSource>,
    pub components: Vec<DesiredComponent>,
}

/// Component that shall be active. Slots and instances that are not named are left alone.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DesiredComponent {
    pub slot: Slot,
    /// Provider instance; none for rules.
    pub instance: Option<String>,
    pub name: String,
    pub version: String,
    /// SHA-256 of the component, lower-case hex.
    pub sha256: String,
    /// File beside the state, or a reference `oci://…`, from which the program uploads a component that the
    /// installation does not have.
    pub from: Option<String>,
    /// Ed25519 signature of the component in base64, where the installation requires one.
    pub signature: Option<String>,
    pub effective_at: Option<Timestamp>,
    pub reason: Option<String>,
    pub source: Option<ChangeSource>,
    /// Settings of a provider instance.
    pub config: Option<DesiredConfig>,
}

/// Settings of a provider instance, with secrets by reference.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DesiredConfig {
    pub base_url: String,
    pub allow_hosts: Option<Vec<String>>,
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    #[serde(default)]
    pub secrets: BTreeMap<String, SecretReference>,
    pub timeout_seconds: Option<u64>,
}

/// Where a secret is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum SecretReference {
    /// Environment variable of the program that applies the state: `HOLDFAST_STATE_…`, with the id of the organization.
    Env(String),
    /// File beside the state or below.
    File(String),
}

impl SecretReference {
    fn is_admitted(&self, prefix: &str) -> bool {
        match self {
            Self::Env(variable) => variable.starts_with(prefix),
            Self::File(file) => is_below(file),
        }
    }
}

/// Whether a path leads to a file in the folder that it begins in, or below.
fn is_below(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    !path.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
}

impl DesiredState {
    /// Returns the begin of the variables that the state may name. One organization cannot name those of another.
    fn variables(&self) -> String {
        match &self.organization {
            Some(org) => format!("{VARIABLES}{}_", org.as_str().to_uppercase()),
            None => VARIABLES.to_owned(),
        }
    }

    /// Returns the first thing that is wrong with the state, apart from what an installation knows.
    pub fn problem(&self) -> Option<String> {
        let mut seen = BTreeSet::new();
        for desired in &self.components {
            let at = desired.place();
            let about = |what: &str| Some(format!("{at}: {what}"));
            // With two entries for one place, the order of the file would decide which component runs.
            if !seen.insert(at.clone()) {
                return about("it is named twice");
            }
            if desired.slot.is_provider() != desired.instance.is_some() {
                return about("providers have an instance, and rules have none");
            }
            // Rules see only their arguments. Settings for them would have no effect.
            if !desired.slot.is_provider() && desired.config.is_some() {
                return about("rules have no settings");
            }

            let is_digest = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            let references = desired.config.iter().flat_map(|config| &config.secrets);
            // The operator applies states that others wrote. Free paths and variables would let an author
            // read the operator's own secrets and send them to a provider.
            for (name, reference) in references {
                let prefix = self.variables();
                if !reference.is_admitted(&prefix) {
                    return about(&format!(
                        "the secret {name} must be a file beside the state or below, or a variable {prefix}…"
                    ));
                }
            }

            let is_reference = |from: &str| from.starts_with("oci://");
            // The same holds for files: an absolute path or `..` would lead out of the folder of the state.
            let from = desired.from.as_deref();
            if from.is_some_and(|from| !is_reference(from) && !is_below(from)) {
                return about("`from` must be a file beside the state or below, or oci://…");
            }
            if desired.sha256.len() != 64 || !desired.sha256.bytes().all(is_digest) {
                return about("sha256 must be 64 lower-case hexadecimal digits");
            }
        }

        // Databases keep the version as a signed 64-bit integer.
        if self.version == 0 || i64::try_from(self.version).is_err() {
            return Some("version begins with 1 and ends with 9223372036854775807".into());
        }

        match self.components.len() {
            0 => Some("the state names no component".into()),
            1..=COMPONENTS => None,
            _ => Some(format!("the state names more than {COMPONENTS} components")),
        }
    }
}

impl DesiredComponent {
    /// Slot, and instance of a provider: `provider.signing/acme`.
    pub fn place(&self) -> String {
        match &self.instance {
            Some(instance) => format!("{}/{instance}", self.slot),
            None => self.slot.to_string(),
        }
    }

    pub fn identity(&self) -> ComponentIdentity {
        ComponentIdentity {
            name: self.name.clone(),
            version: self.version.clone(),
            sha256: self.sha256.clone(),
        }
    }
}

words! {
    /// How a slot compares with the desired state. `missing`: the component was not uploaded. `requested`: a
    /// change request is open. `scheduled`: its activation has an effective date.
    DesiredStatus {
        Active = "active",
        Scheduled = "scheduled",
        Requested = "requested",
        Missing = "missing",
        Drifted = "drifted",
    }
}

/// Desired component of a slot, compared with the active one.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DesiredView {
    pub slot: Slot,
    /// Provider instance; null for rules.
    pub instance: Option<String>,
    pub component: ComponentIdentity,
    pub effective_at: Option<Timestamp>,
    pub status: DesiredStatus,
    /// The active component, if it is another one.
    pub active: Option<ComponentIdentity>,
    /// Open change request.
    pub change_id: Option<ChangeId>,
    /// Activation that was made now.
    pub activation_id: Option<ActivationId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signers_are_distinct_keys_and_enough_of_them() {
        let key = |byte: u8| hex::encode([byte; 32]);
        let signers = |keys: &[(&str, Publisher)], threshold| StateSigners {
            keys: keys
                .iter()
                .map(|(name, key)| ((*name).to_owned(), key.clone()))
                .collect(),
            threshold,
        };

        let [one, two] = [1, 2].map(|byte| Publisher::from(key(byte)));
        let of_a_slot = Publisher {
            slots: vec![Slot::Compliance],
            ..one.clone()
        };
        assert_eq!(StateSigners::default().problem(), None);

        let both = [("a", one.clone()), ("b", two)];
        assert_eq!(signers(&both, 2).problem(), None);

        for (wrong, why) in [
            (signers(&[("a", "00".to_owned().into())], 1), "a must be"),
            (
                signers(&[("a", one.clone()), ("b", one.clone())], 1),
                "b is named twice",
            ),
            (signers(&[("a", of_a_slot)], 1), "a signs whole states"),
            (signers(&[("a", one)], 2), "2 signatures are required of 1"),
        ] {
            let told = wrong.problem().unwrap();
            assert!(told.starts_with(why), "{told}");
        }
    }
}
