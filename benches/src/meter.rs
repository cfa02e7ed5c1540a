//! Processor time and memory of a server and its database, from the kernel's counters of their processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use holdfast::store::{SqlDialect, Store};

use crate::Failure;

/// Watches the resources that a server and its database use.
pub struct ProcessMeter {
    server: u32,
    postgres: Option<u32>,
    before: (f64, f64, u64),
    watching: Arc<AtomicBool>,
    peak: Option<thread::JoinHandle<f64>>,
}

/// Seconds of processor time, the server's voluntary changes of thread, and its peak of resident memory in MiB.
pub struct CpuUse {
    pub server: f64,
    pub database: f64,
    pub switches: u64,
    pub peak: f64,
}

impl ProcessMeter {
    pub async fn start(server: u32, store: &Store) -> Result<Self, Failure> {
        let postgres = match store.dialect() {
            SqlDialect::Sqlite => None,
            SqlDialect::Postgres => {
                let mut connection = store.read().await?;
                let backend: i32 = sqlx::query_scalar("select pg_backend_pid()")
                    .fetch_one(&mut *connection)
                    .await?;
                parent_of(backend.unsigned_abs())
            }
        };

        let watching = Arc::new(AtomicBool::new(true));
        let watched = watching.clone();
        let peak = thread::spawn(move || {
            let mut peak = 0.0_f64;
            while watched.load(Ordering::Relaxed) {
                peak = peak.max(resident(server));
                thread::sleep(Duration::from_millis(20));
            }
            peak
        });

        Ok(Self {
            server,
            postgres,
            before: (
                seconds(server, false),
                postgres.map_or(0.0, family),
                switches(server),
            ),
            watching,
            peak: Some(peak),
        })
    }

    pub fn stop(mut self) -> CpuUse {
        self.watching.store(false, Ordering::Relaxed);
        let peak = self.peak.take().and_then(|peak| peak.join().ok());
        CpuUse {
            server: seconds(self.server, false) - self.before.0,
            database: self.postgres.map_or(0.0, family) - self.before.1,
            switches: switches(self.server).saturating_sub(self.before.2),
            peak: peak.unwrap_or_default(),
        }
    }
}

/// Fields of `/proc/*/stat` behind the program's name; the first is the state.
fn stat(process: u32) -> Vec<String> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields = text.rsplit_once(") ").map_or("", |(_, fields)| fields);
    fields.split(' ').map(str::to_owned).collect()
}

fn parent_of(process: u32) -> Option<u32> {
    stat(process).get(1)?.parse().ok()
}

/// Processor time of a process; with that of children that have ended.
pub fn seconds(process: u32, with_ended: bool) -> f64 {
    const TICKS: f64 = 100.0;
    let fields = stat(process);
    let last = if with_ended { 15 } else { 13 };
    let ticks = fields.get(11..last).unwrap_or_default();
    let ticks = ticks.iter().filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / TICKS
}

/// Processor time of a database server and all its processes.
fn family(postgres: u32) -> f64 {
    let children = std::fs::read_to_string(format!("/proc/{postgres}/task/{postgres}/children"));
    let children = children.unwrap_or_default();
    let running = children
        .split_whitespace()
        .filter_map(|child| child.parse().ok());
    seconds(postgres, true) + running.map(|child| seconds(child, true)).sum::<f64>()
}

/// Times that the threads of a process have waited, summed over those that live.
fn switches(process: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    tasks
        .filter_map(|task| {
            let status = std::fs::read_to_string(task.path().join("status")).ok()?;
            let mut lines = status.lines();
            let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
            count.trim().parse::<u64>().ok()
        })
        .sum()
}

fn resident(process: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next());
    kibibytes
        .and_then(|text| text.parse::<f64>().ok())
        .unwrap_or_default()
        / 1024.0
}
