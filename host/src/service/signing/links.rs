//! Signing links on this host: one per signer, with an expiry time.

use std::time::Duration;

use sqlx::AnyConnection;

use crate::domain::envelope::{Envelope, Signer};
use crate::domain::token::LinkToken;
use crate::service::Core;
use crate::store::StoreError;
use crate::store::signers::{self, LinkTarget};

/// Lifetime of a link issued through the API.
pub const EMBED_LIFE: Duration = Duration::from_secs(3600);
/// Lifetime of a mailed link.
pub const MAIL_LIFE: Duration = Duration::from_secs(7 * 86_400);

/// Creates a link for one signer and returns its URL.
pub async fn make(
    core: &Core,
    connection: &mut AnyConnection,
    envelope: &Envelope,
    signer: &Signer,
    life: Duration,
) -> Result<String, StoreError> {
    let token = LinkToken::generate(envelope.org.bucket());
    let now = core.clock.now();
    let target = LinkTarget {
        org: envelope.org.clone(),
        envelope: envelope.id.clone(),
        position: signer.position,
        expires_at: now + life,
    };
    signers::insert_link(connection, &token, &target, now).await?;
    Ok(format!("{}/{}", core.config.signing_url(), token.reveal()))
}
