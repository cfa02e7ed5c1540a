//! Reading the files of a bundle.
//!
//! A zip or folder with anything that a bundle does not have is not read: readers could take the wrong
//! file of two for the evidence. The problems are findings of the report.

use std::collections::BTreeMap;
use std::fs::{DirEntry, File};
use std::io::{Read as _, Seek};
use std::path::Path;

use bytes::Bytes;

use super::archive::{Archive, ArchiveLimits, is_unsafe};
use super::formats::{
    AUTHORITATIVE, CERTIFICATE, COMPONENT_LEDGER, COMPONENTS, COPY, CUSTODY_RECORD, CustodyLedger,
    DISCLOSURES, EVIDENCE_COPY, FACTS, LEDGER, NOTICE, SEAL_UPDATES,
};
use super::report::ReportFinding;
use holdfast_domain::component::ComponentIdentity;
use holdfast_domain::fact_map::FactRecord;
use holdfast_domain::facts::FactSheet;
use holdfast_domain::hash::sha256;
use holdfast_domain::id::{EnvelopeId, OrgId};

const CHECK: &str = "archive";

/// Limits of a bundle: a file of 50 MiB at most was uploaded, and few are added to it.
const LIMITS: ArchiveLimits = ArchiveLimits {
    file: 256 * 1024 * 1024,
    total: 1024 * 1024 * 1024,
};
/// Files in the top folder of a bundle.
const FILES: [&str; 10] = [
    AUTHORITATIVE,
    EVIDENCE_COPY,
    COPY,
    CERTIFICATE,
    CUSTODY_RECORD,
    LEDGER,
    COMPONENT_LEDGER,
    FACTS,
    SEAL_UPDATES,
    NOTICE,
];
/// Folders of a bundle, the ending of the files in them, which are named by their SHA-256, and the
/// largest number of them: more than the evidence of any envelope names.
const FOLDERS: [BundleFolder; 2] = [
    BundleFolder {
        name: COMPONENTS,
        ending: ".wasm",
        limit: 64,
    },
    BundleFolder {
        name: DISCLOSURES,
        ending: ".txt",
        limit: 256,
    },
];

/// Folder of a bundle.
struct BundleFolder {
    name: &'static str,
    ending: &'static str,
    limit: usize,
}

impl BundleFolder {
    /// Returns the part of a path within this folder.
    fn inner<'a>(&self, path: &'a str) -> Option<&'a str> {
        path.strip_prefix(self.name)?.strip_prefix('/')
    }

    /// Returns the SHA-256 in the name of one of its files.
    fn digest<'a>(&self, path: &'a str) -> Option<&'a str> {
        let digest = self.inner(path)?.strip_suffix(self.ending)?;
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (digest.len() == 64 && digest.bytes().all(is_hex)).then_some(digest)
    }
}

/// Reason why a bundle cannot be checked at all.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The path is neither a folder nor a zip, or it cannot be read.
    #[error("cannot read the bundle: {0}")]
    Read(String),
    /// A file is missing.
    #[error("the bundle has no {0}")]
    Missing(&'static str),
}

fn unreadable(error: impl std::fmt::Display) -> BundleError {
    BundleError::Read(error.to_string())
}

/// Origin of the files of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BundleSource {
    /// A zip or a folder.
    Exported,
    /// The store of an installation.
    Installation { in_vault: bool },
}

/// Evidence of an envelope.
pub struct Bundle {
    files: BTreeMap<String, Bytes>,
    source: BundleSource,
    /// Problems of the zip or folder. With any, its files were not read.
    problems: Vec<String>,
}

impl Bundle {
    /// Reads a folder or a zip.
    pub fn read(path: &Path) -> Result<Self, BundleError> {
        if path.is_dir() {
            let mut folder = FolderReader::default();
            folder.read(path, "").map_err(unreadable)?;
            Ok(folder.bundle())
        } else {
            Self::of_archive(File::open(path).map_err(unreadable)?)
        }
    }

    /// Reads a zip.
    pub fn from_zip(bytes: Vec<u8>) -> Result<Self, BundleError> {
        Self::of_archive(std::io::Cursor::new(bytes))
    }

    fn of_archive(file: impl std::io::Read + Seek) -> Result<Self, BundleError> {
        let mut archive = Archive::open(file, LIMITS).map_err(unreadable)?;
        let names: Vec<String> = archive.names().map(str::to_owned).collect();
        let mut problems = std::mem::take(&mut archive.problems);
        problems.extend(unknown_names(&names));

        let mut files = BTreeMap::new();
        // Nothing is unpacked from an archive that two readers could take in different ways.
        if problems.is_empty() {
            for name in names.into_iter().filter(|name| !name.ends_with('/')) {
                match archive.read(&name) {
                    Some(Ok(bytes)) => _ = files.insert(name, Bytes::from(bytes)),
                    Some(Err(why)) => problems.push(why),
                    None => {}
                }
            }
        }

        Ok(Self::exported(files, problems))
    }

    fn exported(files: BTreeMap<String, Bytes>, problems: Vec<String>) -> Self {
        Self {
            files,
            source: BundleSource::Exported,
            problems,
        }
    }

    /// Collects the files of a zip or folder that were read before.
    pub fn of_files(files: impl IntoIterator<Item = (String, Bytes)>) -> Self {
        let files: BTreeMap<String, Bytes> = files.into_iter().collect();
        let names: Vec<String> = files.keys().cloned().collect();
        Self::exported(files, unknown_names(&names))
    }

    /// Collects the evidence that an installation stores, released or not.
    pub fn of_installation(
        files: impl IntoIterator<Item = (String, Bytes)>,
        in_vault: bool,
    ) -> Self {
        Self {
            files: files.into_iter().collect(),
            source: BundleSource::Installation { in_vault },
            problems: Vec::new(),
        }
    }

    /// Whether the authoritative copy is still in the vault: nothing was released.
    pub(super) fn is_in_vault(&self) -> bool {
        self.source == BundleSource::Installation { in_vault: true }
    }

    /// Whether the files come from a zip or folder.
    pub(super) fn is_exported(&self) -> bool {
        self.source == BundleSource::Exported
    }

    /// Whether this is what an export writes, as a whole or in part. Otherwise it is the store of an
    /// installation, or a folder with nothing but the files of a vault-out and the ledger.
    pub(super) fn is_of_export(&self) -> bool {
        let of_vault_out = [AUTHORITATIVE, COPY, CERTIFICATE, CUSTODY_RECORD, LEDGER];
        let mut names = self.files.keys();
        self.is_exported() && names.any(|name| !of_vault_out.contains(&name.as_str()))
    }

    /// Returns the finding about the names and sizes of the zip or folder; `None` for an installation.
    pub(super) fn finding(&self) -> Option<ReportFinding> {
        // An installation verifies the files of its own store, so there is no archive to find fault with.
        if !self.is_exported() {
            return None;
        }
        if self.problems.is_empty() {
            let detail = format!(
                "{} files, each once and with a name of a bundle",
                self.files.len()
            );
            return Some(ReportFinding::holds(CHECK, detail));
        }

        Some(ReportFinding::fails(CHECK, self.problems.join("; ")))
    }

    /// Whether the zip or folder has something wrong, and was not read.
    pub(super) fn is_refused(&self) -> bool {
        !self.problems.is_empty()
    }

    /// Returns the authoritative copy under the name that it has in this bundle.
    pub(super) fn authoritative(&self) -> Result<(&'static str, &Bytes), BundleError> {
        let copy = |name: &'static str| self.files.get(name).map(|bytes| (name, bytes));
        let copy = copy(AUTHORITATIVE).or_else(|| copy(EVIDENCE_COPY));
        copy.ok_or(BundleError::Missing(AUTHORITATIVE))
    }

    pub(super) fn file(&self, name: &'static str) -> Result<&Bytes, BundleError> {
        self.files.get(name).ok_or(BundleError::Missing(name))
    }

    pub(super) fn optional(&self, name: &str) -> Option<&Bytes> {
        self.files.get(name)
    }

    /// Returns the components of the bundle: the SHA-256 in the file name, and the bytes.
    pub(super) fn components(&self) -> impl Iterator<Item = (&str, &Bytes)> {
        self.named_by_digest(&FOLDERS[0])
    }

    /// Returns the disclosures of the bundle: the SHA-256 in the file name, and the bytes.
    pub(super) fn disclosures(&self) -> impl Iterator<Item = (&str, &Bytes)> {
        self.named_by_digest(&FOLDERS[1])
    }

    fn named_by_digest<'a>(
        &'a self,
        folder: &'a BundleFolder,
    ) -> impl Iterator<Item = (&'a str, &'a Bytes)> {
        let files = self.files.iter();
        files.filter_map(|(name, bytes)| Some((folder.digest(name)?, bytes)))
    }

    /// Returns the component with this SHA-256, if the bundle has it and its bytes match.
    pub fn component(&self, digest: &str) -> Option<Bytes> {
        let mut carried = self.components();
        let (_, bytes) =
            carried.find(|(name, bytes)| *name == digest && sha256(bytes) == digest)?;
        Some(bytes.clone())
    }

    /// Returns the rules component that made the certificate, as named in the ledger.
    pub fn deciding_component(&self) -> Option<ComponentIdentity> {
        let ledger: CustodyLedger = serde_json::from_slice(self.file(LEDGER).ok()?).ok()?;
        let entry = super::certified(&ledger.entries)?;
        serde_json::from_value(entry.details["component"].clone()).ok()
    }

    /// Returns the id of the envelope and of its organization, as the ledger has them.
    pub fn envelope(&self) -> Option<(EnvelopeId, OrgId)> {
        let ledger: CustodyLedger = serde_json::from_slice(self.file(LEDGER).ok()?).ok()?;
        Some((ledger.envelope_id, ledger.org_id))
    }

    /// Returns the facts of the contract, which [`verify`](super::verify) checks. None for a bundle without facts.
    pub fn facts(&self) -> Option<FactSheet> {
        let record: FactRecord = serde_json::from_slice(self.optional(FACTS)?).ok()?;
        Some(record.sheet)
    }

    /// Returns the component that read the facts of the contract. None for a bundle without facts.
    pub fn fact_reader(&self) -> Option<ComponentIdentity> {
        let record: FactRecord = serde_json::from_slice(self.optional(FACTS)?).ok()?;
        Some(record.sheet.component)
    }
}

/// Returns a problem for each name that no file of a bundle has, and for folders with too many files.
fn unknown_names(names: &[String]) -> Vec<String> {
    let is_known = |name: &str| {
        FILES.contains(&name)
            || FOLDERS
                .iter()
                .any(|folder| folder.inner(name) == Some("") || folder.digest(name).is_some())
    };
    let unknown = names.iter().filter(|name| !is_known(name));
    let mut problems: Vec<String> = unknown
        .map(|name| format!("{name:?} is no file of a bundle"))
        .collect();

    for folder in &FOLDERS {
        let files = names.iter().filter(|name| folder.digest(name).is_some());
        let (found, limit) = (files.count(), folder.limit);
        if found > limit {
            let name = folder.name;
            problems.push(format!("{name} has {found} files, the limit is {limit}"));
        }
    }

    problems
}

/// Reads the files of a folder.
#[derive(Default)]
struct FolderReader {
    files: BTreeMap<String, Bytes>,
    total: u64,
    problems: Vec<String>,
}

impl FolderReader {
    /// Reads a folder; `prefix` is its path in the bundle.
    fn read(&mut self, folder: &Path, prefix: &str) -> std::io::Result<()> {
        let mut entries: Vec<DirEntry> =
            std::fs::read_dir(folder)?.collect::<std::io::Result<_>>()?;
        // File systems list names in any order, and a report has to be the same on every machine.
        entries.sort_by_key(DirEntry::file_name);

        for entry in entries {
            let file_name = entry.file_name();
            let Some(name) = file_name.to_str() else {
                let problem = format!("{:?} is an unsafe name", file_name.to_string_lossy());
                self.problems.push(problem);
                continue;
            };

            let name = format!("{prefix}{name}");
            if is_unsafe(&name) {
                self.problems.push(format!("{name:?} is an unsafe name"));
                continue;
            }

            // The type of the entry itself: a link is not followed.
            let kind = entry.file_type()?;
            if kind.is_dir() && FOLDERS.iter().any(|folder| folder.name == name) {
                self.read(&entry.path(), &format!("{name}/"))?;
            } else if kind.is_file() {
                self.file(&entry, name)?;
            } else if kind.is_dir() {
                let problem = format!("{name:?} is no folder of a bundle");
                self.problems.push(problem);
            } else {
                self.problems
                    .push(format!("{name} is a link or a special file"));
            }
        }

        Ok(())
    }

    fn file(&mut self, entry: &DirEntry, name: String) -> std::io::Result<()> {
        // Only files with a known name are opened, so a huge other file costs nothing.
        let unknown = unknown_names(std::slice::from_ref(&name));
        if !unknown.is_empty() {
            self.problems.extend(unknown);
            return Ok(());
        }

        // One byte more than allowed shows that there is more.
        let mut bytes = Vec::new();
        let file = File::open(entry.path())?;
        file.take(LIMITS.file + 1).read_to_end(&mut bytes)?;
        let size = bytes.len() as u64;
        self.total += size;

        // The limits are those of archives, so a folder and its zip get the same verdict.
        if size > LIMITS.file || self.total > LIMITS.total {
            let problem = format!("{name} is over the limit of a file, or of a bundle");
            self.problems.push(problem);
        } else {
            self.files.insert(name, bytes.into());
        }

        Ok(())
    }

    fn bundle(mut self) -> Bundle {
        let names: Vec<String> = self.files.keys().cloned().collect();
        self.problems.extend(unknown_names(&names));
        Bundle::exported(self.files, self.problems)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(LEDGER), "{}").unwrap();
        std::fs::create_dir(folder.path().join(COMPONENTS)).unwrap();
        let name = format!("{COMPONENTS}/{}.wasm", "0".repeat(64));
        std::fs::write(folder.path().join(name), "wasm").unwrap();
        folder
    }

    #[track_caller]
    fn refused(folder: &tempfile::TempDir, why: &str) {
        let bundle = Bundle::read(folder.path()).unwrap();
        assert!(bundle.is_refused());
        let detail = bundle.finding().unwrap().detail;
        assert!(detail.contains(why), "{detail}");
    }

    #[test]
    fn a_folder_with_the_files_of_a_bundle_is_read() {
        let bundle = Bundle::read(folder().path()).unwrap();
        assert!(!bundle.is_refused());
        assert_eq!(bundle.files.len(), 2);
        assert_eq!(bundle.components().count(), 1);
    }

    #[test]
    fn a_folder_with_an_unknown_file_is_refused() {
        for name in [
            "authoritative.PDF",
            "notes.txt",
            ".hidden",
            "components/readme",
            "components/ab.wasm",
        ] {
            let folder = folder();
            std::fs::write(folder.path().join(name), "x").unwrap();
            refused(&folder, &format!("{name:?} is no file of a bundle"));
        }
    }

    #[test]
    fn a_folder_with_an_unknown_folder_is_refused() {
        for name in ["more", "components/more", "disclosures.d"] {
            let folder = folder();
            std::fs::create_dir(folder.path().join(name)).unwrap();
            refused(&folder, &format!("{name:?} is no folder of a bundle"));
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_in_a_folder_are_refused() {
        let folder = folder();
        let ledger = folder.path().join(LEDGER);
        std::os::unix::fs::symlink(&ledger, folder.path().join(CERTIFICATE)).unwrap();
        refused(&folder, "ucc-compliance-certificate.json is a link");
    }

    #[test]
    fn more_components_than_the_limit_are_refused() {
        let files = |count: usize| {
            (0..count).map(|index| {
                let name = format!("{COMPONENTS}/{index:064}.wasm");
                (name, Bytes::new())
            })
        };
        assert!(!Bundle::of_files(files(64)).is_refused());

        let bundle = Bundle::of_files(files(65));
        let detail = bundle.finding().unwrap().detail;
        assert_eq!(detail, "components has 65 files, the limit is 64");
    }
}
