//! Transfers of control: the seller offers records, the buyer accepts, the seller confirms.
//!
//! A call only moves the transfer to its next step; a job makes the step for each record (`steps`).

mod steps;

use std::collections::BTreeMap;
use std::time::Duration;

use holdfast_store::SqlConnection;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::acts::known_party;
use super::statements::{self, ExpectedStatement, SignedForm};
use super::{PartyNames, PartyView};
use holdfast_components::rules::control::RefusalReason;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::event::EventType;
use holdfast_domain::id::{EnvelopeId, OrgId, TransferId};
use holdfast_domain::job::AdvanceTransfer;
use holdfast_domain::merkle::MissingTile;
use holdfast_domain::statement::SignedStatement;
use holdfast_domain::transfer::{
    RecordState, RecordTree, RecordsRoot, SellerCopy, Transfer, TransferState,
};
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::problems::ControlProblem;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::control::{ListedPart, RecordFilter};
use holdfast_store::{StoreError, WriteTransaction, control as rows, jobs, transfers};

pub use steps::{advance, expire};

/// Maximum number of records in a transfer.
const RECORDS: usize = 10_000;
/// Time that an offer has if the seller names none, and at most.
const TIME: Duration = Duration::from_secs(30 * 86_400);
const MOST_TIME: Duration = Duration::from_secs(366 * 86_400);

/// Body of `POST /partner/control/transfers`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "buyer": "org_01jdk7m3e8f4x9s2w5v6b0c1db", "records": ["env_01jdk7m3e8f4x9s2w5v6b0c1dc"],
    "atomic": true, "price_reference": "Pool 2026-11", "expires_at": "2026-12-01T00:00:00Z",
}]))]
pub struct ProposeForm {
    /// Organization that shall get control.
    pub buyer: String,
    /// Envelope ids of the records, 1 to 10,000. Either these or `filter`.
    #[schemars(length(max = 10000))]
    pub records: Option<Vec<String>>,
    /// Selects records that you control now.
    pub filter: Option<TransferFilter>,
    /// Moves all records together or none. Otherwise a record that cannot move is left out.
    #[serde(default)]
    pub atomic: bool,
    #[schemars(length(max = 10000))]
    pub terms: Option<String>,
    #[schemars(length(max = 500))]
    pub price_reference: Option<String>,
    /// What becomes of your copy; `kept` when absent.
    pub seller_copy: Option<SellerCopy>,
    /// End of the offer; 30 days from now when absent, a year at most.
    pub expires_at: Option<Timestamp>,
    /// Your statement about this act, if your organization has registered a key.
    pub signed: Option<SignedStatement>,
}

/// Selection of records, of which at most 10,000 match.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct TransferFilter {
    /// Only records of this organization.
    pub originator: Option<OrgId>,
    /// Only records with their last act at this time or later.
    pub changed_from: Option<Timestamp>,
    /// Only records with their last act before this time.
    pub changed_before: Option<Timestamp>,
    /// Only records of this transfer, for example of the one by which you bought them.
    pub transfer: Option<TransferId>,
    /// Only records with this value in their metadata: `member:value`.
    pub metadata: Option<String>,
}

/// Returns a transfer of the caller's organization, with the bucket of its seller.
pub async fn seller_of(
    core: &Core,
    caller: &Caller,
    id: &TransferId,
) -> Result<(TransferId, i64), ServiceError> {
    let mut connection = core.store.read().await?;
    let transfer = transfers::get(&mut connection, id).await?;
    let transfer = transfer.filter(|transfer| is_party(transfer, &caller.org));
    let transfer = transfer.ok_or_else(unknown)?;
    Ok((transfer.id, transfer.seller.bucket()))
}

/// Parses a filter by metadata: `member:value`.
pub fn metadata_filter(member: &str, text: &str) -> Result<(String, String), ServiceError> {
    // The name becomes part of a JSON path in SQL text, where it cannot be a parameter.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    let parsed = text.split_once(':');
    match parsed.filter(|(name, _)| !name.is_empty() && name.bytes().all(plain)) {
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => {
            let message = "write it as member:value";
            Err(invalid(
                "invalid_request",
                &[member, "metadata"],
                "member:value",
                text,
                message,
            ))
        }
    }
}

/// A transfer, as in answers and events.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "transfer_id": "trf_01jdk7m3e8f4x9s2w5v6b0c1dc", "state": "proposed",
    "seller": { "organization_id": "org_01jdk7m3e8f4x9s2w5v6b0c1da", "name": "First Example Bank" },
    "buyer": { "organization_id": "org_01jdk7m3e8f4x9s2w5v6b0c1db", "name": "Example Funding" },
    "atomic": true, "terms": null, "price_reference": "Pool 2026-11", "seller_copy": "kept",
    "expires_at": "2026-12-01T00:00:00.000Z", "created_at": "2026-11-21T09:45:00.000Z",
    "changed_at": "2026-11-21T09:45:01.000Z", "counts": { "proposed": 1 }, "offer": { "records": 1, "root": "7c2f…" }, "receipt": null,
}]))]
pub struct TransferView {
    pub transfer_id: TransferId,
    pub state: TransferState,
    pub seller: PartyView,
    pub buyer: PartyView,
    pub atomic: bool,
    pub terms: Option<String>,
    pub price_reference: Option<String>,
    /// What becomes of the seller's copy.
    pub seller_copy: SellerCopy,
    pub expires_at: Timestamp,
    pub created_at: Timestamp,
    pub changed_at: Timestamp,
    /// Number of records by state.
    pub counts: BTreeMap<String, i64>,
    /// What the buyer is offered, from `proposed` on.
    pub offer: Option<RecordsRoot>,
    /// What the buyer accepted.
    pub receipt: Option<ReceiptView>,
}

/// The buyer's receipt.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ReceiptView {
    pub accepted_at: Timestamp,
    #[serde(flatten)]
    pub accepted: RecordsRoot,
}

/// A record in a transfer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TransferRecordView {
    pub envelope_id: EnvelopeId,
    pub state: RecordState,
    /// SHA-256 of the authoritative copy when it was offered.
    pub document_hash: Option<String>,
    /// Error code, for a record that does not move.
    pub code: Option<String>,
    pub reason: Option<String>,
}

/// A transfer with a page of its records.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "transfer_id": "trf_01jdk7m3e8f4x9s2w5v6b0c1dc", "state": "proposed",
    "seller": { "organization_id": "org_01jdk7m3e8f4x9s2w5v6b0c1da", "name": "First Example Bank" },
    "buyer": { "organization_id": "org_01jdk7m3e8f4x9s2w5v6b0c1db", "name": "Example Funding" },
    "atomic": true, "terms": null, "price_reference": "Pool 2026-11", "seller_copy": "kept",
    "expires_at": "2026-12-01T00:00:00.000Z", "created_at": "2026-11-21T09:45:00.000Z",
    "changed_at": "2026-11-21T09:45:01.000Z", "counts": { "proposed": 1 }, "offer": { "records": 1, "root": "7c2f…" }, "receipt": null,
    "records": [{
        "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "state": "proposed",
        "document_hash": "9f86d081884c7d65…", "code": null, "reason": null,
    }],
    "has_more": false,
}]))]
pub struct TransferDetails {
    #[serde(flatten)]
    pub transfer: TransferView,
    /// Records in the order of their ids.
    pub records: Vec<TransferRecordView>,
    /// Whether there are records behind the last one.
    pub has_more: bool,
}

/// Selection of a transfer's records.
#[derive(Clone, Debug)]
pub struct RecordsPage {
    pub state: Option<RecordState>,
    pub after: Option<EnvelopeId>,
    pub limit: i64,
}

/// Offers records to a buyer.
pub async fn propose(
    core: &Core,
    caller: &Caller,
    form: ProposeForm,
    answer: &ResponseRecorder<TransferView>,
) -> Result<TransferView, ServiceError> {
    let now = core.clock.now();
    let expires_at = form.expires_at.unwrap_or(now + TIME);
    if expires_at <= now || expires_at > now + MOST_TIME {
        let message = "expires_at must be in the future, and a year ahead at most";
        return Err(invalid(
            "out_of_range",
            &["expires_at"],
            "a time in the future, within a year",
            expires_at,
            message,
        ));
    }

    let buyer = known_party(core, caller, "buyer", &form.buyer).await?;
    // The rules would refuse each record for it, in a job that ends only after this answer.
    if buyer == caller.org {
        let message = "Seller and buyer are the same organization";
        return Err(ControlProblem::refused(RefusalReason::ToOneself, message).into());
    }

    let records = selected(core, caller, &form).await?;
    // Over ids only: the job reads the hash of each record when it locks it.
    let called =
        RecordTree::new(records.iter().map(|record| (record, None))).map_err(incomplete)?;
    // `expires_at` and `seller_copy` are those of the form. A default that depends on the time would not fit
    // the statement that the seller has signed before this call.
    let expected = ExpectedStatement {
        act: EventType::ControlTransferProposed,
        party: &caller.org,
        subject: caller.org.as_str(),
        epoch: None,
        content: json!({
            "buyer": buyer, "records": called.root(),
            "atomic": form.atomic, "terms": form.terms, "price_reference": form.price_reference,
            "expires_at": form.expires_at, "seller_copy": form.seller_copy,
        }),
    };

    let mut tx = core.store.begin().await?;
    let signed = statements::require(core, &mut tx, &expected, form.signed.as_ref()).await?;
    let transfer = Transfer {
        id: TransferId::new(),
        seller: caller.org.clone(),
        buyer,
        state: TransferState::Proposing,
        atomic: form.atomic,
        terms: form.terms,
        price_reference: form.price_reference,
        seller_copy: form.seller_copy.unwrap_or(SellerCopy::Kept),
        expires_at,
        created_at: now,
        changed_at: now,
        acting: Some(caller.org.clone()),
        actor: caller.actor.clone(),
        offered_at: None,
        offered: None,
        receipt: None,
        signed,
    };

    transfers::insert(&mut tx, &transfer, &records).await?;
    queue(&mut tx, &transfer, now).await?;
    let view = view(&mut tx, &transfer).await?;
    answer.commit(tx, &view).await?;

    Ok(view)
}

/// Returns the records of a proposal, each once.
async fn selected(
    core: &Core,
    caller: &Caller,
    form: &ProposeForm,
) -> Result<Vec<EnvelopeId>, ServiceError> {
    let mut records = match (&form.records, &form.filter) {
        (Some(records), None) => {
            let parsed = records.iter().zip(0..).map(|(text, index): (_, usize)| {
                let path = ["records", &index.to_string()];
                let message = "not the id of an envelope";
                let expected = "the id of an envelope";
                EnvelopeId::parse(text)
                    .ok_or_else(|| invalid("invalid_id", &path, expected, text, message))
            });
            parsed.collect::<Result<Vec<_>, _>>()?
        }
        (None, Some(filter)) => matching(core, caller, filter).await?,
        _ => {
            let message = "give either records or filter";
            let (code, expected) = ("invalid_request", "one of records and filter");
            return Err(invalid(code, &["records"], expected, "", message));
        }
    };

    let given = records.len();
    if !(1..=RECORDS).contains(&given) {
        let message = format!("a transfer has 1 to {RECORDS} records");
        let (code, expected) = ("out_of_range", format!("1 to {RECORDS} records"));
        return Err(invalid(code, &["records"], &expected, given, &message));
    }

    // The Merkle tree has one leaf for each record, in the order of the ids.
    records.sort_unstable();
    if let Some(pair) = records.windows(2).find(|pair| pair[0] == pair[1]) {
        let message = "the record is in the list twice";
        let (code, expected) = ("duplicate_record", "each record once");
        return Err(invalid(code, &["records"], expected, &pair[0], message));
    }

    Ok(records)
}

async fn matching(
    core: &Core,
    caller: &Caller,
    filter: &TransferFilter,
) -> Result<Vec<EnvelopeId>, ServiceError> {
    let filter = RecordFilter {
        part: ListedPart::Controller,
        stage: None,
        originator: filter.originator.clone(),
        changed_from: filter.changed_from,
        changed_before: filter.changed_before,
        // A filter by a transfer of strangers would reveal which records are in it.
        transfer: match &filter.transfer {
            Some(id) => Some(seller_of(core, caller, id).await?),
            None => None,
        },
        metadata: match &filter.metadata {
            Some(text) => Some(metadata_filter("filter", text)?),
            None => None,
        },
        // A record that is offered already would only come back as refused.
        is_free: true,
        after: None,
    };

    let mut connection = core.store.read().await?;

    // One more, so that a selection that is too large is refused and not cut.
    let limit = i64::try_from(RECORDS + 1).unwrap_or(i64::MAX);
    let found = rows::list(
        &mut connection,
        core.store.dialect(),
        &caller.org,
        &filter,
        limit,
    )
    .await?;

    Ok(found.into_iter().map(|record| record.envelope).collect())
}

fn invalid(
    code: &str,
    path: &[&str],
    expected: &str,
    received: impl ToString,
    message: &str,
) -> ServiceError {
    ServiceError::invalid(code, path, expected, received.to_string(), message)
}

/// Lists transfers of the caller's organization, as seller or buyer, newest first.
pub async fn list(
    core: &Core,
    caller: &Caller,
    after: Option<&TransferId>,
    limit: i64,
) -> Result<Vec<TransferView>, ServiceError> {
    let mut connection = core.store.read().await?;
    let found = transfers::list(&mut connection, &caller.org, after, limit).await?;
    let mut views = Vec::new();
    for transfer in found {
        views.push(view(&mut connection, &transfer).await?);
    }
    Ok(views)
}

/// Returns a transfer with a page of its records.
pub async fn get(
    core: &Core,
    caller: &Caller,
    id: &str,
    page: RecordsPage,
) -> Result<TransferDetails, ServiceError> {
    let id = TransferId::parse(id).ok_or_else(unknown)?;
    let mut connection = core.store.read().await?;
    let transfer = transfers::get(&mut connection, &id).await?;
    let transfer = transfer.filter(|transfer| is_party(transfer, &caller.org));
    let transfer = transfer.ok_or_else(unknown)?;
    let states = match page.state {
        Some(state) => vec![state],
        None => RecordState::ALL.to_vec(),
    };

    // One more, to learn whether another page follows.
    let (after, limit) = (page.after.as_ref(), page.limit + 1);
    let mut records = transfers::records(&mut connection, &transfer, &states, after, limit).await?;
    let limit = usize::try_from(page.limit).unwrap_or_default();
    let has_more = records.len() > limit;
    records.truncate(limit);
    let shown = records.into_iter().map(|record| TransferRecordView {
        envelope_id: record.envelope,
        state: record.state,
        document_hash: record.document_hash,
        code: record.code,
        reason: record.reason,
    });

    Ok(TransferDetails {
        transfer: view(&mut connection, &transfer).await?,
        records: shown.collect(),
        has_more,
    })
}

pub(crate) fn unknown() -> ServiceError {
    ServiceError::NotFound("Transfer")
}

/// Refuses a transfer with a step in progress, and one that ended without a sale.
pub(crate) fn check_settled(transfer: &Transfer) -> Result<(), ServiceError> {
    let settled = [
        TransferState::Proposed,
        TransferState::Accepted,
        TransferState::Confirmed,
    ];
    if settled.contains(&transfer.state) {
        Ok(())
    } else {
        let message = format!("The transfer is {}", transfer.state);
        Err(super::out_of_order(&message))
    }
}

pub(crate) fn is_party(transfer: &Transfer, org: &OrgId) -> bool {
    // The buyer does not know of an offer before the job has proposed its records.
    transfer.seller == *org || transfer.buyer == *org && transfer.offered_at.is_some()
}

/// Accepts an offer as its buyer.
pub async fn accept(
    core: &Core,
    caller: &Caller,
    id: &str,
    form: SignedForm,
    answer: &ResponseRecorder<TransferView>,
) -> Result<TransferView, ServiceError> {
    begin(core, caller, id, TransferState::Accepting, form, answer).await
}

/// Confirms a transfer that the buyer accepted, as its seller. Control passes to the buyer.
pub async fn confirm(
    core: &Core,
    caller: &Caller,
    id: &str,
    form: SignedForm,
    answer: &ResponseRecorder<TransferView>,
) -> Result<TransferView, ServiceError> {
    begin(core, caller, id, TransferState::Confirming, form, answer).await
}

/// Ends an offer before it is confirmed, as its seller or buyer.
pub async fn cancel(
    core: &Core,
    caller: &Caller,
    id: &str,
    form: SignedForm,
    answer: &ResponseRecorder<TransferView>,
) -> Result<TransferView, ServiceError> {
    begin(core, caller, id, TransferState::Cancelling, form, answer).await
}

/// States in which a party can end a transfer: also while a step is in progress that cannot end, for example
/// because of an organization's rules.
const OPEN: &[TransferState] = &[
    TransferState::Proposing,
    TransferState::Proposed,
    TransferState::Accepting,
    TransferState::Accepted,
    TransferState::Confirming,
];

/// Begins a step of a transfer that waits for a party.
async fn begin(
    core: &Core,
    caller: &Caller,
    id: &str,
    state: TransferState,
    form: SignedForm,
    answer: &ResponseRecorder<TransferView>,
) -> Result<TransferView, ServiceError> {
    let id = TransferId::parse(id).ok_or_else(unknown)?;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    // Locked, so that the expiry or the other party does not begin a step at the same time.
    let transfer = transfers::lock(&mut tx, &id).await?;
    let transfer = transfer.filter(|transfer| is_party(transfer, &caller.org));
    let transfer = transfer.ok_or_else(unknown)?;
    let receipt = transfer.receipt.as_ref();

    // Event, states before the step, the party that makes it, and the records that it is about.
    let (act, from, by, records) = match state {
        TransferState::Accepting => (
            EventType::ControlTransferAccepted,
            &[TransferState::Proposed][..],
            &transfer.buyer,
            transfer.offered.as_ref(),
        ),
        TransferState::Confirming => (
            EventType::ControlTransferConfirmed,
            &[TransferState::Accepted][..],
            &transfer.seller,
            receipt.map(|receipt| &receipt.accepted),
        ),
        // Either party.
        _ => (EventType::ControlTransferCancelled, OPEN, &caller.org, None),
    };

    if !from.contains(&transfer.state) {
        let message = format!("The transfer is {}", transfer.state);
        return Err(ControlProblem::refused(RefusalReason::OutOfOrder, message).into());
    }
    if *by != caller.org {
        let message = "The other party of the transfer does this";
        return Err(ControlProblem::refused(RefusalReason::WrongParty, message).into());
    }
    // The task that ends expired offers may be late. A party can still cancel then.
    if state != TransferState::Cancelling && transfer.expires_at <= now {
        let message = "The time of the offer is over";
        return Err(ControlProblem::refused(RefusalReason::Expired, message).into());
    }

    let expected = ExpectedStatement {
        act,
        party: &caller.org,
        subject: transfer.id.as_str(),
        epoch: None,
        content: json!({ "records": records }),
    };
    // The statement stays with the transfer: the job copies it into the ledger entry of every record.
    let next = Transfer {
        signed: statements::require(core, &mut tx, &expected, form.signed.as_ref()).await?,
        state,
        acting: Some(caller.org.clone()),
        actor: caller.actor.clone(),
        changed_at: now,
        ..transfer.clone()
    };
    transfers::set_state(&mut tx, &transfer, &next, now).await?;

    queue(&mut tx, &next, now).await?;
    let view = view(&mut tx, &next).await?;
    answer.commit(tx, &view).await?;

    Ok(view)
}

/// Queues the step in progress.
async fn queue(
    tx: &mut WriteTransaction,
    transfer: &Transfer,
    now: Timestamp,
) -> Result<(), StoreError> {
    let job = AdvanceTransfer {
        transfer: transfer.id.clone(),
    };
    // Each step is a job of its own: the one before it may not be settled yet.
    let key = format!("{}:{}", transfer.id, transfer.state);
    jobs::insert(tx, &transfer.seller, &job, Some(&key), now).await
}

fn incomplete(error: MissingTile) -> ServiceError {
    ServiceError::Internal(error.to_string())
}

async fn view(
    connection: &mut SqlConnection,
    transfer: &Transfer,
) -> Result<TransferView, StoreError> {
    named_view(connection, &mut PartyNames::default(), transfer).await
}

async fn named_view(
    connection: &mut SqlConnection,
    names: &mut PartyNames,
    transfer: &Transfer,
) -> Result<TransferView, StoreError> {
    Ok(TransferView {
        transfer_id: transfer.id.clone(),
        state: transfer.state,
        seller: names.party(connection, &transfer.seller).await?,
        buyer: names.party(connection, &transfer.buyer).await?,
        atomic: transfer.atomic,
        terms: transfer.terms.clone(),
        price_reference: transfer.price_reference.clone(),
        seller_copy: transfer.seller_copy,
        expires_at: transfer.expires_at,
        created_at: transfer.created_at,
        changed_at: transfer.changed_at,
        counts: transfers::counts(connection, transfer).await?,
        offer: transfer.offered.clone(),
        receipt: transfer.receipt.as_ref().map(|receipt| ReceiptView {
            accepted_at: receipt.accepted_at,
            accepted: receipt.accepted.clone(),
        }),
    })
}
