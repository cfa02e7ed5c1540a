//! Filters that users save for the list of envelopes.

use super::console::Session;
use crate::support::TestApp;

const LIST: &str = "/console/envelopes";

/// Saves a filter, and returns the status of the answer with its page.
async fn save(app: &TestApp, session: &Session, name: &str, conditions: &str) -> (u16, String) {
    let mut form = url::form_urlencoded::Serializer::new(conditions.to_owned());
    form.append_pair("name", name);
    let answer = session.post(app, "/console/filters", &form.finish()).await;
    (answer.status.as_u16(), answer.text())
}

async fn a_filter_belongs_to_its_user(app: TestApp) {
    let ada = Session::of(&app, "ada@oak.example", "sender").await;
    let list = ada.get(&app, LIST).await.text();
    assert!(!list.contains("Save this filter"), "{list}");
    let list = ada.get(&app, "/console/envelopes?q=elm&tab=waiting").await;
    assert!(list.text().contains("Save this filter"));

    // The list of the filter is shown, without conditions that nothing reads.
    let form = "name=Elm+%26+waiting&q=elm&tab=waiting&status=unknown&from=soon";
    let saved = ada.post(&app, "/console/filters", form).await;
    assert_eq!(saved.status, 303, "{}", saved.text());
    let address = "/console/envelopes?q=elm&tab=waiting";
    assert_eq!(saved.headers["location"], address);
    let link = "href=\"/console/envelopes?q=elm&amp;tab=waiting\" aria-current=\"page\"";
    let list = ada.get(&app, address).await.text();
    assert!(
        list.contains(link) && list.contains("Elm &amp; waiting"),
        "{list}"
    );
    assert!(!list.contains("Save this filter"), "{list}");

    // Another user of the organization, and one of another with the same address, have filters of their own.
    let olga = Session::of(&app, "olga@oak.example", "owner").await;
    let (elm, _) = app.party().await;
    let eva = Session::at(&app, &elm, "ada@oak.example", "sender").await;
    for other in [&olga, &eva] {
        let list = other.get(&app, LIST).await.text();
        assert!(!list.contains("Elm &amp; waiting"), "{list}");
        let removed = "name=Elm+%26+waiting";
        let removed = other.post(&app, "/console/filters/remove", removed).await;
        assert_eq!(removed.status, 303);
    }

    let list = ada.get(&app, LIST).await.text();
    assert!(list.contains("Elm &amp; waiting"), "{list}");
    let form = "name=Elm+%26+waiting";
    let removed = ada.post(&app, "/console/filters/remove", form).await;
    assert_eq!(removed.status, 303);
    let list = ada.get(&app, LIST).await.text();
    assert!(!list.contains("Elm &amp; waiting"), "{list}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_belongs_to_its_user_on_sqlite() {
    a_filter_belongs_to_its_user(TestApp::start().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_belongs_to_its_user_on_postgresql() {
    a_filter_belongs_to_its_user(TestApp::on_postgresql().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_has_a_name_and_a_condition() {
    let app = TestApp::start().await;
    let ada = Session::of(&app, "ada@oak.example", "sender").await;
    let long = "x".repeat(61);
    for (name, conditions) in [
        ("", "q=elm"),
        (long.as_str(), "q=elm"),
        ("Two\nlines", "q=elm"),
        ("Everything", "q=&status=unknown"),
    ] {
        let (status, page) = save(&app, &ada, name, conditions).await;
        assert_eq!(status, 422, "{name}: {page}");
        assert!(page.contains("class=\"problems\""), "{name}: {page}");
    }

    let list = ada.get(&app, LIST).await.text();
    assert!(!list.contains("Saved filters"), "{list}");
    let (status, page) = save(&app, &ada, &long[1..], "q=elm").await;
    assert_eq!(status, 303, "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_has_at_most_20_filters() {
    let app = TestApp::start().await;
    let ada = Session::of(&app, "ada@oak.example", "sender").await;
    for number in 1..=20 {
        let (status, page) = save(&app, &ada, &format!("Filter {number}"), "q=elm").await;
        assert_eq!(status, 303, "{page}");
    }

    let (status, page) = save(&app, &ada, "One more", "q=oak").await;
    assert_eq!(status, 409, "{page}");
    assert!(
        page.contains("One more") && page.contains("You have 20 filters"),
        "{page}"
    );

    // A filter that exists gets other conditions.
    let (status, page) = save(&app, &ada, "Filter 20", "q=oak").await;
    assert_eq!(status, 303, "{page}");
    let list = ada.get(&app, LIST).await.text();
    assert!(list.contains("/console/envelopes?q=oak"), "{list}");
    assert_eq!(
        list.matches("/console/envelopes?q=elm").count(),
        19,
        "{list}"
    );
}
