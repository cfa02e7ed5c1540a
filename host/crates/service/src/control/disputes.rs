//! Disputes about two records of one collateral or document. Both sides state their case, and two operators of the
//! installation can suspend the claim that holds up the other record.
//!
//! Neither side is named to the other: each sees its own statement, and that the other made one.

use holdfast_store::SqlConnection;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{PartyNames, PartyView, control_view};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::control::ControlRecord;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::event::EventType;
use holdfast_domain::id::{DisputeId, EnvelopeId, OrgId};
use holdfast_platform::components::changes::{self, ChangeOfficer};
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::{Caller, Core, ServiceError, events};
use holdfast_store::disputes::{self as rows, ClaimSuspension, Dispute};
use holdfast_store::{WriteTransaction, control, envelopes};

/// Disputes that the operator sees.
const SHOWN: i64 = 200;

/// Which of two records a party has a part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DisputeSide {
    /// The record of the act that met the claim.
    Record,
    /// The record with the claim.
    Claim,
}

/// A suspension as both sides see it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SuspensionView {
    /// Why, in the operator's words.
    pub reason: String,
    pub requested_at: Timestamp,
    /// When a second operator approved it. Null: it has no effect yet.
    pub suspended_at: Option<Timestamp>,
}

/// A dispute as one of its sides sees it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "reference": "dsp_01jdk7m3e8f4x9s2w5v6b0c1dc", "side": "record", "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc",
    "first_at": "2026-11-21T09:45:00.000Z", "attempts": 2, "statement": "We financed this car on 20 November.",
    "other_side_stated": false, "suspension": null,
}]))]
pub struct DisputeView {
    /// As in the refusal of the act.
    pub reference: DisputeId,
    pub side: DisputeSide,
    /// Your record.
    pub envelope_id: EnvelopeId,
    /// First act that met the claim.
    pub first_at: Timestamp,
    /// Number of such acts; null for the side of the claim, which learns of the first one.
    pub attempts: Option<i64>,
    /// What your side stated last.
    pub statement: Option<String>,
    /// Whether the other side has stated its case.
    pub other_side_stated: bool,
    /// Suspension of the claim, once an operator has requested it.
    pub suspension: Option<SuspensionView>,
}

/// Body of `POST /partner/control/disputes/{reference}`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "statement": "We financed this car on 20 November; the contract was signed here." }]))]
pub struct DisputeForm {
    /// Your case, for the operators. It replaces an earlier one.
    #[schemars(length(min = 1, max = 2000))]
    pub statement: String,
}

/// Body of `POST /installation/disputes/{reference}/suspension`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "reason": "The claim is a scan of another contract; the sheriff's report is in file 17." }]))]
pub struct SuspensionForm {
    /// Shown to both sides.
    #[schemars(length(min = 1, max = 2000))]
    pub reason: String,
}

/// One of the records of a dispute, for operators.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DisputedRecordView {
    pub envelope_id: EnvelopeId,
    pub originator: PartyView,
    pub controller: PartyView,
    /// Whether it was signed here. A document that was signed elsewhere does not hold up one that was.
    pub signed_here: bool,
    /// What its side stated last.
    pub statement: Option<String>,
}

/// A dispute as operators see it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OperatorDisputeView {
    /// As in the refusal of the act.
    pub reference: DisputeId,
    /// First act that met the claim.
    pub first_at: Timestamp,
    pub attempts: i64,
    /// The record of the act that met the claim.
    pub record: DisputedRecordView,
    /// The record with the claim.
    pub claim: DisputedRecordView,
    /// Suspension of the claim, once an operator has requested it.
    pub suspension: Option<SuspensionView>,
}

/// Both records of a dispute.
struct DisputedRecords {
    dispute: Dispute,
    record: (Envelope, ControlRecord),
    claim: (Envelope, ControlRecord),
}

fn unknown() -> ServiceError {
    ServiceError::NotFound("Dispute")
}

impl DisputedRecords {
    async fn read(connection: &mut SqlConnection, dispute: Dispute) -> Result<Self, ServiceError> {
        // The dispute names the claim's envelope only. Its control row has the organization.
        let of = control::of_record(connection, &dispute.claim).await?;
        let claimant = of.ok_or_else(unknown)?.org;
        let (org, id) = (dispute.record.org.clone(), dispute.record.envelope.clone());
        Ok(Self {
            record: controlled(connection, &org, &id).await?,
            claim: controlled(connection, &claimant, &dispute.claim).await?,
            dispute,
        })
    }

    /// Returns the side of a party.
    fn side(&self, org: &OrgId) -> Result<DisputeSide, ServiceError> {
        let has_part = |(_, control): &(Envelope, ControlRecord)| control.parties().contains(&org);
        // An organization with a part in both records, such as a lender, is on the side of the act.
        match (has_part(&self.record), has_part(&self.claim)) {
            (true, _) => Ok(DisputeSide::Record),
            (false, true) => Ok(DisputeSide::Claim),
            (false, false) => Err(unknown()),
        }
    }

    fn view(&self, side: DisputeSide) -> DisputeView {
        let dispute = &self.dispute;
        let (own, other) = match side {
            DisputeSide::Record => (&dispute.statement, &dispute.other_statement),
            DisputeSide::Claim => (&dispute.other_statement, &dispute.statement),
        };
        DisputeView {
            reference: dispute.reference.clone(),
            side,
            envelope_id: match side {
                DisputeSide::Record => dispute.record.envelope.clone(),
                DisputeSide::Claim => dispute.claim.clone(),
            },
            first_at: dispute.first_at,
            attempts: (side == DisputeSide::Record).then_some(dispute.attempts),
            statement: own.clone(),
            other_side_stated: other.is_some(),
            suspension: dispute.suspension.as_ref().map(SuspensionView::from),
        }
    }

    async fn for_operators(
        &self,
        connection: &mut SqlConnection,
    ) -> Result<OperatorDisputeView, ServiceError> {
        let mut names = PartyNames::default();
        let mut views = Vec::new();
        let dispute = &self.dispute;
        // In this order: both views are taken from the end below.
        for ((envelope, control), statement) in [
            (&self.record, &dispute.statement),
            (&self.claim, &dispute.other_statement),
        ] {
            views.push(DisputedRecordView {
                envelope_id: envelope.id.clone(),
                originator: names.party(connection, &control.org).await?,
                controller: names.party(connection, &control.controller).await?,
                signed_here: !envelope.is_upload(),
                statement: statement.clone(),
            });
        }

        let claim = views.pop().ok_or_else(unknown)?;
        let record = views.pop().ok_or_else(unknown)?;
        Ok(OperatorDisputeView {
            reference: dispute.reference.clone(),
            first_at: dispute.first_at,
            attempts: dispute.attempts,
            record,
            claim,
            suspension: dispute.suspension.as_ref().map(SuspensionView::from),
        })
    }

    /// Records a step of the dispute in the ledgers of both records, or of one, and sends the events.
    async fn note(
        &self,
        core: &Core,
        tx: &mut WriteTransaction,
        step: &str,
        by: &str,
        only: Option<&EnvelopeId>,
    ) -> Result<(), ServiceError> {
        let now = core.clock.now();
        let dispute = &self.dispute;

        // In a fixed order, so that two steps do not wait for each other forever.
        let mut pair = [&self.record.0, &self.claim.0];
        pair.sort_by_key(|envelope| envelope.id.as_str());

        let mut names = PartyNames::default();
        for envelope in pair {
            if only.is_some_and(|only| *only != envelope.id) {
                continue;
            }
            let found = envelopes::lock_with_destroyed(tx, &envelope.org, &envelope.id).await?;
            let Some(envelope) = found else {
                continue;
            };

            let control = control::of_envelope(tx, &envelope).await?;
            let mut data = json!(control_view(&mut names, tx, &control).await?);
            data["reference"] = json!(dispute.reference);
            data["step"] = step.into();
            data["suspension"] = json!(dispute.suspension.as_ref().map(SuspensionView::from));
            let event = EventType::ControlDisputed;
            events::record(tx, &envelope, by, event.as_str(), data.clone(), now).await?;

            super::emit_to_all(tx, &envelope, control.parties(), event, &data, now).await?;
        }

        Ok(())
    }
}

impl From<&ClaimSuspension> for SuspensionView {
    fn from(suspension: &ClaimSuspension) -> Self {
        Self {
            reason: suspension.reason.clone(),
            requested_at: suspension.requested_at,
            suspended_at: suspension.approved.as_ref().map(|(_, at)| *at),
        }
    }
}

async fn controlled(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &EnvelopeId,
) -> Result<(Envelope, ControlRecord), ServiceError> {
    // A dispute about a destroyed record is left to its sides.
    let envelope = envelopes::get_with_destroyed(connection, org, id).await?;
    let envelope = envelope.ok_or_else(unknown)?;
    let control = control::of_envelope(connection, &envelope).await?;
    Ok((envelope, control))
}

async fn locked(
    tx: &mut WriteTransaction,
    reference: &str,
) -> Result<DisputedRecords, ServiceError> {
    let reference = DisputeId::parse(reference).ok_or_else(unknown)?;
    let dispute = rows::get(tx, &reference).await?;
    let records = DisputedRecords::read(tx, dispute.ok_or_else(unknown)?).await?;

    // The records first and in a fixed order, as a refused act does that counts the conflict.
    let mut pair = [&records.record.0, &records.claim.0];
    pair.sort_by_key(|envelope| envelope.id.as_str());
    for envelope in pair {
        envelopes::lock_with_destroyed(tx, &envelope.org, &envelope.id).await?;
    }

    let dispute = rows::lock(tx, &reference).await?.ok_or_else(unknown)?;
    Ok(DisputedRecords { dispute, ..records })
}

/// Returns a dispute to a party of one of its records.
pub async fn get(
    core: &Core,
    caller: &Caller,
    reference: &str,
) -> Result<DisputeView, ServiceError> {
    let reference = DisputeId::parse(reference).ok_or_else(unknown)?;
    let mut connection = core.store.read().await?;
    let dispute = rows::get(&mut connection, &reference).await?;
    let records = DisputedRecords::read(&mut connection, dispute.ok_or_else(unknown)?).await?;
    Ok(records.view(records.side(&caller.org)?))
}

/// States the case of one side.
pub async fn state(
    core: &Core,
    caller: &Caller,
    reference: &str,
    form: DisputeForm,
    answer: &ResponseRecorder<DisputeView>,
) -> Result<DisputeView, ServiceError> {
    let mut tx = core.store.begin().await?;
    let mut records = locked(&mut tx, reference).await?;
    let side = records.side(&caller.org)?;
    let own = match side {
        DisputeSide::Record => records.record.0.id.clone(),
        DisputeSide::Claim => records.claim.0.id.clone(),
    };

    let (place, step) = match side {
        DisputeSide::Record => (&mut records.dispute.statement, "stated_by_record"),
        DisputeSide::Claim => (&mut records.dispute.other_statement, "stated_by_claim"),
    };
    let before = place.replace(form.statement.clone());
    // The same statement again is a repeat: it makes no second entry.
    if before.as_ref() != Some(&form.statement) {
        rows::update(&mut tx, &records.dispute).await?;
        // The other side learns of the first statement only: its ledger is not ours to fill. Without the caller, because
        // it has this entry, too.
        let only = before.map(|_| &own);
        records.note(core, &mut tx, step, "system", only).await?;
    }

    let view = records.view(side);
    answer.commit(tx, &view).await?;
    Ok(view)
}

/// Lists the disputes in which a side has stated its case, for operators.
pub async fn list(core: &Core) -> Result<Vec<OperatorDisputeView>, ServiceError> {
    let mut connection = core.store.read().await?;
    let mut views = Vec::new();
    for dispute in rows::list(&mut connection, SHOWN).await? {
        let records = match DisputedRecords::read(&mut connection, dispute).await {
            Ok(records) => records,
            // One of its records is gone.
            Err(ServiceError::NotFound(_)) => continue,
            Err(error) => return Err(error),
        };
        views.push(records.for_operators(&mut connection).await?);
    }

    Ok(views)
}

/// Step of operators in a dispute.
pub enum SuspensionStep {
    /// Asks a second operator to suspend the claim, for this reason.
    Request(String),
    /// Suspends it, as the second operator.
    Approve,
    /// Ends a suspension, or its request. One operator is enough: the protection is back.
    Lift,
}

/// Takes a step as an operator.
///
/// # Errors
/// `Conflict` if the dispute is not at this step; `Change` if the second operator may be the first one.
pub async fn decide(
    core: &Core,
    operator: &ChangeOfficer,
    reference: &str,
    step: SuspensionStep,
) -> Result<OperatorDisputeView, ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let mut records = locked(&mut tx, reference).await?;
    let before = records.dispute.suspension.take();
    let refused = |why: &str| Err(ServiceError::Conflict(why.into()));
    let (next, name) = match (step, before) {
        (SuspensionStep::Request(reason), None) => {
            let requested = ClaimSuspension {
                reason,
                requested_by: operator.caller.actor.clone(),
                requested_as: operator.identity.clone(),
                requested_at: now,
                approved: None,
            };
            (Some(requested), "suspension_requested")
        }
        (SuspensionStep::Request(_), Some(_)) => {
            return refused("A suspension is requested or in force");
        }
        (SuspensionStep::Approve, Some(requested)) if requested.approved.is_none() => {
            let (first, account) = (&requested.requested_by, requested.requested_as.as_ref());
            // An invitee of the first operator may be the same person with another address.
            changes::permit_second(&mut tx, operator, first, account).await?;
            let claimant = &records.claim.0.org;
            // Without a common fingerprint the claim holds up nothing, and a suspension would only mislead.
            if !rows::share_fingerprint(&mut tx, &records.dispute, claimant).await? {
                return refused("The two records have nothing in common any more");
            }

            let approved = Some((operator.caller.actor.clone(), now));
            (
                Some(ClaimSuspension {
                    approved,
                    ..requested
                }),
                "suspended",
            )
        }
        (SuspensionStep::Approve, _) => {
            return refused("No suspension waits for a second operator");
        }
        (SuspensionStep::Lift, Some(_)) => (None, "suspension_lifted"),
        (SuspensionStep::Lift, None) => return refused("No suspension is requested or in force"),
    };

    records.dispute.suspension = next;
    rows::update(&mut tx, &records.dispute).await?;
    // Both sides see that an operator acted, not which one.
    records.note(core, &mut tx, name, "operator", None).await?;
    let view = records.for_operators(&mut tx).await?;
    tx.commit().await?;

    Ok(view)
}
