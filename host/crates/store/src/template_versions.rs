//! Versions of templates that others replaced.

use crate::SqlConnection;

use super::row::{json_text, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::envelope::StoredFile;
use holdfast_domain::id::{OrgId, TemplateId};
use holdfast_domain::template::{Template, TemplateVersion};

/// Keeps the version of a template that another one replaces in the same transaction.
pub async fn insert(
    tx: &mut WriteTransaction,
    template: &Template,
    version: &TemplateVersion,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into template_version (bucket, template_id, number, org_id, made_by, made_at,
             document_key, document_sha256, document_size, document_repair, fields, word_source)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
    )
    .bind_key(&template.org, template.id.as_str())
    .bind(version.number)
    .bind(template.org.as_str())
    .bind(version.made_by.as_deref())
    .bind(version.made_at.to_string())
    .bind(&version.document.key)
    .bind(&version.document.sha256)
    .bind(version.document.size)
    .bind(version.repair.as_ref().map(json_text))
    .bind(json_text(&version.fields))
    .bind(version.word_source.as_ref().map(json_text))
    .run(tx)
    .await
}

/// Returns a replaced version by its number.
pub async fn get(
    connection: &mut SqlConnection,
    org: &OrgId,
    template: &TemplateId,
    number: i64,
) -> Result<Option<TemplateVersion>, StoreError> {
    query_rows(
        "select {columns} from template_version
         where bucket = $1 and template_id = $2 and number = $3 and org_id = $4",
    )
    .bind_key(org, template.as_str())
    .bind(number)
    .bind(org.as_str())
    .fetch_optional(connection)
    .await
}

/// Lists the replaced versions of a template, newest first.
pub async fn list(
    connection: &mut SqlConnection,
    org: &OrgId,
    template: &TemplateId,
    limit: i64,
) -> Result<Vec<TemplateVersion>, StoreError> {
    query_rows(
        "select {columns} from template_version
         where bucket = $1 and template_id = $2 and org_id = $3 order by number desc limit $4",
    )
    .bind_key(org, template.as_str())
    .bind(org.as_str())
    .bind(limit)
    .fetch_all(connection)
    .await
}

table_row! {
    TemplateVersion of "template_version" by "template_id"
        also "template_id", "document_key", "document_sha256", "document_size"
    {
        number: number("number"),
        made_by: optional_text("made_by"),
        made_at: time("made_at"),
        document: |row| StoredFile {
            key: row.text("document_key")?,
            sha256: row.text("document_sha256")?,
            size: row.number("document_size")?,
            content_type: "application/pdf".into(),
        },
        repair: optional_json("document_repair"),
        fields: json("fields"),
        word_source: optional_json("word_source"),
    }
}
