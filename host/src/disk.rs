//! Files named in errors, and failing and full disks.

use std::error::Error;
use std::fmt::Display;
use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

/// No space left on the device.
const ENOSPC: i32 = 28;
/// The quota is used up.
const EDQUOT: i32 = 122;
/// Free bytes below which a disk counts as full: enough for one large document and for
/// what a database needs to go on.
pub(crate) const LEAST: u64 = 64 * 1024 * 1024;

/// Reads a file that an operator named. The system's own error does not say which file it
/// is about.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    std::fs::read(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// Makes a folder for this user only; the folders above it, too, where they are missing.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder)
}

/// Takes the access of other users away from what an older release, or another umask, made.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    let metadata = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        metadata => metadata?,
    };
    let mode = metadata.permissions().mode();
    if metadata.is_symlink() || mode & 0o077 == 0 {
        return Ok(());
    }
    std::fs::set_permissions(path, Permissions::from_mode(mode & 0o700))
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

/// The error of a full disk.
pub(crate) fn no_room() -> std::io::Error {
    std::io::Error::from_raw_os_error(ENOSPC)
}

/// Whether an error, or what caused it, is a full disk.
pub(crate) fn is_full(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let code = error
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::raw_os_error);
        if matches!(code, Some(ENOSPC | EDQUOT)) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Bytes that this process may still write to the disk of a folder.
pub(crate) fn free(folder: &Path) -> std::io::Result<u64> {
    let disk = rustix::fs::statvfs(folder)?;
    Ok(disk.f_bavail * disk.f_frsize)
}
