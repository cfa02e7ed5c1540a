//! What people come to the console for, in a browser.

use serde_json::{Value, json};

use super::console::{invited, invited_to, path_of};
use crate::support::browser::{EmulatedScreen, TestBrowser};
use crate::support::{TestApp, form};

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

/// A record leaves the vault by two people: the dealer asks, the lender in control agrees, each in their own console.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_is_released_by_two_people() {
    let app = TestApp::on_a_socket().await;
    let id = app.vaulted_envelope().await;
    let (lender, _) = app.party().await;
    let record = format!("/partner/control/records/{id}");
    let designate = json!({ "controller": lender });
    app.post(&format!("{record}/designate"), designate)
        .await
        .data(200);

    let dora = invited(&app, "dora@oak.example", "owner");
    let lea = invited_to(&app, &lender, "lea@bank.example", "controller");
    let dealer = signed_in(&app, EmulatedScreen::Desktop, &dora).await;
    let bank = signed_in(&app, EmulatedScreen::Phone, &lea).await;
    let page = format!("{}/console/control/records/{id}", app.url());
    bank.goto(&page).await;
    bank.click("form[action*='/control/accept/'] button").await;
    bank.read("Only a transfer can change that.").await;
    bank.is_accessible("the page before an act").await;
    bank.click("button.sure").await;

    bank.read("controlled env_").await;

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
    let status = async || {
        let path = format!("/partner/envelopes/{id}");
        app.get(&path).await.data(200)["status"].clone()
    };
    assert_eq!(status().await, "vaulted", "nobody releases alone");

    bank.goto(&page).await;
    bank.read("Second Example Bank").await;
    bank.picture("console-release-phone").await;
    bank.click("form[action*='/control/consent/'] button").await;
    bank.type_into("#typed", "Retail instalment contract").await;
    bank.click("button.sure").await;
    app.wait_for(&id, "vaulted_out").await;
    dealer
        .goto(&format!("{}/console/envelopes/{id}", app.url()))
        .await;

    dealer.read("handed over to Second Example Bank").await;
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

/// Each page loads with at most three requests besides pictures, and 100 KB.
#[tokio::test(flavor = "multi_thread")]
async fn pages_of_the_console_are_light() {
    let app = TestApp::on_a_socket().await;
    let id = app.vaulted_envelope().await;
    let olga = invited(&app, "olga@oak.example", "owner");
    let phone = signed_in(&app, EmulatedScreen::Phone, &olga).await;
    let template = app.contract_template().await["template_id"].clone();
    let template = template.as_str().unwrap();
    for path in [
        "".to_owned(),
        "/envelopes".into(),
        format!("/envelopes/{id}"),
        format!("/envelopes/{id}/decisions"),
        "/send".into(),
        "/templates".into(),
        format!("/templates/{template}"),
        "/packages".into(),
        "/bulk".into(),
        "/vault".into(),
        "/control".into(),
        "/control/keys".into(),
        "/transfers".into(),
        "/tapes".into(),
        format!("/control/records/{id}"),
        "/rules".into(),
        "/rules/rules.compliance".into(),
        "/developers".into(),
        "/requests".into(),
        "/audit".into(),
        "/usage".into(),
        "/users".into(),
        "/activity".into(),
        "/customers".into(),
        "/settings".into(),
        "/settings/brand".into(),
        "/settings/consent".into(),
        "/settings/retention".into(),
        "/sessions".into(),
    ] {
        phone.goto(&format!("{}/console{path}", app.url())).await;
        phone
            .until("return document.readyState === 'complete'")
            .await;
        let script = "const [page] = performance.getEntriesByType('navigation');
            const parts = performance.getEntriesByType('resource')
                .filter(one => !['img', 'image', 'other'].includes(one.initiatorType) && !one.name.includes('/live')
                    && !one.name.includes('icon.svg'));
            return [1 + parts.length, [page, ...parts].reduce((sum, one) => sum + one.encodedBodySize, 0),
                document.documentElement.scrollWidth <= innerWidth]";
        let weight = phone.run(script).await;
        let (requests, bytes) = (weight[0].as_u64().unwrap(), weight[1].as_u64().unwrap());
        assert!(
            requests <= 3 && bytes <= 100_000,
            "{path}: {requests} requests, {bytes} bytes"
        );

        assert_eq!(weight[2], true, "{path} scrolls sideways");
        phone.is_accessible(&path).await;
        let name = path
            .replace(&id, "one")
            .replace(template, "one")
            .replace('/', "-");

        phone.picture(&format!("console-page{name}-phone")).await;
    }
}
