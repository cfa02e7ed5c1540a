//! Acts of the console that cannot be undone ask first.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::console::{Session, invited};
use super::console_cells::{ids_of, routes};
use crate::support::TestApp;

/// Forms that ask before some of their acts or all.
pub(super) const ASKS: &[&str] = &[
    "/bulk/{id}/{act}",
    "/changes/{id}/{act}",
    "/control/{act}/{id}",
    "/customers/{id}/erasure/{step}",
    "/destructions/{id}/{step}",
    "/envelopes/act",
    "/envelopes/{id}/correct",
    "/envelopes/{id}/stipulations/{kind}/waive",
    "/envelopes/{id}/void",
    "/holds/{id}/{step}",
    "/keys/{id}/deactivate",
    "/keys/{id}/rotate",
    "/open-links/{id}/close",
    "/passkeys/{id}/remove",
    "/receivers/{id}/delete",
    "/rules/{slot}/roll-back/{id}",
    "/sessions/{id}/end",
    "/tapes/{id}/delete",
    "/settings/{part}",
    "/templates/{id}/delete",
    "/users/{id}/end",
    "/users/{id}/role",
];

/// Forms that act at once, because their acts can be taken back.
const ACTS_AT_ONCE: &[&str] = &[
    "/bulk",
    "/bulk/{id}/clients",
    "/bulk/{id}/table",
    "/changes/{id}/review",
    "/components",
    "/components/{id}/compare",
    "/confirm",
    "/control/records/{id}/copy",
    "/customers/{id}/export",
    "/deliveries/{id}/redeliver",
    "/destructions",
    "/drafts",
    "/drafts/template",
    "/drafts/{id}/details",
    "/drafts/{id}/fields",
    "/drafts/{id}/people",
    "/drafts/{id}/review",
    "/enter/{link}/{code}",
    "/envelopes/{id}/copy",
    "/envelopes/{id}/dates",
    "/envelopes/{id}/dates/remove",
    "/envelopes/{id}/edit",
    "/envelopes/{id}/embed",
    "/envelopes/{id}/extend",
    "/envelopes/{id}/funding-check",
    "/envelopes/{id}/links",
    "/envelopes/{id}/questions/{question}",
    "/envelopes/{id}/remind",
    "/envelopes/{id}/send",
    "/envelopes/{id}/signers/{position}",
    "/envelopes/{id}/stipulations",
    "/envelopes/{id}/stipulations/{kind}/file",
    "/envelopes/{id}/vault",
    "/envelopes/{id}/verify",
    "/fact-maps",
    "/fact-maps/{id}",
    "/fact-maps/{id}/versions",
    "/filters",
    "/filters/remove",
    "/funding",
    "/funding/{id}/invitations",
    "/funding/{id}/subscription",
    "/funding/{id}/versions",
    "/holds",
    "/imports",
    "/keys",
    "/packages",
    "/packages/{id}",
    "/passkeys",
    "/receivers",
    "/receivers/{id}/disable",
    "/receivers/{id}/edit",
    "/receivers/{id}/enable",
    "/receivers/{id}/rotate",
    "/receivers/{id}/test",
    "/retention",
    "/rules/{slot}/activate/{id}",
    "/sign-in",
    "/sign-in/passkey",
    "/sign-out",
    "/sso/{org}",
    "/tapes",
    "/tapes/maps",
    "/tapes/{id}/columns",
    "/templates",
    "/templates/{id}/duplicate",
    "/templates/{id}/edit",
    "/templates/{id}/open-links",
    "/templates/{id}/rename",
    "/templates/{id}/restore",
    "/templates/{id}/versions",
    "/templates/{id}/versions/confirm",
    "/templates/{id}/versions/restore",
    "/users",
    "/users/{id}/invite",
];

#[test]
fn every_form_of_the_console_is_known_to_ask_or_not() {
    let forms = routes()
        .into_iter()
        .filter(|(method, _)| method == "POST")
        .map(|(_, path)| path);
    let known: BTreeSet<String> = [ASKS, ACTS_AT_ONCE]
        .concat()
        .into_iter()
        .map(str::to_owned)
        .collect();
    assert_eq!(forms.collect::<BTreeSet<_>>(), known);
}

/// Returns what the acts could change.
async fn state(app: &TestApp, session: &Session) -> Vec<String> {
    let mut tables = Vec::new();
    for table in [
        "envelopes",
        "templates",
        "batches",
        "changes",
        "users",
        "sessions",
        "control",
        "transfers",
    ] {
        let answer = session.get(app, &format!("/console/{table}.csv")).await;
        assert_eq!(answer.status, 200, "{table}: {}", answer.text());
        tables.push(answer.text());
    }

    let keys = app.get_with_bearer(app.web_admin(), "/api-keys").await;
    let keys = keys.data(200);
    for key in keys.as_array().unwrap() {
        tables.push(format!("{}: {}", key["key_id"], key["active"]));
    }

    tables
}

/// Sends forms without the agreement, and checks that each only gets the page that asks.
async fn all_ask(app: &TestApp, session: &Session, acts: &[(String, &str, &str)]) {
    let before = state(app, session).await;
    for (path, form, object) in acts {
        for form in [(*form).to_owned(), format!("{form}&sure=no")] {
            let asks = session.post(app, path, &form).await;
            let page = asks.text();
            let is_page =
                page.contains("name=\"sure\"") && page.contains("button class=\"danger sure\"");
            assert!(asks.status == 200 && is_page, "{path}: {page}");
            assert!(page.contains(object), "{path} names {object}: {page}");
        }
    }

    assert_eq!(state(app, session).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_sensitive_act_asks() {
    let app = TestApp::start().await;
    let known = ids_of(&app).await;
    let ada = Session::of(&app, "ada@oak.example", "owner").await;
    let eva = invited(&app, "eva@oak.example", "admin");
    let eva = eva["user_id"].as_str().unwrap();

    let keys = app.get_with_bearer(app.web_admin(), "/api-keys").await;
    let keys = keys.data(200);
    let key = keys[0]["key_id"].as_str().unwrap();
    let sessions = ada.get(&app, "/console/sessions").await.text();
    let (_, rest) = sessions.split_once("/console/sessions/").unwrap();
    let (session, _) = rest.split_once("/end").unwrap();

    let erasure = format!("/customers/{}/erase", known.customer);
    let erasure = app.post_with_bearer(app.web_admin(), &erasure, json!({}));
    erasure.await.data(200);

    let at = |path: &str, id: &str| format!("/console{}", path.replace("{}", id));
    let several = format!("act=void&reason=Sold&id-{}=yes", known.envelope);
    let contract = "Retail instalment contract";
    all_ask(
        &app,
        &ada,
        &[
            (
                at("/envelopes/{}/void", &known.envelope),
                "reason=Sold",
                "Nobody can sign any more. This cannot be undone.",
            ),
            ("/console/envelopes/act".to_owned(), &several, contract),
            (at("/templates/{}/delete", &known.template), "", "strong"),
            (at("/bulk/{}/submit", &known.batch), "", "All"),
            (at("/bulk/{}/cancel", &known.batch), "", "All"),
            (at("/bulk/{}/delete", &known.batch), "", "All"),
            (
                at("/customers/{}/erasure/approve", &known.customer),
                "",
                "deleted for good",
            ),
            (at("/changes/{}/apply", &known.change), "", "oak-rules"),
            (at("/changes/{}/withdraw", &known.change), "", "oak-rules"),
            (at("/keys/{}/rotate", key), "", "stops working at once"),
            (at("/keys/{}/deactivate", key), "", "stops working at once"),
            (at("/users/{}/end", eva), "", "eva@oak.example"),
            (at("/users/{}/role", eva), "role=owner", "eva@oak.example"),
            (at("/sessions/{}/end", session), "", "signed out at once"),
        ],
    )
    .await;

    // A role below the owner's can be given back at any time.
    let role = at("/users/{}/role", eva);
    assert_eq!(ada.post(&app, &role, "role=sender").await.status, 303);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_act_of_control_asks_and_a_release_takes_the_name() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let (lender, key) = app.party().await;
    let record = format!("/partner/control/records/{id}");
    app.post(
        &format!("{record}/designate"),
        json!({ "controller": lender }),
    )
    .await
    .data(200);

    let lea = Session::at(&app, &lender, "lea@bank.example", "owner").await;
    let contract = "Retail instalment contract";
    let at = |act: &str, id: &str| format!("/console/control/{act}/{id}");
    all_ask(
        &app,
        &lea,
        &[
            (at("accept", &id), "", contract),
            (at("decline", &id), "", contract),
        ],
    )
    .await;

    app.post_as(&key, &format!("{record}/accept"), json!({}))
        .await
        .data(200);
    let offer = json!({ "buyer": app.org, "records": [id], "atomic": true });
    let offered = app.post_as(&key, "/partner/control/transfers", offer).await;
    let offered: Value = offered.json()["data"].clone();
    let transfer = offered["transfer_id"].as_str().unwrap();

    // A job proposes the records, which the table of transfers shows.
    let path = format!("/partner/control/transfers/{transfer}");
    for _ in 0..200 {
        let one = app.get_as(&key, &path).await.data(200);
        if one["state"] == "proposed" {
            break;
        }

        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }

    let transfers = ["accept-transfer", "confirm-transfer", "cancel-transfer"];
    let transfers = transfers.map(|act| (at(act, transfer), "", "→"));
    all_ask(&app, &lea, &transfers).await;

    all_ask(
        &app,
        &lea,
        &[
            (at("pledge", &id), "pledgee=org_0", contract),
            (at("release", &id), "", "To confirm, type the name"),
            (
                at("release", &id),
                "medium=paper",
                "A paper original replaces",
            ),
        ],
    )
    .await;

    // Another name does not release a record.
    let release = at("release", &id);
    for typed in ["", "retail instalment contract", "Retail"] {
        let form = format!("sure=yes&typed={typed}");
        let wrong = lea.post(&app, &release, &form).await;
        assert_eq!(wrong.status, 422, "{typed}: {}", wrong.text());
        assert!(wrong.text().contains("This is not the name"), "{typed}");
    }
}
