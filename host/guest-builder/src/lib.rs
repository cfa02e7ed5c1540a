//! Compiles guests for `wasm32-unknown-unknown` in a separate target folder
//! (`<target>/guests`), and encodes them as components without WASI imports. For use in
//! build scripts. There are two ways to compile:
//!
//! 1. with the Rust toolchain in use, if it has the target (`rustup target add
//!    wasm32-unknown-unknown`);
//! 2. otherwise with Debian's `rustc-web`, `cargo-web` and `rust-web-src`, which build
//!    the standard library from source, and the linker of the toolchain in use
//!    (`rust-lld`).

use std::env;
use std::error::Error;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

use sha2::{Digest as _, Sha256};

/// Result with an error for the developer.
pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

const TARGET: &str = "wasm32-unknown-unknown";

/// Package of the workspace that is compiled to a component.
pub struct GuestCrate {
    /// Cargo package; also the component's name.
    pub package: &'static str,
    /// Slot, for example `rules.compliance`.
    pub slot: &'static str,
    /// Memory layout.
    pub memory: GuestMemory,
}

/// Stack and initial memory of a guest.
#[derive(Clone, Copy)]
pub enum GuestMemory {
    /// 16 KiB of stack, 64 KiB of memory. Small because the host resets the memory after every
    /// call, which costs more than the checks themselves. Records with
    /// dozens of parties make the memory grow.
    Rules,
    /// 64 KiB of stack, 256 KiB of memory: the amount that the host keeps
    /// resident, so that a call makes no system call.
    Plugin,
    /// For work on whole documents: 1 MiB of stack, 8 MiB of memory, which grows as needed.
    Documents,
}

/// Builder for the guests of a workspace.
pub struct GuestBuilder {
    workspace: PathBuf,
    target: PathBuf,
    toolchain: GuestToolchain,
}

/// Guest compiled to a component.
pub struct BuiltGuest {
    /// Version of the package.
    pub version: String,
    /// Bytes of the component, with its manifest as a custom section.
    pub component: Vec<u8>,
}

impl GuestBuilder {
    /// Creates a builder for the build script of a package in `workspace`; `out` is its `OUT_DIR`.
    pub fn new(workspace: PathBuf, out: &Path) -> Result<Self> {
        // The guests are no dependencies of that package, so cargo does not know that it has to rebuild
        // them.
        for folder in ["wit", "guest-rules", "plugins"] {
            watch(&workspace.join(folder));
        }
        // Another version of a dependency changes the bytes of a guest, too.
        watch(&workspace.join("Cargo.lock"));
        Self::at(workspace, guests_target(out)?)
    }

    /// Creates a builder for any workspace, with the target folder `target`.
    pub fn at(workspace: PathBuf, target: PathBuf) -> Result<Self> {
        Ok(Self {
            toolchain: GuestToolchain::find()?,
            target,
            workspace,
        })
    }

    /// Returns the version of a guest.
    pub fn version(&self, guest: &GuestCrate) -> Result<String> {
        package_version(&self.workspace, guest.package)
    }

    /// Returns name, version and origin of the compiler, which determine the bytes of a component like its sources.
    pub fn compiler(&self) -> Result<String> {
        match &self.toolchain {
            GuestToolchain::Own { .. } => {
                let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
                print(&rustc, &["--version", "--verbose"])
            }
            GuestToolchain::Debian { .. } => {
                print(OsStr::new("/usr/bin/rustc"), &["--version", "--verbose"])
            }
        }
    }

    /// Compiles one guest to a core module.
    pub fn module(&self, guest: &GuestCrate) -> Result<PathBuf> {
        self.toolchain.build(&self.workspace, &self.target, guest)
    }

    /// Compiles one guest to a component.
    pub fn build(&self, guest: &GuestCrate) -> Result<BuiltGuest> {
        let version = self.version(guest)?;
        let module = self.module(guest)?;
        let component = encode(&fs::read(&module)?, guest, &version)
            .map_err(|error| format!("{} is no component: {error:#}", guest.package))?;
        Ok(BuiltGuest { version, component })
    }
}

/// Makes cargo run the build script again after a change of `path`.
pub fn watch(path: &Path) {
    println!("cargo::rerun-if-changed={}", path.display());
}

/// Returns the zstd level for files that come with the program. Packages are built rarely and copied often, so their build
/// takes the time for small files.
pub fn compression_level() -> i32 {
    if is_embedded() { 12 } else { 19 }
}

/// Whether the package of this build script has the feature `embedded`.
fn is_embedded() -> bool {
    env::var_os("CARGO_FEATURE_EMBEDDED").is_some()
}

/// Places a file that comes with the program, and returns the expression of its `SharedFile`. `out` is the `OUT_DIR` of
/// the build script. With the feature `embedded` of its package, the compiler takes the bytes into the program. Without
/// it they are copied to `<target>/<profile>/share`, and the program gets their size and SHA-256.
pub fn shared_file(file: &Path, out: &Path) -> Result<String> {
    let name = file.file_name().and_then(OsStr::to_str);
    let name = name.ok_or("a file of the program has a name in ASCII")?;
    if is_embedded() {
        return Ok(format!(
            "SharedFile::embedded({name:?}, include_bytes!({file:?}))"
        ));
    }

    let bytes = fs::read(file)?;
    let profile = out.ancestors().nth(3);
    let folder = profile
        .ok_or("OUT_DIR has the shape cargo documents")?
        .join("share");
    fs::create_dir_all(&folder)?;

    // By renaming, because a program that runs has the old file open.
    let temporary = folder.join(format!("{name}.{}.tmp", process::id()));
    fs::write(&temporary, &bytes)?;
    fs::rename(temporary, folder.join(name))?;

    let digest = hex::encode(Sha256::digest(&bytes));
    let size = bytes.len();
    Ok(format!("SharedFile::beside({name:?}, {size}, {digest:?})"))
}

/// Returns `<target>/guests`; `OUT_DIR` is `<target>/<profile>/build/<package>/out`.
fn guests_target(out: &Path) -> Result<PathBuf> {
    let target = out
        .ancestors()
        .nth(4)
        .ok_or("OUT_DIR has the shape cargo documents")?;
    Ok(target.join("guests"))
}

/// Returns the version of a package from the lock file.
fn package_version(workspace: &Path, package: &str) -> Result<String> {
    // The lock file has the versions without another run of cargo.
    let lock = fs::read_to_string(workspace.join("Cargo.lock"))?;
    let name_line = format!("name = \"{package}\"");
    lock.lines()
        .skip_while(|line| *line != name_line)
        .nth(1)
        .and_then(|line| line.strip_prefix("version = \"")?.strip_suffix('"'))
        .map(str::to_owned)
        .ok_or_else(|| format!("{package} is not in Cargo.lock").into())
}

/// Encodes a core module as a component, with its manifest as a custom section.
fn encode(module: &[u8], guest: &GuestCrate, version: &str) -> Result<Vec<u8>> {
    let mut component = wit_component::ComponentEncoder::default()
        .module(module)?
        .validate(true)
        .encode()?;
    // Package names, versions and slots contain no character that JSON escapes.
    let manifest = format!(
        r#"{{"name":"{}","version":"{version}","slot":"{}"}}"#,
        guest.package, guest.slot
    );
    append_custom_section(&mut component, "holdfast:manifest", manifest.as_bytes());

    Ok(component)
}

/// Appends section id 0, then size, name length, name and bytes (LEB128 lengths).
fn append_custom_section(component: &mut Vec<u8>, name: &str, bytes: &[u8]) {
    let mut section = leb128(name.len());
    section.extend(name.as_bytes());
    section.extend(bytes);
    component.push(0);
    component.extend(leb128(section.len()));
    component.extend(section);
}

fn leb128(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        bytes.push(if value == 0 { low } else { low | 0x80 });
        if value == 0 {
            return bytes;
        }
    }
}

/// Toolchain that compiles the guests.
enum GuestToolchain {
    /// The toolchain in use has the target.
    Own { cargo: PathBuf },
    /// Debian's compiler and cargo with the linker of the toolchain in use.
    Debian { linker: PathBuf },
}

impl GuestToolchain {
    fn find() -> Result<Self> {
        println!("cargo::rerun-if-env-changed=CARGO");
        let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let library = print(&rustc, &["--print", "target-libdir", "--target", TARGET])?;
        // rustc prints the path of the target's library even if it is not installed, so the folder itself is
        // looked for.
        if Path::new(&library).is_dir() {
            let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            return Ok(Self::Own {
                cargo: cargo.into(),
            });
        }

        let linker = Path::new(&print(&rustc, &["--print", "sysroot"])?)
            .join("lib/rustlib")
            .join(env::var("HOST")?)
            .join("bin/rust-lld");
        let needed = [
            Path::new("/usr/bin/rustc"),
            Path::new("/usr/bin/cargo"),
            Path::new("/usr/lib/rustlib/src/rust/library/std/src/lib.rs"),
            &linker,
        ];
        match needed.iter().find(|path| !path.exists()) {
            Some(missing) => Err(what_to_install(missing).into()),
            None => Ok(Self::Debian { linker }),
        }
    }

    /// Compiles one guest and returns its core module.
    fn build(&self, workspace: &Path, target: &Path, guest: &GuestCrate) -> Result<PathBuf> {
        let mut command = match self {
            Self::Own { cargo } => Command::new(cargo),
            Self::Debian { .. } => Command::new("/usr/bin/cargo"),
        };

        // A build script inherits cargo's settings of the host build, which would
        // affect this one (clippy's wrapper, coverage flags, another compiler).
        // Variables of rustup stay: without them, it may select another toolchain.
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            let kept = ["CARGO_HOME", "CARGO_MAKEFLAGS", "CARGO_NET_OFFLINE"].contains(&&*text)
                || text.starts_with("CARGO_REGISTRIES_")
                || text.starts_with("CARGO_SOURCE_")
                || text.starts_with("CARGO_HTTP_")
                || text.starts_with("RUSTUP_");

            if !kept && (text.starts_with("CARGO") || text.starts_with("RUST")) {
                command.env_remove(&name);
            }
        }

        if let Self::Debian { linker } = self {
            command
                .env("RUSTC", "/usr/bin/rustc")
                // `build-std` is an unstable option, and Debian's compiler is a stable release.
                .env("RUSTC_BOOTSTRAP", "1")
                .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }

        // Some workspaces have no profile `guest`. The setting gives them one, and changes nothing in the
        // others.
        command
            .current_dir(workspace)
            .env("CARGO_ENCODED_RUSTFLAGS", guest_flags()?)
            .args([
                "rustc",
                "--lib",
                "--crate-type",
                "cdylib",
                "--profile",
                "guest",
                "--config",
                "profile.guest.inherits='release'",
            ])
            .args([
                "--target",
                TARGET,
                "--package",
                guest.package,
                "--target-dir",
            ])
            .arg(target);

        // Debian ships no standard library for this target, only its source.
        if matches!(self, Self::Debian { .. }) {
            command.args(["-Z", "build-std=std,panic_abort"]);
        }

        command.arg("--").args(match guest.memory {
            GuestMemory::Rules => [
                "-Clink-arg=-zstack-size=16384",
                "-Clink-arg=--initial-memory=65536",
            ],
            GuestMemory::Plugin => [
                "-Clink-arg=-zstack-size=65536",
                "-Clink-arg=--initial-memory=262144",
            ],
            GuestMemory::Documents => [
                "-Clink-arg=-zstack-size=1048576",
                "-Clink-arg=--initial-memory=8388608",
            ],
        });

        // A build script's output stays hidden, so the compiler's messages go into the error.
        let output = command.output()?;
        if !output.status.success() {
            return Err(format!(
                "compiling {} failed:\n{}",
                guest.package,
                String::from_utf8_lossy(&output.stderr)
            )
            .into());
        }

        let file = format!("{}.wasm", guest.package.replace('-', "_"));
        Ok(target.join(TARGET).join("guest").join(file))
    }
}

/// Returns one sentence that names the missing tool and how to install it.
fn what_to_install(missing: &Path) -> String {
    format!(
        "the components need the {TARGET} target and {} is missing: run `rustup target add {TARGET}`, \
         or, where rustup cannot fetch it, `apt-get install rustc-web cargo-web rust-web-src`",
        missing.display()
    )
}

/// Returns the compiler flags: a guest has no source of randomness, and its bytes must not
/// contain paths of the build machine, neither the folder of dependencies nor that
/// of the standard library's source, if the toolchain has it.
fn guest_flags() -> Result<String> {
    // Panic messages contain the paths of dependencies. Equal sources have to give equal bytes on every
    // machine.
    let home = match env::var("CARGO_HOME") {
        Ok(home) => home,
        Err(_) => format!("{}/.cargo", env::var("HOME")?),
    };
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let sysroot = print(&rustc, &["--print", "sysroot"])?;

    Ok([
        "--cfg",
        // Without the flag, the crate would not compile for a target without a system.
        "getrandom_backend=\"unsupported\"",
        &format!("--remap-path-prefix={home}=/cargo"),
        &format!("--remap-path-prefix={sysroot}/lib/rustlib/src/rust=/rust"),
    ]
    .join("\x1f"))
}

fn print(program: &OsStr, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program).args(arguments).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_is_named_with_the_command_that_installs_it() {
        let sentence = what_to_install(Path::new("/usr/bin/rustc"));
        for part in [
            "/usr/bin/rustc is missing",
            "`rustup target add wasm32-unknown-unknown`",
            "`apt-get install rustc-web cargo-web rust-web-src`",
        ] {
            assert!(sentence.contains(part), "{sentence}");
        }

        assert!(!sentence.contains('\n'));
    }

    #[test]
    fn the_manifest_section_is_well_formed() {
        let mut component = Vec::new();
        append_custom_section(&mut component, "name", &[7; 200]);
        // Section 0, 205 bytes: one for the name's length, the name, the rest.
        assert_eq!(component[..8], [0, 0xcd, 1, 4, b'n', b'a', b'm', b'e']);
        assert_eq!(component.len(), 3 + 205);
    }
}
