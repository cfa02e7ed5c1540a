//! Embed tokens and the widgets that they open.

use axum::body::Body;
use axum::http::Request;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use holdfast::domain::organization::Scope;
use serde_json::{Value, json};

use crate::support::{TestApp, TestResponse, envelope_body, operator_output, release_form};

const SIGNER: &str = "jordan.lee@example.com";

fn request(id: &str, widget: &str) -> Value {
    json!({ "envelope_id": id, "user_email": SIGNER, "widget_type": widget })
}

pub(super) async fn submit(app: &TestApp, path: &str, token: &str) -> TestResponse {
    let body = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("token", token)
        .finish();
    let request = Request::post(path)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Body::from(body))
        .unwrap();
    app.send(request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_embed_token_has_the_specified_claims_and_opens_only_its_widget() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let id = envelope["envelope_id"].as_str().unwrap();
    let issued = app
        .post("/embed/token", request(id, "sign"))
        .await
        .data(200);
    let token = issued["token"].as_str().unwrap();
    let expected = format!("http://127.0.0.1:8080/embed/sign#token={token}");
    assert_eq!(issued["embed_url"], expected);
    assert_eq!(issued["widget_type"], "sign");
    assert_eq!(issued["envelope_id"], id);

    let claims = token.split('.').nth(1).unwrap();
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
    assert_eq!(claims["envelopeId"], id);
    assert_eq!(claims["orgId"], app.org.as_str());
    assert_eq!(claims["widgetType"], "sign");
    assert_eq!(claims["sub"], SIGNER);
    assert_eq!(claims["aud"], "http://127.0.0.1:8080/embed");
    assert!(claims["jti"].is_string());

    let life = claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap();
    assert_eq!(life, 900);

    let recorded = app.entry(id, "embed_token.issued").await;
    assert_eq!(recorded["user_email"], SIGNER);

    let opened = submit(&app, "/embed/sign", token).await;
    assert_eq!(opened.status, 303);

    let link = opened.headers["location"].to_str().unwrap();
    assert!(link.starts_with("http://127.0.0.1:8080/sign/"), "{link}");
    assert_eq!(submit(&app, "/embed/vault", token).await.status, 401);

    let forged = format!("{token}x");
    assert_eq!(submit(&app, "/embed/sign", &forged).await.status, 401);

    app.set_organization(&[r##"brand={"name":"Oak & Pine","color":"#0b57d0"}"##]);
    let later = app.as_of(std::time::Duration::from_secs(15 * 60 + 6)).await;
    let expired = submit(&later, "/embed/sign", token).await;
    assert_eq!(expired.status, 401);

    // The page for an expired token still names the organization; that for a forged one does not.
    assert!(
        expired.text().contains("Oak &amp; Pine"),
        "{}",
        expired.text()
    );

    let forged = submit(&later, "/embed/sign", &forged).await;
    assert!(!forged.text().contains("Oak &amp; Pine"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_embed_token_requires_the_scope_of_its_widget() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    for (scopes, widget, missing) in [
        (&[Scope::VaultRead][..], "sign", "esign:write"),
        (&[Scope::EsignWrite][..], "vault", "vault:read"),
        (&[Scope::EnvelopesRead][..], "vault", "esign:write"),
    ] {
        let key = app.key_with(scopes).await;
        let refused = app
            .post_as(&key, "/embed/token", request(&id, widget))
            .await;
        let expected = format!("Missing required scope: {missing}");
        assert_eq!(refused.error(403), expected);
    }

    let key = app.key_with(&[Scope::VaultRead]).await;
    app.post_as(&key, "/embed/token", request(&id, "vault"))
        .await
        .data(200);
    let nobody = app.post_as("", "/embed/token", request(&id, "vault")).await;
    assert_eq!(nobody.error(401), "API key is required");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_embed_token_is_refused_for_an_empty_widget() {
    let app = TestApp::start().await;
    let ask = async |body: Value| app.post("/embed/token", body).await;
    let envelope = app.sent_envelope().await;
    let id = envelope["envelope_id"].as_str().unwrap();
    assert_eq!(ask(request(id, "vault")).await.status, 409);

    let stranger =
        json!({ "envelope_id": id, "user_email": "x@example.com", "widget_type": "sign" });
    let refused = ask(stranger).await;
    assert_eq!(refused.status, 422);
    assert_eq!(refused.json()["details"][0]["path"], json!(["user_email"]));

    let unknown = request("env_01jdk7m3e8f4x9s2w5v6b0c1dc", "sign");
    assert_eq!(ask(unknown).await.error(404), "Envelope not found");

    let other = app.other_organization().await;
    let foreign = app
        .post_as(&other, "/embed/token", request(id, "sign"))
        .await;
    assert_eq!(foreign.error(404), "Envelope not found");

    for wrong in [
        json!({ "envelope_id": id, "user_email": SIGNER, "widget_type": "admin" }),
        json!({ "envelope_id": id, "user_email": "nobody", "widget_type": "sign" }),
        json!({ "user_email": SIGNER, "widget_type": "sign" }),
    ] {
        assert_eq!(ask(wrong).await.error(422), "Validation failed");
    }

    let pending = app
        .post("/partner/envelopes", envelope_body(&Value::Null))
        .await
        .data(201);
    let pending = pending["envelope_id"].as_str().unwrap();
    assert_eq!(ask(request(pending, "sign")).await.status, 409);

    let vaulted = app.vaulted_envelope().await;
    assert_eq!(ask(request(&vaulted, "sign")).await.status, 409);

    ask(request(&vaulted, "vault")).await.data(200);
    let release = format!("/partner/envelopes/{vaulted}/vault-out");
    app.post(&release, release_form()).await.data(200);
    assert_eq!(ask(request(&vaulted, "vault")).await.status, 409);
}

/// The widget follows the last integrity check.
#[tokio::test(flavor = "multi_thread")]
async fn the_vault_widget_does_not_call_a_changed_record_safe() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    app.custody(&id).await;
    let issued = app.post("/embed/token", request(&id, "vault")).await;
    let issued = issued.data(200);
    let token = issued["token"].as_str().unwrap();

    let mut stored = app.objects("vault");
    stored.retain(|path| path.to_string_lossy().contains(&id));
    std::fs::remove_file(&stored[0]).unwrap();
    std::fs::write(&stored[0], b"another document").unwrap();
    operator_output(app.data.path(), &["vault", "sweep"]);

    let page = submit(&app, "/embed/vault", token).await.text();
    assert!(page.contains("Found changed"), "{page}");
    assert!(!page.contains("Safe in the vault"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_vault_widget_shows_the_record_and_serves_the_copy() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let issued = app
        .post("/embed/token", request(&id, "vault"))
        .await
        .data(200);
    let token = issued["token"].as_str().unwrap();
    let page = submit(&app, "/embed/vault", token).await;
    assert_eq!(page.status, 200, "{}", page.text());

    let text = page.text();
    for shown in [
        "Safe in the vault",
        "vault@maple.example",
        "The document was prepared",
        "8 of 8 checks",
        "Kept for",
        "First Example Bank",
    ] {
        assert!(text.contains(shown), "{shown}: {text}");
    }

    assert!(!text.contains("envelope.created"), "{text}");
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.ends_with("frame-ancestors 'none'"), "{policy}");

    let copy = submit(&app, "/embed/vault/copy", token).await;
    assert_eq!(copy.status, 303);

    let copy = app.get(copy.headers["location"].to_str().unwrap()).await;
    assert_eq!(copy.headers["content-type"], "application/pdf");
    assert_eq!(
        submit(&app, "/embed/vault/copy", "nothing").await.status,
        401
    );

    let script = app
        .send(Request::get("/embed/embed.js").body(Body::empty()).unwrap())
        .await;
    assert!(
        script
            .text()
            .starts_with("const ORIGINS = [\"http://127.0.0.1:8080\"")
    );

    let shell = app
        .send(Request::get("/embed/sign").body(Body::empty()).unwrap())
        .await;
    let policy = shell.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.ends_with("frame-ancestors *"), "{policy}");
}
