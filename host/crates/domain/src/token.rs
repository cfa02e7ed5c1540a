//! Secrets that are shown once: API keys, signing links, download links.
//!
//! The raw value goes to its receiver; the database stores only its SHA-256. Debug output
//! hides it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest, Sha256};

use super::id::OrgId;

/// SHA-256 of a secret in lower-case hex, as stored in the database.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SecretHash(String);

impl SecretHash {
    /// Hashes `secret`.
    pub fn of(secret: &str) -> Self {
        Self(hex::encode(Sha256::digest(secret.as_bytes())))
    }

    /// Wraps a stored hash.
    pub fn kept(text: String) -> Self {
        Self(text)
    }

    /// Returns the 64 hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// API key in plain text: `lk_`, or `lk_test_` for test data, and 40 hex digits of 20 random bytes.
#[derive(Clone, Debug)]
pub struct ApiKey(SecretString);

impl ApiKey {
    /// Generates a key for an organization or its test data.
    pub fn generate(org: &OrgId) -> Self {
        let prefix = if org.is_test() { "lk_test_" } else { "lk_" };
        Self(format!("{prefix}{}", hex::encode(random::<20>())).into())
    }

    /// Parses a key; `None` unless `text` has the format of a key.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("lk_")?;
        let digits = digits.strip_prefix("test_").unwrap_or(digits);
        let hex = digits.len() == 40 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        hex.then(|| Self(text.into()))
    }

    /// What the database keeps.
    pub fn hash(&self) -> SecretHash {
        SecretHash::of(self.reveal())
    }

    /// Returns the plain text, for the one response that shows it.
    pub fn reveal(&self) -> &str {
        self.0.expose_secret()
    }
}

/// Unguessable link token: the organization's bucket in two hex digits, so
/// that a look-up can filter by bucket, and 256 random bits.
#[derive(Clone, Debug)]
pub struct LinkToken {
    text: SecretString,
    bucket: i64,
}

impl LinkToken {
    /// Generates a token for an organization in `bucket`.
    pub fn generate(bucket: i64) -> Self {
        let random = URL_SAFE_NO_PAD.encode(random::<32>());
        Self {
            text: format!("{bucket:02x}{random}").into(),
            bucket,
        }
    }

    /// Parses a token; `None` unless `text` has the format of a token.
    pub fn parse(text: &str) -> Option<Self> {
        let bucket = i64::from(u8::from_str_radix(text.get(..2)?, 16).ok()?);
        let random = URL_SAFE_NO_PAD.decode(text.get(2..)?).ok()?;
        // The bucket locates a link before its organization is known.
        (random.len() == 32 && bucket < 64).then(|| Self {
            text: text.into(),
            bucket,
        })
    }

    /// Returns the bucket of the token's organization.
    pub fn bucket(&self) -> i64 {
        self.bucket
    }

    /// What the database keeps.
    pub fn hash(&self) -> SecretHash {
        SecretHash::of(self.reveal())
    }

    /// Returns the plain text, for the URL.
    pub fn reveal(&self) -> &str {
        self.text.expose_secret()
    }
}

/// Returns random bytes from the operating system.
///
/// # Panics
///
/// Without random numbers nothing this service issues is secret, so a failure of the generator
/// ends the process.
#[expect(clippy::panic, reason = "see above")]
pub fn random<const LENGTH: usize>() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    if let Err(error) = getrandom::fill(&mut bytes) {
        panic!("the operating system gives no random numbers: {error}");
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_key_has_43_characters_and_is_redacted_in_debug_output() {
        let key = ApiKey::generate(&OrgId::new());
        assert_eq!(key.reveal().len(), 43);
        assert!(ApiKey::parse(key.reveal()).is_some());
        assert!(!format!("{key:?}").contains(&key.reveal()[3..]));
        assert!(ApiKey::parse("lk_123").is_none());
    }

    #[test]
    fn a_link_token_contains_its_bucket() {
        let token = LinkToken::generate(63);
        let parsed = LinkToken::parse(token.reveal()).unwrap();
        assert_eq!(parsed.bucket(), 63);
        assert_eq!(parsed.hash(), token.hash());
        for text in ["", "zz", "3f", "ff0000", "é"] {
            assert!(LinkToken::parse(text).is_none(), "{text}");
        }
    }
}
