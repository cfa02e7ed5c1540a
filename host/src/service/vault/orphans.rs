//! Stored bytes that no row points to: what a process left behind that died
//! between storing them and saying so, and documents that were replaced.

use std::time::Duration;

use futures::TryStreamExt as _;

use crate::domain::clock::Timestamp;
use crate::domain::job::{DeleteObject, Job as _};
use crate::files::{Area, Key, PROBES};
use crate::service::vault::Vault;
use crate::service::vault::log;
use crate::service::{Core, ServiceError};
use crate::store::{StoreError, chores, objects};

/// Younger bytes may be about to be pointed to.
const AGE: Duration = Duration::from_secs(86_400);
/// One node looks for them, once in this time.
const PERIOD: Duration = Duration::from_secs(86_400);

/// Looks for them when it is time.
pub async fn sweep_when_due(core: &Core, vault: &Vault) -> Result<(), ServiceError> {
    let now = core.clock.now();
    if chores::claim(&core.store, "orphans", now, now + PERIOD).await? {
        sweep(core, vault).await?;
    }
    Ok(())
}

/// Removes every object older than a day that no row points to. Returns how
/// many there were.
pub async fn sweep(core: &Core, vault: &Vault) -> Result<u64, ServiceError> {
    // A database that was restored, or is another's, knows too few of them.
    log::check(core, vault).await?;
    let before = core.clock.now() - AGE;
    let mut removed = core.files.remove_cut_off_writes(before).await?;
    let mut objects = core.files.older_than(before);
    while let Some(key) = objects.try_next().await? {
        let unwanted = match Key::parse(&key) {
            Some(key) => !wanted(core, &key).await?,
            // What is no document of an organization is none of ours to judge.
            None => key.starts_with(&format!("{PROBES}/")),
        };
        if unwanted {
            // A backup that has begun points to what is there now.
            if held(core).await?.is_some() {
                break;
            }
            core.files.delete(&key).await?;
            removed += 1;
        }
    }
    core.metrics.orphans_removed.inc_by(removed);
    Ok(removed)
}

async fn wanted(core: &Core, key: &Key) -> Result<bool, StoreError> {
    let mut connection = core.store.read().await?;
    let (org, text) = (&key.org, key.text());
    if !objects::knows(&mut connection, org).await? {
        return Ok(true);
    }
    match key.area {
        Area::Templates => objects::template_wants(&mut connection, org, text).await,
        Area::Room => objects::room_wants(&mut connection, org, text).await,
        Area::Uploads
        | Area::Signed
        | Area::Vault
        | Area::Copies
        | Area::Certificates
        | Area::Archive => {
            objects::envelope_wants(&mut connection, org, &key.owner, text, DeleteObject::NAME)
                .await
        }
    }
}

/// Until when no object may be removed: a backup is copying them.
pub async fn held(core: &Core) -> Result<Option<Timestamp>, ServiceError> {
    let until = chores::due(&core.store, chores::BACKUP).await?;
    Ok(until.filter(|until| *until > core.clock.now()))
}
