//! Scripted external services: calls of a provider, the requests that it must then send to its
//! vendor, and the results that it must return. Plugin authors write scripts, because
//! the vectors of [`super::conformance`] know no vendor.
//! Values are JSON, as [`super::values`] has it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;
use wasmtime::component::{Resource, ResourceAny, Val};
use wasmtime::{AsContextMut as _, Store};

use super::egress::NetworkAccess;
use super::engine::{LimitedEngine, provider_store};
use super::error::ComponentError;
use super::inspection::AdmissionReason;
use super::lent::{LentBlob, LentHost, LentResources};
use super::providers::{self, ProviderCalls};
use super::slot::{ActiveComponent, ComponentWorld};
use super::values::{self, LentBytes};
use super::worlds;
use holdfast_base::config::SecretText;
use holdfast_domain::clock::{Clock, Timestamp};

/// Script of calls of one provider instance, in order.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FarEndScript {
    /// Settings of the instance; `base_url` is the URL of the external service.
    settings: BTreeMap<String, String>,
    #[serde(default)]
    secrets: BTreeMap<String, String>,
    /// Time of the clock; the present if absent.
    now: Option<Timestamp>,
    calls: Vec<ScriptedCall>,
}

/// One call.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedCall {
    /// Name of the function in the WIT package.
    call: String,
    /// Parameters.
    #[serde(default)]
    with: Map<String, Value>,
    /// Requests of the provider during the call, with their responses.
    #[serde(default)]
    exchanges: Vec<ScriptedExchange>,
    /// Result that the provider must return.
    answer: Value,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedExchange {
    request: ExpectedRequest,
    response: ScriptedTransport,
}

/// Expected request. It may have headers that are not listed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedRequest {
    method: String,
    /// Path with the query.
    path: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: ScriptedContent,
}

/// Response of the external service.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedTransport {
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: ScriptedContent,
}

/// Body, with at most one of the members.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedContent {
    json: Option<Value>,
    text: Option<String>,
    base64: Option<String>,
}

impl FarEndScript {
    /// Parses a script.
    ///
    /// # Errors
    /// A message with the position of the problem.
    pub fn parse(text: &str) -> Result<Self, String> {
        let script: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        match script.host() {
            Some(_) => Ok(script),
            None => Err("settings.base_url is no URL with a host".into()),
        }
    }

    /// Returns the number of calls.
    pub fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Returns scheme and authority of the service.
    fn origin(&self) -> Option<String> {
        let url = Url::parse(self.settings.get("base_url")?).ok()?;
        Some(url.origin().ascii_serialization())
    }

    fn host(&self) -> Option<String> {
        let url = Url::parse(self.settings.get("base_url")?).ok()?;
        url.host_str().map(str::to_owned)
    }

    fn lease(&self, far_end: &FarEnd) -> LentHost {
        let secrets = self
            .secrets
            .iter()
            .map(|(name, secret)| (name.clone(), SecretText::new(secret)));
        let far_end = far_end.clone();
        LentHost {
            room: None,
            log: None,
            label: "script".into(),
            settings: Arc::new(self.settings.clone()),
            secrets: Arc::new(secrets.collect()),
            egress: NetworkAccess::scripted(
                Arc::new(move |request| Ok(far_end.answer(&request))),
                &self.host().unwrap_or_default(),
            ),
            // A script can set the time, because vendors sign requests and callbacks with it.
            clock: self.now.map_or_else(Clock::default, Clock::at),
        }
    }
}

/// Scripted external service during work on a plugin: it answers requests in any order. Of several
/// exchanges with one request it plays the next one each time, and in the end the last.
pub struct PlayedFarEnd {
    /// Where it is reached.
    origin: String,
    played: Mutex<PlayedScript>,
}

/// A script, and how often each set of its exchanges was played, by the place of the first one.
struct PlayedScript {
    script: Arc<FarEndScript>,
    played: BTreeMap<usize, usize>,
}

impl PlayedFarEnd {
    /// Plays a script at an origin (`http://127.0.0.1:4711`).
    pub fn of(script: FarEndScript, origin: &str) -> Self {
        Self {
            origin: origin.to_owned(),
            played: Mutex::new(PlayedScript {
                script: Arc::new(script),
                played: BTreeMap::new(),
            }),
        }
    }

    /// Begins again with another script.
    pub fn play(&self, script: FarEndScript) {
        let mut played = self.lock();
        played.script = Arc::new(script);
        played.played.clear();
    }

    /// Returns the script that is played.
    pub fn script(&self) -> Arc<FarEndScript> {
        self.lock().script.clone()
    }

    fn lock(&self) -> MutexGuard<'_, PlayedScript> {
        self.played.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the configuration of an instance that reaches it, as an activation has it.
    pub fn config(&self) -> Value {
        let script = self.script();
        let mut settings = script.settings.clone();
        let base = settings.remove("base_url").unwrap_or_default();
        let base = match script.origin() {
            Some(own) => base.replacen(&own, &self.origin, 1),
            None => base,
        };
        serde_json::json!({ "base_url": base, "settings": settings, "secrets": script.secrets })
    }

    /// Returns the response to a request and the call of the script that has it. Exchanges with exactly this body
    /// come first, then those that succeed.
    pub fn answer(
        &self,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> Option<(String, Response<Bytes>)> {
        let mut played = self.lock();
        let script = played.script.clone();
        let calls = script.calls.iter();
        let exchanges = calls.flat_map(|call| call.exchanges.iter().map(move |one| (call, one)));
        let fitting: Vec<_> = exchanges
            .enumerate()
            .filter(|(_, (_, one))| one.request.method == method && one.request.path == path)
            .collect();

        // An exchange without a defined body fits every request, so one with the same body has to win.
        let rank = |one: &ScriptedExchange| {
            let expected = &one.request.body;
            let is_same = expected.is_defined() && expected.compare(body).is_ok();
            (is_same, (200..400).contains(&one.response.status))
        };
        let best = fitting.iter().map(|(_, (_, one))| rank(one)).max()?;
        let best: Vec<_> = fitting
            .into_iter()
            .filter(|(_, (_, one))| rank(one) == best)
            .collect();
        // The first place names the set of equally good exchanges, so each set has a turn of its own.
        let (first, _) = best.first()?;
        let times = played.played.entry(*first).or_default();
        let (_, (call, exchange)) = best.get(*times).or(best.last())?;

        *times += 1;
        let response = exchange.response.response();
        let response = response.map(|body| self.here(body, &script));
        Some((call.call.clone(), response))
    }

    /// Points the addresses in a response to where the service is played.
    fn here(&self, body: Bytes, script: &FarEndScript) -> Bytes {
        match (std::str::from_utf8(&body), script.origin()) {
            (Ok(text), Some(own)) => text.replace(&own, &self.origin).into(),
            _ => body,
        }
    }
}

/// Scripted external service during one call.
#[derive(Clone, Default)]
struct FarEnd {
    left: Arc<Mutex<VecDeque<ScriptedExchange>>>,
    wrong: Arc<Mutex<Vec<String>>>,
}

impl FarEnd {
    fn answer(&self, request: &Request<Bytes>) -> Response<Bytes> {
        let asked = format!("{} {}", request.method(), request.uri());
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        // The order of requests is a part of the script, because the state of a vendor depends on it.
        let Some(exchange) = left.pop_front() else {
            return self.refuse(format!("asks for {asked}, and the script has no more"));
        };

        let expected = exchange.request;
        let wanted = format!("{} {}", expected.method, expected.path);
        if asked != wanted {
            return self.refuse(format!("asks for {asked}, and the script has {wanted}"));
        }

        for (name, value) in &expected.headers {
            let sent = request
                .headers()
                .get(name)
                .and_then(|sent| sent.to_str().ok());
            if sent != Some(value) {
                return self.refuse(format!(
                    "asks for {asked} with header {name} {sent:?}, and the script has {value:?}"
                ));
            }
        }

        if let Err(difference) = expected.body.compare(request.body()) {
            return self.refuse(format!("asks for {asked} with {difference}"));
        }

        exchange.response.response()
    }

    fn refuse(&self, why: String) -> Response<Bytes> {
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        wrong.push(why);
        // No plugin takes this status for success, so the call cannot end well by accident.
        let mut refused = Response::default();
        *refused.status_mut() = StatusCode::NOT_IMPLEMENTED;
        refused
    }

    /// Returns the wrong and the missing requests.
    fn end(&self) -> Vec<String> {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        let mut wrong = std::mem::take(&mut *wrong);

        // After a wrong request, missing ones are only a consequence.
        if wrong.is_empty() {
            wrong.extend(left.front().map(|exchange| {
                let expected = &exchange.request;
                format!("does not ask for {} {}", expected.method, expected.path)
            }));
        }

        wrong
    }
}

impl ScriptedContent {
    fn bytes(&self) -> Vec<u8> {
        if let Some(value) = &self.json {
            return value.to_string().into_bytes();
        }
        if let Some(encoded) = &self.base64 {
            return STANDARD.decode(encoded).unwrap_or_default();
        }
        self.text.clone().unwrap_or_default().into_bytes()
    }

    fn is_defined(&self) -> bool {
        self.json.is_some() || self.text.is_some() || self.base64.is_some()
    }

    /// Compares a body with the script. A body that the script does not define matches anything.
    fn compare(&self, body: &[u8]) -> Result<(), String> {
        let shown = String::from_utf8_lossy(body);
        if let Some(value) = &self.json {
            // JSON is compared by value, because the order of members is no part of a protocol.
            return match serde_json::from_slice::<Value>(body) {
                Ok(sent) if sent == *value => Ok(()),
                _ => Err(format!("body {shown}, and the script has {value}")),
            };
        }
        if !self.is_defined() || self.bytes() == body {
            return Ok(());
        }

        Err(format!("body {shown}, which is not the script's"))
    }
}

impl ScriptedTransport {
    fn response(&self) -> Response<Bytes> {
        let mut response = Response::new(self.body.bytes().into());
        let headers = response.headers_mut();
        if self.body.json.is_some() {
            headers.insert(
                "content-type",
                http::HeaderValue::from_static("application/json"),
            );
        }

        for (name, value) in &self.headers {
            if let (Ok(name), Ok(value)) = (
                http::HeaderName::try_from(name),
                http::HeaderValue::try_from(value),
            ) {
                headers.insert(name, value);
            }
        }

        let status = StatusCode::from_u16(self.status);
        *response.status_mut() = status.unwrap_or(StatusCode::NOT_IMPLEMENTED);
        response
    }
}

/// Runs a script, each call in a fresh instance.
pub(super) async fn rehearse<P: ProviderCalls + ComponentWorld>(
    active: &ActiveComponent<P>,
    script: &FarEndScript,
) -> Vec<AdmissionReason> {
    let mut reasons = Vec::new();
    for (number, call) in (1..).zip(&script.calls) {
        // Each call has its own exchanges, so a missing request does not shift those of the next call.
        let far_end = FarEnd::default();
        let exchanges = call.exchanges.iter().cloned().collect();
        *far_end.left.lock().unwrap_or_else(PoisonError::into_inner) = exchanges;
        let began = Instant::now();
        let answered = answer(active, script.lease(&far_end), call).await;

        let mut wrong = far_end.end();
        match answered {
            Ok(answer) if answer == call.answer => {}
            Ok(answer) => wrong.push(format!(
                "answers {answer}, and the script has {}",
                call.answer
            )),
            Err(why) => wrong.push(why),
        }

        tracing::debug!(call = call.call, elapsed = ?began.elapsed(), "script call finished");
        reasons.extend(wrong.into_iter().map(|what| {
            let name = &call.call;
            AdmissionReason::new("script", format!("call {number}, \"{name}\": {what}"))
        }));
    }

    reasons
}

async fn answer<P: ProviderCalls + ComponentWorld>(
    active: &ActiveComponent<P>,
    lease: LentHost,
    call: &ScriptedCall,
) -> Result<Value, String> {
    let limits = &active.limits;
    // Rehearsals run one at a time, so they take nothing from the memory share of an organization.
    let lent = LentResources::new(lease, limits, None);
    let (mut store, watch) = provider_store(&active.engine, limits, None, None, lent);
    let told = |error: wasmtime::Error| {
        let error = ComponentError::from_call(&active.identity, limits, &error);
        format!("no answer: {}", error.kind)
    };

    let pre = active.pre.instance_pre();
    let instance = pre.instantiate_async(&mut store).await.map_err(told)?;
    let interface = format!("{}@{}", P::SLOT.interface(), worlds::VERSION);
    // The optional probe has an interface of its own.
    let at = match call.call.as_str() {
        providers::PROBE => &providers::probing(P::SLOT),
        _ => &interface,
    };
    let function = instance
        .get_export_index(&mut store, None, at)
        .and_then(|interface| instance.get_export_index(&mut store, Some(&interface), &call.call))
        .and_then(|function| instance.get_func(&mut store, function))
        .ok_or_else(|| format!("{at} has no such function"))?;
    let signature = function.ty(&store);
    let parameters = values::parameters(&mut LentDocuments(&mut store), &signature, &call.with)?;

    // wasmtime overwrites these values and only needs their number.
    let mut results = vec![Val::Bool(false); signature.results().len()];
    let run = watch.run(function.call_async(&mut store, &parameters, &mut results));
    match tokio::time::timeout(limits.deadline, run).await {
        Ok(ended) => ended.map_err(told)?,
        Err(_) => {
            return Err(format!(
                "no answer: {}",
                limits.past_deadline(limits.deadline)
            ));
        }
    }

    match results.first() {
        Some(result) => values::written(&mut LentDocuments(&mut store), result),
        None => Ok(Value::Null),
    }
}

type ProviderStore = Store<LimitedEngine<LentResources>>;

/// Documents are lent as handles of the store.
struct LentDocuments<'a>(&'a mut ProviderStore);

impl LentBytes for LentDocuments<'_> {
    fn lend(&mut self, bytes: Bytes) -> Result<ResourceAny, String> {
        let handle = self.0.data_mut().data.table.push(LentBlob(bytes));
        let handle = handle.map_err(|error| error.to_string())?;
        ResourceAny::try_from_resource(handle, self.0.as_context_mut())
            .map_err(|error| error.to_string())
    }

    fn take(&mut self, handle: ResourceAny) -> Result<Bytes, String> {
        let blob: Resource<LentBlob> = handle
            .try_into_resource(self.0.as_context_mut())
            .map_err(|error| error.to_string())?;
        let blob = self.0.data_mut().data.table.delete(blob);
        Ok(blob.map_err(|error| error.to_string())?.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played() -> PlayedFarEnd {
        let exchange = |body: Value, status: u16, answer: &str| {
            serde_json::json!({
                "request": { "method": "POST", "path": "/things", "body": body },
                "response": { "status": status, "body": { "text": answer } },
            })
        };
        let one = |name: &str| serde_json::json!({ "json": { "name": name } });
        let script = serde_json::json!({
            "settings": { "base_url": "https://api.sign.example/v1", "region": "eu" },
            "secrets": { "api_key": "secret" },
            "calls": [{ "call": "create", "answer": null, "exchanges": [
                exchange(serde_json::json!({}), 201, "any, at https://api.sign.example/v1/1"),
                exchange(one("oak"), 201, "oak 1"),
                exchange(one("oak"), 201, "oak 2"),
                exchange(one("elm"), 201, "elm 1"),
                exchange(one("elm"), 409, "elm refused"),
            ] }],
        });

        let script = FarEndScript::parse(&script.to_string()).unwrap();
        PlayedFarEnd::of(script, "http://127.0.0.1:4711")
    }

    fn said(played: &PlayedFarEnd, method: &str, body: &str) -> Option<String> {
        let (call, response) = played.answer(method, "/things", body.as_bytes())?;
        assert_eq!(call, "create");
        Some(String::from_utf8(response.body().to_vec()).unwrap())
    }

    #[test]
    fn a_request_gets_the_exchange_with_its_body_and_then_the_next_one() {
        let played = played();
        let (oak, elm) = (r#"{"name":"oak"}"#, r#"{"name":"elm"}"#);
        let post = |body: &str| said(&played, "POST", body).unwrap();
        assert_eq!(post(oak), "oak 1");

        // Requests with other bodies have a count of their own, and successes come first.
        assert_eq!(post(elm), "elm 1");
        assert_eq!(post(elm), "elm 1");
        assert_eq!(post(oak), "oak 2");
        assert_eq!(post(oak), "oak 2");
        assert_eq!(said(&played, "GET", ""), None);
    }

    #[test]
    fn addresses_of_the_service_lead_to_where_it_is_played() {
        let played = played();
        let config = played.config();
        assert_eq!(config["base_url"], "http://127.0.0.1:4711/v1");
        assert_eq!(config["settings"], serde_json::json!({ "region": "eu" }));
        assert_eq!(config["secrets"]["api_key"], "secret");
    }
}
