//! Who did what: changes of users, keys, settings and components.

use axum::extract::{Query, State};
use axum::response::Response;
use maud::html;
use serde::Deserialize;

use super::PATH;
use super::live::LiveList;
use super::navigation::{Place, export, failed};
use super::signed_in::Visitor;
use holdfast_domain::organization::Permission;
use holdfast_platform::ServiceError;
use holdfast_platform::access::audit;
use holdfast_service::App;

/// Entries of a page.
const PAGE: i64 = 25;

#[derive(Deserialize)]
pub struct AuditQuery {
    after: Option<String>,
}

/// Shows the entries, newest first.
pub async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<AuditQuery>,
) -> Response {
    if let Some(refused) = visitor.refusal(Permission::Audit) {
        return refused;
    }

    // One entry more than a page shows whether there are earlier ones, without counting both ledgers.
    let found = audit::list(&app, &visitor.caller, query.after.as_deref(), PAGE + 1).await;
    let found = match found {
        // An unreadable place of the list is its begin.
        Err(ServiceError::Malformed(_)) => audit::list(&app, &visitor.caller, None, PAGE + 1).await,
        found => found,
    };
    let found = match found {
        Ok(found) => found,
        Err(error) => return failed(error),
    };

    let texts = visitor.texts;
    let shown = &found[..found.len().min(usize::try_from(PAGE).unwrap_or_default())];
    let earlier = shown.last().filter(|_| found.len() > shown.len());
    let body = html! {
        @if shown.is_empty() { p { (texts.text("console-nothing")) } } @else {
            ul.rows {
                @for entry in shown {
                    li {
                        p { strong { (entry.action) } " " span.soft { (entry.actor) } }
                        p.soft { (visitor.moment(entry.at)) " · " (entry.id) }
                        details {
                            summary { (texts.text("console-content")) }
                            pre tabindex="0" { (format!("{:#}", entry.details)) }
                        }
                    }
                }
            }
        }
        p { a href={ (PATH) "/usage" } { (texts.text("console-usage")) } }
        (export(texts, "audit.csv"))
        @if let Some(last) = earlier {
            p { a href={ (PATH) "/audit?after=" (last.id) } { (texts.text("console-earlier")) } }
        }
    };

    visitor.live_page(
        Place::Audit,
        &LiveList::Audit,
        &texts.text("console-audit"),
        body,
    )
}
