use holdfast_documents::{DocumentError, SealRequest, VaultRequest, prepare_copies};

use crate::marks::certified;
use crate::support::{
    assert_clean, authoritative, contract, extracted, facts, mark, non_authoritative, prepare_seal,
};

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

pub fn both() -> VaultRequest {
    VaultRequest {
        authoritative: authoritative(),
        seal: seal(),
        copy: non_authoritative(),
        words: None,
    }
}

#[test]
fn both_copies_are_made_in_one_pass() {
    let made = prepare_copies(contract(), &both()).unwrap().unwrap();
    let sealed = [contract(), made.authoritative.appended].concat();
    assert_clean(&sealed);
    let place = made.authoritative.place_start as usize..made.authoritative.place_end as usize;
    assert!(place.start > contract().len());
    assert!(
        sealed[place.clone()]
            .iter()
            .all(|byte| b"<0>".contains(byte))
    );

    let range = format!("/ByteRange[0 {:<10} {:<10} ", place.start, place.end);
    assert!(String::from_utf8_lossy(&sealed).contains(&range), "{range}");

    for page in 1..=4 {
        assert!(extracted(&sealed, page).contains("Authoritative copy · env_"));
    }

    // The other copy has no trace of the first one.
    let copy = [contract(), made.copy].concat();
    assert_eq!(copy, mark(&contract(), &non_authoritative()).unwrap());

    let again = prepare_copies(contract(), &both()).unwrap().unwrap();
    assert_eq!([contract(), again.authoritative.appended].concat(), sealed);
}

#[test]
fn a_document_that_is_repaired_or_stays_unchanged_is_not_copied_in_one_pass() {
    let mut broken = contract();
    let end = broken.windows(9).rposition(|bytes| bytes == b"startxref");
    broken.truncate(end.unwrap());
    broken.extend_from_slice(b"startxref\n99999999\n%%EOF\n");
    for document in [broken, certified(1)] {
        assert_eq!(prepare_copies(document, &both()), Ok(None));
    }
    assert!(prepare_copies(certified(2), &both()).unwrap().is_some());
}

#[test]
fn a_bad_request_for_both_copies_is_refused() {
    let nameless = |mut request: VaultRequest| {
        request.copy.envelope_id = " ".to_owned();
        request
    };
    let large = |mut request: VaultRequest| {
        request.seal.signature_bytes = 65_537;
        request
    };

    let refused = prepare_copies(contract(), &nameless(both()));
    assert!(matches!(refused, Err(DocumentError::Other(_))));

    let refused = prepare_copies(contract(), &large(both()));
    assert!(matches!(refused, Err(DocumentError::OverLimit(_))));

    let refused = prepare_copies(b"%PDF-1.7".to_vec(), &both());
    assert!(matches!(refused, Err(DocumentError::Unreadable(_))));
}
