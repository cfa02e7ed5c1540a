//! Damaged documents give a result or a typed error, never a panic.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "../../reader/tests/support/damage.rs"]
mod damage;
#[path = "../../reader/tests/support/mod.rs"]
mod support;

use damage::{DamageSequence, mutate};
use holdfast_placement::{inspect, occurrences, tags, text};
use support::PdfBuilder;

fn everything_in_one() -> Vec<u8> {
    let mut pdf = PdfBuilder::new();
    let form = pdf.stream(
        "/Type /XObject /Subtype /Form /BBox [0 0 200 100] /Matrix [1 0 0 1 2 3] \
         /Resources << /Font << /F1 3 0 R >> >>",
        b"BT /F1 8 Tf 10 10 Td ({{Initials;type=initials}}) Tj ET",
    );
    let map = pdf.stream(
        "",
        b"begincmap 1 begincodespacerange <0000> <FFFF> endcodespacerange \
          1 beginbfrange <0001> <0004> <0041> endbfrange endcmap",
    );

    let descendant = pdf.object(
        "<< /Type /Font /Subtype /CIDFontType2 /BaseFont /X /DW 500 /W [2 [1500] 4 9 300] \
         /CIDSystemInfo << /Registry (Adobe) /Ordering (Japan1) /Supplement 0 >> >>",
    );
    let composite = pdf.object(&format!(
        "<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /Identity-H \
         /DescendantFonts [{descendant} 0 R] /ToUnicode {map} 0 R >>"
    ));

    let widget = pdf.object(&format!(
        "<< /Type /Annot /Subtype /Widget /F 4 /Rect [10 10 90 30] /AP << /N {form} 0 R >> >>"
    ));
    pdf.catalog(&format!(
        "/AcroForm << /Fields [{widget} 0 R] >> /OCProperties << /OCGs [] /D << /OFF [] >> >>"
    ));
    pdf.page_with(
        &format!("/MediaBox [0 0 200 100] /CropBox [5 5 190 95] /Rotate 90 /Annots [{widget} 0 R]"),
        &format!("/Font << /F1 3 0 R /C {composite} 0 R >> /XObject << /X {form} 0 R >>"),
        "q 1 0 0 1 0 0 cm BT /F1 10 Tf 1 Tc 2 Tw 90 Tz 12 TL 3 Ts 10 80 Td (Sign {{A;ty) Tj \
         [(pe=te) -20 (xt}})] TJ (next) ' 1 2 (third) \" /C 9 Tf <00010002> Tj \
         /Span <</ActualText (abc)>> BDC /F1 5 Tf (xyz) Tj EMC T* ET Q \
         BI /W 1 /H 1 /BPC 8 ID x EI /X Do",
    );

    pdf.build()
}

fn read_all(pdf: &[u8]) {
    let _ = inspect(pdf.to_vec());
    let _ = text(pdf.to_vec(), 1);
    let _ = occurrences(pdf.to_vec(), "sign", None);
    let _ = tags(pdf.to_vec());
}

#[test]
fn damaged_documents_never_panic() {
    let original = everything_in_one();
    let fields = tags(original.clone()).unwrap();
    assert_eq!(fields.len(), 2, "the undamaged document has what it should");

    let rounds = std::env::var("HOLDFAST_MUTATIONS")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(1_000);
    let mut sequence = DamageSequence(1);
    for _ in 0..rounds {
        read_all(&mutate(&original, &mut sequence));
    }
}

#[test]
fn damaged_corpus_files_never_panic() {
    let Some(folder) = std::env::var_os("HOLDFAST_CORPUS") else {
        eprintln!("skipped the mutations of 19 corpus files: HOLDFAST_CORPUS is not set");
        return;
    };

    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "pdf"))
        .filter(|path| !path.to_string_lossy().contains("bomb"))
        .collect();
    paths.sort();

    let mut sequence = DamageSequence(2);
    for path in paths {
        let original = std::fs::read(&path).unwrap();
        for _ in 0..10 {
            read_all(&mutate(&original, &mut sequence));
        }
    }
}
