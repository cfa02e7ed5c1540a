//! Keys of this installation, in the folder `keys` of the data folder.
//!
//! | File | Content |
//! |---|---|
//! | `master.key` | secret from which the other keys are derived; seals and signs |
//! | `master.previous.key` | master key before the last rotation; still opens and verifies |
//! | `master.next.key` | master key after the next rotation, if prepared; opens and verifies |
//! | `log.key` | signs the head of the log; separate, so that it can be replaced independently |
//! | `log.next.key` | new key of the log, during its replacement |
//! | `witness.key` | signs heads of the logs of others; in no backup, because it must never sign two histories |

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use holdfast_domain::at_rest::AtRestCipher;
use holdfast_domain::hash::hmac_sha256;
use holdfast_domain::token::random;

const CURRENT: &str = "master.key";
const PREVIOUS: &str = "master.previous.key";
const NEXT: &str = "master.next.key";
const LOG: &str = "log.key";
const LOG_NEXT: &str = "log.next.key";
const WITNESS: &str = "witness.key";
/// Derivation purpose of the log's key, from before it had a file.
const LOG_PURPOSE: &str = "ledger checkpoints";

/// Derivation purpose of the keys of web-app tokens.
pub const BEARER_TOKENS: &str = "bearer tokens";
/// Derivation purpose of the keys that wrap those of records.
pub const RECORD_KEYS: &str = "record keys";
/// Derivation purpose of the keys that seal stored responses, secrets and sessions.
const SEALED: &str = "kept answers";

/// 32-byte secret.
pub type Key = [u8; 32];

/// Keys as loaded at startup.
pub struct InstallationKeys {
    current: Key,
    /// Previous and next master keys, if they exist.
    others: Vec<Key>,
    log: Key,
}

impl InstallationKeys {
    /// Reads the keys below the data folder and generates missing ones.
    pub fn open(data: &Path) -> io::Result<Self> {
        let folder = folder(data);
        let current = read_or_make(&folder.join(CURRENT), random)?;
        // The next key is read, too: another node may have rotated already and seal with it.
        let others = [PREVIOUS, NEXT]
            .iter()
            .filter_map(|name| read(&folder.join(name)).transpose())
            .collect::<io::Result<_>>()?;

        // An installation without this file signed with a derived key, and keeps that one.
        let derived_log = || hmac_sha256(&current, &[LOG_PURPOSE.as_bytes()]);
        let log = read_or_make(&folder.join(LOG), derived_log)?;
        Ok(Self {
            current,
            others,
            log,
        })
    }

    /// Derives the key for a purpose.
    pub fn derived(&self, purpose: &str) -> Key {
        hmac_sha256(&self.current, &[purpose.as_bytes()])
    }

    /// Derives the keys for a purpose from all readable generations, the current one first.
    pub fn generations(&self, purpose: &str) -> Vec<Key> {
        let all = std::iter::once(&self.current).chain(&self.others);
        all.map(|master| hmac_sha256(master, &[purpose.as_bytes()]))
            .collect()
    }

    /// Returns a cipher that seals with the current generation and opens texts of any readable one.
    pub fn cipher(&self) -> Option<AtRestCipher> {
        AtRestCipher::of_generations(&self.generations(SEALED))
    }

    /// Returns the key that signs the head of the log.
    pub fn log(&self) -> &Key {
        &self.log
    }
}

/// Generates the next master key, unless one is prepared already. Nodes can read with it after
/// their next start.
pub fn prepare(data: &Path) -> io::Result<()> {
    read_or_make(&folder(data).join(NEXT), random).map(drop)
}

/// Replaces the master key by the prepared one, or by a new one. The old one stays readable. If the
/// rotation is interrupted at any point, the remaining keys read everything.
pub fn rotate(data: &Path) -> io::Result<()> {
    let folder = folder(data);
    // Opening proves that the present key is readable before it is moved aside.
    let keys = InstallationKeys::open(data)?;
    prepare(data)?;
    // The old key is saved first: an interruption leaves two copies of it, never none.
    replace(&folder, PREVIOUS, &keys.current)?;
    fs::rename(folder.join(NEXT), folder.join(CURRENT))?;
    // Without syncing the folder, a crash could undo the rename.
    File::open(&folder)?.sync_all()
}

/// Returns the prepared key of the log, generating one if necessary.
pub fn prepare_log(data: &Path) -> io::Result<Key> {
    read_or_make(&folder(data).join(LOG_NEXT), random)
}

/// Replaces the key of the log by the prepared one; the old key is deleted.
pub fn promote_log(data: &Path) -> io::Result<()> {
    let folder = folder(data);
    // The old key must sign nothing more, so unlike a master key it is not kept.
    fs::rename(folder.join(LOG_NEXT), folder.join(LOG))?;
    File::open(&folder)?.sync_all()
}

/// Returns the key with which this installation cosigns the logs of others, generating it at the first call.
pub fn witness(data: &Path) -> io::Result<Key> {
    read_or_make(&folder(data).join(WITNESS), random)
}

fn folder(data: &Path) -> PathBuf {
    data.join("keys")
}

fn read(path: &Path) -> io::Result<Option<Key>> {
    match fs::read(path) {
        Ok(bytes) => match bytes.try_into() {
            Ok(key) => Ok(Some(key)),
            // A truncated key is an error and never generated anew: data sealed with it would be lost.
            Err(_) => Err(io::Error::other(format!(
                "{} does not hold 32 bytes",
                path.display()
            ))),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads a key, or generates it. A new key is written to a temporary file and hard-linked into
/// place: if two processes start together, both use the first complete key.
fn read_or_make(path: &Path, make: impl FnOnce() -> Key) -> io::Result<Key> {
    if let Some(key) = read(path)? {
        return Ok(key);
    }

    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    // A hard link fails where the name exists, while a rename would replace another process's key.
    let temporary = write_beside(path, &make())?;
    let linked = fs::hard_link(&temporary, path);
    fs::remove_file(&temporary)?;
    // Data is sealed with the key from now on: a crash must not take the link away.
    File::open(folder)?.sync_all()?;

    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        // Another process may have linked its key first, so the file is authoritative.
        _ => read(path)?.ok_or_else(|| io::Error::other("a key was removed while it was made")),
    }
}

fn replace(folder: &Path, name: &str, key: &Key) -> io::Result<()> {
    let path = folder.join(name);
    fs::rename(write_beside(&path, key)?, path)
}

/// Writes a key to a temporary file that only its owner can read.
fn write_beside(path: &Path, key: &Key) -> io::Result<PathBuf> {
    let temporary = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        // A file of an earlier process with the same id may be left over.
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
    fn the_current_and_previous_keys_decrypt_after_a_rotation() {
        let data = tempfile::tempdir().unwrap();
        let first = InstallationKeys::open(data.path()).unwrap();
        rotate(data.path()).unwrap();
        let second = InstallationKeys::open(data.path()).unwrap();
        assert_ne!(second.derived("x"), first.derived("x"));

        let both = [second.derived("x"), first.derived("x")];
        assert_eq!(second.generations("x"), both);
        assert_eq!(second.log(), first.log(), "the log has a key of its own");

        rotate(data.path()).unwrap();
        let third = InstallationKeys::open(data.path()).unwrap();
        assert_eq!(
            third.generations("x"),
            [third.derived("x"), second.derived("x")]
        );
    }

    #[test]
    fn a_prepared_key_decrypts_before_its_activation() {
        let data = tempfile::tempdir().unwrap();
        let first = InstallationKeys::open(data.path()).unwrap();
        prepare(data.path()).unwrap();
        let prepared = InstallationKeys::open(data.path()).unwrap();
        assert_eq!(prepared.derived("x"), first.derived("x"));
        rotate(data.path()).unwrap();
        let rotated = InstallationKeys::open(data.path()).unwrap();
        assert_eq!(prepared.generations("x")[1], rotated.derived("x"));
    }

    #[test]
    fn an_older_installation_keeps_its_log_key() {
        let data = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder(data.path())).unwrap();
        fs::write(folder(data.path()).join(CURRENT), [7; 32]).unwrap();
        let keys = InstallationKeys::open(data.path()).unwrap();
        let before = hmac_sha256(&[7; 32], &[LOG_PURPOSE.as_bytes()]);
        assert_eq!(*keys.log(), before);
    }

    #[test]
    fn a_key_of_wrong_length_is_named() {
        let data = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder(data.path())).unwrap();
        fs::write(folder(data.path()).join(CURRENT), b"short").unwrap();
        let error = InstallationKeys::open(data.path())
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.contains("master.key does not hold 32 bytes"),
            "{error}"
        );
    }
}
