//! Claims, runs and settles jobs; `domain/job.rs` has their kinds.
//!
//! Every job may run twice. A failing job is retried with growing back-off, and set aside with
//! its error after the last attempt.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::mails::{self, DeliveryError, EndpointMailKind};
use super::text_messages;
use holdfast_adapters::files::FilesError;
use holdfast_adapters::mail::EnvelopeMailKind;
use holdfast_base::config::EMBEDDED;
use holdfast_base::faults;
use holdfast_base::metrics::JobLabels;
use holdfast_base::traces;
use holdfast_domain::envelope::KeptFile;
use holdfast_domain::job::{
    AdvanceTransfer, ArchiveSubmission, ArchiveTemplate, CertifyAnew, CheckFunding, CheckTape,
    CompareRecords, DeleteObject, DeleteTapeRows, DestroyRecord, ExecuteSubmission, FollowHold,
    FollowSubmission, ImportRecords, JobKind, JobPayload, JobQueue, MailAccessCode, MailAnswer,
    MailCompletion, MailContractDate, MailDecline, MailEndpointDisabled, MailEndpointFailing,
    MailInvitation, MailLater, MailLinkHost, MailNotSent, MailOpenLink, MailPartyInvitation,
    MailQuestion, MailReleaseRequest, MailReminder, MailSignIn, MailUndelivered, MailView,
    MailWithdrawal, NextStep, NoticeOfDate, PaidInSandbox, ReleaseRecord, RemindByPlan,
    RetryPolicy, SendBatch, SendPlanned, TextAccessCode, TextInvitation, TextReminder,
    VaultEnvelope, VoidBatch, WarnOfExpiry, WithdrawSubmission,
};
use holdfast_domain::priority::PriorityClass;
use holdfast_platform::error::CallbackError;
use holdfast_platform::messaging::TextMessageKind;
use holdfast_platform::problems::ControlProblem;
use holdfast_platform::room;
use holdfast_platform::{Caller, ServiceError, payments};
use holdfast_service::control::{similar, transfers};
use holdfast_service::envelopes::{contract_dates, dispatch, lifecycle, planned_sending};
use holdfast_service::inspection;
use holdfast_service::retention::{destruction, store_holds};
use holdfast_service::signing::{expiry, reminders};
use holdfast_service::vault::certify_anew;
use holdfast_service::vault::orphans;
use holdfast_service::vault::vault_in::{self, VaultInEndpoint};
use holdfast_service::{App, bulk, funding, imports, signing, tapes, templates};
use holdfast_store::StoreError;
use holdfast_store::jobs::{self, ClaimedJob, LEASE, LeaseRenewal};

const RENEWAL: Duration = Duration::from_secs(5);
/// Maximum number of concurrent jobs, by queue.
const SLOTS: [(JobQueue, usize); 4] = [
    (JobQueue::Other, 8),
    (JobQueue::Mail, 4),
    (JobQueue::Message, 4),
    (JobQueue::Bulk, 4),
];
/// Poll interval, in case a wake-up is lost.
const SWEEP: Duration = Duration::from_secs(1);
/// Delay of a job of unknown kind. During a rolling upgrade, newer nodes know more kinds.
const UNKNOWN_WAIT: Duration = Duration::from_secs(5);
/// Back-off of a failing job, in seconds.
const RETRY_SECONDS: &[u64] = &[1, 5, 15, 60, 300, 900, 3600, 3600, 3600, 3600];

/// Attempts while a dependency is unreachable: hourly in the end, for five days, as recommended for
/// mail (RFC 5321, section 4.5.4.1).
const OUTAGE_ATTEMPTS: usize = RETRY_SECONDS.len() + 5 * 24;

/// Runs jobs until `stop` is cancelled, then finishes the jobs in progress.
pub(super) async fn run(app: &App, stop: &CancellationToken) {
    let mut in_hand = JoinSet::new();
    let slots = SLOTS.map(|(queue, count)| (queue, Arc::new(Semaphore::new(count))));
    let sweep = app.config.sweep_interval.unwrap_or(SWEEP).min(SWEEP);
    while !stop.is_cancelled() {
        // Removes finished tasks from the set.
        while in_hand.try_join_next().is_some() {}

        // Whether jobs may wait for a slot.
        let mut is_full = false;
        for (queue, slots) in &slots {
            let free = slots.available_permits();
            let jobs = claim(app, *queue, free).await;
            is_full |= jobs.len() == free;

            for job in jobs {
                // Always succeeds: a claim takes at most the available permits, and only here are
                // they acquired.
                let slot = slots.clone().try_acquire_owned().ok();
                let priority = match queue {
                    JobQueue::Other => PriorityClass::Job,
                    JobQueue::Mail | JobQueue::Message | JobQueue::Bulk => PriorityClass::Batch,
                };
                in_hand.spawn(work(app.at(priority), job, slot));
            }
        }

        let pause = tokio::time::sleep(sweep);
        tokio::pin!(pause);
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                () = app.store.work_added() => break,
                // Otherwise there is a slot for every due job.
                Some(ended) = in_hand.join_next(), if !in_hand.is_empty() => {
                    if is_full || ended.unwrap_or(true) {
                        break;
                    }
                }
                () = &mut pause => break,
            }
        }
    }

    while in_hand.join_next().await.is_some() {}
}

async fn claim(app: &App, queue: JobQueue, limit: usize) -> Vec<ClaimedJob> {
    if limit == 0 {
        return Vec::new();
    }

    let (now, limit) = (app.clock.now(), limit as i64);
    jobs::claim(&app.store, queue, now, LEASE, limit)
        .await
        .unwrap_or_else(|error| {
            tracing::error!(%error, ?queue, "jobs could not be claimed");
            Vec::new()
        })
}

/// Performs a job and settles it; holds its slot until then. Returns whether the job asked to run again.
async fn work(app: App, job: ClaimedJob, _slot: Option<OwnedSemaphorePermit>) -> bool {
    let span = traces::span!(
        "job",
        job.kind = job.kind.as_str(),
        job.attempt = job.attempts
    );
    traces::go_on(&span, job.trace.as_deref());
    let outcome = traces::within(span, perform_leased(&app, &job)).await;
    let goes_on = matches!(outcome, Ok(NextStep::Again(_)));

    let count = |outcome: &str| {
        let labels = JobLabels {
            kind: job.kind.clone(),
            outcome: outcome.into(),
        };
        app.metrics.jobs.get_or_create(&labels).inc();
    };
    let settled = match outcome {
        Ok(NextStep::Done) => {
            count("done");
            jobs::finish(&app.store, &job).await
        }
        Ok(NextStep::Again(at)) => jobs::put_back(&app.store, &job, at).await,
        Err(JobError::Lost) => {
            tracing::warn!(
                job_id = job.id.as_str(),
                kind = job.kind,
                "job lease lost to another worker"
            );

            // The new holder of the lease settles the job.
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

            if retry_at.is_none()
                && let Err(error) = report_given_up(&app, &job, &error).await
            {
                tracing::error!(job_id, kind, %error, "a lost message could not be reported");
            }

            jobs::settle_failure(&app.store, &job, &error.to_string(), retry_at).await
        }
    };
    if let Err(error) = settled {
        // The lease expires and the job runs again.
        tracing::error!(job_id = job.id.as_str(), %error, "job could not be settled");
    }

    goes_on
}

/// Informs the sender that a message to a signer is given up. What a mail server refuses for good is reported where it
/// is sent.
async fn report_given_up(
    app: &App,
    job: &ClaimedJob,
    error: &JobError,
) -> Result<(), DeliveryError> {
    text_messages::given_up(app, job).await?;
    if error.is_final() {
        return Ok(());
    }
    mails::given_up(app, job).await
}

/// Returns the seconds until the next try after failure number `attempt`, from 0. None gives the
/// job up.
fn wait(kind: &str, attempt: i64, error: &JobError) -> Option<u64> {
    let retries = JobKind::named(kind).map_or(RetryPolicy::Limited, |kind| kind.retries);
    if error.is_final() && retries != RetryPolicy::EvenRefused {
        return None;
    }
    let attempt = usize::try_from(attempt).unwrap_or(usize::MAX);
    let waits = retries != RetryPolicy::Limited || error.is_outage() && attempt < OUTAGE_ATTEMPTS;
    let last = RETRY_SECONDS.last().filter(|_| waits);
    RETRY_SECONDS.get(attempt).or(last).copied()
}

/// Reason why a job failed.
#[derive(Debug, thiserror::Error)]
enum JobError {
    #[error("payload: {0}")]
    Payload(#[from] serde_json::Error),
    #[error(transparent)]
    Service(#[from] ServiceError),
    #[error(transparent)]
    Callback(#[from] CallbackError),
    #[error(transparent)]
    Execute(#[from] room::execute::ExecuteError),
    #[error("mail: {0}")]
    Mail(#[from] DeliveryError),
    #[error(transparent)]
    Files(#[from] FilesError),
    /// The lease expired, and another worker took the job over.
    #[error("taken over")]
    Lost,
}

impl JobError {
    /// Returns whether a dependency could not be reached.
    fn is_outage(&self) -> bool {
        match self {
            Self::Service(error) => error.is_outage(),
            Self::Mail(error) => error.is_outage(),
            Self::Files(error) => error.is_unreachable(),
            _ => false,
        }
    }

    /// Returns whether a retry cannot succeed.
    fn is_final(&self) -> bool {
        match self {
            Self::Payload(_) => true,
            Self::Service(ServiceError::Refused(refusal)) => lifecycle::is_final(refusal),
            Self::Service(
                ServiceError::NotFound(_)
                | ServiceError::Store(StoreError::Destroyed)
                | ServiceError::Control(
                    ControlProblem::Refused(_)
                    | ControlProblem::ConsentRequired(_)
                    | ControlProblem::ReleasedToAnother
                    | ControlProblem::Pledged,
                ),
            ) => true,
            Self::Mail(error) => error.is_final(),
            _ => false,
        }
    }
}

/// Performs a job while renewing its lease.
async fn perform_leased(app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
    let work = std::pin::pin!(perform(app, job));
    // Work may take longer than a lease. Without renewals another node would start the same job beside it.
    let renewals = async {
        loop {
            tokio::time::sleep(RENEWAL).await;
            let until = app.clock.now() + LEASE;
            match jobs::renew(&app.store, job, until).await {
                Ok(LeaseRenewal::Renewed) => {}
                Ok(LeaseRenewal::TakenOver) => return JobError::Lost,
                // This worker removed the job and is about to end, or another one finished it.
                Ok(LeaseRenewal::Over) => {
                    tokio::time::sleep(RENEWAL).await;
                    return JobError::Lost;
                }
                Err(error) => {
                    tracing::warn!(job_id = job.id.as_str(), %error, "job lease was not renewed");
                }
            }
        }
    };

    tokio::select! {
        outcome = work => outcome,
        lost = renewals => Err(lost),
    }
}

/// Work of the jobs of one kind.
trait RunnableJob: JobPayload {
    async fn run(self, app: &App, job: &ClaimedJob) -> Result<NextStep, JobError>;
}

impl RunnableJob for VaultEnvelope {
    async fn run(self, app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
        let caller = Caller::system(job.org.clone());
        match &self.intent {
            Some(intent) => {
                vault_in::go_on(app, &app.vault, &caller, &self.envelope, intent).await?
            }
            None => {
                let id = self.envelope.as_str();
                vault_in::vault_in(app, &app.vault, &caller, id, VaultInEndpoint::Signed).await?;
            }
        }

        Ok(NextStep::Done)
    }
}

impl RunnableJob for CertifyAnew {
    async fn run(self, app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
        certify_anew::certify_anew(app, &job.org, &self.envelope).await?;
        Ok(NextStep::Done)
    }
}

impl RunnableJob for ArchiveSubmission {
    async fn run(self, app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
        expiry::archive(app, &job.org, &self.envelope).await?;
        Ok(NextStep::Done)
    }
}

impl RunnableJob for RemindByPlan {
    async fn run(self, app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
        Ok(reminders::by_plan(app, &job.org, &self.envelope, self.sent).await?)
    }
}

impl RunnableJob for WarnOfExpiry {
    async fn run(self, app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
        Ok(reminders::warn_of_expiry(app, &job.org, &self.envelope).await?)
    }
}

impl RunnableJob for SendPlanned {
    async fn run(self, app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
        let (locks, pages) = (&app.vault.locks, &app.pages);
        Ok(planned_sending::send(app, locks, pages, &job.org, &self).await?)
    }
}

impl RunnableJob for NoticeOfDate {
    async fn run(self, app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
        Ok(contract_dates::give_notice(app, &job.org, &self.envelope).await?)
    }
}

impl RunnableJob for CheckFunding {
    async fn run(self, app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
        Ok(funding::run(app, &job.org, &self).await?)
    }
}

impl RunnableJob for MailContractDate {
    async fn run(self, app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
        mails::about_contract_date(app, job, &self).await?;
        Ok(NextStep::Done)
    }
}

impl RunnableJob for WithdrawSubmission {
    async fn run(self, app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
        Ok(dispatch::withdraw_stray(app, &job.org, &self).await?)
    }
}

impl RunnableJob for ArchiveTemplate {
    async fn run(self, app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
        Ok(templates::deletion::archive(app, &job.org, &self.template).await?)
    }
}

impl RunnableJob for DeleteObject {
    async fn run(self, app: &App, _: &ClaimedJob) -> Result<NextStep, JobError> {
        // A running backup may still have to copy the object, and a legal hold keeps it.
        if let Some(until) = orphans::held(app, &self.key).await? {
            return Ok(NextStep::Again(until));
        }

        if let Some(KeptFile(instead)) = &self.instead {
            // Verify the replacement first: the object may be the last intact copy.
            app.files.verify(instead).await?;
        }

        app.files.delete(&self.key).await?;
        faults::pass("deleted");
        Ok(NextStep::Done)
    }
}

impl RunnableJob for FollowHold {
    async fn run(self, app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
        Ok(store_holds::follow(app, &job.org, &self.hold).await?)
    }
}

impl RunnableJob for DestroyRecord {
    async fn run(self, app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
        Ok(destruction::carry_on(app, &app.vault, &app.pages, &job.org, &self).await?)
    }
}

impl RunnableJob for ReleaseRecord {
    async fn run(self, app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
        Ok(inspection::releases::make(app, &job.org, &self.release).await?)
    }
}

impl RunnableJob for AdvanceTransfer {
    async fn run(self, app: &App, _: &ClaimedJob) -> Result<NextStep, JobError> {
        transfers::advance(app, &self.transfer).await?;
        Ok(NextStep::Done)
    }
}

impl RunnableJob for CompareRecords {
    async fn run(self, app: &App, _: &ClaimedJob) -> Result<NextStep, JobError> {
        similar::compare(app, &self).await?;
        Ok(NextStep::Done)
    }
}

impl RunnableJob for CheckTape {
    async fn run(self, app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
        tapes::check::check(app, &job.org, &self.tape).await?;
        Ok(NextStep::Done)
    }
}

impl RunnableJob for ImportRecords {
    async fn run(self, app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
        imports::run::run(app, &job.org, &self.import).await?;
        Ok(NextStep::Done)
    }
}

impl RunnableJob for DeleteTapeRows {
    async fn run(self, app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
        tapes::removal::delete_rows(app, &job.org, &self.tape).await?;
        Ok(NextStep::Done)
    }
}

impl RunnableJob for MailReleaseRequest {
    async fn run(self, app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
        mails::about_release(app, job, &self).await?;
        Ok(NextStep::Done)
    }
}

impl RunnableJob for MailView {
    async fn run(self, app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
        mails::about_view(app, job, &self.view).await?;
        Ok(NextStep::Done)
    }
}

impl RunnableJob for MailPartyInvitation {
    async fn run(self, app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
        mails::about_invitation(app, job, &self.invitation).await?;
        Ok(NextStep::Done)
    }
}

impl RunnableJob for MailOpenLink {
    async fn run(self, app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
        mails::about_open_link(app, job, &self).await?;
        Ok(NextStep::Done)
    }
}

impl RunnableJob for MailLinkHost {
    async fn run(self, app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
        mails::about_link_host(app, job, &self).await?;
        Ok(NextStep::Done)
    }
}

impl RunnableJob for MailSignIn {
    async fn run(self, app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
        mails::with_sign_in(app, job, &self.link).await?;
        Ok(NextStep::Done)
    }
}

impl RunnableJob for SendBatch {
    async fn run(self, app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
        Ok(bulk::drive::drive(app, &app.bulk, &job.org, &self.batch).await?)
    }
}

impl RunnableJob for VoidBatch {
    async fn run(self, app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
        Ok(bulk::tidy(app, &job.org, &self.batch).await?)
    }
}

macro_rules! envelope_mails {
    ($($job:ident: $deliver:path, $about:expr;)*) => {$(
        impl RunnableJob for $job {
            async fn run(self, app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
                $deliver(app, job, $about, self.0).await?;
                Ok(NextStep::Done)
            }
        }
    )*};
}

envelope_mails! {
    MailInvitation: mails::deliver, EnvelopeMailKind::Invitation;
    MailReminder: mails::deliver, EnvelopeMailKind::Reminder;
    MailAccessCode: mails::deliver, EnvelopeMailKind::AccessCode;
    MailCompletion: mails::deliver, EnvelopeMailKind::Completion;
    MailDecline: mails::deliver, EnvelopeMailKind::Decline;
    MailWithdrawal: mails::deliver, EnvelopeMailKind::Withdrawal;
    MailUndelivered: mails::deliver, EnvelopeMailKind::Undelivered;
    MailNotSent: mails::deliver, EnvelopeMailKind::NotSent;
    MailQuestion: mails::deliver, EnvelopeMailKind::Question;
    MailAnswer: mails::deliver, EnvelopeMailKind::Answer;
    MailLater: mails::deliver, EnvelopeMailKind::Later;
    TextInvitation: text_messages::deliver, TextMessageKind::Invitation;
    TextReminder: text_messages::deliver, TextMessageKind::Reminder;
    TextAccessCode: text_messages::deliver, TextMessageKind::AccessCode;
}

impl RunnableJob for MailEndpointFailing {
    async fn run(self, app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
        mails::about_endpoint(app, job, &self.endpoint, EndpointMailKind::Failing).await?;
        Ok(NextStep::Done)
    }
}

impl RunnableJob for MailEndpointDisabled {
    async fn run(self, app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
        mails::about_endpoint(app, job, &self.endpoint, EndpointMailKind::Disabled).await?;
        Ok(NextStep::Done)
    }
}

impl RunnableJob for ExecuteSubmission {
    async fn run(self, app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
        app.room().execute(&job.org, self.submission).await?;
        Ok(NextStep::Done)
    }
}

impl RunnableJob for FollowSubmission {
    async fn run(self, app: &App, _: &ClaimedJob) -> Result<NextStep, JobError> {
        let submission = self.submission().to_string();
        signing::catch_up(app, EMBEDDED, &submission).await?;
        Ok(NextStep::Done)
    }
}

impl RunnableJob for PaidInSandbox {
    async fn run(self, app: &App, _: &ClaimedJob) -> Result<NextStep, JobError> {
        // Left over from before the installation became a production one.
        if app.config.is_production() {
            return Ok(NextStep::Done);
        }
        payments::catch_up(app, EMBEDDED, self.intent()).await?;
        Ok(NextStep::Done)
    }
}

async fn perform(app: &App, job: &ClaimedJob) -> Result<NextStep, JobError> {
    async fn read_and_run<J: RunnableJob>(
        app: &App,
        job: &ClaimedJob,
    ) -> Result<NextStep, JobError> {
        J::deserialize(&job.payload)?.run(app, job).await
    }

    macro_rules! by_name {
        ($($job:ident)*) => {
            match job.kind.as_str() {
                $($job::NAME => read_and_run::<$job>(app, job).await,)*
                unknown => {
                    tracing::warn!(kind = unknown, "unknown job kind, leaving it to newer nodes");
                    Ok(NextStep::Again(app.clock.now() + UNKNOWN_WAIT))
                }
            }
        };
    }

    by_name! {
        VaultEnvelope CertifyAnew ArchiveSubmission RemindByPlan WarnOfExpiry SendPlanned WithdrawSubmission ArchiveTemplate DeleteObject FollowHold DestroyRecord
        NoticeOfDate MailContractDate CheckFunding
        SendBatch VoidBatch ReleaseRecord MailReleaseRequest MailView MailPartyInvitation MailOpenLink MailLinkHost MailSignIn AdvanceTransfer CompareRecords CheckTape DeleteTapeRows ImportRecords
        MailInvitation MailReminder MailAccessCode MailCompletion MailDecline MailWithdrawal MailUndelivered MailNotSent
        MailQuestion MailAnswer MailLater
        TextInvitation TextReminder TextAccessCode
        MailEndpointFailing MailEndpointDisabled
        ExecuteSubmission FollowSubmission PaidInSandbox
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_adapters::mail::MailError;
    use holdfast_components::providers::ProviderError;

    const INVITE: &str = MailInvitation::NAME;

    #[test]
    fn jobs_are_retried_for_hours_and_vaulting_jobs_for_ever() {
        let failure = || JobError::Service(ServiceError::Internal("a defect".into()));
        assert_eq!(wait(INVITE, 0, &failure()), Some(1));
        assert_eq!(wait(INVITE, 9, &failure()), Some(3600));
        assert_eq!(wait(INVITE, 10, &failure()), None);

        for kind in [VaultEnvelope::NAME, DeleteObject::NAME] {
            assert_eq!(wait(kind, 10_000, &failure()), Some(3600));
        }

        let gone = JobError::Service(ServiceError::NotFound("Envelope"));
        assert_eq!(wait(INVITE, 0, &gone), None);
        for kind in [SendBatch::NAME, DestroyRecord::NAME] {
            assert_eq!(wait(kind, 0, &gone), Some(1));
        }
    }

    /// A night without a mail server, object store or provider must lose nothing.
    #[test]
    fn retries_for_five_days_while_storage_is_unreachable() {
        let unreachable = || ProviderError::Unreachable("no route".into());
        for away in [
            JobError::Mail(MailError::Late(Duration::from_secs(60)).into()),
            JobError::Files(FilesError::TimedOut),
            JobError::Service(ServiceError::Provider(unreachable())),
        ] {
            assert_eq!(wait(INVITE, 10, &away), Some(3600));
            assert_eq!(wait(INVITE, 129, &away), Some(3600));
            assert_eq!(wait(INVITE, 130, &away), None);
        }
    }
}
