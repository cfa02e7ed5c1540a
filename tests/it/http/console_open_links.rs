//! Open links on the console.

use super::console::Session;
use super::console_cells::ids_of;
use crate::support::TestApp;

#[tokio::test(flavor = "multi_thread")]
async fn an_open_link_is_made_shown_as_a_code_and_closed_after_a_question() {
    let app = TestApp::start().await;
    let known = ids_of(&app).await;
    let ada = Session::of(&app, "ada@oak.example", "owner").await;
    let path = known.path("/templates/{id}/open-links");

    let form = "name=Summer+sale&expires_at=2030-12-31&limit=20&code=&notify=&verify_email=yes";
    let made = ada.post(&app, &path, form).await;
    assert_eq!(made.status, 303, "{}", made.text());

    let page = ada.get(&app, &path).await.text();
    assert!(page.contains("Summer sale") && page.contains("/open/"));
    let (_, rest) = page.split_once("/console/open-links/").unwrap();
    let id = rest.split('/').next().unwrap();
    let code = format!("/console/open-links/{id}/qr.svg");
    let code = ada.get(&app, &code).await;
    assert_eq!(code.headers["content-type"], "image/svg+xml");

    let close = format!("/console/open-links/{id}/close");
    let asks = ada.post(&app, &close, "").await;
    assert!(asks.text().contains("Summer sale"), "{}", asks.text());
    assert_eq!(app.count("open_link where closed_at is null").await, 1);

    assert_eq!(ada.post(&app, &close, "sure=yes").await.status, 303);
    assert_eq!(app.count("open_link where closed_at is null").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_open_link_keeps_its_entries() {
    let app = TestApp::start().await;
    let known = ids_of(&app).await;
    let ada = Session::of(&app, "ada@oak.example", "owner").await;
    let path = known.path("/templates/{id}/open-links");

    let form = "name=Summer+sale&expires_at=2030-12-31&limit=many";
    let refused = ada.post(&app, &path, form).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert!(refused.text().contains("value=\"Summer sale\""));
    assert!(refused.text().contains("id=\"limit-problem\""));
    assert_eq!(app.count("open_link").await, 0);
}
