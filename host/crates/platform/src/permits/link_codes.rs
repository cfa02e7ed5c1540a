//! Links that are keyed hashes of the linked object. They are not stored.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use super::double_pledge;
use crate::{Core, ServiceError};
use holdfast_domain::hash::hmac_sha256;

/// Returns the last part of a link. It is a keyed hash of the linked object, and is not stored.
pub fn link_code(core: &Core, kind: &str, id: &str) -> Result<String, ServiceError> {
    let key = double_pledge::key(core)?;
    let code = hmac_sha256(key, &[kind.as_bytes(), b"\n", id.as_bytes()]);
    Ok(URL_SAFE_NO_PAD.encode(code))
}

/// Whether `given` is the last part of a link.
pub fn is_link(core: &Core, kind: &str, id: &str, given: &str) -> Result<bool, ServiceError> {
    // Compared by hashes: the time that it takes must not tell how much of a guess is right.
    let right = link_code(core, kind, id)?;
    Ok(Sha256::digest(right) == Sha256::digest(given))
}
