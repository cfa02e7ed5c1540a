//! Example Sign, the vendor that the plugins scaffolded by `holdfast component new` talk to.
//! It listens on a socket and identifies objects by their external ids. It sends no callbacks
//! by itself; the tests send them.

use std::sync::{Arc, Mutex, MutexGuard};

use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast::domain::hash::hmac_sha256;
use serde_json::{Value, json};

pub const KEY: &str = "key-of-example-sign";
pub const SECRET: &str = "secret-of-example-sign";

#[derive(Default)]
struct ExampleSignAccount {
    url: String,
    templates: Vec<Value>,
    /// In the same order as the templates.
    documents: Vec<Vec<u8>>,
    submissions: Vec<Value>,
    signed: Vec<u8>,
    /// Received requests as method and path.
    asked: Vec<String>,
}

type Shared = Arc<Mutex<ExampleSignAccount>>;

/// A running fake of the vendor.
pub struct ExampleSign {
    pub url: String,
    account: Shared,
}

impl ExampleSign {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let account = Shared::default();
        account.lock().unwrap().url = url.clone();
        let router = Router::new()
            .route("/templates", post(create_template))
            .route("/templates/{id}", get(read_template).delete(gone))
            .route("/templates/{id}/fields", post(add_fields))
            .route("/templates/{id}/copies", post(copy))
            .route("/submissions", post(create_submission))
            .route("/submissions/{id}", get(read_submission).delete(archive))
            .route("/submissions/{id}/document", get(document))
            .route(
                "/elsewhere/templates/{id}",
                get(async || (StatusCode::FOUND, [("location", "http://127.0.0.1:1/")])),
            )
            .layer(axum::middleware::from_fn_with_state(account.clone(), admit))
            .with_state(account.clone());

        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, account }
    }

    fn account(&self) -> MutexGuard<'_, ExampleSignAccount> {
        self.account.lock().unwrap()
    }

    /// Returns the requests so far as method and path.
    pub fn asked(&self) -> Vec<String> {
        self.account().asked.clone()
    }

    /// Returns the document of the first template as the vendor received it.
    pub fn document(&self) -> Vec<u8> {
        self.account().documents[0].clone()
    }

    /// Completes the submission for all signers. Returns the callback's signature and body.
    pub fn sign(&self) -> (String, Vec<u8>) {
        let mut account = self.account();
        account.signed = account.documents[0].clone();
        let fields = account.templates[0]["fields"].as_array().unwrap().clone();
        let submission = &mut account.submissions[0];
        submission["status"] = json!("completed");
        submission["completed_at"] = json!("2026-01-02T03:04:05Z");

        for submitter in submission["submitters"].as_array_mut().unwrap() {
            submitter["status"] = json!("completed");
            submitter["completed_at"] = json!("2026-01-02T03:04:05Z");
            let signatures = fields.iter().filter(|field| field["type"] == "signature");
            let executed = signatures.filter(|field| field["role"] == submitter["role"]);
            let executed: Vec<Value> = executed
                .map(|field| json!({ "name": field["name"], "type": field["type"], "value": "signed" }))
                .collect();
            submitter["values"].as_array_mut().unwrap().extend(executed);
        }

        let body = json!({ "submission_id": submission["id"] }).to_string();
        let signature = hmac_sha256(SECRET.as_bytes(), &[body.as_bytes()]);
        (hex::encode(signature), body.into_bytes())
    }
}

async fn admit(State(account): State<Shared>, request: Request, next: Next) -> Response {
    let asked = format!("{} {}", request.method(), request.uri().path());
    account.lock().unwrap().asked.push(asked);
    let expected = format!("Bearer {KEY}");
    match request.headers().get("authorization") {
        Some(key) if key.as_bytes() == expected.as_bytes() => next.run(request).await,
        _ => StatusCode::UNAUTHORIZED.into_response(),
    }
}

type Answer = Result<(StatusCode, Json<Value>), StatusCode>;

fn found(all: &[Value], id: &str) -> Result<usize, StatusCode> {
    let number = all.iter().position(|one| one["id"] == id);
    number.ok_or(StatusCode::NOT_FOUND)
}

fn roles(fields: &Value) -> Vec<Value> {
    let mut roles: Vec<Value> = Vec::new();
    for field in fields.as_array().unwrap() {
        if !roles.contains(&field["role"]) {
            roles.push(field["role"].clone());
        }
    }
    roles
}

fn add(
    account: &mut ExampleSignAccount,
    request: &Value,
    fields: &Value,
    document: Vec<u8>,
) -> Value {
    let template = json!({
        "id": format!("t-{}", account.templates.len() + 1), "name": request["name"],
        "external_id": request["external_id"], "roles": roles(fields), "fields": fields, "documents": 1,
    });
    account.templates.push(template.clone());
    account.documents.push(document);
    template
}

async fn create_template(State(account): State<Shared>, body: Bytes) -> Answer {
    let request: Value = serde_json::from_slice(&body).map_err(|_| StatusCode::BAD_REQUEST)?;
    let document = STANDARD.decode(request["document"].as_str().unwrap());
    let document = document.map_err(|_| StatusCode::BAD_REQUEST)?;
    let mut account = account.lock().unwrap();
    let known = |one: &&Value| one["external_id"] == request["external_id"];
    if let Some(known) = account.templates.iter().find(known) {
        return Ok((StatusCode::OK, Json(known.clone())));
    }

    let template = add(&mut account, &request, &request["fields"], document);
    Ok((StatusCode::CREATED, Json(template)))
}

async fn read_template(State(account): State<Shared>, Path(id): Path<String>) -> Answer {
    let account = account.lock().unwrap();
    let number = found(&account.templates, &id)?;
    Ok((StatusCode::OK, Json(account.templates[number].clone())))
}

async fn add_fields(
    State(account): State<Shared>,
    Path(id): Path<String>,
    Json(request): Json<Value>,
) -> Answer {
    let mut account = account.lock().unwrap();
    let number = found(&account.templates, &id)?;
    let template = &mut account.templates[number];
    let added = request["fields"].as_array().unwrap().clone();
    template["fields"].as_array_mut().unwrap().extend(added);
    template["roles"] = json!(roles(&template["fields"]));
    Ok((StatusCode::OK, Json(template.clone())))
}

async fn copy(
    State(account): State<Shared>,
    Path(id): Path<String>,
    Json(request): Json<Value>,
) -> Answer {
    let mut account = account.lock().unwrap();
    let number = found(&account.templates, &id)?;
    let fields = account.templates[number]["fields"].clone();
    let document = account.documents[number].clone();
    let template = add(&mut account, &request, &fields, document);
    Ok((StatusCode::CREATED, Json(template)))
}

async fn create_submission(State(account): State<Shared>, Json(request): Json<Value>) -> Answer {
    let mut account = account.lock().unwrap();
    let known = |one: &&Value| one["external_id"] == request["external_id"];
    if let Some(known) = account.submissions.iter().find(known) {
        return Ok((StatusCode::OK, Json(known.clone())));
    }

    found(&account.templates, request["template_id"].as_str().unwrap())?;
    let number = account.submissions.len() + 1;
    let url = &account.url;
    let submitters = (1..).zip(request["submitters"].as_array().unwrap());
    let submitters: Vec<Value> = submitters
        .map(|(one, submitter)| {
            let values = submitter["values"].as_object().unwrap();
            let values = values.iter();
            json!({
                "id": format!("p-{number}-{one}"), "name": submitter["name"], "email": submitter["email"],
                "role": submitter["role"], "status": "pending", "signing_url": format!("{url}/sign/p-{number}-{one}"),
                "values": values.map(|(name, value)| json!({ "name": name, "type": "text", "value": value }))
                    .collect::<Vec<_>>(),
            })
        })
        .collect();

    let submission = json!({
        "id": format!("s-{number}"), "external_id": request["external_id"], "status": "pending",
        "archived": false, "submitters": submitters,
    });
    account.submissions.push(submission.clone());

    Ok((StatusCode::CREATED, Json(submission)))
}

async fn read_submission(State(account): State<Shared>, Path(id): Path<String>) -> Answer {
    let account = account.lock().unwrap();
    let number = found(&account.submissions, &id)?;
    Ok((StatusCode::OK, Json(account.submissions[number].clone())))
}

async fn archive(State(account): State<Shared>, Path(id): Path<String>) -> StatusCode {
    let mut account = account.lock().unwrap();
    match found(&account.submissions, &id) {
        Ok(number) => {
            account.submissions[number]["archived"] = json!(true);
            StatusCode::NO_CONTENT
        }
        Err(status) => status,
    }
}

async fn document(State(account): State<Shared>, Path(id): Path<String>) -> Response {
    let account = account.lock().unwrap();
    match found(&account.submissions, &id) {
        Ok(_) => account.signed.clone().into_response(),
        Err(status) => status.into_response(),
    }
}

async fn gone() -> StatusCode {
    StatusCode::NO_CONTENT
}
