//! The request log, usage, and the installation as its operator sees it.

use std::net::TcpListener;

use axum::http::Method;
use holdfast::config::Config;
use holdfast::domain::id::OrgId;
use serde_json::{Value, json};

use super::console::{Session, invited, path_of};
use crate::support::browser::{EmulatedScreen, TestBrowser};
use crate::support::process::{ServerHome, ServerProcess, this_program};
use crate::support::{TestApp, envelope_body, operator};

async fn log(app: &TestApp, query: &str) -> Vec<Value> {
    let developer = app.person("dev@oak.example", "developer");
    let path = format!("/request-log?{query}");
    let found = app.get_with_bearer(&developer, &path).await.data(200);
    found.as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_kept_without_what_is_private() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let mut body = envelope_body(&template["template_id"]);
    body["external_id"] = "deal-2041".into();
    body["envelope_name"] = "Loan of Ms Okafor".into();
    body["metadata"] = json!({ "078-05-1121": "her number" });
    body["signers"] = json!([{
        "name": "Jordan Lee", "email": "jordan.lee@example.com", "role": "Buyer", "access": "passcode",
        "passcode": "hidden-passcode",
    }]);

    let made = app.post("/partner/envelopes", body).await;
    let id = made.headers["x-request-id"].to_str().unwrap().to_owned();
    let envelope = made.data(201)["envelope_id"].as_str().unwrap().to_owned();
    let endpoint = json!({ "url": "https://hooks.example.com/all", "events": ["*"] });
    let endpoint = app
        .post_with_bearer(app.web_admin(), "/webhooks/endpoints", endpoint)
        .await
        .data(201);
    let secret = endpoint["secret"].as_str().unwrap();

    app.post("/partner/envelopes", json!({ "envelope_name": 7 }))
        .await
        .error(422);

    let developer = app.person("dev@oak.example", "developer");
    let one = app
        .get_with_bearer(&developer, &format!("/request-log/{id}"))
        .await
        .data(200);
    assert_eq!(
        (&one["method"], &one["status"], &one["route"]),
        (
            &json!("POST"),
            &json!(201),
            &json!("/api/v2/partner/envelopes")
        )
    );
    assert_eq!(one["envelope_id"], envelope);

    assert_eq!(one["request"]["external_id"], "deal-2041");
    assert_eq!(one["request"]["signers"][0]["passcode"], "[not kept]");
    assert_eq!(one["answer"]["data"]["envelope_id"], envelope);

    let all = log(&app, "limit=100").await;
    let text = json!(all).to_string();
    for private in [
        "hidden-passcode",
        secret,
        "jordan.lee@example.com",
        "Jordan Lee",
        "Okafor",
        "078-05-1120",
        "078-05-1121",
        "her number",
    ] {
        assert!(!text.contains(private), "{private}: {text}");
    }

    // By status, path, envelope and key; pages are stable.
    let refused = log(&app, "status=4xx").await;
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0]["status"], 422);
    assert!(refused[0]["answer"]["error"].is_string(), "{refused:?}");
    assert_eq!(
        log(&app, "status=201&path=/api/v2/partner/envelopes")
            .await
            .len(),
        1
    );
    assert_eq!(log(&app, "path=/api/v2/webhooks").await.len(), 1);
    assert_eq!(log(&app, &format!("envelope_id={envelope}")).await.len(), 1);

    let key = one["credential"].as_str().unwrap();
    let of_key = log(&app, &format!("credential={key}&limit=100")).await;
    assert!(of_key.iter().all(|request| request["credential"] == key));

    let first = log(&app, "limit=1").await;
    let next = format!(
        "limit=1&starting_after={}",
        first[0]["request_id"].as_str().unwrap()
    );
    let next = log(&app, &next).await;
    assert!(next[0]["request_id"].as_str() < first[0]["request_id"].as_str());

    // Wrong conditions, other roles, other organizations.
    for wrong in ["status=4x", "status=999", "limit=0", "envelope_id=x"] {
        let answer = app
            .get_with_bearer(&developer, &format!("/request-log?{wrong}"))
            .await;
        assert_eq!(answer.status, 400, "{wrong}: {}", answer.text());
    }

    let sender = app.person("sam@oak.example", "sender");
    assert_eq!(
        app.get_with_bearer(&sender, "/request-log").await.status,
        403
    );

    let other = app.other_admin();
    let path = format!("/request-log/{id}");
    assert_eq!(app.get_with_bearer(&other, &path).await.status, 404);

    let theirs = app.get_with_bearer(&other, "/request-log").await.data(200);
    assert!(!theirs.to_string().contains(&envelope), "{theirs}");
}

/// A developer finds a refused request by its id, with the reason.
#[tokio::test(flavor = "multi_thread")]
async fn a_developer_finds_a_request_by_its_id() {
    let app = TestApp::on_a_socket().await;
    let refused = app
        .post("/partner/envelopes", json!({ "envelope_name": "Sale" }))
        .await;
    let id = refused.headers["x-request-id"].to_str().unwrap().to_owned();
    let dev = invited(&app, "dev@oak.example", "developer");
    let phone = TestBrowser::open(EmulatedScreen::Phone).await;
    phone.goto(&format!("{}{}", app.url(), path_of(&dev))).await;

    phone.click("main button").await;
    phone.click("nav a[href='/console/developers']").await;
    phone.click("a[href='/console/requests']").await;
    phone.type_into("#q", &id).await;
    phone.click(".search button").await;
    phone.until("return location.search.includes('q=')").await;
    phone
        .click(&format!("a[href='/console/requests/{id}']"))
        .await;

    phone.read("customer_email").await;
    phone.picture("console-request-phone").await;
    phone.is_accessible("a request").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_usage_of_a_month_is_counted() {
    let app = TestApp::start().await;
    app.vaulted_envelope().await;
    app.sent_envelope().await;
    let auditor = app.person("eva@oak.example", "auditor");
    let usage = app.get_with_bearer(&auditor, "/usage").await.data(200);
    assert_eq!(
        (&usage["envelopes_created"], &usage["envelopes_vaulted"]),
        (&json!(2), &json!(1))
    );

    let earlier = app.get_with_bearer(&auditor, "/usage?month=2020-02").await;
    let earlier = earlier.data(200);
    assert_eq!(earlier["envelopes_created"], 0);

    let wrong = app.get_with_bearer(&auditor, "/usage?month=2020-13").await;
    assert_eq!(wrong.status, 422);

    let session = Session::of(&app, "eva@oak.example", "auditor").await;
    let page = session.get(&app, "/console/usage").await.text();
    assert!(page.contains("Stored in the vault"), "{page}");
}

/// Pages and lists of the installation.
const OPERATED: [&str; 5] = [
    "/console/operator",
    "/console/operator/organizations.csv",
    "/console/operator/nodes.csv",
    "/console/operator/jobs.csv",
    "/console/live/operator",
];

/// Starts a node with an organization of the operator, and signs its owner in.
async fn operated() -> (TestApp, OrgId, TestApp, Session) {
    let app = TestApp::on_a_socket().await;
    app.vaulted_envelope().await;
    let created = operator(app.data.path(), &["org", "create", "--name", "Operator"]);
    let operates = OrgId::parse(created["org_id"].as_str().unwrap()).unwrap();
    let owned = |config: &mut Config| config.console.operator_org = Some(operates.clone());
    let node = app.another_node(owned).await;
    let olga = Session::at(&app, &operates, "olga@operator.example", "owner").await;
    (app, operates, node, olga)
}

/// A client that asks for the proof that the log only grows is a monitor. The operator sees since when one is missing.
#[tokio::test(flavor = "multi_thread")]
async fn the_operator_sees_monitors_and_exports_the_installation() {
    let (app, operates, node, olga) = operated().await;
    let page = olga.get(&node, "/console/operator").await.text();
    assert!(page.contains("No monitor has asked"), "{page}");

    let _ = rustls::crypto::ring::default_provider().install_default();
    let asked = reqwest::get(format!("{}/api/v2/ledger/head?since=0", app.url())).await;
    assert_eq!(asked.unwrap().status(), 200);

    let page = olga.get(&node, "/console/operator").await.text();
    assert!(
        page.contains("127.0.0.1") && !page.contains("No monitor has asked"),
        "{page}"
    );

    let table = olga.get(&node, "/console/operator/nodes.csv").await.text();
    assert!(table.contains("monitor,127.0.0.1,2"), "{table}");

    // A second question is not noted before ten minutes have passed.
    reqwest::get(format!("{}/api/v2/ledger/head?since=1", app.url()))
        .await
        .unwrap();
    let again = olga.get(&node, "/console/operator/nodes.csv").await.text();
    let monitor = |table: &str| {
        let mut lines = table.lines();
        lines
            .find(|line| line.starts_with("monitor,"))
            .unwrap()
            .to_owned()
    };
    assert_eq!(monitor(&again), monitor(&table));

    let table = olga.get(&node, "/console/operator/organizations.csv").await;
    let table = table.text();
    assert!(
        table.starts_with("org_id,name,envelopes,users,created_at\n"),
        "{table}"
    );
    assert!(
        table.contains(",Maple Street Motors,1,") && table.contains(operates.as_str()),
        "{table}"
    );

    let table = olga.get(&node, "/console/operator/jobs.csv").await.text();
    assert_eq!(table, "job_id,org_id,kind,attempts,run_at,error\n");
}

/// The operator's own organization sees the installation; another one does not, even with users of the same names.
#[tokio::test(flavor = "multi_thread")]
async fn only_the_operators_organization_sees_the_installation() {
    let (app, operates, node, olga) = operated().await;
    let page = olga.get(&node, "/console/operator").await;
    assert_eq!(page.status, 200, "{}", page.text());

    for told in [
        "Records in the vault",
        "holdfast-compliance",
        "Maple Street Motors",
        "database",
        "holdfast ledger monitor --url",
    ] {
        assert!(page.text().contains(told), "{told}: {}", page.text());
    }

    // Neither other roles of it, nor owners of other organizations with the same address.
    let sam = Session::at(&app, &operates, "sam@operator.example", "sender").await;
    let other = Session::of(&app, "olga@operator.example", "owner").await;
    for session in [sam, other] {
        for path in OPERATED {
            assert_eq!(session.get(&node, path).await.status, 403, "{path}");
        }
    }

    let admin = app.person("olga@operator.example", "owner");
    let unknown = node.get_with_bearer(&admin, "/installation").await;
    assert_eq!(unknown.status, 404);

    let arguments = [
        "token",
        "issue",
        "--org",
        operates.as_str(),
        "--email",
        "olga@operator.example",
        "--role",
        "owner",
    ];

    let token = operator(app.data.path(), &arguments);
    let token = token["token"].as_str().unwrap();
    let seen = node
        .as_bearer(Method::GET, token, "/installation", Value::Null)
        .await;
    let seen = seen.data(200);
    let organizations = seen["organizations"].as_array().unwrap();
    let operator = organizations
        .iter()
        .find(|one| one["org_id"] == operates.as_str());
    assert_eq!(operator.unwrap()["users"], 2, "{seen}");
    assert!(seen["checks"].as_array().unwrap().len() >= 8, "{seen}");

    let head = node.get("/ledger/head").await.data(200);
    assert_eq!(seen["log"]["root_hash"], head["root_hash"]);
    assert_eq!(seen["log"]["signed_at"], head["signed_at"]);
}

/// With an own listener, the console is served there only, and nothing else is.
#[tokio::test(flavor = "multi_thread")]
async fn the_console_has_its_own_listener() {
    let data = tempfile::tempdir().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let home = ServerHome {
        program: this_program(),
        data: data.path().to_owned(),
        database: None,
        settings: vec![
            ("HOLDFAST_CONSOLE__LISTEN".into(), address.to_string()),
            ("HOLDFAST_CONSOLE__URL".into(), format!("http://{address}")),
        ],
    };

    let server = ServerProcess::start(&home, &[], &[]).expect("a server");
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let status = async |url: String| client.get(url).send().await.unwrap().status().as_u16();
    assert_eq!(status(format!("{}/console", server.url)).await, 404);
    assert_eq!(status(format!("{}/healthz", server.url)).await, 200);
    assert_eq!(status(format!("http://{address}/console")).await, 303);
    assert_eq!(
        status(format!("http://{address}/console/sign-in")).await,
        200
    );

    for path in [
        "/healthz",
        "/api/v2/openapi.json",
        "/api/v2/partner/envelopes",
        "/metrics",
    ] {
        assert_eq!(
            status(format!("http://{address}{path}")).await,
            404,
            "{path}"
        );
    }

    let org = home.organization("Oak");
    let org = org.as_str();
    let invite = [
        "user",
        "invite",
        "--org",
        org,
        "--email",
        "ada@oak.example",
        "--role",
        "owner",
    ];

    let (_, user) = home.operator("0s", &invite);
    let url = user["url"].as_str().unwrap();
    assert!(
        url.starts_with(&format!("http://{address}/console/enter/")),
        "{url}"
    );
    assert_eq!(status(url.to_owned()).await, 200);
}
