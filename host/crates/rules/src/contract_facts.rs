//! Facts of contracts, as a component of slot `rules.placement` reads them.

use bytes::Bytes;
use wasmtime::Store;

use super::bindings::placement_facts::PlacementFactsPre;
use super::bindings::placement_facts::exports::holdfast::placement::facts;
use super::engine::LimitedEngine;
use super::rules::PlacementPre;
use super::rules::placement::Area;
use super::slot::ActiveComponent;
use holdfast_domain::component::ComponentIdentity;
use holdfast_domain::fact_map::{
    FactAnswers, FactDirection, FactMapDocument, FactWords, MappedFact, PrintedPlace,
    PrintedReading,
};
use holdfast_domain::facts::{FactKind, FactPlace};
use holdfast_evidence::FactReader;

/// Most characters of a value, of the words at a place, and of a reason.
const LONGEST: usize = 4_000;

/// Reads the printed facts of a map, and gives words their canonical values. A document that cannot be read leaves its
/// facts unreadable.
pub fn ask(
    store: &mut Store<LimitedEngine<()>>,
    functions: &PlacementFactsPre<LimitedEngine<()>>,
    pdf: &[u8],
    map: &FactMapDocument,
    words: &[FactWords],
) -> wasmtime::Result<FactAnswers> {
    let instance = functions.instantiate(&mut *store)?;
    let reader = instance.holdfast_placement_facts();

    let has_printed = map.facts.iter().any(|fact| !fact.printed.is_empty());
    let printed = if has_printed {
        let requests: Vec<facts::FactRequest> = map.facts.iter().map(request).collect();
        match reader.call_read(&mut *store, pdf, &requests)? {
            Ok(readings) => readings.into_iter().map(reading).collect(),
            Err(_) => map.unreadable(),
        }
    } else {
        vec![PrintedReading::Missing; map.facts.len()]
    };

    let mut values = Vec::with_capacity(words.len());
    for asked in words {
        let value = match map.facts.get(asked.fact) {
            Some(fact) => {
                let value = reader.call_normalize(&mut *store, &format(fact), &asked.words)?;
                bounded_value(value)
            }
            None => Err("the fact map has no such fact".into()),
        };
        values.push(value);
    }

    Ok(FactAnswers { printed, values })
}

fn request(fact: &MappedFact) -> facts::FactRequest {
    let source = |place: &PrintedPlace| facts::PrintedSource {
        anchor: place.anchor.clone(),
        occurrence: place.occurrence,
        page: place.page,
        direction: match place.direction {
            FactDirection::RightOf => facts::Direction::RightOf,
            FactDirection::Below => facts::Direction::Below,
            FactDirection::NumberOfLine => {
                facts::Direction::NumberOfLine(place.number.unwrap_or(1))
            }
        },
    };
    facts::FactRequest {
        format: format(fact),
        sources: fact.printed.iter().map(source).collect(),
    }
}

fn format(fact: &MappedFact) -> facts::ValueFormat {
    facts::ValueFormat {
        kind: match fact.kind {
            FactKind::Text => facts::ValueKind::Text,
            FactKind::Integer => facts::ValueKind::Integer,
            FactKind::Money => facts::ValueKind::Money,
            FactKind::Percentage => facts::ValueKind::Percentage,
            FactKind::Date => facts::ValueKind::Date,
            FactKind::Vin => facts::ValueKind::Vin,
            FactKind::Boolean => facts::ValueKind::Boolean,
        },
        currency: fact.currency.clone(),
        date_order: fact.date_order.clone(),
        decimal_separator: fact.decimal_separator.clone(),
    }
}

fn reading(reading: facts::Reading) -> PrintedReading {
    match reading {
        facts::Reading::Words(printed) => PrintedReading::Words {
            words: bounded(printed.words),
            place: place(&printed.area),
            value: bounded_value(printed.value),
        },
        facts::Reading::Missing => PrintedReading::Missing,
        facts::Reading::Unreadable => PrintedReading::Unreadable,
    }
}

/// Cuts a text of a component. Sheets are stored, and a component of an organization chooses its words.
fn bounded(text: String) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => text[..end].to_owned(),
        None => text,
    }
}

/// Refuses a long value, because a part of it would be another value.
fn bounded_value(value: Result<String, String>) -> Result<String, String> {
    let value = value.map_err(bounded)?;
    if value.chars().nth(LONGEST).is_some() {
        return Err(format!("the value has more than {LONGEST} characters"));
    }
    Ok(value)
}

fn place(area: &Area) -> FactPlace {
    FactPlace::new(area.page, [area.x, area.y, area.w, area.h])
}

/// A component of slot `rules.placement` on its own, to repeat a reading.
pub struct LoneFactReader(pub ActiveComponent<PlacementPre>);

impl FactReader for LoneFactReader {
    fn identity(&self) -> ComponentIdentity {
        self.0.identity.clone()
    }

    fn read(
        &self,
        pdf: Bytes,
        map: &FactMapDocument,
        words: &[FactWords],
    ) -> Result<FactAnswers, String> {
        let answers = self.0.call(|store, pre| {
            let functions = pre.facts.as_ref().ok_or_else(|| {
                wasmtime::Error::msg("it lacks an interface that was added after 1.0")
            })?;
            ask(store, functions, &pdf, map, words)
        });
        answers.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_are_cut_and_long_values_refused() {
        let long = "é".repeat(LONGEST + 1);
        assert_eq!(bounded(long.clone()), "é".repeat(LONGEST));
        let refused = Err("the value has more than 4000 characters".to_owned());
        assert_eq!(bounded_value(Ok(long.clone())), refused);
        assert_eq!(bounded_value(Err(long)), Err("é".repeat(LONGEST)));
        assert_eq!(bounded_value(Ok("7.9".into())), Ok("7.9".into()));
    }
}
