//! Vault-in, downloads, vault-out.

use holdfast::domain::organization::{OrgSettings, Scope};
use serde_json::{Value, json};

use crate::support::{TestApp, envelope_body, form, postgres, release_form};

#[tokio::test(flavor = "multi_thread")]
async fn twenty_concurrent_vault_ins_make_one_authoritative_copy() {
    let app = TestApp::without_auto_vault().await;
    let envelope = app.sent_envelope().await;
    let id = envelope["envelope_id"].as_str().unwrap();
    form::sign(&app, envelope["sign_url"].as_str().unwrap()).await;
    app.wait_for(id, "completed").await;
    let path = format!("/partner/envelopes/{id}/vault-in-signed");
    let calls = (0..20).map(|_| app.post(&path, json!({})));
    for answer in futures::future::join_all(calls).await {
        assert_eq!(answer.data(200)["status"], "vaulted");
    }
    assert_eq!(app.objects("vault").len(), 1);

    let types = app.event_types(id).await;
    assert_eq!(
        types.iter().filter(|kind| *kind == "vault.stored").count(),
        1
    );
}

/// The database arbitrates between nodes at every step.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_vault_ins_on_two_nodes_make_one_authoritative_copy() {
    let database = postgres::new_database().await;
    let settings = || OrgSettings {
        auto_vault: false,
        ..OrgSettings::default()
    };
    let one = TestApp::with(
        |config| config.database_url = Some(database.clone()),
        settings(),
    )
    .await;
    let shared = one.data.path().to_owned();
    let mut two = TestApp::with(
        |config| {
            config.database_url = Some(database.clone());
            config.storage_url = Some(format!("file://{}", shared.join("objects").display()));
            config.seal.key_file = Some(shared.join("keys/seal/key.pem"));
            config.seal.certificates_file = Some(shared.join("keys/seal/certificates.pem"));
        },
        settings(),
    )
    .await;

    two.key = one.key_with_limit(Scope::ALL, 10_000).await;
    for _ in 0..3 {
        let envelope = one.sent_envelope().await;
        let id = envelope["envelope_id"].as_str().unwrap();
        form::sign(&one, envelope["sign_url"].as_str().unwrap()).await;
        one.wait_for(id, "completed").await;
        let path = format!("/partner/envelopes/{id}/vault-in-signed");

        // Alternate between the nodes, so both compete for every step.
        let calls = (0..20).map(|call| [&one, &two][call % 2].post_as(&two.key, &path, json!({})));
        for answer in futures::future::join_all(calls).await {
            assert_eq!(answer.data(200)["status"], "vaulted");
        }

        for (area, files) in [
            ("signed", 1),
            ("vault", 1),
            ("copies", 1),
            ("certificates", 2),
        ] {
            let objects = one.objects(area);
            let ours = objects
                .iter()
                .filter(|path| path.to_string_lossy().contains(id));
            assert_eq!(ours.count(), files, "{area}");
        }

        let stored = two.entry(id, "vault.stored").await;
        assert_eq!(stored["custodian"], "vault@maple.example");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_fails_the_custody_checks_until_vault_in() {
    let app = TestApp::without_auto_vault().await;
    let envelope = app.sent_envelope().await;
    let id = envelope["envelope_id"].as_str().unwrap();
    form::sign(&app, envelope["sign_url"].as_str().unwrap()).await;
    let compliance = app
        .get(&format!("/partner/envelopes/{id}/compliance"))
        .await
        .data(200);
    assert_eq!(compliance["envelope_status"], "completed");

    let failed: Vec<usize> = compliance["compliance"]["checks"]
        .as_array()
        .unwrap()
        .iter()
        .zip(1..)
        .filter(|(check, _)| check["satisfied"] == false)
        .map(|(_, number)| number)
        .collect();
    assert_eq!(failed, [1, 2, 3, 5, 7]);

    let certificate = app
        .get(&format!("/partner/envelopes/{id}/vault/certificate"))
        .await;
    assert_eq!(certificate.error(404), "Certificate not yet generated");

    app.get(&format!("/partner/envelopes/{id}/vault/signed-url"))
        .await
        .error(409);
    app.get(&format!("/partner/envelopes/{id}/vault/copy/signed-url"))
        .await
        .error(409);

    app.post(
        &format!("/partner/envelopes/{id}/vault-out"),
        release_form(),
    )
    .await
    .error(409);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_vault_in_call_for_another_kind_is_a_conflict() {
    let app = TestApp::without_auto_vault().await;
    let sent = app.sent_envelope().await;
    let id = sent["envelope_id"].as_str().unwrap();
    for entrance in ["vault-in-upload", "vault-in-signed"] {
        app.post(&format!("/partner/envelopes/{id}/{entrance}"), json!({}))
            .await
            .error(409);
    }

    let mut body = envelope_body(&Value::Null);
    body["envelope_kind"] = "paper".into();
    let paper = app.post("/partner/envelopes", body).await.data(201);
    let id = paper["envelope_id"].as_str().unwrap();
    for entrance in ["vault-in-upload", "vault-in-signed"] {
        app.post(&format!("/partner/envelopes/{id}/{entrance}"), json!({}))
            .await
            .error(409);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_twenty_uses_of_an_authoritative_link_succeeds() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let link = app
        .get(&format!("/partner/envelopes/{id}/vault/signed-url"))
        .await
        .data(200);
    let url = link["signed_url"].as_str().unwrap();
    let head = axum::http::Request::head(url.strip_prefix("http://127.0.0.1:8080").unwrap());
    let peek = app
        .send(head.body(axum::body::Body::empty()).unwrap())
        .await;
    assert_eq!(peek.status, 200, "a HEAD request does not burn the link");

    let uses = (0..20).map(|_| app.get(url));
    let statuses: Vec<u16> = futures::future::join_all(uses)
        .await
        .iter()
        .map(|answer| answer.status.as_u16())
        .collect();
    assert_eq!(
        statuses.iter().filter(|status| **status == 200).count(),
        1,
        "{statuses:?}"
    );
    assert_eq!(
        statuses.iter().filter(|status| **status == 410).count(),
        19,
        "{statuses:?}"
    );
}

/// Over a real connection the server never polls a body of known length past its end.
#[tokio::test(flavor = "multi_thread")]
async fn an_authoritative_link_is_used_up_over_a_real_connection() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let link = app
        .get(&format!("/partner/envelopes/{id}/vault/signed-url"))
        .await
        .data(200);
    let path = link["signed_url"]
        .as_str()
        .unwrap()
        .strip_prefix("http://127.0.0.1:8080")
        .unwrap();
    let url = app.listen().await + path;

    let client = reqwest::Client::new();
    let first = client.get(&url).send().await.unwrap();
    assert_eq!(first.status(), 200);
    assert!(first.bytes().await.unwrap().starts_with(b"%PDF-"));

    for _ in 0..10 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        assert_eq!(client.get(&url).send().await.unwrap().status(), 410);
    }
}

/// An incomplete download is recorded, and the link stays usable.
#[tokio::test(flavor = "multi_thread")]
async fn a_download_that_breaks_off_is_recorded_and_can_be_repeated() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let path = format!("/partner/envelopes/{id}/vault/signed-url");
    let link = app.get(&path).await.data(200);
    let url = link["signed_url"].as_str().unwrap();
    let path = url.strip_prefix("http://127.0.0.1:8080").unwrap();
    let request = axum::http::Request::get(path).body(axum::body::Body::empty());
    assert_eq!(app.hang_up(request.unwrap()).await, 200);

    let entry = app
        .wait_for_entry(&id, "authoritative.download_broken_off")
        .await;
    assert_eq!(entry["file"], "authoritative");
    assert_eq!(app.get(url).await.status, 200, "it can be repeated");
    assert_eq!(app.get(url).await.status, 410, "once it is read whole");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_copy_link_works_repeatedly_and_after_the_release() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let link = app
        .get(&format!("/partner/envelopes/{id}/vault/copy/signed-url"))
        .await
        .data(200);
    let url = link["signed_url"].as_str().unwrap();

    app.post(
        &format!("/partner/envelopes/{id}/vault-out"),
        release_form(),
    )
    .await
    .data(200);
    assert_eq!(app.get(url).await.status, 200);
    assert_eq!(app.get(url).await.status, 200);

    app.get(&format!("/partner/envelopes/{id}/vault/signed-url"))
        .await
        .error(409);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_modified_object_is_never_served() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let object = app.objects("vault").remove(0);
    let mut bytes = std::fs::read(&object).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::remove_file(&object).unwrap();

    std::fs::write(&object, bytes).unwrap();
    let link = app
        .get(&format!("/partner/envelopes/{id}/vault/signed-url"))
        .await
        .data(200);
    let answer = app.get(link["signed_url"].as_str().unwrap()).await;
    assert_eq!(answer.error(409), "Document integrity check failed");

    let events = app.events(&id).await;
    let tampered = events.last().unwrap();
    assert_eq!(tampered["event_type"], "vault.tamper_detected");
    assert_ne!(
        tampered["data"]["expected_hash"],
        tampered["data"]["actual_hash"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_needs_every_field_and_both_acknowledgements() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let path = format!("/partner/envelopes/{id}/vault-out");
    for member in release_form().as_object().unwrap().keys() {
        let mut form = release_form();
        form.as_object_mut().unwrap().remove(member);
        let answer = app.post(&path, form).await;
        assert_eq!(answer.status, 422, "{member}");
        assert_eq!(answer.json()["details"][0]["path"], json!([member]));
    }

    for member in [
        "acknowledge_authoritative_copy",
        "acknowledge_chain_of_custody",
    ] {
        let mut form = release_form();
        form[member] = false.into();
        assert_eq!(app.post(&path, form).await.error(422), "Validation failed");
    }

    assert_eq!(app.objects("archive").len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_release_returns_new_links_to_the_same_archive() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let path = format!("/partner/envelopes/{id}/vault-out");
    let first = app.post(&path, release_form()).await.data(200);
    let second = app.post(&path, release_form()).await.data(200);
    assert_ne!(
        first["authoritative_signed_url"],
        second["authoritative_signed_url"]
    );

    let old = app.get(link(&first)).await;
    assert_eq!(old.status, 410, "a new link ends the one before");

    let new = app.get(link(&second)).await;
    let archive = std::fs::read(app.objects("archive").remove(0)).unwrap();
    assert_eq!(new.bytes, archive);
    assert_eq!(app.objects("archive").len(), 1);

    let released = app.event_types(&id).await;
    assert_eq!(
        released
            .iter()
            .filter(|kind| *kind == "vault.released")
            .count(),
        1
    );

    for _ in 0..200 {
        if app.objects("vault").is_empty() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }

    panic!("the live copy is still in the vault");
}

/// Returns the link to the released file.
fn link(released: &Value) -> &str {
    released["authoritative_signed_url"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn another_recipient_or_purpose_gets_nothing_of_a_released_record() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let path = format!("/partner/envelopes/{id}/vault-out");
    app.post(&path, release_form()).await.data(200);

    for (member, other) in [
        ("recipient_name", "Alex Birch"),
        ("recipient_organization", "Second Example Bank"),
        ("recipient_email", "alex@second.example"),
        ("purpose_of_release", "Pledge"),
    ] {
        let mut form = release_form();
        form[member] = other.into();
        let refused = app.post(&path, form).await;
        assert_eq!(refused.status, 409, "{member}: {}", refused.text());
        assert_eq!(refused.json()["code"], "released_to_another", "{member}");
    }

    let ledger = app.custody(&id).await.to_string();
    assert!(!ledger.contains("Second Example Bank"), "{ledger}");
    assert!(!ledger.contains("archive_links.issued"), "{ledger}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_signature_and_spelling_of_the_address_are_the_same_form() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let path = format!("/partner/envelopes/{id}/vault-out");
    app.post(&path, release_form()).await.data(200);
    let mut form = release_form();
    form["authorized_signature"] = "Sam Birch".into();
    form["recipient_email"] = "Robin.Park@bank.example".into();

    form["recipient_name"] = " Robin Park ".into();
    app.post(&path, form).await.data(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_link_to_a_released_copy_works_for_one_download_and_the_others_for_more() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let path = format!("/partner/envelopes/{id}/vault-out");
    let released = app.post(&path, release_form()).await.data(200);
    assert_eq!(app.get(link(&released)).await.status, 200);
    assert_eq!(app.get(link(&released)).await.status, 410);

    let downloaded = app.wait_for_entry(&id, "authoritative.downloaded").await;
    assert_eq!(downloaded["file"], "archive");

    for file in [
        "certified_vaulted_copy",
        "compliance_certificate",
        "vault_custody_record",
    ] {
        let url = released[format!("{file}_signed_url")].as_str().unwrap();
        assert_eq!(app.get(url).await.status, 200, "{file}");
        assert_eq!(app.get(url).await.status, 200, "{file}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_download_of_a_released_copy_gives_its_link_back() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let path = format!("/partner/envelopes/{id}/vault-out");
    let released = app.post(&path, release_form()).await.data(200);
    let path = link(&released)
        .strip_prefix("http://127.0.0.1:8080")
        .unwrap();
    let request = axum::http::Request::get(path).body(axum::body::Body::empty());
    assert_eq!(app.hang_up(request.unwrap()).await, 200);

    let broken_off = app
        .wait_for_entry(&id, "authoritative.download_broken_off")
        .await;
    assert_eq!(broken_off["file"], "archive");
    assert_eq!(app.get(link(&released)).await.status, 200);
    assert_eq!(app.get(link(&released)).await.status, 410);
}

/// An earlier release of this program issued links to the archive for any number of downloads.
#[tokio::test(flavor = "multi_thread")]
async fn an_earlier_link_to_the_archive_works_for_one_download_too() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let path = format!("/partner/envelopes/{id}/vault-out");
    let released = app.post(&path, release_form()).await.data(200);
    app.execute("update download_link set single_use = 0").await;
    assert_eq!(app.get(link(&released)).await.status, 200);
    assert_eq!(app.get(link(&released)).await.status, 410);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_further_link_is_numbered_in_the_ledger_with_its_recipient() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let path = format!("/partner/envelopes/{id}/vault-out");
    for _ in 0..3 {
        app.post(&path, release_form()).await.data(200);
    }
    assert_eq!(app.entry(&id, "vault.released").await["link_number"], 1);

    let ledger = app.custody(&id).await;
    let entries = ledger["entries"].as_array().unwrap().iter();
    let issued: Vec<&Value> = entries
        .filter(|entry| entry["action"] == "archive_links.issued")
        .map(|entry| &entry["details"])
        .collect();
    let numbers: Vec<&Value> = issued.iter().map(|entry| &entry["link_number"]).collect();
    assert_eq!(numbers, [2, 3]);

    for details in issued {
        assert_eq!(details["recipient_organization"], "First Example Bank");
        assert_eq!(details["recipient_email"], "robin.park@bank.example");
        assert_eq!(details["file"], "archive");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_response_or_event_contains_a_storage_key() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let mut texts = Vec::new();
    for path in [
        "",
        "/status",
        "/compliance",
        "/custody",
        "/vault/certificate",
        "/vault/signed-url",
    ] {
        texts.push(
            app.get(&format!("/partner/envelopes/{id}{path}"))
                .await
                .text(),
        );
    }

    texts.push(
        app.post(
            &format!("/partner/envelopes/{id}/vault-out"),
            release_form(),
        )
        .await
        .text(),
    );

    texts.extend(app.events(&id).await.iter().map(Value::to_string));
    let folder = app.data.path().display().to_string();
    for object in app.objects("") {
        let key = object.strip_prefix(app.objects_folder()).unwrap();
        let parent = key.parent().unwrap().display().to_string();
        for text in &texts {
            assert!(
                !text.contains(&parent) && !text.contains(&folder),
                "{parent} in {text}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_link_that_does_not_work_is_a_page_for_people() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let link = app
        .get(&format!("/partner/envelopes/{id}/vault/signed-url"))
        .await
        .data(200);
    let url = link["signed_url"].as_str().unwrap();
    assert_eq!(app.get(url).await.status, 200);

    let ask = async |path: &str, accept: &str| {
        let request = axum::http::Request::get(path).header("accept", accept);
        let request = request.body(axum::body::Body::empty());
        app.send(request.unwrap()).await
    };
    let used = url.strip_prefix("http://127.0.0.1:8080").unwrap();
    for (path, status) in [(used, 410), ("/api/v2/downloads/unknown", 404)] {
        let page = ask(path, "text/html,application/xhtml+xml,*/*;q=0.8").await;
        assert_eq!(page.status, status, "{path}");
        let kind = &page.headers["content-type"];
        assert_eq!(kind, "text/html; charset=utf-8", "{path}");
        assert!(page.text().contains("for a limited time"), "{path}");

        let answer = ask(path, "application/json").await;
        assert_eq!(answer.status, status, "{path}");
        assert!(answer.json()["error"].is_string(), "{path}");
    }
}
