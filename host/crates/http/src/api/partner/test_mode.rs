//! Partner API: test data. Every operation needs a key that begins with `lk_test_`.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::HttpError;
use crate::middleware::act::NewAct;
use crate::middleware::caller::{EnvelopesRead, EnvelopesWrite, PartnerCaller};
use crate::middleware::extract::{PageWindow, ResourceId, ValidJson, ValidQuery};
use crate::middleware::once::IdempotencyKeyHeader;
use crate::reply::{CursorReply, DataReply, Found};
use holdfast_domain::id::MessageId;
use holdfast_domain::test_mode::TestMessage;
use holdfast_service::App;
use holdfast_service::test_mode::{
    self, AdvanceClock, SimulateDecline, SimulateSigning, SimulatedSigners, TestClockView,
};

#[derive(Deserialize, JsonSchema)]
pub struct InboxQuery {
    /// Page number, from 1; not together with `starting_after`. Pages have numbers up to the 1000th item.
    #[schemars(range(min = 1))]
    page: Option<i64>,
    /// E-mail address or telephone number.
    to: Option<String>,
    /// Messages about this envelope only.
    envelope_id: Option<String>,
    /// Last message of the page before.
    starting_after: Option<MessageId>,
    /// 1 to 100; 20 when absent.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<i64>,
}

/// Lists the mails and text messages that would have been sent.
pub async fn inbox(
    State(app): State<App>,
    partner: PartnerCaller<EnvelopesRead>,
    ValidQuery(query): ValidQuery<InboxQuery>,
) -> Result<CursorReply<TestMessage>, HttpError> {
    let (envelope, after) = (query.envelope_id, query.starting_after);
    let window = PageWindow::checked((query.page, query.limit), after.is_some(), 20, 100)?;
    let found = test_mode::inbox(
        &app,
        &partner.caller,
        query.to,
        envelope.as_deref(),
        after,
        window.read(),
    );

    Ok(window.reply(found.await?))
}

/// Signs in the place of the signers.
pub async fn sign(
    State(app): State<App>,
    partner: PartnerCaller<EnvelopesWrite>,
    ResourceId(id): ResourceId,
    once: IdempotencyKeyHeader,
    ValidJson(request): ValidJson<SimulateSigning>,
) -> Result<Found<SimulatedSigners>, HttpError> {
    once.run(&app, &partner.caller, |app, caller, _| async move {
        test_mode::sign(&app, &caller, &id, request).await
    })
    .await
}

/// Declines in the place of a signer.
pub async fn decline(
    State(app): State<App>,
    partner: PartnerCaller<EnvelopesWrite>,
    ResourceId(id): ResourceId,
    once: IdempotencyKeyHeader,
    ValidJson(request): ValidJson<SimulateDecline>,
) -> Result<Found<SimulatedSigners>, HttpError> {
    once.run(&app, &partner.caller, |app, caller, _| async move {
        test_mode::decline(&app, &caller, &id, request).await
    })
    .await
}

/// Returns how far the time was advanced.
pub async fn clock(
    State(app): State<App>,
    partner: PartnerCaller<EnvelopesRead>,
) -> Result<Found<TestClockView>, HttpError> {
    Ok(DataReply::new(
        &test_mode::clock(&app, &partner.caller).await?,
    ))
}

/// Advances the time.
pub async fn advance(
    act: NewAct<PartnerCaller<EnvelopesWrite>, AdvanceClock>,
) -> Result<Found<TestClockView>, HttpError> {
    act.run(test_mode::advance).await
}
