//! Credentials as argument types. The signature of a handler says who may call
//! it; a handler that forgets has no organization to work with.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{StatusCode, header};

use crate::app::App;
use crate::domain::id::OrgId;
use crate::domain::organization::{Role, Scope};
use crate::service::{Caller, access};

use super::error::HttpError;

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
    ComplianceRead
);

/// A caller with an API key that has the scope.
pub struct Partner<S> {
    pub caller: Caller,
    _scope: std::marker::PhantomData<S>,
}

/// For the log line of a request.
#[derive(Clone)]
pub struct OrgLabel(pub OrgId);

impl<S: Needs> FromRequestParts<App> for Partner<S> {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, HttpError> {
        let unauthorized = |text: &str| HttpError::new(StatusCode::UNAUTHORIZED, text);
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
        if !record.scopes.contains(&S::SCOPE) {
            return Err(HttpError::new(
                StatusCode::FORBIDDEN,
                format!("Missing required scope: {}", S::SCOPE),
            ));
        }
        Ok(Self {
            caller: Caller::from(&record),
            _scope: std::marker::PhantomData,
        })
    }
}

/// A web-app user who may administer the organization.
pub struct Admin(pub Caller);

impl FromRequestParts<App> for Admin {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, HttpError> {
        let unauthorized = |text: &str| HttpError::new(StatusCode::UNAUTHORIZED, text);
        let token = parts
            .headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Bearer "))
            .ok_or_else(|| unauthorized("Authentication required"))?;
        let claims = access::bearer(app, token).ok_or_else(|| unauthorized("Invalid token"))?;
        if claims.role != Role::Admin {
            return Err(HttpError::new(
                StatusCode::FORBIDDEN,
                "Admin role is required",
            ));
        }
        Ok(Self(Caller::from(&claims)))
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
