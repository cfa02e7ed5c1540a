//! Data held about a person: its export and its erasure, for partners and users.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::HttpError;
use crate::middleware::caller::{Authorized, CustomersPrivacy, PartnerCaller};
use crate::middleware::extract::{ResourceId, ValidQuery};
use crate::reply::{DataReply, FileReply, Found, Zip};
use holdfast_service::App;
use holdfast_service::persons::erasure::{self, ErasureView};
use holdfast_service::persons::export;

/// `person.json` has the customer, every envelope that is the customer's or in which a person with the customer's e-mail address
/// takes part, and of each the person's own answers, consents, identity checks, events and ledger entries. Beside it are the
/// customer's files and copies of what the person signed, never an authoritative copy. Values of other people are left out.
/// Each export is an entry of the audit list, and the event `customer.exported`.
pub async fn export<C: Authorized>(
    State(app): State<App>,
    user: C,
    ResourceId(id): ResourceId,
) -> Result<FileReply<Zip>, HttpError> {
    let zip = export::package(&app, user.caller(), &id).await?;
    Ok(FileReply::named(&export::file_name(&id), zip))
}

#[derive(Deserialize, JsonSchema)]
pub struct EraseQuery {
    /// Whether to show only what an erasure would do: nothing is asked for and nothing is erased.
    dry_run: Option<bool>,
}

impl EraseQuery {
    /// Whether nothing is to be changed.
    pub fn is_dry_run(&self) -> bool {
        self.dry_run.unwrap_or_default()
    }
}

/// Two people of your organization approve the request of a key, with `POST /customers/{id}/erase/approve`: a key names no
/// person. Once they did, the same request tries the refused parts again. It needs no `Idempotency-Key`: a
/// repeat erases nothing twice.
pub async fn erase(
    State(app): State<App>,
    partner: PartnerCaller<CustomersPrivacy>,
    ResourceId(id): ResourceId,
    ValidQuery(query): ValidQuery<EraseQuery>,
) -> Result<Found<ErasureView>, HttpError> {
    let view = if query.is_dry_run() {
        erasure::preview(&app, &partner.caller, &id).await?
    } else {
        erasure::request(&app, &partner.caller, None, &id).await?
    };
    Ok(DataReply::new(&view))
}

/// The erased parts, the remaining parts, and the reasons. 404 before an erasure is requested.
pub async fn erasure<C: Authorized>(
    State(app): State<App>,
    user: C,
    ResourceId(id): ResourceId,
) -> Result<Found<ErasureView>, HttpError> {
    let view = erasure::get(&app, user.caller(), &id).await?;
    Ok(DataReply::new(&view))
}
