//! Partner API: checks by funding rules, stipulations, the funding package.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::HttpError;
use crate::middleware::act::ActOn;
use crate::middleware::caller::Authorized;
use crate::middleware::extract::{ResourceId, StipulationPath, ValidJson};
use crate::middleware::once::IdempotencyKeyHeader;
use crate::reply::{DataReply, FileReply, Found, Zip};
use holdfast_domain::funding::FundingMode;
use holdfast_service::App;
use holdfast_service::funding::stipulations::{
    self, RequiredStipulations, StipulationsView, WaiverForm,
};
use holdfast_service::funding::{self, CheckRequest, FundingCheckView};
use holdfast_service::vault::funding_package;

/// Check by the funding rules before a sending.
#[derive(Deserialize, JsonSchema)]
pub struct FundingQuery {
    /// What becomes of a contract that the funding rules stop. The stricter one of this and the organization's setting
    /// applies.
    pub funding: Option<FundingMode>,
}

/// Checks a contract by the funding rules. The check is recorded with its facts and the component; it changes nothing
/// else.
pub async fn check<C: Authorized>(
    act: ActOn<C, CheckRequest>,
) -> Result<Found<FundingCheckView>, HttpError> {
    act.run(funding::check).await
}

pub async fn list_stipulations<C: Authorized>(
    State(app): State<App>,
    partner: C,
    ResourceId(id): ResourceId,
) -> Result<Found<StipulationsView>, HttpError> {
    let found = stipulations::list(&app, partner.caller(), &id).await?;
    Ok(DataReply::new(&found))
}

pub async fn set_stipulations<C: Authorized>(
    act: ActOn<C, RequiredStipulations>,
) -> Result<Found<StipulationsView>, HttpError> {
    act.run(stipulations::set).await
}

pub async fn waive<C: Authorized>(
    State(app): State<App>,
    partner: C,
    ResourceId(id): ResourceId,
    StipulationPath(kind): StipulationPath,
    once: IdempotencyKeyHeader,
    ValidJson(form): ValidJson<WaiverForm>,
) -> Result<Found<StipulationsView>, HttpError> {
    once.run(&app, partner.caller(), |app, caller, answer| async move {
        stipulations::waive(&app, &caller, (id.as_str(), kind.as_str()), form, &answer).await
    })
    .await
}

pub async fn template_stipulations<C: Authorized>(
    State(app): State<App>,
    partner: C,
    ResourceId(id): ResourceId,
) -> Result<Found<RequiredStipulations>, HttpError> {
    let found = stipulations::of_template(&app, partner.caller(), &id).await?;
    Ok(DataReply::new(&found))
}

pub async fn set_template_stipulations<C: Authorized>(
    act: ActOn<C, RequiredStipulations>,
) -> Result<Found<RequiredStipulations>, HttpError> {
    act.run(stipulations::set_of_template).await
}

/// Downloads the contract, its facts, the findings, the stipulations with their files, and the proofs. The contract is
/// the non-authoritative copy.
pub async fn package<C: Authorized>(
    State(app): State<App>,
    partner: C,
    ResourceId(id): ResourceId,
) -> Result<FileReply<Zip>, HttpError> {
    let zip = funding_package::package(&app, &app.vault, partner.caller(), &id).await?;
    Ok(FileReply::named(&funding_package::file_name(&id), zip))
}
