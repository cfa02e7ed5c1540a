//! Rules about the answers of signers, and the files they attach.

use axum::body::Body;
use axum::http::Request;
use holdfast::domain::organization::OrgSettings;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::sealing::seals::{paper, vault_in};
use crate::support::docuseal::FakeDocuseal;
use crate::support::{CONTRACT, TestApp, TestResponse, buyer_and_seller, envelope_body, form, pdf};

fn field(name: &str, kind: &str, line: u32, more: Value) -> Value {
    let y = 0.4 + 0.05 * f64::from(line);
    let mut field = json!({
        "name": name, "type": kind, "role": "Buyer",
        "placement": {
            "mode": "absolute",
            "areas": [{ "page": 1, "x": 0.3, "y": y, "w": 0.4, "h": 0.04 }],
        },
    });
    for (member, value) in more.as_object().unwrap() {
        field[member] = value.clone();
    }

    field
}

fn signature() -> Value {
    field("Signature", "signature", 10, json!({ "required": true }))
}

/// Sends a contract with these fields of the buyer and a signature; returns id and link.
async fn sent(app: &TestApp, fields: &[Value]) -> (String, String) {
    let fields = [fields, &[signature()]].concat();
    let template = app.template(CONTRACT, &json!(fields)).await;
    let body = envelope_body(&template["template_id"]);
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let text = |name: &str| envelope[name].as_str().unwrap().to_owned();
    let (id, url) = (text("envelope_id"), text("sign_url"));
    form::open(app, &url).await;
    (id, url)
}

/// Sends a contract to a buyer and a seller; returns a link for each.
async fn sent_to_two(app: &TestApp, fields: &Value, in_order: bool) -> [String; 2] {
    let template = app.template(CONTRACT, fields).await;
    let mut body = envelope_body(&template["template_id"]);
    body["signers"] = buyer_and_seller();
    body["preserve_signing_order"] = in_order.into();
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let id = envelope["envelope_id"].as_str().unwrap();
    let path = format!("/partner/envelopes/{id}/signing-links");
    let links = app.get(&path).await.data(200);

    [0, 1].map(|index| {
        links["signers"][index]["embed_url"]
            .as_str()
            .unwrap()
            .to_owned()
    })
}

async fn finish(app: &TestApp, url: &str, values: &[(&str, &str)]) -> TestResponse {
    let always = [("Signature", "Jordan Lee"), ("consent", form::TICK)];
    let values: Vec<(String, String)> = values
        .iter()
        .chain(&always)
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    form::press(app, url, "finish", &values).await
}

async fn signed_text(app: &TestApp, id: &str) -> String {
    app.wait_for(id, "vaulted").await;
    pdf::text(&app.copy(id).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_against_its_rule_is_not_saved_and_says_why() {
    let app = TestApp::start().await;
    let fields = [
        field(
            "Deposit",
            "number",
            0,
            json!({ "min": 500, "max": "10000" }),
        ),
        field(
            "Delivery",
            "date",
            1,
            json!({ "min": "2030-01-01", "max": "2030-01-31" }),
        ),
        field(
            "Plate",
            "text",
            2,
            json!({
                "pattern": "[A-Z]{2}[0-9]{3}", "message": "Two letters and three digits",
            }),
        ),
        field(
            "Code",
            "text",
            3,
            json!({ "pattern": "[0-9]+", "max_length": 4 }),
        ),
    ];

    let (id, url) = sent(&app, &fields).await;
    let wrong = [
        ("Deposit", "499.99"),
        ("Delivery", "2030-02-01"),
        ("Plate", "AB12"),
        ("Code", "12345"),
    ];

    let problems = json!({
        "Deposit": "At least 500",
        "Delivery": "Not after 2030-01-31",
        "Plate": "Two letters and three digits",
        "Code": "At most 4 characters",
    });
    let bare = |text: String| text.replace(['\u{2068}', '\u{2069}'], "");

    let saved = form::save(&app, &url, &wrong).await;
    let said: Value = serde_json::from_str(&bare(saved["problems"].to_string())).unwrap();
    assert_eq!(said, problems);

    let refused = finish(&app, &url, &wrong).await;
    assert_eq!(refused.status, 422);

    let page = bare(refused.text());
    for words in ["At least 500", "Two letters and three digits"] {
        assert!(page.contains(words), "{words}");
    }

    let no_digits = form::save(&app, &url, &[("Code", "abc")]).await;
    let words = no_digits["problems"]["Code"].as_str().unwrap();
    assert_eq!(words, "This entry does not have the expected form");

    let right = [
        ("Deposit", "500"),
        ("Delivery", "2030-01-31"),
        ("Plate", "AB123"),
        ("Code", "1234"),
    ];
    let signed = finish(&app, &url, &right).await;
    assert_eq!(signed.status, 200, "{}", signed.text());
    assert!(signed_text(&app, &id).await.contains("AB123"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_shows_a_field_and_its_answer_counts_only_then() {
    let app = TestApp::start().await;
    let fields = [
        field("Trade-in", "checkbox", 0, json!({})),
        field(
            "Old car",
            "text",
            1,
            json!({ "required": true, "condition": "Trade-in:yes" }),
        ),
        field("Reason", "text", 2, json!({ "required_if": "!Trade-in" })),
    ];

    let (id, url) = sent(&app, &fields).await;
    let saved = form::save(&app, &url, &[("Trade-in", "true")]).await;
    assert_eq!(saved["hidden"], json!([]));
    assert_eq!(saved["required"], json!(["Old car", "Signature"]));

    let refused = finish(&app, &url, &[("Trade-in", "true")]).await;
    assert_eq!(refused.status, 422, "the field that is shown is required");

    form::save(&app, &url, &[("Old car", "Golf 2009")]).await;
    let saved = form::save(&app, &url, &[("Trade-in", "false")]).await;
    assert_eq!(saved["hidden"], json!(["Old car"]));
    assert_eq!(saved["required"], json!(["Reason", "Signature"]));

    let refused = finish(&app, &url, &[]).await;
    assert_eq!(refused.status, 422, "a reason is required now");

    let signed = finish(&app, &url, &[("Reason", "None owned")]).await;
    assert_eq!(signed.status, 200, "{}", signed.text());

    let text = signed_text(&app, &id).await;
    assert!(
        text.contains("None owned") && !text.contains("Golf"),
        "{text}"
    );

    let completed = app.events(&id).await;
    let completed = completed
        .iter()
        .find(|event| event["event_type"] == "envelope.completed");
    let fields = completed.unwrap()["data"]["fields"].as_array().unwrap();
    let hidden = fields.iter().find(|field| field["name"] == "Old car");
    assert_eq!(hidden.unwrap()["value"], "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_formula_is_computed_by_the_server_whatever_the_browser_sends() {
    let app = TestApp::start().await;
    let fields = [
        field("Price", "number", 0, json!({})),
        field("Waiver", "checkbox", 1, json!({})),
        field(
            "Total",
            "number",
            2,
            json!({
                "formula": "[Price] * 1.075 + 400 * [Waiver]", "max": 20000,
            }),
        ),
    ];

    let (id, url) = sent(&app, &fields).await;
    let saved = form::save(&app, &url, &[("Price", "1000"), ("Total", "1")]).await;
    assert_eq!(saved["computed"]["Total"], "1075.00");

    let page = form::open(&app, &url).await.text();
    assert!(page.contains("value=\"1075.00\""), "{page}");

    let much = [("Price", "30000"), ("Waiver", "true")];
    let refused = finish(&app, &url, &much).await;
    assert_eq!(refused.status, 422, "the result is above its limit");

    let values = [("Price", "1000"), ("Waiver", "true"), ("Total", "1")];
    let version = form::version(&page);
    let seen = [&values[..], &[("document-version", version.as_str())]].concat();
    let refused = finish(&app, &url, &seen).await;
    assert_eq!(refused.status, 422, "the page showed another result");
    assert!(refused.text().contains("The result has changed"));

    let signed = finish(&app, &url, &values).await;
    assert_eq!(signed.status, 200, "{}", signed.text());

    let text = signed_text(&app, &id).await;
    assert!(text.contains("1475.00"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_of_a_later_signer_follow_the_answers_of_an_earlier_one() {
    let app = TestApp::start().await;
    let of_seller = |name: &str, kind, line, more: Value| {
        let mut made = field(name, kind, line, more);
        made["role"] = "Seller".into();
        made
    };
    let fields = json!([
        field("Delivery", "checkbox", 0, json!({})),
        signature(),
        of_seller(
            "Driver",
            "text",
            1,
            json!({ "required": true, "condition": "Delivery" })
        ),
        of_seller(
            "Seller signature",
            "signature",
            8,
            json!({ "required": true })
        ),
    ]);
    for (ticked, hidden) in [("true", json!([])), ("false", json!(["Driver"]))] {
        let link = sent_to_two(&app, &fields, true).await;
        let signed = finish(&app, &link[0], &[("Delivery", ticked)]).await;
        assert_eq!(signed.status, 200, "{}", signed.text());
        let saved = form::save(&app, &link[1], &[("Seller signature", "Sam")]).await;
        assert_eq!(saved["hidden"], hidden, "{ticked}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_that_cannot_be_applied_are_refused_with_the_field() {
    let app = TestApp::start().await;
    for (kind, more, member, code) in [
        ("text", json!({ "min": 1 }), "min", "unsupported_rule"),
        (
            "text",
            json!({ "pattern": "[" }),
            "pattern",
            "invalid_pattern",
        ),
        (
            "text",
            json!({ "condition": "Nobody" }),
            "condition",
            "invalid_condition",
        ),
        (
            "number",
            json!({ "formula": "1 +" }),
            "formula",
            "invalid_formula",
        ),
        (
            "number",
            json!({ "formula": "[Other]" }),
            "formula",
            "unknown_field",
        ),
        (
            "number",
            json!({ "formula": "[It]" }),
            "formula",
            "circular_rule",
        ),
        ("select", json!({}), "options", "too_small"),
        (
            "initials",
            json!({ "condition": "It" }),
            "condition",
            "circular_rule",
        ),
    ] {
        let fields = json!([signature(), field("It", kind, 0, more)]);
        let refused = app.new_template(CONTRACT, &fields).await;
        assert_eq!(refused.status, 422, "{}", refused.text());
        let issue = &refused.json()["details"][0];
        assert_eq!(issue["code"], code, "{issue}");
        assert_eq!(issue["path"], json!(["fields", 1, member]), "{issue}");
    }

    let tick = field("Agree", "checkbox", 0, json!({}));
    let maybe = field("Maybe", "signature", 1, json!({ "condition": "Agree" }));
    let refused = app.new_template(CONTRACT, &json!([tick, maybe])).await;
    let issue = &refused.json()["details"][0];
    assert_eq!(issue["code"], "conditional_signature", "{issue}");

    // Fields that are added later may use those that exist.
    let template = app.template(CONTRACT, &json!([signature()])).await;
    let path = format!(
        "/partner/templates/{}/fields",
        template["template_id"].as_str().unwrap()
    );
    let add = |more: Value| json!({ "fields": [field("It", "number", 0, more)] });
    let refused = app
        .post(&path, add(json!({ "formula": "[Signature]" })))
        .await;
    let issue = &refused.json()["details"][0];
    assert_eq!(issue["path"], json!(["fields", 0, "formula"]), "{issue}");

    app.post(&path, add(json!({ "condition": "Signature" })))
        .await
        .data(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_carry_rules_and_rules_of_other_dialects_are_warned_about() {
    let app = TestApp::start().await;
    let document = pdf::with_lines(&[
        "{{Amount;type=number;role=Buyer;min=10}}",
        "{{Extra;type=text;role=Buyer;required=false;condition=Amount:50;max=9}}",
        "{{Signature;type=signature;role=Buyer}}",
    ]);
    let texts = [("name", "Contract")];
    let created = app
        .upload("/partner/templates", "application/pdf", &document, &texts)
        .await;
    let (status, created) = (created.status, created.json());
    assert_eq!(status, 200, "{created}");

    let warnings = created["warnings"].to_string();
    let created = &created["data"];
    let fields = created["fields"].as_array().unwrap();
    assert_eq!(fields[0]["min"], "10");
    assert_eq!(fields[1]["condition"], "Amount:50");
    assert_eq!(fields[1].get("max"), None);
    assert!(
        warnings.contains("max applies to fields of type number or date"),
        "{warnings}"
    );

    let envelope = app
        .post("/partner/envelopes", envelope_body(&created["template_id"]))
        .await;
    let envelope = envelope.data(201);
    let url = envelope["sign_url"].as_str().unwrap();
    let saved = form::save(&app, url, &[("Amount", "9")]).await;
    assert!(saved["problems"]["Amount"].as_str().unwrap().contains("10"));
    assert_eq!(saved["hidden"], json!(["Extra"]));
}

/// Uploads a file for the field with this index of the form.
async fn upload(app: &TestApp, url: &str, index: usize, name: &str, bytes: &[u8]) -> TestResponse {
    let boundary = "holdfast-boundary";
    let mut body = format!(
        "--{boundary}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n"
    )
    .into_bytes();
    body.extend_from_slice(bytes);
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());

    let path = url::Url::parse(url).unwrap().path().to_owned();
    let request = Request::post(format!("{path}/attachments/{index}"))
        .header(
            "content-type",
            format!("multipart/form-data; boundary={boundary}"),
        )
        .header("accept", "application/json")
        .body(Body::from(body))
        .unwrap();

    app.send(request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_a_signer_is_hashed_and_becomes_an_appendix() {
    let app = TestApp::start().await;
    let fields = [
        field("Licence", "attachment", 0, json!({ "required": true })),
        field("Photo", "attachment", 1, json!({})),
    ];
    let fields = [&fields[..], &[signature()]].concat();
    let template = app.template(CONTRACT, &json!(fields)).await;
    let mut body = envelope_body(&template["template_id"]);
    body["prefilled_data"] = json!({ "Licence": "by the sender" });

    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let id = envelope["envelope_id"].as_str().unwrap().to_owned();
    let url = envelope["sign_url"].as_str().unwrap().to_owned();
    form::open(&app, &url).await;

    for typed in ["", "licence.pdf"] {
        let refused = finish(&app, &url, &[("Licence", typed)]).await;
        assert_eq!(refused.status, 422, "the licence is missing: {typed}");
    }

    let first = pdf::with_lines(&["Licence of somebody else"]);
    upload(&app, &url, 0, "wrong.pdf", &first).await;
    let licence = pdf::with_lines(&["Driving licence 4711"]);
    let answer = upload(&app, &url, 0, "licence.pdf", &licence).await;
    assert_eq!(answer.json()["name"], "licence.pdf");
    assert_eq!(answer.json()["problems"], json!({}));

    let photo = include_bytes!("../../../fixtures/scan.png");
    assert_eq!(upload(&app, &url, 1, "photo.png", photo).await.status, 200);

    let page = form::open(&app, &url).await.text();
    assert!(
        page.contains("licence.pdf") && !page.contains("wrong.pdf"),
        "{page}"
    );

    let signed = finish(&app, &url, &[]).await;
    assert_eq!(signed.status, 200, "{}", signed.text());

    let text = signed_text(&app, &id).await;
    assert!(text.contains("Driving licence 4711"), "{text}");
    assert!(!text.contains("somebody else"), "{text}");

    let sha256 = hex::encode(Sha256::digest(&licence));
    let path = format!("/partner/envelopes/{id}/attachments");
    let listed = app.get(&path).await.data(200);
    let first = &listed["attachments"][0];
    assert_eq!(first["sha256"], sha256.as_str());
    assert_eq!(
        (&first["field"], &first["signed"]),
        (&json!("Licence"), &json!(true))
    );
    assert_eq!(listed["attachments"][1]["content_type"], "image/png");
    assert!(
        !listed.to_string().contains("key"),
        "no storage path: {listed}"
    );

    let file = app.get(&format!("{path}/{sha256}")).await;
    assert_eq!(file.status, 200);
    assert_eq!(&file.bytes[..], &licence[..]);

    let missing = app.get(&format!("{path}/{}", "0".repeat(64))).await;
    assert_eq!(missing.status, 404);

    let ledger = app
        .get(&format!("/partner/envelopes/{id}/custody"))
        .await
        .data(200);
    assert!(ledger.to_string().contains(&sha256), "{ledger}");

    app.wait_for(&id, "vaulted").await;
    let path = format!("/partner/envelopes/{id}/completion-certificate");
    let certificate = pdf::text(&app.get(&path).await.bytes);
    for expected in ["Attached file", "licence.pdf", "photo.png", &sha256[..16]] {
        assert!(certificate.contains(expected), "{expected}: {certificate}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_cannot_become_pages_are_refused() {
    let app = TestApp::start().await;
    let fields = [field("Licence", "attachment", 0, json!({}))];
    let (_, url) = sent(&app, &fields).await;
    let page = pdf::with_lines(&["Secret"]);
    let many = pdf::repeated(&page, 51);

    let large = pdf::with_metadata(&["Large"], 10 << 20);
    for (name, bytes, words) in [
        ("program.pdf", &b"MZ\x90\x00"[..], "PDF, PNG or JPEG"),
        ("broken.pdf", b"%PDF-1.7 nothing", "cannot be read"),
        ("broken.png", b"\x89PNG\r\n\x1a\nnothing", "cannot be read"),
        (
            "locked.pdf",
            &pdf::with_password(CONTRACT, "secret"),
            "cannot be read",
        ),
        ("many.pdf", &many, "50"),
        ("large.pdf", &large, "10"),
    ] {
        let refused = upload(&app, &url, 0, name, bytes).await;
        assert_eq!(refused.status, 422, "{name}: {}", refused.text());
        let problem = refused.json()["problems"]["Licence"].to_string();
        assert!(problem.contains(words), "{name}: {problem}");
    }

    assert_eq!(upload(&app, &url, 7, "a.pdf", &page).await.status, 404);
    assert_eq!(
        upload(&app, &url, 1, "a.pdf", &page).await.status,
        404,
        "a signature"
    );
    assert_eq!(upload(&app, &url, 0, "a.pdf", &page).await.status, 200);

    let removed = form::press(&app, &url, "detach:Licence", &[]).await;
    assert_eq!(removed.status, 303);
    assert!(!form::open(&app, &url).await.text().contains("a.pdf"));
}

/// Many public forms are protected in this way: every reader opens them.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_needs_no_password_becomes_an_appendix() {
    let app = TestApp::start().await;
    let fields = [field("Licence", "attachment", 0, json!({}))];
    let (id, url) = sent(&app, &fields).await;
    let locked = pdf::encrypted(CONTRACT);
    assert_eq!(
        upload(&app, &url, 0, "licence.pdf", &locked).await.status,
        200
    );

    let page = form::open(&app, &url).await.text();
    form::press(&app, &url, "finish", &form::filled(&page)).await;
    app.wait_for(&id, "vaulted").await;

    // The contract itself, and the same pages again as the appendix.
    let text = pdf::text(CONTRACT);
    let title = text
        .lines()
        .map(str::trim)
        .find(|line| line.len() > 12)
        .unwrap();

    let words = pdf::text(&app.copy(&id).await);
    assert_eq!(
        words.matches(title).count(),
        2 * text.matches(title).count(),
        "{words}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_seen_by_later_signers_and_by_nobody_else() {
    let app = TestApp::start().await;
    let mut seller = field(
        "Seller signature",
        "signature",
        8,
        json!({ "required": true }),
    );
    seller["role"] = "Seller".into();

    let fields = json!([
        field("Licence", "attachment", 0, json!({})),
        signature(),
        seller
    ]);
    let link = sent_to_two(&app, &fields, false).await;
    let licence = pdf::with_lines(&["Driving licence 4711"]);

    form::open(&app, &link[0]).await;
    form::open(&app, &link[1]).await;
    upload(&app, &link[0], 0, "licence.pdf", &licence).await;
    let path = format!("/attachments/{}", hex::encode(Sha256::digest(&licence)));
    let of = |index: usize| format!("{}{path}", link[index]);
    assert_eq!(form::open(&app, &of(0)).await.bytes, licence);
    assert_eq!(form::open(&app, &of(1)).await.status, 404, "not signed yet");

    let signed = finish(&app, &link[0], &[]).await;
    assert_eq!(signed.status, 200, "{}", signed.text());
    assert_eq!(form::open(&app, &of(1)).await.bytes, licence);

    let page = form::open(&app, &link[1]).await.text();
    assert!(page.contains("licence.pdf"), "{page}");

    let other = app.sent_envelope().await;
    let stranger = format!("{}{path}", other["sign_url"].as_str().unwrap());
    assert_eq!(form::open(&app, &stranger).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_with_signatures_takes_no_files() {
    let app = TestApp::start().await;
    let (id, _) = paper(&app, CONTRACT).await;
    let sealed = vault_in(&app, &id).await;
    let fields = json!([field("Licence", "attachment", 0, json!({})), signature()]);
    let refused = app.new_template(&sealed, &fields).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    let issue = &refused.json()["details"][0];
    assert_eq!(issue["code"], "appendix_impossible", "{issue}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_signing_provider_takes_no_rules() {
    let docuseal = FakeDocuseal::start().await;
    let app = TestApp::with(|config| docuseal.configure(config), OrgSettings::default()).await;
    let ruled = field("Amount", "number", 0, json!({ "min": 5 }));
    let refused = app
        .new_template(CONTRACT, &json!([signature(), ruled]))
        .await;
    let issue = &refused.json()["details"][0];
    assert_eq!(refused.status, 422, "{issue}");
    assert_eq!(issue["code"], "unsupported_by_provider", "{issue}");
    assert_eq!(issue["path"], json!(["fields", 1]));
    assert_eq!(docuseal.templates(), 0);

    let document = pdf::with_lines(&[
        "{{Amount;type=number;role=Buyer;min=10}}",
        "{{Signature;type=signature;role=Buyer}}",
    ]);
    let texts = [("name", "Contract")];
    let created = app
        .upload("/partner/templates", "application/pdf", &document, &texts)
        .await
        .json();
    assert_eq!(created["data"]["fields"][0].get("min"), None, "{created}");

    let warning = &created["warnings"][0];
    assert_eq!(warning["code"], "tag_attribute_without_effect", "{created}");
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_of_a_signer_are_rate_limited() {
    let app = TestApp::with(
        |config| config.rate_limits.copies = 1,
        OrgSettings::default(),
    )
    .await;
    let (_, url) = sent(&app, &[field("Licence", "attachment", 0, json!({}))]).await;
    let page = pdf::with_lines(&["Licence"]);
    assert_eq!(upload(&app, &url, 0, "a.pdf", &page).await.status, 200);

    let refused = upload(&app, &url, 0, "b.pdf", &page).await;
    assert_eq!(refused.status, 429);
}

/// A required result that cannot be computed, and one of two optional signatures that a condition
/// shows, leave nothing open.
#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_with_rules_is_completed_by_what_the_form_accepts() {
    let app = TestApp::start().await;
    let fields = json!([
        field("A", "number", 0, json!({})),
        field(
            "Ratio",
            "number",
            1,
            json!({ "required": true, "formula": "1 / [A]" })
        ),
        field("Spouse signs", "checkbox", 2, json!({})),
        field("First", "signature", 3, json!({})),
        field(
            "Second",
            "signature",
            4,
            json!({ "condition": "Spouse signs" })
        ),
    ]);

    let template = app.template(CONTRACT, &fields).await;
    let body = envelope_body(&template["template_id"]);
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let url = envelope["sign_url"].as_str().unwrap();
    let values = [
        ("A", "0"),
        ("Spouse signs", "true"),
        ("Second", "Jordan Lee"),
    ];
    let signed = finish(&app, url, &values).await;
    assert_eq!(signed.status, 200, "{}", signed.text());

    app.wait_for(envelope["envelope_id"].as_str().unwrap(), "vaulted")
        .await;
}

/// Without scripts, the form saves the entries before the signer chooses the file on a separate page.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_attached_without_scripts_and_without_losing_entries() {
    let app = TestApp::start().await;
    let fields = [
        field("Town", "text", 0, json!({ "max_length": "9" })),
        field("Licence", "attachment", 1, json!({})),
    ];
    let (_, url) = sent(&app, &fields).await;

    // An entry that cannot be saved is not lost: the form shows it with its problem.
    let wrong = [("Town".to_owned(), "Marfa in Texas".to_owned())];
    let answer = form::press(&app, &url, "attach:Licence", &wrong).await;
    assert_ne!(answer.status, 303);
    assert!(
        answer.text().contains("Marfa in Texas"),
        "{}",
        answer.text()
    );

    let entered = [("Town".to_owned(), "Marfa".to_owned())];
    let answer = form::press(&app, &url, "attach:Licence", &entered).await;
    assert_eq!(answer.status, 303, "{}", answer.text());

    let page = answer.headers["location"].to_str().unwrap();
    assert!(page.ends_with("/attachments/1"), "{page}");

    let choice = form::open(&app, &format!("{url}/attachments/1")).await;
    let text = choice.text();
    for shown in ["Licence", "type=\"file\"", "multipart/form-data"] {
        assert!(text.contains(shown), "{shown}: {text}");
    }

    let licence = pdf::with_lines(&["Driving licence 4711"]);
    let answer = upload(&app, &url, 1, "licence.pdf", &licence).await;
    assert_eq!(answer.status, 200, "{}", answer.text());

    let page = form::open(&app, &url).await.text();
    assert!(
        page.contains("Marfa") && page.contains("licence.pdf"),
        "{page}"
    );

    for wrong in ["0", "9", "nothing"] {
        let unknown = form::open(&app, &format!("{url}/attachments/{wrong}")).await;
        assert_eq!(unknown.status, 404, "{wrong}");
    }
}
