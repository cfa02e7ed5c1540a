//! Credentials: API keys and web-app bearer tokens.

use std::collections::HashSet;
use std::time::Duration;

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};

use super::{Caller, ServiceError};
use crate::app::App;
use crate::domain::clock::Timestamp;
use crate::domain::id::{OrgId, UserId};
use crate::domain::organization::{ApiKeyRecord, Role};
use crate::domain::token::ApiKey;
use crate::store::api_keys;

/// `aud` of bearer tokens, so that no other token of ours passes for one.
const AUDIENCE: &str = "holdfast web app";
/// Clock skew tolerated on expiry.
const LEEWAY_SECONDS: u64 = 5;

/// The key's record; none for a key that is unknown or deactivated.
pub async fn api_key(app: &App, text: &str) -> Result<Option<ApiKeyRecord>, ServiceError> {
    let Some(key) = ApiKey::parse(text) else {
        return Ok(None);
    };
    let mut connection = app.store.read().await?;
    // The look-up compares digests of 160 random bits: its timing says nothing
    // that helps to guess a key.
    let record = api_keys::by_hash(&mut connection, &key.hash()).await?;
    Ok(record.filter(|record| record.active))
}

impl From<&ApiKeyRecord> for Caller {
    fn from(key: &ApiKeyRecord) -> Self {
        Self {
            org: key.org.clone(),
            actor: format!("key:{}", key.id),
            email: key.owner_email.clone(),
        }
    }
}

/// What a bearer token says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Claims {
    /// The user.
    pub sub: UserId,
    pub org_id: OrgId,
    pub email: String,
    pub role: Role,
    aud: String,
    iat: i64,
    exp: i64,
}

impl From<&Claims> for Caller {
    fn from(claims: &Claims) -> Self {
        Self {
            org: claims.org_id.clone(),
            actor: format!("user:{}", claims.email),
            email: Some(claims.email.clone()),
        }
    }
}

/// A bearer token for a web-app user (HS256), and when it expires.
pub fn issue_bearer(
    key: &[u8; 32],
    org: &OrgId,
    email: &str,
    role: Role,
    ttl: Duration,
    now: Timestamp,
) -> Result<(String, Timestamp), ServiceError> {
    let expires_at = now + ttl;
    let claims = Claims {
        sub: UserId::new(),
        org_id: org.clone(),
        email: email.into(),
        role,
        aud: AUDIENCE.into(),
        iat: now.as_seconds(),
        exp: expires_at.as_seconds(),
    };
    let token = jsonwebtoken::encode(
        &Header::new(Algorithm::HS256),
        &claims,
        &EncodingKey::from_secret(key),
    )
    .map_err(|error| ServiceError::Internal(error.to_string()))?;
    Ok((token, expires_at))
}

/// The claims of a valid bearer token. The algorithm is ours to say, never the
/// token's.
pub fn bearer(app: &App, token: &str) -> Option<Claims> {
    let mut validation = Validation::new(Algorithm::HS256);
    validation.set_audience(&[AUDIENCE]);
    validation.required_spec_claims = HashSet::from(["exp".to_owned(), "aud".to_owned()]);
    // Checked below, against the clock the service reads.
    validation.validate_exp = false;
    let key = DecodingKey::from_secret(&app.bearer_key);
    let claims = jsonwebtoken::decode::<Claims>(token, &key, &validation)
        .ok()?
        .claims;
    let now = app.clock.now().as_seconds();
    (claims.exp.saturating_add(LEEWAY_SECONDS as i64) > now).then_some(claims)
}
