//! Vault intents and their steps, evaluations, and releases.

use crate::SqlConnection;
use serde_json::Value;
use sqlx::any::AnyRow;

use super::row::{RowColumns, json_text};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, StoredFile};
use holdfast_domain::id::{EnvelopeId, IntentId, OrgId};
use holdfast_domain::organization::RecordWording;

/// Decision to vault an envelope; made once per envelope.
#[derive(Clone, Debug)]
pub struct VaultIntent {
    pub id: IntentId,
    /// `vault_in_signed` or `vault_in_upload`.
    pub trigger: String,
    pub requested_by: String,
    /// The only timestamp that the stored files may
    /// contain, so that repeated steps give equal bytes.
    pub frozen_at: Timestamp,
    /// Installation's name as issuer in the files.
    pub issuer: String,
    /// Sequence of the last ledger entry that the custody record covers.
    pub ledger_sequence: i64,
    /// Signed head of the log of all ledgers, as a note.
    pub checkpoint: Option<String>,
    /// Language of the files, and the dates in them.
    pub wording: RecordWording,
}

/// Failure of an envelope's vault pipeline.
#[derive(Clone, Debug)]
pub struct VaultFailure {
    pub step: String,
    pub message: String,
    pub at: Timestamp,
    /// Number of consecutive failures.
    pub count: i64,
}

/// Records the intent, or returns the one recorded before.
pub async fn intend(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    intent: &VaultIntent,
) -> Result<VaultIntent, StoreError> {
    // The first intent freezes time, issuer and language, so
    // that each run of the pipeline writes the same bytes.
    sqlx::query(
        "insert into vault_intent (bucket, envelope_id, org_id, intent_id, trigger_name,
             requested_by, frozen_at, ledger_sequence, issuer, checkpoint, wording)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         on conflict (bucket, envelope_id) do nothing",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(envelope.org.as_str())
    .bind(intent.id.as_str())
    .bind(&intent.trigger)
    .bind(&intent.requested_by)
    .bind(intent.frozen_at.to_string())
    .bind(intent.ledger_sequence)
    .bind(&intent.issuer)
    .bind(intent.checkpoint.as_deref())
    .bind(json_text(&intent.wording))
    .execute(&mut **tx)
    .await?;

    let row = select_intent(tx, envelope).await?;
    let row = row.ok_or(StoreError::Conflict)?;
    let columns = intent_columns(&row);
    Ok(VaultIntent {
        id: columns.parsed("intent_id", IntentId::parse)?,
        trigger: columns.text("trigger_name")?,
        requested_by: columns.text("requested_by")?,
        frozen_at: columns.time("frozen_at")?,
        issuer: columns
            .optional_text("issuer")?
            // Intents older than this column have no issuer.
            .unwrap_or_else(|| intent.issuer.clone()),
        ledger_sequence: columns.number("ledger_sequence")?,
        checkpoint: columns.optional_text("checkpoint")?,
        wording: columns.optional_json("wording")?.unwrap_or_default(),
    })
}

/// Returns how the files of a record were worded when vault-in began.
pub async fn wording(
    connection: &mut SqlConnection,
    envelope: &Envelope,
) -> Result<RecordWording, StoreError> {
    let row = select_intent(connection, envelope).await?;
    let wording = row.map(|row| intent_columns(&row).optional_json("wording"));
    Ok(wording.transpose()?.flatten().unwrap_or_default())
}

/// Deletes an unfinished intent because its document was replaced; the next one starts anew.
pub async fn forget_intent(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
) -> Result<(), StoreError> {
    // Steps name their intent, so those of this one count for no other and are deleted at the end.
    sqlx::query(
        "delete from vault_intent
         where bucket = $1 and envelope_id = $2 and finished_at is null",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .run(tx)
    .await
}

/// Deletes an unfinished intent unless a user requested it. Returns true if no intent is left.
pub async fn forget_unattended_intent(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
) -> Result<bool, StoreError> {
    sqlx::query(
        "delete from vault_intent
         where bucket = $1 and envelope_id = $2 and finished_at is null
             and requested_by = 'system'",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .execute(&mut **tx)
    .await?;

    Ok(select_intent(tx, envelope).await?.is_none())
}

/// Marks the intent as finished and deletes its intermediate results, except the step `keep`. Fails
/// with a conflict if the intent was deleted or is finished already.
pub async fn finish_intent(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    intent: &VaultIntent,
    keep: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    // A run for a document that was replaced has the id of another intent and settles nothing.
    // Before the deletion, so that a lost race removes nothing.
    sqlx::query(
        "update vault_intent set finished_at = $4, last_error = null, failed_step = null,
             failed_at = null, failures = 0
         where bucket = $1 and envelope_id = $2 and intent_id = $3 and finished_at is null",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(intent.id.as_str())
    .bind(now.to_string())
    .run_guarded(tx)
    .await?;

    sqlx::query(
        "delete from vault_step
         where bucket = $1 and envelope_id = $2 and (intent_id <> $3 or step <> $4)",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(intent.id.as_str())
    .bind(keep)
    .run(tx)
    .await
}

/// Records why the pipeline stopped.
pub async fn note_failure(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    intent: &VaultIntent,
    step: &str,
    message: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    // A slower run that fails after another one has finished must not mark the envelope.
    sqlx::query(
        "update vault_intent set failed_step = $4, last_error = $5, failed_at = $6,
             failures = failures + 1
         where bucket = $1 and envelope_id = $2 and intent_id = $3 and finished_at is null",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(intent.id.as_str())
    .bind(step)
    .bind(message)
    .bind(now.to_string())
    .run(tx)
    .await
}

/// Returns the failure of an envelope's pipeline, if there is one.
pub async fn failure(
    connection: &mut SqlConnection,
    envelope: &Envelope,
) -> Result<Option<VaultFailure>, StoreError> {
    let Some(row) = select_intent(connection, envelope).await? else {
        return Ok(None);
    };

    let columns = intent_columns(&row);
    let Some(step) = columns.optional_text("failed_step")? else {
        return Ok(None);
    };

    Ok(Some(VaultFailure {
        step,
        message: columns.optional_text("last_error")?.unwrap_or_default(),
        at: columns.time("failed_at")?,
        count: columns.number("failures")?,
    }))
}

/// Returns the result of a step of this intent, if it is done.
pub async fn step(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    intent: &VaultIntent,
    step: &str,
) -> Result<Option<Value>, StoreError> {
    let row = sqlx::query(
        "select envelope_id, result from vault_step
         where bucket = $1 and envelope_id = $2 and intent_id = $3 and step = $4",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(intent.id.as_str())
    .bind(step)
    .fetch_optional(connection)
    .await?;

    row.map(|row| step_columns(&row).json("result")).transpose()
}

/// Records the result of a step, unless a concurrent pipeline was first; returns the recorded result, so
/// that both pipelines continue with the same one.
pub async fn record_step(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    intent: &VaultIntent,
    name: &str,
    result: &Value,
    now: Timestamp,
) -> Result<Value, StoreError> {
    // An update that changes nothing, because a conflict without one returns no row.
    let row = sqlx::query(
        "insert into vault_step (bucket, envelope_id, intent_id, step, org_id, result, recorded_at)
         values ($1, $2, $3, $4, $5, $6, $7)
         on conflict (bucket, envelope_id, intent_id, step) do update set step = excluded.step
         returning envelope_id, result",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(intent.id.as_str())
    .bind(name)
    .bind(envelope.org.as_str())
    .bind(result.to_string())
    .bind(now.to_string())
    .fetch_one(&mut **tx)
    .await?;

    step_columns(&row).json("result")
}

/// Removes the result of a step.
pub async fn forget_step(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    intent: &VaultIntent,
    step: &str,
) -> Result<(), StoreError> {
    sqlx::query(
        "delete from vault_step
         where bucket = $1 and envelope_id = $2 and intent_id = $3 and step = $4",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(intent.id.as_str())
    .bind(step)
    .run(tx)
    .await
}

/// Returns the log head contained in an envelope's certificate, as a note.
pub async fn checkpoint(
    connection: &mut SqlConnection,
    org: &OrgId,
    envelope: &EnvelopeId,
) -> Result<Option<String>, StoreError> {
    // Before the intent is finished there is no certificate.
    let row = sqlx::query(
        "select envelope_id, checkpoint from vault_intent
         where bucket = $1 and envelope_id = $2 and finished_at is not null",
    )
    .bind_key(org, envelope.as_str())
    .fetch_optional(connection)
    .await?;
    let note = row.map(|row| intent_columns(&row).optional_text("checkpoint"));

    Ok(note.transpose()?.flatten())
}

/// Returns the executed document from which an envelope
/// was vaulted: the result of the step `fetch`.
pub async fn source(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    fetch: &str,
) -> Result<Option<StoredFile>, StoreError> {
    let row = sqlx::query(
        "select s.envelope_id, s.result from vault_step s join vault_intent i
             on s.bucket = i.bucket and s.envelope_id = i.envelope_id and s.intent_id = i.intent_id
         where s.bucket = $1 and s.envelope_id = $2 and s.step = $3 and i.finished_at is not null",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(fetch)
    .fetch_optional(connection)
    .await?;

    let file: Option<Option<StoredFile>> = row
        .map(|row| step_columns(&row).optional_file("result"))
        .transpose()?;
    Ok(file.flatten())
}

fn step_columns(row: &AnyRow) -> RowColumns<'_> {
    RowColumns::of(row, "vault_step", "envelope_id")
}

async fn select_intent(
    connection: &mut SqlConnection,
    envelope: &Envelope,
) -> Result<Option<AnyRow>, StoreError> {
    let row = sqlx::query(
        "select envelope_id, intent_id, trigger_name, requested_by, frozen_at, issuer,
             ledger_sequence, checkpoint, wording, failed_step, last_error, failed_at, failures
         from vault_intent where bucket = $1 and envelope_id = $2",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .fetch_optional(connection)
    .await?;

    Ok(row)
}

fn intent_columns(row: &AnyRow) -> RowColumns<'_> {
    RowColumns::of(row, "vault_intent", "envelope_id")
}

/// Records the facts from which a certificate was made, and the evaluation in it.
pub async fn insert_evaluation(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    facts: &Value,
    answer: &Value,
    component: &Value,
    at: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into evaluation (bucket, envelope_id, org_id, facts, component, evaluated_at, answer)
         values ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(envelope.org.as_str())
    .bind(facts.to_string())
    .bind(component.to_string())
    .bind(at.to_string())
    .bind(answer.to_string())
    .run(tx)
    .await
}

/// Records the release form as signed.
pub async fn insert_release(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    form: &Value,
    at: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into vault_release (bucket, envelope_id, org_id, released_at, form)
         values ($1, $2, $3, $4, $5)",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(envelope.org.as_str())
    .bind(at.to_string())
    .bind(form.to_string())
    .run(tx)
    .await
}
