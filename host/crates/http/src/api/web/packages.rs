//! Web API: packages of templates.

use axum::extract::State;

use crate::error::HttpError;
use crate::middleware::caller::{WebCaller, may};
use crate::middleware::extract::{PageQuery, ResourceId, ValidJson, ValidQuery};
use crate::middleware::once::IdempotencyKeyHeader;
use crate::reply::{Created, DataReply, Found, PageReply};
use holdfast_service::App;
use holdfast_service::templates::packages::{self, ChangePackage, CreatePackage, PackageView};

pub async fn create(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::Send>,
    once: IdempotencyKeyHeader,
    ValidJson(request): ValidJson<CreatePackage>,
) -> Result<Created<PackageView>, HttpError> {
    once.run(&app, &caller, |app, caller, answer| async move {
        packages::create(&app, &caller, request, &answer).await
    })
    .await
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
