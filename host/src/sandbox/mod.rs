//! Stand-ins for a payment processor and for identity questions, so that a
//! development installation works without either. Never in production.
//!
//! They are providers like any other: they speak the subset of their vendors' HTTP
//! APIs that the default plugins use, and are reached through these, over the
//! plugins' egress, without a socket. Nothing they keep is about a person.

pub mod kba;
pub mod payments;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::{HeaderMap, header};
use serde_json::Value;

use crate::components::egress::Egress;
use crate::components::providers::ProviderLease;
use crate::config::{EMBEDDED, SecretText};
use crate::domain::clock::Clock;
use crate::domain::component::Slot;
use crate::domain::hash::hmac_sha256;
use crate::domain::id::OrgId;
use crate::store::Store;

/// Host names that stand for the sandboxes in URLs. Nothing resolves them.
const PAYMENTS: &str = "payments-sandbox.internal";
const QUESTIONS: &str = "identity-sandbox.internal";

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
    key: [u8; 32],
    /// Where people reach this server.
    public_url: String,
}

impl Sandbox {
    /// `key` makes the sandboxes' secrets; it never leaves the process.
    pub fn new(store: Store, clock: Clock, key: [u8; 32], public_url: String) -> Self {
        Self {
            store,
            clock,
            key,
            public_url,
        }
    }

    /// What a call to the payment plugin may use; without an organization for reading a
    /// callback only.
    pub fn payment_lease(&self, org: Option<&OrgId>) -> ProviderLease {
        let mut secrets = BTreeMap::from([("webhook_secret".to_owned(), self.webhook_secret())]);
        if let Some(org) = org {
            secrets.insert("secret_key".to_owned(), self.secret_key(org));
        }
        let settings = [
            ("base_url", format!("http://{PAYMENTS}")),
            ("publishable_key", "pk_sandbox".to_owned()),
            (
                "payment_page",
                format!("{}/sandbox/payments", self.public_url),
            ),
        ];
        let egress = Egress::in_process(payments::router(self.clone()), PAYMENTS);
        self.lease(Slot::Payment, settings, secrets, egress)
    }

    /// What a call to the identity plugin may use.
    pub fn kba_lease(&self) -> ProviderLease {
        let secrets = BTreeMap::from([("secret_key".to_owned(), SecretText::new("sk_sandbox"))]);
        // The signer's address is all that decides here.
        let settings = [
            ("base_url", format!("http://{QUESTIONS}")),
            ("identity_fields", String::new()),
        ];
        let egress = Egress::in_process(kba::router(), QUESTIONS);
        self.lease(Slot::Kba, settings, secrets, egress)
    }

    fn lease<const COUNT: usize>(
        &self,
        slot: Slot,
        settings: [(&str, String); COUNT],
        secrets: BTreeMap<String, SecretText>,
        egress: Egress,
    ) -> ProviderLease {
        let settings = settings.map(|(name, value)| (name.to_owned(), value));
        ProviderLease {
            room: None,
            label: format!("{slot} {EMBEDDED}"),
            settings: Arc::new(BTreeMap::from(settings)),
            secrets: Arc::new(secrets),
            egress,
            clock: self.clock,
        }
    }

    /// The API key of an organization.
    fn secret_key(&self, org: &OrgId) -> SecretText {
        let mac = hmac_sha256(&self.key, &[b"secret key", org.as_str().as_bytes()]);
        SecretText::new(format!("sk_sandbox.{org}.{}", hex::encode(mac)))
    }

    /// The organization whose API key came with a request.
    fn account(&self, headers: &HeaderMap) -> Option<OrgId> {
        let given = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
        let given = given.strip_prefix("Bearer ")?;
        let (org, _) = given.strip_prefix("sk_sandbox.")?.split_once('.')?;
        let org = OrgId::parse(org)?;
        let expected = self.secret_key(&org);
        let same = subtle::ConstantTimeEq::ct_eq(expected.reveal().as_bytes(), given.as_bytes());
        bool::from(same).then_some(org)
    }

    /// The secret that signs callbacks.
    fn webhook_secret(&self) -> SecretText {
        let mac = hmac_sha256(&self.key, &[b"webhook"]);
        SecretText::new(format!("whsec_{}", hex::encode(mac)))
    }
}
