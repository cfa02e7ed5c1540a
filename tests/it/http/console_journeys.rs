//! What people come to the console for, in a browser.

use serde_json::{Value, json};

use super::console::{Session, invited, path_of};
use super::console_cells::ids_of;
use crate::support::browser::{EmulatedScreen, TestBrowser};
use crate::support::{TestApp, form, pdf};

/// Signs a user in with the link of an invitation.
async fn signed_in(app: &TestApp, screen: EmulatedScreen, user: &Value) -> TestBrowser {
    let browser = TestBrowser::open(screen).await;
    browser
        .goto(&format!("{}{}", app.url(), path_of(user)))
        .await;
    browser.click("main button").await;
    browser.see("header nav").await;
    browser
}

/// Why has Jordan not signed? From the first page, in two clicks.
#[tokio::test(flavor = "multi_thread")]
async fn why_a_person_has_not_signed_is_found_in_two_clicks() {
    let app = TestApp::on_a_socket().await;
    let sent = app.sent_envelope().await;
    let id = sent["envelope_id"].as_str().unwrap();
    form::open(&app, sent["sign_url"].as_str().unwrap()).await;
    let sam = invited(&app, "sam@oak.example", "sender");
    let phone = signed_in(&app, EmulatedScreen::Phone, &sam).await;
    phone
        .click(&format!("a[href='/console/envelopes/{id}']"))
        .await;

    phone.read("opened it").await;
    phone.read("Has not signed").await;
    phone.picture("console-why-phone").await;

    // The address was misspelt: corrected, and the link for another way than mail.
    phone.click("details:has(#email-0) summary").await;
    phone
        .run("document.getElementById('email-0').value = ''; return true")
        .await;
    phone.type_into("#email-0", "jordan.lee@elm.example").await;
    phone.click("form[action$='/signers/0'] button").await;

    phone.read("Corrected. Earlier links no longer work.").await;
    phone.click("form[action$='/links'] button").await;
    phone.see("#link-0").await;
    phone
        .see("nav a[href='/console/envelopes'][aria-current]")
        .await;
    phone.picture("console-links-phone").await;

    phone.is_accessible("the signing links").await;
    let link = phone
        .run("return document.getElementById('link-0').value")
        .await;
    let link = link.as_str().unwrap().to_owned();
    form::sign(&app, &link).await;
    app.wait_for(id, "vaulted").await;

    // What happened, from where, with which consent; and the files of the evidence.
    phone
        .goto(&format!("{}/console/envelopes/{id}", app.url()))
        .await;
    phone.read("Consent, version").await;
    phone.read("Custody record (PDF)").await;
    phone.picture("console-evidence-phone").await;

    phone.is_accessible("the evidence").await;
    for file in ["certificate.json", "custody-record.pdf", "completion.pdf"] {
        let script = format!(
            "const done = arguments[arguments.length - 1];
             fetch('/console/envelopes/{id}/files/{file}').then(async answer =>
                 done([answer.status, (await answer.arrayBuffer()).byteLength > 500]))"
        );
        let got = phone.page.execute_async(&script, Vec::new()).await.unwrap();
        assert_eq!(got, json!([200, true]), "{file}");
    }
}

/// The disclosure and the wording of signatures are set in the console, and signers see them.
#[tokio::test(flavor = "multi_thread")]
async fn the_text_that_signers_read_first_is_set_in_the_console() {
    let app = TestApp::on_a_socket().await;
    let olga = invited(&app, "olga@oak.example", "owner");
    let desk = signed_in(&app, EmulatedScreen::Desktop, &olga).await;
    let settings = format!("{}/console/settings", app.url());
    desk.goto(&format!("{settings}/disclosure")).await;

    for (field, value) in [
        ("contact_email", "documents@oak.example"),
        ("paper_fee", "0"),
        ("paper_currency", "usd"),
        ("withdrawal", "We then write by post."),
    ] {
        desk.type_into(&format!("#{field}"), value).await;
    }

    desk.click("[name=require_access]").await;
    desk.click("form[action$='/disclosure'] button").await;
    desk.read("We then write by post.").await;
    desk.goto(&format!("{settings}/wording")).await;
    desk.type_into("#wording_jurisdiction", "default").await;
    desk.type_into("#wording", "I sign this contract.").await;
    desk.click("form[action$='/wording'] button").await;
    desk.read("I sign this contract.").await;

    desk.picture("console-settings-disclosure").await;
    desk.is_accessible("the settings of the disclosure").await;

    let sent = app.sent_envelope().await;
    let page = form::open(&app, sent["sign_url"].as_str().unwrap()).await;
    let page = page.text();
    for shown in [
        "documents@oak.example",
        "The copy on paper is free of charge.",
        "We then write by post.",
        "I sign this contract.",
        "Open the document as PDF",
    ] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
}

/// Begins a draft with a document and its signer, and returns its id.
async fn draft(app: &TestApp, ada: &Session) -> String {
    let document = pdf::with_lines(&[
        "Price: {{Price;type=number;role=Buyer}}",
        "{{Sign;type=signature;role=Buyer}}",
    ]);
    let taken = ada.upload(app, "/console/drafts", &document, &[]).await;
    let to = taken.headers["location"].to_str().unwrap();
    let id = to.split('/').nth(3).unwrap().to_owned();

    let people = "name-0=Jordan+Lee&email-0=jordan.lee%40example.com&role-0=Buyer";
    let path = format!("/console/drafts/{id}/people");
    let saved = ada.post(app, &path, people).await;
    assert_eq!(saved.status, 303, "{}", saved.text());
    id
}

/// Returns the pages of a console with objects of each kind, below its address.
async fn all_pages(app: &TestApp) -> Vec<String> {
    let known = ids_of(app).await;
    let ada = Session::of(app, "ada@oak.example", "owner").await;
    let vaulted = app.vaulted_envelope().await;
    let draft = draft(app, &ada).await;
    let dates = "name=Term&date=2031-05-01&notice_days=60";
    let path = known.path("/envelopes/{id}/dates");
    assert_eq!(ada.post(app, &path, dates).await.status, 303);
    let filter = "name=Contracts&q=contract&tab=waiting";
    assert_eq!(ada.post(app, "/console/filters", filter).await.status, 303);

    let of_vaulted = [
        "/envelopes/{}",
        "/envelopes/{}/decisions",
        "/control/records/{}",
    ];
    let of_draft = ["people", "fields", "details", "review"];
    let of_others = [
        "/envelopes/{id}",
        "/templates/{id}",
        "/templates/{id}/open-links",
        "/bulk/{id}",
        "/components/{id}",
        "/changes/{id}",
        "/receivers/{id}",
        "/customers/{id}",
        "/rules/{slot}",
    ];
    let settings = [
        "general",
        "brand",
        "origins",
        "link-host",
        "reminders",
        "disclosure",
        "wording",
        "consent",
        "sign-on",
        "retention",
    ];
    let without_id = [
        "",
        "/envelopes",
        "/envelopes?q=contract&tab=waiting",
        "/send",
        "/templates",
        "/packages",
        "/bulk",
        "/imports",
        "/vault",
        "/control",
        "/control/keys",
        "/transfers",
        "/tapes",
        "/holds",
        "/retention",
        "/destructions",
        "/rules",
        "/developers",
        "/requests",
        "/audit",
        "/usage",
        "/users",
        "/activity",
        "/customers",
        "/settings",
        "/sessions",
    ];

    let mut pages = Vec::from(without_id.map(|path| format!("/console{path}")));
    pages.extend(settings.map(|part| format!("/console/settings/{part}")));
    pages.extend(of_vaulted.map(|path| format!("/console{}", path.replace("{}", &vaulted))));
    pages.extend(of_draft.map(|step| format!("/console/drafts/{draft}/{step}")));
    pages.extend(of_others.map(|path| known.path(path)));
    pages
}

/// Returns the name of a page's picture.
fn picture_name(path: &str, screen: &str) -> String {
    let below = path.strip_prefix("/console").unwrap();
    let parts = below.split(['/', '?', '&', '=']);
    let parts = parts.map(|part| match part.rsplit_once('_') {
        Some((_, id)) if id.len() == 26 => "one",
        _ => part,
    });
    let parts = parts.collect::<Vec<_>>().join("-");
    format!("console-page{parts}-{screen}")
}

/// Requests besides pictures, their bytes, whether nothing is wider than the screen, and how far parts of the page
/// moved while it loaded (Cumulative Layout Shift).
const LOADED: &str = "const done = arguments[arguments.length - 1];
    const [page] = performance.getEntriesByType('navigation');
    const parts = performance.getEntriesByType('resource')
        .filter(one => !['img', 'image', 'other'].includes(one.initiatorType) && !one.name.includes('/live')
            && !one.name.includes('icon.svg'));
    let shift = 0;
    new PerformanceObserver(list => {
        for (const move of list.getEntries()) if (!move.hadRecentInput) shift += move.value;
    }).observe({ type: 'layout-shift', buffered: true });
    setTimeout(() => done([1 + parts.length, [page, ...parts].reduce((sum, one) => sum + one.encodedBodySize, 0),
        document.documentElement.scrollWidth <= innerWidth, shift]), 100)";

/// Each page loads with at most three requests besides pictures, and 100 KB, and its parts stay where they are.
async fn every_page_is_light(screen: EmulatedScreen, screen_name: &str) {
    let app = TestApp::on_a_socket().await;
    let pages = all_pages(&app).await;
    let olga = invited(&app, "olga@oak.example", "owner");
    let browser = signed_in(&app, screen, &olga).await;
    let reads_both = std::env::var_os("HOLDFAST_SCREENS").is_some();
    for path in pages {
        browser.goto(&format!("{}{path}", app.url())).await;
        browser
            .until("return document.readyState === 'complete'")
            .await;

        let loaded = browser.page.execute_async(LOADED, Vec::new()).await;
        let loaded = loaded.unwrap();
        let (requests, bytes) = (loaded[0].as_u64().unwrap(), loaded[1].as_u64().unwrap());
        assert!(
            requests <= 3 && bytes <= 100_000,
            "{path}: {requests} requests, {bytes} bytes"
        );
        assert_eq!(loaded[2], true, "{path} scrolls sideways");
        let shift = loaded[3].as_f64().unwrap();
        assert!(shift <= 0.05, "{path}: parts move by {shift}");

        // The elements are the same on both screens, so `make test` has them read on one.
        if screen_name == "phone" || reads_both {
            browser.is_accessible(&path).await;
            browser.picture(&picture_name(&path, screen_name)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_the_console_are_light_on_a_phone() {
    every_page_is_light(EmulatedScreen::Phone, "phone").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_the_console_are_light_on_a_desktop() {
    every_page_is_light(EmulatedScreen::Desktop, "desktop").await;
}
