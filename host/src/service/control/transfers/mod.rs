//! Transfers of control: the seller offers records, the buyer accepts, the seller confirms.
//!
//! A call only moves the transfer to its next step; a job makes the step for each record. It may run
//! twice and be killed anywhere: a record's step and its state in the transfer commit together.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::AnyConnection;

use super::acts::known_party;
use super::guard::FoundConflict;
use super::statements::{self, ExpectedStatement, SignedForm};
use super::{ActDone, PartyNames, PartyView, Request, guard, lock, permit, refusal_code, settle};
use crate::components::rules::control::{Act, Refusal, RefusalReason};
use crate::domain::clock::Timestamp;
use crate::domain::event::{Event, EventType};
use crate::domain::id::{EnvelopeId, OrgId, TransferId};
use crate::domain::job::AdvanceTransfer;
use crate::domain::merkle::MissingTile;
use crate::domain::statement::SignedStatement;
use crate::domain::transfer::{
    RecordInclusion, RecordState, RecordTree, RecordsRoot, Transfer, TransferReceipt,
    TransferRecord, TransferState, TransferStep,
};
use crate::faults;
use crate::service::idempotency::ResponseRecorder;
use crate::service::{Caller, Core, ServiceError, ValidationIssue};
use crate::store::control::{ListedPart, RecordFilter};
use crate::store::{
    StoreError, WriteTransaction, control as rows, deliveries, events, jobs, transfers,
};

/// Maximum number of records in a transfer.
const RECORDS: usize = 10_000;
/// Records of one transaction, unless all move together.
const BATCH: i64 = 50;
/// Time that an offer has if the seller names none, and at most.
const TIME: Duration = Duration::from_secs(30 * 86_400);
const MOST_TIME: Duration = Duration::from_secs(366 * 86_400);
/// Transfers that one round ends because their time is over.
const OVERDUE: i64 = 100;

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
}

/// A transfer, as in answers and events.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "transfer_id": "trf_01jdk7m3e8f4x9s2w5v6b0c1dc", "state": "proposed",
    "seller": { "organization_id": "org_01jdk7m3e8f4x9s2w5v6b0c1da", "name": "First Example Bank" },
    "buyer": { "organization_id": "org_01jdk7m3e8f4x9s2w5v6b0c1db", "name": "Example Funding" },
    "atomic": true, "terms": null, "price_reference": "Pool 2026-11",
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
    "atomic": true, "terms": null, "price_reference": "Pool 2026-11",
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
            expires_at,
            message,
        ));
    }
    let buyer = known_party(core, "buyer", &form.buyer).await?;
    if buyer == caller.org {
        return Err(ServiceError::ControlRefused(Refusal {
            reason: RefusalReason::ToOneself,
            message: "Seller and buyer are the same organization".into(),
            source: String::new(),
        }));
    }
    let records = selected(core, caller, &form).await?;
    let called = RecordTree::new(records.iter().map(|record| (record, None)));
    let expected = ExpectedStatement {
        act: EventType::ControlTransferProposed,
        party: &caller.org,
        subject: caller.org.as_str(),
        epoch: None,
        content: json!({
            "buyer": buyer, "records": called.and_then(|tree| tree.root()).map_err(incomplete)?,
            "atomic": form.atomic, "terms": form.terms, "price_reference": form.price_reference,
            "expires_at": form.expires_at,
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
                EnvelopeId::parse(text).ok_or_else(|| invalid("invalid_id", &path, text, message))
            });
            parsed.collect::<Result<Vec<_>, _>>()?
        }
        (None, Some(filter)) => matching(core, caller, filter).await?,
        _ => {
            let message = "give either records or filter";
            return Err(invalid("invalid_request", &["records"], "", message));
        }
    };
    let given = records.len();
    if !(1..=RECORDS).contains(&given) {
        let message = format!("a transfer has 1 to {RECORDS} records");
        return Err(invalid("out_of_range", &["records"], given, &message));
    }
    records.sort_unstable();
    if let Some(pair) = records.windows(2).find(|pair| pair[0] == pair[1]) {
        let message = "the record is in the list twice";
        return Err(invalid("duplicate_record", &["records"], &pair[0], message));
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
        is_free: true,
        after: None,
    };
    let mut connection = core.store.read().await?;
    // One more, so that a selection that is too large is refused and not cut.
    let limit = i64::try_from(RECORDS + 1).unwrap_or(i64::MAX);
    let found = rows::list(&mut connection, &caller.org, &filter, limit).await?;
    Ok(found.into_iter().map(|record| record.envelope).collect())
}

fn invalid(code: &str, path: &[&str], received: impl ToString, message: &str) -> ServiceError {
    ServiceError::Invalid(vec![ValidationIssue::new(
        code,
        path,
        "",
        received.to_string(),
        message,
    )])
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

pub(super) fn unknown() -> ServiceError {
    ServiceError::NotFound("Transfer")
}

pub(super) fn is_party(transfer: &Transfer, org: &OrgId) -> bool {
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
    let step = Beginning {
        by: TransferParty::Buyer,
        from: &[TransferState::Proposed],
        state: TransferState::Accepting,
    };
    begin(core, caller, id, step, form, answer).await
}

/// Confirms a transfer that the buyer accepted, as its seller. Control passes to the buyer.
pub async fn confirm(
    core: &Core,
    caller: &Caller,
    id: &str,
    form: SignedForm,
    answer: &ResponseRecorder<TransferView>,
) -> Result<TransferView, ServiceError> {
    let step = Beginning {
        by: TransferParty::Seller,
        from: &[TransferState::Accepted],
        state: TransferState::Confirming,
    };
    begin(core, caller, id, step, form, answer).await
}

/// Ends an offer before it is confirmed, as its seller or buyer.
pub async fn cancel(
    core: &Core,
    caller: &Caller,
    id: &str,
    form: SignedForm,
    answer: &ResponseRecorder<TransferView>,
) -> Result<TransferView, ServiceError> {
    let step = Beginning {
        by: TransferParty::Either,
        // Also while a step is in progress that cannot end, for example because of an organization's
        // rules.
        from: &[
            TransferState::Proposing,
            TransferState::Proposed,
            TransferState::Accepting,
            TransferState::Accepted,
            TransferState::Confirming,
        ],
        state: TransferState::Cancelling,
    };
    begin(core, caller, id, step, form, answer).await
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TransferParty {
    Seller,
    Buyer,
    Either,
}

/// How a party begins a step of a transfer.
struct Beginning {
    by: TransferParty,
    from: &'static [TransferState],
    state: TransferState,
}

/// Begins a step of a transfer that waits for a party.
async fn begin(
    core: &Core,
    caller: &Caller,
    id: &str,
    Beginning { by, from, state }: Beginning,
    form: SignedForm,
    answer: &ResponseRecorder<TransferView>,
) -> Result<TransferView, ServiceError> {
    let id = TransferId::parse(id).ok_or_else(unknown)?;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let transfer = transfers::lock(&mut tx, &id).await?;
    let transfer = transfer.filter(|transfer| is_party(transfer, &caller.org));
    let transfer = transfer.ok_or_else(unknown)?;
    let refused = |reason, message: String| {
        ServiceError::ControlRefused(Refusal {
            reason,
            message,
            source: String::new(),
        })
    };
    if !from.contains(&transfer.state) {
        let message = format!("The transfer is {}", transfer.state);
        return Err(refused(RefusalReason::OutOfOrder, message));
    }
    let may = match by {
        TransferParty::Seller => transfer.seller == caller.org,
        TransferParty::Buyer => transfer.buyer == caller.org,
        TransferParty::Either => true,
    };
    if !may {
        let message = "The other party of the transfer does this".into();
        return Err(refused(RefusalReason::WrongParty, message));
    }
    if state != TransferState::Cancelling && transfer.expires_at <= now {
        let message = "The time of the offer is over".into();
        return Err(refused(RefusalReason::Expired, message));
    }
    let (act, records) = match state {
        TransferState::Accepting => (
            EventType::ControlTransferAccepted,
            transfer.offered.as_ref(),
        ),
        TransferState::Confirming => {
            let receipt = transfer.receipt.as_ref();
            let accepted = receipt.map(|receipt| &receipt.accepted);
            (EventType::ControlTransferConfirmed, accepted)
        }
        _ => (EventType::ControlTransferCancelled, None),
    };
    let expected = ExpectedStatement {
        act,
        party: &caller.org,
        subject: transfer.id.as_str(),
        epoch: None,
        content: json!({ "records": records }),
    };
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

/// Ends expired offers.
pub async fn expire(core: &Core) -> Result<(), ServiceError> {
    let now = core.clock.now();
    let mut connection = core.store.read().await?;
    let overdue = transfers::overdue(&mut connection, now, OVERDUE).await?;
    drop(connection);
    for transfer in overdue {
        let next = Transfer {
            state: TransferState::Expiring,
            signed: None,
            acting: None,
            actor: "system".into(),
            ..transfer.clone()
        };
        let mut tx = core.store.begin().await?;
        match transfers::set_state(&mut tx, &transfer, &next, now).await {
            // A party or another node was first.
            Err(StoreError::Conflict) => continue,
            changed => changed?,
        }
        queue(&mut tx, &next, now).await?;
        tx.commit().await?;
    }
    Ok(())
}

/// Makes the step in progress for all records of a transfer. May run twice, also at the same time.
pub async fn advance(core: &Core, id: &TransferId) -> Result<(), ServiceError> {
    let mut step = None;
    while advance_batch(core, id, &mut step).await? {
        faults::pass("transferred");
    }
    Ok(())
}

/// Records that a step is about, with the state of the transfer in which they were read.
type StepRecords = Option<(TransferState, RecordTree)>;

/// Returns the records that the acting party has called, accepted or confirmed: the same ones however
/// often the step is repeated.
async fn records_of_step(
    connection: &mut AnyConnection,
    transfer: &Transfer,
) -> Result<StepRecords, ServiceError> {
    if is_ending(transfer.state) {
        return Ok(None);
    }
    let (all, last) = (RecordState::ALL, i64::MAX);
    let records = transfers::records(connection, transfer, all, None, last).await?;
    let state = transfer.state;
    let about = records.iter().filter(|record| match state {
        TransferState::Proposing => true,
        TransferState::Confirming => record.accepted,
        _ => record.document_hash.is_some(),
    });
    let lines = about.map(|record| {
        let hash = record.document_hash.as_deref();
        (
            &record.envelope,
            hash.filter(|_| state != TransferState::Proposing),
        )
    });
    let tree = RecordTree::new(lines).map_err(incomplete)?;
    Ok(Some((state, tree)))
}

fn incomplete(error: MissingTile) -> ServiceError {
    ServiceError::Internal(error.to_string())
}

/// Makes the step for some records, or ends it. Returns whether there is more to do.
async fn advance_batch(
    core: &Core,
    id: &TransferId,
    about: &mut StepRecords,
) -> Result<bool, ServiceError> {
    let mut tx = core.store.begin().await?;
    let Some(transfer) = transfers::lock(&mut tx, id).await? else {
        return Ok(false);
    };
    let Some(step) = transfer.state.step() else {
        return Ok(false);
    };
    if about
        .as_ref()
        .is_none_or(|(state, _)| *state != transfer.state)
    {
        *about = records_of_step(&mut tx, &transfer).await?;
    }
    let tree = about.as_ref().map(|(_, tree)| tree);
    let together = transfer.atomic && !is_ending(transfer.state);
    let limit = match together {
        true => i64::MAX,
        false => BATCH,
    };
    let records = transfers::records(&mut tx, &transfer, step.from, None, limit).await?;
    let (mut names, mut refused) = (PartyNames::default(), Vec::new());
    let mut conflicts = Vec::new();
    for record in &records {
        let made = step_of(core, &mut tx, &mut names, &transfer, step, record, tree).await;
        let record = match made {
            Ok(hash) => TransferRecord {
                state: step.to,
                accepted: record.accepted || step.to == RecordState::Accepted,
                document_hash: hash.or_else(|| record.document_hash.clone()),
                ..record.clone()
            },
            Err(error) => {
                let (record, conflict) = refusal(record, error)?;
                conflicts.extend(conflict);
                refused.push(record.clone());
                record
            }
        };
        transfers::set_record(&mut tx, &transfer, &record).await?;
        faults::pass("transferring");
    }
    if together && !refused.is_empty() {
        // Nothing of this transaction stays. The offer ends, with the reasons.
        drop(tx);
        fail(core, id, &transfer, &refused).await?;
        report(core, conflicts).await?;
        return Ok(true);
    }
    for record in &refused {
        unlock(core, &mut tx, &mut names, &transfer, &record.envelope).await?;
    }
    let is_over = records.is_empty() || together;
    if is_over {
        end(core, &mut tx, &mut names, &transfer, step).await?;
    }
    tx.commit().await?;
    report(core, conflicts).await?;
    Ok(!is_over)
}

/// Reports refused double pledges.
async fn report(core: &Core, conflicts: Vec<FoundConflict>) -> Result<(), ServiceError> {
    for conflict in conflicts {
        guard::report(core, conflict).await?;
    }
    Ok(())
}

/// Whether a step takes records out of a transfer.
fn is_ending(state: TransferState) -> bool {
    matches!(
        state,
        TransferState::Cancelling | TransferState::Expiring | TransferState::Failing
    )
}

/// Returns a record that does not move, with the reason, and the double pledge that is the reason.
fn refusal(
    record: &TransferRecord,
    error: ServiceError,
) -> Result<(TransferRecord, Option<FoundConflict>), ServiceError> {
    let reason = error.to_string();
    let code = match &error {
        ServiceError::DoublePledge(_) => "already_controlled",
        ServiceError::ControlRefused(refusal) => refusal_code(refusal),
        ServiceError::ConsentRequired(_) => "control_consent_required",
        ServiceError::Pledged => "record_pledged",
        ServiceError::NotFound(_) => "record_not_found",
        _ => return Err(error),
    };
    let record = TransferRecord {
        state: RecordState::Refused,
        code: Some(code.into()),
        reason: Some(reason),
        ..record.clone()
    };
    let conflict = match error {
        ServiceError::DoublePledge(found) => Some(*found),
        _ => None,
    };
    Ok((record, conflict))
}

/// Makes the step of one record. Returns the hash of its authoritative copy when it is offered.
async fn step_of(
    core: &Core,
    tx: &mut WriteTransaction,
    names: &mut PartyNames,
    transfer: &Transfer,
    step: TransferStep,
    record: &TransferRecord,
    about: Option<&RecordTree>,
) -> Result<Option<String>, ServiceError> {
    if is_ending(transfer.state) {
        if record.state != RecordState::Pending {
            unlock(core, tx, names, transfer, &record.envelope).await?;
        }
        return Ok(None);
    }
    let caller = acting(transfer);
    let locked = lock(tx, &caller, record.envelope.as_str()).await?;
    let (act, event, named) = match step.to {
        RecordState::Proposed => {
            let event = EventType::ControlTransferProposed;
            (Act::ProposeTransfer, event, Some(&transfer.buyer))
        }
        RecordState::Accepted => (
            Act::AcceptTransfer,
            EventType::ControlTransferAccepted,
            None,
        ),
        _ => (
            Act::ConfirmTransfer,
            EventType::ControlTransferConfirmed,
            None,
        ),
    };
    if step.to != RecordState::Proposed && locked.control.transfer.as_ref() != Some(&transfer.id) {
        return Err(ServiceError::NotFound("Record"));
    }
    let ask = Request {
        named,
        ..Request::of(act, &caller)
    };
    let permitted = permit(core, tx, &locked.envelope, &locked.control, ask).await?;
    let control = locked.control.clone();
    let next = match step.to {
        RecordState::Proposed => control.proposed(transfer.buyer.clone(), transfer.id.clone()),
        RecordState::Accepted => control.accepted(),
        _ => control.passed_on(),
    };
    let inclusion = about.map(|tree| tree.inclusion(&record.envelope));
    let inclusion = inclusion.transpose().map_err(incomplete)?.flatten();
    let done = ActDone {
        emits: false,
        signed: transfer.signed.clone(),
        ..ActDone::new(&caller, event, step_details(transfer, record, inclusion))
    };
    settle(core, tx, names, &locked, next, Some(&permitted), done).await?;
    let file = locked.envelope.record.authoritative.file();
    let offered = file.filter(|_| step.to == RecordState::Proposed);
    Ok(offered.map(|file| file.sha256.clone()))
}

/// Members of the ledger entry of a record's step.
fn step_details(
    transfer: &Transfer,
    record: &TransferRecord,
    inclusion: Option<RecordInclusion>,
) -> Value {
    json!({
        "transfer_id": transfer.id, "document_hash": record.document_hash, "inclusion": inclusion,
    })
}

/// Returns the party that asked for the step in progress.
fn acting(transfer: &Transfer) -> Caller {
    Caller {
        org: transfer
            .acting
            .clone()
            .unwrap_or_else(|| transfer.seller.clone()),
        actor: transfer.actor.clone(),
        email: None,
    }
}

/// Takes a record out of a transfer, if it is in it. The rules are asked and recorded; a refusal of an
/// organization's own rules does not keep a record locked for good.
async fn unlock(
    core: &Core,
    tx: &mut WriteTransaction,
    names: &mut PartyNames,
    transfer: &Transfer,
    envelope: &EnvelopeId,
) -> Result<(), ServiceError> {
    let seller = Caller {
        org: transfer.seller.clone(),
        ..acting(transfer)
    };
    let locked = match lock(tx, &seller, envelope.as_str()).await {
        Err(ServiceError::NotFound(_)) => return Ok(()),
        locked => locked?,
    };
    if locked.control.transfer.as_ref() != Some(&transfer.id) {
        return Ok(());
    }
    let caller = acting(transfer);
    let (act, event) = match transfer.state {
        TransferState::Expiring => (Act::ExpireTransfer, EventType::ControlTransferExpired),
        _ => (Act::CancelTransfer, EventType::ControlTransferCancelled),
    };
    let ask = Request {
        actor: transfer
            .acting
            .as_ref()
            .filter(|_| act == Act::CancelTransfer),
        is_expired: act == Act::ExpireTransfer,
        ..Request::of(act, &caller)
    };
    let permitted = match permit(core, tx, &locked.envelope, &locked.control, ask).await {
        Ok(permitted) => Some(permitted),
        Err(
            error @ (ServiceError::ControlRefused(_)
            | ServiceError::ConsentRequired(_)
            | ServiceError::Pledged
            | ServiceError::Component(_)),
        ) => {
            tracing::warn!(transfer = %transfer.id, %error, "a transfer ends against the control rules");
            None
        }
        Err(error) => return Err(error),
    };
    let next = locked.control.clone().kept();
    // A statement of another step does not say that the party takes the record out.
    let cancels = transfer.state == TransferState::Cancelling;
    let done = ActDone {
        emits: false,
        signed: transfer.signed.clone().filter(|_| cancels),
        ..ActDone::new(&caller, event, json!({ "transfer_id": transfer.id }))
    };
    settle(core, tx, names, &locked, next, permitted.as_ref(), done).await?;
    Ok(())
}

/// Ends an atomic transfer of which a record cannot move.
async fn fail(
    core: &Core,
    id: &TransferId,
    seen: &Transfer,
    refused: &[TransferRecord],
) -> Result<(), ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let Some(transfer) = transfers::lock(&mut tx, id).await? else {
        return Ok(());
    };
    if transfer.state != seen.state {
        return Ok(());
    }
    let mut names = PartyNames::default();
    for record in refused {
        unlock(core, &mut tx, &mut names, &transfer, &record.envelope).await?;
        transfers::set_record(&mut tx, &transfer, record).await?;
    }
    let next = Transfer {
        state: TransferState::Failing,
        ..transfer.clone()
    };
    transfers::set_state(&mut tx, &transfer, &next, now).await?;
    Ok(tx.commit().await?)
}

/// Ends a step that all records have made, and notifies the parties.
async fn end(
    core: &Core,
    tx: &mut WriteTransaction,
    names: &mut PartyNames,
    transfer: &Transfer,
    step: TransferStep,
) -> Result<(), ServiceError> {
    let now = core.clock.now();
    let moved = transfers::records(tx, transfer, &[step.to], None, i64::MAX).await?;
    let state = match (moved.is_empty(), is_ending(transfer.state)) {
        // No record can move.
        (true, false) => TransferState::Failed,
        _ => step.done,
    };
    let receipt = match state {
        TransferState::Accepted => Some(TransferReceipt {
            accepted_at: now,
            accepted: root(&moved)?,
        }),
        _ => transfer.receipt.clone(),
    };
    let offered = match state {
        TransferState::Proposed => Some(root(&moved)?),
        _ => transfer.offered.clone(),
    };
    let next = Transfer {
        state,
        receipt,
        offered,
        signed: None,
        offered_at: match state {
            TransferState::Proposed => Some(now),
            _ => transfer.offered_at,
        },
        changed_at: now,
        ..transfer.clone()
    };
    transfers::set_state(tx, transfer, &next, now).await?;
    let event = match state {
        TransferState::Proposed => EventType::ControlTransferProposed,
        TransferState::Accepted => EventType::ControlTransferAccepted,
        TransferState::Confirmed => EventType::ControlTransferConfirmed,
        TransferState::Cancelled => EventType::ControlTransferCancelled,
        TransferState::Expired => EventType::ControlTransferExpired,
        _ => EventType::ControlTransferFailed,
    };
    let data = json!(named_view(tx, names, &next).await?);
    for party in [&next.seller, &next.buyer] {
        // A buyer learns of an offer when there is one.
        if *party == next.buyer && next.offered_at.is_none() {
            continue;
        }
        let event = Event::of_organization(party.clone(), event, now, data.clone());
        events::insert(tx, &event);
        deliveries::fan_out(tx, &event).await?;
    }
    Ok(())
}

/// Returns the root over records with their documents.
fn root(records: &[TransferRecord]) -> Result<RecordsRoot, ServiceError> {
    let lines = records
        .iter()
        .map(|record| (&record.envelope, record.document_hash.as_deref()));
    let root = RecordTree::new(lines).and_then(|tree| tree.root());
    root.map_err(incomplete)
}

async fn view(
    connection: &mut AnyConnection,
    transfer: &Transfer,
) -> Result<TransferView, StoreError> {
    named_view(connection, &mut PartyNames::default(), transfer).await
}

async fn named_view(
    connection: &mut AnyConnection,
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
