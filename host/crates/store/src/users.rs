//! Users, their sign-in links and their sessions.

use crate::SqlConnection;
use sqlx::{AssertSqlSafe, Row as _};

use super::row::{locked_by_id, query_rows, row_by_id, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::{OrgId, SessionId, SignInId, UserId};
use holdfast_domain::organization::Role;
use holdfast_domain::token::{LinkToken, SecretHash};
use holdfast_domain::user::{IssuerIdentity, Session, SignInLink, User, UserStatus};

pub async fn insert(tx: &mut WriteTransaction, user: &User) -> Result<(), StoreError> {
    sqlx::query(
        "insert into org_user (bucket, user_id, org_id, email, role, status, created_by, created_at,
             issuer, subject, proved_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    )
    .bind_key(&user.org, user.id.as_str())
    .bind(user.org.as_str())
    .bind(&user.email)
    .bind(user.role.as_str())
    .bind(user.status.as_str())
    .bind(&user.created_by)
    .bind(user.created_at.to_string())
    .bind(user.identity.as_ref().map(|one| one.issuer.as_str()))
    .bind(user.identity.as_ref().map(|one| one.subject.as_str()))
    .bind(user.proved_at.map(|at| at.to_string()))
    .run(tx)
    .await
}

/// Stores everything of a user that changes.
pub async fn update(tx: &mut WriteTransaction, user: &User) -> Result<(), StoreError> {
    // The address is left out: another address is another user.
    sqlx::query(
        "update org_user set role = $4, status = $5, signed_in_at = $6, created_by = $7, issuer = $8,
             subject = $9, proved_at = $10
         where bucket = $1 and org_id = $2 and user_id = $3",
    )
    .bind_org(&user.org)
    .bind(user.id.as_str())
    .bind(user.role.as_str())
    .bind(user.status.as_str())
    .bind(user.signed_in_at.map(|at| at.to_string()))
    .bind(&user.created_by)
    .bind(user.identity.as_ref().map(|one| one.issuer.as_str()))
    .bind(user.identity.as_ref().map(|one| one.subject.as_str()))
    .bind(user.proved_at.map(|at| at.to_string()))
    .run(tx)
    .await
}

/// Notes that a user showed a mailed link or a passkey. Nothing else of the user is written: it may be changing.
pub async fn prove(
    tx: &mut WriteTransaction,
    org: &OrgId,
    id: &UserId,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "update org_user set proved_at = $4 where bucket = $1 and org_id = $2 and user_id = $3",
    )
    .bind_org(org)
    .bind(id.as_str())
    .bind(now.to_string())
    .run(tx)
    .await
}

pub async fn get(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &UserId,
) -> Result<Option<User>, StoreError> {
    row_by_id(connection, org, id.as_str()).await
}

/// Like [`get`], with the row locked until the transaction ends.
pub async fn lock(
    tx: &mut WriteTransaction,
    org: &OrgId,
    id: &UserId,
) -> Result<Option<User>, StoreError> {
    locked_by_id(tx, org, id.as_str()).await
}

/// Returns the users of an organization, oldest first.
pub async fn list(connection: &mut SqlConnection, org: &OrgId) -> Result<Vec<User>, StoreError> {
    query_rows("select {columns} from org_user where bucket = $1 and org_id = $2 order by user_id")
        .bind_org(org)
        .fetch_all(connection)
        .await
}

/// Returns the user of an organization with an address.
pub async fn by_address(
    connection: &mut SqlConnection,
    org: &OrgId,
    email: &str,
) -> Result<Option<User>, StoreError> {
    query_rows("select {columns} from org_user where bucket = $1 and org_id = $2 and email = $3")
        .bind_org(org)
        .bind(email)
        .fetch_optional(connection)
        .await
}

/// Returns the user of an organization with an account at an issuer.
pub async fn by_identity(
    connection: &mut SqlConnection,
    org: &OrgId,
    identity: &IssuerIdentity,
) -> Result<Option<User>, StoreError> {
    // Issuer and subject identify an account, because an issuer may give
    // an address to another person (OpenID Connect Core 1.0, section 5.7).
    query_rows(
        "select {columns} from org_user
         where bucket = $1 and org_id = $2 and issuer = $3 and subject = $4",
    )
    .bind_org(org)
    .bind(&identity.issuer)
    .bind(&identity.subject)
    .fetch_optional(connection)
    .await
}

/// Binds a user who has no account at an issuer yet to one. Returns whether it did.
pub async fn bind(
    tx: &mut WriteTransaction,
    user: &User,
    identity: &IssuerIdentity,
) -> Result<bool, StoreError> {
    // The first account stays: another one with the same address must not take the user over.
    let done = sqlx::query(
        "update org_user set issuer = $4, subject = $5
         where bucket = $1 and org_id = $2 and user_id = $3 and issuer is null",
    )
    .bind_org(&user.org)
    .bind(user.id.as_str())
    .bind(&identity.issuer)
    .bind(&identity.subject)
    .execute(&mut **tx)
    .await?;

    Ok(done.rows_affected() > 0)
}

/// Returns the users with an address, in all organizations.
pub async fn with_address(
    connection: &mut SqlConnection,
    email: &str,
) -> Result<Vec<User>, StoreError> {
    // The sign-in page knows only the address, so all organizations are searched.
    query_rows(
        "select {columns} from org_user where email = $1 and status <> 'ended' order by user_id",
    )
    .bind(email)
    .fetch_all(connection)
    .await
}

pub async fn insert_link(tx: &mut WriteTransaction, link: &SignInLink) -> Result<(), StoreError> {
    // No secret is stored: it is derived from the id, so that a mail that is sent again has the same link.
    sqlx::query(
        "insert into sign_in_link (bucket, link_id, org_id, user_id, created_at, expires_at, leads_to)
         values ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind_key(&link.org, link.id.as_str())
    .bind(link.org.as_str())
    .bind(link.user.as_str())
    .bind(link.created_at.to_string())
    .bind(link.expires_at.to_string())
    .bind(link.leads_to.as_deref())
    .run(tx)
    .await
}

/// Returns a link of any organization; who has it knows only its id.
pub async fn link(
    connection: &mut SqlConnection,
    id: &SignInId,
) -> Result<Option<SignInLink>, StoreError> {
    query_rows("select {columns} from sign_in_link where link_id = $1")
        .bind(id.as_str())
        .fetch_optional(connection)
        .await
}

/// Links of a user within a time.
pub struct SentLinks {
    pub count: i64,
    pub last: Option<Timestamp>,
}

/// Counts the links that were sent to a user since a time.
pub async fn links_since(
    connection: &mut SqlConnection,
    user: &User,
    since: Timestamp,
) -> Result<SentLinks, StoreError> {
    let row = sqlx::query(
        "select count(*) as count, max(created_at) as last from sign_in_link
         where bucket = $1 and org_id = $2 and user_id = $3 and created_at > $4",
    )
    .bind_org(&user.org)
    .bind(user.id.as_str())
    .bind(since.to_string())
    .fetch_one(connection)
    .await?;

    let last: Option<String> = row.try_get("last")?;
    Ok(SentLinks {
        count: row.try_get("count")?,
        last: last.and_then(|last| Timestamp::parse(&last)),
    })
}

/// Returns the newest unused link of a user that ends within a time.
pub async fn open_link(
    connection: &mut SqlConnection,
    user: &User,
    after: Timestamp,
    until: Timestamp,
) -> Result<Option<SignInLink>, StoreError> {
    query_rows(
        "select {columns} from sign_in_link
         where bucket = $1 and org_id = $2 and user_id = $3 and used_at is null
             and expires_at > $4 and expires_at <= $5
         order by created_at desc limit 1",
    )
    .bind_org(&user.org)
    .bind(user.id.as_str())
    .bind(after.to_string())
    .bind(until.to_string())
    .fetch_optional(connection)
    .await
}

/// Mails that were asked for at the sign-in page within a time.
pub struct RequestedMails {
    pub of_network: i64,
    pub all: i64,
    pub last: Option<Timestamp>,
}

/// Counts the mails to a user that were asked for since a time, from one network and from all.
pub async fn requested_mails(
    connection: &mut SqlConnection,
    user: &User,
    network: &str,
    since: Timestamp,
) -> Result<RequestedMails, StoreError> {
    // Two numbers, because one network must not use up the mails that others may ask for.
    let row = sqlx::query(
        "select count(*) as mails, count(case when network = $5 then 1 end) as of_network,
             max(sent_at) as last
         from sign_in_mail
         where bucket = $1 and org_id = $2 and user_id = $3 and sent_at > $4",
    )
    .bind_org(&user.org)
    .bind(user.id.as_str())
    .bind(since.to_string())
    .bind(network)
    .fetch_one(connection)
    .await?;

    let last: Option<String> = row.try_get("last")?;
    Ok(RequestedMails {
        of_network: row.try_get("of_network")?,
        all: row.try_get("mails")?,
        last: last.and_then(|last| Timestamp::parse(&last)),
    })
}

/// Records a mail that a network asked for.
pub async fn insert_requested_mail(
    tx: &mut WriteTransaction,
    user: &User,
    link: &SignInId,
    network: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into sign_in_mail (bucket, org_id, user_id, link_id, network, sent_at)
         values ($1, $2, $3, $4, $5, $6)",
    )
    .bind_org(&user.org)
    .bind(user.id.as_str())
    .bind(link.as_str())
    .bind(network)
    .bind(now.to_string())
    .run(tx)
    .await
}

/// Uses a link. Returns false if it was used before.
pub async fn use_link(
    tx: &mut WriteTransaction,
    link: &SignInLink,
    now: Timestamp,
) -> Result<bool, StoreError> {
    // Of two requests with one link, one signs in.
    sqlx::query(
        "update sign_in_link set used_at = $4
         where bucket = $1 and org_id = $2 and link_id = $3 and used_at is null",
    )
    .bind_org(&link.org)
    .bind(link.id.as_str())
    .bind(now.to_string())
    .changes_row(tx)
    .await
}

/// Ends all open links of a user.
pub async fn end_links(
    tx: &mut WriteTransaction,
    user: &User,
    now: Timestamp,
) -> Result<(), StoreError> {
    // The rows stay: `links_since` counts them.
    sqlx::query(
        "update sign_in_link set used_at = $4
         where bucket = $1 and org_id = $2 and user_id = $3 and used_at is null",
    )
    .bind_org(&user.org)
    .bind(user.id.as_str())
    .bind(now.to_string())
    .run(tx)
    .await
}

pub async fn insert_session(
    tx: &mut WriteTransaction,
    session: &Session,
    secret: &SecretHash,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into user_session (bucket, session_id, org_id, user_id, secret_hash, created_at,
             seen_at, expires_at, address, browser, confirmed_at, issuer)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
    )
    .bind_key(&session.org, session.id.as_str())
    .bind(session.org.as_str())
    .bind(session.user.as_str())
    // A hash: a copy of the database opens no session.
    .bind(secret.as_str())
    .bind(session.created_at.to_string())
    .bind(session.seen_at.to_string())
    .bind(session.expires_at.to_string())
    .bind(session.address.as_deref())
    .bind(session.browser.as_deref())
    .bind(session.confirmed_at.to_string())
    .bind(session.issuer.as_deref())
    .run(tx)
    .await
}

/// Returns the session of a secret, with its user.
pub async fn session_of(
    connection: &mut SqlConnection,
    secret: &LinkToken,
    now: Timestamp,
) -> Result<Option<(Session, User)>, StoreError> {
    let session: Option<Session> = query_rows(
        "select {columns} from user_session
         where bucket = $1 and secret_hash = $2 and expires_at > $3",
    )
    .bind(secret.bucket())
    .bind(secret.hash().as_str())
    .bind(now.to_string())
    .fetch_optional(&mut *connection)
    .await?;
    let Some(session) = session else {
        return Ok(None);
    };

    // Read with each request: a user who lost access is out at once, and not only when the session ends.
    let user = get(connection, &session.org, &session.user).await?;
    let user = user.filter(|user| user.status == UserStatus::Active);
    Ok(user.map(|user| (session, user)))
}

/// Returns the open sessions of a user, newest first.
pub async fn sessions(
    connection: &mut SqlConnection,
    user: &User,
    now: Timestamp,
    seen_after: Timestamp,
) -> Result<Vec<Session>, StoreError> {
    query_rows(
        "select {columns} from user_session
         where bucket = $1 and org_id = $2 and user_id = $3 and expires_at > $4 and seen_at > $5
         order by session_id desc",
    )
    .bind_org(&user.org)
    .bind(user.id.as_str())
    .bind(now.to_string())
    .bind(seen_after.to_string())
    .fetch_all(connection)
    .await
}

/// Notes that a session was used.
pub async fn seen(
    tx: &mut WriteTransaction,
    session: &Session,
    now: Timestamp,
) -> Result<(), StoreError> {
    // Parallel requests may write in another order than they read the clock.
    sqlx::query(
        "update user_session set seen_at = $4
         where bucket = $1 and org_id = $2 and session_id = $3 and seen_at < $4",
    )
    .bind_org(&session.org)
    .bind(session.id.as_str())
    .bind(now.to_string())
    .run(tx)
    .await
}

/// Notes that the user of a session showed who they are.
pub async fn confirm_session(
    tx: &mut WriteTransaction,
    session: &Session,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "update user_session set confirmed_at = $4
         where bucket = $1 and org_id = $2 and session_id = $3",
    )
    .bind_org(&session.org)
    .bind(session.id.as_str())
    .bind(now.to_string())
    .run(tx)
    .await
}

/// Ends one session of a user, or all of them. Returns how many.
pub async fn end_sessions(
    tx: &mut WriteTransaction,
    user: &User,
    only: Option<&SessionId>,
) -> Result<u64, StoreError> {
    // Deleted rows end the session on every node with its next request.
    let done = sqlx::query(
        "delete from user_session
         where bucket = $1 and org_id = $2 and user_id = $3 and ($4 = '' or session_id = $4)",
    )
    .bind_org(&user.org)
    .bind(user.id.as_str())
    .bind(only.map_or("", SessionId::as_str))
    .execute(&mut **tx)
    .await?;

    Ok(done.rows_affected())
}

/// Deletes sessions and links that expired before a time.
pub async fn forget(tx: &mut WriteTransaction, before: Timestamp) -> Result<(), StoreError> {
    for text in [
        "delete from user_session where expires_at < $1",
        "delete from sign_in_link where expires_at < $1",
        "delete from sign_in_mail where sent_at < $1",
    ] {
        sqlx::query(AssertSqlSafe(text))
            .bind(before.to_string())
            .execute(&mut **tx)
            .await?;
    }

    Ok(())
}

table_row! {
    User of "org_user" by "user_id" also "issuer", "subject" {
        id: parsed("user_id", UserId::parse),
        org: parsed("org_id", OrgId::parse),
        email: text("email"),
        role: parsed("role", Role::parse),
        status: parsed("status", UserStatus::parse),
        created_by: text("created_by"),
        created_at: time("created_at"),
        signed_in_at: optional_time("signed_in_at"),
        // Users of earlier releases get an account with their next sign-in at the issuer.
        identity: |row| {
            let issuer = row.optional_text("issuer")?;
            let account = issuer.zip(row.optional_text("subject")?);
            account.map(|(issuer, subject)| IssuerIdentity { issuer, subject })
        },
        proved_at: optional_time("proved_at"),
    }
}

table_row! {
    SignInLink of "sign_in_link" by "link_id" {
        id: parsed("link_id", SignInId::parse),
        org: parsed("org_id", OrgId::parse),
        user: parsed("user_id", UserId::parse),
        created_at: time("created_at"),
        expires_at: time("expires_at"),
        used_at: optional_time("used_at"),
        leads_to: optional_text("leads_to"),
    }
}

table_row! {
    Session of "user_session" by "session_id" also "confirmed_at" {
        id: parsed("session_id", SessionId::parse),
        org: parsed("org_id", OrgId::parse),
        user: parsed("user_id", UserId::parse),
        created_at: time("created_at"),
        // Sessions of earlier releases were confirmed by their sign-in only.
        confirmed_at: |row| match row.optional_time("confirmed_at")? {
            Some(at) => at,
            None => row.time("created_at")?,
        },
        seen_at: time("seen_at"),
        expires_at: time("expires_at"),
        address: optional_text("address"),
        browser: optional_text("browser"),
        issuer: optional_text("issuer"),
    }
}
