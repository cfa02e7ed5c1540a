//! The samples of the guides in `docs`, run against a real server in each language that they are written in.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use axum::http::Method;
use holdfast::domain::component::Slot;
use serde_json::json;

use crate::sdk::{PythonSdk, TypeScriptSdk, done, target, test_key};
use crate::service::components::registry::{plugin_variant, variant};
use crate::support::docuseal::{self, FakeDocuseal};
use crate::support::{CONTRACT, TestApp};

/// A guide, and the state that its reader starts with.
const GUIDES: [(&str, Before); 8] = [
    ("quickstart", Before::TestKey),
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
    TestKey,
    SentEnvelope,
    VaultedEnvelope,
    TemplateAndClients,
    Service,
}

/// Returns a guide's samples in one language that use the API, as one program.
fn program(guide: &str, language: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let text = fs::read_to_string(path.join(format!("{guide}.md"))).unwrap();
    let fence = format!("\n```{language}\n");
    let blocks = text.split(&fence).skip(1);
    let code: Vec<&str> = blocks
        .map(|rest| rest.split_once("```").unwrap().0)
        .collect();

    // Receivers of webhooks have a test of their own.
    let of_the_api = code.iter().filter(|code| !code.contains("def verify("));
    let program = of_the_api.copied().collect::<Vec<_>>().join("\n");
    assert!(!program.is_empty(), "{guide} has no sample in {language}");

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
        let mut variables: BTreeMap<&str, String> = BTreeMap::from([
            ("HOLDFAST_URL", app.url()),
            ("HOLDFAST_API_KEY", app.key.clone()),
            ("HOLDFAST_TOKEN", app.token("owner")),
            ("HOLDFAST_ORG", app.org.to_string()),
        ]);
        match before {
            Before::Nothing => {}
            Before::TestKey => {
                variables.insert("HOLDFAST_API_KEY", test_key(&app).await);
            }
            Before::SentEnvelope => {
                let sent = app.sent_envelope().await;
                let id = sent["envelope_id"].as_str().unwrap().to_owned();
                let signers = app.get(&format!("/partner/envelopes/{id}/signers")).await;
                let signers = signers.data(200);
                let email = signers["signers"][0]["email"].as_str().unwrap();
                variables.insert("SIGNER_EMAIL", email.to_owned());
                variables.insert("ENVELOPE_ID", id);
            }
            Before::VaultedEnvelope => {
                let (lender, key) = app.party().await;
                variables.insert("ENVELOPE_ID", app.vaulted_envelope().await);
                variables.insert("DEALER_KEY", app.key.clone());
                variables.insert("LENDER_KEY", key);
                variables.insert("LENDER_ORG", lender.to_string());
            }
            Before::TemplateAndClients => {
                let template = app.contract_template().await;
                let id = template["template_id"].as_str().unwrap();
                variables.insert("TEMPLATE_ID", id.to_owned());

                for name in ["ash", "birch"] {
                    let client = json!({ "name": name, "email": format!("{name}@elm.example") });
                    app.web(Method::POST, "/customers", client).await.data(201);
                }
            }
            Before::Service => {
                variables.insert("SERVICE_URL", format!("{}/api", docuseal.url));
                variables.insert("SERVICE_KEY", docuseal::TOKEN.into());
                variables.insert("SERVICE_SECRET", docuseal::SECRET.into());
            }
        }

        let mut command = run(guide, &program(guide, language));
        command.envs(variables);
        let said = tokio::task::spawn_blocking(move || done(&mut command));
        said.await
            .unwrap_or_else(|error| panic!("{guide} in {language}: {error}"));

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
        let mut bash = Command::new("bash");
        bash.args(["-euo", "pipefail", "-c", program]);
        bash.current_dir(folder.path());
        bash
    })
    .await;
}

/// Walks for people who do not write programs: commands only, each page in a fresh shell.
#[tokio::test(flavor = "multi_thread")]
async fn the_walks_of_facts_funding_and_tapes_can_be_pasted() {
    for (walk, said_last) in [
        ("facts", "27815.15 USD, page 2"),
        ("funding", "sent"),
        ("tape", "line 3: unmatched"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("contract.pdf"), CONTRACT).unwrap();
        let app = TestApp::on_a_socket().await;
        let mut bash = Command::new("bash");
        bash.args(["-euo", "pipefail", "-c", &program(walk, "sh")]);
        bash.current_dir(folder.path());
        bash.envs([
            ("HOLDFAST_URL", app.url()),
            ("HOLDFAST_API_KEY", app.key.clone()),
            ("HOLDFAST_TOKEN", app.token("owner")),
            ("HOLDFAST_ORG", app.org.to_string()),
        ]);
        let said = tokio::task::spawn_blocking(move || done(&mut bash));
        let said = said.await.unwrap_or_else(|error| panic!("{walk}: {error}"));
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
            _ => assert!(
                said.contains("line 2: different 27851.15 27815.15"),
                "{said}"
            ),
        }
    }
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
