//! Calls of compliance and lifecycle rules. Rules import nothing: their linker is empty, apart from the
//! typefaces of documents.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Semaphore;
use wasmtime::Engine;
use wasmtime::component::{Component, Linker};

use super::artifact::{ComponentArtifact, NativeCodeCache};
use super::background;
use super::baseline::{self, BaselineRules};
use super::bindings;
use super::canaries;
use super::engine::{EngineSet, LimitedEngine, thread_time};
use super::error::{CallFailure, ComponentError};
use super::faces;
use super::gate::TimeSlice;
use super::slot::{
    self, ActiveComponent, ComponentHandle, ComponentSource, ComponentWorld, ContractProbe,
    Deferred, LoadedComponent,
};
use holdfast_domain::bulk::BatchStatus;
use holdfast_domain::component::{ComponentIdentity, Slot};
use holdfast_domain::envelope::EnvelopeStatus;
use holdfast_evidence::CertificateRules;

pub use super::baseline::RulesOpinion;
pub use bindings::compliance::holdfast::compliance::types as compliance;
pub use bindings::control::holdfast::control::types as control;
pub use bindings::document_additions::exports::holdfast::documents::{
    completion, form_fields, handwriting as early_handwriting, signatures as found, wording,
};
pub use bindings::document_copies::exports::holdfast::documents::copies;
pub use bindings::document_long_term::exports::holdfast::documents::long_term;
pub use bindings::document_sources::exports::holdfast::documents::sources;
pub use bindings::document_values::exports::holdfast::documents::values as document_values;
pub use bindings::document_values::holdfast::documents::handwriting;
pub use bindings::document_variables::exports::holdfast::documents::variables;
pub use bindings::document_vaulting::exports::holdfast::documents::vaulting;
pub use bindings::document_watermarks::exports::holdfast::documents::watermarks;
pub use bindings::documents::holdfast::documents::types as documents;
pub use bindings::funding::holdfast::funding::types as funding;
pub use bindings::lifecycle::holdfast::lifecycle::types as lifecycle;
pub use bindings::placement::holdfast::placement::types as placement;
pub use bindings::placement_additions::PlacementAdditions;
pub use bindings::placement_additions::exports::holdfast::placement::field_rules;
pub use bindings::placement_wordings::exports::holdfast::placement::wordings;

pub type CompliancePre = bindings::compliance::ComplianceRulesPre<LimitedEngine<()>>;

/// Linked component of slot `rules.control`.
pub type ControlPre = bindings::control::ControlRulesPre<LimitedEngine<()>>;

/// Linked component of slot `rules.funding`.
pub type FundingPre = bindings::funding::FundingRulesPre<LimitedEngine<()>>;

/// Linked component of slot `rules.lifecycle`, with its answers about envelopes. It imports nothing and
/// starts anew for each call, so that equal questions have equal answers.
pub struct LifecyclePre {
    pre: bindings::lifecycle::LifecycleRulesPre<LimitedEngine<()>>,
    answers: RwLock<HashMap<EnvelopeQuestion, EnvelopeAnswer>>,
}

type EnvelopeQuestion = (
    Option<lifecycle::EnvelopeStatus>,
    lifecycle::EnvelopeTrigger,
    lifecycle::EnvelopeFacts,
);
type EnvelopeAnswer = Result<lifecycle::EnvelopeStatus, lifecycle::Refusal>;

/// Answers that are remembered. The enumerations alone make about 20,000 questions, of which an
/// installation asks some hundreds.
const ANSWERS: usize = 4096;
/// Longest refusal that is remembered, in bytes: an organization's component chooses its words.
const REFUSAL: usize = 512;

impl Deref for LifecyclePre {
    type Target = bindings::lifecycle::LifecycleRulesPre<LimitedEngine<()>>;

    fn deref(&self) -> &Self::Target {
        &self.pre
    }
}

/// Asks a component where `trigger` leads an envelope from `current`, once for each question.
fn next_status(
    active: &ActiveComponent<LifecyclePre>,
    current: Option<lifecycle::EnvelopeStatus>,
    trigger: lifecycle::EnvelopeTrigger,
    facts: &lifecycle::EnvelopeFacts,
) -> Result<EnvelopeAnswer, ComponentError> {
    let question = (current, trigger, facts.clone());
    let answers = &active.pre.answers;
    // Most questions are known, and a read lock lets them pass side by side.
    let known = answers.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(answer) = known.get(&question) {
        return Ok(answer.clone());
    }

    // The lock is free during the call, or one slow answer would stop all questions to this component.
    drop(known);
    let answer = next_status_anew(active, current, trigger, facts)?;
    if answer
        .as_ref()
        .is_err_and(|refused| refused.message.len() > REFUSAL)
    {
        return Ok(answer);
    }

    let mut known = answers.write().unwrap_or_else(PoisonError::into_inner);
    if known.len() >= ANSWERS {
        known.clear();
    }

    known.insert(question, answer.clone());
    Ok(answer)
}

fn next_status_anew(
    active: &ActiveComponent<LifecyclePre>,
    current: Option<lifecycle::EnvelopeStatus>,
    trigger: lifecycle::EnvelopeTrigger,
    facts: &lifecycle::EnvelopeFacts,
) -> Result<EnvelopeAnswer, ComponentError> {
    active.call(|store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        let rules = instance.holdfast_lifecycle_lifecycle();
        rules.call_envelope(store, current, trigger, facts)
    })
}

impl ComponentWorld for CompliancePre {
    const SLOT: Slot = Slot::Compliance;

    fn link(engine: &Engine, component: &Component) -> wasmtime::Result<Self> {
        Self::new(Linker::new(engine).instantiate_pre(component)?)
    }

    fn canary(&self, probe: &ContractProbe<'_>) -> Result<(), ComponentError> {
        canaries::compliance(self, probe)
    }
}

impl ComponentWorld for LifecyclePre {
    const SLOT: Slot = Slot::Lifecycle;

    fn link(engine: &Engine, component: &Component) -> wasmtime::Result<Self> {
        let linked = Linker::new(engine).instantiate_pre(component)?;
        Ok(Self {
            pre: bindings::lifecycle::LifecycleRulesPre::new(linked)?,
            answers: RwLock::default(),
        })
    }

    fn canary(&self, probe: &ContractProbe<'_>) -> Result<(), ComponentError> {
        canaries::lifecycle(self, probe)
    }
}

impl ComponentWorld for ControlPre {
    const SLOT: Slot = Slot::Control;

    fn link(engine: &Engine, component: &Component) -> wasmtime::Result<Self> {
        Self::new(Linker::new(engine).instantiate_pre(component)?)
    }

    fn canary(&self, probe: &ContractProbe<'_>) -> Result<(), ComponentError> {
        canaries::control(self, probe)
    }
}

impl ComponentWorld for FundingPre {
    const SLOT: Slot = Slot::Funding;

    fn link(engine: &Engine, component: &Component) -> wasmtime::Result<Self> {
        Self::new(Linker::new(engine).instantiate_pre(component)?)
    }

    fn canary(&self, probe: &ContractProbe<'_>) -> Result<(), ComponentError> {
        canaries::funding(self, probe)
    }
}

/// Linked component of slot `rules.placement`, with the interfaces that were added after 1.0. Components built for
/// 1.0 do not have these.
#[derive(Clone)]
pub struct PlacementPre {
    pre: bindings::placement::PlacementRulesPre<LimitedEngine<()>>,
    pub additions: Option<bindings::placement_additions::PlacementAdditionsPre<LimitedEngine<()>>>,
    pub similarity:
        Option<bindings::placement_similarity::PlacementSimilarityPre<LimitedEngine<()>>>,
    pub wordings: Option<bindings::placement_wordings::PlacementWordingsPre<LimitedEngine<()>>>,
    pub facts: Option<bindings::placement_facts::PlacementFactsPre<LimitedEngine<()>>>,
}

impl Deref for PlacementPre {
    type Target = bindings::placement::PlacementRulesPre<LimitedEngine<()>>;

    fn deref(&self) -> &Self::Target {
        &self.pre
    }
}

/// Linked component of slot `rules.documents`, with the interfaces that were added after 1.0. Components built for
/// 1.0 do not have these.
#[derive(Clone)]
pub struct DocumentsPre {
    pre: bindings::documents::DocumentsRulesPre<LimitedEngine<()>>,
    pub additions: Option<bindings::document_additions::DocumentAdditionsPre<LimitedEngine<()>>>,
    /// Both copies in one pass, which the other functions can make too.
    pub vaulting: Option<bindings::document_vaulting::DocumentVaultingPre<LimitedEngine<()>>>,
    pub watermarks: Option<bindings::document_watermarks::DocumentWatermarksPre<LimitedEngine<()>>>,
    pub copies: Option<bindings::document_copies::DocumentCopiesPre<LimitedEngine<()>>>,
    pub sources: Option<bindings::document_sources::DocumentSourcesPre<LimitedEngine<()>>>,
    pub values: Option<bindings::document_values::DocumentValuesPre<LimitedEngine<()>>>,
    pub variables: Option<bindings::document_variables::DocumentVariablesPre<LimitedEngine<()>>>,
    pub long_term: Option<bindings::document_long_term::DocumentLongTermPre<LimitedEngine<()>>>,
    pub excerpts: Option<bindings::document_excerpts::DocumentExcerptsPre<LimitedEngine<()>>>,
}

impl Deref for DocumentsPre {
    type Target = bindings::documents::DocumentsRulesPre<LimitedEngine<()>>;

    fn deref(&self) -> &Self::Target {
        &self.pre
    }
}

impl ComponentWorld for PlacementPre {
    const SLOT: Slot = Slot::Placement;

    fn link(engine: &Engine, component: &Component) -> wasmtime::Result<Self> {
        let linked = Linker::new(engine).instantiate_pre(component)?;
        // Functions that came after 1.0 are optional, so components that were built before still link.
        Ok(Self {
            similarity: bindings::placement_similarity::PlacementSimilarityPre::new(linked.clone())
                .ok(),
            wordings: bindings::placement_wordings::PlacementWordingsPre::new(linked.clone()).ok(),
            facts: bindings::placement_facts::PlacementFactsPre::new(linked.clone()).ok(),
            additions: bindings::placement_additions::PlacementAdditionsPre::new(linked.clone())
                .ok(),
            pre: bindings::placement::PlacementRulesPre::new(linked)?,
        })
    }

    fn canary(&self, probe: &ContractProbe<'_>) -> Result<(), ComponentError> {
        canaries::placement(self, probe)
    }
}

impl ComponentWorld for DocumentsPre {
    const SLOT: Slot = Slot::Documents;

    fn link(engine: &Engine, component: &Component) -> wasmtime::Result<Self> {
        let mut linker = Linker::new(engine);
        // Typefaces are data of the program and the only import of rules.
        faces::lend(&mut linker)?;
        let linked = linker.instantiate_pre(component)?;
        Ok(Self {
            values: bindings::document_values::DocumentValuesPre::new(linked.clone()).ok(),
            variables: bindings::document_variables::DocumentVariablesPre::new(linked.clone()).ok(),
            long_term: bindings::document_long_term::DocumentLongTermPre::new(linked.clone()).ok(),
            excerpts: bindings::document_excerpts::DocumentExcerptsPre::new(linked.clone()).ok(),
            vaulting: bindings::document_vaulting::DocumentVaultingPre::new(linked.clone()).ok(),
            watermarks: bindings::document_watermarks::DocumentWatermarksPre::new(linked.clone())
                .ok(),
            copies: bindings::document_copies::DocumentCopiesPre::new(linked.clone()).ok(),
            sources: bindings::document_sources::DocumentSourcesPre::new(linked.clone()).ok(),
            additions: bindings::document_additions::DocumentAdditionsPre::new(linked.clone()).ok(),
            pre: bindings::documents::DocumentsRulesPre::new(linked)?,
        })
    }

    fn canary(&self, probe: &ContractProbe<'_>) -> Result<(), ComponentError> {
        canaries::documents(self, probe)
    }
}

/// Runs a component's compliance checks.
pub fn evaluate(
    active: &ActiveComponent<CompliancePre>,
    facts: &compliance::EnvelopeFacts,
) -> Result<compliance::Evaluation, ComponentError> {
    active.call(|store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        instance
            .holdfast_compliance_compliance()
            .call_evaluate(store, facts)
    })
}

fn certify(
    active: &ActiveComponent<CompliancePre>,
    facts: &compliance::EnvelopeFacts,
    issued_at: &str,
    issuer: &str,
) -> Result<String, ComponentError> {
    let identity = compliance::ComponentIdentity {
        name: active.identity.name.clone(),
        version: active.identity.version.clone(),
        sha256: active.identity.sha256.clone(),
    };
    active.call(|store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        instance
            .holdfast_compliance_compliance()
            .call_certificate(store, facts, issued_at, issuer, &identity)
    })
}

/// Result of the compliance checks of a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComplianceJudgement {
    /// Effective result. For rules other than a built-in pack, the intersection of both.
    pub evaluation: compliance::Evaluation,
    /// For other rules, their result and that of the built-in pack of their family.
    #[serde(default)]
    pub opinions: Vec<RulesOpinion>,
    /// For other rules, their own evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<compliance::Evaluation>,
}

/// Built-in pack that other rules were compared with, and its evaluation.
type ComparedPack<'a> = (&'a ActiveComponent<CompliancePre>, compliance::Evaluation);

impl ComplianceJudgement {
    /// Returns what the component itself answered.
    pub fn answer(&self) -> &compliance::Evaluation {
        self.own.as_ref().unwrap_or(&self.evaluation)
    }
}

/// Execution limits of an organization's own rules: they run off the async threads, a few at a
/// time, within a time slice.
#[derive(Clone)]
pub struct OwnRules {
    pub slice: Arc<TimeSlice>,
    pub permits: Arc<Semaphore>,
}

/// Maximum time that a request waits for the time slice of its organization's rules.
const PATIENCE: Duration = Duration::from_secs(2);
/// Maximum time that a change waits until rules are loaded. It is short because other changes
/// may wait for this one.
const PATIENCE_OF_CHANGES: Duration = Duration::from_secs(1);

impl OwnRules {
    /// Runs a call on a background thread, and adds its processor time to the slice.
    async fn run<R: Send + 'static>(
        &self,
        identity: &ComponentIdentity,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, ComponentError> {
        let slice = self.slice.clone();
        let task = background::run(move || {
            // Processor time and not wall time: waiting for a processor is no fault of the organization.
            let before = thread_time();
            let answer = work();
            slice.spend(thread_time().saturating_sub(before), Instant::now());
            answer
        });
        let ended = task.await;

        ended.map_err(|error| ComponentError::new(identity, CallFailure::Trap(error.to_string())))
    }
}

/// Component of slot `rules.compliance`, with the built-in packs that its results are compared
/// with.
#[derive(Clone)]
pub struct ComplianceRules {
    slot: ComponentHandle<CompliancePre>,
    baselines: BaselineRules,
    own: Option<OwnRules>,
}

impl ComplianceRules {
    pub fn new(
        slot: ComponentHandle<CompliancePre>,
        baselines: BaselineRules,
        own: Option<OwnRules>,
    ) -> Self {
        Self {
            slot,
            baselines,
            own,
        }
    }

    /// Loads the default component.
    pub fn load(engines: &EngineSet, cache: &NativeCodeCache) -> Result<Self, ComponentError> {
        let loaded = Arc::new(LoadedComponent::new(
            engines,
            cache,
            ComponentSource::default(),
        ));
        loaded.force()?;
        let baselines = BaselineRules::new(engines, cache, loaded.default());
        Ok(Self::new(loaded.get(None), baselines, None))
    }

    /// Loads another component, with the built-in packs for comparison.
    pub fn load_other(
        engines: &EngineSet,
        cache: &NativeCodeCache,
        artifact: &ComponentArtifact,
    ) -> Result<Self, ComponentError> {
        let default = LoadedComponent::new(engines, cache, ComponentSource::default()).default();
        let active = slot::load(engines, cache, artifact)?;
        Ok(Self::new(
            ComponentHandle::Held(slot::ready(active)),
            BaselineRules::new(engines, cache, default),
            None,
        ))
    }

    /// The component that decides.
    pub fn identity(&self) -> Result<ComponentIdentity, ComponentError> {
        self.slot.identity()
    }

    /// Like [`ComplianceRules::judge`], for requests: loads an organization's own rules if necessary,
    /// and runs them off the async threads.
    pub async fn judge_for_request(
        &self,
        facts: &compliance::EnvelopeFacts,
    ) -> Result<ComplianceJudgement, ComponentError> {
        let facts = facts.clone();
        self.for_request(move |rules| rules.judge(&facts)).await
    }

    /// Like [`ComplianceRules::certificate`], for requests.
    pub async fn certificate_for_request(
        &self,
        facts: &compliance::EnvelopeFacts,
        issued_at: &str,
        issuer: &str,
    ) -> Result<(String, ComponentIdentity), ComponentError> {
        let facts = facts.clone();
        let (issued_at, issuer) = (issued_at.to_owned(), issuer.to_owned());
        self.for_request(move |rules| rules.certificate(&facts, &issued_at, &issuer))
            .await
    }

    async fn for_request<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<R, ComponentError> + Send + 'static,
    ) -> Result<R, ComponentError> {
        // The load comes before the turn, so a slow one does not use up the organization's places.
        let held = ComponentHandle::Held(self.slot.ready().await?);
        let rules = Self::new(held, self.baselines.clone(), None);
        // Other rules take microseconds, so they run on this thread.
        let Some(own) = &self.own else {
            return work(&rules);
        };

        let identity = rules.identity()?;
        let Some(_turn) = own.slice.pass(PATIENCE).await else {
            return Err(ComponentError::new(&identity, CallFailure::Busy));
        };

        // The shared permit comes last, so an organization that waits for its turn holds none.
        let _permit = own.permits.acquire().await;
        own.run(&identity, move || work(&rules)).await?
    }

    /// Runs the compliance checks.
    pub fn evaluate(
        &self,
        facts: &compliance::EnvelopeFacts,
    ) -> Result<compliance::Evaluation, ComponentError> {
        Ok(self.judge(facts)?.evaluation)
    }

    /// Runs the compliance checks and returns also the result of each component.
    pub fn judge(
        &self,
        facts: &compliance::EnvelopeFacts,
    ) -> Result<ComplianceJudgement, ComponentError> {
        Ok(self.compared(facts, None)?.0)
    }

    /// Returns the judgement, and the pack that the component's result was compared with, with its
    /// evaluation.
    fn compared(
        &self,
        facts: &compliance::EnvelopeFacts,
        pack: Option<&str>,
    ) -> Result<(ComplianceJudgement, Option<ComparedPack<'_>>), ComponentError> {
        let held = self.slot.held()?;
        let active = slot::active(&held)?;
        let own = evaluate(active, facts)?;
        // A built-in pack is the measure itself, so it needs no second opinion.
        if self.baselines.has(&active.identity.sha256) {
            let alone = ComplianceJudgement {
                evaluation: own,
                opinions: Vec::new(),
                own: None,
            };
            return Ok((alone, None));
        }

        // Evidence names the pack of its time. Today's pack could give another result.
        let (pack, evaluation) = match pack.and_then(|pack| self.baselines.released(pack)) {
            Some(released) => baseline::asked(released, facts)?,
            None => self.baselines.of_family(&own, facts)?,
        };
        let opinions = vec![
            RulesOpinion::new(&active.identity, &own),
            RulesOpinion::new(&pack.identity, &evaluation),
        ];
        let judgement = ComplianceJudgement {
            evaluation: baseline::intersection(&own, &evaluation),
            opinions,
            own: Some(own),
        };

        Ok((judgement, Some((pack, evaluation))))
    }

    /// Writes the compliance certificate; returns also the component that wrote it. The
    /// certificate of rules other than a built-in pack states the intersection, and both results.
    pub fn certificate(
        &self,
        facts: &compliance::EnvelopeFacts,
        issued_at: &str,
        issuer: &str,
    ) -> Result<(String, ComponentIdentity), ComponentError> {
        self.certificate_with(facts, issued_at, issuer, None)
    }

    /// Like [`ComplianceRules::certificate`], compared with the built-in pack of this SHA-256, which may be
    /// of an earlier release.
    fn certificate_with(
        &self,
        facts: &compliance::EnvelopeFacts,
        issued_at: &str,
        issuer: &str,
        pack: Option<&str>,
    ) -> Result<(String, ComponentIdentity), ComponentError> {
        let (text, identity) = self.certificate_alone(facts, issued_at, issuer)?;
        let (judgement, Some((pack, of_pack))) = self.compared(facts, pack)? else {
            return Ok((text, identity));
        };

        let second = certify(pack, facts, issued_at, issuer)?;
        let written = baseline::certificate(
            facts,
            (&text, &second),
            (judgement.answer(), &of_pack),
            &judgement.evaluation,
            &judgement.opinions,
        );
        match written {
            Some(text) => Ok((text, identity)),
            None => {
                let why = "its certificate is no JSON object".into();
                Err(ComponentError::new(&identity, CallFailure::Answer(why)))
            }
        }
    }

    /// Writes the certificate without comparing it with a built-in pack, as early releases did.
    pub fn certificate_alone(
        &self,
        facts: &compliance::EnvelopeFacts,
        issued_at: &str,
        issuer: &str,
    ) -> Result<(String, ComponentIdentity), ComponentError> {
        let held = self.slot.held()?;
        let active = slot::active(&held)?;
        let text = certify(active, facts, issued_at, issuer)?;
        Ok((text, active.identity.clone()))
    }
}

impl CertificateRules for ComplianceRules {
    fn identity(&self) -> Result<ComponentIdentity, String> {
        self.identity().map_err(|error| error.to_string())
    }

    fn has_pack(&self, sha256: &str) -> bool {
        self.baselines.has(sha256) || self.baselines.released(sha256).is_some()
    }

    fn certificate(
        &self,
        facts: &Value,
        issued_at: &str,
        issuer: &str,
        pack: Option<&str>,
    ) -> Result<String, String> {
        let facts = compliance::EnvelopeFacts::deserialize(facts)
            .map_err(|error| format!("the recorded facts: {error}"))?;
        // Evidence without a pack is of a built-in one, which was not compared.
        let written = match pack {
            None => self.certificate_alone(&facts, issued_at, issuer),
            Some(pack) => self.certificate_with(&facts, issued_at, issuer, Some(pack)),
        };
        let (text, _) = written.map_err(|error| error.to_string())?;
        Ok(text)
    }
}

/// Reason for rejecting a transition.
#[derive(Debug, thiserror::Error)]
pub enum TransitionError {
    /// The rules refuse the transition.
    #[error("{}", .0.message)]
    Refused(lifecycle::Refusal),
    /// The rules failed. A failure is neither permission nor refusal.
    #[error(transparent)]
    Component(#[from] ComponentError),
}

/// Component of slot `rules.lifecycle`, with the default component: a transition needs the
/// consent of both.
#[derive(Clone)]
pub struct LifecycleRules {
    slot: ComponentHandle<LifecyclePre>,
    default: Deferred<LifecyclePre>,
    own: Option<OwnRules>,
}

impl LifecycleRules {
    pub fn new(
        slot: ComponentHandle<LifecyclePre>,
        default: Deferred<LifecyclePre>,
        own: Option<OwnRules>,
    ) -> Self {
        Self { slot, default, own }
    }

    /// The component that decides.
    pub fn identity(&self) -> Result<ComponentIdentity, ComponentError> {
        self.slot.identity()
    }

    /// Like [`LifecycleRules::envelope`], for a change: an organization's own rules run off the async
    /// threads, and fail as busy while their time slice is used up.
    pub async fn envelope_for_change(
        &self,
        current: Option<EnvelopeStatus>,
        trigger: lifecycle::EnvelopeTrigger,
        facts: &lifecycle::EnvelopeFacts,
    ) -> Result<EnvelopeStatus, TransitionError> {
        let facts = facts.clone();
        self.for_change(move |rules| rules.envelope(current, trigger, &facts))
            .await?
    }

    /// Like [`LifecycleRules::batch`], for a change.
    pub async fn batch_for_change(
        &self,
        current: Option<BatchStatus>,
        trigger: lifecycle::BatchTrigger,
    ) -> Result<BatchStatus, TransitionError> {
        self.for_change(move |rules| rules.batch(current, trigger))
            .await?
    }

    async fn for_change<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> R + Send + 'static,
    ) -> Result<R, ComponentError> {
        let default = self.default.clone();
        let work = move |slot| work(&Self::new(slot, default, None));
        in_transaction(&self.slot, self.own.as_ref(), work).await
    }

    /// Returns the status that `trigger` leads to from `current`.
    pub fn envelope(
        &self,
        current: Option<EnvelopeStatus>,
        trigger: lifecycle::EnvelopeTrigger,
        facts: &lifecycle::EnvelopeFacts,
    ) -> Result<EnvelopeStatus, TransitionError> {
        let current = current.map(to_lifecycle);
        let next = self.both(|active| next_status(active, current, trigger, facts));
        next.map(from_lifecycle)
    }

    /// Like [`LifecycleRules::envelope`], and calls the component for a question that it has answered
    /// already.
    pub fn envelope_anew(
        &self,
        current: Option<EnvelopeStatus>,
        trigger: lifecycle::EnvelopeTrigger,
        facts: &lifecycle::EnvelopeFacts,
    ) -> Result<EnvelopeStatus, TransitionError> {
        let current = current.map(to_lifecycle);
        let next = self.both(|active| next_status_anew(active, current, trigger, facts));
        next.map(from_lifecycle)
    }

    /// Returns the status that `trigger` leads a bulk batch to from `current`.
    pub fn batch(
        &self,
        current: Option<BatchStatus>,
        trigger: lifecycle::BatchTrigger,
    ) -> Result<BatchStatus, TransitionError> {
        let current = current.map(to_batch);
        let next = self.both(|active| {
            active.call(|store, pre| {
                let instance = pre.instantiate(&mut *store)?;
                instance
                    .holdfast_lifecycle_lifecycle()
                    .call_batch(store, current, trigger)
            })
        });

        next.map(from_batch)
    }

    /// Calls the active component, and the default one if that is another component: a
    /// transition needs the same result from both.
    fn both<T: PartialEq>(
        &self,
        ask: impl Fn(
            &ActiveComponent<LifecyclePre>,
        ) -> Result<Result<T, lifecycle::Refusal>, ComponentError>,
    ) -> Result<T, TransitionError> {
        let held = self.slot.held()?;
        let active = slot::active(&held)?;
        // The own refusal comes first, because it has the organization's words.
        let next = ask(active)?.map_err(TransitionError::Refused)?;
        let default = (**self.default).as_ref().map_err(ComponentError::again)?;
        if default.identity.sha256 == active.identity.sha256 {
            return Ok(next);
        }

        let allowed = ask(default)?.map_err(TransitionError::Refused)?;
        // Other rules may refuse more than the specification, but never lead elsewhere.
        if next == allowed {
            return Ok(next);
        }

        Err(TransitionError::Refused(lifecycle::Refusal {
            reason: lifecycle::RefusalReason::Status,
            message: "The active lifecycle rules lead elsewhere than the specification".into(),
        }))
    }
}

/// Runs `work` with the component of a slot and without a long wait, because the caller may have an
/// open transaction. An organization's own rules run off the async threads.
async fn in_transaction<P: Send + Sync + 'static, R: Send + 'static>(
    slot: &ComponentHandle<P>,
    own: Option<&OwnRules>,
    work: impl FnOnce(ComponentHandle<P>) -> R + Send + 'static,
) -> Result<R, ComponentError> {
    let identity = slot.identity()?;
    // The caller can hold the write lock of the database, so it must not wait for a compilation.
    let held = match tokio::time::timeout(PATIENCE_OF_CHANGES, slot.ready()).await {
        Ok(held) => ComponentHandle::Held(held?),
        Err(_) => return Err(ComponentError::absent(identity, "it is being loaded")),
    };
    let Some(own) = own else {
        return Ok(work(held));
    };
    // Waiting for the slice would keep other writers waiting. The client can repeat its request.
    if !own.slice.is_open() {
        return Err(ComponentError::new(&identity, CallFailure::Busy));
    }

    own.run(&identity, move || work(held)).await
}

/// Component of slot `rules.control`, with the default component: an act needs the permission of
/// both.
#[derive(Clone)]
pub struct ControlRules {
    slot: ComponentHandle<ControlPre>,
    default: Deferred<ControlPre>,
    own: Option<OwnRules>,
}

impl ControlRules {
    pub fn new(
        slot: ComponentHandle<ControlPre>,
        default: Deferred<ControlPre>,
        own: Option<OwnRules>,
    ) -> Self {
        Self { slot, default, own }
    }

    /// The component that decides.
    pub fn identity(&self) -> Result<ComponentIdentity, ComponentError> {
        self.slot.identity()
    }

    /// Like [`ControlRules::decide`], for a change: an organization's own rules run off the async threads,
    /// and fail as busy while their time slice is used up.
    pub async fn decide_for_change(
        &self,
        act: control::Act,
        facts: &control::ControlFacts,
    ) -> Result<control::Decision, ComponentError> {
        let (facts, default) = (facts.clone(), self.default.clone());
        let work = move |slot| Self::new(slot, default, None).decide(act, &facts);
        in_transaction(&self.slot, self.own.as_ref(), work).await?
    }

    /// Returns the stricter one of the decisions of the active and the default component.
    pub fn decide(
        &self,
        act: control::Act,
        facts: &control::ControlFacts,
    ) -> Result<control::Decision, ComponentError> {
        let held = self.slot.held()?;
        let active = slot::active(&held)?;
        let own = decide_control(active, act, facts)?;
        let default = slot::active(&self.default)?;
        if default.identity.sha256 == active.identity.sha256 {
            return Ok(own);
        }
        Ok(stricter(own, decide_control(default, act, facts)?))
    }
}

/// Asks a component about an act.
pub fn decide_control(
    active: &ActiveComponent<ControlPre>,
    act: control::Act,
    facts: &control::ControlFacts,
) -> Result<control::Decision, ComponentError> {
    active.call(|store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        let rules = instance.holdfast_control_control();
        rules.call_decide(store, act, facts)
    })
}

/// Component of slot `rules.funding`. It decides alone: what a lender funds is a matter of that lender.
#[derive(Clone)]
pub struct FundingRules {
    slot: ComponentHandle<FundingPre>,
    own: Option<OwnRules>,
}

impl FundingRules {
    pub fn new(slot: ComponentHandle<FundingPre>, own: Option<OwnRules>) -> Self {
        Self { slot, own }
    }

    /// The component that decides.
    pub fn identity(&self) -> Result<ComponentIdentity, ComponentError> {
        self.slot.identity()
    }

    /// Like [`FundingRules::check`], for requests: loads an organization's own rules if necessary, and runs them off
    /// the async threads.
    pub async fn check_for_request(
        &self,
        facts: &funding::FundingFacts,
    ) -> Result<funding::Assessment, ComponentError> {
        let held = ComponentHandle::Held(self.slot.ready().await?);
        let Some(own) = &self.own else {
            return Self::new(held, None).check(facts);
        };

        let identity = self.slot.identity()?;
        let Some(_turn) = own.slice.pass(PATIENCE).await else {
            return Err(ComponentError::new(&identity, CallFailure::Busy));
        };

        // The shared permit comes last, so an organization that waits for its turn holds none.
        let _permit = own.permits.acquire().await;
        let facts = facts.clone();
        let work = move || Self::new(held, None).check(&facts);
        own.run(&identity, work).await?
    }

    /// Checks a contract.
    pub fn check(
        &self,
        facts: &funding::FundingFacts,
    ) -> Result<funding::Assessment, ComponentError> {
        let held = self.slot.held()?;
        check_funding(slot::active(&held)?, facts)
    }
}

/// Asks a component about a contract.
pub fn check_funding(
    active: &ActiveComponent<FundingPre>,
    facts: &funding::FundingFacts,
) -> Result<funding::Assessment, ComponentError> {
    active.call(|store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        let rules = instance.holdfast_funding_funding();
        rules.call_check(store, facts)
    })
}

/// A refusal is stricter than a consent, and two consents are stricter than one.
fn stricter(left: control::Decision, right: control::Decision) -> control::Decision {
    use control::Decision::{Allowed, ConsentNeeded, Refused};

    match (left, right) {
        (Refused(refusal), _) | (_, Refused(refusal)) => Refused(refusal),
        (ConsentNeeded(mut parties), ConsentNeeded(others)) => {
            parties.extend(others);
            // The same order each time, so that a repeated decision equals the recorded one.
            parties.sort_unstable_by_key(|party| *party as u8);
            parties.dedup();
            ConsentNeeded(parties)
        }
        (ConsentNeeded(parties), Allowed) | (Allowed, ConsentNeeded(parties)) => {
            ConsentNeeded(parties)
        }
        (Allowed, Allowed) => Allowed,
    }
}

fn to_batch(status: BatchStatus) -> lifecycle::BatchStatus {
    match status {
        BatchStatus::Draft => lifecycle::BatchStatus::Draft,
        BatchStatus::Ready => lifecycle::BatchStatus::Ready,
        BatchStatus::Running => lifecycle::BatchStatus::Running,
        BatchStatus::Completed => lifecycle::BatchStatus::Completed,
        BatchStatus::Cancelled => lifecycle::BatchStatus::Cancelled,
        BatchStatus::Failed => lifecycle::BatchStatus::Failed,
    }
}

fn from_batch(status: lifecycle::BatchStatus) -> BatchStatus {
    match status {
        lifecycle::BatchStatus::Draft => BatchStatus::Draft,
        lifecycle::BatchStatus::Ready => BatchStatus::Ready,
        lifecycle::BatchStatus::Running => BatchStatus::Running,
        lifecycle::BatchStatus::Completed => BatchStatus::Completed,
        lifecycle::BatchStatus::Cancelled => BatchStatus::Cancelled,
        lifecycle::BatchStatus::Failed => BatchStatus::Failed,
    }
}

macro_rules! same_statuses {
    ($to:ident, $from:ident, $module:ident) => {
        pub fn $to(status: EnvelopeStatus) -> $module::EnvelopeStatus {
            match status {
                EnvelopeStatus::Pending => $module::EnvelopeStatus::Pending,
                EnvelopeStatus::Uploaded => $module::EnvelopeStatus::Uploaded,
                EnvelopeStatus::Preparing => $module::EnvelopeStatus::Preparing,
                EnvelopeStatus::Sent => $module::EnvelopeStatus::Sent,
                EnvelopeStatus::Viewed => $module::EnvelopeStatus::Viewed,
                EnvelopeStatus::Completed => $module::EnvelopeStatus::Completed,
                EnvelopeStatus::Vaulted => $module::EnvelopeStatus::Vaulted,
                EnvelopeStatus::VaultedOut => $module::EnvelopeStatus::VaultedOut,
                EnvelopeStatus::Declined => $module::EnvelopeStatus::Declined,
                EnvelopeStatus::Voided => $module::EnvelopeStatus::Voided,
                EnvelopeStatus::Expired => $module::EnvelopeStatus::Expired,
            }
        }

        #[allow(dead_code)]
        pub fn $from(status: $module::EnvelopeStatus) -> EnvelopeStatus {
            match status {
                $module::EnvelopeStatus::Pending => EnvelopeStatus::Pending,
                $module::EnvelopeStatus::Uploaded => EnvelopeStatus::Uploaded,
                $module::EnvelopeStatus::Preparing => EnvelopeStatus::Preparing,
                $module::EnvelopeStatus::Sent => EnvelopeStatus::Sent,
                $module::EnvelopeStatus::Viewed => EnvelopeStatus::Viewed,
                $module::EnvelopeStatus::Completed => EnvelopeStatus::Completed,
                $module::EnvelopeStatus::Vaulted => EnvelopeStatus::Vaulted,
                $module::EnvelopeStatus::VaultedOut => EnvelopeStatus::VaultedOut,
                $module::EnvelopeStatus::Declined => EnvelopeStatus::Declined,
                $module::EnvelopeStatus::Voided => EnvelopeStatus::Voided,
                $module::EnvelopeStatus::Expired => EnvelopeStatus::Expired,
            }
        }
    };
}

same_statuses!(to_lifecycle, from_lifecycle, lifecycle);
same_statuses!(to_compliance, from_compliance, compliance);
