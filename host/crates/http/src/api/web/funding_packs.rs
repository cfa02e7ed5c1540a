//! Web API: funding packs of lenders, and subscriptions to them.

use axum::extract::State;

use crate::error::HttpError;
use crate::middleware::act::{ActOn, NewAct};
use crate::middleware::caller::{WebCaller, may};
use crate::reply::{Created, DataReply, Found};
use holdfast_service::App;
use holdfast_service::funding::packs::{
    self, NewPack, NewVersion, PackInvitation, PackSubscription, PackView, PacksView,
};

pub async fn publish(
    act: NewAct<WebCaller<may::ChangeRules>, NewPack>,
) -> Result<Created<PackView>, HttpError> {
    act.run(packs::publish).await
}

pub async fn list(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::ReadEvidence>,
) -> Result<Found<PacksView>, HttpError> {
    Ok(DataReply::new(&packs::list(&app, &caller).await?))
}

pub async fn publish_version(
    act: ActOn<WebCaller<may::ChangeRules>, NewVersion>,
) -> Result<Created<PackView>, HttpError> {
    act.run(packs::publish_version).await
}

pub async fn invite(
    act: ActOn<WebCaller<may::ChangeRules>, PackInvitation>,
) -> Result<Found<PackView>, HttpError> {
    act.run(packs::invite).await
}

pub async fn subscribe(
    act: ActOn<WebCaller<may::ChangeRules>, PackSubscription>,
) -> Result<Found<PackView>, HttpError> {
    act.run(packs::subscribe).await
}
