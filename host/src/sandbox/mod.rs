//! Stand-ins for a payment processor and for identity questions, so that a
//! development installation works without either. Never in production.
//!
//! They answer as the components of these slots do, without one. Nothing they keep is about
//! a person.

mod kba;
mod payments;

use serde_json::Value;

use crate::components::providers::{KbaProvider, PaymentProvider};
use crate::config::EMBEDDED;
use crate::domain::clock::Clock;
use crate::domain::id::OrgId;
use crate::store::Store;

/// Marks the details of a ledger entry where the payment or identity provider was a sandbox,
/// whose results prove nothing.
pub(crate) fn mark(details: &mut Value, instance: &str) {
    if instance == EMBEDDED {
        details["sandbox"] = Value::Bool(true);
    }
}

/// The sandboxes.
#[derive(Clone)]
pub struct Sandbox {
    store: Store,
    clock: Clock,
    /// Where people reach this server.
    public_url: String,
}

impl Sandbox {
    pub fn new(store: Store, clock: Clock, public_url: String) -> Self {
        Self {
            store,
            clock,
            public_url,
        }
    }

    /// The payment provider of an organization.
    pub fn payment(&self, org: Option<&OrgId>) -> Box<dyn PaymentProvider> {
        Box::new(payments::Account {
            sandbox: self.clone(),
            org: org.cloned(),
        })
    }

    /// The identity provider.
    pub fn kba(&self) -> Box<dyn KbaProvider> {
        Box::new(kba::Questions)
    }
}
