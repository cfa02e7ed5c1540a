//! Legal holds: placing one, and lifting it by two people. What a hold prevents is in
//! [`permits::legal_holds`](holdfast_platform::permits::legal_holds).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::store_holds;
use crate::control::{self, PartyNames};
use holdfast_components::rules::control::RefusalReason;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::event::{Event, EventType};
use holdfast_domain::hold::{HoldScope, HoldState, LegalHold, RequestedLift};
use holdfast_domain::id::{CustomerId, EnvelopeId, HoldId, TransferId};
use holdfast_platform::access::credentials;
use holdfast_platform::components::changes::{self, ChangeOfficer};
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::permits::legal_holds;
use holdfast_platform::problems::ControlProblem;
use holdfast_platform::{Caller, Core, ServiceError, events};
use holdfast_store::{
    WriteTransaction, customers, deliveries, envelopes, events as outbox, legal_holds as rows,
    organizations, transfers,
};

/// Body of `POST /legal-holds`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "scope": "envelope", "subject_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc",
    "reason": "The buyer has sued; counsel asks to keep everything.", "case_reference": "2:26-cv-01187",
}]))]
pub struct NewHold {
    /// What the hold covers. `pool`: the records of a transfer. `organization`: all records that you control.
    pub scope: HoldScope,
    /// Id of the envelope, customer or transfer. Not for an organization.
    pub subject_id: Option<String>,
    /// Why, for people of your organization only.
    #[schemars(length(min = 1, max = 2000))]
    pub reason: String,
    /// Reference of the case, such as a docket number. Callers of your organization get it with each refusal.
    #[schemars(length(min = 1, max = 200))]
    pub case_reference: String,
}

/// Body of `POST /legal-holds/{id}/lift`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "reason": "The case was dismissed with prejudice." }]))]
pub struct LiftRequest {
    /// Why the hold is no longer needed.
    #[schemars(length(min = 1, max = 2000))]
    pub reason: String,
}

/// A legal hold.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "hold_id": "hld_01jdk7m3e8f4x9s2w5v6b0c1dc", "scope": "envelope",
    "subject_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "state": "in_force",
    "reason": "The buyer has sued; counsel asks to keep everything.", "case_reference": "2:26-cv-01187",
    "placed_by": "user:ada@acme.example", "placed_at": "2026-11-21T09:45:00.000Z",
    "lift": null, "lifted_by": null, "lifted_at": null,
}]))]
pub struct HoldView {
    /// Id of the hold.
    pub hold_id: HoldId,
    /// The covered records.
    pub scope: HoldScope,
    /// Id of the envelope, customer, transfer or organization.
    pub subject_id: String,
    /// It binds until it is `lifted`.
    pub state: HoldState,
    /// Why it was placed.
    pub reason: String,
    /// Reference of the case.
    pub case_reference: String,
    /// Who placed it.
    pub placed_by: String,
    /// When that was.
    pub placed_at: Timestamp,
    /// Request to lift it.
    pub lift: Option<LiftView>,
    /// The second person, who approved the lift.
    pub lifted_by: Option<String>,
    /// When that was.
    pub lifted_at: Option<Timestamp>,
}

/// A request to lift a hold.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LiftView {
    /// Why the hold is no longer needed.
    pub reason: String,
    /// Who requested it. Another person approves it.
    pub requested_by: String,
    /// When that was.
    pub requested_at: Timestamp,
}

impl From<&LegalHold> for HoldView {
    fn from(hold: &LegalHold) -> Self {
        Self {
            hold_id: hold.id.clone(),
            scope: hold.scope,
            subject_id: hold.subject.clone(),
            state: hold.state(),
            reason: hold.reason.clone(),
            case_reference: hold.case_reference.clone(),
            placed_by: hold.placed_by.clone(),
            placed_at: hold.placed_at,
            lift: hold.lift.as_ref().map(|lift| LiftView {
                reason: lift.reason.clone(),
                requested_by: lift.requested_by.clone(),
                requested_at: lift.requested_at,
            }),
            lifted_by: hold.lifted.as_ref().map(|(by, _)| by.clone()),
            lifted_at: hold.lifted.as_ref().map(|(_, at)| *at),
        }
    }
}

const UNKNOWN: ServiceError = ServiceError::NotFound("Legal hold");

/// Subject of a new hold.
struct HoldSubject {
    id: String,
    bucket: i64,
    /// The envelope, with its row locked.
    envelope: Option<Envelope>,
}

/// Places a hold. From its commit on, nothing that it covers leaves, changes hands or is deleted.
///
/// # Errors
/// `Invalid` for a blank text or a missing subject, `NotFound` for one that the organization does not have, `Control` for a
/// record that another party controls.
pub async fn place(
    core: &Core,
    caller: &Caller,
    form: NewHold,
    answer: &ResponseRecorder<HoldView>,
) -> Result<HoldView, ServiceError> {
    check_text("reason", &form.reason)?;
    check_text("case_reference", &form.case_reference)?;
    let mut attempts = 0;
    loop {
        match place_once(core, caller, &form, answer).await {
            // Holds on two envelopes lock nothing in common, and the second one takes the next place in the ledger.
            Err(ServiceError::Store(error)) if attempts < 10 && error.is_unique_violation() => {
                attempts += 1;
            }
            placed => return placed,
        }
    }
}

async fn place_once(
    core: &Core,
    caller: &Caller,
    form: &NewHold,
    answer: &ResponseRecorder<HoldView>,
) -> Result<HoldView, ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let subject = subject(&mut tx, caller, form).await?;

    // An act that has begun is over before the hold is in force. One on this envelope has its lock, which is ours now. Both
    // locks together could block a transfer, which has its share of the organization when it locks its next record.
    if subject.envelope.is_none() {
        organizations::lock(&mut tx, &caller.org).await?;
    }
    let hold = LegalHold {
        id: HoldId::new(),
        org: caller.org.clone(),
        scope: form.scope,
        subject: subject.id,
        subject_bucket: subject.bucket,
        reason: form.reason.trim().to_owned(),
        case_reference: form.case_reference.trim().to_owned(),
        placed_by: caller.actor.clone(),
        placed_at: now,
        lift: None,
        lifted: None,
        store: None,
    };
    rows::insert(&mut tx, &hold).await?;
    store_holds::queue(core, &mut tx, &hold, now).await?;

    let (event, envelope) = (EventType::HoldPlaced, subject.envelope.as_ref());
    record(&mut tx, &hold, envelope, &caller.actor, event, now).await?;
    let view = HoldView::from(&hold);
    answer.commit(tx, &view).await?;

    Ok(view)
}

/// Returns what a new hold covers.
async fn subject(
    tx: &mut WriteTransaction,
    caller: &Caller,
    form: &NewHold,
) -> Result<HoldSubject, ServiceError> {
    let given = form.subject_id.as_deref().filter(|id| !id.is_empty());
    let of_caller = |id: String| HoldSubject {
        id,
        bucket: caller.org.bucket(),
        envelope: None,
    };
    match (form.scope, given) {
        (HoldScope::Organization, None) => Ok(of_caller(caller.org.to_string())),
        (HoldScope::Organization, Some(id)) => {
            let why = "A hold on your organization names no other subject";
            Err(invalid("subject_id", "no id", id, why))
        }
        (_, None) => {
            let why = "Name the envelope, customer or transfer that the hold covers";
            Err(invalid("subject_id", "an id", "", why))
        }

        (HoldScope::Envelope, Some(id)) => {
            let record = control::lock(tx, caller, id).await?;
            // Of a record that was sold, its controller decides: a hold of the seller would share the buyer's power.
            if record.control.controller != caller.org {
                let why = "Only the party that controls a record places a hold on it";
                return Err(ControlProblem::refused(RefusalReason::WrongParty, why).into());
            }
            Ok(HoldSubject {
                id: record.envelope.id.to_string(),
                bucket: record.envelope.org.bucket(),
                envelope: Some(record.envelope),
            })
        }

        (HoldScope::Customer, Some(id)) => {
            let unknown = || ServiceError::NotFound("Customer");
            let id = CustomerId::parse(id).ok_or_else(unknown)?;
            let found = customers::get(tx, &caller.org, &id).await?;
            found.ok_or_else(unknown)?;
            Ok(of_caller(id.to_string()))
        }

        (HoldScope::Pool, Some(id)) => {
            let unknown = || ServiceError::NotFound("Transfer");
            let id = TransferId::parse(id).ok_or_else(unknown)?;
            let found = transfers::get(tx, &id).await?;
            let found = found.filter(|pool| control::transfers::is_party(pool, &caller.org));
            let pool = found.ok_or_else(unknown)?;
            Ok(HoldSubject {
                id: pool.id.to_string(),
                bucket: pool.seller.bucket(),
                envelope: None,
            })
        }
    }
}

/// Returns a hold of the caller's organization.
pub async fn get(core: &Core, caller: &Caller, id: &str) -> Result<HoldView, ServiceError> {
    let id = HoldId::parse(id).ok_or(UNKNOWN)?;
    let found = rows::get(&mut *core.store.read().await?, &caller.org, &id).await?;
    found.as_ref().map(HoldView::from).ok_or(UNKNOWN)
}

/// Lists the holds of the caller's organization, newest first.
pub async fn list(
    core: &Core,
    caller: &Caller,
    after: Option<&HoldId>,
    limit: i64,
) -> Result<Vec<HoldView>, ServiceError> {
    let mut connection = core.store.read().await?;
    let found = rows::list(&mut connection, &caller.org, after, limit).await?;
    Ok(found.iter().map(HoldView::from).collect())
}

/// Returns the caller's own hold that is in force on an envelope.
pub async fn on(
    core: &Core,
    caller: &Caller,
    envelope: &Envelope,
) -> Result<Option<HoldView>, ServiceError> {
    let mut connection = core.store.read().await?;
    let found = legal_holds::on(&mut connection, envelope).await?;
    let own = found.filter(|hold| hold.org == caller.org);
    Ok(own.as_ref().map(HoldView::from))
}

/// Step of a person towards the end of a hold.
pub enum LiftStep {
    /// Asks a second person to lift it, for this reason.
    Request(String),
    /// Lifts it, as the second person.
    Approve,
    /// Takes the request back. One person is enough: the hold stays.
    Withdraw,
}

/// Takes a step towards the end of a hold. It always needs two people, under any policy of the organization.
///
/// # Errors
/// `Conflict` if the hold is not at this step; `Change` if the second person may be the first one.
pub async fn decide(
    core: &Core,
    officer: &ChangeOfficer,
    id: &str,
    step: LiftStep,
) -> Result<HoldView, ServiceError> {
    let (org, actor) = (&officer.caller.org, &officer.caller.actor);
    let id = HoldId::parse(id).ok_or(UNKNOWN)?;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let mut hold = rows::lock(&mut tx, org, &id).await?.ok_or(UNKNOWN)?;
    let refused = |why: &str| Err(ServiceError::Conflict(why.into()));
    if hold.state() == HoldState::Lifted {
        return refused("The hold was lifted already");
    }

    match (step, hold.lift.take()) {
        (LiftStep::Request(_), Some(_)) => {
            return refused("The lift was requested already; another person approves it");
        }
        (LiftStep::Request(reason), None) => {
            check_text("reason", &reason)?;
            hold.lift = Some(RequestedLift {
                reason: reason.trim().to_owned(),
                requested_by: actor.clone(),
                requested_as: officer.identity.clone(),
                requested_at: now,
            });
        }
        (LiftStep::Approve | LiftStep::Withdraw, None) => {
            return refused("No lift of the hold was requested");
        }
        (LiftStep::Withdraw, Some(_)) => {}
        (LiftStep::Approve, Some(lift)) => {
            // An invitee of the first person may be the same person with another address.
            let account = lift.requested_as.as_ref();
            changes::permit_second(&mut tx, officer, &lift.requested_by, account).await?;
            hold.lift = Some(lift);
            hold.lifted = Some((actor.clone(), now));
            // The walk over its records begins anew.
            if let Some(store) = &mut hold.store {
                store.walk = None;
            }
            store_holds::queue(core, &mut tx, &hold, now).await?;
        }
    }
    rows::update(&mut tx, &hold).await?;

    let view = HoldView::from(&hold);
    if view.state == HoldState::Lifted {
        let envelope = held_envelope(&mut tx, &officer.caller, &hold).await?;
        let event = EventType::HoldLifted;
        record(&mut tx, &hold, envelope.as_ref(), actor, event, now).await?;
    } else {
        let action = match view.state {
            HoldState::LiftRequested => "hold.lift_requested",
            _ => "hold.lift_withdrawn",
        };
        credentials::record_by(&mut tx, Some(org), actor, action, json!(view), now).await?;
    }
    tx.commit().await?;

    Ok(view)
}

/// Locks the envelope that a hold is about; none for other scopes, and for a record that its later controller had destroyed.
async fn held_envelope(
    tx: &mut WriteTransaction,
    caller: &Caller,
    hold: &LegalHold,
) -> Result<Option<Envelope>, ServiceError> {
    let id = EnvelopeId::parse(&hold.subject).filter(|_| hold.scope == HoldScope::Envelope);
    let Some(id) = id else {
        return Ok(None);
    };
    let org = control::originator(tx, caller, &id).await?;
    let found = envelopes::lock_with_destroyed(tx, &org, &id).await?;
    Ok(found.filter(|envelope| envelope.destruction.is_none()))
}

/// Records the begin or the end of a hold: in the ledger of its organization, with the event, and in that of the envelope.
async fn record(
    tx: &mut WriteTransaction,
    hold: &LegalHold,
    envelope: Option<&Envelope>,
    actor: &str,
    event: EventType,
    now: Timestamp,
) -> Result<(), ServiceError> {
    let (org, action) = (&hold.org, event.as_str());
    let data = json!(HoldView::from(hold));
    credentials::record_by(tx, Some(org), actor, action, data.clone(), now).await?;

    let Some(envelope) = envelope else {
        let event = Event::of_organization(org.clone(), event, now, data);
        outbox::insert(tx, &event);
        return Ok(deliveries::fan_out(tx, &event).await?);
    };

    // Others read this ledger, too, so it has neither the reason nor the case.
    let party = PartyNames::default().party(tx, org).await?;
    let details = json!({ "hold_id": hold.id, "scope": hold.scope, "party": party });
    events::record(tx, envelope, actor, action, details, now).await?;
    if *org == envelope.org {
        events::emit(tx, envelope, event, data, now).await?;
    } else {
        events::emit_to_party(tx, envelope, org, event, &data, now).await?;
    }

    Ok(())
}

/// Refuses a blank text. Its length is checked with the body.
fn check_text(member: &str, text: &str) -> Result<(), ServiceError> {
    if text.trim().is_empty() {
        let why = "The record of a hold says why, and for which case";
        return Err(invalid(member, "a text", text, why));
    }
    Ok(())
}

pub(super) fn invalid(member: &str, expected: &str, received: &str, why: &str) -> ServiceError {
    ServiceError::invalid("invalid_value", &[member], expected, received, why)
}
