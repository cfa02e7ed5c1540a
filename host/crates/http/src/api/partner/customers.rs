//! Partner API: customers.

use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::HttpError;
use crate::middleware::caller::{CustomersRead, EnvelopesWrite, PartnerCaller};
use crate::middleware::extract::{FileForm, MultipartForm, ResourceId, ValidQuery};
use crate::middleware::once::IdempotencyKeyHeader;
use crate::reply::{Created, DataReply, Found};
use holdfast_domain::id::{CustomerId, EnvelopeId};
use holdfast_service::App;
use holdfast_service::customers::{self, CustomerView, FiledDocument};

#[derive(Deserialize, JsonSchema)]
pub struct CustomerQuery {
    /// Matched case-insensitively.
    email: String,
}

pub async fn find(
    State(app): State<App>,
    partner: PartnerCaller<CustomersRead>,
    ValidQuery(query): ValidQuery<CustomerQuery>,
) -> Result<Found<CustomerView>, HttpError> {
    if query.email.trim().is_empty() {
        return Err(HttpError::bad_request("email is required"));
    }
    let customer = customers::by_email(&app, &partner.caller, &query.email).await?;
    Ok(DataReply::new(&customer))
}

/// A document filed under a customer.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "customer_id": "cust_01jdk7m3e8f4x9s2w5v6b0c1db", "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc",
    "path": "uploads:env_01jdk7m3e8f4x9s2w5v6b0c1dc/document",
    "hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "size": 48213, "contentType": "application/pdf",
}]))]
pub struct FiledView {
    customer_id: CustomerId,
    envelope_id: EnvelopeId,
    /// Opaque reference.
    path: String,
    /// SHA-256, lower-case hex.
    hash: String,
    /// Size in bytes.
    size: i64,
    // The specification spells this one member in camel case.
    #[serde(rename = "contentType")]
    content_type: String,
}

impl From<&FiledDocument> for FiledView {
    fn from(filed: &FiledDocument) -> Self {
        Self {
            customer_id: filed.customer.clone(),
            envelope_id: filed.envelope.id.clone(),
            path: filed.envelope.upload_file_path().unwrap_or_default(),
            hash: filed.file.sha256.clone(),
            size: filed.file.size,
            content_type: filed.file.content_type.clone(),
        }
    }
}

pub async fn file_document(
    State(app): State<App>,
    partner: PartnerCaller<EnvelopesWrite>,
    ResourceId(id): ResourceId,
    once: IdempotencyKeyHeader,
    mut form: MultipartForm<FileForm>,
) -> Result<Created<FiledView>, HttpError> {
    let file = form.file()?;
    once.answer(&app, &partner.caller, |app, caller, answer| async move {
        customers::file_document(&app, &caller, &id, file, &answer).await
    })
    .await
}
