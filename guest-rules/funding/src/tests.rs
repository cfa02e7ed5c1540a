//! The rules against `wit/funding/vectors.json`, and the parts that they are made of.

use serde_json::Value;

use crate::apr::{Position, UnitPeriod};
use crate::types::{Assessment, FundingFacts, Severity};
use crate::{Amount, Date, RULES, check, names, vin};

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../../wit/funding/vectors.json")).unwrap()
}

/// Applies a merge patch (RFC 7396).
fn merge(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (name, value) in patch {
                merge(into.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (into, patch) => *into = patch.clone(),
    }
}

fn answer(facts: &Value) -> Assessment {
    let facts: FundingFacts = serde_json::from_value(facts.clone()).unwrap();
    check(&facts)
}

#[test]
fn every_vector_has_the_decision_and_the_findings_that_it_lists() {
    let vectors = vectors();
    let all = vectors["vectors"].as_array().unwrap();
    for vector in all {
        let name = vector["name"].as_str().unwrap();
        let assessment = answer(&vector["facts"]);
        let found: Vec<String> = assessment
            .findings
            .iter()
            .map(|finding| format!("{}: {:?}", finding.rule, finding.severity).to_lowercase())
            .map(|text| text.replace("severity::", ""))
            .collect();
        let decision = format!("{:?}", assessment.decision).replace("Decision::", "");
        assert_eq!(
            decision,
            vector["decision"].as_str().unwrap(),
            "{name}: {found:?}"
        );
        let expected: Vec<&str> = vector["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|finding| finding.as_str().unwrap())
            .collect();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn every_rule_has_a_vector_and_a_source() {
    let vectors = vectors();
    let mut seen = Vec::new();
    for vector in vectors["vectors"].as_array().unwrap() {
        for finding in answer(&vector["facts"]).findings {
            assert!(RULES.contains(&finding.rule.as_str()), "{}", finding.rule);
            assert!(!finding.source.is_empty() && finding.sentence.ends_with(['.', '`', 'l']));
            seen.push(finding.rule);
        }
    }
    for rule in RULES {
        assert!(seen.iter().any(|seen| seen == rule), "{rule} has no vector");
    }
}

#[test]
fn a_contract_that_must_not_be_funded_is_never_ready() {
    let vectors = vectors();
    for vector in vectors["never"].as_array().unwrap() {
        let decision = answer(&vector["facts"]);
        let stops = decision.findings.iter();
        let stops = stops.filter(|finding| finding.severity == Severity::Stop);
        assert!(stops.count() > 0, "{}", vector["name"]);
    }
}

#[test]
fn the_apr_may_differ_by_an_eighth_of_a_point() {
    let vectors = vectors();
    let clean = &vectors["vectors"][0]["facts"];
    let with_rate = |rate: &str| {
        let mut facts = clean.clone();
        let all = facts["facts"].as_array_mut().unwrap();
        let apr = all.iter_mut().find(|fact| fact["name"] == "apr").unwrap();
        merge(apr, &serde_json::json!({ "value": rate }));
        let findings = answer(&facts).findings;
        findings.iter().any(|finding| finding.rule == "box.apr")
    };

    // The payments of the first vector make 9.6901 %.
    for (rate, is_wrong) in [
        ("9.69", false),
        ("9.81", false),
        ("9.82", true),
        ("9.57", false),
        ("9.56", true),
    ] {
        assert_eq!(with_rate(rate), is_wrong, "{rate}");
    }
}

#[test]
fn a_last_row_whose_date_follows_anyway_is_regular() {
    let vectors = vectors();
    let is_wrong = |last: &str| {
        let mut facts = vectors["vectors"][0]["facts"].clone();
        let all = facts["facts"].as_array_mut().unwrap();
        let like = |name: &str| {
            all.iter()
                .find(|fact| fact["name"] == name)
                .unwrap()
                .clone()
        };
        let rows = [
            ("apr", "apr", "9.85"),
            ("number_of_payments", "number_of_payments", "23"),
            ("number_of_payments", "number_of_payments_2", "1"),
            ("payment_amount", "payment_amount_2", "230.00"),
            ("first_payment_date", "first_payment_date_2", last),
        ];
        let rows = rows.map(|(of, name, value)| {
            let mut row = like(of);
            merge(
                &mut row,
                &serde_json::json!({ "name": name, "value": value }),
            );
            row
        });
        all.retain(|fact| fact["name"] != "apr" && fact["name"] != "number_of_payments");
        all.extend(rows);
        let findings = answer(&facts).findings;
        findings.iter().any(|finding| finding.rule == "box.apr")
    };

    // 9.85 % is more than an eighth of a point away, and less than a quarter.
    assert!(is_wrong("2028-01-10"));
    assert!(!is_wrong("2028-01-12"));
}

#[test]
fn amounts_are_exact() {
    let parse = |text| Amount::parse(text).map(|amount| amount.to_string());
    assert_eq!(parse("21500.00").as_deref(), Some("21500.00"));
    assert_eq!(parse("-0.5").as_deref(), Some("-0.50"));
    assert_eq!(parse("7.987654").as_deref(), Some("7.987654"));
    for text in [
        "",
        ".",
        "1,000.00",
        "1.1234567",
        "NaN",
        "1e3",
        "99999999999999",
    ] {
        assert_eq!(parse(text), None, "{text}");
    }

    let cent = Amount::parse("0.01").unwrap();
    assert_eq!(cent.times(3).unwrap().to_string(), "0.03");
    assert_eq!(Amount::parse("10000000000.00").unwrap().times(9), None);
    assert_eq!(
        Amount::parse("1.005").unwrap().rounded(2).to_string(),
        "1.01"
    );
}

#[test]
fn months_are_measured_back_from_the_later_date() {
    let date = |text| Date::parse(text).unwrap();
    let months = |from, to| {
        let (months, begins) = date(to).months_since(date(from));
        (months, begins.to_string())
    };
    assert_eq!(months("1978-02-10", "1978-04-01"), (1, "1978-03-01".into()));
    assert_eq!(months("2026-01-31", "2026-02-28"), (1, "2026-01-31".into()));
    assert_eq!(months("2024-01-30", "2024-02-29"), (1, "2024-01-31".into()));
    assert_eq!(date("1970-01-01").days(), 0);
    assert_eq!(date("2000-03-01").days(), 11_017);
    for text in [
        "2026-02-29",
        "2026-13-01",
        "2026-1-01",
        "26-01-01",
        "2026-01-01-01",
    ] {
        assert_eq!(Date::parse(text), None, "{text}");
    }

    let at = Position::between(
        UnitPeriod::Months(1),
        date("2026-02-01"),
        date("2026-01-01"),
    );
    assert_eq!(at, None);
}

#[test]
fn a_vin_has_the_check_digit_of_the_regulation() {
    // The example of 49 CFR 565.15(c).
    assert_eq!(vin::check_digit("1G4AH59H45G118341"), Some('4'));
    assert_eq!(vin::check_digit("11111111111111111"), Some('1'));
    assert_eq!(vin::check_digit("1M8GDM9AXKP042788"), Some('X'));
    for text in [
        "",
        "1M8GDM9AXKP04278",
        "1M8GDM9AXKP0427888",
        "IM8GDM9AXKP042788",
    ] {
        assert_eq!(vin::check_digit(text), None, "{text}");
    }
}

#[test]
fn names_are_equal_apart_from_their_spelling() {
    assert!(names::are_equal(
        "First Example Bank, N.A.",
        "first example bank NA"
    ));
    assert!(names::are_equal(
        "First Example Bank ISAOA",
        "First Example Bank"
    ));
    assert!(!names::are_equal(
        "First Example Bank",
        "First Example Bancorp"
    ));
    assert!(!names::are_equal("", ""));
    assert_eq!(names::state_code("US-OH"), names::state_code("Ohio"));
    assert_eq!(names::state_code("Ontario"), None);
}
