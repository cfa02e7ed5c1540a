//! Operations that callers can request, one file per use case. Contains neither HTTP
//! handlers nor SQL.
//!
//! | Area | Holds |
//! |---|---|
//! | `access` | keys, tokens, issuers, and their rate limits |
//! | `envelopes` | creating, sending, moving and evaluating contracts |
//! | `templates` | templates, packages, the field builder, pages |
//! | `signing` | signers: links, visits, callbacks, reminders, their providers |
//! | `kba` | identity questions in front of a document |
//! | `messaging` | text messages to signers |
//! | `payments` | requesting payments and reconciling their status |
//! | `bulk` | one document for many clients |
//! | `vault` | vaulting and releasing, ledgers, the log, integrity checks of stored bytes |
//! | `control` | who decides about a vaulted record: designation, consents |
//! | `webhooks` | endpoints and deliveries |
//! | `test_mode` | test data: its inbox, simulated signers, its time |
//! | `components` | rules and plugins that are replaced at run time, and their shadows |

pub mod access;
mod app;
pub mod bulk;
pub mod components;
pub mod control;
pub mod customers;
pub mod envelopes;
pub mod error;
pub mod events;
pub mod gauges;
pub mod idempotency;
pub mod installation;
pub mod kba;
pub mod mails;
pub mod messaging;
pub mod organizations;
pub mod payments;
pub mod request_log;
pub mod signing;
pub mod templates;
pub mod test_mode;
pub mod vault;
pub mod webhooks;

pub use app::{App, Core, ServiceState, kind_of};
pub use error::{ServiceError, ValidationIssue};

use crate::domain::id::{OrgId, TokenId};

/// Authenticated caller. Every use case needs one, because it names the organization.
#[derive(Clone, Debug)]
pub struct Caller {
    pub org: OrgId,
    /// Actor name for the ledger: `key:…`, `user:…` or `system`.
    pub actor: String,
    /// E-mail address that becomes the custodian of envelopes the caller creates.
    pub email: Option<String>,
    /// Bearer token of the service that the caller showed, if it was one.
    pub token: Option<TokenId>,
}

impl Caller {
    /// Returns the creator recorded on new envelopes: the e-mail address, or else the actor.
    pub fn creator(&self) -> String {
        self.email.clone().unwrap_or_else(|| self.actor.clone())
    }

    /// Returns a caller for work that the service does itself for an organization.
    pub fn system(org: OrgId) -> Self {
        Self {
            org,
            actor: "system".into(),
            email: None,
            token: None,
        }
    }
}
