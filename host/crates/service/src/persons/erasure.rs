//! Erasure of a person by two people. What no duty keeps is erased; the rest is refused by name and stays as it is, until a
//! later request finds that the reason is gone.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::customers;
use crate::retention::{self, destruction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::control::ControlStage;
use holdfast_domain::destruction::DestructionCause;
use holdfast_domain::envelope::{Envelope, EnvelopeStatus, Signer, SignerStatus};
use holdfast_domain::erasure::{CustomerErasure, ErasureRefusal, ErasureState, PersonPart};
use holdfast_domain::event::{Event, EventType};
use holdfast_domain::hold::LegalHold;
use holdfast_domain::id::{CustomerId, EnvelopeId, HoldId, OrgId};
use holdfast_domain::retention::{Date, Retention};
use holdfast_domain::user::IssuerIdentity;
use holdfast_platform::access::credentials;
use holdfast_platform::components::changes::{self, ChangeOfficer};
use holdfast_platform::permits::{erased_customers, legal_holds};
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::customers::{self as customer_rows, CustomerRow};
use holdfast_store::{
    SqlConnection, StoreError, WriteTransaction, control, deliveries, envelopes, erasures as rows,
    events as outbox, legal_holds as holds, organizations, signers, users,
};

/// Erasure of a customer: the erased parts, those that would be erased, and those that a duty protects.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "customer_id": "cust_01jdk7m3e8f4x9s2w5v6b0c1db", "state": "partly",
    "requested_by": "user:ada@acme.example", "requested_at": "2026-11-21T09:45:00.000Z",
    "approved_by": "user:ben@acme.example", "approved_at": "2026-11-21T10:10:00.000Z",
    "erased": [
        { "part": "customer", "id": "cust_01jdk7m3e8f4x9s2w5v6b0c1db", "name": null },
        { "part": "envelope", "id": "env_01jdk7m3e8f4x9s2w5v6b0c1dd", "name": null },
    ],
    "erasable": [],
    "refused": [{
        "part": "envelope", "id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "name": "Retail instalment contract 2041",
        "reason": "retention_running",
        "message": "A retention schedule keeps the record",
        "hold_id": null, "case_reference": null, "schedule": "Retail contracts", "destroy_after": "2038-04-30",
    }],
}]))]
pub struct ErasureView {
    /// Id of the customer. It stays when everything else is erased.
    pub customer_id: CustomerId,
    /// Null until an erasure is requested.
    pub state: Option<ErasureState>,
    /// Who asked for it. Another person approves it.
    pub requested_by: Option<String>,
    /// When that was.
    pub requested_at: Option<Timestamp>,
    /// The second person, who approved it.
    pub approved_by: Option<String>,
    /// When that was.
    pub approved_at: Option<Timestamp>,
    /// Parts that were erased.
    pub erased: Vec<PartView>,
    /// Parts that are left and that no duty keeps. The approval erases them, or after it another request.
    pub erasable: Vec<PartView>,
    /// Parts that are left, and why.
    pub refused: Vec<RefusedPart>,
}

/// A part of the data held about a person.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PartView {
    /// The customer with its working data, or one envelope.
    pub part: PersonPart,
    /// Id of the customer or of the envelope.
    pub id: String,
    /// Its name. Null when it is erased.
    pub name: Option<String>,
}

/// A part that is kept, with the reason.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RefusedPart {
    #[serde(flatten)]
    pub part: PartView,
    /// Why it is kept.
    pub reason: ErasureRefusal,
    /// The same in words.
    pub message: String,
    /// Your own legal hold. Null for a hold of another organization.
    pub hold_id: Option<HoldId>,
    /// Case of your own legal hold.
    pub case_reference: Option<String>,
    /// Retention schedule that keeps it.
    pub schedule: Option<String>,
    /// Day until which the schedule keeps it. Null while its event has not happened.
    #[schemars(with = "Option<String>", extend("format" = "date"))]
    pub destroy_after: Option<Date>,
}

/// Step of a person towards the erasure that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErasureStep {
    /// Erases what no duty keeps, as the second person.
    Approve,
    /// Takes the request back. One person is enough: nothing is erased.
    Withdraw,
}

/// Duty that keeps a part.
enum KeepingDuty {
    Hold(Box<LegalHold>),
    Schedule(Retention),
    Other(ErasureRefusal),
}

impl KeepingDuty {
    fn reason(&self) -> ErasureRefusal {
        match self {
            Self::Hold(_) => ErasureRefusal::LegalHold,
            Self::Schedule(_) => ErasureRefusal::RetentionRunning,
            Self::Other(reason) => *reason,
        }
    }

    /// Returns a part that it keeps, as an organization may see it.
    fn refuse(self, part: PartView, org: &OrgId) -> RefusedPart {
        let reason = self.reason();
        // Another organization's hold may be secret.
        let hold = match &self {
            Self::Hold(hold) if hold.org == *org => Some(hold),
            _ => None,
        };
        let schedule = match &self {
            Self::Schedule(schedule) => Some(schedule),
            _ => None,
        };
        RefusedPart {
            part,
            reason,
            message: message(reason).into(),
            hold_id: hold.map(|hold| hold.id.clone()),
            case_reference: hold.map(|hold| hold.case_reference.clone()),
            schedule: schedule.map(|schedule| schedule.schedule.clone()),
            destroy_after: schedule.and_then(|schedule| schedule.destroy_after),
        }
    }
}

fn message(reason: ErasureRefusal) -> &'static str {
    match reason {
        ErasureRefusal::LegalHold => "A legal hold is in force",
        ErasureRefusal::OtherPartyControls => {
            "Another organization controls the record, was offered it, or has a pledge on it"
        }
        ErasureRefusal::OpenEnvelope => "The envelope can still be signed: void it first",
        ErasureRefusal::RetentionRunning => "A retention schedule keeps the record",
        ErasureRefusal::AuthoritativeRecord => {
            "The signed contract can be enforced, and no retention schedule ends it"
        }
        ErasureRefusal::OtherPeople => {
            "Another person opened, signed or declined the envelope: a request for its destruction ends it"
        }
    }
}

const UNKNOWN: ServiceError = ServiceError::NotFound("Customer");
const NOT_REQUESTED: ServiceError = ServiceError::NotFound("Erasure");

/// Returns what an erasure would do now, without a request.
///
/// # Errors
/// `Problem` (gone) for a completely erased customer.
pub async fn preview(core: &Core, caller: &Caller, id: &str) -> Result<ErasureView, ServiceError> {
    let view = of_today(core, caller, id).await?;
    if view.state == Some(ErasureState::Erased) {
        return Err(erased_customers::gone());
    }
    Ok(view)
}

/// Returns the erasure of a customer: the erased parts, the remaining parts, and the reasons.
///
/// # Errors
/// `NotFound` if none was requested.
pub async fn get(core: &Core, caller: &Caller, id: &str) -> Result<ErasureView, ServiceError> {
    let view = of_today(core, caller, id).await?;
    if view.state.is_none() {
        return Err(NOT_REQUESTED);
    }
    Ok(view)
}

async fn of_today(core: &Core, caller: &Caller, id: &str) -> Result<ErasureView, ServiceError> {
    let customer = customers::find(core, caller, id).await?;
    let today = core.clock.now().date();
    let mut connection = core.store.read().await?;
    read(&mut connection, &caller.org, &customer.id, today).await
}

/// Asks for the erasure of a customer, which another person approves. Once it was approved, tries the refused parts
/// again; with envelopes that the approval did not cover, it is another request.
///
/// # Errors
/// `Conflict` for a request that waits for its approval, `Problem` (gone) for a completely erased customer.
pub async fn request(
    core: &Core,
    caller: &Caller,
    identity: Option<&IssuerIdentity>,
    id: &str,
) -> Result<ErasureView, ServiceError> {
    let customer = customers::find(core, caller, id).await?;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    match rows::lock(&mut tx, &caller.org, &customer.id).await? {
        None => ask(&mut tx, caller, identity, &customer.id, now).await?,
        Some(mut erasure) => match erasure.state(customer.erased_at.is_none()) {
            ErasureState::Requested => return Err(requested_already()),
            ErasureState::Erased => return Err(erased_customers::gone()),
            ErasureState::Partly => {
                if has_unapproved(&mut tx, &customer, &erasure).await? {
                    ask_anew(&mut tx, caller, identity, &mut erasure, now).await?;
                } else {
                    carry_out(core, &mut tx, &caller.actor, &mut erasure, now).await?;
                }
            }
        },
    }

    let view = read(&mut tx, &caller.org, &customer.id, now.date()).await?;
    tx.commit().await?;
    empty_log(core).await;
    Ok(view)
}

/// Takes erased values out of the database's log, too. While a reader still needs it, that is left to a later checkpoint.
async fn empty_log(core: &Core) {
    if let Err(error) = core.store.empty_write_ahead_log().await {
        tracing::warn!(%error, "the log of the database could not be emptied after an erasure");
    }
}

fn requested_already() -> ServiceError {
    ServiceError::Conflict(
        "The erasure of this customer was requested already; another person approves it".into(),
    )
}

async fn ask(
    tx: &mut WriteTransaction,
    caller: &Caller,
    identity: Option<&IssuerIdentity>,
    customer: &CustomerId,
    now: Timestamp,
) -> Result<(), ServiceError> {
    let erasure = CustomerErasure {
        customer: customer.clone(),
        org: caller.org.clone(),
        requested_by: caller.actor.clone(),
        requested_as: identity.cloned(),
        requested_at: now,
        approved: None,
        erased: Vec::new(),
        remaining: Vec::new(),
    };
    match rows::insert(tx, &erasure).await {
        // Another request was faster.
        Err(error) if error.is_unique_violation() => return Err(requested_already()),
        inserted => inserted?,
    }

    Ok(record_request(tx, &erasure, now).await?)
}

/// Makes a request another one, of this caller.
async fn ask_anew(
    tx: &mut WriteTransaction,
    caller: &Caller,
    identity: Option<&IssuerIdentity>,
    erasure: &mut CustomerErasure,
    now: Timestamp,
) -> Result<(), ServiceError> {
    erasure.requested_by = caller.actor.clone();
    erasure.requested_as = identity.cloned();
    erasure.requested_at = now;
    erasure.approved = None;
    erasure.remaining = Vec::new();
    rows::update(tx, erasure).await?;
    Ok(record_request(tx, erasure, now).await?)
}

/// Whether there are envelopes that the approval did not cover: a customer under a hold can get new ones.
async fn has_unapproved(
    connection: &mut SqlConnection,
    customer: &CustomerRow,
    erasure: &CustomerErasure,
) -> Result<bool, StoreError> {
    if customer.erased_at.is_some() {
        return Ok(false);
    }
    let found = rows::envelopes(connection, customer, &erasure.org).await?;
    Ok(found.iter().any(|id| !erasure.remaining.contains(id)))
}

/// Records a request in the audit list of the organization, with its event.
async fn record_request(
    tx: &mut WriteTransaction,
    erasure: &CustomerErasure,
    now: Timestamp,
) -> Result<(), StoreError> {
    let event = EventType::CustomerErasureRequested;
    let data = json!({ "customer_id": erasure.customer });
    let (org, by) = (&erasure.org, &erasure.requested_by);
    credentials::record_by(tx, Some(org), by, event.as_str(), data.clone(), now).await?;
    let event = Event::of_organization(org.clone(), event, now, data);
    outbox::insert(tx, &event);
    deliveries::fan_out(tx, &event).await
}

/// Takes a step towards an erasure that was asked for. It always needs two people, under any policy of the organization.
///
/// # Errors
/// `Conflict` if the erasure is not at this step; `Change` if the second person may be the first one.
pub async fn decide(
    core: &Core,
    officer: &ChangeOfficer,
    id: &str,
    step: ErasureStep,
) -> Result<ErasureView, ServiceError> {
    let (org, actor) = (&officer.caller.org, &officer.caller.actor);
    let customer = customers::find(core, &officer.caller, id).await?;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let found = rows::lock(&mut tx, org, &customer.id).await?;
    let mut erasure = found.ok_or(NOT_REQUESTED)?;
    if erasure.approved.is_some() {
        let why = "The erasure of this customer was approved already";
        return Err(ServiceError::Conflict(why.into()));
    }

    match step {
        ErasureStep::Withdraw => {
            rows::remove(&mut tx, &erasure).await?;
            let (action, details) = (
                "customer.erasure_withdrawn",
                json!({ "customer_id": customer.id }),
            );
            credentials::record_by(&mut tx, Some(org), actor, action, details, now).await?;
        }
        // A key can be in the hands of its approver, so the first person takes the request of a key over.
        ErasureStep::Approve if !erasure.names_a_person() => {
            let identity = officer.identity.as_ref();
            ask_anew(&mut tx, &officer.caller, identity, &mut erasure, now).await?;
        }
        ErasureStep::Approve => {
            // An invitee of the first person may be the same person with another address.
            let account = erasure.requested_as.as_ref();
            changes::permit_second(&mut tx, officer, &erasure.requested_by, account).await?;
            erasure.approved = Some((actor.clone(), now));
            erasure.remaining = rows::envelopes(&mut tx, &customer, org).await?;
            carry_out(core, &mut tx, actor, &mut erasure, now).await?;
        }
    }

    let view = read(&mut tx, org, &customer.id, now.date()).await?;
    tx.commit().await?;
    empty_log(core).await;
    Ok(view)
}

/// Erases the remaining parts of an approved erasure that no duty protects, in the transaction of the approval or of a
/// later request.
async fn carry_out(
    core: &Core,
    tx: &mut WriteTransaction,
    actor: &str,
    erasure: &mut CustomerErasure,
    now: Timestamp,
) -> Result<(), ServiceError> {
    let org = erasure.org.clone();
    // A hold that is being placed is visible once the lock is ours.
    organizations::share(tx, &org).await?;
    let cause = DestructionCause::Erasure(erasure.customer.to_string());
    let hold = holds::on_customer(tx, &org, &erasure.customer).await?;
    let person = customer_rows::get(tx, &org, &erasure.customer).await?;
    let person = person.ok_or(UNKNOWN)?;

    // Envelopes before the customer: acts on a draft lock them in this order.
    let (mut erased, mut kept) = (Vec::new(), Vec::new());
    for id in std::mem::take(&mut erasure.remaining) {
        let found = envelopes::lock_with_destroyed(tx, &org, &id).await?;
        // A destruction that has begun needs nothing of this one.
        let Some(envelope) = found.filter(|one| one.destruction.is_none()) else {
            continue;
        };
        let duty = duty_on(tx, &person, &envelope, hold.as_ref(), now.date()).await?;
        if duty.is_some() {
            kept.push(id);
        } else {
            destruction::begin(core, tx, &envelope, &cause, actor, now).await?;
            erased.push(id);
        }
    }
    erasure.erased.extend(erased.iter().cloned());
    erasure.remaining = kept;

    let customer = customer_rows::lock(tx, &org, &erasure.customer).await?;
    let customer = customer.ok_or(UNKNOWN)?;
    let had_values = customer.erased_at.is_none();
    let has_values = had_values && hold.is_some();
    if had_values && !has_values {
        // With the customer's lock, and before its address is gone: an envelope may have come since the list was made.
        erasure.remaining = rows::envelopes(tx, &customer, &org).await?;
        rows::forget(tx, &org, &customer, now).await?;
    }
    rows::update(tx, erasure).await?;

    // A later request that finds the same duties leaves no trace.
    let is_approval = erasure.approved.as_ref().is_some_and(|(_, at)| *at == now);
    if is_approval || had_values != has_values || !erased.is_empty() {
        record_erasure(tx, actor, erasure, &erased, has_values, now).await?;
    }
    Ok(())
}

/// Records this run's erasures in the audit list of the organization, with an event: ids and counts, no value of
/// the person.
async fn record_erasure(
    tx: &mut WriteTransaction,
    actor: &str,
    erasure: &CustomerErasure,
    erased: &[EnvelopeId],
    has_values: bool,
    now: Timestamp,
) -> Result<(), StoreError> {
    let (org, event) = (&erasure.org, EventType::CustomerErased);
    let data = json!({
        "customer_id": erasure.customer,
        "state": erasure.state(has_values),
        "erased": erased.len(),
        "refused": erasure.remaining.len() + usize::from(has_values),
    });
    let mut details = data.clone();
    details["envelopes"] = json!(erased);
    details["requested_by"] = json!(erasure.requested_by);
    credentials::record_by(tx, Some(org), actor, event.as_str(), details, now).await?;

    let event = Event::of_organization(org.clone(), event, now, data);
    outbox::insert(tx, &event);
    deliveries::fan_out(tx, &event).await
}

/// Returns the duty that keeps a record; none if it can be erased. A hold on the customer keeps the envelopes in which the
/// person only takes part as well.
async fn duty_on(
    connection: &mut SqlConnection,
    person: &CustomerRow,
    envelope: &Envelope,
    on_customer: Option<&LegalHold>,
    today: Date,
) -> Result<Option<KeepingDuty>, ServiceError> {
    let hold = legal_holds::on(connection, envelope).await?;
    if let Some(hold) = hold.or_else(|| on_customer.cloned()) {
        return Ok(Some(KeepingDuty::Hold(Box::new(hold))));
    }

    let record = control::of_envelope(connection, envelope).await?;
    let is_shared = record.controller != envelope.org
        || record.named.is_some()
        || record.pledge.is_some()
        || record.transfer.is_some()
        || (record.release.is_some() && record.stage != ControlStage::Released);
    if is_shared {
        return Ok(Some(KeepingDuty::Other(ErasureRefusal::OtherPartyControls)));
    }

    let is_in_batch = envelope.batch.is_some() && envelope.status.is_unsent();
    if envelope.status.is_out_for_signing() || is_in_batch {
        return Ok(Some(KeepingDuty::Other(ErasureRefusal::OpenEnvelope)));
    }

    let found = retention::read(connection, envelope).await?.retention;
    let found = found.map(|view| view.retention);
    let is_over = found.as_ref().is_some_and(|found| found.is_due(today));
    // A signed contract goes into the vault first, with any schedule.
    let is_on_its_way = envelope.status == EnvelopeStatus::Completed;
    Ok(match found {
        Some(retention) if !is_over => Some(KeepingDuty::Schedule(retention)),
        _ if is_on_its_way || (envelope.status.is_signed() && !is_over) => {
            Some(KeepingDuty::Other(ErasureRefusal::AuthoritativeRecord))
        }
        // The end of its schedule ends it for everyone.
        _ if is_over => None,
        _ => {
            let people = people_in(connection, envelope).await?;
            let is_others = others_took_part(person, envelope, &people);
            is_others.then_some(KeepingDuty::Other(ErasureRefusal::OtherPeople))
        }
    })
}

/// Returns the signers of an envelope who have opened, signed or declined it, without users of the originator.
async fn people_in(
    connection: &mut SqlConnection,
    envelope: &Envelope,
) -> Result<Vec<Signer>, StoreError> {
    let (org, mut people) = (&envelope.org, Vec::new());
    for signer in signers::list(connection, org, &envelope.id).await? {
        if signer.status == SignerStatus::Pending {
            continue;
        }
        let address = signer.email.trim().to_lowercase();
        if users::by_address(connection, org, &address)
            .await?
            .is_none()
        {
            people.push(signer);
        }
    }
    Ok(people)
}

/// Whether another person than the customer is among those who took part in an envelope.
fn others_took_part(person: &CustomerRow, envelope: &Envelope, people: &[Signer]) -> bool {
    // Name and address are gone: each of them can be another person.
    if person.erased_at.is_some() {
        return !people.is_empty();
    }

    let is_own = envelope.customer == person.id;
    people.iter().any(|signer| {
        let own_address = person.email.as_deref().unwrap_or_default();
        let has_address = signer.email.to_lowercase() == own_address.to_lowercase();
        // The customer's address may have changed since.
        let has_name = is_own && signer.name.to_lowercase() == person.name.to_lowercase();
        !has_address && !has_name
    })
}

async fn read(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &CustomerId,
    today: Date,
) -> Result<ErasureView, ServiceError> {
    let customer = customer_rows::get(connection, org, id).await?;
    let customer = customer.ok_or(UNKNOWN)?;
    let erasure = rows::get(connection, org, id).await?;
    let has_values = customer.erased_at.is_none();
    let approved = erasure.as_ref().filter(|one| one.approved.is_some());
    let approval = approved.and_then(|one| one.approved.as_ref());
    let remaining = match approved {
        Some(approved) => approved.remaining.clone(),
        None => rows::envelopes(connection, &customer, org).await?,
    };

    let (mut erasable, mut refused) = (Vec::new(), Vec::new());
    let hold = holds::on_customer(connection, org, id).await?;
    if has_values {
        let part = PartView::of_customer(&customer);
        match hold.clone() {
            Some(hold) => refused.push(KeepingDuty::Hold(Box::new(hold)).refuse(part, org)),
            None => erasable.push(part),
        }
    }
    for id in &remaining {
        let found = envelopes::get_with_destroyed(connection, org, id).await?;
        let Some(envelope) = found.filter(|one| one.destruction.is_none()) else {
            continue;
        };
        let part = PartView::of_envelope(&envelope);
        match duty_on(connection, &customer, &envelope, hold.as_ref(), today).await? {
            Some(duty) => refused.push(duty.refuse(part, org)),
            None => erasable.push(part),
        }
    }

    let erased = erasure.iter().flat_map(|one| &one.erased);
    let erased = erased.map(|id| PartView::erased(PersonPart::Envelope, id.as_str()));
    let erased_customer =
        (!has_values).then(|| PartView::erased(PersonPart::Customer, id.as_str()));
    Ok(ErasureView {
        customer_id: id.clone(),
        state: erasure.as_ref().map(|one| one.state(has_values)),
        requested_by: erasure.as_ref().map(|one| one.requested_by.clone()),
        requested_at: erasure.as_ref().map(|one| one.requested_at),
        approved_by: approval.map(|(by, _)| by.clone()),
        approved_at: approval.map(|(_, at)| *at),
        erased: erased_customer.into_iter().chain(erased).collect(),
        erasable,
        refused,
    })
}

impl PartView {
    fn of_customer(customer: &CustomerRow) -> Self {
        Self {
            part: PersonPart::Customer,
            id: customer.id.to_string(),
            name: Some(customer.name.clone()),
        }
    }

    fn of_envelope(envelope: &Envelope) -> Self {
        Self {
            part: PersonPart::Envelope,
            id: envelope.id.to_string(),
            name: Some(envelope.name.clone()),
        }
    }

    fn erased(part: PersonPart, id: &str) -> Self {
        Self {
            part,
            id: id.to_owned(),
            name: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::envelope::EnvelopeKind;

    #[test]
    fn the_customer_is_known_by_address_or_in_an_own_envelope_by_name() {
        let at = Timestamp::from_millis(0);
        let mut person = CustomerRow {
            id: CustomerId::new(),
            email: Some("ann@example.com".into()),
            name: "Ann Buyer".into(),
            details: serde_json::Map::new(),
            created_at: at,
            updated_at: at,
            erased_at: None,
        };
        let of = |customer: &CustomerId| {
            let (org, by) = (OrgId::new(), "user:ada@oak.example".into());
            Envelope::new(
                org,
                customer.clone(),
                "Made".into(),
                EnvelopeKind::Esign,
                by,
                at,
            )
        };
        let signer =
            |name: &str, email: &str| Signer::new(0, name.into(), email.into(), "Buyer".into());
        let (own, of_another) = (of(&person.id), of(&CustomerId::new()));

        let by_address = [signer("A. Buyer", "Ann@example.com")];
        assert!(!others_took_part(&person, &of_another, &by_address));
        let by_name = [signer("ann buyer", "ann@old.example")];
        assert!(!others_took_part(&person, &own, &by_name));
        assert!(others_took_part(&person, &of_another, &by_name));
        let both = [by_name, by_address].concat();
        assert!(!others_took_part(&person, &own, &[]));

        // After the erasure of the customer, nobody is known.
        person.erased_at = Some(at);
        assert!(others_took_part(&person, &own, &both[..1]));
        assert!(!others_took_part(&person, &own, &[]));
    }
}
