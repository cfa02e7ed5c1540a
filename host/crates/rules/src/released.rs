//! Rules packs of earlier releases, for the re-evaluation of their records.
//!
//! A release that changes a built-in compliance pack adds the bytes of the preceding
//! version to the folder `released/` of this crate and to `FILES`. Packs are looked up by the
//! SHA-256 of their bytes; name and version are taken from the evidence.

use std::collections::HashMap;
use std::sync::LazyLock;

use bytes::Bytes;

use super::artifact::{ComponentArtifact, built_in};
use holdfast_domain::component::{ComponentIdentity, Slot};
use holdfast_domain::hash::sha256;

/// Name, version and bytes of each pack.
const FILES: &[(&str, &str, &[u8])] = &[
    (
        "holdfast-compliance",
        "1.0.0",
        include_bytes!("../released/1.0.0/holdfast-compliance.wasm"),
    ),
    (
        "holdfast-compliance-ucc2022",
        "1.0.0",
        include_bytes!("../released/1.0.0/holdfast-compliance-ucc2022.wasm"),
    ),
    (
        "holdfast-compliance",
        "0.1.0",
        include_bytes!("../released/0.1.0-2026-11/holdfast-compliance.wasm"),
    ),
    (
        "holdfast-compliance-ucc2022",
        "0.1.0",
        include_bytes!("../released/0.1.0-2026-11/holdfast-compliance-ucc2022.wasm"),
    ),
    (
        "holdfast-compliance-calendar",
        "0.1.0",
        include_bytes!("../released/0.1.0-2026-11/holdfast-compliance-calendar.wasm"),
    ),
];

/// Packs by their SHA-256.
static RELEASED: LazyLock<HashMap<String, &[u8]>> = LazyLock::new(|| {
    let files = FILES.iter();
    files.map(|(_, _, bytes)| (sha256(bytes), *bytes)).collect()
});

/// Returns the built-in compliance pack of this or an earlier release with the SHA-256 of
/// `named`.
pub fn known_compliance(named: &ComponentIdentity) -> Option<ComponentArtifact> {
    let mut built_in = built_in().filter(|artifact| artifact.slot == Slot::Compliance);
    if let Some(mut artifact) = built_in.find(|one| one.identity.sha256 == named.sha256) {
        // The certificate repeats name and version, and has to come out byte for byte.
        artifact.identity = named.clone();
        return Some(artifact);
    }

    let bytes = RELEASED.get(&named.sha256)?;
    let (name, version) = (&named.name, &named.version);
    Some(ComponentArtifact::uploaded(
        Slot::Compliance,
        name,
        version,
        Bytes::from_static(bytes),
    ))
}

/// Returns the compliance packs of earlier releases.
pub fn released_packs() -> impl Iterator<Item = ComponentArtifact> {
    FILES.iter().map(|(name, version, bytes)| {
        let bytes = Bytes::from_static(bytes);
        ComponentArtifact::uploaded(Slot::Compliance, name, version, bytes)
    })
}

/// Returns the SHA-256 of all components of this release, and of the compliance packs of earlier
/// ones.
pub fn known_digests() -> impl Iterator<Item = String> {
    let built_in = built_in().map(|artifact| artifact.identity.sha256);
    built_in.chain(RELEASED.keys().cloned())
}

/// Whether a built-in component of this release has this name.
pub fn is_reserved_name(name: &str) -> bool {
    built_in().any(|artifact| artifact.identity.name == name)
}
