//! Nothing of ours is left in English on the other pages, files and messages. The organization's
//! language has accents on every letter: other letters are not translated.

use axum::body::Body;
use axum::http::Request;
use holdfast::domain::organization::{OrgSettings, PaymentSettings};
use scraper::{Html, Selector};
use serde_json::json;

use super::embed::submit;
use super::languages::{accented, assert_translated, plain_words};
use crate::evidence::vaulted_upload;
use crate::sealing::existing::sealed_elsewhere;
use crate::support::processor::PaymentProcessor;
use crate::support::{CONTRACT, TestApp, envelope_body, form, pdf, release_form};

/// Words that belong to the people and documents of these tests.
const DATA: [&str; 8] = [
    "Retail instalment contract",
    "Maple Street Motors",
    "Jordan Lee",
    "Buyer",
    "UTC",
    "holdfast",
    "vault@maple.example",
    "Crescent Auto Finance, LLC",
];

/// Names in a custody record; one that is broken at the end of a line counts by its parts.
const NAMES: [&str; 16] = [
    "PAdES-B",
    "holdfast-compliance",
    "vault.released",
    "ucc-compliance-certificate.json",
    "SHA-256",
    "http",
    "API",
    "UCC",
    "jordan.lee@example.com",
    "vault@maple.example",
    "jordan",
    "lee",
    "example",
    "com",
    "maple",
    "vault",
];

/// Returns the text of the elements, which is data.
fn texts_of(page: &str, selector: &str) -> Vec<String> {
    let page = Html::parse_document(page);
    let selector = Selector::parse(selector).unwrap();
    let texts = page.select(&selector);
    texts.map(|one| one.text().collect::<String>()).collect()
}

fn with_data(more: &[String]) -> Vec<&str> {
    let more = more.iter().map(|text| text.trim());
    DATA.into_iter()
        .chain(more.filter(|text| !text.is_empty()))
        .collect()
}

/// Returns requirements, references and findings, which are the words of the component that ran the
/// checks.
async fn words_of_the_rules(app: &TestApp, id: &str) -> Vec<String> {
    let path = format!("/partner/envelopes/{id}/compliance");
    let evaluation = app.get(&path).await.data(200);
    let checks = evaluation["compliance"]["checks"]
        .as_array()
        .unwrap()
        .iter();
    let members = ["requirement", "ucc_reference", "detail"];
    let words = checks.flat_map(|check| members.map(|member| check[member].as_str()));

    words.flatten().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_text_of_the_widgets_is_left_in_english() {
    let app = TestApp::with(|_| {}, accented()).await;
    let id = app.vaulted_envelope().await;
    let request = json!({
        "envelope_id": id, "user_email": "jordan.lee@example.com", "widget_type": "vault",
    });
    let issued = app.post("/embed/token", request).await.data(200);
    let token = issued["token"].as_str().unwrap();
    let page = submit(&app, "/embed/vault", token).await.text();

    let mut data = words_of_the_rules(&app, &id).await;
    data.extend(texts_of(&page, "code"));
    data.push("First Example Bank".into());
    data.push(id.clone());
    assert_translated("vault widget", &page, &with_data(&data));

    let later = app.as_of(std::time::Duration::from_secs(3600)).await;
    let expired = submit(&later, "/embed/vault", token).await;
    assert_eq!(expired.status, 401);

    assert_translated("expired widget", &expired.text(), &DATA);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_text_of_the_field_builder_is_left_in_english() {
    let app = TestApp::with(|_| {}, accented()).await;
    let template = app.contract_template().await;
    let id = template["template_id"].as_str().unwrap();
    let token = app.template_session(id).await;
    let page = submit(&app, "/builder", &token).await;
    assert_eq!(page.status, 200, "{}", page.text());

    let page = page.text();

    // Words of the syntax of rules.
    let syntax = ["[Þŕîçé]", "Field", "value", "today", &token];
    let name = texts_of(&page, "h1");
    let data = [&with_data(&name)[..], &syntax].concat();
    assert_translated("field builder", &page, &data);

    // Texts of its script.
    for text in texts_of(&page, "#texts") {
        let texts: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&text).unwrap();
        assert!(texts.len() > 12, "{text}");

        for text in texts.values().map(|text| text.as_str().unwrap()) {
            let variables = ["number", "count", "kind", "name", "role", "page"];
            let wrong = plain_words(text, &variables);
            assert!(wrong.is_empty(), "{text}: {wrong:?}");
        }
    }

    let shown = app.builder(&token, "GET", "/builder/template", None).await;
    let shown = shown.data(200);
    let fields: Vec<String> = shown["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|field| field["name"].as_str().unwrap().to_owned())
        .collect();

    let body = json!({ "fields": shown["fields"], "role": "Buyer" });
    let preview = app
        .builder(&token, "POST", "/builder/preview", Some(body))
        .await;
    assert_eq!(preview.status, 200, "{}", preview.text());

    let data = [&with_data(&name)[..], &with_data(&fields)[..]].concat();
    assert_translated("preview", &preview.text(), &data);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_text_of_the_payment_pages_is_left_in_english() {
    let payment = PaymentSettings {
        amount_cents: 4900,
        currency: "USD".into(),
        connected_account: None,
        platform_fee_cents: None,
        payer: "first".into(),
    };
    let settings = || OrgSettings {
        payment: Some(payment.clone()),
        ..accented()
    };

    let data = [&DATA[..], &["USD"]].concat();
    let app = TestApp::with(|_| {}, settings()).await;
    let envelope = app.sent_envelope().await;
    let url = envelope["sign_url"].as_str().unwrap();
    let away = form::open(&app, &format!("{url}/pay")).await;
    let sandbox = away.headers["location"].to_str().unwrap().to_owned();
    let sandbox = &sandbox[sandbox.find("/sandbox/").unwrap()..];
    let open = async |method: &str| {
        let request = Request::builder().method(method).uri(sandbox);
        app.send(request.body(Body::empty()).unwrap()).await.text()
    };
    assert_translated("sandbox", &open("GET").await, &data);

    assert_translated("paid in the sandbox", &open("POST").await, &data);

    let processor = PaymentProcessor::start();
    let app = TestApp::with(
        |config| {
            processor.configure(config);
            let instance = config.providers.payment.instances.get_mut("main").unwrap();
            let library = "https://js.example.com/v3/".to_owned();
            instance.settings.insert("script".into(), library);
        },
        settings(),
    )
    .await;

    let envelope = app.sent_envelope().await;
    let url = envelope["sign_url"].as_str().unwrap();
    let page = form::open(&app, &format!("{url}/pay")).await.text();
    assert!(page.contains("https://js.example.com/v3/"), "{page}");

    assert_translated("processor's form", &page, &data);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_text_of_text_messages_is_left_in_english() {
    let app = TestApp::with(|_| {}, accented()).await;
    let template = app.contract_template().await;
    let mut body = envelope_body(&template["template_id"]);
    body["signers"] = json!([{
        "email": "jordan.lee@example.com", "name": "Jordan Lee", "role": "Buyer",
        "phone": "+15125550142", "notify_by": "sms", "access": "sms_code",
    }]);

    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let id = envelope["envelope_id"].as_str().unwrap();
    let url = envelope["sign_url"].as_str().unwrap();
    app.wait_for_texts(1).await;
    app.post(&format!("/partner/envelopes/{id}/remind"), json!({}))
        .await
        .data(200);

    app.wait_for_texts(2).await;
    form::press(&app, url, "send-code", &[]).await;
    for message in app.wait_for_texts(3).await {
        // The head of the file names the receiver; the last line is for phones.
        let (_, text) = message.split_once("\n\n").unwrap_or(("", &message));
        let lines = text.lines().filter(|line| !line.starts_with('@'));
        let words = lines.flat_map(str::split_whitespace);
        let words: Vec<&str> = words.filter(|word| !word.contains("://")).collect();
        let wrong = plain_words(&words.join(" "), &DATA);
        assert!(wrong.is_empty(), "{wrong:?}: {message}");
    }
}

/// Returns the words of an envelope's custody record that are data, one by one.
async fn data_of_the_record(app: &TestApp, id: &str) -> Vec<String> {
    let rules = words_of_the_rules(app, id).await;
    let rules = rules.iter().flat_map(|text| text.split_whitespace());
    let mut data: Vec<String> = rules.chain(NAMES).map(str::to_owned).collect();
    let custody = app.custody(id).await;
    let entries = custody["entries"].as_array().unwrap().iter();
    let names = entries.flat_map(|entry| [&entry["action"], &entry["actor"]]);
    data.extend(names.map(|name| name.as_str().unwrap().to_owned()));
    data
}

/// Returns the English words of a custody record other than names and these words of data.
fn english_in(text: &str, data: &[String]) -> Vec<String> {
    let marks = [',', '.', '(', ')', ':', ';'];
    let known = |word: &&str| {
        let word = word.trim_matches(marks);
        let is_name =
            word.contains(['_', '@', '/', '=']) || word.contains(|one: char| one.is_ascii_digit());

        // An id may be broken at the end of a line; its second part may have letters only.
        let is_part = |known: &String| known.contains('_') && known.ends_with(word);
        let is_data = |known: &String| known.trim_matches(marks) == word || is_part(known);
        !is_name && !data.iter().any(is_data)
    };

    let words: Vec<&str> = text.split_whitespace().filter(known).collect();
    let wrong = plain_words(&words.join(" "), &DATA).into_iter();
    wrong.filter(|word| word.len() > 2).collect()
}

/// The record's own words: what a component found, and what names things, stays as it is.
#[tokio::test(flavor = "multi_thread")]
async fn no_word_of_the_custody_record_and_the_marks_is_left_in_english() {
    let app = TestApp::with(|_| {}, accented()).await;
    let id = app.vaulted_envelope().await;
    let copy = pdf::text(&app.copy(&id).await);

    // Every reader gets the English words of a mark.
    assert!(
        copy.contains("Non-authoritative copy · Ñöñ-áûţĥöŕîţáţîṽé çöþý · env_"),
        "{copy}"
    );

    let path = format!("/partner/envelopes/{id}/custody-record");
    let mut data = data_of_the_record(&app, &id).await;

    // Names may be broken at the end of a line.
    data.extend(
        DATA.iter()
            .flat_map(|name| name.split_whitespace())
            .map(str::to_owned),
    );
    let release = format!("/partner/envelopes/{id}/vault-out");

    let before = app.get(&path).await.bytes;
    app.post(&release, release_form()).await.data(200);
    let rules = words_of_the_rules(&app, &id).await;
    let rules = rules.iter().flat_map(|text| text.split_whitespace());
    data.extend(rules.map(str::to_owned));
    let form = release_form();
    let given = form
        .as_object()
        .unwrap()
        .values()
        .filter_map(|value| value.as_str());
    data.extend(given.flat_map(str::split_whitespace).map(str::to_owned));

    for (what, record) in [
        ("record", before),
        ("final record", app.get(&path).await.bytes),
    ] {
        let text = pdf::text(&record);
        assert!(text.contains("Çûšţöðý ŕéçöŕð"), "{what}: {text}");
        assert!(text.contains("Çĥáîñ öƒ çûšţöðý"), "{what}: {text}");
        let wrong = english_in(&text, &data);
        assert!(wrong.is_empty(), "{what}: {wrong:?}\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_word_about_an_upload_in_the_custody_record_is_left_in_english() {
    let signed = sealed_elsewhere(&TestApp::start().await).await;
    let mut altered = signed.clone();
    let reason = altered.windows(7).position(|bytes| bytes == b"/Reason");
    altered[reason.unwrap() + 10] ^= 1;
    let end = CONTRACT.windows(9).rposition(|bytes| bytes == b"startxref");
    let mut damaged = CONTRACT[..end.unwrap()].to_vec();
    damaged.extend_from_slice(b"startxref\n99999999\n%%EOF\n");

    let picture = include_bytes!("../../../fixtures/scan.png");

    let app = TestApp::with(|_| {}, accented()).await;
    for (words, file) in [
        ("ṽáļîð šîĝñáţûŕé ·", &signed[..]),
        ("ñöţ ṽáļîð ƒöŕ ţĥîš ðöçûɱéñţ", &altered),
        ("îš á þîçţûŕé (image/png); ŠĤÁ-256", picture),
        ("ŕéþáîŕéð; ŠĤÁ-256", &damaged),
    ] {
        let kind = if file.starts_with(b"%PDF") {
            "application/pdf"
        } else {
            "image/png"
        };
        let (id, _) = vaulted_upload(&app, kind, file).await;
        let path = format!("/partner/envelopes/{id}/custody-record");
        let text = pdf::text(&app.get(&path).await.bytes);
        let line: Vec<&str> = text.split_whitespace().collect();
        assert!(line.join(" ").contains(words), "{words}: {text}");

        let wrong = english_in(&text, &data_of_the_record(&app, &id).await);
        assert!(wrong.is_empty(), "{words}: {wrong:?}\n{text}");
    }
}
