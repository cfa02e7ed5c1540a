//! File names and JSON formats of bundles and of the log.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::{DecisionOrigin, EvidenceParticipant};
use holdfast_domain::id::{EnvelopeId, OrgId};
use holdfast_domain::ledger::{INSTALLATION, LedgerEntry};

/// File of the authoritative copy.
pub const AUTHORITATIVE: &str = "authoritative.pdf";
/// File of the authoritative copy in the bundle of a record that a paper original has replaced.
pub const EVIDENCE_COPY: &str = "evidence-copy.pdf";
/// File to print the paper original from.
pub const PAPER_ORIGINAL: &str = "paper-original.pdf";
/// File of the non-authoritative copy.
pub const COPY: &str = "certified-vaulted-copy.pdf";
/// File of the compliance certificate.
pub const CERTIFICATE: &str = "ucc-compliance-certificate.json";
/// File of the custody record.
pub const CUSTODY_RECORD: &str = "vault-custody-record.pdf";
/// File of the [`CustodyLedger`].
pub const LEDGER: &str = "custody-ledger.json";
/// File of the [`ComponentLedger`].
pub const COMPONENT_LEDGER: &str = "component-ledger.json";
/// File of the facts of the contract, with the map that they were read with.
pub const FACTS: &str = "facts.json";
/// File with the bytes behind the authoritative copy that keep its seal provable: validation data and time stamps.
pub const SEAL_UPDATES: &str = "seal-updates.bin";
/// Notice that a bundle is an evidence copy.
pub const NOTICE: &str = "EVIDENCE-COPY.txt";
/// Folder of the rules components that decided, each as `<sha256>.wasm`.
pub const COMPONENTS: &str = "components";
/// Folder of the texts about electronic records that signers were shown, each as `<sha256>.txt`.
pub const DISCLOSURES: &str = "disclosures";

/// Custody ledger of an envelope: `custody-ledger.json`, and the response of the custody
/// endpoint.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "org_id": "org_01jdk7m3e8f4x9s2w5v6b0c1dd",
    "entries": [{
        "sequence": 1, "at": "2026-11-21T09:30:00.000Z", "actor": "key:key_01jdk7m3e8f4x9s2w5v6b0c1de",
        "action": "envelope.created", "details": { "status": "sent", "envelope_kind": "esign" },
        "previous_hash": "0000000000000000000000000000000000000000000000000000000000000000",
        "hash": "1f5c0d9a7e7b0a3c44d1b2f58a0e9c6d3b8a7f6e5d4c3b2a19080f7e6d5c4b3a",
    }],
    "log": {
        "checkpoint": "vault.example/ledger\n1\nXcnaeacGWamtVZy3Ad7Zoqudgjqt0klgz+Nw7/RgQyg=\n\n— vault.example/ledger x5Ah…\n",
        "public_key": "vault.example/ledger+c7902100+AQ3k…",
        "inclusion": [{ "sequence": 1, "leaf_index": 0, "proof": [] }],
    },
}]))]
pub struct CustodyLedger {
    /// The envelope.
    pub envelope_id: EnvelopeId,
    /// The envelope's organization.
    pub org_id: OrgId,
    /// Entries, oldest first.
    pub entries: Vec<LedgerEntry>,
    /// Proof that the entries are in the log of all ledgers. New entries get their proof within
    /// a second or two.
    pub log: Option<LogEvidence>,
}

/// Component ledger of a bundle, `component-ledger.json`: the activations of the components that
/// contributed to the evidence. The proofs lead to the checkpoint of `custody-ledger.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ComponentLedger {
    /// Entries of the uploads and activations.
    pub entries: Vec<ComponentEntry>,
    /// SHA-256 of each component in the folder `components`, in their order. Absent in bundles of early
    /// releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried_components: Option<Vec<String>>,
}

/// Entry of the component ledger of an organization or the installation, and the
/// proof that it is in the log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ComponentEntry {
    /// The organization's id, or `installation`.
    pub chain: String,
    /// The entry.
    #[serde(flatten)]
    pub entry: LedgerEntry,
    /// Index of the entry in the log, from 0.
    pub leaf_index: u64,
    /// Nodes of the inclusion proof (RFC 6962), hex.
    pub proof: Vec<String>,
}

impl ComponentEntry {
    /// Whether this entry records the upload of a component that took part.
    pub fn uploads(&self, participant: &EvidenceParticipant) -> bool {
        let component = &self.entry.details["component"];
        let identity = &participant.identity;
        // The operator's uploads are in the chain of the installation, others in that of their organization.
        let is_installations = self.chain == INSTALLATION;
        self.entry.action == "component.uploaded"
            && is_installations == (participant.owner == DecisionOrigin::Operator)
            && component["name"].as_str() == Some(identity.name.as_str())
            && component["version"].as_str() == Some(identity.version.as_str())
            && component["sha256"].as_str() == Some(identity.sha256.as_str())
    }

    /// Whether this entry records the activation by which a component took part.
    pub fn activates(&self, participant: &EvidenceParticipant) -> bool {
        let details = &self.entry.details;
        let action = self.entry.action.as_str();
        let id = participant.activation_id.as_ref().map(ToString::to_string);
        // An activation with a later effective date is recorded when it is scheduled.
        matches!(action, "component.activated" | "component.scheduled")
            && details["activation_id"].as_str() == id.as_deref()
            && details["component"]["sha256"].as_str() == Some(participant.identity.sha256.as_str())
            && details["slot"].as_str() == Some(participant.slot.as_str())
    }
}

/// Signed head of the log: the response of `GET /ledger/head`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "origin": "vault.example/ledger", "tree_size": 4711,
    "root_hash": "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    "signed_at": "2026-11-21T09:41:08.911Z",
    "checkpoint": "vault.example/ledger\n4711\nXcnaeacGWamtVZy3Ad7Zoqudgjqt0klgz+Nw7/RgQyg=\n\n— vault.example/ledger x5Ah…\n",
    "public_key": "vault.example/ledger+c7902100+AQ3k…",
    "consistency": null,
}]))]
pub struct LogHead {
    /// Name of the log.
    pub origin: String,
    /// Number of entries in the log.
    pub tree_size: u64,
    /// Root hash of the tree over the entries (RFC 6962), hex.
    pub root_hash: String,
    /// Time of signing, by the clock of the installation.
    pub signed_at: Option<Timestamp>,
    /// The head as a signed note (C2SP `tlog-checkpoint`).
    pub checkpoint: String,
    /// Key that verifies the note (C2SP `signed-note`).
    pub public_key: String,
    /// With `?since=`, the proof that this tree extends the tree of that size.
    pub consistency: Option<LogConsistency>,
    /// Replacements of the log's key, oldest first: notes signed with the old and the new key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub successions: Vec<String>,
}

/// Consistency proof (RFC 6962, section 2.1.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogConsistency {
    /// Size of the older tree.
    pub from: u64,
    /// Nodes of the proof, hex.
    pub proof: Vec<String>,
}

/// Proof that the entries of a ledger are in the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogEvidence {
    /// Signed head that the proofs lead to.
    pub checkpoint: String,
    /// Public key of the log, which verifies the checkpoint.
    pub public_key: String,
    /// Replacements of the log's key, oldest first: notes signed with the old and the new key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub successions: Vec<String>,
    /// Proof that this head extends the head in the envelope's certificate.
    pub certified: Option<LogConsistency>,
    /// Proof for each entry. The newest entries can lack one until they are in the log.
    pub inclusion: Vec<LogInclusion>,
}

/// Inclusion proof (RFC 6962, section 2.1.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogInclusion {
    /// Sequence number of the ledger entry.
    pub sequence: i64,
    /// Index of the entry in the log, from 0.
    pub leaf_index: u64,
    /// Nodes of the proof, hex.
    pub proof: Vec<String>,
}
