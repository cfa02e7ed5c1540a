//! Web-app bearer tokens: our own, and those of an OpenID Connect issuer.

use axum::body::Body;
use axum::http::Request;
use holdfast::config::{AuthSettings, OidcSettings};
use holdfast::domain::organization::OrgSettings;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use crate::support::issuer::{FakeIssuer, IssuerKey};
use crate::support::{TestApp, TestResponse, operator};

const AUDIENCE: &str = "holdfast-web";

/// Starts a service that accepts tokens of an issuer.
async fn service(issuer: &FakeIssuer) -> TestApp {
    let url = issuer.url.parse().unwrap();
    TestApp::with(
        |config| {
            config.providers.allow_insecure = true;
            config.auth = AuthSettings {
                oidc: Some(OidcSettings {
                    issuer: url,
                    audience: AUDIENCE.into(),
                    org_claim: "org_id".into(),
                    email_claim: "email".into(),
                    role_claim: "role".into(),
                }),
                ..AuthSettings::default()
            };
        },
        OrgSettings::default(),
    )
    .await
}

fn now() -> i64 {
    holdfast::domain::clock::Clock::default().now().as_seconds()
}

fn claims(app: &TestApp, issuer: &FakeIssuer) -> Value {
    json!({
        "iss": issuer.url, "aud": AUDIENCE, "exp": now() + 300, "sub": "17",
        "org_id": app.org, "email": "admin@maple.example", "role": "admin",
    })
}

/// Calls an admin endpoint with an unknown envelope, which responds 404 when it accepts the
/// token.
async fn ask(app: &TestApp, token: &str) -> TestResponse {
    let request = Request::get("/api/v2/envelopes/env_01h455vb4pex5vsknk084sn02q/bundle")
        .header("authorization", format!("Bearer {token}"));
    app.send(request.body(Body::empty()).unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuers_token_is_accepted_and_a_new_key_is_fetched() {
    let issuer = FakeIssuer::start().await;
    let (first, second) = (IssuerKey::new("first", 1), IssuerKey::new("second", 2));
    issuer.publish(&[&first]);
    let app = service(&issuer).await;
    let claims = claims(&app, &issuer);
    assert_eq!(ask(&app, &first.sign(&claims)).await.status, 404);
    assert_eq!(
        ask(&app, &second.sign(&claims)).await.error(401),
        "Invalid token"
    );

    issuer.publish(&[&second]);
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    assert_eq!(ask(&app, &second.sign(&claims)).await.status, 404);
    assert_eq!(ask(&app, &first.sign(&claims)).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_claim_of_a_token_is_validated() {
    let issuer = FakeIssuer::start().await;
    let key = IssuerKey::new("key", 1);
    issuer.publish(&[&key]);
    let app = service(&issuer).await;
    let good = claims(&app, &issuer);
    for (claim, wrong) in [
        ("iss", json!("https://other.example")),
        ("aud", json!("another service")),
        ("exp", json!(now() - 10)),
        ("exp", Value::Null),
        ("nbf", json!(now() + 600)),
        ("org_id", json!("maple")),
        ("role", json!("chief")),
        ("email", json!(5)),
    ] {
        let mut claims = good.clone();
        claims[claim] = wrong.clone();
        let answer = ask(&app, &key.sign(&claims)).await;
        assert_eq!(answer.status, 401, "{claim} = {wrong}");
    }

    let mut member = good.clone();
    member["role"] = "member".into();
    assert_eq!(
        ask(&app, &key.sign(&member)).await.error(403),
        "Role owner, admin, compliance or auditor is required"
    );
}

/// A user is the account at the issuer: the first token binds it, and neither the address nor the role of a token
/// changes who that is.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_token_of_an_account_binds_its_user() {
    let issuer = FakeIssuer::start().await;
    let key = IssuerKey::new("key", 1);
    issuer.publish(&[&key]);
    let app = service(&issuer).await;
    let email = "auditor@maple.example";
    let invited = json!({ "email": email, "role": "auditor" });
    app.post_with_bearer(&app.token("owner"), "/users", invited)
        .await
        .data(201);

    let signed = |subject: &str, email: &str| {
        let mut claims = claims(&app, &issuer);
        (claims["sub"], claims["email"]) = (subject.into(), email.into());
        key.sign(&claims)
    };
    assert_eq!(ask(&app, &signed("17", email)).await.status, 404);
    assert_eq!(ask(&app, &signed("17", email)).await.status, 404);

    let bound = app
        .text_of("select group_concat(details) from ledger_entry where action = 'user.bound'")
        .await;
    assert_eq!(bound.matches("\"subject\":\"17\"").count(), 1, "{bound}");

    // Another account with the address is another person; the account with another address is the same user.
    assert_eq!(ask(&app, &signed("18", email)).await.status, 401);

    let renamed = signed("17", "new@maple.example");
    assert_eq!(ask(&app, &renamed).await.status, 404);

    let key = json!({ "scopes": ["envelopes:read"] });
    let refused = app.post_with_bearer(&renamed, "/api-keys", key).await;
    assert_eq!(refused.status, 403, "still an auditor: {}", refused.text());
}

/// The algorithm that a token names never decides how a key is used.
#[tokio::test(flavor = "multi_thread")]
async fn algorithm_confusion_is_refused() {
    let issuer = FakeIssuer::start().await;
    let key = IssuerKey::new("key", 1);
    issuer.publish(&[&key]);
    let app = service(&issuer).await;
    let claims = claims(&app, &issuer);

    // The public key as an HMAC secret, under our own algorithm.
    let public = key.jwk().to_string();
    let forged = jsonwebtoken::encode(
        &Header::new(Algorithm::HS256),
        &claims,
        &EncodingKey::from_secret(public.as_bytes()),
    )
    .unwrap();
    assert_eq!(ask(&app, &forged).await.status, 401);

    // No signature at all.
    use base64::Engine as _;

    let encode = |text: &str| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
    let none = format!(
        "{}.{}.",
        encode(r#"{"alg":"none","typ":"JWT"}"#),
        encode(&claims.to_string())
    );
    assert_eq!(ask(&app, &none).await.status, 401);

    // A symmetric key published by the issuer.
    *issuer.keys.lock().unwrap() =
        vec![json!({ "kty": "oct", "k": encode("secret"), "kid": "oct", "alg": "HS256" })];
    let header = Header {
        kid: Some("oct".into()),
        ..Header::new(Algorithm::HS256)
    };
    let symmetric =
        jsonwebtoken::encode(&header, &claims, &EncodingKey::from_secret(b"secret")).unwrap();
    assert_eq!(ask(&app, &symmetric).await.status, 401);
}

/// While the issuer is unreachable, tokens with known keys are accepted and others are refused.
#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_outage_refuses_tokens_with_unknown_keys() {
    let issuer = FakeIssuer::start().await;
    let (known, unknown) = (IssuerKey::new("known", 1), IssuerKey::new("unknown", 2));
    issuer.publish(&[&known]);
    let app = service(&issuer).await;
    let claims = claims(&app, &issuer);
    assert_eq!(ask(&app, &known.sign(&claims)).await.status, 404);

    issuer.server.abort();
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    assert_eq!(ask(&app, &unknown.sign(&claims)).await.status, 401);
    assert_eq!(ask(&app, &known.sign(&claims)).await.status, 404);
    assert_eq!(
        ask(&app, &app.other_admin()).await.status,
        404,
        "our own still work"
    );
}

/// Which of the web app's own tokens may call an administrator's endpoint, and the errors that
/// the others get.
#[tokio::test(flavor = "multi_thread")]
async fn an_administrators_endpoint_requires_an_administrators_token() {
    let app = TestApp::start().await;
    let token = |role: &str| {
        let org = app.org.to_string();
        let arguments = ["token", "issue", "--org", &org, "--email", "a@example.com"];
        let arguments = [&arguments[..], &["--role", role]].concat();
        let issued = operator(app.data.path(), &arguments);
        issued["token"].as_str().unwrap().to_owned()
    };
    let admin = token("admin");
    for role in [&admin, &token("compliance")] {
        assert_eq!(ask(&app, role).await.error(404), "Envelope not found");
    }

    let refused = ask(&app, &token("member")).await;
    assert_eq!(
        refused.error(403),
        "Role owner, admin, compliance or auditor is required"
    );
    assert_eq!(ask(&app, "no.jwt.atall").await.error(401), "Invalid token");

    let bundle = "/api/v2/envelopes/env_01h455vb4pex5vsknk084sn02q/bundle";
    let bare = Request::get(bundle).body(Body::empty()).unwrap();
    assert_eq!(app.send(bare).await.error(401), "Authentication required");

    let naming = |org: String| {
        let request = Request::get(bundle)
            .header("authorization", format!("Bearer {admin}"))
            .header("x-org-id", org);
        app.send(request.body(Body::empty()).unwrap())
    };
    assert_eq!(naming(app.org.to_string()).await.status, 404);

    let other = holdfast::domain::id::OrgId::new().to_string();
    for org in [other, "nonsense".into()] {
        let refused = naming(org).await.error(403);
        assert_eq!(refused, "X-Org-Id is not the token's organization");
    }
}

/// A stolen token can be revoked, with immediate effect on every node.
#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_token_is_refused_by_every_node() {
    let app = TestApp::start().await;
    let beside = app.another_node(|_| {}).await;
    let data = app.data.path();
    let org = app.org.to_string();
    let issue = || {
        let arguments = ["token", "issue", "--org", &org, "--email", "a@example.com"];
        operator(data, &[&arguments[..], &["--role", "admin"]].concat())
    };
    let (first, second) = (issue(), issue());

    let text = |token: &Value| token["token"].as_str().unwrap().to_owned();
    let revoked = operator(data, &["token", "revoke", &text(&first)]);
    assert_eq!(revoked["token_id"], first["token_id"]);

    for node in [&app, &beside] {
        assert_eq!(ask(node, &text(&first)).await.error(401), "Invalid token");
        assert_eq!(ask(node, &text(&second)).await.status, 404);
    }

    // The other token is revoked by its id, for operators who do not have the token itself.
    let id = second["token_id"].as_str().unwrap();
    operator(data, &["token", "revoke", id, "--org", &org]);
    operator(data, &["token", "revoke", id, "--org", &org]);
    assert_eq!(ask(&app, &text(&second)).await.status, 401);

    let listed = operator(data, &["token", "list", "--org", &org]);
    let listed: Vec<&Value> = listed.as_array().unwrap().iter().collect();
    assert_eq!(listed.len(), 2);
    assert!(listed.iter().all(|token| token["revoked"] == true));
    assert!(listed.iter().all(|token| token["token"].is_null()));

    let audit = operator(data, &["org", "audit", &org]);
    let actions: Vec<&str> = audit
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["action"].as_str().unwrap())
        .collect();

    let expected = [
        "token.issued",
        "token.issued",
        "token.revoked",
        "token.revoked",
    ];
    assert_eq!(actions, expected);

    for wrong in [
        &["token", "revoke", "no.token.atall"][..],
        &["token", "revoke", id],
        &[
            "token",
            "revoke",
            "tok_01h455vb4pex5vsknk084sn02q",
            "--org",
            &org,
        ],
    ] {
        let output = crate::support::operator_output(data, wrong);
        assert!(!output.status.success(), "{wrong:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_valid_for_a_day_at_most() {
    let app = TestApp::start().await;
    let org = app.org.to_string();
    let arguments = ["token", "issue", "--org", &org, "--email", "a@example.com"];
    let of = |ttl| [&arguments[..], &["--role", "admin", "--ttl", ttl]].concat();
    let refused = crate::support::operator_output(app.data.path(), &of("25h"));
    assert!(!refused.status.success());

    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(why.contains("at most 86400 s"), "{why}");

    let issued = operator(app.data.path(), &of("24h"));
    let ends: jiff::Timestamp = issued["expires_at"].as_str().unwrap().parse().unwrap();
    let hours = (ends - jiff::Timestamp::now())
        .total(jiff::Unit::Hour)
        .unwrap();
    assert!((23.0..=24.0).contains(&hours), "{hours}");

    // A token from before the maximum lifetime was shortened is limited by the new setting.
    let shorter = app
        .another_node(|config| {
            config.auth.max_token_ttl = std::time::Duration::from_secs(3600);
            config.clock_offset = Some(std::time::Duration::from_secs(7200));
        })
        .await;

    let token = issued["token"].as_str().unwrap();
    assert_eq!(ask(&shorter, token).await.status, 401);
    assert_eq!(ask(&app, token).await.status, 404);
}

/// Operators' actions on keys are recorded in the audit like their actions on tokens.
#[tokio::test(flavor = "multi_thread")]
async fn changes_of_api_keys_are_in_the_audit() {
    let app = TestApp::start().await;
    let data = app.data.path();
    let org = app.org.to_string();
    let made = operator(
        data,
        &["key", "create", "--org", &org, "--scopes", "vault:read"],
    );
    let id = made["key_id"].as_str().unwrap();
    operator(data, &["key", "rotate", id]);

    operator(data, &["key", "update", id, "--rpm", "7"]);
    operator(data, &["key", "deactivate", id]);
    let audit = operator(data, &["org", "audit", &org]);
    let audit = audit.as_array().unwrap();
    let actions: Vec<&str> = audit
        .iter()
        .map(|entry| entry["action"].as_str().unwrap())
        .collect();

    let expected = [
        "key.created",
        "key.rotated",
        "key.updated",
        "key.deactivated",
    ];
    assert_eq!(actions, expected);
    assert!(audit.iter().all(|entry| entry["details"]["key_id"] == id));
    assert_eq!(audit[2]["details"]["rate_limit_rpm"], 7);

    let secret = made["api_key"].as_str().unwrap();
    assert!(!json!(audit).to_string().contains(secret));
}
