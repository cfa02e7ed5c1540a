//! Legal holds, retention schedules and records that are due, for partners and users.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::HttpError;
use crate::middleware::act::{ActOn, NewAct};
use crate::middleware::caller::Authorized;
use crate::middleware::extract::{PageWindow, ResourceId, ValidQuery};
use crate::reply::{Created, CursorReply, DataReply, Found};
use holdfast_domain::id::{EnvelopeId, HoldId};
use holdfast_service::App;
use holdfast_service::retention::holds::{self, HoldView, NewHold};
use holdfast_service::retention::{
    self, DueView, RecordRetention, ReportedEvent, RetentionSchedules, SchedulesView,
};

/// While the hold is in force, nothing that it covers is released, changes hands or is deleted: such requests get a 409
/// with `code: legal_hold`. It covers records while your organization controls them.
pub async fn place<C: Authorized>(act: NewAct<C, NewHold>) -> Result<Created<HoldView>, HttpError> {
    act.run(holds::place).await
}

#[derive(Deserialize, JsonSchema)]
pub struct HoldsQuery {
    /// Page number, from 1; not together with `starting_after`. Pages have numbers up to the 1000th item.
    #[schemars(range(min = 1))]
    page: Option<i64>,
    /// 1 to 100; 20 when absent.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<i64>,
    /// Returns the holds behind this one: the last one of the page before.
    starting_after: Option<HoldId>,
}

pub async fn list<C: Authorized>(
    State(app): State<App>,
    user: C,
    ValidQuery(query): ValidQuery<HoldsQuery>,
) -> Result<CursorReply<HoldView>, HttpError> {
    let after = query.starting_after.as_ref();
    let window = PageWindow::checked((query.page, query.limit), after.is_some(), 20, 100)?;
    let found = holds::list(&app, user.caller(), after, window.read()).await?;
    Ok(window.reply(found))
}

pub async fn read<C: Authorized>(
    State(app): State<App>,
    user: C,
    ResourceId(id): ResourceId,
) -> Result<Found<HoldView>, HttpError> {
    let hold = holds::get(&app, user.caller(), &id).await?;
    Ok(DataReply::new(&hold))
}

pub async fn schedules<C: Authorized>(
    State(app): State<App>,
    user: C,
) -> Result<Found<SchedulesView>, HttpError> {
    let found = retention::schedules(&app, user.caller()).await?;
    Ok(DataReply::new(&found))
}

/// The closest schedule of each event counts: one with a jurisdiction before one with a kind. Of the days that they give a
/// record, the latest counts; while one waits for `paid_off`, there is none. Nothing is deleted: a record whose day is
/// reached is listed as due.
pub async fn set_schedules<C: Authorized>(
    act: NewAct<C, RetentionSchedules>,
) -> Result<Found<SchedulesView>, HttpError> {
    act.run(retention::set_schedules).await
}

pub async fn of_record<C: Authorized>(
    State(app): State<App>,
    user: C,
    ResourceId(id): ResourceId,
) -> Result<Found<RecordRetention>, HttpError> {
    let found = retention::get(&app, user.caller(), &id).await?;
    Ok(DataReply::new(&found))
}

/// A repeat with the same day changes nothing; another day replaces it. The day is not more than a day ahead.
pub async fn report<C: Authorized>(
    act: ActOn<C, ReportedEvent>,
) -> Result<Found<RecordRetention>, HttpError> {
    act.run(retention::report).await
}

#[derive(Deserialize, JsonSchema)]
pub struct DueQuery {
    /// Page number, from 1; not together with `starting_after`. Pages have numbers up to the 1000th item.
    #[schemars(range(min = 1))]
    page: Option<i64>,
    /// 1 to 100; 20 when absent.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<i64>,
    /// Returns the records behind this one: the last one of the page before.
    starting_after: Option<EnvelopeId>,
}

/// They are proposed for destruction and stay as they are.
pub async fn due<C: Authorized>(
    State(app): State<App>,
    user: C,
    ValidQuery(query): ValidQuery<DueQuery>,
) -> Result<CursorReply<DueView>, HttpError> {
    let after = query.starting_after.as_ref();
    let window = PageWindow::checked((query.page, query.limit), after.is_some(), 20, 100)?;
    let found = retention::due(&app, user.caller(), after, window.read()).await?;
    Ok(window.reply(found))
}
