//! The custody ledger of an envelope, and its evidence bundle.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::log::LogEvidence;
use super::{Caller, ServiceError, envelopes as envelope_service, log};
use crate::app::App;
use crate::domain::envelope::Envelope;
use crate::domain::id::{EnvelopeId, OrgId};
use crate::domain::ledger::LedgerEntry;
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

/// The released files and the ledger, as one zip.
pub async fn bundle(app: &App, caller: &Caller, id: &str) -> Result<Vec<u8>, ServiceError> {
    use std::io::Write as _;
    let ledger = ledger(app, caller, id).await?;
    let envelope = envelope_service::get(app, caller, id).await?;
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    let broken = |error: &dyn std::error::Error| ServiceError::Internal(error.to_string());
    for (name, bytes) in files(app, &envelope).await? {
        zip.start_file(name, options)
            .map_err(|error| broken(&error))?;
        zip.write_all(&bytes).map_err(|error| broken(&error))?;
    }
    zip.start_file(LEDGER, options)
        .map_err(|error| broken(&error))?;
    let text = serde_json::to_vec_pretty(&ledger).map_err(|error| broken(&error))?;
    zip.write_all(&text).map_err(|error| broken(&error))?;
    Ok(zip.finish().map_err(|error| broken(&error))?.into_inner())
}

/// The four files of a released envelope.
///
/// A bundle holds the authoritative copy, so there is none before vault-out:
/// the live copy leaves the vault only by its single-use link.
async fn files(
    app: &App,
    envelope: &Envelope,
) -> Result<Vec<(&'static str, bytes::Bytes)>, ServiceError> {
    let mut files = Vec::new();
    for (name, file) in [
        (AUTHORITATIVE, &envelope.archive),
        (COPY, &envelope.copy),
        (CERTIFICATE, &envelope.certificate),
        (CUSTODY_RECORD, &envelope.custody_record),
    ] {
        let file = file
            .as_ref()
            .ok_or_else(|| ServiceError::Conflict("Envelope has not been released".into()))?;
        files.push((name, app.files.get(file).await?));
    }
    Ok(files)
}
