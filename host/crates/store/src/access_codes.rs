//! Codes that signers enter before the document opens, and their attempts.

use crate::SqlConnection;

use super::row::{query_rows, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, Signer};

/// State of one signer's codes. A person who replaces a signer starts with the default.
#[derive(Clone, Debug, Default)]
pub struct CodeState {
    /// The code that was sent last, encrypted, and when.
    pub sent: Option<(String, Timestamp)>,
    /// Number of codes in the present window, and its begin.
    pub sends: i64,
    pub first_sent_at: Option<Timestamp>,
    /// Wrong entries of all networks since the last right one or the last lock for all.
    pub failures: i64,
    /// Locks for all networks since the last right entry.
    pub locks: i64,
    pub locked_until: Option<Timestamp>,
}

/// Wrong entries from one network.
#[derive(Clone, Debug, Default)]
pub struct NetworkFailures {
    /// Wrong entries since the network's last lock.
    pub failures: i64,
    /// Locks since the last right entry.
    pub locks: i64,
    pub locked_until: Option<Timestamp>,
}

pub async fn failures_of(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    signer: &Signer,
    network: &str,
) -> Result<NetworkFailures, StoreError> {
    // The address is part of the condition: a person who replaces
    // the signer starts without the failures of the one before.
    let found = query_rows(
        "select {columns} from access_code_failure
         where bucket = $1 and org_id = $2 and envelope_id = $3 and position = $4 and email = $5
             and network = $6",
    )
    .bind_org(&envelope.org)
    .bind(envelope.id.as_str())
    .bind(signer.position)
    .bind(&signer.email)
    .bind(network)
    .fetch_optional(connection)
    .await?;

    Ok(found.unwrap_or_default())
}

table_row! {
    NetworkFailures of "access_code_failure" by "envelope_id" also "envelope_id" {
        failures: number("failures"),
        locks: number("locks"),
        locked_until: optional_time("locked_until"),
    }
}

pub async fn put_failures(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    signer: &Signer,
    network: &str,
    state: &NetworkFailures,
) -> Result<(), StoreError> {
    // The key has no address, so a new person takes over the row of the one before in this place.
    sqlx::query(
        "insert into access_code_failure (bucket, envelope_id, position, org_id, email, network, failures,
             locks, locked_until)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         on conflict (bucket, envelope_id, position, network) do update set
             email = $5, failures = $7, locks = $8, locked_until = $9",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(signer.position)
    .bind(envelope.org.as_str())
    .bind(&signer.email)
    .bind(network)
    .bind(state.failures)
    .bind(state.locks)
    .bind(state.locked_until.map(|at| at.to_string()))
    .run(tx)
    .await
}

/// Deletes the wrong entries of all networks, after a right one.
pub async fn forget_failures(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    signer: &Signer,
) -> Result<(), StoreError> {
    // Locks grow until the next right entry, which ends those of all networks.
    sqlx::query(
        "delete from access_code_failure
         where bucket = $1 and org_id = $2 and envelope_id = $3 and position = $4",
    )
    .bind_org(&envelope.org)
    .bind(envelope.id.as_str())
    .bind(signer.position)
    .run(tx)
    .await
}

pub async fn get(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    signer: &Signer,
) -> Result<CodeState, StoreError> {
    let found = query_rows(
        "select {columns} from access_code
         where bucket = $1 and org_id = $2 and envelope_id = $3 and position = $4 and email = $5",
    )
    .bind_org(&envelope.org)
    .bind(envelope.id.as_str())
    .bind(signer.position)
    .bind(&signer.email)
    .fetch_optional(connection)
    .await?;

    // Usually there is none: the row is written with the first code or the first wrong entry.
    Ok(found.unwrap_or_default())
}

table_row! {
    CodeState of "access_code" by "envelope_id" also "envelope_id", "code", "sent_at" {
        sent: |row| row.optional_text("code")?.zip(row.optional_time("sent_at")?),
        sends: number("sends"),
        first_sent_at: optional_time("first_sent_at"),
        failures: number("failures"),
        locks: number("locks"),
        locked_until: optional_time("locked_until"),
    }
}

pub async fn put(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    signer: &Signer,
    state: &CodeState,
) -> Result<(), StoreError> {
    let code = state.sent.as_ref().map(|(code, _)| code.as_str());
    let sent_at = state.sent.as_ref().map(|(_, at)| at.to_string());
    sqlx::query(
        "insert into access_code (bucket, envelope_id, position, org_id, email, code, sent_at, sends,
             first_sent_at, failures, locked_until, locks)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
         on conflict (bucket, envelope_id, position) do update set
             email = $5, code = $6, sent_at = $7, sends = $8, first_sent_at = $9, failures = $10,
             locked_until = $11, locks = $12",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(signer.position)
    .bind(envelope.org.as_str())
    .bind(&signer.email)
    // Encrypted by the caller: a copy of the database opens no document.
    .bind(code)
    .bind(sent_at)
    .bind(state.sends)
    .bind(state.first_sent_at.map(|at| at.to_string()))
    .bind(state.failures)
    .bind(state.locked_until.map(|at| at.to_string()))
    .bind(state.locks)
    .run(tx)
    .await
}
