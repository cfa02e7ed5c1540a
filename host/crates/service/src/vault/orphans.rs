//! Removes stored objects that no row points to: leftovers of a process that died between
//! storing bytes and committing the pointer, and replaced documents.

use std::time::Duration;

use futures::TryStreamExt as _;

use crate::vault::Vault;
use holdfast_adapters::files::{PROBES, StorageArea, StoredObjectKey};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::job::{DeleteObject, JobPayload as _};
use holdfast_platform::log;
use holdfast_platform::permits::legal_holds;
use holdfast_platform::{Core, ServiceError};
use holdfast_store::{StoreError, chores, objects};

/// Minimum age of a removed object. The row that points to a younger one may be uncommitted.
const AGE: Duration = Duration::from_secs(86_400);
/// Interval of the sweep. One node runs it.
const PERIOD: Duration = Duration::from_secs(86_400);

/// Time until an object under a legal hold is looked at again.
const HELD: Duration = Duration::from_secs(3600);

/// Runs the sweep if it is due and no other node has claimed it.
pub async fn sweep_when_due(core: &Core, vault: &Vault) -> Result<(), ServiceError> {
    let now = core.clock.now();
    if chores::claim(&core.store, "orphans", now, now + PERIOD).await? {
        sweep(core, vault).await?;
    }
    Ok(())
}

/// Removes every object older than a day that no row points to. Returns their number.
pub async fn sweep(core: &Core, vault: &Vault) -> Result<u64, ServiceError> {
    // A restored database, or the wrong one, does not know all objects that are in use:
    // deleting by its rows would lose documents.
    log::check(core, &vault.log).await?;
    let before = core.clock.now() - AGE;
    let mut removed = core.files.remove_cut_off_writes(before).await?;

    let mut objects = core.files.older_than(before);
    while let Some(key) = objects.try_next().await? {
        let unwanted = match StoredObjectKey::parse(&key) {
            Some(key) => !wanted(core, &key).await?,
            // Of objects that are not documents of an organization, remove only probe files.
            None => key.starts_with(&format!("{PROBES}/")),
        };
        if unwanted {
            // A backup that has begun will point to objects that exist now.
            if backup(core).await?.is_some() {
                break;
            }
            // Also of a replaced document, which may be what the case is about.
            if under_hold(core, &key).await? {
                continue;
            }
            core.files.delete(&key).await?;
            removed += 1;
        }
    }

    core.metrics.orphans_removed.inc_by(removed);
    Ok(removed)
}

async fn wanted(core: &Core, key: &StoredObjectKey) -> Result<bool, StoreError> {
    let mut connection = core.store.read().await?;
    let (org, text) = (&key.org, key.text());

    // Unknown organization: its rows may be in another database, so keep the object.
    if !objects::knows(&mut connection, org).await? {
        return Ok(true);
    }

    match key.area {
        StorageArea::Templates => objects::template_wants(&mut connection, org, text).await,
        StorageArea::Room => objects::room_wants(&mut connection, org, text).await,
        StorageArea::Tapes => objects::tape_wants(&mut connection, org, text).await,
        StorageArea::Imports => objects::import_wants(&mut connection, org, text).await,
        StorageArea::Uploads
        | StorageArea::Signed
        | StorageArea::Vault
        | StorageArea::Copies
        | StorageArea::Certificates
        | StorageArea::Archive => {
            objects::envelope_wants(&mut connection, org, &key.owner, text, DeleteObject::NAME)
                .await
        }
    }
}

/// Returns the time until which an object stays: for a running backup, or for now under a legal hold.
pub async fn held(core: &Core, key: &str) -> Result<Option<Timestamp>, ServiceError> {
    if let Some(until) = backup(core).await? {
        return Ok(Some(until));
    }
    let wait = core.config.sweep_interval.unwrap_or(HELD);
    let is_held = under_hold(core, key).await?;
    Ok(is_held.then(|| core.clock.now() + wait))
}

/// Whether a legal hold keeps an object of an organization.
async fn under_hold(core: &Core, key: &str) -> Result<bool, ServiceError> {
    let Some(key) = StoredObjectKey::parse(key) else {
        return Ok(false);
    };
    let mut connection = core.store.read().await?;
    legal_holds::keeps_objects(&mut connection, &key.org).await
}

/// Returns the time until which a running backup prevents removing objects.
pub(crate) async fn backup(core: &Core) -> Result<Option<Timestamp>, ServiceError> {
    let until = chores::due(&core.store, chores::BACKUP).await?;
    Ok(until.filter(|until| *until > core.clock.now()))
}
