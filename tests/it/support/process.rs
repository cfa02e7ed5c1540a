//! `holdfast serve` as a separate process that a test can kill.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use holdfast::store::Store;
use serde_json::Value;

/// Returns the path of the `holdfast` under test.
pub fn this_program() -> PathBuf {
    env!("CARGO_BIN_EXE_holdfast").into()
}

/// Program, data folder and settings of a server, which outlive its process.
#[derive(Clone)]
pub struct ServerHome {
    /// The `holdfast` binary to run.
    pub program: PathBuf,
    pub data: PathBuf,
    pub database: Option<String>,
    /// Further settings as environment variables.
    pub settings: Vec<(String, String)>,
}

impl ServerHome {
    /// Returns a command with the settings of this home.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("HOLDFAST_DATA_DIR", &self.data);
        if let Some(database) = &self.database {
            command.env("HOLDFAST_DATABASE_URL", database);
        }
        command.envs(self.settings.iter().cloned());
        command
    }

    /// Opens the server's database for inspection.
    pub async fn store(&self) -> Store {
        let file = format!("sqlite://{}", self.data.join("holdfast.db").display());
        let url = self.database.as_deref().unwrap_or(&file);
        Store::connect(url).await.unwrap()
    }

    /// Returns a home in a folder, with the programs under test and their default database.
    pub fn of(data: &Path) -> Self {
        Self {
            program: this_program(),
            data: data.to_owned(),
            database: None,
            settings: Vec::new(),
        }
    }

    /// Makes an organization, and returns its id.
    pub fn organization(&self, name: &str) -> String {
        let (_, org) = self.operator("0s", &["org", "create", "--name", name]);
        org["org_id"].as_str().unwrap().to_owned()
    }

    /// Makes an API key that is as good as without a limit of its rate.
    pub fn key(&self, org: &str, scopes: &str) -> String {
        let create = ["key", "create", "--org", org, "--scopes", scopes];
        let limit = ["--rpm", "1000000"];
        let (_, key) = self.operator("0s", &[&create[..], &limit].concat());
        key["api_key"].as_str().unwrap().to_owned()
    }

    /// Runs the operator's tool; returns whether it succeeded, and its output.
    pub fn operator(&self, ahead: &str, arguments: &[&str]) -> (bool, Value) {
        let output = self
            .command(&self.program)
            .env("HOLDFAST_CLOCK_OFFSET", ahead)
            .arg("--json")
            .args(arguments)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();

        let value = serde_json::from_slice(&output.stdout);
        (
            output.status.success(),
            value.unwrap_or_else(|_| panic!("{arguments:?}: {said}")),
        )
    }
}

/// A running server.
pub struct ServerProcess {
    child: Child,
    pub url: String,
    /// Log lines after "listening".
    log: Arc<Mutex<Vec<String>>>,
}

impl ServerProcess {
    /// Starts a server through `wrapper`, a program that runs its arguments, with these environment
    /// variables. Returns none when the server exits before it listens.
    pub fn start(home: &ServerHome, wrapper: &[&str], variables: &[(&str, &str)]) -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let mut command = match wrapper {
            [] => home.command(&home.program),
            [wrapper, arguments @ ..] => {
                let mut command = home.command(wrapper);
                command.args(arguments).arg(&home.program);
                command
            }
        };
        let mut child = command
            .env("HOLDFAST_LISTEN", format!("127.0.0.1:{port}"))
            .envs(variables.iter().copied())
            .arg("serve")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{wrapper:?}: {error}; run tests/set-up test"));

        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        let listening = lines.by_ref().any(|line| {
            let line = line.unwrap();
            let is_last = line.contains("listening on");
            said.push(line);
            is_last
        });
        if !listening {
            // Some drills expect this, so it is only printed.
            eprintln!("{}", said.join("\n"));
            child.wait().unwrap();
            return None;
        }

        // A full pipe would block the server, so the log is read to its end. Failed tests print it.
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = log.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if line.contains("ERROR") || line.contains("WARN") {
                    eprintln!("{line}");
                }
                kept.lock().unwrap().push(line);
            }
        });

        Some(Self {
            child,
            log,
            url: format!("http://127.0.0.1:{port}"),
        })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn is_dead(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Returns whether a line of its log contains `what`.
    pub fn has_said(&self, what: &str) -> bool {
        self.log
            .lock()
            .unwrap()
            .iter()
            .any(|line| line.contains(what))
    }

    pub fn kill(self) {
        drop(self);
    }

    /// Sends a signal by its name: `STOP`, `CONT`…
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &id])
            .status();
        assert!(sent.unwrap().success());
    }

    /// Returns whether a signal has stopped it.
    pub fn is_stopped(&self) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        // The process state follows the program name, which is in parentheses.
        let status = status.unwrap();
        status.rsplit_once(") ").unwrap().1.starts_with('T')
    }
}

/// Kills the server, also when a drill fails.
impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
