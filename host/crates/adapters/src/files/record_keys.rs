//! Keys of records: each object of a record has a key of its own, which the record's key wraps.
//!
//! The keys are apart from the objects, and in no backup. A destroyed key leaves a mark in its place: without the key
//! no copy of the objects can be read any more, and with the mark a record that was destroyed is told from one whose
//! key is missing. See docs/decisions/0069-keys-by-record.md.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt as _;
use moka::future::Cache;
use object_store::path::Path;
use object_store::{
    ObjectStore as _, ObjectStoreExt as _, PutMode, PutOptions, PutPayload, UpdateVersion,
};
use tokio::task::spawn_blocking;

use super::cipher::{self, CONTEXT, ObjectCipher, ObjectEncryption, ObjectKey};
use super::{Files, FilesError, is_owner};
use holdfast_domain::at_rest::AtRestCipher;
use holdfast_domain::hash::hmac_sha256;
use holdfast_domain::token::random;

/// Begin of an object's header whose key is wrapped by that of its record.
pub(super) const RECORD: &str = "record ";
/// Begin of a record's key that is wrapped by a key derived from the master key.
const MASTER: &str = "master ";
/// Begin of what is left of a destroyed key.
const DESTROYED: &str = "destroyed";
/// Purpose of the key that seals a record's rows in a backup.
const ROWS: &str = "rows of the record";
/// File whose lock serializes changes of keys in a folder.
const LOCK: &str = ".lock";
/// Number of keys in memory, and how long they stay there. On other nodes a destroyed key is usable for so long.
const KNOWN: u64 = 10_000;
const KNOWN_FOR: Duration = Duration::from_secs(60);

/// Keys of all records.
pub(super) struct RecordKeys {
    /// Store of the wrapped keys, one object for each record, named by its id.
    place: Files,
    /// Wraps new keys, if documents have a key of their own.
    documents: Option<Arc<ObjectCipher>>,
    /// Wraps new keys otherwise, and opens those of before.
    master: AtRestCipher,
    known: Cache<String, ObjectKey>,
}

/// Stored key of a record that another key should wrap.
struct OutdatedKey {
    owner: String,
    before: Bytes,
    after: String,
    /// Version that was read, in a remote store.
    version: UpdateVersion,
}

fn context(owner: &str) -> String {
    // A key that is copied to the place of another record does not open there.
    format!("key of {owner}")
}

impl RecordKeys {
    pub(super) fn new(
        place: Files,
        documents: Option<Arc<ObjectCipher>>,
        master: &[ObjectKey],
    ) -> Result<Self, FilesError> {
        let master = AtRestCipher::of_generations(master);
        let master = master.ok_or_else(|| cipher::refused("no cipher for the keys of records"))?;
        let known = Cache::builder()
            .max_capacity(KNOWN)
            .time_to_live(KNOWN_FOR)
            .build();
        Ok(Self {
            place,
            documents,
            master,
            known,
        })
    }

    /// Returns the store of the keys.
    pub(super) fn place(&self) -> &Files {
        &self.place
    }

    /// Starts encrypting an object of a record.
    pub(super) async fn encrypt(&self, owner: &str) -> Result<ObjectEncryption, FilesError> {
        let record = self.find_or_create(owner).await?;
        let key = random::<32>();
        let wrapped = cipher::wrapped(&of_key(&record)?, &key, CONTEXT);
        ObjectEncryption::begin(&key, &format!("{RECORD}{wrapped}"))
    }

    /// Unwraps the key of an object of a record.
    pub(super) async fn object_key(
        &self,
        owner: &str,
        wrapped: &str,
    ) -> Result<ObjectKey, FilesError> {
        // Not in the cache of object keys, where it would outlive the record's.
        let record = self.find(owner).await?.ok_or(FilesError::NoRecordKey)?;
        cipher::opened(&of_key(&record)?, wrapped, CONTEXT)
    }

    /// Encrypts a text of a record; none if the record has no key.
    pub(super) async fn seal(&self, owner: &str, text: &str) -> Result<Option<String>, FilesError> {
        let Some(record) = self.find(owner).await? else {
            return Ok(None);
        };
        Ok(Some(of_rows(&record)?.encrypt(text, owner)))
    }

    /// Decrypts a text of [`RecordKeys::seal`].
    pub(super) async fn open_sealed(
        &self,
        owner: &str,
        sealed: &str,
    ) -> Result<String, FilesError> {
        let record = self.find(owner).await?.ok_or(FilesError::NoRecordKey)?;
        let text = of_rows(&record)?.open(sealed, owner);
        text.ok_or_else(cipher::unopened)
    }

    /// Returns the key of a record, if it has one.
    ///
    /// # Errors
    ///
    /// [`FilesError::Shredded`] if it was destroyed.
    pub(super) async fn find(&self, owner: &str) -> Result<Option<ObjectKey>, FilesError> {
        if let Some(key) = self.known.get(owner).await {
            return Ok(Some(key));
        }

        let text = match self.place.read_plain(owner).await {
            Err(FilesError::Gone) => return Ok(None),
            text => text?,
        };
        let key = self.open(owner, &text).await?;
        self.known.insert(owner.to_owned(), key).await;
        Ok(Some(key))
    }

    /// Returns the key of a record; its first write makes one.
    async fn find_or_create(&self, owner: &str) -> Result<ObjectKey, FilesError> {
        if let Some(key) = self.find(owner).await? {
            return Ok(key);
        }

        let (key, text) = self.new_key(owner).await?;
        match self.place.create(owner, vec![text.into()]).await {
            Ok(()) => {
                self.known.insert(owner.to_owned(), key).await;
                Ok(key)
            }
            // Another node was first, and its key counts.
            Err(FilesError::Exists) => self.find(owner).await?.ok_or(FilesError::NoRecordKey),
            Err(error) => Err(error),
        }
    }

    async fn new_key(&self, owner: &str) -> Result<(ObjectKey, String), FilesError> {
        let context = context(owner);
        match &self.documents {
            Some(documents) => documents.new_key(&context).await,
            None => {
                let key = random::<32>();
                let wrapped = cipher::wrapped(&self.master, &key, &context);
                Ok((key, format!("{MASTER}{wrapped}")))
            }
        }
    }

    async fn open(&self, owner: &str, text: &[u8]) -> Result<ObjectKey, FilesError> {
        let text = std::str::from_utf8(text).map_err(|_| cipher::unopened())?;
        if text.starts_with(DESTROYED) {
            return Err(FilesError::Shredded);
        }

        let context = context(owner);
        match (text.strip_prefix(MASTER), &self.documents) {
            (Some(wrapped), _) => cipher::opened(&self.master, wrapped, &context),
            (None, Some(documents)) => documents.open_key(text, &context).await,
            (None, None) => {
                let by = text.split_once(' ').map_or(text, |(by, _)| by);
                Err(cipher::unknown(by))
            }
        }
    }

    /// Destroys the key of a record, also one that was never made: a write that is late must not make it.
    pub(super) async fn destroy(&self, owner: &str) -> Result<(), FilesError> {
        let destroyed = match self.place.folder() {
            Some(folder) => {
                let (folder, owner) = (folder.to_owned(), owner.to_owned());
                in_folder(move || overwrite(&folder, &owner)).await
            }
            None => {
                // Not a delete: the mark is what tells a destroyed record from a lost key.
                let mark = PutPayload::from_static(DESTROYED.as_bytes());
                let path = Path::from(owner);
                let put = self.place.store.put(&path, mark);
                self.place.written(put).await.map(drop)
            }
        };

        // Also after a failure, whose effect is unknown.
        self.known.invalidate(owner).await;
        destroyed
    }

    /// Returns the number of keys that an older master key wraps.
    pub(super) async fn of_older_master(&self) -> Result<usize, FilesError> {
        let mut older = 0;
        let mut listed = self.place.store.list(None);
        while let Some(object) = self.place.in_time(listed.try_next()).await? {
            let outdated = self.outdated(object.location.as_ref()).await?;
            let is_older = outdated.is_some_and(|key| key.before.starts_with(MASTER.as_bytes()));
            older += usize::from(is_older);
        }

        Ok(older)
    }

    /// Wraps keys of older wrapping keys with the current one; returns their number.
    pub(super) async fn rewrap(&self) -> Result<usize, FilesError> {
        let mut rewrapped = 0;
        let mut listed = self.place.store.list(None);
        while let Some(object) = self.place.in_time(listed.try_next()).await? {
            if let Some(outdated) = self.outdated(object.location.as_ref()).await? {
                rewrapped += usize::from(self.replace(outdated).await?);
            }
        }

        Ok(rewrapped)
    }

    /// Returns a stored key with its text under the current wrapping key, if it has an older one.
    async fn outdated(&self, owner: &str) -> Result<Option<OutdatedKey>, FilesError> {
        // Locks, probes and unfinished writes have other names.
        if !is_owner(owner) {
            return Ok(None);
        }

        let read = self.place.store.get(&Path::from(owner));
        let object = match self.place.in_time(read).await {
            Err(FilesError::Gone) => return Ok(None),
            object => object?,
        };
        let version = UpdateVersion {
            e_tag: object.meta.e_tag.clone(),
            version: object.meta.version.clone(),
        };
        let before = self.place.in_time(object.bytes()).await?;

        let key = match self.open(owner, &before).await {
            Err(FilesError::Shredded) => return Ok(None),
            key => key?,
        };
        let text = String::from_utf8_lossy(&before);
        let context = context(owner);
        let by_documents = self.documents.as_ref();
        let by_documents = by_documents.and_then(|by| by.wrapped_anew(&text, &key, &context));
        let after = by_documents.or_else(|| {
            let wrapped = text.strip_prefix(MASTER)?;
            let anew = self.master.reencrypted(wrapped, &context)?;
            Some(format!("{MASTER}{anew}"))
        });

        Ok(after.map(|after| OutdatedKey {
            owner: owner.to_owned(),
            before,
            after,
            version,
        }))
    }

    /// Replaces a stored key. Returns false if it has changed since it was read: above all, one that was destroyed
    /// meanwhile stays destroyed.
    async fn replace(&self, key: OutdatedKey) -> Result<bool, FilesError> {
        if let Some(folder) = self.place.folder().map(FilePath::to_owned) {
            return in_folder(move || replace_in(&folder, &key)).await;
        }

        let options = PutOptions::from(PutMode::Update(key.version));
        let path = Path::from(key.owner);
        let put = self.place.store.put_opts(&path, key.after.into(), options);
        match self.place.written(put).await {
            Ok(_) => Ok(true),
            Err(FilesError::Gone | FilesError::Store(object_store::Error::Precondition { .. })) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns the cipher that wraps keys of objects.
fn of_key(record: &ObjectKey) -> Result<AtRestCipher, FilesError> {
    AtRestCipher::new(record).ok_or_else(|| cipher::refused("no cipher"))
}

/// Returns the cipher of a record's rows in backups.
fn of_rows(record: &ObjectKey) -> Result<AtRestCipher, FilesError> {
    of_key(&hmac_sha256(record, &[ROWS.as_bytes()]))
}

async fn in_folder<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, FilesError> {
    let done = spawn_blocking(work).await.map_err(io::Error::other);
    done.flatten().map_err(FilesError::RecordKey)
}

/// Locks a folder of keys against other changes, of this process and of others, until the file is closed.
fn locked(folder: &FilePath) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(folder.join(LOCK))?;
    file.lock()?;
    Ok(file)
}

fn staged(folder: &FilePath, owner: &str) -> PathBuf {
    // No name of a record, so that nothing takes it for a key.
    folder.join(format!("{owner}#1"))
}

/// Overwrites a key in its place on the disk, so that not even its wrapped form is left there.
fn overwrite(folder: &FilePath, owner: &str) -> io::Result<()> {
    let _lock = locked(folder)?;
    let mut options = OpenOptions::new();
    let options = options.write(true).truncate(false).mode(0o600);

    // A replacement that broke off has left a second copy.
    let staged = staged(folder, owner);
    match options.open(&staged) {
        Ok(file) => {
            mark(file)?;
            fs::remove_file(&staged)?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }

    mark(options.create(true).open(folder.join(owner))?)?;
    File::open(folder)?.sync_all()
}

/// Writes the mark of a destroyed key over all bytes of a file.
fn mark(mut file: File) -> io::Result<()> {
    let length = usize::try_from(file.metadata()?.len()).unwrap_or_default();
    file.write_all(format!("{DESTROYED:length$}").as_bytes())?;
    file.sync_all()
}

/// Replaces a key in a folder. Returns false if it is not the one that was read.
fn replace_in(folder: &FilePath, key: &OutdatedKey) -> io::Result<bool> {
    let _lock = locked(folder)?;
    let path = folder.join(&key.owner);
    let mut old = OpenOptions::new().read(true).write(true).open(&path)?;
    let mut text = Vec::new();
    old.read_to_end(&mut text)?;
    if text != key.before {
        return Ok(false);
    }

    let staged = staged(folder, &key.owner);
    let mut options = OpenOptions::new();
    // An earlier replacement may have broken off.
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let mut new = options.open(&staged)?;
    new.write_all(key.after.as_bytes())?;
    new.sync_all()?;
    fs::rename(&staged, &path)?;
    File::open(folder)?.sync_all()?;

    // The bytes of the old form must not stay on the disk, or they would survive the key.
    old.rewind()?;
    old.write_all(&vec![b' '; text.len()])?;
    old.sync_all()?;
    Ok(true)
}
