//! Retention: schedules of an organization, events that it reports, records at the end of their time, and their destruction
//! by two people. A record that is due is proposed, and stays until they destroy it.

pub mod destruction;
pub mod holds;
pub mod store_holds;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, EnvelopeStatus, words};
use holdfast_domain::event::EventType;
use holdfast_domain::id::{EnvelopeId, OrgId};
use holdfast_domain::retention::{Date, EndEvent, Retention, RetentionSchedule};
use holdfast_platform::access::credentials;
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::permits::legal_holds;
use holdfast_platform::{Caller, Core, ServiceError, ValidationIssue, events, lookup};
use holdfast_store::retention::{self as rows, OwnedSchedules, RetentionCandidate};
use holdfast_store::{SqlConnection, StoreError, WriteTransaction, chores, envelopes};

/// Name of the daily chore.
const CHORE: &str = "retention";
const DAY: Duration = Duration::from_secs(86_400);
/// Records read in one query.
const AT_ONCE: i64 = 1_000;

/// Body of `PUT /retention-schedules`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "schedules": [
    { "name": "Retail contracts", "kind": "esign", "jurisdiction": "US-OH", "event": "paid_off", "keep_months": 84 },
    { "name": "Declined", "event": "declined", "keep_months": 25 },
] }]))]
pub struct RetentionSchedules {
    /// All schedules; those that are not here are removed. Without any, no record is ever due.
    #[schemars(length(max = 50))]
    pub schedules: Vec<RetentionSchedule>,
}

/// Retention schedules of an organization.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "schedules": [{ "name": "Declined", "event": "declined", "keep_months": 25 }],
    "changed_by": "user:ada@acme.example", "changed_at": "2026-11-21T09:45:00.000Z",
}]))]
pub struct SchedulesView {
    /// The schedules. Without any, no record is ever due.
    pub schedules: Vec<RetentionSchedule>,
    /// Who set them last.
    pub changed_by: Option<String>,
    /// When that was.
    pub changed_at: Option<Timestamp>,
}

impl From<OwnedSchedules> for SchedulesView {
    fn from(own: OwnedSchedules) -> Self {
        Self {
            schedules: own.schedules,
            changed_by: Some(own.changed_by),
            changed_at: Some(own.changed_at),
        }
    }
}

words! {
    /// Event that an organization reports about its contracts.
    ReportableEvent {
        PaidOff = "paid_off",
    }
}

/// Body of `POST /partner/envelopes/{id}/retention-events`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "event": "paid_off", "date": "2031-04-30" }]))]
pub struct ReportedEvent {
    /// What happened.
    pub event: ReportableEvent,
    /// Day on which it happened. It replaces an earlier report.
    #[schemars(with = "String", extend("format" = "date"))]
    pub date: Date,
}

/// Retention of a record.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "schedule": "Retail contracts", "event": "paid_off", "event_date": "2031-04-30",
    "destroy_after": "2038-04-30", "proposed_at": null,
}]))]
pub struct RetentionView {
    #[serde(flatten)]
    pub retention: Retention,
    /// When the record was proposed for destruction. Nothing is deleted by it.
    pub proposed_at: Option<Timestamp>,
}

/// Retention of an envelope, with the payoff that it depends on.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "paid_off": "2031-04-30",
    "retention": {
        "schedule": "Retail contracts", "event": "paid_off", "event_date": "2031-04-30",
        "destroy_after": "2038-04-30", "proposed_at": null,
    },
}]))]
pub struct RecordRetention {
    /// Id of the envelope.
    pub envelope_id: EnvelopeId,
    /// Day on which the contract was paid off, as it was reported.
    #[schemars(with = "Option<String>", extend("format" = "date"))]
    pub paid_off: Option<Date>,
    /// Retention of the record. Null if no schedule matches it.
    pub retention: Option<RetentionView>,
}

/// A record at the end of its retention.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "envelope_name": "Retail instalment contract 2041",
    "schedule": "Declined", "event": "declined", "event_date": "2024-10-21", "destroy_after": "2026-11-21",
    "proposed_at": "2026-11-21T00:00:07.000Z", "under_hold": false,
}]))]
pub struct DueView {
    /// Id of the envelope.
    pub envelope_id: EnvelopeId,
    /// Its name.
    pub envelope_name: String,
    /// Schedule that decides.
    pub schedule: String,
    /// Event of the schedule.
    pub event: EndEvent,
    /// Day of the event.
    #[schemars(with = "String", extend("format" = "date"))]
    pub event_date: Date,
    /// Day on which the retention was over.
    #[schemars(with = "String", extend("format" = "date"))]
    pub destroy_after: Date,
    /// When it was proposed for destruction. Nothing is deleted by it.
    pub proposed_at: Timestamp,
    /// Whether a legal hold is in force on it.
    pub under_hold: bool,
}

/// Returns the schedules of the caller's organization.
pub async fn schedules(core: &Core, caller: &Caller) -> Result<SchedulesView, ServiceError> {
    let found = rows::schedules(&mut *core.store.read().await?, &caller.org).await?;
    Ok(found.map_or_else(
        || SchedulesView {
            schedules: Vec::new(),
            changed_by: None,
            changed_at: None,
        },
        SchedulesView::from,
    ))
}

/// Replaces the schedules of the caller's organization. The next run of the worker, soon after, judges all records by
/// them.
///
/// # Errors
///
/// `Invalid` for a blank or repeated name, a time out of range, or two schedules about the same records and event.
pub async fn set_schedules(
    core: &Core,
    caller: &Caller,
    request: RetentionSchedules,
    answer: &ResponseRecorder<SchedulesView>,
) -> Result<SchedulesView, ServiceError> {
    check(&request.schedules)?;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let before = rows::schedules(&mut tx, &caller.org).await?;
    let new = OwnedSchedules {
        org: caller.org.clone(),
        schedules: request.schedules,
        changed_by: caller.actor.clone(),
        changed_at: now,
    };
    rows::set_schedules(&mut tx, &new).await?;
    chores::bring_forward(&mut tx, CHORE, now).await?;

    let from = before.map(|before| before.schedules).unwrap_or_default();
    let details = json!({ "from": from, "to": new.schedules });
    let (org, action) = (Some(&caller.org), "retention.schedules_set");
    credentials::record_by(&mut tx, org, &caller.actor, action, details, now).await?;
    let view = SchedulesView::from(new);
    answer.commit(tx, &view).await?;

    Ok(view)
}

fn check(schedules: &[RetentionSchedule]) -> Result<(), ServiceError> {
    for (at, schedule) in schedules.iter().enumerate() {
        let earlier = schedules.iter().take(at);
        let months = schedule.keep_months;
        let (member, code, received, why) = if schedule.name.trim().is_empty() {
            (
                "name",
                "too_small",
                String::new(),
                "A schedule needs a name",
            )
        } else if earlier.clone().any(|other| other.name == schedule.name) {
            let why = "Each name is there once";
            ("name", "duplicate", schedule.name.clone(), why)
        } else if !(1..=RetentionSchedule::LONGEST).contains(&months) {
            let why = "A record is kept for 1 to 1,200 months";
            ("keep_months", "out_of_range", months.to_string(), why)
        } else if earlier.clone().any(|other| other.rivals(schedule)) {
            let why = "Another schedule is about the same kind, jurisdiction and event";
            ("event", "duplicate", schedule.event.to_string(), why)
        } else {
            continue;
        };

        let at = at.to_string();
        let path = ["schedules", &at, member];
        let issue = ValidationIssue::new(code, &path, "another value", received, why);
        return Err(ServiceError::Invalid(vec![issue]));
    }

    Ok(())
}

/// Records that a contract was paid off. A repeat with the same day changes nothing.
///
/// # Errors
///
/// `Conflict` for an envelope that is no contract, `Invalid` for a day that is more than a day ahead.
pub async fn report(
    core: &Core,
    caller: &Caller,
    id: &str,
    request: ReportedEvent,
    answer: &ResponseRecorder<RecordRetention>,
) -> Result<RecordRetention, ServiceError> {
    let id = lookup::envelope(core, caller, id).await?.id;
    let now = core.clock.now();
    // A day, because it is tomorrow already where the contract is.
    if request.date > (now + DAY).date() {
        return Err(ServiceError::invalid(
            "out_of_range",
            &["date"],
            "today or a day in the past",
            request.date.to_string(),
            "A contract that will be paid off later is reported then",
        ));
    }

    let mut tx = core.store.begin().await?;
    let envelope = lookup::lock_envelope(&mut tx, &caller.org, &id).await?;
    let is_contract = matches!(
        envelope.status,
        EnvelopeStatus::Completed | EnvelopeStatus::Vaulted | EnvelopeStatus::VaultedOut
    );
    if !is_contract {
        return Err(ServiceError::Conflict(format!(
            "An envelope with status {} is no contract that could be paid off",
            envelope.status
        )));
    }

    let before = rows::candidate(&mut tx, &caller.org, &id).await?;
    let known = before.and_then(|before| before.facts.paid_off);
    if known != Some(request.date) {
        rows::set_paid_off(&mut tx, &envelope, request.date, &caller.actor, now).await?;
        let (event, data) = (EventType::EnvelopePaidOff, json!({ "date": request.date }));
        events::record_and_emit(&mut tx, &envelope, &caller.actor, event, data, now).await?;
    }

    let view = read(&mut tx, &envelope).await?;
    answer.commit(tx, &view).await?;

    Ok(view)
}

/// Returns the retention of an envelope of the caller's organization.
pub async fn get(core: &Core, caller: &Caller, id: &str) -> Result<RecordRetention, ServiceError> {
    let envelope = lookup::envelope(core, caller, id).await?;
    Ok(read(&mut *core.store.read().await?, &envelope).await?)
}

/// Returns the retention of an envelope; none if no schedule of its organization matches it.
pub async fn of(core: &Core, envelope: &Envelope) -> Result<Option<RetentionView>, ServiceError> {
    let found = read(&mut *core.store.read().await?, envelope).await?;
    Ok(found.retention)
}

/// Returns the retention of an envelope, with the payoff that it depends on.
pub(crate) async fn read(
    connection: &mut SqlConnection,
    envelope: &Envelope,
) -> Result<RecordRetention, StoreError> {
    let own = rows::schedules(connection, &envelope.org).await?;
    let found = rows::candidate(connection, &envelope.org, &envelope.id).await?;
    let paid_off = found.as_ref().and_then(|found| found.facts.paid_off);
    let retention = own.zip(found).and_then(|(own, found)| {
        Some(RetentionView {
            retention: Retention::of(&own.schedules, &found.facts)?,
            proposed_at: found.proposed_at,
        })
    });

    Ok(RecordRetention {
        envelope_id: envelope.id.clone(),
        paid_off,
        retention,
    })
}

/// Lists the records of the caller's organization that are due, by the ids of their envelopes.
pub async fn due(
    core: &Core,
    caller: &Caller,
    after: Option<&EnvelopeId>,
    limit: i64,
) -> Result<Vec<DueView>, ServiceError> {
    let mut connection = core.store.read().await?;
    let mut views = Vec::new();
    for proposal in rows::proposals(&mut connection, &caller.org, after, limit).await? {
        let found =
            envelopes::get_with_destroyed(&mut connection, &caller.org, &proposal.envelope).await?;
        // A destruction that has just begun takes its proposal along.
        let whole = found.filter(|envelope| envelope.destruction.is_none());
        let Some(envelope) = whole else {
            continue;
        };

        let hold = legal_holds::on(&mut connection, &envelope).await?;
        views.push(DueView {
            envelope_id: envelope.id,
            envelope_name: envelope.name,
            schedule: proposal.schedule,
            event: proposal.event,
            event_date: proposal.event_date,
            destroy_after: proposal.destroy_after,
            proposed_at: proposal.proposed_at,
            under_hold: hold.is_some(),
        });
    }

    Ok(views)
}

/// Proposes due records once a day, and soon after a change of schedules.
pub async fn propose_when_due(core: &Core) -> Result<(), ServiceError> {
    let now = core.clock.now();
    // Read first: a claim writes, and most rounds of most installations have nothing to claim.
    let mut connection = core.store.read().await?;
    let schedules = rows::all_schedules(&mut connection).await?;
    drop(connection);
    let is_due = chores::due(&core.store, CHORE).await?;
    if schedules.is_empty() || is_due.is_some_and(|at| at > now) {
        return Ok(());
    }

    if chores::claim(&core.store, CHORE, now, now + DAY).await? {
        propose(core).await?;
    }
    Ok(())
}

/// Proposes all records at the end of their retention, and withdraws the proposals of those that are not due any more. Returns
/// the number of new proposals. Writes nothing if there is neither, so it may run at any time, also on several nodes.
pub async fn propose(core: &Core) -> Result<u64, ServiceError> {
    let all = rows::all_schedules(&mut *core.store.read().await?).await?;
    let mut proposed = 0;
    for own in all {
        match propose_in(core, &own).await {
            Ok(number) => proposed += number,
            // One organization does not hold up the others.
            Err(error) => {
                let org = own.org.as_str();
                tracing::error!(org, %error, "records of an organization could not be judged by its schedules");
            }
        }
    }

    Ok(proposed)
}

async fn propose_in(core: &Core, own: &OwnedSchedules) -> Result<u64, ServiceError> {
    let today = core.clock.now().date();
    let (mut proposed, mut after) = (0, None);
    loop {
        let mut connection = core.store.read().await?;
        let page = rows::candidates(&mut connection, &own.org, after.as_ref(), AT_ONCE).await?;
        drop(connection);

        // Decided without a lock for all, and again under the lock for those that change.
        for candidate in &page {
            let is_due = is_due(&own.schedules, candidate, today);
            if is_due != candidate.proposed_at.is_some() {
                proposed += u64::from(settle(core, &own.org, &candidate.envelope).await?);
            }
        }

        after = match page.into_iter().last() {
            Some(last) => Some(last.envelope),
            None => return Ok(proposed),
        };
    }
}

fn is_due(schedules: &[RetentionSchedule], candidate: &RetentionCandidate, today: Date) -> bool {
    let retention = Retention::of(schedules, &candidate.facts);
    retention.is_some_and(|retention| retention.is_due(today))
}

/// Proposes a record that is due, or withdraws its proposal. Returns whether it was proposed now.
async fn settle(core: &Core, org: &OrgId, id: &EnvelopeId) -> Result<bool, ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let found = envelopes::lock_with_destroyed(&mut tx, org, id).await?;
    let whole = found.filter(|envelope| envelope.destruction.is_none());
    let Some(envelope) = whole else {
        return Ok(false);
    };
    let Some(view) = read(&mut tx, &envelope).await?.retention else {
        return withdraw(tx, &envelope, now).await;
    };
    if !view.retention.is_due(now.date()) {
        return withdraw(tx, &envelope, now).await;
    }

    // Another node, or an earlier run, may have proposed it: the event goes out once.
    if !rows::propose(&mut tx, &envelope, &view.retention, now).await? {
        return Ok(false);
    }
    let (event, data) = (EventType::RetentionDue, json!(view.retention));
    events::record_and_emit(&mut tx, &envelope, "system", event, data, now).await?;
    tx.commit().await?;

    Ok(true)
}

/// Withdraws the proposal of a record after a change of its schedule or payoff.
async fn withdraw(
    mut tx: WriteTransaction,
    envelope: &Envelope,
    now: Timestamp,
) -> Result<bool, ServiceError> {
    if rows::withdraw(&mut tx, envelope).await? {
        let action = "retention.withdrawn";
        events::record(&mut tx, envelope, "system", action, json!({}), now).await?;
        tx.commit().await?;
    }
    Ok(false)
}
