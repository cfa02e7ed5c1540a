//! Requests of organizations' programs and users.

use std::sync::Arc;
use std::time::Duration;

use crate::SqlConnection;
use bytes::Bytes;
use sqlx::AssertSqlSafe;

use super::outbox::placeholders;
use super::row::{query_rows, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::{EnvelopeId, OrgId, RequestId};
use holdfast_domain::request_log::{LoggedMembers, LoggedRequest};

/// Requests of one statement.
const ROWS: usize = 50;

/// A request as it was received and answered.
pub struct ReceivedRequest {
    pub id: RequestId,
    pub org: OrgId,
    pub at: Timestamp,
    pub method: String,
    pub route: String,
    pub path: String,
    pub status: u16,
    pub credential: Option<String>,
    pub duration: Duration,
    /// JSON.
    pub request: Option<Bytes>,
    pub answer: Option<Bytes>,
    /// Kept members of request and answer.
    pub logged: (Option<Arc<LoggedMembers>>, Option<Arc<LoggedMembers>>),
}

/// A request to keep.
pub struct NewRequest {
    pub received: ReceivedRequest,
    pub envelope: Option<EnvelopeId>,
    /// JSON without private values, in place of the received body.
    pub request: Option<String>,
    pub answer: Option<String>,
}

/// Adds requests.
pub async fn insert(tx: &mut WriteTransaction, requests: &[NewRequest]) -> Result<(), StoreError> {
    for some in requests.chunks(ROWS) {
        let text = format!(
            "insert into request_log (bucket, request_id, org_id, at, method, route, path, status, credential,
                 envelope_id, duration_ms, request, answer)
             values {} on conflict (bucket, request_id) do nothing",
            placeholders(tx, 13, some.len())
        );

        let mut query = sqlx::query(AssertSqlSafe(text));
        for new in some {
            let one = &new.received;
            query = query
                .bind_key(&one.org, one.id.as_str())
                .bind(one.org.as_str())
                .bind(one.at.to_string())
                .bind(&one.method)
                .bind(&one.route)
                .bind(&one.path)
                .bind(i64::from(one.status))
                .bind(one.credential.as_deref())
                .bind(new.envelope.as_ref().map(EnvelopeId::as_str))
                .bind(i64::try_from(one.duration.as_millis()).unwrap_or(i64::MAX))
                .bind(new.request.as_deref())
                .bind(new.answer.as_deref());
        }

        query.execute(&mut **tx).await?;
    }

    Ok(())
}

/// Whether a request of an organization names a record that is being destroyed, or is destroyed: one of its own, or one of
/// another organization in which a party has acted.
pub async fn names_destroyed(
    connection: &mut SqlConnection,
    org: &OrgId,
    envelope: &EnvelopeId,
) -> Result<bool, StoreError> {
    sqlx::query(
        "select envelope_id from envelope
         where bucket = $1 and envelope_id = $2 and destruction is not null
         union all
         select own.envelope_id from control_record record
         join envelope own on own.bucket = record.bucket and own.envelope_id = record.envelope_id
         where record.envelope_id = $2 and own.destruction is not null",
    )
    .bind_key(org, envelope.as_str())
    .finds_row(connection)
    .await
}

/// Deletes the requests from before a time.
pub async fn delete_before(tx: &mut WriteTransaction, at: Timestamp) -> Result<(), StoreError> {
    sqlx::query("delete from request_log where at < $1")
        .bind(at.to_string())
        .run(tx)
        .await
}

/// Conditions of a search; all of them hold.
#[derive(Default)]
pub struct RequestSearch {
    pub id: Option<RequestId>,
    pub credential: Option<String>,
    /// Begin of the path.
    pub path: Option<String>,
    pub method: Option<String>,
    /// Smallest and largest status.
    pub statuses: Option<(i64, i64)>,
    pub envelope: Option<EnvelopeId>,
    /// Only older requests than this.
    pub after: Option<RequestId>,
}

/// Returns the newest requests that fit.
pub async fn list(
    connection: &mut SqlConnection,
    org: &OrgId,
    search: &RequestSearch,
    limit: i64,
) -> Result<Vec<LoggedRequest>, StoreError> {
    // A status of HTTP has three digits.
    let (least, most) = search.statuses.unwrap_or((0, 999));
    // An empty text stands for no condition. The path is compared with `substr`,
    // because ids in it have underscores, which `like` takes for wildcards.
    query_rows(
        "select {columns} from request_log
         where bucket = $1 and org_id = $2 and request_id < $3
             and ($4 = '' or request_id = $4)
             and ($5 = '' or credential = $5)
             and ($6 = '' or substr(path, 1, length($6)) = $6)
             and ($7 = '' or method = $7)
             and status >= $8 and status <= $9
             and ($10 = '' or envelope_id = $10)
         order by request_id desc limit $11",
    )
    .bind_org(org)
    .bind(
        search
            .after
            .as_ref()
            .map_or(RequestId::LAST, RequestId::as_str),
    )
    .bind(search.id.as_ref().map_or("", RequestId::as_str))
    .bind(search.credential.as_deref().unwrap_or_default())
    .bind(search.path.as_deref().unwrap_or_default())
    .bind(search.method.as_deref().unwrap_or_default())
    .bind(least)
    .bind(most)
    .bind(search.envelope.as_ref().map_or("", EnvelopeId::as_str))
    .bind(limit)
    .fetch_all(connection)
    .await
}

table_row! {
    LoggedRequest of "request_log" by "request_id" {
        request_id: parsed("request_id", RequestId::parse),
        org: parsed("org_id", OrgId::parse),
        at: time("at"),
        method: text("method"),
        route: text("route"),
        path: text("path"),
        status: number("status"),
        credential: optional_text("credential"),
        envelope_id: optional_parsed("envelope_id", EnvelopeId::parse),
        duration_ms: number("duration_ms"),
        request: optional_json("request"),
        answer: optional_json("answer"),
    }
}
