use holdfast_documents::{DocumentError, SealRequest};

use crate::support::{assert_clean, authoritative, contract, facts, mark, prepare_seal};

pub fn seal() -> SealRequest {
    SealRequest {
        name: "holdfast at https://holdfast.example".to_owned(),
        reason: "Authoritative copy of env_01jt8s5gq2e6m9x4k7w3c5d8fa".to_owned(),
        signed_at: "2026-05-04T15:04:05.000Z".to_owned(),
        signature_bytes: 8 * 1024,
    }
}

#[test]
fn the_signature_covers_everything_but_its_own_placeholder() {
    let marked = mark(&contract(), &authoritative()).unwrap();
    let space = prepare_seal(&marked, &seal()).unwrap();
    assert!(space.pdf.starts_with(&marked), "an update behind the bytes");
    assert_clean(&space.pdf);
    let (start, end) = (space.place_start as usize, space.place_end as usize);
    let place = &space.pdf[start..end];
    assert_eq!(place.len(), 2 * 8 * 1024 + 2);
    assert!(place.starts_with(b"<00") && place.ends_with(b"00>"));
    let range = format!(
        "/ByteRange[0 {start:<10} {end:<10} {:<10}]",
        space.pdf.len() - end
    );
    let appended = String::from_utf8_lossy(&space.pdf[marked.len()..]).into_owned();
    assert!(appended.contains(&range), "{range} is not in {appended}");
    assert!(facts(&space.pdf, &[]).contains("Pages:           4"));
    assert_eq!(prepare_seal(&marked, &seal()).unwrap().pdf, space.pdf);
}

#[test]
fn a_second_seal_keeps_the_first_valid() {
    let first = prepare_seal(&contract(), &seal()).unwrap().pdf;
    let second = prepare_seal(&first, &seal()).unwrap();
    assert!(second.pdf.starts_with(&first));
    assert!(second.place_start as usize > first.len());
    assert_clean(&second.pdf);
}

#[test]
fn an_unsealable_document_is_refused() {
    let none = SealRequest {
        signature_bytes: 0,
        ..seal()
    };
    let large = SealRequest {
        signature_bytes: 65_537,
        ..seal()
    };
    for request in [none, large] {
        let refused = prepare_seal(&contract(), &request);
        assert!(matches!(refused, Err(DocumentError::OverLimit(_))));
    }
    let timeless = SealRequest {
        signed_at: "yesterday".to_owned(),
        ..seal()
    };
    let refused = prepare_seal(&contract(), &timeless);
    assert!(matches!(refused, Err(DocumentError::Other(_))));
    let refused = prepare_seal(b"%PDF-1.7", &seal());
    assert!(matches!(refused, Err(DocumentError::Unreadable(_))));
    let mut broken = contract();
    broken.truncate(broken.len() - 400);
    let refused = prepare_seal(&broken, &seal());
    assert!(matches!(refused, Err(DocumentError::Unreadable(_))));
}
