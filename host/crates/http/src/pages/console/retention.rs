//! Legal holds, retention schedules, and the records that are due.

use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse as _, Redirect};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};

use super::PATH;
use super::changes::officer;
use super::envelopes::unrecorded;
use super::forms::{FormView, RefusedForm, TextField};
use super::navigation::{PageResult, Place};
use super::signed_in::{ConsoleForm, Visitor};
use super::sure::SensitiveAct;
use crate::error::HttpError;
use crate::middleware::extract::valid;
use holdfast_adapters::texts::Texts;
use holdfast_domain::hold::{HoldScope, HoldState};
use holdfast_domain::id::{EnvelopeId, HoldId};
use holdfast_domain::organization::Permission;
use holdfast_domain::retention::RetentionSchedule;
use holdfast_platform::ServiceError;
use holdfast_service::App;
use holdfast_service::retention::holds::{self, HoldView, LiftRequest, LiftStep, NewHold};
use holdfast_service::retention::{self, DueView, RetentionSchedules, RetentionView};

/// Holds, records, or requests, of a page.
pub const PAGE: i64 = 25;

fn holds_address() -> String {
    format!("{PATH}/holds")
}

fn retention_address() -> String {
    format!("{PATH}/retention")
}

/// Place in a list.
#[derive(Deserialize)]
pub struct AfterQuery {
    pub after: Option<String>,
}

/// Takes the entries of a page, and returns whether there are more.
pub fn cut<T>(found: &mut Vec<T>) -> bool {
    let page = usize::try_from(PAGE).unwrap_or_default();
    let has_more = found.len() > page;
    found.truncate(page);
    has_more
}

/// Lists legal holds, newest first, with the form for another one.
pub async fn list(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<AfterQuery>,
) -> PageResult {
    visitor.require(Permission::ReadEvidence)?;

    holds_page(&app, &visitor, query.after.as_deref(), None).await
}

async fn holds_page(
    app: &App,
    visitor: &Visitor,
    after: Option<&str>,
    refused: Option<&RefusedForm>,
) -> PageResult {
    let after = after.and_then(HoldId::parse);
    let mut found = holds::list(app, &visitor.caller, after.as_ref(), PAGE + 1).await?;
    let has_more = cut(&mut found);

    let texts = visitor.texts;
    let body = html! {
        p { (texts.text("holds-hint")) }
        @if found.is_empty() { p { (texts.text("holds-none")) } }
        ul.rows { @for hold in &found { li { (hold_of(visitor, hold, refused)) } } }
        @if let Some(last) = found.last().filter(|_| has_more) {
            p { a href={ (holds_address()) "?after=" (last.hold_id) } { (texts.text("console-earlier")) } }
        }
        @if visitor.may(Permission::Hold) { (hold_form(visitor, refused)) }
    };
    let title = texts.text("console-holds");
    Ok(visitor.form_page(Place::Holds, None, &title, body, refused))
}

fn scope(texts: Texts, scope: HoldScope) -> String {
    texts.text(match scope {
        HoldScope::Envelope => "holds-scope-envelope",
        HoldScope::Customer => "holds-scope-customer",
        HoldScope::Pool => "holds-scope-pool",
        HoldScope::Organization => "holds-scope-organization",
    })
}

fn hold_of(visitor: &Visitor, hold: &HoldView, refused: Option<&RefusedForm>) -> Markup {
    let texts = visitor.texts;
    let (state, is_binding) = match hold.state {
        HoldState::InForce => ("holds-in-force", true),
        HoldState::LiftRequested => ("holds-lift-requested", true),
        HoldState::Lifted => ("holds-lifted", false),
    };

    html! {
        p {
            strong { (hold.case_reference) } " "
            span.tag.wrong[is_binding] { (texts.text(state)) }
        }
        p.soft {
            (scope(texts, hold.scope)) " "
            @if hold.scope != HoldScope::Organization { code { (hold.subject_id) } }
            " · " (hold.placed_by) " · " (visitor.moment(hold.placed_at))
        }
        p { (hold.reason) }
        @if let Some(lift) = &hold.lift {
            p.soft { (lift.requested_by) " · " (visitor.moment(lift.requested_at)) ": " (lift.reason) }
        }
        @if let (Some(by), Some(at)) = (&hold.lifted_by, hold.lifted_at) {
            p.soft { (texts.text("holds-lifted")) " · " (by) " · " (visitor.moment(at)) }
        }
        @if visitor.may(Permission::Hold) { (steps(visitor, hold, refused)) }
    }
}

/// Renders what a person may do towards the end of a hold.
fn steps(visitor: &Visitor, hold: &HoldView, refused: Option<&RefusedForm>) -> Markup {
    let texts = visitor.texts;
    let own = format!("{}/{}", holds_address(), hold.hold_id);
    let action = format!("{own}/lift");
    let form = FormView::new(texts, &action, refused).with_ids(&hold.hold_id);
    html! {
        @match hold.state {
            HoldState::InForce => {
                form method="post" action=(action) {
                    (visitor.token())
                    (form.summary())
                    (form.text(&TextField { limit: 2000, ..TextField::required("reason", &texts.text("console-reason")) }))
                    button.quiet type="submit" { (texts.text("holds-lift")) }
                }
            }
            HoldState::LiftRequested => {
                (visitor.button(&format!("{own}/approve"), Some("danger"), "holds-approve"))
                (visitor.button(&format!("{own}/withdraw"), Some("quiet"), "holds-withdraw"))
            }
            HoldState::Lifted => {}
        }
    }
}

fn hold_form(visitor: &Visitor, refused: Option<&RefusedForm>) -> Markup {
    let (texts, action) = (visitor.texts, holds_address());
    let form = FormView::new(texts, &action, refused);
    let scopes = HoldScope::ALL.iter();
    let scopes: Vec<(String, String)> = scopes
        .map(|one| (one.to_string(), scope(texts, *one)))
        .collect();
    html! {
        section.card {
            h2 { (texts.text("holds-place")) }
            form method="post" action=(action) {
                (visitor.token())
                (form.summary())
                (form.select("scope", &texts.text("holds-scope"), &scopes, HoldScope::Envelope.as_str()))
                (form.text(&TextField { limit: 60, ..TextField::new("subject_id", &texts.text("holds-subject")) }))
                (form.text(&TextField { limit: 200, ..TextField::required("case_reference", &texts.text("holds-case")) }))
                (form.lines("reason", &texts.text("console-reason"), 4, ""))
                button type="submit" { (texts.text("holds-place")) }
            }
        }
    }
}

/// Places a hold.
pub async fn place(State(app): State<App>, form: ConsoleForm) -> PageResult {
    let visitor = &form.visitor;
    visitor.require(Permission::Hold)?;

    let subject = Some(form.value("subject_id").trim()).filter(|id| !id.is_empty());
    let hold = json!({
        "scope": form.value("scope"), "subject_id": subject,
        "reason": form.value("reason"), "case_reference": form.value("case_reference"),
    });
    let refused = match valid::<NewHold>(hold) {
        Ok(hold) => match holds::place(&app, &visitor.caller, hold, &unrecorded()).await {
            Ok(_) => return Ok(Redirect::to(&holds_address()).into_response()),
            Err(error) => form.refused_id(error, "subject_id", "holds-unknown")?,
        },
        Err(error) => form.refused(error)?,
    };
    holds_page(&app, visitor, None, Some(&refused)).await
}

/// Takes a step towards the end of a hold. The approval by the second person ends it, so it asks before.
pub async fn step(
    State(app): State<App>,
    Path((id, step)): Path<(String, String)>,
    form: ConsoleForm,
) -> PageResult {
    let visitor = &form.visitor;
    visitor.require(Permission::Hold)?;

    let hold = holds::get(&app, &visitor.caller, &id).await?;
    let step = match step.as_str() {
        "lift" => match valid::<LiftRequest>(json!({ "reason": form.value("reason") })) {
            Ok(request) => LiftStep::Request(request.reason),
            Err(error) => {
                let refused = form.refused(error)?;
                return holds_page(&app, visitor, None, Some(&refused)).await;
            }
        },
        "withdraw" => LiftStep::Withdraw,
        "approve" => {
            form.meant(&SensitiveAct {
                label: visitor.texts.text("holds-approve"),
                objects: vec![hold.case_reference],
                consequence: visitor.texts.text("sure-holds-approve"),
                is_typed: false,
                back: holds_address(),
            })?;
            LiftStep::Approve
        }
        _ => return Err(ServiceError::NotFound("Page").into()),
    };

    match holds::decide(&app, &officer(visitor), &id, step).await {
        Ok(_) => Ok(Redirect::to(&holds_address()).into_response()),
        Err(error) => {
            let refused = form.refused(error)?;
            holds_page(&app, visitor, None, Some(&refused)).await
        }
    }
}

/// Lists the records that are due, with the schedules.
pub async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<AfterQuery>,
) -> PageResult {
    visitor.require(Permission::ReadEvidence)?;

    retention_page(&app, &visitor, query.after.as_deref(), None).await
}

async fn retention_page(
    app: &App,
    visitor: &Visitor,
    after: Option<&str>,
    refused: Option<&RefusedForm>,
) -> PageResult {
    let after = after.and_then(EnvelopeId::parse);
    let own = retention::schedules(app, &visitor.caller).await?;
    let mut due = retention::due(app, &visitor.caller, after.as_ref(), PAGE + 1).await?;
    let has_more = cut(&mut due);

    let texts = visitor.texts;
    let body = html! {
        p { (texts.text("retention-hint")) }
        section.card {
            h2 { (texts.text("retention-due")) }
            @if due.is_empty() { p { (texts.text("retention-due-none")) } }
            ul.rows { @for record in &due { li { (due_of(texts, record)) } } }
            @if let Some(last) = due.last().filter(|_| has_more) {
                p { a href={ (retention_address()) "?after=" (last.envelope_id) } { (texts.text("tapes-further")) } }
            }
        }
        section.card {
            h2 { (texts.text("retention-schedules")) }
            @if own.schedules.is_empty() { p { (texts.text("retention-none")) } }
            ul.rows { @for schedule in &own.schedules { li { code { (line_of(schedule)) } } } }
            @if let (Some(by), Some(at)) = (&own.changed_by, own.changed_at) {
                p.soft { (by) " · " (visitor.moment(at)) }
            }
            @if visitor.may(Permission::Hold) { (schedules_form(visitor, &own.schedules, refused)) }
        }
    };
    let title = texts.text("console-retention");
    Ok(visitor.form_page(Place::Retention, None, &title, body, refused))
}

fn due_of(texts: Texts, record: &DueView) -> Markup {
    html! {
        a href={ (PATH) "/envelopes/" (record.envelope_id) } { (record.envelope_name) }
        @if record.under_hold { " " span.tag.wrong { (texts.text("retention-held")) } }
        p.soft {
            (record.schedule) " · " code { (record.event) } " " time { (record.event_date) }
            " · " (texts.with("retention-until", [("date", record.destroy_after.to_string())]))
        }
    }
}

fn schedules_form(
    visitor: &Visitor,
    schedules: &[RetentionSchedule],
    refused: Option<&RefusedForm>,
) -> Markup {
    let (texts, action) = (visitor.texts, retention_address());
    let form = FormView::new(texts, &action, refused);
    let lines: Vec<String> = schedules.iter().map(line_of).collect();
    html! {
        form method="post" action=(action) {
            (visitor.token())
            (form.summary())
            (form.lines("schedules", &texts.text("retention-lines"), 8, &lines.join("\n")))
            button type="submit" { (texts.text("retention-save")) }
        }
    }
}

/// Writes a schedule as a line: `Retail contracts = paid_off 84 esign US-OH`.
fn line_of(schedule: &RetentionSchedule) -> String {
    let mut line = format!(
        "{} = {} {}",
        schedule.name, schedule.event, schedule.keep_months
    );
    if let Some(kind) = schedule.kind {
        line = format!("{line} {kind}");
    }
    if let Some(jurisdiction) = &schedule.jurisdiction {
        line = format!("{line} {}", jurisdiction.as_str());
    }
    line
}

/// Reads a line. Missing or wrong parts are refused with the body.
fn schedule_of(line: &str) -> Value {
    let (name, rest) = line.rsplit_once('=').unwrap_or((line, ""));
    let mut words = rest.split_whitespace();
    let mut schedule = json!({ "name": name.trim(), "event": words.next().unwrap_or_default() });
    let months = words.next().unwrap_or_default();
    schedule["keep_months"] = match months.parse::<u64>() {
        Ok(months) => json!(months),
        Err(_) => json!(months),
    };
    for word in words {
        let member = if ["esign", "paper"].contains(&word) {
            "kind"
        } else {
            "jurisdiction"
        };
        // A second word for a member is refused with it, and not dropped.
        schedule[member] = match schedule[member].as_str() {
            Some(earlier) => json!(format!("{earlier} {word}")),
            None => json!(word),
        };
    }
    schedule
}

/// Replaces the schedules.
pub async fn save(State(app): State<App>, form: ConsoleForm) -> PageResult {
    let visitor = &form.visitor;
    visitor.require(Permission::Hold)?;

    let lines = form.value("schedules").lines();
    let lines = lines.filter(|line| !line.trim().is_empty());
    let schedules: Vec<Value> = lines.map(schedule_of).collect();
    let saved = match valid::<RetentionSchedules>(json!({ "schedules": schedules })) {
        Ok(new) => retention::set_schedules(&app, &visitor.caller, new, &unrecorded())
            .await
            .map_err(HttpError::from),
        Err(error) => Err(error),
    };
    match saved {
        Ok(_) => Ok(Redirect::to(&retention_address()).into_response()),
        Err(error) => {
            let refused = form.refused(error)?;
            retention_page(&app, visitor, None, Some(&refused)).await
        }
    }
}

/// Renders how long a record is kept, and the hold on it, for its page.
pub fn card(texts: Texts, kept: Option<&RetentionView>, hold: Option<&HoldView>) -> Markup {
    html! {
        @if kept.is_some() || hold.is_some() {
            section.card {
                h2 { (texts.text("console-retention")) }
                @if let Some(hold) = hold {
                    p {
                        span.tag.wrong { (texts.text("retention-held")) } " "
                        a href=(holds_address()) { (hold.case_reference) }
                    }
                }
                @if let Some(kept) = kept {
                    p {
                        (kept.retention.schedule) " · " code { (kept.retention.event) } " "
                        @match kept.retention.destroy_after {
                            Some(until) => {
                                (texts.with("retention-until", [("date", until.to_string())]))
                                @if kept.proposed_at.is_some() {
                                    " " span.tag.wrong { (texts.text("retention-due")) }
                                }
                            }
                            None => (texts.text("retention-waiting")),
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_is_written() {
        for line in [
            "Retail contracts = paid_off 84 esign US-OH",
            "Declined = declined 25",
            "Paper = created 120 paper",
        ] {
            let schedule: RetentionSchedule = serde_json::from_value(schedule_of(line)).unwrap();
            assert_eq!(line_of(&schedule), line);
        }

        // The API refuses it, and names the member.
        let broken = schedule_of("Declined");
        assert_eq!(
            broken,
            json!({ "name": "Declined", "event": "", "keep_months": "" })
        );
    }
}
