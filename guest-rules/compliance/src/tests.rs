//! One test per row of the specification's table, and the certificate.

use crate::types::{
    ComponentIdentity, Custodian, CustodianStatus, EnvelopeFacts, EnvelopeStatus,
    IdentityVerification, SecuredParty, SignedDocument, Submitter,
};
use crate::{certificate, evaluate};

/// A record that passes every check.
fn vaulted() -> EnvelopeFacts {
    EnvelopeFacts {
        envelope_id: "env_1".into(),
        envelope_name: "Retail installment contract".into(),
        customer_id: "cust_1".into(),
        status: EnvelopeStatus::Vaulted,
        vault_file_path: Some("vault:env_1/authoritative".into()),
        document_hash: Some("a".repeat(64)),
        copy_file_path: Some("copies:env_1/copy".into()),
        vault_out_certificate_path: Some("certificates:env_1/certificate".into()),
        secured_party: Some(SecuredParty {
            name: "First Example Bank".into(),
            role: Some("lender".into()),
            address: None,
            email: None,
            identifier: None,
        }),
        submitters: vec![
            submitter("buyer@example.com"),
            submitter("seller@example.com"),
        ],
        signed_documents: vec![signed("buyer@example.com"), signed("Seller@Example.com")],
        custodians: vec![custodian(CustodianStatus::Accepted)],
        identity_verifications: Vec::new(),
        attributes: Vec::new(),
    }
}

fn submitter(email: &str) -> Submitter {
    Submitter {
        name: email.split('@').next().unwrap_or_default().into(),
        email: email.into(),
        role: "Buyer".into(),
    }
}

/// Adds signers with an identity, as hosts after 1.0 do.
fn with_signers(facts: &mut EnvelopeFacts, signers: serde_json::Value) {
    facts
        .attributes
        .push(("signers".into(), signers.to_string()));
}

fn signed(email: &str) -> SignedDocument {
    SignedDocument {
        signer_email: email.into(),
        signed_at: "2026-11-01T10:00:00.000Z".into(),
    }
}

fn custodian(status: CustodianStatus) -> Custodian {
    Custodian {
        email: "owner@example.com".into(),
        status,
    }
}

/// Changes one thing in a passing record and expects exactly check `number` to fail.
#[track_caller]
fn fails_only(number: usize, change: impl FnOnce(&mut EnvelopeFacts)) {
    let mut facts = vaulted();
    change(&mut facts);
    let evaluation = evaluate(&facts);
    let failed: Vec<usize> = (1..=8)
        .filter(|index| !evaluation.checks[index - 1].satisfied)
        .collect();
    assert_eq!(failed, [number]);
    assert_eq!(evaluation.score, 88);
    assert!(!evaluation.compliant);
    assert_eq!(
        evaluation.missing_requirements,
        [evaluation.checks[number - 1].requirement.clone()]
    );
}

#[test]
fn a_complete_vaulted_record_scores_100() {
    let evaluation = evaluate(&vaulted());
    assert!(evaluation.compliant);
    assert_eq!(evaluation.score, 100);
    assert!(evaluation.missing_requirements.is_empty());
}

#[test]
fn requirements_and_references_match_the_specification() {
    let evaluation = evaluate(&vaulted());
    let rows: Vec<(&str, &str)> = evaluation
        .checks
        .iter()
        .map(|check| (check.requirement.as_str(), check.ucc_reference.as_str()))
        .collect();
    assert_eq!(
        rows,
        [
            ("Single authoritative copy", "UCC §9-105(b)(2)"),
            ("Tamper-evident record", "UCC §9-105(b)(4)"),
            ("Controlling party identified", "UCC §9-105(b)(1)"),
            ("All required signatories executed", "UCC §9-105(b)(3)"),
            ("Non-authoritative copies identifiable", "UCC §9-105(b)(5)"),
            ("Electronic record fully executed", "UCC §9-105 general"),
            ("Audit certificate generated", "UCC §9-105 best practice"),
            ("Secured party identified", "UCC §9-105(b)(1)"),
        ]
    );
}

type Change = fn(&mut EnvelopeFacts);

/// Each sentence with the fact that it rests on: another fact gives another sentence.
#[test]
fn each_check_states_exactly_the_fact_that_it_rests_on() {
    fn set(facts: &mut EnvelopeFacts, name: &str, value: &str) {
        facts.attributes.push((name.into(), value.into()));
    }
    fn release(facts: &mut EnvelopeFacts) {
        facts.status = EnvelopeStatus::VaultedOut;
        facts.vault_file_path = None;
    }

    let cases: &[(usize, Change, &str)] = &[
        (
            1,
            |_| (),
            "The authoritative copy is stored in this vault, written without overwrite, with a mark that names it.",
        ),
        (
            1,
            |facts| set(facts, "authoritative_mark", "none"),
            "The authoritative copy is stored in this vault, written without overwrite, without a mark, because its author certified it against any change.",
        ),
        (
            1,
            |facts| facts.vault_file_path = None,
            "No authoritative copy is stored in the vault.",
        ),
        (
            1,
            release,
            "The authoritative copy left this vault: the record was released on a time that is in the custody ledger.",
        ),
        (
            1,
            |facts| {
                release(facts);
                set(facts, "released_at", "2026-11-02")
            },
            "The authoritative copy left this vault: the record was released on 2026-11-02.",
        ),
        (
            2,
            |_| (),
            "SHA-256 of the stored bytes is on record: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.",
        ),
        (
            2,
            |facts| facts.document_hash = Some("abc".into()),
            "The recorded hash is not a SHA-256 digest.",
        ),
        (
            2,
            |facts| facts.document_hash = None,
            "No hash of the stored bytes is on record.",
        ),
        (3, |_| (), "The custodian on record is owner@example.com."),
        (
            3,
            |facts| facts.custodians.clear(),
            "No custodian has accepted control of the record.",
        ),
        (
            3,
            |facts| {
                release(facts);
                set(facts, "released_at", "2026-11-02")
            },
            "The custodian on record is owner@example.com, until the record was released on 2026-11-02.",
        ),
        (
            3,
            |facts| set(facts, "control.controller", "Harbor Trust"),
            "The custodian on record is owner@example.com; Harbor Trust accepted control.",
        ),
        (
            3,
            |facts| {
                set(facts, "control.controller", "Harbor Trust");
                set(facts, "control.since", "2026-11-03")
            },
            "The custodian on record is owner@example.com; Harbor Trust accepted control on 2026-11-03.",
        ),
        (4, |_| (), "Every required signer has signed (2 of 2)."),
        (
            4,
            |facts| {
                facts.signed_documents.pop();
            },
            "Not yet signed by: seller@example.com.",
        ),
        (
            4,
            |facts| facts.submitters.clear(),
            "No signers are recorded. The uploader states that the document was signed elsewhere; this service did not check it.",
        ),
        (
            4,
            |facts| {
                facts.submitters.clear();
                set(facts, "envelope_kind", "esign")
            },
            "No signers are recorded.",
        ),
        (
            4,
            |facts| {
                with_signers(
                    facts,
                    serde_json::json!([{ "signer_id": "sgn_1", "name": "Ann", "email": "ann@example.com", "role": "Manager", "kind": "approver" }]),
                )
            },
            "Not yet approved by: Ann (Manager, ann@example.com).",
        ),
        (
            4,
            |facts| with_signers(facts, participant("approver", None)),
            "Nobody was asked to sign; approvals are no signatures.",
        ),
        (
            5,
            |_| (),
            "A copy marked as non-authoritative is stored apart from the authoritative one.",
        ),
        (
            5,
            |facts| facts.copy_file_path = Some("vault:env_1/copy".into()),
            "The stored copy is not in the copies location.",
        ),
        (
            5,
            |facts| facts.copy_file_path = None,
            "No non-authoritative copy is stored.",
        ),
        (
            6,
            |_| (),
            "Every party has completed their part (status vaulted).",
        ),
        (
            6,
            |facts| set(facts, "envelope_kind", "paper"),
            "The status is vaulted. Whether the uploaded document is executed is the uploader's statement.",
        ),
        (
            6,
            release,
            "The status is vaulted_out: the record was released from this vault.",
        ),
        (
            6,
            |facts| facts.status = EnvelopeStatus::Sent,
            "The record is not in a fully executed status (status sent).",
        ),
        (
            7,
            |_| (),
            "A compliance certificate is stored with the record.",
        ),
        (
            7,
            |facts| facts.vault_out_certificate_path = None,
            "The compliance certificate is not yet generated.",
        ),
        (
            8,
            |_| (),
            "The originator names First Example Bank as the secured party.",
        ),
        (
            8,
            |facts| facts.secured_party.as_mut().unwrap().name = " ".into(),
            "The secured party has no name.",
        ),
        (
            8,
            |facts| facts.secured_party = None,
            "No secured party is recorded.",
        ),
    ];

    for (number, change, sentence) in cases {
        let mut facts = vaulted();
        change(&mut facts);
        assert_eq!(evaluate(&facts).checks[number - 1].detail, *sentence);
    }
}

/// Notices about test data and uploads are in the certificates of such records only.
#[test]
fn notices_are_of_the_kind_of_record() {
    let notices = |facts: &EnvelopeFacts| {
        let certificate = certified(facts);
        let notices = certificate["legal_notices"].as_array().unwrap().iter();
        notices
            .map(|notice| notice.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let plain = notices(&vaulted());
    assert_eq!(plain.len(), 3);
    assert_eq!(
        plain,
        [
            "This certificate describes one electronic record. Whether the record evidences a monetary obligation and \
             a security interest in or a lease of specific goods was not checked.",
            "The authoritative copy is the one whose SHA-256 digest is stated here. The copies that this service makes \
             of it are marked as non-authoritative; of copies made elsewhere it knows nothing.",
            "Whether the secured party has control under UCC §9-105 is a question of law. This certificate states the \
             facts that were recorded and the checks that were run on them.",
        ]
    );

    let mut test = vaulted();
    test.attributes.push(("environment".into(), "test".into()));
    assert!(notices(&test)[0].starts_with("TEST: this certificate is about test data."));

    let mut paper = vaulted();
    paper
        .attributes
        .push(("envelope_kind".into(), "paper".into()));
    let of_paper = notices(&paper);
    assert_eq!(of_paper.len(), 4);
    assert!(of_paper[3].starts_with("The document was uploaded as a signed one."));

    // A record that an asked person did not sign has a test with a negative result.
    let mut unsigned = vaulted();
    unsigned.signed_documents.pop();
    let esign = &certified(&unsigned)["esign_act_compliance"];
    assert_eq!(esign["compliant"], false);

    let act = "Electronic Signatures in Global and National Commerce Act";
    assert_eq!(esign["act"], act);
    assert_eq!(esign["citation"], "15 U.S.C. §7001(a) and (d)");
    assert!(
        esign["tested"].as_str().unwrap().starts_with("Whether "),
        "{esign}"
    );
    assert!(esign.get("reason").is_none(), "{esign}");

    let esign = &certified(&paper)["esign_act_compliance"];
    assert!(
        esign["reason"]
            .as_str()
            .unwrap()
            .contains("no electronic signature was made here")
    );
    assert!(esign.get("tested").is_none(), "{esign}");
}

#[test]
fn check_1_fails_without_a_stored_authoritative_copy() {
    fails_only(1, |facts| facts.vault_file_path = None);
    fails_only(1, |facts| facts.vault_file_path = Some(String::new()));
}

#[test]
fn check_2_fails_without_a_sha256_digest() {
    fails_only(2, |facts| facts.document_hash = None);
    fails_only(2, |facts| {
        facts.document_hash = Some("d41d8cd98f00b204".into())
    });
    fails_only(2, |facts| facts.document_hash = Some("x".repeat(64)));
}

#[test]
fn check_3_fails_without_an_accepted_custodian() {
    fails_only(3, |facts| facts.custodians.clear());
    fails_only(3, |facts| {
        facts.custodians = vec![
            custodian(CustodianStatus::Pending),
            custodian(CustodianStatus::Revoked),
        ];
    });
}

#[test]
fn check_3_names_the_first_accepted_custodian() {
    let mut facts = vaulted();
    facts.custodians = vec![
        custodian(CustodianStatus::Pending),
        Custodian {
            email: "second@example.com".into(),
            status: CustodianStatus::Accepted,
        },
        custodian(CustodianStatus::Accepted),
    ];
    assert!(
        evaluate(&facts).checks[2]
            .detail
            .contains("second@example.com")
    );
}

#[test]
fn check_4_fails_and_names_the_signer_who_has_not_signed() {
    fails_only(4, |facts| {
        facts.signed_documents.pop();
    });
    let mut facts = vaulted();
    facts.signed_documents.pop();
    assert!(
        evaluate(&facts).checks[3]
            .detail
            .contains("seller@example.com")
    );
}

#[test]
fn check_4_passes_for_paper_envelopes_without_submitters() {
    let mut facts = vaulted();
    facts.submitters.clear();
    facts.signed_documents.clear();
    assert!(evaluate(&facts).checks[3].satisfied);
}

const FIRST: &str = "2026-11-01T10:00:00.000Z";
const SECOND: &str = "2026-11-01T11:30:00.000Z";

/// Spouses on one mailbox: the first one's signature is not the second one's.
#[test]
fn signers_with_one_address_sign_each_for_themselves() {
    let spouse = |id: &str, position: u64, signed_at: Option<&str>| {
        serde_json::json!({
            "signer_id": id, "position": position, "name": format!("Spouse {position}"),
            "email": "home@example.com", "role": format!("Buyer {position}"), "kind": "signer",
            "signed_at": signed_at, "completed_at": signed_at,
        })
    };
    fails_only(4, |facts| {
        facts.signed_documents = vec![signed("home@example.com")];
        let signers = [spouse("sgn_1", 1, Some(FIRST)), spouse("sgn_2", 2, None)];
        with_signers(facts, serde_json::json!(signers));
    });

    let mut facts = vaulted();
    let signers = [
        spouse("sgn_1", 1, Some(FIRST)),
        spouse("sgn_2", 2, Some(SECOND)),
    ];
    with_signers(&mut facts, serde_json::json!(signers));
    let certificate = certified(&facts);
    let timeline = &certificate["signer_timeline"];
    assert_eq!(timeline[0]["signed_at"], FIRST);
    assert_eq!(timeline[1]["signed_at"], SECOND);
    assert_eq!(timeline[1]["signer_id"], "sgn_2");
    assert_eq!(
        evaluate(&facts).checks[3].detail,
        "Every required signer has signed (2 of 2)."
    );
}

fn participant(kind: &str, signed_at: Option<&str>) -> serde_json::Value {
    serde_json::json!([{
        "signer_id": "sgn_1", "position": 1, "name": "Ann", "email": "ann@example.com",
        "role": "Buyer", "kind": kind, "signed_at": signed_at, "completed_at": FIRST,
    }])
}

#[test]
fn check_4_fails_for_a_signer_who_was_asked_for_no_signature() {
    for kind in ["signer", "witness"] {
        fails_only(4, |facts| with_signers(facts, participant(kind, None)));
    }

    let mut facts = vaulted();
    with_signers(&mut facts, participant("signer", None));
    let detail = &evaluate(&facts).checks[3].detail;
    assert_eq!(
        detail,
        "Ann (Buyer, ann@example.com) completed the form; no signature was asked of them."
    );

    let certificate = certified(&facts);
    assert_eq!(certificate["esign_act_compliance"]["compliant"], false);
    assert_eq!(
        certificate["signer_timeline"][0]["signed_at"],
        serde_json::Value::Null
    );
}

#[test]
fn approvals_are_no_signatures() {
    fails_only(4, |facts| {
        with_signers(facts, participant("approver", None))
    });
    let mut facts = vaulted();
    let mut people = participant("signer", Some(FIRST));
    let approver = participant("approver", None)[0].clone();
    people.as_array_mut().unwrap().push(approver);

    with_signers(&mut facts, people);
    let check = &evaluate(&facts).checks[3];
    assert!(check.satisfied);
    assert_eq!(
        check.detail,
        "Every required signer has signed (1 of 1). Approvals without a signature: 1."
    );
}

/// No person looked at the pen on the paper.
#[test]
fn an_upload_has_no_verdict_under_the_esign_act() {
    let mut facts = vaulted();
    facts.submitters.clear();
    facts.signed_documents.clear();
    facts.attributes = vec![
        ("envelope_kind".into(), "paper".into()),
        ("paper_original".into(), r#"{"state":"unknown"}"#.into()),
    ];

    let evaluation = evaluate(&facts);
    assert_eq!(evaluation.score, 100);
    assert!(
        evaluation.checks[3]
            .detail
            .contains("this service did not check it")
    );
    assert!(evaluation.checks[5].detail.contains("uploader's statement"));

    let certificate = certified(&facts);
    let esign = &certificate["esign_act_compliance"];
    assert_eq!(esign["compliant"], serde_json::Value::Null);
    assert!(esign["reason"].as_str().unwrap().contains("elsewhere"));
    assert_eq!(certificate["paper_original"]["state"], "unknown");

    let notices = certificate["legal_notices"].to_string();
    assert!(notices.contains("not the sole original"), "{notices}");
}

#[test]
fn a_released_record_is_not_said_to_wait_for_the_vault() {
    let mut facts = vaulted();
    facts.status = EnvelopeStatus::VaultedOut;
    facts.vault_file_path = None;
    facts.attributes = vec![("released_at".into(), SECOND.into())];
    let details: Vec<String> = evaluate(&facts)
        .checks
        .into_iter()
        .map(|check| check.detail)
        .collect();
    assert!(!details.join(" ").contains("yet"), "{details:?}");
    assert!(details[0].contains(SECOND) && details[2].contains(SECOND));
}

#[test]
fn a_certificate_about_test_data_says_so_in_its_body() {
    let mut facts = vaulted();
    facts.attributes = vec![("environment".into(), "test".into())];
    let certificate = certified(&facts);
    assert_eq!(certificate["environment"], "test");
    let first = certificate["legal_notices"][0].as_str().unwrap();
    assert!(first.starts_with("TEST"), "{first}");
}

#[test]
fn check_5_fails_when_the_copy_is_missing_or_elsewhere() {
    fails_only(5, |facts| facts.copy_file_path = None);
    fails_only(5, |facts| {
        facts.copy_file_path = Some("vault:env_1/authoritative".into())
    });
}

#[test]
fn check_6_passes_for_completed_and_vaulted_only() {
    for status in [
        EnvelopeStatus::Pending,
        EnvelopeStatus::Uploaded,
        EnvelopeStatus::Preparing,
        EnvelopeStatus::Sent,
        EnvelopeStatus::Viewed,
        EnvelopeStatus::VaultedOut,
        EnvelopeStatus::Declined,
        EnvelopeStatus::Voided,
        EnvelopeStatus::Expired,
    ] {
        fails_only(6, |facts| facts.status = status);
    }

    let mut facts = vaulted();
    facts.status = EnvelopeStatus::Completed;
    assert!(evaluate(&facts).compliant);
}

#[test]
fn check_7_fails_without_a_certificate() {
    fails_only(7, |facts| facts.vault_out_certificate_path = None);
}

#[test]
fn check_8_fails_without_a_named_secured_party() {
    fails_only(8, |facts| facts.secured_party = None);
    fails_only(8, |facts| {
        if let Some(party) = &mut facts.secured_party {
            party.name = "  ".into();
        }
    });
}

#[test]
fn checks_1_2_3_5_and_7_fail_before_vault_in() {
    let mut facts = vaulted();
    facts.status = EnvelopeStatus::Completed;
    facts.vault_file_path = None;
    facts.document_hash = None;
    facts.copy_file_path = None;
    facts.vault_out_certificate_path = None;
    facts.custodians.clear();

    let evaluation = evaluate(&facts);
    assert_eq!(evaluation.score, 38);
    assert_eq!(
        evaluation.missing_requirements,
        [
            "Single authoritative copy",
            "Tamper-evident record",
            "Controlling party identified",
            "Non-authoritative copies identifiable",
            "Audit certificate generated",
        ]
    );
}

fn component() -> ComponentIdentity {
    ComponentIdentity {
        name: "holdfast-compliance".into(),
        version: "1.0.0".into(),
        sha256: "b".repeat(64),
    }
}

fn certified(facts: &EnvelopeFacts) -> serde_json::Value {
    let text = certificate(facts, "2026-11-02T09:00:00.000Z", "holdfast", &component());
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_certificate_has_the_specified_members() {
    let json = certified(&vaulted());
    assert_eq!(
        json["certificate_type"],
        "ucc_9105_electronic_chattel_paper"
    );
    assert_eq!(json["certificate_version"], "1.0");
    assert_eq!(json["issued_at"], "2026-11-02T09:00:00.000Z");
    assert_eq!(json["subject"]["envelope_id"], "env_1");
    assert_eq!(json["subject"]["status"], "vaulted");
    assert_eq!(json["secured_party"]["name"], "First Example Bank");
    assert_eq!(json["document_integrity"]["hash_algorithm"], "SHA-256");
    assert_eq!(json["document_integrity"]["document_hash"], "a".repeat(64));
    assert_eq!(json["ucc_9105_compliance"]["compliant"], true);
    assert_eq!(json["ucc_9105_compliance"]["score"], 100);

    assert_eq!(
        json["ucc_9105_compliance"]["checks"]
            .as_array()
            .unwrap()
            .len(),
        8
    );
    assert_eq!(json["esign_act_compliance"]["compliant"], true);
    assert_eq!(
        json["signer_timeline"][1]["signed_at"],
        "2026-11-01T10:00:00.000Z"
    );
    assert_eq!(json["rules_component"]["sha256"], "b".repeat(64));
    assert_eq!(json.get("identity_verification"), None);

    assert_eq!(json.get("ledger_checkpoint"), None);
    assert_eq!(json.get("provenance"), None);
}

#[test]
fn provenance_is_an_additional_object_of_the_certificate() {
    let mut facts = vaulted();
    let attribute = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    facts.attributes = vec![
        attribute("provenance.sandbox", "true"),
        attribute("provenance.trusted_time", r#"{"checked":false}"#),
        attribute("provenance.note", "not JSON"),
        attribute("provenance.", "a member needs a name"),
        attribute("elsewhere", "not about provenance"),
    ];

    let json = certified(&facts);
    let expected = serde_json::json!({
        "sandbox": true,
        "trusted_time": { "checked": false },
        "note": "not JSON",
    });
    assert_eq!(json["provenance"], expected);
    assert_eq!(json["ucc_9105_compliance"]["score"], 100);
    assert_eq!(json["ucc_9105_compliance"]["compliant"], true);
}

#[test]
fn consents_of_the_signers_are_repeated_and_change_no_check() {
    let mut facts = vaulted();
    let without = certified(&facts);
    assert_eq!(without.get("consumer_consent"), None);

    let consents = r#"[{"signer":"ann@example.com","demonstrated":null}]"#;
    let attribute = ("consumer_consent".to_owned(), consents.to_owned());
    facts.attributes.push(attribute);
    let mut with = certified(&facts);
    let repeated = with.as_object_mut().unwrap().remove("consumer_consent");
    let consents: serde_json::Value = serde_json::from_str(consents).unwrap();
    assert_eq!(repeated, Some(consents));
    assert_eq!(with, without);
}

#[test]
fn identity_verification_adds_members_and_changes_none() {
    let mut facts = vaulted();
    facts.identity_verifications = vec![IdentityVerification {
        signer_email: "buyer@example.com".into(),
        outcome: "passed".into(),
        occurred_at: "2026-11-01T09:58:00.000Z".into(),
        ip_address: Some("192.0.2.7".into()),
        provider_session_id: Some("evf_1".into()),
    }];

    let json = certified(&facts);
    assert_eq!(json["identity_verification"][0]["session_id"], "evf_1");

    let note = json["identity_verification"][0]["note"].as_str().unwrap();
    assert_eq!(
        note,
        "Result of knowledge-based questions. NIST SP 800-63A-4 (2025) does not accept them as identity verification."
    );
    assert_eq!(json["ucc_9105_compliance"]["score"], 100);
}

#[test]
fn the_same_record_gives_the_same_certificate() {
    let text = || {
        certificate(
            &vaulted(),
            "2026-11-02T09:00:00.000Z",
            "holdfast",
            &component(),
        )
    };
    assert_eq!(text(), text());
}

/// The built component is tested with the same vectors.
#[test]
fn conformance_vectors_pass() {
    #[derive(serde::Deserialize)]
    struct TestVector {
        name: String,
        facts: EnvelopeFacts,
        failed: Vec<usize>,
        score: u32,
    }

    #[derive(serde::Deserialize)]
    struct TestVectors {
        vectors: Vec<TestVector>,
    }

    let all: TestVectors =
        serde_json::from_str(include_str!("../../../wit/compliance/vectors.json")).unwrap();
    for vector in all.vectors {
        let evaluation = evaluate(&vector.facts);
        let failed: Vec<usize> = (1..=8)
            .filter(|number| !evaluation.checks[number - 1].satisfied)
            .collect();
        assert_eq!(failed, vector.failed, "{}", vector.name);
        assert_eq!(evaluation.score, vector.score, "{}", vector.name);
    }
}
