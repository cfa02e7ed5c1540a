//! Records a result: session, price, ledger entry and event, in one transaction.

use serde_json::json;

use super::is_result;
use crate::events;
use crate::sandbox;
use crate::signers::signer_view;
use crate::{Core, ServiceError};
use holdfast_domain::envelope::{Envelope, Signer};
use holdfast_domain::event::EventType;
use holdfast_domain::identity::{KbaSession, KbaStatus};
use holdfast_store::{envelopes, kba};

/// Price of a signer's first pass in a calendar month (specification, "Limits").
const PRICE_CENTS: i64 = 400;

/// Ledger action of a result (specification, "Other timeline and audit names"). The event is
/// `kba.verified`.
pub(super) const ACTION: &str = "envelope.kba_verified";

/// Ends a session. If several callers do, only the first records the result.
pub(super) async fn record(
    core: &Core,
    envelope: &Envelope,
    signer: &Signer,
    session: &KbaSession,
    status: KbaStatus,
    provider_session: Option<&str>,
) -> Result<(), ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let envelope = envelopes::lock(&mut tx, &envelope.org, &envelope.id).await?;
    let envelope = envelope.ok_or(ServiceError::NotFound("Envelope"))?;
    let first = status == KbaStatus::Passed
        && kba::bill(&mut tx, session, &signer.name, &now.month()).await?;
    let price = if first { PRICE_CENTS } else { 0 };

    // Ended by another request: dropping the transaction also takes back the bill.
    if !kba::end(&mut tx, session, status, provider_session, price, now).await? {
        return Ok(());
    }

    // A session that ended without a result states nothing about the signer.
    if is_result(status) {
        let who = signer_view(signer);
        let mut details = json!({
            "kba_id": session.id,
            "signer": who,
            "status": status,
            "provider_instance": session.instance,
            "provider_session_id": provider_session,
            "ip_address": session.ip,
            "price_cents": price,
        });

        sandbox::mark(&mut details, &session.instance);
        let actor = format!("signer:{}", signer.email);
        events::record(&mut tx, &envelope, &actor, ACTION, details, now).await?;
        let data = json!({ "signer": who, "status": status });
        events::emit(&mut tx, &envelope, EventType::KbaVerified, data, now).await?;
    }

    Ok(tx.commit().await?)
}
