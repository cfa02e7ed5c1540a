//! Customers of partners.

use serde_json::{Value, json};

use crate::support::{CONTRACT, TestApp, envelope_body};

const FIELDS: [&str; 19] = [
    "customer_id",
    "name",
    "phone",
    "company",
    "job_title",
    "entity_type",
    "client_id",
    "category",
    "industry",
    "address_line1",
    "address_line2",
    "city",
    "state",
    "postal_code",
    "country",
    "website_url",
    "primary_contact_name",
    "created_at",
    "updated_at",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_customer_is_found_by_address_and_exposes_the_safe_subset() {
    let app = TestApp::start().await;
    app.post("/partner/envelopes", envelope_body(&Value::Null))
        .await
        .data(201);
    let customer = app
        .get("/partner/customers?email=Jordan.Lee%40EXAMPLE.com")
        .await
        .data(200);
    let names: Vec<&String> = customer.as_object().unwrap().keys().collect();
    assert_eq!(names, FIELDS);
    assert_eq!(customer["name"], "Jordan Lee");
    assert_eq!(customer["phone"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn creating_an_existing_customer_renames_it_and_keeps_the_id() {
    let app = TestApp::start().await;
    let first = app
        .post("/partner/envelopes", envelope_body(&Value::Null))
        .await
        .data(201);
    let mut body = envelope_body(&Value::Null);
    body["customer_email"] = "JORDAN.LEE@example.com".into();

    body["customer_name"] = "Jordan Lee-Park".into();
    let second = app.post("/partner/envelopes", body).await.data(201);
    assert_eq!(first["customer_id"], second["customer_id"]);

    let customer = app
        .get("/partner/customers?email=jordan.lee@example.com")
        .await
        .data(200);
    assert_eq!(customer["name"], "Jordan Lee-Park");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_or_missing_address_is_refused() {
    let app = TestApp::start().await;
    app.post("/partner/envelopes", envelope_body(&Value::Null))
        .await
        .data(201);
    let path = "/partner/customers?email=jordan.lee@example.com";
    let other = app.other_organization().await;
    assert_eq!(
        app.get_as(&other, path).await.error(404),
        "Customer not found"
    );
    assert_eq!(
        app.get("/partner/customers?email=nobody@example.com")
            .await
            .error(404),
        "Customer not found"
    );

    assert_eq!(app.get("/partner/customers").await.status, 400);
    assert_eq!(app.get("/partner/customers?email=").await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_customer_document_becomes_an_envelope_that_can_be_vaulted() {
    let app = TestApp::start().await;
    let envelope = app
        .post("/partner/envelopes", envelope_body(&Value::Null))
        .await
        .data(201);
    let customer = envelope["customer_id"].as_str().unwrap();
    let path = format!("/partner/customers/{customer}/documents");
    let filed = app
        .upload(&path, "application/pdf", CONTRACT, &[])
        .await
        .data(201);
    assert_eq!(filed["customer_id"], customer);
    assert_eq!(filed["contentType"], "application/pdf");
    assert_eq!(filed["size"], CONTRACT.len());

    let id = filed["envelope_id"].as_str().unwrap();
    assert_eq!(filed["path"], format!("uploads:{id}/document"));

    let listed = app
        .get(&format!(
            "/partner/envelopes?customer_id={customer}&status=uploaded"
        ))
        .await
        .data(200);
    assert_eq!(listed[0]["envelope_id"], id);
    assert_eq!(app.event_types(id).await, ["envelope.created"]);

    let vaulted = app
        .post(
            &format!("/partner/envelopes/{id}/vault-in-upload"),
            json!({}),
        )
        .await
        .data(200);
    assert_eq!(vaulted["status"], "vaulted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_needs_a_customer_and_a_readable_file() {
    let app = TestApp::start().await;
    let unknown = "/partner/customers/cust_01h455vb4pex5vsknk084sn02q/documents";
    let refused = app.upload(unknown, "application/pdf", CONTRACT, &[]).await;
    assert_eq!(refused.error(404), "Customer not found");

    let envelope = app
        .post("/partner/envelopes", envelope_body(&Value::Null))
        .await
        .data(201);
    let path = format!(
        "/partner/customers/{}/documents",
        envelope["customer_id"].as_str().unwrap()
    );
    let text = app.upload(&path, "text/plain", b"hello", &[]).await;
    assert_eq!(text.status, 415);

    let broken = app
        .upload(&path, "application/pdf", b"%PDF-1.7 nothing", &[])
        .await;
    assert_eq!(broken.error(422), "The PDF could not be read");

    let empty = app
        .post_text(
            &app.key,
            &path,
            "multipart/form-data; boundary=x",
            "--x--\r\n",
        )
        .await;
    assert_eq!(empty.error(400), "file is required");

    let total = app.get("/partner/envelopes").await.json()["meta"]["total"].take();
    assert_eq!(total, 1, "nothing was written");
}
