//! Webhook endpoints: where an organization's events go (specification, "Webhook
//! endpoint", "Events").

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretString};

use super::clock::Timestamp;
use super::envelope::words;
use super::event::EventType;
use super::id::{EndpointId, KeyId, OrgId};
use super::seal::Sealer;
use super::token::random;

/// A registered endpoint.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Its id.
    pub id: EndpointId,
    /// Whose it is.
    pub org: OrgId,
    /// Where deliveries are posted to. Checked again before each.
    pub url: String,
    /// What it is for.
    pub description: Option<String>,
    /// Which events it is told of.
    pub selectors: Vec<Selector>,
    /// Whether anything is sent to it.
    pub is_active: bool,
    /// The API key it is attached to; none: the whole organization's.
    pub key: Option<KeyId>,
    /// The one that `PATCH /partner/webhook` of that key writes to.
    pub legacy: bool,
    /// None: deliveries are unsigned.
    pub secret: Option<SealedSecret>,
    /// The secret before the last rotation, and until when it signs as well.
    pub previous: Option<Previous>,
    /// E-mail of who made it, where there is one.
    pub created_by: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// How its receiver does.
    pub health: Health,
}

/// A secret that is on its way out.
#[derive(Clone, Debug)]
pub struct Previous {
    pub secret: SealedSecret,
    /// It signs until then.
    pub until: Timestamp,
}

/// What deliveries to an endpoint have shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Since when every attempt has failed.
    pub failing_since: Option<Timestamp>,
    /// When its owner was told so.
    pub warned_at: Option<Timestamp>,
    /// Nothing but a probe is sent, and that not before.
    pub paused_until: Option<Timestamp>,
    /// Why and when it was disabled by this service.
    pub disabled: Option<(DisableReason, Timestamp)>,
}

words! {
    /// Why this service has disabled an endpoint.
    DisableReason {
        // It answered 410.
        Gone = "gone",
        // Every attempt of five days has failed.
        Failing = "failing",
    }
}

words! {
    /// Where a delivery stands.
    DeliveryStatus {
        Pending = "pending",
        Delivered = "delivered",
        Failed = "failed",
    }
}

/// Which events an endpoint is told of: one type, all of a domain, or all.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Selector(String);

impl Selector {
    /// None for a wildcard anywhere but at the end, and for what matches no event
    /// that there is (specification, "Webhook endpoint management").
    pub fn parse(text: &str) -> Option<Self> {
        let selector = Self(text.to_owned());
        let wildcards = text.matches('*').count();
        let well_formed = wildcards == 0 || text == "*" || (wildcards == 1 && text.ends_with(".*"));
        let matches = EventType::ALL.iter().any(|known| selector.matches(*known));
        (well_formed && matches).then_some(selector)
    }

    /// Every event.
    pub fn all() -> Self {
        Self("*".into())
    }

    /// Whether an event of this type is meant.
    pub fn matches(&self, event_type: EventType) -> bool {
        match self.0.strip_suffix('*') {
            Some(prefix) => event_type.as_str().starts_with(prefix),
            None => self.0 == event_type.as_str(),
        }
    }

    /// As it is written in the API.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What deliveries are signed with.
#[derive(Clone, Debug)]
pub struct Secret(SecretString);

/// Before the base64 of a secret that was made here.
const PREFIX: &str = "whsec_";

impl Secret {
    /// `whsec_` and base64 of 32 random bytes.
    pub fn generate() -> Self {
        Self(format!("{PREFIX}{}", STANDARD.encode(random::<32>())).into())
    }

    /// One that somebody else has chosen.
    pub fn of(text: String) -> Self {
        Self(text.into())
    }

    /// For the one answer that shows it, and to be sealed.
    pub fn reveal(&self) -> &str {
        self.0.expose_secret()
    }

    /// Standard Webhooks: the base64 part decoded; a secret without one is its bytes.
    pub fn standard_key(&self) -> Vec<u8> {
        let encoded = self.reveal().strip_prefix(PREFIX);
        let decoded = encoded.and_then(|encoded| STANDARD.decode(encoded).ok());
        decoded.unwrap_or_else(|| self.reveal().as_bytes().to_vec())
    }
}

/// A secret as it is kept: readable with this installation's key, for its endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedSecret(String);

impl SealedSecret {
    /// Seals the secret of an endpoint.
    pub fn seal(secret: &Secret, endpoint: &EndpointId, sealer: &Sealer) -> Self {
        Self(sealer.seal(secret.reveal(), endpoint.as_str()))
    }

    /// None with another key.
    pub fn open(&self, endpoint: &EndpointId, sealer: &Sealer) -> Option<Secret> {
        sealer.open(&self.0, endpoint.as_str()).map(Secret::of)
    }

    /// As it was read from where it is kept.
    pub fn kept(text: String) -> Self {
        Self(text)
    }

    /// To be kept.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What came of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// None without an answer.
    pub status: Option<u16>,
    /// As far as it was read.
    pub body: Option<String>,
    /// Why there was no whole answer. Names no address.
    pub error: Option<String>,
    /// What the receiver asked for.
    pub retry_after: Option<Duration>,
    pub duration: Duration,
}

impl Outcome {
    /// No answer, and why.
    pub fn nothing(why: impl Into<String>) -> Self {
        Self {
            status: None,
            body: None,
            error: Some(why.into()),
            retry_after: None,
            duration: Duration::ZERO,
        }
    }

    /// Any 2xx, whole and in time.
    pub fn is_success(&self) -> bool {
        self.error.is_none()
            && self
                .status
                .is_some_and(|status| (200..300).contains(&status))
    }

    /// The receiver wants nothing more, ever (Standard Webhooks).
    pub fn is_gone(&self) -> bool {
        self.status == Some(410)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_a_type_a_domain_or_everything() {
        for (text, selected) in [
            ("*", EventType::ALL.len()),
            ("envelope.completed", 1),
            ("signer.*", 3),
            ("vault.compliance.*", 2),
            ("webhook.test", 1),
        ] {
            let selector = Selector::parse(text).unwrap();
            let matched = EventType::ALL
                .iter()
                .filter(|known| selector.matches(**known));
            assert_eq!(matched.count(), selected, "{text}");
        }
    }

    #[test]
    fn wildcards_elsewhere_and_unknown_events_are_no_selectors() {
        for text in [
            "",
            "**",
            "*.completed",
            "envelope.*.x",
            "envelope.comp*",
            "envelope*",
            ".*",
            "*.*",
            "envelope",
            "envelope.",
            "envelope.finished",
            "invoice.*",
            "Envelope.*",
            " envelope.created",
        ] {
            assert_eq!(Selector::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_kept_secret_is_readable_with_the_key_and_for_its_endpoint_only() {
        let (secret, endpoint) = (Secret::generate(), EndpointId::new());
        let sealer = Sealer::new(&[7; 32]).unwrap();
        let sealed = SealedSecret::seal(&secret, &endpoint, &sealer);
        assert!(!sealed.as_str().contains(secret.reveal()));
        let opened = sealed.open(&endpoint, &sealer).unwrap();
        assert_eq!(opened.reveal(), secret.reveal());
        assert!(sealed.open(&EndpointId::new(), &sealer).is_none());
        let other = Sealer::new(&[8; 32]).unwrap();
        assert!(sealed.open(&endpoint, &other).is_none());
    }

    #[test]
    fn a_secret_hides_itself_and_knows_its_key() {
        let secret = Secret::generate();
        assert!(!format!("{secret:?}").contains(secret.reveal()));
        assert_eq!(secret.standard_key().len(), 32);
        let chosen = Secret::of("sixteen characters".into());
        assert_eq!(chosen.standard_key(), b"sixteen characters");
        let not_base64 = Secret::of("whsec_with-dashes-that-decode-to-nothing".into());
        assert_eq!(not_base64.standard_key(), not_base64.reveal().as_bytes());
    }
}
