//! Requests with misspelt names, with members left out, and with probable mistakes.

use axum::http::Method;
use serde_json::{Value, json};

use crate::support::{CONTRACT, TestApp, envelope_body, pdf};

/// Returns the codes of a response's warnings.
fn codes(answer: &Value) -> Vec<&str> {
    let warnings = answer["warnings"].as_array();
    let codes = warnings.into_iter().flatten();
    codes
        .map(|warning| warning["code"].as_str().unwrap())
        .collect()
}

async fn envelopes(app: &TestApp) -> Value {
    let list = app.get("/partner/envelopes").await;
    list.json()["meta"]["total"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signer_without_a_role_gets_the_default_role_for_the_position() {
    let app = TestApp::start().await;
    let document = pdf::with_lines(&[
        "{{First;type=signature;required=true}}",
        "{{Second;type=signature;role=Signer 2;required=true}}",
    ]);
    let texts = [("name", "Two")];
    let template = app
        .upload("/partner/templates", "application/pdf", &document, &texts)
        .await
        .data(200);
    let mut body = envelope_body(&template["template_id"]);
    body["signers"] = json!([
        { "email": "ann@example.com", "name": "Ann" },
        { "email": "bob@example.com", "name": "Bob" },
    ]);

    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let id = envelope["envelope_id"].as_str().unwrap();
    let sent = app.entry(id, "envelope.sent").await;
    let roles: Vec<&Value> = sent["signers"].as_array().unwrap().iter().collect();
    assert_eq!(roles[0]["role"], "Signer 1");
    assert_eq!(roles[1]["role"], "Signer 2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_default_role_that_the_template_lacks_is_refused_by_name() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let mut body = envelope_body(&template["template_id"]);
    body["signers"] = json!([{ "email": "ann@example.com", "name": "Ann" }]);
    let refused = app.post("/partner/envelopes", body).await;
    assert_eq!(refused.status, 422);

    let issue = refused.json()["details"][0].clone();
    assert_eq!(issue["code"], "unknown_role");
    assert_eq!(issue["received"], "Signer 1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_outside_its_limits_is_refused_with_the_valid_ones() {
    let app = TestApp::start().await;
    let good = envelope_body(&Value::Null);
    let path = "/partner/envelopes/env_1/questions/qst_1/close";
    for (path, body, code, expected) in [
        (
            "/partner/webhook",
            json!({ "webhook_url": null, "webhook_secret": "short" }),
            "too_small",
            "at least 16 characters",
        ),
        (
            path,
            json!({ "answer": "x".repeat(5000) }),
            "too_big",
            "at most",
        ),
    ] {
        let answer = match path {
            "/partner/webhook" => app.patch(path, body).await,
            _ => app.post(path, body).await,
        };
        let issue = answer.json()["details"][0].clone();
        assert_eq!(answer.status, 422, "{path}: {}", answer.text());
        assert_eq!(issue["code"], code, "{issue}");
        assert!(
            issue["expected"].as_str().unwrap().starts_with(expected),
            "{issue}"
        );
    }

    // A text with a few valid values, each described by a schema of its own.
    let mut body = good.clone();
    body["envelope_kind"] = "stone".into();
    let answer = app.post("/partner/envelopes", body).await;
    let issue = answer.json()["details"][0].clone();
    assert_eq!(issue["code"], "invalid_enum_value", "{issue}");
    for kind in ["esign", "paper"] {
        assert!(
            issue["expected"].as_str().unwrap().contains(kind),
            "{issue}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_a_query_are_refused_in_words_about_the_parameter() {
    let app = TestApp::start().await;
    for (query, error) in [
        ("status=lost", "status: Expected one of ["),
        ("limit=many", "limit: Expected integer"),
        (
            "starting_after=nothing",
            "starting_after: Expected text that matches ^(env_)",
        ),
        ("limit=5&limit=6", "limit is there twice"),
    ] {
        let answer = app.get(&format!("/partner/envelopes?{query}")).await;
        let text = answer.error(400);
        let expected = format!("Invalid query parameter: {error}");
        assert!(text.starts_with(&expected), "{query}: {text}");
        for word in ["deserialize", "variant", "digit found"] {
            assert!(!text.contains(word), "{query}: {text}");
        }
    }

    let missing = app.get("/partner/customers").await;
    let issue = missing.json()["details"][0].clone();
    assert_eq!(issue["path"], json!(["email"]), "{issue}");
    assert_eq!(
        missing.error(400),
        "Invalid query parameter: email is required"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_member_is_refused_with_the_nearest_known_name() {
    let app = TestApp::start().await;
    let mut body = envelope_body(&Value::Null);
    body["templateId"] = "tmpl_01jdk7m3e8f4x9s2w5v6b0c1da".into();
    body["secured_party"]["nme"] = "First Example Bank".into();
    body["colour"] = "red".into();
    let refused = app.post("/partner/envelopes", body).await;
    assert_eq!(refused.status, 422, "{}", refused.text());

    let mut issues = refused.json()["details"].as_array().unwrap().clone();
    issues.sort_by_key(|issue| issue["path"].to_string());
    assert!(issues.iter().all(|issue| issue["code"] == "unknown_member"));
    assert_eq!(issues[0]["path"], json!(["colour"]));
    assert_eq!(issues[0].get("nearest"), None);
    assert_eq!(issues[1]["path"], json!(["secured_party", "nme"]));
    assert_eq!(issues[1]["nearest"], "name");
    assert_eq!(issues[2]["path"], json!(["templateId"]));
    assert_eq!(issues[2]["nearest"], "template_id");

    let message = issues[2]["message"].as_str().unwrap();
    assert_eq!(
        message,
        "Unknown member: templateId; did you mean template_id?"
    );
    assert_eq!(
        envelopes(&app).await,
        0,
        "a refused request changes nothing"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_member_of_a_field_is_refused_with_its_location() {
    let app = TestApp::start().await;
    let fields = json!([{
        "name": "Signature", "type": "signature", "role": "Buyer", "requird": true,
        "placement": { "mode": "absolute", "areas": [{ "page": 1, "x": 0.1, "y": 0.1, "w": 0.1, "h": 0.1 }] },
    }]);
    let texts = [("name", "Contract"), ("fields_json", &fields.to_string())];
    let refused = app
        .upload("/partner/templates", "application/pdf", CONTRACT, &texts)
        .await;
    assert_eq!(refused.status, 422, "{}", refused.text());

    let issue = refused.json()["details"][0].clone();
    assert_eq!(issue["code"], "unknown_member");
    assert_eq!(issue["path"], json!(["fields", 0, "requird"]));
    assert_eq!(issue["nearest"], "required");
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_members_are_refused_in_web_app_requests() {
    let app = TestApp::start().await;
    for (path, body, member, nearest) in [
        (
            "/templates",
            json!({ "name": "A", "kbaRequired": true }),
            "kbaRequired",
            "kba_required",
        ),
        (
            "/webhooks/endpoints",
            json!({ "url": "https://example.com/hook", "events": ["*"], "partnerKeyId": null }),
            "partnerKeyId",
            "partner_key_id",
        ),
        (
            "/bulk-send",
            json!({ "name": "A", "document_source": "new", "tags": [] }),
            "tags",
            "tag_ids",
        ),
    ] {
        let refused = app.web(Method::POST, path, body).await;
        assert_eq!(refused.status, 422, "{path}: {}", refused.text());
        let issue = refused.json()["details"][0].clone();
        assert_eq!(issue["path"], json!([member]), "{path}");
        assert_eq!(issue["nearest"], nearest, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_part_of_a_form_is_refused_with_the_nearest_known_name() {
    let app = TestApp::start().await;
    let texts = [("name", "Contract"), ("fields", "[]")];
    let refused = app
        .upload("/partner/templates", "application/pdf", CONTRACT, &texts)
        .await;
    let issue = refused.json()["details"][0].clone();
    assert_eq!(issue["nearest"], "fields_json");
    assert_eq!(
        (&issue["expected"], &issue["received"]),
        (&json!("a known part"), &json!("fields"))
    );

    let error = refused.error(400);
    assert_eq!(error, "Unknown part: fields; did you mean fields_json?");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_query_parameter_is_refused_after_authentication() {
    let app = TestApp::start().await;
    let refused = app.get("/partner/envelopes?limt=5").await;
    let issue = refused.json()["details"][0].clone();
    assert_eq!(issue["nearest"], "limit");
    assert_eq!(
        (&issue["expected"], &issue["received"]),
        (&json!("a known query parameter"), &json!("limt"))
    );

    let error = refused.error(400);
    assert_eq!(error, "Unknown query parameter: limt; did you mean limit?");

    let stranger = app.get_as("lk_nobody", "/partner/envelopes?limt=5").await;
    assert_eq!(stranger.status, 401);

    let envelope = app.sent_envelope().await;
    let id = envelope["envelope_id"].as_str().unwrap();
    for path in ["", "/status", "/compliance"] {
        let path = format!("/partner/envelopes/{id}{path}?verbose=1");
        assert_eq!(app.get(&path).await.status, 400, "{path}");
    }

    let web = app
        .get_with_bearer(app.web_admin(), "/templates?pge=1")
        .await;
    assert_eq!(web.json()["details"][0]["nearest"], "page");
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_and_metadata_of_third_parties_are_not_restricted() {
    let app = TestApp::start().await;
    let body = r#"{"event_type":"ping","data":{}}"#;
    let callback = app
        .post_text(
            "",
            "/callbacks/signing/embedded?source=vendor",
            "application/json",
            body,
        )
        .await;
    assert_eq!(
        callback.status, 401,
        "a provider's own parameters are no reason to refuse"
    );

    let template = app.contract_template().await;
    let mut body = envelope_body(&template["template_id"]);
    body["prefilled_data"] = json!({ "Signed on": "2026-11-21" });

    app.post("/partner/envelopes", body).await.data(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_warns_about_optional_signatures_and_ambiguous_anchors() {
    let app = TestApp::start().await;
    let document = pdf::with_lines(&["Sign here:", "Terms", "Sign here:", "Date:"]);
    let anchor = |name: &str, kind: &str, text: &str, more: Value| {
        let mut placement = json!({ "mode": "anchor", "anchor_text": text, "w": 0.2, "h": 0.03 });
        placement
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({ "name": name, "type": kind, "role": "Buyer", "placement": placement })
    };
    let fields = json!([
        anchor("Signature", "signature", "Sign here:", json!({})),
        anchor(
            "Chosen",
            "initials",
            "Sign here:",
            json!({ "occurrence": 2 })
        ),
        anchor("Date", "date", "Date:", json!({})),
    ]);

    let texts = [("name", "Contract"), ("fields_json", &fields.to_string())];
    let created = app
        .upload("/partner/templates", "application/pdf", &document, &texts)
        .await;
    assert_eq!(created.status, 200, "{}", created.text());

    let answer = created.json();
    assert_eq!(
        codes(&answer),
        ["ambiguous_anchor", "no_required_signature"]
    );

    let ambiguous = &answer["warnings"][0];
    assert_eq!(
        ambiguous["path"],
        json!(["fields", 0, "placement", "anchor_text"])
    );

    let others = ambiguous["occurrences"].as_array().unwrap();
    assert_eq!(others.len(), 1);

    let first = &answer["data"]["fields"][0]["anchor_match"];
    assert_eq!(others[0]["page"], 1);
    assert!(others[0]["y"].as_f64() > first["y"].as_f64(), "{others:?}");

    let message = answer["warnings"][1]["message"].as_str().unwrap();
    assert!(message.contains("Buyer"), "{message}");

    let added = format!(
        "/partner/templates/{}/fields",
        answer["data"]["template_id"].as_str().unwrap()
    );
    let again = json!({ "fields": [anchor("Again", "text", "Sign here:", json!({}))] });
    let added = app.post(&added, again).await;
    assert_eq!(codes(&added.json()), ["ambiguous_anchor"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exact_anchor_is_written_in_the_document_as_in_the_request() {
    let app = TestApp::start().await;
    let document = pdf::with_lines(&["Buyer's signature", "Terms", "BUYER\\222S signature"]);
    let create = async |text: &str, more: Value| {
        let mut placement = json!({ "mode": "anchor", "anchor_text": text, "w": 0.2, "h": 0.03 });
        placement
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let fields = json!([{ "name": "Signature", "type": "signature", "role": "Buyer", "required": true,
            "placement": placement }]);
        let texts = [("name", "Contract"), ("fields_json", &fields.to_string())];

        app.upload("/partner/templates", "application/pdf", &document, &texts)
            .await
    };

    let top = async |text: &str, more: Value| {
        let created = create(text, more).await;
        assert_eq!(created.status, 200, "{}", created.text());
        created.json()["data"]["fields"][0]["anchor_match"]["y"].as_f64()
    };

    let (first, second) = (
        top("Buyer's signature", json!({ "occurrence": 1 })).await,
        top("Buyer's signature", json!({ "occurrence": 2 })).await,
    );
    assert!(first < second, "{first:?} {second:?}");

    let exact = json!({ "exact": true });
    assert_eq!(top("Buyer's signature", exact.clone()).await, first);
    assert_eq!(top("Buyer\u{2019}s signature", exact.clone()).await, second);

    let absent = create("Buyer\u{2018}s signature", exact).await;
    assert_eq!(absent.status, 422, "{}", absent.text());

    let issue = &absent.json()["details"][0];
    assert_eq!(issue["code"], "anchor_not_found", "{issue}");
    assert_eq!(
        issue["path"],
        json!(["fields", 0, "placement", "anchor_text"])
    );

    let message = issue["message"].as_str().unwrap();
    assert!(
        message.contains("“BUYER\u{2019}S signature” on page 1"),
        "{message}"
    );

    let beyond = create(
        "Buyer's signature",
        json!({ "exact": true, "occurrence": 2 }),
    )
    .await;
    assert_eq!(beyond.status, 422, "{}", beyond.text());
    assert_eq!(
        beyond.json()["details"][0]["code"],
        "occurrence_out_of_range"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_valid_template_has_no_warnings() {
    let app = TestApp::start().await;
    let document = pdf::with_lines(&["{{Signature;type=signature;role=Buyer;required=true}}"]);
    let texts = [("name", "Contract")];
    let created = app
        .upload("/partner/templates", "application/pdf", &document, &texts)
        .await;
    assert_eq!(created.json().get("warnings"), None, "{}", created.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn problematic_tags_cause_warnings() {
    let app = TestApp::start().await;
    let document = pdf::with_lines(&[
        "{{Signature;type=signature;role=Buyer;required=true;condition=x}}",
        "{{Remark;type=text}}",
    ]);
    let texts = [("name", "Contract")];
    let created = app.library_template(&texts, &document).await;
    let answer = created.json();
    assert_eq!(
        codes(&answer),
        [
            "tag_attribute_without_effect",
            "tag_without_role",
            "no_signature_field",
            "no_required_signature"
        ]
    );

    let plain = app
        .upload("/partner/templates", "application/pdf", CONTRACT, &texts)
        .await;
    assert_eq!(codes(&plain.json()), ["no_fields"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_without_a_secured_party_is_created_with_a_warning() {
    let app = TestApp::start().await;
    let mut body = envelope_body(&Value::Null);
    body["secured_party"] = Value::Null;
    let created = app.post("/partner/envelopes", body.clone()).await;
    assert_eq!(created.status, 201, "{}", created.text());
    assert_eq!(
        codes(&created.json()),
        ["secured_party_missing", "unknown_customer"]
    );

    body["secured_party"] = json!({ "name": " " });
    body["envelope_kind"] = "paper".into();
    body["signers"] = json!([{ "email": "ann@example.com", "name": "Ann" }]);
    body["recipients"] = body["signers"].clone();
    let nameless = app.post("/partner/envelopes", body).await.json();
    assert_eq!(
        codes(&nameless),
        [
            "secured_party_missing",
            "member_without_effect",
            "member_without_effect"
        ]
    );
    assert_eq!(
        nameless["warnings"][0]["path"],
        json!(["secured_party", "name"])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replayed_response_includes_its_warnings() {
    use axum::http::Request;

    let app = TestApp::start().await;
    let body = envelope_body(&Value::Null).to_string();
    let ask = async || {
        let request = Request::post("/api/v2/partner/envelopes")
            .header("x-api-key", &app.key)
            .header("idempotency-key", "once")
            .header("content-type", "application/json");
        app.send(request.body(body.clone().into()).unwrap()).await
    };
    let first = ask().await.json();
    assert_eq!(codes(&first), ["unknown_customer"]);
    assert_eq!(ask().await.json(), first);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_takes_identity_verification_from_its_source_with_a_warning() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let batch = json!({
        "name": "Notices", "document_source": "template",
        "source_template_id": template["template_id"], "kba_required": true,
    });
    let created = app.web(Method::POST, "/bulk-send", batch).await;
    assert_eq!(created.status, 201, "{}", created.text());

    let answer = created.json();
    assert_eq!(codes(&answer), ["member_without_effect"]);
    assert_eq!(answer["data"]["kba_required"], false);
}
