//! Component bytes, and the on-disk cache of their native code.
//!
//! A component's identity is the SHA-256 of its bytes. Native code is cached
//! per node under that digest and the engine's compatibility hash, together with a MAC:
//! loading native code is safe only if this node wrote it. A
//! defect of the cache is a miss, never an error.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use hmac::{Hmac, Mac};
use holdfast_default_components::{
    DEFAULT_COMPONENTS, DefaultComponent, FURTHER_COMPONENTS, ROOM_COMPONENT, ShareError,
    SharedFile, TEMPLATES,
};
use sha2::{Digest, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use holdfast_domain::component::{ComponentIdentity, Slot};

/// Name and native code of each default component, from the build script, compressed with zstd.
static NATIVE_CODE: &[(&str, SharedFile)] = include!(concat!(env!("OUT_DIR"), "/native-code.rs"));

/// Bytes of a component, with slot and identity.
#[derive(Clone)]
pub struct ComponentArtifact {
    pub slot: Slot,
    pub identity: ComponentIdentity,
    content: ArtifactContent,
    /// Native code compiled ahead of time, for engines that can use it; compressed with zstd.
    native: Option<&'static SharedFile>,
}

/// Where an artifact's bytes are.
#[derive(Clone)]
enum ArtifactContent {
    /// In the program or beside it, compressed.
    BuiltIn(&'static DefaultComponent),
    Uploaded(Bytes),
}

static EMBEDDED: LazyLock<Vec<ComponentArtifact>> = LazyLock::new(|| all(DEFAULT_COMPONENTS));
static FURTHER: LazyLock<Vec<ComponentArtifact>> = LazyLock::new(|| all(FURTHER_COMPONENTS));
static ROOM: LazyLock<Vec<ComponentArtifact>> = LazyLock::new(|| all(ROOM_COMPONENT));

fn all(components: &'static [DefaultComponent]) -> Vec<ComponentArtifact> {
    components
        .iter()
        .filter_map(ComponentArtifact::of)
        .collect()
}

/// Returns the default components of this binary, one per slot.
pub fn embedded() -> impl Iterator<Item = ComponentArtifact> {
    EMBEDDED.iter().cloned()
}

/// Returns the component of the signing instance `embedded`.
pub fn room() -> Option<ComponentArtifact> {
    ROOM.first().cloned()
}

/// Returns all components of this binary: the defaults, the signing room's, and those that are
/// used only once activated.
pub fn built_in() -> impl Iterator<Item = ComponentArtifact> {
    embedded().chain(room()).chain(FURTHER.iter().cloned())
}

/// Built-in rules that declared rules begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RulesBase {
    /// The eight checks of the specification.
    Specification,
    /// The nine checks of §9-105 as amended in 2022.
    Ucc2022,
    /// One of the two, by jurisdiction and date.
    Calendar,
    /// The rules of slot `rules.funding`.
    Funding,
}

/// Returns the bytes of the component for declared rules on top of a pack, or for a table of laws.
///
/// # Errors
/// The file beside the program cannot be used.
pub fn rules_template(base: RulesBase) -> Result<Option<Vec<u8>>, ShareError> {
    let name = match base {
        RulesBase::Specification => "holdfast-declared",
        RulesBase::Ucc2022 => "holdfast-declared-ucc2022",
        RulesBase::Calendar => "holdfast-compliance-calendar",
        RulesBase::Funding => "holdfast-declared-funding",
    };

    // The calendar is a component with a table of its own.
    let mut templates = TEMPLATES.iter().chain(FURTHER_COMPONENTS);
    let template = templates.find(|template| template.name == name);
    template.map(DefaultComponent::bytes).transpose()
}

/// Returns the files with components and native code that come with the program.
pub(crate) fn shared_files() -> impl Iterator<Item = &'static SharedFile> {
    let components = [
        DEFAULT_COMPONENTS,
        ROOM_COMPONENT,
        FURTHER_COMPONENTS,
        TEMPLATES,
    ];
    let components = components.into_iter().flatten();
    let native_code = NATIVE_CODE.iter().map(|(_, native)| native);
    components
        .map(|component| &component.packed)
        .chain(native_code)
}

/// Minimum age of swept files: during an update, two releases share a folder.
const A_DAY: Duration = Duration::from_secs(86_400);

/// On-disk cache of native code with a size limit. Evicts the least recently used code.
#[derive(Clone)]
pub struct NativeCodeCache {
    folder: PathBuf,
    key: [u8; 32],
    /// Size limit in bytes.
    most: u64,
}

impl ComponentArtifact {
    fn of(component: &'static DefaultComponent) -> Option<Self> {
        Some(Self {
            slot: Slot::parse(component.slot)?,
            identity: ComponentIdentity {
                name: component.name.into(),
                version: component.version.into(),
                sha256: component.sha256.into(),
            },
            content: ArtifactContent::BuiltIn(component),
            native: NATIVE_CODE
                .iter()
                .find(|(name, _)| *name == component.name)
                .map(|(_, native)| native),
        })
    }

    /// Returns the bytes of the component.
    ///
    /// # Errors
    /// The component is built in, and its file beside the program cannot be used.
    pub fn read(&self) -> Result<Bytes, ShareError> {
        match &self.content {
            ArtifactContent::BuiltIn(component) => component.bytes().map(Bytes::from),
            ArtifactContent::Uploaded(bytes) => Ok(bytes.clone()),
        }
    }

    /// Returns the bytes of the component. If they cannot be read, they are empty: then no engine loads the component,
    /// and its calls fail.
    pub fn bytes(&self) -> Bytes {
        self.read().unwrap_or_else(|error| {
            tracing::error!(%error, component = %self.identity, "built-in component cannot be read");
            Bytes::new()
        })
    }

    /// Returns the number of bytes of the component.
    pub fn size(&self) -> usize {
        match &self.content {
            ArtifactContent::BuiltIn(component) => component.size,
            ArtifactContent::Uploaded(bytes) => bytes.len(),
        }
    }

    /// Whether native code of the component comes with the program.
    pub fn is_compiled(&self) -> bool {
        self.native.is_some()
    }

    /// Unpacks the native code that comes with the program. Its SHA-256 is part of the program.
    fn native_code(&self) -> Option<Vec<u8>> {
        #[cfg(feature = "ahead-of-time")]
        {
            let packed = self.native?.bytes().inspect_err(|error| {
                tracing::error!(%error, "native code cannot be read, compiling the component");
            });
            let packed = packed.ok()?;
            zstd::decode_all(&packed[..]).ok()
        }
        #[cfg(not(feature = "ahead-of-time"))]
        {
            None
        }
    }

    /// Creates the artifact of an uploaded component and hashes its bytes.
    pub fn uploaded(slot: Slot, name: &str, version: &str, bytes: Bytes) -> Self {
        let identity = ComponentIdentity {
            name: name.into(),
            version: version.into(),
            sha256: hex::encode(Sha256::digest(&bytes)),
        };
        Self::hashed(slot, identity, bytes)
    }

    /// Creates the artifact of an uploaded component with an already verified SHA-256.
    pub fn hashed(slot: Slot, identity: ComponentIdentity, bytes: Bytes) -> Self {
        Self {
            slot,
            identity,
            content: ArtifactContent::Uploaded(bytes),
            native: None,
        }
    }
}

impl NativeCodeCache {
    /// Creates an unlimited cache. Only this service may write to `folder`; `key` never leaves
    /// this node.
    pub fn new(folder: PathBuf, key: [u8; 32]) -> Self {
        Self {
            folder,
            key,
            most: u64::MAX,
        }
    }

    /// Sets the size limit in bytes.
    pub fn limited_to(mut self, most: u64) -> Self {
        self.most = most;
        self
    }

    /// Returns cached native code of the component with this SHA-256.
    pub fn kept(&self, engine: &Engine, sha256: &str) -> Option<Component> {
        self.read(engine, &self.path(engine, sha256))
    }

    /// Returns native code of `artifact`: from the cache, or else from the
    /// program, or else compiled now.
    pub fn load(
        &self,
        engine: &Engine,
        artifact: &ComponentArtifact,
    ) -> wasmtime::Result<Component> {
        let path = self.path(engine, &artifact.identity.sha256);
        if let Some(component) = self.read(engine, &path) {
            return Ok(component);
        }
        if let Some(native) = artifact.native_code()
            && let Some(component) = self.keep(engine, &path, &native, &artifact.identity)
        {
            return Ok(component);
        }

        let bytes = artifact.bytes();
        let native = engine.precompile_component(&bytes)?;
        // Without a place to write, as on a full disk, the component still runs.
        match self.keep(engine, &path, &native, &artifact.identity) {
            Some(component) => Ok(component),
            None => Component::from_binary(engine, &bytes),
        }
    }

    /// Whether the cache has valid native code of `artifact`.
    pub fn has(&self, engine: &Engine, artifact: &ComponentArtifact) -> bool {
        self.read(engine, &self.path(engine, &artifact.identity.sha256))
            .is_some()
    }

    /// Whether the cache has a file for this SHA-256, valid or not.
    pub fn keeps(&self, engine: &Engine, sha256: &str) -> bool {
        self.path(engine, sha256).exists()
    }

    /// Stores native code from the compiler process.
    ///
    /// # Errors
    /// The code cannot be written, or is not for this engine or processor.
    pub fn put(
        &self,
        engine: &Engine,
        identity: &ComponentIdentity,
        native: &[u8],
    ) -> wasmtime::Result<()> {
        let path = self.path(engine, &identity.sha256);
        match self.keep(engine, &path, native, identity) {
            Some(_) => Ok(()),
            None => Err(wasmtime::format_err!("the native code could not be kept")),
        }
    }

    /// Removes the code of a refused component.
    pub fn forget(&self, engine: &Engine, artifact: &ComponentArtifact) {
        remove(&self.path(engine, &artifact.identity.sha256));
    }

    /// Removes old files that none of these engines can use: code of earlier releases, and
    /// incomplete files.
    pub fn sweep(&self, engines: &[&Engine]) {
        let known: Vec<String> = engines.iter().map(|engine| suffix(engine)).collect();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let stem = Path::new(&name).file_stem().unwrap_or_default();
            let stem = stem.to_string_lossy();
            let taken_up = known.iter().any(|suffix| stem.ends_with(suffix));
            let age = entry.metadata().and_then(|about| about.modified());
            let old = age.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > A_DAY));

            if old && !taken_up {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Writes native code to the cache and reads it back. `None` if it cannot
    /// be written, or is not for this engine or processor.
    fn keep(
        &self,
        engine: &Engine,
        path: &Path,
        native: &[u8],
        identity: &ComponentIdentity,
    ) -> Option<Component> {
        if let Err(error) = self.write(path, native) {
            tracing::warn!(
                %error,
                component = identity.name,
                "native code could not be cached"
            );
            return None;
        }

        self.evict(path);
        self.read(engine, path)
    }

    /// Removes the least recently used code until the rest fits, but never the code just
    /// written. Running components keep their code mapped.
    fn evict(&self, written: &Path) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut kept: Vec<(SystemTime, u64, PathBuf)> = entries
            .filter(|entry| entry.path().extension().is_some_and(|kind| kind == "cwasm"))
            .filter_map(|entry| {
                let about = entry.metadata().ok()?;
                Some((about.modified().ok()?, about.len(), entry.path()))
            })
            .collect();
        let mut size: u64 = kept.iter().map(|(_, size, _)| size).sum();

        kept.sort();
        for (_, bytes, path) in kept {
            if size <= self.most {
                return;
            }

            if path != written {
                remove(&path);
                size -= bytes;
            }
        }
    }

    fn path(&self, engine: &Engine, sha256: &str) -> PathBuf {
        let suffix = suffix(engine);
        let name = format!("{sha256}{suffix}.cwasm");
        self.folder.join(name)
    }

    #[expect(unsafe_code, reason = "the MAC shows that this node wrote the file")]
    fn read(&self, engine: &Engine, path: &Path) -> Option<Component> {
        // The MAC is checked on a copy; the file itself is mapped afterwards.
        let expected = fs::read(path.with_extension("mac")).ok()?;
        let native = fs::read(path).ok()?;
        self.mac(path, &native)?.verify_slice(&expected).ok()?;
        drop(native);

        // Eviction is by time of last use, which is the file's modification time.
        let _ = fs::File::open(path).and_then(|file| file.set_modified(SystemTime::now()));

        // SAFETY: the file's MAC was made with a key only this node holds, over
        // bytes `precompile_component` gave it, in a folder only it writes.
        // Mapping the file keeps untouched code out of memory.
        unsafe { Component::deserialize_file(engine, path) }.ok()
    }

    fn write(&self, path: &Path, native: &[u8]) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let mac = self
            .mac(path, native)
            .ok_or_else(|| io::Error::other("no MAC"))?
            .finalize()
            .into_bytes();
        // After a crash between both writes, the MAC does not fit the code, and the next read is a miss.
        write_by_rename(path, native)?;
        write_by_rename(&path.with_extension("mac"), &mac)
    }

    /// Computes the MAC over file name and code: including the name prevents swapping the code of
    /// two artifacts.
    fn mac(&self, path: &Path, native: &[u8]) -> Option<Hmac<Sha256>> {
        let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(&self.key).ok()?;
        mac.update(path.file_name()?.as_encoded_bytes());
        mac.update(&[0]);
        mac.update(native);
        Some(mac)
    }
}

/// Removes native code and its MAC.
fn remove(path: &Path) {
    let _ = fs::remove_file(path.with_extension("mac"));
    let _ = fs::remove_file(path);
}

/// Returns the file name suffix for an engine's code.
fn suffix(engine: &Engine) -> String {
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    format!("-{:016x}", hasher.finish())
}

fn write_by_rename(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // The process id keeps two releases that share the folder from writing to the same file.
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    fs::write(&temporary, bytes)?;
    fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EngineSet;
    use crate::limits::AllLimits;

    fn compliance() -> ComponentArtifact {
        embedded()
            .find(|artifact| artifact.slot == Slot::Compliance)
            .unwrap()
    }

    #[test]
    fn built_in_components_unpack_to_the_bytes_of_their_identity() {
        for artifact in built_in() {
            let bytes = artifact.bytes();
            assert_eq!(bytes.len(), artifact.size());
            assert_eq!(
                hex::encode(Sha256::digest(&bytes)),
                artifact.identity.sha256
            );
        }
    }

    #[test]
    fn a_modified_native_code_cache_file_is_a_miss() {
        let folder = tempfile::tempdir().unwrap();
        let engines = EngineSet::new(AllLimits::default()).unwrap();
        let cache = NativeCodeCache::new(folder.path().into(), [7; 32]);
        cache.load(&engines.rules, &compliance()).unwrap();
        let path = cache.path(&engines.rules, &compliance().identity.sha256);
        assert!(cache.read(&engines.rules, &path).is_some());

        let mut native = fs::read(&path).unwrap();
        let middle = native.len() / 2;
        native[middle] ^= 1;
        fs::remove_file(&path).unwrap();
        fs::write(&path, native).unwrap();
        assert!(cache.read(&engines.rules, &path).is_none());

        cache.load(&engines.rules, &compliance()).unwrap();
        assert!(cache.read(&engines.rules, &path).is_some());
    }

    /// Evicted code is compiled again when it is needed.
    #[test]
    fn least_recently_used_native_code_is_evicted() {
        let folder = tempfile::tempdir().unwrap();
        let engines = EngineSet::new(AllLimits::default()).unwrap();
        let cache = NativeCodeCache::new(folder.path().into(), [7; 32]);
        let named = |note: &[u8]| {
            let mut bytes = compliance().bytes().to_vec();
            bytes.extend([0, 3, 1, b'n', note[0]]);
            ComponentArtifact::uploaded(Slot::Compliance, "one", "1.0.0", bytes.into())
        };
        let (oak, elm, ash) = (named(b"o"), named(b"e"), named(b"a"));

        let kept = |one: &ComponentArtifact| cache.keeps(&engines.rules, &one.identity.sha256);
        cache.load(&engines.rules, &oak).unwrap();
        let size: u64 = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .sum();
        cache.load(&engines.rules, &elm).unwrap();

        cache.load(&engines.rules, &oak).unwrap();
        let small = cache.clone().limited_to(2 * size + size / 2);
        small.load(&engines.rules, &ash).unwrap();
        assert_eq!((kept(&oak), kept(&elm), kept(&ash)), (true, false, true));

        small.load(&engines.rules, &elm).unwrap();
        assert_eq!((kept(&oak), kept(&elm), kept(&ash)), (false, true, true));
    }

    #[test]
    fn native_code_cached_by_another_node_is_a_miss() {
        let folder = tempfile::tempdir().unwrap();
        let engines = EngineSet::new(AllLimits::default()).unwrap();
        let ours = NativeCodeCache::new(folder.path().into(), [7; 32]);
        ours.load(&engines.rules, &compliance()).unwrap();
        let theirs = NativeCodeCache::new(folder.path().into(), [8; 32]);
        let path = theirs.path(&engines.rules, &compliance().identity.sha256);
        assert!(theirs.read(&engines.rules, &path).is_none());
    }
}
