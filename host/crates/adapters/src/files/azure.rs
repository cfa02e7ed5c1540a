//! Legal holds of Azure Blob Storage, which the object store's client cannot set.

use http::Method;
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::path::Path;
use url::Url;

use super::FilesError;
use super::calls::{CallAnswer, RequestSigner, SignedCalls, StoreCall, StoreService};

/// Header of a container's properties: whether its blobs can have a legal hold.
const VERSION_LEVEL: &str = "x-ms-immutable-storage-with-versioning-enabled";

/// Client for the legal holds of a container.
pub(super) struct AzureContainer {
    calls: SignedCalls,
    url: Url,
}

impl AzureContainer {
    /// Takes the object store's configuration, with the name of the container.
    pub(super) fn new(builder: MicrosoftAzureBuilder) -> Result<Self, FilesError> {
        let value = |key: AzureConfigKey| builder.get_config_value(&key);
        let account = value(AzureConfigKey::AccountName).unwrap_or_default();
        let name = value(AzureConfigKey::ContainerName).unwrap_or_default();
        let service = value(AzureConfigKey::Endpoint)
            .unwrap_or_else(|| format!("https://{account}.blob.core.windows.net"));
        let url = Url::parse(&format!("{}/{name}", service.trim_end_matches('/')));

        let credentials = builder.build()?.credentials().clone();
        Ok(Self {
            calls: SignedCalls::new(RequestSigner::Azure {
                credentials,
                account,
            })?,
            url: url.map_err(|error| FilesError::Url(error.to_string()))?,
        })
    }

    /// Sets the legal hold of a blob's current version, or takes it off: `Set Blob Legal Hold`, of version 2020-04-08 and
    /// later (<https://learn.microsoft.com/en-us/rest/api/storageservices/set-blob-legal-hold>). The container must have
    /// version-level immutability.
    pub(super) async fn hold(&self, key: &Path, is_held: bool) -> Result<(), FilesError> {
        let mut url = self.url.clone();
        // The client encodes a key in the same way.
        url.path_segments_mut()
            .map_err(|()| FilesError::Url("the endpoint of Azure has no path".into()))?
            .extend(key.parts());
        url.set_query(Some("comp=legalhold"));

        let is_held = if is_held { "true" } else { "false" };
        // Azure refuses a PUT without a length.
        let headers = [("content-length", "0"), ("x-ms-legal-hold", is_held)];
        self.call(Method::PUT, &url, &headers).await?;

        Ok(())
    }

    /// Returns whether blobs of the container can have a legal hold: `Get Container Properties`
    /// (<https://learn.microsoft.com/en-us/rest/api/storageservices/get-container-properties>).
    pub(super) async fn can_hold(&self) -> Result<bool, FilesError> {
        let mut url = self.url.clone();
        url.set_query(Some("restype=container"));
        let answer = self.call(Method::GET, &url, &[]).await?;
        let version_level = answer.headers.get(VERSION_LEVEL);

        Ok(version_level.is_some_and(|value| value == "true"))
    }

    async fn call(
        &self,
        method: Method,
        url: &Url,
        headers: &[(&'static str, &str)],
    ) -> Result<CallAnswer, FilesError> {
        let call = StoreCall {
            service: StoreService::Azure,
            method,
            url: url.as_str(),
            headers,
            body: String::new(),
        };
        self.calls.send(&call).await
    }
}
