//! Compiles the default components to native code ahead of time, which saves half a minute of
//! processor time at the first start.
//!
//! The code runs on any x86-64 processor since 2009 (or the baseline of another
//! architecture). An engine that cannot use it compiles the components at the first start.
//!
//! Without the feature `ahead-of-time` this script writes an empty table.

use std::env;
use std::error::Error;
use std::fs;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/settings.rs");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    #[cfg(feature = "ahead-of-time")]
    let table = ahead_of_time::compile(&out)?;
    #[cfg(not(feature = "ahead-of-time"))]
    let table = "&[]";
    fs::write(out.join("native-code.rs"), table)?;

    Ok(())
}

#[cfg(feature = "ahead-of-time")]
#[path = "src/settings.rs"]
mod settings;

#[cfg(feature = "ahead-of-time")]
mod ahead_of_time {
    use std::env;
    use std::error::Error;
    use std::fmt::Write as _;
    use std::fs;
    use std::path::Path;

    use holdfast_default_components::{DEFAULT_COMPONENTS, ROOM_COMPONENT};
    use wasmtime::{Config, Engine};

    use super::settings;

    /// Compression of the native code: it is unpacked once, into the cache of the installation.
    const LEVEL: i32 = 12;

    /// Features of the level x86-64-v2.
    const X86_64_FEATURES: [&str; 5] = [
        "has_sse3",
        "has_ssse3",
        "has_sse41",
        "has_sse42",
        "has_popcnt",
    ];

    /// Writes the native code of each component to a file, and returns the table of the files.
    pub fn compile(out: &Path) -> Result<String, Box<dyn Error>> {
        let mut table = String::from("&[\n");
        for component in DEFAULT_COMPONENTS.iter().chain(ROOM_COMPONENT) {
            let native = match engine(component.slot) {
                Ok(engine) => engine.precompile_component(&component.bytes())?,
                Err(error) => {
                    println!(
                        "cargo::warning={} is compiled at the first start, not now: {error:#}",
                        component.name
                    );
                    continue;
                }
            };

            let file = out.join(format!("{}.cwasm.zst", component.name));
            fs::write(&file, zstd::encode_all(&native[..], LEVEL)?)?;
            writeln!(
                table,
                "    ({:?}, include_bytes!({file:?})),",
                component.name
            )?;
        }

        table.push(']');
        Ok(table)
    }

    /// Creates an engine for the target machine with the settings of the host.
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
            // SAFETY: on a processor without one of these features the engine refuses the
            // code and never runs it.
            unsafe {
                config.cranelift_flag_enable(feature);
            }
        }
    }
}
