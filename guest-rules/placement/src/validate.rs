//! Validation of fields that does not need the text of the document.

use std::collections::HashMap;

use crate::area::EDGE_TOLERANCE;
use crate::issues::{FieldProblem, code, quoted};
use crate::search::SearchPhrase;
use crate::{Anchor, Area, FieldRequest, Issue, Position};

/// Types of fields.
pub(crate) const TYPES: [&str; 9] = [
    "signature",
    "initials",
    "text",
    "date",
    "checkbox",
    "number",
    "select",
    "radio",
    "attachment",
];

/// Returns all issues of the fields.
pub(crate) fn issues(fields: &[FieldRequest], page_count: u32) -> Vec<Issue> {
    let mut issues = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        issues.extend(
            field_problems(field, page_count)
                .into_iter()
                .map(|problem| problem.of_field(index)),
        );
    }

    // The caller sorts all issues by field, so conflicts may come last.
    issues.extend(conflicts(fields));
    issues
}

fn field_problems(field: &FieldRequest, page_count: u32) -> Vec<FieldProblem> {
    let mut problems = Vec::new();
    problems.extend(blank(&field.name, "name"));
    problems.extend(blank(&field.role, "role"));

    if !TYPES.contains(&field.field_type.as_str()) {
        problems.push(
            FieldProblem::at(&["type"], code::INVALID_ENUM_VALUE)
                .expected(TYPES.join(" | "))
                .received(&field.field_type)
                .message(format!(
                    "unknown field type {}; it must be one of {}",
                    quoted(&field.field_type),
                    TYPES.join(", ")
                )),
        );
    }

    match &field.position {
        Position::Absolute(areas) => problems.extend(areas_problems(areas, page_count)),
        Position::Anchor(anchor) => problems.extend(anchor_problems(anchor, page_count)),
    }

    problems
}

fn blank(text: &str, name: &str) -> Option<FieldProblem> {
    text.trim().is_empty().then(|| {
        FieldProblem::at(&[name], code::TOO_SMALL)
            .expected("at least 1 character")
            .received("empty")
            .message(format!("{name} must not be empty"))
    })
}

fn areas_problems(areas: &[Area], page_count: u32) -> Vec<FieldProblem> {
    if areas.is_empty() {
        return vec![
            FieldProblem::at(&["placement", "areas"], code::TOO_SMALL)
                .expected("at least 1 area")
                .received("0 areas")
                .message("areas must not be empty"),
        ];
    }

    areas
        .iter()
        .enumerate()
        .flat_map(|(position, area)| {
            let position = position.to_string();
            area_problems(area, page_count)
                .into_iter()
                .map(move |problem| problem.below(&["placement", "areas", &position]))
        })
        .collect()
}

fn area_problems(area: &Area, page_count: u32) -> Vec<FieldProblem> {
    let mut problems = Vec::new();
    problems.extend(page_problem(area.page, page_count));
    problems.extend(coordinate(area.x, "x"));
    problems.extend(coordinate(area.y, "y"));
    problems.extend(length(area.w, "w"));
    problems.extend(length(area.h, "h"));

    // A coordinate that is wrong by itself would cross the edge as well: one mistake gives one message.
    let is_measured = !problems
        .iter()
        .any(|problem| problem.code != code::PAGE_OUT_OF_RANGE);
    if is_measured {
        problems.extend(beyond_edge(area.x, area.w, "x", "w", "right"));
        problems.extend(beyond_edge(area.y, area.h, "y", "h", "bottom"));
    }

    problems
}

fn beyond_edge(
    start: f64,
    length: f64,
    from: &str,
    over: &str,
    edge: &str,
) -> Option<FieldProblem> {
    let end = start + length;
    (end > 1.0 + EDGE_TOLERANCE).then(|| {
        FieldProblem::at(&[over], code::OUTSIDE_PAGE)
            .expected(format!("{from} + {over} at most 1"))
            .received(end)
            .message(format!(
                "the area reaches beyond the {edge} edge of the page: {from} {start} + {over} {length} = {end}"
            ))
    })
}

fn anchor_problems(anchor: &Anchor, page_count: u32) -> Vec<FieldProblem> {
    let mut problems = Vec::new();
    // The text is normalized first: one of invisible characters would match everywhere or nowhere.
    if SearchPhrase::new(&anchor.text).is_empty() {
        problems.push(
            FieldProblem::at(&["anchor_text"], code::TOO_SMALL)
                .expected("at least 1 visible character")
                .received("empty")
                .message("anchor_text must not be empty"),
        );
    }

    if anchor.occurrence == Some(0) {
        problems.push(
            FieldProblem::at(&["occurrence"], code::TOO_SMALL)
                .expected("at least 1")
                .received(0)
                .message("occurrence counts from 1"),
        );
    }

    problems.extend(anchor.page.and_then(|page| page_problem(page, page_count)));
    problems.extend(offset(anchor.offset_x, "offset_x"));
    problems.extend(offset(anchor.offset_y, "offset_y"));
    problems.extend(length(anchor.w, "w"));
    problems.extend(length(anchor.h, "h"));

    problems
        .into_iter()
        .map(|problem| problem.below(&["placement"]))
        .collect()
}

/// Returns whether an anchor can be searched for, independently of other problems of its field.
pub(crate) fn is_searchable(anchor: &Anchor, page_count: u32) -> bool {
    !SearchPhrase::new(&anchor.text).is_empty()
        && anchor.occurrence != Some(0)
        && anchor
            .page
            .is_none_or(|page| (1..=page_count).contains(&page))
}

/// Returns whether the size and offsets of an anchor are usable.
pub(crate) fn is_measurable(anchor: &Anchor) -> bool {
    offset(anchor.offset_x, "offset_x").is_none()
        && offset(anchor.offset_y, "offset_y").is_none()
        && length(anchor.w, "w").is_none()
        && length(anchor.h, "h").is_none()
}

fn page_problem(page: u32, page_count: u32) -> Option<FieldProblem> {
    (!(1..=page_count).contains(&page)).then(|| {
        FieldProblem::at(&["page"], code::PAGE_OUT_OF_RANGE)
            .expected(format!("1 to {page_count}"))
            .received(page)
            .message(format!(
                "page {page} does not exist; the document has {}",
                pages(page_count)
            ))
    })
}

pub(crate) fn pages(count: u32) -> String {
    match count {
        1 => "1 page".to_owned(),
        count => format!("{count} pages"),
    }
}

fn coordinate(value: f64, name: &str) -> Option<FieldProblem> {
    // Every comparison with NaN is false, so a NaN would pass the limits.
    not_a_number(value, name)
        .or_else(|| too_big(value, name))
        .or_else(|| {
            (value < 0.0).then(|| {
                FieldProblem::at(&[name], code::TOO_SMALL)
                    .expected("at least 0")
                    .received(value)
                    .message(format!(
                        "{name} is a fraction of the page and cannot be negative"
                    ))
            })
        })
}

/// The specification bounds offsets by 1 only; a negative offset reaches above or left of the text.
fn offset(value: f64, name: &str) -> Option<FieldProblem> {
    not_a_number(value, name)
        .or_else(|| too_big(value, name))
        .or_else(|| {
            (value < -1.0).then(|| {
                FieldProblem::at(&[name], code::TOO_SMALL)
                    .expected("at least -1")
                    .received(value)
                    .message(format!(
                        "{name} is a fraction of the page; {value} leaves it"
                    ))
            })
        })
}

fn length(value: f64, name: &str) -> Option<FieldProblem> {
    not_a_number(value, name)
        .or_else(|| too_big(value, name))
        .or_else(|| {
            (value <= 0.0).then(|| {
                FieldProblem::at(&[name], code::TOO_SMALL)
                    .expected("greater than 0")
                    .received(value)
                    .message(format!("{name} must be greater than 0"))
            })
        })
}

fn not_a_number(value: f64, name: &str) -> Option<FieldProblem> {
    (!value.is_finite()).then(|| {
        FieldProblem::at(&[name], code::INVALID_TYPE)
            .expected("number")
            .received(value)
            .message(format!("{name} must be a finite number"))
    })
}

fn too_big(value: f64, name: &str) -> Option<FieldProblem> {
    (value > 1.0).then(|| {
        FieldProblem::at(&[name], code::TOO_BIG)
            .expected("at most 1")
            .received(value)
            .message(format!(
                "{name} is a fraction of the page, 0 to 1, not points or pixels; {value} is too big"
            ))
    })
}

/// Reports fields that share a name but not a type: to the person who fills it in, a name means one
/// field.
fn conflicts(fields: &[FieldRequest]) -> Vec<Issue> {
    let mut first_of_name: HashMap<&str, (usize, &str)> = HashMap::new();
    let mut issues = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        let name = field.name.trim();
        // A blank name has an issue of its own, and two of them are no common field.
        if name.is_empty() {
            continue;
        }

        let (first, kind) = *first_of_name
            .entry(name)
            .or_insert((index, &field.field_type));
        if kind != field.field_type {
            issues.push(
                FieldProblem::at(&["type"], code::CONFLICTING_TYPE)
                    .expected(kind)
                    .received(&field.field_type)
                    .message(format!(
                        "field {} is already of type {} at position {first}",
                        quoted(name),
                        quoted(kind)
                    ))
                    .of_field(index),
            );
        }
    }

    issues
}
