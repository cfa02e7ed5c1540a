//! Scripted external services: calls of a provider, the requests that it must then send to its
//! vendor, and the results that it must return. Plugin authors write scripts, because
//! the vectors of [`super::conformance`] know no vendor.
//!
//! Values are JSON, under their names in the WIT package:
//! a record is an object, in which an option may be left out; a variant is the name of
//! its case, or an object with it and its value; bytes are text, or
//! `{ "base64": "…" }`; a result is `{ "ok": … }` or `{ "err": … }`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use url::Url;
use wasmtime::component::types::ComponentFunc;
use wasmtime::component::{Resource, ResourceAny, Type, Val};
use wasmtime::{AsContextMut as _, Store};

use super::egress::NetworkAccess;
use super::engine::{LimitedEngine, provider_store};
use super::error::ComponentError;
use super::inspection::AdmissionReason;
use super::lent::{LentBlob, LentHost, LentResources};
use super::providers::ProviderCalls;
use super::slot::{ActiveComponent, ComponentWorld};
use super::worlds;
use crate::config::SecretText;
use crate::domain::clock::{Clock, Timestamp};

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
            label: "script".into(),
            settings: Arc::new(self.settings.clone()),
            secrets: Arc::new(secrets.collect()),
            egress: NetworkAccess::scripted(
                Arc::new(move |request| far_end.answer(&request)),
                &self.host().unwrap_or_default(),
            ),
            clock: self.now.map_or_else(Clock::default, Clock::at),
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

    /// Compares a body with the script. A body that the script does not define matches anything.
    fn compare(&self, body: &[u8]) -> Result<(), String> {
        let shown = String::from_utf8_lossy(body);
        if let Some(value) = &self.json {
            return match serde_json::from_slice::<Value>(body) {
                Ok(sent) if sent == *value => Ok(()),
                _ => Err(format!("body {shown}, and the script has {value}")),
            };
        }
        if self.text.is_none() && self.base64.is_none() || self.bytes() == body {
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
    let lent = LentResources::new(lease, limits, None);
    let (mut store, watch) = provider_store(&active.engine, limits, None, None, lent);
    let told = |error: wasmtime::Error| {
        let error = ComponentError::from_call(&active.identity, &error);
        format!("no answer: {}", error.kind)
    };
    let pre = active.pre.instance_pre();
    let instance = pre.instantiate_async(&mut store).await.map_err(told)?;
    let interface = format!("{}@{}", P::SLOT.interface(), worlds::VERSION);
    let function = instance
        .get_export_index(&mut store, None, &interface)
        .and_then(|interface| instance.get_export_index(&mut store, Some(&interface), &call.call))
        .and_then(|function| instance.get_func(&mut store, function))
        .ok_or_else(|| format!("{interface} has no such function"))?;
    let signature = function.ty(&store);
    let parameters = parameters(&mut store, &signature, &call.with)?;
    let mut results = vec![Val::Bool(false); signature.results().len()];
    let run = watch.run(function.call_async(&mut store, &parameters, &mut results));
    match tokio::time::timeout(limits.deadline, run).await {
        Ok(ended) => ended.map_err(told)?,
        Err(_) => return Err(format!("no answer within {:?}", limits.deadline)),
    }
    match results.first() {
        Some(result) => written(&mut store, result),
        None => Ok(Value::Null),
    }
}

type ProviderStore = Store<LimitedEngine<LentResources>>;

fn parameters(
    store: &mut ProviderStore,
    signature: &ComponentFunc,
    with: &Map<String, Value>,
) -> Result<Vec<Val>, String> {
    if let Some(unknown) = with
        .keys()
        .find(|name| !signature.params().any(|(known, _)| known == *name))
    {
        return Err(format!("has no parameter {unknown}"));
    }
    signature
        .params()
        .map(|(name, ty)| {
            let value = with.get(name).unwrap_or(&Value::Null);
            read(store, &ty, value).map_err(|why| format!("{name}: {why}"))
        })
        .collect()
}

/// Parses a value of a type from JSON.
fn read(store: &mut ProviderStore, ty: &Type, value: &Value) -> Result<Val, String> {
    let unfit = || format!("{value} does not fit");
    let whole = || value.as_u64().ok_or_else(unfit);
    let text = || value.as_str().map(str::to_owned).ok_or_else(unfit);
    Ok(match ty {
        Type::Bool => Val::Bool(value.as_bool().ok_or_else(unfit)?),
        Type::U8 => Val::U8(u8::try_from(whole()?).map_err(|_| unfit())?),
        Type::U16 => Val::U16(u16::try_from(whole()?).map_err(|_| unfit())?),
        Type::U32 => Val::U32(u32::try_from(whole()?).map_err(|_| unfit())?),
        Type::U64 => Val::U64(whole()?),
        Type::S64 => Val::S64(value.as_i64().ok_or_else(unfit)?),
        Type::Float64 => Val::Float64(value.as_f64().ok_or_else(unfit)?),
        Type::String => Val::String(text()?),
        Type::Enum(names) => {
            let name = text()?;
            match names.names().any(|known| known == name) {
                true => Val::Enum(name),
                false => return Err(unfit()),
            }
        }
        Type::List(list) if list.ty() == Type::U8 => {
            let bytes = bytes(value).ok_or_else(unfit)?;
            Val::List(bytes.into_iter().map(Val::U8).collect())
        }
        Type::List(list) => {
            let items = value.as_array().ok_or_else(unfit)?.iter();
            let read = items.map(|item| read(store, &list.ty(), item));
            Val::List(read.collect::<Result<_, _>>()?)
        }
        Type::Tuple(tuple) => {
            let items = value.as_array().ok_or_else(unfit)?;
            if items.len() != tuple.types().len() {
                return Err(unfit());
            }
            let read = tuple.types().zip(items);
            let read = read.map(|(ty, item)| self::read(store, &ty, item));
            Val::Tuple(read.collect::<Result<_, _>>()?)
        }
        Type::Option(_) if value.is_null() => Val::Option(None),
        Type::Option(option) => Val::Option(Some(Box::new(read(store, &option.ty(), value)?))),
        Type::Record(record) => {
            let members = value.as_object().ok_or_else(unfit)?;
            let known = |name: &String| record.fields().any(|field| field.name == name);
            if let Some(unknown) = members.keys().find(|name| !known(name)) {
                return Err(format!("a record has no {unknown}"));
            }
            let mut fields = Vec::new();
            for field in record.fields() {
                let value = members.get(field.name).unwrap_or(&Value::Null);
                let value = read(store, &field.ty, value)
                    .map_err(|why| format!("{}: {why}", field.name))?;
                fields.push((field.name.to_owned(), value));
            }
            Val::Record(fields)
        }
        Type::Variant(variant) => {
            let (name, payload) = match value {
                Value::String(name) => (name.as_str(), &Value::Null),
                Value::Object(case) if case.len() == 1 => {
                    let (name, payload) = case.iter().next().ok_or_else(unfit)?;
                    (name.as_str(), payload)
                }
                _ => return Err(unfit()),
            };
            let mut cases = variant.cases();
            let case = cases
                .find(|case| case.name == name)
                .ok_or_else(|| format!("a variant has no case {name}"))?;
            let payload = match &case.ty {
                Some(ty) => Some(Box::new(read(store, ty, payload)?)),
                None => None,
            };
            Val::Variant(name.to_owned(), payload)
        }
        Type::Own(_) | Type::Borrow(_) => {
            let blob = LentBlob(Bytes::from(bytes(value).ok_or_else(unfit)?));
            let table = &mut store.data_mut().data.table;
            let handle = table.push(blob).map_err(|error| error.to_string())?;
            let handle = ResourceAny::try_from_resource(handle, store.as_context_mut());
            Val::Resource(handle.map_err(|error| error.to_string())?)
        }
        _ => return Err("no script can write a value of this type".into()),
    })
}

/// Parses bytes: text, or `{ "base64": "…" }`.
fn bytes(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.clone().into_bytes()),
        _ => STANDARD.decode(value.get("base64")?.as_str()?).ok(),
    }
}

fn written_bytes(bytes: Vec<u8>) -> Value {
    match String::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(error) => json!({ "base64": STANDARD.encode(error.as_bytes()) }),
    }
}

/// Converts a value to JSON. Absent options are left out of records.
fn written(store: &mut ProviderStore, value: &Val) -> Result<Value, String> {
    let payload = |store: &mut ProviderStore, payload: &Option<Box<Val>>| match payload {
        Some(payload) => written(store, payload),
        None => Ok(Value::Null),
    };
    Ok(match value {
        Val::Bool(value) => json!(value),
        Val::U8(value) => json!(value),
        Val::U16(value) => json!(value),
        Val::U32(value) => json!(value),
        Val::U64(value) => json!(value),
        Val::S64(value) => json!(value),
        Val::Float64(value) => json!(value),
        Val::String(text) | Val::Enum(text) => json!(text),
        Val::List(items) if matches!(items.first(), Some(Val::U8(_))) => {
            let bytes = items.iter().map(|item| match item {
                Val::U8(byte) => *byte,
                _ => 0,
            });
            written_bytes(bytes.collect())
        }
        Val::List(items) | Val::Tuple(items) => {
            let items = items.iter().map(|item| written(store, item));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Val::Record(fields) => {
            let mut members = Map::new();
            for (name, value) in fields {
                if !matches!(value, Val::Option(None)) {
                    members.insert(name.clone(), written(store, value)?);
                }
            }
            Value::Object(members)
        }
        Val::Option(value) => payload(store, value)?,
        Val::Variant(name, None) => json!(name),
        Val::Variant(name, value) => {
            let value = payload(store, value)?;
            Value::Object(Map::from_iter([(name.clone(), value)]))
        }
        Val::Result(Ok(value)) => json!({ "ok": payload(store, value)? }),
        Val::Result(Err(value)) => json!({ "err": payload(store, value)? }),
        Val::Resource(handle) => {
            let blob: Resource<LentBlob> = handle
                .try_into_resource(store.as_context_mut())
                .map_err(|error| error.to_string())?;
            let blob = store.data_mut().data.table.delete(blob);
            written_bytes(blob.map_err(|error| error.to_string())?.0.to_vec())
        }
        _ => return Err("answers with a value that no script can write".into()),
    })
}
