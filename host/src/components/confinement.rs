//! What the process that compiles unknown bytes gives up before it looks at them.

use std::fs;

use rustix::process::{Resource, Rlimit, nice, setrlimit};
use serde::Serialize;

use super::settings::MIB;

/// What compiling may take: a component of 18 MB takes a tenth of it.
const MEMORY: u64 = 4096 * MIB as u64;
/// The parent watches the clock; should it be gone, this ends the child.
const CPU_SECONDS: u64 = 900;

/// What holds in a child.
#[derive(Debug, Serialize)]
pub struct Confinement {
    /// The kernel ends it before all other processes when memory runs out.
    ended_first: bool,
    /// Bytes that it may have, below the container's limit.
    memory: u64,
}

impl Confinement {
    /// Confines this process.
    pub fn enter() -> Self {
        // Requests go first.
        let _ = nice(19);
        let ended_first = fs::write("/proc/self/oom_score_adj", "1000").is_ok();
        let memory = memory_limit();
        let most = |value: u64| Rlimit {
            current: Some(value),
            maximum: Some(value),
        };
        for (resource, limit) in [
            (Resource::Data, memory),
            (Resource::Cpu, CPU_SECONDS),
            (Resource::Core, 0),
            // Its answer leaves through a pipe: it writes no files.
            (Resource::Fsize, 0),
        ] {
            let _ = setrlimit(resource, most(limit));
        }
        Self {
            ended_first,
            memory,
        }
    }
}

/// At most half of what the container may have, so that the kernel need not choose.
fn memory_limit() -> u64 {
    let limits = [
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ];
    limits
        .iter()
        .filter_map(|file| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok())
        .map(|limit| limit / 2)
        .fold(MEMORY, u64::min)
}
