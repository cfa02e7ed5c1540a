//! Entries that do not fit their fields, or that no typeface can write: refused while the person is there.

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use crate::support::{CONTRACT, TestApp, TestResponse, buyer_and_seller, envelope_body, form, pdf};

/// Ten lines, for a field with room for one.
fn terms() -> String {
    (1..=10)
        .map(|line| format!("Line {line} of terms that were never foreseen when the form was made"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn fields(remark: &Value) -> Value {
    let place = |y: f64| json!({ "mode": "absolute", "areas": [{ "page": 1, "x": 0.3, "y": y, "w": 0.3, "h": 0.02 }] });
    let mut text =
        json!({ "name": "Remark", "type": "text", "role": "Buyer", "placement": place(0.5) });
    for (member, value) in remark.as_object().unwrap() {
        text[member] = value.clone();
    }

    json!([
        text,
        { "name": "Signature", "type": "signature", "role": "Buyer", "required": true, "placement": place(0.6) },
    ])
}

async fn sent(app: &TestApp, remark: &Value) -> (String, String) {
    let template = app.template(CONTRACT, &fields(remark)).await;
    let body = envelope_body(&template["template_id"]);
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let text = |name: &str| envelope[name].as_str().unwrap().to_owned();
    let (id, url) = (text("envelope_id"), text("sign_url"));
    form::open(app, &url).await;
    (id, url)
}

async fn finish(app: &TestApp, url: &str, values: &[(&str, &str)]) -> TestResponse {
    let consent = [("consent", form::TICK)];
    let values = values.iter().chain(&consent);
    let values: Vec<(String, String)> = values
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    form::press(app, url, "finish", &values).await
}

/// Returns the first detail of a 422 response.
#[track_caller]
fn issue(refused: TestResponse) -> Value {
    assert_eq!(refused.status, 422, "{}", refused.text());
    refused.json()["details"][0].take()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_without_room_is_refused_when_it_is_saved_and_when_the_signer_finishes() {
    let app = TestApp::start().await;
    let (id, url) = sent(&app, &json!({})).await;
    let saved = form::save(&app, &url, &[("Remark", &terms())]).await;
    let why = saved["problems"]["Remark"].as_str().unwrap().to_owned();
    assert!(why.starts_with("There is room for about "), "{why}");

    let all = [("Remark", terms()), ("Signature", "Jordan Lee".into())];
    let all: Vec<(&str, &str)> = all
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let refused = finish(&app, &url, &all).await;
    assert_eq!(refused.status, 422);
    assert!(refused.text().contains(&why), "{}", refused.text());

    let short = [("Remark", "as seen"), ("Signature", "Jordan Lee")];
    assert_eq!(finish(&app, &url, &short).await.status, 200);

    app.wait_for(&id, "vaulted").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_without_room_and_a_letter_without_a_typeface_ask_for_a_drawing() {
    let app = TestApp::start().await;
    let (_, url) = sent(&app, &json!({})).await;
    let long = "Maximiliana Featherstonehaugh ".repeat(6);
    for (name, why) in [
        (
            long.as_str(),
            "Your name does not fit here: please draw your signature",
        ),
        (
            "\u{12000}\u{12001}",
            "This form has no letters for \u{12000}\u{12001}: please draw your signature",
        ),
    ] {
        let saved = form::save(&app, &url, &[("Signature", name)]).await;
        assert_eq!(saved["problems"]["Signature"], why);
    }

    let saved = form::save(&app, &url, &[("Remark", "\u{12000}")]).await;
    let why = saved["problems"]["Remark"].as_str().unwrap();
    assert!(why.ends_with("please write it differently"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_in_other_scripts_stand_in_the_document() {
    let app = TestApp::start().await;
    for name in ["김민준", "क्षितिज शर्मा", "𠮷野 さくら", "אברהם כהן"]
    {
        let (id, url) = sent(&app, &json!({})).await;
        let signed = finish(&app, &url, &[("Remark", "☑ 👍"), ("Signature", name)]).await;
        assert_eq!(signed.status, 200, "{}", signed.text());
        app.wait_for(&id, "vaulted").await;
        let text = pdf::text(&app.copy(&id).await);
        assert!(!text.contains('\u{FFFD}'), "{name}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_shows_an_entry_as_the_document_will_have_it() {
    let app = TestApp::start().await;
    let (_, url) = sent(&app, &json!({})).await;
    let ask = async |field: &str, value: &str| {
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs([("field", field), ("value", value), ("style", "formal")])
            .finish();
        let request = Request::post(form::path(&format!("{url}/look")))
            .header("content-type", "application/x-www-form-urlencoded")
            .header("accept", "application/json")
            .body(Body::from(body))
            .unwrap();

        app.send(request).await
    };

    let picture = ask("1", "Jordan Quillfeather").await;
    assert_eq!(picture.status, 200, "{}", picture.text());
    assert_eq!(picture.headers["content-type"], "image/png");
    assert!(picture.bytes.starts_with(b"\x89PNG"));

    let refused = ask("0", &terms()).await;
    assert_eq!(refused.status, 422);

    let why = refused.json()["problem"].as_str().unwrap().to_owned();
    assert!(why.starts_with("There is room for about "), "{why}");
    assert_eq!(ask("7", "no such field").await.status, 404);

    // Nothing of it was saved.
    let page = form::open(&app, &url).await.text();
    assert!(!page.contains("Quillfeather"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_text_goes_on_at_the_end_where_the_template_says_so() {
    let app = TestApp::start().await;
    let mut all = fields(&json!({ "overflow": "page" }));
    all.as_array_mut().unwrap().push(json!({
        "name": "Second", "type": "signature", "role": "Seller", "required": true,
        "placement": { "mode": "absolute", "areas": [{ "page": 1, "x": 0.3, "y": 0.7, "w": 0.3, "h": 0.04 }] },
    }));
    let template = app.template(CONTRACT, &all).await;
    let mut body = envelope_body(&template["template_id"]);
    body["signers"] = buyer_and_seller();

    body["preserve_signing_order"] = true.into();
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let id = envelope["envelope_id"].as_str().unwrap().to_owned();
    let links = app
        .get(&format!("/partner/envelopes/{id}/signing-links"))
        .await
        .data(200);
    let link = |index: usize| {
        links["signers"][index]["embed_url"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let (first, second) = (link(0), link(1));
    let before = form::open(&app, &first)
        .await
        .text()
        .matches("<figure")
        .count();

    let terms = terms();
    let signed = finish(
        &app,
        &first,
        &[("Remark", &terms), ("Signature", "Ann Buyer")],
    )
    .await;
    assert_eq!(signed.status, 200, "{}", signed.text());

    // The next signer sees the added page.
    let page = form::open(&app, &second).await.text();
    assert_eq!(page.matches("<figure").count(), before + 1);

    let added = form::open(&app, &format!("{second}/pages/{}.txt", before + 1)).await;
    assert!(
        added.text().contains("Line 10 of terms"),
        "{}",
        added.text()
    );

    form::sign(&app, &second).await;
    app.wait_for(&id, "vaulted").await;
    let text = pdf::text(&app.copy(&id).await);
    for line in 1..=10 {
        assert!(text.contains(&format!("Line {line} of terms")), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_with_a_tall_place_keeps_its_lines() {
    let app = TestApp::start().await;
    let flat = sent(&app, &json!({})).await.1;
    let page = form::fetch(&app, &flat).await.text();
    assert!(
        !page.contains("name=\"Remark\" dir=\"auto\" rows"),
        "{page}"
    );

    let area = json!({ "page": 1, "x": 0.3, "y": 0.3, "w": 0.4, "h": 0.1 });
    let tall = json!({ "placement": { "mode": "absolute", "areas": [area] } });
    let (id, url) = sent(&app, &tall).await;
    let page = form::fetch(&app, &url).await.text();
    assert!(page.contains("name=\"Remark\" dir=\"auto\" rows"), "{page}");

    // As a browser without the script sends it.
    let remark = [("Remark".to_owned(), "North gate\r\nRing twice".to_owned())];
    let saved = form::press(&app, &url, "save", &remark).await;
    assert_eq!(saved.status, 303, "{}", saved.text());
    let page = form::fetch(&app, &url).await.text();
    assert!(
        page.contains("\nNorth gate\nRing twice</textarea>"),
        "{page}"
    );

    let values = [
        ("Signature".to_owned(), "Jordan Lee".to_owned()),
        ("consent".to_owned(), form::TICK.to_owned()),
    ];
    let signed = form::press(&app, &url, "finish", &values).await;
    assert_eq!(signed.status, 200, "{}", signed.text());
    app.wait_for(&id, "vaulted").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefilled_value_and_a_default_without_room_are_refused_at_once() {
    let app = TestApp::start().await;
    let template = app.template(CONTRACT, &fields(&json!({}))).await;
    let mut body = envelope_body(&template["template_id"]);
    body["prefilled_data"] = json!({ "Remark": terms() });
    let refused = app.post("/partner/envelopes", body.clone()).await;
    let found = issue(refused);
    assert_eq!(found["path"], json!(["prefilled_data", "Remark"]));
    assert_eq!(found["code"], "too_big");

    body["prefilled_data"] = json!({ "Remark": "\u{12000}" });
    let refused = app.post("/partner/envelopes", body).await;
    assert_eq!(issue(refused)["code"], "invalid_value");

    let with_default = fields(&json!({ "default_value": terms() }));
    let refused = app.new_template(CONTRACT, &with_default).await;
    let found = issue(refused);
    assert_eq!(found["path"], json!(["fields", 0, "default_value"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn overflow_is_a_rule_of_texts_with_one_value() {
    let app = TestApp::start().await;
    for (remark, code) in [
        (json!({ "overflow": "shrink" }), "invalid_type"),
        (
            json!({ "type": "date", "overflow": "page" }),
            "unsupported_rule",
        ),
    ] {
        let refused = app.new_template(CONTRACT, &fields(&remark)).await;
        assert_eq!(issue(refused)["code"], code, "{remark}");
    }
}
