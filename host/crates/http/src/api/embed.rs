//! Embed tokens: `POST /embed/token`.

use axum::extract::State;

use crate::error::HttpError;
use crate::middleware::caller::EmbedKeyCaller;
use crate::middleware::extract::ValidJson;
use crate::middleware::once::IdempotencyKeyHeader;
use crate::reply::Found;
use holdfast_service::App;
use holdfast_service::signing::embed::{self, EmbedToken, RequestToken};

/// Issues an embed token.
pub async fn token(
    State(app): State<App>,
    holder: EmbedKeyCaller,
    once: IdempotencyKeyHeader,
    ValidJson(request): ValidJson<RequestToken>,
) -> Result<Found<EmbedToken>, HttpError> {
    holder.require(request.widget_type.scope())?;
    once.run(&app, &holder.caller, |app, caller, answer| async move {
        embed::issue(&app, &app.access, &caller, request, &answer).await
    })
    .await
}
