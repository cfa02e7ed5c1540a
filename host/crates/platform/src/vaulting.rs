//! Requests to vault an envelope.

use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::id::IntentId;
use holdfast_domain::job::VaultEnvelope;
use holdfast_store::{StoreError, WriteTransaction, jobs};

/// Queues vaulting of an envelope at `run_at`: resumes `intent`, or starts from a signed
/// envelope. A waiting job for the envelope is reused.
pub async fn queue(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    intent: Option<&IntentId>,
    run_at: Timestamp,
) -> Result<(), StoreError> {
    let job = VaultEnvelope {
        envelope: envelope.id.clone(),
        intent: intent.cloned(),
    };
    jobs::insert_or_revive(tx, &envelope.org, &job, envelope.id.as_str(), run_at).await
}
