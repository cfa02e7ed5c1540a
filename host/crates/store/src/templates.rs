//! Templates.

use crate::SqlConnection;
use sqlx::{AssertSqlSafe, Row as _};

use super::page::PagedQuery;
use super::row::{json_text, locked_by_id, query_rows, row_by_id, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::StoredFile;
use holdfast_domain::field::Field;
use holdfast_domain::id::{OrgId, TemplateId};
use holdfast_domain::template::{MadeFor, Origin, SourceFormat, Template, TemplateReader};

pub async fn insert(connection: &mut SqlConnection, template: &Template) -> Result<(), StoreError> {
    let document = template.document.as_ref();
    let made_for = template.made_for.as_ref();
    // The unique index over owner and source lets one of two concurrent makers win (`made_for`).
    sqlx::query(
        "insert into template (bucket, template_id, org_id, name, external_id, kba_required,
             provider_instance, provider_template, document_key, document_sha256, document_size,
             fields, created_at, updated_at, provider_stale, origin, owner_id, source_key,
             source_content, source_format, pricing_table, document_repair, tags, version_by,
             may_decline, folder, shared_with, word_source, reminders)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13, $14, $15, $16, $17,
             $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28)",
    )
    .bind_key(&template.org, template.id.as_str())
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
    .bind(i64::from(template.provider_stale))
    .bind(template.origin.as_str())
    .bind(made_for.map(|made_for| made_for.owner.as_str()))
    .bind(made_for.map(|made_for| made_for.source.as_str()))
    .bind(template.copied_content.as_deref())
    .bind(template.source_format.as_str())
    .bind(i64::from(template.pricing_table))
    .bind(template.repair.as_ref().map(json_text))
    .bind(json_text(&template.tags))
    .bind(template.version_by.as_deref())
    .bind(i64::from(template.may_decline))
    .bind(template.folder.as_deref())
    .bind(shared_with(template))
    .bind(template.word_source.as_ref().map(json_text))
    .bind(template.reminders.as_ref().map(json_text))
    .run(connection)
    .await
}

/// Returns the text of the column `shared_with`: none for a template that all users see.
fn shared_with(template: &Template) -> Option<String> {
    let shared_with = &template.shared_with;
    (!shared_with.is_with_all()).then(|| json_text(shared_with))
}

/// Returns a condition for the templates that a user sees, of a table with this name. `{}` stands for the parameter of
/// [`address`].
pub(super) fn seen_by(reader: &TemplateReader, table: &str) -> String {
    // Roles are words of this program. Quotation marks within a JSON text are escaped, so the text of a role or of an
    // address stands in the column only where it is meant.
    let (column, role) = (format!("{table}.shared_with"), reader.role);
    format!(
        "({column} is null or replace({column}, '\"{role}\"', '') <> {column}
             or replace({column}, {{}}, '') <> {column})"
    )
}

/// Returns a user's address as the column `shared_with` has it.
pub(super) fn address(reader: &TemplateReader) -> String {
    json_text(&reader.email)
}

/// Returns a template unless it was deleted.
pub async fn get(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &TemplateId,
) -> Result<Option<Template>, StoreError> {
    let found = find(connection, org, id).await?;
    Ok(found.filter(|template| template.deleted_at.is_none()))
}

/// Returns a template, even if it was deleted.
pub async fn find(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &TemplateId,
) -> Result<Option<Template>, StoreError> {
    row_by_id(connection, org, id.as_str()).await
}

/// Like [`get`], with the row locked until the transaction ends.
pub async fn lock(
    tx: &mut WriteTransaction,
    org: &OrgId,
    id: &TemplateId,
) -> Result<Option<Template>, StoreError> {
    let found: Option<Template> = locked_by_id(tx, org, id.as_str()).await?;
    Ok(found.filter(|template| template.deleted_at.is_none()))
}

/// Returns the template made for this owner from this source.
pub async fn made_for(
    connection: &mut SqlConnection,
    org: &OrgId,
    made_for: &MadeFor,
) -> Result<Option<Template>, StoreError> {
    query_rows(
        "select {columns} from template where bucket = $1 and org_id = $2 and owner_id = $3
             and source_key = $4 and deleted_at is null",
    )
    .bind_org(org)
    .bind(&made_for.owner)
    .bind(&made_for.source)
    .fetch_optional(connection)
    .await
}

/// Templates of the library that a list has.
#[derive(Clone, Debug, Default)]
pub struct TemplateFilter {
    /// Lists those that were deleted after this time, in place of the present ones.
    pub deleted_after: Option<Timestamp>,
    /// Lists those with this tag.
    pub tag: Option<String>,
    /// Lists those in this folder and the folders in it.
    pub folder: Option<String>,
    /// Lists those that this user sees; all without one.
    pub reader: Option<TemplateReader>,
}

/// Returns a page of the library, newest first, and the total number.
pub async fn list(
    connection: &mut SqlConnection,
    org: &OrgId,
    filter: &TemplateFilter,
    page: i64,
    limit: i64,
) -> Result<(Vec<Template>, i64), StoreError> {
    let (after, tag) = (
        filter.deleted_after.map(|after| after.to_string()),
        filter.tag.as_ref().map(json_text),
    );
    let mut compared = Vec::new();
    if let Some(after) = &after {
        compared.push(("deleted_at > {}", after.as_str()));
    }
    // Both databases have `replace`. A tag has no comma, so its JSON text with the quotes is nowhere else in the array.
    if let Some(tag) = &tag {
        compared.push(("replace(tags, {}, '') <> tags", tag.as_str()));
    }

    // With its slash, a folder is the beginning of its own path and of those in it, and of no other.
    let folder = filter.folder.as_ref().map(|folder| format!("{folder}/"));
    if let Some(folder) = &folder {
        let is_in = "substr(folder || '/', 1, length({})) = {}";
        compared.push((is_in, folder.as_str()));
    }
    let seen = filter.reader.as_ref();
    let seen = seen.map(|reader| (seen_by(reader, "template"), address(reader)));
    if let Some((condition, address)) = &seen {
        compared.push((condition.as_str(), address.as_str()));
    }

    let list = PagedQuery {
        select: "select {columns} from template",
        bucket: org.bucket(),
        wanted: &[
            ("org_id", Some(org.as_str())),
            // Copies, and templates of one envelope or batch, are not for reuse.
            ("origin", Some(Origin::Library.as_str())),
        ],
        compared: &compared,
        also: if after.is_none() {
            " and deleted_at is null"
        } else {
            ""
        },
    };

    list.page(connection, page, limit).await
}

/// Returns the folders of the present templates that a user sees, in alphabetical order; all without a user.
pub async fn folders(
    connection: &mut SqlConnection,
    org: &OrgId,
    reader: Option<&TemplateReader>,
) -> Result<Vec<String>, StoreError> {
    let condition = reader.map(|reader| seen_by(reader, "template").replace("{}", "$4"));
    let text = format!(
        "select distinct folder from template
         where bucket = $1 and org_id = $2 and origin = $3 and deleted_at is null
             and folder is not null {} {} order by folder",
        if condition.is_some() { "and" } else { "" },
        condition.unwrap_or_default(),
    );
    let mut query = sqlx::query(AssertSqlSafe(text))
        .bind_org(org)
        .bind(Origin::Library.as_str());
    if let Some(reader) = reader {
        query = query.bind(address(reader));
    }

    let rows = query.fetch_all(connection).await?;
    let folders = rows.iter().map(|row| row.try_get("folder"));
    Ok(folders.collect::<Result<_, _>>()?)
}

/// Returns whether an envelope sent from the template is still out for signing.
pub async fn is_out_for_signing(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &TemplateId,
) -> Result<bool, StoreError> {
    sqlx::query(
        "select envelope_id from envelope
         where bucket = $1 and org_id = $2 and status in ('sent', 'viewed') and template_id = $3
         limit 1",
    )
    .bind_org(org)
    .bind(id.as_str())
    .finds_row(connection)
    .await
}

/// Returns the templates with these ids, including deleted ones, in no particular order.
pub async fn by_ids(
    connection: &mut SqlConnection,
    org: &OrgId,
    ids: &[TemplateId],
) -> Result<Vec<Template>, StoreError> {
    // `in ()` is not valid SQL.
    if ids.is_empty() {
        return Ok(Vec::new());
    }

    let names: Vec<String> = (0..ids.len()).map(|n| format!("${}", n + 3)).collect();
    let text = format!(
        "select {{columns}} from template
         where bucket = $1 and org_id = $2 and template_id in ({})",
        names.join(", ")
    );
    let mut query = query_rows(AssertSqlSafe(text)).bind_org(org);
    for id in ids {
        query = query.bind(id.as_str());
    }

    query.fetch_all(connection).await
}

/// Writes name, external id, tags, folder, sharing and the defaults of variables, and whether signers may decline. The
/// caller has locked the template, so that no other change of these is lost.
pub async fn rename(
    connection: &mut SqlConnection,
    template: &Template,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "update template set name = $3, external_id = $4, updated_at = $5, tags = $6,
             may_decline = $7, folder = $8, shared_with = $9, word_source = $10, reminders = $11
         where bucket = $1 and template_id = $2",
    )
    .bind_key(&template.org, template.id.as_str())
    .bind(&template.name)
    .bind(template.external_id.as_deref())
    .bind(now.to_string())
    .bind(json_text(&template.tags))
    .bind(i64::from(template.may_decline))
    .bind(template.folder.as_deref())
    .bind(shared_with(template))
    .bind(template.word_source.as_ref().map(json_text))
    .bind(template.reminders.as_ref().map(json_text))
    .run(connection)
    .await
}

/// Soft-deletes a template: records that refer to its id keep it. Clearing the owner lets a new
/// template be made for the same owner and source.
pub async fn delete(
    connection: &mut SqlConnection,
    template: &Template,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "update template set deleted_at = $3, updated_at = $3, owner_id = null
         where bucket = $1 and template_id = $2 and deleted_at is null",
    )
    .bind_key(&template.org, template.id.as_str())
    .bind(now.to_string())
    .run(connection)
    .await
}

/// Takes back the deletion of a template. A [`StoreError::Conflict`] means that another caller was first.
pub async fn restore(
    connection: &mut SqlConnection,
    template: &Template,
    now: Timestamp,
) -> Result<(), StoreError> {
    // A node of an earlier release may have archived the template at its provider, so the next use sends it again.
    sqlx::query(
        "update template set deleted_at = null, updated_at = $3, provider_stale = 1
         where bucket = $1 and template_id = $2 and deleted_at is not null",
    )
    .bind_key(&template.org, template.id.as_str())
    .bind(now.to_string())
    .run_guarded(connection)
    .await
}

/// Updates a copy from its current source and marks it as stale at the provider.
pub async fn copy_anew(
    connection: &mut SqlConnection,
    copy: &Template,
    now: Timestamp,
) -> Result<(), StoreError> {
    let document = copy.document.as_ref();
    // Stale in the same statement: nothing is sent of the copy before the provider has the new content.
    sqlx::query(
        "update template set name = $3, fields = $4, document_key = $5, document_sha256 = $6,
             document_size = $7, source_content = $8, updated_at = $9, provider_stale = 1
         where bucket = $1 and template_id = $2",
    )
    .bind_key(&copy.org, copy.id.as_str())
    .bind(&copy.name)
    .bind(json_text(&copy.fields))
    .bind(document.map(|document| document.key.as_str()))
    .bind(document.map(|document| document.sha256.as_str()))
    .bind(document.map(|document| document.size))
    .bind(copy.copied_content.as_deref())
    .bind(now.to_string())
    .run(connection)
    .await
}

/// Returns the documents of an organization's newest templates.
pub async fn last_documents(
    connection: &mut SqlConnection,
    org: &OrgId,
    limit: i64,
) -> Result<Vec<(TemplateId, StoredFile)>, StoreError> {
    let templates: Vec<Template> = query_rows(
        "select {columns} from template where bucket = $1 and org_id = $2 and document_key is not null
         order by template_id desc limit $3",
    )
    .bind_org(org)
    .bind(limit)
    .fetch_all(connection)
    .await?;

    let with_documents = templates
        .into_iter()
        .filter_map(|template| Some((template.id, template.document?)));
    Ok(with_documents.collect())
}

/// Replaces the fields, expecting those of `template` (compare-and-swap).
pub async fn set_fields(
    connection: &mut SqlConnection,
    template: &Template,
    fields: &[Field],
    now: Timestamp,
) -> Result<(), StoreError> {
    // The old fields serve as the version: of two users who edit at once, the second gets a conflict.
    sqlx::query(
        "update template set fields = $4, updated_at = $5
         where bucket = $1 and template_id = $2 and fields = $3",
    )
    .bind_key(&template.org, template.id.as_str())
    .bind(json_text(&template.fields))
    .bind(json_text(&fields))
    .bind(now.to_string())
    .run_guarded(connection)
    .await
}

/// Replaces document and fields, expecting those of `before` (compare-and-swap), with the number of
/// their version, and marks the template as stale at the provider.
pub async fn replace(
    connection: &mut SqlConnection,
    before: &Template,
    after: &Template,
    now: Timestamp,
) -> Result<(), StoreError> {
    let document = after.document.as_ref();
    // A missing document is null, which equals nothing, hence the
    // `coalesce`. Nothing is sent before the provider has both.
    // Within a version, the document with variables stays, and a change of their defaults is not lost.
    sqlx::query(
        "update template set fields = $5, document_key = $6, document_sha256 = $7,
             document_size = $8, updated_at = $9, provider_stale = 1, document_repair = $11,
             version = $12, version_by = $13, version_at = $14,
             word_source = case when version = $12 then word_source else $15 end
         where bucket = $1 and template_id = $2 and fields = $3
             and coalesce(document_key, '') = $4 and version = $10",
    )
    .bind_key(&before.org, before.id.as_str())
    .bind(json_text(&before.fields))
    .bind(document_key(before))
    .bind(json_text(&after.fields))
    .bind(document.map(|document| document.key.as_str()))
    .bind(document.map(|document| document.sha256.as_str()))
    .bind(document.map(|document| document.size))
    .bind(now.to_string())
    .bind(before.version)
    .bind(after.repair.as_ref().map(json_text))
    .bind(after.version)
    .bind(after.version_by.as_deref())
    .bind(after.version_at.map(|at| at.to_string()))
    .bind(after.word_source.as_ref().map(json_text))
    .run_guarded(connection)
    .await
}

/// Records that the provider has the document and fields of `template`. Returns false if they have
/// changed meanwhile; the provider may then have received the updates in the wrong order.
pub async fn note_synced(
    connection: &mut SqlConnection,
    template: &Template,
    provider_template: &str,
) -> Result<bool, StoreError> {
    // The provider was called without a lock. The content that it
    // received is compared, because a save may have come in between.
    sqlx::query(
        "update template set provider_stale = 0, provider_template = $5
         where bucket = $1 and template_id = $2 and fields = $3
             and coalesce(document_key, '') = $4",
    )
    .bind_key(&template.org, template.id.as_str())
    .bind(json_text(&template.fields))
    .bind(document_key(template))
    .bind(provider_template)
    .changes_row(connection)
    .await
}

/// Records that the provider's document or fields may be outdated.
pub async fn note_stale(
    connection: &mut SqlConnection,
    template: &Template,
) -> Result<(), StoreError> {
    sqlx::query("update template set provider_stale = 1 where bucket = $1 and template_id = $2")
        .bind_key(&template.org, template.id.as_str())
        .run(connection)
        .await
}

fn document_key(template: &Template) -> &str {
    let document = template.document.as_ref();
    document.map_or("", |document| document.key.as_str())
}

table_row! {
    Template of "template" by "template_id"
        also "document_key", "document_sha256", "document_size", "owner_id", "source_key"
    {
        id: parsed("template_id", TemplateId::parse),
        org: parsed("org_id", OrgId::parse),
        name: text("name"),
        external_id: optional_text("external_id"),
        kba_required: flag("kba_required"),
        may_decline: flag("may_decline"),
        reminders: optional_json("reminders"),
        provider_instance: text("provider_instance"),
        provider_template: optional_text("provider_template"),
        document: |row| match row.optional_text("document_key")? {
            None => None,
            Some(key) => Some(StoredFile {
                key,
                sha256: row.text("document_sha256")?,
                size: row.number("document_size")?,
                content_type: "application/pdf".into(),
            }),
        },
        repair: optional_json("document_repair"),
        fields: json("fields"),
        provider_stale: flag("provider_stale"),
        origin: parsed("origin", Origin::parse),
        // A deleted template has no owner, and keeps its source.
        made_for: |row| {
            let owner = row.optional_text("owner_id")?;
            let owned = owner.zip(row.optional_text("source_key")?);
            owned.map(|(owner, source)| MadeFor { owner, source })
        },
        copied_content: optional_text("source_content"),
        source_format: parsed("source_format", SourceFormat::parse),
        pricing_table: flag("pricing_table"),
        tags: json("tags"),
        folder: optional_text("folder"),
        shared_with: optional_json("shared_with").unwrap_or_default(),
        word_source: optional_json("word_source"),
        version: number("version"),
        version_by: optional_text("version_by"),
        version_at: optional_time("version_at"),
        created_at: time("created_at"),
        updated_at: time("updated_at"),
        deleted_at: optional_time("deleted_at"),
    }
}
