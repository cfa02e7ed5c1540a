//! Tests of the reader on small documents built here.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod support;

use std::collections::BTreeSet;

use holdfast_reader::{
    PageText, PdfDocument, ReadError, ReadLimit, TextLayer, TextSource, cut, find_tags,
};
use support::{PdfBuilder, one_page};

/// Reads the first page. The other ways to read it have to agree.
fn read(pdf: Vec<u8>) -> PageText {
    let document = PdfDocument::open(pdf).unwrap();
    let page = document.text_reader().page(0).unwrap();
    let mut other = document.text_reader();
    assert_eq!(other.has_text(0).unwrap(), page.has_text());
    if let Some(compact) = other.compact(0).unwrap() {
        assert_eq!(compact, compact_of(&page));
    }
    page
}

/// Returns the visible text in lower case, without white space.
fn compact_of(page: &PageText) -> String {
    let layer = TextLayer::visible(page);
    let letters = layer.chars().iter().map(|letter| letter.character);
    let letters = letters.filter(|letter| *letter != ' ');
    letters.flat_map(char::to_lowercase).collect()
}

fn lines(page: &PageText) -> Vec<String> {
    TextLayer::visible(page)
        .lines(page)
        .into_iter()
        .map(|line| line.text)
        .collect()
}

/// Returns the edges of the box of the whole text, in points.
fn box_of(page: &PageText) -> [f64; 4] {
    let rect = TextLayer::visible(page).lines(page)[0].rect;
    [
        rect.x0 * page.width,
        rect.y0 * page.height,
        rect.x1 * page.width,
        rect.y1 * page.height,
    ]
    .map(|edge| (edge * 100.0).round() / 100.0)
}

const HELLO: &str = "BT /F1 10 Tf 20 30 Td (Hi) Tj ET";

#[test]
fn text_boxes_are_fractions_of_the_page_from_the_top_left() {
    let page = read(one_page(HELLO));
    assert_eq!((page.width, page.height), (200.0, 100.0));
    // "Hi" in Helvetica is 7.22 + 2.22 wide; the baseline is 70 points from the top.
    assert_eq!(box_of(&page), [20.0, 60.69, 29.44, 72.25]);
    assert_eq!(lines(&page), ["Hi"]);
}

#[test]
fn text_boxes_respect_rotation_and_crop_box() {
    let rotated = |degrees: i32| {
        let entries = format!("/MediaBox [0 0 200 100] /CropBox [10 20 190 90] /Rotate {degrees}");
        let page = read(PdfBuilder::new().page_with(&entries, "", HELLO).build());
        (page.width, page.height, box_of(&page))
    };
    assert_eq!(rotated(0), (180.0, 70.0, [10.0, 50.69, 19.44, 62.25]));
    assert_eq!(rotated(90), (70.0, 180.0, [7.75, 10.0, 19.31, 19.44]));
    assert_eq!(rotated(180), (180.0, 70.0, [160.56, 7.75, 170.0, 19.31]));
    assert_eq!(rotated(-90), (70.0, 180.0, [50.69, 160.56, 62.25, 170.0]));
    assert_eq!(rotated(450), rotated(90));
}

#[test]
fn user_unit_scales_sizes_but_not_fractions() {
    let entries = "/MediaBox [0 0 200 100] /UserUnit 2";
    let document =
        PdfDocument::open(PdfBuilder::new().page_with(entries, "", HELLO).build()).unwrap();
    let info = document.pages()[0];
    assert_eq!((info.width, info.height), (400.0, 200.0));
    let page = document.text_reader().page(0).unwrap();
    let rect = page.glyphs[0].rect();
    assert!((rect.x0 - 0.1).abs() < 1e-6);
}

#[test]
fn gaps_become_spaces_and_vertical_moves_become_lines() {
    let page = read(one_page(
        "BT /F1 10 Tf 10 80 Td [(Sig) -20 (na) 10 (ture) -400 (of)] TJ ( the) Tj 0 -12 Td (Buyer) Tj ET",
    ));
    assert_eq!(lines(&page), ["Signature of the", "Buyer"]);
}

#[test]
fn all_four_text_show_operators_are_read() {
    let page = read(one_page(
        "BT /F1 10 Tf 12 TL 10 90 Td (one) Tj (two) ' 2 1 (three) \" [(fo) (ur)] TJ ET",
    ));
    assert_eq!(lines(&page), ["one", "two", "threefour"]);
}

#[test]
fn ligatures_are_split_and_soft_hyphens_dropped() {
    let page = read(one_page(
        "BT /F1 10 Tf 10 80 Td /Span <</ActualText <FEFFFB01>>> BDC (x) Tj EMC (nal) Tj (\\255ly) Tj ET",
    ));
    let text = lines(&page).join("|");
    assert!(text.starts_with("final"), "{text}");

    let layer = TextLayer::visible(&page);
    let [f, i, ..] = layer.chars() else { panic!() };
    let (f, i) = (layer.rect(&page, f), layer.rect(&page, i));
    assert!((f.x1 - i.x0).abs() < 1e-6 && f.width() > 0.0, "{f:?} {i:?}");
}

#[test]
fn actual_text_replaces_the_text_of_glyphs() {
    let page = read(one_page(
        "BT /F1 10 Tf 10 80 Td /Span <</ActualText (Buyer)>> BDC (#####) Tj EMC ( signs) Tj ET",
    ));
    assert_eq!(lines(&page), ["Buyer signs"]);
    assert_eq!(page.replaced.len(), 1);
}

#[test]
fn form_xobjects_are_read_where_drawn_and_never_recursively() {
    let mut pdf = PdfBuilder::new();
    let form = pdf.objects_planned() + 1;
    pdf.stream(
        &format!(
            "/Type /XObject /Subtype /Form /BBox [0 0 200 100] /Matrix [1 0 0 1 5 0] \
             /Resources << /Font << /F1 3 0 R >> /XObject << /X {form} 0 R >> >>"
        ),
        b"BT /F1 10 Tf 10 50 Td (inner) Tj ET /X Do",
    );

    pdf.page_with(
        "/MediaBox [0 0 200 100]",
        &format!("/XObject << /X {form} 0 R >>"),
        "BT /F1 10 Tf 10 80 Td (before) Tj ET q 1 0 0 1 20 0 cm /X Do Q BT /F1 10 Tf 10 20 Td (after) Tj ET",
    );
    let page = read(pdf.build());
    assert_eq!(lines(&page), ["before", "inner", "after"]);

    let inner = page
        .operators
        .iter()
        .find(|operator| operator.stream != 0)
        .unwrap();
    let stream = &page.streams[inner.stream];
    assert!(matches!(stream.source, TextSource::Form { .. }));
    assert_eq!(stream.parent, Some(0));
    assert_eq!(stream.name, b"X");
    assert_eq!(&stream.content[inner.range.clone()], b"(inner) Tj");
    assert_eq!(
        &page.streams[0].content[stream.invocation.clone()],
        b"/X Do"
    );

    let left = page.glyphs[inner.glyphs.start].rect().x0 * page.width;
    assert!((left - 35.0).abs() < 0.01, "{left}");
}

#[test]
fn exponentially_nested_forms_stop_at_the_operator_limit() {
    let mut pdf = PdfBuilder::new();
    let mut inner = pdf.stream(
        "/Type /XObject /Subtype /Form /BBox [0 0 1 1]",
        b"q Q q Q q Q q Q",
    );
    for _ in 0..15 {
        let uses = "/X Do ".repeat(10);
        inner = pdf.stream(
            &format!(
                "/Type /XObject /Subtype /Form /BBox [0 0 1 1] \
                 /Resources << /XObject << /X {inner} 0 R >> >>"
            ),
            uses.as_bytes(),
        );
    }

    pdf.page_with(
        "/MediaBox [0 0 9 9]",
        &format!("/XObject << /X {inner} 0 R >>"),
        "/X Do",
    );
    let document = PdfDocument::open(pdf.build()).unwrap();
    let error = document.text_reader().page(0).unwrap_err();
    assert_eq!(error, ReadError::OverLimit(ReadLimit::Operators));
}

#[test]
fn deeply_nested_forms_stop_at_the_depth_limit() {
    let mut pdf = PdfBuilder::new();
    let mut inner = pdf.stream("/Type /XObject /Subtype /Form /BBox [0 0 1 1]", b"q Q");
    for _ in 0..25 {
        inner = pdf.stream(
            &format!(
                "/Type /XObject /Subtype /Form /BBox [0 0 1 1] \
                 /Resources << /XObject << /X {inner} 0 R >> >>"
            ),
            b"/X Do",
        );
    }

    pdf.page_with(
        "/MediaBox [0 0 9 9]",
        &format!("/XObject << /X {inner} 0 R >>"),
        "/X Do",
    );
    let document = PdfDocument::open(pdf.build()).unwrap();
    let error = document.text_reader().page(0).unwrap_err();
    assert_eq!(error, ReadError::OverLimit(ReadLimit::FormDepth));
}

#[test]
fn visible_field_values_are_read_and_hidden_ones_skipped() {
    let mut pdf = PdfBuilder::new();
    let appearance = pdf.stream(
        "/Type /XObject /Subtype /Form /BBox [0 0 50 10] /Resources << /Font << /F1 3 0 R >> >>",
        b"/Tx BMC BT /F1 5 Tf 2 2 Td (read only value) Tj ET EMC",
    );
    let widget = |flags: u32| {
        format!(
            "<< /Type /Annot /Subtype /Widget /F {flags} /Rect [100 40 200 60] /AP << /N {appearance} 0 R >> >>"
        )
    };
    let shown = pdf.object(&widget(4));

    let hidden = pdf.object(&widget(2));
    pdf.page_with(
        &format!("/MediaBox [0 0 200 100] /Annots [{hidden} 0 R 99 0 R {shown} 0 R]"),
        "",
        "",
    );
    let page = read(pdf.build());
    assert_eq!(lines(&page), ["read only value"]);

    // The appearance is twice as large as its box: 2 points from the left become 4.
    let left = page.glyphs[0].rect().x0 * page.width;
    assert!((left - 104.0).abs() < 0.01, "{left}");
    assert!(matches!(
        page.streams[page.operators[0].stream].source,
        TextSource::Appearance { .. }
    ));
}

#[test]
fn text_on_disabled_layers_is_not_read() {
    let mut pdf = PdfBuilder::new();
    let layer = pdf.object("<< /Type /OCG /Name (Draft) >>");
    pdf.catalog(&format!(
        "/OCProperties << /OCGs [{layer} 0 R] /D << /OFF [{layer} 0 R] >> >>"
    ));
    pdf.page_with(
        "/MediaBox [0 0 200 100]",
        &format!("/Properties << /L {layer} 0 R >>"),
        "BT /F1 10 Tf 10 80 Td /OC /L BDC (hidden) Tj EMC 0 -20 Td (seen) Tj ET",
    );
    assert_eq!(lines(&read(pdf.build())), ["seen"]);
}

#[test]
fn text_outside_the_page_is_not_visible() {
    let page = read(one_page(
        "BT /F1 10 Tf 10 80 Td (in) Tj 500 0 Td (out) Tj ET",
    ));
    assert_eq!(lines(&page), ["in"]);
}

#[test]
fn a_type3_font_is_read_through_its_encoding() {
    let mut pdf = PdfBuilder::new();
    let glyph = pdf.stream("", b"800 0 0 0 750 750 d1 0 0 750 750 re f");
    let font = pdf.object(&format!(
        "<< /Type /Font /Subtype /Type3 /FontMatrix [0.001 0 0 0.001 0 0] /FontBBox [0 0 750 750] \
         /FirstChar 97 /LastChar 98 /Widths [800 800] /CharProcs << /A {glyph} 0 R /B {glyph} 0 R >> \
         /Encoding << /Differences [97 /A /B] >> >>"
    ));
    pdf.page_with(
        "/MediaBox [0 0 200 100]",
        &format!("/Font << /T3 {font} 0 R >>"),
        "BT /T3 10 Tf 10 80 Td (ab) Tj ET",
    );

    let page = read(pdf.build());
    assert_eq!(lines(&page), ["AB"]);
    assert_eq!(box_of(&page), [10.0, 12.5, 26.0, 20.0]);
}

#[test]
fn a_composite_font_is_read_through_to_unicode() {
    let mut pdf = PdfBuilder::new();
    let map = pdf.stream(
        "",
        b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap \
          1 begincodespacerange <0000> <FFFF> endcodespacerange \
          2 beginbfchar <0001> <0041> <0002> <0066006600690020> endbfchar endcmap",
    );

    let descendant = pdf.object(
        "<< /Type /Font /Subtype /CIDFontType2 /BaseFont /X /DW 500 /W [2 [1500]] \
         /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> \
         /FontDescriptor << /Type /FontDescriptor /FontName /X /Flags 4 /Ascent 800 /Descent -200 >> >>",
    );
    let font = pdf.object(&format!(
        "<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /Identity-H \
         /DescendantFonts [{descendant} 0 R] /ToUnicode {map} 0 R >>"
    ));
    pdf.page_with(
        "/MediaBox [0 0 200 100]",
        &format!("/Font << /C {font} 0 R >>"),
        "BT /C 10 Tf 10 80 Td <000100020001> Tj ET",
    );

    let page = read(pdf.build());
    assert_eq!(lines(&page), ["Affi A"]);
    assert_eq!(box_of(&page), [10.0, 12.0, 35.0, 22.0]);
}

#[test]
fn signed_and_certified_documents_are_recognized() {
    let mut pdf = PdfBuilder::new();
    pdf.page(HELLO);
    let value = pdf.object(
        "<< /Type /Sig /Reference [<< /TransformMethod /DocMDP /TransformParams << /P 1 >> >>] >>",
    );
    let signed = pdf.object(&format!("<< /FT /Sig /T (a) /V {value} 0 R >>"));
    let empty = pdf.object("<< /FT /Sig /T (b) >>");
    pdf.catalog(&format!(
        "/AcroForm << /Fields [{signed} 0 R {empty} 0 R] >> /Perms << /DocMDP {value} 0 R >>"
    ));

    let document = PdfDocument::open(pdf.build()).unwrap();
    let signatures = document.signatures();
    assert_eq!(signatures.count, 1);
    assert_eq!(signatures.certification_level, Some(1));
    assert!(!document.needs_rewrite());
    assert!(!document.is_encrypted());
}

#[test]
fn a_wrong_cross_reference_table_is_detected() {
    let good = one_page(HELLO);
    assert!(!PdfDocument::open(good.clone()).unwrap().needs_rewrite());

    let text = String::from_utf8(good).unwrap();
    let shifted = text.replacen("%PDF-1.7\n", "%PDF-1.7\n%shift\n", 1);
    assert!(
        PdfDocument::open(shifted.into_bytes())
            .unwrap()
            .needs_rewrite()
    );

    let cut_off = &text[..text.find("xref\n").unwrap()];
    assert!(
        PdfDocument::open(cut_off.as_bytes().to_vec())
            .unwrap()
            .needs_rewrite()
    );
}

#[test]
fn a_file_that_is_not_a_pdf_is_refused_with_a_reason() {
    for bytes in [&b""[..], b"hello", b"%PDF-1.7", b"%PDF-1.7\ntrailer<<>>"] {
        let error = PdfDocument::open(bytes.to_vec()).unwrap_err();
        assert!(matches!(error, ReadError::Unreadable(_)), "{error:?}");
    }
}

#[test]
fn tags_are_found_across_runs_lines_and_other_operators() {
    let page = read(one_page(
        "BT /F1 8 Tf 10 80 Td (Sign {) Tj 1 0 0 rg ({Buyer;ty) Tj [(pe) -5 (=)] TJ (signature}) Tj \
         (} here) Tj 0 -20 Td ({{Second;) Tj 0 -10 Td (role=Buyer}}) Tj 0 -20 Td ({{never) Tj ET",
    ));
    let tags = find_tags(&page).unwrap();
    let texts: Vec<_> = tags.iter().map(|tag| tag.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "{{Buyer;type=signature}}",
            "{{Second; role=Buyer}}",
            "{{never"
        ]
    );

    assert!(tags[1].first_line.height() < tags[1].rect.height());
    assert!(!tags[2].is_closed && tags[2].glyphs.is_empty());

    let said: String = tags[0]
        .glyphs
        .iter()
        .map(|glyph| page.glyph_text(&page.glyphs[*glyph]))
        .collect();
    assert_eq!(said, "{{Buyer;type=signature}}");
}

#[test]
fn a_tag_opening_inside_an_unfinished_tag_starts_a_new_tag() {
    let page = read(one_page(
        "BT /F1 8 Tf 10 80 Td ({{a {{b {{C;type=date}} {{D}}) Tj ET",
    ));
    let tags = find_tags(&page).unwrap();
    let closed: Vec<_> = tags
        .iter()
        .filter(|tag| tag.is_closed)
        .map(|tag| tag.text.as_str())
        .collect();
    assert_eq!(closed, ["{{C;type=date}}", "{{D}}"]);
    assert_eq!(tags.len(), 4);
}

#[test]
fn an_excessively_long_tag_exceeds_the_limit() {
    let content = format!(
        "BT /F1 1 Tf 0 80 Td ({{{{{}) Tj (}}}}) Tj ET",
        "x".repeat(17 * 1024)
    );
    let error = find_tags(&read(one_page(&content))).unwrap_err();
    assert_eq!(error, ReadError::OverLimit(ReadLimit::TagText));
}

/// Cuts the tags of the page content and reads the result.
fn after_cutting(content: &str) -> (PageText, PageText) {
    let before = read(one_page(content));
    let glyphs: BTreeSet<usize> = find_tags(&before)
        .unwrap()
        .into_iter()
        .flat_map(|tag| tag.glyphs)
        .collect();

    let mut bytes = content.as_bytes().to_vec();
    for edit in cut(&before, &glyphs).into_iter().rev() {
        assert_eq!(edit.stream, 0);
        bytes.splice(edit.range, edit.replacement);
    }

    let after = read(one_page(&String::from_utf8(bytes).unwrap()));
    (before, after)
}

#[test]
fn removing_a_tag_moves_no_other_text() {
    let (before, after) = after_cutting(
        "BT /F1 10 Tf 2 Tc 3 Tw 90 Tz 14 TL 10 80 Td (Sign {{A;t) Tj [(ype=) 30 (text}} he) -20 (re)] TJ \
         ( (next) ok {{B}} end) ' 1 0.5 (third {{C}} line) \" ( and more) Tj ET",
    );
    let kept: Vec<_> = before
        .glyphs
        .iter()
        .enumerate()
        .filter(|(index, _)| {
            !find_tags(&before)
                .unwrap()
                .iter()
                .any(|tag| tag.glyphs.contains(index))
        })
        .map(|(_, glyph)| glyph)
        .collect();
    assert_eq!(kept.len(), after.glyphs.len());

    for (before_glyph, after_glyph) in kept.iter().zip(&after.glyphs) {
        assert_eq!(
            before.glyph_text(before_glyph),
            after.glyph_text(after_glyph)
        );

        let (was, is) = (before_glyph.rect(), after_glyph.rect());
        assert!(
            (was.x0 - is.x0).abs() < 1e-5 && (was.y0 - is.y0).abs() < 1e-5,
            "{was:?} {is:?}"
        );
    }

    assert!(find_tags(&after).unwrap().is_empty());
}

#[test]
fn actual_text_is_removed_with_its_tag() {
    let (_, after) = after_cutting(
        "BT /F1 10 Tf 10 80 Td /Span <</ActualText ({{A}})>> BDC ({{A}}) Tj EMC ( stays) Tj ET",
    );
    assert_eq!(lines(&after), ["stays"]);
    assert!(after.replaced.is_empty());
}

#[test]
fn the_compact_text_is_known_unless_some_of_it_may_lie_beside_the_page() {
    let compact = |content: &str| {
        let document = PdfDocument::open(one_page(content)).unwrap();
        document.text_reader().compact(0).unwrap()
    };
    let text = "BT /F1 10 Tf 20 30 Td (Hi  THERE) Tj 0 -12 Td [(kern) -900 (ed)] TJ ET";
    assert_eq!(compact(text).as_deref(), Some("hitherekerned"));

    let replaced = "BT /F1 10 Tf 20 30 Td /Span << /ActualText (Fine) >> BDC (x) Tj EMC ( y) Tj ET";
    assert_eq!(compact(replaced).as_deref(), Some("finey"));
    assert_eq!(compact("").as_deref(), Some(""));

    for beside in [
        "BT /F1 10 Tf 300 30 Td (away) Tj ET",
        "BT /F1 10 Tf 500 30 Td /Span << /ActualText (note) >> BDC ( ) Tj EMC ET",
        "BT /F1 10 Tf 190 30 Td (over the edge) Tj ET",
        "BT /F1 10 Tf 20 30 Td [(back) 9000 (again)] TJ ET",
        "BT /F1 10 Tf 20 30 Td 900 Ts (risen) Tj ET",
    ] {
        assert_eq!(compact(beside), None, "{beside}");
    }
}

#[test]
fn a_page_has_text_if_no_mark_takes_it_away() {
    for (content, expected) in [
        (
            "BT /F1 10 Tf 20 30 Td /Span << /ActualText () >> BDC (x) Tj EMC ET",
            false,
        ),
        (
            "BT /F1 10 Tf 20 30 Td /Span << /ActualText () >> BDC (x) Tj EMC ( more) Tj ET",
            true,
        ),
        (
            "BT /F1 10 Tf 20 30 Td /Span << /ActualText (note) >> BDC ( ) Tj EMC ET",
            true,
        ),
    ] {
        assert_eq!(read(one_page(content)).has_text(), expected, "{content}");
    }
}
