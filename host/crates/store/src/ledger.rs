//! Custody ledger. Entries are appended in the transaction of the change they record.

use crate::SqlConnection;
use sqlx::{AssertSqlSafe, Row as _};

use super::row::{TableRow, columns_of, json_text, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction, owned};
use holdfast_domain::id::OrgId;
use holdfast_domain::ledger::{LedgerChain, LedgerEntry, NewEntry};

/// Appends an entry; organization `None` is the installation. Concurrent writers cannot both take
/// the next sequence number, because the primary key rejects the second.
pub async fn append(
    tx: &mut WriteTransaction,
    org: Option<&OrgId>,
    of: &impl LedgerChain,
    new: NewEntry,
) -> Result<LedgerEntry, StoreError> {
    let (bucket, owner) = owned(org);
    let chain = (bucket, owner.to_owned(), of.chain().to_owned());
    let last = match tx.outbox.tails.remove(&chain) {
        // This transaction began the ledger, or has appended to it already.
        Some(last) => last,
        None => last(tx, bucket, owner, of.chain()).await?,
    };
    let new = if of.is_of_record() { new.salted() } else { new };
    let entry = LedgerEntry::after(last.as_ref(), new);
    sqlx::query(
        "insert into ledger_entry (bucket, envelope_id, sequence, org_id, at, actor, action,
             details, previous_hash, hash)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )
    .bind(bucket)
    .bind(of.chain())
    .bind(entry.sequence)
    .bind(owner)
    .bind(entry.at.to_string())
    .bind(&entry.actor)
    .bind(&entry.action)
    .bind(json_text(&entry.details))
    .bind(&entry.previous_hash)
    .bind(&entry.hash)
    .execute(&mut **tx)
    .await?;

    // In the same transaction, so that no entry can miss the log.
    let leaf = (bucket, chain.2.clone(), entry.clone());
    tx.outbox.leaves.push(leaf);
    tx.outbox.tails.insert(chain, Some(entry.clone()));

    Ok(entry)
}

/// Destroys the details of a ledger that have personal values. A repeat changes nothing. The caller holds the envelope's lock.
pub async fn redact(
    tx: &mut WriteTransaction,
    org: &OrgId,
    of: &impl LedgerChain,
) -> Result<(), StoreError> {
    for entry in list(tx, Some(org), of).await? {
        let redacted = entry.redacted();
        if redacted == entry {
            continue;
        }

        sqlx::query(
            "update ledger_entry set actor = $4, details = $5, withheld = $6
             where bucket = $1 and envelope_id = $2 and sequence = $3",
        )
        .bind(org.bucket())
        .bind(of.chain())
        .bind(redacted.sequence)
        .bind(&redacted.actor)
        .bind(json_text(&redacted.details))
        .bind(i64::from(redacted.withheld))
        .execute(&mut **tx)
        .await?;
    }

    Ok(())
}

/// Notes that a ledger is new and has no entries.
pub(super) fn begin(tx: &mut WriteTransaction, org: &OrgId, of: &impl LedgerChain) {
    let chain = (org.bucket(), org.as_str().to_owned(), of.chain().to_owned());
    tx.outbox.tails.insert(chain, None);
}

async fn last(
    connection: &mut SqlConnection,
    bucket: i64,
    owner: &str,
    chain: &str,
) -> Result<Option<LedgerEntry>, StoreError> {
    query_rows(
        "select {columns} from ledger_entry where bucket = $1 and org_id = $2 and envelope_id = $3
         order by sequence desc limit 1",
    )
    .bind(bucket)
    .bind(owner)
    .bind(chain)
    .fetch_optional(connection)
    .await
}

/// Returns the sequence number of the last entry; 0 if there is none.
pub async fn last_sequence(
    connection: &mut SqlConnection,
    org: &OrgId,
    of: &impl LedgerChain,
) -> Result<i64, StoreError> {
    let row = sqlx::query(
        "select coalesce(max(sequence), 0) as last from ledger_entry
         where bucket = $1 and org_id = $2 and envelope_id = $3",
    )
    .bind_org(org)
    .bind(of.chain())
    .fetch_one(connection)
    .await?;

    Ok(row.try_get("last")?)
}

/// Returns the last entry with this action, if there is one.
pub async fn last_of(
    connection: &mut SqlConnection,
    org: &OrgId,
    of: &impl LedgerChain,
    action: &str,
) -> Result<Option<LedgerEntry>, StoreError> {
    query_rows(
        "select {columns} from ledger_entry
         where bucket = $1 and org_id = $2 and envelope_id = $3 and action = $4
         order by sequence desc limit 1",
    )
    .bind_org(org)
    .bind(of.chain())
    .bind(action)
    .fetch_optional(connection)
    .await
}

/// Returns the whole chain, from the first entry on.
pub async fn list(
    connection: &mut SqlConnection,
    org: Option<&OrgId>,
    of: &impl LedgerChain,
) -> Result<Vec<LedgerEntry>, StoreError> {
    let (bucket, owner) = owned(org);
    query_rows(
        "select {columns} from ledger_entry where bucket = $1 and org_id = $2 and envelope_id = $3
         order by sequence",
    )
    .bind(bucket)
    .bind(owner)
    .bind(of.chain())
    .fetch_all(connection)
    .await
}

/// Returns up to `limit` entries behind one, in order.
pub async fn behind(
    connection: &mut SqlConnection,
    org: &OrgId,
    of: &impl LedgerChain,
    sequence: i64,
    limit: i64,
) -> Result<Vec<LedgerEntry>, StoreError> {
    query_rows(
        "select {columns} from ledger_entry where bucket = $1 and org_id = $2 and envelope_id = $3
             and sequence > $4 order by sequence limit $5",
    )
    .bind_org(org)
    .bind(of.chain())
    .bind(sequence)
    .bind(limit)
    .fetch_all(connection)
    .await
}

/// Place of an entry: its chain, and its number in it.
pub struct LedgerPosition {
    pub chain: String,
    pub sequence: i64,
}

/// Returns the newest entries of two chains together, each with its chain, or those before one.
pub async fn newest_of(
    connection: &mut SqlConnection,
    org: &OrgId,
    chains: [&str; 2],
    before: Option<&LedgerPosition>,
    limit: i64,
) -> Result<Vec<(String, LedgerEntry)>, StoreError> {
    // Entries of one moment are ordered by chain and number.
    let columns = columns_of::<LedgerEntry>("e");
    let text = format!(
        "select {columns} from ledger_entry e
         left join ledger_entry b on b.bucket = e.bucket and b.org_id = e.org_id
             and b.envelope_id = $5 and b.sequence = $6
         where e.bucket = $1 and e.org_id = $2 and e.envelope_id in ($3, $4)
             and ($5 = '' or e.at < b.at or (e.at = b.at and (e.envelope_id < b.envelope_id
                 or (e.envelope_id = b.envelope_id and e.sequence < b.sequence))))
         order by e.at desc, e.envelope_id desc, e.sequence desc limit $7"
    );
    // The cursor's time is read from its row, so the caller names only chain and number.
    let rows = sqlx::query(AssertSqlSafe(text))
        .bind_org(org)
        .bind(chains[0])
        .bind(chains[1])
        .bind(before.map_or("", |before| before.chain.as_str()))
        .bind(before.map_or(0, |before| before.sequence))
        .bind(limit)
        .fetch_all(connection)
        .await?;

    rows.iter()
        .map(|row| Ok((row.try_get("envelope_id")?, LedgerEntry::of_row(row)?)))
        .collect()
}

table_row! {
    LedgerEntry of "ledger_entry" by "envelope_id" also "envelope_id" {
        sequence: number("sequence"),
        at: time("at"),
        actor: text("actor"),
        action: text("action"),
        details: json("details"),
        previous_hash: text("previous_hash"),
        hash: text("hash"),
        withheld: flag("withheld"),
    }
}
