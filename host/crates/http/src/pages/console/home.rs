//! The first page: envelopes by state, and findings.

use std::time::Duration;

use axum::extract::State;
use maud::{Markup, html};

use super::PATH;
use super::envelopes::rows;
use super::live::LiveList;
use super::navigation::{PageResult, Place};
use super::rules::change_row;
use super::settings::link_host_problem;
use super::signed_in::Visitor;
use super::standing::tabs;
use holdfast_domain::envelope::{EnvelopeStatus, PaymentStatus};
use holdfast_domain::id::EnvelopeId;
use holdfast_domain::organization::Permission;
use holdfast_platform::components::changes;
use holdfast_platform::{ServiceError, webhooks};
use holdfast_service::envelopes::standing;
use holdfast_service::vault::integrity;
use holdfast_service::{App, envelopes};
use holdfast_store::search::EnvelopeSearch;

/// Envelopes of each list.
const SHOWN: i64 = 5;
/// Time before its end in which an envelope counts as expiring.
pub const SOON: Duration = Duration::from_secs(3 * 86_400);

/// Shows findings, and lists of envelopes by state.
pub async fn show(State(app): State<App>, visitor: Visitor) -> PageResult {
    let body = lists(&app, &visitor).await?;
    let title = visitor.texts.text("console-home");
    Ok(visitor.live_page(Place::Home, &LiveList::Envelopes, &title, body))
}

async fn lists(app: &App, visitor: &Visitor) -> Result<Markup, ServiceError> {
    // Each part is empty for a user who may not read it. `land` leads readers of no envelopes elsewhere.
    let (failing, requests) = (failing(app, visitor).await?, requests(app, visitor).await?);
    let waiting = html! { (link_host(visitor)) (failing) (requests) };
    of_envelopes(app, visitor, waiting).await
}

/// Renders the host of signing links, if new links do not lead there any more.
fn link_host(visitor: &Visitor) -> Markup {
    let texts = visitor.texts;
    let own = visitor.organization.settings.link_host.as_ref();
    let own = own.filter(|_| visitor.may(Permission::Administer));
    let ended = own.and_then(|own| Some((&own.host, own.problem?)));
    html! {
        @if let Some((host, problem)) = ended {
            section.card {
                h2 { (texts.text("settings-link-host")) }
                p { a href={ (PATH) "/settings/link-host" } { (host) } }
                p.soft { (texts.text(link_host_problem(problem))) }
            }
        }
    }
}

/// Renders receivers of webhooks that do not take events.
async fn failing(app: &App, visitor: &Visitor) -> Result<Markup, ServiceError> {
    let texts = visitor.texts;
    if !visitor.may(Permission::Integrate) {
        return Ok(html! {});
    }

    let mut receivers = webhooks::list(app, &visitor.caller, None).await?;
    // A disabled receiver no longer fails, but it misses every event until a person acts.
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
    let of = |statuses: &[EnvelopeStatus]| EnvelopeSearch {
        statuses: statuses.to_vec(),
        ..EnvelopeSearch::default()
    };
    // The conditions of a list are also in the query of its link, which opens the search with the same
    // envelopes.
    let lists = [
        (
            "console-stopped",
            "status=completed&show=stuck",
            EnvelopeSearch {
                stuck: true,
                ..of(&[EnvelopeStatus::Completed])
            },
        ),
        ("console-waiting", "status=sent,viewed", of(&waiting)),
        (
            "console-expiring",
            "status=sent,viewed&show=expiring",
            EnvelopeSearch {
                expires_before: Some(visitor.now + SOON),
                ..of(&waiting)
            },
        ),
        (
            "console-unpaid",
            "status=sent,viewed,completed&show=unpaid",
            EnvelopeSearch {
                payment: Some(PaymentStatus::RequiresPayment),
                ..of(&[
                    EnvelopeStatus::Sent,
                    EnvelopeStatus::Viewed,
                    EnvelopeStatus::Completed,
                ])
            },
        ),
        (
            "console-signed",
            "status=completed",
            of(&[EnvelopeStatus::Completed]),
        ),
        (
            "console-declined",
            "status=declined",
            of(&[EnvelopeStatus::Declined]),
        ),
        (
            "console-below",
            "status=vaulted&score_below=100",
            EnvelopeSearch {
                score_below: Some(100),
                ..of(&[EnvelopeStatus::Vaulted])
            },
        ),
    ];

    let mut shown = Vec::new();
    for (title, query, search) in lists {
        // One envelope more than is shown decides about the link to the whole list.
        let found = envelopes::search(app, &visitor.caller, &search, SHOWN + 1).await?;
        // Few organizations have any of these, and an empty list would say little.
        let is_rare = query.contains("show=");
        if !(is_rare && found.is_empty()) {
            shown.push((title, format!("{PATH}/envelopes?{query}"), found));
        }
    }

    // One read for the rows of all lists.
    let ids = shown.iter().flat_map(|(.., found)| found);
    let ids: Vec<&EnvelopeId> = ids.map(|one| &one.id).collect();
    let standings = standing::of_envelopes(app, &visitor.caller, &ids).await?;
    let counts = standing::tab_counts(app, &visitor.caller).await?;
    let findings = if visitor.may(Permission::Audit) {
        integrity::findings(app, &visitor.caller, None, SHOWN).await?
    } else {
        Vec::new()
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
        (tabs(texts, counts, None, ""))
        div.lists {
            (more)
            @for (title, all, found) in &shown {
                section.card {
                    h2 { (texts.text(title)) }
                    @if found.is_empty() {
                        p.soft { (texts.text("console-nothing")) }
                    } @else {
                        (rows(visitor, &found[..found.len().min(shows)], &standings))
                        @if found.len() > shows {
                            p { a href=(all) { (texts.text("console-all")) } }
                        }
                    }
                }
            }
        }
    })
}
