//! Credentials as argument types. A handler's signature states who may call it; a handler without
//! one has no organization to work with.

use std::marker::PhantomData;
use std::sync::Arc;

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::{Operation, Parameter, ReferenceOr};
use aide::operation::{ParamLocation, parameters_from_schema};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use schemars::json_schema;
use serde_json::json;

use super::limits::{self, CredentialLookup};
use super::notes::{self, RequestNotes, SharedNotes};
use super::unknown::check_query;
use crate::error::HttpError;
use crate::openapi;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::id::{KeyId, TokenId};
use holdfast_domain::organization::{ApiKeyRecord, Permission, Role, Scope};
use holdfast_domain::token::ApiKey;
use holdfast_domain::user::IssuerIdentity;
use holdfast_platform::access::rate_limit::RateAllowance;
use holdfast_platform::access::windows::LimitedCredential;
use holdfast_platform::access::{self, WebUser, rate_limit};
use holdfast_platform::components::changes::ChangeOfficer;
use holdfast_platform::{Caller, ServiceError};
use holdfast_service::{App, envelopes};
use holdfast_store::envelopes::KeyedEnvelope;

/// Scope requirement as a type parameter.
pub trait RequiredScope {
    const SCOPE: Scope;
}

macro_rules! scopes {
    ($($name:ident),* $(,)?) => {
        $(
            pub struct $name;

            impl RequiredScope for $name {
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
    CustomersRead,
    EsignWrite,
    ControlRead,
    ControlWrite,
    ControlConsent,
    WebhooksListen,
    HoldsRead,
    HoldsWrite,
    CustomersPrivacy
);

/// Caller with a valid API key that has the scope and is within its rate limit.
pub struct PartnerCaller<S> {
    pub caller: Caller,
    /// Id of the API key's record.
    pub key: KeyId,
    _scope: PhantomData<S>,
}

fn unauthorized(text: &str) -> HttpError {
    HttpError::new(StatusCode::UNAUTHORIZED, text)
}

/// Returns a 401 with the right header for a credential of the other kind. `error` stays the contract's text,
/// which programs compare.
fn misplaced(text: &str, hint: &str) -> HttpError {
    unauthorized(text).with_details(json!({ "hint": hint }))
}

fn key_header(parts: &Parts) -> Option<&str> {
    let key = parts.headers.get("x-api-key");
    key.and_then(|key| key.to_str().ok())
        .filter(|key| !key.is_empty())
}

fn bearer_header(parts: &Parts) -> Option<&str> {
    let value = parts.headers.get(header::AUTHORIZATION);
    value.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "))
}

/// Returns the request's API key.
fn key_text(parts: &Parts) -> Result<&str, HttpError> {
    key_header(parts).ok_or_else(|| {
        let text = "API key is required";
        // By its form only: whether it is a real key is not looked up.
        if bearer_header(parts).and_then(ApiKey::parse).is_some() {
            misplaced(text, "Send the API key in the header X-API-Key")
        } else {
            unauthorized(text)
        }
    })
}

/// Returns the request's bearer token.
pub fn bearer_token(parts: &Parts) -> Result<&str, HttpError> {
    bearer_header(parts).ok_or_else(|| {
        let text = "Authentication required";
        if key_header(parts).is_some() {
            misplaced(
                text,
                "Send a token as Authorization: Bearer; this operation takes no API key",
            )
        } else {
            unauthorized(text)
        }
    })
}

/// Looks up the API key.
async fn known(app: &App, text: &str, parts: &Parts) -> Result<Arc<ApiKeyRecord>, HttpError> {
    let lookup = CredentialLookup::begin(app, None, text, parts).await?;
    let record = access::api_key(lookup.core(), &app.access, text).await?;
    // Settled before the answer, because an unknown key has to count against its network.
    lookup.settle(app, record.is_some())?;
    record.ok_or_else(|| {
        let refused = "Invalid API key";
        // A JSON Web Token has three parts, and a key one.
        if text.split('.').count() == 3 {
            misplaced(
                refused,
                "This is a token; operations of the web app take it as Authorization: Bearer",
            )
        } else {
            unauthorized(refused)
        }
    })
}

/// Looks up the user of a bearer token.
async fn known_user(
    app: &App,
    counted: Option<LimitedCredential>,
    token: &str,
    parts: &Parts,
) -> Result<WebUser, HttpError> {
    let lookup = CredentialLookup::begin(app, counted, token, parts).await?;
    let user = access::bearer(lookup.core(), &app.access, token).await?;
    lookup.settle(app, user.is_some())?;
    user.ok_or_else(|| {
        let text = "Invalid token";
        if ApiKey::parse(token).is_some() {
            misplaced(
                text,
                "This is an API key; operations of partners take it in the header X-API-Key",
            )
        } else {
            unauthorized(text)
        }
    })
}

/// Checks the key's scope and records organization and credential for the log.
fn permit<S: RequiredScope>(
    app: &App,
    notes: &RequestNotes,
    record: &ApiKeyRecord,
) -> Result<(), HttpError> {
    let _ = notes.org.set(record.org.clone());
    let _ = notes.credential.set(record.id.to_string());
    if record.scopes.contains(&S::SCOPE) {
        return Ok(());
    }
    // A refused request is not counted, but its answer still carries the rate limit headers.
    notes.set_allowance(rate_limit::peek(app, &app.access, record));
    Err(missing(S::SCOPE))
}

/// Returns the refusal of a key without a scope. `error` is the contract's text; `details` say who can help.
fn missing(scope: Scope) -> HttpError {
    let roles: Vec<&str> = Permission::Administer.roles().map(Role::as_str).collect();
    let hint = format!(
        "The role {} can give the key this scope: PATCH /api-keys/{{id}}; the operator: holdfast key update",
        one_of(&roles)
    );

    let text = format!("Missing required scope: {scope}");
    HttpError::new(StatusCode::FORBIDDEN, text).with_details(json!({
        "scope": scope,
        "allows": scope.allows(),
        "granted_by": roles,
        "hint": hint,
    }))
}

/// Checks the key's scope and counts the request against its rate limit.
async fn admit<S: RequiredScope>(
    app: &App,
    notes: &RequestNotes,
    record: &ApiKeyRecord,
) -> Result<(), HttpError> {
    permit::<S>(app, notes, record)?;
    let allowance = rate_limit::take(app, &app.access, record).await?;
    notes.set_allowance(allowance);
    within_limit(app, allowance)
}

/// Refuses a request beyond the limit.
fn within_limit(app: &App, allowance: RateAllowance) -> Result<(), HttpError> {
    if allowance.exceeded {
        let wait = allowance.reset.as_seconds() - app.clock.now().as_seconds();
        return Err(
            HttpError::new(StatusCode::TOO_MANY_REQUESTS, "Rate limit exceeded")
                .with_details(json!({ "retry_after": wait.max(1) }))
                .retry_after(60),
        );
    }

    Ok(())
}

impl<S: RequiredScope> FromRequestParts<App> for PartnerCaller<S> {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, HttpError> {
        // The query is checked last, because a request without a valid key always gets 401.
        let notes = notes::of(parts);
        let record = known(app, key_text(parts)?, parts).await?;
        admit::<S>(app, &notes, &record).await?;
        check_query(parts)?;

        Ok(Self {
            caller: Caller::from(&*record),
            key: record.id.clone(),
            _scope: PhantomData,
        })
    }
}

/// Partner who reads one envelope. The key's record may come from the cache; the statement that
/// reads the envelope confirms it. Such a request costs one query, and a change of the key still
/// applies at once.
pub struct EnvelopeReader<S> {
    text: String,
    record: Arc<ApiKeyRecord>,
    confirmed: bool,
    notes: SharedNotes,
    _scope: PhantomData<S>,
}

impl<S: RequiredScope> FromRequestParts<App> for EnvelopeReader<S> {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, HttpError> {
        let notes = notes::of(parts);
        let text = key_text(parts)?.to_owned();
        let reader = |record, confirmed| Self {
            text: text.clone(),
            record,
            confirmed,
            notes: notes.clone(),
            _scope: PhantomData,
        };

        // Only acceptance may rest on a cached key. A refusal always comes from the database.
        if let Some(record) = access::remembered_key(&app.access, &text)
            && admit::<S>(app, &notes, &record).await.is_ok()
        {
            check_query(parts)?;
            return Ok(reader(record, false));
        }

        // The request is counted once: a cached key that was refused above took nothing from the limit.
        let record = known(app, &text, parts).await?;
        admit::<S>(app, &notes, &record).await?;
        check_query(parts)?;

        Ok(reader(record, true))
    }
}

impl<S: RequiredScope> EnvelopeReader<S> {
    /// Reads the envelope, for the organization of a key that is currently valid. It may be destroyed: what reads further than
    /// its own columns looks it up again.
    pub async fn envelope(self, app: &App, id: &str) -> Result<Envelope, HttpError> {
        let of = |record: &ApiKeyRecord| Caller::from(record);
        if self.confirmed {
            return Ok(envelopes::get_with_destroyed(app, &of(&self.record), id).await?);
        }
        if let KeyedEnvelope::Yes(found) = envelopes::get_with_key(app, &self.record, id).await? {
            access::note_use(app, &app.access, &self.record);
            return Ok(*found.ok_or(ServiceError::NotFound("Envelope"))?);
        }

        // The key changed since it was cached. The request is counted already.
        let record = access::api_key(app, &app.access, &self.text).await?;
        let record = record.ok_or_else(|| unauthorized("Invalid API key"))?;
        permit::<S>(app, &self.notes, &record)?;

        Ok(envelopes::get_with_destroyed(app, &of(&record), id).await?)
    }
}

impl<S: RequiredScope> OperationInput for EnvelopeReader<S> {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        PartnerCaller::<S>::operation_input(context, operation);
    }
}

impl<S: RequiredScope> OperationInput for PartnerCaller<S> {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        openapi::security(operation, "apiKey", &[S::SCOPE.as_str()]);
        for status in [401, 403, 429] {
            openapi::error(operation, status);
        }
    }
}

/// Partner with a key for embed tokens and within its rate limit. The required scope depends on
/// the request body, so the handler checks it.
pub struct EmbedKeyCaller {
    pub caller: Caller,
    scopes: Vec<Scope>,
}

impl EmbedKeyCaller {
    /// Refuses a key without the scope.
    pub fn require(&self, scope: Scope) -> Result<(), HttpError> {
        if self.scopes.contains(&scope) {
            Ok(())
        } else {
            Err(missing(scope))
        }
    }
}

impl FromRequestParts<App> for EmbedKeyCaller {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, HttpError> {
        let notes = notes::of(parts);
        let record = known(app, key_text(parts)?, parts).await?;

        // Either scope is enough here; `require` checks the one that the body needs.
        // Embed tokens can show a vaulted copy or a form, so the widget decides which scope it takes.
        if record.scopes.contains(&Scope::VaultRead) {
            admit::<VaultRead>(app, &notes, &record).await?;
        } else {
            admit::<EsignWrite>(app, &notes, &record).await?;
        }

        check_query(parts)?;
        Ok(Self {
            caller: Caller::from(&*record),
            scopes: record.scopes.clone(),
        })
    }
}

impl OperationInput for EmbedKeyCaller {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        let scopes = [Scope::EsignWrite, Scope::VaultRead].map(Scope::as_str);
        openapi::security(operation, "apiKey", &scopes);
        for status in [401, 403, 429] {
            openapi::error(operation, status);
        }
    }
}

/// Returns the web-app user of the request's bearer token.
async fn web_user(parts: &mut Parts, app: &App) -> Result<WebUser, HttpError> {
    let notes = notes::of(parts);
    // Tokens have no record with a limit of its own, unlike API keys.
    let counted = Some(LimitedCredential::WebToken);
    let token = bearer_token(parts)?;
    let user = known_user(app, counted, token, parts).await;
    // Before a refusal is returned: its answer has the end of the window.
    if let Some(allowance) = limits::allowance_of_token(app, token) {
        notes.set_allowance(allowance);
    }

    let user = user?;
    let _ = notes.org.set(user.org.clone());
    if let Some(token) = &user.token {
        let _ = notes.credential.set(token.to_string());
    }

    // The header is optional here, but it must not contradict the token.
    if let Some(named) = parts.headers.get("x-org-id")
        && named.as_bytes() != user.org.as_str().as_bytes()
    {
        return Err(HttpError::new(
            StatusCode::FORBIDDEN,
            "X-Org-Id is not the token's organization",
        ));
    }

    Ok(user)
}

/// Caller of the Model Context Protocol: a valid API key, as a bearer token or in `X-API-Key`, or a web-app
/// user's token. The requests that calls become check its scopes or role.
#[derive(Clone)]
pub enum McpCaller {
    Key {
        text: String,
        record: Arc<ApiKeyRecord>,
    },
    User {
        token: String,
        user: Box<WebUser>,
    },
}

impl McpCaller {
    pub async fn of(parts: &Parts, app: &App) -> Result<Self, HttpError> {
        // Some clients can set a bearer token only, so a key may come as either.
        let text = match key_text(parts) {
            Ok(text) if ApiKey::parse(text).is_some() => text,
            // Without the hint of other operations that a key is not taken.
            _ => bearer_header(parts).ok_or_else(|| unauthorized("Authentication required"))?,
        };
        if ApiKey::parse(text).is_some() {
            let (text, record) = (text.to_owned(), known(app, text, parts).await?);
            return Ok(Self::Key { text, record });
        }

        // The requests that calls become are counted, or `count` does it.
        let user = known_user(app, None, text, parts).await?;
        Ok(Self::User {
            token: text.to_owned(),
            user: Box::new(user),
        })
    }

    /// Counts a message that does not become a request of its own.
    ///
    /// # Errors
    /// 429 beyond the limit of the key or token.
    pub async fn count(&self, app: &App, parts: &Parts) -> Result<(), HttpError> {
        match self {
            Self::Key { record, .. } => {
                let allowance = rate_limit::take(app, &app.access, record).await?;
                if let Some(notes) = parts.extensions.get::<SharedNotes>() {
                    notes.set_allowance(allowance);
                }

                within_limit(app, allowance)
            }
            Self::User { token, .. } => {
                limits::admit(app, LimitedCredential::WebToken, token, parts)
            }
        }
    }

    /// Returns the id of the key, or the organization and address of the user.
    pub fn credential(&self) -> String {
        match self {
            Self::Key { record, .. } => record.id.to_string(),
            Self::User { user, .. } => format!("{} {}", user.org, user.email),
        }
    }
}

/// Permission of web-app users, as a type parameter.
pub trait RequiredPermission: Send + Sync + 'static {
    const PERMISSION: Permission;
}

macro_rules! permissions {
    ($($name:ident),* $(,)?) => {
        /// One type for each permission that handlers require.
        pub mod may {
            use super::{Permission, RequiredPermission};
            $(
                pub struct $name;

                impl RequiredPermission for $name {
                    const PERMISSION: Permission = Permission::$name;
                }
            )*
        }
    };
}

permissions!(
    ReadEnvelopes,
    Send,
    ReadEvidence,
    RequestChanges,
    ChangeRules,
    ChangeProviders,
    ReadControl,
    Control,
    Integrate,
    Administer,
    Audit,
    Hold
);

/// Web-app user in a role with the permission.
pub struct WebCaller<P> {
    pub caller: Caller,
    pub role: Role,
    pub token: Option<TokenId>,
    /// Account at an issuer.
    pub identity: Option<IssuerIdentity>,
    _permission: PhantomData<P>,
}

impl<P> WebCaller<P> {
    /// Returns the user as a person who takes a step of an act by two people. Token and identity go along: two people are
    /// needed, not two sessions of one.
    pub fn officer(&self) -> ChangeOfficer {
        ChangeOfficer {
            caller: self.caller.clone(),
            role: self.role,
            token: self.token.clone(),
            identity: self.identity.clone(),
        }
    }
}

impl<P: RequiredPermission> FromRequestParts<App> for WebCaller<P> {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, HttpError> {
        let user = web_user(parts, app).await?;
        require(user.role, P::PERMISSION)?;
        check_query(parts)?;

        Ok(Self {
            caller: Caller::from(&user),
            role: user.role,
            token: user.token,
            identity: user.identity,
            _permission: PhantomData,
        })
    }
}

/// Refuses users without the permission.
pub fn require(role: Role, permission: Permission) -> Result<(), HttpError> {
    if role.may(permission) {
        return Ok(());
    }

    let roles: Vec<&str> = permission.roles().map(Role::as_str).collect();
    let text = format!("Role {} is required", one_of(&roles));

    // A user with another role can turn to those who give roles.
    let givers: Vec<&str> = Permission::Administer.roles().map(Role::as_str).collect();
    let hint = format!(
        "The role {} can give the user another role: PATCH /users/{{id}}; the operator: holdfast user role",
        one_of(&givers)
    );
    let details = json!({
        "role": role.as_str(),
        "roles": roles,
        "granted_by": givers,
        "hint": hint,
    });

    Err(HttpError::new(StatusCode::FORBIDDEN, text).with_details(details))
}

/// Returns the names as words: `owner, admin or sender`.
fn one_of(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

impl<P: RequiredPermission> OperationInput for WebCaller<P> {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        let roles: Vec<&str> = P::PERMISSION.roles().map(Role::as_str).collect();
        openapi::security(operation, "bearer", &roles);
        for status in [401, 403, 429] {
            openapi::error(operation, status);
        }
    }
}

/// Credential of a request about an organization's envelopes: an API key with a scope, or a web-app user with a role.
pub trait Authorized: FromRequestParts<App, Rejection = HttpError> + OperationInput + Send {
    fn caller(&self) -> &Caller;
}

impl<S: RequiredScope + Send + 'static> Authorized for PartnerCaller<S> {
    fn caller(&self) -> &Caller {
        &self.caller
    }
}

impl<P: RequiredPermission> Authorized for WebCaller<P> {
    fn caller(&self) -> &Caller {
        &self.caller
    }
}

/// Web-app user who may send and names the organization, as bulk send requires.
pub struct BulkSender(pub Caller);

impl FromRequestParts<App> for BulkSender {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, HttpError> {
        let user = WebCaller::<may::Send>::from_request_parts(parts, app).await?;
        // Its value is checked together with the token.
        if !parts.headers.contains_key("x-org-id") {
            return Err(HttpError::bad_request("X-Org-Id is required"));
        }
        Ok(Self(user.caller))
    }
}

impl Authorized for BulkSender {
    fn caller(&self) -> &Caller {
        &self.0
    }
}

impl OperationInput for BulkSender {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        WebCaller::<may::Send>::operation_input(context, operation);
        let schema = json_schema!({
            "properties": { "X-Org-Id": {
                "type": "string", "description": "The organization of the token.",
            } },
            "required": ["X-Org-Id"],
        });
        let parameters: Vec<Parameter> =
            parameters_from_schema(context, schema, ParamLocation::Header);
        let parameters = parameters.into_iter().map(ReferenceOr::Item);
        operation.parameters.extend(parameters);

        openapi::error(operation, 400);
    }
}
