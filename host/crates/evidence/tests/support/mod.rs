//! Evidence of a record, made without an installation: a ledger with acts of control and own rules, in a
//! log with other entries, and rules that answer for the recorded facts only.

#![allow(dead_code)]

use std::collections::BTreeMap;

use bytes::Bytes;
use holdfast_domain::checkpoint::{Checkpoint, CheckpointSigner, entry_leaf};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::ComponentIdentity;
use holdfast_domain::hash::sha256;
use holdfast_domain::id::OrgId;
use holdfast_domain::ledger::{LedgerEntry, NewEntry};
use holdfast_domain::merkle::{Hash, TileReader, leaf_hash};
use holdfast_evidence::formats::{
    ComponentEntry, ComponentLedger, CustodyLedger, LogConsistency, LogEvidence, LogHead,
    LogInclusion,
};
use holdfast_evidence::{
    Bundle, BundleError, CertificateRules, Rules, TrustedLogs, VerificationReport, verify,
};
use serde_json::{Value, json};

pub const ENVELOPE: &str = "env_01h455vb4pex5vsknk084sn02q";
pub const ORGANIZATION: &str = "org_01h455vb4pex5vsknk084sn02q";
pub const BANK: &str = "org_01h455vb4pex5vsknk084sn02r";
pub const ORIGIN: &str = "vault.example/ledger";

const ACTIVATION: &str = "act_01h455vb4pex5vsknk084sn02q";
const LIFECYCLE_ACTIVATION: &str = "act_01h455vb4pex5vsknk084sn02r";

/// Log of all ledgers of an installation.
pub struct TestLog {
    pub signer: CheckpointSigner,
    tiles: TileReader,
    pub size: u64,
}

impl TestLog {
    pub fn new(seed: u8) -> Self {
        Self {
            signer: CheckpointSigner::new(&[seed; 32]).unwrap(),
            tiles: TileReader::default(),
            size: 0,
        }
    }

    /// Adds a leaf, and returns its index.
    fn append(&mut self, leaf: Hash) -> u64 {
        self.tiles.append(self.size, leaf).unwrap();
        self.size += 1;
        self.size - 1
    }

    /// Adds entries of other ledgers.
    pub fn others(&mut self, count: u64) {
        for _ in 0..count {
            self.append(leaf_hash(&self.size.to_be_bytes()));
        }
    }

    pub fn entry(&mut self, chain: &str, entry: &LedgerEntry) -> u64 {
        self.append(entry_leaf(chain, entry.sequence, &entry.hash))
    }

    pub fn head(&self, size: u64) -> Checkpoint {
        Checkpoint {
            origin: ORIGIN.into(),
            size,
            root: self.tiles.root(size).unwrap(),
        }
    }

    pub fn note(&self, size: u64) -> String {
        self.signer.sign(&self.head(size))
    }

    pub fn key(&self) -> String {
        self.signer.verifier(ORIGIN).to_string()
    }

    pub fn consistency(&self, from: u64, size: u64) -> LogConsistency {
        let proof = self.tiles.consistency(from, size).unwrap();
        LogConsistency {
            from,
            proof: proof.iter().map(hex::encode).collect(),
        }
    }

    pub fn inclusion(&self, index: u64, size: u64) -> Vec<String> {
        let proof = self.tiles.inclusion(index, size).unwrap();
        proof.iter().map(hex::encode).collect()
    }

    /// Returns a head as `/ledger/head` answers, with a proof for the tree of `since` entries.
    pub fn answer(&self, size: u64, since: Option<u64>) -> String {
        let head = LogHead {
            origin: ORIGIN.into(),
            tree_size: size,
            root_hash: hex::encode(self.head(size).root),
            signed_at: None,
            checkpoint: self.note(size),
            public_key: self.key(),
            consistency: since.map(|since| self.consistency(since, size)),
            successions: Vec::new(),
        };

        json!({ "data": head }).to_string()
    }
}

/// Chain of entries that is being written.
#[derive(Default)]
struct Chain(Vec<LedgerEntry>);

impl Chain {
    fn write(&mut self, actor: &str, action: &str, details: Value) -> LedgerEntry {
        let new = NewEntry {
            at: Timestamp::from_millis(1_790_000_000_000 + self.0.len() as i64 * 1000),
            actor: actor.into(),
            action: action.into(),
            details,
        };
        self.0.push(LedgerEntry::after(self.0.last(), new));
        self.0.last().unwrap().clone()
    }
}

/// Rules that give the certificate for the recorded facts, and another one for others.
struct RecordedRules {
    identity: ComponentIdentity,
    facts: Value,
    certificate: String,
}

impl CertificateRules for RecordedRules {
    fn identity(&self) -> Result<ComponentIdentity, String> {
        Ok(self.identity.clone())
    }

    fn has_pack(&self, _: &str) -> bool {
        true
    }

    fn certificate(
        &self,
        facts: &Value,
        issued_at: &str,
        issuer: &str,
        _: Option<&str>,
    ) -> Result<String, String> {
        let same = *facts == self.facts && issued_at == ISSUED_AT && issuer == ISSUER;
        Ok(if same {
            self.certificate.clone()
        } else {
            "other".into()
        })
    }
}

const ISSUED_AT: &str = "2026-09-21T14:13:20.000Z";
const ISSUER: &str = "Example Vault";

/// A bundle, and the log that it is in.
pub struct Evidence {
    pub files: BTreeMap<String, Vec<u8>>,
    pub log: TestLog,
    /// Entries in the log when the certificate was written.
    pub certified: u64,
    /// Entries of the bundle's head.
    pub size: u64,
    rules: Rules,
}

impl Evidence {
    /// Makes the bundle of a record that was controlled by a bank, and released by it.
    pub fn new() -> Self {
        Self::with(&organization(), true)
    }

    /// Makes the bundle of test data, which the rules of its organization judge.
    pub fn of_test_data() -> Self {
        Self::with(&organization().test(), true)
    }

    /// Makes a bundle of an earlier release, with a first entry that does not name the organization.
    pub fn of_earlier_release() -> Self {
        Self::with(&organization(), false)
    }

    fn with(organization: &OrgId, names_organization: bool) -> Self {
        let mut log = TestLog::new(7);
        log.others(3);

        // Own rules, uploaded and activated by the organization.
        let rules = b"rules of the organization".to_vec();
        let moves = b"moves of the organization".to_vec();
        let component = |name: &str, bytes: &[u8]| json!({ "name": name, "version": "1.0.0", "sha256": sha256(bytes) });
        let (rules_named, moves_named) = (
            component("acme-rules", &rules),
            component("acme-moves", &moves),
        );

        let mut components = Chain::default();
        for (named, slot, activation) in [
            (&rules_named, "rules.compliance", ACTIVATION),
            (&moves_named, "rules.lifecycle", LIFECYCLE_ACTIVATION),
        ] {
            let details = json!({ "component": named });
            components.write("user:ada@acme.example", "component.uploaded", details);
            let details = json!({
                "activation_id": activation, "slot": slot, "instance": "", "component": named,
                "reason": null,
            });
            components.write("user:ada@acme.example", "component.activated", details);
        }

        let component_places: Vec<u64> = components
            .0
            .iter()
            .map(|entry| log.entry(ORGANIZATION, entry))
            .collect();
        log.others(2);

        let authoritative = b"%PDF authoritative".to_vec();
        let executed = b"%PDF".to_vec();
        let copy = b"%PDF copy".to_vec();
        let custody_record = b"%PDF custody record".to_vec();
        let notice = b"This is an evidence copy.\n".to_vec();
        let disclosure = b"You have the right to paper.\n".to_vec();

        let mut ledger = Chain::default();
        let mut created = json!({ "status": "sent", "envelope_kind": "esign" });
        if names_organization {
            created["org_id"] = json!(organization);
        }

        ledger.write("key:key_1", "envelope.created", created);
        let details = json!({ "signer": { "email": "ada@example.com", "position": 0 } });
        ledger.write("signer:ada@example.com", "signer.completed", details);
        let mut places: Vec<u64> = ledger
            .0
            .iter()
            .map(|entry| log.entry(ENVELOPE, entry))
            .collect();

        log.others(4);
        let certified = log.size;

        let participants = json!([
            { "slot": "rules.compliance", "name": "acme-rules", "version": "1.0.0", "sha256": sha256(&rules),
              "owner": "organization", "activation_id": ACTIVATION },
            { "slot": "rules.lifecycle", "name": "acme-moves", "version": "1.0.0", "sha256": sha256(&moves),
              "owner": "organization", "activation_id": LIFECYCLE_ACTIVATION },
            { "slot": "rules.documents", "name": "holdfast-documents", "version": "1.0.0",
              "sha256": "0".repeat(64), "owner": "default", "activation_id": null },
        ]);
        let certificate = json!({
            "certificate_type": "test", "issued_at": ISSUED_AT, "issuer": ISSUER,
            "subject": { "envelope_id": ENVELOPE },
            "document_integrity": { "hash_algorithm": "SHA-256", "document_hash": sha256(&authoritative) },
            "ucc_9105_compliance": { "compliant": false, "score": 88, "checks": [] },
            "ledger_checkpoint": log.note(certified),
            "provenance": { "components": participants },
            "consumer_consent": [{ "signer": "Ada", "disclosure_sha256": sha256(&disclosure) }],
        });

        let certificate = serde_json::to_string_pretty(&certificate).unwrap();
        let facts = json!({ "envelope_id": ENVELOPE, "attributes": [] });

        let stored = json!({
            "document_hash": sha256(&authoritative), "signed_document_hash": sha256(&executed),
            "signed_document_size": executed.len(), "rewritten": null, "copy_hash": sha256(&copy),
            "certificate_hash": sha256(certificate.as_bytes()),
            "custody_record_hash": sha256(&custody_record), "seal_certificate_hash": null,
            "trusted_time": null, "components": participants,
        });
        ledger.write("key:key_1", "vault.stored", stored);

        let evaluated = json!({
            "score": 88, "component": rules_named, "issued_at": ISSUED_AT, "issuer": ISSUER,
            "facts": facts, "evaluations": [{ "component": rules_named, "compliant": false }],
        });
        ledger.write("system", "compliance.evaluated", evaluated);
        acts_of_control(&mut ledger, organization.as_str(), &sha256(&authoritative));
        let details = json!({ "file": "archive" });
        ledger.write("download", "authoritative.downloaded", details);

        let details = json!({ "as": "evidence_copy", "notice_sha256": sha256(&notice) });
        ledger.write("key:key_1", "bundle.exported", details);
        let later = ledger.0.iter().skip(places.len());
        let later: Vec<u64> = later.map(|entry| log.entry(ENVELOPE, entry)).collect();
        places.extend(later);
        log.others(5);
        let size = log.size;

        let inclusion = ledger
            .0
            .iter()
            .zip(&places)
            .map(|(entry, place)| LogInclusion {
                sequence: entry.sequence,
                leaf_index: *place,
                proof: log.inclusion(*place, size),
            });

        let custody = CustodyLedger {
            envelope_id: serde_json::from_value(json!(ENVELOPE)).unwrap(),
            org_id: organization.clone(),
            log: Some(LogEvidence {
                checkpoint: log.note(size),
                public_key: log.key(),
                successions: Vec::new(),
                certified: Some(log.consistency(certified, size)),
                inclusion: inclusion.collect(),
            }),
            entries: ledger.0,
        };

        let entries = components.0.into_iter().zip(component_places);
        let mut carried = vec![sha256(&rules), sha256(&moves)];
        carried.sort();
        let component_ledger = ComponentLedger {
            entries: entries
                .map(|(entry, place)| ComponentEntry {
                    chain: ORGANIZATION.into(),
                    entry,
                    leaf_index: place,
                    proof: log.inclusion(place, size),
                })
                .collect(),
            carried_components: Some(carried),
        };

        // Entries behind the bundle's head.
        log.others(6);

        let json_text = |value: Value| serde_json::to_vec_pretty(&value).unwrap();
        let files = BTreeMap::from([
            ("authoritative.pdf".to_owned(), authoritative),
            ("certified-vaulted-copy.pdf".into(), copy),
            (
                "ucc-compliance-certificate.json".into(),
                certificate.clone().into_bytes(),
            ),
            ("vault-custody-record.pdf".into(), custody_record),
            ("custody-ledger.json".into(), json_text(json!(custody))),
            (
                "component-ledger.json".into(),
                json_text(json!(component_ledger)),
            ),
            ("EVIDENCE-COPY.txt".into(), notice),
            (
                format!("disclosures/{}.txt", sha256(&disclosure)),
                disclosure,
            ),
            (format!("components/{}.wasm", sha256(&rules)), rules.clone()),
            (format!("components/{}.wasm", sha256(&moves)), moves),
        ]);

        let rules = RecordedRules {
            identity: ComponentIdentity {
                name: "acme-rules".into(),
                version: "1.0.0".into(),
                sha256: sha256(&rules),
            },
            facts,
            certificate,
        };

        Self {
            files,
            log,
            certified,
            size,
            rules: Ok(Box::new(rules)),
        }
    }

    /// Returns the log's key as the only anchor.
    pub fn trusted(&self) -> TrustedLogs {
        let mut trusted = TrustedLogs::default();
        trusted.key(&self.log.key()).unwrap();
        trusted
    }

    pub fn verify(
        &self,
        files: &BTreeMap<String, Vec<u8>>,
        trusted: &TrustedLogs,
    ) -> Result<VerificationReport, BundleError> {
        let files = files.iter();
        let files = files.map(|(name, bytes)| (name.clone(), Bytes::from(bytes.clone())));
        let no_facts = Err("no facts".into());
        verify(&Bundle::of_files(files), &self.rules, &no_facts, trusted)
    }
}

/// Returns the organization that created the record.
fn organization() -> OrgId {
    OrgId::parse(ORGANIZATION).unwrap()
}

/// Writes the acts of a record that a bank takes over and releases.
fn acts_of_control(ledger: &mut Chain, originator: &str, document_hash: &str) {
    let party = |id: &str| match id {
        "" => Value::Null,
        id => json!({ "organization_id": id, "name": format!("Name of {id}") }),
    };
    let mut epoch = 0;
    let mut act = |ledger: &mut Chain, action: &str, by: &str, controller: &str, to: &str| {
        epoch += 1;
        let details = json!({
            "originator": party(originator), "controller": party(controller), "party": party(by),
            "designee": party(to), "epoch": epoch,
        });
        ledger.write("key:key_1", action, details);
    };
    act(ledger, "control.designated", originator, originator, BANK);

    act(ledger, "control.accepted", BANK, BANK, "");
    act(ledger, "control.release.requested", originator, BANK, "");
    act(ledger, "control.release.consented", BANK, BANK, "");
    let form = json!({ "medium": "electronic", "recipient": "First Example Bank" });
    let released = json!({ "document_hash": document_hash, "form": form });
    ledger.write("key:key_1", "vault.released", released);

    act(ledger, "control.released", originator, BANK, "");
}
