//! Objects as they are stored, for copies from one store to another: encrypted ones stay encrypted.

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{ObjectStore as _, ObjectStoreExt as _, WriteMultipart};
use sha2::{Digest as _, Sha256};

use super::{Files, FilesError, PART, PARTS_AT_ONCE, PROBES, whole};

/// An object of the store.
#[derive(Clone, Debug)]
pub struct StoredObject {
    /// Key in the store.
    pub key: String,
    /// Number of stored bytes.
    pub size: u64,
}

impl Files {
    /// Lists all objects, apart from those of [`Files::check`].
    pub fn objects(&self) -> BoxStream<'static, Result<StoredObject, FilesError>> {
        let probes = Path::from(PROBES);
        self.store
            .list(None)
            .map_err(FilesError::from)
            .try_filter_map(move |object| {
                let is_probe = object.location.prefix_matches(&probes);
                let stored = (!is_probe).then(|| StoredObject {
                    key: object.location.to_string(),
                    size: object.size,
                });
                async move { Ok(stored) }
            })
            .boxed()
    }

    /// Returns the SHA-256 of the bytes of an object as they are stored.
    pub async fn stored_sha256(&self, key: &str) -> Result<String, FilesError> {
        let (mut pieces, size) = self.raw(key).await?;
        let mut hasher = Sha256::new();
        let mut read = 0;
        while let Some(piece) = pieces.try_next().await? {
            read += piece.len() as u64;
            hasher.update(&piece);
        }

        whole(read, size)?;
        Ok(hex::encode(hasher.finalize()))
    }

    /// Copies the stored bytes of an object to another store, which does not have it.
    pub async fn copy_to(&self, target: &Self, object: &StoredObject) -> Result<(), FilesError> {
        let (mut pieces, size) = self.raw(&object.key).await?;
        if size <= PART as u64 {
            let pieces: Vec<Bytes> = pieces.try_collect().await?;
            // Nothing replaces an object that was cut short.
            whole(pieces.iter().map(|piece| piece.len() as u64).sum(), size)?;
            return target.create(&object.key, pieces).await;
        }

        let path = Path::from(object.key.as_str());
        let parts = target.written(target.store.put_multipart(&path)).await?;
        let mut writer = WriteMultipart::new_with_chunk_size(parts, PART);
        let mut read = 0;
        while let Some(piece) = pieces.try_next().await? {
            read += piece.len() as u64;
            target
                .written(writer.wait_for_capacity(PARTS_AT_ONCE))
                .await?;
            writer.put(piece);
        }

        whole(read, size)?;
        target.written(writer.finish()).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::StorageArea;
    use holdfast_domain::id::OrgId;

    async fn keys(files: &Files) -> Vec<String> {
        let objects: Vec<StoredObject> = files.objects().try_collect().await.unwrap();
        let mut keys: Vec<String> = objects.into_iter().map(|object| object.key).collect();
        keys.sort();
        keys
    }

    #[tokio::test]
    async fn objects_of_any_size_are_copied_as_they_are_stored() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        let (from, to) = (Files::local(&from).unwrap(), Files::local(&to).unwrap());
        let org = OrgId::new();
        for size in [0, 100_000, PART + 1] {
            let bytes = Bytes::from(vec![7; size]);
            let stored = from.put(StorageArea::Vault, &org, "owner", bytes, "application/pdf");
            stored.await.unwrap();
        }
        from.keep("ledger/checkpoints/1", Bytes::from_static(b"note"))
            .await
            .unwrap();

        let objects: Vec<StoredObject> = from.objects().try_collect().await.unwrap();
        assert_eq!(objects.len(), 4);
        for object in &objects {
            from.copy_to(&to, object).await.unwrap();
            let (before, after) = (
                from.stored_sha256(&object.key).await.unwrap(),
                to.stored_sha256(&object.key).await.unwrap(),
            );
            assert_eq!(before, after);
        }
        assert_eq!(keys(&from).await, keys(&to).await);

        let small = objects.iter().find(|object| object.size == 100_000);
        let again = from.copy_to(&to, small.unwrap()).await;
        assert!(matches!(again, Err(FilesError::Exists)), "{again:?}");
    }
}
