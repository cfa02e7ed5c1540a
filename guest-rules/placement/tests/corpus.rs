//! Tests against a corpus with known results: `anchors.json` and `tags.json` next to the PDFs.
//!
//! The files are third-party and not part of the repository. `HOLDFAST_CORPUS` names the folder;
//! the default is `shared/corpus` next to the repository. If there is none, the tests report the
//! number of skipped cases.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::path::PathBuf;

use holdfast_placement::{
    Anchor, Area, FieldRequest, PlaceError, Position, ReadError, inspect, occurrences, place, tags,
    text,
};
use serde_json::Value;

/// Numbers of cases in the corpus, for the message when it is missing.
const ANCHORS: usize = 74;
const TAGS: usize = 8;
const FILES: usize = 21;

/// Maximum distance of every edge, in fractions of the page.
const TOLERANCE: f64 = 0.015;

fn corpus(skipped: usize, what: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("HOLDFAST_CORPUS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus"),
        PathBuf::from,
    );
    if folder.join("anchors.json").is_file() {
        Some(folder)
    } else {
        eprintln!(
            "skipped {skipped} {what}: no corpus in {} (set HOLDFAST_CORPUS)",
            folder.display()
        );
        None
    }
}

fn json(folder: &std::path::Path, name: &str) -> Vec<Value> {
    serde_json::from_slice(&std::fs::read(folder.join(name)).unwrap()).unwrap()
}

fn edges(value: &Value) -> Option<[f64; 4]> {
    let numbers: Vec<f64> = value.as_array()?.iter().filter_map(Value::as_f64).collect();
    let [x, y, w, h] = numbers[..] else {
        return None;
    };
    Some([x, y, x + w, y + h])
}

fn worst_edge(area: &Area, expected: [f64; 4]) -> f64 {
    let found = [area.x, area.y, area.x + area.w, area.y + area.h];
    found
        .iter()
        .zip(expected)
        .map(|(found, expected)| (found - expected).abs())
        .fold(0.0, f64::max)
}

fn percentile(sorted: &[f64], share: f64) -> f64 {
    let position = ((sorted.len() - 1) as f64 * share).round() as usize;
    sorted[position]
}

/// Cases in which the corpus and the reader disagree on the first line. The corpus was made from
/// upright word boxes: for text upside down or slanted it takes one word for the line, and for a
/// label above its value it takes two lines for one. The box of the whole match is right in all of
/// them.
const FIRST_LINE_DISPUTED: [&str; 4] = [
    "Nationality: First",
    "Initials of the Charlie Guarantor",
    "The Hotel Borrower",
    "Slanted November watermark",
];

#[test]
fn anchor_positions_match_three_independent_readers() {
    let Some(folder) = corpus(ANCHORS, "anchors") else {
        return;
    };

    let mut errors = Vec::new();
    let mut misses = Vec::new();
    for case in json(&folder, "anchors.json") {
        let file = case["file"].as_str().unwrap();
        let phrase = case["phrase"].as_str().unwrap();
        let occurrence = u32::try_from(case["occurrence"].as_u64().unwrap()).unwrap();
        let pdf = std::fs::read(folder.join(file)).unwrap();
        let request = FieldRequest {
            name: "anchor".into(),
            field_type: "signature".into(),
            role: "Buyer".into(),
            required: true,
            default_value: None,
            position: Position::Anchor(Anchor {
                text: phrase.into(),
                occurrence: Some(occurrence),
                page: None,
                offset_x: 0.0,
                offset_y: 0.0,
                w: 0.001,
                h: 0.001,
            }),
        };

        let field = match place(pdf, vec![request]) {
            Ok(mut fields) => fields.remove(0),
            Err(error) => {
                misses.push(format!("{file} {phrase:?}: {error:?}"));
                continue;
            }
        };
        let matched = field.anchor_match.unwrap();

        let expected = edges(&case["rect"]).unwrap();
        let first_line = edges(&case["first_line"]).unwrap();
        let placed = &field.areas[0];
        let corner = if FIRST_LINE_DISPUTED.contains(&phrase) {
            0.0
        } else {
            (placed.x - first_line[0])
                .abs()
                .max((placed.y - first_line[1]).abs())
        };

        let error = worst_edge(&matched, expected).max(corner);
        if u64::from(matched.page) != case["page"].as_u64().unwrap() || error > TOLERANCE {
            misses.push(format!(
                "{file} {phrase:?}: page {} error {error:.4}, found {matched:?}, expected {expected:.4?}",
                matched.page
            ));
        }

        if std::env::var_os("HOLDFAST_CORPUS_VERBOSE").is_some() {
            eprintln!("{error:.5} {file} {phrase:?}");
        }

        errors.push(error);
    }

    errors.sort_by(f64::total_cmp);
    let median = percentile(&errors, 0.5);
    eprintln!(
        "{} anchors, {} missed, error median {median:.5}, p95 {:.5}, worst {:.5}",
        errors.len(),
        misses.len(),
        percentile(&errors, 0.95),
        percentile(&errors, 1.0),
    );
    assert!(misses.is_empty(), "{}", misses.join("\n"));
    assert!(median < 0.001, "median error {median}");
}

#[test]
fn every_tag_is_found_completely() {
    let Some(folder) = corpus(TAGS, "tags") else {
        return;
    };

    let cases = json(&folder, "tags.json");
    let pdf = std::fs::read(folder.join("synth-embedded-tags.pdf")).unwrap();
    let fields = tags(pdf).unwrap();
    let found: usize = fields.iter().map(|field| field.areas.len()).sum();
    assert_eq!(found, cases.len(), "{fields:#?}");

    for case in &cases {
        let name = case["name"].as_str().unwrap();
        let field = fields
            .iter()
            .find(|field| field.name == name)
            .unwrap_or_else(|| panic!("no field {name}"));
        let attributes = case["attributes"].as_object().unwrap();
        assert_eq!(field.attributes.len(), attributes.len(), "{name}");

        for (key, value) in &field.attributes {
            assert_eq!(attributes[key].as_str(), Some(value.as_str()), "{name}");
        }

        let Some(rect) = edges(&case["rect"]) else {
            continue;
        };

        let page = case["page"].as_u64().unwrap();
        let nearest = field
            .areas
            .iter()
            .filter(|area| u64::from(area.page) == page)
            .map(|area| (area.x - rect[0]).abs().max((area.y - rect[1]).abs()))
            .fold(f64::INFINITY, f64::min);
        assert!(nearest < TOLERANCE, "{name} on page {page}: {nearest}");
    }

    let terms = fields.iter().find(|field| field.name == "Terms").unwrap();
    assert_eq!(terms.areas.len(), 2, "identical tags are one field");
}

#[test]
fn every_file_returns_a_result_or_a_typed_error() {
    let Some(folder) = corpus(FILES, "files") else {
        return;
    };

    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "pdf"))
        .collect();
    files.sort();

    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let pdf = std::fs::read(&path).unwrap();
        let facts = inspect(pdf.clone());
        let summary = match &facts {
            Ok(facts) => format!(
                "{} pages, text on {}, signatures {}, level {:?}, rewrite {}",
                facts.pages.len(),
                facts.pages.iter().filter(|page| page.has_text).count(),
                facts.signatures,
                facts.certification_level,
                facts.needs_rewrite
            ),
            Err(error) => format!("{error:?}"),
        };

        eprintln!("{name}: {summary}");
        let lines = text(pdf.clone(), 1);
        let places = occurrences(pdf.clone(), "the", None);

        let found = tags(pdf);
        match name.as_str() {
            "libreoffice-writer-password.pdf" => {
                assert_eq!(facts, Err(ReadError::Encrypted));
                assert_eq!(lines, Err(ReadError::Encrypted));
                assert_eq!(places, Err(ReadError::Encrypted));
                assert_eq!(found, Err(PlaceError::Unreadable(ReadError::Encrypted)));
            }
            "hostile-flate-bomb-512m.pdf" => {
                assert!(
                    matches!(&facts, Err(ReadError::OverLimit(limit)) if limit.contains("32 MiB")),
                    "{facts:?}"
                );
            }
            "hostile-form-self.pdf" => {
                let lines = lines.unwrap();
                assert!(
                    lines.len() >= 2,
                    "text before and after survives: {lines:?}"
                );
            }
            "synth-scan-image-only.pdf" => {
                assert!(facts.unwrap().pages.iter().all(|page| !page.has_text));
            }
            "trunc-libreoffice-form-tail.pdf" => assert!(facts.unwrap().needs_rewrite),
            "minimal-document.pdf" | "crazyones-pdfa.pdf" | "senate-expenditures.pdf" => {
                assert!(!facts.unwrap().needs_rewrite, "{name}");
            }
            _ => {}
        }
    }
}
