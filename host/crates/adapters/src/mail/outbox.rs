//! Folder that takes messages as files while no server or provider is configured.

use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Writes a message to the folder. A repeat replaces its file.
pub async fn write(folder: &Path, name: String, bytes: Vec<u8>) -> std::io::Result<()> {
    let folder: PathBuf = folder.to_owned();
    let put = tokio::task::spawn_blocking(move || put(&folder, &name, &bytes));
    put.await.map_err(std::io::Error::other)?
}

/// Writes a file atomically, readable by the owner only. A repeated mail replaces its file.
fn put(folder: &Path, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    // Synced before the rename, or a crash could leave an empty mail under the final name.
    file.as_file().sync_all()?;
    file.persist(folder.join(name))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_outbox_has_one_private_file_for_each_mail() {
        let folder = tempfile::tempdir().unwrap();
        let outbox = folder.path().join("outbox");
        put(&outbox, "a.eml", b"first").unwrap();
        put(&outbox, "a.eml", b"again").unwrap();
        let files: Vec<_> = std::fs::read_dir(&outbox)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(files, ["a.eml"]);

        let file = outbox.join("a.eml");
        assert_eq!(std::fs::read(&file).unwrap(), b"again");

        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
