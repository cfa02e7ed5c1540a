//! Pledges: a controller gives a record as security, and keeps control.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::acts::known_party;
use super::statements::{self, SignedForm};
use super::{
    ActDone, PartyNames, PartyView, RecordView, Request, double_pledge, lock, permit, settle,
    statement,
};
use holdfast_base::faults;
use holdfast_components::rules::control::Act;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::control::{ControlRecord, LivePledge, Pledge};
use holdfast_domain::event::EventType;
use holdfast_domain::id::{EnvelopeId, PledgeId};
use holdfast_domain::statement::SignedStatement;
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::{StoreError, WriteTransaction, control as rows};

/// Body of `POST /partner/control/pledges`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "pledgee": "org_01jdk7m3e8f4x9s2w5v6b0c1db",
    "terms": "Warehouse line 12",
}]))]
pub struct PledgeForm {
    pub envelope_id: String,
    /// Organization that gets the pledge.
    pub pledgee: String,
    #[schemars(length(max = 10000))]
    pub terms: Option<String>,
    /// Your statement about this act, if your organization has registered a key.
    pub signed: Option<SignedStatement>,
}

/// A pledge, as in answers and events.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "pledge_id": "plg_01jdk7m3e8f4x9s2w5v6b0c1dc", "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc",
    "pledgor": { "organization_id": "org_01jdk7m3e8f4x9s2w5v6b0c1da", "name": "First Example Bank" },
    "pledgee": { "organization_id": "org_01jdk7m3e8f4x9s2w5v6b0c1db", "name": "Example Funding" },
    "terms": "Warehouse line 12", "created_at": "2026-11-21T09:45:00.000Z", "released_at": null,
}]))]
pub struct PledgeView {
    pub pledge_id: PledgeId,
    pub envelope_id: EnvelopeId,
    pub pledgor: PartyView,
    pub pledgee: PartyView,
    pub terms: Option<String>,
    pub created_at: Timestamp,
    pub released_at: Option<Timestamp>,
}

/// Pledges a record as its controller.
pub async fn pledge(
    core: &Core,
    caller: &Caller,
    form: PledgeForm,
    answer: &ResponseRecorder<PledgeView>,
) -> Result<PledgeView, ServiceError> {
    let pledgee = known_party(core, caller, "pledgee", &form.pledgee).await?;
    let mut tx = core.store.begin().await?;
    let record = lock(&mut tx, caller, &form.envelope_id).await?;
    let ask = Request {
        named: Some(&pledgee),
        ..Request::of(Act::Pledge, caller)
    };
    let permitted = permit(core, &mut tx, &record.envelope, &record.control, ask).await?;

    // With the hash, the controller signs which document it pledges, and not only which record.
    let file = record.envelope.record.authoritative.file();
    let content = json!({
        "pledgee": pledgee, "terms": form.terms, "document_hash": file.map(|file| &file.sha256),
    });
    let expected = statement(&record, caller, EventType::ControlPledged, content);
    let signed = statements::require(core, &mut tx, &expected, form.signed.as_ref()).await?;
    let pledge = Pledge {
        id: PledgeId::new(),
        org: record.envelope.org.clone(),
        envelope: record.envelope.id.clone(),
        pledgor: caller.org.clone(),
        pledgee,
        terms: form.terms,
        created_at: core.clock.now(),
        released_at: None,
    };

    rows::insert_pledge(&mut tx, &pledge).await?;
    // In the record's row: an act that would take the record away sees the pledge in its own transaction.
    let next = ControlRecord {
        pledge: Some(LivePledge {
            id: pledge.id.clone(),
            pledgee: pledge.pledgee.clone(),
        }),
        ..record.control.clone()
    };

    let mut names = PartyNames::default();
    let view = view(&mut tx, &mut names, &pledge).await?;
    let done = ActDone {
        signed,
        ..ActDone::new(caller, EventType::ControlPledged, json!({ "pledge": view }))
    };
    let settled = settle(
        core,
        &mut tx,
        &mut names,
        &record,
        next,
        Some(&permitted),
        done,
    );

    if let Err(error) = settled.await {
        // The report locks both envelopes in a transaction of its own, which would wait for this one.
        drop(tx);
        return Err(double_pledge::reported(core, error).await);
    }

    answer.commit(tx, &view).await?;
    faults::pass("pledged");
    Ok(view)
}

/// Returns the record of a pledge, for its parties.
pub async fn record(core: &Core, caller: &Caller, id: &str) -> Result<RecordView, ServiceError> {
    let unknown = || ServiceError::NotFound("Pledge");
    let id = PledgeId::parse(id).ok_or_else(unknown)?;
    let mut connection = core.store.read().await?;
    let pledge = rows::pledge(&mut connection, &id).await?;
    drop(connection);

    let pledge = pledge.filter(|pledge| [&pledge.pledgor, &pledge.pledgee].contains(&&caller.org));
    let pledge = pledge.ok_or_else(unknown)?;
    super::get(core, caller, pledge.envelope.as_str()).await
}

/// Gives up a pledge as its pledgee.
pub async fn release(
    core: &Core,
    caller: &Caller,
    id: &str,
    form: SignedForm,
    answer: &ResponseRecorder<PledgeView>,
) -> Result<PledgeView, ServiceError> {
    let unknown = || ServiceError::NotFound("Pledge");
    let id = PledgeId::parse(id).ok_or_else(unknown)?;
    let mut tx = core.store.begin().await?;
    let pledge = rows::pledge(&mut tx, &id).await?;
    // The pledgor gets further, too: the rules then answer that only the pledgee releases the pledge.
    let pledge = pledge.filter(|pledge| [&pledge.pledgor, &pledge.pledgee].contains(&&caller.org));
    let pledge = pledge.ok_or_else(unknown)?;
    if pledge.released_at.is_some() {
        return Err(super::out_of_order("The pledge was released"));
    }

    let record = lock(&mut tx, caller, pledge.envelope.as_str()).await?;
    let ask = Request::of(Act::ReleasePledge, caller);
    let permitted = permit(core, &mut tx, &record.envelope, &record.control, ask).await?;
    let event = EventType::ControlPledgeReleased;
    let expected = statement(&record, caller, event, json!({ "pledge_id": pledge.id }));
    let signed = statements::require(core, &mut tx, &expected, form.signed.as_ref()).await?;
    let now = core.clock.now();
    // Of two releases at the same moment, the second one fails here: the check above was without a lock.
    rows::end_pledge(&mut tx, &pledge, now).await?;

    let pledge = Pledge {
        released_at: Some(now),
        ..pledge
    };
    let next = ControlRecord {
        pledge: None,
        ..record.control.clone()
    };

    let mut names = PartyNames::default();
    let view = view(&mut tx, &mut names, &pledge).await?;
    let done = ActDone {
        signed,
        ..ActDone::new(caller, event, json!({ "pledge": view }))
    };
    settle(
        core,
        &mut tx,
        &mut names,
        &record,
        next,
        Some(&permitted),
        done,
    )
    .await?;

    answer.commit(tx, &view).await?;
    faults::pass("pledged");
    Ok(view)
}

pub(crate) async fn view(
    tx: &mut WriteTransaction,
    names: &mut PartyNames,
    pledge: &Pledge,
) -> Result<PledgeView, StoreError> {
    Ok(PledgeView {
        pledge_id: pledge.id.clone(),
        envelope_id: pledge.envelope.clone(),
        pledgor: names.party(tx, &pledge.pledgor).await?,
        pledgee: names.party(tx, &pledge.pledgee).await?,
        terms: pledge.terms.clone(),
        created_at: pledge.created_at,
        released_at: pledge.released_at,
    })
}
