//! Copies as files of their own: no part of one is the document without the mark.

use holdfast_documents::{
    DocumentError, SignatureHandling, WatermarkRequest, prepare_copies, watermark, write_anew,
};
use lopdf::Document;

use crate::marks::certified;
use crate::seals::both;
use crate::support::{
    PageRaster, TempFile, TestPdf, assert_clean, contract, extracted, facts, mark, moved,
    non_authoritative, page, pages, run, words,
};

const MARK: &str = "Non-authoritative copy";

/// Marks a copy and writes it anew, as the host does.
fn copy_of(pdf: &[u8]) -> Vec<u8> {
    let marked = mark(pdf, &non_authoritative()).unwrap();
    let written = write_anew(marked, SignatureHandling::Keep).unwrap();
    written.expect("the document has no signature")
}

/// Returns the places at which a file may be cut so that the part before looks like a file.
fn cuts(pdf: &[u8]) -> Vec<usize> {
    let ends = |word: &[u8]| -> Vec<usize> {
        let found = pdf.windows(word.len()).enumerate();
        found
            .filter(|(_, bytes)| *bytes == word)
            .map(|(at, _)| at)
            .collect()
    };
    let mut cuts = ends(b"startxref");
    cuts.extend(ends(b"%%EOF").into_iter().map(|at| at + 5));

    cuts.extend(ends(b"endobj").into_iter().map(|at| at + 6));
    cuts.extend(ends(b"endstream").into_iter().map(|at| at + 9));
    cuts.extend((0..pdf.len()).step_by(pdf.len() / 40 + 1));
    cuts.sort_unstable();
    cuts.dedup();

    cuts
}

/// Returns the text of each page that poppler shows, also of one that it had to repair.
fn shown(pdf: &[u8]) -> Vec<String> {
    let file = TempFile::new(pdf);
    let (code, output, _) = run("pdftotext", "poppler-utils", &["-raw", file.path(), "-"]);
    let text = String::from_utf8_lossy(&output).into_owned();
    let pages = text.split('\u{c}').filter(|page| !page.trim().is_empty());
    if code == 0 {
        pages.map(str::to_owned).collect()
    } else {
        Vec::new()
    }
}

/// Fails if a part of the file shows a page without the mark.
fn assert_inseparable(copy: &[u8]) {
    for cut in cuts(copy) {
        let part = &copy[..cut];
        for (number, text) in shown(part).into_iter().enumerate() {
            assert!(
                text.contains(MARK),
                "the first {cut} of {} bytes show page {} without the mark: {text}",
                copy.len(),
                number + 1
            );
        }

        if let Ok(document) = Document::load_mem(part) {
            for id in document.get_pages().into_values() {
                let content = document.get_page_content(id);
                let content = String::from_utf8_lossy(&content);
                assert!(
                    content.contains("/Subtype/Watermark"),
                    "the first {cut} bytes open without the mark: {content}"
                );
            }
        }
    }
}

/// Returns the contents of all streams, as `qpdf --qdf` writes them.
fn streams(pdf: &[u8]) -> Vec<String> {
    let file = TempFile::new(pdf);
    let arguments = ["--qdf", "--object-streams=disable", file.path(), "-"];
    let (code, output, errors) = run("qpdf", "qpdf", &arguments);
    assert_eq!(code, 0, "qpdf: {errors}");

    let text = String::from_utf8_lossy(&output).into_owned();
    let parts = text.split("\nstream\n").skip(1);
    parts
        .filter_map(|part| Some(part.split_once("endstream")?.0.to_owned()))
        .collect()
}

#[test]
fn an_update_with_a_mark_comes_off() {
    let marked = mark(&contract(), &non_authoritative()).unwrap();
    let part = &marked[..contract().len()];
    let without = shown(part).into_iter().filter(|text| !text.contains(MARK));
    assert_eq!(without.count(), 4, "what the other tests look for");
}

#[test]
fn no_part_of_a_copy_is_the_document_without_the_mark() {
    let copy = copy_of(&contract());
    assert_clean(&copy);
    assert!(!copy.starts_with(&contract()[..contract().len() / 2]));
    assert_inseparable(&copy);
}

#[test]
fn a_copy_keeps_words_pages_and_looks() {
    let marked = mark(&contract(), &non_authoritative()).unwrap();
    let copy = copy_of(&contract());
    assert!(moved(&words(&contract()), &words(&copy)).is_none());

    for number in 1..=4 {
        assert!(extracted(&copy, number).contains(MARK));
        let (before, after) = (
            PageRaster::poppler(&marked, number),
            PageRaster::poppler(&copy, number),
        );

        // Numbers are written shorter, which moves the edge of a letter by less than a point.
        assert!(before.distance(&after) < 0.1, "page {number}");
    }

    let metadata = facts(&copy, &["-custom"]);
    assert!(metadata.contains(MARK), "{metadata}");
    assert_eq!(copy, copy_of(&contract()), "equal input gives equal bytes");
}

#[test]
fn a_page_and_its_mark_share_one_stream() {
    let original = pages(&[
        (
            "/MediaBox[0 0 400 400]",
            "BT /F1 20 Tf 50 200 Td (First) Tj ET",
        ),
        (
            "/MediaBox[0 0 400 400]",
            "BT /F1 20 Tf 50 200 Td (Second) Tj ET",
        ),
    ]);

    let copy = copy_of(&original);
    for word in ["(First) Tj", "(Second) Tj"] {
        let found: Vec<String> = streams(&copy)
            .into_iter()
            .filter(|stream| stream.contains(word))
            .collect();
        assert_eq!(found.len(), 1, "{word} in {found:?}");
        assert!(found[0].contains("/Artifact"), "{}", found[0]);
    }
}

#[test]
fn nothing_of_earlier_revisions_stays() {
    let twice = mark(&contract(), &non_authoritative()).unwrap();
    let twice = mark(&twice, &non_authoritative()).unwrap();
    let written = write_anew(twice, SignatureHandling::Keep).unwrap().unwrap();
    let count = |word: &[u8]| {
        let found = written.windows(word.len()).filter(|bytes| *bytes == word);
        found.count()
    };
    assert_eq!((count(b"%%EOF"), count(b"startxref")), (1, 1));
    assert_eq!(count(b"/Prev"), 0);

    assert_inseparable(&written);
}

#[test]
fn a_copy_of_object_streams_is_inseparable_too() {
    let file = TempFile::new(&contract());
    let arguments = ["--object-streams=generate", file.path(), "-"];
    let (code, packed, errors) = run("qpdf", "qpdf", &arguments);
    assert_eq!(code, 0, "{errors}");
    let copy = copy_of(&packed);
    assert_clean(&copy);
    assert_inseparable(&copy);
    assert!(moved(&words(&packed), &words(&copy)).is_none());
}

#[test]
fn a_repaired_document_gives_an_inseparable_copy() {
    let mut damaged = contract();
    let at = damaged.windows(9).rposition(|bytes| bytes == b"startxref");
    damaged.truncate(at.unwrap());
    damaged.extend_from_slice(b"startxref\n99999999\n%%EOF\n");
    let copy = copy_of(&damaged);
    assert_clean(&copy);
    assert_inseparable(&copy);
}

/// The holder's line of a watermarked copy comes off no more than the mark.
#[test]
fn a_watermark_is_inseparable() {
    let copy = copy_of(&contract());
    let request = WatermarkRequest {
        line: format!("{MARK} of Robin Park"),
        at_head: false,
        hidden: "cpy_01jt8s5gq2e6m9x4k7w3c5d8fa".into(),
        marked_at: "2026-05-04T15:04:05.000Z".into(),
    };
    let update = watermark(copy.clone(), &request).unwrap();
    let marked = [copy, update].concat();

    let written = write_anew(marked, SignatureHandling::Keep)
        .unwrap()
        .unwrap();
    for cut in cuts(&written) {
        for text in shown(&written[..cut]) {
            assert!(
                text.contains("of Robin Park"),
                "the first {cut} bytes: {text}"
            );
        }
    }
}

#[test]
fn a_signed_document_is_kept_so_that_its_signatures_stay_valid() {
    let made = prepare_copies(contract(), &both()).unwrap().unwrap();
    let sealed = [contract(), made.authoritative.appended].concat();
    for signed in [sealed, certified(1), certified(2)] {
        let marked = mark(&signed, &non_authoritative()).unwrap();
        let kept = write_anew(marked, SignatureHandling::Keep);
        assert_eq!(kept, Ok(None));
    }
}

#[test]
fn words_that_look_like_a_signature_are_none() {
    let content = "BT /F1 20 Tf 50 200 Td (/ByteRange [0 1 2 3]) Tj ET";
    let copy = copy_of(&page("/MediaBox[0 0 400 400]", content));
    assert_inseparable(&copy);
}

#[test]
fn a_document_to_print_shows_its_signatures_and_has_none() {
    let mut pdf = TestPdf::new();
    pdf.add("<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[5 0 R]/SigFlags 3>>>>");
    pdf.add("<</Type/Pages/Count 1/Kids[3 0 R]>>");
    pdf.add("<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 400]/Annots[5 0 R]>>");
    pdf.add("<</Type/Sig/Filter/Adobe.PPKLite/ByteRange[0 1 2 3]/Contents<00>>>");
    pdf.add(
        "<</Type/Annot/Subtype/Widget/FT/Sig/T(Seller)/F 4/Rect[50 50 250 150]/V 4 0 R/AP<</N 6 0 R>>>>",
    );

    pdf.stream(
        "/Type/XObject/Subtype/Form/BBox[0 0 200 100]",
        b"1 0 0 rg 0 0 200 100 re f",
    );
    let signed = pdf.finish();
    let printed = write_anew(signed, SignatureHandling::Flatten)
        .unwrap()
        .unwrap();
    assert_clean(&printed);
    assert_eq!(PageRaster::poppler(&printed, 1).at(0.3, 0.75), [255, 0, 0]);

    for trace in [&b"/ByteRange"[..], b"/AcroForm", b"/Sig"] {
        let found = printed.windows(trace.len()).any(|bytes| bytes == trace);
        assert!(!found, "{}", String::from_utf8_lossy(trace));
    }
}

/// Data that only another program can decode stay as they are, and the mark stays on the page.
#[test]
fn content_in_an_unknown_encoding_stays_readable() {
    let mut pdf = TestPdf::new();
    pdf.add("<</Type/Catalog/Pages 2 0 R>>");
    pdf.add("<</Type/Pages/Count 1/Kids[3 0 R]>>");
    pdf.add("<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 400]/Contents 4 0 R>>");
    pdf.stream("/Filter/Unknown", b"1 0 0 rg 0 0 9 9 re f");
    let copy = copy_of(&pdf.finish());
    assert!(extracted(&copy, 1).contains(MARK));
}

/// An encoding that refers to other objects is followed.
#[test]
fn content_with_an_indirect_filter_is_joined() {
    let mut pdf = TestPdf::new();
    pdf.add("<</Type/Catalog/Pages 2 0 R>>");
    pdf.add("<</Type/Pages/Count 1/Kids[3 0 R]>>");
    pdf.add("<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 400]/Contents 4 0 R>>");
    pdf.stream(
        "/Filter 5 0 R",
        b"31203020302072672030203020343030203430302072652066>",
    );

    pdf.add("/ASCIIHexDecode");
    let copy = copy_of(&pdf.finish());
    assert_clean(&copy);
    assert_eq!(PageRaster::poppler(&copy, 1).at(0.9, 0.9), [255, 0, 0]);

    let whole = streams(&copy);
    assert!(
        whole
            .iter()
            .any(|stream| stream.contains("400 400 re f") && stream.contains("/Artifact"))
    );
}

#[test]
fn an_unreadable_document_is_refused() {
    let refused = write_anew(b"no PDF".to_vec(), SignatureHandling::Keep);
    assert!(
        matches!(refused, Err(DocumentError::Unreadable(_))),
        "{refused:?}"
    );
}
