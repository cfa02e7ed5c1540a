//! Calls into provider plugins: asynchronous, in a fresh instance each, with
//! exactly what their world grants.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use wasmtime::component::{Component, HasSelf, Linker, Resource};
use wasmtime::{Engine, Store};

use super::artifact::Identity;
use super::bindings::signing::{SigningProvider, SigningProviderPre};
use super::engine::{Limited, provider_store};
use super::error::{ComponentError, Failure};
use super::gate::Gate;
use super::lent::{Blob, Lease, Lent};
use super::slot::{Active, Deferred, Probe, World};
use crate::domain::component::Slot;

pub use super::bindings::signing::holdfast::signing::types as signing;
pub use super::lent::Lease as ProviderLease;

/// Why a provider did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// A setting or secret is missing.
    #[error("the provider is not configured: {0}")]
    NotConfigured(String),
    /// The provider said no.
    #[error("the provider refused: {0}")]
    Rejected(String),
    /// The provider does not know it.
    #[error("the provider does not know it")]
    NotFound,
    /// No answer; later may be better.
    #[error("the provider could not be reached: {0}")]
    Unreachable(String),
    /// Asked too often; seconds to wait when it said so.
    #[error("the provider limits the rate{}", .0.map_or(String::new(), |seconds| format!(" for {seconds} seconds")))]
    RateLimited(Option<u32>),
    /// The plugin failed.
    #[error(transparent)]
    Component(#[from] ComponentError),
}

impl From<signing::ProviderError> for ProviderError {
    fn from(error: signing::ProviderError) -> Self {
        match error {
            signing::ProviderError::NotConfigured(what) => Self::NotConfigured(what),
            signing::ProviderError::Rejected(why) => Self::Rejected(why),
            signing::ProviderError::NotFound => Self::NotFound,
            signing::ProviderError::Unreachable(why) => Self::Unreachable(why),
            signing::ProviderError::RateLimited(wait) => Self::RateLimited(wait),
            signing::ProviderError::Other(why) => Self::Rejected(why),
        }
    }
}

pub(super) type SigningPre = SigningProviderPre<Limited<Lent>>;

impl World for SigningPre {
    const SLOT: Slot = Slot::Signing;

    fn link(engine: &Engine, component: &Component) -> wasmtime::Result<Self> {
        let mut linker: Linker<Limited<Lent>> = Linker::new(engine);
        SigningProvider::add_to_linker::<_, HasSelf<_>>(&mut linker, |limited| &mut limited.data)?;
        super::wasi::link(&mut linker)?;
        Self::new(linker.instantiate_pre(component)?)
    }

    /// What a provider does depends on its far end: see [`super::conformance`].
    fn canary(&self, _: &Probe<'_>) -> Result<(), ComponentError> {
        Ok(())
    }
}

/// One component of slot `provider.signing`, with the right to be called.
#[derive(Clone)]
pub struct SigningPlugin {
    slot: Deferred<SigningPre>,
    gate: Gate,
}

type Call<'a, R> = Pin<Box<dyn Future<Output = wasmtime::Result<R>> + Send + 'a>>;

impl SigningPlugin {
    pub(super) fn new(slot: Deferred<SigningPre>, gate: Gate) -> Self {
        Self { slot, gate }
    }

    /// The most linear memory that a call of the component has had, in bytes.
    pub(super) fn memory_peak(&self) -> usize {
        let peak = self.active().map(|active| active.meter.memory_peak());
        peak.ok()
            .and_then(|bytes| usize::try_from(bytes).ok())
            .unwrap_or_default()
    }

    fn active(&self) -> Result<&Active<SigningPre>, ComponentError> {
        (**self.slot).as_ref().map_err(ComponentError::again)
    }

    /// Which component answers.
    pub fn identity(&self) -> Result<Identity, ComponentError> {
        Ok(self.active()?.identity.clone())
    }

    /// A template with one PDF and these fields; safe to repeat with the same `external_id`.
    pub async fn create_template(
        &self,
        lease: Lease,
        name: &str,
        external_id: &str,
        document: Bytes,
        fields: &[signing::Field],
    ) -> Result<signing::Template, ProviderError> {
        let (name, external_id, fields) =
            (name.to_owned(), external_id.to_owned(), fields.to_vec());
        self.call(lease, move |store, plugin| {
            Box::pin(async move {
                let blob = store.data_mut().data.table.push(Blob(document))?;
                plugin
                    .holdfast_signing_signing()
                    .call_create_template(store, &name, &external_id, blob, &fields)
                    .await
            })
        })
        .await?
        .map_err(ProviderError::from)
    }

    /// Adds fields to those a template has.
    pub async fn add_fields(
        &self,
        lease: Lease,
        template: &str,
        fields: &[signing::Field],
    ) -> Result<signing::Template, ProviderError> {
        let (template, fields) = (template.to_owned(), fields.to_vec());
        self.call(lease, move |store, plugin| {
            Box::pin(async move {
                plugin
                    .holdfast_signing_signing()
                    .call_add_fields(store, &template, &fields)
                    .await
            })
        })
        .await?
        .map_err(ProviderError::from)
    }

    /// A copy of a template; safe to repeat with the same `external_id`.
    pub async fn clone_template(
        &self,
        lease: Lease,
        template: &str,
        name: &str,
        external_id: &str,
    ) -> Result<signing::Template, ProviderError> {
        let (template, name, external_id) =
            (template.to_owned(), name.to_owned(), external_id.to_owned());
        self.call(lease, move |store, plugin| {
            Box::pin(async move {
                plugin
                    .holdfast_signing_signing()
                    .call_clone_template(store, &template, &name, &external_id)
                    .await
            })
        })
        .await?
        .map_err(ProviderError::from)
    }

    /// Makes a template one that nothing more is sent of; safe to repeat.
    pub async fn archive_template(
        &self,
        lease: Lease,
        template: &str,
    ) -> Result<(), ProviderError> {
        let template = template.to_owned();
        self.call(lease, move |store, plugin| {
            Box::pin(async move {
                plugin
                    .holdfast_signing_signing()
                    .call_archive_template(store, &template)
                    .await
            })
        })
        .await?
        .map_err(ProviderError::from)
    }

    /// Invites submitters; safe to repeat with the same external id.
    pub async fn create_submission(
        &self,
        lease: Lease,
        request: signing::SubmissionRequest,
    ) -> Result<signing::Submission, ProviderError> {
        self.call(lease, move |store, plugin| {
            Box::pin(async move {
                plugin
                    .holdfast_signing_signing()
                    .call_create_submission(store, &request)
                    .await
            })
        })
        .await?
        .map_err(ProviderError::from)
    }

    /// The provider's view of a submission.
    pub async fn read_submission(
        &self,
        lease: Lease,
        submission: &str,
    ) -> Result<signing::Submission, ProviderError> {
        let submission = submission.to_owned();
        self.call(lease, move |store, plugin| {
            Box::pin(async move {
                plugin
                    .holdfast_signing_signing()
                    .call_read_submission(store, &submission)
                    .await
            })
        })
        .await?
        .map_err(ProviderError::from)
    }

    /// Makes a submission unsignable.
    pub async fn archive_submission(
        &self,
        lease: Lease,
        submission: &str,
    ) -> Result<(), ProviderError> {
        let submission = submission.to_owned();
        self.call(lease, move |store, plugin| {
            Box::pin(async move {
                plugin
                    .holdfast_signing_signing()
                    .call_archive_submission(store, &submission)
                    .await
            })
        })
        .await?
        .map_err(ProviderError::from)
    }

    /// The executed PDF of a completed submission.
    pub async fn signed_document(
        &self,
        lease: Lease,
        submission: &str,
    ) -> Result<Bytes, ProviderError> {
        let submission = submission.to_owned();
        self.call(lease, move |store, plugin| {
            Box::pin(async move {
                let answer = plugin
                    .holdfast_signing_signing()
                    .call_signed_document(&mut *store, &submission)
                    .await?;
                match answer {
                    Ok(blob) => Ok(Ok(store.data_mut().data.table.delete(owned(&blob))?.0)),
                    Err(error) => Ok(Err(error)),
                }
            })
        })
        .await?
        .map_err(ProviderError::from)
    }

    /// Verifies a callback and says what it is about.
    pub async fn read_callback(
        &self,
        lease: Lease,
        callback: signing::Callback,
    ) -> Result<Result<signing::CallbackSubject, signing::CallbackError>, ComponentError> {
        self.call(lease, move |store, plugin| {
            Box::pin(async move {
                plugin
                    .holdfast_signing_signing()
                    .call_read_callback(store, &callback)
                    .await
            })
        })
        .await
    }

    async fn call<R>(
        &self,
        lease: Lease,
        work: impl for<'a> FnOnce(&'a mut Store<Limited<Lent>>, &'a SigningProvider) -> Call<'a, R>,
    ) -> Result<R, ComponentError> {
        let active = self.active()?;
        let limits = &active.limits;
        let Some(_turn) = self.gate.pass(limits.deadline).await else {
            let busy = ComponentError::new(&active.identity, Failure::Busy);
            return Err(busy.reported(&active.meter));
        };
        let lent = Lent::new(lease, limits);
        let (mut store, watch) = provider_store(&active.engine, limits, lent);
        let run = async {
            let plugin = active.pre.instantiate_async(&mut store).await?;
            work(&mut store, &plugin).await
        };
        let ended = tokio::time::timeout(limits.deadline, watch.run(run)).await;
        active.meter.used(store.data().limits.memory);
        let error = match ended {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => ComponentError::from_call(&active.identity, &error),
            Err(_) => ComponentError::new(&active.identity, Failure::Timeout),
        };
        Err(error.reported(&active.meter))
    }
}

/// The table's handle of a resource the component gave up.
fn owned(blob: &Resource<Blob>) -> Resource<Blob> {
    Resource::new_own(blob.rep())
}
