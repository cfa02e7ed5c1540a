//! Files that come with the program, in it or beside it.
//!
//! A build with the feature `embedded` has the files inside. Without the feature they are in a folder beside the
//! program: `share` in the folder of the program, or else `share/holdfast` beside that folder, as in
//! `/usr/share/holdfast` for `/usr/bin/holdfast`. The program knows the SHA-256 of each file and uses no other bytes.

use std::collections::BTreeMap;
use std::env;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::ptr;
use std::slice;
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::mm::{MapFlags, ProtFlags, mmap};
use sha2::{Digest as _, Sha256};

/// What to do about a file that is missing or altered.
const REPAIR: &str =
    "Install the package again, or copy the folder `share` of the same build beside the program";

/// File that comes with the program.
pub struct SharedFile {
    name: &'static str,
    content: FileContent,
}

enum FileContent {
    Embedded(&'static [u8]),
    /// In the folder beside the program, with this SHA-256 (lower-case hex).
    Beside(&'static str),
}

/// Reason why a file beside the program cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ShareError {
    /// The file is missing or cannot be read.
    #[error(
        "cannot read {file}, which belongs to this program: {source}. {}",
        REPAIR
    )]
    Unreadable {
        /// Path of the file.
        file: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The file has another SHA-256 than the one that this program was built with.
    #[error("{file} is not the file that this program was built with. {}", REPAIR)]
    Altered {
        /// Path of the file.
        file: String,
    },
}

/// Folder of the files, found when the first of them is used.
static FOLDER: OnceLock<PathBuf> = OnceLock::new();
/// Files that are mapped, by name. They stay mapped while the process lives.
static MAPPED: Mutex<BTreeMap<&str, &[u8]>> = Mutex::new(BTreeMap::new());

impl SharedFile {
    /// Describes a file inside the program.
    pub const fn embedded(name: &'static str, bytes: &'static [u8]) -> Self {
        Self {
            name,
            content: FileContent::Embedded(bytes),
        }
    }

    /// Describes a file beside the program, with its SHA-256 in lower-case hex.
    pub const fn beside(name: &'static str, sha256: &'static str) -> Self {
        Self {
            name,
            content: FileContent::Beside(sha256),
        }
    }

    /// Returns the bytes of the file. The first call for a file beside the program checks its SHA-256 and maps it.
    ///
    /// # Errors
    /// The file beside the program is missing, cannot be read, or was altered.
    pub fn bytes(&self) -> Result<&'static [u8], ShareError> {
        let sha256 = match self.content {
            FileContent::Embedded(bytes) => return Ok(bytes),
            FileContent::Beside(sha256) => sha256,
        };

        let mut mapped = MAPPED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = mapped.get(self.name).copied() {
            return Ok(bytes);
        }

        let bytes = map(&folder().join(self.name), sha256)?;
        mapped.insert(self.name, bytes);
        Ok(bytes)
    }

    /// Returns the line of a file beside the program in a list for `sha256sum --check`.
    pub fn checksum(&self) -> Option<String> {
        match self.content {
            FileContent::Embedded(_) => None,
            FileContent::Beside(sha256) => Some(format!("{sha256}  {}", self.name)),
        }
    }
}

/// Sets the folder of the files, before the first of them is used. For build scripts, which do not lie beside it.
pub fn look_in(folder: PathBuf) {
    let _ = FOLDER.set(folder);
}

/// Returns the folder of the files.
fn folder() -> &'static Path {
    FOLDER.get_or_init(|| {
        let program = env::current_exe().unwrap_or_default();
        let mut folders = program.ancestors().skip(1);
        let beside = folders.next().unwrap_or(Path::new("")).join("share");
        let installed = folders.next().unwrap_or(Path::new(""));
        let installed = installed.join("share/holdfast");

        if beside.is_dir() { beside } else { installed }
    })
}

/// Checks the SHA-256 of a file and maps it for the life of the process.
#[expect(unsafe_code, reason = "mapping a file has no safe form")]
fn map(path: &Path, sha256: &str) -> Result<&'static [u8], ShareError> {
    let name = || path.display().to_string();
    let unreadable = |source| ShareError::Unreadable {
        file: name(),
        source,
    };

    // Read instead of mapped, so that the check leaves no page of the file in the memory of this process.
    let mut file = File::open(path).map_err(unreadable)?;
    let mut digest = Sha256::new();
    let size = io::copy(&mut file, &mut digest).map_err(unreadable)?;
    if hex::encode(digest.finalize()) != sha256 {
        return Err(ShareError::Altered { file: name() });
    }
    let size = usize::try_from(size).map_err(|error| unreadable(io::Error::other(error)))?;

    // SAFETY: a new, private and read-only mapping of the whole file, which nothing removes. The bytes do not change:
    // packages and builds replace the file by renaming, and who can write into it can replace the program as well.
    unsafe {
        let start = mmap(
            ptr::null_mut(),
            size,
            ProtFlags::READ,
            MapFlags::PRIVATE,
            &file,
            0,
        )
        .map_err(|error| unreadable(error.into()))?;
        Ok(slice::from_raw_parts(start.cast_const().cast(), size))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn digest(bytes: &[u8]) -> String {
        hex::encode(Sha256::digest(bytes))
    }

    #[test]
    fn a_file_is_mapped_with_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("face.ttf");
        fs::write(&path, b"a typeface").unwrap();

        let mapped = map(&path, &digest(b"a typeface")).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(mapped, b"a typeface");
    }

    #[test]
    fn an_altered_file_is_refused_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("face.ttf");
        fs::write(&path, b"another typeface").unwrap();

        let error = map(&path, &digest(b"a typeface")).unwrap_err();
        assert!(matches!(error, ShareError::Altered { .. }), "{error}");
        assert!(error.to_string().contains("face.ttf"), "{error}");
    }

    #[test]
    fn a_missing_file_is_named_with_its_repair() {
        let folder = tempfile::tempdir().unwrap();
        let error = map(&folder.path().join("face.ttf"), &digest(b"a typeface"));
        let error = error.unwrap_err().to_string();
        assert!(error.contains("face.ttf"), "{error}");
        assert!(error.contains("Install the package again"), "{error}");
    }
}
