//! `holdfast serve` as a process of its own, which a test can kill.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use holdfast::store::Store;
use serde_json::Value;

/// The `holdfast` that is under test.
pub fn this_program() -> PathBuf {
    env!("CARGO_BIN_EXE_holdfast").into()
}

/// Where a server keeps its things.
#[derive(Clone)]
pub struct Home {
    /// Which `holdfast` runs there.
    pub program: PathBuf,
    pub data: PathBuf,
    pub database: Option<String>,
    /// Further settings, as variables.
    pub settings: Vec<(String, String)>,
}

impl Home {
    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("HOLDFAST_DATA_DIR", &self.data);
        if let Some(database) = &self.database {
            command.env("HOLDFAST_DATABASE_URL", database);
        }
        command.envs(self.settings.iter().cloned());
        command
    }

    /// Its database, to look into.
    pub async fn store(&self) -> Store {
        let file = format!("sqlite://{}", self.data.join("holdfast.db").display());
        let url = self.database.as_deref().unwrap_or(&file);
        Store::connect(url).await.unwrap()
    }

    /// What the operator's tool prints, and whether it is content.
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
pub struct Server {
    child: Child,
    pub url: String,
    /// All lines after "listening".
    log: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Through `wrapper`, a program that runs its arguments, and with these
    /// variables; none when it dies before it listens.
    pub fn start(home: &Home, wrapper: &[&str], variables: &[(&str, &str)]) -> Option<Self> {
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
        let listening = lines
            .by_ref()
            .any(|line| line.unwrap().contains("listening on"));
        if !listening {
            child.wait().unwrap();
            return None;
        }
        // Read to the end, as a full pipe would stop the server; what went wrong is
        // shown with a failure.
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

    /// Whether a line of its log contains this.
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

    /// `STOP`, `CONT`…
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &id])
            .status();
        assert!(sent.unwrap().success());
    }

    /// Whether it is stopped by a signal.
    pub fn is_stopped(&self) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        // The state follows the name, which is in brackets.
        let status = status.unwrap();
        status.rsplit_once(") ").unwrap().1.starts_with('T')
    }
}

/// Also when a drill fails.
impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
