//! Customers as partners see them, and their general documents.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::idempotency::Answering;
use super::uploads::{self, Upload};
use super::{Caller, ServiceError, events};
use crate::app::App;
use crate::domain::clock::Timestamp;
use crate::domain::envelope::{Envelope, EnvelopeKind, EnvelopeStatus, StoredFile};
use crate::domain::event::EventType;
use crate::domain::id::CustomerId;
use crate::store::customers::{self, CustomerRow};
use crate::store::envelopes;

/// The partner-safe subset of a customer. Unset values are null.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "customer_id": "cust_01jdk7m3e8f4x9s2w5v6b0c1db", "name": "Jordan Lee", "phone": null,
    "company": null, "job_title": null, "entity_type": null, "client_id": null, "category": null,
    "industry": null, "address_line1": null, "address_line2": null, "city": null, "state": null,
    "postal_code": null, "country": null, "website_url": null, "primary_contact_name": null,
    "created_at": "2026-11-21T09:30:00.000Z", "updated_at": "2026-11-21T09:30:00.000Z",
}]))]
pub struct CustomerView {
    customer_id: CustomerId,
    name: String,
    phone: Option<String>,
    company: Option<String>,
    job_title: Option<String>,
    entity_type: Option<String>,
    client_id: Option<String>,
    category: Option<String>,
    industry: Option<String>,
    address_line1: Option<String>,
    address_line2: Option<String>,
    city: Option<String>,
    state: Option<String>,
    postal_code: Option<String>,
    country: Option<String>,
    website_url: Option<String>,
    primary_contact_name: Option<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl From<CustomerRow> for CustomerView {
    fn from(customer: CustomerRow) -> Self {
        let text = |name: &str| {
            let value = customer.details.get(name)?.as_str()?;
            Some(value.to_owned())
        };
        Self {
            phone: text("phone"),
            company: text("company"),
            job_title: text("job_title"),
            entity_type: text("entity_type"),
            client_id: text("client_id"),
            category: text("category"),
            industry: text("industry"),
            address_line1: text("address_line1"),
            address_line2: text("address_line2"),
            city: text("city"),
            state: text("state"),
            postal_code: text("postal_code"),
            country: text("country"),
            website_url: text("website_url"),
            primary_contact_name: text("primary_contact_name"),
            customer_id: customer.id,
            name: customer.name,
            created_at: customer.created_at,
            updated_at: customer.updated_at,
        }
    }
}

/// The customer with this e-mail address.
pub async fn by_email(
    app: &App,
    caller: &Caller,
    email: &str,
) -> Result<CustomerView, ServiceError> {
    let mut connection = app.store.read().await?;
    let customer = customers::by_email(&mut connection, &caller.org, email).await?;
    Ok(customer.ok_or(ServiceError::NotFound("Customer"))?.into())
}

/// A document that was filed under a customer.
pub struct Filed {
    pub customer: CustomerId,
    pub envelope: Envelope,
    pub file: StoredFile,
}

/// Files a document under a customer: an envelope that is vaulted only when
/// asked.
pub async fn file_document(
    app: &App,
    caller: &Caller,
    id: &str,
    upload: Upload,
    answer: &Answering<Filed>,
) -> Result<Filed, ServiceError> {
    let file_type = upload.file_type()?;
    let unknown = || ServiceError::NotFound("Customer");
    let id = CustomerId::parse(id).ok_or_else(unknown)?;
    let mut connection = app.store.read().await?;
    let customer = customers::get(&mut connection, &caller.org, &id)
        .await?
        .ok_or_else(unknown)?;
    drop(connection);
    uploads::check_readable(app, &caller.org, file_type, &upload).await?;
    let now = app.clock.now();
    let name = match &upload.file_name {
        Some(name) => name.clone(),
        None => format!("Document of {}", customer.name),
    };
    let mut envelope = Envelope::new(
        caller.org.clone(),
        customer.id.clone(),
        name,
        EnvelopeKind::Paper,
        caller.creator(),
        now,
    );
    envelope.status = EnvelopeStatus::Uploaded;
    envelope
        .metadata
        .insert("document_source".into(), "upload".into());
    let file = uploads::store(app, &caller.org, &envelope.id, file_type, &upload).await?;
    let mut tx = app.store.begin().await?;
    envelopes::insert(&mut tx, &envelope).await?;
    let data = json!({ "status": envelope.status, "envelope_kind": envelope.kind });
    let (actor, created) = (caller.actor.as_str(), EventType::EnvelopeCreated);
    events::record_and_emit(&mut tx, &envelope, actor, created, data, now).await?;
    uploads::attach(
        &mut tx,
        caller,
        &envelope,
        EnvelopeStatus::Uploaded,
        &file,
        now,
    )
    .await?;
    envelope.upload = Some(file.clone());
    let filed = Filed {
        customer: customer.id,
        envelope,
        file,
    };
    answer.commit(tx, &filed).await?;
    Ok(filed)
}
