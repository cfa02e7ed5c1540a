//! Running the checks that apply to a record.

use crate::calendar::law_of;
use crate::pack;
use crate::types::{Check, EnvelopeFacts, Evaluation};

/// Returns a paragraph for each check of either pack; `certified.rs` replaces them.
pub(crate) fn statute_references() -> impl Iterator<Item = &'static str> {
    let rules = crate::amended::RULES.iter();
    rules.map(|rule| rule.statute_reference)
}

/// Evaluates a record by the law of its jurisdiction on the date of the question.
///
/// The score is the share of satisfied checks in percent, rounded to the nearest integer.
pub fn evaluate(facts: &EnvelopeFacts) -> Evaluation {
    let answered = pack::answers(facts, &law_of(facts));
    let missing = answered.iter().filter(|check| !check.satisfied);
    let missing_requirements: Vec<String> = missing.map(|check| check.requirement.into()).collect();
    let total = answered.len();
    // The packs have eight and nine checks, so the total depends on the law.
    let passed = total - missing_requirements.len();
    let checks = answered.into_iter().map(|check| Check {
        requirement: check.requirement.into(),
        ucc_reference: check.ucc_reference.into(),
        satisfied: check.satisfied,
        detail: check.detail,
    });

    Evaluation {
        compliant: passed == total,
        score: ((passed * 100 + total / 2) / total) as u32,
        missing_requirements,
        checks: checks.collect(),
    }
}
