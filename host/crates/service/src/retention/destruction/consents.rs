//! Consent of the party that controls a record to its destruction.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{UNKNOWN, step};
use crate::control::{PartyNames, PartyView};
use holdfast_components::rules::control::RefusalReason;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::destruction::{DestructionRecord, DestructionRecordState};
use holdfast_domain::id::{DestructionId, EnvelopeId};
use holdfast_platform::access::credentials;
use holdfast_platform::permits::legal_holds;
use holdfast_platform::problems::ControlProblem;
use holdfast_platform::{Caller, Core, ServiceError, events};
use holdfast_store::{
    SqlConnection, StoreError, WriteTransaction, control, destructions as rows, envelopes,
};

/// Records of requests that a list shows at most.
const MOST: i64 = 1_000;

/// A request of another organization to destroy records that yours controls.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "destruction_id": "dst_01jdk7m3e8f4x9s2w5v6b0c1dc",
    "originator": { "organization_id": "org_01jdk7m3e8f4x9s2w5v6b0c1da", "name": "Maple Motors" },
    "records": [{ "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "state": "waiting", "consented_at": null }],
}]))]
pub struct AskedDestruction {
    /// Id of the request.
    pub destruction_id: DestructionId,
    /// Organization that made it.
    pub originator: PartyView,
    /// The records that your organization controls, or controlled when it was made.
    pub records: Vec<AskedRecord>,
}

/// A record in a request for destruction.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AskedRecord {
    /// Id of the envelope.
    pub envelope_id: EnvelopeId,
    /// State of the record.
    pub state: DestructionRecordState,
    /// When your organization consented.
    pub consented_at: Option<Timestamp>,
}

impl From<&DestructionRecord> for AskedRecord {
    fn from(record: &DestructionRecord) -> Self {
        Self {
            envelope_id: record.envelope.clone(),
            state: record.state(),
            consented_at: record.consented.as_ref().map(|step| step.at),
        }
    }
}

/// Lists the requests with records that the caller's organization controls, newest first.
pub async fn list(core: &Core, caller: &Caller) -> Result<Vec<AskedDestruction>, ServiceError> {
    let mut connection = core.store.read().await?;
    let records = rows::controlled_by(&mut connection, &caller.org, None, MOST).await?;
    Ok(views(&mut connection, &records).await?)
}

/// Returns records by their requests, newest first.
async fn views(
    connection: &mut SqlConnection,
    records: &[DestructionRecord],
) -> Result<Vec<AskedDestruction>, StoreError> {
    let mut names = PartyNames::default();
    let mut requests: BTreeMap<String, AskedDestruction> = BTreeMap::new();
    for record in records {
        let id = record.destruction.to_string();
        if let Some(request) = requests.get_mut(&id) {
            request.records.push(record.into());
            continue;
        }
        let request = AskedDestruction {
            destruction_id: record.destruction.clone(),
            originator: names.party(connection, &record.org).await?,
            records: vec![record.into()],
        };
        requests.insert(id, request);
    }
    Ok(requests.into_values().rev().collect())
}

/// Consents to the destruction of all records of a request that the caller's organization controls, or takes the consent
/// back. From the beginning of the destruction of a record on, neither is possible.
///
/// # Errors
/// `NotFound` for a request without such a record, `Control` for a record under a legal hold, or one that another party
/// controls now.
pub async fn answer(
    core: &Core,
    caller: &Caller,
    id: &str,
    consents: bool,
) -> Result<AskedDestruction, ServiceError> {
    let id = DestructionId::parse(id).ok_or(UNKNOWN)?;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let mut records = rows::controlled_by(&mut tx, &caller.org, Some(&id), MOST).await?;
    let given = step(&mut tx, caller, None, now).await?;

    // In the order of their ids, so that two answers do not wait for each other forever.
    for record in &mut records {
        let waits = record.state() == DestructionRecordState::Waiting;
        if !waits || record.consented.is_some() == consents {
            continue;
        }
        record.consented = consents.then(|| given.clone());
        settle(&mut tx, caller, record, &given.actor(), now).await?;
    }

    let view = views(&mut tx, &records).await?.pop().ok_or(UNKNOWN)?;
    let action = if consents {
        "destruction.consented"
    } else {
        "destruction.consent_withdrawn"
    };
    let org = Some(&caller.org);
    credentials::record_by(&mut tx, org, &caller.actor, action, json!(view), now).await?;
    tx.commit().await?;
    Ok(view)
}

/// Writes the answer about one record, with its entry of the ledger.
async fn settle(
    tx: &mut WriteTransaction,
    caller: &Caller,
    record: &DestructionRecord,
    actor: &str,
    now: Timestamp,
) -> Result<(), ServiceError> {
    let envelope = envelopes::lock(tx, &record.org, &record.envelope).await?;
    let envelope = envelope.ok_or(UNKNOWN)?;
    let present = control::of_envelope(tx, &envelope).await?;
    if present.controller != caller.org {
        let why = "Only the party that controls a record consents to its destruction";
        return Err(ControlProblem::refused(RefusalReason::WrongParty, why).into());
    }

    let action = if record.consented.is_some() {
        legal_holds::permit_controlled(tx, Some(&caller.org), &envelope, &present).await?;
        "record.destruction_consented"
    } else {
        "record.destruction_consent_withdrawn"
    };
    rows::consent(tx, record).await?;
    let party = PartyNames::default().party(tx, &caller.org).await?;
    let details = json!({ "destruction_id": record.destruction, "party": party });
    events::record(tx, &envelope, actor, action, details, now).await?;
    Ok(())
}
