//! That a bundle's ledger is in the log of all ledgers, and that the log is the
//! one the reader knows.

use serde::Deserialize;
use serde_json::Value;

use super::{Finding, finding};
use crate::domain::checkpoint::{Checkpoint, VerifierKey, entry_leaf};
use crate::domain::merkle::{self, Hash};
use crate::service::custody::CustodyLedger;
use crate::service::log::{LogEvidence, LogHead};

/// What the reader brings along and believes.
#[derive(Clone, Debug, Default)]
pub struct Trusted {
    /// The log's public key.
    pub key: Option<String>,
    /// A head of the log: a signed note, or JSON that holds one.
    pub head: Option<String>,
}

/// The findings about the log.
pub(super) fn findings(
    ledger: &CustodyLedger,
    certificate: &Value,
    trusted: &Trusted,
) -> Vec<Finding> {
    const CHECK: &str = "log";
    let Some(evidence) = &ledger.log else {
        let why = "the bundle holds no proof that its ledger is in the log";
        return vec![finding(CHECK, false, why.into())];
    };
    let given = match trusted.head.as_deref().map(Head::parse).transpose() {
        Ok(given) => given,
        Err(why) => return vec![finding("head", false, why)],
    };
    let (key, known) = match key(trusted, given.as_ref(), evidence) {
        Ok(key) => key,
        Err(why) => return vec![finding(CHECK, false, why)],
    };
    let checkpoint = match key.open(&evidence.checkpoint) {
        Ok(checkpoint) => checkpoint,
        Err(error) => return vec![finding(CHECK, false, error.to_string())],
    };
    let mut findings = vec![match included(ledger, evidence, &checkpoint) {
        Ok(()) => finding(
            CHECK,
            true,
            format!(
                "every entry is among the {} of the log {}, signed with {key}{}",
                checkpoint.size,
                checkpoint.origin,
                if known {
                    ""
                } else {
                    " (by its own word: give --head or --key to check that it is the log you know)"
                },
            ),
        ),
        Err(why) => finding(CHECK, false, why),
    }];
    findings.extend(given.map(|head| match head.leads_to(&key, &checkpoint) {
        Ok(size) => finding(
            "head",
            true,
            format!("the given head of {size} entries goes on from the bundle's"),
        ),
        Err(why) => finding("head", false, why),
    }));
    if let Some(note) = certificate["ledger_checkpoint"].as_str() {
        findings.push(certified(note, &key, &checkpoint, evidence));
    }
    findings
}

/// The key to believe, and whether the reader knew it before.
fn key(
    trusted: &Trusted,
    head: Option<&Head>,
    evidence: &LogEvidence,
) -> Result<(VerifierKey, bool), String> {
    let known = trusted
        .key
        .as_ref()
        .or(head.and_then(|head| head.public_key.as_ref()));
    let text = known.unwrap_or(&evidence.public_key);
    let key = VerifierKey::parse(text).ok_or_else(|| format!("not a verifier key: {text}"))?;
    Ok((key, known.is_some()))
}

fn included(
    ledger: &CustodyLedger,
    evidence: &LogEvidence,
    checkpoint: &Checkpoint,
) -> Result<(), String> {
    for entry in &ledger.entries {
        let sequence = entry.sequence;
        let place = evidence
            .inclusion
            .iter()
            .find(|place| place.sequence == sequence)
            .ok_or_else(|| format!("there is no proof for entry {sequence}"))?;
        let proof: Option<Vec<Hash>> = place.proof.iter().map(|node| merkle::parse(node)).collect();
        let leaf = entry_leaf(ledger.envelope_id.as_str(), sequence, &entry.hash);
        let holds = proof.is_some_and(|proof| {
            let (index, size) = (place.leaf_index, checkpoint.size);
            merkle::includes(leaf, index, &proof, size, &checkpoint.root)
        });
        if !holds {
            return Err(format!(
                "entry {sequence} is not the one that the log holds"
            ));
        }
    }
    match evidence.inclusion.len() > ledger.entries.len() {
        true => Err("the log holds entries that the ledger lacks".into()),
        false => Ok(()),
    }
}

/// The head that was copied into the certificate.
fn certified(note: &str, key: &VerifierKey, now: &Checkpoint, evidence: &LogEvidence) -> Finding {
    const CHECK: &str = "certified head";
    let then = match key.open(note) {
        Ok(then) => then,
        Err(error) => return finding(CHECK, false, error.to_string()),
    };
    let proof = evidence.certified.as_ref();
    let proof = proof.filter(|proof| proof.from == then.size);
    let proof: Option<Vec<Hash>> =
        proof.and_then(|proof| proof.proof.iter().map(|node| merkle::parse(node)).collect());
    let goes_on = proof
        .is_some_and(|proof| merkle::extends(then.size, &then.root, &proof, now.size, &now.root));
    let (old, new) = (then.size, now.size);
    let told = if goes_on {
        format!("the log of {new} entries goes on from the {old} that the certificate saw")
    } else {
        format!("the log of {new} entries does not begin with the {old} that the certificate saw")
    };
    finding(CHECK, goes_on, told)
}

/// A head that the reader brings along.
struct Head {
    note: String,
    public_key: Option<String>,
    /// That it goes on from a tree of some size.
    consistency: Option<(u64, Vec<String>)>,
}

#[derive(Deserialize)]
struct Answer {
    data: LogHead,
}

impl Head {
    fn parse(text: &str) -> Result<Self, String> {
        if !text.trim_start().starts_with('{') {
            return Ok(Self {
                note: text.into(),
                public_key: None,
                consistency: None,
            });
        }
        let head = serde_json::from_str::<Answer>(text)
            .map(|answer| answer.data)
            .or_else(|_| serde_json::from_str::<LogHead>(text))
            .map_err(|error| format!("the given head cannot be read: {error}"))?;
        Ok(Self {
            note: head.checkpoint,
            public_key: Some(head.public_key),
            consistency: head.consistency.map(|proof| (proof.from, proof.proof)),
        })
    }

    /// That this head's log begins with the bundle's; its size.
    fn leads_to(&self, key: &VerifierKey, bundle: &Checkpoint) -> Result<u64, String> {
        let head = key.open(&self.note).map_err(|error| error.to_string())?;
        let proof = match &self.consistency {
            _ if head.size == bundle.size => Some(Vec::new()),
            Some((from, proof)) if *from == bundle.size => {
                proof.iter().map(|node| merkle::parse(node)).collect()
            }
            _ => {
                return Err(format!(
                    "the given head has {} entries and the bundle's {}: get one with ?since={}",
                    head.size, bundle.size, bundle.size
                ));
            }
        };
        let proof = proof.ok_or("the given head's consistency proof is malformed")?;
        if merkle::extends(bundle.size, &bundle.root, &proof, head.size, &head.root) {
            Ok(head.size)
        } else {
            Err(format!(
                "the log that you know, with {} entries, does not begin with the bundle's {}",
                head.size, bundle.size
            ))
        }
    }
}
