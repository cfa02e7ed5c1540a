//! What a caller can ask for, one file per intention. Knows neither axum nor SQL.

pub mod access;
mod app;
pub mod builder;
pub mod bulk;
pub mod callbacks;
pub mod completed_fields;
pub mod compliance;
pub mod components;
pub mod composition;
pub mod consent;
pub mod copies;
pub mod creation;
pub mod credentials;
pub mod custody;
pub mod customers;
pub mod deliveries;
pub mod dispatch;
pub mod downloads;
pub mod embed;
pub mod envelopes;
pub mod error;
pub mod events;
pub mod expiry;
pub mod facts;
pub mod gauges;
pub mod idempotency;
pub mod integrity;
pub mod issuer;
pub mod jwt;
pub mod kba;
pub mod lifecycle;
pub mod links;
pub mod live_shadow;
pub mod log;
pub mod mails;
pub mod orphans;
pub mod packages;
pub mod pages;
pub mod payments;
pub mod provider_instance;
pub mod provider_poll;
pub mod rate_limit;
pub mod reminders;
pub mod resealing;
pub mod selection;
pub mod sending;
pub mod shadow;
pub mod signing;
pub mod templates;
pub mod timekeeping;
pub mod uploads;
pub mod vault_in;
pub mod vault_out;
pub mod visits;
mod warnings;
pub mod webhooks;
pub mod windows;

pub use app::{App, Service};
pub use error::{Issue, ServiceError};

use crate::domain::id::OrgId;

/// Who asks. Without one there is no organization to work with.
#[derive(Clone, Debug)]
pub struct Caller {
    pub org: OrgId,
    /// For the ledger: `key:…`, `user:…` or `system`.
    pub actor: String,
    /// Custodian-to-be of what the caller creates.
    pub email: Option<String>,
}

impl Caller {
    /// Who becomes custodian of what this caller creates.
    pub fn creator(&self) -> String {
        self.email.clone().unwrap_or_else(|| self.actor.clone())
    }

    /// The service itself, in the name of an organization.
    pub fn system(org: OrgId) -> Self {
        Self {
            org,
            actor: "system".into(),
            email: None,
        }
    }
}
