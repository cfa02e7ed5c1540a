//! Vectors of a team: they travel inside its component, and later versions keep them.

use axum::http::Method;
use holdfast::components::vectors::{VectorFile, VectorSet};
use holdfast::config::Config;
use holdfast::domain::component::Slot;
use holdfast::domain::organization::OrgSettings;
use holdfast_test_guests::OPINIONATED;
use serde_json::{Value, json};

use super::registry::variant;
use crate::support::{TestApp, postgres};

/// Puts vectors into a component.
pub fn with_vectors(mut component: Vec<u8>, file: Value) -> Vec<u8> {
    let file: VectorFile = serde_json::from_value(file).unwrap();
    let vectors = file.complete(Slot::Compliance).unwrap();
    vectors.put_into(&mut component).unwrap();
    component
}

/// Facts that satisfy every check of the specification.
pub fn complete_facts() -> Value {
    json!({
        "envelope-id": "env_1", "envelope-name": "Contract", "customer-id": "cust_1", "status": "vaulted",
        "vault-file-path": "vault:env_1/authoritative", "document-hash": "a".repeat(64),
        "copy-file-path": "copies:env_1/copy", "vault-out-certificate-path": "certificates:env_1/certificate",
        "secured-party": { "name": "First Example Bank", "identifier": "NMLS 100200" },
        "submitters": [], "signed-documents": [], "identity-verifications": [],
        "custodians": [{ "email": "owner@example.com", "status": "accepted" }], "attributes": {},
    })
}

fn file(vectors: Value, changes: Value) -> Value {
    json!({ "given": { "facts": complete_facts() }, "vectors": vectors, "changes": changes })
}

fn everything_in_place() -> Value {
    json!({ "name": "everything in place", "expect": { "compliant": true, "score": 100 } })
}

fn without_identifier(satisfied: bool) -> Value {
    json!({
        "name": "a secured party without an identifier",
        "given": { "facts": { "secured-party": { "identifier": null } } },
        "expect": { "checks": { "Secured party identified": satisfied } },
    })
}

/// Uploads a version of `oak-rules`. Returns the component, or the reasons for its refusal.
async fn upload(app: &TestApp, version: &str, bytes: &[u8]) -> Result<Value, Vec<String>> {
    let answer = app
        .upload_component(app.web_admin(), "oak-rules", version, bytes)
        .await;
    match answer.status.as_u16() {
        201 => Ok(answer.json()["data"].clone()),
        422 => {
            let reasons = answer.json()["details"].clone();
            let reasons = reasons.as_array().unwrap().iter();
            Err(reasons
                .map(|reason| {
                    format!(
                        "{}: {}",
                        reason["code"].as_str().unwrap(),
                        reason["message"].as_str().unwrap()
                    )
                })
                .collect())
        }
        other => panic!("{other}: {}", answer.json()),
    }
}

async fn kept(app: &TestApp, component: &Value) -> VectorSet {
    let id = component["component_id"].as_str().unwrap();
    let path = format!("/components/{id}/vectors");
    let answer = app.get_with_bearer(app.web_admin(), &path).await;
    serde_json::from_value(answer.data(200)).unwrap()
}

async fn later_versions_keep_vectors(app: TestApp) {
    let rules = |note: &str, vectors, changes| {
        with_vectors(variant(Slot::Compliance, note), file(vectors, changes))
    };
    let both = json!([everything_in_place(), without_identifier(true)]);
    let first = rules("1", both, json!([]));
    let first = upload(&app, "1.0.0", &first).await.unwrap();
    assert_eq!(first["conformance"]["own_vectors"], 2, "{first}");
    assert_eq!(kept(&app, &first).await.vectors.len(), 2);

    // Rules that answer otherwise, without a word about it.
    let stricter = OPINIONATED.to_vec();
    let reasons = upload(&app, "2.0.0", &stricter).await.unwrap_err();
    assert_eq!(reasons.len(), 1, "{reasons:?}");

    for told in [
        "vectors: \"a secured party without an identifier\"",
        "false and not true",
        "The secured party has no identifier.",
        "name it under `changes`",
    ] {
        assert!(reasons[0].contains(told), "{told}: {reasons:?}");
    }

    // The same with the change named, and the vector as it is now.
    let change =
        json!({ "vector": "a secured party without an identifier", "reason": "Counsel, July" });
    let named = with_vectors(
        stricter.clone(),
        file(json!([without_identifier(false)]), json!([change])),
    );
    let second = upload(&app, "2.0.0", &named).await.unwrap();
    let inherited = kept(&app, &second).await;
    let names: Vec<&str> = inherited
        .vectors
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "a secured party without an identifier",
            "everything in place"
        ]
    );

    let ledger = app
        .get_with_bearer(app.web_admin(), "/component-ledger")
        .await
        .data(200);
    let last = ledger.as_array().unwrap().last().unwrap();
    assert_eq!(last["action"], "component.uploaded");
    assert_eq!(
        last["details"]["changed_vectors"],
        json!([change]),
        "{last}"
    );

    // A change counts once: naming it in the next version does not undo the vector again.
    let stale = rules("3", json!([everything_in_place()]), json!([change]));
    let reasons = upload(&app, "3.0.0", &stale).await.unwrap_err();
    assert!(reasons[0].contains("true and not false"), "{reasons:?}");

    // A version without vectors of its own keeps those that hold.
    let third = with_vectors(stricter, json!({ "vectors": [] }));
    let third = upload(&app, "3.0.0", &third).await.unwrap();
    assert_eq!(third["conformance"]["own_vectors"], 2);

    let stale = rules("4", json!([everything_in_place()]), json!([change]));
    let reasons = upload(&app, "4.0.0", &stale).await.unwrap_err();
    assert!(reasons[0].contains("true and not false"), "{reasons:?}");

    // Another name starts from scratch.
    let other = app
        .upload_component(
            app.web_admin(),
            "oak-other",
            "1.0.0",
            &variant(Slot::Compliance, "4"),
        )
        .await
        .data(201);
    assert_eq!(other["conformance"]["own_vectors"], 0);
}

#[tokio::test]
async fn later_versions_keep_a_teams_vectors_or_name_the_changed_ones_on_sqlite() {
    later_versions_keep_vectors(TestApp::start().await).await;
}

#[tokio::test]
async fn later_versions_keep_a_teams_vectors_or_name_the_changed_ones_on_postgresql() {
    let database = postgres::new_database().await;
    let change = |config: &mut Config| config.database_url = Some(database);
    later_versions_keep_vectors(TestApp::with(change, OrgSettings::default()).await).await;
}

#[tokio::test]
async fn a_component_whose_own_vector_does_not_hold_is_not_admitted() {
    let app = TestApp::start().await;
    let wrong = file(json!([without_identifier(false)]), json!([]));
    let rules = with_vectors(variant(Slot::Compliance, "wrong"), wrong);
    let reasons = upload(&app, "1.0.0", &rules).await.unwrap_err();
    assert!(reasons[0].starts_with("vectors: "), "{reasons:?}");
    assert!(!reasons[0].contains("changes"), "{reasons:?}");

    for (vector, told) in [
        (
            json!({ "name": "a", "call": "judge", "expect": {} }),
            "no function judge",
        ),
        (
            json!({ "name": "a", "given": { "facts": { "status": "lost" } }, "expect": {} }),
            "does not fit",
        ),
        (
            json!({ "name": "a", "given": { "facts": { "colour": "red" } }, "expect": {} }),
            "no colour",
        ),
    ] {
        let rules = with_vectors(
            variant(Slot::Compliance, told),
            file(json!([vector]), json!([])),
        );
        let reasons = upload(&app, "1.0.0", &rules).await.unwrap_err();
        assert!(reasons[0].contains(told), "{reasons:?}");
    }

    let mut unreadable = variant(Slot::Compliance, "unreadable");
    unreadable.extend(b"\0\x13\x10holdfast:vectors{}");
    let reasons = upload(&app, "1.0.0", &unreadable).await.unwrap_err();
    assert!(reasons[0].contains("holds no vectors"), "{reasons:?}");
}

/// Other slots, doubled names and too many bytes.
#[tokio::test]
async fn vectors_that_cannot_be_kept_are_refused() {
    let app = TestApp::start().await;
    let vectors = file(json!([everything_in_place()]), json!([]));
    let first = with_vectors(variant(Slot::Compliance, "1"), vectors);
    upload(&app, "1.0.0", &first).await.unwrap();
    let reasons = upload(&app, "2.0.0", &variant(Slot::Lifecycle, "2"))
        .await
        .unwrap_err();
    assert!(reasons[0].contains("give it another name"), "{reasons:?}");

    let set = |vectors: Value| {
        let mut component = variant(Slot::Compliance, "3");
        let set: VectorSet = serde_json::from_value(json!({ "vectors": vectors })).unwrap();
        set.put_into(&mut component).map(|()| component)
    };
    let vector = |name: &str, note: &str| json!({ "name": name, "call": "evaluate", "given": { "facts": complete_facts() }, "expect": { "note": note } });
    let twice = set(json!([vector("a", ""), vector("a", "")])).unwrap();
    let reasons = upload(&app, "2.0.0", &twice).await.unwrap_err();
    assert!(reasons[0].contains("two vectors \"a\""), "{reasons:?}");

    let large = set(json!([vector("a", &"x".repeat(4 * 1024 * 1024))])).unwrap_err();
    assert!(large.contains("more than 4194304 bytes"), "{large}");

    let many: Vec<Value> = (0..2_001)
        .map(|number| vector(&number.to_string(), ""))
        .collect();
    let reasons = upload(&app, "2.0.0", &set(json!(many)).unwrap())
        .await
        .unwrap_err();
    assert!(reasons[0].contains("more than 2000 vectors"), "{reasons:?}");

    let mut provider = variant(Slot::Signing, "4");
    let one: VectorSet = serde_json::from_value(json!({ "vectors": [vector("a", "")] })).unwrap();
    one.put_into(&mut provider).unwrap();
    let answer = app
        .upload_component(app.web_admin(), "oak-sign", "1.0.0", &provider)
        .await;
    assert_eq!(answer.status, 422);

    let told = answer.json()["details"][0]["message"].clone();
    assert_eq!(
        told,
        "it has vectors, which are for rules: a provider has scripts"
    );
}

#[tokio::test]
async fn vectors_of_another_organizations_component_are_not_found() {
    let app = TestApp::start().await;
    let rules = with_vectors(
        variant(Slot::Compliance, "1"),
        file(json!([everything_in_place()]), json!([])),
    );
    let component = upload(&app, "1.0.0", &rules).await.unwrap();
    let id = component["component_id"].as_str().unwrap();

    let other = app.other_admin();
    let _ = app.other_organization().await;
    for (method, path) in [(Method::GET, "vectors"), (Method::POST, "diff")] {
        let path = format!("/components/{id}/{path}");
        let answer = app.as_bearer(method, &other, &path, json!({})).await;
        assert_eq!(answer.status, 404, "{path}");
    }
}
