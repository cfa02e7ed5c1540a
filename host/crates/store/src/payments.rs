//! Payments of envelopes and their status.

use crate::SqlConnection;

use super::claims::RowClaim;
use super::row::{OwnedEnvelope, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{Store, StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::id::{EnvelopeId, OrgId, PaymentId};
use holdfast_domain::organization::PaymentSettings;

/// Payment that must be made before an envelope can be vaulted.
#[derive(Clone, Debug)]
pub struct EnvelopePayment {
    pub id: PaymentId,
    pub org: OrgId,
    pub envelope: EnvelopeId,
    pub asked: PaymentSettings,
    /// Whether the envelope itself requested the payment, and not its organization's settings.
    pub own: bool,
    /// Number of times it was started at a provider.
    pub begun: i64,
    /// Provider instance and the payment's id there, once the payer was asked to pay.
    pub intent: Option<(String, String)>,
}

/// Adds the payment required before the envelope can be vaulted.
pub async fn insert(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    payment: &PaymentSettings,
    own: bool,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into payment (bucket, envelope_id, payment_id, org_id, amount_cents, currency,
             payer, connected_account, platform_fee_cents, own, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(PaymentId::new().as_str())
    .bind(envelope.org.as_str())
    .bind(cents(payment.amount_cents))
    .bind(&payment.currency)
    .bind(&payment.payer)
    .bind(payment.connected_account.as_deref())
    .bind(payment.platform_fee_cents.map(cents))
    .bind(i64::from(own))
    .bind(now.to_string())
    .run(connection)
    .await
}

/// Removes the payment of an envelope that was not sent.
pub async fn remove(connection: &mut SqlConnection, envelope: &Envelope) -> Result<(), StoreError> {
    sqlx::query("delete from payment where bucket = $1 and envelope_id = $2")
        .bind_key(&envelope.org, envelope.id.as_str())
        .run(connection)
        .await
}

fn cents(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

/// Returns an envelope's payment.
pub async fn get(
    connection: &mut SqlConnection,
    org: &OrgId,
    envelope: &EnvelopeId,
) -> Result<Option<EnvelopePayment>, StoreError> {
    query_rows(
        "select {columns} from payment where bucket = $1 and envelope_id = $2 and org_id = $3",
    )
    .bind_key(org, envelope.as_str())
    .bind(org.as_str())
    .fetch_optional(connection)
    .await
}

/// Returns the payment with this id at a provider.
pub async fn by_intent(
    connection: &mut SqlConnection,
    instance: &str,
    intent: &str,
) -> Result<Option<EnvelopePayment>, StoreError> {
    // A callback names the payment at its provider only, and ids of two instances may be equal.
    query_rows("select {columns} from payment where instance = $1 and intent_id = $2")
        .bind(instance)
        .bind(intent)
        .fetch_optional(connection)
        .await
}

table_row! {
    EnvelopePayment of "payment" by "payment_id"
        also "amount_cents", "currency", "connected_account", "platform_fee_cents", "payer", "instance", "intent_id"
    {
        id: parsed("payment_id", PaymentId::parse),
        org: parsed("org_id", OrgId::parse),
        envelope: parsed("envelope_id", EnvelopeId::parse),
        asked: |row| PaymentSettings {
            amount_cents: amount(row.number("amount_cents")?),
            currency: row.text("currency")?,
            connected_account: row.optional_text("connected_account")?,
            platform_fee_cents: row.optional_number("platform_fee_cents")?.map(amount),
            payer: row.text("payer")?,
        },
        own: flag("own"),
        begun: number("begun"),
        intent: |row| row.optional_text("instance")?.zip(row.optional_text("intent_id")?),
    }
}

/// Returns a stored amount, which is never negative.
fn amount(cents: i64) -> u64 {
    u64::try_from(cents).unwrap_or_default()
}

/// Records where the payment is collected, replacing an earlier provider intent. Returns false if a
/// concurrent call was faster.
pub async fn set_intent(
    tx: &mut WriteTransaction,
    payment: &EnvelopePayment,
    instance: &str,
    intent: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    // `begun` is compared and counted up: of two concurrent
    // starts one counts, and none after the payment was made.
    sqlx::query(
        "update payment set instance = $3, intent_id = $4, looked_at = $5, begun_at = $5,
             begun = begun + 1
         where bucket = $1 and envelope_id = $2 and begun = $6 and paid_at is null",
    )
    .bind_key(&payment.org, payment.envelope.as_str())
    .bind(instance)
    .bind(intent)
    .bind(now.to_string())
    .bind(payment.begun)
    .changes_row(tx)
    .await
}

/// Records that it was paid. Returns false if that was recorded already.
pub async fn set_paid(
    tx: &mut WriteTransaction,
    payment: &EnvelopePayment,
    now: Timestamp,
) -> Result<bool, StoreError> {
    // Callback and poll may report the same payment: the first report settles it.
    sqlx::query(
        "update payment set paid_at = $3
         where bucket = $1 and envelope_id = $2 and paid_at is null",
    )
    .bind_key(&payment.org, payment.envelope.as_str())
    .bind(now.to_string())
    .changes_row(tx)
    .await
}

/// Claims up to `limit` unpaid payments that were started after `begun` and not polled since
/// `since`, the longest unpolled first. The claim itself counts as a poll.
pub async fn claim(
    store: &Store,
    begun: Timestamp,
    since: Timestamp,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<OwnedEnvelope>, StoreError> {
    // A payer who never finishes must not be polled for ever, hence the bound on `begun_at`.
    let due = RowClaim {
        table: "payment",
        id: "envelope_id",
        since: "looked_at",
        condition: "intent_id is not null and paid_at is null and begun_at > $3",
        set: "looked_at = $4",
        texts: &[begun.to_string(), now.to_string()],
    };

    due.take(store, since, limit).await
}
