//! Rules about the answers of signers: limits, patterns, conditions and formulas.
//!
//! Rules are attributes of a field. [`check`] finds mistakes in them before a document is sent;
//! [`apply`] applies them to the answers so far. A field that is not shown counts as
//! unanswered, in conditions and in formulas. So does a field of a signer who has not signed yet.

mod condition;
mod formula;
mod limit;
mod rule_set;
mod state;

use std::collections::BTreeSet;

use regex_lite::{Regex, RegexBuilder};

use crate::issues::{FieldProblem, code, quoted};
use crate::{Issue, RuledField};
use condition::Condition;
use formula::Formula;
use limit::{DateLimit, decimal};
use rule_set::{LONGEST_CHAIN, RuleSet};

pub use state::apply;

/// Maximum length of a text field's value, in characters, with or without a rule.
const LONGEST_TEXT: u32 = 4_000;
/// Maximum length of a pattern, a condition, a formula and a message, in characters.
const LONGEST_PATTERN: usize = 500;
const LONGEST_CONDITION: usize = 500;
const LONGEST_FORMULA: usize = 1_000;
const LONGEST_MESSAGE: usize = 300;
/// Memory for one compiled pattern, in bytes.
const PATTERN_MEMORY: usize = 64 * 1024;
/// Maximum number of decimal places of a result.
const MOST_DECIMALS: u32 = 8;

/// Value of an attribute.
fn attribute<'a>(field: &'a RuledField, name: &str) -> Option<&'a str> {
    let found = field.attributes.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.trim())
}

/// Compiles a pattern for a whole text.
fn pattern(text: &str) -> Result<Regex, String> {
    // The group keeps alternatives inside: `^a|b$` would match every text that begins with an a.
    let whole = format!("^(?:{text})$");
    let built = RegexBuilder::new(&whole)
        .size_limit(PATTERN_MEMORY)
        .nest_limit(50)
        .build();
    built.map_err(|error| error.to_string())
}

/// Returns the problems of the rules themselves.
pub fn check(fields: &[RuledField]) -> Vec<Issue> {
    let mut issues = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        let problems = [
            limits(field),
            length(field),
            overflow(field),
            text_pattern(field),
            conditions(field, fields),
            computation(field, fields),
        ];
        let problems = problems.into_iter().flatten();

        issues.extend(problems.map(|problem| problem.of_field(index)));
    }

    // Rules with a mistake are left out of the chains, so a circle shows only when all can be read.
    if issues.is_empty() {
        issues.extend(circles(fields));
    }

    issues
}

/// The rule `name` does not apply to fields of this type.
fn unsupported(field: &RuledField, name: &str, kinds: &str) -> Option<FieldProblem> {
    attribute(field, name).map(|value| {
        FieldProblem::at(&[name], code::UNSUPPORTED_RULE)
            .expected(format!("a field of type {kinds}"))
            .received(value)
            .message(format!(
                "{name} applies to fields of type {kinds}, and {} is of type {}",
                quoted(&field.name),
                field.field_type
            ))
    })
}

fn invalid(field: &RuledField, name: &str, code: &'static str, expected: &str) -> FieldProblem {
    let value = attribute(field, name).unwrap_or_default();
    FieldProblem::at(&[name], code)
        .expected(expected)
        .received(value)
        .message(format!(
            "{name} of {} must be {expected}, not {}",
            quoted(&field.name),
            quoted(value)
        ))
}

fn limits(field: &RuledField) -> Vec<FieldProblem> {
    let names = ["min", "max"];
    let given = |name: &&str| attribute(field, name).is_some();
    let crossed = || invalid(field, "min", code::TOO_BIG, "at most max");
    match field.field_type.as_str() {
        "number" => {
            let wrong = |name: &&str| attribute(field, name).and_then(decimal).is_none();
            let wrong: Vec<_> = names.into_iter().filter(given).filter(wrong).collect();
            if !wrong.is_empty() {
                let problem = |name| invalid(field, name, code::INVALID_TYPE, "a number");
                return wrong.into_iter().map(problem).collect();
            }

            // Limits are compared only when both can be read: one mistake gives one message.
            let [min, max] = names.map(|name| attribute(field, name).and_then(decimal));
            let crosses = min.zip(max).is_some_and(|(min, max)| min > max);
            crosses.then(crossed).into_iter().collect()
        }
        "date" => {
            let parsed = |name: &str| attribute(field, name).and_then(DateLimit::parse);
            let wrong: Vec<_> = names
                .into_iter()
                .filter(given)
                .filter(|name| parsed(name).is_none())
                .collect();
            if !wrong.is_empty() {
                let expected = "a date as 2026-01-31, or today, today+30, today-1";
                let problem = |name| invalid(field, name, code::INVALID_TYPE, expected);
                return wrong.into_iter().map(problem).collect();
            }

            // A day and a number of days from today can cross later, so they are not compared.
            let [min, max] = names.map(parsed);
            let crosses = min.zip(max).is_some_and(|(min, max)| min.is_after(&max));
            crosses.then(crossed).into_iter().collect()
        }
        _ => names
            .into_iter()
            .filter_map(|name| unsupported(field, name, "number or date"))
            .collect(),
    }
}

fn length(field: &RuledField) -> Vec<FieldProblem> {
    let name = "max_length";
    if field.field_type != "text" {
        return unsupported(field, name, "text").into_iter().collect();
    }
    let Some(given) = attribute(field, name) else {
        return Vec::new();
    };

    let fits = given
        .parse::<u32>()
        .is_ok_and(|limit| (1..=LONGEST_TEXT).contains(&limit));
    let expected = format!("a whole number from 1 to {LONGEST_TEXT}");
    let problem = (!fits).then(|| invalid(field, name, code::INVALID_TYPE, &expected));
    problem.into_iter().collect()
}

fn overflow(field: &RuledField) -> Vec<FieldProblem> {
    let name = "overflow";
    if field.field_type != "text" {
        return unsupported(field, name, "text").into_iter().collect();
    }

    let is_other = attribute(field, name).is_some_and(|given| given != "page");
    let problem = is_other.then(|| invalid(field, name, code::INVALID_TYPE, "page"));
    problem.into_iter().collect()
}

fn text_pattern(field: &RuledField) -> Vec<FieldProblem> {
    if field.field_type != "text" {
        let names = ["pattern", "message"].into_iter();
        return names
            .filter_map(|name| unsupported(field, name, "text"))
            .collect();
    }

    let mut problems = Vec::new();
    let too_long = |name: &'static str, most: usize| {
        let given = attribute(field, name).is_some_and(|given| given.chars().count() > most);
        let expected = format!("at most {most} characters long");
        given.then(|| invalid(field, name, code::TOO_BIG, &expected))
    };
    problems.extend(too_long("pattern", LONGEST_PATTERN));

    problems.extend(too_long("message", LONGEST_MESSAGE));
    match attribute(field, "pattern") {
        // A pattern beyond the limit is not compiled, because that takes time and memory.
        Some(given) if problems.is_empty() => {
            if let Err(why) = pattern(given) {
                problems.push(
                    FieldProblem::at(&["pattern"], code::INVALID_PATTERN)
                        .expected("a regular expression")
                        .received(given)
                        .message(format!(
                            "the pattern of {} cannot be read: {why}",
                            quoted(&field.name)
                        )),
                );
            }
        }
        Some(_) => {}
        // Words for a mismatch have no effect without a pattern, and their author should learn that.
        None => problems.extend(unsupported(field, "message", "text with a pattern")),
    }

    problems
}

fn conditions(field: &RuledField, fields: &[RuledField]) -> Vec<FieldProblem> {
    let names = ["condition", "required_if"].into_iter();
    let wrong = |name: &'static str| {
        let given = attribute(field, name)?;
        if given.chars().count() > LONGEST_CONDITION {
            let expected = format!("at most {LONGEST_CONDITION} characters long");
            return Some(invalid(field, name, code::TOO_BIG, &expected));
        }
        let Some(condition) = Condition::parse(given, fields) else {
            let expected = "Field, Field:value, !Field or !Field:value, with the name of a field";
            return Some(invalid(field, name, code::INVALID_CONDITION, expected));
        };

        // A field that depends on itself could disappear and never come back.
        (condition.field == field.name)
            .then(|| invalid(field, name, code::CIRCULAR_RULE, "about another field"))
    };

    names.filter_map(wrong).collect()
}

fn computation(field: &RuledField, fields: &[RuledField]) -> Vec<FieldProblem> {
    if field.field_type != "number" {
        let names = ["formula", "decimals"].into_iter();
        return names
            .filter_map(|name| unsupported(field, name, "number"))
            .collect();
    }
    let Some(given) = attribute(field, "formula") else {
        let unused = unsupported(field, "decimals", "number with a formula");
        return unused.into_iter().collect();
    };

    let mut problems = Vec::new();
    // Most formulas compute amounts of money, hence two places.
    let decimals = attribute(field, "decimals").unwrap_or("2").parse::<u32>();
    if !decimals.is_ok_and(|decimals| decimals <= MOST_DECIMALS) {
        let expected = format!("a whole number from 0 to {MOST_DECIMALS}");
        problems.push(invalid(field, "decimals", code::INVALID_TYPE, &expected));
    }

    let unreadable = |why: String| {
        FieldProblem::at(&["formula"], code::INVALID_FORMULA)
            .expected("numbers, [fields], + - * /, brackets, round, min, max and sum")
            .received(given)
            .message(format!("the formula of {}: {why}", quoted(&field.name)))
    };
    if given.chars().count() > LONGEST_FORMULA {
        let why = format!("it has more than {LONGEST_FORMULA} characters");
        problems.push(unreadable(why));
        return problems;
    }

    match Formula::parse(given) {
        Err(why) => problems.push(unreadable(why)),
        Ok(formula) => {
            // A formula may use a field several times, and one message about it is enough.
            let names: BTreeSet<&str> = formula.fields().collect();
            for name in names {
                let named = fields.iter().find(|other| other.name == name);
                match named.map(|other| other.field_type.as_str()) {
                    Some("number" | "checkbox") => {}
                    Some(kind) => problems.push(unreadable(format!(
                        "{} is of type {kind}; only number and checkbox have a value for it",
                        quoted(name)
                    ))),
                    None => problems.push(
                        FieldProblem::at(&["formula"], code::UNKNOWN_FIELD)
                            .expected("the name of a field")
                            .received(name)
                            .message(format!(
                                "the formula of {}: there is no field {}",
                                quoted(&field.name),
                                quoted(name)
                            )),
                    ),
                }
            }
        }
    }

    problems
}

/// Returns an issue for each field with rules that depend on themselves, or on too many others in a row.
fn circles(fields: &[RuledField]) -> Vec<Issue> {
    let (circular, long) = RuleSet::new(fields).tangled();
    // The issue names one rule. A field in a chain has a formula, or else a condition.
    let rule = |field: &RuledField| match attribute(field, "formula") {
        Some(_) => "formula",
        None => "condition",
    };
    let circular = circular.into_iter().map(|index| {
        let field = &fields[index];
        let expected = "free of its own result";
        invalid(field, rule(field), code::CIRCULAR_RULE, expected).of_field(index)
    });

    let long = long.into_iter().map(|index| {
        let field = &fields[index];
        let expected = format!("at the end of at most {LONGEST_CHAIN} rules in a row");
        invalid(field, rule(field), code::TOO_BIG, &expected).of_field(index)
    });
    circular.chain(long).collect()
}
