//! A project of rules or a plugin: its files, its build, and the service of a plugin.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::SystemTime;

use tokio::net::TcpListener;
use tokio::process::Command;

use super::DATA;
use crate::cli::Failure;
use holdfast_components::script::{FarEndScript, PlayedFarEnd};
use holdfast_http::far_end;

/// Folders and files that builds make or install.
const MADE: [&str; 9] = [
    "target",
    "node_modules",
    ".venv",
    ".git",
    "__pycache__",
    "dist",
    DATA,
    "package-lock.json",
    "Cargo.lock",
];

/// A file with its state: a change, a new name or a removal makes another list of these.
type SeenFile = (PathBuf, Option<SystemTime>, u64);

/// A folder with the source of a component.
pub struct Project {
    folder: PathBuf,
    build: Build,
}

/// How a component is made from its source.
enum Build {
    /// `rules.toml`.
    Rules,
    /// `npm run build`.
    Npm,
    /// `make build`.
    Make,
}

impl Project {
    pub fn at(folder: &Path) -> Result<Self, Failure> {
        // A relative path would mean another folder to the tools, which run inside the project.
        let folder = folder
            .canonicalize()
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        let builds = [
            ("rules.toml", Build::Rules),
            ("package.json", Build::Npm),
            ("Makefile", Build::Make),
        ];
        let found = builds
            .into_iter()
            .find(|(file, _)| folder.join(file).exists());
        let (_, build) = found.ok_or_else(|| {
            format!("{} has no rules.toml, package.json or Makefile; `holdfast component new` makes a project", folder.display())
        })?;

        Ok(Self { folder, build })
    }

    pub fn name(&self) -> String {
        let name = self
            .folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        // Names of components allow only these characters, and a folder may have any.
        let kept = |character: char| match character {
            'a'..='z' | '0'..='9' | '-' => character,
            'A'..='Z' => character.to_ascii_lowercase(),
            _ => '-',
        };

        name.chars()
            .map(kept)
            .collect::<String>()
            .trim_matches('-')
            .to_owned()
    }

    /// Reads the script of a plugin's service.
    pub fn script(&self) -> Result<Option<FarEndScript>, Failure> {
        let file = self.folder.join("far-end.json");
        let Ok(text) = fs::read_to_string(&file) else {
            return Ok(None);
        };
        let script = FarEndScript::parse(&text);
        let script = script.map_err(|why| format!("{} is no script: {why}", file.display()))?;
        Ok(Some(script))
    }

    /// Starts the service of a plugin.
    pub async fn far_end(&self) -> Result<Option<Arc<PlayedFarEnd>>, Failure> {
        let Some(script) = self.script()? else {
            return Ok(None);
        };

        // Port 0, because several projects may run on one machine. Only this machine may reach the service.
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        eprintln!("far-end.json is played at {url}");
        let played = Arc::new(PlayedFarEnd::of(script, &url));
        tokio::spawn(far_end::serve(listener, played.clone()));

        Ok(Some(played))
    }

    /// Returns the files of the source, to compare with an earlier look at them.
    pub fn files(&self, data: &Path) -> Vec<SeenFile> {
        let mut found = Vec::new();
        add_files(&self.folder, data, &mut found);
        found.sort();
        found
    }

    /// Builds the component. The output of its tools goes to the terminal.
    pub async fn build(&self) -> Result<PathBuf, Failure> {
        let mut command = match self.build {
            // This very binary builds the rules, so the template inside them is of the same version.
            Build::Rules => {
                let made = self.folder.join(format!("{}.wasm", self.name()));
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["component", "build", "rules.toml"]).arg(made);
                command
            }
            Build::Npm => {
                if !self.folder.join("node_modules").exists() {
                    eprintln!("npm install: once, takes minutes for the tools of JavaScript");
                    self.run(Command::new("npm").arg("install")).await?;
                }

                let mut command = Command::new("npm");
                command.args(["run", "build"]);
                command
            }
            Build::Make => {
                let mut command = Command::new("make");
                command.arg("build");
                command
            }
        };

        self.run(&mut command).await?;
        // Each toolchain names its output in another way, so the newest component counts.
        let made = fs::read_dir(&self.folder)?
            .filter_map(Result::ok)
            .map(|entry| entry.path())
            .filter(|path| {
                path.extension()
                    .is_some_and(|extension| extension == "wasm")
            });
        let newest = made.max_by_key(|path| {
            let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
            modified.unwrap_or(SystemTime::UNIX_EPOCH)
        });

        newest.ok_or_else(|| {
            format!("the build made no .wasm file in {}", self.folder.display()).into()
        })
    }

    async fn run(&self, command: &mut Command) -> Result<(), Failure> {
        // Standard output has the exports only.
        let mut child = command
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(std::io::stderr())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("{:?}: {error}", command.as_std().get_program()))?;

        let status = child.wait().await?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("the build ended with {status}").into())
        }
    }
}

/// Adds the files below a folder, apart from the data and files that builds make.
fn add_files(folder: &Path, data: &Path, found: &mut Vec<SeenFile>) {
    // A file may vanish while the folder is read, for example an editor's. The next look sees the rest.
    let entries = fs::read_dir(folder).into_iter().flatten();
    for entry in entries.filter_map(Result::ok) {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        // Output of a build must not count as a change, or each build would start the next one.
        let is_made = MADE.contains(&name.as_ref()) || name.ends_with(".wasm");
        match entry.metadata() {
            _ if is_made || path == data => {}
            Ok(kind) if kind.is_dir() => add_files(&path, data, found),
            Ok(kind) if kind.is_file() => found.push((path, kind.modified().ok(), kind.len())),
            _ => {}
        }
    }
}
