//! The WIT packages of this host, and what each world grants.

use schemars::JsonSchema;
use serde::Serialize;

use holdfast_domain::component::Slot;

/// The interfaces of WASI that are lent, without versions.
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

/// The imports that providers of every kind may be lent.
const HOST: &str = include_str!("../../../../wit/host/host.wit");

/// The major and the whole version of the packages.
pub const MAJOR: u64 = 1;
pub const VERSION: &str = "1.0.0";

/// A world that components can target.
#[derive(Clone, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "slot": "rules.compliance", "world": "compliance-rules", "package": "holdfast:compliance@1.0.0",
    "grants": [], "wit": ["package holdfast:compliance@1.0.0; …"],
}]))]
pub struct World {
    pub slot: Slot,
    pub world: &'static str,
    /// With its version.
    pub package: String,
    /// Interfaces that a component may import, without versions.
    pub grants: Vec<String>,
    /// The texts, each a file; those that others need come first.
    pub wit: Vec<&'static str>,
}

/// The world of a slot.
pub fn world(slot: Slot) -> World {
    World {
        slot,
        world: slot.world(),
        package: format!("{}@{VERSION}", package(slot)),
        grants: grants(slot),
        wit: sources(slot).into_iter().map(|(_, text)| text).collect(),
    }
}

/// Name and text of each file that a slot's world needs.
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
        Slot::Signing => (
            "signing.wit",
            include_str!("../../../../wit/signing/signing.wit"),
        ),
        Slot::Payment => (
            "payment.wit",
            include_str!("../../../../wit/payment/payment.wit"),
        ),
        Slot::Kba => ("kba.wit", include_str!("../../../../wit/kba/kba.wit")),
    };
    match slot.is_provider() {
        true => vec![("host.wit", HOST), own],
        false => vec![own],
    }
}

/// A slot's package, without its version.
pub fn package(slot: Slot) -> &'static str {
    slot.interface()
        .split_once('/')
        .map_or(slot.interface(), |(package, _)| package)
}

/// Types carry no capability: whoever exports an interface imports its types.
fn grants(slot: Slot) -> Vec<String> {
    let types = format!("{}/types", package(slot));
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

/// Whether a slot's world grants an interface (named without its version).
pub fn is_granted(slot: Slot, interface: &str) -> bool {
    grants(slot).iter().any(|granted| granted == interface)
}
