//! `[rate_limits]`.

use schemars::JsonSchema;
use serde::Deserialize;

/// Requests per minute on this node, by credential;
/// 0 means unlimited. API keys have separate limits.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RateLimitSettings {
    /// One signing link: the form, its pages, and saves.
    pub signing_link: u32,
    /// Downloads of documents and uploads of files through one signing link.
    pub copies: u32,
    /// One web-app token.
    pub web_token: u32,
    /// One field builder session.
    pub builder_session: u32,
    /// Component uploads of one organization.
    pub component_uploads: u32,
    /// Requests to `/ledger/…` from one client address.
    pub ledger: u32,
    /// All requests with links, tokens and sessions from one client address.
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
