//! Stored bytes: uploads, vault, copies, archive.
//!
//! A file's key holds the organization, what it belongs to and the SHA-256 of
//! its bytes. Nothing is ever overwritten: a put creates, and a put of bytes
//! that are there already is done.

mod spool;

use std::path::Path as FilePath;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload, WriteMultipart,
};
use sha2::{Digest, Sha256};
use tokio::io::AsyncReadExt as _;
use url::Url;

use crate::domain::envelope::StoredFile;
use crate::domain::hash::sha256;
use crate::domain::id::{OrgId, RequestId};

pub use spool::{Spool, Spooled};

/// Files up to this size are stored in one request, larger ones in parts of it:
/// 5 MiB, the least that S3 takes.
const PART: usize = 5 * 1024 * 1024;
/// Parts on their way at once, while the next is filled: 10 MiB in all for each
/// file, as many files may be stored at once.
const PARTS_AT_ONCE: usize = 1;

/// Where a file lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// Documents as they were uploaded.
    Uploads,
    /// Templates' documents.
    Templates,
    /// The provider's signed bytes, untouched.
    Signed,
    /// Authoritative copies.
    Vault,
    /// Non-authoritative copies.
    Copies,
    /// Compliance certificates and custody records.
    Certificates,
    /// Released authoritative copies.
    Archive,
    /// Documents of the built-in signing room.
    Room,
}

impl Area {
    fn folder(self) -> &'static str {
        match self {
            Self::Uploads => "uploads",
            Self::Templates => "templates",
            Self::Signed => "signed",
            Self::Vault => "vault",
            Self::Copies => "copies",
            Self::Certificates => "certificates",
            Self::Archive => "archive",
            Self::Room => "room",
        }
    }
}

/// A file on its way out.
pub type Pieces = BoxStream<'static, Result<Bytes, FilesError>>;

/// Something the object store did not do. Names no key: the text may be logged.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    #[error("object store: {}", kind(.0))]
    Store(#[source] object_store::Error),
    #[error("storage URL: {0}")]
    Url(String),
    /// The bytes are not those that were stored.
    #[error("stored bytes have SHA-256 {actual} instead of {expected}")]
    Tampered { expected: String, actual: String },
    #[error("the stored object is gone")]
    Gone,
    /// The folder for uploads on their way.
    #[error("upload folder: {0}")]
    Spool(#[source] std::io::Error),
}

impl From<object_store::Error> for FilesError {
    fn from(error: object_store::Error) -> Self {
        match error {
            object_store::Error::NotFound { .. } => Self::Gone,
            error => Self::Store(error),
        }
    }
}

/// What happened, without the object's key, which the error's own text has.
fn kind(error: &object_store::Error) -> &'static str {
    use object_store::Error;
    match error {
        Error::NotFound { .. } => "not found",
        Error::InvalidPath { .. } => "invalid path",
        Error::NotSupported { .. } | Error::NotImplemented { .. } => "not supported",
        Error::AlreadyExists { .. } => "already exists",
        Error::Precondition { .. } => "precondition failed",
        Error::NotModified { .. } => "not modified",
        Error::PermissionDenied { .. } => "permission denied",
        Error::Unauthenticated { .. } => "not authenticated",
        Error::UnknownConfigurationKey { .. } => "unknown setting",
        _ => "could not be read or written",
    }
}

/// The object store.
#[derive(Clone)]
pub struct Files {
    store: Arc<dyn ObjectStore>,
}

impl Files {
    /// A local folder; every write is on the disk before it is answered.
    pub fn local(folder: &FilePath) -> Result<Self, FilesError> {
        std::fs::create_dir_all(folder).map_err(|error| FilesError::Url(error.to_string()))?;
        let store = LocalFileSystem::new_with_prefix(folder)?.with_fsync(true);
        Ok(Self {
            store: Arc::new(store),
        })
    }

    /// `file://`, `s3://`, `az://`, `gs://`: credentials and endpoint come from
    /// the usual variables of each service.
    pub fn open(url: &str) -> Result<Self, FilesError> {
        let url = Url::parse(url).map_err(|error| FilesError::Url(error.to_string()))?;
        if url.scheme() == "file" {
            let folder = url
                .to_file_path()
                .map_err(|()| FilesError::Url("file:// needs an absolute path".into()))?;
            return Self::local(&folder);
        }
        let options = std::env::vars().filter_map(|(name, value)| {
            let known = ["AWS_", "AZURE_", "GOOGLE_"]
                .iter()
                .any(|prefix| name.starts_with(prefix));
            known.then(|| (name.to_ascii_lowercase(), value))
        });
        let (store, prefix) = object_store::parse_url_opts(&url, options)?;
        let store = object_store::prefix::PrefixStore::new(store, prefix);
        Ok(Self {
            store: Arc::new(store),
        })
    }

    /// Stores bytes under their hash. Bytes that are there already count as
    /// stored, after a look at them.
    pub async fn put(
        &self,
        area: Area,
        org: &OrgId,
        owner: &str,
        bytes: Bytes,
        content_type: &str,
    ) -> Result<StoredFile, FilesError> {
        let size = bytes.len() as i64;
        let file = named(area, org, owner, sha256(&bytes), size, content_type);
        let options = PutOptions::from(PutMode::Create);
        let path = Path::from(file.key.as_str());
        match self
            .store
            .put_opts(&path, PutPayload::from_bytes(bytes), options)
            .await
        {
            Ok(_) | Err(object_store::Error::AlreadyExists { .. }) => {
                self.verify(&file).await?;
                Ok(file)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Stores a spooled upload, in parts when it is large. The key holds the
    /// hash: a second upload of the same bytes writes the same object.
    pub async fn put_spooled(
        &self,
        area: Area,
        org: &OrgId,
        owner: &str,
        upload: &Spooled,
        content_type: &str,
    ) -> Result<StoredFile, FilesError> {
        if upload.size() <= PART as u64 {
            let bytes = upload.read().await.map_err(FilesError::Spool)?;
            return self.put(area, org, owner, bytes, content_type).await;
        }
        let (sha256, size) = (upload.sha256().to_owned(), upload.size() as i64);
        let file = named(area, org, owner, sha256, size, content_type);
        let path = Path::from(file.key.as_str());
        let parts = self.store.put_multipart(&path).await?;
        let mut writer = WriteMultipart::new_with_chunk_size(parts, PART);
        let mut source = upload.open().await.map_err(FilesError::Spool)?;
        let mut piece = vec![0; 256 * 1024];
        loop {
            let length = source.read(&mut piece).await.map_err(FilesError::Spool)?;
            if length == 0 {
                break;
            }
            writer.wait_for_capacity(PARTS_AT_ONCE).await?;
            writer.write(&piece[..length]);
        }
        writer.finish().await?;
        self.verify(&file).await?;
        Ok(file)
    }

    /// Reads a file back and re-hashes it, without holding it in memory.
    async fn verify(&self, file: &StoredFile) -> Result<(), FilesError> {
        let mut pieces = self
            .store
            .get(&Path::from(file.key.as_str()))
            .await?
            .into_stream();
        let mut hasher = Sha256::new();
        while let Some(piece) = pieces.try_next().await? {
            hasher.update(&piece);
        }
        same(file, hex::encode(hasher.finalize()))
    }

    /// A file in pieces, re-hashed before the first of them leaves and once
    /// more on the way: the last piece of one that was changed in between does
    /// not leave.
    pub async fn read_in_pieces(&self, file: &StoredFile) -> Result<Pieces, FilesError> {
        self.verify(file).await?;
        let path = Path::from(file.key.as_str());
        let pieces = self.store.get(&path).await?.into_stream();
        let state = (pieces, Sha256::new(), file.size, file.clone());
        let checked = futures::stream::try_unfold(state, |state| async move {
            let (mut pieces, mut hasher, left, file) = state;
            let Some(piece) = pieces.try_next().await? else {
                return Ok(None);
            };
            hasher.update(&piece);
            let left = left - i64::try_from(piece.len()).unwrap_or(i64::MAX);
            if left <= 0 {
                same(&file, hex::encode(hasher.clone().finalize()))?;
            }
            Ok(Some((piece, (pieces, hasher, left, file))))
        });
        Ok(checked.boxed())
    }

    /// A file's bytes, re-hashed.
    pub async fn get(&self, file: &StoredFile) -> Result<Bytes, FilesError> {
        let bytes = self
            .store
            .get(&Path::from(file.key.as_str()))
            .await?
            .bytes()
            .await?;
        same(file, sha256(&bytes))?;
        Ok(bytes)
    }

    /// Removes a file; one that is gone already is removed.
    pub async fn delete(&self, key: &str) -> Result<(), FilesError> {
        match self.store.delete(&Path::from(key)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes, reads and removes a probe, which is nobody else's.
    pub async fn check(&self) -> Result<(), FilesError> {
        let path = Path::from(format!("probe/{}", RequestId::new()));
        self.store
            .put(&path, PutPayload::from_static(b"probe"))
            .await?;
        self.store.get(&path).await?.bytes().await?;
        self.store.delete(&path).await?;
        Ok(())
    }
}

/// A file with its key: the area, whose it is, and the hash of its bytes.
fn named(
    area: Area,
    org: &OrgId,
    owner: &str,
    sha256: String,
    size: i64,
    content_type: &str,
) -> StoredFile {
    StoredFile {
        key: format!(
            "{}/{:02}/{org}/{owner}/{sha256}",
            area.folder(),
            org.bucket()
        ),
        sha256,
        size,
        content_type: content_type.into(),
    }
}

fn same(file: &StoredFile, actual: String) -> Result<(), FilesError> {
    if actual == file.sha256 {
        return Ok(());
    }
    Err(FilesError::Tampered {
        expected: file.sha256.clone(),
        actual,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changed after it was re-hashed and before it has left: the last piece
    /// stays here.
    #[tokio::test]
    async fn the_last_piece_of_a_changed_file_does_not_leave() {
        let folder = crate::test_folder();
        let files = Files::local(folder.path()).unwrap();
        let bytes = Bytes::from(vec![7; 300_000]);
        let org = OrgId::new();
        let stored = files.put(Area::Vault, &org, "owner", bytes, "application/pdf");
        let file = stored.await.unwrap();
        let whole: Vec<Bytes> = files
            .read_in_pieces(&file)
            .await
            .unwrap()
            .try_collect()
            .await
            .unwrap();
        assert_eq!(whole.concat().len(), 300_000);

        let pieces = files.read_in_pieces(&file).await.unwrap();
        let path = folder.path().join(&file.key);
        let mut permissions = std::fs::metadata(&path).unwrap().permissions();
        #[expect(clippy::permissions_set_readonly_false, reason = "a test's own file")]
        permissions.set_readonly(false);
        std::fs::set_permissions(&path, permissions).unwrap();
        std::fs::write(&path, vec![8; 300_000]).unwrap();
        let left: Vec<Result<Bytes, FilesError>> = pieces.collect().await;
        let (last, before) = left.split_last().unwrap();
        assert!(matches!(last, Err(FilesError::Tampered { .. })), "{last:?}");
        let sent: usize = before.iter().flatten().map(Bytes::len).sum();
        assert!(sent < 300_000, "{sent}");
        let refused = files.read_in_pieces(&file).await.err();
        assert!(matches!(refused, Some(FilesError::Tampered { .. })));
    }
}
