//! Templates in the console: another PDF, duplicates, deletion that is taken back, and tags.

use axum::http::Method;
use serde_json::Value;

use super::console::Session;
use crate::support::{TestApp, TestResponse, pdf};

/// A template of the demo contract, and its author.
struct Library {
    app: TestApp,
    ada: Session,
    template: String,
}

impl Library {
    async fn new() -> Self {
        let app = TestApp::start().await;
        let template = app.contract_template().await;
        Self {
            ada: Session::of(&app, "ada@oak.example", "sender").await,
            template: template["template_id"].as_str().unwrap().to_owned(),
            app,
        }
    }

    async fn get(&self, path: &str) -> String {
        let answer = self.ada.get(&self.app, &format!("/console{path}")).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.text()
    }

    /// Sends a form below the address of the template.
    async fn act(&self, act: &str, form: &str) -> TestResponse {
        let path = format!("/console/templates/{}/{act}", self.template);
        self.ada.post(&self.app, &path, form).await
    }

    async fn read(&self) -> TestResponse {
        let path = format!("/templates/{}", self.template);
        self.app.web(Method::GET, &path, Value::Null).await
    }

    /// Uploads another PDF, and returns the page with the differences.
    async fn compare(&self, pdf: &[u8]) -> TestResponse {
        let path = format!("/console/templates/{}/versions", self.template);
        self.ada.upload(&self.app, &path, pdf, &[]).await
    }
}

/// Returns the form that confirms the differences of a page.
fn confirmation(page: &str) -> String {
    let (_, rest) = page.split_once("name=\"proposal\" value=\"").unwrap();
    let proposal = rest.split('"').next().unwrap();
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    form.append_pair("proposal", proposal);
    form.finish()
}

#[tokio::test(flavor = "multi_thread")]
async fn another_pdf_takes_effect_when_its_differences_are_confirmed() {
    let library = Library::new().await;
    let compared = library
        .compare(&pdf::with_lines(&["Another contract"]))
        .await;
    let page = compared.text();
    assert_eq!(compared.status, 200, "{page}");
    for part in [
        "Nothing is changed yet",
        "Version 2",
        "Buyer signature",
        "Is lost",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert_eq!(library.read().await.data(200)["version"], 1);

    let form = confirmation(&page);
    let made = library.act("versions/confirm", &form).await;
    assert_eq!(made.status, 303, "{}", made.text());
    assert_eq!(library.read().await.data(200)["version"], 2);

    // The differences were from the fields before.
    let again = library.act("versions/confirm", &form).await;
    assert_eq!(again.status, 409);
    let reason = "The template was changed meanwhile; open it again";
    assert!(again.text().contains(reason), "{}", again.text());

    let restored = library.act("versions/restore", "number=1").await;
    assert_eq!(restored.status, 303, "{}", restored.text());
    let template = library.read().await.data(200);
    assert_eq!(template["version"], 3);
    assert_eq!(template["fields"].as_array().unwrap().len(), 2);
    let page = library
        .get(&format!("/templates/{}", library.template))
        .await;
    assert!(
        page.contains("Version 3") && page.contains("ada@oak.example"),
        "{page}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_or_missing_comparison_makes_no_version() {
    let library = Library::new().await;
    for form in ["", "proposal=forged"] {
        let refused = library.act("versions/confirm", form).await;
        assert_eq!(refused.status, 422);
        let reason = "The comparison is over; upload the document again";
        assert!(refused.text().contains(reason), "{}", refused.text());
    }

    let wrong = library.compare(b"PK\x03\x04 a word document").await;
    assert_eq!(wrong.status, 415);
    assert!(
        wrong.text().contains("class=\"problems\""),
        "{}",
        wrong.text()
    );
    assert_eq!(library.read().await.data(200)["version"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_is_taken_back_from_the_list_of_deleted_templates() {
    let library = Library::new().await;
    let restore = format!("/console/templates/{}/restore", library.template);
    let deleted = "/templates?deleted=yes";
    assert!(!library.get(deleted).await.contains(&restore));

    let done = library.act("delete", "sure=yes").await;
    assert_eq!(done.status, 303, "{}", done.text());
    assert_eq!(library.read().await.status, 404);
    let page = library.get(deleted).await;
    assert!(
        page.contains(&restore) && page.contains("Can be restored until"),
        "{page}"
    );

    assert_eq!(library.act("restore", "").await.status, 303);
    assert_eq!(library.read().await.status, 200);
    assert!(!library.get(deleted).await.contains(&restore));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_and_tags_are_made_on_the_page_of_the_template() {
    let library = Library::new().await;
    let made = library.act("duplicate", "name=Ohio+contract").await;
    assert_eq!(made.status, 303, "{}", made.text());
    let to = made.headers["location"].to_str().unwrap();
    assert!(!to.ends_with(&library.template), "{to}");

    let tagged = library
        .act("rename", "name=Contract&tags=Lease%2C+Ohio")
        .await;
    assert_eq!(tagged.status, 303, "{}", tagged.text());
    let template = library.read().await.data(200);
    assert_eq!(template["tags"], serde_json::json!(["Lease", "Ohio"]));

    let found = library.get("/templates?tag=Lease").await;
    assert!(found.contains(&library.template), "{found}");
    assert!(!found.contains("Ohio contract"), "{found}");
    let none = library.get("/templates?tag=Loan").await;
    assert!(!none.contains(&library.template), "{none}");

    let long = format!("name=Contract&tags={}", "x".repeat(41));
    let refused = library.act("rename", &long).await;
    assert_eq!(refused.status, 422);
    assert!(
        refused.text().contains("tags-problem"),
        "{}",
        refused.text()
    );
}
