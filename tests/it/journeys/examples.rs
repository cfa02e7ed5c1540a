//! Runs the example programs like a partner, with a simulated signer.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use crate::sdk::{PythonSdk, TypeScriptSdk, target};
use crate::support::{TestApp, form, operator_output};

const CONTRACT_FILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../tests/fixtures/retail-installment-contract.pdf"
);

/// Runs a program, signs at the link that it prints, and verifies the bundle that it saves with
/// the key that it prints.
async fn ends_with_a_valid_bundle(mut program: Command) {
    let app = TestApp::on_a_socket().await;
    let folder = tempfile::tempdir().unwrap();
    let mut running = program
        .arg(CONTRACT_FILE)
        .current_dir(folder.path())
        .env("HOLDFAST_URL", app.url())
        .env("HOLDFAST_API_KEY", &app.key)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();

    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
    let mut printed = Vec::new();
    let walk = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if let Some(link) = line.strip_prefix("sign at ") {
                form::sign(&app, link).await;
            }
            printed.push(line);
        }

        running.wait().await.unwrap()
    };

    let status = tokio::time::timeout(Duration::from_secs(120), walk).await;
    assert!(status.unwrap().success(), "{printed:?}");
    assert_eq!(printed[1], "compliance score 100");

    let key = printed[2].strip_prefix("log key ").unwrap().to_owned();
    let bundle = folder.path().join("bundle.zip");
    let arguments = ["verify", bundle.to_str().unwrap(), "--key", &key];
    let verified = operator_output(folder.path(), &arguments);
    let report: serde_json::Value = serde_json::from_slice(&verified.stdout).unwrap();
    assert_eq!(report["verdict"], "VALID", "{report:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_curl_example_ends_with_a_valid_bundle() {
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../examples/curl/first-contract.sh"
    );
    ends_with_a_valid_bundle(Command::new(script)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_example_ends_with_a_valid_bundle() {
    let sdk = PythonSdk::generated();
    let mut python = Command::from(sdk.python());
    python.arg(sdk.folder().join("examples/first_contract.py"));
    ends_with_a_valid_bundle(python).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_typescript_example_ends_with_a_valid_bundle() {
    let sdk = TypeScriptSdk::built();
    let tsx = target().join("tsx/node_modules/tsx/dist/cli.mjs");
    assert!(tsx.exists(), "tsx is missing: run `tests/set-up test`");
    let mut node = Command::new("node");
    node.arg(tsx)
        .arg(sdk.folder().join("examples/first-contract.mts"));
    ends_with_a_valid_bundle(node).await;
}
