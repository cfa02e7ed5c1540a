//! The server of the Model Context Protocol: who sees which tools, dry runs, confirmations, and other programs' clients.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use axum::body::Body;
use axum::http::{HeaderValue, Method, Request};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use holdfast::config::Config;
use holdfast::domain::organization::{OrgSettings, PaymentSettings, Scope};
use serde_json::{Value, json};

use crate::service::signing::text_messages::twilio;
use crate::support::docuseal::FakeDocuseal;
use crate::support::{CONTRACT, TestApp, TestResponse, envelope_body, files_below, pdf};

fn message(method: &str, params: Value) -> Request<Body> {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-11-25")
        .body(body.to_string().into())
        .unwrap()
}

async fn asked(app: &TestApp, credential: &str, method: &str, params: Value) -> TestResponse {
    sent(app, credential, message(method, params)).await
}

async fn sent(app: &TestApp, credential: &str, mut request: Request<Body>) -> TestResponse {
    let bearer = HeaderValue::from_str(&format!("Bearer {credential}")).unwrap();
    request.headers_mut().insert("authorization", bearer);
    app.send(request).await
}

/// Returns the tools that a credential sees, by name.
async fn tools(app: &TestApp, credential: &str) -> BTreeMap<String, Value> {
    let answer = asked(app, credential, "tools/list", json!({})).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let tools = answer.json()["result"]["tools"].clone();
    let tools = tools.as_array().unwrap().iter();
    tools
        .map(|tool| (tool["name"].as_str().unwrap().to_owned(), tool.clone()))
        .collect()
}

/// Calls a tool. Returns whether it succeeded, and its content.
async fn call_as(app: &TestApp, credential: &str, tool: &str, arguments: Value) -> (bool, Value) {
    let params = json!({ "name": tool, "arguments": arguments });
    let answer = asked(app, credential, "tools/call", params).await;
    assert_eq!(answer.status, 200, "{}", answer.text());

    let result = &answer.json()["result"];
    let text = result["content"][0]["text"].as_str();
    let structured = &result["structuredContent"];
    if let Some(text) = text.filter(|_| structured.is_object()) {
        assert_eq!(&serde_json::from_str::<Value>(text).unwrap(), structured);
    }

    let content = match structured {
        Value::Null => result["content"][0].clone(),
        structured => structured.clone(),
    };
    (result["isError"] != true, content)
}

async fn call(app: &TestApp, tool: &str, arguments: Value) -> (bool, Value) {
    call_as(app, &app.key.clone(), tool, arguments).await
}

async fn done(app: &TestApp, tool: &str, arguments: Value) -> Value {
    let (succeeded, content) = call(app, tool, arguments).await;
    assert!(succeeded, "{tool}: {content}");
    content
}

async fn refused(app: &TestApp, tool: &str, arguments: Value) -> Value {
    let (succeeded, content) = call(app, tool, arguments).await;
    assert!(!succeeded, "{tool}: {content}");
    assert!(content["error"].is_string(), "{content}");
    content
}

/// Returns the stored objects, and the number of rows in each table.
async fn rows(app: &TestApp) -> BTreeMap<String, i64> {
    app.wait_until_idle().await;
    let mut connection = app.store.read().await.unwrap();
    let names: Vec<String> =
        sqlx::query_scalar("select name from sqlite_master where type = 'table' order by name")
            .fetch_all(&mut *connection)
            .await
            .unwrap();

    drop(connection);
    let mut rows = BTreeMap::new();
    for name in names {
        let count = app.count(&name).await;
        rows.insert(name, count);
    }

    // The log takes up entries of ledgers in the background, in its tables and below `ledger/`.
    let objects = app.data.path().join("objects");
    for object in files_below(&objects) {
        if !object.starts_with(objects.join("ledger")) {
            rows.insert(object.display().to_string(), 1);
        }
    }

    // Records about requests, which dry runs have too.
    for table in [
        "rate_window",
        "request_log",
        "ledger_leaf",
        "ledger_pending",
        "ledger_tile",
    ] {
        rows.remove(table);
    }

    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_sees_the_tools_that_it_may_use() {
    let app = TestApp::start().await;
    let all = tools(&app, &app.key).await;
    for name in [
        "createEnvelope",
        "vaultOut",
        "confirmTransfer",
        "listEvents",
    ] {
        assert!(all.contains_key(name), "{name}");
    }

    // Users' operations and those of other areas take other credentials.
    for name in ["makeEnvelope", "createApiKey", "issueEmbedToken"] {
        assert!(!all.contains_key(name), "{name}");
    }

    for (name, tool) in &all {
        let schema = &tool["inputSchema"];
        let valid = jsonschema::draft202012::new(schema);
        assert!(valid.is_ok(), "{name}: {:?}", valid.err());
        assert!(!schema.to_string().contains("#/components"), "{name}");
        assert!(!tool["description"].as_str().unwrap().is_empty(), "{name}");
    }

    let annotations = |name: &str| all[name]["annotations"].clone();
    assert_eq!(annotations("getEnvelope")["readOnlyHint"], true);
    assert_eq!(annotations("createEnvelope")["readOnlyHint"], false);
    assert_eq!(annotations("createEnvelope")["destructiveHint"], false);

    // Credentials of signers, and reads that other parties learn about.
    for name in ["getSigningLinks", "inspectRecord", "getWatermarkedCopy"] {
        assert_eq!(annotations(name)["readOnlyHint"], false, "{name}");
    }

    for name in [
        "vaultOut",
        "issueControlStatement",
        "registerPartyKey",
        "grantView",
    ] {
        assert_eq!(annotations(name)["destructiveHint"], true, "{name}");
    }

    let properties = |name: &str| all[name]["inputSchema"]["properties"].clone();
    assert!(properties("vaultOut")["confirmation_token"].is_object());
    assert!(properties("createEnvelope")["confirmation_token"].is_null());
    assert_eq!(properties("createEnvelope")["dry_run"]["default"], true);
    assert!(properties("uploadDocument")["dry_run"].is_null());

    let reader = app.key_with(&[Scope::EnvelopesRead]).await;
    let few = tools(&app, &reader).await;
    assert!(few.contains_key("getEnvelope") && !few.contains_key("createEnvelope"));

    let params = json!({ "name": "createEnvelope", "arguments": {} });
    let hidden = asked(&app, &reader, "tools/call", params).await.json();
    assert_eq!(hidden["error"]["code"], -32602, "{hidden}");

    let sender = app.token("sender");
    let of_people = tools(&app, &sender).await;
    assert!(of_people.contains_key("makeEnvelope") && of_people.contains_key("submitBatch"));
    assert!(!of_people.contains_key("createEnvelope"));
    assert!(!of_people.contains_key("releaseControlledRecordAsUser"));

    let (listed, found) = call_as(&app, &sender, "searchEnvelopes", json!({})).await;
    assert!(listed, "{found}");

    let (listed, found) = call_as(&app, &sender, "listBatches", json!({})).await;
    assert!(listed, "{found}");

    // With a document or without one.
    let file =
        json!({ "name": "contract.pdf", "content_base64": BASE64_STANDARD.encode(CONTRACT) });
    for arguments in [
        json!({ "body": { "name": "Empty" } }),
        json!({ "name": "Contract", "file": file }),
    ] {
        let (made, answer) = call_as(&app, &sender, "createLibraryTemplate", arguments).await;
        assert!(made, "{answer}");
    }

    // A text that is no key does not replace the token.
    let mut request = message("tools/list", json!({}));
    let headers = request.headers_mut();
    headers.insert("x-api-key", HeaderValue::from_static("none"));
    let bearer = HeaderValue::from_str(&format!("Bearer {sender}")).unwrap();
    headers.insert("authorization", bearer);
    let listed = app.send(request).await.json();
    let listed = listed["result"]["tools"].as_array().unwrap().len();
    assert_eq!(listed, of_people.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_a_valid_credential_learn_where_the_metadata_is() {
    let app = TestApp::on_a_socket().await;
    for credential in [None, Some("lk_00"), Some("a.b.c"), Some("")] {
        let mut request = message("tools/list", json!({}));
        if let Some(credential) = credential {
            let bearer = HeaderValue::from_str(&format!("Bearer {credential}")).unwrap();
            request.headers_mut().insert("authorization", bearer);
        }

        let answer = app.send(request).await;
        assert_eq!(answer.status, 401, "{}", answer.text());

        let challenge = answer.headers["www-authenticate"].to_str().unwrap();
        let at = challenge.split('"').nth(1).unwrap();
        let path = at.strip_prefix(&app.url()).unwrap();
        let metadata = app
            .send(Request::get(path).body(Body::empty()).unwrap())
            .await;
        assert_eq!(metadata.status, 200);

        let metadata = metadata.json();
        assert_eq!(metadata["resource"], format!("{}/mcp", app.url()));

        let scopes = metadata["scopes_supported"].as_array().unwrap();
        assert!(scopes.contains(&json!("envelopes:read")));
        assert_eq!(metadata["bearer_methods_supported"], json!(["header"]));
    }

    // Another site in a person's browser.
    for (header, value) in [("host", "evil.example"), ("origin", "http://evil.example")] {
        let mut request = message("tools/list", json!({}));
        let key = HeaderValue::from_str(&app.key).unwrap();
        request.headers_mut().insert("x-api-key", key);
        let value = HeaderValue::from_static(value);
        request.headers_mut().insert(header, value);
        let answer = app.send(request).await;
        assert_eq!(answer.status, 403, "{header}: {}", answer.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_assistant_sends_a_contract_after_a_dry_run() {
    let app = TestApp::start().await;
    let file =
        json!({ "name": "contract.pdf", "content_base64": BASE64_STANDARD.encode(CONTRACT) });
    let template = json!({ "file": file, "name": "Contract", "fields_json": "[]" });
    let template = done(&app, "createTemplate", template).await;
    let template_id = &template["data"]["template_id"];
    let fields = json!({ "fields": [
        { "name": "Signature", "type": "signature", "role": "Buyer", "anchor": { "text": "Buyer" } }
    ] });
    let found = call(
        &app,
        "addTemplateFields",
        json!({ "id": template_id, "body": fields }),
    )
    .await;
    assert!(found.0 || found.1["error"].is_string(), "{}", found.1);

    let template = app.contract_template().await;

    let body = envelope_body(&template["template_id"]);
    let before = rows(&app).await;
    let rehearsed = done(&app, "createEnvelope", json!({ "body": body })).await;
    assert_eq!(rehearsed["dry_run"], true, "{rehearsed}");
    assert!(rehearsed["confirmation_token"].is_null());
    assert_eq!(rows(&app).await, before);

    let arguments = json!({ "body": body, "dry_run": false, "idempotency_key": "deal-1" });
    let made = done(&app, "createEnvelope", arguments.clone()).await;
    let id = made["data"]["envelope_id"].clone();
    let again = done(&app, "createEnvelope", arguments).await;
    assert_eq!(again["data"]["envelope_id"], id);

    let read = done(&app, "getEnvelope", json!({ "id": id })).await;
    assert_eq!(read["data"]["status"], "sent");

    let listed = done(
        &app,
        "listEnvelopes",
        json!({ "status": ["sent"], "limit": 10 }),
    )
    .await;
    assert_eq!(listed["data"][0]["envelope_id"], id);

    let document = done(&app, "getUnsignedDocument", json!({ "id": id })).await;
    assert_eq!(document["resource"]["mimeType"], "application/pdf");

    let bytes = BASE64_STANDARD.decode(document["resource"]["blob"].as_str().unwrap());
    assert!(bytes.unwrap().starts_with(b"%PDF-"));
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_refused_as_the_api_refuses_them() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let id = envelope["envelope_id"].clone();

    // A dry run finds the same problems as the act.
    for dry_run in [true, false] {
        let body = envelope_body(&json!("tmpl_00000000000000000000000000"));
        let arguments = json!({ "body": body, "dry_run": dry_run });
        let unknown = refused(&app, "createEnvelope", arguments).await;
        assert_eq!(unknown["error"], "Template not found");

        let arguments = json!({ "body": { "envelope_name": "" }, "dry_run": dry_run });
        let invalid = refused(&app, "createEnvelope", arguments).await;
        assert!(invalid["details"].is_array(), "{invalid}");
    }

    let early = refused(&app, "vaultInSigned", json!({ "id": id })).await;
    assert!(early["confirmation_token"].is_null(), "{early}");

    for (tool, arguments, code) in [
        ("getEnvelope", json!({}), "missing_argument"),
        ("getEnvelope", json!({ "id": null }), "missing_argument"),
        (
            "getEnvelope",
            json!({ "id": id, "x": 1 }),
            "unknown_argument",
        ),
        ("getEnvelope", json!({ "id": ".." }), "invalid_argument"),
        ("getEnvelope", json!({ "id": [] }), "invalid_argument"),
        (
            "remindSigners",
            json!({ "id": id, "body": {}, "dry_run": "no" }),
            "invalid_argument",
        ),
        (
            "uploadDocument",
            json!({ "id": id, "file": "contract.pdf" }),
            "invalid_argument",
        ),
    ] {
        let answer = refused(&app, tool, arguments.clone()).await;
        assert_eq!(answer["code"], code, "{tool} {arguments}");
    }

    let other = app.other_organization().await;
    let (found, answer) = call_as(&app, &other, "getEnvelope", json!({ "id": id })).await;
    assert!(!found, "{answer}");

    // A path in an id stays an id.
    let climbing = json!({ "id": "../events" });
    assert_eq!(
        refused(&app, "getEnvelope", climbing).await["error"],
        "Envelope not found"
    );
}

/// A key that is good for an act is not used up, or answered from, by its dry run.
#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_leaves_the_idempotency_key_alone() {
    let app = TestApp::start().await;
    let call_with = |template: &Value, dry_run: bool| {
        let body = envelope_body(template);
        json!({ "body": body, "dry_run": dry_run, "idempotency_key": "deal-7" })
    };
    let unknown = json!("tmpl_00000000000000000000000000");
    let answer = refused(&app, "createEnvelope", call_with(&unknown, true)).await;
    assert_eq!(answer["error"], "Template not found");

    let template = app.contract_template().await["template_id"].clone();
    done(&app, "createEnvelope", call_with(&template, true)).await;
    let made = done(&app, "createEnvelope", call_with(&template, false)).await;
    assert!(made["data"]["envelope_id"].is_string(), "{made}");

    let rehearsed = done(&app, "createEnvelope", call_with(&template, true)).await;
    assert_eq!(rehearsed["dry_run"], true, "{rehearsed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_counted_once_against_the_limit() {
    let app = TestApp::start().await;
    let key = app.key_with_limit(&[Scope::EnvelopesRead], 4).await;
    for _ in 0..2 {
        tools(&app, &key).await;
        let (listed, answer) = call_as(&app, &key, "listEnvelopes", json!({})).await;
        assert!(listed, "{answer}");
    }

    let listed = asked(&app, &key, "tools/list", json!({})).await.json();
    assert_eq!(
        listed["error"]["message"], "Rate limit exceeded",
        "{listed}"
    );

    for arguments in [json!({}), json!({ "x": 1 })] {
        let (listed, answer) = call_as(&app, &key, "listEnvelopes", arguments).await;
        assert!(
            !listed && answer["error"] == "Rate limit exceeded",
            "{answer}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_undone_needs_the_confirmation_of_its_dry_run() {
    let app = TestApp::start().await;
    let id = app.sent_envelope().await["envelope_id"].clone();
    let second = app.sent_envelope().await["envelope_id"].clone();
    let body = json!({ "reason": "Wrong rate" });
    let arguments = json!({ "id": id, "body": body });
    let with = |more: Value| {
        let mut arguments = arguments.clone();
        arguments
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        arguments
    };
    let missing = refused(&app, "voidEnvelope", with(json!({ "dry_run": false }))).await;
    assert_eq!(missing["code"], "confirmation_required");

    let other_key = app.key_with(&[Scope::EnvelopesWrite]).await;
    let before = rows(&app).await;
    let rehearsed = done(&app, "voidEnvelope", arguments.clone()).await;
    assert_eq!(rows(&app).await, before);

    let token = rehearsed["confirmation_token"].as_str().unwrap().to_owned();
    let confirmed = json!({ "dry_run": false, "confirmation_token": token });

    // For other arguments, another credential, another tool, and a changed token.
    let elsewhere =
        json!({ "id": second, "body": body, "dry_run": false, "confirmation_token": token });
    let code = refused(&app, "voidEnvelope", elsewhere).await["code"].clone();
    assert_eq!(code, "confirmation_invalid");

    let (voided, answer) = call_as(&app, &other_key, "voidEnvelope", with(confirmed.clone())).await;
    assert!(
        !voided && answer["code"] == "confirmation_invalid",
        "{answer}"
    );

    let forged = json!({ "dry_run": false, "confirmation_token": format!("{token}0") });
    let code = refused(&app, "voidEnvelope", with(forged)).await["code"].clone();
    assert_eq!(code, "confirmation_invalid");
    assert_eq!(rows(&app).await, before);

    let voided = done(&app, "voidEnvelope", with(confirmed.clone())).await;
    assert_eq!(voided["data"]["status"], "voided");

    // Its repeat is the same act.
    let again = done(&app, "voidEnvelope", with(confirmed)).await;
    assert_eq!(again, voided);
    assert_eq!(
        done(&app, "getEnvelope", json!({ "id": second })).await["data"]["status"],
        "sent"
    );

    // After ten minutes a person has to look again.
    let arguments = json!({ "id": second, "body": body });
    let rehearsed = done(&app, "voidEnvelope", arguments).await;
    let late = app.as_of(std::time::Duration::from_secs(601)).await;
    let arguments = json!({ "id": second, "body": body, "dry_run": false,
        "confirmation_token": rehearsed["confirmation_token"] });
    let code = refused(&late, "voidEnvelope", arguments).await["code"].clone();
    assert_eq!(code, "confirmation_invalid");
}

/// Every tool that sends or releases, with the example of its document and the ids of real objects.
#[tokio::test(flavor = "multi_thread")]
async fn no_dry_run_leaves_a_row() {
    let app = TestApp::start().await;
    let vaulted = app.vaulted_envelope().await;
    let template = app.contract_template().await["template_id"].clone();
    let sent = app.sent_envelope().await["envelope_id"].clone();
    let listed = app
        .web(axum::http::Method::GET, "/customers", Value::Null)
        .await;
    let customer = listed.data(200)[0]["customer_id"].clone();

    app.execute("update api_key set rate_limit_rpm = 100000")
        .await;
    let credentials = [app.key.clone(), app.token("owner")];
    let before = rows(&app).await;

    let (mut passed, mut refusals) = (Vec::new(), Vec::new());
    for credential in credentials {
        for (name, tool) in tools(&app, &credential).await {
            let properties = &tool["inputSchema"]["properties"];
            if properties["dry_run"]["default"] != true {
                continue;
            }

            for id in [
                json!(vaulted),
                sent.clone(),
                template.clone(),
                customer.clone(),
            ] {
                let mut arguments = json!({});
                for (argument, schema) in properties.as_object().unwrap() {
                    match argument.as_str() {
                        "id" => arguments["id"] = id.clone(),
                        "body" => {
                            arguments["body"] =
                                schema["examples"].get(0).cloned().unwrap_or(json!({}))
                        }
                        "role" => arguments["role"] = "Buyer".into(),
                        _ => {}
                    }
                }

                let text = arguments.to_string();
                let example = "tmpl_01jdk7m3e8f4x9s2w5v6b0c1da";
                let text = text.replace(example, template.as_str().unwrap());
                let arguments = serde_json::from_str(&text).unwrap();
                let (allowed, answer) = call_as(&app, &credential, &name, arguments).await;
                if allowed {
                    assert_eq!(answer["dry_run"], true, "{name}: {answer}");
                    passed.push(name.clone());
                } else {
                    refusals.push(format!("{name}: {answer}"));
                }
            }
        }
    }

    let after = rows(&app).await;
    let changed: Vec<_> = after
        .iter()
        .filter(|(name, count)| before.get(*name) != Some(count))
        .collect();
    assert!(changed.is_empty(), "{changed:?}");

    passed.sort();
    passed.dedup();
    for name in [
        "createEnvelope",
        "makeEnvelope",
        "voidEnvelope",
        "vaultOut",
        "remindSigners",
    ] {
        assert!(
            passed.iter().any(|one| one == name),
            "{name}: {passed:?}, {refusals:#?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_calls_no_provider() {
    let docuseal = FakeDocuseal::start().await;
    let configure = |config: &mut Config| {
        docuseal.configure(config);
        twilio(config, "http://127.0.0.1:1");
    };
    let app = TestApp::with(configure, OrgSettings::default()).await;
    let template = app.contract_template().await;

    let before = rows(&app).await;
    let mut body = envelope_body(&template["template_id"]);
    let rehearsed = done(&app, "createEnvelope", json!({ "body": body })).await;
    assert_eq!(rehearsed["dry_run"], true);

    // Checks behind a provider that only has to exist are made.
    let signer = json!({
        "name": "Lee", "email": "lee@elm.example", "role": "Nobody",
        "notify_by": "sms", "phone": "+15125550142",
    });
    body["signers"] = json!([signer]);
    let answer = refused(&app, "createEnvelope", json!({ "body": body })).await;
    assert!(answer["details"].is_array(), "{answer}");
    assert_eq!(docuseal.submissions(), 0);
    assert_eq!(rows(&app).await, before);
}

/// The document would be composed of the package's pages, and a dry run stores no part of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_composes_no_document() {
    let app = TestApp::start().await;
    let mut ids = Vec::new();
    for name in ["One", "Two"] {
        let lines = [name, "{{Sign;type=signature;role=Buyer;required=true}}"];
        let document = pdf::with_lines(&lines);
        let made = app.library_template(&[("name", name)], &document).await;
        ids.push(made.data(201)["template_id"].clone());
    }

    let package = json!({ "name": "Sale", "template_ids": ids });
    let package = app.web(Method::POST, "/document-packages", package).await;
    let mut body = envelope_body(&Value::Null);
    body.as_object_mut().unwrap().remove("template_id");
    let waiting = app.post("/partner/envelopes", body).await.data(201);
    let owner = app.token("owner");
    let before = rows(&app).await;

    let arguments = json!({
        "id": waiting["envelope_id"],
        "body": { "package_id": package.data(201)["package_id"] },
    });
    let (passed, answer) = call_as(&app, &owner, "sendEnvelope", arguments).await;
    assert!(passed && answer["dry_run"] == true, "{answer}");
    assert_eq!(rows(&app).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_assistant_reads_the_guides() {
    let app = TestApp::start().await;
    let listed = asked(&app, &app.key, "resources/list", json!({})).await;
    let listed = listed.json()["result"]["resources"].clone();
    let guide = |name: &str| {
        let listed = listed.as_array().unwrap();
        listed.iter().find(|one| one["name"] == name).unwrap()["uri"].clone()
    };
    let read = json!({ "uri": guide("control") });
    let read = asked(&app, &app.key, "resources/read", read).await.json();
    let text = read["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("# Control\n"), "{text}");

    let unknown = json!({ "uri": "https://sign.example/docs/walks.md" });
    let unknown = asked(&app, &app.key, "resources/read", unknown).await;
    assert!(
        unknown.json()["error"]["message"].is_string(),
        "{}",
        unknown.text()
    );
}

/// The sandbox of payments is part of the host: a dry run ends before it, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_asks_for_no_payment() {
    let payment = PaymentSettings {
        amount_cents: 4900,
        currency: "USD".into(),
        payer: "first".into(),
        connected_account: None,
        platform_fee_cents: None,
    };
    let settings = OrgSettings {
        payment: Some(payment),
        ..OrgSettings::default()
    };
    let app = TestApp::with(|_| {}, settings).await;
    let id = app.sent_envelope().await["envelope_id"].clone();

    let owner = app.token("owner");
    let before = rows(&app).await;
    let (passed, answer) = call_as(&app, &owner, "collectPayment", json!({ "id": id })).await;
    assert!(passed && answer["dry_run"] == true, "{answer}");
    assert_eq!(rows(&app).await, before);
}

/// A request of version 2026-07-28: there is no handshake, each request names version and client, and headers repeat
/// its method and subject.
fn message_without_handshake(
    version: &'static str,
    method: &str,
    name: Option<&str>,
    mut params: Value,
) -> Request<Body> {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": { "name": "elm", "version": "1.0.0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });

    let mut request = message(method, params);
    let headers = request.headers_mut();
    let text = |value: &str| HeaderValue::from_str(value).unwrap();
    headers.insert("mcp-protocol-version", text(version));
    headers.insert("mcp-method", text(method));
    if let Some(name) = name {
        headers.insert("mcp-name", text(name));
    }

    request
}

#[tokio::test(flavor = "multi_thread")]
async fn the_version_2026_07_28_needs_no_handshake() {
    let app = TestApp::start().await;
    let id = app.sent_envelope().await["envelope_id"].clone();
    let ask = async |method: &str, name: Option<&str>, params: Value| {
        let request = message_without_handshake("2026-07-28", method, name, params);
        sent(&app, &app.key, request).await
    };

    let found = ask("server/discover", None, json!({})).await;
    assert_eq!(found.status, 200, "{}", found.text());
    let found = found.json()["result"].clone();
    let versions = found["supportedVersions"].as_array().unwrap();
    for version in ["2025-11-25", "2026-07-28"] {
        assert!(versions.contains(&json!(version)), "{found}");
    }
    assert!(found["capabilities"]["tools"].is_object(), "{found}");

    // Lists state for how long, and for which callers, they may be cached.
    let listed = ask("tools/list", None, json!({})).await.json()["result"].clone();
    assert_eq!(listed["resultType"], "complete", "{listed}");
    assert_eq!(listed["cacheScope"], "private", "{listed}");
    assert!(listed["ttlMs"].is_u64(), "{listed}");

    let call = json!({ "name": "getEnvelope", "arguments": { "id": id } });
    let read = ask("tools/call", Some("getEnvelope"), call.clone()).await;
    let read = read.json()["result"]["structuredContent"]["data"].clone();
    assert_eq!(read["envelope_id"], id);

    // What a proxy reads in the headers is what the request does.
    let other = ask("tools/call", Some("voidEnvelope"), call.clone()).await;
    assert_eq!(other.status, 400, "{}", other.text());
    assert_eq!(other.json()["error"]["code"], -32020);
    let missing = ask("tools/call", None, call).await;
    assert_eq!(missing.status, 400, "{}", missing.text());

    let uri = "https://sign.example/docs/walks.md";
    let unknown = ask("resources/read", Some(uri), json!({ "uri": uri })).await;
    assert_eq!(unknown.json()["error"]["code"], -32602);

    // Removed from this version of the protocol.
    assert_eq!(ask("ping", None, json!({})).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn earlier_versions_are_agreed_on_in_the_handshake() {
    let app = TestApp::start().await;
    let hello = |version: &str| {
        let params = json!({
            "protocolVersion": version, "capabilities": {},
            "clientInfo": { "name": "elm", "version": "1.0.0" },
        });
        let mut request = message("initialize", params);
        request.headers_mut().remove("mcp-protocol-version");
        request
    };

    for version in ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] {
        let agreed = sent(&app, &app.key, hello(version)).await;
        let agreed = agreed.json()["result"].clone();
        assert_eq!(agreed["protocolVersion"], version, "{agreed}");
        assert_eq!(agreed["serverInfo"]["name"], "holdfast", "{agreed}");
    }

    // Its answers have no members of later versions.
    let listed = asked(&app, &app.key, "tools/list", json!({})).await;
    let listed = listed.json()["result"].clone();
    assert!(listed["tools"].is_array(), "{listed}");
    assert!(listed.get("resultType").is_none(), "{listed}");
    assert_eq!(asked(&app, &app.key, "ping", json!({})).await.status, 200);

    let uri = json!({ "uri": "https://sign.example/docs/walks.md" });
    let unknown = asked(&app, &app.key, "resources/read", uri).await.json();
    assert_eq!(unknown["error"]["code"], -32002);

    let later = message_without_handshake("2099-01-01", "tools/list", None, json!({}));
    let refused = sent(&app, &app.key, later).await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    let known = refused.json()["error"]["data"]["supported"].clone();
    assert!(known.as_array().unwrap().contains(&json!("2026-07-28")));
}

/// The protocol's own checks. They send no credential, so a key is added on the way.
#[tokio::test(flavor = "multi_thread")]
async fn the_protocols_conformance_checks_pass() {
    let app = TestApp::start().await;
    let key = HeaderValue::from_str(&app.key).unwrap();
    let with_key = move |mut request: Request<Body>| {
        request.headers_mut().insert("x-api-key", key.clone());
        request
    };
    let router = tower::util::MapRequest::new(app.router(), with_key);

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let service = axum::ServiceExt::<Request<Body>>::into_make_service(router);
    tokio::spawn(async move { axum::serve(listener, service).await });

    let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../mcp-conformance");
    let program = tools.join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let results = tempfile::tempdir().unwrap();
    let baseline = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/fixtures/mcp-conformance.yaml"
    );

    let mut checks = Command::new(tools.join("node_modules/.bin/node"));
    checks
        .arg(program)
        .args(["server", "--url", &url, "--suite", "active"])
        .args(["--expected-failures", baseline, "--output-dir"])
        .arg(results.path());
    let output = tokio::task::spawn_blocking(move || checks.output());
    let output = output
        .await
        .unwrap()
        .expect("node; tests/set-up test installs it");
    let text = String::from_utf8_lossy(&output.stdout);

    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");

    // Scenarios that apply to a server without the fixtures of the checks.
    for scenario in [
        "server-initialize",
        "ping",
        "tools-list",
        "resources-list",
        "dns-rebinding-protection",
    ] {
        let listed = fs::read_to_string(baseline).unwrap();
        assert!(!listed.contains(&format!("- {scenario}\n")), "{scenario}");
        assert!(
            text.contains(&format!("✓ {scenario}")),
            "{scenario}: {text}"
        );
    }
}
