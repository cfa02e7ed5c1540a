//! Merkle log over all ledgers: pending entries, tiles, and the head.
//!
//! These tables belong to the whole installation and contain hashes only.

use crate::SqlConnection;
use sqlx::{AssertSqlSafe, Row as _};

use super::outbox::placeholders;
use super::row::{RowColumns, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{Store, StoreError, WriteTransaction, owned};
use holdfast_domain::checkpoint::Checkpoint;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::OrgId;
use holdfast_domain::ledger::LedgerChain;
use holdfast_domain::merkle::{Hash, TileId, TileReader};

/// Key of the only log.
const LOG: i64 = 1;

/// State of the log.
#[derive(Clone, Debug)]
pub struct LogState {
    /// Name of the log, fixed with its first checkpoint.
    pub origin: String,
    pub size: u64,
    /// Root over the first `size` entries, in hex.
    pub root: String,
    /// Public key that verifies the checkpoint; none before the first checkpoint.
    pub public_key: Option<String>,
    /// Checkpoint as a signed note; none before the first.
    pub checkpoint: Option<String>,
    pub signed_at: Option<Timestamp>,
    /// Time of the newest entry or head. It never goes back, unless an operator confirms the clock.
    pub newest_at: Option<Timestamp>,
    /// Newest head that the quorum of witnesses has cosigned, as a signed note with their lines.
    pub cosigned: Option<String>,
    pub cosigned_at: Option<Timestamp>,
    /// Since when the newest head has lacked the quorum.
    pub uncosigned_since: Option<Timestamp>,
}

/// Ledger entry that is not in the log yet.
#[derive(Clone, Debug)]
pub struct PendingLeaf {
    bucket: i64,
    /// Id of the ledger: an envelope or an organization.
    pub chain: String,
    pub sequence: i64,
    /// Hash of the ledger entry, in hex.
    pub hash: String,
    pub at: Timestamp,
}

/// Returns whether any entry is pending.
pub async fn any_pending(connection: &mut SqlConnection) -> Result<bool, StoreError> {
    sqlx::query("select sequence from ledger_pending limit 1")
        .finds_row(connection)
        .await
}

/// Returns the number of pending entries.
pub async fn pending_count(connection: &mut SqlConnection) -> Result<i64, StoreError> {
    let row = sqlx::query("select count(*) as waiting from ledger_pending")
        .fetch_one(connection)
        .await?;
    Ok(row.try_get("waiting")?)
}

/// Returns the oldest pending entries.
pub async fn pending(
    tx: &mut WriteTransaction,
    limit: i64,
) -> Result<Vec<PendingLeaf>, StoreError> {
    // Time orders the entries, and the number in its ledger those of one moment.
    query_rows(
        "select {columns} from ledger_pending
         order by at, envelope_id, sequence limit $1",
    )
    .bind(limit)
    .fetch_all(tx)
    .await
}

table_row! {
    PendingLeaf of "ledger_pending" by "envelope_id" {
        bucket: number("bucket"),
        chain: text("envelope_id"),
        sequence: number("sequence"),
        hash: text("hash"),
        at: time("at"),
    }
}

/// Acquires or renews the lease on extending the log until `until`, and locks its row until the
/// transaction ends. Returns none while another node holds the lease.
pub async fn lease(
    tx: &mut WriteTransaction,
    origin: &str,
    holder: &str,
    now: Timestamp,
    until: Timestamp,
) -> Result<Option<LogState>, StoreError> {
    // The first node makes the row. Its name of the log stays, also when the setting changes later.
    sqlx::query(
        "insert into ledger_log (log_id, origin, tree_size, root_hash)
         values ($1, $2, 0, '') on conflict (log_id) do nothing",
    )
    .bind(LOG)
    .bind(origin)
    .execute(&mut **tx)
    .await?;

    // The holder renews at any time, other nodes wait for the end. The row
    // lock keeps them out until the commit, even if the lease ends before.
    query_rows(
        "update ledger_log set holder = $2, lease_until = $4
         where log_id = $1 and (holder is null or holder = $2 or lease_until <= $3)
         returning {columns}",
    )
    .bind(LOG)
    .bind(holder)
    .bind(now.to_string())
    .bind(until.to_string())
    .fetch_optional(tx)
    .await
}

/// Releases the lease at startup of the database's only
/// node (SQLite): its holder ended with the earlier run.
pub async fn forget_lease(store: &Store) -> Result<(), StoreError> {
    let statement = sqlx::query("update ledger_log set holder = null where log_id = $1");
    store.end_earlier_run(statement.bind(LOG)).await
}

/// Returns the head; none before the first entry.
pub async fn head(connection: &mut SqlConnection) -> Result<Option<LogState>, StoreError> {
    query_rows("select {columns} from ledger_log where log_id = $1")
        .bind(LOG)
        .fetch_optional(connection)
        .await
}

/// Returns the head with the log's row locked: the log cannot grow until the transaction ends.
pub async fn locked(tx: &mut WriteTransaction) -> Result<Option<LogState>, StoreError> {
    // An update without effect locks the row on both databases; SQLite has no `for update`.
    query_rows("update ledger_log set origin = origin where log_id = $1 returning {columns}")
        .bind(LOG)
        .fetch_optional(tx)
        .await
}

/// Returns the key successions of the log as signed notes, oldest first.
pub async fn successions(connection: &mut SqlConnection) -> Result<Vec<String>, StoreError> {
    let rows = sqlx::query("select note from log_key_succession order by position")
        .fetch_all(connection)
        .await?;
    rows.iter().map(|row| Ok(row.try_get("note")?)).collect()
}

/// Adds a key succession; requires [`locked`].
pub async fn add_succession(
    tx: &mut WriteTransaction,
    note: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    // The lock on the log's row makes `max + 1` safe.
    sqlx::query(
        "insert into log_key_succession (position, note, at)
         select coalesce(max(position), 0) + 1, $1, $2 from log_key_succession",
    )
    .bind(note)
    .bind(now.to_string())
    .run(tx)
    .await
}

/// Replaces the head. `newest` is the time of the newest entry.
pub async fn set_head(
    tx: &mut WriteTransaction,
    head: &Checkpoint,
    note: &str,
    public_key: &str,
    now: Timestamp,
    newest: Timestamp,
) -> Result<(), StoreError> {
    // In the transaction that places the entries: the head covers exactly the placed ones.
    sqlx::query(
        "update ledger_log set tree_size = $2, root_hash = $3, checkpoint = $4, public_key = $5,
             signed_at = $6, newest_at = $7
         where log_id = $1",
    )
    .bind(LOG)
    .bind(head.size.cast_signed())
    .bind(hex::encode(head.root))
    .bind(note)
    .bind(public_key)
    .bind(now.to_string())
    .bind(newest.to_string())
    .run(tx)
    .await
}

/// Replaces the newest cosigned head; requires [`locked`].
pub async fn set_cosigned(
    tx: &mut WriteTransaction,
    note: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "update ledger_log set cosigned = $2, cosigned_at = $3, uncosigned_since = null
         where log_id = $1",
    )
    .bind(LOG)
    .bind(note)
    .bind(now.to_string())
    .run(tx)
    .await
}

/// Notes that the newest head lacks the quorum. An earlier note stays.
pub async fn set_uncosigned(tx: &mut WriteTransaction, since: Timestamp) -> Result<(), StoreError> {
    sqlx::query(
        "update ledger_log set uncosigned_since = $2
         where log_id = $1 and uncosigned_since is null",
    )
    .bind(LOG)
    .bind(since.to_string())
    .run(tx)
    .await
}

/// Sets the time of the newest entry back to `now`.
pub async fn confirm_clock(tx: &mut WriteTransaction, now: Timestamp) -> Result<(), StoreError> {
    sqlx::query("update ledger_log set newest_at = $2 where log_id = $1")
        .bind(LOG)
        .bind(now.to_string())
        .run(tx)
        .await
}

/// Assigns consecutive positions to entries, starting at `first`.
pub async fn place(
    tx: &mut WriteTransaction,
    entries: &[PendingLeaf],
    first: u64,
) -> Result<(), StoreError> {
    if entries.is_empty() {
        return Ok(());
    }

    // Two statements for all entries instead of two for each.
    let insert = format!(
        "insert into ledger_leaf (bucket, envelope_id, sequence, leaf_index) values {}",
        placeholders(tx, 4, entries.len())
    );
    let mut query = sqlx::query(AssertSqlSafe(insert));
    for (entry, index) in entries.iter().zip(first..) {
        query = query
            .bind(entry.bucket)
            .bind(&entry.chain)
            .bind(entry.sequence)
            .bind(index.cast_signed());
    }

    query.execute(&mut **tx).await?;
    // In the same transaction, so that an entry is pending or placed, and never gets two places.
    let delete = format!(
        "delete from ledger_pending where (bucket, envelope_id, sequence) in (values {})",
        placeholders(tx, 3, entries.len())
    );
    let mut query = sqlx::query(AssertSqlSafe(delete));
    for entry in entries {
        query = query
            .bind(entry.bucket)
            .bind(&entry.chain)
            .bind(entry.sequence);
    }

    query.run(tx).await
}

/// Returns the log positions of a ledger's entries: sequence and leaf index, in order.
pub async fn places(
    connection: &mut SqlConnection,
    org: Option<&OrgId>,
    of: &impl LedgerChain,
) -> Result<Vec<(i64, u64)>, StoreError> {
    places_behind(connection, org, of, 0, i64::MAX).await
}

/// Returns up to `limit` log positions of entries behind one: sequence and leaf index, in order.
pub async fn places_behind(
    connection: &mut SqlConnection,
    org: Option<&OrgId>,
    of: &impl LedgerChain,
    sequence: i64,
    limit: i64,
) -> Result<Vec<(i64, u64)>, StoreError> {
    let rows = sqlx::query(
        "select sequence, leaf_index from ledger_leaf where bucket = $1 and envelope_id = $2
             and sequence > $3 order by sequence limit $4",
    )
    .bind(owned(org).0)
    .bind(of.chain())
    .bind(sequence)
    .bind(limit)
    .fetch_all(connection)
    .await?;

    rows.iter()
        .map(|row| {
            let index: i64 = row.try_get("leaf_index")?;
            Ok((row.try_get("sequence")?, index.cast_unsigned()))
        })
        .collect()
}

/// Returns those of these tiles that exist.
pub async fn tiles(
    connection: &mut SqlConnection,
    ids: impl IntoIterator<Item = TileId>,
) -> Result<TileReader, StoreError> {
    let mut tiles = TileReader::default();
    for id in ids {
        // Callers name a tile for each leaf, and up to 256 leaves share one.
        if tiles.get(id).is_some() {
            continue;
        }

        let row = sqlx::query("select hashes from ledger_tile where level = $1 and tile = $2")
            .bind(i64::from(id.level))
            .bind(id.index.cast_signed())
            .fetch_optional(&mut *connection)
            .await?;
        if let Some(row) = row {
            let columns = RowColumns::of(&row, "ledger_tile", "hashes");
            tiles.insert(id, columns.parsed("hashes", hashes)?);
        }
    }

    Ok(tiles)
}

/// Writes a new or extended tile.
pub async fn set_tile(
    tx: &mut WriteTransaction,
    id: TileId,
    hashes: &[Hash],
) -> Result<(), StoreError> {
    // Only the last tile of a level grows: the update appends hashes and changes none.
    sqlx::query(
        "insert into ledger_tile (level, tile, hashes) values ($1, $2, $3)
         on conflict (level, tile) do update set hashes = excluded.hashes",
    )
    .bind(i64::from(id.level))
    .bind(id.index.cast_signed())
    .bind(hex::encode(hashes.concat()))
    .run(tx)
    .await
}

fn hashes(text: &str) -> Option<Vec<Hash>> {
    let bytes = hex::decode(text).ok()?;
    let (hashes, rest) = bytes.as_chunks::<32>();
    // Half a hash at the end means a damaged row.
    rest.is_empty().then(|| hashes.to_vec())
}

table_row! {
    LogState of "ledger_log" by "origin" also "tree_size" {
        origin: text("origin"),
        size: |row| row.number("tree_size")?.cast_unsigned(),
        root: text("root_hash"),
        public_key: optional_text("public_key"),
        checkpoint: optional_text("checkpoint"),
        signed_at: optional_time("signed_at"),
        newest_at: optional_time("newest_at"),
        cosigned: optional_text("cosigned"),
        cosigned_at: optional_time("cosigned_at"),
        uncosigned_since: optional_time("uncosigned_since"),
    }
}
