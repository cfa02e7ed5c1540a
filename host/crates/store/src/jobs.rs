//! Jobs: work committed with the change that requires it.
//!
//! The cycle is claim, do, settle. A claim leases the job by moving `run_at` to the end of the
//! lease and raising `lease_epoch`. Settling names the epoch as a fencing token, so that a worker
//! with an expired lease cannot settle the job.

use std::time::Duration;

use crate::SqlConnection;
use sqlx::{AssertSqlSafe, Row as _};

use super::claims::RowClaim;
use super::row::{json_text, table_row};
use super::statement::RunStatement as _;
use super::{Store, StoreError, WriteTransaction};
use holdfast_base::traces;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::{JobId, OrgId};
use holdfast_domain::job::{JobPayload, JobQueue, KINDS};

/// Duration of a lease. A worker renews it while it works on the job.
pub const LEASE: Duration = Duration::from_secs(15);

/// Job leased by a worker.
#[derive(Clone, Debug)]
pub struct ClaimedJob {
    pub id: JobId,
    pub org: OrgId,
    pub kind: String,
    pub payload: serde_json::Value,
    /// Number of failed attempts; a worker's death is not one.
    pub attempts: i64,
    /// W3C `traceparent` of the request that added the job.
    pub trace: Option<String>,
    lease_epoch: i64,
}

/// Adds a job. With a `dedup_key`, nothing is added if
/// an unfinished job of the same kind and key exists.
pub async fn insert<J: JobPayload>(
    tx: &mut WriteTransaction,
    org: &OrgId,
    job: &J,
    dedup_key: Option<&str>,
    run_at: Timestamp,
) -> Result<(), StoreError> {
    add(tx, org, job, dedup_key, run_at, "do nothing").await
}

/// Adds a job. `otherwise` is the SQL action on an existing one of the same kind and key.
async fn add<J: JobPayload>(
    tx: &mut WriteTransaction,
    org: &OrgId,
    job: &J,
    dedup_key: Option<&str>,
    run_at: Timestamp,
    otherwise: &str,
) -> Result<(), StoreError> {
    // `otherwise` is one of two constants of this file, never input.
    let text = format!(
        "insert into job (bucket, job_id, org_id, kind, dedup_key, payload, state, run_at, attempts,
             lease_epoch, created_at, trace)
         values ($1, $2, $3, $4, $5, $6, 'waiting', $7, 0, 0, $7, $8)
         on conflict (bucket, kind, dedup_key) {otherwise}"
    );
    sqlx::query(AssertSqlSafe(text))
        .bind(org.bucket())
        .bind(JobId::new().as_str())
        .bind(org.as_str())
        .bind(J::NAME)
        .bind(dedup_key)
        .bind(json_text(job))
        .bind(run_at.to_string())
        // The worker continues the trace of the request, hours later if need be.
        .bind(traces::current())
        .execute(&mut **tx)
        .await?;

    // Wakes the local workers when the transaction commits.
    tx.added_jobs = true;
    Ok(())
}

/// Like [`insert`], but also revives a failed job of the same kind and key, and runs one that waits
/// for a retry at once.
pub async fn insert_or_revive<J: JobPayload>(
    tx: &mut WriteTransaction,
    org: &OrgId,
    job: &J,
    dedup_key: &str,
    run_at: Timestamp,
) -> Result<(), StoreError> {
    let revive = "do update set state = 'waiting', run_at = excluded.run_at, attempts = 0
         where job.state = 'failed' or (job.attempts > 0 and job.run_at > excluded.run_at)";
    add(tx, org, job, Some(dedup_key), run_at, revive).await
}

/// Removes a job after its work was done elsewhere.
pub async fn remove<J: JobPayload>(
    tx: &mut WriteTransaction,
    org: &OrgId,
    dedup_key: &str,
) -> Result<(), StoreError> {
    sqlx::query("delete from job where bucket = $1 and kind = $2 and dedup_key = $3")
        .bind(org.bucket())
        .bind(J::NAME)
        .bind(dedup_key)
        .run(tx)
        .await
}

/// Result of renewing a job's lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseRenewal {
    /// The lease was extended.
    Renewed,
    /// Another worker has leased the job.
    TakenOver,
    /// The job was removed: its work has been done, by this worker or another.
    Over,
}

/// Extends the lease of a job in progress.
pub async fn renew(
    store: &Store,
    job: &ClaimedJob,
    until: Timestamp,
) -> Result<LeaseRenewal, StoreError> {
    // Urgent, because the lease keeps running while this waits.
    let mut tx = store.begin_urgently().await?;
    let is_renewed = sqlx::query(
        "update job set run_at = $4 where bucket = $1 and job_id = $2 and lease_epoch = $3",
    )
    .bind_key(&job.org, job.id.as_str())
    .bind(job.lease_epoch)
    .bind(until.to_string())
    .changes_row(&mut tx)
    .await?;

    // The row is gone if the job is finished, and stays if another worker took it over.
    let left = sqlx::query("select job_id from job where bucket = $1 and job_id = $2")
        .bind_key(&job.org, job.id.as_str());
    let lease = if is_renewed {
        LeaseRenewal::Renewed
    } else if left.finds_row(&mut tx).await? {
        LeaseRenewal::TakenOver
    } else {
        LeaseRenewal::Over
    };

    tx.commit().await?;
    Ok(lease)
}

/// Returns the condition for waiting jobs of a queue. [`JobQueue::Other`] includes kinds that only
/// later releases know.
fn waiting_in(queue: JobQueue) -> String {
    let named = |wanted: fn(JobQueue, JobQueue) -> bool| {
        let kinds = KINDS.iter().filter(|kind| wanted(kind.queue, queue));
        let quoted: Vec<_> = kinds.map(|kind| format!("'{}'", kind.name)).collect();
        quoted.join(", ")
    };
    match queue {
        JobQueue::Mail | JobQueue::Message | JobQueue::Bulk => {
            let kinds = named(|of, queue| of == queue);
            format!("state = 'waiting' and kind in ({kinds})")
        }
        JobQueue::Other => {
            // Excluding the known kinds of other queues leaves unknown kinds in.
            let others = named(|of, queue| of != queue);
            format!("state = 'waiting' and kind not in ({others})")
        }
    }
}

/// Leases up to `limit` due jobs of a queue until `now` + `lease`.
pub async fn claim(
    store: &Store,
    queue: JobQueue,
    now: Timestamp,
    lease: Duration,
    limit: i64,
) -> Result<Vec<ClaimedJob>, StoreError> {
    let due = RowClaim {
        table: "job",
        id: "job_id",
        since: "run_at",
        condition: &waiting_in(queue),
        set: "run_at = $3, lease_epoch = lease_epoch + 1",
        texts: &[(now + lease).to_string()],
    };

    let mut jobs: Vec<ClaimedJob> = due.take(store, now, limit).await?;

    // Ids sort by age, so that the oldest jobs run first.
    jobs.sort_by(|left, right| left.id.cmp(&right.id));
    Ok(jobs)
}

/// Number of jobs by state.
#[derive(Clone, Copy, Debug)]
pub struct JobCounts {
    pub waiting: i64,
    /// Jobs that failed for good.
    pub failed: i64,
    /// Due time of the oldest unleased job, if any is due.
    pub due_since: Option<Timestamp>,
}

/// Counts the jobs of all organizations.
pub async fn counts(
    connection: &mut SqlConnection,
    now: Timestamp,
) -> Result<JobCounts, StoreError> {
    let row = sqlx::query(
        "select count(case when state = 'waiting' then 1 end) as waiting,
             count(case when state = 'failed' then 1 end) as failed,
             min(case when state = 'waiting' and run_at <= $1 then run_at end) as due_since
         from job",
    )
    .bind(now.to_string())
    .fetch_one(connection)
    .await?;

    Ok(JobCounts {
        waiting: row.try_get("waiting")?,
        failed: row.try_get("failed")?,
        due_since: row
            .try_get::<Option<String>, _>("due_since")?
            .and_then(|at| Timestamp::parse(&at)),
    })
}

/// Expires all leases at startup of the database's only
/// node (SQLite): their holders ended with the earlier run.
pub async fn forget_leases(store: &Store, now: Timestamp) -> Result<(), StoreError> {
    // A job with an error waits for its next attempt and not for a lease: its back-off stays.
    let statement = sqlx::query(
        "update job set run_at = $1, lease_epoch = lease_epoch + 1
         where state = 'waiting' and lease_epoch > 0 and last_error is null and run_at > $1",
    );
    store.end_earlier_run(statement.bind(now.to_string())).await
}

/// Reschedules a job that has done a part of its work for `at`.
pub async fn put_back(store: &Store, job: &ClaimedJob, at: Timestamp) -> Result<(), StoreError> {
    let mut tx = store.begin().await?;
    sqlx::query(
        "update job set run_at = $4, attempts = 0, last_error = null
         where bucket = $1 and job_id = $2 and lease_epoch = $3",
    )
    .bind_key(&job.org, job.id.as_str())
    .bind(job.lease_epoch)
    .bind(at.to_string())
    .execute(&mut *tx)
    .await?;

    // The job may be due at once.
    tx.added_jobs = true;
    tx.commit().await
}

/// Removes a finished job.
pub async fn finish(store: &Store, job: &ClaimedJob) -> Result<(), StoreError> {
    let mut tx = store.begin().await?;
    // Without the epoch, a worker that was too slow would delete the job of its successor.
    sqlx::query("delete from job where bucket = $1 and job_id = $2 and lease_epoch = $3")
        .bind_key(&job.org, job.id.as_str())
        .bind(job.lease_epoch)
        .execute(&mut *tx)
        .await?;
    tx.commit().await
}

/// Schedules a failed job's next attempt, or marks it as failed for good.
pub async fn settle_failure(
    store: &Store,
    job: &ClaimedJob,
    error: &str,
    retry_at: Option<Timestamp>,
) -> Result<(), StoreError> {
    let mut tx = store.begin().await?;
    sqlx::query(
        "update job set state = $4, run_at = $5, last_error = $6, attempts = attempts + 1
         where bucket = $1 and job_id = $2 and lease_epoch = $3",
    )
    .bind_key(&job.org, job.id.as_str())
    .bind(job.lease_epoch)
    .bind(if retry_at.is_some() {
        "waiting"
    } else {
        "failed"
    })
    // The column is not null, and a job that failed for good is never due.
    .bind(retry_at.unwrap_or(Timestamp::from_millis(0)).to_string())
    .bind(error)
    .execute(&mut *tx)
    .await?;

    tx.commit().await
}

table_row! {
    ClaimedJob of "job" by "job_id" {
        id: parsed("job_id", JobId::parse),
        org: parsed("org_id", OrgId::parse),
        kind: text("kind"),
        payload: json("payload"),
        attempts: number("attempts"),
        trace: optional_text("trace"),
        lease_epoch: number("lease_epoch"),
    }
}
