//! Templates.

use sqlx::AnyConnection;
use sqlx::any::AnyRow;

use super::StoreError;
use super::row::{Columns, json_text};
use crate::domain::clock::Timestamp;
use crate::domain::envelope::StoredFile;
use crate::domain::field::Field;
use crate::domain::id::{OrgId, TemplateId};
use crate::domain::template::Template;

pub async fn insert(connection: &mut AnyConnection, template: &Template) -> Result<(), StoreError> {
    let document = template.document.as_ref();
    sqlx::query(
        "insert into template (bucket, template_id, org_id, name, external_id, kba_required,
             provider_instance, provider_template, document_key, document_sha256, document_size,
             fields, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13)",
    )
    .bind(template.org.bucket())
    .bind(template.id.as_str())
    .bind(template.org.as_str())
    .bind(&template.name)
    .bind(template.external_id.as_deref())
    .bind(i64::from(template.kba_required))
    .bind(&template.provider_instance)
    .bind(template.provider_template.as_deref())
    .bind(document.map(|document| document.key.as_str()))
    .bind(document.map(|document| document.sha256.as_str()))
    .bind(document.map(|document| document.size))
    .bind(json_text(&template.fields))
    .bind(template.created_at.to_string())
    .execute(connection)
    .await?;
    Ok(())
}

pub async fn get(
    connection: &mut AnyConnection,
    org: &OrgId,
    id: &TemplateId,
) -> Result<Option<Template>, StoreError> {
    sqlx::query("select * from template where bucket = $1 and org_id = $2 and template_id = $3")
        .bind(org.bucket())
        .bind(org.as_str())
        .bind(id.as_str())
        .fetch_optional(connection)
        .await?
        .map(|row| template(&row))
        .transpose()
}

/// The documents of an organization's newest templates.
pub async fn last_documents(
    connection: &mut AnyConnection,
    org: &OrgId,
    limit: i64,
) -> Result<Vec<(TemplateId, StoredFile)>, StoreError> {
    let rows = sqlx::query(
        "select * from template where bucket = $1 and org_id = $2 and document_key is not null
         order by template_id desc limit $3",
    )
    .bind(org.bucket())
    .bind(org.as_str())
    .bind(limit)
    .fetch_all(connection)
    .await?;
    let mut found = Vec::new();
    for row in &rows {
        let template = template(row)?;
        found.extend(template.document.map(|document| (template.id, document)));
    }
    Ok(found)
}

/// Replaces the fields, expecting that they are still `before`.
pub async fn set_fields(
    connection: &mut AnyConnection,
    template: &Template,
    fields: &[Field],
    now: Timestamp,
) -> Result<(), StoreError> {
    let changed = sqlx::query(
        "update template set fields = $4, updated_at = $5
         where bucket = $1 and template_id = $2 and fields = $3",
    )
    .bind(template.org.bucket())
    .bind(template.id.as_str())
    .bind(json_text(&template.fields))
    .bind(json_text(&fields))
    .bind(now.to_string())
    .execute(connection)
    .await?;
    super::envelopes::one_row(changed.rows_affected())
}

/// Replaces document and fields, expecting that nobody has changed them since
/// `before` was read. The provider does not have them yet.
pub async fn replace(
    connection: &mut AnyConnection,
    before: &Template,
    after: &Template,
    now: Timestamp,
) -> Result<(), StoreError> {
    let document = after.document.as_ref();
    let changed = sqlx::query(
        "update template set fields = $5, document_key = $6, document_sha256 = $7,
             document_size = $8, updated_at = $9, provider_stale = 1
         where bucket = $1 and template_id = $2 and fields = $3
             and coalesce(document_key, '') = $4",
    )
    .bind(before.org.bucket())
    .bind(before.id.as_str())
    .bind(json_text(&before.fields))
    .bind(document_key(before))
    .bind(json_text(&after.fields))
    .bind(document.map(|document| document.key.as_str()))
    .bind(document.map(|document| document.sha256.as_str()))
    .bind(document.map(|document| document.size))
    .bind(now.to_string())
    .execute(connection)
    .await?;
    super::envelopes::one_row(changed.rows_affected())
}

/// Notes that the provider has the document and the fields of `template`. False when
/// they are others by now; then it may have got the old ones after the new.
pub async fn note_synced(
    connection: &mut AnyConnection,
    template: &Template,
    provider_template: &str,
) -> Result<bool, StoreError> {
    let changed = sqlx::query(
        "update template set provider_stale = 0, provider_template = $5
         where bucket = $1 and template_id = $2 and fields = $3
             and coalesce(document_key, '') = $4",
    )
    .bind(template.org.bucket())
    .bind(template.id.as_str())
    .bind(json_text(&template.fields))
    .bind(document_key(template))
    .bind(provider_template)
    .execute(connection)
    .await?;
    Ok(changed.rows_affected() == 1)
}

/// Notes that the provider may have another document or other fields.
pub async fn note_stale(
    connection: &mut AnyConnection,
    template: &Template,
) -> Result<(), StoreError> {
    sqlx::query("update template set provider_stale = 1 where bucket = $1 and template_id = $2")
        .bind(template.org.bucket())
        .bind(template.id.as_str())
        .execute(connection)
        .await?;
    Ok(())
}

fn document_key(template: &Template) -> &str {
    let document = template.document.as_ref();
    document.map_or("", |document| document.key.as_str())
}

fn template(row: &AnyRow) -> Result<Template, StoreError> {
    let columns = Columns {
        row,
        table: "template",
        id: "template_id",
    };
    let document = match columns.optional_text("document_key")? {
        None => None,
        Some(key) => Some(StoredFile {
            key,
            sha256: columns.text("document_sha256")?,
            size: columns.number("document_size")?,
            content_type: "application/pdf".into(),
        }),
    };
    Ok(Template {
        id: columns.parsed("template_id", TemplateId::parse)?,
        org: columns.parsed("org_id", OrgId::parse)?,
        name: columns.text("name")?,
        external_id: columns.optional_text("external_id")?,
        kba_required: columns.flag("kba_required")?,
        provider_instance: columns.text("provider_instance")?,
        provider_template: columns.optional_text("provider_template")?,
        document,
        fields: columns.json("fields")?,
        provider_stale: columns.flag("provider_stale")?,
        created_at: columns.time("created_at")?,
    })
}
