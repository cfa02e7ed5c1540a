//! The payment sandbox, in Stripe's words. Money is a button.

use std::collections::HashMap;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Form, Json, Router};
use serde_json::{Value, json};

use super::Sandbox;
use crate::domain::clock::Timestamp;
use crate::domain::hash::hmac_sha256;
use crate::domain::job::SandboxCallback;
use crate::domain::token::random;
use crate::store::sandbox::{self, Intent};
use crate::store::{StoreError, jobs};

pub fn router(sandbox: Sandbox) -> Router {
    Router::new()
        .route("/v1/payment_intents", post(create))
        .route("/v1/payment_intents/{id}", get(read))
        .with_state(sandbox)
}

/// An answer that is none, in Stripe's shape.
enum Failure {
    NoKey,
    Missing,
    Invalid(&'static str),
    Store(StoreError),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let (status, kind, param) = match self {
            Self::NoKey => (StatusCode::UNAUTHORIZED, "invalid_request_error", None),
            Self::Missing => (StatusCode::NOT_FOUND, "invalid_request_error", None),
            Self::Invalid(param) => (
                StatusCode::BAD_REQUEST,
                "invalid_request_error",
                Some(param),
            ),
            Self::Store(error) => {
                tracing::error!(%error, "the payment sandbox failed");
                (StatusCode::INTERNAL_SERVER_ERROR, "api_error", None)
            }
        };
        (
            status,
            Json(json!({ "error": { "type": kind, "param": param } })),
        )
            .into_response()
    }
}

async fn create(
    State(sandbox): State<Sandbox>,
    headers: HeaderMap,
    Form(form): Form<HashMap<String, String>>,
) -> Result<Json<Value>, Failure> {
    let org = sandbox.account(&headers).ok_or(Failure::NoKey)?;
    let text = |name: &'static str| form.get(name).ok_or(Failure::Invalid(name));
    let amount = text("amount")?;
    let intent = Intent {
        // Whoever sees the payer's page needs no other credential.
        id: format!("pi_{:02x}{}", org.bucket(), hex::encode(random::<20>())),
        payment: text("metadata[payment_id]")?.clone(),
        amount: amount.parse().map_err(|_| Failure::Invalid("amount"))?,
        currency: text("currency")?.clone(),
        paid: false,
        org,
    };
    let mut tx = sandbox.store.begin().await?;
    let intent = sandbox::insert(&mut tx, intent, sandbox.clock.now()).await?;
    tx.commit().await?;
    Ok(shown(&intent))
}

async fn read(
    State(sandbox): State<Sandbox>,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Result<Json<Value>, Failure> {
    let org = sandbox.account(&headers).ok_or(Failure::NoKey)?;
    let found = sandbox.intent(&id).await?;
    let own = found.filter(|intent| intent.org == org);
    Ok(shown(&own.ok_or(Failure::Missing)?))
}

fn shown(intent: &Intent) -> Json<Value> {
    Json(json!({
        "id": intent.id,
        "object": "payment_intent",
        "client_secret": format!("{}_secret", intent.id),
        "status": if intent.paid { "succeeded" } else { "requires_payment_method" },
        "amount": intent.amount,
        "currency": intent.currency,
    }))
}

impl Sandbox {
    /// A payment, by the id in its page's address.
    pub async fn intent(&self, id: &str) -> Result<Option<Intent>, StoreError> {
        let bucket = id.strip_prefix("pi_").and_then(|rest| rest.get(..2));
        let Some(bucket) = bucket.and_then(|digits| i64::from_str_radix(digits, 16).ok()) else {
            return Ok(None);
        };
        let mut connection = self.store.read().await?;
        sandbox::get(&mut connection, bucket, id).await
    }

    /// The button was pressed: the money is there, and the callback is on its way. Pressed
    /// twice, it is paid once.
    pub async fn pay(&self, intent: &Intent) -> Result<(), StoreError> {
        let now = self.clock.now();
        let mut tx = self.store.begin().await?;
        if sandbox::set_paid(&mut tx, intent).await? {
            let body = json!({
                "id": format!("evt_{}", intent.id),
                "type": "payment_intent.succeeded",
                "created": now.as_seconds(),
                "livemode": false,
                "data": { "object": { "id": intent.id } },
            });
            let job = SandboxCallback(body);
            jobs::insert(&mut tx, &intent.org, &job, None, now).await?;
        }
        tx.commit().await
    }

    /// A callback as it goes out: headers and raw body, signed at `now`.
    pub fn signed(&self, body: &Value, now: Timestamp) -> (Vec<(String, String)>, Vec<u8>) {
        let body = body.to_string().into_bytes();
        let head = format!("{}.", now.as_seconds());
        let secret = self.webhook_secret();
        let mac = hmac_sha256(secret.reveal().as_bytes(), &[head.as_bytes(), &body]);
        let signature = format!("t={},v1={}", now.as_seconds(), hex::encode(mac));
        (vec![("Stripe-Signature".into(), signature)], body)
    }
}
