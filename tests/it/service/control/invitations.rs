//! Parties without an organization join by a link in a mail.

use std::time::Duration;

use holdfast::domain::organization::OrgSettings;
use scraper::{Html, Selector};
use serde_json::{Value, json};

use super::views::{mailed_link, press};
use super::{Party, designate};
use crate::support::{TestApp, TestResponse, form};

const INVITATIONS: &str = "/partner/control/invitations";

async fn invite(app: &TestApp, email: &str) -> TestResponse {
    let name = match email {
        "desk@second.example" => "Second Example Bank",
        _ => "Another Example Bank",
    };
    let body = json!({ "name": name, "email": email });
    app.post(INVITATIONS, body).await
}

/// Joins, and returns the party that the page shows.
async fn join(app: &TestApp, link: &str) -> Party {
    let page = press(app, link).await;
    assert_eq!(page.status, 200, "{}", page.text());
    assert_eq!(page.headers["cache-control"], "no-store");

    let page = Html::parse_document(&page.text());
    let code = Selector::parse("dd code").unwrap();
    let shown: Vec<String> = page
        .select(&code)
        .map(|code| code.text().collect())
        .collect();

    Party {
        org: holdfast::domain::id::OrgId::parse(&shown[0]).unwrap(),
        key: shown[1].clone(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invited_party_joins_and_takes_control() {
    let app = TestApp::start().await;
    let invitation = invite(&app, "desk@second.example").await.data(201);
    let id = invitation["invitation_id"].as_str().unwrap();
    let link = mailed_link(&app, id, "/join/").await;
    let page = form::open(&app, &link).await;
    assert!(
        page.text()
            .contains("Maple Street Motors invites Second Example Bank")
    );

    let path = format!("{INVITATIONS}/{id}");
    let waiting = app.get(&path).await.data(200);
    assert_eq!(
        waiting["organization_id"],
        Value::Null,
        "a look joins nobody"
    );

    // The answer with the first key is lost: the link gives another one, until a key is used.
    let lost = join(&app, &link).await;
    let bank = join(&app, &link).await;
    assert_eq!(bank.org, lost.org);

    app.get_as(&lost.key, "/partner/control/records")
        .await
        .error(401);
    let joined = app.get(&path).await.data(200);
    assert_eq!(joined["organization_id"], bank.org.as_str());

    let events = app
        .text_of("select body from event where event_type = 'control.party.joined'")
        .await;
    assert!(events.contains(bank.org.as_str()), "{events}");
    assert!(!events.contains(&bank.key[3..]));

    let record = app.vaulted_envelope().await;
    designate(&app, &record, &bank.org).await.data(200);
    let controlled = bank.act(&app, &record, "accept", json!({})).await.data(200);
    assert_eq!(controlled["controller"]["name"], "Second Example Bank");

    // Its key is for acts of control only.
    app.get_as(&bank.key, "/partner/envelopes").await.error(403);

    // As the background task records it.
    app.execute(
        "update api_key set last_used_at = created_at where owner_email = 'desk@second.example'",
    )
    .await;
    assert_eq!(press(&app, &link).await.status, 410, "its key was used");

    // It cannot invite others, and its name is taken.
    let body = json!({ "name": "Third Example Bank", "email": "desk@third.example" });
    let refused = app.post_as(&bank.key, INVITATIONS, body).await;
    assert!(refused.error(409).contains("was invited"));

    // With letters of other scripts as well.
    for name in [
        " second example BANK ",
        "Sеcоnd Exаmplе Bаnk",
        "SecondExample Bank",
    ] {
        let taken = json!({ "name": name, "email": "thief@example.com" });
        let refused = app.post(INVITATIONS, taken).await;
        assert_eq!(refused.status, 422, "{}", refused.text());
        assert_eq!(refused.json()["details"][0]["code"], "name_taken", "{name}");
    }

    app.events_fit_their_schemas(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_is_limited_in_time_and_number() {
    let app = TestApp::start().await;
    let invitation = invite(&app, "desk@second.example").await.data(201);
    let id = invitation["invitation_id"].as_str().unwrap();
    let link = mailed_link(&app, id, "/join/").await;
    let later = app.as_of(Duration::from_secs(8 * 86_400)).await;
    assert_eq!(form::open(&later, &link).await.status, 410);
    assert_eq!(press(&later, &link).await.status, 410);

    let guessed = format!("{}x", &link[..link.len() - 1]);
    assert_eq!(press(&app, &guessed).await.status, 404);
    assert_eq!(
        app.count("party_invitation where party_id is not null")
            .await,
        0
    );

    // A key that was not used is given again for a quarter of an hour.
    join(&app, &link).await;
    let later = app.as_of(Duration::from_secs(901)).await;
    assert_eq!(press(&later, &link).await.status, 410);

    for (name, email, member) in [
        ("Two\nlines", "desk@second.example", "name"),
        ("Bank\u{202e}knaB", "desk@second.example", "name"),
        ("Ba\u{200b}nk", "desk@second.example", "name"),
        (" ", "desk@second.example", "name"),
        ("Bank", "desk", "email"),
    ] {
        let body = json!({ "name": name, "email": email });
        let refused = app.post(INVITATIONS, body).await;
        assert_eq!(refused.status, 422, "{}", refused.text());
        assert_eq!(refused.json()["details"][0]["path"], json!([member]));
    }

    let stranger = Party::new(&app).await;
    let path = format!("{INVITATIONS}/{id}");
    app.get_as(&stranger.key, &path).await.error(404);

    for number in 1..50 {
        invite(&app, &format!("desk{number}@second.example"))
            .await
            .data(201);
    }

    assert_eq!(invite(&app, "one@more.example").await.status, 409);
}

/// A refusal reveals the name of an organization: there are no more of them than invitations.
#[tokio::test(flavor = "multi_thread")]
async fn guesses_of_names_count_as_invitations() {
    let app = TestApp::start().await;
    let guess = || json!({ "name": "Maple Street Motors", "email": "thief@example.com" });
    for _ in 0..50 {
        let refused = app.post(INVITATIONS, guess()).await;
        assert_eq!(refused.json()["details"][0]["code"], "name_taken");
    }
    assert!(
        app.post(INVITATIONS, guess())
            .await
            .error(409)
            .contains("50 invitations")
    );
    assert_eq!(invite(&app, "one@more.example").await.status, 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_can_switch_invitations_off() {
    let app = TestApp::with(
        |config| config.control.invitations = false,
        OrgSettings::default(),
    )
    .await;
    let refused = invite(&app, "desk@second.example").await;
    assert!(refused.error(409).contains("operator registers parties"));
    assert_eq!(app.count("party_invitation").await, 0);
}
