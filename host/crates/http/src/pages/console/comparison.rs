//! Differences between two components: a picture of the changed verdicts, and tables of everything.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde_json::Value;

use super::graph::{BarGraph, BarPart, BarRow};
use holdfast_adapters::texts::Texts;
use holdfast_components::drawing;
use holdfast_domain::component_change::{BehaviourGroup, DifferenceDirection, DifferenceGroup};

/// Checks in a picture, those with most changed verdicts. The tables have all.
const DRAWN: usize = 20;

/// Differences about one check.
struct ChangedCheck<'a> {
    name: &'a str,
    direction: DifferenceDirection,
    /// Number of records or questions.
    count: u64,
    /// Values of the example.
    before: &'a Value,
    after: &'a Value,
}

/// Renders differences on past records.
pub fn past_groups(texts: Texts, groups: &[DifferenceGroup]) -> Markup {
    let changed = groups.iter().map(|group| ChangedCheck {
        name: &group.check,
        direction: group.direction,
        count: group.count,
        before: &group.example.before,
        after: &group.example.after,
    });
    let (reworded, others): (Vec<_>, Vec<_>) = groups
        .iter()
        .partition(|group| group.direction == DifferenceDirection::Text);

    html! {
        (verdicts(texts, "rules-changed-records", changed))
        (tables(texts, past_table(texts, &others), others.len(), past_table(texts, &reworded), reworded.len()))
    }
}

/// Renders differences on generated facts, each with its smallest counterexample.
pub fn generated_groups(texts: Texts, groups: &[BehaviourGroup]) -> Markup {
    let changed = groups.iter().map(|group| ChangedCheck {
        name: &group.check,
        direction: group.direction,
        count: group.count,
        before: &group.counterexample.before,
        after: &group.counterexample.after,
    });
    let (reworded, others): (Vec<_>, Vec<_>) = groups
        .iter()
        .partition(|group| group.direction == DifferenceDirection::Text);

    html! {
        (verdicts(texts, "rules-changed-questions", changed))
        (tables(texts, generated_table(texts, &others), others.len(), generated_table(texts, &reworded), reworded.len()))
        @for page in groups.iter().flat_map(|group| &group.counterexample.pages) {
            figure.page-drawing {
                (drawing::svg(page, &texts.with("rules-page", [("number", page.number)])))
                figcaption { (texts.with("rules-page", [("number", page.number)])) }
            }
        }
    }
}

/// Renders the numbers of changed verdicts by check; nothing if there are none.
fn verdicts<'a>(
    texts: Texts,
    title: &'static str,
    changed: impl Iterator<Item = ChangedCheck<'a>>,
) -> Markup {
    let mut checks: BTreeMap<&str, [i64; 2]> = BTreeMap::new();
    for check in changed {
        // A lower score is stricter, too, and no verdict.
        if check.before.is_number() || check.after.is_number() {
            continue;
        }

        let place = match check.direction {
            DifferenceDirection::Stricter => 0,
            DifferenceDirection::Looser => 1,
            DifferenceDirection::Text | DifferenceDirection::Other => continue,
        };
        let count = i64::try_from(check.count).unwrap_or(i64::MAX);
        let counts = checks.entry(check.name).or_default();
        counts[place] = counts[place].saturating_add(count);
    }
    if checks.is_empty() {
        return html! {};
    }

    let mut checks: Vec<_> = checks.into_iter().collect();
    checks.sort_by_key(|(_, [fail, pass])| std::cmp::Reverse(fail.saturating_add(*pass)));
    checks.truncate(DRAWN);
    let rows = checks.into_iter().map(|(name, counts)| {
        let name = check_name(name);
        BarRow::new(name.clone(), name, counts.into())
    });
    let part = |(name, class)| BarPart {
        name: texts.text(name),
        class,
    };

    BarGraph {
        title: texts.text(title),
        of_rows: texts.text("rules-check"),
        parts: [("rules-now-fails", "bad"), ("rules-now-passes", "good")]
            .map(part)
            .into(),
        rows: rows.collect(),
        as_table: texts.text("graph-table"),
    }
    .lying()
}

/// Renders the table of the differences, and that of the changed sentences folded below it.
fn tables(
    texts: Texts,
    others: Markup,
    number_of_others: usize,
    reworded: Markup,
    number_of_reworded: usize,
) -> Markup {
    html! {
        @if number_of_others > 0 { (others) }
        @if number_of_reworded > 0 {
            details {
                summary { (texts.with("rules-text-only", [("count", number_of_reworded)])) }
                (reworded)
            }
        }
        @if number_of_others + number_of_reworded == 0 { p { (texts.text("rules-no-difference")) } }
    }
}

fn past_table(texts: Texts, groups: &[&DifferenceGroup]) -> Markup {
    let columns = [
        "rules-check",
        "rules-direction",
        "rules-count",
        "rules-before",
        "rules-after",
        "rules-example",
    ];
    let rows = html! {
        @for group in groups {
            @let one = &group.example;
            tr {
                td { (check_name(&group.check)) }
                td { (direction(texts, group.direction)) }
                td { (group.count) }
                td { (said(texts, &one.before, one.before_sentence.as_deref())) }
                td { (said(texts, &one.after, one.after_sentence.as_deref())) }
                td { code { (one.record_id) } }
            }
        }
    };
    scrolling(texts, &columns, rows)
}

fn generated_table(texts: Texts, groups: &[&BehaviourGroup]) -> Markup {
    let columns = [
        "rules-check",
        "rules-direction",
        "rules-count",
        "rules-facts",
        "rules-before",
        "rules-after",
    ];

    let rows = html! {
        @for group in groups {
            @let one = &group.counterexample;
            tr {
                td { (check_name(&group.check)) }
                td { (direction(texts, group.direction)) }
                td { (group.count) }
                td {
                    (one.base)
                    @for change in &one.changes {
                        br;
                        // Authors of rules know the path.
                        span title=(change.field) { (fact_name(&change.field)) } ": "
                        code { (plain(texts, &change.from)) " → " (plain(texts, &change.to)) }
                    }
                }
                td { (said(texts, &one.before, one.before_sentence.as_deref())) }
                td { (said(texts, &one.after, one.after_sentence.as_deref())) }
            }
        }
    };

    scrolling(texts, &columns, rows)
}

/// Renders a table that scrolls on a phone.
fn scrolling(texts: Texts, columns: &[&'static str], rows: Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(texts.text("rules-differences")) {
            table {
                thead { tr { @for column in columns { th scope="col" { (texts.text(column)) } } } }
                tbody { (rows) }
            }
        }
    }
}

/// Returns the name of a fact, such as `Secured party › identifier` for `facts/secured-party/identifier`. Places in
/// lists are counted from 1.
fn fact_name(path: &str) -> String {
    let path = path.strip_prefix("facts/").unwrap_or(path);
    let steps = path.split('/').map(|step| match step.parse::<usize>() {
        Ok(place) => place.saturating_add(1).to_string(),
        Err(_) => step.replace(['-', '_'], " "),
    });
    let name = steps.collect::<Vec<_>>().join(" › ");

    let mut letters = name.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => name,
    }
}

/// Returns the name of a check, which is a path if it is a part of a document.
fn check_name(name: &str) -> String {
    // A name in words may have a slash as well.
    if name.contains('/') && !name.contains(" / ") {
        fact_name(name)
    } else {
        name.to_owned()
    }
}

fn plain(texts: Texts, value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => texts.text("yes"),
        Value::Bool(false) => texts.text("no"),
        other => other.to_string(),
    }
}

fn said(texts: Texts, value: &Value, sentence: Option<&str>) -> Markup {
    html! {
        code { (plain(texts, value)) }
        @if let Some(sentence) = sentence { br; (sentence) }
    }
}

fn direction(texts: Texts, direction: DifferenceDirection) -> String {
    texts.text(match direction {
        DifferenceDirection::Stricter => "direction-stricter",
        DifferenceDirection::Looser => "direction-looser",
        DifferenceDirection::Text => "direction-text",
        DifferenceDirection::Other => "direction-other",
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use holdfast_domain::component_change::DecisionDifference;

    fn group(
        check: &str,
        direction: DifferenceDirection,
        count: u64,
        values: (Value, Value),
    ) -> DifferenceGroup {
        DifferenceGroup {
            check: check.into(),
            direction,
            count,
            example: DecisionDifference {
                record_id: "env_1".into(),
                check: check.into(),
                direction,
                before: values.0,
                after: values.1,
                before_sentence: None,
                after_sentence: Some("In other words.".into()),
            },
        }
    }

    #[test]
    fn the_picture_has_the_changed_verdicts_and_texts_are_folded() {
        use DifferenceDirection::{Looser, Stricter, Text};

        let groups = [
            group("Signed", Stricter, 7, (json!(true), json!(false))),
            group("Signed", Looser, 2, (json!(false), json!(true))),
            group("score", Stricter, 7, (json!(100), json!(90))),
            group("Worded", Text, 40, (json!(true), json!(true))),
        ];
        let page = past_groups(Texts::default(), &groups).into_string();
        let row = r#"<tr><th scope="row">Signed</th><td>7</td><td>2</td></tr>"#;
        assert!(page.contains(row), "{page}");
        assert!(!page.contains(r#"<th scope="row">score"#), "{page}");
        assert!(!page.contains(r#"<th scope="row">Worded"#), "{page}");
        assert!(
            page.contains("<code>Yes</code>") && !page.contains("true"),
            "{page}"
        );

        let (shown, folded) = page.split_once("Only texts differ: 1").unwrap();
        assert!(shown.contains("<td>score</td>") && !shown.contains("<td>Worded</td>"));
        assert!(folded.contains("<td>Worded</td>") && !folded.contains("<td>Signed</td>"));
    }

    #[test]
    fn only_changed_texts_have_no_picture() {
        let texts = (json!(true), json!(true));
        let groups = [group("Worded", DifferenceDirection::Text, 40, texts)];
        let page = past_groups(Texts::default(), &groups).into_string();
        assert!(
            !page.contains("<svg") && page.contains("<details>"),
            "{page}"
        );
        let none = past_groups(Texts::default(), &[]).into_string();
        assert_eq!(none, "<p>No difference.</p>");
    }

    #[test]
    fn facts_have_names_instead_of_paths() {
        for (path, name) in [
            (
                "facts/secured-party/identifier",
                "Secured party › identifier",
            ),
            ("facts/signers/0/completed_at", "Signers › 1 › completed at"),
            ("trigger", "Trigger"),
            ("", ""),
        ] {
            assert_eq!(fact_name(path), name);
        }

        assert_eq!(check_name("sign from sent"), "sign from sent");
        assert_eq!(check_name("Consent / disclosure"), "Consent / disclosure");
        assert_eq!(check_name("certificate/score"), "Certificate › score");
    }
}
