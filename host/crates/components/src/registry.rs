//! All components of this process, and the active ones by organization and time.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::future::Future;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use futures::FutureExt as _;
use tokio::sync::Semaphore;

use super::artifact::{self, ComponentArtifact, NativeCodeCache};
use super::baseline::BaselineRules;
use super::conformance::ExaminedComponent;
use super::contract_facts::LoneFactReader;
use super::documents::{
    AnswerRules, DocumentTurns, Documents, DocumentsPre, Placement, PlacementPre,
};
use super::engine::EngineSet;
use super::error::ComponentError;
use super::gate::{CallGate, MemoryShare, PLUGINS, RULES, TimeSlice};
use super::inspection::AdmissionReason;
use super::program::RulesProgram;
use super::providers::{
    ConversionPlugin, ConversionPre, KbaPlugin, KbaPre, MessagingPlugin, MessagingPre,
    PaymentPlugin, PaymentPre, PluginRuntime, ProviderCalls,
};
use super::providers::{SigningPlugin, SigningPre};
use super::rules::{
    CompliancePre, ComplianceRules, ControlPre, ControlRules, LifecyclePre, LifecycleRules,
    OwnRules,
};
use super::script::{self, FarEndScript};
use super::slot::{
    self, ComponentHandle, ComponentSource, ComponentWorld, Deferred, LoadedComponent,
};
use super::vectors::VectorSet;
use super::{background, conformance};
use holdfast_base::config::limits::{AllLimits, CallLimits};
use holdfast_base::config::{EMBEDDED, VERIFIED};
use holdfast_base::fair_queue::{FairQueue, QueueCapacity, WorkOwner};
use holdfast_domain::clock::{Clock, Timestamp};
use holdfast_domain::component::{ComponentActivation, ComponentIdentity, InstanceReference, Slot};
use holdfast_domain::id::{ActivationId, ComponentId, OrgId};
use holdfast_domain::priority::PriorityClass;
use holdfast_rules::metrics::ComponentMetrics;

/// Maximum number of calls that wait for document work: in total, of one organization, and about
/// one document. A browser requests many pages at once.
const WAITING: usize = 2_048;
const WAITING_OF_ORGANIZATION: usize = 256;
const WAITING_OF_ITEM: usize = 64;

/// All components of this process.
pub struct ComponentRegistry {
    pub(super) engines: EngineSet,
    pub(super) cache: NativeCodeCache,
    clock: Clock,
    loader: ComponentSource,
    compliance: Arc<LoadedComponent<CompliancePre>>,
    baselines: BaselineRules,
    lifecycle: Arc<LoadedComponent<LifecyclePre>>,
    placement: Arc<LoadedComponent<PlacementPre>>,
    documents: Arc<LoadedComponent<DocumentsPre>>,
    control: Arc<LoadedComponent<ControlPre>>,
    signing: Arc<LoadedComponent<SigningPre>>,
    /// Component of the signing instance `embedded`.
    room: Deferred<SigningPre>,
    payment: Arc<LoadedComponent<PaymentPre>>,
    kba: Arc<LoadedComponent<KbaPre>>,
    messaging: Arc<LoadedComponent<MessagingPre>>,
    conversion: Arc<LoadedComponent<ConversionPre>>,
    /// Queue for document work, shared by the slots for reading and writing.
    document_turns: FairQueue,
    /// Concurrent calls of all providers, which share one engine.
    provider_permits: Arc<Semaphore>,
    /// Part of them that organizations' own components may use together.
    own_provider_permits: Arc<Semaphore>,
    own_provider_memory: Arc<Semaphore>,
    /// Concurrent calls that read callbacks. Separate, because anyone can send callbacks.
    callback_permits: Arc<Semaphore>,
    /// Concurrent calls of organizations' own compliance rules.
    own_rules_permits: Arc<Semaphore>,
    of_organization: Mutex<HashMap<OrgId, Arc<OrganizationShares>>>,
    of_callbacks: Mutex<HashMap<(Slot, String), Arc<Semaphore>>>,
    /// Candidates are examined one at a time, and take no permit from other calls.
    candidates: Arc<Semaphore>,
    candidates_turns: FairQueue,
    active: ArcSwap<ActivationTable>,
}

/// Shares of one organization in this node's pools.
struct OrganizationShares {
    providers: Arc<Semaphore>,
    memory: Arc<MemoryShare>,
    rules: Arc<TimeSlice>,
    plugins: Arc<TimeSlice>,
}

/// Maximum number of callbacks of one instance that are read concurrently.
const CALLBACKS_OF_INSTANCE: usize = 4;
/// Maximum number of callbacks of all instances that are read concurrently. The engine has room
/// for them in addition to all other calls.
const CALLBACKS: usize = 16;

/// Component that is active now or from a later time on.
#[derive(Clone, Debug)]
pub struct LiveActivation {
    pub activation: ActivationId,
    pub effective_at: Timestamp,
    pub component: ComponentId,
    pub identity: ComponentIdentity,
    /// Sealed configuration of the provider instance.
    pub config: Option<String>,
}

/// Slot, organization (`None` for the installation) and instance (empty for rules).
type Place = (Slot, Option<OrgId>, String);

/// Snapshot of all present and future activations.
#[derive(Clone, Debug, Default)]
pub struct ActivationTable {
    by_place: BTreeMap<Place, Vec<LiveActivation>>,
}

impl ActivationTable {
    /// Adds a component. Of two with the same time, the one added later is active.
    pub fn add(&mut self, slot: Slot, org: Option<OrgId>, instance: String, live: LiveActivation) {
        let there = self.by_place.entry((slot, org, instance)).or_default();
        let position = there.partition_point(|other| other.effective_at <= live.effective_at);
        there.insert(position, live);
    }

    /// Adds a recorded activation.
    pub fn take(&mut self, activation: &ComponentActivation, identity: &ComponentIdentity) {
        let live = LiveActivation {
            activation: activation.id.clone(),
            effective_at: activation.effective_at,
            component: activation.component.clone(),
            identity: identity.clone(),
            config: activation.config.clone(),
        };

        let (org, instance) = (activation.org.clone(), activation.instance.clone());
        self.add(activation.slot, org, instance, live);
    }

    /// Returns the component that is active at a time, and whether it is the organization's own:
    /// the organization's, or else the installation's. `None` is the default component.
    pub fn at(
        &self,
        slot: Slot,
        org: Option<&OrgId>,
        instance: &str,
        now: Timestamp,
    ) -> Option<(&LiveActivation, bool)> {
        // The built-in instance always runs the default. Earlier releases accepted activations
        // for it, so there can be some.
        if instance == EMBEDDED {
            return None;
        }

        // Test data is judged by the rules of its organization.
        let live = org.filter(|org| org.is_test()).map(OrgId::live);
        let org = live.as_ref().or(org);
        let of = |org: Option<&OrgId>| {
            let there = self
                .by_place
                .get(&(slot, org.cloned(), instance.to_owned()))?;
            // Activations of a place are sorted by time, so the last one that has begun is in effect.
            let position = there.partition_point(|live| live.effective_at <= now);
            there.get(position.checked_sub(1)?)
        };

        org.and_then(|org| of(Some(org)))
            .map(|live| (live, true))
            .or_else(|| of(None).map(|live| (live, false)))
    }

    /// Returns the instance with settings that the organization set up last.
    pub fn newest_instance(&self, slot: Slot, org: &OrgId, now: Timestamp) -> Option<&str> {
        let own = self
            .by_place
            .iter()
            .filter(|((of, whose, _), _)| *of == slot && whose.as_ref() == Some(org))
            .filter(|((_, _, instance), _)| instance != VERIFIED);
        own.filter_map(|((_, _, instance), there)| {
            let position = there.partition_point(|live| live.effective_at <= now);
            let live = there.get(position.checked_sub(1)?)?;
            live.config.as_ref()?;
            Some((live.effective_at, &live.activation, instance.as_str()))
        })
        .max()
        .map(|(_, _, instance)| instance)
    }

    fn is_empty(&self) -> bool {
        self.by_place.is_empty()
    }
}

fn turns_of(limits: &CallLimits) -> QueueCapacity {
    QueueCapacity {
        units: limits.instances,
        of_organization: limits.instances_of_organization,
        waiting: WAITING,
        waiting_of_organization: WAITING_OF_ORGANIZATION,
        waiting_of_item: WAITING_OF_ITEM,
    }
}

impl ComponentRegistry {
    /// Loads the default components. The small ones are ready on return; those for documents are
    /// loaded at their first use. Only this service may write to the folder `cache`;
    /// `cache_key` is a secret of this node.
    pub fn load(
        cache: PathBuf,
        cache_key: [u8; 32],
        limits: AllLimits,
        clock: Clock,
    ) -> Result<Self, ComponentError> {
        let engines = holdfast_rules::engines(limits)?;
        let cache = NativeCodeCache::new(cache, cache_key);
        let documents = engines.limits.of(Slot::Documents);
        let providers = engines.limits.of(Slot::Signing);
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        let loader = ComponentSource::default();
        let permits = |count: usize| Arc::new(Semaphore::new(count));

        let compliance = Arc::new(LoadedComponent::new(&engines, &cache, loader.clone()));
        let components = Self {
            baselines: BaselineRules::new(&engines, &cache, compliance.default()),
            compliance,
            lifecycle: Arc::new(LoadedComponent::new(&engines, &cache, loader.clone())),
            placement: Arc::new(LoadedComponent::new(&engines, &cache, loader.clone())),
            documents: Arc::new(LoadedComponent::new(&engines, &cache, loader.clone())),
            control: Arc::new(LoadedComponent::new(&engines, &cache, loader.clone())),
            signing: Arc::new(LoadedComponent::new(&engines, &cache, loader.clone())),
            room: slot::deferred(&engines, &cache, artifact::room()),
            payment: Arc::new(LoadedComponent::new(&engines, &cache, loader.clone())),
            kba: Arc::new(LoadedComponent::new(&engines, &cache, loader.clone())),
            messaging: Arc::new(LoadedComponent::new(&engines, &cache, loader.clone())),
            conversion: Arc::new(LoadedComponent::new(&engines, &cache, loader.clone())),
            loader,
            document_turns: FairQueue::new(turns_of(&documents)),
            provider_permits: permits(providers.instances),
            // A third stays free for built-in components.
            own_provider_permits: permits((providers.instances * 2 / 3).max(1)),
            own_provider_memory: MemoryShare::permits(2 * providers.memory_of_organization),
            callback_permits: permits(CALLBACKS),
            own_rules_permits: permits(threads),
            of_organization: Mutex::default(),
            of_callbacks: Mutex::default(),
            candidates: Arc::new(Semaphore::new(1)),
            candidates_turns: FairQueue::new(QueueCapacity {
                units: 1,
                of_organization: 1,
                ..turns_of(&documents)
            }),
            active: ArcSwap::default(),
            engines,
            cache,
            clock,
        };

        let engines = &components.engines;
        let all = [&engines.rules, &engines.documents, &engines.providers];
        // Code of earlier releases goes first, or the folder would grow with each update.
        components.cache.sweep(&all);
        // A default component that does not load has to stop the start, and not the first request.
        components.compliance.force()?;
        components.lifecycle.force()?;
        components.control.force()?;
        components.signing.force()?;

        slot::active(&components.room)?;
        components.payment.force()?;
        components.kba.force()?;
        components.messaging.force()?;
        components.conversion.force()?;

        Ok(components)
    }

    /// Loads the default components with default limits.
    pub fn with_defaults(cache: PathBuf, cache_key: [u8; 32]) -> Result<Self, ComponentError> {
        Self::load(cache, cache_key, AllLimits::default(), Clock::default())
    }

    /// Sets the size limit of the native code cache in bytes.
    pub fn limit_native_code(&mut self, most: u64) {
        self.cache = self.cache.clone().limited_to(most);
    }

    /// Returns the metrics of all components.
    pub fn metrics(&self) -> ComponentMetrics {
        self.engines.metrics.clone()
    }

    /// Returns the result of loading the default document components; `None` until it is finished.
    pub fn document_components_ready(&self) -> Option<Result<(), ComponentError>> {
        let placement = self.placement.state()?;
        let documents = self.documents.state()?;
        Some(placement.and(documents))
    }

    /// Loads the default document components. Logs failures.
    pub fn load_documents(&self) {
        for error in [self.placement.force(), self.documents.force()] {
            if let Err(error) = error {
                tracing::error!(%error, "a default component could not be loaded");
            }
        }
    }

    /// Sets the callback that loads a component which a call needs and this node lacks.
    pub fn load_with<F>(&self, load: impl Fn(Slot, ComponentIdentity) -> F + Send + Sync + 'static)
    where
        F: Future<Output = Result<(), ComponentError>> + Send + 'static,
    {
        let load = move |slot, identity| load(slot, identity).boxed();
        self.loader.set(Box::new(load));
    }

    /// Returns the active compliance rules of an organization; without one, those of the
    /// installation, for results that several organizations see.
    pub fn compliance(&self, org: Option<&OrgId>) -> ComplianceRules {
        // Only an organization's own rules run in its time slice. Built-in ones are trusted and fast.
        let (identity, own) = self.at(Slot::Compliance, org);
        ComplianceRules::new(
            self.compliance.get(identity.as_ref()),
            self.baselines.clone(),
            self.own_rules(own.then_some(org).flatten()),
        )
    }

    /// Returns the active lifecycle rules of an organization.
    pub fn lifecycle(&self, org: Option<&OrgId>) -> LifecycleRules {
        let (identity, own) = self.at(Slot::Lifecycle, org);
        LifecycleRules::new(
            self.lifecycle.get(identity.as_ref()),
            // The default component is asked as well: other rules may refuse more, but allow nothing more.
            self.lifecycle.default(),
            self.own_rules(own.then_some(org).flatten()),
        )
    }

    /// Returns the active control rules of an organization: the one that controls the record.
    pub fn control(&self, org: Option<&OrgId>) -> ControlRules {
        let (identity, own) = self.at(Slot::Control, org);
        ControlRules::new(
            self.control.get(identity.as_ref()),
            // The stricter decision counts, so the default component always decides too.
            self.control.default(),
            self.own_rules(own.then_some(org).flatten()),
        )
    }

    /// Returns the active placement rules of an organization, which read documents.
    pub fn placement(&self, org: Option<&OrgId>, priority: PriorityClass) -> Placement {
        let (identity, _) = self.at(Slot::Placement, org);
        Placement::new(
            self.placement.get(identity.as_ref()),
            self.turns(org, priority),
        )
    }

    /// Returns the identity of the installation's placement rules, which may not be loaded.
    pub fn placement_identity(&self) -> Option<ComponentIdentity> {
        let (identity, _) = self.at(Slot::Placement, None);
        self.placement.identity(identity)
    }

    /// Returns the active document rules of an organization, which write documents.
    pub fn documents(&self, org: Option<&OrgId>, priority: PriorityClass) -> Documents {
        let (identity, _) = self.at(Slot::Documents, org);
        Documents::new(
            self.documents.get(identity.as_ref()),
            self.turns(org, priority),
        )
    }

    /// Returns the queue position for document work. All components share one queue, regardless
    /// of their owners.
    fn turns(&self, org: Option<&OrgId>, priority: PriorityClass) -> DocumentTurns {
        DocumentTurns {
            queue: self.document_turns.clone(),
            owner: org.map_or_else(WorkOwner::default, |org| WorkOwner::new(org, "")),
            priority,
        }
    }

    /// Returns the built-in document rules, regardless of activations.
    pub fn embedded_documents(&self, org: &OrgId, priority: PriorityClass) -> Documents {
        Documents::new(self.documents.get(None), self.turns(Some(org), priority))
    }

    /// Returns the built-in placement rules, regardless of activations.
    pub fn embedded_placement(&self, org: &OrgId, priority: PriorityClass) -> Placement {
        Placement::new(self.placement.get(None), self.turns(Some(org), priority))
    }

    /// Returns the rules about the answers of signers that an organization uses.
    pub fn answer_rules(&self, org: &OrgId, priority: PriorityClass) -> AnswerRules {
        AnswerRules {
            own: self.placement(Some(org), priority),
            embedded: self.embedded_placement(org, priority),
        }
    }

    /// Returns the plugin of a signing provider instance. A plain name is an instance of the
    /// installation, which never runs an organization's component. The built-in
    /// instance `embedded` always runs the built-in component of the signing room.
    pub fn signing(&self, org: Option<&OrgId>, instance: &str) -> SigningPlugin {
        match instance {
            EMBEDDED => PluginRuntime::new(
                ComponentHandle::Held(self.room.clone()),
                self.provider_gate(org, false),
            ),
            _ => self.provider(&self.signing, org, instance),
        }
    }

    /// Returns the plugin of a payment provider instance.
    pub fn payment(&self, org: Option<&OrgId>, instance: &str) -> PaymentPlugin {
        self.provider(&self.payment, org, instance)
    }

    /// Returns the plugin of an instance of an identity question provider.
    pub fn kba(&self, org: Option<&OrgId>, instance: &str) -> KbaPlugin {
        self.provider(&self.kba, org, instance)
    }

    /// Returns the plugin of an instance of a text message provider.
    pub fn messaging(&self, org: Option<&OrgId>, instance: &str) -> MessagingPlugin {
        self.provider(&self.messaging, org, instance)
    }

    /// Returns the plugin of an instance of a service that converts documents.
    pub fn conversion(&self, org: Option<&OrgId>, instance: &str) -> ConversionPlugin {
        self.provider(&self.conversion, org, instance)
    }

    /// Returns a signing plugin for reading callbacks, which can come from anyone.
    pub fn signing_callbacks(&self, instance: &str) -> SigningPlugin {
        self.callbacks(self.signing(None, instance), instance)
    }

    /// Returns a payment plugin for reading callbacks, which can come from anyone.
    pub fn payment_callbacks(&self, instance: &str) -> PaymentPlugin {
        self.callbacks(self.payment(None, instance), instance)
    }

    fn callbacks<P: ComponentWorld + ProviderCalls>(
        &self,
        plugin: PluginRuntime<P>,
        instance: &str,
    ) -> PluginRuntime<P> {
        let mut of_callbacks = held(&self.of_callbacks);
        let permits = of_callbacks
            .entry((P::SLOT, instance.to_owned()))
            .or_insert_with(|| Arc::new(Semaphore::new(CALLBACKS_OF_INSTANCE)));
        // These replace the permits of other calls: a flood of callbacks must not stop signers.
        let permits = vec![permits.clone(), self.callback_permits.clone()];
        drop(of_callbacks);
        let gate = plugin.gate().clone();
        plugin.with_gate(CallGate { permits, ..gate })
    }

    fn provider<P: ComponentWorld + ProviderCalls>(
        &self,
        loaded: &Arc<LoadedComponent<P>>,
        org: Option<&OrgId>,
        instance: &str,
    ) -> PluginRuntime<P> {
        let at = InstanceReference::parse(instance);
        let owner = at.org.as_ref();
        let active = self.active.load();
        let live = active.at(P::SLOT, owner, &at.name, self.clock.now());
        let identity = live.map(|(live, _)| &live.identity);
        let own = live.is_some_and(|(_, own)| own);
        // An organization's own instance counts for its owner, one of the installation for the caller.
        let gate = self.provider_gate(owner.or(org), own);
        PluginRuntime::new(loaded.get(identity), gate)
    }

    /// Returns the gate for provider calls on behalf of an organization. `own` tightens it for the
    /// organization's own component.
    fn provider_gate(&self, org: Option<&OrgId>, own: bool) -> CallGate {
        // Work for no organization has no share to count against.
        let Some(org) = org else {
            return CallGate::of(self.provider_permits.clone());
        };

        let shares = self.shares(org);

        // Narrowest first: see `CallGate::permits`.
        let mut permits = vec![shares.providers.clone()];
        permits.extend(own.then(|| self.own_provider_permits.clone()));
        permits.push(self.provider_permits.clone());

        CallGate {
            permits,
            memory: own.then(|| shares.memory.clone()),
            time: own.then(|| shares.plugins.clone()),
        }
    }

    fn own_rules(&self, own: Option<&OrgId>) -> Option<OwnRules> {
        own.map(|org| OwnRules {
            slice: self.shares(org).rules.clone(),
            permits: self.own_rules_permits.clone(),
        })
    }

    fn shares(&self, org: &OrgId) -> Arc<OrganizationShares> {
        let mut all = held(&self.of_organization);
        if let Some(shares) = all.get(org) {
            return shares.clone();
        }

        let limits = self.engines.limits.of(Slot::Signing);
        let memory = limits.memory_of_organization;
        let shares = Arc::new(OrganizationShares {
            providers: Arc::new(Semaphore::new(limits.instances_of_organization)),
            memory: Arc::new(MemoryShare::new(memory, self.own_provider_memory.clone())),
            rules: Arc::new(TimeSlice::new(RULES)),
            plugins: Arc::new(TimeSlice::new(PLUGINS)),
        });
        // Shares stay until the process ends: a new one would forget the time that was spent.
        all.insert(org.clone(), shares.clone());

        shares
    }

    /// Returns the active component of a rules slot, and whether it is the organization's own.
    fn at(&self, slot: Slot, org: Option<&OrgId>) -> (Option<ComponentIdentity>, bool) {
        let active = self.active.load();
        if active.is_empty() {
            return (None, false);
        }
        match active.at(slot, org, "", self.clock.now()) {
            Some((live, own)) => (Some(live.identity.clone()), own),
            None => (None, false),
        }
    }

    /// Returns the snapshot of activations that this node uses.
    pub fn active(&self) -> Arc<ActivationTable> {
        self.active.load_full()
    }

    /// Whether a component is loaded.
    pub fn has(&self, slot: Slot, identity: &ComponentIdentity) -> bool {
        match slot {
            Slot::Compliance => self.compliance.has(identity),
            Slot::Lifecycle => self.lifecycle.has(identity),
            Slot::Placement => self.placement.has(identity),
            Slot::Documents => self.documents.has(identity),
            Slot::Control => self.control.has(identity),
            Slot::Signing => self.signing.has(identity),
            Slot::Payment => self.payment.has(identity),
            Slot::Kba => self.kba.has(identity),
            Slot::Messaging => self.messaging.has(identity),
            Slot::Conversion => self.conversion.has(identity),
        }
    }

    /// Loads a component: takes its native code from the cache, or compiles it. Blocks, so callers
    /// run it off the async threads.
    pub fn add(&self, artifact: &ComponentArtifact) -> Result<(), ComponentError> {
        let (engines, cache) = (&self.engines, &self.cache);
        match artifact.slot {
            Slot::Compliance => self.compliance.put(slot::load(engines, cache, artifact)?),
            Slot::Lifecycle => self.lifecycle.put(slot::load(engines, cache, artifact)?),
            Slot::Placement => self.placement.put(slot::load(engines, cache, artifact)?),
            Slot::Documents => self.documents.put(slot::load(engines, cache, artifact)?),
            Slot::Control => self.control.put(slot::load(engines, cache, artifact)?),
            Slot::Signing => self.signing.put(slot::load(engines, cache, artifact)?),
            Slot::Payment => self.payment.put(slot::load(engines, cache, artifact)?),
            Slot::Kba => self.kba.put(slot::load(engines, cache, artifact)?),
            Slot::Messaging => self.messaging.put(slot::load(engines, cache, artifact)?),
            Slot::Conversion => self.conversion.put(slot::load(engines, cache, artifact)?),
        }

        Ok(())
    }

    /// Loads a component from cached native code; `None` if the cache has none. Blocks, so callers
    /// run it off the async threads.
    pub fn add_kept(
        &self,
        slot: Slot,
        identity: &ComponentIdentity,
    ) -> Option<Result<(), ComponentError>> {
        let (engines, cache) = (&self.engines, &self.cache);
        macro_rules! put {
            ($slot:expr) => {
                slot::load_kept(engines, cache, identity)?.map(|active| $slot.put(active))
            };
        }

        Some(match slot {
            Slot::Compliance => put!(self.compliance),
            Slot::Lifecycle => put!(self.lifecycle),
            Slot::Placement => put!(self.placement),
            Slot::Documents => put!(self.documents),
            Slot::Control => put!(self.control),
            Slot::Signing => put!(self.signing),
            Slot::Payment => put!(self.payment),
            Slot::Kba => put!(self.kba),
            Slot::Messaging => put!(self.messaging),
            Slot::Conversion => put!(self.conversion),
        })
    }

    /// Whether the cache has valid native code of the component.
    pub fn is_compiled(&self, artifact: &ComponentArtifact) -> bool {
        self.cache.has(self.engines.of(artifact.slot), artifact)
    }

    /// Whether the cache has a file for this SHA-256. Loading it can still show that it is
    /// invalid.
    pub fn keeps_native(&self, slot: Slot, sha256: &str) -> bool {
        self.cache.keeps(self.engines.of(slot), sha256)
    }

    /// Removes the native code of a refused component.
    pub fn forget_native(&self, artifact: &ComponentArtifact) {
        self.cache.forget(self.engines.of(artifact.slot), artifact);
    }

    /// Caches native code from the [`ComponentCompiler`](super::compiler::ComponentCompiler).
    pub async fn keep_native(
        &self,
        slot: Slot,
        identity: &ComponentIdentity,
        native: Vec<u8>,
    ) -> Result<(), ComponentError> {
        let (engines, cache) = (self.engines.clone(), self.cache.clone());
        let of = identity.clone();
        // On a background thread: tens of megabytes are written, read and hashed.
        let task = background::run(move || cache.put(engines.of(slot), &of, &native));
        let kept = task.await.unwrap_or_else(|error| Err(error.into()));
        kept.map_err(|error| ComponentError::unfit(identity, &error))
    }

    /// Runs the test vectors of its slot against a candidate with cached native code, then the vectors inside
    /// it, and those of the version before.
    ///
    /// # Errors
    /// The failed vectors.
    pub async fn examine(
        &self,
        artifact: ComponentArtifact,
        before: VectorSet,
    ) -> Result<ExaminedComponent, Vec<AdmissionReason>> {
        let _turn = self.candidates.acquire().await;
        let (engines, cache) = (self.engines.clone(), self.cache.clone());
        if artifact.slot.is_provider() {
            if VectorSet::inside(&artifact.bytes()) != Ok(VectorSet::default()) {
                let what = "it has vectors, which are for rules: a provider has scripts";
                return Err(vec![AdmissionReason::new("vectors", what)]);
            }

            let conformance = conformance::examine_provider(&engines, &cache, &artifact).await?;
            return Ok(ExaminedComponent {
                conformance,
                vectors: VectorSet::default(),
                changed: Vec::new(),
            });
        }

        // Vectors can run for many seconds, which would block an async thread.
        let task =
            background::run(move || conformance::examine(&engines, &cache, &artifact, &before));
        task.await.unwrap_or_else(|error| {
            Err(vec![AdmissionReason::new("conformance", error.to_string())])
        })
    }

    /// Loads rules of any slot, to be called by name.
    pub fn program(&self, artifact: &ComponentArtifact) -> Result<RulesProgram, ComponentError> {
        RulesProgram::load(&self.engines, &self.cache, artifact)
    }

    /// Runs a provider against the external service that its author has scripted.
    ///
    /// # Errors
    /// All deviations from the script.
    pub async fn rehearse(
        &self,
        artifact: ComponentArtifact,
        script: &FarEndScript,
    ) -> Result<(), Vec<AdmissionReason>> {
        // Rehearsals and examinations share one permit, so many uploads cannot take all processors.
        let _turn = self.candidates.acquire().await;
        let (engines, cache) = (&self.engines, &self.cache);
        let reasons = match artifact.slot {
            Slot::Payment => {
                let active = conformance::loaded::<PaymentPre>(engines, cache, &artifact).await?;
                script::rehearse(&active, script).await
            }
            Slot::Kba => {
                let active = conformance::loaded::<KbaPre>(engines, cache, &artifact).await?;
                script::rehearse(&active, script).await
            }
            Slot::Messaging => {
                let active = conformance::loaded::<MessagingPre>(engines, cache, &artifact).await?;
                script::rehearse(&active, script).await
            }
            Slot::Conversion => {
                let active =
                    conformance::loaded::<ConversionPre>(engines, cache, &artifact).await?;
                script::rehearse(&active, script).await
            }
            _ => {
                let active = conformance::loaded::<SigningPre>(engines, cache, &artifact).await?;
                script::rehearse(&active, script).await
            }
        };
        if reasons.is_empty() {
            Ok(())
        } else {
            Err(reasons)
        }
    }

    /// Switches to other activations at once. Running calls keep the component they started with.
    pub fn switch(&self, activations: ActivationTable) {
        // Components of the previous snapshot stay loaded too: a call may still be using it.
        let now = Arc::new(activations);
        let before = self.active.swap(now.clone());
        let wanted: HashSet<&ComponentIdentity> = [&before, &now]
            .into_iter()
            .flat_map(|activations| activations.by_place.values().flatten())
            .map(|live| &live.identity)
            .collect();
        let wanted = |identity: &ComponentIdentity| wanted.contains(identity);
        self.compliance.keep(wanted);

        self.lifecycle.keep(wanted);
        self.placement.keep(wanted);
        self.documents.keep(wanted);
        self.control.keep(wanted);
        self.signing.keep(wanted);
        self.payment.keep(wanted);
        self.kba.keep(wanted);

        self.messaging.keep(wanted);
        self.conversion.keep(wanted);
    }

    /// Loads a particular component of slot `rules.compliance` to repeat earlier calls.
    pub fn compliance_from(
        &self,
        artifact: &ComponentArtifact,
    ) -> Result<ComplianceRules, ComponentError> {
        let active = slot::load(&self.engines, &self.cache, artifact)?;
        let handle = ComponentHandle::Held(slot::ready(active));
        Ok(ComplianceRules::new(handle, self.baselines.clone(), None))
    }

    /// Loads a particular component of slot `rules.placement` to repeat earlier calls.
    pub fn placement_from(
        &self,
        artifact: &ComponentArtifact,
    ) -> Result<Placement, ComponentError> {
        let active = slot::load(&self.engines, &self.cache, artifact)?;
        let handle = ComponentHandle::Held(slot::ready(active));
        Ok(Placement::new(handle, self.candidates_turns()))
    }

    /// Loads a particular component of slot `rules.placement` to read the facts of contracts again.
    pub fn fact_reader_from(
        &self,
        artifact: &ComponentArtifact,
    ) -> Result<LoneFactReader, ComponentError> {
        let active = slot::load(&self.engines, &self.cache, artifact)?;
        Ok(LoneFactReader(active))
    }

    /// Loads a particular component of slot `rules.documents` to repeat earlier calls.
    pub fn documents_from(
        &self,
        artifact: &ComponentArtifact,
    ) -> Result<Documents, ComponentError> {
        let active = slot::load(&self.engines, &self.cache, artifact)?;
        let handle = ComponentHandle::Held(slot::ready(active));
        Ok(Documents::new(handle, self.candidates_turns()))
    }

    /// Loads a particular component of a provider slot to try an organization's settings.
    pub fn provider_from<P: ComponentWorld + ProviderCalls>(
        &self,
        artifact: &ComponentArtifact,
        org: &OrgId,
    ) -> Result<PluginRuntime<P>, ComponentError> {
        let active = slot::load(&self.engines, &self.cache, artifact)?;
        let handle = ComponentHandle::Held(slot::ready(active));
        Ok(PluginRuntime::new(
            handle,
            self.provider_gate(Some(org), true),
        ))
    }

    fn candidates_turns(&self) -> DocumentTurns {
        DocumentTurns {
            queue: self.candidates_turns.clone(),
            owner: WorkOwner::default(),
            priority: PriorityClass::Request,
        }
    }

    /// Loads a particular component of slot `rules.lifecycle` to repeat earlier calls.
    pub fn lifecycle_from(
        &self,
        artifact: &ComponentArtifact,
    ) -> Result<LifecycleRules, ComponentError> {
        let active = slot::load(&self.engines, &self.cache, artifact)?;
        let handle = ComponentHandle::Held(slot::ready(active));
        Ok(LifecycleRules::new(handle, self.lifecycle.default(), None))
    }

    /// Loads a particular component of slot `rules.control` to repeat earlier calls.
    pub fn control_from(
        &self,
        artifact: &ComponentArtifact,
    ) -> Result<ControlRules, ComponentError> {
        let active = slot::load(&self.engines, &self.cache, artifact)?;
        let handle = ComponentHandle::Held(slot::ready(active));
        Ok(ControlRules::new(handle, self.control.default(), None))
    }
}

fn held<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(name: &str, at: i64) -> LiveActivation {
        LiveActivation {
            activation: ActivationId::new(),
            effective_at: Timestamp::from_millis(at),
            component: ComponentId::new(),
            identity: ComponentIdentity {
                name: name.into(),
                version: "1.0.0".into(),
                sha256: name.into(),
            },
            config: None,
        }
    }

    fn found(activations: &ActivationTable, org: &OrgId, now: i64) -> Option<String> {
        let now = Timestamp::from_millis(now);
        let found = activations.at(Slot::Compliance, Some(org), "", now);
        found.map(|(live, _)| live.identity.name.clone())
    }

    #[test]
    fn an_organizations_activation_overrides_the_installations() {
        let (oak, elm) = (OrgId::new(), OrgId::new());
        let mut activations = ActivationTable::default();
        let mut add = |org: Option<&OrgId>, name, at| {
            activations.add(
                Slot::Compliance,
                org.cloned(),
                String::new(),
                live(name, at),
            );
        };
        add(None, "global", 100);

        add(Some(&oak), "oak", 200);
        assert_eq!(found(&activations, &oak, 99), None);
        assert_eq!(found(&activations, &oak, 100).unwrap(), "global");
        assert_eq!(found(&activations, &oak, 200).unwrap(), "oak");
        assert_eq!(found(&activations, &elm, 200).unwrap(), "global");
    }

    #[test]
    fn a_scheduled_activation_starts_on_time_and_the_latest_wins() {
        let oak = OrgId::new();
        let mut activations = ActivationTable::default();
        for (name, at) in [("law", 500), ("first", 100), ("second", 100)] {
            activations.add(
                Slot::Compliance,
                Some(oak.clone()),
                String::new(),
                live(name, at),
            );
        }

        assert_eq!(found(&activations, &oak, 100).unwrap(), "second");
        assert_eq!(found(&activations, &oak, 499).unwrap(), "second");
        assert_eq!(found(&activations, &oak, 500).unwrap(), "law");
    }

    /// An organization can give its own instance the name of one of the operator's. The
    /// operator's instance never runs the organization's component.
    #[test]
    fn an_unprefixed_instance_name_is_the_operators() {
        let folder = tempfile::tempdir().unwrap();
        let components = ComponentRegistry::with_defaults(folder.path().into(), [1; 32]).unwrap();
        let oak = OrgId::new();

        let mut activations = ActivationTable::default();
        for instance in ["cloud", EMBEDDED] {
            let live = live("oak-plugin", 0);
            activations.add(Slot::Signing, Some(oak.clone()), instance.into(), live);
        }

        components.switch(activations);
        let answers = |org: &OrgId, instance: &str| {
            let plugin = components.signing(Some(org), instance);
            plugin.identity().unwrap().name
        };
        let default = "holdfast-signing-docuseal";
        assert_eq!(answers(&oak, "cloud"), default);

        let own = InstanceReference::own(&oak, "cloud").to_string();
        assert_eq!(answers(&oak, &own), "oak-plugin");

        let room = "holdfast-signing-embedded";
        assert_eq!(answers(&oak, EMBEDDED), room);
        assert_eq!(answers(&OrgId::new(), EMBEDDED), room);
    }
}
