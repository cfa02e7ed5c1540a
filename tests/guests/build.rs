//! Builds them from source.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use holdfast_guest_builder::{Builder, Guest, Memory, Result, watch};

fn main() -> Result<()> {
    watch(Path::new("build.rs"));
    watch(Path::new("misbehaving"));
    let workspace = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?)
        .ancestors()
        .nth(2)
        .ok_or("this crate lies in the tests' folder")?
        .to_path_buf();
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let built = Builder::new(workspace, &out)?.build(&Guest {
        package: "holdfast-misbehaving",
        slot: "provider.signing",
        memory: Memory::Plugin,
    })?;
    fs::write(out.join("misbehaving.wasm"), built.component)?;
    Ok(())
}
