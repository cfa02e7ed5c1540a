//! Calls of identity question plugins. The data that a signer enters is passed
//! on and never stored.

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::{KbaPre, LeasedPlugin, PluginRuntime, ProviderError};
use crate::error::ComponentError;
use crate::lent::LentHost;

pub use crate::bindings::kba::holdfast::kba::types as kba;

/// Identity question provider during one unit of work.
pub trait KbaProvider: Send + Sync {
    /// Returns the identity fields that the signer must fill in before there can be questions.
    fn required_identity(&self) -> BoxFuture<'_, Result<Vec<kba::IdentityField>, ComponentError>>;

    /// Starts a session with the values that the signer entered, by field.
    fn start(&self, identity: Vec<(String, String)>) -> Step<'_>;

    /// Submits the code that was sent to the signer's phone.
    fn submit_code<'a>(&'a self, state: &'a str, code: &'a str) -> Step<'a>;

    /// Submits the chosen answers: pairs of question id and answer id.
    fn submit_answers<'a>(&'a self, state: &'a str, answers: Vec<(String, String)>) -> Step<'a>;
}

/// Future result of one step of a session.
pub type Step<'a> = BoxFuture<'a, Result<kba::Progress, ProviderError>>;

impl KbaProvider for LeasedPlugin<KbaPlugin> {
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

/// Component of slot `provider.kba`.
pub type KbaPlugin = PluginRuntime<KbaPre>;

impl KbaPlugin {
    /// Returns the identity fields that the signer must fill in before there can be questions.
    pub async fn required_identity(
        &self,
        lease: LentHost,
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

    /// Starts a session with the values that the signer entered, by field.
    pub async fn start(
        &self,
        lease: LentHost,
        identity: Vec<(String, String)>,
    ) -> Result<kba::Progress, ProviderError> {
        self.call(lease, move |store, plugin| {
            Box::pin(async move { plugin.holdfast_kba_kba().call_start(store, &identity).await })
        })
        .await?
        .map_err(ProviderError::from)
    }

    /// Submits the code that was sent to the signer's phone.
    pub async fn submit_code(
        &self,
        lease: LentHost,
        state: &str,
        code: &str,
    ) -> Result<kba::Progress, ProviderError> {
        // Every call is a fresh instance, so the plugin gets back the state that it returned before.
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

    /// Submits the chosen answers: pairs of question id and answer id.
    pub async fn submit_answers(
        &self,
        lease: LentHost,
        state: &str,
        answers: Vec<(String, String)>,
    ) -> Result<kba::Progress, ProviderError> {
        // The host stores this state but not the answers themselves.
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
