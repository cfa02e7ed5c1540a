//! Reading the files of a bundle.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use bytes::Bytes;

use super::formats::{
    AUTHORITATIVE, CERTIFICATE, COMPONENT_LEDGER, COMPONENTS, COPY, CUSTODY_RECORD, CustodyLedger,
    LEDGER,
};
use holdfast_domain::component::ComponentIdentity;
use holdfast_domain::hash::sha256;

/// Maximum size in bytes of a file in a zip; the rest of a larger file is cut off.
const FILE_LIMIT: u64 = 256 * 1024 * 1024;
/// Files in the top folder of a bundle.
const FILES: [&str; 6] = [
    AUTHORITATIVE,
    COPY,
    CERTIFICATE,
    CUSTODY_RECORD,
    LEDGER,
    COMPONENT_LEDGER,
];
/// Maximum number of components, more than the evidence of any envelope names.
const COMPONENT_LIMIT: usize = 64;

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

/// Evidence of an envelope.
pub struct Bundle {
    files: BTreeMap<String, Bytes>,
    /// Whether the authoritative copy is still in the vault: nothing was released.
    pub(super) in_vault: bool,
}

impl Bundle {
    /// Reads a folder or a zip.
    pub fn read(path: &Path) -> Result<Self, BundleError> {
        if !path.is_dir() {
            return Self::from_zip(std::fs::read(path).map_err(unreadable)?);
        }
        let mut files = BTreeMap::new();
        for name in FILES {
            if let Ok(bytes) = std::fs::read(path.join(name)) {
                files.insert(name.to_owned(), bytes.into());
            }
        }
        let components = std::fs::read_dir(path.join(COMPONENTS));
        for entry in components.into_iter().flatten().take(COMPONENT_LIMIT) {
            let entry = entry.map_err(unreadable)?;
            let name = format!("{COMPONENTS}/{}", entry.file_name().to_string_lossy());
            let bytes = std::fs::read(entry.path()).map_err(unreadable)?;
            files.insert(name, bytes.into());
        }
        Ok(Self::of_release(files))
    }

    /// Reads a zip.
    pub fn from_zip(bytes: Vec<u8>) -> Result<Self, BundleError> {
        let mut zip = zip::ZipArchive::new(std::io::Cursor::new(bytes)).map_err(unreadable)?;
        let components = |name: &&str| name.strip_prefix(COMPONENTS).is_some();
        let names: Vec<String> = zip
            .file_names()
            .filter(components)
            .take(COMPONENT_LIMIT)
            .chain(FILES)
            .map(str::to_owned)
            .collect();
        let mut files = BTreeMap::new();
        for name in names {
            if let Ok(entry) = zip.by_name(&name) {
                let mut bytes = Vec::new();
                let mut entry = entry.take(FILE_LIMIT);
                entry.read_to_end(&mut bytes).map_err(unreadable)?;
                files.insert(name, bytes.into());
            }
        }
        Ok(Self::of_release(files))
    }

    fn of_release(files: BTreeMap<String, Bytes>) -> Self {
        Self {
            files,
            in_vault: false,
        }
    }

    /// Collects the evidence that an installation stores, released or not.
    pub fn of_installation(
        files: impl IntoIterator<Item = (String, Bytes)>,
        in_vault: bool,
    ) -> Self {
        Self {
            files: files.into_iter().collect(),
            in_vault,
        }
    }

    pub(super) fn file(&self, name: &'static str) -> Result<&Bytes, BundleError> {
        self.files.get(name).ok_or(BundleError::Missing(name))
    }

    pub(super) fn optional(&self, name: &str) -> Option<&Bytes> {
        self.files.get(name)
    }

    /// Returns the components of the bundle: the SHA-256 in the file name, and the bytes.
    pub(super) fn components(&self) -> impl Iterator<Item = (&str, &Bytes)> {
        self.files.iter().filter_map(|(name, bytes)| {
            let name = name.strip_prefix(COMPONENTS)?.strip_prefix('/')?;
            Some((name.strip_suffix(".wasm")?, bytes))
        })
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
        let entry = super::last(&ledger.entries, "compliance.evaluated")?;
        serde_json::from_value(entry.details["component"].clone()).ok()
    }
}
