//! The evaluation: the checks of the built-in pack with their changes, then the declared ones.

use holdfast_conditions::{Conditions, Expression};

use crate::record_facts::{conditions, set_check};
use crate::rules::DeclaredRules;
use crate::types::{Check, EnvelopeFacts, Evaluation};
use crate::{checks, specified};

/// Returns the names of the pack's checks.
pub fn requirements() -> Vec<&'static str> {
    let rules = checks::RULES.iter();
    rules.map(|rule| rule.requirement).collect()
}

/// Evaluates with the rules inside this component.
pub fn evaluate(facts: &EnvelopeFacts) -> Evaluation {
    evaluate_with(&holdfast_conditions::read(), facts)
}

/// Returns the statute's paragraph of each check, for the certificate.
pub(crate) fn statute_references() -> impl Iterator<Item = String> {
    let rules: DeclaredRules = holdfast_conditions::read();
    let changed = rules.changes;
    let pack = checks::RULES.iter().zip(specified::statute_references());
    let pack = pack.map(move |(rule, reference)| {
        let mut changes = changed.iter();
        let change = changes.find(|change| change.requirement == rule.requirement);
        let other = change.and_then(|change| change.statute_reference.clone());
        other.unwrap_or_else(|| reference.to_owned())
    });

    // The certificate pairs references with checks by their place, so the order is that of the evaluation.
    let added = rules.checks.into_iter();
    pack.chain(added.map(|check| check.statute_reference.unwrap_or(check.reference)))
}

/// Evaluates facts with declared rules.
///
/// The score is the share of the satisfied checks' weights in percent, rounded to the nearest integer. Only
/// a compliant record has 100.
pub fn evaluate_with(rules: &DeclaredRules, facts: &EnvelopeFacts) -> Evaluation {
    let mut conditions = conditions(facts);
    let (mut all, mut reached, mut total) = (Vec::new(), 0_u64, 0_u64);
    let mut add = |check: Check, weight: u32| {
        total += u64::from(weight);
        reached += if check.satisfied {
            u64::from(weight)
        } else {
            0
        };
        all.push(check);
    };
    for mut check in specified::evaluate(facts).checks {
        let mut changes = rules.changes.iter();
        let change = changes.find(|change| change.requirement == check.requirement);
        let Some(change) = change else {
            add(check, 1);
            continue;
        };

        set_check(&mut conditions, check.satisfied, &check.detail);
        let mut problem = String::new();
        // A change makes a check stricter and never looser: a failed check stays failed.
        if let Some(condition) = &change.also_when
            && check.satisfied
        {
            (check.satisfied, problem) = outcome(&conditions, condition);
        }

        let sentence = if check.satisfied {
            &change.satisfied
        } else {
            &change.unsatisfied
        };
        if let Some(sentence) = sentence {
            check.detail = [conditions.sentence(sentence), problem].concat();
        }

        if let Some(reference) = &change.reference {
            check.ucc_reference.clone_from(reference);
        }

        add(check, change.weight.unwrap_or(1));
    }

    for declared in &rules.checks {
        // The pack has no result for a check of the organization. That of the last check must not stay.
        set_check(&mut conditions, false, "");
        let (satisfied, problem) = outcome(&conditions, &declared.satisfied_when);
        let sentence = if satisfied {
            &declared.satisfied
        } else {
            &declared.unsatisfied
        };
        let check = Check {
            requirement: declared.requirement.clone(),
            ucc_reference: declared.reference.clone(),
            satisfied,
            detail: [conditions.sentence(sentence), problem].concat(),
        };

        add(check, declared.weight);
    }

    let missing = all.iter().filter(|check| !check.satisfied);
    let missing_requirements: Vec<String> =
        missing.map(|check| check.requirement.clone()).collect();
    let compliant = missing_requirements.is_empty();
    let total = total.max(1);
    // Rounding could lift a record with a light open check to 100, which only a compliant one has.
    let share = (reached * 100 + total / 2) / total;

    Evaluation {
        compliant,
        score: if compliant { 100 } else { share.min(99) as u32 },
        missing_requirements,
        checks: all,
    }
}

/// Whether a condition holds, and a sentence if it cannot be evaluated; then it does not hold.
fn outcome(conditions: &Conditions, condition: &Expression) -> (bool, String) {
    // A missing fact must not make a record compliant, so an error counts as no.
    match conditions.hold(condition) {
        Ok(holds) => (holds, String::new()),
        Err(why) => (
            false,
            [" The condition cannot be evaluated: ", &why, "."].concat(),
        ),
    }
}
