//! Download links: unguessable and expiring; those for
//! an authoritative copy are good for one complete read.

use crate::SqlConnection;

use super::StoreError;
use super::row::{query_rows, table_row};
use super::statement::RunStatement as _;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, words};
use holdfast_domain::id::{EnvelopeId, OrgId};
use holdfast_domain::token::LinkToken;

words! {
    /// File behind a download link.
    LinkedFile {
        Authoritative = "authoritative",
        Copy = "copy",
        Archive = "archive",
        PaperOriginal = "paper_original",
        Certificate = "certificate",
        CustodyRecord = "custody_record",
    }
}

/// A download link.
#[derive(Clone, Debug)]
pub struct DownloadLink {
    pub org: OrgId,
    pub envelope: EnvelopeId,
    pub file: LinkedFile,
    pub filename: String,
    pub single_use: bool,
    pub expires_at: Timestamp,
    pub used: bool,
}

pub async fn insert(
    connection: &mut SqlConnection,
    token: &LinkToken,
    link: &DownloadLink,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into download_link (bucket, token_hash, org_id, envelope_id, file, filename,
             single_use, created_at, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(token.bucket())
    // Only the hash: a copy of the database opens no download.
    .bind(token.hash().as_str())
    .bind(link.org.as_str())
    .bind(link.envelope.as_str())
    .bind(link.file.as_str())
    .bind(&link.filename)
    .bind(i64::from(link.single_use))
    .bind(now.to_string())
    .bind(link.expires_at.to_string())
    .run(connection)
    .await
}

pub async fn get(
    connection: &mut SqlConnection,
    token: &LinkToken,
) -> Result<Option<DownloadLink>, StoreError> {
    query_rows("select {columns} from download_link where bucket = $1 and token_hash = $2")
        .bind(token.bucket())
        .bind(token.hash().as_str())
        .fetch_optional(connection)
        .await
}

table_row! {
    DownloadLink of "download_link" by "envelope_id" also "used_at" {
        org: parsed("org_id", OrgId::parse),
        envelope: parsed("envelope_id", EnvelopeId::parse),
        file: parsed("file", LinkedFile::parse),
        filename: text("filename"),
        single_use: flag("single_use"),
        expires_at: time("expires_at"),
        // A broken download clears the time again, so this can change back.
        used: |row| row.optional_text("used_at")?.is_some(),
    }
}

/// Ends the links to a file of a record, also those of downloads in progress: a broken one makes its link
/// usable again.
pub async fn expire(
    connection: &mut SqlConnection,
    org: &OrgId,
    envelope: &EnvelopeId,
    file: LinkedFile,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "update download_link set expires_at = $4
         where bucket = $1 and org_id = $2 and envelope_id = $3 and file = $5
             and expires_at > $4",
    )
    .bind_org(org)
    .bind(envelope.as_str())
    .bind(now.to_string())
    .bind(file.as_str())
    .run(connection)
    .await
}

/// Whether a link to a file of a record has been in use since a time, by a download that has not broken off.
/// A crash leaves one in that state.
pub async fn in_use(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    file: LinkedFile,
    since: Timestamp,
) -> Result<bool, StoreError> {
    // After a crash it is unknown how much arrived. `since` bounds how long such a link counts as used.
    sqlx::query(
        "select 1 as used from download_link
         where bucket = $1 and org_id = $2 and envelope_id = $3 and file = $4 and used_at > $5
         limit 1",
    )
    .bind_org(&envelope.org)
    .bind(envelope.id.as_str())
    .bind(file.as_str())
    .bind(since.to_string())
    .finds_row(connection)
    .await
}

/// Redeems a single-use link that is valid; returns true for only one of several concurrent calls.
pub async fn redeem(
    connection: &mut SqlConnection,
    token: &LinkToken,
    now: Timestamp,
) -> Result<bool, StoreError> {
    // One statement checks and marks: between two, another request could redeem the link as well.
    sqlx::query(
        "update download_link set used_at = $3
         where bucket = $1 and token_hash = $2 and used_at is null and expires_at > $3",
    )
    .bind(token.bucket())
    .bind(token.hash().as_str())
    .bind(now.to_string())
    .changes_row(connection)
    .await
}

/// Makes a link usable again after an interrupted download.
pub async fn release(connection: &mut SqlConnection, token: &LinkToken) -> Result<(), StoreError> {
    sqlx::query("update download_link set used_at = null where bucket = $1 and token_hash = $2")
        .bind(token.bucket())
        .bind(token.hash().as_str())
        .run(connection)
        .await
}
