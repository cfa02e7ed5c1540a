//! Credentials as argument types. The signature of a handler says who may call
//! it; a handler that forgets has no organization to work with.

use std::marker::PhantomData;

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use serde_json::json;

use crate::app::App;
use crate::domain::organization::{Role, Scope};
use crate::service::{Caller, access, rate_limit};

use super::error::HttpError;
use super::{notes, openapi};

/// Names a scope in a type.
pub trait Needs {
    const SCOPE: Scope;
}

macro_rules! scopes {
    ($($name:ident),* $(,)?) => {
        $(
            pub struct $name;

            impl Needs for $name {
                const SCOPE: Scope = Scope::$name;
            }
        )*
    };
}

scopes!(
    EnvelopesRead,
    EnvelopesWrite,
    VaultRead,
    VaultWrite,
    VaultRelease,
    ComplianceRead,
    CustomersRead
);

/// A caller with an API key that has the scope, and requests left.
pub struct Partner<S> {
    pub caller: Caller,
    _scope: PhantomData<S>,
}

fn unauthorized(text: &str) -> HttpError {
    HttpError::new(StatusCode::UNAUTHORIZED, text)
}

impl<S: Needs> FromRequestParts<App> for Partner<S> {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, HttpError> {
        let notes = notes::of(parts);
        let key = parts
            .headers
            .get("x-api-key")
            .ok_or_else(|| unauthorized("API key is required"))?
            .to_str()
            .unwrap_or_default();
        if key.is_empty() {
            return Err(unauthorized("API key is required"));
        }
        let record = access::api_key(app, key)
            .await?
            .ok_or_else(|| unauthorized("Invalid API key"))?;
        let _ = notes.org.set(record.org.clone());
        if !record.scopes.contains(&S::SCOPE) {
            let _ = notes.allowance.set(rate_limit::peek(app, &record));
            return Err(HttpError::new(
                StatusCode::FORBIDDEN,
                format!("Missing required scope: {}", S::SCOPE),
            ));
        }
        let allowance = rate_limit::take(app, &record).await?;
        let _ = notes.allowance.set(allowance);
        if allowance.exceeded {
            app.metrics.rate_limited.inc();
            let wait = allowance.reset.as_seconds() - app.clock.now().as_seconds();
            return Err(
                HttpError::new(StatusCode::TOO_MANY_REQUESTS, "Rate limit exceeded")
                    .with_details(json!({ "retry_after": wait.max(1) }))
                    .retry_after(60),
            );
        }
        Ok(Self {
            caller: Caller::from(&record),
            _scope: PhantomData,
        })
    }
}

impl<S: Needs> OperationInput for Partner<S> {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        openapi::security(operation, "apiKey", &[S::SCOPE.as_str()]);
        for status in [401, 403, 429] {
            openapi::error(operation, status);
        }
    }
}

/// A web-app user who may administer the organization.
pub struct Admin(pub Caller);

impl FromRequestParts<App> for Admin {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, HttpError> {
        let notes = notes::of(parts);
        let token = parts
            .headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Bearer "))
            .ok_or_else(|| unauthorized("Authentication required"))?;
        let user = access::bearer(app, token)
            .await
            .ok_or_else(|| unauthorized("Invalid token"))?;
        let _ = notes.org.set(user.org.clone());
        if user.role != Role::Admin {
            return Err(HttpError::new(
                StatusCode::FORBIDDEN,
                "Admin role is required",
            ));
        }
        Ok(Self(Caller::from(&user)))
    }
}

impl OperationInput for Admin {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        openapi::security(operation, "bearer", &["admin"]);
        for status in [401, 403] {
            openapi::error(operation, status);
        }
    }
}

/// Where a signer's request came from.
pub fn origin(parts: &Parts) -> crate::room::form::Origin {
    let text = |name: header::HeaderName| {
        let value = parts.headers.get(name)?.to_str().ok()?;
        Some(value.chars().take(400).collect::<String>())
    };
    let peer = parts
        .extensions
        .get::<axum::extract::ConnectInfo<std::net::SocketAddr>>()
        .map(|info| info.0.ip().to_string());
    crate::room::form::Origin {
        ip: peer,
        user_agent: text(header::USER_AGENT),
    }
}
