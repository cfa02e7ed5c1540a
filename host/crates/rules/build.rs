//! Compiles the default components to native code, so that a first start does
//! not have to: that took half a minute of processor time.
//!
//! The code is for any x86-64 processor since 2009 (or the baseline of another
//! architecture). An engine that cannot take it compiles for itself.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use holdfast_default_components::{DEFAULT_COMPONENTS, ROOM_COMPONENT};
use wasmtime::{Config, Engine};

#[path = "src/settings.rs"]
mod settings;

/// x86-64-v2.
const X86_64_FEATURES: [&str; 5] = [
    "has_sse3",
    "has_ssse3",
    "has_sse41",
    "has_sse42",
    "has_popcnt",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/settings.rs");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut table = String::from("&[\n");
    for component in DEFAULT_COMPONENTS.iter().chain(ROOM_COMPONENT) {
        let native = match engine(component.slot) {
            Ok(engine) => engine.precompile_component(component.bytes)?,
            Err(error) => {
                println!(
                    "cargo::warning={} is compiled at the first start, not now: {error:#}",
                    component.name
                );
                continue;
            }
        };
        let file = out.join(format!("{}.cwasm", component.name));
        fs::write(&file, native)?;
        writeln!(
            table,
            "    ({:?}, include_bytes!({file:?})),",
            component.name
        )?;
    }
    table.push(']');
    fs::write(out.join("native-code.rs"), table)?;
    Ok(())
}

/// An engine for the machine that is built for, as the host sets it up.
fn engine(slot: &str) -> Result<Engine, Box<dyn Error>> {
    let mut config = match slot {
        "rules.placement" | "rules.documents" => settings::documents(),
        slot if slot.starts_with("rules.") => settings::rules(),
        _ => settings::providers(),
    };
    config.target(&env::var("TARGET")?)?;
    if env::var("CARGO_CFG_TARGET_ARCH")? == "x86_64" {
        enable(&mut config);
    }
    Ok(Engine::new(&config)?)
}

#[expect(
    unsafe_code,
    reason = "wasmtime checks for the features before it takes up code"
)]
fn enable(config: &mut Config) {
    for feature in X86_64_FEATURES {
        // SAFETY: a feature the processor lacks makes the engine refuse the
        // code, it is never run.
        unsafe {
            config.cranelift_flag_enable(feature);
        }
    }
}
