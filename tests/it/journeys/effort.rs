//! What people come to the console for: clicks, entries and seconds. The driver sees only the page. `make journeys` walks
//! each on a desktop and on a phone and prints the table; `make test` walks them on a phone, which has the narrower page.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::console::{invited, invited_to, path_of, requested_change};
use crate::support::browser::{Effort, EmulatedScreen, TestBrowser};
use crate::support::receiver::{WebhookReceiver, admit};
use crate::support::{CONTRACT, TestApp, form, pdf};

const SCREENS: [(EmulatedScreen, &str); 2] = [
    (EmulatedScreen::Phone, "phone"),
    (EmulatedScreen::Desktop, "desktop"),
];

/// Returns the screens to walk on, and their names: both if `HOLDFAST_SCREENS` is set.
fn screens() -> &'static [(EmulatedScreen, &'static str)] {
    match std::env::var_os("HOLDFAST_SCREENS") {
        Some(_) => &SCREENS,
        None => &SCREENS[..1],
    }
}

/// Signs a user in, and begins to count.
async fn opened(app: &TestApp, screen: EmulatedScreen, user: &Value) -> TestBrowser {
    let browser = TestBrowser::open(screen).await;
    browser
        .goto(&format!("{}{}", app.url(), path_of(user)))
        .await;
    browser.click("main button").await;
    browser.see("header nav").await;
    browser.begin();
    browser
}

/// Prints a row of the table, and checks the number of clicks of all people. The time is that of a slow machine, and
/// therefore only printed.
#[track_caller]
fn report(journey: &str, screen: &str, people: &[Effort], most: usize) {
    let clicks: usize = people.iter().map(|one| one.clicks).sum();
    let entries: usize = people.iter().map(|one| one.entries).sum();
    let longest = people.iter().map(|one| one.time).max();
    let seconds = longest.unwrap_or(Duration::ZERO).as_secs_f64();
    println!(
        "| {journey:<32} | {screen:<7} | {clicks:>2} clicks | {entries:>2} entries | {seconds:>5.1} s |"
    );
    assert!(clicks <= most, "{journey} on a {screen}: {clicks} clicks");
}

fn file(app: &TestApp, name: &str, bytes: &[u8]) -> PathBuf {
    let path = app.data.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Sends a document of the desk: with tags, or with a field that is placed on the way.
async fn send_a_pdf(app: &TestApp, browser: &TestBrowser, document: &[u8], has_tags: bool) {
    let path = file(app, "agreement.pdf", document);
    browser.click("nav a[href='/console/send']").await;
    browser.type_into("#file", path.to_str().unwrap()).await;
    browser.click("form[action='/console/drafts'] button").await;
    browser.type_into("#name-0", "Jordan Lee").await;
    browser
        .type_into("#email-0", "jordan.lee@example.com")
        .await;
    browser.click(".actions button").await;

    if !has_tags {
        browser.click("form[action$='/fields'] button").await;
        browser
            .until("const page = document.querySelector('.sheet img'); return page !== null && page.complete")
            .await;
        browser.click("[data-kind=signature]").await;
        browser.see(".box").await;
        browser.click("#save").await;
        browser.read("Saved").await;
        browser.click("#done").await;
    }

    browser.click("a[href$='/details'].button").await;
    browser.see("#subject").await;
    browser.click(".actions button").await;
    browser.read("jordan.lee@example.com").await;
    browser.click(".actions button").await;
    browser
        .read("Sent. The first signer has an invitation.")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pdf_of_the_desk_is_sent_in_twelve_clicks() {
    let tagged = pdf::with_lines(&["Sale agreement", "{{Sign;type=signature;role=Buyer}}"]);
    for &(screen, name) in screens() {
        for (journey, document, has_tags) in [
            ("a PDF with tags is sent", tagged.as_slice(), true),
            ("a PDF without fields is sent", CONTRACT, false),
        ] {
            let app = TestApp::on_a_socket().await;
            let sam = invited(&app, "sam@oak.example", "sender");
            let browser = opened(&app, screen, &sam).await;
            send_a_pdf(&app, &browser, document, has_tags).await;
            report(journey, name, &[browser.effort()], 12);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn why_jordan_has_not_signed_is_one_click_away() {
    for &(screen, name) in screens() {
        let app = TestApp::on_a_socket().await;
        let sent = app.sent_envelope().await;
        let id = sent["envelope_id"].as_str().unwrap();
        form::open(&app, sent["sign_url"].as_str().unwrap()).await;
        let sam = invited(&app, "sam@oak.example", "sender");

        let browser = opened(&app, screen, &sam).await;
        browser
            .click(&format!("a[href='/console/envelopes/{id}']"))
            .await;
        browser.read("opened it").await;
        browser.read("Has not signed").await;
        report("why Jordan has not signed", name, &[browser.effort()], 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paper_contract_is_vaulted_in_four_clicks() {
    for &(screen, name) in screens() {
        let app = TestApp::on_a_socket().await;
        let paper = json!({
            "customer_email": "jordan.lee@example.com", "customer_name": "Jordan Lee",
            "envelope_kind": "paper", "envelope_name": "A paper",
        });
        let paper = app.post("/partner/envelopes", paper).await.data(201);
        let id = paper["envelope_id"].as_str().unwrap();
        let signed = pdf::with_lines(&["Signed elsewhere"]);
        let path = format!("/partner/envelopes/{id}/upload");
        app.upload(&path, "application/pdf", &signed, &[])
            .await
            .data(201);
        let sam = invited(&app, "sam@oak.example", "sender");

        let browser = opened(&app, screen, &sam).await;
        browser.click("nav a[href='/console/envelopes']").await;
        browser
            .click(&format!("a[href='/console/envelopes/{id}']"))
            .await;
        browser
            .click("details:has(form[action$='/vault']) summary")
            .await;
        browser.click("form[action$='/vault'] button").await;
        app.wait_for(id, "vaulted").await;
        report("a paper is vaulted", name, &[browser.effort()], 4);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_is_added_and_tested_in_five_clicks() {
    for &(screen, name) in screens() {
        let app = TestApp::on_a_socket_over(admit).await;
        let receiver = WebhookReceiver::start().await;
        let olga = invited(&app, "olga@oak.example", "owner");

        let browser = opened(&app, screen, &olga).await;
        browser.click("nav a[href='/console/developers']").await;
        browser.click("details:has(#url) summary").await;
        browser.type_into("#url", &receiver.url).await;
        browser
            .click("form[action='/console/receivers'] button")
            .await;
        browser.read("This secret is shown this once.").await;
        browser.click("main a[href*='/console/receivers/']").await;
        browser.click("form[action$='/test'] button").await;
        browser.read("The receiver took the test event.").await;
        report(
            "a receiver is added and tested",
            name,
            &[browser.effort()],
            5,
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_rules_is_judged_in_three_clicks() {
    for &(screen, name) in screens() {
        let app = TestApp::on_a_socket().await;
        let id = requested_change(&app).await;
        let cleo = invited(&app, "cleo@oak.example", "compliance");

        let browser = opened(&app, screen, &cleo).await;
        browser
            .click(&format!("a[href='/console/changes/{id}']"))
            .await;
        browser.click("input[value='approve']").await;
        browser.type_into("#comment", "Read twice").await;
        browser.click("form[action$='/review'] button").await;
        browser.read("1 of 1 approvals").await;
        report("a change of rules is judged", name, &[browser.effort()], 3);
    }
}

/// A record leaves the vault by two people: the dealer asks, the lender in control agrees, each in their own console.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_is_released_by_two_people() {
    for &(screen, name) in screens() {
        let app = TestApp::on_a_socket().await;
        let id = app.vaulted_envelope().await;
        let (lender, _) = app.party().await;
        let designate = json!({ "controller": lender });
        let path = format!("/partner/control/records/{id}/designate");
        app.post(&path, designate).await.data(200);
        let dora = invited(&app, "dora@oak.example", "owner");
        let lea = invited_to(&app, &lender, "lea@bank.example", "controller");
        let dealer = opened(&app, screen, &dora).await;
        let bank = opened(&app, screen, &lea).await;

        bank.click("nav a[href='/console/control']").await;
        bank.click("a[href$='/control?part=named']").await;
        bank.click(&format!("a[href='/console/control/records/{id}']"))
            .await;
        bank.click("form[action*='/control/accept/'] button").await;
        bank.read("Only a transfer can change that.").await;
        bank.is_accessible("the page before an act").await;
        bank.click("button.sure").await;
        bank.read("controlled env_").await;
        let accepting = bank.effort();

        ask_for_the_release(&dealer, &id).await;
        let path = format!("/partner/envelopes/{id}");
        let status = app.get(&path).await.data(200)["status"].clone();
        assert_eq!(status, "vaulted", "nobody releases alone");

        bank.goto(&format!("{}/console", app.url())).await;
        bank.begin();
        bank.click("nav a[href='/console/control']").await;
        bank.click(&format!("a[href='/console/control/records/{id}']"))
            .await;
        bank.read("Second Example Bank").await;
        bank.picture(&format!("console-release-{name}")).await;
        bank.click("form[action*='/control/consent/'] button").await;
        bank.type_into("#typed", "Retail instalment contract").await;
        bank.click("button.sure").await;
        app.wait_for(&id, "vaulted_out").await;

        report("the lender accepts control", name, &[accepting], 5);
        let people = [dealer.effort(), bank.effort()];
        report("a record is released by two", name, &people, 12);
        dealer
            .goto(&format!("{}/console/envelopes/{id}", app.url()))
            .await;
        dealer.read("handed over to Second Example Bank").await;
    }
}

/// Fills in the form of the release, which waits for the controller then.
async fn ask_for_the_release(dealer: &TestBrowser, id: &str) {
    dealer.click("nav a[href='/console/vault']").await;
    dealer
        .click(&format!("a[href='/console/control/records/{id}']"))
        .await;
    dealer.click("details:has(#recipient_name) summary").await;
    for (field, value) in [
        ("recipient_name", "Robin Park"),
        ("recipient_organization", "Second Example Bank"),
        ("recipient_email", "robin.park@second.example"),
        ("purpose_of_release", "Assignment of the contract"),
        ("authorized_signature", "Dora Oak"),
    ] {
        dealer.type_into(&format!("#{field}"), value).await;
    }
    for box_name in [
        "acknowledge_authoritative_copy",
        "acknowledge_chain_of_custody",
    ] {
        dealer.click(&format!("input[name='{box_name}']")).await;
    }

    dealer
        .click("form[action*='/control/release/'] button")
        .await;
    dealer
        .type_into("#typed", "Retail instalment contract")
        .await;
    dealer.click("button.sure").await;
    dealer.read("Second Example Bank").await;
}
