//! Digests.

use sha2::{Digest, Sha256};

/// SHA-256 of the bytes, lower-case hex.
pub fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
