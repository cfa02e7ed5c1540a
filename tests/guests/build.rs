//! Builds the guest components from source.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use holdfast_guest_builder::{GuestBuilder, GuestCrate, GuestMemory, Result, watch};

fn main() -> Result<()> {
    watch(Path::new("build.rs"));
    for guest in ["misbehaving", "opinionated", "lenient"] {
        watch(Path::new(guest));
    }

    let workspace = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?)
        .ancestors()
        .nth(2)
        .ok_or("this crate lies in the tests' folder")?
        .to_path_buf();
    let out = PathBuf::from(env::var("OUT_DIR")?);

    let builder = GuestBuilder::new(workspace, &out)?;
    for (name, package, slot, memory) in [
        (
            "misbehaving",
            "holdfast-misbehaving",
            "provider.signing",
            GuestMemory::Plugin,
        ),
        (
            "opinionated",
            "holdfast-opinionated",
            "rules.compliance",
            GuestMemory::Rules,
        ),
        (
            "lenient",
            "holdfast-lenient",
            "rules.lifecycle",
            GuestMemory::Rules,
        ),
    ] {
        let built = builder.build(&GuestCrate {
            package,
            slot,
            memory,
        })?;
        fs::write(out.join(format!("{name}.wasm")), built.component)?;
    }

    Ok(())
}
