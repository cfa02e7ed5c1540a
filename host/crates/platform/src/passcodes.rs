//! Passcodes that senders choose for signers, as the database has them.

use holdfast_domain::at_rest::AtRestCipher;
use holdfast_domain::id::OrgId;

/// Ledger action for a right code.
pub const CONFIRMED: &str = "signer.access_confirmed";

/// Returns the context that binds the ciphertext of a passcode to its organization.
pub fn passcode_context(org: &str) -> String {
    format!("passcode {org}")
}

/// Encrypts a passcode for the database.
pub fn seal_passcode(cipher: &AtRestCipher, org: &OrgId, passcode: &str) -> String {
    cipher.encrypt(passcode, &passcode_context(org.as_str()))
}

/// Decrypts a stored passcode.
pub fn open_passcode(cipher: &AtRestCipher, org: &OrgId, sealed: &str) -> Option<String> {
    cipher.open(sealed, &passcode_context(org.as_str()))
}
