//! The first page: envelopes by state, and findings.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};

use super::PATH;
use super::envelopes::rows;
use super::frame::{Place, failed};
use super::rules::change_row;
use super::visitor::Visitor;
use crate::domain::envelope::EnvelopeStatus;
use crate::domain::organization::Permission;
use crate::service::components::changes;
use crate::service::vault::integrity;
use crate::service::{App, ServiceError, envelopes, webhooks};
use crate::store::search::EnvelopeSearch;

/// Envelopes of each list.
const SHOWN: i64 = 5;

/// Shows findings, and lists of envelopes by state.
pub async fn show(State(app): State<App>, visitor: Visitor) -> Response {
    match lists(&app, &visitor).await {
        Ok(body) => {
            let title = visitor.texts.text("console-home");
            visitor.page(Place::Home, &title, body)
        }
        Err(error) => failed(error),
    }
}

async fn lists(app: &App, visitor: &Visitor) -> Result<Markup, ServiceError> {
    let texts = visitor.texts;
    let (failing, requests) = (failing(app, visitor).await?, requests(app, visitor).await?);
    let waiting = html! { (failing) (requests) };
    if !visitor.may(Permission::ReadEnvelopes) {
        return Ok(html! { p { (texts.text("console-no-envelopes")) } div.lists { (waiting) } });
    }
    of_envelopes(app, visitor, waiting).await
}

/// Renders receivers of webhooks that do not take events.
async fn failing(app: &App, visitor: &Visitor) -> Result<Markup, ServiceError> {
    let texts = visitor.texts;
    if !visitor.may(Permission::Integrate) {
        return Ok(html! {});
    }
    let mut receivers = webhooks::list(app, &visitor.caller, None).await?;
    receivers.retain(|one| one.failing_since.is_some() || one.disabled_reason.is_some());
    Ok(html! {
        @if !receivers.is_empty() {
            section.card {
                h2 { (texts.text("console-failing-receivers")) }
                ul.rows {
                    @for one in &receivers {
                        li {
                            a href={ (PATH) "/receivers/" (one.endpoint_id) } { (one.url) }
                            @if let Some(since) = one.failing_since {
                                p.soft { (texts.text("console-failing")) " " (visitor.moment(since)) }
                            }
                        }
                    }
                }
            }
        }
    })
}

/// Renders open change requests.
async fn requests(app: &App, visitor: &Visitor) -> Result<Markup, ServiceError> {
    let texts = visitor.texts;
    if !visitor.may(Permission::ChangeRules) {
        return Ok(html! {});
    }
    let found = changes::waiting(app, &visitor.caller.org).await?;
    Ok(html! {
        @if !found.is_empty() {
            section.card {
                h2 { (texts.text("console-requests")) }
                ul.rows { @for one in &found { li { (change_row(visitor, one)) } } }
            }
        }
    })
}

/// Renders findings, lists of envelopes by state, and what else waits.
async fn of_envelopes(app: &App, visitor: &Visitor, more: Markup) -> Result<Markup, ServiceError> {
    let texts = visitor.texts;
    let waiting = [EnvelopeStatus::Sent, EnvelopeStatus::Viewed];
    let lists = [
        ("console-waiting", "sent,viewed", waiting.to_vec(), None),
        (
            "console-signed",
            "completed",
            vec![EnvelopeStatus::Completed],
            None,
        ),
        (
            "console-declined",
            "declined",
            vec![EnvelopeStatus::Declined],
            None,
        ),
        (
            "console-below",
            "vaulted",
            vec![EnvelopeStatus::Vaulted],
            Some(100),
        ),
    ];
    let mut shown = Vec::new();
    for (title, status, statuses, score_below) in lists {
        let search = EnvelopeSearch {
            statuses,
            score_below,
            ..EnvelopeSearch::default()
        };
        let found = envelopes::search(app, &visitor.caller, &search, SHOWN + 1).await?;
        let score = score_below.map_or_else(String::new, |score| format!("&score_below={score}"));
        shown.push((
            title,
            format!("{PATH}/envelopes?status={status}{score}"),
            found,
        ));
    }
    let findings = match visitor.may(Permission::Audit) {
        true => integrity::findings(app, &visitor.caller, None, SHOWN).await?,
        false => Vec::new(),
    };
    let shows = usize::try_from(SHOWN).unwrap_or_default();
    Ok(html! {
        @if !findings.is_empty() {
            section.alarm role="alert" {
                h2 { (texts.text("console-findings")) }
                ul.rows {
                    @for finding in &findings {
                        li {
                            a href={ (PATH) "/envelopes/" (finding.envelope_id) } { (finding.envelope_name) }
                            @for problem in &finding.problems {
                                p.soft { (problem.check) ": " (problem.detail) }
                            }
                        }
                    }
                }
            }
        }
        div.lists {
            (more)
            @for (title, all, found) in &shown {
                section.card {
                    h2 { (texts.text(title)) }
                    @if found.is_empty() {
                        p.soft { (texts.text("console-nothing")) }
                    } @else {
                        (rows(visitor, &found[..found.len().min(shows)]))
                        @if found.len() > shows {
                            p { a href=(all) { (texts.text("console-all")) } }
                        }
                    }
                }
            }
        }
    })
}
