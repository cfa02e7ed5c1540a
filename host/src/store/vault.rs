//! Vault intents, stored evaluations and releases.

use serde_json::Value;

use super::row::Columns;
use super::{StoreError, Tx};
use crate::domain::clock::Timestamp;
use crate::domain::envelope::Envelope;

/// The decision to vault an envelope, made once.
#[derive(Clone, Debug)]
pub struct Intent {
    /// `vault_in_signed` or `vault_in_upload`.
    pub trigger: String,
    pub requested_by: String,
    /// The only time the stored files may contain.
    pub frozen_at: Timestamp,
    /// How the installation calls itself in them.
    pub issuer: String,
    /// The last ledger entry the custody record tells of.
    pub ledger_sequence: i64,
}

/// Records the intent, or finds the one that was recorded before.
pub async fn intend(
    tx: &mut Tx,
    envelope: &Envelope,
    intent: &Intent,
) -> Result<Intent, StoreError> {
    sqlx::query(
        "insert into vault_intent (bucket, envelope_id, org_id, trigger_name, requested_by,
             frozen_at, ledger_sequence, issuer)
         values ($1, $2, $3, $4, $5, $6, $7, $8)
         on conflict (bucket, envelope_id) do nothing",
    )
    .bind(envelope.org.bucket())
    .bind(envelope.id.as_str())
    .bind(envelope.org.as_str())
    .bind(&intent.trigger)
    .bind(&intent.requested_by)
    .bind(intent.frozen_at.to_string())
    .bind(intent.ledger_sequence)
    .bind(&intent.issuer)
    .execute(&mut **tx)
    .await?;
    let row = sqlx::query("select * from vault_intent where bucket = $1 and envelope_id = $2")
        .bind(envelope.org.bucket())
        .bind(envelope.id.as_str())
        .fetch_one(&mut **tx)
        .await?;
    let columns = Columns {
        row: &row,
        table: "vault_intent",
        id: "envelope_id",
    };
    Ok(Intent {
        trigger: columns.text("trigger_name")?,
        requested_by: columns.text("requested_by")?,
        frozen_at: columns.time("frozen_at")?,
        issuer: columns
            .optional_text("issuer")?
            .unwrap_or_else(|| intent.issuer.clone()),
        ledger_sequence: columns.number("ledger_sequence")?,
    })
}

/// Notes that the pipeline has ended.
pub async fn finish_intent(
    tx: &mut Tx,
    envelope: &Envelope,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "update vault_intent set finished_at = $3, last_error = null
         where bucket = $1 and envelope_id = $2",
    )
    .bind(envelope.org.bucket())
    .bind(envelope.id.as_str())
    .bind(now.to_string())
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Keeps the record a certificate was made from.
pub async fn insert_evaluation(
    tx: &mut Tx,
    envelope: &Envelope,
    facts: &Value,
    component: &Value,
    at: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into evaluation (bucket, envelope_id, org_id, facts, component, evaluated_at)
         values ($1, $2, $3, $4, $5, $6)",
    )
    .bind(envelope.org.bucket())
    .bind(envelope.id.as_str())
    .bind(envelope.org.as_str())
    .bind(facts.to_string())
    .bind(component.to_string())
    .bind(at.to_string())
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Keeps the release form as it was signed.
pub async fn insert_release(
    tx: &mut Tx,
    envelope: &Envelope,
    form: &Value,
    at: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into vault_release (bucket, envelope_id, org_id, released_at, form)
         values ($1, $2, $3, $4, $5)",
    )
    .bind(envelope.org.bucket())
    .bind(envelope.id.as_str())
    .bind(envelope.org.as_str())
    .bind(at.to_string())
    .bind(form.to_string())
    .execute(&mut **tx)
    .await?;
    Ok(())
}
