//! Stored files: uploads, vault, copies, archive.
//!
//! A file's key contains the organization, the owner and the SHA-256 of its bytes. Nothing is
//! overwritten: a put only creates, and a put of bytes that exist already succeeds.

mod aws;
mod azure;
mod calls;
mod cipher;
mod copies;
mod google;
mod lock;
mod record_keys;
mod spool;
mod transfers;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::{Bytes, BytesMut};
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientOptions, GetResultPayload, ObjectStore, ObjectStoreExt as _,
    ObjectStoreScheme, PutMode, PutOptions, PutPayload, RetryConfig, WriteMultipart,
};
use sha2::{Digest, Sha256};
use tokio::io::AsyncReadExt as _;
use tokio::task::spawn_blocking;
use url::Url;

use holdfast_base::config::{RecordKeyPlace, StorageSettings};
use holdfast_base::disk;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::StoredFile;
use holdfast_domain::hash::sha256;
use holdfast_domain::id::{EnvelopeId, OrgId, RequestId, TemplateId};

use aws::AwsClient;
use azure::AzureContainer;
use cipher::{ObjectCipher, ObjectEncryption, ObjectKeys};
pub use copies::StoredObject;
use google::GoogleBucket;
use lock::{LockingStore, ObjectLock};
use record_keys::RecordKeys;
pub use record_keys::WalkedRecordKeys;
pub use spool::{SpoolWriter, SpooledFile};
pub use transfers::{OpenTransfers, TransferShare};

/// Size up to which a file is stored in one request; larger files are uploaded in parts of this
/// size, the minimum that S3 accepts.
const PART: usize = 5 * 1024 * 1024;

/// Bytes of a file that are read at once.
const PIECE: u64 = 256 * 1024;
/// Parts in flight while the next one is filled. With one, a file takes 10 MiB of memory; many
/// files may be stored at once.
const PARTS_AT_ONCE: usize = 1;

/// Spare capacity behind a file that is read into memory, for marks and a seal.
const ROOM_BEHIND: usize = 256 * 1024;

/// Time that the store may be silent, including its client's own retries.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time that one connection to a remote store may be silent.
const SILENCE: Duration = Duration::from_secs(20);

/// Minimum throughput in bytes per second; it extends the timeout of a write in one request. Two large
/// copies may share the line.
const SLOWEST: u64 = 64 * 1024;

/// Configures the builder of a store. The options of all services share one map; each builder takes its own.
macro_rules! configured {
    ($builder:expr, $options:expr) => {
        $options
            .into_iter()
            .fold($builder, |builder, (name, value)| match name.parse() {
                Ok(key) => builder.with_config(key, value),
                Err(_) => builder,
            })
    };
}

/// Area of the object store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageArea {
    /// Documents as uploaded.
    Uploads,
    /// Templates' documents.
    Templates,
    /// The provider's signed files, unmodified.
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
    /// Tapes that are compared with contracts.
    Tapes,
    /// Archives of imports.
    Imports,
}

impl StorageArea {
    const ALL: [Self; 10] = [
        Self::Uploads,
        Self::Templates,
        Self::Signed,
        Self::Vault,
        Self::Copies,
        Self::Certificates,
        Self::Archive,
        Self::Room,
        Self::Tapes,
        Self::Imports,
    ];

    /// Areas in which the owner of an object is an envelope.
    const OF_RECORDS: [Self; 6] = [
        Self::Uploads,
        Self::Signed,
        Self::Vault,
        Self::Copies,
        Self::Certificates,
        Self::Archive,
    ];

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
            Self::Tapes => "tapes",
            Self::Imports => "imports",
        }
    }
}

/// An object's key in its parts: `area/bucket/organization/owner/SHA-256`.
pub struct StoredObjectKey {
    pub area: StorageArea,
    pub org: OrgId,
    /// Id of the object it belongs to, for example an envelope.
    pub owner: String,
    text: String,
}

impl StoredObjectKey {
    /// Parses a key; none if it is not a document of an organization.
    pub fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split('/').collect();
        let [area, _bucket, org, owner, _sha256] = parts[..] else {
            return None;
        };

        Some(Self {
            area: StorageArea::ALL
                .into_iter()
                .find(|known| known.folder() == area)?,
            org: OrgId::parse(org)?,
            owner: owner.to_owned(),
            text: text.to_owned(),
        })
    }

    /// Returns the key in the object store.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Folder in which [`Files::check`] tests the store. Anything left there can be deleted.
pub const PROBES: &str = "probe";

/// Store name in the errors of a local folder.
const FOLDER: &str = "LocalFileSystem";

/// Bytes with their hash, which covers appended bytes without hashing the first ones again.
pub struct HashedBytes {
    pub bytes: Bytes,
    pub hash: PrefixHash,
}

impl HashedBytes {
    pub fn of(bytes: Bytes) -> Self {
        let hash = PrefixHash(Sha256::new().chain_update(&bytes));
        Self { bytes, hash }
    }
}

/// SHA-256 of bytes that others may follow.
#[derive(Clone)]
pub struct PrefixHash(Sha256);

impl PrefixHash {
    /// Returns the SHA-256 of the bytes and those that follow them.
    pub fn with(&self, behind: &[&[u8]]) -> [u8; 32] {
        let all = behind.iter();
        let all = all.fold(self.0.clone(), |hash, piece| hash.chain_update(piece));
        all.finalize().into()
    }
}

/// A file that is ready to be stored.
pub struct UnstoredFile {
    /// How it will be referenced.
    pub file: StoredFile,
    pieces: Vec<Bytes>,
}

impl UnstoredFile {
    /// Takes the pieces of a file, which may share their memory with other files, and the SHA-256 of all in
    /// lower-case hex.
    pub fn new(
        area: StorageArea,
        org: &OrgId,
        owner: &str,
        (pieces, sha256): (Vec<Bytes>, String),
        content_type: &str,
    ) -> Self {
        let size: usize = pieces.iter().map(Bytes::len).sum();
        Self {
            file: named(area, org, owner, sha256, size as i64, content_type),
            pieces,
        }
    }

    /// Returns the first bytes, if the first piece has them.
    pub fn beginning(&self, size: usize) -> Option<Bytes> {
        let first = self.pieces.first()?;
        (size <= first.len()).then(|| first.slice(..size))
    }

    /// Frees the bytes of a file that is stored.
    pub fn free(&mut self) {
        self.pieces.clear();
    }
}

/// Content of a file as a stream.
pub type Pieces = BoxStream<'static, Result<Bytes, FilesError>>;

/// Error of the object store. The text contains no key, so that it can be logged.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    #[error("object store: {}", kind(.0))]
    Store(#[source] object_store::Error),
    #[error("storage URL: {0}")]
    Url(String),
    /// The bytes are not those that were stored.
    #[error("stored bytes have SHA-256 {actual} instead of {expected}")]
    Tampered { expected: String, actual: String },
    /// An encrypted object is not the one that was stored.
    #[error("the stored object does not decrypt: it was changed")]
    Damaged,
    #[error("the stored object is gone")]
    Gone,
    /// The key of the object's record was destroyed, and with it the content of every copy.
    #[error("the record was destroyed with its key")]
    Shredded,
    /// A record has objects of its key, and the place of the keys has none for it.
    #[error(
        "storage.record_keys has no key of the record: check that it names the place where the key was made"
    )]
    NoRecordKey,
    /// The store delivered fewer bytes than it reported; the object itself may be intact.
    #[error("the object store broke off in the middle of an object")]
    BrokenOff,
    /// The store did not answer in time.
    #[error("the object store did not answer in time")]
    TimedOut,
    /// An object with this key exists already.
    #[error("there is such an object already")]
    Exists,
    /// The store overwrites instead of creating, which makes it unsafe for authoritative copies.
    #[error("the object store overwrites an object that it was asked to create")]
    Overwrites,
    /// The folder of the keys of records failed.
    #[error("keys of records: {0}")]
    RecordKey(#[source] std::io::Error),
    /// The folder of temporary files failed.
    #[error("upload folder: {0}")]
    Spool(#[source] std::io::Error),
    /// A document cannot be encrypted or decrypted on this node.
    #[error("encryption of documents: {0}")]
    Encryption(String),
    /// A call of the store's service other than object access failed.
    #[error("{0}")]
    Refused(String),
    /// Such a call failed after all retries.
    #[error("{0}")]
    Away(String),
}

impl FilesError {
    /// Returns the error of a full disk.
    pub fn no_room() -> Self {
        Self::Spool(disk::no_room())
    }

    /// Returns whether a disk is full: the store's, or that of the temporary files.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Store(error) => disk::is_full(error),
            Self::Spool(error) | Self::RecordKey(error) => disk::is_full(error),
            _ => false,
        }
    }

    /// Returns whether the object store was unreachable or unavailable, so that a retry may
    /// succeed. A failing local folder is a disk fault and not counted.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::TimedOut | Self::BrokenOff | Self::Away(_) => true,
            Self::Store(object_store::Error::Generic { store, .. }) => *store != FOLDER,
            _ => false,
        }
    }
}

impl From<object_store::Error> for FilesError {
    fn from(error: object_store::Error) -> Self {
        match error {
            object_store::Error::NotFound { .. } => Self::Gone,
            object_store::Error::AlreadyExists { .. } => Self::Exists,
            error => Self::Store(error),
        }
    }
}

/// Reads a local file. The store's own stream changes to another thread for each 8 KiB, which takes longer than
/// reading and hashing them.
fn in_large_pieces(file: File) -> BoxStream<'static, object_store::Result<Bytes>> {
    let failed = |error: std::io::Error| object_store::Error::Generic {
        store: FOLDER,
        source: error.into(),
    };
    let pieces = futures::stream::try_unfold(file, move |file| async move {
        let read = spawn_blocking(move || {
            let mut piece = Vec::with_capacity(PIECE as usize);
            (&file).take(PIECE).read_to_end(&mut piece)?;
            Ok::<_, std::io::Error>((piece, file))
        });
        let read = read.await.map_err(std::io::Error::other).flatten();
        let (piece, file) = read.map_err(failed)?;
        Ok((!piece.is_empty()).then(|| (Bytes::from(piece), file)))
    });

    pieces.boxed()
}

/// Describes the error without the object's key, which its own text contains.
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

/// Future of an object store call.
trait StoreAnswer<T>: Future<Output = object_store::Result<T>> {}

impl<T, F: Future<Output = object_store::Result<T>>> StoreAnswer<T> for F {}

/// The object store.
#[derive(Clone)]
pub struct Files {
    store: Arc<dyn ObjectStore>,
    /// Folder of the objects, when they are on a local disk.
    folder: Option<PathBuf>,
    patience: Duration,
    /// Encrypts documents before they are stored.
    cipher: Option<Arc<ObjectCipher>>,
    /// Keys of records, which encrypt their objects instead.
    record_keys: Option<Arc<RecordKeys>>,
    /// Locks objects against removal.
    lock: Option<Arc<ObjectLock>>,
    /// Whether nothing is written, locked or deleted with this handle.
    rehearses: bool,
}

impl Files {
    /// Opens a local folder; every write is synced before it returns.
    pub fn local(folder: &FilePath) -> Result<Self, FilesError> {
        disk::make_folder(folder).map_err(|error| FilesError::Url(error.to_string()))?;
        // Rows refer to a file once its write has returned. Without the sync, a power
        // failure could leave the row alone.
        let store = LocalFileSystem::new_with_prefix(folder)?.with_fsync(true);
        Ok(Self {
            folder: Some(folder.to_owned()),
            ..Self::over(Arc::new(store), PATIENCE)
        })
    }

    /// Wraps a given store; `patience` is the time it may be silent.
    pub fn over(store: Arc<dyn ObjectStore>, patience: Duration) -> Self {
        Self {
            store,
            folder: None,
            patience,
            cipher: None,
            record_keys: None,
            lock: None,
            rehearses: false,
        }
    }

    /// Opens `file://`, `s3://`, `az://` or `gs://`. Credentials and endpoint come from the usual
    /// environment variables of each service and from the settings.
    pub fn open(url: &str, settings: &StorageSettings) -> Result<Self, FilesError> {
        let url = Url::parse(url).map_err(|error| FilesError::Url(error.to_string()))?;
        if url.scheme() == "file" {
            let folder = url
                .to_file_path()
                .map_err(|()| FilesError::Url("file:// needs an absolute path".into()))?;
            return Self::local(&folder)?.with(settings);
        }

        let (scheme, prefix) = ObjectStoreScheme::parse(&url).map_err(object_store::Error::from)?;
        let store = opened(scheme, &url, options(settings))?;

        // `storage_url` may point below the bucket's root.
        let prefix = Path::parse(prefix).map_err(object_store::Error::from)?;
        let store = object_store::prefix::PrefixStore::new(store, prefix.clone());
        let mut files = Self::over(Arc::new(store), PATIENCE);
        if let Some(store) = locking_store(&url, settings)? {
            files.lock = Some(Arc::new(ObjectLock {
                store,
                prefix,
                sets_holds: settings.object_lock_holds,
            }));
        }

        files.with(settings)
    }

    /// Adds encryption, if it is configured.
    pub fn with(mut self, settings: &StorageSettings) -> Result<Self, FilesError> {
        // An operator who asks for a lock must not get a store that cannot lock.
        if let Some((setting, stores)) = locking(settings).filter(|_| self.lock.is_none()) {
            let why = format!("{setting} needs a storage_url of {stores}");
            return Err(FilesError::Url(why));
        }

        let keys = (&settings.encryption_key_file, &settings.encryption_kms_key);
        self.cipher = match keys {
            (Some(file), _) => Some(Arc::new(ObjectCipher::from_file(file)?)),
            (None, Some(key)) => {
                // Only credentials and region are used, so the bucket's name does not matter.
                let aws = AwsClient::new(aws_settings("none", settings))?;
                Some(Arc::new(ObjectCipher::from_kms(aws, key)))
            }
            (None, None) => None,
        };

        Ok(self)
    }

    /// Encrypts the objects of each record, and of each template, with a key of its own, stored at `place`. Keys are wrapped
    /// like those of documents, or else by `master`, the key derived for them, the current generation first.
    pub fn with_record_keys(
        mut self,
        place: &RecordKeyPlace,
        settings: &StorageSettings,
        master: &[[u8; 32]],
    ) -> Result<Self, FilesError> {
        let place = match place {
            RecordKeyPlace::Folder(folder) => Self::local(folder)?,
            RecordKeyPlace::Url(url) => {
                // Keys are wrapped already, and are never retained.
                let options = settings.options.clone();
                let settings = StorageSettings {
                    options,
                    ..StorageSettings::default()
                };
                Self::open(url, &settings)?
            }
        };
        let keys = RecordKeys::new(place, self.clone(), master)?;
        self.record_keys = Some(Arc::new(keys));

        Ok(self)
    }

    /// Returns whether records have keys of their own.
    pub fn has_record_keys(&self) -> bool {
        self.record_keys.is_some()
    }

    /// Destroys the key of a record, and with it the content of its objects in this store and in every copy. Destroying
    /// it again changes nothing. Without keys of records there is nothing to destroy.
    ///
    /// Other nodes may know the key for another minute.
    pub async fn destroy_record_key(&self, owner: &str) -> Result<(), FilesError> {
        match &self.record_keys {
            Some(keys) if !self.rehearses => keys.destroy(owner).await,
            _ => Ok(()),
        }
    }

    /// Encrypts a text with the key of a record, which is made if the record has none.
    ///
    /// # Errors
    ///
    /// [`FilesError::Shredded`] if the key was destroyed, [`FilesError::NoRecordKey`] if records have no keys.
    pub async fn seal_with_record_key(
        &self,
        owner: &str,
        text: &str,
    ) -> Result<String, FilesError> {
        match &self.record_keys {
            Some(keys) => keys.seal(owner, text).await,
            None => Err(FilesError::NoRecordKey),
        }
    }

    /// Decrypts a text of [`Files::seal_with_record_key`].
    ///
    /// # Errors
    ///
    /// [`FilesError::Shredded`] if the key was destroyed, [`FilesError::NoRecordKey`] if it is missing.
    pub async fn open_with_record_key(
        &self,
        owner: &str,
        sealed: &str,
    ) -> Result<String, FilesError> {
        match &self.record_keys {
            Some(keys) => keys.open_sealed(owner, sealed).await,
            None => Err(FilesError::NoRecordKey),
        }
    }

    /// Returns whether the key of a record was destroyed.
    pub async fn is_shredded(&self, owner: &str) -> Result<bool, FilesError> {
        let Some(keys) = &self.record_keys else {
            return Ok(false);
        };
        match keys.find(owner).await {
            Ok(_) => Ok(false),
            Err(FilesError::Shredded) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Counts the keys of records that an older master key wraps.
    pub async fn record_keys_of_older_master(&self) -> Result<WalkedRecordKeys, FilesError> {
        match &self.record_keys {
            Some(keys) => keys.of_older_master().await,
            None => Ok(WalkedRecordKeys::default()),
        }
    }

    /// Wraps the keys of records with the current wrapping key. Counts those that had another one. After an interruption, the
    /// next call does the rest.
    pub async fn rewrap_record_keys(&self) -> Result<WalkedRecordKeys, FilesError> {
        match &self.record_keys {
            Some(keys) => keys.rewrap().await,
            None => Ok(WalkedRecordKeys::default()),
        }
    }

    /// Starts encrypting an object: with the key of its record, or with that of all documents. None without either.
    async fn encryption(&self, key: &str) -> Result<Option<ObjectEncryption>, FilesError> {
        if let (Some(keys), Some(record)) = (&self.record_keys, record_of(key)) {
            return Ok(Some(keys.encrypt(record).await?));
        }
        match &self.cipher {
            // Each put has a key of its own, so the same bytes never look the same in the store.
            Some(cipher) => Ok(Some(cipher.encrypt().await?)),
            None => Ok(None),
        }
    }

    /// Stores bytes under their hash. If the object exists
    /// already, it is verified and counts as stored.
    pub async fn put(
        &self,
        area: StorageArea,
        org: &OrgId,
        owner: &str,
        bytes: Bytes,
        content_type: &str,
    ) -> Result<StoredFile, FilesError> {
        let sha256 = sha256(&bytes);
        let unstored = UnstoredFile::new(area, org, owner, (vec![bytes], sha256), content_type);
        self.store(&unstored).await?;
        Ok(unstored.file)
    }

    /// Returns a handle that reads and changes nothing, for dry runs. A put answers as if it had stored.
    pub fn rehearsing(&self) -> Self {
        Self {
            rehearses: true,
            ..self.clone()
        }
    }

    /// Stores a file. If the object exists already, it is verified and counts as stored.
    pub async fn store(&self, unstored: &UnstoredFile) -> Result<(), FilesError> {
        if self.rehearses {
            return Ok(());
        }

        let UnstoredFile { file, pieces } = unstored;
        let stored = match self.encryption(&file.key).await? {
            None => self.create(&file.key, pieces.clone()).await,
            Some(mut encryption) => {
                let mut sealed = Vec::new();
                for piece in pieces {
                    sealed.push(encryption.update(piece)?);
                }

                sealed.push(encryption.finish()?);
                self.create(&file.key, sealed).await
            }
        };

        // Even a failed write may have stored the bytes, so the outcome is decided by reading back.
        match (stored, self.verify(file).await) {
            (_, Ok(())) => Ok(()),
            (Ok(()), Err(error)) | (Err(FilesError::Exists), Err(error)) => Err(error),
            (Err(error), Err(_)) => Err(error),
        }
    }

    /// Creates an object; an existing one is not changed.
    async fn create(&self, key: &str, pieces: Vec<Bytes>) -> Result<(), FilesError> {
        let options = PutOptions::from(PutMode::Create);
        let path = Path::from(key);
        // Shared, not copied: retries of the client send the same buffers.
        let payload = PutPayload::from_iter(pieces);
        let longer = Duration::from_secs(payload.content_length() as u64 / SLOWEST);
        let put = self.store.put_opts(&path, payload, options);
        self.written_within(self.patience + longer, put).await?;
        Ok(())
    }

    /// Stores bytes under a fixed name. Storing the same bytes again succeeds; different bytes are
    /// refused as [`FilesError::Tampered`].
    pub async fn keep(&self, name: &str, bytes: Bytes) -> Result<(), FilesError> {
        let Err(created) = self.create(name, vec![bytes.clone()]).await else {
            return Ok(());
        };

        let expected = sha256(&bytes);

        // Even a failed write may have stored the bytes, so the outcome is decided by reading back.
        let actual = match (self.read_plain(name).await, created) {
            (Ok(kept), _) => sha256(&kept),
            (Err(error), FilesError::Exists) => return Err(error),
            (Err(_), error) => return Err(error),
        };

        if actual == expected {
            Ok(())
        } else {
            Err(FilesError::Tampered { expected, actual })
        }
    }

    /// Reads an object without decryption.
    async fn read_plain(&self, name: &str) -> Result<Bytes, FilesError> {
        let object = self.in_time(self.store.get(&Path::from(name))).await?;
        self.in_time(object.bytes()).await
    }

    /// Returns the bytes stored by [`Files::keep`], after checking their hash.
    pub async fn kept(&self, name: &str, sha256: &str, size: i64) -> Result<Bytes, FilesError> {
        let file = StoredFile {
            key: name.to_owned(),
            sha256: sha256.to_owned(),
            size,
            content_type: "application/octet-stream".into(),
        };
        self.get(&file).await
    }

    /// Waits for the store up to the configured timeout.
    async fn in_time<T>(&self, answer: impl StoreAnswer<T>) -> Result<T, FilesError> {
        within(self.patience, answer).await
    }

    /// Like [`Files::in_time`], for a write: an I/O error
    /// of a local folder's disk aborts the process.
    async fn written<T>(&self, answer: impl StoreAnswer<T>) -> Result<T, FilesError> {
        self.written_within(self.patience, answer).await
    }

    async fn written_within<T>(
        &self,
        patience: Duration,
        answer: impl StoreAnswer<T>,
    ) -> Result<T, FilesError> {
        let answer = within(patience, answer).await;
        if let (Some(_), Err(FilesError::Store(error))) = (&self.folder, &answer) {
            // Only a local folder shares the fate of this machine's disk.
            abort_on_io_error(error);
        }
        answer
    }

    /// Stores a spooled upload, in parts if it is large. The key contains the hash, so a second
    /// upload of the same bytes writes the same object.
    pub async fn put_spooled(
        &self,
        area: StorageArea,
        org: &OrgId,
        owner: &str,
        upload: &SpooledFile,
        content_type: &str,
    ) -> Result<StoredFile, FilesError> {
        // One request creates an object or nothing, and most documents fit into it.
        if upload.size() <= PART as u64 {
            let bytes = upload.read().await.map_err(FilesError::Spool)?;
            return self.put(area, org, owner, bytes, content_type).await;
        }

        let (sha256, size) = (upload.sha256().to_owned(), upload.size() as i64);
        let file = named(area, org, owner, sha256, size, content_type);
        if self.rehearses {
            return Ok(file);
        }

        // Before the upload begins: without a key there is none.
        let mut encryption = self.encryption(&file.key).await?;
        let path = Path::from(file.key.as_str());
        let parts = self.written(self.store.put_multipart(&path)).await?;
        let mut writer = WriteMultipart::new_with_chunk_size(parts, PART);

        // Streamed in small pieces, so that memory use does not depend on the document's size.
        let mut source = upload.open().await.map_err(FilesError::Spool)?;
        let mut piece = vec![0; PIECE as usize];
        loop {
            let length = source.read(&mut piece).await.map_err(FilesError::Spool)?;
            if length == 0 {
                break;
            }

            self.written(writer.wait_for_capacity(PARTS_AT_ONCE))
                .await?;
            match &mut encryption {
                None => writer.write(&piece[..length]),
                Some(encryption) => writer.put(encryption.update(&piece[..length])?),
            }
        }

        if let Some(encryption) = encryption {
            writer.put(encryption.finish()?);
        }

        // Decided by reading back, as for a write in one request.
        match (
            self.written(writer.finish()).await,
            self.verify(&file).await,
        ) {
            (_, Ok(())) => Ok(file),
            (Ok(_), Err(error)) | (Err(error), Err(_)) => Err(error),
        }
    }

    /// Reads a file back and checks its hash, without holding it in memory.
    pub async fn verify(&self, file: &StoredFile) -> Result<(), FilesError> {
        let verified = self.verify_object(file).await;
        self.or_tampered(file, verified).await
    }

    async fn verify_object(&self, file: &StoredFile) -> Result<(), FilesError> {
        let (mut pieces, size) = self.open_object(file).await?;
        let mut hasher = Sha256::new();
        let mut read = 0;
        while let Some(piece) = pieces.try_next().await? {
            read += piece.len() as u64;
            hasher.update(&piece);
        }

        // A broken connection comes before the hash, or it would be reported as tampering.
        whole(read, size)?;
        same(file, hex::encode(hasher.finalize()))
    }

    /// Opens a document; returns its plain bytes and their number according to the store.
    async fn open_object(&self, file: &StoredFile) -> Result<(Pieces, u64), FilesError> {
        let (raw, size) = self.raw(&file.key).await?;
        let keys = ObjectKeys {
            documents: self.cipher.as_deref(),
            records: self.record_keys.as_deref(),
            record: record_of(&file.key),
        };
        cipher::decrypted(keys, raw, size).await
    }

    /// Opens a stored object without decryption.
    async fn raw(&self, key: &str) -> Result<(Pieces, u64), FilesError> {
        let path = Path::from(key);
        let object = self.in_time(self.store.get(&path)).await?;
        let size = object.meta.size;
        let patience = self.patience;
        let pieces = match object.payload {
            GetResultPayload::File(file, _) => in_large_pieces(file),
            GetResultPayload::Stream(pieces) => pieces,
        };
        // The limit is for each piece, because the time of all depends on the size of the document.
        let raw = futures::stream::try_unfold(pieces, move |mut raw| async move {
            match tokio::time::timeout(patience, raw.try_next()).await {
                Ok(piece) => Ok(piece?.map(|piece| (piece, raw))),
                Err(_) => Err(FilesError::TimedOut),
            }
        });

        Ok((raw.boxed(), size))
    }

    /// Converts a decryption failure to [`FilesError::Tampered`],
    /// with the hash of the stored bytes.
    async fn or_tampered<T>(
        &self,
        file: &StoredFile,
        read: Result<T, FilesError>,
    ) -> Result<T, FilesError> {
        let Err(FilesError::Damaged) = read else {
            return read;
        };

        // The evidence needs the digest of the bytes that are there now, although they do not decrypt.
        Err(FilesError::Tampered {
            expected: file.sha256.clone(),
            actual: self.stored_sha256(&file.key).await?,
        })
    }

    /// Locks an archived document against removal, if
    /// retention is configured. Repeating the call is safe.
    pub async fn retain(&self, file: &StoredFile, now: Timestamp) -> Result<(), FilesError> {
        let Some(lock) = self.lock.as_ref().filter(|_| !self.rehearses) else {
            return Ok(());
        };
        let LockingStore::S3 {
            aws,
            archive: Some((mode, period)),
        } = &lock.store
        else {
            return Ok(());
        };

        let key = lock.key(&file.key);
        aws.retain(key.as_ref(), *mode, now + *period).await
    }

    /// Returns whether objects can get the store's own legal hold, and are to get it.
    pub fn sets_holds(&self) -> bool {
        let is_set = self.lock.as_ref().is_some_and(|lock| lock.sets_holds);
        is_set && !self.rehearses
    }

    /// Sets the store's own legal hold of an object, or takes it off. Repeating the call is safe.
    ///
    /// # Errors
    ///
    /// [`FilesError::Refused`] if the store refuses: the bucket or container has no such hold, or the permission is
    /// missing. [`FilesError::Gone`] if there is no such object.
    pub async fn set_hold(&self, key: &str, is_held: bool) -> Result<(), FilesError> {
        match self.lock.as_ref().filter(|_| self.sets_holds()) {
            Some(lock) => lock.hold(key, is_held).await,
            None => Ok(()),
        }
    }

    /// Returns why the store cannot set its own hold; none if it can.
    pub async fn hold_obstacle(&self) -> Option<String> {
        match &self.lock {
            Some(lock) => lock.obstacle().await,
            None => Some("the object store has no hold of its own".into()),
        }
    }

    /// Returns the keys of the objects of a record, by the id of its envelope.
    pub async fn of_record(&self, org: &OrgId, owner: &str) -> Result<Vec<String>, FilesError> {
        let mut keys = Vec::new();
        for area in StorageArea::OF_RECORDS {
            let folder = format!("{}/{:02}/{org}/{owner}", area.folder(), org.bucket());
            let prefix = Path::from(folder);
            let mut objects = self.store.list(Some(&prefix));
            while let Some(object) = self.in_time(objects.try_next()).await? {
                keys.push(object.location.to_string());
            }
        }

        Ok(keys)
    }

    /// Streams a file. Its hash is checked before the first piece and again on the way; if the file
    /// changed in between, the last piece is withheld.
    pub async fn read_in_pieces(&self, file: &StoredFile) -> Result<Pieces, FilesError> {
        self.verify(file).await?;
        let (pieces, _) = self.open_object(file).await?;
        let state = (pieces, Sha256::new(), file.size, file.clone());
        let checked = futures::stream::try_unfold(state, |state| async move {
            let (mut pieces, mut hasher, left, file) = state;
            let Some(piece) = pieces.try_next().await? else {
                return Ok(None);
            };

            hasher.update(&piece);
            let left = left - i64::try_from(piece.len()).unwrap_or(i64::MAX);

            // The client completes a download with its last
            // piece, so the hash is checked before that.
            if left <= 0 {
                same(&file, hex::encode(hasher.clone().finalize()))?;
            }

            Ok(Some((piece, (pieces, hasher, left, file))))
        });

        Ok(checked.boxed())
    }

    /// Copies a file to an unnamed temporary file in `folder` and checks its hash on the way. A
    /// changed file is never returned.
    pub async fn spooled(
        &self,
        file: &StoredFile,
        folder: &FilePath,
    ) -> Result<SpooledFile, FilesError> {
        let read = self.spool_object(file, folder).await;
        self.or_tampered(file, read).await
    }

    async fn spool_object(
        &self,
        file: &StoredFile,
        folder: &FilePath,
    ) -> Result<SpooledFile, FilesError> {
        let (mut pieces, size) = self.open_object(file).await?;
        let mut spool = SpoolWriter::new(folder).await.map_err(FilesError::Spool)?;
        while let Some(piece) = pieces.try_next().await? {
            spool.write(&piece).await.map_err(FilesError::Spool)?;
        }

        whole(spool.size(), size)?;
        let spooled = spool.finish().await.map_err(FilesError::Spool)?;

        // The file is discarded, not returned, if the hash differs.
        same(file, spooled.sha256().to_owned())?;
        Ok(spooled)
    }

    /// Returns a file's bytes after checking their hash.
    pub async fn get(&self, file: &StoredFile) -> Result<Bytes, FilesError> {
        Ok(self.get_hashed(file).await?.bytes)
    }

    /// Like [`Files::get`], with a hash that the caller can continue over appended bytes.
    pub async fn get_hashed(&self, file: &StoredFile) -> Result<HashedBytes, FilesError> {
        let read = self.get_object(file).await;
        self.or_tampered(file, read).await
    }

    async fn get_object(&self, file: &StoredFile) -> Result<HashedBytes, FilesError> {
        let (mut pieces, size) = self.open_object(file).await?;
        // Spare capacity lets marks and a seal be appended without copying the document.
        let room = usize::try_from(size).unwrap_or_default() + ROOM_BEHIND;
        let mut bytes = BytesMut::with_capacity(room);
        while let Some(piece) = pieces.try_next().await? {
            bytes.extend_from_slice(&piece);
        }

        whole(bytes.len() as u64, size)?;
        let hashed = HashedBytes::of(bytes.freeze());
        same(file, hex::encode(hashed.hash.with(&[])))?;

        Ok(hashed)
    }

    /// Removes a file; a missing file counts as removed.
    pub async fn delete(&self, key: &str) -> Result<(), FilesError> {
        if self.rehearses {
            return Ok(());
        }

        // S3 and Azure keep the version behind the deletion, and no walk over the objects finds it
        // any more: with a hold, its lifecycle could never remove it. Google refuses the deletion.
        match self.set_hold(key, false).await {
            Ok(()) | Err(FilesError::Gone | FilesError::Refused(_)) => {}
            error => return error,
        }
        match self.in_time(self.store.delete(&Path::from(key))).await {
            // Deletes are retried by jobs, so a second delete must succeed.
            Ok(()) | Err(FilesError::Gone) => Ok(()),
            error => error,
        }
    }

    /// Removes all files of an owner, such as an envelope, from all areas. In a local folder, this includes the temporary files
    /// of interrupted writes.
    pub async fn delete_of(&self, org: &OrgId, owner: &str) -> Result<(), FilesError> {
        if self.rehearses {
            return Ok(());
        }
        for area in StorageArea::ALL {
            let place = place_of(area, org, owner);
            let prefix = Path::from(place.as_str());
            // By the owner, because rows may name fewer objects than there are.
            let mut objects = self.store.list(Some(&prefix));
            while let Some(object) = self.in_time(objects.try_next()).await? {
                self.delete(object.location.as_ref()).await?;
            }
            if let Some(folder) = &self.folder {
                remove_folder(folder.join(&place)).await?;
            }
        }
        Ok(())
    }

    /// Returns the folder of the objects, when they are on a local disk.
    pub fn folder(&self) -> Option<&FilePath> {
        self.folder.as_deref()
    }

    /// Tests the store, and that of the keys of records, with a temporary object: creates it, expects a second create to
    /// fail, reads it and removes it.
    ///
    /// # Errors
    ///
    /// [`FilesError::Overwrites`] for a store without create-only writes, with which two nodes
    /// could write two authoritative copies.
    pub async fn check(&self) -> Result<(), FilesError> {
        self.probe().await?;
        match &self.record_keys {
            Some(keys) => keys.place().probe().await,
            None => Ok(()),
        }
    }

    async fn probe(&self) -> Result<(), FilesError> {
        let name = format!("{PROBES}/{}", RequestId::new());
        let path = Path::from(name.as_str());
        self.create(&name, vec![Bytes::from_static(b"probe")])
            .await?;

        // Different bytes, so that an overwrite shows in the read below.
        let again = self.create(&name, vec![Bytes::from_static(b"other")]).await;
        let read = self.read_plain(&name).await?;
        // Removed before the verdict, so that a failing check leaves no object behind.
        self.in_time(self.store.delete(&path)).await?;

        match again {
            Err(FilesError::Exists) if *read == *b"probe" => Ok(()),
            Ok(()) | Err(FilesError::Exists) => Err(FilesError::Overwrites),
            Err(error) => Err(error),
        }
    }

    /// Lists the keys of objects last written before `before`.
    pub fn older_than(&self, before: Timestamp) -> BoxStream<'static, Result<String, FilesError>> {
        self.store
            .list(None)
            .map_err(FilesError::from)
            .try_filter_map(move |object| async move {
                let old = object.last_modified.timestamp_millis() < before.as_millis();
                Ok(old.then(|| object.location.to_string()))
            })
            .boxed()
    }

    /// Returns one object in `folder` that sorts after `name`, if there is one.
    pub async fn one_behind(&self, folder: &str, name: &str) -> Result<Option<String>, FilesError> {
        let prefix = Path::from(folder);
        let mut behind = self
            .store
            .list_with_offset(Some(&prefix), &Path::from(name));
        let found = self.in_time(behind.try_next()).await?;
        Ok(found.map(|object| object.location.to_string()))
    }

    /// Removes temporary files of interrupted writes to a local folder that are older than
    /// `before`; other stores clean up themselves. Returns the number removed.
    pub async fn remove_cut_off_writes(&self, before: Timestamp) -> Result<u64, FilesError> {
        let Some(folder) = self.folder.clone() else {
            return Ok(0);
        };
        spawn_blocking(move || remove_staged(&folder, before))
            .await
            .map_err(|error| FilesError::Spool(std::io::Error::other(error)))?
            .map_err(FilesError::Spool)
    }
}

async fn within<T>(patience: Duration, answer: impl StoreAnswer<T>) -> Result<T, FilesError> {
    match tokio::time::timeout(patience, answer).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(FilesError::TimedOut),
    }
}

/// Returns a setting that needs locks of the store, and the stores that have them.
fn locking(settings: &StorageSettings) -> Option<(&'static str, &'static str)> {
    if settings.archive_retention.is_some() {
        return Some(("storage.archive_retention", "s3://"));
    }
    settings
        .object_lock_holds
        .then_some(("storage.object_lock_holds", "s3://, az:// or gs://"))
}

/// Returns the client for the locks that the settings ask for; none if they ask for none, or the store lacks them.
fn locking_store(
    url: &Url,
    settings: &StorageSettings,
) -> Result<Option<LockingStore>, FilesError> {
    let bucket = url.host_str().filter(|_| url.username().is_empty());
    let Some(bucket) = bucket.filter(|_| locking(settings).is_some()) else {
        return Ok(None);
    };

    let archive = settings.archive_retention;
    Ok(match (url.scheme(), archive) {
        ("s3", _) => Some(LockingStore::S3 {
            aws: AwsClient::new(aws_settings(bucket, settings))?,
            archive: archive.map(|period| (settings.archive_retention_mode, period)),
        }),
        ("az", None) => {
            let builder = configured!(MicrosoftAzureBuilder::new(), options(settings));
            let builder = builder.with_container_name(bucket);
            Some(LockingStore::Azure(AzureContainer::new(builder)?))
        }
        ("gs", None) => {
            let builder = configured!(GoogleCloudStorageBuilder::new(), options(settings));
            let builder = builder.with_bucket_name(bucket);
            Some(LockingStore::Google(GoogleBucket::new(builder)?))
        }
        _ => None,
    })
}

/// Merges the object store's environment variables with the settings, which take precedence.
fn options(settings: &StorageSettings) -> BTreeMap<String, String> {
    let variables = std::env::vars().filter_map(|(name, value)| {
        let known = ["AWS_", "AZURE_", "GOOGLE_"]
            .iter()
            .any(|prefix| name.starts_with(prefix));
        known.then(|| (name.to_ascii_lowercase(), value))
    });
    // Behind the variables: of two entries of a name the map keeps the last one.
    let set = settings.options.iter();
    let set = set.map(|(name, value)| (name.to_ascii_lowercase(), value.reveal().to_owned()));

    variables.chain(set).collect()
}

/// Opens a remote store.
fn opened(
    scheme: ObjectStoreScheme,
    url: &Url,
    options: BTreeMap<String, String>,
) -> Result<Box<dyn ObjectStore>, FilesError> {
    macro_rules! built {
        ($builder:ty) => {{
            let builder = <$builder>::new()
                .with_url(url.as_str())
                .with_retry(retries())
                .with_client_options(patient());
            Ok(Box::new(configured!(builder, options).build()?))
        }};
    }

    match scheme {
        ObjectStoreScheme::AmazonS3 => built!(AmazonS3Builder),
        ObjectStoreScheme::MicrosoftAzure => built!(MicrosoftAzureBuilder),
        ObjectStoreScheme::GoogleCloudStorage => built!(GoogleCloudStorageBuilder),
        _ => Err(FilesError::Url(format!(
            "there is no store for {}://",
            url.scheme()
        ))),
    }
}

/// Disables the total timeout, as large transfers take long, and limits silence instead.
fn patient() -> ClientOptions {
    ClientOptions::new()
        .with_timeout_disabled()
        .with_read_timeout(SILENCE)
}

/// Retries unanswered requests while the caller still waits.
fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            max_backoff: Duration::from_secs(2),
            ..BackoffConfig::default()
        },
        max_retries: 7,
        ..RetryConfig::default()
    }
}

/// Returns the configuration of a bucket's store, for other AWS calls, and the KMS endpoint.
fn aws_settings(bucket: &str, settings: &StorageSettings) -> (AmazonS3Builder, Option<String>) {
    let options = options(settings);
    let kms = options.get("aws_endpoint_url_kms").cloned();
    // The bucket is that of the URL, as for the store's client, also if the environment names another one.
    let builder = configured!(AmazonS3Builder::new(), options).with_bucket_name(bucket);
    (builder, kms)
}

/// Removes staged writes. A write creates `name#number` and then links it to `name`; one that
/// finishes concurrently may remove its staged file first, which is ignored.
fn remove_staged(folder: &FilePath, before: Timestamp) -> std::io::Result<u64> {
    let there = |result: std::io::Result<()>| match result {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        result => result.map(|()| true),
    };

    let mut removed = 0;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let Ok(metadata) = std::fs::symlink_metadata(&path) else {
            continue;
        };
        if metadata.is_dir() {
            removed += remove_staged(&path, before)?;
            continue;
        }

        let name = path.file_name().and_then(std::ffi::OsStr::to_str);
        let staged = name.and_then(|name| name.rsplit_once('#'));

        // Stored keys contain no `#`, so only staged files match.
        let staged = staged.is_some_and(|(_, number)| number.bytes().all(|b| b.is_ascii_digit()));
        let written = metadata.modified()?.duration_since(UNIX_EPOCH);
        let written = written.map_or(i64::MAX, |since| since.as_millis() as i64);
        if staged && written < before.as_millis() && there(std::fs::remove_file(&path))? {
            removed += 1;
        }
    }

    Ok(removed)
}

/// Aborts the process if the cause is an I/O error of the disk.
fn abort_on_io_error(error: &object_store::Error) {
    const EIO: i32 = 5;

    // The store wraps the error of the system several times.
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let code = error
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::raw_os_error);
        if code == Some(EIO) {
            disk::failed("the object folder", error);
        }

        cause = error.source();
    }
}

/// Removes a folder with all that is in it; a missing one counts as removed.
async fn remove_folder(folder: PathBuf) -> Result<(), FilesError> {
    let removed = spawn_blocking(move || match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    });
    let removed = removed.await.map_err(std::io::Error::other).flatten();
    removed.map_err(FilesError::Spool)
}

/// Returns the place of an owner's files in an area.
fn place_of(area: StorageArea, org: &OrgId, owner: &str) -> String {
    format!("{}/{:02}/{org}/{owner}", area.folder(), org.bucket())
}

/// Returns whether an owner of objects has a key of its own.
fn is_owner(owner: &str) -> bool {
    EnvelopeId::parse(owner).is_some() || TemplateId::parse(owner).is_some()
}

/// Returns the record or template that owns an object, which has a key of its own: a template can be the document of one
/// record. None for objects of tapes, imports and the installation.
fn record_of(key: &str) -> Option<&str> {
    let parts: Vec<&str> = key.split('/').collect();
    let [_area, _bucket, _org, owner, _sha256] = parts[..] else {
        return None;
    };
    is_owner(owner).then_some(owner)
}

/// Builds the file's record; its key consists of area, owner and hash.
fn named(
    area: StorageArea,
    org: &OrgId,
    owner: &str,
    sha256: String,
    size: i64,
    content_type: &str,
) -> StoredFile {
    StoredFile {
        key: format!("{}/{sha256}", place_of(area, org, owner)),
        sha256,
        size,
        content_type: content_type.into(),
    }
}

fn whole(read: u64, size: u64) -> Result<(), FilesError> {
    if read < size {
        return Err(FilesError::BrokenOff);
    }
    Ok(())
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

    /// The file changes after the first check and before
    /// the end of the stream: the last piece is withheld.
    #[tokio::test]
    async fn the_last_piece_of_a_modified_file_is_not_served() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::local(folder.path()).unwrap();
        let bytes = Bytes::from(vec![7; 300_000]);
        let org = OrgId::new();
        let stored = files.put(StorageArea::Vault, &org, "owner", bytes, "application/pdf");
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
