//! Signing links: our own, expiring, one per signer.

use std::time::Duration;

use sqlx::AnyConnection;

use crate::domain::envelope::{Envelope, Signer};
use crate::domain::token::LinkToken;
use crate::service::Core;
use crate::store::StoreError;
use crate::store::signers::{self, LinkTarget};

/// Life of a link that a partner fetched.
pub const EMBED_LIFE: Duration = Duration::from_secs(3600);
/// Life of a link that was mailed.
pub const MAIL_LIFE: Duration = Duration::from_secs(7 * 86_400);

/// Makes a link for one signer and returns its URL.
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
