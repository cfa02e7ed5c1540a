//! The component's exports.

#![expect(unsafe_code, reason = "the export macro writes the entry points")]

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::api::{self, Refused};
use crate::bindings::exports::holdfast::kba::kba::{Guest, IdentityField, Progress, ProviderError};
use crate::bindings::holdfast::host::settings;
use crate::bindings::holdfast::kba::types::{Choice, Question, Step};
use crate::identity;
use crate::wire::{Entity, Meaning, Session};

type Result<T> = std::result::Result<T, ProviderError>;

struct Component;

/// State passed to the next call: the person and the session.
#[derive(Serialize, Deserialize)]
struct State {
    entity: String,
    session: String,
}

impl State {
    fn read(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|_| ProviderError::Rejected("no state of ours".into()))
    }

    fn path(&self) -> String {
        format!(
            "/entities/{}/verification_sessions/{}",
            self.entity, self.session
        )
    }

    fn progress(self, step: Step) -> Progress {
        Progress {
            state: json!(self).to_string(),
            session_id: self.session,
            step,
        }
    }
}

impl Guest for Component {
    fn required_identity() -> Vec<IdentityField> {
        let setting = settings::get("identity_fields");
        identity::declared(setting.as_deref())
            .into_iter()
            .map(|field| IdentityField {
                name: field.name.into(),
                label: field.label.into(),
                required: field.required,
            })
            .collect()
    }

    fn start(identity: Vec<(String, String)>) -> Result<Progress> {
        let entity: Entity = api::post("/entities", &identity::entity(&identity)).map_err(other)?;
        let verification = &entity.verification;
        let methods = &verification.identity.methods;
        let asks = |method: &String| method == "kba";
        if !methods.is_empty() && !methods.iter().any(asks) {
            return Ok(ended(entity.id, String::new(), Step::Unavailable));
        }
        match verification.phone.verified {
            true => questions(entity.id),
            false => send_code(entity.id, Step::CodeSent),
        }
    }

    fn submit_code(state: String, code: String) -> Result<Progress> {
        let state = State::read(&state)?;
        let body = json!({ "type": "phone", "method": "sms", "sms": { "sms_code": code } });
        let wrong = match api::put::<Session>(&state.path(), &body) {
            Ok(session) => match (session.status.as_str(), session.error) {
                ("verified", _) => return questions(state.entity),
                (_, Some(failure)) => failure.meaning(),
                _ => Meaning::WrongCode,
            },
            Err(Refused::Said(failure)) if failure.meaning() == Meaning::Other => {
                return Err(ProviderError::Rejected(failure.name()));
            }
            Err(Refused::Said(failure)) => failure.meaning(),
            Err(Refused::Provider(error)) => return Err(error),
        };
        match wrong {
            Meaning::DoneBefore => questions(state.entity),
            Meaning::Expired => Ok(state.progress(Step::Expired)),
            Meaning::TooMany => Err(ProviderError::RateLimited(None)),
            // A code can be tried only once, so the next try is a new session with a new code.
            _ => send_code(state.entity, Step::CodeWrong),
        }
    }

    fn submit_answers(state: String, answers: Vec<(String, String)>) -> Result<Progress> {
        let state = State::read(&state)?;
        let answers: Vec<_> = answers
            .into_iter()
            .map(|(question, answer)| json!({ "question_id": question, "answer_id": answer }))
            .collect();
        let body = json!({ "type": "identity", "method": "kba", "kba": { "answers": answers } });
        match api::put::<Session>(&state.path(), &body) {
            Ok(session) => Ok(state.progress(ending(session))),
            // The response to an earlier attempt was lost: read its result.
            Err(Refused::Said(failure)) if failure.meaning() == Meaning::DoneBefore => {
                let session: Session = api::get(&state.path()).map_err(other)?;
                Ok(state.progress(ending(session)))
            }
            Err(refused) => refused_identity(state.entity, state.session, refused),
        }
    }
}

/// Returns the step that a finished session of questions leads to.
fn ending(session: Session) -> Step {
    // Both members have to confirm it.
    let passed = session.status == "verified" && session.kba.authenticated == Some(true);
    match session.error.map(|failure| failure.meaning()) {
        None if passed => Step::Passed,
        Some(Meaning::Expired) => Step::Expired,
        _ => Step::Failed,
    }
}

/// Sends a code to the phone.
fn send_code(entity: String, step: Step) -> Result<Progress> {
    let path = format!("/entities/{entity}/verification_sessions");
    let body = json!({ "type": "phone", "method": "sms", "sms": {} });
    match api::post::<Session>(&path, &body) {
        Ok(session) => Ok(State {
            entity,
            session: session.id,
        }
        .progress(step)),
        Err(Refused::Said(failure)) if failure.meaning() == Meaning::DoneBefore => {
            questions(entity)
        }
        Err(refused) => Err(other(refused)),
    }
}

/// Starts a session of questions.
fn questions(entity: String) -> Result<Progress> {
    let path = format!("/entities/{entity}/verification_sessions");
    let body = json!({ "type": "identity", "method": "kba", "kba": {} });
    let session: Session = match api::post(&path, &body) {
        Ok(session) => session,
        Err(refused) => return refused_identity(entity, String::new(), refused),
    };
    if let Some(failure) = session.error {
        return refused_identity(entity, session.id, Refused::Said(failure));
    }
    if session.kba.questions.is_empty() {
        return Ok(ended(entity, session.id, Step::Unavailable));
    }
    let asked = session
        .kba
        .questions
        .into_iter()
        .map(|question| Question {
            id: question.id,
            text: question.text,
            choices: question
                .answers
                .into_iter()
                .map(|answer| Choice {
                    id: answer.id,
                    text: answer.text,
                })
                .collect(),
        })
        .collect();
    let state = State {
        entity,
        session: session.id,
    };
    Ok(state.progress(Step::Questions(asked)))
}

/// Maps an error about questions or answers to a step.
fn refused_identity(entity: String, session: String, refused: Refused) -> Result<Progress> {
    let step = match &refused {
        Refused::Said(failure) => match failure.meaning() {
            Meaning::NoHistory => Step::Unavailable,
            Meaning::WrongAnswer => Step::Failed,
            Meaning::Expired => Step::Expired,
            _ => return Err(other(refused)),
        },
        Refused::Provider(_) => return Err(other(refused)),
    };
    Ok(ended(entity, session, step))
}

/// Returns the final progress. Without a session, the id of the person stands in for the session
/// id.
fn ended(entity: String, session: String, step: Step) -> Progress {
    let session = match session.is_empty() {
        true => entity.clone(),
        false => session,
    };
    State { entity, session }.progress(step)
}

fn other(refused: Refused) -> ProviderError {
    match refused {
        Refused::Said(failure) => match failure.meaning() {
            Meaning::TooMany => ProviderError::RateLimited(None),
            _ => ProviderError::Rejected(failure.name()),
        },
        Refused::Provider(error) => error,
    }
}

crate::bindings::export!(Component with_types_in crate::bindings);
