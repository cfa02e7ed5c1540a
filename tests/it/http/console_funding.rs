//! Fact maps, funding checks, required attachments and funding packs in the console.

use axum::http::Method;
use holdfast::domain::component::Slot;
use serde_json::{Value, json};

use super::console::Session;
use super::passkeys::encoded;
use crate::service::components::registry::variant;
use crate::service::funding;
use crate::support::pages::{forms_of, texts_of};
use crate::support::{TestApp, TestResponse, envelope_body, pdf};

/// Stores a paper contract with these lines, and returns its id.
async fn paper(app: &TestApp, lines: &[&str]) -> String {
    let mut body = envelope_body(&Value::Null);
    body["envelope_kind"] = "paper".into();
    let paper = app.post("/partner/envelopes", body).await.data(201);
    let id = paper["envelope_id"].as_str().unwrap().to_owned();
    let path = format!("/partner/envelopes/{id}/upload");
    let document = pdf::with_lines(lines);
    app.upload(&path, "application/pdf", &document, &[])
        .await
        .data(201);
    id
}

/// Returns the page that a form led to.
fn led_to(answer: &TestResponse) -> String {
    assert_eq!(answer.status, 303, "{}", answer.text());
    answer.headers["location"].to_str().unwrap().to_owned()
}

/// Returns the text of the map on a page.
fn text_on(page: &str) -> String {
    let forms = forms_of(page);
    let mut texts = forms.iter().filter_map(|form| form.control("text"));
    let text = texts.next().unwrap().value.clone().unwrap();
    text.trim_start_matches('\n').to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_map_is_begun_with_a_starter_tried_and_changed_in_the_console() {
    let app = TestApp::start().await;
    let contract = paper(&app, &["Amount Financed $21,500.00", "Deposit none"]).await;
    let sam = Session::of(&app, "sam@oak.example", "sender").await;
    let empty = sam.get(&app, "/console/fact-maps").await.text();
    assert!(empty.contains("There are no fact maps yet."), "{empty}");

    let entries = [
        ("name", "Loans"),
        ("template", ""),
        ("begin", "retail_installment"),
    ];
    let made = sam
        .post(&app, "/console/fact-maps", &encoded(&entries))
        .await;
    let page = led_to(&made);
    let shown = sam.get(&app, &page).await.text();
    for part in [
        "amount_financed",
        "money USD",
        "below “Amount Financed”",
        "Applies to: all contracts",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let list = sam.get(&app, "/console/fact-maps").await.text();
    assert!(
        list.contains("Loans") && list.contains("Version 1"),
        "{list}"
    );

    // A try shows the facts with their places, and stores nothing.
    let text = text_on(&shown);
    let deposit = r#"[[facts]]
name = "deposit"
kind = "money"
currency = "USD"
printed = [{ anchor = "Deposit", direction = "right_of" }]

[[facts]]"#;
    let changed = text.replacen("[[facts]]", deposit, 1);
    let send = async |act: &str, text: &str| {
        let entries = [
            ("text", text),
            ("envelope", contract.as_str()),
            ("act", act),
        ];
        sam.post(&app, &page, &encoded(&entries)).await
    };
    let tried = send("try", &changed).await;
    assert_eq!(tried.status, 200, "{}", tried.text());
    let tried = tried.text();
    for part in ["What was read", "21500.00", "#0a4cc0", "#c0102a"] {
        assert!(tried.contains(part), "{part}: {tried}");
    }
    assert_eq!(text_on(&tried), changed, "the entry stays");
    assert_eq!(app.count("contract_facts").await, 0);

    // The next version, and the first one again.
    led_to(&send("save", &changed).await);
    let second = sam.get(&app, &page).await.text();
    assert!(second.contains("<code>deposit</code>"), "{second}");
    let first = sam
        .post(&app, &format!("{page}/versions"), "number=1")
        .await;
    assert_eq!(led_to(&first), page);
    let third = sam.get(&app, &page).await.text();
    assert!(third.contains("Version 3"), "{third}");
    assert_eq!(text_on(&third), text);
    let unknown = sam
        .post(&app, &format!("{page}/versions"), "number=9")
        .await;
    assert_eq!(unknown.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn problems_of_a_map_are_shown_at_their_lines() {
    let app = TestApp::start().await;
    let sam = Session::of(&app, "sam@oak.example", "sender").await;
    let entries = [
        ("name", "Loans"),
        ("template", ""),
        ("begin", "retail_installment"),
    ];
    let made = sam
        .post(&app, "/console/fact-maps", &encoded(&entries))
        .await;
    let page = led_to(&made);
    let problems = async |text: &str| {
        let entries = [("text", text), ("act", "save")];
        let answer = sam.post(&app, &page, &encoded(&entries)).await;
        assert_eq!(answer.status, 422, "{}", answer.text());
        assert_eq!(text_on(&answer.text()), text, "the entry stays");
        texts_of(&answer.text(), ".problem").join("\n")
    };

    let broken = problems("name = 'Loans'\n\noops\n").await;
    assert!(broken.contains("line 3:"), "{broken}");
    let twice = "name = 'Loans'\napplies_to = { all = true }\nfacts = [\n  \
        { name = 'vin', kind = 'vin', declared = 'vin' },\n  \
        { name = 'vin', kind = 'vin' }\n]\n";
    let twice = problems(twice).await;
    assert!(twice.contains("line 5:"), "{twice}");
    assert!(twice.contains("has two facts with the name vin"), "{twice}");
    assert!(twice.contains("has no source"), "{twice}");
    let unknown =
        "name = 'Loans'\napplies_to = { all = true }\nfacts = [\n{ nme = 'vin', kind = 'vin' } ]\n";
    let unknown = problems(unknown).await;
    assert!(unknown.contains("line 4:"), "{unknown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_map_is_begun_with_the_fields_of_a_template() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let id = template["template_id"].as_str().unwrap();
    let sam = Session::of(&app, "sam@oak.example", "sender").await;
    let send = async |template: &str| {
        let entries = [
            ("name", "Loans"),
            ("template", template),
            ("begin", "fields"),
        ];
        sam.post(&app, "/console/fact-maps", &encoded(&entries))
            .await
    };
    let page = led_to(&send(id).await);
    let shown = sam.get(&app, &page).await.text();
    assert!(shown.contains("<code>signed_on</code>"), "{shown}");
    assert!(!shown.contains("buyer_signature"), "{shown}");

    let without = send("").await;
    assert_eq!(without.status, 422, "{}", without.text());
    assert!(
        without.text().contains("id=\"template-problem\""),
        "{}",
        without.text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_setting_of_funding_checks_is_chosen_in_the_console() {
    let app = TestApp::start().await;
    let dora = Session::of(&app, "dora@oak.example", "owner").await;
    let page = "/console/settings/funding";
    led_to(&dora.post(&app, page, "funding=enforce").await);
    let organization = app.web(Method::GET, "/organization", Value::Null).await;
    assert_eq!(organization.data(200)["funding"], "enforce");
    let shown = dora.get(&app, page).await.text();
    assert!(shown.contains("value=\"enforce\" selected"), "{shown}");

    let unknown = dora.post(&app, page, "funding=perhaps").await;
    assert_eq!(unknown.status, 422);
    assert!(
        unknown.text().contains("id=\"funding-problem\""),
        "{}",
        unknown.text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_shows_its_check_and_its_attachments_are_settled() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let dora = Session::of(&app, "dora@oak.example", "owner").await;
    let page = format!("/console/envelopes/{id}");
    let before = dora.get(&app, &page).await.text();
    assert!(!before.contains("Funding check"), "no checks: {before}");

    app.set_organization(&["funding=warn"]);
    let package = format!("{page}/files/funding-package.zip");
    assert_eq!(dora.get(&app, &package).await.status, 409);
    led_to(&dora.post(&app, &format!("{page}/funding-check"), "").await);
    let checked = dora.get(&app, &page).await.text();
    for part in [
        "something is missing",
        "12 CFR 1026.18(e)",
        "facts.missing",
        "<code>apr</code>",
    ] {
        assert!(checked.contains(part), "{part}: {checked}");
    }
    let zip = dora.get(&app, &package).await;
    assert_eq!(zip.status, 200, "{}", zip.text());
    assert!(zip.bytes.starts_with(b"PK"));

    // Attachments: a list, the file of one, and a waiver that asks first.
    let list = format!("{page}/stipulations");
    let lines = "insurance\nproof_of_income = Pay stub";
    led_to(
        &dora
            .post(&app, &list, &encoded(&[("stipulations", lines)]))
            .await,
    );
    let wrong = dora.post(&app, &list, "stipulations=Proof+of+income").await;
    assert_eq!(wrong.status, 422);
    let (file, waive) = (
        format!("{list}/insurance/file"),
        format!("{list}/proof_of_income/waive"),
    );
    let document = pdf::with_lines(&["Policy 12"]);
    let refused = dora.upload(&app, &file, b"\xff no document", &[]).await;
    assert!(refused.status.is_client_error(), "{}", refused.text());
    assert_eq!(app.count("envelope").await, 1, "nothing is stored");
    led_to(&dora.upload(&app, &file, &document, &[]).await);

    let without = dora.post(&app, &waive, "reason=").await;
    assert_eq!(without.status, 422, "{}", without.text());
    let asked = dora.post(&app, &waive, "reason=Employer+called").await;
    assert!(
        asked.text().contains("no longer required"),
        "{}",
        asked.text()
    );
    led_to(
        &dora
            .post(&app, &waive, "reason=Employer+called&sure=yes")
            .await,
    );
    let settled = dora.get(&app, &page).await.text();
    for part in [
        ">received<",
        ">waived<",
        "Employer called",
        "insurance: Retail instalment contract",
    ] {
        assert!(settled.contains(part), "{part}: {settled}");
    }
    let again = dora.post(&app, &waive, "reason=Twice&sure=yes").await;
    assert_eq!(again.status, 409, "{}", again.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pack_is_published_and_followed_in_the_console() {
    let app = TestApp::start().await;
    let (lender, _) = app.party().await;
    let lea = Session::at(&app, &lender, "lea@bank.example", "compliance").await;
    let none = lea.get(&app, "/console/funding").await.text();
    assert!(
        none.contains("Upload a component for rules.funding"),
        "{none}"
    );

    let token = app.token_at(&lender, "desk@bank.example", "admin");
    let rules = variant(Slot::Funding, "rules of the bank");
    let component = app
        .upload_component(&token, "bank-funding", "1.0.0", &rules)
        .await
        .data(201);
    let component = component["component_id"].as_str().unwrap();
    let pack = |description: &str, effective_at: &str| {
        encoded(&[
            ("name", "Retail"),
            ("component_id", component),
            ("description", description),
            ("effective_at", effective_at),
        ])
    };
    led_to(
        &lea.post(&app, "/console/funding", &pack("First terms", ""))
            .await,
    );
    let packs = app
        .get_with_bearer(&token, "/funding-packs")
        .await
        .data(200);
    let id = packs["packs"][0]["pack_id"].as_str().unwrap().to_owned();
    let act = |name: &str| format!("/console/funding/{id}/{name}");
    let later = pack("Shorter terms", "2031-01-01T00:00");
    led_to(&lea.post(&app, &act("versions"), &later).await);
    let wrong = pack("Shorter terms", "soon");
    assert_eq!(lea.post(&app, &act("versions"), &wrong).await.status, 422);

    // Only an invited organization sees it.
    let dora = Session::of(&app, "dora@oak.example", "owner").await;
    let unseen = dora.get(&app, "/console/funding").await.text();
    assert!(!unseen.contains("Retail"), "{unseen}");
    assert_eq!(
        dora.post(&app, &act("subscription"), "version=")
            .await
            .status,
        404
    );
    let unknown = lea
        .post(&app, &act("invitations"), "organization_id=org_1")
        .await;
    assert_eq!(unknown.status, 422);
    let invitation = encoded(&[("organization_id", app.org.as_str())]);
    led_to(&lea.post(&app, &act("invitations"), &invitation).await);

    let offered = dora.get(&app, "/console/funding").await.text();
    assert!(
        offered.contains("Retail") && offered.contains("planned for"),
        "{offered}"
    );
    for (form, state) in [
        ("version=1&act=follow", "with version 1."),
        ("version=&act=follow", "with its newest version in effect."),
    ] {
        led_to(&dora.post(&app, &act("subscription"), form).await);
        let page = dora.get(&app, "/console/funding").await.text();
        assert!(page.contains(state), "{state}: {page}");
    }
    led_to(
        &dora
            .post(&app, &act("subscription"), "version=&act=end")
            .await,
    );
    let ended = dora.get(&app, "/console/funding").await.text();
    assert!(
        !ended.contains("It decides about your contracts"),
        "{ended}"
    );
    let listed = app.get_with_bearer(app.web_admin(), "/funding-packs").await;
    assert_eq!(listed.data(200)["packs"][0]["subscribed"], json!(false));
}

#[tokio::test(flavor = "multi_thread")]
async fn maps_attachments_and_packs_of_another_organization_do_not_exist() {
    let app = TestApp::start().await;
    let (_, pack) = funding::lender(&app).await;
    let contract = paper(&app, &["Amount Financed $21,500.00"]).await;
    let dora = Session::of(&app, "dora@oak.example", "owner").await;
    let entries = encoded(&[
        ("name", "Loans"),
        ("template", ""),
        ("begin", "retail_installment"),
    ]);
    let map = led_to(&dora.post(&app, "/console/fact-maps", &entries).await);
    let text = text_on(&dora.get(&app, &map).await.text());
    let attachments = format!("/console/envelopes/{contract}/stipulations");
    led_to(
        &dora
            .post(&app, &attachments, "stipulations=insurance")
            .await,
    );

    let (elm, _) = app.party().await;
    let kim = Session::at(&app, &elm, "kim@elm.example", "owner").await;
    assert_eq!(kim.get(&app, &map).await.status, 404);
    let save = encoded(&[("text", text.as_str()), ("act", "save")]);
    for (path, form) in [
        (map.clone(), save.as_str()),
        (format!("{map}/versions"), "number=1"),
        (
            format!("/console/funding/{pack}/versions"),
            "component_id=cmp_1&description=Ours",
        ),
        (
            format!("/console/funding/{pack}/invitations"),
            "organization_id=org_1",
        ),
        (attachments.clone(), "stipulations="),
        (
            format!("{attachments}/insurance/waive"),
            "reason=Ours&sure=yes",
        ),
    ] {
        let answer = kim.post(&app, &path, form).await;
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
    }
    let (path, file) = (
        format!("{attachments}/insurance/file"),
        pdf::with_lines(&["Ours"]),
    );
    assert_eq!(kim.upload(&app, &path, &file, &[]).await.status, 404);

    // An own map reads no contract of others either.
    let own = led_to(&kim.post(&app, "/console/fact-maps", &entries).await);
    let tried = encoded(&[
        ("text", text.as_str()),
        ("envelope", contract.as_str()),
        ("act", "try"),
    ]);
    let tried = kim.post(&app, &own, &tried).await;
    assert_eq!(tried.status, 422, "{}", tried.text());
    assert!(!tried.text().contains("21500.00"), "{}", tried.text());
}

/// Where changes need approvals, the form of a waiver makes a request, which the sender may read.
#[tokio::test(flavor = "multi_thread")]
async fn a_waiver_becomes_a_request_where_others_have_to_agree() {
    let app = TestApp::start().await;
    let sent = app.sent_envelope().await;
    let id = sent["envelope_id"].as_str().unwrap();
    let list = format!("/partner/envelopes/{id}/stipulations");
    let required = json!({ "stipulations": [{ "kind": "insurance" }] });
    app.put(&list, required).await.data(200);
    let policy = json!({ "reviews_required": 1 });
    app.as_bearer(Method::PUT, app.web_admin(), "/component-policy", policy)
        .await
        .data(200);

    let sam = Session::of(&app, "sam@oak.example", "sender").await;
    let waive = format!("/console/envelopes/{id}/stipulations/insurance/waive");
    let asked = sam
        .post(&app, &waive, "reason=Dealer+has+it&sure=yes")
        .await;
    let page = led_to(&asked);
    assert!(page.starts_with("/console/changes/"), "{page}");
    let shown = sam.get(&app, &page).await.text();
    for part in ["waive_stipulation", id] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let present = app.get(&list).await.data(200);
    assert_eq!(present["stipulations"][0]["state"], "open");
}

/// The forms for packs make requests, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_pack_becomes_a_request_where_others_have_to_agree() {
    let app = TestApp::start().await;
    let cora = app.person("cora@oak.example", "compliance");
    let rules = variant(Slot::Funding, "rules of the bank");
    let component = app.upload_component(&cora, "bank-funding", "1.0.0", &rules);
    let component = component.await.data(201)["component_id"].clone();
    let policy = json!({ "reviews_required": 1 });
    app.as_bearer(Method::PUT, app.web_admin(), "/component-policy", policy)
        .await
        .data(200);

    let cleo = Session::of(&app, "cleo@oak.example", "compliance").await;
    let pack = [
        ("name", "Retail"),
        ("component_id", component.as_str().unwrap()),
        ("description", "Terms"),
    ];
    let page = led_to(&cleo.post(&app, "/console/funding", &encoded(&pack)).await);
    assert!(page.starts_with("/console/changes/"), "{page}");
    let shown = cleo.get(&app, &page).await.text();
    assert!(shown.contains("publish_funding_pack"), "{shown}");
    assert_eq!(app.count("funding_pack").await, 0);
}
