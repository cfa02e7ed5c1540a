//! Exposure of a server: metrics, logs, and files that other users of the machine could read.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use regex::Regex;
use serde_json::Value;

use crate::support::process::{ServerHome, ServerProcess, this_program};
use crate::support::{TestApp, files_below, operator, release_form, share_native_code};

/// Metrics name routes, components and queues, so they must not be public.
#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_served_on_loopback_or_a_dedicated_listener_only() {
    let app = TestApp::start().await;
    let from = |peer: &str| {
        let peer: std::net::SocketAddr = peer.parse().unwrap();
        let mut request = Request::get("/metrics").body(Body::empty()).unwrap();
        request.extensions_mut().insert(ConnectInfo(peer));
        request
    };
    for here in ["127.0.0.1:4711", "[::1]:4711", "[::ffff:127.0.0.1]:4711"] {
        assert_eq!(app.send(from(here)).await.status, 200, "{here}");
    }

    for elsewhere in ["10.0.0.7:4711", "[2001:db8::1]:4711"] {
        let refused = app.send(from(elsewhere)).await;
        assert_eq!(refused.error(404), "Not found", "{elsewhere}");
    }

    for header in ["x-forwarded-for", "forwarded", "x-real-ip"] {
        let mut passed_on = from("127.0.0.1:4711");
        let value = "203.0.113.7".parse().unwrap();
        passed_on.headers_mut().insert(header, value);
        assert_eq!(app.send(passed_on).await.status, 404, "{header}");
    }

    let own = app
        .another_node(|config| config.metrics_listen = Some(([127, 0, 0, 1], 0).into()))
        .await;
    assert_eq!(own.send(from("127.0.0.1:4711")).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_served_at_the_configured_address() {
    let data = tempfile::tempdir().unwrap();
    share_native_code(data.path());
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let home = ServerHome {
        program: this_program(),
        data: data.path().to_owned(),
        database: None,
        settings: vec![("HOLDFAST_METRICS_LISTEN".into(), address.clone())],
    };
    let server = ServerProcess::start(&home, &[], &[]).unwrap();

    let _ = rustls::crypto::ring::default_provider().install_default();
    let metrics = reqwest::get(format!("http://{address}/metrics"))
        .await
        .unwrap();
    assert_eq!(metrics.status(), 200);
    assert!(metrics.text().await.unwrap().contains("holdfast_"));

    let elsewhere = reqwest::get(format!("http://{address}/healthz"))
        .await
        .unwrap();
    assert_eq!(elsewhere.status(), 404, "metrics and nothing else");

    let main = reqwest::get(format!("{}/metrics", server.url))
        .await
        .unwrap();
    assert_eq!(main.status(), 404);
}

/// Limits are counted in memory: a second server would give each key twice its requests.
#[tokio::test(flavor = "multi_thread")]
async fn one_sqlite_database_has_one_server() {
    let data = tempfile::tempdir().unwrap();
    share_native_code(data.path());
    let home = ServerHome::of(data.path());
    let server = ServerProcess::start(&home, &[], &[]).unwrap();

    let second = home
        .command(&home.program)
        .env("HOLDFAST_LISTEN", "127.0.0.1:0")
        .arg("serve")
        .output();
    let said = String::from_utf8(second.unwrap().stderr).unwrap();
    assert!(
        said.lines()
            .last()
            .unwrap()
            .contains("another holdfast server uses the database"),
        "{said}"
    );

    // A kill leaves no lock behind.
    server.kill();
    assert!(ServerProcess::start(&home, &[], &[]).is_some());
}

#[test]
fn a_damaged_database_ends_the_start_with_its_cause() {
    let data = tempfile::tempdir().unwrap();
    std::fs::write(data.path().join("holdfast.db"), "no database ".repeat(500)).unwrap();
    let home = ServerHome::of(data.path());
    let ended = home
        .command(&home.program)
        .env("HOLDFAST_LISTEN", "127.0.0.1:0")
        .arg("serve")
        .output()
        .unwrap();
    assert!(!ended.status.success());

    let said = String::from_utf8(ended.stderr).unwrap();
    let last = said.lines().last().unwrap();
    assert!(
        last.contains("holdfast.db") && last.contains("not a database"),
        "{said}"
    );
}

/// The log contains the id of the key or token of each request.
#[tokio::test(flavor = "multi_thread")]
async fn each_request_is_logged_with_the_id_of_its_key_or_token() {
    let data = tempfile::tempdir().unwrap();
    share_native_code(data.path());
    let home = ServerHome::of(data.path());
    let org = home.organization("Maple");
    let org = org.as_str();
    let create = ["key", "create", "--org", org, "--scopes", "envelopes:read"];
    let (_, key) = home.operator("0s", &create);

    let issue = ["token", "issue", "--org", org, "--email", "jo@example.com"];
    let (_, token) = home.operator("0s", &[&issue[..], &["--role", "admin"]].concat());
    let server = ServerProcess::start(&home, &[], &[]).unwrap();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::new();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let (api_key, bearer) = (text(&key["api_key"]), text(&token["token"]));

    let api = format!("{}/api/v2", server.url);
    let by_key = client.get(format!("{api}/partner/envelopes"));
    let by_key = by_key.header("x-api-key", &api_key).send().await.unwrap();
    assert_eq!(by_key.status(), 200);

    let by_token = client.get(format!("{api}/templates")).bearer_auth(&bearer);
    assert_eq!(by_token.send().await.unwrap().status(), 200);

    for id in [text(&key["key_id"]), text(&token["token_id"])] {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !server.has_said(&id) {
            assert!(Instant::now() < deadline, "{id} is not in the log");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    assert!(!server.has_said(&api_key) && !server.has_said(&bearer));
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Holds for any umask, and for folders that an older release created.
#[tokio::test(flavor = "multi_thread")]
async fn data_files_are_readable_by_the_server_user_only() {
    let data = tempfile::tempdir().unwrap();
    share_native_code(data.path());

    // Folders with the permissions that an older release gave them.
    for folder in ["objects", "outbox"] {
        std::fs::create_dir(data.path().join(folder)).unwrap();
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(data.path().join(folder), open).unwrap();
    }

    let home = ServerHome::of(data.path());
    let server = ServerProcess::start(&home, &["sh", "-c", "umask 0022; exec \"$@\"", "sh"], &[]);
    let server = server.unwrap();

    for folder in ["objects", "outbox", "keys", "keys/seal"] {
        assert_eq!(mode(&data.path().join(folder)), 0o700, "{folder}");
    }

    for file in [
        "holdfast.db",
        "holdfast.db-wal",
        "keys/log.key",
        "keys/seal/key.pem",
    ] {
        assert_eq!(mode(&data.path().join(file)), 0o600, "{file}");
    }

    for object in files_below(&data.path().join("objects")) {
        assert_eq!(mode(&object), 0o600, "{}", object.display());
    }

    server.kill();
}

/// The authority's key signs once and is discarded, so a thief of the folder cannot issue
/// further certificates.
#[tokio::test(flavor = "multi_thread")]
async fn the_sealing_authoritys_key_is_not_stored() {
    let app = TestApp::start().await;
    let seal = app.data.path().join("keys/seal");
    let kept = |name: &str| seal.join(name).exists();
    assert!(kept("key.pem") && kept("certificates.pem"));
    assert!(!kept("authority-key.pem"));

    // Older releases stored the key.
    std::fs::write(seal.join("authority-key.pem"), "a key").unwrap();
    let data = app.data.path().to_owned();
    app.another_node(|config| config.data_dir = data).await;
    assert!(!kept("authority-key.pem"));
}

/// Collects the texts with a storage path, each with the name of its member.
fn storage_paths(pattern: &Regex, name: &str, value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::String(text) if pattern.is_match(text) => {
            found.push((name.to_owned(), text.clone()));
        }
        Value::Array(items) => {
            for item in items {
                storage_paths(pattern, name, item, found);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                storage_paths(pattern, name, member, found);
            }
        }
        _ => {}
    }
}

/// "Vault storage paths are never included in any partner response, error bodies included." The specification demands
/// one reference: `path` of the event `vault.stored`.
#[tokio::test(flavor = "multi_thread")]
async fn no_answer_event_or_bundle_names_a_storage_path() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let folder = regex::escape(app.data.path().to_str().unwrap());
    let pattern = format!(
        r"\b(vault|copies|certificates|uploads|records|signed):\w+/|\bobjects/|s3://|{folder}"
    );
    let (pattern, mut found) = (Regex::new(&pattern).unwrap(), Vec::new());

    let partner = format!("/partner/envelopes/{id}");
    for path in [
        partner.clone(),
        format!("{partner}/status"),
        format!("{partner}/signers"),
        format!("{partner}/custody"),
        format!("{partner}/compliance"),
        format!("{partner}/vault/certificate"),
        format!("{partner}/vault/signed-url"),
        format!("{partner}/vault/copy/signed-url"),
        "/partner/events?limit=100".to_owned(),
        "/partner/control/records?part=originator".to_owned(),
    ] {
        let answer = app.get(&path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        storage_paths(&pattern, &path, &answer.json(), &mut found);
    }

    for path in ["/envelopes", "/audit-log", "/request-log"] {
        let answer = app.get_with_bearer(app.web_admin(), path).await;
        storage_paths(&pattern, path, &answer.json(), &mut found);
    }

    // The operator's tool does not wait for the next block.
    let decisions = app.data.path().join("decisions.jsonl");
    let (org, file) = (app.org.as_str(), decisions.to_str().unwrap());
    operator(
        app.data.path(),
        &["decisions", "export", "--org", org, file],
    );
    let decisions = std::fs::read_to_string(file).unwrap();
    assert!(decisions.contains("vault_file_path"), "{decisions}");
    for line in decisions.lines() {
        let decision = serde_json::from_str(line).unwrap();
        storage_paths(&pattern, "decisions", &decision, &mut found);
    }

    let released = app.vaulted_envelope().await;
    let release = format!("/partner/envelopes/{released}/vault-out");
    app.post(&release, release_form()).await.data(200);
    let bundle = format!("/envelopes/{released}/bundle");
    let bundle = app.get_with_bearer(app.web_admin(), &bundle).await;
    let mut bundle = zip::ZipArchive::new(std::io::Cursor::new(bundle.bytes)).unwrap();
    for index in 0..bundle.len() {
        let member = bundle.by_index(index).unwrap();
        let name = member.name().to_owned();
        if name.ends_with(".json") {
            let content = serde_json::from_reader(member).unwrap();
            storage_paths(&pattern, &name, &content, &mut found);
        }
    }

    // The error of a file that was changed has none either.
    let link = app
        .get(&format!("{partner}/vault/signed-url"))
        .await
        .data(200);
    let objects = app.objects("vault").into_iter();
    let mut own = objects.filter(|path| path.to_string_lossy().contains(&id));
    let object = own.next().unwrap();
    let mut bytes = std::fs::read(&object).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::remove_file(&object).unwrap();
    std::fs::write(&object, bytes).unwrap();
    let refused = app.get(link["signed_url"].as_str().unwrap()).await;
    assert_eq!(refused.status, 409);
    storage_paths(&pattern, "error", &refused.json(), &mut found);

    // The event itself, and its entry in the ledger.
    let demanded = ("path".to_owned(), format!("vault:{id}/authoritative"));
    assert!(found.contains(&demanded), "{found:?}");
    found.retain(|one| *one != demanded);
    assert!(found.is_empty(), "{found:?}");
}
