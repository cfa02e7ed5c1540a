//! Requests to destroy records and their certificates, for partners and users. The further steps are those of people.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::HttpError;
use crate::middleware::act::NewAct;
use crate::middleware::caller::Authorized;
use crate::middleware::extract::{PageWindow, ResourceId, ValidQuery};
use crate::reply::{Created, CursorReply, DataReply, FileReply, Found, PdfOrJson};
use holdfast_domain::envelope::words;
use holdfast_domain::id::{DestructionId, EnvelopeId};
use holdfast_service::App;
use holdfast_service::retention::destruction::{
    self, DestructionView, NewDestruction, certificate,
};

/// Nothing is deleted by it: another person authorizes the request, and a person who did not authorize it carries it out. A
/// record that cannot be destroyed refuses the whole request; its id is in `details`.
pub async fn request<C: Authorized>(
    act: NewAct<C, NewDestruction>,
) -> Result<Created<DestructionView>, HttpError> {
    act.run(destruction::request).await
}

#[derive(Deserialize, JsonSchema)]
pub struct DestructionsQuery {
    /// Page number, from 1; not together with `starting_after`. Pages have numbers up to the 1000th item.
    #[schemars(range(min = 1))]
    page: Option<i64>,
    /// 1 to 100; 20 when absent.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<i64>,
    /// Returns the requests behind this one: the last one of the page before.
    starting_after: Option<DestructionId>,
}

pub async fn list<C: Authorized>(
    State(app): State<App>,
    user: C,
    ValidQuery(query): ValidQuery<DestructionsQuery>,
) -> Result<CursorReply<DestructionView>, HttpError> {
    let after = query.starting_after.as_ref();
    let window = PageWindow::checked((query.page, query.limit), after.is_some(), 20, 100)?;
    let found = destruction::list(&app, user.caller(), after, window.read()).await?;
    Ok(window.reply(found))
}

pub async fn read<C: Authorized>(
    State(app): State<App>,
    user: C,
    ResourceId(id): ResourceId,
) -> Result<Found<DestructionView>, HttpError> {
    let found = destruction::get(&app, user.caller(), &id).await?;
    Ok(DataReply::new(&found))
}

words! {
    /// Format of a certificate of destruction.
    CertificateFormat {
        Json = "json",
        Pdf = "pdf",
    }
}

#[derive(Deserialize, JsonSchema)]
pub struct CertificateQuery {
    /// The record.
    envelope_id: EnvelopeId,
    /// `json` when absent: certificate, entry of the ledger, and its proof. `pdf` is for people, with the JSON attached.
    format: Option<CertificateFormat>,
}

/// The certificate has ids, hashes, acts and times, and no values of people. It is kept after the destruction. The ledger has
/// its SHA-256, and the proof leads to a signed head of the log. Also for the party that controlled the record.
pub async fn certificate<C: Authorized>(
    State(app): State<App>,
    user: C,
    ResourceId(id): ResourceId,
    ValidQuery(query): ValidQuery<CertificateQuery>,
) -> Result<FileReply<PdfOrJson>, HttpError> {
    let (caller, envelope) = (user.caller(), &query.envelope_id);
    let format = query.format.unwrap_or(CertificateFormat::Json);
    let (kind, bytes) = match format {
        CertificateFormat::Pdf => {
            let pdf = certificate::pdf(&app, &app.vault, caller, &id, envelope).await?;
            ("application/pdf", pdf.to_vec())
        }
        CertificateFormat::Json => {
            let issued = certificate::of_record(&app, &app.vault, caller, &id, envelope).await?;
            let json = serde_json::to_vec_pretty(&issued);
            let json = json.map_err(|error| HttpError::internal(error.to_string()))?;
            ("application/json", json)
        }
    };
    let name = format!("{envelope}-destruction.{format}");
    FileReply::of_type(&app, kind, &name, &bytes).await
}
