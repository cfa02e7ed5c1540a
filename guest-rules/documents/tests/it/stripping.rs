use holdfast_documents::{DocumentError, strip_tags};

use crate::support::{TestPdf, assert_clean, contract, extracted, moved, page, pages, words};

fn assert_stripped(original: &[u8], kept: &[&str]) {
    let stripped = strip_tags(original).unwrap();
    assert_clean(&stripped);
    let before: Vec<_> = words(original)
        .into_iter()
        .filter(|word| kept.contains(&word.text.as_str()))
        .collect();
    let after = words(&stripped);
    assert!(
        moved(&before, &after).is_none(),
        "{:?} in {after:?}",
        moved(&before, &after)
    );
    assert!(
        !after
            .iter()
            .any(|word| word.text.contains('{') || word.text.contains('}')),
        "{after:?}"
    );

    assert_eq!(before.len(), after.len(), "{after:?}");
    assert_eq!(stripped, strip_tags(original).unwrap());
}

#[test]
fn tags_are_removed_and_neighbouring_text_stays() {
    for content in [
        "BT /F1 12 Tf 20 100 Td (before {{name;type=text}} after) Tj ET",
        "BT /F1 12 Tf 20 100 Td [(before {)-20({na)30(me}} after)] TJ ET",
        "BT /F1 12 Tf 20 100 Td (before {{na) Tj (me}} after) Tj ET",
        "BT /F1 12 Tf 14 TL 2 Tw 20 100 Td (before) Tj 1 0.5 ( {{name}} after) \" ET",
    ] {
        assert_stripped(
            &page("/MediaBox[0 0 400 200]", content),
            &["before", "after"],
        );
    }
}

/// A form on two pages; `between` is drawn on the second page inside the tag.
fn shared_form(form: &[u8], first: &str, second: &str) -> Vec<u8> {
    let mut pdf = TestPdf::new();
    pdf.add("<</Type/Catalog/Pages 2 0 R>>");
    pdf.add("<</Type/Pages/Count 2/Kids[4 0 R 6 0 R]/MediaBox[0 0 400 200]/Resources 9 0 R>>");
    pdf.add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>");
    pdf.add("<</Type/Page/Parent 2 0 R/Contents 5 0 R>>");
    pdf.stream("", first.as_bytes());
    pdf.add("<</Type/Page/Parent 2 0 R/Contents 7 0 R>>");

    pdf.stream("", second.as_bytes());
    pdf.stream(
        "/Type/XObject/Subtype/Form/BBox[0 0 400 200]/Resources<</Font<</F1 3 0 R>>>>",
        form,
    );
    pdf.add("<</Font<</F1 3 0 R>>/XObject<</Fm 8 0 R>>>>");

    pdf.finish()
}

#[test]
fn tags_in_shared_form_xobjects_are_removed_from_every_page() {
    let original = shared_form(
        b"BT /F1 12 Tf 20 100 Td (before {{name}} after) Tj ET",
        "/Fm Do",
        "q 1 0 0 1 0 -50 cm /Fm Do Q",
    );
    assert_stripped(&original, &["before", "after"]);
}

#[test]
fn a_form_xobject_with_part_of_a_tag_is_copied_for_that_page_only() {
    let original = shared_form(
        b"BT /F1 12 Tf 20 100 Td (before {{na) Tj ET",
        "/Fm Do BT /F1 12 Tf 108 100 Td (me}} after) Tj ET",
        "/Fm Do",
    );
    let stripped = strip_tags(&original).unwrap();
    assert_clean(&stripped);

    let first = extracted(&stripped, 1);
    assert!(
        first.contains("before") && first.contains("after") && !first.contains("{{"),
        "{first}"
    );
    assert!(
        extracted(&stripped, 2).contains("{{na"),
        "no tag is complete there"
    );
}

#[test]
fn the_actual_text_of_a_tag_is_removed() {
    let content = "BT /F1 12 Tf 20 100 Td (before ) Tj /Span<</ActualText({{name}})>>BDC (xxx) Tj EMC ( after) Tj ET";
    let stripped = strip_tags(&page("/MediaBox[0 0 400 200]", content)).unwrap();
    assert!(!extracted(&stripped, 1).contains("name"));
}

#[test]
fn a_document_without_complete_tags_is_returned_unchanged() {
    let unclosed = page(
        "/MediaBox[0 0 400 200]",
        "BT /F1 12 Tf 20 100 Td ({{name) Tj ET",
    );
    assert_eq!(strip_tags(&unclosed).unwrap(), unclosed);
    assert_eq!(strip_tags(&contract()).unwrap(), contract());
}

#[test]
fn untagged_pages_of_a_tagged_document_are_unchanged() {
    let original = pages(&[
        (
            "/MediaBox[0 0 400 200]",
            "BT /F1 12 Tf 20 100 Td (first) Tj ET",
        ),
        (
            "/MediaBox[0 0 400 200]/Rotate 90",
            "BT /F1 12 Tf 20 100 Td (second {{a}} third) Tj ET",
        ),
    ]);

    assert_stripped(&original, &["first", "second", "third"]);
    assert!(matches!(
        strip_tags(b"no pdf"),
        Err(DocumentError::Unreadable(_))
    ));
}
