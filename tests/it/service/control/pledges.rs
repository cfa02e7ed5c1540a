//! Pledges: a record that is given as security does not change hands.

use serde_json::{Value, json};

use super::{Party, asked, code, controlled, designate, vault_out};
use crate::support::{TestApp, TestResponse, envelope_body, pdf, release_form};

async fn pledge(app: &TestApp, by: &Party, id: &str, to: &Party) -> TestResponse {
    let body = json!({ "envelope_id": id, "pledgee": to.org, "terms": "Warehouse line 12" });
    app.post_as(&by.key, "/partner/control/pledges", body).await
}

async fn give_up(app: &TestApp, by: &Party, pledge: &Value) -> TestResponse {
    let id = pledge["pledge_id"].as_str().unwrap();
    let path = format!("/partner/control/pledges/{id}/release");
    app.post_as(&by.key, &path, json!({})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pledged_record_does_not_change_hands() {
    let (app, id, lender) = controlled().await;
    let (warehouse, buyer) = (Party::new(&app).await, Party::new(&app).await);
    let pledged = pledge(&app, &lender, &id, &warehouse).await.data(201);
    assert_eq!(pledged["terms"], "Warehouse line 12");

    let record = warehouse.record(&app, &id).await.data(200);
    assert_eq!(record["pledge_id"], pledged["pledge_id"]);
    assert_eq!(record["controller"]["organization_id"], lender.org.as_str());

    let listed = app
        .get_as(&warehouse.key, "/partner/control/records?part=pledgee")
        .await;
    assert_eq!(listed.data(200)[0]["envelope_id"], id);

    assert_eq!(
        code(&pledge(&app, &lender, &id, &buyer).await, 409),
        "record_pledged"
    );

    let release = lender.act(&app, &id, "release", release_form()).await;
    assert_eq!(code(&release, 409), "record_pledged");

    let offer = json!({ "buyer": buyer.org, "records": [id] });
    let offer = app
        .post_as(&lender.key, "/partner/control/transfers", offer)
        .await
        .data(202);
    let transfer = offer["transfer_id"].as_str().unwrap();
    let failed = super::transfers::wait(&app, &lender, transfer, "failed").await;
    assert_eq!(failed["records"][0]["code"], "record_pledged");

    // The originator asks the controller; its consent alone releases nothing.
    let asked = asked(&vault_out(&app, &id, release_form()).await);
    lender.answer(&app, &asked, "consent").await.data(200);
    assert_eq!(
        code(&vault_out(&app, &id, release_form()).await, 409),
        "record_pledged"
    );
    assert!(app.objects("archive").is_empty());

    assert_eq!(
        code(&give_up(&app, &lender, &pledged).await, 409),
        "control_wrong_party"
    );

    give_up(&app, &buyer, &pledged).await.error(404);
    let released = give_up(&app, &warehouse, &pledged).await.data(200);
    assert_ne!(released["released_at"], Value::Null);
    assert_eq!(
        code(&give_up(&app, &lender, &pledged).await, 409),
        "control_out_of_order"
    );

    warehouse.record(&app, &id).await.error(404);
    vault_out(&app, &id, release_form()).await.data(200);
    let report = app.release_and_verify(&id).await;
    assert_eq!(report["verdict"], "VALID", "{report:#}");

    let types: Vec<Value> = warehouse.events(&app, &id).await;
    let types: Vec<&Value> = types.iter().map(|event| &event["event_type"]).collect();
    assert_eq!(types.first(), Some(&&json!("control.pledged")));
    assert_eq!(types.last(), Some(&&json!("control.pledge.released")));

    app.events_fit_their_schemas(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_pledge_is_refused_and_changes_nothing() {
    let (app, id, lender) = controlled().await;
    let (warehouse, stranger) = (Party::new(&app).await, Party::new(&app).await);
    assert_eq!(
        code(&pledge(&app, &lender, &id, &lender).await, 422),
        "control_to_oneself"
    );

    pledge(&app, &stranger, &id, &warehouse).await.error(404);
    let body = json!({ "envelope_id": id, "pledgee": warehouse.org });
    let originator = app.post("/partner/control/pledges", body).await;
    assert_eq!(code(&originator, 409), "control_wrong_party");

    let body = json!({ "envelope_id": id, "pledgee": "org_unknown" });
    let unknown = app
        .post_as(&lender.key, "/partner/control/pledges", body)
        .await;
    assert_eq!(unknown.json()["details"][0]["code"], "unknown_party");

    let offer = json!({ "buyer": stranger.org, "records": [id] });
    let offer = app
        .post_as(&lender.key, "/partner/control/transfers", offer)
        .await
        .data(202);
    let transfer = offer["transfer_id"].as_str().unwrap();
    super::transfers::wait(&app, &lender, transfer, "proposed").await;

    let offered = pledge(&app, &lender, &id, &warehouse).await;
    assert_eq!(code(&offered, 409), "control_out_of_order");

    let record = lender.record(&app, &id).await.data(200);
    assert_eq!(record["pledgee"], Value::Null);

    // Nor is a record pledged that no vault holds.
    let body = envelope_body(&app.contract_template().await["template_id"]);
    let draft = app.post("/partner/envelopes", body).await.data(201);
    let draft = draft["envelope_id"].as_str().unwrap();
    let originator = Party {
        org: app.org.clone(),
        key: app.key.clone(),
    };
    let answer = pledge(&app, &originator, draft, &warehouse).await;
    assert_eq!(code(&answer, 409), "record_not_vaulted");

    app.events_fit_their_schemas(1).await;
}

/// The originator keeps control and pledges the same vehicle to two lenders.
#[tokio::test(flavor = "multi_thread")]
async fn a_vehicle_is_pledged_to_one_party() {
    let app = TestApp::start().await;
    let (bank, fund) = (Party::new(&app).await, Party::new(&app).await);
    let dealer = Party {
        org: app.org.clone(),
        key: app.key.clone(),
    };
    let vehicle = json!([{ "kind": "vin", "value": "1M8GDM9AXKP042788" }]);
    let first = dealer
        .vaulted(&app, &pdf::with_lines(&["Lease 1"]), vehicle.clone())
        .await;

    let second = dealer
        .vaulted(&app, &pdf::with_lines(&["Lease 2"]), vehicle)
        .await;
    let pledged = pledge(&app, &dealer, &first, &bank).await.data(201);
    assert_eq!(
        code(&pledge(&app, &dealer, &second, &fund).await, 409),
        "already_controlled"
    );
    assert_eq!(
        code(&designate(&app, &second, &fund.org).await, 409),
        "already_controlled"
    );
    assert_eq!(
        code(&designate(&app, &first, &fund.org).await, 409),
        "record_pledged"
    );

    // The same bank may have both.
    let both = pledge(&app, &dealer, &second, &bank).await.data(201);
    give_up(&app, &bank, &both).await.data(200);
    give_up(&app, &bank, &pledged).await.data(200);
    pledge(&app, &dealer, &second, &fund).await.data(201);

    app.events_fit_their_schemas(1).await;
}
