//! Search of envelopes.

use serde_json::{Value, json};

use crate::support::{TestApp, envelope_body};

/// Returns the external ids of the found envelopes, newest first.
async fn found(app: &TestApp, query: &str) -> Vec<String> {
    let path = format!("/envelopes?{query}");
    let list = app.get_with_bearer(app.web_admin(), &path).await.data(200);
    let ids = list.as_array().unwrap().iter();
    ids.map(|hit| hit["external_id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn envelopes_are_found_by_name_people_dates_and_status_on_both_databases() {
    let database = crate::support::postgres::new_database().await;
    for database in [None, Some(database)] {
        let on = |config: &mut holdfast::config::Config| config.database_url = database;
        let app = TestApp::with(on, holdfast::domain::organization::OrgSettings::default()).await;
        finds(&app).await;
    }
}

async fn finds(app: &TestApp) {
    let template = app.contract_template().await;
    let mut ids = Vec::new();
    for (name, external, email) in [
        (
            "Loan 100% of Ms. Ölmann-Weber",
            "deal-1",
            "Anna.Weber@oak.example",
        ),
        ("Loan 100 of Mr. Koch", "deal-2", "koch@oak.example"),
        ("Lease of Mr. Koch", "DEAL_3", "koch@oak.example"),
    ] {
        let mut body = envelope_body(&template["template_id"]);
        body["envelope_name"] = json!(name);
        body["external_id"] = json!(external);
        body["signers"] = json!([{ "name": "Sam", "email": email, "role": "Buyer" }]);
        let made = app.post("/partner/envelopes", body).await.data(201);
        ids.push(made["envelope_id"].as_str().unwrap().to_owned());
    }

    let void = format!("/partner/envelopes/{}/void", ids[1]);
    app.post(&void, json!({ "reason": "Test" })).await.data(200);

    let all = ["DEAL_3", "deal-2", "deal-1"].map(str::to_owned);
    assert_eq!(found(app, "").await, all);

    for (query, expected) in [
        ("q=koch", &all[..2]),
        ("q=WEBER", &all[2..]),
        ("q=anna.weber%40oak", &all[2..]),
        // Wildcards of the database are letters like others.
        ("q=100%25", &all[2..]),
        ("q=deal_", &all[..1]),
        ("q=deal", &all),
        ("q=%C3%96lmann", &all[2..]),
        ("q=eal-1", &[]),
        ("q=!", &[]),
        ("q=%20%20", &all),
        (&format!("q={}", ids[0]), &all[2..]),
        ("status=voided", &all[1..2]),
        ("status=sent,voided", &all),
        ("status=voided,voided", &all[1..2]),
        ("status=vaulted", &[]),
        ("kind=paper", &[]),
        ("created_from=2020-01-01T00:00:00Z", &all),
        ("created_before=2020-01-01T00:00:00Z", &[]),
        ("score_below=100", &[]),
        ("q=koch&status=sent", &all[..1]),
        ("expires_before=2020-01-01T00:00:00Z", &[]),
        ("q=deal_&expires_before=2100-01-01T00:00:00Z", &all[..1]),
        // A voided envelope no longer expires.
        ("q=deal-2&expires_before=2100-01-01T00:00:00Z", &[]),
        ("secured_party=example%20BANK", &all),
        ("secured_party=%25", &[]),
        ("custodian=nobody%40oak.example", &[]),
        ("payment_status=requires_payment", &[]),
        ("stuck=true", &[]),
        ("customer_id=cust_01jdk7m3e8f4x9s2w5v6b0c1db", &[]),
    ] {
        assert_eq!(found(app, query).await, expected, "{query}");
    }

    // Pages by the last id.
    let page = async |query: &str| -> Value {
        let path = format!("/envelopes?limit=2{query}");
        app.get_with_bearer(app.web_admin(), &path).await.json()
    };
    let first = page("").await;
    assert_eq!(first["meta"], json!({ "limit": 2, "has_more": true }));

    let last = first["data"][1]["envelope_id"].as_str().unwrap();
    assert_eq!(last, ids[1]);

    let second = page(&format!("&starting_after={last}")).await;
    assert_eq!(second["data"].as_array().unwrap().len(), 1);
    assert_eq!(second["data"][0]["envelope_id"], ids[0].as_str());
    assert_eq!(second["meta"]["has_more"], false);

    for (query, why) in [
        ("status=sent,lost", "lost is no status; known are pending"),
        ("score_below=0", "score_below must be 1 to 100"),
        ("limit=101", "limit must be 1 to 100"),
        (
            &format!("q={}", "x".repeat(201)),
            "q has more than 200 characters",
        ),
    ] {
        let path = format!("/envelopes?{query}");
        let refused = app.get_with_bearer(app.web_admin(), &path).await.error(400);
        assert!(refused.starts_with(why), "{query}: {refused}");
    }

    let stranger = app.other_admin();
    let other = app.get_with_bearer(&stranger, "/envelopes?q=koch").await;
    assert_eq!(other.data(200), json!([]));
}
