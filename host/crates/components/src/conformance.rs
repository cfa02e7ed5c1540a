//! Conformance test vectors that a candidate must pass before it is
//! admitted. The data is next to the WIT package that it belongs to.
//!
//! Rules may be stricter than the specification and never looser: a record that
//! fails a check of the specification is never compliant, a transition that the specification
//! refuses stays refused, and the path from creation to release stays open.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::artifact::{ComponentArtifact, NativeCodeCache, embedded};
use super::background;
use super::documents::{DocumentsPre, PlacementPre};
use super::egress::NetworkAccess;
use super::engine::{EngineSet, LimitedEngine};
use super::error::ComponentError;
use super::gate::CallGate;
use super::inspection::AdmissionReason;
use super::lent::LentHost;
use super::program::RulesProgram;
use super::providers::{
    KbaPlugin, KbaPre, MessagingPlugin, MessagingPre, PaymentPlugin, PaymentPre, PluginRuntime,
    ProviderCalls, ProviderError, SigningPlugin, SigningPre, messaging, payment, signing,
};
use super::rules::{
    CompliancePre, ControlPre, LifecyclePre, compliance, control, decide_control, documents,
    lifecycle, placement, vaulting,
};
use super::slot::{self, ActiveComponent, ComponentHandle, ComponentWorld};
use super::vectors::{VectorChange, VectorSet};
use holdfast_base::config::SecretText;
use holdfast_domain::clock::Clock;
use holdfast_domain::component::{ConformanceResult, Slot};

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
        let began = Instant::now();
        let (answer, used) = active.measured(work);
        self.slowest = self.slowest.max(began.elapsed());
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
        Slot::Signing | Slot::Payment | Slot::Kba | Slot::Messaging => {
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

fn data<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, Vec<AdmissionReason>> {
    serde_json::from_str(text).map_err(|error| {
        vec![AdmissionReason::new(
            "conformance",
            format!("the vectors of this host cannot be read: {error}"),
        )]
    })
}

fn compliance_vectors(
    active: &ActiveComponent<CompliancePre>,
    own: &VectorSet,
) -> Result<ConformanceResult, Vec<AdmissionReason>> {
    let all: ComplianceVectors = data(include_str!("../../../../wit/compliance/vectors.json"))?;
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

#[derive(Deserialize)]
struct LifecycleVectors {
    version: String,
    facts: Vec<LifecycleFacts>,
    /// Triggers, each with a status, that every rules component must allow.
    way: Vec<(usize, String, String)>,
}

/// Facts with the transition table: for each trigger and status the next status, or `!` and the
/// reason of the refusal.
#[derive(Deserialize)]
struct LifecycleFacts {
    name: String,
    esign: bool,
    has_template: bool,
    is_upload: bool,
    has_file: bool,
    has_vault_file: bool,
    payment: String,
    moves: BTreeMap<String, BTreeMap<String, String>>,
}

impl LifecycleFacts {
    fn facts(&self) -> lifecycle::EnvelopeFacts {
        lifecycle::EnvelopeFacts {
            kind: if self.esign {
                lifecycle::EnvelopeKind::Esign
            } else {
                lifecycle::EnvelopeKind::Paper
            },
            has_template: self.has_template,
            is_upload: self.is_upload,
            has_file: self.has_file,
            has_vault_file: self.has_vault_file,
            payment: match self.payment.as_str() {
                "paid" => lifecycle::PaymentStatus::Paid,
                "requires_payment" => lifecycle::PaymentStatus::RequiresPayment,
                _ => lifecycle::PaymentStatus::NotRequested,
            },
            attributes: Vec::new(),
        }
    }
}

fn lifecycle_vectors(
    active: &ActiveComponent<LifecyclePre>,
    default: &ActiveComponent<LifecyclePre>,
) -> Result<ConformanceResult, Vec<AdmissionReason>> {
    let all: LifecycleVectors = data(include_str!("../../../../wit/lifecycle/vectors.json"))?;
    let mut examination = ConformanceRun::new(&all.version);
    for (index, row) in all.facts.iter().enumerate() {
        let facts = row.facts();
        for (trigger, from) in &row.moves {
            for (status, expected) in from {
                let name = format!("{}: {trigger} in {status}", row.name);
                let (Some(asked), Ok(current)) = (trigger_named(trigger), status_named(status))
                else {
                    examination.wrong(&name, "is no move of this host");
                    continue;
                };
                let Some(answer) = examination.ask(active, &name, |store, pre| {
                    let instance = pre.instantiate(&mut *store)?;
                    instance
                        .holdfast_lifecycle_lifecycle()
                        .call_envelope(store, current, asked, &facts)
                }) else {
                    continue;
                };

                // These moves lead from creation to release. Refusing any
                // other move is stricter, and so allowed.
                let must = all
                    .way
                    .iter()
                    .any(|way| *way == (index, trigger.clone(), status.clone()));
                match answer {
                    Ok(next) => {
                        // Another status is not stricter but different, and the host would act on it.
                        let next = status_name(next);
                        examination.expect(
                            next == expected,
                            &name,
                            &format!("leads to {next}; the specification says {expected}"),
                        );
                    }
                    Err(_) => examination.expect(
                        !must,
                        &name,
                        "is refused; without it no envelope can be vaulted and released",
                    ),
                }
            }
        }
    }

    batches(&mut examination, active, default);
    examination.end(true)
}

/// Checks all transitions of a batch: a transition that the default refuses must be refused, and
/// an allowed one must lead to the same status.
fn batches(
    examination: &mut ConformanceRun,
    active: &ActiveComponent<LifecyclePre>,
    default: &ActiveComponent<LifecyclePre>,
) {
    use lifecycle::BatchStatus as Status;
    use lifecycle::BatchTrigger as Trigger;

    // The whole table is small enough to ask, so it needs no file of vectors.
    let statuses = [
        None,
        Some(Status::Draft),
        Some(Status::Ready),
        Some(Status::Running),
        Some(Status::Completed),
        Some(Status::Cancelled),
        Some(Status::Failed),
    ];

    let triggers = [
        Trigger::Create,
        Trigger::SetItems,
        Trigger::Update,
        Trigger::Submit,
        Trigger::Finish,
        Trigger::Fail,
        Trigger::Cancel,
        Trigger::Delete,
    ];

    for (status, trigger) in statuses
        .into_iter()
        .flat_map(|status| triggers.map(|trigger| (status, trigger)))
    {
        let name = format!("batch: {trigger:?} in {status:?}");
        // Candidate and default get the same question, so only their answers can differ.
        let ask = |store: &mut wasmtime::Store<LimitedEngine<()>>, pre: &LifecyclePre| {
            let instance = pre.instantiate(&mut *store)?;
            let rules = instance.holdfast_lifecycle_lifecycle();
            rules.call_batch(store, status, trigger)
        };
        let Some(answer) = examination.ask(active, &name, ask) else {
            continue;
        };

        examination.called("batch", answer.is_ok());
        // A refusal is stricter and so always allowed.
        if let (Ok(next), (Ok(expected), _)) = (answer, default.measured(ask)) {
            examination.expect(
                expected.as_ref().ok() == Some(&next),
                &name,
                &format!("leads to {next:?}; the specification has {expected:?}"),
            );
        }
    }
}

#[derive(Deserialize)]
struct ControlVectors {
    version: String,
    /// Acts that must stay possible.
    way: Vec<ControlVector>,
    /// Acts that must stay impossible.
    never: Vec<ControlVector>,
}

#[derive(Deserialize)]
struct ControlVector {
    name: String,
    act: control::Act,
    facts: control::ControlFacts,
}

/// Runs the control vectors, then compares all acts at all stages with the default component.
fn control_vectors(
    active: &ActiveComponent<ControlPre>,
    default: &ActiveComponent<ControlPre>,
) -> Result<ConformanceResult, Vec<AdmissionReason>> {
    let all: ControlVectors = data(include_str!("../../../../wit/control/vectors.json"))?;
    let mut examination = ConformanceRun::new(&all.version);
    let way = all.way.iter().map(|vector| (vector, true));

    let never = all.never.iter().map(|vector| (vector, false));
    for (vector, possible) in way.chain(never) {
        let Some(decision) = decided(&mut examination, active, &vector.name, vector) else {
            continue;
        };

        let allowed = decision == control::Decision::Allowed;
        let otherwise = if possible {
            "is refused; without it no record can change hands"
        } else {
            "is allowed; the law does not allow it"
        };
        examination.called("decide", allowed);

        examination.expect(allowed == possible, &vector.name, otherwise);
    }

    // The vectors name single acts. Here every act at every stage is compared with the default.
    for vector in control_questions() {
        let Some(decision) = decided(&mut examination, active, &vector.name, &vector) else {
            continue;
        };
        let expected = decide_control(default, vector.act, &vector.facts);
        // A failure of the default must not let a looser candidate pass.
        let holds = expected.is_ok_and(|expected| !is_looser(&decision, &expected));
        examination.expect(holds, &vector.name, "is looser than the default rules");
    }

    examination.end(true)
}

fn decided(
    examination: &mut ConformanceRun,
    active: &ActiveComponent<ControlPre>,
    name: &str,
    vector: &ControlVector,
) -> Option<control::Decision> {
    examination.ask(active, name, |store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        let rules = instance.holdfast_control_control();
        rules.call_decide(store, vector.act, &vector.facts)
    })
}

/// Whether a decision permits, now or after consents, what the default decision does not.
fn is_looser(decision: &control::Decision, default: &control::Decision) -> bool {
    use control::Decision::{Allowed, ConsentNeeded, Refused};
    match (decision, default) {
        (Refused(_), _) | (_, Allowed) => false,
        (_, Refused(_)) | (Allowed, ConsentNeeded(_)) => true,
        // Each consent that the default asks for protects a party. More are fine, fewer are not.
        (ConsentNeeded(given), ConsentNeeded(needed)) => {
            !needed.iter().all(|party| given.contains(party))
        }
    }
}

/// Returns every act at every stage by every party, with and without the facts that matter to some act.
fn control_questions() -> impl Iterator<Item = ControlVector> {
    use control::{Act, ControlFacts, Obstacle, Party, Stage};

    let acts = [
        Act::Designate,
        Act::Accept,
        Act::Decline,
        Act::ProposeTransfer,
        Act::Inspect,
        Act::AcceptTransfer,
        Act::ConfirmTransfer,
        Act::CancelTransfer,
        Act::ExpireTransfer,
        Act::Pledge,
        Act::ReleasePledge,
        Act::GrantView,
        Act::RevokeView,
        Act::ConsentToRelease,
        Act::RefuseRelease,
        Act::Release,
        Act::Retrieve,
        Act::ConvertToPaper,
    ];

    let stages = [
        Stage::Originated,
        Stage::Designated,
        Stage::Controlled,
        Stage::Proposed,
        Stage::Accepted,
        Stage::Released,
    ];

    // The empty list is an outsider.
    let actors: [&[Party]; 9] = [
        &[],
        &[Party::Originator],
        &[Party::Originator, Party::Controller],
        &[Party::Controller],
        &[Party::Designee],
        &[Party::Buyer],
        &[Party::Pledgee],
        &[Party::Viewer],
        &[Party::Host],
    ];

    let variants: [fn(&mut ControlFacts); 8] = [
        |_| {},
        |facts| facts.named = vec![Party::Controller],
        |facts| facts.is_vaulted = false,
        |facts| facts.obstacles = vec![Obstacle::Held],
        |facts| facts.is_expired = true,
        |facts| facts.release_requested = true,
        |facts| facts.pledges = 1,
        |facts| facts.consents = vec![Party::Controller],
    ];

    let asked = acts.into_iter().flat_map(move |act| {
        let at = stages.into_iter();
        at.flat_map(move |stage| actors.map(|actor| (act, stage, actor)))
    });
    asked.flat_map(move |(act, stage, actor)| {
        variants.map(|vary| {
            let mut facts = ControlFacts {
                stage,
                actor: actor.to_vec(),
                named: Vec::new(),
                is_vaulted: true,
                obstacles: Vec::new(),
                is_expired: false,
                release_requested: false,
                pledges: 0,
                consents: Vec::new(),
                attributes: Vec::new(),
            };

            vary(&mut facts);
            let name = format!("{act:?} by {actor:?}: {facts:?}");
            ControlVector { name, act, facts }
        })
    })
}

/// Statuses by their names in the API.
const STATUSES: [(&str, lifecycle::EnvelopeStatus); 11] = [
    ("pending", lifecycle::EnvelopeStatus::Pending),
    ("uploaded", lifecycle::EnvelopeStatus::Uploaded),
    ("preparing", lifecycle::EnvelopeStatus::Preparing),
    ("sent", lifecycle::EnvelopeStatus::Sent),
    ("viewed", lifecycle::EnvelopeStatus::Viewed),
    ("completed", lifecycle::EnvelopeStatus::Completed),
    ("vaulted", lifecycle::EnvelopeStatus::Vaulted),
    ("vaulted_out", lifecycle::EnvelopeStatus::VaultedOut),
    ("declined", lifecycle::EnvelopeStatus::Declined),
    ("voided", lifecycle::EnvelopeStatus::Voided),
    ("expired", lifecycle::EnvelopeStatus::Expired),
];

fn status_name(status: lifecycle::EnvelopeStatus) -> &'static str {
    STATUSES
        .iter()
        .find(|(_, known)| *known == status)
        .map_or("", |(name, _)| name)
}

/// Parses a status; `-` stands for no status yet.
fn status_named(name: &str) -> Result<Option<lifecycle::EnvelopeStatus>, ()> {
    if name == "-" {
        return Ok(None);
    }
    let found = STATUSES.iter().find(|(known, _)| *known == name);
    found.map(|(_, status)| Some(*status)).ok_or(())
}

fn trigger_named(name: &str) -> Option<lifecycle::EnvelopeTrigger> {
    use lifecycle::EnvelopeTrigger as Trigger;

    Some(match name {
        "create" => Trigger::Create,
        "create-in-bulk" => Trigger::CreateInBulk,
        "upload" => Trigger::Upload,
        "send" => Trigger::Send,
        "view" => Trigger::View,
        "progress" => Trigger::Progress,
        "complete" => Trigger::Complete,
        "decline" => Trigger::Decline,
        "void" => Trigger::Void,
        "expire" => Trigger::Expire,
        "vault-in-signed" => Trigger::VaultInSigned,
        "vault-in-upload" => Trigger::VaultInUpload,
        "vault-out" => Trigger::VaultOut,
        "remind" => Trigger::Remind,
        "signing-links" => Trigger::SigningLinks,
        "embed-sign" => Trigger::EmbedSign,
        "embed-vault" => Trigger::EmbedVault,
        "download-authoritative" => Trigger::DownloadAuthoritative,
        "download-copy" => Trigger::DownloadCopy,
        _ => return None,
    })
}

/// Version of the vectors for the document slots.
const DOCUMENT_VECTORS: &str = "1.0.0";
/// Document of four pages with text.
const CONTRACT: &[u8] =
    include_bytes!("../../../../tests/fixtures/retail-installment-contract.pdf");

fn placement_vectors(
    active: &ActiveComponent<PlacementPre>,
) -> Result<ConformanceResult, Vec<AdmissionReason>> {
    let mut examination = ConformanceRun::new(DOCUMENT_VECTORS);
    let ask = "a document of four pages is read";
    let facts = examination.ask(active, ask, |store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        instance
            .holdfast_placement_placement()
            .call_inspect(store, CONTRACT)
    });
    if let Some(facts) = facts {
        let pages = facts.map(|facts| facts.pages.len());
        examination.expect(matches!(pages, Ok(4)), ask, "four pages were not found");
    }

    let mut place = |name: &str, text: &str, page| {
        let field = placement::FieldRequest {
            name: "Signature".into(),
            field_type: "signature".into(),
            role: "Buyer".into(),
            required: true,
            default_value: None,
            position: placement::Position::Anchor(placement::Anchor {
                text: text.into(),
                occurrence: None,
                page,
                offset_x: 0.0,
                offset_y: 0.0,
                w: 0.3,
                h: 0.03,
            }),
        };

        examination.ask(active, name, |store, pre| {
            let instance = pre.instantiate(&mut *store)?;
            instance
                .holdfast_placement_placement()
                .call_place(store, CONTRACT, &[field])
        })
    };

    // A component that finds every anchor, or none, fails one of these two.
    let there = "an anchor is found where it is";
    let found = place(there, "Buyer signature:", None);
    let nowhere = "an anchor that is not there is an error";
    let missing = place(nowhere, "no such words at all", None);

    if let Some(found) = found {
        // Components may place a field a little differently, so only the page and its edges are compared.
        let right = found.is_ok_and(|fields| {
            fields
                .first()
                .and_then(|field| field.areas.first())
                .is_some_and(|area| {
                    area.page == 4 && (0.0..1.0).contains(&area.x) && (0.0..1.0).contains(&area.y)
                })
        });

        examination.expect(right, there, "it lands elsewhere, or nowhere");
    }

    if let Some(missing) = missing {
        examination.expect(missing.is_err(), nowhere, "a place was made up");
    }

    let name = "the lines of a page are read";
    let lines = examination.ask(active, name, |store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        let rules = instance.holdfast_placement_placement();
        rules.call_text(store, CONTRACT, 4)
    });
    examination.reaches(
        "text",
        name,
        lines.map(|lines| lines.is_ok_and(|all| !all.is_empty())),
    );

    let name = "every place of a text is found";
    let places = examination.ask(active, name, |store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        let rules = instance.holdfast_placement_placement();
        rules.call_occurrences(store, CONTRACT, "Buyer signature:", None)
    });
    let found = places.map(|places| places.is_ok_and(|all| !all.is_empty()));
    examination.reaches("occurrences", name, found);

    let name = "a document without tags has no fields";
    let tags = examination.ask(active, name, |store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        let rules = instance.holdfast_placement_placement();
        rules.call_tags(store, CONTRACT)
    });
    examination.reaches(
        "tags",
        name,
        tags.map(|tags| tags.is_ok_and(|all| all.is_empty())),
    );

    examination.end(true)
}

fn documents_vectors(
    active: &ActiveComponent<DocumentsPre>,
) -> Result<ConformanceResult, Vec<AdmissionReason>> {
    let mut examination = ConformanceRun::new(DOCUMENT_VECTORS);
    let name = "a mark is added behind what was signed";
    let request = documents::MarkRequest {
        kind: documents::CopyKind::NonAuthoritative,
        envelope_id: "env_conformance".into(),
        secured_party: Some("First Example Bank".into()),
        marked_at: "2026-01-02T03:04:05.000Z".into(),
        rewrite: false,
    };
    let marked = examination.ask(active, name, |store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        instance
            .holdfast_documents_documents()
            .call_mark(store, CONTRACT, &request)
    });
    if let Some(marked) = marked {
        let appended = match marked {
            Ok(documents::Marked::Appended(tail)) => !tail.is_empty(),
            _ => false,
        };
        examination.expect(appended, name, "nothing was appended");
    }

    let name = "a page is shown";
    let picture = examination.ask(active, name, |store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        instance
            .holdfast_documents_documents()
            .call_page_image(store, CONTRACT, 1, 100)
    });
    if let Some(picture) = picture {
        let png = picture.map(|picture| picture.png).unwrap_or_default();
        let shown = png.starts_with(b"\x89PNG");
        examination.expect(shown, name, "no picture was made");
        // The other functions need a picture, so they are asked only if there is one.
        if shown {
            further_documents(&mut examination, active, png);
        }
    }

    examination.end(true)
}

/// Checks the functions that return a whole document.
fn further_documents(
    examination: &mut ConformanceRun,
    active: &ActiveComponent<DocumentsPre>,
    png: Vec<u8>,
) {
    type Given = Result<Vec<u8>, documents::DocumentError>;

    // Only the kind of file is compared: two components may write different bytes for the same page.
    let gives = |function: &str, answer: Option<Given>| {
        let pdf = answer.map(|pdf| pdf.is_ok_and(|pdf| pdf.starts_with(b"%PDF")));
        (function.to_owned(), pdf)
    };
    let mut all = Vec::new();
    let name = "tags are removed";
    let stripped = examination.ask(active, name, |store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        let rules = instance.holdfast_documents_documents();
        rules.call_strip_tags(store, CONTRACT)
    });
    all.push((name, gives("strip-tags", stripped)));

    let name = "a value is written at its place";
    let field = documents::FilledField {
        areas: vec![documents::Area {
            page: 1,
            x: 0.1,
            y: 0.1,
            w: 0.3,
            h: 0.03,
        }],
        value: documents::FieldValue::Typed("Bo Buyer".into()),
    };

    let filled = examination.ask(active, name, |store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        let rules = instance.holdfast_documents_documents();
        rules.call_fill(store, CONTRACT, std::slice::from_ref(&field))
    });
    all.push((name, gives("fill", filled)));
    let name = "a picture becomes a document";

    let picture = documents::Picture {
        format: documents::PictureFormat::Png,
        bytes: png,
    };
    let pictured = examination.ask(active, name, |store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        let rules = instance.holdfast_documents_documents();
        rules.call_picture_to_pdf(store, &picture)
    });
    all.push((name, gives("picture-to-pdf", pictured)));

    let name = "two documents become one";
    let both = [CONTRACT.to_vec(), CONTRACT.to_vec()];
    let merged = examination.ask(active, name, |store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        let rules = instance.holdfast_documents_documents();
        rules.call_merge(store, &both)
    });
    all.push((name, gives("merge", merged)));

    let name = "a custody record is written";
    let facts = custody_facts();
    let record = examination.ask(active, name, |store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        let rules = instance.holdfast_documents_documents();
        rules.call_custody_record(store, &facts)
    });
    all.push((name, gives("custody-record", record)));

    for (name, (function, given)) in all {
        examination.reaches(&function, name, given);
    }

    let name = "a place for a signature is added";
    let request = documents::SealRequest {
        name: "Example".into(),
        reason: "Conformance".into(),
        signed_at: "2026-01-02T03:04:05.000Z".into(),
        signature_bytes: 8192,
    };
    let space = examination.ask(active, name, |store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        let rules = instance.holdfast_documents_documents();
        rules.call_prepare_seal(store, CONTRACT, &request)
    });
    let placed = space.map(|space| space.is_ok_and(|space| space.place_start < space.place_end));
    examination.reaches("prepare-seal", name, placed);

    // A component without this function is fine: the host then marks each copy on its own.
    if active.pre.vaulting.is_some() {
        both_copies(examination, active, request);
    }
}

/// Checks the function that makes both copies for the vault.
fn both_copies(
    examination: &mut ConformanceRun,
    active: &ActiveComponent<DocumentsPre>,
    seal: documents::SealRequest,
) {
    let name = "both copies are updates of what was signed";
    let mark = |kind| documents::MarkRequest {
        kind,
        envelope_id: "env_conformance".into(),
        secured_party: None,
        marked_at: "2026-01-02T03:04:05.000Z".into(),
        rewrite: false,
    };
    let request = vaulting::VaultRequest {
        authoritative: mark(documents::CopyKind::Authoritative),
        seal,
        copy: mark(documents::CopyKind::NonAuthoritative),
        words: None,
    };
    let made = examination.ask(active, name, |store, pre| {
        let vaulting = pre.vaulting.as_ref();
        let vaulting = vaulting.ok_or_else(|| wasmtime::Error::msg("it is not exported"))?;
        let instance = vaulting.instantiate(&mut *store)?;
        let rules = instance.holdfast_documents_vaulting();
        rules.call_prepare_copies(store, CONTRACT, &request)
    });

    // None is an answer too: the host then calls the other functions.
    let fits = made.map(|made| match made {
        Ok(None) => true,
        Ok(Some(made)) => has_empty_place(&made.authoritative) && !made.copy.is_empty(),
        Err(_) => false,
    });

    examination.reaches("prepare-copies", name, fits);
}

/// Returns whether an update of the contract has an empty place for a signature.
fn has_empty_place(space: &documents::SealSpace) -> bool {
    // Offsets count from the beginning of the document, and the update is appended to it.
    let at = |offset: u64| usize::try_from(offset).ok()?.checked_sub(CONTRACT.len());
    let place = at(space.place_start).zip(at(space.place_end));
    let place = place.and_then(|(start, end)| space.appended.get(start..end));
    place
        .and_then(|place| place.strip_prefix(b"<")?.strip_suffix(b">"))
        // The host writes its signature there, so the component must leave zeros.
        .is_some_and(|digits| digits.iter().all(|digit| *digit == b'0'))
}

fn custody_facts() -> documents::CustodyFacts {
    documents::CustodyFacts {
        envelope_id: "env_conformance".into(),
        envelope_name: "Conformance".into(),
        customer_id: "cus_conformance".into(),
        issuer: "Example".into(),
        recorded_at: "2026-01-02T03:04:05.000Z".into(),
        hash_algorithm: "SHA-256".into(),
        document_hash: "0".repeat(64),
        copy_hash: "1".repeat(64),
        secured_party: Some("First Example Bank".into()),
        custodian: "Example".into(),
        parties: Vec::new(),
        timeline: Vec::new(),
        checks: Vec::new(),
        rules_component: "candidate 0.0.0".into(),
        certificate_json: "{}".into(),
        attributes: Vec::new(),
    }
}

/// Host name of the simulated external services.
const FAR_END: &str = "far-end.invalid";

/// Runs a provider against simulated external services that fail in many ways. For any of their
/// responses, each call must return an error of its world, within its limits. Success cannot be
/// tested, because the host does not know the API of the provider's vendor.
pub(super) async fn examine_provider(
    engines: &EngineSet,
    cache: &NativeCodeCache,
    artifact: &ComponentArtifact,
) -> Result<ConformanceResult, Vec<AdmissionReason>> {
    match artifact.slot {
        Slot::Payment => examine_kind::<PaymentPre>(engines, cache, artifact).await,
        Slot::Kba => examine_kind::<KbaPre>(engines, cache, artifact).await,
        Slot::Messaging => examine_kind::<MessagingPre>(engines, cache, artifact).await,
        _ => examine_kind::<SigningPre>(engines, cache, artifact).await,
    }
}

/// Kind of provider, with calls of all its functions.
trait ProviderKind: ProviderCalls + ComponentWorld {
    fn ask_all(
        examination: &mut ConformanceRun,
        plugin: &PluginRuntime<Self>,
        far_end: &FarEnd,
    ) -> impl Future<Output = ()> + Send;
}

async fn examine_kind<P: ProviderKind>(
    engines: &EngineSet,
    cache: &NativeCodeCache,
    artifact: &ComponentArtifact,
) -> Result<ConformanceResult, Vec<AdmissionReason>> {
    let mut active = loaded::<P>(engines, cache, artifact).await?;
    // A slow candidate keeps the next one waiting, so it gets less time than in service.
    active.limits.deadline = active.limits.deadline.min(PER_QUESTION);
    // A gate of its own, so that an examination takes no permit from the calls of tenants.
    let gate = CallGate::of(Arc::new(Semaphore::new(1)));
    let plugin = PluginRuntime::<P>::new(ComponentHandle::Held(slot::ready(active)), gate);
    let mut examination = ConformanceRun::new(&data::<ProviderVectors>(PROVIDER_VECTORS)?.version);

    let began = Instant::now();
    for far_end in data::<ProviderVectors>(PROVIDER_VECTORS)?.far_ends {
        if began.elapsed() > IN_ALL {
            let why = format!("it takes more than {IN_ALL:?} to answer");
            return Err(vec![AdmissionReason::new("over_limit", why)]);
        }

        P::ask_all(&mut examination, &plugin, &far_end).await;
        // Each failure can take the whole deadline, so a broken candidate ends early.
        if examination.wrong.len() >= ENOUGH {
            break;
        }
    }

    examination.memory = plugin.memory_peak();
    examination.end(false)
}

/// Loads a candidate from cached native code.
pub(super) async fn loaded<P: ComponentWorld>(
    engines: &EngineSet,
    cache: &NativeCodeCache,
    artifact: &ComponentArtifact,
) -> Result<ActiveComponent<P>, Vec<AdmissionReason>> {
    let (engines, cache, artifact) = (engines.clone(), cache.clone(), artifact.clone());
    // Loading links native code and runs a canary, which would block an async thread.
    background::run(move || slot::load_candidate::<P>(&engines, &cache, &artifact))
        .await
        .map_err(|error| vec![AdmissionReason::new("conformance", error.to_string())])?
        .map_err(|error| {
            vec![AdmissionReason::new(
                "type_mismatch",
                error.kind.to_string(),
            )]
        })
}

// Candidates are examined one at a time, so one examination must not take long.
/// Time limit of one call of a provider.
const PER_QUESTION: Duration = Duration::from_secs(5);
/// Time limit of the examination: after it no further service is tried.
const IN_ALL: Duration = Duration::from_secs(60);
/// Number of failures after which the examination stops.
const ENOUGH: usize = 8;

const PROVIDER_VECTORS: &str = include_str!("../../../../wit/host/vectors.json");

#[derive(Deserialize)]
struct ProviderVectors {
    version: String,
    far_ends: Vec<FarEnd>,
}

/// Simulated external service that gives the same response to all requests.
#[derive(Clone, Deserialize)]
struct FarEnd {
    name: String,
    status: u16,
    body: String,
    /// Number of repetitions of the body.
    #[serde(default = "once")]
    times: usize,
    /// The service reports that the object is gone, which may count as archived.
    #[serde(default)]
    gone: bool,
    /// The response is too large for the runtime of some languages: a trap counts as an
    /// error.
    #[serde(default)]
    may_break: bool,
}

fn once() -> usize {
    1
}

impl FarEnd {
    fn lease(&self) -> LentHost {
        let mut answer = http::Response::new(Bytes::from(self.body.repeat(self.times)));
        *answer.status_mut() = http::StatusCode::from_u16(self.status).unwrap_or_default();
        // Plugins of different vendors read different names, so the common ones are all set.
        let settings = [
            ("base_url", format!("http://{FAR_END}")),
            ("publishable_key", "conformance-key".to_owned()),
            ("account_sid", "conformance-account".to_owned()),
            ("from", "+15550100".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value));

        let secrets = ["api_key", "auth_token", "secret_key", "webhook_secret"]
            .map(|name| (name.to_owned(), SecretText::new("conformance-secret")));
        LentHost {
            // Only the built-in instance gets records of the signing room.
            room: None,
            log: None,
            label: "conformance".into(),
            settings: Arc::new(BTreeMap::from(settings)),
            secrets: Arc::new(BTreeMap::from(secrets)),
            egress: NetworkAccess::scripted(Arc::new(move |_| answer.clone()), FAR_END),
            clock: Clock::default(),
        }
    }
}

/// Records the result of a call. Success is a failure of the vector, unless `may_do` allows it.
fn note(
    examination: &mut ConformanceRun,
    far_end: &FarEnd,
    call: &str,
    began: Instant,
    ended: Result<(), ProviderError>,
    may_do: bool,
) {
    examination.asked += 1;
    examination.slowest = examination.slowest.max(began.elapsed());
    let function = call.split_once(' ').map_or(call, |(function, _)| function);
    examination.called(function, ended.is_ok());

    let name = format!("{call}, and the far end {}", far_end.name);
    // An error of the world is a good answer here. A trap or an exceeded limit is not.
    match ended {
        Err(ProviderError::Component(error)) if !far_end.may_break => {
            examination.wrong(&name, &format!("no answer: {}", error.kind));
        }
        Err(_) => {}
        Ok(()) => examination.expect(may_do, &name, "ends as if it had worked"),
    }
}

/// Returns headers and body of an unsigned callback.
fn unsigned() -> (Vec<(String, String)>, Vec<u8>) {
    (
        vec![("content-type".into(), "application/json".into())],
        b"{\"event_type\":\"form.completed\",\"data\":{\"id\":1}}".to_vec(),
    )
}

impl ProviderKind for SigningPre {
    async fn ask_all(examination: &mut ConformanceRun, plugin: &SigningPlugin, far_end: &FarEnd) {
        let lease = || far_end.lease();
        let document = Bytes::from_static(CONTRACT);
        let request = signing::SubmissionRequest {
            template_id: "1".into(),
            external_id: "env_conformance".into(),
            name: "Conformance".into(),
            preserve_order: true,
            submitters: vec![signing::SubmitterRequest {
                name: "Bo Buyer".into(),
                email: "buyer@example.com".into(),
                role: "Buyer".into(),
                values: Vec::new(),
            }],
        };

        let mut note = |call: &str, began, ended, may_do| {
            note(examination, far_end, call, began, ended, may_do);
        };
        let began = Instant::now();
        let ended =
            plugin.create_template(lease(), "Conformance", "tmpl_conformance", document, &[]);
        note("create-template", began, ended.await.map(drop), false);

        let began = Instant::now();
        let ended = plugin.read_template(lease(), "1").await;
        note("read-template", began, ended.map(drop), false);
        let began = Instant::now();
        let ended = plugin.add_fields(lease(), "1", &[]).await;
        // Without fields there is nothing to send, so success is right.
        note("add-fields", began, ended.map(drop), true);
        let began = Instant::now();

        let ended = plugin
            .clone_template(lease(), "1", "Copy", "tmpl_copy")
            .await;
        note("clone-template", began, ended.map(drop), false);

        // Archiving needs only the status of the response, so it may succeed with any body.
        let done = far_end.gone || (200..300).contains(&far_end.status);
        let began = Instant::now();
        let ended = plugin.archive_template(lease(), "1").await;
        note("archive-template", began, ended, done);
        let began = Instant::now();
        let ended = plugin.create_submission(lease(), request).await;
        note("create-submission", began, ended.map(drop), false);

        let began = Instant::now();
        let ended = plugin.read_submission(lease(), "1").await;
        note("read-submission", began, ended.map(drop), false);
        let began = Instant::now();
        let ended = plugin.archive_submission(lease(), "1").await;
        note("archive-submission", began, ended, done);
        let began = Instant::now();

        let ended = plugin.signed_document(lease(), "1").await;
        note("signed-document", began, ended.map(drop), false);
        let began = Instant::now();
        let (headers, body) = unsigned();
        let callback = signing::Callback { headers, body };
        // Anyone can send a callback, so one without a signature must be refused.
        let ended = match plugin.read_callback(lease(), callback).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(ProviderError::NotFound),
            Err(error) => Err(error.into()),
        };

        note("read-callback without a signature", began, ended, false);
    }
}

impl ProviderKind for PaymentPre {
    async fn ask_all(examination: &mut ConformanceRun, plugin: &PaymentPlugin, far_end: &FarEnd) {
        let lease = || far_end.lease();
        let mut note = |call: &str, began, ended| {
            note(examination, far_end, call, began, ended, false);
        };
        let request = payment::IntentRequest {
            payment_id: "pay_conformance".into(),
            envelope_id: "env_conformance".into(),
            amount: 4900,
            currency: "USD".into(),
            connected_account: Some("acct_conformance".into()),
            platform_fee: Some(100),
            payer_email: Some("buyer@example.com".into()),
        };

        let began = Instant::now();
        let ended = plugin.create_intent(lease(), request).await;
        note("create-intent", began, ended.map(drop));
        let began = Instant::now();
        let ended = plugin.read_intent(lease(), "1").await;
        note("read-intent", began, ended.map(drop));
        let began = Instant::now();

        let (headers, body) = unsigned();
        let callback = payment::Callback { headers, body };
        // An accepted callback without a signature would let anyone report a payment as made.
        let ended = match plugin.read_callback(lease(), callback).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(ProviderError::NotFound),
            Err(error) => Err(error.into()),
        };

        note("read-callback without a signature", began, ended);
    }
}

impl ProviderKind for KbaPre {
    async fn ask_all(examination: &mut ConformanceRun, plugin: &KbaPlugin, far_end: &FarEnd) {
        let lease = || far_end.lease();
        let mut note = |call: &str, began, ended, may_do| {
            note(examination, far_end, call, began, ended, may_do);
        };
        let began = Instant::now();
        let asked = plugin.required_identity(lease()).await;
        // Every field that the plugin asks for gets a value, or it would refuse before it asks the far end.
        let fields = asked.as_ref().map_or(&[][..], |fields| fields);
        let identity = fields
            .iter()
            .map(|field| (field.name.clone(), "conformance".to_owned()))
            .chain([("email".to_owned(), "buyer@example.com".to_owned())])
            .collect();

        // The answer can be a constant of the plugin, so it may succeed with any far end.
        note(
            "required-identity",
            began,
            asked.map(drop).map_err(ProviderError::from),
            true,
        );
        let began = Instant::now();

        let ended = plugin.start(lease(), identity).await;
        note("start", began, ended.map(drop), false);
        let began = Instant::now();
        let ended = plugin.submit_code(lease(), "{}", "123456").await;
        note("submit-code", began, ended.map(drop), false);
        let began = Instant::now();
        let answers = vec![("1".into(), "1".into())];
        let ended = plugin.submit_answers(lease(), "{}", answers).await;

        note("submit-answers", began, ended.map(drop), false);
    }
}

impl ProviderKind for MessagingPre {
    async fn ask_all(examination: &mut ConformanceRun, plugin: &MessagingPlugin, far_end: &FarEnd) {
        let message = messaging::TextMessage {
            id: "msg_conformance".into(),
            to: "+15125550142".into(),
            text: "Conformance".into(),
        };
        let began = Instant::now();
        let ended = plugin.send(far_end.lease(), message).await;
        note(examination, far_end, "send", began, ended.map(drop), false);
    }
}
