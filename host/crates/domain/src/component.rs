//! Components that can be replaced at run time, and their activations.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::clock::Timestamp;
use super::envelope::words;
use super::id::{ActivationId, ComponentId, LogLineId, OrgId};

/// Purpose of a component (contract, section 6).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Slot {
    /// Compliance checks and certificates.
    #[serde(rename = "rules.compliance")]
    Compliance,
    /// Status transitions of envelopes.
    #[serde(rename = "rules.lifecycle")]
    Lifecycle,
    /// Positions of fields on pages.
    #[serde(rename = "rules.placement")]
    Placement,
    /// Marks, field values and the custody record.
    #[serde(rename = "rules.documents")]
    Documents,
    /// Acts of the parties that control a record.
    #[serde(rename = "rules.control")]
    Control,
    /// Conditions under which a lender funds a contract.
    #[serde(rename = "rules.funding")]
    Funding,
    /// A service that collects signatures.
    #[serde(rename = "provider.signing")]
    Signing,
    /// A service that collects payments.
    #[serde(rename = "provider.payment")]
    Payment,
    /// A service that asks signers questions from their history.
    #[serde(rename = "provider.kba")]
    Kba,
    /// A service that delivers text messages.
    #[serde(rename = "provider.messaging")]
    Messaging,
    /// A service that makes PDFs of word processor documents.
    #[serde(rename = "provider.conversion")]
    Conversion,
}

impl Slot {
    /// All slots, in the order of the contract.
    pub const ALL: [Self; 11] = [
        Self::Compliance,
        Self::Lifecycle,
        Self::Placement,
        Self::Documents,
        Self::Control,
        Self::Funding,
        Self::Signing,
        Self::Payment,
        Self::Kba,
        Self::Messaging,
        Self::Conversion,
    ];

    /// Text form, as used in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Compliance => "rules.compliance",
            Self::Lifecycle => "rules.lifecycle",
            Self::Placement => "rules.placement",
            Self::Documents => "rules.documents",
            Self::Control => "rules.control",
            Self::Funding => "rules.funding",
            Self::Signing => "provider.signing",
            Self::Payment => "provider.payment",
            Self::Kba => "provider.kba",
            Self::Messaging => "provider.messaging",
            Self::Conversion => "provider.conversion",
        }
    }

    /// Parses a slot; `None` if there is no such slot.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|slot| slot.as_str() == text)
    }

    /// Returns the WIT world that a component of this slot targets.
    pub fn world(self) -> &'static str {
        match self {
            Self::Compliance => "compliance-rules",
            Self::Lifecycle => "lifecycle-rules",
            Self::Placement => "placement-rules",
            Self::Documents => "documents-rules",
            Self::Control => "control-rules",
            Self::Funding => "funding-rules",
            Self::Signing => "signing-provider",
            Self::Payment => "payment-provider",
            Self::Kba => "kba-provider",
            Self::Messaging => "messaging-provider",
            Self::Conversion => "conversion-provider",
        }
    }

    /// Returns the interface, without version, that identifies a component of this slot: the
    /// component exports it.
    pub fn interface(self) -> &'static str {
        match self {
            Self::Compliance => "holdfast:compliance/compliance",
            Self::Lifecycle => "holdfast:lifecycle/lifecycle",
            Self::Placement => "holdfast:placement/placement",
            Self::Documents => "holdfast:documents/documents",
            Self::Control => "holdfast:control/control",
            Self::Funding => "holdfast:funding/funding",
            Self::Signing => "holdfast:signing/signing",
            Self::Payment => "holdfast:payment/payment",
            Self::Kba => "holdfast:kba/kba",
            Self::Messaging => "holdfast:messaging/messaging",
            Self::Conversion => "holdfast:conversion/conversion",
        }
    }

    /// Whether components of this slot call an external service. Rules see only their arguments.
    pub fn is_provider(self) -> bool {
        matches!(
            self,
            Self::Signing | Self::Payment | Self::Kba | Self::Messaging | Self::Conversion
        )
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Admitted component.
#[derive(Clone, Debug)]
pub struct Component {
    pub id: ComponentId,
    /// Owner; `None` for a component of the installation, available to every organization.
    pub org: Option<OrgId>,
    pub slot: Slot,
    pub identity: ComponentIdentity,
    /// Size in bytes.
    pub size: i64,
    /// Host interfaces that the component imports.
    pub imports: Vec<String>,
    pub conformance: ConformanceResult,
    /// Name of the trusted key that signed the component.
    pub signed_by: Option<String>,
    pub uploaded_by: String,
    pub created_at: Timestamp,
}

impl Component {
    /// Value of `uploaded_by` of a component that came with a release.
    pub const OF_RELEASE: &str = "system";
}

/// Result of the conformance test at admission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConformanceResult {
    /// Version of the test vectors.
    pub vectors_version: String,
    /// Number of test vectors, all of which passed.
    pub vectors: u32,
    /// Number of the team's own vectors that hold, those of earlier versions included.
    #[serde(default)]
    pub own_vectors: u32,
    /// Peak linear memory of a single vector, in bytes.
    pub memory_bytes: u64,
    /// Peak fuel consumption of a single vector; null for providers, which are limited by time.
    #[serde(default)]
    pub fuel: Option<u64>,
    /// Processor time of the slowest vector on the machine of the examination, in microseconds.
    pub slowest_us: u64,
    /// Functions that were called and never succeeded, because the simulated external service
    /// does not answer like the provider's own. Their success path is untested. Null for
    /// components admitted before this was recorded.
    #[serde(default)]
    pub not_reached: Option<Vec<String>>,
}

/// Activation: makes a component the active one of a slot from a point in time on.
#[derive(Clone, Debug)]
pub struct ComponentActivation {
    pub id: ActivationId,
    /// Organization; `None` for every organization without an activation of its own.
    pub org: Option<OrgId>,
    pub slot: Slot,
    /// Name of the provider instance; empty for rules.
    pub instance: String,
    pub component: ComponentId,
    /// Sealed configuration of the provider instance.
    pub config: Option<String>,
    pub reason: Option<String>,
    pub activated_by: String,
    pub created_at: Timestamp,
    pub effective_at: Timestamp,
    pub rolled_back: Option<RolledBack>,
}

/// Rollback of an activation.
#[derive(Clone, Debug)]
pub struct RolledBack {
    pub at: Timestamp,
    pub by: String,
    pub reason: Option<String>,
}

/// Component that contributed to the evidence of an envelope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceParticipant {
    pub slot: Slot,
    #[serde(flatten)]
    pub identity: ComponentIdentity,
    pub owner: DecisionOrigin,
    /// Activation of the component; null for a slot's default.
    pub activation_id: Option<ActivationId>,
}

/// Origin of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DecisionOrigin {
    /// Built into the binary.
    Default,
    /// Uploaded by the operator.
    Operator,
    /// Uploaded by the organization.
    Organization,
}

/// Reference to a provider instance: `name`, or `org_….name` for an instance that an
/// organization set up. Templates and the path of callbacks contain this text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceReference {
    pub org: Option<OrgId>,
    pub name: String,
}

impl InstanceReference {
    /// References an instance that the organization set up.
    pub fn own(org: &OrgId, name: &str) -> Self {
        Self {
            org: Some(org.clone()),
            name: name.into(),
        }
    }

    /// Parses the output of [`fmt::Display`].
    pub fn parse(text: &str) -> Self {
        // An operator's instance can contain a dot too, so the part before it must be an organization's id.
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

impl fmt::Display for InstanceReference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.org {
            Some(org) => write!(formatter, "{org}.{}", self.name),
            None => formatter.write_str(&self.name),
        }
    }
}

/// Identity of a component, recorded in every decision that the component makes.
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

/// Line in the log of an organization's provider instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceLogLine {
    pub id: LogLineId,
    pub org: OrgId,
    pub slot: Slot,
    pub instance: String,
    pub at: Timestamp,
    pub level: InstanceLogLevel,
    /// Name and version of the component.
    pub component: String,
    pub message: String,
}

words! {
    /// Severity of a log line.
    InstanceLogLevel {
        Info = "info",
        Warn = "warn",
        Error = "error",
    }
}
