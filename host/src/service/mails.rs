//! Who is mailed what, and when.
//!
//! Each mail is a job of its own that commits with the change that causes it,
//! so that an address that takes nothing holds up nobody else, and nobody is
//! told of what did not happen. What the mails say is in `mail`.

use std::time::Duration;

use crate::domain::clock::Timestamp;
use crate::domain::envelope::{Envelope, Signer, SignerStatus};
use crate::domain::id::{EndpointId, OrgId};
use crate::domain::job::{
    Addressee, EndpointMail, EnvelopeMail, MailCompletion, MailDecline, MailEndpointDisabled,
    MailEndpointFailing, MailInvitation, MailReminder, MailWithdrawal,
};
use crate::service::envelopes::invited_now;
use crate::store::{StoreError, Tx, jobs, signers};

/// How long mails wait for an envelope that is being vaulted, so that all have the
/// copy whose hash is in the ledger, and nobody's is made twice. When it takes
/// longer, the copy is made for the mail.
pub const VAULT_HEAD_START: Duration = Duration::from_secs(10);

/// Has the signer mailed a fresh link.
pub async fn invite(
    tx: &mut Tx,
    envelope: &Envelope,
    signer: &Signer,
    now: Timestamp,
) -> Result<(), StoreError> {
    queue::<MailInvitation>(tx, envelope, Some(signer), now).await
}

/// Has the signer asked again, with a fresh link.
pub async fn remind(
    tx: &mut Tx,
    envelope: &Envelope,
    signer: &Signer,
    now: Timestamp,
) -> Result<(), StoreError> {
    queue::<MailReminder>(tx, envelope, Some(signer), now).await
}

/// Tells every signer and the creator, from `at` on, that everybody has signed.
pub async fn completed(tx: &mut Tx, envelope: &Envelope, at: Timestamp) -> Result<(), StoreError> {
    let signers = signers::list(tx, &envelope.org, &envelope.id).await?;
    for signer in distinct(&signers) {
        queue::<MailCompletion>(tx, envelope, Some(signer), at).await?;
    }
    let creator_signs = signers.iter().any(|signer| is_creator(envelope, signer));
    if envelope.creator_email().is_some() && !creator_signs {
        queue::<MailCompletion>(tx, envelope, None, at).await?;
    }
    Ok(())
}

/// Has a signer mailed the copy again.
pub async fn copy_again(
    tx: &mut Tx,
    envelope: &Envelope,
    signer: &Signer,
    now: Timestamp,
) -> Result<(), StoreError> {
    queue::<MailCompletion>(tx, envelope, Some(signer), now).await
}

/// Tells the creator, and the signers who had been invited, that somebody has
/// declined.
pub async fn declined(tx: &mut Tx, envelope: &Envelope, now: Timestamp) -> Result<(), StoreError> {
    let signers = signers::list(tx, &envelope.org, &envelope.id).await?;
    for signer in distinct(invited(envelope, &signers)) {
        if !is_creator(envelope, signer) {
            queue::<MailDecline>(tx, envelope, Some(signer), now).await?;
        }
    }
    if envelope.creator_email().is_some() {
        queue::<MailDecline>(tx, envelope, None, now).await?;
    }
    Ok(())
}

/// Tells the signers who had been invited that there is nothing left to sign.
/// `envelope` is the record before it was voided.
pub async fn withdrawn(tx: &mut Tx, envelope: &Envelope, now: Timestamp) -> Result<(), StoreError> {
    if !envelope.status.is_out_for_signing() {
        return Ok(());
    }
    let signers = signers::list(tx, &envelope.org, &envelope.id).await?;
    for signer in distinct(invited(envelope, &signers)) {
        queue::<MailWithdrawal>(tx, envelope, Some(signer), now).await?;
    }
    Ok(())
}

/// Tells the owner of an endpoint that nothing arrives there.
pub async fn endpoint_failing(
    tx: &mut Tx,
    org: &OrgId,
    endpoint: &EndpointId,
    now: Timestamp,
) -> Result<(), StoreError> {
    queue_of_endpoint::<MailEndpointFailing>(tx, org, endpoint, now).await
}

/// Tells the owner of an endpoint that it was disabled, and why.
pub async fn endpoint_disabled(
    tx: &mut Tx,
    org: &OrgId,
    endpoint: &EndpointId,
    now: Timestamp,
) -> Result<(), StoreError> {
    queue_of_endpoint::<MailEndpointDisabled>(tx, org, endpoint, now).await
}

async fn queue_of_endpoint<M: EndpointMail>(
    tx: &mut Tx,
    org: &OrgId,
    endpoint: &EndpointId,
    now: Timestamp,
) -> Result<(), StoreError> {
    let mail = M::from(endpoint.clone());
    jobs::insert_or_revive(tx, org, &mail, endpoint.as_str(), now).await
}

/// Commits a mail with the change; one of the kind that still waits, or that was
/// set aside, stands for it.
async fn queue<M: EnvelopeMail>(
    tx: &mut Tx,
    envelope: &Envelope,
    to: Option<&Signer>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let addressee = Addressee {
        envelope: envelope.id.clone(),
        position: to.map(|signer| signer.position),
    };
    let whom = match addressee.position {
        Some(position) => position.to_string(),
        None => "creator".to_owned(),
    };
    // Whoever signs instead of somebody else gets a mail of their own.
    let address = to.map_or("", |signer| signer.email.as_str());
    let key = format!("{}:{whom}:{address}", envelope.id);
    jobs::insert_or_revive(tx, &envelope.org, &M::from(addressee), &key, now).await
}

/// Those whose turn had come, or who had got in with a link.
fn invited<'a>(envelope: &Envelope, signers: &'a [Signer]) -> Vec<&'a Signer> {
    let turn: Vec<i64> = invited_now(envelope, signers)
        .map(|signer| signer.position)
        .collect();
    signers
        .iter()
        .filter(|signer| signer.status != SignerStatus::Pending || turn.contains(&signer.position))
        .collect()
}

/// One signer for each address: who signs in two roles is told once.
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
    use crate::domain::envelope::{EnvelopeKind, Sending};
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
        let sending = Sending {
            preserve_signing_order,
            ..Sending::default()
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
        }
    }

    fn positions(signers: &[&Signer]) -> Vec<i64> {
        signers.iter().map(|signer| signer.position).collect()
    }

    #[test]
    fn who_was_not_asked_yet_is_not_told() {
        let signers = [
            signer(0, "a@example.com", SignerStatus::Completed),
            signer(1, "b@example.com", SignerStatus::Declined),
            signer(2, "c@example.com", SignerStatus::Pending),
        ];
        assert_eq!(positions(&invited(&envelope(true), &signers)), [0, 1]);
        assert_eq!(positions(&invited(&envelope(false), &signers)), [0, 1, 2]);
    }

    #[test]
    fn who_signs_twice_is_told_once() {
        let signers = [
            signer(0, "a@example.com", SignerStatus::Completed),
            signer(1, "A@Example.com ", SignerStatus::Completed),
        ];
        assert_eq!(positions(&distinct(&signers)), [0]);
    }

    #[test]
    fn a_key_without_owner_has_no_address() {
        assert_eq!(envelope(true).creator_email(), None);
    }
}
