//! Pages of a counterexample, with the areas that both placement components chose.

use std::collections::BTreeSet;

use holdfast_domain::component_change::{DrawnArea, DrawnPage, DrawnText};
use serde_json::{Map, Value, json};

use super::program::RulesProgram;

/// Function that places fields.
pub(super) const FUNCTION: &str = "place";
/// Pages of an example, lines of a page, and letters of a line.
const MAX_PAGES: usize = 2;
const MAX_LINES: usize = 200;
const MAX_LETTERS: usize = 100;

/// Returns the first pages on which one of the two places a field.
pub(super) fn pages(rules: [&RulesProgram; 2], given: &Map<String, Value>) -> Vec<DrawnPage> {
    // A component without an answer draws nothing, so the page still shows the other one.
    let placed = rules.map(|rules| rules.call(FUNCTION, given).unwrap_or_default());
    let [before, after] = placed.each_ref().map(|placed| {
        let fields = placed["ok"].as_array().into_iter().flatten();
        let areas = fields.filter_map(|field| field["areas"].as_array());
        areas.flatten().collect::<Vec<&Value>>()
    });
    let numbers: BTreeSet<u64> = before
        .iter()
        .chain(&after)
        .filter_map(|area| area["page"].as_u64())
        .collect();

    let pdf = given.get("pdf").cloned().unwrap_or_default();
    let asked = Map::from_iter([("pdf".to_owned(), pdf.clone())]);
    // Both components measure in fractions of a page, so one of them is enough to describe it.
    let facts = rules[0].call("inspect", &asked).unwrap_or_default();
    let numbers = numbers.into_iter().take(MAX_PAGES);
    let drawn = numbers.filter_map(|number| {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        let page = &facts["ok"]["pages"][index];
        let size = [page["width"].as_f64()?, page["height"].as_f64()?];
        let of_page = |areas: &[&Value]| {
            let areas = areas.iter().filter(|area| area["page"] == number);
            areas.map(|area| rectangle(area, size)).collect()
        };

        Some(DrawnPage {
            number: u32::try_from(number).ok()?,
            width: hundredths(size[0]).try_into().ok()?,
            height: hundredths(size[1]).try_into().ok()?,
            text: text(rules[0], &pdf, number, size),
            before: of_page(&before),
            after: of_page(&after),
        })
    });

    drawn.collect()
}

fn text(rules: &RulesProgram, pdf: &Value, page: u64, size: [f64; 2]) -> Vec<DrawnText> {
    let asked = json!({ "pdf": pdf, "page": page });
    let asked = asked.as_object().cloned().unwrap_or_default();
    let lines = rules.call("text", &asked).unwrap_or_default();
    let lines = lines["ok"].as_array().into_iter().flatten().take(MAX_LINES);
    let drawn = lines.map(|line| DrawnText {
        text: line["text"]
            .as_str()
            .unwrap_or_default()
            .chars()
            .take(MAX_LETTERS)
            .collect(),
        area: rectangle(&line["area"], size),
    });

    drawn.collect()
}

/// Converts fractions of a page.
fn rectangle(area: &Value, [width, height]: [f64; 2]) -> DrawnArea {
    let part =
        |name: &str, length: f64| hundredths(area[name].as_f64().unwrap_or_default() * length);
    DrawnArea {
        x: part("x", width),
        y: part("y", height),
        w: part("w", width),
        h: part("h", height),
    }
}

/// Converts points.
#[expect(clippy::cast_possible_truncation, reason = "saturates")]
fn hundredths(points: f64) -> i32 {
    (points * 100.0).round() as i32
}
