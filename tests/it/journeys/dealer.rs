//! A dealer's day: a contract with a wrong sum is stopped, corrected, signed, vaulted and ready for funding; and the tape
//! of its lender has three wrong rows.

use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};

use crate::http::console::{invited, invited_to, path_of};
use crate::support::browser::{EmulatedScreen, TestBrowser};
use crate::support::{TestApp, envelope_body, pdf};

/// Numbers, vehicles and amounts of the contracts that the lender bought. The first is signed here.
const CONTRACTS: [(&str, &str, &str); 5] = [
    ("A-1", "1M8GDM9AXKP042788", "5,000.00"),
    ("A-2", "11111111111111111", "9,900.50"),
    ("A-3", "1FTFW1ET5DFC10312", "7,000.00"),
    ("A-4", "2HGES16575H591234", "12,250.00"),
    ("A-5", "3VWFE21C04M000001", "8,100.00"),
];

/// The lender's table: another amount in the second row, a mistyped VIN in the fourth, an amount that is two dollars off
/// in the fifth.
const TAPE: &str = "Loan,VIN,Amount\n\
    A-1,1M8GDM9AXKP042788,5000.00\n\
    A-2,11111111111111111,10900.50\n\
    A-3,1FTFW1ET5DFC10312,7000.00\n\
    A-4,2HGES16575H591243,12250.00\n\
    A-5,3VWFE21C04M000001,8102.00\n";

/// Makes a map of the facts that the built-in rules need. The total stands in a field, and the rest is printed.
async fn fact_map(app: &TestApp) {
    let printed = [
        ("contract_number", "text", "Contract Number"),
        ("apr", "percentage", "Annual Percentage Rate"),
        ("finance_charge", "money", "Finance Charge"),
        ("amount_financed", "money", "Amount Financed"),
        ("number_of_payments", "integer", "Number of Payments"),
        ("payment_amount", "money", "Payment Amount"),
        ("first_payment_date", "date", "First Payment"),
        ("contract_date", "date", "Contract Date"),
        ("vin", "vin", "VIN"),
        ("secured_party", "text", "Assignee"),
    ];
    let mut facts: Vec<Value> = printed
        .iter()
        .map(|(name, kind, anchor)| {
            let mut fact = json!({
                "name": name, "kind": kind, "printed": [{ "anchor": anchor, "direction": "right_of" }],
            });
            match *kind {
                "money" => fact["currency"] = "USD".into(),
                "date" => fact["date_order"] = "mdy".into(),
                _ => {}
            }
            fact
        })
        .collect();
    facts.push(json!({
        "name": "total_of_payments", "kind": "money", "currency": "USD", "fields": ["Total of Payments"],
    }));
    let map = json!({ "name": "Retail", "applies_to": { "all": true }, "facts": facts });
    app.web(Method::POST, "/fact-maps", map).await.data(201);
}

/// Makes the template of the contract, and returns its id. Its payments make 5520.00.
async fn template(app: &TestApp) -> String {
    let (number, vin, amount) = CONTRACTS[0];
    let document = pdf::with_lines(&[
        &format!("Contract Number {number}"),
        "Annual Percentage Rate 9.69%",
        "Finance Charge $520.00",
        &format!("Amount Financed ${amount}"),
        "Number of Payments 24",
        "Payment Amount $230.00",
        "First Payment 02/10/2026",
        "Contract Date 01/10/2026",
        &format!("VIN {vin}"),
        "Assignee First Example Bank",
        "{{Total of Payments;type=text;role=Buyer;required=true}}",
        "{{Sign;type=signature;role=Buyer;required=true}}",
    ]);
    let texts = [("name", "Retail contract")];
    let template = app.upload("/partner/templates", "application/pdf", &document, &texts);
    let template = template.await.data(200);
    template["template_id"].as_str().unwrap().to_owned()
}

/// Vaults a contract that was signed on paper, and returns its id.
async fn vaulted_paper(app: &TestApp, (number, vin, amount): (&str, &str, &str)) -> String {
    let mut body = envelope_body(&Value::Null);
    body["envelope_kind"] = "paper".into();
    let paper = app.post("/partner/envelopes", body).await.data(201);
    let id = paper["envelope_id"].as_str().unwrap().to_owned();
    let document = pdf::with_lines(&[
        &format!("Contract Number {number}"),
        &format!("VIN {vin}"),
        &format!("Amount Financed ${amount}"),
    ]);
    let path = format!("/partner/envelopes/{id}");
    app.upload(&format!("{path}/upload"), "application/pdf", &document, &[])
        .await
        .data(201);
    let vault = format!("{path}/vault-in-upload");
    app.post(&vault, json!({})).await.data(200);
    id
}

async fn entered(app: &TestApp, user: &Value) -> TestBrowser {
    let browser = TestBrowser::open(EmulatedScreen::Desktop).await;
    browser
        .goto(&format!("{}{}", app.url(), path_of(user)))
        .await;
    browser.click("main button").await;
    browser.see("header nav").await;
    browser
}

/// Prepares a draft of the template up to its review.
async fn prepared(browser: &TestBrowser, template: &str, total: &str) {
    browser.click("nav a[href='/console/send']").await;
    browser
        .click(&format!("button[name='template'][value='{template}']"))
        .await;
    browser.type_into("#name-0", "Jordan Lee").await;
    browser
        .type_into("#email-0", "jordan.lee@example.com")
        .await;
    browser.click(".actions button").await;
    browser.click("a[href$='/details'].button").await;
    browser
        .click("details:has(input[id^='value-']) summary")
        .await;
    browser.type_into("input[id^='value-']", total).await;
    browser.click("details:has(#party_name) summary").await;
    browser.type_into("#party_name", "First Example Bank").await;
    browser.click(".actions button").await;
    browser.read("jordan.lee@example.com").await;
}

/// Reads an address again until its page has a text.
async fn read_in_time(browser: &TestBrowser, url: &str, text: &str) {
    for _ in 0..200 {
        browser.goto(url).await;
        if browser.text().await.contains(text) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{url} never has {text:?}: {}", browser.text().await);
}

/// Signs a contract in the signing form.
async fn signed(app: &TestApp, browser: &TestBrowser, id: &str) {
    let links = format!("/partner/envelopes/{id}/signing-links");
    let links = app.get(&links).await.data(200);
    let url = links["signers"][0]["embed_url"].as_str().unwrap();
    browser.goto(url).await;
    browser.see(".sheet img").await;
    browser
        .run(
            "const name = document.querySelector('[name=Sign]'); name.value = 'Jordan Lee';
            name.dispatchEvent(new Event('input', { bubbles: true }));",
        )
        .await;
    browser
        .until(
            "const finish = document.querySelector('button[value=finish]');
            if (finish !== null && finish.offsetParent !== null) return true;
            document.querySelector('.guide .next')?.click(); return false;",
        )
        .await;
    browser.click("#consent").await;
    browser.click("button[value=finish]").await;
    browser.read("Thank you").await;
    app.wait_for(id, "vaulted").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dealers_day() {
    let app = TestApp::on_a_socket().await;
    fact_map(&app).await;
    let template = template(&app).await;
    let dealer = entered(&app, &invited(&app, "dora@oak.example", "owner")).await;
    let at = |path: &str| format!("{}/console{path}", app.url());

    // The dealer has contracts stopped that no lender would fund.
    dealer.goto(&at("/settings/funding")).await;
    dealer
        .run("document.querySelector('#funding').value = 'enforce'")
        .await;
    dealer
        .click("form[action$='/settings/funding'] button")
        .await;
    dealer
        .until("return document.querySelector('#funding option[selected]')?.value === 'enforce'")
        .await;

    // A wrong sum is refused before the sending, with its place.
    prepared(&dealer, &template, "5,250.00").await;
    dealer.click(".actions button").await;
    dealer.read("Why it was not sent").await;
    dealer.read("24 × 230.00 = 5520.00").await;
    dealer
        .until("return document.querySelectorAll('svg rect.mark').length > 0")
        .await;
    dealer.picture("console-funding-refused").await;
    dealer.click(".actions a[href$='/details']").await;
    dealer.see("input[id^='value-']").await;
    dealer
        .run("document.querySelector(\"input[id^='value-']\").value = ''")
        .await;
    dealer.type_into("input[id^='value-']", "5,520.00").await;
    dealer.click(".actions button").await;
    dealer.read("jordan.lee@example.com").await;
    dealer.click(".actions button").await;
    dealer
        .read("Sent. The first signer has an invitation.")
        .await;
    let url = url::Url::parse(&dealer.url().await).unwrap();
    let id = url.path().rsplit('/').next().unwrap().to_owned();

    // Signed, vaulted, and ready for the lender.
    signed(&app, &dealer, &id).await;
    let page = at(&format!("/envelopes/{id}"));
    read_in_time(&dealer, &page, "ready for funding").await;
    dealer.see("a[href$='/files/funding-package.zip']").await;
    dealer.picture("console-funding-ready").await;

    // The lender that controls five contracts compares its own table with them.
    let (lender, key) = app.party().await;
    let mut bought = vec![id];
    for contract in CONTRACTS.into_iter().skip(1) {
        bought.push(vaulted_paper(&app, contract).await);
    }
    for id in &bought {
        let record = format!("/partner/control/records/{id}");
        let designate = json!({ "controller": lender });
        app.post(&format!("{record}/designate"), designate)
            .await
            .data(200);
        app.post_as(&key, &format!("{record}/accept"), json!({}))
            .await
            .data(200);
    }
    let bank = entered(
        &app,
        &invited_to(&app, &lender, "lea@bank.example", "owner"),
    )
    .await;
    has_three_wrong_rows(&app, &bank).await;
}

/// Uploads the tape, and compares the rows on its page with the wrong ones.
async fn has_three_wrong_rows(app: &TestApp, bank: &TestBrowser) {
    bank.goto(&format!("{}/console/tapes", app.url())).await;
    bank.run("document.querySelector('details:has(#map)').open = true")
        .await;
    bank.type_into("#map", "Line 12").await;
    let columns = "Loan = contract_number\nVIN = vin\nAmount = amount_financed";
    // The form begins with an example.
    bank.run("document.querySelector('#columns').value = ''")
        .await;
    bank.type_into("#columns", columns).await;
    bank.click("form[action='/console/tapes/maps'] button")
        .await;

    let tape = app.data.path().join("tape.csv");
    std::fs::write(&tape, TAPE).unwrap();
    bank.until("return document.querySelector('#map_name option[value=\"Line 12\"]') !== null")
        .await;
    bank.type_into("#file", tape.to_str().unwrap()).await;
    bank.type_into("#name", "Line 12").await;
    bank.run("document.querySelector('#map_name').value = 'Line 12'")
        .await;
    bank.click("form[action='/console/tapes'] button").await;
    bank.until("return location.pathname.startsWith('/console/tapes/tap_')")
        .await;
    let page = bank.url().await;
    read_in_time(bank, &page, "Compared").await;
    bank.read("2 of 5 rows agree with their contracts").await;
    let lines = "return [...document.querySelectorAll('section.card ul.rows > li')]
        .map((row) => row.querySelector('p strong').textContent)";
    let lines = bank.run(lines).await;
    assert_eq!(lines, json!(["Row 3", "Row 5", "Row 6"]));
    for value in [
        "10900.50",
        "9900.50",
        "2HGES16575H591243",
        "8102.00",
        "page 1",
    ] {
        bank.read(value).await;
    }
    bank.picture("console-tape-three-rows").await;
}
