//! Sandboxes for payments, identity questions and text messages, so that a development installation works without
//! providers. In production, they are for test data only.
//!
//! They implement the same interfaces as the provider components. Text messages become files in the
//! outbox, as mails do; the other sandboxes store no personal data.

mod kba;
mod messages;
mod payments;

use std::path::PathBuf;

use serde_json::Value;

use holdfast_base::config::EMBEDDED;
use holdfast_components::providers::{KbaProvider, MessagingProvider, PaymentProvider};
use holdfast_domain::clock::Clock;
use holdfast_domain::id::OrgId;
use holdfast_store::Store;

/// Marks a ledger entry's details when the payment or identity provider was a sandbox. A sandbox's
/// results prove nothing.
pub fn mark(details: &mut Value, instance: &str) {
    if is_sandbox(instance) {
        details["sandbox"] = Value::Bool(true);
    }
}

/// Whether a provider instance is the sandbox.
pub fn is_sandbox(instance: &str) -> bool {
    instance == EMBEDDED
}

/// Factory of the sandbox providers.
#[derive(Clone)]
pub struct Sandbox {
    store: Store,
    clock: Clock,
    /// Public URL of this server.
    public_url: String,
    /// Folder of messages.
    outbox: PathBuf,
}

impl Sandbox {
    pub fn new(store: Store, clock: Clock, public_url: String, outbox: PathBuf) -> Self {
        Self {
            store,
            clock,
            public_url,
            outbox,
        }
    }

    /// Returns the payment provider of an organization.
    pub fn payment(&self, org: Option<&OrgId>) -> Box<dyn PaymentProvider> {
        Box::new(payments::SandboxPayments {
            sandbox: self.clone(),
            org: org.cloned(),
        })
    }

    /// Returns the identity provider.
    pub fn kba(&self) -> Box<dyn KbaProvider> {
        Box::new(kba::SandboxKba)
    }

    /// Returns the text message provider of an organization.
    pub fn messaging(&self, org: &OrgId) -> Box<dyn MessagingProvider> {
        Box::new(messages::OutboxMessages {
            // Nothing of a test leaves the installation, not even as a file in the outbox.
            folder: (!org.is_test()).then(|| self.outbox.clone()),
        })
    }
}
