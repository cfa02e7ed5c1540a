//! Calls into plugins of identity-challenge providers. What a signer enters passes
//! through here and is kept nowhere.

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::{KbaPre, Leased, Plugin, ProviderError};
use crate::components::error::ComponentError;
use crate::components::lent::Lease;

pub use crate::components::bindings::kba::holdfast::kba::types as kba;

/// An identity provider during one unit of work.
pub trait KbaProvider: Send + Sync {
    /// What has to be known of a signer before there can be questions.
    fn required_identity(&self) -> BoxFuture<'_, Result<Vec<kba::IdentityField>, ComponentError>>;

    /// Begins a session with what the signer entered, by field.
    fn start(&self, identity: Vec<(String, String)>) -> Step<'_>;

    /// The code that was sent to the signer's phone.
    fn submit_code<'a>(&'a self, state: &'a str, code: &'a str) -> Step<'a>;

    /// Question id and the id of the chosen answer.
    fn submit_answers<'a>(&'a self, state: &'a str, answers: Vec<(String, String)>) -> Step<'a>;
}

/// One step of a session.
pub type Step<'a> = BoxFuture<'a, Result<kba::Progress, ProviderError>>;

impl KbaProvider for Leased<KbaPlugin> {
    fn required_identity(&self) -> BoxFuture<'_, Result<Vec<kba::IdentityField>, ComponentError>> {
        self.plugin.required_identity(self.lease.clone()).boxed()
    }

    fn start(&self, identity: Vec<(String, String)>) -> Step<'_> {
        self.plugin.start(self.lease.clone(), identity).boxed()
    }

    fn submit_code<'a>(&'a self, state: &'a str, code: &'a str) -> Step<'a> {
        let lease = self.lease.clone();
        self.plugin.submit_code(lease, state, code).boxed()
    }

    fn submit_answers<'a>(&'a self, state: &'a str, answers: Vec<(String, String)>) -> Step<'a> {
        let lease = self.lease.clone();
        self.plugin.submit_answers(lease, state, answers).boxed()
    }
}

/// One component of slot `provider.kba`, with the right to be called.
pub type KbaPlugin = Plugin<KbaPre>;

impl KbaPlugin {
    /// What has to be known of a signer before there can be questions.
    pub async fn required_identity(
        &self,
        lease: Lease,
    ) -> Result<Vec<kba::IdentityField>, ComponentError> {
        self.call(lease, move |store, plugin| {
            Box::pin(async move {
                plugin
                    .holdfast_kba_kba()
                    .call_required_identity(store)
                    .await
            })
        })
        .await
    }

    /// Begins a session with what the signer entered, by field.
    pub async fn start(
        &self,
        lease: Lease,
        identity: Vec<(String, String)>,
    ) -> Result<kba::Progress, ProviderError> {
        self.call(lease, move |store, plugin| {
            Box::pin(async move { plugin.holdfast_kba_kba().call_start(store, &identity).await })
        })
        .await?
        .map_err(ProviderError::from)
    }

    /// The code that was sent to the signer's phone.
    pub async fn submit_code(
        &self,
        lease: Lease,
        state: &str,
        code: &str,
    ) -> Result<kba::Progress, ProviderError> {
        let (state, code) = (state.to_owned(), code.to_owned());
        self.call(lease, move |store, plugin| {
            Box::pin(async move {
                plugin
                    .holdfast_kba_kba()
                    .call_submit_code(store, &state, &code)
                    .await
            })
        })
        .await?
        .map_err(ProviderError::from)
    }

    /// Question id and the id of the chosen answer.
    pub async fn submit_answers(
        &self,
        lease: Lease,
        state: &str,
        answers: Vec<(String, String)>,
    ) -> Result<kba::Progress, ProviderError> {
        let state = state.to_owned();
        self.call(lease, move |store, plugin| {
            Box::pin(async move {
                plugin
                    .holdfast_kba_kba()
                    .call_submit_answers(store, &state, &answers)
                    .await
            })
        })
        .await?
        .map_err(ProviderError::from)
    }
}
