//! A code before the document: mailed to the signer, or agreed with the sender.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use holdfast::domain::organization::OrgSettings;
use serde_json::{Value, json};

use crate::support::{TestApp, TestResponse, envelope_body, form};

async fn service() -> TestApp {
    let settings = OrgSettings {
        auto_vault: false,
        ..OrgSettings::default()
    };
    TestApp::with(|_| {}, settings).await
}

async fn create(app: &TestApp, access: Value) -> TestResponse {
    let template = app.contract_template().await;
    let mut body = envelope_body(&template["template_id"]);
    let mut signer = json!({
        "email": "jordan.lee@example.com", "name": "Jordan Lee", "role": "Buyer",
    });
    for (name, value) in access.as_object().unwrap() {
        signer[name] = value.clone();
    }

    body["signers"] = json!([signer]);
    app.post("/partner/envelopes", body).await
}

/// Sends the contract; returns the envelope's id and the signing link.
async fn sent(app: &TestApp, access: Value) -> (String, String) {
    let created = create(app, access).await.data(201);
    let text = |name: &str| created[name].as_str().unwrap().to_owned();
    (text("envelope_id"), text("sign_url"))
}

async fn mailed() -> (TestApp, String, String) {
    let app = service().await;
    let (id, url) = sent(&app, json!({ "access": "email_code" })).await;
    (app, id, url)
}

async fn enter(app: &TestApp, url: &str, code: &str) -> TestResponse {
    form::press(app, url, "enter-code", &[("code".into(), code.into())]).await
}

/// Asks for a code and returns it from the newest mail.
async fn code(app: &TestApp, url: &str, mails: usize) -> String {
    let answer = form::press(app, url, "send-code", &[]).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let mails = app.wait_for_mails(mails).await;
    let codes = mails
        .iter()
        .filter_map(|mail| mail.split_once("Your code: "));
    let codes: Vec<&str> = codes.filter_map(|(_, rest)| rest.get(..6)).collect();
    codes.last().unwrap().to_string()
}

/// Opens a page below the link with the cookie that the right code gave.
async fn open_with(app: &TestApp, url: &str, below: &str, cookie: &str) -> TestResponse {
    let path = url.splitn(4, '/').nth(3).unwrap();
    let request = Request::get(format!("/{path}{below}")).header("cookie", cookie);
    app.send(request.body(Body::empty()).unwrap()).await
}

fn cookie(answer: &TestResponse) -> String {
    let given = answer.headers["set-cookie"].to_str().unwrap();
    given.split(';').next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailed_code_opens_the_document_in_this_browser() {
    let (app, id, url) = mailed().await;
    let page = form::open(&app, &url).await.text();
    assert!(page.contains("Send me a code"), "{page}");
    assert!(!page.contains("jordan.lee@example.com"), "{page}");
    assert!(!page.contains("Buyer signature"), "{page}");

    for below in ["/pages/1.png", "/document.pdf", "/pay"] {
        let hidden = form::open(&app, &format!("{url}{below}")).await;
        assert_eq!(hidden.status, 404, "{below}");
    }

    let code = code(&app, &url, 2).await;
    let answer = enter(&app, &url, &code).await;
    assert_eq!(answer.status, 303, "{}", answer.text());

    let pass = cookie(&answer);
    let page = open_with(&app, &url, "", &pass).await;
    assert!(page.text().contains("Finish and sign"), "{}", page.text());
    assert_eq!(
        open_with(&app, &url, "/pages/1.png", &pass).await.status,
        200
    );

    // Another browser is asked, and a code works once.
    assert!(
        form::open(&app, &url)
            .await
            .text()
            .contains("Send me a code")
    );
    assert_eq!(enter(&app, &url, &code).await.status, 422);

    let custody = app
        .get(&format!("/partner/envelopes/{id}/custody"))
        .await
        .text();
    assert!(custody.contains("signer.access_confirmed") && !custody.contains(&code));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_without_a_code_signs_nothing() {
    let (app, id, url) = mailed().await;
    let values = [
        ("consent".to_owned(), form::TICK.to_owned()),
        ("Buyer signature".to_owned(), "Jordan Lee".to_owned()),
    ];
    for action in ["finish", "decline", "save", "delegate", "enter-code"] {
        let page = form::press(&app, &url, action, &values).await.text();
        assert!(page.contains("Send me a code"), "{action}: {page}");
    }

    let saved = form::save(&app, &url, &[("Buyer signature", "Jordan Lee")]).await;
    assert_eq!(saved["error"], "A code is needed first");

    // None of them counts as a wrong code.
    let answer = form::press(&app, &url, "send-code", &[]).await;
    assert_eq!(answer.status, 200);

    let status = app
        .get(&format!("/partner/envelopes/{id}/status"))
        .await
        .data(200);
    assert_eq!(status["status"], "sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_codes_lock_the_document_and_are_reported() {
    let (app, id, url) = mailed().await;
    let code = code(&app, &url, 2).await;
    let wrong = if code == "000000" { "111111" } else { "000000" };
    for _ in 0..4 {
        let answer = enter(&app, &url, wrong).await;
        assert_eq!(answer.status, 422);
        assert!(answer.text().contains("This is not the code"));
    }

    assert_eq!(enter(&app, &url, wrong).await.status, 403);
    // The right code does not help either.
    assert_eq!(enter(&app, &url, &code).await.status, 403);

    let answer = form::press(&app, &url, "send-code", &[]).await;
    assert_eq!(answer.status, 403);

    let events = app.event_types(&id).await;
    let failed = events.iter().filter(|kind| *kind == "signer.access_failed");
    assert_eq!(failed.count(), 1);

    let later = app.as_of(Duration::from_secs(16 * 60)).await;
    let page = form::open(&later, &url).await.text();
    assert!(page.contains("Send me a code"), "{page}");

    // The second lock lasts an hour.
    let sent = form::press(&later, &url, "send-code", &[]).await;
    assert_eq!(sent.status, 200);

    for _ in 0..5 {
        enter(&later, &url, "wrong").await;
    }

    let after_half_an_hour = app.as_of(Duration::from_secs(46 * 60)).await;
    let page = form::open(&after_half_an_hour, &url).await;
    assert_eq!(page.status, 403);
}

/// Enters a code from an address.
async fn enter_from(app: &TestApp, address: [u8; 4], url: &str, code: &str) -> TestResponse {
    let path = url.splitn(4, '/').nth(3).unwrap();
    let request = Request::post(format!("/{path}"))
        .header("content-type", "application/x-www-form-urlencoded")
        .extension(ConnectInfo(SocketAddr::from((address, 40_000))));
    let body = format!("action=enter-code&code={code}");
    app.send(request.body(Body::from(body)).unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_codes_of_a_stranger_lock_out_the_stranger_only() {
    let (app, _, url) = mailed().await;
    let code = code(&app, &url, 2).await;
    let wrong = if code == "000000" { "111111" } else { "000000" };
    let stranger = [203, 0, 113, 7];
    for _ in 0..4 {
        assert_eq!(enter_from(&app, stranger, &url, wrong).await.status, 422);
    }
    assert_eq!(enter_from(&app, stranger, &url, wrong).await.status, 403);
    assert_eq!(enter_from(&app, stranger, &url, &code).await.status, 403);

    let signer = enter_from(&app, [198, 51, 100, 1], &url, &code).await;
    assert_eq!(signer.status, 303, "{}", signer.text());
}

/// Guesses from many networks must not add up.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_codes_of_many_networks_lock_the_document_for_all() {
    let (app, _, url) = mailed().await;
    let code = code(&app, &url, 2).await;
    let wrong = if code == "000000" { "111111" } else { "000000" };
    for network in 0..5 {
        for _ in 0..5 {
            enter_from(&app, [203, 0, 113, network], &url, wrong).await;
        }
    }

    let signer = enter_from(&app, [198, 51, 100, 1], &url, &code).await;
    assert_eq!(signer.status, 403, "{}", signer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_are_limited_in_number_and_time() {
    let (app, _, url) = mailed().await;
    let first = code(&app, &url, 2).await;
    let again = form::press(&app, &url, "send-code", &[]).await;
    assert_eq!(again.status, 429);
    assert!(again.headers.contains_key("retry-after"));

    for minutes in [2, 4, 6, 8] {
        let later = app.as_of(Duration::from_secs(minutes * 60)).await;
        assert_eq!(
            form::press(&later, &url, "send-code", &[]).await.status,
            200,
            "{minutes}"
        );
    }

    let later = app.as_of(Duration::from_secs(10 * 60)).await;
    assert_eq!(
        form::press(&later, &url, "send-code", &[]).await.status,
        429
    );

    // Every mail had the same code, so a stranger who asks for codes ends none. It is outdated
    // ten minutes after the last mail.
    let outdated = app.as_of(Duration::from_secs(20 * 60)).await;
    let answer = enter(&outdated, &url, &first).await;
    assert!(answer.text().contains("too old"), "{}", answer.text());

    // The limit does not keep the signer out: there is a code again once none is valid.
    assert_eq!(
        form::press(&outdated, &url, "send-code", &[]).await.status,
        200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_that_is_valid_is_sent_again() {
    let (app, _, url) = mailed().await;
    let first = code(&app, &url, 2).await;
    let later = app.as_of(Duration::from_secs(120)).await;
    assert_eq!(code(&later, &url, 1).await, first);
    let answer = enter(&later, &url, &first).await;
    assert_eq!(answer.status, 303, "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_passcode_of_the_sender_opens_the_document() {
    let app = service().await;
    let access = json!({ "access": "passcode", "passcode": "blue heron 7" });
    let (id, url) = sent(&app, access).await;
    let page = form::open(&app, &url).await.text();
    assert!(
        page.contains("the passcode that the sender has given you"),
        "{page}"
    );
    assert_eq!(enter(&app, &url, "blue heron 8").await.status, 422);

    let answer = enter(&app, &url, " blue heron 7 ").await;
    let pass = cookie(&answer);
    assert_eq!(open_with(&app, &url, "", &pass).await.status, 200);

    // The cookie of one document does not open another.
    let access = json!({ "access": "passcode", "passcode": "blue heron 7" });
    let (_, other) = sent(&app, access).await;
    let page = open_with(&app, &other, "", &pass).await.text();
    assert!(page.contains("passcode"), "{page}");

    let custody = app
        .get(&format!("/partner/envelopes/{id}/custody"))
        .await
        .text();
    assert!(!custody.contains("heron"));

    // A person who takes the place needs to enter it again.
    let change = json!({ "email": "sam@example.com", "name": "Sam Lee" });
    let path = format!("/partner/envelopes/{id}/signers/Buyer");
    app.patch(&path, change).await.data(200);
    let links = app
        .get(&format!("/partner/envelopes/{id}/signing-links"))
        .await
        .data(200);
    let url = links["signers"][0]["embed_url"].as_str().unwrap();
    let page = open_with(&app, url, "", &pass).await.text();
    assert!(page.contains("the passcode that"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_passcode_that_does_not_fit_is_refused() {
    let app = service().await;
    for (access, code) in [
        (json!({ "access": "passcode" }), "passcode_required"),
        (json!({ "passcode": "blue heron" }), "passcode_unused"),
        (
            json!({ "access": "passcode", "passcode": " blue heron" }),
            "passcode_spaces",
        ),
    ] {
        let refused = create(&app, access).await;
        assert_eq!(refused.status, 422);
        assert_eq!(refused.json()["details"][0]["code"], code);
    }

    for access in [
        json!({ "access": "passcode", "passcode": "abcde" }),
        json!({ "access": "retina" }),
    ] {
        let refused = create(&app, access).await;
        assert_eq!(refused.status, 422);
        assert!(!refused.text().contains("abcde"), "{}", refused.text());
    }

    assert_eq!(
        app.get("/partner/envelopes").await.json()["data"],
        json!([])
    );
}
