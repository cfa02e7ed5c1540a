//! Bytes of the built-in components, and of other files that come with the program.
//!
//! This is a separate crate so that cargo compiles the guests in parallel with the host's
//! dependencies, and so that the build script of `holdfast-rules` can read them.

pub mod share;

pub use share::{ShareError, SharedFile};

/// Built-in component.
pub struct DefaultComponent {
    /// Slot, for example `rules.compliance`.
    pub slot: &'static str,
    /// Cargo package, which is the name of the component.
    pub name: &'static str,
    /// Version of the package.
    pub version: &'static str,
    /// SHA-256 of the bytes, lower-case hex.
    pub sha256: &'static str,
    /// Number of the bytes.
    pub size: usize,
    /// File with the compressed bytes.
    pub packed: SharedFile,
}

impl DefaultComponent {
    /// Unpacks the bytes of the component, with its `holdfast:manifest` section.
    ///
    /// # Errors
    /// The file beside the program cannot be used.
    pub fn bytes(&self) -> Result<Vec<u8>, ShareError> {
        let packed = self.packed.bytes()?;
        Ok(zstd::bulk::decompress(&packed, self.size).unwrap_or_default())
    }
}

/// Default component of each slot. Statics, because each use of a constant could copy the bytes.
pub static DEFAULT_COMPONENTS: &[DefaultComponent] =
    include!(concat!(env!("OUT_DIR"), "/components.rs"));

/// Component of the signing instance `embedded`.
pub static ROOM_COMPONENT: &[DefaultComponent] = include!(concat!(env!("OUT_DIR"), "/room.rs"));

/// Further built-in components, which are used only once activated.
pub static FURTHER_COMPONENTS: &[DefaultComponent] =
    include!(concat!(env!("OUT_DIR"), "/further.rs"));

/// Components with a space for declared rules, which are no components of a slot before it is filled.
pub static TEMPLATES: &[DefaultComponent] = include!(concat!(env!("OUT_DIR"), "/templates.rs"));
