//! Signing in a browser: on a desktop, on a phone and without JavaScript.
//!
//! Screenshots are saved in the build folder, in `tmp/screenshots`.

use holdfast::domain::organization::{OrgSettings, PaymentSettings};
use serde_json::{Value, json};

use crate::support::browser::{EmulatedScreen, TestBrowser};
use crate::support::method::{CODE, FakeMethod};
use crate::support::processor::PaymentProcessor;
use crate::support::{TestApp, buyer_and_seller, envelope_body, form, pdf};

/// Tags for every kind of field.
const EVERY_FIELD: &[&str] = &[
    "Service agreement",
    "Customer name: {{Full name;type=text;role=Customer;required=true;width=180}}",
    "Vehicles: {{Vehicles;type=number;role=Customer;required=true;width=80}}",
    "Start: {{Start date;type=date;role=Customer;required=true;width=110}}",
    "Plan: {{Plan;type=select;role=Customer;options=Basic,Full;required=true;width=110}}",
    "Billing: {{Billing;type=radio;role=Customer;options=Monthly,Yearly;required=true;width=110}}",
    "Newsletter: {{Newsletter;type=checkbox;role=Customer;width=16;height=16}}",
    "Reference: {{Reference;type=text;role=Customer;readonly=true;default=A-17;width=110}}",
    "Initials: {{Initials;type=initials;role=Customer;required=true;width=60;height=24}}",
    "Signature: {{Signature;type=signature;role=Customer;required=true;width=200;height=40}}",
];

async fn envelope_of_every_field(app: &TestApp) -> Value {
    let document = pdf::with_lines(EVERY_FIELD);
    let texts = [("name", "Service agreement")];
    let template = app
        .upload("/partner/templates", "application/pdf", &document, &texts)
        .await
        .data(200);
    assert_eq!(template["fields_added"], 9, "{template}");

    let mut body = envelope_body(&template["template_id"]);
    body["envelope_name"] = "Service agreement".into();
    app.post("/partner/envelopes", body).await.data(201)
}

async fn copy_text(app: &TestApp, id: &str) -> String {
    pdf::text(&app.copy(id).await)
}

fn id_and_url(envelope: &Value) -> (&str, &str) {
    (
        envelope["envelope_id"].as_str().unwrap(),
        envelope["sign_url"].as_str().unwrap(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_field_is_filled_in_and_signed_on_a_desktop() {
    let app = TestApp::on_a_socket().await;
    let envelope = envelope_of_every_field(&app).await;
    let (id, url) = id_and_url(&envelope);
    let browser = TestBrowser::open(EmulatedScreen::Desktop).await;
    browser.goto(url).await;
    browser.see(".sheet img").await;
    browser.picture("desktop-open").await;

    browser.is_accessible("the form").await;

    browser.type_into("[name='Full name']", "Jordan Lee").await;
    browser.type_into("[name='Vehicles']", "3").await;
    browser.run("const date = document.querySelector(\"[name='Start date']\"); date.value = '2026-12-01'; date.dispatchEvent(new Event('input', { bubbles: true }));").await;
    browser.click("[name=Plan] option[value=Full]").await;
    browser.click("[name=Billing][value=Yearly]").await;
    browser.click("[name=Newsletter][type=checkbox]").await;
    browser.type_into("[name=Initials]", "JL").await;

    let step = "[data-kind=signature]";
    browser
        .run("[...document.querySelectorAll('[data-kind=signature] .ways button')].find((button) => button.textContent === 'Draw').click()")
        .await;
    let line = [
        (0.2, 0.6),
        (0.3, 0.3),
        (0.4, 0.7),
        (0.55, 0.35),
        (0.7, 0.6),
        (0.85, 0.4),
    ];
    browser.draw(&format!("{step} canvas"), &line).await;

    browser.until("return document.querySelector('[data-kind=signature] input[type=hidden]').value.startsWith('data:image/png')").await;
    browser.read("9 of 9 required fields done").await;
    browser.read("Saved").await;
    browser.picture("desktop-filled").await;
    browser.is_accessible("the filled form").await;
    browser.click("#consent").await;
    browser.picture("desktop-review").await;

    browser.click("button[value=finish]").await;
    browser.read("Thank you").await;
    browser.picture("desktop-thanks").await;
    browser.is_accessible("the thanks").await;
    browser.read("Download your copy").await;

    app.wait_for(id, "vaulted").await;
    let text = copy_text(&app, id).await;
    for value in ["Jordan Lee", "2026-12-01", "Full", "Yearly", "A-17", "JL"] {
        assert!(text.contains(value), "{value}: {text}");
    }

    let completed = app.events(id).await;
    let completed = completed
        .iter()
        .find(|event| event["event_type"] == "envelope.completed")
        .unwrap();
    let value = |name: &str| {
        let fields = completed["data"]["fields"].as_array().unwrap();
        let field = fields.iter().find(|field| field["name"] == name);
        field.unwrap_or_else(|| panic!("{name}: {completed}"))["value"].clone()
    };
    assert_eq!(value("Vehicles"), json!(3.0));
    assert_eq!(value("Newsletter"), "true");
    assert_eq!(value("Signature"), "signed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_shows_one_step_at_a_time_and_signs_with_a_typed_name() {
    let app = TestApp::on_a_socket().await;
    let envelope = app.sent_envelope().await;
    let (id, url) = id_and_url(&envelope);
    let browser = TestBrowser::open(EmulatedScreen::Phone).await;
    browser.goto(url).await;
    browser.see(".sheet img").await;
    browser.picture("phone-open").await;

    let across = browser
        .run("return document.documentElement.scrollWidth")
        .await;
    assert_eq!(across, 360, "nothing is wider than the screen");

    browser.is_accessible("the form on a phone").await;
    browser.click(".next").await;
    browser.see("[name='Signed on']").await;
    browser.run("const date = document.querySelector(\"[name='Signed on']\"); date.value = '2026-11-21'; date.dispatchEvent(new Event('input', { bubbles: true }));").await;
    browser.picture("phone-step").await;
    browser.click(".next").await;
    browser
        .type_into("[name='Buyer signature']", "Jordan Lee")
        .await;

    browser.click(".next").await;
    browser.click("#consent").await;
    browser.picture("phone-review").await;
    browser.is_accessible("the last step on a phone").await;
    browser.click("button[value=finish]").await;
    browser.read("Thank you").await;
    browser.picture("phone-thanks").await;

    app.wait_for(id, "vaulted").await;
    assert!(copy_text(&app, id).await.contains("Jordan Lee"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_uploaded_picture_signs_and_survives_a_reload() {
    let app = TestApp::on_a_socket().await;
    let envelope = app.sent_envelope().await;
    let (id, url) = id_and_url(&envelope);
    let browser = TestBrowser::open(EmulatedScreen::Desktop).await;
    browser.goto(url).await;
    let way = |name: &str| {
        format!(
            "[...document.querySelectorAll('.ways button')].find((button) => button.textContent === '{name}').click()"
        )
    };

    browser
        .type_into("[name='Buyer signature']", "Jordan")
        .await;
    browser.run(&way("Draw")).await;
    browser.read("0 of 2 required fields done").await;
    browser.run(&way("Type")).await;
    browser.read("1 of 2 required fields done").await;

    browser.run(&way("Upload")).await;
    let picture = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/scan.png");
    let picture = std::fs::canonicalize(picture).unwrap();
    let picture = picture.to_str().unwrap();
    browser.type_into("input[type=file]", picture).await;
    let held = "return document.querySelector(\"input[type=hidden][name='Buyer signature']\")?.value.startsWith('data:image/') ?? false";
    browser.until(held).await;

    browser.read("Saved").await;
    browser.page.refresh().await.unwrap();
    browser.until(held).await;
    browser.see("img.drawn").await;
    browser.picture("uploaded").await;
    browser.run("const date = document.querySelector(\"[name='Signed on']\"); date.value = '2026-11-21'; date.dispatchEvent(new Event('input', { bubbles: true }));").await;
    browser.click("#consent").await;

    browser.click("button[value=finish]").await;
    browser.read("Thank you").await;
    app.wait_for(id, "vaulted").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_readable_in_dark_mode_and_in_brand_colours() {
    let settings = OrgSettings {
        brand: serde_json::from_value(json!({ "name": "Oak & Pine", "color": "#ffd000" })).unwrap(),
        ..OrgSettings::default()
    };
    let app = TestApp::on_a_socket_with(settings).await;
    let envelope = app.sent_envelope().await;
    let browser = TestBrowser::open(EmulatedScreen::Desktop).await;
    browser.dark().await;

    browser.goto(id_and_url(&envelope).1).await;
    browser.read("Oak & Pine").await;
    let color =
        "return getComputedStyle(document.querySelector('button[value=finish]')).backgroundColor";
    assert_eq!(browser.run(color).await, "rgb(255, 208, 0)");

    browser.picture("dark-brand").await;
    browser.is_accessible("the form in the dark").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_works_without_javascript() {
    let app = TestApp::on_a_socket().await;
    let envelope = envelope_of_every_field(&app).await;
    let (id, url) = id_and_url(&envelope);
    let browser = TestBrowser::without_javascript(EmulatedScreen::Phone).await;
    browser.goto(url).await;
    browser.see("button[value=finish]").await;
    browser.picture("plain-phone").await;

    drop(browser);
    let browser = TestBrowser::without_javascript(EmulatedScreen::Desktop).await;
    browser.goto(url).await;
    browser.click("button[value=finish]").await;
    browser
        .read("Your consent to signing electronically is needed")
        .await;

    browser.read("Signature: This field is required").await;
    browser.picture("plain-problems").await;
    for (name, value) in [
        ("Full name", "Jordan Lee"),
        ("Vehicles", "3"),
        ("Initials", "JL"),
        ("Signature", "Jordan Lee"),
    ] {
        browser.type_into(&format!("[name='{name}']"), value).await;
    }

    // The format of a date control depends on the language of the browser.
    browser.type_into("[name='Start date']", "12012026").await;

    // Move from the first radio button back to the list before it.
    browser.click("[name=Billing][value=Yearly]").await;
    browser.press(&["\u{e008}", "\u{e004}"]).await;
    browser.press(&["F"]).await;
    browser.click("[name=Newsletter][type=checkbox]").await;
    browser.click("button[value=review]").await;
    browser.read("Check your answers").await;

    browser.read("Yearly").await;
    browser.picture("plain-review").await;
    browser.click("#consent").await;
    browser.click("button[value=finish]").await;
    browser.read("Thank you").await;
    app.wait_for(id, "vaulted").await;
    let text = copy_text(&app, id).await;
    assert!(
        text.contains("2026-12-01") && text.contains("Yearly"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_is_filled_in_and_signed_by_keyboard_alone() {
    let app = TestApp::on_a_socket().await;
    let envelope = app.sent_envelope().await;
    let (id, url) = id_and_url(&envelope);
    let browser = TestBrowser::open(EmulatedScreen::Desktop).await;
    browser.goto(url).await;
    browser.see("[name='Buyer signature']").await;
    browser.tab_to("[name='Buyer signature']").await;

    browser.keys("Jordan Lee").await;
    browser.tab_to("[name='Signed on']").await;
    browser.keys("11212026").await;
    browser.tab_to("#consent").await;
    browser.keys(" ").await;
    browser.tab_to("button[value=finish]").await;
    browser.keys("\u{e007}").await;

    browser.read("Thank you").await;
    app.wait_for(id, "vaulted").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn entered_values_survive_a_lost_connection_and_a_reload() {
    let app = TestApp::on_a_socket().await;
    let envelope = app.sent_envelope().await;
    let browser = TestBrowser::open(EmulatedScreen::Desktop).await;
    browser.goto(id_and_url(&envelope).1).await;
    browser
        .type_into("[name='Buyer signature']", "Jordan")
        .await;

    browser.read("Saved").await;
    browser.offline(true).await;
    browser.type_into("[name='Buyer signature']", " Lee").await;
    browser.read("No connection").await;
    browser.picture("offline").await;
    browser.offline(false).await;
    browser.page.refresh().await.unwrap();

    browser
        .until(
            "return document.querySelector(\"[name='Buyer signature']\")?.value === 'Jordan Lee'",
        )
        .await;

    // The script saves when the connection is back, or else the reloaded page does.
    let url = id_and_url(&envelope).1;
    for _ in 0..200 {
        if form::open(&app, url)
            .await
            .text()
            .contains("value=\"Jordan Lee\"")
        {
            break;
        }

        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }

    // Another device shows the saved values.
    let other = TestBrowser::open(EmulatedScreen::Phone).await;
    other.goto(id_and_url(&envelope).1).await;
    other
        .until(
            "return document.querySelector(\"[name='Buyer signature']\")?.value === 'Jordan Lee'",
        )
        .await;

    // A page that was asked for before a save, and is shown after it, finds the values in the browser.
    browser.until("return sessionStorage.length === 0").await;
    let kept = "window.dispatchEvent(new Event('beforeunload'));
        const real = window.fetch;
        window.fetch = async (...sent) => { const answer = await real(...sent); window.answered = true; return answer; }";
    browser.run(kept).await;
    browser.type_into("[name='Buyer signature']", " Jr").await;

    browser.until("return window.answered === true").await;
    let stored = browser
        .run("return JSON.stringify({ ...sessionStorage })")
        .await;
    assert!(stored.to_string().contains("Jordan Lee Jr"), "{stored}");

    browser.until("return sessionStorage.length === 0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signer_declines_with_a_reason() {
    let app = TestApp::on_a_socket().await;
    let envelope = app.sent_envelope().await;
    let (id, url) = id_and_url(&envelope);
    let browser = TestBrowser::open(EmulatedScreen::Desktop).await;
    browser.goto(url).await;
    browser.click(".decline:has(.confirm) > summary").await;
    browser.click(".confirm > summary").await;

    browser.read("closes this document for all parties").await;
    browser.click("button[value=decline]").await;
    browser.read("Say why you decline").await;
    browser.type_into("#reason", "The price is wrong").await;
    browser.click("button[value=decline]").await;
    browser.read("You have declined").await;
    browser.picture("declined").await;

    app.wait_for(id, "declined").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signer_waits_for_the_first() {
    let app = TestApp::on_a_socket().await;
    let (id, links) = app.sent_to_two().await;
    let browser = TestBrowser::open(EmulatedScreen::Desktop).await;
    browser.goto(&links[1]).await;
    browser.read("Ann Buyer signs before you").await;
    browser.picture("not-yet").await;

    for (index, field) in [(0, "First"), (1, "Second")] {
        browser.goto(&links[index]).await;
        browser
            .type_into(&format!("[name={field}]"), "A name")
            .await;
        browser.click("#consent").await;
        browser.click("button[value=finish]").await;
        browser.read("Thank you").await;
    }

    app.wait_for(&id, "vaulted").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_link_is_renewed_by_mail() {
    let app = TestApp::on_a_socket().await;
    let envelope = app.sent_envelope().await;
    app.wait_for_mails(1).await;
    let expired = "update signing_link set expires_at = $1";
    app.change(expired, "2020-01-01T00:00:00.000Z").await;
    let browser = TestBrowser::open(EmulatedScreen::Phone).await;
    browser.goto(id_and_url(&envelope).1).await;

    browser.read("This link has expired").await;
    browser.picture("expired").await;
    browser.is_accessible("the expired page").await;
    browser.click("button[type=submit]").await;
    browser.read("An e-mail is on its way").await;
    let mails = app.wait_for_mails(2).await;
    let links: Vec<String> = mails.iter().map(|mail| form::link_in(mail)).collect();
    let mut fresh = links.iter().filter(|link| !link.is_empty());

    let mut opened = false;
    for link in fresh.by_ref() {
        browser.goto(link).await;
        opened |= browser.text().await.contains("required fields done");
    }
    assert!(opened, "{links:?}");
}

/// Serves a partner's page on another origin that embeds the widget.
async fn partners_page(html: String) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://localhost:{}", listener.local_addr().unwrap().port());
    let page = axum::response::Html(html);
    let router = axum::Router::new().fallback(move || async move { page });
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

async fn embed_token(app: &TestApp, id: &str, widget: &str) -> Value {
    let body = json!({
        "envelope_id": id, "user_email": "jordan.lee@example.com", "widget_type": widget,
    });
    app.post("/embed/token", body).await.data(200)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_origin_embeds_the_widget_and_receives_its_messages() {
    let app = TestApp::on_a_socket().await;
    let envelope = app.sent_envelope().await;
    let id = envelope["envelope_id"].as_str().unwrap();
    let token = embed_token(&app, id, "sign").await;
    let embed_url = token["embed_url"].as_str().unwrap();
    let host = embed_url.split_once("/sign#token=").unwrap().0;
    let partner = partners_page(format!(
        "<!doctype html><title>Dealer</title><h1>Your contract</h1>
         <script type=module src='{host}/embed.js'></script>
         <script>window.heard = [];
           for (const type of ['ready', 'completed', 'declined', 'error'])
             addEventListener(type, (event) => heard.push(type), true);
           const height = () => document.querySelector('iframe').offsetHeight;</script>
         <holdfast-sign src='{embed_url}'></holdfast-sign>"
    ))
    .await;

    let browser = TestBrowser::open(EmulatedScreen::Desktop).await;

    // The organization does not allow that origin, so the browser blocks the frame.
    browser.goto(&partner).await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    assert_eq!(browser.run("return window.heard.length").await, 0);

    app.set_organization(&[&format!("embed_origins=[\"{partner}\"]")]);
    browser.goto(&partner).await;
    browser.until("return window.heard.includes('ready')").await;

    // The signing form scrolls in the frame that it gets; the page after it is shown as a whole.
    assert_eq!(browser.run("return height()").await, 640);

    let frame = browser.see("iframe").await;
    frame.enter_frame().await.unwrap();
    browser
        .type_into("[name='Buyer signature']", "Jordan Lee")
        .await;
    browser.run("const date = document.querySelector(\"[name='Signed on']\"); date.value = '2026-11-21'; date.dispatchEvent(new Event('input', { bubbles: true }));").await;
    browser.click("#consent").await;

    browser.click("button[value=finish]").await;
    browser.read("Thank you").await;
    browser.page.enter_parent_frame().await.unwrap();
    browser
        .until("return window.heard.includes('completed')")
        .await;
    browser
        .until("return height() > 150 && height() < 500")
        .await;

    // Another page cannot set the height.
    browser
        .run("postMessage({ source: 'holdfast', type: 'resize', height: 5 })")
        .await;
    browser.picture("embedded").await;
    assert!(browser.run("return height()").await.as_i64() > Some(150));
    assert_eq!(
        browser.run("return window.heard.includes('error')").await,
        false
    );

    app.wait_for(id, "vaulted").await;

    let vault = embed_token(&app, id, "vault").await;
    let embed_url = vault["embed_url"].as_str().unwrap();
    browser.goto(embed_url).await;
    browser.read("Safe in the vault").await;
    browser.read("Jordan Lee signed").await;
    let words = browser.text().await;
    assert!(!words.contains("vault.stored"), "{words}");
    assert!(!words.contains("UCC"), "{words}");

    browser.picture("vault-widget").await;
    browser.click("summary").await;
    browser.read("8 of 8 checks of UCC §9-105").await;
    browser.is_accessible("the vault widget").await;
    let phone = TestBrowser::open(EmulatedScreen::Phone).await;
    phone.goto(embed_url).await;
    phone.read("Who signed").await;

    phone.picture("vault-widget-phone").await;
    phone.click("summary").await;
    let fits = "return document.documentElement.scrollWidth <= window.innerWidth";
    assert_eq!(phone.run(fits).await, true);

    let address = browser.page.current_url().await.unwrap();
    assert!(!address.as_str().contains("token"), "{address}");

    browser.goto("about:blank").await;
    browser.goto(&format!("{host}/vault#token=none")).await;
    browser.read("This page has expired").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_are_dragged_onto_pages_resized_given_roles_and_saved() {
    let app = TestApp::on_a_socket().await;
    let template = app.contract_template().await;
    let id = template["template_id"].as_str().unwrap();
    let request = json!({ "template_id": id });
    let session = app
        .post_with_bearer(&app.admin(), "/esign/builder-session", request)
        .await
        .data(201);
    assert_eq!(session["roles"], json!(["Buyer"]));

    let browser = TestBrowser::open(EmulatedScreen::Desktop).await;
    browser.goto(session["builder_url"].as_str().unwrap()).await;
    browser.see(".sheet img").await;
    browser
        .until("return document.querySelectorAll('.box').length === 2")
        .await;
    let address = browser.page.current_url().await.unwrap();
    assert!(!address.as_str().contains("token"), "{address}");

    // Add a field to the first page, then move and resize it with the mouse.
    browser.click("[data-kind=text]").await;
    let left = "return document.querySelector('.box[aria-pressed=true]').style.left";
    let before = browser.run(left).await;
    browser
        .draw(".box[aria-pressed=true]", &[(0.3, 0.5), (1.0, 2.5)])
        .await;
    assert_ne!(browser.run(left).await, before, "it was dragged");

    let width =
        "return document.querySelector('.box[aria-pressed=true]').getBoundingClientRect().width";
    let narrow = browser.run(width).await.as_f64().unwrap();
    browser
        .draw(".box[aria-pressed=true] .grip", &[(0.5, 0.5), (6.0, 1.0)])
        .await;
    assert!(
        browser.run(width).await.as_f64().unwrap() > narrow + 20.0,
        "it was resized"
    );

    // Name the field and move it again with the keyboard.
    browser.run("const name = document.getElementById('field-name'); name.value = 'Odometer'; name.dispatchEvent(new Event('change'));").await;
    let box_ = browser.see(".box[aria-pressed=true]").await;
    box_.send_keys("\u{e015}\u{e015}").await.unwrap();
    browser.picture("builder").await;
    browser.is_accessible("the builder").await;

    // Add a second role and a signature for it.
    browser.click("#new-role").await;
    browser.type_into("#role-name", "buyer\u{e007}").await;
    browser.read("This role exists already.").await;
    browser.see("#role-name").await.clear().await.unwrap();
    browser.type_into("#role-name", "Seller\u{e007}").await;
    browser.click("[data-kind=signature]").await;

    browser.run("const required = document.getElementById('field-required'); required.checked = true; required.dispatchEvent(new Event('change'));").await;
    browser.click("[data-kind=number]").await;
    browser.run("const value = document.getElementById('field-default'); value.value = '12'; value.dispatchEvent(new Event('change'));").await;
    browser.click("#save").await;
    browser.read("Saved").await;
    browser.picture("builder-saved").await;

    let mut body = envelope_body(&template["template_id"]);
    body["signers"] = buyer_and_seller();
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let page = form::open(&app, envelope["sign_url"].as_str().unwrap()).await;
    assert!(page.text().contains("name=\"Odometer\""), "{}", page.text());

    // A save that is based on an older revision is refused.
    let other = app.template_session(id).await;
    let stale = json!({ "revision": "0".repeat(64), "fields": [] });
    assert_eq!(
        app.builder(&other, "PUT", "/builder/template", Some(stale))
            .await
            .error(409),
        "The template was changed meanwhile; open it again"
    );

    let wrong = json!({ "revision": "", "fields": [{ "name": "x" }] });
    assert_eq!(
        app.builder(&other, "PUT", "/builder/template", Some(wrong))
            .await
            .status,
        422
    );
    assert_eq!(
        app.builder("nobody", "GET", "/builder/template", None)
            .await
            .status,
        401
    );
    assert_eq!(
        app.builder(&other, "GET", "/builder/pages/9.png", None)
            .await
            .status,
        404
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_builder_states_in_the_users_language_why_it_did_not_save() {
    let app = TestApp::on_a_socket().await;
    let template = app.contract_template().await;
    let id = template["template_id"].as_str().unwrap();
    let session = app.template_session(id).await;
    let browser = TestBrowser::open(EmulatedScreen::Desktop).await;
    browser.prefer("de").await;
    browser
        .goto(&format!("{}/builder#token={session}", app.url()))
        .await;

    browser.see(".box").await;
    browser.click("[data-kind=number]").await;
    let enter = "const formula = document.getElementById('field-formula');
        formula.value = FORMULA; formula.dispatchEvent(new Event('change'));";
    browser.run(&enter.replace("FORMULA", "'[Preis] *'")).await;
    browser.click("#save").await;
    browser
        .read("Nicht gespeichert: Einige Felder haben Fehler.")
        .await;

    browser.read("Diese Formel ist nicht lesbar.").await;

    browser.run(&enter.replace("FORMULA", "''")).await;
    let other = app.template_session(id).await;
    let shown = app.builder(&other, "GET", "/builder/template", None).await;
    let revision = shown.data(200)["revision"].clone();
    let changed = json!({ "revision": revision, "fields": [] });
    let changed = app.builder(&other, "PUT", "/builder/template", Some(changed));
    changed.await.data(200);

    browser.click("#save").await;
    browser
        .read("Nicht gespeichert: Die Vorlage wurde an anderer Stelle geändert.")
        .await;
}

/// The first page of a widget has the organization's colour. This frame permits no forms, so the
/// page stays.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_page_of_a_widget_has_the_organizations_colour() {
    let app = TestApp::on_a_socket().await;
    app.set_organization(&[r##"brand={"color":"#0b6b3a"}"##]);
    let envelope = app.sent_envelope().await;
    let (id, _) = id_and_url(&envelope);
    let sign = embed_token(&app, id, "sign").await;
    let template = app.contract_template().await;
    let builder = app
        .template_session(template["template_id"].as_str().unwrap())
        .await;

    let browser = TestBrowser::open(EmulatedScreen::Phone).await;
    for (path, token) in [
        ("/embed/sign", sign["token"].as_str().unwrap()),
        ("/builder", builder.as_str()),
    ] {
        let page = partners_page(format!(
            "<!doctype html><title>Dealer</title>
             <iframe sandbox='allow-scripts allow-same-origin' src='{}{path}#token={token}'></iframe>",
            app.url()
        ))
        .await;
        browser.goto(&page).await;

        browser.see("iframe").await.enter_frame().await.unwrap();
        let colour = "const style = getComputedStyle(document.documentElement);
            return document.querySelector('main[aria-busy]') !== null
                && style.getPropertyValue('--accent').trim() === '#0b6b3a'";
        browser.until(colour).await;
    }
}

/// A partner embeds the builder, for a document that brings its own form, on a phone.
#[tokio::test(flavor = "multi_thread")]
async fn a_partner_embeds_the_builder_on_a_phone() {
    let app = TestApp::on_a_socket().await;
    let partner =
        partners_page("<!doctype html><title>Dealer</title>Back at the dealer".into()).await;
    app.set_organization(&[
        &format!("embed_origins=[\"{partner}\"]"),
        &format!("return_origins=[\"{partner}\"]"),
        r##"brand={"name":"Oak & Pine","color":"#0b6b3a"}"##,
    ]);

    let request = json!({ "template_name": "Lease", "return_url": format!("{partner}/done") });
    let session = app
        .post_with_bearer(&app.admin(), "/esign/builder-session", request)
        .await
        .data(201);
    let url = session["builder_url"].as_str().unwrap();
    let host = url.split_once("/builder#").unwrap().0;
    let embedding = partners_page(format!(
        "<!doctype html><meta name=viewport content='width=device-width'><title>Dealer</title>
         <script type=module src='{host}/embed/embed.js'></script>
         <script>window.heard = [];
           for (const type of ['ready', 'saved', 'error'])
             addEventListener(type, (event) => heard.push(type), true);</script>
         <body style='margin:0'><holdfast-builder style='height:700px' src='{url}'></holdfast-builder>"
    ))
    .await;

    let browser = TestBrowser::open(EmulatedScreen::Phone).await;

    // Only the organization's own pages may frame the builder.
    browser.goto(&embedding).await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    assert_eq!(browser.run("return window.heard.length").await, 0);

    app.set_organization(&[&format!("embed_origins=[\"{embedding}\"]")]);
    browser.goto(&embedding).await;
    browser.until("return heard.includes('ready')").await;
    browser.see("iframe").await.enter_frame().await.unwrap();
    browser.read("Oak & Pine").await;

    // The fields of the document's own form are there at once.
    let file = tempfile::NamedTempFile::with_suffix(".pdf").unwrap();
    std::fs::write(file.path(), pdf::with_form()).unwrap();
    browser
        .see("#upload input")
        .await
        .send_keys(file.path().to_str().unwrap())
        .await
        .unwrap();

    browser
        .read("Fields taken from the document’s own form: 2")
        .await;

    // The picture of the page moves everything below it when it arrives.
    browser
        .until("const page = document.querySelector('.sheet img'); return page !== null && page.complete")
        .await;
    browser.picture("builder-phone").await;

    // A field is dropped onto another one by finger, and lies beside it.
    browser
        .drag_by_finger("[data-kind=date]", ".sheet", (0.3, 0.2))
        .await;
    browser
        .until("return document.querySelectorAll('.box').length === 3")
        .await;

    let apart = "
        const boxes = [...document.querySelectorAll('.box')].map((box) => box.getBoundingClientRect());
        return boxes.every((one, index) => boxes.every((other, place) => index === place
            || one.right <= other.left + 1 || other.right <= one.left + 1
            || one.bottom <= other.top + 1 || other.bottom <= one.top + 1));";
    assert_eq!(browser.run(apart).await, true);

    browser.picture("builder-phone-dropped").await;
    let place = "return document.querySelector('.box[aria-pressed=true]').style.top";
    let before = browser.run(place).await;
    browser
        .drag_by_finger(".box[aria-pressed=true]", ".sheet", (0.5, 0.4))
        .await;
    assert_ne!(browser.run(place).await, before, "it was moved by finger");
    assert_eq!(browser.run(apart).await, true);

    browser.click("#edit").await;
    browser.see("#field-name").await;
    browser.picture("builder-phone-edit").await;
    browser.is_accessible("the builder on a phone").await;
    browser.click("#leave").await;

    // The preview is the signing form, and stores nothing.
    browser.click("#show-preview").await;
    browser
        .see("#preview iframe")
        .await
        .enter_frame()
        .await
        .unwrap();

    browser.read("required fields done").await;
    browser.see(".sheet img[src^=blob]").await;
    browser.click(".guide .next").await;
    browser.picture("builder-phone-preview").await;
    browser
        .run("document.querySelector('button[value=finish]').click()")
        .await;

    browser.read("nothing is saved or signed").await;
    browser.page.enter_parent_frame().await.unwrap();
    browser.click("#no-preview").await;

    browser.click("#save").await;
    browser.read("Saved").await;
    let back = browser
        .see("#done")
        .await
        .attr("href")
        .await
        .unwrap()
        .unwrap();

    let id = session["template_id"].as_str().unwrap();
    assert_eq!(back, format!("{partner}/done?template_id={id}"));

    browser.page.enter_parent_frame().await.unwrap();
    browser.until("return heard.includes('saved')").await;
    assert_eq!(browser.run("return heard.includes('error')").await, false);
}

/// The identity check in front of a verified document: personal data, a code, questions, then
/// the document.
#[tokio::test(flavor = "multi_thread")]
async fn a_signer_passes_identity_verification_on_a_phone() {
    let method = FakeMethod::start().await;
    let app = TestApp::on_a_socket_over(|config| method.configure(config)).await;
    let document = pdf::with_lines(&["Agreement", "{{Sign;type=signature;role=Buyer}}"]);
    let texts = [("name", "Agreement"), ("kba_required", "true")];
    let template = app.library_template(&texts, &document).await.data(201);
    let body = envelope_body(&template["template_id"]);
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let (id, url) = id_and_url(&envelope);

    let browser = TestBrowser::open(EmulatedScreen::Phone).await;
    browser.goto(url).await;
    browser.read("Confirm who you are").await;
    browser.picture("kba-identity").await;
    browser.is_accessible("the gate").await;
    browser.click("form.identity button").await;
    browser.read("Your consent is needed to go on").await;

    browser.picture("kba-identity-problems").await;
    browser.is_accessible("the gate with problems").await;
    for (name, value) in [
        ("phone", "512 555 0142"),
        ("ssn_last4", "9973"),
        ("line1", "77 Quince Passage"),
        ("city", "Austin"),
        ("state", "TX"),
        ("zip", "78701"),
    ] {
        browser.type_into(&format!("#{name}"), value).await;
    }

    browser
        .run("document.querySelector('#date_of_birth').value = '1980-02-29'")
        .await;
    browser.click("[name=consent]").await;
    browser.click("form.identity button").await;
    browser.read("A code was sent to your phone").await;
    browser.picture("kba-code").await;

    browser.is_accessible("the code").await;
    browser.type_into("#code", CODE).await;
    browser.click("main form button").await;
    browser.read("number 4?").await;
    browser.picture("kba-questions").await;
    browser.is_accessible("the questions").await;
    for number in 1..=4 {
        browser.click(&format!("[value=ans_{number}_b]")).await;
    }

    browser.click("form.questions button").await;
    browser.see(".sheet img").await;
    app.wait_for(id, "viewed").await;
}

/// The sandboxes as a person trying out the product sees them: questions, the payment step, and
/// back to the document.
#[tokio::test(flavor = "multi_thread")]
async fn a_signer_passes_the_sandboxes_on_a_desktop() {
    let payment = PaymentSettings {
        amount_cents: 4900,
        currency: "USD".into(),
        connected_account: None,
        platform_fee_cents: None,
        payer: "first".into(),
    };
    let app = TestApp::on_a_socket_with(OrgSettings {
        payment: Some(payment),
        ..OrgSettings::default()
    })
    .await;

    let document = pdf::with_lines(&["Agreement", "{{Sign;type=signature;role=Buyer}}"]);
    let texts = [("name", "Agreement"), ("kba_required", "true")];
    let template = app.library_template(&texts, &document).await.data(201);
    let body = envelope_body(&template["template_id"]);
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let (id, url) = id_and_url(&envelope);
    let browser = TestBrowser::open(EmulatedScreen::Desktop).await;
    browser.goto(url).await;

    browser.read("Answer these questions").await;
    browser.picture("kba-sandbox").await;
    browser.is_accessible("the sandbox's questions").await;
    browser.click("[name=q1][value=wrong1]").await;
    browser.click("[name=q2][value=correct]").await;
    browser.click("[name=q3][value=correct]").await;
    browser.click("form.questions button").await;

    browser.read("Your answers were not correct").await;
    browser.picture("kba-failed").await;
    browser.is_accessible("the failure").await;
    browser.click("button[name=again]").await;

    for name in ["q1", "q2", "q3"] {
        browser
            .click(&format!("[name={name}][value=correct]"))
            .await;
    }

    browser.click("form.questions button").await;
    browser.see(".sheet img").await;
    browser.read("Amount due: USD 49.00").await;
    browser.picture("payment-due").await;
    browser.is_accessible("the form with a payment").await;
    browser.click(".payment .button").await;
    browser.read("This is a sandbox for development").await;

    browser.picture("payment-sandbox").await;
    browser.is_accessible("the sandbox's payment").await;
    browser.click("button[name=pay]").await;
    browser.read("Payment received").await;
    browser.picture("payment-received").await;
    app.wait_for_event(id, "payment.succeeded").await;
    browser.click("a.button").await;

    browser.see(".sheet img").await;
    assert!(!browser.text().await.contains("Amount due"));

    browser.type_into("[name=Sign]", "Jordan Lee").await;
    browser.click("#consent").await;
    browser.click("button[value=finish]").await;
    browser.read("Thank you").await;

    app.wait_for(id, "vaulted").await;
}

/// A fake Stripe.js with the functions that the payer's page uses. It declines the first card.
const LIBRARY: &str = "
let tried = false;
window.Stripe = (key) => ({
  elements: ({ clientSecret }) => ({
    create: (kind) => ({
      mount: (place) => {
        document.querySelector(place).textContent = `${kind} element with ${key} for ${clientSecret}`;
      },
    }),
  }),
  confirmPayment: async ({ confirmParams }) => {
    if (!tried) {
      tried = true;
      return { error: { message: 'Your card was declined.' } };
    }
    location.href = confirmParams.return_url;
    return {};
  },
});";

/// A processor's own form is shown on our page, and the payer returns to the document.
#[tokio::test(flavor = "multi_thread")]
async fn a_payer_uses_the_processors_own_form() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let library = format!("http://{}/v3/", listener.local_addr().unwrap());
    let javascript = [("content-type", "text/javascript")];
    let serve = axum::routing::get(move || async move { (javascript, LIBRARY) });
    let router = axum::Router::new().route("/v3/", serve);
    tokio::spawn(async move { axum::serve(listener, router).await });
    let processor = PaymentProcessor::start();
    let app = TestApp::on_a_socket_over(|config| {
        processor.configure(config);
        let instance = config.providers.payment.instances.get_mut("main").unwrap();
        instance.settings.insert("script".into(), library);
    })
    .await;
    let mut body = envelope_body(&app.contract_template().await["template_id"]);
    body["payment"] = json!({ "amount_cents": 4900, "currency": "USD" });

    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let (_, url) = id_and_url(&envelope);
    let browser = TestBrowser::open(EmulatedScreen::Desktop).await;
    browser.goto(url).await;
    browser.click(".payment .button").await;
    browser
        .read("payment element with pk_test_holdfast for pi_")
        .await;

    browser.picture("payment-processor").await;
    browser.is_accessible("the payer's page").await;
    browser.click("#payment button").await;
    browser.read("Your card was declined.").await;
    browser.click("#payment button").await;
    browser.see(".sheet img").await;
    assert_eq!(browser.url().await, url);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_compares_a_copy_with_the_record_in_the_browser() {
    let app = TestApp::on_a_socket().await;
    let envelope = app.sent_envelope().await;
    let (id, url) = id_and_url(&envelope);
    form::sign(&app, url).await;
    app.wait_for(id, "vaulted").await;
    let path = format!("/partner/envelopes/{id}/completion-certificate");
    let certificate = app.get(&path).await;
    let text = pdf::text(&certificate.bytes);
    let address = text
        .split_whitespace()
        .find(|word| word.contains("/verify/"));
    let address = address.unwrap();

    let copy = app.copy(id).await;

    let browser = TestBrowser::open(EmulatedScreen::Phone).await;
    let address = &address[address.find("/verify/").unwrap()..];
    browser.goto(&format!("{}{address}", app.url())).await;
    browser.read("Completed by all parties").await;
    browser.is_accessible("the verification page").await;

    let folder = tempfile::tempdir().unwrap();
    for (name, bytes, verdict) in [
        (
            "copy.pdf",
            copy.clone(),
            "Yes: your file is the copy for the parties",
        ),
        (
            "other.pdf",
            [&copy[..], b" "].concat(),
            "No: your file is another one",
        ),
    ] {
        let file = folder.path().join(name);
        std::fs::write(&file, bytes).unwrap();
        let input = browser.see("#file").await;
        input.send_keys(file.to_str().unwrap()).await.unwrap();
        browser.read(verdict).await;
        browser.picture(&format!("verification-{name}")).await;
    }
}
