//! Sandbox of the process that compiles unknown bytes. The process confines itself before it
//! reads them.

use std::collections::BTreeMap;
use std::fs;

use rustix::process::{Gid, Resource, Rlimit, Uid, nice, setrlimit};
use rustix::thread::{
    UnshareFlags, set_thread_groups, set_thread_res_gid, set_thread_res_uid, unshare_unsafe,
};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use serde::Serialize;

use super::settings::MIB;

/// Memory limit in bytes. A component of 18 MB takes a tenth of it.
pub(super) const MEMORY: u64 = 4096 * MIB as u64;
/// Limit of processor time in seconds. The parent enforces a timeout; this limit ends a child
/// that has lost its parent.
const CPU_SECONDS: u64 = 900;

/// Measures in force in a child.
#[derive(Debug, Serialize)]
pub struct ProcessConfinement {
    /// The OOM killer ends the child before any other process.
    ended_first: bool,
    /// Memory limit in bytes, below the container's limit.
    memory: u64,
    /// The child does not run as the superuser.
    own_user: bool,
    /// The child has separate namespaces: no network, no rights over other processes. Containers
    /// and some distributions do not allow this.
    own_namespaces: bool,
    /// A seccomp filter refuses the system calls that compiling does not need.
    filtered: bool,
}

/// Id of the unprivileged user and group that exist on every distribution.
const NOBODY: u32 = 65_534;

/// System calls that compiling needs: memory, threads, pipes and the clock. Others fail
/// with `EPERM`: the child cannot open files or sockets, start programs or send signals.
const ALLOWED: &[i64] = &[
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_fstat,
    libc::SYS_futex,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_prctl,
    libc::SYS_read,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_sigaltstack,
    libc::SYS_write,
    libc::SYS_writev,
];

impl ProcessConfinement {
    /// Confines this process.
    pub fn enter() -> Self {
        // Threads that serve requests run first.
        if !runs_when_idle() {
            let _ = nice(19);
        }

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
            // The result goes through a pipe, so the child needs to write no files.
            (Resource::Fsize, 0),
        ] {
            let _ = setrlimit(resource, most(limit));
        }

        // The filter comes last, because it refuses the calls of the other measures.
        let own_user = leave_superuser();
        let own_namespaces = own_namespaces();
        let filtered = filter().is_some_and(|filter| seccompiler::apply_filter(&filter).is_ok());
        Self {
            ended_first,
            memory,
            own_user,
            own_namespaces,
            filtered,
        }
    }
}

/// Switches to the idle scheduling policy. Any other runnable thread preempts an idle thread at
/// once; a thread that is merely nice keeps its processor for some milliseconds.
#[expect(unsafe_code, reason = "a system call that no safe wrapper has")]
fn runs_when_idle() -> bool {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters outlive the call, which only reads them.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) == 0 }
}

/// Changes to an unprivileged user if the server runs as the superuser.
fn leave_superuser() -> bool {
    if rustix::process::geteuid().is_root() {
        let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
        // These calls change one thread only, and the process has no other yet.
        let left = set_thread_groups(&[])
            .and_then(|()| set_thread_res_gid(group, group, group))
            .and_then(|()| set_thread_res_uid(user, user, user));
        return left.is_ok();
    }

    true
}

#[expect(unsafe_code, reason = "only unsharing the table of files is unsafe")]
fn own_namespaces() -> bool {
    let all = UnshareFlags::NEWUSER
        | UnshareFlags::NEWNET
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWNS;
    // SAFETY: no table of files is unshared.
    unsafe { unshare_unsafe(all) }.is_ok()
}

fn filter() -> Option<BpfProgram> {
    let allowed: BTreeMap<_, _> = ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let here = std::env::consts::ARCH.try_into().ok()?;
    let filter = SeccompFilter::new(allowed, refuse, SeccompAction::Allow, here).ok()?;
    filter.try_into().ok()
}

/// Abilities that a confined process still has, for tests and operators.
#[derive(Debug, Serialize)]
pub struct ConfinementReach {
    reads_files: bool,
    opens_sockets: bool,
    starts_programs: bool,
    signals_processes: bool,
}

impl ConfinementReach {
    /// Tries each ability.
    pub fn probe() -> Self {
        Self {
            reads_files: fs::read("/proc/self/status").is_ok(),
            opens_sockets: std::net::UdpSocket::bind("127.0.0.1:0").is_ok(),
            starts_programs: std::process::Command::new("/bin/true").status().is_ok(),
            signals_processes: rustix::process::test_kill_process(rustix::process::getpid())
                .is_ok(),
        }
    }
}

/// Returns the memory limit: at most half of the container's limit, so that the child reaches its
/// limit before the container does.
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
