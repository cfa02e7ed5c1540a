//! Bulk send: setting a batch up, submitting it, and the results for its clients.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::{Value, json};

use crate::support::docuseal::{DocusealFault, FakeDocuseal, errors};
use crate::support::{CONTRACT, TestApp, form, org_of};
use holdfast::domain::organization::OrgSettings;

/// Creates clients, each with data for a prefill.
pub async fn clients(app: &TestApp, count: usize) -> Vec<Value> {
    let mut ids = Vec::new();
    for number in 0..count {
        let body = json!({
            "name": format!("Client {number}"), "email": format!("client{number}@example.com"),
            "city": format!("City {number}"),
        });
        ids.push(client(app, body).await);
    }

    ids
}

pub async fn client(app: &TestApp, body: Value) -> Value {
    let created = app.web(Method::POST, "/customers", body).await.data(201);
    created["customer_id"].clone()
}

/// Creates a template with one party, the client.
pub async fn notice(app: &TestApp) -> Value {
    let fields = json!([
        {
            "name": "Signature", "type": "signature", "role": "Client", "required": true,
            "placement": { "mode": "absolute", "areas": [{ "page": 1, "x": 0.1, "y": 0.8, "w": 0.3, "h": 0.04 }] },
        },
        {
            "name": "City", "type": "text", "role": "Client", "required": true,
            "placement": { "mode": "absolute", "areas": [{ "page": 1, "x": 0.1, "y": 0.7, "w": 0.3, "h": 0.03 }] },
        },
    ]);

    app.template(CONTRACT, &fields).await["template_id"].clone()
}

/// Creates a template with two parties, the client and the dealer.
async fn agreement(app: &TestApp) -> Value {
    let place = |y: f64| json!({ "mode": "absolute", "areas": [{ "page": 1, "x": 0.1, "y": y, "w": 0.3, "h": 0.04 }] });
    let fields = json!([
        { "name": "Client signature", "type": "signature", "role": "Client", "required": true, "placement": place(0.7) },
        { "name": "Dealer signature", "type": "signature", "role": "Dealer", "required": true, "placement": place(0.8) },
    ]);
    app.template(CONTRACT, &fields).await["template_id"].clone()
}

pub async fn batch(app: &TestApp, more: Value) -> Value {
    let mut body = json!({ "name": "Notice", "document_source": "new" });
    let more = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(more);
    app.web(Method::POST, "/bulk-send", body).await.data(201)
}

/// Creates a batch of a template, with its master template.
pub async fn batch_of(app: &TestApp, template: &Value, more: Value) -> String {
    let mut body = json!({ "document_source": "template", "source_template_id": template });
    let more = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(more);
    let batch = batch(app, body).await;
    let id = batch["batch_id"].as_str().unwrap().to_owned();
    open_editor(app, &id).await.data(201);
    id
}

/// Makes a batch of the notice for this many new clients, ready to be submitted.
async fn ready_batch(app: &TestApp, count: usize) -> String {
    let template = notice(app).await;
    let clients = clients(app, count).await;
    let id = batch_of(app, &template, json!({})).await;
    set_clients(app, &id, &clients).await;
    id
}

async fn open_editor(app: &TestApp, batch: &str) -> crate::support::TestResponse {
    let body = json!({ "batch_id": batch });
    app.web(Method::POST, "/esign/builder-session", body).await
}

pub async fn set_clients(app: &TestApp, batch: &str, clients: &[Value]) -> Value {
    let path = format!("/bulk-send/{batch}/items");
    let body = json!({ "customer_ids": clients });
    app.web(Method::POST, &path, body).await.data(200)
}

pub async fn submit(app: &TestApp, batch: &str) -> crate::support::TestResponse {
    act(app, batch, "submit").await
}

async fn act(app: &TestApp, batch: &str, what: &str) -> crate::support::TestResponse {
    let path = format!("/bulk-send/{batch}/{what}");
    app.web(Method::POST, &path, Value::Null).await
}

pub async fn overview(app: &TestApp, batch: &str) -> Value {
    let path = format!("/bulk-send/{batch}");
    app.web(Method::GET, &path, Value::Null).await.data(200)
}

/// Waits until the batch has this status and returns its overview.
pub async fn wait_until(app: &TestApp, batch: &str, status: &str) -> Value {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let seen = overview(app, batch).await;
        if seen["batch"]["status"] == status {
            return seen;
        }
        assert!(
            Instant::now() < deadline,
            "still {} {}",
            seen["batch"],
            seen["counts"]
        );

        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn counts(pending: i64, sent: i64, failed: i64, skipped: i64, cancelled: i64) -> Value {
    json!({
        "pending": pending, "running": 0, "sent": sent, "failed": failed, "skipped": skipped,
        "cancelled": cancelled,
    })
}

/// Submits a batch, which has to be refused, and returns the codes of the problems.
async fn refused_for(app: &TestApp, batch: &str) -> Vec<String> {
    let answer = submit(app, batch).await;
    assert_eq!(answer.status, 422, "{}", answer.text());

    let body = answer.json();
    assert_eq!(body["error"], "Validation failed");

    let details = body["details"].as_array().unwrap();
    details
        .iter()
        .map(|issue| issue["code"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_client_gets_an_envelope_of_their_own() {
    let app = TestApp::start().await;
    let template = notice(&app).await;
    let mut clients = clients(&app, 3).await;
    clients.push(client(&app, json!({ "name": "No address" })).await);
    let own = json!({ "name": "Myself", "email": "oak@oak.example" });
    clients.push(client(&app, own).await);

    let more = json!({ "name": "Privacy notice", "tag_ids": ["2027"] });
    let id = batch_of(&app, &template, more).await;
    let mut named = clients.clone();
    named.push(clients[0].clone());
    named.push(json!("cust_01jdk7m3e8f4x9s2w5v6b0c1da"));
    let added = set_clients(&app, &id, &named).await;
    assert_eq!(
        added,
        json!({
            "added": 3, "skipped_no_email": [clients[3]], "skipped_own_email": [clients[4]],
            "rejected": ["cust_01jdk7m3e8f4x9s2w5v6b0c1da"],
        })
    );

    let seen = overview(&app, &id).await;
    assert_eq!(seen["batch"]["status"], "ready");
    assert_eq!(seen["batch"]["total_count"], 5);
    assert_eq!(seen["counts"], counts(3, 0, 0, 2, 0));
    assert_eq!(seen["items"][0]["envelope_id"], Value::Null);
    assert_eq!(seen["items"][3]["error"], "No email address");
    assert_eq!(seen["items"][3]["email"], Value::Null);
    assert_eq!(seen["items"][4]["status"], "skipped");

    let submitted = submit(&app, &id).await.data(202);
    assert_eq!(submitted["status"], "running");

    let done = wait_until(&app, &id, "completed").await;
    assert_eq!(done["counts"], counts(0, 3, 0, 2, 0));
    assert_eq!(done["batch"]["sent_count"], 3);
    assert_eq!(done["batch"]["skipped_count"], 2);

    let item = &done["items"][1];
    assert_eq!(item["status"], "sent");
    assert_eq!(item["email"], "client1@example.com");
    assert!(item["sent_at"].is_string());

    let envelope = item["envelope_id"].as_str().unwrap();
    let shown = app
        .get(&format!("/partner/envelopes/{envelope}"))
        .await
        .data(200);
    assert_eq!(shown["status"], "sent");
    assert_eq!(shown["envelope_name"], "Privacy notice");
    assert_eq!(shown["customer_id"], clients[1]);
    assert_eq!(shown["metadata"]["document_source"], "template");
    assert_eq!(shown["metadata"]["source_template_id"], template);
    assert_eq!(shown["metadata"]["bulk_send"]["batch_id"], id.as_str());
    assert_eq!(shown["metadata"]["bulk_send"]["item_id"], item["item_id"]);

    let created = app.entry(envelope, "envelope.created").await;
    assert_eq!(created["bulk_send"]["batch_id"], id.as_str());
    assert_eq!(created["status"], "preparing");

    let types = app.event_types(envelope).await;
    assert_eq!(types, ["envelope.created", "envelope.sent"]);

    // The client gets a mail and finds a form with the known values filled in.
    let mails = app.wait_for_mails(3).await;
    assert!(
        mails
            .iter()
            .any(|mail| mail.contains("client1@example.com"))
    );

    let links = format!("/envelopes/{envelope}/signing-links");
    let links = app.web(Method::GET, &links, Value::Null).await.data(200);
    let url = links["signers"][0]["signing_url"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(links["signers"][0]["role"], "Client");

    let page = app.get(&url).await.text();
    assert!(page.contains("City 1"), "{page}");

    form::sign(&app, &url).await;
    app.wait_for(envelope, "completed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_batch_has_one_bulk_event() {
    let app = TestApp::start().await;
    let id = ready_batch(&app, 12).await;
    submit(&app, &id).await.data(202);
    wait_until(&app, &id, "completed").await;
    let told = bulk_events(&app).await;
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["envelope_id"], Value::Null);

    let expected = json!({
        "batch_id": id, "status": "completed", "counts": counts(0, 12, 0, 0, 0),
    });
    assert_eq!(told[0]["data"], expected);
}

/// Returns the `bulk.completed` events in the outbox.
pub async fn bulk_events(app: &TestApp) -> Vec<Value> {
    use sqlx::Row as _;

    let mut connection = app.store.read().await.unwrap();
    let rows = sqlx::query("select body from event where event_type = 'bulk.completed'")
        .fetch_all(&mut *connection)
        .await
        .unwrap();
    rows.iter()
        .map(|row| serde_json::from_str(row.get::<&str, _>("body")).unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn bulk_send_requires_the_organization_header_and_the_admin_role() {
    let app = TestApp::start().await;
    let ask = async |token: Option<&str>, org: Option<&str>| {
        let mut request = Request::get("/api/v2/bulk-send");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }

        if let Some(org) = org {
            request = request.header("x-org-id", org);
        }

        app.send(request.body(Body::empty()).unwrap()).await
    };

    let (admin, own) = (app.admin(), app.org.as_str());
    assert_eq!(
        ask(None, Some(own)).await.error(401),
        "Authentication required"
    );

    let member = app.token("member");
    assert_eq!(
        ask(Some(&member), Some(own)).await.error(403),
        "Role owner, admin or sender is required"
    );
    assert_eq!(
        ask(Some(&admin), None).await.error(400),
        "X-Org-Id is required"
    );

    let other = ask(Some(&admin), Some("org_01jdk7m3e8f4x9s2w5v6b0c1da")).await;
    assert_eq!(other.error(403), "X-Org-Id is not the token's organization");
    assert_eq!(ask(Some(&admin), Some(own)).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_visible_only_to_its_organization() {
    let app = TestApp::start().await;
    let batch = batch(&app, json!({})).await;
    let path = format!("/bulk-send/{}", batch["batch_id"].as_str().unwrap());
    let other = app.other_admin();
    assert_eq!(app.get_with_bearer(&other, &path).await.status, 400);

    for path in [
        path.as_str(),
        "/bulk-send/bsb_01jdk7m3e8f4x9s2w5v6b0c1da",
        "/bulk-send/x",
    ] {
        let org = org_of(&other);
        let request = Request::get(format!("/api/v2{path}"))
            .header("authorization", format!("Bearer {other}"))
            .header("x-org-id", org);
        let answer = app.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.error(404), "Batch not found", "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_batch_names_its_source() {
    let app = TestApp::start().await;
    let create = async |body: Value| app.web(Method::POST, "/bulk-send", body).await;
    let missing = create(json!({ "name": "A", "document_source": "template" })).await;
    assert_eq!(missing.status, 422);

    let missing = missing.json();
    assert_eq!(missing["details"][0]["path"], json!(["source_template_id"]));
    assert_eq!(missing["details"][0]["message"], "Required");

    let missing = create(json!({ "name": "A", "document_source": "package" }))
        .await
        .json();
    assert_eq!(missing["details"][0]["path"], json!(["source_package_id"]));

    let wrong = create(json!({ "document_source": "fax" })).await.json();
    assert_eq!(wrong["details"].as_array().unwrap().len(), 2, "{wrong}");

    let unknown = json!({
        "name": "A", "document_source": "template",
        "source_template_id": "tmpl_01jdk7m3e8f4x9s2w5v6b0c1da",
    });
    assert_eq!(create(unknown).await.error(404), "Template not found");

    let unknown = json!({
        "name": "A", "document_source": "package",
        "source_package_id": "pkg_01jdk7m3e8f4x9s2w5v6b0c1da",
    });
    assert_eq!(create(unknown).await.error(404), "Package not found");

    let priced = json!({
        "name": "Offer", "source_format": "word", "pricing_table": true, "kba_required": false,
    });
    let priced = app.web(Method::POST, "/templates", priced).await.data(201);
    let body = json!({
        "name": "A", "document_source": "template", "source_template_id": priced["template_id"],
    });
    let refused = create(body).await.error(422);
    assert_eq!(
        refused,
        "A word template with a pricing table cannot be sent in bulk"
    );

    let made = create(json!({ "name": "A", "document_source": "new", "kba_required": true })).await;
    let made = made.data(201);
    assert_eq!(made["status"], "draft");
    assert_eq!(made["kba_required"], true);
    assert_eq!(made["preserve_signing_order"], true);
    assert_eq!(made["add_me_as_signer"], false);
    assert_eq!(made["auto_vault_enabled"], false);
    assert_eq!(made["master_template_id"], Value::Null);
    assert_eq!(made["created_by"], "oak@oak.example");

    // The option applies only to a new document; otherwise the source template decides.
    let template = notice(&app).await;
    let body = json!({
        "document_source": "template", "source_template_id": template, "kba_required": true,
    });
    assert_eq!(batch(&app, body).await["kba_required"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_can_be_changed_until_it_is_submitted() {
    let app = TestApp::start().await;
    let template = notice(&app).await;
    let id = batch_of(&app, &template, json!({})).await;
    let path = format!("/bulk-send/{id}");
    let patch = async |body: Value| app.web(Method::PATCH, &path, body).await;
    let changed = patch(json!({
        "name": "B", "preserve_signing_order": false, "add_me_as_signer": true, "tag_ids": ["x"],
        "auto_vault_enabled": true,
    }));
    let changed = changed.await.data(200);
    assert_eq!(changed["name"], "B");
    assert_eq!(changed["preserve_signing_order"], false);
    assert_eq!(changed["add_me_as_signer"], true);
    assert_eq!(changed["tag_ids"], json!(["x"]));

    assert_eq!(changed["auto_vault_enabled"], true);
    // Enabling the toggle does not accept the terms.
    assert_eq!(changed["vault_in_terms_accepted_at"], Value::Null);

    let back = json!({ "add_me_as_signer": false, "auto_vault_enabled": false });
    patch(back).await.data(200);
    let unknown = json!({ "master_template_id": "tmpl_01jdk7m3e8f4x9s2w5v6b0c1da" });
    assert_eq!(patch(unknown).await.error(404), "Template not found");

    let master = patch(json!({ "master_template_id": template }))
        .await
        .data(200);
    assert_eq!(master["master_template_id"], template);

    let clients = clients(&app, 1).await;
    set_clients(&app, &id, &clients).await;
    submit(&app, &id).await.data(202);
    wait_until(&app, &id, "completed").await;

    for (method, path, body) in [
        (Method::PATCH, path.clone(), json!({ "name": "C" })),
        (Method::DELETE, path.clone(), Value::Null),
        (
            Method::POST,
            format!("{path}/items"),
            json!({ "customer_ids": clients }),
        ),
        (Method::POST, format!("{path}/submit"), Value::Null),
        (Method::POST, format!("{path}/cancel"), Value::Null),
        (Method::POST, format!("{path}/retry"), Value::Null),
        (
            Method::POST,
            format!("{path}/vault-consent"),
            json!({ "auto_vault_enabled": false }),
        ),
        (
            Method::POST,
            "/esign/builder-session".into(),
            json!({ "batch_id": id }),
        ),
    ] {
        let answer = app.web(method.clone(), &path, body).await;
        assert_eq!(answer.status, 409, "{method} {path}: {}", answer.text());
    }

    let again = submit(&app, &id).await.error(409);
    assert_eq!(again, "Batch has already been submitted");
}

#[tokio::test(flavor = "multi_thread")]
async fn opening_the_editor_fixes_identity_verification_of_a_new_document() {
    let app = TestApp::start().await;
    let made = batch(&app, json!({ "kba_required": false })).await;
    let id = made["batch_id"].as_str().unwrap();
    let path = format!("/bulk-send/{id}");
    let patch = async |kba: bool| {
        let body = json!({ "kba_required": kba });
        app.web(Method::PATCH, &path, body).await
    };
    assert_eq!(patch(true).await.data(200)["kba_required"], true);

    let session = open_editor(&app, id).await.data(201);
    assert_eq!(session["kba_required"], true);
    assert_eq!(session["roles"], json!([]));

    patch(true).await.data(200);
    assert_eq!(patch(false).await.status, 409);

    // For a template it can never be changed.
    let template = notice(&app).await;
    let body = json!({ "document_source": "template", "source_template_id": template });
    let made = batch(&app, body).await;
    let path = format!("/bulk-send/{}", made["batch_id"].as_str().unwrap());
    let body = json!({ "kba_required": true });
    assert_eq!(app.web(Method::PATCH, &path, body).await.status, 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn reopening_the_editor_continues_with_the_same_master() {
    let app = TestApp::start().await;
    let template = agreement(&app).await;
    let body = json!({ "document_source": "template", "source_template_id": template });
    let made = batch(&app, body).await;
    let id = made["batch_id"].as_str().unwrap();
    let first = open_editor(&app, id).await.data(201);
    assert_eq!(first["roles"], json!(["Client", "Dealer"]));
    assert_ne!(first["template_id"], template);

    let body = json!({ "batch_id": id, "template_id": template, "template_name": "Other" });
    let again = app
        .web(Method::POST, "/esign/builder-session", body)
        .await
        .data(201);
    assert_eq!(again["template_id"], first["template_id"]);

    let seen = overview(&app, id).await;
    assert_eq!(seen["batch"]["master_template_id"], first["template_id"]);

    // The master is not part of the library, and the library's template is unchanged.
    let library = app.web(Method::GET, "/templates", Value::Null).await.json();
    assert_eq!(library["meta"]["total"], 1);
    assert_eq!(library["data"][0]["template_id"], template);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_submission_reports_all_missing_parts() {
    let app = TestApp::start().await;
    let made = batch(&app, json!({ "auto_vault_enabled": true })).await;
    let id = made["batch_id"].as_str().unwrap();
    assert_eq!(
        refused_for(&app, id).await,
        [
            "no_master_template",
            "no_client_with_email",
            "terms_not_accepted"
        ]
    );

    // A master without a document cannot be sent.
    open_editor(&app, id).await.data(201);
    let nobody = client(&app, json!({ "name": "No address" })).await;
    set_clients(&app, id, &[nobody]).await;
    let path = format!("/bulk-send/{id}/vault-consent");
    let consent = json!({ "auto_vault_enabled": true, "acknowledge_authoritative_copy": true });
    app.web(Method::POST, &path, consent).await.data(200);
    assert_eq!(
        refused_for(&app, id).await,
        ["no_document", "no_client_with_email"]
    );
    assert_eq!(overview(&app, id).await["batch"]["status"], "ready");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_master_has_as_many_parties_as_signers() {
    let app = TestApp::start().await;
    let (one, two) = (notice(&app).await, agreement(&app).await);
    let clients = clients(&app, 1).await;
    for (template, add_me, fits) in [
        (&one, false, true),
        (&one, true, false),
        (&two, false, false),
        (&two, true, true),
    ] {
        let id = batch_of(&app, template, json!({ "add_me_as_signer": add_me })).await;
        set_clients(&app, &id, &clients).await;
        if fits {
            submit(&app, &id).await.data(202);
            wait_until(&app, &id, "completed").await;
        } else {
            assert_eq!(refused_for(&app, &id).await, ["party_count"]);
        }
    }
}

/// Waits for `count` mails and returns the recipients of invitations.
async fn invited(app: &TestApp, count: usize) -> BTreeSet<String> {
    let mails = app.wait_for_mails(count).await;
    let to = |mail: &String| {
        let line = mail.lines().find(|line| line.starts_with("To:")).unwrap();
        line.rsplit(['<', ' '])
            .next()
            .unwrap()
            .trim_end_matches('>')
            .to_owned()
    };

    mails.iter().map(to).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ordered_batch_invites_the_client_before_the_sender() {
    let app = TestApp::start().await;
    let template = agreement(&app).await;
    let contact = json!({
        "name": "Birch Bakery", "email": "office@birch.example", "primary_contact_name": "Kim Birch",
    });
    let clients = [client(&app, contact).await];
    let id = batch_of(&app, &template, json!({ "add_me_as_signer": true })).await;
    set_clients(&app, &id, &clients).await;

    submit(&app, &id).await.data(202);
    let done = wait_until(&app, &id, "completed").await;
    let envelope = done["items"][0]["envelope_id"].as_str().unwrap();
    let path = format!("/envelopes/{envelope}/signing-links");
    let links = app.web(Method::GET, &path, Value::Null).await.data(200);
    let shown = |index: usize, member: &str| links["signers"][index][member].clone();
    assert_eq!(shown(0, "name"), "Kim Birch");
    assert_eq!(shown(0, "role"), "Client");
    assert_eq!(shown(1, "email"), "oak@oak.example");
    assert_eq!(shown(1, "role"), "Dealer");
    assert_eq!(
        invited(&app, 1).await,
        BTreeSet::from(["office@birch.example".into()])
    );

    form::sign(&app, shown(0, "signing_url").as_str().unwrap()).await;
    let both = ["office@birch.example", "oak@oak.example"].map(str::to_owned);
    assert_eq!(invited(&app, 2).await, BTreeSet::from(both));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unordered_batch_invites_both_parties_immediately() {
    let app = TestApp::start().await;
    let template = agreement(&app).await;
    let clients = clients(&app, 1).await;
    let more = json!({ "add_me_as_signer": true, "preserve_signing_order": false });
    let id = batch_of(&app, &template, more).await;
    set_clients(&app, &id, &clients).await;
    submit(&app, &id).await.data(202);

    let both = ["client0@example.com", "oak@oak.example"].map(str::to_owned);
    assert_eq!(invited(&app, 2).await, BTreeSet::from(both));
}

#[tokio::test(flavor = "multi_thread")]
async fn automatic_vaulting_requires_accepted_terms() {
    let app = TestApp::start().await;
    let template = notice(&app).await;
    let clients = clients(&app, 1).await;
    let send = async |consent: bool| {
        let id = batch_of(&app, &template, json!({})).await;
        set_clients(&app, &id, &clients).await;
        let path = format!("/bulk-send/{id}/vault-consent");
        if consent {
            let refused =
                json!({ "auto_vault_enabled": true, "acknowledge_authoritative_copy": false });
            let refused = app.web(Method::POST, &path, refused).await;
            assert_eq!(refused.status, 422);

            let details = refused.json()["details"][0]["path"].clone();
            assert_eq!(details, json!(["acknowledge_authoritative_copy"]));

            let accepted =
                json!({ "auto_vault_enabled": true, "acknowledge_authoritative_copy": true });
            let batch = app
                .web(Method::POST, &path, accepted.clone())
                .await
                .data(200);
            assert_eq!(batch["vault_in_terms_accepted_by"], "oak@oak.example");

            let cleared = json!({ "auto_vault_enabled": false });
            let batch = app.web(Method::POST, &path, cleared).await.data(200);
            assert_eq!(batch["vault_in_terms_accepted_at"], Value::Null);
            assert_eq!(batch["auto_vault_enabled"], false);

            app.web(Method::POST, &path, accepted).await.data(200);
        }

        submit(&app, &id).await.data(202);
        let done = wait_until(&app, &id, "completed").await;
        let envelope = done["items"][0]["envelope_id"].as_str().unwrap().to_owned();
        let path = format!("/envelopes/{envelope}/signing-links");
        let links = app.web(Method::GET, &path, Value::Null).await.data(200);
        let url = links["signers"][0]["signing_url"]
            .as_str()
            .unwrap()
            .to_owned();
        form::sign(&app, &url).await;

        envelope
    };

    let vaulted = send(true).await;
    app.wait_for(&vaulted, "vaulted").await;
    let created = app.entry(&vaulted, "envelope.created").await;
    assert_eq!(created["vault_in_terms_accepted_by"], "oak@oak.example");
    assert!(created["vault_in_terms_accepted_at"].is_string());

    // The organization vaults automatically, but the terms were not accepted for this batch.
    let kept = send(false).await;
    app.wait_for(&kept, "completed").await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    app.wait_for(&kept, "completed").await;
    let path = format!("/envelopes/{kept}/vault-consent");
    let accepted = json!({ "auto_vault_enabled": true, "acknowledge_authoritative_copy": true });
    app.web(Method::POST, &path, accepted).await.data(200);

    app.wait_for(&kept, "vaulted").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_clients_replaces_the_previous_one() {
    let app = TestApp::start().await;
    let made = batch(&app, json!({})).await;
    let id = made["batch_id"].as_str().unwrap();
    let clients = clients(&app, 3).await;
    set_clients(&app, id, &clients).await;
    set_clients(&app, id, &clients[2..]).await;
    let seen = overview(&app, id).await;
    assert_eq!(seen["items"].as_array().unwrap().len(), 1);
    assert_eq!(seen["items"][0]["customer_id"], clients[2]);

    let path = format!("/bulk-send/{id}/items");
    for wrong in [
        json!({}),
        json!({ "customer_ids": [] }),
        json!({ "customer_ids": vec!["x"; 1001] }),
    ] {
        assert_eq!(app.web(Method::POST, &path, wrong).await.status, 422);
    }

    let foreign = json!({ "customer_ids": ["cust_01jdk7m3e8f4x9s2w5v6b0c1da", "x"] });
    let added = app.web(Method::POST, &path, foreign).await.data(200);
    assert_eq!(added["added"], 0);
    assert_eq!(added["rejected"].as_array().unwrap().len(), 2);
    assert_eq!(overview(&app, id).await["counts"], counts(0, 0, 0, 0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_a_batch_archives_its_master() {
    let docuseal = FakeDocuseal::start().await;
    let app = TestApp::with(|config| docuseal.configure(config), OrgSettings::default()).await;
    let template = notice(&app).await;
    let id = batch_of(&app, &template, json!({})).await;
    let master = overview(&app, &id).await["batch"]["master_template_id"].clone();
    let path = format!("/bulk-send/{id}");
    let deleted = app.web(Method::DELETE, &path, Value::Null).await.data(200);
    assert_eq!(deleted, json!({ "batch_id": id, "deleted": true }));
    assert_eq!(app.web(Method::GET, &path, Value::Null).await.status, 404);

    let list = app.web(Method::GET, "/bulk-send", Value::Null).await.json();
    assert_eq!(list["meta"], json!({ "page": 1, "limit": 20, "total": 0 }));

    let path = format!("/templates/{}", master.as_str().unwrap());
    assert_eq!(app.web(Method::GET, &path, Value::Null).await.status, 404);

    let deadline = Instant::now() + Duration::from_secs(20);
    while docuseal.template()["archived_at"].is_null() {
        assert!(Instant::now() < deadline, "the master is not archived");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    // The library's template stays.
    let path = format!("/templates/{}", template.as_str().unwrap());
    app.web(Method::GET, &path, Value::Null).await.data(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_are_listed_with_their_counts() {
    let app = TestApp::start().await;
    let clients = clients(&app, 2).await;
    for name in ["first", "second", "third"] {
        let made = batch(&app, json!({ "name": name })).await;
        set_clients(&app, made["batch_id"].as_str().unwrap(), &clients).await;
    }

    let list = app
        .web(Method::GET, "/bulk-send?limit=2&page=1", Value::Null)
        .await
        .json();
    assert_eq!(list["meta"], json!({ "page": 1, "limit": 2, "total": 3 }));
    assert_eq!(list["data"][0]["name"], "third");
    assert_eq!(list["data"][1]["total_count"], 2);
    assert_eq!(
        app.web(Method::GET, "/bulk-send?limit=101", Value::Null)
            .await
            .status,
        400
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_roles_that_sign_nothing_is_refused_where_the_organization_refuses_them() {
    let app = TestApp::start().await;
    let field = json!([{
        "name": "City", "type": "text", "role": "Client", "required": true,
        "placement": { "mode": "absolute", "areas": [{ "page": 1, "x": 0.1, "y": 0.7, "w": 0.3, "h": 0.03 }] },
    }]);
    let unsigned = app.template(CONTRACT, &field).await["template_id"].clone();
    let clients = clients(&app, 1).await;

    let id = batch_of(&app, &unsigned, json!({})).await;
    set_clients(&app, &id, &clients).await;

    app.set_organization(&["refuse_unsigned_roles=true"]);
    assert_eq!(refused_for(&app, &id).await, ["no_signature_field"]);

    app.set_organization(&["refuse_unsigned_roles=false"]);
    submit(&app, &id).await.data(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_without_a_way_to_decline_needs_the_signing_room() {
    let docuseal = FakeDocuseal::start().await;
    let app = TestApp::with(|config| docuseal.configure(config), OrgSettings::default()).await;
    let template = notice(&app).await;
    let path = format!("/templates/{}", template.as_str().unwrap());
    let change = json!({ "may_decline": false });
    app.web(Method::PATCH, &path, change).await.data(200);
    let id = batch_of(&app, &template, json!({})).await;
    set_clients(&app, &id, &clients(&app, 1).await).await;

    let refused = submit(&app, &id).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    let issue = refused.json()["details"][0].clone();
    assert_eq!(issue["code"], "unsupported_by_provider", "{issue}");
    assert_eq!(issue["path"], json!(["master_template_id"]));
    assert_eq!(docuseal.submissions(), 0);
    assert_eq!(overview(&app, &id).await["batch"]["status"], "ready");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_cannot_be_submitted_while_bulk_send_is_off() {
    let app = TestApp::with(|config| config.bulk.concurrency = 0, OrgSettings::default()).await;
    let id = ready_batch(&app, 1).await;
    assert_eq!(
        submit(&app, &id).await.error(503),
        "Bulk send is not configured"
    );
    assert_eq!(overview(&app, &id).await["batch"]["status"], "ready");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_the_provider_fails_to_return_is_a_502() {
    let docuseal = FakeDocuseal::start().await;
    let app = TestApp::with(|config| docuseal.configure(config), OrgSettings::default()).await;
    let id = ready_batch(&app, 1).await;
    docuseal.fail(
        "POST",
        "/templates/",
        DocusealFault::Answer(500, json!({})),
        1,
    );
    assert_eq!(submit(&app, &id).await.status, 502);
    assert_eq!(overview(&app, &id).await["batch"]["status"], "ready");

    submit(&app, &id).await.data(202);
    wait_until(&app, &id, "completed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn transient_provider_failures_are_retried_without_duplicate_sends() {
    let docuseal = FakeDocuseal::start().await;
    let app = TestApp::with(|config| docuseal.configure(config), OrgSettings::default()).await;
    let id = ready_batch(&app, 4).await;

    // One lost response to a clone, one to a submission, and one temporary refusal.
    docuseal.fail("POST", "/submissions", DocusealFault::DroppedAfter, 1);
    docuseal.fail(
        "POST",
        "/submissions",
        DocusealFault::Answer(500, json!({})),
        1,
    );

    submit(&app, &id).await.data(202);
    docuseal.fail("POST", "/templates/", DocusealFault::DroppedAfter, 1);
    let done = wait_until(&app, &id, "completed").await;
    assert_eq!(done["counts"], counts(0, 4, 0, 0, 0));
    assert_eq!(docuseal.submissions(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_refused_by_the_provider_is_recorded_and_can_be_retried() {
    let docuseal = FakeDocuseal::start().await;
    let app = TestApp::with(|config| docuseal.configure(config), OrgSettings::default()).await;
    let id = ready_batch(&app, 3).await;
    let refusal = json!({ "error": "email is invalid in `submitters[0]`." });
    docuseal.fail(
        "POST",
        "/submissions",
        DocusealFault::Answer(422, refusal),
        1,
    );

    submit(&app, &id).await.data(202);
    let done = wait_until(&app, &id, "completed").await;
    assert_eq!(done["counts"], counts(0, 2, 1, 0, 0));

    let items = done["items"].as_array().unwrap();
    let failed = items
        .iter()
        .find(|item| item["status"] == "failed")
        .unwrap();
    let error = failed["error"].as_str().unwrap();
    assert!(error.starts_with("Signing provider refused"), "{error}");

    let envelope = failed["envelope_id"].as_str().unwrap();
    app.wait_for(envelope, "preparing").await;

    let again = act(&app, &id, "retry").await.data(202);
    assert_eq!(again["status"], "running");

    let done = wait_until(&app, &id, "completed").await;
    assert_eq!(done["counts"], counts(0, 3, 0, 0, 0));

    // The retry uses the same envelope and affects no other.
    app.wait_for(envelope, "sent").await;
    assert_eq!(docuseal.submissions(), 3);
    assert_eq!(bulk_events(&app).await.len(), 2);
    assert_eq!(
        act(&app, &id, "retry").await.error(409),
        "No item of the batch failed"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_without_any_sent_envelope_has_failed() {
    let docuseal = FakeDocuseal::start().await;
    let app = TestApp::with(|config| docuseal.configure(config), OrgSettings::default()).await;
    let id = ready_batch(&app, 2).await;
    docuseal.fail(
        "POST",
        "/submissions",
        DocusealFault::Answer(422, json!({ "error": "no" })),
        9,
    );

    submit(&app, &id).await.data(202);
    let done = wait_until(&app, &id, "failed").await;
    assert_eq!(done["counts"], counts(0, 0, 2, 0, 0));
    assert_eq!(bulk_events(&app).await[0]["data"]["status"], "failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_master_ends_the_batch() {
    let docuseal = FakeDocuseal::start().await;
    let app = TestApp::with(|config| docuseal.configure(config), OrgSettings::default()).await;
    let template = notice(&app).await;
    let clients = clients(&app, 30).await;
    let id = batch_of(&app, &template, json!({})).await;
    set_clients(&app, &id, &clients).await;
    app.stop_working();

    submit(&app, &id).await.data(202);
    let frozen = docuseal.template()["id"].as_i64().unwrap();
    let path = format!("/templates/{frozen}/clone");
    docuseal.fail(
        "POST",
        &path,
        DocusealFault::Answer(404, json!({ "status": 404 })),
        99,
    );

    let node = app.another_node(|config| docuseal.configure(config)).await;
    let done = wait_until(&node, &id, "failed").await;
    assert_eq!(done["counts"], counts(0, 0, 30, 0, 0));
    assert_eq!(done["items"][29]["error"], "Master template cannot be read");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_batch_stops_sending_and_keeps_sent_envelopes() {
    let docuseal = FakeDocuseal::start().await;
    let app = TestApp::with(|config| docuseal.configure(config), OrgSettings::default()).await;
    let id = ready_batch(&app, 120).await;
    submit(&app, &id).await.data(202);

    let deadline = Instant::now() + Duration::from_secs(120);
    while overview(&app, &id).await["counts"]["sent"] == 0 {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }

    let cancelled = act(&app, &id, "cancel").await.data(200);
    assert_eq!(cancelled["status"], "cancelled");

    // Running chunks are finished, and no new one starts.
    let deadline = Instant::now() + Duration::from_secs(120);
    let seen = loop {
        let seen = overview(&app, &id).await;
        if seen["counts"]["running"] == 0 {
            break seen;
        }
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let (sent, stopped) = (
        seen["counts"]["sent"].as_u64().unwrap(),
        seen["counts"]["cancelled"].as_u64().unwrap(),
    );
    assert_eq!(sent + stopped, 120, "{}", seen["counts"]);

    assert!(stopped > 0);
    assert_eq!(docuseal.submissions() as u64, sent);
    assert!(bulk_events(&app).await.is_empty());

    let again = act(&app, &id, "cancel").await.data(200);
    assert_eq!(again["status"], "cancelled");
    assert_eq!(act(&app, &id, "retry").await.status, 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_envelope_of_a_cancelled_attempt_is_voided() {
    let docuseal = FakeDocuseal::start().await;
    let app = TestApp::with(|config| docuseal.configure(config), OrgSettings::default()).await;
    let id = ready_batch(&app, 1).await;
    docuseal.fail(
        "POST",
        "/submissions",
        DocusealFault::Answer(500, json!({})),
        99,
    );

    submit(&app, &id).await.data(202);
    let deadline = Instant::now() + Duration::from_secs(120);
    let waiting = loop {
        let seen = overview(&app, &id).await;
        let item = seen["items"][0].clone();

        // The item was tried once and is waiting for its retry.
        if item["status"] == "pending" && item["error"].is_string() {
            break item;
        }
        assert!(Instant::now() < deadline, "{item}");

        tokio::time::sleep(Duration::from_millis(10)).await;
    };

    act(&app, &id, "cancel").await.data(200);
    let seen = overview(&app, &id).await;
    assert_eq!(seen["counts"], counts(0, 0, 0, 0, 1));

    app.wait_for(waiting["envelope_id"].as_str().unwrap(), "voided")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_an_address_at_sending_time_is_skipped() {
    let app = TestApp::start().await;
    let template = notice(&app).await;
    let clients = clients(&app, 2).await;
    let id = batch_of(&app, &template, json!({})).await;
    set_clients(&app, &id, &clients).await;
    let path = format!("/customers/{}", clients[0].as_str().unwrap());
    let body = json!({ "email": null });
    app.web(Method::PATCH, &path, body).await.data(200);

    submit(&app, &id).await.data(202);
    let done = wait_until(&app, &id, "completed").await;
    assert_eq!(done["counts"], counts(0, 1, 0, 1, 0));
    assert_eq!(done["items"][0]["error"], "No email address");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_is_sent_in_bulk_as_one_document() {
    let app = TestApp::start().await;
    let (first, second) = (notice(&app).await, notice(&app).await);
    let body = json!({ "name": "Both", "template_ids": [first, second] });
    let package = app
        .web(Method::POST, "/document-packages", body)
        .await
        .data(201);
    let body = json!({
        "document_source": "package", "source_package_id": package["package_id"],
    });
    let made = batch(&app, body).await;
    let id = made["batch_id"].as_str().unwrap();
    let session = open_editor(&app, id).await.data(201);
    assert_eq!(session["roles"], json!(["Client"]));

    set_clients(&app, id, &clients(&app, 1).await).await;
    submit(&app, id).await.data(202);
    let done = wait_until(&app, id, "completed").await;
    let envelope = done["items"][0]["envelope_id"].as_str().unwrap();
    let shown = app
        .get(&format!("/partner/envelopes/{envelope}"))
        .await
        .data(200);
    assert_eq!(shown["metadata"]["document_source"], "package");
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_streamed_until_the_batch_ends() {
    let app = TestApp::start().await;
    let id = ready_batch(&app, 40).await;
    submit(&app, &id).await.data(202);
    let path = format!("/bulk-send/{id}/events");
    let stream = app.web(Method::GET, &path, Value::Null).await;
    assert_eq!(stream.status, 200);
    assert_eq!(stream.headers["content-type"], "text/event-stream");

    let text = stream.text();
    let last = text.trim_end().rsplit("\n\n").next().unwrap();
    let (name, data) = last.split_once('\n').unwrap();
    assert_eq!(name, "event: end", "{text}");

    let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(data["status"], "completed");
    assert_eq!(data["counts"], counts(0, 40, 0, 0, 0));

    let unknown = "/bulk-send/bsb_01jdk7m3e8f4x9s2w5v6b0c1da/events";
    assert_eq!(app.web(Method::GET, unknown, Value::Null).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_bulk_send_leaves_batches_to_other_nodes() {
    let app = TestApp::start().await;
    let id = ready_batch(&app, 3).await;
    app.stop_working();
    submit(&app, &id).await.data(202);
    let off = app.another_node(|config| config.bulk.concurrency = 0).await;
    tokio::time::sleep(Duration::from_millis(800)).await;
    assert_eq!(overview(&off, &id).await["counts"], counts(3, 0, 0, 0, 0));

    off.stop_working();
    let node = app.another_node(|_| {}).await;
    wait_until(&node, &id, "completed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_does_not_resend_a_manually_sent_envelope() {
    let docuseal = FakeDocuseal::start().await;
    let app = TestApp::with(|config| docuseal.configure(config), OrgSettings::default()).await;
    let id = ready_batch(&app, 2).await;
    let refusal = json!({ "error": "no\nand no" });
    docuseal.fail(
        "POST",
        "/submissions",
        DocusealFault::Answer(422, refusal),
        2,
    );

    submit(&app, &id).await.data(202);
    let done = wait_until(&app, &id, "failed").await;
    let error = done["items"][0]["error"].as_str().unwrap();
    assert!(!error.contains('\n'), "{error}");

    let envelope = |index: usize| {
        done["items"][index]["envelope_id"]
            .as_str()
            .unwrap()
            .to_owned()
    };

    // The builder cannot replace the document of an envelope in a batch.
    let body = json!({ "envelope_id": envelope(0) });
    let refused = app
        .web(Method::POST, "/esign/builder-session", body)
        .await
        .error(409);
    assert_eq!(
        refused,
        "The document of a bulk batch's envelope is the batch's"
    );

    let path = format!("/envelopes/{}/send", envelope(0));
    app.web(Method::POST, &path, json!({})).await.data(200);
    let path = format!("/partner/envelopes/{}/void", envelope(1));
    app.post(&path, json!({})).await.data(200);
    assert_eq!(docuseal.submissions(), 1);

    act(&app, &id, "retry").await.data(202);
    let done = wait_until(&app, &id, "completed").await;
    assert_eq!(done["counts"], counts(0, 1, 1, 0, 0));
    assert_eq!(done["items"][1]["error"], "Envelope is voided");
    assert_eq!(docuseal.submissions(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_voided_while_it_is_sent_holds_up_no_other() {
    let docuseal = FakeDocuseal::start().await;
    let app = TestApp::with(|config| docuseal.configure(config), OrgSettings::default()).await;
    let id = ready_batch(&app, 3).await;
    let late = DocusealFault::Late(Duration::from_secs(3));
    docuseal.fail("POST", "/submissions", late, 3);
    submit(&app, &id).await.data(202);
    while docuseal.requests("POST", "/submissions").len() < 3 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    let seen = overview(&app, &id).await;
    let voided = seen["items"][1]["envelope_id"].as_str().unwrap().to_owned();
    let path = format!("/partner/envelopes/{voided}/void");
    app.post(&path, json!({})).await.data(200);
    let done = wait_until(&app, &id, "completed").await;
    assert_eq!(done["counts"], counts(0, 2, 1, 0, 0));
    assert_eq!(done["items"][1]["error"], "Envelope is voided");
    assert_eq!(docuseal.submissions(), 3, "nothing was sent twice");

    // The submission of the voided envelope is withdrawn.
    while docuseal.requests("DELETE", "/submissions/").is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_cannot_change_identity_verification_or_prices() {
    let app = TestApp::start().await;
    let plain = notice(&app).await;
    let made = batch(&app, json!({ "kba_required": true })).await;
    let path = format!("/bulk-send/{}", made["batch_id"].as_str().unwrap());
    let patch = async |path: &str, master: &Value| {
        let body = json!({ "master_template_id": master });
        app.web(Method::PATCH, path, body).await
    };
    let refused = patch(&path, &plain).await.error(409);
    assert!(
        refused.starts_with("The batch needs identity verification"),
        "{refused}"
    );

    let priced = json!({ "name": "Offer", "source_format": "word", "pricing_table": true });
    let priced = app.web(Method::POST, "/templates", priced).await.data(201);
    let made = batch(&app, json!({})).await;
    let path = format!("/bulk-send/{}", made["batch_id"].as_str().unwrap());
    assert_eq!(patch(&path, &priced["template_id"]).await.status, 422);

    // The editor continues with the master that was set.
    patch(&path, &plain).await.data(200);
    let id = made["batch_id"].as_str().unwrap();
    let session = open_editor(&app, id).await.data(201);
    assert_eq!(session["template_id"], plain);
}

/// When the provider limits the request rate, no item of the batch fails.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_waits_for_a_provider_that_limits_the_rate() {
    let docuseal = FakeDocuseal::start().await;
    let app = TestApp::with(|config| docuseal.configure(config), OrgSettings::default()).await;
    let id = ready_batch(&app, 2).await;
    let (status, body) = errors::too_many_requests();
    docuseal.fail(
        "POST",
        "/submissions",
        DocusealFault::Answer(status, body),
        2,
    );

    submit(&app, &id).await.data(202);
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let seen = overview(&app, &id).await;
        let items = seen["items"].as_array().unwrap();
        let limited = "Signing provider limits the rate";
        if items.iter().all(|item| item["error"] == limited) {
            assert_eq!(seen["counts"], counts(2, 0, 0, 0, 0));
            break;
        }
        assert!(Instant::now() < deadline, "{seen}");

        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    let later = app
        .as_of_with(Duration::from_secs(90), |config| docuseal.configure(config))
        .await;
    wait_until(&later, &id, "completed").await;
    assert_eq!(docuseal.submissions(), 2);
}
