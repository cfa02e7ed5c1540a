//! Roles of web-app users and scopes of API keys: which operation each may use.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use axum::body::Body;
use axum::http::Request;
use holdfast::domain::organization::{Role, Scope};
use serde_json::{Value, json};

use super::openapi::{ApiOperation, document, operations};
use crate::support::TestApp;

/// Member of an operation with the roles of its users.
const ROLES: &str = "x-roles";
/// Member of an operation with the scopes of its keys, of which one is enough.
const SCOPES: &str = "x-scopes";

/// Returns the roles or scopes that the document names for an operation; none if it takes no such credential.
fn named(operation: &ApiOperation, member: &str) -> Option<Vec<String>> {
    let named = operation.description[member].as_array()?;
    Some(
        named
            .iter()
            .map(|name| name.as_str().unwrap().to_owned())
            .collect(),
    )
}

/// Returns a request that is refused for its credential, or fails for its id or body.
fn request(operation: &ApiOperation, credential: (&str, &str), org: &str) -> Request<Body> {
    let path = operation
        .path
        .replace("{slot}", "rules.compliance")
        .replace("{id}", "env_01jdk7m3e8f4x9s2w5v6b0c1dc")
        .replace("{role}", "Buyer")
        .replace("{name}", "Line-12")
        .replace("{stipulation}", "insurance")
        .replace("{question_id}", "qst_01jdk7m3e8f4x9s2w5v6b0c1dh")
        .replace("{line}", "1")
        .replace("{sha256}", &"0".repeat(64));
    assert!(!path.contains('{'), "{path}");

    Request::builder()
        .method(&operation.method)
        .uri(format!("/api/v2{path}"))
        .header(credential.0, credential.1)
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
        .map(|role| {
            (
                role.as_str(),
                format!("Bearer {}", app.token(role.as_str())),
            )
        })
        .collect();

    let mut cells = 0;
    for operation in operations(&document()) {
        let Some(named) = named(&operation, ROLES) else {
            continue;
        };

        let name = format!("{} {}", operation.method, operation.path);
        assert!(named.contains(&"owner".to_owned()), "{name}");
        assert!(!named.contains(&"member".to_owned()), "{name}");

        for (role, token) in &tokens {
            let credential = ("authorization", token.as_str());
            let answer = app
                .send(request(&operation, credential, app.org.as_str()))
                .await;
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

/// Every cell of the tables of scopes: a key without a scope that is named gets 403 with its name, the others
/// something else.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_uses_exactly_the_operations_of_its_scope() {
    let app = TestApp::start().await;
    let mut keys = BTreeMap::new();
    for scope in Scope::ALL {
        keys.insert(scope.as_str(), app.key_with(&[*scope]).await);
    }

    let mut cells = 0;
    for operation in operations(&document()) {
        let Some(named) = named(&operation, SCOPES) else {
            continue;
        };

        let name = format!("{} {}", operation.method, operation.path);
        for (scope, key) in &keys {
            let credential = ("x-api-key", key.as_str());
            let answer = app
                .send(request(&operation, credential, app.org.as_str()))
                .await;
            let refused = answer.status == 403 && answer.text().contains("Missing required scope");
            let may = named.iter().any(|named| named == scope);
            assert_eq!(!refused, may, "{name} with {scope}: {}", answer.text());
            assert!(
                answer.status != 401 && answer.status != 429,
                "{name} with {scope}"
            );

            cells += 1;
        }
    }

    assert!(cells > 1000, "{cells}");
}

/// Appends a table of operations, with a column for each role or scope.
fn write_table(page: &mut String, operations: &[ApiOperation], member: &str, columns: &[&str]) {
    let _ = writeln!(page, "\n| Operation | {} |", columns.join(" | "));
    let _ = writeln!(page, "|---|{}", "---|".repeat(columns.len()));

    for operation in operations {
        let named = named(operation, member).unwrap();
        let marks = columns.iter().map(|column| {
            if named.iter().any(|one| one == column) {
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

/// The tables in the documentation. Set `UPDATE_ROLES=1` to rewrite them.
#[test]
fn the_tables_of_roles_and_scopes_are_those_of_the_document() {
    let roles: Vec<&str> = Role::ALL.iter().map(|role| role.as_str()).collect();
    let mut areas: BTreeMap<String, Vec<ApiOperation>> = BTreeMap::new();
    for operation in operations(&document()) {
        if named(&operation, ROLES).is_some() || named(&operation, SCOPES).is_some() {
            let area = operation.description["tags"][0].as_str().unwrap();
            areas.entry(area.to_owned()).or_default().push(operation);
        }
    }

    let mut page = String::from(
        "# Roles and scopes\n\nWhat users of the web app may do, by their role: with a bearer token of `holdfast token issue` or of \
         your OpenID Connect issuer. API keys have scopes instead. Provider instances and the policy of changes take the role \
         `owner` or `admin`, also where an operation takes others for rules. A test writes these tables and tries every cell.\n\n\
         ## Scopes of keys\n\nA user with the role `owner` or `admin` makes keys and changes their scopes, in the console \
         (*Developers*) or with `PATCH /api-keys/{id}`; so does the operator, with `holdfast key create` and `holdfast key update`. \
         A key that lacks a scope gets 403, and `details` of the answer name the scope and these roles. A test key has the same \
         scopes.\n\n| Scope | Allows to |\n|---|---|\n",
    );
    for scope in Scope::ALL {
        let _ = writeln!(page, "| `{scope}` | {} |", scope.allows());
    }

    page.push_str(
        "\n## Roles of users\n\nA user with the role `owner` or `admin` gives roles, in the console (*Users*) or with \
         `PATCH /users/{id}`; so does the operator, with `holdfast user role`. A user whose role does not suffice gets 403, and \
         `details` of the answer name the roles that do (`roles`) and those that give roles (`granted_by`).\n\n\
         | Role | Allows to |\n|---|---|\n",
    );
    for role in Role::ALL {
        let _ = writeln!(page, "| `{role}` | {} |", role.allows());
    }

    for (area, operations) in areas {
        let _ = writeln!(page, "\n## {area}");
        let (of_users, of_keys): (Vec<ApiOperation>, Vec<ApiOperation>) = operations
            .into_iter()
            .partition(|operation| named(operation, ROLES).is_some());
        if !of_users.is_empty() {
            write_table(&mut page, &of_users, ROLES, &roles);
        }

        // An area needs few of the scopes, and a table with all would be too wide to read.
        let is_used = |scope: &str| {
            let mut operations = of_keys.iter();
            operations.any(|one| {
                named(one, SCOPES).is_some_and(|all| all.iter().any(|name| name == scope))
            })
        };
        let scopes: Vec<&str> = Scope::ALL
            .iter()
            .map(|scope| scope.as_str())
            .filter(|scope| is_used(scope))
            .collect();
        if !of_keys.is_empty() {
            write_table(&mut page, &of_keys, SCOPES, &scopes);
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
    let expected = json!({
        "error": "Role owner, admin or sender is required",
        "details": {
            "role": "auditor", "roles": ["owner", "admin", "sender"], "granted_by": ["owner", "admin"],
            "hint": "The role owner or admin can give the user another role: PATCH /users/{id}; the operator: \
                     holdfast user role",
        },
    });
    assert_eq!((refused.status.as_u16(), refused.json()), (403, expected));

    let voided = app
        .post_with_bearer(&sender, &path("/void"), void)
        .await
        .data(200);
    assert_eq!(voided["status"], "voided");
}
