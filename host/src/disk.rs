//! Files named in errors, and what a failing disk means.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::path::Path;

/// Reads a file that an operator named. The system's own error does not say which file it
/// is about.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    std::fs::read(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

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
