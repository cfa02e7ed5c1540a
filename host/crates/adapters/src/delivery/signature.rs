//! Signatures of a delivery: the specification's and that of Standard Webhooks 1.0.0, side by side.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use holdfast_domain::clock::Timestamp;
use holdfast_domain::hash::hmac_sha256;
use holdfast_domain::id::EventId;
use holdfast_domain::webhook::WebhookSecret;

/// Returns the value of `X-Service-Signature`: HMAC-SHA256
/// of the body, keyed with the secret as displayed.
pub fn of_body(secret: &WebhookSecret, body: &[u8]) -> String {
    format!(
        "sha256={}",
        hex::encode(hmac_sha256(secret.reveal().as_bytes(), &[body]))
    )
}

/// Returns one entry of `webhook-signature`. It covers id,
/// time and body, which prevents replays of old deliveries.
pub fn standard(secret: &WebhookSecret, event: &EventId, at: Timestamp, body: &[u8]) -> String {
    let head = format!("{event}.{}.", at.as_seconds());
    let mac = hmac_sha256(&secret.standard_key(), &[head.as_bytes(), body]);
    format!("v1,{}", STANDARD.encode(mac))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed with `openssl dgst -sha256 -hmac`.
    #[test]
    fn the_body_signature_is_hmac_sha256_of_the_bytes() {
        let secret = WebhookSecret::of("a secret of sixteen".into());
        assert_eq!(
            of_body(&secret, br#"{"event_type":"webhook.test"}"#),
            "sha256=987b7794e5256116a369052f75558d81880b41bff50c4542359bbaa5f40e3788"
        );
    }

    /// Example from the libraries of the Standard Webhooks specification.
    #[test]
    fn the_standard_signature_covers_id_time_and_body() {
        let secret = WebhookSecret::of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into());
        let event = "msg_p5jXN8AQM9LWM0D4loKWxJek";
        let key = secret.standard_key();
        let head = format!("{event}.1614265330.");
        let mac = hmac_sha256(&key, &[head.as_bytes(), br#"{"test": 2432232314}"#]);
        assert_eq!(
            STANDARD.encode(mac),
            "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }
}
