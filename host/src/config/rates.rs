//! `[rate_limits]`.

use serde::Deserialize;

/// Requests a minute on this node, by credential; 0 is no limit. API keys have limits of
/// their own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RateLimitSettings {
    /// Of one signing link: the form, its pages, and saves.
    pub signing_link: u32,
    /// Of one signing link for the signer's copy, which is as large as the document.
    pub copies: u32,
    /// Of one web-app token.
    pub web_token: u32,
    /// Of one session of the field builder.
    pub builder_session: u32,
    /// Uploads of components of one organization.
    pub component_uploads: u32,
    /// Of one address for `/ledger/…`.
    pub ledger: u32,
    /// Of one address with links, tokens and sessions of any kind.
    pub address: u32,
}

impl Default for RateLimitSettings {
    fn default() -> Self {
        Self {
            signing_link: 1_200,
            copies: 120,
            web_token: 6_000,
            builder_session: 1_200,
            component_uploads: 60,
            ledger: 6_000,
            address: 60_000,
        }
    }
}
