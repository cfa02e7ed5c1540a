//! Compiles the default components to native code ahead of time, which saves half a minute of
//! processor time at the first start.
//!
//! The code runs on any x86-64 processor since 2009 (or the baseline of another
//! architecture). An engine that cannot use it compiles the components at the first start.
//!
//! Without the feature `ahead-of-time` this script writes an empty table. It also writes the table of the typefaces.

use std::env;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use holdfast_guest_builder::{Result, shared_file, watch};

fn main() -> Result<()> {
    watch(Path::new("build.rs"));
    watch(Path::new("src/settings.rs"));
    watch(Path::new(FACES));
    let out = PathBuf::from(env::var("OUT_DIR")?);

    #[cfg(feature = "ahead-of-time")]
    let table = ahead_of_time::compile(&out)?;
    #[cfg(not(feature = "ahead-of-time"))]
    let table = "&[]";
    fs::write(out.join("native-code.rs"), table)?;

    // A program with compliance rules only draws nothing.
    let faces = if cfg!(feature = "all") {
        faces(&out)?
    } else {
        "&[]".into()
    };
    fs::write(out.join("faces.rs"), faces)?;

    Ok(())
}

/// Folder of the typefaces.
const FACES: &str = "../../faces";

/// Returns the table of the typefaces, in the order of the codes of their scripts, which are the names of the files.
fn faces(out: &Path) -> Result<String> {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join(FACES);
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let file = entry?.path();
        if file
            .extension()
            .is_some_and(|kind| kind == "ttf" || kind == "otf")
        {
            files.push(file);
        }
    }
    files.sort();

    let mut table = String::from("&[\n");
    for file in files {
        let code = file.file_stem().and_then(OsStr::to_str).unwrap_or_default();
        writeln!(table, "    ({code:?}, {}),", shared_file(&file, out)?)?;
    }

    table.push(']');
    Ok(table)
}

#[cfg(feature = "ahead-of-time")]
#[path = "src/settings.rs"]
mod settings;

#[cfg(feature = "ahead-of-time")]
mod ahead_of_time {
    use std::env;
    use std::fmt::Write as _;
    use std::fs;
    use std::path::Path;

    use holdfast_default_components::{DEFAULT_COMPONENTS, ROOM_COMPONENT, share};
    use holdfast_guest_builder::{Result, compression_level, shared_file};
    use wasmtime::{Config, Engine};

    use super::settings;

    /// Features of the level x86-64-v2.
    const X86_64_FEATURES: [&str; 5] = [
        "has_sse3",
        "has_ssse3",
        "has_sse41",
        "has_sse42",
        "has_popcnt",
    ];

    /// Writes the native code of each component to a file, and returns the table of the files.
    pub fn compile(out: &Path) -> Result<String> {
        // Without the feature `embedded` the components are in `<target>/<profile>/share`; this script is
        // `<target>/<profile>/build/<package>/build-script-build`.
        if let Some(profile) = env::current_exe()?.ancestors().nth(3) {
            share::look_in(profile.join("share"));
        }

        let mut table = String::from("&[\n");
        for component in DEFAULT_COMPONENTS.iter().chain(ROOM_COMPONENT) {
            let native = match engine(component.slot) {
                Ok(engine) => engine.precompile_component(&component.bytes()?)?,
                Err(error) => {
                    println!(
                        "cargo::warning={} is compiled at the first start, not now: {error:#}",
                        component.name
                    );
                    continue;
                }
            };

            let file = out.join(format!("{}.cwasm.zst", component.name));
            // Compressed, because it is unpacked once, into the cache of the installation.
            fs::write(&file, zstd::encode_all(&native[..], compression_level())?)?;
            writeln!(
                table,
                "    ({:?}, {}),",
                component.name,
                shared_file(&file, out)?
            )?;
        }

        table.push(']');
        Ok(table)
    }

    /// Creates an engine for the target machine with the settings of the host.
    fn engine(slot: &str) -> Result<Engine> {
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
