//! Results of identity questions, for the back office.

use axum::extract::State;

use crate::error::HttpError;
use crate::middleware::caller::{WebCaller, may};
use crate::middleware::extract::ResourceId;
use crate::reply::{DataReply, Found};
use holdfast_platform::kba::{self, KbaResult};
use holdfast_service::App;

/// Returns the KBA results of an envelope.
pub async fn results(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::ReadEnvelopes>,
    ResourceId(id): ResourceId,
) -> Result<Found<Vec<KbaResult>>, HttpError> {
    Ok(DataReply::new(&kba::results(&app, &caller, &id).await?))
}
