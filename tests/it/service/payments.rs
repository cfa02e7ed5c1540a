//! Payment at signing: the payer, the steps that wait for the payment, and the processor's
//! callbacks.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use holdfast::config::DeploymentEnvironment;
use holdfast::domain::component::Slot;
use holdfast::domain::organization::{OrgSettings, PaymentSettings, Scope};
use serde_json::{Value, json};

use crate::service::components::registry::variant;
use crate::support::authority::hmac_sha256;
use crate::support::processor::{PaymentProcessor, SECRET_KEY, WEBHOOK_SECRET};
use crate::support::{TestApp, TestResponse, envelope_body, form, postgres, release_form};

const PAYER: &str = "jordan.lee@example.com";

fn fee() -> PaymentSettings {
    PaymentSettings {
        amount_cents: 4900,
        currency: "USD".into(),
        connected_account: Some("acct_dealer".into()),
        platform_fee_cents: Some(150),
        payer: "first".into(),
    }
}

fn paying(auto_vault: bool) -> OrgSettings {
    OrgSettings {
        auto_vault,
        payment: Some(fee()),
        ..OrgSettings::default()
    }
}

async fn token_for(app: &TestApp, id: &str, email: &str) -> String {
    let body = json!({ "envelope_id": id, "user_email": email, "widget_type": "sign" });
    let issued = app.post("/embed/token", body).await.data(200);
    issued["token"].as_str().unwrap().to_owned()
}

async fn intent(app: &TestApp, token: &str) -> Value {
    let path = "/embed/payment-intent";
    app.post_with_bearer(token, path, json!({})).await.data(200)
}

async fn status(app: &TestApp, token: &str) -> Value {
    let path = "/embed/payment-status";
    let answer = app.post_with_bearer(token, path, json!({})).await;
    answer.data(200)["status"].clone()
}

/// Requests a page outside the API.
async fn page(app: &TestApp, request: axum::http::request::Builder, body: &str) -> TestResponse {
    let form = "application/x-www-form-urlencoded";
    let request = request.header("content-type", form);
    app.send(request.body(Body::from(body.to_owned())).unwrap())
        .await
}

/// Returns the path of the sandbox's payment page, taken from the client secret.
fn sandbox_page(intent: &Value) -> String {
    let secret = intent["client_secret"].as_str().unwrap();
    format!("/sandbox/payments/{}", secret.trim_end_matches("_secret"))
}

async fn pay_in_sandbox(app: &TestApp, token: &str) {
    let page_path = sandbox_page(&intent(app, token).await);
    let paid = page(app, Request::post(&page_path), "pay=pay").await;
    assert!(paid.text().contains("Payment received"), "{}", paid.text());
}

async fn wait_until_paid(app: &TestApp, token: &str) {
    let patience = std::time::Instant::now() + Duration::from_secs(120);
    while status(app, token).await != "paid" {
        assert!(std::time::Instant::now() < patience, "not paid");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Sends an envelope with a payment; returns its id, its link, and the payer's token.
async fn asked(app: &TestApp) -> (String, String, String) {
    let envelope = app.sent_envelope().await;
    let id = envelope["envelope_id"].as_str().unwrap().to_owned();
    let url = envelope["sign_url"].as_str().unwrap().to_owned();
    let token = token_for(app, &id, PAYER).await;
    (id, url, token)
}

/// Specification, `POST /embed/payment-intent` and `/embed/payment-status`, with the
/// sandbox of the contract.
#[tokio::test(flavor = "multi_thread")]
async fn the_payer_pays_in_the_sandbox() {
    let app = TestApp::with(|_| {}, paying(true)).await;
    let (id, url, token) = asked(&app).await;
    let due = intent(&app, &token).await;
    assert_eq!(due["payment_required"], true);
    assert!(due["payment_id"].as_str().unwrap().starts_with("pay_"));
    assert_eq!(
        (&due["amount_cents"], &due["currency"]),
        (&json!(4900), &json!("USD"))
    );
    assert_eq!(due["status"], "requires_payment");
    assert_eq!(due["publishable_key"], "pk_sandbox");
    assert_eq!(
        intent(&app, &token).await,
        due,
        "asked for twice, it is one payment"
    );

    assert_eq!(status(&app, &token).await, "requires_payment");

    let page_path = sandbox_page(&due);
    let shown = page(&app, Request::get(&page_path), "").await;
    assert!(shown.text().contains("USD 49.00") && shown.text().contains("name=\"pay\""));

    // The page has the brand of the sender, as all pages of a signer.
    let style = format!("/assets/brand/{}/brand.css", app.org);
    assert!(!shown.text().contains(&style), "{}", shown.text());

    app.set_organization(&[r##"brand={"name":"Oak & Pine","color":"#0b57d0"}"##]);
    let shown = page(&app, Request::get(&page_path), "").await.text();
    assert!(
        shown.contains(&style) && shown.contains("Oak &amp; Pine"),
        "{shown}"
    );

    pay_in_sandbox(&app, &token).await;
    wait_until_paid(&app, &token).await;
    assert_eq!(
        intent(&app, &token).await,
        json!({ "payment_required": false })
    );

    let events = app.events(&id).await;
    let paid: Vec<&Value> = events
        .iter()
        .filter(|event| event["event_type"] == "payment.succeeded")
        .collect();
    assert_eq!(paid.len(), 1);
    assert_eq!(paid[0]["data"]["amount_cents"], 4900);
    assert_eq!(paid[0]["data"]["currency"], "USD");

    let entry = app.entry(&id, "payment.succeeded").await;
    assert_eq!(entry["payment_id"], due["payment_id"]);
    assert_eq!(entry["sandbox"], true, "a sandbox proves nothing");
    assert_eq!(app.entry(&id, "payment.requested").await["sandbox"], true);

    form::sign(&app, &url).await;
    app.wait_for(&id, "vaulted").await;
    let certificate = format!("/partner/envelopes/{id}/vault/certificate");
    let certificate = app.get(&certificate).await.data(200);
    assert_eq!(certificate["provenance"]["sandbox"], true);
}

/// Only the payer is asked for a payment, and only while the envelope is open.
#[tokio::test(flavor = "multi_thread")]
async fn only_the_payer_is_asked_for_a_payment() {
    let settings = OrgSettings {
        payment: Some(PaymentSettings {
            payer: "Seller".into(),
            ..fee()
        }),
        ..OrgSettings::default()
    };
    let app = TestApp::with(|_| {}, settings).await;
    let (id, links) = app.sent_to_two().await;
    let path = format!("/partner/envelopes/{id}/signing-links");
    let signers = app.get(&path).await.data(200)["signers"].clone();
    let email = |index: usize| signers[index]["email"].as_str().unwrap().to_owned();
    let buyer = token_for(&app, &id, &email(0)).await;

    let seller = token_for(&app, &id, &email(1)).await;
    assert_eq!(
        intent(&app, &buyer).await,
        json!({ "payment_required": false })
    );
    assert_eq!(intent(&app, &seller).await["payment_required"], true);
    assert!(
        !form::open(&app, &links[0])
            .await
            .text()
            .contains("Amount due")
    );

    let voided = format!("/partner/envelopes/{id}/void");
    app.post(&voided, json!({})).await.data(200);
    assert_eq!(
        intent(&app, &seller).await,
        json!({ "payment_required": false })
    );

    // When the document lacks the payer's role, the first signer pays.
    let (_, _, token) = asked(&app).await;
    assert_eq!(intent(&app, &token).await["payment_required"], true);
}

/// An envelope can override its organization's payment or have its own.
#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_overrides_the_organizations_payment() {
    let app = TestApp::start().await;
    let template = app.contract_template().await["template_id"].clone();
    let create = |payment: Value| {
        let mut body = envelope_body(&template);
        body["payment"] = payment;
        app.post("/partner/envelopes", body)
    };
    let made = create(json!({ "amount_cents": 500, "currency": "jpy" }))
        .await
        .data(201);
    let id = made["envelope_id"].as_str().unwrap();
    let due = intent(&app, &token_for(&app, id, PAYER).await).await;
    assert_eq!(
        (&due["amount_cents"], &due["currency"]),
        (&json!(500), &json!("JPY"))
    );

    for (payment, path) in [
        (
            json!({ "amount_cents": 0, "currency": "USD" }),
            "amount_cents",
        ),
        (
            json!({ "amount_cents": 100_000_000, "currency": "USD" }),
            "amount_cents",
        ),
        (
            json!({ "amount_cents": 1.5, "currency": "USD" }),
            "amount_cents",
        ),
        (
            json!({ "amount_cents": 100, "currency": "dollars" }),
            "currency",
        ),
        (
            json!({ "amount_cents": 100, "currency": "XXX" }),
            "currency",
        ),
        (
            json!({ "amount_cents": 100, "currency": "USD", "payer": "Nobody" }),
            "payer",
        ),
    ] {
        let refused = create(payment.clone()).await;
        assert_eq!(refused.status, 422, "{payment}: {}", refused.text());
        let issue = refused.json()["details"][0]["path"].clone();
        assert_eq!(issue, json!(["payment", path]), "{payment}");
    }

    // An envelope without a payment requires none.
    let (_, _, token) = asked(&app).await;
    assert_eq!(
        intent(&app, &token).await,
        json!({ "payment_required": false })
    );
    assert_eq!(status(&app, &token).await, Value::Null);
}

/// Tests each payment state with vault-in, vault URLs, vault tokens and auto-vault.
#[tokio::test(flavor = "multi_thread")]
async fn custody_waits_for_the_payment() {
    let unpaid = "Payment has not been completed";
    for (requested, paid, auto_vault) in [
        (false, false, false),
        (true, false, false),
        (true, true, false),
        (true, false, true),
        (true, true, true),
    ] {
        let case = format!("requested {requested}, paid {paid}, auto-vault {auto_vault}");
        let settings = if requested {
            paying(auto_vault)
        } else {
            OrgSettings {
                auto_vault,
                ..OrgSettings::default()
            }
        };
        let app = TestApp::with(|_| {}, settings).await;
        let (id, url, token) = asked(&app).await;
        form::sign(&app, &url).await;

        app.wait_for(&id, "completed").await;
        let vault_in = format!("/partner/envelopes/{id}/vault-in-signed");
        let body = json!({ "envelope_id": id, "user_email": PAYER, "widget_type": "vault" });
        if requested {
            assert_eq!(
                app.post(&vault_in, json!({})).await.error(409),
                unpaid,
                "{case}"
            );

            for link in ["vault/signed-url", "vault/copy/signed-url"] {
                let path = format!("/partner/envelopes/{id}/{link}");
                assert_eq!(app.get(&path).await.status, 409, "{case}: {link}");
            }

            let refused = app.post("/embed/token", body.clone()).await;
            assert_eq!(refused.status, 409, "{case}");

            app.wait_for(&id, "completed").await;
        }

        if paid {
            pay_in_sandbox(&app, &token).await;
            wait_until_paid(&app, &token).await;
        }

        if requested && !paid {
            // No event announces a vaulting that the payment blocks.
            let events = app.event_types(&id).await;
            assert!(
                !events.iter().any(|event| event.starts_with("vault.")),
                "{case}: {events:?}"
            );

            continue;
        }

        if !auto_vault {
            app.post(&vault_in, json!({})).await.data(200);
        }

        app.wait_for(&id, "vaulted").await;
        let path = format!("/partner/envelopes/{id}/vault/signed-url");
        app.get(&path).await.data(200);
        app.post("/embed/token", body).await.data(200);
        let path = format!("/partner/envelopes/{id}/vault-out");
        app.post(&path, release_form()).await.data(200);
    }
}

/// Paper envelopes are not signed, but their payment blocks vault-in all the same.
#[tokio::test(flavor = "multi_thread")]
async fn an_unpaid_upload_is_not_vaulted() {
    let app = TestApp::with(|_| {}, paying(true)).await;
    let mut body = envelope_body(&Value::Null);
    body["envelope_kind"] = "paper".into();
    let made = app.post("/partner/envelopes", body).await.data(201);
    let id = made["envelope_id"].as_str().unwrap();
    let path = format!("/partner/envelopes/{id}/upload");
    app.upload(&path, "application/pdf", crate::support::CONTRACT, &[])
        .await
        .data(201);

    let path = format!("/partner/envelopes/{id}/vault-in-upload");
    let refused = app.post(&path, json!({})).await.error(409);
    assert_eq!(refused, "Payment has not been completed");

    // Without signers, the organization collects the payment from the customer.
    let collect = format!("/envelopes/{id}/payment-intent");
    let admin = app.web_admin();
    let due = app
        .post_with_bearer(admin, &collect, json!({}))
        .await
        .data(200);
    assert_eq!(due["payment_required"], true);

    let page_path = due["payment_url"].as_str().unwrap();
    let page_path = page_path.strip_prefix("http://127.0.0.1:8080").unwrap();
    page(&app, Request::post(page_path), "pay=pay").await;
    app.wait_for_event(id, "payment.succeeded").await;
    app.post(&path, json!({})).await.data(200);
    let nothing = app
        .post_with_bearer(admin, &collect, json!({}))
        .await
        .data(200);
    assert_eq!(nothing, json!({ "payment_required": false }));

    let other = app.other_admin();
    let refused = app.post_with_bearer(&other, &collect, json!({})).await;
    assert_eq!(refused.error(404), "Envelope not found");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_embed_tokens_open_the_payment_endpoints() {
    let app = TestApp::with(|_| {}, paying(true)).await;
    for path in ["/embed/payment-intent", "/embed/payment-status"] {
        let request = Request::post(format!("/api/v2{path}")).body(Body::empty());
        let without = app.send(request.unwrap()).await;
        assert_eq!(without.error(401), "Authentication required");

        let web = app.web_admin().to_owned();
        for token in ["nonsense", web.as_str()] {
            let refused = app.post_with_bearer(token, path, json!({})).await;
            assert_eq!(refused.error(401), "Invalid token");
        }
    }

    let (_, _, token) = asked(&app).await;
    let later = app.as_of(Duration::from_secs(960)).await;
    let path = "/embed/payment-intent";
    let expired = later.post_with_bearer(&token, path, json!({})).await;
    assert_eq!(expired.error(401), "Invalid token");
}

/// The form shows the payment step to the payer, before and after signing.
#[tokio::test(flavor = "multi_thread")]
async fn the_form_links_to_the_payment_and_back() {
    let app = TestApp::with(|_| {}, paying(false)).await;
    let (id, url, token) = asked(&app).await;
    let shown = form::open(&app, &url).await.text();
    assert!(
        shown.contains("Amount due: <strong>USD 49.00</strong>"),
        "{shown}"
    );

    let pay = format!("{}/pay", url.replace("http://127.0.0.1:8080", ""));
    let leads = page(&app, Request::get(&pay), "").await;
    assert_eq!(leads.status, 303);

    let to = leads.headers["location"].to_str().unwrap().to_owned();
    let (path, query) = to
        .strip_prefix("http://127.0.0.1:8080")
        .and_then(|rest| rest.split_once('?'))
        .unwrap();
    assert_eq!(path, sandbox_page(&intent(&app, &token).await));

    let back = format!("href=\"{url}\"");
    let paid = page(&app, Request::post(format!("{path}?{query}")), "pay=pay").await;
    assert!(paid.text().contains(&back), "{}", paid.text());

    // The return address has to be one of our own pages.
    let elsewhere = format!("{path}?return=https%3A%2F%2Fevil.example%2Fsign%2Fx");
    let paid = page(&app, Request::post(elsewhere), "pay=pay").await;
    assert!(!paid.text().contains("evil"), "{}", paid.text());

    wait_until_paid(&app, &token).await;
    assert!(!form::open(&app, &url).await.text().contains("Amount due"));

    form::sign(&app, &url).await;
    let done = form::open(&app, &url).await.text();
    assert!(done.contains("You have signed") && !done.contains("Amount due"));
    assert!(done.contains("You can close this page"), "{done}");

    app.wait_for(&id, "completed").await;

    let (_, url, _) = asked(&app).await;
    form::sign(&app, &url).await;
    let due = form::open(&app, &url).await.text();
    assert!(due.contains("Amount due"));
    assert!(!due.contains("You can close this page"), "{due}");
}

/// Contract, "Sandboxes for development" and "Production without a payment or KBA provider".
#[tokio::test(flavor = "multi_thread")]
async fn production_disables_the_sandboxes() {
    let development = TestApp::with(|_| {}, paying(true)).await;
    let (id, _, token) = asked(&development).await;
    let page_path = sandbox_page(&intent(&development, &token).await);
    let app = development
        .another_node(|config| config.env = Some(DeploymentEnvironment::Production))
        .await;
    let token = token_for(&app, &id, PAYER).await;

    let path = "/embed/payment-intent";
    let refused = app
        .post_with_bearer(&token, path, json!({}))
        .await
        .error(503);
    assert_eq!(refused, "No payment provider is configured");
    assert_eq!(page(&app, Request::get(&page_path), "").await.status, 404);
    assert_eq!(
        page(&app, Request::post(&page_path), "pay=pay")
            .await
            .status,
        404
    );

    let callback = app.post("/callbacks/payment/embedded", json!({})).await;
    assert_eq!(callback.error(404), "Provider instance not found");
}

/// Stripe's plugin with a third-party processor: a destination charge and its callback.
#[tokio::test(flavor = "multi_thread")]
async fn a_processor_collects_the_payment_and_sends_a_callback() {
    let processor = PaymentProcessor::start();
    let app = TestApp::with(|config| processor.configure(config), paying(true)).await;
    let host = app.listen().await;
    let callbacks = format!("{host}/api/v2/callbacks/payment/main");
    processor.send_events_to(&callbacks).await;
    let (id, url, token) = asked(&app).await;
    let due = intent(&app, &token).await;
    assert_eq!(due["publishable_key"], "pk_test_holdfast");

    let secret = due["client_secret"].as_str().unwrap();
    let at_processor = secret.split("_secret_").next().unwrap();
    let path = format!("/v1/payment_intents/{at_processor}");
    let charge = processor.get(&path).await;
    assert_eq!(
        (&charge["amount"], &charge["currency"]),
        (&json!(4900), &json!("usd"))
    );
    assert_eq!(charge["transfer_data"]["destination"], "acct_dealer");
    assert_eq!(charge["application_fee_amount"], "150");
    assert_eq!(charge["receipt_email"], PAYER);
    assert_eq!(charge["metadata"]["envelope_id"], id.as_str());
    assert_eq!(charge["metadata"]["payment_id"], due["payment_id"]);

    form::sign(&app, &url).await;
    app.wait_for(&id, "completed").await;
    processor.pay(at_processor).await;

    // The processor's callback alone triggers vaulting, without any request.
    app.wait_for(&id, "vaulted").await;
    assert_eq!(status(&app, &token).await, "paid");

    let events = app.event_types(&id).await;
    let paid = events.iter().filter(|event| *event == "payment.succeeded");
    assert_eq!(paid.count(), 1);

    app.events_fit_their_schemas(1).await;
}

/// The payer's page embeds the processor's form, and its policy allows no other origin.
#[tokio::test(flavor = "multi_thread")]
async fn the_payers_page_embeds_the_processors_form() {
    let processor = PaymentProcessor::start();
    let app = TestApp::with(|config| processor.configure(config), paying(true)).await;
    let (_, url, token) = asked(&app).await;
    let due = intent(&app, &token).await;
    let pay = format!("{}/pay", url.replace("http://127.0.0.1:8080", ""));
    let shown = page(&app, Request::get(&pay), "").await;
    assert_eq!(shown.status, 200);

    let text = shown.text();
    for part in [
        due["client_secret"].as_str().unwrap(),
        "pk_test_holdfast",
        "https://js.stripe.com/v3/",
        "USD 49.00",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }

    let policy = shown.headers["content-security-policy"].to_str().unwrap();
    assert!(
        policy.contains("script-src 'self' https://js.stripe.com;"),
        "{policy}"
    );

    let form = form::open(&app, &url).await;
    let policy = form.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("script-src 'self';"), "{policy}");
}

/// A lost callback is detected by the next status request, and by the periodic poll.
#[tokio::test(flavor = "multi_thread")]
async fn a_payment_is_detected_without_its_callback() {
    let processor = PaymentProcessor::start();
    let change = |config: &mut holdfast::config::Config| {
        processor.configure(config);
        config.sweep_interval = Some(Duration::from_millis(200));
    };
    let app = TestApp::with(change, paying(true)).await;
    let (id, url, token) = asked(&app).await;
    let due = intent(&app, &token).await;
    let secret = due["client_secret"].as_str().unwrap();

    form::sign(&app, &url).await;
    processor
        .pay(secret.split("_secret_").next().unwrap())
        .await;
    app.wait_for(&id, "vaulted").await;
    let (_, _, other) = asked(&app).await;
    let due = intent(&app, &other).await;
    let secret = due["client_secret"].as_str().unwrap();
    processor
        .pay(secret.split("_secret_").next().unwrap())
        .await;
    assert_eq!(status(&app, &other).await, "paid");
    assert_eq!(status(&app, &token).await, "paid");
}

/// Returns the `Stripe-Signature` of a body, computed with OpenSSL.
fn signature(at: i64, body: &str) -> String {
    let digest = hmac_sha256(WEBHOOK_SECRET, format!("{at}.{body}").as_bytes());
    format!("t={at},v1={digest}")
}

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    i64::try_from(since.unwrap().as_secs()).unwrap()
}

async fn call_back(app: &TestApp, signature: Option<&str>, body: &str) -> TestResponse {
    let mut request = Request::post("/api/v2/callbacks/payment/main");
    if let Some(signature) = signature {
        request = request.header("stripe-signature", signature);
    }
    app.send(request.body(Body::from(body.to_owned())).unwrap())
        .await
}

/// Callbacks need a recent signature with the configured secret (contract, "Signing callback",
/// applied to payments).
#[tokio::test(flavor = "multi_thread")]
async fn payment_callbacks_need_a_recent_signature() {
    let processor = PaymentProcessor::start();
    let app = TestApp::with(|config| processor.configure(config), paying(true)).await;
    let body = r#"{"type":"payment_intent.succeeded","data":{"object":{"id":"pi_unknown"}}}"#;
    let good = signature(now(), body);
    let digest = good.split("v1=").nth(1).unwrap();
    let zeros = "0".repeat(64);

    let other = format!("{body} ");
    for (signature, body, expected) in [
        (None, body, 401),
        (Some("v1=".to_owned() + digest), body, 401),
        (Some(format!("t={},v1={zeros}", now())), body, 401),
        (Some(good.clone()), other.as_str(), 401),
        (Some(signature(now() - 301, body)), body, 401),
        (Some(signature(now() + 302, body)), body, 401),
        (Some(format!("t={},v0={digest}", now())), body, 401),
        // During a rotation the header has one digest for each secret.
        (
            Some(good.replace("v1=", &format!("v1={zeros},v1="))),
            body,
            200,
        ),
        // A payment of another account at the same processor is ignored.
        (Some(good.clone()), body, 200),
        (Some(signature(now(), "[]")), "[]", 400),
    ] {
        let answer = call_back(&app, signature.as_deref(), body).await;
        assert_eq!(answer.status, expected, "{signature:?} {}", answer.text());
    }

    let path = "/callbacks/payment/nobody";
    assert_eq!(app.post(path, json!({})).await.status, 404);
}

/// A callback only triggers a look-up, so repeated, reordered or wrong callbacks do no harm. A
/// refund is recorded once and changes no state.
#[tokio::test(flavor = "multi_thread")]
async fn payment_callbacks_can_be_repeated_and_reordered_on_sqlite() {
    any_order(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn payment_callbacks_can_be_repeated_and_reordered_on_postgresql() {
    any_order(Some(postgres::new_database().await)).await;
}

async fn any_order(database: Option<String>) {
    let processor = PaymentProcessor::start();
    let change = |config: &mut holdfast::config::Config| {
        processor.configure(config);
        config.database_url = database;
    };
    let app = TestApp::with(change, paying(true)).await;
    let (id, url, token) = asked(&app).await;
    let due = intent(&app, &token).await;
    let secret = due["client_secret"].as_str().unwrap();
    let at_processor = secret.split("_secret_").next().unwrap();
    let event = |kind: &str| {
        json!({ "type": kind, "data": { "object": { "id": at_processor } } }).to_string()
    };

    let refund = json!({ "type": "charge.refunded", "data": { "object": {
        "id": "ch_1", "payment_intent": at_processor, "amount": 4900, "amount_refunded": 1000,
    } } })
    .to_string();
    let tell = async |body: &str| {
        let signature = signature(now(), body);
        call_back(&app, Some(&signature), body).await.data(200);
    };

    // The callback claims success, but the processor reports otherwise.
    tell(&event("payment_intent.succeeded")).await;
    assert_eq!(status(&app, &token).await, "requires_payment");

    tell(&refund).await;
    processor.pay(at_processor).await;
    let body = event("payment_intent.succeeded");
    futures::future::join_all((0..5).map(|_| tell(&body))).await;
    tell(&event("payment_intent.created")).await;
    tell(&refund).await;
    assert_eq!(status(&app, &token).await, "paid");

    form::sign(&app, &url).await;
    app.wait_for(&id, "vaulted").await;
    let dispute = json!({ "type": "charge.dispute.created", "data": { "object": {
        "id": "dp_1", "payment_intent": at_processor, "amount": 4900,
    } } })
    .to_string();
    tell(&dispute).await;

    tell(&dispute).await;
    let custody = app.custody(&id).await;
    let entries = custody["entries"].as_array().unwrap();
    let of = |action: &str| -> Vec<Value> {
        let of = entries.iter().filter(|entry| entry["action"] == action);
        of.map(|entry| entry["details"].clone()).collect()
    };
    assert_eq!(of("payment.succeeded").len(), 1);

    let reversed = of("payment.reversal_reported");
    let reasons: Vec<&Value> = reversed.iter().map(|details| &details["reason"]).collect();
    assert_eq!(reasons, ["charge.refunded", "charge.dispute.created"]);
    assert_eq!(reversed[0]["amount_cents"], 1000);

    app.wait_for(&id, "vaulted").await;
}

/// The processor is unreachable, or no longer knows the payment.
#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_processor_is_a_clear_error() {
    let processor = PaymentProcessor::start();
    let app = TestApp::with(|config| processor.configure(config), paying(true)).await;
    let (_, url, token) = asked(&app).await;
    drop(processor);
    let path = "/embed/payment-intent";
    let refused = app
        .post_with_bearer(&token, path, json!({}))
        .await
        .error(502);
    assert_eq!(refused, "Payment provider request failed");

    let pay = format!("{}/pay", url.replace("http://127.0.0.1:8080", ""));
    let shown = page(&app, Request::get(&pay), "").await;
    assert_eq!(shown.status, 502);
    assert!(shown.text().contains("<h1>Not available right now</h1>"));
    assert_eq!(status(&app, &token).await, "requires_payment");
}

/// An organization's own processor has its own callback address, and its plugin adds no script to
/// pages of other organizations.
#[tokio::test(flavor = "multi_thread")]
async fn an_organization_uses_its_own_processor() {
    let processor = PaymentProcessor::start();
    let insecure = |config: &mut holdfast::config::Config| {
        config.providers.allow_insecure = true;
    };
    let app = TestApp::with(insecure, paying(true)).await;
    let host = app.listen().await;
    let admin = app.admin();

    let bytes = variant(Slot::Payment, "own");
    let uploaded = app
        .upload_component(&admin, "own-pay", "1.0.0", &bytes)
        .await
        .data(201);
    let activation = json!({
        "component_id": uploaded["component_id"], "instance": "own",
        "config": {
            "base_url": processor.url, "settings": { "publishable_key": "pk_own" },
            "secrets": { "secret_key": SECRET_KEY, "webhook_secret": WEBHOOK_SECRET },
        },
    });

    let path = "/component-slots/provider.payment/activate";

    // A first call finds wrong settings.
    let with = |member: &str, value: Value| {
        let mut wrong = activation.clone();
        wrong["config"][member] = value;
        wrong
    };
    let misspelt = with("secrets", json!({ "secret_kee": SECRET_KEY }));
    let refused = app.post_with_bearer(&admin, path, misspelt).await;
    let reason = refused.error(422);
    assert!(
        reason.contains("not configured") && reason.contains("secret_key"),
        "{reason}"
    );

    let elsewhere = with("base_url", json!("http://127.0.0.1:9"));
    let active = app
        .post_with_bearer(&admin, path, elsewhere)
        .await
        .data(201);
    assert_eq!(active["probe"]["ok"], false);

    let reason = active["probe"]["reason"].as_str().unwrap();
    assert!(reason.contains("could not be reached"), "{reason}");

    let active = app
        .post_with_bearer(&admin, path, activation)
        .await
        .data(201);
    assert_eq!(active["probe"], json!({ "ok": true, "reason": null }));

    let callbacks = active["callback_url"].as_str().unwrap();
    let own = format!("/api/v2/callbacks/payment/{}.own", app.org.as_str());
    assert!(callbacks.ends_with(&own), "{callbacks}");

    processor.send_events_to(&format!("{host}{own}")).await;
    let (id, url, token) = asked(&app).await;
    let due = intent(&app, &token).await;
    assert_eq!(due["publishable_key"], "pk_own");

    let pay = format!("{}/pay", url.replace("http://127.0.0.1:8080", ""));
    let shown = page(&app, Request::get(&pay), "").await;
    assert!(shown.text().contains("in another way"), "{}", shown.text());

    let policy = shown.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("script-src 'self';"), "{policy}");

    form::sign(&app, &url).await;
    let secret = due["client_secret"].as_str().unwrap();
    processor
        .pay(secret.split("_secret_").next().unwrap())
        .await;

    app.wait_for(&id, "vaulted").await;
}

/// A payment that was cancelled at the processor is started again, and a payment for an ended
/// envelope is recorded.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_payment_is_started_again() {
    let processor = PaymentProcessor::start();
    let app = TestApp::with(|config| processor.configure(config), paying(true)).await;
    let (id, _, token) = asked(&app).await;
    let at_processor = |due: &Value| {
        let secret = due["client_secret"].as_str().unwrap();
        secret.split("_secret_").next().unwrap().to_owned()
    };
    let first = at_processor(&intent(&app, &token).await);
    processor.cancel(&first).await;

    let second = at_processor(&intent(&app, &token).await);
    assert_ne!(first, second);
    assert_eq!(at_processor(&intent(&app, &token).await), second);

    let path = format!("/partner/envelopes/{id}/void");
    app.post(&path, json!({})).await.data(200);
    processor.pay(&second).await;
    assert_eq!(status(&app, &token).await, "paid");

    let entry = app.entry(&id, "payment.succeeded").await;
    assert_eq!(entry["envelope_status"], "voided");
}

/// A named payer has to be one of the document's signers.
#[tokio::test(flavor = "multi_thread")]
async fn a_named_payer_has_to_be_a_signer() {
    let app = TestApp::start().await;
    let template = app.contract_template().await["template_id"].clone();
    let mut body = envelope_body(&Value::Null);
    body["payment"] = json!({ "amount_cents": 100, "currency": "USD", "payer": "Vendor" });
    let made = app.post("/partner/envelopes", body).await.data(201);
    let path = format!("/envelopes/{}/send", made["envelope_id"].as_str().unwrap());
    let body = json!({ "template_id": template });
    let refused = app.web(axum::http::Method::POST, &path, body).await;
    assert_eq!(refused.status, 422);
    assert_eq!(
        refused.json()["details"][0]["path"],
        json!(["payment", "payer"])
    );
}

/// Organizations cannot see each other's payments.
#[tokio::test(flavor = "multi_thread")]
async fn a_payment_token_opens_only_its_own_envelope() {
    let app = TestApp::with(|_| {}, paying(true)).await;
    let (id, _, _) = asked(&app).await;
    let other = app.other_organization().await;
    let body = json!({ "envelope_id": id, "user_email": PAYER, "widget_type": "sign" });
    assert_eq!(
        app.post_as(&other, "/embed/token", body.clone())
            .await
            .status,
        404
    );

    let reader = app.key_with(&[Scope::EnvelopesRead]).await;
    assert_eq!(app.post_as(&reader, "/embed/token", body).await.status, 403);
}
