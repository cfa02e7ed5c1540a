//! Deaths at named places, for the crash drill. Debug builds only.
//!
//! `HOLDFAST_FAULTS=PLACE:N` kills the process, as SIGKILL does, when it passes
//! PLACE for the Nth time.

#[cfg(not(debug_assertions))]
pub(crate) fn pass(_: &str) {}

#[cfg(debug_assertions)]
pub(crate) use drill::pass;

#[cfg(debug_assertions)]
mod drill {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    struct Death {
        place: String,
        left: AtomicU32,
    }

    static DEATH: LazyLock<Option<Death>> = LazyLock::new(|| {
        let wanted = std::env::var("HOLDFAST_FAULTS").ok()?;
        let (place, count) = wanted.rsplit_once(':')?;
        Some(Death {
            place: place.to_owned(),
            left: AtomicU32::new(count.parse().ok()?),
        })
    });

    /// Dies here when this is the place and the time.
    pub(crate) fn pass(place: &str) {
        let Some(death) = DEATH.as_ref().filter(|death| death.place == place) else {
            return;
        };
        if death.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            let own = std::process::id().to_string();
            let _ = std::process::Command::new("kill")
                .args(["-9", &own])
                .status();
        }
    }
}
