//! Stored objects as files on disk.

use std::path::Path;

use super::TestApp;

impl TestApp {
    /// Returns the file path of every object in an area.
    pub fn objects(&self, area: &str) -> Vec<std::path::PathBuf> {
        files_below(&self.objects_folder().join(area))
    }

    /// Returns the folder that holds the objects.
    pub fn objects_folder(&self) -> std::path::PathBuf {
        let bucket = self.storage.as_ref();
        let bucket = bucket.and_then(|(url, _)| url.strip_prefix("s3://"));
        match bucket {
            Some(bucket) => Path::new(&std::env::var("TEST_S3_FOLDER").unwrap()).join(bucket),
            None => self.data.path().join("objects"),
        }
    }
}

/// Returns the files below a folder that have one of these texts, in any case. Compiled components are shared by all
/// tests, and mails that were sent have left; without a mail server, a folder has them. Another program reads the files:
/// SQLite loses its locks on a file that its own process opens and closes.
pub fn files_with(folder: &Path, texts: &[&str]) -> Vec<String> {
    let output = std::process::Command::new("grep")
        .env("LC_ALL", "C")
        .args([
            "-rlaiF",
            "--exclude-dir=native-code",
            "--exclude-dir=outbox",
        ])
        .args(texts.iter().flat_map(|text| ["-e", text]))
        .arg(folder)
        .output()
        .unwrap();
    let found = String::from_utf8(output.stdout).unwrap();
    found.lines().map(str::to_owned).collect()
}

pub fn files_below(folder: &Path) -> Vec<std::path::PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };

    entries
        .flat_map(|entry| {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files_below(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}
