//! Keys and receivers of webhooks, and single deliveries with their content and attempts.

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Redirect};
use maud::{Markup, html};

use super::PATH;
use super::envelopes::unrecorded;
use super::forms::RefusedForm;
use super::live::LiveList;
use super::navigation::{PageResult, Place, export};
use super::receivers;
use super::signed_in::{ConsoleForm, Visitor};
use holdfast_adapters::texts::Texts;
use holdfast_domain::organization::{KeyMode, Permission, Scope};
use holdfast_domain::webhook::DeliveryStatus;
use holdfast_platform::access::api_keys;
use holdfast_platform::webhooks::{
    self,
    deliveries::{self, DeliveryView},
};
use holdfast_service::App;

/// Shows keys and receivers.
pub async fn show(State(app): State<App>, visitor: Visitor) -> PageResult {
    visitor.require(Permission::Integrate)?;

    shown(&app, &visitor, None).await
}

/// Renders keys and receivers, with the form for a new key.
pub async fn shown(app: &App, visitor: &Visitor, refused: Option<&RefusedForm>) -> PageResult {
    let keys = api_keys::list(app, &visitor.caller.org).await?;
    let found = webhooks::list(app, &visitor.caller, None).await?;

    let texts = visitor.texts;
    let body = html! {
        (visitor.identity_first(&format!("{PATH}/developers")))
        p { a href={ (PATH) "/requests" } { (texts.text("console-request-log")) } }
        section.card {
            h2 { (texts.text("console-receivers")) }
            @if found.is_empty() { p.soft { (texts.text("receiver-none")) } }
            ul.rows {
                @for receiver in &found {
                    li {
                        a href={ (PATH) "/receivers/" (receiver.endpoint_id) } { (receiver.url) }
                        p.soft {
                            (receivers::state(visitor, receiver))
                            @if let Some(description) = &receiver.description { " " (description) }
                        }
                    }
                }
            }
            (export(texts, "receivers.csv"))
        }
        (receivers::new_receiver(visitor, refused))
        section.card {
            h2 { (texts.text("console-keys")) }
            @if keys.is_empty() { p.soft { (texts.text("key-none")) } }
            ul.rows {
                @for key in &keys {
                    li {
                        p {
                            strong { (key.name.as_deref().unwrap_or(key.key_id.as_str())) } " "
                            span.tag.wrong[!key.active] {
                                @if key.active { (texts.text("console-active")) } @else { (texts.text("console-inactive")) }
                            }
                        }
                        p.soft {
                            @if key.mode == KeyMode::Test { span.tag { "TEST" } " " }
                            code { (key.key_id) } " · " (scopes(&key.scopes))
                        }
                        @if let Some(at) = key.last_used_at {
                            p.soft { (texts.text("console-last-used")) " " (visitor.moment(at)) }
                        }
                        (super::keys::acts(visitor, key))
                    }
                }
            }
            (export(texts, "keys.csv"))
        }
    };

    let body = html! {
        (body)
        @if visitor.may(Permission::Administer) { (super::keys::new_key(visitor, refused)) }
    };
    Ok(visitor.form_page(
        Place::Developers,
        Some(&LiveList::Developers),
        &texts.text("console-developers"),
        body,
        refused,
    ))
}

fn scopes(scopes: &[Scope]) -> String {
    let scopes: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
    scopes.join(", ")
}

/// Returns the name of a status.
pub fn delivery_status(texts: Texts, status: DeliveryStatus) -> String {
    texts.text(match status {
        DeliveryStatus::Pending => "delivery-pending",
        DeliveryStatus::Delivered => "delivery-delivered",
        DeliveryStatus::Failed => "delivery-failed",
    })
}

/// Renders a delivery of a list.
pub fn delivery_row(visitor: &Visitor, delivery: &DeliveryView) -> Markup {
    html! {
        a href={ (PATH) "/deliveries/" (delivery.delivery_id) } { (delivery.event_type) }
        p.soft {
            span.tag.wrong[delivery.status == DeliveryStatus::Failed] { (delivery_status(visitor.texts, delivery.status)) }
            " " (visitor.moment(delivery.created_at))
            @if let Some(code) = delivery.response_code { " · HTTP " (code) }
            @if let Some(error) = &delivery.error { " · " (error) }
        }
    }
}

/// Shows a delivery with its content and attempts.
pub async fn delivery(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> PageResult {
    visitor.require(Permission::Integrate)?;

    let found = deliveries::get(&app, &visitor.caller, &id).await?;
    let (texts, view) = (visitor.texts, &found.delivery);
    let body = html! {
        p.soft {
            span.tag { (delivery_status(texts, view.status)) } " " code { (view.delivery_id) } " · "
            (visitor.moment(view.created_at))
        }
        p { a href={ (PATH) "/receivers/" (view.endpoint_id) } { (texts.text("console-deliveries")) } }
        section.card {
            h2 { (texts.text("console-attempts")) }
            @if found.attempts.is_empty() { p.soft { (texts.text("console-nothing")) } }
            ul.rows {
                @for attempt in &found.attempts {
                    li {
                        p {
                            strong { (attempt.attempt) } " " (visitor.moment(attempt.at)) " "
                            @match attempt.response_code {
                                Some(code) => span.tag { (code) },
                                None => span.tag.wrong { (texts.text("console-no-answer")) },
                            }
                        }
                        @if let Some(error) = &attempt.error { p.soft { (error) } }
                        @if let Some(answer) = attempt.response_body.as_ref().filter(|answer| !answer.is_empty()) { pre tabindex="0" { (answer) } }
                    }
                }
            }
            @let again = format!("{PATH}/deliveries/{}/redeliver", view.delivery_id);
            (visitor.button(&again, None, "console-send-again"))
        }
        section.card {
            h2 { (texts.text("console-content")) }
            @match &found.payload {
                Some(payload) => pre tabindex="0" { (format!("{payload:#}")) },
                None => p.soft { (texts.text("console-nothing")) },
            }
        }
    };

    // Single deliveries have no stream. An attempt changes the list of the receiver, which this page
    // follows.
    Ok(visitor.live_page(
        Place::Developers,
        &LiveList::Deliveries(view.endpoint_id.to_string()),
        view.event_type.as_str(),
        body,
    ))
}

/// Sends the event to its receiver again, as a new delivery, and shows that.
pub async fn redeliver(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    form.visitor.require(Permission::Integrate)?;

    // A second press makes a second delivery. The receiver recognizes the event by its id, which stays
    // the same.
    let caller = &form.visitor.caller;
    let sent = deliveries::redeliver(&app, caller, &id, &unrecorded()).await?;

    Ok(Redirect::to(&format!("{PATH}/deliveries/{}", sent.delivery_id)).into_response())
}
