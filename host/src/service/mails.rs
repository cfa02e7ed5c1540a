//! Queues mails: which recipients are notified, and when.
//!
//! Each mail is a job of its own that commits with the change that causes it. An
//! unreachable address therefore delays no other recipient, and no mail announces a change
//! that was rolled back. The text of the mails is in `mail`.

use std::time::Duration;

use crate::domain::clock::Timestamp;
use crate::domain::envelope::{Envelope, Signer, SignerStatus};
use crate::domain::id::{EndpointId, OrgId};
use crate::domain::job::{
    EndpointMail, EnvelopeMail, MailAddressee, MailCompletion, MailDecline, MailEndpointDisabled,
    MailEndpointFailing, MailInvitation, MailReminder, MailWithdrawal,
};
use crate::service::envelopes::invited_now;
use crate::store::{StoreError, WriteTransaction, jobs, signers};

/// Delay of completion mails while the envelope is being vaulted. Recipients then get the
/// vaulted copy, the one with its hash in the ledger, and it is rendered once. If vaulting
/// takes longer, the copy is rendered for the mail.
pub const VAULT_HEAD_START: Duration = Duration::from_secs(10);

/// Queues an invitation with a fresh link for the signer.
pub async fn invite(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    signer: &Signer,
    now: Timestamp,
) -> Result<(), StoreError> {
    queue::<MailInvitation>(tx, envelope, Some(signer), now).await
}

/// Queues a reminder with a fresh link for the signer.
pub async fn remind(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    signer: &Signer,
    now: Timestamp,
) -> Result<(), StoreError> {
    queue::<MailReminder>(tx, envelope, Some(signer), now).await
}

/// Queues completion mails to every signer and the creator, not to be sent before `at`.
pub async fn completed(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    at: Timestamp,
) -> Result<(), StoreError> {
    let signers = signers::list(tx, &envelope.org, &envelope.id).await?;
    for signer in distinct(&signers) {
        queue::<MailCompletion>(tx, envelope, Some(signer), at).await?;
    }
    // A creator who also signs gets the signers' mail.
    let creator_signs = signers.iter().any(|signer| is_creator(envelope, signer));
    if envelope.creator_email().is_some() && !creator_signs {
        queue::<MailCompletion>(tx, envelope, None, at).await?;
    }
    Ok(())
}

/// Queues another mail with the signed copy for a signer.
pub async fn copy_again(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    signer: &Signer,
    now: Timestamp,
) -> Result<(), StoreError> {
    queue::<MailCompletion>(tx, envelope, Some(signer), now).await
}

/// Queues mails to the creator and the invited signers about a declined envelope.
pub async fn declined(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    now: Timestamp,
) -> Result<(), StoreError> {
    let signers = signers::list(tx, &envelope.org, &envelope.id).await?;
    for signer in distinct(invited(envelope, &signers)) {
        // The creator's own mail is queued below.
        if !is_creator(envelope, signer) {
            queue::<MailDecline>(tx, envelope, Some(signer), now).await?;
        }
    }
    if envelope.creator_email().is_some() {
        queue::<MailDecline>(tx, envelope, None, now).await?;
    }
    Ok(())
}

/// Queues mails to the invited signers that the envelope was withdrawn. `envelope` is the
/// record from before it was voided.
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
    for signer in distinct(invited(envelope, &signers)) {
        queue::<MailWithdrawal>(tx, envelope, Some(signer), now).await?;
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
    to: Option<&Signer>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let addressee = MailAddressee {
        envelope: envelope.id.clone(),
        position: to.map(|signer| signer.position),
    };
    let whom = match addressee.position {
        Some(position) => position.to_string(),
        None => "creator".to_owned(),
    };
    // The address is part of the key, so that a signer who replaces another one gets a
    // mail of their own.
    let address = to.map_or("", |signer| signer.email.as_str());
    let key = format!("{}:{whom}:{address}", envelope.id);
    jobs::insert_or_revive(tx, &envelope.org, &M::from(addressee), &key, now).await
}

/// Returns the signers who were invited, or who opened the envelope through a link.
fn invited<'a>(envelope: &Envelope, signers: &'a [Signer]) -> Vec<&'a Signer> {
    let turn: Vec<i64> = invited_now(envelope, signers)
        .map(|signer| signer.position)
        .collect();
    signers
        .iter()
        .filter(|signer| signer.status != SignerStatus::Pending || turn.contains(&signer.position))
        .collect()
}

/// Removes signers with a repeated address: a person in two roles gets one mail.
fn distinct<'a>(signers: impl IntoIterator<Item = &'a Signer>) -> Vec<&'a Signer> {
    let mut told: Vec<&Signer> = Vec::new();
    for signer in signers {
        if !told
            .iter()
            .any(|other| is_same(&other.email, &signer.email))
        {
            told.push(signer);
        }
    }
    told
}

fn is_creator(envelope: &Envelope, signer: &Signer) -> bool {
    envelope
        .creator_email()
        .is_some_and(|creator| is_same(creator, &signer.email))
}

fn is_same(left: &str, right: &str) -> bool {
    left.trim().eq_ignore_ascii_case(right.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::envelope::{EnvelopeKind, SentDocument};
    use crate::domain::id::{CustomerId, OrgId};

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
        Signer {
            position,
            name: "Ann".into(),
            email: email.into(),
            role: format!("Role {position}"),
            status,
            provider_submitter: None,
            completed_at: None,
            decline_reason: None,
            challenged: false,
            locale: None,
        }
    }

    fn positions(signers: &[&Signer]) -> Vec<i64> {
        signers.iter().map(|signer| signer.position).collect()
    }

    #[test]
    fn outcome_mails_go_only_to_invited_signers() {
        let signers = [
            signer(0, "a@example.com", SignerStatus::Completed),
            signer(1, "b@example.com", SignerStatus::Declined),
            signer(2, "c@example.com", SignerStatus::Pending),
        ];
        assert_eq!(positions(&invited(&envelope(true), &signers)), [0, 1]);
        assert_eq!(positions(&invited(&envelope(false), &signers)), [0, 1, 2]);
    }

    #[test]
    fn a_person_with_two_signer_roles_gets_one_mail() {
        let signers = [
            signer(0, "a@example.com", SignerStatus::Completed),
            signer(1, "A@Example.com ", SignerStatus::Completed),
        ];
        assert_eq!(positions(&distinct(&signers)), [0]);
    }

    #[test]
    fn an_api_key_without_an_owner_has_no_mail_address() {
        assert_eq!(envelope(true).creator_email(), None);
    }
}
