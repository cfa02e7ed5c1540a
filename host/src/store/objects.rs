//! Whether any row points to a stored object.
//!
//! Rows hold a file as JSON with its key in it, so a key is looked for as a part
//! of the text. Its underscores stand for any character there, which can only
//! find a row too many.

use sqlx::AnyConnection;

use super::StoreError;
use crate::domain::id::OrgId;

/// Whether the organization is one of this database at all. Objects of others are
/// another installation's, or this is not the database that belongs to them.
pub async fn knows(connection: &mut AnyConnection, org: &OrgId) -> Result<bool, StoreError> {
    let found = sqlx::query("select org_id from organization where bucket = $1 and org_id = $2")
        .bind(org.bucket())
        .bind(org.as_str())
        .fetch_optional(connection)
        .await?;
    Ok(found.is_some())
}

/// Of an envelope's file.
///
/// One that is being vaulted wants all of its files. Until then it wants every
/// upload, and until its release every archive: the same bytes may be about to be
/// stored again. Envelopes vaulted before steps were recorded name their executed
/// document nowhere, and keep all there is. What a job of the kind `removal` is to
/// remove is that job's, which first looks at what stands for it.
pub async fn envelope_wants(
    connection: &mut AnyConnection,
    org: &OrgId,
    envelope: &str,
    key: &str,
    removal: &str,
) -> Result<bool, StoreError> {
    let found = sqlx::query(
        "select envelope_id from envelope where bucket = $1 and envelope_id = $2
             and (upload like $3 or vault like $3 or copy like $3 or certificate like $3
                 or custody_record like $3 or archive like $3
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
             and finished_at is null",
    )
    .bind(org.bucket())
    .bind(envelope)
    .bind(part(key))
    .bind(key)
    .bind(removal)
    .fetch_optional(connection)
    .await?;
    Ok(found.is_some())
}

/// Of a template's document.
pub async fn template_wants(
    connection: &mut AnyConnection,
    org: &OrgId,
    key: &str,
) -> Result<bool, StoreError> {
    let found = sqlx::query(
        "select template_id from template where bucket = $1 and org_id = $2 and document_key = $3",
    )
    .bind(org.bucket())
    .bind(org.as_str())
    .bind(key)
    .fetch_optional(connection)
    .await?;
    Ok(found.is_some())
}

/// Of a document of the signing room.
pub async fn room_wants(
    connection: &mut AnyConnection,
    org: &OrgId,
    key: &str,
) -> Result<bool, StoreError> {
    let found = sqlx::query(
        "select template_id as id from room_template
             where bucket = $1 and org_id = $2 and document_key like $3
         union all
         select submission_id as id from room_submission
             where bucket = $1 and org_id = $2 and (document_key like $3 or signed_key like $3)",
    )
    .bind(org.bucket())
    .bind(org.as_str())
    .bind(part(key))
    .fetch_optional(connection)
    .await?;
    Ok(found.is_some())
}

fn part(key: &str) -> String {
    format!("%{key}%")
}
