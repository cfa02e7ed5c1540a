//! Deletion of tapes: by a person or program, or when the organization's period of retention is over. The ledger keeps the
//! digests of the file and of the result, and who deleted the tape and when.

use std::time::Duration;

use serde_json::json;

use super::find;
use holdfast_domain::id::{OrgId, TapeId};
use holdfast_domain::job::{DeleteObject, DeleteTapeRows};
use holdfast_domain::ledger::NewEntry;
use holdfast_domain::organization::Organization;
use holdfast_domain::tape::{TAPE_DELETED, Tape, TapeChain, TapeSummary};
use holdfast_platform::permits::legal_holds;
use holdfast_platform::problems::ControlProblem;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::tapes as rows;
use holdfast_store::{StoreError, chores, jobs, ledger, organizations};

/// Interval at which old tapes are searched. One node does it.
const PERIOD: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);
/// Longest retention, in days: no clock is that old.
const LONGEST: u32 = 18_250;
/// Tapes that are read at once.
const PAGE: i64 = 50;
/// Rows of a transaction.
const ROWS: i64 = 5_000;

/// Deletes a tape of the caller, also while it is being checked.
pub async fn delete(core: &Core, caller: &Caller, id: &str) -> Result<TapeId, ServiceError> {
    let tape = find(core, caller, id).await?;
    remove(core, &tape, &caller.actor, "requested").await?;
    Ok(tape.id)
}

/// Removes the row of a tape, so that nothing reads its results any more. Jobs delete these and the file.
async fn remove(core: &Core, tape: &Tape, actor: &str, reason: &str) -> Result<(), ServiceError> {
    let (org, now) = (&tape.org, core.clock.now());
    let entry = NewEntry {
        at: now,
        actor: actor.to_owned(),
        action: TAPE_DELETED.into(),
        details: json!({
            "tape_id": tape.id, "reason": reason, "status": tape.status, "tape_sha256": tape.file.sha256,
            "sha256": tape.summary.as_ref().map(TapeSummary::sha256),
        }),
    };
    let results = DeleteTapeRows {
        tape: tape.id.clone(),
    };
    let file = DeleteObject {
        key: tape.file.key.clone(),
        instead: None,
    };

    let mut tx = core.store.begin().await?;
    // At the same moment, a check of the organization may end, or another tape be deleted: each entry follows the last one.
    organizations::lock(&mut tx, org).await?;
    legal_holds::permit_deletion(&mut tx, org).await?;
    ledger::append(&mut tx, Some(org), &TapeChain::of(org), entry).await?;
    // A second deletion at the same moment is a conflict, which takes its entry back.
    rows::delete(&mut tx, tape).await?;
    jobs::insert(&mut tx, org, &results, Some(tape.id.as_str()), now).await?;
    jobs::insert(&mut tx, org, &file, Some(&tape.file.key), now).await?;
    tx.commit().await?;
    Ok(())
}

/// Deletes the rows of a deleted tape, a million at most, in small transactions. May run twice.
pub async fn delete_rows(core: &Core, org: &OrgId, id: &TapeId) -> Result<(), ServiceError> {
    loop {
        let lane = core.pace.begin();
        let mut tx = core.store.begin().await?;
        let deleted = rows::delete_rows(&mut tx, org, id, ROWS).await?;
        tx.commit().await?;
        if deleted == 0 {
            return Ok(());
        }
        tokio::time::sleep(lane.end()).await;
    }
}

/// Deletes tapes after their retention, and files that waited a day for the choice of their columns.
pub async fn forget(core: &Core) -> Result<(), ServiceError> {
    let now = core.clock.now();
    if !chores::claim(&core.store, "tapes", now, now + PERIOD).await? {
        return Ok(());
    }

    let mut connection = core.store.read().await?;
    let all = organizations::list(&mut connection).await?;
    drop(connection);
    for Organization { id, settings, .. } in all {
        forget_of(core, &id, DAY, true).await?;
        if let Some(days) = settings.tape_retention_days {
            forget_of(core, &id, DAY * days.min(LONGEST), false).await?;
        }
    }
    Ok(())
}

async fn forget_of(
    core: &Core,
    org: &OrgId,
    age: Duration,
    only_choosing: bool,
) -> Result<(), ServiceError> {
    let before = core.clock.now() - age;
    loop {
        let mut connection = core.store.read().await?;
        let old = rows::sent_before(&mut connection, org, before, only_choosing, PAGE).await?;
        drop(connection);
        if old.is_empty() {
            return Ok(());
        }

        for tape in &old {
            match remove(core, tape, "system", "retention").await {
                // A person was first.
                Ok(()) | Err(ServiceError::Store(StoreError::Conflict)) => {}
                // The next run asks again.
                Err(ServiceError::Control(ControlProblem::LegalHold(_))) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}
