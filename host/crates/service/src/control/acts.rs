//! Designation of a controller, and the designee's answer.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::statements::{self, SignedForm};
use super::{
    ActDone, PartyNames, ReasonForm, RecordView, Request, double_pledge, envelope_of, lock, permit,
    record_view, settle, statement,
};
use holdfast_components::rules::control::Act;
use holdfast_domain::control::ControlRecord;
use holdfast_domain::event::EventType;
use holdfast_domain::id::{EnvelopeId, OrgId};
use holdfast_domain::statement::SignedStatement;
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::organizations;

/// Body of `POST /partner/control/records/{id}/designate`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "controller": "org_01jdk7m3e8f4x9s2w5v6b0c1db" }]))]
pub struct DesignateForm {
    /// Organization that shall get control.
    pub controller: String,
    /// Your statement about this act, if your organization has registered a key.
    pub signed: Option<SignedStatement>,
}

/// Names the organization that shall control a record. It has no effect until that organization
/// accepts.
pub async fn designate(
    core: &Core,
    caller: &Caller,
    id: &str,
    form: DesignateForm,
    answer: &ResponseRecorder<RecordView>,
) -> Result<RecordView, ServiceError> {
    // An unknown record is answered before an unknown party.
    let envelope = EnvelopeId::parse(id).ok_or(ServiceError::NotFound("Record"))?;
    envelope_of(core, caller, &envelope).await?;
    let to = known_party(core, caller, "controller", &form.controller).await?;
    let ask = Request {
        named: Some(&to),
        ..Request::of(Act::Designate, caller)
    };

    let act = PerformedAct {
        ask,
        next: |control: ControlRecord| control.designated(to.clone()),
        done: ActDone::new(caller, EventType::ControlDesignated, json!({})),
        content: json!({ "controller": to }),
        signed: form.signed.as_ref(),
    };
    perform(core, id, act, answer).await
}

/// Parses the organization that a member of a request names.
pub(crate) async fn known_party(
    core: &Core,
    caller: &Caller,
    member: &str,
    given: &str,
) -> Result<OrgId, ServiceError> {
    let mut connection = core.store.read().await?;
    // Test data has no other parties: neither live organizations nor the test data of others.
    if let Some(org) = OrgId::parse(given)
        && (org == caller.org || !org.is_test() && !caller.org.is_test())
        && organizations::get(&mut connection, &org).await?.is_some()
    {
        return Ok(org);
    }

    Err(unknown_party(member, given))
}

fn unknown_party(member: &str, given: &str) -> ServiceError {
    ServiceError::invalid(
        "unknown_party",
        &[member],
        "an organization of this installation",
        given,
        "No such organization; ask the party for the id of its organization",
    )
}

/// Takes control that the originator has offered.
pub async fn accept(
    core: &Core,
    caller: &Caller,
    id: &str,
    form: SignedForm,
    answer: &ResponseRecorder<RecordView>,
) -> Result<RecordView, ServiceError> {
    let act = PerformedAct {
        ask: Request::of(Act::Accept, caller),
        next: ControlRecord::passed_on,
        done: ActDone::new(caller, EventType::ControlAccepted, json!({})),
        content: json!({}),
        signed: form.signed.as_ref(),
    };
    perform(core, id, act, answer).await
}

/// Refuses the offered control, or withdraws the designation as the originator.
pub async fn decline(
    core: &Core,
    caller: &Caller,
    id: &str,
    form: ReasonForm,
    answer: &ResponseRecorder<RecordView>,
) -> Result<RecordView, ServiceError> {
    let reason = json!({ "reason": form.reason });
    let act = PerformedAct {
        ask: Request::of(Act::Decline, caller),
        next: ControlRecord::kept,
        done: ActDone::new(caller, EventType::ControlDeclined, reason.clone()),
        content: reason,
        signed: form.signed.as_ref(),
    };
    perform(core, id, act, answer).await
}

/// An act of a party, and the change that it makes.
struct PerformedAct<'a, F> {
    /// Question to the rules.
    ask: Request<'a>,
    /// Returns the control after the act.
    next: F,
    /// The entry of the ledger.
    done: ActDone<'a>,
    /// Particulars that a signed statement has to name.
    content: Value,
    /// The statement of a party that signs its acts.
    signed: Option<&'a SignedStatement>,
}

/// Asks for an act and makes its change.
async fn perform(
    core: &Core,
    id: &str,
    act: PerformedAct<'_, impl FnOnce(ControlRecord) -> ControlRecord>,
    answer: &ResponseRecorder<RecordView>,
) -> Result<RecordView, ServiceError> {
    let PerformedAct {
        ask,
        next,
        done,
        mut content,
        signed,
    } = act;
    let mut tx = core.store.begin().await?;
    let record = lock(&mut tx, done.caller, id).await?;
    let permitted = permit(core, &mut tx, &record.envelope, &record.control, ask).await?;
    // With the hash, the party signs which document it means, and not only which record.
    let file = record.envelope.record.authoritative.file();
    content["document_hash"] = json!(file.map(|file| &file.sha256));
    let expected = statement(&record, done.caller, done.event, content);
    let done = ActDone {
        signed: statements::require(core, &mut tx, &expected, signed).await?,
        ..done
    };

    let next = next(record.control.clone());
    let mut names = PartyNames::default();
    let settled = settle(
        core,
        &mut tx,
        &mut names,
        &record,
        next,
        Some(&permitted),
        done,
    );

    let next = match settled.await {
        Ok(next) => next,
        Err(error) => {
            // The report locks both envelopes in a transaction of its own, which would wait for this one.
            drop(tx);
            return Err(double_pledge::reported(core, error).await);
        }
    };
    let view = record_view(&mut tx, &mut names, &record.envelope, &next).await?;
    answer.commit(tx, &view).await?;

    Ok(view)
}
