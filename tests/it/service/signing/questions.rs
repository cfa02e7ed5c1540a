//! Questions of signers to the sender.

use std::time::Duration;

use serde_json::{Value, json};

use crate::http::console::Session;
use crate::support::{TestApp, TestResponse, envelope_body, form, pdf};

const DAY: Duration = Duration::from_secs(86_400);
const QUESTION: &str = "Does the price include the delivery?";

async fn ask(app: &TestApp, link: &str, text: &str) -> TestResponse {
    let question = [("sender-question".to_owned(), text.to_owned())];
    form::press(app, link, "ask", &question).await
}

async fn questions(app: &TestApp, id: &str) -> Value {
    let listed = app
        .get(&format!("/partner/envelopes/{id}/questions"))
        .await
        .data(200);
    listed["questions"].clone()
}

async fn close(app: &TestApp, id: &str, question: &Value, body: Value) -> TestResponse {
    let question = question["question_id"].as_str().unwrap();
    let path = format!("/partner/envelopes/{id}/questions/{question}/close");
    app.post(&path, body).await
}

/// Returns the mails to an address with these words.
fn mails_to(mails: &[String], address: &str, words: &str) -> Vec<String> {
    let mails = mails.iter().map(|mail| mail.replace("=\r\n", ""));
    mails
        .filter(|mail| mail.contains(words))
        .filter(|mail| {
            let to = mail.lines().find(|line| line.starts_with("To: "));
            to.is_some_and(|to| to.contains(address))
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_reaches_the_sender_and_the_answer_the_signer() {
    let app = TestApp::without_auto_vault().await;
    let (id, links) = app.sent_to_two().await;
    let page = form::open(&app, &links[0]).await.text();
    assert!(page.contains("You can still sign at any time."), "{page}");

    let asked = ask(&app, &links[0], QUESTION).await;
    assert_eq!(asked.status, 303, "{}", asked.text());
    let page = form::open(&app, &links[0]).await.text();
    assert!(page.contains(QUESTION), "{page}");
    assert!(
        page.contains("The sender has not answered yet. You can sign at any time."),
        "{page}"
    );

    let listed = questions(&app, &id).await;
    assert_eq!(listed[0]["question"], QUESTION);
    assert_eq!(listed[0]["status"], "open");
    assert_eq!(listed[0]["signer"]["email"], "buyer@example.com");

    app.wait_until_idle().await;
    let mails = app.wait_for_mails(2).await;
    let told = mails_to(&mails, "vault@maple.example", QUESTION);
    assert_eq!(told.len(), 1, "{mails:?}");
    let reply_to = told[0].lines().find(|line| line.starts_with("Reply-To: "));
    assert!(
        reply_to.unwrap().contains("buyer@example.com"),
        "{}",
        told[0]
    );

    let answer = json!({ "answer": "Yes, it does." });
    let closed = close(&app, &id, &listed[0], answer).await.data(200);
    assert_eq!(closed["status"], "answered");
    let page = form::open(&app, &links[0]).await.text();
    assert!(page.contains("Yes, it does."), "{page}");

    app.wait_until_idle().await;
    let mails = app.wait_for_mails(3).await;
    let told = mails_to(&mails, "buyer@example.com", "Yes, it does.");
    assert_eq!(told.len(), 1, "{mails:?}");

    let events = app.event_types(&id).await;
    for event in ["signer.question_asked", "signer.question_closed"] {
        let same = events.iter().filter(|one| *one == event);
        assert_eq!(same.count(), 1, "{event}: {events:?}");
        app.wait_for_entry(&id, event).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_question_that_is_sent_twice_is_one() {
    let app = TestApp::start().await;
    let (id, links) = app.sent_to_two().await;
    for text in [QUESTION, QUESTION, "Another one?"] {
        assert_eq!(ask(&app, &links[0], text).await.status, 303);
    }
    let asked = questions(&app, &id).await;
    assert_eq!(asked.as_array().unwrap().len(), 2, "{asked}");

    // After its end, the same words are a new question.
    close(&app, &id, &asked[0], json!({})).await.data(200);
    assert_eq!(ask(&app, &links[0], QUESTION).await.status, 303);
    assert_eq!(questions(&app, &id).await.as_array().unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signer_signs_with_an_open_question_and_others_do_not_see_it() {
    let app = TestApp::without_auto_vault().await;
    let (id, links) = app.sent_to_two_at_once().await;
    ask(&app, &links[0], QUESTION).await;

    let other = form::open(&app, &links[1]).await.text();
    assert!(!other.contains(QUESTION), "{other}");
    form::sign(&app, &links[0]).await;
    form::sign(&app, &links[1]).await;
    app.wait_for(&id, "completed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_has_a_text_and_a_signer_has_five() {
    let app = TestApp::start().await;
    let (id, links) = app.sent_to_two().await;
    form::open(&app, &links[0]).await;

    let empty = ask(&app, &links[0], " \r\n ").await;
    assert_eq!(empty.status, 422);
    assert!(empty.text().contains("Write your question"));

    // Line ends count once, as in the browser.
    let long = "a\r\n".repeat(1_001);
    let refused = ask(&app, &links[0], &long).await;
    assert_eq!(refused.status, 422);
    let page = refused.text();
    assert!(page.contains("At most"), "{page}");
    assert!(page.contains("id=\"sender-question-problem\""), "{page}");
    assert_eq!(questions(&app, &id).await, json!([]));

    let fits = "a\r\n".repeat(1_000);
    for at in 0..5 {
        let asked = ask(&app, &links[0], &format!("{at}{fits}")).await;
        assert_eq!(asked.status, 303, "{}", asked.text());
    }
    let sixth = ask(&app, &links[0], QUESTION).await;
    assert_eq!(sixth.status, 422);
    assert!(sixth.text().contains(QUESTION), "the entry stays");
    assert_eq!(questions(&app, &id).await.as_array().unwrap().len(), 5);

    // A signer before the turn asks nothing.
    let early = ask(&app, &links[1], QUESTION).await;
    assert_eq!(early.status, 409, "{}", early.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_that_are_not_kept_stay_beside_a_question() {
    let app = TestApp::start().await;
    let document = pdf::with_lines(&[
        "Price: {{Price;type=number;role=Buyer}}",
        "{{Sign;type=signature;role=Buyer;required=true}}",
    ]);
    let fields = [("name", "One")];
    let template = app
        .upload("/partner/templates", "application/pdf", &document, &fields)
        .await
        .data(200);
    let mut body = envelope_body(&template["template_id"]);
    body["signers"] =
        json!([{ "email": "buyer@example.com", "name": "Ann Buyer", "role": "Buyer" }]);
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let link = envelope["sign_url"].as_str().unwrap();

    let values = [("Price", "a lot"), ("sender-question", QUESTION)];
    let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let answer = form::press(&app, link, "ask", &values).await;
    assert_eq!(answer.status, 422);
    let page = answer.text();
    assert!(page.contains(QUESTION) && page.contains("a lot"), "{page}");
    assert!(!page.contains("id=\"sender-question-problem\""), "{page}");
    let asked = questions(&app, envelope["envelope_id"].as_str().unwrap()).await;
    assert_eq!(asked.as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_closed_once_by_its_own_organization() {
    let app = TestApp::start().await;
    let (id, links) = app.sent_to_two().await;
    ask(&app, &links[0], QUESTION).await;
    let question = questions(&app, &id).await[0].clone();

    for body in [
        json!({ "answer": "" }),
        json!({ "answer": " \n " }),
        json!({ "answer": "a".repeat(2_001) }),
    ] {
        let refused = close(&app, &id, &question, body).await;
        assert_eq!(refused.status, 422);
        assert_eq!(refused.json()["details"][0]["path"], json!(["answer"]));
    }

    let unknown = json!({ "question_id": "qst_01jdk7m3e8f4x9s2w5v6b0c1dh" });
    let refused = close(&app, &id, &unknown, json!({})).await;
    assert_eq!(refused.error(404), "Question not found");

    let (_, key) = app.party().await;
    let path = format!("/partner/envelopes/{id}/questions");
    assert_eq!(app.get_as(&key, &path).await.status, 404);

    let dismissed = close(&app, &id, &question, json!({})).await.data(200);
    assert_eq!(dismissed["status"], "dismissed");
    assert_eq!(dismissed["answer"], Value::Null);
    let page = form::open(&app, &links[0]).await.text();
    assert!(page.contains("Closed without an answer"), "{page}");

    let again = close(&app, &id, &question, json!({ "answer": "Yes" })).await;
    assert_eq!(again.status, 409, "{}", again.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_reminded_by_plan_while_a_question_is_open() {
    let app = TestApp::start().await;
    let (id, links) = app.sent_to_two().await;
    let plan = json!({ "first_after_days": 1, "every_days": 1, "at_most": 3 });
    app.put(&format!("/partner/envelopes/{id}/reminders"), plan)
        .await
        .data(200);
    ask(&app, &links[0], QUESTION).await;

    let reminders = || async {
        let envelope = app.get(&format!("/partner/envelopes/{id}")).await;
        envelope.data(200)["reminders"]["sent"].as_u64().unwrap()
    };
    let waiting = app.as_of(DAY * 3).await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(reminders().await, 0);
    drop(waiting);

    let question = questions(&app, &id).await[0].clone();
    close(&app, &id, &question, json!({})).await.data(200);
    let _later = app.as_of(DAY * 4).await;
    for _ in 0..200 {
        if reminders().await > 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no reminder after the question was closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_question_of_a_signer_who_has_signed_holds_up_no_reminder() {
    let app = TestApp::start().await;
    let (id, links) = app.sent_to_two().await;
    let plan = json!({ "first_after_days": 1, "every_days": 1, "at_most": 3 });
    app.put(&format!("/partner/envelopes/{id}/reminders"), plan)
        .await
        .data(200);
    ask(&app, &links[0], QUESTION).await;
    form::sign(&app, &links[0]).await;
    // The invitation of the second signer.
    app.wait_for_mails(2).await;

    let _later = app.as_of(DAY * 3).await;
    for _ in 0..200 {
        let envelope = app.get(&format!("/partner/envelopes/{id}")).await;
        if envelope.data(200)["reminders"]["sent"].as_u64().unwrap() > 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no reminder after the signature");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_console_shows_what_waits_for_an_answer() {
    let app = TestApp::start().await;
    let (id, links) = app.sent_to_two().await;
    ask(&app, &links[0], "Is it <new>?").await;
    let ada = Session::of(&app, "ada@oak.example", "sender").await;

    let waiting = ada.get(&app, "/console/envelopes?tab=waiting").await.text();
    assert!(!waiting.contains(&id), "{waiting}");
    let mine = ada.get(&app, "/console/envelopes?tab=needs-you").await;
    let mine = mine.text();
    assert!(mine.contains(&id), "{mine}");

    let path = format!("/console/envelopes/{id}");
    let page = ada.get(&app, &path).await.text();
    for text in [
        "Questions of signers",
        "Ann Buyer asked: Is it &lt;new&gt;?",
        "Your organization",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }

    let question = questions(&app, &id).await[0].clone();
    let question = question["question_id"].as_str().unwrap();
    let answer = format!("{path}/questions/{question}");
    let long = format!("act=answer&answer={}", "a".repeat(2_001));
    let refused = ada.post(&app, &answer, &long).await;
    assert_eq!(refused.status, 422);
    let page = refused.text();
    assert!(page.contains(&"a".repeat(2_001)), "the entry stays");
    assert!(
        page.contains(&format!("id=\"answer-{question}-problem\"")),
        "{page}"
    );

    let done = ada.post(&app, &answer, "act=answer&answer=It+is").await;
    assert_eq!(done.status, 303);
    let page = ada.get(&app, &path).await.text();
    assert!(page.contains("ada@oak.example answered: It is"), "{page}");
    let waiting = ada.get(&app, "/console/envelopes?tab=waiting").await.text();
    assert!(waiting.contains(&id), "{waiting}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_question_of_a_replaced_signer_waits_for_no_answer() {
    let app = TestApp::start().await;
    let (id, links) = app.sent_to_two().await;
    ask(&app, &links[0], QUESTION).await;
    let ada = Session::of(&app, "ada@oak.example", "sender").await;
    let mine = "/console/envelopes?tab=needs-you";
    assert!(ada.get(&app, mine).await.text().contains(&id));

    let other = json!({ "email": "sam@example.com", "name": "Sam Lee" });
    let path = format!("/partner/envelopes/{id}/signers/Buyer");
    app.patch(&path, other).await.data(200);
    let page = ada.get(&app, mine).await.text();
    assert!(!page.contains(&id), "{page}");
    let waiting = ada.get(&app, "/console/envelopes?tab=waiting").await.text();
    assert!(waiting.contains(&id), "{waiting}");

    let path = format!("/console/envelopes/{id}");
    let page = ada.get(&app, &path).await.text();
    assert!(!page.contains("Your organization"), "{page}");
}
