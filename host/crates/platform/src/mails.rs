//! Queues mails and text messages.
//!
//! Each message is a job of its own that commits with the change that causes it. An
//! unreachable address therefore delays no other recipient, and no mail announces a change
//! that was rolled back. The text of the mails is in `holdfast_adapters::mail`.

use std::time::Duration;

use serde_json::{Value, json};

use holdfast_adapters::mail::bounces::BounceMailbox;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{
    Envelope, Recipient, RecipientKind, Signer, SignerAccess, SignerChannel, SignerNotice,
    SignerStatus,
};
use holdfast_domain::event::EventType;
use holdfast_domain::id::{EndpointId, EnvelopeId, OrgId, QuestionId, SignerId};
use holdfast_domain::job::{
    EndpointMail, EnvelopeMail, JobQueue, MailAccessCode, MailAddressee, MailAnswer,
    MailCompletion, MailDecline, MailEndpointDisabled, MailEndpointFailing, MailInvitation,
    MailLater, MailNotSent, MailQuestion, MailReminder, MailUndelivered, MailWithdrawal,
    TextAccessCode, TextInvitation, TextReminder,
};
use holdfast_domain::question::SignerQuestion;

use crate::signers::{invited_now, signer_view};
use crate::{Core, ServiceError, events};
use holdfast_store::{
    StoreError, WriteTransaction, envelopes, jobs, ledger, organizations, signers,
};

/// Delay of completion mails while the envelope is being vaulted. Recipients then get the
/// vaulted copy, the one with its hash in the ledger, and it is rendered once. If vaulting
/// takes longer, the copy is rendered for the mail.
pub const VAULT_HEAD_START: Duration = Duration::from_secs(10);

/// Maximum length of a mail server's answer in the ledger, in characters.
const LONGEST_REASON: usize = 300;

/// Queues an invitation with a fresh link: to sign, or to read for a viewer. It goes the way that the
/// sender chose for the person. An envelope without mails is announced by text message only.
pub async fn invite(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    person: &dyn Person,
    now: Timestamp,
) -> Result<(), StoreError> {
    let by = person.notify_by();
    if envelope.sending.send_email && by != SignerChannel::Sms {
        queue::<MailInvitation>(tx, envelope, Some(person), now).await?;
    }
    if by != SignerChannel::Email {
        queue::<TextInvitation>(tx, envelope, Some(person), now).await?;
    }
    Ok(())
}

/// Invites a signer who now has the turn, and the substitutes who may sign in this place.
pub async fn invite_signer(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    signer: &Signer,
    now: Timestamp,
) -> Result<(), StoreError> {
    invite(tx, envelope, signer, now).await?;
    if signer.group.is_none() {
        return Ok(());
    }

    // Two signers of one group share a substitute; the mail is queued once by its key.
    let recipients = signers::recipients(tx, &envelope.org, &envelope.id).await?;
    let substitutes = recipients
        .iter()
        .filter(|recipient| recipient.group == signer.group);
    for substitute in substitutes {
        invite(tx, envelope, substitute, now).await?;
    }

    Ok(())
}

/// Queues a fresh link that the person has asked for: always by mail, and as a text message to a
/// signer who gets those.
pub async fn invite_again(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    person: &dyn Person,
    now: Timestamp,
) -> Result<(), StoreError> {
    if person.notify_by() != SignerChannel::Email {
        queue::<TextInvitation>(tx, envelope, Some(person), now).await?;
    }
    queue::<MailInvitation>(tx, envelope, Some(person), now).await
}

/// Records and emits that a mail cannot be delivered to a signer. `message` is the kind of mail, and
/// `reason` the answer of the mail server. The envelope's status stays.
pub async fn report_undelivered(
    core: &Core,
    envelope: &Envelope,
    signer: &Signer,
    message: &str,
    reason: &str,
) -> Result<(), ServiceError> {
    let mut tx = core.store.begin().await?;
    let data = undelivered(signer, message, reason);
    record_undelivered(core, &mut tx, (envelope, signer), data).await?;
    Ok(tx.commit().await?)
}

/// Records that the next server accepted a message to a signer.
pub async fn report_accepted(
    core: &Core,
    envelope: &Envelope,
    signer: &Signer,
) -> Result<(), StoreError> {
    let accepted = SignerNotice {
        at: core.clock.now(),
        failure: None,
    };
    let mut tx = core.store.begin().await?;
    signers::set_notice(&mut tx, envelope, signer, &accepted).await?;
    tx.commit().await
}

/// Records and emits what a bounce reports of a mail to a signer: another server returned it after
/// ours had accepted it. A repeated bounce changes nothing. Returns whether it was recorded, or why
/// it was not.
///
/// Bounces are not signed, and the person who got the mail knows its sender address. The record
/// therefore states that a bounce reported the failure.
pub async fn take_bounce(
    core: &Core,
    mailbox: &BounceMailbox,
    message: &str,
) -> Result<BounceOutcome, ServiceError> {
    let mail = match mailbox.read(message) {
        Ok(mail) => mail,
        Err(error) => return Ok(BounceOutcome::Ignored(error.to_string())),
    };

    // The address has no room for the organization.
    let mut connection = core.store.read().await?;
    let mut organizations = organizations::list(&mut connection).await?.into_iter();
    let org = loop {
        let Some(organization) = organizations.next() else {
            return Ok(BounceOutcome::Ignored("there is no such envelope".into()));
        };

        let org = organization.id;
        if envelopes::get_with_destroyed(&mut connection, &org, &mail.envelope)
            .await?
            .is_some()
        {
            break org;
        }
    };

    drop(connection);

    let mut tx = core.store.begin().await?;
    let found = envelopes::lock_with_destroyed(&mut tx, &org, &mail.envelope).await?;
    let envelope = found.filter(|envelope| envelope.destruction.is_none());
    let people = signers::list(&mut tx, &org, &mail.envelope).await?;
    let mut people = people.into_iter();
    let signer = people.find(|signer| signer.position == mail.position);
    let signer = signer.filter(|signer| mailbox.was_sent_to(&mail, signer));
    let (Some(envelope), Some(signer)) = (envelope, signer) else {
        let why = "the mail was sent to no present signer of the envelope";
        return Ok(BounceOutcome::Ignored(why.into()));
    };

    // A mail server may hand over a bounce twice, and the receiver of the mail may write more of them.
    let which = mail.id();
    let entries = ledger::list(&mut tx, Some(&org), &mail.envelope).await?;
    if entries
        .iter()
        .any(|entry| entry.details["bounce"] == *which)
    {
        return Ok(BounceOutcome::Ignored("it was recorded before".into()));
    }

    let mut data = undelivered(&signer, mail.kind, &mail.reason);
    data["bounce"] = which.into();
    record_undelivered(core, &mut tx, (&envelope, &signer), data).await?;
    tx.commit().await?;

    Ok(BounceOutcome::Recorded {
        envelope: mail.envelope,
        signer: signer.id,
        reason: mail.reason,
    })
}

/// Result of a message to the mailbox of returned mails.
pub enum BounceOutcome {
    /// It is in the custody ledger of the envelope.
    Recorded {
        envelope: EnvelopeId,
        signer: SignerId,
        reason: String,
    },
    /// Nothing changed, for this reason.
    Ignored(String),
}

fn undelivered(signer: &Signer, message: &str, reason: &str) -> Value {
    let reason: String = reason.chars().take(LONGEST_REASON).collect();
    json!({ "signer": signer_view(signer), "message": message, "reason": reason })
}

async fn record_undelivered(
    core: &Core,
    tx: &mut WriteTransaction,
    (envelope, signer): (&Envelope, &Signer),
    mut data: Value,
) -> Result<(), StoreError> {
    let now = core.clock.now();
    data["at"] = json!(now);
    let failure = SignerNotice {
        at: now,
        failure: data["reason"].as_str().map(ToOwned::to_owned),
    };
    signers::set_notice(tx, envelope, signer, &failure).await?;

    let failed = EventType::SignerDeliveryFailed;
    events::record_and_emit(tx, envelope, "system", failed, data, now).await?;

    // The creator gets a mail too, for want of webhooks.
    if envelope.creator_email().is_some() {
        queue::<MailUndelivered>(tx, envelope, None, now).await?;
    }

    Ok(())
}

/// Queues the mails to the creator of a draft that was not sent at its planned time, and to its planner. A person
/// who is both gets one.
pub async fn not_sent(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    now: Timestamp,
) -> Result<(), StoreError> {
    let creator = envelope.creator_email();
    if creator.is_some() {
        queue::<MailNotSent>(tx, envelope, None, now).await?;
    }

    let planner = envelope.failed_planner();
    let planner =
        planner.filter(|planner| creator.is_none_or(|creator| !is_same(creator, planner)));
    let Some(planner) = planner else {
        return Ok(());
    };
    let mail = MailNotSent::from(MailAddressee {
        envelope: envelope.id.clone(),
        position: None,
        question: None,
        is_planner: true,
    });
    let key = format!("{}:planner:{planner}", envelope.id);
    jobs::insert_or_revive(tx, &envelope.org, &mail, &key, now).await
}

/// Queues the mail or text message with the code that opens the document.
pub async fn access_code(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    signer: &Signer,
    now: Timestamp,
) -> Result<(), StoreError> {
    // Each code is a message of its own, also while an earlier one is still being sent.
    let sent_at = now.to_string();
    match (signer.access, &signer.phone) {
        (SignerAccess::SmsCode, Some(_)) => {
            queue_once::<TextAccessCode>(tx, envelope, Some(signer), &sent_at, now).await
        }
        _ => queue_once::<MailAccessCode>(tx, envelope, Some(signer), &sent_at, now).await,
    }
}

/// Queues a reminder with a fresh link for the signer.
pub async fn remind(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    signer: &Signer,
    now: Timestamp,
) -> Result<(), StoreError> {
    let by = Person::notify_by(signer);
    if by != SignerChannel::Sms {
        queue::<MailReminder>(tx, envelope, Some(signer), now).await?;
    }
    if by != SignerChannel::Email {
        queue::<TextReminder>(tx, envelope, Some(signer), now).await?;
    }
    Ok(())
}

/// Queues the mail with a signer's question to the creator, if the creator has an address.
pub async fn question(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    question: &SignerQuestion,
    now: Timestamp,
) -> Result<(), StoreError> {
    if envelope.creator_email().is_none() {
        return Ok(());
    }
    queue_about::<MailQuestion>(tx, envelope, None, &question.id, now).await
}

/// Queues the mail with the sender's answer to the signer who asked.
pub async fn answered(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    signer: &Signer,
    question: &SignerQuestion,
    now: Timestamp,
) -> Result<(), StoreError> {
    queue_about::<MailAnswer>(tx, envelope, Some(signer), &question.id, now).await
}

/// Queues the mail with a fresh link for a signer who finishes later.
pub async fn later(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    signer: &Signer,
    now: Timestamp,
) -> Result<(), StoreError> {
    queue::<MailLater>(tx, envelope, Some(signer), now).await
}

/// Queues completion mails to signers, recipients and the creator, not to be sent before `at`.
pub async fn completed(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    at: Timestamp,
) -> Result<(), StoreError> {
    let signers = signers::list(tx, &envelope.org, &envelope.id).await?;
    let recipients = signers::recipients(tx, &envelope.org, &envelope.id).await?;
    let all = people(&signers).chain(people(&recipients));

    // A creator who also takes part gets the mail of the others.
    let creator_is_told = all.clone().any(|person| is_creator(envelope, person));
    for person in distinct(all) {
        queue::<MailCompletion>(tx, envelope, Some(person), at).await?;
    }

    if envelope.creator_email().is_some() && !creator_is_told {
        queue::<MailCompletion>(tx, envelope, None, at).await?;
    }

    Ok(())
}

/// Queues another mail with the signed copy.
pub async fn copy_again(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    person: &dyn Person,
    now: Timestamp,
) -> Result<(), StoreError> {
    queue::<MailCompletion>(tx, envelope, Some(person), now).await
}

/// Queues mails to the creator and the invited signers about a declined envelope.
pub async fn declined(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    now: Timestamp,
) -> Result<(), StoreError> {
    let signers = signers::list(tx, &envelope.org, &envelope.id).await?;
    let recipients = signers::recipients(tx, &envelope.org, &envelope.id).await?;
    for person in distinct(invited(envelope, &signers, &recipients)) {
        // The creator's own mail is queued below.
        if !is_creator(envelope, person) {
            queue::<MailDecline>(tx, envelope, Some(person), now).await?;
        }
    }

    if envelope.creator_email().is_some() {
        queue::<MailDecline>(tx, envelope, None, now).await?;
    }

    Ok(())
}

/// Queues mails to the invited signers that the envelope was withdrawn, or that its document was corrected. `envelope` is
/// the record from before it was voided.
pub async fn withdrawn(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    now: Timestamp,
) -> Result<(), StoreError> {
    // Signers of an envelope that was never sent do not know of it.
    if !envelope.status.is_out_for_signing() {
        return Ok(());
    }

    let signers = signers::list(tx, &envelope.org, &envelope.id).await?;
    let recipients = signers::recipients(tx, &envelope.org, &envelope.id).await?;
    for person in distinct(invited(envelope, &signers, &recipients)) {
        queue::<MailWithdrawal>(tx, envelope, Some(person), now).await?;
    }

    Ok(())
}

/// Queues a mail to the endpoint's owner: deliveries are failing.
pub async fn endpoint_failing(
    tx: &mut WriteTransaction,
    org: &OrgId,
    endpoint: &EndpointId,
    now: Timestamp,
) -> Result<(), StoreError> {
    queue_of_endpoint::<MailEndpointFailing>(tx, org, endpoint, now).await
}

/// Queues a mail to the endpoint's owner: the endpoint was disabled.
pub async fn endpoint_disabled(
    tx: &mut WriteTransaction,
    org: &OrgId,
    endpoint: &EndpointId,
    now: Timestamp,
) -> Result<(), StoreError> {
    queue_of_endpoint::<MailEndpointDisabled>(tx, org, endpoint, now).await
}

async fn queue_of_endpoint<M: EndpointMail>(
    tx: &mut WriteTransaction,
    org: &OrgId,
    endpoint: &EndpointId,
    now: Timestamp,
) -> Result<(), StoreError> {
    let mail = M::from(endpoint.clone());
    jobs::insert_or_revive(tx, org, &mail, endpoint.as_str(), now).await
}

/// Inserts the mail's job in the transaction of the change. An unsent or failed job with
/// the same key is revived instead of adding a second one.
async fn queue<M: EnvelopeMail>(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    to: Option<&dyn Person>,
    now: Timestamp,
) -> Result<(), StoreError> {
    // A corrected number gets a message of its own.
    let phone = match M::QUEUE {
        JobQueue::Message => to.map_or("", Person::phone),
        _ => "",
    };
    queue_once::<M>(tx, envelope, to, phone, now).await
}

/// Like [`queue`], for one of several mails to the same person; `which` distinguishes them.
async fn queue_once<M: EnvelopeMail>(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    to: Option<&dyn Person>,
    which: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    insert::<M>(tx, envelope, (to, None), which, now).await
}

/// Like [`queue`], for a mail about a question of a signer. Each question has mails of its own.
async fn queue_about<M: EnvelopeMail>(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    to: Option<&dyn Person>,
    question: &QuestionId,
    now: Timestamp,
) -> Result<(), StoreError> {
    insert::<M>(tx, envelope, (to, Some(question)), question.as_str(), now).await
}

async fn insert<M: EnvelopeMail>(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    (to, question): (Option<&dyn Person>, Option<&QuestionId>),
    which: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let addressee = MailAddressee {
        envelope: envelope.id.clone(),
        position: to.map(Person::position),
        question: question.cloned(),
        is_planner: false,
    };
    let whom = match addressee.position {
        Some(position) => position.to_string(),
        None => "creator".to_owned(),
    };

    // The address is part of the key, so that a signer who replaces another one gets a
    // mail of their own.
    let address = to.map_or("", Person::email);
    let mut key = format!("{}:{whom}:{address}", envelope.id);
    if !which.is_empty() {
        key = format!("{key}:{which}");
    }

    jobs::insert_or_revive(tx, &envelope.org, &M::from(addressee), &key, now).await
}

/// Signer or recipient, as the addressee of a mail.
pub trait Person: Sync {
    fn position(&self) -> i64;
    fn email(&self) -> &str;

    /// How the person gets invitations.
    fn notify_by(&self) -> SignerChannel {
        SignerChannel::Email
    }

    /// Telephone in E.164; empty if there is none.
    fn phone(&self) -> &str {
        ""
    }
}

impl Person for Signer {
    fn position(&self) -> i64 {
        self.position
    }

    fn email(&self) -> &str {
        &self.email
    }

    /// A person who took the place at another signing provider has no telephone here.
    fn notify_by(&self) -> SignerChannel {
        match self.phone {
            Some(_) => self.notify_by,
            None => SignerChannel::Email,
        }
    }

    fn phone(&self) -> &str {
        self.phone.as_deref().unwrap_or_default()
    }
}

impl Person for Recipient {
    fn position(&self) -> i64 {
        self.position
    }

    fn email(&self) -> &str {
        &self.email
    }
}

fn people<P: Person>(people: &[P]) -> impl Iterator<Item = &dyn Person> + Clone {
    people.iter().map(|person| person as &dyn Person)
}

/// Returns the signers who were invited, or who opened the envelope through a link, the viewers, and the substitutes of
/// these signers.
fn invited<'a>(
    envelope: &Envelope,
    signers: &'a [Signer],
    recipients: &'a [Recipient],
) -> Vec<&'a dyn Person> {
    let turn: Vec<i64> = invited_now(envelope, signers)
        .map(|signer| signer.position)
        .collect();
    let signers: Vec<&Signer> = signers
        .iter()
        .filter(|signer| signer.status != SignerStatus::Pending || turn.contains(&signer.position))
        .collect();

    // A substitute is invited with the first signer of the group.
    let is_called = |recipient: &Recipient| {
        let mut groups = signers.iter().map(|signer| &signer.group);
        recipient.kind != RecipientKind::Substitute || groups.any(|group| *group == recipient.group)
    };
    let readers = recipients
        .iter()
        .filter(|recipient| recipient.kind.reads_along() && is_called(recipient))
        .map(|recipient| recipient as &dyn Person);
    let signers = signers.iter().map(|signer| *signer as &dyn Person);
    signers.chain(readers).collect()
}

/// Removes people with a repeated address: a person in two roles gets one mail.
fn distinct<'a>(people: impl IntoIterator<Item = &'a dyn Person>) -> Vec<&'a dyn Person> {
    let mut told: Vec<&dyn Person> = Vec::new();
    for person in people {
        if !told
            .iter()
            .any(|other| is_same(other.email(), person.email()))
        {
            told.push(person);
        }
    }

    told
}

fn is_creator(envelope: &Envelope, person: &dyn Person) -> bool {
    envelope
        .creator_email()
        .is_some_and(|creator| is_same(creator, person.email()))
}

fn is_same(left: &str, right: &str) -> bool {
    left.trim().eq_ignore_ascii_case(right.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::envelope::{EnvelopeKind, SentDocument};
    use holdfast_domain::id::{CustomerId, OrgId};

    fn envelope(preserve_signing_order: bool) -> Envelope {
        let now = Timestamp::from_millis(0);
        let new = Envelope::new(
            OrgId::new(),
            CustomerId::new(),
            "Contract".into(),
            EnvelopeKind::Esign,
            "key:key_1".into(),
            now,
        );

        let sending = SentDocument {
            preserve_signing_order,
            ..SentDocument::default()
        };
        Envelope { sending, ..new }
    }

    fn signer(position: i64, email: &str, status: SignerStatus) -> Signer {
        let role = format!("Role {position}");
        Signer {
            status,
            ..Signer::new(position, "Ann".into(), email.into(), role)
        }
    }

    fn positions(people: &[&dyn Person]) -> Vec<i64> {
        people.iter().map(|person| person.position()).collect()
    }

    #[test]
    fn outcome_mails_go_only_to_invited_signers() {
        let signers = [
            signer(0, "a@example.com", SignerStatus::Completed),
            signer(1, "b@example.com", SignerStatus::Declined),
            signer(2, "c@example.com", SignerStatus::Pending),
        ];
        let told = |ordered| positions(&invited(&envelope(ordered), &signers, &[]));
        assert_eq!(told(true), [0, 1]);
        assert_eq!(told(false), [0, 1, 2]);
    }

    #[test]
    fn outcome_mails_go_only_to_substitutes_of_invited_signers() {
        let substitute = |position, group: &str| Recipient {
            position,
            name: "Bob".into(),
            email: format!("{group}@example.com"),
            kind: RecipientKind::Substitute,
            group: Some(group.into()),
        };
        let manager = |position, group: &str| Signer {
            group: Some(group.into()),
            ..signer(position, "a@example.com", SignerStatus::Pending)
        };
        let signers = [manager(0, "managers"), manager(1, "lawyers")];
        let substitutes = [substitute(2, "managers"), substitute(3, "lawyers")];
        let told = |ordered| positions(&invited(&envelope(ordered), &signers, &substitutes));
        assert_eq!(told(true), [0, 2]);
        assert_eq!(told(false), [0, 1, 2, 3]);
    }

    #[test]
    fn a_person_with_two_signer_roles_gets_one_mail() {
        let signers = [
            signer(0, "a@example.com", SignerStatus::Completed),
            signer(1, "A@Example.com ", SignerStatus::Completed),
        ];
        assert_eq!(positions(&distinct(people(&signers))), [0]);
    }

    #[test]
    fn an_api_key_without_an_owner_has_no_mail_address() {
        assert_eq!(envelope(true).creator_email(), None);
    }
}
