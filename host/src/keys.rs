//! The keys of this installation, in the folder `keys` of the data folder.
//!
//! | File | Is |
//! |---|---|
//! | `master.key` | the secret that the others are derived from; seals and signs |
//! | `master.previous.key` | the one before the last rotation; still opens and verifies |
//! | `master.next.key` | the one after the next rotation, where it was prepared; opens and verifies |
//! | `log.key` | signs the head of the log; of its own, so that either can be replaced alone |
//! | `log.next.key` | while the key of the log is being replaced |

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::domain::hash::hmac_sha256;
use crate::domain::seal::Sealer;
use crate::domain::token::random;

const CURRENT: &str = "master.key";
const PREVIOUS: &str = "master.previous.key";
const NEXT: &str = "master.next.key";
const LOG: &str = "log.key";
const LOG_NEXT: &str = "log.next.key";
/// What the key of the log was derived for before it had a file of its own.
const LOG_PURPOSE: &str = "ledger checkpoints";

/// What the keys of web-app tokens are derived for.
pub const BEARER_TOKENS: &str = "bearer tokens";
/// What the keys are derived for that seal answers, secrets and sessions.
const SEALED: &str = "kept answers";

/// A secret of 32 bytes.
pub type Key = [u8; 32];

/// The keys as they were when the process started.
pub struct Keys {
    current: Key,
    /// The previous one and the next one, as far as there are such.
    others: Vec<Key>,
    log: Key,
}

impl Keys {
    /// Reads the keys below the data folder; makes those that are missing.
    pub fn open(data: &Path) -> io::Result<Self> {
        let folder = folder(data);
        let current = read_or_make(&folder.join(CURRENT), random)?;
        let others = [PREVIOUS, NEXT]
            .iter()
            .filter_map(|name| read(&folder.join(name)).transpose())
            .collect::<io::Result<_>>()?;
        // An installation that is older than this file keeps the key that it signed with.
        let derived_log = || hmac_sha256(&current, &[LOG_PURPOSE.as_bytes()]);
        let log = read_or_make(&folder.join(LOG), derived_log)?;
        Ok(Self {
            current,
            others,
            log,
        })
    }

    /// The key for a purpose.
    pub fn derived(&self, purpose: &str) -> Key {
        hmac_sha256(&self.current, &[purpose.as_bytes()])
    }

    /// The keys for a purpose in each generation that can be read; the current one first.
    pub fn generations(&self, purpose: &str) -> Vec<Key> {
        let all = std::iter::once(&self.current).chain(&self.others);
        all.map(|master| hmac_sha256(master, &[purpose.as_bytes()]))
            .collect()
    }

    /// Seals with the current generation and opens what any readable one sealed.
    pub fn sealer(&self) -> Option<Sealer> {
        Sealer::of_generations(&self.generations(SEALED))
    }

    /// Signs the head of the log.
    pub fn log(&self) -> &Key {
        &self.log
    }
}

/// Makes the next master key, which nodes can read from their next start on. What is there
/// already stays.
pub fn prepare(data: &Path) -> io::Result<()> {
    read_or_make(&folder(data).join(NEXT), random).map(drop)
}

/// Replaces the master key by the prepared one, or by a new one. The one before stays
/// readable. A rotation that broke off anywhere leaves keys that read everything.
pub fn rotate(data: &Path) -> io::Result<()> {
    let folder = folder(data);
    let keys = Keys::open(data)?;
    prepare(data)?;
    replace(&folder, PREVIOUS, &keys.current)?;
    fs::rename(folder.join(NEXT), folder.join(CURRENT))?;
    File::open(&folder)?.sync_all()
}

/// The prepared key of the log, made where there is none.
pub fn prepare_log(data: &Path) -> io::Result<Key> {
    read_or_make(&folder(data).join(LOG_NEXT), random)
}

/// Puts the prepared key of the log in the place of the old one, which is gone then.
pub fn promote_log(data: &Path) -> io::Result<()> {
    let folder = folder(data);
    fs::rename(folder.join(LOG_NEXT), folder.join(LOG))?;
    File::open(&folder)?.sync_all()
}

fn folder(data: &Path) -> PathBuf {
    data.join("keys")
}

fn read(path: &Path) -> io::Result<Option<Key>> {
    match fs::read(path) {
        Ok(bytes) => match bytes.try_into() {
            Ok(key) => Ok(Some(key)),
            Err(_) => Err(io::Error::other(format!(
                "{} does not hold 32 bytes",
                path.display()
            ))),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Written beside and linked into place, so that of two processes starting together one
/// key wins whole.
fn read_or_make(path: &Path, make: impl FnOnce() -> Key) -> io::Result<Key> {
    if let Some(key) = read(path)? {
        return Ok(key);
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let temporary = write_beside(path, &make())?;
    let linked = fs::hard_link(&temporary, path);
    fs::remove_file(&temporary)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => read(path)?.ok_or_else(|| io::Error::other("a key was removed while it was made")),
    }
}

fn replace(folder: &Path, name: &str, key: &Key) -> io::Result<()> {
    let path = folder.join(name);
    fs::rename(write_beside(&path, key)?, path)
}

/// Readable for its owner only.
fn write_beside(path: &Path, key: &Key) -> io::Result<PathBuf> {
    let temporary = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)?;
    file.write_all(key)?;
    file.sync_all()?;
    Ok(temporary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_generations_are_readable_after_a_rotation() {
        let data = crate::test_folder();
        let first = Keys::open(data.path()).unwrap();
        rotate(data.path()).unwrap();
        let second = Keys::open(data.path()).unwrap();
        assert_ne!(second.derived("x"), first.derived("x"));
        let both = [second.derived("x"), first.derived("x")];
        assert_eq!(second.generations("x"), both);
        assert_eq!(second.log(), first.log(), "the log has a key of its own");
        rotate(data.path()).unwrap();
        let third = Keys::open(data.path()).unwrap();
        assert_eq!(
            third.generations("x"),
            [third.derived("x"), second.derived("x")]
        );
    }

    #[test]
    fn a_prepared_key_is_readable_before_it_is_used() {
        let data = crate::test_folder();
        let first = Keys::open(data.path()).unwrap();
        prepare(data.path()).unwrap();
        let prepared = Keys::open(data.path()).unwrap();
        assert_eq!(prepared.derived("x"), first.derived("x"));
        rotate(data.path()).unwrap();
        let rotated = Keys::open(data.path()).unwrap();
        assert_eq!(prepared.generations("x")[1], rotated.derived("x"));
    }

    #[test]
    fn an_older_installation_keeps_the_key_of_its_log() {
        let data = crate::test_folder();
        fs::create_dir_all(folder(data.path())).unwrap();
        fs::write(folder(data.path()).join(CURRENT), [7; 32]).unwrap();
        let keys = Keys::open(data.path()).unwrap();
        let before = hmac_sha256(&[7; 32], &[LOG_PURPOSE.as_bytes()]);
        assert_eq!(*keys.log(), before);
    }

    #[test]
    fn a_key_of_another_length_is_named() {
        let data = crate::test_folder();
        fs::create_dir_all(folder(data.path())).unwrap();
        fs::write(folder(data.path()).join(CURRENT), b"short").unwrap();
        let error = Keys::open(data.path()).err().unwrap().to_string();
        assert!(
            error.contains("master.key does not hold 32 bytes"),
            "{error}"
        );
    }
}
