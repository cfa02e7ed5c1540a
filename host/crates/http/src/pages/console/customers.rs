//! Customers of the organization, and one customer with the envelopes and files.

use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse as _, Redirect};
use maud::{Markup, html};
use serde::Deserialize;

use super::PATH;
use super::live::LiveList;
use super::navigation::{PageResult, Place, export, query, status};
use super::persons;
use super::signed_in::Visitor;
use holdfast_domain::envelope::EnvelopeStatus;
use holdfast_domain::id::{CustomerId, EnvelopeId};
use holdfast_domain::organization::Permission;
use holdfast_platform::ServiceError;
use holdfast_platform::problems::ProblemKind;
use holdfast_service::customers::{self, OwnCustomer};
use holdfast_service::{App, envelopes};
use holdfast_store::search::{EnvelopeSearch, FoundEnvelope};

/// Customers, or envelopes of a customer, on a page.
const PAGE: i64 = 25;

fn address(id: &CustomerId) -> String {
    format!("{PATH}/customers/{id}")
}

/// Conditions of the search form.
#[derive(Deserialize)]
pub struct CustomerQuery {
    q: Option<String>,
    after: Option<String>,
}

impl CustomerQuery {
    /// Returns the text of the search.
    pub fn text(&self) -> Option<String> {
        let text = self.q.as_deref().unwrap_or_default().trim();
        // PostgreSQL takes no U+0000 in a text, and an address can be longer than the field allows.
        let text: String = text.chars().filter(|one| *one != '\0').take(200).collect();
        (!text.is_empty()).then_some(text)
    }
}

/// Lists the customers that fit, newest first. Unreadable conditions are ignored.
pub async fn list(
    State(app): State<App>,
    visitor: Visitor,
    Query(asked): Query<CustomerQuery>,
) -> PageResult {
    visitor.require(Permission::ReadEnvelopes)?;

    let text = asked.text();
    let after = asked.after.as_deref().and_then(CustomerId::parse);
    let caller = &visitor.caller;
    // One customer more than a page shows whether there are older ones.
    let found = customers::search(&app, caller, text.as_deref(), after.as_ref(), PAGE + 1).await?;
    let shown = &found[..found.len().min(usize::try_from(PAGE).unwrap_or_default())];
    let conditions = query([("q", text.as_deref())]);
    let older = shown.last().filter(|_| found.len() > shown.len());
    let older = older.map(|last| {
        let after = &last.customer.customer_id;
        format!("{PATH}/customers?{conditions}&after={after}")
    });

    let texts = visitor.texts;
    let body = html! {
        form.search method="get" action={ (PATH) "/customers" } role="search" {
            div.field {
                label for="q" { (texts.text("customer-search")) }
                input id="q" name="q" type="search" value=[text.as_deref()] maxlength="200";
            }
            button type="submit" { (texts.text("console-search")) }
        }
        (export(texts, &format!("customers.csv?{conditions}")))
        @if shown.is_empty() {
            p {
                @if text.is_some() { (texts.text("console-nothing")) } @else {
                    (texts.text("customer-none"))
                    @if visitor.may(Permission::Send) {
                        " " a href={ (PATH) "/send" } { (texts.text("console-send")) }
                    }
                }
            }
        }
        ul.rows { @for one in shown { li { (row(&visitor, one)) } } }
        @if let Some(older) = older { p { a href=(older) { (texts.text("customer-older")) } } }
    };

    // Most customers appear with their first envelope, which changes the numbers of this stream.
    Ok(visitor.live_page(
        Place::Customers,
        &LiveList::Envelopes,
        &texts.text("console-customers"),
        body,
    ))
}

fn row(visitor: &Visitor, one: &OwnCustomer) -> Markup {
    html! {
        a href=(address(&one.customer.customer_id)) { (one.customer.name) }
        p.soft {
            @if let Some(email) = &one.email { (email) " · " }
            (visitor.moment(one.customer.created_at))
        }
    }
}

#[derive(Deserialize)]
pub struct PlaceQuery {
    after: Option<String>,
}

/// Shows a customer with the envelopes and files, newest first.
pub async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<String>,
    Query(place): Query<PlaceQuery>,
) -> PageResult {
    visitor.require(Permission::ReadEnvelopes)?;

    let customer = match customers::get(&app, &visitor.caller, &id).await {
        // The remaining data of an erased customer is on the page of the erasure.
        Err(ServiceError::Problem(problem))
            if visitor.may(Permission::Hold) && matches!(problem.kind, ProblemKind::Gone) =>
        {
            return Ok(Redirect::to(&persons::address(&id)).into_response());
        }
        found => found?,
    };
    let search = EnvelopeSearch {
        customer: Some(customer.customer.customer_id.clone()),
        after: place.after.as_deref().and_then(EnvelopeId::parse),
        ..EnvelopeSearch::default()
    };
    let found = envelopes::search(&app, &visitor.caller, &search, PAGE + 1).await?;
    let shown = &found[..found.len().min(usize::try_from(PAGE).unwrap_or_default())];
    let older = shown.last().filter(|_| found.len() > shown.len());
    let texts = visitor.texts;
    let body = html! {
        section.card {
            @if let Some(email) = &customer.email { p { (email) } }
            @for detail in customer.customer.details() { p { (detail) } }
            p.soft { code { (customer.customer.customer_id) } }
        }
        h2 { (texts.text("customer-envelopes")) }
        @if shown.is_empty() { p { (texts.text("customer-no-envelopes")) } }
        ul.rows { @for one in shown { li { (envelope_row(&visitor, one)) } } }
        @if let Some(last) = older {
            p {
                a href={ (address(&customer.customer.customer_id)) "?after=" (last.id) } {
                    (texts.text("console-older"))
                }
            }
        }
        (persons::card(&visitor, customer.customer.customer_id.as_str()))
        p { a href={ (PATH) "/customers" } { (texts.text("console-customers")) } }
    };

    Ok(visitor.live_page(
        Place::Customers,
        &LiveList::Envelopes,
        &customer.customer.name,
        body,
    ))
}

/// Renders an envelope with its files.
fn envelope_row(visitor: &Visitor, one: &FoundEnvelope) -> Markup {
    let texts = visitor.texts;
    // These have both files; of the others, the page of the envelope lists the files.
    let is_vaulted = matches!(
        one.status,
        EnvelopeStatus::Vaulted | EnvelopeStatus::VaultedOut
    );
    let files = [
        ("copy", "console-file-copy"),
        ("completion.pdf", "console-file-completion"),
    ];
    html! {
        a href={ (PATH) "/envelopes/" (one.id) } { (one.name) }
        p.soft {
            span.tag { (status(texts, one.status)) } " "
            @if let Some(external) = &one.external_id { (external) " · " }
            (visitor.moment(one.created_at))
        }
        @if is_vaulted {
            p {
                @for (at, (file, name)) in files.into_iter().enumerate() {
                    @if at > 0 { " · " }
                    a href={ (PATH) "/envelopes/" (one.id) "/files/" (file) } download { (texts.text(name)) }
                }
            }
        }
    }
}
