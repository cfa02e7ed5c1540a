//! Web API: customers of the caller's organization.

use axum::extract::State;

use crate::error::HttpError;
use crate::middleware::act::NewAct;
use crate::middleware::caller::{WebCaller, may};
use crate::middleware::extract::{PageQuery, ResourceId, ValidJson, ValidQuery};
use crate::reply::{Created, DataReply, Found, PageReply};
use holdfast_service::App;
use holdfast_service::customers::{self, ChangeCustomer, CreateCustomer, OwnCustomer};

pub async fn create(
    act: NewAct<WebCaller<may::Send>, CreateCustomer>,
) -> Result<Created<OwnCustomer>, HttpError> {
    act.run(customers::create).await
}

pub async fn list(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::ReadEnvelopes>,
    ValidQuery(query): ValidQuery<PageQuery>,
) -> Result<PageReply<OwnCustomer>, HttpError> {
    let (page, limit) = query.checked()?;
    let (found, total) = customers::list(&app, &caller, page, limit).await?;
    Ok(PageReply::new(&found, page, limit, total))
}

pub async fn read(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::ReadEnvelopes>,
    ResourceId(id): ResourceId,
) -> Result<Found<OwnCustomer>, HttpError> {
    Ok(DataReply::new(&customers::get(&app, &caller, &id).await?))
}

pub async fn change(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::Send>,
    ResourceId(id): ResourceId,
    ValidJson(request): ValidJson<ChangeCustomer>,
) -> Result<Found<OwnCustomer>, HttpError> {
    let changed = customers::change(&app, &caller, &id, request).await?;
    Ok(DataReply::new(&changed))
}
