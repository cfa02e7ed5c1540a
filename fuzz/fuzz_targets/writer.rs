//! Marks, values, merging, tag removal and page images, on whole files.
#![no_main]

use holdfast_documents::{
    Area, CopyKind, FieldValue, FilledField, MarkRequest, fill, mark, merge, page_image, strip_tags,
};

libfuzzer_sys::fuzz_target!(|pdf: &[u8]| {
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
    let request = |kind| MarkRequest {
        kind,
        envelope_id: "env_01jt8s5gq2e6m9x4k7w3c5d8fa".into(),
        secured_party: Some("First Example Bank".into()),
        marked_at: "2026-05-04T15:04:05.000Z".into(),
        rewrite: false,
    };
    let _ = mark(pdf.to_vec(), &request(CopyKind::Authoritative));
    let _ = mark(pdf.to_vec(), &request(CopyKind::NonAuthoritative));
    let _ = fill(pdf, &[field]);
    let _ = merge(&[pdf.to_vec(), pdf.to_vec()]);
    let _ = strip_tags(pdf);
    let _ = page_image(pdf, 1, 200);
});
