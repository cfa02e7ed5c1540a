//! The records that rows of a tape are looked up in: those in which the organization has a part, and no others.

use std::collections::HashMap;

use crate::control::transfers::{check_settled, is_party, unknown};
use holdfast_domain::id::{EnvelopeId, OrgId, TransferId};
use holdfast_domain::tape::{RecordIndex, Tape, TapeKey, TapePart};
use holdfast_domain::transfer::Transfer;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::row::OwnedEnvelope;
use holdfast_store::{SqlConnection, StoreError, tapes as rows, transfers};

/// Records that are read at once.
const PAGE: i64 = 2_000;

/// List of records in the database.
enum RecordList {
    /// All that the organization originated.
    Originated,
    /// Those of them that it also controls.
    Kept,
    /// Controlled records of other organizations.
    Controlled,
    Offered,
    Pledged,
    /// Those of a pool in which the organization has the part.
    OfPool(Box<Transfer>, Option<TapePart>),
}

/// Returns the id of a pool that the caller sells or buys.
pub(super) async fn known_pool(
    core: &Core,
    caller: &Caller,
    id: &str,
) -> Result<TransferId, ServiceError> {
    let id = TransferId::parse(id).ok_or_else(unknown)?;
    let mut connection = core.store.read().await?;
    let transfer = transfers::get(&mut connection, &id).await?;
    let transfer = transfer.filter(|transfer| is_party(transfer, &caller.org));
    // During a step some records have moved and others have not: such a population would be of no moment.
    check_settled(&transfer.ok_or_else(unknown)?)?;
    Ok(id)
}

/// Returns the lists that make up the population of a tape.
async fn lists_of(core: &Core, tape: &Tape) -> Result<Vec<RecordList>, ServiceError> {
    let Some(pool) = &tape.pool else {
        return Ok(lists(tape.part));
    };
    let mut connection = core.store.read().await?;
    let transfer = transfers::get(&mut connection, pool).await?;
    let transfer = transfer.filter(|transfer| is_party(transfer, &tape.org));
    let transfer = transfer.ok_or_else(unknown)?;
    Ok(vec![RecordList::OfPool(Box::new(transfer), tape.part)])
}

/// Returns the lists that make up the records of a part. No record is in two of them.
fn lists(part: Option<TapePart>) -> Vec<RecordList> {
    match part {
        Some(TapePart::Originator) => vec![RecordList::Originated],
        Some(TapePart::Controller) => vec![RecordList::Kept, RecordList::Controlled],
        Some(TapePart::Named) => vec![RecordList::Offered],
        Some(TapePart::Pledgee) => vec![RecordList::Pledged],
        None => vec![
            RecordList::Originated,
            RecordList::Controlled,
            RecordList::Offered,
            RecordList::Pledged,
        ],
    }
}

/// Reads the keys of all records of a tape's population.
pub(super) async fn index(core: &Core, tape: &Tape) -> Result<RecordIndex, ServiceError> {
    let mut index = RecordIndex::default();
    for list in &lists_of(core, tape).await? {
        let mut after = String::new();
        loop {
            // A connection for each page: none is held over thousands of them.
            let mut connection = core.store.read().await?;
            let page = page(&mut connection, list, &tape.org, &after).await?;
            let Some(last) = page.last() else {
                break;
            };

            last.envelope.as_str().clone_into(&mut after);
            add(&mut connection, tape, &page, &mut index).await?;
        }
    }

    Ok(index)
}

async fn page(
    connection: &mut SqlConnection,
    list: &RecordList,
    org: &OrgId,
    after: &str,
) -> Result<Vec<OwnedEnvelope>, StoreError> {
    match list {
        RecordList::Originated => rows::own_records(connection, org, false, after, PAGE).await,
        RecordList::Kept => rows::own_records(connection, org, true, after, PAGE).await,
        RecordList::Controlled => rows::controlled_records(connection, org, after, PAGE).await,
        RecordList::Offered => rows::offered_records(connection, org, after, PAGE).await,
        RecordList::Pledged => rows::pledged_records(connection, org, after, PAGE).await,
        RecordList::OfPool(transfer, part) => {
            rows::pool_records(connection, org, transfer, *part, after, PAGE).await
        }
    }
}

async fn add(
    connection: &mut SqlConnection,
    tape: &Tape,
    page: &[OwnedEnvelope],
    index: &mut RecordIndex,
) -> Result<(), ServiceError> {
    let too_many = || ServiceError::Internal("too many records for a tape".into());
    let mut numbers: HashMap<&EnvelopeId, u32> = HashMap::new();
    for record in page {
        let number = index
            .add(&record.envelope, &record.org)
            .ok_or_else(too_many)?;
        numbers.insert(&record.envelope, number);
    }

    for key in rows::keys_of(connection, page).await? {
        // Keys that the map does not use would only take memory. The id of a record is known without a row.
        let of_map = tape
            .map
            .keys
            .iter()
            .find(|of_map| of_map.column() == key.name);
        let of_map = of_map.filter(|key| **key != TapeKey::EnvelopeId);
        if let (Some(of_map), Some(number)) = (of_map, numbers.get(&key.envelope)) {
            index.add_key(*number, *of_map, &key.value);
        }
    }
    Ok(())
}
