use std::fmt::Write as _;

use holdfast_documents::{
    DocumentError, FoundSignature, LaterChange, SignatureCoverage, signatures,
};

use crate::seals::seal;
use crate::support::{TempFile, TestPdf, authoritative, contract, mark, prepare_seal, run};

/// Objects of [`form`], by number.
const PAGE: usize = 3;
const TEXT_FIELD: usize = 5;
const NOTE: usize = 6;

/// A page with a text field and a note.
fn form() -> Vec<u8> {
    let mut pdf = TestPdf::new();
    pdf.add("<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[5 0 R]>>>>");
    pdf.add("<</Type/Pages/Kids[3 0 R]/Count 1>>");
    pdf.add("<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 300]/Contents 4 0 R/Annots[5 0 R 6 0 R]>>");
    pdf.stream("", b"0 0 10 10 re f");
    pdf.add(text_field("old"));
    pdf.add(note("first"));
    pdf.finish()
}

fn text_field(value: &str) -> String {
    format!(
        "<</Type/Annot/Subtype/Widget/FT/Tx/T(Name)/V({value})/Rect[10 10 90 30]/P {PAGE} 0 R>>"
    )
}

fn note(text: &str) -> String {
    format!("<</Type/Annot/Subtype/Text/Contents({text})/Rect[0 0 20 20]>>")
}

/// Appends a revision in which one object is replaced.
fn replaced(pdf: &[u8], number: usize, object: &str) -> Vec<u8> {
    let tail = String::from_utf8_lossy(&pdf[pdf.len() - 40..]).into_owned();
    let previous: usize = tail
        .lines()
        .rev()
        .find_map(|line| line.trim().parse().ok())
        .unwrap();
    let mut update = String::from("\n");
    let offset = pdf.len() + update.len();

    let _ = write!(update, "{number} 0 obj\n{object}\nendobj\n");
    let table = pdf.len() + update.len();
    let _ = write!(
        update,
        "xref\n{number} 1\n{offset:010} 00000 n \ntrailer\n<</Size 100/Root 1 0 R/Prev {previous}>>\n\
         startxref\n{table}\n%%EOF\n"
    );

    [pdf, update.as_bytes()].concat()
}

fn sealed(pdf: &[u8]) -> Vec<u8> {
    prepare_seal(pdf, &seal()).unwrap().pdf
}

fn first(pdf: &[u8]) -> FoundSignature {
    signatures(pdf).unwrap().signatures.remove(0)
}

#[test]
fn a_document_without_signatures_has_none() {
    let found = signatures(&contract()).unwrap();
    assert_eq!(found.signatures, []);
    assert_eq!(found.certification_level, None);
}

#[test]
fn a_signature_is_found_with_its_field_and_time() {
    let pdf = sealed(&contract());
    let found = first(&pdf);
    assert!(found.field.starts_with("Seal-"), "{}", found.field);
    assert_eq!(found.format, "ETSI.CAdES.detached");
    assert_eq!(found.claimed_at.as_deref(), Some("2026-05-04T15:04:05Z"));
    assert_eq!(found.contents.len(), 8 * 1024);
    assert_eq!(found.coverage, SignatureCoverage::WholeDocument);
    assert_eq!(found.later, LaterChange::None);

    let covered: u64 = found.ranges.iter().map(|(_, length)| length).sum();
    assert_eq!(covered, (pdf.len() - (2 * 8 * 1024 + 2)) as u64);
}

#[test]
fn signatures_are_listed_in_the_order_in_which_they_were_made() {
    let twice = sealed(&sealed(&contract()));
    let found = signatures(&twice).unwrap().signatures;
    let [earlier, later] = found.as_slice() else {
        panic!("{} signatures", found.len());
    };
    assert_eq!(earlier.coverage, SignatureCoverage::Revision);
    assert_eq!(earlier.later, LaterChange::Signatures);
    assert_eq!(later.coverage, SignatureCoverage::WholeDocument);
}

#[test]
fn a_later_change_is_weighed() {
    let signed = sealed(&form());
    let change = |number, object: &str| first(&replaced(&signed, number, object)).later;
    assert_eq!(
        change(TEXT_FIELD, &text_field("old")),
        LaterChange::Signatures
    );
    assert_eq!(
        change(TEXT_FIELD, &text_field("new")),
        LaterChange::FormFields
    );
    assert_eq!(change(NOTE, &note("second")), LaterChange::Annotations);

    let page = "<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R>>";
    assert_eq!(change(PAGE, page), LaterChange::Content);

    let script = "<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[5 0 R]>>\
                  /OpenAction<</S/JavaScript/JS(app.alert(1))>>>>";
    assert_eq!(change(1, script), LaterChange::Content);

    let marked = mark(&signed, &authoritative()).unwrap();
    assert_eq!(first(&marked).later, LaterChange::Content);
}

#[test]
fn the_appearance_of_a_signature_is_part_of_it() {
    let signed = sealed(&form());
    let text = String::from_utf8_lossy(&signed).into_owned();
    let at = text.find("/FT/Sig").unwrap();
    let start = text[..at].rfind(" 0 obj").unwrap();
    let number = text[..start].rsplit('\n').next().unwrap();
    let object = text[start + " 0 obj".len()..]
        .split("endobj")
        .next()
        .unwrap();
    let moved = object.replace("/Rect[0 0 0 0]", "/Rect[0 0 300 300]");
    assert_ne!(moved, object);

    let changed = replaced(&signed, number.parse().unwrap(), moved.trim());
    assert_eq!(first(&changed).later, LaterChange::Annotations);
}

#[test]
fn bytes_that_belong_to_no_revision_leave_a_part_unsigned() {
    let signed = sealed(&form());
    let found = first(&[&signed[..], b"more"].concat());

    // The update ends with %%EOF, so the bytes behind it are a later revision.
    assert_eq!(found.coverage, SignatureCoverage::Revision);
    assert_eq!(found.later, LaterChange::Signatures);

    // The gap is wider than the signature.
    let text = String::from_utf8_lossy(&signed).into_owned();
    let at = text.find("/ByteRange[0 ").unwrap() + "/ByteRange[0 ".len();
    let start: u64 = text[at..].split(' ').next().unwrap().parse().unwrap();
    let mut wider = signed.clone();
    let shorter = format!("{:<10}", start - 20);
    wider[at..at + 10].copy_from_slice(shorter.as_bytes());
    assert_eq!(first(&wider).coverage, SignatureCoverage::Part);
}

#[test]
fn too_many_signatures_are_refused() {
    let mut pdf = form();
    for number in 10..43 {
        pdf = replaced(
            &pdf,
            number,
            "<</Type/Sig/ByteRange[0 1 2 3]/Contents<00>>>",
        );
    }

    assert!(matches!(signatures(&pdf), Err(DocumentError::OverLimit(_))));
}

#[test]
fn an_encrypted_document_is_refused_as_such() {
    let file = TempFile::new(&sealed(&contract()));
    let encrypted = format!("{}.encrypted", file.path());
    let arguments = [
        "--encrypt",
        "",
        "owner",
        "256",
        "--",
        file.path(),
        &encrypted,
    ];

    run("qpdf", "qpdf", &arguments);
    let pdf = std::fs::read(&encrypted).unwrap();
    std::fs::remove_file(&encrypted).unwrap();
    assert!(matches!(signatures(&pdf), Err(DocumentError::Encrypted)));
}
