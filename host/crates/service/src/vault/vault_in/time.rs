//! The trusted time of a seal.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use holdfast_adapters::sealing::UnstampedSeal;
use holdfast_evidence::stamp::TimeStamp;

/// Statement about a time stamp that has no trust anchor.
const NOT_CHECKED: &str = "time from an authority that is not checked";

/// Statement about times without a time stamping authority.
const OWN_TIMES: &str = "No time stamping authority was asked: times are those of this server.";

/// Result of asking the time stamping authority for a seal's time.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub(super) enum TrustedTime {
    /// No time stamping authority is configured.
    NotAsked,
    /// The authority's token (RFC 3161), in base64.
    Stamped {
        token: String,
        at: String,
        authority: String,
        /// Whether the authority's certificate chains to a root that the operator trusts.
        #[serde(default)]
        checked: bool,
    },
    /// The authority gave no usable token.
    None { reason: String },
}

impl TrustedTime {
    /// Returns the token as DER.
    pub(super) fn token(&self) -> Option<Vec<u8>> {
        match self {
            Self::Stamped { token, .. } => STANDARD.decode(token).ok(),
            Self::NotAsked | Self::None { .. } => None,
        }
    }

    /// Returns whether it covers this signature. It does not if the sealing key was replaced
    /// since.
    pub(super) fn is_about(&self, unstamped: &UnstampedSeal) -> bool {
        match self.token() {
            // A result without a token claims nothing about a signature, so it fits each. A token that
            // cannot be decoded fits none.
            None => !matches!(self, Self::Stamped { .. }),
            Some(token) => TimeStamp::open(token, &unstamped.signature_digest()).is_ok(),
        }
    }

    /// Returns why the seal has no trusted time; none if it has one.
    pub(super) fn untimed(&self) -> Option<String> {
        match self {
            Self::Stamped { .. } => None,
            Self::NotAsked => Some("no time stamping authority was asked".into()),
            Self::None { reason } => Some(reason.clone()),
        }
    }

    /// Returns the value for ledger and certificate: null when no authority is configured.
    pub(super) fn told(&self) -> Value {
        match self {
            Self::NotAsked => Value::Null,
            Self::Stamped {
                at,
                authority,
                checked,
                ..
            } => {
                let mut told = json!({
                    "status": "stamped", "at": at, "authority": authority, "checked": checked,
                });
                // Without a trust anchor anyone could have made the token, and the evidence has to say
                // so.
                if !checked {
                    told["statement"] = NOT_CHECKED.into();
                }

                told
            }
            Self::None { reason } => json!({ "status": "no trusted time", "reason": reason }),
        }
    }

    /// Returns the value for the certificate, with the source of its times in every case.
    pub(super) fn certified(&self) -> Value {
        match self {
            Self::NotAsked => json!({ "status": "not asked", "statement": OWN_TIMES }),
            _ => self.told(),
        }
    }
}
