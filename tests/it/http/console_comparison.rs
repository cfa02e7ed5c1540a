//! Comparisons of a candidate with the active rules, as pages.

use holdfast_test_guests::OPINIONATED;

use super::console::Session;
use crate::support::TestApp;

#[tokio::test(flavor = "multi_thread")]
async fn a_comparison_begins_with_the_changed_verdicts() {
    let app = TestApp::start().await;
    // Its secured party has no identifier, which the candidate asks for.
    app.vaulted_envelope().await;
    let candidate = app
        .upload_component(app.web_admin(), "oak-rules", "1.0.0", OPINIONATED)
        .await
        .data(201);
    let id = candidate["component_id"].as_str().unwrap();
    let path = format!("/console/components/{id}/compare");

    let eva = Session::of(&app, "eva@oak.example", "auditor").await;
    let past = eva.post(&app, &path, "kind=past").await.text();
    for text in [
        "aria-label=\"Records with another verdict, by check\"",
        "<th scope=\"row\">Secured party identified</th><td>1</td><td>0</td>",
        "Pass → fail",
    ] {
        assert!(past.contains(text), "{text}: {past}");
    }

    let generated = eva.post(&app, &path, "kind=generated").await.text();
    for text in [
        "aria-label=\"Questions with another verdict, by check\"",
        "<span title=\"facts/secured-party/identifier\">Secured party › identifier</span>",
    ] {
        assert!(generated.contains(text), "{text}: {generated}");
    }
    assert!(!generated.contains("<code>facts/"), "{generated}");
}
