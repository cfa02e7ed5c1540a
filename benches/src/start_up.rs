//! Start-up of `holdfast serve` and the memory it holds when idle.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::Failure;
use crate::report::{self, Table, median, millis};

const RUNS: usize = 5;
/// A server that is not ready after this has failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at `/readyz`: each costs the server a probe of its storage.
const POLL: Duration = Duration::from_millis(5);
/// How long a server is left alone before its memory is read.
const IDLE: Duration = Duration::from_secs(3);

/// One start, as times from spawning the process.
struct Start {
    listening: Duration,
    ready: Duration,
}

/// What an idle server holds, in KiB.
struct Memory {
    resident: f64,
    proportional: f64,
}

/// Starts servers on empty and on used data folders and prints the table.
pub fn run() -> Result<(), Failure> {
    report::heading("Start-up of `holdfast serve`");
    let program = program()?;
    let (mut cold, mut warm, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let folder = tempfile::tempdir()?;
        let mut server = Server::spawn(&program, folder.path())?;
        cold.push(server.start()?);
        server.stop()?;

        let mut server = Server::spawn(&program, folder.path())?;
        warm.push(server.start()?);
        thread::sleep(IDLE);
        memory.push(server.memory()?);
        server.stop()?;
    }
    let mut table = Table::new(&["start", "until", "median ms", "fastest", "slowest"]);
    for (name, starts) in [
        ("cold: empty data folder", &cold),
        ("warm: second start on it", &warm),
    ] {
        let listening: Vec<f64> = starts.iter().map(|start| millis(start.listening)).collect();
        let ready: Vec<f64> = starts.iter().map(|start| millis(start.ready)).collect();
        times(&mut table, name, "\"listening on\"", &listening);
        times(&mut table, name, "GET /readyz = 200", &ready);
    }
    table.print();
    println!(
        "\n{RUNS} runs each, from spawning the process, looking every {} ms.\n",
        POLL.as_millis()
    );

    let mut table = Table::new(&["memory, idle, warm", "median MB", "least", "most"]);
    let megabytes = |kibibytes: f64| kibibytes * 1024.0 / 1e6;
    let resident: Vec<f64> = memory
        .iter()
        .map(|memory| megabytes(memory.resident))
        .collect();
    let proportional: Vec<f64> = memory
        .iter()
        .map(|memory| megabytes(memory.proportional))
        .collect();
    for (name, values) in [
        ("resident (VmRSS)", &resident),
        ("proportional (Pss)", &proportional),
    ] {
        table.row(std::iter::once(name.to_owned()).chain(spread(values)));
    }
    table.print();
    println!(
        "\n{RUNS} runs, {} s after the server was ready, no requests but those to /readyz.",
        IDLE.as_secs()
    );
    Ok(())
}

fn times(table: &mut Table, name: &str, until: &str, values: &[f64]) {
    table.row(
        [name.to_owned(), until.to_owned()]
            .into_iter()
            .chain(spread(values)),
    );
}

/// Median, least and most.
fn spread(values: &[f64]) -> [String; 3] {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    [median(values), least, most].map(|value| format!("{value:.1}"))
}

/// The program lies beside this one.
fn program() -> Result<PathBuf, Failure> {
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

/// A server of ours; dropping it ends it.
struct Server {
    child: Child,
    spawned: Instant,
    address: SocketAddr,
    lines: Receiver<(Instant, String)>,
}

impl Server {
    fn spawn(program: &Path, data_folder: &Path) -> Result<Self, Failure> {
        let address = free_address()?;
        let mut command = Command::new(program);
        // Settings of whoever runs this would change what is measured.
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
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let spawned = Instant::now();
        let mut child = command.spawn()?;
        let stderr = child
            .stderr
            .take()
            .ok_or("the server's stderr is not ours to read")?;
        Ok(Self {
            child,
            spawned,
            address,
            lines: lines(stderr),
        })
    }

    /// Waits until the server is ready.
    fn start(&mut self) -> Result<Start, Failure> {
        let listening = self.wait_for_line("listening on")?;
        while !answers_ready(self.address)? {
            if self.spawned.elapsed() > PATIENCE {
                return Err(format!("not ready after {} s", PATIENCE.as_secs()).into());
            }
            thread::sleep(POLL);
        }
        Ok(Start {
            listening,
            ready: self.spawned.elapsed(),
        })
    }

    fn wait_for_line(&self, text: &str) -> Result<Duration, Failure> {
        let mut seen = String::new();
        loop {
            let left = PATIENCE.saturating_sub(self.spawned.elapsed());
            match self.lines.recv_timeout(left) {
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

    fn memory(&self) -> Result<Memory, Failure> {
        let folder = PathBuf::from("/proc").join(self.child.id().to_string());
        Ok(Memory {
            resident: kibibytes(&folder.join("status"), "VmRSS:")?,
            proportional: kibibytes(&folder.join("smaps_rollup"), "Pss:")?,
        })
    }

    /// Asks the server to finish, as an operator would, and waits for it: the
    /// next start should not find a database that was left in a hurry.
    fn stop(mut self) -> Result<(), Failure> {
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

impl Drop for Server {
    fn drop(&mut self) {
        // Only matters after a failure; a server that has ended is left alone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_address() -> Result<SocketAddr, Failure> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// Reads on to the end, so that the server never waits for its log.
fn lines(stderr: ChildStderr) -> Receiver<(Instant, String)> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            // Nobody listens any more once the server is ready.
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

/// The number behind `label` in a file of `/proc`.
fn kibibytes(file: &Path, label: &str) -> Result<f64, Failure> {
    let text = std::fs::read_to_string(file)?;
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(label)?.split_whitespace().next());
    Ok(value
        .ok_or_else(|| format!("{} has no line {label}", file.display()))?
        .parse()?)
}
