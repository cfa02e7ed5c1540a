//! Binds a pass to the browser in which the signer proved their identity. The pass counts for
//! everyone with the link, because a signer may continue on another device. A visitor with another
//! browser or another link did not prove anything, and that is recorded.

use serde_json::json;

use crate::events;
use crate::room::form::RequestOrigin;
use crate::signers::signer_view;
use crate::{Core, ServiceError};
use holdfast_domain::envelope::{Envelope, Signer};
use holdfast_domain::token::LinkToken;
use holdfast_store::{envelopes, kba};

/// Ledger action for an unknown browser.
const REBOUND: &str = "identity.rebound";

/// Recognizes the browser of a signer who has passed. Returns the cookie value that a new browser
/// has to be given.
pub async fn recognise(
    core: &Core,
    envelope: &Envelope,
    signer: &Signer,
    cookie: Option<&str>,
    origin: &RequestOrigin,
) -> Result<Option<LinkToken>, ServiceError> {
    let cookie = cookie.and_then(LinkToken::parse);
    // Without a lock first: most visits come from a known browser.
    let mut connection = core.store.read().await?;
    let known = kba::browsers(&mut connection, envelope, signer).await?;
    drop(connection);

    if is_known(&known, cookie.as_ref(), origin) {
        return Ok(None);
    }

    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let envelope = envelopes::lock(&mut tx, &envelope.org, &envelope.id).await?;

    // Checked again under the envelope's lock, so that parallel first requests record one browser.
    let envelope = envelope.ok_or(ServiceError::NotFound("Envelope"))?;
    let known = kba::browsers(&mut tx, &envelope, signer).await?;
    if is_known(&known, cookie.as_ref(), origin) {
        return Ok(None);
    }

    let given = LinkToken::generate(envelope.org.bucket());
    let browser = kba::SignerBrowser {
        hash: given.hash(),
        ip: origin.ip.clone(),
        // The first browser is the one in which the signer passed.
        rebound_at: (!known.is_empty()).then_some(now),
    };
    kba::add_browser(&mut tx, &envelope, signer, &browser).await?;

    if browser.rebound_at.is_some() {
        let details = json!({
            "signer": signer_view(signer),
            "ip_address": origin.ip,
            "user_agent": origin.user_agent,
        });
        let actor = format!("signer:{}", signer.email);
        events::record(&mut tx, &envelope, &actor, REBOUND, details, now).await?;
    }

    tx.commit().await?;
    Ok(Some(given))
}

/// Returns whether the browser is recorded. One that keeps no cookies is recorded once per address.
fn is_known(
    known: &[kba::SignerBrowser],
    cookie: Option<&LinkToken>,
    origin: &RequestOrigin,
) -> bool {
    let by_cookie = cookie.is_some_and(|cookie| {
        let hash = cookie.hash();
        known.iter().any(|browser| browser.hash == hash)
    });
    // A browser that keeps no cookies would otherwise add an entry with every picture of a page.
    let recorded = known
        .iter()
        .any(|browser| browser.rebound_at.is_some() && browser.ip == origin.ip);
    by_cookie || recorded
}
