//! Results of identity questions, for the back office.

use axum::extract::State;

use crate::error::HttpError;
use crate::middleware::caller::{WebCaller, may};
use crate::middleware::extract::{ResourceId, ValidQuery, WholeListQuery};
use crate::reply::PageReply;
use holdfast_platform::kba::{self, KbaResult};
use holdfast_service::App;

/// Returns the KBA results of an envelope.
pub async fn results(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::ReadEnvelopes>,
    ResourceId(id): ResourceId,
    ValidQuery(query): ValidQuery<WholeListQuery>,
) -> Result<PageReply<KbaResult>, HttpError> {
    query.page_of(&kba::results(&app, &caller, &id).await?)
}
