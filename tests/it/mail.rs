//! Mails, sent through a third-party mail server.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::http::{Method, StatusCode};
use holdfast::config::{Config, SecretText};
use holdfast::domain::brand::{BrandColor, BrandLogo, OrganizationBrand};
use holdfast::domain::organization::OrgSettings;
use mail_parser::HeaderValue;
use serde_json::{Value, json};

use crate::support::browser::{EmulatedScreen, TestBrowser};
use crate::support::smtp::{MailServer, ReceivedMail};
use crate::support::{CONTRACT, TestApp, envelope_body, form, operator_output, pdf};

const USER: &str = "holdfast@mail.example";
/// Password with characters that have to be encoded in a URL.
const PASSWORD: &str = "s3cret/with:odd@signs";
const PASSWORD_IN_URL: &str = "s3cret%2Fwith%3Aodd%40signs";

/// Three parties that sign one after the other. The creator is vault@maple.example.
const BUYER: &str = "buyer@example.com";
const SELLER: &str = "seller@example.com";
const LENDER: &str = "lender@example.com";
const CREATOR: &str = "vault@maple.example";

/// A PNG of one pixel.
fn logo() -> Vec<u8> {
    let text = "89504e470d0a1a0a0000000d4948445200000001000000010806000000\
                1f15c4890000000d49444154789c6360f8cfc0000003010100c9fe92ef0000000049454e44ae426082";
    hex::decode(text.replace(' ', "")).unwrap()
}

fn branded() -> OrgSettings {
    OrgSettings {
        auto_vault: false,
        brand: OrganizationBrand {
            name: Some("Höfe \"Maple\" GmbH".into()),
            color: Some(BrandColor::try_from("#ffd000".to_owned()).unwrap()),
            logo: Some(BrandLogo::new(logo()).unwrap()),
        },
        ..OrgSettings::default()
    }
}

fn manual() -> OrgSettings {
    OrgSettings {
        auto_vault: false,
        ..OrgSettings::default()
    }
}

/// Starts a service that sends its mails to the server without encryption.
async fn over(server: &MailServer, settings: OrgSettings) -> TestApp {
    over_url(&format!("smtp://127.0.0.1:{}", server.port), settings).await
}

async fn over_url(url: &str, settings: OrgSettings) -> TestApp {
    TestApp::with(|config| mail_to(config, url), settings).await
}

fn mail_to(config: &mut Config, url: &str) {
    config.smtp_url = Some(SecretText::new(url));
    config.mail_from = "Signing <no-reply@sign.example>".into();
}

/// Configures credentials and trust in the server's root certificate.
fn safely_to(config: &mut Config, server: &MailServer, password: &str) {
    let port = server.port;
    let url = format!(
        "smtp://{}:{password}@127.0.0.1:{port}?tls=required",
        USER.replace('@', "%40")
    );
    mail_to(config, &url);
    config.smtp_ca_file = Some(server.authority());
}

/// Sends a document that three parties sign in turn.
async fn send(app: &TestApp, document: &[u8]) -> String {
    let area = |y: f64| json!([{ "page": 1, "x": 0.1, "y": y, "w": 0.3, "h": 0.04 }]);
    let field = |role: &str, y: f64| {
        json!({
            "name": format!("{role} signature"), "type": "signature", "role": role, "required": true,
            "placement": { "mode": "absolute", "areas": area(y) },
        })
    };
    let fields = json!([
        field("Buyer", 0.1),
        field("Seller", 0.2),
        field("Lender", 0.3)
    ]);
    let template = app.template(document, &fields).await;
    let mut body = envelope_body(&template["template_id"]);
    body["signers"] = json!([
        { "email": BUYER, "name": "Ann Buyer", "role": "Buyer" },
        { "email": SELLER, "name": "Bob Seller", "role": "Seller" },
        { "email": LENDER, "name": "Cas Lender", "role": "Lender" },
    ]);

    let envelope = app.post("/partner/envelopes", body).await.data(201);
    envelope["envelope_id"].as_str().unwrap().to_owned()
}

/// Signs for the party at this position, with a link from the API.
async fn sign(app: &TestApp, id: &str, position: usize) {
    form::sign(app, &signing_link(app, id, position).await).await;
}

async fn signing_link(app: &TestApp, id: &str, position: usize) -> String {
    let path = format!("/partner/envelopes/{id}/signing-links");
    let links = app.get(&path).await.data(200);
    let url = links["signers"][position]["embed_url"].as_str().unwrap();
    url.to_owned()
}

/// Returns the mails to this address with a subject that starts with `subject`.
fn of<'a>(mails: &'a [ReceivedMail], to: &str, subject: &str) -> Vec<&'a ReceivedMail> {
    let mut found: Vec<&ReceivedMail> = mails.iter().filter(|mail| mail.to() == to).collect();
    found.retain(|mail| mail.subject().starts_with(subject));
    found
}

/// Waits until a job has failed and returns its error.
async fn wait_for_failure(app: &TestApp) -> String {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let error = "select coalesce(max(last_error), '') from job";
        let error = app.text_of(error).await;
        if !error.is_empty() {
            return error;
        }
        assert!(Instant::now() < deadline, "no job has failed");

        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until no job is left, so no further mail can follow.
#[tokio::test(flavor = "multi_thread")]
async fn every_party_gets_mails_in_the_organizations_brand() {
    let server = MailServer::start("starttls", &json!({ "user": USER, "password": PASSWORD }));
    let safely = |config: &mut Config| safely_to(config, &server, PASSWORD_IN_URL);
    let app = TestApp::with(safely, branded()).await;
    let id = send(&app, CONTRACT).await;

    let invitation = &server.wait_for(1).await[0];
    assert_eq!(invitation.to(), BUYER);

    let expected = "Höfe \"Maple\" GmbH asks you to sign: Retail instalment contract";
    assert_eq!(invitation.subject(), expected);
    assert!(invitation.text().contains("Hello Ann Buyer,"));

    let words = |mail: &str| mail.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = words(&invitation.text());
    let others = "Other signers: Bob Seller (Seller), Cas Lender (Lender).";
    assert!(
        text.contains("Please sign by ") && text.contains("(UTC)."),
        "{text}"
    );
    assert!(text.contains(others), "{text}");

    let page = form::open(&app, &invitation.link()).await;
    assert_eq!(page.status, StatusCode::OK, "the link works");

    let remind = format!("/partner/envelopes/{id}/remind");
    app.post(&remind, json!({})).await.data(200);
    let reminder = &server.wait_for(2).await[1];
    assert_eq!(reminder.to(), BUYER);
    assert!(reminder.subject().starts_with("Reminder: "));
    assert_ne!(reminder.link(), invitation.link());

    form::sign(&app, &reminder.link()).await;
    form::sign(&app, &server.wait_for(3).await[2].link()).await;
    form::sign(&app, &server.wait_for(4).await[3].link()).await;
    app.wait_for(&id, "completed").await;

    let mails = server.wait_for(8).await;
    for (address, subject) in [
        (SELLER, expected),
        (LENDER, expected),
        (BUYER, "Completed: Retail instalment contract"),
        (SELLER, "Completed: Retail instalment contract"),
        (LENDER, "Completed: Retail instalment contract"),
        (CREATOR, "Completed: Retail instalment contract"),
    ] {
        assert_eq!(
            of(&mails, address, subject).len(),
            1,
            "{address}: {subject}"
        );
    }

    let copy = copy_of(&mails, BUYER);
    let text = pdf::text(&copy);
    assert!(text.contains("Non-authoritative copy"), "{text}");
    assert!(!text.contains("Authoritative copy"), "{text}");
    assert!(
        text.contains("Jordan Lee"),
        "the signature is in it: {text}"
    );
    assert!(copy == copy_of(&mails, CREATOR), "all have the same copy");

    mails.iter().for_each(looks_right);
    app.wait_until_idle().await;
    assert_eq!(server.received().len(), 8, "and nobody is mailed twice");
}

const CERTIFICATE: &str = "Certificate of completion.pdf";

/// Returns the document attached to the completion mail.
fn copy_of(mails: &[ReceivedMail], to: &str) -> Vec<u8> {
    let mut attachments = of(mails, to, "Completed: ")[0].attachments();
    attachments.retain(|(name, _)| name != CERTIFICATE);
    assert_eq!(attachments.len(), 1);
    let (name, copy) = attachments.remove(0);
    assert_eq!(name, "Retail instalment contract.pdf");
    copy
}

/// Asserts the properties that every mail of the branded organization has.
fn looks_right(received: &ReceivedMail) {
    assert!(received.encrypted);
    assert_eq!(received.user.as_deref(), Some(USER));

    let mail = &received.mail;
    let from = mail.from().unwrap().first().unwrap();
    assert_eq!(from.name(), Some("Höfe \"Maple\" GmbH"));
    assert_eq!(from.address(), Some("no-reply@sign.example"));

    let reply_to = mail.reply_to().and_then(|answers| answers.first());
    let expected = Some(CREATOR).filter(|creator| *creator != received.to());
    assert_eq!(reply_to.and_then(|mailbox| mailbox.address()), expected);

    let automatic = mail.header("Auto-Submitted").unwrap();
    assert_eq!(automatic.as_text(), Some("auto-generated"));
    assert!(mail.message_id().unwrap().ends_with("@sign.example"));
    assert!(mail.date().is_some());

    let (text, page) = (received.text(), received.html());
    assert!(text.contains("Retail instalment contract"), "{text}");
    assert!(page.contains("Retail instalment contract"), "{page}");
    assert!(page.contains("#ffd000"), "{page}");

    let start = page.find("src=\"cid:").expect("a logo") + 9;
    let content_id: String = page[start..].chars().take_while(|c| *c != '"').collect();
    assert_eq!(received.inline(&content_id), logo());
}

/// Pictures of the layouts, with the plain text, are beside the build.
#[tokio::test(flavor = "multi_thread")]
async fn a_mail_fits_wide_and_narrow_readers() {
    let server = MailServer::start("none", &json!({}));
    let app = over(&server, branded()).await;
    send(&app, CONTRACT).await;
    let page = server.wait_for(1).await[0].write_beside_screenshots("mail");

    for (screen, name, width) in [
        (EmulatedScreen::Desktop, "mail-wide", 560),
        (EmulatedScreen::Phone, "mail-narrow", 360),
    ] {
        let browser = TestBrowser::open(screen).await;
        browser.goto(&format!("file://{}", page.display())).await;
        browser.see("table table table a").await;

        let frame = "return document.querySelector('table table').offsetWidth";
        assert_eq!(browser.run(frame).await, width, "{name}");
        let is_wider = "return document.documentElement.scrollWidth > innerWidth";
        assert_eq!(browser.run(is_wider).await, false, "{name}");

        browser.picture(name).await;
        browser.dark().await;
        browser.picture(&format!("{name}-dark")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_senders_subject_and_message_are_in_invitations_and_reminders() {
    let server = MailServer::start("none", &json!({}));
    let app = over(&server, manual()).await;
    let template = app.contract_template().await;
    let mut body = envelope_body(&template["template_id"]);
    body["subject"] = "Your loan for the blue car".into();
    body["message"] = "Dear Jordan,\nplease sign <b>before</b> Friday.".into();
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    server.wait_for(1).await;

    let id = envelope["envelope_id"].as_str().unwrap();
    let remind = format!("/partner/envelopes/{id}/remind");
    app.post(&remind, json!({})).await.data(200);

    let mails = server.wait_for(2).await;
    assert_eq!(mails[0].subject(), "Your loan for the blue car");
    assert_eq!(mails[1].subject(), "Reminder: Your loan for the blue car");
    for mail in &mails {
        let (text, page) = (mail.text(), mail.html());
        assert!(text.contains("Maple Street Motors"), "{text}");
        assert!(text.contains("Dear Jordan,"), "{text}");
        assert!(text.contains("please sign <b>before</b> Friday."), "{text}");
        assert!(page.contains("&lt;b&gt;before&lt;/b&gt; Friday."), "{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subject_that_is_no_line_creates_nothing() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    for subject in ["Loan\r\nBcc: everybody@example.com", " ", "a\u{85}b"] {
        let mut body = envelope_body(&template["template_id"]);
        body["subject"] = subject.into();
        let refused = app.post("/partner/envelopes", body).await;
        assert_eq!(refused.status, 422, "{subject:?}: {}", refused.text());

        let issue = &refused.json()["details"][0];
        assert_eq!(issue["code"], "invalid_value", "{issue}");
        assert_eq!(issue["path"], json!(["subject"]), "{issue}");
    }

    for (member, length) in [("subject", 201), ("message", 2001)] {
        let mut body = envelope_body(&template["template_id"]);
        body[member] = "x".repeat(length).into();
        let refused = app.post("/partner/envelopes", body).await;
        assert_eq!(refused.status, 422, "{}", refused.text());
        assert_eq!(refused.json()["details"][0]["path"], json!([member]));
    }

    assert_eq!(app.count("envelope").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn replies_go_to_the_organizations_own_address() {
    let server = MailServer::start("none", &json!({}));
    let app = over(&server, manual()).await;
    let change = |address: Value| {
        let body = json!({ "reply_to": address });
        app.web(Method::PATCH, "/organization", body)
    };
    let refused = change("Documents <documents@maple.example>".into()).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    let path = &refused.json()["details"][0]["path"];
    assert_eq!(*path, json!(["reply_to"]));

    let documents = "documents@maple.example";
    let changed = change(documents.into()).await.data(200);
    assert_eq!(changed["reply_to"], documents);
    send(&app, CONTRACT).await;
    server.wait_for(1).await;

    change(Value::Null).await.data(200);
    send(&app, CONTRACT).await;
    let mails = server.wait_for(2).await;
    for (mail, expected) in mails.iter().zip([documents, CREATOR]) {
        let reply_to = mail.mail.reply_to().and_then(|answers| answers.first());
        let address = reply_to.and_then(|mailbox| mailbox.address());
        assert_eq!(address, Some(expected));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invited_signers_learn_of_a_decline_and_only_the_creator_its_reason() {
    let server = MailServer::start("none", &json!({}));
    let app = over(&server, manual()).await;
    let id = send(&app, CONTRACT).await;
    sign(&app, &id, 0).await;
    let link = signing_link(&app, &id, 1).await;
    form::open(&app, &link).await;
    let reason = [("reason".to_owned(), "The price is wrong".to_owned())];
    assert_eq!(
        form::press(&app, &link, "decline", &reason).await.status,
        200
    );

    app.wait_until_idle().await;
    let mails = server.received();
    let told = |to: &str| {
        let found = of(&mails, to, "Declined: Retail instalment contract");
        assert_eq!(found.len(), 1, "{to}");
        assert!(found[0].html().contains("declined"));
        found[0].text()
    };
    let creator = told(CREATOR);
    assert!(
        creator.contains("Bob Seller has declined to sign"),
        "{creator}"
    );
    assert!(creator.contains("The price is wrong"), "{creator}");
    let page = format!("/console/envelopes/{id}\n");
    assert!(creator.replace('\r', "").contains(&page), "{creator}");

    assert!(told(SELLER).contains("You have declined to sign"));
    assert!(told(BUYER).contains("Another signer has declined to sign"));

    for signer in [told(SELLER), told(BUYER)] {
        assert!(!signer.contains("The price is wrong"), "{signer}");
    }

    let waiting = mails.iter().filter(|mail| mail.to() == LENDER).count();
    assert_eq!(waiting, 0, "who was not asked yet is not told");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_voided_document_is_announced_and_no_longer_requested() {
    let mut server = MailServer::start("none", &json!({}));
    let app = over(&server, manual()).await;
    let first = send(&app, CONTRACT).await;
    server.wait_for(1).await;
    server.stop();

    // The second document is sent while the mail server is down, and voided before it is back.
    let second = send(&app, CONTRACT).await;
    wait_for_failure(&app).await;

    for id in [&first, &second] {
        app.post(&format!("/partner/envelopes/{id}/void"), json!({}))
            .await
            .data(200);
    }

    server.go_on();
    app.wait_until_idle().await;
    let mails = server.received();
    assert_eq!(mails.len(), 3);
    assert_eq!(of(&mails, BUYER, "Maple Street Motors asks you").len(), 1);

    let withdrawn = of(&mails, BUYER, "Withdrawn: Retail instalment contract");
    assert_eq!(withdrawn.len(), 2);
    assert!(
        withdrawn[0]
            .text()
            .contains("Maple Street Motors has withdrawn")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_temporarily_refused_mail_is_retried() {
    let server = MailServer::start("none", &json!({ "busy": 1 }));
    let app = over(&server, manual()).await;
    send(&app, CONTRACT).await;
    let error = wait_for_failure(&app).await;
    assert!(error.contains("451"), "{error}");
    assert_eq!(server.wait_for(1).await[0].to(), BUYER);
    app.wait_until_idle().await;
    assert_eq!(server.received().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permanently_refused_mail_is_set_aside_without_delaying_others() {
    let server = MailServer::start("none", &json!({ "nobody": CREATOR }));
    let app = over(&server, manual()).await;
    let id = send(&app, CONTRACT).await;
    for position in 0..3 {
        sign(&app, &id, position).await;
    }

    app.wait_until_idle().await;
    let mails = server.received();
    for signer in [BUYER, SELLER, LENDER] {
        assert_eq!(of(&mails, signer, "Completed: ").len(), 1, "{signer}");
    }
    assert_eq!(app.count("job").await, 1);

    let aside = "select kind || ' ' || state || ' ' || attempts || ' ' || last_error from job";
    let aside = app.text_of(aside).await;
    assert!(aside.starts_with("mail.completed failed 1 "), "{aside}");
    assert!(
        aside.contains("550") && aside.contains("nobody has this address"),
        "{aside}"
    );
}

/// Returns the outcome of the newest mail to the first signer.
async fn notice(app: &TestApp, id: &str) -> Value {
    let people = app.get(&format!("/partner/envelopes/{id}/signers")).await;
    people.data(200)["signers"][0]["notice"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn people_show_whose_mail_was_accepted_and_whose_was_refused() {
    let server = MailServer::start("none", &json!({ "nobody": "gone@example.com" }));
    let app = over(&server, manual()).await;
    let id = send(&app, CONTRACT).await;
    app.wait_until_idle().await;
    let accepted = notice(&app, &id).await;
    assert_eq!(accepted["status"], "accepted", "{accepted}");
    assert_eq!(accepted["reason"], Value::Null);

    // The outcome belongs to a person, not to a role.
    let role = format!("/partner/envelopes/{id}/signers/Buyer");
    let change = json!({ "email": "gone@example.com", "name": "Dee Buyer" });
    let changed = app.patch(&role, change).await.data(200);
    assert_eq!(changed["notice"], Value::Null, "{changed}");

    app.wait_until_idle().await;
    let refused = notice(&app, &id).await;
    assert_eq!(refused["status"], "failed", "{refused}");

    let reason = refused["reason"].as_str().unwrap();
    assert!(reason.contains("nobody has this address"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_returned_mail_is_in_the_record_as_what_a_bounce_reports() {
    let server = MailServer::start("none", &json!({}));
    let bounces = |config: &mut Config| {
        mail_to(config, &format!("smtp://127.0.0.1:{}", server.port));
        config.mail_bounces = Some("bounces@mail.example".into());
    };
    let app = TestApp::with(bounces, manual()).await;
    let id = send(&app, CONTRACT).await;

    let sent = server.wait_for(1).await;
    let sender = &sent[0].sender;
    assert!(sender.starts_with("bounces+") && sender.ends_with("@mail.example"));

    let report = format!(
        "To: {sender}\nContent-Type: multipart/report; report-type=delivery-status\n\n\
         Final-Recipient: rfc822; {BUYER}\nAction: failed\nStatus: 5.1.1\n\
         Diagnostic-Code: smtp; 550 no such user\n"
    );
    assert_eq!(app.bounced(&report)["recorded"], true);

    // The mail server hands it over twice.
    assert_eq!(app.bounced(&report)["recorded"], false);

    let forged = report.replace(".i.", ".r.");
    assert_eq!(app.bounced(&forged)["recorded"], false);

    let custody = app.custody(&id).await;
    let entries = custody["entries"].as_array().unwrap();
    let is_failure = |entry: &&Value| entry["action"] == "signer.delivery_failed";
    let failed: Vec<&Value> = entries.iter().filter(is_failure).collect();
    assert_eq!(failed.len(), 1, "{custody}");
    assert_eq!(failed[0]["details"]["message"], "invitation");
    assert_eq!(failed[0]["details"]["signer"]["email"], BUYER);
    assert_eq!(
        failed[0]["details"]["reason"],
        "5.1.1; smtp; 550 no such user"
    );

    let returned = notice(&app, &id).await;
    assert_eq!(returned["status"], "failed", "{returned}");

    // Without webhooks, too: the sender gets a mail, once.
    app.wait_until_idle().await;
    let mails = server.received();
    let told = of(&mails, CREATOR, "Not delivered: ");
    assert_eq!(told.len(), 1);
    assert!(told[0].text().contains("The document stays open."));
    assert!(
        told[0].text().contains("550 no such user"),
        "{}",
        told[0].text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn mails_wait_for_an_unreachable_server() {
    let mut server = MailServer::start("none", &json!({}));
    let app = over(&server, OrgSettings::default()).await;
    let envelope = app.sent_envelope().await;
    let id = envelope["envelope_id"].as_str().unwrap();
    server.wait_for(1).await;
    server.stop();
    form::sign(&app, envelope["sign_url"].as_str().unwrap()).await;

    app.wait_for(id, "vaulted").await;
    wait_for_failure(&app).await;
    let checks = app.ready().await;
    assert_eq!(checks["mail"], Value::Null, "a node is ready without it");
    assert_eq!(checks["database"], true);

    server.go_on();
    let mails = server.wait_for(3).await;
    assert!(copy_of(&mails, "jordan.lee@example.com") == app.copy(id).await);
}

/// A mail server that cannot be used is tried for days; the sender then learns that no signer was invited.
#[tokio::test(flavor = "multi_thread")]
async fn a_mail_that_is_given_up_is_reported() {
    let server = MailServer::start("none", &json!({}));
    let app = over(&server, OrgSettings::default()).await;
    let mut server = server;
    server.stop();
    let envelope = app.sent_envelope().await;
    let id = envelope["envelope_id"].as_str().unwrap();
    wait_for_failure(&app).await;
    app.execute("update job set attempts = 1000 where kind = 'signer.invite'")
        .await;

    app.wait_for_event(id, "signer.delivery_failed").await;
    let failed = notice(&app, id).await;
    assert_eq!(failed["status"], "failed", "{failed}");
    assert_eq!(failed["reason"], "the mail server could not be used");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_party_gets_the_vaulted_copy_by_mail() {
    let server = MailServer::start("none", &json!({}));
    let app = over(&server, OrgSettings::default()).await;
    let id = app.vaulted_envelope().await;
    let mails = server.wait_for(3).await;

    let stored = app.copy(&id).await;
    for to in ["jordan.lee@example.com", CREATOR] {
        assert!(copy_of(&mails, to) == stored, "{to}");
        let mail = of(&mails, to, "Completed: ")[0];
        let mut attached = mail.attachments().into_iter();
        let (_, certificate) = attached.find(|(name, _)| name == CERTIFICATE).unwrap();
        assert!(pdf::text(&certificate).contains("Jordan Lee"), "{to}");
        assert!(mail.text().contains("certificate"), "{}", mail.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_too_large_for_a_mail_is_sent_as_a_link() {
    let server = MailServer::start("none", &json!({}));
    let app = over(&server, manual()).await;
    let large = pdf::with_metadata(&["A large agreement"], 6 << 20);
    let id = send(&app, &large).await;
    for position in 0..3 {
        sign(&app, &id, position).await;
    }

    app.wait_until_idle().await;
    let mails = server.received();
    let to_signer = of(&mails, LENDER, "Completed: ")[0];
    assert!(to_signer.attachments().is_empty());

    let text = to_signer.text();
    assert!(text.contains("download your copy"), "{text}");

    let page = form::open(&app, &form::link_in(&text)).await;
    let page = page.text();
    assert!(page.contains("Download your copy"), "{page}");
}

/// When a server refuses the size of a mail, recipients get a mail with a link instead.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_refused_by_the_mail_server_is_sent_as_a_link() {
    let server = MailServer::start("none", &json!({ "largest": 20_000 }));
    let app = over(&server, manual()).await;
    let id = send(&app, CONTRACT).await;
    for position in 0..3 {
        sign(&app, &id, position).await;
    }

    app.wait_until_idle().await;
    let mails = server.received();
    let to_signer = of(&mails, LENDER, "Completed: ")[0];
    assert!(to_signer.attachments().is_empty());
    assert!(to_signer.text().contains("download your copy"));
}

#[tokio::test(flavor = "multi_thread")]
async fn mails_are_sent_with_implicit_tls() {
    let server = MailServer::start("implicit", &json!({}));
    let secure = |config: &mut Config| {
        mail_to(config, &format!("smtps://127.0.0.1:{}", server.port));
        config.smtp_ca_file = Some(server.authority());
    };
    let app = TestApp::with(secure, manual()).await;
    app.sent_envelope().await;

    let mails = server.wait_for(1).await;
    assert!(mails[0].encrypted);
    // Without a brand too, a signer knows the sender's name and none other.
    let html = mails[0].html();
    assert!(!html.contains("holdfast"), "{html}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_mail_is_sent_to_a_server_with_an_invalid_certificate() {
    let server = MailServer::start("starttls", &json!({}));
    let stranger = MailServer::start("none", &json!({}));
    for authority in [None, Some(stranger.authority())] {
        let unsure = |config: &mut Config| {
            let port = server.port;
            mail_to(config, &format!("smtp://127.0.0.1:{port}?tls=required"));
            config.smtp_ca_file = authority;
        };
        let app = TestApp::with(unsure, manual()).await;
        app.sent_envelope().await;

        let error = wait_for_failure(&app).await;
        assert!(error.contains("certificate"), "{error}");
    }

    assert!(server.received().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_mail_is_sent_unencrypted_when_tls_is_required() {
    let server = MailServer::start("none", &json!({}));
    let url = format!("smtp://127.0.0.1:{}?tls=required", server.port);
    let app = over_url(&url, manual()).await;
    app.sent_envelope().await;
    let error = wait_for_failure(&app).await;
    assert!(error.contains("STARTTLS"), "{error}");
    assert!(server.received().is_empty());

    let opportunistic = url.replace("required", "opportunistic");
    let app = over_url(&opportunistic, manual()).await;
    app.sent_envelope().await;
    assert!(!server.wait_for(1).await[0].encrypted);
}

/// Captured log lines.
#[derive(Clone, Default)]
struct CapturedLog(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for CapturedLog {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_password_is_never_logged_and_a_wrong_one_loses_no_mail() {
    let lines = CapturedLog::default();
    let writer = lines.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .init();
    let wrong = "wr0ng-password";

    let server = MailServer::start("starttls", &json!({ "user": USER, "password": PASSWORD }));
    let mut shown = String::new();
    let with_wrong = |config: &mut Config| {
        safely_to(config, &server, wrong);
        shown = format!("{config:?}");
    };
    let app = TestApp::with(with_wrong, manual()).await;
    app.sent_envelope().await;

    let error = wait_for_failure(&app).await;
    assert!(error.contains("535"), "{error}");

    let waiting = app.count("job where state = 'waiting'").await;
    assert_eq!(waiting, 1, "the operator can mend it");

    let settings = [
        (
            "HOLDFAST_SMTP_URL",
            format!("smtp://u:{wrong}@127.0.0.1:{}?tls=required", server.port),
        ),
        (
            "HOLDFAST_SMTP_CA_FILE",
            server.authority().display().to_string(),
        ),
    ];

    let doctor = std::process::Command::new(env!("CARGO_BIN_EXE_holdfast"))
        .env("HOLDFAST_DATA_DIR", app.data.path())
        .envs(settings)
        .args(["--json", "doctor"])
        .output()
        .unwrap();
    assert!(!doctor.status.success());

    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    let checks: Value = serde_json::from_str(&said).unwrap();
    let mut checks = checks.as_array().unwrap().iter();
    let mail = checks.find(|check| check["name"] == "mail").unwrap();
    assert_eq!(mail["ok"], false);
    assert!(mail["detail"].as_str().unwrap().contains("535"), "{mail}");

    let complained = String::from_utf8_lossy(&doctor.stderr).into_owned();
    let log = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("a job failed"), "the log is what was read");

    for text in [error, shown, said, complained, log] {
        assert!(!text.contains(wrong), "{text}");
        assert!(!text.contains(PASSWORD), "{text}");
    }
}

/// Simulates a crash between sending a mail and settling its job.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_mail_has_the_same_message_id() {
    let mut server = MailServer::start("none", &json!({}));
    server.stop();
    let app = over(&server, manual()).await;
    app.sent_envelope().await;
    wait_for_failure(&app).await;
    app.execute("create table kept as select * from job").await;
    server.go_on();

    server.wait_for(1).await;
    app.wait_until_idle().await;
    app.execute("insert into job select * from kept").await;
    let mails = server.wait_for(2).await;
    assert_eq!(mails[0].mail.message_id(), mails[1].mail.message_id());

    for mail in &mails {
        assert_eq!(form::open(&app, &mail.link()).await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_cannot_inject_mail_headers() {
    let server = MailServer::start("none", &json!({}));
    let app = over(&server, manual()).await;
    let template = app.contract_template().await;
    let odd = [
        "Ann\r\nBcc: everybody@example.com\r\n\r\nHello",
        "Ann\" <other@example.com>, \"Bob",
        "安娜 Ångström, 🖋 & <script>",
        "Ann\u{202e}gnp.exe\u{1}",
    ];
    for name in odd {
        let mut body = envelope_body(&template["template_id"]);
        body["envelope_name"] = name.into();
        body["signers"] = json!([{ "email": BUYER, "name": name, "role": "Buyer" }]);
        app.post("/partner/envelopes", body).await.data(201);
    }

    let mails = server.wait_for(odd.len()).await;
    app.wait_until_idle().await;
    for received in &mails {
        let mail = &received.mail;
        assert_eq!(received.to(), BUYER);

        for name in ["Bcc", "Cc"] {
            assert!(mail.header(name).is_none(), "{name}");
        }

        let to = mail.to().unwrap();
        assert_eq!(to.iter().count(), 1, "{to:?}");
        assert_eq!(to.first().unwrap().address(), Some(BUYER));

        let known = [
            "From",
            "To",
            "Subject",
            "Date",
            "Message-ID",
            "Auto-Submitted",
            "Reply-To",
            "MIME-Version",
            "Content-Type",
        ];

        for header in mail.headers() {
            let name = header.name();
            assert!(
                known.iter().any(|known| known.eq_ignore_ascii_case(name)),
                "{name}"
            );
            assert!(!matches!(header.value(), HeaderValue::Empty), "{name}");
        }

        assert!(!received.html().contains("<script>"), "{}", received.html());
    }

    let subjects: Vec<&str> = mails.iter().map(ReceivedMail::subject).collect();
    for name in [
        "Ann Bcc: everybody@example.com Hello",
        "Ann\" <other@example.com>, \"Bob",
        "安娜 Ångström, 🖋 & <script>",
        "Ann gnp.exe",
    ] {
        let subject = format!("Maple Street Motors asks you to sign: {name}");
        assert!(subjects.contains(&subject.as_str()), "{subjects:?}");
    }

    let names: Vec<Option<&str>> = mails
        .iter()
        .map(|received| received.mail.to().unwrap().first().unwrap().name())
        .collect();
    assert!(
        names.contains(&Some("安娜 Ångström, 🖋 & <script>")),
        "{names:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_logs_in_to_the_mail_server() {
    let server = MailServer::start("none", &json!({}));
    let data = tempfile::tempdir().unwrap();
    crate::support::share_native_code(data.path());
    let settings = format!(
        "data_dir = '{}'\nsmtp_url = 'smtp://127.0.0.1:{}'\n",
        data.path().display(),
        server.port
    );

    let file = data.path().join("holdfast.toml");
    std::fs::write(&file, settings).unwrap();
    let config = ["--config", file.to_str().unwrap(), "doctor"];
    let output = operator_output(data.path(), &config);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );

    drop(server);
    let output = operator_output(data.path(), &config);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("127.0.0.1"), "{said}");
}
