//! Drawing an entry of the form on a phone that scans a code.

use std::net::SocketAddr;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use holdfast::domain::clock::Clock;
use serde_json::{Value, json};

use crate::support::{TestApp, TestResponse, envelope_body, form};

const FIELD: &str = "Buyer signature";

fn picture() -> String {
    let png = include_bytes!("../../../fixtures/scan.png");
    format!("data:image/png;base64,{}", BASE64_STANDARD.encode(png))
}

/// Presses the button of a field, like the form's script does.
async fn ask(app: &TestApp, url: &str, field: &str) -> TestResponse {
    let body = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("action", &format!("phone:{field}"))
        .finish();
    let request = Request::post(form::path(url))
        .header("content-type", "application/x-www-form-urlencoded")
        .header("accept", "application/json")
        .body(Body::from(body))
        .unwrap();
    app.send(request).await
}

/// Returns the address in the code of the signature field.
async fn address(app: &TestApp, url: &str) -> String {
    let offered = ask(app, url, FIELD).await;
    assert_eq!(offered.status, 200, "{}", offered.text());
    offered.json()["address"].as_str().unwrap().to_owned()
}

async fn hand_in(app: &TestApp, address: &str, picture: &str) -> TestResponse {
    let body = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("picture", picture)
        .finish();
    let phone = SocketAddr::from(([203, 0, 113, 7], 40_000));
    let request = Request::post(form::path(address))
        .header("content-type", "application/x-www-form-urlencoded")
        .header("user-agent", "Phone/1")
        .extension(ConnectInfo(phone))
        .body(Body::from(body))
        .unwrap();
    app.send(request).await
}

async fn state(app: &TestApp, url: &str) -> Value {
    let state = form::fetch(app, &format!("{url}/drawing")).await;
    assert_eq!(state.status, 200, "{}", state.text());
    assert_eq!(state.headers["cache-control"], "no-store");
    state.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drawing_from_a_phone_becomes_the_entry_of_the_form() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let url = envelope["sign_url"].as_str().unwrap();
    let id = envelope["envelope_id"].as_str().unwrap();
    let page = form::open(&app, url).await.text();
    assert!(page.contains(">Draw on your phone</button>"), "{page}");
    assert_eq!(state(&app, url).await, json!({ "state": "ended" }));

    let offered = ask(&app, url, FIELD).await.json();
    let code = offered["code"].as_str().unwrap();
    assert!(code.starts_with("data:image/svg+xml;base64,"), "{code}");
    assert_eq!(offered["seconds"], 600);
    assert_eq!(state(&app, url).await, json!({ "state": "awaited" }));

    // The phone learns the names, and gets nothing of the document and no way to sign.
    let address = offered["address"].as_str().unwrap();
    let phone = form::fetch(&app, address).await;
    assert_eq!(phone.status, 200, "{}", phone.text());
    assert_eq!(phone.headers["referrer-policy"], "no-referrer");
    let policy = phone.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    let text = phone.text();
    for shown in ["Jordan Lee", "Use this signature", "Nothing is signed"] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    for hidden in [FIELD, "/pages/", "value=\"finish\"", "name=\"consent\""] {
        assert!(!text.contains(hidden), "{hidden}: {text}");
    }

    let kept = hand_in(&app, address, &picture()).await;
    assert_eq!(kept.status, 200, "{}", kept.text());
    let drawn = json!({ "state": "drawn", "field": FIELD, "value": picture() });
    assert_eq!(state(&app, url).await, drawn);

    let page = form::open(&app, url).await.text();
    assert!(page.contains(&picture()), "{page}");
    app.wait_for_event(id, "signer.started").await;

    let entry = app.entry(id, "signer.drawn_elsewhere").await;
    assert_eq!(entry["signer"]["name"], "Jordan Lee");
    assert_eq!(
        (&entry["field"], &entry["kind"]),
        (&json!(FIELD), &json!("signature"))
    );
    assert_eq!(
        (&entry["ip"], &entry["user_agent"]),
        (&json!("203.0.113.7"), &json!("Phone/1"))
    );

    // The signature is made on the form.
    let rest = [("Signed on", "2026-11-21"), ("consent", form::TICK)];
    let rest = rest.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let done = form::press(&app, url, "finish", &rest).await;
    assert_eq!(done.status, 200, "{}", done.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_takes_one_drawing_and_a_new_code_ends_the_earlier_one() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let url = envelope["sign_url"].as_str().unwrap();
    let id = envelope["envelope_id"].as_str().unwrap();

    let earlier = address(&app, url).await;
    let newer = address(&app, url).await;
    assert_ne!(earlier, newer);
    assert_eq!(form::fetch(&app, &earlier).await.status, 404);
    assert_eq!(hand_in(&app, &earlier, &picture()).await.status, 404);

    assert_eq!(hand_in(&app, &newer, &picture()).await.status, 200);
    assert_eq!(form::fetch(&app, &newer).await.status, 410);
    let again = hand_in(&app, &newer, &picture()).await;
    assert_eq!(again.status, 410);
    assert!(
        again.text().contains("This code has ended"),
        "{}",
        again.text()
    );
    app.entry(id, "signer.drawn_elsewhere").await;

    let expired = address(&app, url).await;
    let now = Clock::default().now().to_string();
    app.change("update drawing_handover set expires_at = $1", &now)
        .await;
    assert_eq!(form::fetch(&app, &expired).await.status, 410);
    assert_eq!(hand_in(&app, &expired, &picture()).await.status, 410);
    assert_eq!(state(&app, url).await, json!({ "state": "ended" }));

    // Signed meanwhile.
    let open = address(&app, url).await;
    form::sign(&app, url).await;
    assert_eq!(hand_in(&app, &open, &picture()).await.status, 410);
    app.entry(id, "signer.drawn_elsewhere").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_from_a_phone_is_checked_like_one_of_the_form() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let url = envelope["sign_url"].as_str().unwrap();
    let address = address(&app, url).await;

    for (picture, why) in [
        ("Jordan Lee", "Use a PNG or JPEG picture"),
        ("", "Use a PNG or JPEG picture"),
        ("data:image/png;base64,AAAA", "Use a PNG or JPEG picture"),
        (
            "data:image/png;base64,iVBORw0KGgoAAAAN",
            "This picture cannot be read",
        ),
    ] {
        let refused = hand_in(&app, &address, picture).await;
        assert_eq!(refused.status, 422, "{picture}");
        assert!(refused.text().contains(why), "{}", refused.text());
    }

    let request = Request::post(form::path(&address))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Body::from("other=1"))
        .unwrap();
    assert_eq!(app.send(request).await.status, 400);

    // A refused picture leaves the code open.
    assert_eq!(state(&app, url).await, json!({ "state": "awaited" }));
    assert_eq!(hand_in(&app, &address, &picture()).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_an_open_form_gives_a_code_and_only_for_signatures() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let url = envelope["sign_url"].as_str().unwrap();
    for field in ["Signed on", "No such field"] {
        assert_eq!(ask(&app, url, field).await.status, 404, "{field}");
    }

    // In front of a document that asks for a passcode, there is neither a code nor its state.
    let template = app.contract_template().await;
    let mut body = envelope_body(&template["template_id"]);
    body["signers"] = json!([{
        "email": "jordan.lee@example.com", "name": "Jordan Lee", "role": "Buyer",
        "access": "passcode", "passcode": "quiet river 42",
    }]);
    let locked = app.post("/partner/envelopes", body).await.data(201);
    let locked = locked["sign_url"].as_str().unwrap();
    assert_eq!(ask(&app, locked, FIELD).await.status, 403);
    let state = form::fetch(&app, &format!("{locked}/drawing")).await;
    assert_eq!(state.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_without_scripts_shows_the_code_on_a_page() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let url = envelope["sign_url"].as_str().unwrap();
    let date = [("Signed on".to_owned(), "2026-11-21".to_owned())];
    let action = format!("phone:{FIELD}");
    let page = form::press(&app, url, &action, &date).await;
    assert_eq!(page.status, 200, "{}", page.text());
    for shown in ["data:image/svg+xml;base64,", "/draw/", ">Continue</a>"] {
        assert!(page.text().contains(shown), "{shown}: {}", page.text());
    }

    // The entries beside the button are kept, and wrong ones are corrected first.
    let form_page = form::open(&app, url).await.text();
    assert!(form_page.contains("value=\"2026-11-21\""), "{form_page}");
    let wrong = [("Signed on".to_owned(), "soon".to_owned())];
    assert_eq!(form::press(&app, url, &action, &wrong).await.status, 422);
}
