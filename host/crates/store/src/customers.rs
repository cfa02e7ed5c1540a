//! Customers.

use std::collections::HashMap;

use crate::SqlConnection;
use sqlx::AssertSqlSafe;

use super::dialect::SqlDialect;
use super::page::PagedQuery;
use super::row::{RowColumns, json_text, locked_by_id, query_rows, row_by_id, table_row};
use super::search::escaped;
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::{CustomerId, OrgId};

/// Row of a customer.
#[derive(Clone, Debug)]
pub struct CustomerRow {
    pub id: CustomerId,
    pub email: Option<String>,
    pub name: String,
    pub details: serde_json::Map<String, serde_json::Value>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Time of the erasure. The row stays without values, so that references to its id stay valid.
    pub erased_at: Option<Timestamp>,
}

impl CustomerRow {
    /// Returns a value of the customer by its name in the API; none if it is not set.
    pub fn datum(&self, name: &str) -> Option<String> {
        let text = match name {
            "name" => Some(self.name.as_str()),
            "email" => self.email.as_deref(),
            _ => self.details.get(name).and_then(|value| value.as_str()),
        };
        // A blank value counts as missing, so that it is never filled into a field.
        text.filter(|text| !text.trim().is_empty())
            .map(str::to_owned)
    }
}

/// A customer that a request names.
pub struct UpsertedCustomer {
    pub id: CustomerId,
    /// Created now.
    pub is_new: bool,
}

/// Creates the customer with this e-mail address, or updates its name.
pub async fn upsert_by_email(
    connection: &mut SqlConnection,
    org: &OrgId,
    email: &str,
    name: &str,
    now: Timestamp,
) -> Result<UpsertedCustomer, StoreError> {
    let new = CustomerId::new();
    // One statement: two requests with the same new address get the same customer.
    let row = sqlx::query(
        "insert into customer (bucket, customer_id, org_id, email, name, details, created_at, updated_at)
         values ($1, $2, $3, $4, $5, '{}', $6, $6)
         on conflict (bucket, org_id, email) do update set name = $5, updated_at = $6
         returning customer_id",
    )
    .bind_key(org, new.as_str())
    .bind(org.as_str())
    // The unique index compares letters exactly, so an address has one spelling here.
    .bind(email.trim().to_lowercase())
    .bind(name)
    .bind(now.to_string())
    .fetch_one(connection)
    .await?;

    let columns = RowColumns::of(&row, "customer", "customer_id");
    let id = columns.parsed("customer_id", CustomerId::parse)?;

    // On a conflict the database returns the id of the existing row.
    Ok(UpsertedCustomer {
        is_new: id == new,
        id,
    })
}

pub async fn get(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &CustomerId,
) -> Result<Option<CustomerRow>, StoreError> {
    row_by_id(connection, org, id.as_str()).await
}

pub async fn by_email(
    connection: &mut SqlConnection,
    org: &OrgId,
    email: &str,
) -> Result<Option<CustomerRow>, StoreError> {
    query_rows("select {columns} from customer where bucket = $1 and org_id = $2 and email = $3")
        .bind_org(org)
        .bind(email.trim().to_lowercase())
        .fetch_optional(connection)
        .await
}

/// Returns those of these customers that belong to the organization and were not erased, by id.
pub async fn by_ids(
    connection: &mut SqlConnection,
    org: &OrgId,
    ids: &[CustomerId],
) -> Result<HashMap<CustomerId, CustomerRow>, StoreError> {
    /// Ids per statement, well below the databases' limits of bound values.
    const IDS: usize = 500;

    let mut found = HashMap::new();
    for some in ids.chunks(IDS) {
        let names: Vec<String> = (0..some.len()).map(|n| format!("${}", n + 3)).collect();
        let text = format!(
            "select {{columns}} from customer
             where bucket = $1 and org_id = $2 and erased_at is null and customer_id in ({})",
            names.join(", ")
        );
        let mut query = query_rows::<CustomerRow>(AssertSqlSafe(text)).bind_org(org);
        for id in some {
            query = query.bind(id.as_str());
        }

        for customer in query.fetch_all(&mut *connection).await? {
            found.insert(customer.id.clone(), customer);
        }
    }

    Ok(found)
}

/// Adds a customer. A duplicate address within the organization is a unique violation.
pub async fn insert(
    connection: &mut SqlConnection,
    org: &OrgId,
    customer: &CustomerRow,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into customer (bucket, customer_id, org_id, email, name, details, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $7)",
    )
    .bind_key(org, customer.id.as_str())
    .bind(org.as_str())
    // Nulls are never equal in a unique index: any number of customers has no address.
    .bind(customer.email.as_deref())
    .bind(&customer.name)
    .bind(json_text(&customer.details))
    .bind(customer.created_at.to_string())
    .run(connection)
    .await
}

/// Writes all mutable columns of a customer.
pub async fn update(
    connection: &mut SqlConnection,
    org: &OrgId,
    customer: &CustomerRow,
) -> Result<(), StoreError> {
    sqlx::query(
        "update customer set email = $3, name = $4, details = $5, updated_at = $6
         where bucket = $1 and customer_id = $2",
    )
    .bind_key(org, customer.id.as_str())
    .bind(customer.email.as_deref())
    .bind(&customer.name)
    .bind(json_text(&customer.details))
    .bind(customer.updated_at.to_string())
    .run(connection)
    .await
}

/// Returns a customer with its row locked until the transaction ends.
pub async fn lock(
    tx: &mut WriteTransaction,
    org: &OrgId,
    id: &CustomerId,
) -> Result<Option<CustomerRow>, StoreError> {
    locked_by_id(tx, org, id.as_str()).await
}

/// Returns a page of customers, newest first, and the total number.
pub async fn list(
    connection: &mut SqlConnection,
    org: &OrgId,
    page: i64,
    limit: i64,
) -> Result<(Vec<CustomerRow>, i64), StoreError> {
    let list = PagedQuery {
        select: "select {columns} from customer",
        bucket: org.bucket(),
        wanted: &[("org_id", Some(org.as_str()))],
        compared: &[],
        also: " and erased_at is null",
    };
    list.page(connection, page, limit).await
}

/// Returns the newest customers with a text in their name or address, in any case, of ASCII letters only on SQLite. An id
/// finds its customer. With `after`, only older ones than that.
pub async fn search(
    connection: &mut SqlConnection,
    dialect: SqlDialect,
    org: &OrgId,
    text: Option<&str>,
    after: Option<&CustomerId>,
    limit: i64,
) -> Result<Vec<CustomerRow>, StoreError> {
    // Only given conditions are in the statement, so that a list without them reads an index in its order.
    let mut conditions = String::from("bucket = $1 and org_id = $2 and erased_at is null");
    let mut values = Vec::new();
    if let Some(after) = after {
        conditions += " and customer_id < $4";
        values.push(after.as_str().to_owned());
    }

    if let Some(text) = text {
        let (id, part) = (values.len() + 4, format!("${}", values.len() + 5));
        let pattern = format!("%{}%", escaped(text));
        let is_like = |column| dialect.is_like(column, &part, &pattern);
        let (name, email) = (is_like("name"), is_like("email"));
        conditions += &format!(" and (customer_id = ${id} or {name} or {email})");
        values.extend([text.to_owned(), pattern]);
    }

    let text = format!(
        "select {{columns}} from customer where {conditions} order by customer_id desc limit $3"
    );
    let mut query = query_rows(AssertSqlSafe(text)).bind_org(org).bind(limit);
    for value in values {
        query = query.bind(value);
    }

    query.fetch_all(connection).await
}

table_row! {
    CustomerRow of "customer" by "customer_id" {
        id: parsed("customer_id", CustomerId::parse),
        email: optional_text("email"),
        name: text("name"),
        details: json("details"),
        created_at: time("created_at"),
        updated_at: time("updated_at"),
        erased_at: optional_time("erased_at"),
    }
}
