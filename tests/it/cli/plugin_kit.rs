//! The plugin development kit: projects that `holdfast component new` scaffolds build, pass
//! their tests, and sign a contract.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use holdfast::components::egress::NetworkAccess;
use holdfast::components::providers::{ProviderError, ProviderLease};
use holdfast::components::script::FarEndScript;
use holdfast::components::vectors::VectorSet;
use holdfast::components::{ComponentArtifact, embedded};
use holdfast::config::{Config, SecretText};
use holdfast::delivery::guard::{self, AllowedAddresses};
use holdfast::domain::clock::Clock;
use holdfast::domain::component::Slot;
use holdfast::domain::hash::sha256;
use holdfast::domain::organization::OrgSettings;
use holdfast_guest_builder::{GuestBuilder, GuestCrate, GuestMemory};
use serde_json::json;

use crate::components::misbehaving::node_with;
use crate::support::example_sign::{ExampleSign, KEY, SECRET};
use crate::support::{CONTRACT, TestApp, envelope_body};

pub fn target() -> PathBuf {
    let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
    tmp.parent().unwrap().to_path_buf()
}

/// Runs the operator's tool; returns whether it succeeded, and its output.
pub fn holdfast(arguments: &[&str]) -> (bool, String) {
    let nowhere = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_holdfast"))
        .env("HOLDFAST_DATA_DIR", nowhere.path())
        .args(arguments)
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();

    (
        output.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

/// Name of the scaffolded plugin of a slot.
fn name_of(slot: Slot) -> &'static str {
    match slot {
        Slot::Payment => "acme-payment",
        Slot::Kba => "acme-kba",
        Slot::Messaging => "acme-messaging",
        _ => "acme-sign",
    }
}

/// Scaffolds a plugin and returns its folder.
fn begun(slot: Slot, language: &str, within: &Path) -> PathBuf {
    let folder = within.join(name_of(slot));
    let (began, said) = holdfast(&[
        "component",
        "new",
        "--slot",
        slot.as_str(),
        "--lang",
        language,
        folder.to_str().unwrap(),
    ]);
    assert!(began, "{said}");

    folder
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&said)
    );
}

/// Builds the component of a freshly scaffolded plugin. The result is cached for later test
/// runs until the scaffold changes.
fn built(slot: Slot, language: &str, build: impl FnOnce(&Path)) -> Vec<u8> {
    let within = tempfile::tempdir().unwrap();
    let folder = begun(slot, language, within.path());
    let mut all = Vec::new();
    for file in crate::support::files_below(&folder) {
        all.extend(fs::read(file).unwrap());
    }

    let kept = target().join("tmp/plugins");
    let prefix = format!("{language}-{}-", name_of(slot));
    let kept = kept.join(format!("{prefix}{}.wasm", sha256(&all)));
    if !kept.exists() {
        build(&folder);
        let plugins = kept.parent().unwrap();
        fs::create_dir_all(plugins).unwrap();

        for other in fs::read_dir(plugins).unwrap().flatten() {
            let name = other.file_name().into_string().unwrap();
            if name.starts_with(&prefix) {
                fs::remove_file(other.path()).unwrap();
            }
        }

        fs::copy(folder.join(format!("{}.wasm", name_of(slot))), &kept).unwrap();
    }

    fs::read(kept).unwrap()
}

pub fn in_rust(slot: Slot) -> Vec<u8> {
    built(slot, "rust", |folder| {
        let builder = GuestBuilder::at(folder.into(), target().join("guests")).unwrap();
        let module = builder.module(&GuestCrate {
            package: name_of(slot),
            slot: slot.as_str(),
            memory: GuestMemory::Plugin,
        });
        let component = folder.join(format!("{}.wasm", name_of(slot)));
        let (module, component) = (module.unwrap(), component.to_str().unwrap().to_owned());
        let module = module.to_str().unwrap();
        let (encoded, said) = holdfast(&["component", "encode", module, &component]);
        assert!(encoded, "{said}");
    })
}

fn in_javascript(slot: Slot) -> Vec<u8> {
    built(slot, "js", |folder| {
        let tools = target().join("plugin-tools/node_modules");
        assert!(tools.exists(), "run tests/set-up test");
        std::os::unix::fs::symlink(tools, folder.join("node_modules")).unwrap();
        run(Command::new("npm")
            .args(["run", "--silent", "build"])
            .current_dir(folder));
    })
}

fn in_python(slot: Slot) -> Vec<u8> {
    built(slot, "python", |folder| {
        let tools = target().join("plugin-tools/venv");
        assert!(tools.exists(), "run tests/set-up test");

        std::os::unix::fs::symlink(tools, folder.join(".venv")).unwrap();

        // The shared virtual environment is already installed: keep `make` from rebuilding it.
        run(Command::new("make")
            .args(["--silent", "--old-file=.venv", "build"])
            .current_dir(folder));
    })
}

fn in_go() -> Vec<u8> {
    built(Slot::Signing, "go", |folder| {
        let go = target().join("plugin-tools/go-1.27.3/go/bin/go");
        assert!(go.exists(), "run tests/set-up test");

        let program = Path::new(env!("CARGO_BIN_EXE_holdfast")).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let nowhere = tempfile::tempdir().unwrap();
        // No other version of Go is downloaded, and no module.
        run(Command::new("make")
            .args(["--silent", "build", &format!("GO={}", go.display())])
            .env("PATH", format!("{}:{path}", program.display()))
            .env("GOCACHE", target().join("plugin-tools/go-cache"))
            .env("GOTOOLCHAIN", "local")
            .env("GOPROXY", "off")
            .env("HOLDFAST_DATA_DIR", nowhere.path())
            .current_dir(folder));
    })
}

const FAR_END: &str = include_str!("../../../plugins/examples/far-end.json");

fn plugin(bytes: Vec<u8>) -> ComponentArtifact {
    ComponentArtifact::uploaded(Slot::Signing, "acme-sign", "1.0.0", bytes.into())
}

/// Performs the examination of an upload, and runs the test script.
async fn admitted(slot: Slot, bytes: Vec<u8>) {
    let name = name_of(slot);
    let artifact = ComponentArtifact::uploaded(slot, name, "1.0.0", bytes.clone().into());
    let components = node_with(artifact.clone());
    let examined = components.examine(artifact, VectorSet::default());
    if let Err(reasons) = examined.await {
        panic!("{name}: {reasons:#?}");
    }

    as_written(slot, bytes).await;
}

/// Runs the test script that every scaffold contains.
async fn as_written(slot: Slot, bytes: Vec<u8>) {
    let name = name_of(slot);
    let artifact = ComponentArtifact::uploaded(slot, name, "1.0.0", bytes.into());
    let components = node_with(artifact.clone());
    let text = match slot {
        Slot::Payment => include_str!("../../../plugins/examples/payment/far-end.json"),
        Slot::Kba => include_str!("../../../plugins/examples/kba/far-end.json"),
        Slot::Messaging => include_str!("../../../plugins/examples/messaging/far-end.json"),
        _ => FAR_END,
    };
    let script = FarEndScript::parse(text).unwrap();
    assert!(script.calls() >= 14);
    if let Err(reasons) = components.rehearse(artifact, &script).await {
        panic!("{name}: {reasons:#?}");
    }
}

const BESIDE_SIGNING: [Slot; 3] = [Slot::Payment, Slot::Kba, Slot::Messaging];

/// Slots with starters that are built in languages that take half a minute each. `HOLDFAST_STARTERS=all` builds all.
fn of_slow_languages() -> &'static [Slot] {
    match std::env::var_os("HOLDFAST_STARTERS") {
        Some(_) => &BESIDE_SIGNING,
        // The one with the most types.
        None => &[Slot::Kba],
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scaffolded_rust_providers_pass_their_tests() {
    for slot in BESIDE_SIGNING {
        admitted(slot, in_rust(slot)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scaffolded_javascript_providers_pass_their_tests() {
    for slot in of_slow_languages() {
        admitted(*slot, in_javascript(*slot)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scaffolded_python_providers_pass_their_tests() {
    for slot in of_slow_languages() {
        admitted(*slot, in_python(*slot)).await;
    }
}

/// Answers the probe of the starters, for the right key.
async fn account(headers: HeaderMap) -> Response {
    if headers.get("authorization") == Some(&HeaderValue::from_static("Bearer the-key")) {
        Json(json!({ "id": "a-1" })).into_response()
    } else {
        StatusCode::UNAUTHORIZED.into_response()
    }
}

/// The commands of a starter's README, with the variables that it exports.
#[tokio::test(flavor = "multi_thread")]
async fn the_readme_of_a_starter_uploads_and_activates_it() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let service = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().route("/account", get(account));
    tokio::spawn(async move { axum::serve(listener, router).await });

    let app = TestApp::on_a_socket_over(|config| {
        config.providers.allow_insecure = true;
        config.components.compile_limit = Duration::from_secs(600);
    })
    .await;
    let within = tempfile::tempdir().unwrap();
    let folder = begun(Slot::Messaging, "rust", within.path());
    fs::write(folder.join("acme-messaging.wasm"), in_rust(Slot::Messaging)).unwrap();
    let readme = fs::read_to_string(folder.join("README.md")).unwrap();
    let (_, program) = readme.split_once("```sh\n").unwrap();
    let (program, _) = program.split_once("```").unwrap();

    let activate = async |key: &str| {
        let values = [
            ("HOLDFAST_URL", app.url()),
            ("HOLDFAST_TOKEN", app.token("owner")),
            ("SERVICE_URL", service.clone()),
            ("SERVICE_KEY", key.to_owned()),
            ("SERVICE_NUMBER", "+15125550100".to_owned()),
        ];
        let exported = |name: &str| readme.contains(&format!(" {name}="));
        assert!(values.iter().all(|(name, _)| exported(name)), "{readme}");

        let mut bash = tokio::process::Command::new("bash");
        bash.args(["-c", program]).current_dir(&folder).envs(values);
        let output = bash.output().await.unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        (output.status.success(), said)
    };

    // The plugin is asked before it is activated.
    let (activated, said) = activate("another-key").await;
    assert!(
        !activated && said.contains("the vendor does not accept api_key"),
        "{said}"
    );
    assert_eq!(app.count("component_activation").await, 0);

    let (activated, said) = activate("the-key").await;
    assert!(activated, "{said}");
    assert_eq!(app.count("component_activation").await, 1);
}

/// Uploads the plugin as an organization's own provider, then takes a template and an envelope
/// through signing to the vault.
async fn signs_a_contract(bytes: Vec<u8>) {
    let vendor = ExampleSign::start().await;
    let patient = |config: &mut Config| {
        config.providers.allow_insecure = true;
        // Compiling megabytes takes long next to other tests.
        config.components.compile_limit = Duration::from_secs(600);
    };
    let app = TestApp::with(patient, OrgSettings::default()).await;
    let admin = app.admin();
    let upload = app.upload_component(&admin, "acme-sign", "1.0.0", &bytes);
    let component = upload.await.data(201);

    // Problems found at admission go to the plugin's author and are not counted for the operator.
    let metrics = app.metrics().await;
    assert!(!metrics.contains("acme-sign"), "{metrics}");

    let activate = json!({
        "component_id": component["component_id"], "instance": "acme",
        "config": { "base_url": vendor.url, "secrets": { "api_key": KEY, "webhook_secret": SECRET } },
    });
    let path = "/component-slots/provider.signing/activate";
    let activation = app.post_with_bearer(&admin, path, activate).await.data(201);

    let template = app.contract_template().await;
    assert_eq!(vendor.document(), CONTRACT, "as it was uploaded");

    let body = envelope_body(&template["template_id"]);
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let id = envelope["envelope_id"].as_str().unwrap();
    let (signature, callback) = vendor.sign();
    let url = url::Url::parse(activation["callback_url"].as_str().unwrap()).unwrap();
    let call_back = async |signature: &str| {
        let request = Request::post(url.path()).header("X-Vendor-Signature", signature);
        app.send(request.body(Body::from(callback.clone())).unwrap())
            .await
            .status
    };
    assert_eq!(call_back(&"0".repeat(64)).await, 401);
    assert_eq!(call_back(&signature).await, 200);

    app.wait_for(id, "vaulted").await;
    let asked = vendor.asked();
    for wanted in [
        "POST /templates",
        "POST /submissions",
        "GET /submissions/s-1/document",
    ] {
        assert!(asked.iter().any(|asked| asked == wanted), "{asked:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scaffolded_rust_plugin_builds_and_signs() {
    let bytes = in_rust(Slot::Signing);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("acme-sign.wasm");
    let script = folder.path().join("far-end.json");
    fs::write(&file, &bytes).unwrap();
    fs::write(&script, FAR_END).unwrap();
    let (file, script) = (file.to_str().unwrap(), script.to_str().unwrap());
    let (admitted, said) = holdfast(&["component", "check", file, "--script", script]);
    assert!(admitted, "{said}");
    assert_eq!(said.matches("went as the script says").count(), 1, "{said}");

    // A script that expects another message.
    let other = FAR_END.replace("This template is too old", "It is full");
    let other = other.replacen("It is full", "This template is too old", 1);
    fs::write(script, other).unwrap();
    let (admitted, said) = holdfast(&["component", "check", file, "--script", script]);
    assert!(!admitted);

    let told = "script: call 11, \"read-template\": answers \
                {\"err\":{\"rejected\":\"This template is too old\"}}, and the script has \
                {\"err\":{\"rejected\":\"It is full\"}}";
    assert!(said.contains(told), "{said}");

    for (change, to, told) in [
        ("\"settings\"", "\"setings\"", "unknown field `setings`"),
        ("https://api.sign.example", "nowhere", "settings.base_url"),
    ] {
        fs::write(script, FAR_END.replacen(change, to, 1)).unwrap();
        let (admitted, said) = holdfast(&["component", "check", file, "--script", script]);
        assert!(!admitted && said.contains(told), "{said}");
    }

    for (change, to, told) in [
        (
            "\"tmpl_1\", \"name\"",
            "\"tmpl_2\", \"name\"",
            "asks for POST /templates with body",
        ),
        (
            "\"path\": \"/templates\"",
            "\"path\": \"/forms\"",
            "and the script has POST /forms",
        ),
        (
            "Bearer key-for-tests",
            "Bearer other",
            "with header authorization",
        ),
        (
            "\"external-id\": \"tmpl_1\"",
            "\"id\": \"tmpl_1\"",
            "has no parameter id",
        ),
        (
            "\"required\": true",
            "\"required\": 1",
            "fields: required: 1 does not fit",
        ),
        (
            "\"read-submission\"",
            "\"read-document\"",
            "has no such function",
        ),
    ] {
        fs::write(script, FAR_END.replacen(change, to, 1)).unwrap();
        let (admitted, said) = holdfast(&["component", "check", file, "--script", script]);
        assert!(!admitted && said.contains(told), "{told}: {said}");
    }

    signs_a_contract(bytes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scaffolded_javascript_plugin_builds_and_signs() {
    let bytes = in_javascript(Slot::Signing);
    as_written(Slot::Signing, bytes.clone()).await;
    signs_a_contract(bytes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scaffolded_python_plugin_builds_and_signs() {
    let bytes = in_python(Slot::Signing);
    admitted(Slot::Signing, bytes.clone()).await;
    let vendor = ExampleSign::start().await;
    let components = node_with(plugin(bytes));
    let made = components
        .signing(None, "bad")
        .create_template(
            lease(&vendor.url, KEY),
            "Lease",
            "tmpl_1",
            CONTRACT.into(),
            &[],
        )
        .await
        .unwrap();
    assert_eq!(made.template_id, "t-1");

    assert_eq!(vendor.document(), CONTRACT);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scaffolded_go_plugin_builds_and_signs() {
    let bytes = in_go();
    as_written(Slot::Signing, bytes.clone()).await;
    signs_a_contract(bytes).await;
}

/// Returns the resources of an instance that may connect only to this vendor.
fn lease(base_url: &str, key: &str) -> ProviderLease {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let insecure = base_url.starts_with("http:");
    let url = url::Url::parse(base_url).unwrap();
    let host = url.host_str().unwrap().to_owned();
    let hosts = if host.ends_with(".example") {
        Vec::new()
    } else {
        vec![host]
    };

    let secrets = match key {
        "" => BTreeMap::new(),
        key => BTreeMap::from([("api_key".to_owned(), SecretText::new(key))]),
    };
    ProviderLease {
        room: None,
        log: None,
        label: "provider.signing acme".into(),
        settings: Arc::new(BTreeMap::from([(
            "base_url".to_owned(),
            base_url.to_owned(),
        )])),
        secrets: Arc::new(secrets),
        egress: NetworkAccess::network(
            guard::client(AllowedAddresses::public(insecure)).unwrap(),
            hosts,
            Duration::from_secs(2),
            AllowedAddresses::public(insecure),
        ),
        clock: Clock::default(),
    }
}

/// `fetch` takes the same path as the host's own interface: one allow-list, one address guard,
/// no redirects, and secrets that the plugin can name but not read.
#[tokio::test(flavor = "multi_thread")]
async fn a_plugins_fetch_obeys_the_egress_policy() {
    let vendor = ExampleSign::start().await;
    let components = node_with(plugin(in_javascript(Slot::Signing)));
    let plugin = components.signing(None, "bad");
    let read = async |base_url: &str, key: &str| match plugin
        .read_submission(lease(base_url, key), "s-9")
        .await
    {
        Ok(_) => "worked".to_owned(),
        Err(error) => error.to_string(),
    };

    let unknown = ProviderError::NotFound.to_string();
    assert_eq!(read(&vendor.url, KEY).await, unknown, "it was asked");

    let refused = read(&vendor.url, "another key").await;
    assert!(refused.contains("does not accept api_key"), "{refused}");

    let asked = vendor.asked().len();
    for (base_url, key) in [
        // Not on the list.
        ("https://elsewhere.example", KEY),
        // Internal addresses, literally and by name.
        ("https://127.0.0.1:1", KEY),
        ("https://localhost:1", KEY),
        ("https://169.254.169.254", KEY),
    ] {
        let told = read(base_url, key).await;
        assert!(told.contains("no answer"), "{base_url}: {told}");
    }

    let told = read(&vendor.url, "").await;
    assert!(told.contains("secret api_key"), "{told}");

    let redirected = format!("{}/elsewhere", vendor.url);
    let lease = lease(&redirected, KEY);
    let told = plugin.add_fields(lease, "t-1", &[]).await.unwrap_err();
    assert!(told.to_string().contains("answered 302"), "{told}");
    assert_eq!(vendor.asked().len(), asked + 1);
}

/// An existing folder is left unchanged, and the plugin's name has to be valid.
#[test]
fn scaffolding_a_plugin_overwrites_no_folder() {
    let within = tempfile::tempdir().unwrap();
    let folder = begun(Slot::Signing, "rust", within.path());
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    assert!(manifest.contains("name = \"acme-sign\""), "{manifest}");

    fs::write(folder.join("Cargo.toml"), "mine").unwrap();
    for (place, told) in [
        (folder.clone(), "is there already"),
        (within.path().join("Acme Sign"), "lower-case letters"),
    ] {
        let place = place.to_str().unwrap();
        let arguments = [
            "component",
            "new",
            "--slot",
            "provider.signing",
            "--lang",
            "js",
            place,
        ];

        let (began, said) = holdfast(&arguments);
        assert!(!began && said.contains(told), "{said}");
    }

    assert_eq!(
        fs::read_to_string(folder.join("Cargo.toml")).unwrap(),
        "mine"
    );
}

/// Input that is not a core module is refused.
#[test]
fn only_a_core_module_is_encoded_as_a_component() {
    let within = tempfile::tempdir().unwrap();
    let (module, component) = (within.path().join("a.wasm"), within.path().join("b.wasm"));
    fs::write(&module, "no module").unwrap();
    let (module, to) = (module.to_str().unwrap(), component.to_str().unwrap());
    let plain: &[&str] = &["component", "encode", module, to];
    let of_a_slot: &[&str] = &[
        "component",
        "encode",
        "--slot",
        "provider.signing",
        module,
        to,
    ];
    for arguments in [plain, of_a_slot] {
        let (encoded, said) = holdfast(arguments);
        assert!(
            !encoded && said.contains("is no module of a component"),
            "{said}"
        );
        assert!(!component.exists());
    }

    let (encoded, said) = holdfast(&["component", "encode", "--slot", "nothing", module, to]);
    assert!(!encoded && said.contains("unknown slot"), "{said}");
}

/// The built-in plugins have test scripts too.
#[tokio::test(flavor = "multi_thread")]
async fn the_docuseal_plugin_follows_its_test_script() {
    let text = include_str!("../../../plugins/signing-docuseal/far-end.json");
    follows_its_test_script(Slot::Signing, text).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stripe_plugin_follows_its_test_script() {
    let text = include_str!("../../../plugins/payment-stripe/far-end.json");
    follows_its_test_script(Slot::Payment, text).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_method_plugin_follows_its_test_script() {
    let text = include_str!("../../../plugins/kba-method/far-end.json");
    follows_its_test_script(Slot::Kba, text).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_twilio_plugin_follows_its_test_script() {
    let text = include_str!("../../../plugins/messaging-twilio/far-end.json");
    follows_its_test_script(Slot::Messaging, text).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gotenberg_plugin_follows_its_test_script() {
    let text = include_str!("../../../plugins/conversion-gotenberg/far-end.json");
    follows_its_test_script(Slot::Conversion, text).await;
}

async fn follows_its_test_script(slot: Slot, text: &str) {
    let artifact = embedded().find(|artifact| artifact.slot == slot);
    let artifact = artifact.unwrap();
    let components = node_with(artifact.clone());
    let script = FarEndScript::parse(text).unwrap();
    if let Err(reasons) = components.rehearse(artifact, &script).await {
        panic!("{reasons:#?}");
    }
}
