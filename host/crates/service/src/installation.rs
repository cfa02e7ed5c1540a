//! The installation as its operator sees it, and the usage of organizations.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::vault::integrity;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::OrgId;
use holdfast_domain::identity::KbaStatus;
use holdfast_domain::organization::{Permission, Role};
use holdfast_platform::{Core, ServiceError};
use holdfast_store::{chores, deliveries, installation as rows, jobs, kba, log, webhooks};

/// Organizations and failing jobs that are shown.
const ORGANIZATIONS: i64 = 200;
const JOBS: i64 = 50;

/// Whether users with this role of an organization are operators.
pub fn is_operator(core: &Core, org: &OrgId, role: Role) -> bool {
    let operates = core.config.console.operator_org.as_ref() == Some(org);
    operates && role.may(Permission::Administer)
}

/// Notes that a node is running.
pub async fn note_node(core: &Core, node: &str) -> Result<(), ServiceError> {
    // A chore's row serves as the sign of life, because its time only moves forward.
    let name = format!("{}{node}", rows::NODE);
    Ok(chores::hold(&core.store, &name, core.clock.now()).await?)
}

/// Interval at which a monitor's questions are noted.
const NOTED_EVERY: Duration = Duration::from_secs(600);
/// Monitors that are remembered, and for how long.
const MONITORS: usize = 50;
const REMEMBERED: Duration = Duration::from_secs(30 * 86_400);

/// Notes that someone at an address checked that the log only grows. Anyone may: the oldest are forgotten.
pub async fn note_monitor(core: &Core, address: &str) -> Result<(), ServiceError> {
    let now = core.clock.now();
    let name = format!("{}{address}", rows::MONITOR);
    // Anyone can ask. Within ten minutes a repeat costs one read and no write.
    let known = chores::due(&core.store, &name).await?;
    if known.is_some_and(|at| at > now - NOTED_EVERY) {
        return Ok(());
    }

    chores::hold(&core.store, &name, now).await?;
    // Only a new address can exceed the number.
    if known.is_none() {
        let mut seen = signs(core, rows::MONITOR).await?;
        seen.sort_by_key(|(_, at)| std::cmp::Reverse(*at));
        for (place, (address, at)) in seen.into_iter().enumerate() {
            if place >= MONITORS || at < now - REMEMBERED {
                let name = format!("{}{address}", rows::MONITOR);
                // With the time that was read: a monitor that has asked meanwhile stays.
                chores::let_go(&core.store, &name, at).await?;
            }
        }
    }

    Ok(())
}

/// Returns the time of the oldest backup that was made here and is not known to be deleted.
pub async fn oldest_backup(core: &Core) -> Result<Option<Timestamp>, ServiceError> {
    let made = signs(core, rows::BACKUP_OF).await?;
    Ok(made.into_iter().map(|(_, at)| at).min())
}

async fn signs(core: &Core, kind: &str) -> Result<Vec<(String, Timestamp)>, ServiceError> {
    let mut connection = core.store.read().await?;
    Ok(rows::signs(&mut connection, kind).await?)
}

/// A monitor of the log: someone who asked for the proof that it extends an earlier head.
#[derive(Serialize, JsonSchema)]
pub struct MonitorView {
    /// IPv4 address, or the /64 network of an IPv6 address.
    pub address: String,
    /// When it last asked, to within ten minutes.
    pub asked_at: Timestamp,
}

/// A node with its last sign of life.
#[derive(Serialize, JsonSchema)]
pub struct NodeView {
    pub node: String,
    pub seen_at: Timestamp,
}

/// An organization with its numbers.
#[derive(Serialize, JsonSchema)]
pub struct OrganizationSizeView {
    pub org_id: OrgId,
    pub name: String,
    pub created_at: Timestamp,
    pub envelopes: i64,
    pub users: i64,
}

/// Organizations in a bucket, which one node at a time works on.
#[derive(Serialize, JsonSchema)]
pub struct BucketView {
    pub bucket: i64,
    pub organizations: i64,
}

/// A job that failed, or is tried again and again.
#[derive(Serialize, JsonSchema)]
pub struct FailingJobView {
    pub job_id: String,
    pub org_id: OrgId,
    pub kind: String,
    pub attempts: i64,
    /// When it is tried again.
    pub run_at: Timestamp,
    pub error: Option<String>,
}

/// Queues of the installation.
#[derive(Serialize, JsonSchema)]
pub struct QueuesView {
    pub jobs_waiting: i64,
    pub jobs_failed: i64,
    /// Since when the oldest due job waits.
    pub jobs_due_since: Option<Timestamp>,
    pub deliveries_due: i64,
    pub deliveries_due_since: Option<Timestamp>,
    pub endpoints_paused: i64,
    pub endpoints_disabled: i64,
}

/// The log of the ledgers.
#[derive(Serialize, JsonSchema)]
pub struct LogView {
    pub size: u64,
    /// Root hash of the published head, to compare with that of a monitor.
    pub root_hash: Option<String>,
    /// When the head was signed.
    pub signed_at: Option<Timestamp>,
    /// Entries that wait for their place.
    pub pending: i64,
}

/// Checks of the records in the vault.
#[derive(Serialize, JsonSchema)]
pub struct SweepView {
    pub records: i64,
    /// Read back within the last week.
    pub checked: i64,
    pub with_problems: i64,
}

/// The installation.
#[derive(Serialize, JsonSchema)]
pub struct InstallationView {
    pub version: &'static str,
    pub nodes: Vec<NodeView>,
    /// Those of the last 30 days, at most 50.
    pub monitors: Vec<MonitorView>,
    pub queues: QueuesView,
    pub failing_jobs: Vec<FailingJobView>,
    pub log: LogView,
    pub sweep: SweepView,
    /// Time of the last backup with `holdfast backup`.
    pub last_backup_at: Option<Timestamp>,
    /// The largest 200.
    pub organizations: Vec<OrganizationSizeView>,
    pub buckets: Vec<BucketView>,
}

/// Returns the state of the installation.
pub async fn view(core: &Core) -> Result<InstallationView, ServiceError> {
    let now = core.clock.now();
    let mut connection = core.store.read().await?;
    let nodes = rows::signs(&mut connection, rows::NODE).await?;
    let monitors = rows::signs(&mut connection, rows::MONITOR).await?;
    let counts = jobs::counts(&mut connection, now).await?;
    let due = deliveries::counts(&mut connection, now).await?;
    let endpoints = webhooks::counts(&mut connection).await?;

    let pending = log::pending_count(&mut connection).await?;
    let head = log::head(&mut connection).await?;
    let buckets = rows::buckets(&mut connection).await?;
    // Given back first: the next calls take connections of their own, and one request must not wait for
    // itself.
    drop(connection);
    let sweep = integrity::progress(core, now - integrity::PERIOD).await?;
    Ok(InstallationView {
        version: env!("CARGO_PKG_VERSION"),
        nodes: nodes
            .into_iter()
            .map(|(node, seen_at)| NodeView { node, seen_at })
            .collect(),
        // Older ones are removed only when a new monitor comes.
        monitors: monitors
            .into_iter()
            .filter(|(_, at)| *at >= now - REMEMBERED)
            .map(|(address, asked_at)| MonitorView { address, asked_at })
            .collect(),
        queues: QueuesView {
            jobs_waiting: counts.waiting,
            jobs_failed: counts.failed,
            jobs_due_since: counts.due_since,
            deliveries_due: due.due,
            deliveries_due_since: due.oldest,
            endpoints_paused: endpoints.paused,
            endpoints_disabled: endpoints.disabled,
        },
        failing_jobs: failing_jobs(core, JOBS).await?,
        log: LogView {
            size: head.as_ref().map_or(0, |head| head.size),
            signed_at: head.as_ref().and_then(|head| head.signed_at),
            root_hash: head.map(|head| head.root),
            pending,
        },
        sweep: SweepView {
            records: sweep.total,
            checked: sweep.checked,
            with_problems: sweep.with_problems,
        },
        last_backup_at: chores::due(&core.store, rows::LAST_BACKUP).await?,
        organizations: organizations(core, ORGANIZATIONS).await?,
        buckets: buckets
            .into_iter()
            .map(|one| BucketView {
                bucket: one.bucket,
                organizations: one.organizations,
            })
            .collect(),
    })
}

/// Returns the organizations, the largest first.
pub async fn organizations(
    core: &Core,
    limit: i64,
) -> Result<Vec<OrganizationSizeView>, ServiceError> {
    let mut connection = core.store.read().await?;
    let found = rows::organizations(&mut connection, limit).await?;
    let views = found.into_iter().map(|one| OrganizationSizeView {
        org_id: one.org,
        name: one.name,
        created_at: one.created_at,
        envelopes: one.envelopes,
        users: one.users,
    });

    Ok(views.collect())
}

/// Returns the jobs that failed at their last attempt, those with most attempts first.
pub async fn failing_jobs(core: &Core, limit: i64) -> Result<Vec<FailingJobView>, ServiceError> {
    let mut connection = core.store.read().await?;
    let found = rows::failing_jobs(&mut connection, limit).await?;
    let views = found.into_iter().map(|job| FailingJobView {
        job_id: job.job,
        org_id: job.org,
        kind: job.kind,
        attempts: job.attempts,
        run_at: job.run_at,
        error: job.error,
    });

    Ok(views.collect())
}

/// Usage of an organization in a calendar month.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "month": "2026-11", "envelopes_created": 412, "envelopes_vaulted": 390, "identity_passed": 12,
    "identity_failed": 1, "identity_unavailable": 0, "identity_billed_signers": 12, "identity_amount_cents": 4800,
    "currency": "USD",
}]))]
pub struct UsageView {
    /// In UTC.
    pub month: String,
    pub envelopes_created: i64,
    pub envelopes_vaulted: i64,
    /// Sessions of identity questions by result.
    pub identity_passed: i64,
    pub identity_failed: i64,
    pub identity_unavailable: i64,
    pub identity_billed_signers: i64,
    pub identity_amount_cents: i64,
    pub currency: &'static str,
}

/// Returns begin and end of a month such as `2026-11`.
fn bounds(month: &str) -> Option<(Timestamp, Timestamp)> {
    let (year, number) = month.split_once('-')?;
    // Other spellings, such as 2026-1, are refused: the answer repeats the text as the month.
    let (year, number): (i32, u32) = match (year.len(), number.len()) {
        (4, 2) => (year.parse().ok()?, number.parse().ok()?),
        _ => return None,
    };
    let begin =
        |year: i32, month: u32| Timestamp::parse(&format!("{year:04}-{month:02}-01T00:00:00Z"));

    let (next_year, next) = if number == 12 {
        (year + 1, 1)
    } else {
        (year, number + 1)
    };
    begin(year, number).zip(begin(next_year, next))
}

/// Returns the usage of an organization in a month, or in the present one.
pub async fn usage(
    core: &Core,
    org: &OrgId,
    month: Option<&str>,
) -> Result<UsageView, ServiceError> {
    // In UTC, like the month in which a signer is charged once.
    let now = core.clock.now().to_string();
    let month = month.unwrap_or_else(|| now.get(..7).unwrap_or_default());
    let Some((from, to)) = bounds(month) else {
        return Err(ServiceError::invalid(
            "invalid_string",
            &["month"],
            "a month such as 2026-11",
            month,
            "Not a month",
        ));
    };

    let mut connection = core.store.read().await?;
    let (created, vaulted) = rows::envelopes_of(&mut connection, org, from, to).await?;
    let identity = kba::usage(&mut connection, Some(org), from, to).await?;
    drop(connection);
    let sessions = |status| {
        let of = identity.iter().filter(|one| one.status == status);
        of.map(|one| one.sessions).sum()
    };

    Ok(UsageView {
        month: month.to_owned(),
        envelopes_created: created,
        envelopes_vaulted: vaulted,
        identity_passed: sessions(KbaStatus::Passed),
        identity_failed: sessions(KbaStatus::Failed),
        identity_unavailable: sessions(KbaStatus::Unavailable),
        identity_billed_signers: identity.iter().map(|one| one.billed).sum(),
        identity_amount_cents: identity.iter().map(|one| one.amount_cents).sum(),
        currency: "USD",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_ends_where_the_next_one_begins() {
        let (from, to) = bounds("2026-12").unwrap();
        assert_eq!(from.to_string(), "2026-12-01T00:00:00.000Z");
        assert_eq!(to.to_string(), "2027-01-01T00:00:00.000Z");
        for wrong in ["2026", "2026-13", "26-11", "2026-1", "x-y"] {
            assert!(bounds(wrong).is_none(), "{wrong}");
        }
    }
}
