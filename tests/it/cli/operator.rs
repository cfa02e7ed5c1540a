//! The operator's commands, run as a program.

use std::path::Path;
use std::process::{Command, Output};

use holdfast::domain::organization::{Role, Scope};
use serde_json::Value;

use crate::support::{TestApp, operator as json, share_native_code};

pub fn holdfast(data: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_holdfast"))
        .env("HOLDFAST_DATA_DIR", data)
        .args(arguments)
        .output()
        .unwrap()
}

fn failure(data: &Path, arguments: &[&str]) -> String {
    let output = holdfast(data, arguments);
    assert!(!output.status.success(), "{arguments:?} should fail");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn the_help_of_keys_explains_every_scope() {
    let data = tempfile::tempdir().unwrap();
    for command in ["create", "update"] {
        let output = holdfast(data.path(), &["key", command, "--help"]);
        let help = String::from_utf8(output.stdout).unwrap();
        for scope in Scope::ALL {
            assert!(
                help.lines().any(|line| {
                    let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
                    words.starts_with(&format!("{scope} {}", scope.allows()))
                }),
                "{scope}: {help}"
            );
        }
    }
}

#[test]
fn the_help_of_tokens_and_users_explains_every_role() {
    let data = tempfile::tempdir().unwrap();
    for command in [["token", "issue"], ["user", "invite"], ["user", "role"]] {
        let arguments = [&command[..], &["--help"]].concat();
        let output = holdfast(data.path(), &arguments);
        let help = String::from_utf8(output.stdout).unwrap();
        let words: Vec<&str> = help.split_whitespace().collect();
        let words = words.join(" ");
        for role in Role::ALL {
            let explained = format!("{role} {}", role.allows());
            assert!(words.contains(&explained), "{role}: {help}");
        }
    }
}

#[test]
fn organizations_keys_and_tokens_are_managed_from_the_command_line() {
    let data = tempfile::tempdir().unwrap();
    let data = data.path();
    let org = json(data, &["org", "create", "--name", "Maple"]);
    let org_id = org["org_id"].as_str().unwrap();
    assert_eq!(org["auto_vault"], true);
    assert_eq!(
        json(data, &["org", "set", org_id, "envelope_ttl_days=7"])["envelope_ttl_days"],
        7
    );
    assert_eq!(json(data, &["org", "list"])[0]["envelope_ttl_days"], 7);

    let scopes = "envelopes:read,vault:read";
    let key = json(
        data,
        &["key", "create", "--org", org_id, "--scopes", scopes],
    );
    let key_id = key["key_id"].as_str().unwrap();
    assert_eq!(key["api_key"].as_str().unwrap().len(), 43);
    assert_eq!(key["rate_limit_rpm"], 100);

    let rotated = json(data, &["key", "rotate", key_id]);
    assert_ne!(rotated["api_key"], key["api_key"]);

    let updated = json(data, &["key", "update", key_id, "--rpm", "5"]);
    assert_eq!(updated["rate_limit_rpm"], 5);
    assert_eq!(updated["api_key"], Value::Null);
    assert_eq!(json(data, &["key", "deactivate", key_id])["active"], false);
    assert_eq!(
        json(data, &["key", "list", "--org", org_id])[0]["active"],
        false
    );

    let token = json(
        data,
        &[
            "token",
            "issue",
            "--org",
            org_id,
            "--email",
            "a@example.com",
            "--role",
            "admin",
        ],
    );
    assert_eq!(token["token"].as_str().unwrap().split('.').count(), 3);
}

#[test]
fn an_organization_is_created_with_its_owner() {
    let data = tempfile::tempdir().unwrap();
    let data = data.path();
    let owner = "owner@crescent.example";
    let create = ["org", "create", "--name", "Crescent", "--owner", owner];
    let created = json(data, &create);
    assert_eq!(created["owner"]["email"], owner);
    assert_eq!(created["owner"]["role"], "owner");

    let url = created["url"].as_str().unwrap();
    assert!(url.contains("/console/enter/"), "{url}");

    let org = created["org_id"].as_str().unwrap();
    let users = json(data, &["user", "list", "--org", org]);
    assert_eq!(users[0]["email"], owner);

    let shown = holdfast(data, &create);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (stdout, note) = (text(shown.stdout), text(shown.stderr));
    assert!(stdout.starts_with("org_") && stdout.lines().count() == 1);
    assert!(
        note.contains(&format!("{owner} signs in with this link once: http")),
        "{note}"
    );

    let wrong = ["org", "create", "--name", "Crescent", "--owner", "owner"];
    assert!(failure(data, &wrong).contains("not an e-mail address"));

    let list = json(data, &["org", "list"]);
    assert_eq!(list.as_array().unwrap().len(), 2);
}

#[test]
fn a_mistyped_command_argument_lists_the_known_values() {
    let data = tempfile::tempdir().unwrap();
    let data = data.path();
    let org = json(data, &["org", "create", "--name", "Maple"]);
    let org_id = org["org_id"].as_str().unwrap();
    let scope = failure(
        data,
        &[
            "key",
            "create",
            "--org",
            org_id,
            "--scopes",
            "envelopes:reed",
        ],
    );
    assert!(scope.contains("envelopes:read, envelopes:write"), "{scope}");

    let setting = failure(data, &["org", "set", org_id, "auto_vualt=1"]);
    assert!(setting.contains("auto_vault"), "{setting}");

    let role = failure(
        data,
        &[
            "token", "issue", "--org", org_id, "--email", "a@b.c", "--role", "king",
        ],
    );
    assert!(role.contains("owner, admin, sender, compliance"), "{role}");

    let nobody = holdfast::domain::id::OrgId::new().to_string();
    let missing = failure(
        data,
        &["key", "create", "--org", &nobody, "--scopes", "vault:read"],
    );
    assert!(missing.contains(&nobody), "{missing}");
}

#[test]
fn the_brand_of_an_organization_is_set_and_cleared_from_the_command_line() {
    let data = tempfile::tempdir().unwrap();
    let data = data.path();
    let org = json(data, &["org", "create", "--name", "Maple"]);
    let org_id = org["org_id"].as_str().unwrap();
    let brand = |more: &[&str]| json(data, &[&["org", "brand", org_id], more].concat());
    let wrong = |more: &[&str]| failure(data, &[&["org", "brand", org_id], more].concat());
    let file = |name: &str, bytes: &[u8]| {
        let path = data.join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let logo = file("logo.png", b"\x89PNG\r\n\x1a\n and a picture");

    let branded = brand(&[
        "--name",
        "Maple Motors",
        "--color",
        "#FFD000",
        "--logo",
        &logo,
    ]);
    assert_eq!(branded["org_id"], org_id);

    let shown = serde_json::json!({
        "name": "Maple Motors", "color": "#ffd000", "logo": { "bytes": 22, "type": "image/png" },
    });
    assert_eq!(branded["brand"], shown);
    assert_eq!(json(data, &["org", "list"])[0]["brand"], shown);

    let renamed = brand(&["--name", "Maple"]);
    assert_eq!(renamed["brand"]["name"], "Maple");
    assert_eq!(
        renamed["brand"]["color"], "#ffd000",
        "what is not named stays"
    );

    let set = json(data, &["org", "set", org_id, "auto_vault=false"]);
    assert_eq!(set["brand"]["logo"], shown["logo"], "and is not lost");

    let red = wrong(&["--color", "red"]);
    assert!(red.contains("write it as #rrggbb"), "{red}");

    let drawing = file("logo.svg", b"<svg/>");
    let drawing = wrong(&["--logo", &drawing]);
    assert!(
        drawing.contains("logo.svg: a logo is a PNG or a JPEG"),
        "{drawing}"
    );

    let large = file("large.jpg", &[0xff; 64 * 1024 + 1]);
    let large = wrong(&["--logo", &large]);
    assert!(large.contains("at most 65536 bytes"), "{large}");

    let missing = wrong(&["--logo", "nowhere.png"]);
    assert!(missing.contains("nowhere.png"), "{missing}");

    let empty = wrong(&["--name", " "]);
    assert!(empty.contains("a name is one line"), "{empty}");
    assert!(wrong(&[]).contains("--name"), "nothing to change");
    assert!(wrong(&["--clear", "--name", "Oak"]).contains("--clear"));

    let nobody = holdfast::domain::id::OrgId::new().to_string();
    let nobody = failure(data, &["org", "brand", &nobody, "--clear"]);
    assert!(nobody.contains("there is no organization"), "{nobody}");

    let cleared = brand(&["--clear"]);
    let nothing = serde_json::json!({ "name": null, "color": null, "logo": null });
    assert_eq!(cleared["brand"], nothing);
}

#[test]
fn an_unknown_setting_stops_every_command_and_is_named() {
    let data = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_holdfast"))
        .env("HOLDFAST_DATA_DIR", data.path())
        .env("HOLDFAST_LISTNE", "x")
        .args(["org", "list"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("listne"));
}

#[test]
fn doctor_checks_every_dependency() {
    let data = tempfile::tempdir().unwrap();
    share_native_code(data.path());
    let checks = json(data.path(), &["doctor"]);
    for name in [
        "database",
        "storage",
        "disk",
        "mail",
        "seal",
        "ledger",
        "witnesses",
        "components",
        "providers",
        "holds",
        "backups",
    ] {
        let check = checks
            .as_array()
            .unwrap()
            .iter()
            .find(|check| check["name"] == name)
            .unwrap();
        assert_eq!(check["ok"], true, "{check}");
    }
}

#[test]
fn doctor_names_missing_provider_settings() {
    let data = tempfile::tempdir().unwrap();
    share_native_code(data.path());
    let file = data.path().join("holdfast.toml");
    let doctor = |settings: &str| {
        std::fs::write(&file, settings).unwrap();
        let arguments = ["--config", file.to_str().unwrap(), "doctor"];
        let output = crate::support::operator_output(data.path(), &arguments);
        let checks: Value = serde_json::from_slice(&output.stdout).unwrap();
        let checks = checks.as_array().unwrap();
        let check = checks.iter().find(|check| check["name"] == "providers");
        check.unwrap()["detail"].as_str().unwrap().to_owned()
    };

    let payment = "[providers.payment.main]\nbase_url = \"https://api.stripe.com\"\n";
    let kba = "[providers.kba.main]\nbase_url = \"https://production.methodfi.com\"\n";
    let secrets = "secrets = { secret_key = \"sk\", webhook_secret = \"whsec\" }\n";
    assert_eq!(
        doctor(""),
        "signing: embedded; payment: embedded; kba: embedded; messaging: embedded; conversion: none"
    );
    assert_eq!(
        doctor(payment),
        "payment provider main has no secret secret_key"
    );
    assert_eq!(
        doctor(&format!("{payment}{secrets}")),
        "payment provider main has no publishable_key"
    );

    assert_eq!(doctor(kba), "kba provider main has no secret secret_key");
    let far_end = answering();
    let payment = format!("[providers.payment.main]\nbase_url = \"{far_end}\"\n");
    let kba = format!("[providers.kba.main]\nbase_url = \"{far_end}\"\n");
    let insecure = "[providers]\nallow_insecure = true\n";
    let all = format!("{insecure}{payment}publishable_key = \"pk\"\n{secrets}{kba}{secrets}");
    assert_eq!(
        doctor(&all),
        "signing: embedded; payment: embedded, main; kba: embedded, main; messaging: embedded; conversion: none"
    );
}

/// Starts a server that responds 404 to every request.
fn answering() -> String {
    use std::io::{Read as _, Write as _};

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(
                b"HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
            );

            // Closing a socket with unread bytes would reset it, and the response would be lost.
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        }
    });

    url
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_accepts_a_released_bundle_and_refuses_every_changed_one() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let bundle = app.released_bundle(&id).await;
    let ledger = std::fs::read(bundle.path().join("custody-ledger.json")).unwrap();
    let ledger: Value = serde_json::from_slice(&ledger).unwrap();

    let nothing = tempfile::tempdir().unwrap();
    let folder = bundle.path().to_str().unwrap().to_owned();
    let key = app.ledger_key().await;
    let report = crate::support::operator(nothing.path(), &["verify", &folder, "--key", &key]);
    assert_eq!(report["verdict"], "VALID", "{report}");
    assert_eq!(report["envelope_id"], id.as_str());

    for (file, check) in [
        ("authoritative.pdf", "document"),
        ("certified-vaulted-copy.pdf", "copy"),
        ("ucc-compliance-certificate.json", "certificate"),
        ("vault-custody-record.pdf", "custody record"),
    ] {
        let path = bundle.path().join(file);
        let original = std::fs::read(&path).unwrap();
        let mut changed = original.clone();
        let middle = changed.len() / 2;
        changed[middle] ^= 1;
        std::fs::write(&path, changed).unwrap();
        expect_failure(&folder, check);

        std::fs::write(&path, original).unwrap();
    }

    let mut edited = ledger.clone();
    edited["entries"][1]["actor"] = "somebody else".into();
    std::fs::write(
        bundle.path().join("custody-ledger.json"),
        edited.to_string(),
    )
    .unwrap();

    expect_failure(&folder, "ledger");
    let mut shortened = ledger.clone();
    shortened["entries"].as_array_mut().unwrap().remove(2);
    std::fs::write(
        bundle.path().join("custody-ledger.json"),
        shortened.to_string(),
    )
    .unwrap();

    expect_failure(&folder, "ledger");

    // Without its last entries the chain is still valid.
    let mut cut = ledger.clone();
    let released = |entry: &Value| entry["action"] == "vault.released";
    let entries = cut["entries"].as_array_mut().unwrap();
    let at = entries.iter().position(released).unwrap();
    entries.truncate(at);
    let inclusion = cut["log"]["inclusion"].as_array_mut().unwrap();
    inclusion.truncate(at);

    let path = bundle.path().join("custody-ledger.json");
    std::fs::write(&path, cut.to_string()).unwrap();
    expect_failure(&folder, "history");
    let mut forked = ledger.clone();
    forked["log"]["certified"] = Value::Null;
    std::fs::write(&path, forked.to_string()).unwrap();
    expect_failure(&folder, "certified head");

    let mut unproved = ledger.clone();
    unproved["log"]["inclusion"][1]["proof"][0] = "0".repeat(64).into();
    std::fs::write(&path, unproved.to_string()).unwrap();
    expect_failure(&folder, "log");

    std::fs::remove_file(bundle.path().join("authoritative.pdf")).unwrap();
    let missing = failure(nothing.path(), &["verify", &folder]);
    assert!(missing.contains("authoritative.pdf"), "{missing}");
}

#[track_caller]
fn expect_failure(folder: &str, check: &str) {
    let nothing = tempfile::tempdir().unwrap();
    let output = crate::support::operator_output(nothing.path(), &["verify", folder]);
    assert!(!output.status.success(), "{check}");

    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["verdict"], "NOT VALID", "{report}");

    let findings = report["checks"].as_array().unwrap();
    let finding = findings
        .iter()
        .find(|finding| finding["check"] == check)
        .unwrap();
    assert_eq!(finding["ok"], false, "{report}");
}

/// A reader such as `head` ends before the command has printed all.
#[test]
fn a_reader_that_ends_early_is_no_failure() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = Command::new(env!("CARGO_BIN_EXE_holdfast"))
        .arg("settings")
        .stdout(writer)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}
