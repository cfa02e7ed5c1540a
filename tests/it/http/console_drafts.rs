//! The flow of the console from a document to its sending, over a stored draft.

use axum::http::Method;
use scraper::{Html, Selector};
use serde_json::{Value, json};

use super::console::Session;
use crate::support::{TestApp, TestResponse, pdf};

/// Fields of the people step for one signer.
const JORDAN: &str = "name-0=Jordan+Lee&email-0=jordan.lee%40example.com&role-0=Buyer&ordered=yes";

/// Fields of a witness in the second row.
const WITNESS: &str = "name-1=Wes+Elm&email-1=wes%40elm.example&role-1=Witness&kind-1=witness";

/// Fields of a substitute in the first row of recipients.
const SUBSTITUTE: &str =
    "recipients_name-0=Cy+Ash&recipients_email-0=cy%40ash.example&recipients_kind-0=substitute";

/// A document with tags of one role: a signature and a number.
fn tagged() -> Vec<u8> {
    pdf::with_lines(&[
        "Price: {{Price;type=number;role=Buyer}}",
        "{{Sign;type=signature;role=Buyer}}",
    ])
}

/// Begins a draft with a document, and returns the envelope's id.
async fn begun(app: &TestApp, session: &Session, document: &[u8]) -> String {
    let taken = session.upload(app, "/console/drafts", document, &[]).await;
    id_of(&taken)
}

/// Returns the id of the draft that an answer leads to.
#[track_caller]
fn id_of(answer: &TestResponse) -> String {
    let to = location(answer);
    let id = to.strip_prefix("/console/drafts/").expect("a draft");
    id.split('/').next().unwrap().to_owned()
}

#[track_caller]
fn location(answer: &TestResponse) -> String {
    assert_eq!(answer.status, 303, "{}", answer.text());
    answer.headers["location"].to_str().unwrap().to_owned()
}

async fn envelope(app: &TestApp, id: &str) -> Value {
    app.get(&format!("/partner/envelopes/{id}")).await.data(200)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_sent_in_five_steps() {
    let app = TestApp::start().await;
    let sam = Session::of(&app, "sam@oak.example", "sender").await;

    // The file of the form is named `file`.
    let id = begun(&app, &sam, &tagged()).await;
    assert_eq!(envelope(&app, &id).await["envelope_name"], "file");
    let step = |name: &str| format!("/console/drafts/{id}/{name}");
    let page = sam.get(&app, &step("people")).await.text();
    assert!(page.contains("value=\"Buyer\""), "{page}");
    // The line of steps on a phone.
    assert!(
        page.contains("<summary>Step 2 of 5: People</summary>"),
        "{page}"
    );

    let people = format!("{JORDAN}&recipients_name-0=Kim&recipients_email-0=kim%40example.com");
    let saved = sam.post(&app, &step("people"), &people).await;
    assert_eq!(location(&saved), step("fields"));
    let page = sam.get(&app, &step("fields")).await.text();
    assert!(page.contains("Price, Sign"), "{page}");

    let details = "envelope_name=Lease+2041&subject=Your+lease&message=Before+Friday&value-0=18500&party_name=First+Bank\
        &first_after_days=2&every_days=3&at_most=4&amount=12.50&currency=USD";
    let saved = sam.post(&app, &step("details"), details).await;
    assert_eq!(location(&saved), step("review"));
    let page = sam.get(&app, &step("review")).await.text();
    for shown in [
        "Lease 2041",
        "Jordan Lee",
        "kim@example.com",
        "Your lease",
        "Before Friday",
        "First Bank",
        "/pages/1.png?v=",
    ] {
        assert!(page.contains(shown), "{shown}: {page}");
    }

    let sent = sam.post(&app, &step("review"), "").await;
    assert_eq!(
        location(&sent),
        format!("/console/envelopes/{id}?done=sent")
    );
    let sent = envelope(&app, &id).await;
    assert_eq!(
        (&sent["status"], &sent["reminders"]["at_most"]),
        (&json!("sent"), &json!(4))
    );
    let people = app
        .get(&format!("/partner/envelopes/{id}/signers"))
        .await
        .data(200);
    assert_eq!(people["recipients"][0]["email"], "kim@example.com");
    let customer = format!("/customers/{}", sent["customer_id"].as_str().unwrap());
    let customer = app.web(Method::GET, &customer, Value::Null).await.data(200);
    assert_eq!(customer["email"], "jordan.lee@example.com");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_reopens_at_its_first_step_that_is_not_complete() {
    let app = TestApp::start().await;
    let sam = Session::of(&app, "sam@oak.example", "sender").await;
    let plain = begun(&app, &sam, &pdf::with_lines(&["A plain agreement"])).await;
    let draft = format!("/console/drafts/{plain}");
    let step = |name: &str| format!("{draft}/{name}");
    let page = sam.get(&app, "/console/send").await.text();
    assert!(page.contains(&format!("href=\"{draft}\"")), "{page}");
    assert_eq!(location(&sam.get(&app, &draft).await), step("people"));

    location(&sam.post(&app, &step("people"), JORDAN).await);
    assert_eq!(location(&sam.get(&app, &draft).await), step("fields"));
    let page = sam.get(&app, &step("review")).await.text();
    assert!(
        page.contains("Still missing") && page.contains("There are no fields yet"),
        "{page}"
    );

    let refused = sam.post(&app, &step("review"), "").await;
    assert_eq!(refused.status, 409, "{}", refused.text());
    assert_eq!(envelope(&app, &plain).await["status"], "uploaded");

    let ready = begun(&app, &sam, &tagged()).await;
    let draft = format!("/console/drafts/{ready}");
    location(&sam.post(&app, &format!("{draft}/people"), JORDAN).await);
    assert_eq!(
        location(&sam.get(&app, &draft).await),
        format!("{draft}/review")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_entry_stays_with_its_problem_at_the_field() {
    let app = TestApp::start().await;
    let sam = Session::of(&app, "sam@oak.example", "sender").await;
    let id = begun(&app, &sam, &tagged()).await;
    for (step, form, field) in [
        (
            "people",
            "name-0=Jordan+Lee&email-0=nowhere&role-0=Buyer",
            "email-0",
        ),
        (
            "people",
            &format!("{JORDAN}&recipients_name-0=Jordan+Lee&recipients_email-0=nowhere"),
            "recipients_email-0",
        ),
        (
            "people",
            "name-0=Jordan+Lee&email-0=jordan%40example.com&access-0=passcode&passcode-0=",
            "passcode-0",
        ),
        (
            "people",
            &format!("{JORDAN}&{WITNESS}&witness_of-1=Seller"),
            "witness_of-1",
        ),
        (
            "people",
            &format!("{JORDAN}&{WITNESS}&witness_of-1=&same_device-1=true"),
            "same_device-1",
        ),
        ("people", &format!("{JORDAN}&kind-0=witness"), "kind-0"),
        (
            "people",
            &format!("{JORDAN}&group-0=Managers&access-0=email_code"),
            "access-0",
        ),
        (
            "people",
            &format!("{JORDAN}&{SUBSTITUTE}&recipients_group-0="),
            "recipients_group-0",
        ),
        (
            "people",
            &format!("{JORDAN}&group-0=Owners&{SUBSTITUTE}&recipients_group-0=Managers"),
            "recipients_group-0",
        ),
        (
            "people",
            &format!(
                "{JORDAN}&group-0=Managers&recipients_name-0=Jordan+Lee\
                 &recipients_email-0=jordan.lee%40example.com&recipients_kind-0=substitute\
                 &recipients_group-0=Managers"
            ),
            "recipients_group-0",
        ),
        (
            "details",
            "envelope_name=Jordan+Lee&subject=Two%0Alines",
            "subject",
        ),
        (
            "details",
            "envelope_name=Jordan+Lee&until=2020-01-01",
            "until",
        ),
        (
            "details",
            "envelope_name=Jordan+Lee&amount=1.2345&currency=USD",
            "amount",
        ),
        (
            "details",
            "envelope_name=Jordan+Lee&amount=5&currency=XXX",
            "currency",
        ),
        (
            "details",
            "envelope_name=Jordan+Lee&first_after_days=soon&every_days=1&at_most=1",
            "first_after_days",
        ),
    ] {
        let path = format!("/console/drafts/{id}/{step}");
        let refused = sam.post(&app, &path, form).await;
        let page = refused.text();
        assert_eq!(refused.status, 422, "{form}: {page}");
        assert!(
            page.contains(&format!("id=\"{field}-problem\"")),
            "{form} marks {field}: {page}"
        );
        assert!(page.contains("value=\"Jordan Lee\""), "{form}: {page}");
    }

    let kept = envelope(&app, &id).await;
    assert_eq!(kept["envelope_name"], "file");
    let people = app
        .get(&format!("/partner/envelopes/{id}/signers"))
        .await
        .data(200);
    assert_eq!(people["signers"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_is_added_without_losing_the_entries() {
    let app = TestApp::start().await;
    let sam = Session::of(&app, "sam@oak.example", "sender").await;
    let id = begun(&app, &sam, &tagged()).await;
    let path = format!("/console/drafts/{id}/people");
    let more = sam
        .post(&app, &path, &format!("{JORDAN}&more=signers"))
        .await;
    let page = more.text();
    assert_eq!(more.status, 200, "{page}");
    assert!(
        page.contains("id=\"name-1\"") && page.contains("jordan.lee@example.com"),
        "{page}"
    );
    assert!(!page.contains("class=\"problems\""), "{page}");

    // A row without a person is left out, and the next one moves up.
    let gap = "name-0=&email-0=&name-1=Ann+Oak&email-1=ann%40oak.example&role-1=Buyer";
    location(&sam.post(&app, &path, gap).await);
    let people = app
        .get(&format!("/partner/envelopes/{id}/signers"))
        .await
        .data(200);
    assert_eq!(people["signers"][0]["name"], "Ann Oak");
}

#[tokio::test(flavor = "multi_thread")]
async fn members_that_programs_set_stay_when_the_people_are_saved() {
    let app = TestApp::start().await;
    let sam = Session::of(&app, "sam@oak.example", "sender").await;
    let id = begun(&app, &sam, &tagged()).await;
    let path = format!("/console/drafts/{id}/people");
    let form = format!("{JORDAN}&consumer-0=true");
    location(&sam.post(&app, &path, &form).await);

    let page = sam.get(&app, &path).await.text();
    assert!(
        page.contains("name=\"consumer-0\" value=\"true\""),
        "{page}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_and_witnesses_are_chosen_with_the_people() {
    let app = TestApp::start().await;
    let sam = Session::of(&app, "sam@oak.example", "sender").await;
    let id = begun(&app, &sam, &tagged()).await;
    let path = format!("/console/drafts/{id}/people");
    let form = format!(
        "{JORDAN}&group-0=Managers&{WITNESS}&witness_of-1=Buyer&same_device-1=true\
         &{SUBSTITUTE}&recipients_group-0=Managers"
    );
    location(&sam.post(&app, &path, &form).await);

    let page = sam.get(&app, &path).await.text();
    let document = Html::parse_document(&page);
    let value_of = |control: &str| {
        let selector = format!("input[name={control}], select[name={control}] option[selected]");
        let selector = Selector::parse(&selector).unwrap();
        let control = document.select(&selector).next().expect("a control");
        control.attr("value").unwrap().to_owned()
    };
    for (control, value) in [
        ("group-0", "Managers"),
        ("kind-0", "signer"),
        ("same_device-0", ""),
        ("kind-1", "witness"),
        ("witness_of-1", "Buyer"),
        ("same_device-1", "true"),
        ("recipients_kind-0", "substitute"),
        ("recipients_group-0", "Managers"),
    ] {
        assert_eq!(value_of(control), value, "{control}: {page}");
    }

    let people = app
        .get(&format!("/partner/envelopes/{id}/signers"))
        .await
        .data(200);
    assert_eq!(people["signers"][0]["group"], "Managers");
    assert_eq!(people["signers"][1]["witness_of"], "Buyer");
    assert_eq!(people["signers"][1]["same_device"], true);
    assert_eq!(people["recipients"][0]["kind"], "substitute");

    let review = format!("/console/drafts/{id}/review");
    let page = sam.get(&app, &review).await.text();
    for shown in [
        "Managers: 1 of 2 members sign",
        "Witness of Buyer",
        "Substitute in a group",
    ] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_of_a_template_has_a_document_of_its_own() {
    let app = TestApp::start().await;
    let sam = Session::of(&app, "sam@oak.example", "sender").await;
    let template = app.contract_template().await["template_id"].clone();
    let template = template.as_str().unwrap();
    let form = format!("template={template}");
    let taken = sam.post(&app, "/console/drafts/template", &form).await;
    let id = id_of(&taken);

    let draft = envelope(&app, &id).await;
    assert_eq!(draft["metadata"]["source_template_id"], template);
    assert_ne!(draft["template_id"], template);
    // The builder continues with this document.
    let session = json!({ "envelope_id": id });
    let session = app
        .web(Method::POST, "/esign/builder-session", session)
        .await;
    let session = session.json()["data"].take();
    assert_eq!(session["template_id"], draft["template_id"]);

    location(
        &sam.post(&app, &format!("/console/drafts/{id}/people"), JORDAN)
            .await,
    );
    location(
        &sam.post(&app, &format!("/console/drafts/{id}/review"), "")
            .await,
    );
    assert_eq!(envelope(&app, &id).await["status"], "sent");
    let over = sam
        .get(&app, &format!("/console/drafts/{id}/details"))
        .await;
    assert_eq!(location(&over), format!("/console/envelopes/{id}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_no_document_leaves_no_draft() {
    let app = TestApp::start().await;
    let sam = Session::of(&app, "sam@oak.example", "sender").await;
    let refused = sam
        .upload(&app, "/console/drafts", b"no document", &[])
        .await;
    assert_eq!(refused.status, 415, "{}", refused.text());
    assert!(
        refused.text().contains("class=\"problems\""),
        "{}",
        refused.text()
    );
    let list = app.get("/partner/envelopes").await.data(200);
    assert_eq!(list, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_of_another_organization_does_not_exist() {
    let app = TestApp::start().await;
    let sam = Session::of(&app, "sam@oak.example", "sender").await;
    let (bank, _) = app.party().await;
    let lea = Session::at(&app, &bank, "lea@bank.example", "sender").await;
    let id = begun(&app, &sam, &tagged()).await;
    for step in ["people", "fields", "details", "review"] {
        let path = format!("/console/drafts/{id}/{step}");
        assert_eq!(lea.get(&app, &path).await.status, 404, "{path}");
        assert_eq!(lea.post(&app, &path, JORDAN).await.status, 404, "{path}");
    }
}
