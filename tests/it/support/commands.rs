//! The operator's tool.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::authority::set_clock;
use super::{SETTINGS, TestApp};

impl TestApp {
    /// Runs `holdfast vault sweep`, which has to succeed, and returns its output.
    pub fn sweep(&self, more: &[&str]) -> Value {
        operator(self.data.path(), &[&["vault", "sweep"], more].concat())
    }

    /// Runs `holdfast mail bounced` on a message, which has to succeed, and returns its output.
    pub fn bounced(&self, message: &str) -> Value {
        let mut command = operator_command(self.data.path(), &["mail", "bounced"]);
        command
            .env("HOLDFAST_MAIL_BOUNCES", "bounces@mail.example")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, message.as_bytes()).unwrap();

        drop(input);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");

        serde_json::from_slice(&output.stdout).unwrap()
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

/// Runs the operator's tool. Bundles are also verified with `holdfast-verify`, which sees only
/// the bundle and has to report the same.
pub fn operator_output(data: &Path, arguments: &[&str]) -> std::process::Output {
    let output = operator_command(data, arguments).output().unwrap();
    if let ["verify", bundle, more @ ..] = arguments
        && Path::new(bundle).exists()
    {
        agrees(&output, &verifier_output(bundle, more));
    }
    output
}

/// Runs `holdfast-verify` on a bundle.
pub fn verifier_output(bundle: &str, more: &[&str]) -> std::process::Output {
    run_verifier(&["--json", bundle], more)
}

/// Like [`verifier_output`], with a clock that is ahead.
pub fn verifier_output_at(ahead: Duration, bundle: &str, more: &[&str]) -> std::process::Output {
    run_verifier_at(ahead, &["--json", bundle], more)
}

/// Runs `holdfast-verify` on a bundle, for its text for people.
pub fn verifier_text(bundle: &str, more: &[&str]) -> std::process::Output {
    run_verifier(&[bundle], more)
}

/// Runs `holdfast-verify` on the proofs of a pool.
pub fn pool_output(file: &str, more: &[&str]) -> std::process::Output {
    run_verifier(&["--json", "--pool", file], more)
}

/// Runs `holdfast-verify` on the JSON of a statement of control.
pub fn statement_output(file: &str, more: &[&str]) -> std::process::Output {
    run_verifier(&["--json", "--statement", file], more)
}

/// Runs `holdfast-verify` on an export of decisions.
pub fn decisions_output(file: &str, more: &[&str]) -> std::process::Output {
    run_verifier(&["--json", "--decisions", file], more)
}

fn run_verifier(arguments: &[&str], more: &[&str]) -> std::process::Output {
    run_verifier_at(Duration::ZERO, arguments, more)
}

fn run_verifier_at(ahead: Duration, arguments: &[&str], more: &[&str]) -> std::process::Output {
    let program = Path::new(env!("CARGO_BIN_EXE_holdfast")).with_file_name("holdfast-verify");
    let mut command = std::process::Command::new(&program);
    command.args(arguments).args(more).env_clear();
    set_clock(&mut command, ahead);
    let output = command.output();
    output.unwrap_or_else(|error| panic!("cargo build -p holdfast-verify: {program:?} {error}"))
}

fn agrees(operators: &std::process::Output, alone: &std::process::Output) {
    assert_eq!(alone.status.code(), operators.status.code(), "{alone:?}");
    let report = serde_json::from_slice::<Value>(&operators.stdout).unwrap();
    if let Some(error) = report["error"].as_str() {
        let said = String::from_utf8_lossy(&alone.stderr);
        assert_eq!(said.trim(), format!("error: {error}"));
        assert!(alone.stdout.is_empty());
    } else {
        let alone: Value = serde_json::from_slice(&alone.stdout).unwrap();
        assert_eq!(alone, report);
    }
}

/// Runs the operator's tool, which has to succeed, and returns its output.
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
