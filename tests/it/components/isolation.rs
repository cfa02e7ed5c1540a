//! Isolation of an organization's components: they cannot delay, exhaust or break the service
//! for other organizations.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{Request, StatusCode};
use holdfast::components::{
    ActivationTable, ComponentArtifact, ComponentRegistry, LiveActivation, embedded,
};
use holdfast::config::Config;
use holdfast::domain::clock::Timestamp;
use holdfast::domain::component::Slot;
use holdfast::domain::id::{ActivationId, ComponentId, OrgId};
use holdfast::domain::organization::OrgSettings;
use serde_json::{Value, json};

use crate::service::components::registry::variant;
use crate::support::TestApp;
use crate::support::rewrite::with_work;

/// An organization with its own rules and another one without, each with an envelope.
struct NeighbouringTenants {
    app: TestApp,
    component: Value,
    envelope: String,
    other_key: String,
    other_envelope: String,
}

async fn neighbours(note: &str) -> NeighbouringTenants {
    let app = TestApp::start().await;
    let officer = app.token("compliance");
    let bytes = variant(Slot::Compliance, note);
    let component = app
        .upload_component(&officer, "own-rules", "1.0.0", &bytes)
        .await
        .data(201);
    let body = json!({ "component_id": component["component_id"] });

    let path = "/component-slots/rules.compliance/activate";
    app.post_with_bearer(&officer, path, body).await.data(201);
    let paper = json!({
        "envelope_name": "Lease", "envelope_kind": "paper",
        "customer_email": "jordan.lee@example.com", "customer_name": "Jordan Lee",
    });
    let other_key = app.other_organization().await;

    let made = async |key: &str| {
        let made = app.post_as(key, "/partner/envelopes", paper.clone()).await;
        made.data(201)["envelope_id"].as_str().unwrap().to_owned()
    };
    let (envelope, other_envelope) = (made(&app.key).await, made(&other_key).await);
    NeighbouringTenants {
        envelope,
        other_envelope,
        other_key,
        component,
        app,
    }
}

impl NeighbouringTenants {
    /// Removes the component's native code, and with `bytes_too` also its bytes.
    fn lose(&self, bytes_too: bool) {
        let sha256 = self.component["sha256"].as_str().unwrap();
        let data = self.app.data.path();
        let native: Vec<PathBuf> = std::fs::read_dir(data.join("native-code"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.to_str().unwrap().contains(sha256))
            .collect();
        assert!(!native.is_empty());

        for file in native {
            std::fs::remove_file(file).unwrap();
        }

        if bytes_too {
            let object = format!("components/{sha256}.wasm");
            std::fs::remove_file(data.join("objects").join(object)).unwrap();
        }
    }

    async fn compliance(&self, node: &TestApp, other: bool) -> crate::support::TestResponse {
        let (key, envelope) = if other {
            (&self.other_key, &self.other_envelope)
        } else {
            (&self.app.key, &self.envelope)
        };
        let path = format!("/partner/envelopes/{envelope}/compliance");
        node.get_as(key, &path).await
    }
}

/// Requests `/readyz`, after the document components have been loaded.
async fn readiness(node: &TestApp) -> (StatusCode, Value) {
    node.sent_to_two().await;
    // Sending a document has loaded the components that readiness reports.
    let request = Request::get("/readyz").body(Body::empty()).unwrap();
    let answer = node.send(request).await;
    (answer.status, answer.json()["checks"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_component_affects_only_its_organization() {
    let all = neighbours("lost with its bytes").await;
    all.lose(true);
    let node = all.app.another_node(|_| {}).await;
    assert_eq!(all.compliance(&node, true).await.status, 200);

    let refused = all.compliance(&node, false).await;
    assert_eq!(refused.headers["retry-after"], "5");
    assert_eq!(
        refused.error(503),
        "This organization's component cannot answer right now"
    );

    let (status, checks) = readiness(&node).await;
    assert_eq!(status, 200, "{checks}");

    let officer = all.app.token("compliance");
    let deadline = Instant::now() + Duration::from_secs(60);
    let shown = async |token: &str| {
        let slots = node.get_with_bearer(token, "/component-slots").await;
        let slots = slots.data(200);
        let mut slots = slots.as_array().unwrap().iter();
        let slot = slots.find(|slot| slot["slot"] == "rules.compliance");
        slot.unwrap()["problem"].clone()
    };
    while shown(&officer).await != "its bytes cannot be read" {
        assert!(Instant::now() < deadline, "the reason is not shown");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(shown(&all.app.other_admin()).await, Value::Null);
}

/// Configures a compiler that never ends.
pub fn stuck_compiler(config: &mut Config) {
    let program = config.data_dir.join("stuck");
    std::fs::write(&program, "#!/bin/sh\nexec sleep 600\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    config.components.compiler = Some(program);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_starts_and_is_ready_while_an_organizations_component_is_compiled() {
    let all = neighbours("compiled for minutes").await;
    all.lose(false);
    let began = Instant::now();
    let start = all.app.another_node(stuck_compiler);
    let node = tokio::time::timeout(Duration::from_secs(60), start).await;
    let node = node.expect("the start waits for an organization's component");
    let waiting = all.compliance(&node, false);

    let others = async {
        assert_eq!(all.compliance(&node, true).await.status, 200);
        readiness(&node).await
    };
    let (waited, (status, checks)) = tokio::join!(waiting, others);
    assert_eq!(status, 200, "{checks}");
    assert_eq!(waited.status, 503, "{}", waited.text());

    println!("started and answered in {:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_with_an_unreachable_provider_is_ready_and_reports_it() {
    // Nothing listens there.
    let settings = json!({ "base_url": "http://127.0.0.1:9", "secrets": {
        "api_key": "key", "webhook_secret": "whsec_secret",
    } });
    let down = |config: &mut Config| {
        config.providers.allow_insecure = true;
        let instance = serde_json::from_value(settings.clone()).unwrap();
        let instances = &mut config.providers.signing.instances;
        instances.insert("cloud".into(), instance);
    };
    let app = TestApp::with(&down, OrgSettings::default()).await;
    let (status, checks) = readiness(&app).await;
    assert_eq!(status, 200, "{checks}");

    let names: Vec<&String> = checks.as_object().unwrap().keys().collect();
    assert_eq!(
        names,
        ["database", "storage", "disk", "ledger", "components"]
    );

    let by_default = |config: &mut Config| {
        down(config);
        config.providers.signing.default = "cloud".into();
    };
    let node = app.another_node(by_default).await;
    let contract = crate::support::CONTRACT;
    let refused = node
        .upload(
            "/partner/templates",
            "application/pdf",
            contract,
            &[("name", "A")],
        )
        .await;
    assert_eq!(refused.error(502), "Signing provider request failed");

    let metrics = node.metrics().await;
    let gauge = "holdfast_provider_reachable{slot=\"provider.signing\",instance=\"cloud\"} 0";
    assert!(metrics.contains(gauge), "{metrics}");

    let file = app.data.path().join("doctor.toml");
    let settings = "[providers]\nallow_insecure = true\n[providers.signing.cloud]\n\
         base_url = \"http://127.0.0.1:9\"\n\
         secrets = { api_key = \"key\", webhook_secret = \"whsec_secret\" }\n";
    std::fs::write(&file, settings).unwrap();
    let arguments = ["--config", file.to_str().unwrap(), "doctor"];
    let said = crate::support::operator_output(app.data.path(), &arguments);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(
        said.contains("provider.signing cloud cannot be reached"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn unauthenticated_callbacks_of_an_instance_are_limited() {
    let few = |config: &mut Config| config.providers.callbacks_per_minute = Some(3);
    let app = TestApp::with(few, OrgSettings::default()).await;
    let call_back = async |kind: &str, instance: &str| {
        let path = format!("/api/v2/callbacks/{kind}/{instance}");
        app.send(Request::post(path).body(Body::from("{}")).unwrap())
            .await
    };
    for _ in 0..3 {
        let forged = call_back("signing", "embedded").await;
        assert_eq!(forged.error(401), "Callback could not be verified");
    }

    let refused = call_back("signing", "embedded").await;
    let wait: u32 = refused.headers["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert_eq!(
        refused.error(429),
        "Too many callbacks of this provider instance"
    );
    assert_eq!(call_back("payment", "embedded").await.status, 401);

    for _ in 0..5 {
        let unknown = call_back("signing", "nowhere").await;
        assert_eq!(unknown.error(404), "Provider instance not found");
    }
}

const ENVELOPE: &str = "holdfast:lifecycle/lifecycle@1.0.0#envelope";
const EVALUATE: &str = "holdfast:compliance/compliance@1.0.0#evaluate";

fn default_bytes(slot: Slot) -> Vec<u8> {
    let mut all = embedded();
    let default = all.find(|artifact| artifact.slot == slot).unwrap();
    default.bytes().to_vec()
}

/// Lifecycle rules run inside a write transaction, so slow rules would block all writes.
#[tokio::test(flavor = "multi_thread")]
async fn lifecycle_rules_that_are_too_slow_for_a_transaction_are_refused() {
    let app = TestApp::start().await;
    let officer = app.token("compliance");
    let quick = with_work(&default_bytes(Slot::Lifecycle), ENVELOPE, 10_000);
    app.upload_component(&officer, "quick", "1.0.0", &quick)
        .await
        .data(201);
    let slow = with_work(&default_bytes(Slot::Lifecycle), ENVELOPE, 500_000);
    let refused = app.upload_component(&officer, "slow", "1.0.0", &slow).await;
    let reasons = refused.json()["details"].clone();
    assert_eq!(refused.error(422), "The component is not admitted");
    assert!(
        reasons[0]["message"]
            .as_str()
            .unwrap()
            .contains("used up its fuel; the limit `components.limits.\"rules.lifecycle\".fuel` is 1000000 units"),
        "{reasons}"
    );
}

/// Returns the components of a node on which an organization has its own rules.
fn node_of(org: &OrgId, slot: Slot, bytes: Vec<u8>) -> ComponentRegistry {
    let cache = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let cache = cache.join("native-code-of-component-tests");
    let components = ComponentRegistry::with_defaults(cache, [9; 32]).unwrap();
    let artifact = ComponentArtifact::uploaded(slot, "own", "1.0.0", bytes.into());
    components.add(&artifact).unwrap();
    let mut activations = ActivationTable::default();
    let live = LiveActivation {
        activation: ActivationId::new(),
        effective_at: Timestamp::from_millis(0),
        component: ComponentId::new(),
        identity: artifact.identity,
        config: None,
    };
    activations.add(slot, Some(org.clone()), String::new(), live);

    components.switch(activations);
    components
}

#[tokio::test]
async fn rules_of_an_organization_do_not_block_async_threads() {
    let org = OrgId::new();
    let slow = with_work(&default_bytes(Slot::Compliance), EVALUATE, 1_000_000);
    let components = node_of(&org, Slot::Compliance, slow);
    let vectors: Value =
        serde_json::from_str(include_str!("../../../wit/compliance/vectors.json")).unwrap();
    let facts = serde_json::from_value(vectors["vectors"][0]["facts"].clone()).unwrap();
    let (done, turns) = (AtomicBool::new(false), AtomicUsize::new(0));
    let asked = async {
        let rules = components.compliance(Some(&org));
        let answer = rules.judge_for_request(&facts).await;
        assert!(answer.unwrap().evaluation.compliant);
        done.store(true, Ordering::Relaxed);
    };

    // The runtime has one thread, which has to be free for other work.
    let beside = async {
        while !done.load(Ordering::Relaxed) {
            turns.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(asked, beside);
    assert!(turns.load(Ordering::Relaxed) > 1);
}

/// An organization that used up its time slice waits, and the others do not.
#[tokio::test(flavor = "multi_thread")]
async fn rules_of_an_organization_have_a_time_slice() {
    use holdfast::components::rules::{TransitionError, lifecycle};

    let (org, other) = (OrgId::new(), OrgId::new());
    let slow = with_work(&default_bytes(Slot::Lifecycle), ENVELOPE, 120_000);
    let components = node_of(&org, Slot::Lifecycle, slow);

    // A new question each time: answers are remembered.
    let facts = |question: usize| lifecycle::EnvelopeFacts {
        kind: lifecycle::EnvelopeKind::Esign,
        has_template: true,
        is_upload: false,
        has_file: false,
        has_vault_file: false,
        payment: lifecycle::PaymentStatus::NotRequested,
        attributes: vec![("question".into(), question.to_string())],
    };

    let create = async |org: &OrgId, question: usize| {
        let rules = components.lifecycle(Some(org));
        let create = lifecycle::EnvelopeTrigger::Create;
        rules
            .envelope_for_change(None, create, &facts(question))
            .await
    };

    let mut refused = None;
    for question in 0..100_000 {
        if let Err(error) = create(&org, question).await {
            refused = Some(error);
            break;
        }
    }

    match refused.expect("it may work without end") {
        TransitionError::Component(error) => assert!(error.is_temporary(), "{error}"),
        TransitionError::Refused(refusal) => panic!("{}", refusal.message),
    }
    assert!(create(&other, 0).await.is_ok());
}

/// The process that compiles unknown bytes is the first that the kernel kills when memory runs
/// out, and can access nothing but its pipes.
#[test]
fn the_compiler_of_uploads_is_confined() {
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_holdfast"));
    let shown = child.args(["compile-component", "--confinement"]).output();
    let shown: Value = serde_json::from_slice(&shown.unwrap().stdout).unwrap();
    println!("{shown}");
    let holds = &shown["confinement"];
    assert_eq!(holds["ended_first"], true);

    let memory = holds["memory"].as_u64().unwrap();
    assert!((1..=4 << 30).contains(&memory), "{memory}");
    assert_eq!(holds["own_user"], true);
    assert_eq!(holds["filtered"], true);

    let nothing = json!({
        "reads_files": false, "opens_sockets": false, "starts_programs": false,
        "signals_processes": false,
    });
    assert_eq!(shown["reach"], nothing);
}
