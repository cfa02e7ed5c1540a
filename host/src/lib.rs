//! holdfast.
pub mod config;
pub mod components;
mod delivery;
pub mod domain;

#[cfg(test)]
fn test_folder() -> tempfile::TempDir {
    #[expect(clippy::expect_used, reason = "a test without a folder cannot run")]
    tempfile::tempdir().expect("a temporary folder")
}
