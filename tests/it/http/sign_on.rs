//! Sign-in in the console at an organization's own issuer (OpenID Connect).

use std::time::Duration;

use axum::http::Method;
use holdfast::config::Config;
use holdfast::domain::organization::OrgSettings;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use super::console::{Session, asked, cookie_of, invited, path_of};
use crate::support::browser::{EmulatedScreen, TestBrowser};
use crate::support::issuer::{
    CLIENT, CLIENT_SECRET, ConformingIssuer, FakeIssuer, IssuerKey, TWO_FACTORS,
};
use crate::support::passkey::SoftPasskey;
use crate::support::{TestApp, TestResponse};

/// Fault in the claims of an ID token.
type ClaimChange = fn(&mut Value);

fn insecure(config: &mut Config) {
    config.providers.allow_insecure = true;
}

async fn set(app: &TestApp, role: &str, settings: Value) -> TestResponse {
    let person = app.person("olga@oak.example", role);
    let body = json!({ "single_sign_on": settings });
    app.as_bearer(Method::PATCH, &person, "/organization", body)
        .await
}

/// A sign-in that was begun in a browser.
struct BegunSignIn {
    cookie: String,
    state: String,
    nonce: String,
}

/// Returns a parameter of a URL.
fn parameter(url: &str, wanted: &str) -> String {
    let url = url::Url::parse(url).unwrap();
    let mut pairs = url.query_pairs();
    let found = pairs.find(|(name, _)| name == wanted);
    found.expect(wanted).1.into_owned()
}

async fn begin(app: &TestApp) -> BegunSignIn {
    let path = format!("/console/sso/{}?next=/console/sessions", app.org);
    let begun = asked(app, Method::POST, &path, "", "").await;
    assert_eq!(begun.status, 200, "{}", begun.text());

    let cookie = begun.headers["set-cookie"].to_str().unwrap();
    for attribute in ["Secure", "HttpOnly", "SameSite=Lax", "Path=/"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }

    let to = leads_to(&begun);
    BegunSignIn {
        cookie: cookie_of(&begun),
        state: parameter(to, "state"),
        nonce: parameter(to, "nonce"),
    }
}

/// Returns the address that a page leads to by itself.
fn leads_to(page: &TestResponse) -> &str {
    let refresh = page.headers["refresh"].to_str().unwrap();
    refresh.strip_prefix("0; url=").unwrap()
}

async fn finish(app: &TestApp, cookie: &str, query: &str) -> TestResponse {
    let path = format!("/console/sso/callback?{query}");
    asked(app, Method::GET, &path, cookie, "").await
}

fn now() -> i64 {
    holdfast::domain::clock::Clock::default().now().as_seconds()
}

/// An issuer, and an organization with users who sign in there.
struct Signing {
    app: TestApp,
    issuer: FakeIssuer,
    key: IssuerKey,
}

impl Signing {
    async fn start(further: Value) -> Self {
        let issuer = FakeIssuer::start().await;
        let key = IssuerKey::new("one", 7);
        issuer.publish(&[&key]);
        let app = TestApp::with(insecure, OrgSettings::default()).await;
        let mut settings = json!({
            "issuer": issuer.url, "client_id": CLIENT,
            "roles": [{ "group": "law", "role": "compliance" }, { "group": "staff", "role": "sender" }],
        });
        for (name, value) in further.as_object().unwrap() {
            settings[name] = value.clone();
        }

        set(&app, "owner", settings).await.data(200);
        Self { app, issuer, key }
    }

    fn claims(&self, begun: &BegunSignIn) -> Value {
        json!({
            "iss": self.issuer.url, "aud": CLIENT, "exp": now() + 300, "sub": "17", "nonce": begun.nonce,
            "email": "Ada@oak.example", "groups": ["staff", "law"],
        })
    }

    /// Signs in with changed claims.
    async fn with(&self, change: impl FnOnce(&mut Value)) -> TestResponse {
        let begun = begin(&self.app).await;
        let mut claims = self.claims(&begun);
        change(&mut claims);
        self.issuer.issue(Some(&self.key.sign(&claims)));
        let query = format!("code=c&state={}", begun.state);
        finish(&self.app, &begun.cookie, &query).await
    }
}

/// Returns the cookie of the session that an answer began.
fn session_of(answer: &TestResponse) -> Option<String> {
    let cookies = answer.headers.get_all("set-cookie").iter();
    let mut cookies = cookies.map(|cookie| cookie.to_str().unwrap().to_owned());
    let session = cookies.find(|cookie| cookie.starts_with("__Host-holdfast="));
    session.map(|cookie| cookie.split(';').next().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_gets_the_role_of_their_groups() {
    let signing = Signing::start(json!({})).await;
    let app = &signing.app;
    let entered = signing.with(|_| {}).await;
    assert_eq!(entered.status, 200, "{}", entered.text());

    // A page leads on: after a redirect from another site, the browser keeps the session's cookie back.
    assert_eq!(entered.headers["refresh"], "0; url=/console/sessions");

    let cookie = session_of(&entered).expect("a session");
    let page = asked(app, Method::GET, "/console/rules", &cookie, "").await;
    assert_eq!(page.status, 200, "the role is compliance");

    // Other groups, other role; the open session follows.
    let staff = |claims: &mut Value| claims["groups"] = json!(["staff"]);
    assert_eq!(signing.with(staff).await.status, 200);

    let page = asked(app, Method::GET, "/console/rules", &cookie, "").await;
    assert_eq!(page.status, 403);

    // A user without a group with a role has no access, and a user without access any more does not get it back.
    let other = signing
        .with(|claims| claims["groups"] = json!("visitors"))
        .await;
    assert_eq!(other.status, 403);
    assert!(other.text().contains("in no group"), "{}", other.text());

    let users = app
        .get_with_bearer(app.web_admin(), "/users")
        .await
        .data(200);
    let users = users.as_array().unwrap();
    let ada = users.iter().find(|one| one["email"] == "ada@oak.example");
    let ada = ada.unwrap();

    // Who named the issuer alone let in its users.
    assert_eq!(ada["created_by"], "user:olga@oak.example");

    let path = format!("/users/{}/end", ada["user_id"].as_str().unwrap());
    app.as_bearer(Method::POST, app.web_admin(), &path, json!({}))
        .await
        .data(200);
    let ended = signing.with(|_| {}).await;
    assert!(
        ended.text().contains("access was ended"),
        "{}",
        ended.text()
    );

    let log = app.get_with_bearer(app.web_admin(), "/audit-log").await;
    let log = log.data(200).to_string();
    for action in ["user.provisioned", "user.changed", "settings.changed"] {
        assert!(log.contains(action), "{log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_owner_stays_owner() {
    let signing = Signing::start(json!({})).await;
    let owner = Session::of(&signing.app, "ada@oak.example", "owner").await;
    assert_eq!(signing.with(|_| {}).await.status, 200);
    let page = owner.get(&signing.app, "/console/users").await;
    assert_eq!(page.status, 200, "still an owner");
}

/// Each wrong answer of an issuer is refused, and begins no session.
#[tokio::test(flavor = "multi_thread")]
async fn answers_that_cannot_be_trusted_sign_nobody_in() {
    let signing = Signing::start(json!({})).await;
    let cases: [(&str, ClaimChange); 9] = [
        ("another nonce", |claims| claims["nonce"] = "other".into()),
        ("no nonce", |claims| {
            claims.as_object_mut().unwrap().remove("nonce");
        }),
        ("another client", |claims| claims["aud"] = "other".into()),
        ("another authorized party", |claims| {
            claims["azp"] = "other".into()
        }),
        ("several clients", |claims| {
            claims["aud"] = json!([CLIENT, "other"])
        }),
        ("another issuer", |claims| {
            claims["iss"] = "http://other.example".into()
        }),
        ("an old token", |claims| claims["exp"] = (now() - 60).into()),
        ("an unverified address", |claims| {
            claims["email_verified"] = false.into()
        }),
        ("no address", |claims| {
            claims.as_object_mut().unwrap().remove("email");
        }),
    ];
    for (name, change) in cases {
        let answer = signing.with(change).await;
        assert!(
            answer.status == 502 || answer.status == 403,
            "{name}: {}",
            answer.status
        );
        assert!(session_of(&answer).is_none(), "{name}");
    }

    let (app, issuer) = (&signing.app, &signing.issuer);

    // Signed with another key, with the public key as a secret, and not at all.
    let begun = begin(app).await;
    let claims = signing.claims(&begun);
    let public = signing.key.jwk().to_string();
    let secret = EncodingKey::from_secret(public.as_bytes());
    let confused = Header {
        kid: Some("one".into()),
        ..Header::new(Algorithm::HS256)
    };

    let good = signing.key.sign(&claims);
    let (head, rest) = good.split_once('.').unwrap();
    for token in [
        IssuerKey::new("one", 9).sign(&claims),
        IssuerKey::new("two", 7).sign(&claims),
        jsonwebtoken::encode(&confused, &claims, &secret).unwrap(),
        format!("{head}.{}", rest.split('.').next().unwrap()),
        format!("eyJhbGciOiJub25lIn0.{}.", rest.split('.').next().unwrap()),
    ] {
        issuer.issue(Some(&token));
        let query = format!("code=c&state={}", begun.state);
        let answer = finish(app, &begun.cookie, &query).await;
        assert_eq!(answer.status, 502, "{token}");
        assert!(session_of(&answer).is_none());
    }

    // The issuer refuses, or names another one.
    issuer.issue(Some(&good));
    let state = &begun.state;
    for (query, status) in [
        (format!("error=access_denied&state={state}"), 403),
        (
            format!("code=c&state={state}&iss=http%3A%2F%2Fother.example"),
            502,
        ),
        (format!("state={state}"), 502),
        ("code=c&state=other".to_owned(), 410),
        ("code=c".to_owned(), 410),
    ] {
        let answer = finish(app, &begun.cookie, &query).await;
        assert_eq!(answer.status, status, "{query}");
        assert!(session_of(&answer).is_none(), "{query}");
    }

    // Another browser's answer (login CSRF), and one that comes late.
    let query = format!("code=c&state={state}");
    let other = begin(app).await;
    for cookie in ["", "__Host-holdfast-sso=AAAA", &other.cookie] {
        assert_eq!(finish(app, cookie, &query).await.status, 410, "{cookie}");
    }

    let later = app.as_of_with(Duration::from_secs(901), insecure).await;
    assert_eq!(finish(&later, &begun.cookie, &query).await.status, 410);

    issuer.issue(None);
    assert_eq!(finish(app, &begun.cookie, &query).await.status, 502);

    // Nothing of it was wrong with the sign-in itself.
    issuer.issue(Some(&good));
    assert!(session_of(&finish(app, &begun.cookie, &query).await).is_some());
}

/// A session at the issuer can be days old. Only a fresh sign-in, strong enough, confirms a sensitive action.
#[tokio::test(flavor = "multi_thread")]
async fn sensitive_actions_need_a_fresh_and_strong_sign_in() {
    let signing = Signing::start(json!({ "acr_values": [TWO_FACTORS], "required": true })).await;
    let app = &signing.app;
    let cookie = session_of(
        &signing
            .with(|claims| {
                claims["auth_time"] = now().into();
                claims["acr"] = "urn:password".into();
            })
            .await,
    )
    .unwrap();

    let ada = Session::with(cookie);
    let asks = ada
        .post(app, "/console/confirm", "next=/console/sessions")
        .await;
    assert_eq!(asks.status, 200, "{}", asks.text());

    let page = asks.text();
    assert!(page.contains("Is it you?"), "{page}");
    assert!(
        !page.contains("name=\"email\""),
        "no mailed link where the issuer is required: {page}"
    );

    let path = format!(
        "/console/sso/{}?next=%2Fconsole%2Fsessions&confirm=yes",
        app.org
    );
    assert!(page.contains(&path.replace('&', "&amp;")), "{page}");

    let confirm = async |change: ClaimChange| {
        let begun = asked(app, Method::POST, &path, &ada.cookie, "").await;
        let to = leads_to(&begun);
        assert_eq!(parameter(to, "max_age"), "0");
        assert_eq!(parameter(to, "acr_values"), TWO_FACTORS);

        let begun = BegunSignIn {
            cookie: cookie_of(&begun),
            state: parameter(to, "state"),
            nonce: parameter(to, "nonce"),
        };
        let mut claims = signing.claims(&begun);
        claims["auth_time"] = now().into();

        claims["acr"] = TWO_FACTORS.into();
        change(&mut claims);
        signing.issuer.issue(Some(&signing.key.sign(&claims)));
        let query = format!("code=c&state={}", begun.state);
        finish(app, &begun.cookie, &query).await
    };

    for (change, told) in [
        (
            (|claims| claims["auth_time"] = (now() - 600).into()) as ClaimChange,
            "not strong enough",
        ),
        (
            |claims| claims["acr"] = "urn:password".into(),
            "not strong enough",
        ),
        (
            |claims| {
                claims.as_object_mut().unwrap().remove("auth_time");
            },
            "not strong enough",
        ),
        (
            |claims| {
                claims["sub"] = "18".into();
                claims["email"] = "eve@oak.example".into();
            },
            "Another person",
        ),
    ] {
        let answer = confirm(change).await;
        assert_eq!(answer.status, 403, "{}", answer.text());
        assert!(answer.text().contains(told), "{}", answer.text());

        let asks = ada
            .post(app, "/console/confirm", "next=/console/sessions")
            .await;
        assert_eq!(asks.status, 200, "still asks");
    }

    let done = confirm(|_| {}).await;
    assert_eq!(done.status, 200, "{}", done.text());
    assert!(session_of(&done).is_none(), "the session goes on");

    let confirmed = ada
        .post(app, "/console/confirm", "next=/console/sessions")
        .await;
    assert_eq!(confirmed.status, 303);
}

/// Where the issuer is required, neither mailed links nor passkeys sign in.
#[tokio::test(flavor = "multi_thread")]
async fn a_required_issuer_replaces_links_and_passkeys() {
    let origin = "https://sign.oak.example";
    let issuer = FakeIssuer::start().await;
    let app = TestApp::with(
        |config| {
            insecure(config);
            config.public_url = Some(origin.parse().unwrap());
        },
        OrgSettings::default(),
    )
    .await;
    let ada = Session::of(&app, "ada@oak.example", "owner").await;

    let mut passkey = SoftPasskey::new(origin);
    assert_eq!(ada.add(&app, &passkey).await.status, 303);

    let link = path_of(&invited(&app, "ben@oak.example", "sender"));
    let settings = json!({ "issuer": issuer.url, "client_id": CLIENT, "default_role": "sender", "required": true });
    set(&app, "owner", settings).await.data(200);

    let sso = format!("/console/sso/{}", app.org);

    // The link shows the mailbox of a user who was known before the issuer, and leads there.
    let shown = asked(&app, Method::GET, &link, "", "").await;
    assert_eq!(shown.status, 200);

    let entered = asked(&app, Method::POST, &link, "", "").await;
    assert!(leads_to(&entered).starts_with(&sso));
    assert!(session_of(&entered).is_none());
    assert_eq!(asked(&app, Method::POST, &link, "", "").await.status, 410);

    let newer = path_of(&invited(&app, "cleo@oak.example", "sender"));
    let answer = passkey.get(&super::passkeys::challenge(&app).await);
    let refused = super::passkeys::sign_in(&app, &answer).await;
    assert!(session_of(&refused).is_none());
    assert!(refused.text().contains(&sso), "{}", refused.text());

    // The operator can take it back.
    let null = ["org", "set", app.org.as_str(), "single_sign_on=null"];
    crate::support::operator(app.data.path(), &null);
    assert_eq!(asked(&app, Method::POST, &newer, "", "").await.status, 303);
}

/// A page of another site could sign a visitor in as another user.
#[tokio::test(flavor = "multi_thread")]
async fn only_the_button_of_our_own_page_begins_a_sign_in() {
    let signing = Signing::start(json!({})).await;
    let app = &signing.app;
    let path = format!("/console/sso/{}?next=/console/sessions", app.org);
    let offered = asked(app, Method::GET, &path, "", "").await;
    assert_eq!(offered.status, 200);
    assert!(!offered.headers.contains_key("set-cookie"));
    assert!(!offered.headers.contains_key("refresh"));

    let page = offered.text();
    assert!(page.contains("signs its users in at 127.0.0.1"), "{page}");

    for (name, value) in [
        ("origin", "https://elsewhere.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
    ] {
        let request = axum::http::Request::post(&path)
            .header(name, value)
            .header("accept", "text/html")
            .body(axum::body::Body::empty())
            .unwrap();
        let refused = app.send(request).await;
        assert_eq!(refused.status, 403, "{name}");
        assert!(!refused.headers.contains_key("set-cookie"), "{name}");
    }
}

/// An address at an issuer can change, or belong to another person later (OpenID Connect Core 1.0, section 5.7).
#[tokio::test(flavor = "multi_thread")]
async fn a_user_is_the_account_at_the_issuer_and_not_the_address() {
    let signing = Signing::start(json!({})).await;
    let app = &signing.app;
    assert!(session_of(&signing.with(|_| {}).await).is_some());

    let other_account = |claims: &mut Value| claims["sub"] = "18".into();
    let refused = signing.with(other_account).await;
    assert_eq!(refused.status, 403);
    assert!(session_of(&refused).is_none());
    assert!(
        refused.text().contains("another account"),
        "{}",
        refused.text()
    );

    let other_address = |claims: &mut Value| claims["email"] = "ada.lovelace@oak.example".into();
    assert!(session_of(&signing.with(other_address).await).is_some());

    let users = app
        .get_with_bearer(app.web_admin(), "/users")
        .await
        .data(200);
    let users = users.as_array().unwrap();
    assert_eq!(users.len(), 1, "{users:?}");
    assert_eq!(users[0]["email"], "ada@oak.example");

    // A token of the service names no account; the ledger has it.
    let log = app.get_with_bearer(app.web_admin(), "/audit-log").await;
    assert!(log.text().contains("\"subject\":\"17\""), "{}", log.text());
}

/// Two people move an account, also where components are changed by one.
#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_separated_from_a_user_by_two_people() {
    let signing = Signing::start(json!({})).await;
    let app = &signing.app;
    assert!(session_of(&signing.with(|_| {}).await).is_some());

    let users = app
        .get_with_bearer(app.web_admin(), "/users")
        .await
        .data(200);
    let ada = &users[0]["user_id"];

    let (olga, rolf) = (
        app.person("olga@oak.example", "owner"),
        app.person("rolf@oak.example", "owner"),
    );
    let change = json!({
        "change": { "action": "move_identity", "user_id": ada }, "reason": "A new account at the issuer",
    });
    let made = app
        .post_with_bearer(&olga, "/component-changes", change)
        .await
        .data(201);
    assert_eq!(made["approvals_required"], 1);

    let path = format!("/component-changes/{}", made["change_id"].as_str().unwrap());
    let (apply, reviews) = (format!("{path}/apply"), format!("{path}/reviews"));
    let alone = app.post_with_bearer(&olga, &apply, json!({})).await;
    assert_eq!(alone.json()["code"], "approvals_missing");

    let approval = json!({ "verdict": "approve" });
    app.post_with_bearer(&rolf, &reviews, approval)
        .await
        .data(200);
    app.post_with_bearer(&olga, &apply, json!({}))
        .await
        .data(200);

    let other_account = |claims: &mut Value| claims["sub"] = "18".into();
    assert!(session_of(&signing.with(other_account).await).is_some());
    assert_eq!(signing.with(|_| {}).await.status, 403);
}

/// An issuer could name any user, so an existing user first proves the mailbox or a passkey.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_known_before_the_issuer_approves_nothing_until_confirmed() {
    let app = TestApp::with(insecure, OrgSettings::default()).await;
    let link = path_of(&invited(&app, "ada@oak.example", "compliance"));
    let issuer = FakeIssuer::start().await;
    let settings = json!({ "issuer": issuer.url, "client_id": CLIENT, "default_role": "sender" });
    set(&app, "owner", settings).await.data(200);
    let olga = app.person("olga@oak.example", "owner");
    let policy = json!({ "reviews_required": 1 });
    app.as_bearer(Method::PUT, &olga, "/component-policy", policy.clone())
        .await
        .data(200);

    let change =
        json!({ "change": { "action": "policy", "policy": policy }, "reason": "The same" });
    let made = app
        .post_with_bearer(&olga, "/component-changes", change)
        .await
        .data(201);
    let reviews = format!(
        "/component-changes/{}/reviews",
        made["change_id"].as_str().unwrap()
    );

    let ada = app.person("ada@oak.example", "compliance");
    let approval = json!({ "verdict": "approve" });
    let refused = app.post_with_bearer(&ada, &reviews, approval.clone()).await;
    assert_eq!(refused.status, 409);
    assert_eq!(refused.json()["code"], "identity_unconfirmed");

    assert_eq!(asked(&app, Method::POST, &link, "", "").await.status, 303);
    app.post_with_bearer(&ada, &reviews, approval)
        .await
        .data(200);
}

/// A user of an issuer counts as invited by the person who set the issuer alone.
#[tokio::test(flavor = "multi_thread")]
async fn users_of_an_issuer_do_not_approve_what_its_setter_requests() {
    let signing = Signing::start(json!({})).await;
    let app = &signing.app;
    assert!(session_of(&signing.with(|_| {}).await).is_some());

    let olga = app.person("olga@oak.example", "owner");
    let policy = json!({ "reviews_required": 1 });
    app.as_bearer(Method::PUT, &olga, "/component-policy", policy.clone())
        .await
        .data(200);
    let change =
        json!({ "change": { "action": "policy", "policy": policy }, "reason": "The same" });
    let made = app
        .post_with_bearer(&olga, "/component-changes", change)
        .await
        .data(201);
    let reviews = format!(
        "/component-changes/{}/reviews",
        made["change_id"].as_str().unwrap()
    );

    let ada = app.person("ada@oak.example", "compliance");
    let refused = app
        .post_with_bearer(&ada, &reviews, json!({ "verdict": "approve" }))
        .await;
    assert_eq!(refused.json()["code"], "invitee_reviews");
}

/// The person who sets the issuer decides who signs in.
#[tokio::test(flavor = "multi_thread")]
async fn only_an_owner_changes_the_sign_in() {
    let issuer = FakeIssuer::start().await;
    let app = TestApp::with(insecure, OrgSettings::default()).await;
    let good = json!({
        "issuer": issuer.url, "client_id": CLIENT, "client_secret": "hidden-1", "default_role": "member",
    });
    let refused = set(&app, "admin", good.clone()).await;
    assert_eq!(refused.error(403), "Only an owner changes the sign-in");

    let with = |member: &str, value: Value| {
        let mut changed = good.clone();
        changed[member] = value;
        changed
    };
    for wrong in [
        with("issuer", json!("http://127.0.0.1:9")),
        with("issuer", json!("ftp://127.0.0.1")),
        with("issuer", json!("http://10.0.0.1")),
        with("issuer", json!(format!("{}/other", issuer.url))),
        with("client_id", json!("")),
        with("scopes", json!(["a b"])),
        with("default_role", Value::Null),
        with("default_role", json!("king")),
        with("unknown", json!(1)),
    ] {
        let refused = set(&app, "owner", wrong.clone()).await;
        assert_eq!(refused.status, 422, "{wrong}: {}", refused.text());
    }

    let shown = set(&app, "owner", good.clone()).await;
    assert!(!shown.text().contains("hidden-1"), "{}", shown.text());

    let known = shown.data(200)["single_sign_on"].clone();
    assert_eq!(
        (&known["client_id"], &known["groups_claim"]),
        (&json!(CLIENT), &json!("groups"))
    );

    // Other organizations have no issuer, and unknown ones neither.
    let (other, _) = app.other_tenant().await;
    for org in [other.as_str(), "org_01jdk7m3e8f4x9s2w5v6b0c1da", "x"] {
        let path = format!("/console/sso/{org}");
        assert_eq!(
            asked(&app, Method::GET, &path, "", "").await.status,
            404,
            "{org}"
        );
    }

    let log = app.get_with_bearer(app.web_admin(), "/audit-log").await;
    assert!(!log.text().contains("hidden-1"));

    set(&app, "owner", Value::Null).await.data(200);
    let path = format!("/console/sso/{}", app.org);
    assert_eq!(asked(&app, Method::GET, &path, "", "").await.status, 404);
}

/// From the settings to a sign-in, a confirmation with a second factor and a sign-out, with a conforming issuer.
#[tokio::test(flavor = "multi_thread")]
async fn people_sign_in_at_a_real_issuer() {
    let app = TestApp::on_a_socket_over(insecure).await;
    let people = json!({
        "ada": { "email": "ada@oak.example", "groups": ["owners"] },
        "eve": { "email": "eve@oak.example", "groups": ["visitors"] },
    });
    let issuer = ConformingIssuer::start(&app.url(), &people);
    let owner = invited(&app, "olga@oak.example", "owner");

    let desk = TestBrowser::open(EmulatedScreen::Desktop).await;
    desk.goto(&format!("{}{}", app.url(), path_of(&owner)))
        .await;
    desk.click("main button").await;
    desk.click("nav a[href='/console/settings']").await;
    desk.click("nav a[href='/console/settings/sign-on']").await;

    for (field, value) in [
        ("issuer", issuer.url.as_str()),
        ("client_id", CLIENT),
        ("client_secret", CLIENT_SECRET),
        ("roles", "owners = owner"),
        ("acr_values", TWO_FACTORS),
    ] {
        desk.type_into(&format!("#{field}"), value).await;
    }

    let scopes = "const scopes = document.getElementById('scopes'); scopes.value = 'email groups'; return true";
    desk.run(scopes).await;
    desk.click("form[action$='/sign-on'] button").await;
    desk.read("Remove this sign-in").await;
    desk.picture("console-settings").await;
    desk.is_accessible("settings").await;

    let phone = TestBrowser::open(EmulatedScreen::Phone).await;
    phone.goto(&format!("{}/console/users", app.url())).await;
    phone.click("summary").await;
    phone.type_into("#org", app.org.as_str()).await;
    phone.picture("console-sign-in-organization-phone").await;
    phone.click("form[action='/console/sso'] button").await;
    phone.click("form[action^='/console/sso/'] button").await;

    phone.read("Oak Login").await;
    phone.type_into("#login", "ada").await;
    phone.click("button").await;

    // The page that was asked for at first.
    phone.read("olga@oak.example").await;
    assert!(phone.url().await.ends_with("/console/users"));

    // Inviting is a sensitive action; the sign-in had no second factor.
    phone.type_into("#email", "new@oak.example").await;
    phone.click("form[action='/console/users'] button").await;
    phone.read("Is it you?").await;
    phone.picture("console-confirm-issuer-phone").await;
    phone.click("form[action*='confirm=yes'] button").await;
    phone.read("Oak Login").await;

    phone.type_into("#login", "ada").await;
    phone.click("#factor").await;
    phone.click("button").await;
    phone.read("olga@oak.example").await;
    phone.type_into("#email", "new@oak.example").await;
    phone.click("form[action='/console/users'] button").await;
    phone.read("new@oak.example").await;

    // The sign-out ends the session at the issuer, too.
    phone.click("form.leave button").await;
    phone.read("sign-out").await;
    assert!(phone.url().await.starts_with(&issuer.url));

    phone.click("button").await;
    phone.read("Sign in").await;
    assert!(phone.url().await.ends_with("/console/sign-in"));

    // A person in none of the groups.
    phone
        .goto(&format!("{}/console/sso/{}", app.url(), app.org))
        .await;
    phone.click("form[action^='/console/sso/'] button").await;
    phone.read("Oak Login").await;
    phone.type_into("#login", "eve").await;

    phone.click("button").await;
    phone.read("You are in no group with access").await;
}
