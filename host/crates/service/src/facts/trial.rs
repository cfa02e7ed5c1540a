//! Trying a fact map on stored documents before it is used.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    HeldDocument, held, maps, read_signed, read_unsigned, signed_document, unsigned_document,
};
use holdfast_base::fair_queue::WorkOwner;
use holdfast_components::drawing;
use holdfast_components::rules::placement::{Area, TextLine};
use holdfast_domain::component::ComponentIdentity;
use holdfast_domain::component_change::{DrawnArea, DrawnPage, DrawnText};
use holdfast_domain::envelope::Envelope;
use holdfast_domain::fact_map::{FactMap, FactMapDocument, FactRecord};
use holdfast_domain::facts::{Fact, FactPlace};
use holdfast_domain::id::EnvelopeId;
use holdfast_platform::{Caller, Core, ServiceError, lookup};

/// Most envelopes of a try.
const ENVELOPES: usize = 10;
/// Most pages that are drawn of an envelope, and lines of a page.
const PAGES: usize = 10;
const LINES: usize = 400;

/// Body of `POST /fact-maps/{id}/try`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "envelope_ids": ["env_01jdk7m3e8f4x9s2w5v6b0c1dc"] }]))]
pub struct TryFactMap {
    /// Envelopes in any status. The map need not apply to them.
    #[schemars(length(min = 1, max = ENVELOPES))]
    pub envelope_ids: Vec<String>,
}

/// What a map reads from one envelope. Nothing of it is stored.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc",
    "component": {
        "name": "holdfast-placement", "version": "0.1.0",
        "sha256": "4be1c0d1884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    },
    "facts": [{
        "name": "amount_financed", "kind": "money", "currency": "USD", "status": "known",
        "value": "21500.00", "origin": "printed",
        "sources": [{
            "origin": "printed", "value": "21500.00", "words": "$ 21,500.00",
            "place": { "page": 1, "x": 0.58, "y": 0.23, "w": 0.11, "h": 0.02 },
        }],
    }],
    "drawings": [{ "page": 1, "svg": "<svg viewBox=\"0 0 61200 79200\">…</svg>" }],
}]))]
pub struct TriedEnvelope {
    /// Id of the envelope.
    pub envelope_id: EnvelopeId,
    /// Component that read the document; null for an envelope without one.
    pub component: Option<ComponentIdentity>,
    /// Facts in the order of the map.
    pub facts: Vec<Fact>,
    /// Pages that were read from.
    pub drawings: Vec<FactDrawing>,
}

/// A page, with the places that were read.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FactDrawing {
    /// Page, from 1.
    pub page: u32,
    /// The page as SVG: words that are a value in solid blue, words that are none in dashed red.
    pub svg: String,
}

/// Reads the facts of envelopes with a map.
pub async fn run(
    core: &Core,
    caller: &Caller,
    id: &str,
    request: TryFactMap,
) -> Result<Vec<TriedEnvelope>, ServiceError> {
    let map = maps::read(core, caller, id).await?;
    let mut tried = Vec::new();
    for id in &request.envelope_ids {
        tried.push(attempt(core, caller, &map, id).await?);
    }

    Ok(tried)
}

/// Reads the facts of an envelope with a content that a map does not have yet.
///
/// # Errors
///
/// As for a change of the map.
pub async fn changed(
    core: &Core,
    caller: &Caller,
    id: &str,
    document: FactMapDocument,
    envelope: &str,
) -> Result<TriedEnvelope, ServiceError> {
    let present = maps::read(core, caller, id).await?;
    maps::check(core, caller, &document).await?;
    let map = FactMap {
        document,
        ..present
    };

    attempt(core, caller, &map, envelope).await
}

async fn attempt(
    core: &Core,
    caller: &Caller,
    map: &FactMap,
    envelope: &str,
) -> Result<TriedEnvelope, ServiceError> {
    let envelope = lookup::envelope(core, caller, envelope).await?;
    let record = if envelope.status.is_signed() {
        read_signed(core, &envelope, map).await?
    } else {
        read_unsigned(core, &envelope, map).await?
    };
    shown(core, envelope, record).await
}

async fn shown(
    core: &Core,
    envelope: Envelope,
    record: Option<FactRecord>,
) -> Result<TriedEnvelope, ServiceError> {
    let Some(record) = record else {
        return Ok(TriedEnvelope {
            envelope_id: envelope.id,
            component: None,
            facts: Vec::new(),
            drawings: Vec::new(),
        });
    };

    let facts = record.sheet.facts;
    let drawings = drawings(core, &envelope, &facts).await?;
    Ok(TriedEnvelope {
        envelope_id: envelope.id,
        component: Some(record.sheet.component),
        facts,
        drawings,
    })
}

/// Draws the pages on which something was read.
async fn drawings(
    core: &Core,
    envelope: &Envelope,
    facts: &[Fact],
) -> Result<Vec<FactDrawing>, ServiceError> {
    let sources = || facts.iter().flat_map(|fact| &fact.sources);
    let places = sources().filter_map(|source| source.place.as_ref());
    let numbers: BTreeSet<u32> = places.map(|place| place.page).collect();
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    let Some((pdf, _room)) = document(core, envelope).await? else {
        return Ok(Vec::new());
    };

    let owner = WorkOwner::new(&envelope.org, envelope.id.as_str());
    let reader = core.placement(Some(&envelope.org)).for_owner(owner);
    // A document that cannot be read has facts of its fields only, and no pages to draw.
    let Ok(inspected) = reader.inspect(pdf.clone()).await? else {
        return Ok(Vec::new());
    };

    let mut drawings = Vec::new();
    for number in numbers.into_iter().take(PAGES) {
        let index = usize::try_from(number).unwrap_or_default().wrapping_sub(1);
        let Some(page) = inspected.pages.get(index) else {
            continue;
        };
        let lines = reader.text(pdf.clone(), number).await?.unwrap_or_default();
        let size = [page.width, page.height];
        let of_page = |is_value: bool| -> Vec<DrawnArea> {
            let here = sources().filter(|source| source.value.is_some() == is_value);
            let places = here.filter_map(|source| source.place.as_ref());
            let places = places.filter(|place| place.page == number);
            places.map(|place| of_place(place, size)).collect()
        };

        let drawn = DrawnPage {
            number,
            width: hundredths(page.width).unsigned_abs(),
            height: hundredths(page.height).unsigned_abs(),
            text: lines
                .into_iter()
                .take(LINES)
                .map(|line| text(line, size))
                .collect(),
            before: of_page(true),
            after: of_page(false),
        };
        let label = format!("Page {number}");
        drawings.push(FactDrawing {
            page: number,
            svg: drawing::svg(&drawn, &label).into_string(),
        });
    }

    Ok(drawings)
}

async fn document(core: &Core, envelope: &Envelope) -> Result<Option<HeldDocument>, ServiceError> {
    if envelope.status.is_signed() {
        return signed_document(core, envelope).await;
    }
    let Some(file) = unsigned_document(core, envelope).await? else {
        return Ok(None);
    };
    Ok(Some(held(core, envelope, &file).await?))
}

fn text(line: TextLine, size: [f64; 2]) -> DrawnText {
    DrawnText {
        area: of_area(&line.area, size),
        text: line.text,
    }
}

fn of_place(place: &FactPlace, [width, height]: [f64; 2]) -> DrawnArea {
    DrawnArea {
        x: hundredths(place.x * width),
        y: hundredths(place.y * height),
        w: hundredths(place.w * width),
        h: hundredths(place.h * height),
    }
}

fn of_area(area: &Area, [width, height]: [f64; 2]) -> DrawnArea {
    DrawnArea {
        x: hundredths(area.x * width),
        y: hundredths(area.y * height),
        w: hundredths(area.w * width),
        h: hundredths(area.h * height),
    }
}

/// Converts points.
#[expect(clippy::cast_possible_truncation, reason = "saturates")]
fn hundredths(points: f64) -> i32 {
    (points * 100.0).round() as i32
}
