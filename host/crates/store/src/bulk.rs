//! Bulk batches and their items.
//!
//! Items are leased like jobs: a claim raises `lease_epoch`, and settling names the epoch as a
//! fencing token, so that a worker with an expired lease cannot settle the item.

use std::collections::HashMap;
use std::time::Duration;

use crate::SqlConnection;
use sqlx::AssertSqlSafe;

use super::page::PagedQuery;
use super::row::{RowColumns, json_text, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{Store, StoreError, WriteTransaction};
use holdfast_domain::bulk::{
    Batch, BatchCounts, BatchItem, BatchStatus, DocumentSource, ItemOutcome, ItemStatus,
};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::VaultTerms;
use holdfast_domain::id::{BatchId, CustomerId, EnvelopeId, ItemId, OrgId, PackageId, TemplateId};

pub async fn insert(connection: &mut SqlConnection, batch: &Batch) -> Result<(), StoreError> {
    let terms = batch.terms.as_ref();
    // A new batch has no items, and `submitted_master` stays null until the provider has its copy.
    sqlx::query(
        "insert into bulk_batch (bucket, batch_id, org_id, name, document_source,
             source_template_id, source_package_id, kba_required, preserve_signing_order,
             add_me_as_signer, auto_vault_enabled, terms_accepted_at, terms_accepted_by, tag_ids,
             master_template_id, provider_instance, status, runs, created_by, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, 0, $18,
             $19, $19)",
    )
    .bind_key(&batch.org, batch.id.as_str())
    .bind(batch.org.as_str())
    .bind(&batch.name)
    .bind(batch.source.as_str())
    .bind(batch.source_template.as_ref().map(TemplateId::as_str))
    .bind(batch.source_package.as_ref().map(PackageId::as_str))
    .bind(i64::from(batch.kba_required))
    .bind(i64::from(batch.preserve_signing_order))
    .bind(i64::from(batch.add_me_as_signer))
    .bind(i64::from(batch.auto_vault_enabled))
    .bind(terms.map(|terms| terms.accepted_at.to_string()))
    .bind(terms.map(|terms| terms.accepted_by.as_str()))
    .bind(json_text(&batch.tags))
    .bind(batch.master.as_ref().map(TemplateId::as_str))
    .bind(batch.provider_instance.as_deref())
    .bind(batch.status.as_str())
    .bind(&batch.created_by)
    .bind(batch.created_at.to_string())
    .run(connection)
    .await
}

pub async fn get(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &BatchId,
) -> Result<Option<Batch>, StoreError> {
    one(connection, org, id, "").await
}

/// Returns a batch with its row locked until the transaction ends.
pub async fn lock(
    tx: &mut WriteTransaction,
    org: &OrgId,
    id: &BatchId,
) -> Result<Option<Batch>, StoreError> {
    let for_update = tx.dialect.for_update();
    one(tx, org, id, for_update).await
}

async fn one(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &BatchId,
    locked: &str,
) -> Result<Option<Batch>, StoreError> {
    // Envelopes name their batch for ever, so a deleted one keeps its row. Only callers do not find it.
    let text = format!(
        "select {{columns}} from bulk_batch
         where bucket = $1 and org_id = $2 and batch_id = $3 and deleted_at is null {locked}"
    );
    query_rows(AssertSqlSafe(text))
        .bind_org(org)
        .bind(id.as_str())
        .fetch_optional(connection)
        .await
}

/// Returns a page of batches, newest first, and the total number.
pub async fn list(
    connection: &mut SqlConnection,
    org: &OrgId,
    page: i64,
    limit: i64,
) -> Result<(Vec<Batch>, i64), StoreError> {
    let list = PagedQuery {
        select: "select {columns} from bulk_batch",
        bucket: org.bucket(),
        wanted: &[("org_id", Some(org.as_str()))],
        compared: &[],
        also: " and deleted_at is null",
    };
    list.page(connection, page, limit).await
}

/// Writes all mutable columns of a batch. The caller must hold its row lock.
pub async fn update(
    tx: &mut WriteTransaction,
    batch: &Batch,
    now: Timestamp,
) -> Result<(), StoreError> {
    let terms = batch.terms.as_ref();
    // No status is expected: the caller decided under the row lock. Source and creator never change.
    sqlx::query(
        "update bulk_batch set name = $3, kba_required = $4, preserve_signing_order = $5,
             add_me_as_signer = $6, auto_vault_enabled = $7, terms_accepted_at = $8,
             terms_accepted_by = $9, tag_ids = $10, master_template_id = $11,
             provider_instance = $12, submitted_master = $13, status = $14, runs = $15,
             updated_at = $16
         where bucket = $1 and batch_id = $2",
    )
    .bind_key(&batch.org, batch.id.as_str())
    .bind(&batch.name)
    .bind(i64::from(batch.kba_required))
    .bind(i64::from(batch.preserve_signing_order))
    .bind(i64::from(batch.add_me_as_signer))
    .bind(i64::from(batch.auto_vault_enabled))
    .bind(terms.map(|terms| terms.accepted_at.to_string()))
    .bind(terms.map(|terms| terms.accepted_by.as_str()))
    .bind(json_text(&batch.tags))
    .bind(batch.master.as_ref().map(TemplateId::as_str))
    .bind(batch.provider_instance.as_deref())
    .bind(batch.submitted.as_ref().map(json_text))
    .bind(batch.status.as_str())
    .bind(batch.runs)
    .bind(now.to_string())
    .run(tx)
    .await
}

/// Soft-deletes a batch: the row stays in the database only.
pub async fn delete(
    tx: &mut WriteTransaction,
    batch: &Batch,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query("update bulk_batch set deleted_at = $3 where bucket = $1 and batch_id = $2")
        .bind_key(&batch.org, batch.id.as_str())
        .bind(now.to_string())
        .run(tx)
        .await
}

/// Counts the items of these batches by status.
pub async fn counts(
    connection: &mut SqlConnection,
    org: &OrgId,
    batches: &[&BatchId],
) -> Result<HashMap<BatchId, BatchCounts>, StoreError> {
    // Counted at each read: counters in the batch's row would
    // make every settling transaction wait for its lock.
    let names: Vec<String> = (0..batches.len()).map(|n| format!("${}", n + 2)).collect();
    let text = format!(
        "select batch_id, status, count(*) as items from bulk_item
         where bucket = $1 and batch_id in ({}) group by batch_id, status",
        names.join(", ")
    );
    let mut counts: HashMap<BatchId, BatchCounts> = HashMap::new();

    // `in ()` is not valid SQL.
    if batches.is_empty() {
        return Ok(counts);
    }

    let mut query = sqlx::query(AssertSqlSafe(text)).bind(org.bucket());
    for batch in batches {
        query = query.bind(batch.as_str());
    }

    for row in &query.fetch_all(connection).await? {
        let columns = RowColumns::of(row, "bulk_item", "batch_id");
        let batch = columns.parsed("batch_id", BatchId::parse)?;
        let status = columns.parsed("status", ItemStatus::parse)?;
        *counts.entry(batch).or_default().of(status) = columns.number("items")?;
    }

    Ok(counts)
}

/// Like [`counts`], for one batch.
pub async fn counts_of(
    connection: &mut SqlConnection,
    org: &OrgId,
    batch: &BatchId,
) -> Result<BatchCounts, StoreError> {
    let mut counts = counts(connection, org, &[batch]).await?;
    Ok(counts.remove(batch).unwrap_or_default())
}

/// Returns all items of a batch in list order.
pub async fn items(
    connection: &mut SqlConnection,
    org: &OrgId,
    batch: &BatchId,
) -> Result<Vec<BatchItem>, StoreError> {
    query_rows(
        "select {columns} from bulk_item where bucket = $1 and org_id = $2 and batch_id = $3
         order by position",
    )
    .bind_org(org)
    .bind(batch.as_str())
    .fetch_all(connection)
    .await
}

/// Replaces all items of a batch. The caller must hold its row lock.
pub async fn replace_items(
    tx: &mut WriteTransaction,
    batch: &Batch,
    items: &[BatchItem],
    now: Timestamp,
) -> Result<(), StoreError> {
    /// Rows per statement: each binds eleven values, and SQLite allows 32,766.
    const ROWS: usize = 200;

    sqlx::query("delete from bulk_item where bucket = $1 and batch_id = $2")
        .bind_key(&batch.org, batch.id.as_str())
        .execute(&mut **tx)
        .await?;

    // A list has up to 1,000 clients, and each statement is a round trip on PostgreSQL.
    for some in items.chunks(ROWS) {
        let mut text = String::from(
            "insert into bulk_item (bucket, item_id, org_id, batch_id, position, customer_id,
                 customer_name, email, status, error, run_at, lease_epoch, attempts) values ",
        );
        for index in 0..some.len() {
            let first = 11 * index;
            let names: Vec<String> = (1..=11).map(|n| format!("${}", first + n)).collect();
            let comma = if index == 0 { "" } else { ", " };
            text.push_str(&format!("{comma}({}, 0, 0)", names.join(", ")));
        }

        let mut query = sqlx::query(AssertSqlSafe(text));
        for item in some {
            query = query
                .bind_key(&item.org, item.id.as_str())
                .bind(item.org.as_str())
                .bind(item.batch.as_str())
                .bind(item.position)
                .bind(item.customer.as_str())
                .bind(&item.customer_name)
                .bind(item.email.as_deref())
                .bind(item.status.as_str())
                .bind(item.error.as_deref())
                .bind(now.to_string());
        }

        query.execute(&mut **tx).await?;
    }

    Ok(())
}

/// Leases up to `limit` due items of a batch: new ones, and those with an expired lease.
pub async fn claim(
    tx: &mut WriteTransaction,
    batch: &Batch,
    now: Timestamp,
    lease: Duration,
    limit: i64,
) -> Result<Vec<BatchItem>, StoreError> {
    // `run_at` becomes the end of the lease: the item of a dead worker is due again by
    // itself. Lanes skip items that another lane is claiming instead of waiting for them.
    let text = format!(
        "with due as materialized (
             select item_id from bulk_item
             where bucket = $1 and batch_id = $2 and status in ('pending', 'running')
                 and run_at <= $3
             order by position limit $5 {}
         )
         update bulk_item set status = 'running', run_at = $4, lease_epoch = lease_epoch + 1
         where bucket = $1 and status in ('pending', 'running') and run_at <= $3
             and item_id in (select item_id from due)
         returning {{columns}}",
        tx.dialect.skip_locked()
    );

    let mut items: Vec<BatchItem> = query_rows(AssertSqlSafe(text))
        .bind_key(&batch.org, batch.id.as_str())
        .bind(now.to_string())
        .bind((now + lease).to_string())
        .bind(limit)
        .fetch_all(tx)
        .await?;

    // `returning` yields rows in no particular order.
    items.sort_by_key(|item| item.position);
    Ok(items)
}

/// Extends the leases of items in progress.
pub async fn renew(store: &Store, items: &[BatchItem], until: Timestamp) -> Result<(), StoreError> {
    // Urgent, because the leases keep running while this waits.
    let mut tx = store.begin_urgently().await?;
    // A lost lease is no error here. Settling the item fails by its epoch.
    for item in items {
        sqlx::query(
            "update bulk_item set run_at = $4
             where bucket = $1 and item_id = $2 and lease_epoch = $3 and status = 'running'",
        )
        .bind_key(&item.org, item.id.as_str())
        .bind(item.lease_epoch)
        .bind(until.to_string())
        .execute(&mut *tx)
        .await?;
    }

    tx.commit().await
}

/// Records the envelope of an item that was claimed in this transaction.
pub async fn set_envelope(
    tx: &mut WriteTransaction,
    item: &BatchItem,
    envelope: &EnvelopeId,
) -> Result<(), StoreError> {
    sqlx::query("update bulk_item set envelope_id = $3 where bucket = $1 and item_id = $2")
        .bind_key(&item.org, item.id.as_str())
        .bind(envelope.as_str())
        .run(tx)
        .await
}

/// Returns whether the caller still holds an item's lease; if so, it keeps the item until the
/// transaction ends.
pub async fn holds(tx: &mut WriteTransaction, item: &BatchItem) -> Result<bool, StoreError> {
    let text = format!(
        "select item_id from bulk_item
         where bucket = $1 and item_id = $2 and lease_epoch = $3 and status = 'running' {}",
        tx.dialect.for_update()
    );
    sqlx::query(AssertSqlSafe(text))
        .bind_key(&item.org, item.id.as_str())
        .bind(item.lease_epoch)
        .finds_row(tx)
        .await
}

/// Records the outcome of a leased item.
pub async fn settle(
    tx: &mut WriteTransaction,
    item: &BatchItem,
    outcome: &ItemOutcome,
) -> Result<(), StoreError> {
    let (status, error, sent_at, run_at, attempts) = match outcome {
        ItemOutcome::Sent(at) => (ItemStatus::Sent, None, Some(at.to_string()), None, 0),
        ItemOutcome::Failed(why) => (ItemStatus::Failed, Some(why), None, None, 1),
        ItemOutcome::Skipped(why) => (ItemStatus::Skipped, Some(why), None, None, 0),
        ItemOutcome::Cancelled => (ItemStatus::Cancelled, None, None, None, 0),
        // A rate limit of the provider is not the item's fault and uses up no attempt.
        ItemOutcome::Later { at, why, counts } => {
            let attempts = i64::from(*counts);
            (ItemStatus::Pending, Some(why), None, Some(at), attempts)
        }
    };

    // A worker that was too slow has an old epoch: it changes no row and gets a conflict.
    sqlx::query(
        "update bulk_item set status = $4, error = $5, sent_at = $6,
             run_at = coalesce($7, run_at), attempts = attempts + $8
         where bucket = $1 and item_id = $2 and lease_epoch = $3 and status = 'running'",
    )
    .bind_key(&item.org, item.id.as_str())
    .bind(item.lease_epoch)
    .bind(status.as_str())
    .bind(error.map(String::as_str))
    .bind(sent_at)
    .bind(run_at.map(|at| at.to_string()))
    .bind(attempts)
    .run_guarded(tx)
    .await
}

/// Moves all items of a batch from one status to another; returns their number.
pub async fn move_items(
    tx: &mut WriteTransaction,
    batch: &Batch,
    from: ItemStatus,
    to: ItemStatus,
    error: Option<&str>,
    now: Timestamp,
) -> Result<u64, StoreError> {
    // Items in progress have another status and stay: the worker with the
    // lease settles them. A moved item starts with all its attempts again.
    let moved = sqlx::query(
        "update bulk_item set status = $4, error = $5, run_at = $6, attempts = 0
         where bucket = $1 and batch_id = $2 and status = $3",
    )
    .bind_key(&batch.org, batch.id.as_str())
    .bind(from.as_str())
    .bind(to.as_str())
    .bind(error)
    .bind(now.to_string())
    .execute(&mut **tx)
    .await?;

    Ok(moved.rows_affected())
}

/// Returns when the next unfinished item of a batch is due; none if all are finished.
pub async fn next_due(
    connection: &mut SqlConnection,
    batch: &Batch,
) -> Result<Option<Timestamp>, StoreError> {
    // `item_id` is read only to name a row in an error.
    let row = sqlx::query(
        "select min(run_at) as run_at, min(item_id) as item_id from bulk_item
         where bucket = $1 and batch_id = $2 and status in ('pending', 'running')",
    )
    .bind_key(&batch.org, batch.id.as_str())
    .fetch_one(connection)
    .await?;

    RowColumns::of(&row, "bulk_item", "item_id").optional_time("run_at")
}

/// Returns up to `limit` envelopes of cancelled items that were never sent.
pub async fn abandoned(
    connection: &mut SqlConnection,
    org: &OrgId,
    batch: &BatchId,
    limit: i64,
) -> Result<Vec<EnvelopeId>, StoreError> {
    // A voided envelope has another status, so a repeated job finds only the rest.
    let rows = sqlx::query(
        "select envelope.envelope_id from bulk_item
         join envelope on envelope.bucket = bulk_item.bucket
             and envelope.envelope_id = bulk_item.envelope_id
         where bulk_item.bucket = $1 and bulk_item.batch_id = $2
             and bulk_item.status = 'cancelled' and envelope.status = 'preparing'
         limit $3",
    )
    .bind_key(org, batch.as_str())
    .bind(limit)
    .fetch_all(connection)
    .await?;

    rows.iter()
        .map(|row| {
            let columns = RowColumns::of(row, "envelope", "envelope_id");
            columns.parsed("envelope_id", EnvelopeId::parse)
        })
        .collect()
}

/// Expires all leases at startup of the database's only
/// node (SQLite): their holders ended with the earlier run.
pub async fn forget_leases(store: &Store, now: Timestamp) -> Result<(), StoreError> {
    let statement = sqlx::query(
        "update bulk_item set run_at = $1, lease_epoch = lease_epoch + 1
         where status = 'running' and run_at > $1 and (bucket, batch_id) in (
             select bucket, batch_id from bulk_batch where status in ('running', 'cancelled'))",
    );
    store.end_earlier_run(statement.bind(now.to_string())).await
}

table_row! {
    Batch of "bulk_batch" by "batch_id" also "terms_accepted_at", "terms_accepted_by" {
        id: parsed("batch_id", BatchId::parse),
        org: parsed("org_id", OrgId::parse),
        name: text("name"),
        source: parsed("document_source", DocumentSource::parse),
        source_template: optional_parsed("source_template_id", TemplateId::parse),
        source_package: optional_parsed("source_package_id", PackageId::parse),
        kba_required: flag("kba_required"),
        preserve_signing_order: flag("preserve_signing_order"),
        add_me_as_signer: flag("add_me_as_signer"),
        auto_vault_enabled: flag("auto_vault_enabled"),
        // The caller wrote both columns at once: a time without a name is an inconsistent row.
        terms: |row| match row.optional_time("terms_accepted_at")? {
            None => None,
            Some(accepted_at) => Some(VaultTerms {
                accepted_at,
                accepted_by: row.text("terms_accepted_by")?,
            }),
        },
        tags: json("tag_ids"),
        master: optional_parsed("master_template_id", TemplateId::parse),
        provider_instance: optional_text("provider_instance"),
        submitted: optional_json("submitted_master"),
        status: parsed("status", BatchStatus::parse),
        runs: number("runs"),
        created_by: text("created_by"),
        created_at: time("created_at"),
        updated_at: time("updated_at"),
    }
}

table_row! {
    BatchItem of "bulk_item" by "item_id" {
        id: parsed("item_id", ItemId::parse),
        org: parsed("org_id", OrgId::parse),
        batch: parsed("batch_id", BatchId::parse),
        position: number("position"),
        customer: parsed("customer_id", CustomerId::parse),
        customer_name: text("customer_name"),
        email: optional_text("email"),
        status: parsed("status", ItemStatus::parse),
        envelope: optional_parsed("envelope_id", EnvelopeId::parse),
        error: optional_text("error"),
        sent_at: optional_time("sent_at"),
        attempts: number("attempts"),
        lease_epoch: number("lease_epoch"),
    }
}
