//! Visits through signing links: resolving the signer, and mailing a fresh link.

use std::time::Duration;

use serde_json::json;

use crate::envelopes::people_notes::{DEVICE_PASSED, is_about};
use crate::signing::check_own_device;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, Recipient, Signer, SignerStatus};
use holdfast_domain::organization::{Organization, PaymentSettings};
use holdfast_domain::token::LinkToken;
use holdfast_platform::mails::Person;
use holdfast_platform::providers::links;
use holdfast_platform::signers::{invited_now, signer_view, witnessed};
use holdfast_platform::{Core, ServiceError, events, lookup, mails, payments};
use holdfast_store::{WriteTransaction, envelopes, ledger, organizations, signers};

/// Minimum time between two mails requested by a signer.
pub const COOL_DOWN: Duration = Duration::from_secs(300);

/// Period in which the mails to signers who finish later, and the openings of a witness's form, are counted.
const PERIOD: Duration = Duration::from_secs(86_400);
/// Most of these mails to one signer in the period.
pub const MOST_LATER: usize = 3;
/// Most links on the device of a signer for one witness in the period.
pub const MOST_PASSED: usize = 10;
/// Action of the ledger: a signer saved the form to finish later.
pub const POSTPONED: &str = "signer.postponed";

/// The signer who opened a link.
pub struct LinkVisitor {
    pub organization: Organization,
    pub envelope: Envelope,
    pub signer: Signer,
    /// Names of the others who have not signed yet.
    pub still_to_sign: Vec<String>,
    /// Whether a witness may sign on this signer's device now.
    pub has_witness: bool,
    /// Whether the link has expired.
    pub expired: bool,
    /// Payment that this signer still has to make.
    pub owes: Option<PaymentSettings>,
}

/// Result of a signer's request for a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkRenewal {
    Mailed,
    /// A mail was sent a moment ago, or the most of a day were.
    TooSoon,
    /// Another signer has to sign first.
    NotYet,
    /// There is nothing left to mail.
    Closed,
}

/// Returns the visitor behind a link, or none for an unknown link.
pub async fn find(core: &Core, token: &LinkToken) -> Result<Option<LinkVisitor>, ServiceError> {
    let mut connection = core.store.read().await?;
    let Some(target) = signers::link(&mut connection, token).await? else {
        return Ok(None);
    };

    let organization = organizations::get(&mut connection, &target.org).await?;
    let envelope = envelopes::get(&mut connection, &target.org, &target.envelope).await?;
    let signers = signers::list(&mut connection, &target.org, &target.envelope).await?;
    let open = |other: &&Signer| {
        other.position != target.position && other.status != SignerStatus::Completed
    };
    let still_to_sign = signers.iter().filter(open);
    let still_to_sign = still_to_sign.map(|other| other.name.clone()).collect();

    let signer = signers
        .iter()
        .find(|signer| signer.position == target.position)
        .cloned();
    let (Some(organization), Some(envelope), Some(signer)) = (organization, envelope, signer)
    else {
        return Ok(None);
    };
    let has_witness = witness_beside(&envelope, &signers, &signer).is_some();

    // `due` takes a connection of its own. Requests that hold two could exhaust the pool.
    drop(connection);
    let due = payments::due(core, &envelope).await?;
    let owed = due.filter(|due| due.position == Some(signer.position));
    Ok(Some(LinkVisitor {
        owes: owed.map(|due| due.payment.asked),
        organization,
        envelope,
        signer,
        still_to_sign,
        has_witness,
        expired: target.expires_at <= core.clock.now(),
    }))
}

/// Returns the witness who may sign on a signer's device now.
fn witness_beside<'a>(
    envelope: &Envelope,
    signers: &'a [Signer],
    signer: &Signer,
) -> Option<&'a Signer> {
    let is_open = envelope.status.is_out_for_signing();
    let is_beside = |witness: &&Signer| {
        let witnessed = witnessed(signers, witness);
        witness.same_device && witnessed.is_some_and(|one| one.position == signer.position)
    };
    invited_now(envelope, signers)
        .filter(|_| is_open)
        .find(is_beside)
}

/// Result of the request for the form of a witness.
pub enum DevicePass {
    /// The form has this URL.
    Opened(String),
    /// It was opened [`MOST_PASSED`] times within a day.
    TooOften,
    /// No witness signs on this device now.
    Closed,
}

/// Opens the form of the witness on the device of a signer who has signed, at most [`MOST_PASSED`] times a day.
pub async fn pass_to_witness(
    core: &Core,
    envelope: &Envelope,
    signer: &Signer,
) -> Result<DevicePass, ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let envelope = lookup::lock_envelope(&mut tx, &envelope.org, &envelope.id).await?;
    let signers = signers::list(&mut tx, &envelope.org, &envelope.id).await?;
    let Some(witness) = witness_beside(&envelope, &signers, signer) else {
        return Ok(DevicePass::Closed);
    };

    // Each press makes a link and an entry. The lock makes those of the same moment count one after the other.
    let entries = ledger::list(&mut tx, Some(&envelope.org), &envelope.id).await?;
    let lately = entries.iter().filter(|entry| {
        entry.action == DEVICE_PASSED && entry.at > now - PERIOD && is_about(entry, witness)
    });
    if lately.count() >= MOST_PASSED {
        return Ok(DevicePass::TooOften);
    }

    // The link is for this visit. The witness has another one by mail.
    let url = links::make(core, &mut tx, &envelope, witness, links::EMBED_LIFE).await?;
    let details = json!({ "signer": signer_view(witness), "device_of": signer_view(signer) });
    let actor = format!("signer:{}", signer.email);
    events::record(&mut tx, &envelope, &actor, DEVICE_PASSED, details, now).await?;
    tx.commit().await?;

    Ok(DevicePass::Opened(url))
}

/// The recipient who opened a link for reading.
pub struct LinkReader {
    pub recipient: Recipient,
    /// Whether the link has expired.
    pub expired: bool,
    pub organization: Organization,
    pub envelope: Envelope,
    pub signers: Vec<Signer>,
}

/// Returns the reader behind a link, or none for an unknown link.
pub async fn find_reader(
    core: &Core,
    token: &LinkToken,
) -> Result<Option<LinkReader>, ServiceError> {
    let mut connection = core.store.read().await?;
    let Some(target) = signers::link(&mut connection, token).await? else {
        return Ok(None);
    };

    let (org, id) = (&target.org, &target.envelope);
    let recipients = signers::recipients(&mut connection, org, id).await?;
    // A link of a signer names another position and finds no reader here.
    let mut recipients = recipients.into_iter();
    let Some(recipient) = recipients.find(|one| one.position == target.position) else {
        return Ok(None);
    };

    let organization = organizations::get(&mut connection, org).await?;
    let envelope = envelopes::get(&mut connection, org, id).await?;
    let signers = signers::list(&mut connection, org, id).await?;
    Ok(organization
        .zip(envelope)
        .map(|(organization, envelope)| LinkReader {
            recipient,
            expired: target.expires_at <= core.clock.now(),
            organization,
            envelope,
            signers,
        }))
}

/// Mails a reader a fresh link, or the signed copy, to the address on record. Rate-limited like
/// [`renew`].
pub async fn renew_reader(
    core: &Core,
    envelope: &Envelope,
    reader: &Recipient,
) -> Result<LinkRenewal, ServiceError> {
    let now = core.clock.now();
    let tx = core.store.begin().await?;
    // A `cc` gets the finished document only. The others read along before.
    let signed = envelope.status.is_signed();
    let reads = envelope.status.is_out_for_signing() && reader.kind.reads_along();
    if !(signed || reads) {
        return Ok(LinkRenewal::Closed);
    }

    mail_again(tx, envelope, reader, signed, now).await
}

/// Mails a fresh link, or the signed copy, to the address on record. Rate-limited to one mail
/// per [`COOL_DOWN`].
pub async fn renew(
    core: &Core,
    envelope: &Envelope,
    signer: &Signer,
) -> Result<LinkRenewal, ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    // Another signer may have moved the turn since the page was shown.
    let signers = signers::list(&mut tx, &envelope.org, &envelope.id).await?;
    let turn = invited_now(envelope, &signers).any(|now| now.position == signer.position);
    let signed = signer.status == SignerStatus::Completed && envelope.status.is_signed();
    let invited = envelope.status.is_out_for_signing() && turn;
    if !(signed || invited) {
        return Ok(match signer.status {
            SignerStatus::Pending => LinkRenewal::NotYet,
            _ => LinkRenewal::Closed,
        });
    }

    mail_again(tx, envelope, signer, signed, now).await
}

/// Mails a signer who finishes later a link, at most [`MOST_LATER`] times a day, and records it.
pub async fn postpone(
    core: &Core,
    envelope: &Envelope,
    signer: &Signer,
) -> Result<LinkRenewal, ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    // The lock makes requests of the same moment count one after the other.
    let envelope = lookup::lock_envelope(&mut tx, &envelope.org, &envelope.id).await?;
    let signers = signers::list(&mut tx, &envelope.org, &envelope.id).await?;
    let mut turn = invited_now(&envelope, &signers);
    let Some(signer) = turn.find(|now| now.id == signer.id) else {
        return Ok(LinkRenewal::Closed);
    };
    check_own_device(signer)?;
    if !envelope.status.is_out_for_signing() {
        return Ok(LinkRenewal::Closed);
    }

    let entries = ledger::list(&mut tx, Some(&envelope.org), &envelope.id).await?;
    let lately = entries.iter().filter(|entry| {
        entry.action == POSTPONED && entry.at > now - PERIOD && is_about(entry, signer)
    });
    if lately.count() >= MOST_LATER {
        return Ok(LinkRenewal::TooSoon);
    }

    let details = json!({ "signer": signer_view(signer) });
    let actor = format!("signer:{}", signer.email);
    events::record(&mut tx, &envelope, &actor, POSTPONED, details, now).await?;
    mails::later(&mut tx, &envelope, signer, now).await?;
    tx.commit().await?;

    Ok(LinkRenewal::Mailed)
}

/// Mails the signed copy or a fresh link, unless the last mail was sent a moment ago.
async fn mail_again(
    mut tx: WriteTransaction,
    envelope: &Envelope,
    person: &dyn Person,
    signed: bool,
    now: Timestamp,
) -> Result<LinkRenewal, ServiceError> {
    // The row records the time of the last mail, so that the limit holds across nodes.
    let position = person.position();
    if !signers::claim_renewal(&mut tx, envelope, position, now - COOL_DOWN, now).await? {
        return Ok(LinkRenewal::TooSoon);
    }

    if signed {
        mails::copy_again(&mut tx, envelope, person, now).await?
    } else {
        mails::invite_again(&mut tx, envelope, person, now).await?
    }

    tx.commit().await?;
    Ok(LinkRenewal::Mailed)
}
