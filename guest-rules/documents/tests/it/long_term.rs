use holdfast_documents::{
    DocumentError, ExtensionRequest, LaterChange, SignatureCoverage, SignatureData, ValidationData,
    extend, signatures, validation_data_of,
};

use crate::seals::seal;
use crate::support::{assert_clean, contract, facts, prepare_seal};

/// SHA-1 of nothing, as a name of a signature.
const SIGNATURE: &str = "DA39A3EE5E6B4B0D3255BFEF95601890AFD80709";
const OTHER_SIGNATURE: &str = "0000000000000000000000000000000000000000";

fn data(signature: &str) -> SignatureData {
    let item = |text: &str| vec![format!("{text} of {signature}").into_bytes()];
    SignatureData {
        data: ValidationData {
            certificates: item("certificate"),
            crls: item("list"),
            ocsps: item("answer"),
        },
        signature: signature.to_owned(),
    }
}

fn request(signature: &str, time_stamp_bytes: Option<u32>) -> ExtensionRequest {
    ExtensionRequest {
        data: Some(data(signature)),
        time_stamp_bytes,
    }
}

fn sealed() -> Vec<u8> {
    prepare_seal(&contract(), &seal()).unwrap().pdf
}

fn extended(pdf: &[u8], request: &ExtensionRequest) -> Vec<u8> {
    let extension = extend(pdf.to_vec(), request).unwrap();
    [pdf, &extension.appended].concat()
}

#[test]
fn validation_data_follow_the_seal_and_are_read_back() {
    let sealed = sealed();
    let request = request(SIGNATURE, None);
    let longer = extended(&sealed, &request);
    assert!(longer.starts_with(&sealed), "an update behind the bytes");
    assert_clean(&longer);
    assert!(facts(&longer, &[]).contains("Pages:           4"));
    assert_eq!(extend(sealed.clone(), &request).unwrap().place, None);
    assert_eq!(extended(&sealed, &request), longer);

    assert_eq!(validation_data_of(&longer).unwrap(), data(SIGNATURE).data);
    let none = validation_data_of(&sealed).unwrap();
    assert_eq!((none.certificates.len(), none.crls.len()), (0, 0));
    assert_eq!(validation_data_of(&contract()).unwrap(), none);

    let found = signatures(&longer).unwrap();
    assert!(found.revocation_data);
    assert_eq!(found.signatures[0].coverage, SignatureCoverage::Revision);
    assert_eq!(found.signatures[0].later, LaterChange::Signatures);
}

#[test]
fn a_time_stamp_covers_the_validation_data() {
    let sealed = sealed();
    let extension = extend(sealed.clone(), &request(SIGNATURE, Some(4096))).unwrap();
    let (start, end) = extension.place.unwrap();
    let longer = [sealed, extension.appended].concat();
    assert_clean(&longer);
    assert_eq!(end - start, 2 * 4096 + 2);

    let found = signatures(&longer).unwrap().signatures;
    let [seal, stamp] = found.as_slice() else {
        panic!("{} signatures", found.len());
    };
    assert_eq!(seal.later, LaterChange::Signatures);
    assert_eq!(stamp.format, "ETSI.RFC3161");
    assert_eq!(stamp.coverage, SignatureCoverage::WholeDocument);
    let length = longer.len() as u64;
    assert_eq!(stamp.ranges, [(0, start), (end, length - end)]);
}

#[test]
fn later_validation_data_join_the_earlier_ones() {
    let first = extended(&sealed(), &request(SIGNATURE, Some(4096)));
    let second = extended(&first, &request(OTHER_SIGNATURE, Some(4096)));
    assert_clean(&second);

    let all = validation_data_of(&second).unwrap();
    let (one, other) = (data(SIGNATURE).data, data(OTHER_SIGNATURE).data);
    assert_eq!(all.crls, [one.crls, other.crls].concat());
    assert_eq!(all.ocsps, [one.ocsps, other.ocsps].concat());
    let last = String::from_utf8_lossy(&second[first.len()..]).into_owned();
    for signature in [SIGNATURE, OTHER_SIGNATURE] {
        assert!(last.contains(&format!("/{signature}<<")), "{last}");
    }

    // A time stamp alone leaves the data as they are.
    let alone = ExtensionRequest {
        data: None,
        time_stamp_bytes: Some(4096),
    };
    let third = extended(&second, &alone);
    assert_eq!(validation_data_of(&third).unwrap(), all);
    assert_eq!(signatures(&third).unwrap().signatures.len(), 4);
}

#[test]
fn an_extension_that_cannot_be_written_is_refused() {
    for size in [0, 65_537] {
        let refused = extend(sealed(), &request(SIGNATURE, Some(size)));
        assert!(matches!(refused, Err(DocumentError::OverLimit(_))));
    }
    for name in ["", "da39a3ee5e6b4b0d3255bfef95601890afd80709", "../x"] {
        let refused = extend(sealed(), &request(name, None));
        assert!(matches!(refused, Err(DocumentError::Other(_))), "{name}");
    }

    let refused = extend(b"%PDF-1.7".to_vec(), &request(SIGNATURE, None));
    assert!(matches!(refused, Err(DocumentError::Unreadable(_))));
    let refused = validation_data_of(b"%PDF-1.7 /ByteRange");
    assert!(matches!(refused, Err(DocumentError::Unreadable(_))));
}
