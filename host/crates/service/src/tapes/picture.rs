//! Pictures of places in contracts: what a finding of a tape is about, as the document shows it.

use bytes::Bytes;

use super::{TapeRowView, find};
use crate::templates::pages::{self, PageCache};
use holdfast_domain::control::ControlStage;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::facts::FactPlace;
use holdfast_domain::id::EnvelopeId;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::{control, envelopes, tapes as rows};

/// Returns the surroundings of a finding's place as a PNG, with a frame around the place. Findings of a row are counted
/// from 0; without a number, it is the first one with a place.
pub async fn picture(
    core: &Core,
    cache: &PageCache,
    caller: &Caller,
    id: &str,
    line: i64,
    finding: Option<usize>,
) -> Result<Bytes, ServiceError> {
    let unknown = || ServiceError::NotFound("Picture");
    let tape = find(core, caller, id).await?;
    let mut connection = core.store.read().await?;
    let row = rows::row(&mut connection, &tape, line).await?;
    drop(connection);

    let row = TapeRowView::from(row.ok_or_else(unknown)?);
    let place = place_of(&row, finding).ok_or_else(unknown)?;
    let envelope = row.envelope_id.as_ref().ok_or_else(unknown)?;
    let envelope = readable(core, caller, envelope).await?;
    let envelope = envelope.ok_or_else(unknown)?;
    // The copy that other parties of a record see, too; its pages are those of the executed document.
    let copy = envelope.record.copy.as_ref().ok_or_else(unknown)?;
    pages::excerpt(core, cache, &envelope.org, copy, place).await
}

fn place_of(row: &TapeRowView, finding: Option<usize>) -> Option<&FactPlace> {
    let mut findings = row.findings.iter();
    match finding {
        Some(number) => findings.nth(number)?.place.as_ref(),
        None => findings.find_map(|finding| finding.place.as_ref()),
    }
}

/// Returns the record if the caller has a part in it now: a tape may be older than a sale of the record.
async fn readable(
    core: &Core,
    caller: &Caller,
    id: &EnvelopeId,
) -> Result<Option<Envelope>, ServiceError> {
    let mut connection = core.store.read().await?;
    let found = control::of_record(&mut connection, id).await?;
    let org = match &found {
        // A record that no other party ever had a part in.
        None => &caller.org,
        Some(found) => {
            let has_part = found.parties().contains(&&caller.org);
            if !has_part || found.stage == ControlStage::Released {
                return Ok(None);
            }
            &found.org
        }
    };
    Ok(envelopes::get(&mut connection, org, id).await?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::tape::{FindingCode, RowStatus, TapeFinding};

    #[test]
    fn a_picture_is_that_of_the_chosen_finding() {
        let finding = |page: Option<u32>| TapeFinding {
            place: page.map(|page| FactPlace::new(page, [0.1, 0.1, 0.1, 0.1])),
            ..TapeFinding::of_row(FindingCode::Different, "")
        };
        let row = TapeRowView {
            line: 2,
            status: RowStatus::Exceptions,
            envelope_id: None,
            severity: None,
            findings: vec![finding(None), finding(Some(2)), finding(Some(3))],
        };
        let page = |number| place_of(&row, number).map(|place| place.page);
        assert_eq!(page(None), Some(2));
        assert_eq!(page(Some(2)), Some(3));
        assert_eq!((page(Some(0)), page(Some(3))), (None, None));
    }
}
