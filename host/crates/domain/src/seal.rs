//! Encryption of stored texts that can contain a credential: AES-256-GCM (NIST SP 800-38D)
//! under a key of this service, with a random nonce in front of the sealed bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use super::token::random;

/// Cipher that seals texts with its first key and opens them with any of its keys.
pub struct Sealer {
    current: LessSafeKey,
    others: Vec<LessSafeKey>,
}

impl Sealer {
    /// Creates a cipher with one key.
    pub fn new(key: &[u8; 32]) -> Option<Self> {
        Self::of_generations(&[*key])
    }

    /// Creates a cipher with several keys, the current one first. `None` without a key.
    pub fn of_generations(keys: &[[u8; 32]]) -> Option<Self> {
        let key = |key: &[u8; 32]| Some(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).ok()?));
        let (current, others) = keys.split_first()?;
        Some(Self {
            current: key(current)?,
            others: others.iter().map(key).collect::<Option<_>>()?,
        })
    }

    /// Encrypts `text`. It opens only with the same key and the same `context`.
    ///
    /// # Panics
    ///
    /// On a text of more than 64 GiB, the limit of the algorithm.
    #[expect(clippy::expect_used, reason = "answers are smaller than 64 GiB")]
    pub fn seal(&self, text: &str, context: &str) -> String {
        let nonce = random::<NONCE_LEN>();
        let mut bytes = text.as_bytes().to_vec();
        self.current
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(context.as_bytes()),
                &mut bytes,
            )
            .expect("shorter than 64 GiB");
        STANDARD.encode([nonce.as_slice(), &bytes].concat())
    }

    /// Decrypts a text; `None` if it was changed, or sealed with another key or context.
    pub fn open(&self, sealed: &str, context: &str) -> Option<String> {
        let mut keys = std::iter::once(&self.current).chain(&self.others);
        keys.find_map(|key| open(key, sealed, context))
    }

    /// Seals a text again with the current key. `None` if it has this key already, or if no key
    /// opens it.
    pub fn resealed(&self, sealed: &str, context: &str) -> Option<String> {
        if open(&self.current, sealed, context).is_some() {
            return None;
        }
        let text = self.open(sealed, context)?;
        Some(self.seal(&text, context))
    }
}

fn open(key: &LessSafeKey, sealed: &str, context: &str) -> Option<String> {
    let bytes = STANDARD.decode(sealed).ok()?;
    let (nonce, rest) = bytes.split_at_checked(NONCE_LEN)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let mut rest = rest.to_vec();
    let text = key
        .open_in_place(nonce, Aad::from(context.as_bytes()), &mut rest)
        .ok()?;
    String::from_utf8(text.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encrypted_text_opens_only_with_its_key_and_context() {
        let sealer = Sealer::new(&[7; 32]).unwrap();
        let sealed = sealer.seal("secret", "place");
        assert!(!sealed.contains("secret"));
        assert_ne!(sealed, sealer.seal("secret", "place"));
        assert_eq!(sealer.open(&sealed, "place").as_deref(), Some("secret"));
        assert_eq!(sealer.open(&sealed, "elsewhere"), None);
        assert_eq!(Sealer::new(&[8; 32]).unwrap().open(&sealed, "place"), None);
        assert_eq!(sealer.open("short", "place"), None);
    }

    #[test]
    fn a_text_of_an_older_key_is_re_encrypted_with_the_current_key() {
        let before = Sealer::new(&[7; 32]).unwrap();
        let now = Sealer::of_generations(&[[8; 32], [7; 32]]).unwrap();
        let sealed = before.seal("secret", "place");
        assert_eq!(now.open(&sealed, "place").as_deref(), Some("secret"));
        let resealed = now.resealed(&sealed, "place").unwrap();
        assert_eq!(now.resealed(&resealed, "place"), None);
        assert_eq!(before.open(&resealed, "place"), None);
        let after = Sealer::new(&[8; 32]).unwrap();
        assert_eq!(after.open(&resealed, "place").as_deref(), Some("secret"));
        assert_eq!(now.resealed(&sealed, "elsewhere"), None);
    }
}
