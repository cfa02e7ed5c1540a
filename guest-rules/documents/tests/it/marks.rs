use holdfast_documents::{DocumentError, MarkRequest, MarkWords, Marked, worded_mark};

use crate::support::{
    PageRaster, TestPdf, assert_clean, authoritative, contract, extracted, facts, mark, moved,
    non_authoritative, page, pages, words,
};

#[test]
fn a_marked_copy_starts_with_the_original_bytes_and_keeps_every_word_in_place() {
    let original = contract();
    for request in [authoritative(), non_authoritative()] {
        let marked = mark(&original, &request).unwrap();
        assert!(marked.starts_with(&original));
        assert_clean(&marked);
        assert!(moved(&words(&original), &words(&marked)).is_none());
    }
}

#[test]
fn every_page_is_marked_with_its_kind_of_copy() {
    let authoritative_copy = mark(&contract(), &authoritative()).unwrap();
    let other_copy = mark(&contract(), &non_authoritative()).unwrap();
    for page in 1..=4 {
        let found = extracted(&authoritative_copy, page);
        assert!(found.contains("Authoritative copy · env_01jt8s5gq2e6m9x4k7w3c5d8fa · Secured party: Crescent Auto Finance, LLC"), "{found}");
        assert!(!found.contains("Non-authoritative copy"));
        let found = extracted(&other_copy, page);
        assert!(found.contains("Non-authoritative copy"), "{found}");
    }
}

#[test]
fn the_metadata_names_the_kind_of_copy() {
    let marked = facts(&mark(&contract(), &authoritative()).unwrap(), &["-custom"]);
    for line in [
        "Authoritative copy",
        "env_01jt8s5gq2e6m9x4k7w3c5d8fa",
        "Crescent Auto Finance, LLC",
        "2026-05-04T15:04:05.000Z",
    ] {
        assert!(marked.contains(line), "{marked}");
    }

    assert!(
        marked.contains("Retail Installment Sale Contract"),
        "what was there stays: {marked}"
    );

    let marked = facts(
        &mark(&contract(), &non_authoritative()).unwrap(),
        &["-custom"],
    );
    assert!(marked.contains("Non-authoritative copy"), "{marked}");
}

#[test]
fn marks_are_upright_on_the_page_as_displayed() {
    for boxes in [
        "/MediaBox[0 0 600 400]",
        "/MediaBox[0 0 900 900]/CropBox[100 150 700 550]",
        "/MediaBox[600 400 0 0]",
    ] {
        for turn in ["", "/Rotate 90", "/Rotate 180", "/Rotate 270"] {
            let blank = page(&format!("{boxes}{turn}"), "");
            let before = PageRaster::poppler(&blank, 1);
            let marked = mark(&blank, &authoritative()).unwrap();
            let [left, top, right, bottom] =
                PageRaster::poppler(&marked, 1).difference(&before).unwrap();
            assert!(
                top > 0.95 && bottom <= 1.0 && left > 0.05 && right < 0.95,
                "{boxes}{turn}: {top} {bottom}"
            );

            let marked = mark(&blank, &non_authoritative()).unwrap();
            let [left, top, right, bottom] =
                PageRaster::poppler(&marked, 1).difference(&before).unwrap();
            assert!(
                top < 0.06 && bottom > 0.7 && right - left > 0.4,
                "{boxes}{turn}: {top} {bottom}"
            );
        }
    }
}

#[test]
fn the_mark_keeps_the_contract_legible() {
    let dark = page("/MediaBox[0 0 400 400]", "0 g 0 0 400 400 re f");
    let marked = PageRaster::poppler(&mark(&dark, &non_authoritative()).unwrap(), 1);
    assert!(
        marked.at(0.5, 0.5).iter().all(|channel| *channel < 60),
        "black stays dark"
    );

    let light = page("/MediaBox[0 0 400 400]", "");
    let marked = PageRaster::poppler(&mark(&light, &non_authoritative()).unwrap(), 1);
    assert!(
        marked
            .rgb
            .iter()
            .skip(400 * 3 * 40)
            .all(|channel| *channel > 190),
        "white stays light"
    );
}

#[test]
fn the_banner_is_visible_on_a_dark_scan() {
    let dark = page("/MediaBox[0 0 400 400]", "0 g 0 0 400 400 re f");
    let marked = PageRaster::poppler(&mark(&dark, &non_authoritative()).unwrap(), 1);
    let top = &marked.rgb[..400 * 3 * 20];
    assert!(
        top.chunks(3)
            .filter(|pixel| pixel.iter().all(|channel| *channel > 240))
            .count()
            > 200
    );
}

#[test]
fn a_marked_copy_can_be_marked_again() {
    let once = mark(&contract(), &authoritative()).unwrap();
    let twice = mark(&once, &non_authoritative()).unwrap();
    assert!(twice.starts_with(&once));
    assert_clean(&twice);
    assert!(extracted(&twice, 1).contains("Non-authoritative copy"));
}

#[test]
fn the_document_identifier_depends_only_on_the_input() {
    let one = mark(&contract(), &authoritative()).unwrap();
    assert_eq!(one, mark(&contract(), &authoritative()).unwrap());

    let other = MarkRequest {
        envelope_id: "env_other".to_owned(),
        ..authoritative()
    };
    let identifier = |pdf: &[u8]| {
        let text = String::from_utf8_lossy(pdf).into_owned();
        text[text.rfind("/ID").unwrap()..]
            .chars()
            .take(90)
            .collect::<String>()
    };
    assert_ne!(
        identifier(&one),
        identifier(&mark(&contract(), &other).unwrap())
    );
}

/// Returns a document certified at a DocMDP level. It has no real signature, because only the
/// declared permission matters.
pub fn certified(level: u8) -> Vec<u8> {
    let mut pdf = TestPdf::new();
    pdf.add("<</Type/Catalog/Pages 2 0 R/Perms<</DocMDP 4 0 R>>>>");
    pdf.add("<</Type/Pages/Count 1/Kids[3 0 R]>>");
    pdf.add("<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]>>");
    pdf.add(format!("<</Type/Sig/Filter/Adobe.PPKLite/Reference[<</Type/SigRef/TransformMethod/DocMDP/TransformParams<</Type/TransformParams/P {level}/V/1.2>>>>]>>"));
    pdf.finish()
}

#[test]
fn a_document_certified_against_changes_stays_and_its_copy_is_marked() {
    let strict = certified(1);
    assert_eq!(mark(&strict, &authoritative()).unwrap(), strict);
    assert!(
        extracted(&mark(&strict, &non_authoritative()).unwrap(), 1)
            .contains("Non-authoritative copy")
    );
    let lenient = certified(2);
    assert!(mark(&lenient, &authoritative()).unwrap().len() > lenient.len());
}

#[test]
fn a_damaged_cross_reference_table_is_rewritten_before_marking() {
    let original = contract();
    let mut damaged = original.clone();
    let at = damaged
        .windows(9)
        .rposition(|window| window == b"startxref")
        .unwrap();
    damaged.truncate(at);

    damaged.extend_from_slice(b"startxref\n99999999\n%%EOF\n");
    let marked = mark(&damaged, &authoritative()).unwrap();
    assert!(!marked.starts_with(&damaged));

    assert_clean(&marked);
    assert!(extracted(&marked, 4).contains("Authoritative copy"));
    assert!(extracted(&marked, 4).contains("Buyer signature:"));
}

#[test]
fn pages_of_equal_size_share_one_mark_object() {
    let many: Vec<(&str, &str)> = vec![("/MediaBox[0 0 612 792]", ""); 200];
    let original = pages(&many);
    let marked = mark(&original, &authoritative()).unwrap();
    assert!(
        marked.len() - original.len() < 200 * 500,
        "{}",
        marked.len() - original.len()
    );
    assert!(extracted(&marked, 200).contains("Authoritative copy"));
}

#[test]
fn marking_without_an_envelope_or_a_time_is_refused() {
    for request in [
        MarkRequest {
            envelope_id: " ".to_owned(),
            ..authoritative()
        },
        MarkRequest {
            marked_at: "yesterday".to_owned(),
            ..authoritative()
        },
    ] {
        assert!(matches!(
            mark(&contract(), &request),
            Err(DocumentError::Other(_))
        ));
    }

    let endless = MarkRequest {
        secured_party: Some("A".repeat(1_000)),
        ..authoritative()
    };
    assert!(matches!(
        mark(&contract(), &endless),
        Err(DocumentError::OverLimit(_))
    ));
}

#[test]
fn tiny_and_huge_pages_are_marked() {
    for size in ["3 3", "30 2000", "14400 14400", "2000 20"] {
        let blank = page(&format!("/MediaBox[0 0 {size}]"), "");
        assert_clean(&mark(&blank, &non_authoritative()).unwrap());
        assert_clean(&mark(&blank, &authoritative()).unwrap());
    }
}

#[test]
fn words_of_another_language_follow_the_english_ones() {
    let words = MarkWords {
        authoritative: "Maßgebliches Exemplar".to_owned(),
        non_authoritative: "非权威副本".to_owned(),
        secured_party: "Gesicherte Partei:".to_owned(),
    };

    let original = contract();
    for (request, line) in [
        (
            authoritative(),
            "Authoritative copy · Maßgebliches Exemplar · env_01jt8s5gq2e6m9x4k7w3c5d8fa · Gesicherte Partei: Crescent",
        ),
        (
            non_authoritative(),
            "Non-authoritative copy · 非权威副本 · env_",
        ),
    ] {
        let marked = worded_mark(original.clone(), &request, Some(&words)).unwrap();
        let Marked::Appended(tail) = marked else {
            panic!("{marked:?}");
        };

        let marked = [&original[..], &tail].concat();
        assert_clean(&marked);
        let found = extracted(&marked, 1);
        assert!(found.contains(line), "{found}");

        let metadata = facts(&marked, &["-custom"]);
        assert!(metadata.contains("uthoritative copy"), "{metadata}");
    }
}

#[test]
fn words_that_would_push_the_mark_off_the_page_are_refused() {
    let words = MarkWords {
        authoritative: "x".repeat(301),
        non_authoritative: String::new(),
        secured_party: String::new(),
    };
    let refused = worded_mark(contract(), &authoritative(), Some(&words));
    assert!(
        matches!(refused, Err(DocumentError::OverLimit(_))),
        "{refused:?}"
    );
}
