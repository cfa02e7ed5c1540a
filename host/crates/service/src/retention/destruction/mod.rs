//! Destruction of records in two steps: one person requests it, another one authorizes it, and a person who is not the one that
//! authorized it orders it. Then a job destroys record by record.

mod begin;
pub mod certificate;
pub mod consents;
mod work;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub use begin::begin;
use begin::{about, check, user_of};
pub use work::carry_on;

use super::holds::invalid;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::destruction::{
    Destruction, DestructionCause, DestructionRecord, DestructionRecordState, DestructionRefusal,
    DestructionState, DestructionStep,
};
use holdfast_domain::envelope::Envelope;
use holdfast_domain::event::EventType;
use holdfast_domain::id::{DestructionId, EnvelopeId, OrgId};
use holdfast_domain::job::DestroyRecord;
use holdfast_platform::access::credentials;
use holdfast_platform::components::changes::{self, ChangeOfficer};
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::problems::ChangeProblem;
use holdfast_platform::{Caller, Core, Problem, ProblemKind, ServiceError, events};
use holdfast_store::{
    SqlConnection, StoreError, WriteTransaction, destructions as rows, envelopes, jobs, retention,
};

const UNKNOWN: ServiceError = ServiceError::NotFound("Destruction");

/// Records of one request at most.
const MOST: usize = 1_000;
/// Due records that are looked at for one request, and those that are read at once.
const LOOKED_AT: usize = 10_000;
const SLICE: usize = 100;

/// Body of `POST /destructions`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "envelope_ids": ["env_01jdk7m3e8f4x9s2w5v6b0c1dc"],
    "reason": "The retention of seven years after the payoff is over.",
    "certificate_recipient": "Ohio Department of Commerce",
}]))]
pub struct NewDestruction {
    /// The records, all of your organization. Not together with `due`.
    #[schemars(length(min = 1, max = 1000))]
    pub envelope_ids: Option<Vec<String>>,
    /// Takes the records that are due by your retention schedules: the 1,000 oldest, and `more` of the answer states whether
    /// there are others. Those under a legal hold and those of another request are left out.
    #[serde(default)]
    pub due: bool,
    /// Why, for people of your organization only. It is kept after the destruction, so it should name no customer.
    #[schemars(length(min = 1, max = 2000))]
    pub reason: String,
    /// Organization that the certificates are made out to, such as an examiner.
    #[schemars(length(min = 1, max = 200))]
    pub certificate_recipient: Option<String>,
}

/// A request to destroy records.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "destruction_id": "dst_01jdk7m3e8f4x9s2w5v6b0c1dc", "state": "authorized",
    "reason": "The retention of seven years after the payoff is over.",
    "certificate_recipient": "Ohio Department of Commerce",
    "records": [{
        "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "state": "waiting",
        "controller_id": "org_01jdk7m3e8f4x9s2w5v6b0c1da", "consent_required": false, "consented_at": null,
        "refusal": null,
    }],
    "more": false,
    "requested_by": "user:ada@acme.example", "requested_at": "2038-05-02T09:45:00.000Z",
    "authorized_by": "user:ben@acme.example", "authorized_at": "2038-05-02T10:45:00.000Z",
    "carried_out_by": null, "carried_out_at": null, "withdrawn_by": null, "withdrawn_at": null,
}]))]
pub struct DestructionView {
    /// Id of the request.
    pub destruction_id: DestructionId,
    /// `carried_out` once the order was given: each record then has a state of its own.
    pub state: DestructionState,
    /// Why it was requested.
    pub reason: String,
    /// Organization that the certificates are made out to.
    pub certificate_recipient: Option<String>,
    /// The records.
    pub records: Vec<DestructionRecordView>,
    /// In the answer to a request with `due`: more records are due than one request takes. After this one, another request
    /// takes the next.
    pub more: bool,
    /// Person or key that requested it.
    pub requested_by: String,
    /// When that was.
    pub requested_at: Timestamp,
    /// Person who authorized it.
    pub authorized_by: Option<String>,
    /// When that was.
    pub authorized_at: Option<Timestamp>,
    /// Person who ordered it. Not the one who authorized it.
    pub carried_out_by: Option<String>,
    /// When that was.
    pub carried_out_at: Option<Timestamp>,
    /// Person who withdrew it.
    pub withdrawn_by: Option<String>,
    /// When that was.
    pub withdrawn_at: Option<Timestamp>,
}

/// A record of a request.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DestructionRecordView {
    /// Id of the envelope.
    pub envelope_id: EnvelopeId,
    /// `refused`: something stood against it when its turn came, and the record is whole.
    pub state: DestructionRecordState,
    /// Organization that controlled the record when it was requested.
    pub controller_id: OrgId,
    /// Whether that organization has to consent.
    pub consent_required: bool,
    /// When it consented.
    pub consented_at: Option<Timestamp>,
    /// What stood against the destruction.
    pub refusal: Option<DestructionRefusal>,
}

impl From<&DestructionRecord> for DestructionRecordView {
    fn from(record: &DestructionRecord) -> Self {
        Self {
            envelope_id: record.envelope.clone(),
            state: record.state(),
            controller_id: record.controller.clone(),
            consent_required: record.controller != record.org,
            consented_at: record.consented.as_ref().map(|step| step.at),
            refusal: record.refusal.clone(),
        }
    }
}

impl DestructionView {
    fn of(request: &Destruction, records: &[DestructionRecord]) -> Self {
        let by = |step: &Option<DestructionStep>| step.as_ref().map(|step| step.by.clone());
        let at = |step: &Option<DestructionStep>| step.as_ref().map(|step| step.at);
        Self {
            destruction_id: request.id.clone(),
            state: request.state(),
            reason: request.reason.clone(),
            certificate_recipient: request.certificate_recipient.clone(),
            records: records.iter().map(DestructionRecordView::from).collect(),
            more: false,
            requested_by: request.requested.by.clone(),
            requested_at: request.requested.at,
            authorized_by: by(&request.authorized),
            authorized_at: at(&request.authorized),
            carried_out_by: by(&request.carried_out),
            carried_out_at: at(&request.carried_out),
            withdrawn_by: by(&request.withdrawn),
            withdrawn_at: at(&request.withdrawn),
        }
    }
}

/// Requests the destruction of records. Nothing is deleted by it.
///
/// # Errors
/// `Invalid` without records or with a blank text, `NotFound` for an unknown envelope, and everything that stands against the
/// destruction of one of the named records.
pub async fn request(
    core: &Core,
    caller: &Caller,
    form: NewDestruction,
    answer: &ResponseRecorder<DestructionView>,
) -> Result<DestructionView, ServiceError> {
    check_texts(&form)?;
    let now = core.clock.now();
    let id = DestructionId::new();
    // Before the transaction: other writes do not wait while a thousand records are looked at.
    let Chosen { records, more } = match (&form.envelope_ids, form.due) {
        (Some(ids), false) => named(core, caller, ids, now).await?,
        (None, true) => due(core, caller, now).await?,
        _ => {
            let why = "Name the envelopes, or take all records that are due";
            return Err(invalid("envelope_ids", "envelope_ids or due", "", why));
        }
    };

    let mut tx = core.store.begin().await?;
    let chosen = still_free(&mut tx, records, form.due).await?;
    let new = Destruction {
        id: id.clone(),
        org: caller.org.clone(),
        reason: form.reason.trim().to_owned(),
        certificate_recipient: form
            .certificate_recipient
            .map(|name| name.trim().to_owned()),
        requested: step(&mut tx, caller, None, now).await?,
        authorized: None,
        carried_out: None,
        withdrawn: None,
    };
    let records = chosen
        .iter()
        .map(|(envelope, controller)| DestructionRecord {
            destruction: id.clone(),
            org: envelope.org.clone(),
            envelope: envelope.id.clone(),
            controller: controller.clone(),
            consented: None,
            refusal: None,
            progress: None,
        });
    let records: Vec<DestructionRecord> = records.collect();
    rows::insert(&mut tx, &new, &records).await?;

    // A party that has to consent learns of it; it finds the request by its own id.
    for (envelope, controller) in &chosen {
        if *controller != envelope.org {
            let event = EventType::DestructionRequested;
            let data = json!({ "destruction_id": id });
            events::emit(&mut tx, envelope, event, data.clone(), now).await?;
            events::emit_to_party(&mut tx, envelope, controller, event, &data, now).await?;
        }
    }

    let view = DestructionView {
        more,
        ..DestructionView::of(&new, &records)
    };
    record_step(&mut tx, &view, caller, "destruction.requested", now).await?;
    answer.commit(tx, &view).await?;
    Ok(view)
}

fn check_texts(form: &NewDestruction) -> Result<(), ServiceError> {
    if form.reason.trim().is_empty() {
        let why = "The request says why the records are destroyed";
        return Err(invalid("reason", "a text", &form.reason, why));
    }
    let recipient = form.certificate_recipient.as_deref();
    if recipient.is_some_and(|name| name.trim().is_empty()) {
        let why = "Name the organization that the certificates are made out to, or leave it out";
        return Err(invalid("certificate_recipient", "a name", "", why));
    }
    Ok(())
}

/// Records of a new request, with the parties that control them.
struct Chosen {
    records: Vec<(Envelope, OrgId)>,
    /// Whether more are due than one request takes.
    more: bool,
}

/// Returns the named envelopes. One that cannot be destroyed refuses the request.
async fn named(
    core: &Core,
    caller: &Caller,
    ids: &[String],
    now: Timestamp,
) -> Result<Chosen, ServiceError> {
    let mut connection = core.store.read().await?;
    let mut chosen = BTreeMap::new();
    for id in ids {
        let unknown = || ServiceError::NotFound("Envelope");
        let id = EnvelopeId::parse(id).ok_or_else(unknown)?;
        let envelope = envelopes::get(&mut connection, &caller.org, &id).await?;
        let envelope = envelope.ok_or_else(unknown)?;
        let checked = requestable(&mut connection, &envelope, now).await;
        let controller = checked.map_err(|error| about(error, &envelope))?;
        chosen.insert(id.to_string(), (envelope, controller));
    }
    Ok(Chosen {
        records: chosen.into_values().collect(),
        more: false,
    })
}

/// Returns the oldest due envelopes that can be destroyed.
async fn due(core: &Core, caller: &Caller, now: Timestamp) -> Result<Chosen, ServiceError> {
    let (mut records, mut more) = (Vec::new(), false);
    let (mut after, mut looked_at) = (None, 0);
    while !more {
        // A connection for each slice, so that others get one in between.
        let mut connection = core.store.read().await?;
        let slice = due_slice(&mut connection, caller, after.as_ref(), now).await?;
        let Some(last) = slice.last else {
            break;
        };
        after = Some(last);
        looked_at += SLICE;
        records.extend(slice.records);
        more = records.len() > MOST || looked_at >= LOOKED_AT;
    }
    records.truncate(MOST);

    if records.is_empty() {
        return Err(nothing_due());
    }
    Ok(Chosen { records, more })
}

fn nothing_due() -> ServiceError {
    let message = "No record is due that could be destroyed";
    Problem::new(ProblemKind::State, "nothing_due", message).into()
}

/// Some of the due records.
struct DueSlice {
    records: Vec<(Envelope, OrgId)>,
    /// The last one that was looked at; none behind the last slice.
    last: Option<EnvelopeId>,
}

/// Returns those of the next due records that can be destroyed.
async fn due_slice(
    connection: &mut SqlConnection,
    caller: &Caller,
    after: Option<&EnvelopeId>,
    now: Timestamp,
) -> Result<DueSlice, ServiceError> {
    let (org, mut records, mut last) = (&caller.org, Vec::new(), None);
    for proposal in retention::proposals(connection, org, after, SLICE as i64).await? {
        let found = envelopes::get_with_destroyed(connection, org, &proposal.envelope).await?;
        last = Some(proposal.envelope);
        let Some(envelope) = found else {
            continue;
        };
        match requestable(connection, &envelope, now).await {
            Ok(controller) => records.push((envelope, controller)),
            Err(
                ServiceError::Store(StoreError::Destroyed)
                | ServiceError::Problem(_)
                | ServiceError::Control(_),
            ) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(DueSlice { records, last })
}

/// Returns the chosen records that no request has named since they were looked at. What else came in between stands against
/// the next step. A named one refuses the request; of those that are due, it is left out.
async fn still_free(
    tx: &mut WriteTransaction,
    chosen: Vec<(Envelope, OrgId)>,
    is_due: bool,
) -> Result<Vec<(Envelope, OrgId)>, ServiceError> {
    let mut free = Vec::new();
    for (envelope, controller) in chosen {
        match require_free(tx, &envelope).await {
            Ok(()) => free.push((envelope, controller)),
            Err(ServiceError::Problem(_)) if is_due => {}
            Err(error) => return Err(about(error, &envelope)),
        }
    }
    if is_due && free.is_empty() {
        return Err(nothing_due());
    }
    Ok(free)
}

/// Returns the party that controls a record which can be destroyed, and is in no other request.
async fn requestable(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    now: Timestamp,
) -> Result<OrgId, ServiceError> {
    // The consent comes after the request, so it is not asked for here.
    let control = check(connection, envelope, None, now).await?;
    require_free(connection, envelope).await?;
    Ok(control.controller)
}

/// Refuses a record of another request.
async fn require_free(
    connection: &mut SqlConnection,
    envelope: &Envelope,
) -> Result<(), ServiceError> {
    let Some(other) = rows::open_of(connection, envelope).await? else {
        return Ok(());
    };
    let message = "Another request names this record already";
    let problem = Problem::new(ProblemKind::State, "destruction_requested", message);
    Err(problem
        .with_details(json!({ "destruction_id": other }))
        .into())
}

/// Returns a request of the caller's organization.
pub async fn get(core: &Core, caller: &Caller, id: &str) -> Result<DestructionView, ServiceError> {
    let id = DestructionId::parse(id).ok_or(UNKNOWN)?;
    let mut connection = core.store.read().await?;
    let request = rows::get(&mut connection, &caller.org, &id).await?;
    let request = request.ok_or(UNKNOWN)?;
    let records = rows::records(&mut connection, &caller.org, &id).await?;
    Ok(DestructionView::of(&request, &records))
}

/// Lists the requests of the caller's organization, newest first.
pub async fn list(
    core: &Core,
    caller: &Caller,
    after: Option<&DestructionId>,
    limit: i64,
) -> Result<Vec<DestructionView>, ServiceError> {
    let mut connection = core.store.read().await?;
    let mut views = Vec::new();
    for request in rows::list(&mut connection, &caller.org, after, limit).await? {
        let records = rows::records(&mut connection, &caller.org, &request.id).await?;
        views.push(DestructionView::of(&request, &records));
    }
    Ok(views)
}

/// Act of a person on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DestructionAct {
    /// Authorizes it, as another person than the one who requested it.
    Authorize,
    /// Takes the authorization back.
    TakeBack,
    /// Orders it, as another person than the one who authorized it. The records are destroyed.
    CarryOut,
    /// Ends the request. One person is enough: the records stay.
    Withdraw,
}

/// Acts on a request. Whether records may be destroyed is asked at each step again, and a last time for each record.
///
/// # Errors
/// `Conflict` if the request is not at this step, `Change` if the second person may be the first one, and everything that
/// stands against the destruction of one of the records.
pub async fn decide(
    core: &Core,
    officer: &ChangeOfficer,
    id: &str,
    act: DestructionAct,
) -> Result<DestructionView, ServiceError> {
    let caller = &officer.caller;
    let id = DestructionId::parse(id).ok_or(UNKNOWN)?;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let request = rows::lock(&mut tx, &caller.org, &id).await?;
    let mut request = request.ok_or(UNKNOWN)?;
    let records = rows::records(&mut tx, &caller.org, &id).await?;
    let own = step(&mut tx, caller, Some(officer), now).await?;

    let action = match (act, request.state()) {
        (DestructionAct::Authorize, DestructionState::Requested) => {
            let first = &request.requested;
            changes::permit_second(&mut tx, officer, &first.by, first.identity.as_ref()).await?;
            check_all(&mut tx, &records, now).await?;
            request.authorized = Some(own);
            "destruction.authorized"
        }
        (DestructionAct::TakeBack, DestructionState::Authorized) => {
            request.authorized = None;
            "destruction.authorization_withdrawn"
        }
        (DestructionAct::CarryOut, DestructionState::Authorized) => {
            permit_order(&mut tx, officer, &request).await?;
            check_all(&mut tx, &records, now).await?;
            request.carried_out = Some(own);
            queue(&mut tx, &id, &records, now).await?;
            "destruction.carried_out"
        }
        (DestructionAct::Withdraw, DestructionState::Requested | DestructionState::Authorized) => {
            request.withdrawn = Some(own);
            "destruction.withdrawn"
        }
        (_, state) => return Err(not_now(act, state)),
    };
    rows::update(&mut tx, &request).await?;

    let view = DestructionView::of(&request, &records);
    record_step(&mut tx, &view, caller, action, now).await?;
    tx.commit().await?;
    Ok(view)
}

/// Refuses an act that does not follow on the state of a request.
fn not_now(act: DestructionAct, state: DestructionState) -> ServiceError {
    let message = match (act, state) {
        (DestructionAct::CarryOut, DestructionState::Requested) => {
            let message = "Another person has to authorize the destruction first";
            return Problem::new(ProblemKind::State, "authorization_missing", message).into();
        }
        (DestructionAct::TakeBack, DestructionState::Requested) => {
            "The destruction was not authorized"
        }
        (_, DestructionState::Withdrawn) => "The request was withdrawn",
        (_, DestructionState::CarriedOut) => "The destruction was carried out already",
        _ => {
            "The destruction was authorized already; a person who did not authorize it carries it out"
        }
    };
    ServiceError::Conflict(message.into())
}

/// Permits the order to another person than the one who authorized it, by the rule for two people.
async fn permit_order(
    tx: &mut WriteTransaction,
    officer: &ChangeOfficer,
    request: &Destruction,
) -> Result<(), ServiceError> {
    let Some(authorized) = &request.authorized else {
        return Err(not_now(
            DestructionAct::CarryOut,
            DestructionState::Requested,
        ));
    };
    let account = authorized.identity.as_ref();
    let permitted = changes::permit_second(tx, officer, &authorized.by, account).await;
    permitted.map_err(|error| match error {
        ServiceError::Change(ChangeProblem::RequesterReviews) => {
            let message = "You authorized this destruction; another person carries it out";
            Problem::new(ProblemKind::State, "authorizer_carries_out", message).into()
        }
        error => error,
    })
}

/// Refuses a step if one of the records cannot be destroyed any more.
async fn check_all(
    connection: &mut SqlConnection,
    records: &[DestructionRecord],
    now: Timestamp,
) -> Result<(), ServiceError> {
    for record in records {
        let found =
            envelopes::get_with_destroyed(connection, &record.org, &record.envelope).await?;
        let envelope = found.ok_or(ServiceError::NotFound("Envelope"))?;
        let checked = check(connection, &envelope, Some(record), now).await;
        checked.map_err(|error| about(error, &envelope))?;
    }
    Ok(())
}

/// Queues the destruction of each record, in place of a job of an earlier request: one that failed for good, or that is about
/// to end.
async fn queue(
    tx: &mut WriteTransaction,
    id: &DestructionId,
    records: &[DestructionRecord],
    now: Timestamp,
) -> Result<(), StoreError> {
    for record in records {
        let job = DestroyRecord {
            envelope: record.envelope.clone(),
            cause: DestructionCause::Destruction(id.clone()),
        };
        let key = record.envelope.as_str();
        jobs::remove::<DestroyRecord>(tx, &record.org, key).await?;
        jobs::insert(tx, &record.org, &job, Some(key), now).await?;
    }
    Ok(())
}

/// Returns a step of the caller, with the id of the user.
async fn step(
    connection: &mut SqlConnection,
    caller: &Caller,
    officer: Option<&ChangeOfficer>,
    now: Timestamp,
) -> Result<DestructionStep, StoreError> {
    let user = user_of(connection, &caller.org, &caller.actor).await?;
    let (user, known) = user.unzip();
    Ok(DestructionStep {
        by: caller.actor.clone(),
        org: caller.org.clone(),
        user,
        role: caller.role.or(known),
        identity: officer.and_then(|officer| officer.identity.clone()),
        at: now,
    })
}

/// Records a step in the audit list of the organization.
async fn record_step(
    tx: &mut WriteTransaction,
    view: &DestructionView,
    caller: &Caller,
    action: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let details = json!({
        "destruction_id": view.destruction_id, "reason": view.reason,
        "envelope_ids": view.records.iter().map(|record| &record.envelope_id).collect::<Vec<_>>(),
    });
    let org = Some(&caller.org);
    credentials::record_by(tx, org, &caller.actor, action, details, now).await
}
