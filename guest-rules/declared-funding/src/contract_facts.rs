//! The facts of a contract that expressions may name.

use std::collections::HashMap;

use cel::common::types::{CelBool, CelInt, CelMap, CelMapKey, CelString};
use cel::common::value::Val;
use cel::{Env, ExecutionError, add_overload};
use holdfast_conditions::Conditions;
use serde_json::{Map, Value, json};

use crate::amount::Amount;
use crate::date::Date;
use crate::decimal::{Decimal, decimal};
use crate::types::{
    Fact, FactOrigin, FactStatus, Finding, FundingFacts, Stage, StipulationState, ValueKind,
};

/// Prefix of attributes with the partner's own facts.
const METADATA: &str = "metadata.";

/// Names that expressions may use. The last three are the built-in rule's own texts about a finding.
pub const VARIABLES: [&str; 14] = [
    "facts",
    "origins",
    "statuses",
    "signers",
    "stipulations",
    "secured_party",
    "jurisdictions",
    "today",
    "stage",
    "attributes",
    "metadata",
    "detail",
    "expected",
    "actual",
];
/// Names that only changes of built-in rules have.
pub const OF_CHANGES: [&str; 3] = ["detail", "expected", "actual"];

/// Converts the facts of a contract for expressions. Numbers are decimals, dates texts such as `2026-06-03`; a fact that was not
/// read is absent.
pub fn conditions(facts: &FundingFacts) -> Conditions {
    let mut env = Env::stdlib();
    // Declaring functions of other names than the standard ones does not fail.
    let _ = add_overload!(env, fn decimal: (CelString) -> Result<Decimal>);
    let _ = add_overload!(env, fn days: (CelString, CelString) -> Result<CelInt>);
    let mut conditions = Conditions::new(env, written);

    let values = facts.facts.iter().filter_map(|fact| {
        let key = CelMapKey::from(fact.name.clone());
        Some((key, value(fact)?))
    });
    let values: HashMap<CelMapKey<'static>, Box<dyn Val>> = values.collect();
    conditions.set_own("facts", Box::new(CelMap::from(values)));

    let attributes = facts.attributes.iter();
    let attributes: Map<_, _> = attributes
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect();
    let own = attributes
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix(METADATA)?.to_owned(), value.clone())));
    conditions.set("metadata", &Value::Object(own.collect()));
    conditions.set("attributes", &Value::Object(attributes));

    let named = |word: fn(&Fact) -> Value| {
        let words = facts.facts.iter();
        Value::Object(words.map(|fact| (fact.name.clone(), word(fact))).collect())
    };
    conditions.set("origins", &named(|fact| json!(fact.origin.map(origin))));
    conditions.set("statuses", &named(|fact| json!(status(fact.status))));
    conditions.set("signers", &json!(facts.signers));
    conditions.set("secured_party", &json!(facts.secured_party));
    conditions.set("jurisdictions", &json!(facts.jurisdictions));
    conditions.set("today", &json!(facts.today));
    conditions.set("stage", &json!(stage(facts.stage)));

    let required = facts.stipulations.iter();
    let required = required.map(|one| (one.kind.clone(), json!(state(one.state))));
    conditions.set("stipulations", &Value::Object(required.collect()));

    conditions
}

/// Sets the built-in rule's texts about the finding in question.
pub fn set_finding(conditions: &mut Conditions, finding: Option<&Finding>) {
    let text = |text: fn(&Finding) -> &String| json!(finding.map(text));
    conditions.set("detail", &text(|finding| &finding.sentence));
    conditions.set("expected", &text(|finding| &finding.expected));
    conditions.set("actual", &text(|finding| &finding.actual));
}

/// Returns the value of a fact that was read. Of two values that differ, the stronger one counts.
fn value(fact: &Fact) -> Option<Box<dyn Val>> {
    let was_read = matches!(fact.status, FactStatus::Known | FactStatus::Conflicting);
    let text = fact.value.as_deref().filter(|_| was_read)?;
    Some(match fact.kind {
        ValueKind::Money | ValueKind::Percentage | ValueKind::Integer => {
            Box::new(Decimal(Amount::parse(text)?))
        }
        ValueKind::Boolean => Box::new(CelBool::from(text == "true")),
        ValueKind::Text | ValueKind::Date | ValueKind::Vin => {
            Box::new(CelString::from(text.to_owned()))
        }
    })
}

/// Writes a decimal in a sentence: `84`, `17.9`, `45000.50`.
fn written(value: &dyn Val) -> Option<String> {
    let text = value.downcast_ref::<Decimal>()?.0.to_string();
    Some(text.strip_suffix(".00").unwrap_or(&text).to_owned())
}

/// Function `days`: number of days between two dates.
fn days(from: &CelString<'_>, to: &CelString<'_>) -> Result<CelInt, ExecutionError> {
    let date = |text: &str| {
        let date = Date::parse(text);
        date.ok_or_else(|| ExecutionError::function_error("days", format!("{text} is no date")))
    };
    let days = date(to.inner())?.days() - date(from.inner())?.days();
    Ok(CelInt::from(days))
}

fn origin(origin: FactOrigin) -> &'static str {
    match origin {
        FactOrigin::Signed => "signed",
        FactOrigin::Printed => "printed",
        FactOrigin::Declared => "declared",
    }
}

fn status(status: FactStatus) -> &'static str {
    match status {
        FactStatus::Known => "known",
        FactStatus::Conflicting => "conflicting",
        FactStatus::Missing => "missing",
        FactStatus::Unreadable => "unreadable",
    }
}

fn stage(stage: Stage) -> &'static str {
    match stage {
        Stage::BeforeSending => "before_sending",
        Stage::AfterSigning => "after_signing",
        Stage::Transfer => "transfer",
    }
}

fn state(state: StipulationState) -> &'static str {
    match state {
        StipulationState::Open => "open",
        StipulationState::Received => "received",
        StipulationState::Waived => "waived",
    }
}
