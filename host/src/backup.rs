//! Backing up a running installation of the embedded default, and restoring it: the
//! database, the objects, the keys and the outbox, as they belong together.
//!
//! Objects are created and never changed. Removing them waits while a backup is made, so
//! that whatever the snapshot of the database points to is there when it is copied.
//! Checkpoints of the log go first: those of later entries than the snapshot has would say
//! that the log was cut off.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::config::Config;
use crate::domain::clock::{Clock, Timestamp};
use crate::files::PROBES;
use crate::store::{Store, StoreError, chores};

/// What names a backup's files. It is written last: without it there is no backup.
const MANIFEST: &str = "manifest.json";
const DATABASE: &str = "holdfast.db";
/// Below the data folder, in the order of copying; the database comes after the first.
const CHECKPOINTS: &str = "objects/ledger/checkpoints";
const FOLDERS: [&str; 3] = ["objects", "keys", "outbox"];
/// So long nothing is removed after the last sign of life of a backup.
const HOLD: Duration = Duration::from_secs(600);
const RENEWAL: Duration = Duration::from_secs(30);
const PIECE: usize = 1024 * 1024;

/// What a backup holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// When it was begun.
    pub created_at: Timestamp,
    /// Which version of the program made it.
    pub version: String,
    /// By path below the data folder.
    pub files: BTreeMap<String, Kept>,
}

/// One file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// SHA-256, lower-case hex.
    pub sha256: String,
    /// Bytes.
    pub size: u64,
}

/// Why there is no backup, or nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// Not the embedded default.
    #[error("{0}")]
    NotEmbedded(&'static str),
    /// Something would be overwritten.
    #[error("{0} is not empty")]
    NotEmpty(String),
    /// Not what was backed up.
    #[error("the backup is damaged: {0}")]
    Damaged(String),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file.
    #[error("{path}: {source}")]
    Io {
        /// Which.
        path: String,
        /// What went wrong.
        source: io::Error,
    },
}

trait At<T> {
    fn at(self, path: &Path) -> Result<T, BackupError>;
}

impl<T> At<T> for io::Result<T> {
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

/// Backs up a data folder whose server may be running.
///
/// # Errors
/// When it is not the embedded default, `to` holds something, or a file cannot be copied.
pub async fn back_up(config: &Config, to: &Path) -> Result<Manifest, BackupError> {
    check_embedded(config)?;
    make_empty(to)?;
    let clock = Clock::ahead_by(config.clock_offset.unwrap_or_default());
    let store = Store::connect(&config.database_url()).await?;
    let created_at = clock.now();
    let held = Cell::new(created_at + HOLD);
    chores::hold(&store, chores::BACKUP, held.get()).await?;
    let renewals = async {
        loop {
            tokio::time::sleep(RENEWAL).await;
            let until = clock.now() + HOLD;
            match chores::hold(&store, chores::BACKUP, until).await {
                Ok(()) => held.set(until),
                Err(error) => tracing::warn!(%error, "a backup could not say that it goes on"),
            }
        }
    };
    let copied = tokio::select! {
        copied = copy_all(config, &store, to) => copied,
        never = renewals => never,
    };
    chores::let_go(&store, chores::BACKUP, held.get()).await?;
    let manifest = Manifest {
        created_at,
        version: env!("CARGO_PKG_VERSION").into(),
        files: copied?,
    };
    let text = serde_json::to_vec_pretty(&manifest).unwrap_or_default();
    let (part, whole) = (to.join("manifest.part"), to.join(MANIFEST));
    fs::write(&part, text).at(&part)?;
    File::open(&part)
        .and_then(|file| file.sync_all())
        .at(&part)?;
    fs::rename(&part, &whole).at(&whole)?;
    sync_folder(to)?;
    Ok(manifest)
}

async fn copy_all(
    config: &Config,
    store: &Store,
    to: &Path,
) -> Result<BTreeMap<String, Kept>, BackupError> {
    let from = config.data_dir.clone();
    let mut files = blocking(from.clone(), to, |from, to| {
        copy_below(from, to, CHECKPOINTS, |_| true)
    })
    .await?;
    let snapshot = to.join(DATABASE);
    store.snapshot_into(&snapshot).await?;
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

/// Copies the files below `folder` that are wanted; names begin at `from`.
fn copy_below(
    from: &Path,
    to: &Path,
    folder: &str,
    wanted: impl Fn(&str) -> bool + Copy,
) -> Result<BTreeMap<String, Kept>, BackupError> {
    let mut files = BTreeMap::new();
    let source = from.join(folder);
    let entries = match fs::read_dir(&source) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(files),
        Err(error) => return Err(error).at(&source),
    };
    for entry in entries {
        let entry = entry.at(&source)?;
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else {
            continue;
        };
        let name = format!("{folder}/{name}");
        let kind = entry.file_type().at(&entry.path())?;
        if kind.is_dir() {
            files.extend(copy_below(from, to, &name, wanted)?);
        } else if kind.is_file() && wanted(&name) && !is_unfinished(&name) {
            match copy(&entry.path(), &to.join(&name)) {
                Ok(kept) => drop(files.insert(name, kept)),
                // A mail that was sent, or a probe: documents stay while they are held.
                Err(BackupError::Io { source, .. })
                    if source.kind() == io::ErrorKind::NotFound && !is_document(&name) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(files)
}

/// What the database points to.
fn is_document(name: &str) -> bool {
    let object = name.strip_prefix("objects/");
    object.is_some_and(|object| !object.starts_with(PROBES))
}

/// What is still being written has such a name: `…#1` of an object, `….new` of a key, and
/// what is no `.eml` of a mail.
fn is_unfinished(name: &str) -> bool {
    let mail = name.starts_with("outbox/") && !name.ends_with(".eml");
    let key = name.starts_with("keys/") && (name.ends_with(".new") || name.ends_with(".lock"));
    mail || key || name.contains('#')
}

/// Copies one file, and says what it holds.
fn copy(from: &Path, to: &Path) -> Result<Kept, BackupError> {
    let mut source = File::open(from).at(from)?;
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).at(folder)?;
    }
    let mut target = File::create_new(to).at(to)?;
    // As secret as what it is a copy of.
    let mode = source.metadata().at(from)?.permissions();
    target.set_permissions(mode).at(to)?;
    let (mut hash, mut size) = (Sha256::new(), 0);
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
    target.sync_all().at(to)?;
    Ok(Kept {
        sha256: hex::encode(hash.finalize()),
        size,
    })
}

fn digest(path: &Path) -> Result<Kept, BackupError> {
    let mut file = File::open(path).at(path)?;
    let mut hash = Sha256::new();
    let size = io::copy(&mut file, &mut hash).at(path)?;
    Ok(Kept {
        sha256: hex::encode(hash.finalize()),
        size,
    })
}

/// Puts a backup into an empty data folder.
///
/// # Errors
/// When the data folder holds something, or the backup is not what was made: then nothing
/// is written.
pub fn restore(config: &Config, from: &Path) -> Result<Manifest, BackupError> {
    check_embedded(config)?;
    let path = from.join(MANIFEST);
    let text = fs::read(&path).at(&path)?;
    let manifest: Manifest = serde_json::from_slice(&text)
        .map_err(|error| BackupError::Damaged(format!("{MANIFEST}: {error}")))?;
    for (name, kept) in &manifest.files {
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
    // The database last, and once all else is on the disk: a folder without it is none
    // that a server would take for whole.
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
        for folder in folders {
            sync_folder(&folder)?;
        }
    }
    Ok(manifest)
}

/// The folder, made if need be, for nobody else to read.
fn make_empty(folder: &Path) -> Result<(), BackupError> {
    fs::create_dir_all(folder).at(folder)?;
    let mut entries = fs::read_dir(folder).at(folder)?;
    if entries.next().is_some() {
        return Err(BackupError::NotEmpty(folder.display().to_string()));
    }
    fs::set_permissions(folder, Permissions::from_mode(0o700)).at(folder)
}

fn sync_folder(folder: &Path) -> Result<(), BackupError> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .at(folder)
}
