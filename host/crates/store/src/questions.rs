//! Questions of signers to the sender.

use crate::SqlConnection;
use sqlx::AssertSqlSafe;

use super::row::{RowColumns, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::id::{EnvelopeId, OrgId, QuestionId, SignerId};
use holdfast_domain::question::{QuestionClosing, SignerQuestion};

pub async fn insert(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    question: &SignerQuestion,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into signer_question (bucket, question_id, org_id, envelope_id, signer_id, position, name,
             email, role, question, asked_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    )
    .bind(envelope.org.bucket())
    .bind(question.id.as_str())
    .bind(envelope.org.as_str())
    .bind(envelope.id.as_str())
    .bind(question.signer.as_str())
    .bind(question.position)
    .bind(&question.name)
    .bind(&question.email)
    .bind(&question.role)
    .bind(&question.text)
    .bind(question.asked_at.to_string())
    .run(tx)
    .await
}

/// Closes an open question.
///
/// # Errors
/// [`StoreError::Conflict`] for a question that is closed already.
pub async fn close(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    question: &QuestionId,
    closing: &QuestionClosing,
) -> Result<(), StoreError> {
    sqlx::query(
        "update signer_question set answer = $5, closed_by = $6, closed_at = $7
         where bucket = $1 and org_id = $2 and envelope_id = $3 and question_id = $4
             and closed_at is null",
    )
    .bind_org(&envelope.org)
    .bind(envelope.id.as_str())
    .bind(question.as_str())
    .bind(closing.answer.as_deref())
    .bind(&closing.by)
    .bind(closing.at.to_string())
    .run_guarded(tx)
    .await
}

/// Returns the questions about an envelope, the oldest first.
pub async fn list(
    connection: &mut SqlConnection,
    org: &OrgId,
    envelope: &EnvelopeId,
) -> Result<Vec<SignerQuestion>, StoreError> {
    // Ids sort by the time of their generation.
    query_rows(
        "select {columns} from signer_question where bucket = $1 and org_id = $2 and envelope_id = $3
         order by question_id",
    )
    .bind_org(org)
    .bind(envelope.as_str())
    .fetch_all(connection)
    .await
}

/// Condition of a question `asked` that waits for the sender: no answer is due to a person who was replaced, or who has
/// signed. `closed_at is null` is the condition of the index `signer_question_open`, word for word.
pub(super) const IS_OPEN: &str = "asked.closed_at is null
    and exists (select 1 from signer asker where asker.bucket = asked.bucket
        and asker.envelope_id = asked.envelope_id and asker.signer_id = asked.signer_id
        and asker.completed_at is null)";

/// Whether a question of a present signer who has not signed is open.
pub async fn has_open(
    connection: &mut SqlConnection,
    org: &OrgId,
    envelope: &EnvelopeId,
) -> Result<bool, StoreError> {
    let text = format!(
        "select asked.question_id from signer_question asked
         where asked.bucket = $1 and asked.org_id = $2 and asked.envelope_id = $3 and {IS_OPEN} limit 1"
    );
    sqlx::query(AssertSqlSafe(text))
        .bind_org(org)
        .bind(envelope.as_str())
        .finds_row(connection)
        .await
}

table_row! {
    SignerQuestion of "signer_question" by "question_id" also "answer", "closed_by", "closed_at" {
        id: parsed("question_id", QuestionId::parse),
        signer: parsed("signer_id", SignerId::parse),
        position: number("position"),
        name: text("name"),
        email: text("email"),
        role: text("role"),
        text: text("question"),
        asked_at: time("asked_at"),
        closing: |row| closing(row)?,
    }
}

fn closing(row: &RowColumns<'_>) -> Result<Option<QuestionClosing>, StoreError> {
    let Some(at): Option<Timestamp> = row.optional_time("closed_at")? else {
        return Ok(None);
    };

    Ok(Some(QuestionClosing {
        answer: row.optional_text("answer")?,
        by: row.text("closed_by")?,
        at,
    }))
}
