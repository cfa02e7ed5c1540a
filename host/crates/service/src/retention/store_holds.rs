//! The object store's own hold (S3, Azure, Google). It follows the legal holds: a job for each of them walks over the records
//! that it covers, in slices, when it is placed, when it is lifted and once more after an hour, and every hour for
//! objects that were stored meanwhile.

use std::time::Duration;

use futures::future::join_all;

use holdfast_adapters::files::FilesError;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::hold::{HoldScope, LegalHold, StoreHold, StoreHoldWalk};
use holdfast_domain::id::{EnvelopeId, HoldId, OrgId};
use holdfast_domain::job::{FollowHold, NextStep};
use holdfast_platform::permits::legal_holds;
use holdfast_platform::{Core, ServiceError};
use holdfast_store::control::{self, ListedPart, RecordFilter};
use holdfast_store::row::OwnedEnvelope;
use holdfast_store::{
    SqlConnection, StoreError, WriteTransaction, chores, envelopes, jobs, legal_holds as rows,
};

/// Name of the chore that looks for new objects of held records.
const CHORE: &str = "store holds";
/// Interval of that chore.
const INTERVAL: Duration = Duration::from_secs(3600);
/// Age up to which changes are looked at again: a ledger entry has the time before its commit.
const OVERLAP: Duration = Duration::from_secs(3600);
/// Age up to which lifted holds are looked for that need their last walk.
const LIFTED: Duration = Duration::from_secs(7 * 86_400);
/// Records of one slice of a walk over all of them.
const SLICE: i64 = 48;
/// Records of one slice of a walk that passes over those to which nothing happened.
const SLICE_OF_CHANGES: i64 = 1_000;
/// Records that are worked on at once.
const AT_ONCE: usize = 8;

/// Queues the walk that makes the object store follow a hold, in the transaction that places or lifts it.
pub(super) async fn queue(
    core: &Core,
    tx: &mut WriteTransaction,
    hold: &LegalHold,
    now: Timestamp,
) -> Result<(), StoreError> {
    if !core.files.sets_holds() {
        return Ok(());
    }

    // A walk that is under way would end in the middle of a change, and its job with it.
    let key = hold.id.as_str();
    jobs::remove::<FollowHold>(tx, &hold.org, key).await?;
    let job = FollowHold {
        hold: hold.id.clone(),
    };
    jobs::insert(tx, &hold.org, &job, Some(key), now).await
}

/// Queues the walks of all holds in force once an hour. Objects that were stored since the last one get the hold then, also
/// those of records that were made or bought meanwhile. A lifted hold gets its last walk.
pub async fn queue_when_due(core: &Core) -> Result<(), ServiceError> {
    let now = core.clock.now();
    if !core.files.sets_holds() {
        return Ok(());
    }
    // Read first: a claim writes, and most rounds have nothing to claim.
    let is_due = chores::due(&core.store, CHORE).await?;
    if is_due.is_some_and(|at| at > now) {
        return Ok(());
    }
    let mut connection = core.store.read().await?;
    let mut holds = rows::in_force(&mut connection).await?;
    let lifted = rows::lifted_since(&mut connection, now - LIFTED).await?;
    drop(connection);
    holds.extend(lifted.into_iter().filter(|hold| needs_last_walk(hold, now)));
    let next = now + core.config.sweep_interval.unwrap_or(INTERVAL);
    if holds.is_empty() || !chores::claim(&core.store, CHORE, now, next).await? {
        return Ok(());
    }

    for hold in holds {
        let job = FollowHold {
            hold: hold.id.clone(),
        };
        let mut tx = core.store.begin().await?;
        // A walk that is under way continues.
        jobs::insert(&mut tx, &hold.org, &job, Some(hold.id.as_str()), now).await?;
        tx.commit().await?;
    }

    Ok(())
}

/// Whether a lifted hold needs another walk. While it was lifted, a worker may have been about to set the store's hold of a
/// record that the walk after the lift had passed; an hour later, none is.
fn needs_last_walk(hold: &LegalHold, now: Timestamp) -> bool {
    let Some((_, lifted_at)) = &hold.lifted else {
        return false;
    };
    let settled = *lifted_at + INTERVAL;
    let walked = hold.store.as_ref().and_then(|store| store.as_of);
    now >= settled && walked.is_none_or(|at| at < settled)
}

/// Walks over the next records of a hold. A repeat of a slice changes nothing.
pub async fn follow(core: &Core, org: &OrgId, id: &HoldId) -> Result<NextStep, ServiceError> {
    if !core.files.sets_holds() {
        return Ok(NextStep::Done);
    }
    let now = core.clock.now();
    let mut connection = core.store.read().await?;
    let Some(hold) = rows::get(&mut connection, org, id).await? else {
        return Ok(NextStep::Done);
    };

    let before = hold.store.clone().unwrap_or_default();
    let after = before.walk.as_ref().map(|walk| &walk.after);
    let since = since(&hold, &before);
    let limit = since.map_or(SLICE, |_| SLICE_OF_CHANGES);
    let slice = slice(core, &mut connection, &hold, after, limit).await?;
    let last = slice.last().map(|record| record.envelope.clone());
    let work = changed(&mut connection, slice, since).await?;
    drop(connection);

    let mut lacking = before.walk.as_ref().map_or(0, |walk| walk.lacking);
    for part in work.chunks(AT_ONCE) {
        let settled = join_all(part.iter().map(|record| settle(core, &hold, record))).await;
        for record in settled {
            lacking += record?;
        }
    }

    let began_at = before.walk.as_ref().map_or(now, |walk| walk.began_at);
    let step = if last.is_some() {
        NextStep::Again(now)
    } else if hold.lifted.is_some() && lacking > 0 {
        // The hourly walks are those of holds in force.
        NextStep::Again(now + INTERVAL)
    } else {
        NextStep::Done
    };
    let next = match last {
        Some(after) => StoreHold {
            walk: Some(StoreHoldWalk {
                began_at,
                after,
                lacking,
            }),
            ..before
        },
        None => StoreHold {
            walk: None,
            as_of: Some(began_at),
            lacking,
        },
    };

    let mut tx = core.store.begin().await?;
    match rows::set_store_hold(&mut tx, &hold, &next).await {
        // The hold was lifted meanwhile, with a job of its own, or another worker has walked on.
        Err(StoreError::Conflict) => return Ok(NextStep::Again(now + INTERVAL)),
        set => set?,
    }
    tx.commit().await?;

    Ok(step)
}

/// Returns the time since which records have to be looked at; none for all of them.
fn since(hold: &LegalHold, before: &StoreHold) -> Option<Timestamp> {
    let is_whole = hold.lifted.is_none() && before.lacking == 0;
    let as_of = before.as_of.filter(|_| is_whole)?;
    Some(as_of - OVERLAP)
}

/// Returns the records of a slice to which something happened since a time.
async fn changed(
    connection: &mut SqlConnection,
    slice: Vec<OwnedEnvelope>,
    since: Option<Timestamp>,
) -> Result<Vec<OwnedEnvelope>, StoreError> {
    let Some(since) = since else {
        return Ok(slice);
    };
    let mut changed = Vec::new();
    for record in slice {
        // Every object of a record is stored before an entry of its ledger, and so is every change of control.
        if rows::is_changed(connection, &record, since).await? {
            changed.push(record);
        }
    }
    Ok(changed)
}

/// Returns the next records that a hold may cover, newest first.
async fn slice(
    core: &Core,
    connection: &mut SqlConnection,
    hold: &LegalHold,
    after: Option<&EnvelopeId>,
    limit: i64,
) -> Result<Vec<OwnedEnvelope>, StoreError> {
    let org = &hold.org;
    match hold.scope {
        HoldScope::Envelope => {
            let id = EnvelopeId::parse(&hold.subject).filter(|_| after.is_none());
            owned(connection, org, id.into_iter().collect()).await
        }
        HoldScope::Pool => {
            let pooled = rows::pooled(connection, hold, after, limit).await?;
            owned(connection, org, pooled).await
        }
        HoldScope::Customer => {
            let customer = Some(hold.subject.as_str());
            rows::envelopes(connection, org, customer, after, limit).await
        }
        HoldScope::Organization => {
            let mut records = rows::envelopes(connection, org, None, after, limit).await?;
            let filter = RecordFilter {
                after: after.cloned(),
                ..RecordFilter::of(ListedPart::Controller)
            };
            let dialect = core.store.dialect();
            let listed = control::list(connection, dialect, org, &filter, limit).await?;
            let of_others = listed.into_iter().filter(|record| record.org != *org);
            records.extend(of_others.map(|record| OwnedEnvelope {
                org: record.org,
                envelope: record.envelope,
            }));

            // Both lists are newest first, and the older ones of both may be missing in the other.
            records.sort_by(|one, other| other.envelope.as_str().cmp(one.envelope.as_str()));
            records.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
            Ok(records)
        }
    }
}

/// Returns records with their originators. A record that no act was about has the organization of its hold.
async fn owned(
    connection: &mut SqlConnection,
    org: &OrgId,
    envelopes: Vec<EnvelopeId>,
) -> Result<Vec<OwnedEnvelope>, StoreError> {
    let mut records = Vec::new();
    for envelope in envelopes {
        let control = control::of_record(connection, &envelope).await?;
        records.push(OwnedEnvelope {
            org: control.map_or_else(|| org.clone(), |control| control.org),
            envelope,
        });
    }
    Ok(records)
}

/// Makes the objects of a record follow all holds on it. Returns the number of objects for which the store refused.
async fn settle(
    core: &Core,
    hold: &LegalHold,
    record: &OwnedEnvelope,
) -> Result<u64, ServiceError> {
    let mut is_held = is_covered(core, record).await?;
    // Only the end of a hold takes that of the store off.
    if !is_held && hold.lifted.is_none() {
        return Ok(0);
    }

    loop {
        let lacking = set(core, record, is_held).await?;
        // Another hold may have been placed meanwhile, and its walk been here, before the store took ours off. After a
        // crash in between, the job of the lifted hold comes here again.
        let is_covered = is_covered(core, record).await?;
        if is_covered == is_held {
            return Ok(lacking);
        }
        is_held = is_covered;
    }
}

async fn is_covered(core: &Core, record: &OwnedEnvelope) -> Result<bool, ServiceError> {
    let mut connection = core.store.read().await?;
    let envelope = envelopes::get(&mut connection, &record.org, &record.envelope).await?;
    match envelope {
        Some(envelope) => Ok(legal_holds::on(&mut connection, &envelope).await?.is_some()),
        None => Ok(false),
    }
}

/// Sets the store's hold of all objects of a record, or takes it off.
async fn set(core: &Core, record: &OwnedEnvelope, is_held: bool) -> Result<u64, ServiceError> {
    let (mut lacking, mut why) = (0, None);
    let owner = record.envelope.as_str();
    for key in core.files.of_record(&record.org, owner).await? {
        match core.files.set_hold(&key, is_held).await {
            // An object that was deleted meanwhile needs no hold.
            Ok(()) | Err(FilesError::Gone) => {}
            // It would refuse again; the next walk tries again, and `doctor` reports the number.
            Err(error @ FilesError::Refused(_)) => {
                lacking += 1;
                why = Some(error);
            }
            Err(error) => return Err(error.into()),
        }
    }

    if let Some(error) = why {
        let envelope = &record.envelope;
        tracing::warn!(%envelope, lacking, %error, "object store refused to change its hold");
    }
    Ok(lacking)
}

/// Returns how far the object store follows the holds in force. The error is what an operator has to look at.
pub async fn check(core: &Core) -> Result<String, String> {
    let mut connection = core.store.read().await.map_err(|error| error.to_string())?;
    let holds = rows::in_force(&mut connection).await;
    drop(connection);
    let holds = holds.map_err(|error| error.to_string())?;
    let in_force = format!("{} in force; this program keeps to them", holds.len());
    if !core.files.sets_holds() {
        let why = if can_have_holds(core) {
            "storage.object_lock_holds is not set"
        } else {
            "only S3, Azure and Google have one"
        };
        return Ok(format!(
            "{in_force}, the object store has no hold of its own: {why}"
        ));
    }

    if let Some(obstacle) = core.files.hold_obstacle().await {
        return Err(format!("{in_force}, {obstacle}"));
    }

    let stores = holds
        .iter()
        .map(|hold| hold.store.clone().unwrap_or_default());
    let stores: Vec<StoreHold> = stores.collect();
    let counted = |store: &StoreHold| {
        store
            .lacking
            .max(store.walk.as_ref().map_or(0, |walk| walk.lacking))
    };
    let lacking: u64 = stores.iter().map(counted).sum();
    let begun = stores.iter().filter(|store| store.as_of.is_none()).count();
    if lacking > 0 {
        return Err(format!(
            "{in_force}, {lacking} objects of held records lack the hold of the object store: look for \
             \"object store refused\" in the log"
        ));
    }
    if begun > 0 {
        return Ok(format!(
            "{in_force}, the object store is being set for {begun} of them"
        ));
    }
    let as_of = stores.iter().filter_map(|store| store.as_of).min();
    let as_of = as_of.map_or_else(String::new, |at| format!(", as of {at}"));
    Ok(format!("{in_force}, and so does the object store{as_of}"))
}

fn can_have_holds(core: &Core) -> bool {
    let url = core.config.storage_url();
    let schemes = ["s3://", "az://", "gs://"];
    url.is_some_and(|url| schemes.iter().any(|scheme| url.starts_with(scheme)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifted_hold_is_walked_over_once_more_after_an_hour() {
        let lifted_at = Timestamp::from_millis(0);
        let mut hold = LegalHold {
            id: HoldId::new(),
            org: OrgId::new(),
            scope: HoldScope::Organization,
            subject: String::new(),
            subject_bucket: 0,
            reason: "A lawsuit".into(),
            case_reference: "24-CV-1".into(),
            placed_by: "user:ada@oak.example".into(),
            placed_at: lifted_at,
            lift: None,
            lifted: None,
            store: None,
        };
        let later = lifted_at + INTERVAL;
        assert!(!needs_last_walk(&hold, later));

        hold.lifted = Some(("user:ben@oak.example".into(), lifted_at));
        assert!(!needs_last_walk(&hold, lifted_at));
        for (as_of, is_needed) in [(None, true), (Some(lifted_at), true), (Some(later), false)] {
            hold.store = Some(StoreHold {
                as_of,
                ..StoreHold::default()
            });
            assert_eq!(needs_last_walk(&hold, later), is_needed, "{as_of:?}");
        }
    }
}
