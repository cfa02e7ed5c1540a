//! How an envelope's evidence came to be.
//!
//! The facts of the certificate carry it as attributes `provenance.<member>`, each
//! with JSON as its value. The default certificate writer copies them into the
//! certificate's `provenance` object. The ledger entry `compliance.evaluated` holds
//! the same facts, so that a verification writes the same certificate again.

use serde_json::Value;

/// Prefix of the attributes that the certificate writer copies.
const PREFIX: &str = "provenance.";

/// The members of the certificate's `provenance` object, in the order of their
/// being noted.
#[derive(Default)]
pub(super) struct Provenance(Vec<(String, String)>);

impl Provenance {
    /// Adds a member. Null adds none: a certificate states only what there is.
    pub(super) fn note(&mut self, member: &str, value: &Value) {
        if !value.is_null() {
            self.0
                .push((format!("{PREFIX}{member}"), value.to_string()));
        }
    }

    /// The members as attributes of the facts.
    pub(super) fn attributes(self) -> Vec<(String, String)> {
        self.0
    }
}
