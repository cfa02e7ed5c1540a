//! Calls of payment plugins.

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::{LeasedPlugin, PaymentPre, PluginRuntime, ProviderError};
use crate::error::ComponentError;
use crate::lent::LentHost;

pub use crate::bindings::payment::holdfast::payment::types as payment;

/// Payment provider during one unit of work.
pub trait PaymentProvider: Send + Sync {
    /// Requests a payment. Idempotent: the payment id is the idempotency key.
    fn create_intent(
        &self,
        request: payment::IntentRequest,
    ) -> BoxFuture<'_, Result<payment::Intent, ProviderError>>;

    /// Reads the present state of a payment.
    fn read_intent<'a>(
        &'a self,
        intent: &'a str,
    ) -> BoxFuture<'a, Result<payment::Intent, ProviderError>>;

    /// Verifies a callback and returns its subject.
    fn read_callback(&self, callback: payment::Callback) -> BoxFuture<'_, Callback>;
}

/// Subject of a verified callback, or the reason for refusing it.
pub type Callback =
    Result<Result<payment::CallbackSubject, payment::CallbackError>, ComponentError>;

impl PaymentProvider for LeasedPlugin<PaymentPlugin> {
    fn create_intent(
        &self,
        request: payment::IntentRequest,
    ) -> BoxFuture<'_, Result<payment::Intent, ProviderError>> {
        let lease = self.lease.clone();
        self.plugin.create_intent(lease, request).boxed()
    }

    fn read_intent<'a>(
        &'a self,
        intent: &'a str,
    ) -> BoxFuture<'a, Result<payment::Intent, ProviderError>> {
        self.plugin.read_intent(self.lease.clone(), intent).boxed()
    }

    fn read_callback(&self, callback: payment::Callback) -> BoxFuture<'_, Callback> {
        let lease = self.lease.clone();
        self.plugin.read_callback(lease, callback).boxed()
    }
}

/// Component of slot `provider.payment`.
pub type PaymentPlugin = PluginRuntime<PaymentPre>;

impl PaymentPlugin {
    /// Requests a payment. Idempotent: the payment id is the idempotency key.
    pub async fn create_intent(
        &self,
        lease: LentHost,
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

    /// Reads the present state of a payment.
    pub async fn read_intent(
        &self,
        lease: LentHost,
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

    /// Verifies a callback and returns its subject.
    pub async fn read_callback(&self, lease: LentHost, callback: payment::Callback) -> Callback {
        // The plugin's own error stays: a callback with a wrong signature is no failure of the provider.
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
