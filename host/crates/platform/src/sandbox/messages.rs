//! Text message sandbox: each message is a file in the outbox, `<id>.txt`: the number, an empty line and the text.
//! Messages of test data are not written. Numbers that end in `0000` simulate a phone that receives no messages.

use std::path::PathBuf;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use holdfast_adapters::mail::outbox;
use holdfast_components::providers::messaging::TextMessage;
use holdfast_components::providers::{MessagingProvider, ProviderError};

/// Provider that writes files; without a folder, it only checks the number.
pub(super) struct OutboxMessages {
    pub folder: Option<PathBuf>,
}

impl MessagingProvider for OutboxMessages {
    fn send(&self, message: TextMessage) -> BoxFuture<'_, Result<String, ProviderError>> {
        async move {
            if message.to.ends_with("0000") {
                let why = "the number receives no text messages";
                return Err(ProviderError::Rejected(why.into()));
            }
            // The worker stores messages of test data in their inbox. The outbox is for live ones.
            let Some(folder) = &self.folder else {
                return Ok(message.id);
            };

            let name = format!("{}.txt", message.id);
            let content = format!("To: {}\n\n{}\n", message.to, message.text);
            let written = outbox::write(folder, name, content.into_bytes()).await;
            written.map_err(|error| ProviderError::Unreachable(error.to_string()))?;

            Ok(message.id)
        }
        .boxed()
    }
}
