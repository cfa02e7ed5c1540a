//! Exports of decisions: their lines, and the proof that none was left out.

use std::collections::BTreeMap;
use std::io::{self, BufRead};

use serde::{Deserialize, Serialize};

use super::formats::LogEvidence;
use super::log::{TrustedLogs, opened};
use super::report::{EvidenceVerdict, VerdictAnchor};
use super::strict;
use holdfast_domain::checkpoint::{Checkpoint, entry_leaf};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::decision::{
    DecisionChain, DecisionLine, RECORDED, replay_path, root_of, status_of,
};
use holdfast_domain::hash::canonical_sha256;
use holdfast_domain::id::OrgId;
use holdfast_domain::ledger::{GENESIS, LedgerChain as _, LedgerEntry};
use holdfast_domain::merkle::{self, Hash};

/// Problems of a report.
const PROBLEMS: usize = 100;

/// Line of an export: the decisions of a block, the block itself, and after the last block of each page the head
/// of the log.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ExportLine {
    /// A decision.
    Decision(Box<DecisionLine>),
    /// The end of a block.
    Block(BlockLine),
    /// The end of a page.
    Head(HeadLine),
}

/// End of a block.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BlockLine {
    /// Entry of the chain `decisions:<organization>`; its details have `count` and `root`.
    pub entry: LedgerEntry,
    /// Index of the entry in the log, from 0. The head of the page proves that of its last block.
    pub leaf_index: u64,
}

/// End of a page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HeadLine {
    /// Owner of the rules that decided.
    pub organization_id: OrgId,
    /// When the page was written.
    pub at: Timestamp,
    /// Signed head of the log, with a proof for the page's last block. Null before the first block.
    pub log: Option<LogEvidence>,
    /// Value of `after` for the next page; null at the end.
    pub next: Option<i64>,
}

/// Result of verifying an export.
#[derive(Clone, Debug, Serialize)]
pub struct DecisionsReport {
    /// Conclusion.
    pub verdict: EvidenceVerdict,
    /// True for the verdict `VALID` only.
    pub valid: bool,
    /// Known log that anchors the evidence.
    pub anchor: Option<VerdictAnchor>,
    /// Owner of the rules that decided.
    pub organization_id: Option<String>,
    /// Number of decisions.
    pub decisions: u64,
    /// Number of decisions by slot.
    pub by_slot: BTreeMap<String, u64>,
    /// Number of decisions with masked values. The rest of such a value is not proven.
    pub masked: u64,
    /// First block. Decisions before it are not in the export.
    pub first_block: Option<i64>,
    /// Last block.
    pub last_block: Option<i64>,
    /// Time of the last block. Decisions that were in no block then are not in the export.
    pub last_block_at: Option<Timestamp>,
    /// The first hundred problems.
    pub problems: Vec<String>,
    /// Checks that could not be made, and how to make them.
    pub unproven: Vec<String>,
}

/// What the reader of an export knows about it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExpectedExport {
    /// Last block of an export that was verified before.
    pub after: i64,
    /// Whether values may be masked.
    pub masked: bool,
}

/// Checks an export in JSON Lines: every block with its decisions, the chain of the blocks, and their place in the
/// log. Pages may follow each other.
///
/// # Errors
/// The file cannot be read.
pub fn verify_decisions(
    file: impl BufRead,
    expected: ExpectedExport,
    trusted: &TrustedLogs,
) -> io::Result<DecisionsReport> {
    let mut check = ExportCheck {
        expected,
        ..ExportCheck::default()
    };
    // A bad line is a problem and no error, so the report also covers the lines behind it.
    for (number, line) in (1..).zip(file.lines()) {
        let line = line?;
        match strict::read(line.as_bytes()) {
            Ok(ExportLine::Decision(decision)) => check.decision(&decision),
            Ok(ExportLine::Block(block)) => check.block(&block),
            Ok(ExportLine::Head(head)) => check.head(&head),
            Err(error) => check.problem(format!("line {number} is not of an export: {error}")),
        }
    }

    Ok(check.report(trusted))
}

#[derive(Default)]
struct ExportCheck {
    expected: ExpectedExport,
    organization: Option<OrgId>,
    decisions: u64,
    by_slot: BTreeMap<String, u64>,
    masked: u64,
    first: Option<i64>,
    last: Option<BlockLine>,
    /// Block of the decisions read since the last end of one, and their leaves.
    open: Vec<(i64, Hash)>,
    /// Blocks since the last head.
    unproven: bool,
    /// Value of `next` in the last head.
    next: Option<i64>,
    /// The last head that proves blocks, with the last of them; or a head of an export without any.
    proof: Option<(LogEvidence, Option<BlockLine>)>,
    problems: Vec<String>,
    /// Checks that could not be made.
    open_checks: Vec<String>,
}

impl ExportCheck {
    fn problem(&mut self, detail: String) {
        if self.problems.len() < PROBLEMS {
            self.problems.push(detail);
        }
    }

    fn decision(&mut self, decision: &DecisionLine) {
        self.decisions += 1;
        *self.by_slot.entry(decision.slot.to_string()).or_default() += 1;
        let id = &decision.decision_id;
        let values = [
            ("parameters", &decision.given, &decision.given_sha256),
            ("answer", &decision.answer, &decision.answer_sha256),
        ];
        let changed = values.into_iter();
        let changed = changed.filter(|(_, value, hash)| canonical_sha256(value) != **hash);
        let changed: Vec<&str> = changed.map(|(what, ..)| what).collect();
        // The line itself claims to be masked. Only a caller that expects
        // masks lets that excuse a changed value.
        let is_masked = decision.masked && self.expected.masked && !changed.is_empty();
        self.masked += u64::from(is_masked);

        for what in changed.into_iter().filter(|_| !is_masked) {
            self.problem(format!(
                "decision {id}: its {what} are masked or were changed"
            ));
        }

        // The leaf covers neither position nor path nor status, so they are checked on their own.
        let expected = decision.envelope_id.as_ref().map(replay_path);
        let status = status_of(decision.slot, &decision.given, &decision.answer);
        let has_other_status = decision.status.is_some() && decision.status != status;
        if decision.position != self.open.len() as u64
            || decision.replay != expected
            || has_other_status
        {
            self.problem(format!(
                "decision {id}: its position, replay path or status was changed"
            ));
        }

        self.open.push((decision.block, decision.leaf()));
    }

    fn block(&mut self, block: &BlockLine) {
        let (entry, number) = (&block.entry, block.entry.sequence);
        self.unproven = true;
        let open = std::mem::take(&mut self.open);
        if open.iter().any(|(of, _)| *of != number) {
            self.problem(format!("block {number} has decisions of another block"));
        }

        let count = entry.details["count"].as_u64().unwrap_or_default();
        let leaves = open.into_iter().map(|(_, leaf)| leaf);
        let found = leaves.len() as u64;

        // An error cannot happen with all tiles there. It would count as another root, and so as a problem.
        let root = root_of(leaves).unwrap_or_default();
        if found != count {
            self.problem(format!(
                "block {number} has {count} decisions, of which {found} are here"
            ));
        } else if entry.details["root"].as_str() != Some(root.as_str()) {
            self.problem(format!("block {number} has other decisions than these"));
        }

        if entry.action != RECORDED || !entry.is_intact() {
            self.problem(format!("the entry of block {number} was changed"));
        }

        // A page may begin in the middle of the chain. Only the caller knows which block comes before it.
        let (expected, previous) = match &self.last {
            Some(last) => (last.entry.sequence + 1, Some(last.entry.hash.as_str())),
            None => (self.expected.after + 1, (number == 1).then_some(GENESIS)),
        };
        if number != expected {
            self.problem(format!(
                "block {expected} is missing: block {number} is in its place"
            ));
        } else if previous.is_some_and(|previous| entry.previous_hash != previous) {
            self.problem(format!(
                "block {number} does not follow from the block before it"
            ));
        }

        self.first.get_or_insert(number);
        self.last = Some(block.clone());
    }

    fn head(&mut self, head: &HeadLine) {
        self.next = head.next;
        let organization = self
            .organization
            .get_or_insert(head.organization_id.clone());
        if *organization != head.organization_id {
            self.problem("the pages are of several organizations".into());
        }

        let Some(evidence) = &head.log else {
            if self.last.is_some() {
                self.problem("a page has no head of the log".into());
            }
            return;
        };

        // Each block has the hash of the one before: the last head vouches for all, and a head that proves no block
        // for none.
        if self.unproven || self.last.is_none() {
            self.proof = Some((evidence.clone(), self.last.clone()));
        }

        self.unproven = false;
    }

    /// Checks the head of the log, and that it has the last block. Returns what anchors it.
    fn anchored(&mut self, trusted: &TrustedLogs) -> Option<VerdictAnchor> {
        let (evidence, last) = self.proof.take()?;
        let log = opened(&evidence, trusted);
        if let Some(why) = log.failure() {
            self.problem(why.to_owned());
        }

        self.open_checks = log.unproven();
        if let (Some(last), Some(org), Some(checkpoint)) =
            (last, self.organization.clone(), &log.checkpoint)
            && !is_in(&evidence, &org, &last, checkpoint)
        {
            let number = last.entry.sequence;
            self.problem(format!("block {number} is not the one that the log holds"));
        }

        log.anchor
    }

    fn report(mut self, trusted: &TrustedLogs) -> DecisionsReport {
        // A file that was cut off must not pass as a shorter export.
        if !self.open.is_empty() || self.unproven || self.organization.is_none() {
            self.problem("the end of the export is missing".into());
        }

        if let Some(next) = self.next {
            self.problem(format!("the pages behind block {next} are missing"));
        }

        let anchor = self.anchored(trusted);
        let verdict = match (self.problems.is_empty(), &anchor) {
            (false, _) => EvidenceVerdict::NotValid,
            (true, None) => EvidenceVerdict::NotAnchored,
            (true, Some(_)) => EvidenceVerdict::Valid,
        };

        DecisionsReport {
            verdict,
            valid: verdict == EvidenceVerdict::Valid,
            anchor,
            organization_id: self.organization.map(|org| org.to_string()),
            decisions: self.decisions,
            by_slot: self.by_slot,
            masked: self.masked,
            first_block: self.first,
            last_block: self.last.as_ref().map(|last| last.entry.sequence),
            last_block_at: self.last.map(|last| last.entry.at),
            problems: self.problems,
            unproven: self.open_checks,
        }
    }
}

/// Whether a block is in the log. The blocks before it are, too: its entry has their hash.
fn is_in(evidence: &LogEvidence, org: &OrgId, block: &BlockLine, head: &Checkpoint) -> bool {
    let (chain, entry) = (DecisionChain::of(org), &block.entry);
    let leaf = entry_leaf(chain.chain(), entry.sequence, &entry.hash);
    let mut proofs = evidence.inclusion.iter();
    let proof = proofs
        .find(|proof| proof.sequence == entry.sequence && proof.leaf_index == block.leaf_index);
    proof.is_some_and(|place| {
        let nodes: Option<Vec<Hash>> = place.proof.iter().map(|node| merkle::parse(node)).collect();
        nodes.is_some_and(|nodes| {
            merkle::includes(leaf, place.leaf_index, &nodes, head.size, &head.root)
        })
    })
}
