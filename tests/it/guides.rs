//! The samples of the guides in `docs`, run against a real server in each language that they are written in. A sample
//! has the variables that its page exports, and no others. It fails if it prints nothing or `null`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use axum::http::Method;
use holdfast::domain::component::Slot;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};

use crate::sdk::{PythonSdk, TypeScriptSdk, done, target, test_key};
use crate::service::components::registry::{plugin_variant, variant};
use crate::support::docuseal::{self, FakeDocuseal};
use crate::support::{CONTRACT, TestApp, envelope_body, form};

/// Time for the samples of one page, above the bounds of their own loops.
const PATIENCE: Duration = Duration::from_secs(900);

/// A `jq` that fails if it prints nothing or `null`, which a reader would take for a result.
const STRICT_JQ: &str = r#"
jq() {
  local printed
  printed=$(command jq "$@") || return
  case $'\n'"$printed"$'\n' in
    $'\n\n' | *$'\nnull\n'*) echo "jq ${*: -1} printed '$printed'" >&2; return 1 ;;
  esac
  printf '%s\n' "$printed"
}
"#;

/// A guide, and the state that its reader starts with.
const GUIDES: [(&str, Before); 8] = [
    ("quickstart", Before::Nothing),
    ("embedding", Before::SentEnvelope),
    ("webhooks", Before::SentEnvelope),
    ("bulk-send", Before::TemplateAndClients),
    ("vault", Before::Nothing),
    ("control", Before::VaultedEnvelope),
    ("provider-plugins", Before::Service),
    ("rules", Before::Nothing),
];

#[derive(Clone, Copy)]
enum Before {
    Nothing,
    SentEnvelope,
    VaultedEnvelope,
    TemplateAndClients,
    Service,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn page(guide: &str) -> String {
    fs::read_to_string(root().join(format!("docs/{guide}.md"))).unwrap()
}

/// Returns the variables that a page exports, with the values that it shows.
fn exports(guide: &str) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    for line in page(guide).lines() {
        let Some(line) = line.strip_prefix("$ export ") else {
            continue;
        };

        let (assignments, _) = line.split_once('#').unwrap_or((line, ""));
        for assignment in assignments.split_whitespace() {
            let (name, value) = assignment.split_once('=').unwrap();
            exports.insert(name.to_owned(), value.to_owned());
        }
    }

    exports
}

/// Returns the variables of a page's reader: those that it exports, with values of this server.
async fn variables(
    guide: &str,
    app: &TestApp,
    further: BTreeMap<&str, String>,
) -> BTreeMap<String, String> {
    let mut exports = exports(guide);
    for (name, value) in &mut exports {
        *value = match name.as_str() {
            "HOLDFAST_URL" => app.url(),
            "HOLDFAST_API_KEY" if value.starts_with("lk_test_") => test_key(app).await,
            "HOLDFAST_API_KEY" => app.key.clone(),
            "HOLDFAST_TOKEN" => app.token("owner"),
            "HOLDFAST_ORG" => app.org.to_string(),
            name => further
                .get(name)
                .unwrap_or_else(|| panic!("{guide} exports {name}, which its reader does not have"))
                .clone(),
        };
    }

    exports
}

/// Runs a page's samples with the variables of its reader. Returns their output.
async fn run_samples(
    guide: &str,
    mut command: Command,
    variables: BTreeMap<String, String>,
) -> String {
    // What the shell of the tests has does not help a page that forgets an export.
    for name in ["URL", "API_KEY", "LIVE_KEY", "TOKEN", "ORG"] {
        command.env_remove(format!("HOLDFAST_{name}"));
    }

    let mut command = tokio::process::Command::from(command);
    command.envs(variables).kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output()).await;
    let output = output
        .unwrap_or_else(|_| panic!("{guide} has not ended after {PATIENCE:?}"))
        .unwrap();

    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{guide}: {printed}{errors}");
    assert!(!printed.trim().is_empty(), "{guide} prints nothing");
    let is_nothing = |line: &str| ["null", "None", "undefined"].contains(&line.trim());
    assert!(!printed.lines().any(is_nothing), "{guide}: {printed}");

    printed
}

/// Returns a shell without the variables of this one.
fn fresh_bash(folder: &Path, program: &str) -> Command {
    let mut bash = Command::new("bash");
    bash.args(["-c", &format!("{STRICT_JQ}{program}")]);
    bash.current_dir(folder).env_clear();
    for name in ["PATH", "HOME"] {
        if let Some(value) = std::env::var_os(name) {
            bash.env(name, value);
        }
    }

    bash
}

/// Returns a guide's samples in one language that use the API, as one program.
fn program(guide: &str, language: &str) -> String {
    let text = page(guide);
    let fence = format!("\n```{language}\n");
    let blocks = text.split(&fence).skip(1);
    let code: Vec<&str> = blocks
        .map(|rest| rest.split_once("```").unwrap().0)
        .collect();

    // Receivers of webhooks have a test of their own.
    let of_the_api = code.iter().filter(|code| !code.contains("def verify("));
    let program = of_the_api.copied().collect::<Vec<_>>().join("\n");
    assert!(!program.is_empty(), "{guide} has no sample in {language}");

    // A loop that waits has a bound, so it counts; commands end at the first error.
    let waits = |line: &str| line.starts_with("while ") || line.starts_with("until ");
    assert!(!program.lines().any(waits), "{guide} in {language}");
    if language == "sh" {
        assert!(program.starts_with("set -eo pipefail"), "{guide}");
    }

    program
}

/// Runs all guides. `run` returns the command that runs a program, in a folder that has the files of the guides.
async fn follow(language: &str, folder: &Path, run: impl Fn(&str, &str) -> Command) {
    fs::write(folder.join("contract.pdf"), CONTRACT).unwrap();
    fs::write(
        folder.join("acme-rules.wasm"),
        variant(Slot::Compliance, "guide"),
    )
    .unwrap();
    fs::write(folder.join("acme-sign.wasm"), plugin_variant("guide")).unwrap();

    for (guide, before) in GUIDES {
        let docuseal = FakeDocuseal::start().await;
        let app = TestApp::on_a_socket_over(|config| {
            config.providers.allow_insecure = true;
            config.components.compile_limit = std::time::Duration::from_secs(600);
        })
        .await;
        let mut further: BTreeMap<&str, String> = BTreeMap::new();
        match before {
            Before::Nothing => {}
            Before::SentEnvelope => {
                let sent = app.sent_envelope().await;
                let id = sent["envelope_id"].as_str().unwrap().to_owned();
                let signers = app.get(&format!("/partner/envelopes/{id}/signers")).await;
                let signers = signers.data(200);
                let email = signers["signers"][0]["email"].as_str().unwrap();
                further.insert("SIGNER_EMAIL", email.to_owned());
                further.insert("ENVELOPE_ID", id);
            }
            Before::VaultedEnvelope => {
                let (lender, key) = app.party().await;
                further.insert("ENVELOPE_ID", app.vaulted_envelope().await);
                further.insert("DEALER_KEY", app.key.clone());
                further.insert("LENDER_KEY", key);
                further.insert("LENDER_ORG", lender.to_string());
            }
            Before::TemplateAndClients => {
                let template = app.contract_template().await;
                let id = template["template_id"].as_str().unwrap();
                further.insert("TEMPLATE_ID", id.to_owned());

                for name in ["ash", "birch"] {
                    let client = json!({ "name": name, "email": format!("{name}@elm.example") });
                    app.web(Method::POST, "/customers", client).await.data(201);
                }
            }
            Before::Service => {
                further.insert("SERVICE_URL", format!("{}/api", docuseal.url));
                further.insert("SERVICE_KEY", docuseal::TOKEN.into());
                further.insert("SERVICE_SECRET", docuseal::SECRET.into());
            }
        }

        let command = run(guide, &program(guide, language));
        let variables = variables(guide, &app, further).await;
        run_samples(guide, command, variables).await;

        // The effect of each guide.
        let count = |table: &'static str| app.count(table);
        match guide {
            "quickstart" | "vault" => assert_eq!(count("vault_intent").await, 1, "{guide}"),
            "control" => assert_eq!(count("control_record").await, 1, "{guide}"),
            "bulk-send" => assert_eq!(count("envelope").await, 2, "{guide}"),
            "webhooks" => assert_eq!(count("webhook_endpoint").await, 1, "{guide}"),
            "rules" | "provider-plugins" => {
                assert_eq!(count("component_activation").await, 1, "{guide}")
            }
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guides_work_with_curl() {
    let folder = tempfile::tempdir().unwrap();
    follow("sh", folder.path(), |_, program| {
        fresh_bash(folder.path(), program)
    })
    .await;
}

/// Pages with commands only, and the end of their output.
const WALKS: [(&str, &str); 5] = [
    ("facts", "27815.15 USD, page 2"),
    ("funding", "sent"),
    ("import", "vaulted"),
    ("tape", "line 3: unmatched"),
    ("test-mode", "2592000"),
];

/// Pages with commands that are not run as they stand there: those in blocks of the console, which have placeholders or
/// need another machine, and samples that need a further program.
const NOT_RUN: [(&str, &str); 21] = [
    ("command-line", "starts a server; `cli::dev` does it"),
    (
        "components",
        "needs ids of components and changes; `service::components` has them",
    ),
    (
        "component-delivery",
        "needs registries, cosign and publishers; `cli::registries` has them",
    ),
    ("consent", "its texts are a reader's own"),
    ("console", "makes the first organization of an installation"),
    (
        "control",
        "continues with ids of transfers and views; `control_drills` has them",
    ),
    ("embedding", "settings of an operator"),
    (
        "evidence",
        "needs the files of a released record, and a reader of PDFs; `sealing` has both",
    ),
    (
        "facts",
        "sends the map of the page; `service::facts` sends it too",
    ),
    ("funding", "builds a component; `cli::rules_kit` does it"),
    (
        "import",
        "sends a reader's own folder; `cli::import` of the command does it",
    ),
    ("languages", "its texts are a reader's own"),
    (
        "operations",
        "needs folders of the system, and a second server as witness",
    ),
    ("payment-and-identity", "needs accounts of providers"),
    (
        "provider-plugins",
        "builds a component; `cli::plugin_kit` does it",
    ),
    (
        "reverse-proxy",
        "needs a host with a certificate; `packaging` runs both proxies",
    ),
    ("rules", "builds components; `cli::rules_kit` does it"),
    ("sealing-certificates", "needs an issuer of certificates"),
    (
        "tape",
        "checks without a server; `cli` does it with the files of a pool",
    ),
    ("test-mode", "makes a key, as an operator"),
    (
        "webhooks",
        "waits for events without end; `cli::listen` ends it",
    ),
];

/// Returns the commands in a page's blocks of the console, apart from those that set variables.
fn console_commands(text: &str) -> Vec<&str> {
    let blocks = text.split("```console\n").skip(1);
    let lines = blocks.flat_map(|rest| rest.split("```").next().unwrap().lines());
    lines
        .filter_map(|line| line.strip_prefix("$ "))
        .filter(|command| !command.starts_with("export "))
        .collect()
}

#[test]
fn every_page_with_commands_is_run_or_has_a_reason() {
    let guides = GUIDES.map(|(guide, _)| guide);
    let walks = WALKS.map(|(walk, _)| walk);
    let run: BTreeSet<&str> = guides.into_iter().chain(walks).collect();
    let reasons: BTreeMap<&str, &str> = NOT_RUN.into_iter().collect();
    assert_eq!(reasons.len(), NOT_RUN.len());

    let mut seen = BTreeSet::new();
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(slug) = name.strip_suffix(".md") else {
            continue;
        };

        let text = page(slug);
        let has_samples = text.contains("\n```sh\n");
        let is_left_out = has_samples && !run.contains(slug);
        let needs_reason = is_left_out || !console_commands(&text).is_empty();
        assert_eq!(needs_reason, reasons.contains_key(slug), "{slug}");
        seen.insert(slug.to_owned());
    }

    for named in run.iter().chain(reasons.keys()) {
        assert!(seen.contains(*named), "{named}");
    }
}

/// Commands that the guides do not run at least exist: each command of the program, with its options.
#[test]
fn every_command_of_the_pages_exists() {
    let data = tempfile::tempdir().unwrap();
    let is_word = |word: &&str| {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
        !word.starts_with('-') && word.bytes().all(plain)
    };

    let mut checked = 0;
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }

        let text = fs::read_to_string(&path).unwrap();
        for command in console_commands(&text) {
            let words = command.split_whitespace();
            let mut words = words.skip_while(|word| word.starts_with("HOLDFAST_"));
            if words.next() != Some("holdfast") {
                continue;
            }

            let rest: Vec<&str> = words
                .take_while(|word| *word != ">" && *word != "#")
                .collect();
            let options = rest.iter().filter(|word| word.starts_with("--"));
            let names = rest
                .iter()
                .copied()
                .skip_while(|word| word.starts_with("--"));
            let names: Vec<&str> = names.take_while(is_word).collect();

            let shown = done(
                Command::new(env!("CARGO_BIN_EXE_holdfast"))
                    .args(&names)
                    .arg("--help")
                    .env("HOLDFAST_DATA_DIR", data.path()),
            );
            for option in options {
                assert!(shown.contains(option), "{}: {command}", path.display());
            }
            checked += 1;
        }
    }
    assert!(checked > 25, "{checked}");
}

/// Sends an envelope of the test data, and returns its id.
async fn sent_in_test_mode(app: &TestApp) -> String {
    let key = test_key(app).await;
    let area = json!({ "page": 1, "x": 0.1, "y": 0.85, "w": 0.3, "h": 0.04 });
    let field = json!({
        "name": "Signature", "type": "signature", "role": "Buyer",
        "placement": { "mode": "absolute", "areas": [area] },
    });
    let fields = json!([field]).to_string();
    let texts = [("name", "Contract"), ("fields_json", fields.as_str())];
    let template = app
        .upload_as(
            &key,
            "/partner/templates",
            "application/pdf",
            CONTRACT,
            &texts,
        )
        .await
        .data(200);

    let body = envelope_body(&template["template_id"]);
    let sent = app
        .post_as(&key, "/partner/envelopes", body)
        .await
        .data(201);
    sent["envelope_id"].as_str().unwrap().to_owned()
}

/// Walks for people who do not write programs: commands only, each page in a fresh shell.
#[tokio::test(flavor = "multi_thread")]
async fn the_walks_can_be_pasted() {
    for (walk, said_last) in WALKS {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("contract.pdf"), CONTRACT).unwrap();
        let app = TestApp::on_a_socket().await;
        let mut further = BTreeMap::new();
        if walk == "test-mode" {
            further.insert("ENVELOPE_ID", sent_in_test_mode(&app).await);
        }

        let bash = fresh_bash(folder.path(), &program(walk, "sh"));
        let variables = variables(walk, &app, further).await;
        let said = run_samples(walk, bash, variables).await;
        let said = said.trim();
        assert!(said.ends_with(said_last), "{walk}: {said}");

        match walk {
            "facts" => assert_eq!(app.count("contract_facts").await, 1),
            // One with a warning, one that is right.
            "funding" => {
                assert_eq!(app.count("envelope").await, 2);
                let refused = "funding_refused\npage 1: ";
                assert!(said.contains(refused), "{said}");
                assert!(said.contains("24 × 230.00 = 5520.00"), "{said}");
            }
            "test-mode" => {
                assert!(
                    said.starts_with("completed\njordan.lee@example.com"),
                    "{said}"
                );
            }
            "import" => assert!(said.contains("line 3: no_document"), "{said}"),
            _ => assert!(
                said.contains("line 2: different 27851.15 27815.15"),
                "{said}"
            ),
        }
    }
}

/// Returns the commands of a block, without their prompts and exports.
fn commands(block: &str) -> String {
    let lines = block.lines().filter(|line| !line.starts_with("$ export "));
    lines
        .map(|line| format!("{}\n", line.strip_prefix("$ ").unwrap_or(line)))
        .collect()
}

/// The commands of the README as they stand there; a person signs between them.
#[tokio::test(flavor = "multi_thread")]
async fn the_commands_of_the_readme_end_with_a_valid_bundle() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let (_, rest) = readme
        .split_once("## From template to verified bundle")
        .unwrap();
    let (section, _) = rest.split_once("\n## ").unwrap();
    let blocks = section.split("```console\n").skip(1);
    let blocks: Vec<String> = blocks
        .map(|rest| commands(rest.split_once("```").unwrap().0))
        .collect();
    let [until_sent, released] = blocks.as_slice() else {
        panic!("{section}");
    };

    let vaulted = r#"
for _ in {1..600}; do
  STATUS=$(api "$BASE/partner/envelopes/$ENVELOPE_ID/status" | jq -r .data.status)
  [ "$STATUS" != vaulted ] || break
  sleep 0.2
done
"#;
    let program = format!("set -eo pipefail\n{until_sent}{vaulted}{released}")
        .replace("target/debug/holdfast", env!("CARGO_BIN_EXE_holdfast"))
        .replace(
            "tests/fixtures/retail-installment-contract.pdf",
            "contract.pdf",
        );

    let app = TestApp::on_a_socket().await;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("contract.pdf"), CONTRACT).unwrap();
    let mut bash = tokio::process::Command::from(fresh_bash(folder.path(), &program));
    bash.env("HOLDFAST_URL", app.url())
        .env("HOLDFAST_API_KEY", &app.key)
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let mut running = bash.spawn().unwrap();

    let mut output = BufReader::new(running.stdout.take().unwrap());
    let walk = async {
        let mut link = String::new();
        output.read_line(&mut link).await.unwrap();
        form::sign(&app, link.trim()).await;

        let mut report = String::new();
        output.read_to_string(&mut report).await.unwrap();
        (running.wait().await.unwrap(), report)
    };
    let (status, report) = tokio::time::timeout(PATIENCE, walk).await.unwrap();
    assert!(status.success(), "{report}");
    let is_valid = report.lines().any(|line| line.starts_with("VALID: "));
    assert!(is_valid, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guides_work_in_python() {
    let sdk = PythonSdk::generated();
    follow("python", sdk.folder(), |guide, program| {
        let file = format!("{guide}.py").replace('-', "_");
        fs::write(sdk.folder().join("examples").join(&file), program).unwrap();
        let checked = ["-m", "mypy", "src"];
        done(sdk.python().args(checked).arg(format!("examples/{file}")));
        let mut python = sdk.python();
        python.arg(format!("examples/{file}"));
        python
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guides_work_in_typescript() {
    let sdk = TypeScriptSdk::built();
    for (guide, _) in GUIDES {
        let file = sdk.folder().join(format!("examples/{guide}.mts"));
        fs::write(file, program(guide, "typescript")).unwrap();
    }

    done(&mut sdk.tsc("tsconfig.check.json"));
    let tsx = target().join("tsx/node_modules/tsx/dist/cli.mjs");
    follow("typescript", sdk.folder(), |guide, _| {
        sdk.node(&[tsx.to_str().unwrap(), &format!("examples/{guide}.mts")])
    })
    .await;
}
