//! Work that was committed with the change that asked for it: claim, do, settle.
//!
//! | Job | Payload | Does |
//! |---|---|---|
//! | `envelope.vault` | `envelope`, `intent` | vaults a signed or uploaded envelope |
//! | `signer.invite`, `signer.remind` | `envelope`, `position` | mails a signing link |
//! | `mail.completed`, `mail.declined`, `mail.withdrawn` | `envelope`, `position` | tells a signer, or without a position the creator, how an envelope ended |
//! | `mail.endpoint_failing`, `mail.endpoint_disabled` | `endpoint` | tells who made a webhook endpoint how its receiver does |
//! | `submission.archive` | `envelope` | ends the signing of an expired envelope at its provider |
//! | `submission.withdraw` | `envelope`, `instance`, `submission` | archives a submission that no envelope names |
//! | `template.archive` | `template` | archives a deleted template at its provider |
//! | `bulk.send` | `batch` | works on a bulk batch for a while, and is put back |
//! | `bulk.void` | `batch` | ends what a cancelled bulk batch has left |
//! | `object.delete` | `key`, `instead` | removes stored bytes nobody points to any more, once those that stand for them were read |
//! | `room.execute` | `submission` | makes the signing room's executed document |
//! | `room.callback` | a callback's body | tells the host of the room's change |
//! | `sandbox.callback` | a callback's body | tells the host of a payment in the sandbox |
//!
//! Every job may run twice. A failing one is retried with growing waits, and
//! set aside with its error after the last attempt. What is due by time and not
//! by a change is in `periodic.rs`.

mod periodic;

use std::sync::Arc;

use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::delivery;
use crate::domain::clock::Timestamp;
use crate::domain::envelope::Envelope;
use crate::domain::id::{BatchId, EnvelopeId, IntentId, TemplateId};
use crate::faults;
use crate::mail::{self, MailError};
use crate::metrics::JobLabels;
use crate::node::Node;
use crate::patience;
use crate::room;
use crate::sandbox;
use crate::service::dispatch::Stray;
use crate::service::mails::{
    COMPLETED_JOB, DECLINED_JOB, ENDPOINT_DISABLED_JOB, ENDPOINT_FAILING_JOB, INVITE_JOB,
    REMIND_JOB, WITHDRAWN_JOB,
};
use crate::service::vault_in::{self, Entrance};
use crate::service::{
    Caller, ServiceError, bulk, components, dispatch, expiry, integrity, lifecycle, log, payments,
    signing, templates, timekeeping,
};
use crate::store::jobs::{self, ClaimedJob, Class, Lease};
use crate::store::row::Kept;
use crate::store::{self, StoreError, Tx, buckets, chores};
use crate::traces;

/// Vaults an envelope.
pub const VAULT_JOB: &str = "envelope.vault";
/// Ends the signing of an expired envelope at its provider.
pub const ARCHIVE_JOB: &str = "submission.archive";
/// Archives a deleted template at its provider.
pub const ARCHIVE_TEMPLATE_JOB: &str = "template.archive";
/// Makes a submission unsignable that no envelope names.
pub const WITHDRAW_JOB: &str = "submission.withdraw";
/// Works on a bulk batch.
pub const BULK_JOB: &str = "bulk.send";
/// Ends what a cancelled bulk batch has left.
pub const BULK_VOID_JOB: &str = "bulk.void";
/// Removes stored bytes.
pub const DELETE_OBJECT_JOB: &str = "object.delete";

/// A job whose lease ran out is somebody else's. Whoever works on it renews it.
pub const LEASE: Duration = Duration::from_secs(15);
const RENEWAL: Duration = Duration::from_secs(5);
/// Jobs in hand at once, by class.
const SLOTS: [(Class, usize); 3] = [(Class::Other, 8), (Class::Mail, 4), (Class::Bulk, 4)];
/// How long a lost wake-up can go unnoticed.
const SWEEP: Duration = Duration::from_secs(1);
/// While nodes are upgraded one after the other, those to come know more kinds.
const UNKNOWN_WAIT: Duration = Duration::from_secs(5);
/// Waits between the attempts of a failing job.
const RETRY_SECONDS: &[u64] = &[1, 5, 15, 60, 300, 900, 3600, 3600, 3600, 3600];

/// How often a job is tried while what it needs is away: each hour in the end, for five
/// days, as mail is (RFC 5321, section 4.5.4.1).
const OUTAGE_ATTEMPTS: usize = RETRY_SECONDS.len() + 5 * 24;

/// What becomes of a job that has done its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Done,
    /// There is more to do, from then on.
    Again(Timestamp),
}

/// Works until told to stop, then finishes what is in hand.
pub async fn run(app: App, stop: CancellationToken) {
    if let Err(error) = jobs::forget_leases(&app.store, app.clock.now()).await {
        tracing::error!(%error, "leases of an earlier run could not be taken back");
    }
    if let Err(error) = store::bulk::forget_leases(&app.store, app.clock.now()).await {
        tracing::error!(%error, "bulk items of an earlier run could not be taken back");
    }
    let node = Arc::new(Node::of(&app.config.data_dir));
    // Before the first claim.
    hold_buckets(&app, &node).await;
    let buckets = tokio::spawn(keep_buckets(app.clone(), node.clone(), stop.clone()));
    let periodic = tokio::spawn(periodic::run(app.clone(), stop.clone()));
    let sequencer = tokio::spawn(log::run(app.clone(), stop.clone()));
    let sweeps = tokio::spawn(periodic::sweep(app.clone(), stop.clone()));
    let polls = tokio::spawn(periodic::poll(app.clone(), stop.clone()));
    let webhooks = tokio::spawn(delivery::run(app.clone(), node, stop.clone()));
    let activations = tokio::spawn(components::follow(app.clone(), stop.clone()));
    let wakeups = tokio::spawn(store::share_wakeups(app.store.clone(), stop.clone()));
    let time = tokio::spawn(timekeeping::run(app.clone(), stop.clone()));
    let mut in_hand = JoinSet::new();
    let slots = SLOTS.map(|(class, count)| (class, Arc::new(Semaphore::new(count))));
    let sweep = app.config.sweep_interval.unwrap_or(SWEEP).min(SWEEP);
    while !stop.is_cancelled() {
        while in_hand.try_join_next().is_some() {}
        let mut found_work = false;
        for (class, slots) in &slots {
            for job in claim(&app, *class, slots.available_permits()).await {
                found_work = true;
                let slot = slots.clone().try_acquire_owned().ok();
                let work = work(app.clone(), job, slot);
                match class {
                    Class::Other => in_hand.spawn(patience::as_job(work)),
                    Class::Mail | Class::Bulk => in_hand.spawn(patience::patiently(work)),
                };
            }
        }
        if found_work {
            continue;
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = app.store.work_added() => {}
            Some(_) = in_hand.join_next(), if !in_hand.is_empty() => {}
            () = tokio::time::sleep(sweep) => {}
        }
    }
    while in_hand.join_next().await.is_some() {}
    for (what, work) in [
        ("periodic", periodic),
        ("log", sequencer),
        ("sweeps", sweeps),
        ("polls", polls),
        ("webhooks", webhooks),
        ("activations", activations),
        ("wake-ups", wakeups),
        ("time", time),
        ("buckets", buckets),
    ] {
        if let Err(error) = work.await {
            tracing::error!(what, %error, "background work did not end well");
        }
    }
}

async fn hold_buckets(app: &App, node: &Node) {
    let earlier = node.earlier_runs();
    match buckets::hold(&app.store, &node.run, earlier.as_deref(), app.clock.now()).await {
        Ok(held) => {
            app.metrics
                .buckets_held
                .set(held.try_into().unwrap_or_default());
        }
        Err(error) => tracing::warn!(%error, "buckets could not be held"),
    }
}

/// Holds a share of the buckets until told to stop, and leaves them to others then.
async fn keep_buckets(app: App, node: Arc<Node>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(buckets::RENEWAL) => hold_buckets(&app, &node).await,
        }
    }
    if let Err(error) = buckets::let_go(&app.store, &node.run).await {
        tracing::warn!(%error, "buckets stay held until their leases end");
    }
    app.metrics.buckets_held.set(0);
}

async fn claim(app: &App, class: Class, limit: usize) -> Vec<ClaimedJob> {
    if limit == 0 {
        return Vec::new();
    }
    let (now, limit) = (app.clock.now(), limit as i64);
    jobs::claim(&app.store, class, now, LEASE, limit)
        .await
        .unwrap_or_else(|error| {
            tracing::error!(%error, ?class, "jobs could not be claimed");
            Vec::new()
        })
}

/// Counting rows takes no more than one in so many seconds, however many rows there are.
const GAUGES_SHARE: u32 = 20;
/// The oldest that a gauge gets for that.
const GAUGES_AGE: Duration = Duration::from_secs(600);

/// Brings the gauges of the metrics up to date, if they are not good enough.
pub async fn update_gauges(app: &App) -> Result<(), StoreError> {
    let mut good_until = app.gauges_good_until.lock().await;
    let began = Instant::now();
    if good_until.is_some_and(|until| began < until) {
        return Ok(());
    }
    count(app).await?;
    let age = (began.elapsed() * GAUGES_SHARE).min(GAUGES_AGE);
    *good_until = Some(Instant::now() + age);
    Ok(())
}

async fn count(app: &App) -> Result<(), StoreError> {
    let mut connection = app.store.read().await?;
    let waiting = store::log::pending_count(&mut connection).await?;
    app.metrics.ledger_pending.set(waiting);
    if let Some(head) = store::log::head(&mut connection).await? {
        app.metrics.ledger_size.set(head.size.cast_signed());
    }
    let since = app.clock.now() - integrity::PERIOD;
    let progress = store::integrity::progress(&mut connection, since).await?;
    app.metrics.integrity_total.set(progress.total);
    app.metrics.integrity_this_week.set(progress.checked);
    app.metrics.integrity_problems.set(progress.with_problems);
    let now = app.clock.now();
    let lag = |since: Option<Timestamp>| since.map_or(0, |at| now.as_seconds() - at.as_seconds());
    let counts = jobs::counts(&mut connection, now).await?;
    app.metrics.jobs_waiting.set(counts.waiting);
    app.metrics.jobs_failed.set(counts.failed);
    app.metrics.job_lag.set(lag(counts.due_since));
    let due = store::deliveries::counts(&mut connection, now).await?;
    app.metrics.webhook_due.set(due.due);
    app.metrics.webhook_lag.set(lag(due.oldest));
    let endpoints = store::webhooks::counts(&mut connection).await?;
    app.metrics.webhook_paused.set(endpoints.paused);
    app.metrics.webhook_disabled.set(endpoints.disabled);
    Ok(())
}

/// Does a job and settles it; it holds its slot until then.
async fn work(app: App, job: ClaimedJob, _slot: Option<OwnedSemaphorePermit>) {
    let span = traces::span!(
        "job",
        job.kind = job.kind.as_str(),
        job.attempt = job.attempts
    );
    traces::go_on(&span, job.trace.as_deref());
    let outcome = traces::within(span, perform_leased(&app, &job)).await;
    let count = |outcome: &str| {
        let labels = JobLabels {
            kind: job.kind.clone(),
            outcome: outcome.into(),
        };
        app.metrics.jobs.get_or_create(&labels).inc();
    };
    let settled = match outcome {
        Ok(Next::Done) => {
            count("done");
            jobs::finish(&app.store, &job).await
        }
        Ok(Next::Again(at)) => jobs::put_back(&app.store, &job, at).await,
        Err(JobError::Lost) => {
            tracing::warn!(
                job_id = job.id.as_str(),
                kind = job.kind,
                "a job was taken over"
            );
            count("lost");
            Ok(())
        }
        Err(error) => {
            let wait = wait(&job.kind, job.attempts, &error);
            let retry_at = wait.map(|seconds| app.clock.now() + Duration::from_secs(seconds));
            let (job_id, kind) = (job.id.as_str(), job.kind.as_str());
            tracing::warn!(job_id, kind, %error, retried = retry_at.is_some(), "a job failed");
            count(if retry_at.is_some() {
                "retried"
            } else {
                "failed"
            });
            jobs::settle_failure(&app.store, &job, &error.to_string(), retry_at).await
        }
    };
    if let Err(error) = settled {
        // The lease runs out and the job is done again.
        tracing::error!(job_id = job.id.as_str(), %error, "a job could not be settled");
    }
}

/// Seconds until a job is tried again that failed for the nth time, from 0. None: never.
fn wait(kind: &str, attempt: i64, error: &JobError) -> Option<u64> {
    // Rules that refuse today may be others tomorrow: a batch goes on then.
    if error.is_final() && ![BULK_JOB, BULK_VOID_JOB].contains(&kind) {
        return None;
    }
    let attempt = usize::try_from(attempt).unwrap_or(usize::MAX);
    // A signed contract is never given up, nor is a batch that runs, nor what has to go.
    // Others wait for whatever is away.
    let precious = [
        VAULT_JOB,
        room::EXECUTE_JOB,
        BULK_JOB,
        BULK_VOID_JOB,
        DELETE_OBJECT_JOB,
    ];
    let waits = precious.contains(&kind) || error.is_outage() && attempt < OUTAGE_ATTEMPTS;
    let last = RETRY_SECONDS.last().filter(|_| waits);
    RETRY_SECONDS.get(attempt).or(last).copied()
}

/// Why a job failed.
#[derive(Debug, thiserror::Error)]
enum JobError {
    #[error("payload: {0}")]
    Payload(#[from] serde_json::Error),
    #[error(transparent)]
    Service(#[from] ServiceError),
    #[error(transparent)]
    Callback(#[from] signing::CallbackError),
    #[error(transparent)]
    Execute(#[from] room::execute::ExecuteError),
    #[error("mail: {0}")]
    Mail(#[from] MailError),
    #[error(transparent)]
    Files(#[from] crate::files::FilesError),
    /// Its lease ran out, and it is somebody else's.
    #[error("taken over")]
    Lost,
}

impl JobError {
    /// What it needs could not be reached.
    fn is_outage(&self) -> bool {
        match self {
            Self::Service(error) => error.is_outage(),
            Self::Mail(error) => error.is_outage(),
            Self::Files(error) => error.is_unreachable(),
            _ => false,
        }
    }

    /// Trying again would not help.
    fn is_final(&self) -> bool {
        match self {
            Self::Payload(_) => true,
            Self::Service(ServiceError::Refused(refusal)) => lifecycle::is_final(refusal),
            Self::Service(ServiceError::NotFound(_)) => true,
            Self::Mail(error) => error.is_final(),
            _ => false,
        }
    }
}

#[derive(Deserialize)]
struct AboutEnvelope {
    envelope: EnvelopeId,
}

#[derive(Deserialize)]
struct AboutVaulting {
    envelope: EnvelopeId,
    /// Only what was intended then; none: whatever there is to vault.
    intent: Option<IntentId>,
}

#[derive(Deserialize)]
struct AboutSubmission {
    submission: i64,
}

#[derive(Deserialize)]
struct AboutBatch {
    batch: BatchId,
}

#[derive(Deserialize)]
struct AboutTemplate {
    template: TemplateId,
}

#[derive(Deserialize)]
struct AboutObject {
    key: String,
    /// What has to be there before these bytes may go.
    instead: Option<Kept>,
}

/// Has an envelope vaulted at `run_at`: as it was intended, or a signed one as it
/// is. A job that waits already stands for it.
pub async fn insert_vault_job(
    tx: &mut Tx,
    envelope: &Envelope,
    intent: Option<&IntentId>,
    run_at: Timestamp,
) -> Result<(), StoreError> {
    let payload = json!({ "envelope": envelope.id, "intent": intent });
    let key = envelope.id.as_str();
    jobs::insert_or_revive(tx, &envelope.org, VAULT_JOB, key, &payload, run_at).await
}

/// Does a job and meanwhile keeps its lease.
async fn perform_leased(app: &App, job: &ClaimedJob) -> Result<Next, JobError> {
    let work = std::pin::pin!(perform(app, job));
    let renewals = async {
        loop {
            tokio::time::sleep(RENEWAL).await;
            let until = app.clock.now() + LEASE;
            match jobs::renew(&app.store, job, until).await {
                Ok(Lease::Renewed) => {}
                Ok(Lease::TakenOver) => return JobError::Lost,
                // Either this work removed it, and ends at once, or somebody else did it.
                Ok(Lease::Over) => {
                    tokio::time::sleep(RENEWAL).await;
                    return JobError::Lost;
                }
                Err(error) => {
                    tracing::warn!(job_id = job.id.as_str(), %error, "a lease was not renewed");
                }
            }
        }
    };
    tokio::select! {
        outcome = work => outcome,
        lost = renewals => Err(lost),
    }
}

async fn perform(app: &App, job: &ClaimedJob) -> Result<Next, JobError> {
    match job.kind.as_str() {
        BULK_JOB => {
            let AboutBatch { batch } = payload(job)?;
            return Ok(bulk::drive::drive(app, &job.org, &batch).await?);
        }
        BULK_VOID_JOB => {
            let AboutBatch { batch } = payload(job)?;
            return Ok(bulk::tidy(app, &job.org, &batch).await?);
        }
        VAULT_JOB => {
            let AboutVaulting { envelope, intent } = payload(job)?;
            let caller = Caller::system(job.org.clone());
            match intent {
                Some(intent) => vault_in::go_on(app, &caller, &envelope, &intent).await?,
                None => {
                    let id = envelope.as_str();
                    vault_in::vault_in(app, &caller, id, Entrance::Signed).await?;
                }
            }
        }
        ARCHIVE_JOB => {
            let AboutEnvelope { envelope } = payload(job)?;
            expiry::archive(app, &job.org, &envelope).await?;
        }
        ARCHIVE_TEMPLATE_JOB => {
            let AboutTemplate { template } = payload(job)?;
            return Ok(templates::archive(app, &job.org, &template).await?);
        }
        WITHDRAW_JOB => {
            let stray: Stray = payload(job)?;
            return Ok(dispatch::withdraw_stray(app, &job.org, &stray).await?);
        }
        INVITE_JOB | REMIND_JOB | COMPLETED_JOB | DECLINED_JOB | WITHDRAWN_JOB => {
            mail::deliver(app, job, payload(job)?).await?;
        }
        ENDPOINT_FAILING_JOB | ENDPOINT_DISABLED_JOB => {
            mail::deliver_about_endpoint(app, job, payload(job)?).await?;
        }
        DELETE_OBJECT_JOB => {
            let AboutObject { key, instead } = payload(job)?;
            if let Some(until) = held(app).await? {
                return Ok(Next::Again(until));
            }
            if let Some(Kept(instead)) = instead {
                app.files.verify(&instead).await?;
            }
            app.files.delete(&key).await?;
            faults::pass("deleted");
        }
        room::EXECUTE_JOB => {
            let AboutSubmission { submission } = payload(job)?;
            app.room.execute(&job.org, submission).await?;
        }
        room::CALLBACK_JOB => {
            let (headers, body) = room::callbacks::signed(&app.room, &job.payload, app.clock.now());
            signing::callback(app, crate::config::EMBEDDED, headers, body).await?;
        }
        sandbox::CALLBACK_JOB => {
            // Left over from before the installation went into production.
            let Some(sandbox) = &app.sandbox else {
                return Ok(Next::Done);
            };
            let (headers, body) = sandbox.signed(&job.payload, app.clock.now());
            payments::callback(app, crate::config::EMBEDDED, headers, body).await?;
        }
        unknown => {
            tracing::warn!(kind = unknown, "a job is left to nodes that know its kind");
            return Ok(Next::Again(app.clock.now() + UNKNOWN_WAIT));
        }
    }
    Ok(Next::Done)
}

/// Until when no object may be removed: a backup is copying them.
pub(crate) async fn held(app: &App) -> Result<Option<Timestamp>, ServiceError> {
    let until = chores::due(&app.store, chores::BACKUP).await?;
    Ok(until.filter(|until| *until > app.clock.now()))
}

fn payload<T: DeserializeOwned>(job: &ClaimedJob) -> Result<T, serde_json::Error> {
    T::deserialize(&job.payload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::components::providers::ProviderError;

    const INVITE: &str = "signer.invite";

    #[test]
    fn what_fails_is_tried_for_some_hours_and_what_is_precious_for_ever() {
        let failure = || JobError::Service(ServiceError::Internal("a defect".into()));
        assert_eq!(wait(INVITE, 0, &failure()), Some(1));
        assert_eq!(wait(INVITE, 9, &failure()), Some(3600));
        assert_eq!(wait(INVITE, 10, &failure()), None);
        for kind in [VAULT_JOB, DELETE_OBJECT_JOB] {
            assert_eq!(wait(kind, 10_000, &failure()), Some(3600));
        }
        let gone = JobError::Service(ServiceError::NotFound("Envelope"));
        assert_eq!(wait(INVITE, 0, &gone), None);
        assert_eq!(wait(BULK_JOB, 0, &gone), Some(1));
    }

    /// A night without a mail server, object store or provider loses nothing.
    #[test]
    fn what_is_away_is_waited_for_five_days() {
        let unreachable = || ProviderError::Unreachable("no route".into());
        for away in [
            JobError::Mail(MailError::Late(Duration::from_secs(60))),
            JobError::Files(crate::files::FilesError::TimedOut),
            JobError::Service(ServiceError::Provider(unreachable())),
        ] {
            assert_eq!(wait(INVITE, 10, &away), Some(3600));
            assert_eq!(wait(INVITE, 129, &away), Some(3600));
            assert_eq!(wait(INVITE, 130, &away), None);
        }
    }
}
