//! The first page: envelopes by state, and findings.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};

use super::PATH;
use super::envelopes::rows;
use super::frame::{Place, failed};
use super::visitor::Visitor;
use crate::domain::envelope::EnvelopeStatus;
use crate::domain::organization::Permission;
use crate::service::vault::integrity;
use crate::service::{App, ServiceError, envelopes};
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
    if !visitor.may(Permission::ReadEnvelopes) {
        return Ok(html! { p { (texts.text("console-no-envelopes")) } });
    }
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
