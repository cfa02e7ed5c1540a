//! The table of this release, and the choice by jurisdiction and date.

use serde_json::Value;

use crate::calendar::{BUILT_IN, LawInForce, find, laws};
use crate::types::{ComponentIdentity, EnvelopeFacts, EnvelopeStatus, SignedDocument};
use crate::{certificate, evaluate};

/// A record with a question asked at `asked`.
fn facts(jurisdiction: Option<&str>, signed: &[&str], asked: Option<&str>) -> EnvelopeFacts {
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
            pair("asked_at", asked),
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
    }
}

/// (jurisdiction, signatures, time of the question, whether the amended section applies)
type ChosenCase<'a> = (Option<&'a str>, &'a [&'a str], Option<&'a str>, bool);

#[test]
fn the_section_is_chosen_by_jurisdiction_and_date_of_the_question() {
    const DAY_BEFORE: &str = "2026-06-02T23:59:59.999Z";
    const EFFECTIVE: &str = "2026-06-03T00:00:00.000Z";

    let cases: &[ChosenCase<'_>] = &[
        (Some("US-NY"), &[DAY_BEFORE], Some(DAY_BEFORE), false),
        // A-301(a): transactions of before are governed by the amended article as well.
        (Some("US-NY"), &[DAY_BEFORE], Some(EFFECTIVE), true),
        (Some("US-NY"), &[EFFECTIVE], Some(EFFECTIVE), true),
        (Some("US-DE"), &[DAY_BEFORE], Some(DAY_BEFORE), true),
        (Some("US-NY"), &[], Some(EFFECTIVE), true),
        (Some("US-NY"), &[], None, false),
        // Hosts that do not state the time of the question ask after the last signature.
        (Some("US-NY"), &[EFFECTIVE, DAY_BEFORE], None, true),
        (Some("US-NY"), &["June 3, 2025"], None, false),
        // Enacted, date unknown.
        (Some("US-MT"), &[], Some(EFFECTIVE), false),
        // Not in the table.
        (Some("US-TX"), &[], Some(EFFECTIVE), false),
        (Some("CA"), &[], Some(EFFECTIVE), false),
        (Some("US-N"), &[], Some(EFFECTIVE), false),
        (None, &[], Some(EFFECTIVE), false),
    ];

    for (jurisdiction, signed, asked, amended) in cases {
        let facts = facts(*jurisdiction, signed, *asked);
        let evaluation = evaluate(&facts);
        let expected = if *amended { 9 } else { 8 };
        assert_eq!(
            evaluation.checks.len(),
            expected,
            "{jurisdiction:?} {signed:?} {asked:?}"
        );

        let certificate = certified(&facts);
        let checks = certificate["ucc_9105_compliance"]["checks"].as_array();
        let checks = checks.unwrap();
        assert_eq!(checks.len(), expected);

        let reference = checks[0]["statute_reference"].as_str().unwrap();
        assert_eq!(reference.contains("(2022)"), *amended, "{reference}");

        let kind = certificate["certificate_type"].as_str().unwrap();
        assert_eq!(kind.contains("2022"), *amended);

        let law = &certificate["law"];
        let applied = law["applied"].as_str().unwrap_or("UCC §9-105 before");
        assert_eq!(applied.contains("as amended in 2022"), *amended, "{law}");
    }
}

#[test]
fn the_certificate_names_the_law_its_source_and_the_reason() {
    let signed_before = facts(
        Some("US-NY"),
        &["2026-01-05T10:00:00.000Z"],
        Some("2026-07-01T10:00:00.000Z"),
    );
    let law = &certified(&signed_before)["law"];
    assert_eq!(law["jurisdiction"], "US-NY");
    assert_eq!(law["status"], "in the table");
    assert_eq!(law["effective"], "2026-06-03");
    assert_eq!(law["adjustment"], "2027-06-03");
    assert_eq!(law["question_date"], "2026-07-01");
    assert!(law["source"].as_str().unwrap().starts_with("https://"));
    assert!(law["review"].as_str().unwrap().contains("second source"));

    let why = law["why"].as_str().unwrap();
    assert!(why.contains("A-301(a)"), "{why}");
    assert!(why.contains("adjustment date, 2027-06-03"), "{why}");
}

#[test]
fn a_jurisdiction_without_a_row_is_said_to_be_not_in_the_table() {
    let certificate = |jurisdiction| {
        certified(&facts(
            Some(jurisdiction),
            &[],
            Some("2026-07-01T10:00:00.000Z"),
        ))
    };
    let law = &certificate("US-TX")["law"];
    assert_eq!(law["status"], "not in the table");
    assert_eq!(law["applied"], "UCC §9-105 before the amendments of 2022");
    assert!(law["why"].as_str().unwrap().contains("does not say"));

    for jurisdiction in ["US-CT", "US-MT", "US-NH"] {
        let law = &certificate(jurisdiction)["law"];
        assert_eq!(law["status"], "not in the table: enacted, date unknown");
        assert_eq!(law["applied"], "UCC §9-105 before the amendments of 2022");
    }

    let without = certified(&facts(None, &[], None));
    assert!(without.get("law").is_none());
}

/// Each reason with the row and the date that it rests on.
#[test]
fn each_reason_is_of_its_row_and_date() {
    let why = |jurisdiction, signed: &[&str], asked: Option<&str>| {
        let law = &certified(&facts(Some(jurisdiction), signed, asked))["law"];
        law["why"].as_str().unwrap().to_owned()
    };
    const BEFORE: &str = "2026-06-02T10:00:00.000Z";
    const LATER: &str = "2026-07-01T10:00:00.000Z";
    const AFTER_ADJUSTMENT: &str = "2027-06-03T10:00:00.000Z";

    assert_eq!(
        why("US-MT", &[], Some(LATER)),
        "The amendments of 2022 are enacted there, and the table has no source that states from when on they are in effect. The text before them was applied."
    );
    assert_eq!(
        why("US-TX", &[], Some(LATER)),
        "The table has no row for this jurisdiction. It does not say that the amendments of 2022 are not enacted there. The text before them was applied."
    );
    assert_eq!(
        why("US-NY", &[], None),
        "No date of the question is stated. The text before the amendments of 2022 was applied."
    );
    assert_eq!(
        why("US-NY", &[BEFORE], Some(BEFORE)),
        "The question is of 2026-06-02, before the amendments take effect on 2026-06-03."
    );

    assert_eq!(
        why("US-NY", &[LATER], Some(AFTER_ADJUSTMENT)),
        "The question is of 2027-06-03, and the amendments are in effect since 2026-06-03."
    );
    assert_eq!(
        why("US-NY", &[BEFORE], Some(AFTER_ADJUSTMENT)),
        "The question is of 2027-06-03, and the amendments are in effect since 2026-06-03. They govern transactions that were entered into before as well (UCC §A-301(a))."
    );
    assert_eq!(
        why("US-NY", &[LATER], Some(LATER)),
        "The question is of 2026-07-01, and the amendments are in effect since 2026-06-03. What was perfected under the text before stays so until the adjustment date, 2027-06-03 (UCC §§A-302 to A-306)."
    );
}

#[test]
fn another_table_is_read_row_by_row() {
    let table = "# comment\n\nUS-TX | 2027-09-01 | | HB 1 (2027) | https://example.com\n\
        US-WI | unknown | | AB 2 (2027) | https://example.com | Ann Lee, 2027-01-05\n";
    let rows = laws(table).unwrap();
    assert_eq!((rows.len(), rows[1].review), (2, "Ann Lee, 2027-01-05"));

    let asked = Some("2027-09-01T00:00:00.000Z");
    let dated = facts(Some("US-TX"), &[], asked);
    assert!(find(table, &dated).is_amended());

    let unknown = facts(Some("US-WI"), &[], asked);
    assert!(matches!(
        find(table, &unknown),
        LawInForce::DateUnknown { .. }
    ));

    for row in [
        "US-TX | 2027-09-01",
        "US-TX | | | HB 1 | https://example.com",
        "US-TX | 2027-09-01 | | HB 1 | ",
        "US-TX | 2027-09-01 | | HB 1 | https://example.com | review | more",
    ] {
        assert!(laws(row).unwrap_err().contains("is no row"), "{row}");
    }
}
