//! Rules that two people change in the console: from the upload to the activation, and back.

use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};

use super::console::{Session, invited, path_of};
use crate::cli::rules_kit::guide;
use crate::support::browser::{EmulatedScreen, TestBrowser};
use crate::support::{TestApp, operator};

/// Builds the rules of the guide, which add a check.
fn built() -> tempfile::TempDir {
    let folder = guide();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let arguments = [
        "component",
        "build",
        &path("rules.toml"),
        &path("acme-rules.wasm"),
    ];
    operator(folder.path(), &arguments);

    folder
}

async fn active(app: &TestApp) -> String {
    let slots = app
        .get_with_bearer(app.web_admin(), "/component-slots")
        .await;
    let slots = slots.data(200);
    let slots = slots.as_array().unwrap().clone();
    let slot = slots.iter().find(|one| one["slot"] == "rules.compliance");
    slot.unwrap()["active"]["name"].as_str().unwrap().to_owned()
}

async fn requires_review(app: &TestApp) {
    let policy = json!({ "reviews_required": 1 });
    app.as_bearer(Method::PUT, app.web_admin(), "/component-policy", policy)
        .await
        .data(200);
}

/// Form of a request with the source of the rules.
const REQUEST: &str = "reason=Insurers&url=https%3A%2F%2Fgit.oak.example&commit=4f1c2ab";

/// Uploads the rules of the guide as Ben. Returns the path of requests to activate them.
async fn uploaded(app: &TestApp) -> String {
    let folder = built();
    let bytes = std::fs::read(folder.path().join("acme-rules.wasm")).unwrap();
    let token = app.person("ben@oak.example", "compliance");
    let component = app
        .upload_component(&token, "acme-rules", "1.0.0", &bytes)
        .await
        .data(201);
    let id = component["component_id"].as_str().unwrap();

    format!("/console/rules/rules.compliance/activate/{id}")
}

/// Returns the last part of the address to which an answer leads.
fn led_to(location: &str) -> String {
    location.rsplit('/').next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_people_change_the_rules_and_go_back() {
    let app = TestApp::on_a_socket().await;
    requires_review(&app).await;
    let folder = built();
    let file = folder.path().join("acme-rules.wasm");
    let ben = invited(&app, "ben@oak.example", "compliance");
    let browser = TestBrowser::open(EmulatedScreen::Desktop).await;
    browser
        .goto(&format!("{}{}", app.url(), path_of(&ben)))
        .await;

    browser.click("main button").await;
    browser.click("nav a[href='/console/rules']").await;
    browser.click("details:has(#file) summary").await;
    browser.type_into("#file", file.to_str().unwrap()).await;
    browser.type_into("#name", "acme-rules").await;
    browser.type_into("#version", "1.0.0").await;
    browser.click("form[action$='/components'] button").await;

    // The differences, before the change.
    browser
        .click("form:has(input[value='generated']) button")
        .await;
    browser.read("stricter").await;
    browser.picture("console-component-desktop").await;
    browser.is_accessible("a component").await;

    browser.type_into("#reason", "Insurers ask for it").await;
    browser
        .type_into("#url", "https://git.oak.example/rules")
        .await;
    browser.type_into("#commit", "4f1c2ab").await;

    browser.click("form[action*='/activate/'] button").await;
    browser.read("0 of 1 approvals").await;
    browser.read("Compare on past records").await;
    let change = led_to(&browser.url().await);
    browser.picture("console-change-desktop").await;
    browser.is_accessible("a change request").await;

    // The requester does not approve it.
    browser.click("input[value='approve']").await;
    browser.click("form[action$='/review'] button").await;
    browser.read("You requested this change").await;
    assert_eq!(active(&app).await, "holdfast-compliance");

    let cleo = invited(&app, "cleo@oak.example", "compliance");
    let phone = TestBrowser::open(EmulatedScreen::Phone).await;
    phone
        .goto(&format!("{}{}", app.url(), path_of(&cleo)))
        .await;
    phone.click("main button").await;
    phone.read("Change requests").await;

    phone
        .click(&format!("a[href='/console/changes/{change}']"))
        .await;
    phone.picture("console-change-phone").await;
    phone.is_accessible("a change request on a phone").await;
    let width = "return document.documentElement.scrollWidth <= innerWidth";
    assert_eq!(phone.run(width).await, true, "the request scrolls sideways");

    phone.click("input[value='approve']").await;
    phone.click("form[action$='/review'] button").await;
    phone.read("1 of 1 approvals").await;
    phone.click("form[action$='/apply'] button").await;
    phone.click("button.sure").await;
    phone.read("applied").await;
    assert_eq!(active(&app).await, "acme-rules");

    // And back, by the same two people.
    phone
        .goto(&format!("{}/console/rules/rules.compliance", app.url()))
        .await;
    phone.is_accessible("a slot").await;
    phone.picture("console-slot-phone").await;
    phone
        .click("details:has(form[action*='/roll-back/']) summary")
        .await;

    phone
        .type_into("input[name='reason']", "The insurer is gone")
        .await;
    phone.click("form[action*='/roll-back/'] button").await;
    phone.click("button.sure").await;
    phone.read("0 of 1 approvals").await;
    let back = led_to(&phone.url().await);
    browser
        .goto(&format!("{}/console/changes/{back}", app.url()))
        .await;

    browser.click("input[value='approve']").await;
    browser.click("form[action$='/review'] button").await;
    browser.read("1 of 1 approvals").await;
    browser.click("form[action$='/apply'] button").await;
    browser.click("button.sure").await;
    browser.read("applied").await;
    assert_eq!(active(&app).await, "holdfast-compliance");
}

/// Effective dates are on a calendar, month by month, and in a list that can be exported.
#[tokio::test(flavor = "multi_thread")]
async fn planned_rules_are_on_the_calendar() {
    let app = TestApp::start().await;
    let ben = Session::of(&app, "ben@oak.example", "compliance").await;
    let request = uploaded(&app).await;
    let planned = format!("{REQUEST}&effective_at=2099-01-15T05:00");
    let made = ben.post(&app, &request, &planned).await;
    let change = led_to(made.headers["location"].to_str().unwrap());
    let apply = format!("/console/changes/{change}/apply");
    assert_eq!(ben.post(&app, &apply, "sure=yes").await.status, 303);

    let day = "href=\"#day-2099-01-15\"";
    let entry = "id=\"day-2099-01-15\"";
    for (month, has_day, has_entry) in [
        ("2099-01", true, true),
        // Planned for a later month.
        ("2098-12", false, true),
        ("2099-02", false, false),
        // The current month.
        ("soon", false, true),
    ] {
        let page = format!("/console/rules?month={month}");
        let shown = ben.get(&app, &page).await;
        assert_eq!(shown.status, 200, "{month}");
        let text = shown.text();
        assert_eq!(text.contains(day), has_day, "{month}: {text}");
        assert_eq!(text.contains(entry), has_entry, "{month}: {text}");
    }

    let text = ben.get(&app, "/console/rules?month=2099-01").await.text();
    assert!(text.contains("<caption>January 2099</caption>"), "{text}");
    assert!(text.contains("/console/rules?month=2098-12#dates"));

    for (path, row) in [
        ("activations", ",rules.compliance,,cmp_"),
        ("components", ",rules.compliance,acme-rules,1.0.0,"),
        (
            "changes",
            ",applied,activate,rules.compliance,acme-rules,1.0.0,Insurers,https://git.oak.example,4f1c2ab,",
        ),
    ] {
        let table = ben.get(&app, &format!("/console/{path}.csv")).await.text();
        assert!(table.contains(row), "{path}: {table}");
    }
}

/// An old session neither approves nor applies a change, and an auditor only reads it.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_rules_is_confirmed_by_its_people() {
    let app = TestApp::start().await;
    requires_review(&app).await;
    let ben = Session::of(&app, "ben@oak.example", "compliance").await;
    let cleo = Session::of(&app, "cleo@oak.example", "compliance").await;
    let eva = Session::of(&app, "eva@oak.example", "auditor").await;
    let request = uploaded(&app).await;
    assert_eq!(eva.post(&app, &request, REQUEST).await.status, 403);

    let without = ben.post(&app, &request, "reason=Insurers").await;
    assert_eq!(without.status, 422, "{}", without.text());

    let odd = format!("{REQUEST}&effective_at=tomorrow");
    let odd = ben.post(&app, &request, &odd).await;
    assert_eq!(odd.status, 422, "{}", odd.text());

    let planned = format!("{REQUEST}&effective_at=2099-01-01T05:00");
    let made = ben.post(&app, &request, &planned).await;
    let change = led_to(made.headers["location"].to_str().unwrap());
    let page = format!("/console/changes/{change}");
    assert_eq!(eva.get(&app, &page).await.status, 200);

    let later = app.as_of(Duration::from_secs(601)).await;
    for (path, form) in [
        (format!("{page}/review"), "verdict=approve"),
        (format!("{page}/review"), "verdict=refuse&comment=No"),
        (format!("{page}/apply"), ""),
    ] {
        let asks = cleo.post(&later, &path, form).await;
        assert!(
            asks.text().contains("Is it you?"),
            "{path}: {}",
            asks.text()
        );
    }

    let shown = cleo.get(&later, &page).await.text();
    assert!(shown.contains("0 of 1 approvals"), "{shown}");

    // A comment needs no confirmation, and an empty verdict is none.
    let said = cleo
        .post(
            &later,
            &format!("{page}/review"),
            "verdict=comment&comment=Why%3F",
        )
        .await;
    assert_eq!(said.status, 303, "{}", said.text());

    let none = cleo.post(&later, &format!("{page}/review"), "").await;
    assert_eq!(none.status, 422);

    let unknown = cleo.post(&later, &format!("{page}/delete"), "").await;
    assert_eq!(unknown.status, 404);

    let withdrawn = ben
        .post(&later, &format!("{page}/withdraw"), "sure=yes")
        .await;
    assert_eq!(withdrawn.status, 303, "{}", withdrawn.text());
    assert!(ben.get(&later, &page).await.text().contains("withdrawn"));
}

/// The approval of someone who lost access does not count any more.
#[tokio::test(flavor = "multi_thread")]
async fn an_approval_ends_with_the_access_of_its_person() {
    let app = TestApp::start().await;
    requires_review(&app).await;
    let ben = Session::of(&app, "ben@oak.example", "compliance").await;
    let cleo = Session::of(&app, "cleo@oak.example", "compliance").await;
    let dan = Session::of(&app, "dan@oak.example", "compliance").await;
    let request = uploaded(&app).await;
    let dan_requests = dan.post(&app, &request, REQUEST).await;
    let change = led_to(dan_requests.headers["location"].to_str().unwrap());
    let page = format!("/console/changes/{change}");
    let review = format!("{page}/review");

    // Ben uploaded it.
    let refused = ben.post(&app, &review, "verdict=approve").await;
    assert_eq!(refused.status, 409, "{}", refused.text());

    let approved = cleo.post(&app, &review, "verdict=approve").await;
    assert_eq!(approved.status, 303, "{}", approved.text());
    assert!(
        ben.get(&app, &page)
            .await
            .text()
            .contains("1 of 1 approvals")
    );

    let user = cleo.user()["user_id"].as_str().unwrap();
    let arguments = ["user", "role", user, "auditor", "--org", app.org.as_str()];
    let changed: Value = operator(app.data.path(), &arguments);
    assert_eq!(changed["role"], "auditor");
    assert!(
        ben.get(&app, &page)
            .await
            .text()
            .contains("0 of 1 approvals")
    );

    let refused = ben.post(&app, &format!("{page}/apply"), "sure=yes").await;
    assert_eq!(refused.status, 409, "{}", refused.text());
}
