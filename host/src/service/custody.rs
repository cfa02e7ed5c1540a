//! The custody ledger of an envelope, and its evidence bundle.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::components::Owner;
use super::log::LogEvidence;
use super::{Caller, ServiceError, components, envelopes as envelope_service, log};
use crate::app::App;
use crate::domain::component::Participant;
use crate::domain::envelope::{Envelope, StoredFile};
use crate::domain::event::EventType;
use crate::domain::id::{EnvelopeId, OrgId};
use crate::domain::ledger::{Chain as _, LedgerEntry};
use crate::evidence::Bundle;
use crate::files::{FilesError, Spooled};
use crate::store::ledger;

/// How long the newest entries may take to get their places.
const PLACE_WAIT: Duration = Duration::from_millis(100);
const PLACE_WAITS: u32 = 30;

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
    pub envelope_id: EnvelopeId,
    pub org_id: OrgId,
    pub entries: Vec<LedgerEntry>,
    /// That the entries are in the log of all ledgers; the newest follow within
    /// a second or two.
    pub log: Option<LogEvidence>,
}

/// The ledger of an envelope of the caller's organization.
///
/// Entries that were written just now are given their places in the log first:
/// by this process, or within a second by the node that extends the log.
pub async fn ledger(app: &App, caller: &Caller, id: &str) -> Result<CustodyLedger, ServiceError> {
    let envelope = envelope_service::get(app, caller, id).await?;
    let (org, id) = (&envelope.org, &envelope.id);
    let mut waits = 0;
    loop {
        // Proofs first: what is appended in between has none, and waits.
        let log = log::evidence(app, org, id).await?;
        let mut connection = app.store.read().await?;
        let entries = ledger::list(&mut connection, Some(org), id).await?;
        drop(connection);
        let proved = log.as_ref().map_or(0, |log| log.inclusion.len());
        if proved >= entries.len() || waits == PLACE_WAITS {
            return Ok(CustodyLedger {
                envelope_id: envelope.id,
                org_id: envelope.org,
                entries,
                log,
            });
        }
        if log::sequence(app).await? == 0 {
            waits += 1;
            tokio::time::sleep(PLACE_WAIT).await;
        }
    }
}

/// File names inside a bundle.
pub const AUTHORITATIVE: &str = "authoritative.pdf";
pub const COPY: &str = "certified-vaulted-copy.pdf";
pub const CERTIFICATE: &str = "ucc-compliance-certificate.json";
pub const CUSTODY_RECORD: &str = "vault-custody-record.pdf";
pub const LEDGER: &str = "custody-ledger.json";
pub const COMPONENT_LEDGER: &str = "component-ledger.json";
/// Folder of the rules components that decided, each as `<sha256>.wasm`.
pub const COMPONENTS: &str = "components";

/// Larger components are not carried in bundles: anyone can download them.
const COMPONENT_LIMIT: i64 = 1024 * 1024;

/// `component-ledger.json`: how the components that took part came to be active.
/// The proofs lead to the checkpoint of `custody-ledger.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ComponentLedger {
    pub entries: Vec<ComponentEntry>,
}

/// An entry of the organization's component ledger or the installation's, and the
/// proof that the log holds it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ComponentEntry {
    /// The organization's id, or `installation`.
    pub chain: String,
    #[serde(flatten)]
    pub entry: LedgerEntry,
    pub leaf_index: u64,
    pub proof: Vec<String>,
}

/// A file of a bundle.
enum Content {
    Stored(StoredFile),
    Made(Bytes),
}

/// The evidence of a released envelope, as one zip. However large its documents are, they
/// are never in memory.
///
/// A bundle holds the authoritative copy, so there is none before vault-out: the
/// live copy leaves the vault only by its single-use link.
pub async fn bundle(app: &App, caller: &Caller, id: &str) -> Result<Spooled, ServiceError> {
    let envelope = envelope_service::get(app, caller, id).await?;
    if envelope.archive.is_none() {
        return Err(ServiceError::Conflict(
            "Envelope has not been released".into(),
        ));
    }
    let folder = app.config.spool_folder();
    let mut sources: Vec<(String, Box<dyn io::Read + Send>)> = Vec::new();
    for (name, content) in files(app, caller, &envelope).await? {
        let source: Box<dyn io::Read + Send> = match content {
            Content::Made(bytes) => Box::new(io::Cursor::new(bytes)),
            Content::Stored(file) => {
                let spooled = app.files.spooled(&file, &folder).await?;
                Box::new(spooled.into_file().map_err(FilesError::Spool)?)
            }
        };
        sources.push((name, source));
    }
    let written = Spooled::written(&folder, |file| {
        let mut zip = zip::ZipWriter::new(file);
        for (name, mut source) in sources {
            zip.start_file(name, zip::write::SimpleFileOptions::default())?;
            io::copy(&mut source, &mut zip)?;
        }
        zip.finish()?;
        Ok(())
    });
    Ok(written.await.map_err(FilesError::Spool)?)
}

/// The evidence of a vaulted or released envelope, for a verification on this
/// machine: the live authoritative copy must not be handed out.
pub async fn evidence(app: &App, caller: &Caller, id: &str) -> Result<Bundle, ServiceError> {
    let envelope = envelope_service::get(app, caller, id).await?;
    let in_vault = envelope.archive.is_none();
    let mut read = Vec::new();
    for (name, content) in files(app, caller, &envelope).await? {
        let bytes = match content {
            Content::Made(bytes) => bytes,
            Content::Stored(file) => app.files.get(&file).await?,
        };
        read.push((name, bytes));
    }
    Ok(Bundle::of_installation(read, in_vault))
}

async fn files(
    app: &App,
    caller: &Caller,
    envelope: &Envelope,
) -> Result<Vec<(String, Content)>, ServiceError> {
    let ledger = ledger(app, caller, envelope.id.as_str()).await?;
    let authoritative = envelope.archive.as_ref().or(envelope.vault.as_ref());
    let mut files = Vec::new();
    for (name, file) in [
        (AUTHORITATIVE, authoritative),
        (COPY, envelope.copy.as_ref()),
        (CERTIFICATE, envelope.certificate.as_ref()),
        (CUSTODY_RECORD, envelope.custody_record.as_ref()),
    ] {
        let file =
            file.ok_or_else(|| ServiceError::Conflict("Envelope has not been vaulted".into()))?;
        files.push((name.to_owned(), Content::Stored(file.clone())));
    }
    let named = participants(&ledger);
    let activations = activations(app, &ledger, &named).await?;
    files.push((LEDGER.to_owned(), pretty(&ledger)?));
    files.push((COMPONENT_LEDGER.to_owned(), pretty(&activations)?));
    let rules = named.iter().filter(|one| !one.slot.is_provider());
    let digests: BTreeSet<&str> = rules.map(|one| one.sha256.as_str()).collect();
    for digest in digests {
        if let Some(bytes) = components::bytes_of(app, digest, COMPONENT_LIMIT).await? {
            let name = format!("{COMPONENTS}/{digest}.wasm");
            files.push((name, Content::Made(bytes)));
        }
    }
    Ok(files)
}

fn pretty(value: &impl Serialize) -> Result<Content, ServiceError> {
    let text = serde_json::to_vec_pretty(value);
    let text = text.map_err(|error| ServiceError::Internal(error.to_string()))?;
    Ok(Content::Made(text.into()))
}

/// The components that the ledger names; none in ledgers of earlier releases.
fn participants(ledger: &CustodyLedger) -> Vec<Participant> {
    let stored = |entry: &&LedgerEntry| entry.action == EventType::VaultStored.as_str();
    let stored = ledger.entries.iter().rfind(stored);
    let named = stored.map(|entry| entry.details["components"].clone());
    named
        .and_then(|named| serde_json::from_value(named).ok())
        .unwrap_or_default()
}

/// The component ledgers' entries about those that were uploaded or activated, with
/// proofs that lead to the custody ledger's checkpoint.
async fn activations(
    app: &App,
    ledger: &CustodyLedger,
    named: &[Participant],
) -> Result<ComponentLedger, ServiceError> {
    let mut entries = Vec::new();
    let activated = named.iter().any(|one| one.activation_id.is_some());
    let Some(evidence) = ledger.log.as_ref().filter(|_| activated) else {
        return Ok(ComponentLedger { entries });
    };
    let about = |entry: &LedgerEntry| {
        let digest = entry.details["component"]["sha256"].as_str();
        named.iter().any(|one| Some(one.sha256.as_str()) == digest)
    };
    let org = Owner::of(ledger.org_id.clone());
    for owner in [org, Owner::installation()] {
        let history = components::history(app, &owner).await?;
        let history: Vec<LedgerEntry> = history.into_iter().filter(about).collect();
        let proofs = log::inclusions(app, &owner, &evidence.checkpoint).await?;
        for entry in history {
            let proof = proofs.iter().find(|proof| proof.sequence == entry.sequence);
            if let Some(proof) = proof {
                entries.push(ComponentEntry {
                    chain: owner.chain().to_owned(),
                    entry,
                    leaf_index: proof.leaf_index,
                    proof: proof.proof.clone(),
                });
            }
        }
    }
    Ok(ComponentLedger { entries })
}
