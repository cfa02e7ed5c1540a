//! The service's own tokens (RFC 7519): HS256, a distinct audience for each purpose, checked
//! against the service's clock.

use std::collections::HashSet;

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::domain::clock::Timestamp;
use crate::keys::Key;
use crate::service::ServiceError;

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
