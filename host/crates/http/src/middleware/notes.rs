//! Data that the parts of one request share. Extractors record organization, credential, rate-limit
//! allowance and body hash; the outermost layer logs the first two and sends the allowance.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axum::http::request::Parts;
use bytes::Bytes;

use holdfast_domain::id::OrgId;
use holdfast_platform::access::rate_limit::RateAllowance;

/// Data collected about one request.
#[derive(Default)]
pub struct RequestNotes {
    /// Organization of its credential.
    pub org: OnceLock<OrgId>,
    /// Id of its API key or web-app token, for the access log.
    pub credential: OnceLock<String>,
    allowance: Mutex<Option<RateAllowance>>,
    /// SHA-256 of the body, once it is read.
    pub body: OnceLock<String>,
    /// The body, if it is JSON.
    pub json: OnceLock<Bytes>,
}

impl RequestNotes {
    /// Records the rate-limit allowance of the request's API key or token.
    pub fn set_allowance(&self, allowance: RateAllowance) {
        *self
            .allowance
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(allowance);
    }

    /// Returns the rate-limit allowance of the request's API key or token, if it was determined.
    pub fn allowance(&self) -> Option<RateAllowance> {
        *self
            .allowance
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes as stored in a request's extensions.
pub type SharedNotes = Arc<RequestNotes>;

/// Returns the notes of a request. Outside the outermost layer, new ones are created.
pub fn of(parts: &mut Parts) -> SharedNotes {
    parts
        .extensions
        .get_or_insert_default::<SharedNotes>()
        .clone()
}
