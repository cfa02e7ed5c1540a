//! Pictures of the last 30 days, each with a table of its numbers.

use axum::http::Method;
use holdfast::domain::id::OrgId;
use serde_json::json;

use super::console::Session;
use crate::support::{TestApp, operator};

/// Returns the row of a table as the page has it.
fn row(label: &str, numbers: &[i64]) -> String {
    let cells = numbers.iter().map(|number| format!("<td>{number}</td>"));
    format!(
        "<th scope=\"row\">{label}</th>{}",
        cells.collect::<String>()
    )
}

#[track_caller]
fn has(page: &str, parts: &[String]) {
    for part in parts {
        assert!(page.contains(part), "{part}: {page}");
    }
}

async fn the_page_counts_what_happened(app: TestApp) {
    app.vaulted_envelope().await;
    app.sent_envelope().await;
    let draft = json!({
        "envelope_name": "Lease", "customer_email": "jordan.lee@example.com",
        "customer_name": "Jordan Lee",
    });
    app.post("/partner/envelopes", draft).await.data(201);
    app.wait_until_idle().await;

    let ada = Session::of(&app, "ada@oak.example", "sender").await;
    let page = ada.get(&app, "/console/activity").await;
    assert_eq!(page.status, 200);
    let page = page.text();
    has(
        &page,
        &[
            // Today: three created, two sent, one signed by all.
            "<td>3</td><td>2</td><td>1</td>".to_owned(),
            row("Sent", &[2]),
            row("Opened", &[1]),
            row("Signed by all", &[1]),
            row("Vaulted, or released since", &[1]),
            "Envelopes: 1".to_owned(),
            row("A signer cannot be reached", &[0]),
        ],
    );
    assert_eq!(page.matches("<td>0</td><td>0</td><td>0</td>").count(), 29);

    // Each picture has a name, and its numbers as a table.
    assert_eq!(
        page.matches("role=\"img\" aria-label=").count(),
        4,
        "{page}"
    );
    assert_eq!(page.matches("As a table").count(), 4, "{page}");
    assert!(!page.contains("data-live"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_counts_what_happened_on_sqlite() {
    the_page_counts_what_happened(TestApp::start().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_counts_what_happened_on_postgresql() {
    the_page_counts_what_happened(TestApp::on_postgresql().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stuck_envelopes_are_counted_by_cause() {
    let app = TestApp::start().await;
    app.sent_envelope().await;
    app.wait_until_idle().await;
    app.execute(
        "update signer set noticed_at = '2026-01-01T00:00:00.000Z', notice_failure = '550 no such user'",
    )
    .await;

    let ada = Session::of(&app, "ada@oak.example", "sender").await;
    let page = ada.get(&app, "/console/activity").await.text();
    has(
        &page,
        &[
            row("A signer cannot be reached", &[1]),
            row("A signer did not pass the identity check", &[0]),
            row("Not paid yet", &[0]),
            row("declined", &[0]),
        ],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_organization_without_envelopes_sees_nothing_of_another() {
    let app = TestApp::start().await;
    app.vaulted_envelope().await;
    let elm = operator(app.data.path(), &["org", "create", "--name", "Elm"]);
    let elm = OrgId::parse(elm["org_id"].as_str().unwrap()).unwrap();

    let eva = Session::at(&app, &elm, "eva@elm.example", "owner").await;
    let page = eva.get(&app, "/console/activity").await.text();
    has(
        &page,
        &[row("Sent", &[0]), row("Vaulted, or released since", &[0])],
    );
    assert!(page.contains("Nothing here."), "{page}");
    assert_eq!(page.matches("<td>0</td><td>0</td><td>0</td>").count(), 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_by_receiver_are_for_those_who_manage_receivers() {
    let app = TestApp::start().await;
    let receiver = json!({ "url": "https://hooks.example.com/all", "events": ["*"] });
    let path = "/webhooks/endpoints";
    app.web(Method::POST, path, receiver).await.data(201);

    let olga = Session::of(&app, "olga@oak.example", "owner").await;
    let page = olga.get(&app, "/console/activity").await.text();
    has(&page, &[row("https://hooks.example.com/all", &[0, 0, 0])]);
    let ada = Session::of(&app, "ada@oak.example", "sender").await;
    let page = ada.get(&app, "/console/activity").await.text();
    assert!(!page.contains("hooks.example.com"), "{page}");
}
