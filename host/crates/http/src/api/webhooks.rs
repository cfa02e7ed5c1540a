//! Webhook endpoints and their delivery log, for web-app admins, and the older webhook setting of a
//! single API key.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::HttpError;
use crate::middleware::act::BareAct;
use crate::middleware::caller::{EnvelopesWrite, PartnerCaller, WebCaller, may};
use crate::middleware::extract::{
    ResourceId, ValidJson, ValidQuery, WholeListQuery, page_and_limit,
};
use crate::middleware::once::IdempotencyKeyHeader;
use crate::reply::{Created, DataReply, Found, PageReply};
use holdfast_domain::event::EventType;
use holdfast_domain::id::EventId;
use holdfast_domain::webhook::DeliveryStatus;
use holdfast_platform::webhooks::deliveries::{self, DeliveryDetails, DeliveryView};
use holdfast_platform::webhooks::{
    self, CatalogEntry, ChangeEndpoint, CreateEndpoint, DeletedEndpoint, EndpointTestResult,
    EndpointView, LegacyView, LegacyWebhook, WithSecret,
};
use holdfast_service::App;
use holdfast_store::deliveries::DeliveryFilter;

#[derive(Deserialize, JsonSchema)]
pub struct EndpointQuery {
    /// Page number, from 1.
    #[schemars(range(min = 1))]
    page: Option<i64>,
    /// 1 to 100; 25 when absent, the number of endpoints that an organization can have.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<i64>,
    /// Returns only endpoints attached to this API key.
    partner_key_id: Option<String>,
}

/// Lists the endpoints. There are at most 25, so that one page has all of them.
pub async fn list(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::Integrate>,
    ValidQuery(query): ValidQuery<EndpointQuery>,
) -> Result<PageReply<EndpointView>, HttpError> {
    let default = webhooks::PER_ORGANIZATION as i64;
    let (page, limit) = page_and_limit(query.page, query.limit, default, 100)?;
    let found = webhooks::list(&app, &caller, query.partner_key_id.as_deref()).await?;
    Ok(PageReply::part_of(&found, page, limit))
}

pub async fn create(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::Integrate>,
    once: IdempotencyKeyHeader,
    ValidJson(request): ValidJson<CreateEndpoint>,
) -> Result<Created<WithSecret>, HttpError> {
    once.run(&app, &caller, |app, caller, answer| async move {
        webhooks::create(&app, &app.webhooks, &caller, request, &answer).await
    })
    .await
}

pub async fn change(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::Integrate>,
    ResourceId(id): ResourceId,
    ValidJson(request): ValidJson<ChangeEndpoint>,
) -> Result<Found<EndpointView>, HttpError> {
    Ok(DataReply::new(
        &webhooks::change(&app, &app.webhooks, &caller, &id, request).await?,
    ))
}

pub async fn delete(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::Integrate>,
    ResourceId(id): ResourceId,
) -> Result<Found<DeletedEndpoint>, HttpError> {
    Ok(DataReply::new(&webhooks::delete(&app, &caller, &id).await?))
}

pub async fn rotate(
    act: BareAct<WebCaller<may::Integrate>>,
) -> Result<Found<WithSecret>, HttpError> {
    act.run(webhooks::rotate).await
}

pub async fn test(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::Integrate>,
    ResourceId(id): ResourceId,
    once: IdempotencyKeyHeader,
) -> Result<Found<EndpointTestResult>, HttpError> {
    once.run(&app, &caller, |app, caller, answer| async move {
        webhooks::test(&app, &app.webhooks, &caller, &id, &answer).await
    })
    .await
}

#[derive(Deserialize, JsonSchema)]
pub struct DeliveryQuery {
    /// Page number, from 1.
    #[schemars(range(min = 1))]
    page: Option<i64>,
    /// 1 to 100; 20 when absent.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<i64>,
    status: Option<DeliveryStatus>,
    event_type: Option<EventType>,
    event_id: Option<String>,
}

pub async fn deliveries(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::Integrate>,
    ResourceId(id): ResourceId,
    ValidQuery(query): ValidQuery<DeliveryQuery>,
) -> Result<PageReply<DeliveryView>, HttpError> {
    let (page, limit) = page_and_limit(query.page, query.limit, 20, 100)?;
    let filter = DeliveryFilter {
        status: query.status,
        event_type: query.event_type,
        // A malformed id matches no event.
        event: query
            .event_id
            .map(|text| EventId::parse(&text).unwrap_or_else(EventId::new)),
    };
    let (found, total) = deliveries::list(&app, &caller, &id, &filter, page, limit).await?;

    Ok(PageReply::new(&found, page, limit, total))
}

pub async fn delivery(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::Integrate>,
    ResourceId(id): ResourceId,
) -> Result<Found<DeliveryDetails>, HttpError> {
    Ok(DataReply::new(&deliveries::get(&app, &caller, &id).await?))
}

pub async fn redeliver(
    act: BareAct<WebCaller<may::Integrate>>,
) -> Result<Created<DeliveryView>, HttpError> {
    act.run(deliveries::redeliver).await
}

pub async fn catalog(
    _: WebCaller<may::Integrate>,
    ValidQuery(query): ValidQuery<WholeListQuery>,
) -> Result<PageReply<CatalogEntry>, HttpError> {
    query.page_of(&webhooks::catalog())
}

pub async fn set_legacy(
    State(app): State<App>,
    partner: PartnerCaller<EnvelopesWrite>,
    ValidJson(request): ValidJson<LegacyWebhook>,
) -> Result<Found<LegacyView>, HttpError> {
    let set =
        webhooks::set_legacy(&app, &app.webhooks, &partner.caller, &partner.key, request).await?;
    Ok(DataReply::new(&set))
}
