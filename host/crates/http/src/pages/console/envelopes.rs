//! Search of envelopes, and acts on several.

use std::time::Duration;

use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::PATH;
use super::home::SOON;
use super::live::LiveList;
use super::navigation::{Place, export, failed, query, status};
use super::signed_in::{ConsoleForm, Visitor};
use crate::error::HttpError;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{EnvelopeStatus, PaymentStatus};
use holdfast_domain::id::EnvelopeId;
use holdfast_domain::organization::Permission;
use holdfast_platform::ServiceError;
use holdfast_platform::idempotency::{IdempotencyReceipt, ResponseRecorder};
use holdfast_service::signing::reminders::{self, RemindRequest};
use holdfast_service::{App, envelopes};
use holdfast_store::search::{EnvelopeSearch, FoundEnvelope};

/// Envelopes of a page.
const PAGE: i64 = 25;
const DAY: Duration = Duration::from_secs(86_400);

/// Conditions of the search form.
#[derive(Deserialize)]
pub struct ListQuery {
    q: Option<String>,
    status: Option<String>,
    score_below: Option<String>,
    /// `stuck`, `expiring` or `unpaid`: a list of the first page.
    show: Option<String>,
    /// First and last day of the creation, in UTC.
    from: Option<String>,
    to: Option<String>,
    after: Option<String>,
}

impl ListQuery {
    fn text(&self) -> String {
        let text = self.q.as_deref().unwrap_or_default().trim();
        // PostgreSQL takes no U+0000 in a text, and an address can be longer than the field allows.
        text.chars().filter(|one| *one != '\0').take(200).collect()
    }

    fn score_below(&self) -> Option<i64> {
        self.score_below.as_deref()?.parse().ok()
    }

    /// Returns the search. Unreadable conditions are ignored.
    pub fn search(&self, now: Timestamp) -> EnvelopeSearch {
        let shows = |list: &str| self.show.as_deref() == Some(list);
        let text = self.text();
        // Links of the first page ask for several statuses at once.
        let statuses = self.status.as_deref().unwrap_or_default().split(',');
        let last = self.to.as_deref().and_then(day);
        EnvelopeSearch {
            text: (!text.is_empty()).then_some(text),
            statuses: statuses.filter_map(EnvelopeStatus::parse).collect(),
            score_below: self.score_below(),
            stuck: shows("stuck"),
            expires_before: shows("expiring").then(|| now + SOON),
            payment: shows("unpaid").then_some(PaymentStatus::RequiresPayment),
            created_from: self.from.as_deref().and_then(day),
            // The last day counts as a whole.
            created_before: last.map(|last| last + DAY),
            after: self.after.as_deref().and_then(EnvelopeId::parse),
            ..EnvelopeSearch::default()
        }
    }

    /// Returns the conditions as a query, without the place in the list.
    fn query(&self) -> String {
        let score = self.score_below().map(|score| score.to_string());
        query([
            ("q", Some(self.text().as_str())),
            ("status", self.status.as_deref()),
            ("from", self.from.as_deref()),
            ("to", self.to.as_deref()),
            ("show", self.show.as_deref()),
            ("score_below", score.as_deref()),
        ])
    }
}

/// Returns the begin of a day (`2026-11-27`) in UTC.
fn day(text: &str) -> Option<Timestamp> {
    Timestamp::parse(&format!("{text}T00:00:00Z"))
}

/// Shows the envelopes that fit, newest first. Unreadable conditions are ignored.
pub async fn list(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<ListQuery>,
) -> Response {
    if let Some(refused) = visitor.refusal(Permission::ReadEnvelopes) {
        return refused;
    }

    let texts = visitor.texts;
    let (text, chosen) = (query.text(), query.status.clone().unwrap_or_default());
    let search = query.search(visitor.now);
    // One envelope more than a page shows whether there are older ones. A count would read all that fit.
    let found = match envelopes::search(&app, &visitor.caller, &search, PAGE + 1).await {
        Ok(found) => found,
        Err(error) => return failed(error),
    };
    let shown = &found[..found.len().min(usize::try_from(PAGE).unwrap_or_default())];
    let older = shown
        .last()
        .filter(|_| found.len() > shown.len())
        .map(|last| {
            let query = query.query();
            format!("{PATH}/envelopes?{query}&after={}", last.id)
        });
    let body = html! {
        form.search method="get" action={ (PATH) "/envelopes" } role="search" {
            div.field {
                label for="q" { (texts.text("console-search-hint")) }
                input id="q" name="q" type="search" value=(text) maxlength="200";
            }
            div.field {
                label for="status" { (texts.text("console-status")) }
                select id="status" name="status" {
                    option value="" { (texts.text("console-all-statuses")) }
                    @for one in EnvelopeStatus::ALL {
                        option value=(one) selected[chosen == one.as_str()] { (status(texts, *one)) }
                    }
                }
            }
            div.field {
                label for="from" { (texts.text("console-from")) }
                input id="from" name="from" type="date" value=[query.from.as_deref()];
            }
            div.field {
                label for="to" { (texts.text("console-to")) }
                input id="to" name="to" type="date" value=[query.to.as_deref()];
            }
            @if let Some(score) = query.score_below() {
                input type="hidden" name="score_below" value=(score);
            }
            button type="submit" { (texts.text("console-search")) }
        }
        (export(texts, &format!("envelopes.csv?{}", query.query())))
        @if shown.is_empty() {
            p { (texts.text("console-nothing")) }
        } @else {
            (chosen_rows(&visitor, shown))
        }
        @if let Some(older) = older {
            p { a href=(older) { (texts.text("console-older")) } }
        }
    };

    visitor.live_page(
        Place::Envelopes,
        &LiveList::Envelopes,
        &texts.text("console-envelopes"),
        body,
    )
}

/// Renders found envelopes with a box each, and the actions for several.
fn chosen_rows(visitor: &Visitor, found: &[FoundEnvelope]) -> Markup {
    let texts = visitor.texts;
    // Boxes without an act behind them would only mislead.
    if !visitor.may(Permission::Send) {
        return rows(visitor, found);
    }

    html! {
        form method="post" action={ (PATH) "/envelopes/act" } {
            (visitor.token())
            label.choice hidden { input type="checkbox" data-all=""; " " (texts.text("envelopes-all")) }
            ul.rows.chosen {
                @for envelope in found {
                    li {
                        @if envelope.status.is_unfinished() {
                            input type="checkbox" name={ "id-" (envelope.id) } value="yes" aria-label=(envelope.name);
                        }
                        div { (row(visitor, envelope)) }
                    }
                }
            }
            details {
                summary { (texts.text("envelopes-several")) }
                div.actions {
                    button.quiet type="submit" name="act" value="remind" { (texts.text("console-remind")) }
                }
                div.field {
                    label for="reason" { (texts.text("console-reason")) }
                    input id="reason" name="reason" maxlength="500";
                }
                button.danger type="submit" name="act" value="void" { (texts.text("console-void")) }
            }
        }
    }
}

/// Renders found envelopes.
pub fn rows(visitor: &Visitor, found: &[FoundEnvelope]) -> Markup {
    html! {
        ul.rows {
            @for envelope in found { li { (row(visitor, envelope)) } }
        }
    }
}

fn row(visitor: &Visitor, envelope: &FoundEnvelope) -> Markup {
    let texts = visitor.texts;
    html! {
        a href={ (PATH) "/envelopes/" (envelope.id) } { (envelope.name) }
        p.soft {
            span.tag { (status(texts, envelope.status)) } " "
            @if let Some(external) = &envelope.external_id { (external) " · " }
            (visitor.moment(envelope.created_at))
            @if let Some(score) = envelope.compliance_score {
                " · " (texts.with("console-score", [("score", score)]))
            }
        }
    }
}

/// Recorder for acts without an idempotency key.
pub fn unrecorded<T>() -> ResponseRecorder<T> {
    // Browsers send no idempotency key. With an empty receipt the change commits without a stored answer.
    ResponseRecorder::new(IdempotencyReceipt::default(), 200, |_| {
        serde_json::Value::Null
    })
}

/// Reminds the signers of several envelopes, or voids them. Those that cannot be are named with the reason.
pub async fn act_on_several(State(app): State<App>, form: ConsoleForm) -> Response {
    if let Some(refused) = form.visitor.refusal(Permission::Send) {
        return refused;
    }

    // As many as a page has boxes for. A hand-made form must not start thousands of acts.
    let ids = form.values.keys();
    let ids: Vec<String> = ids
        .filter_map(|name| name.strip_prefix("id-").map(str::to_owned))
        .take(usize::try_from(PAGE).unwrap_or_default())
        .collect();
    let (voids, reason) = (form.value("act") == "void", form.value("reason").to_owned());
    // Checked once, or every envelope would be refused for the same reason.
    if voids && (reason.is_empty() || reason.chars().count() > 500) {
        return HttpError::bad_request("reason is required").into_response();
    }

    let (core, caller) = (app.clone(), form.visitor.caller.clone());

    // Completes even if the browser goes away.
    let done = tokio::spawn(async move {
        // One after the other, because each calls a signing provider. A failure does not stop the next one.
        let mut done = Vec::new();
        for id in ids {
            let acted = if voids {
                let reason = Some(reason.clone());
                let voided = envelopes::void(&core, &caller, &id, reason, &unrecorded()).await;
                voided.map(drop)
            } else {
                let all = RemindRequest::default();
                let told = reminders::remind(&core, &caller, &id, all, &unrecorded()).await;
                told.map(drop)
            };

            done.push((id, acted.err().map(|error| error.to_string())));
        }

        done
    });

    let done = match done.await {
        Ok(done) => done,
        Err(error) => return failed(ServiceError::Internal(error.to_string())),
    };
    let texts = form.visitor.texts;
    let failures: Vec<_> = done.iter().filter(|(_, error)| error.is_some()).collect();
    let body = html! {
        p.done role="status" { (texts.with("envelopes-done", [("count", done.len() - failures.len())])) }
        @if !failures.is_empty() {
            ul.rows {
                @for (id, error) in failures {
                    li {
                        a href={ (PATH) "/envelopes/" (id) } { (id) }
                        p.soft { (error.as_deref().unwrap_or_default()) }
                    }
                }
            }
        }
        p { a href={ (PATH) "/envelopes" } { (texts.text("console-envelopes")) } }
    };

    form.visitor
        .page(Place::Envelopes, &texts.text("console-envelopes"), body)
}
