//! SHA-256 and HMAC-SHA256.

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

/// Returns the SHA-256 of the bytes in lower-case hex.
pub fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Returns the SHA-256 of a value's canonical JSON (RFC 8785) in lower-case hex.
pub fn canonical_sha256(value: &serde_json::Value) -> String {
    // Canonical JSON exists for every value without NaN, and JSON has none.
    sha256(&serde_json_canonicalizer::to_vec(value).unwrap_or_default())
}

/// Returns the HMAC-SHA256 (RFC 2104) of the concatenated parts.
#[expect(clippy::expect_used, reason = "HMAC takes a key of any length")]
pub fn hmac_sha256(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(key).expect("any key fits");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}
