//! Receivers of webhooks: adding, changing, testing, enabling and deleting them, and their deliveries.

use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::PATH;
use super::developers::{delivery_row, delivery_status};
use super::envelopes::unrecorded;
use super::forms::{FormView, RefusedForm, TextField};
use super::graph::{BarGraph, BarPart, BarRow};
use super::live::LiveList;
use super::navigation::{PageResult, Place, copied, export};
use super::signed_in::{ConsoleForm, Visitor};
use super::sure::SensitiveAct;
use crate::error::HttpError;
use crate::middleware::extract::valid;
use crate::pages::page_frame::PageLook;
use holdfast_adapters::texts::Texts;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::event::EventType;
use holdfast_domain::organization::Permission;
use holdfast_domain::webhook::{DeliveryStatus, DisableReason};
use holdfast_platform::ServiceError;
use holdfast_platform::webhooks::deliveries::{self, DeliveryView};
use holdfast_platform::webhooks::{self, ChangeEndpoint, CreateEndpoint, EndpointView, WithSecret};
use holdfast_service::App;
use holdfast_store::deliveries::{DeliveryFilter, PeriodCounts};

/// Deliveries of a page.
const PAGE: i64 = 25;
/// Days of the graph.
const DAYS: u32 = 7;

fn developers() -> String {
    format!("{PATH}/developers")
}

fn address(id: &impl std::fmt::Display) -> String {
    format!("{PATH}/receivers/{id}")
}

/// Renders the form for a new receiver.
pub fn new_receiver(visitor: &Visitor, refused: Option<&RefusedForm>) -> Markup {
    let texts = visitor.texts;
    let action = format!("{PATH}/receivers");
    let form = FormView::new(texts, &action, refused);
    html! {
        details.card open[form.is_refused()] {
            summary { (texts.text("receiver-new")) }
            form method="post" action=(action) {
                (visitor.token())
                (form.summary())
                (fields(&form, None))
                button type="submit" { (texts.text("receiver-add")) }
            }
        }
    }
}

/// Renders the state of a receiver.
pub fn state(visitor: &Visitor, receiver: &EndpointView) -> Markup {
    let texts = visitor.texts;
    // An inactive receiver is not called failing, because no attempt is made any more.
    html! {
        @match (receiver.is_active, receiver.failing_since) {
            (false, _) => {
                span.tag.wrong { (texts.text("console-inactive")) }
                @match receiver.disabled_reason {
                    Some(DisableReason::Gone) => { " " (texts.text("receiver-gone")) }
                    Some(DisableReason::Failing) => { " " (texts.text("receiver-failing")) }
                    None => {}
                }
            }
            (true, Some(since)) => {
                span.tag.wrong { (texts.text("console-failing")) } " " (visitor.moment(since))
            }
            (true, None) => span.tag { (texts.text("console-active")) },
        }
    }
}

/// Renders the fields of a receiver.
fn fields(form: &FormView<'_>, receiver: Option<&EndpointView>) -> Markup {
    let texts = form.texts;
    let chosen = |selector: &str| match receiver {
        Some(receiver) => receiver.events.iter().any(|one| one == selector),
        // A first receiver should get everything; its owner narrows it down later.
        None => selector == "*",
    };
    let choice = |selector: &str, label: Markup| {
        let name = format!("event-{selector}");
        html! {
            label.choice {
                input type="checkbox" name=(name) value="yes" checked[form.is_ticked(&name, chosen(selector))];
                " " (label)
            }
        }
    };
    let url = receiver.map_or("", |receiver| receiver.url.as_str());
    let description = receiver.and_then(|receiver| receiver.description.as_deref());

    html! {
        (form.field("url", &html! { (texts.text("receiver-url")) }, html! {
            input id="url" name="url" type="url" required maxlength="2000" spellcheck="false" autocomplete="off"
                placeholder="https://" value=(form.value("url", url))
                aria-invalid=[form.invalid("url")] aria-describedby=[form.described("url")];
        }))
        (form.text(&TextField {
            present: description.unwrap_or_default(),
            ..TextField::new("description", &texts.text("receiver-description"))
        }))
        fieldset {
            legend { (texts.text("receiver-events")) }
            (choice("*", html! { (texts.text("receiver-all-events")) }))
            @for domain in domains() {
                @let selector = format!("{domain}.*");
                (choice(&selector, html! { code { (selector) } }))
            }
            details {
                summary { (texts.text("receiver-single-events")) }
                @for one in EventType::ALL { (choice(one.as_str(), html! { code { (one) } })) }
            }
        }
    }
}

/// Returns the domains of events in the order of the catalog.
fn domains() -> Vec<&'static str> {
    let mut domains: Vec<&str> = Vec::new();
    for one in EventType::ALL {
        let domain = one.as_str().split('.').next().unwrap_or_default();
        if !domains.contains(&domain) {
            domains.push(domain);
        }
    }

    domains
}

/// Returns the members of a form that a new and a changed receiver have.
fn members(form: &ConsoleForm) -> Map<String, Value> {
    let names = form.values.keys();
    let events: Vec<&str> = names
        .filter_map(|name| name.strip_prefix("event-"))
        .collect();
    let description = Some(form.value("description")).filter(|text| !text.is_empty());

    Map::from_iter([
        ("url".to_owned(), json!(form.value("url"))),
        ("description".to_owned(), json!(description)),
        ("events".to_owned(), json!(events)),
    ])
}

/// Adds a receiver, and shows its secret this once.
pub async fn create(State(app): State<App>, form: ConsoleForm) -> PageResult {
    form.visitor.require(Permission::Integrate)?;
    // A receiver gets what happens in the organization, so a stolen cookie must not add one.
    form.confirmed(&app, &developers()).await?;

    let made = async {
        let new = valid::<CreateEndpoint>(Value::Object(members(&form)))?;
        let (caller, unrecorded) = (&form.visitor.caller, unrecorded());
        let made = webhooks::create(&app, &app.webhooks, caller, new, &unrecorded);
        Ok::<_, HttpError>(made.await?)
    };
    match made.await {
        Ok(made) => Ok(shown(&app, form.visitor.texts, "receiver-new", &made)),
        Err(error) => {
            let refused = form.refused(error)?;
            super::developers::shown(&app, &form.visitor, Some(&refused)).await
        }
    }
}

/// Gives a receiver a new secret, and shows it this once.
pub async fn rotate(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    form.visitor.require(Permission::Integrate)?;
    // The answer has the new secret, so this needs the user and not only the cookie.
    form.confirmed(&app, &address(&id)).await?;

    let made = webhooks::rotate(&app, &form.visitor.caller, &id, &unrecorded()).await?;
    Ok(shown(&app, form.visitor.texts, "receiver-rotate", &made))
}

/// Shows the secret of a receiver.
fn shown(app: &App, texts: Texts, title: &'static str, made: &WithSecret) -> Response {
    let body = html! {
        p { (texts.text("receiver-secret-shown")) }
        (copied(texts, "secret", &texts.text("receiver-secret"), &made.secret))
        @if made.endpoint.grace_expires_at.is_some() { p { (texts.text("receiver-grace")) } }
        p { a href={ (app.config.public_url()) "/docs/webhooks" } target="_blank" rel="noreferrer" { (texts.text("receiver-check")) } }
        p { a href=(address(&made.endpoint.endpoint_id)) { (texts.text("receiver-open")) } }
    };

    PageLook::plain(texts).made(&texts.text(title), body)
}

#[derive(Default, Deserialize)]
pub struct ReceiverQuery {
    status: Option<String>,
    page: Option<String>,
    /// Result of a test: `taken` or `refused`.
    tested: Option<String>,
}

/// What the page of a receiver shows.
struct ReceiverPage {
    /// None if it was deleted: its deliveries stay.
    receiver: Option<EndpointView>,
    days: Vec<(Timestamp, PeriodCounts)>,
    found: Vec<DeliveryView>,
    total: i64,
}

async fn read(
    app: &App,
    visitor: &Visitor,
    id: &str,
    status: Option<DeliveryStatus>,
    page: i64,
) -> Result<ReceiverPage, ServiceError> {
    let filter = DeliveryFilter {
        status,
        ..DeliveryFilter::default()
    };
    let caller = &visitor.caller;
    let (found, total) = deliveries::list(app, caller, id, &filter, page, PAGE).await?;

    Ok(ReceiverPage {
        receiver: webhooks::find(app, caller, id).await?,
        days: deliveries::by_day(app, caller, id, DAYS).await?,
        found,
        total,
    })
}

/// Shows a receiver with its deliveries, newest first. Unreadable conditions are ignored.
pub async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<String>,
    Query(query): Query<ReceiverQuery>,
) -> PageResult {
    visitor.require(Permission::Integrate)?;

    page(&app, &visitor, &id, &query, None).await
}

async fn page(
    app: &App,
    visitor: &Visitor,
    id: &str,
    query: &ReceiverQuery,
    refused: Option<&RefusedForm>,
) -> PageResult {
    let status = query.status.as_deref().and_then(DeliveryStatus::parse);
    // Bounds the offset that a hand-written address can ask for.
    let page = query.page.as_deref().and_then(|page| page.parse().ok());
    let page: i64 = page
        .filter(|page| (1..=100_000).contains(page))
        .unwrap_or(1);
    let read = read(app, visitor, id, status, page).await?;

    let texts = visitor.texts;
    let body = html! {
        @match query.tested.as_deref() {
            Some("taken") => p.done role="status" { (texts.text("receiver-taken")) },
            Some("refused") => p.alarm role="alert" { (texts.text("receiver-refused")) },
            _ => {}
        }
        p { a href=(developers()) { (texts.text("console-receivers")) } }
        @match &read.receiver {
            Some(receiver) => (overview(visitor, receiver)),
            None => p { (texts.text("receiver-deleted")) },
        }
        section.card { (graph(visitor, &read.days)) }
        (log(visitor, id, status, page, &read))
        @if let Some(receiver) = &read.receiver { (changes(visitor, receiver, refused)) }
    };

    let list = LiveList::Deliveries(id.to_owned());
    let title = texts.text("receiver-title");
    Ok(visitor.form_page(Place::Developers, Some(&list), &title, body, refused))
}

/// Renders a receiver with the acts that can be repeated.
fn overview(visitor: &Visitor, receiver: &EndpointView) -> Markup {
    let texts = visitor.texts;
    let act = |act: &str, text: &'static str| act_form(visitor, receiver, act, text, "quiet");

    html! {
        section.card {
            h2 { (receiver.url) }
            p { (state(visitor, receiver)) }
            @if let Some(until) = receiver.paused_until {
                p.soft { (texts.text("receiver-paused")) " " (visitor.moment(until)) }
            }
            @if let Some(description) = &receiver.description { p { (description) } }
            p.soft {
                (texts.text("receiver-events")) ": "
                @for (at, event) in receiver.events.iter().enumerate() {
                    @if at > 0 { ", " }
                    @if event == "*" { (texts.text("receiver-all-events")) } @else { code { (event) } }
                }
            }

            @if let Some(until) = receiver.grace_expires_at {
                p.soft { (texts.text("receiver-grace-until")) " " (visitor.moment(until)) }
            }
            @if !receiver.secret_set { p.soft { (texts.text("receiver-unsigned")) } }

            div.actions {
                (act("test", "receiver-test"))
                @if receiver.is_active {
                    (act("disable", "receiver-disable"))
                } @else {
                    (act("enable", "receiver-enable"))
                }
            }
        }
    }
}

fn act_form(
    visitor: &Visitor,
    receiver: &EndpointView,
    act: &str,
    text: &'static str,
    class: &str,
) -> Markup {
    html! {
        form method="post" action={ (address(&receiver.endpoint_id)) "/" (act) } {
            (visitor.token())
            button class=(class) type="submit" { (visitor.texts.text(text)) }
        }
    }
}

/// Renders the deliveries of the last days as a graph.
fn graph(visitor: &Visitor, days: &[(Timestamp, PeriodCounts)]) -> Markup {
    let texts = visitor.texts;
    let format = visitor.organization.settings.dates.format;
    let rows = days.iter().map(|(day, counts)| {
        let (short, date) = (texts.weekday(day.date()), day.date().to_string());
        BarRow::new(short, format.written(&date), by_outcome(*counts))
    });

    BarGraph {
        title: texts.text("receiver-graph"),
        of_rows: texts.text("graph-day"),
        parts: outcomes(texts),
        rows: rows.collect(),
        as_table: texts.text("graph-table"),
    }
    .stacked()
}

/// Returns the parts of a bar of deliveries.
pub fn outcomes(texts: Texts) -> Vec<BarPart> {
    let part = |(status, class)| BarPart {
        name: delivery_status(texts, status),
        class,
    };
    let all = [
        (DeliveryStatus::Delivered, "good"),
        (DeliveryStatus::Failed, "bad"),
        (DeliveryStatus::Pending, "open"),
    ];
    all.map(part).into()
}

/// Returns the numbers of a bar of deliveries, in the order of [`outcomes`].
pub fn by_outcome(counts: PeriodCounts) -> Vec<i64> {
    vec![counts.delivered, counts.failed, counts.pending]
}

/// Renders a page of the deliveries.
fn log(
    visitor: &Visitor,
    id: &str,
    status: Option<DeliveryStatus>,
    page: i64,
    read: &ReceiverPage,
) -> Markup {
    let texts = visitor.texts;

    // The links keep the chosen status, or the second page would be one of another list.
    let at = |page: i64| {
        let status = status.map_or("", DeliveryStatus::as_str);
        format!("{}?status={status}&page={page}", address(&id))
    };

    html! {
        h2 { (texts.text("console-deliveries")) }
        form.search method="get" action=(address(&id)) {
            div.field {
                label for="status" { (texts.text("console-status")) }
                select id="status" name="status" {
                    option value="" { (texts.text("console-all-statuses")) }
                    @for one in DeliveryStatus::ALL {
                        option value=(one) selected[status == Some(*one)] { (delivery_status(texts, *one)) }
                    }
                }
            }
            button type="submit" { (texts.text("console-search")) }
        }

        @if read.found.is_empty() {
            p {
                @if status.is_some() { (texts.text("console-nothing")) } @else { (texts.text("receiver-no-deliveries")) }
            }
        } @else {
            ul.rows {
                @for delivery in &read.found { li { (delivery_row(visitor, delivery)) } }
            }
        }

        @if page > 1 { p { a href=(at(page - 1)) { (texts.text("console-newer")) } } }
        @if page.saturating_mul(PAGE) < read.total { p { a href=(at(page + 1)) { (texts.text("console-earlier")) } } }
        (export(texts, &format!("receivers/{id}/deliveries.csv")))
    }
}

/// Renders the form of a receiver, and the acts that cannot be undone.
fn changes(visitor: &Visitor, receiver: &EndpointView, refused: Option<&RefusedForm>) -> Markup {
    let texts = visitor.texts;
    let action = format!("{}/edit", address(&receiver.endpoint_id));
    let form = FormView::new(texts, &action, refused);
    html! {
        details.card open[form.is_refused()] {
            summary { (texts.text("receiver-edit")) }
            form method="post" action=(action) {
                (visitor.token())
                (form.summary())
                (fields(&form, Some(receiver)))
                button type="submit" { (texts.text("settings-save")) }
            }
        }
        details.card {
            summary { (texts.text("receiver-rotate")) }
            p { (texts.text("receiver-rotate-hint")) }
            (act_form(visitor, receiver, "rotate", "receiver-rotate", "quiet"))
        }
        details.card {
            summary { (texts.text("receiver-delete")) }
            p { (texts.text("receiver-delete-hint")) }
            (act_form(visitor, receiver, "delete", "receiver-delete", "danger"))
        }
    }
}

/// Changes address, description and events of a receiver.
pub async fn edit(State(app): State<App>, Path(id): Path<String>, form: ConsoleForm) -> PageResult {
    form.visitor.require(Permission::Integrate)?;
    // With another address, another receiver gets the events.
    form.confirmed(&app, &address(&id)).await?;

    let caller = &form.visitor.caller;
    let present = webhooks::find(&app, caller, &id).await?;
    let mut members = members(&form);
    // An address is checked again when it is set. The old one may be out of reach at present, and stays as it is.
    if present.is_some_and(|present| present.url == form.value("url")) {
        members.remove("url");
    }

    match change(&app, &form, &id, Value::Object(members)).await {
        Ok(changed) => Ok(changed),
        Err(error) => {
            let (refused, query) = (form.refused(error)?, ReceiverQuery::default());
            page(&app, &form.visitor, &id, &query, Some(&refused)).await
        }
    }
}

/// Lets a receiver get events again.
pub async fn enable(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    set_active(&app, &id, &form, true).await
}

/// Ends deliveries to a receiver, until it is enabled again.
pub async fn disable(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    set_active(&app, &id, &form, false).await
}

async fn set_active(app: &App, id: &str, form: &ConsoleForm, is_active: bool) -> PageResult {
    form.visitor.require(Permission::Integrate)?;

    // The deliveries that wait are given up, as by a deletion.
    if !is_active {
        form.confirmed(app, &address(&id)).await?;
    }

    Ok(change(app, form, id, json!({ "is_active": is_active })).await?)
}

/// Changes a receiver, and leads to its page.
async fn change(
    app: &App,
    form: &ConsoleForm,
    id: &str,
    members: Value,
) -> Result<Response, HttpError> {
    let change = valid::<ChangeEndpoint>(members)?;
    let caller = &form.visitor.caller;
    let changed = webhooks::change(app, &app.webhooks, caller, id, change).await?;
    Ok(Redirect::to(&address(&changed.endpoint_id)).into_response())
}

/// Sends a test event, and leads to the page of the receiver with the result.
pub async fn test(State(app): State<App>, Path(id): Path<String>, form: ConsoleForm) -> PageResult {
    form.visitor.require(Permission::Integrate)?;

    let caller = &form.visitor.caller;
    let tested = webhooks::test(&app, &app.webhooks, caller, &id, &unrecorded()).await?;
    let result = if tested.delivered { "taken" } else { "refused" };
    Ok(Redirect::to(&format!("{}?tested={result}", address(&id))).into_response())
}

/// Deletes a receiver. Its deliveries stay readable.
pub async fn delete(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    form.visitor.require(Permission::Integrate)?;
    // An organization without its receiver misses every event.
    form.confirmed(&app, &address(&id)).await?;

    let (caller, texts) = (&form.visitor.caller, form.visitor.texts);
    if let Some(receiver) = webhooks::find(&app, caller, &id).await? {
        form.meant(&SensitiveAct {
            label: texts.text("receiver-delete"),
            objects: vec![receiver.url],
            consequence: texts.text("receiver-delete-hint"),
            is_typed: false,
            back: address(&id),
        })?;
    }

    webhooks::delete(&app, caller, &id).await?;
    Ok(Redirect::to(&developers()).into_response())
}
