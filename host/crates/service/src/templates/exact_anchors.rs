//! Anchors that must be written in the document as in the request. The placement component treats apostrophes,
//! quotation marks, hyphens and dashes of one kind as the same; its contract of 1.0 knows no other comparison.

use std::collections::HashMap;

use bytes::Bytes;

use super::{FieldPlacement, RequestedField, SEARCHED_ANCHORS, placement_request};
use holdfast_components::Placement as PlacementRules;
use holdfast_components::rules::{placement, wordings};
use holdfast_platform::{ServiceError, ValidationIssue};

/// Builds the requests for the placement component. An exact anchor becomes the number of the occurrence that
/// is written like it.
pub(super) async fn placement_requests(
    rules: &PlacementRules,
    pdf: &Bytes,
    fields: &[RequestedField],
) -> Result<Vec<placement::FieldRequest>, ServiceError> {
    let mut requested: Vec<placement::FieldRequest> =
        fields.iter().map(placement_request).collect();
    let mut known: HashMap<(&str, Option<u32>), Vec<wordings::Wording>> = HashMap::new();

    let mut issues = Vec::new();
    for (index, (field, request)) in fields.iter().zip(&mut requested).enumerate() {
        let FieldPlacement::Anchor {
            anchor_text,
            page,
            exact: true,
            ..
        } = &field.placement
        else {
            continue;
        };

        let placement::Position::Anchor(anchor) = &mut request.position else {
            continue;
        };

        // One search reads the whole document, so fields with the same anchor share its result.
        let wanted = (anchor_text.as_str(), *page);
        if !known.contains_key(&wanted) {
            if known.len() == SEARCHED_ANCHORS {
                return Err(ServiceError::Semantic(format!(
                    "At most {SEARCHED_ANCHORS} different anchors of a request can be exact"
                )));
            }

            let found = rules.wordings(pdf.clone(), anchor_text.clone(), *page);
            // The interface is optional: components of the first contract cannot compare exactly.
            let found = found.await??.ok_or_else(|| {
                ServiceError::Semantic(
                    "The placement component in use cannot compare anchors exactly".into(),
                )
            })?;

            known.insert(wanted, found);
        }

        // An anchor that does not occur at all is the component's to report, with the nearest texts.
        let found = known.get(&wanted).map(Vec::as_slice).unwrap_or_default();
        if found.is_empty() {
            continue;
        }

        match exact_occurrence(found, anchor.occurrence.unwrap_or(1)) {
            Some(number) => anchor.occurrence = Some(number),
            None => issues.push(not_written_so(index, anchor, found)),
        }
    }

    if issues.is_empty() {
        Ok(requested)
    } else {
        Err(ServiceError::Invalid(issues))
    }
}

/// Returns the number, among all occurrences, of the one with this number among the exact ones; both from 1.
fn exact_occurrence(found: &[wordings::Wording], wanted: u32) -> Option<u32> {
    let numbered = (1..).zip(found);
    let mut exact = numbered.filter(|(_, wording)| wording.exact);
    let (number, _) = exact.nth(wanted.checked_sub(1)? as usize)?;
    Some(number)
}

fn not_written_so(
    field: usize,
    anchor: &placement::Anchor,
    found: &[wordings::Wording],
) -> ValidationIssue {
    /// Wordings that the message quotes.
    const QUOTED: usize = 3;

    let exact = found.iter().filter(|wording| wording.exact).count();
    let others = found.iter().filter(|wording| !wording.exact);
    let others: Vec<String> = others
        .take(QUOTED)
        .map(|wording| format!("“{}” on page {}", wording.text, wording.page))
        .collect();
    let (code, member, expected, received) = if exact == 0 {
        let expected = "text that occurs in the document".to_owned();
        (
            "anchor_not_found",
            "anchor_text",
            expected,
            anchor.text.clone(),
        )
    } else {
        let received = anchor.occurrence.unwrap_or(1).to_string();
        (
            "occurrence_out_of_range",
            "occurrence",
            format!("1 to {exact}"),
            received,
        )
    };

    let path = ["fields", &field.to_string(), "placement", member];
    let message = format!(
        "exactly “{}” occurs {exact} times; written otherwise: {}",
        anchor.text,
        if others.is_empty() {
            "nowhere".to_owned()
        } else {
            others.join(", ")
        }
    );

    ValidationIssue::new(code, &path, &expected, &received, message)
}
