//! The signing form on small screens: a phone, a phone turned, and a page at 400 % zoom.

use serde_json::{Value, json};

use crate::support::CONTRACT;
use crate::support::browser::{EmulatedScreen, TestBrowser};
use crate::support::{TestApp, envelope_body};

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
    let name = "return document.querySelector('.step.current [name]')?.name ?? null";
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

#[tokio::test(flavor = "multi_thread")]
async fn enter_goes_to_the_next_field_and_problems_leave_room_for_it() {
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

        // Without values and consent, everything is wrong.
        browser
            .run("document.querySelector('button[value=finish]').click()")
            .await;
        browser.see(".problems").await;
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
    browser.click(".next").await;
    browser.type_into("[name=City]", "Dayton").await;
    browser.click(".next").await;
    browser.type_into("[name=Signature]", "Jordan Lee").await;
    browser.click(".next").await;
    browser.read("Waiver\nNo").await;
    browser.read("Saved").await;
    // The answer is kept, so that the waiver is not asked again.
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
