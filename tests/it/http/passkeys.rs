//! Passkeys in the console: sign-in, confirmation of sensitive actions, and acts of control that a person's device signs.

use std::time::Duration;

use axum::http::Method;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use holdfast::domain::organization::OrgSettings;
use holdfast::domain::statement::challenge as challenge_of;
use serde_json::{Value, json};

use super::console::{Session, asked, cookie_of, invited, invited_to, path_of};
use crate::support::browser::{EmulatedScreen, TestBrowser};
use crate::support::passkey::SoftPasskey;
use crate::support::{TestApp, TestResponse, operator, release_form};

const ORIGIN: &str = "https://sign.oak.example";

async fn service() -> TestApp {
    let url = ORIGIN.parse().unwrap();
    TestApp::with(
        |config| config.public_url = Some(url),
        OrgSettings::default(),
    )
    .await
}

/// Returns the service some time later.
async fn later(app: &TestApp, seconds: u64) -> TestApp {
    let url = ORIGIN.parse().unwrap();
    let ahead = Duration::from_secs(seconds);
    app.as_of_with(ahead, |config| config.public_url = Some(url))
        .await
}

/// Returns the value of an attribute in a page.
#[track_caller]
fn attribute(page: &str, name: &str) -> String {
    let found = page.split_once(&format!("{name}=\""));
    let (_, rest) = found.unwrap_or_else(|| panic!("no {name}: {page}"));
    let value = rest.split('"').next().unwrap();
    value.replace("&quot;", "\"").replace("&amp;", "&")
}

/// Writes a form as a browser sends it.
pub(crate) fn encoded(fields: &[(&str, &str)]) -> String {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    form.extend_pairs(fields).finish()
}

/// Returns the fields that a page sends again, without the token of the session.
fn hidden_fields(page: &str) -> Vec<(String, String)> {
    let form = page.split_once("data-passkey").expect("a form").1;
    let form = form.split("</form>").next().unwrap();
    let inputs = form.split("<input type=\"hidden\"").skip(1);
    let fields = inputs.filter(|input| input.contains("value=\""));
    let fields = fields.map(|input| (attribute(input, "name"), attribute(input, "value")));
    fields.filter(|(name, _)| name != "token").collect()
}

impl Session {
    /// Adds a passkey.
    pub(super) async fn add(&self, app: &TestApp, passkey: &SoftPasskey) -> TestResponse {
        let page = self.get(app, "/console/sessions").await.text();
        let answer = passkey.create(&attribute(&page, "data-challenge"));
        let form = encoded(&[("label", "Phone"), ("passkey", &answer.to_string())]);
        self.post(app, "/console/passkeys", &form).await
    }

    /// Sends the form of a page that asks the device, with its answer.
    async fn answer(
        &self,
        app: &TestApp,
        asks: &TestResponse,
        path: &str,
        passkey: &mut SoftPasskey,
    ) -> TestResponse {
        let page = asks.text();
        let answer = passkey.get(&attribute(&page, "data-challenge"));
        let fields = hidden_fields(&page);
        let pairs = fields
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let mut pairs: Vec<(&str, &str)> = pairs.collect();

        let answer = answer.to_string();
        pairs.push(("passkey", &answer));
        self.post(app, path, &encoded(&pairs)).await
    }
}

pub(super) async fn sign_in(app: &TestApp, answer: &Value) -> TestResponse {
    let form = encoded(&[
        ("passkey", &answer.to_string()),
        ("next", "/console/sessions"),
    ]);
    asked(app, Method::POST, "/console/sign-in/passkey", "", &form).await
}

/// Returns a challenge of the sign-in page.
pub(super) async fn challenge(app: &TestApp) -> String {
    let page = asked(app, Method::GET, "/console/sign-in", "", "").await;
    attribute(&page.text(), "data-challenge")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_signs_in_with_a_passkey() {
    let app = service().await;
    let ada = Session::of(&app, "ada@oak.example", "owner").await;
    let mut passkey = SoftPasskey::new(ORIGIN);
    let added = ada.add(&app, &passkey).await;
    assert_eq!(added.status, 303, "{}", added.text());
    assert!(
        ada.get(&app, "/console/sessions")
            .await
            .text()
            .contains("Phone")
    );

    let again = ada.add(&app, &passkey).await;
    assert_eq!(again.status, 409, "{}", again.text());

    let answer = passkey.get(&challenge(&app).await);
    let entered = sign_in(&app, &answer).await;
    assert_eq!(entered.status, 303, "{}", entered.text());
    assert_eq!(entered.headers["location"], "/console/sessions");

    let cookie = cookie_of(&entered);
    let page = asked(&app, Method::GET, "/console/sessions", &cookie, "").await;
    assert!(page.text().contains("ada@oak.example"), "{}", page.text());

    // An answer counts once.
    assert_eq!(sign_in(&app, &answer).await.status, 403);

    let log = app.get_with_bearer(app.web_admin(), "/audit-log").await;
    let log = log.data(200);
    let acts: Vec<&str> = log
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["action"].as_str().unwrap())
        .collect();
    assert!(acts.contains(&"passkey.added"), "{acts:?}");

    // A user without access does not get in with it.
    let user = ada.user()["user_id"].as_str().unwrap().to_owned();
    invited(&app, "olaf@oak.example", "owner");
    operator(
        app.data.path(),
        &["user", "end", &user, "--org", app.org.as_str()],
    );

    let refused = sign_in(&app, &passkey.get(&challenge(&app).await)).await;
    assert_eq!(refused.status, 403);
}

/// Answers that do not fit are refused, and begin no session.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_answer_of_a_passkey_signs_nobody_in() {
    let app = service().await;
    let ada = Session::of(&app, "ada@oak.example", "owner").await;
    let mut passkey = SoftPasskey::new(ORIGIN);
    ada.add(&app, &passkey).await;
    let fresh = challenge(&app).await;
    let page = ada.get(&app, "/console/sessions").await.text();
    let for_adding = attribute(&page, "data-challenge");

    let mut unknown = SoftPasskey::new(ORIGIN);
    let mut wrong: Vec<(&str, Value)> = vec![
        ("an unknown passkey", unknown.get(&fresh)),
        ("the challenge of another purpose", passkey.get(&for_adding)),
        ("a challenge of nobody", passkey.get("AAAA")),
        ("no challenge", passkey.get("")),
        ("text", json!("passkey")),
    ];

    passkey.origin = "https://evil.example".into();
    wrong.push(("another page", passkey.get(&fresh)));
    passkey.origin = format!("{ORIGIN}:8443");
    wrong.push(("another port", passkey.get(&fresh)));
    passkey.origin = ORIGIN.into();
    let mut forged = passkey.get(&fresh);
    forged["signature"] = unknown.get(&fresh)["signature"].clone();

    wrong.push(("the signature of another key", forged));
    let mut changed = passkey.get(&fresh);
    changed["client_data"] = passkey.get("AAAA")["client_data"].clone();
    wrong.push(("another content", changed));

    for (what, answer) in &wrong {
        let refused = sign_in(&app, answer).await;
        assert_eq!(refused.status, 403, "{what}: {}", refused.text());
        assert!(refused.headers.get("set-cookie").is_none(), "{what}");
    }

    let foreign = axum::http::Request::post("/console/sign-in/passkey")
        .header("accept", "text/html")
        .header("sec-fetch-site", "cross-site")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(axum::body::Body::from(encoded(&[(
            "passkey",
            &passkey.get(&fresh).to_string(),
        )])));
    assert_eq!(app.send(foreign.unwrap()).await.status, 403);

    let good = passkey.get(&fresh);
    assert_eq!(sign_in(&app, &good).await.status, 303);

    // A copy of the passkey counts fewer uses than the original.
    passkey.count = 1;
    let copied = passkey.get(&challenge(&app).await);
    assert_eq!(sign_in(&app, &copied).await.status, 403);

    passkey.count = 100;
    let late = challenge(&app).await;
    let later = later(&app, 301).await;
    assert_eq!(sign_in(&later, &passkey.get(&late)).await.status, 403);
}

/// A passkey that does not describe itself is not added.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_passkey_is_not_added() {
    let app = service().await;
    let ada = Session::of(&app, "ada@oak.example", "owner").await;
    let eva = Session::of(&app, "eva@oak.example", "admin").await;
    let passkey = SoftPasskey::new(ORIGIN);
    let page = ada.get(&app, "/console/sessions").await.text();
    let good = passkey.create(&attribute(&page, "data-challenge"));
    let changed = |member: &str, value: &str| {
        let mut one = good.clone();
        one[member] = json!(value);
        one
    };

    let of_eva = eva.get(&app, "/console/sessions").await.text();
    let wrong = [
        passkey.create(&attribute(&of_eva, "data-challenge")),
        SoftPasskey::new("https://evil.example").create(&attribute(&page, "data-challenge")),
        changed("public_key", "AAAA"),
        changed("credential_id", "AAAAAAAAAAAAAAAAAAAAAA"),
        changed("authenticator_data", "AAAA"),
        changed("client_data", "*"),
        json!({}),
    ];
    for answer in &wrong {
        let form = encoded(&[("passkey", &answer.to_string())]);
        let refused = ada.post(&app, "/console/passkeys", &form).await;
        assert_eq!(refused.status, 403, "{answer}");
    }

    let none = ada.get(&app, "/console/sessions").await.text();
    assert!(!none.contains("/remove"), "{none}");

    let form = encoded(&[("passkey", &good.to_string())]);
    assert_eq!(ada.post(&app, "/console/passkeys", &form).await.status, 303);
}

/// A stolen cookie is not enough for actions that need a confirmation.
#[tokio::test(flavor = "multi_thread")]
async fn a_stolen_cookie_does_nothing_sensitive() {
    let app = service().await;
    let id = app.vaulted_envelope().await;
    let ada = Session::of(&app, "ada@oak.example", "owner").await;
    let mut passkey = SoftPasskey::new(ORIGIN);
    ada.add(&app, &passkey).await;
    let page = ada.get(&app, "/console/sessions").await.text();
    let (_, remove) = page.split_once("/console/passkeys/").unwrap();
    let remove = format!("/console/passkeys/{}", remove.split('"').next().unwrap());

    let later = later(&app, 601).await;
    let (lender, _) = later.party().await;
    let designate = format!("/console/control/designate/{id}");

    let controller = format!("controller={lender}&next=/console/control/records/{id}");
    for (path, form) in [
        (remove.as_str(), ""),
        (designate.as_str(), controller.as_str()),
        ("/console/confirm", "next=/console/sessions"),
        ("/console/keys", "scope-vault:release=yes"),
        ("/console/users", "email=thief%40evil.example&role=owner"),
        (
            "/console/users/usr_01h455vb4pex5vsknk084sn02q/role",
            "role=owner",
        ),
        ("/console/users/usr_01h455vb4pex5vsknk084sn02q/invite", ""),
        ("/console/users/usr_01h455vb4pex5vsknk084sn02q/end", ""),
    ] {
        let asks = ada.post(&later, path, form).await;
        assert_eq!(asks.status, 200, "{path}: {}", asks.text());
        assert!(asks.text().contains("Is it you?"), "{path}");

        // Neither a wrong answer nor one of another passkey helps.
        let mut other = SoftPasskey::new(ORIGIN);
        let refused = ada.answer(&later, &asks, path, &mut other).await;
        assert_eq!(refused.status, 403, "{path}");
    }

    // A new passkey does not confirm either.
    let form = encoded(&[(
        "passkey",
        &SoftPasskey::new(ORIGIN).create("AAAA").to_string(),
    )]);
    let asks = ada.post(&later, "/console/passkeys", &form).await;
    assert_eq!(asks.headers["location"], "/console/sessions");

    let page = ada.get(&later, "/console/sessions").await.text();
    assert!(page.contains(&remove), "the passkey is still there");
    assert!(!page.contains("data-challenge"), "{page}");

    let control = later
        .get(&format!("/partner/control/records/{id}"))
        .await
        .data(200);
    assert_eq!(control["stage"], "originated");

    // The owner's device confirms, and the form is sent with the same content.
    let asks = ada.post(&later, &designate, &controller).await;
    let done = ada.answer(&later, &asks, &designate, &mut passkey).await;
    assert_eq!(done.status, 303, "{}", done.text());
    assert_eq!(
        done.headers["location"],
        format!("/console/control/records/{id}")
    );

    let control = later
        .get(&format!("/partner/control/records/{id}"))
        .await
        .data(200);
    assert_eq!(control["designee"]["organization_id"], json!(lender));

    // It counts for a while.
    let asks = ada.post(&later, &remove, "").await;
    let is_asked = asks.text().contains("name=\"sure\"");
    assert!(asks.status == 200 && is_asked, "{}", asks.text());
    let page = ada.get(&later, "/console/sessions").await.text();
    assert!(page.contains(&remove), "the passkey is still there");

    assert_eq!(ada.post(&later, &remove, "sure=yes").await.status, 303);
}

/// Without a passkey, a mailed link begins a session that is confirmed, and leads back.
#[tokio::test(flavor = "multi_thread")]
async fn a_mailed_link_confirms_too() {
    let app = service().await;
    let ada = Session::of(&app, "ada@oak.example", "owner").await;
    let later = later(&app, 601).await;
    let asks = ada
        .post(&later, "/console/confirm", "next=/console/control")
        .await;
    assert!(
        asks.text().contains("Send me a link instead"),
        "{}",
        asks.text()
    );

    let form = "email=ada%40oak.example&next=/console/control/keys";
    asked(&later, Method::POST, "/console/sign-in", "", form).await;
    let mails = later.wait_for_mails(1).await;
    let mail = mails
        .last()
        .unwrap()
        .replace("=\r\n", "")
        .replace("=\n", "")
        .replace("=3D", "=");
    let at = mail.find("/console/enter/").unwrap();

    let is_of_link = |one: &char| one.is_ascii_alphanumeric() || "/_-".contains(*one);
    let path: String = mail[at..].chars().take_while(is_of_link).collect();
    let entered = asked(&later, Method::POST, &path, "", "").await;
    assert_eq!(entered.headers["location"], "/console/control/keys");
}

/// A sign-in leads to pages of the console only.
#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_leads_nowhere_else() {
    let app = service().await;
    let ada = Session::of(&app, "ada@oak.example", "owner").await;
    for elsewhere in [
        "https://evil.example",
        "//evil.example",
        "/consolex",
        "/console\\evil",
        "/api/v2/users",
        "/console/\u{e9}",
        "javascript:alert(1)",
        "/console/../api/v2/users",
        "/console/%2e%2E/evil",
    ] {
        let form = encoded(&[("next", elsewhere)]);
        let led = ada.post(&app, "/console/confirm", &form).await;
        assert_eq!(led.headers["location"], "/console", "{elsewhere}");

        let path = format!("/console/sign-in?{form}");
        let page = asked(&app, Method::GET, &path, "", "").await.text();
        assert!(
            !page.contains("evil") && !page.contains("alert(1)"),
            "{page}"
        );
    }

    let deep = asked(
        &app,
        Method::GET,
        "/console/envelopes?status=declined",
        "",
        "",
    )
    .await;
    let location = deep.headers["location"].to_str().unwrap().to_owned();
    assert_eq!(
        location,
        "/console/sign-in?next=%2Fconsole%2Fenvelopes%3Fstatus%3Ddeclined"
    );

    let page = asked(&app, Method::GET, &location, "", "").await.text();
    assert!(
        page.contains("value=\"/console/envelopes?status=declined\""),
        "{page}"
    );
}

/// A lender's officer takes control, registers the own passkey as key of the organization, and agrees to a release with
/// a statement that the device signed. The evidence is verified.
#[tokio::test(flavor = "multi_thread")]
async fn a_passkey_signs_acts_of_control() {
    let app = service().await;
    let id = app.vaulted_envelope().await;
    let (lender, key) = app.party().await;
    let record = format!("/partner/control/records/{id}");
    app.post(
        &format!("{record}/designate"),
        json!({ "controller": lender }),
    )
    .await
    .data(200);

    let lea = Session::at(&app, &lender, "lea@bank.example", "controller").await;
    let mut passkey = SoftPasskey::new(ORIGIN);
    lea.add(&app, &passkey).await;

    // The passkey signs for its own registration.
    let page = lea.get(&app, "/console/control/keys").await.text();
    let (_, rest) = page
        .split_once("/console/control/register-key/")
        .expect("the passkey");
    let register = format!(
        "/console/control/register-key/{}",
        rest.split('"').next().unwrap()
    );
    let asks = lea
        .post(&app, &register, "next=/console/control/keys")
        .await;
    assert!(
        asks.text().contains("control.key.registered"),
        "{}",
        asks.text()
    );

    let done = lea.answer(&app, &asks, &register, &mut passkey).await;
    assert_eq!(done.status, 303, "{}", done.text());

    let keys = app.get_as(&key, "/partner/control/keys").await.data(200);
    assert_eq!(keys[0]["public_key"]["crv"], "P-256");

    // It cannot be removed while it signs.
    let page = lea.get(&app, "/console/sessions").await.text();
    let (_, remove) = page.split_once("/console/passkeys/").unwrap();
    let remove = format!("/console/passkeys/{}", remove.split('"').next().unwrap());
    let refused = lea.post(&app, &remove, "sure=yes").await;
    assert_eq!(refused.status, 409, "{}", refused.text());

    // From now on each act needs its signature, also by an API key.
    let path = format!("{record}/accept");
    let refused = app.post_as(&key, &path, json!({})).await;
    assert_eq!(refused.json()["code"], "control_signature_required");

    let accept = format!("/console/control/accept/{id}");
    let asks = lea.post(&app, &accept, "sure=yes").await;
    assert!(asks.text().contains("control.accepted"), "{}", asks.text());

    let mut stranger = SoftPasskey::new(ORIGIN);
    let refused = lea.answer(&app, &asks, &accept, &mut stranger).await;
    assert_eq!(refused.status, 422, "{}", refused.text());

    let done = lea.answer(&app, &asks, &accept, &mut passkey).await;
    assert_eq!(done.status, 303, "{}", done.text());

    let out = format!("/partner/envelopes/{id}/vault-out");
    let asked = app.post(&out, release_form()).await;
    let release = asked.json()["details"]["release_id"]
        .as_str()
        .unwrap()
        .to_owned();

    // Users who may answer get a mail with a link to the page.
    let link = format!("{ORIGIN}/console/control/records/{id}");
    let is_told = |mail: &String| {
        let mail = mail.replace("=\r\n", "").replace("=\n", "");
        mail.contains("lea@bank.example") && mail.contains(&link)
    };
    app.wait_for_mail(is_told).await;

    let page = lea
        .get(&app, &format!("/console/control/records/{id}"))
        .await
        .text();
    assert!(
        page.contains(&format!("/console/control/consent/{release}")),
        "{page}"
    );

    let consent = format!("/console/control/consent/{release}");
    let sure = "sure=yes&typed=Retail+instalment+contract";
    let asks = lea.post(&app, &consent, sure).await;

    // Another statement is not the one that the device signed.
    let mut fields = hidden_fields(&asks.text());
    let answer = passkey
        .get(&attribute(&asks.text(), "data-challenge"))
        .to_string();

    for (name, value) in &mut fields {
        if name == "statement" {
            *value = value.replace("\"nonce\":\"", "\"nonce\":\"0");
        }
    }

    fields.push(("passkey".into(), answer));
    let pairs: Vec<(&str, &str)> = fields
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let refused = lea.post(&app, &consent, &encoded(&pairs)).await;
    assert_eq!(refused.status, 422, "{}", refused.text());

    let done = lea.answer(&app, &asks, &consent, &mut passkey).await;
    assert_eq!(done.status, 303, "{}", done.text());

    let entry = app.entry(&id, "control.release.consented").await;
    let signed = &entry["signed"];
    assert!(signed["passkey"]["client_data"].is_string(), "{signed:#}");

    app.wait_for(&id, "vaulted_out").await;

    let verified = operator(app.data.path(), &["verify", &id]);
    assert_eq!(verified["valid"], true, "{verified:#}");

    let control = verified["checks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|check| check["check"] == "control");
    let thumbprint = keys[0]["thumbprint"].as_str().unwrap();
    assert!(
        control.unwrap().to_string().contains(thumbprint),
        "{verified:#}"
    );
}

/// The passkey of a user without access signs nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_passkey_of_a_former_user_signs_nothing() {
    let app = service().await;
    let id = app.vaulted_envelope().await;
    let ada = Session::of(&app, "ada@oak.example", "controller").await;
    let olaf = Session::of(&app, "olaf@oak.example", "owner").await;
    let mut passkey = SoftPasskey::new(ORIGIN);
    ada.add(&app, &passkey).await;
    let page = ada.get(&app, "/console/control/keys").await.text();
    let (_, rest) = page.split_once("/console/control/register-key/").unwrap();
    let register = format!(
        "/console/control/register-key/{}",
        rest.split('"').next().unwrap()
    );
    let asks = ada.post(&app, &register, "").await;
    ada.answer(&app, &asks, &register, &mut passkey).await;

    let (lender, _) = app.party().await;
    let designate = format!("/console/control/designate/{id}");
    let form = format!("controller={lender}");

    // Olaf has no passkey that is a key.
    let none = olaf.post(&app, &designate, &form).await;
    assert!(
        none.text().contains("None of your passkeys"),
        "{}",
        none.text()
    );

    // A statement that Ada signed is of no use after she has lost access.
    let asks = ada.post(&app, &designate, &form).await;
    let statement: Value = serde_json::from_str(&attribute(
        asks.text().split_once("name=\"statement\"").unwrap().1,
        "value",
    ))
    .unwrap();

    let signed = passkey.get(&attribute(&asks.text(), "data-challenge"));
    let user = ada.user()["user_id"].as_str().unwrap();
    operator(
        app.data.path(),
        &["user", "end", user, "--org", app.org.as_str()],
    );
    let body =
        json!({ "controller": lender, "signed": { "statement": statement, "passkey": signed } });

    let path = format!("/partner/control/records/{id}/designate");
    let refused = app.post(&path, body.clone()).await;
    assert_eq!(
        refused.json()["code"],
        "signing_key_revoked",
        "{}",
        refused.text()
    );

    let mut both = body;
    both["signed"]["signature"] = json!("e30..e30");
    let refused = app.post(&path, both).await;
    assert_eq!(
        refused.json()["code"],
        "invalid_signature",
        "{}",
        refused.text()
    );
}

/// In Chromium, with its own authenticator: a passkey is added, signs in, and signs an act of control.
#[tokio::test(flavor = "multi_thread")]
async fn a_browser_signs_in_and_signs_acts_with_a_passkey() {
    let app = TestApp::on_a_socket_over(|config| {
        let url = format!("http://localhost:{}", config.listen.port());
        config.public_url = Some(url.parse().unwrap());
    })
    .await;
    let site = app.url().replace("127.0.0.1", "localhost");
    let id = app.vaulted_envelope().await;

    let (lender, _) = app.party().await;
    let path = format!("/partner/control/records/{id}/designate");
    app.post(&path, json!({ "controller": lender }))
        .await
        .data(200);
    let user = invited_to(&app, &lender, "lea@bank.example", "controller");

    let browser = TestBrowser::open(EmulatedScreen::Phone).await;
    browser.authenticator().await;
    browser.goto(&format!("{site}{}", path_of(&user))).await;
    browser.click("main button").await;
    browser.click("nav a[href='/console/sessions']").await;
    browser.type_into("#label", "My phone").await;
    browser.click("form[data-passkey] button").await;

    browser.read("My phone").await;
    browser.picture("console-passkeys-phone").await;
    browser.is_accessible("passkeys").await;
    browser.click("form.leave button").await;
    browser.see("form[data-passkey] button").await;
    browser.picture("console-sign-in-passkey-phone").await;
    browser.is_accessible("sign-in with a passkey").await;

    browser.click("form[data-passkey] button").await;
    browser.click("nav a[href='/console/control']").await;

    browser.goto(&format!("{site}/console/control/keys")).await;
    browser.is_accessible("keys").await;
    browser.click("form[action*='register-key'] button").await;
    browser.read("control.key.registered").await;
    browser.click("form[data-passkey] button").await;
    browser.see("form[action*='revoke-key'] button").await;
    browser.picture("console-control-keys-phone").await;

    browser
        .goto(&format!("{site}/console/control?part=named"))
        .await;
    browser.is_accessible("records").await;
    browser.picture("console-control-phone").await;
    browser.click("ul.rows a").await;
    browser.is_accessible("a record").await;

    browser.picture("console-control-record-phone").await;
    browser.click("form[action*='/accept/'] button").await;
    browser.click("button.sure").await;
    browser.read("control.accepted").await;
    browser
        .read("Read the statement; your device signs exactly this text.")
        .await;
    browser.picture("console-sign-statement-phone").await;

    browser.is_accessible("a statement to sign").await;
    browser.click("form[data-passkey] button").await;
    browser.read("controlled").await;
    let verified = operator(app.data.path(), &["verify", &id]);
    assert_eq!(verified["valid"], true, "{verified:#}");
}

/// A second person signs for the organization after the first one agreed.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_person_signs_after_the_first_agrees() {
    let app = service().await;
    let id = app.vaulted_envelope().await;
    let ada = Session::of(&app, "ada@oak.example", "controller").await;
    let olaf = Session::of(&app, "olaf@oak.example", "owner").await;
    let (mut adas, mut olafs) = (SoftPasskey::new(ORIGIN), SoftPasskey::new(ORIGIN));
    ada.add(&app, &adas).await;
    olaf.add(&app, &olafs).await;

    let registered = async |person: &Session, passkey: &mut SoftPasskey| {
        let page = person.get(&app, "/console/control/keys").await.text();
        let (_, rest) = page.split_once("/console/control/register-key/").unwrap();
        let path = format!(
            "/console/control/register-key/{}",
            rest.split('"').next().unwrap()
        );
        let asks = person.post(&app, &path, "next=/console/control/keys").await;
        person.answer(&app, &asks, &path, passkey).await
    };
    assert_eq!(registered(&ada, &mut adas).await.status, 303);

    let waits = registered(&olaf, &mut olafs).await;
    assert!(waits.text().contains("within 24 hours"), "{}", waits.text());

    let keys = app.get("/partner/control/keys").await.data(200);
    assert_eq!(keys.as_array().unwrap().len(), 1);

    // Olaf cannot agree to his own request; Ada does, with a signature.
    let page = ada.get(&app, "/console/control/keys").await.text();
    let (_, rest) = page
        .split_once("/console/control/approve-key/")
        .expect("the request");
    let approve = format!(
        "/console/control/approve-key/{}",
        rest.split('"').next().unwrap()
    );
    let own = olaf.post(&app, &approve, "").await;
    assert!(
        own.text().contains("None of your passkeys"),
        "{}",
        own.text()
    );

    let asks = ada.post(&app, &approve, "").await;
    let done = ada.answer(&app, &asks, &approve, &mut adas).await;
    assert_eq!(done.status, 303, "{}", done.text());

    let keys = app.get("/partner/control/keys").await.data(200);
    assert_eq!(keys.as_array().unwrap().len(), 2);

    let page = ada.get(&app, "/console/control/keys").await.text();
    assert!(!page.contains("approve-key"), "{page}");

    let again = ada.post(&app, &approve, "").await;
    assert_eq!(again.status, 404);

    // Olaf signs an act now.
    let (lender, _) = app.party().await;
    let designate = format!("/console/control/designate/{id}");
    let asks = olaf
        .post(&app, &designate, &format!("controller={lender}"))
        .await;
    let done = olaf.answer(&app, &asks, &designate, &mut olafs).await;
    assert_eq!(done.status, 303, "{}", done.text());
}

/// A key of another kind cannot stand in the ledger under the name of a person's passkey, and a person with another
/// role signs nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_statement_names_the_passkey_that_signed_it() {
    let app = service().await;
    let ada = Session::of(&app, "ada@oak.example", "controller").await;
    let mut adas = SoftPasskey::new(ORIGIN);
    ada.add(&app, &adas).await;
    let mut forger = adas.with_the_name_of();
    let body = json!({ "public_key": forger.public_key() });
    let asks = app.post("/partner/control/keys", body.clone()).await;
    let statement = asks.json()["details"]["statement"].clone();
    let signed = |passkey: &mut SoftPasskey, statement: &Value| {
        let challenge = URL_SAFE_NO_PAD.encode(challenge_of(statement));
        json!({ "statement": statement, "passkey": passkey.get(&challenge) })
    };

    let mut forged = body;
    forged["proof"] = signed(&mut forger, &statement);
    let refused = app.post("/partner/control/keys", forged).await;
    assert_eq!(
        refused.json()["code"],
        "signing_key_revoked",
        "{}",
        refused.text()
    );

    let body = json!({ "public_key": adas.public_key() });
    let asks = app.post("/partner/control/keys", body.clone()).await;
    let mut good = body;
    good["proof"] = signed(&mut adas, &asks.json()["details"]["statement"]);

    // As an auditor, she does not act for the organization.
    let user = ada.user()["user_id"].as_str().unwrap();
    let role = |role: &'static str| ["user", "role", user, role, "--org", app.org.as_str()];
    operator(app.data.path(), &role("auditor"));
    let refused = app.post("/partner/control/keys", good.clone()).await;
    assert_eq!(refused.json()["code"], "signing_key_revoked");

    operator(app.data.path(), &role("controller"));
    app.post("/partner/control/keys", good).await.data(201);
}
