//! Languages of pages and mails: who chooses them, that no text is left in English, and the consent
//! text in the ledger.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use holdfast::domain::locale::{ConsentText, Locale};
use holdfast::domain::organization::{OrgSettings, PaymentSettings};
use mail_parser::MessageParser;
use scraper::{Html, Node};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::support::browser::{EmulatedScreen, TestBrowser, screenshots};
use crate::support::{TestApp, TestResponse, buyer_and_seller, envelope_body, form, pdf};

/// An organization with accents on every letter of its texts: other letters are not translated.
pub(super) fn accented() -> OrgSettings {
    OrgSettings {
        language: Locale::Accented,
        ..OrgSettings::default()
    }
}

/// Opens a page with a browser that prefers these languages.
async fn open_in(app: &TestApp, url: &str, languages: &str) -> TestResponse {
    let path = &url[url.find("/sign/").unwrap()..];
    let request = Request::get(path).header("accept-language", languages);
    app.send(request.body(Body::empty()).unwrap()).await
}

/// Sends the contract to one buyer, with more members of the request's signer.
async fn sent_with(app: &TestApp, signer: Value) -> TestResponse {
    let template = app.contract_template().await;
    let mut body = envelope_body(&template["template_id"]);
    let mut buyer = json!({ "email": "ana@example.com", "name": "Ana Soto", "role": "Buyer" });
    let members = signer.as_object().unwrap().clone();
    buyer.as_object_mut().unwrap().extend(members);
    body["signers"] = json!([buyer]);
    app.post("/partner/envelopes", body).await
}

fn link(envelope: &Value) -> String {
    envelope["sign_url"].as_str().unwrap().to_owned()
}

/// Returns language and direction of a page.
fn language(page: &str) -> (String, String) {
    let page = Html::parse_document(page);
    let root = page.root_element();
    let attribute = |name: &str| root.attr(name).unwrap().to_owned();
    (attribute("lang"), attribute("dir"))
}

/// Returns the words of plain letters in a text, without the given data.
pub(super) fn plain_words(text: &str, data: &[&str]) -> Vec<String> {
    // A part of another one would leave the rest of it.
    let mut data = data.to_vec();
    data.sort_by_key(|known| std::cmp::Reverse(known.len()));
    let text = data
        .iter()
        .fold(text.to_owned(), |text, known| text.replace(known, " "));
    let words = text.split(|letter: char| !letter.is_alphabetic());
    let plain = words.filter(|word| word.len() > 1 && word.is_ascii());

    plain.map(str::to_owned).collect()
}

/// Asserts that a page has no untranslated word, in texts and in names for screen readers.
pub(super) fn assert_translated(what: &str, page: &str, data: &[&str]) {
    let html = Html::parse_document(page);
    assert_eq!(language(page).0, "en-XA", "{what}: {page}");

    let mut texts = Vec::new();
    for node in html.tree.nodes() {
        match node.value() {
            Node::Text(text) => {
                let parent = node
                    .parent()
                    .and_then(|parent| parent.value().as_element().cloned());
                match parent.as_ref().map(|parent| parent.name()) {
                    Some("script" | "style") => {}
                    // Parsers with scripts take this as text.
                    Some("noscript") => {
                        let inner = Html::parse_fragment(text);
                        texts.extend(inner.root_element().text().map(str::to_owned));
                    }
                    _ => texts.push(text.to_string()),
                }
            }
            Node::Element(element) => {
                let names = ["aria-label", "alt", "title", "placeholder"];
                texts.extend(
                    names
                        .iter()
                        .filter_map(|name| element.attr(name))
                        .map(str::to_owned),
                );
            }
            _ => {}
        }
    }

    let wrong: Vec<String> = texts
        .iter()
        .flat_map(|text| plain_words(text, data))
        .collect();
    assert!(
        wrong.is_empty(),
        "{what} has words that are not translated: {wrong:?}\n{page}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_senders_choice_comes_before_the_browser_and_the_organization() {
    let settings = OrgSettings {
        language: Locale::Pt,
        ..OrgSettings::default()
    };
    let app = TestApp::with(|_| {}, settings).await;
    let chosen = sent_with(&app, json!({ "locale": "es-MX" }))
        .await
        .data(201);

    let free = sent_with(&app, json!({})).await.data(201);
    for (envelope, languages, expected, words) in [
        (&chosen, "de", ("es", "ltr"), "Terminar y firmar"),
        (
            &free,
            "de-AT,en;q=0.5",
            ("de", "ltr"),
            "Abschließen und unterschreiben",
        ),
        (&free, "it,ja;q=0.5", ("pt", "ltr"), "Concluir e assinar"),
        (&free, "zh-CN,zh;q=0.9", ("zh-Hans", "ltr"), "完成并签名"),
        (&free, "ar-EG", ("ar", "rtl"), "إنهاء وتوقيع"),
        (&free, "fr", ("fr", "ltr"), "Terminer et signer"),
        (&free, "en-US", ("en", "ltr"), "Finish and sign"),
    ] {
        let page = open_in(&app, &link(envelope), languages).await.text();
        let (lang, dir) = language(&page);
        assert_eq!((lang.as_str(), dir.as_str()), expected, "{languages}");
        assert!(page.contains(words), "{languages}: {page}");
    }

    let unknown = open_in(&app, "/sign/unknown", "fr").await;
    assert_eq!(unknown.status, 404);
    assert!(
        unknown.text().contains("Ce lien ne fonctionne pas"),
        "{}",
        unknown.text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_language_without_texts_is_refused_and_nothing_is_sent() {
    let app = TestApp::start().await;
    for wrong in ["it", "es_MX", "", "english", "en-"] {
        let refused = sent_with(&app, json!({ "locale": wrong })).await;
        assert_eq!(refused.status, 422, "{wrong}: {}", refused.text());
        assert!(refused.text().contains("locale"), "{}", refused.text());
    }

    let refused = sent_with(&app, json!({ "locale": "it" })).await;
    assert!(
        refused.text().contains("en, es, fr, de, pt, zh-Hans, ar"),
        "{}",
        refused.text()
    );

    let template = app.contract_template().await;
    let mut later = envelope_body(&template["template_id"]);
    later["template_id"] = Value::Null;
    later["signers"] = json!([{ "email": "a@example.com", "name": "Ana", "locale": "it" }]);
    assert_eq!(app.post("/partner/envelopes", later).await.status, 422);

    let all = app.get("/partner/envelopes").await.json();
    assert_eq!(all["data"], json!([]), "{all}");
    assert_eq!(
        app.text_of("select cast(count(*) as text) from room_submitter")
            .await,
        "0"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_text_of_the_signers_pages_is_left_in_english() {
    let app = TestApp::with(|_| {}, accented()).await;
    let document = pdf::with_lines(&[
        "{{First;type=signature;role=Buyer;required=true}}",
        "{{Short;type=initials;role=Buyer}} {{Day;type=date;role=Buyer}}",
        "{{Agree;type=checkbox;role=Buyer}} {{Sum;type=number;role=Buyer}}",
        "{{Colour;type=select;role=Buyer;options=Red,Blue}}",
        "{{Second;type=signature;role=Seller;required=true}}",
    ]);

    let texts = [("name", "All")];
    let template = app
        .upload("/partner/templates", "application/pdf", &document, &texts)
        .await
        .data(200);
    let mut body = envelope_body(&template["template_id"]);
    body["signers"] = buyer_and_seller();

    body["preserve_signing_order"] = true.into();
    let send = async || {
        let envelope = app.post("/partner/envelopes", body.clone()).await.data(201);
        let id = envelope["envelope_id"].as_str().unwrap().to_owned();
        let links = app
            .get(&format!("/partner/envelopes/{id}/signing-links"))
            .await
            .data(200);
        let url = |index: usize| {
            links["signers"][index]["embed_url"]
                .as_str()
                .unwrap()
                .to_owned()
        };

        (id, url(0), url(1))
    };

    let data = [
        "Retail instalment contract",
        "Ann Buyer",
        "Bob Seller",
        "Bob",
        "Buyer",
        "Seller",
        "Ann",
        "First",
        "Second",
        "Short",
        "Day",
        "Agree",
        "Sum",
        "Colour",
        "Red",
        "Blue",
        "Maple Street Motors",
        "AB",
        "Jordan Lee",
        "holdfast",
        "app.example.com",
    ];

    let (id, first, second) = send().await;
    let check = |what: &str, page: &TestResponse| assert_translated(what, &page.text(), &data);
    check("form", &form::open(&app, &first).await);
    check("not yet", &form::open(&app, &second).await);
    let wrong = [("Sum", "12a"), ("Day", "1.1."), ("Colour", "3")];
    let wrong = wrong.map(|(name, value)| (name.to_owned(), value.to_owned()));
    check(
        "problems",
        &form::press(&app, &first, "finish", &wrong).await,
    );

    check("review", &form::press(&app, &first, "review", &[]).await);
    check(
        "decline without reason",
        &form::press(&app, &first, "decline", &[]).await,
    );
    let problems = form::save(&app, &first, &[("Sum", "12a")]).await;
    let why = problems["problems"]["Sum"].as_str().unwrap();
    assert!(plain_words(why, &[]).is_empty(), "{why}");

    let mut values = form::filled(&form::open(&app, &first).await.text());
    for (name, value) in &mut values {
        match name.as_str() {
            "Sum" => *value = "12".into(),
            "Colour" => *value = "Red".into(),
            _ => {}
        }
    }

    let signed = form::press(&app, &first, "finish", &values).await;
    assert_eq!(signed.status, 200, "{}", signed.text());

    check("thanks", &signed);
    check("signed", &form::open(&app, &first).await);
    check("second signer's form", &form::open(&app, &second).await);
    form::sign(&app, &second).await;
    check("copy", &form::open(&app, &first).await);
    let late = app.as_of(Duration::from_secs(8 * 86_400)).await;
    check("copy by an expired link", &form::open(&late, &first).await);

    check(
        "no such page",
        &form::open(&app, &format!("{first}/pages/9.png")).await,
    );
    drop(id);

    let (id, first, second) = send().await;
    let late = app.as_of(Duration::from_secs(2 * 86_400)).await;
    check("expired link", &form::open(&late, &first).await);
    check(
        "mailed",
        &form::press(&late, &format!("{first}/renew"), "renew", &[]).await,
    );

    check(
        "mailed twice",
        &form::press(&late, &format!("{first}/renew"), "renew", &[]).await,
    );
    let reason = [("reason".to_owned(), "12".to_owned())];
    check(
        "declined",
        &form::press(&app, &first, "decline", &reason).await,
    );

    check("declined by another", &form::open(&app, &second).await);
    drop(id);

    let (id, first, _) = send().await;
    let void = json!({ "reason": "12" });
    app.post(&format!("/partner/envelopes/{id}/void"), void)
        .await
        .data(200);

    check("withdrawn", &form::open(&app, &first).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_text_of_payment_and_verification_is_left_in_english() {
    let payment = PaymentSettings {
        amount_cents: 4900,
        currency: "USD".into(),
        connected_account: None,
        platform_fee_cents: None,
        payer: "first".into(),
    };
    let settings = OrgSettings {
        payment: Some(payment),
        ..accented()
    };

    let data = [
        "Retail instalment contract",
        "Jordan Lee",
        "Buyer",
        "Jordan",
        "JL",
        "USD",
        "Maple Street Motors",
    ];

    let app = TestApp::with(|_| {}, settings).await;
    let envelope = app.sent_envelope().await;
    let url = link(&envelope);
    let page = form::open(&app, &url).await.text();
    let document = Html::parse_document(&page);
    let names = scraper::Selector::parse("form [name]").unwrap();
    let names: Vec<&str> = document
        .select(&names)
        .filter_map(|field| field.attr("name"))
        .collect();
    let data = [&data[..], &names[..]].concat();
    assert_translated("form with a payment", &page, &data);

    form::sign(&app, &url).await;
    assert_translated("payment due", &form::open(&app, &url).await.text(), &data);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_text_of_the_identity_check_is_left_in_english() {
    let app = TestApp::with(|_| {}, accented()).await;
    let tagged = pdf::with_lines(&["Agreement", "{{Sign;type=signature;role=Buyer}}"]);
    let texts = [("name", "Asking"), ("kba_required", "true")];
    let made = app.library_template(&texts, &tagged).await.data(201);
    let mut body = envelope_body(&made["template_id"]);
    body["customer_email"] = "kim@birch.example".into();
    let url = link(&app.post("/partner/envelopes", body).await.data(201));

    let data = ["Retail instalment contract", "Maple Street Motors"];
    let page = form::open(&app, &url).await.text();

    // Questions and answers come from the provider.
    let document = Html::parse_document(&page);
    let asked = scraper::Selector::parse("legend, .choice").unwrap();
    let asked: Vec<String> = document
        .select(&asked)
        .map(|element| element.text().collect::<String>().trim().to_owned())
        .collect();
    let asked = asked
        .iter()
        .map(String::as_str)
        .filter(|text| !text.is_empty());
    let data: Vec<&str> = data.into_iter().chain(asked).collect();
    assert_translated("questions", &page, &data);

    let some = [("q1".to_owned(), "correct".to_owned())];
    let page = form::press(&app, &url, "", &some).await.text();
    assert_translated("unanswered", &page, &data);

    let wrong = ["q1", "q2", "q3"].map(|name| (name.to_owned(), "wrong1".to_owned()));
    for what in ["wrong", "again", "wrong twice", "again", "locked"] {
        let again = [("again".to_owned(), "again".to_owned())];
        let values = if what == "again" {
            &again[..]
        } else {
            &wrong[..]
        };
        let page = form::press(&app, &url, "", values).await.text();
        assert_translated(what, &page, &data);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_certificate_and_the_verification_page_are_translated() {
    let app = TestApp::with(|_| {}, accented()).await;
    let id = app.vaulted_envelope().await;
    let path = format!("/partner/envelopes/{id}/completion-certificate");
    let certificate = app.get(&path).await;
    let text = pdf::text(&certificate.bytes);
    for (english, accented) in [
        ("Certificate", "Çéŕţîƒîçáţé"),
        ("Sent by", "Šéñţ ƀý"),
        ("Completed document", "Çöɱþļéţéð ðöçûɱéñţ"),
        ("Electronic consent", "Éļéçţŕöñîç çöñšéñţ"),
        ("November", "Ñöṽéɱƀéŕ"),
        ("Scan the code", "Šçáñ ţĥé çöðé"),
    ] {
        assert!(!text.contains(english), "{english}: {text}");
        // The month depends on the day of the test.
        assert!(
            text.contains(accented) || english == "November",
            "{accented}: {text}"
        );
    }

    let start = text.find("/verify/").unwrap();
    let link: String = text[start..].split_whitespace().collect();
    let mut parts = link.split('/').skip(2);
    let (org, envelope) = (parts.next().unwrap(), parts.next().unwrap());
    let code: String = parts.next().unwrap().chars().take(24).collect();
    let page = form::open(
        &app,
        &format!("http://127.0.0.1:1/verify/{org}/{envelope}/{code}"),
    )
    .await;
    assert_eq!(page.status, 200, "{}", page.text());

    let html = page.text();
    let hashes: Vec<&str> = html
        .split("data-sha256=\"")
        .skip(1)
        .map(|rest| &rest[..64])
        .collect();
    let data = [
        "Retail instalment contract",
        "Maple Street Motors",
        "Jordan Lee",
        "Buyer",
        "UTC",
    ];
    let data = [&data[..], &hashes[..], &[id.as_str()]].concat();

    assert_translated("verification", &html, &data);
}

/// Names in Chinese and Arabic are legible in the document, and the certificate is in these languages.
#[tokio::test(flavor = "multi_thread")]
async fn chinese_and_arabic_are_written_into_documents() {
    for (locale, name, title, mark, custody) in [
        (
            Locale::ZhHans,
            "李小龍",
            "签署完成证书",
            "非权威副本",
            "保管记录",
        ),
        (
            Locale::Ar,
            "محمد بن علي",
            "شهادة",
            "نسخة غير ذات حجية",
            "سجل الحفظ",
        ),
    ] {
        let settings = OrgSettings {
            language: locale,
            ..OrgSettings::default()
        };
        let app = TestApp::with(|_| {}, settings).await;
        let template = app.contract_template().await;
        let mut body = envelope_body(&template["template_id"]);

        let email = "signer@example.com";
        body["signers"] = json!([{ "email": email, "name": name, "role": "Buyer" }]);
        let envelope = app.post("/partner/envelopes", body).await.data(201);
        let id = envelope["envelope_id"].as_str().unwrap();
        let url = envelope["sign_url"].as_str().unwrap();
        let mut values = form::filled(&form::open(&app, url).await.text());
        for (_, value) in values.iter_mut().filter(|(_, value)| value == "Jordan Lee") {
            *value = name.into();
        }
        assert_eq!(form::press(&app, url, "finish", &values).await.status, 200);

        app.wait_for(id, "vaulted").await;
        let copy = app.copy(id).await;
        let path = format!("/partner/envelopes/{id}/completion-certificate");
        let certificate = app.get(&path).await.bytes;
        let path = format!("/partner/envelopes/{id}/custody-record");
        let record = app.get(&path).await.bytes;
        let folder = screenshots();
        std::fs::create_dir_all(&folder).unwrap();

        for (what, pdf) in [
            ("copy", &copy[..]),
            ("certificate", &certificate[..]),
            ("custody", &record[..]),
        ] {
            let file = format!("{what}-{}.pdf", locale.as_str());
            std::fs::write(folder.join(file), pdf).unwrap();
        }

        // Poppler turns Arabic back into the order in which it is read, with marks of direction and
        // with spaces where letters do not touch.
        let plain = |text: &str| {
            let kept =
                |one: &char| !one.is_whitespace() && !('\u{202a}'..='\u{202e}').contains(one);
            text.chars().filter(kept).collect::<String>()
        };
        let text = |pdf: &[u8]| plain(&pdf::text(pdf));

        let (name, title) = (plain(name), plain(title));
        let copy = text(&copy);
        assert!(copy.contains(&name), "{copy}");
        assert!(copy.contains(&plain(mark)), "{copy}");

        let record = text(&record);
        assert!(record.contains(&plain(custody)), "{record}");
        assert!(record.contains(&name), "{record}");

        let certificate = text(&certificate);
        assert!(certificate.contains(&name), "{certificate}");
        assert!(certificate.contains(&title), "{certificate}");
    }
}

/// Returns subject, plain text and the text of the HTML of a mail.
fn parts(mail: &str) -> (String, String, String) {
    let parsed = MessageParser::default().parse(mail.as_bytes()).unwrap();
    let subject = parsed.subject().unwrap().to_owned();
    let text = parsed.body_text(0).unwrap().into_owned();
    let html = parsed.body_html(0).unwrap().into_owned();
    (subject, text, html)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_text_of_the_mails_is_left_in_english() {
    let app = TestApp::with(|_| {}, accented()).await;
    let (id, [first, second]) = app.sent_to_two().await;
    app.post(&format!("/partner/envelopes/{id}/remind"), json!({}))
        .await
        .data(200);
    app.wait_for_mails(2).await;
    form::sign(&app, &first).await;

    form::sign(&app, &second).await;
    app.wait_for(&id, "vaulted").await;

    // Invitations, a reminder, and the copies for signers and creator.
    app.wait_for_mails(6).await;
    let (_, [first, _]) = app.sent_to_two().await;
    app.wait_for_mails(7).await;
    let reason = [("reason".to_owned(), "12".to_owned())];
    form::press(&app, &first, "decline", &reason).await;

    // To the creator and to the one who declined.
    app.wait_for_mails(9).await;
    let (id, _) = app.sent_to_two().await;
    app.wait_for_mails(10).await;
    let void = json!({ "reason": "12" });
    app.post(&format!("/partner/envelopes/{id}/void"), void)
        .await
        .data(200);

    let mails = app.wait_for_mails(11).await;
    let data = [
        "Retail instalment contract",
        "Ann Buyer",
        "Bob Seller",
        "Bob",
        "Buyer",
        "Seller",
        "UTC",
        "holdfast",
        "Maple Street Motors",
    ];
    for mail in mails {
        let (subject, text, html) = parts(&mail);
        let words = |line: &str| !line.starts_with("http") && !line.contains("env_");
        let page = Html::parse_document(&html);
        let shown = page.root_element().text();
        let lines = [subject.as_str()].into_iter().chain(text.lines());
        let lines = lines.chain(shown).filter(|line| words(line));
        let lines: Vec<&str> = lines.collect();
        let wrong = plain_words(&lines.join("\n"), &data);
        assert!(wrong.is_empty(), "{subject}: {wrong:?}\n{lines:#?}");
        assert_eq!(language(&html).0, "en-XA");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_in_spanish_says_the_same_as_text_and_html() {
    let app = TestApp::start().await;
    let envelope = sent_with(&app, json!({ "locale": "es" })).await.data(201);
    let mails = app.wait_for_mails(1).await;
    let (subject, text, html) = parts(&mails[0]);
    assert!(
        subject.ends_with("le pide que firme: Retail instalment contract"),
        "{subject}"
    );
    assert!(html.contains("<html lang=\"es\" dir=\"ltr\">"), "{html}");

    let shown: Vec<String> = Html::parse_document(&html)
        .root_element()
        .text()
        .map(str::to_owned)
        .collect();
    let shown = shown.join("\n");
    for words in [
        "Hola, Ana Soto:",
        "le pide que firme «Retail instalment contract».",
        "Firme antes del ",
        "Leer y firmar el documento",
        "El enlace es solo para usted y funciona durante siete días.",
        "Referencia: ",
    ] {
        assert!(text.contains(words), "{words}: {text}");
        assert!(shown.contains(words), "{words}: {shown}");
    }

    assert!(
        plain_words(&text, &[]).iter().all(|word| word != "Hello"),
        "{text}"
    );

    form::sign(&app, &link(&envelope)).await;
    let id = envelope["envelope_id"].as_str().unwrap();
    app.wait_for(id, "vaulted").await;

    // The creator has chosen no language.
    let mails = app.wait_for_mails(3).await;
    let mut subjects: Vec<String> = mails.iter().map(|mail| parts(mail).0).collect();
    subjects.sort();
    assert!(
        subjects
            .iter()
            .any(|subject| subject.starts_with("Completado: ")),
        "{subjects:?}"
    );
    assert!(
        subjects
            .iter()
            .any(|subject| subject.starts_with("Completed: ")),
        "{subjects:?}"
    );
}

/// The SHA-256 in the ledger is that of the text on the page.
#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_names_the_consent_text_that_the_signer_agreed_to() {
    let own = ConsentText {
        version: "2026-11".into(),
        statement: "Ich stimme zu.".into(),
        disclosure: "Papier gibt es auch.\n\nDer Widerruf ist frei.".into(),
    };
    let settings = OrgSettings {
        consent: [(Locale::De, own.clone())].into(),
        ..OrgSettings::default()
    };

    let app = TestApp::with(|_| {}, settings).await;
    for (locale, version) in [("fr-CA", "holdfast-2."), ("de", "2026-11")] {
        let envelope = sent_with(&app, json!({ "locale": locale })).await.data(201);
        let (id, url) = (envelope["envelope_id"].as_str().unwrap(), link(&envelope));
        let page = form::open(&app, &url).await.text();
        let page = Html::parse_document(&page);
        let texts = |css: &str| {
            let selector = scraper::Selector::parse(css).unwrap();
            let elements = page.select(&selector);
            let texts = elements.map(|one| one.text().collect::<String>().trim().to_owned());
            texts.collect::<Vec<_>>()
        };
        let statement = texts(".consent label").concat();

        let disclosure = texts(".disclosure p").join("\n\n");
        let control = scraper::Selector::parse("#consent").unwrap();
        let agreed = page.select(&control).next().unwrap().attr("value").unwrap();

        // Another text than the one that the organization has now is no consent.
        let mut values = form::filled(&page.html());
        let mut agree_to = async |digest: &str| {
            let consent = values.iter_mut().find(|(name, _)| name == "consent");
            consent.unwrap().1 = digest.to_owned();
            form::press(&app, &url, "finish", &values).await.status
        };
        assert_eq!(agree_to(&"0".repeat(64)).await, 422);
        assert_eq!(agree_to(agreed).await, 200);

        let details = app.entry(id, "signer.completed").await;
        let named = details["consent_version"].as_str().unwrap();
        assert!(named.starts_with(version), "{details}");
        assert_eq!(details["consent_locale"], locale[..2], "{details}");

        let shown = hex::encode(Sha256::digest(format!("{statement}\n\n{disclosure}")));
        assert_eq!(details["consent_sha256"], shown.as_str(), "{details}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_works_from_right_to_left_and_is_accessible() {
    let app = TestApp::on_a_socket().await;
    for (locale, name) in [("ar", "arabic"), ("de", "german")] {
        let envelope = sent_with(&app, json!({ "locale": locale })).await.data(201);
        let browser = TestBrowser::open(EmulatedScreen::Phone).await;
        browser.goto(&link(&envelope)).await;
        browser.see(".sheet img").await;
        browser.picture(&format!("{name}-document")).await;
        browser.click(".next").await;
        browser.see(".step.current").await;

        browser.picture(&format!("{name}-field")).await;
        let signature = "document.querySelector('.sheet a[data-field=\"1\"]').dispatchEvent(
            new MouseEvent('click', { bubbles: true, cancelable: true }))";
        browser.run(signature).await;
        browser.see(".ways").await;
        browser.picture(&format!("{name}-signature")).await;
        browser.is_accessible(locale).await;

        // The page of the document keeps its direction.
        let direction = "return getComputedStyle(document.querySelector('.sheet')).direction";
        assert_eq!(browser.run(direction).await, "ltr");

        let wide = "return document.documentElement.scrollWidth <= innerWidth";
        assert_eq!(
            browser.run(wide).await,
            true,
            "{locale}: the page is wider than the screen"
        );

        let wide = TestBrowser::open(EmulatedScreen::Desktop).await;
        wide.goto(&link(&envelope)).await;
        wide.see(".sheet img").await;
        wide.picture(&format!("{name}-desktop")).await;
        wide.is_accessible(locale).await;

        // The field builder is in the language of the organization here.
        app.set_organization(&[&format!("language=\"{locale}\"")]);
        wide.tell("Network.enable", json!({})).await;
        let headers = json!({ "headers": { "accept-language": "x" } });
        wide.tell("Network.setExtraHTTPHeaders", headers).await;
        let template = app.contract_template().await;
        let token = app
            .template_session(template["template_id"].as_str().unwrap())
            .await;
        wide.goto(&format!("{}/builder#token={token}", app.url()))
            .await;

        wide.see(".box").await;
        assert_eq!(
            wide.run("return document.documentElement.lang").await,
            locale
        );

        wide.picture(&format!("{name}-builder")).await;
        wide.is_accessible("field builder").await;
    }
}

/// Words that the script writes are translated, too.
#[tokio::test(flavor = "multi_thread")]
async fn no_text_of_the_script_is_left_in_english() {
    let app = TestApp::on_a_socket().await;
    let envelope = app.sent_envelope().await;

    // No sender can choose this language, and browsers have others.
    app.execute("update signer set locale = 'en-XA'").await;
    let browser = TestBrowser::open(EmulatedScreen::Desktop).await;
    browser.goto(&link(&envelope)).await;
    browser.see(".guide .next").await;
    let names = "return [...document.querySelectorAll('form [name]')].map((field) => field.name)";
    let names = browser.run(names).await;
    let names = names.as_array().unwrap().iter().filter_map(Value::as_str);
    let data: Vec<&str> = names.chain(["Jordan Lee", "Jordan", "JL"]).collect();

    let visible = "const panel = document.querySelector('.panel');
        const named = [...panel.querySelectorAll('[aria-label], [placeholder]')];
        return [panel.innerText, ...named.map((one) => one.ariaLabel ?? one.placeholder)].join(' ')";
    for press in [
        ".next",
        "[data-way=draw]",
        "[data-way=upload]",
        "[data-way=type]",
    ] {
        browser.click(press).await;
        let text = browser.run(visible).await;
        let wrong = plain_words(text.as_str().unwrap(), &data);
        assert!(wrong.is_empty(), "after {press}: {wrong:?}\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_text_of_codes_delegation_and_reading_is_left_in_english() {
    let app = TestApp::with(|_| {}, accented()).await;
    let template = app.contract_template().await;
    let mut body = envelope_body(&template["template_id"]);
    body["signers"] = json!([
        { "email": "max@example.com", "name": "Max", "role": "Boss", "kind": "approver",
          "access": "email_code" },
        { "email": "ann@example.com", "name": "Ann", "role": "Buyer", "kind": "signer",
          "access": "passcode", "passcode": "4711 4711" },
    ]);

    body["recipients"] = json!([{ "email": "eve@example.com", "name": "Eve", "kind": "viewer" }]);
    body["allow_delegation"] = true.into();
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let id = envelope["envelope_id"].as_str().unwrap().to_owned();
    let links = app
        .get(&format!("/partner/envelopes/{id}/signing-links"))
        .await
        .data(200);
    let url = |index: usize| links["signers"][index]["embed_url"].as_str().unwrap();

    let data = [
        "Retail instalment contract",
        "Maple Street Motors",
        "Max",
        "Ann",
        "Boss",
        "Buyer",
        "m…x@example.com",
    ];

    let mut pages = Vec::new();
    let mut keep = |what: &'static str, page: TestResponse| pages.push((what, page.text()));
    keep("question for a code", form::open(&app, url(0)).await);
    keep(
        "code sent",
        form::press(&app, url(0), "send-code", &[]).await,
    );

    keep(
        "code too soon",
        form::press(&app, url(0), "send-code", &[]).await,
    );
    let given = |code: &str| [("code".to_owned(), code.to_owned())];
    keep(
        "wrong code",
        form::press(&app, url(0), "enter-code", &given("1")).await,
    );

    keep("passcode", form::open(&app, url(1)).await);
    for _ in 0..4 {
        form::press(&app, url(0), "enter-code", &given("1")).await;
    }

    keep("locked", form::open(&app, url(0)).await);
    let mails = app.wait_for_mails(3).await;
    let mail = mails.iter().find(|mail| parts(mail).1.contains("/view/"));
    let view = form::link_in(mail.unwrap());
    keep("page for readers", form::open(&app, &view).await);

    for mail in &mails {
        let (subject, text, _) = parts(mail);
        let lines = text.lines().filter(|line| !line.starts_with("http"));
        let lines: Vec<&str> = lines.filter(|line| !line.contains("env_")).collect();
        let known = [&data[..], &["Eve", "UTC", "holdfast"]].concat();
        let wrong = plain_words(&format!("{subject}\n{}", lines.join("\n")), &known);
        assert!(wrong.is_empty(), "{subject}: {wrong:?}");
    }

    // The approver's form, with the other person who should sign.
    let mut open = envelope_body(&template["template_id"]);
    open["allow_delegation"] = true.into();
    open["signers"] = json!([
        { "email": "max@example.com", "name": "Max", "role": "Boss", "kind": "approver" },
        { "email": "ann@example.com", "name": "Ann", "role": "Buyer" },
    ]);

    let envelope = app.post("/partner/envelopes", open).await.data(201);
    let url = link(&envelope);
    keep("form of an approver", form::open(&app, &url).await);
    keep(
        "delegation without a person",
        form::press(&app, &url, "delegate", &[]).await,
    );

    let kim = [
        ("delegate-name".to_owned(), "Max".to_owned()),
        ("delegate-email".to_owned(), "kim@example.com".to_owned()),
    ];
    keep("delegated", form::press(&app, &url, "delegate", &kim).await);

    for (what, page) in &pages {
        assert_translated(what, page, &data);
    }
}
