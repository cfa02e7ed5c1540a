use holdfast_documents::{Area, DocumentError, excerpt, fill, merge, page_image};

use crate::damage::{DamageSequence, mutate};
use crate::support::{
    TempFile, TestPdf, authoritative, contract, field, mark, moved, non_authoritative, page,
    qpdf_complaint, run, text, words,
};

/// Runs every function of this component on an upload and returns the documents that were written,
/// each of which must be valid.
fn all_functions(pdf: &[u8]) -> Vec<Result<Vec<u8>, DocumentError>> {
    let outcomes = vec![
        mark(pdf, &authoritative()),
        mark(pdf, &non_authoritative()),
        fill(pdf, &[field(1, [0.1, 0.1, 0.3, 0.05], text("value"))]),
        merge(&[pdf.to_vec(), pdf.to_vec()]),
    ];

    // A document without tags is returned unchanged, damage included.
    let _ = holdfast_documents::strip_tags(pdf);

    // Rendering and reading may fail, as long as they terminate.
    let _ = page_image(pdf, 1, 200);
    let place = Area {
        page: 1,
        x: 0.9,
        y: 0.9,
        w: 0.1,
        h: 0.1,
    };
    let _ = excerpt(pdf, &place, 200);
    let _ = holdfast_documents::form_fields(pdf.to_vec());

    outcomes
}

#[test]
fn bytes_that_are_not_a_pdf_are_refused() {
    for bytes in [
        &b""[..],
        b"%PDF-1.7",
        b"GIF89a",
        &[0; 4096],
        b"%PDF-1.7\n1 0 obj\n<<>>\nendobj\ntrailer<</Root 1 0 R>>",
    ] {
        for outcome in all_functions(bytes) {
            assert!(
                matches!(outcome, Err(DocumentError::Unreadable(_))),
                "{outcome:?}"
            );
        }
    }
}

#[test]
fn documents_without_pages_are_refused() {
    let mut pdf = TestPdf::new();
    pdf.add("<</Type/Catalog/Pages 2 0 R>>");
    pdf.add("<</Type/Pages/Count 0/Kids[]>>");

    let pdf = pdf.finish();
    for outcome in all_functions(&pdf) {
        assert!(
            matches!(outcome, Err(DocumentError::Unreadable(_))),
            "{outcome:?}"
        );
    }
}

#[test]
fn only_documents_that_need_a_password_are_refused_as_encrypted() {
    for (user, owner) in [("secret", "owner"), ("", "owner")] {
        for bits in ["128", "256"] {
            let plain = TempFile::new(&contract());
            let locked = TempFile::new(b"");
            let cipher: &[&str] = if bits == "128" { &["--use-aes=y"] } else { &[] };
            let arguments = [
                &["--encrypt", user, owner, bits][..],
                cipher,
                &["--", plain.path(), locked.path()],
            ]
            .concat();
            let (code, _, errors) = run("qpdf", "qpdf", &arguments);
            assert_eq!(code, 0, "{errors}");

            let locked = std::fs::read(locked.path()).unwrap();
            if user.is_empty() {
                let marked = mark(&locked, &authoritative()).unwrap();
                assert!(moved(&words(&contract()), &words(&marked)).is_none());
                assert!(qpdf_complaint(&marked).is_none());
                continue;
            }

            for outcome in all_functions(&locked) {
                assert_eq!(outcome, Err(DocumentError::Encrypted));
            }
            assert_eq!(page_image(&locked, 1, 100), Err(DocumentError::Encrypted));
        }
    }
}

#[test]
fn circles_end() {
    let mut pdf = TestPdf::new();
    pdf.add("<</Type/Catalog/Pages 2 0 R/AcroForm 1 0 R/Perms 1 0 R>>");
    pdf.add("<</Type/Pages/Count 1/Kids[3 0 R 2 0 R]/Parent 2 0 R>>");
    pdf.add("<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Resources 5 0 R/Annots[6 0 R]>>");
    pdf.add("4 0 R");
    pdf.add("<</XObject 5 0 R>>");
    pdf.add("<</Subtype/Widget/Rect[0 0 9 9]/Parent 6 0 R/AP<</N 7 0 R>>/V 6 0 R>>");

    pdf.stream(
        "/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</A 7 0 R>>>>",
        b"/A Do",
    );

    for marked in all_functions(&pdf.finish()).into_iter().flatten() {
        assert!(!marked.is_empty());
    }
}

#[test]
fn invalid_page_boxes_are_refused_or_tolerated() {
    for boxes in [
        "/MediaBox[0 0 0 0]",
        "/MediaBox[0 0 1e38 1e38]",
        "/MediaBox[0 0 99999999999999999999999999999999999999999999 1]",
        "/MediaBox[0 0 100 100]/CropBox[500 500 600 600]",
        "/MediaBox[a b c d]",
        "/MediaBox[0 0 100]",
        "/MediaBox[0 0 100 100]/Rotate 45",
        "/MediaBox[0 0 100 100]/Rotate 99999999999",
    ] {
        for pdf in all_functions(&page(boxes, "0 0 m")).into_iter().flatten() {
            assert!(pdf.starts_with(b"%PDF"), "{boxes}");
        }
    }
}

#[test]
fn objects_of_the_wrong_type_are_tolerated() {
    for entries in [
        "/Resources 7/MediaBox[0 0 200 200]",
        "/Resources[1 2]/MediaBox[0 0 200 200]",
        "/Resources<</XObject[1]>>/MediaBox[0 0 200 200]",
        "/Resources<</XObject 99 0 R>>/MediaBox[0 0 200 200]",
        "/Resources 99 0 R/MediaBox[0 0 200 200]",
        "/Annots 5/MediaBox[0 0 200 200]",
        "/Annots[null 1 (a) 99 0 R<</Subtype/Widget>><</Subtype/Widget/Rect[1 2]>>]/MediaBox[0 0 200 200]",
        "/Annots[<</Subtype/Widget/Rect[0 0 50 50]/AP<</N 3 0 R>>>>]/MediaBox[0 0 200 200]",
        "/Annots[<</Subtype/Widget/Rect[0 0 50 50]/AP<</N<</On 5 0 R>>>>/AS/Missing>>]/MediaBox[0 0 200 200]",
    ] {
        let pdf = page(entries, "");
        for outcome in all_functions(&pdf) {
            let written = outcome.unwrap_or_else(|error| panic!("{entries}: {error:?}"));
            // Existing damage may stay, but none may be added.
            if qpdf_complaint(&pdf).is_none() {
                assert_eq!(qpdf_complaint(&written), None, "{entries}");
            }
        }
    }
}

#[test]
fn numbers_near_the_end_of_the_integer_range_are_refused() {
    let pdf = String::from_utf8(page("/MediaBox[0 0 200 200]", "")).unwrap_or_default();
    assert!(pdf.is_empty(), "the header is binary");
    let mut bytes = b"%PDF-1.7\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Count 1/Kids[4294967295 0 R]>>endobj\n4294967295 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>endobj\n".to_vec();
    bytes.extend_from_slice(b"trailer<</Root 1 0 R/Size 4294967296>>");
    for outcome in all_functions(&bytes) {
        assert!(outcome.is_err());
    }
}

#[test]
fn decompression_bombs_do_not_exhaust_memory() {
    // 96 MiB of spaces in page content, deflated by qpdf.
    let big = page("/MediaBox[0 0 200 200]", &" ".repeat(96 * 1024 * 1024));
    let plain = TempFile::new(&big);
    let deflated = TempFile::new(b"");
    let (code, _, errors) = run(
        "qpdf",
        "qpdf",
        &["--compress-streams=y", plain.path(), deflated.path()],
    );
    assert_eq!(code, 0, "{errors}");

    let deflated = std::fs::read(deflated.path()).unwrap();
    assert!(deflated.len() < 1024 * 1024);
    assert!(matches!(
        mark(&deflated, &authoritative()),
        Err(DocumentError::OverLimit(_))
    ));
    assert!(matches!(
        page_image(&deflated, 1, 100),
        Err(DocumentError::OverLimit(_))
    ));
}

#[test]
fn damaged_copies_of_a_contract_return_a_result_or_an_error() {
    let original = contract();
    let mut sequence = DamageSequence(1);
    for _ in 0..60 {
        let damaged = mutate(&original, &mut sequence);
        for written in all_functions(&damaged).into_iter().flatten() {
            assert!(written.starts_with(b"%PDF") || written.starts_with(&damaged));
        }
    }
}
