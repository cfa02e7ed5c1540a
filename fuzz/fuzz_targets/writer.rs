//! Marks, values, merging, tag removal and page images, on whole files. A document that was marked or filled in
//! still has the text it had before.
#![no_main]

use std::collections::BTreeMap;

use holdfast_documents::{
    Area, CopyKind, FieldValue, FilledField, MarkRequest, Marked, fill, mark, merge, page_image,
    strip_tags,
};
use holdfast_placement::text;

/// Number of pages to compare.
const PAGES: u32 = 3;

libfuzzer_sys::fuzz_target!(|pdf: &[u8]| {
    let before = characters(pdf);
    for kind in [CopyKind::Authoritative, CopyKind::NonAuthoritative] {
        let request = MarkRequest {
            kind,
            envelope_id: "env_01jt8s5gq2e6m9x4k7w3c5d8fa".into(),
            secured_party: Some("First Example Bank".into()),
            marked_at: "2026-05-04T15:04:05.000Z".into(),
            rewrite: false,
        };
        match mark(pdf.to_vec(), &request) {
            Ok(Marked::Appended(tail)) => assert_survives(&before, &[pdf, &tail].concat()),
            Ok(Marked::Rewritten(whole)) => assert_survives(&before, &whole),
            Ok(Marked::Unchanged) | Err(_) => {}
        }
    }

    let field = FilledField {
        areas: vec![Area {
            page: 1,
            x: 0.1,
            y: 0.1,
            w: 0.3,
            h: 0.05,
        }],
        value: FieldValue::Text("value".into()),
    };
    if let Ok(filled) = fill(pdf, &[field]) {
        assert_survives(&before, &filled);
    }

    let _ = merge(&[pdf.to_vec(), pdf.to_vec()]);
    let _ = strip_tags(pdf);
    let _ = page_image(pdf, 1, 200);
});

/// Returns how often each character occurs on each page.
fn characters(pdf: &[u8]) -> BTreeMap<(u32, char), usize> {
    let mut counts = BTreeMap::new();
    for page in 1..=PAGES {
        // An unreadable document has no text to lose.
        let lines = text(pdf.to_vec(), page).unwrap_or_default();
        let letters = lines.iter().flat_map(|line| line.text.chars());
        for letter in letters.filter(|letter| !letter.is_whitespace()) {
            *counts.entry((page, letter)).or_default() += 1;
        }
    }

    counts
}

fn assert_survives(before: &BTreeMap<(u32, char), usize>, written: &[u8]) {
    let after = characters(written);
    for (place, count) in before {
        let count_after = after.get(place).copied().unwrap_or_default();
        assert!(count_after >= *count, "{place:?}: {count_after} of {count}");
    }
}
