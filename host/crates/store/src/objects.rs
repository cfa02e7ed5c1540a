//! References from rows to stored objects.
//!
//! Rows store a file as JSON that contains its key, so keys are searched as substrings with `like`.
//! Underscores in a key match any character, which can only produce false positives.

use crate::SqlConnection;

use super::StoreError;
use super::statement::RunStatement as _;
use holdfast_domain::id::OrgId;

/// Returns whether the organization exists in this database. Objects of unknown organizations
/// belong to another installation, or this is the wrong database.
pub async fn knows(connection: &mut SqlConnection, org: &OrgId) -> Result<bool, StoreError> {
    sqlx::query("select org_id from organization where bucket = $1 and org_id = $2")
        .bind_org(org)
        .finds_row(connection)
        .await
}

/// Returns whether an envelope's file is still referenced.
///
/// While an envelope is being vaulted, it needs all of its files. Before that it needs every
/// upload, and before its release every archive, because the same bytes may be about to be stored
/// again. A destroyed record needs none. Envelopes vaulted before steps were recorded do not reference their executed document, so
/// all of theirs are kept. Files scheduled for a job of the kind `removal` are left to that job,
/// which checks first what replaced them.
pub async fn envelope_wants(
    connection: &mut SqlConnection,
    org: &OrgId,
    envelope: &str,
    key: &str,
    removal: &str,
) -> Result<bool, StoreError> {
    // One statement for all references: an object without any is removed, so they have to be of one moment.
    sqlx::query(
        "select envelope_id from envelope where bucket = $1 and envelope_id = $2
             and destruction is null
             and (upload like $3 or vault like $3 or copy like $3 or certificate like $3
                 or custody_record like $3 or archive like $3 or metadata like $3
                 or ($4 like 'uploads/%' and status not in ('vaulted', 'vaulted_out'))
                 or ($4 like 'archive/%' and status <> 'vaulted_out')
                 or ($4 like 'signed/%' and not exists (
                     select 1 from vault_step s where s.bucket = $1 and s.envelope_id = $2)))
         union all
         select org_id from job where bucket = $1 and kind = $5 and dedup_key = $4
         union all
         select envelope_id from vault_step where bucket = $1 and envelope_id = $2
             and result like $3
         union all
         select envelope_id from vault_intent where bucket = $1 and envelope_id = $2
             and finished_at is null
         union all
         select envelope_id from seal_state where bucket = $1 and envelope_id = $2
             and updates like $3",
    )
    .bind(org.bucket())
    .bind(envelope)
    .bind(part(key))
    .bind(key)
    .bind(removal)
    .finds_row(connection)
    .await
}

/// Returns whether a template's document is still referenced.
pub async fn template_wants(
    connection: &mut SqlConnection,
    org: &OrgId,
    key: &str,
) -> Result<bool, StoreError> {
    // Deleted templates count: their rows stay and still name the document. So do replaced versions.
    sqlx::query(
        "select template_id from template where bucket = $1 and org_id = $2 and document_key = $3
         union all
         select template_id from template_version
             where bucket = $1 and org_id = $2 and document_key = $3
         union all
         select template_id from template
             where bucket = $1 and org_id = $2 and word_source like $4
         union all
         select template_id from template_version
             where bucket = $1 and org_id = $2 and word_source like $4",
    )
    .bind_org(org)
    .bind(key)
    .bind(part(key))
    .finds_row(connection)
    .await
}

/// Returns whether a document of the signing room is still referenced.
pub async fn room_wants(
    connection: &mut SqlConnection,
    org: &OrgId,
    key: &str,
) -> Result<bool, StoreError> {
    sqlx::query(
        "select template_id as id from room_template
             where bucket = $1 and org_id = $2 and document_key like $3
         union all
         select submission_id as id from room_submission
             where bucket = $1 and org_id = $2 and (document_key like $3 or signed_key like $3)
         union all
         select submitter_id as id from room_submitter
             where bucket = $1 and org_id = $2 and attachments like $3",
    )
    .bind_org(org)
    .bind(part(key))
    .finds_row(connection)
    .await
}

/// Returns whether the file of a tape is still referenced.
pub async fn tape_wants(
    connection: &mut SqlConnection,
    org: &OrgId,
    key: &str,
) -> Result<bool, StoreError> {
    sqlx::query("select tape_id from tape where bucket = $1 and org_id = $2 and file like $3")
        .bind_org(org)
        .bind(part(key))
        .finds_row(connection)
        .await
}

/// Returns whether the archive of an import is still referenced.
pub async fn import_wants(
    connection: &mut SqlConnection,
    org: &OrgId,
    key: &str,
) -> Result<bool, StoreError> {
    sqlx::query(
        "select import_id from record_import where bucket = $1 and org_id = $2 and file like $3
             and status = 'running'",
    )
    .bind_org(org)
    .bind(part(key))
    .finds_row(connection)
    .await
}

fn part(key: &str) -> String {
    format!("%{key}%")
}
