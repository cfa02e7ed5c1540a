//! Vault intents and their steps, stored evaluations and releases.

use serde_json::Value;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

use super::envelopes::one_row;
use super::row::Columns;
use super::{StoreError, Tx};
use crate::domain::clock::Timestamp;
use crate::domain::envelope::{Envelope, StoredFile};
use crate::domain::id::{EnvelopeId, IntentId, OrgId};

/// The decision to vault an envelope, made once.
#[derive(Clone, Debug)]
pub struct Intent {
    pub id: IntentId,
    /// `vault_in_signed` or `vault_in_upload`.
    pub trigger: String,
    pub requested_by: String,
    /// The only time the stored files may contain.
    pub frozen_at: Timestamp,
    /// How the installation calls itself in them.
    pub issuer: String,
    /// The last ledger entry the custody record tells of.
    pub ledger_sequence: i64,
    /// The signed head of the log of all ledgers, as a note.
    pub checkpoint: Option<String>,
}

/// Why the pipeline of an envelope does not get on.
#[derive(Clone, Debug)]
pub struct Failure {
    pub step: String,
    pub message: String,
    pub at: Timestamp,
    /// In a row.
    pub count: i64,
}

/// Records the intent, or finds the one that was recorded before.
pub async fn intend(
    tx: &mut Tx,
    envelope: &Envelope,
    intent: &Intent,
) -> Result<Intent, StoreError> {
    sqlx::query(
        "insert into vault_intent (bucket, envelope_id, org_id, intent_id, trigger_name,
             requested_by, frozen_at, ledger_sequence, issuer, checkpoint)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
         on conflict (bucket, envelope_id) do nothing",
    )
    .bind(envelope.org.bucket())
    .bind(envelope.id.as_str())
    .bind(envelope.org.as_str())
    .bind(intent.id.as_str())
    .bind(&intent.trigger)
    .bind(&intent.requested_by)
    .bind(intent.frozen_at.to_string())
    .bind(intent.ledger_sequence)
    .bind(&intent.issuer)
    .bind(intent.checkpoint.as_deref())
    .execute(&mut **tx)
    .await?;
    let row = select_intent(tx, envelope).await?;
    let row = row.ok_or(StoreError::Conflict)?;
    let columns = intent_columns(&row);
    Ok(Intent {
        id: columns.parsed("intent_id", IntentId::parse)?,
        trigger: columns.text("trigger_name")?,
        requested_by: columns.text("requested_by")?,
        frozen_at: columns.time("frozen_at")?,
        issuer: columns
            .optional_text("issuer")?
            .unwrap_or_else(|| intent.issuer.clone()),
        ledger_sequence: columns.number("ledger_sequence")?,
        checkpoint: columns.optional_text("checkpoint")?,
    })
}

/// Gives up an intent whose document was replaced: the next one starts anew.
pub async fn forget_intent(tx: &mut Tx, envelope: &Envelope) -> Result<(), StoreError> {
    sqlx::query(
        "delete from vault_intent
         where bucket = $1 and envelope_id = $2 and finished_at is null",
    )
    .bind(envelope.org.bucket())
    .bind(envelope.id.as_str())
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Gives up an intent that nobody but the service itself had. True when nothing is
/// intended any more.
pub async fn forget_unattended_intent(
    tx: &mut Tx,
    envelope: &Envelope,
) -> Result<bool, StoreError> {
    sqlx::query(
        "delete from vault_intent
         where bucket = $1 and envelope_id = $2 and finished_at is null
             and requested_by = 'system'",
    )
    .bind(envelope.org.bucket())
    .bind(envelope.id.as_str())
    .execute(&mut **tx)
    .await?;
    Ok(select_intent(tx, envelope).await?.is_none())
}

/// Notes that the pipeline has ended, and forgets what only it needed. An
/// intent that was given up, or that another pipeline ended, is a conflict.
pub async fn finish_intent(
    tx: &mut Tx,
    envelope: &Envelope,
    intent: &Intent,
    keep: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let finished = sqlx::query(
        "update vault_intent set finished_at = $4, last_error = null, failed_step = null,
             failed_at = null, failures = 0
         where bucket = $1 and envelope_id = $2 and intent_id = $3 and finished_at is null",
    )
    .bind(envelope.org.bucket())
    .bind(envelope.id.as_str())
    .bind(intent.id.as_str())
    .bind(now.to_string())
    .execute(&mut **tx)
    .await?;
    one_row(finished.rows_affected())?;
    sqlx::query(
        "delete from vault_step
         where bucket = $1 and envelope_id = $2 and (intent_id <> $3 or step <> $4)",
    )
    .bind(envelope.org.bucket())
    .bind(envelope.id.as_str())
    .bind(intent.id.as_str())
    .bind(keep)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Notes why the pipeline stopped.
pub async fn note_failure(
    tx: &mut Tx,
    envelope: &Envelope,
    intent: &Intent,
    step: &str,
    message: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "update vault_intent set failed_step = $4, last_error = $5, failed_at = $6,
             failures = failures + 1
         where bucket = $1 and envelope_id = $2 and intent_id = $3 and finished_at is null",
    )
    .bind(envelope.org.bucket())
    .bind(envelope.id.as_str())
    .bind(intent.id.as_str())
    .bind(step)
    .bind(message)
    .bind(now.to_string())
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Why the pipeline of an envelope does not get on; none when nothing is wrong.
pub async fn failure(
    connection: &mut AnyConnection,
    envelope: &Envelope,
) -> Result<Option<Failure>, StoreError> {
    let Some(row) = select_intent(connection, envelope).await? else {
        return Ok(None);
    };
    let columns = intent_columns(&row);
    let Some(step) = columns.optional_text("failed_step")? else {
        return Ok(None);
    };
    Ok(Some(Failure {
        step,
        message: columns.optional_text("last_error")?.unwrap_or_default(),
        at: columns.time("failed_at")?,
        count: columns.number("failures")?,
    }))
}

/// What a step of this intent gave, if it is done.
pub async fn step(
    connection: &mut AnyConnection,
    envelope: &Envelope,
    intent: &Intent,
    step: &str,
) -> Result<Option<Value>, StoreError> {
    let row = sqlx::query(
        "select * from vault_step
         where bucket = $1 and envelope_id = $2 and intent_id = $3 and step = $4",
    )
    .bind(envelope.org.bucket())
    .bind(envelope.id.as_str())
    .bind(intent.id.as_str())
    .bind(step)
    .fetch_optional(connection)
    .await?;
    row.map(|row| step_columns(&row).json("result")).transpose()
}

/// Records what a step gave, unless another pipeline was first; returns what is
/// recorded.
pub async fn record_step(
    tx: &mut Tx,
    envelope: &Envelope,
    intent: &Intent,
    name: &str,
    result: &Value,
    now: Timestamp,
) -> Result<Value, StoreError> {
    sqlx::query(
        "insert into vault_step (bucket, envelope_id, intent_id, step, org_id, result, recorded_at)
         values ($1, $2, $3, $4, $5, $6, $7)
         on conflict (bucket, envelope_id, intent_id, step) do nothing",
    )
    .bind(envelope.org.bucket())
    .bind(envelope.id.as_str())
    .bind(intent.id.as_str())
    .bind(name)
    .bind(envelope.org.as_str())
    .bind(result.to_string())
    .bind(now.to_string())
    .execute(&mut **tx)
    .await?;
    step(tx, envelope, intent, name)
        .await?
        .ok_or(StoreError::Conflict)
}

/// The head of the log that an envelope's certificate holds, as a note.
pub async fn checkpoint(
    connection: &mut AnyConnection,
    org: &OrgId,
    envelope: &EnvelopeId,
) -> Result<Option<String>, StoreError> {
    let row = sqlx::query(
        "select * from vault_intent
         where bucket = $1 and envelope_id = $2 and finished_at is not null",
    )
    .bind(org.bucket())
    .bind(envelope.as_str())
    .fetch_optional(connection)
    .await?;
    let note = row.map(|row| intent_columns(&row).optional_text("checkpoint"));
    Ok(note.transpose()?.flatten())
}

/// The executed document that an envelope was vaulted from: what the step
/// `fetch` gave.
pub async fn source(
    connection: &mut AnyConnection,
    envelope: &Envelope,
    fetch: &str,
) -> Result<Option<StoredFile>, StoreError> {
    let row = sqlx::query(
        "select s.* from vault_step s join vault_intent i
             on s.bucket = i.bucket and s.envelope_id = i.envelope_id and s.intent_id = i.intent_id
         where s.bucket = $1 and s.envelope_id = $2 and s.step = $3 and i.finished_at is not null",
    )
    .bind(envelope.org.bucket())
    .bind(envelope.id.as_str())
    .bind(fetch)
    .fetch_optional(connection)
    .await?;
    let file: Option<Option<StoredFile>> = row
        .map(|row| step_columns(&row).optional_file("result"))
        .transpose()?;
    Ok(file.flatten())
}

fn step_columns(row: &AnyRow) -> Columns<'_> {
    Columns {
        row,
        table: "vault_step",
        id: "envelope_id",
    }
}

async fn select_intent(
    connection: &mut AnyConnection,
    envelope: &Envelope,
) -> Result<Option<AnyRow>, StoreError> {
    let row = sqlx::query("select * from vault_intent where bucket = $1 and envelope_id = $2")
        .bind(envelope.org.bucket())
        .bind(envelope.id.as_str())
        .fetch_optional(connection)
        .await?;
    Ok(row)
}

fn intent_columns(row: &AnyRow) -> Columns<'_> {
    Columns {
        row,
        table: "vault_intent",
        id: "envelope_id",
    }
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
