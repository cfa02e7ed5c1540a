//! When a disk fails.

use std::fmt::Display;
use std::io::Write as _;

/// Stops the process at once. What a disk says after it failed to write cannot be
/// believed: a later sync may report success for bytes that were dropped
/// (PostgreSQL stops itself in this case, since 2018). The next start reads what
/// is really there.
pub(crate) fn failed(whose: &str, error: &dyn Display) -> ! {
    // The log is written by a thread of its own, which would not get to it.
    let _ = writeln!(
        std::io::stderr(),
        "holdfast: the disk of {whose} failed, stopping at once: {error}"
    );
    std::process::abort()
}
