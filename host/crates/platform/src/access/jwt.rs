//! Tokens (RFC 7519), checked against the service's clock: its own, with HS256 and a distinct audience for each
//! purpose, and those of OpenID Connect issuers.

use std::collections::HashSet;

use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::ServiceError;
use holdfast_base::keys::Key;
use holdfast_domain::clock::Timestamp;

/// Clock skew tolerated on expiry.
pub const LEEWAY_SECONDS: i64 = 5;

/// Claims with an expiry time.
pub trait ExpiringClaims {
    /// Seconds since 1970.
    fn exp(&self) -> i64;
}

/// Issues a token with these claims, signed with the current key, which is the first.
pub fn issue(keys: &[Key], claims: &impl Serialize) -> Result<String, ServiceError> {
    let current = keys.first().map_or(&[][..], |key| key);
    let key = EncodingKey::from_secret(current);
    jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, &key)
        .map_err(|error| ServiceError::Internal(error.to_string()))
}

/// Returns the claims of a token for this audience, signed with any of the keys. The token may be
/// expired.
pub fn read_expired<C: DeserializeOwned>(keys: &[Key], audience: &str, token: &str) -> Option<C> {
    let mut validation = Validation::new(Algorithm::HS256);
    validation.set_audience(&[audience]);
    validation.required_spec_claims = HashSet::from(["exp".to_owned(), "aud".to_owned()]);
    validation.validate_exp = false;
    let claims = keys.iter().find_map(|key| {
        let key = DecodingKey::from_secret(key);
        jsonwebtoken::decode::<C>(token, &key, &validation).ok()
    });

    Some(claims?.claims)
}

/// Validates a token for this audience, signed with any of the keys, and returns its claims. None
/// if the token is invalid or expired.
pub fn read<C: DeserializeOwned + ExpiringClaims>(
    keys: &[Key],
    audience: &str,
    token: &str,
    now: Timestamp,
) -> Option<C> {
    let claims: C = read_expired(keys, audience, token)?;
    // Against the clock that the service reads.
    (claims.exp().saturating_add(LEEWAY_SECONDS) > now.as_seconds()).then_some(claims)
}

/// What a token of an OpenID Connect issuer has to state.
pub struct ExpectedToken<'a> {
    pub issuers: &'a [&'a str],
    pub audience: &'a str,
}

/// Validates a token of another issuer at `now` (seconds since 1970) and returns its claims.
pub fn read_foreign(
    token: &str,
    algorithm: Algorithm,
    key: &Jwk,
    expected: &ExpectedToken<'_>,
    now: i64,
) -> Option<Map<String, Value>> {
    let mut validation = Validation::new(algorithm);
    validation.set_audience(&[expected.audience]);
    validation.set_issuer(expected.issuers);
    validation.required_spec_claims = HashSet::from(["exp", "aud", "iss"].map(str::to_owned));

    // `exp` and `nbf` are checked below, against the clock that the service reads.
    validation.validate_exp = false;
    let key = DecodingKey::from_jwk(key).ok()?;
    let token = jsonwebtoken::decode::<Map<String, Value>>(token, &key, &validation).ok()?;
    let time = |name: &str| token.claims.get(name).and_then(Value::as_f64);
    let (now, leeway) = (now as f64, LEEWAY_SECONDS as f64);
    let is_over = time("exp")? + leeway <= now;

    let is_early = time("nbf").is_some_and(|from| from > now + leeway);
    (!is_over && !is_early).then_some(token.claims)
}
