//! Web API: packages of templates.

use axum::extract::State;

use crate::error::HttpError;
use crate::middleware::act::NewAct;
use crate::middleware::caller::{WebCaller, may};
use crate::middleware::extract::{PageQuery, ResourceId, ValidJson, ValidQuery};
use crate::reply::{Created, DataReply, Found, PageReply};
use holdfast_service::App;
use holdfast_service::templates::packages::{self, ChangePackage, CreatePackage, PackageView};

pub async fn create(
    act: NewAct<WebCaller<may::Send>, CreatePackage>,
) -> Result<Created<PackageView>, HttpError> {
    act.run(packages::create).await
}

pub async fn list(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::ReadEnvelopes>,
    ValidQuery(query): ValidQuery<PageQuery>,
) -> Result<PageReply<PackageView>, HttpError> {
    let (page, limit) = query.checked()?;
    let (found, total) = packages::list(&app, &caller, page, limit).await?;
    Ok(PageReply::new(&found, page, limit, total))
}

pub async fn read(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::ReadEnvelopes>,
    ResourceId(id): ResourceId,
) -> Result<Found<PackageView>, HttpError> {
    Ok(DataReply::new(&packages::get(&app, &caller, &id).await?))
}

pub async fn change(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::Send>,
    ResourceId(id): ResourceId,
    ValidJson(request): ValidJson<ChangePackage>,
) -> Result<Found<PackageView>, HttpError> {
    let changed = packages::change(&app, &caller, &id, request).await?;
    Ok(DataReply::new(&changed))
}
