//! The form of a release from the vault.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What becomes of the authoritative copy: a file that the recipient keeps, or a paper original. That is
/// printed from a file that can be downloaded completely once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseMedium {
    #[default]
    Electronic,
    Paper,
}

impl ReleaseMedium {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Body of `POST /partner/envelopes/:id/vault-out`: the release form.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "recipient_name": "Robin Park", "recipient_organization": "First Example Bank",
    "recipient_email": "robin.park@bank.example", "purpose_of_release": "Assignment of the contract",
    "acknowledge_authoritative_copy": true, "acknowledge_chain_of_custody": true,
    "authorized_signature": "Jordan Maple",
}]))]
pub struct ReleaseForm {
    #[schemars(length(min = 1, max = 500))]
    pub recipient_name: String,
    #[schemars(length(min = 1, max = 500))]
    pub recipient_organization: String,
    #[schemars(email)]
    pub recipient_email: String,
    #[schemars(length(min = 1, max = 2000))]
    pub purpose_of_release: String,
    /// Must be `true`.
    pub acknowledge_authoritative_copy: bool,
    /// Must be `true`.
    pub acknowledge_chain_of_custody: bool,
    #[schemars(length(min = 1, max = 500))]
    pub authorized_signature: String,
    #[serde(default, skip_serializing_if = "ReleaseMedium::is_default")]
    pub medium: ReleaseMedium,
}

impl ReleaseForm {
    /// Whether another form names the same recipient and purpose. Another person may sign it.
    pub fn is_for_the_same(&self, other: &Self) -> bool {
        let same = |one: &str, other: &str| one.trim() == other.trim();
        same(&self.recipient_name, &other.recipient_name)
            && same(&self.recipient_organization, &other.recipient_organization)
            && same(&self.purpose_of_release, &other.purpose_of_release)
            && self
                .recipient_email
                .trim()
                .eq_ignore_ascii_case(other.recipient_email.trim())
    }
}
