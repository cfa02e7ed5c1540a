use holdfast_documents::{
    DocumentError, FieldValue, HandwritingStyle, Picture, PictureFormat, WrittenField, fill,
    fill_written,
};
use image::ImageFormat;

use crate::support::{
    PageRaster, TempFile, TestPdf, assert_clean, assert_upright, contract, encoded, extracted,
    facts, field, moved, page, pages, quarters, run, text, words,
};

/// Every page rotation combined with every kind of page box.
fn geometries() -> Vec<String> {
    let boxes = [
        "/MediaBox[0 0 300 200]",
        "/MediaBox[0 0 300 200]/CropBox[40 30 240 170]",
        "/MediaBox[-50 -70 250 130]",
        "/MediaBox[300 200 0 0]/CropBox[240 170 40 30]",
        "/MediaBox[10 20 310 220]/CropBox[-100 -100 900 900]",
        "/MediaBox[0 0 300.5 200.25]/UserUnit 2",
    ];

    let turns = [
        "",
        "/Rotate 90",
        "/Rotate 180",
        "/Rotate 270",
        "/Rotate -90",
        "/Rotate 450",
    ];

    boxes
        .iter()
        .flat_map(|boxes| turns.map(|turn| format!("{boxes}{turn}")))
        .collect()
}

#[test]
fn values_are_drawn_inside_their_displayed_areas() {
    let png = encoded(&quarters(80, 40), ImageFormat::Png);
    let place = [0.55, 0.1, 0.4, 0.3];
    for geometry in geometries() {
        let picture = Picture {
            format: PictureFormat::Png,
            bytes: png.clone(),
        };
        let blank = page(&geometry, "");
        let filled = fill(&blank, &[field(1, place, FieldValue::Drawn(picture))]).unwrap();
        assert_clean(&filled);

        let seen = PageRaster::poppler(&filled, 1);
        let changed = seen
            .difference(&PageRaster::poppler(&blank, 1))
            .expect("a picture is visible");

        // The picture is twice as wide as high and centred in its area.
        let (width, height) = (seen.width as f64, seen.height as f64);
        let scale = (place[2] * width / 2.0).min(place[3] * height);
        let (w, h) = (2.0 * scale / width, scale / height);
        let expected = [
            place[0] + (place[2] - w) / 2.0,
            place[1] + (place[3] - h) / 2.0,
            place[0] + (place[2] + w) / 2.0,
            place[1] + (place[3] + h) / 2.0,
        ];
        for (edge, expected) in changed.iter().zip(expected) {
            assert!(
                (edge - expected).abs() < 0.012,
                "{geometry}: {changed:?} for {expected:?}"
            );
        }

        assert_upright(&seen, [expected[0], expected[1], w, h], &geometry);
        let own = PageRaster::own(&filled, 1, 300).unwrap();
        assert_upright(&own, [expected[0], expected[1], w, h], &geometry);
    }
}

#[test]
fn texts_stay_searchable_in_any_script_the_font_has() {
    let filled = fill(
        &contract(),
        &[
            field(
                4,
                [0.09, 0.24, 0.5, 0.04],
                FieldValue::Typed("Jordan A. Ellery".to_owned()),
            ),
            field(4, [0.68, 0.25, 0.2, 0.03], text("2026-05-04")),
            field(
                1,
                [0.3, 0.7, 0.4, 0.03],
                text("Ångström, Ёлкина, Παπαδόπουλος"),
            ),
            field(1, [0.3, 0.8, 0.4, 0.03], text("山田 太郎")),
        ],
    )
    .unwrap();

    assert_clean(&filled);
    let first = extracted(&filled, 1);
    assert!(first.contains("Ångström, Ёлкина, Παπαδόπουλος"), "{first}");

    // The font has no such characters; they are shown as replacement signs but keep their value.
    assert!(first.contains("山田 太郎"), "{first}");

    let last = extracted(&filled, 4);
    assert!(
        last.contains("Jordan A. Ellery") && last.contains("2026-05-04"),
        "{last}"
    );
}

#[test]
fn a_typed_signature_is_set_in_its_handwriting() {
    let blank = page("/MediaBox[0 0 600 400]", "");
    let place = [0.1, 0.4, 0.5, 0.2];
    let signed = |name: &str, style: Option<HandwritingStyle>| {
        let field = field(1, place, FieldValue::Typed(name.to_owned()));
        let filled = fill_written(&blank, &[WrittenField { field, style }]).unwrap();
        assert_clean(&filled);
        assert!(extracted(&filled, 1).contains(name), "{name}");

        let ink = PageRaster::poppler(&filled, 1)
            .difference(&PageRaster::poppler(&blank, 1))
            .unwrap();

        // Some letters have flourishes that reach a little over the box.
        let [left, top, right, bottom] = ink;
        assert!(left > 0.08 && right < 0.62, "{ink:?}");
        assert!(top > 0.36 && bottom < 0.64, "{ink:?}");

        let file = TempFile::new(&filled);
        let (_, fonts, _) = run("pdffonts", "poppler-utils", &[file.path()]);
        String::from_utf8(fonts).unwrap()
    };
    for (style, font) in [
        (Some(HandwritingStyle::Casual), "Caveat"),
        (Some(HandwritingStyle::Formal), "GreatVibes"),
        (Some(HandwritingStyle::Light), "Sacramento"),
        (None, "NotoSans-Italic"),
    ] {
        for name in ["Jordan A. Ellery", "Zoë Fjällström-Qvist"] {
            let fonts = signed(name, style);
            assert!(fonts.contains(font), "{font}: {fonts}");
        }
    }

    // Sacramento has no Cyrillic: the name is not set in two hands.
    let fonts = signed("Анна Ёлкина", Some(HandwritingStyle::Light));
    assert!(fonts.contains("NotoSans-Italic"), "{fonts}");
    assert!(!fonts.contains("Sacramento"), "{fonts}");
}

#[test]
fn content_outside_the_filled_areas_is_unchanged() {
    let original = contract();
    let filled = fill(
        &original,
        &[field(4, [0.1, 0.25, 0.4, 0.03], text("Jordan A. Ellery"))],
    )
    .unwrap();
    assert!(moved(&words(&original), &words(&filled)).is_none());

    for page in 1..=4 {
        let changed =
            PageRaster::poppler(&filled, page).difference(&PageRaster::poppler(&original, page));
        match (page, changed) {
            (4, Some([left, top, right, bottom])) => {
                assert!(left >= 0.099 && top >= 0.248 && right <= 0.502 && bottom <= 0.282);
            }
            (4, None) => panic!("the value is not visible"),
            // Numbers that are written with other digits can change the shade of a pixel.
            (page, _) => {
                let after = PageRaster::poppler(&filled, page);
                assert!(
                    after.distance(&PageRaster::poppler(&original, page)) < 0.01,
                    "page {page}"
                );
            }
        }
    }
}

#[test]
fn a_tick_is_drawn_for_true_and_nothing_for_false() {
    let blank = page("/MediaBox[0 0 200 200]", "");
    let place = [0.4, 0.4, 0.1, 0.1];
    let unticked = fill(&blank, &[field(1, place, FieldValue::Checkbox(false))]).unwrap();
    assert_eq!(
        PageRaster::poppler(&unticked, 1).difference(&PageRaster::poppler(&blank, 1)),
        None
    );

    let ticked = fill(&blank, &[field(1, place, FieldValue::Checkbox(true))]).unwrap();
    let changed = PageRaster::poppler(&ticked, 1)
        .difference(&PageRaster::poppler(&blank, 1))
        .unwrap();
    assert!(changed[0] >= 0.39 && changed[1] >= 0.39 && changed[2] <= 0.51 && changed[3] <= 0.51);
}

#[test]
fn unbalanced_graphics_state_does_not_move_values() {
    let place = [0.1, 0.1, 0.3, 0.1];
    let disorders = [
        "q q 3 0 0 3 90 90 cm",
        "Q Q Q 0.5 0 0 0.5 7 9 cm",
        "BT /F1 12 Tf 2 0 0 2 50 50 Tm (open) Tj",
        "q 0 0 1 1 re W n",
        "1 0 0 1 50 50 cm Q 2 0 0 2 0 0 cm",
    ];
    for content in disorders {
        let original = page("/MediaBox[0 0 200 200]", content);
        let filled = fill(&original, &[field(1, place, text("Here"))]).unwrap();
        let changed = PageRaster::poppler(&filled, 1)
            .difference(&PageRaster::poppler(&original, 1))
            .unwrap();
        assert!(
            changed[0] >= 0.09 && changed[1] >= 0.09 && changed[2] <= 0.41 && changed[3] <= 0.21,
            "{content}: {changed:?}"
        );
    }
}

#[test]
fn inherited_and_indirect_resources_are_extended() {
    let mut pdf = TestPdf::new();
    pdf.add("<</Type/Catalog/Pages 2 0 R>>");
    pdf.add("<</Type/Pages/Count 3/Kids[4 0 R 6 0 R 8 0 R]/MediaBox[0 0 200 200]/Resources<</Font<</F1 3 0 R>>>>>>");
    pdf.add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>");

    // Resources: inherited, a reference with a shared dictionary of forms, and none.
    pdf.add("<</Type/Page/Parent 2 0 R/Contents 5 0 R>>");
    pdf.stream("", b"BT /F1 12 Tf 20 20 Td (inherited) Tj ET");
    pdf.add("<</Type/Page/Parent 2 0 R/Resources 10 0 R/Contents[7 0 R]>>");
    pdf.stream("", b"BT /F1 12 Tf 20 20 Td (referred) Tj ET /Own Do");
    pdf.add("<</Type/Page/Parent 2 0 R/Resources<<>>/Contents 9 0 R>>");
    pdf.stream("", b"");

    pdf.add("<</Font 11 0 R/XObject 12 0 R>>");
    pdf.add("<</F1 3 0 R>>");
    pdf.add("<</Own 13 0 R>>");
    pdf.stream("/Type/XObject/Subtype/Form/BBox[0 0 9 9]", b"0 0 9 9 re f");
    let fields: Vec<_> = (1..=3)
        .map(|page| field(page, [0.1, 0.1, 0.5, 0.1], text("value")))
        .collect();
    let filled = fill(&pdf.finish(), &fields).unwrap();
    assert_clean(&filled);

    for (page, own) in [(1, "inherited"), (2, "referred"), (3, "")] {
        let found = extracted(&filled, page);
        assert!(
            found.contains("value") && found.contains(own),
            "page {page}: {found}"
        );
    }
}

#[test]
fn form_fields_without_an_appearance_are_drawn_from_their_values() {
    for (turn, box_of_text) in [
        ("", [0.1, 0.5, 0.9, 0.6]),
        ("/MK<</R 180>>", [0.1, 0.5, 0.9, 0.6]),
        ("/MK<</R 90>>", [0.1, 0.5, 0.9, 0.6]),
        ("/MK<</R 270>>", [0.1, 0.5, 0.9, 0.6]),
    ] {
        let entries = format!(
            "/MediaBox[0 0 200 200]/Annots[<</Subtype/Widget/FT/Tx/V(value)/Rect[20 80 180 100]{turn}>>]"
        );
        let original = page(&entries, "");
        let filled = fill(&original, &[]).unwrap();
        assert_clean(&filled);
        assert!(extracted(&filled, 1).contains("value"), "{turn}");

        let changed = PageRaster::poppler(&filled, 1)
            .difference(&PageRaster::poppler(&page("/MediaBox[0 0 200 200]", ""), 1))
            .unwrap();
        let inside = changed[0] >= box_of_text[0]
            && changed[1] >= box_of_text[1]
            && changed[2] <= box_of_text[2]
            && changed[3] <= box_of_text[3];
        assert!(inside, "{turn}: {changed:?}");
    }
}

#[test]
fn a_form_field_with_an_empty_appearance_is_drawn_from_its_value() {
    let mut pdf = TestPdf::new();
    pdf.add("<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[4 0 R]/NeedAppearances true>>>>");
    pdf.add("<</Type/Pages/Count 1/Kids[3 0 R]>>");
    pdf.add("<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Annots[4 0 R]>>");
    pdf.add("<</Type/Annot/Subtype/Widget/FT/Tx/V(Alice)/Rect[20 80 180 100]/AP<</N 5 0 R>>>>");
    pdf.stream(
        "/Type/XObject/Subtype/Form/BBox[0 0 160 20]",
        b"0.9 g 0 0 160 20 re f /Tx BMC EMC",
    );

    let filled = fill(&pdf.finish(), &[]).unwrap();
    assert_clean(&filled);
    assert!(extracted(&filled, 1).contains("Alice"));

    let [shade, ..] = PageRaster::poppler(&filled, 1).at(0.8, 0.55);
    assert!(
        (220..240).contains(&shade),
        "the frame of the field stays: {shade}"
    );
}

/// A form with a drawn text field, a checked box, a hidden field and one without appearance.
fn form(page_entries: &str) -> Vec<u8> {
    let mut pdf = TestPdf::new();
    pdf.add("<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[5 0 R 6 0 R 7 0 R 8 0 R 14 0 R]/NeedAppearances true>>>>");
    pdf.add("<</Type/Pages/Count 1/Kids[4 0 R]>>");
    pdf.add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>");
    pdf.add(format!("<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Annots[5 0 R 6 0 R 7 0 R 8 0 R 13 0 R]{page_entries}>>"));
    pdf.add(
        "<</Type/Annot/Subtype/Widget/FT/Tx/T(a)/V(drawn)/Rect[20 150 120 170]/AP<</N 9 0 R>>>>",
    );

    pdf.add("<</Type/Annot/Subtype/Widget/FT/Btn/T(b)/AS/On/Rect[20 110 40 130]/AP<</N<</On 10 0 R/Off 11 0 R>>>>>>");
    pdf.add("<</Type/Annot/Subtype/Widget/FT/Tx/T(c)/V(secret)/F 2/Rect[150 150 250 170]/AP<</N 12 0 R>>>>");
    pdf.add("<</Type/Annot/Subtype/Widget/Parent 14 0 R/Rect[20 60 160 80]>>");
    pdf.stream(
        "/Type/XObject/Subtype/Form/BBox[0 0 50 10]/Resources<</Font<</F1 3 0 R>>>>",
        b"BT /F1 8 Tf 1 2 Td (drawn) Tj ET",
    );

    pdf.stream("/BBox[0 0 10 10]", b"1 0 0 rg 0 0 10 10 re f");
    pdf.stream("/BBox[0 0 10 10]", b"0 1 0 rg 0 0 10 10 re f");
    pdf.stream(
        "/BBox[0 0 50 10]/Resources<</Font<</F1 3 0 R>>>>",
        b"BT /F1 8 Tf 1 2 Td (secret) Tj ET",
    );
    pdf.add("<</Type/Annot/Subtype/Link/Rect[0 0 10 10]/Border[0 0 0]/A<</S/URI/URI(https://example.com)>>>>");

    pdf.add("<</FT/Tx/T(d)/V(undrawn value)/Kids[8 0 R]>>");
    pdf.finish()
}

#[test]
fn form_fields_are_flattened_into_the_page() {
    for turn in ["", "/Rotate 90"] {
        let filled = fill(&form(turn), &[]).unwrap();
        assert_clean(&filled);
        let found = extracted(&filled, 1)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(
            found.contains("drawn") && found.contains("undrawn value"),
            "{found}"
        );
        assert!(!found.contains("secret"), "{found}");

        let file = String::from_utf8_lossy(&filled);
        assert!(!file.contains("/AcroForm") && !file.contains("/Widget"));
        assert!(
            file.contains("https://example.com"),
            "other annotations stay"
        );
        assert!(facts(&filled, &[]).contains("Form:            none"));
    }

    let seen = PageRaster::poppler(&fill(&form(""), &[]).unwrap(), 1);
    assert_eq!(
        seen.at(0.1, 0.4),
        [255, 0, 0],
        "the box is shown in its state"
    );

    let [red, ..] = seen.at(0.075, 0.36);
    assert_eq!(red, 255);
}

#[test]
fn long_form_values_are_drawn_completely() {
    let value = "This buyer lives at an address with a very long name that no form ever leaves enough room for, in the County of Somewhere Else";
    let filled = fill(
        &page("/MediaBox[0 0 612 792]", ""),
        &[field(1, [0.1, 0.1, 0.4, 0.02], text(value))],
    )
    .unwrap();
    let found = extracted(&filled, 1)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert_eq!(found, value);
}

#[test]
fn equal_input_gives_equal_bytes() {
    let fields = [field(4, [0.1, 0.25, 0.4, 0.03], text("Jordan A. Ellery"))];
    assert_eq!(fill(&contract(), &fields), fill(&contract(), &fields));
}

#[test]
fn areas_outside_the_page_are_refused() {
    let blank = pages(&[("/MediaBox[0 0 200 200]", "")]);
    for (page, place) in [
        (0, [0.1, 0.1, 0.1, 0.1]),
        (2, [0.1, 0.1, 0.1, 0.1]),
        (u32::MAX, [0.1, 0.1, 0.1, 0.1]),
        (1, [0.95, 0.1, 0.1, 0.1]),
        (1, [-0.1, 0.1, 0.1, 0.1]),
        (1, [0.1, 0.1, 0.0, 0.1]),
        (1, [f64::NAN, 0.1, 0.1, 0.1]),
        (1, [0.1, 0.1, f64::INFINITY, 0.1]),
    ] {
        let outcome = fill(&blank, &[field(page, place, text("x"))]);
        assert!(
            matches!(outcome, Err(DocumentError::Other(_))),
            "{page} {place:?}: {outcome:?}"
        );
    }
}
