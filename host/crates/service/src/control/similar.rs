//! Records with similar documents, such as scans and reprints of one contract. They are reported and never
//! refused by themselves.

use holdfast_store::SqlConnection;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::transfers::unknown;
use super::{PartyNames, control_view, double_pledge, emit_to_all};
use holdfast_base::fair_queue::WorkOwner;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::control::{ControlRecord, ControlStage};
use holdfast_domain::envelope::Envelope;
use holdfast_domain::event::EventType;
use holdfast_domain::id::{DisputeId, EnvelopeId, TransferId};
use holdfast_domain::job::CompareRecords;
use holdfast_domain::similarity::{self, Signature};
use holdfast_domain::transfer::RecordState;
use holdfast_platform::documents::admit;
use holdfast_platform::events;
use holdfast_platform::{Core, ServiceError};
use holdfast_store::row::OwnedEnvelope;
use holdfast_store::similarity::{self as rows, Candidate, FoundSimilar};
use holdfast_store::{StoreError, WriteTransaction, control, envelopes, jobs, transfers};

/// Comparisons that one transaction queues.
const QUEUED: usize = 500;

/// A similar record under another controller, which is not named.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SimilarView {
    /// Reference that both sides can take to a dispute.
    pub reference: DisputeId,
    /// Part of the words with digits that both documents share, 0.6 to 1; an estimate.
    pub similarity: f64,
    /// Since when the other party has control, a pledge, or an offer.
    pub since: Timestamp,
}

impl From<&FoundSimilar> for SimilarView {
    fn from(found: &FoundSimilar) -> Self {
        Self {
            reference: found.reference.clone(),
            similarity: similarity_of(found.percent),
            since: found.since,
        }
    }
}

/// Queues the comparison of a record that was offered, passed on or pledged.
pub(crate) async fn queue(
    tx: &mut WriteTransaction,
    record: &ControlRecord,
    now: Timestamp,
) -> Result<(), StoreError> {
    let job = CompareRecords {
        record: Some(record.envelope.clone()),
        transfer: None,
    };
    // With the epoch: a comparison that runs for an earlier act would otherwise swallow this one.
    let key = format!("{}:{}", record.envelope, record.epoch);
    jobs::insert(tx, &record.org, &job, Some(&key), now).await
}

/// Compares a record with those of other parties, or queues this for each record of a transfer. May run
/// twice.
pub async fn compare(core: &Core, job: &CompareRecords) -> Result<(), ServiceError> {
    if let Some(record) = &job.record {
        compare_one(core, record).await?;
    }
    if let Some(transfer) = &job.transfer {
        queue_records(core, transfer).await?;
    }
    Ok(())
}

async fn queue_records(core: &Core, id: &TransferId) -> Result<(), ServiceError> {
    let mut connection = core.store.read().await?;
    let transfer = transfers::get(&mut connection, id).await?;
    let transfer = transfer.ok_or_else(unknown)?;
    let states = [
        RecordState::Proposed,
        RecordState::Accepted,
        RecordState::Confirmed,
    ];
    let records = transfers::records(&mut connection, &transfer, &states, None, i64::MAX).await?;

    drop(connection);
    // In pieces, so that other writers of SQLite get their turn in between.
    for records in records.chunks(QUEUED) {
        let mut tx = core.store.begin().await?;
        for record in records {
            let job = CompareRecords {
                record: Some(record.envelope.clone()),
                transfer: None,
            };
            let key = format!("{}:{id}:{}", record.envelope, transfer.state);
            jobs::insert(
                &mut tx,
                &transfer.seller,
                &job,
                Some(&key),
                core.clock.now(),
            )
            .await?;
        }

        tx.commit().await?;
    }

    Ok(())
}

async fn compare_one(core: &Core, id: &EnvelopeId) -> Result<(), ServiceError> {
    let mut connection = core.store.read().await?;
    let Some(record) = control::of_record(&mut connection, id).await? else {
        return Ok(());
    };

    let envelope = envelopes::get_with_destroyed(&mut connection, &record.org, id).await?;
    // A release ends the comparison, and so does a destruction.
    let is_open = |envelope: &Envelope| {
        record.stage != ControlStage::Released && envelope.destruction.is_none()
    };
    let Some(envelope) = envelope.filter(is_open) else {
        return Ok(());
    };

    let known = rows::signature(&mut connection, &envelope).await?;
    drop(connection);
    // Reported by this job, which a crash repeats, because the act itself has committed already.
    double_pledge::report_outranked(core, &envelope, &record).await?;
    let signature = match known {
        Some(known) => known,
        None => computed(core, &envelope).await?,
    };
    let Some(signature) = signature else {
        return Ok(());
    };

    let mut connection = core.store.read().await?;
    let candidates = rows::candidates(&mut connection, &record).await?;
    drop(connection);
    let compared = candidates.into_iter();
    let mut near: Vec<(f64, Candidate)> = compared
        .map(|other| (signature.similarity(&other.signature), other))
        .collect();
    near.sort_by(|one, other| other.0.total_cmp(&one.0));

    let similarities: Vec<f64> = near.iter().map(|(similarity, _)| *similarity).collect();
    for (similarity, other) in near.iter().take(similarity::reported(&similarities)) {
        report(core, &record, other, *similarity).await?;
    }

    Ok(())
}

/// Computes the signature of a record's document in the sandbox, and stores it.
async fn computed(core: &Core, envelope: &Envelope) -> Result<Option<Signature>, ServiceError> {
    let Some(copy) = &envelope.record.copy else {
        return Ok(None);
    };

    let owner = WorkOwner::new(&envelope.org, envelope.id.as_str());
    let _room = admit(core, &owner, copy.size.unsigned_abs()).await?;
    let pdf = core.files.get(copy).await?;
    // Signatures are compared over all organizations, so one reader makes all of them.
    let reader = core
        .components
        .embedded_placement(&envelope.org, core.store.priority())
        .for_owner(owner);

    // Keyed by the host: the component has no secret, and the table alone reveals nothing about a document.
    let key = double_pledge::key(core)?;
    let values = match reader.signature(pdf).await {
        Ok(Ok(values)) => values,
        // Such a document is not comparable, at any later time either.
        Ok(Err(_)) => None,
        Err(error) if error.by_document => None,
        Err(error) => return Err(error.into()),
    };
    let signature = values.and_then(|values| Signature::keyed(key, &values));

    // An absent signature is stored as well, so that the document is not read again.
    let mut tx = core.store.begin().await?;
    rows::insert(&mut tx, envelope, signature.as_ref()).await?;
    tx.commit().await?;

    Ok(signature)
}

/// Records a similar pair in the ledgers of both records and emits events to their parties, once.
async fn report(
    core: &Core,
    record: &ControlRecord,
    other: &Candidate,
    similarity: f64,
) -> Result<(), ServiceError> {
    let now = core.clock.now();
    #[expect(clippy::cast_possible_truncation, reason = "0 to 100")]
    let percent = (similarity * 100.0).round() as i64;
    let reference = DisputeId::new();
    let mut tx = core.store.begin().await?;
    let own = OwnedEnvelope {
        org: record.org.clone(),
        envelope: record.envelope.clone(),
    };

    let since = since(&mut tx, record).await?;

    // In a fixed order, so that two reports of the same pair do not wait for each other forever.
    let mut pair = [
        (&own, &other.record, other.since),
        (&other.record, &own, since),
    ];
    pair.sort_by(|(one, ..), (next, ..)| one.envelope.as_str().cmp(next.envelope.as_str()));

    let mut names = PartyNames::default();
    for (one, similar, since) in pair {
        let envelope = envelopes::lock_with_destroyed(&mut tx, &one.org, &one.envelope).await?;
        let whole = envelope.filter(|envelope| envelope.destruction.is_none());
        let Some(envelope) = whole else {
            return Ok(());
        };

        let found = FoundSimilar {
            reference: reference.clone(),
            percent,
            since,
        };
        // An earlier run has reported the pair; nothing of this transaction stays.
        if !rows::found(&mut tx, one, &similar.envelope, &found).await? {
            return Ok(());
        }

        let control = control::of_envelope(&mut tx, &envelope).await?;
        let mut data = json!(control_view(&mut names, &mut tx, &control).await?);
        data["reference"] = json!(reference);
        data["similarity"] = json!(similarity_of(percent));
        data["since"] = json!(since);
        let event = EventType::ControlSimilar;
        events::record(
            &mut tx,
            &envelope,
            "system",
            event.as_str(),
            data.clone(),
            now,
        )
        .await?;

        emit_to_all(&mut tx, &envelope, control.parties(), event, &data, now).await?;
    }

    tx.commit().await?;
    Ok(())
}

/// Returns since when another party than the originator has a pledge or control of a record, or an offer.
async fn since(
    connection: &mut SqlConnection,
    record: &ControlRecord,
) -> Result<Timestamp, StoreError> {
    let pledge = match &record.pledge {
        Some(live) => control::pledge(connection, &live.id).await?,
        None => None,
    };
    Ok(match pledge {
        Some(pledge) => pledge.created_at,
        None if record.controller != record.org => record.controlled_since,
        None => record.changed_at,
    })
}

fn similarity_of(percent: i64) -> f64 {
    i32::try_from(percent).map_or(0.0, f64::from) / 100.0
}
