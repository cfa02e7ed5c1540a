//! A read changes nothing: mail programs, scanners and browsers fetch links before a person looks at a page.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::http::Request;
use serde_json::json;
use sqlx::Row as _;

use crate::service::control::views::mailed_link;
use crate::support::{TestApp, form};

/// Tables that work in the background writes to.
const BACKGROUND: [&str; 6] = [
    "chore",
    "job",
    "ledger_leaf",
    "ledger_log",
    "ledger_pending",
    "ledger_tile",
];
/// Deliveries to a signer, as evidence of access to the text about electronic records and the document.
const DELIVERED: &[&str] = &["disclosure", "signer_delivery"];

/// Returns the rows of all tables.
pub(crate) async fn rows(app: &TestApp) -> BTreeMap<String, String> {
    let mut connection = app.store.read().await.unwrap();
    let listed = sqlx::query(
        "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'",
    );
    let listed = listed.fetch_all(&mut *connection).await.unwrap();

    let mut tables = BTreeMap::new();
    for row in listed {
        let table: String = row.get("name");
        if BACKGROUND.contains(&table.as_str()) {
            continue;
        }

        let columns = sqlx::AssertSqlSafe(format!("select name from pragma_table_info('{table}')"));
        let columns = sqlx::query(columns)
            .fetch_all(&mut *connection)
            .await
            .unwrap();
        let columns: Vec<String> = columns
            .iter()
            .map(|column| format!("quote({})", column.get::<String, _>("name")))
            .collect();
        let text = format!(
            "select coalesce(group_concat({}, char(10)), '') from {table}",
            columns.join(" || ',' || ")
        );
        let found =
            sqlx::query_scalar::<_, String>(sqlx::AssertSqlSafe(text)).fetch_one(&mut *connection);

        tables.insert(table, found.await.unwrap());
    }

    tables
}

/// Asserts that reading changes these tables at most.
async fn reads(
    app: &TestApp,
    what: &str,
    request: axum::http::request::Builder,
    may_change: &[&str],
) {
    app.wait_until_idle().await;
    let before = rows(app).await;
    let answer = app.send(request.body(Body::empty()).unwrap()).await;
    assert!(answer.status.is_success(), "{what}: {}", answer.status);

    app.wait_until_idle().await;
    let after = rows(app).await;
    let changed: Vec<&String> = before
        .keys()
        .filter(|table| before[*table] != after[*table])
        .collect();
    let others: Vec<_> = changed
        .iter()
        .filter(|table| !may_change.contains(&table.as_str()))
        .collect();
    assert!(others.is_empty(), "{what} changes {others:?}");
}

/// Reads a page or file in each way in which programs do.
async fn fetched(app: &TestApp, what: &str, url: &str, may_change: &[&str]) {
    let path = form::path(url);
    reads(app, &format!("HEAD {what}"), Request::head(&path), &[]).await;
    let ahead = Request::get(&path).header("sec-purpose", "prefetch;prerender");
    reads(app, &format!("prefetch of {what}"), ahead, may_change).await;
    reads(app, what, Request::get(&path), may_change).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signer_is_viewed_by_the_page_itself_or_by_the_first_act() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let (id, url) = (
        envelope["envelope_id"].as_str().unwrap(),
        envelope["sign_url"].as_str().unwrap(),
    );
    assert_eq!(form::fetch(&app, url).await.status, 200);

    app.wait_until_idle().await;
    let status = app
        .get(&format!("/partner/envelopes/{id}/status"))
        .await
        .data(200);
    assert_eq!(status["status"], "sent");
    assert!(
        !app.event_types(id)
            .await
            .contains(&"signer.viewed".to_owned())
    );

    // The script of the page.
    assert_eq!(form::press(&app, url, "seen", &[]).await.status, 204);

    app.wait_for(id, "viewed").await;
    assert_eq!(form::press(&app, url, "seen", &[]).await.status, 204);

    let events = app.event_types(id).await;
    assert_eq!(
        events
            .iter()
            .filter(|kind| *kind == "signer.viewed")
            .count(),
        1
    );

    // Without the script, the first act.
    let envelope = app.sent_envelope().await;
    let (id, url) = (
        envelope["envelope_id"].as_str().unwrap(),
        envelope["sign_url"].as_str().unwrap(),
    );
    form::fetch(&app, url).await;

    form::press(&app, url, "review", &[]).await;
    app.wait_for(id, "viewed").await;
}

/// Every page, link and file for people.
#[tokio::test(flavor = "multi_thread")]
async fn what_programs_fetch_changes_nothing_but_what_is_named_here() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let id = envelope["envelope_id"].as_str().unwrap();
    let url = envelope["sign_url"].as_str().unwrap();
    fetched(&app, "the signing page", url, DELIVERED).await;

    for (what, path) in [
        ("a picture", "pages/1.png"),
        ("a page's text", "pages/1.txt"),
        ("the PDF", "document.pdf"),
    ] {
        fetched(&app, what, &format!("{url}/{path}"), DELIVERED).await;
    }

    form::sign(&app, url).await;
    app.wait_for(id, "vaulted").await;
    fetched(&app, "the page afterwards", url, &[]).await;
    for path in ["copy.pdf", "copy.png", "certificate.pdf"] {
        fetched(&app, path, &format!("{url}/{path}"), &[]).await;
    }

    let view = json!({
        "envelope_id": id, "name": "Robin Lee", "email": "robin@example.com", "access": "view", "purpose": "Audit",
    });
    let view = app.post("/partner/control/views", view).await.data(201);
    let link = mailed_link(&app, view["view_id"].as_str().unwrap(), "/inspect/").await;
    fetched(&app, "the page of a view", &link, &[]).await;
    let stated = app
        .post(
            &format!("/partner/envelopes/{id}/control-statement"),
            json!({}),
        )
        .await
        .data(201);
    fetched(
        &app,
        "the page of a statement",
        stated["verification_url"].as_str().unwrap(),
        &[],
    )
    .await;

    let invited = json!({ "name": "Second Example Bank", "email": "desk@second.example" });
    let invited = app
        .post("/partner/control/invitations", invited)
        .await
        .data(201);
    let link = mailed_link(&app, invited["invitation_id"].as_str().unwrap(), "/join/").await;
    fetched(&app, "the page of an invitation", &link, &[]).await;

    let template = app.contract_template().await;
    let template = template["template_id"].as_str().unwrap();
    let open = json!({ "name": "Sale", "expires_at": "2030-12-31T23:59:59Z", "limit": 5 });
    let path = format!("/partner/templates/{template}/open-links");
    let open = app.post(&path, open).await.data(201);
    let link = open["url"].as_str().unwrap();
    fetched(&app, "the page of an open link", link, &[]).await;

    // Links to files of the vault are for programs. Each download is a ledger entry; a HEAD request is none, and does
    // not use up the link that works once.
    let downloads: &[&str] = &["ledger_entry", "download_link", "event"];
    for link in ["vault/copy/signed-url", "vault/signed-url"] {
        let link = app
            .get(&format!("/partner/envelopes/{id}/{link}"))
            .await
            .data(200);
        let path = form::path(link["signed_url"].as_str().unwrap());
        reads(&app, &format!("HEAD {path}"), Request::head(&path), &[]).await;
        reads(&app, &path, Request::get(&path), downloads).await;
    }
}
