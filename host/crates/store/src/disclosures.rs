//! Texts about electronic records that signers were shown, and what the pages of signers delivered.

use crate::SqlConnection;
use sqlx::Row as _;

use super::row::RowColumns;
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::OrgId;

/// Text of a disclosure with its identification.
#[derive(Clone, Debug)]
pub struct KeptDisclosure {
    /// Of `body` in UTF-8, in lower-case hexadecimal.
    pub sha256: String,
    pub version: String,
    /// Language tag (BCP 47).
    pub locale: String,
    pub body: String,
}

/// What a page of a signer can deliver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveredItem {
    /// Text with this SHA-256.
    Disclosure(String),
    /// Picture of the page with this number.
    Page(u32),
    /// The page with this number, which the browser reported as displayed.
    Displayed(u32),
    /// The document as PDF.
    Pdf,
}

impl DeliveredItem {
    fn columns(&self) -> (&'static str, String) {
        match self {
            Self::Disclosure(sha256) => ("disclosure", sha256.clone()),
            Self::Page(number) => ("page", number.to_string()),
            Self::Displayed(number) => ("displayed", number.to_string()),
            Self::Pdf => ("pdf", String::new()),
        }
    }

    fn parse(kind: &str, item: &str) -> Option<Self> {
        match kind {
            "disclosure" => Some(Self::Disclosure(item.to_owned())),
            "page" => item.parse().ok().map(Self::Page),
            "displayed" => item.parse().ok().map(Self::Displayed),
            "pdf" => Some(Self::Pdf),
            // Written by a newer release on another node: the reader reports the row and does not guess.
            _ => None,
        }
    }
}

/// Signer who reads a document on pages of this service. Another person in the same place is another reader.
#[derive(Clone, Copy, Debug)]
pub struct DocumentReader<'a> {
    pub org: &'a OrgId,
    /// Id in the signing room.
    pub submitter: i64,
    /// E-mail address.
    pub person: &'a str,
}

/// Keeps a text for ever; one that is kept already stays as it is.
pub async fn keep(
    tx: &mut WriteTransaction,
    org: &OrgId,
    text: &KeptDisclosure,
    now: Timestamp,
) -> Result<(), StoreError> {
    // The digest is the key: the text of a row never changes under a signature that names it.
    sqlx::query(
        "insert into disclosure (bucket, org_id, sha256, version, locale, body, first_shown_at)
         values ($1, $2, $3, $4, $5, $6, $7)
         on conflict (bucket, org_id, sha256) do nothing",
    )
    .bind_org(org)
    .bind(&text.sha256)
    .bind(&text.version)
    .bind(&text.locale)
    .bind(&text.body)
    .bind(now.to_string())
    .run(tx)
    .await
}

/// Returns the text with this SHA-256, if the organization's signers were ever shown it.
pub async fn body(
    connection: &mut SqlConnection,
    org: &OrgId,
    sha256: &str,
) -> Result<Option<String>, StoreError> {
    let row = sqlx::query(
        "select body from disclosure where bucket = $1 and org_id = $2 and sha256 = $3",
    )
    .bind_org(org)
    .bind(sha256)
    .fetch_optional(connection)
    .await?;

    Ok(row.map(|row| row.try_get("body")).transpose()?)
}

/// Records that something was delivered; the first time counts.
pub async fn delivered(
    tx: &mut WriteTransaction,
    reader: DocumentReader<'_>,
    item: &DeliveredItem,
    now: Timestamp,
) -> Result<(), StoreError> {
    let (kind, item) = item.columns();
    // The evidence states since when the signer had access, so a later delivery does not move the time.
    sqlx::query(
        "insert into signer_delivery (bucket, org_id, submitter_id, person, kind, item, at)
         values ($1, $2, $3, $4, $5, $6, $7)
         on conflict (bucket, org_id, submitter_id, person, kind, item) do nothing",
    )
    .bind_org(reader.org)
    .bind(reader.submitter)
    .bind(reader.person)
    .bind(kind)
    .bind(item)
    .bind(now.to_string())
    .run(tx)
    .await
}

/// Returns all that was delivered to a reader, with the time of the first delivery.
pub async fn deliveries(
    connection: &mut SqlConnection,
    reader: DocumentReader<'_>,
) -> Result<Vec<(DeliveredItem, Timestamp)>, StoreError> {
    // By person, and not only by place: a person who replaces the signer has seen nothing yet.
    let rows = sqlx::query(
        "select person, kind, item, at from signer_delivery
         where bucket = $1 and org_id = $2 and submitter_id = $3 and person = $4
         order by at, kind, item",
    )
    .bind_org(reader.org)
    .bind(reader.submitter)
    .bind(reader.person)
    .fetch_all(connection)
    .await?;

    rows.iter()
        .map(|row| {
            let columns = RowColumns::of(row, "signer_delivery", "person");
            let item = columns.text("item")?;
            let item = columns.parsed("kind", |kind| DeliveredItem::parse(kind, &item))?;
            Ok((item, columns.time("at")?))
        })
        .collect()
}
