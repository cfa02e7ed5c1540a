//! The transparency log over all ledgers: gives entries their places and proves inclusion.
//!
//! One node at a time extends the log: it holds a lease and locks the log's row. Places,
//! tiles and the signed head are written in one transaction.
//!
//! [`cosignatures`] offers the heads to the witnesses of the log, and [`witness`] is the other side: it cosigns the
//! heads of other logs.

pub mod cosignatures;
pub mod witness;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use holdfast_store::SqlConnection;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::access::credentials;
use crate::component_owner::ComponentOwner;
use crate::{Core, Problem, ProblemKind, ServiceError};
use holdfast_adapters::files::FilesError;
use holdfast_adapters::sealing::SealError;
use holdfast_base::faults;
pub use holdfast_domain::checkpoint::size_of;
use holdfast_domain::checkpoint::{Checkpoint, VerifierKey, entry_leaf, split_note};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::{EnvelopeId, OrgId, RequestId};
use holdfast_domain::ledger::LedgerEntry;
use holdfast_domain::merkle::{self, MissingTile, TILE, TileId};
use holdfast_domain::statement::InstallationName;
use holdfast_domain::succession::KeySuccession;
use holdfast_evidence::formats::{LogConsistency, LogEvidence, LogHead, LogInclusion};
use holdfast_store::{log, vault};

/// A checkpoint is signed every second, or after this many entries.
const BATCH: i64 = 256;
const PERIOD: Duration = Duration::from_secs(1);
/// Folder of published checkpoints, named by tree size.
const CHECKPOINTS: &str = "ledger/checkpoints";
/// Another node may take over when the lease holder has been silent for this long.
const LEASE: Duration = Duration::from_secs(5);

/// How long the quorum of cosignatures may be missing before heads without it are published, and `doctor` fails.
pub const QUORUM_PATIENCE: Duration = Duration::from_secs(300);

/// How far the clocks of nodes may differ before one counts as behind.
pub const CLOCK_TOLERANCE: Duration = Duration::from_secs(300);
/// Interval at which a node that runs compares its clock with the log.
const CLOCK_CHECKS: Duration = Duration::from_secs(3600);

/// State that a node needs to extend the log.
pub struct LogSequencer {
    /// Name of this process in the lease.
    holder: String,
    /// Size of the last tree known to be published.
    kept: AtomicU64,
    /// Reason why the log was found to be forked or truncated; set at most once.
    distrust: OnceLock<String>,
}

impl Default for LogSequencer {
    fn default() -> Self {
        Self {
            holder: RequestId::new().to_string(),
            kept: AtomicU64::new(u64::MAX),
            distrust: OnceLock::new(),
        }
    }
}

impl From<MissingTile> for ServiceError {
    fn from(missing: MissingTile) -> Self {
        Self::Internal(missing.to_string())
    }
}

/// Extends the log until `stop` is cancelled.
pub async fn run(core: Core, sequencer: Arc<LogSequencer>, stop: CancellationToken) {
    // SQLite only: the one node may take back its own lease at once.
    if let Err(error) = log::forget_lease(&core.store).await {
        tracing::error!(%error, "log lease of an earlier run could not be released");
    }

    // The node starts all the same. After a fork, `distrust` makes `/readyz` and a metric report it.
    if let Err(error) = check(&core, &sequencer).await {
        tracing::error!(%error, "log could not be checked against its published checkpoints");
    }

    let mut clock_checked: Option<Instant> = None;
    while !stop.is_cancelled() {
        let full = match sequence(&core, &sequencer).await {
            Ok(sequenced) => sequenced == BATCH as usize,
            Err(error) => {
                tracing::error!(%error, "log could not be extended");
                false
            }
        };

        if clock_checked.is_none_or(|checked| checked.elapsed() >= CLOCK_CHECKS) {
            clock_checked = Some(Instant::now());
            if let Err(error) = check_clock(&core).await {
                tracing::error!(%error, "documents are not sealed");
            }
        }

        // More entries may wait behind a full batch.
        if full {
            continue;
        }

        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(PERIOD) => {}
        }
    }

    // Entries written while the last requests were answered.
    if let Err(error) = sequence(&core, &sequencer).await {
        tracing::error!(%error, "log could not be extended at shutdown");
    }
}

/// Places up to 256 pending entries in the log and signs the new head. Returns their
/// number: zero while another node holds the lease.
pub async fn sequence(core: &Core, sequencer: &LogSequencer) -> Result<usize, ServiceError> {
    // Most rounds find nothing to do. This read spares them the lease, which is a write.
    let mut connection = core.store.read().await?;
    let head = log::head(&mut connection).await?;
    let signed = head.as_ref().is_some_and(|head| head.checkpoint.is_some());
    let idle = signed && !log::any_pending(&mut connection).await?;
    drop(connection);

    // Nothing to place. Publish the head anyway if that failed, or the process died, after its
    // commit.
    if idle {
        let head = head.filter(|head| head.size != sequencer.kept.load(Ordering::Relaxed));
        if let Some((size, Some(note))) = head.map(|head| (head.size, head.checkpoint)) {
            keep(core, sequencer, size, note).await?;
        }
        return Ok(0);
    }

    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let lease_until = now + LEASE;

    // Also locks the log's row until the commit.
    let lease = log::lease(&mut tx, &origin(core), &sequencer.holder, now, lease_until).await?;
    let Some(head) = lease else {
        return Ok(0);
    };

    let public_key = own(core, &head, &log::successions(&mut tx).await?)?;
    let batch = log::pending(&mut tx, BATCH).await?;
    let mut tiles = log::tiles(&mut tx, merkle::edge(head.size)).await?;
    let mut changed = Vec::new();

    let mut size = head.size;
    for entry in &batch {
        let leaf = entry_leaf(&entry.chain, entry.sequence, &entry.hash);
        changed.extend(tiles.append(size, leaf)?);
        size += 1;
    }

    // Consecutive entries change the same tiles; each is written once.
    changed.sort_unstable();
    changed.dedup();
    for id in changed {
        log::set_tile(&mut tx, id, tiles.get(id).unwrap_or_default()).await?;
    }

    log::place(&mut tx, &batch, head.size).await?;

    // Beyond one tile, the root also depends on finished tiles to its left.
    let tiles = log::tiles(&mut tx, merkle::tiles_of_root(size)).await?;
    let checkpoint = Checkpoint {
        origin: head.origin,
        size,
        root: tiles.root(size)?,
    };
    let note = core.log_signer.sign(&checkpoint);

    // `check_clock` compares with the newest time that the log has seen. A node with a slow clock must
    // not set it back.
    let times = batch
        .iter()
        .map(|entry| entry.at)
        .chain(head.newest_at.or(head.signed_at));
    let newest = times.fold(now, Timestamp::max);
    log::set_head(&mut tx, &checkpoint, &note, &public_key, now, newest).await?;
    faults::pass("sequence");

    tx.commit().await?;
    faults::pass("sequenced");

    // After the commit: the database must know every published head.
    keep(core, sequencer, size, note).await?;
    Ok(batch.len())
}

/// Waits until every entry written so far is placed, and places entries if no other node
/// does. Gives up after a deadline; proofs then show which entries are missing.
async fn catch_up(core: &Core, sequencer: &LogSequencer) -> Result<(), ServiceError> {
    // Twice the lease, so that the lease of a node that died can expire.
    let deadline = tokio::time::Instant::now() + LEASE * 2;
    loop {
        let sequenced = sequence(core, sequencer).await?;
        let mut connection = core.store.read().await?;
        let waiting = log::any_pending(&mut connection).await?;
        drop(connection);

        if !waiting || tokio::time::Instant::now() > deadline {
            return Ok(());
        }

        if sequenced == 0 {
            tokio::time::sleep(PERIOD / 4).await;
        }
    }
}

/// Publishes a checkpoint as an object that is never overwritten. An existing checkpoint of
/// the same size with another content means that the log was truncated or rewritten.
async fn keep(
    core: &Core,
    sequencer: &LogSequencer,
    size: u64,
    note: String,
) -> Result<(), ServiceError> {
    match core
        .files
        .keep(&checkpoint_name(size), note.into_bytes().into())
        .await
    {
        Ok(()) => {
            sequencer.kept.store(size, Ordering::Relaxed);
            Ok(())
        }
        Err(FilesError::Tampered { .. }) => {
            let why = format!("another head of {size} entries was published before");
            Err(distrust(core, sequencer, why))
        }
        Err(error) => Err(error.into()),
    }
}

/// Compares the head with the published checkpoints. A database restored to an earlier
/// state, or connected to the wrong object store, is behind them.
pub async fn check(core: &Core, sequencer: &LogSequencer) -> Result<(), ServiceError> {
    if ahead_of_database(core).await? {
        let why = "the log was published with more entries than the database has";
        return Err(distrust(core, sequencer, why.to_owned()));
    }

    let mut connection = core.store.read().await?;
    let head = log::head(&mut connection).await?;
    drop(connection);

    match head.map(|head| (head.size, head.checkpoint)) {
        Some((size, Some(note))) => keep(core, sequencer, size, note).await,
        _ => Ok(()),
    }
}

/// Returns whether a checkpoint larger than the database's head was published. Heads are
/// committed before they are published, so the head is read again after each listing.
async fn ahead_of_database(core: &Core) -> Result<bool, ServiceError> {
    let mut known = size(core).await?;
    loop {
        let name = checkpoint_name(known);
        let Some(found) = core.files.one_behind(CHECKPOINTS, &name).await? else {
            return Ok(false);
        };

        known = size(core).await?;
        if found > checkpoint_name(known) {
            return Ok(true);
        }
    }
}

/// Returns the number of entries in the database's head.
async fn size(core: &Core) -> Result<u64, ServiceError> {
    let mut connection = core.store.read().await?;
    let head = log::head(&mut connection).await?;
    Ok(head.map_or(0, |head| head.size))
}

/// Marks the log as untrusted for the rest of the process.
fn distrust(core: &Core, sequencer: &LogSequencer, why: String) -> ServiceError {
    tracing::error!(
        why,
        "log is forked or truncated and can no longer be trusted"
    );
    core.metrics.ledger_forks.inc();
    ServiceError::Internal(sequencer.distrust.get_or_init(|| why).clone())
}

/// Checks that the clock of this node is not behind the entries of the log.
///
/// # Errors
/// `Seal` if it is: a seal of now would seem older.
pub async fn check_clock(core: &Core) -> Result<String, ServiceError> {
    let mut connection = core.store.read().await?;
    let head = log::head(&mut connection).await?;

    // A log of an earlier release knows the time of its last head only.
    let newest = head.and_then(|head| head.newest_at.or(head.signed_at));
    let now = core.clock.now();
    let behind = newest.map_or(Duration::ZERO, |newest| newest.since(now));
    core.metrics
        .clock_behind
        .set(behind.as_secs().cast_signed());

    if behind > CLOCK_TOLERANCE {
        return Err(SealError::ClockBehind {
            now,
            newest: now + behind,
        }
        .into());
    }

    Ok(match newest {
        Some(newest) => format!("{now}, not before the newest entry of the log ({newest})"),
        None => format!("{now}; the log has no entry to compare it with"),
    })
}

/// Confirms the clock after the log has entries of a time that has not come: a clock was ahead. Recorded in the ledger
/// of the installation.
pub async fn confirm_clock(core: &Core) -> Result<Duration, ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    // The row stays locked: no sequencer writes a newer time between this read and the correction.
    let head = log::locked(&mut tx).await?;
    let newest = head.and_then(|head| head.newest_at.or(head.signed_at));
    let behind = newest.map_or(Duration::ZERO, |newest| newest.since(now));
    if !behind.is_zero() {
        let details = json!({ "newest_at": newest, "behind_seconds": behind.as_secs() });
        credentials::record(&mut tx, None, "clock.confirmed", details, now).await?;
        log::confirm_clock(&mut tx, now).await?;
    }

    tx.commit().await?;
    Ok(behind)
}

/// Returns the log's size, or an error if this process found the log untrustworthy.
pub async fn trusted(core: &Core, sequencer: &LogSequencer) -> Result<String, ServiceError> {
    if let Some(why) = sequencer.distrust.get() {
        return Err(ServiceError::Internal(why.clone()));
    }

    let mut connection = core.store.read().await?;
    let Some(head) = log::head(&mut connection).await? else {
        return Ok("the log is empty".into());
    };

    own(core, &head, &log::successions(&mut connection).await?)?;
    Ok(format!("{} entries", head.size))
}

/// Returns this node's public key, if it is the log's key according to the last succession
/// or the first head. Signatures with another key would not verify.
fn own(core: &Core, head: &log::LogState, successions: &[String]) -> Result<String, ServiceError> {
    let own = core.log_signer.verifier(&head.origin).to_string();
    let last = successions
        .last()
        .and_then(|note| KeySuccession::open(note).ok());
    let known = last.map(|last| last.new_key().to_string());
    match known.as_ref().or(head.public_key.as_ref()) {
        Some(known) if *known != own => Err(ServiceError::Internal(format!(
            "the log is signed with {known} and not with this node's key: \
             nodes of one installation share the folder keys of their data folder"
        ))),
        _ => Ok(own),
    }
}

fn checkpoint_name(size: u64) -> String {
    format!("{CHECKPOINTS}/{size:020}")
}

/// Returns the log's name: this installation's address without the scheme. It is fixed by
/// the first checkpoint.
fn origin(core: &Core) -> String {
    let url = core.config.base_url();
    let address = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
    format!("{address}/ledger")
}

/// Returns the name by which signed statements tell this installation from a restored copy of it.
pub async fn installation(
    core: &Core,
    connection: &mut SqlConnection,
) -> Result<InstallationName, ServiceError> {
    let head = log::head(connection).await?;
    let (name, public_key) = match head {
        Some(head) => (head.origin, head.public_key),
        None => (origin(core), None),
    };

    // Before its first head, the log already has the key that this node signs with.
    let public_key = public_key.unwrap_or_else(|| core.log_signer.verifier(&name).to_string());
    Ok(InstallationName {
        origin: name,
        public_key,
        url: core.config.console_origin(),
    })
}

/// Returns the head. With `since`, also a proof of consistency with the tree of that size.
pub async fn head(core: &Core, since: Option<u64>) -> Result<LogHead, ServiceError> {
    let mut connection = core.store.read().await?;
    let head = log::head(&mut connection).await?;
    // Before its first signed head, the log has nothing that a caller could verify.
    let (mut head, checkpoint) = head
        .and_then(|mut head| head.checkpoint.take().map(|note| (head, note)))
        .ok_or(ServiceError::NotFound("Ledger head"))?;
    // The cosigned note of the same head has the lines of its witnesses as well.
    let text = |note: &str| split_note(note).map(|(text, _)| text.to_owned());
    let cosigned = head.cosigned.take();
    let cosigned = cosigned.filter(|note| text(note) == text(&checkpoint));
    let consistency = match since {
        None => None,
        Some(from) if from > head.size => {
            let message = format!("The log has {} entries, not {from}", head.size);
            return Err(Problem::new(ProblemKind::NotFound, None, message).into());
        }
        Some(from) => Some(consistency(&mut connection, from, head.size).await?),
    };

    Ok(LogHead {
        public_key: head.public_key.unwrap_or_default(),
        origin: head.origin,
        tree_size: head.size,
        root_hash: head.root,
        signed_at: head.signed_at,
        checkpoint: cosigned.unwrap_or(checkpoint),
        consistency,
        successions: log::successions(&mut connection).await?,
    })
}

/// Returns the first `width` hashes of a tile, concatenated; by default a full tile.
pub async fn tile(core: &Core, id: TileId, width: Option<u64>) -> Result<Vec<u8>, ServiceError> {
    let missing = || ServiceError::NotFound("Tile");
    let mut connection = core.store.read().await?;
    let tiles = log::tiles(&mut connection, [id]).await?;
    let hashes = tiles.get(id).ok_or_else(missing)?;
    let width = usize::try_from(width.unwrap_or(TILE)).map_err(|_| missing())?;
    Ok(hashes.get(..width).ok_or_else(missing)?.concat())
}

/// Returns inclusion proofs for those entries of an envelope that are placed. None before
/// the first checkpoint.
pub async fn evidence(
    core: &Core,
    org: &OrgId,
    envelope: &EnvelopeId,
) -> Result<Option<LogEvidence>, ServiceError> {
    let mut connection = core.store.read().await?;
    // Read the places before the head: the later head then covers all of them.
    let places = log::places(&mut connection, Some(org), envelope).await?;
    let covered = places.iter().map(|(_, index)| index + 1).max();
    let head = log::head(&mut connection).await?;
    let Some(head) = head.and_then(|head| SignedHead::of(head, covered.unwrap_or_default())) else {
        return Ok(None);
    };

    let inclusion = proofs(&mut connection, &places, head.size).await?;
    Ok(Some(LogEvidence {
        checkpoint: head.note,
        public_key: head.public_key,
        successions: log::successions(&mut connection).await?,
        certified: certified(&mut connection, org, envelope, head.size).await?,
        inclusion,
    }))
}

/// Head of the log that evidence leads to.
struct SignedHead {
    size: u64,
    /// Signed note, with the lines of witnesses.
    note: String,
    public_key: String,
}

impl SignedHead {
    /// Returns the newest cosigned head if it covers so many entries, and otherwise the newest one. `None` before the
    /// first signed head.
    fn of(head: log::LogState, covered: u64) -> Option<Self> {
        let (newest, newest_note) = (head.size, head.checkpoint?);
        let public_key = head.public_key.unwrap_or_default();
        // Evidence names one key. A head that the key before signed would need another one.
        let key = VerifierKey::parse(&public_key);
        let is_of_key = |note: &String| key.as_ref().is_some_and(|key| key.open(note).is_ok());
        let cosigned = head.cosigned.filter(is_of_key);

        let cosigned = cosigned.and_then(|note| Some((size_of(&note)?, note)));
        let covered = covered.min(newest);
        let covering = cosigned.filter(|(size, _)| (covered..=newest).contains(size));
        let (size, note) = covering.unwrap_or((newest, newest_note));
        Some(Self {
            size,
            note,
            public_key,
        })
    }
}

/// Returns a signed head without proofs: the newest cosigned one if it covers so many entries, and otherwise the newest
/// of all. `u64::MAX` stands for all entries.
///
/// # Errors
/// Nothing was signed yet.
pub async fn signed_head(core: &Core, covered: u64) -> Result<LogEvidence, ServiceError> {
    let mut connection = core.store.read().await?;
    let head = log::head(&mut connection).await?;
    let head = head.and_then(|head| SignedHead::of(head, covered));
    let head = head.ok_or(ServiceError::NotFound("Ledger head"))?;
    Ok(LogEvidence {
        checkpoint: head.note,
        public_key: head.public_key,
        successions: log::successions(&mut connection).await?,
        certified: None,
        inclusion: Vec::new(),
    })
}

/// Returns the head that is published for readers without a proof, as a signed note: the newest cosigned one. The
/// newest of all without witnesses, and while the quorum has been missing for [`QUORUM_PATIENCE`]: a log that seems to
/// stand still would hide more than a head without cosignatures.
pub async fn published(
    core: &Core,
    connection: &mut SqlConnection,
) -> Result<Option<String>, ServiceError> {
    let head = log::head(connection).await?;
    Ok(head.and_then(|head| {
        let is_current = |note: &String| {
            let age = head.cosigned_at.map(|at| core.clock.now().since(at));
            size_of(note) == Some(head.size) || age.is_some_and(|age| age <= QUORUM_PATIENCE)
        };
        let cosigned = head.cosigned.filter(is_current);
        let cosigned = cosigned.filter(|_| !core.config.ledger.witnesses.is_empty());
        cosigned.or(head.checkpoint)
    }))
}

/// Returns a proof for the last of these entries of an envelope that is in the tree of `size`.
pub async fn last_inclusion(
    connection: &mut SqlConnection,
    org: &OrgId,
    envelope: &EnvelopeId,
    entries: &[LedgerEntry],
    size: u64,
) -> Result<Option<LogInclusion>, ServiceError> {
    let places = log::places(connection, Some(org), envelope).await?;
    let end = entries.last().map_or(0, |entry| entry.sequence);
    let mut placed = places.iter().rev();
    let last = placed.find(|(sequence, index)| *sequence <= end && *index < size);
    let Some(last) = last else {
        return Ok(None);
    };
    Ok(proofs(connection, &[*last], size).await?.pop())
}

/// Returns proofs that the entries of a component ledger (an organization's or the
/// installation's) are in the tree of `checkpoint`, a note of this log.
pub async fn inclusions(
    core: &Core,
    owner: &ComponentOwner,
    checkpoint: &str,
) -> Result<Vec<LogInclusion>, ServiceError> {
    let size = size_of(checkpoint).unwrap_or_default();
    let mut connection = core.store.read().await?;
    let places = log::places(&mut connection, owner.org.as_ref(), owner).await?;
    proofs(&mut connection, &places, size).await
}

/// Returns inclusion proofs in the tree of `size`. Places beyond it are skipped.
pub async fn proofs(
    connection: &mut SqlConnection,
    places: &[(i64, u64)],
    size: u64,
) -> Result<Vec<LogInclusion>, ServiceError> {
    let placed = || places.iter().filter(|(_, index)| *index < size);
    // Proofs of one ledger share tiles, so one read fetches the tiles of all.
    let needed: Vec<_> = placed()
        .flat_map(|(_, index)| merkle::tiles_of_inclusion(*index, size))
        .collect();
    let tiles = log::tiles(connection, needed).await?;
    placed()
        .map(|(sequence, leaf_index)| {
            let proof = tiles.inclusion(*leaf_index, size)?;
            Ok(LogInclusion {
                sequence: *sequence,
                leaf_index: *leaf_index,
                proof: proof.iter().map(hex::encode).collect(),
            })
        })
        .collect()
}

/// Returns the key that verifies this installation's log; none before its first
/// checkpoint.
pub async fn verifier(core: &Core) -> Result<Option<VerifierKey>, ServiceError> {
    let mut connection = core.store.read().await?;
    let Some(head) = log::head(&mut connection).await? else {
        return Ok(None);
    };
    let successions = log::successions(&mut connection).await?;
    Ok(VerifierKey::parse(&own(core, &head, &successions)?))
}

/// Returns a proof that the log extends the head in the envelope's certificate.
async fn certified(
    connection: &mut SqlConnection,
    org: &OrgId,
    envelope: &EnvelopeId,
    size: u64,
) -> Result<Option<LogConsistency>, ServiceError> {
    let note = vault::checkpoint(connection, org, envelope).await?;
    let from = note.as_deref().and_then(size_of);
    // A restored database may have a smaller tree than the certificate names. There is no proof then.
    let Some(from) = from.filter(|from| *from <= size) else {
        return Ok(None);
    };
    Ok(Some(consistency(connection, from, size).await?))
}

async fn consistency(
    connection: &mut SqlConnection,
    from: u64,
    size: u64,
) -> Result<LogConsistency, ServiceError> {
    let needed = merkle::tiles_of_consistency(from, size);
    let tiles = log::tiles(connection, needed).await?;
    let proof = tiles.consistency(from, size)?;
    Ok(LogConsistency {
        from,
        proof: proof.iter().map(hex::encode).collect(),
    })
}
