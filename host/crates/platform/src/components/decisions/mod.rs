//! Decisions of rules as data: blocks that the ledger commits to, and exports of them.

mod columns;

use std::io::{self, Write as _};
use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc;

use self::columns::ColumnWriter;
use crate::log;
use crate::{Core, ServiceError};
use holdfast_adapters::files::{FilesError, SpooledFile};
use holdfast_domain::decision::{self, DecisionChain, DecisionLine, RECORDED};
use holdfast_domain::envelope::words;
use holdfast_domain::hash::canonical_sha256;
use holdfast_domain::id::{EnvelopeId, OrgId, TemplateId};
use holdfast_domain::ledger::{LedgerEntry, NewEntry};
use holdfast_evidence::decisions::{BlockLine, ExportLine, HeadLine};
use holdfast_store::decision_blocks::{self, RecordedDecision};
use holdfast_store::{StoreError, chores, ledger, log as places, organizations};

/// Interval at which decisions get into blocks.
const PERIOD: Duration = Duration::from_secs(60);
/// Most decisions of a slot in a block.
const OF_SLOT: i64 = 250;
/// Most blocks of an organization in one run.
const AT_ONCE: usize = 100;
/// Organizations that are looked up at once.
const ORGANIZATIONS: usize = 1_000;
/// Blocks that a page reads at once.
const BLOCKS: i64 = 64;
/// Lines that may wait for the writer of the file.
const QUEUE: usize = 256;

words! {
    /// Format of an export.
    ExportFormat {
        // One JSON object on each line: decisions, ends of blocks, and a head of the log.
        JsonLines = "jsonl",
        // One row for each decision; the blocks and the head are in the metadata of the file.
        Parquet = "parquet",
    }
}

impl ExportFormat {
    pub fn content_type(self) -> &'static str {
        match self {
            Self::JsonLines => "application/jsonl",
            Self::Parquet => "application/vnd.apache.parquet",
        }
    }
}

/// What a page of an export contains.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    pub format: ExportFormat,
    /// Only blocks behind this one.
    pub after: i64,
    /// Number of decisions after which the page ends with its block.
    pub limit: u64,
    /// Names of members and named values that are left out.
    pub mask: Vec<String>,
}

/// Returns the names of a mask, which are separated by commas.
pub fn mask_of(text: &str) -> Vec<String> {
    let names = text.split(',').map(str::trim);
    names
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Page of an export.
pub struct ExportPage {
    pub file: SpooledFile,
    /// The last block of this page, or the one that it begins after.
    pub last: i64,
    /// Whether a page follows.
    pub has_more: bool,
}

/// Puts the decisions of all organizations into blocks, once a minute on one node.
pub async fn record_when_due(core: &Core) -> Result<(), ServiceError> {
    let now = core.clock.now();
    if !chores::claim(&core.store, "decisions", now, now + PERIOD).await? {
        return Ok(());
    }

    let mut after = String::new();
    loop {
        let mut connection = core.store.read().await?;
        let waiting = decision_blocks::waiting(&mut connection, &after, ORGANIZATIONS).await?;
        drop(connection);

        for org in &waiting {
            // An organization with unreadable decisions must not keep the others from their blocks.
            if let Err(error) = record_some(core, org, AT_ONCE).await {
                tracing::error!(%org, %error, "decisions could not be put into blocks");
            }
        }

        match waiting.last() {
            Some(last) => last.as_str().clone_into(&mut after),
            None => return Ok(()),
        }
    }
}

/// Whether a block is one of this organization.
pub async fn is_block_of(
    core: &Core,
    org: &OrgId,
    block: &LedgerEntry,
) -> Result<bool, ServiceError> {
    let chain = DecisionChain::of(org);
    let mut connection = core.store.read().await?;
    // The entry is read again from the chain: the caller's copy may be of another organization.
    let found = ledger::behind(&mut connection, org, &chain, block.sequence - 1, 1).await?;
    Ok(found.first() == Some(block))
}

/// Puts all decisions of an organization that are in no block into blocks.
pub async fn record(core: &Core, org: &OrgId) -> Result<(), ServiceError> {
    record_some(core, org, usize::MAX).await
}

async fn record_some(core: &Core, org: &OrgId, most: usize) -> Result<(), ServiceError> {
    for _ in 0..most {
        if !record_block(core, org).await? {
            break;
        }
    }
    Ok(())
}

/// Adds a block of an organization. Returns false if nothing waits.
async fn record_block(core: &Core, org: &OrgId) -> Result<bool, ServiceError> {
    let chain = DecisionChain::of(org);
    let mut tx = core.store.begin().await?;

    // Two nodes must not choose the same block, or one take what the other counts.
    organizations::lock(&mut tx, org).await?;
    let block = ledger::last_sequence(&mut tx, org, &chain).await? + 1;
    let taken = decision_blocks::take(&mut tx, org, block, OF_SLOT).await?;
    if taken.is_empty() {
        return Ok(false);
    }

    let times = || taken.iter().map(|decision| decision.at);
    let (from, to) = (times().min(), times().max());
    let count = taken.len();
    let lines = lines(taken, block, &[])?;
    let root = decision::root_of(lines.iter().map(DecisionLine::leaf));
    let root = root.map_err(|missing| ServiceError::Internal(missing.to_string()))?;
    let entry = NewEntry {
        at: core.clock.now(),
        actor: "system".into(),
        action: RECORDED.into(),
        details: json!({ "count": count, "root": root, "from": from, "to": to }),
    };
    let entry = ledger::append(&mut tx, Some(org), &chain, entry).await?;
    // The lines have the number already. An entry at another place would void the proof of each.
    if entry.sequence != block {
        return Err(StoreError::Conflict.into());
    }

    tx.commit().await?;
    Ok(true)
}

/// Converts the decisions of a block to the lines of an export. Parameters and answers stay as they were recorded, so
/// that a later release writes the same lines.
fn lines(
    decisions: Vec<RecordedDecision>,
    block: i64,
    mask: &[String],
) -> Result<Vec<DecisionLine>, ServiceError> {
    let lines = (0..).zip(decisions);
    lines
        .map(|(position, decision)| line(decision, block, position, mask))
        .collect()
}

fn line(
    decision: RecordedDecision,
    block: i64,
    position: u64,
    mask: &[String],
) -> Result<DecisionLine, ServiceError> {
    let (mut given, mut answer) = (decision.given, decision.answer);
    // Of a destroyed record, only the digests are left: the line is like one with everything masked.
    let is_destroyed = decision.digests.is_some();
    let (given_sha256, answer_sha256) = match decision.digests {
        Some(digests) => (digests.given, digests.answer),
        None => (canonical_sha256(&given), canonical_sha256(&answer)),
    };
    let is_masked = decision::mask(&mut given, mask) | decision::mask(&mut answer, mask);
    let masked = is_masked || is_destroyed;
    let envelope_id = EnvelopeId::parse(&decision.subject);
    let template_id = TemplateId::parse(&decision.subject).filter(|_| envelope_id.is_none());
    Ok(DecisionLine {
        block,
        position,
        decision_id: decision.id,
        slot: decision.slot,
        function: decision.function,
        replay: envelope_id.as_ref().map(decision::replay_path),
        status: decision::status_of(decision.slot, &given, &answer),
        envelope_id,
        template_id,
        at: decision.at,
        component: serde_json::from_value(decision.component)
            .map_err(|error| ServiceError::Internal(error.to_string()))?,
        given,
        given_sha256,
        answer,
        answer_sha256,
        masked,
    })
}

/// Writes a page of an organization's decisions: whole blocks, which are in the log already.
pub async fn export(
    core: &Core,
    org: &OrgId,
    options: ExportOptions,
) -> Result<ExportPage, ServiceError> {
    let (sender, mut receiver) = mpsc::channel::<ExportLine>(QUEUE);
    let format = options.format;
    let write = move |file: &mut std::fs::File| {
        let mut out = io::BufWriter::new(file);
        let next = || receiver.blocking_recv();
        match format {
            ExportFormat::JsonLines => {
                for line in std::iter::from_fn(next) {
                    serde_json::to_writer(&mut out, &line)?;
                    out.write_all(b"\n")?;
                }
            }
            ExportFormat::Parquet => {
                let mut rows = ColumnWriter::new(&mut out)?;
                for line in std::iter::from_fn(next) {
                    rows.line(line)?;
                }
                rows.finish()?;
            }
        }

        out.flush()
    };

    let folder = core.config.spool_folder();
    let written = SpooledFile::written(&folder, write);
    // After a failed read the writer ends with half a file and no error, so the reader's result counts first.
    let (written, read) = tokio::join!(written, read(core, org, &options, sender));
    let (last, has_more) = read?;
    Ok(ExportPage {
        file: written.map_err(FilesError::Spool)?,
        last,
        has_more,
    })
}

/// Sends the lines of a page to its writer. Returns its last block, and whether another page follows.
async fn read(
    core: &Core,
    org: &OrgId,
    options: &ExportOptions,
    sender: mpsc::Sender<ExportLine>,
) -> Result<(i64, bool), ServiceError> {
    let chain = DecisionChain::of(org);
    let mut head = match log::signed_head(core, u64::MAX).await {
        Ok(head) => Some(head),
        // Nothing was signed yet.
        Err(ServiceError::NotFound(_)) => None,
        Err(error) => return Err(error),
    };
    let size = head
        .as_ref()
        .and_then(|head| log::size_of(&head.checkpoint));
    let size = size.unwrap_or_default();

    let (mut last, mut count, mut has_more) = (options.after, 0, false);

    // An export that was interrupted behind its last block lacks the proof of that one.
    let mut connection = core.store.read().await?;
    let before = places::places_behind(&mut connection, Some(org), &chain, last - 1, 1).await?;
    drop(connection);

    let mut last_place = before.first().copied().filter(|(block, _)| *block == last);
    'page: loop {
        let mut connection = core.store.read().await?;
        let entries = ledger::behind(&mut connection, org, &chain, last, BLOCKS).await?;
        let found = places::places_behind(&mut connection, Some(org), &chain, last, BLOCKS).await?;
        let placed = entries.into_iter().zip(found);
        // A head proves only the blocks in its tree. Newer ones come with the next export.
        let mut placed = placed.filter(|(_, (_, index))| *index < size).peekable();
        if placed.peek().is_none() {
            break;
        }

        for (entry, place) in placed {
            // The page is full, and this block is on the next one.
            if count >= options.limit {
                has_more = true;
                break 'page;
            }

            let block = entry.sequence;
            let decisions = decision_blocks::of_block(&mut connection, org, block).await?;
            count += decisions.len() as u64;
            let lines = lines(decisions, block, &options.mask)?;
            let lines = lines
                .into_iter()
                .map(|line| ExportLine::Decision(Box::new(line)));

            let leaf_index = place.1;
            let end = ExportLine::Block(BlockLine { entry, leaf_index });
            for line in lines.chain([end]) {
                // A send fails if the writer failed, which has the reason.
                if sender.send(line).await.is_err() {
                    return Ok((last, false));
                }
            }

            (last, last_place) = (block, Some(place));
        }
    }

    if let (Some(head), Some(place)) = (&mut head, last_place) {
        let mut connection = core.store.read().await?;
        head.inclusion = log::proofs(&mut connection, &[place], size).await?;
    }

    let line = HeadLine {
        organization_id: org.clone(),
        at: core.clock.now(),
        log: head,
        next: has_more.then_some(last),
    };
    // A failed writer reports its own error.
    let _ = sender.send(ExportLine::Head(line)).await;

    Ok((last, has_more))
}
