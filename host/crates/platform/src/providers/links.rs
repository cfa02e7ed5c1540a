//! Signing links on this host: one per signer, with an expiry time.

use std::time::Duration;

use holdfast_store::SqlConnection;

use crate::Core;
use holdfast_domain::envelope::{Envelope, Recipient, Signer};
use holdfast_domain::token::LinkToken;
use holdfast_store::signers::{self, LinkTarget};
use holdfast_store::{StoreError, WriteTransaction, envelopes, organizations};

/// Lifetime of a link issued through the API.
pub const EMBED_LIFE: Duration = Duration::from_secs(3600);
/// Lifetime of a mailed link.
pub const MAIL_LIFE: Duration = Duration::from_secs(7 * 86_400);

/// Locks the envelope, and returns whether the signer is still the one on record. A request or a mail
/// may have been begun before another person took the place.
pub async fn is_current(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    signer: &Signer,
) -> Result<bool, StoreError> {
    envelopes::lock(tx, &envelope.org, &envelope.id).await?;
    let now = signers::list(tx, &envelope.org, &envelope.id).await?;
    // A text message with the link would otherwise go to a telephone that is no longer the signer's.
    let is_same = |now: &Signer| {
        now.position == signer.position && now.email == signer.email && now.phone == signer.phone
    };
    Ok(now.iter().any(is_same))
}

/// Creates a link for one signer and returns its URL, on the organization's own host if it has one.
pub async fn make(
    core: &Core,
    connection: &mut SqlConnection,
    envelope: &Envelope,
    signer: &Signer,
    life: Duration,
) -> Result<String, StoreError> {
    let base = base(core, connection, envelope).await?;
    let token = issue(core, connection, envelope, signer.position, life).await?;
    Ok(format!("{base}/{}", token.reveal()))
}

/// Creates a link for a signer in a widget and returns its URL. The widget's page accepts messages of the
/// installation's hosts only.
pub async fn make_embedded(
    core: &Core,
    connection: &mut SqlConnection,
    envelope: &Envelope,
    signer: &Signer,
) -> Result<String, StoreError> {
    let token = issue(core, connection, envelope, signer.position, EMBED_LIFE).await?;
    Ok(format!("{}/{}", core.config.signing_url(), token.reveal()))
}

/// Creates a link by which a recipient reads the document, and returns its URL.
pub async fn make_view(
    core: &Core,
    connection: &mut SqlConnection,
    envelope: &Envelope,
    recipient: &Recipient,
) -> Result<String, StoreError> {
    let base = base(core, connection, envelope).await?;
    let token = issue(core, connection, envelope, recipient.position, MAIL_LIFE).await?;
    Ok(format!("{base}/view/{}", token.reveal()))
}

/// Returns the address below which the links of an envelope are.
async fn base(
    core: &Core,
    connection: &mut SqlConnection,
    envelope: &Envelope,
) -> Result<String, StoreError> {
    let organization = organizations::get(connection, &envelope.org).await?;
    Ok(match organization {
        Some(organization) => core.config.link_url(&organization.settings),
        None => core.config.signing_url(),
    })
}

async fn issue(
    core: &Core,
    connection: &mut SqlConnection,
    envelope: &Envelope,
    position: i64,
    life: Duration,
) -> Result<LinkToken, StoreError> {
    // The token carries the bucket, so a visit asks one bucket of the database only.
    let token = LinkToken::generate(envelope.org.bucket());
    let now = core.clock.now();
    let target = LinkTarget {
        org: envelope.org.clone(),
        envelope: envelope.id.clone(),
        position,
        expires_at: now + life,
    };
    signers::insert_link(connection, &token, &target, now).await?;

    Ok(token)
}
