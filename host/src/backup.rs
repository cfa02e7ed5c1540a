//! Backup and restore of a running installation with embedded storage: database, objects, keys and
//! outbox as one consistent set.
//!
//! Objects are created and never changed, and their deletion is suspended during a backup, so that
//! every object that the database snapshot refers to still exists when it is copied. The log's
//! checkpoints are copied before the database: a checkpoint newer than the snapshot would make the
//! log look truncated.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use holdfast_adapters::files::PROBES;
use holdfast_base::config::Config;
use holdfast_domain::clock::{Clock, Timestamp};
use holdfast_store::installation::LAST_BACKUP;
use holdfast_store::{Store, StoreError, chores, moves};

/// List of a backup's files. It is written last, so that an incomplete backup has none.
const MANIFEST: &str = "manifest.json";
const DATABASE: &str = "holdfast.db";
/// Folders below the data folder in copying order; the database follows the checkpoints.
const CHECKPOINTS: &str = "objects/ledger/checkpoints";
const FOLDERS: [&str; 3] = ["objects", "keys", "outbox"];
/// Key of this installation as a witness. A restored database has forgotten the heads that were cosigned since, and
/// with this key it could cosign a second history.
const WITNESS_KEY: &str = "keys/witness.key";
/// Time after the last renewal during which deletion stays suspended.
const HOLD: Duration = Duration::from_secs(600);
const RENEWAL: Duration = Duration::from_secs(30);
const PIECE: usize = 1024 * 1024;

/// Content of a backup.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BackupManifest {
    /// Time at which the backup began.
    pub created_at: Timestamp,
    /// Version of the program that made it.
    pub version: String,
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
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
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

/// Backs up a data folder while its server may be running.
///
/// # Errors
/// Fails if storage is not embedded, `to` is not empty, or a file cannot be copied.
pub async fn back_up(config: &Config, to: &Path) -> Result<BackupManifest, BackupError> {
    check_embedded(config)?;
    make_empty(to)?;
    let clock = Clock::ahead_by(config.clock_offset.unwrap_or_default());
    // No migration: a backup program of another version must not change the schema of a running server.
    let store = Store::connect(&config.database_url()).await?;
    let created_at = clock.now();
    // A database that a move has left takes no notes, and nothing that it refers to is deleted.
    let copied = match moves::unsettled(&store).await? {
        Some(_) => copy_all(config, &store, to).await?,
        None => copy_held(config, &store, to, &clock, created_at).await?,
    };

    let manifest = BackupManifest {
        created_at,
        version: env!("CARGO_PKG_VERSION").into(),
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
        copied = copy_all(config, store, to) => copied,
        never = renewals => never,
    };

    // Also after a failed copy, so that deletion resumes at once.
    chores::let_go(store, chores::BACKUP, held.get()).await?;
    let copied = copied?;
    // Recorded after a complete copy only, because the console shows operators the time of the last one.
    chores::hold(store, LAST_BACKUP, created_at).await?;

    Ok(copied)
}

async fn copy_all(
    config: &Config,
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
    store.snapshot_into(&snapshot).await?;

    // Objects follow the snapshot, so that everything it refers to exists already.
    let others = blocking(from, to, move |from, to| {
        File::open(&snapshot)
            .and_then(|file| file.sync_all())
            .at(&snapshot)?;

        let mut files = BTreeMap::from([(DATABASE.to_owned(), digest(&snapshot)?)]);
        for folder in FOLDERS {
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

/// Restores a backup to an empty data folder.
///
/// # Errors
/// Fails if the data folder is not empty or the backup is damaged; nothing is written then.
pub fn restore(config: &Config, from: &Path) -> Result<BackupManifest, BackupError> {
    check_embedded(config)?;
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

    let to = &config.data_dir;
    make_empty(to)?;

    // The database is copied last, once everything else is on the disk: without it, a server does
    // not take the folder for complete.
    let (database, others): (Vec<&String>, Vec<&String>) =
        manifest.files.keys().partition(|name| *name == DATABASE);
    for names in [others, database] {
        for name in &names {
            copy(&from.join(name), &to.join(name))?;
        }

        let folders: BTreeSet<PathBuf> = names
            .iter()
            .flat_map(|name| Path::new(name.as_str()).ancestors().skip(1))
            .map(|folder| to.join(folder))
            .collect();
        // A synced file can still lack its name after a crash, so its folders are synced, too.
        for folder in folders {
            sync_folder(&folder)?;
        }
    }

    Ok(manifest)
}

/// Creates the folder if necessary, checks that it is empty, and makes it private.
fn make_empty(folder: &Path) -> Result<(), BackupError> {
    fs::create_dir_all(folder).at(folder)?;
    let mut entries = fs::read_dir(folder).at(folder)?;
    if entries.next().is_some() {
        return Err(BackupError::NotEmpty(folder.display().to_string()));
    }
    // The folder will hold the master key.
    fs::set_permissions(folder, Permissions::from_mode(0o700)).at(folder)
}

fn sync_folder(folder: &Path) -> Result<(), BackupError> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .at(folder)
}
