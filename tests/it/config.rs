//! Invalid settings stop the program at start, with an error that names the key as written.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::cli::operator::holdfast;
use crate::support::{operator, share_native_code};

/// Runs the program with these environment variables.
fn run(data: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_holdfast"))
        .env("HOLDFAST_DATA_DIR", data)
        .env("HOLDFAST_LISTEN", "127.0.0.1:0")
        .envs(variables.iter().copied())
        .args(arguments)
        .output()
        .unwrap()
}

/// Runs `serve`, which has to refuse to start, and returns its error output.
fn refusal(data: &Path, variables: &[(&str, &str)], settings: &str) -> String {
    let file = data.join("holdfast.toml");
    std::fs::write(&file, settings).unwrap();
    let output = run(
        data,
        variables,
        &["--config", file.to_str().unwrap(), "serve"],
    );
    assert!(!output.status.success(), "{variables:?} {settings}");

    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn invalid_settings_are_refused_at_start() {
    let data = tempfile::tempdir().unwrap();
    for (settings, key) in [
        ("public_url = 'ftp://sign.example'", "public_url"),
        ("public_url = 'https://sign.example/?a=b'", "public_url"),
        ("embed_url = 'file:///tmp'", "embed_url"),
        ("signing_url = 'mailto:a@b.example'", "signing_url"),
        ("database_url = 'mysql://db.example/x'", "database_url"),
        ("[log]\nfilter = 'loud'", "log.filter"),
        ("[log]\nfilter = 'info,sqlx=quiet'", "log.filter"),
        ("[webhooks]\nretention = '0d'", "webhooks.retention"),
        ("[webhooks]\nlog_retention = '0s'", "webhooks.log_retention"),
        (
            "[storage]\narchive_retention = '0d'",
            "storage.archive_retention",
        ),
        (
            "[seal]\ntimestamp_url = 'ldap://tsa.example'",
            "seal.timestamp_url",
        ),
        (
            "[traces]\nendpoint = 'grpc://traces.example'",
            "traces.endpoint",
        ),
        (
            "[components]\ncompile_limit = '0s'",
            "components.compile_limit",
        ),
        (
            "[components.trusted]\nours = 'abcd'",
            "components.trusted.ours",
        ),
        ("[console]\nidle = '1m'", "console.idle"),
        ("[console]\nsession_ttl = '1h'", "console.idle"),
        (
            "[components.trusted_keys]\nours = 'no hex'",
            "components.trusted.ours",
        ),
        (
            "[providers]\nallow_insecure = true\n[providers.signing.cloud]\nbase_url = 'ftp://sign.example'",
            "providers.signing.cloud.base_url",
        ),
        (
            "[ledger]\nwitnesses = [{ name = 'w', url = 'http://w.example', key = 'w.example+1185a03b+BNVCB9oZSXfc9Grb/sK8LnW1LVqKQhhP7f3AACTw4+ja' }]",
            "ledger.witnesses",
        ),
        ("[ledger]\nquorum = 1", "ledger.quorum"),
        ("[witness]\nname = 'two words'", "witness.name"),
        (
            "[auth.oidc]\nissuer = 'https://id.example'\naudience = ' '",
            "auth.oidc.audience",
        ),
    ] {
        let text = refusal(data.path(), &[], settings);
        assert!(
            text.contains(&format!("invalid setting: {key}: ")),
            "{text}"
        );
    }
}

#[test]
fn a_log_filter_with_levels_and_modules_is_accepted() {
    let data = tempfile::tempdir().unwrap();
    for filter in [
        "info",
        "warn,holdfast=debug",
        "off",
        "holdfast::store=TRACE",
    ] {
        let listed = run(
            data.path(),
            &[("HOLDFAST_LOG__FILTER", filter)],
            &["org", "list"],
        );
        assert!(listed.status.success(), "{filter}: {listed:?}");
    }
}

#[test]
fn a_settings_error_names_the_key_as_written() {
    let data = tempfile::tempdir().unwrap();
    let variable = [("HOLDFAST_WEBHOOKS__RETENTION", "0d")];
    let text = refusal(data.path(), &variable, "");
    let named = "webhooks.retention (variable HOLDFAST_WEBHOOKS__RETENTION): must be more than 0";
    assert!(text.contains(named), "{text}");

    let text = refusal(data.path(), &[("HOLDFAST_WEBHOOKS__RETRIES", "1")], "");
    assert!(
        text.contains("webhooks.retries (variable HOLDFAST_WEBHOOKS__RETRIES): unknown; known are"),
        "{text}"
    );

    let text = refusal(data.path(), &[], "[log]\nlevel = 'info'");
    assert!(text.contains("log.level"), "{text}");
    assert!(text.contains("known are format, filter"), "{text}");

    let text = refusal(data.path(), &[], "mail_from = 8080");
    assert!(text.contains("mail_from (in "), "{text}");
    assert!(text.contains("holdfast.toml"), "{text}");
}

#[test]
fn a_missing_settings_file_is_named() {
    let data = tempfile::tempdir().unwrap();
    share_native_code(data.path());
    let output = holdfast(data.path(), &["--config", "nowhere.toml", "org", "list"]);
    assert!(!output.status.success());

    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("there is no settings file nowhere.toml"),
        "{text}"
    );

    for (settings, file) in [
        (
            "[seal]\nkey_file = 'lost-key.pem'\ncertificates_file = 'lost.pem'",
            "lost-key.pem",
        ),
        (
            "[seal]\npkcs12_file = 'lost.p12'\npkcs12_password_file = 'lost-password'",
            "lost-password",
        ),
        ("[webhooks]\nca_file = 'lost-ca.pem'", "lost-ca.pem"),
        ("[storage]\nencryption_key_file = 'lost-keys'", "lost-keys"),
        (
            "[providers.signing.cloud]\nbase_url = 'https://sign.example'\nsecrets = { api_key_file = 'lost-token' }",
            "lost-token",
        ),
    ] {
        let text = refusal(data.path(), &[], settings);
        assert!(text.contains(file), "{settings}: {text}");
    }
}

/// A backup of the documents, or of the keys of the installation, must not have the keys of records.
#[test]
fn keys_of_records_have_a_place_of_their_own() {
    let data = tempfile::tempdir().unwrap();
    for settings in [
        "[storage]\nrecord_keys = 'keys/records'",
        "[storage]\nrecord_keys = 'objects'",
        "[storage]\nrecord_keys = '.'",
        "[storage]\nrecord_keys = 'other/../objects/keys'",
        "storage_url = 's3://vault/here'\n[storage]\nrecord_keys = 's3://vault/here/keys'",
    ] {
        let text = refusal(data.path(), &[], settings);
        let named = text.contains("storage.record_keys") && text.contains("a place of its own");
        assert!(named, "{settings}: {text}");
    }
}

/// Uses port 1 of this machine, where no server listens.
#[test]
fn an_unreachable_server_is_named_without_its_password() {
    let data = tempfile::tempdir().unwrap();
    let url = "postgres://holdfast:s3cret@127.0.0.1:1/contracts";
    let output = run(
        data.path(),
        &[("HOLDFAST_DATABASE_URL", url)],
        &["org", "list"],
    );
    assert!(!output.status.success());

    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("postgres://127.0.0.1:1/contracts"), "{text}");
    assert!(!text.contains("s3cret"), "{text}");
}

#[test]
fn created_files_are_private_to_the_user() {
    let data = tempfile::tempdir().unwrap();
    let data = data.path().join("data");

    // This umask alone would make the files readable for the group and others.
    let output = Command::new("sh")
        .args(["-c", "umask 0022; exec \"$0\" org create --name Maple"])
        .arg(env!("CARGO_BIN_EXE_holdfast"))
        .env("HOLDFAST_DATA_DIR", &data)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");

    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    assert_eq!(mode(&data.join("holdfast.db")), 0o600);
}

#[test]
fn tokens_and_keys_are_printed_alone_on_standard_output() {
    let data = tempfile::tempdir().unwrap();
    let data = data.path();
    let org = operator(data, &["org", "create", "--name", "Maple"]);
    let org = org["org_id"].as_str().unwrap();
    let printed = |arguments: &[&str]| {
        let output = holdfast(data, arguments);
        assert!(output.status.success(), "{output:?}");
        let text = |bytes| String::from_utf8(bytes).unwrap().trim_end().to_owned();
        (text(output.stdout), text(output.stderr))
    };

    let issue = [
        "token",
        "issue",
        "--org",
        org,
        "--email",
        "a@b.example",
        "--role",
        "admin",
    ];

    let (token, note) = printed(&issue);
    assert_eq!(token.split('.').count(), 3, "{token}");
    assert!(!token.contains(char::is_whitespace), "{token}");
    assert!(note.contains("expires at 2"), "{note}");

    let create = ["key", "create", "--org", org, "--scopes", "vault:read"];
    let (key, note) = printed(&create);
    assert!(
        key.starts_with("lk_") && !key.contains(char::is_whitespace),
        "{key}"
    );
    assert!(
        note.starts_with("key_") && note.contains("shown this once"),
        "{note}"
    );
}

#[test]
fn organization_name_and_envelope_expiry_are_validated() {
    let data = tempfile::tempdir().unwrap();
    for name in ["", "  ", "two\nlines"] {
        let output = holdfast(data.path(), &["org", "create", "--name", name]);
        assert!(!output.status.success(), "{name:?}");
    }
    assert_eq!(
        operator(data.path(), &["org", "list"]),
        serde_json::json!([])
    );

    let org = operator(data.path(), &["org", "create", "--name", "Maple"]);
    let org = org["org_id"].as_str().unwrap();
    let output = holdfast(data.path(), &["org", "set", org, "envelope_ttl_days=0"]);
    assert!(!output.status.success());

    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("envelope_ttl_days must be at least 1"),
        "{text}"
    );
}

/// Runs `serve` with these environment variables until it listens, and returns its log.
fn served(data: &Path, variables: &[(&str, &str)]) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_holdfast"))
        .env("HOLDFAST_DATA_DIR", data)
        .env("HOLDFAST_LISTEN", "127.0.0.1:0")
        .envs(variables.iter().copied())
        .arg("serve")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();

    let mut log = String::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        log += &line.unwrap();
        log.push('\n');
        if log.contains("listening on") {
            break;
        }
    }

    child.kill().unwrap();
    child.wait().unwrap();
    assert!(log.contains("listening on"), "{log}");

    log
}

#[test]
fn a_server_without_env_listens_on_loopback_and_warns_of_sandboxes() {
    let data = tempfile::tempdir().unwrap();
    share_native_code(data.path());
    let open = [("HOLDFAST_LISTEN", "0.0.0.0:0")];
    let text = refusal(data.path(), &open, "");
    assert!(text.contains("invalid setting: env: is not set"), "{text}");

    let log = served(data.path(), &[]);
    let warning = "sandbox payment, KBA and text message providers are active";
    assert!(log.contains(warning), "{log}");

    let log = served(data.path(), &[("HOLDFAST_ENV", "production")]);
    assert!(!log.contains("sandbox"), "{log}");

    let chosen = [("HOLDFAST_ENV", "development"), open[0]];
    assert!(served(data.path(), &chosen).contains(warning));
}

#[test]
fn the_configuration_page_lists_every_setting_of_the_parser() {
    let data = tempfile::tempdir().unwrap();
    // Listing the settings also works when the configuration is invalid.
    let broken = [("HOLDFAST_LISTEN", "nowhere")];
    let page = run(data.path(), &broken, &["settings"]);
    assert!(page.status.success());

    let page = String::from_utf8(page.stdout).unwrap();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/configuration.md");
    if std::env::var_os("UPDATE_CONFIGURATION").is_some() {
        std::fs::write(path, &page).unwrap();
    }

    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == page,
        "docs/configuration.md is out of date: run this test with UPDATE_CONFIGURATION=1"
    );

    let list = run(data.path(), &broken, &["settings", "--json"]);
    let list: Vec<serde_json::Value> = serde_json::from_slice(&list.stdout).unwrap();
    let attempts = list
        .iter()
        .find(|one| one["key"] == "max_attempts")
        .unwrap();
    assert_eq!(
        (&attempts["section"], &attempts["default"]),
        (&"webhooks".into(), &"5".into())
    );

    for setting in &list {
        assert_ne!(setting["meaning"], "", "{setting}");
    }
}
