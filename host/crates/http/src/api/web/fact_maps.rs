//! Web API: fact maps.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::HttpError;
use crate::middleware::act::{NewTomlAct, TomlActOn};
use crate::middleware::caller::{WebCaller, may};
use crate::middleware::extract::{ResourceId, ValidJson, ValidQuery, WholeListQuery};
use crate::reply::{Created, DataReply, Found, PageReply};
use holdfast_domain::fact_map::FactMapDocument;
use holdfast_domain::id::FactMapId;
use holdfast_service::App;
use holdfast_service::facts::maps::{self, CreateFactMap, FactMapView, StarterView};
use holdfast_service::facts::trial::{self, TriedEnvelope, TryFactMap};

/// A deleted fact map.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{ "fact_map_id": "fmp_01jdk7m3e8f4x9s2w5v6b0c1da", "deleted": true }]))]
pub struct DeletedFactMap {
    /// Id of the map.
    fact_map_id: FactMapId,
    /// Always true.
    deleted: bool,
}

/// A body in TOML has the same members; each issue of a refusal begins with its line.
pub async fn create(
    act: NewTomlAct<WebCaller<may::Send>, CreateFactMap>,
) -> Result<Created<FactMapView>, HttpError> {
    let (act, lines) = act.with_lines();
    let created = act.run(maps::create).await;
    created.map_err(|error| lines.locate(error))
}

pub async fn list(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::ReadEnvelopes>,
    ValidQuery(query): ValidQuery<WholeListQuery>,
) -> Result<PageReply<FactMapView>, HttpError> {
    query.page_of(&maps::list(&app, &caller).await?)
}

pub async fn starters(
    _: WebCaller<may::ReadEnvelopes>,
    ValidQuery(query): ValidQuery<WholeListQuery>,
) -> Result<PageReply<StarterView>, HttpError> {
    query.page_of(&maps::starters()?)
}

pub async fn read(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::ReadEnvelopes>,
    ResourceId(id): ResourceId,
) -> Result<Found<FactMapView>, HttpError> {
    Ok(DataReply::new(&maps::get(&app, &caller, &id).await?))
}

/// A body in TOML has the same members; each issue of a refusal begins with its line.
pub async fn replace(
    act: TomlActOn<WebCaller<may::Send>, FactMapDocument>,
) -> Result<Found<FactMapView>, HttpError> {
    let (act, lines) = act.with_lines();
    let replaced = act.run(maps::replace).await;
    replaced.map_err(|error| lines.locate(error))
}

pub async fn delete(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::Send>,
    ResourceId(id): ResourceId,
) -> Result<Found<DeletedFactMap>, HttpError> {
    let fact_map_id = maps::delete(&app, &caller, &id).await?;
    Ok(DataReply::new(&DeletedFactMap {
        fact_map_id,
        deleted: true,
    }))
}

/// Reads the facts of stored documents with a map, without storing anything.
pub async fn attempt(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::Send>,
    ResourceId(id): ResourceId,
    ValidJson(request): ValidJson<TryFactMap>,
) -> Result<Found<Vec<TriedEnvelope>>, HttpError> {
    let tried = trial::run(&app, &caller, &id, request).await?;
    Ok(DataReply::new(&tried))
}
