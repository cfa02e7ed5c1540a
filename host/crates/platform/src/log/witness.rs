//! This installation as a witness of the logs of others (C2SP `tlog-witness`).
//!
//! A witness cosigns a head only if it extends the head that it has cosigned before, and stores it before it answers. So
//! a log that shows two histories gets the cosignature of one of them at most. It keeps the heads that contradict each
//! other: both have the signature of their log.

use serde::Serialize;

use super::cosignatures::log_id;
use holdfast_domain::checkpoint::{
    Checkpoint, CheckpointSigner, VerifierKey, WitnessKey, split_note,
};
use holdfast_domain::clock::{Clock, Timestamp};
use holdfast_domain::log_witness::AddCheckpoint;
use holdfast_domain::merkle::{self, Hash};
use holdfast_store::log_witnesses::{self as rows, WitnessedConflict, WitnessedLog};
use holdfast_store::{Store, StoreError};

/// Witness of the logs of others.
pub struct LogWitness {
    store: Store,
    clock: Clock,
    signer: CheckpointSigner,
    /// Name in the cosignatures.
    name: String,
    /// Keys of the logs that get cosignatures.
    logs: Vec<VerifierKey>,
}

/// Why a head is not cosigned.
#[derive(Debug, thiserror::Error)]
pub enum WitnessRefusal {
    /// The body is no request, or its sizes contradict each other.
    #[error("the request is malformed: {0}")]
    Malformed(&'static str),
    /// This witness does not know the log.
    #[error("this witness does not know the log")]
    UnknownLog,
    /// No signature of the head is valid for a known key of its log.
    #[error("the checkpoint is not signed with a key of its log")]
    Unsigned,
    /// The newest cosigned head has this size, and not the one that the proof begins with; or another root.
    #[error("the newest cosigned checkpoint has {0} entries")]
    OtherSize(u64),
    /// The proof does not lead from the newest cosigned head to this one.
    #[error("the consistency proof does not hold")]
    Inconsistent,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl LogWitness {
    /// Opens the witness of an installation.
    pub fn new(
        store: Store,
        clock: Clock,
        signer: CheckpointSigner,
        name: String,
        logs: Vec<VerifierKey>,
    ) -> Self {
        Self {
            store,
            clock,
            signer,
            name,
            logs,
        }
    }

    /// Returns the key that verifies the cosignatures.
    pub fn key(&self) -> WitnessKey {
        self.signer.witness(&self.name)
    }

    /// Cosigns a head that extends the newest cosigned one, and returns the line of the cosignature.
    ///
    /// # Errors
    /// The reason for the refusal. A head that contradicts the cosigned one is stored first.
    pub async fn add_checkpoint(&self, body: &str) -> Result<String, WitnessRefusal> {
        let request = AddCheckpoint::parse(body);
        let request = request.ok_or(WitnessRefusal::Malformed("it is no add-checkpoint"))?;
        let SubmittedHead {
            checkpoint,
            text,
            signature,
        } = self.opened(&request.note)?;
        if request.old > checkpoint.size {
            return Err(WitnessRefusal::Malformed("the old size is the larger one"));
        }

        let mut tx = self.store.begin().await?;
        let before = rows::witnessed(&mut tx, &checkpoint.origin).await?;
        let known = before.as_ref().map_or(0, |before| before.size);
        if request.old != known {
            return Err(WitnessRefusal::OtherSize(known));
        }

        let now = self.clock.now();
        if let Some(before) = &before
            && !judged(before, &request, &checkpoint, merkle::extends)
        {
            // Only what the log itself has signed counts against it: anybody can send its head with a wrong proof.
            if judged(before, &request, &checkpoint, merkle::contradicts) {
                let shown = format!("{text}\n{signature}\n");
                rows::add_conflict(&mut tx, before, &checkpoint, &shown, now).await?;
                tx.commit().await?;
                report(before, &checkpoint, &shown);
            }
            return Err(refusal(before, &request, &checkpoint));
        }
        if before.is_none() && !request.proof.is_empty() {
            return Err(WitnessRefusal::Inconsistent);
        }

        let at = now.as_seconds().cast_unsigned();
        let line = self.signer.cosign(&self.name, text, at);
        let note = format!("{text}\n{signature}\n{line}");
        let advanced = rows::advance(&mut tx, before.as_ref(), &checkpoint, &note, now).await?;
        if !advanced {
            // Another request was first. Its head is the one to extend now.
            drop(tx);
            let newest = self.newest(&checkpoint.origin).await?;
            return Err(WitnessRefusal::OtherSize(
                newest.map_or(0, |newest| newest.size),
            ));
        }

        // Durable before the cosignature leaves: a witness that forgets a head could cosign another history.
        tx.commit().await?;
        Ok(line)
    }

    /// Returns the head in a note, which a key of a known log must have signed.
    fn opened<'n>(&self, note: &'n str) -> Result<SubmittedHead<'n>, WitnessRefusal> {
        let malformed = WitnessRefusal::Malformed("its checkpoint is no signed note");
        let Some((text, lines)) = split_note(note) else {
            return Err(malformed);
        };
        // As signed notes demand. The operator's terminal gets this text, too.
        if text.contains(|letter: char| letter.is_control() && letter != '\n') {
            return Err(malformed);
        }

        let origin = text.lines().next().unwrap_or_default();
        let keys = self.logs.iter().filter(|key| key.name() == origin);
        let mut keys = keys.peekable();
        if keys.peek().is_none() {
            return Err(WitnessRefusal::UnknownLog);
        }

        let opened = keys.find_map(|key| Some((key, key.open(note).ok()?)));
        let (key, checkpoint) = opened.ok_or(WitnessRefusal::Unsigned)?;
        // Another spelling of the same head would be another text under one cosignature.
        if !checkpoint.begins(text) {
            return Err(malformed);
        }

        let mut lines = lines.lines();
        let signature = lines.find(|line| key.has_signed(text, &format!("{text}\n{line}\n")));
        Ok(SubmittedHead {
            checkpoint,
            text,
            signature: signature.unwrap_or_default(),
        })
    }

    async fn newest(&self, origin: &str) -> Result<Option<WitnessedLog>, StoreError> {
        let mut connection = self.store.read().await?;
        rows::witnessed(&mut connection, origin).await
    }

    /// Returns the newest cosigned head of the log with this id ([`log_id`]), as a signed note.
    pub async fn head(&self, id: &str) -> Result<Option<String>, StoreError> {
        let mut origins = self.logs.iter().map(VerifierKey::name);
        let Some(origin) = origins.find(|origin| log_id(origin) == id) else {
            return Ok(None);
        };
        Ok(self.newest(origin).await?.map(|log| log.checkpoint))
    }
}

/// Head that a log has signed.
struct SubmittedHead<'n> {
    checkpoint: Checkpoint,
    /// Text of its note, which the witness cosigns.
    text: &'n str,
    /// Line with the log's signature. Other lines of the note are not stored.
    signature: &'n str,
}

/// Returns what a check of [`merkle`] finds about a head and the newest cosigned one.
fn judged(
    before: &WitnessedLog,
    request: &AddCheckpoint,
    head: &Checkpoint,
    check: fn(u64, &Hash, &[Hash], u64, &Hash) -> bool,
) -> bool {
    let root = merkle::parse(&before.root);
    root.is_some_and(|root| check(before.size, &root, &request.proof, head.size, &head.root))
}

fn report(before: &WitnessedLog, head: &Checkpoint, shown: &str) {
    tracing::error!(
        log = head.origin,
        cosigned = before.checkpoint,
        refused = shown,
        "log shows a head that does not extend its cosigned one"
    );
}

/// Returns the refusal of a head that is not shown to extend the newest cosigned one.
fn refusal(before: &WitnessedLog, request: &AddCheckpoint, head: &Checkpoint) -> WitnessRefusal {
    // With an empty proof for the same size, only the root can differ.
    if before.size == head.size && request.proof.is_empty() {
        WitnessRefusal::OtherSize(before.size)
    } else {
        WitnessRefusal::Inconsistent
    }
}

/// Log with its newest cosigned head, for the operator of a witness.
#[derive(Debug, Serialize)]
pub struct WitnessedLogView {
    pub origin: String,
    pub tree_size: u64,
    pub cosigned_at: Timestamp,
    pub checkpoint: String,
    /// Heads that contradict a cosigned one.
    pub conflicts: Vec<WitnessedConflictView>,
}

/// Two heads of a log that contradict each other.
#[derive(Debug, Serialize)]
pub struct WitnessedConflictView {
    pub at: Timestamp,
    /// Size of the refused head.
    pub tree_size: u64,
    pub cosigned: String,
    pub refused: String,
}

impl From<WitnessedConflict> for WitnessedConflictView {
    fn from(conflict: WitnessedConflict) -> Self {
        Self {
            at: conflict.at,
            tree_size: conflict.size,
            cosigned: conflict.cosigned,
            refused: conflict.refused,
        }
    }
}

/// Returns all logs that this installation has cosigned.
pub async fn witnessed_logs(store: &Store) -> Result<Vec<WitnessedLogView>, StoreError> {
    let mut connection = store.read().await?;
    let logs = rows::all_witnessed(&mut connection).await?;
    let conflicts = rows::conflicts(&mut connection).await?;
    let views = logs.into_iter().map(|log| {
        let of_log = conflicts.iter().filter(|one| one.origin == log.origin);
        WitnessedLogView {
            conflicts: of_log.cloned().map(WitnessedConflictView::from).collect(),
            origin: log.origin,
            tree_size: log.size,
            cosigned_at: log.cosigned_at,
            checkpoint: log.checkpoint,
        }
    });
    Ok(views.collect())
}
