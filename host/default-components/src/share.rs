//! Files that come with the program, in it or beside it.
//!
//! A build with the feature `embedded` has the files inside. Without the feature they are in a folder beside the
//! program: `share` in the folder of the program, or else `share/holdfast` beside that folder, as in
//! `/usr/share/holdfast` for `/usr/bin/holdfast`. The program knows the SHA-256 of each file and uses no other bytes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::env;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::ptr;
use std::slice;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::mm::{MapFlags, ProtFlags, mmap};
use sha2::{Digest as _, Sha256};

/// What to do about a file that is missing or altered.
const REPAIR: &str = "Stop the program, then install the package again, or copy the folder `share` of the same build \
                      beside the program";

/// File that comes with the program.
pub struct SharedFile {
    name: &'static str,
    content: FileContent,
}

enum FileContent {
    Embedded(&'static [u8]),
    /// In the folder beside the program.
    Beside {
        /// Number of the bytes.
        size: usize,
        /// Lower-case hex.
        sha256: &'static str,
    },
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
    /// The file has another size or SHA-256 than the one that this program was built with.
    #[error("{file} is not the file that this program was built with. {}", REPAIR)]
    Altered {
        /// Path of the file.
        file: String,
    },
}

/// Folder of the files, found when the first of them is used.
static FOLDER: OnceLock<PathBuf> = OnceLock::new();
/// Files beside the program that were opened, by name.
static OPEN: Mutex<BTreeMap<&str, OpenFile>> = Mutex::new(BTreeMap::new());

impl SharedFile {
    /// Describes a file inside the program.
    pub const fn embedded(name: &'static str, bytes: &'static [u8]) -> Self {
        Self {
            name,
            content: FileContent::Embedded(bytes),
        }
    }

    /// Describes a file beside the program, with the number of its bytes and its SHA-256 in lower-case hex.
    pub const fn beside(name: &'static str, size: usize, sha256: &'static str) -> Self {
        Self {
            name,
            content: FileContent::Beside { size, sha256 },
        }
    }

    /// Opens a file beside the program without reading it. An update that replaces the file later does not affect this
    /// process.
    ///
    /// # Errors
    /// The file is missing or has another size.
    pub fn open(&self) -> Result<(), ShareError> {
        if let FileContent::Beside { size, .. } = self.content {
            opened(&mut open_files(), self.name, size)?;
        }
        Ok(())
    }

    /// Returns the bytes of the file: of one beside the program a copy with a checked SHA-256.
    ///
    /// # Errors
    /// The file beside the program is missing, cannot be read, or was altered.
    pub fn bytes(&self) -> Result<Cow<'static, [u8]>, ShareError> {
        match self.content {
            FileContent::Embedded(bytes) => Ok(Cow::Borrowed(bytes)),
            FileContent::Beside { size, sha256 } => {
                let copy = opened(&mut open_files(), self.name, size)?.copy(sha256)?;
                Ok(Cow::Owned(copy))
            }
        }
    }

    /// Like [`Self::bytes`] without a copy: the system reads the pages of a file beside the program when they are used.
    /// The SHA-256 is checked once, so who writes into the file later alters the bytes. For typefaces only.
    ///
    /// # Errors
    /// Those of [`Self::bytes`].
    pub fn mapped(&self) -> Result<&'static [u8], ShareError> {
        match self.content {
            FileContent::Embedded(bytes) => Ok(bytes),
            FileContent::Beside { size, sha256 } => {
                opened(&mut open_files(), self.name, size)?.mapped(sha256)
            }
        }
    }

    /// Returns the line of a file beside the program in a list for `sha256sum --check`.
    pub fn checksum(&self) -> Option<String> {
        match self.content {
            FileContent::Embedded(_) => None,
            FileContent::Beside { sha256, .. } => Some(format!("{sha256}  {}", self.name)),
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

fn open_files() -> MutexGuard<'static, BTreeMap<&'static str, OpenFile>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the open file of a name, and opens it if necessary.
fn opened<'a>(
    files: &'a mut BTreeMap<&'static str, OpenFile>,
    name: &'static str,
    size: usize,
) -> Result<&'a mut OpenFile, ShareError> {
    match files.entry(name) {
        Entry::Occupied(file) => Ok(file.into_mut()),
        Entry::Vacant(place) => {
            let file = OpenFile::open(folder().join(name), size)?;
            Ok(place.insert(file))
        }
    }
}

/// Open file beside the program.
struct OpenFile {
    path: PathBuf,
    file: File,
    size: usize,
    /// Its bytes in memory once they were mapped and verified. They stay mapped while the process lives.
    mapped: Option<&'static [u8]>,
}

impl OpenFile {
    /// Opens a file of this size.
    fn open(path: PathBuf, size: usize) -> Result<Self, ShareError> {
        let file = File::open(&path).map_err(|source| unreadable(&path, source))?;
        let found = file.metadata();
        let found = found.map_err(|source| unreadable(&path, source))?.len();
        if usize::try_from(found) != Ok(size) {
            return Err(altered(&path));
        }

        Ok(Self {
            path,
            file,
            size,
            mapped: None,
        })
    }

    /// Reads the bytes. The SHA-256 is that of the copy, so checked bytes cannot be altered.
    fn copy(&self, sha256: &str) -> Result<Vec<u8>, ShareError> {
        let mut bytes = vec![0; self.size];
        let read = self.file.read_exact_at(&mut bytes, 0);
        read.map_err(|source| unreadable(&self.path, source))?;
        self.check(&bytes, sha256)?;
        Ok(bytes)
    }

    /// Maps the file, after checking its SHA-256 once.
    #[expect(unsafe_code, reason = "mapping a file has no safe form")]
    fn mapped(&mut self, sha256: &str) -> Result<&'static [u8], ShareError> {
        if let Some(bytes) = self.mapped {
            return Ok(bytes);
        }

        // SAFETY: a new, private and read-only mapping of the whole file, which nothing removes. Packages and builds replace
        // the file by renaming, and who can write into it can replace the program as well.
        let bytes = unsafe {
            let start = mmap(
                ptr::null_mut(),
                self.size,
                ProtFlags::READ,
                MapFlags::PRIVATE,
                &self.file,
                0,
            )
            .map_err(|error| unreadable(&self.path, error.into()))?;
            slice::from_raw_parts(start.cast_const().cast::<u8>(), self.size)
        };

        self.check(bytes, sha256)?;
        self.mapped = Some(bytes);
        Ok(bytes)
    }

    fn check(&self, bytes: &[u8], sha256: &str) -> Result<(), ShareError> {
        if hex::encode(Sha256::digest(bytes)) == sha256 {
            Ok(())
        } else {
            Err(altered(&self.path))
        }
    }
}

fn unreadable(path: &Path, source: io::Error) -> ShareError {
    ShareError::Unreadable {
        file: path.display().to_string(),
        source,
    }
}

fn altered(path: &Path) -> ShareError {
    ShareError::Altered {
        file: path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const BYTES: &[u8] = b"a typeface";

    fn file(folder: &tempfile::TempDir, bytes: &[u8]) -> Result<OpenFile, ShareError> {
        let path = folder.path().join("Face.ttf");
        // Replaced like by a package: who has it open keeps the old file.
        let _ = fs::remove_file(&path);
        fs::write(&path, bytes).unwrap();
        OpenFile::open(path, BYTES.len())
    }

    fn digest() -> String {
        hex::encode(Sha256::digest(BYTES))
    }

    #[test]
    fn an_open_file_outlives_its_replacement() {
        let folder = tempfile::tempdir().unwrap();
        let mut open = file(&folder, BYTES).unwrap();
        fs::remove_file(folder.path().join("Face.ttf")).unwrap();
        assert_eq!(open.copy(&digest()).unwrap(), BYTES);
        assert_eq!(open.mapped(&digest()).unwrap(), BYTES);
    }

    #[test]
    fn a_copy_stays_what_was_checked() {
        let folder = tempfile::tempdir().unwrap();
        let open = file(&folder, BYTES).unwrap();
        let copy = open.copy(&digest()).unwrap();

        // Written into, not replaced.
        fs::write(folder.path().join("Face.ttf"), b"b typeface").unwrap();
        assert_eq!(copy, BYTES);
        let altered = open.copy(&digest()).unwrap_err();
        assert!(matches!(altered, ShareError::Altered { .. }), "{altered}");
    }

    #[test]
    fn an_altered_file_is_refused_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let mut same_size = file(&folder, b"b typeface").unwrap();
        let other_size = file(&folder, b"another typeface").map(|_| ());
        for error in [
            same_size.copy(&digest()).map(|_| ()).unwrap_err(),
            same_size.mapped(&digest()).map(|_| ()).unwrap_err(),
            other_size.unwrap_err(),
        ] {
            assert!(matches!(error, ShareError::Altered { .. }), "{error}");
            assert!(error.to_string().contains("Face.ttf"), "{error}");
        }
    }

    #[test]
    fn a_missing_file_is_named_with_its_repair() {
        let folder = tempfile::tempdir().unwrap();
        let error = OpenFile::open(folder.path().join("Face.ttf"), BYTES.len());
        let error = error.map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("Face.ttf"), "{error}");
        assert!(error.contains("install the package again"), "{error}");
    }
}
