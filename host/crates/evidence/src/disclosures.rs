//! Checks that a bundle has the disclosures that the certificate names, and no others.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Bundle;
use super::report::{OpenQuestion, ReportFinding};
use holdfast_domain::hash::sha256;

const CHECK: &str = "disclosures";

/// Compares the texts with their names, and their names with the certificate. `None` if there are none.
pub(super) fn finding(bundle: &Bundle, certificate: &Value) -> Option<ReportFinding> {
    let consents = certificate["consumer_consent"].as_array();
    let consents = consents.into_iter().flatten();
    let named: BTreeSet<&str> = consents
        .filter_map(|consent| consent["disclosure_sha256"].as_str())
        .collect();
    let carried: BTreeSet<&str> = bundle.disclosures().map(|(digest, _)| digest).collect();
    if named.is_empty() && carried.is_empty() {
        return None;
    }

    if let Some(missing) = named.difference(&carried).next() {
        if !bundle.is_of_export() {
            let why = "not among the files of a vault-out: what signers saw is not shown";
            return Some(ReportFinding::unchecked(CHECK, OpenQuestion::Nothing, why));
        }
        let why = format!("the bundle lacks the disclosure {missing}, which the certificate names");
        return Some(ReportFinding::fails(CHECK, why));
    }
    // A text that the certificate does not name could be presented as the one that a signer saw.
    if let Some(unknown) = carried.difference(&named).next() {
        let why = format!("the certificate does not name the disclosure {unknown} of the bundle");
        return Some(ReportFinding::fails(CHECK, why));
    }

    let mut texts = bundle.disclosures();
    // The file name is a claim. Only the hash of the bytes ties a text to the certificate.
    if let Some((digest, text)) = texts.find(|(digest, text)| sha256(text) != *digest) {
        let actual = sha256(text);
        let why = format!("the disclosure {digest} was changed: its SHA-256 is {actual}");
        return Some(ReportFinding::fails(CHECK, why));
    }

    let detail = format!(
        "{} texts, each with the SHA-256 that the certificate names",
        named.len()
    );
    Some(ReportFinding::holds(CHECK, detail))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::*;

    fn bundle(texts: &[(&str, &str)]) -> Bundle {
        let texts = texts.iter().map(|(digest, text)| {
            let name = format!("disclosures/{digest}.txt");
            (name, Bytes::copy_from_slice(text.as_bytes()))
        });
        let component_ledger = ("component-ledger.json".to_owned(), Bytes::new());
        Bundle::of_files(texts.chain([component_ledger]))
    }

    fn certificate(digests: &[&str]) -> Value {
        let consents = digests
            .iter()
            .map(|digest| json!({ "signer": "Ada", "disclosure_sha256": digest }));
        json!({ "consumer_consent": consents.collect::<Vec<_>>() })
    }

    #[test]
    fn the_texts_of_the_certificate_are_in_the_bundle() {
        let digest = sha256(b"text");
        let bundle = bundle(&[(&digest, "text")]);
        // Two signers saw the same text.
        let finding = finding(&bundle, &certificate(&[&digest, &digest])).unwrap();
        assert_eq!(finding.ok, Some(true), "{}", finding.detail);
    }

    #[test]
    fn the_files_of_a_vault_out_come_without_the_texts() {
        let bundle = Bundle::of_files([]);
        let finding = finding(&bundle, &certificate(&[&sha256(b"text")])).unwrap();
        let why = "not among the files of a vault-out: what signers saw is not shown";
        assert_eq!((finding.ok, finding.detail.as_str()), (None, why));
    }

    #[test]
    fn evidence_without_consumers_has_no_texts() {
        let none =
            json!({ "consumer_consent": [{ "consumer": false, "disclosure_sha256": null }] });
        for certificate in [json!({}), none] {
            assert!(finding(&bundle(&[]), &certificate).is_none());
        }
    }

    #[test]
    fn a_missing_a_changed_or_an_unknown_text_is_named() {
        let digest = sha256(b"text");
        let other = sha256(b"other");
        let changed = sha256(b"changed");
        for (texts, named, why) in [
            (
                vec![],
                vec![digest.as_str()],
                format!("the bundle lacks the disclosure {digest}, which the certificate names"),
            ),
            (
                vec![(digest.as_str(), "text")],
                vec![],
                format!("the certificate does not name the disclosure {digest} of the bundle"),
            ),
            (
                vec![(digest.as_str(), "text"), (other.as_str(), "other")],
                vec![digest.as_str()],
                format!("the certificate does not name the disclosure {other} of the bundle"),
            ),
            (
                vec![(digest.as_str(), "changed")],
                vec![digest.as_str()],
                format!("the disclosure {digest} was changed: its SHA-256 is {changed}"),
            ),
        ] {
            let finding = finding(&bundle(&texts), &certificate(&named)).unwrap();
            assert_eq!(finding.ok, Some(false));
            assert_eq!(finding.detail, why);
        }
    }
}
