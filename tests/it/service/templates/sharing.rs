//! Folders of templates, and templates that are shared with some users only.
//!
//! | Path to a shared template | For other users |
//! |---|---|
//! | read, change, delete, restore, duplicate, download, versions | 404, as for an unknown one |
//! | envelopes: create, send, copy, plan | 404 |
//! | packages with it, and the field builder | 404; a session ends |
//! | bulk send: source, master | 404 |
//! | lists, exports and pages of the console | without it |

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::{Value, json};

use crate::http::console::Session;
use crate::support::{TestApp, TestResponse, envelope_body, pdf};

/// Insider, who may see the template, and outsider: both are senders.
const INSIDER: &str = "ada@oak.example";
const OUTSIDER: &str = "lee@oak.example";

/// An organization with a template that is shared with one user and one role.
struct SharedLibrary {
    app: TestApp,
    template: String,
    /// A template of all users.
    other: String,
    insider: String,
    outsider: String,
}

impl SharedLibrary {
    async fn new() -> Self {
        let app = TestApp::start().await;
        let id = |made: Value| made["template_id"].as_str().unwrap().to_owned();
        let template = id(app.contract_template().await);
        let other = id(app.contract_template().await);
        let library = Self {
            insider: app.person(INSIDER, "sender"),
            outsider: app.person(OUTSIDER, "sender"),
            template,
            other,
            app,
        };
        let with = json!({ "roles": ["compliance"], "users": ["Ada@Oak.example"] });
        let changed = library.share(&with).await.data(200);
        let expected = json!({ "roles": ["compliance"], "users": [INSIDER] });
        assert_eq!(changed["shared_with"], expected);
        library
    }

    /// Changes as an admin who sees the template.
    async fn share(&self, with: &Value) -> TestResponse {
        let path = format!("/templates/{}", self.template);
        let body = json!({ "shared_with": with });
        self.app.web(Method::PATCH, &path, body).await
    }

    /// Sends a request as a user, without a body when it is null.
    async fn ask(&self, token: &str, method: &Method, path: &str, body: &Value) -> TestResponse {
        let body = match body {
            Value::Null => Body::empty(),
            body => body.to_string().into(),
        };
        let request = Request::builder()
            .method(method)
            .uri(format!("/api/v2{path}"))
            .header("authorization", format!("Bearer {token}"))
            .header("x-org-id", self.app.org.as_str())
            .header("content-type", "application/json");
        self.app.send(request.body(body).unwrap()).await
    }

    /// Returns the ids of a list, as a user sees it.
    async fn listed(&self, token: &str, path: &str, id: &str) -> (Vec<String>, Value) {
        let list = self.ask(token, &Method::GET, path, &Value::Null).await;
        let list = list.json();
        let items = list["data"].as_array().unwrap().iter();
        let ids = items.map(|item| item[id].as_str().unwrap().to_owned());
        (ids.collect(), list["meta"]["total"].clone())
    }

    async fn made(&self, path: &str, body: Value, id: &str) -> String {
        let made = self.app.web(Method::POST, path, body).await.data(201);
        made[id].as_str().unwrap().to_owned()
    }
}

/// Returns a time in so many days, as the API takes it.
fn in_days(days: u32) -> String {
    let day = std::time::Duration::from_secs(86_400);
    let at = holdfast::domain::clock::Clock::default().now() + day * days;
    at.to_string()
}

/// Returns the body of an envelope without a document.
fn draft() -> Value {
    let mut body = envelope_body(&Value::Null);
    body.as_object_mut().unwrap().remove("template_id");
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn each_path_to_a_shared_template_is_closed_to_other_users() {
    let library = SharedLibrary::new().await;
    let (template, other) = (&library.template, &library.other);
    let package = json!({ "name": "Sale", "template_ids": [template, other] });
    let package = library
        .made("/document-packages", package, "package_id")
        .await;
    let batch = json!({ "name": "Notice", "document_source": "new" });
    let batch = library.made("/bulk-send", batch, "batch_id").await;
    let batch_of_it = json!({
        "name": "Notice", "document_source": "template", "source_template_id": template,
    });
    let batch_of_it = library.made("/bulk-send", batch_of_it, "batch_id").await;
    let sent = envelope_body(&json!(template));
    let sent = library.made("/envelopes", sent, "envelope_id").await;
    let draft = library.made("/envelopes", draft(), "envelope_id").await;
    let mut planned = envelope_body(&json!(template));
    planned["send_at"] = json!(in_days(3));
    let planned = library.made("/envelopes", planned, "envelope_id").await;

    let own = format!("/templates/{template}");
    let send = format!("/envelopes/{draft}/send");
    let builder = "/esign/builder-session";
    let of_batch =
        json!({ "name": "Notice", "document_source": "template", "source_template_id": template });
    let cases = [
        (Method::GET, own.clone(), Value::Null),
        (Method::PATCH, own.clone(), json!({ "name": "Mine" })),
        (Method::GET, format!("{own}/document"), Value::Null),
        (Method::GET, format!("{own}/versions"), Value::Null),
        (
            Method::POST,
            format!("{own}/versions"),
            json!({ "from_version": 1 }),
        ),
        (
            Method::POST,
            format!("{own}/duplicate"),
            json!({ "name": "Mine" }),
        ),
        (
            Method::POST,
            "/envelopes".into(),
            envelope_body(&json!(template)),
        ),
        (
            Method::POST,
            send.clone(),
            json!({ "template_id": template }),
        ),
        (
            Method::POST,
            send.clone(),
            json!({ "template_ids": [other, template] }),
        ),
        (Method::POST, send, json!({ "package_id": package })),
        (Method::POST, format!("/envelopes/{sent}/copy"), Value::Null),
        (
            Method::PUT,
            format!("/envelopes/{planned}/send-at"),
            json!({ "send_at": in_days(4) }),
        ),
        (
            Method::POST,
            format!("/envelopes/{planned}/send"),
            json!({}),
        ),
        (
            Method::POST,
            builder.into(),
            json!({ "template_id": template }),
        ),
        (
            Method::POST,
            builder.into(),
            json!({ "template_ids": [template, other] }),
        ),
        (
            Method::POST,
            builder.into(),
            json!({ "batch_id": batch_of_it }),
        ),
        (
            Method::POST,
            "/document-packages".into(),
            json!({ "name": "Mine", "template_ids": [template] }),
        ),
        (
            Method::GET,
            format!("/document-packages/{package}"),
            Value::Null,
        ),
        (
            Method::PATCH,
            format!("/document-packages/{package}"),
            json!({ "name": "Mine" }),
        ),
        (
            Method::PATCH,
            format!("/document-packages/{package}"),
            json!({ "template_ids": [other] }),
        ),
        (Method::POST, "/bulk-send".into(), of_batch),
        (
            Method::PATCH,
            format!("/bulk-send/{batch}"),
            json!({ "master_template_id": template }),
        ),
        (Method::DELETE, own.clone(), Value::Null),
    ];
    for (method, path, body) in &cases {
        let refused = library.ask(&library.outsider, method, path, body).await;
        let name = format!("{method} {path} {body}");
        assert_eq!(refused.status, 404, "{name}: {}", refused.text());
    }

    // The same requests reach the template for a user who may see it.
    for (method, path, body) in &cases {
        let answer = library.ask(&library.insider, method, path, body).await;
        let name = format!("{method} {path} {body}");
        assert!(
            ![403, 404].contains(&answer.status.as_u16()),
            "{name}: {}",
            answer.text()
        );
    }

    // It is deleted now.
    let restore = format!("{own}/restore");
    let refused = library
        .ask(&library.outsider, &Method::POST, &restore, &Value::Null)
        .await;
    assert_eq!(refused.error(404), "Template not found");
    let restored = library
        .ask(&library.insider, &Method::POST, &restore, &Value::Null)
        .await;
    restored.data(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_pages_leave_out_what_is_not_shared() {
    let library = SharedLibrary::new().await;
    let (template, other) = (&library.template, &library.other);
    let package = json!({ "name": "Sale", "template_ids": [other, template] });
    library
        .made("/document-packages", package, "package_id")
        .await;

    let lists = [
        ("/templates", "template_id", 1),
        ("/document-packages", "package_id", 0),
    ];
    for (path, id, expected) in lists {
        let (ids, total) = library.listed(&library.outsider, path, id).await;
        assert_eq!((ids.len(), total), (expected, json!(expected)), "{path}");
        assert!(!ids.contains(template));
        let (ids, total) = library.listed(&library.insider, path, id).await;
        assert_eq!(
            (ids.len(), total),
            (expected + 1, json!(expected + 1)),
            "{path}"
        );
    }
    for role in ["compliance", "owner", "admin"] {
        let token = library.app.person("kim@oak.example", role);
        let (ids, _) = library.listed(&token, "/templates", "template_id").await;
        assert!(ids.contains(template), "{role}");
    }

    let outsider = Session::of(&library.app, OUTSIDER, "sender").await;
    let insider = Session::of(&library.app, INSIDER, "sender").await;
    for page in [
        "/templates",
        "/send",
        "/packages",
        "/bulk",
        "/templates.csv",
    ] {
        let page = format!("/console{page}");
        let shown = outsider.get(&library.app, &page).await.text();
        assert!(!shown.contains(template.as_str()), "{page}: {shown}");
    }
    for page in ["", "/document", "/pages/1.png", "/preview", "/open-links"] {
        let page = format!("/console/templates/{template}{page}");
        let refused = outsider.get(&library.app, &page).await;
        assert_eq!(refused.status, 404, "{page}");
        let shown = insider.get(&library.app, &page).await;
        assert_eq!(shown.status, 200, "{page}: {}", shown.text());
    }
    let draft = outsider
        .post(
            &library.app,
            "/console/drafts/template",
            &format!("template={template}"),
        )
        .await;
    assert_eq!(draft.status, 404);

    // A deleted one is in the list of those who could restore it.
    let path = format!("/templates/{template}");
    library
        .app
        .web(Method::DELETE, &path, Value::Null)
        .await
        .data(200);
    let deleted = "/templates?deleted=true";
    let (ids, _) = library
        .listed(&library.outsider, deleted, "template_id")
        .await;
    assert!(ids.is_empty());
    let (ids, _) = library
        .listed(&library.insider, deleted, "template_id")
        .await;
    assert_eq!(&ids, std::slice::from_ref(template));
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_and_open_links_do_not_depend_on_the_sharing() {
    let library = SharedLibrary::new().await;
    let app = &library.app;
    let body = envelope_body(&json!(library.template));
    app.post("/partner/envelopes", body).await.data(201);

    let path = format!("/partner/templates/{}/open-links", library.template);
    let body = json!({ "name": "Membership", "expires_at": "2030-12-31T23:59:59Z", "limit": 10 });
    let link = app.post(&path, body).await.data(201);
    let id = link["open_link_id"].as_str().unwrap();

    // Another user can neither see nor close it.
    let outsider = Session::of(app, OUTSIDER, "sender").await;
    let qr = outsider
        .get(app, &format!("/console/open-links/{id}/qr.svg"))
        .await;
    assert_eq!(qr.status, 404);
    let close = format!("/console/open-links/{id}/close");
    assert_eq!(outsider.post(app, &close, "sure=yes").await.status, 404);
    let path = format!("/partner/open-links/{id}");
    assert_eq!(app.get(&path).await.data(200)["status"], "open");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_the_builder_ends_with_the_sharing() {
    let library = SharedLibrary::new().await;
    let app = &library.app;
    let body = json!({ "template_id": library.template });
    let path = "/esign/builder-session";
    let session = library
        .ask(&library.insider, &Method::POST, path, &body)
        .await;
    let session = session.data(201);
    let url = session["builder_url"].as_str().unwrap();
    let (_, token) = url.split_once("#token=").unwrap();
    app.builder(token, "GET", "/builder/template", None)
        .await
        .data(200);

    library
        .share(&json!({ "roles": ["auditor"] }))
        .await
        .data(200);
    let ended = app.builder(token, "GET", "/builder/template", None).await;
    assert_eq!(ended.error(401), "Invalid token");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planned_sending_ends_with_the_sharing() {
    let library = SharedLibrary::new().await;
    let mut body = envelope_body(&json!(library.template));
    body["send_at"] = json!(in_days(2));
    let planned = library
        .ask(&library.insider, &Method::POST, "/envelopes", &body)
        .await
        .data(201);
    library
        .share(&json!({ "roles": ["auditor"] }))
        .await
        .data(200);

    let later = std::time::Duration::from_secs(2 * 86_400 + 3_600);
    let later = library.app.as_of(later).await;
    let path = format!(
        "/partner/envelopes/{}",
        planned["envelope_id"].as_str().unwrap()
    );
    let mut envelope = Value::Null;
    for _ in 0..200 {
        envelope = later.get(&path).await.data(200);
        if envelope["sending_failure"].is_object() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(
        envelope["sending_failure"]["reason"],
        "Whoever planned the sending does not see the template any more"
    );
    assert_eq!(envelope["status"], "pending");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_made_of_a_shared_template_is_shared_alike() {
    let library = SharedLibrary::new().await;
    let path = format!("/templates/{}/duplicate", library.template);
    let body = json!({ "name": "Copy" });
    let copy = library
        .ask(&library.insider, &Method::POST, &path, &body)
        .await;
    let expected = json!({ "roles": ["compliance"], "users": [INSIDER] });
    assert_eq!(copy.data(201)["shared_with"], expected);

    let body = json!({ "template_ids": [library.other, library.template] });
    let path = "/esign/builder-session";
    let merged = library
        .ask(&library.insider, &Method::POST, path, &body)
        .await;
    let merged = merged.data(201);
    let path = format!("/templates/{}", merged["template_id"].as_str().unwrap());
    let refused = library
        .ask(&library.outsider, &Method::GET, &path, &Value::Null)
        .await;
    assert_eq!(refused.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_shares_a_template_and_cannot_lock_themselves_out() {
    let library = SharedLibrary::new().await;
    let path = format!("/templates/{}", library.template);
    let share = async |with: Value| {
        let body = json!({ "shared_with": with });
        library
            .ask(&library.insider, &Method::PATCH, &path, &body)
            .await
    };
    let refused = share(json!({ "roles": ["auditor"] })).await;
    assert_eq!(refused.status, 422);
    assert_eq!(refused.json()["details"][0]["code"], "excludes_caller");
    let unknown = share(json!({ "roles": ["dealer"] })).await;
    assert_eq!(unknown.status, 422);

    let all = share(json!({})).await.data(200);
    assert_eq!(all["shared_with"], json!({ "roles": [], "users": [] }));
    let seen = library
        .ask(&library.outsider, &Method::GET, &path, &Value::Null)
        .await;
    seen.data(200);

    let log = library
        .app
        .get_with_bearer(library.app.web_admin(), "/audit-log")
        .await;
    let log = log.json();
    let entries = log["data"].as_array().unwrap();
    let shared = entries
        .iter()
        .filter(|entry| entry["action"] == "template.shared");
    let shared: Vec<&Value> = shared.collect();
    assert_eq!(shared.len(), 2, "{log}");
    let entry = shared
        .iter()
        .find(|entry| entry["actor"] == format!("user:{INSIDER}"));
    let details = &entry.unwrap()["details"];
    assert_eq!(details["template_id"], json!(library.template));
    assert_eq!(details["before"]["users"], json!([INSIDER]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_is_limited_from_its_creation() {
    let library = SharedLibrary::new().await;
    let shared = r#"{"roles":["auditor"]}"#;
    let texts = [
        ("name", "Secret"),
        ("folder", "Board / 2027"),
        ("shared_with", shared),
    ];
    let document = pdf::with_lines(&["{{Sign;type=signature;role=Buyer}}"]);
    let made = library
        .app
        .library_template(&texts, &document)
        .await
        .data(201);
    assert_eq!(made["folder"], "Board/2027");
    assert_eq!(made["shared_with"]["roles"], json!(["auditor"]));

    let body = json!({ "name": "Draft", "shared_with": { "users": ["kim@oak.example"] } });
    let draft = library
        .app
        .web(Method::POST, "/templates", body)
        .await
        .data(201);
    let (ids, _) = library
        .listed(&library.outsider, "/templates", "template_id")
        .await;
    for made in [made, draft] {
        assert!(!ids.contains(&made["template_id"].as_str().unwrap().to_owned()));
    }

    let texts = [("name", "Secret"), ("shared_with", "{")];
    let refused = library
        .app
        .library_template(&texts, &document)
        .await
        .error(400);
    assert!(
        refused.starts_with("shared_with is not valid JSON"),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_are_paths_by_which_a_list_is_filtered() {
    let library = SharedLibrary::new().await;
    let app = &library.app;
    let move_to = async |template: &str, folder: &str| {
        let path = format!("/templates/{template}");
        app.web(Method::PATCH, &path, json!({ "folder": folder }))
            .await
    };
    let moved = move_to(&library.template, "Sales/Ohio").await.data(200);
    assert_eq!(moved["folder"], "Sales/Ohio");
    move_to(&library.other, "Sales 2").await.data(200);

    let admin = app.web_admin();
    for (folder, expected) in [
        ("Sales", vec![&library.template]),
        ("Sales/Ohio", vec![&library.template]),
        ("Sales%202", vec![&library.other]),
        ("Sal", vec![]),
        ("Ohio", vec![]),
    ] {
        let path = format!("/templates?folder={folder}");
        let (ids, _) = library.listed(admin, &path, "template_id").await;
        assert_eq!(ids.iter().collect::<Vec<_>>(), expected, "{folder}");
    }

    // The folders of a template that is not shared with a user are not shown.
    let outsider = Session::of(app, OUTSIDER, "sender").await;
    let page = outsider.get(app, "/console/templates").await.text();
    assert!(page.contains("Sales 2"), "{page}");
    assert!(!page.contains("Sales/Ohio"), "{page}");

    let refused = move_to(&library.template, "a/b/c/d").await;
    assert_eq!(refused.status, 422);
    assert_eq!(refused.json()["details"][0]["path"], json!(["folder"]));
    let top = move_to(&library.template, "").await.data(200);
    assert_eq!(top["folder"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_console_moves_and_shares_a_template() {
    let library = SharedLibrary::new().await;
    let app = &library.app;
    let insider = Session::of(app, INSIDER, "sender").await;
    let path = format!("/console/templates/{}/rename", library.template);
    let form = "name=Lease&tags=&folder=Leases&shared_sender=yes&shared_users=";
    let changed = insider.post(app, &path, form).await;
    assert_eq!(changed.status, 303, "{}", changed.text());
    let own = format!("/templates/{}", library.template);
    let read = app.web(Method::GET, &own, Value::Null).await.data(200);
    assert_eq!(read["folder"], "Leases");
    assert_eq!(
        read["shared_with"],
        json!({ "roles": ["sender"], "users": [] })
    );

    // The form comes back with the entries.
    let form = "name=Lease&folder=a/b/c/d&shared_auditor=yes&shared_users=kim@oak.example";
    let refused = insider.post(app, &path, form).await;
    assert_eq!(refused.status, 422);
    let page = refused.text();
    assert!(
        page.contains("a/b/c/d") && page.contains("kim@oak.example"),
        "{page}"
    );
}
