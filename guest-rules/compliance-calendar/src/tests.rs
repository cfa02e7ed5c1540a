//! The table of this release, and the choice by jurisdiction and date.

use serde_json::Value;

use crate::calendar::{BUILT_IN, find, laws};
use crate::types::{ComponentIdentity, EnvelopeFacts, EnvelopeStatus, SignedDocument};
use crate::{certificate, evaluate};

fn facts(jurisdiction: Option<&str>, signed: &[&str], created: Option<&str>) -> EnvelopeFacts {
    let pair = |name: &str, value: Option<&str>| value.map(|value| (name.into(), value.into()));
    EnvelopeFacts {
        envelope_id: "env_1".into(),
        envelope_name: "Contract".into(),
        customer_id: "cus_1".into(),
        status: EnvelopeStatus::Completed,
        vault_file_path: None,
        document_hash: None,
        copy_file_path: None,
        vault_out_certificate_path: None,
        secured_party: None,
        submitters: Vec::new(),
        signed_documents: signed
            .iter()
            .map(|at| SignedDocument {
                signer_email: "jordan@example.com".into(),
                signed_at: (*at).into(),
            })
            .collect(),
        custodians: Vec::new(),
        identity_verifications: Vec::new(),
        attributes: [
            pair("chattel_paper_jurisdiction", jurisdiction),
            pair("envelope_created_at", created),
        ]
        .into_iter()
        .flatten()
        .collect(),
    }
}

fn certified(facts: &EnvelopeFacts) -> Value {
    let identity = ComponentIdentity {
        name: "rules".into(),
        version: "1.0.0".into(),
        sha256: "0".repeat(64),
    };
    let text = certificate(facts, "2026-01-02T03:04:05.000Z", "Example", &identity);
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_table_has_each_jurisdiction_once_in_order() {
    let laws = laws(BUILT_IN).unwrap();
    assert!(laws.len() >= 29, "{}", laws.len());
    assert!(laws.is_sorted_by(|one, next| one.jurisdiction < next.jurisdiction));
    for law in laws {
        assert!(law.source.starts_with("https://"), "{law:?}");
        for date in [law.effective, law.adjustment] {
            assert!(date.is_empty() || date.len() == 10, "{law:?}");
        }
    }
}

/// (jurisdiction, signatures, created, whether the amended section applies)
type ChosenCase<'a> = (Option<&'a str>, &'a [&'a str], Option<&'a str>, bool);

#[test]
fn the_section_is_chosen_by_jurisdiction_and_date() {
    const DAY_BEFORE: &str = "2026-06-02T23:59:59.999Z";
    const EFFECTIVE: &str = "2026-06-03T00:00:00.000Z";
    let cases: &[ChosenCase<'_>] = &[
        (Some("US-NY"), &[DAY_BEFORE], None, false),
        (Some("US-NY"), &[EFFECTIVE], None, true),
        // The last signature executes the record.
        (Some("US-NY"), &[EFFECTIVE, DAY_BEFORE], None, true),
        (Some("US-DE"), &[DAY_BEFORE], None, true),
        // Not signed yet.
        (Some("US-NY"), &[], Some(DAY_BEFORE), false),
        (Some("US-NY"), &[], Some(EFFECTIVE), true),
        (Some("US-NY"), &[], None, false),
        // No time stamps.
        (Some("US-NY"), &["June 3, 2025"], None, false),
        (Some("US-NY"), &["9999"], Some(EFFECTIVE), true),
        // Not in the table.
        (Some("US-TX"), &[EFFECTIVE], None, false),
        (Some("CA"), &[EFFECTIVE], None, false),
        (Some("US-N"), &[EFFECTIVE], None, false),
        (None, &[EFFECTIVE], None, false),
    ];
    for (jurisdiction, signed, created, amended) in cases {
        let facts = facts(*jurisdiction, signed, *created);
        let evaluation = evaluate(&facts);
        let expected = if *amended { 9 } else { 8 };
        assert_eq!(
            evaluation.checks.len(),
            expected,
            "{jurisdiction:?} {signed:?} {created:?}"
        );
        let certificate = certified(&facts);
        let (checks, law) = (
            certificate["ucc_9105_compliance"]["checks"]
                .as_array()
                .unwrap(),
            &certificate["law"],
        );
        assert_eq!(checks.len(), expected);
        let reference = checks[0]["statute_reference"].as_str().unwrap();
        assert_eq!(reference.contains("(2022)"), *amended, "{reference}");
        let kind = certificate["certificate_type"].as_str().unwrap();
        assert_eq!(kind.contains("2022"), *amended);
        let applied = law["applied"].as_str().unwrap_or("UCC §9-105 before");
        assert_eq!(applied.contains("as amended in 2022"), *amended, "{law}");
    }
}

#[test]
fn the_certificate_names_the_law_and_its_source() {
    let facts = facts(Some("US-NY"), &["2026-07-01T10:00:00.000Z"], None);
    let law = &certified(&facts)["law"];
    assert_eq!(law["jurisdiction"], "US-NY");
    assert_eq!(law["effective"], "2026-06-03");
    assert_eq!(law["adjustment"], "2027-06-03");
    assert_eq!(law["record_date"], "2026-07-01");
    assert!(law["source"].as_str().unwrap().starts_with("https://"));
    let without = certified(&self::facts(Some("US-TX"), &[], None));
    assert!(without.get("law").is_none());
}

#[test]
fn another_table_is_read_row_by_row() {
    let table = "# comment\n\nUS-TX | 2027-09-01 | | HB 1 (2027) | https://example.com\n";
    assert_eq!(laws(table).unwrap().len(), 1);
    let facts = facts(Some("US-TX"), &["2027-09-01T00:00:00.000Z"], None);
    assert!(find(table, &facts).unwrap().is_amended());
    for row in [
        "US-TX | 2027-09-01",
        "US-TX | | | HB 1 | https://example.com",
        "US-TX | 2027-09-01 | | HB 1 | ",
        "US-TX | 2027-09-01 | | HB 1 | https://example.com | more",
    ] {
        assert!(laws(row).unwrap_err().contains("is no row"), "{row}");
    }
}
