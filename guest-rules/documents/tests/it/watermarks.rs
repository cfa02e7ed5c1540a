use holdfast_documents::{DocumentError, WatermarkRequest, watermark};

use crate::support::{
    PageRaster, assert_clean, authoritative, contract, extracted, facts, mark, moved,
    non_authoritative, page, words,
};

const ID: &str = "cpy_01jt8s5gq2e6m9x4k7w3c5d8fa";

fn request() -> WatermarkRequest {
    WatermarkRequest {
        line: format!("Copy for Robin Park, Example Funding · 2026-05-04 · Due diligence · {ID}"),
        at_head: false,
        hidden: ID.into(),
        marked_at: "2026-05-04T15:04:05.000Z".into(),
    }
}

fn watermarked(pdf: &[u8], request: &WatermarkRequest) -> Vec<u8> {
    let update = watermark(pdf.to_vec(), request).unwrap();
    [pdf, &update].concat()
}

#[test]
fn every_page_names_the_holder_and_keeps_its_words_in_place() {
    let copy = mark(&contract(), &non_authoritative()).unwrap();
    let marked = watermarked(&copy, &request());
    assert_clean(&marked);
    assert!(moved(&words(&copy), &words(&marked)).is_none());

    for number in 1..=4 {
        let found = extracted(&marked, number);
        assert!(
            found.contains("Copy for Robin Park, Example Funding"),
            "{found}"
        );
        assert!(found.contains("Non-authoritative copy"), "{found}");

        // Once in the line, and hidden three times.
        assert_eq!(found.matches(ID).count(), 4, "{found}");
    }

    let information = facts(&marked, &["-custom"]);
    assert!(information.contains(ID), "{information}");
}

#[test]
fn the_hidden_text_is_not_visible() {
    for turn in ["", "/Rotate 90"] {
        let blank = page(&format!("/MediaBox[0 0 600 400]{turn}"), "");
        let before = PageRaster::poppler(&blank, 1);
        let marked = watermarked(&blank, &request());
        let [_, top, _, bottom] = PageRaster::poppler(&marked, 1).difference(&before).unwrap();
        assert!(top > 0.95 && bottom <= 1.0, "{turn}: {top} {bottom}");
    }
}

#[test]
fn a_line_at_the_head_leaves_the_foot_and_the_contract_as_they_are() {
    let copy = mark(&contract(), &authoritative()).unwrap();
    let at_head = WatermarkRequest {
        at_head: true,
        ..request()
    };
    let marked = watermarked(&copy, &at_head);
    assert_clean(&marked);
    assert!(moved(&words(&copy), &words(&marked)).is_none());

    let before = PageRaster::poppler(&copy, 1);
    let [_, top, _, bottom] = PageRaster::poppler(&marked, 1).difference(&before).unwrap();
    assert!(top > 0.0 && bottom < 0.03, "{top} {bottom}");
}

#[test]
fn two_holders_get_different_bytes_and_one_holder_the_same() {
    let copy = mark(&contract(), &authoritative()).unwrap();
    let one = watermark(copy.clone(), &request()).unwrap();
    assert_eq!(one, watermark(copy.clone(), &request()).unwrap());
    let other = WatermarkRequest {
        hidden: "cpy_01jt8s5gq2e6m9x4k7w3c5d8fb".into(),
        ..request()
    };
    assert_ne!(one, watermark(copy, &other).unwrap());
}

#[test]
fn a_wrong_request_is_refused_with_its_reason() {
    let with = |line: &str, hidden: &str, at: &str| WatermarkRequest {
        line: line.into(),
        at_head: false,
        hidden: hidden.into(),
        marked_at: at.into(),
    };

    let (long, at) = ("x".repeat(1_001), "2026-05-04T15:04:05.000Z");
    for (wrong, limit) in [
        (with("Copy", " ", at), false),
        (with("Copy", ID, "yesterday"), false),
        (with(&long, ID, at), true),
        (with("Copy", &long, at), true),
    ] {
        let refused = watermark(contract(), &wrong).unwrap_err();
        let is_limit = matches!(refused, DocumentError::OverLimit(_));
        assert_eq!(is_limit, limit, "{refused:?}");
    }

    let unreadable = watermark(b"no PDF".to_vec(), &request());
    assert!(
        matches!(unreadable, Err(DocumentError::Unreadable(_))),
        "{unreadable:?}"
    );
}
