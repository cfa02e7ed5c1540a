//! What the payer of an envelope owes.

use sqlx::AnyConnection;

use super::StoreError;
use crate::domain::clock::Timestamp;
use crate::domain::envelope::Envelope;
use crate::domain::id::PaymentId;
use crate::domain::organization::PaymentSettings;

/// Notes what has to be paid before the envelope can be vaulted.
pub async fn insert(
    connection: &mut AnyConnection,
    envelope: &Envelope,
    payment: &PaymentSettings,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into payment (bucket, envelope_id, payment_id, org_id, amount_cents, currency,
             payer, connected_account, platform_fee_cents, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )
    .bind(envelope.org.bucket())
    .bind(envelope.id.as_str())
    .bind(PaymentId::new().as_str())
    .bind(envelope.org.as_str())
    .bind(cents(payment.amount_cents))
    .bind(&payment.currency)
    .bind(&payment.payer)
    .bind(payment.connected_account.as_deref())
    .bind(payment.platform_fee_cents.map(cents))
    .bind(now.to_string())
    .execute(connection)
    .await?;
    Ok(())
}

fn cents(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}
