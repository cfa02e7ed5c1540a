//! Holds of Google Cloud Storage, which the object store's client cannot set.

use http::Method;
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::path::Path;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::json;

use super::FilesError;
use super::calls::{CallAnswer, RequestSigner, SignedCalls, StoreCall, StoreService};

/// Permission to change the hold of an object.
const PERMISSION: &str = "storage.objects.update";

/// Client for the holds of a bucket's objects.
pub(super) struct GoogleBucket {
    calls: SignedCalls,
    /// URL of the bucket in the JSON API.
    url: String,
}

impl GoogleBucket {
    /// Takes the object store's configuration, with the name of the bucket.
    pub(super) fn new(builder: GoogleCloudStorageBuilder) -> Result<Self, FilesError> {
        let value = |key: GoogleConfigKey| builder.get_config_value(&key);
        let name = value(GoogleConfigKey::Bucket).unwrap_or_default();
        let service = value(GoogleConfigKey::BaseUrl)
            .unwrap_or_else(|| "https://storage.googleapis.com".into());
        let url = format!("{}/storage/v1/b/{name}", service.trim_end_matches('/'));

        let credentials = builder.build()?.credentials().clone();
        Ok(Self {
            calls: SignedCalls::new(RequestSigner::Google { credentials })?,
            url,
        })
    }

    /// Sets the temporary hold of an object, or takes it off: `Objects: patch`
    /// (<https://cloud.google.com/storage/docs/object-holds>). Every bucket has it. While it is set, the object is neither
    /// deleted nor replaced.
    pub(super) async fn hold(&self, key: &Path, is_held: bool) -> Result<(), FilesError> {
        // A key is one segment of the path.
        let name = utf8_percent_encode(key.as_ref(), NON_ALPHANUMERIC);
        let url = format!("{}/o/{name}", self.url);
        let body = json!({ "temporaryHold": is_held }).to_string();
        self.call(Method::PATCH, &url, body).await?;

        Ok(())
    }

    /// Returns whether the credentials may change holds: `Buckets: testIamPermissions`, which needs no permission itself
    /// (<https://cloud.google.com/storage/docs/json_api/v1/buckets/testIamPermissions>).
    pub(super) async fn can_hold(&self) -> Result<bool, FilesError> {
        #[derive(Deserialize)]
        struct GrantedPermissions {
            #[serde(default)]
            permissions: Vec<String>,
        }

        let url = format!("{}/iam/testPermissions?permissions={PERMISSION}", self.url);
        let answer = self.call(Method::GET, &url, String::new()).await?;
        let granted: GrantedPermissions = serde_json::from_slice(&answer.body)
            .map_err(|_| FilesError::Refused("Google answered something else".into()))?;

        Ok(granted.permissions.iter().any(|name| name == PERMISSION))
    }

    async fn call(
        &self,
        method: Method,
        url: &str,
        body: String,
    ) -> Result<CallAnswer, FilesError> {
        let call = StoreCall {
            service: StoreService::Google,
            method,
            url,
            headers: &[("content-type", "application/json")],
            body,
        };
        self.calls.send(&call).await
    }
}
