//! Vectors of `rules.compliance`.

use serde::Deserialize;
use serde_json::Value;

use super::{ConformanceRun, data};
use crate::inspection::AdmissionReason;
use crate::rules::{CompliancePre, compliance};
use crate::slot::ActiveComponent;
use crate::vectors::VectorSet;
use holdfast_domain::component::ConformanceResult;

#[derive(Deserialize)]
struct ComplianceVectors {
    version: String,
    /// Checks in the order of the specification.
    requirements: Vec<String>,
    vectors: Vec<ComplianceVector>,
}

#[derive(Deserialize)]
struct ComplianceVector {
    name: String,
    facts: compliance::EnvelopeFacts,
    /// Numbers of the failing checks, from 1.
    failed: Vec<usize>,
}

pub(super) fn compliance_vectors(
    active: &ActiveComponent<CompliancePre>,
    own: &VectorSet,
) -> Result<ConformanceResult, Vec<AdmissionReason>> {
    let all: ComplianceVectors = data(include_str!("../../../../../wit/compliance/vectors.json"))?;
    // Own vectors are asked afterwards: one that expects a compliant record shows that there is one.
    let satisfiable = own
        .vectors
        .iter()
        .any(|vector| vector.expect["compliant"] == true);

    let mut examination = ConformanceRun::new(&all.version);
    for vector in &all.vectors {
        let name = vector.name.as_str();
        let Some(evaluation) = examination.ask(active, name, |store, pre| {
            let instance = pre.instantiate(&mut *store)?;
            instance
                .holdfast_compliance_compliance()
                .call_evaluate(store, &vector.facts)
        }) else {
            continue;
        };

        // Rules may be stricter than the vectors, so only a result that is too good counts as wrong.
        let compliant = vector.failed.is_empty();
        examination.expect(
            compliant || !evaluation.compliant,
            name,
            "comes out compliant, and is not",
        );
        // Rules that refuse everything would pass all other vectors, so the complete record has to pass.
        examination.expect(
            !compliant || name != all.vectors[0].name || evaluation.compliant || satisfiable,
            name,
            "comes out as not compliant, and everything is in place; if your rules need further facts, \
             bring a vector that has them and expects `compliant: true`",
        );

        consistent(&mut examination, name, &evaluation);
        for (number, requirement) in (1..).zip(&all.requirements) {
            let expected = !vector.failed.contains(&number);
            // Other rules can split or rename checks. Only those about the same requirement are comparable.
            let check = evaluation
                .checks
                .iter()
                .find(|check| check.requirement == *requirement);
            if let Some(check) = check {
                examination.expect(
                    expected || !check.satisfied,
                    name,
                    &format!("\"{requirement}\" comes out as satisfied, and is not"),
                );
            }
        }

        certificate(&mut examination, active, vector);
    }

    examination.end(true)
}

/// Checks that the parts of an evaluation do not contradict each other.
fn consistent(examination: &mut ConformanceRun, name: &str, evaluation: &compliance::Evaluation) {
    // Certificate and pages show score, checks and result side by side, so they must agree.
    let (total, missing): (usize, Vec<&str>) = (
        evaluation.checks.len(),
        evaluation
            .checks
            .iter()
            .filter(|check| !check.satisfied)
            .map(|check| check.requirement.as_str())
            .collect(),
    );

    examination.expect(total > 0, name, "no check was made");
    examination.expect(
        evaluation.missing_requirements == missing,
        name,
        "missing-requirements are not the checks that are not satisfied",
    );
    examination.expect(
        evaluation.compliant == missing.is_empty()
            && evaluation.compliant == (evaluation.score == 100),
        name,
        "compliant, score and checks contradict each other",
    );

    let told = evaluation
        .checks
        .iter()
        .all(|check| !check.requirement.is_empty() && !check.ucc_reference.is_empty());
    examination.expect(told, name, "a check names no requirement or no reference");
}

fn certificate(
    examination: &mut ConformanceRun,
    active: &ActiveComponent<CompliancePre>,
    vector: &ComplianceVector,
) {
    let identity = compliance::ComponentIdentity {
        name: "candidate".into(),
        version: "0.0.0".into(),
        sha256: "0".repeat(64),
    };
    let name = vector.name.as_str();
    let Some(text) = examination.ask(active, name, |store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        instance.holdfast_compliance_compliance().call_certificate(
            store,
            &vector.facts,
            "2026-01-02T03:04:05.000Z",
            "Example",
            &identity,
        )
    }) else {
        return;
    };

    match serde_json::from_str::<Value>(&text) {
        Ok(Value::Object(_)) => {
            // Verification ties a certificate to its record and its rules by these two values.
            for must in [vector.facts.envelope_id.as_str(), &identity.sha256] {
                examination.expect(
                    text.contains(must),
                    name,
                    "its certificate leaves out the envelope or the component",
                );
            }
        }
        // The host adds its own members to the certificate, which works only with an object.
        _ => examination.wrong(name, "its certificate is no JSON object"),
    }
}
