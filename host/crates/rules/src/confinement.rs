//! What the process that compiles unknown bytes gives up before it looks at them.

use std::collections::BTreeMap;
use std::fs;

use rustix::process::{Gid, Resource, Rlimit, Uid, nice, setrlimit};
use rustix::thread::{
    UnshareFlags, set_thread_groups, set_thread_res_gid, set_thread_res_uid, unshare_unsafe,
};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use serde::Serialize;

use super::settings::MIB;

/// What compiling may take: a component of 18 MB takes a tenth of it.
const MEMORY: u64 = 4096 * MIB as u64;
/// The parent watches the clock; should it be gone, this ends the child.
const CPU_SECONDS: u64 = 900;

/// Measures in force in a child.
#[derive(Debug, Serialize)]
pub struct Confinement {
    /// The kernel ends it before all other processes when memory runs out.
    ended_first: bool,
    /// Bytes that it may have, below the container's limit.
    memory: u64,
    /// It is not the superuser.
    own_user: bool,
    /// It has namespaces of its own: no network, no rights over other processes. Containers
    /// and some distributions do not allow it.
    own_namespaces: bool,
    /// Every system call that compiling does not need fails.
    filtered: bool,
}

/// `nobody`, on every distribution.
const NOBODY: u32 = 65_534;

/// System calls that compiling needs: memory, threads, its pipes and the clock. Others fail
/// with `EPERM`: no file or socket is opened, no program started, no process signalled.
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

impl Confinement {
    /// Confines this process.
    pub fn enter() -> Self {
        // Requests go first.
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
            // Its answer leaves through a pipe: it writes no files.
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

/// Leaves each processor at once to any other thread that can run, which a thread of low
/// priority does only some milliseconds later.
#[expect(unsafe_code, reason = "a system call that no safe wrapper has")]
fn runs_when_idle() -> bool {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters outlive the call, which only reads them.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) == 0 }
}

/// Becomes `nobody` where the server runs as the superuser.
fn leave_superuser() -> bool {
    if rustix::process::geteuid().is_root() {
        let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
        // The process has one thread.
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

/// What a confined process still can do; for tests and for an operator who looks.
#[derive(Debug, Serialize)]
pub struct Reach {
    reads_files: bool,
    opens_sockets: bool,
    starts_programs: bool,
    signals_processes: bool,
}

impl Reach {
    /// Tries each.
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
