//! The card with the dates of a contract on its page: each with its notices, and a form for another one.

use axum::extract::{Path, State};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::PATH;
use super::envelope::{again, back};
use super::envelopes::unrecorded;
use super::forms::{FormView, RefusedForm, TextField};
use super::navigation::PageResult;
use super::signed_in::{ConsoleForm, Visitor};
use crate::error::HttpError;
use crate::middleware::extract::valid;
use holdfast_domain::contract_dates::ContractDate;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::organization::Permission;
use holdfast_service::envelopes::contract_dates::{self, ContractDates};
use holdfast_service::{App, envelopes};

/// Renders the card.
pub fn card(visitor: &Visitor, envelope: &Envelope, refused: Option<&RefusedForm>) -> Markup {
    let texts = visitor.texts;
    let dates = envelope.contract_dates();
    let may_change = visitor.may(Permission::Send) && !contract_dates::has_no_contract(envelope);

    let action = format!("{PATH}/envelopes/{}/dates", envelope.id);
    let form = FormView::new(texts, &action, refused).with_ids("date");

    html! {
        @if may_change || !dates.is_empty() {
            details.card open[form.is_refused() || !dates.is_empty()] {
                summary { (texts.text("envelopes-dates")) }
                @if !dates.is_empty() {
                    ul.rows {
                        @for planned in &dates {
                            li {
                                strong { (planned.date.name) } " " time { (planned.date.date) }
                                @if !planned.left.is_empty() {
                                    p.soft { (texts.with("envelopes-date-left", [("days", listed(&planned.left))])) }
                                }
                                @if may_change {
                                    form method="post" action={ (action) "/remove" } {
                                        (visitor.token())
                                        input type="hidden" name="name" value=(planned.date.name);
                                        button.quiet type="submit" { (texts.text("envelopes-date-remove")) }
                                    }
                                }
                            }
                        }
                    }
                }

                @if may_change {
                    form method="post" action=(action) {
                        (visitor.token())
                        (form.summary())
                        (form.text(&TextField { limit: 80, ..TextField::required("name", &texts.text("envelopes-date-name")) }))
                        (form.text(&TextField { kind: "date", ..TextField::required("date", &texts.text("envelopes-date-day")) }))
                        (form.text(&TextField::new("notice_days", &texts.text("envelopes-date-notices"))))
                        (form.text(&TextField::new("notify", &texts.text("envelopes-date-notify"))))
                        button.quiet type="submit" { (texts.text("envelopes-date-add")) }
                    }
                }
            }
        }
    }
}

fn listed(days: &[u16]) -> String {
    let days: Vec<String> = days.iter().map(u16::to_string).collect();
    days.join(", ")
}

/// Returns the entries of a field for several, between commas or blanks.
fn entries(text: &str) -> impl Iterator<Item = &str> {
    let is_between = |one: char| one == ',' || one == ';' || one.is_whitespace();
    text.split(is_between).filter(|entry| !entry.is_empty())
}

/// Adds a date.
pub async fn add(State(app): State<App>, Path(id): Path<String>, form: ConsoleForm) -> PageResult {
    form.visitor.require(Permission::Send)?;

    // Text instead of a number goes to the API; its refusal names the field.
    let days = entries(form.value("notice_days")).map(|days| {
        let number = days.parse::<u16>();
        number.map_or_else(|_| Value::from(days), Value::from)
    });
    let notify: Vec<&str> = entries(form.value("notify")).collect();
    let date = json!({
        "name": form.value("name"), "date": form.value("date"),
        "notice_days": days.collect::<Vec<_>>(), "notify": notify,
    });
    match changed(&app, &form, &id, |dates| dates.push(date)).await {
        Ok(_) => Ok(back(&id, "dated")),
        Err(error) => again(&app, &form.visitor, &id, &form.refused(error)?).await,
    }
}

/// Removes a date.
pub async fn remove(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    form.visitor.require(Permission::Send)?;

    let name = form.value("name").to_owned();
    let removed = changed(&app, &form, &id, |dates| {
        dates.retain(|date| date["name"] != *name);
    });
    removed.await?;
    Ok(back(&id, "dated"))
}

/// Sets the dates that an envelope has after a change.
async fn changed(
    app: &App,
    form: &ConsoleForm,
    id: &str,
    change: impl FnOnce(&mut Vec<Value>),
) -> Result<Envelope, HttpError> {
    let caller = &form.visitor.caller;
    let envelope = envelopes::get(app, caller, id).await?;
    let present: Vec<ContractDate> = envelope
        .contract_dates()
        .into_iter()
        .map(|planned| planned.date)
        .collect();
    let mut dates: Vec<Value> = present.iter().map(|date| json!(date)).collect();
    change(&mut dates);

    let request = valid::<ContractDates>(json!({ "contract_dates": dates }))?;
    // Another user may change them between the reading and the writing.
    let (unchanged, answer) = (Some(present.as_slice()), unrecorded());
    Ok(contract_dates::set_if(app, caller, id, request, unchanged, &answer).await?)
}
