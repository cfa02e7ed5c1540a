//! Components that can be replaced at run time, and which one is active.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::clock::Timestamp;
use super::id::{ActivationId, ComponentId, OrgId};

/// What a component is for (contract, section 6).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Slot {
    /// Checks and certificates.
    #[serde(rename = "rules.compliance")]
    Compliance,
    /// Which moves an envelope may make.
    #[serde(rename = "rules.lifecycle")]
    Lifecycle,
    /// Where fields land.
    #[serde(rename = "rules.placement")]
    Placement,
    /// Marks, field values and the custody record.
    #[serde(rename = "rules.documents")]
    Documents,
    /// A service that collects signatures.
    #[serde(rename = "provider.signing")]
    Signing,
    /// A service that collects payments.
    #[serde(rename = "provider.payment")]
    Payment,
    /// A service that asks signers questions from their history.
    #[serde(rename = "provider.kba")]
    Kba,
}

impl Slot {
    /// Every slot, in the order of the contract.
    pub const ALL: [Self; 7] = [
        Self::Compliance,
        Self::Lifecycle,
        Self::Placement,
        Self::Documents,
        Self::Signing,
        Self::Payment,
        Self::Kba,
    ];

    /// As it is written in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Compliance => "rules.compliance",
            Self::Lifecycle => "rules.lifecycle",
            Self::Placement => "rules.placement",
            Self::Documents => "rules.documents",
            Self::Signing => "provider.signing",
            Self::Payment => "provider.payment",
            Self::Kba => "provider.kba",
        }
    }

    /// None for what is no slot.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|slot| slot.as_str() == text)
    }

    /// The WIT world that a component of this slot targets.
    pub fn world(self) -> &'static str {
        match self {
            Self::Compliance => "compliance-rules",
            Self::Lifecycle => "lifecycle-rules",
            Self::Placement => "placement-rules",
            Self::Documents => "documents-rules",
            Self::Signing => "signing-provider",
            Self::Payment => "payment-provider",
            Self::Kba => "kba-provider",
        }
    }

    /// The interface by whose export a component is told to be for this slot,
    /// without its version.
    pub fn interface(self) -> &'static str {
        match self {
            Self::Compliance => "holdfast:compliance/compliance",
            Self::Lifecycle => "holdfast:lifecycle/lifecycle",
            Self::Placement => "holdfast:placement/placement",
            Self::Documents => "holdfast:documents/documents",
            Self::Signing => "holdfast:signing/signing",
            Self::Payment => "holdfast:payment/payment",
            Self::Kba => "holdfast:kba/kba",
        }
    }

    /// Providers speak to a far end; rules know nothing but their arguments.
    pub fn is_provider(self) -> bool {
        matches!(self, Self::Signing | Self::Payment | Self::Kba)
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A component that was admitted.
#[derive(Clone, Debug)]
pub struct Component {
    pub id: ComponentId,
    /// None: the installation's, for every organization.
    pub org: Option<OrgId>,
    pub slot: Slot,
    pub identity: ComponentIdentity,
    /// In bytes.
    pub size: i64,
    /// The interfaces that it asks the host for.
    pub imports: Vec<String>,
    pub conformance: Conformance,
    /// Name of the trusted key that signed it.
    pub signed_by: Option<String>,
    pub uploaded_by: String,
    pub created_at: Timestamp,
}

/// How a component did when it was admitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conformance {
    /// Version of the vectors.
    pub vectors_version: String,
    /// How many questions it answered, all of them rightly.
    pub vectors: u32,
    /// The most linear memory that one of them took, in bytes.
    pub memory_bytes: u64,
    /// The most that one of them took of the fuel of a call; none for providers,
    /// whose time is counted.
    #[serde(default)]
    pub fuel: Option<u64>,
    /// Of the slowest, in microseconds.
    pub slowest_us: u64,
    /// Functions that were called and never ended well, as no far end of the examination
    /// answers like the provider's own: how they go on from there was not seen. Null for
    /// what was examined before this was noted.
    #[serde(default)]
    pub not_reached: Option<Vec<String>>,
}

/// A component put into a slot, from a time on, by somebody, for a reason.
#[derive(Clone, Debug)]
pub struct Activation {
    pub id: ActivationId,
    /// None: for every organization that has none of its own.
    pub org: Option<OrgId>,
    pub slot: Slot,
    /// Of a provider; empty for rules.
    pub instance: String,
    pub component: ComponentId,
    /// What the instance is set up with, sealed.
    pub config: Option<String>,
    pub reason: Option<String>,
    pub activated_by: String,
    pub created_at: Timestamp,
    pub effective_at: Timestamp,
    pub rolled_back: Option<RolledBack>,
}

/// That an activation does not count any more.
#[derive(Clone, Debug)]
pub struct RolledBack {
    pub at: Timestamp,
    pub by: String,
    pub reason: Option<String>,
}

/// A component that took part in making an envelope's evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Participant {
    pub slot: Slot,
    #[serde(flatten)]
    pub identity: ComponentIdentity,
    pub owner: Origin,
    /// The activation that put it into its slot; none for a slot's default.
    pub activation_id: Option<ActivationId>,
}

/// Where a component comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// It came with the program.
    Default,
    /// The operator uploaded it.
    Operator,
    /// The organization uploaded it.
    Organization,
}

/// Whose instance, and its name. Written `name`, or `org_….name` where it is an
/// organization's own: so it stands in templates and in the path of callbacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    pub org: Option<OrgId>,
    pub name: String,
}

impl Instance {
    /// One that an organization set up.
    pub fn own(org: &OrgId, name: &str) -> Self {
        Self {
            org: Some(org.clone()),
            name: name.into(),
        }
    }

    /// Reads what [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Self {
        let own = text
            .split_once('.')
            .and_then(|(org, name)| Some((OrgId::parse(org)?, name)));
        match own {
            Some((org, name)) => Self::own(&org, name),
            None => Self {
                org: None,
                name: text.into(),
            },
        }
    }
}

impl fmt::Display for Instance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.org {
            Some(org) => write!(formatter, "{org}.{}", self.name),
            None => formatter.write_str(&self.name),
        }
    }
}

/// Which component something is. Goes into every decision it makes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct ComponentIdentity {
    pub name: String,
    pub version: String,
    /// SHA-256 of the component's bytes, lower-case hex.
    pub sha256: String,
}

/// Name and version, for log lines and metrics.
impl fmt::Display for ComponentIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.name, self.version)
    }
}
