//! Results of identity questions, for the back office.

use axum::extract::State;

use crate::http::error::HttpError;
use crate::http::middleware::caller::{WebCaller, may};
use crate::http::middleware::extract::ResourceId;
use crate::http::reply::{DataReply, Found};
use crate::service::App;
use crate::service::kba::{self, KbaResult};

/// Returns the KBA results of an envelope.
pub async fn results(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::ReadEnvelopes>,
    ResourceId(id): ResourceId,
) -> Result<Found<Vec<KbaResult>>, HttpError> {
    Ok(DataReply::new(&kba::results(&app, &caller, &id).await?))
}
