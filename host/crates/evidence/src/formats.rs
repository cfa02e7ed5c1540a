//! What a bundle holds and what the log answers, as JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::{EnvelopeId, OrgId};
use holdfast_domain::ledger::LedgerEntry;

/// The authoritative copy's file in a bundle.
pub const AUTHORITATIVE: &str = "authoritative.pdf";
/// The non-authoritative copy.
pub const COPY: &str = "certified-vaulted-copy.pdf";
/// The compliance certificate.
pub const CERTIFICATE: &str = "ucc-compliance-certificate.json";
/// The custody record.
pub const CUSTODY_RECORD: &str = "vault-custody-record.pdf";
/// A [`CustodyLedger`].
pub const LEDGER: &str = "custody-ledger.json";
/// A [`ComponentLedger`].
pub const COMPONENT_LEDGER: &str = "component-ledger.json";
/// Folder of the rules components that decided, each as `<sha256>.wasm`.
pub const COMPONENTS: &str = "components";

/// `custody-ledger.json`, and the answer of the custody endpoint.
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
    /// Oldest first.
    pub entries: Vec<LedgerEntry>,
    /// That the entries are in the log of all ledgers; the newest follow within
    /// a second or two.
    pub log: Option<LogEvidence>,
}

/// `component-ledger.json`: how the components that took part came to be active.
/// The proofs lead to the checkpoint of `custody-ledger.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ComponentLedger {
    /// Those that uploaded and activated them.
    pub entries: Vec<ComponentEntry>,
}

/// An entry of the organization's component ledger or the installation's, and the
/// proof that the log holds it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ComponentEntry {
    /// The organization's id, or `installation`.
    pub chain: String,
    /// The entry itself.
    #[serde(flatten)]
    pub entry: LedgerEntry,
    /// Its place in the log, from 0.
    pub leaf_index: u64,
    /// The nodes of the inclusion proof (RFC 6962), hex.
    pub proof: Vec<String>,
}

/// `GET /ledger/head`: the log's head, signed.
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
    /// The log's name.
    pub origin: String,
    /// Entries in the log.
    pub tree_size: u64,
    /// Root of the tree over them (RFC 6962), hex.
    pub root_hash: String,
    /// When it was signed, by this host's clock.
    pub signed_at: Option<Timestamp>,
    /// The same as a signed note (C2SP `tlog-checkpoint`).
    pub checkpoint: String,
    /// What the note is verified with (C2SP `signed-note`).
    pub public_key: String,
    /// With `?since=`: that the tree of that size is the beginning of this one.
    pub consistency: Option<Consistency>,
    /// How the key came to follow the ones before, oldest first: notes that the old and the
    /// new key have signed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub successions: Vec<String>,
}

/// A consistency proof (RFC 6962, section 2.1.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Consistency {
    /// Size of the older tree.
    pub from: u64,
    /// Its nodes, hex.
    pub proof: Vec<String>,
}

/// What proves that a ledger's entries are in the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogEvidence {
    /// The signed head that the proofs lead to.
    pub checkpoint: String,
    /// The log's key, to verify the checkpoint.
    pub public_key: String,
    /// How the key came to follow the ones before, oldest first: notes that the old and the
    /// new key have signed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub successions: Vec<String>,
    /// That the head in the envelope's certificate is the beginning of this one.
    pub certified: Option<Consistency>,
    /// One for each entry that has its place; the newest may still wait.
    pub inclusion: Vec<Inclusion>,
}

/// An inclusion proof (RFC 6962, section 2.1.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Inclusion {
    /// Of the ledger entry.
    pub sequence: i64,
    /// Its place in the log, from 0.
    pub leaf_index: u64,
    /// The nodes of the proof, hex.
    pub proof: Vec<String>,
}
