//! Roles of web-app users: which operation each role may use.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use axum::body::Body;
use axum::http::Request;
use holdfast::domain::organization::Role;
use serde_json::{Value, json};

use super::openapi::{ApiOperation, document, operations};
use crate::support::TestApp;

/// Returns the roles that the document names for an operation; none if it takes no bearer token of a user.
fn roles_of(operation: &ApiOperation) -> Option<Vec<String>> {
    let named = operation.description["x-roles"].as_array()?;
    Some(
        named
            .iter()
            .map(|role| role.as_str().unwrap().to_owned())
            .collect(),
    )
}

/// Sends a request that is refused for its role, or fails for its id or body.
fn request(operation: &ApiOperation, token: &str, org: &str) -> Request<Body> {
    let path = operation
        .path
        .replace("{slot}", "rules.compliance")
        .replace("{id}", "env_01jdk7m3e8f4x9s2w5v6b0c1dc")
        .replace("{role}", "Buyer")
        .replace("{name}", "Line-12")
        .replace("{stipulation}", "insurance")
        .replace("{question_id}", "qst_01jdk7m3e8f4x9s2w5v6b0c1dh")
        .replace("{sha256}", &"0".repeat(64));
    assert!(!path.contains('{'), "{path}");

    Request::builder()
        .method(&operation.method)
        .uri(format!("/api/v2{path}"))
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .header("x-org-id", org)
        .body(Body::from("{}"))
        .unwrap()
}

/// Every cell of the table of roles: a role that is not named gets 403, the others something else.
#[tokio::test(flavor = "multi_thread")]
async fn a_role_uses_exactly_the_operations_of_its_column() {
    let app = TestApp::start().await;
    let tokens: BTreeMap<&str, String> = Role::ALL
        .iter()
        .map(|role| (role.as_str(), app.token(role.as_str())))
        .collect();

    let mut cells = 0;
    for operation in operations(&document()) {
        let Some(named) = roles_of(&operation) else {
            continue;
        };

        let name = format!("{} {}", operation.method, operation.path);
        assert!(named.contains(&"owner".to_owned()), "{name}");
        assert!(!named.contains(&"member".to_owned()), "{name}");

        for (role, token) in &tokens {
            let answer = app.send(request(&operation, token, app.org.as_str())).await;
            let may = named.iter().any(|named| named == role);
            assert_eq!(
                answer.status != 403,
                may,
                "{name} as {role}: {}",
                answer.text()
            );
            assert!(
                answer.status != 401 && answer.status != 429,
                "{name} as {role}"
            );

            cells += 1;
        }
    }

    assert!(cells > 600, "{cells}");
}

/// The table in the documentation. Set `UPDATE_ROLES=1` to rewrite it.
#[test]
fn the_table_of_roles_is_that_of_the_document() {
    let roles: Vec<&str> = Role::ALL.iter().map(|role| role.as_str()).collect();
    let mut areas: BTreeMap<String, Vec<ApiOperation>> = BTreeMap::new();
    for operation in operations(&document()) {
        if roles_of(&operation).is_some() {
            let area = operation.description["tags"][0].as_str().unwrap();
            areas.entry(area.to_owned()).or_default().push(operation);
        }
    }

    let mut page = String::from(
        "# Roles of users\n\nWhat users of the web app may do, by their role: with a bearer token of `holdfast token issue` or of \
         your OpenID Connect issuer. API keys have scopes instead. Provider instances and the policy of changes take the role \
         `owner` or `admin`, also where an operation takes others for rules. A test writes this table and tries every cell.\n",
    );
    for (area, operations) in areas {
        let _ = write!(
            page,
            "\n## {area}\n\n| Operation | {} |\n",
            roles.join(" | ")
        );
        let _ = writeln!(page, "|---|{}", "---|".repeat(roles.len()));

        for operation in operations {
            let named = roles_of(&operation).unwrap();
            let marks = roles.iter().map(|role| {
                if named.iter().any(|one| one == role) {
                    "yes"
                } else {
                    "–"
                }
            });
            let marks: Vec<&str> = marks.collect();

            let (method, path) = (&operation.method, &operation.path);
            let _ = writeln!(page, "| `{method} {path}` | {} |", marks.join(" | "));
        }
    }

    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/roles.md");
    if std::env::var_os("UPDATE_ROLES").is_some() {
        std::fs::write(file, &page).unwrap();
    }

    let committed = std::fs::read_to_string(file).unwrap_or_default();
    assert!(
        committed == page,
        "docs/roles.md is out of date: run this test with UPDATE_ROLES=1"
    );
}

/// Users see and do with their token what partners do with a key.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_reads_and_sends_envelopes_by_role() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let body = crate::support::envelope_body(&template["template_id"]);
    let (sender, auditor) = (app.token("sender"), app.token("auditor"));
    let made = app
        .post_with_bearer(&sender, "/envelopes", body)
        .await
        .data(201);
    let id = made["envelope_id"].as_str().unwrap();

    let path = |rest: &str| format!("/envelopes/{id}{rest}");
    for read in ["/signers", "/compliance", "/custody", "/attachments"] {
        let by_user = app.get_with_bearer(&auditor, &path(read)).await.data(200);
        let by_key = app.get(&format!("/partner{}", path(read))).await.data(200);

        // An evaluation names its own moment.
        let without_time = |mut answer: Value| {
            answer["compliance"]["evaluated_at"].take();
            answer
        };
        assert_eq!(without_time(by_user), without_time(by_key), "{read}");
    }

    let ledger = app
        .get_with_bearer(&auditor, &path("/custody"))
        .await
        .data(200);
    let entries = ledger["entries"].as_array().unwrap();
    assert!(
        entries
            .iter()
            .any(|entry| entry["actor"] == "user:oak@oak.example"),
        "{ledger:#}"
    );

    let void = json!({ "reason": "Test" });
    let refused = app
        .post_with_bearer(&auditor, &path("/void"), void.clone())
        .await;
    assert_eq!(
        refused.error(403),
        "Role owner, admin or sender is required"
    );

    let voided = app
        .post_with_bearer(&sender, &path("/void"), void)
        .await
        .data(200);
    assert_eq!(voided["status"], "voided");
}
