//! Webhook endpoints and the leases of the nodes that deliver to them.

use std::collections::{BTreeMap, BTreeSet};

use crate::SqlConnection;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Row as _};

use super::row::{RowColumns, TableRow, json_text, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{SqlDialect, Store, StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::{EndpointId, KeyId, OrgId};
use holdfast_domain::webhook::{
    DisableReason, EncryptedSecret, Endpoint, EndpointHealth, PreviousSecret,
};

/// Endpoint with its organization, for work across all organizations.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnedEndpoint {
    pub org: OrgId,
    pub endpoint: EndpointId,
}

table_row! {
    OwnedEndpoint of "webhook_endpoint" by "endpoint_id" {
        org: parsed("org_id", OrgId::parse),
        endpoint: parsed("endpoint_id", EndpointId::parse),
    }
}

impl OwnedEndpoint {
    pub fn of(endpoint: &Endpoint) -> Self {
        Self {
            org: endpoint.org.clone(),
            endpoint: endpoint.id.clone(),
        }
    }
}

pub async fn insert(tx: &mut WriteTransaction, endpoint: &Endpoint) -> Result<(), StoreError> {
    // No node has a lease yet: the first one that finds a delivery takes it.
    sqlx::query(
        "insert into webhook_endpoint (bucket, endpoint_id, org_id, url, description, events,
             is_active, partner_key_id, legacy, secret, created_by, created_at, updated_at, lease_epoch)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12, 0)",
    )
    .bind_key(&endpoint.org, endpoint.id.as_str())
    .bind(endpoint.org.as_str())
    .bind(&endpoint.url)
    .bind(endpoint.description.as_deref())
    .bind(json_text(&endpoint.selectors))
    .bind(i64::from(endpoint.is_active))
    .bind(endpoint.key.as_ref().map(KeyId::as_str))
    .bind(i64::from(endpoint.legacy))
    .bind(endpoint.secret.as_ref().map(EncryptedSecret::as_str))
    .bind(&endpoint.created_by)
    .bind(endpoint.created_at.to_string())
    .run(tx)
    .await
}

/// Returns an endpoint unless it was deleted.
pub async fn get(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &EndpointId,
) -> Result<Option<Endpoint>, StoreError> {
    find(connection, org, id, "").await
}

/// Like [`get`], with the row locked until the transaction ends.
pub async fn lock(
    tx: &mut WriteTransaction,
    org: &OrgId,
    id: &EndpointId,
) -> Result<Option<Endpoint>, StoreError> {
    let lock = tx.dialect.for_update();
    find(tx, org, id, lock).await
}

async fn find(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &EndpointId,
    lock: &str,
) -> Result<Option<Endpoint>, StoreError> {
    let text = format!(
        "select {{columns}} from webhook_endpoint
         where bucket = $1 and org_id = $2 and endpoint_id = $3 and deleted_at is null {lock}"
    );
    query_rows(AssertSqlSafe(text))
        .bind_org(org)
        .bind(id.as_str())
        .fetch_optional(connection)
        .await
}

/// Returns whether the endpoint exists or existed before its deletion.
pub async fn was_there(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &EndpointId,
) -> Result<bool, StoreError> {
    // The log of deliveries stays readable after the deletion.
    sqlx::query(
        "select endpoint_id from webhook_endpoint
         where bucket = $1 and org_id = $2 and endpoint_id = $3",
    )
    .bind_org(org)
    .bind(id.as_str())
    .finds_row(connection)
    .await
}

/// Returns the endpoints that were not deleted, oldest first, optionally of one API key only.
pub async fn list(
    connection: &mut SqlConnection,
    org: &OrgId,
    key: Option<&KeyId>,
) -> Result<Vec<Endpoint>, StoreError> {
    query_rows(
        "select {columns} from webhook_endpoint
         where bucket = $1 and org_id = $2 and deleted_at is null
             and ($3 = '' or partner_key_id = $3)
         order by endpoint_id",
    )
    .bind_org(org)
    .bind(key.map_or("", KeyId::as_str))
    .fetch_all(connection)
    .await
}

/// Writes the mutable columns of an endpoint. The caller must hold its row lock.
pub async fn update(tx: &mut WriteTransaction, endpoint: &Endpoint) -> Result<(), StoreError> {
    let (reason, disabled_at) = endpoint.health.disabled.unzip();
    // Disabling ends the lease: an endpoint that is enabled again is free for any node at once.
    sqlx::query(
        "update webhook_endpoint set url = $3, description = $4, events = $5, is_active = $6,
             secret = $7, previous_secret = $8, grace_expires_at = $9, updated_at = $10,
             failing_since = $11, warned_at = $12, paused_until = $13, disabled_reason = $14,
             disabled_at = $15,
             holder = case when $6 = 1 then holder end,
             lease_until = case when $6 = 1 then lease_until end
         where bucket = $1 and endpoint_id = $2",
    )
    .bind_key(&endpoint.org, endpoint.id.as_str())
    .bind(&endpoint.url)
    .bind(endpoint.description.as_deref())
    .bind(json_text(&endpoint.selectors))
    .bind(i64::from(endpoint.is_active))
    .bind(endpoint.secret.as_ref().map(EncryptedSecret::as_str))
    .bind(endpoint.previous.as_ref().map(|old| old.secret.as_str()))
    .bind(endpoint.previous.as_ref().map(|old| old.until.to_string()))
    .bind(endpoint.updated_at.to_string())
    .bind(endpoint.health.failing_since.map(|at| at.to_string()))
    .bind(endpoint.health.warned_at.map(|at| at.to_string()))
    .bind(endpoint.health.paused_until.map(|at| at.to_string()))
    .bind(reason.map(DisableReason::as_str))
    .bind(disabled_at.map(|at| at.to_string()))
    .execute(&mut **tx)
    .await?;

    // The dispatcher that holds the endpoint must drop its cached settings.
    tx.touch(OwnedEndpoint::of(endpoint), true);
    Ok(())
}

/// Soft-deletes an endpoint; its deliveries stay.
pub async fn delete(
    tx: &mut WriteTransaction,
    endpoint: &Endpoint,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "update webhook_endpoint set deleted_at = $3, updated_at = $3, is_active = 0,
             holder = null, lease_until = null
         where bucket = $1 and endpoint_id = $2",
    )
    .bind_key(&endpoint.org, endpoint.id.as_str())
    .bind(now.to_string())
    .execute(&mut **tx)
    .await?;

    tx.touch(OwnedEndpoint::of(endpoint), true);
    Ok(())
}

/// Endpoint leased by this node.
#[derive(Clone, Debug)]
pub struct EndpointLease {
    pub endpoint: Endpoint,
    /// Fencing token: settling names it, so that a node with an expired lease cannot settle.
    pub epoch: i64,
}

/// Returns up to `limit` unleased endpoints with due deliveries, the longest-waiting first.
pub async fn with_work(
    connection: &mut SqlConnection,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<OwnedEndpoint>, StoreError> {
    // A plain read: `take` decides which node gets an endpoint.
    query_rows(
        "select {columns} from webhook_endpoint e
         where e.is_active = 1 and (e.lease_until is null or e.lease_until <= $1)
             and (e.paused_until is null or e.paused_until <= $1)
             and exists (
                 select 1 from webhook_delivery d
                 where d.bucket = e.bucket and d.endpoint_id = e.endpoint_id
                     and d.status = 'pending' and d.due_at <= $1
             )
         order by coalesce(e.lease_until, ''), e.endpoint_id limit $2",
    )
    .bind(now.to_string())
    .bind(limit)
    .fetch_all(connection)
    .await
}

/// Leases an endpoint to `holder` until `until`. Returns
/// none if it is inactive or leased by another node.
pub async fn take(
    store: &Store,
    wanted: &OwnedEndpoint,
    holder: &str,
    now: Timestamp,
    until: Timestamp,
) -> Result<Option<EndpointLease>, StoreError> {
    // Apart from requests: a burst of them must not delay deliveries.
    let mut tx = store.begin_apart().await?;
    let rows = query_rows::<EndpointLease>(
        "update webhook_endpoint set holder = $3, lease_until = $5, lease_epoch = lease_epoch + 1
         where bucket = $1 and endpoint_id = $2 and is_active = 1
             and (lease_until is null or lease_until <= $4)
         returning {columns}",
    )
    .bind_key(&wanted.org, wanted.endpoint.as_str())
    .bind(holder)
    .bind(now.to_string())
    .bind(until.to_string())
    .fetch_rows(&mut tx)
    .await?;

    // Also the lease of an endpoint that cannot be read.
    tx.commit().await?;
    rows.first().map(EndpointLease::of_row).transpose()
}

/// Extends all leases of `holder` to `until`, and
/// returns the endpoints with their current settings.
pub async fn renew(
    store: &Store,
    holder: &str,
    now: Timestamp,
    until: Timestamp,
) -> Result<Vec<EndpointLease>, StoreError> {
    // Urgent, because the leases keep running while this waits.
    let mut tx = store.begin_urgently().await?;
    let buckets: Vec<i64> = sqlx::query_scalar(
        "select bucket from webhook_endpoint where holder = $1 group by bucket order by bucket",
    )
    .bind(holder)
    .fetch_all(&mut *tx)
    .await?;

    // Rows are locked in key order everywhere, which prevents deadlocks.
    let text = format!(
        "with held as materialized (
             select endpoint_id from webhook_endpoint
             where bucket = $4 and holder = $1 and lease_until > $2 and is_active = 1
             order by endpoint_id {}
         )
         update webhook_endpoint set lease_until = $3
         where bucket = $4 and endpoint_id in (select endpoint_id from held)
         returning {{columns}}",
        store.dialect().for_update()
    );

    let mut rows = Vec::new();
    for bucket in buckets {
        let of_bucket = query_rows::<EndpointLease>(AssertSqlSafe(text.clone()))
            .bind(holder)
            .bind(now.to_string())
            .bind(until.to_string())
            .bind(bucket)
            .fetch_rows(&mut tx)
            .await?;
        rows.extend(of_bucket);
    }

    tx.commit().await?;

    // An unreadable endpoint must not cost the others their lease.
    let readable = |row| match EndpointLease::of_row(row) {
        Ok(held) => Some(held),
        Err(error) => {
            tracing::error!(%error, "webhook endpoint cannot be read, its lease is not used");
            None
        }
    };

    Ok(rows.iter().filter_map(readable).collect())
}

/// Releases the lease of an endpoint, so that another node can take it.
pub async fn release(store: &Store, held: &OwnedEndpoint, epoch: i64) -> Result<(), StoreError> {
    let mut tx = store.begin_apart().await?;
    // With the epoch, because another node may hold the endpoint by now.
    sqlx::query(
        "update webhook_endpoint set holder = null, lease_until = null
         where bucket = $1 and endpoint_id = $2 and lease_epoch = $3",
    )
    .bind_key(&held.org, held.endpoint.as_str())
    .bind(epoch)
    .execute(&mut *tx)
    .await?;

    tx.commit().await
}

/// Releases the leases of all holders with a name that matches the pattern `like`.
pub async fn release_all(store: &Store, like: &str) -> Result<(), StoreError> {
    let mut tx = store.begin_apart().await?;
    // The runs of a node share the beginning of their names, so a restart finds the leases of the run before.
    sqlx::query(
        "update webhook_endpoint set holder = null, lease_until = null where holder like $1",
    )
    .bind(like)
    .execute(&mut *tx)
    .await?;
    tx.commit().await
}

/// Locks endpoints in key order until the transaction ends.
pub async fn lock_all(
    tx: &mut WriteTransaction,
    endpoints: &BTreeSet<OwnedEndpoint>,
) -> Result<(), StoreError> {
    // SQLite has one writer, so there is nothing to lock.
    if tx.dialect == SqlDialect::Sqlite {
        return Ok(());
    }

    let mut by_bucket: BTreeMap<i64, Vec<Value>> = BTreeMap::new();
    for one in endpoints {
        let of_bucket = by_bucket.entry(one.org.bucket()).or_default();
        of_bucket.push(json!({ "endpoint": one.endpoint }));
    }

    // In the order of `renew` and `settle`, because nodes that lock in different orders
    // wait for each other. The limit gives the planner a bound for the JSON array.
    for (bucket, wanted) in by_bucket {
        let text = format!(
            "select endpoint_id from webhook_endpoint where bucket = $2 and endpoint_id in (
                 select value ->> 'endpoint' from {} limit {}
             )
             order by endpoint_id {}",
            tx.dialect.json_rows(),
            wanted.len().next_power_of_two(),
            tx.dialect.for_update()
        );

        sqlx::query(AssertSqlSafe(text))
            .bind(Value::from(wanted).to_string())
            .bind(bucket)
            .fetch_all(&mut **tx)
            .await?;
    }

    Ok(())
}

/// Records the health of the receiver at `url`, unless the endpoint was taken over, moved to
/// another URL, or disabled in the meantime.
pub async fn note_health(
    tx: &mut WriteTransaction,
    noted: &OwnedEndpoint,
    epoch: i64,
    url: &str,
    health: &EndpointHealth,
) -> Result<(), StoreError> {
    // Failures at the URL before must not pause the receiver at the new one.
    sqlx::query(
        "update webhook_endpoint set failing_since = $4, warned_at = $5, paused_until = $6
         where bucket = $1 and endpoint_id = $2 and lease_epoch = $3 and url = $7
             and is_active = 1",
    )
    .bind_key(&noted.org, noted.endpoint.as_str())
    .bind(epoch)
    .bind(health.failing_since.map(|at| at.to_string()))
    .bind(health.warned_at.map(|at| at.to_string()))
    .bind(health.paused_until.map(|at| at.to_string()))
    .bind(url)
    .run(tx)
    .await
}

/// Figures for the metrics.
#[derive(Clone, Copy, Debug)]
pub struct EndpointCounts {
    /// Endpoints with an open circuit breaker.
    pub paused: i64,
    /// Endpoints disabled by this service.
    pub disabled: i64,
}

/// Counts the endpoints of all organizations.
pub async fn counts(connection: &mut SqlConnection) -> Result<EndpointCounts, StoreError> {
    let row = sqlx::query(
        "select count(paused_until) as paused, count(disabled_reason) as disabled
         from webhook_endpoint where deleted_at is null",
    )
    .fetch_one(connection)
    .await?;

    Ok(EndpointCounts {
        paused: row.try_get("paused")?,
        disabled: row.try_get("disabled")?,
    })
}

impl TableRow for EndpointLease {
    const TABLE: &'static str = Endpoint::TABLE;
    const ID: &'static str = Endpoint::ID;
    const COLUMNS: &'static str = Endpoint::COLUMNS;

    fn read(row: &RowColumns<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            endpoint: Endpoint::read(row)?,
            epoch: row.number("lease_epoch")?,
        })
    }
}

table_row! {
    Endpoint of "webhook_endpoint" by "endpoint_id"
        also "lease_epoch", "secret", "previous_secret", "grace_expires_at", "failing_since", "warned_at",
            "paused_until", "disabled_reason", "disabled_at"
    {
        id: parsed("endpoint_id", EndpointId::parse),
        org: parsed("org_id", OrgId::parse),
        url: text("url"),
        description: optional_text("description"),
        selectors: json("events"),
        is_active: flag("is_active"),
        key: optional_parsed("partner_key_id", KeyId::parse),
        legacy: flag("legacy"),
        secret: |row| row.optional_text("secret")?.map(EncryptedSecret::kept),
        // A previous secret counts only with the end of its grace period.
        previous: |row| {
            let secret = row.optional_text("previous_secret")?.map(EncryptedSecret::kept);
            let previous = secret.zip(row.optional_time("grace_expires_at")?);
            previous.map(|(secret, until)| PreviousSecret { secret, until })
        },
        created_by: text("created_by"),
        created_at: time("created_at"),
        updated_at: time("updated_at"),
        health: |row| EndpointHealth {
            failing_since: row.optional_time("failing_since")?,
            warned_at: row.optional_time("warned_at")?,
            paused_until: row.optional_time("paused_until")?,
            disabled: row
                .optional_parsed("disabled_reason", DisableReason::parse)?
                .zip(row.optional_time("disabled_at")?),
        },
    }
}
