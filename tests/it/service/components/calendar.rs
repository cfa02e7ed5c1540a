//! Compliance rules by jurisdiction and date.

use std::fs;

use serde_json::{Value, json};

use crate::cli::plugin_kit::holdfast;
use crate::http::console::Session;
use crate::support::{TestApp, envelope_body, form, operator};

/// Vaults a contract that states a jurisdiction, and returns its id and its certificate.
async fn certificate(app: &TestApp, jurisdiction: &str) -> (String, Value) {
    let template = app.contract_template().await;
    let mut body = envelope_body(&template["template_id"]);
    body["chattel_paper_jurisdiction"] = jurisdiction.into();
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let id = envelope["envelope_id"].as_str().unwrap();
    form::sign(app, envelope["sign_url"].as_str().unwrap()).await;
    app.wait_for(id, "vaulted").await;

    let path = format!("/partner/envelopes/{id}/vault/certificate");
    let certificate = app.get(&path).await.data(200);
    let report = app.release_and_verify(id).await;
    assert_eq!(report["valid"], true, "{report:#}");

    (id.to_owned(), certificate)
}

fn checks(certificate: &Value) -> usize {
    let checks = &certificate["ucc_9105_compliance"]["checks"];
    checks.as_array().unwrap().len()
}

async fn activated(app: &TestApp, component: &Value) {
    let body = json!({ "component_id": component });
    app.post_with_bearer(
        &app.admin(),
        "/component-slots/rules.compliance/activate",
        body,
    )
    .await
    .data(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_states_the_law_of_its_jurisdiction_and_date() {
    let app = TestApp::start().await;
    let listed = operator(app.data.path(), &["component", "list"]);
    let calendar = listed.as_array().unwrap().iter();
    let mut calendar = calendar.filter(|one| one["name"] == "holdfast-compliance-calendar");
    activated(&app, &calendar.next().unwrap()["component_id"]).await;
    let (id, amended) = certificate(&app, "US-DE").await;
    assert_eq!(checks(&amended), 9);

    // No party has accepted control.
    assert_eq!(amended["ucc_9105_compliance"]["compliant"], false);
    assert_eq!(amended["chattel_paper_jurisdiction"], "US-DE");

    let law = &amended["law"];
    assert_eq!(
        (&law["effective"], &law["applied"]),
        (
            &json!("2023-08-18"),
            &json!("UCC §9-105 as amended in 2022")
        ),
        "{law:#}"
    );

    // People of the organization read it on the page of the envelope.
    let eva = Session::of(&app, "eva@oak.example", "auditor").await;
    let page = eva.get(&app, &format!("/console/envelopes/{id}")).await;
    let page = page.text();
    assert!(
        page.contains("US-DE: UCC §9-105 as amended in 2022") && page.contains("2023-08-18"),
        "{page}"
    );

    for (jurisdiction, status) in [
        ("US-TX", "not in the table"),
        ("US-MT", "not in the table: enacted, date unknown"),
    ] {
        let (_, before) = certificate(&app, jurisdiction).await;
        assert_eq!(
            (checks(&before), &before["law"]["status"]),
            (8, &json!(status))
        );
    }
}

/// A new state is a row and a review: the component is built without a compiler, uploaded and activated.
#[tokio::test(flavor = "multi_thread")]
async fn a_team_adds_a_state_between_releases() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let built = |rules: &str, laws: &str| {
        fs::write(file("rules.toml"), rules).unwrap();
        fs::write(file("laws.txt"), laws).unwrap();
        let (rules, component) = (file("rules.toml"), file("calendar.wasm"));
        holdfast(&["--json", "component", "build", &rules, &component])
    };

    let calendar = "base = \"calendar\"\nlaws = \"laws.txt\"\n";
    let texas = "US-TX | 2026-01-01 | | HB 1 (2025) | https://example.com/hb1";
    let refused = [
        (calendar, "US-TX | 2026", "is no row"),
        (calendar, "", "the table has no rows"),
        (
            calendar,
            "US-XX | 2026-01-01 | | HB 1 | https://example.com",
            "US-XX is no jurisdiction",
        ),
        (
            calendar,
            "US-TX | January 2026 | | HB 1 | https://example.com",
            "is no date",
        ),
        (
            calendar,
            "US-TX | 2026-01-01 | 2025-01-01 | HB 1 | https://example.com",
            "the adjustment date is before",
        ),
        ("base = \"calendar\"\n", texas, "needs `laws`"),
        (
            "laws = \"laws.txt\"\n",
            texas,
            "are for the base `calendar`",
        ),
    ];
    for (rules, laws, why) in refused {
        let (done, text) = built(rules, laws);
        assert!(!done && text.contains(why), "{why}: {text}");
    }

    let (done, text) = built(calendar, &format!("{texas}\n{texas}"));
    assert!(!done && text.contains("in the table twice"), "{text}");

    let (done, text) = built(calendar, &format!("# Ours\n{texas}\n"));
    assert!(done, "{text}");

    let (done, text) = holdfast(&["--json", "component", "check", &file("calendar.wasm")]);
    assert!(done, "{text}");

    let app = TestApp::start().await;
    let bytes = fs::read(file("calendar.wasm")).unwrap();
    let uploaded = app
        .upload_component(&app.admin(), "our-calendar", "1.0.0", &bytes)
        .await
        .data(201);
    activated(&app, &uploaded["component_id"]).await;

    let (_, certificate) = certificate(&app, "US-TX").await;

    // The built-in pack of the same checks agrees.
    assert_eq!(checks(&certificate), 9);
    assert_eq!(certificate["law"]["act"], "HB 1 (2025)");
    assert_eq!(
        certificate["evaluations"][1]["component"]["name"],
        "holdfast-compliance-ucc2022"
    );
}
