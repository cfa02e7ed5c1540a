//! Facts from the printed text of contracts.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "../../reader/tests/support/mod.rs"]
mod support;

use holdfast_placement::{
    Direction, FactRequest, PrintedSource, PrintedWords, ReadError, Reading, ValueFormat,
    ValueKind, read,
};
use support::PdfBuilder;

/// The box of Regulation Z, with currency signs far from their amounts, a payment schedule, and two columns.
const CONTRACT: &str = "BT /F1 10 Tf \
    1 0 0 1 40 760 Tm (Contract No.: RIC-2041) Tj \
    1 0 0 1 300 760 Tm (Date of contract: November 30, 2026.) Tj \
    1 0 0 1 40 740 Tm (VIN:) Tj 1 0 0 1 80 740 Tm (1M8GD M9AXK P042788) Tj \
    1 0 0 1 40 720 Tm (Buyer) Tj 1 0 0 1 120 720 Tm (Jordan) Tj 1 0 0 1 155 720 Tm (Lee) Tj \
    1 0 0 1 300 720 Tm (Seller) Tj 1 0 0 1 360 720 Tm (Oak Motors LLC) Tj \
    1 0 0 1 40 680 Tm (ANNUAL) Tj 0 -12 Td (PERCENTAGE) Tj 0 -12 Td (RATE) Tj \
    1 0 0 1 40 640 Tm (The cost of your) Tj 0 -12 Td (credit as a yearly rate) Tj \
    1 0 0 1 60 600 Tm (7.90) Tj 1 0 0 1 95 600 Tm (%) Tj \
    1 0 0 1 200 680 Tm (FINANCE) Tj 0 -12 Td (CHARGE) Tj \
    1 0 0 1 195 600 Tm ($) Tj 1 0 0 1 240 600 Tm (3,456.00) Tj \
    1 0 0 1 360 680 Tm (Amount Financed) Tj \
    1 0 0 1 360 600 Tm ($) Tj 1 0 0 1 400 600 Tm (21,500.00) Tj \
    1 0 0 1 40 560 Tm (Your payments: 60 of $415.93 each, monthly from 12/30/2026) Tj \
    1 0 0 1 40 540 Tm (Deposit) Tj 1 0 0 1 120 540 Tm (n/a) Tj \
    1 0 0 1 40 520 Tm (Trade-in) Tj ET";

fn letter(rotation: &str, content: &str) -> Vec<u8> {
    let entries = format!("/MediaBox [0 0 612 792] {rotation}");
    PdfBuilder::new().page_with(&entries, "", content).build()
}

fn request(kind: ValueKind, anchor: &str, direction: Direction) -> FactRequest {
    FactRequest {
        format: ValueFormat {
            kind,
            currency: (kind == ValueKind::Money).then(|| "USD".to_owned()),
            date_order: None,
            decimal_separator: None,
        },
        sources: vec![PrintedSource {
            anchor: anchor.into(),
            occurrence: None,
            page: None,
            direction,
        }],
    }
}

fn words(reading: &Reading) -> &PrintedWords {
    match reading {
        Reading::Words(words) => words,
        other => panic!("expected words, got {other:?}"),
    }
}

fn requests() -> Vec<(FactRequest, &'static str)> {
    use Direction::{Below, NumberOfLine, RightOf};
    use ValueKind::{Date, Integer, Money, Percentage, Text, Vin};

    vec![
        (request(Text, "Contract No.", RightOf), "RIC-2041"),
        (request(Date, "Date of contract", RightOf), "2026-11-30"),
        (request(Vin, "vin", RightOf), "1M8GDM9AXKP042788"),
        (request(Text, "Buyer", RightOf), "Jordan Lee"),
        (request(Text, "Seller", RightOf), "Oak Motors LLC"),
        (request(Percentage, "Annual percentage rate", Below), "7.9"),
        (request(Money, "Finance charge", Below), "3456.00"),
        (request(Money, "Amount financed", Below), "21500.00"),
        (request(Integer, "Your payments", NumberOfLine(1)), "60"),
        (request(Money, "Your payments", NumberOfLine(2)), "415.93"),
        (
            request(Date, "Your payments", NumberOfLine(1)),
            "2026-12-30",
        ),
    ]
}

#[track_caller]
fn assert_all_read(pdf: Vec<u8>) {
    let (asked, expected): (Vec<FactRequest>, Vec<&str>) = requests().into_iter().unzip();
    let readings = read(pdf, &asked).unwrap();
    for ((reading, asked), expected) in readings.iter().zip(&asked).zip(expected) {
        let anchor = &asked.sources[0].anchor;
        assert_eq!(words(reading).value.as_deref(), Ok(expected), "{anchor}");
    }
}

#[test]
fn facts_are_read_beside_below_and_in_the_line_of_an_anchor() {
    assert_all_read(letter("", CONTRACT));
}

#[test]
fn facts_of_a_page_that_is_displayed_turned_are_the_same() {
    // Displayed upright: the content is turned the other way.
    let turned = format!("0 1 -1 0 792 0 cm {CONTRACT}");
    let entries = "/MediaBox [0 0 792 612] /Rotate 90";
    let pdf = PdfBuilder::new().page_with(entries, "", &turned).build();
    assert_all_read(pdf);
}

#[test]
fn a_reading_has_its_words_and_its_place() {
    let asked = request(ValueKind::Money, "Amount financed", Direction::Below);
    let readings = read(letter("", CONTRACT), &[asked]).unwrap();
    let found = words(&readings[0]);
    assert_eq!(found.words, "$ 21,500.00");

    let area = &found.area;
    assert_eq!(area.page, 1);
    assert!((area.x - 360.0 / 612.0).abs() < 0.01, "{area:?}");
    assert!(
        (area.y + area.h - (792.0 - 600.0) / 792.0).abs() < 0.01,
        "{area:?}"
    );
}

#[test]
fn words_that_are_no_value_come_with_the_reason() {
    let asked = request(ValueKind::Money, "Deposit", Direction::RightOf);
    let readings = read(letter("", CONTRACT), &[asked]).unwrap();
    let found = words(&readings[0]);
    assert_eq!(found.words, "n/a");
    assert_eq!(found.value.as_ref().unwrap_err(), "\"n/a\" is no number");
}

#[test]
fn an_anchor_is_not_found_within_a_longer_word() {
    let content = "BT /F1 10 Tf 1 0 0 1 40 760 Tm (Dated April 12, 2026) Tj \
        1 0 0 1 40 740 Tm (A P R) Tj 1 0 0 1 120 740 Tm (7.90 %) Tj ET";
    let asked = request(ValueKind::Percentage, "APR", Direction::RightOf);
    let readings = read(letter("", content), &[asked]).unwrap();
    assert_eq!(words(&readings[0]).value.as_deref(), Ok("7.9"));

    let only_within = "BT /F1 10 Tf 1 0 0 1 40 760 Tm (Dated April 12, 2026) Tj ET";
    let asked = request(ValueKind::Percentage, "APR", Direction::RightOf);
    let readings = read(letter("", only_within), &[asked]).unwrap();
    assert!(matches!(readings[0], Reading::Missing), "{readings:?}");
}

#[test]
fn an_anchor_that_is_absent_or_has_nothing_beside_it_is_missing() {
    let asked = [
        request(ValueKind::Money, "Trade-in", Direction::RightOf),
        request(ValueKind::Money, "Balloon payment", Direction::RightOf),
        request(
            ValueKind::Integer,
            "Your payments",
            Direction::NumberOfLine(3),
        ),
        request(
            ValueKind::Integer,
            "Your payments",
            Direction::NumberOfLine(0),
        ),
        request(ValueKind::Integer, "payments:", Direction::NumberOfLine(1)),
    ];
    for reading in read(letter("", CONTRACT), &asked).unwrap() {
        assert!(matches!(reading, Reading::Missing), "{reading:?}");
    }
}

#[test]
fn the_first_source_with_a_value_is_read() {
    let mut asked = request(ValueKind::Money, "Deposit", Direction::RightOf);
    for anchor in ["Unknown", "Amount financed", "Finance charge"] {
        let other = request(ValueKind::Money, anchor, Direction::Below);
        asked.sources.extend(other.sources);
    }
    let readings = read(letter("", CONTRACT), &[asked]).unwrap();
    assert_eq!(words(&readings[0]).value.as_deref(), Ok("21500.00"));
}

#[test]
fn an_occurrence_and_a_page_choose_among_several_anchors() {
    let line = |amount: &str| format!("BT /F1 10 Tf 20 80 Td (Total) Tj 60 0 Td ({amount}) Tj ET");
    let twice = format!(
        "{} {}",
        line("$1.00"),
        line("$2.00").replace("20 80", "20 60")
    );
    let pdf = PdfBuilder::new().page(&twice).page(&line("$3.00")).build();
    let mut second = request(ValueKind::Money, "Total", Direction::RightOf);
    second.sources[0].occurrence = Some(2);
    let mut on_page = request(ValueKind::Money, "Total", Direction::RightOf);
    on_page.sources[0].page = Some(2);

    let readings = read(pdf, &[second, on_page]).unwrap();
    assert_eq!(words(&readings[0]).value.as_deref(), Ok("2.00"));
    assert_eq!(words(&readings[1]).value.as_deref(), Ok("3.00"));
}

#[test]
fn an_anchor_that_occurs_thousands_of_times_is_counted_to_the_wanted_place() {
    let rows = (0..4_000).map(|row| {
        let (x, y) = (20 + row % 40 * 14, 20 + row / 40 * 7);
        format!("1 0 0 1 {x} {y} Tm (Tot) Tj ")
    });
    let content = format!(
        "BT /F1 4 Tf {} 1 0 0 1 20 770 Tm (Tot) Tj 60 0 Td ($3.00) Tj ET",
        rows.collect::<String>()
    );
    let mut asked = request(ValueKind::Money, "Tot", Direction::RightOf);
    asked.sources[0].occurrence = Some(4_001);
    let requests = vec![asked; 100];
    for reading in read(letter("", &content), &requests).unwrap() {
        assert_eq!(words(&reading).value.as_deref(), Ok("3.00"));
    }
}

#[test]
fn a_scan_without_text_is_unreadable_and_an_empty_page_is_not() {
    let scan = include_bytes!("../../../tests/fixtures/synth-scan.pdf").to_vec();
    let asked = request(ValueKind::Money, "Amount financed", Direction::Below);
    let readings = read(scan, std::slice::from_ref(&asked)).unwrap();
    assert!(matches!(readings[0], Reading::Unreadable), "{readings:?}");

    let empty = PdfBuilder::new().page("").build();
    let readings = read(empty, &[asked]).unwrap();
    assert!(matches!(readings[0], Reading::Missing), "{readings:?}");
}

#[test]
fn a_file_that_is_no_pdf_gives_the_error_of_other_reads() {
    let found = read(b"hello".to_vec(), &[]);
    assert!(matches!(found, Err(ReadError::Unreadable(_))), "{found:?}");
}
