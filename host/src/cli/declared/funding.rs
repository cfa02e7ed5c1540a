//! Declared rules of slot `rules.funding`.

use std::path::PathBuf;

use holdfast_conditions::{Expression, SentencePart, write};
use holdfast_declared_funding::types::{FundingFacts, Severity, Stage};
use holdfast_declared_funding::{
    AddedRule, ChangedRule, DeclaredRules, OF_CHANGES, RULES, VARIABLES, check_with, conditions,
    set_finding,
};
use serde::Deserialize;
use serde_json::json;

use super::expressions::{Vocabulary, is_condition, tried_in_time, values};
use super::{BuiltRules, template};
use crate::cli::Failure;
use holdfast_components::RulesBase;
use holdfast_domain::component::Slot;

/// Facts of a contract, with decimals and dates.
const VOCABULARY: Vocabulary = Vocabulary {
    names: &VARIABLES,
    functions: &["decimal", "days"],
};
/// Operators with a number on each side, or that compare.
const OPERATORS: [&str; 10] = [
    "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "_+_", "_-_", "_*_", "_/_",
];
/// Name of the facts of a contract in expressions.
const FACTS: &str = "facts";
/// Function that makes a decimal.
const DECIMAL: &str = "decimal";

/// Declared rules as a team writes them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesFile {
    /// Slot of the rules; `build` has chosen by it.
    #[serde(rename = "slot")]
    _slot: Slot,
    /// File with the team's vectors, beside this one.
    vectors: Option<PathBuf>,
    #[serde(default)]
    change: Vec<WrittenChange>,
    #[serde(default)]
    rule: Vec<WrittenRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenChange {
    rule: String,
    applies_when: Option<String>,
    severity: Option<WrittenSeverity>,
    sentence: Option<String>,
    source: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRule {
    name: String,
    #[serde(default)]
    severity: WrittenSeverity,
    #[serde(default)]
    decision: WrittenDecision,
    #[serde(default)]
    facts: Vec<String>,
    applies_when: Option<String>,
    holds_when: String,
    expected: Option<String>,
    actual: Option<String>,
    sentence: String,
    source: String,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WrittenSeverity {
    #[default]
    Stop,
    Warn,
    Note,
}

/// What a finding of severity `stop` makes of a contract.
#[derive(Clone, Copy, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum WrittenDecision {
    #[default]
    Refused,
    Incomplete,
}

impl WrittenSeverity {
    fn severity(self) -> Severity {
        match self {
            Self::Stop => Severity::Stop,
            Self::Warn => Severity::Warn,
            Self::Note => Severity::Note,
        }
    }
}

/// Puts funding rules of a file into a component.
///
/// # Errors
/// The rule and the member that cannot be used.
pub(super) fn build(text: &str) -> Result<BuiltRules, Failure> {
    let file: RulesFile = toml::from_str(text)?;
    let mut component = template(RulesBase::Funding)?;
    let rules = DeclaredRules {
        changes: changes(&file.change)?,
        rules: added(&file.rule)?,
    };

    let trial = rules.clone();
    tried_in_time(move || tried(&trial))?;
    write(&mut component, &rules)?;

    Ok(BuiltRules {
        component,
        vectors: file.vectors,
        text: format!(
            "rules: {} new, {} changed",
            rules.rules.len(),
            rules.changes.len()
        ),
        counts: json!({ "rules": rules.rules.len(), "changes": rules.changes.len() }),
    })
}

fn changes(written: &[WrittenChange]) -> Result<Vec<ChangedRule>, String> {
    let mut changes: Vec<ChangedRule> = Vec::new();
    for change in written {
        let name = change.rule.as_str();
        let about = |what: &str| format!("change of \"{name}\": {what}");
        if !RULES.contains(&name) {
            let known = RULES.join(", ");
            return Err(about(&format!(
                "there is no such built-in rule; there are {known}"
            )));
        }
        if changes.iter().any(|known| known.rule == name) {
            return Err(about("it is changed twice"));
        }
        if change.severity.is_none() && change.sentence.is_none() && change.source.is_none() {
            return Err(about("it needs `severity`, `sentence` or `source`"));
        }

        let told = |what: &str, why: String| about(&format!("{what}: {why}"));
        let applies_when = change.applies_when.as_deref().map(expression).transpose();
        let sentence = change.sentence.as_deref().map(sentence).transpose();
        changes.push(ChangedRule {
            rule: name.to_owned(),
            applies_when: applies_when.map_err(|why| told("applies_when", why))?,
            severity: change.severity.map(WrittenSeverity::severity),
            sentence: sentence.map_err(|why| told("sentence", why))?,
            source: change.source.clone(),
        });
    }

    Ok(changes)
}

fn added(written: &[WrittenRule]) -> Result<Vec<AddedRule>, String> {
    let mut rules: Vec<AddedRule> = Vec::new();
    for rule in written {
        let name = rule.name.as_str();
        let about = |what: &str| format!("rule \"{name}\": {what}");
        if !is_name(name) || rule.source.trim().is_empty() {
            return Err(about(
                "it needs a source, and a name of lower-case letters, digits, points and underscores",
            ));
        }
        // Findings and vectors name a rule by its name alone.
        if RULES.contains(&name) || rules.iter().any(|known| known.rule == name) {
            return Err(about("there is another rule of that name"));
        }

        let told = |what: &str, why: String| about(&format!("{what}: {why}"));
        let applies_when = rule.applies_when.as_deref().map(expression).transpose();
        let expected = match &rule.expected {
            Some(text) => sentence(text).map_err(|why| told("expected", why))?,
            None => vec![SentencePart::Text(rule.holds_when.clone())],
        };
        let actual = rule.actual.as_deref().map(sentence).transpose();
        let made = AddedRule {
            rule: name.to_owned(),
            severity: rule.severity.severity(),
            is_gap: rule.decision == WrittenDecision::Incomplete,
            facts: rule.facts.clone(),
            applies_when: applies_when.map_err(|why| told("applies_when", why))?,
            holds_when: expression(&rule.holds_when).map_err(|why| told("holds_when", why))?,
            expected,
            actual: actual.map_err(|why| told("actual", why))?,
            sentence: sentence(&rule.sentence).map_err(|why| told("sentence", why))?,
            source: rule.source.clone(),
        };

        only_facts(&made)?;
        rules.push(made);
    }

    Ok(rules)
}

/// Whether a text names a rule, such as `credit.term`.
fn is_name(name: &str) -> bool {
    let is_part =
        |one: char| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '.' || one == '_';
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.len() <= 64
        && name.chars().all(is_part)
}

/// Refuses names of a built-in rule's finding in a rule that is none.
fn only_facts(rule: &AddedRule) -> Result<(), String> {
    let sentences = rule.expected.iter().chain(rule.actual.iter().flatten());
    let conditions = rule.applies_when.iter().chain([&rule.holds_when]);
    let mut names = Vec::new();
    for expression in values(sentences.chain(&rule.sentence)).chain(conditions) {
        expression.uses(&mut Vec::new(), &mut names, &mut Vec::new());
    }

    match names.into_iter().find(|name| OF_CHANGES.contains(name)) {
        Some(unknown) => Err(format!(
            "rule \"{}\": {unknown} is a text of a built-in rule, and this rule is none",
            rule.rule
        )),
        None => Ok(()),
    }
}

/// Parses an expression.
fn expression(text: &str) -> Result<Expression, String> {
    let expression = VOCABULARY.parse(text)?;
    numbers_follow_facts(&expression)?;
    Ok(expression)
}

/// Parses a sentence.
fn sentence(text: &str) -> Result<Vec<SentencePart>, String> {
    let parts = VOCABULARY.sentence(text)?;
    values(parts.iter()).try_for_each(numbers_follow_facts)?;
    Ok(parts)
}

/// Refuses an operator with a fact on its right side only. The left side chooses how two values are compared, and a plain number
/// there does not know decimals: `5000 != facts.amount_financed` would always hold.
fn numbers_follow_facts(expression: &Expression) -> Result<(), String> {
    let is_backwards = |part: &Expression| match part {
        Expression::Call { function, with, .. } if OPERATORS.contains(&function.as_str()) => {
            matches!(with.as_slice(), [left, right] if !has_decimal(left) && has_decimal(right))
        }
        _ => false,
    };
    if expression.any(&is_backwards) {
        Err("write the fact on the left side, such as `facts.amount_financed <= 45000`".into())
    } else {
        Ok(())
    }
}

/// Whether an expression reads facts of the contract, or makes a decimal.
fn has_decimal(expression: &Expression) -> bool {
    expression.any(&|part| match part {
        Expression::Name(name) => name == FACTS,
        Expression::Call { function, .. } => function == DECIMAL,
        _ => false,
    })
}

/// Checks an empty contract, and the conditions for types that never fit.
fn tried(rules: &DeclaredRules) -> Result<(), String> {
    let facts = FundingFacts {
        facts: Vec::new(),
        signers: Vec::new(),
        stipulations: Vec::new(),
        secured_party: None,
        jurisdictions: Vec::new(),
        today: "2026-01-01".into(),
        stage: Stage::BeforeSending,
        attributes: Vec::new(),
    };

    // The answer about an empty contract means nothing. The caller only measures that it comes.
    let _ = check_with(rules, &facts);
    let mut conditions = conditions(&facts);
    set_finding(&mut conditions, None);
    let changes = rules.changes.iter();
    let changes = changes.filter_map(|change| Some((&change.rule, change.applies_when.as_ref()?)));
    let added = rules.rules.iter().flat_map(|rule| {
        let both = rule.applies_when.iter().chain([&rule.holds_when]);
        both.map(move |condition| (&rule.rule, condition))
    });

    changes
        .chain(added)
        .try_for_each(|(name, condition)| is_condition(&conditions, name, condition))
}
