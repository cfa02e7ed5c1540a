//! Keys of records: each object of a record has a key of its own, which the record's key wraps.
//!
//! The keys are apart from the objects, and in no backup. A destroyed key leaves a mark in its place: without the key
//! no copy of the objects can be read any more, and the mark distinguishes a destroyed record from one with a missing
//! key. See docs/decisions/0069-keys-by-record.md.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path as FilePath, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt as _;
use moka::future::Cache;
use object_store::path::Path;
use object_store::{
    ObjectStore as _, ObjectStoreExt as _, PutMode, PutOptions, PutPayload, UpdateVersion,
};
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

use super::cipher::{self, CONTEXT, ObjectEncryption, ObjectKey};
use super::{Files, FilesError, is_owner};
use holdfast_domain::at_rest::AtRestCipher;
use holdfast_domain::hash::hmac_sha256;
use holdfast_domain::token::random;

/// Start of an object's header if its key is wrapped by the key of its record.
pub(super) const RECORD: &str = "record ";
/// Begin of a record's key that is wrapped by a key derived from the master key.
const MASTER: &str = "master ";
/// Start of the mark that replaces a destroyed key.
const DESTROYED: &str = "destroyed";
/// Purpose of the key that seals a record's rows in a backup.
const ROWS: &str = "rows of the record";
/// Object with the same random name in the store of the objects and in that of the keys: they belong together.
const PLACE: &str = "place-of-record-keys";
/// Lock file that serializes changes of keys in a folder.
const LOCK: &str = ".lock";
/// Number of keys in memory, and how long they stay there. On other nodes a destroyed key stays usable for that time.
const KNOWN: u64 = 10_000;
const KNOWN_FOR: Duration = Duration::from_secs(60);

/// Keys of all records.
pub(super) struct RecordKeys {
    /// Store of the wrapped keys, one object for each record, named by its id.
    place: Files,
    /// Store of the objects. If documents have a key of their own, it wraps new keys.
    objects: Files,
    /// Wraps new keys otherwise, and opens those of before.
    master: AtRestCipher,
    known: Cache<String, ObjectKey>,
    /// Number of keys that this process has destroyed.
    destroyed: AtomicU64,
    /// Set once the place is known to be the one of the earlier keys.
    is_paired: OnceCell<()>,
}

/// Result of a walk over the keys of all records.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WalkedRecordKeys {
    /// Number of keys that the walk was about.
    pub count: usize,
    /// Records with keys that do not open. A walk passes over them.
    pub damaged: Vec<String>,
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
        objects: Files,
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
            objects,
            master,
            known,
            destroyed: AtomicU64::new(0),
            is_paired: OnceCell::new(),
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

    /// Encrypts a text of a record. One without objects gets its key now.
    pub(super) async fn seal(&self, owner: &str, text: &str) -> Result<String, FilesError> {
        let record = self.find_or_create(owner).await?;
        Ok(of_rows(&record)?.encrypt(text, owner))
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

        let destroyed = self.destroyed.load(Ordering::SeqCst);
        let text = match self.place.read_plain(owner).await {
            Err(FilesError::Gone) => return Ok(None),
            text => text?,
        };
        let key = self.open(owner, &text).await?;

        self.known.insert(owner.to_owned(), key).await;
        // It may have been destroyed since it was read, and must not stay here.
        if self.destroyed.load(Ordering::SeqCst) != destroyed {
            self.known.invalidate(owner).await;
        }
        Ok(Some(key))
    }

    /// Returns the key of a record; its first write makes one.
    async fn find_or_create(&self, owner: &str) -> Result<ObjectKey, FilesError> {
        if let Some(key) = self.find(owner).await? {
            return Ok(key);
        }

        self.require_pair().await?;
        let (key, text) = self.new_key(owner).await?;
        match self.place.create(owner, vec![text.into()]).await {
            Ok(()) => Ok(key),
            // Another node was first, and its key counts.
            Err(FilesError::Exists) => self.find(owner).await?.ok_or(FilesError::NoRecordKey),
            Err(error) => Err(error),
        }
    }

    /// Requires that the earlier keys of these objects are in this place. In another one, a record would get a second key,
    /// and no place would have the keys of all its objects.
    async fn require_pair(&self) -> Result<(), FilesError> {
        let pair = || async {
            let name = hex::encode(random::<16>());
            match self.place.create(PLACE, vec![name.into()]).await {
                Ok(()) | Err(FilesError::Exists) => {}
                Err(error) => return Err(error),
            }

            let name = self.place.read_plain(PLACE).await?;
            match self.objects.keep(PLACE, name).await {
                Err(FilesError::Tampered { .. }) => Err(cipher::refused(
                    "storage.record_keys is not the place where the keys of earlier records are; name that one again",
                )),
                kept => kept,
            }
        };
        self.is_paired.get_or_try_init(pair).await?;
        Ok(())
    }

    async fn new_key(&self, owner: &str) -> Result<(ObjectKey, String), FilesError> {
        let context = context(owner);
        match &self.objects.cipher {
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
        match (text.strip_prefix(MASTER), &self.objects.cipher) {
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
                // Not a delete: the mark distinguishes a destroyed record from a lost key.
                let mark = PutPayload::from_static(DESTROYED.as_bytes());
                let path = Path::from(owner);
                let put = self.place.store.put(&path, mark);
                self.place.written(put).await.map(drop)
            }
        };

        // Also after a failure, because its effect is unknown. In this order, a concurrent reader does not cache the key.
        self.destroyed.fetch_add(1, Ordering::SeqCst);
        self.known.invalidate(owner).await;
        destroyed
    }

    /// Counts the keys that an older master key wraps.
    pub(super) async fn of_older_master(&self) -> Result<WalkedRecordKeys, FilesError> {
        self.walk(false).await
    }

    /// Wraps keys of older wrapping keys with the current one, and counts them.
    pub(super) async fn rewrap(&self) -> Result<WalkedRecordKeys, FilesError> {
        self.walk(true).await
    }

    /// Walks over all keys that have an older wrapping key. One that does not open stops no other.
    async fn walk(&self, rewraps: bool) -> Result<WalkedRecordKeys, FilesError> {
        let (mut count, mut damaged) = (0, Vec::new());
        let mut listed = self.place.store.list(None);
        while let Some(object) = self.place.in_time(listed.try_next()).await? {
            let owner: &str = object.location.as_ref();
            let outdated = match self.outdated(owner).await {
                Err(FilesError::Encryption(_) | FilesError::Damaged) => {
                    damaged.push(owner.to_owned());
                    continue;
                }
                outdated => outdated?,
            };
            let Some(outdated) = outdated else {
                continue;
            };
            let is_counted = if rewraps {
                self.replace(outdated).await?
            } else {
                outdated.before.starts_with(MASTER.as_bytes())
            };
            count += usize::from(is_counted);
        }

        damaged.sort_unstable();
        Ok(WalkedRecordKeys { count, damaged })
    }

    /// Returns a stored key with its text under the current wrapping key, if it has an older one.
    async fn outdated(&self, owner: &str) -> Result<Option<OutdatedKey>, FilesError> {
        // Locks, probes and unfinished writes have other names.
        if !is_owner(owner) {
            return Ok(None);
        }

        let path = Path::from(owner);
        let object = match self.place.in_time(self.place.store.get(&path)).await {
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
        let by_documents = self.objects.cipher.as_ref();
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
    // No name of a record, so that nothing takes it for a key, and none that the store links a new key to.
    folder.join(format!("{owner}.next"))
}

/// Overwrites a key in its place on the disk, so that not even its wrapped form is left there.
fn overwrite(folder: &FilePath, owner: &str) -> io::Result<()> {
    let _lock = locked(folder)?;
    let mut options = OpenOptions::new();
    let options = options.write(true).truncate(false).mode(0o600);

    // A replacement that broke off has left a second copy.
    let staged = staged(folder, owner);
    match options.open(&staged) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        second => {
            mark(second?)?;
            fs::remove_file(&staged)?;
        }
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::StreamExt as _;
    use holdfast_base::config::{RecordKeyPlace, StorageSettings};
    use holdfast_domain::envelope::StoredFile;
    use holdfast_domain::id::{EnvelopeId, OrgId};
    use object_store::memory::InMemory;
    use tempfile::TempDir;

    use super::super::StorageArea;
    use super::*;

    /// Folders of one installation.
    struct Installation {
        data: TempDir,
        org: OrgId,
    }

    impl Installation {
        fn new() -> Self {
            Self {
                data: tempfile::tempdir().unwrap(),
                org: OrgId::new(),
            }
        }

        fn keys(&self) -> PathBuf {
            self.data.path().join("record-keys")
        }

        /// Opens the store as a node does, with master keys of these bytes.
        fn node(&self, master: &[u8]) -> Files {
            let master: Vec<ObjectKey> = master.iter().map(|byte| [*byte; 32]).collect();
            let place = RecordKeyPlace::Folder(self.keys());
            self.without_keys()
                .with_record_keys(&place, &StorageSettings::default(), &master)
                .unwrap()
        }

        fn without_keys(&self) -> Files {
            Files::local(&self.data.path().join("objects")).unwrap()
        }

        async fn put(
            &self,
            files: &Files,
            owner: &EnvelopeId,
            text: &'static str,
        ) -> Result<StoredFile, FilesError> {
            let (area, bytes) = (StorageArea::Vault, Bytes::from_static(text.as_bytes()));
            let put = files.put(area, &self.org, owner.as_str(), bytes, "text/plain");
            put.await
        }

        /// Returns whether a file of the installation has a text.
        fn has(&self, text: &[u8]) -> bool {
            let folders = [self.keys(), self.data.path().join("objects")];
            folders.iter().any(|folder| is_below(folder, text))
        }
    }

    fn is_below(folder: &FilePath, text: &[u8]) -> bool {
        fs::read_dir(folder).unwrap().any(|entry| {
            let path = entry.unwrap().path();
            if path.is_dir() {
                return is_below(&path, text);
            }
            let bytes = fs::read(&path).unwrap();
            bytes.windows(text.len()).any(|part| part == text)
        })
    }

    #[tokio::test]
    async fn two_nodes_agree_on_the_key_of_a_record() {
        let at = Installation::new();
        let (one, other) = (at.node(&[1]), at.node(&[1]));
        for _ in 0..20 {
            let record = EnvelopeId::new();
            let (first, second) = tokio::join!(
                at.put(&one, &record, "the contract"),
                at.put(&other, &record, "its copy")
            );
            let (first, second) = (first.unwrap(), second.unwrap());
            assert_eq!(other.get(&first).await.unwrap(), "the contract");
            assert_eq!(one.get(&second).await.unwrap(), "its copy");
        }

        assert!(!at.has(b"the contract"));
    }

    #[tokio::test]
    async fn a_destroyed_key_destroys_the_objects_of_its_record_alone() {
        let at = Installation::new();
        let files = at.node(&[1]);
        let (record, other) = (EnvelopeId::new(), EnvelopeId::new());
        let file = at.put(&files, &record, "the contract").await.unwrap();
        let kept = at.put(&files, &other, "another one").await.unwrap();
        let wrapped = fs::read(at.keys().join(record.as_str())).unwrap();

        for _ in 0..2 {
            files.destroy_record_key(record.as_str()).await.unwrap();
        }

        for node in [&files, &at.node(&[1])] {
            let read = node.get(&file).await;
            assert!(matches!(read, Err(FilesError::Shredded)), "{read:?}");
            let written = at.put(node, &record, "a late write").await;
            assert!(matches!(written, Err(FilesError::Shredded)), "{written:?}");
            assert!(node.is_shredded(record.as_str()).await.unwrap());
            assert_eq!(node.get(&kept).await.unwrap(), "another one");
        }
        assert!(!at.has(&wrapped));
    }

    /// The mark keeps a write that comes late from making a key.
    #[tokio::test]
    async fn a_record_without_a_key_is_destroyed_as_well() {
        let at = Installation::new();
        let record = EnvelopeId::new();
        let files = at.node(&[1]);
        files.destroy_record_key(record.as_str()).await.unwrap();
        let written = at.put(&files, &record, "a late write").await;
        assert!(matches!(written, Err(FilesError::Shredded)), "{written:?}");

        let without = at.without_keys();
        without.destroy_record_key(record.as_str()).await.unwrap();
    }

    #[tokio::test]
    async fn objects_from_before_the_keys_stay_readable() {
        let at = Installation::new();
        let record = EnvelopeId::new();
        let before = at.put(&at.without_keys(), &record, "of before").await;
        let before = before.unwrap();
        let files = at.node(&[1]);
        let after = at.put(&files, &record, "of today").await.unwrap();
        assert_eq!(files.get(&before).await.unwrap(), "of before");

        let switched_off = at.without_keys().get(&after).await.unwrap_err().to_string();
        assert!(
            switched_off.contains("storage.record_keys is not set"),
            "{switched_off}"
        );
        let large: Vec<Bytes> = files
            .read_in_pieces(&after)
            .await
            .unwrap()
            .map(Result::unwrap)
            .collect()
            .await;
        assert_eq!(large.concat(), b"of today");
    }

    #[tokio::test]
    async fn the_key_of_another_record_opens_nothing() {
        let at = Installation::new();
        let files = at.node(&[1]);
        let (record, other) = (EnvelopeId::new(), EnvelopeId::new());
        let file = at.put(&files, &record, "the contract").await.unwrap();
        let others = at.put(&files, &other, "another one").await.unwrap();

        // The stored key of another record, and the object of another record, in the places of this one.
        let (key, object) = (
            at.keys().join(record.as_str()),
            at.data.path().join("objects"),
        );
        let wrapped = fs::read(&key).unwrap();
        fs::remove_file(&key).unwrap();
        fs::copy(at.keys().join(other.as_str()), &key).unwrap();
        let moved = at.node(&[1]).get(&file).await;
        assert!(matches!(moved, Err(FilesError::Encryption(_))), "{moved:?}");

        fs::write(&key, wrapped).unwrap();
        fs::remove_file(object.join(&file.key)).unwrap();
        fs::copy(object.join(&others.key), object.join(&file.key)).unwrap();
        let moved = at.node(&[1]).get(&file).await;
        assert!(matches!(moved, Err(FilesError::Encryption(_))), "{moved:?}");
    }

    #[tokio::test]
    async fn a_missing_key_is_told_from_a_destroyed_one() {
        let at = Installation::new();
        let record = EnvelopeId::new();
        let file = at.put(&at.node(&[1]), &record, "the contract").await;
        fs::remove_file(at.keys().join(record.as_str())).unwrap();

        let files = at.node(&[1]);
        let read = files.get(&file.unwrap()).await;
        assert!(matches!(read, Err(FilesError::NoRecordKey)), "{read:?}");
        assert!(!files.is_shredded(record.as_str()).await.unwrap());
    }

    /// A record with two keys could not be read with either of them.
    #[tokio::test]
    async fn no_key_is_made_in_another_place() {
        let at = Installation::new();
        let (record, other) = (EnvelopeId::new(), EnvelopeId::new());
        let files = at.node(&[1]);
        let file = at.put(&files, &record, "the contract").await.unwrap();

        let place = RecordKeyPlace::Folder(at.data.path().join("other-keys"));
        let elsewhere =
            at.without_keys()
                .with_record_keys(&place, &StorageSettings::default(), &[[1; 32]]);
        let elsewhere = elsewhere.unwrap();
        for record in [&record, &other] {
            let written = at.put(&elsewhere, record, "a copy").await;
            let why = written.unwrap_err().to_string();
            assert!(why.contains("not the place"), "{why}");
        }

        at.put(&files, &other, "another one").await.unwrap();
        assert_eq!(files.get(&file).await.unwrap(), "the contract");
    }

    #[tokio::test]
    async fn keys_are_wrapped_by_the_next_master_key() {
        let at = Installation::new();
        let (record, gone) = (EnvelopeId::new(), EnvelopeId::new());
        let before = at.node(&[1]);
        let file = at.put(&before, &record, "the contract").await.unwrap();
        at.put(&before, &gone, "a destroyed one").await.unwrap();
        before.destroy_record_key(gone.as_str()).await.unwrap();
        let wrapped = fs::read(at.keys().join(record.as_str())).unwrap();

        let both = at.node(&[2, 1]);
        assert_eq!(both.record_keys_of_older_master().await.unwrap().count, 1);
        assert_eq!(both.rewrap_record_keys().await.unwrap().count, 1);
        assert_eq!(both.rewrap_record_keys().await.unwrap().count, 0);
        assert_eq!(both.record_keys_of_older_master().await.unwrap().count, 0);
        assert!(!at.has(&wrapped));

        let after = at.node(&[2]);
        assert_eq!(after.get(&file).await.unwrap(), "the contract");
        assert!(after.is_shredded(gone.as_str()).await.unwrap());
    }

    #[tokio::test]
    async fn a_damaged_key_stops_no_other_and_is_named() {
        let at = Installation::new();
        let before = at.node(&[1]);
        let records: Vec<EnvelopeId> = (0..3).map(|_| EnvelopeId::new()).collect();
        for record in &records {
            at.put(&before, record, "the contract").await.unwrap();
        }
        let damaged = records[1].as_str();
        fs::write(at.keys().join(damaged), "master damaged").unwrap();

        let both = at.node(&[2, 1]);
        let walked = WalkedRecordKeys {
            count: 2,
            damaged: vec![damaged.to_owned()],
        };
        assert_eq!(both.record_keys_of_older_master().await.unwrap(), walked);
        assert_eq!(both.rewrap_record_keys().await.unwrap(), walked);
        assert_eq!(both.record_keys_of_older_master().await.unwrap().count, 0);
    }

    #[tokio::test]
    async fn keys_follow_the_first_key_of_documents() {
        let at = Installation::new();
        let file = at.data.path().join("document-keys");
        let line = |name: &str, byte: &str| format!("{name} {}=\n", byte.repeat(43));
        let place = RecordKeyPlace::Folder(at.keys());
        let node = || {
            let settings = StorageSettings {
                encryption_key_file: Some(file.clone()),
                ..StorageSettings::default()
            };
            let files = at.without_keys().with(&settings).unwrap();
            files
                .with_record_keys(&place, &settings, &[[1; 32]])
                .unwrap()
        };

        let record = EnvelopeId::new();
        let stored = at.put(&at.node(&[1]), &record, "the contract").await;
        let stored = stored.unwrap();
        for lines in [
            line("2026", "A"),
            format!("{}{}", line("2027", "E"), line("2026", "A")),
        ] {
            fs::write(&file, lines).unwrap();
            assert_eq!(node().rewrap_record_keys().await.unwrap().count, 1);
            assert_eq!(node().rewrap_record_keys().await.unwrap().count, 0);
            assert_eq!(node().get(&stored).await.unwrap(), "the contract");
        }

        fs::write(&file, line("2027", "E")).unwrap();
        assert_eq!(node().get(&stored).await.unwrap(), "the contract");
    }

    /// In an object store, a change names the version that it replaces.
    #[tokio::test]
    async fn a_key_that_was_destroyed_meanwhile_is_not_replaced() {
        let store = || Files::over(Arc::new(InMemory::new()), Duration::from_secs(5));
        let (place, objects) = (store(), store());
        let keys =
            |master: &[ObjectKey]| RecordKeys::new(place.clone(), objects.clone(), master).unwrap();
        let record = EnvelopeId::new();
        keys(&[[1; 32]])
            .find_or_create(record.as_str())
            .await
            .unwrap();

        let both = keys(&[[2; 32], [1; 32]]);
        let outdated = both.outdated(record.as_str()).await.unwrap().unwrap();
        both.destroy(record.as_str()).await.unwrap();
        assert!(!both.replace(outdated).await.unwrap());

        let read = both.find(record.as_str()).await;
        assert!(matches!(read, Err(FilesError::Shredded)));
    }

    #[tokio::test]
    async fn a_sealed_text_opens_with_the_key_of_its_record_alone() {
        let at = Installation::new();
        let files = at.node(&[1]);
        let (record, other) = (EnvelopeId::new(), EnvelopeId::new());
        // The other record has no object, and gets its key with the text.
        at.put(&files, &record, "the contract").await.unwrap();
        let (record, other) = (record.as_str(), other.as_str());
        files.seal_with_record_key(other, "rows").await.unwrap();

        let sealed = files.seal_with_record_key(record, "rows").await.unwrap();
        assert_eq!(
            files.open_with_record_key(record, &sealed).await.unwrap(),
            "rows"
        );
        assert!(files.open_with_record_key(other, &sealed).await.is_err());

        files.destroy_record_key(record).await.unwrap();
        let opened = files.open_with_record_key(record, &sealed).await;
        assert!(matches!(opened, Err(FilesError::Shredded)));
    }
}
