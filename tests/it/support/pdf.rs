//! Asking poppler what a PDF says.

use std::io::Write as _;
use std::process::Command;

/// The text of a PDF, as `pdftotext` reads it.
pub fn text(pdf: &[u8]) -> String {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(pdf).unwrap();
    let output = Command::new("pdftotext")
        .args(["-layout"])
        .arg(file.path())
        .arg("-")
        .output()
        .expect("pdftotext is missing: run `apt-get install poppler-utils`");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}
