//! Views of records by people, and watermarked copies. A row is in the bucket of the originator; the
//! others know only its id.

use crate::SqlConnection;

use super::row::{query_rows, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::control::{ControlRecord, HandedCopy, View, ViewAccess};
use holdfast_domain::id::{CopyId, EnvelopeId, OrgId, ViewId};

pub async fn insert(tx: &mut WriteTransaction, view: &View) -> Result<(), StoreError> {
    sqlx::query(
        "insert into control_view (bucket, view_id, envelope_id, org_id, controller_id, name, email,
             access, purpose, created_at, expires_at, controlled_since)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
    )
    .bind_key(&view.org, view.id.as_str())
    .bind(view.envelope.as_str())
    .bind(view.org.as_str())
    .bind(view.controller.as_str())
    .bind(&view.name)
    .bind(&view.email)
    .bind(view.access.as_str())
    .bind(view.purpose.as_deref())
    .bind(view.created_at.to_string())
    .bind(view.expires_at.to_string())
    // The view ends with this control, even if the same party gets the record back.
    .bind(view.controlled_since.to_string())
    .run(tx)
    .await
}

/// Returns a view of any organization.
pub async fn get(connection: &mut SqlConnection, id: &ViewId) -> Result<Option<View>, StoreError> {
    query_rows("select {columns} from control_view where view_id = $1")
        .bind(id.as_str())
        .fetch_optional(connection)
        .await
}

/// Lists the views that the present controller of a record has granted, newest first.
pub async fn list(
    connection: &mut SqlConnection,
    record: &ControlRecord,
) -> Result<Vec<View>, StoreError> {
    // The present controller does not see the views that earlier controllers granted.
    query_rows(
        "select {columns} from control_view where bucket = $1 and envelope_id = $2 and controller_id = $3
         order by view_id desc",
    )
    .bind_key(&record.org, record.envelope.as_str())
    .bind(record.controller.as_str())
    .fetch_all(connection)
    .await
}

/// # Errors
/// [`StoreError::Conflict`] if it was revoked already.
pub async fn revoke(
    tx: &mut WriteTransaction,
    view: &View,
    at: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "update control_view set revoked_at = $3
         where bucket = $1 and view_id = $2 and revoked_at is null",
    )
    .bind_key(&view.org, view.id.as_str())
    .bind(at.to_string())
    .run_guarded(tx)
    .await
}

/// Notes that the person has opened the record's page.
pub async fn opened(
    tx: &mut WriteTransaction,
    view: &View,
    at: Timestamp,
) -> Result<(), StoreError> {
    // Only the last look is needed here; the ledger has all of them.
    sqlx::query("update control_view set opened_at = $3 where bucket = $1 and view_id = $2")
        .bind_key(&view.org, view.id.as_str())
        .bind(at.to_string())
        .run(tx)
        .await
}

table_row! {
    View of "control_view" by "view_id" {
        id: parsed("view_id", ViewId::parse),
        org: parsed("org_id", OrgId::parse),
        envelope: parsed("envelope_id", EnvelopeId::parse),
        controller: parsed("controller_id", OrgId::parse),
        controlled_since: time("controlled_since"),
        name: text("name"),
        email: text("email"),
        access: parsed("access", ViewAccess::parse),
        purpose: optional_text("purpose"),
        created_at: time("created_at"),
        expires_at: time("expires_at"),
        revoked_at: optional_time("revoked_at"),
        opened_at: optional_time("opened_at"),
    }
}

/// Records a watermarked copy.
pub async fn insert_copy(tx: &mut WriteTransaction, copy: &HandedCopy) -> Result<(), StoreError> {
    // The mark on a copy leads to this row, and from there to its holder.
    sqlx::query(
        "insert into control_copy (bucket, copy_id, envelope_id, org_id, party_id, holder, view_id,
             purpose, made_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind_key(&copy.org, copy.id.as_str())
    .bind(copy.envelope.as_str())
    .bind(copy.org.as_str())
    .bind(copy.party.as_str())
    .bind(&copy.holder)
    .bind(copy.view.as_ref().map(ViewId::as_str))
    .bind(&copy.purpose)
    .bind(copy.made_at.to_string())
    .run(tx)
    .await
}

/// Returns a watermarked copy of any organization's record.
pub async fn copy(
    connection: &mut SqlConnection,
    id: &CopyId,
) -> Result<Option<HandedCopy>, StoreError> {
    query_rows("select {columns} from control_copy where copy_id = $1")
        .bind(id.as_str())
        .fetch_optional(connection)
        .await
}

table_row! {
    HandedCopy of "control_copy" by "copy_id" {
        id: parsed("copy_id", CopyId::parse),
        org: parsed("org_id", OrgId::parse),
        envelope: parsed("envelope_id", EnvelopeId::parse),
        party: parsed("party_id", OrgId::parse),
        holder: text("holder"),
        view: optional_parsed("view_id", ViewId::parse),
        purpose: text("purpose"),
        made_at: time("made_at"),
    }
}
