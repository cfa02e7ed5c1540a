//! Threads for calls that take long: behind those that serve requests.

use std::io;
use std::sync::LazyLock;

use rustix::process::nice;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// What the threads give way by. On Linux each thread has a priority of its own.
const NICE: i32 = 10;

static THREADS: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
    Builder::new_current_thread()
        .thread_name("background")
        .on_thread_start(|| {
            // Without it they are as important as the others.
            let _ = nice(NICE);
        })
        .build()
});

/// Runs work on one of these threads.
pub(super) fn run<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    match &*THREADS {
        Ok(threads) => threads.spawn_blocking(work),
        Err(_) => tokio::task::spawn_blocking(work),
    }
}
