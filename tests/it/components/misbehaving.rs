//! Plugins that misbehave. Each call fails by itself, with a named reason that an operator can
//! look up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::response::IntoResponse as _;
use holdfast::components::egress::NetworkAccess;
use holdfast::components::providers::{ProviderError, ProviderLease};
use holdfast::components::{
    ActivationTable, ComponentArtifact, ComponentRegistry, LiveActivation, embedded,
};
use holdfast::config::SecretText;
use holdfast::config::limits::{AllLimits, LimitSettings};
use holdfast::delivery::guard::{self, AllowedAddresses};
use holdfast::domain::clock::{Clock, Timestamp};
use holdfast::domain::component::Slot;
use holdfast::domain::id::{ActivationId, ComponentId};
use holdfast_test_guests::MISBEHAVING;
use serde_json::{Value, json};

use crate::service::components::registry::variant;
use crate::support::rewrite::with_work;
use crate::support::{CONTRACT, TestApp};

fn node() -> ComponentRegistry {
    node_with(ComponentArtifact::uploaded(
        Slot::Signing,
        "misbehaving",
        "1.0.0",
        MISBEHAVING.into(),
    ))
}

/// Returns the components of a node with short limits and the plugin as instance `bad` of the
/// slot `provider.signing`.
pub fn node_with(artifact: ComponentArtifact) -> ComponentRegistry {
    let cache = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let cache = cache.join("native-code-of-component-tests");
    let limits: BTreeMap<String, LimitSettings> = serde_json::from_value(json!({
        "provider.signing": { "deadline": "5s", "output_bytes": 1 << 20 },
    }))
    .unwrap();
    let limits = AllLimits::new(&limits).unwrap();
    let components = ComponentRegistry::load(cache, [9; 32], limits, Clock::default()).unwrap();
    components.add(&artifact).unwrap();

    let mut activations = ActivationTable::default();
    let live = LiveActivation {
        activation: ActivationId::new(),
        effective_at: Timestamp::from_millis(0),
        component: ComponentId::new(),
        identity: artifact.identity,
        config: None,
    };
    activations.add(Slot::Signing, None, "bad".into(), live);

    components.switch(activations);
    components
}

/// The plugin's vendor, and the number of requests to its private part.
struct FarEnd {
    base_url: String,
    private: Arc<AtomicUsize>,
}

async fn far_end() -> FarEnd {
    let private = Arc::new(AtomicUsize::new(0));
    let asked = private.clone();
    let inner = Router::new().fallback(move || {
        let asked = asked.clone();
        async move {
            asked.fetch_add(1, Ordering::Relaxed);
            "secret"
        }
    });
    let inner_address = serve(inner).await;
    let redirect = format!("http://{inner_address}/inside");
    let router = Router::new()
        .route("/ok", axum::routing::get(async || "fine"))
        .route(
            "/redirect",
            axum::routing::get(move || async move {
                (http::StatusCode::FOUND, [("location", redirect)]).into_response()
            }),
        )
        .route(
            "/slow",
            axum::routing::get(async || {
                let drip = futures::stream::unfold((), |()| async {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    Some((Ok::<_, std::io::Error>("."), ()))
                });
                axum::body::Body::from_stream(drip).into_response()
            }),
        );

    FarEnd {
        base_url: format!("http://{}", serve(router).await),
        private,
    }
}

async fn serve(router: Router) -> std::net::SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

fn lease(far_end: &FarEnd, behaviour: &str, base_url: Option<&str>) -> ProviderLease {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let base_url = base_url.unwrap_or(&far_end.base_url);
    let insecure = base_url.starts_with("http:");
    let allowed = AllowedAddresses::public(insecure);
    let client = guard::client(allowed.clone()).unwrap();
    let host = url::Url::parse(base_url).unwrap();
    let host = host.host_str().unwrap().to_owned();

    let settings = [("behaviour", behaviour), ("base_url", base_url)]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let secrets = [("api_key".to_owned(), SecretText::new("the key"))];
    ProviderLease {
        room: None,
        log: None,
        label: "provider.signing bad".into(),
        settings: Arc::new(BTreeMap::from(settings)),
        secrets: Arc::new(BTreeMap::from(secrets)),
        egress: NetworkAccess::network(client, vec![host], Duration::from_secs(1), allowed),
        clock: Clock::default(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_misbehaviour_fails_its_own_call_with_a_named_reason() {
    let (components, far_end) = (node(), far_end().await);
    let plugin = components.signing(None, "bad");
    let ended = async |behaviour: &str, base_url: Option<&str>| {
        let lease = lease(&far_end, behaviour, base_url);
        let document = bytes::Bytes::from_static(CONTRACT);
        let ended = plugin
            .create_template(lease, "A", "tmpl_1", document, &[])
            .await;
        match ended {
            Ok(_) => "worked".to_owned(),
            Err(ProviderError::Component(error)) => error.kind.to_string(),
            Err(error) => error.to_string(),
        }
    };
    for (behaviour, reason) in [
        ("well", "worked"),
        ("ok", "worked"),
        (
            "loop",
            "of processor time on this machine; the limit `components.limits.\"provider.signing\".cpu` is 200 ms",
        ),
        (
            "memory",
            "the limit `components.limits.\"provider.signing\".memory_bytes` is 100663296",
        ),
        ("recursion", "trapped"),
        ("trap", "trapped"),
        ("output", "gave an unusable answer"),
        (
            "host-calls",
            "the limit `components.limits.\"provider.signing\".host_calls` is 2000",
        ),
        ("requests", "more than 16 requests in one call"),
        (
            "forbidden-host",
            "elsewhere.example is not on the allow-list",
        ),
        ("exfiltration", "elsewhere.example is not on the allow-list"),
        ("redirect", "status 302"),
        ("slow", "no answer in time"),
    ] {
        let told = ended(behaviour, None).await;
        assert!(told.contains(reason), "{behaviour}: {told}");
    }

    // Internal addresses, literally and by a name that resolves to one.
    for (base_url, reason) in [
        ("https://127.0.0.1:1", "denied"),
        ("https://localhost:1", "denied"),
        ("https://169.254.169.254", "denied"),
    ] {
        let told = ended("latest/meta-data", Some(base_url)).await;
        assert!(
            told.contains(reason) || told.contains("not public") || told.contains("refused"),
            "{base_url}: {told}"
        );
    }

    assert_eq!(far_end.private.load(Ordering::Relaxed), 0);
}

/// An organization's plugin does all of that at once without any effect on requests of other
/// organizations.
#[tokio::test(flavor = "multi_thread")]
async fn a_misbehaving_plugin_does_not_affect_two_hundred_other_requests() {
    let insecure = |config: &mut holdfast::config::Config| {
        config.providers.allow_insecure = true;
        let limits = json!({ "provider.signing": { "output_bytes": 1 << 20 } });
        config.components.limits = serde_json::from_value(limits).unwrap();
    };
    let app = TestApp::with(insecure, Default::default()).await;
    let far_end = far_end().await;

    let admin = app.admin();
    let component = app
        .upload_component(&admin, "misbehaving", "1.0.0", MISBEHAVING)
        .await
        .data(201);
    let other = app.other_organization().await;
    let field = json!([{
        "name": "Signature", "type": "signature", "role": "Buyer", "required": true,
        "placement": { "mode": "absolute", "areas": [{ "page": 1, "x": 0.1, "y": 0.1, "w": 0.3, "h": 0.03 }] },
    }]);
    let texts = [("name", "Contract"), ("fields_json", &field.to_string())];
    let template = app
        .upload_as(
            &other,
            "/partner/templates",
            "application/pdf",
            CONTRACT,
            &texts,
        )
        .await
        .data(200);

    let healthy = async || {
        let body = crate::support::envelope_body(&template["template_id"]);
        let began = Instant::now();
        let answer = app.post_as(&other, "/partner/envelopes", body).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
        began.elapsed()
    };
    let crowd = async || {
        let mut taken = futures::future::join_all((0..200).map(|_| healthy())).await;
        taken.sort();
        taken[taken.len() * 99 / 100]
    };
    crowd().await;

    let alone = crowd().await;

    for behaviour in [
        "loop",
        "memory",
        "recursion",
        "trap",
        "output",
        "host-calls",
        "requests",
        "forbidden-host",
        "redirect",
        "slow",
    ] {
        let config = json!({
            "base_url": far_end.base_url, "settings": { "behaviour": behaviour },
            "secrets": { "api_key": "the key" }, "timeout_seconds": 1,
        });
        let activate = json!({
            "component_id": component["component_id"], "instance": "bad", "config": config,
        });

        let path = "/component-slots/provider.signing/activate";
        let activation = app.post_with_bearer(&admin, path, activate).await;
        assert!(
            !activation.text().contains("the key"),
            "secrets are not shown"
        );

        activation.data(201);
        let misdeeds = async {
            for _ in 0..4 {
                let answer = app
                    .upload(
                        "/partner/templates",
                        "application/pdf",
                        CONTRACT,
                        &[("name", "A")],
                    )
                    .await;
                assert_eq!(
                    answer.error(502),
                    "Signing provider request failed",
                    "{behaviour}"
                );
            }
        };

        let ((), p99) = tokio::join!(misdeeds, crowd());
        println!(
            "{behaviour}: p99 of 200 healthy requests {:.0} ms, {:.0} ms without it",
            p99.as_secs_f64() * 1e3,
            alone.as_secs_f64() * 1e3
        );
    }

    assert_eq!(far_end.private.load(Ordering::Relaxed), 0);
}

/// Activates a component as the organization's signing provider, with this behaviour.
async fn activate(app: &TestApp, admin: &str, component: &Value, base_url: &str, behaviour: &str) {
    let config = json!({
        "base_url": base_url, "settings": { "behaviour": behaviour },
        "secrets": { "api_key": "the key" }, "timeout_seconds": 5,
    });
    let activate = json!({
        "component_id": component["component_id"], "instance": "own", "config": config,
    });

    let path = "/component-slots/provider.signing/activate";
    app.post_with_bearer(admin, path, activate).await.data(201);
}

/// One organization's plugin gets more calls than its share, and each holds memory, a processor
/// or a connection as long as it can. Meanwhile another organization's plugin and the built-in
/// provider respond.
#[tokio::test(flavor = "multi_thread")]
async fn an_overloaded_plugin_does_not_starve_other_plugins() {
    let insecure = |config: &mut holdfast::config::Config| {
        config.providers.allow_insecure = true;
    };
    let app = TestApp::with(insecure, Default::default()).await;
    let far_end = far_end().await;
    let (busy, busy_admin) = app.other_tenant().await;
    let (quiet, quiet_admin) = app.other_tenant().await;

    let uploaded = async |admin: &str| {
        app.upload_component(admin, "misbehaving", "1.0.0", MISBEHAVING)
            .await
            .data(201)
    };
    let (well, ill) = (uploaded(&quiet_admin).await, uploaded(&busy_admin).await);
    activate(&app, &quiet_admin, &well, &far_end.base_url, "well").await;

    let template = app.contract_template().await;
    let field = json!([{
        "name": "Signature", "type": "signature", "role": "Buyer", "required": true,
        "placement": { "mode": "absolute", "areas": [{ "page": 1, "x": 0.1, "y": 0.1, "w": 0.3, "h": 0.03 }] },
    }])
    .to_string();
    let texts = [("name", "Contract"), ("fields_json", field.as_str())];
    let upload = |key: &str| {
        let key = key.to_owned();
        let (app, texts) = (&app, &texts);
        async move {
            let path = "/partner/templates";
            app.upload_as(&key, path, "application/pdf", CONTRACT, texts)
                .await
        }
    };
    for behaviour in ["slow", "memory", "loop"] {
        activate(&app, &busy_admin, &ill, &far_end.base_url, behaviour).await;
        let (ended, began) = (AtomicUsize::new(0), Instant::now());
        let load = futures::future::join_all((0..64).map(|_| async {
            loop {
                let answer = upload(&busy).await;
                let status = answer.status.as_u16();
                let text = answer.text();
                assert!([502, 503].contains(&status), "{behaviour}: {text}");
                ended.fetch_add(1, Ordering::Relaxed);
            }
        }));

        let others = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            for _ in 0..10 {
                upload(&quiet).await.data(200);
                let body = crate::support::envelope_body(&template["template_id"]);
                app.post("/partner/envelopes", body).await.data(201);
            }
        };
        tokio::select! {
            _ = load => unreachable!("it goes on and on"),
            () = others => {}
        }

        let (ended, time) = (ended.into_inner(), began.elapsed().as_secs_f64());
        match behaviour {
            // Slow calls run into their time limit, so the test does not wait for all of them.
            "slow" => assert!(ended < 64, "{ended}"),
            // Each has 200 ms of processor time: half a second at once, a fifth of a
            // processor later, and what calls under way may take beyond that.
            "loop" => assert!((ended as f64) < 8.0 + time, "{ended} in {time} s"),
            _ => {}
        }
    }
}

/// Only administrators of its organization see why an instance fails.
async fn an_instance_log_has_failed_requests_and_calls(
    change: impl FnOnce(&mut holdfast::config::Config),
) {
    let insecure = |config: &mut holdfast::config::Config| {
        config.providers.allow_insecure = true;
        change(config);
    };
    let app = TestApp::with(insecure, Default::default()).await;
    let far_end = far_end().await;
    let admin = app.admin();
    let component = app
        .upload_component(&admin, "misbehaving", "1.0.0", MISBEHAVING)
        .await
        .data(201);

    let field = json!([{
        "name": "Signature", "type": "signature", "role": "Buyer", "required": true,
        "placement": { "mode": "absolute", "areas": [{ "page": 1, "x": 0.1, "y": 0.1, "w": 0.3, "h": 0.03 }] },
    }])
    .to_string();
    for behaviour in ["missing?q=personal", "forbidden-host", "trap"] {
        activate(&app, &admin, &component, &far_end.base_url, behaviour).await;
        let texts = [("name", "Contract"), ("fields_json", field.as_str())];
        let answer = app
            .upload("/partner/templates", "application/pdf", CONTRACT, &texts)
            .await;
        assert!(
            answer.status.is_server_error() || answer.status.is_client_error(),
            "{behaviour}"
        );
    }

    let path = "/component-slots/provider.signing/log";
    let lines = app.get_with_bearer(&admin, path).await.data(200);
    let lines = lines.as_array().unwrap();
    let told: Vec<(&str, &str)> = lines
        .iter()
        .map(|line| {
            (
                line["level"].as_str().unwrap(),
                line["message"].as_str().unwrap(),
            )
        })
        .collect();

    let host = url::Url::parse(&far_end.base_url).unwrap();
    let host = host.host_str().unwrap();
    assert_eq!(told[0].0, "error", "{told:?}");
    assert!(told[0].1.starts_with("call failed: "), "{told:?}");
    assert_eq!(
        told[1],
        (
            "warn",
            "request: host elsewhere.example is not on the allow-list of this instance"
        )
    );
    assert_eq!(
        told[2],
        (
            "warn",
            format!("GET {host}/missing: 404 Not Found").as_str()
        )
    );

    assert_eq!(lines[0]["component"], "misbehaving 1.0.0");
    assert!(
        lines.iter().all(|line| line["instance"] == "own"),
        "{lines:?}"
    );

    let text = json!(lines).to_string();
    assert!(
        !text.contains("personal") && !text.contains("the key"),
        "{text}"
    );

    // Pages, instances and refusals.
    let first = app
        .get_with_bearer(&admin, &format!("{path}?limit=1"))
        .await
        .json();
    assert_eq!(first["data"][0], lines[0], "{first}");

    let next = format!(
        "{path}?limit=1&starting_after={}",
        lines[0]["line_id"].as_str().unwrap()
    );
    assert_eq!(
        app.get_with_bearer(&admin, &next).await.data(200)[0],
        lines[1]
    );

    let other = app
        .get_with_bearer(&admin, &format!("{path}?instance=other"))
        .await
        .data(200);
    assert_eq!(other, json!([]));

    let (_, stranger) = app.other_tenant().await;
    let foreign = app.get_with_bearer(&stranger, path).await.data(200);
    assert_eq!(foreign, json!([]), "of another organization");

    for (path, status) in [
        ("/component-slots/rules.compliance/log", 422),
        ("/component-slots/nothing/log", 404),
        ("/component-slots/provider.signing/log?limit=0", 400),
        (
            "/component-slots/provider.signing/log?starting_after=env_1",
            400,
        ),
    ] {
        let answer = app.get_with_bearer(&admin, path).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
    }

    let compliance = app.token("compliance");
    app.get_with_bearer(&compliance, path).await.error(403);

    // Lines are kept for thirty days.
    let later = app.as_of(Duration::from_secs(31 * 86_400)).await;
    let admin = later.admin();
    for _ in 0..100 {
        if later.get_with_bearer(&admin, path).await.data(200) == json!([]) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }

    panic!("old lines are not deleted");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_log_has_failed_requests_and_calls_on_sqlite() {
    an_instance_log_has_failed_requests_and_calls(|_| {}).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_log_has_failed_requests_and_calls_on_postgresql() {
    let database = crate::support::postgres::new_database().await;
    an_instance_log_has_failed_requests_and_calls(|config| config.database_url = Some(database))
        .await;
}

/// Admission calls every function of a plugin, including those that are rarely used.
#[tokio::test(flavor = "multi_thread")]
async fn every_function_of_a_world_is_called_before_a_component_is_admitted() {
    let app = TestApp::start().await;
    let admin = app.admin();
    let signing = "holdfast:signing/signing@1.0.0";
    let moves = embedded().find(|one| one.slot == Slot::Lifecycle);
    let moves = moves.unwrap().bytes().to_vec();

    let batch = "holdfast:lifecycle/lifecycle@1.0.0#batch".to_owned();
    for (name, bytes, function, rounds) in [
        (
            "read",
            MISBEHAVING,
            format!("{signing}#read-template"),
            u32::MAX / 4,
        ),
        (
            "archive",
            MISBEHAVING,
            format!("{signing}#archive-template"),
            u32::MAX / 4,
        ),
        ("batch", &moves[..], batch, 500_000),
    ] {
        let bytes = with_work(bytes, &function, rounds);
        let refused = app.upload_component(&admin, name, "1.0.0", &bytes).await;
        let reasons = refused.json()["details"].to_string();
        assert_eq!(
            refused.error(422),
            "The component is not admitted",
            "{name}"
        );

        let function = function.split_once('#').unwrap().1;
        assert!(
            reasons.contains(function) && reasons.contains("; the limit `components.limits."),
            "{reasons}"
        );
    }
}

/// Admission has no vendor to talk to, so it cannot reach code behind a successful response.
#[tokio::test(flavor = "multi_thread")]
async fn functions_not_covered_by_admission_are_listed() {
    let app = TestApp::start().await;
    let admin = app.admin();
    let bytes = variant(Slot::Signing, "looked at");
    let plugin = app.upload_component(&admin, "plugin", "1.0.0", &bytes);
    let plugin = plugin.await.data(201);
    let listed = plugin["conformance"]["not_reached"].as_array().unwrap();
    for function in [
        "create-template",
        "read-template",
        "signed-document",
        "read-callback",
    ] {
        assert!(listed.contains(&json!(function)), "{function}: {listed:?}");
    }

    assert!(!listed.contains(&json!("archive-submission")), "{listed:?}");
    let bytes = variant(Slot::Compliance, "looked at");
    let rules = app.upload_component(&admin, "rules", "1.0.0", &bytes);
    assert_eq!(
        rules.await.data(201)["conformance"]["not_reached"],
        json!([])
    );
}

/// Files that are not plugins, or plugins for another slot or another host.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_world_is_refused_with_the_interface_at_fault() {
    let app = TestApp::start().await;
    let admin = app.admin();
    let reasons_of = async |wit: &[&str], world: &str| {
        let bytes = dummy(wit, world);
        let answer = app.upload_component(&admin, "dummy", "1.0.0", &bytes).await;
        let details = answer.json()["details"].clone();
        assert_eq!(answer.error(422), "The component is not admitted");

        (
            details[0]["code"].as_str().unwrap().to_owned(),
            details[0]["message"].as_str().unwrap().to_owned(),
        )
    };

    let reasons = async |wit: &str, world: &str| reasons_of(&[wit], world).await;
    let compliance = std::fs::read_to_string("../wit/compliance/compliance.wit").unwrap();
    let sockets = compliance.replace(
        "world compliance-rules {",
        "interface tcp { connect: func(); }\nworld compliance-rules {\n    import tcp;",
    );
    let (code, text) = reasons(&sockets, "compliance-rules").await;
    assert_eq!(code, "import_not_granted");
    assert_eq!(
        text,
        "imports `holdfast:compliance/tcp@1.0.0`, which the world `compliance-rules` does not grant"
    );

    let next = compliance.replace("compliance@1.0.0;", "compliance@2.0.0;");
    let (code, text) = reasons(&next, "compliance-rules").await;
    assert_eq!(code, "interface_version");
    assert!(text.contains("this host knows major version 1"), "{text}");

    let wider = compliance.replace(
        "envelope-name: string,",
        "envelope-name: string, more: string,",
    );
    let (code, text) = reasons(&wider, "compliance-rules").await;
    assert_eq!(code, "type_mismatch");
    assert!(text.contains("14") && text.contains("15"), "{text}");

    // A newer minor version links by its major version, but needs imports that this host lacks.
    let newer = wider.replace("compliance@1.0.0;", "compliance@1.7.0;");
    let (code, text) = reasons(&newer, "compliance-rules").await;
    assert_eq!(code, "type_mismatch");
    assert!(text.contains("14") && text.contains("15"), "{text}");

    let host = std::fs::read_to_string("../wit/host/host.wit").unwrap();
    let signing = std::fs::read_to_string("../wit/signing/signing.wit").unwrap();
    let newer = host.replace("host@1.0.0;", "host@1.7.0;").replace(
        "now: func() -> u64;",
        "now: func() -> u64; zone: func() -> string;",
    );
    let asks = signing.replace("holdfast:host/clock@1.0.0", "holdfast:host/clock@1.7.0");
    let (code, text) = reasons_of(&[&host, &newer, &asks], "signing-provider").await;
    assert_eq!(code, "type_mismatch");
    assert!(text.contains("zone"), "{text}");

    // WASI is offered without sockets and in one version only.
    for (package, code, told) in [
        (
            "wasi:sockets@0.2.0",
            "import_not_granted",
            "imports `wasi:sockets/tcp@0.2.0`, which the world `signing-provider` does not grant",
        ),
        (
            "wasi:http@0.3.0",
            "interface_version",
            "imports `wasi:http/types@0.3.0`; this host has WASI 0.2",
        ),
    ] {
        let (name, version) = package.split_once('@').unwrap();
        let interface = if name == "wasi:http" { "types" } else { "tcp" };
        let wasi = format!("package {package};\ninterface {interface} {{ open: func(); }}");
        let import = format!("{{\n    import {name}/{interface}@{version};");
        let asks = signing.replace(
            "world signing-provider {",
            &format!("world signing-provider {import}"),
        );
        let (found, text) = reasons_of(&[&host, &wasi, &asks], "signing-provider").await;
        assert_eq!((found.as_str(), text.as_str()), (code, told));
    }

    let unknown = "package acme:tax@1.0.0;\ninterface tax { rate: func() -> u32; }\nworld tax-rules { export tax; }";
    let (code, text) = reasons(unknown, "tax-rules").await;
    assert_eq!(code, "unknown_world");
    assert!(text.contains("exports `acme:tax/tax@1.0.0`"), "{text}");

    // The right world, but every export traps.
    let (code, text) = reasons(&compliance, "compliance-rules").await;
    assert_eq!(code, "type_mismatch");
    assert!(text.contains("trapped"), "{text}");
}

/// Returns a component of this world in which every export traps.
pub fn dummy(wit: &[&str], world: &str) -> Vec<u8> {
    let mut resolve = wit_parser::Resolve::default();
    let packages = wit
        .iter()
        .map(|text| resolve.push_source("dummy.wit", text).unwrap());
    let package = packages.last().unwrap();
    let world = resolve.select_world(&[package], Some(world)).unwrap();
    let mangling = wit_parser::ManglingAndAbi::Standard32;
    let mut module = wit_component::dummy_module(&resolve, world, mangling);

    let encoding = wit_component::StringEncoding::UTF8;
    wit_component::embed_component_metadata(&mut module, &resolve, world, encoding).unwrap();
    wit_component::ComponentEncoder::default()
        .module(&module)
        .unwrap()
        .encode()
        .unwrap()
}

/// A modified file in the native code cache is detected, and the code is compiled again.
#[tokio::test(flavor = "multi_thread")]
async fn a_corrupted_native_code_cache_is_recompiled() {
    let folder = tempfile::tempdir().unwrap();
    let load = || {
        let components = ComponentRegistry::with_defaults(folder.path().into(), [3; 32]).unwrap();
        let bytes = variant(Slot::Compliance, "cached");
        let artifact =
            ComponentArtifact::uploaded(Slot::Compliance, "cached", "1.0.0", bytes.into());
        components.add(&artifact).unwrap();
        components.has(Slot::Compliance, &artifact.identity)
    };
    assert!(load());

    for file in std::fs::read_dir(folder.path()).unwrap() {
        let path = file.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xff;
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
    }

    assert!(load());
}
