//! Customers, as partners see them, and their general documents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::envelopes::uploads::{self, AttachedFile};
use holdfast_adapters::mail::{address as mail_address, is_address};
use holdfast_base::fair_queue::WorkOwner;
use holdfast_domain::change::FieldPatch;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, EnvelopeKind, EnvelopeStatus, StoredFile};
use holdfast_domain::id::CustomerId;
use holdfast_platform::documents::{DocumentUpload, check_readable};
use holdfast_platform::events;
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::organizations;
use holdfast_platform::permits::erased_customers;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::customers::{self, CustomerRow};
use holdfast_store::envelopes;

/// Customer fields that are safe to show to partners. Unset values are null.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "customer_id": "cust_01jdk7m3e8f4x9s2w5v6b0c1db", "name": "Jordan Lee", "phone": null,
    "company": null, "job_title": null, "entity_type": null, "client_id": null, "category": null,
    "industry": null, "address_line1": null, "address_line2": null, "city": null, "state": null,
    "postal_code": null, "country": null, "website_url": null, "primary_contact_name": null,
    "created_at": "2026-11-21T09:30:00.000Z", "updated_at": "2026-11-21T09:30:00.000Z",
}]))]
pub struct CustomerView {
    pub customer_id: CustomerId,
    pub name: String,
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
    pub created_at: Timestamp,
    updated_at: Timestamp,
}

impl CustomerView {
    /// Returns the contact and company data that are set, in the order of a letter.
    pub fn details(&self) -> impl Iterator<Item = &str> {
        let details = [
            &self.company,
            &self.job_title,
            &self.primary_contact_name,
            &self.address_line1,
            &self.address_line2,
            &self.postal_code,
            &self.city,
            &self.state,
            &self.country,
            &self.phone,
            &self.website_url,
            &self.client_id,
            &self.category,
            &self.industry,
            &self.entity_type,
        ];
        details.into_iter().filter_map(|detail| detail.as_deref())
    }
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

/// Returns the customer with this e-mail address.
pub async fn by_email(
    core: &Core,
    caller: &Caller,
    email: &str,
) -> Result<CustomerView, ServiceError> {
    let mut connection = core.store.read().await?;
    let customer = customers::by_email(&mut connection, &caller.org, email).await?;
    Ok(customer.ok_or(ServiceError::NotFound("Customer"))?.into())
}

/// A customer as shown to its own organization, with the e-mail address.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OwnCustomer {
    #[serde(flatten)]
    pub customer: CustomerView,
    /// Lower case; null when unknown.
    pub email: Option<String>,
}

impl From<CustomerRow> for OwnCustomer {
    fn from(customer: CustomerRow) -> Self {
        Self {
            email: customer.email.clone(),
            customer: customer.into(),
        }
    }
}

/// Writable contact and company data of a customer.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CustomerDetails {
    #[schemars(length(max = 100))]
    pub phone: Option<String>,
    #[schemars(length(max = 500))]
    pub company: Option<String>,
    #[schemars(length(max = 200))]
    pub job_title: Option<String>,
    #[schemars(length(max = 200))]
    pub entity_type: Option<String>,
    #[schemars(length(max = 200))]
    pub client_id: Option<String>,
    #[schemars(length(max = 200))]
    pub category: Option<String>,
    #[schemars(length(max = 200))]
    pub industry: Option<String>,
    #[schemars(length(max = 500))]
    pub address_line1: Option<String>,
    #[schemars(length(max = 500))]
    pub address_line2: Option<String>,
    #[schemars(length(max = 200))]
    pub city: Option<String>,
    #[schemars(length(max = 200))]
    pub state: Option<String>,
    #[schemars(length(max = 50))]
    pub postal_code: Option<String>,
    #[schemars(length(max = 200))]
    pub country: Option<String>,
    #[schemars(length(max = 2000))]
    pub website_url: Option<String>,
    /// Contact person who receives mail and signs; defaults to the customer's own name.
    #[schemars(length(max = 500))]
    pub primary_contact_name: Option<String>,
}

/// Body of `POST /customers`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "name": "Birch Bakery", "email": "office@birch.example", "primary_contact_name": "Kim Birch",
    "city": "Salem", "state": "Oregon",
}]))]
pub struct CreateCustomer {
    #[schemars(length(min = 1, max = 500))]
    pub name: String,
    /// Without an address, no mail is sent to this customer.
    #[schemars(email)]
    pub email: Option<String>,
    #[serde(flatten)]
    pub details: CustomerDetails,
}

/// Body of `PATCH /customers/{id}`: absent members stay unchanged, null clears a value.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "phone": "+1 503 555 0100", "industry": null }]))]
pub struct ChangeCustomer {
    #[schemars(length(min = 1, max = 500))]
    pub name: Option<String>,
    #[serde(default)]
    #[schemars(with = "Option<String>", email)]
    pub email: FieldPatch<String>,
    /// Kept as raw members, because only the raw body distinguishes null from absent.
    #[serde(flatten)]
    #[schemars(with = "CustomerDetails")]
    pub details: Map<String, Value>,
}

const TAKEN: &str = "A customer with this email address exists";

/// Returns an address in the form in which it is stored; a wrong one stays as it is.
fn address(email: String) -> String {
    let address = mail_address::parse(email.trim());
    address.unwrap_or(email).trim().to_lowercase()
}

/// Returns the non-null members of `details` by name.
fn set(details: &CustomerDetails) -> Map<String, Value> {
    let Value::Object(members) = json!(details) else {
        return Map::new();
    };
    let members = members.into_iter();
    members.filter(|(_, value)| !value.is_null()).collect()
}

/// Whether a person with this name and address can be a customer.
pub fn is_person(name: &str, email: &str) -> bool {
    is_address(email) && !name.trim().is_empty() && name.chars().count() <= 500
}

/// Returns the customers with these names and addresses, in order. Unknown ones are created, and names updated.
pub async fn of_people(
    core: &Core,
    caller: &Caller,
    people: &[(String, String)],
) -> Result<Vec<CustomerId>, ServiceError> {
    let now = core.clock.now();
    // One transaction, so that a list that fails creates no customer.
    let mut tx = core.store.begin().await?;
    let mut ids = Vec::with_capacity(people.len());
    for (name, email) in people {
        let email = address(email.clone());
        let known = customers::upsert_by_email(&mut tx, &caller.org, &email, name, now).await?;
        ids.push(known.id);
    }

    tx.commit().await?;
    Ok(ids)
}

/// Creates a customer.
pub async fn create(
    core: &Core,
    caller: &Caller,
    request: CreateCustomer,
    answer: &ResponseRecorder<OwnCustomer>,
) -> Result<OwnCustomer, ServiceError> {
    let now = core.clock.now();
    let customer = CustomerRow {
        id: CustomerId::new(),
        email: request.email.map(address),
        name: request.name,
        details: set(&request.details),
        created_at: now,
        updated_at: now,
        erased_at: None,
    };

    let mut tx = core.store.begin().await?;
    // The index decides: two requests with one address can both pass a check before the insert.
    match customers::insert(&mut tx, &caller.org, &customer).await {
        Err(error) if error.is_unique_violation() => {
            return Err(ServiceError::Conflict(TAKEN.into()));
        }
        inserted => inserted?,
    }

    let created = OwnCustomer::from(customer);
    answer.commit(tx, &created).await?;
    Ok(created)
}

/// Changes a customer.
pub async fn change(
    core: &Core,
    caller: &Caller,
    id: &str,
    request: ChangeCustomer,
) -> Result<OwnCustomer, ServiceError> {
    let unknown = || ServiceError::NotFound("Customer");
    let id = CustomerId::parse(id).ok_or_else(unknown)?;
    let mut tx = core.store.begin().await?;
    let found = customers::lock(&mut tx, &caller.org, &id).await?;
    let mut customer = found.ok_or_else(unknown)?;
    if customer.erased_at.is_some() {
        return Err(erased_customers::gone());
    }

    if let Some(name) = request.name {
        customer.name = name;
    }

    request.email.map(address).apply(&mut customer.email);
    let known = json!(CustomerDetails::default());
    for (name, value) in request.details {
        // Flattening collects all remaining members; only known ones are stored.
        if known.get(&name).is_none() {
            continue;
        }

        match value {
            Value::Null => customer.details.remove(&name),
            value => customer.details.insert(name, value),
        };
    }

    customer.updated_at = core.clock.now();
    match customers::update(&mut tx, &caller.org, &customer).await {
        Err(error) if error.is_unique_violation() => {
            return Err(ServiceError::Conflict(TAKEN.into()));
        }
        updated => updated?,
    }

    tx.commit().await?;
    Ok(customer.into())
}

/// Returns a customer of the caller's organization.
pub async fn get(core: &Core, caller: &Caller, id: &str) -> Result<OwnCustomer, ServiceError> {
    let found = find(core, caller, id).await?;
    if found.erased_at.is_some() {
        return Err(erased_customers::gone());
    }
    Ok(found.into())
}

/// Returns the row of a customer of the caller's organization, also of an erased one.
pub(crate) async fn find(
    core: &Core,
    caller: &Caller,
    id: &str,
) -> Result<CustomerRow, ServiceError> {
    let unknown = || ServiceError::NotFound("Customer");
    let id = CustomerId::parse(id).ok_or_else(unknown)?;
    let mut connection = core.store.read().await?;
    let found = customers::get(&mut connection, &caller.org, &id).await?;
    found.ok_or_else(unknown)
}

/// Returns one page of customers, newest first, and the total count.
pub async fn list(
    core: &Core,
    caller: &Caller,
    page: i64,
    limit: i64,
) -> Result<(Vec<OwnCustomer>, i64), ServiceError> {
    let mut connection = core.store.read().await?;
    let (found, total) = customers::list(&mut connection, &caller.org, page, limit).await?;
    Ok((found.into_iter().map(OwnCustomer::from).collect(), total))
}

/// Returns the caller's newest customers with a part of a name or address, or all; with `after`, only older ones.
pub async fn search(
    core: &Core,
    caller: &Caller,
    text: Option<&str>,
    after: Option<&CustomerId>,
    limit: i64,
) -> Result<Vec<OwnCustomer>, ServiceError> {
    let mut connection = core.store.read().await?;
    let found = customers::search(
        &mut connection,
        core.store.dialect(),
        &caller.org,
        text,
        after,
        limit,
    )
    .await?;
    Ok(found.into_iter().map(OwnCustomer::from).collect())
}

/// A document that was filed under a customer, with the envelope that holds it.
pub struct FiledDocument {
    pub customer: CustomerId,
    pub envelope: Envelope,
    pub file: StoredFile,
}

/// Files a document under a customer as an uploaded paper envelope. It is vaulted only on
/// request.
pub async fn file_document(
    core: &Core,
    caller: &Caller,
    id: &str,
    upload: DocumentUpload,
    answer: &ResponseRecorder<FiledDocument>,
) -> Result<FiledDocument, ServiceError> {
    let file_type = upload.file_type()?;
    // No connection is held while the document is read in the sandbox.
    let customer = find(core, caller, id).await?;
    erased_customers::permit(&customer)?;

    // No item: the envelope does not exist yet.
    let owner = WorkOwner::new(&caller.org, "");
    let checked = check_readable(core, &caller.org, &owner, file_type, &upload).await?;
    let now = core.clock.now();
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

    envelope.existing_signatures = checked.signatures;
    envelope
        .metadata
        .insert("document_source".into(), "upload".into());
    let organization = organizations::read(core, &caller.org).await?;
    let jurisdiction = organization.settings.chattel_paper_jurisdiction.as_ref();
    envelope.set_jurisdiction(jurisdiction);

    // The bytes are stored before the row that names them.
    let file = uploads::store(core, &caller.org, &envelope.id, file_type, &upload).await?;
    let mut tx = core.store.begin().await?;
    // Locked: of an erasure at the same moment, one comes first.
    let locked = customers::lock(&mut tx, &caller.org, &customer.id).await?;
    erased_customers::permit(&locked.ok_or(ServiceError::NotFound("Customer"))?)?;
    envelopes::insert(&mut tx, &envelope).await?;

    // The ledger, the event and the file pointer commit with the envelope row.
    events::record_created(&mut tx, &envelope, &caller.actor, Map::new(), now).await?;
    uploads::attach(
        &mut tx,
        caller,
        &envelope,
        EnvelopeStatus::Uploaded,
        AttachedFile {
            file: &file,
            repair: checked.repair.as_ref(),
        },
        now,
    )
    .await?;

    // The answer shows the envelope as the transaction has left it.
    envelope.upload = Some(file.clone());
    let filed = FiledDocument {
        customer: customer.id,
        envelope,
        file,
    };
    answer.commit(tx, &filed).await?;

    Ok(filed)
}
