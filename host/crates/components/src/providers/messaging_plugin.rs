//! Calls of text message plugins.

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::{LeasedPlugin, MessagingPre, PluginRuntime, ProviderError};
use crate::lent::LentHost;

pub use crate::bindings::messaging::holdfast::messaging::types as messaging;

/// Provider of text messages during one unit of work.
pub trait MessagingProvider: Send + Sync {
    /// Hands a message to the provider; returns the provider's id of it.
    fn send(&self, message: messaging::TextMessage)
    -> BoxFuture<'_, Result<String, ProviderError>>;
}

impl MessagingProvider for LeasedPlugin<MessagingPlugin> {
    fn send(
        &self,
        message: messaging::TextMessage,
    ) -> BoxFuture<'_, Result<String, ProviderError>> {
        self.plugin.send(self.lease.clone(), message).boxed()
    }
}

/// Component of slot `provider.messaging`.
pub type MessagingPlugin = PluginRuntime<MessagingPre>;

impl MessagingPlugin {
    /// Hands a message to the provider; returns the provider's id of it.
    pub async fn send(
        &self,
        lease: LentHost,
        message: messaging::TextMessage,
    ) -> Result<String, ProviderError> {
        self.call(lease, move |store, plugin| {
            Box::pin(async move {
                let exports = plugin.holdfast_messaging_messaging();
                exports.call_send(store, &message).await
            })
        })
        .await?
        .map_err(ProviderError::from)
    }
}
