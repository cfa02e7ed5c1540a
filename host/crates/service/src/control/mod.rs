//! Control of records: which party decides about an authoritative copy (UCC §9-105).
//!
//! The rules of slot `rules.control` decide about every act. What no component may break is here: a
//! record has one controller at any time, every act is an entry of the custody ledger, and an act
//! applies only to the state that it was decided on.

mod acts;
pub mod disputes;
pub mod invitations;
pub mod keys;
pub mod pledges;
pub mod releases;
pub mod similar;
pub mod statements;
pub mod tape;
pub mod transfers;

use holdfast_store::SqlConnection;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::funding;
use holdfast_components::rules::control::{
    Act, ControlFacts, Decision, Obstacle, Party, RefusalReason, Stage,
};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::Slot;
use holdfast_domain::control::{ControlRecord, ControlStage, ReleaseRequest, ReleaseState};
use holdfast_domain::envelope::{
    Envelope, EnvelopeDestruction, EnvelopeStatus, PaymentStatus, SignerStatus,
};
use holdfast_domain::event::EventType;
use holdfast_domain::funding::FundingStage;
use holdfast_domain::id::{DecisionId, EnvelopeId, OrgId, PledgeId, ReleaseId, TransferId};
use holdfast_domain::job::CertifyAnew;
use holdfast_domain::release::ReleaseMedium;
use holdfast_domain::statement::SignedStatement;
use holdfast_platform::components::questions::{self, RulesQuestion};
use holdfast_platform::events;
pub use holdfast_platform::permits::{ControlView, PartyNames, PartyView, control_view};
use holdfast_platform::permits::{double_pledge, legal_holds};
use holdfast_platform::problems::ControlProblem;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::control::{self as rows, ControlDecision, RecordFilter};
use holdfast_store::downloads::LinkedFile;
use holdfast_store::row::OwnedEnvelope;
use holdfast_store::{
    StoreError, WriteTransaction, downloads, envelopes, integrity, jobs, signers,
    transfers as transfers_rows,
};

pub use acts::{DesignateForm, accept, decline, designate};
use statements::ExpectedStatement;

/// A release that waits for the controller's consent, or was agreed to.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "release_id": "rel_01jdk7m3e8f4x9s2w5v6b0c1dc", "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc",
    "state": "requested", "recipient_name": "Robin Park",
    "recipient_organization": "First Example Bank", "recipient_email": "robin.park@bank.example",
    "purpose_of_release": "Payoff", "medium": "electronic",
    "requested_at": "2026-11-21T09:45:00.000Z", "answered_at": null, "reason": null,
}]))]
pub struct ReleaseRequestView {
    pub release_id: ReleaseId,
    pub envelope_id: EnvelopeId,
    pub state: ReleaseState,
    pub recipient_name: String,
    pub recipient_organization: String,
    pub recipient_email: String,
    pub purpose_of_release: String,
    /// `paper` for a conversion to paper.
    pub medium: ReleaseMedium,
    pub requested_at: Timestamp,
    pub answered_at: Option<Timestamp>,
    /// Why the controller refused.
    pub reason: Option<String>,
}

impl From<&ReleaseRequest> for ReleaseRequestView {
    fn from(request: &ReleaseRequest) -> Self {
        let text = |name: &str| request.form[name].as_str().unwrap_or_default().to_owned();
        Self {
            release_id: request.id.clone(),
            envelope_id: request.envelope.clone(),
            state: request.state,
            recipient_name: text("recipient_name"),
            recipient_organization: text("recipient_organization"),
            recipient_email: text("recipient_email"),
            medium: if request.form["medium"] == "paper" {
                ReleaseMedium::Paper
            } else {
                ReleaseMedium::default()
            },
            purpose_of_release: text("purpose_of_release"),
            requested_at: request.requested_at,
            answered_at: request.answer.as_ref().map(|answer| answer.at),
            reason: request
                .answer
                .as_ref()
                .and_then(|answer| answer.reason.clone()),
        }
    }
}

/// A record as its parties see it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "name": "Retail instalment contract 2041",
    "status": "vaulted", "document_hash": "9f86d081884c7d65…", "compliance_score": 100,
    "chattel_paper_jurisdiction": "US-DE", "metadata": { "amount": 18400 },
    "originator": { "organization_id": "org_01jdk7m3e8f4x9s2w5v6b0c1da", "name": "Maple Motors" },
    "controller": { "organization_id": "org_01jdk7m3e8f4x9s2w5v6b0c1db", "name": "First Example Bank" },
    "designee": null, "buyer": null, "pledgee": null, "stage": "controlled", "epoch": 2,
    "changed_at": "2026-11-21T09:45:00.000Z", "controlled_since": "2026-11-21T09:45:00.000Z",
    "release": null, "transfer_id": null, "pledge_id": null,
}]))]
pub struct RecordView {
    pub envelope_id: EnvelopeId,
    pub name: String,
    pub status: EnvelopeStatus,
    /// Progress of the record's destruction; absent for a whole record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destruction: Option<EnvelopeDestruction>,
    /// SHA-256 of the authoritative copy, lower-case hex.
    pub document_hash: Option<String>,
    /// Score of the compliance certificate, 0 to 100.
    pub compliance_score: Option<i64>,
    /// Jurisdiction of the chattel paper, if one is stated.
    pub chattel_paper_jurisdiction: Option<String>,
    /// Facts about the contract that the originator gave when it created it.
    pub metadata: Map<String, Value>,
    #[serde(flatten)]
    pub control: ControlView,
    /// Time of the last act.
    pub changed_at: Timestamp,
    /// Since when the controller has control.
    pub controlled_since: Timestamp,
    /// The release that waits for the controller, or was agreed to.
    pub release: Option<ReleaseRequestView>,
    /// The transfer in which the record is offered.
    pub transfer_id: Option<TransferId>,
    /// The live pledge of the record.
    pub pledge_id: Option<PledgeId>,
}

/// Reason that a party gives for its act.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "reason": "The amount differs from the application" }]))]
pub struct ReasonForm {
    #[schemars(length(max = 2000))]
    pub reason: Option<String>,
    /// Your statement about this act, if your organization has registered a key.
    pub signed: Option<SignedStatement>,
}

/// A record with the row of its envelope locked.
pub(crate) struct LockedRecord {
    pub(crate) envelope: Envelope,
    pub(crate) control: ControlRecord,
}

/// Permission for an act, with its facts.
pub(crate) struct PermittedAct(pub(crate) ControlDecision);

/// Who acts.
pub(crate) enum Actor<'a> {
    Party(&'a OrgId),
    /// A person with a view.
    Viewer,
    /// This system itself.
    Host,
}

/// Who asks for an act, and with what.
pub(crate) struct Request<'a> {
    pub(crate) act: Act,
    pub(crate) actor: Actor<'a>,
    /// The party that the act names.
    pub(crate) named: Option<&'a OrgId>,
    /// Parties that consented to this act.
    pub(crate) consents: Vec<Party>,
    /// Whether the release that the act answers waits for an answer. `None` for other acts, for which a
    /// release in progress counts.
    pub(crate) answers_release: Option<bool>,
    /// Whether the time of the offer is over.
    pub(crate) is_expired: bool,
}

impl<'a> Request<'a> {
    pub(crate) fn of(act: Act, caller: &'a Caller) -> Self {
        Self::by(act, Actor::Party(&caller.org))
    }

    pub(crate) fn by(act: Act, actor: Actor<'a>) -> Self {
        Self {
            act,
            actor,
            named: None,
            consents: Vec::new(),
            answers_release: None,
            is_expired: false,
        }
    }
}

/// Lists records in which the caller's organization has a part, newest first.
pub async fn list(
    core: &Core,
    caller: &Caller,
    filter: &RecordFilter,
    limit: i64,
) -> Result<Vec<RecordView>, ServiceError> {
    let mut connection = core.store.read().await?;
    let records = rows::list(
        &mut connection,
        core.store.dialect(),
        &caller.org,
        filter,
        limit,
    )
    .await?;

    let (mut views, mut names) = (Vec::new(), PartyNames::default());
    for record in records {
        let found =
            envelopes::get_with_destroyed(&mut connection, &record.org, &record.envelope).await?;
        let envelope = found.ok_or(ServiceError::NotFound("Record"))?;
        views.push(record_view(&mut connection, &mut names, &envelope, &record).await?);
    }

    Ok(views)
}

/// Returns a record in which the caller's organization has a part.
pub async fn get(core: &Core, caller: &Caller, id: &str) -> Result<RecordView, ServiceError> {
    let unknown = || ServiceError::NotFound("Record");
    let id = EnvelopeId::parse(id).ok_or_else(unknown)?;
    let mut connection = core.store.read().await?;
    let org = originator(&mut connection, caller, &id).await?;
    // Also a destroyed one: its parties see the remaining data.
    let envelope = envelopes::get_with_destroyed(&mut connection, &org, &id).await?;
    let envelope = envelope.ok_or_else(unknown)?;
    let control = rows::of_envelope(&mut connection, &envelope).await?;
    let mut names = PartyNames::default();
    record_view(&mut connection, &mut names, &envelope, &control).await
}

/// Returns the originator of a record, if the caller's organization is another party of it; otherwise the
/// caller's own organization, which may have the envelope.
pub(crate) async fn originator(
    connection: &mut SqlConnection,
    caller: &Caller,
    id: &EnvelopeId,
) -> Result<OrgId, StoreError> {
    let record = rows::of_party(connection, &caller.org, id).await?;
    Ok(record.map_or_else(|| caller.org.clone(), |record| record.org))
}

/// Returns the envelope of a record in which the caller's organization has a part.
pub(crate) async fn envelope_of(
    core: &Core,
    caller: &Caller,
    id: &EnvelopeId,
) -> Result<Envelope, ServiceError> {
    let mut connection = core.store.read().await?;
    let org = originator(&mut connection, caller, id).await?;
    let envelope = envelopes::get(&mut connection, &org, id).await?;
    envelope.ok_or(ServiceError::NotFound("Record"))
}

/// Locks a record in which the caller's organization has a part.
pub(crate) async fn lock(
    tx: &mut WriteTransaction,
    caller: &Caller,
    id: &str,
) -> Result<LockedRecord, ServiceError> {
    let unknown = || ServiceError::NotFound("Record");
    let id = EnvelopeId::parse(id).ok_or_else(unknown)?;
    let org = originator(tx, caller, &id).await?;
    // The envelope's row is the lock of all acts, because a record without an act has no row of its own.
    let envelope = envelopes::lock(tx, &org, &id).await?.ok_or_else(unknown)?;

    // Only under the lock: the caller may have lost its part in the meantime.
    let control = rows::of_envelope(tx, &envelope).await?;
    if control.parties().contains(&&caller.org) {
        Ok(LockedRecord { envelope, control })
    } else {
        Err(unknown())
    }
}

/// Asks the rules whether an act is allowed now. Those of the controller's organization decide, and the
/// built-in ones: an originator's own rules must not bind the party that bought its record.
pub(crate) async fn permit(
    core: &Core,
    connection: &mut SqlConnection,
    envelope: &Envelope,
    control: &ControlRecord,
    request: Request<'_>,
) -> Result<PermittedAct, ServiceError> {
    let parts = |party: &OrgId| parts(control, party);
    let facts = ControlFacts {
        stage: stage(control.stage),
        actor: match request.actor {
            Actor::Party(party) => parts(party),
            Actor::Viewer => vec![Party::Viewer],
            Actor::Host => vec![Party::Host],
        },
        named: request.named.map(parts).unwrap_or_default(),
        // UCC §9-105(b)(1) is about a single copy in the vault; a record outside it does not change hands.
        is_vaulted: envelope.record.authoritative.live().is_some(),
        obstacles: obstacles(connection, envelope).await?,
        is_expired: request.is_expired,
        release_requested: request.answers_release.unwrap_or(control.release.is_some()),
        pledges: u32::from(control.pledge.is_some()),
        consents: request.consents,
        attributes: Vec::new(),
    };

    let rules = core.components.control(Some(&control.controller));
    // The caller holds the envelope's lock. An organization's own rules therefore fail as busy when their
    // time slice is used up, instead of making the lock wait.
    let decided = rules.decide_for_change(request.act, &facts).await;
    let (org, record) = (&control.controller, envelope.id.as_str());
    // Refused acts are compared, too: a candidate may allow them.
    core.shadows.offer(Slot::Control, org, record, || {
        let question = RulesQuestion::Act {
            act: request.act,
            facts: Box::new(facts.clone()),
        };
        (question, questions::decision_answer(request.act, &decided))
    });

    match decided? {
        Decision::Allowed => Ok(PermittedAct(ControlDecision {
            id: DecisionId::new(),
            envelope: envelope.id.clone(),
            controller: control.controller.clone(),
            act: match json!(request.act) {
                Value::String(name) => name,
                other => other.to_string(),
            },
            facts: json!(facts),
            component: json!(rules.identity()?),
        })),
        // A pledgee cannot agree to a single act. It releases its pledge instead, so no release request waits
        // for it.
        Decision::ConsentNeeded(parties) if parties == [Party::Pledgee] => {
            Err(ControlProblem::Pledged.into())
        }
        Decision::ConsentNeeded(_) => {
            Err(ControlProblem::ConsentRequired(control.release.clone()).into())
        }
        Decision::Refused(refusal) => Err(ControlProblem::Refused(refusal).into()),
    }
}

pub(crate) fn stage(stage: ControlStage) -> Stage {
    match stage {
        ControlStage::Originated => Stage::Originated,
        ControlStage::Designated => Stage::Designated,
        ControlStage::Controlled => Stage::Controlled,
        ControlStage::Proposed => Stage::Proposed,
        ControlStage::Accepted => Stage::Accepted,
        ControlStage::Released => Stage::Released,
    }
}

/// Returns the parts that a party has in a record.
pub(crate) fn parts(control: &ControlRecord, party: &OrgId) -> Vec<Party> {
    let mut parts = Vec::new();
    if control.org == *party {
        parts.push(Party::Originator);
    }

    if control.controller == *party {
        parts.push(Party::Controller);
    }

    if control.named.as_ref() == Some(party) {
        // One column names the party for both. The stage distinguishes an offer from a designation.
        parts.push(match control.stage {
            ControlStage::Proposed | ControlStage::Accepted => Party::Buyer,
            _ => Party::Designee,
        });
    }

    if control.pledgee() == Some(party) {
        parts.push(Party::Pledgee);
    }

    parts
}

/// Returns what keeps a record from changing hands.
pub(crate) async fn obstacles(
    connection: &mut SqlConnection,
    envelope: &Envelope,
) -> Result<Vec<Obstacle>, StoreError> {
    let mut obstacles = Vec::new();
    if envelope.payment == Some(PaymentStatus::RequiresPayment) {
        obstacles.push(Obstacle::Unpaid);
    }

    // A finished envelope has no open questions, so it costs no read here.
    if envelope.status.is_unfinished() {
        let signers = signers::list(connection, &envelope.org, &envelope.id).await?;
        let open = |status| status != SignerStatus::Completed;
        if signers
            .iter()
            .any(|signer| signer.challenged && open(signer.status))
        {
            obstacles.push(Obstacle::IdentityOpen);
        }
    }

    // Damage that the last integrity check found: UCC §9-105(b)(1) asks for an unalterable copy.
    let checked = OwnedEnvelope {
        org: envelope.org.clone(),
        envelope: envelope.id.clone(),
    };
    if integrity::problems(connection, &checked).await?.is_some() {
        obstacles.push(Obstacle::Held);
    }

    Ok(obstacles)
}

/// An act that was permitted, as it is recorded.
pub(crate) struct ActDone<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) event: EventType,
    /// Members of the ledger entry and the events, beside those of [`ControlView`].
    pub(crate) details: Value,
    /// The party's signed statement.
    pub(crate) signed: Option<Value>,
    /// Whether the parties get an event of this record; those of a transfer get one of all its records.
    pub(crate) emits: bool,
}

impl<'a> ActDone<'a> {
    pub(crate) fn new(caller: &'a Caller, event: EventType, details: Value) -> Self {
        Self {
            caller,
            event,
            details,
            signed: None,
            emits: true,
        }
    }
}

/// Stores the next state of a record with its decision, ledger entry and events.
pub(crate) async fn settle(
    core: &Core,
    tx: &mut WriteTransaction,
    names: &mut PartyNames,
    record: &LockedRecord,
    next: ControlRecord,
    permitted: Option<&PermittedAct>,
    done: ActDone<'_>,
) -> Result<ControlRecord, ServiceError> {
    let LockedRecord { envelope, control } = record;
    let now = core.clock.now();

    // Before the first change, because a transfer continues with its other records in this transaction.
    let passes = next.controller != control.controller;
    let is_offered = next.named.is_some() && next.named != control.named;
    if passes || is_offered {
        let asking = Some(&done.caller.org);
        legal_holds::permit_controlled(tx, asking, envelope, control).await?;
    }
    double_pledge::check(core, tx, envelope, control, &next).await?;
    let next = ControlRecord {
        controlled_since: if passes { now } else { next.controlled_since },
        ..next
    };

    let next = rows::put(tx, &next, now).await?;
    if passes {
        // Links to the authoritative copy were issued on the word of the previous controller.
        let (org, id) = (&envelope.org, &envelope.id);
        downloads::expire(tx, org, id, LinkedFile::Authoritative, now).await?;

        // A party that has control has sold nothing any more.
        transfers_rows::bought_back(tx, &next).await?;

        // The certificate of before speaks of another controller.
        let job = CertifyAnew {
            envelope: envelope.id.clone(),
        };
        let key = format!("{}:{}", envelope.id, next.epoch);
        jobs::insert(tx, &envelope.org, &job, Some(&key), now).await?;
    }

    let view = control_view(names, tx, &next).await?;
    let mut data = json!(view);
    if let (Value::Object(data), Value::Object(details)) = (&mut data, done.details) {
        data.extend(details);
    }

    // Signature and component are evidence. They go to the ledger, and not to webhooks.
    let mut entry = data.clone();
    entry["party"] = json!(names.party(tx, &done.caller.org).await?);
    if let Some(signed) = done.signed {
        entry["signed"] = signed;
    }

    if let Some(PermittedAct(decision)) = permitted {
        entry["rules_component"] = decision.component.clone();
        rows::insert_decision(tx, &envelope.org, decision, now).await?;
    }

    // Acts of a transfer are not listed: the end of its step queues the comparison of all its records.
    let compared = [
        EventType::ControlDesignated,
        EventType::ControlAccepted,
        EventType::ControlPledged,
    ];
    if compared.contains(&done.event) {
        similar::queue(tx, &next, now).await?;
    }
    // The result is a warning: it refuses no act between the parties.
    if passes || done.event == EventType::ControlPledged {
        funding::queue(tx, envelope, FundingStage::Transfer, now).await?;
    }

    let action = done.event.as_str();
    events::record(tx, envelope, &done.caller.actor, action, entry, now).await?;
    if !done.emits {
        return Ok(next);
    }

    // One that left the record learns of it, too.
    let mut parties = control.parties();
    parties.extend(next.parties());
    emit_to_all(tx, envelope, parties, done.event, &data, now).await?;

    Ok(next)
}

/// Writes an event about a record to the outboxes of its parties.
pub(crate) async fn emit_to_all(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    mut parties: Vec<&OrgId>,
    event: EventType,
    data: &Value,
    now: Timestamp,
) -> Result<(), StoreError> {
    // The originator's event also has its own references to the envelope, which other parties must not see.
    events::emit(tx, envelope, event, data.clone(), now).await?;
    // Most parties take part before and after the act, and get one event all the same.
    parties.sort_unstable();
    parties.dedup();
    for party in parties.into_iter().filter(|party| **party != envelope.org) {
        events::emit_to_party(tx, envelope, party, event, data, now).await?;
    }
    Ok(())
}

/// Returns the statement about an act with a record, for a party that signs.
pub(crate) fn statement<'a>(
    record: &'a LockedRecord,
    caller: &'a Caller,
    act: EventType,
    content: Value,
) -> ExpectedStatement<'a> {
    ExpectedStatement {
        act,
        party: &caller.org,
        subject: record.envelope.id.as_str(),
        epoch: Some(record.control.epoch),
        content,
    }
}

pub(crate) async fn record_view(
    connection: &mut SqlConnection,
    names: &mut PartyNames,
    envelope: &Envelope,
    control: &ControlRecord,
) -> Result<RecordView, ServiceError> {
    // A release that ended stays in its table, but the record names only the open or the agreed one.
    let release = match &control.release {
        Some(release) => rows::release(connection, release).await?,
        None => None,
    };
    let file = envelope.record.authoritative.file();
    let present = file.map(|file| file.sha256.clone());
    // Of a destroyed record, the hash stays.
    let destroyed = envelope
        .destruction
        .and(envelope.record.document_hash.clone());
    Ok(RecordView {
        envelope_id: envelope.id.clone(),
        name: envelope.name.clone(),
        status: envelope.status,
        destruction: envelope.destruction,
        document_hash: present.or(destroyed),
        compliance_score: envelope.record.compliance_score,
        chattel_paper_jurisdiction: envelope.jurisdiction().map(str::to_owned),
        metadata: envelope.own_metadata().cloned().unwrap_or_default(),
        control: control_view(names, connection, control).await?,
        changed_at: control.changed_at,
        controlled_since: control.controlled_since,
        release: release.as_ref().map(ReleaseRequestView::from),
        transfer_id: control.transfer.clone(),
        pledge_id: control.pledge.as_ref().map(|pledge| pledge.id.clone()),
    })
}

/// Refuses to show a record that is not in the vault yet.
pub(crate) fn not_vaulted() -> ServiceError {
    let message = "No copy of the record is in the vault";
    ControlProblem::refused(RefusalReason::NotVaulted, message).into()
}

/// Refuses an act that comes too early or too late.
pub(crate) fn out_of_order(message: &str) -> ServiceError {
    ControlProblem::refused(RefusalReason::OutOfOrder, message).into()
}
