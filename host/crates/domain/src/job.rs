//! Kinds of jobs: name, payload, queue and retry policy. A job is committed in the transaction
//! of the change that needs it; `worker/jobs.rs` runs it.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::clock::Timestamp;
use super::destruction::DestructionCause;
use super::envelope::KeptFile;
use super::funding::FundingStage;
use super::id::{
    BatchId, EndpointId, EnvelopeId, HoldId, ImportId, IntentId, InvitationId, OpenLinkId,
    QuestionId, ReleaseId, SignInId, TapeId, TemplateId, TransferId, UserId, ViewId,
};

/// Queue with its own number of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobQueue {
    /// E-mail; a hanging mail server delays no contract.
    Mail,
    /// Text messages; a hanging provider delays no mail.
    Message,
    /// Bulk batches; a batch of a thousand delays no contract.
    Bulk,
    /// Everything else.
    Other,
}

/// Retry policy of a failing job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryPolicy {
    /// Several hours, or five days while a dependency is unreachable.
    Limited,
    /// No end, unless the rules refuse it.
    Endless,
    /// No end, even when the rules refuse it: an organization's rules can change.
    EvenRefused,
}

/// A kind of job. The value is the payload of one job.
pub trait JobPayload: Serialize + DeserializeOwned + Send {
    /// Name in the database, in metrics and in traces. Never changes: jobs of earlier
    /// releases are stored under it.
    const NAME: &'static str;
    /// Queue of the kind.
    const QUEUE: JobQueue = JobQueue::Other;
    /// Retry policy of the kind.
    const RETRIES: RetryPolicy = RetryPolicy::Limited;
}

/// Result of a job that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// The job is finished.
    Done,
    /// The job runs again at this time.
    Again(Timestamp),
}

/// Vaults a signed or uploaded envelope.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VaultEnvelope {
    /// The envelope.
    pub envelope: EnvelopeId,
    /// The recorded intent to continue; `None` vaults the envelope in its present state.
    pub intent: Option<IntentId>,
}

impl JobPayload for VaultEnvelope {
    const NAME: &'static str = "envelope.vault";
    /// A signed contract is never given up.
    const RETRIES: RetryPolicy = RetryPolicy::Endless;
}

/// Certifies a record for the party that control has passed to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CertifyAnew {
    /// The envelope.
    pub envelope: EnvelopeId,
}

impl JobPayload for CertifyAnew {
    const NAME: &'static str = "envelope.certify";
    const RETRIES: RetryPolicy = RetryPolicy::EvenRefused;
}

/// Ends the signing of an expired envelope at its provider.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ArchiveSubmission {
    /// Its id.
    pub envelope: EnvelopeId,
}

impl JobPayload for ArchiveSubmission {
    const NAME: &'static str = "submission.archive";
}

/// Reminds the signers of an envelope by its plan.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RemindByPlan {
    /// The envelope.
    pub envelope: EnvelopeId,
    /// Reminders that were sent before this one.
    pub sent: u8,
}

impl JobPayload for RemindByPlan {
    const NAME: &'static str = "envelope.remind";
}

/// Warns the signers of an envelope that it expires.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WarnOfExpiry {
    /// The envelope.
    pub envelope: EnvelopeId,
}

impl JobPayload for WarnOfExpiry {
    const NAME: &'static str = "envelope.expiry_warning";
}

/// Sends a draft at its planned time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SendPlanned {
    /// The envelope.
    pub envelope: EnvelopeId,
    /// The planned time. A draft with another one is left to the job of that.
    pub at: Timestamp,
}

impl JobPayload for SendPlanned {
    const NAME: &'static str = "envelope.send";
    /// A refusal is recorded, and so is what still fails after a day. The rest is tried again.
    const RETRIES: RetryPolicy = RetryPolicy::Endless;
}

/// Notifies people of near dates of a contract.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NoticeOfDate {
    /// The envelope.
    pub envelope: EnvelopeId,
}

impl JobPayload for NoticeOfDate {
    const NAME: &'static str = "envelope.date_notice";
}

/// Checks a contract by its funding rules.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckFunding {
    /// The envelope.
    pub envelope: EnvelopeId,
    /// Moment that the check belongs to.
    pub stage: FundingStage,
    /// When the check was asked for. A later one of the same moment takes its place.
    pub asked_at: Timestamp,
}

impl JobPayload for CheckFunding {
    const NAME: &'static str = "envelope.check_funding";
}

/// Notifies a person of a contract's date.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MailContractDate {
    /// The envelope.
    pub envelope: EnvelopeId,
    /// E-mail address of the person.
    pub to: String,
    /// What happens on the day.
    pub name: String,
    pub date: jiff::civil::Date,
}

impl JobPayload for MailContractDate {
    const NAME: &'static str = "mail.contract_date";
    const QUEUE: JobQueue = JobQueue::Mail;
}

/// Archives a submission at its provider that no envelope may name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WithdrawSubmission {
    /// The envelope that the submission was made for.
    pub envelope: EnvelopeId,
    /// Provider instance.
    pub instance: String,
    /// Id at the provider.
    pub submission: String,
}

impl JobPayload for WithdrawSubmission {
    const NAME: &'static str = "submission.withdraw";
}

/// Archives a deleted template at its provider.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ArchiveTemplate {
    /// Its id.
    pub template: TemplateId,
}

impl JobPayload for ArchiveTemplate {
    const NAME: &'static str = "template.archive";
}

/// Deletes a stored object that no record refers to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeleteObject {
    /// Storage key.
    pub key: String,
    /// The file that must be stored and intact before the deletion.
    pub instead: Option<KeptFile>,
}

impl JobPayload for DeleteObject {
    const NAME: &'static str = "object.delete";
    const RETRIES: RetryPolicy = RetryPolicy::Endless;
}

/// Makes the object store's own hold follow a legal hold.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FollowHold {
    /// The legal hold.
    pub hold: HoldId,
}

impl JobPayload for FollowHold {
    const NAME: &'static str = "object.hold";
    const QUEUE: JobQueue = JobQueue::Bulk;
    const RETRIES: RetryPolicy = RetryPolicy::Endless;
}

/// Destroys a record.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DestroyRecord {
    /// The record.
    pub envelope: EnvelopeId,
    /// Cause of the destruction.
    pub cause: DestructionCause,
}

impl JobPayload for DestroyRecord {
    const NAME: &'static str = "record.destroy";
    const QUEUE: JobQueue = JobQueue::Bulk;
    /// A destruction that has begun runs to its end. An obstacle at the beginning is a result, not an error.
    const RETRIES: RetryPolicy = RetryPolicy::EvenRefused;
}

/// Makes a release that the record's controller has agreed to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReleaseRecord {
    /// The requested release.
    pub release: ReleaseId,
}

impl JobPayload for ReleaseRecord {
    const NAME: &'static str = "control.release";
    const RETRIES: RetryPolicy = RetryPolicy::Endless;
}

/// Makes the step of a transfer that is in progress, for each of its records.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AdvanceTransfer {
    /// Its id.
    pub transfer: TransferId,
}

impl JobPayload for AdvanceTransfer {
    const NAME: &'static str = "control.transfer";
    const QUEUE: JobQueue = JobQueue::Bulk;
    const RETRIES: RetryPolicy = RetryPolicy::EvenRefused;
}

/// Compares the documents of records with those that other parties control.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CompareRecords {
    /// One record.
    pub record: Option<EnvelopeId>,
    /// The records of a transfer.
    pub transfer: Option<TransferId>,
}

impl JobPayload for CompareRecords {
    const NAME: &'static str = "control.compare";
    const QUEUE: JobQueue = JobQueue::Bulk;
}

/// Compares a tape with the contracts of its records.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckTape {
    /// Its id.
    pub tape: TapeId,
}

impl JobPayload for CheckTape {
    const NAME: &'static str = "control.tape";
    const QUEUE: JobQueue = JobQueue::Bulk;
    /// A tape that is no tape is recorded as refused, and one with a damaged file as failed. The rest is tried again.
    const RETRIES: RetryPolicy = RetryPolicy::Endless;
}

/// Makes records of the documents of an import.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ImportRecords {
    /// Its id.
    pub import: ImportId,
}

impl JobPayload for ImportRecords {
    const NAME: &'static str = "import.run";
    const QUEUE: JobQueue = JobQueue::Bulk;
    /// A row that cannot become a record is reported, and a damaged archive ends the import. The rest is tried again.
    const RETRIES: RetryPolicy = RetryPolicy::Endless;
}

/// Deletes the results of a deleted tape.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeleteTapeRows {
    /// Its id.
    pub tape: TapeId,
}

impl JobPayload for DeleteTapeRows {
    const NAME: &'static str = "control.tape_rows";
    const QUEUE: JobQueue = JobQueue::Bulk;
    const RETRIES: RetryPolicy = RetryPolicy::Endless;
}

/// Asks the controller of a record to agree to a release, or to refuse it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MailReleaseRequest {
    /// The requested release.
    pub release: ReleaseId,
    /// E-mail address of a person of the controller.
    pub to: String,
}

impl JobPayload for MailReleaseRequest {
    const NAME: &'static str = "mail.release_request";
    const QUEUE: JobQueue = JobQueue::Mail;
}

/// Sends a person the link to a record.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MailView {
    /// Their view.
    pub view: ViewId,
}

impl JobPayload for MailView {
    const NAME: &'static str = "mail.view";
    const QUEUE: JobQueue = JobQueue::Mail;
}

/// Sends a party the link to join.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MailPartyInvitation {
    /// Its invitation.
    pub invitation: InvitationId,
}

impl JobPayload for MailPartyInvitation {
    const NAME: &'static str = "mail.party_invitation";
    const QUEUE: JobQueue = JobQueue::Mail;
}

/// Notifies a person of a record that a visitor of an open link made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MailOpenLink {
    /// The link.
    pub link: OpenLinkId,
    /// The record.
    pub envelope: EnvelopeId,
    /// Place of the person among those that the link names, from 0.
    pub place: usize,
}

impl JobPayload for MailOpenLink {
    const NAME: &'static str = "mail.open_link";
    const QUEUE: JobQueue = JobQueue::Mail;
}

/// Notifies an owner or admin that new signing links of the organization lead to another host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MailLinkHost {
    /// The owner or admin.
    pub user: UserId,
    /// The host; none for the installation's address.
    pub host: Option<String>,
    /// Actor who changed it.
    pub by: String,
}

impl JobPayload for MailLinkHost {
    const NAME: &'static str = "mail.link_host";
    const QUEUE: JobQueue = JobQueue::Mail;
}

/// Sends a user a link to sign in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MailSignIn {
    /// The link.
    pub link: SignInId,
}

impl JobPayload for MailSignIn {
    const NAME: &'static str = "mail.sign_in";
    const QUEUE: JobQueue = JobQueue::Mail;
}

/// Sends items of a bulk batch for a while, then runs again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SendBatch {
    /// Its id.
    pub batch: BatchId,
}

impl JobPayload for SendBatch {
    const NAME: &'static str = "bulk.send";
    const QUEUE: JobQueue = JobQueue::Bulk;
    const RETRIES: RetryPolicy = RetryPolicy::EvenRefused;
}

/// Voids the envelopes that a cancelled bulk batch left open.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VoidBatch {
    /// Its id.
    pub batch: BatchId,
}

impl JobPayload for VoidBatch {
    const NAME: &'static str = "bulk.void";
    const QUEUE: JobQueue = JobQueue::Bulk;
    const RETRIES: RetryPolicy = RetryPolicy::EvenRefused;
}

/// Recipient of a mail or text message about an envelope.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MailAddressee {
    /// The envelope.
    pub envelope: EnvelopeId,
    /// Position of the signer; `None` is the creator of the envelope, or the planner of its sending.
    pub position: Option<i64>,
    /// Question that the mail is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<QuestionId>,
    /// Instead of the creator, the planner of the sending that failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_planner: bool,
}

/// A mail or text message about an envelope.
pub trait EnvelopeMail: JobPayload + From<MailAddressee> {}

/// A mail about a webhook endpoint, to its creator.
pub trait EndpointMail: JobPayload + From<EndpointId> {}

macro_rules! mails {
    ($($(#[$about:meta])* $job:ident = $name:literal in $queue:ident;)*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $job(pub MailAddressee);

        impl JobPayload for $job {
            const NAME: &'static str = $name;
            const QUEUE: JobQueue = JobQueue::$queue;
        }

        impl From<MailAddressee> for $job {
            fn from(to: MailAddressee) -> Self {
                Self(to)
            }
        }

        impl EnvelopeMail for $job {}
    )*};
}

mails! {
    /// Asks a signer to sign.
    MailInvitation = "signer.invite" in Mail;
    /// Gives a signer the code that opens the document.
    MailAccessCode = "signer.code" in Mail;
    /// Asks a signer again.
    MailReminder = "signer.remind" in Mail;
    /// Reports that all signers have signed.
    MailCompletion = "mail.completed" in Mail;
    /// Reports that a signer has declined.
    MailDecline = "mail.declined" in Mail;
    /// Reports that the sender has withdrawn the envelope.
    MailWithdrawal = "mail.withdrawn" in Mail;
    /// Reports that a mail to a signer could not be delivered.
    MailUndelivered = "mail.undelivered" in Mail;
    /// Reports to the creator or the planner that a draft was not sent at its planned time.
    MailNotSent = "mail.not_sent" in Mail;
    /// Gives the envelope's creator a signer's question.
    MailQuestion = "mail.question" in Mail;
    /// Gives a signer the sender's answer to a question.
    MailAnswer = "mail.answer" in Mail;
    /// Gives a signer who finishes later the own link.
    MailLater = "signer.later" in Mail;
    /// Asks a signer to sign.
    TextInvitation = "text.invite" in Message;
    /// Gives a signer the code that opens the document.
    TextAccessCode = "text.code" in Message;
    /// Asks a signer again.
    TextReminder = "text.remind" in Message;
}

macro_rules! endpoint_mails {
    ($($(#[$about:meta])* $job:ident = $name:literal;)*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, Serialize, Deserialize)]
        pub struct $job {
            /// Its id.
            pub endpoint: EndpointId,
        }

        impl JobPayload for $job {
            const NAME: &'static str = $name;
            const QUEUE: JobQueue = JobQueue::Mail;
        }

        impl From<EndpointId> for $job {
            fn from(endpoint: EndpointId) -> Self {
                Self { endpoint }
            }
        }

        impl EndpointMail for $job {}
    )*};
}

endpoint_mails! {
    /// Reports a webhook endpoint without a successful delivery for days.
    MailEndpointFailing = "mail.endpoint_failing";
    /// Reports that a webhook endpoint was disabled.
    MailEndpointDisabled = "mail.endpoint_disabled";
}

/// Makes the signing room's executed document.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExecuteSubmission {
    /// Its id.
    pub submission: i64,
}

impl JobPayload for ExecuteSubmission {
    const NAME: &'static str = "room.execute";
    const RETRIES: RetryPolicy = RetryPolicy::Endless;
}

/// Updates an envelope after a change of its submission in the signing room.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FollowSubmission {
    /// Nested because earlier releases stored the body of a callback as the payload.
    data: ChangedSubmission,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct ChangedSubmission {
    submission_id: i64,
}

impl FollowSubmission {
    pub fn of(submission: i64) -> Self {
        Self {
            data: ChangedSubmission {
                submission_id: submission,
            },
        }
    }

    /// Its id.
    pub fn submission(&self) -> i64 {
        self.data.submission_id
    }
}

impl JobPayload for FollowSubmission {
    const NAME: &'static str = "room.callback";
}

/// Updates a payment after a change in the sandbox.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PaidInSandbox {
    /// Nested because earlier releases stored the body of a callback as the payload.
    data: PaidData,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct PaidData {
    object: PaidIntent,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct PaidIntent {
    id: String,
}

impl PaidInSandbox {
    pub fn of(intent: &str) -> Self {
        let object = PaidIntent {
            id: intent.to_owned(),
        };
        Self {
            data: PaidData { object },
        }
    }

    /// Its id.
    pub fn intent(&self) -> &str {
        &self.data.object.id
    }
}

impl JobPayload for PaidInSandbox {
    const NAME: &'static str = "sandbox.callback";
}

/// Properties of a kind of jobs.
#[derive(Clone, Copy, Debug)]
pub struct JobKind {
    /// See [`JobPayload::NAME`].
    pub name: &'static str,
    /// See [`JobPayload::QUEUE`].
    pub queue: JobQueue,
    /// See [`JobPayload::RETRIES`].
    pub retries: RetryPolicy,
}

impl JobKind {
    const fn of<J: JobPayload>() -> Self {
        Self {
            name: J::NAME,
            queue: J::QUEUE,
            retries: J::RETRIES,
        }
    }

    /// Looks a kind up. `None` for kinds of later releases.
    pub fn named(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name == name)
    }
}

/// All kinds of jobs.
pub const KINDS: &[JobKind] = &[
    JobKind::of::<VaultEnvelope>(),
    JobKind::of::<CertifyAnew>(),
    JobKind::of::<ArchiveSubmission>(),
    JobKind::of::<RemindByPlan>(),
    JobKind::of::<WarnOfExpiry>(),
    JobKind::of::<SendPlanned>(),
    JobKind::of::<NoticeOfDate>(),
    JobKind::of::<MailContractDate>(),
    JobKind::of::<CheckFunding>(),
    JobKind::of::<WithdrawSubmission>(),
    JobKind::of::<ArchiveTemplate>(),
    JobKind::of::<DeleteObject>(),
    JobKind::of::<FollowHold>(),
    JobKind::of::<DestroyRecord>(),
    JobKind::of::<ReleaseRecord>(),
    JobKind::of::<AdvanceTransfer>(),
    JobKind::of::<CompareRecords>(),
    JobKind::of::<CheckTape>(),
    JobKind::of::<DeleteTapeRows>(),
    JobKind::of::<ImportRecords>(),
    JobKind::of::<MailReleaseRequest>(),
    JobKind::of::<MailView>(),
    JobKind::of::<MailPartyInvitation>(),
    JobKind::of::<MailOpenLink>(),
    JobKind::of::<MailLinkHost>(),
    JobKind::of::<MailSignIn>(),
    JobKind::of::<SendBatch>(),
    JobKind::of::<VoidBatch>(),
    JobKind::of::<MailInvitation>(),
    JobKind::of::<MailReminder>(),
    JobKind::of::<MailAccessCode>(),
    JobKind::of::<MailCompletion>(),
    JobKind::of::<MailDecline>(),
    JobKind::of::<MailWithdrawal>(),
    JobKind::of::<MailUndelivered>(),
    JobKind::of::<MailNotSent>(),
    JobKind::of::<MailQuestion>(),
    JobKind::of::<MailAnswer>(),
    JobKind::of::<MailLater>(),
    JobKind::of::<TextInvitation>(),
    JobKind::of::<TextAccessCode>(),
    JobKind::of::<TextReminder>(),
    JobKind::of::<MailEndpointFailing>(),
    JobKind::of::<MailEndpointDisabled>(),
    JobKind::of::<ExecuteSubmission>(),
    JobKind::of::<FollowSubmission>(),
    JobKind::of::<PaidInSandbox>(),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_kinds_have_unique_names() {
        for kind in KINDS {
            let same = KINDS.iter().filter(|other| other.name == kind.name);
            assert_eq!(same.count(), 1, "{}", kind.name);
        }
    }
}
