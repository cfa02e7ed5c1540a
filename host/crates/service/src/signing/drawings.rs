//! Drawing an entry of the form on another device: the form shows a code, and the device that opens it hands in a
//! picture. The device shows nothing of the document and cannot sign.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, Signer, SignerStatus};
use holdfast_domain::locale::Message;
use holdfast_domain::organization::Organization;
use holdfast_domain::token::LinkToken;
use holdfast_platform::providers::links;
use holdfast_platform::room::form::{FormError, RequestOrigin};
use holdfast_platform::room::signature::is_picture;
use holdfast_platform::signers::signer_view;
use holdfast_platform::{Core, ServiceError, events};
use holdfast_store::drawings::{self, DrawingHandover};
use holdfast_store::{envelopes, organizations, signers};

/// Time for which an address takes a drawing.
pub const LIFE: Duration = Duration::from_secs(600);
/// Retention of an expired address: its page answers 410 rather than 404.
const KEPT: Duration = Duration::from_secs(3600);
/// Action of the ledger: a signer drew an entry on another device.
pub const DRAWN_ELSEWHERE: &str = "signer.drawn_elsewhere";

/// What became of the newest address of a signer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrawingState {
    Awaited,
    /// The drawing is the entry of the field with this name.
    Drawn(String),
    /// It expired, or there was none.
    Ended,
}

/// Result of a drawing that was handed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrawingOutcome {
    Kept,
    /// The picture cannot be an entry, for this reason.
    Refused(Message),
    /// The address takes no drawing any more.
    Ended,
}

/// Signer behind an address, with what the page shows.
pub struct DrawingVisitor {
    pub organization: Organization,
    pub envelope: Envelope,
    pub signer: Signer,
    pub handover: DrawingHandover,
}

impl DrawingVisitor {
    /// Returns whether the address still takes a drawing.
    pub fn is_open(&self, now: Timestamp) -> bool {
        let is_done = matches!(
            self.signer.status,
            SignerStatus::Completed | SignerStatus::Declined
        );
        self.handover.is_open(now) && self.envelope.status.is_out_for_signing() && !is_done
    }
}

/// Makes the address by which a signer draws the entry of a field, and ends an earlier one. None if the field takes no
/// drawing, or another person has taken the signer's place.
pub async fn offer(
    core: &Core,
    envelope: &Envelope,
    signer: &Signer,
    submitter: i64,
    field: &str,
) -> Result<Option<LinkToken>, ServiceError> {
    let form = core.room().unruled_form(&envelope.org, submitter).await?;
    let mut fields = form.fields.iter();
    let Some(field) = fields.find(|one| one.name == field && one.is_signature()) else {
        return Ok(None);
    };

    let mut tx = core.store.begin().await?;
    if !links::is_current(&mut tx, envelope, signer).await? {
        return Ok(None);
    }

    let token = LinkToken::generate(envelope.org.bucket());
    let handover = DrawingHandover {
        org: envelope.org.clone(),
        envelope: envelope.id.clone(),
        position: signer.position,
        signer: signer.id.clone(),
        submitter,
        field: field.name.clone(),
        kind: field.field_type.clone(),
        expires_at: core.clock.now() + LIFE,
        drawn_at: None,
    };
    drawings::put(&mut tx, &handover, &token).await?;
    tx.commit().await?;

    Ok(Some(token))
}

/// Returns what became of the newest address of a signer.
pub async fn state(
    core: &Core,
    envelope: &Envelope,
    signer: &Signer,
) -> Result<DrawingState, ServiceError> {
    let mut connection = core.store.read().await?;
    let found = drawings::of_signer(&mut connection, envelope, signer).await?;
    Ok(match found {
        Some(handover) if handover.drawn_at.is_some() => DrawingState::Drawn(handover.field),
        Some(handover) if handover.is_open(core.clock.now()) => DrawingState::Awaited,
        _ => DrawingState::Ended,
    })
}

/// Returns the visitor behind an address, or none for an unknown one.
pub async fn find(core: &Core, token: &LinkToken) -> Result<Option<DrawingVisitor>, ServiceError> {
    let mut connection = core.store.read().await?;
    let Some(handover) = drawings::by_token(&mut connection, token).await? else {
        return Ok(None);
    };

    let (org, id) = (&handover.org, &handover.envelope);
    let organization = organizations::get(&mut connection, org).await?;
    let envelope = envelopes::get(&mut connection, org, id).await?;
    let signers = signers::list(&mut connection, org, id).await?;
    // A person who took the signer's place did not ask for this address.
    let mut signers = signers.into_iter();
    let signer = signers.find(|signer| signer.id == handover.signer);
    let (Some(organization), Some(envelope), Some(signer)) = (organization, envelope, signer)
    else {
        return Ok(None);
    };

    Ok(Some(DrawingVisitor {
        organization,
        envelope,
        signer,
        handover,
    }))
}

/// Keeps a picture as the entry of the field that an address is for, and uses the address up. `origin` is the device
/// that hands it in.
pub async fn hand_in(
    core: &Core,
    visitor: &DrawingVisitor,
    token: &LinkToken,
    picture: &str,
    origin: &RequestOrigin,
) -> Result<DrawingOutcome, ServiceError> {
    let DrawingVisitor {
        envelope,
        signer,
        handover,
        ..
    } = visitor;
    let now = core.clock.now();
    if !visitor.is_open(now) {
        return Ok(DrawingOutcome::Ended);
    }
    // A typed name belongs to the form, where its style is chosen.
    if !is_picture(picture) {
        let why = Message::new("problem-picture-format");
        return Ok(DrawingOutcome::Refused(why));
    }

    let room = core.room();
    let values = BTreeMap::from([(handover.field.clone(), picture.to_owned())]);
    let checked = room.checked_entries(&envelope.org, handover.submitter, &values);
    let (entries, mut saved) = checked.await?;
    if let Some(why) = saved.problems.remove(&handover.field) {
        return Ok(DrawingOutcome::Refused(why));
    }

    let mut tx = core.store.begin().await?;
    // The envelope is locked before the submission, as by every other change of both.
    if !links::is_current(&mut tx, envelope, signer).await?
        || !drawings::take(&mut tx, handover, token, now).await?
    {
        return Ok(DrawingOutcome::Ended);
    }

    let (mut tx, _) = match room.keep(tx, &signer.email, entries).await {
        Ok(kept) => kept,
        // Signed, declined or withdrawn since the page was opened.
        Err(FormError::Closed | FormError::NotYourTurn) => return Ok(DrawingOutcome::Ended),
        Err(error) => return Err(error.into()),
    };

    let details = json!({
        "signer": signer_view(signer),
        "field": handover.field,
        "kind": handover.kind,
        "ip": origin.ip,
        "user_agent": origin.user_agent,
        "at": now,
    });
    let actor = format!("signer:{}", signer.email);
    events::record(&mut tx, envelope, &actor, DRAWN_ELSEWHERE, details, now).await?;
    tx.commit().await?;

    Ok(DrawingOutcome::Kept)
}

/// Deletes expired addresses.
pub async fn forget(core: &Core) -> Result<(), ServiceError> {
    let mut tx = core.store.begin().await?;
    drawings::forget(&mut tx, core.clock.now() - KEPT).await?;
    Ok(tx.commit().await?)
}
