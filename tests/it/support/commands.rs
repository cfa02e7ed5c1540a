//! The operator's tool.

use std::path::Path;

use serde_json::Value;

use super::{SETTINGS, TestApp};

impl TestApp {
    /// What `holdfast vault sweep` prints; nothing may be wrong.
    pub fn sweep(&self, more: &[&str]) -> Value {
        operator(self.data.path(), &[&["vault", "sweep"], more].concat())
    }
}

pub(super) fn operator_command(data: &Path, arguments: &[&str]) -> std::process::Command {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_holdfast"));
    let settings = data.join(SETTINGS);
    if settings.exists() {
        command.arg("--config").arg(settings);
    }
    command
        .env("HOLDFAST_DATA_DIR", data)
        .arg("--json")
        .args(arguments);
    command
}

/// What the operator's tool does.
pub fn operator_output(data: &Path, arguments: &[&str]) -> std::process::Output {
    operator_command(data, arguments).output().unwrap()
}

/// What the operator's tool prints.
pub fn operator(data: &Path, arguments: &[&str]) -> Value {
    printed(operator_output(data, arguments))
}

pub(super) fn printed(output: std::process::Output) -> Value {
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}
