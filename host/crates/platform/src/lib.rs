//! What every use case on contracts stands on: who may call, which components are active, what is recorded and who is
//! told.
//!
//! | Modules | Hold |
//! |---|---|
//! | `access`, `organizations`, `link_hosts` | API keys, users, sessions, rate limits; settings and hosts of organizations |
//! | `components`, `component_owner` | admission, activation, changes and replay of components |
//! | `events`, `log` | a change's ledger entry and event, written together; the log over all ledgers |
//! | `funding_acts` | waivers of stipulations, packs of lenders |
//! | `permits`, `lookup`, `envelope_locks` | checks before an act; objects of the caller; locks of this process |
//! | `providers`, `payments`, `kba`, `messaging`, `conversion` | signing, payment, identity, text message and conversion providers |
//! | `documents`, `fields`, `signers`, `passcodes`, `vaulting` | parts of envelopes that several areas need |
//! | `mails`, `webhooks` | queued mails and messages; receivers, deliveries and the feed of events |
//! | `idempotency`, `request_log`, `pace` | repeated requests; the log of requests; batches yield to them |
//! | `error`, `problems` | why a call failed |
//! | `room`, `sandbox` | built-in providers, which use none of the modules above |
//!
//! [`Core`] is the context that every use case receives; `host/src/start.rs` makes it. [`Caller`] names the
//! organization, and is made of a request's credential. A failure is a [`ServiceError`], of which only
//! `http/error.rs` makes HTTP.
//!
//! [`components`] decides which component is active. The crate `holdfast-components` loads and calls it.
//!
//! ARCHITECTURE.md, "Areas of `service`", lists the areas here and in the crate `holdfast-service`: each imports only
//! those below it.

#![allow(
    missing_docs,
    reason = "use cases are named by their functions, and arguments by their types"
)]

pub mod access;
pub mod component_owner;
pub mod components;
pub mod conversion;
mod core;
pub mod documents;
pub mod envelope_locks;
pub mod error;
pub mod events;
pub mod fields;
pub mod funding_acts;
pub mod idempotency;
pub mod kba;
pub mod link_hosts;
pub mod log;
pub mod lookup;
pub mod mails;
pub mod messaging;
pub mod organizations;
pub mod pace;
pub mod passcodes;
pub mod payments;
pub mod permits;
pub mod problems;
pub mod providers;
pub mod request_log;
pub mod room;
pub mod sandbox;
pub mod signers;
pub mod vaulting;
pub mod webhooks;

pub use crate::core::{Core, kind_of};
pub use error::{ServiceError, ValidationIssue};
pub use problems::{Problem, ProblemKind};

use holdfast_domain::id::{OrgId, TokenId};
use holdfast_domain::organization::Role;
use holdfast_domain::template::{Template, TemplateReader};

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
    /// Role of a web-app user; none of keys and of the service itself.
    pub role: Option<Role>,
}

impl Caller {
    /// Returns the creator recorded on new envelopes: the e-mail address, or else the actor.
    pub fn creator(&self) -> String {
        self.email.clone().unwrap_or_else(|| self.actor.clone())
    }

    /// Returns a caller by the name of its actor, without address, token and role.
    pub fn named(org: OrgId, actor: impl Into<String>) -> Self {
        Self {
            org,
            actor: actor.into(),
            email: None,
            token: None,
            role: None,
        }
    }

    /// Returns a caller for work that the service does itself for an organization.
    pub fn system(org: OrgId) -> Self {
        Self::named(org, "system")
    }

    /// Returns the user whose templates are those that are shared with the user; `None` if the caller sees all.
    pub fn template_reader(&self) -> Option<TemplateReader> {
        // A user always has an address.
        TemplateReader::of(self.role?, self.email.as_deref().unwrap_or_default())
    }

    /// Whether the caller sees a template. One that is not seen is answered like an unknown one.
    pub fn sees(&self, template: &Template) -> bool {
        template.is_seen_by(self.template_reader().as_ref())
    }
}
