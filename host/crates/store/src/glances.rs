//! What lists show about envelopes besides their own columns, read for all rows of a page at once.

use std::collections::BTreeMap;

use crate::SqlConnection;
use serde_json::{Map, Value};
use sqlx::AssertSqlSafe;

use super::questions::IS_OPEN;
use super::row::{RowColumns, numbered};
use super::statement::RunStatement as _;
use super::{StoreError, signers};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{
    EnvelopeKind, EnvelopeStatus, OWN_METADATA, PaymentStatus, Signer, planned_time,
};
use holdfast_domain::event::EventType;
use holdfast_domain::id::{EnvelopeId, OrgId};
use holdfast_domain::identity::KbaStatus;

/// Facts about an envelope that tell where it stands.
pub struct EnvelopeGlance {
    pub id: EnvelopeId,
    pub name: String,
    pub kind: EnvelopeKind,
    pub status: EnvelopeStatus,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub signed_at: Option<Timestamp>,
    pub preserve_signing_order: bool,
    pub payment: Option<PaymentStatus>,
    /// The partner's own metadata.
    pub own_metadata: Map<String, Value>,
    /// Time at which the draft is sent.
    pub send_at: Option<Timestamp>,
    /// Time at which the vault-in stopped with an error.
    pub stopped_at: Option<Timestamp>,
    pub sent_at: Option<Timestamp>,
    /// Time of the newest reminder.
    pub reminded_at: Option<Timestamp>,
    /// Time of the oldest open question of a present signer who has not signed.
    pub asked_at: Option<Timestamp>,
    /// Signers in signing order.
    pub signers: Vec<Signer>,
    /// Attempts of signers to prove their identity that ended with a result, in any order.
    pub identity: Vec<IdentityAttempt>,
}

/// Result of a signer's attempt to prove their identity.
pub struct IdentityAttempt {
    pub position: i64,
    pub email: String,
    pub status: KbaStatus,
}

/// Returns the facts about envelopes of an organization; none for an id of another one.
pub async fn of_envelopes(
    connection: &mut SqlConnection,
    org: &OrgId,
    ids: &[&EnvelopeId],
) -> Result<BTreeMap<EnvelopeId, EnvelopeGlance>, StoreError> {
    let mut found = own_columns(connection, org, ids).await?;
    let known: Vec<EnvelopeId> = found.keys().cloned().collect();
    let known: Vec<&EnvelopeId> = known.iter().collect();
    if known.is_empty() {
        return Ok(found);
    }

    for (envelope, signer) in signers::of_envelopes(connection, org, &known).await? {
        if let Some(glance) = found.get_mut(&envelope) {
            glance.signers.push(signer);
        }
    }

    read_times(connection, org, &known, &mut found).await?;
    read_questions(connection, org, &known, &mut found).await?;
    read_identity(connection, org, &known, &mut found).await?;
    Ok(found)
}

async fn own_columns(
    connection: &mut SqlConnection,
    org: &OrgId,
    ids: &[&EnvelopeId],
) -> Result<BTreeMap<EnvelopeId, EnvelopeGlance>, StoreError> {
    // `in ()` is not valid SQL.
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }

    let text = format!(
        "select e.envelope_id, e.name, e.kind, e.status, e.created_at, e.updated_at, e.signed_at,
             e.preserve_signing_order, e.payment_status, e.metadata,
             case when v.failed_step is not null then v.failed_at end as stopped_at
         from envelope e
         left join vault_intent v on v.bucket = e.bucket and v.envelope_id = e.envelope_id
         where e.bucket = $1 and e.org_id = $2 and e.envelope_id in ({})",
        numbered(3, ids.len())
    );
    let mut query = sqlx::query(AssertSqlSafe(text)).bind_org(org);
    for id in ids {
        query = query.bind(id.as_str());
    }

    let rows = query.fetch_all(connection).await?;
    rows.iter()
        .map(|row| {
            let columns = RowColumns::of(row, "envelope", "envelope_id");
            let id = columns.parsed("envelope_id", EnvelopeId::parse)?;
            let mut metadata: Map<String, Value> = columns.json("metadata")?;
            let own = metadata.remove(OWN_METADATA);
            let status = columns.parsed("status", EnvelopeStatus::parse)?;
            let send_at = planned_time(&metadata).filter(|_| status.is_unsent());
            let glance = EnvelopeGlance {
                id: id.clone(),
                name: columns.text("name")?,
                kind: columns.parsed("kind", EnvelopeKind::parse)?,
                status,
                created_at: columns.time("created_at")?,
                updated_at: columns.time("updated_at")?,
                signed_at: columns.optional_time("signed_at")?,
                preserve_signing_order: columns.flag("preserve_signing_order")?,
                payment: columns.optional_parsed("payment_status", PaymentStatus::parse)?,
                own_metadata: match own {
                    Some(Value::Object(own)) => own,
                    _ => Map::new(),
                },
                send_at,
                stopped_at: columns.optional_time("stopped_at")?,
                sent_at: None,
                reminded_at: None,
                asked_at: None,
                signers: Vec::new(),
                identity: Vec::new(),
            };
            Ok((id, glance))
        })
        .collect()
}

/// Reads the times of sending and of the newest reminder from the ledgers.
async fn read_times(
    connection: &mut SqlConnection,
    org: &OrgId,
    ids: &[&EnvelopeId],
    found: &mut BTreeMap<EnvelopeId, EnvelopeGlance>,
) -> Result<(), StoreError> {
    // Without the organization: an index of its entries would be read as a whole.
    let text = format!(
        "select envelope_id, action, max(at) as at from ledger_entry
         where bucket = $1 and envelope_id in ({}) and action in ($2, $3)
         group by envelope_id, action",
        numbered(4, ids.len())
    );
    let reminded = EventType::EnvelopeReminderSent.as_str();
    let mut query = sqlx::query(AssertSqlSafe(text))
        .bind(org.bucket())
        .bind(EventType::EnvelopeSent.as_str())
        .bind(reminded);
    for id in ids {
        query = query.bind(id.as_str());
    }

    for row in query.fetch_all(connection).await? {
        let columns = RowColumns::of(&row, "ledger_entry", "envelope_id");
        let id = columns.parsed("envelope_id", EnvelopeId::parse)?;
        let Some(glance) = found.get_mut(&id) else {
            continue;
        };

        let at = columns.optional_time("at")?;
        if columns.text("action")? == reminded {
            glance.reminded_at = at;
        } else {
            glance.sent_at = at;
        }
    }

    Ok(())
}

async fn read_questions(
    connection: &mut SqlConnection,
    org: &OrgId,
    ids: &[&EnvelopeId],
    found: &mut BTreeMap<EnvelopeId, EnvelopeGlance>,
) -> Result<(), StoreError> {
    let text = format!(
        "select asked.envelope_id as envelope_id, min(asked.asked_at) as at from signer_question asked
         where asked.bucket = $1 and asked.envelope_id in ({}) and {IS_OPEN}
         group by asked.envelope_id",
        numbered(2, ids.len())
    );
    let mut query = sqlx::query(AssertSqlSafe(text)).bind(org.bucket());
    for id in ids {
        query = query.bind(id.as_str());
    }

    for row in query.fetch_all(connection).await? {
        let columns = RowColumns::of(&row, "signer_question", "envelope_id");
        let id = columns.parsed("envelope_id", EnvelopeId::parse)?;
        if let Some(glance) = found.get_mut(&id) {
            glance.asked_at = columns.optional_time("at")?;
        }
    }

    Ok(())
}

async fn read_identity(
    connection: &mut SqlConnection,
    org: &OrgId,
    ids: &[&EnvelopeId],
    found: &mut BTreeMap<EnvelopeId, EnvelopeGlance>,
) -> Result<(), StoreError> {
    // Without an order: the key of the sessions would be read as a whole.
    let text = format!(
        "select envelope_id, position, email, status from kba_session
         where bucket = $1 and envelope_id in ({}) and status in ('passed', 'failed', 'unavailable')",
        numbered(2, ids.len())
    );
    let mut query = sqlx::query(AssertSqlSafe(text)).bind(org.bucket());
    for id in ids {
        query = query.bind(id.as_str());
    }

    for row in query.fetch_all(connection).await? {
        let columns = RowColumns::of(&row, "kba_session", "envelope_id");
        let id = columns.parsed("envelope_id", EnvelopeId::parse)?;
        if let Some(glance) = found.get_mut(&id) {
            glance.identity.push(IdentityAttempt {
                position: columns.number("position")?,
                email: columns.text("email")?,
                status: columns.parsed("status", KbaStatus::parse)?,
            });
        }
    }

    Ok(())
}
