//! What the operator sees of the whole installation.

use crate::SqlConnection;
use sqlx::Row as _;

use super::StoreError;
use super::row::{RowColumns, query_rows, table_row};
use super::statement::RunStatement as _;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::OrgId;

/// Begin of the names of chores that nodes keep while they run.
pub const NODE: &str = "node ";
/// Begin of the names of chore rows that say when a monitor last asked for a proof.
pub const MONITOR: &str = "monitor ";
/// Name of the chore row with the time of the last backup.
pub const LAST_BACKUP: &str = "last backup";
/// Start of the names of chore rows with the times of backups, until the operator reports that they are deleted.
pub const BACKUP_OF: &str = "copy of ";

/// An organization with its numbers.
pub struct OrganizationSize {
    pub org: OrgId,
    pub name: String,
    pub created_at: Timestamp,
    pub envelopes: i64,
    pub users: i64,
}

/// Returns all organizations, the largest first.
pub async fn organizations(
    connection: &mut SqlConnection,
    limit: i64,
) -> Result<Vec<OrganizationSize>, StoreError> {
    // Kept numbers, because counting would read all envelopes. Test
    // data has ids of its own and would list each organization twice.
    query_rows(
        "select o.org_id, o.name, o.created_at,
             (select cast(coalesce(sum(c.envelopes), 0) as bigint) from envelope_count c
              where c.bucket = o.bucket and c.org_id = o.org_id) as envelopes,
             (select count(*) from org_user u
              where u.bucket = o.bucket and u.org_id = o.org_id and u.status <> 'ended') as users
         from organization o where o.org_id not like 'org_test_%' order by envelopes desc, o.org_id limit $1",
    )
    .bind(limit)
    .fetch_all(connection)
    .await
}

table_row! {
    OrganizationSize of "organization" by "org_id" {
        org: parsed("org_id", OrgId::parse),
        name: text("name"),
        created_at: time("created_at"),
        envelopes: number("envelopes"),
        users: number("users"),
    }
}

/// A bucket with the number of its organizations.
pub struct BucketSize {
    pub bucket: i64,
    pub organizations: i64,
}

/// Returns the buckets that have organizations.
pub async fn buckets(connection: &mut SqlConnection) -> Result<Vec<BucketSize>, StoreError> {
    query_rows(
        "select bucket, count(*) as organizations from organization where org_id not like 'org_test_%' group by bucket order by bucket",
    )
    .fetch_all(connection)
    .await
}

table_row! {
    BucketSize of "organization" by "bucket" {
        bucket: number("bucket"),
        organizations: number("organizations"),
    }
}

/// A job that failed, or is tried again and again.
pub struct FailingJob {
    pub job: String,
    pub org: OrgId,
    pub kind: String,
    pub attempts: i64,
    pub run_at: Timestamp,
    pub error: Option<String>,
}

/// Returns jobs that failed at their last attempt, those with most attempts first.
pub async fn failing_jobs(
    connection: &mut SqlConnection,
    limit: i64,
) -> Result<Vec<FailingJob>, StoreError> {
    // A job that waits for its next attempt is listed, too: operators can act before it gives up.
    query_rows(
        "select {columns} from job
         where state = 'failed' or (state = 'waiting' and last_error is not null)
         order by attempts desc, job_id limit $1",
    )
    .bind(limit)
    .fetch_all(connection)
    .await
}

table_row! {
    FailingJob of "job" by "job_id" {
        job: text("job_id"),
        org: parsed("org_id", OrgId::parse),
        kind: text("kind"),
        attempts: number("attempts"),
        run_at: time("run_at"),
        error: optional_text("last_error"),
    }
}

/// Returns the chore rows with a name that begins with `kind`: the rest of the name, and the time.
pub async fn signs(
    connection: &mut SqlConnection,
    kind: &str,
) -> Result<Vec<(String, Timestamp)>, StoreError> {
    // The prefixes are constants of this module without wildcards of `like`.
    let rows = sqlx::query("select name, due_at from chore where name like $1 order by name")
        .bind(format!("{kind}%"))
        .fetch_all(connection)
        .await?;
    let signs = rows.iter().map(|row| {
        let columns = RowColumns::of(row, "chore", "name");
        let name = columns.text("name")?;
        let name = name.strip_prefix(kind).unwrap_or_default().to_owned();
        Ok((name, columns.time("due_at")?))
    });

    signs.collect()
}

/// Returns how many envelopes of an organization were created, and how many stored in the vault, within a time.
pub async fn envelopes_of(
    connection: &mut SqlConnection,
    org: &OrgId,
    from: Timestamp,
    to: Timestamp,
) -> Result<(i64, i64), StoreError> {
    // A vaulting counts when its intent was finished; the envelope's own time changes with later acts.
    let row = sqlx::query(
        "select
             (select count(*) from envelope where bucket = $1 and org_id = $2
                 and created_at >= $3 and created_at < $4) as created,
             (select count(*) from vault_intent where bucket = $1 and org_id = $2
                 and finished_at >= $3 and finished_at < $4) as vaulted",
    )
    .bind_org(org)
    .bind(from.to_string())
    .bind(to.to_string())
    .fetch_one(connection)
    .await?;

    Ok((row.try_get("created")?, row.try_get("vaulted")?))
}
