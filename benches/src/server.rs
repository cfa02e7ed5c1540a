//! `holdfast serve` as a child process.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::Failure;

/// Timeout for becoming ready.
const PATIENCE: Duration = Duration::from_secs(60);
/// Interval between requests of `/readyz`, each of which makes the server probe its storage.
pub const POLL: Duration = Duration::from_millis(5);

/// Times of one start, measured from spawning the process.
pub struct ServerStart {
    pub listening: Duration,
    pub ready: Duration,
}

/// Memory of an idle server, in KiB.
pub struct MemoryUse {
    pub resident: f64,
    /// Memory that the system cannot drop: all but pages of files.
    pub anonymous: f64,
}

/// Returns the path of the server binary, which is next to this one.
pub fn program() -> Result<PathBuf, Failure> {
    let program = std::env::current_exe()?.with_file_name("holdfast");
    if program.is_file() {
        return Ok(program);
    }

    Err(format!(
        "{} is missing: run `cargo build --release -p holdfast -p holdfast-bench`",
        program.display()
    )
    .into())
}

/// Destination of a server's log. Reading it uses about one core under load, so it is watched only
/// if its lines are timed.
pub enum ServerLog {
    Watched,
    File,
}

/// A server process, killed on drop.
pub struct BenchServer {
    child: Child,
    spawned: Instant,
    pub address: SocketAddr,
    /// `None` if its log goes to a file.
    lines: Option<Receiver<(Instant, String)>>,
}

impl BenchServer {
    /// Starts `holdfast serve` on a data folder, with `HOLDFAST_*` settings.
    pub fn spawn(
        program: &Path,
        data_folder: &Path,
        settings: &[(&str, String)],
        log: ServerLog,
    ) -> Result<Self, Failure> {
        let address = free_address()?;
        let mut command = Command::new(program);

        // Settings from the developer's environment would distort the measurements.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("HOLDFAST_") {
                command.env_remove(name);
            }
        }

        command
            .arg("serve")
            .current_dir(data_folder)
            .env("HOLDFAST_DATA_DIR", data_folder)
            .env("HOLDFAST_LISTEN", address.to_string())
            .envs(settings.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(match log {
                ServerLog::Watched => Stdio::piped(),
                ServerLog::File => std::fs::File::create(data_folder.join("log"))?.into(),
            });

        let spawned = Instant::now();
        let mut child = command.spawn()?;
        let lines = child.stderr.take().map(lines);
        Ok(Self {
            child,
            spawned,
            address,
            lines,
        })
    }

    /// Waits until the server is ready.
    pub fn start(&mut self) -> Result<ServerStart, Failure> {
        let listening = match &self.lines {
            Some(_) => self.wait_for_line("listening on")?,
            None => self.wait_for_connection()?,
        };

        while !answers_ready(self.address)? {
            if self.spawned.elapsed() > PATIENCE {
                return Err(format!("not ready after {} s", PATIENCE.as_secs()).into());
            }
            thread::sleep(POLL);
        }

        Ok(ServerStart {
            listening,
            ready: self.spawned.elapsed(),
        })
    }

    fn wait_for_connection(&self) -> Result<Duration, Failure> {
        while TcpStream::connect(self.address).is_err() {
            if self.spawned.elapsed() > PATIENCE {
                return Err(format!("not listening after {} s", PATIENCE.as_secs()).into());
            }
            thread::sleep(POLL);
        }
        Ok(self.spawned.elapsed())
    }

    fn wait_for_line(&self, text: &str) -> Result<Duration, Failure> {
        let Some(lines) = &self.lines else {
            return Err("the server's log is not watched".into());
        };

        let mut seen = String::new();
        loop {
            let left = PATIENCE.saturating_sub(self.spawned.elapsed());
            match lines.recv_timeout(left) {
                Ok((at, line)) if line.contains(text) => return Ok(at.duration_since(self.spawned)),
                Ok((_, line)) => seen = seen + &line + "\n",
                Err(RecvTimeoutError::Timeout) => {
                    return Err(
                        format!("no line \"{text}\" in time; the server said:\n{seen}").into(),
                    );
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(format!("the server ended; it said:\n{seen}").into());
                }
            }
        }
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns its resident memory in KiB. Unlike [`BenchServer::memory`], it does not hold up the
    /// server's page faults.
    pub fn resident(&self) -> Result<f64, Failure> {
        let folder = PathBuf::from("/proc").join(self.child.id().to_string());
        kibibytes(&folder.join("status"), "VmRSS:")
    }

    /// Returns its current memory.
    pub fn memory(&self) -> Result<MemoryUse, Failure> {
        let folder = PathBuf::from("/proc").join(self.child.id().to_string());
        Ok(MemoryUse {
            resident: kibibytes(&folder.join("status"), "VmRSS:")?,
            anonymous: kibibytes(&folder.join("status"), "RssAnon:")?,
        })
    }

    /// Shuts the server down cleanly, as an operator would: after a kill the next start would first
    /// have to recover the database.
    pub fn stop(mut self) -> Result<(), Failure> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let asked = Instant::now();
        while self.child.try_wait()?.is_none() {
            if asked.elapsed() > PATIENCE {
                return Err("the server did not stop when asked to".into());
            }
            thread::sleep(POLL);
        }

        Ok(())
    }
}

impl Drop for BenchServer {
    fn drop(&mut self) {
        // Needed only after a failure; a server that has exited is left alone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn free_address() -> Result<SocketAddr, Failure> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// Reads the log to its end, so the server never blocks on it.
fn lines(stderr: ChildStderr) -> Receiver<(Instant, String)> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            // The receiver is dropped once the server is ready.
            let _ = sender.send((Instant::now(), line));
        }
    });
    receiver
}

fn answers_ready(address: SocketAddr) -> Result<bool, Failure> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;

    Ok(answer.starts_with(b"HTTP/1.1 200 "))
}

/// Returns the number after `label` in a file of `/proc`.
fn kibibytes(file: &Path, label: &str) -> Result<f64, Failure> {
    let text = std::fs::read_to_string(file)?;
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(label)?.split_whitespace().next());
    Ok(value
        .ok_or_else(|| format!("{} has no line {label}", file.display()))?
        .parse()?)
}
