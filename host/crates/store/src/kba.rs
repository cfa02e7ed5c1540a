//! Identity check sessions of signers, and their billing.

use crate::SqlConnection;

use super::row::{RowColumns, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, Signer};
use holdfast_domain::id::{EnvelopeId, KbaId, OrgId};
use holdfast_domain::identity::{KbaSession, KbaStatus, KbaStep};
use holdfast_domain::token::SecretHash;

/// Adds a new session.
pub async fn insert(tx: &mut WriteTransaction, session: &KbaSession) -> Result<(), StoreError> {
    // Committed before the provider is called, so that the attempt counts in any case.
    sqlx::query(
        "insert into kba_session (bucket, kba_id, org_id, envelope_id, position, email, instance,
             status, step, ip_address, price_cents, started_at, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0, $11, $12)",
    )
    .bind_key(&session.org, session.id.as_str())
    .bind(session.org.as_str())
    .bind(session.envelope.as_str())
    .bind(session.position)
    .bind(&session.email)
    .bind(&session.instance)
    .bind(session.status.as_str())
    .bind(session.step.as_str())
    .bind(session.ip.as_deref())
    .bind(session.started_at.to_string())
    .bind(session.expires_at.to_string())
    .run(tx)
    .await
}

/// Returns all sessions of an envelope, oldest first.
pub async fn list(
    connection: &mut SqlConnection,
    org: &OrgId,
    envelope: &EnvelopeId,
) -> Result<Vec<KbaSession>, StoreError> {
    query_rows(
        "select {columns} from kba_session where bucket = $1 and envelope_id = $2 and org_id = $3
         order by kba_id",
    )
    .bind_key(org, envelope.as_str())
    .bind(org.as_str())
    .fetch_all(connection)
    .await
}

/// Returns the sessions of one signer, oldest first,
/// without those of a person replaced by this signer.
pub async fn of_signer(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    signer: &Signer,
) -> Result<Vec<KbaSession>, StoreError> {
    let mut all = list(connection, &envelope.org, &envelope.id).await?;
    // A signer can be replaced; the earlier person's results must not count.
    all.retain(|session| session.is_of(signer));
    Ok(all)
}

/// Browser in which a signer opened the document.
#[derive(Clone, Debug)]
pub struct SignerBrowser {
    /// Hash of its cookie.
    pub hash: SecretHash,
    pub ip: Option<String>,
    /// Time at which it was added after the check had passed in another browser; none for the
    /// browser that passed.
    pub rebound_at: Option<Timestamp>,
}

/// Returns the browsers of one signer, without those of a person replaced by this signer.
pub async fn browsers(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    signer: &Signer,
) -> Result<Vec<SignerBrowser>, StoreError> {
    query_rows(
        "select {columns} from kba_browser
         where bucket = $1 and envelope_id = $2 and position = $3 and org_id = $4 and email = $5",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(signer.position)
    .bind(envelope.org.as_str())
    // Written and read in lower case, because SQL compares letters exactly.
    .bind(signer.email.to_lowercase())
    .fetch_all(connection)
    .await
}

table_row! {
    SignerBrowser of "kba_browser" by "envelope_id" also "envelope_id", "hash" {
        hash: |row| SecretHash::kept(row.text("hash")?),
        ip: optional_text("ip_address"),
        rebound_at: optional_time("rebound_at"),
    }
}

/// Returns when signers of an envelope used another browser than the one that passed: e-mail
/// addresses and times, oldest first.
pub async fn rebound(
    connection: &mut SqlConnection,
    org: &OrgId,
    envelope: &EnvelopeId,
) -> Result<Vec<(String, Timestamp)>, StoreError> {
    // People who were replaced later are included: these are facts about the whole envelope.
    sqlx::query(
        "select envelope_id, email, rebound_at from kba_browser
         where bucket = $1 and envelope_id = $2 and org_id = $3 and rebound_at is not null
         order by rebound_at, hash",
    )
    .bind_key(org, envelope.as_str())
    .bind(org.as_str())
    .fetch_all(connection)
    .await?
    .iter()
    .map(|row| {
        let columns = RowColumns::of(row, "kba_browser", "envelope_id");
        Ok((columns.text("email")?, columns.time("rebound_at")?))
    })
    .collect()
}

/// Adds a signer's browser.
pub async fn add_browser(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    signer: &Signer,
    browser: &SignerBrowser,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into kba_browser (bucket, envelope_id, position, hash, org_id, email, ip_address,
             rebound_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(signer.position)
    .bind(browser.hash.as_str())
    .bind(envelope.org.as_str())
    .bind(signer.email.to_lowercase())
    .bind(browser.ip.as_deref())
    .bind(browser.rebound_at.map(|at| at.to_string()))
    .run(tx)
    .await
}

/// Moves an open session to another step. Returns false if the session has changed meanwhile.
pub async fn step(
    tx: &mut WriteTransaction,
    session: &KbaSession,
    step: KbaStep,
    sealed: Option<&str>,
) -> Result<bool, StoreError> {
    // Compare-and-swap of step and sealed state: of two equal submissions, one reaches the provider.
    sqlx::query(
        "update kba_session set step = $4, sealed = $5
         where bucket = $1 and kba_id = $2 and step = $3 and status = 'open'
             and coalesce(sealed, '') = $6",
    )
    .bind_key(&session.org, session.id.as_str())
    .bind(session.step.as_str())
    .bind(step.as_str())
    .bind(sealed)
    .bind(session.sealed.as_deref().unwrap_or_default())
    .changes_row(tx)
    .await
}

/// Ends an open session and deletes its provider state. Returns false if it had ended before.
pub async fn end(
    tx: &mut WriteTransaction,
    session: &KbaSession,
    status: KbaStatus,
    provider_session: Option<&str>,
    price_cents: i64,
    now: Timestamp,
) -> Result<bool, StoreError> {
    // Expecting `open` lets the outcome and its price count once. The
    // sealed questions are personal data and go with the same statement.
    sqlx::query(
        "update kba_session
         set status = $3, provider_session_id = $4, price_cents = $5, ended_at = $6,
             ip_address = $7, sealed = null
         where bucket = $1 and kba_id = $2 and status = 'open'",
    )
    .bind_key(&session.org, session.id.as_str())
    .bind(status.as_str())
    .bind(provider_session)
    .bind(price_cents)
    .bind(now.to_string())
    .bind(session.ip.as_deref())
    .changes_row(tx)
    .await
}

/// Ends expired sessions. A session with a provider request in flight ends only if it expired at or
/// before `answering_since`.
pub async fn forget(
    tx: &mut WriteTransaction,
    answering_since: Timestamp,
    now: Timestamp,
) -> Result<(), StoreError> {
    // A request at the provider may still bring a result, which needs its session open.
    sqlx::query(
        "update kba_session set status = 'ended', ended_at = $1, sealed = null
         where status = 'open' and expires_at <= $1
             and (step in ('code', 'questions') or expires_at <= $2)",
    )
    .bind(now.to_string())
    .bind(answering_since.to_string())
    .run(tx)
    .await
}

/// Records the billing of a signer for a month. Returns false if this person, by address and name, was billed in
/// that month already.
pub async fn bill(
    tx: &mut WriteTransaction,
    session: &KbaSession,
    name: &str,
    month: &str,
) -> Result<bool, StoreError> {
    let (org, email) = (&session.org, session.email.to_lowercase());
    // Other spaces or capitals in a name are no other person.
    let name: Vec<&str> = name.split_whitespace().collect();
    // The primary key decides: of two sessions that pass at once, one is billed.
    let is_new_person = sqlx::query(
        "insert into kba_billed_person (bucket, org_id, month, email, name, kba_id)
         values ($1, $2, $3, $4, $5, $6)
         on conflict (bucket, org_id, month, email, name) do nothing",
    )
    .bind_org(org)
    .bind(month)
    .bind(&email)
    .bind(name.join(" ").to_lowercase())
    .bind(session.id.as_str())
    .changes_row(tx)
    .await?;

    if !is_new_person {
        return Ok(false);
    }

    // Nodes of earlier releases know only this table, and must not bill the person again.
    let is_new_address = sqlx::query(
        "insert into kba_billed (bucket, org_id, month, email, kba_id) values ($1, $2, $3, $4, $5)
         on conflict (bucket, org_id, month, email) do nothing",
    )
    .bind_org(org)
    .bind(month)
    .bind(&email)
    .bind(session.id.as_str())
    .changes_row(tx)
    .await?;

    if is_new_address {
        return Ok(true);
    }

    // Releases without `kba_billed_person` did not record the billed person: it may have been this one.
    sqlx::query(
        "select 1 from kba_billed address
         join kba_billed_person person
             on person.bucket = address.bucket and person.org_id = address.org_id
             and person.month = address.month and person.email = address.email
             and person.kba_id = address.kba_id
         where address.bucket = $1 and address.org_id = $2 and address.month = $3
             and address.email = $4",
    )
    .bind_org(org)
    .bind(month)
    .bind(&email)
    .finds_row(tx)
    .await
}

/// Sessions of one organization with one outcome in a period.
#[derive(Clone, Debug)]
pub struct KbaUsage {
    pub org: OrgId,
    pub status: KbaStatus,
    pub sessions: i64,
    /// Sessions that were billed: each signer's first pass of a month.
    pub billed: i64,
    /// Amount in US cents.
    pub amount_cents: i64,
}

/// Returns the sessions that ended from `from` to before `to`, by organization and outcome; of one organization, or of
/// all.
pub async fn usage(
    connection: &mut SqlConnection,
    org: Option<&OrgId>,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<KbaUsage>, StoreError> {
    // An abandoned session has no outcome to report.
    query_rows(
        "select org_id, status, count(*) as sessions,
             cast(sum(case when price_cents > 0 then 1 else 0 end) as bigint) as billed,
             cast(sum(price_cents) as bigint) as amount_cents
         from kba_session
         where ended_at >= $1 and ended_at < $2 and status in ('passed', 'failed', 'unavailable')
             and ($3 = '' or org_id = $3)
         group by org_id, status order by org_id, status",
    )
    .bind(from.to_string())
    .bind(to.to_string())
    .bind(org.map_or("", OrgId::as_str))
    .fetch_all(connection)
    .await
}

table_row! {
    KbaUsage of "kba_session" by "kba_id" {
        org: parsed("org_id", OrgId::parse),
        status: parsed("status", KbaStatus::parse),
        sessions: number("sessions"),
        billed: number("billed"),
        amount_cents: number("amount_cents"),
    }
}

table_row! {
    KbaSession of "kba_session" by "kba_id" {
        id: parsed("kba_id", KbaId::parse),
        org: parsed("org_id", OrgId::parse),
        envelope: parsed("envelope_id", EnvelopeId::parse),
        position: number("position"),
        email: text("email"),
        instance: text("instance"),
        status: parsed("status", KbaStatus::parse),
        step: parsed("step", KbaStep::parse),
        sealed: optional_text("sealed"),
        provider_session: optional_text("provider_session_id"),
        ip: optional_text("ip_address"),
        price_cents: number("price_cents"),
        started_at: time("started_at"),
        expires_at: time("expires_at"),
        ended_at: optional_time("ended_at"),
    }
}
