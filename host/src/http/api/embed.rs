//! Embed tokens: `POST /embed/token`.

use axum::extract::State;

use crate::http::error::HttpError;
use crate::http::middleware::caller::EmbedKeyCaller;
use crate::http::middleware::extract::ValidJson;
use crate::http::middleware::once::IdempotencyKeyHeader;
use crate::http::reply::Found;
use crate::service::App;
use crate::service::signing::embed::{self, EmbedToken, RequestToken};

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
