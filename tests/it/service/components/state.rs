//! Signed desired states of components.

use std::fs;
use std::path::{Path, PathBuf};

use axum::http::Method;
use holdfast::config::Config;
use holdfast::domain::component::Slot;
use holdfast::domain::component_state::StateSigners;
use holdfast::domain::hash::sha256;
use holdfast::domain::organization::OrgSettings;
use serde_json::{Value, json};

use super::registry::variant;
use crate::cli::plugin_kit::holdfast;
use crate::support::authority::openssl;
use crate::support::{SETTINGS, TestApp, TestResponse, operator, operator_output};

const STATE: &str = "/component-state";

/// Key of a person who signs states.
struct Signer {
    folder: PathBuf,
    key: String,
}

impl Signer {
    fn new(folder: &Path, name: &str) -> Self {
        let key = format!("{name}.pem");
        openssl(folder, &["genpkey", "-algorithm", "ed25519", "-out", &key]);
        Self {
            folder: folder.to_owned(),
            key,
        }
    }

    fn said(&self, state: &str) -> Value {
        let file = self.folder.join("signed.yaml");
        fs::write(&file, state).unwrap();
        let key = self.folder.join(&self.key);
        let arguments = ["--json", "components", "sign", file.to_str().unwrap()];
        let key = ["--key", key.to_str().unwrap()];
        let (done, text) = holdfast(&[arguments.as_slice(), &key].concat());
        assert!(done, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    fn public_key(&self) -> Value {
        self.said("")["public_key"].clone()
    }

    fn signature(&self, state: &str) -> Value {
        self.said(state)["signature"].clone()
    }
}

/// Returns a variable that a state of the organization may name.
fn variable(app: &TestApp) -> String {
    format!("HOLDFAST_STATE_{}_TOKEN", app.org.as_str().to_uppercase())
}

/// Starts a service with one key for the states of the installation and its organizations.
async fn trusting(signer: &Signer) -> TestApp {
    let key = signer.public_key().as_str().unwrap().to_owned();
    let keys = StateSigners {
        keys: [("ada".to_owned(), key.into())].into(),
        threshold: 1,
    };
    let change = |config: &mut Config| config.components.state = keys;
    TestApp::with(change, OrgSettings::default()).await
}

/// Returns a state that wants these rules.
pub fn state(app: &TestApp, version: u64, rules: &Value) -> String {
    let (name, rules_version) = (&rules["name"], &rules["version"]);
    format!(
        "version: {version}\norganization: {}\nsource: {{ url: https://git.oak.example/rules, commit: 4f1c2ab }}\n\
         components:\n  - slot: rules.compliance\n    name: {name}\n    version: {rules_version}\n    sha256: {}\n",
        app.org, rules["sha256"]
    )
}

async fn sent(app: &TestApp, token: &str, state: &str, signatures: &[Value]) -> TestResponse {
    let body = json!({ "state": state, "signatures": signatures });
    app.post_with_bearer(token, STATE, body).await
}

async fn planned(app: &TestApp, token: &str, state: &str) -> Value {
    let body = json!({ "state": state, "dry_run": true });
    app.post_with_bearer(token, STATE, body).await.data(200)
}

/// Returns the status of the only component.
fn status(view: &Value) -> &str {
    assert_eq!(view["components"].as_array().unwrap().len(), 1, "{view:#}");
    view["components"][0]["status"].as_str().unwrap()
}

pub async fn rules(app: &TestApp, token: &str, version: &str) -> Value {
    let bytes = variant(Slot::Compliance, version);
    app.upload_component(token, "oak-rules", version, &bytes)
        .await
        .data(201)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_state_requests_its_changes_and_shows_drift() {
    let app = TestApp::start().await;
    let folder = tempfile::tempdir().unwrap();
    let [ada, ben] = ["ada", "ben"].map(|name| Signer::new(folder.path(), name));
    let stranger = Signer::new(folder.path(), "stranger");
    let officer = app.person("ben@oak.example", "compliance");
    let reviewer = app.person("cleo@oak.example", "compliance");
    let keys = json!({ "ada": ada.public_key(), "ben": ben.public_key() });
    let policy = json!({
        "reviews_required": 1, "state": { "keys": keys, "threshold": 2 },
    });
    app.as_bearer(Method::PUT, app.web_admin(), "/component-policy", policy)
        .await
        .data(200);

    app.get_with_bearer(&officer, STATE).await.error(404);
    let first = rules(&app, &officer, "1.0.0").await;
    let wanted = state(&app, 1, &first);

    // A plan needs no signature and changes nothing.
    let plan = planned(&app, &officer, &wanted).await;
    assert_eq!(
        (status(&plan), &plan["signatures_required"]),
        ("drifted", &json!(2)),
        "{plan:#}"
    );
    assert_eq!(
        plan["components"][0]["active"]["name"],
        "holdfast-compliance"
    );

    app.get_with_bearer(&officer, STATE).await.error(404);

    // Two different keys over this very file.
    let (by_ada, by_ben) = (ada.signature(&wanted), ben.signature(&wanted));
    let too_few = [
        vec![],
        vec![by_ada.clone()],
        vec![by_ada.clone(), by_ada.clone()],
        vec![by_ada.clone(), stranger.signature(&wanted)],
        vec![by_ada.clone(), ben.signature("version: 1")],
        vec![by_ada.clone(), json!("no base64")],
    ];
    for signatures in too_few {
        let refused = sent(&app, &officer, &wanted, &signatures).await;
        let body: Value = serde_json::from_str(&refused.text()).unwrap();
        assert_eq!(
            (refused.status.as_u16(), &body["code"]),
            (409, &json!("signatures_missing")),
            "{body}"
        );
    }

    let both = [by_ada, by_ben];
    let set = sent(&app, &officer, &wanted, &both).await.data(200);
    assert_eq!(
        (status(&set), &set["signed_by"]),
        ("requested", &json!(["ada", "ben"])),
        "{set:#}"
    );

    let change = set["components"][0]["change_id"].as_str().unwrap();

    // The same state again requests nothing twice.
    let again = sent(&app, &officer, &wanted, &both).await.data(200);
    assert_eq!(again["components"][0]["change_id"], change);

    let by_another = sent(&app, &reviewer, &wanted, &both).await.data(200);
    assert_eq!(by_another["set_by"], set["set_by"]);

    let open = app.get_with_bearer(&officer, "/component-changes").await;
    assert_eq!(open.data(200).as_array().unwrap().len(), 1);

    // It is approved as every other change.
    let path = |act: &str| format!("/component-changes/{change}/{act}");
    let approve = json!({ "verdict": "approve" });
    app.post_with_bearer(&officer, &path("reviews"), approve.clone())
        .await
        .error(409);
    app.post_with_bearer(&reviewer, &path("reviews"), approve)
        .await
        .data(200);

    app.post_with_bearer(&officer, &path("apply"), json!({}))
        .await
        .data(200);
    let current = app.get_with_bearer(&officer, STATE).await.data(200);
    assert_eq!(status(&current), "active", "{current:#}");

    // Another component became active since: drift.
    let second = rules(&app, &officer, "1.1.0").await;
    let governance = super::changes::activation(&second);
    let made = app
        .post_with_bearer(&officer, "/component-changes", governance)
        .await
        .data(201);
    let change = made["change_id"].as_str().unwrap();
    let path = |act: &str| format!("/component-changes/{change}/{act}");
    app.post_with_bearer(&reviewer, &path("reviews"), json!({ "verdict": "approve" }))
        .await
        .data(200);

    app.post_with_bearer(&officer, &path("apply"), json!({}))
        .await
        .data(200);
    let slots = app.get_with_bearer(&officer, "/component-slots").await;
    let slots = slots.data(200);
    let mut slots = slots.as_array().unwrap().iter();
    let slot = slots
        .find(|slot| slot["slot"] == "rules.compliance")
        .unwrap();
    let desired = &slot["desired"][0];
    assert_eq!(
        (&desired["status"], &desired["active"]["version"]),
        (&json!("drifted"), &json!("1.1.0")),
        "{desired:#}"
    );

    // Later states count up.
    let signed = |state: &str| [ada.signature(state), ben.signature(state)];
    let older = state(&app, 1, &second);
    sent(&app, &officer, &older, &signed(&older))
        .await
        .error(409);
    let newer = state(&app, 2, &second);
    let set = sent(&app, &officer, &newer, &signed(&newer)).await;
    assert_eq!(status(&set.data(200)), "active");

    sent(&app, &officer, &wanted, &both).await.error(409);
    let ledger = app.get_with_bearer(&officer, "/component-ledger").await;
    let ledger = ledger.data(200);
    let entries = ledger.as_array().unwrap().iter();
    let entries: Vec<&Value> = entries
        .filter(|entry| entry["action"] == "state.set")
        .map(|entry| &entry["details"])
        .collect();
    assert_eq!(entries.len(), 2);

    // The ledger alone suffices to check the signatures.
    assert_eq!(entries[0]["state"], wanted.as_str());

    let kept = entries[0]["signatures"].as_array().unwrap();
    assert_eq!(
        (
            &kept[0]["name"],
            &kept[0]["public_key"],
            &kept[0]["signature"]
        ),
        (&json!("ada"), &ada.public_key(), &both[0])
    );
    assert_eq!(kept[1]["signature"], both[1]);

    bad_states(&app, &officer, &newer).await;
}

async fn bad_states(app: &TestApp, officer: &str, good: &str) {
    let digest = "a".repeat(64);
    let organization = format!("organization: {}", app.org);
    let entry =
        format!("- {{ slot: rules.compliance, name: a, version: 1.0.0, sha256: {digest} }}");
    let provider = entry.replace("rules.compliance", "provider.signing");
    let wrong = [
        ("version: x".to_owned(), "invalid"),
        (good.replace(&organization, ""), "is not the state of"),
        (good.replace("version: 2", "version: 0"), "begins with 1"),
        (
            format!("version: 1\n{organization}\ncomponents: []\n"),
            "names no component",
        ),
        (
            format!("version: 1\n{organization}\ncomponents:\n {entry}\n {entry}\n"),
            "named twice",
        ),
        (
            format!("version: 1\n{organization}\ncomponents:\n {provider}\n"),
            "providers have an instance",
        ),
        (
            format!(
                "version: 1\n{organization}\ncomponents:\n {}\n",
                entry.replace(&digest, "AB")
            ),
            "64 lower-case",
        ),
        (
            format!("version: 1\n{organization}\nmore: 1\ncomponents:\n {entry}\n"),
            "more",
        ),
    ];
    for (state, why) in wrong {
        let refused = sent(app, officer, &state, &[]).await;
        let text = refused.text();
        assert_eq!(refused.status, 422, "{state}: {text}");
        assert!(text.contains(why), "{why}: {text}");
    }

    // A state comes from others than the operator: it names no file or variable of the machine.
    let with = |further: &str| {
        let provider = provider.replace("slot:", "instance: acme, slot:");
        let provider = provider.replace(" }", &format!(", {further} }}"));
        format!("version: 1\n{organization}\ncomponents:\n {provider}\n")
    };
    for reference in [
        "env: PATH",
        "file: /etc/passwd",
        "file: ../secret",
        "file: ''",
    ] {
        let config = format!(
            "config: {{ base_url: 'https://a.example', secrets: {{ key: {{ {reference} }} }} }}"
        );
        let text = sent(app, &app.admin(), &with(&config), &[]).await.text();
        assert!(
            text.contains("must be a file beside the state"),
            "{reference}: {text}"
        );
    }

    for from in ["/etc/passwd", "../rules.wasm", "a/../../b"] {
        let text = sent(app, &app.admin(), &with(&format!("from: {from}")), &[])
            .await
            .text();
        assert!(text.contains("`from` must be a file"), "{from}: {text}");
    }

    let many: String = (0..101)
        .map(|number| {
            format!(
                " {}\n",
                provider.replace("slot:", &format!("instance: a{number}, slot:"))
            )
        })
        .collect();
    let huge = [
        (
            format!("version: 1\n{organization}\ncomponents:\n{many}"),
            "more than 100",
        ),
        (
            good.replace("version: 2", "version: 18446744073709551615"),
            "begins with 1",
        ),
        (format!("{good}# {}", "x".repeat(70_000)), "65536"),
    ];
    for (state, why) in huge {
        let text = sent(app, officer, &state, &[]).await.text();
        assert!(text.contains(why), "{why}: {text}");
    }

    let unknown = format!("version: 1\n{organization}\ncomponents:\n {entry}\n");
    assert_eq!(status(&planned(app, officer, &unknown).await), "missing");

    // Providers are an admin's, and the state of another organization is refused.
    let acme = format!(
        "version: 1\n{organization}\ncomponents:\n {}\n",
        provider.replace("slot:", "instance: acme, slot:")
    );
    sent(app, officer, &acme, &[]).await.error(403);
    sent(app, &app.other_admin(), good, &[]).await.error(422);

    sent(app, &app.token("member"), good, &[]).await.error(403);
    app.get_with_bearer(&app.token("member"), STATE)
        .await
        .error(403);
}

/// Without a policy the changes are made at once. Settings belong to the state, secrets by their names.
#[tokio::test(flavor = "multi_thread")]
async fn a_state_sets_up_a_provider() {
    let folder = tempfile::tempdir().unwrap();
    let ada = Signer::new(folder.path(), "ada");
    let app = trusting(&ada).await;
    let admin = app.web_admin();

    // One person would change the keys and the components.
    let policy = json!({ "state": { "keys": { "ada": ada.public_key() } } });
    app.as_bearer(Method::PUT, admin, "/component-policy", policy)
        .await
        .error(422);
    let bytes = variant(Slot::Messaging, "oak");
    let plugin = app
        .upload_component(admin, "oak-sms", "1.0.0", &bytes)
        .await;
    let plugin = plugin.data(201);
    let wanted = |version: u64, sender: &str| {
        format!(
            "version: {version}\norganization: {}\ncomponents:\n  - slot: provider.messaging\n    instance: oak\n    \
             name: oak-sms\n    version: 1.0.0\n    sha256: {}\n    config:\n      base_url: https://sms.oak.example\n      \
             settings: {{ from: \"{sender}\", account_sid: AC1 }}\n      secrets: {{ auth_token: {{ env: {} }} }}\n",
            app.org,
            plugin["sha256"],
            variable(&app)
        )
    };

    let first = wanted(1, "+15550100");
    let signatures = json!([ada.signature(&first)]);
    let without = json!({ "state": first, "signatures": signatures });
    let refused = app.post_with_bearer(admin, STATE, without).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert!(refused.text().contains("auth_token"), "{}", refused.text());

    let secrets = json!({ "provider.messaging/oak": { "auth_token": "s3cret" } });
    let body = json!({ "state": first, "signatures": signatures, "secrets": secrets });
    let set = app.post_with_bearer(admin, STATE, body.clone()).await;
    assert!(!set.text().contains("s3cret"));

    let set = set.data(200);
    assert_eq!(status(&set), "active", "{set:#}");
    assert!(set["components"][0]["activation_id"].is_string());
    assert_eq!(set["components"][0]["active"], Value::Null);

    let again = app.post_with_bearer(admin, STATE, body).await.data(200);
    assert_eq!(
        (status(&again), &again["components"][0]["activation_id"]),
        ("active", &Value::Null)
    );

    for (sender, secret, expected) in [
        ("+15550100", "s3cret", "active"),
        ("+15550199", "s3cret", "drifted"),
        ("+15550100", "other", "drifted"),
    ] {
        let secrets = json!({ "provider.messaging/oak": { "auth_token": secret } });
        let body = json!({ "state": wanted(2, sender), "secrets": secrets, "dry_run": true });
        let plan = app.post_with_bearer(admin, STATE, body).await.data(200);
        assert_eq!(status(&plan), expected, "{sender} {secret}");
    }

    // Without the secrets, everything else is compared.
    let plan = planned(&app, admin, &wanted(2, "+15550199")).await;
    assert_eq!(status(&plan), "drifted");

    let plan = planned(&app, admin, &wanted(2, "+15550100")).await;
    assert_eq!(status(&plan), "active");
}

/// A date that was moved is not the date that is scheduled.
#[tokio::test(flavor = "multi_thread")]
async fn a_scheduled_activation_has_the_date_of_the_state() {
    let folder = tempfile::tempdir().unwrap();
    let ada = Signer::new(folder.path(), "ada");
    let app = trusting(&ada).await;
    let officer = app.token("compliance");
    let rules = rules(&app, &officer, "1.0.0").await;
    let dated = |version: u64, date: &str| {
        format!("{}    effective_at: {date}\n", state(&app, version, &rules))
    };

    let signed = |state: &str| [ada.signature(state)];
    let first = dated(1, "2090-01-01T05:00:00.000Z");
    let set = sent(&app, &officer, &first, &signed(&first))
        .await
        .data(200);
    assert_eq!(status(&set), "scheduled");

    let activation = &set["components"][0]["activation_id"];
    let again = sent(&app, &officer, &first, &signed(&first)).await;
    assert_eq!(status(&again.data(200)), "scheduled");

    let moved = dated(2, "2089-01-01T05:00:00.000Z");
    assert_eq!(status(&planned(&app, &officer, &moved).await), "drifted");

    let refused = sent(&app, &officer, &moved, &signed(&moved)).await;
    let why = refused.error(409);
    assert!(why.contains("is scheduled for 2090-01-01"), "{why}");

    let back = json!({ "activation_id": activation, "reason": "Another date" });
    app.post_with_bearer(&officer, "/component-slots/rules.compliance/rollback", back)
        .await
        .data(200);
    let set = sent(&app, &officer, &moved, &signed(&moved)).await;
    assert_eq!(status(&set.data(200)), "scheduled");
}

/// Where keys are configured, no operator changes the installation's components alone.
#[tokio::test(flavor = "multi_thread")]
async fn operators_change_the_installation_together() {
    let app = TestApp::start().await;
    let folder = tempfile::tempdir().unwrap();
    let [ada, ben] = ["ada", "ben"].map(|name| Signer::new(folder.path(), name));
    let settings = format!(
        "[components.state]\nthreshold = 2\n[components.state.keys]\nada = {}\nben = {}\n",
        ada.public_key(),
        ben.public_key()
    );
    fs::write(app.data.path().join(SETTINGS), settings).unwrap();

    let bytes = variant(Slot::Lifecycle, "installation");
    fs::write(folder.path().join("rules.wasm"), &bytes).unwrap();
    let wanted = format!(
        "version: 1\ncomponents:\n  - slot: rules.lifecycle\n    name: our-lifecycle\n    version: 1.0.0\n    \
         sha256: {}\n    from: rules.wasm\n",
        sha256(&bytes)
    );

    let file = folder.path().join("holdfast.components.yaml");
    fs::write(&file, &wanted).unwrap();
    let file = file.to_str().unwrap();
    let told = |arguments: &[&str]| {
        let output = operator_output(app.data.path(), arguments);
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.success(), text)
    };

    let plan = operator(app.data.path(), &["components", "plan", file]);
    assert_eq!(status(&plan), "missing", "{plan:#}");

    let (done, text) = told(&["components", "apply", file]);
    assert!(!done && text.contains("0 of 2 signatures"), "{text}");

    // Nothing was uploaded for it.
    let listed = operator(app.data.path(), &["component", "list"]);
    let mut listed = listed.as_array().unwrap().iter();
    assert!(listed.all(|one| one["name"] != "our-lifecycle"));

    let sign = |signer: &Signer, name: &str| {
        let file = folder.path().join(name);
        fs::write(&file, signer.signature(&wanted).as_str().unwrap()).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let (by_ada, by_ben) = (sign(&ada, "ada.sig"), sign(&ben, "ben.sig"));
    let both = [
        "--signature",
        by_ada.as_str(),
        "--signature",
        by_ben.as_str(),
    ];
    let apply = [["components", "apply", file].as_slice(), &both].concat();

    // Other bytes than those that were signed for.
    fs::write(folder.path().join("rules.wasm"), "other").unwrap();
    let (done, text) = told(&apply);
    assert!(!done && text.contains("is not the component"), "{text}");

    fs::write(folder.path().join("rules.wasm"), &bytes).unwrap();

    // A link leads out of the folder.
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("rules.wasm"), &bytes).unwrap();
    fs::remove_file(folder.path().join("rules.wasm")).unwrap();
    std::os::unix::fs::symlink(
        outside.path().join("rules.wasm"),
        folder.path().join("rules.wasm"),
    )
    .unwrap();

    let (done, text) = told(&apply);
    assert!(!done && text.contains("leads out of the folder"), "{text}");

    fs::remove_file(folder.path().join("rules.wasm")).unwrap();
    fs::write(folder.path().join("rules.wasm"), &bytes).unwrap();
    let applied = operator(app.data.path(), &apply);
    assert_eq!(status(&applied), "active", "{applied:#}");

    let again = operator(app.data.path(), &apply);
    assert_eq!(
        (status(&again), &again["components"][0]["activation_id"]),
        ("active", &Value::Null)
    );

    let active = operator(app.data.path(), &["component", "slots"]);
    let active = active.as_array().unwrap().iter();
    let mut active = active.filter(|slot| slot["slot"] == "rules.lifecycle");
    let slot = active.next().unwrap();
    assert_eq!(slot["active"]["name"], "our-lifecycle");
    assert_eq!(slot["desired"][0]["status"], "active");

    let component = slot["active"]["component_id"].as_str().unwrap();
    for alone in [
        ["component", "activate", "rules.lifecycle", component].as_slice(),
        &["component", "rollback", "rules.lifecycle"],
    ] {
        let (done, text) = told(alone);
        assert!(!done && text.contains("by a signed state"), "{text}");
    }

    // A later state goes back to an older version, and rolls back a scheduled activation.
    let newer = variant(Slot::Lifecycle, "newer");
    fs::write(folder.path().join("newer.wasm"), &newer).unwrap();
    let states = [
        (2, "1.1.0", &newer, "newer.wasm", "", "active"),
        (
            3,
            "1.0.0",
            &bytes,
            "rules.wasm",
            "    effective_at: 2090-01-01T05:00:00.000Z\n",
            "scheduled",
        ),
        (4, "1.0.0", &bytes, "rules.wasm", "", "active"),
    ];
    for (version, rules_version, bytes, from, dated, expected) in states {
        let wanted = format!(
            "version: {version}\ncomponents:\n  - slot: rules.lifecycle\n    name: our-lifecycle\n    \
             version: {rules_version}\n    sha256: {}\n    from: {from}\n{dated}",
            sha256(bytes)
        );
        fs::write(file, &wanted).unwrap();
        for (signer, name) in [(&ada, &by_ada), (&ben, &by_ben)] {
            fs::write(name, signer.signature(&wanted).as_str().unwrap()).unwrap();
        }

        let applied = operator(app.data.path(), &apply);
        assert_eq!(status(&applied), expected, "{applied:#}");

        let again = operator(app.data.path(), &apply);
        assert_eq!(status(&again), expected, "{again:#}");
    }

    let slots = operator(app.data.path(), &["component", "slots"]);
    let mut slots = slots.as_array().unwrap().iter();
    let slot = slots
        .find(|slot| slot["slot"] == "rules.lifecycle")
        .unwrap();
    let history = slot["history"].as_array().unwrap().iter();
    let dated = |one: &&Value| one["effective_at"].as_str().unwrap().starts_with("2090");
    let scheduled: Vec<&Value> = history.filter(dated).collect();
    assert_eq!(scheduled.len(), 1);
    assert!(
        scheduled[0]["rolled_back"].is_object() || scheduled[0]["rolled_back_at"].is_string(),
        "{slot:#}"
    );
}
