//! The main use case from start to end, on both databases.

use holdfast::domain::organization::OrgSettings;
use serde_json::Value;

use crate::support::{TestApp, form, pdf, postgres, release_form};

#[tokio::test(flavor = "multi_thread")]
async fn a_contract_is_signed_vaulted_certified_and_released_on_sqlite() {
    signed_vaulted_certified_and_released(TestApp::start().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_contract_is_signed_vaulted_certified_and_released_on_postgresql() {
    let database = postgres::new_database().await;
    let app = TestApp::with(
        |config| config.database_url = Some(database),
        OrgSettings::default(),
    );
    signed_vaulted_certified_and_released(app.await).await;
}

pub async fn signed_vaulted_certified_and_released(app: TestApp) {
    let envelope = app.sent_envelope().await;
    let id = envelope["envelope_id"].as_str().unwrap();
    assert_eq!(envelope["status"], "sent");

    let url = envelope["sign_url"].as_str().unwrap();
    let page = form::open(&app, url).await;
    assert_eq!(page.status, 200);

    let status = app
        .get(&format!("/partner/envelopes/{id}/status"))
        .await
        .data(200);
    assert_eq!(status["status"], "viewed");

    let answer = form::press(&app, url, "finish", &form::filled(&page.text())).await;
    assert_eq!(answer.status, 200, "{}", answer.text());

    let status = app.wait_for(id, "vaulted").await;
    assert_eq!(status["vaulted"], true);
    assert_eq!(status["compliant"], true);

    assert_eq!(
        app.event_types(id).await,
        [
            "envelope.created",
            "envelope.sent",
            "signer.viewed",
            "signer.started",
            "signer.completed",
            "envelope.completed",
            "vault.stored",
            "vault.compliance.passed",
        ]
    );

    let compliance = app
        .get(&format!("/partner/envelopes/{id}/compliance"))
        .await
        .data(200);
    assert_eq!(compliance["compliance"]["score"], 100);
    assert_eq!(
        compliance["compliance"]["missing_requirements"],
        Value::Array(Vec::new())
    );

    let certificate = app
        .get(&format!("/partner/envelopes/{id}/vault/certificate"))
        .await
        .data(200);
    assert_eq!(certificate["ucc_9105_compliance"]["score"], 100);

    let hash = certificate["document_integrity"]["document_hash"]
        .as_str()
        .unwrap();

    let link = app
        .get(&format!("/partner/envelopes/{id}/vault/signed-url"))
        .await
        .data(200);
    assert_eq!(link["expires_in"], 3600);

    let download = app.get(link["signed_url"].as_str().unwrap()).await;
    assert_eq!(download.status, 200);
    assert_eq!(holdfast::domain::hash::sha256(&download.bytes), hash);

    let text = pdf::text(&download.bytes);
    assert!(text.contains("Authoritative copy"), "{text}");
    assert!(text.contains(id), "{text}");
    assert!(
        text.contains("Jordan Lee"),
        "the signature is on the page: {text}"
    );
    assert!(
        text.contains("2026-11-21"),
        "the date is on the page: {text}"
    );

    let release = app
        .post(
            &format!("/partner/envelopes/{id}/vault-out"),
            release_form(),
        )
        .await
        .data(200);
    let copy = app
        .get(
            release["certified_vaulted_copy_signed_url"]
                .as_str()
                .unwrap(),
        )
        .await;
    assert!(pdf::text(&copy.bytes).contains("Non-authoritative copy"));

    let archived = app
        .get(release["authoritative_signed_url"].as_str().unwrap())
        .await;
    assert_eq!(holdfast::domain::hash::sha256(&archived.bytes), hash);
    assert_eq!(app.event_types(id).await.last().unwrap(), "vault.released");

    let status = app
        .get(&format!("/partner/envelopes/{id}/status"))
        .await
        .data(200);
    assert_eq!(status["status"], "vaulted_out");
    assert_eq!(status["vaulted"], false);

    app.events_fit_their_schemas(8).await;
}

/// Uploads and vaults a partner's pre-signed file, which has no signers.
#[tokio::test(flavor = "multi_thread")]
async fn a_paper_contract_is_uploaded_and_vaulted() {
    let app = TestApp::start().await;
    let mut body = crate::support::envelope_body(&Value::Null);
    body["envelope_kind"] = "paper".into();
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    assert_eq!(envelope["status"], "uploaded");
    assert_eq!(envelope["envelope_kind"], "paper");

    let id = envelope["envelope_id"].as_str().unwrap();

    let path = format!("/partner/envelopes/{id}/upload");
    let stored = app
        .upload(&path, "application/pdf", crate::support::CONTRACT, &[])
        .await
        .data(201);
    assert_eq!(stored["path"], format!("uploads:{id}/document"));
    assert_eq!(stored["size"], crate::support::CONTRACT.len());

    let vaulted = app
        .post(
            &format!("/partner/envelopes/{id}/vault-in-upload"),
            serde_json::json!({}),
        )
        .await
        .data(200);
    assert_eq!(vaulted["status"], "vaulted");

    let compliance = app
        .get(&format!("/partner/envelopes/{id}/compliance"))
        .await
        .data(200);
    assert_eq!(compliance["compliance"]["score"], 100);
}
