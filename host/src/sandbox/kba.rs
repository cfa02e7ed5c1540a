//! The identity sandbox, in Method's words: three questions, of which the right answer
//! is called `correct`. Of whoever's address ends in `+nohistory` before the @ nothing is
//! known. It keeps nothing: what it has to remember is in its ids.

use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{post, put};
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::domain::token::random;

/// Question, and its answers; the first is right.
const QUESTIONS: [(&str, &str, [&str; 4]); 3] = [
    (
        "q1",
        "Which of these streets have you lived on?",
        ["Birch Lane", "Harbor Road", "Mill Street", "None of these"],
    ),
    (
        "q2",
        "Which of these lenders have you had a car loan with?",
        [
            "First Example Bank",
            "Northern Credit",
            "Valley Finance",
            "None of these",
        ],
    ),
    (
        "q3",
        "In which of these counties have you owned property?",
        ["Travis", "Cook", "King", "None of these"],
    ),
];

const RIGHT: &str = "correct";
const UNKNOWN: &str = "ent_nohistory_";

pub fn router() -> Router {
    Router::new()
        .route("/entities", post(create_entity))
        .route(
            "/entities/{entity}/verification_sessions",
            post(create_session),
        )
        .route(
            "/entities/{entity}/verification_sessions/{session}",
            put(answer),
        )
}

async fn create_entity(Json(body): Json<Value>) -> Json<Value> {
    let email = body["individual"]["email"].as_str().unwrap_or_default();
    let local = email.rsplit_once('@').map_or(email, |(local, _)| local);
    let prefix = match local.ends_with("+nohistory") {
        true => UNKNOWN,
        false => "ent_",
    };
    Json(json!({
        "id": format!("{prefix}{}", hex::encode(random::<8>())),
        "status": "active",
        "verification": {
            "phone": { "verified": true, "methods": [] },
            "identity": { "verified": false, "methods": ["kba"] },
        },
        "error": null,
    }))
}

async fn create_session(Path(entity): Path<String>) -> Response {
    if entity.starts_with(UNKNOWN) {
        return refused("MISSING_IDENTITY_MATCH");
    }
    let id = format!("evf_{}", hex::encode(random::<8>()));
    session(&entity, &id, "in_progress", None).into_response()
}

async fn answer(Path((entity, id)): Path<(String, String)>, Json(body): Json<Value>) -> Response {
    let given = body["kba"]["answers"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let right = |(question, ..): &(&str, &str, [&str; 4])| {
        given
            .iter()
            .any(|answer| answer["question_id"] == *question && answer["answer_id"] == RIGHT)
    };
    match QUESTIONS.iter().all(right) {
        true => session(&entity, &id, "verified", Some(true)).into_response(),
        false => refused("VERIFICATION_SESSION_FAILED_INVALID_ANSWER"),
    }
}

/// The right answer does not always stand at the same place.
fn session(entity: &str, id: &str, status: &str, authenticated: Option<bool>) -> Json<Value> {
    let questions: Vec<Value> = QUESTIONS
        .iter()
        .enumerate()
        .map(|(number, (question, text, answers))| {
            let mut choices: Vec<Value> = answers
                .iter()
                .enumerate()
                .map(|(index, text)| {
                    let id = match index {
                        0 => RIGHT.to_owned(),
                        _ => format!("wrong{index}"),
                    };
                    json!({ "id": id, "text": text })
                })
                .collect();
            choices[..3].rotate_right(number);
            json!({ "id": question, "text": text, "answers": choices })
        })
        .collect();
    Json(json!({
        "id": id,
        "entity_id": entity,
        "status": status,
        "type": "identity",
        "method": "kba",
        "kba": { "questions": questions, "authenticated": authenticated },
        "error": null,
    }))
}

fn refused(sub_type: &str) -> Response {
    let error = json!({ "error": { "type": "VERIFICATION_SESSION_FAILED", "sub_type": sub_type } });
    (StatusCode::BAD_REQUEST, Json(error)).into_response()
}
