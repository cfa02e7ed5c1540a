//! Declared checks, changed checks, and expressions that cannot be evaluated.

use cel::Program;
use holdfast_conditions::{Expression, SentencePart, read, write};

use crate::rules::{AddedCheck, ChangedCheck, DeclaredRules};
use crate::types::{Check, EnvelopeFacts, EnvelopeStatus, SecuredParty, Submitter};
use crate::{certificate, evaluate, evaluate_with, requirements};

fn facts() -> EnvelopeFacts {
    EnvelopeFacts {
        envelope_id: "env_1".into(),
        envelope_name: "Contract".into(),
        customer_id: "cust_1".into(),
        status: EnvelopeStatus::VaultedOut,
        vault_file_path: Some("vault:env_1".into()),
        document_hash: Some("a".repeat(64)),
        copy_file_path: None,
        vault_out_certificate_path: None,
        secured_party: Some(SecuredParty {
            name: "Oak Bank".into(),
            role: None,
            address: None,
            email: None,
            identifier: None,
        }),
        submitters: vec![Submitter {
            name: "Ann".into(),
            email: "Ann@example.com".into(),
            role: "Buyer".into(),
        }],
        signed_documents: Vec::new(),
        custodians: Vec::new(),
        identity_verifications: Vec::new(),
        attributes: vec![
            ("metadata.insurance".into(), "active".into()),
            ("chattel_paper_jurisdiction".into(), "US-NY".into()),
        ],
    }
}

fn expression(text: &str) -> Expression {
    Expression::of(Program::compile(text).unwrap().expression()).unwrap()
}

fn text(text: &str) -> Vec<SentencePart> {
    vec![SentencePart::Text(text.into())]
}

fn check(condition: &str) -> AddedCheck {
    AddedCheck {
        requirement: "Own".into(),
        reference: "Policy 1".into(),
        statute_reference: None,
        satisfied_when: expression(condition),
        satisfied: text("Yes."),
        unsatisfied: text("No."),
        weight: 1,
    }
}

/// Returns the declared check of rules with this condition.
fn outcome(condition: &str) -> Check {
    let rules = DeclaredRules {
        changes: Vec::new(),
        checks: vec![check(condition)],
    };
    let evaluation = evaluate_with(&rules, &facts());
    assert_eq!(evaluation.checks.len(), 9);
    evaluation.checks[8].clone()
}

#[test]
fn conditions_read_every_kind_of_fact() {
    for condition in [
        "metadata.insurance == 'active'",
        "attributes['metadata.insurance'].startsWith('act')",
        "attributes.chattel_paper_jurisdiction in ['US-NY', 'US-DE']",
        "has(metadata.insurance) && !has(metadata.lender)",
        "status == 'vaulted_out'",
        "secured_party.name.lowerAscii().contains('oak')",
        "secured_party.identifier == null",
        "size(submitters) == 1 && submitters.all(one, one.email.endsWith('@example.com'))",
        "submitters.exists(one, one.role == 'Buyer')",
        "submitters.map(one, one.name) == ['Ann']",
        "signed_documents == []",
        "size(document_hash) == 64 && 2 + 2 > 3",
        "copy_file_path == null ? true : false",
    ] {
        let check = outcome(condition);
        assert!(check.satisfied, "{condition}: {}", check.detail);
        assert_eq!(check.detail, "Yes.");
    }
}

#[test]
fn a_condition_that_cannot_be_evaluated_does_not_hold_and_says_why() {
    for (condition, why) in [
        ("metadata.lender == 'Oak'", "No such key: lender"),
        ("size(document_hash) + 1", "it is int and not true or false"),
        ("document_hash > 5", "no matching overload"),
        ("secured_party.identifier.size() > 1", "cannot be evaluated"),
    ] {
        let check = outcome(condition);
        assert!(!check.satisfied, "{condition}");
        assert!(
            check
                .detail
                .starts_with("No. The condition cannot be evaluated: "),
            "{}",
            check.detail
        );
        assert!(check.detail.contains(why), "{}", check.detail);
    }
}

#[test]
fn a_change_makes_a_check_stricter_and_never_looser() {
    let change = |requirement: &str, condition: &str| ChangedCheck {
        requirement: requirement.into(),
        reference: Some("Policy 2".into()),
        also_when: Some(expression(condition)),
        satisfied: Some(vec![
            SentencePart::Value(expression("secured_party.name")),
            SentencePart::Text(" is approved.".into()),
        ]),
        unsatisfied: Some(vec![
            SentencePart::Text("Not approved: ".into()),
            SentencePart::Value(expression("detail")),
        ]),
        ..ChangedCheck::default()
    };

    let evaluated = |change: ChangedCheck| {
        let rules = DeclaredRules {
            changes: vec![change],
            checks: Vec::new(),
        };
        evaluate_with(&rules, &facts()).checks
    };
    let party = evaluated(change("Secured party identified", "true"));
    assert!(party[7].satisfied);
    assert_eq!(party[7].detail, "Oak Bank is approved.");
    assert_eq!(party[7].ucc_reference, "Policy 2");

    let party = evaluated(change(
        "Secured party identified",
        "secured_party.identifier != null",
    ));
    assert!(!party[7].satisfied);
    assert_eq!(
        party[7].detail,
        "Not approved: The originator names Oak Bank as the secured party."
    );

    // A check that fails stays so.
    let custodian = evaluated(change("Controlling party identified", "true"));
    assert!(!custodian[2].satisfied);
    assert_eq!(
        custodian[2].detail,
        "Not approved: No custodian has accepted control of the record."
    );
}

#[test]
fn the_score_is_the_share_of_the_weights() {
    // Three checks of the pack hold: the copy, the hash and the secured party.
    let score = |weight: u32, condition: &str| {
        let mut check = check(condition);
        check.weight = weight;
        let rules = DeclaredRules {
            changes: Vec::new(),
            checks: vec![check],
        };
        let evaluation = evaluate_with(&rules, &facts());
        assert!(!evaluation.compliant);

        evaluation.score
    };
    assert_eq!((score(1, "true"), score(1, "false")), (44, 33));
    assert_eq!((score(8, "true"), score(8, "false")), (69, 19));

    // Rounding does not make a record compliant.
    assert_eq!(score(1000, "true"), 99);
}

#[test]
fn rules_are_written_into_the_reserved_space_only() {
    assert_eq!(read::<DeclaredRules>(), DeclaredRules::default());
    assert_eq!(evaluate(&facts()).checks.len(), requirements().len());

    let mut component = b"code holdfast: declared rules code ".to_vec();
    let rules = DeclaredRules {
        changes: Vec::new(),
        checks: vec![check("true")],
    };
    assert_eq!(
        write(&mut component, &rules).unwrap_err(),
        "the component has no space for content"
    );

    let many = DeclaredRules {
        changes: Vec::new(),
        checks: vec![check("status == 'vaulted'"); 400],
    };
    let told = write(&mut component, &many).unwrap_err();
    assert!(told.contains("fit"), "{told}");
}

#[test]
fn the_certificate_states_every_check() {
    let identity = crate::types::ComponentIdentity {
        name: "rules".into(),
        version: "1.0.0".into(),
        sha256: "0".repeat(64),
    };
    let text = certificate(&facts(), "2026-01-02T03:04:05.000Z", "Example", &identity);
    let certificate: serde_json::Value = serde_json::from_str(&text).unwrap();
    let checks = &certificate["ucc_9105_compliance"]["checks"];
    assert_eq!(checks.as_array().unwrap().len(), 8);
    assert_eq!(checks[1]["statute_reference"], "UCC §9-105(b)(6)");
}
