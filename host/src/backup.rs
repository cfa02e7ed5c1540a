//! Backup and restore of a running installation with embedded storage: database, objects, keys and
//! outbox as one consistent set.
//!
//! Objects are created and never changed, and their deletion is suspended during a backup, so that
//! every object that the database snapshot refers to still exists when it is copied. The log's
//! checkpoints are copied before the database: a checkpoint newer than the snapshot would make the
//! log look truncated.
//!
//! With keys of records (`storage.record_keys`) a backup has no readable word of a record: its objects are encrypted, and
//! its rows are sealed, with a key that is in no backup. Destroying the key destroys what backups have of the record.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use holdfast_adapters::files::{Files, FilesError, PROBES};
use holdfast_base::config::{Config, RecordKeyPlace};
use holdfast_base::disk;
use holdfast_domain::clock::{Clock, Timestamp};
use holdfast_domain::id::{OrgId, TemplateId};
use holdfast_domain::ledger::{DESTROYED, NewEntry};
use holdfast_store::installation::{self, BACKUP_OF, LAST_BACKUP};
use holdfast_store::row::OwnedEnvelope;
use holdfast_store::{Store, StoreError, chores, ledger, moves, sealed_records};

/// List of a backup's files. It is written last, so that an incomplete backup has none.
const MANIFEST: &str = "manifest.json";
const DATABASE: &str = "holdfast.db";
/// Folders below the data folder in copying order; the database follows the checkpoints.
const CHECKPOINTS: &str = "objects/ledger/checkpoints";
const FOLDERS: [&str; 3] = ["objects", "keys", OUTBOX];
/// Mails that an installation without a mail server has written. They name people, so a sealed backup has none.
const OUTBOX: &str = "outbox";
/// Key of this installation as a witness. A restored database has forgotten the heads that were cosigned since, and
/// with this key it could cosign a second history.
const WITNESS_KEY: &str = "keys/witness.key";
/// Master key that may be there before a restore. Once it was rotated, keys of records are wrapped by a newer one than that
/// of the backup.
const NEWER_KEY: &str = "keys/master.next.key";
/// Time after the last renewal during which deletion stays suspended.
const HOLD: Duration = Duration::from_secs(600);
const RENEWAL: Duration = Duration::from_secs(30);
const PIECE: usize = 1024 * 1024;
/// Folder of the data folder for the copy of the database while its records are being sealed.
const UNSEALED: &str = "backup-in-progress";
/// Name of a database that is being restored.
const UNFINISHED: &str = "holdfast.restoring.db";
/// Records that are sealed in one transaction.
const AT_ONCE: i64 = 100;
/// Actor of entries about destructions that a restored backup does not know.
const OPERATOR: &str = "operator";

/// Content of a backup.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BackupManifest {
    /// Time at which the backup began.
    pub created_at: Timestamp,
    /// Version of the program that made it.
    pub version: String,
    /// Whether rows of records are sealed with the keys of the records, which are not in the backup.
    #[serde(default)]
    pub is_sealed: bool,
    /// Files by path below the data folder.
    pub files: BTreeMap<String, BackupFile>,
}

/// File of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupFile {
    /// SHA-256 in lower-case hex.
    pub sha256: String,
    /// Size in bytes.
    pub size: u64,
}

/// What a restore did.
#[derive(Debug)]
pub struct RestoredBackup {
    /// Content of the backup.
    pub manifest: BackupManifest,
    /// Records with sealed rows that were put back.
    pub unsealed: u64,
    /// Records that were destroyed after the backup, and were destroyed again.
    pub destroyed: u64,
    /// Records that cannot be read, because their keys are missing.
    pub without_key: u64,
}

/// Reason a backup or restore failed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The installation does not use embedded storage.
    #[error("{0}")]
    NotEmbedded(&'static str),
    /// The target folder is not empty.
    #[error("{0} is not empty")]
    NotEmpty(String),
    /// The backup is not as it was made.
    #[error("the backup is damaged: {0}")]
    Damaged(String),
    /// Records of the backup are sealed with keys that this installation has not.
    #[error("{0}")]
    NoKeys(&'static str),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The keys of records failed.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// The restored store could not be opened.
    #[error(transparent)]
    Open(Box<dyn std::error::Error + Send + Sync>),
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// Path of the file.
        path: String,
        /// I/O error.
        source: io::Error,
    },
}

trait IoErrorAt<T> {
    fn at(self, path: &Path) -> Result<T, BackupError>;
}

impl<T> IoErrorAt<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T, BackupError> {
        self.map_err(|source| BackupError::Io {
            path: path.display().to_string(),
            source,
        })
    }
}

fn check_embedded(config: &Config) -> Result<(), BackupError> {
    if config.database_url.is_some() {
        return Err(BackupError::NotEmbedded(
            "only the embedded database is backed up this way; use the tools of your database",
        ));
    }
    if config.storage_url.is_some() {
        return Err(BackupError::NotEmbedded(
            "only objects in the data folder are backed up this way; use the tools of your object store",
        ));
    }

    Ok(())
}

/// Backs up a data folder while its server may be running. `files` has the keys of records, if there are any.
///
/// # Errors
/// Fails if storage is not embedded, `to` is not empty, or a file cannot be copied.
pub async fn back_up(
    config: &Config,
    files: Option<&Files>,
    to: &Path,
) -> Result<BackupManifest, BackupError> {
    check_embedded(config)?;
    make_empty(to, |_| false)?;
    let clock = Clock::ahead_by(config.clock_offset.unwrap_or_default());
    // No migration: a backup program of another version must not change the schema of a running server.
    let store = Store::connect(&config.database_url()).await?;
    let created_at = clock.now();
    remove_unsealed(config, &store, created_at).await?;
    // A database that a move has left takes no notes, and nothing that it refers to is deleted.
    let copied = match moves::unsettled(&store).await? {
        Some(_) => copy_all(config, files, &store, to).await?,
        None => copy_held(config, files, &store, to, &clock, created_at).await?,
    };

    let manifest = BackupManifest {
        created_at,
        version: env!("CARGO_PKG_VERSION").into(),
        is_sealed: files.is_some_and(Files::has_record_keys),
        files: copied,
    };
    let text = serde_json::to_vec_pretty(&manifest).unwrap_or_default();

    let (part, whole) = (to.join("manifest.part"), to.join(MANIFEST));
    fs::write(&part, text).at(&part)?;
    File::open(&part)
        .and_then(|file| file.sync_all())
        .at(&part)?;

    // The rename makes the manifest appear complete or not at all.
    fs::rename(&part, &whole).at(&whole)?;
    sync_folder(to)?;

    Ok(manifest)
}

/// Copies everything while objects are held, and notes the time of the backup.
async fn copy_held(
    config: &Config,
    files: Option<&Files>,
    store: &Store,
    to: &Path,
    clock: &Clock,
    created_at: Timestamp,
) -> Result<BTreeMap<String, BackupFile>, BackupError> {
    let held = Cell::new(created_at + HOLD);

    // Before the first copy, so that nothing the snapshot refers to is deleted meanwhile.
    chores::hold(store, chores::BACKUP, held.get()).await?;
    let renewals = async {
        loop {
            tokio::time::sleep(RENEWAL).await;
            let until = clock.now() + HOLD;
            match chores::hold(store, chores::BACKUP, until).await {
                Ok(()) => held.set(until),
                // A hold lasts twenty renewals, so one failed renewal endangers nothing.
                Err(error) => tracing::warn!(%error, "backup could not extend its hold on objects"),
            }
        }
    };

    // The hold must not lapse while large objects are copied, so both futures run side by side.
    let copied = tokio::select! {
        copied = copy_all(config, files, store, to) => copied,
        never = renewals => never,
    };

    // Also after a failed copy, so that deletion resumes at once.
    chores::let_go(store, chores::BACKUP, held.get()).await?;
    let copied = copied?;
    // Recorded after a complete copy only, because the console shows operators the time of the last one.
    chores::hold(store, LAST_BACKUP, created_at).await?;
    chores::hold(store, &format!("{BACKUP_OF}{created_at}"), created_at).await?;

    Ok(copied)
}

/// Removes what a backup that broke off has left of the database, unless another backup runs.
pub async fn remove_unsealed(
    config: &Config,
    store: &Store,
    now: Timestamp,
) -> Result<(), BackupError> {
    let folder = config.data_dir.join(UNSEALED);
    if !folder.exists() {
        return Ok(());
    }

    let running = chores::due(store, chores::BACKUP).await?;
    if running.is_some_and(|until| until > now) {
        return Ok(());
    }
    fs::remove_dir_all(&folder).at(&folder)
}

/// Forgets backups of before a time, which the operator has deleted. Returns their number.
pub async fn forget(config: &Config, before: Timestamp) -> Result<usize, BackupError> {
    let store = Store::connect(&config.database_url()).await?;
    let mut connection = store.read().await?;
    let made = installation::signs(&mut connection, BACKUP_OF).await?;
    drop(connection);

    let mut forgotten = 0;
    for (name, at) in made.into_iter().filter(|(_, at)| *at < before) {
        chores::let_go(&store, &format!("{BACKUP_OF}{name}"), at).await?;
        forgotten += 1;
    }

    Ok(forgotten)
}

/// Writes the snapshot of the database. With keys of records it is made in the data folder, so that no readable word of
/// a record gets to the disk of the backup.
async fn snapshot(
    config: &Config,
    files: Option<&Files>,
    store: &Store,
    to: &Path,
) -> Result<(), BackupError> {
    let Some(files) = files.filter(|files| files.has_record_keys()) else {
        return Ok(store.snapshot_into(to).await?);
    };

    // Two backups at once have a folder each.
    let folder = config.data_dir.join(UNSEALED);
    let folder = folder.join(std::process::id().to_string());
    disk::make_folder(&folder).at(&folder)?;
    let sealed = seal_into(files, store, &folder.join(DATABASE), to).await;
    fs::remove_dir_all(&folder).at(&folder)?;
    sealed
}

async fn seal_into(
    files: &Files,
    store: &Store,
    copy: &Path,
    to: &Path,
) -> Result<(), BackupError> {
    store.snapshot_into(copy).await?;
    let copy = Store::connect(&address(copy)).await?;
    sealed_records::prepare(&copy).await?;

    let mut last: Option<OwnedEnvelope> = None;
    loop {
        let records = sealed_records::records(&copy, last.as_ref(), AT_ONCE).await?;
        if records.is_empty() {
            break;
        }
        seal_records(files, &copy, &records).await?;
        last = records.last().cloned();
    }
    sealed_records::finish(&copy).await?;

    // A new file: pages of the copy still have the removed values.
    copy.snapshot_into(to).await?;
    copy.close().await;
    Ok(())
}

async fn seal_records(
    files: &Files,
    copy: &Store,
    records: &[OwnedEnvelope],
) -> Result<(), BackupError> {
    let mut tx = copy.begin().await?;
    let rows = sealed_records::rows(&mut tx, records).await?;
    // At once, because each key takes a request to a remote store.
    let sealed = rows.into_iter();
    let sealed = sealed.map(|(record, rows)| seal(files, record, rows));
    let sealed = future::try_join_all(sealed).await?;
    sealed_records::seal(&mut tx, &sealed).await?;
    Ok(tx.commit().await?)
}

/// Seals the rows of a record. None if its key was destroyed since the copy was made.
async fn seal(
    files: &Files,
    record: OwnedEnvelope,
    rows: String,
) -> Result<(OwnedEnvelope, Option<String>), FilesError> {
    let owner = record.envelope.as_str();
    let sealed = files.seal_with_record_key(owner, &rows).await;
    match sealed {
        Ok(sealed) => Ok((record, Some(sealed))),
        Err(FilesError::Shredded) => Ok((record, None)),
        Err(error) => Err(error),
    }
}

/// Returns the address of a SQLite file.
fn address(file: &Path) -> String {
    format!("sqlite://{}", file.display())
}

async fn copy_all(
    config: &Config,
    files_of_records: Option<&Files>,
    store: &Store,
    to: &Path,
) -> Result<BTreeMap<String, BackupFile>, BackupError> {
    let from = config.data_dir.clone();
    // Checkpoints newer than the snapshot would make the restored log look truncated, so they come first.
    let mut files = blocking(from.clone(), to, |from, to| {
        copy_below(from, to, CHECKPOINTS, |_| true)
    })
    .await?;
    let snapshot = to.join(DATABASE);
    self::snapshot(config, files_of_records, store, &snapshot).await?;

    // Objects follow the snapshot, so that everything it refers to exists already.
    let is_sealed = files_of_records.is_some_and(Files::has_record_keys);
    let others = blocking(from, to, move |from, to| {
        File::open(&snapshot)
            .and_then(|file| file.sync_all())
            .at(&snapshot)?;

        let mut files = BTreeMap::from([(DATABASE.to_owned(), digest(&snapshot)?)]);
        let folders = FOLDERS.into_iter();
        for folder in folders.filter(|folder| !is_sealed || *folder != OUTBOX) {
            let later = |name: &str| !name.starts_with(CHECKPOINTS);
            files.extend(copy_below(from, to, folder, later)?);
        }

        Ok(files)
    });

    files.extend(others.await?);
    Ok(files)
}

async fn blocking<T: Send + 'static>(
    from: PathBuf,
    to: &Path,
    work: impl FnOnce(&Path, &Path) -> Result<T, BackupError> + Send + 'static,
) -> Result<T, BackupError> {
    let to = to.to_owned();
    let task = tokio::task::spawn_blocking(move || work(&from, &to));
    task.await
        .unwrap_or_else(|error| Err(BackupError::Damaged(format!("the work broke off: {error}"))))
}

/// Copies the wanted files below `folder`; their names are relative to `from`.
fn copy_below(
    from: &Path,
    to: &Path,
    folder: &str,
    wanted: impl Fn(&str) -> bool + Copy,
) -> Result<BTreeMap<String, BackupFile>, BackupError> {
    let mut files = BTreeMap::new();
    let source = from.join(folder);
    let entries = match fs::read_dir(&source) {
        Ok(entries) => entries,
        // A folder may be missing, such as that of the checkpoints before the first one.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(files),
        Err(error) => return Err(error).at(&source),
    };
    for entry in entries {
        let entry = entry.at(&source)?;
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else {
            // The server writes UTF-8 names only, so another name is none of its files.
            continue;
        };

        let name = format!("{folder}/{name}");
        let kind = entry.file_type().at(&entry.path())?;
        if kind.is_dir() {
            files.extend(copy_below(from, to, &name, wanted)?);
        } else if kind.is_file() && wanted(&name) && !is_unfinished(&name) && name != WITNESS_KEY {
            match copy(&entry.path(), &to.join(&name)) {
                Ok(kept) => drop(files.insert(name, kept)),
                // Mails are sent and probes removed meanwhile; documents must not disappear.
                Err(BackupError::Io { source, .. })
                    if source.kind() == io::ErrorKind::NotFound && !is_document(&name) => {}
                Err(error) => return Err(error),
            }
        }
    }

    Ok(files)
}

/// Returns whether the file is an object that the database may refer to.
fn is_document(name: &str) -> bool {
    let object = name.strip_prefix("objects/");
    object.is_some_and(|object| !object.starts_with(PROBES))
}

/// Returns whether the file is still being written: `…#1` of an object, `….new` or `….lock` of a
/// key, and any outbox file that is neither a mail (`.eml`) nor a text message (`.txt`).
fn is_unfinished(name: &str) -> bool {
    let is_message = name.ends_with(".eml") || name.ends_with(".txt");
    let mail = name.starts_with("outbox/") && !is_message;
    let key = name.starts_with("keys/") && (name.ends_with(".new") || name.ends_with(".lock"));
    mail || key || name.contains('#')
}

/// Copies a file; returns its digest and size.
fn copy(from: &Path, to: &Path) -> Result<BackupFile, BackupError> {
    let mut source = File::open(from).at(from)?;
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).at(folder)?;
    }

    // Never overwrites; the target folder was empty.
    let mut target = File::create_new(to).at(to)?;

    // The copy must be as private as the original.
    let mode = source.metadata().at(from)?.permissions();
    target.set_permissions(mode).at(to)?;
    let (mut hash, mut size) = (Sha256::new(), 0);

    // The file is hashed while it is copied, because reading large objects twice would double the time.
    let mut piece = vec![0; PIECE];
    loop {
        let read = source.read(&mut piece).at(from)?;
        if read == 0 {
            break;
        }

        hash.update(&piece[..read]);
        target.write_all(&piece[..read]).at(to)?;
        size += read as u64;
    }

    // The manifest may name the file only once its bytes survive a power failure.
    target.sync_all().at(to)?;
    Ok(BackupFile {
        sha256: hex::encode(hash.finalize()),
        size,
    })
}

fn digest(path: &Path) -> Result<BackupFile, BackupError> {
    let mut file = File::open(path).at(path)?;
    let mut hash = Sha256::new();
    let size = io::copy(&mut file, &mut hash).at(path)?;
    Ok(BackupFile {
        sha256: hex::encode(hash.finalize()),
        size,
    })
}

/// Restores a backup to an empty data folder, which may have the keys of records already, and a newer master key. `open_files`
/// opens the restored store, with these keys.
///
/// # Errors
/// Fails if the data folder is not empty or the backup is damaged; nothing is written then. Fails without a database in
/// the data folder if the records are sealed with other keys.
pub async fn restore(
    config: &Config,
    from: &Path,
    open_files: impl FnOnce() -> Result<Files, Box<dyn std::error::Error + Send + Sync>>,
) -> Result<RestoredBackup, BackupError> {
    check_embedded(config)?;
    let manifest = checked(from)?;
    if manifest.is_sealed && config.record_keys().is_none() {
        return Err(BackupError::NoKeys(
            "the records of this backup are sealed: set storage.record_keys to the place of their keys",
        ));
    }

    make_empty(&config.data_dir, |entry| may_be_there(config, entry))?;

    // The database is the last one in its place, once everything else is on the disk: without it, a server does not
    // take the folder for complete.
    let to = &config.data_dir;
    let others = manifest.files.keys().filter(|name| *name != DATABASE);
    let others = others.filter(|name| *name != NEWER_KEY || !to.join(NEWER_KEY).exists());
    copy_named(from, to, others)?;
    let database = to.join(UNFINISHED);
    copy(&from.join(DATABASE), &database)?;

    let mut restored = RestoredBackup {
        manifest,
        unsealed: 0,
        destroyed: 0,
        without_key: 0,
    };
    if config.record_keys().is_some() {
        let files = open_files().map_err(BackupError::Open)?;
        unseal(config, &files, &database, &mut restored).await?;
    }

    fs::rename(&database, to.join(DATABASE)).at(&database)?;
    sync_folder(to)?;
    Ok(restored)
}

/// Puts the sealed rows back into a database, and destroys the records that were destroyed since.
async fn unseal(
    config: &Config,
    files: &Files,
    database: &Path,
    restored: &mut RestoredBackup,
) -> Result<(), BackupError> {
    let store = Store::connect(&address(database)).await?;
    if restored.manifest.is_sealed {
        put_rows_back(files, &store, restored).await?;
        // Before the schema changes: the rows are of the release that made the backup.
        sealed_records::remove(&store).await?;
    }

    store.migrate().await?;
    let clock = Clock::ahead_by(config.clock_offset.unwrap_or_default());
    let mut last: Option<OwnedEnvelope> = None;
    loop {
        let records = sealed_records::records(&store, last.as_ref(), AT_ONCE).await?;
        if records.is_empty() {
            break;
        }
        for record in &records {
            let is_shredded = files.is_shredded(record.envelope.as_str()).await;
            if is_shredded.map_err(of_keys)? {
                let is_new = destroy_again(config, &store, record, clock.now()).await?;
                restored.destroyed += u64::from(is_new);
            }
        }
        last = records.last().cloned();
    }

    // A new file has no page with rows of a record that was destroyed.
    let whole = database.with_extension("new");
    store.snapshot_into(&whole).await?;
    store.close().await;
    File::open(&whole)
        .and_then(|file| file.sync_all())
        .at(&whole)?;
    for ending in ["-wal", "-shm"] {
        let mut name = database.as_os_str().to_owned();
        name.push(ending);
        remove_if_there(Path::new(&name))?;
    }
    fs::rename(&whole, database).at(&whole)
}

async fn put_rows_back(
    files: &Files,
    store: &Store,
    restored: &mut RestoredBackup,
) -> Result<(), BackupError> {
    let (mut last, mut destroyed) = (String::new(), 0);
    loop {
        let sealed = sealed_records::list(store, &last, AT_ONCE).await?;
        let Some(end) = sealed.last() else {
            break;
        };
        end.record.envelope.as_str().clone_into(&mut last);

        let mut tx = store.begin().await?;
        for one in &sealed {
            let record = one.record.envelope.as_str();
            match files.open_with_record_key(record, &one.sealed).await {
                Ok(rows) => {
                    sealed_records::put_back(&mut tx, &one.record, &rows).await?;
                    restored.unsealed += 1;
                }
                Err(FilesError::Shredded) => destroyed += 1,
                Err(FilesError::NoRecordKey) => restored.without_key += 1,
                Err(error) => return Err(of_keys(error)),
            }
        }
        tx.commit().await?;
    }

    // Not one key and no mark of a destroyed one: this is another place, and the records are not lost.
    if restored.without_key > 0 && restored.unsealed + destroyed == 0 {
        return Err(BackupError::NoKeys(
            "storage.record_keys has no key of any record of this backup: set it to the place of their keys, and restore \
             into an empty data folder",
        ));
    }
    Ok(())
}

/// Returns the error for a key that does not open, with its remedy.
fn of_keys(error: FilesError) -> BackupError {
    match error {
        FilesError::Encryption(_) => BackupError::NoKeys(
            "a key of a record does not open with the keys of this backup: put the newest master.key into an empty data \
             folder as keys/master.next.key, or name the newest storage.encryption_key_file, and restore again",
        ),
        error => error.into(),
    }
}

/// Repeats a destruction; returns false if the backup knows it.
async fn destroy_again(
    config: &Config,
    store: &Store,
    record: &OwnedEnvelope,
    now: Timestamp,
) -> Result<bool, BackupError> {
    let OwnedEnvelope { org, envelope } = record;
    let mut tx = store.begin().await?;
    if ledger::last_of(&mut tx, org, envelope, DESTROYED)
        .await?
        .is_some()
    {
        return Ok(false);
    }

    // Before its rows change: they name the documents that were made for it alone.
    let documents = sealed_records::documents(&mut tx, record).await?;
    sealed_records::destroy(&mut tx, record).await?;
    // The entry of the destruction itself is among what the backup does not have.
    let entry = NewEntry {
        at: now,
        actor: OPERATOR.into(),
        action: DESTROYED.into(),
        details: json!({ "restored": true }),
    };
    ledger::append(&mut tx, Some(org), envelope, entry).await?;
    tx.commit().await?;

    // Objects from before the keys of records are not encrypted with one.
    let documents = documents.iter().map(TemplateId::as_str);
    for owner in documents.chain([envelope.as_str()]) {
        remove_objects(config, org, owner)?;
    }
    Ok(true)
}

/// Removes the restored objects of an owner.
fn remove_objects(config: &Config, org: &OrgId, owner: &str) -> Result<(), BackupError> {
    let objects = config.data_dir.join("objects");
    let areas = match fs::read_dir(&objects) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        areas => areas.at(&objects)?,
    };
    for area in areas {
        let area = area.at(&objects)?.path();
        let bucket = area.join(format!("{:02}", org.bucket()));
        let owned = bucket.join(org.as_str()).join(owner);
        if owned.exists() {
            fs::remove_dir_all(&owned).at(&owned)?;
        }
    }

    Ok(())
}

fn remove_if_there(path: &Path) -> Result<(), BackupError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.at(path),
    }
}

/// Returns the manifest of a backup if the files are as it names them.
fn checked(from: &Path) -> Result<BackupManifest, BackupError> {
    let path = from.join(MANIFEST);
    let text = fs::read(&path).at(&path)?;
    let manifest: BackupManifest = serde_json::from_slice(&text)
        .map_err(|error| BackupError::Damaged(format!("{MANIFEST}: {error}")))?;
    // Everything is checked before the first write: a damaged backup must not leave half an installation.
    for (name, kept) in &manifest.files {
        // A manifest from elsewhere must not write outside the data folder.
        let inside = Path::new(name)
            .components()
            .all(|part| matches!(part, std::path::Component::Normal(_)));
        if !inside {
            return Err(BackupError::Damaged(format!("{name} is no name of a file")));
        }

        let path = from.join(name);
        if !path.is_file() {
            return Err(BackupError::Damaged(format!("{name} is missing")));
        }
        if digest(&path)? != *kept {
            return Err(BackupError::Damaged(format!("{name} was changed")));
        }
    }

    Ok(manifest)
}

/// Copies files and makes them durable.
fn copy_named<'a>(
    from: &Path,
    to: &Path,
    names: impl Iterator<Item = &'a String>,
) -> Result<(), BackupError> {
    let mut folders = BTreeSet::new();
    for name in names {
        copy(&from.join(name), &to.join(name))?;
        let above = Path::new(name.as_str()).ancestors().skip(1);
        folders.extend(above.map(|folder| to.join(folder)));
    }

    // A synced file can still lack its name after a crash, so its folders are synced, too.
    for folder in folders {
        sync_folder(&folder)?;
    }
    Ok(())
}

/// Returns whether an entry of a data folder may be there before a restore: the keys of records, or a newer master key alone.
fn may_be_there(config: &Config, entry: &Path) -> bool {
    if let Some(RecordKeyPlace::Folder(keys)) = config.record_keys()
        && keys.starts_with(entry)
    {
        return true;
    }

    let newer = config.data_dir.join(NEWER_KEY);
    let is_newer = |file: io::Result<fs::DirEntry>| file.is_ok_and(|file| file.path() == newer);
    newer.parent() == Some(entry) && fs::read_dir(entry).is_ok_and(|mut files| files.all(is_newer))
}

/// Creates the folder if necessary, checks that it has nothing but allowed entries, and makes it private.
fn make_empty(folder: &Path, is_allowed: impl Fn(&Path) -> bool) -> Result<(), BackupError> {
    fs::create_dir_all(folder).at(folder)?;
    for entry in fs::read_dir(folder).at(folder)? {
        if !is_allowed(&entry.at(folder)?.path()) {
            return Err(BackupError::NotEmpty(folder.display().to_string()));
        }
    }
    // The folder will hold the master key.
    fs::set_permissions(folder, Permissions::from_mode(0o700)).at(folder)
}

fn sync_folder(folder: &Path) -> Result<(), BackupError> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .at(folder)
}
