//! Partner API: envelopes.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::answers::{
    AttachmentsView, EnvelopeItem, EnvelopeView, PeopleView, QuestionView, QuestionsView,
    SignerView, SigningLinks, StatusView, UploadView,
};
use super::funding::FundingQuery;
use super::templates::optional_fields;
use crate::api::web::search::statuses;
use crate::error::HttpError;
use crate::middleware::act::ActOn;
use crate::middleware::caller::{Authorized, EnvelopeReader, EnvelopesRead, PartnerCaller};
use crate::middleware::extract::{
    FilePath, MultipartForm, QuestionPath, ResourceId, RolePath, ValidJson, ValidQuery,
    page_and_limit,
};
use crate::middleware::once::IdempotencyKeyHeader;
use crate::reply::{
    CreatedWithWarnings, CursorReply, DataReply, FileReply, Found, ListReply, PageReply, Pdf,
    PdfOrPicture,
};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::EnvelopeStatus;
use holdfast_domain::facts::FactSheet;
use holdfast_domain::id::{BatchId, CustomerId, EnvelopeId};
use holdfast_domain::reminders::ReminderPlan;
use holdfast_platform::Caller;
use holdfast_service::App;
use holdfast_service::control::transfers::metadata_filter;
use holdfast_service::envelopes::contract_dates::{self, ContractDates};
use holdfast_service::envelopes::paper_original::{self, PaperStatement};
use holdfast_service::envelopes::planned_sending::{self, PlanSending};
use holdfast_service::envelopes::successors::CorrectEnvelope;
use holdfast_service::envelopes::{self, creation, documents, successors, uploads};
use holdfast_service::signing::corrections::{self, CorrectSigner};
use holdfast_service::signing::expiry;
use holdfast_service::signing::questions::{self, CloseQuestion};
use holdfast_service::signing::reminders::{self, RemindRequest, RemindedSigners};
use holdfast_store::envelopes::EnvelopeFilter;
use holdfast_store::search::{EnvelopeSearch, FoundEnvelope};

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
    /// Returns only envelopes in this status, or in one of `statuses`.
    status: Option<EnvelopeStatus>,
    /// Returns only envelopes in these statuses, separated by commas.
    statuses: Option<String>,
    /// Returns only envelopes with this reference of yours.
    external_id: Option<String>,
    /// Returns only envelopes that were created at this time or later.
    created_after: Option<Timestamp>,
    /// Returns only envelopes that were created before this time.
    created_before: Option<Timestamp>,
    /// Returns only envelopes that were changed at this time or later.
    updated_after: Option<Timestamp>,
    /// Returns only envelopes with this value in their metadata: `member:value`, or `metadata[member]=value`.
    metadata: Option<String>,
    /// Returns only envelopes with this address among their signers.
    signer_email: Option<String>,
    /// Returns only envelopes of this batch.
    batch: Option<String>,
    /// Last id of the page before. The next page follows it, also if others were added meanwhile; not together with `page`.
    starting_after: Option<EnvelopeId>,
}

impl ListQuery {
    /// Whether the counters have the total.
    fn is_plain(&self) -> bool {
        // Counters exist by status and customer only. Any other filter has to count rows.
        let times = [self.created_after, self.created_before, self.updated_after];
        let texts = [
            &self.statuses,
            &self.external_id,
            &self.metadata,
            &self.signer_email,
            &self.batch,
        ];

        times.iter().all(Option::is_none)
            && texts.into_iter().all(Option::is_none)
            && self.starting_after.is_none()
    }

    /// Returns the search; none if an id in it is malformed, and so fits nothing.
    fn search(&self) -> Result<Option<EnvelopeSearch>, HttpError> {
        // Three outcomes: absent, valid, and malformed. A malformed id is answered like one that does not
        // exist.
        fn parsed<T>(text: Option<&String>, parse: fn(&str) -> Option<T>) -> Option<Option<T>> {
            match text {
                None => Some(None),
                Some(text) => parse(text).map(Some),
            }
        }

        let metadata = self.metadata.as_deref();
        let metadata = metadata.map(|text| metadata_filter("query", text));
        let metadata = metadata.transpose()?;
        // Both parameters name alternatives, so `status` beside `statuses` is one more of them.
        let mut statuses = statuses(self.statuses.as_deref().unwrap_or_default())?;
        statuses.extend(self.status);
        let ids = (
            parsed(self.customer_id.as_ref(), CustomerId::parse),
            parsed(self.batch.as_ref(), BatchId::parse),
        );
        let (Some(customer), Some(batch)) = ids else {
            return Ok(None);
        };

        Ok(Some(EnvelopeSearch {
            statuses,
            customer,
            external_id: self.external_id.clone(),
            created_from: self.created_after,
            created_before: self.created_before,
            updated_from: self.updated_after,
            metadata,
            signer_email: self.signer_email.clone(),
            batch,
            after: self.starting_after.clone(),
            ..EnvelopeSearch::default()
        }))
    }
}

pub async fn list(
    State(app): State<App>,
    partner: PartnerCaller<EnvelopesRead>,
    ValidQuery(query): ValidQuery<ListQuery>,
) -> Result<ListReply<EnvelopeItem>, HttpError> {
    let (page, limit) = page_and_limit(query.page, query.limit, 20, 100)?;
    if !query.is_plain() {
        return filtered(&app, &partner.caller, &query, page, limit).await;
    }

    let customer = match query.customer_id.as_deref().map(CustomerId::parse) {
        None => None,
        Some(Some(customer)) => Some(customer),
        // A malformed id matches no customer.
        Some(None) => return Ok(PageReply::new(&[], page, limit, 0).either()),
    };
    let filter = EnvelopeFilter {
        status: query.status,
        customer,
    };
    let (found, total) = envelopes::list(&app, &partner.caller, &filter, page, limit).await?;
    let items: Vec<EnvelopeItem> = found.into_iter().map(EnvelopeItem::from).collect();

    Ok(PageReply::new(&items, page, limit, total).either())
}

async fn filtered(
    app: &App,
    caller: &Caller,
    query: &ListQuery,
    page: i64,
    limit: i64,
) -> Result<ListReply<EnvelopeItem>, HttpError> {
    let items = |found: Vec<FoundEnvelope>| found.into_iter().map(EnvelopeItem::from).collect();
    let behind = query.starting_after.is_some();
    // A page number counts from the beginning, and the other parameter from an item.
    if behind && query.page.is_some() {
        let why = "page and starting_after exclude each other";
        return Err(HttpError::bad_request(why));
    }
    let Some(search) = query.search()? else {
        return Ok(if behind {
            CursorReply::new(Vec::new(), limit).either()
        } else {
            PageReply::new(&[], page, limit, 0).either()
        });
    };

    // Behind an item nothing is counted: that is why long lists are read this way.
    if behind {
        let found = envelopes::search(app, caller, &search, limit + 1).await?;
        return Ok(CursorReply::new(items(found), limit).either());
    }

    let search = EnvelopeSearch {
        // The page is the caller's number and may be huge.
        skip: (page - 1).saturating_mul(limit),
        ..search
    };
    let (found, total) = envelopes::counted_search(app, caller, &search, limit).await?;
    let items: Vec<EnvelopeItem> = items(found);

    Ok(PageReply::new(&items, page, limit, total).either())
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
    ValidQuery(query): ValidQuery<FundingQuery>,
    once: IdempotencyKeyHeader,
    ValidJson(mut request): ValidJson<creation::CreateEnvelope>,
) -> Result<CreatedWithWarnings<EnvelopeView>, HttpError> {
    request.funding = query.funding;
    once.answer_with_warnings(
        &app,
        partner.caller(),
        |created: &creation::CreatedEnvelope| {
            (EnvelopeView::from(created), created.warnings.clone())
        },
        |app, caller, answer| async move {
            creation::create(&app, &app.pages, &caller, request, &answer).await
        },
    )
    .await
}

/// Creates a draft with the document, fields, people, values and settings of an envelope in any status. Answers,
/// signatures and passcodes are not copied, and nothing is sent.
pub async fn copy<C: Authorized>(
    State(app): State<App>,
    partner: C,
    ResourceId(id): ResourceId,
    once: IdempotencyKeyHeader,
) -> Result<CreatedWithWarnings<EnvelopeView>, HttpError> {
    once.answer_with_warnings(
        &app,
        partner.caller(),
        |created: &creation::CreatedEnvelope| {
            (EnvelopeView::from(created), created.warnings.clone())
        },
        |app, caller, answer| async move {
            successors::copy(&app, &app.pages, &caller, &id, &answer).await
        },
    )
    .await
}

pub async fn upload<C: Authorized>(
    State(app): State<App>,
    partner: C,
    ResourceId(id): ResourceId,
    once: IdempotencyKeyHeader,
    mut form: MultipartForm<UploadForm>,
) -> Result<CreatedWithWarnings<UploadView>, HttpError> {
    // The form is taken apart before the key is claimed: a missing part must not use the key up.
    let file = form.file()?;
    let paper = form.texts.remove("paper_original");
    let paper = paper.map(|text| PaperStatement::parse(&text)).transpose()?;
    let show = |stored: &uploads::StoredUpload| (UploadView::from(stored), stored.warnings.clone());
    once.answer_with_warnings(
        &app,
        partner.caller(),
        show,
        |app, caller, answer| async move {
            uploads::upload(&app, &caller, &id, file, paper, &answer).await
        },
    )
    .await
}

/// Form with the corrected document or fields.
#[derive(JsonSchema)]
#[schemars(extend("examples" = [{ "file": "contract.pdf", "message": "The price in section 2 was wrong" }]))]
#[expect(dead_code, reason = "documents the form")]
pub struct CorrectionForm {
    /// PDF, PNG or JPEG, at most 50 MiB. Without it, the document stays and `fields_json` is required.
    #[schemars(extend("format" = "binary"))]
    file: Option<String>,
    /// JSON array of fields. Without it, fields are read from the `{{…}}` tags of the file; one without tags gets
    /// the fields of the envelope's template.
    fields_json: Option<String>,
    /// JSON object with values by field name. Without it, the earlier values stay.
    prefilled_data: Option<String>,
    /// What changed, at most 2000 characters. It is in the invitations and the ledger.
    message: String,
    /// Opens a protected document, which is kept without its protection. The password is not kept.
    password: Option<String>,
}

/// Voids an envelope that is out for signing, and sends a corrected one to the same people. Signatures on the earlier
/// document do not count any more; all are notified, and sign anew.
pub async fn correct<C: Authorized>(
    State(app): State<App>,
    partner: C,
    ResourceId(id): ResourceId,
    once: IdempotencyKeyHeader,
    mut form: MultipartForm<CorrectionForm>,
) -> Result<CreatedWithWarnings<EnvelopeView>, HttpError> {
    let prefilled = form.texts.remove("prefilled_data");
    let prefilled = prefilled.filter(|text| !text.trim().is_empty());
    let prefilled = prefilled.map(|text| values(&text)).transpose()?;
    let request = CorrectEnvelope {
        file: form.optional_file(),
        fields: optional_fields(&form.texts)?,
        prefilled,
        message: form.texts.remove("message").unwrap_or_default(),
    };
    once.answer_with_warnings(
        &app,
        partner.caller(),
        |created: &creation::CreatedEnvelope| {
            (EnvelopeView::from(created), created.warnings.clone())
        },
        |app, caller, answer| async move {
            successors::correct(&app, &caller, &id, request, &answer).await
        },
    )
    .await
}

/// Parses the form's `prefilled_data`.
fn values(text: &str) -> Result<Map<String, Value>, HttpError> {
    serde_json::from_str(text).map_err(|error| {
        HttpError::bad_request(format!("prefilled_data is not a JSON object: {error}"))
    })
}

/// Form with a document, and for an upload the statement about its paper original.
#[derive(JsonSchema)]
#[schemars(extend("examples" = [{ "file": "contract.pdf", "paper_original": "{\"state\":\"destroyed\"}" }]))]
#[expect(dead_code, reason = "documents the form")]
pub struct UploadForm {
    /// PDF, PNG or JPEG, at most 50 MiB.
    #[schemars(extend("format" = "binary"))]
    file: String,
    /// JSON `{ "state": "destroyed" | "marked" | "kept" | "unknown", "where"?: text }`; for paper
    /// envelopes only.
    paper_original: Option<String>,
    /// Opens a protected document, which is kept without its protection. The password is not kept.
    password: Option<String>,
}

/// States what became of the paper that an upload was made from. Without a statement it is `unknown`.
pub async fn state_paper_original<C: Authorized>(
    act: ActOn<C, PaperStatement>,
) -> Result<Found<EnvelopeView>, HttpError> {
    act.answer(paper_original::state).await
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
    once.answer(&app, partner.caller(), |app, caller, answer| async move {
        envelopes::void(&app, &caller, &id, request.reason, &answer).await
    })
    .await
}

pub async fn remind<C: Authorized>(
    act: ActOn<C, RemindRequest>,
) -> Result<Found<RemindedSigners>, HttpError> {
    act.run(reminders::remind).await
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
    once.answer(&app, partner.caller(), |app, caller, answer| async move {
        corrections::correct(&app, &caller, &id, &role, request, &answer).await
    })
    .await
}

/// Lists the questions that signers asked on the signing page, the oldest first. While one is open, the envelope waits
/// for the sender: planned reminders pause, and all can sign.
pub async fn questions<C: Authorized>(
    State(app): State<App>,
    partner: C,
    ResourceId(id): ResourceId,
) -> Result<Found<QuestionsView>, HttpError> {
    let asked = questions::list(&app, partner.caller(), &id).await?;
    Ok(DataReply::new(&QuestionsView::from(asked)))
}

/// Answers a question, or dismisses it without an answer. The signer gets the answer by mail and sees it on the signing
/// page. Planned reminders go on when no other question is open.
pub async fn close_question<C: Authorized>(
    State(app): State<App>,
    partner: C,
    ResourceId(id): ResourceId,
    QuestionPath(question): QuestionPath,
    once: IdempotencyKeyHeader,
    ValidJson(request): ValidJson<CloseQuestion>,
) -> Result<Found<QuestionView>, HttpError> {
    once.answer(&app, partner.caller(), |app, caller, answer| async move {
        questions::close(&app, &caller, &id, &question, request, &answer).await
    })
    .await
}

/// Moves the expiry of an envelope that is not finished to a later time.
pub async fn extend<C: Authorized>(
    act: ActOn<C, expiry::ExtendExpiry>,
) -> Result<Found<EnvelopeView>, HttpError> {
    act.answer(expiry::extend).await
}

/// Plans the reminders of an envelope that is not finished.
pub async fn plan_reminders<C: Authorized>(
    act: ActOn<C, ReminderPlan>,
) -> Result<Found<EnvelopeView>, HttpError> {
    act.answer(reminders::plan).await
}

/// Plans the sending of a draft at a later time, or ends the plan.
pub async fn plan_sending<C: Authorized>(
    act: ActOn<C, PlanSending>,
) -> Result<Found<EnvelopeView>, HttpError> {
    act.answer(planned_sending::plan).await
}

/// Sets the dates of a contract, such as the end of its term. People are notified before them.
pub async fn set_contract_dates<C: Authorized>(
    act: ActOn<C, ContractDates>,
) -> Result<Found<EnvelopeView>, HttpError> {
    act.answer(contract_dates::set).await
}

/// Returns the document as it was sent, before the first signature.
pub async fn document<C: Authorized>(
    State(app): State<App>,
    partner: C,
    ResourceId(id): ResourceId,
) -> Result<FileReply<Pdf>, HttpError> {
    let envelope = envelopes::get(&app, partner.caller(), &id).await?;
    let pdf = documents::unsigned(&app, &envelope).await?;
    FileReply::of_bytes(&app, &format!("{id}-unsigned.pdf"), &pdf).await
}

/// Lists the files that signers attached, in signing order, or the certificate of completion that was imported with the
/// document. A file of a signer who has not signed may still be replaced.
pub async fn attachments<C: Authorized>(
    State(app): State<App>,
    partner: C,
    ResourceId(id): ResourceId,
) -> Result<Found<AttachmentsView>, HttpError> {
    let envelope = envelopes::get(&app, partner.caller(), &id).await?;
    let files = documents::attachments(&app, &envelope).await?;
    Ok(DataReply::new(&AttachmentsView::from(files)))
}

/// Returns the facts of an envelope: of the executed document, or before the last signature of the present entries.
pub async fn facts<C: Authorized>(
    State(app): State<App>,
    partner: C,
    ResourceId(id): ResourceId,
) -> Result<Found<FactSheet>, HttpError> {
    let sheet = holdfast_service::facts::shown(&app, partner.caller(), &id).await?;
    Ok(DataReply::new(&sheet))
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
    // The signer's own file name is not used: it is a stranger's text, and would stand in a header.
    let ending = file.content_type.rsplit('/').next().unwrap_or_default();
    let name = format!("{id}-attachment.{ending}");
    FileReply::of_type(&app, &file.content_type, &name, &bytes).await
}
