//! Signing links on a host of the organization's own, which names the organization in a file.

use std::time::{Duration, Instant};

use axum::http::Method;
use axum::response::{IntoResponse as _, Response};
use holdfast::config::Config;
use holdfast::domain::organization::OrgSettings;
use serde_json::{Value, json};

use super::embed::submit;
use crate::http::console::Session;
use crate::support::receiver::{WebhookReceiver, status};
use crate::support::{TestApp, TestResponse};

const PATH: &str = "/organization/link-host";
const DAY: Duration = Duration::from_secs(86_400);

/// Admits hosts of this machine.
fn insecure(config: &mut Config) {
    config.providers.allow_insecure = true;
}

async fn service() -> TestApp {
    TestApp::with(insecure, OrgSettings::default()).await
}

/// Returns the host of a receiver, with its port.
fn host(receiver: &WebhookReceiver) -> &str {
    let url = receiver.url.strip_prefix("http://").unwrap();
    url.strip_suffix("/hook").unwrap()
}

/// Starts a host with a file of organizations.
async fn host_that_names(organizations: &[&str]) -> WebhookReceiver {
    let receiver = WebhookReceiver::start().await;
    answer_with_names(&receiver, organizations);
    receiver
}

fn answer_with_names(receiver: &WebhookReceiver, organizations: &[&str]) {
    let file = organizations.join("\n") + "\n";
    receiver.answer(move |_, _| file.clone().into_response());
}

async fn set(app: &TestApp, host: &str) -> TestResponse {
    app.web(Method::PUT, PATH, json!({ "host": host })).await
}

async fn link_host(app: &TestApp) -> Value {
    let organization = app.web(Method::GET, "/organization", Value::Null).await;
    organization.data(200)["link_host"].clone()
}

/// Waits until the daily check has ended or restored the use of the host.
async fn wait_until_in_use(app: &TestApp, in_use: bool) -> Value {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let now = link_host(app).await;
        if now["in_use"] == in_use {
            return now;
        }
        assert!(Instant::now() < deadline, "{now}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns the actors and details of the changes of the host, newest first.
async fn changes(app: &TestApp) -> Vec<(Value, Value)> {
    let list = app.web(Method::GET, "/audit-log", Value::Null).await;
    let list = list.data(200);
    let entries = list.as_array().unwrap().iter();
    let changed = entries.filter(|entry| !entry["details"]["changed"]["link_host"].is_null());
    changed
        .map(|entry| {
            let change = entry["details"]["changed"]["link_host"].clone();
            (entry["actor"].clone(), change)
        })
        .collect()
}

async fn signing_link(app: &TestApp, id: &str) -> String {
    let path = format!("/partner/envelopes/{id}/signing-links");
    let links = app.get(&path).await.data(200);
    links["signers"][0]["embed_url"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn links_lead_to_a_host_that_names_the_organization() {
    let app = service().await;
    let receiver = host_that_names(&["# signing links", app.org.as_str()]).await;
    let own = format!("http://{}/sign/", host(&receiver));
    let shown = set(&app, host(&receiver)).await.data(200)["link_host"].clone();
    assert_eq!(shown["host"], host(&receiver));
    assert_eq!(
        (&shown["in_use"], &shown["problem"]),
        (&json!(true), &Value::Null)
    );
    assert_eq!(shown, link_host(&app).await);
    assert_eq!(receiver.received()[0].path, "/.well-known/holdfast");

    // Mails and the API lead there, and the page works at both addresses.
    let envelope = app.sent_envelope().await;
    let id = envelope["envelope_id"].as_str().unwrap();
    app.wait_for_mail(|mail| mail.contains(&own)).await;
    let link = signing_link(&app, id).await;
    assert!(link.starts_with(&own), "{link}");
    assert_eq!(app.get(&link).await.status, 200);

    // A widget stays at the installation's address: the embedding page accepts its messages.
    let body = json!({
        "envelope_id": id, "user_email": "jordan.lee@example.com", "widget_type": "sign",
    });
    let widget = app.post("/embed/token", body).await.data(200);
    let opened = submit(&app, "/embed/sign", widget["token"].as_str().unwrap()).await;
    let framed = opened.headers["location"].to_str().unwrap();
    assert!(
        framed.starts_with("http://127.0.0.1:8080/sign/"),
        "{framed}"
    );

    let entries = changes(&app).await;
    assert_eq!(entries.len(), 1);
    let (_, change) = &entries[0];
    assert_eq!(change["before"], Value::Null);
    assert_eq!(change["after"], shown);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_does_not_name_the_organization_is_refused() {
    let app = service().await;
    let (other, _) = app.party().await;
    let receiver = host_that_names(&[other.as_str()]).await;
    let refused = set(&app, host(&receiver)).await;
    assert_eq!(refused.status, 422);
    let issue = refused.json()["details"][0].clone();
    assert_eq!(issue["path"], json!(["host"]));
    let message = issue["message"].as_str().unwrap().to_owned();
    assert!(
        message.contains("does not name the organization"),
        "{message}"
    );

    let moved = || {
        let response = Response::builder().status(302);
        let response = response.header("location", "https://oak.example/");
        response.body(axum::body::Body::empty()).unwrap()
    };
    let own = format!("{}\n{}", app.org, "x".repeat(4096));
    receiver.answer(move |index, _| match index {
        1 => status(404),
        2 => moved(),
        _ => own.clone().into_response(),
    });
    for found in [
        "answered status 404",
        "answered status 302",
        "answered more than 4096 bytes",
    ] {
        let refused = set(&app, host(&receiver)).await;
        assert_eq!(refused.status, 422, "{found}");
        assert!(refused.text().contains(found), "{}", refused.text());
    }

    // Nothing listens at a port that was closed again.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap().to_string();
    drop(closed);
    let refused = set(&app, &address).await;
    assert_eq!(refused.status, 422);
    assert!(refused.text().contains("could not be reached"));

    for wrong in [
        "https://oak.example",
        "oak.example/sign",
        "oak.example:8443",
        "192.0.2.7",
    ] {
        let refused = set(&app, wrong).await;
        assert_eq!(refused.status, 422, "{wrong}");
        assert_eq!(refused.json()["details"][0]["path"], json!(["host"]));
    }

    assert_eq!(link_host(&app).await, Value::Null);
    assert!(changes(&app).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_and_admins_learn_of_another_host() {
    let app = service().await;
    for (email, role) in [
        ("ada@oak.example", "owner"),
        ("ben@oak.example", "admin"),
        ("eve@oak.example", "sender"),
    ] {
        Session::of(&app, email, role).await;
    }
    let receiver = host_that_names(&[app.org.as_str()]).await;
    set(&app, host(&receiver)).await.data(200);
    // The same host again changes nothing for signers.
    set(&app, host(&receiver)).await.data(200);
    app.web(Method::DELETE, PATH, Value::Null).await.data(200);

    // Without a policy, one person applies a change request, too.
    let change = json!({ "action": "link_host", "link_host": host(&receiver) });
    let body = json!({ "change": change, "reason": "A new name" });
    let changes = "/component-changes";
    let made = app.web(Method::POST, changes, body).await.data(201);
    let apply = format!("{changes}/{}/apply", made["change_id"].as_str().unwrap());
    app.web(Method::POST, &apply, json!({})).await.data(200);
    app.wait_until_idle().await;

    let mails = app.wait_for_mails(6).await;
    let mails: Vec<String> = mails.iter().map(|mail| mail.replace("=\r\n", "")).collect();
    let to = |address: &str, words: &str| {
        let is_to = |mail: &&String| {
            let to = mail.lines().find(|line| line.starts_with("To: "));
            to.is_some_and(|to| to.contains(address)) && mail.contains(words)
        };
        mails.iter().filter(is_to).count()
    };
    let set_words = format!("has set {}", host(&receiver));
    for address in ["ada@oak.example", "ben@oak.example"] {
        assert_eq!(to(address, &set_words), 2, "{mails:?}");
        assert_eq!(to(address, "has removed the host"), 1, "{mails:?}");
    }
    assert_eq!(to("eve@oak.example", "signing links"), 0, "{mails:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_console_requests_a_host_where_the_policy_requires_approvals() {
    let app = service().await;
    let receiver = host_that_names(&[app.org.as_str()]).await;
    let ada = Session::of(&app, "ada@oak.example", "owner").await;
    let policy = json!({ "reviews_required": 1 });
    let policy = app.web(Method::PUT, "/component-policy", policy).await;
    policy.data(200);

    let form = format!("host={}", host(&receiver));
    let requested = ada.post(&app, "/console/settings/link-host", &form).await;
    assert_eq!(requested.status, 303, "{}", requested.text());
    let page = requested.headers["location"].to_str().unwrap();
    let page = ada.get(&app, page).await.text();
    let title = format!("Host of signing links: {}", host(&receiver));
    assert!(page.contains(&title), "{page}");
    assert_eq!(link_host(&app).await, Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_in_the_network_of_the_installation_is_not_read() {
    let app = TestApp::start().await;
    let receiver = host_that_names(&[app.org.as_str()]).await;
    let refused = set(&app, host(&receiver)).await;
    assert_eq!(refused.status, 422);
    assert!(
        refused.text().contains("could not be reached"),
        "{}",
        refused.text()
    );
    assert!(receiver.received().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_host_gives_its_links_back_to_the_installation() {
    let app = service().await;
    let receiver = host_that_names(&[app.org.as_str()]).await;
    set(&app, host(&receiver)).await.data(200);
    let envelope = app.sent_envelope().await;
    let id = envelope["envelope_id"].as_str().unwrap();
    let before = signing_link(&app, id).await;

    let removed = app.web(Method::DELETE, PATH, Value::Null).await.data(200);
    assert_eq!(removed["link_host"], Value::Null);
    let after = signing_link(&app, id).await;
    assert!(after.starts_with("http://127.0.0.1:8080/sign/"), "{after}");
    assert_eq!(app.get(&before).await.status, 200);

    // The second removal changes nothing, and is no entry.
    app.web(Method::DELETE, PATH, Value::Null).await.data(200);
    assert_eq!(changes(&app).await.len(), 2);
}

/// A host with a new owner would get the links of every signer.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_names_the_organization_no_more_is_ended_at_once() {
    let app = service().await;
    let receiver = host_that_names(&[app.org.as_str()]).await;
    set(&app, host(&receiver)).await.data(200);

    receiver.answer(|_, _| "This domain is for sale".into_response());
    let later = app.as_of_with(DAY + DAY / 24, insecure).await;
    let ended = wait_until_in_use(&later, false).await;
    assert_eq!(ended["problem"], "not_named");
    let (actor, change) = changes(&later).await.remove(0);
    assert_eq!(actor, "system");
    assert_eq!(change["after"], ended);

    let envelope = later.sent_envelope().await;
    let link = signing_link(&later, envelope["envelope_id"].as_str().unwrap()).await;
    assert!(link.starts_with("http://127.0.0.1:8080/sign/"), "{link}");

    // A person puts it to use again.
    answer_with_names(&receiver, &[later.org.as_str()]);
    let again = set(&later, host(&receiver)).await.data(200);
    assert_eq!(again["link_host"]["in_use"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_cannot_be_reached_is_used_for_three_days_and_again_after_a_success() {
    let app = service().await;
    let receiver = host_that_names(&[app.org.as_str()]).await;
    set(&app, host(&receiver)).await.data(200);

    // A proxy in trouble shows nothing about the owner of the host.
    receiver.answer_with(503);
    let second = app.as_of_with(DAY * 2, insecure).await;
    receiver.wait_for(2).await;
    assert_eq!(link_host(&second).await["in_use"], true);

    let fourth = second.as_of_with(DAY * 4, insecure).await;
    let ended = wait_until_in_use(&fourth, false).await;
    assert_eq!(ended["problem"], "unreachable");

    answer_with_names(&receiver, &[app.org.as_str()]);
    let fifth = fourth.as_of_with(DAY * 5, insecure).await;
    let restored = wait_until_in_use(&fifth, true).await;
    assert_eq!(restored["problem"], Value::Null);
    let actors = changes(&fifth).await.into_iter().map(|(actor, _)| actor);
    assert_eq!(actors.filter(|actor| actor == "system").count(), 2);
}
