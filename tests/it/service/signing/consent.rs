//! Consent to electronic records (15 U.S.C. §7001(c)): the disclosure, valid and refused consents, the
//! demonstration of access, and the evidence of both.

use std::io::{Cursor, Read as _};

use axum::body::Body;
use axum::http::{Method, Request};
use holdfast::domain::organization::OrgSettings;
use scraper::{Html, Selector};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::support::browser::{EmulatedScreen, TestBrowser};
use crate::support::docuseal::FakeDocuseal;
use crate::support::{TestApp, TestResponse, envelope_body, form, pdf, release_form};

/// Sends the contract to one buyer. Returns the envelope's id and the signing link.
async fn sent(app: &TestApp) -> (String, String) {
    let envelope = app.sent_envelope().await;
    let text = |name: &str| envelope[name].as_str().unwrap().to_owned();
    (text("envelope_id"), text("sign_url"))
}

async fn change(app: &TestApp, settings: Value) -> Value {
    let changed = app.web(Method::PATCH, "/organization", settings).await;
    changed.data(200)
}

fn selected(page: &str, css: &str) -> Vec<String> {
    let page = Html::parse_document(page);
    let selector = Selector::parse(css).unwrap();
    let elements = page.select(&selector);
    elements.map(|one| one.text().collect()).collect()
}

/// Finishes with this value of the consent, and valid values of everything else.
async fn finish(app: &TestApp, url: &str, consent: &str) -> TestResponse {
    let values = [
        ("Buyer signature", "Jordan Lee"),
        ("Signed on", "2026-11-21"),
        ("consent", consent),
    ];
    let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
    form::press(app, url, "finish", &values).await
}

async fn tick(app: &TestApp, url: &str) -> String {
    form::tick_of(&form::open(app, url).await.text()).unwrap()
}

async fn certificate(app: &TestApp, id: &str) -> Value {
    app.wait_for(id, "vaulted").await;
    let path = format!("/partner/envelopes/{id}/vault/certificate");
    app.get(&path).await.data(200)
}

async fn is_signed(app: &TestApp, id: &str) -> bool {
    let path = format!("/partner/envelopes/{id}/status");
    let status = app.get(&path).await.data(200)["status"].clone();
    status == "completed" || status == "vaulted"
}

#[tokio::test(flavor = "multi_thread")]
async fn the_disclosure_stands_open_above_the_document() {
    let app = TestApp::start().await;
    let (_, url) = sent(&app).await;
    let page = form::open(&app, &url).await.text();
    let disclosure = page.find("class=\"disclosure\"").unwrap();
    assert!(disclosure < page.find("class=\"document\"").unwrap());

    let folded = selected(&page, "details .disclosure");
    assert!(folded.is_empty(), "open text, not behind a fold");

    let title = "Please read first: electronic records and signatures";
    assert!(page.contains(title), "{page}");

    let text = selected(&page, ".disclosure").concat();
    for said in [
        "Maple Street Motors asks you to receive this document and to sign it in electronic form.",
        "The time, your internet address and your browser's name are kept with your signature, and so are the times",
        "on paper instead",
        "withdraw this consent",
        "no other transaction",
        "change the e-mail address",
        "a copy on paper",
        "a program that shows PDF files",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }

    let statement = selected(&page, ".consent label").concat();
    for said in [
        "I have read the text about electronic records, and I agree to receive this document and to sign it in \
         electronic form.",
        "What I enter as my signature is meant to be my signature.",
        "I could open and read the document in this form.",
    ] {
        assert!(statement.contains(said), "{said}: {statement}");
    }

    assert!(!statement.contains("approve"), "{statement}");
    assert!(!statement.contains("same effect"), "{statement}");
}

#[tokio::test(flavor = "multi_thread")]
async fn yes_is_no_consent_to_a_text() {
    let app = TestApp::start().await;
    let (id, url) = sent(&app).await;
    form::open(&app, &url).await;
    let refused = finish(&app, &url, "yes").await;
    assert_eq!(refused.status, 422);

    let page = refused.text();
    assert!(page.contains("This tick was not for the text"), "{page}");
    assert!(
        page.contains("value=\"Jordan Lee\""),
        "nothing else is lost"
    );
    assert!(selected(&page, "#consent[checked]").is_empty());
    assert!(!is_signed(&app, &id).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tick_from_before_a_change_of_the_text_is_refused() {
    let app = TestApp::start().await;
    let (id, url) = sent(&app).await;
    let before = tick(&app, &url).await;
    let fee = json!({ "paper_fee": { "amount_cents": 500, "currency": "USD" } });
    change(&app, json!({ "consumer_disclosure": fee })).await;
    let refused = finish(&app, &url, &before).await;
    assert_eq!(refused.status, 422);

    // The page shows the present text, and its new value counts.
    let page = refused.text();
    assert!(page.contains("The copy on paper costs USD 5.00."), "{page}");

    let now = form::tick_of(&page).unwrap();
    assert_ne!(now, before);
    assert_eq!(finish(&app, &url, &now).await.status, 200);

    let completed = app.entry(&id, "signer.completed").await;
    assert_eq!(completed["consent_sha256"], now);
}

/// A digest that another signer was shown proves nothing about this one.
#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_a_signer_was_never_shown_is_not_agreed_to() {
    let app = TestApp::start().await;
    let (_, first) = sent(&app).await;
    let shown = tick(&app, &first).await;
    let (id, second) = sent(&app).await;
    assert_eq!(finish(&app, &second, &shown).await.status, 422);
    assert!(!is_signed(&app, &id).await);
    // The refusal itself showed the text.
    assert_eq!(finish(&app, &second, &shown).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_a_prefetch_nor_a_head_request_shows_anything() {
    let app = TestApp::start().await;
    let (_, shown) = sent(&app).await;
    let digest = tick(&app, &shown).await;
    let (_, url) = sent(&app).await;
    let path = &url[url.find("/sign/").unwrap()..];
    let ahead = [
        Request::head(path),
        Request::get(path).header("sec-purpose", "prefetch;prerender"),
        Request::get(path).header("purpose", "prefetch"),
        Request::get(path).header("x-moz", "prefetch"),
    ];
    for request in ahead {
        app.send(request.body(Body::empty()).unwrap()).await;
    }
    assert_eq!(finish(&app, &url, &digest).await.status, 422);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_says_what_was_shown_and_when() {
    let app = TestApp::start().await;
    let (id, url) = sent(&app).await;
    let digest = tick(&app, &url).await;
    finish(&app, &url, &digest).await;
    let completed = app.entry(&id, "signer.completed").await;
    assert_eq!(completed["consent_sha256"], digest);
    assert_eq!(completed["consent_locale"], "en");

    let [shown, consented] = ["consent_shown_at", "consented_at"]
        .map(|name| completed[name].as_str().unwrap().to_owned());
    assert!(shown <= consented, "{completed}");
    assert_eq!(completed["consumer"], Value::Null, "nothing was stated");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_demonstrated_by_a_program_that_fetched_no_page() {
    let app = TestApp::start().await;
    let (id, url) = sent(&app).await;
    let digest = tick(&app, &url).await;
    finish(&app, &url, &digest).await;
    let completed = app.entry(&id, "signer.completed").await;
    assert_eq!(completed["consent_demonstrated"], Value::Null);
    let consent = &certificate(&app, &id).await["consumer_consent"][0];
    assert_eq!(consent["demonstrated"], Value::Null, "{consent}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_demonstrated_is_what_the_page_delivered() {
    let app = TestApp::start().await;
    let (id, url) = sent(&app).await;
    let digest = tick(&app, &url).await;
    for page in ["1.png", "1.png?w=900", "1.txt", "99.png"] {
        form::open(&app, &format!("{url}/pages/{page}")).await;
    }
    assert_eq!(
        form::open(&app, &format!("{url}/document.pdf"))
            .await
            .status,
        200
    );

    finish(&app, &url, &digest).await;
    let consent = &certificate(&app, &id).await["consumer_consent"][0];
    let demonstrated = &consent["demonstrated"];
    assert_eq!(demonstrated["pages_delivered"], json!([1]), "{consent}");
    assert_eq!(demonstrated["page_count"], 4, "{consent}");
    assert_eq!(demonstrated["signer_confirmed"], true);

    let times = ["first_page_at", "pdf_delivered_at"].map(|name| demonstrated[name].as_str());
    let consented = consent["consented_at"].as_str();
    assert!(
        times.iter().all(|at| at.is_some() && *at <= consented),
        "{consent}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_organization_can_require_that_the_pdf_was_opened() {
    let settings = OrgSettings {
        require_access_demonstration: true,
        ..OrgSettings::default()
    };
    let app = TestApp::with(|_| {}, settings).await;
    let (id, url) = sent(&app).await;
    let digest = tick(&app, &url).await;
    let refused = finish(&app, &url, &digest).await;
    assert_eq!(refused.status, 422);

    let page = refused.text();
    let why = selected(&page, "#consent-problem").concat();
    assert!(why.contains("Open the document as PDF first"), "{page}");
    assert!(!selected(&page, ".consent a[href$='/document.pdf']").is_empty());

    // The tick was for the present text, so it stays.
    assert_eq!(page.matches("id=\"consent\"").count(), 1);
    assert!(!is_signed(&app, &id).await);

    form::open(&app, &format!("{url}/document.pdf")).await;
    assert_eq!(finish(&app, &url, &digest).await.status, 200);
}

/// Sends a document of so many pages to one signer, who signs on the last one.
async fn of_pages(app: &TestApp, count: usize) -> (String, String) {
    let (text, sign) = (
        ["A page of terms"],
        ["{{Sign;type=signature;role=Buyer;required=true}}"],
    );
    let mut pages: Vec<&[&str]> = vec![&text[..]; count - 1];
    pages.push(&sign);
    let document = pdf::with_pages(&pages, 0);
    let texts = [("name", "Pages")];
    let template = app
        .upload("/partner/templates", "application/pdf", &document, &texts)
        .await
        .data(200);
    let body = envelope_body(&template["template_id"]);
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let text = |name: &str| envelope[name].as_str().unwrap().to_owned();
    (text("envelope_id"), text("sign_url"))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_organization_can_require_that_every_page_was_shown() {
    let settings = OrgSettings {
        require_all_pages_shown: true,
        ..OrgSettings::default()
    };
    let app = TestApp::with(|_| {}, settings).await;
    let unshown = |answer: &TestResponse, page: u32| {
        let text = answer.text();
        assert_eq!(answer.status, 422, "{text}");
        let why = format!("page {page} was not shown yet");
        let link = format!("href=\"#page-{page}\"");
        assert!(text.contains(&why) && text.contains(&link), "{text}");
    };

    // Without the script, the delivered pages count.
    let (id, url) = of_pages(&app, 2).await;
    let values = form::filled(&form::open(&app, &url).await.text());
    unshown(&form::press(&app, &url, "finish", &values).await, 1);
    form::fetch(&app, &format!("{url}/pages/1.png")).await;
    unshown(&form::press(&app, &url, "finish", &values).await, 2);
    form::fetch(&app, &format!("{url}/pages/2.png")).await;
    let signed = form::press(&app, &url, "finish", &values).await;
    assert_eq!(signed.status, 200, "{}", signed.text());
    let completed = app.wait_for_entry(&id, "signer.completed").await;
    let demonstrated = &completed["consent_demonstrated"];
    assert_eq!(demonstrated["all_pages_displayed_at"], Value::Null);

    // The script reports the displayed ones, and a delivery alone does not count.
    let (id, url) = of_pages(&app, 2).await;
    let mut values = form::filled(&form::open(&app, &url).await.text());
    form::fetch(&app, &format!("{url}/document.pdf")).await;
    let displayed = |pages: &str| ("displayed-pages".to_owned(), pages.to_owned());
    values.push(displayed("0"));
    unshown(&form::press(&app, &url, "finish", &values).await, 1);
    let report = [displayed("0,1,7")];
    let noted = form::press(&app, &url, "displayed", &report).await;
    assert_eq!(noted.status, 204, "{}", noted.text());
    let page = form::open(&app, &url).await.text();
    assert!(page.contains("data-before=\"1\""), "{page}");

    values.pop();
    values.push(displayed("0,2"));
    let signed = form::press(&app, &url, "finish", &values).await;
    assert_eq!(signed.status, 200, "{}", signed.text());
    let completed = app.wait_for_entry(&id, "signer.completed").await;
    let at = &completed["consent_demonstrated"]["all_pages_displayed_at"];
    assert!(at.is_string(), "{completed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_of_three_pages_has_a_list_of_them() {
    let app = TestApp::start().await;
    for (count, expected) in [(2, 0), (3, 3)] {
        let (_, url) = of_pages(&app, count).await;
        let page = form::fetch(&app, &url).await.text();
        let links = selected(&page, ".thumbs a[href^='#page-']");
        assert_eq!(links.len(), expected, "{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_setting_no_page_has_to_be_shown() {
    let app = TestApp::start().await;
    let (_, url) = of_pages(&app, 2).await;
    let page = form::open(&app, &url).await.text();
    assert!(!page.contains("displayed-pages"), "{page}");
    form::sign(&app, &url).await;

    let changed = change(&app, json!({ "require_all_pages_shown": true })).await;
    assert_eq!(changed["require_all_pages_shown"], true);
}

/// Sends a document to two spouses with one mailbox. Returns the envelope's id and a link for each.
async fn spouses(app: &TestApp) -> (String, [String; 2]) {
    let document = pdf::with_lines(&[
        "{{First;type=signature;role=Buyer;required=true}}",
        "{{Second;type=signature;role=Co-buyer;required=true}}",
    ]);
    let texts = [("name", "Two")];
    let template = app
        .upload("/partner/templates", "application/pdf", &document, &texts)
        .await
        .data(200);
    let mut body = envelope_body(&template["template_id"]);
    body["preserve_signing_order"] = false.into();

    body["signers"] = json!([
        { "email": "lee@example.com", "name": "Jordan Lee", "role": "Buyer", "consumer": true },
        { "email": "lee@example.com", "name": "Kim Lee", "role": "Co-buyer", "consumer": false },
    ]);
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let id = envelope["envelope_id"].as_str().unwrap().to_owned();
    let path = format!("/partner/envelopes/{id}/signing-links");
    let links = app.get(&path).await.data(200);
    let link = |index: usize| {
        let url = links["signers"][index]["embed_url"].as_str();
        url.unwrap().to_owned()
    };

    (id, [link(0), link(1)])
}

#[tokio::test(flavor = "multi_thread")]
async fn two_signers_with_one_address_have_a_consent_each() {
    let app = TestApp::start().await;
    let (id, [first, second]) = spouses(&app).await;
    form::sign(&app, &first).await;
    form::open(&app, &format!("{second}/pages/1.png")).await;
    form::sign(&app, &second).await;
    let certificate = certificate(&app, &id).await;
    let consents = certificate["consumer_consent"].as_array().unwrap();
    assert_eq!(consents.len(), 2);

    for (consent, role, consumer, is_demonstrated) in [
        (&consents[0], "Buyer", true, false),
        (&consents[1], "Co-buyer", false, true),
    ] {
        assert_eq!(consent["signer"], "lee@example.com");
        assert_eq!(consent["role"], role);
        assert_eq!(consent["consumer"], consumer);
        assert_eq!(
            consent["demonstrated"].is_object(),
            is_demonstrated,
            "{consent}"
        );
    }

    assert_ne!(consents[0]["consented_at"], consents[1]["consented_at"]);
    let path = format!("/partner/envelopes/{id}/completion-certificate");
    let text = pdf::text(&app.get(&path).await.bytes);
    assert!(text.contains("yes, as the sender states"), "{text}");
    assert!(text.contains("no, as the sender states"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bundle_has_each_text_that_the_certificate_names() {
    let app = TestApp::start().await;
    let (id, links) = spouses(&app).await;
    let mut shown = String::new();
    for link in &links {
        let page = form::open(&app, link).await.text();
        let statement = selected(&page, ".consent label").concat();
        let disclosure = selected(&page, ".disclosure p").join("\n\n");
        shown = format!("{}\n\n{disclosure}", statement.trim());
        form::sign(&app, link).await;
    }

    let certificate = certificate(&app, &id).await;
    let digest = certificate["consumer_consent"][0]["disclosure_sha256"].clone();
    assert_eq!(
        digest,
        certificate["consumer_consent"][1]["disclosure_sha256"]
    );
    assert!(shown.contains("contact Maple Street Motors in the way that you know."));

    // A later text does not replace the one that was shown.
    let other = json!({ "contact_email": "documents@oak.example" });
    change(&app, json!({ "consumer_disclosure": other })).await;
    let (_, url) = sent(&app).await;
    let page = form::open(&app, &url).await.text();
    let contact = "at which you are reached, contact Maple Street Motors: documents@oak.example";
    assert!(page.contains(contact), "{page}");

    let path = format!("/partner/envelopes/{id}/vault-out");
    app.post(&path, release_form()).await.data(200);
    let path = format!("/envelopes/{id}/bundle");
    let zip = app.get_with_bearer(&app.admin(), &path).await.bytes;
    let mut zip = zip::ZipArchive::new(Cursor::new(zip)).unwrap();
    let names: Vec<String> = zip.file_names().map(str::to_owned).collect();
    let texts: Vec<&String> = names
        .iter()
        .filter(|name| name.starts_with("disclosures/"))
        .collect();

    let digest = digest.as_str().unwrap();
    assert_eq!(texts, [&format!("disclosures/{digest}.txt")]);

    let mut text = String::new();
    zip.by_name(texts[0])
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert_eq!(text, shown);
    assert_eq!(hex::encode(Sha256::digest(&text)), digest);
}

#[tokio::test(flavor = "multi_thread")]
async fn certificate_of_completion_and_custody_record_print_the_consent() {
    let app = TestApp::start().await;
    let (id, url) = sent(&app).await;
    let digest = tick(&app, &url).await;
    form::open(&app, &format!("{url}/pages/1.png")).await;
    finish(&app, &url, &digest).await;
    app.wait_for(&id, "vaulted").await;

    for file in ["completion-certificate", "custody-record"] {
        let path = format!("/partner/envelopes/{id}/{file}");
        let text = pdf::text(&app.get(&path).await.bytes);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for printed in [
            "the sender states nothing",
            "Disclosure shown",
            "pictures of pages 1 of 4 delivered",
            "the signer confirmed: could open and read the document",
        ] {
            assert!(words.contains(printed), "{file}: {printed}: {text}");
        }

        let plain: String = text.split_whitespace().collect();
        assert!(plain.contains(&digest), "{file}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_simulated_signer_consents_to_no_text() {
    let mut app = TestApp::start().await;
    crate::service::test_mode::in_test(&mut app).await;
    let (id, _) = sent(&app).await;
    let path = format!("/test/envelopes/{id}/sign");
    app.post(&path, json!({})).await.data(200);
    let completed = app.entry(&id, "signer.completed").await;
    assert_eq!(completed["consent_version"], "test");
    assert_eq!(completed["consent_sha256"], Value::Null);

    let consent = &certificate(&app, &id).await["consumer_consent"][0];
    assert_eq!(consent["disclosure_sha256"], Value::Null, "{consent}");

    let reason = consent["reason"].as_str().unwrap();
    assert!(reason.starts_with("TEST:"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signer_of_another_provider_was_shown_nothing_by_this_service() {
    let docuseal = FakeDocuseal::start().await;
    let configure = |config: &mut holdfast::config::Config| {
        docuseal.configure(config);
        config.sweep_interval = Some(std::time::Duration::from_millis(100));
    };
    let app = TestApp::with(configure, OrgSettings::default()).await;
    let (id, _) = sent(&app).await;

    docuseal.sign(
        docuseal.submission(),
        "Buyer",
        &[("Signed on", json!("2026-11-22"))],
    );
    app.wait_for(&id, "vaulted").await;
    let consent = &certificate(&app, &id).await["consumer_consent"][0];
    assert_eq!(consent["disclosure_sha256"], Value::Null, "{consent}");
    assert_eq!(consent["demonstrated"], Value::Null, "{consent}");

    let reason = consent["reason"].as_str().unwrap();
    assert!(
        reason.contains("this service showed no disclosure"),
        "{reason}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wording_of_the_jurisdiction_stands_beside_the_tick() {
    let app = TestApp::start().await;
    let wording = json!({
        "US-DE": { "en": "I sign under the law of Delaware." }, "default": { "en": "I sign." },
    });
    change(
        &app,
        json!({ "signature_wording": wording, "chattel_paper_jurisdiction": "US-DE" }),
    )
    .await;

    let (_, url) = sent(&app).await;
    let page = form::open(&app, &url).await.text();
    let statement = selected(&page, ".consent label").concat();
    assert!(
        statement.contains("I sign under the law of Delaware."),
        "{statement}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_the_disclosure_are_checked() {
    let app = TestApp::start().await;
    let text =
        |text: &str| json!({ "de": { "version": "1", "statement": "Ja.", "disclosure": text } });
    change(&app, json!({ "consent": text("Papier geht auch.") })).await;

    for (body, member) in [
        (
            json!({ "consumer_disclosure": { "contact_email": "documents" } }),
            "contact_email",
        ),
        (json!({ "consumer_disclosure": { "fee": 1 } }), "fee"),
        (
            json!({ "consumer_disclosure": { "paper_fee": { "amount_cents": 1, "currency": "XXX" } } }),
            "paper_fee",
        ),
        (
            json!({ "consumer_disclosure": { "scope": { "en": "" } } }),
            "scope",
        ),
        (
            json!({ "signature_wording": { "Delaware": { "en": "I sign." } } }),
            "Delaware",
        ),
        (
            json!({ "require_access_demonstration": "yes" }),
            "require_access_demonstration",
        ),
        // A version names one text forever.
        (
            json!({ "consent": text("Kein Papier.") }),
            "version 1 has another text",
        ),
    ] {
        let refused = app.web(Method::PATCH, "/organization", body).await;
        assert_eq!(refused.status, 422, "{member}: {}", refused.text());
        assert!(
            refused.text().contains(member),
            "{member}: {}",
            refused.text()
        );
    }

    let cleared = change(
        &app,
        json!({ "consumer_disclosure": null, "signature_wording": null }),
    )
    .await;
    assert_eq!(cleared["consumer_disclosure"]["contact_email"], Value::Null);
    assert_eq!(cleared["signature_wording"], json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_disclosure_can_be_read_on_a_phone_and_without_a_script() {
    let app = TestApp::on_a_socket().await;
    for (script, name) in [(true, "consent-phone"), (false, "consent-phone-no-script")] {
        let (_, url) = sent(&app).await;
        let browser = if script {
            TestBrowser::open(EmulatedScreen::Phone).await
        } else {
            TestBrowser::without_javascript(EmulatedScreen::Phone).await
        };
        browser.goto(&url).await;

        browser.see(".disclosure").await;
        browser.read("You may withdraw this consent").await;
        browser.picture(name).await;
        if !script {
            continue;
        }

        let fits = "return document.documentElement.scrollWidth <= innerWidth
            && parseFloat(getComputedStyle(document.querySelector('.disclosure p')).fontSize) >= 16";
        assert_eq!(browser.run(fits).await, true);

        browser.is_accessible(name).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signer_without_a_script_reads_ticks_and_signs() {
    let app = TestApp::on_a_socket().await;
    let (id, url) = sent(&app).await;
    let browser = TestBrowser::without_javascript(EmulatedScreen::Desktop).await;
    browser.goto(&url).await;
    browser.see(".disclosure").await;
    browser.picture("consent-desktop-no-script").await;
    browser
        .type_into("[name='Buyer signature']", "Jordan Lee")
        .await;

    browser.type_into("[name='Signed on']", "11212026").await;
    browser.click("#consent").await;
    browser.click("button[value=finish]").await;
    browser.read("Thank you").await;
    let completed = app.entry(&id, "signer.completed").await;
    let delivered = &completed["consent_demonstrated"]["pages_delivered"];
    assert!(
        delivered
            .as_array()
            .is_some_and(|pages| pages.contains(&json!(1))),
        "{completed}"
    );
}
