//! Checking a released bundle, offline.
//!
//! A bundle is a folder or zip with the four files of a vault-out and
//! `custody-ledger.json`. Nothing of the installation that made it is needed
//! but the rules component that it names.

mod log;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::components::Identity;
use crate::components::rules::{Compliance, compliance};
use crate::domain::hash::sha256;
use crate::domain::ledger::{LedgerEntry, verify_chain};
use crate::sealing;
use crate::service::custody::{
    AUTHORITATIVE, CERTIFICATE, COPY, CUSTODY_RECORD, CustodyLedger, LEDGER,
};

pub use log::Trusted;

/// Files larger than this are no part of a bundle.
const FILE_LIMIT: u64 = 256 * 1024 * 1024;

/// One thing that was checked.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// What was checked.
    pub check: &'static str,
    /// It holds.
    pub ok: bool,
    /// In plain words.
    pub detail: String,
}

/// What verification found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Every check holds.
    pub valid: bool,
    /// The envelope the bundle is about.
    pub envelope_id: String,
    /// Each check.
    pub findings: Vec<Finding>,
}

/// Why a bundle could not be checked at all.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// Not a folder or zip, or it cannot be read.
    #[error("cannot read the bundle: {0}")]
    Read(String),
    /// A file is missing.
    #[error("the bundle has no {0}")]
    Missing(&'static str),
}

/// The files of a bundle.
pub struct Bundle {
    files: BTreeMap<String, Vec<u8>>,
}

impl Bundle {
    /// Reads a folder or a zip.
    pub fn read(path: &Path) -> Result<Self, BundleError> {
        let broken = |error: &dyn std::fmt::Display| BundleError::Read(error.to_string());
        if !path.is_dir() {
            let file = std::fs::read(path).map_err(|error| broken(&error))?;
            return Self::from_zip(file);
        }
        let mut files = BTreeMap::new();
        for name in [AUTHORITATIVE, COPY, CERTIFICATE, CUSTODY_RECORD, LEDGER] {
            if let Ok(bytes) = std::fs::read(path.join(name)) {
                files.insert(name.to_owned(), bytes);
            }
        }
        Ok(Self { files })
    }

    /// Reads a zip.
    pub fn from_zip(bytes: Vec<u8>) -> Result<Self, BundleError> {
        let broken = |error: &dyn std::fmt::Display| BundleError::Read(error.to_string());
        let mut zip =
            zip::ZipArchive::new(std::io::Cursor::new(bytes)).map_err(|error| broken(&error))?;
        let mut files = BTreeMap::new();
        for name in [AUTHORITATIVE, COPY, CERTIFICATE, CUSTODY_RECORD, LEDGER] {
            if let Ok(entry) = zip.by_name(name) {
                let mut bytes = Vec::new();
                entry
                    .take(FILE_LIMIT)
                    .read_to_end(&mut bytes)
                    .map_err(|error| broken(&error))?;
                files.insert(name.to_owned(), bytes);
            }
        }
        Ok(Self { files })
    }

    fn file(&self, name: &'static str) -> Result<&[u8], BundleError> {
        self.files
            .get(name)
            .map(Vec::as_slice)
            .ok_or(BundleError::Missing(name))
    }
}

/// The rules component that made a bundle's certificate, as its ledger says.
pub fn deciding_component(bundle: &Bundle) -> Option<Identity> {
    let ledger: CustodyLedger = serde_json::from_slice(bundle.file(LEDGER).ok()?).ok()?;
    let entry = last(&ledger.entries, "compliance.evaluated")?;
    serde_json::from_value(entry.details["component"].clone()).ok()
}

/// Runs every check on a bundle.
pub fn verify(
    bundle: &Bundle,
    rules: &Compliance,
    trusted: &Trusted,
) -> Result<Report, BundleError> {
    let authoritative = bundle.file(AUTHORITATIVE)?;
    let copy = bundle.file(COPY)?;
    let certificate_text = bundle.file(CERTIFICATE)?;
    let record = bundle.file(CUSTODY_RECORD)?;
    let ledger = bundle.file(LEDGER)?;
    let certificate: Value = serde_json::from_slice(certificate_text).unwrap_or_default();
    let ledger: Result<CustodyLedger, _> = serde_json::from_slice(ledger);
    let mut findings = Vec::new();
    let entries = match &ledger {
        Ok(ledger) => ledger.entries.as_slice(),
        Err(error) => {
            findings.push(finding(
                "ledger",
                false,
                format!("the ledger cannot be read: {error}"),
            ));
            &[]
        }
    };
    if ledger.is_ok() {
        findings.push(match verify_chain(entries) {
            Ok(()) => finding(
                "ledger",
                true,
                format!(
                    "{} entries, each follows from the one before",
                    entries.len()
                ),
            ),
            Err(error) => finding("ledger", false, error.to_string()),
        });
    }
    findings.push(single(entries, authoritative));
    let stored = last(entries, "vault.stored").map(|entry| &entry.details);
    let files = [
        (
            "document",
            authoritative,
            "document_hash",
            "authoritative copy",
        ),
        ("copy", copy, "copy_hash", "non-authoritative copy"),
        (
            "certificate",
            certificate_text,
            "certificate_hash",
            "certificate",
        ),
        (
            "custody record",
            record,
            "custody_record_hash",
            "custody record",
        ),
    ];
    for (check, bytes, member, name) in files {
        let recorded = stored
            .and_then(|stored| stored.get(member))
            .and_then(Value::as_str);
        findings.push(hash_finding(check, name, bytes, recorded));
    }
    if let Ok(ledger) = &ledger {
        findings.extend(log::findings(ledger, &certificate, trusted));
    }
    findings.extend(seal(authoritative, stored));
    let certified = certificate["document_integrity"]["document_hash"].as_str();
    findings.push(hash_finding(
        "certified hash",
        "authoritative copy",
        authoritative,
        certified,
    ));
    let envelope_id = ledger.as_ref().map(|ledger| ledger.envelope_id.to_string());
    let envelope_id = envelope_id.unwrap_or_default();
    let subject = certificate["subject"]["envelope_id"]
        .as_str()
        .unwrap_or_default();
    findings.push(finding(
        "subject",
        !envelope_id.is_empty() && subject == envelope_id,
        format!("ledger and certificate are about {envelope_id}"),
    ));
    findings.push(re_evaluation(entries, certificate_text, rules));
    Ok(Report {
        valid: findings.iter().all(|finding| finding.ok),
        envelope_id,
        findings,
    })
}

/// One vaulting, one evaluation, one release, and that of this document. Later
/// entries than those of a bundle cannot be ruled out by it.
fn single(entries: &[LedgerEntry], authoritative: &[u8]) -> Finding {
    const CHECK: &str = "history";
    for action in ["vault.stored", "compliance.evaluated", "vault.released"] {
        let times = entries
            .iter()
            .filter(|entry| entry.action == action)
            .count();
        if times != 1 {
            let why = format!("the ledger tells of {action} {times} times and not once");
            return finding(CHECK, false, why);
        }
    }
    let released = last(entries, "vault.released").map(|entry| &entry.details);
    let released = released.and_then(|released| released["document_hash"].as_str());
    let same = released == Some(sha256(authoritative).as_str());
    let told = if same {
        "the document was vaulted once and released once"
    } else {
        "the ledger tells of the release of another document"
    };
    finding(CHECK, same, told.into())
}

fn hash_finding(check: &'static str, name: &str, bytes: &[u8], recorded: Option<&str>) -> Finding {
    let actual = sha256(bytes);
    match recorded {
        Some(recorded) if recorded == actual => finding(
            check,
            true,
            format!("the {name} has the recorded SHA-256 {actual}"),
        ),
        Some(recorded) => finding(
            check,
            false,
            format!("the {name} was changed: its SHA-256 is {actual}, recorded is {recorded}"),
        ),
        None => finding(check, false, format!("no hash of the {name} is recorded")),
    }
}

/// The seal holds, and was made with the certificate that the ledger names.
fn seal(authoritative: &[u8], stored: Option<&Value>) -> Vec<Finding> {
    const CHECK: &str = "seal";
    let recorded = stored.and_then(|stored| stored["seal_certificate_hash"].as_str());
    let Some(recorded) = recorded else {
        let why = "no seal is recorded: the document is certified against any change";
        return vec![finding(CHECK, stored.is_some(), why.into())];
    };
    let seal = sealing::verify(authoritative);
    let told = stored.map(|stored| &stored["trusted_time"]);
    let time = seal.as_ref().ok().and_then(|seal| time(seal, told));
    let seal = match seal {
        Ok(seal) if seal.certificate == recorded => finding(
            CHECK,
            true,
            format!("the authoritative copy is sealed by {}", seal.subject),
        ),
        Ok(seal) => finding(
            CHECK,
            false,
            format!(
                "the seal is of the certificate {}, recorded is {recorded}",
                seal.certificate
            ),
        ),
        Err(why) => finding(CHECK, false, why),
    };
    [Some(seal), time].into_iter().flatten().collect()
}

/// What a time stamping authority says, and that it agrees with the ledger. That
/// there was none to ask is nothing to tell.
fn time(seal: &sealing::Seal, told: Option<&Value>) -> Option<Finding> {
    const CHECK: &str = "trusted time";
    let told = told.filter(|told| !told.is_null());
    Some(match (&seal.stamp, told) {
        (None, None) => return None,
        (Some(Ok(stamp)), Some(told)) if told["at"] == stamp.at.to_string() => finding(
            CHECK,
            true,
            format!("{} saw the seal at {}", stamp.authority, stamp.at),
        ),
        (None, Some(told)) if told["status"] == "no trusted time" => {
            let reason = told["reason"].as_str().unwrap_or_default();
            finding(CHECK, true, format!("no trusted time: {reason}"))
        }
        (Some(Err(why)), _) => finding(CHECK, false, format!("the time stamp: {why}")),
        _ => {
            let why = "the time stamp in the seal is not the one in the ledger";
            finding(CHECK, false, why.into())
        }
    })
}

/// Evaluates the recorded facts again with the very component that is named,
/// and compares the certificate it writes byte for byte.
fn re_evaluation(entries: &[LedgerEntry], certificate: &[u8], rules: &Compliance) -> Finding {
    const CHECK: &str = "re-evaluation";
    let Some(entry) = last(entries, "compliance.evaluated") else {
        return finding(CHECK, false, "the ledger holds no evaluation".into());
    };
    let details = &entry.details;
    let identity = match rules.identity() {
        Ok(identity) => identity,
        Err(error) => return finding(CHECK, false, error.to_string()),
    };
    let named = details["component"]["sha256"].as_str().unwrap_or_default();
    if named != identity.sha256 {
        return finding(
            CHECK,
            false,
            format!(
                "the rules component {named} that made the certificate is not at hand: \
                 give its file with --component"
            ),
        );
    }
    let facts: compliance::EnvelopeFacts = match serde_json::from_value(details["facts"].clone()) {
        Ok(facts) => facts,
        Err(error) => return finding(CHECK, false, format!("the recorded facts: {error}")),
    };
    let issued_at = details["issued_at"].as_str().unwrap_or_default();
    let issuer = details["issuer"].as_str().unwrap_or_default();
    let certified = match details["evaluations"].is_array() {
        true => rules.certificate(&facts, issued_at, issuer),
        false => rules.certificate_alone(&facts, issued_at, issuer),
    };
    match certified {
        Ok((text, identity)) if text.as_bytes() == certificate => finding(
            CHECK,
            true,
            format!(
                "{} {} gives the same certificate again",
                identity.name, identity.version
            ),
        ),
        Ok(_) => finding(
            CHECK,
            false,
            "the rules give another certificate for these facts".into(),
        ),
        Err(error) => finding(CHECK, false, error.to_string()),
    }
}

fn last<'a>(entries: &'a [LedgerEntry], action: &str) -> Option<&'a LedgerEntry> {
    entries.iter().rev().find(|entry| entry.action == action)
}

fn finding(check: &'static str, ok: bool, detail: String) -> Finding {
    Finding { check, ok, detail }
}
