//! The components that come with holdfast, as bytes.
//!
//! A crate of its own, so that the guests are compiled beside the host's
//! dependencies and not after them, and so that the host's build script can
//! read them.

/// One component.
pub struct DefaultComponent {
    /// For example `rules.compliance`.
    pub slot: &'static str,
    /// Its cargo package.
    pub name: &'static str,
    /// That package's version.
    pub version: &'static str,
    /// The component, with its `holdfast:manifest` section.
    pub bytes: &'static [u8],
}

/// One for every slot. Statics, as each use of a constant may have bytes of its own.
pub static DEFAULT_COMPONENTS: &[DefaultComponent] =
    include!(concat!(env!("OUT_DIR"), "/components.rs"));

/// The one that stands behind the signing instance `embedded`.
pub static ROOM_COMPONENT: &[DefaultComponent] = include!(concat!(env!("OUT_DIR"), "/room.rs"));

/// Others that come with holdfast and are active only where somebody activates them.
pub static FURTHER_COMPONENTS: &[DefaultComponent] =
    include!(concat!(env!("OUT_DIR"), "/further.rs"));
