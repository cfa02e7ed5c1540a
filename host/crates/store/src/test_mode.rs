//! Test data: messages that are not sent, and the time.

use crate::SqlConnection;
use sqlx::{AssertSqlSafe, Row as _};

use super::dialect::SqlDialect;
use super::row::{json_text, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::{EnvelopeId, MessageId, OrgId};
use holdfast_domain::test_mode::{MessageChannel, TestMessage};

/// Adds a message, unless the same work added it before.
pub async fn insert(
    tx: &mut WriteTransaction,
    source: &str,
    message: &TestMessage,
) -> Result<(), StoreError> {
    // Jobs may run twice. The source names job and content, so the inbox has each message once.
    sqlx::query(
        "insert into test_message (bucket, message_id, org_id, source, channel, envelope_id, sent_to, subject,
             body, link, attachments, at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
         on conflict (bucket, org_id, source) do nothing",
    )
    .bind_key(&message.org, message.id.as_str())
    .bind(message.org.as_str())
    .bind(source)
    .bind(message.channel.as_str())
    .bind(message.envelope.as_ref().map(EnvelopeId::as_str))
    .bind(&message.to)
    .bind(message.subject.as_deref())
    .bind(&message.body)
    .bind(message.link.as_deref())
    .bind(json_text(&message.attachments))
    .bind(message.at.to_string())
    .run(tx)
    .await
}

/// Conditions of a search in the inbox; all of them hold.
#[derive(Default)]
pub struct MessageSearch {
    /// Address or number.
    pub to: Option<String>,
    pub envelope: Option<EnvelopeId>,
    /// Only older messages than this one.
    pub after: Option<MessageId>,
}

/// Returns messages, newest first.
pub async fn list(
    connection: &mut SqlConnection,
    org: &OrgId,
    search: &MessageSearch,
    limit: i64,
) -> Result<Vec<TestMessage>, StoreError> {
    query_rows(
        "select {columns} from test_message
         where bucket = $1 and org_id = $2 and message_id < $3
             and ($4 = '' or lower(sent_to) = $4)
             and ($5 = '' or envelope_id = $5)
         order by message_id desc limit $6",
    )
    .bind_org(org)
    .bind(
        search
            .after
            .as_ref()
            .map_or(MessageId::LAST, MessageId::as_str),
    )
    .bind(search.to.as_deref().unwrap_or_default().to_lowercase())
    .bind(search.envelope.as_ref().map_or("", EnvelopeId::as_str))
    .bind(limit)
    .fetch_all(connection)
    .await
}

table_row! {
    TestMessage of "test_message" by "message_id" {
        id: parsed("message_id", MessageId::parse),
        org: parsed("org_id", OrgId::parse),
        channel: parsed("channel", MessageChannel::parse),
        envelope: optional_parsed("envelope_id", EnvelopeId::parse),
        to: text("sent_to"),
        subject: optional_text("subject"),
        body: text("body"),
        link: optional_text("link"),
        attachments: json("attachments"),
        at: time("at"),
    }
}

/// Deletes the messages from before a time.
pub async fn delete_before(tx: &mut WriteTransaction, at: Timestamp) -> Result<(), StoreError> {
    sqlx::query("delete from test_message where at < $1")
        .bind(at.to_string())
        .run(tx)
        .await
}

/// Returns by how many seconds the time was advanced so far.
pub async fn advanced(connection: &mut SqlConnection, org: &OrgId) -> Result<i64, StoreError> {
    let row =
        sqlx::query("select advanced_seconds from test_clock where bucket = $1 and org_id = $2")
            .bind_org(org)
            .fetch_optional(connection)
            .await?;
    let seconds = row.map(|row| row.try_get("advanced_seconds")).transpose()?;
    Ok(seconds.unwrap_or_default())
}

/// Tables with their times that come nearer when time advances, and the rows that wait for them.
const WAITING: [(&str, &[&str], &str); 13] = [
    (
        "envelope",
        &["expires_at"],
        "status in ('pending', 'uploaded', 'preparing', 'sent', 'viewed')",
    ),
    // The leases of jobs at work stay: they end a minute later, at most. A planned reminder or warning waits again after
    // it ran, and may run twice.
    (
        "job",
        &["run_at"],
        "state = 'waiting' and (lease_epoch = 0 or last_error is not null
             or kind in ('envelope.remind', 'envelope.expiry_warning'))",
    ),
    ("webhook_delivery", &["due_at"], "status = 'pending'"),
    (
        "webhook_endpoint",
        &["grace_expires_at", "failing_since", "paused_until"],
        "deleted_at is null",
    ),
    ("bulk_item", &["run_at"], "status = 'pending'"),
    ("signer", &["renewed_at"], "renewed_at is not null"),
    (
        "signer",
        &["noticed_at"],
        "noticed_at is not null and completed_at is null",
    ),
    ("signing_link", &["expires_at"], "1 = 1"),
    ("download_link", &["expires_at"], "1 = 1"),
    (
        "kba_session",
        &["started_at", "expires_at", "ended_at"],
        "1 = 1",
    ),
    (
        "access_code",
        &["sent_at", "first_sent_at", "locked_until"],
        "1 = 1",
    ),
    ("access_code_failure", &["locked_until"], "1 = 1"),
    ("drawing_handover", &["expires_at"], "1 = 1"),
];

/// Advances the time of an organization's test data by `by` seconds: pending times become earlier, times of past events
/// stay. Returns the sum of all advances in seconds.
pub async fn advance(tx: &mut WriteTransaction, org: &OrgId, by: i64) -> Result<i64, StoreError> {
    // Stored times move instead of the clock: another clock would date records
    // in the future, and receivers of webhooks would refuse the signatures.
    for (table, columns, waits) in WAITING {
        let earlier = columns.iter().map(|column| match tx.dialect {
            SqlDialect::Sqlite => format!(
                "{column} = strftime('%Y-%m-%dT%H:%M:%fZ', {column}, '-{by} seconds')"
            ),
            SqlDialect::Postgres => format!(
                "{column} = to_char(cast({column} as timestamptz) at time zone 'UTC' - interval '{by} seconds',
                     'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')"
            ),
        });

        let earlier: Vec<String> = earlier.collect();
        // `by` is a number and the names are constants: none of them can carry SQL.
        let text = format!(
            "update {table} set {} where bucket = $1 and org_id = $2 and {waits}",
            earlier.join(", ")
        );
        sqlx::query(AssertSqlSafe(text))
            .bind_org(org)
            .execute(&mut **tx)
            .await?;
    }

    sqlx::query(
        "insert into test_clock (bucket, org_id, advanced_seconds) values ($1, $2, $3)
         on conflict (bucket, org_id) do update
             set advanced_seconds = test_clock.advanced_seconds + excluded.advanced_seconds",
    )
    .bind_org(org)
    .bind(by)
    .execute(&mut **tx)
    .await?;

    advanced(tx, org).await
}
