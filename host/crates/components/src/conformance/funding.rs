//! Vectors of `rules.funding`.

use serde::Deserialize;

use super::{ConformanceRun, data};
use crate::inspection::AdmissionReason;
use crate::rules::{FundingPre, funding};
use crate::slot::ActiveComponent;
use holdfast_domain::component::ConformanceResult;

#[derive(Deserialize)]
struct FundingVectors {
    version: String,
    /// Contracts that the default rules judge. A lender may judge them otherwise.
    vectors: Vec<FundingVector>,
    /// Contracts that no rules may call ready.
    never: Vec<FundingVector>,
}

#[derive(Deserialize)]
struct FundingVector {
    name: String,
    facts: funding::FundingFacts,
}

/// Runs the funding vectors: every answer must make sense in itself, and some contracts are never ready.
pub(super) fn funding_vectors(
    active: &ActiveComponent<FundingPre>,
) -> Result<ConformanceResult, Vec<AdmissionReason>> {
    let all: FundingVectors = data(include_str!("../../../../../wit/funding/vectors.json"))?;
    let mut examination = ConformanceRun::new(&all.version);
    let any = all.vectors.iter().map(|vector| (vector, true));

    let never = all.never.iter().map(|vector| (vector, false));
    for (vector, may_be_ready) in any.chain(never) {
        let name = &vector.name;
        let assessment = examination.ask(active, name, |store, pre| {
            let instance = pre.instantiate(&mut *store)?;
            let rules = instance.holdfast_funding_funding();
            rules.call_check(store, &vector.facts)
        });
        let Some(assessment) = assessment else {
            continue;
        };

        let is_ready = assessment.decision == funding::Decision::Ready;
        let mut findings = assessment.findings.iter();
        let has_stop = findings.any(|finding| finding.severity == funding::Severity::Stop);
        let mut findings = assessment.findings.iter();
        let is_explained =
            findings.all(|finding| !finding.rule.is_empty() && !finding.sentence.is_empty());
        examination.called("check", true);

        examination.expect(
            is_ready != has_stop,
            name,
            "its decision does not fit its findings: `ready` means that no finding is a `stop`",
        );
        examination.expect(is_explained, name, "a finding has no rule or no sentence");
        examination.expect(
            may_be_ready || !is_ready,
            name,
            "is ready, although nothing was read or signed",
        );
    }

    examination.end(true)
}
