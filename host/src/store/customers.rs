//! Customers.

use sqlx::AnyConnection;
use sqlx::any::AnyRow;

use super::StoreError;
use super::row::Columns;
use crate::domain::clock::Timestamp;
use crate::domain::id::{CustomerId, OrgId};

/// A customer as the envelope flow needs it.
#[derive(Clone, Debug)]
pub struct CustomerRow {
    pub id: CustomerId,
    pub email: Option<String>,
    pub name: String,
    pub details: serde_json::Map<String, serde_json::Value>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The customer with this e-mail, created or renamed.
pub async fn upsert_by_email(
    connection: &mut AnyConnection,
    org: &OrgId,
    email: &str,
    name: &str,
    now: Timestamp,
) -> Result<CustomerId, StoreError> {
    let row = sqlx::query(
        "insert into customer (bucket, customer_id, org_id, email, name, details, created_at, updated_at)
         values ($1, $2, $3, $4, $5, '{}', $6, $6)
         on conflict (bucket, org_id, email) do update set name = $5, updated_at = $6
         returning customer_id",
    )
    .bind(org.bucket())
    .bind(CustomerId::new().as_str())
    .bind(org.as_str())
    .bind(email.trim().to_lowercase())
    .bind(name)
    .bind(now.to_string())
    .fetch_one(connection)
    .await?;
    let columns = Columns {
        row: &row,
        table: "customer",
        id: "customer_id",
    };
    columns.parsed("customer_id", CustomerId::parse)
}

pub async fn get(
    connection: &mut AnyConnection,
    org: &OrgId,
    id: &CustomerId,
) -> Result<Option<CustomerRow>, StoreError> {
    sqlx::query("select * from customer where bucket = $1 and org_id = $2 and customer_id = $3")
        .bind(org.bucket())
        .bind(org.as_str())
        .bind(id.as_str())
        .fetch_optional(connection)
        .await?
        .map(|row| customer(&row))
        .transpose()
}

pub async fn by_email(
    connection: &mut AnyConnection,
    org: &OrgId,
    email: &str,
) -> Result<Option<CustomerRow>, StoreError> {
    sqlx::query("select * from customer where bucket = $1 and org_id = $2 and email = $3")
        .bind(org.bucket())
        .bind(org.as_str())
        .bind(email.trim().to_lowercase())
        .fetch_optional(connection)
        .await?
        .map(|row| customer(&row))
        .transpose()
}

fn customer(row: &AnyRow) -> Result<CustomerRow, StoreError> {
    let columns = Columns {
        row,
        table: "customer",
        id: "customer_id",
    };
    Ok(CustomerRow {
        id: columns.parsed("customer_id", CustomerId::parse)?,
        email: columns.optional_text("email")?,
        name: columns.text("name")?,
        details: columns.json("details")?,
        created_at: columns.time("created_at")?,
        updated_at: columns.time("updated_at")?,
    })
}
