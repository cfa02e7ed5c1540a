//! The report of `holdfast component diff` as a web page: differences field by field, the matrix of
//! transitions, and pages with the rectangles of both components.

use std::collections::{BTreeMap, BTreeSet};

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::{Value, json};

use super::rules::asked;
use holdfast_components::behaviour::{BehaviourDiff, BehaviourGroup, FunctionDiff};
use holdfast_components::drawing;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#1b1b1f}\
table{border-collapse:collapse;margin:.5rem 0}td,th{border:1px solid #c8c8d0;padding:.2rem .5rem;text-align:left;vertical-align:top}\
.wide{overflow-x:auto}.changed{background:#fff3c4}.stricter{color:#8a3a00}.looser{color:#a00030}code{font-size:.9em}\
svg{border:1px solid #c8c8d0;max-width:30rem;width:100%;height:auto}small{color:#55555f}";

/// Returns the report as a page without scripts or other files.
pub fn page(report: &BehaviourDiff) -> String {
    let title = format!("{} and {}", report.before, report.after);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (title) }
                p { "Slot " (report.slot) ". Differences on other facts than these are possible." }
                @for function in &report.functions {
                    h2 { (function.function) }
                    p { (asked(function)) }
                    @for group in &function.groups { (difference(group)) }
                    (outcomes(function))
                }
            }
        }
    };

    page.into_string()
}

fn difference(group: &BehaviourGroup) -> Markup {
    let direction = json!(group.direction);
    let direction = direction.as_str().unwrap_or_default();
    let example = &group.counterexample;
    html! {
        h3 { (group.check) " " span class=(direction) { (direction) } small { " " (group.count) " questions" } }
        p { "Begins with: " (example.base) }
        @if !example.changes.is_empty() {
            div class="wide" { table {
                tr { th { "Field" } th { "Known facts" } th { "Here" } }
                @for change in &example.changes {
                    tr { td { code { (change.field) } } td { code { (short(&change.from)) } } td { code { (short(&change.to)) } } }
                }
            } }
        }
        div class="wide" { table {
            tr { th { "Before" } th { "After" } }
            tr {
                td { code { (short(&example.before)) } @if let Some(text) = &example.before_sentence { br; (text) } }
                td { code { (short(&example.after)) } @if let Some(text) = &example.after_sentence { br; (text) } }
            }
        } }
        @for page in &example.pages {
            p { "Page " (page.number) ". Before: blue, solid. After: red, dashed." }
            (drawing::svg(page, &format!("Page {} with the areas of both components", page.number)))
        }
    }
}

/// Returns a value as text of a readable length.
fn short(value: &Value) -> String {
    let text = value.to_string();
    // Cut between characters, because a cut inside one panics.
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Returns the answers about each check or transition. Those of transitions are a matrix: a row for each
/// trigger, a column for each status.
fn outcomes(function: &FunctionDiff) -> Markup {
    let mut cells: BTreeMap<(&str, &str), Vec<_>> = BTreeMap::new();
    for outcome in &function.outcomes {
        // A call without an answer has no transition.
        if let Some((trigger, from)) = outcome.branch.check.split_once(" from ") {
            cells.entry((trigger, from)).or_default().push(outcome);
        }
    }

    // Only functions of the lifecycle name transitions. Others have checks.
    if cells.is_empty() {
        return checks(function);
    }

    let triggers: BTreeSet<&str> = cells.keys().map(|(trigger, _)| *trigger).collect();
    let statuses: BTreeSet<&str> = cells.keys().map(|(_, from)| *from).collect();
    html! {
            h3 { "All transitions" }
            p { "Each cell has the results, and before and after how many combinations of facts have them." }
            div class="wide" { table {
                tr { th { "Trigger" } @for status in &statuses { th { (status) } } }
                @for trigger in &triggers {
                    tr {
                        th { (trigger) }
                        @for status in &statuses { @match cells.get(&(*trigger, *status)) {
                            Some(found) => td class=[found.iter().any(|one| one.before != one.after).then_some("changed")] {
                                @for one in found {
                                    div { (one.branch) " " small { (one.before) " → " (one.after) } }
                                }
                            },
                            None => td {},
                        } }
                    }
                }
            } }
    }
}

fn checks(function: &FunctionDiff) -> Markup {
    html! {
        h3 { "All outcomes" }
        div class="wide" { table {
            tr { th { "Check" } th { "Outcome" } th { "Before" } th { "After" } }
            @for one in &function.outcomes {
                tr class=[(one.before != one.after).then_some("changed")] {
                    td { (one.branch.check) } td { (one.branch) } td { (one.before) } td { (one.after) }
                }
            }
        } }
    }
}
