//! `holdfast import`, as a program beside a server that is killed.

use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::process::{ServerHome, ServerProcess, this_program};
use crate::support::{pdf, share_native_code};

/// Documents of the folder.
const DOCUMENTS: usize = 6;

/// Each document has one record and one result, wherever the server was killed.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_imported_once_through_kills_of_the_server() {
    let data = tempfile::tempdir().unwrap();
    share_native_code(data.path());
    let home = ServerHome::of(data.path());
    let key = home.key(&home.organization("Oak"), "envelopes:read,envelopes:write");

    let folder = tempfile::tempdir().unwrap();
    for number in 0..DOCUMENTS {
        let file = pdf::with_lines(&[format!("Contract {number}").as_str()]);
        std::fs::write(folder.path().join(format!("{number}.pdf")), file).unwrap();
    }

    // The server has the same address after each restart.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let address = free.unwrap().to_string();
    let start = |faults: Option<&str>| {
        let mut variables = vec![("HOLDFAST_LISTEN", address.as_str())];
        variables.extend(faults.map(|faults| ("HOLDFAST_FAULTS", faults)));
        ServerProcess::start(&home, &[], &variables).unwrap()
    };
    let mut server = start(Some("import row:2"));
    let child = Command::new(this_program())
        .args(["--json", "import", folder.path().to_str().unwrap()])
        .args(["--customer-name", "Archive"])
        .args(["--customer-email", "archive@example.com"])
        .env("HOLDFAST_URL", format!("http://{address}"))
        .env("HOLDFAST_API_KEY", &key)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();

    // Behind the commit of a row, and before one.
    for next in [Some("import record:2"), None] {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !server.is_dead() {
            assert!(
                Instant::now() < deadline,
                "the server did not reach its fault"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        server = start(next);
    }

    let output = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap());
    let output = output.await.unwrap();
    assert!(output.status.success(), "{output:?}");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["imports"][0]["status"], "completed", "{said}");
    assert_eq!(said["imports"][0]["imported"], DOCUMENTS, "{said}");
    assert_eq!(said["problems"], serde_json::json!([]));
    server.kill();

    let store = home.store().await;
    let mut connection = store.read().await.unwrap();
    for table in ["envelope", "record_import_row"] {
        let text = sqlx::AssertSqlSafe(format!("select count(*) from {table}"));
        let count: i64 = sqlx::query_scalar(text)
            .fetch_one(&mut *connection)
            .await
            .unwrap();
        assert_eq!(count, DOCUMENTS as i64, "{table}");
    }
}
