//! The console of senders: templates, one envelope, many, and their results.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};

use super::console::{Session, invited, path_of};
use super::passkeys::encoded;
use crate::service::bulk;
use crate::support::browser::{EmulatedScreen, TestBrowser};
use crate::support::{TestApp, envelope_body, form, pdf};

/// Signs a user in.
async fn signed_in(app: &TestApp, screen: EmulatedScreen, role: &str) -> TestBrowser {
    let user = invited(app, &format!("{role}@oak.example"), role);
    let browser = TestBrowser::open(screen).await;
    browser
        .goto(&format!("{}{}", app.url(), path_of(&user)))
        .await;
    browser.click("main button").await;
    browser.see("header nav").await;
    browser
}

/// Writes a file that a browser can choose.
fn file(app: &TestApp, name: &str, bytes: &[u8]) -> PathBuf {
    let path = app.data.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// From a PDF with tags to a sent envelope on a phone, and what its signer sees.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_document_is_sent_from_a_pdf() {
    let app = TestApp::on_a_socket().await;
    let tagged = pdf::with_lines(&[
        "Sale agreement",
        "Price: {{Price;type=number;role=Buyer}}",
        "{{Sign;type=signature;role=Buyer}}",
        "{{Countersign;type=signature;role=Dealer}}",
    ]);
    let path = file(&app, "agreement.pdf", &tagged);

    let phone = signed_in(&app, EmulatedScreen::Phone, "sender").await;
    phone.click("nav a[href='/console/send']").await;
    phone.type_into("#file", path.to_str().unwrap()).await;
    phone.picture("console-send-phone").await;
    phone.is_accessible("the choice of a document").await;
    phone.click("form[action='/console/drafts'] button").await;

    for (field, value) in [
        ("#name-0", "Jordan Lee"),
        ("#email-0", "jordan.lee@example.com"),
        ("#name-1", "Sam Dealer"),
        ("#email-1", "sam@oak.example"),
    ] {
        phone.type_into(field, value).await;
    }

    phone.picture("console-compose-phone").await;
    phone.is_accessible("the people of an envelope").await;
    phone.click(".actions button").await;

    phone.click("a[href*='/preview?role=Buyer']").await;
    phone.read("Sample Signer").await;
    phone
        .until("return document.querySelector('figure img').naturalWidth > 0")
        .await;
    phone.picture("console-preview-phone").await;
    phone.run("history.back()").await;
    phone.is_accessible("the fields of a draft").await;
    phone.click("a[href$='/details'].button").await;

    phone.type_into("#subject", "Your sale agreement").await;
    phone.type_into("#message", "Please call me first.").await;
    phone.click("details:has([id^=value-]) summary").await;
    phone.type_into("[id^=value-]", "18500").await;
    phone.click("details:has(#party_name) summary").await;
    phone.type_into("#party_name", "First Example Bank").await;
    phone.is_accessible("the details of a draft").await;
    phone.click(".actions button").await;

    phone.read("agreement").await;
    phone.picture("console-review-phone").await;
    phone.is_accessible("the review of a draft").await;
    phone.click(".actions button").await;

    phone
        .read("Sent. The first signer has an invitation.")
        .await;
    phone.read("Jordan Lee").await;

    let url = phone.url().await;
    let id = url.rsplit('/').next().unwrap().split('?').next().unwrap();
    let sent = app.get(&format!("/partner/envelopes/{id}")).await.data(200);
    assert_eq!(sent["status"], "sent");

    app.wait_until_idle().await;
    let mails = app.wait_for_mails(1).await;
    let subject = "Subject: Your sale agreement\r\n";
    let invitation = mails.iter().find(|mail| mail.contains(subject));
    let invitation = invitation.unwrap_or_else(|| panic!("{mails:?}"));
    assert!(invitation.contains("Please call me first."), "{invitation}");

    let found = app
        .get_with_bearer(app.web_admin(), "/envelopes?secured_party=first%20example")
        .await
        .data(200);
    assert_eq!(found[0]["envelope_id"], id);

    let links = app
        .get(&format!("/partner/envelopes/{id}/signing-links"))
        .await
        .data(200);
    let link = links["signers"][0]["embed_url"].as_str();
    let link = link.unwrap_or_else(|| panic!("{links}")).to_owned();
    let shown = form::open(&app, &link).await.text();
    assert!(shown.contains("18500"), "{shown}");
}

/// A PDF without fields gets them in the builder, which leads back.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_without_fields_gets_them_in_the_builder() {
    let app = TestApp::on_a_socket().await;
    let path = file(&app, "plain.pdf", &pdf::with_lines(&["A plain agreement"]));
    let desk = signed_in(&app, EmulatedScreen::Desktop, "sender").await;
    desk.click("nav a[href='/console/templates']").await;
    desk.type_into("#file", path.to_str().unwrap()).await;
    desk.type_into("#name", "Plain agreement").await;
    desk.click("form[action='/console/templates'] button").await;

    desk.read("There are no fields yet").await;
    desk.picture("console-template-new").await;
    desk.click("form[action$='/edit'] button").await;
    desk.click("#new-role").await;
    desk.type_into("#role-name", "Buyer").await;
    desk.click("#role-form button[type=submit]").await;
    desk.click("[data-kind=signature]").await;

    desk.click("#save").await;
    desk.read("Saved").await;
    desk.click("#done").await;
    desk.read("Preview as this signer").await;
    desk.picture("console-template").await;
    desk.is_accessible("a template").await;
    let template = desk.url().await;
    desk.click("form[action='/console/drafts/template'] button")
        .await;

    desk.see("#name-0").await;
    desk.dark().await;
    desk.is_accessible("the people of an envelope, dark").await;

    // Renamed, and deleted: nothing more is sent from it.
    desk.goto(&template).await;
    let change = "details.card:has(form[action$='/rename']) summary";
    desk.click(change).await;
    desk.run("document.getElementById('name').value = 'Short agreement'; return true")
        .await;
    desk.click("form[action$='/rename'] button").await;
    desk.read("Short agreement").await;

    desk.click(change).await;
    desk.click("form[action$='/delete'] button").await;
    desk.click("button.sure").await;
    desk.see("#file").await;
    assert!(!desk.text().await.contains("Short agreement"));
}

/// Clients come from a spreadsheet; the progress is live, and failures are tried again.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_sent_to_many_from_a_table() {
    let app = TestApp::on_a_socket().await;
    let template = bulk::notice(&app).await;
    let mut table = String::from("\u{feff}Customer name;E-Mail;Note\r\n");
    for number in 1..=12 {
        let _ = write!(
            table,
            "\"Client, {number}\";client{number}@elm.example;x\r\n"
        );
    }

    let path = file(&app, "clients.csv", table.as_bytes());
    let desk = signed_in(&app, EmulatedScreen::Desktop, "sender").await;
    desk.goto(&format!("{}/console/bulk", app.url())).await;
    desk.type_into("#name", "Notice 2027").await;
    let option = format!("#source option[value='{}']", template.as_str().unwrap());
    desk.click(&option).await;
    desk.picture("console-bulk").await;

    desk.is_accessible("the list of batches").await;
    desk.click("form[action='/console/bulk'] button").await;
    desk.read("no clients yet").await;
    desk.type_into("#file", path.to_str().unwrap()).await;
    desk.click("form[action$='/table'] button").await;
    desk.read("12 rows. Which columns count?").await;
    let chosen =
        "return [document.getElementById('name').value, document.getElementById('email').value]";
    assert_eq!(desk.run(chosen).await, json!(["0", "1"]));

    desk.picture("console-bulk-mapping").await;
    desk.is_accessible("the columns of a table").await;

    // The wrong column: the page asks again, and nothing is taken.
    desk.click("#email option[value='2']").await;
    desk.click("form[action$='/clients'] button").await;
    desk.read("No row has a name and an e-mail address in these columns.")
        .await;
    desk.click("#email option[value='1']").await;
    desk.click("form[action$='/clients'] button").await;
    desk.read("Client, 12").await;

    desk.click("form[action$='/submit'] button").await;
    desk.click("button.sure").await;
    desk.read("waiting: 0 being sent: 0 sent: 12").await;
    // A page that follows the end of the batch would be replaced while it is checked.
    app.wait_until_idle().await;
    let batch = desk.run("return location.href").await;
    desk.goto(batch.as_str().unwrap()).await;
    desk.picture("console-bulk-sent").await;
    desk.is_accessible("a batch").await;
    let found = app
        .get_with_bearer(app.web_admin(), "/envelopes?q=elm.example&limit=100")
        .await
        .data(200);
    assert_eq!(found.as_array().unwrap().len(), 12);
}

/// Lists are tables for spreadsheets, with the search of their page.
#[tokio::test(flavor = "multi_thread")]
async fn lists_are_exported_as_tables() {
    let app = TestApp::start().await;
    let template = bulk::notice(&app).await;
    let template = template.as_str().unwrap();
    let ada = Session::of(&app, "ada@oak.example", "owner").await;
    let form = encoded(&[("name", "All"), ("source", template)]);
    let made = ada.post(&app, "/console/bulk", &form).await;
    let batch = made.headers["location"].to_str().unwrap().to_owned();

    let table = "Name,Mail\n=Kim,kim@elm.example\n";
    let form = encoded(&[("table", table), ("name", "0"), ("email", "1")]);
    ada.post(&app, &format!("{batch}/clients"), &form).await;

    for (path, columns, row) in [
        (
            "/console/templates.csv",
            "template_id,name,roles,fields",
            template,
        ),
        (
            "/console/batches.csv",
            "batch_id,name,status,total_count",
            ",All,ready,1,0,",
        ),
        (
            &format!("{batch}/clients.csv"),
            "item_id,customer_id,customer_name,email,status",
            // No formula for the spreadsheet.
            ",'=Kim,kim@elm.example,pending,",
        ),
        (
            "/console/requests.csv?q=%2Fapi%2Fv2%2Fpartner%2Ftemplates",
            "request_id,at,method,route,path,status",
            ",POST,/api/v2/partner/templates,",
        ),
        (
            "/console/transfers.csv",
            "transfer_id,state,seller.name,buyer.name",
            "",
        ),
        (
            "/console/packages.csv",
            "package_id,name,items.name,kba_required",
            "",
        ),
        (
            "/console/control.csv?part=pledgee",
            "envelope_id,name,status,stage,originator.name",
            "",
        ),
        ("/console/control/keys.csv", "key_id,name,thumbprint", ""),
        (
            "/console/customers.csv?q=elm.example",
            "customer_id,name,email,company",
            "kim@elm.example",
        ),
        (
            "/console/keys.csv",
            "key_id,name,scopes,rate_limit_rpm",
            "envelopes:read; ",
        ),
        (
            "/console/receivers.csv",
            "endpoint_id,url,description,events",
            "",
        ),
        (
            "/console/users.csv",
            "user_id,email,role,status",
            ",ada@oak.example,owner,active,",
        ),
        (
            "/console/sessions.csv",
            "session_id,address,browser,created_at,seen_at",
            "ses_",
        ),
        (
            "/console/audit.csv",
            "id,at,actor,action,details",
            ",user.signed_in,",
        ),
    ] {
        let answer = ada.get(&app, path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.headers["content-type"], "text/csv; charset=utf-8");

        let text = answer.text();
        assert!(
            text.starts_with(columns) && text.contains(row),
            "{path}: {text}"
        );
    }

    let none = "/console/requests.csv?q=%2Fnothing";
    assert_eq!(ada.get(&app, none).await.text().lines().count(), 1);

    for unknown in ["bulk/bat_0/clients.csv", "receivers/whe_0/deliveries.csv"] {
        let answer = ada.get(&app, &format!("/console/{unknown}")).await;
        assert_eq!(answer.status, 404, "{unknown}");
    }
}

/// Tables that cannot be read are refused with the reason, and change nothing.
#[tokio::test(flavor = "multi_thread")]
async fn tables_that_cannot_be_read_are_refused() {
    let app = TestApp::start().await;
    let template = bulk::notice(&app).await;
    let ada = Session::of(&app, "ada@oak.example", "sender").await;
    let form = encoded(&[("name", "All"), ("source", template.as_str().unwrap())]);
    let made = ada.post(&app, "/console/bulk", &form).await;
    let batch = made.headers["location"].to_str().unwrap().to_owned();

    let many = "Name,Mail\n".to_owned() + &"A,a@elm.example\n".repeat(1_001);
    for (table, told) in [
        ("", "no rows"),
        ("Name,Mail\n", "no rows"),
        ("Name,Mail\nKim\n", "The table"),
        (many.as_str(), "at most 1000 clients"),
    ] {
        let form = encoded(&[("table", table), ("name", "0"), ("email", "1")]);
        let answer = ada.post(&app, &format!("{batch}/clients"), &form).await;
        assert!(answer.text().contains(told), "{table}: {}", answer.text());
    }

    let form = encoded(&[
        ("table", "Name,Mail\nKim,kim\n"),
        ("name", "0"),
        ("email", "1"),
    ]);
    let answer = ada.post(&app, &format!("{batch}/clients"), &form).await;
    assert!(
        answer.text().contains("No row has a name"),
        "{}",
        answer.text()
    );

    let page = ada.get(&app, &batch).await.text();
    assert!(page.contains("no clients yet"), "{page}");
}

/// Rows that name no client are listed with their reasons; they are corrected on the page or left out.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_rows_are_corrected_or_left_out() {
    let app = TestApp::start().await;
    let template = bulk::notice(&app).await;
    let ada = Session::of(&app, "ada@oak.example", "sender").await;
    let table = "Name,Mail\nKim,kim@elm.example\nSam,sam\n,tom@elm.example\n";
    let corrections = [
        ("row-3-email", "sam@elm.example"),
        ("row-4-name", "Tom, the third"),
    ];
    let left_out = [("wrong", "skip"), ("row-3-name", "Sam")];
    for (last, are_taken) in [(corrections, true), (left_out, false)] {
        let form = encoded(&[("name", "All"), ("source", template.as_str().unwrap())]);
        let made = ada.post(&app, "/console/bulk", &form).await;
        let batch = made.headers["location"].to_str().unwrap().to_owned();
        let fields = [("table", table), ("name", "0"), ("email", "1")];

        let path = format!("{batch}/clients");
        let listed = ada.post(&app, &path, &encoded(&fields)).await;
        let page = listed.text();
        assert_eq!(listed.status, 200, "{page}");
        for shown in [
            "Ready: 1. Not ready: 2",
            "Row 3",
            "This is no e-mail address.",
            "Row 4",
            "The name is missing.",
        ] {
            assert!(page.contains(shown), "{shown}: {page}");
        }
        let page = ada.get(&app, &batch).await.text();
        assert!(page.contains("no clients yet"), "{page}");

        let form = encoded(&[fields.as_slice(), &last].concat());
        let taken = ada.post(&app, &path, &form).await;
        assert_eq!(taken.status, 303, "{}", taken.text());

        let page = ada.get(&app, &batch).await.text();
        assert!(page.contains("kim@elm.example"), "{page}");
        for client in ["sam@elm.example", "Tom, the third"] {
            assert_eq!(page.contains(client), are_taken, "{client}: {page}");
        }
    }
}

/// Several envelopes are reminded and voided at once, after a page that names them; one that cannot be is named with the
/// reason.
#[tokio::test(flavor = "multi_thread")]
async fn several_envelopes_are_reminded_and_voided_at_once() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let body = envelope_body(&template["template_id"]);
        let made = app.post("/partner/envelopes", body).await.data(201);
        ids.push(made["envelope_id"].as_str().unwrap().to_owned());
    }

    let ada = Session::of(&app, "ada@oak.example", "sender").await;
    let chosen = |act: &str| {
        let names: Vec<String> = ids.iter().map(|id| format!("id-{id}")).collect();
        let mut fields = vec![
            ("act", act),
            ("sure", "yes"),
            ("reason", "Sold to someone else"),
        ];
        fields.extend(names.iter().map(|name| (name.as_str(), "yes")));
        encoded(&fields)
    };

    let path = "/console/envelopes/act";
    let boxes: Vec<String> = ids.iter().map(|id| format!("id-{id}=yes")).collect();
    let ask = async |act: &str| {
        let form = format!("act={act}&{}", boxes.join("&"));
        ada.post(&app, path, &form).await.text()
    };
    let asked = ask("remind").await;
    assert!(
        asked.contains("Remind 1 person") && asked.contains("Jordan Lee"),
        "{asked}"
    );
    let asked = ask("void").await;
    assert!(asked.contains("Void 3 documents"), "{asked}");
    let untouched = app.get(&format!("/partner/envelopes/{}", ids[0])).await;
    assert_eq!(untouched.data(200)["status"], "sent");

    let reminded = ada.post(&app, path, &chosen("remind")).await.text();
    assert!(reminded.contains("Done for 3 documents"), "{reminded}");

    app.post(&format!("/partner/envelopes/{}/void", ids[0]), json!({}))
        .await
        .data(200);
    let voided = ada.post(&app, path, &chosen("void")).await.text();
    assert!(voided.contains("Done for"), "{voided}");

    for id in &ids {
        let envelope = app.get(&format!("/partner/envelopes/{id}")).await.data(200);
        assert_eq!(envelope["status"], "voided");
    }

    let again = ada.post(&app, path, &chosen("remind")).await.text();
    assert!(
        again.contains("Done for 0 documents") && again.contains(&ids[1]),
        "{again}"
    );

    let nothing = ask("void").await;
    assert!(
        nothing.contains("None of the chosen documents allows this."),
        "{nothing}"
    );

    let id = format!("id-{}", ids[0]);
    let without = encoded(&[("act", "void"), ("sure", "yes"), (&id, "yes")]);
    assert_eq!(ada.post(&app, path, &without).await.status, 400);
}

/// Lists follow what happens, and a person without a mouse reminds a signer.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_live_and_works_by_keyboard_alone() {
    const ENTER: &str = "\u{e007}";

    let app = TestApp::on_a_socket().await;
    let user = invited(&app, "ada@oak.example", "sender");
    let desk = TestBrowser::open(EmulatedScreen::Desktop).await;
    desk.goto(&format!("{}{}", app.url(), path_of(&user))).await;
    desk.tab_to("main button").await;
    desk.keys(ENTER).await;
    desk.see("header nav").await;

    desk.tab_to("nav a[href='/console/envelopes']").await;
    desk.keys(ENTER).await;
    desk.see("#q").await;
    let sent = app.sent_envelope().await;
    let id = sent["envelope_id"].as_str().unwrap();

    // Without another request of the user.
    let link = format!("a[href='/console/envelopes/{id}']");
    desk.see(&link).await;
    desk.tab_to(&link).await;
    desk.keys(ENTER).await;
    desk.see("form[action$='/remind']").await;
    desk.tab_to("form[action$='/remind'] button").await;

    desk.keys(ENTER).await;
    desk.read("The signers get a new link.").await;

    // The page of the envelope follows, too.
    form::sign(&app, sent["sign_url"].as_str().unwrap()).await;
    app.wait_for(id, "vaulted").await;

    desk.read("in the vault").await;
}

/// Other pages follow their lists too; what someone is typing stays.
#[tokio::test(flavor = "multi_thread")]
async fn pages_follow_their_lists_and_keep_what_is_typed() {
    let app = TestApp::on_a_socket().await;
    let desk = signed_in(&app, EmulatedScreen::Desktop, "owner").await;
    desk.goto(&format!("{}/console/templates", app.url())).await;
    desk.read("No templates yet.").await;
    let template = app.contract_template().await;
    let id = template["template_id"].as_str().unwrap();
    desk.see(&format!("a[href='/console/templates/{id}']"))
        .await;

    desk.goto(&format!("{}/console/users", app.url())).await;
    desk.type_into("#email", "kim@elm.example").await;
    desk.run("document.activeElement.blur()").await;
    let invite = json!({ "email": "sam@oak.example", "role": "sender" });
    app.post_with_bearer(app.web_admin(), "/users", invite)
        .await
        .data(201);

    // Longer than the interval of the stream.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let typed = "return document.getElementById('email').value";
    assert_eq!(desk.run(typed).await, "kim@elm.example");

    desk.run("document.getElementById('email').value = ''")
        .await;
    let invite = json!({ "email": "tom@oak.example", "role": "sender" });
    app.post_with_bearer(app.web_admin(), "/users", invite)
        .await
        .data(201);
    desk.read("tom@oak.example").await;

    desk.read("sam@oak.example").await;
}

/// Packages are ordered by numbers; a record is found in the vault by its secured party and custodian.
#[tokio::test(flavor = "multi_thread")]
async fn packages_and_the_vault_are_shown() {
    let app = TestApp::on_a_socket().await;
    let id = app.vaulted_envelope().await;
    let second = app.contract_template().await;
    let desk = signed_in(&app, EmulatedScreen::Desktop, "owner").await;
    desk.goto(&format!("{}/console/packages", app.url())).await;
    desk.click("details summary").await;
    desk.type_into("#name-new", "Vehicle sale").await;

    let template = second["template_id"].as_str().unwrap();
    desk.type_into(&format!("#at-{template}-new"), "1").await;
    desk.click("form[action='/console/packages'] button").await;
    desk.read("Vehicle sale").await;
    desk.is_accessible("packages").await;
    desk.picture("console-packages").await;

    desk.click("nav a[href='/console/vault']").await;
    desk.read("First Example Bank").await;
    desk.picture("console-vault").await;
    desk.is_accessible("the vault").await;

    for (party, found) in [("example bank", true), ("another bank", false)] {
        desk.goto(&format!("{}/console/vault?party={party}", app.url()))
            .await;
        let link =
            format!("return !!document.querySelector('a[href=\"/console/envelopes/{id}\"]')");
        assert_eq!(desk.run(&link).await, Value::Bool(found), "{party}");
    }

    let ada = Session::of(&app, "eva@oak.example", "auditor").await;
    let table = ada.get(&app, "/console/vault.csv").await.text();
    assert!(
        table.contains("First Example Bank") && table.contains(&id),
        "{table}"
    );

    let custodian = table.lines().nth(1).unwrap().split(',').nth(4).unwrap();
    for (address, rows) in [(custodian, 2), ("nobody@oak.example", 1)] {
        let table = ada
            .get(&app, &format!("/console/vault.csv?custodian={address}"))
            .await
            .text();
        assert_eq!(table.lines().count(), rows, "{table}");
    }

    let found = app
        .as_bearer(
            Method::GET,
            app.web_admin(),
            "/envelopes?secured_party=example%20bank&status=vaulted",
            Value::Null,
        )
        .await
        .data(200);
    assert_eq!(found[0]["secured_party"]["name"], "First Example Bank");
}
