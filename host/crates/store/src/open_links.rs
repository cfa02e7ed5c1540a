//! Open links of templates, and wrong passcodes of their visitors.

use crate::SqlConnection;

use super::page::PagedQuery;
use super::row::{json_text, query_locked, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::{OpenLinkId, OrgId, TemplateId};
use holdfast_domain::open_link::OpenLink;
use holdfast_domain::token::LinkToken;

/// Wrong passcodes from one network.
#[derive(Clone, Copy, Debug)]
pub struct CodeFailures {
    pub failures: i64,
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
             created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)",
    )
    .bind(link.org.bucket())
    .bind(link.id.as_str())
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
    .run(tx)
    .await
}

pub async fn get(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &OpenLinkId,
) -> Result<Option<OpenLink>, StoreError> {
    query_rows(
        "select {columns} from open_link where bucket = $1 and org_id = $2 and open_link_id = $3",
    )
    .bind(org.bucket())
    .bind(org.as_str())
    .bind(id.as_str())
    .fetch_optional(connection)
    .await
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
    query_locked(
        tx,
        "select {columns} from open_link where bucket = $1 and org_id = $2 and open_link_id = $3",
    )
    .bind(org.bucket())
    .bind(org.as_str())
    .bind(id.as_str())
    .fetch_optional(tx)
    .await
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
    // Compare-and-swap in one statement: visitors at two nodes cannot both take the last record.
    sqlx::query(
        "update open_link set used = used + 1
         where bucket = $1 and org_id = $2 and open_link_id = $3 and used < record_limit
             and closed_at is null and expires_at > $4",
    )
    .bind(link.org.bucket())
    .bind(link.org.as_str())
    .bind(link.id.as_str())
    .bind(now.to_string())
    .changes_row(tx)
    .await
}

/// Closes a link. Returns false if it was closed before.
pub async fn close(
    tx: &mut WriteTransaction,
    link: &OpenLink,
    now: Timestamp,
) -> Result<bool, StoreError> {
    sqlx::query(
        "update open_link set closed_at = $4
         where bucket = $1 and org_id = $2 and open_link_id = $3 and closed_at is null",
    )
    .bind(link.org.bucket())
    .bind(link.org.as_str())
    .bind(link.id.as_str())
    .bind(now.to_string())
    .changes_row(tx)
    .await
}

/// Closes the links of a template.
pub async fn close_all(
    tx: &mut WriteTransaction,
    org: &OrgId,
    template: &TemplateId,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "update open_link set closed_at = $4
         where bucket = $1 and org_id = $2 and template_id = $3 and closed_at is null",
    )
    .bind(org.bucket())
    .bind(org.as_str())
    .bind(template.as_str())
    .bind(now.to_string())
    .run(tx)
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
        token: text("token"),
        created_by: text("created_by"),
        owner_email: optional_text("owner_email"),
        created_at: time("created_at"),
        closed_at: optional_time("closed_at"),
    }
}

/// Returns the wrong passcodes of a network.
pub async fn failures_of(
    connection: &mut SqlConnection,
    link: &OpenLink,
    network: &str,
) -> Result<Option<CodeFailures>, StoreError> {
    query_rows(
        "select {columns} from open_link_failure
         where bucket = $1 and org_id = $2 and open_link_id = $3 and network = $4",
    )
    .bind(link.org.bucket())
    .bind(link.org.as_str())
    .bind(link.id.as_str())
    .bind(network)
    .fetch_optional(connection)
    .await
}

table_row! {
    CodeFailures of "open_link_failure" by "open_link_id" also "open_link_id" {
        failures: number("failures"),
        began_at: time("began_at"),
    }
}

/// Records the wrong passcodes of a network, and forgets those of all networks that began at or before
/// `forgotten`.
pub async fn put_failures(
    tx: &mut WriteTransaction,
    link: &OpenLink,
    network: &str,
    state: CodeFailures,
    forgotten: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "delete from open_link_failure
         where bucket = $1 and org_id = $2 and open_link_id = $3 and began_at <= $4",
    )
    .bind(link.org.bucket())
    .bind(link.org.as_str())
    .bind(link.id.as_str())
    .bind(forgotten.to_string())
    .run(tx)
    .await?;

    sqlx::query(
        "insert into open_link_failure (bucket, open_link_id, network, org_id, failures, began_at)
         values ($1, $2, $3, $4, $5, $6)
         on conflict (bucket, org_id, open_link_id, network) do update set failures = $5, began_at = $6",
    )
    .bind(link.org.bucket())
    .bind(link.id.as_str())
    .bind(network)
    .bind(link.org.as_str())
    .bind(state.failures)
    .bind(state.began_at.to_string())
    .run(tx)
    .await
}
