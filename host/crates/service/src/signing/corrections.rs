//! Corrections of a signer who has not signed: another name or address, or another person, named by the
//! sender or by the signer.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::envelopes::parties;
use crate::signing::{access_codes, check_own_device};
use holdfast_adapters::mail::address;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{
    Envelope, Recipient, RecipientKind, Signer, SignerStatus, same_address,
};
use holdfast_domain::event::EventType;
use holdfast_domain::id::SignerId;
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::lookup::{self, room_submission};
use holdfast_platform::room::changes::SubmitterCorrection;
use holdfast_platform::room::form::FormError;
use holdfast_platform::signers::{contact_view, invited_now, witnessed};
use holdfast_platform::{Caller, Core, Problem, ProblemKind, ServiceError, events, kba, mails};
use holdfast_store::{self as store, WriteTransaction, signers};

/// Maximum length of a name, in characters.
pub const LONGEST_NAME: usize = 500;
/// Error code for a person who would witness a signature of their own.
pub const OWN_WITNESS: &str = "own_witness";
/// Error code for a person who is a member of the signer's group already.
pub const GROUP_MEMBER: &str = "duplicate_member";

/// Body of `PATCH /partner/envelopes/:id/signers/:role`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "email": "sam.lee@example.com", "name": "Sam Lee", "reason": "Jordan is abroad until May",
}]))]
pub struct CorrectSigner {
    /// Another address means another person: the entries of the earlier one are dropped, and an
    /// identity check has to be passed again.
    #[schemars(email)]
    pub email: Option<String>,
    #[schemars(length(min = 1, max = 500))]
    pub name: Option<String>,
    /// Mobile number with country code. Another person who gets text messages needs one.
    #[schemars(length(min = 8, max = 40))]
    pub phone: Option<String>,
    /// Kept in the custody ledger.
    #[schemars(length(max = 2000))]
    pub reason: Option<String>,
}

/// Who a signer is from now on, and why.
pub struct SignerChange<'a> {
    pub name: &'a str,
    pub email: &'a str,
    /// None keeps the number of the same person.
    pub phone: Option<&'a str>,
    pub reason: Option<&'a str>,
    /// Group for which the person takes the place, by their own choice.
    pub group: Option<&'a str>,
}

/// Corrects the signer with a role. The signer's earlier links no longer work; the signer gets a new
/// one by mail when it is their turn.
///
/// # Errors
///
/// `NotFound` for an unknown role, `Conflict` for a signer who has signed, an envelope that is not out
/// for signing, or signers of another signing provider; `Invalid` if nothing changes; `Problem` for a person who may not
/// have the place: [`OWN_WITNESS`], [`GROUP_MEMBER`].
pub async fn correct(
    core: &Core,
    caller: &Caller,
    id: &str,
    role: &str,
    request: CorrectSigner,
    answer: &ResponseRecorder<Signer>,
) -> Result<Signer, ServiceError> {
    let id = lookup::envelope(core, caller, id).await?.id;
    let mut tx = core.store.begin().await?;
    let envelope = lookup::lock_envelope(&mut tx, &caller.org, &id).await?;
    let all = signers::list(&mut tx, &envelope.org, &envelope.id).await?;
    let signer = all.into_iter().find(|signer| signer.role == role);
    let signer = signer.ok_or(ServiceError::NotFound("Signer"))?;
    let change = SignerChange {
        name: request.name.as_deref().unwrap_or(&signer.name),
        email: request.email.as_deref().unwrap_or(&signer.email),
        phone: request.phone.as_deref(),
        reason: request.reason.as_deref(),
        group: None,
    };
    let changed = change_signer(core, &mut tx, &envelope, &signer, &change, &caller.actor).await?;
    hand_over(core, &mut tx, &envelope, &changed).await?;
    answer.commit(tx, &changed).await?;

    Ok(changed)
}

/// Returns an e-mail address in the form in which it is stored; none if the text is no address.
pub fn stored_address(text: &str) -> Option<String> {
    address::parse(text).ok()
}

/// Has another person sign in a signer's place, at the signer's own request.
///
/// # Errors
///
/// `Problem` if the envelope does not allow it, and as for [`correct`].
pub async fn delegate(
    core: &Core,
    envelope: &Envelope,
    signer: &Signer,
    change: &SignerChange<'_>,
) -> Result<(), ServiceError> {
    let mut tx = core.store.begin().await?;
    let envelope = lookup::lock_envelope(&mut tx, &envelope.org, &envelope.id).await?;
    let mut all = signers::list(&mut tx, &envelope.org, &envelope.id)
        .await?
        .into_iter();
    let now = all.find(|other| other.position == signer.position);

    // Two delegations at the same moment: only the signer on record may name another.
    let now = now.filter(|now| now.email == signer.email);
    let signer = now.ok_or(ServiceError::NotFound("Signer"))?;
    check_own_device(&signer)?;
    if !envelope.sending.allow_delegation {
        let why = "The sender does not allow another person to sign in your place";
        return Err(Problem::new(ProblemKind::State, "delegation_not_offered", why).into());
    }

    let actor = format!("signer:{}", signer.email);
    let changed = change_signer(core, &mut tx, &envelope, &signer, change, &actor).await?;
    hand_over(core, &mut tx, &envelope, &changed).await?;
    Ok(tx.commit().await?)
}

/// Has a substitute sign in the place of a signer of the same group, at `position`. The two change
/// places: the earlier signer is a substitute from now on, and the links of both follow them.
///
/// # Errors
///
/// `Conflict` if the signer at this position has signed or is not in turn, or is of another group; or if
/// another person has the substitute's place by now.
pub async fn take_place(
    core: &Core,
    envelope: &Envelope,
    substitute: &Recipient,
    position: i64,
) -> Result<(), ServiceError> {
    let mut tx = core.store.begin().await?;
    let envelope = lookup::lock_envelope(&mut tx, &envelope.org, &envelope.id).await?;

    // Read under the lock: two substitutes may take the place of one signer at the same moment.
    let recipients = signers::recipients(&mut tx, &envelope.org, &envelope.id).await?;
    let is_present = recipients.contains(substitute);
    let all = signers::list(&mut tx, &envelope.org, &envelope.id).await?;
    let mut places = open_places(&envelope, &all, substitute);
    let place = places.find(|place| place.position == position);
    let Some(place) = place.filter(|_| is_present) else {
        return Err(ServiceError::Conflict(
            "Nobody of the group has to sign in this place now".into(),
        ));
    };

    let change = SignerChange {
        name: &substitute.name,
        email: &substitute.email,
        phone: None,
        reason: None,
        group: substitute.group.as_deref(),
    };
    let actor = format!("signer:{}", substitute.email);
    change_signer(core, &mut tx, &envelope, place, &change, &actor).await?;
    signers::exchange(&mut tx, &envelope, substitute, place).await?;

    Ok(tx.commit().await?)
}

/// Returns the signers that a substitute may replace: those of the group who can sign now, without a place in which
/// the substitute would witness a signature of their own.
pub fn open_places<'a>(
    envelope: &'a Envelope,
    signers: &'a [Signer],
    substitute: &'a Recipient,
) -> impl Iterator<Item = &'a Signer> {
    let is_open =
        envelope.status.is_out_for_signing() && substitute.kind == RecipientKind::Substitute;
    invited_now(envelope, signers).filter(move |signer| {
        let is_of_group = signer.group.is_some() && signer.group == substitute.group;
        is_open && is_of_group && !is_own_witness(signers, signer, &substitute.email)
    })
}

/// Whether a person with this address in the place of a signer would witness a signature of their own.
fn is_own_witness(signers: &[Signer], signer: &Signer, email: &str) -> bool {
    // Beside the signer, the witness need not have an address, and states another name.
    let is_pair = |witness: &Signer, other: &Signer| {
        let witnessed = witnessed(signers, witness);
        !witness.same_device && witnessed.is_some_and(|one| one.position == other.position)
    };
    let mut paired = signers
        .iter()
        .filter(|other| is_pair(signer, other) || is_pair(other, signer));
    paired.any(|other| same_address(&other.email, email))
}

/// Ends the links of the person who had a signer's place before, and invites the present one if it is
/// their turn.
async fn hand_over(
    core: &Core,
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    signer: &Signer,
) -> Result<(), ServiceError> {
    let now = core.clock.now();
    // The earlier links are in the mailbox of the person before.
    signers::expire_links(tx, envelope, signer, now).await?;
    let all = signers::list(tx, &envelope.org, &envelope.id).await?;
    let mut turn = invited_now(envelope, &all);
    if turn.any(|now| now.position == signer.position) {
        mails::invite(tx, envelope, signer, now).await?;
    }

    Ok(())
}

async fn change_signer(
    core: &Core,
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    before: &Signer,
    change: &SignerChange<'_>,
    actor: &str,
) -> Result<Signer, ServiceError> {
    if !envelope.status.is_out_for_signing() {
        let status = envelope.status;
        return Err(ServiceError::Conflict(format!(
            "Cannot change signers of an envelope with status: {status}"
        )));
    }
    if before.status == SignerStatus::Completed {
        let why = format!("{} has already signed", before.email);
        return Err(ServiceError::Conflict(why));
    }
    // Each signature of a group comes from another person.
    if change.group.is_none() && is_member(tx, envelope, before, change.email.trim()).await? {
        let why = format!("{} is a member of the group already", change.email.trim());
        return Err(Problem::new(ProblemKind::State, GROUP_MEMBER, why).into());
    }
    let all = signers::list(tx, &envelope.org, &envelope.id).await?;
    if is_own_witness(&all, before, change.email) {
        let why = format!("{} would witness their own signature", change.email.trim());
        return Err(Problem::new(ProblemKind::State, OWN_WITNESS, why).into());
    }

    // The name stands in mail headers and in single lines of the record.
    let (name, email) = (change.name.trim(), change.email.trim());
    let is_name = !name.is_empty()
        && name.chars().count() <= LONGEST_NAME
        && !name.chars().any(char::is_control);
    if !is_name {
        return Err(ServiceError::invalid(
            "invalid_name",
            &["name"],
            format!("a name of 1 to {LONGEST_NAME} characters in one line"),
            "",
            "This is no name of a person",
        ));
    }

    let now = core.clock.now();
    let is_another_person = !email.eq_ignore_ascii_case(&before.email);
    let phone = match change.phone {
        Some(text) => Some(parties::phone(text, &["phone"], now)?),
        None if !is_another_person => before.phone.clone(),
        // Text messages for the new person must not go to the telephone of the earlier one.
        None if before.needs_phone() => return Err(parties::phone_required(&["phone"], name)),
        None => None,
    };
    if name == before.name && email == before.email && phone == before.phone {
        return Err(ServiceError::invalid(
            "unchanged",
            &["email"],
            "another name, e-mail address or telephone number",
            email,
            "The signer has this name, address and number already",
        ));
    }

    let submitter = before.provider_submitter.as_ref();
    let submitter = submitter.and_then(|id| id.parse().ok());
    let (Some(_), Some(submitter)) = (room_submission(envelope), submitter) else {
        return Err(ServiceError::Conflict(
            "The signing provider keeps the signers of this envelope: change the signer there"
                .into(),
        ));
    };

    let correction = SubmitterCorrection {
        name,
        email,
        is_another_person,
    };

    let room = core.room();
    match room.correct(tx, &envelope.org, submitter, correction).await {
        Ok(()) => {}
        Err(FormError::Closed) => {
            let why = format!("{} can no longer sign", before.email);
            return Err(ServiceError::Conflict(why));
        }
        Err(FormError::Store(error)) => return Err(error.into()),
        Err(error) => return Err(ServiceError::Internal(error.to_string())),
    }

    let mut after = Signer {
        name: name.to_owned(),
        email: email.to_owned(),
        phone,
        ..before.clone()
    };
    // Checks, consents and entries of the earlier person must not count for this one.
    if is_another_person {
        after.id = SignerId::new();
        // The outcome of mails to the earlier person.
        after.notice = None;
        after.status = SignerStatus::Pending;
        // The sender's statement was about the person before.
        after.consumer = None;
        after.time_zone = None;
        after.challenged = kba::is_challenged(tx, envelope, email).await?;
    }

    signers::update(tx, envelope, &after).await?;
    if after.phone != before.phone {
        access_codes::forget(tx, envelope, &after).await?;
    }

    // A read of the submission that began before this change must not be applied after it.
    store::provider_poll::looked(tx, envelope, false, now).await?;
    record(tx, envelope, before, &after, change, actor, now).await?;

    Ok(after)
}

/// Whether an address belongs to another member of a signer's group.
async fn is_member(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    signer: &Signer,
    email: &str,
) -> Result<bool, ServiceError> {
    if signer.group.is_none() {
        return Ok(false);
    }

    let all = signers::list(tx, &envelope.org, &envelope.id).await?;
    let recipients = signers::recipients(tx, &envelope.org, &envelope.id).await?;
    let others = all
        .iter()
        .filter(|other| other.position != signer.position && other.group == signer.group)
        .map(|other| &other.email);
    let substitutes = recipients
        .iter()
        .filter(|recipient| recipient.group == signer.group)
        .map(|recipient| &recipient.email);
    let mut members = others.chain(substitutes);

    Ok(members.any(|member| same_address(member, email)))
}

/// Records the change for the ledger and the webhooks.
async fn record(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    before: &Signer,
    after: &Signer,
    change: &SignerChange<'_>,
    actor: &str,
    now: Timestamp,
) -> Result<(), ServiceError> {
    let data = json!({
        "signer": contact_view(after),
        "previous": contact_view(before),
        "reason": change.reason,
        "at": now,
    });

    let mut details = data.clone();
    // Distinguishes a place that was taken from one that was passed on.
    if let Some(group) = change.group {
        details["group"] = group.into();
    }
    let changed = EventType::SignerChanged;
    events::record(tx, envelope, actor, changed.as_str(), details, now).await?;
    Ok(events::emit(tx, envelope, changed, data, now).await?)
}
