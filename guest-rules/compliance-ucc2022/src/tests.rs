//! Tests with the vectors of the default rules, and of the additional requirements of this statute.

use serde_json::Value;

use crate::types::{ComponentIdentity, EnvelopeFacts, EnvelopeStatus, SecuredParty};
use crate::{certificate, evaluate};

fn vectors() -> Vec<(String, EnvelopeFacts, bool)> {
    let all: Value =
        serde_json::from_str(include_str!("../../../wit/compliance/vectors.json")).unwrap();
    let vectors = all["vectors"].as_array().unwrap().iter();
    vectors
        .map(|vector| {
            (
                vector["name"].as_str().unwrap().to_owned(),
                serde_json::from_value(vector["facts"].clone()).unwrap(),
                vector["failed"].as_array().unwrap().is_empty(),
            )
        })
        .collect()
}

/// A record on which only its originator has acted.
fn originated() -> EnvelopeFacts {
    let mut facts = vectors().remove(0).1;
    let is_about_control = |name: &str| name.starts_with("control.");
    facts.attributes.retain(|(name, _)| !is_about_control(name));
    facts
}

/// The same record after First Example Bank, which its mark names, accepted control.
fn complete() -> EnvelopeFacts {
    let mut facts = originated();
    facts.attributes.extend(
        [
            ("control.controller", "First Example Bank"),
            ("control.since", "2026-11-21T09:45:00.000Z"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );

    facts
}

/// Checks that need a party that accepted control.
const OF_THE_ASSIGNEE: [&str; 4] = [
    "Assignee reliably established",
    "Maintained by the assignee or its designated custodian",
    "Assignee can identify itself",
    "Exclusive power to keep others from changing the assignee, and to transfer control",
];

/// The originator's own typing establishes no assignment.
#[test]
fn nothing_about_the_assignee_is_established_without_a_party_that_accepted_control() {
    let evaluation = evaluate(&originated());
    assert_eq!(evaluation.missing_requirements, OF_THE_ASSIGNEE);
    for check in &evaluation.checks {
        let says_so = check.detail.starts_with("Not established");
        assert_eq!(says_so, !check.satisfied, "{}", check.detail);
    }
    assert!(evaluate(&complete()).compliant);
}

/// Facts missing under the default rules are missing here, too.
#[test]
fn the_2022_rules_are_never_looser_than_the_specified_ones() {
    for (name, mut facts, compliant) in vectors() {
        facts.attributes = complete().attributes;
        let evaluation = evaluate(&facts);

        // The custodian of the originator does not count here.
        let by_control = name.starts_with("3: ");
        let by_name = name.starts_with("8: ");
        if !by_control && !by_name && !name.starts_with("7: ") {
            assert_eq!(evaluation.compliant, compliant, "{name}");
        }
        assert_eq!(evaluation.score == 100, evaluation.compliant, "{name}");
        assert_eq!(evaluation.checks.len(), 9);
    }
}

#[test]
fn each_check_cites_its_paragraph_of_the_amended_statute() {
    let references: Vec<String> = evaluate(&complete())
        .checks
        .into_iter()
        .map(|check| check.ucc_reference)
        .collect();
    assert_eq!(
        references,
        [
            "UCC §9-105(a) (2022)",
            "UCC §9-105(b)(1) (2022)",
            "UCC §9-105(b)(2) (2022)",
            "UCC §9-105(b)(3) (2022)",
            "UCC §9-105(b)(6) (2022)",
            "UCC §9-105(c)(1) (2022)",
            "UCC §9-105(c)(2) (2022)",
            "UCC §9-105(c)(3) (2022)",
            "UCC §9-203(b)(3)(A) (2022)",
        ]
    );
}

/// Each sentence with the fact that it rests on: another fact gives another sentence.
#[test]
fn each_check_of_2022_states_exactly_the_fact_that_it_rests_on() {
    type Change = fn(&mut EnvelopeFacts);
    fn release(facts: &mut EnvelopeFacts) {
        facts.status = EnvelopeStatus::VaultedOut;
        facts.vault_file_path = None;
    }
    fn forget_controller(facts: &mut EnvelopeFacts) {
        facts
            .attributes
            .retain(|(name, _)| !name.starts_with("control."));
    }

    let cases: &[(usize, Change, &str)] = &[
        (
            1,
            |_| (),
            "Acts in the custody ledger establish First Example Bank as the person to which the record was assigned, since 2026-11-21T09:45:00.000Z.",
        ),
        (
            1,
            forget_controller,
            "Not established: the originator names First Example Bank as the secured party, and no party has accepted control of the record.",
        ),
        (
            1,
            |facts| {
                forget_controller(facts);
                facts.secured_party = None
            },
            "Not established: no party has accepted control of the record.",
        ),
        (
            2,
            |_| (),
            "The authoritative copy is stored in this vault, written without overwrite.",
        ),
        (
            2,
            |facts| facts.vault_file_path = None,
            "No authoritative copy is stored.",
        ),
        (
            2,
            |facts| {
                release(facts);
                attribute(facts, "released_at", "2026-11-22")
            },
            "The authoritative copy left this vault: the record was released on 2026-11-22.",
        ),
        (
            3,
            |_| (),
            "The authoritative copy is marked with First Example Bank, which has control.",
        ),
        (
            3,
            |facts| facts.secured_party = None,
            "The authoritative copy names no assignee.",
        ),
        (
            3,
            |facts| attribute(facts, "authoritative_mark", "none"),
            "The authoritative copy has no mark, because its author certified it against any change.",
        ),
        (
            3,
            forget_controller,
            "The authoritative copy is marked with First Example Bank, which the originator names as the secured party; it has not accepted control.",
        ),
        (
            3,
            |facts| attribute(facts, "control.controller", "Harbor Trust"),
            "The authoritative copy is marked with First Example Bank; Harbor Trust has control.",
        ),
        (
            4,
            |_| (),
            "The authoritative copy is kept in this vault for First Example Bank, which accepted control.",
        ),
        (
            4,
            release,
            "The copy is not held here (status vaulted_out).",
        ),
        (
            5,
            |facts| facts.document_hash = Some("a".repeat(64)),
            "Any amendment shows: SHA-256 of the authoritative copy is aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.",
        ),
        (
            5,
            |facts| facts.document_hash = Some("abc".into()),
            "The recorded hash is not a SHA-256 digest.",
        ),
        (
            5,
            |facts| facts.document_hash = None,
            "No hash of the authoritative copy is on record.",
        ),
        (
            6,
            |_| (),
            "The copy that this service hands out is marked as non-authoritative on every page.",
        ),
        (
            6,
            |facts| facts.copy_file_path = Some("vault:env_1/copy".into()),
            "The stored copy is not in the copies location.",
        ),
        (
            6,
            |facts| facts.copy_file_path = None,
            "No copy that is marked as non-authoritative is stored.",
        ),
        (
            7,
            |facts| facts.secured_party = None,
            "The assignee identifies itself as First Example Bank.",
        ),
        (
            7,
            |facts| {
                facts.secured_party = None;
                attribute(facts, "control.signs_with", "kX1")
            },
            "The assignee identifies itself as First Example Bank, and by the key with the thumbprint kX1.",
        ),
        (
            8,
            |_| (),
            "The authoritative copy does not leave this vault, and control does not pass, without the consent of First Example Bank.",
        ),
        (
            8,
            |facts| attribute(facts, "control.signs_with", "kX1"),
            "The authoritative copy does not leave this vault, and control does not pass, without the consent of First Example Bank, which it signs with its own key.",
        ),
        (
            8,
            |facts| attribute(facts, "control.pledgee", "Bay Bank"),
            "The authoritative copy does not leave this vault, and control does not pass, without the consent of First Example Bank, and of its pledgee Bay Bank.",
        ),
        (
            8,
            |facts| {
                attribute(facts, "control.pledgee", "Bay Bank");
                attribute(facts, "control.pledgee_is_transferor", "true")
            },
            "The power of First Example Bank is not exclusive: it needs the consent of Bay Bank, from which it has the record.",
        ),
        (
            8,
            release,
            "The copy is not held here (status vaulted_out).",
        ),
    ];

    for (number, change, sentence) in cases {
        let mut facts = complete();
        change(&mut facts);
        assert_eq!(evaluate(&facts).checks[number - 1].detail, *sentence);
    }
}

fn without(change: impl Fn(&mut EnvelopeFacts)) -> Vec<String> {
    let mut facts = complete();
    change(&mut facts);
    evaluate(&facts).missing_requirements
}

#[test]
fn missing_facts_fail_exactly_the_checks_that_require_them() {
    assert_eq!(
        without(|facts| facts.vault_file_path = None),
        ["Single authoritative copy"]
    );
    assert_eq!(
        without(|facts| facts.secured_party = None),
        ["Authoritative copy identifies the assignee"]
    );
    assert_eq!(
        without(|facts| facts.document_hash = Some("abc".into())),
        ["Amendments identifiable as authorized or unauthorized"]
    );
    assert_eq!(
        without(|facts| facts.copy_file_path = None),
        ["Authoritative and non-authoritative copies identifiable"]
    );

    assert_eq!(
        without(|facts| facts.status = EnvelopeStatus::VaultedOut),
        [
            "Maintained by the assignee or its designated custodian",
            "Exclusive power to keep others from changing the assignee, and to transfer control"
        ]
    );
    assert_eq!(
        without(|facts| facts.signed_documents.clear()),
        ["Signed by every debtor"]
    );
}

fn attribute(facts: &mut EnvelopeFacts, name: &str, value: &str) {
    facts.attributes.retain(|(known, _)| known != name);
    facts.attributes.push((name.into(), value.into()));
}

/// (b)(2): the mark was made before control passed on.
#[test]
fn a_mark_that_names_another_party_than_the_controller_does_not_identify_the_assignee() {
    let mut facts = complete();
    attribute(&mut facts, "control.controller", "first  EXAMPLE bank");
    assert!(evaluate(&facts).compliant);

    attribute(&mut facts, "control.controller", "Harbor Funding Trust");
    let evaluation = evaluate(&facts);
    assert_eq!(
        evaluation.missing_requirements,
        ["Authoritative copy identifies the assignee"]
    );
    assert_eq!(
        evaluation.checks[2].detail,
        "The authoritative copy is marked with First Example Bank; Harbor Funding Trust has control."
    );
}

#[test]
fn an_unmarked_copy_identifies_no_assignee() {
    let mut facts = complete();
    attribute(&mut facts, "authoritative_mark", "none");
    assert_eq!(
        evaluate(&facts).missing_requirements,
        ["Authoritative copy identifies the assignee"]
    );
}

/// (e)(2)(B): a power that needs the transferor's consent is not exclusive.
#[test]
fn a_power_shared_with_the_transferor_is_not_exclusive() {
    let mut facts = complete();
    attribute(&mut facts, "control.pledgee", "Maple Motors");
    assert!(evaluate(&facts).compliant);

    attribute(&mut facts, "control.pledgee_is_transferor", "true");
    let evaluation = evaluate(&facts);
    assert_eq!(evaluation.missing_requirements, [OF_THE_ASSIGNEE[3]]);
    assert!(
        evaluation.checks[7].detail.contains("Maple Motors"),
        "{}",
        evaluation.checks[7].detail
    );
}

/// The texts state exactly the rules that the host enforces for a party that accepted control.
#[test]
fn a_party_that_accepted_control_answers_the_checks_on_control() {
    let mut facts = complete();
    facts.custodians.clear();
    for (name, value) in [
        (
            "control.signs_with",
            "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs",
        ),
        ("control.pledgee", "Second Example Bank"),
        ("chattel_paper_jurisdiction", "US-DE"),
        ("control_chain", "[{\"name\":\"First Example Bank\"}]"),
    ] {
        attribute(&mut facts, name, value);
    }

    let evaluation = evaluate(&facts);
    assert!(
        evaluation.compliant,
        "{:?}",
        evaluation.missing_requirements
    );

    let detail = |index: usize| evaluation.checks[index].detail.as_str();
    assert_eq!(
        detail(0),
        "Acts in the custody ledger establish First Example Bank as the person to which the record was assigned, since 2026-11-21T09:45:00.000Z."
    );
    assert_eq!(
        detail(3),
        "The authoritative copy is kept in this vault for First Example Bank, which accepted control."
    );
    assert_eq!(
        detail(6),
        "The assignee identifies itself as First Example Bank, NMLS 100200, and by the key with the thumbprint NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs."
    );
    assert_eq!(
        detail(7),
        "The authoritative copy does not leave this vault, and control does not pass, without the consent of First Example Bank, which it signs with its own key, and of its pledgee Second Example Bank."
    );

    let component = ComponentIdentity {
        name: "holdfast-compliance-ucc2022".into(),
        version: "0.1.0".into(),
        sha256: "0".repeat(64),
    };
    let text = certificate(&facts, "2026-11-21T12:00:00.000Z", "Example", &component);
    let certificate: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(certificate["chattel_paper_jurisdiction"], "US-DE");
    assert_eq!(
        certificate["control_chain"][0]["name"],
        "First Example Bank"
    );
}

/// (c)(2): the number is stated together with the name.
#[test]
fn an_assignee_can_be_identified_by_a_number() {
    let mut facts = complete();
    facts.secured_party = Some(SecuredParty {
        name: "First Example Bank".into(),
        role: None,
        address: None,
        email: None,
        identifier: Some("LEI 5493001KJTIIGC8Y1R12".into()),
    });

    let checks = evaluate(&facts).checks;
    assert_eq!(
        checks[6].detail,
        "The assignee identifies itself as First Example Bank, LEI 5493001KJTIIGC8Y1R12."
    );
}

#[test]
fn the_certificate_names_its_statute() {
    let component = ComponentIdentity {
        name: "holdfast-compliance-ucc2022".into(),
        version: "0.1.0".into(),
        sha256: "0".repeat(64),
    };
    let text = certificate(
        &complete(),
        "2026-11-01T12:00:00.000Z",
        "Example",
        &component,
    );
    let certificate: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        certificate["certificate_type"],
        "ucc_9105_2022_electronic_copy"
    );

    assert_eq!(certificate["esign_act_compliance"]["compliant"], true);
    let statutes = certificate["ucc_9105_compliance"]["checks"]
        .as_array()
        .unwrap();
    let copies = "UCC §9-105(b)(5) and (c)(1) (2022)";
    assert_eq!(statutes[5]["statute_reference"], copies);
    assert_eq!(
        statutes[7]["statute_reference"],
        "UCC §9-105(b)(4), (c)(3)(A), (c)(3)(B) and (d) (2022)"
    );

    for notice in [
        "This certificate describes one electronic record under the Uniform Commercial Code as amended in 2022. \
         Whether the record evidences chattel paper was not checked.",
        "The authoritative electronic copy is the one whose SHA-256 digest is stated here. The copies that this \
         service makes of it are marked as non-authoritative; of copies made elsewhere it knows nothing.",
    ] {
        assert!(text.contains(notice), "{notice}: {text}");
    }
}
