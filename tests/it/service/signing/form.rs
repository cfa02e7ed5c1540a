//! The signing form and the callbacks behind it.

use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::Request;
use holdfast::domain::organization::OrgSettings;
use serde_json::json;

use sha2::{Digest as _, Sha256};

use crate::support::{CONTRACT, TestApp, envelope_body, form, pdf};

#[tokio::test(flavor = "multi_thread")]
async fn the_form_shows_a_labelled_control_for_each_field() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let url = envelope["sign_url"].as_str().unwrap();
    let page = form::open(&app, url).await;
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");

    let text = page.text();
    for name in ["Buyer signature", "Signed on", "consent"] {
        assert!(text.contains(&format!("name=\"{name}\"")), "{name}");
    }
    assert!(
        text.contains("<label for=\"field-1\">Buyer signature"),
        "{text}"
    );

    let image = form::open(&app, &format!("{url}/pages/1.png")).await;
    assert_eq!(image.headers["content-type"], "image/png");
    assert!(image.bytes.starts_with(b"\x89PNG"));
    assert_ne!(
        form::open(&app, &format!("{url}/pages/99.png"))
            .await
            .status,
        200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_value_is_reported_at_its_field_and_others_are_kept() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let url = envelope["sign_url"].as_str().unwrap();
    form::open(&app, url).await;
    let values = [
        ("Buyer signature".to_owned(), "Jordan Lee".to_owned()),
        ("Signed on".to_owned(), "yesterday".to_owned()),
    ];
    let without_consent = form::press(&app, url, "finish", &values).await;
    assert_eq!(without_consent.status, 422);
    assert!(
        without_consent
            .text()
            .contains("consent to signing electronically")
    );

    let consent = [
        &values[..],
        &[("consent".to_owned(), form::TICK.to_owned())],
    ]
    .concat();
    let wrong_date = form::press(&app, url, "finish", &consent).await;
    assert_eq!(wrong_date.status, 422);

    let text = wrong_date.text();
    assert!(text.contains("Enter a date"), "{text}");
    assert!(
        text.contains("value=\"Jordan Lee\""),
        "what was typed is still there: {text}"
    );

    let id = envelope["envelope_id"].as_str().unwrap();
    app.wait_for_event(id, "signer.started").await;
    let types = app.event_types(id).await;
    assert!(!types.contains(&"signer.completed".to_owned()), "{types:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_typed_signature_has_the_chosen_style_in_the_document() {
    let app = TestApp::start().await;
    for (style, font) in [(Some("formal"), "GreatVibes"), (None, "NotoSans-Italic")] {
        let envelope = app.sent_envelope().await;
        let url = envelope["sign_url"].as_str().unwrap();
        let id = envelope["envelope_id"].as_str().unwrap();
        let page = form::open(&app, url).await;
        let mut values = form::filled(&page.text());
        values.retain(|(name, _)| name != "signature-style");

        if let Some(style) = style {
            let saved = form::save(&app, url, &[("signature-style", style)]).await;
            assert_eq!(saved["problems"], json!({}));
            let page = form::open(&app, url).await.text();
            assert!(page.contains(&format!("data-hand=\"{style}\"")), "{page}");
        }

        let signed = form::press(&app, url, "finish", &values).await;
        assert_eq!(signed.status, 200, "{}", signed.text());

        app.wait_for(id, "vaulted").await;
        let copy = app.copy(id).await;
        let fonts = pdf::fonts(&copy);
        assert!(fonts.contains(font), "{style:?}: {fonts}");
    }
}

/// Dates in the document have the organization's format; in the API they are ISO 8601.
#[tokio::test(flavor = "multi_thread")]
async fn the_day_of_signing_is_set_by_the_host_in_the_organizations_format() {
    let dates = r#"{"format":"month_first","time_zone":"Pacific/Kiritimati"}"#;
    let settings = OrgSettings {
        dates: serde_json::from_str(dates).unwrap(),
        ..OrgSettings::default()
    };
    let app = TestApp::with(|_| {}, settings).await;
    let field = |name: &str, kind: &str, default: Option<&str>, y: f64| {
        json!({
            "name": name, "type": kind, "role": "Buyer", "required": true, "default_value": default,
            "placement": {
                "mode": "absolute",
                "areas": [{ "page": 1, "x": 0.2, "y": y, "w": 0.3, "h": 0.04 }],
            },
        })
    };

    let fields = json!([
        field("Signature", "signature", None, 0.75),
        field("Signed on", "date", Some("{{date}}"), 0.8),
        field("Delivery", "date", None, 0.85),
    ]);
    let template = app.template(CONTRACT, &fields).await;
    let body = envelope_body(&template["template_id"]);
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let (id, url) = (
        envelope["envelope_id"].as_str().unwrap(),
        envelope["sign_url"].as_str().unwrap(),
    );
    let page = form::open(&app, url).await.text();

    // The setting of later documents: this one stays as its signer sees it.
    app.set_organization(&[r#"dates={"format":"dotted","time_zone":"Pacific/Kiritimati"}"#]);

    // This zone is 14 hours before UTC.
    let today = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(14);
    let written = today.strftime("%m/%d/%Y").to_string();
    assert!(page.contains(&format!("value=\"{written}\"")), "{page}");

    let values = [
        ("Signature", "Jordan Lee"),
        ("Signed on", "2020-01-01"),
        ("Delivery", "2026-12-24"),
        ("consent", form::TICK),
    ];
    let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let signed = form::press(&app, url, "finish", &values).await;
    assert_eq!(signed.status, 200, "{}", signed.text());

    app.wait_for(id, "vaulted").await;
    let copy = app.copy(id).await;
    let text = pdf::text(&copy);
    assert!(
        text.contains(&written) && text.contains("12/24/2026"),
        "{text}"
    );
    assert!(!text.contains("2020"), "{text}");

    let events = app.events(id).await;
    let events = serde_json::to_string(&events).unwrap();
    assert!(events.contains(&today.strftime("%Y-%m-%d").to_string()));
}

/// Programs that fill in every control must still be able to sign.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_style_of_a_signature_is_ignored() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let url = envelope["sign_url"].as_str().unwrap();
    let saved = form::save(&app, url, &[("signature-style", "comic")]).await;
    assert_eq!(saved["problems"], json!({}));

    let mut values = form::filled(&form::open(&app, url).await.text());
    values.retain(|(name, _)| name != "signature-style");
    values.push(("signature-style".into(), "Jordan Lee".into()));
    let signed = form::press(&app, url, "finish", &values).await;
    assert_eq!(signed.status, 200, "{}", signed.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signer_can_decline_with_a_reason() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let (id, url) = (
        envelope["envelope_id"].as_str().unwrap(),
        envelope["sign_url"].as_str().unwrap(),
    );
    form::open(&app, url).await;
    assert_eq!(form::press(&app, url, "decline", &[]).await.status, 422);

    let reason = [("reason".to_owned(), "The price is wrong".to_owned())];
    assert_eq!(form::press(&app, url, "decline", &reason).await.status, 200);

    let status = app
        .get(&format!("/partner/envelopes/{id}/status"))
        .await
        .data(200);
    assert_eq!(status["status"], "declined");

    let events = app.events(id).await;
    let declined = events.last().unwrap();
    assert_eq!(declined["event_type"], "envelope.declined");
    assert_eq!(declined["data"]["reason"], "The price is wrong");

    let void = app
        .post(&format!("/partner/envelopes/{id}/void"), json!({}))
        .await;
    assert_eq!(
        void.error(422),
        "Cannot void envelope with status: declined"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn two_signers_sign_in_turn() {
    let app = TestApp::start().await;
    let (id, [first, second]) = app.sent_to_two().await;
    let early = form::open(&app, &second).await;
    assert!(
        early.text().contains("It's not your turn yet"),
        "{}",
        early.text()
    );

    let forced = form::press(&app, &second, "finish", &form::filled("")).await;
    assert_ne!(forced.status, 200);

    form::sign(&app, &first).await;
    let used = form::open(&app, &first).await;
    assert!(used.text().contains("You have signed"), "{}", used.text());

    form::sign(&app, &second).await;
    app.wait_for(&id, "vaulted").await;
    let links = app
        .get(&format!("/partner/envelopes/{id}/signing-links"))
        .await
        .data(200);
    assert_eq!(links["signers"][1]["status"], "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_with_a_working_link_is_mailed() {
    let app = TestApp::start().await;
    app.sent_envelope().await;
    let mails = app.wait_for_mails(1).await;
    let mail = mails[0].replace("=\r\n", "").replace("=3D", "=");
    assert!(mail.contains("jordan.lee@example.com"), "{mail}");

    let start = mail.find("http://127.0.0.1:8080/sign/").unwrap();
    let url: String = mail[start..]
        .chars()
        .take_while(|c| !c.is_whitespace() && *c != '"')
        .collect();
    assert_eq!(form::open(&app, &url).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_signing_link_is_a_404_page() {
    let app = TestApp::start().await;
    let token = holdfast::domain::token::LinkToken::generate(3);
    for path in ["/sign/x".to_owned(), format!("/sign/{}", token.reveal())] {
        let answer = app
            .send(Request::get(path).body(Body::empty()).unwrap())
            .await;
        assert_eq!(answer.status, 404);
        assert!(answer.text().contains("This link does not work"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_that_cannot_be_verified_is_refused() {
    let app = TestApp::start().await;
    let body = r#"{"event_type":"submission.completed","data":{"id":1}}"#;
    let unsigned = app
        .post_text("", "/callbacks/signing/embedded", "application/json", body)
        .await;
    assert_eq!(unsigned.error(401), "Callback could not be verified");

    let now = holdfast::domain::clock::Clock::default().now().as_seconds();
    let request = Request::post("/api/v2/callbacks/signing/embedded")
        .header("x-docuseal-signature", format!("{now}.{}", "0".repeat(64)))
        .body(Body::from(body))
        .unwrap();
    assert_eq!(app.send(request).await.status, 401);

    let nobody = app
        .post_text("", "/callbacks/signing/nobody", "application/json", body)
        .await;
    assert_eq!(nobody.error(404), "Provider instance not found");
}

/// A link is valid for an hour. After that its page offers a new one by e-mail.
#[tokio::test(flavor = "multi_thread")]
async fn an_expired_link_offers_a_fresh_one() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let url = envelope["sign_url"].as_str().unwrap();
    app.wait_for_mails(1).await;
    let later = app.as_of(Duration::from_secs(2 * 3600)).await;
    let page = form::open(&later, url).await;
    assert_eq!(page.status, 410);
    assert!(
        page.text().contains("E-mail me a new link"),
        "{}",
        page.text()
    );

    let signed = form::press(&later, url, "finish", &[]).await;
    assert_eq!(signed.status, 410, "an expired link signs nothing");

    let renewed = form::press(&later, &format!("{url}/renew"), "renew", &[]).await;
    assert!(renewed.text().contains("on its way"), "{}", renewed.text());

    let mails = later.wait_for_mails(1).await;
    let fresh = form::link_in(&mails[0]);
    assert_ne!(fresh, url);

    form::sign(&later, &fresh).await;
    later
        .wait_for(envelope["envelope_id"].as_str().unwrap(), "vaulted")
        .await;
    let (ready, expired) = (
        "All parties have done their part. Download your copy",
        "All parties have done their part. This link has expired, so we will send your copy by e-mail.",
    );

    let page = form::open(&later, &fresh).await.text();
    assert!(
        page.contains(ready) && !page.contains("E-mail me my copy"),
        "{page}"
    );

    let page = form::open(&later, url).await.text();
    assert!(
        page.contains(expired) && page.contains("E-mail me my copy"),
        "{page}"
    );
    assert!(!page.contains(ready), "{page}");
}

/// Fields can be tags in the document: `{{…}}` is found, removed and signed.
#[tokio::test(flavor = "multi_thread")]
async fn a_template_can_be_created_from_embedded_tags() {
    let app = TestApp::start().await;
    let document = pdf::with_lines(&[
        "Agreement between the parties.",
        "{{Buyer signature;type=signature;role=Buyer;required=true}}",
        "The end.",
    ]);
    let template = app
        .upload(
            "/partner/templates",
            "application/pdf",
            &document,
            &[("name", "Tagged")],
        )
        .await
        .data(200);
    assert_eq!(template["fields_added"], 1);

    assert_eq!(template["fields"][0]["name"], "Buyer signature");
    assert_eq!(template["fields"][0]["required"], true);

    let envelope = app
        .post(
            "/partner/envelopes",
            envelope_body(&template["template_id"]),
        )
        .await
        .data(201);
    form::sign(&app, envelope["sign_url"].as_str().unwrap()).await;

    let id = envelope["envelope_id"].as_str().unwrap();
    app.wait_for(id, "vaulted").await;
    let copy = app.copy(id).await;
    let text = pdf::text(&copy);
    assert!(text.contains("Agreement between the parties."), "{text}");
    assert!(
        text.contains("The end.") && text.contains("Jordan Lee"),
        "{text}"
    );
    assert!(!text.contains("{{"), "the tag is gone: {text}");
}

/// Values that the script saves while the signer types are stored, or refused with a reason.
#[tokio::test(flavor = "multi_thread")]
async fn entries_are_saved_individually_and_images_are_validated() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let (id, url) = (
        envelope["envelope_id"].as_str().unwrap(),
        envelope["sign_url"].as_str().unwrap(),
    );
    form::open(&app, url).await;

    let nothing = form::save(&app, url, &[]).await;
    assert_eq!(nothing["problems"], json!({}));

    let types = app.event_types(id).await;
    assert!(!types.contains(&"signer.started".to_owned()), "{types:?}");

    let wrong = form::save(&app, url, &[("Signed on", "soon")]).await;
    assert_eq!(
        wrong["problems"]["Signed on"],
        "Enter a date as year-month-day"
    );

    for (picture, why) in [
        ("data:image/png;base64,AAAA", "Use a PNG or JPEG picture"),
        (
            "data:image/png;base64,iVBORw0KGgoAAAAN",
            "This picture cannot be read",
        ),
    ] {
        let refused = form::save(&app, url, &[("Buyer signature", picture)]).await;
        assert_eq!(refused["problems"]["Buyer signature"], why);
    }

    let kept = form::save(&app, url, &[("Buyer signature", "Jordan Lee")]).await;
    assert_eq!(kept["problems"], json!({}));

    app.wait_for_event(id, "signer.started").await;
    let page = form::open(&app, url).await;
    assert!(page.text().contains("value=\"Jordan Lee\""));
    assert!(page.text().contains("1 of 2 required fields done"));

    // Values that are not sent again keep their saved state.
    let rest = [("Signed on", "2026-11-21"), ("consent", form::TICK)];
    let rest = rest.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let done = form::press(&app, url, "finish", &rest).await;
    assert_eq!(done.status, 200, "{}", done.text());

    let completed = app.entry(id, "signer.completed").await;
    assert!(completed["consented_at"].is_string(), "{completed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_provide_text_with_their_image() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let url = envelope["sign_url"].as_str().unwrap();
    let text = form::open(&app, &format!("{url}/pages/1.txt")).await;
    assert_eq!(text.headers["content-type"], "text/plain; charset=utf-8");
    assert!(text.text().contains("RETAIL INSTALLMENT SALE CONTRACT"));

    let lines = form::open(&app, &format!("{url}/pages/1.json"))
        .await
        .json();
    let title = lines
        .as_array()
        .unwrap()
        .iter()
        .find(|line| line["text"] == "RETAIL INSTALLMENT SALE CONTRACT")
        .unwrap();
    assert!(title["y"].as_f64().unwrap() < 0.3, "{title}");

    for wrong in ["0.png", "99.png", "1.svg", "one.png"] {
        let answer = form::open(&app, &format!("{url}/pages/{wrong}")).await;
        assert_eq!(answer.status, 404, "{wrong}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signer_gets_a_copy_after_all_have_signed() {
    let app = TestApp::without_auto_vault().await;
    let envelope = app.sent_envelope().await;
    let url = envelope["sign_url"].as_str().unwrap();
    let copy = format!("{url}/copy.pdf");
    assert_ne!(
        form::open(&app, &copy).await.headers["content-type"],
        "application/pdf"
    );

    form::sign(&app, url).await;
    let page = form::open(&app, url).await;
    assert!(
        page.text().contains("Download your copy"),
        "{}",
        page.text()
    );

    let copy = form::open(&app, &copy).await;
    assert_eq!(copy.headers["content-type"], "application/pdf");

    let text = pdf::text(&copy.bytes);
    assert!(text.contains("Non-authoritative copy"), "{text}");
    assert!(text.contains("Jordan Lee"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signature_cannot_be_prefilled() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let mut body = envelope_body(&template["template_id"]);
    body["prefilled_data"] = json!({ "Buyer signature": "Jordan Lee" });
    let refused = app.post("/partner/envelopes", body).await;
    assert_eq!(refused.status, 422);
    assert_eq!(refused.json()["details"][0]["code"], "signature_field");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_have_the_organizations_brand_and_frame_ancestors() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let url = envelope["sign_url"].as_str().unwrap();
    let policy = |page: &crate::support::TestResponse| {
        let value = page.headers["content-security-policy"].to_str().unwrap();
        value.to_owned()
    };

    let plain = form::open(&app, url).await;
    assert!(policy(&plain).ends_with("frame-ancestors 'none'"));

    let (host, _) = url.split_once("/sign/").unwrap();
    let brand = |name: &str| format!("{host}/assets/brand/{}/{name}", app.org);
    assert_eq!(form::open(&app, &brand("logo")).await.status, 404);

    app.set_organization(&[
        r##"brand={"name":"Oak & Pine","color":"#0b57d0"}"##,
        r#"embed_origins=["https://app.oak.example","http://localhost:3000"]"#,
    ]);
    let page = form::open(&app, url).await;
    let ancestors = "frame-ancestors https://app.oak.example http://localhost:3000";
    assert!(policy(&page).ends_with(ancestors), "{}", policy(&page));
    assert!(page.text().contains("Oak &amp; Pine"));

    let style = brand("brand.css");
    let address = style.strip_prefix(host).unwrap();
    assert!(page.text().contains(address), "{}", page.text());

    let nothing = form::open(&app, &format!("{url}/nothing")).await;
    assert_eq!(nothing.status, 404);
    assert!(
        nothing.text().contains("Oak &amp; Pine"),
        "{}",
        nothing.text()
    );

    let style = form::open(&app, &brand("brand.css")).await;
    assert!(
        style.text().contains("--accent: #0b57d0"),
        "{}",
        style.text()
    );
}

/// Every combination of fields that a template allows can be completed by a signer.
#[tokio::test(flavor = "multi_thread")]
async fn every_allowed_template_can_be_signed() {
    let app = TestApp::start().await;
    let document = pdf::with_lines(&[
        "{{Locked;type=text;role=Buyer;required=true;readonly=true}}",
        "{{Locked signature;type=signature;role=Buyer;readonly=true}}",
        "{{Loose list;type=select;role=Buyer;required=true}}",
        "{{Loose choice;type=radio;role=Buyer;required=true}}",
        "{{Amount;type=number;role=Buyer;required=true}}",
        "and again {{Amount;type=number;role=Buyer;required=false;width=90}}",
        "{{Extra;type=checkbox;role=Buyer;required=false}}",
    ]);

    let texts = [("name", "Awkward")];
    let template = app
        .upload("/partner/templates", "application/pdf", &document, &texts)
        .await
        .data(200);
    let mut body = envelope_body(&template["template_id"]);
    body["prefilled_data"] = json!({ "Amount": 5 });

    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let (id, url) = (
        envelope["envelope_id"].as_str().unwrap(),
        envelope["sign_url"].as_str().unwrap(),
    );
    let page = form::open(&app, url).await.text();
    assert_eq!(page.matches("name=\"Amount\"").count(), 1, "{page}");

    let values = [
        ("Locked signature", "Jordan Lee"),
        ("Loose list", "anything"),
        ("Loose choice", "anything"),
        ("Amount", "7"),
        ("Extra", "false"),
        ("consent", form::TICK),
    ];
    let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let done = form::press(&app, url, "finish", &values).await;
    assert_eq!(done.status, 200, "{}", done.text());

    let again = form::press(&app, url, "finish", &values).await;
    assert!(again.text().contains("You have signed"), "{}", again.text());

    let events = app.events(id).await;
    let completed = events
        .iter()
        .find(|event| event["event_type"] == "envelope.completed")
        .unwrap();
    let value = |name: &str| {
        let fields = completed["data"]["fields"].as_array().unwrap();
        fields.iter().find(|field| field["name"] == name).unwrap()["value"].clone()
    };
    assert_eq!(value("Amount"), json!(7.0));
    assert_eq!(value("Extra"), "false");
}

#[tokio::test(flavor = "multi_thread")]
async fn consent_and_reason_survive_a_validation_error() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let url = envelope["sign_url"].as_str().unwrap();
    let values = [("consent", form::TICK), ("reason", "Perhaps not")];
    let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let wrong = form::press(&app, url, "finish", &values).await;
    assert_eq!(wrong.status, 422);

    let page = wrong.text();
    let checked = scraper::Selector::parse("#consent[checked]").unwrap();
    let document = scraper::Html::parse_document(&page);
    assert_eq!(document.select(&checked).count(), 1, "{page}");
    assert!(page.contains(">Perhaps not</textarea>"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_cannot_have_the_name_of_a_form_control() {
    let app = TestApp::start().await;
    for name in [
        "action",
        "consent",
        "reason",
        "document-version",
        "signature-style",
        "delegate-name",
        "delegate-email",
    ] {
        let tag = format!("{{{{{name};type=text;role=Buyer}}}}");
        let document = pdf::with_lines(&[tag.as_str()]);
        let texts = [("name", "Reserved")];
        let refused = app
            .upload("/partner/templates", "application/pdf", &document, &texts)
            .await;
        assert_eq!(refused.status, 422, "{name}");
        assert_eq!(refused.json()["details"][0]["code"], "reserved_name");
    }
}

/// A signer who has to wait for others sees no page of the document and gets no new link.
#[tokio::test(flavor = "multi_thread")]
async fn a_later_signer_sees_nothing_before_their_turn() {
    let app = TestApp::start().await;
    let (_, [_, later]) = app.sent_to_two().await;
    for page in ["pages/1.png", "pages/1.txt"] {
        let answer = form::open(&app, &format!("{later}/{page}")).await;
        assert_eq!(answer.status, 404, "{page}");
    }

    app.change(
        "update signing_link set expires_at = $1",
        "2020-01-01T00:00:00.000Z",
    )
    .await;
    let renewed = form::press(&app, &format!("{later}/renew"), "renew", &[]).await;
    assert!(
        renewed.text().contains("It's not your turn yet"),
        "{}",
        renewed.text()
    );
}

/// All signers signed in time, but the executed document arrives after the expiry.
#[tokio::test(flavor = "multi_thread")]
async fn a_completely_signed_envelope_does_not_expire() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let id = envelope["envelope_id"].as_str().unwrap();
    let unsigned = app.sent_envelope().await;
    let unsigned = unsigned["envelope_id"].as_str().unwrap();
    app.stop_working();
    form::sign(&app, envelope["sign_url"].as_str().unwrap()).await;

    app.change(
        "update envelope set status = 'viewed' where envelope_id = $1",
        id,
    )
    .await;
    app.change(
        "update room_submission set completed_at = null, signed_key = null where $1 = $1",
        "",
    )
    .await;

    app.change("delete from job where $1 = $1", "").await;
    let later = app.as_of(Duration::from_secs(40 * 86_400)).await;

    // Expiry runs in the order of creation: when this one has expired, the other was checked.
    later.wait_for(unsigned, "expired").await;
    let status = later
        .get(&format!("/partner/envelopes/{id}/status"))
        .await
        .data(200);
    assert_eq!(status["status"], "viewed");
}

/// A leaked link cannot be used to flood the signer's mailbox.
#[tokio::test(flavor = "multi_thread")]
async fn fresh_link_mails_to_a_signer_are_rate_limited() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let url = envelope["sign_url"].as_str().unwrap();
    let later = app.as_of(Duration::from_secs(2 * 3600)).await;
    let renew = async |app: &TestApp| form::press(app, &format!("{url}/renew"), "renew", &[]).await;
    assert_eq!(renew(&later).await.status, 200);

    later.wait_for_mails(1).await;
    let soon = renew(&later).await;
    assert_eq!(soon.status, 429);
    assert_eq!(soon.headers["retry-after"], "300");
    assert!(soon.text().contains("Check your inbox"), "{}", soon.text());

    let after = later.as_of(Duration::from_secs(2 * 3600 + 301)).await;
    assert_eq!(renew(&after).await.status, 200);
}

/// Digests of the document that each completed signer saw, in signing order.
async fn shown_digests(app: &TestApp, id: &str) -> Vec<String> {
    let custody = app.custody(id).await;
    let entries = custody["entries"].as_array().unwrap();
    entries
        .iter()
        .filter(|entry| entry["action"] == "signer.completed")
        .map(|entry| {
            let digest = entry["details"]["shown_sha256"].as_str();
            digest.expect("a completed signer has a digest").to_owned()
        })
        .collect()
}

/// The evidence names the document that a signer saw. Another one is never made from the signature.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_differs_from_what_a_signer_saw_is_not_made() {
    let app = TestApp::start().await;
    let (id, [first, second]) = app.sent_to_two().await;
    form::sign(&app, &first).await;
    app.execute(
        "update room_submitter set shown_sha256 = '00' || substr(shown_sha256, 3)
         where shown_sha256 is not null",
    )
    .await;

    form::sign(&app, &second).await;

    let failure = "select coalesce(max(last_error), '') from job where kind = 'room.execute'";
    let deadline = Instant::now() + Duration::from_secs(60);
    while app.text_of(failure).await.is_empty() {
        assert!(Instant::now() < deadline, "the document was made");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    let failure = app.text_of(failure).await;
    assert!(
        failure.contains("not the one that Buyer or Seller saw"),
        "{failure}"
    );

    let status = app.get(&format!("/partner/envelopes/{id}/status")).await;
    assert_ne!(status.data(200)["status"], "vaulted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_signer_sees_and_signs_the_entries_of_earlier_ones() {
    let app = TestApp::start().await;
    let (id, [first, second]) = app.sent_to_two().await;
    let blank = form::open(&app, &format!("{first}/pages/1.png")).await;
    let page = form::open(&app, &first).await;
    let mut values = form::filled(&page.text());
    for (name, value) in &mut values {
        if name == "First" {
            *value = "Ann B. Buyer".into();
        }
    }

    let signed = form::press(&app, &first, "finish", &values).await;
    assert_eq!(signed.status, 200, "{}", signed.text());

    let page = form::open(&app, &second).await;
    assert!(page.text().contains("class=\"earlier\""), "{}", page.text());

    let picture = form::open(&app, &format!("{second}/pages/1.png")).await;
    assert_eq!(picture.status, 200);
    assert_ne!(picture.bytes, blank.bytes);

    let text = form::open(&app, &format!("{second}/pages/1.txt"))
        .await
        .text();
    assert!(
        text.contains("First: Ann B. Buyer (Ann Buyer, Buyer)"),
        "{text}"
    );

    form::sign(&app, &second).await;
    app.wait_for(&id, "vaulted").await;

    let digests = shown_digests(&app, &id).await;

    // The first saw the blank document, the second also an entry.
    let value = hex::encode(Sha256::digest("Ann B. Buyer"));
    let lines = format!(
        "{}\nFirst: Ann B. Buyer (Ann Buyer, Buyer)\n{value}\n",
        digests[0]
    );
    let expected = hex::encode(Sha256::digest(lines));
    assert_eq!(digests.len(), 2);
    assert_eq!(digests[1], expected, "the document with its entries");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_changed_since_it_was_shown_is_not_signed() {
    let app = TestApp::start().await;
    let (id, links) = app.sent_to_two_at_once().await;

    // Both open the document, then one signs.
    let page = form::open(&app, &links[1]).await.text();
    let shown = page
        .split_once("name=\"document-version\" value=\"")
        .and_then(|(_, rest)| rest.split_once('"'))
        .map(|(version, _)| version.to_owned())
        .unwrap();

    form::sign(&app, &links[0]).await;
    let mut values = form::filled(&page);
    values.push(("document-version".to_owned(), shown));
    let refused = form::press(&app, &links[1], "finish", &values).await;
    assert_eq!(refused.status, 422);
    assert!(
        refused.text().contains("Another signer has signed"),
        "{}",
        refused.text()
    );

    let types = app.event_types(&id).await;
    assert!(
        !types.contains(&"envelope.completed".to_owned()),
        "{types:?}"
    );

    form::sign(&app, &links[1]).await;
    app.wait_for(&id, "vaulted").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn people_get_pages_and_programs_get_json() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let url = envelope["sign_url"].as_str().unwrap();
    let token = url.rsplit('/').next().unwrap();
    let ask = async |path: &str, accept: &str| {
        let request = Request::get(path).header("accept", accept);
        app.send(request.body(Body::empty()).unwrap()).await
    };

    let missing = [
        "/sign/".to_owned(),
        "/sign/unknown".to_owned(),
        format!("/sign/{token}/unknown"),
        "/files/unknown".to_owned(),
    ];
    for path in &missing {
        let page = ask(path, "text/html,application/xhtml+xml,*/*;q=0.8").await;
        assert_eq!(page.status, 404, "{path}");
        let kind = &page.headers["content-type"];
        assert_eq!(kind, "text/html; charset=utf-8", "{path}");
        assert!(page.text().contains("<h1>This"), "{path}: {}", page.text());
    }

    let start = ask("/", "text/html,application/xhtml+xml,*/*;q=0.8").await;
    assert_eq!(start.status, 200);
    for way in ["href=\"/console\"", "href=\"/docs\""] {
        assert!(start.text().contains(way), "{way}: {}", start.text());
    }

    assert_eq!(ask("/", "application/json").await.error(404), "Not found");
    let api = ask("/api/v2/unknown", "text/html").await;
    assert_eq!(api.error(404), "Not found");

    let icon = ask("/favicon.ico", "image/*").await;
    assert_eq!(icon.status, 200);
    assert_eq!(icon.headers["content-type"], "image/svg+xml");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_signing_a_page_names_who_is_missing_and_leads_back_to_the_sender() {
    let settings = OrgSettings {
        return_origins: vec!["https://app.example.com".to_owned().try_into().unwrap()],
        ..OrgSettings::default()
    };
    let app = TestApp::with(|_| {}, settings).await;
    let template = app.contract_template().await;

    let mut body = envelope_body(&template["template_id"]);
    for wrong in [
        "https://evil.example/",
        "https://app.example.com.evil.example/",
        "http://app.example.com/",
        "javascript:alert(1)",
    ] {
        body["return_url"] = wrong.into();
        let refused = app.post("/partner/envelopes", body.clone()).await;
        assert_eq!(refused.status, 422, "{wrong}");
        assert!(refused.text().contains("return_url"), "{}", refused.text());
    }

    body["return_url"] = "https://app.example.com/done?deal=17".into();
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let (id, url) = (
        envelope["envelope_id"].as_str().unwrap(),
        envelope["sign_url"].as_str().unwrap(),
    );
    let page = form::open(&app, url).await.text();
    let values = form::filled(&page);
    let signed = form::press(&app, url, "finish", &values).await.text();

    let back =
        format!("https://app.example.com/done?deal=17&amp;envelope_id={id}&amp;event=completed");
    assert!(signed.contains(&back), "{signed}");
    assert!(signed.contains("Continue to app.example.com"), "{signed}");

    // An origin that the organization has withdrawn meanwhile is no way back.
    app.set_organization(&["return_origins=[]"]);
    let page = form::open(&app, url).await.text();
    assert!(!page.contains("app.example.com"), "{page}");

    let (_, links) = app.sent_to_two().await;
    let page = form::open(&app, &links[0]).await.text();
    let signed = form::press(&app, &links[0], "finish", &form::filled(&page)).await;
    let signed = signed.text();
    assert!(signed.contains("Still to do their part:"), "{signed}");
    assert!(signed.contains("<li>Bob Seller</li>"), "{signed}");
    assert!(signed.contains("You can close this page"), "{signed}");
}

/// The pages are read when the template is made, so its first signer does not wait for that.
#[tokio::test(flavor = "multi_thread")]
async fn the_form_knows_its_pages_without_reading_the_document() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    assert_eq!(app.count("page_facts").await, 1);

    let later = app.as_of(std::time::Duration::from_secs(60)).await;
    for object in later.objects("") {
        let moved = object.with_extension("away");
        std::fs::rename(&object, moved).unwrap();
    }

    let page = form::open(&later, envelope["sign_url"].as_str().unwrap()).await;
    assert_eq!(page.status, 200, "{}", page.text());
    assert!(page.text().contains("Page 4 of 4"), "{}", page.text());
}
