//! Inspection of an unknown component: finds its slot and checks that it fits the world, from
//! its bytes only. The reasons for a refusal are addressed to the component's author.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wasmparser::{Parser, Payload, Validator, WasmFeatures};

use super::worlds::{self, MAJOR};
use holdfast_domain::component::Slot;

/// Properties of an inspected component.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InspectedComponent {
    pub slot: Slot,
    /// Version of the exported interface.
    pub interface_version: String,
    /// Imported interfaces with their versions.
    pub imports: Vec<String>,
}

/// Reason for refusing a component.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AdmissionReason {
    /// `not_a_component`, `invalid`, `unknown_world`, `import_not_granted`,
    /// `interface_version`, `type_mismatch`, `over_limit`, `conformance`, `vectors`,
    /// `signature` or `version`.
    pub code: String,
    /// Explanation for the component's author.
    pub message: String,
}

impl AdmissionReason {
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
        }
    }
}

/// WebAssembly features that the engines support.
fn features() -> WasmFeatures {
    WasmFeatures::WASM2 | WasmFeatures::EXTENDED_CONST | WasmFeatures::COMPONENT_MODEL
}

/// Checks the structure, the world and the types of a component.
///
/// # Errors
/// The reasons for refusing the component.
pub fn inspect(bytes: &[u8]) -> Result<InspectedComponent, Vec<AdmissionReason>> {
    let one = |code, message: String| vec![AdmissionReason::new(code, message)];
    // Compilers write a core module first, so this common mistake has advice of its own.
    if Parser::is_core_wasm(bytes) {
        return Err(one(
            "not_a_component",
            "this is a core WebAssembly module and no component: encode it, for example with \
             `wasm-tools component new`"
                .into(),
        ));
    }

    if !Parser::is_component(bytes) {
        return Err(one(
            "not_a_component",
            "this is no WebAssembly component: it does not begin as one".into(),
        ));
    }

    // Everything below may rely on well-formed bytes.
    Validator::new_with_features(features())
        .validate_all(bytes)
        .map_err(|error| one("invalid", format!("the component is not valid: {error}")))?;
    let outline = ComponentOutline::of(bytes)
        .map_err(|error| one("invalid", format!("the component is not valid: {error}")))?;
    let (slot, version) = outline.slot()?;
    let mut reasons: Vec<AdmissionReason> = outline
        .imports
        .iter()
        .filter_map(|import| not_granted(slot, import))
        .collect();
    if reasons.is_empty()
        // Type errors of a component with refused imports would only add noise.
        && let Some(mismatch) = mismatch(slot, &version, &outline, bytes)
    {
        reasons.push(mismatch);
    }

    if reasons.is_empty() {
        Ok(InspectedComponent {
            slot,
            interface_version: version,
            imports: outline.imports,
        })
    } else {
        Err(reasons)
    }
}

/// Names of a component's imports and exports.
struct ComponentOutline {
    imports: Vec<String>,
    exports: Vec<String>,
}

impl ComponentOutline {
    fn of(bytes: &[u8]) -> Result<Self, wasmparser::BinaryReaderError> {
        // Nested components import from the outer one. Only imports of the outermost are asked of this host.
        let (mut depth, mut imports, mut exports) = (0_usize, Vec::new(), Vec::new());
        for payload in Parser::new(0).parse_all(bytes) {
            match payload? {
                Payload::ComponentImportSection(section) if depth == 0 => {
                    for import in section {
                        imports.push(import?.name.name.to_owned());
                    }
                }
                Payload::ComponentExportSection(section) if depth == 0 => {
                    for export in section {
                        exports.push(export?.name.name.to_owned());
                    }
                }
                Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
                Payload::End(_) => depth = depth.saturating_sub(1),
                _ => {}
            }
        }

        Ok(Self { imports, exports })
    }

    /// Returns the slot of the exported interface, and the interface's version.
    fn slot(&self) -> Result<(Slot, String), Vec<AdmissionReason>> {
        let mut found = Vec::new();
        let mut reasons = Vec::new();
        for export in &self.exports {
            let (interface, version) = split(export);
            // Other exports, such as those of a language's runtime, are never called.
            let Some(slot) = Slot::ALL
                .into_iter()
                .find(|slot| slot.interface() == interface)
            else {
                continue;
            };

            match major(version) {
                Some(MAJOR) => found.push((slot, version.to_owned())),
                _ => reasons.push(AdmissionReason::new(
                    "interface_version",
                    format!(
                        "exports `{export}`; this host knows major version {MAJOR} of \
                         `{interface}` ({})",
                        worlds::VERSION
                    ),
                )),
            }
        }

        // A wrong version explains more than a missing world, so it comes first.
        match (&found[..], reasons.is_empty()) {
            ([(slot, version)], true) => Ok((*slot, version.clone())),
            (_, false) => Err(reasons),
            ([], true) => Err(vec![AdmissionReason::new(
                "unknown_world",
                format!(
                    "exports {}; a component exports the interface of one world: {}",
                    listed(&self.exports),
                    listed(&Slot::ALL.map(|slot| {
                        format!(
                            "{}@{} ({})",
                            slot.interface(),
                            worlds::VERSION,
                            slot.world()
                        )
                    })),
                ),
            )]),
            _ => Err(vec![AdmissionReason::new(
                "unknown_world",
                format!(
                    "exports the interfaces of {} worlds; a component is for one slot",
                    found.len()
                ),
            )]),
        }
    }
}

fn not_granted(slot: Slot, import: &str) -> Option<AdmissionReason> {
    let (interface, version) = split(import);
    if !worlds::is_granted(slot, interface) {
        return Some(AdmissionReason::new(
            "import_not_granted",
            format!(
                "imports `{import}`, which the world `{}` does not grant",
                slot.world()
            ),
        ));
    }

    // Releases of WASI 0.2 are compatible with each other.
    let (known, ours) = if interface.starts_with("wasi:") {
        (version.starts_with("0.2."), "WASI 0.2")
    } else {
        (major(version) == Some(MAJOR), worlds::VERSION)
    };
    (!known).then(|| {
        AdmissionReason::new(
            "interface_version",
            format!("imports `{import}`; this host has {ours}"),
        )
    })
}

/// Compares the types with those of the world. Skips components of another minor version, which
/// may lack or add items, and components with foreign imports.
fn mismatch(
    slot: Slot,
    version: &str,
    outline: &ComponentOutline,
    bytes: &[u8],
) -> Option<AdmissionReason> {
    let foreign = |import: &String| !import.starts_with("holdfast:");
    if version != worlds::VERSION || outline.imports.iter().any(foreign) {
        return None;
    }

    let newer = |import: &String| split(import).1 != worlds::VERSION;
    if outline.imports.iter().any(newer) {
        return None;
    }

    let mut resolve = wit_parser::Resolve::default();
    let mut package = None;
    // The slot's own package stands last, so `package` ends as the one with the world.
    for (name, text) in worlds::sources(slot) {
        package = resolve.push_source(name, text).ok();
    }

    let world = resolve.select_world(&[package?], Some(slot.world())).ok()?;
    let error = wit_component::targets(&resolve, world, bytes).err()?;
    Some(AdmissionReason::new(
        "type_mismatch",
        format!(
            "does not fit the world `{}`: {}",
            slot.world(),
            error.root_cause()
        ),
    ))
}

/// Splits `a:b/c@1.2.3` into `a:b/c` and `1.2.3`.
fn split(name: &str) -> (&str, &str) {
    name.split_once('@').unwrap_or((name, ""))
}

fn major(version: &str) -> Option<u64> {
    version.split('.').next()?.parse().ok()
}

fn listed(names: &[String]) -> String {
    match names {
        [] => "nothing".into(),
        names => names
            .iter()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", "),
    }
}
