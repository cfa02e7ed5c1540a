//! Questions of signers to the sender. While one is open, the envelope waits for the sender: planned reminders
//! pause, and all may sign.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::signing::check_own_device;
use holdfast_domain::envelope::{Envelope, Signer};
use holdfast_domain::event::EventType;
use holdfast_domain::id::QuestionId;
use holdfast_domain::question::{LONGEST_TEXT, MOST_QUESTIONS, QuestionClosing, SignerQuestion};
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::lookup;
use holdfast_platform::signers::{invited_now, signer_view};
use holdfast_platform::{Caller, Core, ServiceError, events, mails};
use holdfast_store::{questions, signers};

/// Body of `POST /partner/envelopes/:id/questions/:question/close`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "answer": "Yes, the price includes the delivery." }]))]
pub struct CloseQuestion {
    /// Answer, which the signer gets by mail and sees on the signing page. Without it, the question is dismissed.
    #[schemars(length(min = 1, max = 2000))]
    pub answer: Option<String>,
}

/// Result of a signer's question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskOutcome {
    Asked,
    /// The text is empty.
    Empty,
    /// The text is longer than [`LONGEST_TEXT`].
    TooLong,
    /// The signer has asked [`MOST_QUESTIONS`] questions.
    TooMany,
    /// The signer can no longer sign, or not yet.
    Closed,
}

/// Asks the sender a question of a signer.
pub async fn ask(
    core: &Core,
    envelope: &Envelope,
    signer: &Signer,
    text: &str,
) -> Result<AskOutcome, ServiceError> {
    let text = cleaned(text);
    if text.is_empty() {
        return Ok(AskOutcome::Empty);
    }
    if text.chars().count() > LONGEST_TEXT {
        return Ok(AskOutcome::TooLong);
    }

    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let envelope = lookup::lock_envelope(&mut tx, &envelope.org, &envelope.id).await?;
    let all = signers::list(&mut tx, &envelope.org, &envelope.id).await?;

    // Another person may have taken the place since the page was shown.
    let mut turn = invited_now(&envelope, &all);
    let Some(signer) = turn.find(|other| other.id == signer.id) else {
        return Ok(AskOutcome::Closed);
    };
    check_own_device(signer)?;
    if !envelope.status.is_out_for_signing() {
        return Ok(AskOutcome::Closed);
    }

    // The lock makes two questions of the same moment count one after the other.
    let asked = questions::list(&mut tx, &envelope.org, &envelope.id).await?;
    let own = asked.iter().filter(|asked| asked.signer == signer.id);
    // A second click on the button asks nothing new.
    if own
        .clone()
        .any(|asked| asked.closing.is_none() && asked.text == text)
    {
        return Ok(AskOutcome::Asked);
    }
    if own.count() >= MOST_QUESTIONS {
        return Ok(AskOutcome::TooMany);
    }

    let question = SignerQuestion {
        id: QuestionId::new(),
        signer: signer.id.clone(),
        position: signer.position,
        name: signer.name.clone(),
        email: signer.email.clone(),
        role: signer.role.clone(),
        text,
        asked_at: now,
        closing: None,
    };
    questions::insert(&mut tx, &envelope, &question).await?;

    let data = json!({
        "signer": signer_view(signer),
        "question_id": question.id,
        "question": question.text,
        "at": now,
    });
    let actor = format!("signer:{}", signer.email);
    let asked = EventType::SignerQuestionAsked;
    events::record_and_emit(&mut tx, &envelope, &actor, asked, data, now).await?;
    mails::question(&mut tx, &envelope, &question, now).await?;
    tx.commit().await?;

    Ok(AskOutcome::Asked)
}

/// Answers a question, or dismisses it. Planned reminders go on when no other question is open.
///
/// # Errors
///
/// `NotFound` for an unknown question, `Conflict` for one that is closed, `Invalid` for an answer of spaces alone.
pub async fn close(
    core: &Core,
    caller: &Caller,
    id: &str,
    question: &str,
    request: CloseQuestion,
    answer: &ResponseRecorder<SignerQuestion>,
) -> Result<SignerQuestion, ServiceError> {
    let text = request.answer.as_deref().map(cleaned);
    if text.as_deref() == Some("") {
        return Err(ServiceError::invalid(
            "blank",
            &["answer"],
            format!("a text of 1 to {LONGEST_TEXT} characters"),
            "a text without words",
            "An answer needs words",
        ));
    }

    let id = lookup::envelope(core, caller, id).await?.id;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let envelope = lookup::lock_envelope(&mut tx, &caller.org, &id).await?;
    let asked = questions::list(&mut tx, &envelope.org, &envelope.id).await?;
    let mut asked = asked.into_iter();
    let found = asked.find(|one| one.id.as_str() == question);
    let mut question = found.ok_or(ServiceError::NotFound("Question"))?;
    if question.closing.is_some() {
        let why = "The question is closed: it was answered or dismissed before";
        return Err(ServiceError::Conflict(why.into()));
    }

    let closing = QuestionClosing {
        answer: text,
        by: caller.actor.clone(),
        at: now,
    };
    questions::close(&mut tx, &envelope, &question.id, &closing).await?;
    question.closing = Some(closing);

    let data = json!({
        "signer": asker(&question),
        "question_id": question.id,
        "question": question.text,
        "answer": question.answer(),
        "at": now,
    });
    let closed = EventType::SignerQuestionClosed;
    events::record_and_emit(&mut tx, &envelope, &caller.actor, closed, data, now).await?;

    // Another person in the place of the asker gets no answer to a question that they never asked.
    let all = signers::list(&mut tx, &envelope.org, &envelope.id).await?;
    let asker = all.iter().find(|signer| signer.id == question.signer);
    if let Some(signer) = asker.filter(|_| question.answer().is_some()) {
        mails::answered(&mut tx, &envelope, signer, &question, now).await?;
    }

    answer.commit(tx, &question).await?;
    Ok(question)
}

/// Returns the questions about an envelope, the oldest first.
pub async fn list(
    core: &Core,
    caller: &Caller,
    id: &str,
) -> Result<Vec<SignerQuestion>, ServiceError> {
    let envelope = lookup::envelope(core, caller, id).await?;
    let mut connection = core.store.read().await?;
    Ok(questions::list(&mut connection, &envelope.org, &envelope.id).await?)
}

/// Returns a signer's own questions, the oldest first.
pub async fn of_signer(
    core: &Core,
    envelope: &Envelope,
    signer: &Signer,
) -> Result<Vec<SignerQuestion>, ServiceError> {
    let mut connection = core.store.read().await?;
    let mut asked = questions::list(&mut connection, &envelope.org, &envelope.id).await?;
    // A person who takes the place of the asker has another id, and does not see what the asker wrote.
    asked.retain(|question| question.signer == signer.id);
    Ok(asked)
}

/// Returns a text as it is stored: without spaces around it, and with the line ends of all systems alike.
fn cleaned(text: &str) -> String {
    // Browsers send CRLF, which would count as two characters. PostgreSQL takes no U+0000.
    text.replace("\r\n", "\n").replace('\0', "").trim().into()
}

/// Formats the asker like [`signer_view`].
fn asker(question: &SignerQuestion) -> Value {
    json!({
        "signer_id": question.signer, "position": question.position + 1,
        "email": question.email, "name": question.name, "role": question.role,
    })
}
