//! The partner surface: credentials, validation, errors.

use axum::body::Body;
use axum::http::Request;
use holdfast::domain::organization::Scope;
use serde_json::{Value, json};

use crate::support::{CONTRACT, TestApp, envelope_body, operator};

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_carries_a_request_id() {
    let app = TestApp::start().await;
    for path in [
        "/healthz",
        "/api/v2/partner/envelopes",
        "/nowhere",
        "/api/v2/partner/nowhere",
    ] {
        let answer = app
            .send(Request::get(path).body(Body::empty()).unwrap())
            .await;
        let id = answer.headers["x-request-id"].to_str().unwrap();
        assert!(id.starts_with("req_") && id.len() == 30, "{path}: {id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_a_key_is_refused() {
    let app = TestApp::start().await;
    let request = Request::get("/api/v2/partner/envelopes")
        .body(Body::empty())
        .unwrap();
    assert_eq!(app.send(request).await.error(401), "API key is required");
    assert_eq!(
        app.get_as("lk_wrong", "/partner/envelopes")
            .await
            .error(401),
        "Invalid API key"
    );

    let unknown = format!("lk_{}", "0".repeat(40));
    assert_eq!(
        app.get_as(&unknown, "/partner/envelopes").await.error(401),
        "Invalid API key"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_without_its_version_is_answered_with_the_right_one() {
    let app = TestApp::start().await;
    let ask = async |path: &str| {
        let request = Request::get(path).header("x-api-key", &app.key);
        app.send(request.body(Body::empty()).unwrap()).await
    };
    let refused = ask("/partner/envelopes/env_1/status?verbose=1").await;
    let expected = "Not found; did you mean /api/v2/partner/envelopes/env_1/status?";
    assert_eq!(refused.error(404), expected);

    for path in ["/partner/nothing", "/api/v2/partner/nothing"] {
        assert_eq!(ask(path).await.error(404), "Not found", "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_in_the_wrong_header_is_refused_with_the_right_one() {
    let app = TestApp::start().await;
    let (partner, web) = ("/partner/envelopes", "/templates");
    let of_key = "Send the API key in the header X-API-Key";
    let of_token = "Send a token as Authorization: Bearer; this operation takes no API key";
    let is_token = "This is a token; operations of the web app take it as Authorization: Bearer";
    let is_key = "This is an API key; operations of partners take it in the header X-API-Key";
    for (answer, error, hint) in [
        (
            app.get_with_bearer(&app.key, partner).await,
            "API key is required",
            of_key,
        ),
        (
            app.get_as(app.web_admin(), partner).await,
            "Invalid API key",
            is_token,
        ),
        (
            app.get_as(&app.key, web).await,
            "Authentication required",
            of_token,
        ),
        (
            app.get_with_bearer(&app.key, web).await,
            "Invalid token",
            is_key,
        ),
    ] {
        assert_eq!(answer.status, 401);
        let expected = json!({ "error": error, "details": { "hint": hint } });
        assert_eq!(answer.json(), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_without_the_scope_is_refused_before_the_request_is_read() {
    let app = TestApp::start().await;
    let key = app.key_with(&[Scope::EnvelopesRead]).await;
    assert_eq!(app.get_as(&key, "/partner/envelopes").await.status, 200);

    let answer = app
        .post_text(&key, "/partner/envelopes", "application/json", "{broken")
        .await;
    let details = answer.json()["details"].clone();
    assert_eq!(details["scope"], "envelopes:write");
    assert_eq!(details["granted_by"], json!(["owner", "admin"]));
    assert_eq!(answer.error(403), "Missing required scope: envelopes:write");

    for (path, scope) in [
        ("/partner/envelopes/env_x/vault/signed-url", "vault:read"),
        ("/partner/envelopes/env_x/compliance", "compliance:read"),
        ("/partner/envelopes/env_x/custody", "compliance:read"),
    ] {
        let expected = format!("Missing required scope: {scope}");
        assert_eq!(app.get_as(&key, path).await.error(403), expected);
    }

    for (path, scope) in [
        ("/partner/envelopes/env_x/vault-in-signed", "vault:write"),
        ("/partner/envelopes/env_x/vault-out", "vault:release"),
        ("/partner/templates", "envelopes:write"),
    ] {
        let expected = format!("Missing required scope: {scope}");
        assert_eq!(
            app.post_as(&key, path, json!({})).await.error(403),
            expected
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_body_is_a_400_and_writes_nothing() {
    let app = TestApp::start().await;
    let broken = app
        .post_text(
            &app.key,
            "/partner/envelopes",
            "application/json",
            "{broken",
        )
        .await;
    assert!(broken.error(400).starts_with("Invalid JSON"));

    let text = app
        .post_text(&app.key, "/partner/envelopes", "text/plain", "{}")
        .await;
    assert_eq!(text.error(400), "Content-Type must be application/json");

    let query = app.get("/partner/envelopes?limit=101").await;
    assert_eq!(query.error(400), "limit must be 1 to 100");

    for query in ["limit=0", "page=0", "page=x", "status=lost"] {
        app.get(&format!("/partner/envelopes?{query}"))
            .await
            .error(400);
    }

    let big = " ".repeat(1024 * 1024 + 1);
    app.post_text(&app.key, "/partner/envelopes", "application/json", big)
        .await
        .error(413);
    assert_eq!(
        app.get("/partner/envelopes").await.json()["meta"]["total"],
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_problem_of_a_body_is_reported_at_once() {
    let app = TestApp::start().await;
    let answer = app
        .post(
            "/partner/envelopes",
            json!({
                "customer_email": "not an address",
                "customer_name": 5,
                "envelope_kind": "stone",
                "signers": [{ "email": "a@example.com", "role": "Buyer" }],
            }),
        )
        .await;
    assert_eq!(answer.status, 422);

    let body = answer.json();
    assert_eq!(body["error"], "Validation failed");

    let details = body["details"].as_array().unwrap();
    let paths: Vec<String> = details
        .iter()
        .map(|issue| issue["path"].to_string())
        .collect();
    for path in [
        r#"["envelope_name"]"#,
        r#"["customer_email"]"#,
        r#"["customer_name"]"#,
        r#"["envelope_kind"]"#,
        r#"["signers",0,"name"]"#,
    ] {
        assert!(
            paths.iter().any(|found| found == path),
            "{path} is not in {body}"
        );
    }

    for issue in details {
        for member in ["code", "expected", "received", "path", "message"] {
            assert!(issue.get(member).is_some(), "{member} is not in {issue}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn signers_and_prefill_have_to_match_the_template() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let mut body = envelope_body(&template["template_id"]);
    body["signers"] = json!([
        { "email": "a@example.com", "name": "A", "role": "Seller" },
        { "email": "b@example.com", "name": "B", "role": "Buyer" },
    ]);

    body["prefilled_data"] = json!({ "Colour": "red" });
    let answer = app.post("/partner/envelopes", body).await;
    assert_eq!(answer.status, 422);

    let codes: Vec<Value> = answer.json()["details"]
        .as_array()
        .unwrap()
        .iter()
        .map(|issue| issue["code"].clone())
        .collect();
    assert_eq!(codes, ["unknown_role", "too_many_signers", "unknown_field"]);
    assert_eq!(
        app.get("/partner/envelopes").await.json()["meta"]["total"],
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_template_or_envelope_is_a_404() {
    let app = TestApp::start().await;
    let unknown = holdfast::domain::id::TemplateId::new().to_string();
    for template in [unknown.as_str(), "tmpl_x", "env_x"] {
        let answer = app
            .post("/partner/envelopes", envelope_body(&template.into()))
            .await;
        assert_eq!(answer.error(404), "Template not found");
    }

    let unknown = holdfast::domain::id::EnvelopeId::new().to_string();
    for id in [unknown.as_str(), "env_x", "cust_x", "%00"] {
        let answer = app.get(&format!("/partner/envelopes/{id}")).await;
        assert_eq!(answer.error(404), "Envelope not found");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_organizations_envelope_is_a_404() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let id = envelope["envelope_id"].as_str().unwrap();
    let stranger = app.other_organization().await;

    let unknown = holdfast::domain::id::EnvelopeId::new().to_string();
    for path in [
        "",
        "/status",
        "/signing-links",
        "/compliance",
        "/custody",
        "/vault/certificate",
        "/vault/signed-url",
        "/vault/copy/signed-url",
    ] {
        let foreign = app
            .get_as(&stranger, &format!("/partner/envelopes/{id}{path}"))
            .await;
        let missing = app
            .get_as(&stranger, &format!("/partner/envelopes/{unknown}{path}"))
            .await;
        assert_eq!(
            (foreign.status.as_u16(), &foreign.bytes),
            (404, &missing.bytes),
            "{path}"
        );
    }

    for (path, body) in [
        ("void", json!({})),
        ("vault-in-signed", json!({})),
        ("vault-in-upload", json!({})),
        ("vault-out", crate::support::release_form()),
    ] {
        let foreign = app
            .post_as(
                &stranger,
                &format!("/partner/envelopes/{id}/{path}"),
                body.clone(),
            )
            .await;
        assert_eq!(foreign.error(404), "Envelope not found", "{path}");
    }

    let template = app.contract_template().await;
    let body = envelope_body(&template["template_id"]);
    assert_eq!(
        app.post_as(&stranger, "/partner/envelopes", body)
            .await
            .error(404),
        "Template not found"
    );
    assert_eq!(
        app.get_as(&stranger, "/partner/envelopes").await.json()["meta"]["total"],
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_filtered_paged_and_sorted_newest_first() {
    let app = TestApp::start().await;
    for number in 0..3 {
        let mut body = envelope_body(&Value::Null);
        body["envelope_kind"] = "paper".into();
        body["external_id"] = format!("deal-{number}").into();
        app.post("/partner/envelopes", body).await.data(201);
    }

    let page = app.get("/partner/envelopes?limit=2").await.json();
    assert_eq!(page["meta"], json!({ "page": 1, "limit": 2, "total": 3 }));
    assert_eq!(page["data"][0]["external_id"], "deal-2");

    let keys: Vec<&String> = page["data"][0].as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "envelope_id",
            "envelope_name",
            "status",
            "customer_id",
            "external_id",
            "created_at",
            "updated_at"
        ]
    );

    let rest = app.get("/partner/envelopes?limit=2&page=2").await.json();
    assert_eq!(rest["data"].as_array().unwrap().len(), 1);
    assert_eq!(rest["data"][0]["external_id"], "deal-0");
    assert_eq!(
        app.get("/partner/envelopes?status=sent").await.json()["meta"]["total"],
        0
    );

    let customer = page["data"][0]["customer_id"].as_str().unwrap();
    let found = app
        .get(&format!("/partner/envelopes?customer_id={customer}"))
        .await
        .json();
    assert_eq!(found["meta"]["total"], 3);

    let path = format!("/partner/envelopes?customer_id={customer}&limit=1&page=2");
    let second = app.get(&path).await.json();
    assert_eq!(second["data"].as_array().unwrap().len(), 1);
    assert_eq!(second["data"][0]["external_id"], "deal-1");
    assert_eq!(second["meta"]["total"], 3);
}

/// Names of the envelopes of a page, without the word before the number.
fn numbers(page: &Value) -> String {
    let data = page["data"].as_array().unwrap().iter();
    let names = data.map(|one| one["external_id"].as_str().unwrap().replace("deal-", ""));
    names.collect::<Vec<_>>().join(" ")
}

async fn lists_have_filters_and_cursors(app: TestApp) {
    for number in 0..6 {
        let mut body = envelope_body(&Value::Null);
        body["envelope_kind"] = "paper".into();
        body["external_id"] = format!("deal-{number}").into();
        body["metadata"] = json!({ "branch": if number % 2 == 0 { "north" } else { "south" }, "year": 2020 + number });

        let made = app.post("/partner/envelopes", body).await.data(201);
        if number == 5 {
            let path = format!(
                "/partner/envelopes/{}/void",
                made["envelope_id"].as_str().unwrap()
            );
            app.post(&path, json!({ "reason": "Replaced" }))
                .await
                .data(200);
        }
    }

    let list = async |query: &str| {
        let answer = app.get(&format!("/partner/envelopes?{query}")).await;
        assert_eq!(answer.status, 200, "{query}: {}", answer.text());
        answer.json()
    };
    let all = list("limit=100").await;

    let of =
        |number: usize, member: &str| all["data"][5 - number][member].as_str().unwrap().to_owned();
    for (query, found) in [
        ("external_id=deal-3".to_owned(), "3"),
        ("external_id=deal".to_owned(), ""),
        ("statuses=uploaded,voided".to_owned(), "5 4 3 2 1 0"),
        ("statuses=voided".to_owned(), "5"),
        ("status=voided&statuses=sent".to_owned(), "5"),
        ("metadata=branch:north".to_owned(), "4 2 0"),
        ("metadata[branch]=north".to_owned(), "4 2 0"),
        ("metadata%5Bbranch%5D=south&limit=20".to_owned(), "5 3 1"),
        ("metadata=year:2021&statuses=uploaded".to_owned(), "1"),
        ("metadata=branch:west".to_owned(), ""),
        (format!("created_after={}", of(3, "created_at")), "5 4 3"),
        (format!("created_before={}", of(3, "created_at")), "2 1 0"),
        (format!("updated_after={}", of(5, "updated_at")), "5"),
        ("signer_email=nobody@elm.example".to_owned(), ""),
        ("batch=bsb_1".to_owned(), ""),
        (
            format!("customer_id={}&metadata=branch:south", of(0, "customer_id")),
            "5 3 1",
        ),
    ] {
        let page = list(&query).await;
        assert_eq!(numbers(&page), found, "{query}");

        let total = page["data"].as_array().unwrap().len();
        assert_eq!(
            page["meta"],
            json!({ "page": 1, "limit": 20, "total": total }),
            "{query}"
        );
    }

    let second = list("metadata=branch:north&limit=2&page=2").await;
    assert_eq!(numbers(&second), "0");
    assert_eq!(second["meta"], json!({ "page": 2, "limit": 2, "total": 3 }));

    // Envelopes that are added meanwhile do not move those behind the cursor.
    let first = list("limit=2").await;
    assert_eq!(numbers(&first), "5 4");

    app.envelope_event().await;
    let after = list(&format!("limit=3&starting_after={}", of(4, "envelope_id"))).await;
    assert_eq!(numbers(&after), "3 2 1");
    assert_eq!(after["meta"], json!({ "limit": 3, "has_more": true }));

    let last = list(&format!("limit=3&starting_after={}", of(1, "envelope_id"))).await;
    assert_eq!(
        (numbers(&last), &last["meta"]["has_more"]),
        ("0".to_owned(), &json!(false))
    );

    for wrong in [
        "starting_after=nothing".to_owned(),
        "starting_after=env_1".to_owned(),
        format!("page=2&starting_after={}", of(4, "envelope_id")),
        "statuses=uploaded,lost".to_owned(),
        "created_after=yesterday".to_owned(),
    ] {
        let refused = app.get(&format!("/partner/envelopes?{wrong}")).await;
        assert_eq!(refused.status, 400, "{wrong}: {}", refused.text());
    }

    let odd = app.get("/partner/envelopes?metadata=branch").await;
    assert_eq!(odd.status, 422, "{}", odd.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_have_filters_and_cursors_on_sqlite() {
    lists_have_filters_and_cursors(TestApp::start().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_have_filters_and_cursors_on_postgresql() {
    lists_have_filters_and_cursors(TestApp::on_postgresql().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_void_is_final_and_reaches_the_provider() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let id = envelope["envelope_id"].as_str().unwrap();
    let path = format!("/partner/envelopes/{id}/void");
    let voided = app
        .post(&path, json!({ "reason": "wrong price" }))
        .await
        .data(200);
    assert_eq!(voided["status"], "voided");

    let again = app.post(&path, json!({})).await.error(422);
    assert_eq!(again, "Cannot void envelope with status: voided");

    let page = crate::support::form::open(&app, envelope["sign_url"].as_str().unwrap()).await;
    assert!(page.text().contains("withdrawn"), "{}", page.text());

    let events = app.events(id).await;
    assert_eq!(events.last().unwrap()["data"]["reason"], "wrong price");
}

#[tokio::test(flavor = "multi_thread")]
async fn upload_types_are_checked_by_their_bytes() {
    let app = TestApp::start().await;
    let mut body = envelope_body(&Value::Null);
    body["envelope_kind"] = "paper".into();
    let id = app.post("/partner/envelopes", body).await.data(201)["envelope_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/partner/envelopes/{id}/upload");

    assert_eq!(
        app.upload(&path, "application/pdf", b"MZ no PDF", &[])
            .await
            .status,
        415
    );
    assert_eq!(
        app.upload(&path, "image/png", CONTRACT, &[]).await.status,
        415
    );

    let broken = app
        .upload(&path, "application/pdf", b"%PDF-1.7\nand nothing else", &[])
        .await;
    assert_eq!(broken.error(422), "The PDF could not be read");

    let huge = vec![b'x'; 52_428_801];
    assert_eq!(
        app.upload(&path, "application/pdf", &huge, &[])
            .await
            .status,
        413
    );

    let missing = app
        .post_text(
            &app.key,
            &path,
            "multipart/form-data; boundary=b",
            "--b--\r\n",
        )
        .await;
    assert_eq!(missing.error(400), "file is required");
    assert_eq!(app.objects("uploads").len(), 0);

    app.upload(&path, "application/pdf", CONTRACT, &[])
        .await
        .data(201);
    assert_eq!(app.objects("uploads").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn template_responses_list_field_positions_and_problems() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    assert_eq!(template["fields_added"], 2);
    assert!(template["provider_template_id"].is_i64());
    assert_eq!(template["fields"][0]["anchor_match"]["page"], 4);
    assert_eq!(template["fields"][1]["areas"][0]["page"], 1);
    assert!(template["fields"][1].get("anchor_match").is_none());

    let id = template["template_id"].as_str().unwrap();
    let path = format!("/partner/templates/{id}/fields");
    let field = |placement: Value| json!({ "fields": [{ "name": "Note", "type": "text", "role": "Buyer", "placement": placement }] });
    let area = |page: u32, x: f64| json!({ "page": page, "x": x, "y": 0.1, "w": 0.1, "h": 0.1 });
    let added = app
        .post(
            &path,
            field(json!({ "mode": "absolute", "areas": [area(2, 0.1)] })),
        )
        .await
        .data(200);
    assert_eq!(added["fields_added"], 1);
    assert_eq!(added["fields"][0]["required"], false);

    for placement in [
        json!({ "mode": "absolute", "areas": [area(2, 1.5)] }),
        json!({ "mode": "absolute", "areas": [area(99, 0.1)] }),
        json!({ "mode": "absolute", "areas": [] }),
        json!({ "mode": "anchor", "anchor_text": "no such words here", "w": 0.1, "h": 0.1 }),
        json!({ "mode": "anchor", "anchor_text": "Buyer signature:", "occurrence": 9, "w": 0.1, "h": 0.1 }),
        json!({ "mode": "anchor", "anchor_text": "Buyer signature:", "offsetx": 0.1, "w": 0.1, "h": 0.1 }),
        json!({ "mode": "elsewhere" }),
    ] {
        let answer = app.post(&path, field(placement.clone())).await;
        assert_eq!(answer.status, 422, "{placement}: {}", answer.text());
        assert_eq!(answer.json()["error"], "Validation failed");
        assert_eq!(
            answer.json()["details"][0]["path"][0],
            "fields",
            "{}",
            answer.text()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_upload_needs_a_pdf_and_a_name() {
    let app = TestApp::start().await;
    let upload = |kind: &'static str,
                  file: &'static [u8],
                  texts: &'static [(&'static str, &'static str)]| {
        app.upload("/partner/templates", kind, file, texts)
    };
    assert_eq!(
        upload("application/pdf", CONTRACT, &[]).await.error(400),
        "name is required"
    );

    let texts = &[("name", "Contract"), ("fields_json", "[broken")];
    assert!(
        upload("application/pdf", CONTRACT, texts)
            .await
            .error(400)
            .starts_with("fields_json")
    );
    assert_eq!(
        upload("image/png", b"\x89PNG\r\n\x1a\n", &[("name", "x")])
            .await
            .status,
        415
    );

    let empty = upload("application/pdf", CONTRACT, &[("name", "Empty")])
        .await
        .data(200);
    assert_eq!(empty["fields_added"], 0);

    let refused = app
        .post("/partner/envelopes", envelope_body(&empty["template_id"]))
        .await;
    assert_eq!(refused.error(409), "Template has no fields to sign");
}

/// An operator's change of a key takes effect with the next request, also on nodes that cache
/// the key.
#[tokio::test(flavor = "multi_thread")]
async fn a_changed_key_takes_effect_at_the_next_request() {
    let app = TestApp::start().await;
    let envelope = app
        .post("/partner/envelopes", envelope_body(&Value::Null))
        .await
        .data(201);
    let path = format!(
        "/partner/envelopes/{}/status",
        envelope["envelope_id"].as_str().unwrap()
    );

    let unknown = "/partner/envelopes/env_1/status";
    let operate = |arguments: &[&str]| operator(app.data.path(), arguments);
    let org = app.org.as_str();
    let scopes = "envelopes:read,vault:read";
    let key = operate(&["key", "create", "--org", org, "--scopes", scopes]);
    let (id, first) = (
        key["key_id"].as_str().unwrap(),
        key["api_key"].as_str().unwrap(),
    );
    for _ in 0..2 {
        assert_eq!(app.get_as(first, &path).await.status, 200);
        assert_eq!(app.get_as(first, unknown).await.status, 404);
    }

    operate(&["key", "update", id, "--scopes", "vault:read"]);
    assert_eq!(
        app.get_as(first, &path).await.error(403),
        "Missing required scope: envelopes:read"
    );

    operate(&["key", "update", id, "--scopes", scopes]);
    for _ in 0..2 {
        assert_eq!(app.get_as(first, &path).await.status, 200);
    }

    let rotated = operate(&["key", "rotate", id]);
    let second = rotated["api_key"].as_str().unwrap();
    assert_eq!(app.get_as(first, &path).await.error(401), "Invalid API key");

    for _ in 0..2 {
        assert_eq!(app.get_as(second, &path).await.status, 200);
    }

    operate(&["key", "deactivate", id]);
    assert_eq!(
        app.get_as(second, unknown).await.error(401),
        "Invalid API key"
    );
    assert_eq!(
        app.get_as(second, &path).await.error(401),
        "Invalid API key"
    );
}

/// A dry run returns the areas of fields and all occurrences of their anchors, and writes
/// nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_of_a_placement_writes_nothing() {
    let app = TestApp::start().await;
    let template = app.template(CONTRACT, &json!([])).await;
    let path = format!(
        "/partner/templates/{}/fields",
        template["template_id"].as_str().unwrap()
    );
    let anchor = |text: &str, occurrence: u32| {
        json!({ "fields": [{
            "name": "Initials", "type": "initials", "role": "Buyer",
            "placement": { "mode": "anchor", "anchor_text": text, "occurrence": occurrence, "w": 0.1, "h": 0.02 },
        }] })
    };

    let dry = format!("{path}?dry_run=true");
    let said = app.post(&dry, anchor("Buyer", 2)).await.data(200);
    assert_eq!(said["fields_added"], 0);

    let matches = said["occurrences"][0]["matches"].as_array().unwrap();
    assert!(matches.len() > 2, "{said}");
    assert_eq!(said["fields"][0]["anchor_match"], matches[1]);
    assert_eq!(app.post(&dry, anchor("no such words", 1)).await.status, 422);

    let added = app.post(&path, anchor("Buyer", 2)).await.data(200);
    assert_eq!(added["fields_added"], 1);
    assert_eq!(added["fields"], said["fields"]);
    assert_eq!(added["occurrences"], Value::Null);
}

/// The service dies after sending new fields to the provider and before storing them. The
/// repeated call adds them only once.
#[tokio::test(flavor = "multi_thread")]
async fn fields_already_at_the_provider_are_not_added_twice() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let id = template["template_id"].as_str().unwrap();
    let path = format!("/partner/templates/{id}/fields");
    let initials = json!({ "fields": [{
        "name": "Initials", "type": "initials", "role": "Buyer",
        "placement": { "mode": "absolute", "areas": [{ "page": 1, "x": 0.8, "y": 0.9, "w": 0.1, "h": 0.03 }] },
    }] });

    let before = app.text_of("select fields from template").await;
    app.post(&path, initials.clone()).await.data(200);
    app.change("update template set fields = $1", &before).await;
    app.post(&path, initials).await.data(200);
    let envelope = app
        .post(
            "/partner/envelopes",
            envelope_body(&template["template_id"]),
        )
        .await
        .data(201);
    let form = crate::support::form::open(&app, envelope["sign_url"].as_str().unwrap()).await;
    assert_eq!(form.text().matches("name=\"Initials\"").count(), 1);
}
