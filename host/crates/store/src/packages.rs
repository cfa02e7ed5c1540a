//! Packages of templates.

use crate::SqlConnection;

use super::page::PagedQuery;
use super::row::{json_text, row_by_id, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, templates};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::{OrgId, PackageId};
use holdfast_domain::package::Package;
use holdfast_domain::template::TemplateReader;

pub async fn insert(connection: &mut SqlConnection, package: &Package) -> Result<(), StoreError> {
    sqlx::query(
        "insert into document_package (bucket, package_id, org_id, name, template_ids, created_at,
             updated_at)
         values ($1, $2, $3, $4, $5, $6, $6)",
    )
    .bind_key(&package.org, package.id.as_str())
    .bind(package.org.as_str())
    .bind(&package.name)
    // Their order is that of the merged document.
    .bind(json_text(&package.templates))
    .bind(package.created_at.to_string())
    .run(connection)
    .await
}

pub async fn get(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &PackageId,
) -> Result<Option<Package>, StoreError> {
    row_by_id(connection, org, id.as_str()).await
}

/// Returns a page of packages, newest first, and the total number. For a user, those with a template that is not
/// shared with the user are left out.
pub async fn list(
    connection: &mut SqlConnection,
    org: &OrgId,
    reader: Option<&TemplateReader>,
    page: i64,
    limit: i64,
) -> Result<(Vec<Package>, i64), StoreError> {
    let seen = reader.map(|reader| {
        let condition = format!(
            "not exists (select 1 from template as member
                 where member.bucket = document_package.bucket
                     and member.org_id = document_package.org_id
                     and member.shared_with is not null
                     and replace(document_package.template_ids, member.template_id, '')
                         <> document_package.template_ids
                     and not {})",
            templates::seen_by(reader, "member")
        );
        (condition, templates::address(reader))
    });
    let compared = seen.as_ref();
    let compared = compared.map(|(condition, address)| (condition.as_str(), address.as_str()));
    let list = PagedQuery {
        select: "select {columns} from document_package",
        bucket: org.bucket(),
        wanted: &[("org_id", Some(org.as_str()))],
        compared: compared.as_slice(),
        also: "",
    };
    list.page(connection, page, limit).await
}

/// Replaces name and members, expecting those of `before` (compare-and-swap).
pub async fn replace(
    connection: &mut SqlConnection,
    before: &Package,
    after: &Package,
    now: Timestamp,
) -> Result<(), StoreError> {
    // A package has no version, so the values that the caller has read are compared.
    sqlx::query(
        "update document_package set name = $3, template_ids = $4, updated_at = $5
         where bucket = $1 and package_id = $2 and name = $6 and template_ids = $7",
    )
    .bind_key(&after.org, after.id.as_str())
    .bind(&after.name)
    .bind(json_text(&after.templates))
    .bind(now.to_string())
    .bind(&before.name)
    .bind(json_text(&before.templates))
    .run_guarded(connection)
    .await
}

table_row! {
    Package of "document_package" by "package_id" {
        id: parsed("package_id", PackageId::parse),
        org: parsed("org_id", OrgId::parse),
        name: text("name"),
        templates: json("template_ids"),
        created_at: time("created_at"),
        updated_at: time("updated_at"),
    }
}
