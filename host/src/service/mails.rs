//! Who is mailed what, and when.
//!
//! Each mail is a job of its own that commits with the change that causes it,
//! so that an address that takes nothing holds up nobody else, and nobody is
//! told of what did not happen. What the mails say is in `mail`.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::envelopes::invited_now;
use crate::domain::clock::Timestamp;
use crate::domain::envelope::{Envelope, Signer, SignerStatus};
use crate::domain::id::{EndpointId, EnvelopeId, OrgId};
use crate::store::{StoreError, Tx, jobs, signers};

/// Asks somebody to sign.
pub const INVITE_JOB: &str = "signer.invite";
/// Asks somebody again.
pub const REMIND_JOB: &str = "signer.remind";
/// Says that everybody has signed.
pub const COMPLETED_JOB: &str = "mail.completed";
/// Says that somebody has declined.
pub const DECLINED_JOB: &str = "mail.declined";
/// Says that the sender wants no signature any more.
pub const WITHDRAWN_JOB: &str = "mail.withdrawn";

/// Says that nothing has arrived at a webhook endpoint for days.
pub const ENDPOINT_FAILING_JOB: &str = "mail.endpoint_failing";
/// Says that a webhook endpoint was disabled.
pub const ENDPOINT_DISABLED_JOB: &str = "mail.endpoint_disabled";

/// How long mails wait for an envelope that is being vaulted, so that all have the
/// copy whose hash is in the ledger, and nobody's is made twice. When it takes
/// longer, the copy is made for the mail.
pub const VAULT_HEAD_START: Duration = Duration::from_secs(10);

/// Payload of these jobs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Due {
    pub envelope: EnvelopeId,
    /// To the signer at this position; none: to who created the envelope.
    pub position: Option<i64>,
}

/// Has the signer mailed a fresh link.
pub async fn invite(
    tx: &mut Tx,
    envelope: &Envelope,
    signer: &Signer,
    now: Timestamp,
) -> Result<(), StoreError> {
    queue(tx, envelope, INVITE_JOB, Some(signer), now).await
}

/// Has the signer asked again, with a fresh link.
pub async fn remind(
    tx: &mut Tx,
    envelope: &Envelope,
    signer: &Signer,
    now: Timestamp,
) -> Result<(), StoreError> {
    queue(tx, envelope, REMIND_JOB, Some(signer), now).await
}

/// Tells every signer and the creator, from `at` on, that everybody has signed.
pub async fn completed(tx: &mut Tx, envelope: &Envelope, at: Timestamp) -> Result<(), StoreError> {
    let signers = signers::list(tx, &envelope.org, &envelope.id).await?;
    for signer in distinct(&signers) {
        queue(tx, envelope, COMPLETED_JOB, Some(signer), at).await?;
    }
    let creator_signs = signers.iter().any(|signer| is_creator(envelope, signer));
    if envelope.creator_email().is_some() && !creator_signs {
        queue(tx, envelope, COMPLETED_JOB, None, at).await?;
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
    queue(tx, envelope, COMPLETED_JOB, Some(signer), now).await
}

/// Tells the creator, and the signers who had been invited, that somebody has
/// declined.
pub async fn declined(tx: &mut Tx, envelope: &Envelope, now: Timestamp) -> Result<(), StoreError> {
    let signers = signers::list(tx, &envelope.org, &envelope.id).await?;
    for signer in distinct(invited(envelope, &signers)) {
        if !is_creator(envelope, signer) {
            queue(tx, envelope, DECLINED_JOB, Some(signer), now).await?;
        }
    }
    if envelope.creator_email().is_some() {
        queue(tx, envelope, DECLINED_JOB, None, now).await?;
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
        queue(tx, envelope, WITHDRAWN_JOB, Some(signer), now).await?;
    }
    Ok(())
}

/// Payload of the jobs about endpoints.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DueOfEndpoint {
    pub endpoint: EndpointId,
}

/// Tells the owner of an endpoint that nothing arrives there.
pub async fn endpoint_failing(
    tx: &mut Tx,
    org: &OrgId,
    endpoint: &EndpointId,
    now: Timestamp,
) -> Result<(), StoreError> {
    queue_of_endpoint(tx, org, endpoint, ENDPOINT_FAILING_JOB, now).await
}

/// Tells the owner of an endpoint that it was disabled, and why.
pub async fn endpoint_disabled(
    tx: &mut Tx,
    org: &OrgId,
    endpoint: &EndpointId,
    now: Timestamp,
) -> Result<(), StoreError> {
    queue_of_endpoint(tx, org, endpoint, ENDPOINT_DISABLED_JOB, now).await
}

async fn queue_of_endpoint(
    tx: &mut Tx,
    org: &OrgId,
    endpoint: &EndpointId,
    kind: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let due = DueOfEndpoint {
        endpoint: endpoint.clone(),
    };
    jobs::insert_or_revive(tx, org, kind, endpoint.as_str(), &json!(due), now).await
}

/// Commits a mail with the change; one of the kind that still waits, or that was
/// set aside, stands for it.
async fn queue(
    tx: &mut Tx,
    envelope: &Envelope,
    kind: &str,
    to: Option<&Signer>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let due = Due {
        envelope: envelope.id.clone(),
        position: to.map(|signer| signer.position),
    };
    let whom = match due.position {
        Some(position) => position.to_string(),
        None => "creator".to_owned(),
    };
    // Whoever signs instead of somebody else gets a mail of their own.
    let address = to.map_or("", |signer| signer.email.as_str());
    let key = format!("{}:{whom}:{address}", envelope.id);
    jobs::insert_or_revive(tx, &envelope.org, kind, &key, &json!(due), now).await
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
    use crate::domain::envelope::EnvelopeKind;
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
        Envelope {
            preserve_signing_order,
            ..new
        }
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
