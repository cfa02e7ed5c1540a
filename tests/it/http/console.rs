//! The console: sign-in, sessions, and its pages by role.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use holdfast::domain::component::Slot;
use holdfast::domain::id::OrgId;
use holdfast::domain::organization::Role;
use serde_json::{Value, json};

use crate::cli::rules_kit::moved_placement;
use crate::service::components::registry::variant;
use crate::support::browser::{EmulatedScreen, TestBrowser};
use crate::support::receiver::{WebhookReceiver, admit};
use crate::support::uploads::form_of;
use crate::support::{TestApp, TestResponse, envelope_body, form, operator};

/// Sends a request of a browser, with the cookie of a session.
pub(crate) async fn asked(
    app: &TestApp,
    method: Method,
    path: &str,
    cookie: &str,
    form: &str,
) -> TestResponse {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("accept", "text/html")
        .header("content-type", "application/x-www-form-urlencoded")
        .header("cookie", cookie)
        .body(Body::from(form.to_owned()))
        .unwrap();

    app.send(request).await
}

/// A user who is signed in.
pub(crate) struct Session {
    pub(crate) cookie: String,
    user: Value,
}

impl Session {
    /// Invites a user and signs in with the link.
    pub(crate) async fn of(app: &TestApp, email: &str, role: &str) -> Self {
        Self::at(app, &app.org, email, role).await
    }

    /// Like [`Session::of`], for a user of another organization.
    pub(crate) async fn at(app: &TestApp, org: &OrgId, email: &str, role: &str) -> Self {
        let user = invited_to(app, org, email, role);
        let path = path_of(&user);
        let entered = asked(app, Method::POST, &path, "", "").await;
        assert_eq!(entered.status, 303, "{}", entered.text());
        Self {
            cookie: cookie_of(&entered),
            user,
        }
    }

    /// Returns the session of a cookie.
    pub(crate) fn with(cookie: String) -> Self {
        Self {
            cookie,
            user: Value::Null,
        }
    }

    pub(crate) fn user(&self) -> &Value {
        &self.user
    }

    pub(crate) async fn get(&self, app: &TestApp, path: &str) -> TestResponse {
        asked(app, Method::GET, path, &self.cookie, "").await
    }

    /// Sends a form with the token of the session.
    pub(crate) async fn post(&self, app: &TestApp, path: &str, form: &str) -> TestResponse {
        let token = self.token(app).await;
        let form = format!("token={token}&{form}");
        asked(app, Method::POST, path, &self.cookie, &form).await
    }

    /// Uploads a document with the token of the session.
    pub(crate) async fn upload(
        &self,
        app: &TestApp,
        path: &str,
        pdf: &[u8],
        texts: &[(&str, &str)],
    ) -> TestResponse {
        let token = self.token(app).await;
        let texts = [&[("token", token.as_str())], texts].concat();
        let (content_type, body) = form_of(Some(("application/pdf", pdf)), &texts);
        let request = Request::post(path)
            .header("accept", "text/html")
            .header("content-type", content_type)
            .header("cookie", &self.cookie);
        app.send(request.body(body.into()).unwrap()).await
    }

    async fn token(&self, app: &TestApp) -> String {
        let page = self.get(app, "/console/sessions").await.text();
        let (_, rest) = page.split_once("name=\"token\" value=\"").expect("a token");
        rest.split('"').next().unwrap().to_owned()
    }
}

/// Returns the cookie of the session that an answer began.
pub(crate) fn cookie_of(entered: &TestResponse) -> String {
    let cookie = entered.headers["set-cookie"].to_str().unwrap();
    cookie.split(';').next().unwrap().to_owned()
}

pub(crate) fn invited(app: &TestApp, email: &str, role: &str) -> Value {
    invited_to(app, &app.org, email, role)
}

pub(crate) fn invited_to(app: &TestApp, org: &OrgId, email: &str, role: &str) -> Value {
    let arguments = [
        "user",
        "invite",
        "--org",
        org.as_str(),
        "--email",
        email,
        "--role",
        role,
    ];

    app.operator(&arguments)
}

/// Returns the path of a link.
pub(crate) fn path_of(user: &Value) -> String {
    let url = user["url"].as_str().unwrap();
    let at = url.find("/console/").expect("a link of the console");
    url[at..].to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_signs_in_once() {
    let app = TestApp::start().await;
    let user = invited(&app, "Ada@Oak.example", "owner");
    assert_eq!(
        (&user["email"], &user["status"]),
        (&json!("ada@oak.example"), &json!("invited"))
    );

    let path = path_of(&user);

    // Programs follow links; only the button signs in.
    for _ in 0..2 {
        let page = asked(&app, Method::GET, &path, "", "").await;
        assert!(
            page.status == 200 && page.text().contains("ada@oak.example"),
            "{}",
            page.text()
        );
        assert!(page.headers.get("set-cookie").is_none());

        let policy = page.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    }

    let entered = asked(&app, Method::POST, &path, "", "").await;
    assert_eq!(entered.headers["location"], "/console");

    let cookie = entered.headers["set-cookie"].to_str().unwrap().to_owned();
    assert!(cookie.starts_with("__Host-holdfast="), "{cookie}");

    for attribute in ["Path=/", "Secure", "HttpOnly", "SameSite=Strict"] {
        assert!(cookie.split("; ").any(|one| one == attribute), "{cookie}");
    }

    let cookie = cookie.split(';').next().unwrap();
    let home = asked(&app, Method::GET, "/console", cookie, "").await;
    assert!(home.status == 200 && home.text().contains("ada@oak.example"));
    assert_eq!(home.headers["cache-control"], "no-store");

    for method in [Method::GET, Method::POST] {
        let again = asked(&app, method, &path, "", "").await;
        assert_eq!(again.status, 410, "{}", again.text());
    }

    let guessed = format!("{}x", &path[..path.len() - 1]);
    assert_eq!(asked(&app, Method::GET, &guessed, "", "").await.status, 404);
    assert_eq!(
        asked(&app, Method::POST, &guessed, "", "").await.status,
        410
    );

    // The audit log has the sign-in, without secrets.
    let log = app.get_with_bearer(app.web_admin(), "/audit-log").await;
    let secret = cookie.split_once('=').unwrap().1;
    let code = path.rsplit('/').next().unwrap();
    assert!(!log.text().contains(secret) && !log.text().contains(code));

    let acts = log.json()["data"].clone();
    let acts: Vec<&str> = acts
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["action"].as_str().unwrap())
        .collect();
    assert!(
        acts.contains(&"user.invited") && acts.contains(&"user.signed_in"),
        "{acts:?}"
    );

    // A link and a session have an end.
    let late = invited(&app, "late@oak.example", "member");
    let session = Session::of(&app, "eva@oak.example", "auditor").await;
    let later = app.as_of(Duration::from_secs(8 * 86_400)).await;
    let over = asked(&later, Method::POST, &path_of(&late), "", "").await;
    assert_eq!(over.status, 410);

    let gone = session.get(&later, "/console/envelopes?q=a").await;
    assert_eq!(gone.status, 303);

    let after = "/console/sign-in?next=%2Fconsole%2Fenvelopes%3Fq%3Da";
    assert_eq!(gone.headers["location"], after);

    for nobody in ["", "__Host-holdfast=", "__Host-holdfast=0000", "other=1"] {
        let answer = asked(&app, Method::GET, "/console", nobody, "").await;
        assert_eq!(answer.status, 303, "{nobody}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_asks_for_a_link_by_mail() {
    let app = TestApp::start().await;
    invited(&app, "ada@oak.example", "owner");
    let first = app.wait_for_mails(1).await;
    assert!(
        readable(&first[0]).contains("/console/enter/"),
        "{}",
        first[0]
    );

    let send = async |app: &TestApp, email: &str| {
        let form = format!("email={email}");
        let sent = asked(app, Method::POST, "/console/sign-in", "", &form).await;
        assert_eq!(sent.status, 200, "{}", sent.text());
        sent.text()
    };

    // The answer does not tell who has access.
    let later = app.as_of(Duration::from_secs(120)).await;
    let known = send(&later, "ADA%40oak.example").await;
    let unknown = send(&later, "nobody%40oak.example").await;
    assert_eq!(known, unknown);

    let mail = readable(&later.wait_for_mails(1).await[0]);
    let at = mail.find("/console/enter/").unwrap();
    let is_of_link = |one: &char| one.is_ascii_alphanumeric() || "/_-".contains(*one);
    let path: String = mail[at..].chars().take_while(is_of_link).collect();
    let entered = asked(&later, Method::POST, &path, "", "").await;
    assert_eq!(entered.status, 303, "{path}: {}", entered.text());

    // At most one in a minute.
    send(&later, "ada%40oak.example").await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(later.wait_for_mails(1).await.len(), 1);
}

/// Returns the text of a mail without the line breaks of its encoding.
pub(crate) fn readable(mail: &str) -> String {
    mail.replace("=\r\n", "")
        .replace("=\n", "")
        .replace("=3D", "=")
}

/// Forms without the token of the session are refused and change nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_form_needs_the_token_of_its_session() {
    let app = TestApp::start().await;
    let [ada, eva] = [("ada@oak.example", "owner"), ("eva@oak.example", "admin")];
    let [ada, eva] = [
        Session::of(&app, ada.0, ada.1).await,
        Session::of(&app, eva.0, eva.1).await,
    ];
    let form = "email=mallory%40evil.example&role=owner";

    let foreign = format!("token={}&{form}", eva.token(&app).await);
    for form in [form.to_owned(), format!("token=&{form}"), foreign] {
        let refused = asked(&app, Method::POST, "/console/users", &ada.cookie, &form).await;
        assert_eq!(refused.status, 403, "{}", refused.text());
    }

    let nobody = asked(&app, Method::POST, "/console/users", "", form).await;
    assert_eq!(nobody.status, 303);

    let users = app
        .get_with_bearer(app.web_admin(), "/users")
        .await
        .data(200);
    assert_eq!(users.as_array().unwrap().len(), 2, "{users:#}");

    // The right one works, and signing out ends the session on the server.
    let done = ada.post(&app, "/console/users", form).await;
    assert_eq!(done.status, 303, "{}", done.text());

    let left = ada.post(&app, "/console/sign-out", "").await;
    assert!(
        left.headers["set-cookie"]
            .to_str()
            .unwrap()
            .contains("Max-Age=0")
    );
    assert_eq!(ada.get(&app, "/console").await.status, 303);
}

/// A page of another site cannot sign the visitor in to a foreign account.
#[tokio::test(flavor = "multi_thread")]
async fn another_site_signs_nobody_in() {
    let app = TestApp::start().await;
    let path = path_of(&invited(&app, "mallory@oak.example", "member"));
    for path in [path.as_str(), "/console/sign-in"] {
        let request = Request::post(path)
            .header("accept", "text/html")
            .header("sec-fetch-site", "cross-site")
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Body::from("email=mallory%40oak.example"));
        let refused = app.send(request.unwrap()).await;
        assert_eq!(refused.status, 403, "{path}");
        assert!(refused.headers.get("set-cookie").is_none());
    }

    let entered = asked(&app, Method::POST, &path, "", "").await;
    assert_eq!(entered.status, 303, "the link is unused");

    let nul = asked(&app, Method::POST, "/console/sign-in", "", "email=%00").await;
    assert_eq!(nul.status, 400);
}

/// A newer link and another role end the links before.
#[tokio::test(flavor = "multi_thread")]
async fn a_newer_link_ends_the_earlier_ones() {
    let app = TestApp::start().await;
    let first = invited(&app, "ada@oak.example", "auditor");
    let id = first["user_id"].as_str().unwrap();
    let again = ["user", "link", id, "--org", app.org.as_str()];
    let second = operator(app.data.path(), &again);
    let old = asked(&app, Method::POST, &path_of(&first), "", "").await;
    assert_eq!(old.status, 410);

    let change = ["user", "role", id, "owner", "--org", app.org.as_str()];
    operator(app.data.path(), &change);
    let old = asked(&app, Method::POST, &path_of(&second), "", "").await;
    assert_eq!(old.status, 410);

    let admin = app.admin();
    let path = format!("/users/{id}/invite");
    let refused = app.post_with_bearer(&admin, &path, json!({})).await;
    assert_eq!(refused.error(403), "Only an owner manages owners");

    let owner = app.person("olaf@oak.example", "owner");
    let soon = app.post_with_bearer(&owner, &path, json!({})).await;
    assert_eq!(soon.status, 429, "{}", soon.text());

    let off = app
        .another_node(|config| config.console.enabled = false)
        .await;
    let refused = off.post_with_bearer(&owner, &path, json!({})).await;
    assert_eq!(
        refused.error(409),
        "This installation has switched the console off"
    );
    assert_eq!(
        asked(&off, Method::GET, "/console", "", "").await.status,
        404
    );
}

/// Every page for every role.
#[tokio::test(flavor = "multi_thread")]
async fn a_role_sees_exactly_its_pages() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let envelope = app
        .post(
            "/partner/envelopes",
            envelope_body(&template["template_id"]),
        )
        .await
        .data(201);
    let id = envelope["envelope_id"].as_str().unwrap();
    let page = format!("/console/envelopes/{id}");

    let readers = [
        "owner",
        "admin",
        "sender",
        "compliance",
        "auditor",
        "controller",
    ];

    let senders = ["owner", "admin", "sender"];
    let administrators = ["owner", "admin"];
    let integrators = ["owner", "admin", "developer"];
    let auditors = ["owner", "admin", "compliance", "auditor"];
    let keepers = ["owner", "admin", "compliance", "auditor", "controller"];
    let control = format!("/console/control/records/{id}");

    let decisions = format!("{page}/decisions");
    for role in Role::ALL {
        let role = role.as_str();
        let session = Session::of(&app, &format!("{role}@oak.example"), role).await;
        for (path, roles) in [
            ("/console/sessions", None),
            ("/console/activity", Some(&readers[..])),
            ("/console/customers", Some(&readers[..])),
            ("/console/control", Some(&keepers[..])),
            ("/console/control/keys", Some(&keepers[..])),
            ("/console/transfers", Some(&keepers[..])),
            (control.as_str(), Some(&keepers[..])),
            ("/console/rules/rules.compliance", Some(&auditors[..])),
            (decisions.as_str(), Some(&auditors[..])),
            ("/console/envelopes", Some(readers.as_slice())),
            (page.as_str(), Some(&readers)),
            ("/console/users", Some(&administrators)),
            ("/console/developers", Some(&integrators)),
            ("/console/audit", Some(&auditors)),
            ("/console/rules", Some(&auditors)),
            ("/console/envelopes.csv", Some(&readers)),
            ("/console/audit.csv", Some(&auditors)),
            ("/console/users.csv", Some(&administrators)),
        ] {
            let answer = session.get(&app, path).await;
            let may = roles.is_none_or(|roles| roles.contains(&role));
            assert_eq!(
                answer.status,
                if may { 200 } else { 403 },
                "{path} as {role}: {}",
                answer.text()
            );
        }

        // The first page is one that the role may use.
        let first = session.get(&app, "/console").await;
        if readers.contains(&role) {
            assert_eq!(first.status, 200, "{role}: {}", first.text());
        } else {
            let own = if role == "developer" {
                "developers"
            } else {
                "sessions"
            };
            assert_eq!(
                first.headers["location"],
                format!("/console/{own}"),
                "{role}"
            );
        }

        let shown = session.get(&app, &page).await.text();
        assert_eq!(
            shown.contains("Send a reminder"),
            senders.contains(&role),
            "{role}"
        );

        for (act, roles) in [
            (format!("{page}/remind"), senders.as_slice()),
            (
                format!("{page}/verify"),
                &["owner", "admin", "compliance", "auditor"],
            ),
            ("/console/users".to_owned(), &administrators),
            (
                "/console/deliveries/wdel_01h455vb4pex5vsknk084sn02q/redeliver".to_owned(),
                &integrators,
            ),
            (
                "/console/users/usr_01h455vb4pex5vsknk084sn02q/end".to_owned(),
                &administrators,
            ),
            ("/console/keys".to_owned(), &administrators),
            (
                "/console/keys/key_01h455vb4pex5vsknk084sn02q/rotate".to_owned(),
                &administrators,
            ),
            (
                "/console/keys/key_01h455vb4pex5vsknk084sn02q/deactivate".to_owned(),
                &integrators,
            ),
            (
                format!("/console/control/accept/{id}"),
                &["owner", "admin", "controller"],
            ),
        ] {
            let answer = session.post(&app, &act, "").await;
            assert_eq!(
                answer.status != 403,
                roles.contains(&role),
                "{act} as {role}: {}",
                answer.text()
            );
        }
    }

    // What belongs to another organization does not exist.
    let org = operator(app.data.path(), &["org", "create", "--name", "Elm"]);
    let org = org["org_id"].as_str().unwrap();
    let arguments = [
        "user",
        "invite",
        "--org",
        org,
        "--email",
        "kim@elm.example",
        "--role",
        "owner",
    ];

    let kim = operator(app.data.path(), &arguments);
    let entered = asked(&app, Method::POST, &path_of(&kim), "", "").await;
    let other = entered.headers["set-cookie"].to_str().unwrap();
    let other = other.split(';').next().unwrap().to_owned();
    let foreign = asked(&app, Method::GET, &page, &other, "").await;
    let unknown = asked(
        &app,
        Method::GET,
        "/console/envelopes/env_01h455vb4pex5vsknk084sn02q",
        &other,
        "",
    )
    .await;
    assert!(
        foreign.status == 404 && unknown.status == 404,
        "{}",
        foreign.text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_manage_owners_and_nobody_the_own_access() {
    let app = TestApp::start().await;
    let ada = Session::of(&app, "ada@oak.example", "owner").await;
    let eva = Session::of(&app, "eva@oak.example", "admin").await;
    let owner = app.person("ada@oak.example", "owner");
    let admin = app.person("eva@oak.example", "admin");
    let id = |session: &Session| session.user["user_id"].as_str().unwrap().to_owned();
    let path = |session: &Session, act: &str| format!("/users/{}{act}", id(session));

    let role = |role: &str| json!({ "role": role });
    let patch = async |token: &str, path: &str, body: Value| {
        app.as_bearer(Method::PATCH, token, path, body).await
    };

    let refused = app
        .post_with_bearer(
            &admin,
            "/users",
            json!({ "email": "new@oak.example", "role": "owner" }),
        )
        .await;
    assert_eq!(refused.error(403), "Only an owner manages owners");
    assert_eq!(
        patch(&admin, &path(&ada, ""), role("member"))
            .await
            .error(403),
        "Only an owner manages owners"
    );

    assert_eq!(
        app.post_with_bearer(&admin, &path(&ada, "/end"), json!({}))
            .await
            .status,
        403
    );

    let own = "Nobody changes the own access: ask another owner or admin";
    assert_eq!(
        patch(&admin, &path(&eva, ""), role("owner"))
            .await
            .error(403),
        own
    );
    assert_eq!(
        app.post_with_bearer(&owner, &path(&ada, "/end"), json!({}))
            .await
            .error(403),
        own
    );

    let taken = app
        .post_with_bearer(
            &owner,
            "/users",
            json!({ "email": "EVA@oak.example", "role": "sender" }),
        )
        .await;
    assert_eq!(taken.error(409), "A user with this address exists");

    // A second owner; then the first one may go, and the last may not.
    let promoted = patch(&owner, &path(&eva, ""), role("owner"))
        .await
        .data(200);
    assert_eq!(promoted["role"], "owner");

    let second = app.person("eva@oak.example", "owner");
    app.post_with_bearer(&second, &path(&ada, "/end"), json!({}))
        .await
        .data(200);
    assert_eq!(
        ada.get(&app, "/console").await.status,
        303,
        "the session ended with the access"
    );

    let last = ["user", "end", &id(&eva), "--org", app.org.as_str()];
    let output = crate::support::operator_output(app.data.path(), &last);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("needs another owner first"));
    assert_eq!(eva.get(&app, "/console/users").await.status, 200);

    // Demoting the last owner is refused, too, and the token of an ended user ends with the access.
    let demote = [
        "user",
        "role",
        &id(&eva),
        "admin",
        "--org",
        app.org.as_str(),
    ];

    let output = crate::support::operator_output(app.data.path(), &demote);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("needs another owner first"));

    let gone = app.get_with_bearer(&owner, "/users").await;
    assert_eq!(gone.error(401), "Invalid token");

    // Another role applies to open sessions at once.
    let sam = Session::of(&app, "sam@oak.example", "sender").await;
    assert_eq!(sam.get(&app, "/console/envelopes").await.status, 200);

    patch(&second, &path(&sam, ""), role("developer"))
        .await
        .data(200);
    assert_eq!(sam.get(&app, "/console/envelopes").await.status, 403);

    let ended = patch(
        &second,
        "/users/usr_01h455vb4pex5vsknk084sn02q",
        role("member"),
    )
    .await;
    assert_eq!(ended.error(404), "User not found");

    // A token has the role of the user, also one that was issued before with another.
    let token = app.person("sam@oak.example", "admin");
    let refused = app.get_with_bearer(&token, "/users").await;
    assert_eq!(refused.error(403), "Role owner or admin is required");

    app.get_with_bearer(&token, "/api-keys").await.data(200);

    // A user who was ended is invited again, with the role of the invitation.
    let again = json!({ "email": "ada@oak.example", "role": "auditor" });
    let again = app
        .post_with_bearer(&second, "/users", again)
        .await
        .data(201);
    assert_eq!(
        (&again["role"], &again["status"]),
        (&json!("auditor"), &json!("invited"))
    );
}

/// Why has the buyer not signed? From the mail to the answer, with a finger.
#[tokio::test(flavor = "multi_thread")]
async fn the_console_works_on_a_phone() {
    let app = TestApp::on_a_socket().await;
    let template = app.contract_template().await;
    let mut body = envelope_body(&template["template_id"]);
    body["envelope_name"] = json!("Loan of Jordan");
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    app.vaulted_envelope().await;
    let user = invited(&app, "ada@oak.example", "owner");

    let browser = TestBrowser::open(EmulatedScreen::Phone).await;
    browser
        .goto(&format!("{}{}", app.url(), path_of(&user)))
        .await;
    browser.picture("console-enter-phone").await;
    browser.is_accessible("the link").await;
    browser.click("main button").await;

    browser.read("Waiting for signatures").await;
    browser.picture("console-home-phone").await;
    browser.is_accessible("home").await;
    let width = "return document.documentElement.scrollWidth <= innerWidth";
    assert_eq!(browser.run(width).await, true, "home scrolls sideways");

    browser.click("nav a[href='/console/envelopes']").await;
    browser.type_into("#q", "loan").await;
    browser.picture("console-envelopes-phone").await;
    browser.is_accessible("envelopes").await;
    assert_eq!(browser.run(width).await, true, "envelopes scroll sideways");

    browser.click("form.search button").await;
    browser.read("Loan of Jordan").await;
    browser.click("main .listed a").await;
    browser.read("Has not signed").await;
    browser.picture("console-envelope-phone").await;
    browser.is_accessible("an envelope").await;
    assert_eq!(
        browser.run(width).await,
        true,
        "an envelope scrolls sideways"
    );

    browser.click("a[href$='/decisions']").await;
    browser.read("Why: decisions with their facts").await;
    browser.is_accessible("decisions").await;
    assert_eq!(browser.run(width).await, true, "decisions scroll sideways");

    browser.click("main p a").await;
    browser.click("form[action$='/remind'] button").await;
    browser.read("The signers get a new link.").await;
    let id = envelope["envelope_id"].as_str().unwrap();
    let ledger = app
        .get(&format!("/partner/envelopes/{id}/custody"))
        .await
        .data(200);
    assert!(
        ledger.to_string().contains("user:ada@oak.example"),
        "{ledger:#}"
    );

    browser.click("nav a[href='/console/users']").await;
    browser.type_into("#email", "sam@oak.example").await;
    browser.click("section.card form button").await;
    browser.read("sam@oak.example").await;
    browser.dark().await;
    browser.picture("console-users-dark-phone").await;
    browser.is_accessible("users").await;

    browser.click("nav a[href='/console/sessions']").await;
    browser.read("this browser").await;
    browser.is_accessible("sessions").await;
    browser.click("form.leave button").await;
    browser.read("There is no password.").await;
    browser.picture("console-sign-in-phone").await;

    browser.is_accessible("the sign-in").await;
}

/// Reading and acting work without a script, and a record in the vault is verified.
#[tokio::test(flavor = "multi_thread")]
async fn the_console_works_without_javascript() {
    let app = TestApp::on_a_socket().await;
    let id = app.vaulted_envelope().await;
    app.custody(&id).await;
    let user = invited(&app, "eva@oak.example", "auditor");
    let browser = TestBrowser::without_javascript(EmulatedScreen::Desktop).await;
    browser
        .goto(&format!("{}{}", app.url(), path_of(&user)))
        .await;

    browser.click("main button").await;
    browser.read("Waiting for signatures").await;
    browser
        .goto(&format!("{}/console/envelopes/{id}", app.url()))
        .await;
    browser.read("Checks of the law: 100 of 100").await;
    browser.picture("console-envelope-desktop").await;

    browser.click("form[action$='/verify'] button").await;
    browser
        .read("The evidence is unchanged and anchored.")
        .await;

    // Each decision, down to its facts and its component.
    browser.click("a[href$='/decisions']").await;
    browser.read("is written again byte for byte").await;
    browser.click("main details summary").await;

    browser.read("has_template").await;
}

/// A developer finds a failed webhook, reads its content and sends it again.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_webhook_is_sent_again() {
    let app = TestApp::on_a_socket_over(admit).await;
    let receiver = WebhookReceiver::start().await;
    receiver.answer_with(500);
    let endpoint = app.endpoint(&receiver.url, &["*"]).await;
    app.envelope_event().await;
    let failed = |log: &[Value]| log.iter().any(|one| one["attempt_count"] == 1);
    app.wait_for_log(&endpoint, failed).await;

    receiver.answer_with(200);
    let user = invited(&app, "dev@oak.example", "developer");
    let browser = TestBrowser::open(EmulatedScreen::Phone).await;
    browser
        .goto(&format!("{}{}", app.url(), path_of(&user)))
        .await;
    browser.click("main button").await;

    browser.click("nav a[href='/console/developers']").await;
    browser.read("Receivers of webhooks").await;
    browser.picture("console-developers-phone").await;
    browser.is_accessible("developers").await;
    browser.click("main .rows a").await;
    browser.read("Deliveries").await;
    browser.is_accessible("deliveries").await;

    let table = "return fetch(location.pathname + '/deliveries.csv').then(answer => answer.text())";
    let table = browser.run(table).await;
    let table = table.as_str().unwrap();
    assert!(
        table.starts_with("delivery_id,event_id,event_type,") && table.lines().count() > 1,
        "{table}"
    );

    browser.click("main .rows a").await;
    browser.read("Send again").await;
    browser.picture("console-delivery-phone").await;
    browser.is_accessible("a delivery").await;
    let width = "return document.documentElement.scrollWidth <= innerWidth";
    assert_eq!(
        browser.run(width).await,
        true,
        "a delivery scrolls sideways"
    );

    browser.click("form[action$='/redeliver'] button").await;
    let delivered = |log: &[Value]| {
        log.iter()
            .any(|one| one["status"] == "delivered" && one["redelivery_of"].is_string())
    };
    app.wait_for_log(&endpoint, delivered).await;

    // A receiver that was disabled is on the first page of a developer, who enables it again.
    receiver.answer_with(410);
    app.envelope_event().await;
    app.wait_for_log(&endpoint, |log| {
        log.iter().any(|one| one["response_code"] == 410)
    })
    .await;
    browser.goto(&format!("{}/console", app.url())).await;
    browser
        .read("The receiver answered 410: it takes no more events.")
        .await;
    browser.click("main .rows a").await;
    browser.click("form[action$='/enable'] button").await;
    browser.see("form[action$='/disable']").await;
    browser.picture("console-receiver-phone").await;

    // The newest days are in the graph and its table.
    browser.click("main details summary").await;
    browser.read("delivered").await;
    browser.is_accessible("a receiver").await;

    // The auditor reads the act of the sign-in; the developer does not.
    let eva = Session::of(&app, "eva@oak.example", "auditor").await;
    let audit = eva.get(&app, "/console/audit").await.text();
    assert!(audit.contains("user.signed_in") && audit.contains("dev@oak.example signed in"));

    let odd = eva.get(&app, "/console/audit?after=7").await;
    assert_eq!(odd.status, 200);
}

/// A key made on the page works in the call that the page shows, and is replaced and ended there.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_made_and_used_from_the_page() {
    let app = TestApp::on_a_socket().await;
    let user = invited(&app, "ada@oak.example", "owner");
    let browser = TestBrowser::open(EmulatedScreen::Phone).await;
    browser
        .goto(&format!("{}{}", app.url(), path_of(&user)))
        .await;
    browser.click("main button").await;

    browser.click("nav a[href='/console/developers']").await;
    browser.click("details:has(#name) summary").await;
    browser.type_into("#name", "Dealer system").await;
    browser.click("input[name='scope-envelopes:read']").await;
    browser.picture("console-new-key-phone").await;
    browser.is_accessible("a new key").await;
    browser.click("form[action$='/console/keys'] button").await;

    browser.read("This key is shown this once.").await;
    browser.is_accessible("a shown key").await;
    let page = browser.text().await;
    // Two lines, as a shell takes them.
    let mut lines = page.lines().skip_while(|line| !line.starts_with("curl "));
    let call = format!("{}\n{}", lines.next().unwrap(), lines.next().unwrap());
    let answer = std::process::Command::new("sh")
        .args(["-c", &format!("{call} -s")])
        .output()
        .unwrap();
    let answer: Value = serde_json::from_slice(&answer.stdout).unwrap();
    assert_eq!(answer["data"], json!([]), "{call}: {answer}");

    // The examples of the reference read both from the shell.
    let exported: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("export "))
        .collect();
    let example = format!(
        "{}\ncurl -sS -H \"X-API-Key: $HOLDFAST_API_KEY\" \"$HOLDFAST_URL/api/v2/partner/envelopes\"",
        exported.join("\n")
    );
    let listed = std::process::Command::new("sh")
        .args(["-c", &example])
        .output()
        .unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed, answer, "{example}");

    let keys = app
        .get_with_bearer(app.web_admin(), "/api-keys")
        .await
        .data(200);
    let keys = keys.as_array().unwrap().iter();
    let mut made = keys.filter(|key| key["name"] == "Dealer system");
    let id = made.next().unwrap()["key_id"].as_str().unwrap().to_owned();

    let ada = Session::of(&app, "bea@oak.example", "admin").await;
    let none = ada.post(&app, "/console/keys", "name=None").await;
    assert_eq!(none.status, 422, "a key without scopes: {}", none.text());

    let unknown = ada
        .post(&app, "/console/keys", "scope-everything=yes")
        .await;
    assert_eq!(unknown.status, 422, "{}", unknown.text());

    let rotated = ada
        .post(&app, &format!("/console/keys/{id}/rotate"), "sure=yes")
        .await;
    assert_eq!(rotated.status, 201, "{}", rotated.text());

    let old = call.split("X-API-Key: ").nth(1).unwrap();
    let old = old.split('"').next().unwrap();
    assert_eq!(app.get_as(old, "/partner/envelopes").await.status, 401);

    let ended = ada
        .post(&app, &format!("/console/keys/{id}/deactivate"), "sure=yes")
        .await;
    assert_eq!(ended.status, 303, "{}", ended.text());

    let other = ada
        .post(&app, &format!("/console/keys/{id}/delete"), "")
        .await;
    assert_eq!(other.status, 404);

    let again = ada
        .post(&app, &format!("/console/keys/{id}/rotate"), "sure=yes")
        .await;
    assert_eq!(again.status, 409, "{}", again.text());
}

/// Requests a change that needs the approval of another person, and returns its id.
pub async fn requested_change(app: &TestApp) -> String {
    let policy = json!({ "reviews_required": 1 });
    app.as_bearer(Method::PUT, app.web_admin(), "/component-policy", policy)
        .await
        .data(200);
    let officer = app.person("ben@oak.example", "compliance");
    let bytes = variant(Slot::Compliance, "shown");
    let component = app
        .upload_component(&officer, "oak-rules", "1.0.0", &bytes)
        .await
        .data(201);
    let change = json!({
        "change": {
            "action": "activate", "slot": "rules.compliance", "component_id": component["component_id"],
        },
        "reason": "Counsel has <agreed>",
        "source": { "url": "https://git.oak.example/rules", "commit": "4f1c2ab" },
    });
    let change = app
        .post_with_bearer(&officer, "/component-changes", change)
        .await
        .data(201);
    change["change_id"].as_str().unwrap().to_owned()
}

/// Rules in force, and a change request with its review, as readable rows.
#[tokio::test(flavor = "multi_thread")]
async fn the_rules_and_their_change_requests_are_shown() {
    let app = TestApp::on_a_socket().await;
    let id = requested_change(&app).await;
    let officer = app.person("ben@oak.example", "compliance");
    let reviewer = app.person("cleo@oak.example", "compliance");
    let review = json!({ "verdict": "approve", "comment": "Read twice" });
    app.post_with_bearer(
        &reviewer,
        &format!("/component-changes/{id}/reviews"),
        review,
    )
    .await
    .data(200);

    let eva = invited(&app, "eva@oak.example", "auditor");
    let browser = TestBrowser::open(EmulatedScreen::Phone).await;
    browser
        .goto(&format!("{}{}", app.url(), path_of(&eva)))
        .await;
    browser.click("main button").await;
    browser.click("nav a[href='/console/rules']").await;

    for text in [
        "holdfast-compliance",
        "Approvals that a change needs: 1",
        "oak-rules 1.0.0",
        "Counsel has <agreed>",
        "1 of 1 approvals",
        "user:cleo@oak.example: Read twice",
    ] {
        browser.read(text).await;
    }

    browser.picture("console-rules-phone").await;
    browser.is_accessible("rules").await;
    let width = "return document.documentElement.scrollWidth <= innerWidth";
    assert_eq!(browser.run(width).await, true, "rules scroll sideways");

    // In force at once, with its reason.
    let apply = format!("/component-changes/{id}/apply");
    app.post_with_bearer(&officer, &apply, json!({}))
        .await
        .data(200);
    browser.goto(&format!("{}/console/rules", app.url())).await;
    browser.read("oak-rules 1.0.0").await;

    browser.read("applied").await;
}

/// Fields that a candidate places elsewhere are drawn with those of the active rules.
#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_comparison_draws_moved_fields() {
    let app = TestApp::on_a_socket().await;
    let officer = app.person("ben@oak.example", "compliance");
    let component = app
        .upload_component(&officer, "oak-placement", "1.0.0", &moved_placement())
        .await
        .data(201);
    let owner = invited(&app, "eva@oak.example", "owner");

    let browser = TestBrowser::open(EmulatedScreen::Phone).await;
    browser
        .goto(&format!("{}{}", app.url(), path_of(&owner)))
        .await;
    browser.click("main button").await;
    browser.see("header nav").await;
    let id = component["component_id"].as_str().unwrap();
    browser
        .goto(&format!("{}/console/components/{id}", app.url()))
        .await;

    browser
        .click("form:has(input[value='generated']) button")
        .await;
    browser
        .read("before in blue, after in red and dashed")
        .await;
    let drawn = "const svg = document.querySelector('.page-drawing svg');
        return [...svg.querySelectorAll('rect[stroke-dasharray]')].map(one => one.getAttribute('stroke-dasharray'))";
    let drawn = browser.run(drawn).await;
    let dashes = drawn.as_array().unwrap();
    assert!(
        dashes.contains(&json!("none")) && dashes.contains(&json!("600 400")),
        "{drawn}"
    );

    let into_view = "document.querySelector('.page-drawing').scrollIntoView()";
    browser.run(into_view).await;
    browser.picture("console-drawn-phone").await;

    browser.is_accessible("comparison").await;
}

/// The records of a month below 100, with the reasons, as a table for a spreadsheet.
#[tokio::test(flavor = "multi_thread")]
async fn records_below_100_are_exported_with_their_reasons() {
    let app = TestApp::start().await;
    let good = app.vaulted_envelope().await;
    let template = app.contract_template().await;
    let mut body = envelope_body(&template["template_id"]);
    body.as_object_mut().unwrap().remove("secured_party");
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let bad = envelope["envelope_id"].as_str().unwrap().to_owned();

    form::sign(&app, envelope["sign_url"].as_str().unwrap()).await;
    app.wait_for(&bad, "vaulted").await;
    let eva = Session::of(&app, "eva@oak.example", "auditor").await;
    let table = async |query: &str| {
        let answer = eva
            .get(&app, &format!("/console/envelopes.csv?{query}"))
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.headers["content-type"], "text/csv; charset=utf-8");

        let mut reader = csv::Reader::from_reader(answer.bytes.as_slice());
        let rows = reader.deserialize().map(Result::unwrap);
        rows.collect::<Vec<std::collections::BTreeMap<String, String>>>()
    };

    let today = holdfast::domain::clock::Clock::default().now().to_string();
    let (day, _) = today.split_once('T').unwrap();
    let below = table(&format!(
        "status=vaulted&score_below=100&from={day}&to={day}"
    ))
    .await;
    assert_eq!(below.len(), 1, "{below:?}");
    assert_eq!(below[0]["envelope_id"], bad);
    assert!(
        below[0]["failed_checks"].contains("Secured party identified"),
        "{below:?}"
    );

    let all = table("").await;
    assert_eq!(all.len(), 2);
    assert!(
        all.iter()
            .any(|row| row["envelope_id"] == good && row["failed_checks"].is_empty())
    );
    assert_eq!(table("to=2020-01-01").await.len(), 0);
    assert_eq!(table("q=nothing-like-this").await.len(), 0);

    let log = eva.get(&app, "/console/audit.csv").await.text();
    assert!(
        log.lines().next().unwrap() == "id,at,actor,action,details"
            && log.contains("user.signed_in")
    );
}
