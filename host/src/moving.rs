//! Moves an installation to another database, and its objects to another store, while no server runs.
//!
//! The order survives a kill at any moment: the present database refuses changes before the first row is read, the new
//! one serves only after everything in it was compared, and the present one is marked as left before that. At no
//! moment can both be used. A run continues the one before: rows are added in the transaction that notes how far the
//! copy has come, and objects that are there are compared and not written again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde::Serialize;

use crate::server;
use crate::start;
use holdfast_adapters::files::{Files, FilesError, StoredObjectKey};
use holdfast_base::config::Config;
use holdfast_base::{disk, faults};
use holdfast_domain::checkpoint::entry_leaf;
use holdfast_domain::clock::{Clock, Timestamp};
use holdfast_domain::envelope::StoredFile;
use holdfast_domain::id::RequestId;
use holdfast_domain::ledger::GENESIS;
use holdfast_domain::merkle::{Hash, TileReader};
use holdfast_store::moves::{
    self, ContentDigest, CopyProgress, InstallationMove, MoveState, MovedRow, MovedTable,
    PlacedEntry,
};
use holdfast_store::{SchemaState, Store, StoreError, installation, log};

/// Rows that are read or added at once at most.
const SLICE: usize = 2_000;
/// Rows of a table that are read first, before their size is known.
const FIRST_SLICE: usize = 20;
/// Bytes of texts that are read or added at once, about.
const SLICE_BYTES: usize = 8 * 1024 * 1024;
/// Objects that are copied or compared at once.
const OBJECTS_AT_ONCE: usize = 8;
/// Interval at which a node reports that it runs, unless configured.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);
/// Intervals without a sign after which a node counts as stopped.
const MISSED_SIGNS: u32 = 3;
/// Area of released documents, which may be locked against removal.
const ARCHIVE: &str = "archive/";

/// Reason a move failed. The present database keeps everything in any case.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// The target is of an unknown kind.
    #[error("--to must be postgres://…, sqlite:… or a folder")]
    UnknownTarget,
    /// A server uses the present database.
    #[error("a holdfast server uses {0}: stop every server of this installation, and try again")]
    Running(String),
    /// The present database is empty.
    #[error(
        "{0} has no installation: name its database with database_url, or its folder with data_dir"
    )]
    NoInstallation(String),
    /// Migrations are missing.
    #[error("the schema of {0} is older than this program: run `holdfast migrate` on it first")]
    OlderSchema(String),
    /// The schema is not one of this program.
    #[error(
        "the schema of {0} is not that of this program: use the version of holdfast that last ran with it"
    )]
    OtherSchema(String),
    /// The columns of a table differ, although both schemas have the same version.
    #[error("table {0} has other columns in the new database: move to an empty one")]
    OtherColumns(String),
    /// Both databases are the same.
    #[error("{0} is the present database: name another one")]
    SameDatabase(String),
    /// The new database has data.
    #[error("{0} is in use or was used before: move to an empty database")]
    NotEmpty(String),
    /// Both object stores are the same.
    #[error(
        "{0} is the present object store or inside of it, or has it inside: leave --storage out, and objects stay where they are"
    )]
    SameStorage(String),
    /// The new object store has objects of others.
    #[error(
        "{0} has objects that this installation does not have: move to an empty folder or prefix"
    )]
    StorageNotEmpty(String),
    /// Another move has begun.
    #[error(
        "this installation is being moved to {0}: finish that move with its --to, or give it up with --abandon"
    )]
    OtherMove(String),
    /// The move is complete.
    #[error("this installation was moved to {0}: set database_url to it, and start the server")]
    Complete(String),
    /// The present database is the target of a move.
    #[error(
        "the present database is the target of a move from {0} that is not complete: set database_url back to that one"
    )]
    IsTarget(String),
    /// The move was given up, and the present database still refuses changes.
    #[error(
        "the move to {0} was given up: run it with --abandon once more, and move to an empty database"
    )]
    GivenUp(String),
    /// Another command ended the move.
    #[error(
        "another command has finished the move to {0} or given it up meanwhile: run the same command again to see which"
    )]
    Overtaken(String),
    /// Nothing can be given up.
    #[error("this installation is not being moved: there is nothing to abandon")]
    NotMoving,
    /// The new database has been used.
    #[error(
        "{0} has been used since the move, so it is the installation's now: set database_url to it. To go back, move from there to an empty database"
    )]
    Started(String),
    /// A table has other rows.
    #[error(
        "table {table} has {copied} rows instead of {rows}, or other values: give the move up with --abandon, and move to an empty database"
    )]
    TableDiffers {
        /// Name of the table.
        table: String,
        /// Rows of the present database.
        rows: u64,
        /// Rows of the new database.
        copied: u64,
    },
    /// A ledger or the log does not hold together.
    #[error(
        "{0}; the present database has the same fault. Give the move up with --abandon, and run `holdfast vault sweep`"
    )]
    Ledger(String),
    /// Objects have other bytes.
    #[error(
        "{0} objects have other bytes in the new store: give the move up with --abandon, and move to an empty store"
    )]
    ObjectsDiffer(usize),
    /// A database failed.
    #[error("{place}: {source}")]
    Database {
        /// Database without user and password.
        place: String,
        /// Its error.
        source: StoreError,
    },
    /// A database failed during the copy.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An object store failed.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// The present object store could not be opened.
    #[error(transparent)]
    Start(Box<start::StartError>),
    /// A folder could not be made.
    #[error("cannot use the folder {folder}: {source}")]
    Folder {
        /// Path of the folder.
        folder: String,
        /// I/O error.
        source: std::io::Error,
    },
}

/// Data that was compared at the end of a move.
#[derive(Debug, Serialize)]
pub struct MoveReport {
    /// Database that was left.
    pub from: String,
    /// New database.
    pub to: String,
    /// Content by table, the same in both databases.
    pub tables: BTreeMap<String, TableReport>,
    /// Ledgers and log of the new database.
    pub ledgers: LedgerReport,
    /// Objects.
    pub objects: ObjectReport,
}

/// Content of a table.
#[derive(Debug, Serialize)]
pub struct TableReport {
    /// Number of rows.
    pub rows: u64,
    /// Sum of the SHA-256 of all rows, in hex.
    pub digest: String,
}

/// Ledgers with entries that follow each other, and the log over them.
#[derive(Debug, Default, Serialize)]
pub struct LedgerReport {
    /// Number of ledgers.
    pub ledgers: u64,
    /// Number of entries.
    pub entries: u64,
    /// Entries in the log.
    pub log_size: u64,
    /// Root of the log, computed from the entries; empty before its first head.
    pub log_root: String,
}

/// Objects of the installation.
#[derive(Debug, Serialize)]
pub struct ObjectReport {
    /// Store that has them now.
    pub store: String,
    /// Whether they were copied there.
    pub are_moved: bool,
    /// Number of objects with the same SHA-256 in both stores, or without a move in the only one.
    pub count: usize,
    /// Keys of documents that rows name.
    pub named: usize,
    /// Those of them that the store does not have, among them documents that were removed after a release.
    pub absent: usize,
}

/// A database of a move.
struct Side {
    store: Store,
    place: String,
}

/// Where an installation moves.
pub struct Destination<'a> {
    /// URL of the database, or a folder for a file.
    pub database: &'a str,
    /// URL of the object store; none leaves the objects where they are.
    pub storage: Option<&'a str>,
}

/// Moves the installation, or finishes a move that was interrupted.
///
/// # Errors
/// Fails if a server runs, the target is not empty, or anything differs. The present database serves again after
/// [`abandon`].
pub async fn run(config: &Config, to: &Destination<'_>) -> Result<MoveReport, MoveError> {
    // Held until the end: a server that starts meanwhile is refused.
    let _only = lock(config)?;
    let source = open_source(config).await?;
    let target = open_target(to.database, &source).await?;
    let now = now(config);
    let files = open_files(config)?;
    let new_files = open_storage(config, to.storage, &files).await?;

    let known = moves::unsettled(&source.store).await?;
    let move_of = match &known {
        None => begin(config, &source, &target, now).await?,
        Some(known) => resumed(known, &target).await?,
    };
    let tables = matching_tables(&source, &target).await?;
    if moves::state(&target.store, &move_of).await?.is_none() {
        moves::begin_copy(&target.store, &move_of, &source.place, now).await?;
    }
    faults::pass("move begun");

    copy_rows(&source.store, &target.store, &move_of, &tables).await?;
    if let Some(new_files) = &new_files {
        copy_objects(&files, new_files).await?;
    }
    faults::pass("move copied");

    let (tables, named) = compare_tables(&source.store, &target.store, &tables).await?;
    let ledgers = check_ledgers(&target.store).await?;
    let objects = match &new_files {
        Some(new_files) => compare_objects(&files, new_files, now).await?,
        None => listed(&files).await?,
    };
    faults::pass("move verified");

    hand_over(&source.store, &target, &move_of, now).await?;
    let absent = named.iter().filter(|key| !objects.contains_key(*key));
    let report = MoveReport {
        from: source.place.clone(),
        to: target.place.clone(),
        tables,
        ledgers,
        objects: ObjectReport {
            store: match to.storage {
                Some(url) => start::place(url),
                None => start::storage_place(config),
            },
            are_moved: new_files.is_some(),
            count: objects.len(),
            named: named.len(),
            absent: absent.count(),
        },
    };
    source.store.close().await;
    target.store.close().await;

    Ok(report)
}

/// Marks the present database as left and the new one as complete. In this order: between the two, neither can be used.
async fn hand_over(
    source: &Store,
    target: &Side,
    id: &str,
    now: Timestamp,
) -> Result<(), MoveError> {
    let (moving, moved) = (MoveState::Moving, MoveState::Moved);
    let is_left = moves::ensure_state(source, id, moving, moved, now).await?;
    faults::pass("move left");

    // On PostgreSQL no lock keeps another operator from giving the move up at this moment.
    let (copying, verified) = (MoveState::Copying, MoveState::Verified);
    if is_left && moves::ensure_state(&target.store, id, copying, verified, now).await? {
        Ok(())
    } else {
        Err(MoveError::Overtaken(target.place.clone()))
    }
}

/// Gives a move up: the present database may be used again, and the new one never.
///
/// # Errors
/// Fails if the new database has been used or cannot be reached.
pub async fn abandon(config: &Config, to: &str) -> Result<String, MoveError> {
    let _only = lock(config)?;
    let source = open_source(config).await?;
    let known = moves::unsettled(&source.store).await?;
    let known = known.filter(|known| is_source(known.state));
    let known = known.ok_or(MoveError::NotMoving)?;
    let target = open_target(to, &source).await?;
    if known.place != target.place {
        return Err(MoveError::OtherMove(known.place));
    }

    // The new database first. A node that starts with it at this moment is either refused or makes this fail.
    match moves::state(&target.store, &known.id).await? {
        // An earlier run may have ended before the copy began, or between the two databases.
        None | Some(MoveState::Abandoned) => {}
        Some(state) => {
            let given_up = MoveState::Abandoned;
            let is_given_up = matches!(state, MoveState::Copying | MoveState::Verified)
                && moves::change_state(&target.store, &known.id, state, given_up, now(config))
                    .await?;
            if !is_given_up {
                return Err(MoveError::Started(target.place));
            }
        }
    }
    faults::pass("move abandoned");

    let tables = moves::tables(&source.store).await?;
    moves::lift_fence(&source.store, &known.id, &tables).await?;
    source.store.close().await;
    target.store.close().await;

    Ok(source.place)
}

fn now(config: &Config) -> Timestamp {
    Clock::ahead_by(config.clock_offset.unwrap_or_default()).now()
}

fn is_source(state: MoveState) -> bool {
    matches!(state, MoveState::Moving | MoveState::Moved)
}

/// Keeps servers of this machine away from an SQLite database.
fn lock(config: &Config) -> Result<Option<File>, MoveError> {
    server::lock_database(config).map_err(|_| MoveError::Running(place_of(&config.database_url())))
}

/// Opens the present object store, which is only read: a lock that the settings ask for is of the new one, and a folder
/// has none.
fn open_files(config: &Config) -> Result<Files, MoveError> {
    let mut reading = config.clone();
    reading.storage.archive_retention = None;
    reading.storage.object_lock_holds = false;
    start::open_files(&reading).map_err(|error| MoveError::Start(Box::new(error)))
}

/// Opens the present database. It is not migrated: servers of its version may have to run again.
async fn open_source(config: &Config) -> Result<Side, MoveError> {
    let mut url = config.database_url();
    let place = place_of(&url);
    // Otherwise a wrong path would create an empty database.
    if server::sqlite_path(&url).is_some() && !url.contains('?') {
        url.push_str("?mode=rw");
    }

    let side = connect(&url, place).await?;
    match side.store.schema().await? {
        SchemaState::Current => Ok(side),
        SchemaState::Absent => Err(MoveError::NoInstallation(side.place)),
        SchemaState::Older => Err(MoveError::OlderSchema(side.place)),
        SchemaState::Other => Err(MoveError::OtherSchema(side.place)),
    }
}

/// Opens the new database and gives an empty one its schema.
async fn open_target(to: &str, source: &Side) -> Result<Side, MoveError> {
    let url = target_url(to)?;
    let mut side = connect(&url, place_of(&url)).await?;
    // A new file has its full path only now.
    side.place = place_of(&url);
    if side.place == source.place {
        return Err(MoveError::SameDatabase(side.place));
    }

    match side.store.schema().await? {
        SchemaState::Current => {}
        SchemaState::Absent => side.store.migrate().await?,
        SchemaState::Older => return Err(MoveError::OlderSchema(side.place)),
        SchemaState::Other => return Err(MoveError::OtherSchema(side.place)),
    }

    Ok(side)
}

async fn connect(url: &str, place: String) -> Result<Side, MoveError> {
    match Store::connect(url).await {
        Ok(store) => Ok(Side { store, place }),
        Err(source) => Err(MoveError::Database { place, source }),
    }
}

/// Returns the URL of the new database; a folder is made and gets a file.
fn target_url(to: &str) -> Result<String, MoveError> {
    let is_url = ["sqlite:", "postgres://", "postgresql://"]
        .iter()
        .any(|begin| to.starts_with(begin));
    if is_url {
        return Ok(to.to_owned());
    }
    if to.is_empty() || to.contains("://") {
        return Err(MoveError::UnknownTarget);
    }

    let folder = Path::new(to);
    let made = disk::make_folder(folder).and_then(|()| fs::canonicalize(folder));
    let folder = made.map_err(|source| MoveError::Folder {
        folder: to.to_owned(),
        source,
    })?;
    Ok(format!("sqlite://{}", folder.join("holdfast.db").display()))
}

/// Returns the location of a database without user and password, the same for each way to write it.
fn place_of(url: &str) -> String {
    let Some(path) = server::sqlite_path(url) else {
        return start::place(url);
    };
    let real = fs::canonicalize(path).unwrap_or_else(|_| PathBuf::from(path));
    format!("sqlite://{}", real.display())
}

/// Opens the new object store, which has no objects but those of an interrupted run.
async fn open_storage(
    config: &Config,
    url: Option<&str>,
    present: &Files,
) -> Result<Option<Files>, MoveError> {
    let Some(url) = url else {
        return Ok(None);
    };
    let new = Files::open(url, &config.storage)?;
    let folder_of = |files: &Files| files.folder().and_then(|own| fs::canonicalize(own).ok());
    // One store inside of the other would list the copies as objects of its own. Opening has made the folder, so that
    // both have their full paths.
    let is_nested = match (folder_of(present), folder_of(&new)) {
        (Some(own), Some(other)) => own.starts_with(&other) || other.starts_with(&own),
        (None, None) => is_nested(&start::storage_place(config), &start::place(url)),
        _ => false,
    };
    if is_nested {
        return Err(MoveError::SameStorage(start::place(url)));
    }

    let (own, there) = (listed(present).await?, listed(&new).await?);
    if there.keys().any(|key| !own.contains_key(key)) {
        return Err(MoveError::StorageNotEmpty(start::place(url)));
    }
    Ok(Some(new))
}

/// Returns whether one of two URLs of object stores is the other one or names a part of it.
fn is_nested(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|url| format!("{}/", url.trim_end_matches('/')));
    one.starts_with(&other) || other.starts_with(&one)
}

/// Begins a move: from here on the present database refuses changes. Returns the id of the move.
async fn begin(
    config: &Config,
    source: &Side,
    target: &Side,
    now: Timestamp,
) -> Result<String, MoveError> {
    let tables = matching_tables(source, target).await?;
    if !moves::is_unused(&target.store, &tables).await? {
        return Err(MoveError::NotEmpty(target.place.clone()));
    }
    wait_for_nodes(config, source).await?;

    let id = RequestId::new().to_string();
    moves::fence(&source.store, &id, &target.place, &tables, now).await?;
    faults::pass("move fenced");
    Ok(id)
}

/// Returns the id of a move that an earlier run began.
async fn resumed(known: &InstallationMove, target: &Side) -> Result<String, MoveError> {
    if !is_source(known.state) {
        return Err(MoveError::IsTarget(known.place.clone()));
    }
    if known.place != target.place {
        return Err(if known.state == MoveState::Moved {
            MoveError::Complete(known.place.clone())
        } else {
            MoveError::OtherMove(known.place.clone())
        });
    }

    match moves::state(&target.store, &known.id).await? {
        Some(MoveState::Copying) => Ok(known.id.clone()),
        Some(MoveState::Verified | MoveState::Started) => {
            Err(MoveError::Complete(target.place.clone()))
        }
        Some(MoveState::Abandoned) => Err(MoveError::GivenUp(target.place.clone())),
        // Another name of the present database.
        Some(MoveState::Moving | MoveState::Moved) => {
            Err(MoveError::SameDatabase(target.place.clone()))
        }
        // The earlier run ended before the copy began.
        None => {
            let tables = moves::tables(&target.store).await?;
            if moves::is_unused(&target.store, &tables).await? {
                Ok(known.id.clone())
            } else {
                Err(MoveError::NotEmpty(target.place.clone()))
            }
        }
    }
}

/// Waits for signs of life. Nodes on PostgreSQL have no lock that ends with them, and their clocks may differ from this
/// one: the age of a sign proves nothing, only a new one does.
async fn wait_for_nodes(config: &Config, source: &Side) -> Result<(), MoveError> {
    if server::sqlite_path(&config.database_url()).is_some() {
        return Ok(());
    }

    let signs = signs_of_life(&source.store).await?;
    let silence = config.sweep_interval.unwrap_or(SIGN_OF_LIFE) * MISSED_SIGNS;
    let end = Instant::now() + silence;
    while Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(500)).await;
        if signs_of_life(&source.store).await? != signs {
            return Err(MoveError::Running(source.place.clone()));
        }
    }

    Ok(())
}

async fn signs_of_life(store: &Store) -> Result<Vec<(String, Timestamp)>, StoreError> {
    let mut connection = store.read().await?;
    installation::signs(&mut connection, installation::NODE).await
}

/// Returns the tables of both databases. Others belong to extensions of a database.
async fn matching_tables(source: &Side, target: &Side) -> Result<Vec<MovedTable>, MoveError> {
    let there = moves::tables(&target.store).await?;
    let mut both = Vec::with_capacity(there.len());
    for table in moves::tables(&source.store).await? {
        match there.iter().find(|other| other.name == table.name) {
            Some(other) if *other == table => both.push(table),
            Some(_) => return Err(MoveError::OtherColumns(table.name)),
            None => {}
        }
    }

    Ok(both)
}

async fn copy_rows(
    source: &Store,
    target: &Store,
    id: &str,
    tables: &[MovedTable],
) -> Result<(), MoveError> {
    let mut progress = moves::progress(target, id).await?;
    for table in tables {
        let mut known = progress.remove(&table.name).unwrap_or_default();
        let mut slice = FIRST_SLICE;
        while !known.is_complete {
            let rows = table
                .rows_behind(source, known.last.as_ref(), slice)
                .await?;
            let last = rows.last().map(|row| table.key_of(row));
            known = CopyProgress {
                last: last.or(known.last),
                is_complete: rows.len() < slice,
            };
            slice = slice_behind(&rows);

            // One transaction for the rows and the progress: a run after a kill neither repeats nor leaves out a row.
            let mut tx = target.begin().await?;
            table.add(&mut tx, &rows).await?;
            moves::note_progress(&mut tx, id, table, &known).await?;
            faults::pass("move slice");
            tx.commit().await?;
            faults::pass("move sliced");
        }
    }

    Ok(())
}

/// Returns the number of rows to read behind these: large rows a few at a time.
fn slice_behind(rows: &[MovedRow]) -> usize {
    let bytes: usize = rows.iter().flat_map(MovedRow::texts).map(str::len).sum();
    let fitting = SLICE_BYTES.saturating_mul(rows.len()) / bytes.max(1);
    fitting.clamp(1, SLICE)
}

/// Compares all rows of both databases. Returns the content by table, and the keys of documents that rows name.
async fn compare_tables(
    source: &Store,
    target: &Store,
    tables: &[MovedTable],
) -> Result<(BTreeMap<String, TableReport>, BTreeSet<String>), MoveError> {
    let (mut reports, mut named) = (BTreeMap::new(), BTreeSet::new());
    for table in tables {
        let name_objects = |row: &MovedRow| {
            let keys = row.texts().flat_map(object_keys);
            named.extend(keys.map(str::to_owned));
        };
        let (before, after) = tokio::try_join!(
            content(source, table, |_| ()),
            content(target, table, name_objects)
        )?;
        if before != after {
            return Err(MoveError::TableDiffers {
                table: table.name.clone(),
                rows: before.rows,
                copied: after.rows,
            });
        }

        let report = TableReport {
            rows: after.rows,
            digest: after.hex(),
        };
        reports.insert(table.name.clone(), report);
    }

    Ok((reports, named))
}

async fn content(
    store: &Store,
    table: &MovedTable,
    mut look: impl FnMut(&MovedRow),
) -> Result<ContentDigest, StoreError> {
    let (mut digest, mut last) = (ContentDigest::default(), None);
    let mut slice = FIRST_SLICE;
    loop {
        let rows = table.rows_behind(store, last.as_ref(), slice).await?;
        for row in &rows {
            digest.add(row);
            look(row);
        }

        last = rows.last().map(|row| table.key_of(row));
        if rows.len() < slice {
            return Ok(digest);
        }
        slice = slice_behind(&rows);
    }
}

/// Returns the keys of documents in a text, such as the JSON of a stored file.
fn object_keys(text: &str) -> impl Iterator<Item = &str> {
    let ends_key = |character: char| {
        !character.is_ascii_alphanumeric() && !['/', '_', '-', '.'].contains(&character)
    };
    // Most texts name none, and the search for one piece of a key is much faster than splitting.
    let text = if text.contains("/org_") { text } else { "" };
    text.split(ends_key)
        .filter(|piece| StoredObjectKey::parse(piece).is_some())
}

/// Checks that the entries of each ledger follow each other, and computes the root of the log from them.
async fn check_ledgers(store: &Store) -> Result<LedgerReport, MoveError> {
    let mut report = LedgerReport::default();
    let mut leaves: Vec<(i64, Hash)> = Vec::new();
    let mut last: Option<PlacedEntry> = None;
    loop {
        let entries = moves::entries_behind(store, last.as_ref(), SLICE as i64).await?;
        let is_end = entries.len() < SLICE;
        for entry in entries {
            let before = last.as_ref().filter(|last| last.chain == entry.chain);
            report.ledgers += u64::from(before.is_none());
            report.entries += 1;
            if entry.previous_hash != before.map_or(GENESIS, |before| before.hash.as_str()) {
                let (chain, sequence) = (entry.chain, entry.sequence);
                let why = format!("entry {sequence} of the ledger {chain} does not follow");
                return Err(MoveError::Ledger(why));
            }

            if let Some(place) = entry.leaf {
                let leaf = entry_leaf(&entry.chain, entry.sequence, &entry.hash);
                leaves.push((place, leaf));
            }
            last = Some(entry);
        }
        if is_end {
            break;
        }
    }

    let mut connection = store.read().await?;
    let head = log::head(&mut connection).await?;
    drop(connection);
    let (size, root) = head.map_or((0, String::new()), |head| (head.size, head.root));
    let is_whole = root_of(leaves).is_some_and(|(entries, computed)| {
        // Before its first head, the log has no root yet.
        entries == size && (computed == root || (size == 0 && root.is_empty()))
    });
    if !is_whole {
        let why = format!("the log of {size} entries does not have the root {root}");
        return Err(MoveError::Ledger(why));
    }
    report.log_size = size;
    report.log_root = root;

    Ok(report)
}

/// Computes size and root of a log from its leaves; none if a place is empty or taken twice.
fn root_of(mut leaves: Vec<(i64, Hash)>) -> Option<(u64, String)> {
    leaves.sort_unstable();
    let (mut tiles, mut size) = (TileReader::default(), 0_u64);
    for (place, leaf) in leaves {
        if u64::try_from(place) != Ok(size) {
            return None;
        }
        tiles.append(size, leaf).ok()?;
        size += 1;
    }

    let root = tiles.root(size).ok()?;
    Some((size, hex::encode(root)))
}

/// Lists the objects of a store with their sizes.
async fn listed(files: &Files) -> Result<BTreeMap<String, u64>, FilesError> {
    files
        .objects()
        .map_ok(|object| (object.key, object.size))
        .try_collect()
        .await
}

async fn copy_objects(source: &Files, target: &Files) -> Result<(), MoveError> {
    let there = listed(target).await?;
    let missing = source
        .objects()
        .try_filter(|object| std::future::ready(!there.contains_key(&object.key)));
    missing
        .map_ok(|object| async move {
            match source.copy_to(target, &object).await {
                // A request that the client of the store repeated finds its own object. All are compared later.
                Err(FilesError::Exists) => Ok(()),
                copied => copied,
            }
        })
        .try_buffer_unordered(OBJECTS_AT_ONCE)
        .try_for_each(|()| async {
            faults::pass("move object");
            Ok(())
        })
        .await?;

    Ok(())
}

/// Compares the stored bytes of all objects, and locks those that a store keeps against removal. Returns the objects.
async fn compare_objects(
    source: &Files,
    target: &Files,
    now: Timestamp,
) -> Result<BTreeMap<String, u64>, MoveError> {
    let objects = listed(source).await?;
    let compared = objects.keys().map(|key| async move {
        let before = source.stored_sha256(key).await?;
        let is_equal = match target.stored_sha256(key).await {
            Ok(after) => before == after,
            Err(FilesError::Gone) => false,
            Err(error) => return Err(error),
        };
        if is_equal && key.starts_with(ARCHIVE) {
            let file = StoredFile {
                key: key.clone(),
                sha256: before,
                size: 0,
                content_type: String::new(),
            };
            target.retain(&file, now).await?;
        }
        Ok(is_equal)
    });
    let compared: Vec<bool> = stream::iter(compared)
        .buffer_unordered(OBJECTS_AT_ONCE)
        .try_collect()
        .await?;

    let differing = compared.iter().filter(|is_equal| !**is_equal).count();
    if differing > 0 {
        return Err(MoveError::ObjectsDiffer(differing));
    }
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_documents_are_found_in_texts() {
        let org = "org_01jdk7m3e8f4x9s2w5v6b0c1da";
        let key = format!("vault/07/{org}/env_1/00ff");
        let json = format!(r#"{{"key":"{key}","sha256":"00ff"}}"#);
        let found: Vec<&str> = object_keys(&json).collect();
        assert_eq!(found, [key.as_str()]);
        assert_eq!(object_keys(&key).count(), 1);
        assert_eq!(
            object_keys(&format!("/organizations/{org}/keys")).count(),
            0
        );
        assert_eq!(object_keys("a contract").count(), 0);
    }

    #[test]
    fn a_store_inside_of_another_is_nested() {
        assert!(is_nested("s3://contracts/a", "s3://contracts/a/"));
        assert!(is_nested("s3://contracts", "s3://contracts/a"));
        assert!(is_nested("s3://contracts/a/b", "s3://contracts/a"));
        assert!(!is_nested("s3://contracts/a", "s3://contracts/ab"));
        assert!(!is_nested("s3://contracts/a", "gs://contracts/a"));
    }

    #[test]
    fn a_log_with_a_gap_or_a_place_taken_twice_has_no_root() {
        let leaf = |number: u8| [number; 32];
        assert_eq!(root_of(Vec::new()).unwrap().0, 0);
        let in_order = root_of(vec![(0, leaf(1)), (1, leaf(2))]);
        assert_eq!(in_order, root_of(vec![(1, leaf(2)), (0, leaf(1))]));
        assert_eq!(in_order.unwrap().0, 2);
        assert_eq!(root_of(vec![(0, leaf(1)), (2, leaf(2))]), None);
        assert_eq!(root_of(vec![(0, leaf(1)), (0, leaf(2))]), None);
    }

    #[test]
    fn a_target_is_a_url_of_a_database_or_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("new");
        let url = target_url(to.to_str().unwrap()).unwrap();
        assert!(
            url.starts_with("sqlite:///") && url.ends_with("/new/holdfast.db"),
            "{url}"
        );
        assert!(to.is_dir());
        for url in ["postgres://db/holdfast", "sqlite:/tmp/x.db"] {
            assert_eq!(target_url(url).unwrap(), url);
        }
        for wrong in ["mysql://db/holdfast", ""] {
            assert!(matches!(target_url(wrong), Err(MoveError::UnknownTarget)));
        }
    }
}
