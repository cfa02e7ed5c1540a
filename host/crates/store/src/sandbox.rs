//! Payments of the development sandbox.

use crate::SqlConnection;

use super::row::{query_rows, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::OrgId;

/// Payment that the sandbox collects.
#[derive(Clone, Debug)]
pub struct SandboxIntent {
    pub id: String,
    pub org: OrgId,
    /// Payment id of the request; it makes repeated requests idempotent.
    pub payment: String,
    /// Amount in minor units.
    pub amount: i64,
    /// Currency code (ISO 4217).
    pub currency: String,
    pub paid: bool,
}

/// Adds a payment, or returns the existing one for the same payment id.
pub async fn insert(
    tx: &mut WriteTransaction,
    intent: SandboxIntent,
    now: Timestamp,
) -> Result<SandboxIntent, StoreError> {
    // As at a real provider, the payment id is the idempotency key.
    sqlx::query(
        "insert into sandbox_intent (bucket, intent_id, org_id, payment_id, amount, currency,
             status, created_at)
         values ($1, $2, $3, $4, $5, $6, 'requires_payment', $7)
         on conflict (bucket, org_id, payment_id) do nothing",
    )
    .bind(intent.org.bucket())
    .bind(&intent.id)
    .bind(intent.org.as_str())
    .bind(&intent.payment)
    .bind(intent.amount)
    .bind(&intent.currency)
    .bind(now.to_string())
    .execute(&mut **tx)
    .await?;

    // Reads back, because on a conflict the existing row counts and not the new one.
    query_rows(
        "select {columns} from sandbox_intent where bucket = $1 and org_id = $2 and payment_id = $3",
    )
    .bind_org(&intent.org)
    .bind(&intent.payment)
    .fetch_one(tx)
    .await
}

/// Returns the payment with this id.
pub async fn get(
    connection: &mut SqlConnection,
    bucket: i64,
    id: &str,
) -> Result<Option<SandboxIntent>, StoreError> {
    // The payer's page knows only the id, which contains the bucket.
    query_rows("select {columns} from sandbox_intent where bucket = $1 and intent_id = $2")
        .bind(bucket)
        .bind(id)
        .fetch_optional(connection)
        .await
}

/// Marks a payment as paid. Returns false if it was paid before.
pub async fn set_paid(
    tx: &mut WriteTransaction,
    intent: &SandboxIntent,
) -> Result<bool, StoreError> {
    sqlx::query(
        "update sandbox_intent set status = 'paid'
         where bucket = $1 and intent_id = $2 and status <> 'paid'",
    )
    .bind(intent.org.bucket())
    .bind(&intent.id)
    .changes_row(tx)
    .await
}

table_row! {
    SandboxIntent of "sandbox_intent" by "intent_id" also "status" {
        id: text("intent_id"),
        org: parsed("org_id", OrgId::parse),
        payment: text("payment_id"),
        amount: number("amount"),
        currency: text("currency"),
        paid: |row| row.text("status")? == "paid",
    }
}
