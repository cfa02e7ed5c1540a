//! Disk errors: file names in messages, failing disks, and full disks.

use std::error::Error;
use std::fmt::Display;
use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

/// No space left on the device.
const ENOSPC: i32 = 28;
/// Disk quota exceeded.
const EDQUOT: i32 = 122;
/// Free bytes below which a disk counts as full and takes no uploads: enough for the database, for
/// the documents of requests in progress, and for the next start.
pub const LEAST: u64 = 256 * 1024 * 1024;

/// Reads an operator-supplied file; unlike the system's error, this one names the file.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    std::fs::read(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// Creates a folder, and missing parents, with access for this user only.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder)
}

/// Removes other users' access from a file that an older release or another umask left open.
pub fn make_private(path: &Path) -> io::Result<()> {
    // `symlink_metadata` does not follow a link, so the check below sees the link itself.
    let metadata = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        metadata => metadata?,
    };
    let mode = metadata.permissions().mode();

    // A symlink's target may be shared on purpose and is left alone.
    if metadata.is_symlink() || mode & 0o077 == 0 {
        return Ok(());
    }

    std::fs::set_permissions(path, Permissions::from_mode(mode & 0o700))
}

/// Aborts the process. After a failed write, later reports of the disk are unreliable: a sync may
/// succeed for bytes that were dropped (PostgreSQL panics in this case since 2018). The next start
/// reads the actual state.
pub fn failed(whose: &str, error: &dyn Display) -> ! {
    // Written directly, because the logger's thread would not run before the abort.
    let _ = writeln!(
        std::io::stderr(),
        "holdfast: the disk of {whose} failed, stopping at once: {error}"
    );
    std::process::abort()
}

/// Returns the error of a full disk.
pub fn no_room() -> std::io::Error {
    std::io::Error::from_raw_os_error(ENOSPC)
}

/// Refuses to use the reserve of a folder's disk.
///
/// # Errors
/// That of a full disk.
pub fn keep_reserve(folder: &Path) -> io::Result<()> {
    match free(folder) {
        Ok(free) if free < LEAST => Err(no_room()),
        // Writing reports any other problem of the disk.
        _ => Ok(()),
    }
}

/// Returns whether an error or one of its causes is a full disk.
pub fn is_full(error: &(dyn Error + 'static)) -> bool {
    // A library's error has no code of its own: the system's error is one of its causes.
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

/// Returns the free bytes available to this process on the disk of a folder.
pub fn free(folder: &Path) -> std::io::Result<u64> {
    let disk = rustix::fs::statvfs(folder)?;
    // `f_bavail` leaves out the blocks that only root may use, unlike `f_bfree`.
    Ok(disk.f_bavail * disk.f_frsize)
}
