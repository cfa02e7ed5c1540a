//! Provenance of an envelope's evidence.
//!
//! The certificate's facts carry it as attributes `provenance.<member>` with JSON values.
//! The default certificate writer copies them into the certificate's `provenance` object.
//! The ledger entry `compliance.evaluated` contains the same facts, so that a verifier can
//! regenerate the certificate.

use serde_json::Value;

/// Prefix of the attributes that the certificate writer copies.
const PREFIX: &str = "provenance.";

/// Members of the certificate's `provenance` object, in the order they were added.
#[derive(Default)]
pub(super) struct ProvenanceAttributes(Vec<(String, String)>);

impl ProvenanceAttributes {
    /// Adds a member. Null is skipped: a certificate states only facts that exist.
    pub(super) fn note(&mut self, member: &str, value: &Value) {
        if !value.is_null() {
            self.0
                .push((format!("{PREFIX}{member}"), value.to_string()));
        }
    }

    /// Returns the members as attributes of the facts.
    pub(super) fn attributes(self) -> Vec<(String, String)> {
        self.0
    }
}
