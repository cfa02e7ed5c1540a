//! Calls of plugins that convert documents.

use bytes::Bytes;

use super::signing_plugin::owned;
use super::{ConversionPre, PluginRuntime, ProviderError};
use crate::lent::{LentBlob, LentHost};

pub use crate::bindings::conversion::holdfast::conversion::types as conversion;

/// Component of slot `provider.conversion`.
pub type ConversionPlugin = PluginRuntime<ConversionPre>;

impl ConversionPlugin {
    /// Converts a document and returns what the service made of it, unchecked. `file_name` has the extension
    /// of the media type.
    pub async fn convert(
        &self,
        lease: LentHost,
        document: Bytes,
        file_name: &str,
        media_type: &str,
    ) -> Result<Bytes, ProviderError> {
        let (file_name, media_type) = (file_name.to_owned(), media_type.to_owned());
        self.call(lease, move |store, plugin| {
            Box::pin(async move {
                // The document goes as a handle, because a copy in the
                // component's memory could exceed its limit.
                let blob = store.data_mut().data.table.push(LentBlob(document))?;
                let answer = plugin
                    .holdfast_conversion_conversion()
                    .call_convert(&mut *store, blob, &file_name, &media_type)
                    .await?;
                match answer {
                    // Taking the handle out of the table gives the bytes without a copy.
                    Ok(blob) => Ok(Ok(store.data_mut().data.table.delete(owned(&blob))?.0)),
                    Err(error) => Ok(Err(error)),
                }
            })
        })
        .await?
        .map_err(ProviderError::from)
    }
}
