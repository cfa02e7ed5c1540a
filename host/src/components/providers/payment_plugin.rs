//! Calls into plugins of payment providers.

use super::{PaymentPre, Plugin, ProviderError};
use crate::components::error::ComponentError;
use crate::components::lent::Lease;

pub use crate::components::bindings::payment::holdfast::payment::types as payment;

/// One component of slot `provider.payment`, with the right to be called.
pub type PaymentPlugin = Plugin<PaymentPre>;

impl PaymentPlugin {
    /// Asks for a payment; safe to repeat with the same payment id.
    pub async fn create_intent(
        &self,
        lease: Lease,
        request: payment::IntentRequest,
    ) -> Result<payment::Intent, ProviderError> {
        self.call(lease, move |store, plugin| {
            Box::pin(async move {
                plugin
                    .holdfast_payment_payment()
                    .call_create_intent(store, &request)
                    .await
            })
        })
        .await?
        .map_err(ProviderError::from)
    }

    /// Where a payment stands.
    pub async fn read_intent(
        &self,
        lease: Lease,
        intent: &str,
    ) -> Result<payment::Intent, ProviderError> {
        let intent = intent.to_owned();
        self.call(lease, move |store, plugin| {
            Box::pin(async move {
                plugin
                    .holdfast_payment_payment()
                    .call_read_intent(store, &intent)
                    .await
            })
        })
        .await?
        .map_err(ProviderError::from)
    }

    /// Verifies a callback and says what it is about.
    pub async fn read_callback(
        &self,
        lease: Lease,
        callback: payment::Callback,
    ) -> Result<Result<payment::CallbackSubject, payment::CallbackError>, ComponentError> {
        self.call(lease, move |store, plugin| {
            Box::pin(async move {
                plugin
                    .holdfast_payment_payment()
                    .call_read_callback(store, &callback)
                    .await
            })
        })
        .await
    }
}
