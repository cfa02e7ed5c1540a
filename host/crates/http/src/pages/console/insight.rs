//! Usage, the request log, and the installation as its operator sees it.

use axum::extract::{Path, Query, State};
use maud::{Markup, html};
use serde::Deserialize;

use super::PATH;
use super::live::LiveList;
use super::navigation::{PageResult, Place, export, query};
use super::signed_in::{Visitor, refused};
use crate::api::web::insight::statuses;
use holdfast_domain::id::{EnvelopeId, RequestId};
use holdfast_domain::organization::Permission;
use holdfast_platform::components::{self, ComponentOwner};
use holdfast_platform::request_log::{self, LoggedRequest, RequestSearch};
use holdfast_service::App;
use holdfast_service::doctor;
use holdfast_service::installation::{self, InstallationView};

/// Requests of a page.
const PAGE: i64 = 50;

#[derive(Deserialize)]
pub struct UsageQuery {
    month: Option<String>,
}

/// Shows the usage of a month.
pub async fn usage(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<UsageQuery>,
) -> PageResult {
    visitor.require(Permission::Audit)?;

    // A cleared field is sent as an empty one and means the present month.
    let month = query.month.as_deref().filter(|month| !month.is_empty());
    let usage = installation::usage(&app, &visitor.caller.org, month).await?;
    let texts = visitor.texts;
    let rows = [
        ("usage-created", usage.envelopes_created),
        ("usage-vaulted", usage.envelopes_vaulted),
        ("usage-passed", usage.identity_passed),
        ("usage-failed", usage.identity_failed),
        ("usage-unavailable", usage.identity_unavailable),
        ("usage-billed", usage.identity_billed_signers),
    ];
    let body = html! {
        form.search method="get" action={ (PATH) "/usage" } {
            div.field {
                label for="month" { (texts.text("usage-month")) }
                input id="month" name="month" type="month" value=(usage.month);
            }
            button type="submit" { (texts.text("console-search")) }
        }
        section.card {
            table {
                tbody {
                    @for (text, number) in rows {
                        tr { th scope="row" { (texts.text(text)) } td { (number) } }
                    }
                }
            }
        }
    };

    Ok(visitor.page(Place::Audit, &texts.text("console-usage"), body))
}

/// Conditions of the search form.
#[derive(Deserialize)]
pub struct RequestQuery {
    q: Option<String>,
    status: Option<String>,
    credential: Option<String>,
    after: Option<RequestId>,
}

impl RequestQuery {
    fn given(text: Option<&String>) -> Option<&str> {
        // PostgreSQL takes no U+0000 in a text, and an address can be longer than the field allows.
        let text = text?.trim();
        (!text.is_empty() && !text.contains('\0') && text.len() <= 500).then_some(text)
    }

    /// Returns the search: `q` is the id of a request or an envelope, or the begin of a path.
    pub fn search(&self) -> RequestSearch {
        let text = Self::given(self.q.as_ref());
        let (id, envelope) = match text {
            Some(text) => (RequestId::parse(text), EnvelopeId::parse(text)),
            None => (None, None),
        };
        let is_id = id.is_some() || envelope.is_some();

        RequestSearch {
            path: text.filter(|_| !is_id).map(str::to_owned),
            id,
            envelope,
            credential: Self::given(self.credential.as_ref()).map(str::to_owned),
            method: None,
            statuses: Self::given(self.status.as_ref()).and_then(statuses),
            after: self.after.clone(),
        }
    }

    fn query(&self) -> String {
        query([
            ("q", Self::given(self.q.as_ref())),
            ("status", Self::given(self.status.as_ref())),
            ("credential", Self::given(self.credential.as_ref())),
        ])
    }
}

/// Lists requests, newest first. Unreadable conditions are ignored.
pub async fn requests(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<RequestQuery>,
) -> PageResult {
    visitor.require(Permission::Integrate)?;

    // One request more than a page shows whether there are older ones. The log is not counted.
    let found = request_log::list(&app, &visitor.caller.org, &query.search(), PAGE + 1).await;
    let mut found = found?;
    let has_more = found.len() > usize::try_from(PAGE).unwrap_or_default();
    found.truncate(usize::try_from(PAGE).unwrap_or_default());

    let texts = visitor.texts;
    let chosen = query.status.clone().unwrap_or_default();
    let older = found.last().filter(|_| has_more).map(|last| {
        format!(
            "{PATH}/requests?{}&after={}",
            query.query(),
            last.request_id
        )
    });
    let body = html! {
        form.search method="get" action={ (PATH) "/requests" } role="search" {
            div.field {
                label for="q" { (texts.text("requests-search")) }
                input id="q" name="q" type="search" value=[query.q.as_deref()] maxlength="500" spellcheck="false";
            }
            div.field {
                label for="status" { (texts.text("console-status")) }
                select id="status" name="status" {
                    option value="" { (texts.text("console-all-statuses")) }
                    @for one in ["2xx", "4xx", "5xx"] { option value=(one) selected[chosen == one] { (one) } }
                }
            }
            button type="submit" { (texts.text("console-search")) }
        }
        @if found.is_empty() {
            p { @if query.query().is_empty() { (texts.text("empty-requests")) } @else { (texts.text("console-nothing")) } }
        }
        ul.rows { @for one in &found { li { (request_row(&visitor, one)) } } }
        @if let Some(older) = older { p { a href=(older) { (texts.text("console-older")) } } }
        (export(texts, &format!("requests.csv?{}", query.query())))
    };

    Ok(visitor.live_page(
        Place::Developers,
        &LiveList::Requests,
        &texts.text("console-request-log"),
        body,
    ))
}

fn request_row(visitor: &Visitor, one: &LoggedRequest) -> Markup {
    html! {
        a href={ (PATH) "/requests/" (one.request_id) } { (one.method) " " (one.path) }
        p.soft {
            span.tag.wrong[one.status >= 400] { (one.status) }
            " " (visitor.moment(one.at)) " · " (one.duration_ms) " ms"
            @if let Some(credential) = &one.credential { " · " (credential) }
        }
    }
}

/// Shows one request.
pub async fn request(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> PageResult {
    visitor.require(Permission::Integrate)?;

    let one = request_log::get(&app, &visitor.caller.org, &id).await?;
    let texts = visitor.texts;
    // Private content was removed before the bodies were stored, so they are shown as they are.
    let bodies = [
        ("requests-request", &one.request),
        ("requests-answer", &one.answer),
    ];
    let body = html! {
        section.card {
            p { code { (one.request_id) } }
            (request_row(&visitor, &one))
            @if let Some(envelope) = &one.envelope_id {
                p { a href={ (PATH) "/envelopes/" (envelope) } { (envelope) } }
            }
            p.soft { (texts.text("requests-hint")) }
        }
        @for (title, content) in bodies {
            @if let Some(content) = content {
                section.card {
                    h2 { (texts.text(title)) }
                    pre tabindex="0" { (serde_json::to_string_pretty(content).unwrap_or_default()) }
                }
            }
        }
    };

    Ok(visitor.page(Place::Developers, &texts.text("console-request-log"), body))
}

/// Shows the state of the installation to its operator.
pub async fn operator(State(app): State<App>, visitor: Visitor) -> PageResult {
    // A role is not enough: admins of every tenant have it, and this page is about all tenants.
    if !visitor.operates {
        return Err(refused(visitor.texts).into());
    }

    let view = installation::view(&app).await?;
    let owner = ComponentOwner::installation();
    let slots = components::slots(&app, &app.management, &owner).await?;
    let checks = doctor::checks(&app).await;
    let texts = visitor.texts;
    let body = html! {
        p.soft { "holdfast " (view.version) }
        section.card {
            h2 { (texts.text("operator-checks")) }
            ul.rows {
                @for check in &checks {
                    li {
                        p {
                            span.tag.wrong[!check.ok] { @if check.ok { (texts.text("yes")) } @else { (texts.text("no")) } }
                            " " strong { (check.name) }
                        }
                        p.soft { (check.detail) }
                    }
                }
            }
        }
        (work(&visitor, &view, &app.config.base_url()))
        section.card {
            h2 { (texts.text("operator-components")) }
            ul.rows {
                @for slot in &slots {
                    li {
                        p { strong { (slot.slot) } " " (slot.active.name) " " (slot.active.version) }
                        @if let Some(problem) = &slot.problem { p.problem { (problem) } }
                    }
                }
            }
        }
        section.card {
            h2 { (texts.text("operator-organizations")) }
            div.scroll tabindex="0" role="region" aria-label=(texts.text("operator-organizations")) {
                table {
                    thead {
                        tr {
                            @for column in ["rules-name", "console-envelopes", "console-users", "operator-since"] {
                                th scope="col" { (texts.text(column)) }
                            }
                        }
                    }
                    tbody {
                        @for one in &view.organizations {
                            tr {
                                td { (one.name) br; code { (one.org_id) } }
                                td { (one.envelopes) }
                                td { (one.users) }
                                td { (visitor.moment(one.created_at)) }
                            }
                        }
                    }
                }
            }
            (export(texts, "operator/organizations.csv"))
            p.soft {
                (texts.text("operator-buckets")) " "
                @for one in &view.buckets { (one.bucket) ": " (one.organizations) " " }
            }
        }
    };

    Ok(visitor.live_page(
        Place::Operator,
        &LiveList::Installation,
        &texts.text("console-operator"),
        body,
    ))
}

/// Renders queues, jobs, the log and the nodes.
fn work(visitor: &Visitor, view: &InstallationView, url: &str) -> Markup {
    let texts = visitor.texts;
    let queues = &view.queues;
    let numbers = [
        ("operator-jobs-waiting", queues.jobs_waiting),
        ("operator-jobs-failed", queues.jobs_failed),
        ("operator-deliveries", queues.deliveries_due),
        ("operator-paused", queues.endpoints_paused),
        ("operator-disabled", queues.endpoints_disabled),
        ("operator-log-pending", view.log.pending),
        ("operator-records", view.sweep.records),
        ("operator-checked", view.sweep.checked),
        ("operator-problems", view.sweep.with_problems),
    ];

    // Only a monitor outside notices a rewritten log, so the page has the command that starts one.
    html! {
        section.card {
            h2 { (texts.text("operator-work")) }
            table {
                tbody {
                    @for (text, number) in numbers {
                        tr { th scope="row" { (texts.text(text)) } td { (number) } }
                    }
                    tr { th scope="row" { (texts.text("operator-log")) } td { (view.log.size) } }
                    @if let Some(root) = &view.log.root_hash {
                        tr {
                            th scope="row" { (texts.text("operator-log-head")) }
                            td { code { (root) } @if let Some(at) = view.log.signed_at { " " (visitor.moment(at)) } }
                        }
                    }
                    tr {
                        th scope="row" { (texts.text("operator-backup")) }
                        td {
                            @match view.last_backup_at {
                                Some(at) => { (visitor.moment(at)) }
                                None => { "–" }
                            }
                        }
                    }
                    @for node in &view.nodes {
                        tr { th scope="row" { (texts.text("operator-node")) " " code { (node.node) } } td { (visitor.moment(node.seen_at)) } }
                    }
                }
            }
            h3 { (texts.text("operator-monitors")) }
            @if view.monitors.is_empty() { p.soft { (texts.text("operator-no-monitor")) } }
            ul.rows {
                @for one in &view.monitors { li { code { (one.address) } " " (visitor.moment(one.asked_at)) } }
            }
            p.soft { (texts.text("operator-monitor")) " " code { "holdfast ledger monitor --url " (url) " --state FILE" } }
            (export(texts, "operator/nodes.csv"))
            @if !view.failing_jobs.is_empty() {
                h3 { (texts.text("operator-failing")) }
                (export(texts, "operator/jobs.csv"))
                ul.rows {
                    @for job in &view.failing_jobs {
                        li {
                            p { strong { (job.kind) } " · " code { (job.org_id) } " · " (job.attempts) }
                            @if let Some(error) = &job.error { p.soft { (error) } }
                        }
                    }
                }
            }
        }
    }
}
