//! Replacing components at run time: upload, activation, rollback.

use std::time::Duration;

use holdfast::components::embedded;
use holdfast::components::vectors::VectorSet;
use holdfast::config::Config;
use holdfast::domain::component::Slot;
use holdfast::domain::organization::OrgSettings;
use serde_json::{Value, json};
use sqlx::Row as _;

use super::changes::{self, Governance};
use crate::support::{TestApp, form};

const SLOTS: &str = "/component-slots";

/// Returns the default component of a slot with an appended note: it behaves the same and has
/// another digest.
pub fn variant(slot: Slot, note: &str) -> Vec<u8> {
    noted(slot, "", note)
}

/// Returns the plugin for DocuSeal with an appended note.
pub fn plugin_variant(note: &str) -> Vec<u8> {
    noted(Slot::Signing, "docuseal", note)
}

fn noted(slot: Slot, named: &str, note: &str) -> Vec<u8> {
    let mut bytes = embedded()
        .find(|artifact| artifact.slot == slot && artifact.identity.name.contains(named))
        .unwrap()
        .bytes()
        .to_vec();
    let name = b"note";
    let length = 1 + name.len() + note.len();
    assert!(length < 128);

    bytes.extend([0, length as u8, name.len() as u8]);
    bytes.extend(name);
    bytes.extend(note.as_bytes());

    bytes
}

/// Activates an own provider with each of these settings. Each has the expected status, and the reason
/// that the refusal or the first call gives; empty for a first call that succeeds.
pub async fn first_calls(app: &TestApp, slot: Slot, tries: &[(Value, u16, &str)]) {
    let admin = app.admin();
    let name = format!("own-provider-{}", tries.len());
    let component = uploaded(app, &admin, slot, &name, "1.0.0").await;

    let path = format!("{SLOTS}/{slot}/activate");
    for (config, status, reason) in tries {
        let body = json!({ "component_id": component["component_id"], "instance": "own", "config": config });
        let answered = app.post_with_bearer(&admin, &path, body).await;
        let given = match status {
            422 => answered.error(422),
            _ => {
                let probe = answered.data(*status)["probe"].clone();
                assert_eq!(probe["ok"], reason.is_empty(), "{probe}");
                probe["reason"].as_str().unwrap_or_default().to_owned()
            }
        };
        assert!(given.contains(reason), "{given}");
    }
}

async fn uploaded(app: &TestApp, token: &str, slot: Slot, name: &str, version: &str) -> Value {
    let bytes = variant(slot, &format!("{name} {version}"));
    app.upload_component(token, name, version, &bytes)
        .await
        .data(201)
}

async fn activate(app: &TestApp, token: &str, component: &Value, further: Value) -> Value {
    let mut body = json!({ "component_id": component["component_id"] });
    body.as_object_mut()
        .unwrap()
        .extend(further.as_object().unwrap().clone());
    let slot = component["slot"].as_str().unwrap();
    app.post_with_bearer(token, &format!("{SLOTS}/{slot}/activate"), body)
        .await
        .data(201)
}

/// Returns the component that decides about an envelope.
async fn decides(app: &TestApp, key: &str, envelope: &str) -> Value {
    let path = format!("/partner/envelopes/{envelope}/compliance");
    app.get_as(key, &path).await.data(200)["compliance"]["rules_component"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_uploaded_component_decides_from_activation_until_rollback() {
    let app = TestApp::start().await;
    let officer = app.token("compliance");
    let envelope = app.envelope_event().await;
    let before = decides(&app, &app.key, &envelope).await;
    assert_eq!(before["name"], "holdfast-compliance");

    let component = uploaded(&app, &officer, Slot::Compliance, "acme-rules", "1.0.0").await;
    assert_eq!(component["slot"], "rules.compliance");
    assert_eq!(component["world"], "compliance-rules");
    assert_eq!(component["scope"], "organization");
    assert_eq!(component["conformance"]["vectors_version"], "1.1.0");
    assert!(component["conformance"]["vectors"].as_i64().unwrap() >= 56);
    assert!(component["conformance"]["fuel"].as_i64().unwrap() > 1000);
    assert_eq!(
        decides(&app, &app.key, &envelope).await,
        before,
        "uploaded is not active"
    );

    let reason = json!({ "reason": "Counsel has agreed" });
    let activation = activate(&app, &officer, &component, reason).await;
    assert_eq!(activation["reason"], "Counsel has agreed");

    let during = decides(&app, &app.key, &envelope).await;
    assert_eq!(during["name"], "acme-rules");
    assert_eq!(during["version"], "1.0.0");
    assert_eq!(during["sha256"], component["sha256"]);

    let other = app.other_organization().await;
    let paper = json!({
        "envelope_name": "Lease", "envelope_kind": "paper",
        "customer_email": "jordan.lee@example.com", "customer_name": "Jordan Lee",
    });
    let theirs = app
        .post_as(&other, "/partner/envelopes", paper)
        .await
        .data(201);
    let theirs = theirs["envelope_id"].as_str().unwrap();
    assert_eq!(decides(&app, &other, theirs).await, before, "nobody else's");

    let path = format!("{SLOTS}/rules.compliance/rollback");
    let body = json!({ "reason": "Check 4 refuses paper" });
    let back = app.post_with_bearer(&officer, &path, body).await.data(200);
    assert_eq!(back["activation_id"], activation["activation_id"]);
    assert_eq!(back["rollback_reason"], "Check 4 refuses paper");
    assert_eq!(decides(&app, &app.key, &envelope).await, before);

    let nothing = app.post_with_bearer(&officer, &path, json!({})).await;
    assert_eq!(nothing.error(409), "There is no activation to go back from");

    let ledger = app
        .get_with_bearer(&officer, "/component-ledger")
        .await
        .data(200);
    let actions: Vec<&str> = ledger
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["action"].as_str().unwrap())
        .collect();
    assert_eq!(
        actions,
        [
            "component.uploaded",
            "component.activated",
            "component.rolled_back"
        ]
    );

    assert_eq!(ledger[1]["details"]["reason"], "Counsel has agreed");
    assert_eq!(
        ledger[1]["details"]["component"]["sha256"],
        component["sha256"]
    );
    assert_eq!(ledger[1]["previous_hash"], ledger[0]["hash"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_name_and_version_always_identify_the_same_bytes() {
    let app = TestApp::start().await;
    let admin = app.admin();
    let first = uploaded(&app, &admin, Slot::Lifecycle, "moves", "1.0.0").await;
    let again = uploaded(&app, &admin, Slot::Lifecycle, "moves", "1.0.0").await;
    assert_eq!(first["component_id"], again["component_id"]);

    let far = format!("/components?page={}&limit=100", i64::MAX);
    let none = app.get_with_bearer(&admin, &far).await.data(200);
    assert_eq!(none, json!([]), "there is no such page");

    let other = variant(Slot::Lifecycle, "something else");
    let refused = app.upload_component(&admin, "moves", "1.0.0", &other).await;
    assert_eq!(
        refused.error(409),
        "moves 1.0.0 was uploaded before with other bytes"
    );

    // Another organization can use the same name.
    let theirs = app
        .upload_component(&app.other_admin(), "moves", "1.0.0", &other)
        .await
        .data(201);
    let path = format!("/components/{}", theirs["component_id"].as_str().unwrap());
    let foreign = app.get_with_bearer(&admin, &path).await;
    assert_eq!(foreign.error(404), "Component not found");

    let listed = app
        .get_with_bearer(&admin, "/components?slot=rules.lifecycle")
        .await;
    assert_eq!(listed.json()["meta"]["total"], 1);
    assert_eq!(listed.json()["data"][0], first);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_component_upload_lists_its_reasons() {
    let app = TestApp::start().await;
    let admin = app.admin();
    let reasons = async |bytes: &[u8]| {
        let answer = app.upload_component(&admin, "some", "1.0.0", bytes).await;
        let details = answer.json()["details"].clone();
        assert_eq!(answer.error(422), "The component is not admitted");

        (
            details[0]["code"].as_str().unwrap().to_owned(),
            details[0]["message"].as_str().unwrap().to_owned(),
        )
    };

    let (code, text) = reasons(b"a text").await;
    assert_eq!(code, "not_a_component");
    assert!(text.contains("no WebAssembly component"), "{text}");

    let (code, text) = reasons(b"\0asm\x01\0\0\0").await;
    assert_eq!(code, "not_a_component");
    assert!(text.contains("wasm-tools component new"), "{text}");

    let mut broken = variant(Slot::Compliance, "broken");
    let half = broken.len() / 2;
    broken.truncate(half);
    assert_eq!(reasons(&broken).await.0, "invalid");

    let (code, text) = reasons(b"\0asm\x0d\0\x01\0").await;
    assert_eq!(code, "unknown_world");
    assert!(
        text.contains("exports nothing") && text.contains("compliance-rules"),
        "{text}"
    );
    assert_eq!(
        app.get_with_bearer(&admin, "/components").await.json()["meta"]["total"],
        0,
        "nothing was kept"
    );

    let bytes = variant(Slot::Compliance, "named");
    for (name, version, path) in [
        ("Upper", "1.0.0", "name"),
        ("a b", "1.0.0", "name"),
        ("fine", "1.0", "version"),
        ("fine", "latest", "version"),
    ] {
        let answer = app.upload_component(&admin, name, version, &bytes).await;
        let details = answer.json()["details"].clone();
        assert_eq!(answer.error(422), "Validation failed");
        assert_eq!(details[0]["path"], json!([path]));
    }

    let nameless = app
        .upload_signed_component(&admin, &bytes, &[("version", "1.0.0")])
        .await;
    assert_eq!(nameless.error(400), "name is required");

    let huge = vec![0; 32 * 1024 * 1024 + 1];
    let answer = app.upload_component(&admin, "huge", "1.0.0", &huge).await;
    assert_eq!(answer.error(413), "file is larger than 33554432 bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_compliance_officers_manage_rules_and_only_admins_manage_providers() {
    let app = TestApp::start().await;
    let (admin, officer, member) = (app.admin(), app.token("compliance"), app.token("member"));
    for path in ["/components", "/component-slots", "/component-ledger"] {
        let refused = app.get_with_bearer(&member, path).await;
        assert_eq!(
            refused.error(403),
            "Role owner, admin, compliance or auditor is required"
        );
        app.get_with_bearer(&officer, path).await.data(200);
    }

    let plugin = variant(Slot::Signing, "plugin");
    let refused = app
        .upload_component(&officer, "plugin", "1.0.0", &plugin)
        .await;
    assert_eq!(refused.error(403), "Role owner or admin is required");

    let plugin = app
        .upload_component(&admin, "plugin", "1.0.0", &plugin)
        .await
        .data(201);
    assert_eq!(plugin["slot"], "provider.signing");

    let activate = json!({ "component_id": plugin["component_id"] });
    for (act, body) in [
        ("activate", activate),
        ("rollback", json!({})),
        // A caller without the permission gets that error for any body.
        ("activate", json!({ "component_id": 7 })),
        ("rollback", json!({ "nonsense": true })),
    ] {
        let path = format!("{SLOTS}/provider.signing/{act}");
        let refused = app.post_with_bearer(&officer, &path, body).await;
        assert_eq!(refused.error(403), "Role owner or admin is required");
    }

    let unknown = app
        .post_with_bearer(
            &admin,
            &format!("{SLOTS}/rules.tax/activate"),
            json!({ "component_id": "cmp_x" }),
        )
        .await;
    assert_eq!(unknown.error(404), "Component slot not found");

    let worlds = app.get("/component-worlds").await.data(200);
    assert_eq!(worlds.as_array().unwrap().len(), 11);
    assert!(
        worlds[0]["wit"][0]
            .as_str()
            .unwrap()
            .contains("world compliance-rules")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_activation_changes_nothing() {
    let app = TestApp::start().await;
    let admin = app.admin();
    let rules = uploaded(&app, &admin, Slot::Compliance, "rules", "1.2.0").await;
    let old = uploaded(&app, &admin, Slot::Compliance, "rules", "1.1.9").await;
    let try_to = async |slot: &str, body: Value| {
        app.post_with_bearer(&admin, &format!("{SLOTS}/{slot}/activate"), body)
            .await
    };

    let id = &rules["component_id"];
    let wrong = try_to("rules.lifecycle", json!({ "component_id": id })).await;
    assert_eq!(
        wrong.error(422),
        "rules 1.2.0 is for rules.compliance, not for rules.lifecycle"
    );

    let unknown = json!({ "component_id": "cmp_01arz3ndektsv4rrffq69g5fav" });
    let unknown = try_to("rules.compliance", unknown).await;
    assert_eq!(unknown.error(404), "Component not found");

    for (body, path) in [
        (
            json!({ "component_id": id, "effective_at": "2020-01-01T00:00:00.000Z" }),
            "effective_at",
        ),
        (
            json!({ "component_id": id, "instance": "embedded" }),
            "instance",
        ),
        (
            json!({ "component_id": id, "config": { "base_url": "https://a.example" } }),
            "config",
        ),
    ] {
        let refused = try_to("rules.compliance", body).await;
        assert_eq!(refused.json()["details"][0]["path"], json!([path]));
        assert_eq!(refused.error(422), "Validation failed");
    }

    activate(&app, &admin, &rules, json!({})).await;
    let older = try_to(
        "rules.compliance",
        json!({ "component_id": old["component_id"] }),
    )
    .await;
    assert_eq!(
        older.error(409),
        "rules 1.1.9 is older than the active 1.2.0: roll back to go back"
    );

    let slots = app.get_with_bearer(&admin, SLOTS).await.data(200);
    assert_eq!(slots[0]["active"]["component_id"], *id);
    assert_eq!(slots[0]["history"].as_array().unwrap().len(), 1);
}

/// Laws have effective dates, so an activation can be scheduled.
#[tokio::test(flavor = "multi_thread")]
async fn a_scheduled_activation_takes_effect_at_its_time() {
    let app = TestApp::start().await;
    let officer = app.token("compliance");
    let envelope = app.envelope_event().await;
    let rules = uploaded(&app, &officer, Slot::Compliance, "amended", "1.0.0").await;
    let at = holdfast::domain::clock::Clock::ahead_by(Duration::from_secs(3600)).now();
    let scheduled = json!({ "effective_at": at, "reason": "The amendment takes effect" });
    let scheduled = activate(&app, &officer, &rules, scheduled).await;
    assert_eq!(scheduled["effective_at"], at.to_string());
    assert_eq!(
        decides(&app, &app.key, &envelope).await["name"],
        "holdfast-compliance"
    );

    let later = app.as_of(Duration::from_secs(7200)).await;
    assert_eq!(
        decides(&later, &later.key, &envelope).await["name"],
        "amended"
    );

    let call_off = json!({ "activation_id": scheduled["activation_id"] });
    let path = format!("{SLOTS}/rules.compliance/rollback");
    app.post_with_bearer(&officer, &path, call_off)
        .await
        .data(200);
    let later = later.as_of(Duration::from_secs(7200)).await;
    assert_eq!(
        decides(&later, &later.key, &envelope).await["name"],
        "holdfast-compliance"
    );
}

/// A vaulted envelope names the component that wrote its certificate, and is verified with that
/// component also after another one was activated.
#[tokio::test(flavor = "multi_thread")]
async fn a_past_decision_is_verified_with_the_component_that_made_it() {
    let app = TestApp::start().await;
    let officer = app.token("compliance");
    let rules = uploaded(&app, &officer, Slot::Compliance, "acme-rules", "2.0.0").await;
    activate(&app, &officer, &rules, json!({})).await;
    let envelope = app.sent_envelope().await;
    form::sign(&app, envelope["sign_url"].as_str().unwrap()).await;
    let id = envelope["envelope_id"].as_str().unwrap();
    app.wait_for(id, "vaulted").await;

    let path = format!("{SLOTS}/rules.compliance/rollback");
    app.post_with_bearer(&officer, &path, json!({}))
        .await
        .data(200);
    let certificate = app
        .get(&format!("/partner/envelopes/{id}/vault/certificate"))
        .await;
    assert!(
        certificate
            .text()
            .contains(rules["sha256"].as_str().unwrap())
    );

    let replayed = crate::support::operator(app.data.path(), &["replay", id]);
    let decisions: Vec<_> = replayed
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (
                one["decision"].as_str().unwrap(),
                one["same"].as_bool().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        decisions,
        [
            ("Create from nothing", true),
            ("View from sent", true),
            ("Complete from viewed", true),
            ("VaultInSigned from completed", true),
            ("certificate", true),
        ]
    );

    let bundle = app.released_bundle(id).await;
    let report = crate::support::operator(app.data.path(), &["verify", id]);
    assert_eq!(report["valid"], true, "{report:#}");

    // Verifying the four files and the ledger requires the component's file too.
    let bundle = bundle.path().to_str().unwrap();
    let key = app.ledger_key().await;
    let arguments = ["verify", bundle, "--key", &key];
    let without = crate::support::operator_output(app.data.path(), &arguments);
    assert_eq!(without.status.code(), Some(4));

    let without: Value = serde_json::from_slice(&without.stdout).unwrap();
    assert_eq!(without["verdict"], "INTACT, NOT RE-EVALUATED");
    assert!(
        without.to_string().contains("with --component"),
        "{without}"
    );

    let file = app.data.path().join("acme-rules.wasm");
    std::fs::write(&file, variant(Slot::Compliance, "acme-rules 2.0.0")).unwrap();
    let arguments = [&arguments[..], &["--component", file.to_str().unwrap()]].concat();
    let report = crate::support::operator(app.data.path(), &arguments);
    assert_eq!(report["verdict"], "VALID", "{report:#}");
}

/// A shadow run evaluates stored records with a candidate before it is activated.
#[tokio::test(flavor = "multi_thread")]
async fn a_shadow_run_lists_every_difference_and_changes_nothing() {
    let app = TestApp::start().await;
    let officer = app.token("compliance");
    let mut envelopes = Vec::new();
    for _ in 0..2 {
        envelopes.push(app.vaulted_envelope().await);
    }

    let same = uploaded(&app, &officer, Slot::Compliance, "same", "1.0.0").await;
    let moves = uploaded(&app, &officer, Slot::Lifecycle, "moves", "1.0.0").await;
    let reader = app
        .upload_component(
            &officer,
            "reader",
            "1.0.0",
            &variant(Slot::Placement, "reader"),
        )
        .await
        .data(201);

    let listed = crate::support::operator(app.data.path(), &["component", "list"]);
    let writer = listed.as_array().unwrap().iter();
    let writer = writer
        .clone()
        .find(|one| one["name"] == "holdfast-documents");
    let writer = writer.unwrap();
    for (component, records) in [(&same, 2), (&moves, 8), (&reader, 2), (writer, 2)] {
        let path = format!(
            "/components/{}/shadow",
            component["component_id"].as_str().unwrap()
        );
        let report = app
            .post_with_bearer(&officer, &path, json!({}))
            .await
            .data(200);
        assert_eq!(report["compared"], records, "{report:#}");
        assert_eq!(report["differing"], 0, "{report:#}");
        assert_eq!(report["failed"], 0);

        let is_itself = component["name"] == "holdfast-documents";
        assert_eq!(report["active"]["sha256"] == component["sha256"], is_itself);

        let fewer = app
            .post_with_bearer(&officer, &path, json!({ "records": 1 }))
            .await;
        assert_eq!(fewer.data(200)["compared"], 1);
    }

    let path = format!(
        "/components/{}/shadow",
        same["component_id"].as_str().unwrap()
    );
    let many = app
        .post_with_bearer(&officer, &path, json!({ "records": 0 }))
        .await;
    assert_eq!(many.error(422), "Validation failed");

    let admin = app.admin();
    let plugin = uploaded(&app, &admin, Slot::Signing, "plugin", "1.0.0").await;
    let path = format!(
        "/components/{}/shadow",
        plugin["component_id"].as_str().unwrap()
    );
    let nothing = app.post_with_bearer(&admin, &path, json!({})).await;
    assert_eq!(
        nothing.error(422),
        "Of provider.signing nothing is recorded that could be asked again"
    );
}

/// A candidate is evaluated next to the active rules on real requests.
#[tokio::test(flavor = "multi_thread")]
async fn a_candidate_is_evaluated_alongside_the_active_rules() {
    let app = TestApp::start().await;
    let officer = app.token("compliance");
    let listed = crate::support::operator(app.data.path(), &["component", "list"]);
    let of = |name: &str| {
        let found = listed.as_array().unwrap().iter();
        found
            .clone()
            .find(|one| one["name"] == name)
            .unwrap()
            .clone()
    };

    let path = |slot: &str| format!("{SLOTS}/{slot}/shadow");
    let nothing = app
        .get_with_bearer(&officer, &path("rules.compliance"))
        .await;
    assert_eq!(nothing.error(404), "No candidate has run");

    let candidate = of("holdfast-compliance-ucc2022");
    let moves = uploaded(&app, &officer, Slot::Lifecycle, "moves", "1.0.0").await;
    let reader = of("holdfast-placement");
    for (slot, component) in [
        ("rules.compliance", &candidate),
        ("rules.lifecycle", &moves),
        ("rules.placement", &reader),
    ] {
        let start = json!({ "component_id": component["component_id"] });
        let started = app
            .post_with_bearer(&officer, &path(slot), start)
            .await
            .data(201);
        assert_eq!(started["candidate"]["name"], component["name"]);
        assert_eq!(started["ended_at"], Value::Null);
    }

    let envelope = app.envelope_event().await;
    let before = decides(&app, &app.key, &envelope).await;
    assert_eq!(before["name"], "holdfast-compliance", "it decides nothing");

    let compared = async |slot: &str| {
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        loop {
            let live = app.get_with_bearer(&officer, &path(slot)).await.data(200);
            if live["compared"].as_i64().unwrap() > 0 {
                return live;
            }
            assert!(std::time::Instant::now() < deadline, "{live:#}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };

    let live = compared("rules.compliance").await;
    assert_eq!(live["compared"], 1);
    assert_eq!(live["differing"], 1);
    assert_eq!(live["failed"], 0);

    let differences = live["differences"].as_array().unwrap();
    let one = differences
        .iter()
        .find(|one| one["check"] == "Assignee can identify itself")
        .unwrap();
    assert_eq!(one["record_id"], envelope.as_str());
    assert_eq!(
        one["before"],
        Value::Null,
        "the active rules have no such check"
    );
    assert_eq!(one["after"], false);
    assert_eq!(compared("rules.lifecycle").await["differing"], 0);

    app.contract_template().await;
    let placed = compared("rules.placement").await;
    assert_eq!(
        (&placed["compared"], &placed["differing"], &placed["failed"]),
        (&json!(1), &json!(0), &json!(0)),
        "{placed:#}"
    );

    let ended = app
        .as_bearer(
            axum::http::Method::DELETE,
            &officer,
            &path("rules.compliance"),
            json!({}),
        )
        .await
        .data(200);
    assert!(ended["ended_at"].is_string());

    decides(&app, &app.key, &envelope).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let after = app
        .get_with_bearer(&officer, &path("rules.compliance"))
        .await
        .data(200);
    assert_eq!(after["compared"], 1, "nothing is asked of it any more");

    let again = app
        .as_bearer(
            axum::http::Method::DELETE,
            &officer,
            &path("rules.compliance"),
            json!({}),
        )
        .await;
    assert_eq!(again.error(404), "No candidate is running");

    let refused = app
        .post_with_bearer(
            &app.admin(),
            &path("provider.signing"),
            json!({ "component_id": "cmp_x" }),
        )
        .await;
    assert_eq!(
        refused.error(422),
        "Of provider.signing no decision is made that could be compared"
    );
}

/// The operator's activations apply to all organizations.
#[tokio::test(flavor = "multi_thread")]
async fn an_organizations_component_overrides_the_operators_default() {
    let app = TestApp::start().await;
    let (data, officer) = (app.data.path(), app.token("compliance"));
    let envelope = app.envelope_event().await;
    let file = data.join("rules.wasm");
    std::fs::write(&file, variant(Slot::Compliance, "for everybody")).unwrap();
    let file = file.to_str().unwrap();
    let checked = crate::support::operator(data, &["component", "check", file]);
    assert_eq!(checked["admitted"], true);
    assert_eq!(checked["slot"], "rules.compliance");

    let upload = [
        "component",
        "upload",
        file,
        "--name",
        "everybody",
        "--version",
        "1.0.0",
    ];

    let component = crate::support::operator(data, &upload);
    assert_eq!(component["scope"], "installation");

    let id = component["component_id"].as_str().unwrap();
    let reason = ["--reason", "The statute was amended"];
    let activate = [
        &["component", "activate", "rules.compliance", id][..],
        &reason,
    ]
    .concat();
    crate::support::operator(data, &activate);

    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while decides(&app, &app.key, &envelope).await["name"] != "everybody" {
        assert!(std::time::Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    let own = uploaded(&app, &officer, Slot::Compliance, "own", "1.0.0").await;
    activate_now(&app, &officer, &own).await;
    assert_eq!(decides(&app, &app.key, &envelope).await["name"], "own");

    let shown = crate::support::operator(data, &["component", "slots", "--org", app.org.as_str()]);
    assert_eq!(shown[0]["active"]["name"], "own");

    let history = crate::support::operator(data, &["component", "history"]);
    assert_eq!(history[1]["details"]["reason"], "The statute was amended");
    assert_eq!(history[1]["actor"], "operator");

    let org = ["--org", app.org.as_str()];
    let rollback = [&["component", "rollback", "rules.compliance"][..], &org].concat();
    crate::support::operator(data, &rollback);
    let listed = crate::support::operator(data, &["component", "list"]);
    assert!(
        listed.as_array().unwrap().len() >= 6,
        "the defaults are listed too"
    );

    std::fs::write(file, b"no component").unwrap();
    let refused = crate::support::operator_output(data, &["component", "check", file]);
    assert!(!refused.status.success());

    let said: Value = serde_json::from_slice(&refused.stdout).unwrap();
    assert_eq!(said["reasons"][0]["code"], "not_a_component");
}

/// The second rules pack is part of the binary and inactive by default.
#[tokio::test(flavor = "multi_thread")]
async fn the_rules_of_2022_apply_where_they_are_activated() {
    let app = TestApp::start().await;
    let officer = app.token("compliance");
    let listed = crate::support::operator(app.data.path(), &["component", "list"]);
    let pack = listed
        .as_array()
        .unwrap()
        .iter()
        .find(|component| component["name"] == "holdfast-compliance-ucc2022")
        .unwrap();

    let reason = json!({ "reason": "In force in New York since June 2026" });
    activate(&app, &officer, pack, reason).await;
    let id = app.vaulted_envelope().await;
    let path = format!("/partner/envelopes/{id}/vault/certificate");
    let certificate = app.get(&path).await.data(200);
    assert_eq!(
        certificate["certificate_type"],
        "ucc_9105_2022_electronic_copy"
    );

    let live = format!("/partner/envelopes/{id}/compliance");
    let live = app.get(&live).await.data(200)["compliance"].clone();

    // The four checks about the assignee need a party that accepted control.
    assert_eq!(live["score"], 56, "{live:#}");
    assert_eq!(live["checks"].as_array().unwrap().len(), 9);
    assert_eq!(
        live["rules_component"]["name"],
        "holdfast-compliance-ucc2022"
    );
}

/// The built-in components pass the checks that uploads have to pass.
#[tokio::test(flavor = "multi_thread")]
async fn the_built_in_components_pass_their_own_vectors() {
    let cache = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let cache = cache.join("native-code-of-component-tests");
    let components =
        holdfast::components::ComponentRegistry::with_defaults(cache, [9; 32]).unwrap();
    let room = holdfast::components::room_component().unwrap().identity;
    for artifact in holdfast::components::built_in() {
        // This component needs the room's records, which conformance checks cannot provide.
        if artifact.identity == room {
            continue;
        }

        let name = artifact.identity.to_string();
        let conformance = components.examine(artifact, VectorSet::default()).await;
        let examined = conformance.unwrap_or_else(|reasons| panic!("{name}: {reasons:#?}"));
        let conformance = examined.conformance;
        println!("{name}: {conformance:?}");
        assert!(conformance.vectors > 1);
    }
}

async fn activate_now(app: &TestApp, token: &str, component: &Value) {
    activate(app, token, component, json!({})).await;
}

/// A switch is atomic: every concurrent call is answered by one of the two versions, and inactive
/// versions do not stay in memory. Each switch is requested by one person and approved by another.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_switches_under_load_lose_no_response() {
    // `HOLDFAST_SWITCHES=1000` runs the full drill.
    let switches = std::env::var("HOLDFAST_SWITCHES");
    let rounds = switches.map_or(100, |count| count.parse::<usize>().unwrap() / 2);
    let app = TestApp::start().await;
    let officer = app.token("compliance");
    let envelope = app.envelope_event().await;
    let one = uploaded(&app, &officer, Slot::Compliance, "one", "1.0.0").await;

    let two = uploaded(&app, &officer, Slot::Compliance, "two", "1.0.0").await;
    activate_now(&app, &officer, &one).await;
    let governance = Governance::start(&app).await;
    let forth = changes::activation(&two);
    let back = json!({
        "change": { "action": "roll_back", "slot": "rules.compliance" }, "reason": "Back again",
    });

    let done = std::sync::atomic::AtomicBool::new(false);
    let asking = async || {
        let mut answers = std::collections::BTreeMap::<String, usize>::new();
        while !done.load(std::sync::atomic::Ordering::Relaxed) {
            let component = decides(&app, &app.key, &envelope).await;
            *answers
                .entry(component["name"].as_str().unwrap().into())
                .or_default() += 1;
        }

        answers
    };

    let switching = async {
        let mut before = 0;
        for round in 0..rounds {
            for change in [&forth, &back] {
                governance.change(&app, change).await;
            }
            if round == rounds / 5 {
                before = resident();
            }
        }

        done.store(true, std::sync::atomic::Ordering::Relaxed);
        (before, resident())
    };

    let ((before, after), answers, others) = tokio::join!(switching, asking(), asking());
    let mut answers = answers;
    for (name, count) in others {
        *answers.entry(name).or_default() += count;
    }

    println!(
        "{} switches: answers {answers:?}, {before} KiB resident after a fifth, {after} at the end",
        2 * rounds
    );
    assert_eq!(answers.keys().collect::<Vec<_>>(), ["one", "two"]);
    assert!(
        after < before + 32 * 1024,
        "{before} KiB became {after}: something of every switch stays"
    );
}

/// Returns the resident memory of this process in KiB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Signed components are admitted, all others refused.
#[tokio::test(flavor = "multi_thread")]
async fn an_installation_can_require_signed_components() {
    use base64::Engine as _;
    use ring::signature::{Ed25519KeyPair, KeyPair as _};

    let counsel = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
    let stranger = Ed25519KeyPair::from_seed_unchecked(&[8; 32]).unwrap();
    let trusted = hex::encode(counsel.public_key());
    let trust = |config: &mut Config| {
        config
            .components
            .trusted
            .insert("counsel".into(), trusted.into());
    };
    let app = TestApp::with(trust, OrgSettings::default()).await;
    let officer = app.token("compliance");

    let bytes = variant(Slot::Compliance, "signed");
    let upload = async |signature: Option<String>| {
        let signature = signature.unwrap_or_default();
        let texts = [
            ("name", "signed"),
            ("version", "1.0.0"),
            ("signature", &signature),
        ];
        app.upload_signed_component(&officer, &bytes, &texts).await
    };

    let sign = |key: &Ed25519KeyPair, bytes: &[u8]| {
        Some(base64::engine::general_purpose::STANDARD.encode(key.sign(bytes)))
    };
    for (signature, why) in [
        (None, "admits signed components only"),
        (Some("not base64!".into()), "not base64"),
        (sign(&stranger, &bytes), "none of the keys"),
        (sign(&counsel, b"other bytes"), "none of the keys"),
    ] {
        let refused = upload(signature).await;
        assert_eq!(refused.json()["details"][0]["code"], "signature");
        assert!(refused.text().contains(why), "{}", refused.text());
        assert_eq!(refused.status, 422);
    }

    let admitted = upload(sign(&counsel, &bytes)).await.data(201);
    assert_eq!(admitted["signed_by"], "counsel");
}

/// Other nodes on the same database follow an activation within two seconds, and a node that was
/// down follows when it starts.
#[tokio::test(flavor = "multi_thread")]
async fn every_node_follows_an_activation() {
    let database = crate::support::postgres::new_database().await;
    let on_it = |config: &mut Config| config.database_url = Some(database);
    let one = TestApp::with(on_it, OrgSettings::default()).await;
    let two = one.another_node(|_| {}).await;
    let officer = one.token("compliance");
    let envelope = one.envelope_event().await;
    let rules = uploaded(&one, &officer, Slot::Compliance, "acme-rules", "1.0.0").await;
    activate(&one, &officer, &rules, json!({})).await;
    assert_eq!(
        decides(&one, &one.key, &envelope).await["name"],
        "acme-rules"
    );

    let since = std::time::Instant::now();
    while decides(&two, &two.key, &envelope).await["name"] != "acme-rules" {
        assert!(
            since.elapsed() < Duration::from_secs(10),
            "the other node does not follow"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    println!(
        "followed after {:.0} ms",
        since.elapsed().as_secs_f64() * 1e3
    );
    let three = one.another_node(|_| {}).await;
    assert_eq!(
        decides(&three, &three.key, &envelope).await["name"],
        "acme-rules"
    );
}

/// Two organizations can upload the same bytes under different names. Each sees and uses its own
/// component.
#[tokio::test(flavor = "multi_thread")]
async fn equal_bytes_of_two_organizations_are_separate_components() {
    let app = TestApp::start().await;
    let (ours, bytes) = (
        app.admin(),
        variant(Slot::Compliance, "bought from one vendor"),
    );
    let theirs = app.other_admin();

    let mut active = Vec::new();
    for (token, name, version) in [
        (&ours, "oak-rules", "1.0.0"),
        (&theirs, "elm-rules", "2.1.0"),
    ] {
        let upload = app.upload_component(token, name, version, &bytes);
        let component = upload.await.data(201);
        activate(&app, token, &component, json!({})).await;
        let slots = app.get_with_bearer(token, SLOTS).await.data(200);
        let slots = slots.as_array().unwrap().iter();
        let slot = slots
            .clone()
            .find(|slot| slot["slot"] == "rules.compliance");

        active.push(slot.unwrap()["active"].clone());
    }

    assert_eq!(active[0]["sha256"], active[1]["sha256"]);
    for (active, name) in active.iter().zip(["oak-rules", "elm-rules"]) {
        assert_eq!(active["name"], name);
        assert_eq!(active["scope"], "organization");
    }
    assert_ne!(active[0]["component_id"], active[1]["component_id"]);

    let envelope = app.envelope_event().await;
    assert_eq!(
        decides(&app, &app.key, &envelope).await["name"],
        "oak-rules"
    );
}

/// A scheduled activation uses the settings that are current when it takes effect.
#[tokio::test(flavor = "multi_thread")]
async fn a_scheduled_plugin_uses_the_settings_at_its_activation_time() {
    let app = TestApp::start().await;
    let admin = app.admin();
    let plugin = uploaded(&app, &admin, Slot::Signing, "acme-sign", "1.0.0").await;
    let set_up = |key: &str| {
        json!({ "instance": "acme", "config": {
            "base_url": "https://api.sign.example", "secrets": { "api_key": key },
        } })
    };
    activate(&app, &admin, &plugin, set_up("old")).await;

    let at = holdfast::domain::clock::Clock::ahead_by(Duration::from_secs(3600)).now();
    let later = json!({ "instance": "acme", "effective_at": at });
    activate(&app, &admin, &plugin, later).await;
    activate(&app, &admin, &plugin, set_up("rotated")).await;
    let mut connection = app.store.read().await.unwrap();
    let rows = sqlx::query("select config from component_activation order by activation_id");
    let rows = rows.fetch_all(&mut *connection).await.unwrap();
    let configs: Vec<String> = rows.iter().map(|row| row.get("config")).collect();
    assert_ne!(
        configs[0], configs[1],
        "the one that was scheduled has the new key"
    );
    assert_eq!(configs[1], configs[2]);
}
