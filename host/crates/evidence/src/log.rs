//! Checks that a bundle's ledger is in the log of all ledgers, and that the log is the
//! one the verifier knows.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::Value;

use super::formats::{CustodyLedger, LogConsistency, LogEvidence, LogHead, LogInclusion};
use super::report::{AnchorKind, OpenQuestion, ReportFinding, VerdictAnchor};
use super::trust::TrustRoots;
use super::witnesses::{PolicyError, WitnessPolicy};
use holdfast_domain::checkpoint::{
    Checkpoint, VerifierKey, entry_leaf, is_cosignature_line, split_note,
};
use holdfast_domain::merkle::{self, Hash, ProvenNodes};
use holdfast_domain::succession::{BelievedKeys, KeySuccession};

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
    /// SHA-256 of rules that the verifier has from elsewhere than the bundle.
    rules: Option<String>,
    witnesses: Option<WitnessPolicy>,
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

    /// Demands a quorum of witnesses for the head of the log. The logs that the policy names are known ones.
    ///
    /// # Errors
    /// The text is no witness policy.
    pub fn witness_policy(&mut self, text: &str) -> Result<(), PolicyError> {
        let policy = WitnessPolicy::parse(text)?;
        self.logs.extend_from_slice(policy.logs());
        self.witnesses = Some(policy);
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

    /// Sets the SHA-256 of the rules component that the verifier has from elsewhere than the bundle.
    pub fn rules(&mut self, digest: String) {
        self.rules = Some(digest);
    }

    pub(super) fn has_rules(&self, digest: &str) -> bool {
        self.rules.as_deref() == Some(digest)
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
    /// Returns the detail of the first failed check.
    pub(super) fn failure(&self) -> Option<&str> {
        let mut findings = self.findings.iter();
        let failed = findings.find(|finding| finding.ok == Some(false));
        failed.map(|finding| finding.detail.as_str())
    }

    /// Returns the details of the checks that could not be made.
    pub(super) fn unproven(&self) -> Vec<String> {
        let findings = self.findings.iter();
        let open = findings.filter(|finding| finding.ok.is_none());
        open.map(|finding| finding.detail.clone()).collect()
    }

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

    // All proofs of the bundle share these nodes: an older head that the verifier knows may be among them.
    let mut nodes = ProvenNodes::new(head.checkpoint.size, head.checkpoint.root);
    let included = included(ledger, &evidence.inclusion, &mut nodes);
    let noted = certificate["ledger_checkpoint"].as_str();
    let noted = noted.or_else(|| recorded_head(ledger));
    let certified = certified(noted, &head, evidence, &mut nodes);
    head.checked(evidence, trusted, included, certified, &nodes)
}

/// Checks the signature of the log's head, without a ledger.
pub(super) fn opened(evidence: &LogEvidence, trusted: &TrustedLogs) -> CheckedLog {
    match believed_head(trusted, evidence) {
        Ok(head) => {
            let nodes = ProvenNodes::new(head.checkpoint.size, head.checkpoint.root);
            head.checked(evidence, trusted, Ok(()), None, &nodes)
        }
        Err(why) => CheckedLog::failed(ReportFinding::fails(LOG, why)),
    }
}

/// Returns the head that the facts of the certificate name. Certificates of an organization's own rules can
/// leave it out.
fn recorded_head(ledger: &CustodyLedger) -> Option<&str> {
    let evaluated = super::last(&ledger.entries, "compliance.evaluated")?;
    let attributes = &evaluated.details["facts"]["attributes"];
    // A list of pairs, or an object.
    let listed = attributes.as_array().and_then(|attributes| {
        let mut attributes = attributes.iter();
        attributes.find(|pair| pair[0] == "ledger_checkpoint")?[1].as_str()
    });
    listed.or_else(|| attributes["ledger_checkpoint"].as_str())
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
    // The file must not name another key than the checked one, since people note down the key that they see.
    if evidence.public_key != key.to_string() {
        return Err(format!(
            "the bundle names the key {}, not {key}",
            evidence.public_key
        ));
    }
    if !has_lines_of_witnesses(&evidence.checkpoint) {
        return Err("the head has more than signatures of the log and its witnesses".into());
    }

    linked(&evidence.successions, &key)?;
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
        certified: Option<ReportFinding>,
        nodes: &ProvenNodes,
    ) -> CheckedLog {
        let Self {
            key,
            known,
            checkpoint,
        } = self;
        // A proof without an outside key only shows that the bundle agrees
        // with itself, so the finding states it.
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
            let relation = head.relation(&key, &checkpoint, &evidence.successions, nodes);
            findings.push(relation.finding());
        }

        findings.extend(certified);
        if let Some(policy) = &trusted.witnesses {
            findings.push(policy.finding(&evidence.checkpoint));
        }

        // An open or failed finding must not anchor the verdict, even if the key is a known one.
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
    let head = trusted.head.as_ref();

    // A head that was fetched later knows of later keys than the bundle.
    let later = head.map_or(&[][..], |head| head.successions.as_slice());
    let successions = [evidence.successions.as_slice(), later].concat();
    let opened = |key: &VerifierKey, kind| {
        let keys = BelievedKeys::new(key.clone(), &successions);
        let (checkpoint, signer) = keys.open(note).map_err(|error| error.to_string())?;
        Ok((signer.clone(), kind, checkpoint))
    };

    // An explicit key comes before a list: a person who gives one wants the log to be checked against it.
    if let Some(key) = &trusted.key {
        return opened(key, Some(AnchorKind::Key));
    }
    if let Some(key) = head.and_then(|head| head.public_key.as_ref()) {
        return opened(key, Some(AnchorKind::Head));
    }

    let origin = note.lines().next().unwrap_or_default();
    let known: Vec<&VerifierKey> = trusted
        .logs
        .iter()
        .filter(|key| key.name() == origin)
        .collect();
    // Without a key that fits, the first one produces the error for the report.
    if let Some(first) = known.first() {
        let fits = known.iter().find(|key| {
            let keys = BelievedKeys::new((**key).clone(), &successions);
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

/// Checks that the log holds exactly these entries, one proof for each, and adds the nodes of the proofs.
pub(super) fn included(
    ledger: &CustodyLedger,
    inclusion: &[LogInclusion],
    nodes: &mut ProvenNodes,
) -> Result<(), String> {
    for entry in &ledger.entries {
        let sequence = entry.sequence;
        let place = inclusion
            .iter()
            .find(|place| place.sequence == sequence)
            .ok_or_else(|| format!("there is no proof for entry {sequence}"))?;
        let leaf = entry_leaf(ledger.envelope_id.as_str(), sequence, &entry.hash);
        let proof = parsed(&place.proof);
        let holds = proof.is_some_and(|proof| nodes.add_inclusion(leaf, place.leaf_index, &proof));

        if !holds {
            return Err(format!(
                "entry {sequence} is not the one that the log holds"
            ));
        }
    }

    // More proofs than entries: entries were removed from the end of the ledger.
    if inclusion.len() > ledger.entries.len() {
        return Err("the log holds entries that the ledger lacks".into());
    }

    Ok(())
}

/// Parses the nodes of a proof; `None` unless they are written as this release writes them.
pub(super) fn parsed(proof: &[String]) -> Option<Vec<Hash>> {
    let node = |text: &String| merkle::parse(text).filter(|hash| hex::encode(hash) == *text);
    proof.iter().map(node).collect()
}

/// Returns the signature lines of a note; `None` if anything else is behind its text.
fn signature_lines(note: &str) -> Option<Vec<&str>> {
    let (_, lines) = split_note(note)?;
    let is_whole = lines.ends_with('\n') && !lines.contains('\r');
    is_whole.then(|| lines.lines().collect())
}

/// Whether a head has the signature of its log, and behind it nothing but different lines of witnesses.
fn has_lines_of_witnesses(note: &str) -> bool {
    let lines = signature_lines(note).unwrap_or_default();
    let Some((_, witnesses)) = lines.split_first() else {
        return false;
    };
    let different: HashSet<&&str> = witnesses.iter().collect();
    different.len() == witnesses.len() && witnesses.iter().all(|line| is_cosignature_line(line))
}

/// Checks that each succession replaces the key of the one before, and that the last is about the key of
/// the head.
fn linked(successions: &[String], key: &VerifierKey) -> Result<(), String> {
    let mut newest: Option<KeySuccession> = None;
    for note in successions {
        let next = KeySuccession::open(note).map_err(|error| error.to_string())?;
        let follows = newest.is_none_or(|before| before.new_key() == next.old_key());
        let signatures = signature_lines(note).map_or(0, |lines| lines.len());
        if !follows || signatures != 2 {
            return Err("the successions of the log's keys do not follow from each other".into());
        }
        newest = Some(next);
    }

    // A head can be older than the newest succession.
    let is_of_key = |last: &KeySuccession| last.new_key() == key || last.old_key() == key;
    if newest.as_ref().is_none_or(is_of_key) {
        Ok(())
    } else {
        Err("the successions of the log's keys do not lead to the key of its head".into())
    }
}

/// Checks that the log extends the head in the certificate, and adds the nodes of the proof. `None`
/// without such a head.
fn certified(
    note: Option<&str>,
    head: &BelievedHead,
    evidence: &LogEvidence,
    nodes: &mut ProvenNodes,
) -> Option<ReportFinding> {
    // An organization's own rules can leave the head out, but then the bundle needs no proof for it either.
    let Some(note) = note else {
        let why = "the bundle has a proof for a head that the certificate does not name";
        return evidence
            .certified
            .as_ref()
            .map(|_| ReportFinding::fails(CERTIFIED, why));
    };

    // The certificate can be older than the log's present key.
    let keys = BelievedKeys::new(head.key.clone(), &evidence.successions);
    let then = match keys.open(note) {
        Ok((then, _)) => then,
        Err(error) => return Some(ReportFinding::fails(CERTIFIED, error.to_string())),
    };

    let proof = evidence.certified.as_ref();
    let proof = proof.filter(|proof| proof.from == then.size);
    let proof = proof.and_then(|proof| parsed(&proof.proof));
    let now = &head.checkpoint;
    // The nodes are added even though the result is checked by itself: the given head may need them.
    let goes_on = proof.is_some_and(|proof| {
        nodes.add_consistency(then.size, then.root, &proof);
        merkle::extends(then.size, &then.root, &proof, now.size, &now.root)
    });

    let (old, new) = (then.size, now.size);
    let verb = if goes_on {
        "goes on from"
    } else {
        "does not begin with"
    };
    let detail = format!("the log of {new} entries {verb} the {old} that the certificate saw");

    Some(ReportFinding::new(CERTIFIED, goes_on, detail))
}

/// Head of the log that the verifier kept.
struct SignedLogHead {
    note: String,
    public_key: Option<VerifierKey>,
    /// Proof that this head extends that of an older tree.
    consistency: Option<LogConsistency>,
    /// Successions of the log's keys up to this head.
    successions: Vec<String>,
}

#[derive(Deserialize)]
struct LogAnswer {
    data: LogHead,
}

impl SignedLogHead {
    fn parse(text: &str) -> Result<Self, String> {
        // People keep either the note alone or the answer of the API. A note never begins with a brace.
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
            consistency: head.consistency,
            successions: head.successions,
        })
    }

    /// Compares this head with the bundle's. `nodes` are those that the bundle's proofs show.
    fn relation(
        &self,
        key: &VerifierKey,
        bundle: &Checkpoint,
        successions: &[String],
        nodes: &ProvenNodes,
    ) -> HeadRelation {
        // Each side can know a succession that the other has not seen.
        let known = [successions, &self.successions].concat();
        let keys = BelievedKeys::new(key.clone(), &known);
        let head = match keys.open(&self.note) {
            Ok((head, _)) => head,
            Err(error) => return HeadRelation::Contradicts(error.to_string()),
        };

        let (given, own) = (head.size, bundle.size);
        let same_log = if given <= own {
            // The log's earlier root, as far as the bundle's own proofs show it.
            nodes.root_of(given).map(|root| root == head.root)
        } else {
            let proof = self.consistency.as_ref();
            proof.filter(|proof| proof.from == own).map(|proof| {
                let nodes: Option<Vec<Hash>> =
                    proof.proof.iter().map(|node| merkle::parse(node)).collect();
                nodes.is_some_and(|nodes| {
                    merkle::extends(own, &bundle.root, &nodes, given, &head.root)
                })
            })
        };
        // A missing proof is no contradiction: the log can still be the same.
        match same_log {
            Some(true) => HeadRelation::SameLog { given, own },
            Some(false) => HeadRelation::Contradicts(format!(
                "the log that you know, with {given} entries, and the bundle's, with {own}, do not \
                 have the same beginning"
            )),
            None => HeadRelation::Unproven { given, own },
        }
    }
}

/// Relation of the head that the verifier kept to the bundle's.
enum HeadRelation {
    /// Both are heads of one log: one extends the other.
    SameLog { given: u64, own: u64 },
    /// It is another log, or the log was rewritten.
    Contradicts(String),
    /// No proof leads from one to the other.
    Unproven { given: u64, own: u64 },
}

impl HeadRelation {
    fn finding(self) -> ReportFinding {
        match self {
            Self::SameLog { given, own } if given == own => {
                let detail = format!("the given head is the bundle's, of {own} entries");
                ReportFinding::holds(HEAD, detail)
            }
            Self::SameLog { given, own } if given > own => {
                let detail =
                    format!("the given head of {given} entries goes on from the bundle's of {own}");
                ReportFinding::holds(HEAD, detail)
            }
            Self::SameLog { given, own } => {
                let detail = format!(
                    "the bundle's head of {own} entries goes on from the given one of {given}"
                );
                ReportFinding::holds(HEAD, detail)
            }
            Self::Contradicts(why) => ReportFinding::fails(HEAD, why),
            Self::Unproven { given, own } => {
                // The API proves growth from a given size on, so the monitor has to connect an older head
                // first.
                let first = if given < own {
                    "let `ledger monitor` check that the log goes on from your head, then "
                } else {
                    ""
                };
                let detail = format!(
                    "no proof leads from the given head of {given} entries to the bundle's of {own}: \
                     {first}fetch GET /api/v2/ledger/head?since={own} and give the answer with --head"
                );

                ReportFinding::unchecked(HEAD, OpenQuestion::Anchor, detail)
            }
        }
    }
}
