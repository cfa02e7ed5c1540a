//! Running the checks and scoring them.

use crate::checks::{RULES, answers};
use crate::types::{Check, EnvelopeFacts, Evaluation};

/// Returns the statute's paragraph of each check, for the certificate.
pub(crate) fn statute_references() -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|rule| rule.statute_reference)
}

/// Runs the eight checks over `facts`.
///
/// The score is the share of satisfied checks in percent, rounded to the
/// nearest integer. With eight checks 100 is reached only when all pass, so
/// `compliant` and `score == 100` always agree.
pub fn evaluate(facts: &EnvelopeFacts) -> Evaluation {
    let checks: Vec<Check> = RULES
        .iter()
        .zip(answers(facts))
        .map(|(rule, (satisfied, detail))| Check {
            requirement: rule.requirement.into(),
            ucc_reference: rule.ucc_reference.into(),
            satisfied,
            detail,
        })
        .collect();

    let missing_requirements: Vec<String> = checks
        .iter()
        .filter(|check| !check.satisfied)
        .map(|check| check.requirement.clone())
        .collect();
    let total = checks.len();
    let passed = total - missing_requirements.len();

    // Half of the total is added before the division, so whole numbers round to the nearest.
    Evaluation {
        compliant: passed == total,
        score: ((passed * 100 + total / 2) / total) as u32,
        missing_requirements,
        checks,
    }
}
