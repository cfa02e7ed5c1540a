//! Work that was committed with the change that asked for it: claim, do, settle.
//!
//! | Job | Payload | Does |
//! |---|---|---|
//! | `envelope.vault` | `envelope`, `intent` | vaults a signed or uploaded envelope |
//! | `signer.invite`, `signer.remind` | `envelope`, `position` | mails a signing link |
//! | `mail.completed`, `mail.declined`, `mail.withdrawn` | `envelope`, `position` | tells a signer, or without a position the creator, how an envelope ended |
//! | `mail.endpoint_failing`, `mail.endpoint_disabled` | `endpoint` | tells who made a webhook endpoint how its receiver does |
//! | `submission.archive` | `envelope` | ends the signing of an expired envelope at its provider |
//! | `object.delete` | `key`, `instead` | removes stored bytes nobody points to any more, once those that stand for them were read |
//! | `room.execute` | `submission` | makes the signing room's executed document |
//! | `room.callback` | a callback's body | tells the host of the room's change |
//!
//! Every job may run twice. A failing one is retried with growing waits, and
//! set aside with its error after the last attempt. What is due by time and not
//! by a change is in `periodic.rs`.

mod periodic;

use std::sync::Arc;

use std::time::Duration;

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
use crate::domain::id::{EnvelopeId, IntentId};
use crate::faults;
use crate::mail::{self, MailError};
use crate::metrics::JobLabels;
use crate::room;
use crate::service::mails::{
    COMPLETED_JOB, DECLINED_JOB, ENDPOINT_DISABLED_JOB, ENDPOINT_FAILING_JOB, INVITE_JOB,
    REMIND_JOB, WITHDRAWN_JOB,
};
use crate::service::vault_in::{self, Entrance};
use crate::service::{
    Caller, ServiceError, components, expiry, integrity, lifecycle, log, signing,
};
use crate::store::jobs::{self, ClaimedJob};
use crate::store::row::Kept;
use crate::store::{self, StoreError, Tx};

/// Vaults an envelope.
pub const VAULT_JOB: &str = "envelope.vault";
/// Ends the signing of an expired envelope at its provider.
pub const ARCHIVE_JOB: &str = "submission.archive";
/// Removes stored bytes.
pub const DELETE_OBJECT_JOB: &str = "object.delete";

/// A job whose lease ran out is somebody else's. Whoever works on it renews it.
pub const LEASE: Duration = Duration::from_secs(15);
const RENEWAL: Duration = Duration::from_secs(5);
/// Jobs in hand at once.
const AT_ONCE: usize = 8;
/// Mails among them: a mail server that hangs holds up no contract.
const MAILS_AT_ONCE: usize = 4;
/// How long a lost wake-up can go unnoticed.
const SWEEP: Duration = Duration::from_secs(1);
/// Waits between the attempts of a failing job.
const RETRY_SECONDS: &[u64] = &[1, 5, 15, 60, 300, 900, 3600, 3600, 3600, 3600];

/// Works until told to stop, then finishes what is in hand.
pub async fn run(app: App, stop: CancellationToken) {
    if let Err(error) = jobs::forget_leases(&app.store, app.clock.now()).await {
        tracing::error!(%error, "leases of an earlier run could not be taken back");
    }
    let periodic = tokio::spawn(periodic::run(app.clone(), stop.clone()));
    let sequencer = tokio::spawn(log::run(app.clone(), stop.clone()));
    let sweeps = tokio::spawn(periodic::sweep(app.clone(), stop.clone()));
    let polls = tokio::spawn(periodic::poll(app.clone(), stop.clone()));
    let webhooks = tokio::spawn(delivery::run(app.clone(), stop.clone()));
    let activations = tokio::spawn(components::follow(app.clone(), stop.clone()));
    let mut in_hand = JoinSet::new();
    let mail_slots = Arc::new(Semaphore::new(MAILS_AT_ONCE));
    let sweep = app.config.sweep_interval.unwrap_or(SWEEP).min(SWEEP);
    while !stop.is_cancelled() {
        while in_hand.try_join_next().is_some() {}
        let room = AT_ONCE.saturating_sub(in_hand.len());
        let others = claim(&app, false, room).await;
        let mail_room = room.saturating_sub(others.len());
        let mails = claim(&app, true, mail_room.min(mail_slots.available_permits())).await;
        let found_work = !others.is_empty() || !mails.is_empty();
        for job in others {
            in_hand.spawn(work(app.clone(), job, None));
        }
        for job in mails {
            let slot = mail_slots.clone().try_acquire_owned().ok();
            in_hand.spawn(work(app.clone(), job, slot));
        }
        if found_work && in_hand.len() < AT_ONCE {
            continue;
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = app.store.work_added(), if in_hand.len() < AT_ONCE => {}
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
    ] {
        if let Err(error) = work.await {
            tracing::error!(what, %error, "background work did not end well");
        }
    }
}

async fn claim(app: &App, mails: bool, limit: usize) -> Vec<ClaimedJob> {
    if limit == 0 {
        return Vec::new();
    }
    let (now, limit) = (app.clock.now(), limit as i64);
    jobs::claim(&app.store, mails, now, LEASE, limit)
        .await
        .unwrap_or_else(|error| {
            tracing::error!(%error, mails, "jobs could not be claimed");
            Vec::new()
        })
}

/// Brings the gauges of the metrics up to date.
pub async fn update_gauges(app: &App) -> Result<(), StoreError> {
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
    let counts = jobs::counts(&mut connection).await?;
    app.metrics.jobs_waiting.set(counts.waiting);
    app.metrics.jobs_failed.set(counts.failed);
    let now = app.clock.now();
    let due = store::deliveries::counts(&mut connection, now).await?;
    let lag = due
        .oldest
        .map_or(0, |at| now.as_seconds() - at.as_seconds());
    app.metrics.webhook_due.set(due.due);
    app.metrics.webhook_lag.set(lag);
    let endpoints = store::webhooks::counts(&mut connection).await?;
    app.metrics.webhook_paused.set(endpoints.paused);
    app.metrics.webhook_disabled.set(endpoints.disabled);
    Ok(())
}

/// Does a job and settles it; a mail holds its slot until then.
async fn work(app: App, job: ClaimedJob, _slot: Option<OwnedSemaphorePermit>) {
    let outcome = perform_leased(&app, &job).await;
    let count = |outcome: &str| {
        let labels = JobLabels {
            kind: job.kind.clone(),
            outcome: outcome.into(),
        };
        app.metrics.jobs.get_or_create(&labels).inc();
    };
    let settled = match outcome {
        Ok(()) => {
            count("done");
            jobs::finish(&app.store, &job).await
        }
        Err(error) => {
            let attempt = usize::try_from(job.attempts).unwrap_or(usize::MAX);
            let wait = RETRY_SECONDS.get(attempt);
            // A signed contract is never given up.
            let precious = [VAULT_JOB, room::EXECUTE_JOB].contains(&job.kind.as_str());
            let wait = wait.or(RETRY_SECONDS.last().filter(|_| precious));
            let wait = wait.filter(|_| !error.is_final());
            let retry_at = wait.map(|seconds| app.clock.now() + Duration::from_secs(*seconds));
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

/// Why a job failed.
#[derive(Debug, thiserror::Error)]
enum JobError {
    #[error("unknown kind of job")]
    UnknownKind,
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
}

impl JobError {
    /// Trying again would not help.
    fn is_final(&self) -> bool {
        match self {
            Self::UnknownKind | Self::Payload(_) => true,
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
async fn perform_leased(app: &App, job: &ClaimedJob) -> Result<(), JobError> {
    let work = std::pin::pin!(perform(app, job));
    let renewals = async {
        loop {
            tokio::time::sleep(RENEWAL).await;
            let until = app.clock.now() + LEASE;
            if let Err(error) = jobs::renew(&app.store, job, until).await {
                tracing::warn!(job_id = job.id.as_str(), %error, "a lease was not renewed");
            }
        }
    };
    tokio::select! {
        outcome = work => outcome,
        never = renewals => never,
    }
}

async fn perform(app: &App, job: &ClaimedJob) -> Result<(), JobError> {
    match job.kind.as_str() {
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
        INVITE_JOB | REMIND_JOB | COMPLETED_JOB | DECLINED_JOB | WITHDRAWN_JOB => {
            mail::deliver(app, job, payload(job)?).await?;
        }
        ENDPOINT_FAILING_JOB | ENDPOINT_DISABLED_JOB => {
            mail::deliver_about_endpoint(app, job, payload(job)?).await?;
        }
        DELETE_OBJECT_JOB => {
            let AboutObject { key, instead } = payload(job)?;
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
        _ => return Err(JobError::UnknownKind),
    }
    Ok(())
}

fn payload<T: DeserializeOwned>(job: &ClaimedJob) -> Result<T, serde_json::Error> {
    T::deserialize(&job.payload)
}
