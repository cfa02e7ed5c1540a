//! Declared rules, changed rules, exact numbers, and conditions that cannot be evaluated.

use cel::Program;
use holdfast_conditions::{Expression, SentencePart, read};
use serde_json::{Value, json};

use crate::declared_rules::{AddedRule, ChangedRule, DeclaredRules};
use crate::types::{Assessment, Decision, Finding, FundingFacts, Severity};
use crate::{check, check_with, findings};

/// A contract with 24 payments of 230.00 for 5,000.00, of which every built-in rule approves.
fn facts() -> FundingFacts {
    changed(json!({}))
}

/// The contract with other members.
fn changed(patch: Value) -> FundingFacts {
    let vectors: Value =
        serde_json::from_str(include_str!("../../../wit/funding/vectors.json")).unwrap();
    let mut facts = vectors["vectors"][0]["facts"].clone();
    for (name, value) in patch.as_object().unwrap() {
        facts[name] = value.clone();
    }
    serde_json::from_value(facts).unwrap()
}

fn expression(text: &str) -> Expression {
    Expression::of(Program::compile(text).unwrap().expression()).unwrap()
}

fn text(text: &str) -> Vec<SentencePart> {
    vec![SentencePart::Text(text.into())]
}

fn rule(condition: &str) -> AddedRule {
    AddedRule {
        rule: "credit.own".into(),
        severity: Severity::Stop,
        is_gap: false,
        facts: vec!["number_of_payments".into()],
        applies_when: None,
        holds_when: expression(condition),
        expected: text("another contract"),
        actual: None,
        sentence: text("No."),
        source: "Credit policy 4".into(),
    }
}

fn with(rule: AddedRule) -> DeclaredRules {
    DeclaredRules {
        changes: Vec::new(),
        rules: vec![rule],
    }
}

/// Returns the finding of a rule with this condition; none if it holds.
fn finding(condition: &str) -> Option<Finding> {
    let assessment = check_with(&with(rule(condition)), &facts());
    assert!(assessment.findings.len() < 2, "{:?}", assessment.findings);
    assessment.findings.into_iter().next()
}

fn summary(assessment: &Assessment) -> (Decision, Vec<(&str, Severity)>) {
    let findings = assessment.findings.iter();
    let findings = findings.map(|one| (one.rule.as_str(), one.severity));
    (assessment.decision, findings.collect())
}

#[test]
fn without_declared_rules_the_built_in_ones_decide() {
    assert_eq!(read::<DeclaredRules>(), DeclaredRules::default());
    assert_eq!(summary(&check(&facts())), (Decision::Ready, Vec::new()));
    assert!(findings(&facts()).is_empty());
}

#[test]
fn conditions_read_every_kind_of_fact_and_numbers_are_exact() {
    for condition in [
        "facts.number_of_payments <= 24 && facts.number_of_payments > 23",
        "facts.amount_financed == 5000 && facts.amount_financed < 5000.01",
        "facts.payment_amount * facts.number_of_payments == facts.total_of_payments",
        "facts.total_of_payments - facts.amount_financed == facts.finance_charge",
        "facts.finance_charge / facts.amount_financed == 0.104",
        "facts.payment_amount * 0.1 + facts.payment_amount * 0.2 == 69",
        "-facts.finance_charge < 0",
        "facts.apr <= 9.69 && facts.apr < 9.690001 && facts.apr != 9.7",
        "facts.apr <= decimal('9.69') && decimal('9.69') >= facts.apr",
        "days(facts.contract_date, facts.first_payment_date) == 31",
        "facts.contract_date < facts.first_payment_date && today >= facts.contract_date",
        "facts.vin.startsWith('1M8')",
        "has(facts.apr) && !has(facts.down_payment) && 'apr' in facts",
        "origins.contract_date == 'signed' && statuses.apr == 'known'",
        "stipulations.insurance == 'waived' && 'proof_of_income' in stipulations",
        "size(signers) == 2 && signers.all(one, one.is_signed)",
        "secured_party == 'First Example Bank' && 'US-OH' in jurisdictions",
        "stage == 'after_signing' && !has(metadata.credit_line)",
    ] {
        let found = finding(condition);
        assert_eq!(found, None, "{condition}");
    }
}

#[test]
fn a_rule_that_does_not_hold_is_a_finding_with_its_facts_and_their_values() {
    let mut own = rule("facts.number_of_payments <= 12");
    own.expected = vec![SentencePart::Text("at most 12 payments".into())];
    own.sentence = vec![
        SentencePart::Text("The contract has ".into()),
        SentencePart::Value(expression("facts.number_of_payments")),
        SentencePart::Text(" payments of ".into()),
        SentencePart::Value(expression("facts.payment_amount * 1.05")),
        SentencePart::Text(".".into()),
    ];
    let assessment = check_with(&with(own), &facts());
    assert_eq!(assessment.decision, Decision::Refused);
    let found = &assessment.findings[0];
    assert_eq!(
        (found.expected.as_str(), found.actual.as_str()),
        ("at most 12 payments", "24")
    );
    assert_eq!(found.sentence, "The contract has 24 payments of 241.50.");
    assert_eq!(found.facts, ["number_of_payments"]);
}

#[test]
fn what_is_missing_makes_a_contract_incomplete_and_not_refused() {
    for (condition, why) in [
        ("facts.dealer_reserve <= 500", "No such key: dealer_reserve"),
        ("facts.vin <= 500", "no matching overload"),
        ("facts.apr <= 'low'", "the other value is no number"),
        ("facts.apr + facts.vin > 1", "the other value is no number"),
        ("facts.apr / (facts.apr - 9.69) > 1", "division by zero"),
        ("decimal('1e3') > 1", "no number with at most six decimals"),
        ("days(facts.vin, today) > 1", "is no date"),
        (
            "facts.amount_financed * facts.amount_financed * facts.amount_financed > 1",
            "too large",
        ),
        ("facts.apr", "cannot be evaluated"),
    ] {
        let assessment = check_with(&with(rule(condition)), &facts());
        assert_eq!(assessment.decision, Decision::Incomplete, "{condition}");
        let sentence = &assessment.findings[0].sentence;
        assert!(
            sentence.starts_with("No. The condition cannot be evaluated: "),
            "{sentence}"
        );
        assert!(sentence.contains(why), "{condition}: {sentence}");
    }

    let mut own = rule("false");
    own.is_gap = true;
    assert_eq!(
        check_with(&with(own), &facts()).decision,
        Decision::Incomplete
    );
}

#[test]
fn a_rule_is_about_the_contracts_that_it_names() {
    let applied = |condition: &str| {
        let mut own = rule("false");
        own.applies_when = Some(expression(condition));
        !check_with(&with(own), &facts()).findings.is_empty()
    };
    assert!(applied("stage == 'after_signing'"));
    assert!(!applied("stage == 'before_sending'"));
    // A fact that is missing does not end a rule.
    assert!(applied("facts.dealer_reserve > 0"));
}

#[test]
fn severities_decide() {
    for (severity, decision) in [
        (Severity::Stop, Decision::Refused),
        (Severity::Warn, Decision::Ready),
        (Severity::Note, Decision::Ready),
    ] {
        let mut own = rule("false");
        own.severity = severity;
        let assessment = check_with(&with(own), &facts());
        assert_eq!(
            summary(&assessment),
            (decision, vec![("credit.own", severity)])
        );
    }
}

#[test]
fn a_change_gives_findings_of_a_built_in_rule_another_severity_and_other_words() {
    let open = changed(json!({ "stipulations": [{ "kind": "insurance", "state": "Open" }] }));
    let with = |when: Option<&str>| {
        let change = ChangedRule {
            rule: "stipulations.complete".into(),
            applies_when: when.map(expression),
            severity: Some(Severity::Warn),
            sentence: Some(vec![
                SentencePart::Text("Ask for it: ".into()),
                SentencePart::Value(expression("detail")),
            ]),
            source: Some("Credit policy 9".into()),
        };
        let rules = DeclaredRules {
            changes: vec![change],
            rules: Vec::new(),
        };
        check_with(&rules, &open)
    };

    let assessment = with(None);
    assert_eq!(
        summary(&assessment),
        (
            Decision::Ready,
            vec![("stipulations.complete", Severity::Warn)]
        )
    );
    assert_eq!(
        assessment.findings[0].sentence,
        "Ask for it: insurance is still required."
    );
    assert_eq!(assessment.findings[0].source, "Credit policy 9");

    // Without its fact, a condition weakens nothing.
    for when in ["stage == 'transfer'", "facts.dealer_reserve > 0"] {
        assert_eq!(with(Some(when)).decision, Decision::Incomplete, "{when}");
    }
}
