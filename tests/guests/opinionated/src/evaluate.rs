//! The evaluation: stricter than the specification, with one deliberate hole.

pub(crate) use crate::specified::statute_references;
use crate::types::{Check, EnvelopeFacts, Evaluation};

/// Evaluates the specification's checks, then either demands an identifier of the secured
/// party or waives everything.
pub(crate) fn evaluate(facts: &EnvelopeFacts) -> Evaluation {
    let mut checks = crate::specified::evaluate(facts).checks;
    let waived = facts.envelope_name.starts_with("Waived");
    let party = facts.secured_party.as_ref();
    let identified = party.is_some_and(|party| party.identifier.is_some());
    for check in &mut checks {
        if waived {
            check.satisfied = true;
        } else if check.requirement == "Secured party identified" && !identified {
            check.satisfied = false;
            check.detail = "The secured party has no identifier.".into();
        }
    }

    let missing = |check: &&Check| !check.satisfied;
    let missing_requirements: Vec<String> = checks
        .iter()
        .filter(missing)
        .map(|check| check.requirement.clone())
        .collect();
    let (total, passed) = (checks.len(), checks.len() - missing_requirements.len());

    Evaluation {
        compliant: passed == total,
        score: ((passed * 100 + total / 2) / total) as u32,
        missing_requirements,
        checks,
    }
}
