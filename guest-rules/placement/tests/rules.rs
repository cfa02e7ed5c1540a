//! One test per rule of the field specification.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "../../reader/tests/support/mod.rs"]
mod support;

use holdfast_placement::{
    Anchor, Area, FieldRequest, Issue, PlaceError, Position, ReadError, ResolvedField, inspect,
    occurrences, place, tags, text, wordings,
};
use support::{PdfBuilder, one_page};

const CONTRACT: &str = "BT /F1 10 Tf 20 80 Td (Buyer Signature:) Tj 0 -20 Td (Dealer signature:) Tj \
     0 -20 Td (Buyer) Tj 0 -12 Td (Signature: again) Tj ET";

fn contract() -> Vec<u8> {
    PdfBuilder::new()
        .page(CONTRACT)
        .page("BT /F1 10 Tf 20 80 Td (Date of sale) Tj ET")
        .build()
}

fn area(page: u32, x: f64, y: f64, w: f64, h: f64) -> Area {
    Area { page, x, y, w, h }
}

fn absolute(areas: Vec<Area>) -> FieldRequest {
    FieldRequest {
        name: "Field".into(),
        field_type: "signature".into(),
        role: "Buyer".into(),
        required: true,
        default_value: None,
        position: Position::Absolute(areas),
    }
}

fn anchor(text: &str) -> Anchor {
    Anchor {
        text: text.into(),
        occurrence: None,
        page: None,
        offset_x: 0.0,
        offset_y: 0.0,
        w: 0.25,
        h: 0.05,
    }
}

fn anchored(anchor: Anchor) -> FieldRequest {
    FieldRequest {
        position: Position::Anchor(anchor),
        ..absolute(Vec::new())
    }
}

fn placed(field: FieldRequest) -> ResolvedField {
    place(contract(), vec![field]).unwrap().remove(0)
}

fn issues(fields: Vec<FieldRequest>) -> Vec<Issue> {
    match place(contract(), fields) {
        Err(PlaceError::Rejected(issues)) => issues,
        other => panic!("expected issues, got {other:?}"),
    }
}

/// Returns path and code of the only issue of a field.
fn issue(field: FieldRequest) -> (String, String) {
    let found = issues(vec![field]);
    let [only] = &found[..] else {
        panic!("expected one issue, got {found:#?}")
    };
    assert!(!only.message.is_empty() && !only.expected.is_empty() && !only.received.is_empty());
    (only.path.join("."), only.code.clone())
}

fn pair(path: &str, code: &str) -> (String, String) {
    (path.into(), code.into())
}

#[test]
fn absolute_areas_are_returned_unchanged() {
    let areas = vec![area(1, 0.1, 0.2, 0.3, 0.4), area(2, 0.0, 0.0, 1.0, 1.0)];
    let field = placed(absolute(areas.clone()));
    assert_eq!(field.areas, areas);
    assert_eq!(field.anchor_match, None);
    assert_eq!((field.required, field.readonly), (true, false));
}

#[test]
fn coordinates_outside_the_page_are_refused() {
    let at = |area: Area| issue(absolute(vec![area]));
    assert_eq!(
        at(area(1, 1.5, 0.0, 0.1, 0.1)),
        pair("placement.areas.0.x", "too_big")
    );
    assert_eq!(
        at(area(1, -0.1, 0.0, 0.1, 0.1)),
        pair("placement.areas.0.x", "too_small")
    );
    assert_eq!(
        at(area(1, 0.1, f64::NAN, 0.1, 0.1)),
        pair("placement.areas.0.y", "invalid_type")
    );
    assert_eq!(
        at(area(1, 0.1, 0.1, 0.0, 0.1)),
        pair("placement.areas.0.w", "too_small")
    );

    assert_eq!(
        at(area(1, 0.1, 0.1, 0.1, f64::INFINITY)),
        pair("placement.areas.0.h", "invalid_type")
    );
    assert_eq!(
        at(area(1, 0.9, 0.1, 0.2, 0.1)),
        pair("placement.areas.0.w", "outside_page")
    );
    assert_eq!(
        at(area(1, 0.1, 0.9, 0.1, 0.2)),
        pair("placement.areas.0.h", "outside_page")
    );
    assert_eq!(
        at(area(3, 0.1, 0.1, 0.1, 0.1)),
        pair("placement.areas.0.page", "page_out_of_range")
    );

    assert_eq!(
        at(area(0, 0.1, 0.1, 0.1, 0.1)),
        pair("placement.areas.0.page", "page_out_of_range")
    );
}

#[test]
fn an_area_that_ends_at_the_page_edge_is_accepted() {
    placed(absolute(vec![area(1, 0.7, 0.9, 0.3, 0.1)]));
    placed(absolute(vec![area(1, 0.1 + 0.2, 0.0, 0.7, 1.0)]));
}

#[test]
fn names_roles_types_and_areas_are_required() {
    let field = || absolute(vec![area(1, 0.1, 0.1, 0.1, 0.1)]);
    let with = |change: fn(&mut FieldRequest)| {
        let mut field = field();
        change(&mut field);
        issue(field)
    };
    assert_eq!(
        with(|field| field.name = " ".into()),
        pair("name", "too_small")
    );
    assert_eq!(with(|field| field.role.clear()), pair("role", "too_small"));
    assert_eq!(
        with(|field| field.field_type = "stamp".into()),
        pair("type", "invalid_enum_value")
    );

    assert_eq!(
        with(|field| field.position = Position::Absolute(Vec::new())),
        pair("placement.areas", "too_small")
    );
}

#[test]
fn anchor_search_ignores_case_and_white_space() {
    let field = placed(anchored(anchor("  buyer\n SIGNATURE:")));
    let matched = field.anchor_match.unwrap();
    assert_eq!((matched.page, matched.x), (1, 0.1));
    let [placed_area] = field.areas[..] else {
        panic!()
    };
    assert_eq!((placed_area.x, placed_area.y), (matched.x, matched.y));
    assert_eq!((placed_area.w, placed_area.h), (0.25, 0.05));
}

#[test]
fn offsets_count_from_the_top_left_of_the_match() {
    let plain = placed(anchored(anchor("dealer"))).areas[0];
    let moved = placed(anchored(Anchor {
        offset_x: 0.125,
        offset_y: -0.25,
        ..anchor("dealer")
    }))
    .areas[0];
    assert!((moved.x - plain.x - 0.125).abs() < 1e-6);
    assert!((moved.y - plain.y + 0.25).abs() < 1e-6);
}

#[test]
fn occurrences_count_in_document_order() {
    let field = |occurrence| {
        placed(anchored(Anchor {
            occurrence: Some(occurrence),
            ..anchor("signature:")
        }))
        .anchor_match
        .unwrap()
        .y
    };
    assert!(field(1) < field(2) && field(2) < field(3));

    let found = issues(vec![anchored(Anchor {
        occurrence: Some(4),
        ..anchor("signature:")
    })]);
    assert_eq!(found[0].code, "occurrence_out_of_range");
    assert_eq!(found[0].path, ["placement", "occurrence"]);
    assert!(
        found[0].message.starts_with("occurrence 4 of 3"),
        "{}",
        found[0].message
    );
    assert_eq!(
        issue(anchored(Anchor {
            occurrence: Some(0),
            ..anchor("signature:")
        })),
        pair("placement.occurrence", "too_small")
    );
}

#[test]
fn an_anchor_across_two_lines_is_placed_at_its_first_line() {
    let field = placed(anchored(Anchor {
        occurrence: Some(2),
        ..anchor("Buyer Signature:")
    }));
    let matched = field.anchor_match.unwrap();
    let placed_area = field.areas[0];
    assert_eq!(placed_area.y, matched.y);
    assert!(matched.h > 0.2, "both lines: {matched:?}");
}

#[test]
fn letter_spaced_text_is_found_by_the_fallback_search() {
    let pdf = one_page("BT /F1 10 Tf 5 Tc 10 80 Td (WITNESS) Tj ET");
    let field = place(
        pdf.clone(),
        vec![anchored(Anchor {
            w: 0.1,
            ..anchor("Witness")
        })],
    );
    assert!(field.unwrap()[0].anchor_match.is_some());
    assert_eq!(occurrences(pdf, "witness", None).unwrap().len(), 1);
}

/// Returns a file of `tests/fixtures/hunt`, which has what once went wrong.
fn hunted(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/hunt");
    std::fs::read(format!("{folder}/{name}.pdf")).unwrap()
}

#[test]
fn anchors_are_found_however_their_letters_are_encoded() {
    for (file, text) in [
        ("anchor-nfd", "Firma del c\u{f3}nyuge"),
        ("anchor-nfd", "FIRMA DEL CO\u{301}NYUGE"),
        ("anchor-curly-apostrophe", "Buyer's signature"),
        ("anchor-curly-apostrophe", "Buyer\u{2019}s Signature"),
        (
            "anchor-hebrew-visual",
            "\u{5d7}\u{5ea}\u{5d9}\u{5de}\u{5d4}",
        ),
    ] {
        let found = place(hunted(file), vec![anchored(anchor(text))]);
        let matched = found.unwrap()[0].anchor_match.unwrap();
        assert!((matched.x - 0.118).abs() < 0.002, "{file}: {matched:?}");
        assert!((matched.y - 0.607).abs() < 0.002, "{file}: {matched:?}");
    }
}

#[test]
fn a_wording_is_exact_only_with_the_same_apostrophes_and_dashes() {
    for (file, text, exact) in [
        ("anchor-curly-apostrophe", "buyer\u{2019}s  signature", true),
        ("anchor-curly-apostrophe", "Buyer's signature", false),
        (
            "anchor-hebrew-visual",
            "\u{5d7}\u{5ea}\u{5d9}\u{5de}\u{5d4}",
            true,
        ),
    ] {
        let found = wordings(hunted(file), text, None).unwrap();
        assert_eq!(found.len(), 1, "{text}");
        assert_eq!((found[0].page, found[0].exact), (1, exact), "{found:?}");
    }

    let found = wordings(hunted("anchor-curly-apostrophe"), "buyer's signature", None);
    assert_eq!(found.unwrap()[0].text, "Buyer\u{2019}s signature");
}

#[test]
fn a_letter_without_its_accent_is_another_letter() {
    let found = place(hunted("anchor-nfd"), vec![anchored(anchor("Firma del co"))]);
    assert!(found.is_err(), "{found:?}");
}

#[test]
fn letters_drawn_twice_for_bold_are_read_once() {
    let twice = "BT /F1 10 Tf 20 80 Td (Buyer signature) Tj 0.3 0 Td (Buyer signature) Tj ET";
    let letters =
        "BT /F1 10 Tf 20 80 Td (B) Tj 0.2 0 Td (B) Tj 6.67 0 Td (y) Tj 0.2 0 Td (y) Tj ET";
    for (content, text) in [(twice, "Buyer signature"), (letters, "By")] {
        assert_eq!(
            occurrences(one_page(content), text, None).unwrap().len(),
            1,
            "{content}"
        );
    }
}

#[test]
fn an_unknown_anchor_is_reported_with_similar_texts() {
    let found = issues(vec![anchored(anchor("Byuer Signatrue:"))]);
    assert_eq!(found[0].code, "anchor_not_found");
    assert_eq!(found[0].path, ["placement", "anchor_text"]);
    assert!(
        found[0]
            .message
            .contains("nearest: \"Buyer Signature:\" on page 1"),
        "{}",
        found[0].message
    );

    let found = issues(vec![anchored(Anchor {
        page: Some(1),
        ..anchor("Date of sale")
    })]);
    assert!(
        found[0].message.ends_with("it occurs on page 2"),
        "{}",
        found[0].message
    );
}

#[test]
fn an_anchor_field_must_stay_on_its_page() {
    assert_eq!(
        issue(anchored(Anchor {
            offset_x: 0.9,
            ..anchor("dealer")
        })),
        pair("placement", "outside_page")
    );
    assert_eq!(
        issue(anchored(Anchor {
            offset_x: 1.1,
            ..anchor("dealer")
        })),
        pair("placement.offset_x", "too_big")
    );

    assert_eq!(
        issue(anchored(Anchor {
            h: -0.1,
            ..anchor("dealer")
        })),
        pair("placement.h", "too_small")
    );
    assert_eq!(
        issue(anchored(Anchor {
            page: Some(9),
            ..anchor("dealer")
        })),
        pair("placement.page", "page_out_of_range")
    );

    assert_eq!(
        issue(anchored(anchor(" \u{ad} "))),
        pair("placement.anchor_text", "too_small")
    );
}

#[test]
fn all_problems_are_reported_in_field_order() {
    let mut first = absolute(vec![
        area(9, 2.0, -1.0, 0.5, 0.5),
        area(1, 0.0, 0.0, 2.0, 0.5),
    ]);
    first.name.clear();
    let mut second = anchored(Anchor {
        w: 0.0,
        ..anchor("nowhere to be found")
    });
    second.name = "Other".into();

    second.field_type = "stamp".into();
    let good = absolute(vec![area(1, 0.1, 0.1, 0.1, 0.1)]);
    let found: Vec<_> = issues(vec![first, good, second])
        .iter()
        .map(|issue| {
            format!(
                "{} {} {}",
                issue.field_index,
                issue.path.join("."),
                issue.code
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            "0 name too_small",
            "0 placement.areas.0.page page_out_of_range",
            "0 placement.areas.0.x too_big",
            "0 placement.areas.0.y too_small",
            "0 placement.areas.1.w too_big",
            "2 type invalid_enum_value",
            "2 placement.w too_small",
            "2 placement.anchor_text anchor_not_found",
        ]
    );
}

#[test]
fn fields_with_one_name_cannot_have_two_types() {
    let first = absolute(vec![area(1, 0.1, 0.1, 0.1, 0.1)]);
    let mut same = first.clone();
    same.role = "Dealer".into();
    assert_eq!(
        place(contract(), vec![first.clone(), same]).unwrap().len(),
        2
    );

    let mut other = first.clone();
    other.field_type = "date".into();
    let found = issues(vec![first, other]);
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].field_index, found[0].code.as_str()),
        (1, "conflicting_type")
    );
}

#[test]
fn occurrences_are_found_on_all_pages_or_on_one() {
    let all = occurrences(contract(), "signature", None).unwrap();
    assert_eq!(all.len(), 3);
    assert_eq!(occurrences(contract(), "signature", Some(2)).unwrap(), []);
    assert_eq!(occurrences(contract(), "sale", Some(2)).unwrap().len(), 1);
    assert_eq!(occurrences(contract(), "sale", Some(7)).unwrap(), []);
    assert_eq!(occurrences(contract(), " ", None).unwrap(), []);
}

#[test]
fn facts_and_lines() {
    let facts = inspect(contract()).unwrap();
    assert_eq!(facts.pages.len(), 2);

    let page = &facts.pages[0];
    assert_eq!((page.width, page.height, page.rotation), (200.0, 100.0, 0));
    assert!(page.has_text && !facts.needs_rewrite);

    let lines = text(contract(), 1).unwrap();
    let texts: Vec<_> = lines.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "Buyer Signature:",
            "Dealer signature:",
            "Buyer",
            "Signature: again"
        ]
    );
    assert_eq!(text(contract(), 3).unwrap(), []);
    assert_eq!(text(contract(), 0).unwrap(), []);
}

#[test]
fn a_file_that_is_not_a_pdf_is_unreadable() {
    let error = place(b"hello".to_vec(), Vec::new()).unwrap_err();
    assert!(matches!(
        error,
        PlaceError::Unreadable(ReadError::Unreadable(_))
    ));
}

fn tagged(content: &str) -> Result<Vec<ResolvedField>, PlaceError> {
    tags(one_page(&format!("BT /F1 4 Tf 10 80 Td {content} ET")))
}

fn tag_issues(content: &str) -> Vec<Issue> {
    match tagged(content) {
        Err(PlaceError::Rejected(issues)) => issues,
        other => panic!("expected issues, got {other:?}"),
    }
}

#[test]
fn a_tag_sets_every_attribute_of_its_field() {
    let fields = tagged(
        "({{ Buyer Name ; Type=Select; role=Buyer;required=FALSE;readonly=true;\
         default=a=b;options=x, y;width=50;height=10px }}) Tj",
    )
    .unwrap();
    let [field] = &fields[..] else {
        panic!("{fields:?}")
    };
    assert_eq!(field.name, "Buyer Name");
    assert_eq!(field.field_type, "select");
    assert_eq!(field.role, "Buyer");
    assert!(!field.required && field.readonly);
    assert_eq!(field.default_value.as_deref(), Some("a=b"));
    assert_eq!(field.options, ["x", "y"]);

    let area = field.areas[0];
    assert_eq!((area.page, area.x, area.w, area.h), (1, 0.05, 0.25, 0.1));
    assert_eq!(field.attributes[0], ("type".into(), "Select".into()));
}

#[test]
fn the_tags_of_the_guide_are_read() {
    let guide = include_str!("../../../docs/fields.md");
    let (_, rest) = guide.split_once("```text\n").unwrap();
    let (lines, _) = rest.split_once("```").unwrap();
    let shown: String = lines
        .lines()
        .map(|line| format!("({line}) Tj 0 -5 Td "))
        .collect();
    let fields = tagged(&shown).unwrap();
    assert_eq!(fields.len(), lines.lines().count());

    let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(names[0], "Notes");
    assert_eq!(names[6], "Delivery");
    assert_eq!(fields[3].options, ["Black", "White", "Red"]);
    assert_eq!(fields[6].default_value.as_deref(), Some("2026-12-01"));
}

#[test]
fn a_tag_without_attributes_is_a_required_text_field_of_the_first_signer() {
    let fields = tagged("({{Notes}}) Tj").unwrap();
    let field = &fields[0];
    assert_eq!(
        (
            field.field_type.as_str(),
            field.role.as_str(),
            field.required
        ),
        ("text", "Signer 1", true)
    );

    let area = field.areas[0];
    assert!(
        area.w > 0.05 && area.w < 0.2,
        "as wide as its text: {area:?}"
    );
    assert!(
        area.h > 0.03 && area.h < 0.06,
        "as high as its line: {area:?}"
    );
}

#[test]
fn equal_tags_become_one_field_with_several_areas() {
    let fields = tagged(
        "({{T;type=checkbox}}) Tj 0 -10 Td ({{T;type=checkbox}} {{T;type=checkbox;role=B}}) Tj",
    )
    .unwrap();
    let areas: Vec<_> = fields.iter().map(|field| field.areas.len()).collect();
    assert_eq!(areas, [2, 1]);
}

#[test]
fn a_tag_beyond_the_page_is_clipped_at_its_edge() {
    let area = tagged("({{A;width=1000;height=1000}}) Tj").unwrap()[0].areas[0];
    assert!((area.x + area.w - 1.0).abs() < 1e-6 && (area.y + area.h - 1.0).abs() < 1e-6);
}

#[test]
fn broken_tags_are_reported_by_name() {
    let found = tag_issues(
        "({{A;type=stamp}}) Tj 0 -5 Td ({{B;required=maybe;width=-1;junk}}) Tj 0 -5 Td ({{;type=date}}) Tj \
         0 -5 Td ({{C;tpye=date}}) Tj 0 -5 Td ({{D;role=a;role=b}}) Tj 0 -5 Td ({{E;type=date) Tj",
    );
    let summary: Vec<_> = found
        .iter()
        .map(|issue| {
            format!(
                "{} {} {}",
                issue.field_index,
                issue.path.join("."),
                issue.code
            )
        })
        .collect();
    assert_eq!(
        summary,
        [
            "0 type invalid_enum_value",
            "1 required invalid_enum_value",
            "1 width invalid_tag",
            "1  invalid_tag",
            "2 name too_small",
            "3 tpye invalid_tag",
            "4 role invalid_tag",
            "5  invalid_tag",
        ]
    );

    assert!(
        found[0].message.contains("{{A;type=stamp}}"),
        "{}",
        found[0].message
    );
}

#[test]
fn tags_with_one_name_cannot_have_two_types() {
    let found = tag_issues("({{A;type=date}}) Tj 0 -10 Td ({{A;type=text}}) Tj");
    assert_eq!(
        (found[0].field_index, found[0].code.as_str()),
        (1, "conflicting_type")
    );
}

#[test]
fn a_tag_in_a_form_xobject_counts_at_every_use() {
    let mut pdf = PdfBuilder::new();
    let form = pdf.stream(
        "/Type /XObject /Subtype /Form /BBox [0 0 200 100] /Resources << /Font << /F1 3 0 R >> >>",
        b"BT /F1 8 Tf 10 10 Td ({{Initials;type=initials}}) Tj ET",
    );
    for _ in 0..2 {
        pdf.page_with(
            "/MediaBox [0 0 200 100]",
            &format!("/XObject << /X {form} 0 R >>"),
            "/X Do",
        );
    }

    let fields = tags(pdf.build()).unwrap();
    let pages: Vec<_> = fields[0].areas.iter().map(|area| area.page).collect();
    assert_eq!((fields.len(), pages), (1, vec![1, 2]));
}

#[test]
fn a_document_without_tags_has_no_tag_fields() {
    assert_eq!(tags(contract()).unwrap(), []);
}
