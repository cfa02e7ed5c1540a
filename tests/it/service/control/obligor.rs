//! Statements of control: proof for the obligor of a record, without an account.

use holdfast::domain::organization::OrgSettings;
use serde_json::{Value, json};

use super::{Party, code, controlled, designate};
use crate::support::{TestApp, TestResponse, form, pdf, statement_output};

async fn stated(app: &TestApp, by: &Party, id: &str, body: Value) -> TestResponse {
    let path = format!("/partner/envelopes/{id}/control-statement");
    app.post_as(&by.key, &path, body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_obligor_checks_who_has_control_without_an_account() {
    let (app, id, lender) = controlled().await;
    let body = json!({ "requested_by": "Jordan Lee" });
    let stated = stated(&app, &lender, &id, body).await.data(201);
    let statement = &stated["statement"];
    assert_eq!(
        statement["controller"]["organization_id"],
        lender.org.as_str()
    );

    let chain = statement["control_chain"].as_array().unwrap();
    assert_eq!(chain.len(), 2);
    assert_eq!(chain[0]["organization_id"], app.org.as_str());
    assert_eq!(chain[0]["act"], "vault.stored");
    assert_eq!(chain[1]["act"], "control.accepted");
    assert_eq!(statement["compliance"]["ucc_9105_compliance"]["score"], 100);

    // One signer does not get the address of another.
    assert!(!statement.to_string().contains("jordan"), "{statement}");

    let entry = app.entry(&id, "control.statement.issued").await;
    assert_eq!(entry["sha256"], stated["sha256"]);
    assert_eq!(entry["requested_by"], "Jordan Lee");

    let url = stated["verification_url"].as_str().unwrap().to_owned();
    let page = form::open(&app, &url).await;
    assert_eq!(page.status, 200, "{}", page.text());

    let page = page.text();
    for shown in [
        "Controlled by Maple Street Motors",
        "This still holds now",
        "Jordan Lee",
        "Issued at the request of",
        "Who had control",
        "the contract was stored",
        "Download as a PDF",
        "Download as data (JSON)",
    ] {
        assert!(page.contains(shown), "{shown}: {page}");
    }

    let document = form::open(&app, &format!("{url}/statement.pdf")).await;
    assert_eq!(document.status, 200, "{}", document.text());

    let text = pdf::text(&document.bytes);
    for shown in [
        "Statement of control",
        "Maple Street Motors",
        "Jordan Lee",
        "Issued at the request of",
        "Check this statement at",
        chain[0]["since"].as_str().unwrap().get(..4).unwrap(),
        "holdfast-verify",
    ] {
        assert!(text.contains(shown), "{shown}: {text}");
    }

    let again = form::open(&app, &format!("{url}/statement.pdf")).await;
    assert_eq!(again.bytes, document.bytes);

    // The data verify offline, and no changed copy of them does.
    let data = form::open(&app, &format!("{url}/statement.json")).await;
    let key = app.ledger_key().await;
    let verified = |json: &Value| {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), json.to_string()).unwrap();
        let output = statement_output(file.path().to_str().unwrap(), &["--key", &key]);
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };

    let good: Value = serde_json::from_slice(&data.bytes).unwrap();
    let report = verified(&good);
    assert_eq!(report["verdict"], "VALID", "{report:#}");
    assert_eq!(report["controller"], "Maple Street Motors");

    let (parties, another) = (
        "the parties are not those of the entries",
        "the ledger records another statement",
    );
    let mut reversed = good["statement"]["entries"].clone();
    reversed.as_array_mut().unwrap().reverse();
    let changes: [(&str, Value, &str); 10] = [
        ("/statement/controller/name", json!("Thief"), parties),
        ("/statement/control_chain/0/name", json!("Thief"), parties),
        ("/statement/originator/name", json!("Thief"), parties),
        (
            "/statement/record/document_hash",
            json!("00"),
            "the document is not the one that was stored",
        ),
        (
            "/statement/issued_at",
            json!("2030-01-01T00:00:00.000Z"),
            "it was recorded at another time",
        ),
        (
            "/statement/verification_url",
            json!("https://thief.example"),
            another,
        ),
        (
            "/statement/entries/1/details/controller/name",
            json!("Thief"),
            " was changed",
        ),
        (
            "/statement/entries",
            reversed,
            "the entries are not in their order",
        ),
        ("/issued/details/sha256", json!("00"), another),
        ("/log/inclusion", json!([]), "there is no proof for entry "),
    ];
    for (pointer, value, why) in changes {
        let mut changed = good.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        let report = verified(&changed);
        assert_eq!(report["verdict"], "NOT VALID", "{pointer}");
        let problems = report["problems"].to_string();
        assert!(problems.contains(why), "{pointer}: {problems}");
    }

    assert_eq!(report["organization_id"], lender.org.as_str());
    assert_eq!(report["signed_with"], Value::Null);

    let mut shortened = good.clone();
    shortened["statement"]["entries"]
        .as_array_mut()
        .unwrap()
        .pop();
    assert_eq!(verified(&shortened)["verdict"], "NOT VALID");

    // Once control has passed on, the page states it.
    let funder = Party::new(&app).await;
    let offer = json!({ "buyer": funder.org, "records": [id] });
    let path = "/partner/control/transfers";
    let offer = app.post_as(&lender.key, path, offer).await.data(202);
    let transfer = offer["transfer_id"].as_str().unwrap();
    for (party, act, state) in [
        (&funder, "accept", "accepted"),
        (&lender, "confirm", "confirmed"),
    ] {
        let before = if act == "accept" {
            "proposed"
        } else {
            "accepted"
        };
        super::transfers::wait(&app, &lender, transfer, before).await;
        let step = format!("{path}/{transfer}/{act}");
        app.post_as(&party.key, &step, json!({})).await.data(202);

        super::transfers::wait(&app, &lender, transfer, state).await;
    }

    let page = form::open(&app, &url).await.text();
    assert!(page.contains("control has passed on"), "{page}");
    assert!(!page.contains("This still holds now"), "{page}");

    app.events_fit_their_schemas(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_controller_of_a_record_in_the_vault_states_control() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let originator = Party {
        org: app.org.clone(),
        key: app.key.clone(),
    };

    // Until another party takes control, the originator has it.
    let own = stated(&app, &originator, &id, json!({})).await.data(201);
    assert_eq!(own["statement"]["controller"]["act"], "vault.stored");
    assert_eq!(own["statement"]["requested_by"], Value::Null);

    let (lender, stranger) = (Party::new(&app).await, Party::new(&app).await);
    stated(&app, &stranger, &id, json!({})).await.error(404);
    designate(&app, &id, &lender.org).await.data(200);
    let early = stated(&app, &lender, &id, json!({})).await;
    assert_eq!(code(&early, 409), "control_wrong_party");

    lender.act(&app, &id, "accept", json!({})).await.data(200);
    let late = stated(&app, &originator, &id, json!({})).await;
    assert_eq!(code(&late, 409), "control_wrong_party");

    for wrong in ["", &"x".repeat(201)] {
        let refused = stated(&app, &lender, &id, json!({ "requested_by": wrong })).await;
        assert_eq!(refused.status, 422, "{}", refused.text());
        assert_eq!(
            refused.json()["details"][0]["path"],
            json!(["requested_by"])
        );
    }

    let open = app.sent_envelope().await;
    let open = open["envelope_id"].as_str().unwrap();
    let refused = stated(&app, &originator, open, json!({})).await;
    assert_eq!(code(&refused, 409), "record_not_vaulted");

    let url = own["verification_url"].as_str().unwrap();
    let guessed = format!("{}x", &url[..url.len() - 1]);
    assert_eq!(form::open(&app, &guessed).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_certificate_states_jurisdiction_and_metadata_reach_the_parties() {
    let settings = OrgSettings {
        chattel_paper_jurisdiction: Some("US-DE".to_owned().try_into().unwrap()),
        ..OrgSettings::default()
    };
    let app = TestApp::with(|_| {}, settings).await;
    let id = app.vaulted_envelope().await;
    let certificate = app
        .get(&format!("/partner/envelopes/{id}/vault/certificate"))
        .await;
    assert_eq!(certificate.data(200)["chattel_paper_jurisdiction"], "US-DE");

    let record = app.get(&format!("/partner/control/records/{id}")).await;
    let record = record.data(200);
    assert_eq!(record["chattel_paper_jurisdiction"], "US-DE");
    assert_eq!(record["metadata"], json!({}));

    let template = app.contract_template().await;
    let mut body = crate::support::envelope_body(&template["template_id"]);
    body["metadata"] = json!({ "amount": 18400, "segment": "prime" });
    let created = app.post("/partner/envelopes", body.clone()).await.data(201);
    assert_eq!(created["chattel_paper_jurisdiction"], "US-DE");
    assert_eq!(created["metadata"]["amount"], 18400);

    body["chattel_paper_jurisdiction"] = json!("US-NY");
    let other = app.post("/partner/envelopes", body.clone()).await.data(201);
    assert_eq!(other["chattel_paper_jurisdiction"], "US-NY");

    let wrong = [
        ("chattel_paper_jurisdiction", json!("Delaware")),
        ("metadata", json!({ "bulk_send": 1 })),
        ("metadata", json!({ "no spaces": 1 })),
        ("metadata", json!({ "list": [1] })),
        ("metadata", json!({ "long": "x".repeat(501) })),
        (
            "metadata",
            (0..51).map(|n| (format!("m{n}"), json!(n))).collect(),
        ),
    ];

    for (member, value) in wrong {
        let mut refused = body.clone();
        refused[member] = value.clone();
        let answer = app.post("/partner/envelopes", refused).await;
        assert_eq!(answer.status, 422, "{member} {value}: {}", answer.text());
    }
}
