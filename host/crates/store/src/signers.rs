//! Signers, custodians and signing links.

use crate::SqlConnection;
use sqlx::AssertSqlSafe;

use super::StoreError;
use super::row::{RowColumns, TableRow as _, numbered, query_rows, table_row};
use super::statement::RunStatement as _;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::dates::ZoneName;
use holdfast_domain::envelope::{
    Custodian, CustodianStatus, Envelope, Recipient, RecipientKind, SignatureExecution, Signer,
    SignerAccess, SignerChannel, SignerKind, SignerNotice, SignerStatus,
};
use holdfast_domain::id::{EnvelopeId, OrgId, SignerId};
use holdfast_domain::locale::Locale;
use holdfast_domain::token::LinkToken;

pub async fn insert(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    signer: &Signer,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into signer (bucket, envelope_id, position, org_id, name, email, role, status,
             provider_submitter, challenged, kind, turn, access, passcode, locale, phone,
             notify_by, signer_id, consumer, witness_of, signing_group, same_device, time_zone)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
             $19, $20, $21, $22, $23)",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(signer.position)
    .bind(envelope.org.as_str())
    .bind(&signer.name)
    .bind(&signer.email)
    .bind(&signer.role)
    .bind(signer.status.as_str())
    .bind(signer.provider_submitter.as_deref())
    .bind(i64::from(signer.challenged))
    .bind(signer.kind.as_str())
    .bind(signer.turn)
    .bind(signer.access.as_str())
    // Encrypted by the caller, like the codes in `access_code`.
    .bind(signer.passcode.as_deref())
    .bind(signer.locale.map(Locale::as_str))
    .bind(signer.phone.as_deref())
    .bind(signer.notify_by.as_str())
    .bind(signer.id.as_str())
    .bind(signer.consumer.map(i64::from))
    .bind(signer.witness_of.as_deref())
    .bind(signer.group.as_deref())
    .bind(i64::from(signer.same_device))
    .bind(signer.time_zone.as_ref().map(ZoneName::as_str))
    .run(connection)
    .await
}

/// Inserts a recipient who does not sign. They share the table and its positions with the signers, so
/// that links and mails address them alike.
pub async fn insert_recipient(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    recipient: &Recipient,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into signer (bucket, envelope_id, position, org_id, name, email, role, status, kind,
             signing_group)
         values ($1, $2, $3, $4, $5, $6, '', $7, $8, $9)",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(recipient.position)
    .bind(envelope.org.as_str())
    .bind(&recipient.name)
    .bind(&recipient.email)
    .bind(SignerStatus::Pending.as_str())
    .bind(recipient.kind.as_str())
    .bind(recipient.group.as_deref())
    .run(connection)
    .await
}

/// Puts a signer who was replaced by a substitute into the substitute's row. The links of both follow
/// their persons.
pub async fn exchange(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    substitute: &Recipient,
    signer: &Signer,
) -> Result<(), StoreError> {
    sqlx::query(
        "update signer set name = $4, email = $5, renewed_at = null
         where bucket = $1 and envelope_id = $2 and position = $3 and kind = 'substitute'",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(substitute.position)
    .bind(&signer.name)
    .bind(&signer.email)
    .run(connection)
    .await?;

    // One statement, because after the first of two all links would name the same position.
    sqlx::query(
        "update signing_link set position = case position when $3 then $4 else $3 end
         where bucket = $1 and envelope_id = $2 and position in ($3, $4)",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(substitute.position)
    .bind(signer.position)
    .run(connection)
    .await
}

/// Returns the recipients of an envelope who do not sign.
pub async fn recipients(
    connection: &mut SqlConnection,
    org: &OrgId,
    envelope: &EnvelopeId,
) -> Result<Vec<Recipient>, StoreError> {
    query_rows(
        "select {columns} from signer where bucket = $1 and org_id = $2 and envelope_id = $3
             and kind in ('cc', 'viewer', 'substitute')
         order by position",
    )
    .bind_org(org)
    .bind(envelope.as_str())
    .fetch_all(connection)
    .await
}

table_row! {
    Recipient of "signer" by "envelope_id" also "envelope_id" {
        position: number("position"),
        name: text("name"),
        email: text("email"),
        kind: parsed("kind", RecipientKind::parse),
        group: optional_text("signing_group"),
    }
}

/// Deletes the signers and the other recipients of an envelope that was not sent.
pub async fn forget(connection: &mut SqlConnection, envelope: &Envelope) -> Result<(), StoreError> {
    // Recipients go, too: the sending inserts both from its own request.
    sqlx::query("delete from signer where bucket = $1 and envelope_id = $2")
        .bind_key(&envelope.org, envelope.id.as_str())
        .run(connection)
        .await
}

/// Returns the signers of an envelope in signing order.
pub async fn list(
    connection: &mut SqlConnection,
    org: &OrgId,
    envelope: &EnvelopeId,
) -> Result<Vec<Signer>, StoreError> {
    // Neither the rules nor the providers know of recipients who do not sign.
    query_rows(
        "select {columns} from signer where bucket = $1 and org_id = $2 and envelope_id = $3
             and kind not in ('cc', 'viewer', 'substitute')
         order by position",
    )
    .bind_org(org)
    .bind(envelope.as_str())
    .fetch_all(connection)
    .await
}

/// Returns the signers of several envelopes, each in signing order. The caller has read the envelopes as those of the
/// organization.
pub async fn of_envelopes(
    connection: &mut SqlConnection,
    org: &OrgId,
    envelopes: &[&EnvelopeId],
) -> Result<Vec<(EnvelopeId, Signer)>, StoreError> {
    // `in ()` is not valid SQL.
    if envelopes.is_empty() {
        return Ok(Vec::new());
    }

    // Without the organization: an index of its signers would be read as a whole.
    let text = format!(
        "select {{columns}} from signer where bucket = $1 and envelope_id in ({}) and kind not in ('cc', 'viewer', 'substitute')
         order by envelope_id, position",
        numbered(2, envelopes.len())
    );
    let mut query = query_rows::<Signer>(AssertSqlSafe(text)).bind(org.bucket());
    for envelope in envelopes {
        query = query.bind(envelope.as_str());
    }

    let rows = query.fetch_rows(connection).await?;
    rows.iter()
        .map(|row| {
            let columns = RowColumns::of(row, "signer", "envelope_id");
            let envelope = columns.parsed("envelope_id", EnvelopeId::parse)?;
            Ok((envelope, Signer::of_row(row)?))
        })
        .collect()
}

/// Writes the mutable columns of a signer.
pub async fn update(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    signer: &Signer,
) -> Result<(), StoreError> {
    // The outcome of a message stays with the person that it was
    // sent to, and so does a time zone: another signer in this place starts without them.
    sqlx::query(
        "update signer set status = $4, name = $5, email = $6, completed_at = $7, decline_reason = $8,
             challenged = $9, phone = $10, signer_id = $11, execution = $12, consumer = $13,
             time_zone = case when signer_id = $11 then time_zone end,
             noticed_at = case when signer_id = $11 then noticed_at end,
             notice_failure = case when signer_id = $11 then notice_failure end
         where bucket = $1 and envelope_id = $2 and position = $3",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(signer.position)
    .bind(signer.status.as_str())
    .bind(&signer.name)
    .bind(&signer.email)
    .bind(signer.completed_at.map(|at| at.to_string()))
    .bind(signer.decline_reason.as_deref())
    .bind(i64::from(signer.challenged))
    .bind(signer.phone.as_deref())
    .bind(signer.id.as_str())
    .bind(signer.execution.map(SignatureExecution::as_str))
    .bind(signer.consumer.map(i64::from))
    .run(connection)
    .await
}

/// Writes the outcome of a message to a signer, unless another person has taken the signer's place.
pub async fn set_notice(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    signer: &Signer,
    notice: &SignerNotice,
) -> Result<(), StoreError> {
    sqlx::query(
        "update signer set noticed_at = $5, notice_failure = $6
         where bucket = $1 and envelope_id = $2 and position = $3 and signer_id = $4",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(signer.position)
    .bind(signer.id.as_str())
    .bind(notice.at.to_string())
    .bind(notice.failure.as_deref())
    .run(connection)
    .await
}

pub async fn custodians(
    connection: &mut SqlConnection,
    org: &OrgId,
    envelope: &EnvelopeId,
) -> Result<Vec<Custodian>, StoreError> {
    // The address makes the order stable for custodians of the same moment.
    query_rows(
        "select {columns} from custodian where bucket = $1 and org_id = $2 and envelope_id = $3
         order by created_at, email",
    )
    .bind_org(org)
    .bind(envelope.as_str())
    .fetch_all(connection)
    .await
}

table_row! {
    Custodian of "custodian" by "envelope_id" also "envelope_id" {
        email: text("email"),
        status: parsed("status", CustodianStatus::parse),
    }
}

/// Adds a custodian; an existing one keeps its status.
pub async fn assign_custodian(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    custodian: &Custodian,
    now: Timestamp,
) -> Result<(), StoreError> {
    // A repeat must not take an acceptance back.
    sqlx::query(
        "insert into custodian (bucket, envelope_id, email, org_id, status, created_at)
         values ($1, $2, $3, $4, $5, $6)
         on conflict (bucket, envelope_id, email) do nothing",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(&custodian.email)
    .bind(envelope.org.as_str())
    .bind(custodian.status.as_str())
    .bind(now.to_string())
    .run(connection)
    .await
}

/// Target of a signing link.
#[derive(Clone, Debug)]
pub struct LinkTarget {
    pub org: OrgId,
    pub envelope: EnvelopeId,
    pub position: i64,
    pub expires_at: Timestamp,
}

/// Claims the right to mail a signer or reader a new link or a copy. Returns false if one was mailed after
/// `before`, which limits the mails per signer.
pub async fn claim_renewal(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    position: i64,
    before: Timestamp,
    now: Timestamp,
) -> Result<bool, StoreError> {
    // The limit is in the row, so it holds for parallel requests and over all nodes.
    sqlx::query(
        "update signer set renewed_at = $5
         where bucket = $1 and org_id = $2 and envelope_id = $3 and position = $4
             and (renewed_at is null or renewed_at <= $6)",
    )
    .bind_org(&envelope.org)
    .bind(envelope.id.as_str())
    .bind(position)
    .bind(now.to_string())
    .bind(before.to_string())
    .changes_row(connection)
    .await
}

pub async fn insert_link(
    connection: &mut SqlConnection,
    token: &LinkToken,
    target: &LinkTarget,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into signing_link (bucket, token_hash, org_id, envelope_id, position, created_at,
             expires_at)
         values ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(token.bucket())
    // Only the hash: a copy of the database opens no document.
    .bind(token.hash().as_str())
    .bind(target.org.as_str())
    .bind(target.envelope.as_str())
    .bind(target.position)
    .bind(now.to_string())
    .bind(target.expires_at.to_string())
    .run(connection)
    .await
}

/// Expires all links of a signer.
pub async fn expire_links(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    signer: &Signer,
    now: Timestamp,
) -> Result<(), StoreError> {
    // Links went to the address before, and its owner must not act in this place any more.
    sqlx::query(
        "update signing_link set expires_at = $4
         where bucket = $1 and envelope_id = $2 and position = $3 and expires_at > $4",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(signer.position)
    .bind(now.to_string())
    .run(connection)
    .await
}

pub async fn link(
    connection: &mut SqlConnection,
    token: &LinkToken,
) -> Result<Option<LinkTarget>, StoreError> {
    // The token carries the bucket, because a link names no organization.
    query_rows("select {columns} from signing_link where bucket = $1 and token_hash = $2")
        .bind(token.bucket())
        .bind(token.hash().as_str())
        .fetch_optional(connection)
        .await
}

table_row! {
    LinkTarget of "signing_link" by "envelope_id" {
        org: parsed("org_id", OrgId::parse),
        envelope: parsed("envelope_id", EnvelopeId::parse),
        position: number("position"),
        expires_at: time("expires_at"),
    }
}

table_row! {
    Signer of "signer" by "envelope_id"
        also "envelope_id", "signer_id", "turn", "locale", "time_zone", "noticed_at", "notice_failure"
    {
        // Rows of earlier releases have no id.
        id: |row| match row.optional_parsed("signer_id", SignerId::parse)? {
            Some(id) => id,
            None => SignerId::of_recorded(
                &row.parsed("envelope_id", EnvelopeId::parse)?,
                row.number("position")?,
            ),
        },
        position: number("position"),
        name: text("name"),
        email: text("email"),
        role: text("role"),
        kind: parsed("kind", SignerKind::parse),
        witness_of: optional_text("witness_of"),
        same_device: flag("same_device"),
        group: optional_text("signing_group"),
        // Rows of earlier releases have no turn.
        turn: |row| match row.optional_number("turn")? {
            Some(turn) => turn,
            None => row.number("position")? + 1,
        },
        access: parsed("access", SignerAccess::parse),
        passcode: optional_text("passcode"),
        phone: optional_text("phone"),
        notify_by: parsed("notify_by", SignerChannel::parse),
        status: parsed("status", SignerStatus::parse),
        provider_submitter: optional_text("provider_submitter"),
        completed_at: optional_time("completed_at"),
        execution: optional_parsed("execution", SignatureExecution::parse),
        decline_reason: optional_text("decline_reason"),
        challenged: flag("challenged"),
        locale: |row| row.optional_text("locale")?.and_then(|tag| Locale::parse(&tag)),
        // A zone that this node's table does not have counts as none: the reminders go on.
        time_zone: |row| row.optional_text("time_zone")?.and_then(|name| ZoneName::try_from(name).ok()),
        consumer: optional_flag("consumer"),
        notice: |row| match row.optional_time("noticed_at")? {
            Some(at) => Some(SignerNotice {
                at,
                failure: row.optional_text("notice_failure")?,
            }),
            None => None,
        },
    }
}
