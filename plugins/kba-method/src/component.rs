//! The component's exports.

#![expect(unsafe_code, reason = "the export macro writes the entry points")]

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::api::{self, MethodRefusal};
use crate::bindings::exports::holdfast::kba::kba::{Guest, IdentityField, Progress, ProviderError};
use crate::bindings::exports::holdfast::kba::probing::Guest as Probing;
use crate::bindings::holdfast::host::settings;
use crate::bindings::holdfast::kba::types::{Choice, Question, Step};
use crate::identity;
use crate::wire::{ErrorMeaning, WireEntity, WireSession};

type Result<T> = std::result::Result<T, ProviderError>;

struct KbaMethodComponent;

/// SessionState passed to the next call: the person and the session.
#[derive(Serialize, Deserialize)]
struct SessionState {
    entity: String,
    session: String,
}

impl SessionState {
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

impl Probing for KbaMethodComponent {
    /// Asks for a person that Method cannot know: its own error shows that the key was accepted.
    fn probe() -> Result<()> {
        match api::get::<WireEntity>("/entities/ent_0") {
            // A wrong key or address fails before Method looks for the person.
            Ok(_) | Err(MethodRefusal::Said(_)) => Ok(()),
            Err(MethodRefusal::Provider(error)) => Err(error),
        }
    }
}

impl Guest for KbaMethodComponent {
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
        let entity: WireEntity =
            api::post("/entities", &identity::entity(&identity)).map_err(other)?;
        let verification = &entity.verification;
        let methods = &verification.identity.methods;
        let asks = |method: &String| method == "kba";
        // Method knows too little about the person to ask questions, and a code by text message would cost
        // for nothing.
        if !methods.is_empty() && !methods.iter().any(asks) {
            return Ok(ended(entity.id, String::new(), Step::Unavailable));
        }

        // Method requires a verified phone before it asks questions.
        if verification.phone.verified {
            questions(entity.id)
        } else {
            send_code(entity.id, Step::CodeSent)
        }
    }

    fn submit_code(state: String, code: String) -> Result<Progress> {
        let state = SessionState::read(&state)?;
        let body = json!({ "type": "phone", "method": "sms", "sms": { "sms_code": code } });
        let wrong = match api::put::<WireSession>(&state.path(), &body) {
            Ok(session) => match (session.status.as_str(), session.error) {
                ("verified", _) => return questions(state.entity),
                (_, Some(failure)) => failure.meaning(),
                _ => ErrorMeaning::WrongCode,
            },
            // An unknown error is no wrong code: a new code would be sent for a mistake of ours.
            Err(MethodRefusal::Said(failure)) if failure.meaning() == ErrorMeaning::Other => {
                return Err(ProviderError::Rejected(failure.name()));
            }
            Err(MethodRefusal::Said(failure)) => failure.meaning(),
            Err(MethodRefusal::Provider(error)) => return Err(error),
        };
        match wrong {
            // The response to an earlier attempt was lost, and the phone is verified since.
            ErrorMeaning::DoneBefore => questions(state.entity),
            ErrorMeaning::Expired => Ok(state.progress(Step::Expired)),
            ErrorMeaning::TooMany => Err(ProviderError::RateLimited(None)),
            // A code can be tried only once, so the next try is a new session with a new code.
            _ => send_code(state.entity, Step::CodeWrong),
        }
    }

    fn submit_answers(state: String, answers: Vec<(String, String)>) -> Result<Progress> {
        let state = SessionState::read(&state)?;
        let answers: Vec<_> = answers
            .into_iter()
            .map(|(question, answer)| json!({ "question_id": question, "answer_id": answer }))
            .collect();
        let body = json!({ "type": "identity", "method": "kba", "kba": { "answers": answers } });
        match api::put::<WireSession>(&state.path(), &body) {
            Ok(session) => Ok(state.progress(ending(session))),
            // The response to an earlier attempt was lost: read its result.
            Err(MethodRefusal::Said(failure)) if failure.meaning() == ErrorMeaning::DoneBefore => {
                let session: WireSession = api::get(&state.path()).map_err(other)?;
                Ok(state.progress(ending(session)))
            }
            Err(refused) => refused_identity(state.entity, state.session, refused),
        }
    }
}

/// Returns the step that a finished session of questions leads to.
fn ending(session: WireSession) -> Step {
    // Both members have to confirm it.
    let passed = session.status == "verified" && session.kba.authenticated == Some(true);
    match session.error.map(|failure| failure.meaning()) {
        None if passed => Step::Passed,
        // Anything unclear is a failure: only a clear pass may open the document.
        Some(ErrorMeaning::Expired) => Step::Expired,
        _ => Step::Failed,
    }
}

/// Sends a code to the phone.
fn send_code(entity: String, step: Step) -> Result<Progress> {
    let path = format!("/entities/{entity}/verification_sessions");
    let body = json!({ "type": "phone", "method": "sms", "sms": {} });
    match api::post::<WireSession>(&path, &body) {
        Ok(session) => Ok(SessionState {
            entity,
            session: session.id,
        }
        .progress(step)),
        // The phone was verified in an earlier visit, so no code is needed.
        Err(MethodRefusal::Said(failure)) if failure.meaning() == ErrorMeaning::DoneBefore => {
            questions(entity)
        }
        Err(refused) => Err(other(refused)),
    }
}

/// Starts a session of questions.
fn questions(entity: String) -> Result<Progress> {
    let path = format!("/entities/{entity}/verification_sessions");
    let body = json!({ "type": "identity", "method": "kba", "kba": {} });
    let session: WireSession = match api::post(&path, &body) {
        Ok(session) => session,
        Err(refused) => return refused_identity(entity, String::new(), refused),
    };
    // Method can answer 200 with an error inside the session.
    if let Some(failure) = session.error {
        return refused_identity(entity, session.id, MethodRefusal::Said(failure));
    }

    // A form without questions proves nothing.
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

    let state = SessionState {
        entity,
        session: session.id,
    };
    Ok(state.progress(Step::Questions(asked)))
}

/// Maps an error about questions or answers to a step.
fn refused_identity(entity: String, session: String, refused: MethodRefusal) -> Result<Progress> {
    let step = match &refused {
        MethodRefusal::Said(failure) => match failure.meaning() {
            ErrorMeaning::NoHistory => Step::Unavailable,
            ErrorMeaning::WrongAnswer => Step::Failed,
            ErrorMeaning::Expired => Step::Expired,
            // Everything else is a failure of the call, and states nothing about the person.
            _ => return Err(other(refused)),
        },
        MethodRefusal::Provider(_) => return Err(other(refused)),
    };

    Ok(ended(entity, session, step))
}

/// Returns the final progress. Without a session, the id of the person stands in for the session
/// id.
fn ended(entity: String, session: String, step: Step) -> Progress {
    let session = if session.is_empty() {
        entity.clone()
    } else {
        session
    };
    SessionState { entity, session }.progress(step)
}

fn other(refused: MethodRefusal) -> ProviderError {
    match refused {
        MethodRefusal::Said(failure) => match failure.meaning() {
            ErrorMeaning::TooMany => ProviderError::RateLimited(None),
            _ => ProviderError::Rejected(failure.name()),
        },
        MethodRefusal::Provider(error) => error,
    }
}

crate::bindings::export!(KbaMethodComponent with_types_in crate::bindings);
