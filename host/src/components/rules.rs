//! Calls into the rules slots. Rules import nothing: their linker is empty.

use std::sync::{Arc, LazyLock};

use arc_swap::ArcSwap;
use bytes::Bytes;
use tokio::sync::Semaphore;
use wasmtime::component::{Component, Linker};
use wasmtime::{Engine, Store};

use super::artifact::{Artifact, Identity, NativeCodeCache, embedded};
use super::bindings;
use super::canaries;
use super::engine::{self, Budget, Engines, Limited, fueled_store};
use super::error::{ComponentError, Failure};
use crate::domain::envelope::EnvelopeStatus;
use crate::metrics::{ComponentMeter, ComponentMetrics};

pub use bindings::compliance::exports::holdfast::compliance::compliance::ComponentIdentity;
pub use bindings::compliance::holdfast::compliance::types as compliance;
pub use bindings::documents::holdfast::documents::types as documents;
pub use bindings::lifecycle::holdfast::lifecycle::types as lifecycle;
pub use bindings::placement::holdfast::placement::types as placement;

type CompliancePre = bindings::compliance::ComplianceRulesPre<Limited<()>>;
type LifecyclePre = bindings::lifecycle::LifecycleRulesPre<Limited<()>>;
type PlacementPre = bindings::placement::PlacementRulesPre<Limited<()>>;
type DocumentsPre = bindings::documents::DocumentsRulesPre<Limited<()>>;

/// How many documents are worked on at once: each may use hundreds of MiB.
const DOCUMENTS_AT_ONCE: usize = 2;

/// A component that is ready to be called, and what it is.
struct Active<P> {
    identity: Identity,
    pre: P,
    meter: ComponentMeter,
}

/// Loaded by whoever needs it first, and in any case by
/// [`Rules::load_documents`] after the start: the code of a document component
/// is megabytes to read, and seconds to compile where none is kept. Callers
/// wait for it.
type Deferred<P> = Arc<
    LazyLock<
        Result<Active<P>, ComponentError>,
        Box<dyn FnOnce() -> Result<Active<P>, ComponentError> + Send>,
    >,
>;

/// The active component of slot `rules.compliance`. All that a verification
/// needs.
pub struct Compliance {
    engine: Engine,
    active: ArcSwap<Active<CompliancePre>>,
}

/// The active component of each rules slot.
pub struct Rules {
    engines: Engines,
    /// Checks and certificates.
    pub compliance: Compliance,
    lifecycle: ArcSwap<Active<LifecyclePre>>,
    placement: Deferred<PlacementPre>,
    documents: Deferred<DocumentsPre>,
    document_permits: Arc<Semaphore>,
}

impl Compliance {
    pub(super) fn load(engines: &Engines, cache: &NativeCodeCache) -> Result<Self, ComponentError> {
        let engine = &engines.rules;
        let link = |component: &Component| {
            CompliancePre::new(Linker::new(engine).instantiate_pre(component)?)
        };
        let active = load_slot(
            cache,
            &engines.metrics,
            engine,
            "rules.compliance",
            link,
            canaries::compliance,
        )?;
        Ok(Self {
            engine: engine.clone(),
            active: ArcSwap::from_pointee(active),
        })
    }

    /// The component that [`Compliance::evaluate`] and [`Compliance::certificate`] call.
    pub fn identity(&self) -> Identity {
        self.active.load().identity.clone()
    }

    /// Runs the compliance checks.
    pub fn evaluate(
        &self,
        facts: &compliance::EnvelopeFacts,
    ) -> Result<compliance::Evaluation, ComponentError> {
        let active = self.active.load();
        call(&active, &self.engine, engine::RULES, |store, pre| {
            let instance = pre.instantiate(&mut *store)?;
            instance
                .holdfast_compliance_compliance()
                .call_evaluate(store, facts)
        })
    }

    /// The compliance certificate, and which component wrote it.
    pub fn certificate(
        &self,
        facts: &compliance::EnvelopeFacts,
        issued_at: &str,
        issuer: &str,
    ) -> Result<(String, Identity), ComponentError> {
        let active = self.active.load();
        let identity = ComponentIdentity {
            name: active.identity.name.clone(),
            version: active.identity.version.clone(),
            sha256: active.identity.sha256.clone(),
        };
        let text = call(&active, &self.engine, engine::RULES, |store, pre| {
            let instance = pre.instantiate(&mut *store)?;
            instance
                .holdfast_compliance_compliance()
                .call_certificate(store, facts, issued_at, issuer, &identity)
        })?;
        Ok((text, active.identity.clone()))
    }
}

/// Why a move did not happen.
#[derive(Debug, thiserror::Error)]
pub enum TransitionError {
    /// The rules say no.
    #[error("{}", .0.message)]
    Refused(lifecycle::Refusal),
    /// The rules could not answer. Never read as yes or no.
    #[error(transparent)]
    Component(#[from] ComponentError),
}

impl Rules {
    /// Loads the default components. The small ones are ready on return, the
    /// document ones when they are first needed.
    pub(super) fn load(engines: &Engines, cache: &NativeCodeCache) -> Result<Self, ComponentError> {
        let compliance = Compliance::load(engines, cache)?;
        let lifecycle = load_slot(
            cache,
            &engines.metrics,
            &engines.rules,
            "rules.lifecycle",
            |component| LifecyclePre::new(Linker::new(&engines.rules).instantiate_pre(component)?),
            canaries::lifecycle,
        )?;
        let documents_metrics = engines.metrics.clone();
        let documents_engine = engines.documents.clone();
        let documents_cache = cache.clone();
        let documents: Deferred<DocumentsPre> = deferred(move || {
            load_slot(
                &documents_cache,
                &documents_metrics,
                &documents_engine,
                "rules.documents",
                |component| {
                    DocumentsPre::new(Linker::new(&documents_engine).instantiate_pre(component)?)
                },
                canaries::documents,
            )
        });
        let placement_metrics = engines.metrics.clone();
        let placement_engine = engines.documents.clone();
        let placement_cache = cache.clone();
        let placement: Deferred<PlacementPre> = deferred(move || {
            load_slot(
                &placement_cache,
                &placement_metrics,
                &placement_engine,
                "rules.placement",
                |component| {
                    PlacementPre::new(Linker::new(&placement_engine).instantiate_pre(component)?)
                },
                canaries::placement,
            )
        });
        Ok(Self {
            engines: engines.clone(),
            compliance,
            lifecycle: ArcSwap::from_pointee(lifecycle),
            placement,
            documents,
            document_permits: Arc::new(Semaphore::new(DOCUMENTS_AT_ONCE)),
        })
    }

    /// None while the document components are still being loaded.
    pub fn document_components_ready(&self) -> Option<Result<(), String>> {
        let placement = LazyLock::get(&self.placement)?;
        let documents = LazyLock::get(&self.documents)?;
        let failure = placement.as_ref().err().or(documents.as_ref().err());
        Some(failure.map_or(Ok(()), |error| Err(error.to_string())))
    }

    /// The component that finds anchors.
    pub fn placement_identity(&self) -> Result<Identity, ComponentError> {
        match &**self.placement {
            Ok(active) => Ok(active.identity.clone()),
            Err(error) => Err(error.again()),
        }
    }

    /// Returns when the document components are loaded, or have failed to.
    pub fn load_documents(&self) {
        let failures = [
            LazyLock::force(&self.placement).as_ref().err(),
            LazyLock::force(&self.documents).as_ref().err(),
        ];
        for error in failures.into_iter().flatten() {
            tracing::error!(%error, "a default component could not be loaded");
        }
    }

    /// Which status `trigger` leads to from `current`.
    pub fn envelope(
        &self,
        current: Option<EnvelopeStatus>,
        trigger: lifecycle::EnvelopeTrigger,
        facts: &lifecycle::EnvelopeFacts,
    ) -> Result<EnvelopeStatus, TransitionError> {
        let active = self.lifecycle.load();
        let current = current.map(to_lifecycle);
        call(&active, &self.engines.rules, engine::RULES, |store, pre| {
            let instance = pre.instantiate(&mut *store)?;
            instance
                .holdfast_lifecycle_lifecycle()
                .call_envelope(store, current, trigger, facts)
        })?
        .map(from_lifecycle)
        .map_err(TransitionError::Refused)
    }

    /// What an upload is; a document that cannot be read is a typed error.
    pub async fn inspect(
        &self,
        pdf: Bytes,
    ) -> Result<Result<placement::DocumentFacts, placement::ReadError>, ComponentError> {
        self.place_work(move |store, instance| {
            instance
                .holdfast_placement_placement()
                .call_inspect(store, &pdf)
        })
        .await
    }

    /// The lines of one page.
    pub async fn text(
        &self,
        pdf: Bytes,
        page: u32,
    ) -> Result<Result<Vec<placement::TextLine>, placement::ReadError>, ComponentError> {
        self.place_work(move |store, instance| {
            instance
                .holdfast_placement_placement()
                .call_text(store, &pdf, page)
        })
        .await
    }

    /// Resolves requested fields to rectangles.
    pub async fn place(
        &self,
        pdf: Bytes,
        fields: Vec<placement::FieldRequest>,
    ) -> Result<Result<Vec<placement::ResolvedField>, placement::PlaceError>, ComponentError> {
        self.place_work(move |store, instance| {
            instance
                .holdfast_placement_placement()
                .call_place(store, &pdf, &fields)
        })
        .await
    }

    /// Every place where an anchor text occurs, in document order.
    pub async fn occurrences(
        &self,
        pdf: Bytes,
        text: String,
        page: Option<u32>,
    ) -> Result<Result<Vec<placement::Area>, placement::ReadError>, ComponentError> {
        self.place_work(move |store, instance| {
            instance
                .holdfast_placement_placement()
                .call_occurrences(store, &pdf, &text, page)
        })
        .await
    }

    /// The fields written into the document as tags.
    pub async fn tags(
        &self,
        pdf: Bytes,
    ) -> Result<Result<Vec<placement::ResolvedField>, placement::PlaceError>, ComponentError> {
        self.place_work(move |store, instance| {
            instance
                .holdfast_placement_placement()
                .call_tags(store, &pdf)
        })
        .await
    }

    /// Removes tags from the pages.
    pub async fn strip_tags(
        &self,
        pdf: Bytes,
    ) -> Result<Result<Vec<u8>, documents::DocumentError>, ComponentError> {
        self.document_work(move |store, instance| {
            instance
                .holdfast_documents_documents()
                .call_strip_tags(store, &pdf)
        })
        .await
    }

    /// Writes values at their places.
    pub async fn fill(
        &self,
        pdf: Bytes,
        fields: Vec<documents::FilledField>,
    ) -> Result<Result<Vec<u8>, documents::DocumentError>, ComponentError> {
        self.document_work(move |store, instance| {
            instance
                .holdfast_documents_documents()
                .call_fill(store, &pdf, &fields)
        })
        .await
    }

    /// Marks every page as the authoritative or a non-authoritative copy.
    pub async fn mark(
        &self,
        pdf: Bytes,
        request: documents::MarkRequest,
    ) -> Result<Result<documents::Marked, documents::DocumentError>, ComponentError> {
        self.document_work(move |store, instance| {
            instance
                .holdfast_documents_documents()
                .call_mark(store, &pdf, &request)
        })
        .await
    }

    /// A document with an empty place for a signature.
    pub async fn prepare_seal(
        &self,
        pdf: Bytes,
        request: documents::SealRequest,
    ) -> Result<Result<documents::SealSpace, documents::DocumentError>, ComponentError> {
        self.document_work(move |store, instance| {
            instance
                .holdfast_documents_documents()
                .call_prepare_seal(store, &pdf, &request)
        })
        .await
    }

    /// A one-page document that shows the picture.
    pub async fn picture_to_pdf(
        &self,
        picture: documents::Picture,
    ) -> Result<Result<Vec<u8>, documents::DocumentError>, ComponentError> {
        self.document_work(move |store, instance| {
            instance
                .holdfast_documents_documents()
                .call_picture_to_pdf(store, &picture)
        })
        .await
    }

    /// A page as a picture, `width` pixels wide.
    pub async fn page_image(
        &self,
        pdf: Bytes,
        page: u32,
        width: u32,
    ) -> Result<Result<documents::PageImage, documents::DocumentError>, ComponentError> {
        self.document_work(move |store, instance| {
            instance
                .holdfast_documents_documents()
                .call_page_image(store, &pdf, page, width)
        })
        .await
    }

    /// The custody record as PDF/A-3b.
    pub async fn custody_record(
        &self,
        facts: documents::CustodyFacts,
    ) -> Result<Result<Vec<u8>, documents::DocumentError>, ComponentError> {
        self.document_work(move |store, instance| {
            instance
                .holdfast_documents_documents()
                .call_custody_record(store, &facts)
        })
        .await
    }

    async fn place_work<R: Send + 'static>(
        &self,
        work: impl FnOnce(
            &mut Store<Limited<()>>,
            &bindings::placement::PlacementRules,
        ) -> wasmtime::Result<R>
        + Send
        + 'static,
    ) -> Result<R, ComponentError> {
        self.heavy(self.placement.clone(), move |store, pre: &PlacementPre| {
            let instance = pre.instantiate(&mut *store)?;
            work(store, &instance)
        })
        .await
    }

    async fn document_work<R: Send + 'static>(
        &self,
        work: impl FnOnce(
            &mut Store<Limited<()>>,
            &bindings::documents::DocumentsRules,
        ) -> wasmtime::Result<R>
        + Send
        + 'static,
    ) -> Result<R, ComponentError> {
        self.heavy(self.documents.clone(), move |store, pre: &DocumentsPre| {
            let instance = pre.instantiate(&mut *store)?;
            work(store, &instance)
        })
        .await
    }

    /// Runs document work off the async threads, a few at a time.
    async fn heavy<P: Send + Sync + 'static, R: Send + 'static>(
        &self,
        slot: Deferred<P>,
        work: impl FnOnce(&mut Store<Limited<()>>, &P) -> wasmtime::Result<R> + Send + 'static,
    ) -> Result<R, ComponentError> {
        let engine = self.engines.documents.clone();
        let permit = self.document_permits.clone().acquire_owned().await;
        let task = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            match &**slot {
                Ok(active) => call(active, &engine, engine::DOCUMENTS, work)
                    .map_err(ComponentError::on_document),
                Err(error) => Err(error.again()),
            }
        });
        task.await.unwrap_or_else(|error| {
            Err(ComponentError {
                component: "documents".into(),
                kind: Failure::Trap(error.to_string()),
                by_document: false,
            })
        })
    }
}

fn deferred<P>(
    load: impl FnOnce() -> Result<Active<P>, ComponentError> + Send + 'static,
) -> Deferred<P> {
    let load: Box<dyn FnOnce() -> Result<Active<P>, ComponentError> + Send> = Box::new(load);
    Arc::new(LazyLock::new(load))
}

/// Native code, linked, instantiated once and asked what it must know.
fn load_slot<P>(
    cache: &NativeCodeCache,
    metrics: &ComponentMetrics,
    engine: &Engine,
    slot: &str,
    link: impl FnOnce(&Component) -> wasmtime::Result<P>,
    canary: impl FnOnce(&mut Store<Limited<()>>, &P) -> wasmtime::Result<Result<(), String>>,
) -> Result<Active<P>, ComponentError> {
    let artifact = embedded_for(slot)?;
    let identity = artifact.identity.clone();
    let unfit = |error: wasmtime::Error| {
        ComponentError::new(&identity, Failure::Link(format!("{error:#}")))
    };
    let component = cache.load(engine, &artifact).map_err(unfit)?;
    let pre = link(&component).map_err(unfit)?;
    let active = Active {
        identity: identity.clone(),
        pre,
        meter: metrics.of(&identity.to_string()),
    };
    call(&active, engine, engine::DOCUMENTS, canary)?
        .map_err(|why| ComponentError::new(&identity, Failure::Canary(why)))?;
    Ok(active)
}

pub(super) fn embedded_for(slot: &str) -> Result<Artifact, ComponentError> {
    embedded()
        .find(|artifact| artifact.slot == slot)
        .ok_or_else(|| ComponentError {
            component: slot.into(),
            kind: Failure::Link("this binary has no default component for the slot".into()),
            by_document: false,
        })
}

/// One call in a fresh store.
fn call<P, R>(
    active: &Active<P>,
    engine: &Engine,
    budget: Budget,
    work: impl FnOnce(&mut Store<Limited<()>>, &P) -> wasmtime::Result<R>,
) -> Result<R, ComponentError> {
    let result = fueled_store(engine, budget).and_then(|mut store| {
        let result = work(&mut store, &active.pre);
        active.meter.used(store.data().limits.memory);
        result
    });
    result.map_err(|error| {
        ComponentError::from_call(&active.identity, &error).reported(&active.meter)
    })
}

macro_rules! same_statuses {
    ($to:ident, $from:ident, $module:ident) => {
        pub(crate) fn $to(status: EnvelopeStatus) -> $module::EnvelopeStatus {
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
        pub(crate) fn $from(status: $module::EnvelopeStatus) -> EnvelopeStatus {
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
