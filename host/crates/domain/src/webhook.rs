//! Webhook endpoints and results of deliveries (specification, "Webhook endpoint", "Events").

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretString};

use super::at_rest::AtRestCipher;
use super::clock::Timestamp;
use super::envelope::words;
use super::event::EventType;
use super::id::{EndpointId, KeyId, OrgId};
use super::token::random;

/// Registered webhook endpoint.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Its id.
    pub id: EndpointId,
    /// Organization that owns the endpoint.
    pub org: OrgId,
    /// URL that deliveries are posted to. Its address is checked before each delivery.
    pub url: String,
    /// Description by the owner.
    pub description: Option<String>,
    /// Selectors of the events that are delivered.
    pub selectors: Vec<EventSelector>,
    /// Whether events are delivered.
    pub is_active: bool,
    /// API key of the endpoint; `None` for an endpoint of the whole organization.
    pub key: Option<KeyId>,
    /// Whether this is the endpoint that `PATCH /partner/webhook` of the key changes.
    pub legacy: bool,
    /// Signing secret; `None` for unsigned deliveries.
    pub secret: Option<EncryptedSecret>,
    /// Previous secret, which signs in addition for a while after a rotation.
    pub previous: Option<PreviousSecret>,
    /// E-mail address of the creator, or empty.
    pub created_by: String,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// Health of the receiver.
    pub health: EndpointHealth,
}

/// Replaced secret in its overlap period.
#[derive(Clone, Debug)]
pub struct PreviousSecret {
    pub secret: EncryptedSecret,
    /// End of the overlap period.
    pub until: Timestamp,
}

/// Health of an endpoint, derived from its deliveries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointHealth {
    /// Start of the present series of failures.
    pub failing_since: Option<Timestamp>,
    /// Time of the warning to the owner about these failures.
    pub warned_at: Option<Timestamp>,
    /// Time of the next probe. Until a probe succeeds, nothing else is sent.
    pub paused_until: Option<Timestamp>,
    /// Reason and time of being disabled by this service.
    pub disabled: Option<(DisableReason, Timestamp)>,
}

words! {
    /// Reason of this service for disabling an endpoint.
    DisableReason {
        // The receiver responded with 410.
        Gone = "gone",
        // Every attempt within five days failed.
        Failing = "failing",
    }
}

words! {
    /// Status of a delivery.
    DeliveryStatus {
        Pending = "pending",
        Delivered = "delivered",
        Failed = "failed",
    }
}

/// Selector of events: one type, all types of a domain (`vault.*`), or all (`*`).
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct EventSelector(String);

impl EventSelector {
    /// Parses a selector. `None` for a wildcard anywhere but at the end, and for a selector that
    /// matches no known event type (specification, "Webhook endpoint management").
    pub fn parse(text: &str) -> Option<Self> {
        let selector = Self(text.to_owned());
        let wildcards = text.matches('*').count();
        let well_formed = wildcards == 0 || text == "*" || (wildcards == 1 && text.ends_with(".*"));
        // A selector that matches no event is a typo: its endpoint would wait for ever without an error.
        let matches = EventType::ALL.iter().any(|known| selector.matches(*known));
        (well_formed && matches).then_some(selector)
    }

    /// Returns the selector of all events.
    pub fn all() -> Self {
        Self("*".into())
    }

    /// Whether the selector matches this event type.
    pub fn matches(&self, event_type: EventType) -> bool {
        match self.0.strip_suffix('*') {
            Some(prefix) => event_type.as_str().starts_with(prefix),
            None => self.0 == event_type.as_str(),
        }
    }

    /// Text form, as used in the API.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Signing secret of an endpoint.
#[derive(Clone, Debug)]
pub struct WebhookSecret(SecretString);

/// Prefix of generated secrets.
const PREFIX: &str = "whsec_";

impl WebhookSecret {
    /// Generates a secret: `whsec_` and base64 of 32 random bytes.
    pub fn generate() -> Self {
        Self(format!("{PREFIX}{}", STANDARD.encode(random::<32>())).into())
    }

    /// Wraps a secret that was chosen by the caller.
    pub fn of(text: String) -> Self {
        Self(text.into())
    }

    /// Returns the plain text, for sealing and for the one response that shows it.
    pub fn reveal(&self) -> &str {
        self.0.expose_secret()
    }

    /// Returns the key of Standard Webhooks: the decoded base64 part, or the bytes of a secret
    /// that has none.
    pub fn standard_key(&self) -> Vec<u8> {
        let encoded = self.reveal().strip_prefix(PREFIX);
        let decoded = encoded.and_then(|encoded| STANDARD.decode(encoded).ok());
        decoded.unwrap_or_else(|| self.reveal().as_bytes().to_vec())
    }
}

/// Encrypted secret. It opens only with a key of this installation and for its endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncryptedSecret(String);

impl EncryptedSecret {
    /// Seals the secret of an endpoint.
    pub fn encrypt(secret: &WebhookSecret, endpoint: &EndpointId, cipher: &AtRestCipher) -> Self {
        Self(cipher.encrypt(secret.reveal(), endpoint.as_str()))
    }

    /// Decrypts the secret; `None` with another key or endpoint.
    pub fn decrypt(&self, endpoint: &EndpointId, cipher: &AtRestCipher) -> Option<WebhookSecret> {
        cipher
            .open(&self.0, endpoint.as_str())
            .map(WebhookSecret::of)
    }

    /// Wraps a stored value.
    pub fn kept(text: String) -> Self {
        Self(text)
    }

    /// Returns the value to store.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Result of an attempt to deliver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptOutcome {
    /// HTTP status; `None` without a response.
    pub status: Option<u16>,
    /// Beginning of the response body.
    pub body: Option<String>,
    /// Reason for a missing or incomplete response. Contains no IP address.
    pub error: Option<String>,
    /// `Retry-After` of the response.
    pub retry_after: Option<Duration>,
    pub duration: Duration,
}

impl AttemptOutcome {
    /// Returns the result of an attempt that got no response, with the reason.
    pub fn nothing(why: impl Into<String>) -> Self {
        Self {
            status: None,
            body: None,
            error: Some(why.into()),
            retry_after: None,
            duration: Duration::ZERO,
        }
    }

    /// Whether the response was a 2xx, complete and in time.
    pub fn is_success(&self) -> bool {
        self.error.is_none()
            && self
                .status
                .is_some_and(|status| (200..300).contains(&status))
    }

    /// Whether the receiver asks for no further deliveries (410, Standard Webhooks).
    pub fn is_gone(&self) -> bool {
        self.status == Some(410)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_selector_is_a_type_a_domain_or_everything() {
        for (text, selected) in [
            ("*", EventType::ALL.len()),
            ("envelope.completed", 1),
            ("signer.*", 9),
            ("vault.compliance.*", 2),
            ("webhook.test", 1),
        ] {
            let selector = EventSelector::parse(text).unwrap();
            let matched = EventType::ALL
                .iter()
                .filter(|known| selector.matches(**known));
            assert_eq!(matched.count(), selected, "{text}");
        }
    }

    #[test]
    fn misplaced_wildcards_and_unknown_events_are_refused() {
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
            assert_eq!(EventSelector::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_stored_secret_opens_only_with_the_key_and_for_its_endpoint() {
        let (secret, endpoint) = (WebhookSecret::generate(), EndpointId::new());
        let cipher = AtRestCipher::new(&[7; 32]).unwrap();
        let sealed = EncryptedSecret::encrypt(&secret, &endpoint, &cipher);
        assert!(!sealed.as_str().contains(secret.reveal()));

        let opened = sealed.decrypt(&endpoint, &cipher).unwrap();
        assert_eq!(opened.reveal(), secret.reveal());
        assert!(sealed.decrypt(&EndpointId::new(), &cipher).is_none());

        let other = AtRestCipher::new(&[8; 32]).unwrap();
        assert!(sealed.decrypt(&endpoint, &other).is_none());
    }

    #[test]
    fn a_signing_secret_is_redacted_and_exposes_its_key_bytes() {
        let secret = WebhookSecret::generate();
        assert!(!format!("{secret:?}").contains(secret.reveal()));
        assert_eq!(secret.standard_key().len(), 32);
        let chosen = WebhookSecret::of("sixteen characters".into());
        assert_eq!(chosen.standard_key(), b"sixteen characters");
        let not_base64 = WebhookSecret::of("whsec_with-dashes-that-decode-to-nothing".into());
        assert_eq!(not_base64.standard_key(), not_base64.reveal().as_bytes());
    }
}
