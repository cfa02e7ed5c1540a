//! Who did what: changes of users, keys, settings and components.

use axum::extract::{Query, State};
use maud::html;
use serde::Deserialize;
use serde_json::Value;

use super::PATH;
use super::live::LiveList;
use super::navigation::{PageResult, Place, export};
use super::signed_in::Visitor;
use holdfast_adapters::texts::Texts;
use holdfast_domain::organization::Permission;
use holdfast_platform::ServiceError;
use holdfast_platform::access::audit::{self, AuditEntry};
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
) -> PageResult {
    visitor.require(Permission::Audit)?;

    // One entry more than a page shows whether there are earlier ones, without counting both ledgers.
    let (caller, after) = (&visitor.caller, query.after.as_deref());
    let found = match audit::list(&app, caller, after, PAGE + 1).await {
        // An unreadable place of the list is its begin.
        Err(ServiceError::Malformed(_)) => audit::list(&app, caller, None, PAGE + 1).await?,
        found => found?,
    };

    let texts = visitor.texts;
    let shown = &found[..found.len().min(usize::try_from(PAGE).unwrap_or_default())];
    let earlier = shown.last().filter(|_| found.len() > shown.len());
    let body = html! {
        @if shown.is_empty() { p { (texts.text("console-nothing")) } } @else {
            ul.rows {
                @for entry in shown {
                    li {
                        p { strong { (sentence(texts, entry)) } }
                        p.soft { (visitor.moment(entry.at)) " · " code { (entry.action) } " · " (entry.id) }
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

    Ok(visitor.live_page(
        Place::Audit,
        &LiveList::Audit,
        &texts.text("console-audit"),
        body,
    ))
}

/// Returns the sentence of an entry.
fn sentence(texts: Texts, entry: &AuditEntry) -> String {
    let actor = match entry.actor.strip_prefix("user:") {
        Some(email) => email.to_owned(),
        None => match entry.actor.as_str() {
            "operator" => texts.text("audit-operator"),
            "system" => texts.text("audit-service"),
            other => other.to_owned(),
        },
    };

    // An action of a newer node has no sentence yet.
    let Some(text) = text_of(&entry.action) else {
        return format!("{actor}: {}", entry.action);
    };
    texts.with(text, [("actor", actor), ("object", object(&entry.details))])
}

fn text_of(action: &str) -> Option<&'static str> {
    Some(match action {
        "user.signed_in" => "audit-user-signed-in",
        "user.invited" => "audit-user-invited",
        "user.link_sent" => "audit-user-link-sent",
        "user.changed" => "audit-user-changed",
        "user.bound" => "audit-user-bound",
        "user.unbound" => "audit-user-unbound",
        "user.ended" => "audit-user-ended",
        "user.provisioned" => "audit-user-provisioned",
        "session.ended" => "audit-session-ended",
        "passkey.added" => "audit-passkey-added",
        "passkey.removed" => "audit-passkey-removed",

        "key.created" => "audit-key-created",
        "key.rotated" => "audit-key-rotated",
        "key.updated" => "audit-key-updated",
        "key.deactivated" => "audit-key-deactivated",

        "open_link.created" => "audit-open-link-created",
        "open_link.closed" => "audit-open-link-closed",
        "open_link.unavailable" => "audit-open-link-unavailable",
        "open_link.available" => "audit-open-link-available",
        "template.shared" => "audit-template-shared",

        "token.issued" => "audit-token-issued",
        "token.revoked" => "audit-token-revoked",

        "settings.changed" => "audit-settings-changed",
        "policy.changed" => "audit-policy-changed",
        "state.set" => "audit-state-set",

        "component.uploaded" => "audit-component-uploaded",
        "component.activated" => "audit-component-activated",
        "component.scheduled" => "audit-component-scheduled",
        "component.rolled_back" => "audit-component-rolled-back",
        "component.trial" | "component.tried" => "audit-component-tried",
        "component.shadow_started" => "audit-shadow-started",
        "component.shadow_ended" => "audit-shadow-ended",

        "change.requested" => "audit-change-requested",
        "change.compared" => "audit-change-compared",
        "change.reviewed" => "audit-change-reviewed",
        "change.applied" => "audit-change-applied",
        "change.withdrawn" => "audit-change-withdrawn",
        "change.outdated" => "audit-change-outdated",
        _ => return None,
    })
}

/// Returns the name of what an entry is about.
fn object(details: &Value) -> String {
    // Names of the settings that changed.
    if let Some(changed) = details["changed"].as_object() {
        let names: Vec<&str> = changed.keys().map(String::as_str).collect();
        return names.join(", ");
    }

    let names = [
        &details["email"],
        &details["component"]["name"],
        &details["change_id"],
        &details["name"],
        &details["key_id"],
        &details["slot"],
    ];
    let mut names = names.into_iter().filter_map(Value::as_str);
    names.next().unwrap_or("–").to_owned()
}
