//! Refuses acts by which something under a legal hold would leave, change hands or be deleted.
//!
//! An act asks in its own transaction, with the envelope locked, and shares the lock of the organization that could have
//! placed a hold. A hold on an envelope locks that envelope, every other hold its organization, and none locks both. So
//! of a hold and an act at the same moment, one comes first: the act sees the hold, or is over when the hold is placed.
//! Acts on several records of an organization do not wait for each other here, so they cannot block each other either.

use holdfast_store::SqlConnection;

use crate::ServiceError;
use crate::problems::{ControlProblem, NamedHold};
use holdfast_domain::control::ControlRecord;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::hold::LegalHold;
use holdfast_domain::id::OrgId;
use holdfast_store::{StoreError, WriteTransaction, control, legal_holds as rows, organizations};

/// Permits an act on a record in its transaction, with the envelope's row locked. Only holds of the organization that
/// controls the record count. `asking` learns which hold it is, if it is its own.
pub async fn permit(
    tx: &mut WriteTransaction,
    asking: Option<&OrgId>,
    envelope: &Envelope,
) -> Result<(), ServiceError> {
    let record = control::of_envelope(tx, envelope).await?;
    permit_controlled(tx, asking, envelope, &record).await
}

/// Like [`permit`], for a caller who has read who controls the record under the lock.
pub async fn permit_controlled(
    tx: &mut WriteTransaction,
    asking: Option<&OrgId>,
    envelope: &Envelope,
    record: &ControlRecord,
) -> Result<(), ServiceError> {
    // Before the holds are read: a hold that is being placed is visible once the lock is ours.
    organizations::share(tx, &record.controller).await?;
    let found = rows::covering(tx, &record.controller, envelope).await?;
    refuse(asking, found)
}

/// Like [`permit`], without a lock: refuses early what [`permit`] would refuse later.
pub async fn check(
    connection: &mut SqlConnection,
    asking: Option<&OrgId>,
    envelope: &Envelope,
) -> Result<(), ServiceError> {
    refuse(asking, on(connection, envelope).await?)
}

/// Returns the hold that is in force on a record, which may be another organization's than the caller's.
pub async fn on(
    connection: &mut SqlConnection,
    envelope: &Envelope,
) -> Result<Option<LegalHold>, StoreError> {
    let record = control::of_envelope(connection, envelope).await?;
    rows::covering(connection, &record.controller, envelope).await
}

/// Permits the deletion of something that belongs to an organization and to no envelope, in its transaction.
pub async fn permit_deletion(tx: &mut WriteTransaction, org: &OrgId) -> Result<(), ServiceError> {
    organizations::share(tx, org).await?;
    let found = rows::on_organization(tx, org).await?;
    refuse(Some(org), found)
}

/// Whether stored objects of an organization stay, also those that no row names.
///
/// It is asked of the organization and not of a record: an object that no row names says little about its record.
pub async fn keeps_objects(
    connection: &mut SqlConnection,
    org: &OrgId,
) -> Result<bool, ServiceError> {
    Ok(rows::concern(connection, org).await?)
}

fn refuse(asking: Option<&OrgId>, found: Option<LegalHold>) -> Result<(), ServiceError> {
    let Some(hold) = found else {
        return Ok(());
    };
    let is_own = asking == Some(&hold.org);
    let named = is_own.then(|| {
        Box::new(NamedHold {
            id: hold.id,
            case_reference: hold.case_reference,
        })
    });
    Err(ControlProblem::LegalHold(named).into())
}
