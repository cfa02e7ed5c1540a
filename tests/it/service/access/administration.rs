//! API keys, settings, and the list of who did what, for users of an organization.

use axum::http::Method;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast::config::Config;
use holdfast::domain::component::Slot;
use holdfast::domain::organization::OrgSettings;
use serde_json::{Value, json};

use crate::service::components::registry::variant;
use crate::support::{TestApp, TestResponse, operator, postgres};

const KEYS: &str = "/api-keys";

async fn patched(app: &TestApp, token: &str, path: &str, body: Value) -> TestResponse {
    app.as_bearer(Method::PATCH, token, path, body).await
}

/// Returns the newest entries of the list.
async fn audited(app: &TestApp) -> Vec<Value> {
    let auditor = app.person("eva@oak.example", "auditor");
    let list = app.get_with_bearer(&auditor, "/audit-log").await.data(200);
    list.as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_manages_the_keys_of_the_organization() {
    let app = TestApp::start().await;
    let admin = app.person("dee@oak.example", "admin");
    let new = json!({ "name": "Back office", "scopes": ["envelopes:read", "customers:read"] });
    let issued = app.post_with_bearer(&admin, KEYS, new).await.data(201);
    let (id, key) = (
        issued["key_id"].as_str().unwrap(),
        issued["api_key"].as_str().unwrap(),
    );
    assert_eq!(
        (&issued["rate_limit_rpm"], &issued["active"]),
        (&json!(100), &json!(true))
    );

    app.get_as(key, "/partner/envelopes").await.data(200);
    let list = app.get_with_bearer(&admin, KEYS).await;
    assert!(!list.text().contains(key));

    let list = list.data(200);
    let own = list
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["key_id"] == id);
    assert_eq!(own.unwrap()["name"], "Back office");

    // The same key with fewer scopes.
    let path = format!("{KEYS}/{id}");
    let fewer = json!({ "scopes": ["customers:read"], "rate_limit_rpm": 7 });
    let changed = patched(&app, &admin, &path, fewer).await.data(200);
    assert_eq!(changed["scopes"], json!(["customers:read"]));
    assert_eq!(app.get_as(key, "/partner/envelopes").await.status, 403);

    // A replaced key ends at once, and so does a deactivated one.
    let rotate = format!("{path}/rotate");
    let rotated = app.post_with_bearer(&admin, &rotate, json!({})).await;
    let rotated = rotated.data(200);
    let next = rotated["api_key"].as_str().unwrap();
    let find = "/partner/customers?email=nobody@oak.example";
    assert_eq!(app.get_as(key, find).await.status, 401);
    assert_eq!(app.get_as(next, find).await.status, 404);

    let developer = app.person("dev@oak.example", "developer");
    let deactivate = format!("{path}/deactivate");
    let ended = app
        .post_with_bearer(&developer, &deactivate, json!({}))
        .await;
    assert_eq!(ended.data(200)["active"], false);
    assert_eq!(app.get_as(next, find).await.status, 401);

    for (act, body) in [("/rotate", json!({})), ("", json!({ "rate_limit_rpm": 9 }))] {
        let path = format!("{path}{act}");
        let refused = match act {
            "" => patched(&app, &admin, &path, body).await,
            _ => app.post_with_bearer(&admin, &path, body).await,
        };
        assert_eq!(refused.error(409), "The key is deactivated");
    }

    let entries = audited(&app).await;
    let acts: Vec<(&str, &str)> = entries[..5]
        .iter()
        .map(|one| {
            (
                one["action"].as_str().unwrap(),
                one["actor"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        acts,
        [
            ("token.issued", "operator"),
            ("key.deactivated", "user:dev@oak.example"),
            ("token.issued", "operator"),
            ("key.rotated", "user:dee@oak.example"),
            ("key.updated", "user:dee@oak.example"),
        ]
    );

    assert!(
        entries.iter().all(|one| !one.to_string().contains(next)),
        "{entries:#?}"
    );
}

/// A key can do what its scopes permit, so roles with fewer permissions give none.
#[tokio::test(flavor = "multi_thread")]
async fn keys_are_given_by_owners_and_admins() {
    let app = TestApp::start().await;
    let [developer, admin] = ["developer", "admin"].map(|role| app.token(role));
    let new = json!({ "scopes": ["envelopes:read"] });
    let refused = app.post_with_bearer(&developer, KEYS, new).await;
    assert_eq!(refused.error(403), "Role owner or admin is required");

    for (body, path) in [
        (json!({ "scopes": [] }), "scopes"),
        (json!({ "scopes": ["envelopes:all"] }), "scopes"),
        (
            json!({ "scopes": ["envelopes:read"], "rate_limit_rpm": 101 }),
            "rate_limit_rpm",
        ),
        (
            json!({ "scopes": ["envelopes:read"], "owner_email": "nobody" }),
            "owner_email",
        ),
    ] {
        let refused = app.post_with_bearer(&admin, KEYS, body.clone()).await;
        assert!((400..423).contains(&refused.status.as_u16()), "{body}");
        assert!(refused.text().contains(path), "{body}: {}", refused.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_organization_has_a_limited_number_of_keys() {
    let app = TestApp::start().await;
    let admin = app.token("admin");
    let new = json!({ "scopes": ["envelopes:read"] });
    let mut made = Vec::new();
    let refused = loop {
        let answer = app.post_with_bearer(&admin, KEYS, new.clone()).await;
        if answer.status != 201 {
            break answer.error(409);
        }
        made.push(answer.data(201)["key_id"].as_str().unwrap().to_owned());
        assert!(made.len() <= 100);
    };
    assert_eq!(
        refused,
        "The organization has 100 active keys; deactivate one"
    );

    let deactivate = format!("{KEYS}/{}/deactivate", made[0]);
    app.post_with_bearer(&admin, &deactivate, json!({}))
        .await
        .data(200);

    app.post_with_bearer(&admin, KEYS, new).await.data(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_changed_and_recorded() {
    let app = TestApp::start().await;
    let admin = app.person("ada@oak.example", "admin");
    let path = "/organization";
    let before = app.get_with_bearer(&admin, path).await.data(200);
    assert_eq!(before["envelope_ttl_days"], 30);

    let logo = STANDARD.encode(b"\x89PNG\r\n\x1a\n and a picture of an oak, which is not small");
    let change = json!({
        "envelope_ttl_days": 14, "language": "de", "brand": { "name": "Oak", "color": "#0B57D0", "logo": logo },
        "return_origins": ["https://app.oak.example"], "chattel_paper_jurisdiction": "US-DE",
        "dates": { "format": "dotted", "time_zone": "Europe/Berlin" },
    });
    let after = patched(&app, &admin, path, change).await.data(200);
    assert_eq!(after["brand"]["color"], "#0b57d0");
    assert_eq!(after, app.get_with_bearer(&admin, path).await.data(200));

    // Only what changed is recorded, and a logo by its hash.
    let entry = &audited(&app).await[1];
    assert_eq!(
        (&entry["action"], &entry["actor"]),
        (&json!("settings.changed"), &json!("user:ada@oak.example"))
    );

    let changed = entry["details"]["changed"].as_object().unwrap();
    let members: Vec<&String> = changed.keys().collect();
    assert_eq!(
        members,
        [
            "envelope_ttl_days",
            "brand",
            "return_origins",
            "dates",
            "language",
            "chattel_paper_jurisdiction"
        ]
    );
    assert_eq!(
        changed["envelope_ttl_days"],
        json!({ "before": 30, "after": 14 })
    );

    assert!(!entry.to_string().contains(&logo[..40]));

    // Null clears a field, an absent field stays, and a request without a change records nothing.
    let clear = json!({ "brand": { "logo": null }, "chattel_paper_jurisdiction": null });
    let cleared = patched(&app, &admin, path, clear.clone()).await.data(200);
    assert_eq!(
        cleared["brand"],
        json!({ "name": "Oak", "color": "#0b57d0", "logo_sha256": null })
    );

    let count = audited(&app).await.len();
    patched(&app, &admin, path, clear).await.data(200);
    assert_eq!(
        audited(&app).await.len(),
        count + 1,
        "only the token of the reader is new"
    );

    for (body, why) in [
        (json!({ "envelope_ttl_days": 0 }), "envelope_ttl_days"),
        (json!({ "payment": null }), "payment"),
        (json!({ "brand": { "name": "two\nlines" } }), "brand"),
        (
            json!({ "brand": { "logo": STANDARD.encode(b"text") } }),
            "a logo is a PNG or a JPEG",
        ),
        (
            json!({ "embed_origins": ["https://*.oak.example"] }),
            "is no origin",
        ),
        (json!({ "language": "tlh" }), "language"),
        (
            json!({ "consent": { "de": { "version": " ", "statement": "Ja.", "disclosure": "-" } } }),
            "consent",
        ),
        (
            json!({ "chattel_paper_jurisdiction": "Delaware" }),
            "chattel_paper_jurisdiction",
        ),
        (json!({ "component_changes": {} }), "component_changes"),
    ] {
        let refused = patched(&app, &admin, path, body.clone()).await;
        assert!(
            [400, 422].contains(&refused.status.as_u16()),
            "{body}: {}",
            refused.text()
        );
        assert!(refused.text().contains(why), "{body}: {}", refused.text());
    }

    assert_eq!(app.get_with_bearer(&admin, path).await.data(200), cleared);

    // The operator's changes are in the list, too.
    operator(
        app.data.path(),
        &["org", "set", app.org.as_str(), "auto_vault=false"],
    );
    let entry = &audited(&app).await[1];
    assert_eq!(
        (&entry["actor"], &entry["action"]),
        (&json!("operator"), &json!("settings.changed"))
    );
}

/// Its schema accepts any text, so that its parser refuses it.
#[tokio::test(flavor = "multi_thread")]
async fn an_origin_that_cannot_be_read_is_named_by_its_place() {
    let app = TestApp::start().await;
    let admin = app.person("ada@oak.example", "admin");
    let origins = json!({ "embed_origins": ["https://oak.example", "https://*.oak.example"] });
    let refused = patched(&app, &admin, "/organization", origins).await;
    assert_eq!(refused.status, 422);

    let issue = refused.json()["details"][0].clone();
    assert_eq!(issue["path"], json!(["embed_origins", 1]));
    assert_eq!(issue["received"], "string");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_has_both_ledgers_in_order_on_both_databases() {
    let database = postgres::new_database().await;
    for database in [None, Some(database)] {
        let on = |config: &mut Config| config.database_url = database;
        let app = TestApp::with(on, OrgSettings::default()).await;
        let admin = app.person("ada@oak.example", "admin");
        for at in 1..=3 {
            let new = json!({ "scopes": ["envelopes:read"] });
            app.post_with_bearer(&admin, KEYS, new).await.data(201);
            let bytes = variant(Slot::Compliance, &format!("audit {at}"));
            let version = format!("1.0.{at}");
            app.upload_component(&admin, "oak-rules", &version, &bytes)
                .await
                .data(201);
        }

        let all = app.get_with_bearer(&admin, "/audit-log").await.data(200);
        let all = all.as_array().unwrap().clone();
        let acts: Vec<&str> = all[..6]
            .iter()
            .map(|one| one["action"].as_str().unwrap())
            .collect();
        let pair = ["component.uploaded", "key.created"];
        assert_eq!(acts, [pair, pair, pair].concat());
        assert!(
            all.windows(2)
                .all(|two| two[0]["at"].as_str() >= two[1]["at"].as_str())
        );

        // Pages of two give the same list.
        let (mut pages, mut after) = (Vec::new(), String::new());
        loop {
            let path = format!("/audit-log?limit=2{after}");
            let page = app.get_with_bearer(&admin, &path).await.json();
            pages.extend(page["data"].as_array().unwrap().clone());
            if page["meta"]["has_more"] == false {
                break;
            }

            let last = pages.last().unwrap()["id"].as_str().unwrap();
            after = format!("&starting_after={last}");
        }

        assert_eq!(pages, all);
        for wrong in ["7", "keys-1", "credentials-x"] {
            let path = format!("/audit-log?starting_after={wrong}");
            let refused = app.get_with_bearer(&admin, &path).await.error(400);
            assert_eq!(refused, "starting_after is no id of an entry");
        }

        // An entry that does not exist ends the list.
        let path = "/audit-log?starting_after=credentials-9999";
        assert_eq!(app.get_with_bearer(&admin, path).await.data(200), json!([]));
    }
}
