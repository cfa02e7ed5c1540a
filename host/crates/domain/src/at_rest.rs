//! Encryption of stored texts that can contain a credential: AES-256-GCM (NIST SP 800-38D)
//! under a key of this service, with a random nonce in front of the encrypted bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use super::token::random;

/// Cipher that encrypts texts with its first key and decrypts them with any of its keys.
pub struct AtRestCipher {
    current: LessSafeKey,
    others: Vec<LessSafeKey>,
}

impl AtRestCipher {
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
    pub fn encrypt(&self, text: &str, context: &str) -> String {
        // Nodes share the key but no counter, so the nonce is random. A repeated nonce would break GCM.
        let nonce = random::<NONCE_LEN>();
        let mut bytes = text.as_bytes().to_vec();
        self.current
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                // The context names the place of the text, so a text that is
                // copied to another row does not open.
                Aad::from(context.as_bytes()),
                &mut bytes,
            )
            .expect("shorter than 64 GiB");

        STANDARD.encode([nonce.as_slice(), &bytes].concat())
    }

    /// Decrypts a text; `None` if it was changed, or encrypted with another key or context.
    pub fn open(&self, encrypted: &str, context: &str) -> Option<String> {
        let mut keys = std::iter::once(&self.current).chain(&self.others);
        keys.find_map(|key| open(key, encrypted, context))
    }

    /// Encrypts a text again with the current key. `None` if it has this key already, or if no key
    /// opens it.
    pub fn reencrypted(&self, encrypted: &str, context: &str) -> Option<String> {
        if open(&self.current, encrypted, context).is_some() {
            return None;
        }
        let text = self.open(encrypted, context)?;
        Some(self.encrypt(&text, context))
    }
}

fn open(key: &LessSafeKey, encrypted: &str, context: &str) -> Option<String> {
    let bytes = STANDARD.decode(encrypted).ok()?;
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
        let cipher = AtRestCipher::new(&[7; 32]).unwrap();
        let encrypted = cipher.encrypt("secret", "place");
        assert!(!encrypted.contains("secret"));
        assert_ne!(encrypted, cipher.encrypt("secret", "place"));
        assert_eq!(cipher.open(&encrypted, "place").as_deref(), Some("secret"));
        assert_eq!(cipher.open(&encrypted, "elsewhere"), None);
        assert_eq!(
            AtRestCipher::new(&[8; 32])
                .unwrap()
                .open(&encrypted, "place"),
            None
        );
        assert_eq!(cipher.open("short", "place"), None);
    }

    #[test]
    fn a_text_of_an_older_key_is_re_encrypted_with_the_current_key() {
        let before = AtRestCipher::new(&[7; 32]).unwrap();
        let now = AtRestCipher::of_generations(&[[8; 32], [7; 32]]).unwrap();
        let encrypted = before.encrypt("secret", "place");
        assert_eq!(now.open(&encrypted, "place").as_deref(), Some("secret"));

        let resealed = now.reencrypted(&encrypted, "place").unwrap();
        assert_eq!(now.reencrypted(&resealed, "place"), None);
        assert_eq!(before.open(&resealed, "place"), None);

        let after = AtRestCipher::new(&[8; 32]).unwrap();
        assert_eq!(after.open(&resealed, "place").as_deref(), Some("secret"));
        assert_eq!(now.reencrypted(&encrypted, "elsewhere"), None);
    }
}
