use holdfast_documents::{DocumentError, merge};

use crate::support::{PageRaster, TestPdf, assert_clean, contract, extracted, facts, page, pages};

#[test]
fn merged_pages_keep_the_given_order() {
    let first = pages(&[
        (
            "/MediaBox[0 0 200 100]",
            "BT /F1 12 Tf 10 10 Td (one) Tj ET",
        ),
        (
            "/MediaBox[0 0 200 100]",
            "BT /F1 12 Tf 10 10 Td (two) Tj ET",
        ),
    ]);

    let second = page(
        "/MediaBox[0 0 300 300]/Rotate 90",
        "BT /F1 12 Tf 10 10 Td (three) Tj ET",
    );
    let merged = merge(&[first, contract(), second]).unwrap();
    assert_clean(&merged);
    assert!(facts(&merged, &[]).contains("Pages:           7"));

    for (number, word) in [
        (1, "one"),
        (2, "two"),
        (3, "RETAIL INSTALLMENT"),
        (6, "Buyer signature:"),
        (7, "three"),
    ] {
        assert!(extracted(&merged, number).contains(word), "page {number}");
    }
}

#[test]
fn merged_pages_look_unchanged() {
    let merged = merge(&[contract(), contract()]).unwrap();
    for number in 1..=4 {
        let before = PageRaster::poppler(&contract(), number);
        assert!(PageRaster::poppler(&merged, number).distance(&before) < 0.01);
        assert!(PageRaster::poppler(&merged, number + 4).distance(&before) < 0.01);
    }
}

#[test]
fn merging_keeps_inherited_page_attributes() {
    let mut pdf = TestPdf::new();
    pdf.add("<</Type/Catalog/Pages 2 0 R>>");
    pdf.add("<</Type/Pages/Count 1/Kids[3 0 R]/MediaBox[0 0 400 200]/Rotate 90/Resources<</Font<</F1 5 0 R>>>>>>");
    pdf.add("<</Type/Page/Parent 2 0 R/Contents 4 0 R>>");
    pdf.stream("", b"BT /F1 20 Tf 50 50 Td (inherited) Tj ET");
    pdf.add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>");
    let original = pdf.finish();
    let merged = merge(&[original.clone(), contract()]).unwrap();
    assert_eq!(
        PageRaster::poppler(&merged, 1).difference(&PageRaster::poppler(&original, 1)),
        None
    );
}

#[test]
fn merging_keeps_hidden_layers_hidden() {
    let mut pdf = TestPdf::new();
    pdf.add("<</Type/Catalog/Pages 2 0 R/OCProperties<</OCGs[5 0 R 6 0 R]/D<</Order[5 0 R 6 0 R]/OFF[6 0 R]>>>>>>");
    pdf.add("<</Type/Pages/Count 1/Kids[3 0 R]>>");
    pdf.add("<</Type/Page/Parent 2 0 R/MediaBox[0 0 100 100]/Contents 4 0 R/Resources<</Properties<</Shown 5 0 R/Hidden 6 0 R>>>>>>");
    pdf.stream(
        "",
        b"/OC /Shown BDC 0 0 50 50 re f EMC /OC /Hidden BDC 50 50 50 50 re f EMC",
    );

    pdf.add("<</Type/OCG/Name(shown)>>");
    pdf.add("<</Type/OCG/Name(hidden)>>");
    let original = pdf.finish();
    let merged = merge(&[contract(), original.clone()]).unwrap();
    assert_clean(&merged);
    assert_eq!(
        PageRaster::poppler(&merged, 5).difference(&PageRaster::poppler(&original, 1)),
        None
    );
}

#[test]
fn merging_does_not_copy_the_old_page_tree_through_links() {
    let mut pdf = TestPdf::new();
    pdf.add("<</Type/Catalog/Pages 2 0 R>>");
    pdf.add("<</Type/Pages/Count 2/Kids[3 0 R 4 0 R]>>");
    pdf.add("<</Type/Page/Parent 2 0 R/MediaBox[0 0 100 100]/Annots[5 0 R]>>");
    pdf.add("<</Type/Page/Parent 2 0 R/MediaBox[0 0 100 100]>>");
    pdf.add("<</Type/Annot/Subtype/Link/Rect[0 0 50 50]/Dest[4 0 R/Fit]/P 3 0 R>>");
    let original = pdf.finish();
    let merged = merge(&[original.clone(), original]).unwrap();
    assert_clean(&merged);

    let file = String::from_utf8_lossy(&merged);
    assert_eq!(file.matches("/Type/Pages").count(), 1);
    assert_eq!(
        file.matches("/Type/Page/").count() + file.matches("/Type/Page>").count(),
        4,
        "{file}"
    );
}

#[test]
fn a_merge_error_names_the_faulty_document() {
    let outcome = merge(&[contract(), b"no pdf".to_vec()]);
    assert!(
        matches!(&outcome, Err(DocumentError::Unreadable(reason)) if reason.starts_with("document 2")),
        "{outcome:?}"
    );
    assert!(matches!(merge(&[]), Err(DocumentError::Other(_))));
}

#[test]
fn equal_input_gives_equal_bytes() {
    let parts = [contract(), page("/MediaBox[0 0 100 100]", "")];
    assert_eq!(merge(&parts), merge(&parts));
}
