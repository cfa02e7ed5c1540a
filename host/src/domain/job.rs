//! Jobs: work that is committed with the change that asks for it. What each is called, what it is
//! about, and how long it is tried. `worker/jobs.rs` does them.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::clock::Timestamp;
use super::envelope::KeptFile;
use super::id::{BatchId, EndpointId, EnvelopeId, IntentId, TemplateId};

/// Which jobs wait for each other's slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// A mail server that hangs holds up no contract.
    Mail,
    /// Nor does a batch of a thousand.
    Bulk,
    /// Everything else.
    Other,
}

/// How long a failing job is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retries {
    /// For some hours; while what it needs is away, for five days.
    Limited,
    /// Until it is done or refused for good.
    Endless,
    /// Until it is done: what is refused today may be allowed tomorrow.
    EvenRefused,
}

/// A kind of job: the value is what one job is about.
pub trait Job: Serialize + DeserializeOwned + Send {
    /// What jobs of the kind are called in the database, in metrics and in traces. Jobs of
    /// earlier releases wait under it, so that it never changes.
    const NAME: &'static str;
    /// Where it waits.
    const QUEUE: Queue = Queue::Other;
    /// How long it is tried.
    const RETRIES: Retries = Retries::Limited;
}

/// What a job has come to that has done its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing is left to do.
    Done,
    /// There is more to do, from then on.
    Again(Timestamp),
}

/// Vaults a signed or uploaded envelope.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VaultEnvelope {
    /// Which.
    pub envelope: EnvelopeId,
    /// Only what was intended then; none: whatever there is to vault.
    pub intent: Option<IntentId>,
}

impl Job for VaultEnvelope {
    const NAME: &'static str = "envelope.vault";
    /// A signed contract is never given up.
    const RETRIES: Retries = Retries::Endless;
}

/// Ends the signing of an expired envelope at its provider.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ArchiveSubmission {
    /// Which.
    pub envelope: EnvelopeId,
}

impl Job for ArchiveSubmission {
    const NAME: &'static str = "submission.archive";
}

/// Archives a submission at its provider that no envelope may name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WithdrawSubmission {
    /// For which it was made.
    pub envelope: EnvelopeId,
    /// The provider's.
    pub instance: String,
    /// Its id there.
    pub submission: String,
}

impl Job for WithdrawSubmission {
    const NAME: &'static str = "submission.withdraw";
}

/// Archives a deleted template at its provider.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ArchiveTemplate {
    /// Which.
    pub template: TemplateId,
}

impl Job for ArchiveTemplate {
    const NAME: &'static str = "template.archive";
}

/// Removes stored bytes that nobody points to any more.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeleteObject {
    /// Where they are.
    pub key: String,
    /// What has to be there, and whole, before they may go.
    pub instead: Option<KeptFile>,
}

impl Job for DeleteObject {
    const NAME: &'static str = "object.delete";
    const RETRIES: Retries = Retries::Endless;
}

/// Works on a bulk batch for a while, and is put back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SendBatch {
    /// Which.
    pub batch: BatchId,
}

impl Job for SendBatch {
    const NAME: &'static str = "bulk.send";
    const QUEUE: Queue = Queue::Bulk;
    const RETRIES: Retries = Retries::EvenRefused;
}

/// Ends what a cancelled bulk batch has left.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VoidBatch {
    /// Which.
    pub batch: BatchId,
}

impl Job for VoidBatch {
    const NAME: &'static str = "bulk.void";
    const QUEUE: Queue = Queue::Bulk;
    const RETRIES: Retries = Retries::EvenRefused;
}

/// Who is mailed about an envelope.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Addressee {
    /// About which.
    pub envelope: EnvelopeId,
    /// The signer at this position; none: who created the envelope.
    pub position: Option<i64>,
}

/// A mail about an envelope.
pub trait EnvelopeMail: Job + From<Addressee> {}

/// A mail about a webhook endpoint, to who made it.
pub trait EndpointMail: Job + From<EndpointId> {}

macro_rules! mails {
    ($($(#[$about:meta])* $job:ident = $name:literal;)*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $job(pub Addressee);

        impl Job for $job {
            const NAME: &'static str = $name;
            const QUEUE: Queue = Queue::Mail;
        }

        impl From<Addressee> for $job {
            fn from(to: Addressee) -> Self {
                Self(to)
            }
        }

        impl EnvelopeMail for $job {}
    )*};
}

mails! {
    /// Asks a signer to sign.
    MailInvitation = "signer.invite";
    /// Asks a signer again.
    MailReminder = "signer.remind";
    /// Says that everybody has signed.
    MailCompletion = "mail.completed";
    /// Says that somebody has declined.
    MailDecline = "mail.declined";
    /// Says that the sender wants no signature any more.
    MailWithdrawal = "mail.withdrawn";
}

macro_rules! endpoint_mails {
    ($($(#[$about:meta])* $job:ident = $name:literal;)*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, Serialize, Deserialize)]
        pub struct $job {
            /// Which.
            pub endpoint: EndpointId,
        }

        impl Job for $job {
            const NAME: &'static str = $name;
            const QUEUE: Queue = Queue::Mail;
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
    /// Says that nothing has arrived at a webhook endpoint for days.
    MailEndpointFailing = "mail.endpoint_failing";
    /// Says that a webhook endpoint was disabled.
    MailEndpointDisabled = "mail.endpoint_disabled";
}

/// Makes the signing room's executed document.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExecuteSubmission {
    /// Which.
    pub submission: i64,
}

impl Job for ExecuteSubmission {
    const NAME: &'static str = "room.execute";
    const RETRIES: Retries = Retries::Endless;
}

/// Tells the host of a change in the signing room: the body of a callback.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RoomCallback(pub Value);

impl Job for RoomCallback {
    const NAME: &'static str = "room.callback";
}

/// Tells the host of a payment in the sandbox: the body of a callback.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SandboxCallback(pub Value);

impl Job for SandboxCallback {
    const NAME: &'static str = "sandbox.callback";
}

/// What there is to know of a kind without a job of it.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// See [`Job::NAME`].
    pub name: &'static str,
    /// See [`Job::QUEUE`].
    pub queue: Queue,
    /// See [`Job::RETRIES`].
    pub retries: Retries,
}

impl Kind {
    const fn of<J: Job>() -> Self {
        Self {
            name: J::NAME,
            queue: J::QUEUE,
            retries: J::RETRIES,
        }
    }

    /// By its name. None: a later release's.
    pub fn named(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name == name)
    }
}

/// All kinds.
pub const KINDS: &[Kind] = &[
    Kind::of::<VaultEnvelope>(),
    Kind::of::<ArchiveSubmission>(),
    Kind::of::<WithdrawSubmission>(),
    Kind::of::<ArchiveTemplate>(),
    Kind::of::<DeleteObject>(),
    Kind::of::<SendBatch>(),
    Kind::of::<VoidBatch>(),
    Kind::of::<MailInvitation>(),
    Kind::of::<MailReminder>(),
    Kind::of::<MailCompletion>(),
    Kind::of::<MailDecline>(),
    Kind::of::<MailWithdrawal>(),
    Kind::of::<MailEndpointFailing>(),
    Kind::of::<MailEndpointDisabled>(),
    Kind::of::<ExecuteSubmission>(),
    Kind::of::<RoomCallback>(),
    Kind::of::<SandboxCallback>(),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_kinds_have_one_name() {
        for kind in KINDS {
            let same = KINDS.iter().filter(|other| other.name == kind.name);
            assert_eq!(same.count(), 1, "{}", kind.name);
        }
    }
}
