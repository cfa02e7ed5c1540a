//! The signing form on small screens: a phone, a phone turned, and a page at 400 % zoom.

use serde_json::{Value, json};

use crate::support::CONTRACT;
use crate::support::browser::{EmulatedScreen, TestBrowser};
use crate::support::{TestApp, envelope_body, pdf};

const SMALL: [(EmulatedScreen, &str); 3] = [
    (EmulatedScreen::Phone, "phone"),
    (EmulatedScreen::Landscape, "landscape"),
    (EmulatedScreen::Zoomed, "zoomed"),
];

/// Visible height of the part of the panel that shows a field, in pixels.
const FORM_HEIGHT: &str = "const box = document.getElementById('form').getBoundingClientRect();
    return Math.min(box.bottom, innerHeight) - Math.max(box.top, 0)";

/// Sends a contract with fields on two pages, defined from the last page to the first.
async fn contract(app: &TestApp) -> (String, String) {
    let field = |name: &str, kind: &str, required: bool, page: u32, y: f64| {
        json!({
            "name": name, "type": kind, "role": "Buyer", "required": required,
            "placement": {
                "mode": "absolute",
                "areas": [{ "page": page, "x": 0.2, "y": y, "w": 0.3, "h": 0.03 }],
            },
        })
    };

    let fields = json!([
        field("Signature", "signature", true, 2, 0.6),
        field("City", "text", true, 2, 0.2),
        field("Waiver", "checkbox", false, 1, 0.5),
        field("Phone", "text", false, 1, 0.3),
        field("Name", "text", true, 1, 0.1),
    ]);
    let template = app.template(CONTRACT, &fields).await;
    let body = envelope_body(&template["template_id"]);
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let text = |name: &str| envelope[name].as_str().unwrap().to_owned();

    (text("envelope_id"), text("sign_url"))
}

/// Name of the field that the sheet shows.
async fn shown_field(browser: &TestBrowser) -> Value {
    let name = "return document.querySelector('.step.current [name]:not(button)')?.name ?? null";
    browser.run(name).await
}

/// Asserts that a press at the middle of the element reaches it.
async fn can_be_pressed(browser: &TestBrowser, css: &str) {
    let reached = format!(
        "const element = document.querySelector({css:?}); const box = element.getBoundingClientRect();
         const at = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
         return at !== null && element.contains(at) && box.bottom <= innerHeight + 1"
    );
    assert_eq!(browser.run(&reached).await, true, "{css} cannot be pressed");
}

/// On a turned phone the header is one row and leaves the window to the document.
#[tokio::test(flavor = "multi_thread")]
async fn the_header_takes_at_most_a_fifth_of_a_turned_phone() {
    let app = TestApp::on_a_socket().await;
    let (_, link) = contract(&app).await;
    let browser = TestBrowser::open(EmulatedScreen::Landscape).await;
    browser.goto(&link).await;
    browser.see(".sheet img").await;

    let share =
        "return document.querySelector('.top').getBoundingClientRect().height / innerHeight";
    let share = browser.run(share).await.as_f64().unwrap();
    assert!(share <= 0.2, "{share}");
    can_be_pressed(&browser, ".top a").await;
}

/// The initials of all places are given by one tap, and each place has them.
#[tokio::test(flavor = "multi_thread")]
async fn all_initials_are_given_at_once() {
    let app = TestApp::on_a_socket().await;
    let field = |name: &str, kind: &str, y: f64| {
        json!({
            "name": name, "type": kind, "role": "Buyer", "required": true,
            "placement": {
                "mode": "absolute",
                "areas": [{ "page": 1, "x": 0.2, "y": y, "w": 0.1, "h": 0.03 }],
            },
        })
    };
    let fields = json!([
        field("First", "initials", 0.1),
        field("Second", "initials", 0.2),
        field("Third", "initials", 0.3),
        field("Signature", "signature", 0.5),
    ]);
    let template = app.template(CONTRACT, &fields).await;
    let body = envelope_body(&template["template_id"]);
    let envelope = app.post("/partner/envelopes", body).await.data(201);

    let browser = TestBrowser::open(EmulatedScreen::Phone).await;
    browser.goto(envelope["sign_url"].as_str().unwrap()).await;
    browser
        .run("window.wrong = []; addEventListener('error', (event) => wrong.push(event.message))")
        .await;
    browser.click(".next").await;
    browser.read("Initial all 3 places").await;
    browser.click(".step.current .all").await;

    browser.read("3 of 4 required fields done").await;
    assert_eq!(shown_field(&browser).await, "Signature");
    assert_eq!(browser.run("return window.wrong").await, json!([]));
}

/// The tick stands with the button that signs. A missing one is named there before anything is sent.
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_consent_is_named_beside_the_button_that_signs() {
    for screen in [EmulatedScreen::Phone, EmulatedScreen::Desktop] {
        let app = TestApp::on_a_socket().await;
        let envelope = app.sent_envelope().await;
        let id = envelope["envelope_id"].as_str().unwrap();
        let browser = TestBrowser::open(screen).await;
        browser.goto(envelope["sign_url"].as_str().unwrap()).await;
        browser.see(".sheet img").await;
        browser.run("const date = document.querySelector(\"[name='Signed on']\"); date.value = '2026-11-21'; date.dispatchEvent(new Event('input', { bubbles: true }));").await;
        browser.run("const name = document.querySelector(\"[name='Buyer signature']\"); name.value = 'Jordan Lee'; name.dispatchEvent(new Event('input', { bubbles: true }));").await;
        browser
            .run("document.querySelector('.guide .next').click()")
            .await;

        browser.see("button[value=finish]").await;
        browser.click("button[value=finish]").await;
        browser
            .read("Your consent to signing electronically is needed")
            .await;
        let is_seen = "const box = document.querySelector('.consent .problem').getBoundingClientRect();
            return box.top >= 0 && box.bottom <= innerHeight && document.activeElement.id === 'consent'";
        assert_eq!(browser.run(is_seen).await, true);
        let envelope = app.get(&format!("/partner/envelopes/{id}")).await.data(200);
        assert_ne!(envelope["status"], "completed");

        browser.click("#consent").await;
        browser
            .until("return !document.querySelector('.consent .problem')")
            .await;
        browser.click("button[value=finish]").await;
        browser.read("Thank you").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn enter_goes_to_the_next_field_and_a_missing_one_is_named() {
    let app = TestApp::on_a_socket().await;
    for (screen, name) in SMALL {
        let (id, url) = contract(&app).await;
        let browser = TestBrowser::open(screen).await;
        browser.goto(&url).await;
        browser.see(".sheet img").await;
        browser.picture(&format!("{name}-document")).await;
        can_be_pressed(&browser, ".next").await;
        browser.click(".next").await;

        browser.type_into("[name=Name]", "Jordan Lee\u{e007}").await;
        browser.see("[name=Phone]").await;
        let envelope = app.get(&format!("/partner/envelopes/{id}")).await.data(200);
        assert_ne!(envelope["status"], "completed");

        // Without values and consent, the first missing field is named before anything is sent.
        browser
            .run("document.querySelector('button[value=finish]').click()")
            .await;
        browser.see(".step.current .problem").await;
        browser.picture(&format!("{name}-problems")).await;
        let height = browser.run(FORM_HEIGHT).await.as_f64().unwrap();
        assert!(height >= 96.0, "{name}: the form has {height} px");
        assert_eq!(shown_field(&browser).await, "City", "{name}");

        can_be_pressed(&browser, "[name=City]").await;
        can_be_pressed(&browser, ".next").await;
        browser.is_accessible(name).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_come_in_reading_order_and_a_waiver_asks_yes_or_no() {
    let app = TestApp::on_a_socket().await;
    let (id, url) = contract(&app).await;
    let browser = TestBrowser::open(EmulatedScreen::Phone).await;
    browser.goto(&url).await;
    browser.click(".next").await;
    browser.type_into("[name=Name]", "Jordan Lee").await;
    browser.click(".next").await;
    assert_eq!(
        shown_field(&browser).await,
        "Phone",
        "optional, and offered"
    );

    browser.read("Skip").await;
    browser.click(".next").await;
    browser.see(".election").await;
    browser.picture("phone-election").await;
    browser.click(".election label:last-child").await;
    browser.see("[data-title=Waiver][data-answered]").await;
    browser.click(".next").await;

    browser.type_into("[name=City]", "Dayton").await;
    browser.click(".next").await;
    browser.type_into("[name=Signature]", "Jordan Lee").await;
    browser.click(".next").await;
    browser.read("Waiver\nNo").await;
    browser.read("Saved").await;

    // The answer is kept, so the waiver is not asked again.
    browser.page.refresh().await.unwrap();
    browser.click(".next").await;
    browser.see("[name=Phone]").await;
    browser.click(".next").await;
    browser.click("#consent").await;
    can_be_pressed(&browser, "button[value=finish]").await;

    browser.click("button[value=finish]").await;
    browser.read("Thank you").await;
    app.wait_for(&id, "vaulted").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_review_shows_the_button_that_signs_and_the_pad_is_whole() {
    let app = TestApp::on_a_socket().await;
    for (screen, name) in SMALL {
        let (_, url) = contract(&app).await;
        let browser = TestBrowser::open(screen).await;
        browser.goto(&url).await;
        browser.see(".sheet img").await;
        browser
            .run("document.querySelector('a[data-field=\"4\"]').dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true }))")
            .await;

        browser.see("[name=Signature]").await;
        browser
            .run("[...document.querySelectorAll('[data-kind=signature] .ways button')].find((button) => button.textContent === 'Draw').click()")
            .await;
        browser.see("canvas").await;
        browser.picture(&format!("{name}-pad")).await;
        let inside = "const pad = document.querySelector('canvas').getBoundingClientRect();
            const form = document.getElementById('form').getBoundingClientRect();
            return pad.top >= form.top - 1 && pad.bottom <= Math.min(form.bottom, innerHeight) + 1";
        assert_eq!(
            browser.run(inside).await,
            true,
            "{name}: the pad is clipped"
        );

        let line = [(0.2, 0.6), (0.4, 0.3), (0.6, 0.7), (0.8, 0.4)];
        browser.draw("canvas", &line).await;
        browser.until("return document.querySelector('[data-kind=signature] input[type=hidden]').value.startsWith('data:image/png')").await;

        // Name and City are missing, so the way to the end leads back over them.
        browser.click(".next").await;
        browser.type_into("[name=Name]", "Jordan Lee").await;

        for optional in ["[name=Phone]", ".election"] {
            browser.click(".next").await;
            browser.see(optional).await;
        }

        browser.click(".next").await;
        browser.type_into("[name=City]", "Dayton").await;
        browser.click(".next").await;
        browser.see("#consent").await;
        browser.picture(&format!("{name}-review")).await;
        can_be_pressed(&browser, "button[value=finish]").await;
        browser.click("#consent").await;

        browser.click("button[value=finish]").await;
        browser.read("Thank you").await;
    }
}

/// A contract with fields of the buyer only, one below the other on the first page.
async fn with_fields(app: &TestApp, fields: &[(&str, &str, bool)]) -> (String, String) {
    let field = |(index, (name, kind, required)): (usize, &(&str, &str, bool))| {
        let y = 0.55 + 0.08 * index as f64;
        json!({
            "name": name, "type": kind, "role": "Buyer", "required": required,
            "placement": {
                "mode": "absolute",
                "areas": [{ "page": 1, "x": 0.2, "y": y, "w": 0.3, "h": 0.04 }],
            },
        })
    };

    let fields: Vec<Value> = fields.iter().enumerate().map(field).collect();
    let template = app.template(CONTRACT, &json!(fields)).await;
    let body = envelope_body(&template["template_id"]);
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let text = |name: &str| envelope[name].as_str().unwrap().to_owned();
    (text("envelope_id"), text("sign_url"))
}

#[tokio::test(flavor = "multi_thread")]
async fn one_signature_takes_three_taps_and_no_typing() {
    let app = TestApp::on_a_socket().await;
    let (id, url) = with_fields(&app, &[("Signature", "signature", true)]).await;
    let browser = TestBrowser::open(EmulatedScreen::Phone).await;
    browser.goto(&url).await;
    browser.see(".sheet img").await;
    browser.picture("phone-one-signature").await;
    browser.click(".next").await;

    browser.see("#consent").await;
    browser.picture("phone-one-signature-end").await;
    browser.is_accessible("the end of the form").await;
    browser.click("#consent").await;
    browser.click("button[value=finish]").await;
    browser.read("Thank you").await;
    app.wait_for(&id, "vaulted").await;
    assert!(pdf::fonts(&app.copy(&id).await).contains("Caveat"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signature_is_adopted_once_and_used_by_taps_on_further_marks() {
    let app = TestApp::on_a_socket().await;
    let fields = [
        ("First", "signature", true),
        ("Second", "signature", true),
        ("Initials", "initials", true),
        ("Optional", "signature", false),
    ];
    let (id, url) = with_fields(&app, &fields).await;

    let browser = TestBrowser::open(EmulatedScreen::Phone).await;
    browser.goto(&url).await;
    browser.see(".sheet img").await;
    let text_of = |mark: u32| {
        format!(
            "return document.querySelector('a[data-field=\"{mark}\"] text:not(.label)')?.textContent ?? null"
        )
    };

    let tap = |mark: u32| {
        format!(
            "const mark = document.querySelector('a[data-field=\"{mark}\"] rect');
             mark.scrollIntoView({{ block: 'center' }});
             const box = mark.getBoundingClientRect();
             document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2)
                 .dispatchEvent(new MouseEvent('click', {{ bubbles: true, cancelable: true }}))"
        )
    };

    // Nothing is signed before the signer has given a signature.
    browser.run(&tap(0)).await;
    browser.see("[name=First]").await;
    assert_eq!(browser.run(&text_of(0)).await, Value::Null);

    browser.see(".samples").await;
    browser.click(".samples label:nth-child(2)").await;
    browser.picture("phone-styles").await;
    browser.is_accessible("the styles").await;
    browser.read("Sign").await;
    browser.click(".next").await;
    assert_eq!(browser.run(&text_of(0)).await, "Jordan Lee");

    browser.click(".collapse").await;
    browser.run(&tap(1)).await;
    assert_eq!(browser.run(&text_of(1)).await, "Jordan Lee");

    browser.picture("phone-marks").await;

    // The initials are another signature, which has to be given once as well.
    browser.run(&tap(2)).await;
    browser.see("[name=Initials]").await;
    browser.click(".next").await;
    assert_eq!(browser.run(&text_of(2)).await, "JL");

    browser.see("[name=Optional]").await;
    browser.read("Sign as Jordan Lee").await;
    browser.read("Skip").await;
    browser.click(".next").await;
    browser.click("#consent").await;
    browser.click("button[value=finish]").await;
    browser.read("Thank you").await;

    app.wait_for(&id, "vaulted").await;
    let envelope = app.get(&format!("/partner/envelopes/{id}")).await.data(200);
    let values = envelope.to_string();
    assert!(!values.contains("Optional\":\"signed"), "{values}");
}

/// WCAG 2.2, 2.5.8 asks for 24 px, and 2.5.5 for 44 px.
#[tokio::test(flavor = "multi_thread")]
async fn marks_are_labelled_and_can_be_hit_with_a_finger() {
    let app = TestApp::on_a_socket().await;
    let fields = [
        ("Signature", "signature", true),
        ("Initials", "initials", true),
        ("Day", "date", false),
    ];
    let (_, url) = with_fields(&app, &fields).await;

    let browser = TestBrowser::open(EmulatedScreen::Phone).await;
    browser.goto(&url).await;
    browser.see(".sheet img").await;
    for label in ["Sign", "Initial", "Date"] {
        browser.read(label).await;
    }

    let hit = "const mark = document.querySelector('a[data-field=\"2\"] rect');
        mark.scrollIntoView({ block: 'center' });
        const box = mark.getBoundingClientRect();
        const at = (dx, dy) => document.elementFromPoint(box.x + box.width / 2 + dx, box.y + box.height / 2 + dy)
            ?.closest('a')?.getAttribute('href');
        return [at(0, 0), at(21, 0), at(0, 21), at(0, box.height / 2 + 40) ?? null]";
    assert_eq!(
        browser.run(hit).await,
        json!(["#field-2", "#field-2", "#field-2", null])
    );

    browser.picture("phone-labels").await;
}

/// Loads a document of 100 pages over a slow connection. The bytes are asserted; the time is shown
/// only (`cargo nextest run --no-capture`), because it depends on the machine.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_load_of_a_hundred_pages_is_light() {
    let app = TestApp::on_a_socket().await;
    let document = pdf::repeated(CONTRACT, 25);
    let field = json!([{
        "name": "Signature", "type": "signature", "role": "Buyer", "required": true,
        "placement": {
            "mode": "absolute",
            "areas": [{ "page": 1, "x": 0.2, "y": 0.85, "w": 0.3, "h": 0.04 }],
        },
    }]);
    let template = app.template(&document, &field).await;
    let body = envelope_body(&template["template_id"]);
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let url = envelope["sign_url"].as_str().unwrap();

    let browser = TestBrowser::open(EmulatedScreen::Phone).await;
    browser.slow().await;
    browser.goto(url).await;
    browser.until("return document.querySelector('.sheet img').complete && document.querySelector('.sheet img').naturalWidth > 0").await;

    // Requests that the script makes a moment later count as well.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let figures = "const all = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
        const first = all.find((entry) => entry.name.includes('/pages/1.png'));
        const bytes = all.reduce((sum, entry) => sum + entry.transferSize, 0);
        return { bytes, requests: all.length, page_1_after_ms: Math.round(first.responseEnd),
            largest: all.map((entry) => [entry.name.split('/').at(-1), entry.transferSize]) }";
    let figures = browser.run(figures).await;
    eprintln!("first load of 100 pages: {figures}");
    assert!(figures["bytes"].as_u64().unwrap() <= 150_000, "{figures}");

    browser.picture("phone-hundred-pages").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_can_be_read_as_text_that_fits_the_screen() {
    let app = TestApp::on_a_socket().await;
    let (_, url) = with_fields(&app, &[("Signature", "signature", true)]).await;
    for (screen, name) in [
        (EmulatedScreen::Phone, "phone"),
        (EmulatedScreen::Zoomed, "zoomed"),
    ] {
        let browser = TestBrowser::open(screen).await;
        browser.goto(&url).await;
        browser.click(".reading-view").await;
        browser.read("RETAIL INSTALLMENT SALE CONTRACT").await;
        browser.picture(&format!("{name}-reading")).await;
        browser.is_accessible("the reading view").await;
        let wide = "return document.documentElement.scrollWidth <= innerWidth";
        assert_eq!(browser.run(wide).await, true, "{name}: nothing is cut off");

        browser.click(".reading-view").await;
        browser.see(".sheet img").await;
    }
}

/// A tick shows a field and requires it, a total changes while the signer types, and a file is sent at once.
#[tokio::test(flavor = "multi_thread")]
async fn the_form_follows_its_rules_and_takes_a_file_on_a_phone() {
    let app = TestApp::on_a_socket().await;
    let field = |name: &str, kind: &str, y: f64, more: Value| {
        let mut field = json!({
            "name": name, "type": kind, "role": "Buyer",
            "placement": {
                "mode": "absolute",
                "areas": [{ "page": 1, "x": 0.2, "y": y, "w": 0.3, "h": 0.03 }],
            },
        });
        for (member, value) in more.as_object().unwrap() {
            field[member] = value.clone();
        }

        field
    };

    let fields = json!([
        field(
            "Price",
            "number",
            0.1,
            json!({ "required": true, "min": 100 })
        ),
        field("Trade-in", "checkbox", 0.2, json!({})),
        field(
            "Value",
            "number",
            0.3,
            json!({ "required": true, "condition": "Trade-in" })
        ),
        field(
            "Total",
            "number",
            0.4,
            json!({ "formula": "[Price] - [Value]" })
        ),
        field("Licence", "attachment", 0.5, json!({ "required": true })),
        field("Signature", "signature", 0.6, json!({ "required": true })),
    ]);

    let template = app.template(CONTRACT, &fields).await;
    let body = envelope_body(&template["template_id"]);
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let url = envelope["sign_url"].as_str().unwrap();
    let id = envelope["envelope_id"].as_str().unwrap();
    let licence = tempfile::Builder::new().suffix(".pdf").tempfile().unwrap();
    std::fs::write(licence.path(), pdf::with_lines(&["Driving licence 4711"])).unwrap();

    let browser = TestBrowser::open(EmulatedScreen::Phone).await;

    // The preview of the builder applies the rules to what its author tries.
    let token = app
        .template_session(template["template_id"].as_str().unwrap())
        .await;
    browser
        .goto(&format!("{}/builder#token={token}", app.url()))
        .await;

    // The button works once the fields are there.
    browser.see(".box").await;
    browser.click("#show-preview").await;
    let frame = browser.see("#preview iframe").await;
    frame.enter_frame().await.unwrap();
    let hidden = "return document.querySelector('[data-title=Value]').hidden";
    browser.see(".sheet img").await;
    assert_eq!(browser.run(hidden).await, true);

    browser.click(".next").await;
    browser.type_into("[name=Price]", "50\u{e007}").await;
    browser.read("At least 100").await;
    browser
        .run("document.querySelector('[data-title=\"Trade-in\"] .election label input').click()")
        .await;
    browser
        .until("return !document.querySelector('[data-title=Value]').hidden")
        .await;

    browser.picture("phone-preview-rules").await;
    browser.page.enter_parent_frame().await.unwrap();

    browser.goto(url).await;
    browser.see(".sheet img").await;
    browser.click(".next").await;
    browser.type_into("[name=Price]", "50\u{e007}").await;
    browser.read("At least 100").await;
    browser.picture("phone-limit").await;
    browser
        .run("document.querySelector('[name=Price]').value = ''")
        .await;

    browser.type_into("[name=Price]", "2000\u{e007}").await;
    browser.see(".step.current .election").await;
    assert_eq!(browser.run(hidden).await, true);

    browser
        .click(".step.current .election label:first-child")
        .await;
    browser.click(".next").await;
    browser.see(".step.current [name=Value]").await;
    browser.type_into("[name=Value]", "250\u{e007}").await;
    browser
        .until("return document.querySelector('[name=Total]').value === '1750.00'")
        .await;

    browser.see(".step.current[data-kind=attachment]").await;
    browser.picture("phone-attachment").await;
    browser.is_accessible("a field for a file").await;
    let path = licence.path().to_str().unwrap();
    browser
        .type_into("[data-kind=attachment] input[type=file]", path)
        .await;

    browser.read(".pdf").await;
    browser
        .until("return !document.querySelector('.attached').hidden")
        .await;
    browser.click(".next").await;
    browser.see(".step.current[data-kind=signature]").await;
    browser.click(".next").await;

    browser
        .until("return document.body.classList.contains('at-end')")
        .await;
    browser.picture("phone-rules-review").await;
    browser.click("#consent").await;
    browser.click("button[value=finish]").await;
    browser
        .until("return document.body.dataset.happening === 'completed'")
        .await;

    app.wait_for(id, "vaulted").await;
    let text = pdf::text(&app.copy(id).await);
    assert!(
        text.contains("1750.00") && text.contains("Driving licence 4711"),
        "{text}"
    );
}
