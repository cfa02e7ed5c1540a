//! Threads of low priority for long calls, so that request threads run first.

use std::io;
use std::sync::LazyLock;

use rustix::process::nice;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// Niceness of the threads. On Linux it is a property of each thread.
const NICE: i32 = 10;

static THREADS: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
    Builder::new_current_thread()
        .thread_name("background")
        .on_thread_start(|| {
            // On failure the threads keep the normal priority.
            let _ = nice(NICE);
        })
        .build()
});

/// Runs `work` on a background thread.
pub fn run<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    match &*THREADS {
        Ok(threads) => threads.spawn_blocking(work),
        Err(_) => tokio::task::spawn_blocking(work),
    }
}
