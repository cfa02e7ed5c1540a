//! The WIT packages of this host, and the interfaces that each world grants.

use schemars::JsonSchema;
use serde::Serialize;

use holdfast_domain::component::Slot;

/// WASI interfaces that providers may import, without versions.
pub const WASI: [&str; 22] = [
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stderr",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stderr",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:filesystem/preopens",
    "wasi:filesystem/types",
    "wasi:http/outgoing-handler",
    "wasi:http/types",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:random/random",
];

/// WIT text of the host interfaces that all providers may import.
const HOST: &str = include_str!("../../../../wit/host/host.wit");

/// Major version of the WIT packages.
pub const MAJOR: u64 = 1;
pub const VERSION: &str = "1.0.0";

/// World that components can target.
#[derive(Clone, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "slot": "rules.compliance", "world": "compliance-rules", "package": "holdfast:compliance@1.0.0",
    "grants": [], "wit": ["package holdfast:compliance@1.0.0; …"],
}]))]
pub struct PublishedWorld {
    pub slot: Slot,
    pub world: &'static str,
    /// WIT package with its version.
    pub package: String,
    /// Interfaces that a component may import, without versions.
    pub grants: Vec<String>,
    /// WIT texts, one for each file, dependencies first.
    pub wit: Vec<&'static str>,
}

/// Returns the world of a slot.
pub fn world(slot: Slot) -> PublishedWorld {
    PublishedWorld {
        slot,
        world: slot.world(),
        package: format!("{}@{VERSION}", package(slot)),
        grants: grants(slot),
        wit: sources(slot).into_iter().map(|(_, text)| text).collect(),
    }
}

/// Returns name and text of each file that a slot's world needs.
pub fn sources(slot: Slot) -> Vec<(&'static str, &'static str)> {
    let own = match slot {
        Slot::Compliance => (
            "compliance.wit",
            include_str!("../../../../wit/compliance/compliance.wit"),
        ),
        Slot::Lifecycle => (
            "lifecycle.wit",
            include_str!("../../../../wit/lifecycle/lifecycle.wit"),
        ),
        Slot::Placement => (
            "placement.wit",
            include_str!("../../../../wit/placement/placement.wit"),
        ),
        Slot::Documents => (
            "documents.wit",
            include_str!("../../../../wit/documents/documents.wit"),
        ),
        Slot::Control => (
            "control.wit",
            include_str!("../../../../wit/control/control.wit"),
        ),
        Slot::Funding => (
            "funding.wit",
            include_str!("../../../../wit/funding/funding.wit"),
        ),
        Slot::Signing => (
            "signing.wit",
            include_str!("../../../../wit/signing/signing.wit"),
        ),
        Slot::Payment => (
            "payment.wit",
            include_str!("../../../../wit/payment/payment.wit"),
        ),
        Slot::Kba => ("kba.wit", include_str!("../../../../wit/kba/kba.wit")),
        Slot::Messaging => (
            "messaging.wit",
            include_str!("../../../../wit/messaging/messaging.wit"),
        ),
        Slot::Conversion => (
            "conversion.wit",
            include_str!("../../../../wit/conversion/conversion.wit"),
        ),
    };

    // The slot's own package stands last, because it has the world.
    if slot.is_provider() {
        vec![("host.wit", HOST), own]
    } else {
        vec![own]
    }
}

/// Adds the world of a slot to a core module, for compilers that do not know worlds.
///
/// # Errors
/// The packages of this host have no such world.
pub fn put_into(slot: Slot, module: &mut Vec<u8>) -> Result<(), String> {
    let mut resolve = wit_parser::Resolve::default();
    let mut packages = Vec::new();
    for (file, text) in sources(slot) {
        let package = resolve.push_source(file, text);
        packages.push(package.map_err(|error| format!("{file}: {error:#}"))?);
    }

    // The slot's own package stands last.
    let own = packages.split_off(packages.len().saturating_sub(1));
    let world = resolve
        .select_world(&own, Some(slot.world()))
        .map_err(|error| format!("{error:#}"))?;
    wit_component::embed_component_metadata(
        module,
        &resolve,
        world,
        wit_component::StringEncoding::UTF8,
    )
    .map_err(|error| format!("{error:#}"))
}

/// Returns the WIT package of a slot, without its version.
pub fn package(slot: Slot) -> &'static str {
    slot.interface()
        .split_once('/')
        .map_or(slot.interface(), |(package, _)| package)
}

/// Returns the interfaces that a slot's world grants. The package's `types` are always granted:
/// they carry no capability, and a component that exports the interface imports them.
fn grants(slot: Slot) -> Vec<String> {
    let types = format!("{}/types", package(slot));
    if slot == Slot::Documents {
        // Data of the program, without a capability.
        return vec![types, format!("{}/faces", package(slot))];
    }
    if !slot.is_provider() {
        return vec![types];
    }

    let host = [
        "blobs", "settings", "secrets", "http", "log", "clock", "random",
    ]
    .map(|interface| format!("holdfast:host/{interface}"));
    let wasi = WASI.map(str::to_owned);
    host.into_iter().chain([types]).chain(wasi).collect()
}

/// Whether a slot's world grants an interface, given without version.
pub fn is_granted(slot: Slot, interface: &str) -> bool {
    grants(slot).iter().any(|granted| granted == interface)
}
