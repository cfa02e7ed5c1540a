//! `holdfast component new`: creates a folder with a component that builds, and its
//! tests. The files are copies of `plugins/examples`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::json;

use super::Failure;
use super::output::CommandOutput;
use crate::components::worlds;
use crate::domain::component::Slot;

#[derive(Args)]
pub struct NewComponent {
    /// World of the component.
    #[arg(long, value_enum)]
    world: PluginWorld,
    /// Programming language.
    #[arg(long, value_enum)]
    lang: PluginLanguage,
    /// A folder that does not exist yet. Its name becomes the component's.
    folder: PathBuf,
}

/// World with an example.
#[derive(Clone, Copy, ValueEnum)]
enum PluginWorld {
    SigningProvider,
}

#[derive(Clone, Copy, ValueEnum)]
enum PluginLanguage {
    Rust,
    Js,
    Python,
}

/// Name and text of a file.
type File = (&'static str, &'static str);

/// Name of the examples, which is replaced by the component's.
const EXAMPLE: &str = "example-sign";

macro_rules! example {
    ($folder:literal, $($name:literal),+) => {
        &[$(($name, include_str!(concat!("../../../plugins/examples/", $folder, "/", $name)))),+]
    };
}

const FAR_END: File = (
    "far-end.json",
    include_str!("../../../plugins/examples/far-end.json"),
);

impl PluginLanguage {
    fn files(self) -> &'static [File] {
        match self {
            Self::Rust => example!(
                "rust",
                "Cargo.toml",
                "Makefile",
                "src/lib.rs",
                "src/vendor.rs"
            ),
            Self::Js => example!("javascript", "package.json", "build.js", "plugin.js"),
            Self::Python => example!("python", "requirements.txt", "Makefile", "plugin.py"),
        }
    }

    /// Returns the content of `.gitignore`: build output.
    fn ignored(self) -> &'static str {
        match self {
            Self::Rust => "/target\n*.wasm\n",
            Self::Js => "/node_modules\n*.wasm\n",
            Self::Python => "/.venv\n__pycache__\n*.wasm\n",
        }
    }

    /// Returns the next step for the author.
    fn next(self) -> &'static str {
        match self {
            Self::Rust => "rustup target add wasm32-unknown-unknown && make test",
            Self::Js => "npm install && npm test",
            Self::Python => "make test",
        }
    }
}

/// Writes the files.
///
/// # Errors
/// The folder exists, or its name is no valid name of a component.
pub fn new(new: &NewComponent, output: &CommandOutput) -> Result<ExitCode, Failure> {
    let folder = &new.folder;
    let name = folder
        .file_name()
        .and_then(|name| name.to_str())
        .filter(|name| is_name(name))
        .ok_or("the folder's name becomes the component's: lower-case letters, digits and hyphens, beginning with a letter")?;
    if folder.exists() {
        return Err(format!("{} is there already", folder.display()).into());
    }
    let slot = match new.world {
        PluginWorld::SigningProvider => Slot::Signing,
    };
    let named = |text: &str| {
        text.replace(EXAMPLE, name)
            .replace(&EXAMPLE.replace('-', "_"), &name.replace('-', "_"))
    };
    let mut files: Vec<(PathBuf, String)> = new
        .lang
        .files()
        .iter()
        .chain([&FAR_END])
        .map(|(file, text)| (folder.join(file), named(text)))
        .collect();
    files.push((folder.join(".gitignore"), new.lang.ignored().to_owned()));
    for (file, text) in worlds::sources(slot) {
        // Packages that the world depends on need a separate folder each.
        let place = match file.strip_suffix(".wit") {
            Some("host") => folder.join("wit/deps/host").join(file),
            _ => folder.join("wit").join(file),
        };
        files.push((place, text.to_owned()));
    }
    for (file, text) in &files {
        write(file, text)?;
    }
    let text = format!(
        "{} has a component for the world {}. Go on with:\n\n  cd {} && {}",
        folder.display(),
        slot.world(),
        folder.display(),
        new.lang.next()
    );
    let names: Vec<_> = files.iter().map(|(file, _)| file).collect();
    output.one(&json!({ "name": name, "files": names }), &text);
    Ok(ExitCode::SUCCESS)
}

/// Whether cargo, npm and the component registry all accept a name.
fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name
            .chars()
            .all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '-')
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    Ok(fs::write(file, text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_name_is_valid_for_every_build_tool() {
        for good in ["acme-sign", "a", "sign2"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "2sign", "Acme", "acme_sign", "acme sign", "-a", ".."] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
