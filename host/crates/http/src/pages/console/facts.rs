//! The card with the facts of a contract on its page: values, places and sources that differ.

use maud::{Markup, html};

use super::signed_in::Visitor;
use holdfast_adapters::texts::Texts;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::facts::{Fact, FactOrigin, FactSheet, FactSource, FactStatus};
use holdfast_platform::ServiceError;
use holdfast_service::{App, facts};

/// Returns the stored facts of an envelope. A page reads no document, which may be at a provider, and writes nothing.
pub async fn of(app: &App, envelope: &Envelope) -> Result<Option<FactSheet>, ServiceError> {
    facts::stored(app, &envelope.org, &envelope.id).await
}

/// Renders the card.
pub fn card(visitor: &Visitor, sheet: Option<&FactSheet>) -> Markup {
    let texts = visitor.texts;
    html! {
        @if let Some(sheet) = sheet {
            section.card {
                h2 { (texts.text("envelopes-facts")) }
                (table(texts, &sheet.facts))
                p.soft { code { (sheet.fact_map.fact_map_id) } " · " (sheet.fact_map.version) }
            }
        }
    }
}

/// Renders facts with their values and places.
pub fn table(texts: Texts, facts: &[Fact]) -> Markup {
    let columns = [
        "envelopes-fact",
        "envelopes-fact-value",
        "envelopes-fact-place",
    ];
    html! {
        div.scroll tabindex="0" role="region" aria-label=(texts.text("envelopes-facts")) {
            table {
                thead { tr { @for column in columns { th scope="col" { (texts.text(column)) } } } }
                tbody {
                    @for fact in facts {
                        tr {
                            td { code { (fact.name) } }
                            td { (value(texts, fact)) }
                            td { @for source in &fact.sources { p.soft { (stands(texts, fact, source)) } } }
                        }
                    }
                }
            }
        }
    }
}

/// Renders the value, or why there is none.
fn value(texts: Texts, fact: &Fact) -> Markup {
    let status = match fact.status {
        FactStatus::Known => None,
        FactStatus::Conflicting => Some("envelopes-fact-conflicting"),
        FactStatus::Missing => Some("envelopes-fact-missing"),
        FactStatus::Unreadable => Some("envelopes-fact-unreadable"),
    };
    html! {
        @if let Some(value) = &fact.value {
            span dir="auto" { (value) }
            @if let Some(currency) = &fact.currency { " " (currency) }
        }
        @if let Some(status) = status { " " span.tag.wrong { (texts.text(status)) } }
    }
}

/// Renders where a source stands; one that differs also with its words.
fn stands(texts: Texts, fact: &Fact, source: &FactSource) -> Markup {
    let name = source.field.as_deref().unwrap_or_default();
    let role = source.role.as_deref().unwrap_or_default();
    let origin = match source.origin {
        FactOrigin::Signed => {
            texts.with("envelopes-fact-signed", [("field", name), ("role", role)])
        }
        FactOrigin::Printed => texts.text("envelopes-fact-printed"),
        FactOrigin::Declared => texts.with("envelopes-fact-declared", [("field", name)]),
    };
    html! {
        (origin)
        @if let Some(place) = &source.place {
            " · " (texts.with("envelopes-fact-page", [("page", place.page)]))
        }
        @if source.value != fact.value { ": " span dir="auto" { (source.words) } }
    }
}
