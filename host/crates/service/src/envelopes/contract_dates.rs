//! Dates of a contract, and the notices before them, as jobs.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use holdfast_domain::clock::Timestamp;
use holdfast_domain::contract_dates::{ContractDate, MOST_DATES, PlannedDate, days_until};
use holdfast_domain::dates::ZoneName;
use holdfast_domain::envelope::{Envelope, EnvelopeStatus};
use holdfast_domain::event::EventType;
use holdfast_domain::facts::FactSheet;
use holdfast_domain::id::{EnvelopeId, OrgId};
use holdfast_domain::job::{MailContractDate, NextStep, NoticeOfDate};
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::{
    Caller, Core, ServiceError, ValidationIssue, events, lookup, organizations,
};
use holdfast_store::{StoreError, WriteTransaction, envelopes, jobs};

/// Action of ledger entries about changed dates.
const DATES_SET: &str = "envelope.dates_set";

/// Body of `PUT /partner/envelopes/:id/contract-dates`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "contract_dates": [{
    "name": "End of the term", "date": "2031-11-30", "notice_days": [60, 0], "notify": ["servicing@example.com"]
}] }]))]
pub struct ContractDates {
    /// All dates of the contract; those that it has and that are not here are removed.
    #[schemars(length(max = 20))]
    pub contract_dates: Vec<ContractDate>,
}

/// Replaces the dates of a contract. Notices that were given are not repeated for a date that stays as it is.
///
/// # Errors
///
/// `Invalid` for a blank or repeated name, `Conflict` for an envelope that ended without a contract.
pub async fn set(
    core: &Core,
    caller: &Caller,
    id: &str,
    request: ContractDates,
    answer: &ResponseRecorder<Envelope>,
) -> Result<Envelope, ServiceError> {
    set_if(core, caller, id, request, None, answer).await
}

/// Like [`set`], with the dates that the change was made of, for a caller who adds or removes one.
///
/// # Errors
///
/// `Conflict` if the envelope has other dates than those by now.
pub async fn set_if(
    core: &Core,
    caller: &Caller,
    id: &str,
    request: ContractDates,
    unchanged: Option<&[ContractDate]>,
    answer: &ResponseRecorder<Envelope>,
) -> Result<Envelope, ServiceError> {
    check(&request.contract_dates)?;
    let id = lookup::envelope(core, caller, id).await?.id;
    let zone = zone(core, &caller.org).await?;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let mut envelope = lookup::lock_envelope(&mut tx, &caller.org, &id).await?;
    if has_no_contract(&envelope) {
        return Err(ServiceError::Conflict(format!(
            "Cannot set dates of an envelope with status: {}",
            envelope.status
        )));
    }

    let before = envelope.contract_dates();
    let present = before.iter().map(|planned| &planned.date);
    if unchanged.is_some_and(|unchanged| present.ne(unchanged)) {
        let why = "The dates were changed meanwhile; try again";
        return Err(ServiceError::Conflict(why.into()));
    }

    let dates = request.contract_dates.into_iter().map(|date| {
        let same = before.iter().find(|planned| planned.date == date);
        same.cloned()
            .unwrap_or_else(|| PlannedDate::new(date, &zone, now))
    });
    let dates: Vec<PlannedDate> = dates.collect();
    envelope.set_contract_dates(&dates);
    envelope.updated_at = now;
    envelopes::set_metadata(&mut tx, &envelope).await?;
    plan_next(&mut tx, &envelope, &dates, &zone).await?;

    let details = json!({ "from": days(&before), "to": days(&dates) });
    let actor = &caller.actor;
    events::record(&mut tx, &envelope, actor, DATES_SET, details, now).await?;
    answer.commit(tx, &envelope).await?;

    Ok(envelope)
}

/// Dates that an organization takes from the facts of a contract.
pub struct DatesOfFacts {
    dates: Vec<ContractDate>,
    zone: ZoneName,
}

/// Returns the dates of a contract by its facts and the settings of its organization.
pub async fn of_facts(
    core: &Core,
    org: &OrgId,
    sheet: Option<&FactSheet>,
) -> Result<DatesOfFacts, ServiceError> {
    let settings = organizations::read(core, org).await?.settings;
    let wanted = settings.contract_dates.iter();
    let dates = wanted.filter_map(|wanted| wanted.of(sheet?));
    Ok(DatesOfFacts {
        dates: dates.collect(),
        zone: settings.dates.time_zone,
    })
}

/// Adds dates to a contract with its row locked, and plans their notices. A date of the same name that a person has set
/// stays.
pub async fn add(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    found: &DatesOfFacts,
    now: Timestamp,
) -> Result<(), ServiceError> {
    let before = envelope.contract_dates();
    let is_new = |date: &&ContractDate| !before.iter().any(|one| one.date.name == date.name);
    let room = MOST_DATES.saturating_sub(before.len());
    let new = found.dates.iter().filter(is_new).take(room);
    let new: Vec<PlannedDate> = new
        .map(|date| PlannedDate::new(date.clone(), &found.zone, now))
        .collect();
    if new.is_empty() {
        return Ok(());
    }

    let mut envelope = envelope.clone();
    let dates = [before.clone(), new].concat();
    envelope.set_contract_dates(&dates);
    envelope.updated_at = now;
    envelopes::set_metadata(tx, &envelope).await?;
    plan_next(tx, &envelope, &dates, &found.zone).await?;
    let details = json!({ "from": days(&before), "to": days(&dates) });
    events::record(tx, &envelope, "system", DATES_SET, details, now).await?;

    Ok(())
}

/// Returns dates without their notices.
fn days(dates: &[PlannedDate]) -> Vec<ContractDate> {
    dates.iter().map(|planned| planned.date.clone()).collect()
}

/// Gives the notices that are due, and plans the next one.
pub async fn give_notice(
    core: &Core,
    org: &OrgId,
    id: &EnvelopeId,
) -> Result<NextStep, ServiceError> {
    let zone = zone(core, org).await?;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let Some(mut envelope) = envelopes::lock(&mut tx, org, id).await? else {
        return Ok(NextStep::Done);
    };
    if has_no_contract(&envelope) {
        return Ok(NextStep::Done);
    }

    let mut dates = envelope.contract_dates();
    let mut is_given = false;
    for planned in &mut dates {
        let Some(notice) = planned.take_due(&zone, now) else {
            continue;
        };
        is_given = true;
        tell(&mut tx, &envelope, &planned.date, notice, now).await?;
        // After an outage it is given late, so the days of the plan can be wrong.
        let days = days_until(planned.date.date, &zone, now);
        let near = EventType::EnvelopeDateNear;
        let data = json!({ "name": planned.date.name, "date": planned.date.date, "days": days });
        events::record_and_emit(&mut tx, &envelope, "system", near, data, now).await?;
    }

    // A repeat after a crash finds nothing due: taken notices commit with their mails. Without a notice the envelope
    // stays as it is, so that a sender who changes it meanwhile is not refused.
    if is_given {
        envelope.set_contract_dates(&dates);
        envelope.updated_at = now;
        envelopes::set_metadata(&mut tx, &envelope).await?;
        tx.commit().await?;
    }

    Ok(next(&dates, &zone).map_or(NextStep::Done, NextStep::Again))
}

/// Queues the mails of a notice that was planned so many days before a date.
async fn tell(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    date: &ContractDate,
    notice: u16,
    now: Timestamp,
) -> Result<(), StoreError> {
    let creator = envelope.creator_email().map(str::to_owned);
    let people = if date.notify.is_empty() {
        creator.into_iter().collect()
    } else {
        date.notify.clone()
    };
    for to in people {
        let key = format!("{}:{to}:{}:{}:{notice}", envelope.id, date.name, date.date);
        let mail = MailContractDate {
            envelope: envelope.id.clone(),
            to,
            name: date.name.clone(),
            date: date.date,
        };
        jobs::insert(tx, &envelope.org, &mail, Some(&key), now).await?;
    }

    Ok(())
}

/// Replaces the job of the next notice.
pub(super) async fn plan_next(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    dates: &[PlannedDate],
    zone: &ZoneName,
) -> Result<(), StoreError> {
    let key = envelope.id.as_str();
    jobs::remove::<NoticeOfDate>(tx, &envelope.org, key).await?;
    let Some(at) = next(dates, zone) else {
        return Ok(());
    };

    let job = NoticeOfDate {
        envelope: envelope.id.clone(),
    };
    jobs::insert(tx, &envelope.org, &job, Some(key), at).await
}

fn next(dates: &[PlannedDate], zone: &ZoneName) -> Option<Timestamp> {
    dates.iter().filter_map(|planned| planned.next(zone)).min()
}

/// Returns the time zone of the organization, in which notices are given.
pub(super) async fn zone(core: &Core, org: &OrgId) -> Result<ZoneName, ServiceError> {
    let organization = organizations::read(core, org).await?;
    Ok(organization.settings.dates.time_zone.clone())
}

/// Returns whether an envelope ended before it became a contract, and so has no dates.
pub fn has_no_contract(envelope: &Envelope) -> bool {
    matches!(
        envelope.status,
        EnvelopeStatus::Voided | EnvelopeStatus::Declined | EnvelopeStatus::Expired
    )
}

fn check(dates: &[ContractDate]) -> Result<(), ServiceError> {
    let mut names = HashSet::new();
    for (index, date) in dates.iter().enumerate() {
        let problem = if date.name.trim().is_empty() {
            Some(("too_small", "A date needs a name"))
        } else if !names.insert(date.name.as_str()) {
            Some(("duplicate", "Each name is there once"))
        } else {
            None
        };
        let Some((code, message)) = problem else {
            continue;
        };

        let index = index.to_string();
        let path = ["contract_dates", &index, "name"];
        let issue = ValidationIssue::new(code, &path, "another name", &date.name, message);
        return Err(ServiceError::Invalid(vec![issue]));
    }

    Ok(())
}
