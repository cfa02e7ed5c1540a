//! Sets of components that were built from the same sources by the same compiler: a build that finds one does not
//! compile the guests, which takes minutes.
//!
//! `COMPONENT_SETS` names the folder of the sets. A set is a folder named by the SHA-256 of everything that
//! determines the bytes, so a set of other sources is never found. Beside each component lies its SHA-256; a component
//! without it, or with another, is built anew.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use holdfast_guest_builder::{BuiltGuest, GuestBuilder, GuestCrate, Result};
use sha2::{Digest as _, Sha256};

const FOLDER: &str = "COMPONENT_SETS";

/// Everything in the workspace that determines the bytes of a component, apart from the compiler.
const SOURCES: [&str; 7] = [
    "Cargo.lock",
    "Cargo.toml",
    "guest-rules",
    "host/faces",
    "host/guest-builder",
    "plugins",
    "wit",
];

/// Folders of installed packages and of builds.
const NOT_SOURCES: [&str; 2] = ["node_modules", "target"];

/// The set of this build, if the environment names a folder for it.
pub struct ComponentSet(Option<PathBuf>);

impl ComponentSet {
    pub fn of(workspace: &Path, builder: &GuestBuilder) -> Result<Self> {
        // No reason to run again when the variable changes: the components are the same.
        let Some(folder) = env::var_os(FOLDER).filter(|folder| !folder.is_empty()) else {
            return Ok(Self(None));
        };

        let mut digest = Sha256::new();
        digest.update(builder.compiler()?);
        for source in SOURCES {
            add(&mut digest, workspace, &workspace.join(source))?;
        }
        let name = hex::encode(digest.finalize());
        Ok(Self(Some(PathBuf::from(folder).join(name))))
    }

    /// Returns the component of the set, or else builds it and adds it.
    pub fn component(&self, builder: &GuestBuilder, guest: &GuestCrate) -> Result<BuiltGuest> {
        let Some(folder) = &self.0 else {
            return builder.build(guest);
        };

        let file = folder.join(format!("{}.wasm", guest.package));
        let digest = file.with_extension("wasm.sha256");
        let version = builder.version(guest)?;
        if let (Ok(component), Ok(expected)) = (fs::read(&file), fs::read_to_string(&digest))
            && hex::encode(Sha256::digest(&component)) == expected.trim()
        {
            return Ok(BuiltGuest { version, component });
        }

        let built = builder.build(guest)?;
        fs::create_dir_all(folder)?;
        // The digest last: a component whose writing was interrupted has none, or another.
        let _ = fs::remove_file(&digest);
        fs::write(&file, &built.component)?;
        fs::write(&digest, hex::encode(Sha256::digest(&built.component)))?;
        Ok(built)
    }
}

/// Adds the names and bytes of all files below `path`, in the order of their names.
fn add(digest: &mut Sha256, workspace: &Path, path: &Path) -> Result<()> {
    if path.is_dir() {
        let mut entries: Vec<PathBuf> = fs::read_dir(path)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<std::result::Result<_, _>>()?;
        entries.retain(|entry| {
            let name = entry.file_name().unwrap_or_default();
            !NOT_SOURCES.iter().any(|other| name == *other)
        });
        entries.sort();
        return entries
            .iter()
            .try_for_each(|entry| add(digest, workspace, entry));
    }

    let bytes = fs::read(path)?;
    let name = path.strip_prefix(workspace)?.to_string_lossy();
    digest.update(format!("{name}\0{}\0", bytes.len()));
    digest.update(bytes);
    Ok(())
}
