//! A fake of Method's identity verification, written from its public documentation: people,
//! codes sent to phones, questions. The person's last name selects the outcome.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use holdfast::config::{Config, ProviderInstance, SecretText};
use serde_json::{Value, json};

pub const SECRET_KEY: &str = "sk_method_tests";
/// Code sent to every phone.
pub const CODE: &str = "482913";

/// A running fake of the provider.
pub struct FakeMethod {
    pub url: String,
    account: Arc<Mutex<MethodAccount>>,
}

#[derive(Default)]
struct MethodAccount {
    people: HashMap<String, MethodPerson>,
    /// Bodies of `POST /entities`.
    asked: Vec<Value>,
    sessions: HashMap<String, MethodSession>,
    requests: usize,
    down: bool,
    /// Processes requests and returns an error all the same.
    loses_answers: bool,
}

struct MethodPerson {
    last_name: String,
    phone_verified: bool,
}

struct MethodSession {
    entity: String,
    kind: String,
    done: bool,
    passed: bool,
}

type Shared = State<Arc<Mutex<MethodAccount>>>;

impl FakeMethod {
    pub async fn start() -> Self {
        let account = Arc::new(Mutex::new(MethodAccount::default()));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new()
            .route("/entities", post(create_entity))
            .route("/entities/{entity}", get(read_entity))
            .route("/entities/{entity}/verification_sessions", post(begin))
            .route(
                "/entities/{entity}/verification_sessions/{session}",
                put(go_on).get(read),
            )
            .with_state(account.clone());

        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, account }
    }

    /// Configures it as the provider of identity questions, with the instance name `main`.
    pub fn configure(&self, config: &mut Config) {
        let secret = ("secret_key".to_owned(), SecretText::new(SECRET_KEY));
        config.providers.allow_insecure = true;
        let instance = ProviderInstance {
            base_url: self.url.parse().unwrap(),
            allow_hosts: None,
            timeout: std::time::Duration::from_secs(60),
            secrets: BTreeMap::from([secret]),
            publishable_key: None,
            settings: BTreeMap::new(),
        };

        let instances = &mut config.providers.kba.instances;
        instances.insert("main".into(), instance);
    }

    /// Returns the bodies of all `POST /entities` so far.
    pub fn asked(&self) -> Vec<Value> {
        self.account.lock().unwrap().asked.clone()
    }

    pub fn requests(&self) -> usize {
        self.account.lock().unwrap().requests
    }

    /// Sets whether responses are lost from now on, although requests take effect.
    pub fn lose_answers(&self, loses: bool) {
        self.account.lock().unwrap().loses_answers = loses;
    }

    /// Sets whether every request fails from now on.
    pub fn be_down(&self, down: bool) {
        self.account.lock().unwrap().down = down;
    }
}

/// Runs the checks that apply to every request; returns a response for one that fails them.
fn turned_away(account: &mut MethodAccount, headers: &HeaderMap) -> Option<Response> {
    account.requests += 1;
    let is = |name: &str, value: &str| headers.get(name).is_some_and(|given| given == value);
    if account.down {
        return Some((StatusCode::BAD_GATEWAY, "Bad gateway").into_response());
    }
    if !is("authorization", &format!("Bearer {SECRET_KEY}")) {
        return Some(StatusCode::UNAUTHORIZED.into_response());
    }
    if !is("method-version", "2026-03-30") {
        return Some(refused("INVALID_REQUEST"));
    }

    None
}

fn failure(sub_type: &str) -> Value {
    let code = match sub_type {
        "VERIFICATION_SESSION_EXPIRED" => 19001,
        "VERIFICATION_SESSION_FAILED_INCORRECT_SMS_CODE" => 19002,
        "VERIFICATION_SESSION_FAILED_INVALID_ANSWER" => 19004,
        _ => 10001,
    };

    json!({
        "type": "VERIFICATION_SESSION_FAILED", "code": code, "sub_type": sub_type,
        "message": "about 1234-secret-detail",
    })
}

fn refused(sub_type: &str) -> Response {
    let body = json!({ "success": false, "data": { "error": failure(sub_type) } });
    (StatusCode::BAD_REQUEST, Json(body)).into_response()
}

fn id(prefix: &str, account: &MethodAccount) -> String {
    let number = account.people.len() + account.sessions.len();
    format!("{prefix}_{number:012}")
}

async fn create_entity(
    State(account): Shared,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    let mut account = account.lock().unwrap();
    if let Some(refused) = turned_away(&mut account, &headers) {
        return refused;
    }

    account.asked.push(body.clone());
    let person = &body["individual"];
    let last_name = person["last_name"].as_str().unwrap_or_default().to_owned();
    if last_name == "Unacceptable" {
        return refused("INVALID_REQUEST");
    }

    let entity = id("ent", &account);
    let phone_verified = last_name == "Knownphone";
    let methods = match last_name.as_str() {
        "Nomethods" => json!(["element"]),
        _ => json!(["kba"]),
    };
    let shown = json!({
        "id": entity, "type": "individual", "status": "incomplete", "error": null,
        "verification": {
            "identity": { "verified": false, "matched": true, "methods": methods },
            "phone": { "verified": phone_verified, "methods": ["sms", "sna"] },
        },
    });

    let wrapped = last_name == "Wrapped";
    let person = MethodPerson {
        last_name,
        phone_verified,
    };
    account.people.insert(entity, person);

    if wrapped {
        Json(json!({ "success": true, "data": shown, "message": null })).into_response()
    } else {
        Json(shown).into_response()
    }
}

/// Has no persons: the plugin reads none that it made.
async fn read_entity(State(account): Shared, headers: HeaderMap) -> Response {
    let turned_away = turned_away(&mut account.lock().unwrap(), &headers);
    let body = json!({ "success": false, "data": { "error": failure("RESOURCE_NOT_FOUND") } });
    turned_away.unwrap_or_else(|| (StatusCode::NOT_FOUND, Json(body)).into_response())
}

fn questions() -> Value {
    let question = |number: usize| {
        json!({
            "id": format!("qtn_{number}"),
            "text": format!("Which of these has number {number}?"),
            "answers": [
                { "id": format!("ans_{number}_a"), "text": "This (Incorrect)" },
                { "id": format!("ans_{number}_b"), "text": "That (Correct)" },
                { "id": format!("ans_{number}_c"), "text": "None of the above (Incorrect)" },
            ],
        })
    };

    json!((1..=4).map(question).collect::<Vec<_>>())
}

fn shown(id: &str, session: &MethodSession, status: &str, error: &Value) -> Value {
    let mut shown = json!({
        "id": id, "entity_id": session.entity, "status": status, "type": session.kind,
        "error": error, "created_at": "2026-11-22T10:00:00.000Z",
        "updated_at": "2026-11-22T10:00:00.000Z",
    });
    if session.kind == "phone" {
        shown["method"] = "sms".into();
        shown["sms"] = json!({});
    } else {
        shown["method"] = "kba".into();
        shown["kba"] = json!({ "questions": questions(), "authenticated": status == "verified" });
    }

    shown
}

async fn begin(
    State(account): Shared,
    headers: HeaderMap,
    Path(entity): Path<String>,
    Json(body): Json<Value>,
) -> Response {
    let mut account = account.lock().unwrap();
    if let Some(refused) = turned_away(&mut account, &headers) {
        return refused;
    }
    let Some(person) = account.people.get(&entity) else {
        return refused("NOT_FOUND");
    };

    let kind = body["type"].as_str().unwrap_or_default().to_owned();
    match (kind.as_str(), person.last_name.as_str()) {
        ("phone", "Manycodes") => return refused("ENTITY_PHONE_VERIFICATION_MAX_ATTEMPTS"),
        ("phone", _) if person.phone_verified => return refused("EXISTING_VERIFIED_SESSION"),
        ("phone", _) => {}
        ("identity", _) if !person.phone_verified => {
            return refused("MISSING_PHONE_VERIFICATION");
        }
        ("identity", "Nohistory") => return refused("MISSING_IDENTITY_MATCH"),
        ("identity", _) => {}
        _ => return refused("INVALID_REQUEST"),
    }

    let session = MethodSession {
        entity,
        kind,
        done: false,
        passed: false,
    };
    let id = id("evf", &account);
    let answer = shown(&id, &session, "in_progress", &Value::Null);

    account.sessions.insert(id, session);
    Json(answer).into_response()
}

async fn go_on(
    State(account): Shared,
    headers: HeaderMap,
    Path((entity, id)): Path<(String, String)>,
    Json(body): Json<Value>,
) -> Response {
    let mut account = account.lock().unwrap();
    if let Some(refused) = turned_away(&mut account, &headers) {
        return refused;
    }

    let loses_answers = account.loses_answers;
    let MethodAccount {
        people, sessions, ..
    } = &mut *account;
    let (Some(person), Some(session)) = (people.get_mut(&entity), sessions.get_mut(&id)) else {
        return refused("NOT_FOUND");
    };
    if session.passed {
        return refused("EXISTING_VERIFIED_SESSION");
    }

    if session.done || session.entity != entity || body["type"] != session.kind.as_str() {
        return refused("INVALID_REQUEST");
    }

    session.done = true;
    if session.kind == "phone" {
        if body["sms"]["sms_code"] != CODE {
            return refused("VERIFICATION_SESSION_FAILED_INCORRECT_SMS_CODE");
        }
        person.phone_verified = true;
        return Json(shown(&id, session, "verified", &Value::Null)).into_response();
    }
    if person.last_name == "Slow" {
        // Method reports this failure in the session object, with status 200.
        let error = failure("VERIFICATION_SESSION_EXPIRED");
        return Json(shown(&id, session, "failed", &error)).into_response();
    }

    let empty = Vec::new();
    let given = body["kba"]["answers"].as_array().unwrap_or(&empty);
    let right = (1..=4).all(|number| {
        let (question, answer) = (format!("qtn_{number}"), format!("ans_{number}_b"));
        given
            .iter()
            .any(|one| one["question_id"] == question && one["answer_id"] == answer)
    });
    session.passed = right;

    if !right {
        refused("VERIFICATION_SESSION_FAILED_INVALID_ANSWER")
    } else if loses_answers {
        StatusCode::GATEWAY_TIMEOUT.into_response()
    } else {
        Json(shown(&id, session, "verified", &Value::Null)).into_response()
    }
}

async fn read(
    State(account): Shared,
    headers: HeaderMap,
    Path((_, id)): Path<(String, String)>,
) -> Response {
    let mut account = account.lock().unwrap();
    if let Some(refused) = turned_away(&mut account, &headers) {
        return refused;
    }

    let session = &account.sessions[&id];
    let status = if session.passed {
        "verified"
    } else {
        "in_progress"
    };

    Json(shown(&id, session, status, &Value::Null)).into_response()
}
