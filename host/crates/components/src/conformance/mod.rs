//! Conformance test vectors that a candidate must pass before it is
//! admitted. The data is next to the WIT package that it belongs to.
//!
//! Rules may be stricter than the specification and never looser: a record that
//! fails a check of the specification is never compliant, a transition that the specification
//! refuses stays refused, and the path from creation to release stays open.

mod compliance;
mod control;
mod documents;
mod funding;
mod lifecycle;
mod providers;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use crate::artifact::{ComponentArtifact, NativeCodeCache, embedded};
use crate::documents::{DocumentsPre, PlacementPre};
use crate::engine::{EngineSet, LimitedEngine, thread_time};
use crate::error::ComponentError;
use crate::inspection::AdmissionReason;
use crate::program::RulesProgram;
use crate::rules::{CompliancePre, ControlPre, FundingPre, LifecyclePre};
use crate::slot::{self, ActiveComponent, ComponentWorld};
use crate::vectors::{VectorChange, VectorSet};
use compliance::compliance_vectors;
use control::control_vectors;
use documents::{documents_vectors, placement_vectors};
use funding::funding_vectors;
use holdfast_domain::component::{ConformanceResult, Slot};
use lifecycle::lifecycle_vectors;
pub(super) use providers::{examine_provider, loaded};

/// A candidate that may be admitted.
pub struct ExaminedComponent {
    pub conformance: ConformanceResult,
    /// The team's vectors that hold for it and later versions.
    pub vectors: VectorSet,
    /// Vectors of the version before that do not hold any more.
    pub changed: Vec<VectorChange>,
}

/// Test run of a candidate.
struct ConformanceRun {
    version: String,
    asked: u32,
    wrong: Vec<AdmissionReason>,
    memory: usize,
    fuel: u64,
    /// Most processor time of a vector.
    slowest: Duration,
    /// Functions that were called, and whether a call of each succeeded.
    functions: BTreeMap<String, bool>,
}

/// Maximum number of failures in a report.
const SHOWN: usize = 20;

impl ConformanceRun {
    fn new(version: &str) -> Self {
        Self {
            version: version.into(),
            asked: 0,
            wrong: Vec::new(),
            memory: 0,
            fuel: 0,
            slowest: Duration::ZERO,
            functions: BTreeMap::new(),
        }
    }

    /// Records the call of a function.
    fn called(&mut self, function: &str, ended_well: bool) {
        *self.functions.entry(function.to_owned()).or_default() |= ended_well;
    }

    /// Runs one vector. `None` if the call failed, which is recorded.
    fn ask<P: ComponentWorld, R>(
        &mut self,
        active: &ActiveComponent<P>,
        name: &str,
        work: impl FnOnce(&mut wasmtime::Store<LimitedEngine<()>>, &P) -> wasmtime::Result<R>,
    ) -> Option<R> {
        self.asked += 1;
        let began = thread_time();
        let (answer, used) = active.measured(work);
        self.slowest = self.slowest.max(thread_time().saturating_sub(began));
        self.memory = self.memory.max(used.memory);
        self.fuel = self.fuel.max(used.fuel);

        // The run continues after a vector without an answer, so the author sees all failures at once.
        match answer {
            Ok(answer) => Some(answer),
            Err(error) => {
                self.wrong(name, &format!("no answer: {}", error.kind));
                None
            }
        }
    }

    fn wrong(&mut self, name: &str, what: &str) {
        // A broken candidate fails most vectors in the same way, so the first failures are enough.
        if self.wrong.len() < SHOWN {
            self.wrong.push(AdmissionReason::new(
                "conformance",
                format!("\"{name}\": {what}"),
            ));
        }
    }

    /// Records whether a function gave the expected result. `None` is a failed call, which is
    /// recorded already.
    fn reaches(&mut self, function: &str, name: &str, given: Option<bool>) {
        let Some(given) = given else {
            return;
        };
        self.called(function, given);
        self.expect(given, name, "it gives something else, or an error");
    }

    fn expect(&mut self, holds: bool, name: &str, otherwise: &str) {
        if !holds {
            self.wrong(name, otherwise);
        }
    }

    fn end(self, fueled: bool) -> Result<ConformanceResult, Vec<AdmissionReason>> {
        if !self.wrong.is_empty() {
            return Err(self.wrong);
        }

        Ok(ConformanceResult {
            vectors_version: self.version,
            vectors: self.asked,
            own_vectors: 0,
            memory_bytes: self.memory as u64,
            // Providers run without fuel, so they have no figure.
            fuel: fueled.then_some(self.fuel),
            slowest_us: u64::try_from(self.slowest.as_micros()).unwrap_or(u64::MAX),
            not_reached: Some(
                self.functions
                    .into_iter()
                    .filter_map(|(function, ended_well)| (!ended_well).then_some(function))
                    .collect(),
            ),
        })
    }
}

/// Asks rules the vectors of their slot, those inside them, and those of the version before.
pub(super) fn examine(
    engines: &EngineSet,
    cache: &NativeCodeCache,
    artifact: &ComponentArtifact,
    before: &VectorSet,
) -> Result<ExaminedComponent, Vec<AdmissionReason>> {
    let refused = |code: &str, why: String| vec![AdmissionReason::new(code, why)];
    let own = VectorSet::inside(&artifact.bytes()).map_err(|why| refused("vectors", why))?;
    let vectors = own.kept(before);
    // The published vectors come first. A candidate that fails them is refused before its own ones run.
    let mut conformance = slot_vectors(engines, cache, artifact, &vectors)?;

    // Vectors of the version before also hold for a candidate that has none of its own.
    if !vectors.vectors.is_empty() || !before.vectors.is_empty() {
        let rules = RulesProgram::load(engines, cache, artifact)
            .map_err(|error| refused("conformance", error.kind.to_string()))?;
        own.admit(&rules, before)?;
    }

    conformance.own_vectors = u32::try_from(vectors.vectors.len()).unwrap_or(u32::MAX);
    Ok(ExaminedComponent {
        conformance,
        changed: own.changed(before),
        vectors,
    })
}

/// Asks rules the vectors of their slot.
fn slot_vectors(
    engines: &EngineSet,
    cache: &NativeCodeCache,
    artifact: &ComponentArtifact,
    own: &VectorSet,
) -> Result<ConformanceResult, Vec<AdmissionReason>> {
    let unfit = |error: ComponentError| {
        vec![AdmissionReason::new(
            "type_mismatch",
            error.kind.to_string(),
        )]
    };

    match artifact.slot {
        Slot::Compliance => {
            let active =
                slot::load_candidate::<CompliancePre>(engines, cache, artifact).map_err(unfit)?;
            compliance_vectors(&active, own)
        }
        Slot::Lifecycle => {
            let active =
                slot::load_candidate::<LifecyclePre>(engines, cache, artifact).map_err(unfit)?;
            // The default component is the measure for batches, which no file of vectors lists.
            lifecycle_vectors(
                &active,
                &default_of(engines, cache, artifact).map_err(unfit)?,
            )
        }
        Slot::Control => {
            let active =
                slot::load_candidate::<ControlPre>(engines, cache, artifact).map_err(unfit)?;
            // The default component is the measure for all acts that the vectors do not name.
            control_vectors(
                &active,
                &default_of(engines, cache, artifact).map_err(unfit)?,
            )
        }
        Slot::Funding => {
            let active =
                slot::load_candidate::<FundingPre>(engines, cache, artifact).map_err(unfit)?;
            funding_vectors(&active)
        }
        Slot::Placement => {
            let active =
                slot::load_candidate::<PlacementPre>(engines, cache, artifact).map_err(unfit)?;
            placement_vectors(&active)
        }
        Slot::Documents => {
            let active =
                slot::load_candidate::<DocumentsPre>(engines, cache, artifact).map_err(unfit)?;
            documents_vectors(&active)
        }
        Slot::Signing | Slot::Payment | Slot::Kba | Slot::Messaging | Slot::Conversion => {
            Err(vec![AdmissionReason::new(
                "unknown_world",
                "providers are asked with a far end",
            )])
        }
    }
}

/// Loads the default component of a candidate's slot.
fn default_of<P: ComponentWorld>(
    engines: &EngineSet,
    cache: &NativeCodeCache,
    artifact: &ComponentArtifact,
) -> Result<ActiveComponent<P>, ComponentError> {
    let default = embedded().find(|default| default.slot == P::SLOT);
    slot::load_candidate(engines, cache, &default.unwrap_or_else(|| artifact.clone()))
}
fn data<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, Vec<AdmissionReason>> {
    serde_json::from_str(text).map_err(|error| {
        vec![AdmissionReason::new(
            "conformance",
            format!("the vectors of this host cannot be read: {error}"),
        )]
    })
}
