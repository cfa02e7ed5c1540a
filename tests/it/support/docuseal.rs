//! A fake DocuSeal, written from the reference page of its API with its quirks: silent
//! fallbacks, silent drops, and no idempotency.
//!
//! The methods of [`FakeDocuseal`] act for people who use DocuSeal. It sends no webhooks by itself:
//! a test sends those it needs.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use holdfast::config::{Config, ProviderInstance, SecretText};
use holdfast::domain::clock::Clock;
use holdfast::domain::token::random;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::Sha256;

pub const TOKEN: &str = "token-of-the-real-account";
/// The HMAC key is this text with its prefix, not the decoded base64.
pub const SECRET: &str = "whsec_c3RhbmQtaW4gc2VjcmV0";

/// Time limit of one request in the tests.
pub const PATIENCE: Duration = Duration::from_millis(1500);

/// Way in which a request fails.
#[derive(Clone, Debug)]
pub enum DocusealFault {
    /// This response; the request has no effect.
    Answer(u16, Value),
    /// 200 without JSON; the request has no effect.
    Garbage,
    /// No response; the request has no effect.
    Hanging,
    /// This response, although the request took effect.
    AnswerAfter(u16, Value),
    /// The connection breaks during the response; the request took effect.
    DroppedAfter,
    /// No response; the request took effect.
    HangingAfter,
    /// A correct response that is delayed and stale when it arrives.
    Late(Duration),
}

/// A recorded request.
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    pub method: String,
    /// Below `/api`, with the query.
    pub path: String,
    pub token: Option<String>,
    pub body: Value,
}

struct PlannedFault {
    method: &'static str,
    path: String,
    fault: DocusealFault,
    times: usize,
}

#[derive(Default)]
struct DocusealAccount {
    url: String,
    last_id: i64,
    templates: Vec<Value>,
    /// Each with the id of its template.
    pdfs: Vec<(i64, Vec<u8>)>,
    submissions: Vec<Value>,
    /// Each with the secret of its URL, which is the only credential needed to download it.
    files: Vec<(String, Vec<u8>)>,
    /// Ids of objects that belong to another account.
    foreign: BTreeSet<i64>,
    free_build: bool,
    faults: Vec<PlannedFault>,
    requests: Vec<RecordedRequest>,
}

type Shared = Arc<Mutex<DocusealAccount>>;

/// An error response.
struct RefusedCall(u16, Value);

impl IntoResponse for RefusedCall {
    fn into_response(self) -> Response {
        (StatusCode::from_u16(self.0).unwrap(), Json(self.1)).into_response()
    }
}

type Answer = Result<Json<Value>, RefusedCall>;

fn invalid(why: impl Into<String>) -> RefusedCall {
    RefusedCall(422, json!({ "error": why.into() }))
}

/// The error bodies of the reference page, section 10.
pub mod errors {
    use serde_json::{Value, json};

    pub fn not_authenticated() -> (u16, Value) {
        (401, json!({ "error": "Not authenticated" }))
    }
    pub fn not_authorized() -> (u16, Value) {
        (403, json!({ "error": "Not authorized" }))
    }
    pub fn wrong_mode() -> (u16, Value) {
        (
            403,
            json!({ "error": "Use the production account's API key" }),
        )
    }
    pub fn not_found() -> (u16, Value) {
        (404, json!({ "status": 404 }))
    }
    pub fn pro() -> (u16, Value) {
        (
            404,
            json!({ "status": 404, "message": "Part of the Pro plan" }),
        )
    }
    pub fn validation() -> (u16, Value) {
        (
            422,
            json!({ "error": "email is required in submitters[0]." }),
        )
    }
    pub fn bad_json() -> (u16, Value) {
        (400, json!({ "status": 400, "error": "Bad Request" }))
    }
    pub fn too_many_requests() -> (u16, Value) {
        (429, json!({ "error": "Too many requests" }))
    }
    pub fn internal() -> (u16, Value) {
        (500, json!({ "status": 500 }))
    }
}

pub struct FakeDocuseal {
    pub url: String,
    account: Shared,
}

impl FakeDocuseal {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let account = Shared::default();
        account.lock().unwrap().url.clone_from(&url);
        let api = Router::new()
            .route("/templates", get(list_templates))
            .route("/templates/pdf", post(create_template))
            .route(
                "/templates/{id}",
                get(read_template)
                    .put(update_template)
                    .delete(archive_template),
            )
            .route("/templates/{id}/clone", post(clone_template))
            .route("/submissions", post(create_submission))
            .route(
                "/submissions/{id}",
                get(read_submission).delete(archive_submission),
            )
            .route("/submissions/{id}/documents", get(documents))
            .route("/submitters", get(list_submitters))
            .route("/events/form/{type}", get(completions))
            .fallback(|| async { RefusedCall(404, json!({ "status": 404 })) });

        let router = Router::new()
            .nest("/api", api)
            .route("/file/{credential}", get(file))
            .layer(axum::middleware::from_fn_with_state(
                account.clone(),
                intercept,
            ))
            .with_state(account.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });

        Self { url, account }
    }

    /// Configures it as the instance `cloud`, and makes that the default.
    pub fn configure(&self, config: &mut Config) {
        self.configure_as("cloud", config);
        config.providers.signing.default = "cloud".into();
    }

    /// Configures it as an instance with this name.
    pub fn configure_as(&self, instance: &str, config: &mut Config) {
        let secrets = [("api_key", TOKEN), ("webhook_secret", SECRET)]
            .map(|(name, secret)| (name.to_owned(), SecretText::new(secret)));
        config.providers.allow_insecure = true;
        let configured = self.instance(secrets.into());
        let instances = &mut config.providers.signing.instances;
        instances.insert(instance.into(), configured);
    }

    fn instance(
        &self,
        secrets: std::collections::BTreeMap<String, SecretText>,
    ) -> ProviderInstance {
        ProviderInstance {
            base_url: format!("{}/api", self.url).parse().unwrap(),
            allow_hosts: None,
            timeout: PATIENCE,
            secrets,
            publishable_key: None,
            settings: std::collections::BTreeMap::new(),
        }
    }

    fn account(&self) -> MutexGuard<'_, DocusealAccount> {
        self.account.lock().unwrap()
    }

    /// Lets the next `times` requests fail that have this method and a path starting with `path`.
    pub fn fail(&self, method: &'static str, path: &str, fault: DocusealFault, times: usize) {
        let path = path.to_owned();
        self.account().faults.push(PlannedFault {
            method,
            path,
            fault,
            times,
        });
    }

    /// Removes all planned faults.
    pub fn recover(&self) {
        self.account().faults.clear();
    }

    pub fn be_the_free_build(&self) {
        self.account().free_build = true;
    }

    /// Makes an object belong to another account from now on.
    pub fn give_away(&self, id: i64) {
        self.account().foreign.insert(id);
    }

    pub fn take_back(&self, id: i64) {
        self.account().foreign.remove(&id);
    }

    /// Returns all requests so far with this method and a path that starts with `path`.
    pub fn requests(&self, method: &str, path: &str) -> Vec<RecordedRequest> {
        let account = self.account();
        let asked = account.requests.iter();
        asked
            .filter(|request| request.method == method && request.path.starts_with(path))
            .cloned()
            .collect()
    }

    /// Returns the newest template as stored.
    pub fn template(&self) -> Value {
        self.account().templates.last().unwrap().clone()
    }

    /// Changes the newest template without the service noticing.
    pub fn change_template(&self, change: impl FnOnce(&mut Value)) {
        change(self.account().templates.last_mut().unwrap());
    }

    pub fn templates(&self) -> usize {
        self.account().templates.len()
    }

    pub fn submissions(&self) -> usize {
        self.account().submissions.len()
    }

    /// Returns the id of the newest submission.
    pub fn submission(&self) -> i64 {
        id_of(self.account().submissions.last().unwrap())
    }

    /// Returns a submission in its API representation.
    pub fn shown(&self, submission: i64) -> Value {
        let mut account = self.account();
        let submission = account.submission(submission).ok().unwrap();
        shown_submission(submission, true)
    }

    fn change(&self, submission: i64, change: impl FnOnce(&mut Value)) {
        let mut account = self.account();
        change(account.submission(submission).ok().unwrap());
    }

    fn with_submitter(&self, submission: i64, role: &str, change: impl FnOnce(&mut Value)) {
        self.change(submission, |submission| {
            let submitters = submission["submitters"].as_array_mut().unwrap();
            let mut found = submitters.iter_mut();
            change(found.find(|submitter| submitter["role"] == role).unwrap());
        });
    }

    /// Returns the submission and the role of the form at this address.
    pub fn role_at(&self, embed_src: &str) -> (i64, String) {
        let slug = embed_src
            .strip_prefix(&format!("{}/s/", self.url))
            .expect("a form of this server");
        for submission in &self.account().submissions {
            for submitter in submission["submitters"].as_array().unwrap() {
                if submitter["slug"] == slug {
                    return (id_of(submission), text_of(&submitter["role"]));
                }
            }
        }

        panic!("no form at {embed_src}");
    }

    /// Opens a signer's form.
    pub fn view(&self, submission: i64, role: &str) {
        self.with_submitter(submission, role, |submitter| {
            submitter["status"] = "opened".into();
            submitter["opened_at"] = now().into();
        });
        self.tell(submission, role, "view_form", json!({}));
    }

    /// Fills in a signer's form and completes it.
    pub fn sign(&self, submission: i64, role: &str, entered: &[(&str, Value)]) {
        self.view(submission, role);
        self.tell(submission, role, "start_form", json!({}));
        self.enter(submission, role, entered);
        self.finish(submission, role, "complete_form");
    }

    /// Completes a signer's form through the API, with the account's token.
    pub fn sign_by_api(&self, submission: i64, role: &str) {
        self.enter(submission, role, &[]);
        self.finish(submission, role, "api_complete_form");
    }

    fn enter(&self, submission: i64, role: &str, entered: &[(&str, Value)]) {
        let url = format!("{}/file/a-signature", self.url);
        self.change(submission, |submission| {
            let fields = submission["fields"].as_array().unwrap().clone();
            let mut submitters = submission["submitters"].as_array_mut().unwrap().iter_mut();
            let submitter = submitters.find(|one| one["role"] == role).unwrap();
            for field in fields {
                if field["submitter_uuid"] != submitter["uuid"] {
                    continue;
                }

                let key = text_of(&field["uuid"]);
                let given = entered.iter().find(|(name, _)| field["name"] == *name);
                let is_drawn = field["type"] == "signature" || field["type"] == "initials";
                if let Some((_, value)) = given {
                    submitter["entered"][key] = value.clone();
                } else if is_drawn {
                    submitter["entered"][key] = url.clone().into();
                } else if field["type"] == "checkbox" {
                    submitter["entered"][key] = true.into();
                }
            }
        });
    }

    fn finish(&self, submission: i64, role: &str, event_type: &str) {
        self.with_submitter(submission, role, |submitter| {
            submitter["status"] = "completed".into();
            submitter["completed_at"] = now().into();
            if event_type == "complete_form" {
                submitter["ip"] = "203.0.113.7".into();
                submitter["ua"] = "A browser".into();
            }
        });

        self.tell(submission, role, event_type, json!({ "ip": "203.0.113.7" }));
        self.change(submission, |submission| {
            let submitters = submission["submitters"].as_array().unwrap();
            if submitters
                .iter()
                .all(|submitter| submitter["status"] == "completed")
            {
                submission["completed_at"] = now().into();
            }
        });
    }

    pub fn decline(&self, submission: i64, role: &str, reason: &str) {
        self.with_submitter(submission, role, |submitter| {
            submitter["status"] = "declined".into();
            submitter["declined_at"] = now().into();
        });

        self.tell(
            submission,
            role,
            "decline_form",
            json!({ "reason": reason }),
        );
    }

    /// Delegates a form to another person. DocuSeal sends no webhook for that.
    pub fn delegate(&self, submission: i64, role: &str, email: &str, name: &str) {
        let slug = new_slug();
        let embed_src = format!("{}/s/{slug}", self.url);
        self.with_submitter(submission, role, |submitter| {
            submitter["email"] = email.into();
            submitter["name"] = name.into();
            submitter["slug"] = slug.into();
            submitter["embed_src"] = embed_src.into();
        });
    }

    pub fn expire(&self, submission: i64) {
        self.change(submission, |submission| submission["expired"] = true.into());
    }

    /// Archives a submission, as in DocuSeal's web app.
    pub fn archive(&self, submission: i64) {
        self.change(submission, |submission| {
            submission["archived_at"] = now().into();
        });
    }

    /// Resets a submission to a state in which no signer has completed it.
    pub fn reopen(&self, submission: i64) {
        self.change(submission, |submission| {
            submission["completed_at"] = Value::Null;
        });
    }

    pub fn complete_again(&self, submission: i64) {
        self.change(submission, |submission| {
            submission["completed_at"] = now().into();
        });
    }

    fn tell(&self, submission: i64, role: &str, event_type: &str, data: Value) {
        let id = self.account().next_id();
        let mut submitter_id = 0;
        self.with_submitter(submission, role, |submitter| {
            submitter_id = id_of(submitter);
        });

        // DocuSeal stores the address and never returns it.
        let reason = data["reason"]
            .as_str()
            .map(|reason| json!({ "reason": reason }));
        let event = json!({
            "id": id, "submitter_id": submitter_id, "event_type": event_type,
            "event_timestamp": now(), "data": reason.unwrap_or(json!({})),
        });

        self.change(submission, |submission| {
            let events = submission["submission_events"].as_array_mut().unwrap();
            events.push(event);
        });
    }

    /// Returns the body of a `form.*` webhook.
    pub fn form_hook(&self, event_type: &str, submission: i64, role: &str) -> Value {
        let mut data = Value::Null;
        self.with_submitter(submission, role, |submitter| {
            data = form_data(submitter);
        });
        json!({ "event_type": event_type, "timestamp": now(), "data": data })
    }

    /// Returns the body of a `submission.*` webhook.
    pub fn submission_hook(&self, event_type: &str, submission: i64) -> Value {
        let data = match event_type {
            "submission.archived" => json!({ "id": submission, "archived_at": now() }),
            _ => self.shown(submission),
        };
        json!({ "event_type": event_type, "timestamp": now(), "data": data })
    }
}

/// Returns the `X-Docuseal-Signature` of a body.
pub fn signature(secret: &[u8], time: i64, body: &str) -> String {
    let mut mac = <Hmac<Sha256> as hmac::Mac>::new_from_slice(secret).unwrap();
    mac.update(format!("{time}.{body}").as_bytes());
    format!("{time}.{}", hex::encode(mac.finalize().into_bytes()))
}

impl DocusealAccount {
    fn next_id(&mut self) -> i64 {
        self.last_id += 1;
        self.last_id
    }

    /// Refuses an object of another account with 403 and an unknown one with 404.
    fn own(&self, id: i64) -> Result<(), RefusedCall> {
        if self.foreign.contains(&id) {
            Err(RefusedCall(403, json!({ "error": "Not authorized" })))
        } else {
            Ok(())
        }
    }

    fn template(&mut self, id: i64) -> Result<&mut Value, RefusedCall> {
        self.own(id)?;
        let mut templates = self.templates.iter_mut();
        templates
            .find(|template| template["id"] == id)
            .ok_or(RefusedCall(404, json!({ "status": 404 })))
    }

    fn submission(&mut self, id: i64) -> Result<&mut Value, RefusedCall> {
        self.own(id)?;
        let mut submissions = self.submissions.iter_mut();
        submissions
            .find(|submission| submission["id"] == id)
            .ok_or(RefusedCall(404, json!({ "status": 404 })))
    }
}

/// Records the request, checks its token, and applies the planned faults.
async fn intercept(State(account): State<Shared>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 100 << 20).await.unwrap();
    let method = parts.method.to_string();
    let path = parts.uri.to_string();
    let token = parts.headers.get("x-auth-token");
    let token = token.map(|token| token.to_str().unwrap().to_owned());
    let is_api = path.starts_with("/api/");

    let path = path.strip_prefix("/api").unwrap_or(&path).to_owned();
    let fault = {
        let mut account = account.lock().unwrap();
        account.requests.push(RecordedRequest {
            method: method.clone(),
            path: path.clone(),
            token: token.clone(),
            body: serde_json::from_slice(&body).unwrap_or_default(),
        });

        let mut planned = account.faults.iter_mut();
        let fault = planned.find(|fault| {
            fault.times > 0 && fault.method == method && path.starts_with(&fault.path)
        });
        fault.map(|fault| {
            fault.times -= 1;
            fault.fault.clone()
        })
    };

    let work = async {
        if is_api && token.as_deref() != Some(TOKEN) {
            return RefusedCall(401, json!({ "error": "Not authenticated" })).into_response();
        }
        next.run(Request::from_parts(parts, Body::from(body))).await
    };

    match fault {
        None => work.await,
        Some(DocusealFault::Answer(status, body)) => RefusedCall(status, body).into_response(),
        Some(DocusealFault::Garbage) => "<html>Back in a minute</html>".into_response(),
        Some(DocusealFault::Hanging) => std::future::pending().await,
        Some(DocusealFault::AnswerAfter(status, body)) => {
            work.await;
            RefusedCall(status, body).into_response()
        }
        Some(DocusealFault::DroppedAfter) => {
            work.await;
            let pieces = [
                Ok(Bytes::from_static(b"[")),
                Err(std::io::Error::other("the connection broke")),
            ];
            Body::from_stream(futures::stream::iter(pieces)).into_response()
        }
        Some(DocusealFault::Late(wait)) => {
            let answer = work.await;
            tokio::time::sleep(wait).await;
            answer
        }
        Some(DocusealFault::HangingAfter) => {
            work.await;
            std::future::pending().await
        }
    }
}

fn parse(body: &Bytes) -> Result<Value, RefusedCall> {
    serde_json::from_slice(body).map_err(|error| invalid(format!("JSON parse error: {error}")))
}

#[derive(Deserialize)]
struct ListingQuery {
    external_id: Option<String>,
    limit: Option<usize>,
}

/// Returns a page of rows, newest first: ten by default and at most a hundred.
fn page<'a>(rows: impl DoubleEndedIterator<Item = &'a Value>, query: &ListingQuery) -> Value {
    let wanted = query.external_id.as_deref();
    let data: Vec<&Value> = rows
        .rev()
        .filter(|row| wanted.is_none_or(|wanted| row["external_id"] == wanted))
        .take(query.limit.unwrap_or(10).min(100))
        .collect();
    json!({ "pagination": { "count": data.len(), "next": null, "prev": null }, "data": data })
}

async fn list_templates(
    State(account): State<Shared>,
    Query(query): Query<ListingQuery>,
) -> Answer {
    Ok(Json(page(account.lock().unwrap().templates.iter(), &query)))
}

/// Creates a template. In a request pages are 1-based, and `required` and `shared_link` default
/// to true; `readonly` and `default_value` are unknown here and dropped.
async fn create_template(State(account): State<Shared>, body: Bytes) -> Answer {
    let mut account = account.lock().unwrap();
    if account.free_build {
        return Err(RefusedCall(errors::pro().0, errors::pro().1));
    }

    let request = parse(&body)?;
    let document = &request["documents"][0];
    let pdf = STANDARD
        .decode(document["file"].as_str().unwrap_or_default())
        .map_err(|_| invalid("Error loading: file"))?;

    // A known external id replaces that template and keeps its id.
    let known = account.templates.iter().position(|template| {
        !request["external_id"].is_null() && template["external_id"] == request["external_id"]
    });
    let id = match known {
        Some(index) => id_of(&account.templates.remove(index)),
        None => account.next_id(),
    };
    account.pdfs.retain(|(of, _)| *of != id);

    let attachment = new_uuid();
    let mut roles: Vec<Value> = Vec::new();
    let mut fields = Vec::new();
    for field in document["fields"].as_array().into_iter().flatten() {
        if !roles.iter().any(|role| role["name"] == field["role"]) {
            roles.push(json!({ "name": field["role"], "uuid": new_uuid() }));
        }

        let role = roles.iter().find(|role| role["name"] == field["role"]);
        let areas = field["areas"].as_array().into_iter().flatten().map(|area| {
            let mut area = area.clone();
            area["page"] = (area["page"].as_i64().unwrap() - 1).into();
            area["attachment_uuid"] = attachment.clone().into();
            area
        });
        let mut kept = json!({
            "uuid": new_uuid(),
            "submitter_uuid": role.unwrap()["uuid"],
            "name": field["name"],
            "type": field["type"],
            "required": field["required"].as_bool().unwrap_or(true),
            "preferences": { "font_size": 11 },
            "areas": areas.collect::<Vec<_>>(),
        });
        for known in ["title", "description", "options", "validation"] {
            if let Some(value) = field.get(known) {
                kept[known] = value.clone();
            }
        }

        fields.push(kept);
    }

    let template = json!({
        "id": id,
        "slug": new_slug(),
        "name": request["name"],
        "external_id": request["external_id"],
        "shared_link": request["shared_link"].as_bool().unwrap_or(true),
        "source": "api",
        "archived_at": null,
        "created_at": now(),
        "schema": [{ "attachment_uuid": attachment, "name": document["name"] }],
        "submitters": roles,
        "fields": fields,
    });

    account.pdfs.push((id, pdf));
    account.templates.push(template.clone());
    Ok(Json(template))
}

async fn read_template(State(account): State<Shared>, Path(id): Path<i64>) -> Answer {
    let mut account = account.lock().unwrap();
    Ok(Json(account.template(id)?.clone()))
}

/// Updates a template: replaces whole lists unchecked, with 0-based pages.
async fn update_template(
    State(account): State<Shared>,
    Path(id): Path<i64>,
    body: Bytes,
) -> Answer {
    let request = parse(&body)?;
    let mut account = account.lock().unwrap();
    let template = account.template(id)?;
    for known in ["name", "fields", "submitters", "shared_link", "external_id"] {
        if let Some(value) = request.get(known) {
            template[known] = value.clone();
        }
    }

    Ok(Json(json!({ "id": id, "updated_at": now() })))
}

async fn archive_template(State(account): State<Shared>, Path(id): Path<i64>) -> Answer {
    let mut account = account.lock().unwrap();
    account.template(id)?["archived_at"] = now().into();
    Ok(Json(json!({ "id": id, "archived_at": now() })))
}

/// Clones a template: all ids change and the shared link stays. A repeat makes a second clone.
async fn clone_template(State(account): State<Shared>, Path(id): Path<i64>, body: Bytes) -> Answer {
    let request = parse(&body)?;
    let mut account = account.lock().unwrap();
    let mut clone = account.template(id)?.clone();
    let new_id = account.next_id();
    clone["id"] = new_id.into();
    clone["external_id"] = request["external_id"].clone();
    if let Some(name) = request.get("name") {
        clone["name"] = name.clone();
    }

    for role in 0..clone["submitters"].as_array().unwrap().len() {
        let (old, new) = (clone["submitters"][role]["uuid"].clone(), new_uuid());
        clone["submitters"][role]["uuid"] = new.clone().into();
        for field in clone["fields"].as_array_mut().unwrap() {
            if field["submitter_uuid"] == old {
                field["submitter_uuid"] = new.clone().into();
                field["uuid"] = new_uuid().into();
            }
        }
    }

    let pdf = account.pdfs.iter().find(|(of, _)| *of == id);
    let pdf = pdf.unwrap().1.clone();
    account.pdfs.push((new_id, pdf));
    account.templates.push(clone.clone());

    Ok(Json(clone))
}

/// Creates a submission and returns its submitters. A role that the template lacks becomes the
/// role at the same position; an unknown key of `values` is dropped.
async fn create_submission(State(account): State<Shared>, body: Bytes) -> Answer {
    let request = parse(&body)?;
    let mut account = account.lock().unwrap();
    let template = match account.template(request["template_id"].as_i64().unwrap_or_default()) {
        Err(RefusedCall(404, _)) => return Err(invalid("Template not found")),
        found => found?.clone(),
    };
    if !template["archived_at"].is_null() {
        return Err(invalid("Template has been archived"));
    }

    let fields = template["fields"].as_array().unwrap();
    if fields.is_empty() {
        return Err(invalid("Template does not contain fields"));
    }

    let roles = template["submitters"].as_array().unwrap();
    let requested = request["submitters"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    if requested.len() > roles.len() {
        return Err(invalid("Defined more signing parties than in template"));
    }

    let id = account.next_id();
    let mut submitters = Vec::new();
    for (index, submitter) in requested.iter().enumerate() {
        let named = text_of(&submitter["role"]).to_lowercase();
        let role = roles
            .iter()
            .find(|role| text_of(&role["name"]).to_lowercase() == named)
            .unwrap_or(&roles[index]);
        let own = |name: &Value| {
            let mut own = fields.iter();
            own.find(|field| field["name"] == *name && field["submitter_uuid"] == role["uuid"])
        };

        let mut entered = Map::new();
        for field in fields
            .iter()
            .filter(|field| field["submitter_uuid"] == role["uuid"])
        {
            if let Some(default) = field.get("default_value") {
                entered.insert(text_of(&field["uuid"]), default.clone());
            }
        }

        for (name, value) in submitter["values"].as_object().into_iter().flatten() {
            if let Some(field) = own(&name.as_str().into()) {
                entered.insert(text_of(&field["uuid"]), value.clone());
            }
        }

        for prefill in submitter["fields"].as_array().into_iter().flatten() {
            let name = &prefill["name"];
            let field =
                own(name).ok_or_else(|| invalid(format!("Unknown field: {}", text_of(name))))?;
            entered.insert(text_of(&field["uuid"]), prefill["default_value"].clone());
        }

        let slug = new_slug();
        submitters.push(json!({
            "id": account.next_id(),
            "submission_id": id,
            "uuid": role["uuid"],
            "slug": slug,
            "email": submitter["email"],
            "name": submitter["name"],
            "phone": null,
            "role": role["name"],
            "external_id": submitter["external_id"],
            "status": "awaiting",
            "embed_src": format!("{}/s/{slug}", account.url),
            "metadata": submitter["metadata"],
            "sent_at": null, "opened_at": null, "completed_at": null, "declined_at": null,
            "entered": entered,
        }));
    }

    let submission = json!({
        "id": id,
        "name": request["name"],
        "source": "api",
        "template_id": template["id"],
        "submitters_order": request["order"].as_str().unwrap_or("preserved"),
        "created_at": now(), "completed_at": null, "archived_at": null, "expired": false,
        "fields": fields,
        "submitters": submitters,
        "submission_events": [],
    });

    let answer = submitters
        .iter()
        .map(|submitter| shown_submitter(submitter, fields))
        .collect();
    account.submissions.push(submission);

    Ok(Json(Value::Array(answer)))
}

#[derive(Deserialize)]
struct IncludeQuery {
    include: Option<String>,
}

async fn read_submission(
    State(account): State<Shared>,
    Path(id): Path<i64>,
    Query(query): Query<IncludeQuery>,
) -> Answer {
    let mut account = account.lock().unwrap();
    let with_fields = query.include.as_deref() == Some("fields");
    Ok(Json(shown_submission(account.submission(id)?, with_fields)))
}

async fn archive_submission(State(account): State<Shared>, Path(id): Path<i64>) -> Answer {
    let mut account = account.lock().unwrap();
    account.submission(id)?["archived_at"] = now().into();
    Ok(Json(json!({ "id": id, "archived_at": now() })))
}

#[derive(Deserialize)]
struct MergeQuery {
    merge: Option<bool>,
}

/// Returns links to the documents: a preview until all signers have signed. Without `merge`
/// there is one file for the template and one for the signers.
async fn documents(
    State(account): State<Shared>,
    Path(id): Path<i64>,
    Query(query): Query<MergeQuery>,
) -> Answer {
    let mut account = account.lock().unwrap();
    let submission = account.submission(id)?.clone();
    let template = submission["template_id"].as_i64().unwrap();
    let pdf = account.pdfs.iter().find(|(of, _)| *of == template);
    let mut bytes = pdf.unwrap().1.clone();
    bytes.extend_from_slice(if submission["completed_at"].is_null() {
        b"\n% a preview\n".as_slice()
    } else {
        b"\n% executed\n".as_slice()
    });

    let credential = new_slug();
    let url = format!("{}/file/{credential}", account.url);
    account.files.push((credential, bytes));
    let document = json!({ "name": "contract", "url": url });
    let documents = match query.merge {
        Some(true) => vec![document],
        _ => vec![document.clone(), document],
    };

    Ok(Json(json!({ "id": id, "documents": documents })))
}

async fn file(State(account): State<Shared>, Path(credential): Path<String>) -> Response {
    let account = account.lock().unwrap();
    let found = account.files.iter().find(|(known, _)| *known == credential);
    match found {
        Some((_, bytes)) => bytes.clone().into_response(),
        None => StatusCode::FORBIDDEN.into_response(),
    }
}

async fn list_submitters(
    State(account): State<Shared>,
    Query(query): Query<ListingQuery>,
) -> Answer {
    let account = account.lock().unwrap();
    let submitters = account.submissions.iter().flat_map(|submission| {
        let fields = submission["fields"].as_array().unwrap();
        let submitters = submission["submitters"].as_array().unwrap().iter();
        submitters.map(|submitter| shown_submitter(submitter, fields))
    });
    let submitters: Vec<Value> = submitters.collect();
    Ok(Json(page(submitters.iter(), &query)))
}

/// Lists completions. Apart from webhooks only these contain IP addresses and browsers.
async fn completions(State(account): State<Shared>, Query(query): Query<ListingQuery>) -> Answer {
    let account = account.lock().unwrap();
    let submitters = account
        .submissions
        .iter()
        .flat_map(|submission| submission["submitters"].as_array().unwrap());
    let completions: Vec<Value> = submitters
        .filter(|submitter| submitter["status"] == "completed")
        .map(|submitter| {
            json!({
                "event_type": "form.completed", "timestamp": submitter["completed_at"],
                "data": form_data(submitter),
            })
        })
        .collect();

    Ok(Json(page(completions.iter(), &query)))
}

/// Returns the status: completed, else declined, else expired, else pending. Archived is not a
/// status.
fn status_of(submission: &Value) -> &'static str {
    let submitters = submission["submitters"].as_array().unwrap();
    let declined = submitters.iter().any(|one| one["status"] == "declined");
    match () {
        () if !submission["completed_at"].is_null() => "completed",
        () if declined => "declined",
        () if submission["expired"] == true => "expired",
        () => "pending",
    }
}

fn shown_submission(submission: &Value, with_fields: bool) -> Value {
    let fields = submission["fields"].as_array().unwrap();
    let mut shown = json!({ "status": status_of(submission), "audit_log_url": null });
    for member in [
        "id",
        "name",
        "source",
        "submitters_order",
        "created_at",
        "completed_at",
        "archived_at",
        "submission_events",
    ] {
        shown[member] = submission[member].clone();
    }

    let submitters = submission["submitters"].as_array().unwrap().iter();
    shown["submitters"] = submitters
        .map(|submitter| shown_submitter(submitter, fields))
        .collect();
    if with_fields {
        shown["fields"] = submission["fields"].clone();
    }

    shown
}

/// Returns a submitter in its API representation. Values have a name and a value, but no type,
/// and the signer's address and browser are left out.
fn shown_submitter(submitter: &Value, fields: &[Value]) -> Value {
    let mut shown = submitter.clone();
    let members = shown.as_object_mut().unwrap();
    for hidden in ["entered", "ip", "ua"] {
        members.remove(hidden);
    }

    shown["values"] = fields
        .iter()
        .filter(|field| field["submitter_uuid"] == submitter["uuid"])
        .map(|field| {
            let value = &submitter["entered"][text_of(&field["uuid"])];
            json!({ "field": field["name"], "value": value })
        })
        .collect();

    shown
}

fn form_data(submitter: &Value) -> Value {
    let mut data = submitter.clone();
    data.as_object_mut().unwrap().remove("entered");
    data
}

fn id_of(value: &Value) -> i64 {
    value["id"].as_i64().unwrap()
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn now() -> String {
    Clock::default().now().to_string()
}

fn new_slug() -> String {
    hex::encode(random::<7>())
}

fn new_uuid() -> String {
    let hex = hex::encode(random::<16>());
    let group = |from: usize, to: usize| &hex[from..to];
    [
        group(0, 8),
        group(8, 12),
        group(12, 16),
        group(16, 20),
        group(20, 32),
    ]
    .join("-")
}
