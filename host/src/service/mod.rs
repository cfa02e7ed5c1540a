//! What a caller can ask for, one file per intention. Has neither handlers nor SQL.
//!
//! | Area | Holds |
//! |---|---|
//! | `access` | keys, tokens, issuers, and how often they may ask |
//! | `envelopes` | creating, sending, moving and judging contracts |
//! | `templates` | templates, packages, the field builder, pages |
//! | `signing` | signers: links, visits, callbacks, reminders, their providers |
//! | `kba` | identity questions in front of a document |
//! | `payments` | asking for money, and hearing of it |
//! | `bulk` | one document for many clients |
//! | `vault` | vaulting and releasing, ledgers, the log, stored bytes |
//! | `webhooks` | endpoints and deliveries |
//! | `components` | rules and plugins that are replaced at run time, and their shadows |

pub mod access;
mod app;
pub mod bulk;
pub mod components;
pub mod customers;
pub mod envelopes;
pub mod error;
pub mod events;
pub mod gauges;
pub mod idempotency;
pub mod kba;
pub mod mails;
pub mod payments;
pub mod signing;
pub mod templates;
pub mod vault;
pub mod webhooks;

pub use app::{App, Core, Service};
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
