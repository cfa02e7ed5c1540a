//! The specification's tables for envelopes, customers, errors and limits, row by row. Rows that
//! need more than one request are tested in the file of their subject; `docs/specification.md`
//! lists all rows with their tests, to be read beside the document.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use holdfast::domain::envelope::EnvelopeStatus;
use holdfast::domain::organization::Scope;
use serde_json::{Value, json};

use crate::support::{CONTRACT, TestApp, envelope_body, form, release_form};

#[track_caller]
fn keys(value: &Value) -> Vec<&str> {
    let members = value.as_object().expect("an object");
    members.keys().map(String::as_str).collect()
}

#[track_caller]
fn is_time(value: &Value) {
    let text = value.as_str().expect("a time");
    assert!(text.len() == 24 && text.ends_with('Z'), "{text}");
}

async fn paper(app: &TestApp) -> Value {
    let mut body = envelope_body(&Value::Null);
    body["envelope_kind"] = "paper".into();
    app.post("/partner/envelopes", body).await.data(201)
}

fn id_of(envelope: &Value) -> &str {
    envelope["envelope_id"].as_str().unwrap()
}

/// Number of rows in the tables of the specification.
const ROWS: usize = 187;

/// Each row of the list names its tests; that they exist is checked with those of the other documents.
#[test]
fn no_row_of_the_specification_is_open() {
    let list = include_str!("../../../docs/specification.md");
    let is_row = |line: &&str| line.starts_with("| ") && !line.starts_with("| Row |");
    let rows: Vec<&str> = list.lines().filter(is_row).collect();
    let open: Vec<_> = rows
        .iter()
        .filter(|row| {
            row.split('|')
                .nth(2)
                .is_none_or(|tests| !tests.contains('`'))
        })
        .collect();

    assert!(open.is_empty(), "{} rows open: {open:?}", open.len());
    assert_eq!(rows.len(), ROWS);
}

// Resources and their fields

/// Table "Envelope (partner view)": name and type of every member of the GET response.
#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_has_the_specified_fields() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let body = envelope_body(&template["template_id"]);
    let mut created = app.post("/partner/envelopes", body).await.data(201);
    let sign_url = created.as_object_mut().unwrap().remove("sign_url");
    assert!(sign_url.unwrap().as_str().unwrap().starts_with("http"));

    let path = format!("/partner/envelopes/{}", id_of(&created));
    let envelope = app.get(&path).await.data(200);
    assert_eq!(envelope, created, "but for its sign_url");

    let expected = [
        "envelope_id",
        "envelope_name",
        "status",
        "customer_id",
        "external_id",
        "template_id",
        "envelope_kind",
        "created_at",
        "updated_at",
        "vaulted",
        "compliant",
        "certificate_issued",
        "compliance_score",
        "metadata",
    ];
    assert_eq!(keys(&envelope), expected);

    assert!(id_of(&envelope).starts_with("env_"));
    assert_eq!(envelope["envelope_name"], "Retail instalment contract");
    assert_eq!(envelope["status"], "sent");
    assert!(
        envelope["customer_id"]
            .as_str()
            .unwrap()
            .starts_with("cust_")
    );
    assert_eq!(envelope["external_id"], "deal-17");
    assert_eq!(envelope["template_id"], template["template_id"]);
    assert_eq!(envelope["envelope_kind"], "esign");

    is_time(&envelope["created_at"]);
    is_time(&envelope["updated_at"]);
    assert_eq!(envelope["vaulted"], false);
    assert_eq!(envelope["compliant"], false);

    let metadata = json!({
        "document_source": "template",
        "source_template_id": template["template_id"],
    });
    assert_eq!(envelope["metadata"], metadata);
}

/// Same table: `vaulted`, `compliant` and `signed_at` change with the vault, and no path of the
/// vault is exposed.
#[tokio::test(flavor = "multi_thread")]
async fn a_vaulted_envelopes_status_matches_the_specification() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let path = format!("/partner/envelopes/{id}");
    let status = app.get(&format!("{path}/status")).await.data(200);
    let expected = [
        "envelope_id",
        "status",
        "vaulted",
        "compliant",
        "certificate_issued",
        "compliance_score",
        "signed_at",
        "updated_at",
    ];
    assert_eq!(keys(&status), expected);

    assert_eq!(status["vaulted"], true);
    assert_eq!(status["compliant"], true);

    is_time(&status["signed_at"]);
    let envelope = app.get(&path).await;
    for hidden in [
        "vault_file_path",
        "document_hash",
        "copy_file_path",
        "secured_party",
    ] {
        assert!(!envelope.text().contains(hidden), "{hidden}");
    }

    let envelope = envelope.data(200);
    assert_eq!(envelope["vaulted"], true);
    assert_eq!(envelope["compliant"], true);
}

/// `metadata` exposes a few of the stored keys, `bulk_send` among them.
#[tokio::test(flavor = "multi_thread")]
async fn metadata_is_filtered_to_the_partner_safe_subset() {
    let app = TestApp::start().await;
    let envelope = paper(&app).await;
    let batch = json!({ "batch_id": "bsb_1", "item_id": "bsi_1" });
    let kept = json!({
        "document_source": "upload", "source_template_id": "tmpl_1", "bulk_send": batch,
        "prefilled_data": { "Salary": "80000" }, "anything_else": true,
    });
    app.change("update envelope set metadata = $1", &kept.to_string())
        .await;

    let path = format!("/partner/envelopes/{}", id_of(&envelope));
    let shown = app.get(&path).await.data(200);
    let expected = json!({
        "document_source": "upload", "source_template_id": "tmpl_1", "bulk_send": batch,
    });
    assert_eq!(shown["metadata"], expected);
}

/// Table "Signer entry (signing links)".
#[tokio::test(flavor = "multi_thread")]
async fn a_signer_entry_has_the_specified_fields() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let path = format!("/partner/envelopes/{}/signing-links", id_of(&envelope));
    let links = app.get(&path).await.data(200);
    assert_eq!(keys(&links), ["signers"]);

    let signer = &links["signers"][0];
    assert_eq!(
        keys(signer),
        ["signer_id", "name", "email", "slug", "embed_url", "status"]
    );
    assert_eq!(signer["name"], "Jordan Lee");
    assert_eq!(signer["email"], "jordan.lee@example.com");
    assert!(signer["slug"].is_string());
    assert_eq!(signer["status"], "pending");

    let url = signer["embed_url"].as_str().unwrap();
    assert_eq!(form::open(&app, url).await.status, 200);
}

/// Table "Webhook endpoint". The secret is in the answers to create and rotate only.
#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_endpoint_has_the_specified_fields() {
    let app = TestApp::start().await;
    let body = json!({ "url": "https://hooks.example.com/", "description": "Deal desk", "events": ["vault.*"] });
    let path = "/webhooks/endpoints";
    let created = app.post_with_bearer(app.web_admin(), path, body);
    let created = created.await.data(201);
    let id = created["endpoint_id"].as_str().unwrap();
    assert!(id.starts_with("whep_"), "{id}");
    assert!(created["secret"].is_string() && created["secret_note"].is_string());

    let listed = app.get_with_bearer(app.web_admin(), path).await.data(200);
    let listed = &listed[0];
    assert_eq!(listed["endpoint_id"], id);
    assert_eq!(listed["url"], "https://hooks.example.com/");
    assert_eq!(listed["description"], "Deal desk");
    assert_eq!(listed["events"], json!(["vault.*"]));
    assert_eq!(listed["is_active"], true);
    assert_eq!(listed["partner_key_id"], Value::Null);
    assert_eq!(listed["secret_set"], true);
    assert_eq!(listed["grace_expires_at"], Value::Null);
    assert!(listed.get("secret").is_none() && listed.get("secret_note").is_none());

    let rotate = format!("{path}/{id}/rotate-secret");
    let rotated = app.post_with_bearer(app.web_admin(), &rotate, json!({}));
    let rotated = rotated.await.data(200);
    assert_ne!(rotated["secret"], created["secret"]);
    is_time(&rotated["grace_expires_at"]);
}

/// Table "Event types": those of an envelope from its creation to the vault.
#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_causes_the_events_of_the_table() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let id = id_of(&envelope);
    let remind = format!("/partner/envelopes/{id}/remind");
    app.post(&remind, json!({})).await.data(200);
    form::sign(&app, envelope["sign_url"].as_str().unwrap()).await;
    app.wait_for(id, "vaulted").await;

    let types = app.event_types(id).await;
    for expected in [
        "envelope.created",
        "envelope.sent",
        "envelope.reminder_sent",
        "signer.viewed",
        "signer.started",
        "signer.completed",
        "envelope.completed",
        "vault.stored",
        "vault.compliance.passed",
    ] {
        assert!(
            types.iter().any(|one| one == expected),
            "{expected}: {types:?}"
        );
    }
}

// Endpoints

/// Table "Envelopes (partner)": responses of the writing endpoints. Their scopes are tested
/// below.
#[tokio::test(flavor = "multi_thread")]
async fn writing_endpoints_respond_as_specified() {
    let app = TestApp::without_auto_vault().await;
    let envelope = paper(&app).await;
    assert_eq!(envelope["status"], "uploaded");
    assert_eq!(envelope["envelope_kind"], "paper");
    assert!(envelope.get("sign_url").is_none());

    let path = format!("/partner/envelopes/{}", id_of(&envelope));

    let upload = format!("{path}/upload");
    let stored = app.upload(&upload, "application/pdf", CONTRACT, &[]);
    let stored = stored.await.data(201);
    assert_eq!(keys(&stored), ["path", "hash", "size", "content_type"]);

    let hash = holdfast::domain::hash::sha256(CONTRACT);
    assert_eq!(stored["hash"], hash);
    assert_eq!(stored["size"], CONTRACT.len());
    assert_eq!(stored["content_type"], "application/pdf");

    let void = format!("{path}/void");
    let voided = app.post(&void, json!({ "reason": "typo" }));
    let voided = voided.await.data(200);
    assert_eq!(keys(&voided), keys(&envelope));
    assert_eq!(voided["status"], "voided");

    let events = app.event_types(id_of(&envelope)).await;
    assert_eq!(events, ["envelope.created", "envelope.voided"]);

    let sent = app.sent_envelope().await;
    let remind = format!("/partner/envelopes/{}/remind", id_of(&sent));
    let reminded = app.post(&remind, json!({})).await.data(200);
    let expected = json!({ "reminded": ["jordan.lee@example.com"], "count": 1 });
    assert_eq!(reminded, expected);
}

/// Table "Customers (partner)": response to an uploaded document.
#[tokio::test(flavor = "multi_thread")]
async fn a_customer_document_has_the_specified_fields() {
    let app = TestApp::start().await;
    let envelope = paper(&app).await;
    let customer = envelope["customer_id"].as_str().unwrap();
    let path = format!("/partner/customers/{customer}/documents");
    let filed = app.upload(&path, "application/pdf", CONTRACT, &[]).await;
    let filed = filed.data(201);
    let expected = [
        "customer_id",
        "envelope_id",
        "path",
        "hash",
        "size",
        "contentType",
    ];
    assert_eq!(keys(&filed), expected);

    let path = format!("/partner/envelopes/{}", id_of(&filed));
    let envelope = app.get(&path).await.data(200);
    assert_eq!(envelope["status"], "uploaded");
    assert_eq!(envelope["customer_id"], customer);
}

/// Scopes of the partner endpoints: a key with all other scopes is refused with an error that
/// names the missing scope.
#[tokio::test(flavor = "multi_thread")]
async fn each_endpoint_needs_its_scope() {
    let app = TestApp::start().await;
    let rows = [
        ("GET", "/partner/envelopes", "envelopes:read"),
        ("GET", "/partner/envelopes/env_x", "envelopes:read"),
        ("GET", "/partner/envelopes/env_x/status", "envelopes:read"),
        ("POST", "/partner/envelopes", "envelopes:write"),
        ("POST", "/partner/envelopes/env_x/upload", "envelopes:write"),
        ("POST", "/partner/envelopes/env_x/void", "envelopes:write"),
        ("POST", "/partner/envelopes/env_x/remind", "envelopes:write"),
        (
            "GET",
            "/partner/envelopes/env_x/questions",
            "envelopes:read",
        ),
        (
            "POST",
            "/partner/envelopes/env_x/questions/qst_x/close",
            "envelopes:write",
        ),
        (
            "GET",
            "/partner/envelopes/env_x/signing-links",
            "envelopes:read",
        ),
        (
            "POST",
            "/partner/envelopes/env_x/vault-in-signed",
            "vault:write",
        ),
        (
            "POST",
            "/partner/envelopes/env_x/vault-in-upload",
            "vault:write",
        ),
        (
            "GET",
            "/partner/envelopes/env_x/vault/signed-url",
            "vault:read",
        ),
        (
            "GET",
            "/partner/envelopes/env_x/vault/copy/signed-url",
            "vault:read",
        ),
        (
            "GET",
            "/partner/envelopes/env_x/vault/certificate",
            "compliance:read",
        ),
        (
            "GET",
            "/partner/envelopes/env_x/compliance",
            "compliance:read",
        ),
        ("GET", "/partner/envelopes/env_x/custody", "compliance:read"),
        (
            "POST",
            "/partner/envelopes/env_x/vault-out",
            "vault:release",
        ),
        ("POST", "/partner/templates", "envelopes:write"),
        (
            "POST",
            "/partner/templates/tmpl_x/fields",
            "envelopes:write",
        ),
        (
            "GET",
            "/partner/customers?email=a@example.com",
            "customers:read",
        ),
        (
            "POST",
            "/partner/customers/cust_x/documents",
            "envelopes:write",
        ),
    ];
    for (method, path, scope) in rows {
        let others: Vec<Scope> = Scope::ALL
            .iter()
            .copied()
            .filter(|other| other.as_str() != scope)
            .collect();
        let key = app.key_with(&others).await;
        let answer = match method {
            "GET" => app.get_as(&key, path).await,
            _ => app.post_as(&key, path, json!({})).await,
        };

        let expected = format!("Missing required scope: {scope}");
        assert_eq!(answer.error(403), expected, "{method} {path}");
    }
}

/// Table "Create envelope body": required members, and the constraints of each.
#[tokio::test(flavor = "multi_thread")]
async fn each_member_of_the_create_body_is_checked() {
    let app = TestApp::start().await;
    let rows = [
        ("envelope_name", true, json!(7)),
        ("customer_email", true, json!("not an address")),
        ("customer_name", true, json!(false)),
        ("template_id", false, json!(7)),
        ("external_id", false, json!([])),
        ("prefilled_data", false, json!("text")),
        ("secured_party", false, json!("First Example Bank")),
        ("envelope_kind", false, json!("stone")),
        ("signers", false, json!({})),
    ];

    let good = envelope_body(&Value::Null);
    for (member, required, wrong) in rows {
        let mut without = good.clone();
        without.as_object_mut().unwrap().remove(member);
        let answer = app.post("/partner/envelopes", without).await;
        if required {
            let details = answer.json()["details"].take();
            assert_eq!(answer.error(422), "Validation failed", "{member}");

            let expected = json!([{
                "code": "invalid_type", "expected": "a value", "received": "undefined",
                "path": [member], "message": "Required",
            }]);
            assert_eq!(details, expected, "{member}");
        } else {
            let created = answer.data(201);
            assert_eq!(created["status"], "pending", "{member}");
            assert_eq!(created["envelope_kind"], "esign", "{member}");
        }

        let mut broken = good.clone();
        broken[member] = wrong;
        let answer = app.post("/partner/envelopes", broken).await;
        assert_eq!(answer.json()["details"][0]["path"], json!([member]));
        assert_eq!(answer.error(422), "Validation failed", "{member}");
    }

    for member in ["email", "name"] {
        let mut signer = json!({ "email": "a@example.com", "name": "A", "role": "Signer 1" });
        signer.as_object_mut().unwrap().remove(member);
        let mut body = good.clone();
        body["signers"] = json!([signer]);
        let answer = app.post("/partner/envelopes", body).await;
        let path = answer.json()["details"][0]["path"].take();
        assert_eq!(path, json!(["signers", 0, member]));
        assert_eq!(answer.error(422), "Validation failed");
    }
}

/// Table "Envelope status" through the API: every status and every call that changes it. `-`
/// means that the call is refused and leaves the status unchanged.
#[tokio::test(flavor = "multi_thread")]
async fn every_call_in_every_status_matches_the_table() {
    // The statuses in the order of the specification:
    // pending uploaded preparing sent viewed completed vaulted vaulted_out
    // declined voided expired
    let table = [
        (
            "POST",
            "void",
            "200 200 200 200 200 422 422 422 422 422 422",
        ),
        (
            "POST",
            "remind",
            "409 409 409 200 200 409 409 409 409 409 409",
        ),
        (
            "GET",
            "signing-links",
            "409 409 409 200 200 200 200 200 409 409 409",
        ),
        (
            "POST",
            "upload",
            "201 201 409 409 409 409 409 409 409 409 409",
        ),
        (
            "POST",
            "vault-in-signed",
            "409 409 409 409 409 200 200 409 409 409 409",
        ),
        (
            "POST",
            "vault-in-upload",
            "409 409 409 409 409 409 409 409 409 409 409",
        ),
        (
            "GET",
            "vault/signed-url",
            "409 409 409 409 409 409 200 409 409 409 409",
        ),
        (
            "GET",
            "vault/copy/signed-url",
            "409 409 409 409 409 409 200 200 409 409 409",
        ),
        (
            "POST",
            "vault-out",
            "409 409 409 409 409 409 200 200 409 409 409",
        ),
        (
            "GET",
            "compliance",
            "200 200 200 200 200 200 200 200 200 200 200",
        ),
    ];

    let app = TestApp::without_auto_vault().await;

    // The envelope is vaulted, so every call that a status allows can succeed.
    let envelope = app.sent_envelope().await;
    form::sign(&app, envelope["sign_url"].as_str().unwrap()).await;
    app.wait_for(id_of(&envelope), "completed").await;
    let path = format!("/partner/envelopes/{}", id_of(&envelope));
    let vault_in = format!("{path}/vault-in-signed");
    app.post(&vault_in, json!({})).await.data(200);

    for (method, call, row) in table {
        for (status, expected) in EnvelopeStatus::ALL.iter().zip(row.split(' ')) {
            app.change("update envelope set status = $1", status.as_str())
                .await;
            if call == "vault-in-signed" && *status == EnvelopeStatus::Completed {
                for table in ["vault_intent", "evaluation"] {
                    app.empty(table).await;
                }
                app.execute("update envelope set vault = null").await;
            }

            let key = app.key_with(Scope::ALL).await;
            let target = format!("{path}/{call}");
            let answer = match (method, call) {
                ("GET", _) => app.get_as(&key, &target).await,
                (_, "upload") => {
                    let upload = app.upload(&target, "application/pdf", CONTRACT, &[]);
                    upload.await
                }
                (_, "vault-out") => app.post_as(&key, &target, release_form()).await,
                _ => app.post_as(&key, &target, json!({})).await,
            };

            let text = answer.text();
            let name = format!("{call} of a {} envelope: {text}", status.as_str());
            assert_eq!(answer.status.as_str(), expected, "{name}");

            if answer.status.is_client_error() {
                let after = app.get(&path).await.data(200);
                assert_eq!(after["status"], status.as_str(), "{name}");
            }

            if call == "void" && expected == "422" {
                let specified = format!("Cannot void envelope with status: {}", status.as_str());
                assert_eq!(answer.error(422), specified);
            }
        }
    }
}

// Errors

/// Table "Errors": the rows that apply to this surface, each with its example.
#[tokio::test(flavor = "multi_thread")]
async fn each_error_status_has_the_specified_text() {
    let app = TestApp::start().await;
    let envelope = paper(&app).await;
    let path = format!("/partner/envelopes/{}", id_of(&envelope));
    let pdf = "application/pdf";

    // 400: missing fields, invalid parameters, fields_json not valid JSON.
    let name = [("name", "Contract")];
    let no_file = "--b\r\ncontent-disposition: form-data; name=\"name\"\r\n\r\nN\r\n--b--\r\n";
    let form = "multipart/form-data; boundary=b";
    let answer = app.post_text(&app.key, "/partner/templates", form, no_file);
    assert_eq!(answer.await.error(400), "file is required");

    let answer = app.upload("/partner/templates", pdf, CONTRACT, &[]).await;
    assert_eq!(answer.error(400), "name is required");

    let fields = [("name", "Contract"), ("fields_json", "[")];
    let answer = app.upload("/partner/templates", pdf, CONTRACT, &fields);
    assert!(answer.await.error(400).starts_with("fields_json"));

    // 401.
    let bare = Request::get("/api/v2/partner/envelopes");
    let answer = app.send(bare.body(Body::empty()).unwrap()).await;
    assert_eq!(answer.error(401), "API key is required");

    // 403: each scope, in `each_endpoint_needs_its_scope`.
    // 404: unknown, and a certificate that is not generated yet.
    let rows = [
        ("/partner/envelopes/env_x", "Envelope not found"),
        (
            "/partner/customers?email=a@example.com",
            "Customer not found",
        ),
    ];

    for (path, text) in rows {
        assert_eq!(app.get(path).await.error(404), text);
    }

    let answer = app.post("/partner/templates/tmpl_x/fields", json!({ "fields": [{
        "name": "Initials", "type": "initials", "role": "Buyer",
        "placement": { "mode": "absolute", "areas": [{ "page": 1, "x": 0.1, "y": 0.1, "w": 0.1, "h": 0.1 }] },
    }] }));
    assert_eq!(answer.await.error(404), "Template not found");

    let answer = app.get(&format!("{path}/vault/certificate")).await;
    assert_eq!(answer.error(404), "Certificate not yet generated");

    // 409: the vault-in call for the other kind. Unpaid and terminal envelopes have their own
    // tests and rows.
    let answer = app
        .post(&format!("{path}/vault-in-signed"), json!({}))
        .await;
    assert_eq!(answer.status, 409);

    // 413 and 415 of a template.
    let large = vec![b'%'; 52_428_801];
    let answer = app.upload("/partner/templates", pdf, &large, &name).await;
    assert_eq!(answer.error(413), "file is larger than 52428800 bytes");

    let png = b"\x89PNG\r\n\x1a\n";
    let answer = app.upload("/partner/templates", "image/png", png, &name);
    assert_eq!(answer.await.status, 415);
    // 422: `Validation failed` and the status text have their own rows.
    // 429: in `service/access/rate_limits.rs`. 502 and 503: in `service/envelopes/lifecycle.rs`.
}

/// Row 500: a template that cannot be stored. The response exposes nothing of the database.
#[tokio::test(flavor = "multi_thread")]
async fn a_template_row_that_cannot_be_stored_is_a_500() {
    let app = TestApp::start().await;
    app.execute(
        "create trigger no_more before insert on template
         begin select raise(abort, 'the disk is full'); end",
    )
    .await;
    let name = [("name", "Contract")];
    let upload = app.upload("/partner/templates", "application/pdf", CONTRACT, &name);
    assert_eq!(upload.await.error(500), "Internal server error");
    assert_eq!(app.count("template").await, 0);
}

// Limits

/// Table "Limits": sizes and numbers of pages.
#[tokio::test(flavor = "multi_thread")]
async fn page_sizes_have_the_specified_defaults_and_limits() {
    let app = TestApp::start().await;
    for _ in 0..21 {
        paper(&app).await;
    }

    let page = app.get("/partner/envelopes").await.json();
    assert_eq!(page["meta"], json!({ "page": 1, "limit": 20, "total": 21 }));
    assert_eq!(page["data"].as_array().unwrap().len(), 20);

    let rest = app.get("/partner/envelopes?page=2").await.json();
    assert_eq!(rest["data"].as_array().unwrap().len(), 1);

    let beyond = app.get("/partner/envelopes?page=3").await.json();
    assert_eq!(beyond["data"], json!([]));
    assert_eq!(beyond["meta"]["total"], 21);

    let all = app.get("/partner/envelopes?limit=100").await.json();
    assert_eq!(all["data"].as_array().unwrap().len(), 21);

    let rows = [
        ("limit=101", "limit must be 1 to 100"),
        ("limit=0", "limit must be 1 to 100"),
        ("page=0", "page must be 1 or more"),
    ];
    for (query, text) in rows {
        let answer = app.get(&format!("/partner/envelopes?{query}")).await;
        assert_eq!(answer.error(400), text, "{query}");
    }
}

/// Table "Limits": requests per minute, upload types, JSON bodies, signed URLs.
#[tokio::test(flavor = "multi_thread")]
async fn the_remaining_limits_match_the_specification() {
    let app = TestApp::start().await;
    // A key has 100 requests a minute by default.
    let org = app.org.to_string();
    let arguments = ["key", "create", "--org", &org, "--scopes", "envelopes:read"];
    let key = crate::support::operator(app.data.path(), &arguments);
    assert_eq!(key["rate_limit_rpm"], 100);

    let key = key["api_key"].as_str().unwrap();
    assert!(key.len() == 43 && key.starts_with("lk_"));

    let answer = app.get_as(key, "/partner/envelopes").await;
    assert_eq!(answer.headers["x-ratelimit-limit"], "100");
    assert_eq!(answer.headers["x-ratelimit-remaining"], "99");

    // application/pdf, image/png, image/jpeg; a template is a PDF.
    let jpeg: &[u8] = include_bytes!("../../fixtures/scan.jpg");
    let png: &[u8] = include_bytes!("../../fixtures/scan.png");
    let envelope = paper(&app).await;
    let path = format!("/partner/envelopes/{}/upload", id_of(&envelope));
    let rows: [(&str, &[u8], u16); 5] = [
        ("application/pdf", CONTRACT, 201),
        ("image/png", png, 201),
        ("image/jpeg", jpeg, 201),
        ("image/gif", b"GIF89a", 415),
        ("text/plain", b"text", 415),
    ];
    for (content_type, file, status) in rows {
        let answer = app.upload(&path, content_type, file, &[]).await;
        assert_eq!(answer.status, status, "{content_type}: {}", answer.text());
    }

    // 1 MiB of JSON.
    let long = json!({ "envelope_name": "x".repeat(1024 * 1024) }).to_string();
    let json = "application/json";
    let answer = app.post_text(&app.key, "/partner/envelopes", json, long);
    let text = "Request body is larger than 1048576 bytes";
    assert_eq!(answer.await.error(413), text);

    // Signed URLs live for 3600 seconds.
    let id = app.vaulted_envelope().await;
    for which in ["vault/signed-url", "vault/copy/signed-url"] {
        let link = app.get(&format!("/partner/envelopes/{id}/{which}")).await;
        let link = link.data(200);
        let expected = ["signed_url", "filename", "expires_in", "expires_at"];
        assert_eq!(keys(&link), expected);
        assert_eq!(link["expires_in"], 3600);

        let path = link["signed_url"].as_str().unwrap();
        let path = path.split_once("/api/v2").unwrap().1;
        let later = app.as_of(Duration::from_secs(3601)).await;
        let gone = later.get(path).await.error(410);
        assert_eq!(gone, "Download link has expired or was already used");
    }
}
