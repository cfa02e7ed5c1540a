//! Every page and act of the console by role and organization.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use holdfast::domain::component::Slot;
use holdfast::domain::organization::{Permission, Role};
use serde_json::{Value, json};

use super::console::Session;
use crate::service::components::registry::variant;
use crate::support::{TestApp, envelope_body, operator};

/// Pages and acts with the permission that they need; none if all users have them. `{…}` is an id.
const CELLS: &[(&str, &str, Option<Permission>)] = {
    use Permission::*;
    &[
        ("GET", "", None),
        ("POST", "/confirm", None),
        ("GET", "/sessions", None),
        ("POST", "/sessions/{id}/end", None),
        ("GET", "/envelopes", Some(ReadEnvelopes)),
        ("GET", "/activity", Some(ReadEnvelopes)),
        ("POST", "/filters", Some(ReadEnvelopes)),
        ("POST", "/filters/remove", Some(ReadEnvelopes)),
        ("GET", "/customers", Some(ReadEnvelopes)),
        ("GET", "/customers/{id}", Some(ReadEnvelopes)),
        ("POST", "/customers/{id}/export", Some(Hold)),
        ("GET", "/customers/{id}/erasure", Some(Hold)),
        ("POST", "/customers/{id}/erasure/{step}", Some(Hold)),
        ("GET", "/customers.csv", Some(ReadEnvelopes)),
        ("GET", "/envelopes/{id}", Some(ReadEnvelopes)),
        ("GET", "/envelopes/{id}/decisions", Some(ReadEvidence)),
        ("POST", "/envelopes/act", Some(Send)),
        ("POST", "/envelopes/{id}/links", Some(Send)),
        ("POST", "/envelopes/{id}/embed", Some(Send)),
        ("GET", "/envelopes/{id}/files/{file}", Some(ReadEnvelopes)),
        ("POST", "/envelopes/{id}/signers/{position}", Some(Send)),
        ("POST", "/envelopes/{id}/remind", Some(Send)),
        ("POST", "/envelopes/{id}/questions/{question}", Some(Send)),
        ("POST", "/envelopes/{id}/void", Some(Send)),
        ("POST", "/envelopes/{id}/edit", Some(Send)),
        ("POST", "/envelopes/{id}/send", Some(Send)),
        ("POST", "/envelopes/{id}/dates", Some(Send)),
        ("POST", "/envelopes/{id}/dates/remove", Some(Send)),
        ("POST", "/envelopes/{id}/extend", Some(Send)),
        ("POST", "/envelopes/{id}/copy", Some(Send)),
        ("POST", "/envelopes/{id}/correct", Some(Send)),
        ("POST", "/envelopes/{id}/vault", Some(Send)),
        ("GET", "/envelopes/{id}/pages/{page}", Some(ReadEnvelopes)),
        ("POST", "/envelopes/{id}/verify", Some(ReadEvidence)),
        ("POST", "/envelopes/{id}/funding-check", Some(Send)),
        ("POST", "/envelopes/{id}/stipulations", Some(Send)),
        (
            "POST",
            "/envelopes/{id}/stipulations/{kind}/file",
            Some(Send),
        ),
        (
            "POST",
            "/envelopes/{id}/stipulations/{kind}/waive",
            Some(Send),
        ),
        ("GET", "/live", Some(ReadEnvelopes)),
        ("GET", "/live/templates", Some(ReadEnvelopes)),
        ("GET", "/live/packages", Some(ReadEnvelopes)),
        ("GET", "/live/bulk", Some(Send)),
        ("GET", "/live/control", Some(ReadControl)),
        ("GET", "/live/control/keys", Some(ReadControl)),
        ("GET", "/live/transfers", Some(ReadControl)),
        ("GET", "/live/rules", Some(ReadEvidence)),
        ("GET", "/live/developers", Some(Integrate)),
        ("GET", "/live/requests", Some(Integrate)),
        ("GET", "/live/audit", Some(Audit)),
        ("GET", "/live/users", Some(Administer)),
        ("GET", "/live/sessions", None),
        ("GET", "/receivers/{id}/live", Some(Integrate)),
        ("GET", "/send", Some(Send)),
        ("POST", "/drafts", Some(Send)),
        ("POST", "/drafts/template", Some(Send)),
        ("GET", "/drafts/{id}", Some(Send)),
        ("GET", "/drafts/{id}/people", Some(Send)),
        ("POST", "/drafts/{id}/people", Some(Send)),
        ("GET", "/drafts/{id}/fields", Some(Send)),
        ("POST", "/drafts/{id}/fields", Some(Send)),
        ("GET", "/drafts/{id}/details", Some(Send)),
        ("POST", "/drafts/{id}/details", Some(Send)),
        ("GET", "/drafts/{id}/review", Some(Send)),
        ("POST", "/drafts/{id}/review", Some(Send)),
        ("GET", "/templates", Some(ReadEnvelopes)),
        ("POST", "/templates", Some(Send)),
        ("GET", "/templates/{id}", Some(ReadEnvelopes)),
        ("GET", "/templates/{id}/pages/{page}", Some(ReadEnvelopes)),
        ("GET", "/templates/{id}/preview", Some(ReadEnvelopes)),
        ("POST", "/templates/{id}/edit", Some(Send)),
        ("POST", "/templates/{id}/rename", Some(Send)),
        ("POST", "/templates/{id}/delete", Some(Send)),
        ("POST", "/templates/{id}/restore", Some(Send)),
        ("POST", "/templates/{id}/duplicate", Some(Send)),
        ("GET", "/templates/{id}/document", Some(ReadEnvelopes)),
        ("POST", "/templates/{id}/versions", Some(Send)),
        ("POST", "/templates/{id}/versions/confirm", Some(Send)),
        ("POST", "/templates/{id}/versions/restore", Some(Send)),
        ("GET", "/templates/{id}/open-links", Some(Send)),
        ("POST", "/templates/{id}/open-links", Some(Send)),
        ("GET", "/open-links/{id}/qr.svg", Some(Send)),
        ("POST", "/open-links/{id}/close", Some(Send)),
        ("GET", "/imports", Some(ReadEnvelopes)),
        ("POST", "/imports", Some(Send)),
        ("GET", "/imports/{id}", Some(ReadEnvelopes)),
        ("GET", "/imports/{id}/report.csv", Some(ReadEnvelopes)),
        ("GET", "/packages", Some(ReadEnvelopes)),
        ("POST", "/packages", Some(Send)),
        ("POST", "/packages/{id}", Some(Send)),
        ("GET", "/bulk", Some(Send)),
        ("POST", "/bulk", Some(Send)),
        ("GET", "/bulk/{id}", Some(Send)),
        ("GET", "/bulk/{id}/events", Some(Send)),
        ("POST", "/bulk/{id}/table", Some(Send)),
        ("POST", "/bulk/{id}/clients", Some(Send)),
        ("POST", "/bulk/{id}/{act}", Some(Send)),
        ("GET", "/vault", Some(ReadEvidence)),
        ("GET", "/vault.csv", Some(ReadEvidence)),
        ("GET", "/control", Some(ReadControl)),
        ("GET", "/control/keys", Some(ReadControl)),
        ("GET", "/control/records/{id}", Some(ReadControl)),
        ("POST", "/control/records/{id}/copy", Some(ReadControl)),
        ("POST", "/control/{act}/{id}", Some(Control)),
        ("GET", "/transfers", Some(ReadControl)),
        ("GET", "/transfers/{id}", Some(ReadControl)),
        ("GET", "/transfers/{id}/tape.csv", Some(ReadControl)),
        ("GET", "/tapes", Some(ReadControl)),
        ("POST", "/tapes", Some(Control)),
        ("POST", "/tapes/maps", Some(Control)),
        ("GET", "/tapes/{id}", Some(ReadControl)),
        ("GET", "/tapes/{id}/columns", Some(Control)),
        ("POST", "/tapes/{id}/columns", Some(Control)),
        ("POST", "/tapes/{id}/delete", Some(Control)),
        ("GET", "/tapes/{id}/pictures/{picture}", Some(ReadControl)),
        ("GET", "/tapes/{id}/report/{format}", Some(ReadControl)),
        ("GET", "/fact-maps", Some(ReadEnvelopes)),
        ("POST", "/fact-maps", Some(Send)),
        ("GET", "/fact-maps/{id}", Some(ReadEnvelopes)),
        ("POST", "/fact-maps/{id}", Some(Send)),
        ("POST", "/fact-maps/{id}/versions", Some(Send)),
        ("GET", "/funding", Some(ReadEvidence)),
        ("POST", "/funding", Some(ChangeRules)),
        ("POST", "/funding/{id}/versions", Some(ChangeRules)),
        ("POST", "/funding/{id}/invitations", Some(ChangeRules)),
        ("POST", "/funding/{id}/subscription", Some(ChangeRules)),
        ("GET", "/holds", Some(ReadEvidence)),
        ("POST", "/holds", Some(Hold)),
        ("POST", "/holds/{id}/{step}", Some(Hold)),
        ("GET", "/retention", Some(ReadEvidence)),
        ("POST", "/retention", Some(Hold)),
        ("GET", "/destructions", Some(ReadEvidence)),
        ("POST", "/destructions", Some(Hold)),
        ("POST", "/destructions/{id}/{step}", Some(Hold)),
        (
            "GET",
            "/destructions/{id}/certificate/{file}",
            Some(ReadEvidence),
        ),
        ("GET", "/rules", Some(ReadEvidence)),
        ("GET", "/rules/{slot}", Some(ReadEvidence)),
        ("POST", "/rules/{slot}/activate/{id}", Some(ChangeRules)),
        ("POST", "/rules/{slot}/roll-back/{id}", Some(ChangeRules)),
        ("POST", "/components", Some(ChangeRules)),
        ("GET", "/components/{id}", Some(ReadEvidence)),
        ("POST", "/components/{id}/compare", Some(ReadEvidence)),
        ("GET", "/changes/{id}", Some(ReadEvidence)),
        ("POST", "/changes/{id}/review", Some(ChangeRules)),
        ("POST", "/changes/{id}/{act}", Some(ChangeRules)),
        ("GET", "/developers", Some(Integrate)),
        ("POST", "/keys", Some(Administer)),
        ("POST", "/keys/{id}/rotate", Some(Administer)),
        ("POST", "/keys/{id}/deactivate", Some(Integrate)),
        ("POST", "/receivers", Some(Integrate)),
        ("GET", "/receivers/{id}", Some(Integrate)),
        ("POST", "/receivers/{id}/edit", Some(Integrate)),
        ("POST", "/receivers/{id}/test", Some(Integrate)),
        ("POST", "/receivers/{id}/enable", Some(Integrate)),
        ("POST", "/receivers/{id}/disable", Some(Integrate)),
        ("POST", "/receivers/{id}/rotate", Some(Integrate)),
        ("POST", "/receivers/{id}/delete", Some(Integrate)),
        ("GET", "/deliveries/{id}", Some(Integrate)),
        ("POST", "/deliveries/{id}/redeliver", Some(Integrate)),
        ("GET", "/audit", Some(Audit)),
        ("GET", "/users", Some(Administer)),
        ("POST", "/users", Some(Administer)),
        ("POST", "/users/{id}/role", Some(Administer)),
        ("POST", "/users/{id}/invite", Some(Administer)),
        ("POST", "/users/{id}/end", Some(Administer)),
        ("GET", "/usage", Some(Audit)),
        ("GET", "/requests", Some(Integrate)),
        ("GET", "/requests/{id}", Some(Integrate)),
        ("GET", "/settings", Some(Administer)),
        ("GET", "/settings/{part}", Some(Administer)),
        ("POST", "/settings/{part}", Some(Administer)),
        ("GET", "/envelopes.csv", Some(ReadEnvelopes)),
        ("GET", "/audit.csv", Some(Audit)),
        ("GET", "/users.csv", Some(Administer)),
        ("GET", "/templates.csv", Some(ReadEnvelopes)),
        ("GET", "/batches.csv", Some(Send)),
        ("GET", "/bulk/{id}/clients.csv", Some(Send)),
        ("GET", "/transfers.csv", Some(ReadControl)),
        ("GET", "/packages.csv", Some(ReadEnvelopes)),
        ("GET", "/control.csv", Some(ReadControl)),
        ("GET", "/control/keys.csv", Some(ReadControl)),
        ("GET", "/keys.csv", Some(Integrate)),
        ("GET", "/receivers.csv", Some(Integrate)),
        ("GET", "/changes.csv", Some(ReadEvidence)),
        ("GET", "/activations.csv", Some(ReadEvidence)),
        ("GET", "/components.csv", Some(ReadEvidence)),
        ("GET", "/requests.csv", Some(Integrate)),
        ("GET", "/sessions.csv", None),
        ("GET", "/receivers/{id}/deliveries.csv", Some(Integrate)),
    ]
};

/// The sign-in, answers of devices, the pages of the operator, and the sign-out, which would end the session of the walk.
const WITHOUT_ROLE: &[(&str, &str)] = &[
    ("GET", "/sign-in"),
    ("POST", "/sign-in"),
    ("POST", "/sign-in/passkey"),
    ("GET", "/enter/{link}/{code}"),
    ("POST", "/enter/{link}/{code}"),
    ("GET", "/sso"),
    ("GET", "/sso/callback"),
    ("GET", "/sso/{org}"),
    ("POST", "/sso/{org}"),
    ("POST", "/passkeys"),
    ("POST", "/passkeys/{id}/remove"),
    ("GET", "/operator"),
    ("GET", "/operator/organizations.csv"),
    ("GET", "/operator/nodes.csv"),
    ("GET", "/operator/jobs.csv"),
    ("GET", "/live/operator"),
    ("POST", "/sign-out"),
];

/// Returns the routes in the source of the console, as methods and paths.
pub(super) fn routes() -> BTreeSet<(String, String)> {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/crates/http/src/pages/console/mod.rs"
    );
    let source = fs::read_to_string(file).unwrap();
    let mut found = BTreeSet::new();
    for route in source.split(".route(").skip(1) {
        let path = match route.trim_start().strip_prefix("PATH") {
            Some(_) => String::new(),
            None => route.split('"').nth(1).unwrap().to_owned(),
        };
        for (call, method) in [("get(", "GET"), (" live(", "GET"), ("post(", "POST")] {
            if route.contains(call) {
                found.insert((method.to_owned(), path.clone()));
            }
        }
    }

    found
}

#[test]
fn every_route_of_the_console_is_in_the_table() {
    let cells = CELLS.iter().map(|(method, path, _)| (*method, *path));
    let known: BTreeSet<(String, String)> = cells
        .chain(WITHOUT_ROLE.iter().copied())
        .map(|(method, path)| (method.to_owned(), path.to_owned()))
        .collect();
    assert_eq!(routes(), known);
}

/// Ids of an organization.
pub(super) struct KnownIds {
    pub(super) envelope: String,
    pub(super) template: String,
    pub(super) batch: String,
    component: String,
    pub(super) change: String,
    endpoint: String,
    pub(super) customer: String,
}

pub(super) async fn ids_of(app: &TestApp) -> KnownIds {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let template = app.contract_template().await;
    let body = envelope_body(&template["template_id"]);
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let admin = app.web_admin();
    let batch = json!({ "name": "All", "document_source": "template", "source_template_id": template["template_id"] });
    let batch = app.web(Method::POST, "/bulk-send", batch).await.data(201);

    let bytes = variant(Slot::Compliance, "of the organization");
    let component = app
        .upload_component(admin, "oak-rules", "1.0.0", &bytes)
        .await
        .data(201);
    let change = json!({
        "change": { "action": "activate", "slot": "rules.compliance", "component_id": component["component_id"] },
        "reason": "Counsel", "source": { "url": "https://git.oak.example/rules", "commit": "4f1c2ab" },
    });
    let change = app
        .post_with_bearer(admin, "/component-changes", change)
        .await
        .data(201);

    let endpoint = json!({ "url": "https://hooks.example.com/all", "events": ["*"] });
    let endpoint = app
        .post_with_bearer(admin, "/webhooks/endpoints", endpoint)
        .await
        .data(201);
    KnownIds {
        envelope: text(&envelope["envelope_id"]),
        template: text(&template["template_id"]),
        batch: text(&batch["batch_id"]),
        component: text(&component["component_id"]),
        change: text(&change["change_id"]),
        endpoint: text(&endpoint["endpoint_id"]),
        customer: text(&envelope["customer_id"]),
    }
}

impl KnownIds {
    /// Fills the ids of the organization into a path.
    pub(super) fn path(&self, path: &str) -> String {
        let id = [
            ("/envelopes/", &self.envelope),
            ("/control/", &self.envelope),
            ("/templates/", &self.template),
            ("/bulk/", &self.batch),
            ("/components/", &self.component),
            ("/changes/", &self.change),
            ("/receivers/", &self.endpoint),
            ("/customers/", &self.customer),
        ];

        let mut id = id.into_iter().filter(|(begin, _)| path.starts_with(begin));
        let id = id
            .next()
            .map_or("x_01h455vb4pex5vsknk084sn02q", |(_, id)| id);
        let path = path
            .replace("{id}", id)
            .replace("{slot}", "rules.compliance")
            .replace("{page}", "1.png")
            .replace("{part}", "general")
            .replace("{file}", "copy")
            .replace("{format}", "csv")
            .replace("{kind}", "insurance")
            .replace("{picture}", "2-0.png")
            .replace("{position}", "0")
            .replace("{question}", "qst_01jdk7m3e8f4x9s2w5v6b0c1dh")
            .replace("{step}", "lift")
            .replace("{act}", "unknown");

        format!("/console{path}")
    }
}

/// Returns the status of a page without reading it: some stream.
async fn status(app: &TestApp, path: &str, cookie: &str) -> u16 {
    let request = Request::get(path)
        .header("accept", "text/html")
        .header("cookie", cookie)
        .body(Body::empty())
        .unwrap();
    let answer = tokio::time::timeout(Duration::from_secs(20), app.begin(request));
    answer.await.expect("an answer").status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_role_has_exactly_its_pages_and_acts() {
    let app = TestApp::start().await;
    let known = ids_of(&app).await;
    for role in Role::ALL {
        let email = format!("{role}@oak.example");
        let session = Session::of(&app, &email, role.as_str()).await;
        for (method, path, permission) in CELLS {
            let may = permission.is_none_or(|permission| role.may(permission));
            let given = match *method {
                "GET" => status(&app, &known.path(path), &session.cookie).await,
                // Permitted acts on missing objects change nothing.
                _ if path.starts_with("/changes/") => {
                    let path = known.path(path);
                    session.post(&app, &path, "").await.status.as_u16()
                }
                _ => {
                    let path = format!("/console{path}").replace("{slot}", "rules.compliance");
                    let path = path.replace("{id}", "x_01h455vb4pex5vsknk084sn02q");
                    let path = path.replace("{act}", "accept").replace("{part}", "unknown");
                    let path = path.replace("{position}", "0");
                    let path = path.replace("{kind}", "insurance");
                    let path = path.replace("{question}", "qst_01jdk7m3e8f4x9s2w5v6b0c1dh");
                    session.post(&app, &path, "").await.status.as_u16()
                }
            };
            assert_eq!(given != 403, may, "{method} {path} as {role}: {given}");

            assert_ne!(given, 500, "{method} {path} as {role}");
            assert_ne!(given, 405, "{method} {path} as {role}");
        }
    }
}

/// Acts that a session has to be confirmed for, within ten minutes before: who stole the cookie can do the others. They show
/// links and keys, let people in, or change who decides.
const CONFIRMED: &[&str] = &[
    "/changes/{id}/apply",
    "/changes/{id}/review",
    "/control/{act}/{id}",
    "/envelopes/{id}/embed",
    "/envelopes/{id}/links",
    "/envelopes/{id}/signers/{position}",
    "/envelopes/{id}/stipulations",
    "/envelopes/{id}/stipulations/{kind}/waive",
    "/funding",
    "/funding/{id}/invitations",
    "/funding/{id}/subscription",
    "/funding/{id}/versions",
    "/keys",
    "/keys/{id}/deactivate",
    "/keys/{id}/rotate",
    "/receivers",
    "/receivers/{id}/disable",
    "/receivers/{id}/delete",
    "/receivers/{id}/edit",
    "/receivers/{id}/rotate",
    "/settings/{part}",
    "/users",
    "/users/{id}/end",
    "/users/{id}/invite",
    "/users/{id}/role",
];

#[tokio::test(flavor = "multi_thread")]
async fn acts_with_power_need_a_confirmation_and_the_others_do_not() {
    let app = TestApp::start().await;
    let known = ids_of(&app).await;
    let session = Session::of(&app, "ada@oak.example", "owner").await;
    app.execute("update user_session set confirmed_at = '2026-01-01T00:00:00.000Z'")
        .await;

    let mut asked = BTreeSet::new();
    let acts = CELLS.iter().filter(|(method, ..)| *method == "POST");
    let acts = acts
        .map(|(_, path, _)| *path)
        .chain(["/changes/{id}/apply"]);
    for path in acts {
        // A confirmation itself.
        if path == "/confirm" {
            continue;
        }

        let at = known
            .path(path)
            .replace("/control/unknown/", "/control/accept/");
        let page = session.post(&app, &at, "verdict=approve").await.text();
        if page.contains("Is it you?") {
            asked.insert(path);
        }
    }

    let expected: BTreeSet<&str> = CONFIRMED.iter().copied().collect();
    assert_eq!(asked, expected);
}

/// The stream that a page names exists, and its visitor may read it.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_follows_a_list_that_its_visitor_may_read() {
    let app = TestApp::start().await;
    let known = ids_of(&app).await;
    let mut followed = BTreeSet::new();
    for role in Role::ALL {
        let email = format!("{role}@oak.example");
        let session = Session::of(&app, &email, role.as_str()).await;
        for (method, path, permission) in CELLS {
            let may = permission.is_none_or(|permission| role.may(permission));
            let streams = path.contains("/live") || path.ends_with("/events");
            if *method != "GET" || !may || streams || path.contains(".csv") {
                continue;
            }

            let page = session.get(&app, &known.path(path)).await.text();
            let Some((_, rest)) = page.split_once("data-live=\"") else {
                continue;
            };

            let stream = rest.split('"').next().unwrap();
            let given = status(&app, stream, &session.cookie).await;
            assert_eq!(given, 200, "{stream} of {path} as {role}");

            followed.insert(stream.to_owned());
        }
    }

    // All but that of the installation.
    assert_eq!(followed.len(), 14, "{followed:?}");
}

/// What belongs to another organization does not exist.
#[tokio::test(flavor = "multi_thread")]
async fn another_organizations_ids_are_unknown_everywhere() {
    let app = TestApp::start().await;
    let known = ids_of(&app).await;
    let elm = operator(app.data.path(), &["org", "create", "--name", "Elm"]);
    let elm = holdfast::domain::id::OrgId::parse(elm["org_id"].as_str().unwrap()).unwrap();
    let kim = Session::at(&app, &elm, "kim@elm.example", "owner").await;

    let own = Session::of(&app, "ada@oak.example", "owner").await;
    for (method, path, _) in CELLS {
        // Without an id, or with one of a slot or a part of the settings, which all organizations have.
        if !path.contains("{id}") && !path.contains("{template}") || path.contains("{slot}") {
            continue;
        }

        let path = known.path(path);

        // Acts on sessions and passkeys find only the own ones, and lead back to them.
        if *method == "GET" {
            let given = status(&app, &path, &kim.cookie).await;
            assert_eq!(given, 404, "{path}");

            if !path.contains("x_01h455vb4pex5vsknk084sn02q") {
                let given = status(&app, &path, &own.cookie).await;
                // The envelope is not signed yet: it has no files, and no page of control.
                let is_later = path.contains("/control/") || path.contains("/files/");
                assert!(given == 200 || is_later, "{path}: {given}");
            }
        }
    }

    // Each act on an id of the other organization is refused, and changes nothing.
    for (act, form) in [
        ("/envelopes/{id}/remind", ""),
        ("/envelopes/{id}/void", "reason=Ours"),
        ("/envelopes/{id}/questions/{question}", "answer=Yes"),
        ("/envelopes/{id}/edit", ""),
        ("/envelopes/{id}/send", ""),
        ("/envelopes/{id}/extend", "until=2027-01-31"),
        ("/envelopes/{id}/dates", "name=Term&date=2031-05-01"),
        ("/envelopes/{id}/copy", ""),
        ("/envelopes/{id}/vault", ""),
        ("/envelopes/{id}/verify", ""),
        ("/envelopes/{id}/funding-check", ""),
        ("/envelopes/{id}/stipulations", "stipulations=insurance"),
        (
            "/envelopes/{id}/stipulations/{kind}/waive",
            "reason=Ours&sure=yes",
        ),
        ("/fact-maps/{id}/versions", "number=1"),
        ("/funding/{id}/invitations", "organization_id=org_1"),
        ("/funding/{id}/subscription", "version="),
        ("/envelopes/{id}/links", ""),
        (
            "/envelopes/{id}/embed",
            "widget=sign&email=jordan.lee@example.com",
        ),
        (
            "/envelopes/{id}/signers/{position}",
            "name=Kim&email=kim@elm.example",
        ),
        ("/templates/{id}/edit", ""),
        ("/templates/{id}/rename", "name=Ours"),
        ("/templates/{id}/delete", ""),
        ("/templates/{id}/restore", ""),
        ("/templates/{id}/duplicate", "name=Ours"),
        ("/templates/{id}/versions/confirm", "proposal=x"),
        ("/templates/{id}/versions/restore", "number=1"),
        ("/templates/{id}/open-links", "name=Ours"),
        ("/open-links/{id}/close", ""),
        ("/bulk/{id}/submit", ""),
        ("/bulk/{id}/delete", ""),
        (
            "/bulk/{id}/clients",
            "table=name,email%0AKim,kim@elm.example&name=0&email=1",
        ),
        ("/components/{id}/compare", ""),
        (
            "/receivers/{id}/edit",
            "url=https://hooks.example.com/all&event-*=yes",
        ),
        ("/receivers/{id}/test", ""),
        ("/receivers/{id}/enable", ""),
        ("/receivers/{id}/disable", ""),
        ("/receivers/{id}/rotate", ""),
        ("/receivers/{id}/delete", ""),
        ("/changes/{id}/review", "verdict=refuse&comment=No"),
        ("/changes/{id}/withdraw", ""),
    ] {
        let path = known.path(act);
        let answer = kim.post(&app, &path, form).await;
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
    }

    let template = format!("template={}", known.template);
    let answer = kim.post(&app, "/console/drafts/template", &template).await;
    assert_eq!(answer.status, 404, "{}", answer.text());

    let several = format!("act=void&reason=Ours&sure=yes&id-{}=yes", known.envelope);
    let answer = kim.post(&app, "/console/envelopes/act", &several).await;
    assert!(
        answer.text().contains("Envelope not found"),
        "{}",
        answer.text()
    );

    let path = format!("/partner/envelopes/{}", known.envelope);
    let envelope = app.get(&path).await.data(200);
    assert_eq!(envelope["status"], "sent");
}
