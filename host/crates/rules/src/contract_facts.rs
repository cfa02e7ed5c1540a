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
            Err(_) => unreadable(map),
        }
    } else {
        vec![PrintedReading::Missing; map.facts.len()]
    };

    let mut values = Vec::with_capacity(words.len());
    for asked in words {
        let value = match map.facts.get(asked.fact) {
            Some(fact) => reader.call_normalize(&mut *store, &format(fact), &asked.words)?,
            None => Err("the fact map has no such fact".into()),
        };
        values.push(value);
    }

    Ok(FactAnswers { printed, values })
}

/// Returns the readings of a document that cannot be read.
pub fn unreadable(map: &FactMapDocument) -> Vec<PrintedReading> {
    let reading = |fact: &MappedFact| {
        if fact.printed.is_empty() {
            PrintedReading::Missing
        } else {
            PrintedReading::Unreadable
        }
    };
    map.facts.iter().map(reading).collect()
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
            words: printed.words,
            place: place(&printed.area),
            value: printed.value,
        },
        facts::Reading::Missing => PrintedReading::Missing,
        facts::Reading::Unreadable => PrintedReading::Unreadable,
    }
}

fn place(area: &Area) -> FactPlace {
    FactPlace {
        page: area.page,
        x: area.x,
        y: area.y,
        w: area.w,
        h: area.h,
    }
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
