//! Partner API: envelopes.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;

use super::views::{
    AttachmentsView, EnvelopeItem, EnvelopeView, PeopleView, SignerView, SigningLinks, StatusView,
    UploadView,
};
use crate::domain::envelope::{Envelope, EnvelopeStatus, Signer};
use crate::domain::id::CustomerId;
use crate::http::error::HttpError;
use crate::http::middleware::caller::{Authorized, EnvelopeReader, EnvelopesRead, PartnerCaller};
use crate::http::middleware::extract::{
    FileForm, FilePath, MultipartForm, ResourceId, RolePath, ValidJson, ValidQuery, page_and_limit,
};
use crate::http::middleware::once::IdempotencyKeyHeader;
use crate::http::reply::{
    Created, CreatedWithWarnings, DataReply, FileReply, Found, PageReply, Pdf, PdfOrPicture,
};
use crate::service::App;
use crate::service::envelopes::{self, creation, documents, expiry, uploads};
use crate::service::signing::corrections::{self, CorrectSigner};
use crate::service::signing::reminders::{self, RemindRequest, RemindedSigners};
use crate::store::envelopes::EnvelopeFilter;

#[derive(Deserialize, JsonSchema)]
pub struct ListQuery {
    /// Page number, from 1.
    #[schemars(range(min = 1))]
    page: Option<i64>,
    /// 1 to 100; 20 when absent.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<i64>,
    /// Returns only envelopes of this customer.
    customer_id: Option<String>,
    /// Returns only envelopes in this status.
    status: Option<EnvelopeStatus>,
}

pub async fn list(
    State(app): State<App>,
    partner: PartnerCaller<EnvelopesRead>,
    ValidQuery(query): ValidQuery<ListQuery>,
) -> Result<PageReply<EnvelopeItem>, HttpError> {
    let (page, limit) = page_and_limit(query.page, query.limit, 20, 100)?;
    let customer = match query.customer_id.as_deref().map(CustomerId::parse) {
        None => None,
        Some(Some(customer)) => Some(customer),
        // A malformed id matches no customer.
        Some(None) => return Ok(PageReply::new(&[], page, limit, 0)),
    };
    let filter = EnvelopeFilter {
        status: query.status,
        customer,
    };
    let (found, total) = envelopes::list(&app, &partner.caller, &filter, page, limit).await?;
    let items: Vec<EnvelopeItem> = found.into_iter().map(EnvelopeItem::from).collect();
    Ok(PageReply::new(&items, page, limit, total))
}

pub async fn read(
    State(app): State<App>,
    reader: EnvelopeReader<EnvelopesRead>,
    ResourceId(id): ResourceId,
) -> Result<Found<EnvelopeView>, HttpError> {
    let envelope = reader.envelope(&app, &id).await?;
    Ok(DataReply::new(&EnvelopeView::from(&envelope)))
}

pub async fn status(
    State(app): State<App>,
    reader: EnvelopeReader<EnvelopesRead>,
    ResourceId(id): ResourceId,
) -> Result<Found<StatusView>, HttpError> {
    let envelope = reader.envelope(&app, &id).await?;
    Ok(DataReply::new(&StatusView::from(&envelope)))
}

pub async fn create<C: Authorized>(
    State(app): State<App>,
    partner: C,
    once: IdempotencyKeyHeader,
    ValidJson(request): ValidJson<creation::CreateEnvelope>,
) -> Result<CreatedWithWarnings<EnvelopeView>, HttpError> {
    once.answer_with_warnings(
        &app,
        partner.caller(),
        |created: &creation::CreatedEnvelope| (EnvelopeView::from(created), created.warnings.clone()),
        |app, caller, answer| async move {
            creation::create(&app, &caller, request, &answer).await
        },
    )
    .await
}

pub async fn upload<C: Authorized>(
    State(app): State<App>,
    partner: C,
    ResourceId(id): ResourceId,
    once: IdempotencyKeyHeader,
    mut form: MultipartForm<FileForm>,
) -> Result<Created<UploadView>, HttpError> {
    let file = form.file()?;
    let show = |stored: &uploads::StoredUpload| UploadView::from(stored);
    once.answer(&app, partner.caller(), show, |app, caller, answer| async move {
        uploads::upload(&app, &caller, &id, file, &answer).await
    })
    .await
}

#[derive(Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "reason": "The deal fell through" }]))]
pub struct VoidRequest {
    #[schemars(length(max = 2000))]
    reason: Option<String>,
}

pub async fn void<C: Authorized>(
    State(app): State<App>,
    partner: C,
    ResourceId(id): ResourceId,
    once: IdempotencyKeyHeader,
    ValidJson(request): ValidJson<VoidRequest>,
) -> Result<Found<EnvelopeView>, HttpError> {
    let show = |envelope: &Envelope| EnvelopeView::from(envelope);
    once.answer(
        &app,
        partner.caller(),
        show,
        |app, caller, answer| async move {
            envelopes::void(&app, &caller, &id, request.reason, &answer).await
        },
    )
    .await
}

pub async fn remind<C: Authorized>(
    State(app): State<App>,
    partner: C,
    ResourceId(id): ResourceId,
    once: IdempotencyKeyHeader,
    ValidJson(request): ValidJson<RemindRequest>,
) -> Result<Found<RemindedSigners>, HttpError> {
    once.run(&app, partner.caller(), |app, caller, answer| async move {
        reminders::remind(&app, &caller, &id, request, &answer).await
    })
    .await
}

pub async fn signing_links(
    State(app): State<App>,
    partner: PartnerCaller<EnvelopesRead>,
    ResourceId(id): ResourceId,
) -> Result<Found<SigningLinks>, HttpError> {
    let links = envelopes::signing_links(&app, &partner.caller, &id).await?;
    Ok(DataReply::new(&SigningLinks::from(links)))
}

/// Returns the signers in signing order, and the recipients who do not sign.
pub async fn signers<C: Authorized>(
    State(app): State<App>,
    partner: C,
    ResourceId(id): ResourceId,
) -> Result<Found<PeopleView>, HttpError> {
    let (signers, recipients) = envelopes::people(&app, partner.caller(), &id).await?;
    Ok(DataReply::new(&PeopleView::new(&signers, recipients)))
}

/// Changes name or address of a signer who has not signed. Another address means another person. The
/// signer's earlier links no longer work; a new one is mailed when it is the signer's turn.
pub async fn correct_signer<C: Authorized>(
    State(app): State<App>,
    partner: C,
    ResourceId(id): ResourceId,
    RolePath(role): RolePath,
    once: IdempotencyKeyHeader,
    ValidJson(request): ValidJson<CorrectSigner>,
) -> Result<Found<SignerView>, HttpError> {
    let show = |signer: &Signer| SignerView::from(signer);
    once.answer(
        &app,
        partner.caller(),
        show,
        |app, caller, answer| async move {
            corrections::correct(&app, &caller, &id, &role, request, &answer).await
        },
    )
    .await
}

/// Moves the expiry of an envelope that is not finished to a later time.
pub async fn extend<C: Authorized>(
    State(app): State<App>,
    partner: C,
    ResourceId(id): ResourceId,
    once: IdempotencyKeyHeader,
    ValidJson(request): ValidJson<expiry::ExtendExpiry>,
) -> Result<Found<EnvelopeView>, HttpError> {
    let show = |envelope: &Envelope| EnvelopeView::from(envelope);
    once.answer(&app, partner.caller(), show, |app, caller, answer| async move {
        expiry::extend(&app, &caller, &id, request, &answer).await
    })
    .await
}

/// Returns the document as it was sent, before anybody signed.
pub async fn document<C: Authorized>(
    State(app): State<App>,
    partner: C,
    ResourceId(id): ResourceId,
) -> Result<FileReply<Pdf>, HttpError> {
    let envelope = envelopes::get(&app, partner.caller(), &id).await?;
    let pdf = documents::unsigned(&app, &envelope).await?;
    FileReply::of_bytes(&app, &format!("{id}-unsigned.pdf"), &pdf).await
}

/// Lists the files that signers attached, in signing order. A file of a signer who has not signed may
/// still be replaced.
pub async fn attachments<C: Authorized>(
    State(app): State<App>,
    partner: C,
    ResourceId(id): ResourceId,
) -> Result<Found<AttachmentsView>, HttpError> {
    let envelope = envelopes::get(&app, partner.caller(), &id).await?;
    let files = documents::attachments(&app, &envelope).await?;
    Ok(DataReply::new(&AttachmentsView::from(files)))
}

/// Returns a file that a signer attached, with the bytes that the signer sent.
pub async fn attachment<C: Authorized>(
    State(app): State<App>,
    partner: C,
    ResourceId(id): ResourceId,
    FilePath(sha256): FilePath,
) -> Result<FileReply<PdfOrPicture>, HttpError> {
    let envelope = envelopes::get(&app, partner.caller(), &id).await?;
    let (file, bytes) = documents::attachment(&app, &envelope, &sha256).await?;
    let ending = file.content_type.rsplit('/').next().unwrap_or_default();
    let name = format!("{id}-attachment.{ending}");
    FileReply::of_type(&app, &file.content_type, &name, &bytes).await
}
