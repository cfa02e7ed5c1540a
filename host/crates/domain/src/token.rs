//! Secrets handed out once: API keys, signing links, download links.
//!
//! The raw value is shown to its receiver and forgotten; what is stored is its
//! SHA-256. Debug output hides it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest, Sha256};

/// SHA-256 of a secret, lower-case hex: what the database keeps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SecretHash(String);

impl SecretHash {
    /// The digest of `secret`.
    pub fn of(secret: &str) -> Self {
        Self(hex::encode(Sha256::digest(secret.as_bytes())))
    }

    /// As it was read from where it is kept.
    pub fn kept(text: String) -> Self {
        Self(text)
    }

    /// 64 hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// An API key as its owner holds it: `lk_` and 40 hex digits of 20 random bytes.
#[derive(Clone, Debug)]
pub struct ApiKey(SecretString);

impl ApiKey {
    /// A new key.
    pub fn generate() -> Self {
        Self(format!("lk_{}", hex::encode(random::<20>())).into())
    }

    /// None unless `text` has the shape of a key.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("lk_")?;
        let hex = digits.len() == 40 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        hex.then(|| Self(text.into()))
    }

    /// What the database keeps.
    pub fn hash(&self) -> SecretHash {
        SecretHash::of(self.reveal())
    }

    /// The raw key, for the one time it is shown.
    pub fn reveal(&self) -> &str {
        self.0.expose_secret()
    }
}

/// An unguessable link token: the organization's bucket in two hex digits, so
/// that a look-up finds its shard, and 256 random bits.
#[derive(Clone, Debug)]
pub struct LinkToken {
    text: SecretString,
    bucket: i64,
}

impl LinkToken {
    /// A new token for an organization in `bucket`.
    pub fn generate(bucket: i64) -> Self {
        let random = URL_SAFE_NO_PAD.encode(random::<32>());
        Self {
            text: format!("{bucket:02x}{random}").into(),
            bucket,
        }
    }

    /// None unless `text` has the shape of a token.
    pub fn parse(text: &str) -> Option<Self> {
        let bucket = i64::from(u8::from_str_radix(text.get(..2)?, 16).ok()?);
        let random = URL_SAFE_NO_PAD.decode(text.get(2..)?).ok()?;
        (random.len() == 32 && bucket < 64).then(|| Self {
            text: text.into(),
            bucket,
        })
    }

    /// The bucket to look in.
    pub fn bucket(&self) -> i64 {
        self.bucket
    }

    /// What the database keeps.
    pub fn hash(&self) -> SecretHash {
        SecretHash::of(self.reveal())
    }

    /// The raw token, for the URL that carries it.
    pub fn reveal(&self) -> &str {
        self.text.expose_secret()
    }
}

/// Bytes from the operating system's generator.
///
/// A system without randomness cannot keep any promise this service makes, so
/// its failure ends the process.
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
    fn an_api_key_has_43_characters_and_hides_itself() {
        let key = ApiKey::generate();
        assert_eq!(key.reveal().len(), 43);
        assert!(ApiKey::parse(key.reveal()).is_some());
        assert!(!format!("{key:?}").contains(&key.reveal()[3..]));
        assert!(ApiKey::parse("lk_123").is_none());
    }

    #[test]
    fn a_link_token_knows_its_bucket() {
        let token = LinkToken::generate(63);
        let parsed = LinkToken::parse(token.reveal()).unwrap();
        assert_eq!(parsed.bucket(), 63);
        assert_eq!(parsed.hash(), token.hash());
        for text in ["", "zz", "3f", "ff0000", "é"] {
            assert!(LinkToken::parse(text).is_none(), "{text}");
        }
    }
}
