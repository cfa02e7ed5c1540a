//! Partner API: control of records.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;

use super::vault::ReleaseView;
use crate::error::HttpError;
use crate::middleware::act::{ActOn, NewAct};
use crate::middleware::caller::Authorized;
use crate::middleware::extract::{
    FileForm, MultipartForm, PageWindow, ResourceId, ValidJson, ValidQuery, WholeListQuery,
    page_and_limit,
};
use crate::middleware::once::IdempotencyKeyHeader;
use crate::reply::{
    Accepted, Created, CsvOrJsonLines, CursorReply, DataReply, FileReply, Found, PageReply, Pdf,
    Zip,
};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::control::ControlStage;
use holdfast_domain::id::{EnvelopeId, OrgId, TransferId};
use holdfast_domain::tape::TapeFormat;
use holdfast_domain::transfer::RecordState;
use holdfast_service::App;
use holdfast_service::control::disputes::{self, DisputeForm, DisputeView};
use holdfast_service::control::invitations::{self, InvitationForm, InvitationView};
use holdfast_service::control::keys::{self, PartyKeyView, RegisterKeyForm};
use holdfast_service::control::pledges::{self, PledgeForm, PledgeView};
use holdfast_service::control::statements::SignedForm;
use holdfast_service::control::tape::{self, TapeOptions};
use holdfast_service::control::transfers::{
    ProposeForm, RecordsPage, TransferDetails, TransferView,
};
use holdfast_service::control::{
    self, DesignateForm, ReasonForm, RecordView, ReleaseRequestView, releases,
    transfers as transfer_service,
};
use holdfast_service::inspection::obligor::{self, StatementForm, StatementView};
use holdfast_service::inspection::pools;
use holdfast_service::inspection::releases::{self as controller_releases, ControllerReleaseForm};
use holdfast_service::inspection::views::{self, ViewForm, ViewView};
use holdfast_service::inspection::{self, CopyView, InspectionView};
use holdfast_store::control::{ListedPart, RecordFilter};

#[derive(Deserialize, JsonSchema)]
pub struct RecordsQuery {
    /// Page number, from 1; not together with `starting_after`. Pages have numbers up to the 1000th item.
    #[schemars(range(min = 1))]
    page: Option<i64>,
    /// 1 to 100; 20 when absent.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<i64>,
    /// Returns the records behind this envelope id: the last one of the page before.
    starting_after: Option<EnvelopeId>,
    /// Your part in the records: `controller` when absent; `named` were offered to you.
    part: Option<ListedPart>,
    /// Returns only records at this stage.
    stage: Option<ControlStage>,
    /// Returns only records of this organization.
    originator: Option<OrgId>,
    /// Returns only records with their last act at this time or later.
    changed_from: Option<Timestamp>,
    /// Returns only records with their last act before this time.
    changed_before: Option<Timestamp>,
    /// Returns only records of this transfer, for example of the one by which you bought them.
    transfer: Option<TransferId>,
    /// Returns only records with this value in their metadata: `member:value`, or `metadata[member]=value`.
    metadata: Option<String>,
}

/// Lists records. There is no total: pages follow each other by `starting_after`.
pub async fn list<C: Authorized>(
    State(app): State<App>,
    user: C,
    ValidQuery(query): ValidQuery<RecordsQuery>,
) -> Result<CursorReply<RecordView>, HttpError> {
    let behind = query.starting_after.is_some();
    let window = PageWindow::checked((query.page, query.limit), behind, 20, 100)?;
    let filter = RecordFilter {
        part: query.part.unwrap_or(ListedPart::Controller),
        stage: query.stage,
        originator: query.originator,
        changed_from: query.changed_from,
        changed_before: query.changed_before,
        // The caller has to be a party of the transfer: its list of records is private to both sides.
        transfer: match &query.transfer {
            Some(id) => Some(transfer_service::seller_of(&app, user.caller(), id).await?),
            None => None,
        },
        metadata: match &query.metadata {
            Some(text) => Some(transfer_service::metadata_filter("query", text)?),
            None => None,
        },
        is_free: false,
        after: query.starting_after,
    };

    let found = control::list(&app, user.caller(), &filter, window.read()).await?;
    Ok(window.reply(found))
}

pub async fn read<C: Authorized>(
    State(app): State<App>,
    user: C,
    ResourceId(id): ResourceId,
) -> Result<Found<RecordView>, HttpError> {
    let record = control::get(&app, user.caller(), &id).await?;
    Ok(DataReply::new(&record))
}

/// Has no effect until the named organization accepts.
pub async fn designate<C: Authorized>(
    act: ActOn<C, DesignateForm>,
) -> Result<Found<RecordView>, HttpError> {
    act.run(control::designate).await
}

pub async fn accept<C: Authorized>(
    act: ActOn<C, SignedForm>,
) -> Result<Found<RecordView>, HttpError> {
    act.run(control::accept).await
}

pub async fn decline<C: Authorized>(
    act: ActOn<C, ReasonForm>,
) -> Result<Found<RecordView>, HttpError> {
    act.run(control::decline).await
}

/// Releases a record as its controller. A repeat for the same recipient and purpose returns fresh links to the
/// same archive; another one is a 409 with `code: released_to_another`.
pub async fn release<C: Authorized>(
    State(app): State<App>,
    user: C,
    ResourceId(id): ResourceId,
    once: IdempotencyKeyHeader,
    ValidJson(form): ValidJson<ControllerReleaseForm>,
) -> Result<Found<ReleaseView>, HttpError> {
    once.answer(&app, user.caller(), |app, caller, _| async move {
        controller_releases::release(&app, &caller, &id, form).await
    })
    .await
}

pub async fn consent<C: Authorized>(
    act: ActOn<C, SignedForm>,
) -> Result<Found<ReleaseRequestView>, HttpError> {
    act.run(releases::consent).await
}

pub async fn refuse<C: Authorized>(
    act: ActOn<C, ReasonForm>,
) -> Result<Found<ReleaseRequestView>, HttpError> {
    act.run(releases::refuse).await
}

#[derive(Deserialize, JsonSchema)]
pub struct TransfersQuery {
    /// Page number, from 1; not together with `starting_after`. Pages have numbers up to the 1000th item.
    #[schemars(range(min = 1))]
    page: Option<i64>,
    /// 1 to 100; 20 when absent.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<i64>,
    /// Returns the transfers behind this one: the last one of the page before.
    starting_after: Option<TransferId>,
}

pub async fn transfers<C: Authorized>(
    State(app): State<App>,
    user: C,
    ValidQuery(query): ValidQuery<TransfersQuery>,
) -> Result<CursorReply<TransferView>, HttpError> {
    let after = query.starting_after.as_ref();
    let window = PageWindow::checked((query.page, query.limit), after.is_some(), 20, 100)?;
    let found = transfer_service::list(&app, user.caller(), after, window.read()).await?;
    Ok(window.reply(found))
}

/// The records are offered in the background; `counts` and `state` of the transfer show the progress.
pub async fn propose<C: Authorized>(
    act: NewAct<C, ProposeForm>,
) -> Result<Accepted<TransferView>, HttpError> {
    act.run(transfer_service::propose).await
}

#[derive(Deserialize, JsonSchema)]
pub struct TransferQuery {
    /// 1 to 1,000 records; 100 when absent.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<i64>,
    /// Returns the records behind this envelope id.
    starting_after: Option<EnvelopeId>,
    /// Returns only records in this state.
    state: Option<RecordState>,
}

pub async fn transfer<C: Authorized>(
    State(app): State<App>,
    user: C,
    ResourceId(id): ResourceId,
    ValidQuery(query): ValidQuery<TransferQuery>,
) -> Result<Found<TransferDetails>, HttpError> {
    let (_, limit) = page_and_limit(None, query.limit, 100, 1000)?;
    // A pool can have thousands of records, so a transfer shows one page of them.
    let page = RecordsPage {
        state: query.state,
        after: query.starting_after,
        limit,
    };
    let transfer = transfer_service::get(&app, user.caller(), &id, page).await?;
    Ok(DataReply::new(&transfer))
}

pub async fn accept_transfer<C: Authorized>(
    act: ActOn<C, SignedForm>,
) -> Result<Accepted<TransferView>, HttpError> {
    act.run(transfer_service::accept).await
}

pub async fn confirm_transfer<C: Authorized>(
    act: ActOn<C, SignedForm>,
) -> Result<Accepted<TransferView>, HttpError> {
    act.run(transfer_service::confirm).await
}

pub async fn cancel_transfer<C: Authorized>(
    act: ActOn<C, SignedForm>,
) -> Result<Accepted<TransferView>, HttpError> {
    act.run(transfer_service::cancel).await
}

/// `id` is that of a transfer. `holdfast-verify --pool` checks the file without this service.
pub async fn proofs<C: Authorized>(
    State(app): State<App>,
    user: C,
    ResourceId(id): ResourceId,
) -> Result<FileReply<Zip>, HttpError> {
    let zip = pools::proofs(&app, &app.vault, user.caller(), &id).await?;
    Ok(FileReply::named(&format!("{id}-proofs.zip"), zip))
}

#[derive(Deserialize, JsonSchema)]
pub struct TapeQuery {
    /// `csv` when absent, with the names of the columns in the first line.
    format: Option<TapeFormat>,
    /// Columns from the metadata of the records, separated by commas: `name:member`, or `member` alone.
    columns: Option<String>,
    /// Returns a random sample of this size. It needs a `seed`.
    #[schemars(range(min = 1, max = 10000))]
    sample: Option<u32>,
    /// The sample has the records with the smallest SHA-256 of seed, colon and envelope id: the same for both
    /// sides.
    #[schemars(length(min = 1, max = 200))]
    seed: Option<String>,
    /// True: returns only records that need attention.
    exceptions: Option<bool>,
}

/// `id` is that of a transfer. `exceptions` of a row has codes of problems.
pub async fn tape<C: Authorized>(
    State(app): State<App>,
    user: C,
    ResourceId(id): ResourceId,
    ValidQuery(query): ValidQuery<TapeQuery>,
) -> Result<FileReply<CsvOrJsonLines>, HttpError> {
    let format = query.format.unwrap_or(TapeFormat::Csv);
    let options = TapeOptions {
        format,
        columns: query.columns,
        sample: query.sample,
        seed: query.seed,
        exceptions: query.exceptions.unwrap_or(false),
    };
    let file = tape::tape(&app, user.caller(), &id, options).await?;

    let name = format!("{id}.{format}");
    Ok(FileReply::named_as(format.content_type(), &name, file))
}

/// The record stays under your control and does not change hands until the pledgee releases the pledge.
pub async fn pledge<C: Authorized>(
    act: NewAct<C, PledgeForm>,
) -> Result<Created<PledgeView>, HttpError> {
    act.run(pledges::pledge).await
}

pub async fn release_pledge<C: Authorized>(
    act: ActOn<C, SignedForm>,
) -> Result<Found<PledgeView>, HttpError> {
    act.run(pledges::release).await
}

#[derive(Deserialize, JsonSchema)]
pub struct InspectionQuery {
    /// Why you look at the record: 1 to 200 characters, for its ledger.
    #[schemars(length(min = 1, max = 200))]
    purpose: Option<String>,
}

/// Each request is an entry `control.viewed` of the record's ledger.
pub async fn inspection<C: Authorized>(
    State(app): State<App>,
    user: C,
    ResourceId(id): ResourceId,
    ValidQuery(query): ValidQuery<InspectionQuery>,
) -> Result<Found<InspectionView>, HttpError> {
    let (caller, purpose) = (user.caller(), query.purpose.as_deref());
    let (management, vault) = (&app.management, &app.vault);
    // A GET that writes: the inspection becomes a ledger entry before any data leaves.
    let look = inspection::inspect(&app, management, vault, caller, &id, purpose);
    Ok(DataReply::new(&look.await?))
}

#[derive(Deserialize, JsonSchema)]
pub struct CopyQuery {
    /// Why you need the copy: 1 to 200 characters, for its pages and the ledger.
    #[schemars(required, length(min = 1, max = 200))]
    purpose: Option<String>,
}

/// A non-authoritative copy. Every page names you, the time and the purpose, visibly and by a hidden
/// text.
pub async fn copy<C: Authorized>(
    State(app): State<App>,
    user: C,
    ResourceId(id): ResourceId,
    ValidQuery(query): ValidQuery<CopyQuery>,
) -> Result<FileReply<Pdf>, HttpError> {
    // An unknown record is answered before a missing purpose.
    let purpose = query.purpose.unwrap_or_default();
    let pdf = inspection::copy(&app, &app.vault, user.caller(), &id, &purpose).await?;
    FileReply::of_bytes(&app, &format!("{id}-copy.pdf"), &pdf).await
}

/// `id` stands at the foot of every page of the copy.
pub async fn handed_copy<C: Authorized>(
    State(app): State<App>,
    user: C,
    ResourceId(id): ResourceId,
) -> Result<Found<CopyView>, HttpError> {
    let copy = inspection::handed_copy(&app, user.caller(), &id).await?;
    Ok(DataReply::new(&copy))
}

/// Reads the hidden text of the pages. A file without one is a 422 with the issue `no_watermark`.
pub async fn trace<C: Authorized>(
    State(app): State<App>,
    user: C,
    mut form: MultipartForm<FileForm>,
) -> Result<Found<CopyView>, HttpError> {
    let copy = inspection::trace(&app, user.caller(), &form.file()?).await?;
    Ok(DataReply::new(&copy))
}

/// The person gets a mail with a link. The view ends at its time, when you revoke it, and when control
/// passes.
pub async fn grant_view<C: Authorized>(
    act: NewAct<C, ViewForm>,
) -> Result<Created<ViewView>, HttpError> {
    act.run(views::grant).await
}

pub async fn revoke_view<C: Authorized>(
    act: ActOn<C, SignedForm>,
) -> Result<Found<ViewView>, HttpError> {
    act.run(views::revoke).await
}

/// The answer has the JSON, and a link for the person who demands proof of the assignment (UCC §9-406(c)). The
/// page behind the link needs no account and has the statement as a PDF, too.
pub async fn state_control<C: Authorized>(
    act: ActOn<C, StatementForm>,
) -> Result<Created<StatementView>, HttpError> {
    act.run(obligor::issue).await
}

/// To a party of one of the two records.
pub async fn dispute<C: Authorized>(
    State(app): State<App>,
    user: C,
    ResourceId(id): ResourceId,
) -> Result<Found<DisputeView>, HttpError> {
    let dispute = disputes::get(&app, user.caller(), &id).await?;
    Ok(DataReply::new(&dispute))
}

/// The statement goes to the operators of the installation. The other side learns that there is one, and not its
/// words.
pub async fn state_case<C: Authorized>(
    act: ActOn<C, DisputeForm>,
) -> Result<Found<DisputeView>, HttpError> {
    act.run(disputes::state).await
}

/// The party gets a mail with a link, by which it makes an organization of its own with a key for acts of
/// control. Your webhooks get `control.party.joined` with its id.
pub async fn invite<C: Authorized>(
    act: NewAct<C, InvitationForm>,
) -> Result<Created<InvitationView>, HttpError> {
    act.run(invitations::invite).await
}

pub async fn invitation<C: Authorized>(
    State(app): State<App>,
    user: C,
    ResourceId(id): ResourceId,
) -> Result<Found<InvitationView>, HttpError> {
    let invitation = invitations::get(&app, user.caller(), &id).await?;
    Ok(DataReply::new(&invitation))
}

/// Also lists revoked keys.
pub async fn list_keys<C: Authorized>(
    State(app): State<App>,
    user: C,
    ValidQuery(query): ValidQuery<WholeListQuery>,
) -> Result<PageReply<PartyKeyView>, HttpError> {
    query.page_of(&keys::list(&app, user.caller()).await?)
}

/// Without `proof`, the answer is a draft of the statement to sign. From the registration on, every act of
/// your organization needs a signed statement.
pub async fn register_key<C: Authorized>(
    act: NewAct<C, RegisterKeyForm>,
) -> Result<Created<PartyKeyView>, HttpError> {
    act.run(keys::register).await
}

/// Signed with a key that is still valid, which can be the same one.
pub async fn revoke_key<C: Authorized>(
    act: ActOn<C, SignedForm>,
) -> Result<Found<PartyKeyView>, HttpError> {
    act.run(keys::revoke).await
}
