//! Calls into plugins of identity-challenge providers. What a signer enters passes
//! through here and is kept nowhere.

use super::{KbaPre, Plugin, ProviderError};
use crate::components::error::ComponentError;
use crate::components::lent::Lease;

pub use crate::components::bindings::kba::holdfast::kba::types as kba;

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
