//! What the parts of one request leave for each other: extractors know the
//! organization, the credential, the allowance and the body; the outermost layer
//! logs the first two and answers with the allowance.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axum::http::request::Parts;

use crate::domain::id::OrgId;
use crate::service::access::rate_limit::Allowance;

/// Notes on one request.
#[derive(Default)]
pub struct Notes {
    /// Whose credential it carries.
    pub org: OnceLock<OrgId>,
    /// Id of its API key or web-app token, for the log of who used which.
    pub credential: OnceLock<String>,
    allowance: Mutex<Option<Allowance>>,
    /// SHA-256 of what was sent, once it is read.
    pub body: OnceLock<String>,
}

impl Notes {
    /// Notes what the request's API key has left.
    pub fn set_allowance(&self, allowance: Allowance) {
        *self
            .allowance
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(allowance);
    }

    /// What the request's API key has left, as far as it was looked at.
    pub fn allowance(&self) -> Option<Allowance> {
        *self
            .allowance
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The notes, as they travel in a request's extensions.
pub type SharedNotes = Arc<Notes>;

/// The notes of a request; fresh ones outside the outermost layer.
pub fn of(parts: &mut Parts) -> SharedNotes {
    parts
        .extensions
        .get_or_insert_default::<SharedNotes>()
        .clone()
}
