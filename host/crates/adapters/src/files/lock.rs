//! Locks of objects against removal: holds, and the retention of archived documents.

use std::time::Duration;

use object_store::path::Path;

use holdfast_base::config::RetentionMode;

use super::FilesError;
use super::aws::AwsClient;
use super::azure::AzureContainer;
use super::google::GoogleBucket;

/// Locks of the object store. Their requests bypass its client.
pub(super) struct ObjectLock {
    pub(super) store: LockingStore,
    /// Prefix of every key in the bucket.
    pub(super) prefix: Path,
    /// Whether objects of records under a legal hold are held.
    pub(super) sets_holds: bool,
}

/// Object store with locks.
pub(super) enum LockingStore {
    S3 {
        aws: AwsClient,
        /// Mode and period for archived documents.
        archive: Option<(RetentionMode, Duration)>,
    },
    Azure(AzureContainer),
    Google(GoogleBucket),
}

impl ObjectLock {
    /// Returns an object's key in the bucket. The store's client adds the prefix elsewhere.
    pub(super) fn key(&self, key: &str) -> Path {
        let own = Path::from(key);
        self.prefix.parts().chain(own.parts()).collect()
    }

    /// Sets the store's own hold of an object, or takes it off.
    pub(super) async fn hold(&self, key: &str, is_held: bool) -> Result<(), FilesError> {
        let key = self.key(key);
        match &self.store {
            LockingStore::S3 { aws, .. } => aws.hold(key.as_ref(), is_held).await,
            LockingStore::Azure(container) => container.hold(&key, is_held).await,
            LockingStore::Google(bucket) => bucket.hold(&key, is_held).await,
        }
    }

    /// Returns why the store cannot hold objects.
    pub(super) async fn obstacle(&self) -> Option<String> {
        let can_hold = match &self.store {
            LockingStore::S3 { aws, .. } => aws.can_lock().await,
            LockingStore::Azure(container) => container.can_hold().await,
            LockingStore::Google(bucket) => bucket.can_hold().await,
        };
        let lacking = match &self.store {
            LockingStore::S3 { .. } => "the bucket has no Object Lock",
            LockingStore::Azure(_) => "the container has no version-level immutability",
            LockingStore::Google(_) => "the credentials lack storage.objects.update",
        };

        match can_hold {
            Ok(true) => None,
            Ok(false) => Some(lacking.to_owned()),
            Err(error) => Some(format!("{lacking}, or the store does not show it: {error}")),
        }
    }
}
