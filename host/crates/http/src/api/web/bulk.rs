//! Web API: bulk send.

use std::time::Duration;

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{MediaType, Operation, Response as Documented, StatusCode as Status};
use axum::extract::State;
use axum::response::{IntoResponse, Response};

use crate::error::HttpError;
use crate::live;
use crate::middleware::act::{ActOn, BareAct};
use crate::middleware::caller::BulkSender;
use crate::middleware::extract::{PageQuery, ResourceId, ValidJson, ValidQuery};
use crate::middleware::once::IdempotencyKeyHeader;
use crate::reply::{Accepted, CreatedWithWarnings, DataReply, Found, PageReply};
use holdfast_domain::bulk::BatchStatus;
use holdfast_platform::Caller;
use holdfast_platform::access::BeginningCredential;
use holdfast_service::App;
use holdfast_service::bulk::{
    self, AddedClients, BatchOverview, BatchProgress, BatchView, ChangeBatch, CreateBatch,
    DeletedBatch, SetClients,
};
use holdfast_service::envelopes::consent::VaultConsent;

/// Poll interval of a progress stream.
const LOOK: Duration = Duration::from_millis(500);

pub async fn create(
    State(app): State<App>,
    BulkSender(caller): BulkSender,
    once: IdempotencyKeyHeader,
    ValidJson(request): ValidJson<CreateBatch>,
) -> Result<CreatedWithWarnings<BatchView>, HttpError> {
    // Taken here, because the service consumes the request.
    let warnings = request.warnings();
    let show = move |batch: &BatchView| (batch.clone(), warnings.clone());
    once.answer_with_warnings(&app, &caller, show, |app, caller, answer| async move {
        bulk::create(&app, &caller, request, &answer).await
    })
    .await
}

pub async fn list(
    State(app): State<App>,
    BulkSender(caller): BulkSender,
    ValidQuery(query): ValidQuery<PageQuery>,
) -> Result<PageReply<BatchView>, HttpError> {
    let (page, limit) = query.checked()?;
    let (found, total) = bulk::list(&app, &caller, page, limit).await?;
    Ok(PageReply::new(&found, page, limit, total))
}

pub async fn read(
    State(app): State<App>,
    BulkSender(caller): BulkSender,
    ResourceId(id): ResourceId,
) -> Result<Found<BatchOverview>, HttpError> {
    Ok(DataReply::new(&bulk::overview(&app, &caller, &id).await?))
}

pub async fn change(
    State(app): State<App>,
    BulkSender(caller): BulkSender,
    ResourceId(id): ResourceId,
    ValidJson(request): ValidJson<ChangeBatch>,
) -> Result<Found<BatchView>, HttpError> {
    Ok(DataReply::new(
        &bulk::change(&app, &caller, &id, request).await?,
    ))
}

pub async fn delete(
    State(app): State<App>,
    BulkSender(caller): BulkSender,
    ResourceId(id): ResourceId,
) -> Result<Found<DeletedBatch>, HttpError> {
    Ok(DataReply::new(&bulk::delete(&app, &caller, &id).await?))
}

pub async fn set_clients(
    act: ActOn<BulkSender, SetClients>,
) -> Result<Found<AddedClients>, HttpError> {
    act.run(bulk::set_clients).await
}

pub async fn consent(act: ActOn<BulkSender, VaultConsent>) -> Result<Found<BatchView>, HttpError> {
    act.run(bulk::consent).await
}

pub async fn submit(act: BareAct<BulkSender>) -> Result<Accepted<BatchView>, HttpError> {
    act.run(bulk::submit).await
}

pub async fn cancel(act: BareAct<BulkSender>) -> Result<Found<BatchView>, HttpError> {
    act.run(bulk::cancel).await
}

pub async fn retry(act: BareAct<BulkSender>) -> Result<Accepted<BatchView>, HttpError> {
    act.run(bulk::retry).await
}

/// Server-sent events `progress`, each with batch id, status and counts: one at once, one after
/// every change, and a last one named `end`.
pub struct ProgressStream(Response);

impl IntoResponse for ProgressStream {
    fn into_response(self) -> Response {
        self.0
    }
}

impl OperationOutput for ProgressStream {
    type Inner = ();

    fn inferred_responses(
        _: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<Status>, Documented)> {
        let content = [("text/event-stream".to_owned(), MediaType::default())];
        let response = Documented {
            description: "Server-sent events: `progress` with `{batch_id, status, counts}` after \
                          every change, and `end` when nothing changes any more"
                .into(),
            content: content.into_iter().collect(),
            ..Documented::default()
        };

        vec![(Some(Status::Code(200)), response)]
    }
}

/// Streams the progress of a batch. The first event is the current state, so a client that
/// reconnects has missed nothing.
pub async fn events(
    State(app): State<App>,
    BulkSender(caller): BulkSender,
    ResourceId(id): ResourceId,
) -> Result<ProgressStream, HttpError> {
    progress_stream(app, caller, id).await
}

/// Streams the progress of a batch of the caller's organization.
pub async fn progress_stream(
    app: App,
    caller: Caller,
    id: String,
) -> Result<ProgressStream, HttpError> {
    // Read before the stream begins, so an unknown batch is a 404 and not an empty stream.
    let first = bulk::progress(&app, &caller, &id).await?;
    let place = live::place(&app, &caller.org)?;
    let name = |progress: &BatchProgress| {
        if has_ended(progress) {
            live::END
        } else {
            "progress"
        }
    };

    let core = app.clone();
    // The closure is called once for each look, so every call needs values of its own.
    let read = move || {
        let (core, caller, id) = (core.clone(), caller.clone(), id.clone());
        async move {
            // The stream ends with the access that began it.
            let begun = BeginningCredential::from(&caller);
            // A failed read ends the stream, too. The client reconnects and begins with the current state.
            let goes_on = begun.is_in_force(&core, &caller.org).await.ok()?;
            let progress = bulk::progress(&core, &caller, &id).await.ok();
            progress.filter(|_| goes_on)
        }
    };

    let stream = live::stream(app, place, LOOK, first, name, read);
    Ok(ProgressStream(stream))
}

fn has_ended(progress: &BatchProgress) -> bool {
    // A cancelled batch can still have items in progress, so the counts decide as well.
    match progress.status {
        BatchStatus::Draft | BatchStatus::Ready | BatchStatus::Running => false,
        BatchStatus::Completed | BatchStatus::Cancelled | BatchStatus::Failed => {
            progress.counts.unfinished() == 0
        }
    }
}
