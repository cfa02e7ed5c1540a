//! Idempotent POST: one execution, however often the request is sent.

use std::future::Future;
use std::sync::Arc;

use aide::OperationInput;
use aide::openapi::{Operation, Parameter, ReferenceOr};
use aide::operation::{ParamLocation, parameters_from_schema};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::json_schema;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::notes::{self, SharedNotes};
use crate::error::HttpError;
use crate::reply::{DataReply, body};
use holdfast_base::traces;
use holdfast_domain::warning::Warning;
use holdfast_platform::idempotency::{
    self, IdempotencyClaim, IdempotencyReceipt, ResponseRecorder,
};
use holdfast_platform::{Caller, ServiceError};
use holdfast_service::App;
use holdfast_store::StoreError;

const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// Where refusals of a key are explained.
const GUIDE: &str = "/docs/errors#idempotency-keys";

/// Optional `Idempotency-Key` of a request.
pub struct IdempotencyKeyHeader {
    key: Option<String>,
    /// Method and path, part of the request's fingerprint.
    target: String,
    notes: SharedNotes,
}

/// Reads a key: a string of structured fields (RFC 9651, section 3.3.3) if it begins with a quotation mark, otherwise
/// the text as it is.
fn key_of(value: &HeaderValue) -> Option<String> {
    let text = value.to_str().ok()?.trim();
    let key = if let Some(rest) = text.strip_prefix('"') {
        string_content(rest)?
    } else {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        is_plain.then(|| text.to_owned())?
    };

    // The key is stored as it is, so its length needs a bound.
    (1..=255).contains(&key.len()).then_some(key)
}

/// Returns the content of a string of structured fields, from behind its first quotation mark.
fn string_content(text: &str) -> Option<String> {
    let mut content = String::new();
    let mut characters = text.chars();
    loop {
        match characters.next()? {
            '"' => break,
            '\\' => {
                let escaped = characters.next();
                content.push(escaped.filter(|character| matches!(character, '"' | '\\'))?);
            }
            character @ ' '..='~' => content.push(character),
            _ => return None,
        }
    }

    // No parameter is defined for the field, and an unknown one could change the meaning.
    characters.as_str().is_empty().then_some(content)
}

impl FromRequestParts<App> for IdempotencyKeyHeader {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, HttpError> {
        let mut values = parts.headers.get_all("idempotency-key").iter();
        let key = match (values.next(), values.next()) {
            (None, _) => None,
            (Some(value), None) => Some(key_of(value).ok_or_else(|| {
                let text = "Idempotency-Key must be 1 to 255 visible ASCII characters, or such a text in quotation \
                            marks";
                HttpError::bad_request(text).explained_at(GUIDE)
            })?),
            (Some(_), Some(_)) => {
                let text = "Idempotency-Key must be sent once";
                return Err(HttpError::bad_request(text).explained_at(GUIDE));
            }
        };

        Ok(Self {
            key,
            // Without the target, one key could replay the answer of another operation.
            target: format!("{} {}", parts.method, parts.uri.path()),
            notes: notes::of(parts),
        })
    }
}

impl OperationInput for IdempotencyKeyHeader {
    fn operation_input(context: &mut aide::generate::GenContext, operation: &mut Operation) {
        let schema = json_schema!({
            "properties": { "Idempotency-Key": {
                "type": "string", "minLength": 1, "maxLength": 257,
                "pattern": "^(\"[ !#-\\[\\]-~]{1,255}\"|[!#-~][!-~]{0,254})$",
                "description": "The same key and body within 24 hours gives the first answer again. With or without \
                                quotation marks around it.",
            } },
        });
        let parameters: Vec<Parameter> =
            parameters_from_schema(context, schema, ParamLocation::Header);
        operation
            .parameters
            .extend(parameters.into_iter().map(ReferenceOr::Item));

        for status in [400, 409, 422] {
            crate::openapi::error(operation, status);
        }
    }
}

impl IdempotencyKeyHeader {
    /// Executes `work` and returns its result, or replays the stored answer.
    pub async fn run<const STATUS: u16, T, F, Fut>(
        self,
        app: &App,
        caller: &Caller,
        work: F,
    ) -> Result<DataReply<STATUS, T>, HttpError>
    where
        T: Serialize + Send + 'static,
        F: FnOnce(App, Caller, Arc<ResponseRecorder<T>>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, ServiceError>> + Send + 'static,
    {
        let body = |result: &T| body(result, &[]);
        let response = self.respond(app, caller, STATUS, body, work).await?;
        Ok(DataReply::raw(response))
    }

    /// Like [`Self::run`], with the result shown as another type.
    pub async fn answer<const STATUS: u16, T, V, F, Fut>(
        self,
        app: &App,
        caller: &Caller,
        work: F,
    ) -> Result<DataReply<STATUS, V>, HttpError>
    where
        T: Send + 'static,
        V: Serialize + for<'r> From<&'r T> + 'static,
        F: FnOnce(App, Caller, Arc<ResponseRecorder<T>>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, ServiceError>> + Send + 'static,
    {
        let body = |result: &T| body(&V::from(result), &[]);
        let response = self.respond(app, caller, STATUS, body, work).await?;
        Ok(DataReply::raw(response))
    }

    /// Like [`Self::answer`], with the result's warnings beside its data.
    pub async fn answer_with_warnings<const STATUS: u16, T, V, F, Fut>(
        self,
        app: &App,
        caller: &Caller,
        show: impl Fn(&T) -> (V, Vec<Warning>) + Send + Sync + 'static,
        work: F,
    ) -> Result<DataReply<STATUS, V, true>, HttpError>
    where
        T: Send + 'static,
        V: Serialize + 'static,
        F: FnOnce(App, Caller, Arc<ResponseRecorder<T>>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, ServiceError>> + Send + 'static,
    {
        let body = move |result: &T| {
            let (data, warnings) = show(result);
            body(&data, &warnings)
        };
        let response = self.respond(app, caller, STATUS, body, work).await?;
        Ok(DataReply::raw(response))
    }

    /// Runs the work in a task of its own, so that it completes even if the client disconnects: an
    /// unread answer is better than half a change.
    async fn respond<T, F, Fut>(
        self,
        app: &App,
        caller: &Caller,
        status: u16,
        body: impl Fn(&T) -> Value + Send + Sync + 'static,
        work: F,
    ) -> Result<Response, HttpError>
    where
        T: Send + 'static,
        F: FnOnce(App, Caller, Arc<ResponseRecorder<T>>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, ServiceError>> + Send + 'static,
    {
        // The claim commits before the work begins: of two equal requests at once, one works and the other
        // gets a 409.
        let receipt = match &self.key {
            None => IdempotencyReceipt::default(),
            Some(key) => {
                let claimed = idempotency::claim(app, caller, key, &self.fingerprint()).await;
                match claimed.map_err(|error| HttpError::from(error).explained_at(GUIDE))? {
                    IdempotencyClaim::Go(receipt) => receipt,
                    IdempotencyClaim::Replay(status, body) => return Ok(replay(status, body)),
                }
            }
        };
        let answering = Arc::new(ResponseRecorder::new(receipt.clone(), status, body));

        // The task owns the originals. After a panic, they are gone with it.
        let spare = (app.clone(), receipt.clone());
        let (app, caller) = (app.clone(), caller.clone());
        let task = async move {
            let result = work(app.clone(), caller, answering.clone()).await;
            settle(
                &app,
                &receipt,
                status,
                result.map(|result| answering.body(&result)),
            )
            .await
        };

        let body = match tokio::spawn(traces::along(task)).await {
            Ok(settled) => settled?,
            // A panic decides nothing about the request, so a retry may run.
            // The key would stay claimed until it expires, and every repeat would get a 409.
            Err(panicked) => {
                give_back(&spare.0, &spare.1).await;
                return Err(HttpError::internal(panicked.to_string()));
            }
        };

        Ok(axum::Json(body).into_response())
    }

    fn fingerprint(&self) -> String {
        let body = self.notes.body.get().map_or("", String::as_str);
        hex::encode(Sha256::digest(format!("{}\n{body}", self.target)))
    }
}

async fn give_back(app: &App, receipt: &IdempotencyReceipt) {
    // The caller gets the answer of the work. The claim expires by itself.
    if let Err(error) = receipt.release(app).await {
        tracing::warn!(%error, "idempotency key could not be released");
    }
}

/// Stores the answer, unless it was stored with the change. Server errors, provider errors and lost
/// races are not stored, so that the client can retry them.
async fn settle(
    app: &App,
    receipt: &IdempotencyReceipt,
    status: u16,
    result: Result<Value, ServiceError>,
) -> Result<Value, HttpError> {
    match result {
        Ok(body) => {
            receipt
                .keep(app, status, &body.to_string())
                .await
                .map_err(ServiceError::from)?;
            Ok(body)
        }
        Err(error) => {
            // A lost race is a 409 of this moment. Stored, it would be the answer to every later repeat.
            let lost_a_race = matches!(error, ServiceError::Store(StoreError::Conflict));
            let error = HttpError::from(error);
            let status = error.status();
            if lost_a_race || status.is_server_error() {
                give_back(app, receipt).await;
            } else {
                let body = error.body().to_string();
                // The refusal changed nothing, so a repeat that is evaluated again does no harm.
                if let Err(error) = receipt.keep(app, status.as_u16(), &body).await {
                    tracing::warn!(%error, "idempotent answer could not be stored");
                }
            }

            Err(error)
        }
    }
}

fn replay(status: u16, body: String) -> Response {
    // Only this service writes the column, so another number would be a defect.
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        ),
        (REPLAYED, HeaderValue::from_static("true")),
    ];

    (status, headers, body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_structured_string_or_plain_text() {
        let key = |text: &str| key_of(&HeaderValue::from_str(text).unwrap());
        assert_eq!(key("deal-17").as_deref(), Some("deal-17"));
        assert_eq!(key(r#""deal-17""#).as_deref(), Some("deal-17"));
        assert_eq!(key(r#""deal 17""#).as_deref(), Some("deal 17"));
        assert_eq!(key(r#""a \"b\" \\""#).as_deref(), Some(r#"a "b" \"#));
        assert_eq!(key(r#"a"b"#).as_deref(), Some(r#"a"b"#));

        let longest = "x".repeat(255);
        assert_eq!(key(&format!("\"{longest}\"")), Some(longest.clone()));
        for text in [
            "",
            "two words",
            r#""""#,
            r#""open"#,
            r#""closed" behind"#,
            r#""with";parameter=1"#,
            r#""\n""#,
            "\"tab\tinside\"",
            &format!("{longest}x"),
        ] {
            assert_eq!(key(text), None, "{text}");
        }
    }
}
