//! Erasure of customers: the requests, and the rows with values of a person that belong to no record.

use super::customers::CustomerRow;
use super::row::{json_text, locked_by_id, row_by_id, table_row};
use super::search::escaped;
use super::statement::RunStatement as _;
use super::{SqlConnection, StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::erasure::CustomerErasure;
use holdfast_domain::id::{CustomerId, EnvelopeId, OrgId};
use holdfast_domain::job::{JobPayload as _, MailContractDate};

/// Returns the request to erase a customer.
pub async fn get(
    connection: &mut SqlConnection,
    org: &OrgId,
    customer: &CustomerId,
) -> Result<Option<CustomerErasure>, StoreError> {
    row_by_id(connection, org, customer.as_str()).await
}

/// Returns the request to erase a customer with its row locked until the transaction ends.
pub async fn lock(
    tx: &mut WriteTransaction,
    org: &OrgId,
    customer: &CustomerId,
) -> Result<Option<CustomerErasure>, StoreError> {
    locked_by_id(tx, org, customer.as_str()).await
}

/// Adds a request. A second one for the same customer is a unique violation.
pub async fn insert(
    tx: &mut WriteTransaction,
    erasure: &CustomerErasure,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into customer_erasure (bucket, customer_id, org_id, requested_by, requested_as, requested_at,
             erased, remaining)
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind_key(&erasure.org, erasure.customer.as_str())
    .bind(erasure.org.as_str())
    .bind(&erasure.requested_by)
    .bind(erasure.requested_as.as_ref().map(json_text))
    .bind(erasure.requested_at.to_string())
    .bind(json_text(&erasure.erased))
    .bind(json_text(&erasure.remaining))
    .run(tx)
    .await
}

/// Writes the mutable columns of a request.
pub async fn update(
    tx: &mut WriteTransaction,
    erasure: &CustomerErasure,
) -> Result<(), StoreError> {
    let approved = erasure.approved.as_ref();
    sqlx::query(
        "update customer_erasure set requested_by = $3, requested_as = $4, requested_at = $5, approved_by = $6,
             approved_at = $7, erased = $8, remaining = $9
         where bucket = $1 and customer_id = $2",
    )
    .bind_key(&erasure.org, erasure.customer.as_str())
    .bind(&erasure.requested_by)
    .bind(erasure.requested_as.as_ref().map(json_text))
    .bind(erasure.requested_at.to_string())
    .bind(approved.map(|(by, _)| by))
    .bind(approved.map(|(_, at)| at.to_string()))
    .bind(json_text(&erasure.erased))
    .bind(json_text(&erasure.remaining))
    .run(tx)
    .await
}

/// Removes a request that was taken back.
pub async fn remove(
    tx: &mut WriteTransaction,
    erasure: &CustomerErasure,
) -> Result<(), StoreError> {
    sqlx::query("delete from customer_erasure where bucket = $1 and customer_id = $2")
        .bind_key(&erasure.org, erasure.customer.as_str())
        .run(tx)
        .await
}

/// Returns the envelopes of a customer, and those in which someone with the customer's address takes part, except
/// after their destruction has begun.
pub async fn envelopes(
    connection: &mut SqlConnection,
    customer: &CustomerRow,
    org: &OrgId,
) -> Result<Vec<EnvelopeId>, StoreError> {
    let found: Vec<String> = sqlx::query_scalar(
        "select envelope_id from envelope
         where bucket = $1 and org_id = $2 and customer_id = $3 and destruction is null
         union
         select signer.envelope_id from signer join envelope
             on envelope.bucket = signer.bucket and envelope.envelope_id = signer.envelope_id
         where signer.bucket = $1 and signer.org_id = $2 and lower(signer.email) = $4
             and envelope.destruction is null
         order by envelope_id",
    )
    .bind(org.bucket())
    .bind(org.as_str())
    .bind(customer.id.as_str())
    // No signer has an empty address.
    .bind(customer.email.as_deref().unwrap_or_default())
    .fetch_all(connection)
    .await?;

    Ok(found
        .iter()
        .filter_map(|id| EnvelopeId::parse(id))
        .collect())
}

/// Returns the ids of the batches that a customer was a client of.
pub async fn batches(
    connection: &mut SqlConnection,
    customer: &CustomerRow,
    org: &OrgId,
) -> Result<Vec<String>, StoreError> {
    let found = sqlx::query_scalar(
        "select distinct batch_id from bulk_item where bucket = $1 and org_id = $2 and customer_id = $3
         order by batch_id",
    )
    .bind(org.bucket())
    .bind(org.as_str())
    .bind(customer.id.as_str())
    .fetch_all(connection)
    .await?;
    Ok(found)
}

/// Removes the values of a customer, and its working data: clients of batches, requests and messages that are kept for a
/// time, records of open links, identity checks that were billed, customers of imports, saved filters and mails that were not sent. Messages
/// about a record stay with it.
pub async fn forget(
    tx: &mut WriteTransaction,
    org: &OrgId,
    customer: &CustomerRow,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "update customer set email = null, name = '', details = '{}', updated_at = $4, erased_at = $4
         where bucket = $1 and org_id = $2 and customer_id = $3",
    )
    .bind_org(org)
    .bind(customer.id.as_str())
    .bind(now.to_string())
    .run(tx)
    .await?;

    let id = customer.id.as_str();
    // The id has no wildcards but its underscore, which is escaped.
    let in_path = format!("%{}%", escaped(id));
    for (statement, value) in [
        // A client without an envelope is nothing but the person. The others say which envelope the batch made.
        (
            "delete from bulk_item where bucket = $1 and org_id = $2 and customer_id = $3 and envelope_id is null",
            id,
        ),
        (
            "update bulk_item set customer_name = '', email = null, error = null
             where bucket = $1 and org_id = $2 and customer_id = $3",
            id,
        ),
        (
            "delete from request_log where bucket = $1 and org_id = $2 and path like $3 escape '!'",
            in_path.as_str(),
        ),
        (
            "delete from open_link_record where bucket = $1 and org_id = $2 and customer_id = $3",
            id,
        ),
    ] {
        sqlx::query(statement)
            .bind_org(org)
            .bind(value)
            .run(tx)
            .await?;
    }

    if let Some(email) = &customer.email {
        forget_address(tx, org, email).await?;
    }
    if let Some(phone) = customer.datum("phone") {
        forget_messages(tx, org, &phone).await?;
    }
    Ok(())
}

/// Removes the working data with an address, which is in lower case.
async fn forget_address(
    tx: &mut WriteTransaction,
    org: &OrgId,
    email: &str,
) -> Result<(), StoreError> {
    forget_messages(tx, org, email).await?;
    for statement in [
        "delete from kba_billed where bucket = $1 and org_id = $2 and email = $3",
        "delete from kba_billed_person where bucket = $1 and org_id = $2 and email = $3",
    ] {
        sqlx::query(statement)
            .bind_org(org)
            .bind(email)
            .run(tx)
            .await?;
    }

    // The query of a filter is that of an address, with the sign encoded.
    let encoded = email.replace('@', "%40");
    sqlx::query(
        "delete from saved_filter where bucket = $1 and org_id = $2
             and (lower(query) like $3 escape '!' or lower(query) like $4 escape '!')",
    )
    .bind_org(org)
    .bind(format!("%{}%", escaped(email)))
    .bind(format!("%{}%", escaped(&encoded)))
    .run(tx)
    .await?;

    let address = json_text(&email);
    // Rows of a running import that name no customer themselves fail without this one.
    sqlx::query(
        "update record_import set customer = null
         where bucket = $1 and org_id = $2 and lower(customer) like $3 escape '!'",
    )
    .bind_org(org)
    .bind(format!("%\"email\":{}%", escaped(&address)))
    .run(tx)
    .await?;

    // Other mails name an envelope and a place in it, and find no person there once it is destroyed.
    sqlx::query(
        "delete from job where bucket = $1 and org_id = $2 and kind = $3 and lower(payload) like $4 escape '!'",
    )
    .bind_org(org)
    .bind(MailContractDate::NAME)
    .bind(format!("%\"to\":{}%", escaped(&address)))
    .run(tx)
    .await
}

/// Removes the saved messages of test data to an address or a number that are about no record.
async fn forget_messages(
    tx: &mut WriteTransaction,
    org: &OrgId,
    to: &str,
) -> Result<(), StoreError> {
    sqlx::query(
        "delete from test_message
         where bucket = $1 and org_id = $2 and lower(sent_to) = $3 and envelope_id is null",
    )
    .bind_org(org)
    .bind(to.to_lowercase())
    .run(tx)
    .await
}

table_row! {
    CustomerErasure of "customer_erasure" by "customer_id" also "approved_by", "approved_at" {
        customer: parsed("customer_id", CustomerId::parse),
        org: parsed("org_id", OrgId::parse),
        requested_by: text("requested_by"),
        requested_as: optional_json("requested_as"),
        requested_at: time("requested_at"),
        approved: |row| row.optional_text("approved_by")?.zip(row.optional_time("approved_at")?),
        erased: json("erased"),
        remaining: json("remaining"),
    }
}
