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
