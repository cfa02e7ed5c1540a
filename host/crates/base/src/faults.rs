//! Fault injection for the crash tests, in debug builds only.
//!
//! `HOLDFAST_FAULTS=PLACE:N` kills the process like SIGKILL when it passes PLACE for the Nth time;
//! `PLACE:N:STOP` suspends it there until SIGCONT.

#[cfg(not(debug_assertions))]
pub fn pass(_: &str) {}

#[cfg(debug_assertions)]
pub use drill::pass;

#[cfg(debug_assertions)]
mod drill {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    struct InjectedFault {
        place: String,
        left: AtomicU32,
        signal: &'static str,
    }

    static DEATH: LazyLock<Option<InjectedFault>> = LazyLock::new(|| {
        let wanted = std::env::var("HOLDFAST_FAULTS").ok()?;
        let mut parts = wanted.split(':');
        let (place, count) = (parts.next()?.to_owned(), parts.next()?);
        Some(InjectedFault {
            place,
            left: AtomicU32::new(count.parse().ok()?),
            signal: match parts.next() {
                Some("STOP") => "-STOP",
                _ => "-9",
            },
        })
    });

    /// Kills or suspends the process if the configured place is passed for the configured time.
    pub fn pass(place: &str) {
        let Some(death) = DEATH.as_ref().filter(|death| death.place == place) else {
            return;
        };

        // Only the Nth pass is hit: after SIGCONT, the process passes the same place again.
        if death.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            let own = std::process::id().to_string();
            // SIGKILL from outside lets no destructor run, as when the machine loses power.
            let _ = std::process::Command::new("kill")
                .args([death.signal, &own])
                .status();
        }
    }
}
