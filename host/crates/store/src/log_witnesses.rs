//! Witnesses of the log, and the logs that this installation is a witness of.
//!
//! These tables belong to the whole installation and contain hashes and signatures only.

use crate::SqlConnection;
use sqlx::Row as _;

use super::row::{json_text, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::checkpoint::Checkpoint;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::log_witness::WitnessConflict;

/// Most contradicting heads that are stored of one log: its key can sign any number.
const MOST_CONFLICTS: i64 = 100;

/// Witness of the log, as its last answers left it.
#[derive(Clone, Debug)]
pub struct LogWitnessState {
    pub name: String,
    /// Size of the newest tree that the witness is known to have cosigned.
    pub size: u64,
    /// Its line of the head of that size; `None` if only the size is known.
    pub cosignature: Option<String>,
    /// Failures since the last cosignature.
    pub failures: i64,
    /// Time of the next offer.
    pub next_at: Timestamp,
    pub answered_at: Option<Timestamp>,
    /// Why the last offer failed.
    pub problem: Option<String>,
    pub conflict: Option<WitnessConflict>,
}

impl LogWitnessState {
    /// Returns the state of a witness that was never asked.
    pub fn new(name: &str, now: Timestamp) -> Self {
        Self {
            name: name.to_owned(),
            size: 0,
            cosignature: None,
            failures: 0,
            next_at: now,
            answered_at: None,
            problem: None,
            conflict: None,
        }
    }
}

table_row! {
    LogWitnessState of "ledger_witness" by "name" also "tree_size" {
        name: text("name"),
        size: |row| row.number("tree_size")?.cast_unsigned(),
        cosignature: optional_text("cosignature"),
        failures: number("failures"),
        next_at: time("next_at"),
        answered_at: optional_time("answered_at"),
        problem: optional_text("problem"),
        conflict: optional_json("conflict"),
    }
}

/// Returns all witnesses that were ever asked, also those that the settings no longer name.
pub async fn list(connection: &mut SqlConnection) -> Result<Vec<LogWitnessState>, StoreError> {
    query_rows("select {columns} from ledger_witness order by name")
        .fetch_all(connection)
        .await
}

/// Writes the state of a witness.
pub async fn set(tx: &mut WriteTransaction, state: &LogWitnessState) -> Result<(), StoreError> {
    sqlx::query(
        "insert into ledger_witness
             (name, tree_size, cosignature, failures, next_at, answered_at, problem, conflict)
         values ($1, $2, $3, $4, $5, $6, $7, $8)
         on conflict (name) do update set tree_size = excluded.tree_size,
             cosignature = excluded.cosignature, failures = excluded.failures,
             next_at = excluded.next_at, answered_at = excluded.answered_at,
             problem = excluded.problem, conflict = excluded.conflict",
    )
    .bind(&state.name)
    .bind(state.size.cast_signed())
    .bind(state.cosignature.as_deref())
    .bind(state.failures)
    .bind(state.next_at.to_string())
    .bind(state.answered_at.map(|at| at.to_string()))
    .bind(state.problem.as_deref())
    .bind(state.conflict.as_ref().map(json_text))
    .run(tx)
    .await
}

/// Log of another installation, with the newest head that this one has cosigned.
#[derive(Clone, Debug)]
pub struct WitnessedLog {
    pub origin: String,
    pub size: u64,
    /// Root over the first `size` entries, in hex.
    pub root: String,
    /// The head as a signed note, with this witness's line.
    pub checkpoint: String,
    pub cosigned_at: Timestamp,
}

table_row! {
    WitnessedLog of "witnessed_log" by "origin" also "tree_size" {
        origin: text("origin"),
        size: |row| row.number("tree_size")?.cast_unsigned(),
        root: text("root_hash"),
        checkpoint: text("checkpoint"),
        cosigned_at: time("cosigned_at"),
    }
}

/// Returns the newest cosigned head of a log.
pub async fn witnessed(
    connection: &mut SqlConnection,
    origin: &str,
) -> Result<Option<WitnessedLog>, StoreError> {
    query_rows("select {columns} from witnessed_log where origin = $1")
        .bind(origin)
        .fetch_optional(connection)
        .await
}

/// Returns the newest cosigned heads of all logs.
pub async fn all_witnessed(
    connection: &mut SqlConnection,
) -> Result<Vec<WitnessedLog>, StoreError> {
    query_rows("select {columns} from witnessed_log order by origin")
        .fetch_all(connection)
        .await
}

/// Replaces the newest cosigned head of a log by compare-and-swap on the one before. Returns whether it did: another
/// request may have been first.
pub async fn advance(
    tx: &mut WriteTransaction,
    before: Option<&WitnessedLog>,
    head: &Checkpoint,
    note: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let statement = match before {
        None => {
            "insert into witnessed_log (origin, tree_size, root_hash, checkpoint, cosigned_at)
             values ($1, $2, $3, $4, $5) on conflict (origin) do nothing"
        }
        Some(_) => {
            "update witnessed_log set tree_size = $2, root_hash = $3, checkpoint = $4,
                 cosigned_at = $5
             where origin = $1 and tree_size = $6 and root_hash = $7"
        }
    };

    let mut query = sqlx::query(statement)
        .bind(&head.origin)
        .bind(head.size.cast_signed())
        .bind(hex::encode(head.root))
        .bind(note)
        .bind(now.to_string());
    if let Some(before) = before {
        query = query.bind(before.size.cast_signed()).bind(&before.root);
    }

    query.changes_row(tx).await
}

/// Head that is signed with the key of its log and does not extend the cosigned one.
#[derive(Clone, Debug)]
pub struct WitnessedConflict {
    pub origin: String,
    pub size: u64,
    /// Head that this witness had cosigned, as a signed note.
    pub cosigned: String,
    /// Head that it refused, as a signed note.
    pub refused: String,
    pub at: Timestamp,
}

table_row! {
    WitnessedConflict of "witnessed_conflict" by "origin" also "tree_size" {
        origin: text("origin"),
        size: |row| row.number("tree_size")?.cast_unsigned(),
        cosigned: text("cosigned"),
        refused: text("refused"),
        at: time("at"),
    }
}

/// Stores a contradicting head beside the cosigned one. The first hundred of a log are stored, each once.
pub async fn add_conflict(
    tx: &mut WriteTransaction,
    cosigned: &WitnessedLog,
    refused: &Checkpoint,
    note: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let count = sqlx::query("select count(*) as known from witnessed_conflict where origin = $1")
        .bind(&refused.origin)
        .fetch_one(&mut **tx)
        .await?;
    let known: i64 = count.try_get("known")?;
    if known >= MOST_CONFLICTS {
        return Ok(());
    }

    sqlx::query(
        "insert into witnessed_conflict (origin, tree_size, root_hash, cosigned, refused, at)
         values ($1, $2, $3, $4, $5, $6) on conflict (origin, tree_size, root_hash) do nothing",
    )
    .bind(&refused.origin)
    .bind(refused.size.cast_signed())
    .bind(hex::encode(refused.root))
    .bind(&cosigned.checkpoint)
    .bind(note)
    .bind(now.to_string())
    .run(tx)
    .await
}

/// Returns the contradicting heads of all logs.
pub async fn conflicts(
    connection: &mut SqlConnection,
) -> Result<Vec<WitnessedConflict>, StoreError> {
    query_rows("select {columns} from witnessed_conflict order by origin, at, tree_size")
        .fetch_all(connection)
        .await
}
