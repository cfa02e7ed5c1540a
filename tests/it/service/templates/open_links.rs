//! Open links: each visitor of a template's link becomes signer of a record of their own.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Method, Request};
use scraper::{Html, Selector};
use serde_json::{Value, json};

use crate::support::docuseal::FakeDocuseal;
use crate::support::{TestApp, TestResponse, buyer_and_seller, form, pdf};
use holdfast::domain::hash::sha256;
use holdfast::domain::organization::OrgSettings;

/// Entries of a visitor.
const JORDAN: [(&str, &str); 2] = [("name", "Jordan Lee"), ("email", "jordan@example.com")];

/// Creates an open link of the contract, with further members of the request.
async fn open_link(app: &TestApp, more: Value) -> Value {
    let template = app.contract_template().await;
    link_of(app, &template, more).await.data(201)
}

async fn link_of(app: &TestApp, template: &Value, more: Value) -> TestResponse {
    let mut body =
        json!({ "name": "Membership", "expires_at": "2030-12-31T23:59:59Z", "limit": 10 });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }

    let template = template["template_id"].as_str().unwrap();
    let path = format!("/partner/templates/{template}/open-links");
    app.post(&path, body).await
}

fn url(link: &Value) -> &str {
    link["url"].as_str().unwrap()
}

/// Reads the link again.
async fn again(app: &TestApp, link: &Value) -> Value {
    let id = link["open_link_id"].as_str().unwrap();
    let path = format!("/partner/open-links/{id}");
    app.get(&path).await.data(200)
}

/// Returns the value of a control on a page.
fn control_of(page: &str, name: &str) -> String {
    let document = Html::parse_document(page);
    let control = Selector::parse(&format!("input[name={name}]")).unwrap();
    let control = document.select(&control).next().expect("a control");
    control.attr("value").unwrap().to_owned()
}

/// Returns the token of the form on a page.
fn token_of(page: &str) -> String {
    control_of(page, "form")
}

/// Returns the first number that meets a challenge, or the first one that does not.
fn number_for(challenge: &str, is_met: bool) -> String {
    let difficulty: u32 = challenge.split('.').nth(1).unwrap().parse().unwrap();
    let meets = |number: &u64| {
        let digest = sha256(format!("{challenge}.{number}").as_bytes());
        let begin = u32::from_str_radix(&digest[..8], 16).unwrap();
        begin.leading_zeros() >= difficulty
    };
    let number = (0..).find(|number| meets(number) == is_met);
    number.unwrap().to_string()
}

/// Opens the link and sends its form, as a browser with the script does.
async fn enter(app: &TestApp, link: &Value, entries: &[(&str, &str)]) -> TestResponse {
    let page = form::fetch(app, url(link)).await;
    assert_eq!(page.status, 200, "{}", page.text());
    let page = page.text();
    let challenge = control_of(&page, "challenge");
    let proof = number_for(&challenge, true);
    send_proof(app, link, (&challenge, &proof), &token_of(&page), entries).await
}

/// Sends the form with a challenge and a proof.
async fn send_proof(
    app: &TestApp,
    link: &Value,
    (challenge, proof): (&str, &str),
    token: &str,
    entries: &[(&str, &str)],
) -> TestResponse {
    let computed = [("challenge", challenge), ("proof", proof)];
    let entries: Vec<(&str, &str)> = entries.iter().copied().chain(computed).collect();
    send(app, link, token, &entries).await
}

async fn send(app: &TestApp, link: &Value, token: &str, entries: &[(&str, &str)]) -> TestResponse {
    let entries = entries.iter().copied().chain([("form", token)]);
    let entries: Vec<(String, String)> = entries
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    form::press(app, url(link), "", &entries).await
}

/// Returns the id of the only envelope of the organization.
async fn only_envelope(app: &TestApp) -> String {
    let list = app.get("/partner/envelopes").await.json();
    assert_eq!(list["meta"]["total"], 1, "{list}");
    list["data"][0]["envelope_id"].as_str().unwrap().to_owned()
}

/// Returns a template that a buyer and a seller sign.
async fn for_two(app: &TestApp) -> Value {
    let document = pdf::with_lines(&[
        "{{First;type=signature;role=Buyer;required=true}}",
        "{{Second;type=signature;role=Seller;required=true}}",
    ]);
    let texts = [("name", "Two")];
    app.upload("/partner/templates", "application/pdf", &document, &texts)
        .await
        .data(200)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_gets_the_link_by_mail_and_signs_a_record_of_their_own() {
    let app = TestApp::start().await;
    let link = open_link(&app, json!({})).await;
    assert_eq!(link["role"], "Buyer", "the first role of the template");
    assert_eq!(link["verify_email"], true);
    assert_eq!(link["proof_of_work"], "on");

    let page = form::fetch(&app, url(&link)).await;
    assert!(page.text().contains("invites you to sign “Membership”"));
    assert!(page.text().contains("noindex"));
    assert_eq!(page.headers["cache-control"], "no-store");
    assert_eq!(app.count("envelope").await, 0, "a look makes nothing");

    let answer = enter(&app, &link, &JORDAN).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.text().contains("We have sent you the link"));
    let shown = answer.text();
    assert!(!shown.contains("/sign/"), "only the mail has the link");

    let id = only_envelope(&app).await;
    let envelope = app.get(&format!("/partner/envelopes/{id}")).await.data(200);
    assert_eq!(envelope["status"], "sent");
    let origin = json!({ "open_link_id": link["open_link_id"], "name": "Membership" });
    assert_eq!(envelope["metadata"]["open_link"], origin);

    let events = app.events(&id).await;
    let mut events = events.iter();
    let created = events.find(|event| event["event_type"] == "envelope.created");
    assert_eq!(created.unwrap()["data"]["open_link"], origin);
    let entry = app.entry(&id, "envelope.created").await;
    assert_eq!(entry["open_link"]["reached_by"], "email");
    assert_eq!(again(&app, &link).await["used"], 1);

    let mails = app.wait_for_mails(1).await;
    assert!(mails[0].contains("jordan@example.com"), "{}", mails[0]);
    form::sign(&app, &form::link_in(&mails[0])).await;
    app.wait_for(&id, "vaulted").await;

    // A copy is made by its sender, and not by the visitor.
    let path = format!("/partner/envelopes/{id}/copy");
    let copy = app.post(&path, json!({})).await.data(201);
    assert_eq!(copy["metadata"]["open_link"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unverified_visitor_goes_on_at_once_and_the_record_says_so() {
    let app = TestApp::start().await;
    let link = open_link(&app, json!({ "verify_email": false })).await;
    let answer = enter(&app, &link, &JORDAN).await;
    assert_eq!(answer.status, 303, "{}", answer.text());
    form::sign(&app, answer.headers["location"].to_str().unwrap()).await;

    let id = only_envelope(&app).await;
    let entry = app.entry(&id, "envelope.created").await;
    assert_eq!(entry["open_link"]["reached_by"], "browser");

    let people = app.get(&format!("/partner/envelopes/{id}/signers")).await;
    let people = people.data(200);
    let visitor = &people["signers"][0]["signer_id"];
    assert_eq!(*visitor, entry["open_link"]["signer_id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_other_roles_are_signed_by_the_people_of_the_link() {
    let app = TestApp::start().await;
    let template = for_two(&app).await;
    let more = json!({ "role": "Buyer", "signers": [buyer_and_seller()[1]] });
    let link = link_of(&app, &template, more).await.data(201);

    enter(&app, &link, &JORDAN).await;
    let id = only_envelope(&app).await;
    let people = app.get(&format!("/partner/envelopes/{id}/signers")).await;
    let people = people.data(200);
    for (at, role, email) in [
        (0, "Buyer", "jordan@example.com"),
        (1, "Seller", "seller@example.com"),
    ] {
        let signer = &people["signers"][at];
        assert_eq!(signer["role"], role);
        assert_eq!(signer["email"], email);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn visitors_at_the_same_moment_do_not_exceed_the_limit() {
    let app = TestApp::start().await;
    let link = open_link(&app, json!({ "limit": 1 })).await;
    let token = token_of(&form::fetch(&app, url(&link)).await.text());
    let kim = [("name", "Kim Park"), ("email", "kim@example.com")];
    let (first, second) = tokio::join!(
        send(&app, &link, &token, &JORDAN),
        send(&app, &link, "another", &kim)
    );
    let mut statuses = [first.status.as_u16(), second.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 410]);

    only_envelope(&app).await;
    let link = again(&app, &link).await;
    assert_eq!(link["used"], 1);
    assert_eq!(link["status"], "used_up");
    let page = form::fetch(&app, url(&link)).await;
    assert_eq!(page.status, 410);
    assert!(page.text().contains("have been handed out"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_is_sent_twice_makes_one_record() {
    let app = TestApp::start().await;
    let without = json!({ "verify_email": false, "proof_of_work": "off" });
    let link = open_link(&app, without).await;
    let token = token_of(&form::fetch(&app, url(&link)).await.text());
    let first = send(&app, &link, &token, &JORDAN).await;
    let second = send(&app, &link, &token, &JORDAN).await;
    assert_eq!(first.headers["location"], second.headers["location"]);

    only_envelope(&app).await;
    assert_eq!(again(&app, &link).await["used"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_that_are_no_name_or_address_are_shown_again_with_the_problem() {
    let app = TestApp::start().await;
    let link = open_link(&app, json!({})).await;
    let wrong = [("name", " "), ("email", "<b>nowhere</b>")];
    let page = enter(&app, &link, &wrong).await;
    assert_eq!(page.status, 422);
    assert!(page.text().contains("id=\"name-problem\""));
    assert!(page.text().contains("id=\"email-problem\""));
    assert!(!page.text().contains("<b>nowhere"), "{}", page.text());

    assert_eq!(app.count("envelope").await, 0);
    assert_eq!(again(&app, &link).await["used"], 0);
}

/// Sends the form with a passcode from an address.
async fn enter_from(app: &TestApp, address: [u8; 4], link: &Value, code: &str) -> TestResponse {
    enter_as(app, address, link, "jordan", code).await
}

/// Sends the form of a person with a passcode from an address.
async fn enter_as(
    app: &TestApp,
    address: [u8; 4],
    link: &Value,
    person: &str,
    code: &str,
) -> TestResponse {
    let request = Request::post(form::path(url(link)))
        .header("content-type", "application/x-www-form-urlencoded")
        .extension(ConnectInfo(SocketAddr::from((address, 40_000))));
    let body = format!("name=Jordan&email={person}%40example.com&code={code}");
    app.send(request.body(Body::from(body)).unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn five_wrong_passcodes_lock_the_link_for_their_network() {
    let app = TestApp::start().await;
    let link = open_link(&app, json!({ "code": "maple-2027" })).await;
    assert_eq!(link["has_code"], true);
    assert!(!link.to_string().contains("maple-2027"));

    let stranger = [203, 0, 113, 7];
    for _ in 0..4 {
        let answer = enter_from(&app, stranger, &link, "guess").await;
        assert_eq!(answer.status, 422);
        assert!(answer.text().contains("This is not the code"));
    }

    let answer = enter_from(&app, stranger, &link, "guess").await;
    assert_eq!(answer.status, 403);
    let answer = enter_from(&app, stranger, &link, "maple-2027").await;
    assert_eq!(answer.status, 403, "the right one does not help either");
    assert_eq!(app.count("envelope").await, 0);

    let answer = enter_from(&app, [198, 51, 100, 1], &link, "maple-2027").await;
    assert_eq!(answer.status, 200, "{}", answer.text());

    let later = app.as_of(Duration::from_secs(16 * 60)).await;
    let answer = enter_from(&later, stranger, &link, "maple-2027").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// A guesser may have many networks.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_passcodes_of_many_networks_lock_the_link_for_everybody() {
    let app = TestApp::start().await;
    let link = open_link(&app, json!({ "code": "maple-2027" })).await;
    let answer = enter_from(&app, [203, 0, 113, 1], &link, "guess").await;
    assert_eq!(answer.status, 422);
    app.execute("update open_link_count set number = 199 where kind = 'all_codes'")
        .await;

    let answer = enter_from(&app, [203, 0, 113, 2], &link, "guess").await;
    assert_eq!(answer.status, 403);
    let answer = enter_from(&app, [198, 51, 100, 1], &link, "maple-2027").await;
    assert_eq!(answer.status, 403, "another network does not help");

    let later = app.as_of(Duration::from_secs(61 * 60)).await;
    let answer = enter_from(&later, [198, 51, 100, 1], &link, "maple-2027").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_has_one_unfinished_record_of_a_link() {
    let app = TestApp::start().await;
    let link = open_link(&app, json!({ "verify_email": false })).await;
    let first = enter(&app, &link, &JORDAN).await;
    assert_eq!(first.status, 303, "{}", first.text());

    // The mail goes to the mailbox: the second visitor may be a stranger.
    let again_as = [("name", "Stranger"), ("email", "Jordan@example.com")];
    for _ in 0..3 {
        let answer = enter(&app, &link, &again_as).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(answer.text().contains("We have sent you the link"));
        assert!(!answer.text().contains("/sign/"));
    }

    let id = only_envelope(&app).await;
    assert_eq!(again(&app, &link).await["used"], 1);
    let mails = app.wait_for_mails(2).await;
    assert_eq!(
        mails.len(),
        2,
        "the invitation, and one more in the cool-down"
    );

    // Another one after it is signed.
    form::sign(&app, first.headers["location"].to_str().unwrap()).await;
    app.wait_for(&id, "vaulted").await;
    let answer = enter(&app, &link, &JORDAN).await;
    assert_eq!(answer.status, 303, "{}", answer.text());
    assert_eq!(again(&app, &link).await["used"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_makes_thirty_records_of_a_link_an_hour() {
    let app = TestApp::start().await;
    let link = open_link(&app, json!({})).await;
    let (office, other) = ([203, 0, 113, 7], [198, 51, 100, 1]);
    let answer = enter_as(&app, office, &link, "first", "").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    app.execute("update open_link_count set number = 30 where kind = 'records'")
        .await;

    let answer = enter_as(&app, office, &link, "second", "").await;
    assert_eq!(answer.status, 429);
    assert!(answer.headers.contains_key("retry-after"));
    assert_eq!(again(&app, &link).await["used"], 1);

    let answer = enter_as(&app, other, &link, "second", "").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let later = app.as_of(Duration::from_secs(61 * 60)).await;
    let answer = enter_as(&later, office, &link, "third", "").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// The token is public, so one network must not use up a limit of all visitors.
#[tokio::test(flavor = "multi_thread")]
async fn forms_are_counted_by_network_and_apart_from_sign_ins() {
    let app = TestApp::start().await;
    let link = open_link(&app, json!({ "code": "maple-2027" })).await;
    let (office, other) = ([203, 0, 113, 7], [198, 51, 100, 1]);
    for _ in 0..10 {
        enter_from(&app, office, &link, "guess").await;
    }

    let answer = enter_from(&app, office, &link, "guess").await;
    assert_eq!(answer.status, 429);
    let answer = enter_from(&app, other, &link, "maple-2027").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// Returns the actions of the organization's log about a link.
async fn acts_on(app: &TestApp, link: &Value) -> Vec<(String, String)> {
    let list = app.web(Method::GET, "/audit-log", Value::Null).await;
    let list = list.data(200);
    let entries = list.as_array().unwrap().iter();
    let own = entries.filter(|entry| entry["details"]["open_link_id"] == link["open_link_id"]);
    let text = |entry: &Value, member: &str| entry[member].as_str().unwrap().to_owned();
    own.map(|entry| (text(entry, "action"), text(entry, "actor")))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_ends_with_the_access_of_its_author() {
    let app = TestApp::start().await;
    let link = open_link(&app, json!({ "verify_email": false })).await;
    app.execute("update open_link set created_by = 'key:key_01h455vb4pex5vsknk084sn02q'")
        .await;

    for _ in 0..2 {
        let page = form::fetch(&app, url(&link)).await;
        assert_eq!(page.status, 410);
        assert!(page.text().contains("The sender has closed it"));
    }
    let answer = send(&app, &link, "another", &JORDAN).await;
    assert_eq!(answer.status, 410);
    assert_eq!(app.count("envelope").await, 0);

    let closed = ("open_link.closed".to_owned(), "system".to_owned());
    let acts = acts_on(&app, &link).await;
    assert_eq!(acts.iter().filter(|act| **act == closed).count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_whose_role_is_gone_is_not_available_and_says_so_once() {
    let app = TestApp::start().await;
    let link = open_link(&app, json!({})).await;
    app.execute("update open_link set role = 'Lessee'").await;

    for _ in 0..2 {
        let page = form::fetch(&app, url(&link)).await;
        assert_eq!(page.status, 410);
        assert!(
            page.text()
                .contains("Its document is not available any more")
        );
    }
    let answer = send(&app, &link, "another", &JORDAN).await;
    assert_eq!(answer.status, 410);
    assert_eq!(app.count("envelope").await, 0);

    let acts = acts_on(&app, &link).await;
    let noted = acts
        .iter()
        .filter(|(action, _)| action == "open_link.unavailable");
    assert_eq!(noted.count(), 1, "{acts:?}");

    app.execute("update open_link set role = 'Buyer'").await;
    for _ in 0..2 {
        assert_eq!(form::fetch(&app, url(&link)).await.status, 200);
    }
    let unnoted = "open_link where unavailable_at is null";
    assert_eq!(app.count(unnoted).await, 1);
    let acts = acts_on(&app, &link).await;
    let noted = acts
        .iter()
        .filter(|(action, _)| action == "open_link.available");
    assert_eq!(noted.count(), 1, "{acts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_link_says_so_and_makes_nothing() {
    let app = TestApp::start().await;
    let link = open_link(&app, json!({})).await;
    let token = token_of(&form::fetch(&app, url(&link)).await.text());
    app.execute("update open_link set expires_at = '2026-01-01T00:00:00.000Z'")
        .await;

    for page in [
        form::fetch(&app, url(&link)).await,
        send(&app, &link, &token, &JORDAN).await,
    ] {
        assert_eq!(page.status, 410);
        assert!(page.text().contains("Its time has passed"));
    }
    assert_eq!(again(&app, &link).await["status"], "expired");
    assert_eq!(app.count("envelope").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_link_says_so_and_makes_nothing() {
    let app = TestApp::start().await;
    let link = open_link(&app, json!({})).await;
    let token = token_of(&form::fetch(&app, url(&link)).await.text());
    let id = link["open_link_id"].as_str().unwrap();
    let path = format!("/partner/open-links/{id}/close");
    let closed = app.post(&path, json!({})).await.data(200);
    assert_eq!(closed["status"], "closed");
    let twice = app.post(&path, json!({})).await.data(200);
    assert_eq!(twice["closed_at"], closed["closed_at"]);

    let answer = send(&app, &link, &token, &JORDAN).await;
    assert_eq!(answer.status, 410);
    assert!(answer.text().contains("The sender has closed it"));
    assert_eq!(app.count("envelope").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn people_whom_a_link_names_are_told_of_each_record() {
    let app = TestApp::start().await;
    let link = open_link(&app, json!({ "notify": ["office@club.example"] })).await;
    enter(&app, &link, &JORDAN).await;

    let is_told = |mail: &String| {
        let mail = mail.replace("=\r\n", "");
        mail.contains("office@club.example")
            && mail.contains("Subject: Somebody opened Membership")
            && mail.contains("gave the name Jordan Lee and the address jordan@example.com")
            && mail.contains("neither is verified")
    };
    app.wait_for_mail(is_told).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_who_knows_the_address_of_a_customer_does_not_rename_the_customer() {
    let app = TestApp::start().await;
    let link = open_link(&app, json!({})).await;
    enter(&app, &link, &JORDAN).await;
    let stranger = [("name", "Not Jordan"), ("email", "jordan@example.com")];
    let answer = enter(&app, &link, &stranger).await;
    assert_eq!(answer.status, 200, "{}", answer.text());

    let renamed = app.count("customer where name = 'Not Jordan'").await;
    assert_eq!(renamed, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_does_not_fit_its_template_names_the_member() {
    let app = TestApp::start().await;
    let template = for_two(&app).await;
    let seller = buyer_and_seller()[1].clone();
    let mut banker = seller.clone();
    banker["role"] = "Bank".into();
    for (more, code, path) in [
        (
            json!({ "role": "Bank", "signers": [seller] }),
            "unknown_role",
            json!(["role"]),
        ),
        (
            json!({ "signers": [banker] }),
            "unknown_role",
            json!(["signers", 0, "role"]),
        ),
        (json!({}), "missing_signer", json!(["signers"])),
        (
            json!({ "signers": [seller], "expires_at": "2026-01-01T00:00:00Z" }),
            "not_later",
            json!(["expires_at"]),
        ),
        (
            json!({ "signers": [seller], "code": " spaces " }),
            "passcode_spaces",
            json!(["code"]),
        ),
    ] {
        let refused = link_of(&app, &template, more.clone()).await;
        assert_eq!(refused.status, 422, "{}", refused.text());
        let details = refused.json()["details"].take();
        let mut issues = details.as_array().unwrap().iter();
        let is_named = issues.any(|issue| issue["code"] == code && issue["path"] == path);
        assert!(is_named, "{more}: {details}");
    }

    assert_eq!(app.count("open_link").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_links_of_a_template_end_with_it_and_are_of_its_organization() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let link = link_of(&app, &template, json!({})).await.data(201);
    let id = link["open_link_id"].as_str().unwrap();
    let template = template["template_id"].as_str().unwrap();
    let list = format!("/partner/templates/{template}/open-links");
    assert_eq!(app.get(&list).await.data(200), json!([link]));

    let qr = app.get(&format!("/partner/open-links/{id}/qr")).await;
    assert_eq!(qr.headers["content-type"], "image/svg+xml");
    assert!(qr.text().starts_with("<svg "), "{}", qr.text());

    let other = app.other_organization().await;
    for path in [list, format!("/partner/open-links/{id}")] {
        assert_eq!(app.get_as(&other, &path).await.status, 404, "{path}");
    }

    let path = format!("/templates/{template}");
    app.web(Method::DELETE, &path, Value::Null).await.data(200);
    assert_eq!(again(&app, &link).await["status"], "closed");
    assert_eq!(form::fetch(&app, url(&link)).await.status, 410);
    let acts = acts_on(&app, &link).await;
    assert!(acts.iter().any(|(action, _)| action == "open_link.closed"));
}

/// Sentence of the page about a proof that does not count.
const NO_PROOF: &str = "The proof that your browser computed does not count";

/// Opens the link, and returns the challenge of its page with a proof.
async fn challenged(app: &TestApp, link: &Value) -> (String, String) {
    let page = form::fetch(app, url(link)).await.text();
    let challenge = control_of(&page, "challenge");
    let proof = number_for(&challenge, true);
    (challenge, proof)
}

#[track_caller]
fn counts_for_nothing(answer: &TestResponse) {
    assert_eq!(answer.status, 422, "{}", answer.text());
    let page = answer.text();
    assert!(page.contains(NO_PROOF), "{page}");
    assert!(page.contains("value=\"Jordan Lee\""), "the entry stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proof_that_is_wrong_too_late_or_of_another_link_makes_nothing() {
    let app = TestApp::start().await;
    let link = open_link(&app, json!({})).await;
    let other = open_link(&app, json!({})).await;
    let (challenge, proof) = challenged(&app, &link).await;

    let wrong = number_for(&challenge, false);
    let answer = send_proof(&app, &link, (&challenge, &wrong), "one", &JORDAN).await;
    counts_for_nothing(&answer);

    // Easier work than that of the page.
    let mut parts: Vec<&str> = challenge.split('.').collect();
    parts[1] = "1";
    let easy = parts.join(".");
    let number = number_for(&easy, true);
    let answer = send_proof(&app, &link, (&easy, &number), "two", &JORDAN).await;
    counts_for_nothing(&answer);

    let answer = send_proof(&app, &other, (&challenge, &proof), "three", &JORDAN).await;
    counts_for_nothing(&answer);

    for challenge in ["", "...", &"1".repeat(300)] {
        let answer = send_proof(&app, &link, (challenge, "1"), "four", &JORDAN).await;
        counts_for_nothing(&answer);
    }

    let later = app.as_of(Duration::from_secs(601)).await;
    let answer = send_proof(&later, &link, (&challenge, &proof), "five", &JORDAN).await;
    counts_for_nothing(&answer);
    assert_eq!(app.count("envelope").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proof_makes_one_record_on_all_nodes() {
    let app = TestApp::start().await;
    let link = open_link(&app, json!({})).await;
    let (challenge, proof) = challenged(&app, &link).await;
    let computed = (challenge.as_str(), proof.as_str());
    let first = send_proof(&app, &link, computed, "one", &JORDAN).await;
    assert_eq!(first.status, 200, "{}", first.text());

    let other = app.another_node(|_| {}).await;
    let again = [("name", "Jordan Lee"), ("email", "kim@example.com")];
    for node in [&app, &other] {
        let answer = send_proof(node, &link, computed, "two", &again).await;
        counts_for_nothing(&answer);
    }
    only_envelope(&app).await;
}

/// A repeat costs a program nothing, so it must not cost the signing provider anything.
#[tokio::test(flavor = "multi_thread")]
async fn a_used_proof_makes_nothing_at_the_signing_provider() {
    let docuseal = FakeDocuseal::start().await;
    let app = TestApp::with(|config| docuseal.configure(config), OrgSettings::default()).await;
    let link = open_link(&app, json!({})).await;
    let (challenge, proof) = challenged(&app, &link).await;
    let computed = (challenge.as_str(), proof.as_str());
    let first = send_proof(&app, &link, computed, "one", &JORDAN).await;
    assert_eq!(first.status, 200, "{}", first.text());
    let made = docuseal.requests("POST", "/submissions").len();
    assert!(made > 0);

    let again = [("name", "Jordan Lee"), ("email", "kim@example.com")];
    let answer = send_proof(&app, &link, computed, "two", &again).await;
    counts_for_nothing(&answer);
    assert_eq!(docuseal.requests("POST", "/submissions").len(), made);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_script_the_link_goes_to_the_mailbox_and_few_records_are_made() {
    let app = TestApp::start().await;
    let link = open_link(&app, json!({ "verify_email": false })).await;
    let page = form::fetch(&app, url(&link)).await.text();
    assert!(page.contains("the link to the document comes by e-mail"));

    let answer = send(&app, &link, &token_of(&page), &JORDAN).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.text().contains("We have sent you the link"));
    assert!(!answer.text().contains("/sign/"), "{}", answer.text());
    let id = only_envelope(&app).await;
    let entry = app.entry(&id, "envelope.created").await;
    assert_eq!(entry["open_link"]["reached_by"], "email");

    // The same form with a proof is a repeat, and does not show the link either.
    let (challenge, proof) = challenged(&app, &link).await;
    let computed = (challenge.as_str(), proof.as_str());
    let repeat = send_proof(&app, &link, computed, &token_of(&page), &JORDAN).await;
    assert_eq!(repeat.status, 200, "{}", repeat.text());

    let office = [203, 0, 113, 7];
    for person in ["first", "second", "third"] {
        let answer = enter_as(&app, office, &link, person, "").await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    let answer = enter_as(&app, office, &link, "fourth", "").await;
    assert_eq!(answer.status, 429);
    assert!(answer.headers.contains_key("retry-after"));

    app.execute("update open_link_count set number = 20 where kind = 'all_unproved'")
        .await;
    let answer = enter_as(&app, [198, 51, 100, 1], &link, "fourth", "").await;
    assert_eq!(answer.status, 429, "another network does not help");
    let answer = enter(
        &app,
        &link,
        &[("name", "Kim"), ("email", "kim@example.com")],
    )
    .await;
    assert_eq!(answer.status, 303, "a proof does: {}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_work_rises_while_many_records_are_made() {
    let app = TestApp::start().await;
    let link = open_link(&app, json!({})).await;
    enter(&app, &link, &JORDAN).await;
    let difficulty = async |app: &TestApp| -> u32 {
        let page = form::fetch(app, url(&link)).await.text();
        let challenge = control_of(&page, "challenge");
        challenge.split('.').nth(1).unwrap().parse().unwrap()
    };

    let calm = difficulty(&app).await;
    app.execute("update open_link_count set number = 60 where kind = 'all_records'")
        .await;
    assert_eq!(difficulty(&app).await, calm + 2);
    let later = app.as_of(Duration::from_secs(61 * 60)).await;
    assert_eq!(difficulty(&later).await, calm);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_asks_for_a_proof_by_its_setting() {
    let app = TestApp::start().await;
    let link = open_link(&app, json!({ "proof_of_work": "off" })).await;
    assert_eq!(link["proof_of_work"], "off");
    let page = form::fetch(&app, url(&link)).await.text();
    assert!(!page.contains("name=\"challenge\""), "{page}");

    let template = app.contract_template().await;
    let refused = link_of(&app, &template, json!({ "proof_of_work": "maybe" })).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    let issue = refused.json()["details"][0].clone();
    assert_eq!(issue["path"], json!(["proof_of_work"]), "{issue}");
}

#[tokio::test(flavor = "multi_thread")]
async fn findings_of_the_funding_rules_are_not_for_visitors() {
    let app = TestApp::start().await;
    let link = open_link(&app, json!({})).await;
    app.set_organization(&["funding=enforce"]);
    let answer = enter(&app, &link, &JORDAN).await;
    assert_eq!(answer.status, 409, "{}", answer.text());
    assert!(answer.text().contains("ask its sender"));
    assert!(!answer.text().contains("facts.missing"));
    assert_eq!(app.count("envelope").await, 0);
}
