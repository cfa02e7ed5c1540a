//! Rules about the answers of signers: limits, patterns, conditions and formulas.

use holdfast_placement::{FieldEntry, FieldState, RuleProblem, RuledField, apply, check};

fn field(name: &str, kind: &str, rules: &[(&str, &str)]) -> RuledField {
    let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    RuledField {
        name: name.into(),
        field_type: kind.into(),
        role: "Buyer".into(),
        required: false,
        attributes: rules.iter().map(pair).collect(),
    }
}

fn states(fields: &[RuledField], answers: &[(&str, &str)]) -> Vec<FieldState> {
    let entry = |(name, value): &(&str, &str)| FieldEntry {
        role: "Buyer".into(),
        name: (*name).into(),
        value: (*value).into(),
    };
    let entries: Vec<_> = answers.iter().map(entry).collect();
    apply(fields, &entries, "2026-11-25")
}

/// Problem of an answer in the only field.
fn problem(kind: &str, rules: &[(&str, &str)], answer: &str) -> Option<RuleProblem> {
    let fields = [field("Field", kind, rules)];
    states(&fields, &[("Field", answer)]).remove(0).problem
}

/// Codes of the issues, with the rule that each names.
fn codes(fields: &[RuledField]) -> Vec<(String, String)> {
    let issues = check(fields).into_iter();
    issues
        .map(|issue| (issue.path.join("."), issue.code))
        .collect()
}

fn refused(kind: &str, rules: &[(&str, &str)]) -> Vec<(String, String)> {
    codes(&[field("Field", kind, rules), field("Other", "text", &[])])
}

#[test]
fn numbers_have_limits() {
    let limits = [("min", "500"), ("max", "10000.50")];
    assert_eq!(problem("number", &limits, "500"), None);
    assert_eq!(problem("number", &limits, "10000.5"), None);

    let small = Some(RuleProblem::TooSmall("500".into()));
    assert_eq!(problem("number", &limits, "499.99"), small);

    let big = Some(RuleProblem::TooBig("10000.50".into()));
    assert_eq!(problem("number", &limits, "10000.51"), big);
    assert_eq!(
        problem("number", &limits, ""),
        None,
        "no answer, no problem"
    );
}

#[test]
fn dates_have_limits_that_may_count_from_today() {
    let limits = [("min", "today-1"), ("max", "2026-12-31")];
    assert_eq!(problem("date", &limits, "2026-11-24"), None);
    let early = Some(RuleProblem::TooSmall("2026-11-24".into()));
    assert_eq!(problem("date", &limits, "2026-11-23"), early);
    let late = Some(RuleProblem::TooBig("2026-12-31".into()));
    assert_eq!(problem("date", &limits, "2027-01-01"), late);
}

#[test]
fn texts_have_a_length_and_a_pattern_for_the_whole_text() {
    let rules = [
        ("max_length", "8"),
        ("pattern", "[A-Z]{2}[0-9]{3,}|none"),
        ("message", "Two letters and the number"),
    ];
    assert_eq!(problem("text", &rules, "AB123"), None);
    assert_eq!(problem("text", &rules, "none"), None);

    let words = Some(RuleProblem::NoMatch(Some(
        "Two letters and the number".into(),
    )));
    assert_eq!(problem("text", &rules, "xAB123"), words);
    assert_eq!(problem("text", &rules, "AB123456"), None);

    let long = Some(RuleProblem::TooLong(8));
    assert_eq!(problem("text", &rules, "AB1234567"), long);

    let silent = Some(RuleProblem::NoMatch(None));
    assert_eq!(problem("text", &[("pattern", "[0-9]+")], "ä"), silent);
}

#[test]
fn a_condition_shows_a_field_and_another_requires_it() {
    let fields = [
        field("Trade-in", "checkbox", &[]),
        field("Vehicle: model", "text", &[("condition", "Trade-in:yes")]),
        field("Year", "text", &[("condition", "Vehicle: model")]),
        field("Reason", "text", &[("required_if", "!Vehicle: model:Golf")]),
    ];
    let shown = |answers: &[(&str, &str)]| -> Vec<bool> {
        states(&fields, answers)
            .iter()
            .map(|state| state.shown)
            .collect()
    };
    assert_eq!(shown(&[]), [true, false, false, true]);
    assert_eq!(shown(&[("Trade-in", "true")]), [true, true, false, true]);

    let both = [("Trade-in", "true"), ("Vehicle: model", "golf")];
    assert_eq!(shown(&both), [true; 4]);

    // A hidden field counts as unanswered, even if it had an answer before.
    let hidden = [("Trade-in", "false"), ("Vehicle: model", "golf")];
    assert_eq!(shown(&hidden), [true, false, false, true]);

    let required = |answers| states(&fields, answers)[3].required;
    assert!(required(&hidden) && !required(&both));
}

#[test]
fn a_hidden_field_is_neither_required_nor_checked() {
    let fields = [
        field("Other", "checkbox", &[]),
        RuledField {
            required: true,
            ..field("Amount", "number", &[("condition", "Other"), ("min", "5")])
        },
    ];
    let state = |answers| states(&fields, answers).remove(1);
    let hidden = state(&[("Amount", "1")]);
    assert_eq!((hidden.required, hidden.problem), (false, None));

    let shown = state(&[("Amount", "1"), ("Other", "true")]);
    assert!(shown.required && shown.problem.is_some());
}

#[test]
fn a_formula_is_exact_and_rounds_as_money_does() {
    let result = |formula: &str, answers: &[(&str, &str)]| {
        let fields = [
            field("A", "number", &[]),
            field("B", "number", &[]),
            field("Tick", "checkbox", &[]),
            field("Sum", "number", &[("formula", formula)]),
        ];
        assert_eq!(codes(&fields), [], "{formula}");

        states(&fields, answers).remove(3).computed
    };

    let answers = [("A", "0.1"), ("B", "0.2"), ("Tick", "true")];
    for (formula, expected) in [
        ("[A] + [B]", "0.30"),
        ("[A] * 10 - 2 * -[B]", "1.40"),
        ("([A] + [B]) / 2", "0.15"),
        ("[A] * 1.25", "0.13"),
        ("-[A] * 1.25", "-0.13"),
        ("[A] - 0.101 + 0 * [B]", "0.00"),
        ("400 * [Tick] + [A]", "400.10"),
        ("max([A], [B], 7) + min([A], 3) + sum(1, 2, 3)", "13.10"),
        ("round([A] * 15) + round(2.345, 2)", "4.35"),
        ("1 / 3", "0.33"),
        ("[A] / ([B] - 0.2)", ""),
    ] {
        assert_eq!(
            result(formula, &answers).as_deref(),
            Some(expected),
            "{formula}"
        );
    }

    let one = [("A", "5")];
    assert_eq!(result("[A] + [B]", &one).as_deref(), Some("5.00"));
    assert_eq!(
        result("[A] + [B]", &[]).as_deref(),
        Some(""),
        "no answer yet"
    );
}

#[test]
fn formulas_use_each_other_and_hidden_fields_count_as_nothing() {
    let fields = [
        field("Price", "number", &[]),
        field("Trade-in", "checkbox", &[]),
        field("Value", "number", &[("condition", "Trade-in")]),
        field("Net", "number", &[("formula", "[Price] - [Value]")]),
        field(
            "Tax",
            "number",
            &[("formula", "[Net] * 0.075"), ("decimals", "0")],
        ),
    ];
    assert_eq!(codes(&fields), []);

    let computed = |tick| {
        let answers = [("Price", "20000"), ("Value", "5000"), ("Trade-in", tick)];
        let states = states(&fields, &answers);
        (states[3].computed.clone(), states[4].computed.clone())
    };
    assert_eq!(
        computed("true"),
        (Some("15000.00".into()), Some("1125".into()))
    );
    assert_eq!(
        computed("false"),
        (Some("20000.00".into()), Some("1500".into()))
    );
}

#[test]
fn a_rule_means_the_field_of_the_same_signer_first() {
    let other = |name: &str, kind, rules: &[_]| RuledField {
        role: "Seller".into(),
        ..field(name, kind, rules)
    };
    let fields = [
        field("Agree", "checkbox", &[]),
        other("Agree", "checkbox", &[]),
        other("Why", "text", &[("condition", "!Agree")]),
        other("Buyer agreed", "text", &[("condition", "Agree")]),
    ];

    let entry = |role: &str| FieldEntry {
        role: role.into(),
        name: "Agree".into(),
        value: "true".into(),
    };
    let shown = |entries: &[FieldEntry]| {
        let states = apply(&fields, entries, "2026-11-25");
        (states[2].shown, states[3].shown)
    };
    assert_eq!(shown(&[entry("Buyer")]), (true, false));
    assert_eq!(shown(&[entry("Seller")]), (false, true));
}

#[test]
fn rules_that_a_type_cannot_have_are_refused() {
    for (kind, rule) in [
        ("text", "min"),
        ("checkbox", "max"),
        ("number", "max_length"),
        ("date", "pattern"),
        ("text", "formula"),
        ("attachment", "message"),
    ] {
        let expected = [(rule.to_owned(), "unsupported_rule".to_owned())];
        assert_eq!(refused(kind, &[(rule, "1")]), expected, "{kind} {rule}");
    }

    assert_eq!(
        refused("text", &[("message", "x")])[0].1,
        "unsupported_rule"
    );
    assert_eq!(
        refused("number", &[("decimals", "2")])[0].1,
        "unsupported_rule"
    );
}

#[test]
fn rules_that_cannot_be_read_are_refused() {
    for (kind, rules, code) in [
        ("number", &[("min", "1,5")][..], "invalid_type"),
        ("number", &[("min", "2"), ("max", "1")], "too_big"),
        ("date", &[("max", "tomorrow")], "invalid_type"),
        ("date", &[("max", "today 30")], "invalid_type"),
        ("date", &[("min", "today+2"), ("max", "today")], "too_big"),
        ("text", &[("max_length", "0")], "invalid_type"),
        ("text", &[("pattern", "[0-9")], "invalid_pattern"),
        ("text", &[("pattern", "(a{1000}){1000}")], "invalid_pattern"),
        ("text", &[("condition", "Nobody")], "invalid_condition"),
        ("text", &[("condition", "Other:")], "invalid_condition"),
        ("text", &[("required_if", "Field:x")], "circular_rule"),
        ("number", &[("formula", "1 +")], "invalid_formula"),
        ("number", &[("formula", "1 2")], "invalid_formula"),
        ("number", &[("formula", "[Other] + 1")], "invalid_formula"),
        ("number", &[("formula", "sqrt(2)")], "invalid_formula"),
        ("number", &[("formula", "[Missing]")], "unknown_field"),
        ("number", &[("formula", "[Field] + 1")], "circular_rule"),
        (
            "number",
            &[("formula", "1"), ("decimals", "9")],
            "invalid_type",
        ),
    ] {
        let found = refused(kind, rules);
        assert_eq!(found.len(), 1, "{rules:?}: {found:?}");
        assert_eq!(found[0].1, code, "{rules:?}");
    }

    let deep = format!("{}1{}", "(".repeat(100), ")".repeat(100));
    assert_eq!(
        refused("number", &[("formula", &deep)])[0].1,
        "invalid_formula"
    );

    let long = "x".repeat(501);
    for rule in ["pattern", "condition", "required_if"] {
        assert_eq!(refused("text", &[(rule, &long)])[0].1, "too_big", "{rule}");
    }
}

#[test]
fn conditions_and_formulas_that_need_each_other_are_refused() {
    let fields = [
        field("A", "number", &[("formula", "[B] + 1")]),
        field("B", "number", &[("condition", "C")]),
        field("C", "number", &[("formula", "[A]")]),
        field("D", "number", &[("formula", "[A]")]),
    ];
    let expected = [("formula", 0), ("condition", 1), ("formula", 2)];

    let found: Vec<_> = check(&fields)
        .into_iter()
        .map(|issue| (issue.path.join("."), issue.field_index))
        .collect();
    assert_eq!(
        found,
        expected.map(|(rule, index)| (rule.to_owned(), index))
    );

    // Applied all the same, for example by a component that does not check, they have no result.
    assert!(states(&fields, &[("B", "1")])[0].computed.is_some());
}

#[test]
fn a_thousand_fields_in_a_row_are_refused_and_still_have_states() {
    let mut fields = vec![field("0", "number", &[])];
    for number in 1..1_000 {
        let (name, before) = (number.to_string(), format!("[{}] + 1", number - 1));
        fields.push(field(&name, "number", &[("formula", &before)]));
    }

    let found = codes(&fields);
    assert_eq!(found.len(), 1_000 - 65);
    assert_eq!(found[0], ("formula".to_owned(), "too_big".to_owned()));

    let states = states(&fields, &[("0", "1")]);
    assert_eq!(states[64].computed.as_deref(), Some("65.00"));
    assert_eq!(codes(&fields[..65]), []);
}
