//! An identity provider: implements the world of holdfast on top of the API of one vendor. The vendor, Example
//! Identity, is fictitious: replace it with yours.
//!
//! `vendor.rs` sends requests and parses responses; this file maps each function of the world to
//! them. The host makes a fresh instance for every call, so no state survives a call but the one that a
//! call returns.

mod vendor;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::exports::holdfast::kba::kba::{Guest, IdentityField, Progress, ProviderError};
use crate::exports::holdfast::kba::probing::Guest as Probing;
use crate::holdfast::kba::types::{Choice, Question, Step};

wit_bindgen::generate!({ path: "wit", world: "probing-kba-provider", generate_all });

struct Component;

/// A session at the vendor.
#[derive(Deserialize)]
struct Session {
    id: String,
    state: String,
    #[serde(default)]
    questions: Vec<Asked>,
}

#[derive(Deserialize)]
struct Asked {
    id: String,
    text: String,
    choices: Vec<Offered>,
}

#[derive(Deserialize)]
struct Offered {
    id: String,
    text: String,
}

/// The account that the key belongs to.
#[derive(Deserialize)]
struct Account {
    #[serde(rename = "id")]
    _id: String,
}

impl Probing for Component {
    fn probe() -> Result<(), ProviderError> {
        let account: Option<Account> = vendor::get("/account")?;
        account.map(drop).ok_or_else(wrong_address)
    }
}

impl Guest for Component {
    fn required_identity() -> Vec<IdentityField> {
        let fields = [
            ("first_name", "First name", true),
            ("last_name", "Last name", true),
            ("phone", "Mobile phone", true),
            ("date_of_birth", "Date of birth", false),
        ];
        fields
            .into_iter()
            .map(|(name, label, required)| IdentityField {
                name: name.into(),
                label: label.into(),
                required,
            })
            .collect()
    }

    fn start(identity: Vec<(String, String)>) -> Result<Progress, ProviderError> {
        let person: BTreeMap<String, String> = identity.into_iter().collect();
        let session = vendor::post("/sessions", None, &json!({ "person": person }))?;
        progress(session.ok_or_else(wrong_address)?)
    }

    fn submit_code(state: String, code: String) -> Result<Progress, ProviderError> {
        submit(state, "code", &json!({ "code": code }))
    }

    fn submit_answers(state: String, answers: Vec<(String, String)>) -> Result<Progress, ProviderError> {
        let answers: BTreeMap<String, String> = answers.into_iter().collect();
        submit(state, "answers", &json!({ "answers": answers }))
    }
}

/// Sends what the signer entered. The state of a call is the id of its session.
fn submit(state: String, what: &str, body: &Value) -> Result<Progress, ProviderError> {
    if !is_id(&state) {
        return Err(ProviderError::Rejected("no state of this plugin".into()));
    }

    match vendor::post(&format!("/sessions/{state}/{what}"), None, body)? {
        Some(session) => progress(session),
        // The vendor deletes a session that took too long.
        None => Ok(Progress {
            session_id: state.clone(),
            step: Step::Expired,
            state,
        }),
    }
}

fn progress(session: Session) -> Result<Progress, ProviderError> {
    let step = match session.state.as_str() {
        "code_sent" => Step::CodeSent,
        "code_wrong" => Step::CodeWrong,
        "questions" if !session.questions.is_empty() => {
            Step::Questions(session.questions.into_iter().map(question).collect())
        }
        // A form without questions proves nothing.
        "questions" | "no_history" => Step::Unavailable,
        "passed" => Step::Passed,
        "failed" => Step::Failed,
        "expired" => Step::Expired,
        // Only a clear result may open or close the document.
        _ => return Err(vendor::not_understood()),
    };
    if !is_id(&session.id) {
        return Err(vendor::not_understood());
    }

    Ok(Progress {
        session_id: session.id.clone(),
        step,
        state: session.id,
    })
}

fn question(asked: Asked) -> Question {
    let choices = asked.choices.into_iter();
    Question {
        id: asked.id,
        text: asked.text,
        choices: choices
            .map(|offered| Choice { id: offered.id, text: offered.text })
            .collect(),
    }
}

/// Whether a text can be a part of a path.
fn is_id(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !text.is_empty() && text.bytes().all(is_part)
}

fn wrong_address() -> ProviderError {
    ProviderError::NotConfigured("setting base_url: the vendor's API is not there".into())
}

export!(Component);
