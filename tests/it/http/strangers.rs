//! Clients without a known credential do not slow other callers down, and use up no limit of theirs.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Method, Request};
use holdfast::domain::clock::Clock;
use holdfast::domain::organization::{OrgSettings, Scope};
use holdfast::domain::token::{ApiKey, LinkToken};
use serde_json::Value;

use super::console::{self, asked};
use crate::support::{TestApp, TestResponse};

/// Unknown credentials that a network sends within a minute.
const UNKNOWN: usize = 30;

/// Sends a request from an address.
async fn from(
    app: &TestApp,
    address: [u8; 4],
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
) -> TestResponse {
    let peer = ConnectInfo(SocketAddr::from((address, 40_000)));
    let mut request = Request::builder().method(method).uri(path).extension(peer);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    app.send(request.body(Body::empty()).unwrap()).await
}

fn unknown_key(app: &TestApp) -> String {
    ApiKey::generate(&app.org).reveal().to_owned()
}

fn unknown_link() -> String {
    LinkToken::generate(3).reveal().to_owned()
}

async fn ask_with(app: &TestApp, address: [u8; 4], key: &str) -> TestResponse {
    let headers = [("x-api-key", key)];
    from(
        app,
        address,
        Method::GET,
        "/api/v2/partner/envelopes",
        &headers,
    )
    .await
}

#[track_caller]
fn is_refused(answer: &TestResponse) {
    assert_eq!(answer.status, 429, "{}", answer.text());
    let seconds = answer.headers["retry-after"].to_str().unwrap();
    assert!((1..=60).contains(&seconds.parse::<u32>().unwrap()));
}

/// Each kind of credential that a stranger can invent, and callbacks to an instance that does not exist.
#[tokio::test(flavor = "multi_thread")]
async fn unknown_credentials_of_every_kind_are_limited_by_network() {
    let app = TestApp::start().await;
    let session = format!("__Host-holdfast={}", unknown_link());
    let (key, link) = (unknown_key(&app), unknown_link());
    let (signing, viewing) = (format!("/sign/{link}"), format!("/sign/view/{link}"));
    let drawing = format!("/sign/draw/{link}");
    let download = format!("/api/v2/downloads/{link}");
    let bearer = "Bearer eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl";
    let kinds: [(&str, &str, &str, Method, u16); 10] = [
        (
            "/api/v2/partner/envelopes",
            "x-api-key",
            &key,
            Method::GET,
            401,
        ),
        (
            "/api/v2/templates",
            "authorization",
            bearer,
            Method::GET,
            401,
        ),
        (
            "/builder/template",
            "authorization",
            bearer,
            Method::GET,
            401,
        ),
        ("/mcp", "authorization", bearer, Method::POST, 401),
        ("/console/envelopes", "cookie", &session, Method::GET, 303),
        (&signing, "accept", "text/html", Method::GET, 404),
        (&viewing, "accept", "text/html", Method::GET, 404),
        (&drawing, "accept", "text/html", Method::GET, 404),
        (&download, "accept", "*/*", Method::GET, 404),
        (
            "/api/v2/callbacks/signing/nobody",
            "accept",
            "*/*",
            Method::POST,
            404,
        ),
    ];
    for (number, (path, name, value, method, status)) in kinds.into_iter().enumerate() {
        let address = [203, 0, 113, number as u8];
        let headers = [(name, value)];
        let ask = || from(&app, address, method.clone(), path, &headers);
        for _ in 0..UNKNOWN {
            let answer = ask().await;
            assert_eq!(answer.status, status, "{path}: {}", answer.text());
        }

        is_refused(&ask().await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_with_unknown_keys_is_refused_before_the_database_is_asked() {
    let app = TestApp::start().await;
    let stranger = [203, 0, 113, 7];
    for _ in 0..UNKNOWN {
        assert_eq!(
            ask_with(&app, stranger, &unknown_key(&app)).await.status,
            401
        );
    }

    // A look-up would fail from here on.
    let mut tx = app.store.begin().await.unwrap();
    sqlx::query("alter table api_key rename to hidden")
        .execute(&mut *tx)
        .await
        .unwrap();
    tx.commit().await.unwrap();

    is_refused(&ask_with(&app, stranger, &unknown_key(&app)).await);
    let other = ask_with(&app, [203, 0, 113, 8], &unknown_key(&app)).await;
    assert_eq!(other.status, 500);
}

#[tokio::test(flavor = "multi_thread")]
async fn known_callers_are_served_in_a_network_that_sends_unknown_keys() {
    let app = TestApp::start().await;
    let office = [203, 0, 113, 7];
    assert_eq!(ask_with(&app, office, &app.key).await.status, 200);

    for _ in 0..UNKNOWN {
        ask_with(&app, office, &unknown_key(&app)).await;
    }

    is_refused(&ask_with(&app, office, &unknown_key(&app)).await);
    assert_eq!(ask_with(&app, office, &app.key).await.status, 200);

    // Other networks are not affected at all.
    let elsewhere = [198, 51, 100, 1];
    assert_eq!(ask_with(&app, elsewhere, &app.key).await.status, 200);
    assert_eq!(
        ask_with(&app, elsewhere, &unknown_key(&app)).await.status,
        401
    );
}

/// A key that was used a moment ago is looked up again, and then counts as unknown.
#[tokio::test(flavor = "multi_thread")]
async fn a_known_key_that_was_deactivated_is_refused_at_once() {
    let app = TestApp::start().await;
    let key = app.key_with_limit(Scope::ALL, 100).await;
    let office = [203, 0, 113, 7];
    assert_eq!(ask_with(&app, office, &key).await.status, 200);

    let mut tx = app.store.begin().await.unwrap();
    sqlx::query("update api_key set active = 0")
        .execute(&mut *tx)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    for _ in 0..UNKNOWN {
        assert_eq!(ask_with(&app, office, &key).await.status, 401);
    }

    is_refused(&ask_with(&app, office, &key).await);
}

/// Random tokens are verified before they are counted, so they fill no table of real ones.
#[tokio::test(flavor = "multi_thread")]
async fn random_tokens_leave_the_limit_of_a_real_one_in_force() {
    let limited = |config: &mut holdfast::config::Config| config.rate_limits.web_token = 3;
    let app = TestApp::with(limited, OrgSettings::default()).await;
    let token = app.token("admin");
    assert_eq!(app.get_with_bearer(&token, "/templates").await.status, 200);

    for number in 0..200 {
        let random = format!("eyJhbGciOiJIUzI1NiJ9.e30.{number}");
        let refused = app.get_with_bearer(&random, "/templates").await;
        assert_eq!(refused.status, 401);
    }

    for _ in 0..2 {
        assert_eq!(app.get_with_bearer(&token, "/templates").await.status, 200);
    }
    assert_eq!(app.get_with_bearer(&token, "/templates").await.status, 429);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_states_that_its_type_is_not_to_be_guessed() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let id = envelope["envelope_id"].as_str().unwrap();
    let paths = [
        format!("/partner/envelopes/{id}"),
        format!("/partner/envelopes/{id}/document"),
        "/partner/envelopes/env_unknown".into(),
    ];
    for path in paths {
        let answer = app.get(&path).await;
        assert_eq!(
            answer.headers["x-content-type-options"], "nosniff",
            "{path}"
        );
    }
}

/// Asks for a link at the sign-in page.
async fn ask_for_link(app: &TestApp) {
    let form = "email=ada%40oak.example";
    let sent = asked(app, Method::POST, "/console/sign-in", "", form).await;
    assert_eq!(sent.status, 200, "{}", sent.text());
    assert!(
        sent.text().contains("an earlier link still works"),
        "{}",
        sent.text()
    );
}

/// Returns the paths of the links that this node mailed, once there are `count` of them.
async fn links(app: &TestApp, count: usize) -> Vec<String> {
    let mails = app.wait_for_mails(count).await;
    let link = |mail: &String| {
        let mail = console::readable(mail);
        let at = mail.find("/console/enter/").unwrap();
        let is_of_link = |one: &char| one.is_ascii_alphanumeric() || "/_-".contains(*one);
        mail[at..].chars().take_while(is_of_link).collect()
    };
    mails.iter().map(link).collect()
}

/// Returns the id in the path of a link; each node derives the rest from a key of its own.
fn id_of(path: &str) -> &str {
    path.split('/').nth(3).unwrap()
}

async fn at_minute(app: &TestApp, minutes: u64) -> TestApp {
    app.as_of(Duration::from_secs(minutes * 60)).await
}

/// Records mails that networks asked for in the last hours.
async fn flooded(app: &TestApp, user: &Value, network: &str, mails: usize) {
    let mut tx = app.store.begin().await.unwrap();
    for number in 0..mails {
        sqlx::query(
            "insert into sign_in_mail (bucket, org_id, user_id, link_id, network, sent_at)
             values ($1, $2, $3, $4, $5, $6)",
        )
        .bind(app.org.bucket())
        .bind(app.org.as_str())
        .bind(user["user_id"].as_str().unwrap())
        .bind(format!("sin_{network}_{number}"))
        .bind(network)
        .bind(Clock::default().now().to_string())
        .execute(&mut *tx)
        .await
        .unwrap();
    }

    tx.commit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_still_works_is_mailed_again() {
    let app = TestApp::start().await;
    console::invited(&app, "ada@oak.example", "owner");
    links(&app, 1).await;
    let first = at_minute(&app, 2).await;
    ask_for_link(&first).await;
    let mailed = links(&first, 1).await;
    let second = at_minute(&app, 4).await;
    ask_for_link(&second).await;

    let again = links(&second, 1).await;
    assert_eq!(id_of(&mailed[0]), id_of(&again[0]));

    let entered = asked(&second, Method::POST, &again[0], "", "").await;
    assert_eq!(entered.status, 303, "{}", entered.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_who_asks_for_many_links_does_not_end_the_sign_in_of_a_user() {
    let app = TestApp::start().await;
    let ada = console::invited(&app, "ada@oak.example", "owner");
    links(&app, 1).await;
    flooded(&app, &ada, "203.0.113.7", 20).await;

    // The user has another network, with limits of its own.
    let first = at_minute(&app, 2).await;
    ask_for_link(&first).await;
    links(&first, 1).await;
    let second = at_minute(&app, 4).await;
    ask_for_link(&second).await;

    links(&second, 1).await;
}

/// Even a flood from all networks leaves the user a link that works, and a new one when it is over.
#[tokio::test(flavor = "multi_thread")]
async fn a_flooded_user_gets_a_link_whenever_none_works() {
    let app = TestApp::start().await;
    let ada = console::invited(&app, "ada@oak.example", "owner");
    links(&app, 1).await;
    for network in 0..10 {
        flooded(&app, &ada, &format!("198.51.100.{network}"), 20).await;
    }

    let first = at_minute(&app, 2).await;
    ask_for_link(&first).await;
    links(&first, 1).await;

    // The link works for 15 minutes, so the mailbox gets nothing meanwhile.
    let second = at_minute(&app, 6).await;
    ask_for_link(&second).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(links(&second, 0).await.is_empty());

    let third = at_minute(&app, 18).await;
    ask_for_link(&third).await;
    links(&third, 1).await;
}
