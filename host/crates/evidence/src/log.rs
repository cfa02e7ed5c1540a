//! Checks that a bundle's ledger is in the log of all ledgers, and that the log is the
//! one the verifier knows.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::Value;

use super::formats::{CustodyLedger, LogEvidence, LogHead, LogInclusion};
use super::report::{AnchorKind, ReportFinding, VerdictAnchor};
use super::trust::TrustRoots;
use holdfast_domain::checkpoint::{Checkpoint, VerifierKey, entry_leaf};
use holdfast_domain::merkle::{self, Hash};
use holdfast_domain::succession::BelievedKeys;

const LOG: &str = "log";
const HEAD: &str = "head";
const CERTIFIED: &str = "certified head";

/// Trust anchors of the verifier, obtained independently of the evidence.
#[derive(Default)]
pub struct TrustedLogs {
    key: Option<VerifierKey>,
    head: Option<SignedLogHead>,
    logs: Vec<VerifierKey>,
    installation: Option<VerifierKey>,
    components: HashSet<String>,
    pub(super) timestamps: Option<TrustRoots>,
}

impl TrustedLogs {
    /// Sets the public key of the log.
    ///
    /// # Errors
    /// The text is not a verifier key.
    pub fn key(&mut self, text: &str) -> Result<(), String> {
        self.key = Some(verifier(text)?);
        Ok(())
    }

    /// Sets a head of the log: a signed note, or JSON that contains one.
    ///
    /// # Errors
    /// The text cannot be parsed.
    pub fn head(&mut self, text: &str) -> Result<(), String> {
        self.head = Some(SignedLogHead::parse(text)?);
        Ok(())
    }

    /// Adds known logs: a verifier key on each line, with `#` in front of comments.
    ///
    /// # Errors
    /// A line is not a verifier key.
    pub fn logs(&mut self, text: &str) -> Result<(), String> {
        for (line, number) in text.lines().map(str::trim).zip(1..) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let key = verifier(line).map_err(|error| format!("line {number}: {error}"))?;
            self.logs.push(key);
        }
        Ok(())
    }

    /// Sets the root certificates of time stamping authorities.
    pub fn timestamps(&mut self, roots: TrustRoots) {
        self.timestamps = Some(roots);
    }

    /// Adds the components of this release and earlier ones, by their SHA-256.
    pub fn components(&mut self, digests: impl IntoIterator<Item = String>) {
        self.components.extend(digests);
    }

    pub(super) fn knows_component(&self, digest: &str) -> bool {
        self.components.contains(digest)
    }

    /// Sets the key of the log of the installation that runs the verification.
    pub fn installation(&mut self, key: VerifierKey) {
        self.installation = Some(key);
    }
}

fn verifier(text: &str) -> Result<VerifierKey, String> {
    VerifierKey::parse(text).ok_or_else(|| format!("not a verifier key: {text}"))
}

/// Result of checking the log.
#[derive(Default)]
pub(super) struct CheckedLog {
    pub(super) findings: Vec<ReportFinding>,
    /// Anchor; `None` if only the evidence itself vouches for the log.
    pub(super) anchor: Option<VerdictAnchor>,
    /// Head that the proofs of the evidence lead to; `None` unless its signature is valid.
    pub(super) checkpoint: Option<Checkpoint>,
}

impl CheckedLog {
    fn failed(finding: ReportFinding) -> Self {
        Self {
            findings: vec![finding],
            ..Self::default()
        }
    }
}

/// Checks the signature of the log's head, and that the log contains the ledger.
pub(super) fn check(
    ledger: &CustodyLedger,
    certificate: &Value,
    trusted: &TrustedLogs,
) -> CheckedLog {
    let Some(evidence) = &ledger.log else {
        let why = "the bundle holds no proof that its ledger is in the log";
        return CheckedLog::failed(ReportFinding::fails(LOG, why));
    };
    let head = match believed_head(trusted, evidence) {
        Ok(head) => head,
        Err(why) => return CheckedLog::failed(ReportFinding::fails(LOG, why)),
    };
    let included = included(ledger, &evidence.inclusion, &head.checkpoint);
    let certified = certificate["ledger_checkpoint"].as_str();
    head.checked(evidence, trusted, included, certified)
}

/// Checks the signature of the log's head, without a ledger.
pub(super) fn opened(evidence: &LogEvidence, trusted: &TrustedLogs) -> CheckedLog {
    match believed_head(trusted, evidence) {
        Ok(head) => head.checked(evidence, trusted, Ok(()), None),
        Err(why) => CheckedLog::failed(ReportFinding::fails(LOG, why)),
    }
}

/// Head of the log with a valid signature.
struct BelievedHead {
    key: VerifierKey,
    /// Reason for trusting the key; `None` if only the bundle names it.
    known: Option<AnchorKind>,
    checkpoint: Checkpoint,
}

fn believed_head(trusted: &TrustedLogs, evidence: &LogEvidence) -> Result<BelievedHead, String> {
    let (key, known, checkpoint) = believed(trusted, evidence)?;
    if verifier(&evidence.public_key).ok().as_ref() != Some(&key) {
        return Err(format!(
            "the bundle names the key {}, not {key}",
            evidence.public_key
        ));
    }
    Ok(BelievedHead {
        key,
        known,
        checkpoint,
    })
}

impl BelievedHead {
    fn checked(
        self,
        evidence: &LogEvidence,
        trusted: &TrustedLogs,
        included: Result<(), String>,
        certificate: Option<&str>,
    ) -> CheckedLog {
        let Self {
            key,
            known,
            checkpoint,
        } = self;
        let mut findings = vec![match included {
            Ok(()) => ReportFinding::holds(
                LOG,
                format!(
                    "every entry is among the {} of the log {}, signed with {key}{}",
                    checkpoint.size,
                    checkpoint.origin,
                    match known {
                        Some(_) => "",
                        None => " (by its own word: give --key, --head or --trust to anchor it)",
                    },
                ),
            ),
            Err(why) => ReportFinding::fails(LOG, why),
        }];
        if let Some(head) = &trusted.head {
            findings.push(
                match head.leads_to(&key, &checkpoint, &evidence.successions) {
                    Ok(size) => ReportFinding::holds(
                        HEAD,
                        format!("the given head of {size} entries goes on from the bundle's"),
                    ),
                    Err(why) => ReportFinding::fails(HEAD, why),
                },
            );
        }
        if let Some(note) = certificate {
            findings.push(certified(note, &key, &checkpoint, evidence));
        }
        let holds = findings.iter().all(|finding| finding.ok == Some(true));
        CheckedLog {
            anchor: known.filter(|_| holds).map(|kind| VerdictAnchor {
                kind,
                log: checkpoint.origin.clone(),
                public_key: key.to_string(),
            }),
            findings,
            checkpoint: Some(checkpoint),
        }
    }
}

/// Returns the key that signed the bundle's checkpoint, the reason for trusting it (`None` if
/// only the bundle names the key), and the checkpoint.
fn believed(
    trusted: &TrustedLogs,
    evidence: &LogEvidence,
) -> Result<(VerifierKey, Option<AnchorKind>, Checkpoint), String> {
    let note = evidence.checkpoint.as_str();
    let opened = |key: &VerifierKey, kind| {
        let keys = BelievedKeys::new(key.clone(), &evidence.successions);
        let (checkpoint, signer) = keys.open(note).map_err(|error| error.to_string())?;
        Ok((signer.clone(), kind, checkpoint))
    };
    if let Some(key) = &trusted.key {
        return opened(key, Some(AnchorKind::Key));
    }
    let head = trusted.head.as_ref();
    if let Some(key) = head.and_then(|head| head.public_key.as_ref()) {
        return opened(key, Some(AnchorKind::Head));
    }
    let origin = note.lines().next().unwrap_or_default();
    let known: Vec<&VerifierKey> = trusted
        .logs
        .iter()
        .filter(|key| key.name() == origin)
        .collect();
    if let Some(first) = known.first() {
        let fits = known.iter().find(|key| {
            let keys = BelievedKeys::new((**key).clone(), &evidence.successions);
            keys.open(note).is_ok()
        });
        return opened(fits.unwrap_or(first), Some(AnchorKind::Trust));
    }
    if let Some(key) = &trusted.installation {
        return opened(key, Some(AnchorKind::Installation));
    }
    // A head without a public key is an anchor if the evidence's key signed it, too.
    let own = verifier(&evidence.public_key)?;
    opened(&own, head.map(|_| AnchorKind::Head))
}

pub(super) fn included(
    ledger: &CustodyLedger,
    inclusion: &[LogInclusion],
    checkpoint: &Checkpoint,
) -> Result<(), String> {
    for entry in &ledger.entries {
        let sequence = entry.sequence;
        let place = inclusion
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
    // More proofs than entries: entries were removed from the end of the ledger.
    match inclusion.len() > ledger.entries.len() {
        true => Err("the log holds entries that the ledger lacks".into()),
        false => Ok(()),
    }
}

/// Checks that the log extends the head in the certificate.
fn certified(
    note: &str,
    key: &VerifierKey,
    now: &Checkpoint,
    evidence: &LogEvidence,
) -> ReportFinding {
    let keys = BelievedKeys::new(key.clone(), &evidence.successions);
    let then = match keys.open(note) {
        Ok((then, _)) => then,
        Err(error) => return ReportFinding::fails(CERTIFIED, error.to_string()),
    };
    let proof = evidence.certified.as_ref();
    let proof = proof.filter(|proof| proof.from == then.size);
    let proof: Option<Vec<Hash>> =
        proof.and_then(|proof| proof.proof.iter().map(|node| merkle::parse(node)).collect());
    let goes_on = proof
        .is_some_and(|proof| merkle::extends(then.size, &then.root, &proof, now.size, &now.root));
    let (old, new) = (then.size, now.size);
    let verb = if goes_on {
        "goes on from"
    } else {
        "does not begin with"
    };
    let detail = format!("the log of {new} entries {verb} the {old} that the certificate saw");
    ReportFinding::new(CERTIFIED, goes_on, detail)
}

/// Head of the log that the verifier kept.
struct SignedLogHead {
    note: String,
    public_key: Option<VerifierKey>,
    /// Size of an older tree, and the proof that this head extends it.
    consistency: Option<(u64, Vec<String>)>,
    /// Successions of the log's keys up to this head.
    successions: Vec<String>,
}

#[derive(Deserialize)]
struct LogAnswer {
    data: LogHead,
}

impl SignedLogHead {
    fn parse(text: &str) -> Result<Self, String> {
        if !text.trim_start().starts_with('{') {
            return Ok(Self {
                note: text.into(),
                public_key: None,
                consistency: None,
                successions: Vec::new(),
            });
        }
        let head = serde_json::from_str::<LogAnswer>(text)
            .map(|answer| answer.data)
            .or_else(|_| serde_json::from_str::<LogHead>(text))
            .map_err(|error| format!("the given head cannot be read: {error}"))?;
        Ok(Self {
            note: head.checkpoint,
            public_key: Some(verifier(&head.public_key)?),
            consistency: head.consistency.map(|proof| (proof.from, proof.proof)),
            successions: head.successions,
        })
    }

    /// Checks that this head extends the bundle's, and returns its size.
    fn leads_to(
        &self,
        key: &VerifierKey,
        bundle: &Checkpoint,
        successions: &[String],
    ) -> Result<u64, String> {
        let known = [successions, &self.successions].concat();
        let keys = BelievedKeys::new(key.clone(), &known);
        let opened = keys.open(&self.note);
        let (head, _) = opened.map_err(|error| error.to_string())?;
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
