//! Open links of templates, the records of their visitors, and how often visitors did something.

use crate::SqlConnection;
use sqlx::AssertSqlSafe;

use super::page::PagedQuery;
use super::row::{json_text, locked_by_id, query_rows, row_by_id, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::{CustomerId, EnvelopeId, OpenLinkId, OrgId, TemplateId};
use holdfast_domain::open_link::{OpenLink, ProofOfWork};
use holdfast_domain::token::LinkToken;

/// Counter of the visitors of a link.
#[derive(Clone, Copy, Debug)]
pub enum LinkCounter<'a> {
    /// Wrong passcodes from a network.
    CodesOf(&'a str),
    /// Wrong passcodes from all networks.
    Codes,
    /// Records that a network made.
    RecordsOf(&'a str),
    /// Records of all networks.
    Records,
    /// Records that a network made without a proof of work.
    UnprovedOf(&'a str),
    /// Records of all networks without a proof of work.
    Unproved,
    /// Uses of a challenge, by its random part.
    Challenge(&'a str),
}

impl<'a> LinkCounter<'a> {
    /// Returns the columns `kind` and `network`.
    fn key(self) -> (&'static str, &'a str) {
        match self {
            Self::CodesOf(network) => ("codes", network),
            Self::Codes => ("all_codes", ""),
            Self::RecordsOf(network) => ("records", network),
            Self::Records => ("all_records", ""),
            Self::UnprovedOf(network) => ("unproved", network),
            Self::Unproved => ("all_unproved", ""),
            Self::Challenge(random) => ("challenges", random),
        }
    }
}

/// How often something happened.
#[derive(Clone, Copy, Debug)]
pub struct LinkCount {
    pub number: i64,
    /// Time of the first one.
    pub began_at: Timestamp,
}

/// Inserts a link. Of its token, `link` has the encrypted text; the hash finds it.
pub async fn insert(
    tx: &mut WriteTransaction,
    link: &OpenLink,
    token: &LinkToken,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into open_link (bucket, open_link_id, org_id, template_id, name, role, signers, expires_at,
             record_limit, used, code, notify, verify_email, token_hash, token, created_by, owner_email,
             created_at, proof_of_work)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)",
    )
    .bind_key(&link.org, link.id.as_str())
    .bind(link.org.as_str())
    .bind(link.template.as_str())
    .bind(&link.name)
    .bind(&link.role)
    .bind(json_text(&link.signers))
    .bind(link.expires_at.to_string())
    .bind(link.limit)
    .bind(link.used)
    .bind(link.code.as_deref())
    .bind(json_text(&link.notify))
    .bind(i64::from(link.verify_email))
    .bind(token.hash().as_str())
    .bind(&link.token)
    .bind(&link.created_by)
    .bind(link.owner_email.as_deref())
    .bind(link.created_at.to_string())
    .bind(link.proof_of_work.as_str())
    .run(tx)
    .await
}

pub async fn get(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &OpenLinkId,
) -> Result<Option<OpenLink>, StoreError> {
    row_by_id(connection, org, id.as_str()).await
}

/// Returns the link with a token; none for an unknown one.
pub async fn by_token(
    connection: &mut SqlConnection,
    token: &LinkToken,
) -> Result<Option<OpenLink>, StoreError> {
    // The visitor knows the token only, which names the bucket.
    query_rows("select {columns} from open_link where bucket = $1 and token_hash = $2")
        .bind(token.bucket())
        .bind(token.hash().as_str())
        .fetch_optional(connection)
        .await
}

/// Returns a link with its row locked until the transaction ends.
pub async fn lock(
    tx: &mut WriteTransaction,
    org: &OrgId,
    id: &OpenLinkId,
) -> Result<Option<OpenLink>, StoreError> {
    locked_by_id(tx, org, id.as_str()).await
}

/// Returns a page of the links of a template, newest first, and the total number.
pub async fn list(
    connection: &mut SqlConnection,
    org: &OrgId,
    template: &TemplateId,
    page: i64,
    limit: i64,
) -> Result<(Vec<OpenLink>, i64), StoreError> {
    let list = PagedQuery {
        select: "select {columns} from open_link",
        bucket: org.bucket(),
        wanted: &[
            ("org_id", Some(org.as_str())),
            ("template_id", Some(template.as_str())),
        ],
        compared: &[],
        also: "",
    };

    list.page(connection, page, limit).await
}

/// Takes one of the remaining records. Returns false if the link is used up, expired or closed.
pub async fn take(
    tx: &mut WriteTransaction,
    link: &OpenLink,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let is_open = "used < record_limit and closed_at is null and expires_at > $4";
    change_if(tx, link, "used = used + 1", is_open, now).await
}

/// Closes a link. Returns false if it was closed before.
pub async fn close(
    tx: &mut WriteTransaction,
    link: &OpenLink,
    now: Timestamp,
) -> Result<bool, StoreError> {
    change_if(tx, link, "closed_at = $4", "closed_at is null", now).await
}

/// Notes whether the people of a link fit its template, as a visitor found. Returns false if this was noted before.
pub async fn note_available(
    tx: &mut WriteTransaction,
    link: &OpenLink,
    is_available: bool,
    now: Timestamp,
) -> Result<bool, StoreError> {
    if is_available {
        // A note of this moment, by a node with a faster clock, stays until the next visit.
        return change_if(
            tx,
            link,
            "unavailable_at = null",
            "unavailable_at <= $4",
            now,
        )
        .await;
    }
    change_if(
        tx,
        link,
        "unavailable_at = $4",
        "unavailable_at is null",
        now,
    )
    .await
}

/// Changes a link under a condition; `$4` is the time in both. Returns false if the condition does not hold.
async fn change_if(
    tx: &mut WriteTransaction,
    link: &OpenLink,
    change: &str,
    condition: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    // Compare-and-swap in one statement: visitors at two nodes cannot both take the last record.
    let text = format!(
        "update open_link set {change}
         where bucket = $1 and org_id = $2 and open_link_id = $3 and {condition}"
    );
    sqlx::query(AssertSqlSafe(text))
        .bind_org(&link.org)
        .bind(link.id.as_str())
        .bind(now.to_string())
        .changes_row(tx)
        .await
}

/// Returns the links of a template that were not closed, oldest first.
pub async fn unclosed(
    connection: &mut SqlConnection,
    org: &OrgId,
    template: &TemplateId,
) -> Result<Vec<OpenLink>, StoreError> {
    query_rows(
        "select {columns} from open_link
         where bucket = $1 and org_id = $2 and template_id = $3 and closed_at is null
         order by open_link_id",
    )
    .bind_org(org)
    .bind(template.as_str())
    .fetch_all(connection)
    .await
}

table_row! {
    OpenLink of "open_link" by "open_link_id" {
        id: parsed("open_link_id", OpenLinkId::parse),
        org: parsed("org_id", OrgId::parse),
        template: parsed("template_id", TemplateId::parse),
        name: text("name"),
        role: text("role"),
        signers: json("signers"),
        expires_at: time("expires_at"),
        limit: number("record_limit"),
        used: number("used"),
        code: optional_text("code"),
        notify: json("notify"),
        verify_email: flag("verify_email"),
        proof_of_work: parsed("proof_of_work", ProofOfWork::parse),
        token: text("token"),
        created_by: text("created_by"),
        owner_email: optional_text("owner_email"),
        created_at: time("created_at"),
        closed_at: optional_time("closed_at"),
        unavailable_at: optional_time("unavailable_at"),
    }
}

/// Returns the newest record of a customer's address.
pub async fn record_of(
    connection: &mut SqlConnection,
    link: &OpenLink,
    customer: &CustomerId,
) -> Result<Option<EnvelopeId>, StoreError> {
    let row: Option<LinkRecord> = query_rows(
        "select {columns} from open_link_record
         where bucket = $1 and org_id = $2 and open_link_id = $3 and customer_id = $4",
    )
    .bind_org(&link.org)
    .bind(link.id.as_str())
    .bind(customer.as_str())
    .fetch_optional(connection)
    .await?;

    Ok(row.map(|row| row.envelope))
}

/// Record of an address.
struct LinkRecord {
    envelope: EnvelopeId,
}

table_row! {
    LinkRecord of "open_link_record" by "envelope_id" {
        envelope: parsed("envelope_id", EnvelopeId::parse),
    }
}

/// Makes an envelope the newest record of a customer's address.
pub async fn put_record(
    tx: &mut WriteTransaction,
    link: &OpenLink,
    customer: &CustomerId,
    envelope: &EnvelopeId,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into open_link_record (bucket, org_id, open_link_id, customer_id, envelope_id)
         values ($1, $2, $3, $4, $5)
         on conflict (bucket, org_id, open_link_id, customer_id) do update set envelope_id = $5",
    )
    .bind_org(&link.org)
    .bind(link.id.as_str())
    .bind(customer.as_str())
    .bind(envelope.as_str())
    .run(tx)
    .await
}

/// Returns how often something happened.
pub async fn count_of(
    connection: &mut SqlConnection,
    link: &OpenLink,
    counter: LinkCounter<'_>,
) -> Result<Option<LinkCount>, StoreError> {
    let (kind, network) = counter.key();
    query_rows(
        "select {columns} from open_link_count
         where bucket = $1 and org_id = $2 and open_link_id = $3 and kind = $4 and network = $5",
    )
    .bind_org(&link.org)
    .bind(link.id.as_str())
    .bind(kind)
    .bind(network)
    .fetch_optional(connection)
    .await
}

table_row! {
    LinkCount of "open_link_count" by "open_link_id" also "open_link_id" {
        number: number("number"),
        began_at: time("began_at"),
    }
}

/// Records how often something happened, and forgets all counts of its kind that began at or before `forgotten`.
pub async fn put_count(
    tx: &mut WriteTransaction,
    link: &OpenLink,
    counter: LinkCounter<'_>,
    count: LinkCount,
    forgotten: Timestamp,
) -> Result<(), StoreError> {
    let (kind, network) = counter.key();
    sqlx::query(
        "delete from open_link_count
         where bucket = $1 and org_id = $2 and open_link_id = $3 and kind = $4 and began_at <= $5",
    )
    .bind_org(&link.org)
    .bind(link.id.as_str())
    .bind(kind)
    .bind(forgotten.to_string())
    .run(tx)
    .await?;

    sqlx::query(
        "insert into open_link_count (bucket, org_id, open_link_id, kind, network, number, began_at)
         values ($1, $2, $3, $4, $5, $6, $7)
         on conflict (bucket, org_id, open_link_id, kind, network)
             do update set number = $6, began_at = $7",
    )
    .bind_org(&link.org)
    .bind(link.id.as_str())
    .bind(kind)
    .bind(network)
    .bind(count.number)
    .bind(count.began_at.to_string())
    .run(tx)
    .await
}
