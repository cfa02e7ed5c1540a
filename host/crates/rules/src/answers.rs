//! Answers of two components to the same question, and how they differ.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::error::ComponentError;
use super::values::kebab;
use holdfast_domain::component_change::{DecisionDifference, DifferenceDirection, DifferenceGroup};

/// Groups of differences in a report.
const GROUPS: usize = 200;
/// Name of the part that reports a failed call.
const FAILURE: &str = "an answer";
/// Begin of the value of a part that reports a refusal.
pub const REFUSED: &str = "refused: ";

/// One value of a component's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerPart {
    /// The check, the transition, or the part of a document.
    pub name: String,
    /// Provision that a check tests. It identifies the check where another component names it otherwise.
    pub reference: Option<String>,
    pub value: Value,
    /// The component's sentence about the value.
    pub sentence: Option<String>,
    /// Whether the value can become stricter or looser. A position of a field cannot.
    pub is_verdict: bool,
}

impl AnswerPart {
    /// Returns a part without a sentence.
    pub fn new(name: impl Into<String>, value: Value) -> Self {
        Self {
            name: name.into(),
            reference: None,
            value,
            sentence: None,
            is_verdict: true,
        }
    }
}

/// A component's answer about a record, in the component's order.
pub type ComponentAnswer = Vec<AnswerPart>;

/// Returns the answer of a call that failed.
pub fn failure(error: &ComponentError) -> ComponentAnswer {
    vec![AnswerPart::new(FAILURE, json!(error.kind.to_string()))]
}

/// Returns the answer of a call by name, part by part: the checks of an evaluation, a transition, the decision
/// about an act, and the members of any other value.
pub fn parts(
    function: &str,
    with: &Map<String, Value>,
    answer: &Result<Value, String>,
) -> ComponentAnswer {
    let answer = match answer {
        Ok(answer) => answer,
        // A failure is an answer too: two components that fail alike do not differ.
        Err(why) => return vec![AnswerPart::new(FAILURE, json!(why))],
    };

    let word = |value: Option<&Value>| {
        let word = value.and_then(Value::as_str);
        word.unwrap_or("nothing").to_owned()
    };
    match function {
        "evaluate" => evaluation(answer),
        "check" => assessment(answer),
        "envelope" | "batch" => {
            let (trigger, from) = (word(with.get("trigger")), word(with.get("current")));
            vec![decision(format!("{trigger} from {from}"), answer)]
        }
        "decide" => {
            let stage = with.get("facts").and_then(|facts| facts.get("stage"));
            let (act, stage) = (word(with.get("act")), word(stage));
            vec![decision(format!("{act} when {stage}"), answer)]
        }
        _ => {
            let mut parts = Vec::new();
            // A certificate is JSON as text.
            let document = answer
                .as_str()
                .and_then(|text| serde_json::from_str::<Value>(text).ok());
            members(function, document.as_ref().unwrap_or(answer), &mut parts);
            parts
        }
    }
}

fn evaluation(answer: &Value) -> ComponentAnswer {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let checks = answer["checks"].as_array().into_iter().flatten();
    checks
        .map(|check| AnswerPart {
            name: text(&check["requirement"]).unwrap_or_default(),
            reference: text(&check["ucc-reference"]),
            value: check["satisfied"].clone(),
            sentence: text(&check["detail"]),
            is_verdict: true,
        })
        .chain([
            AnswerPart::new("compliant", answer["compliant"].clone()),
            AnswerPart::new("score", answer["score"].clone()),
        ])
        .collect()
}

/// Returns the parts of an assessment of funding rules: its decision, and the findings by rule and facts.
pub fn assessment(answer: &Value) -> ComponentAnswer {
    let word = |value: &Value| kebab(value.as_str().unwrap_or_default());
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let decided = match word(&answer["decision"]).as_str() {
        "ready" => json!("ready"),
        other => json!(refused(other)),
    };

    let findings = answer["findings"].as_array().into_iter().flatten();
    let findings = findings.map(|finding| {
        let facts = finding["facts"].as_array().into_iter().flatten();
        let facts: Vec<&str> = facts.filter_map(Value::as_str).collect();
        // Findings about signers and stipulations name no fact; what they expect tells them apart.
        let about = if facts.is_empty() {
            text(&finding["expected"]).unwrap_or_default()
        } else {
            facts.join(", ")
        };
        let value = match word(&finding["severity"]).as_str() {
            "stop" => json!(refused("stop")),
            other => json!(other),
        };

        AnswerPart {
            name: format!("{}: {about}", text(&finding["rule"]).unwrap_or_default()),
            reference: None,
            value,
            sentence: text(&finding["sentence"]),
            is_verdict: true,
        }
    });

    [AnswerPart::new("decision", decided)]
        .into_iter()
        .chain(findings)
        .collect()
}

/// Returns the part for a transition or a decision: its outcome, or the reason of the refusal with its sentence.
fn decision(name: String, answer: &Value) -> AnswerPart {
    let refusal = answer.get("err").or_else(|| answer.get("refused"));
    let Some(refusal) = refusal else {
        return AnswerPart::new(name, answer.get("ok").unwrap_or(answer).clone());
    };

    let text = |member: &str| refusal[member].as_str();
    let sentence = [text("message"), text("source")];
    let sentence: Vec<&str> = sentence.into_iter().flatten().collect();
    AnswerPart {
        name,
        reference: None,
        value: json!(refused(text("reason").unwrap_or_default())),
        sentence: Some(sentence.join("; ")),
        is_verdict: true,
    }
}

/// Returns the value of a part that reports a refusal.
pub fn refused(reason: &str) -> String {
    format!("{REFUSED}{reason}")
}

/// Collects the members of a value under their paths.
fn members(path: &str, value: &Value, parts: &mut ComponentAnswer) {
    let below = |name: &str| format!("{path}/{name}");
    match value {
        Value::Object(inner) if !inner.is_empty() => {
            for (name, value) in inner {
                members(&below(name), value, parts);
            }
        }
        Value::Array(inner) if inner.iter().any(|item| item.is_object() || item.is_array()) => {
            for (at, value) in inner.iter().enumerate() {
                // The requirement identifies a check, at any position in the list.
                let name = value.get("requirement").and_then(Value::as_str);
                let name = name.map_or_else(|| at.to_string(), str::to_owned);
                members(&below(&name), value, parts);
            }
        }
        value => {
            let is_verdict = ["/compliant", "/satisfied", "/score"];
            let mut part = AnswerPart::new(path, value.clone());
            part.is_verdict = is_verdict.iter().any(|end| path.ends_with(end));
            parts.push(part);
        }
    }
}

/// Returns whether the component trapped or exceeded a limit.
pub fn gave_no_answer(answer: &ComponentAnswer) -> bool {
    answer.iter().any(|part| part.name == FAILURE)
}

/// Returns the differing parts of two answers, also those that differ in the sentence only. If only one
/// component has an answer, that is the only difference.
pub fn differences(
    record: &str,
    before: &ComponentAnswer,
    after: &ComponentAnswer,
) -> Vec<DecisionDifference> {
    if gave_no_answer(before) != gave_no_answer(after) {
        let value = |answer: &ComponentAnswer| {
            let failure = answer.iter().find(|part| part.name == FAILURE);
            failure.map_or_else(|| json!("given"), |part| part.value.clone())
        };
        return vec![DecisionDifference {
            record_id: record.into(),
            check: FAILURE.into(),
            direction: DifferenceDirection::Other,
            before: value(before),
            after: value(after),
            before_sentence: None,
            after_sentence: None,
        }];
    }

    pairs(before, after)
        .into_iter()
        .filter_map(|(one, other)| difference(record, one, other))
        .collect()
}

type PartPair<'a> = (Option<&'a AnswerPart>, Option<&'a AnswerPart>);

/// Matches the parts of two answers by name, and the others by the provision.
fn pairs<'a>(before: &'a ComponentAnswer, after: &'a ComponentAnswer) -> Vec<PartPair<'a>> {
    let mut left: Vec<&AnswerPart> = after.iter().collect();
    let mut take = |fits: &dyn Fn(&AnswerPart) -> bool| {
        let place = left.iter().position(|part| fits(part))?;
        Some(left.remove(place))
    };
    let mut pairs: Vec<PartPair<'a>> = before
        .iter()
        .map(|one| (Some(one), take(&|part| part.name == one.name)))
        .collect();
    // Packs of two editions name a check differently, but cite the same provision.
    for (one, other) in &mut pairs {
        let reference = one.and_then(|one| one.reference.as_deref());
        if other.is_none() && reference.is_some() {
            *other = take(&|part| part.reference.as_deref() == reference);
        }
    }

    pairs.extend(left.into_iter().map(|part| (None, Some(part))));
    pairs
}

fn difference(
    record: &str,
    before: Option<&AnswerPart>,
    after: Option<&AnswerPart>,
) -> Option<DecisionDifference> {
    let named = before.or(after)?;
    let value = |part: Option<&AnswerPart>| part.map_or(Value::Null, |part| part.value.clone());
    let sentence = |part: Option<&AnswerPart>| part.and_then(|part| part.sentence.clone());
    let difference = DecisionDifference {
        record_id: record.into(),
        check: named.name.clone(),
        // Only a verdict can become stricter or looser. A position or a date has no such order.
        direction: if named.is_verdict || value(before) == value(after) {
            direction(&value(before), &value(after))
        } else {
            DifferenceDirection::Other
        },
        before: value(before),
        after: value(after),
        before_sentence: sentence(before),
        after_sentence: sentence(after),
    };

    let same = difference.before == difference.after
        && difference.before_sentence == difference.after_sentence;
    (!same).then_some(difference)
}

/// Whether an answer became stricter or looser.
pub fn direction(before: &Value, after: &Value) -> DifferenceDirection {
    use DifferenceDirection::{Looser, Other, Stricter, Text};

    if before == after {
        return Text;
    }

    match (permits(before), permits(after)) {
        (Some(true), Some(false)) => Stricter,
        (Some(false), Some(true)) => Looser,
        _ => match (before.as_f64(), after.as_f64()) {
            (Some(before), Some(after)) if after < before => Stricter,
            (Some(_), Some(_)) => Looser,
            _ => Other,
        },
    }
}

/// Whether a value permits something. `None` for a value that is no permission: a number, a position.
fn permits(value: &Value) -> Option<bool> {
    match value {
        // A check that a component does not have refuses nothing.
        Value::Null => Some(true),
        Value::Bool(satisfied) => Some(*satisfied),
        // A transition leads to a status, or is refused. An act is allowed, or needs a consent.
        Value::String(text) => Some(!text.starts_with(REFUSED)),
        Value::Object(decision) if decision.len() == 1 => Some(false),
        _ => None,
    }
}

/// Differences, grouped by check and direction.
#[derive(Default)]
pub struct DifferenceGroups(BTreeMap<(String, DifferenceDirection), DifferenceGroup>);

impl DifferenceGroups {
    /// Counts a difference. The first one of a group is its example.
    pub fn add(&mut self, difference: &DecisionDifference) {
        let key = (difference.check.clone(), difference.direction);
        // A component with random answers would otherwise make a group for each question.
        if self.0.len() >= GROUPS && !self.0.contains_key(&key) {
            return;
        }

        let group = self.0.entry(key).or_insert_with(|| DifferenceGroup {
            check: difference.check.clone(),
            direction: difference.direction,
            count: 0,
            example: difference.clone(),
        });

        group.count += 1;
    }

    /// Adds the counts of other differences.
    pub fn merge(&mut self, other: Self) {
        for (key, group) in other.0 {
            if let Some(known) = self.0.get_mut(&key) {
                known.count += group.count;
            } else if self.0.len() < GROUPS {
                self.0.insert(key, group);
            }
        }
    }

    /// Returns the groups, those with most differences first.
    pub fn into_sorted(self) -> Vec<DifferenceGroup> {
        let mut groups: Vec<DifferenceGroup> = self.0.into_values().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.count));
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DifferenceDirection::{Looser, Other, Stricter, Text};

    fn check(name: &str, reference: &str, satisfied: bool, sentence: &str) -> AnswerPart {
        AnswerPart {
            name: name.into(),
            reference: Some(reference.into()),
            value: json!(satisfied),
            sentence: Some(sentence.into()),
            is_verdict: true,
        }
    }

    #[test]
    fn a_new_stop_of_funding_rules_is_stricter_and_a_new_note_is_none() {
        let with = |severity: &str, decision: &str| {
            let finding = json!({
                "rule": "box.apr", "severity": severity, "facts": ["apr"], "expected": "7.9",
                "sentence": "The rate is another.",
            });
            assessment(&json!({ "decision": decision, "findings": [finding] }))
        };
        let none = assessment(&json!({ "decision": "Ready", "findings": [] }));

        let found = differences("env_1", &none, &with("Stop", "Refused"));
        let found: Vec<_> = found
            .iter()
            .map(|one| (one.check.as_str(), one.direction))
            .collect();
        assert_eq!(found, [("decision", Stricter), ("box.apr: apr", Stricter)]);
        let found = differences("env_1", &none, &with("Note", "Ready"));
        let directions: Vec<_> = found.iter().map(|one| one.direction).collect();
        assert_eq!(directions, [Other]);
    }

    #[test]
    fn changed_new_and_missing_parts_are_differences() {
        let parts = |parts: &[(&str, Value)]| -> ComponentAnswer {
            let parts = parts.iter();
            parts
                .map(|(name, value)| AnswerPart::new(*name, value.clone()))
                .collect()
        };
        let before = parts(&[
            ("same", json!(true)),
            ("turned", json!(true)),
            ("gone", json!(1)),
        ]);

        let after = parts(&[
            ("turned", json!(false)),
            ("same", json!(true)),
            ("new", json!(2)),
        ]);
        let found: Vec<_> = differences("env_1", &before, &after)
            .into_iter()
            .map(|found| (found.check, found.before, found.after))
            .collect();
        assert_eq!(
            found,
            [
                ("turned".into(), json!(true), json!(false)),
                ("gone".into(), json!(1), Value::Null),
                ("new".into(), Value::Null, json!(2)),
            ]
        );
    }

    #[test]
    fn a_check_under_another_name_is_the_same_check() {
        let before = vec![
            check(
                "Secured party identified",
                "UCC 9-105(b)(2)",
                true,
                "First Bank",
            ),
            check("Custodian assigned", "UCC 9-105(b)(3)", true, "Ada"),
        ];

        let after = vec![
            check("Custodian assigned", "UCC 9-105(b)(3)", true, "Ada"),
            check(
                "Assignee identified",
                "UCC 9-105(b)(2)",
                false,
                "No assignee",
            ),
        ];

        let found = differences("env_1", &before, &after);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].check, "Secured party identified");
        assert_eq!(
            (&found[0].before, &found[0].after),
            (&json!(true), &json!(false))
        );
        assert_eq!(found[0].after_sentence.as_deref(), Some("No assignee"));
        assert_eq!(found[0].direction, Stricter);
    }

    #[test]
    fn other_words_are_a_difference_of_the_text() {
        let before = vec![check("Hash", "UCC 9-105(b)(1)", true, "Hash is stored")];
        let after = vec![check("Hash", "UCC 9-105(b)(1)", true, "The hash is stored")];
        let found = differences("env_1", &before, &after);
        assert_eq!(found[0].direction, Text);
        assert!(differences("env_1", &before, &before).is_empty());
    }

    #[test]
    fn every_change_of_an_answer_has_a_direction() {
        let refused = json!("refused: not now");
        let consent = json!({ "ConsentNeeded": ["Controller"] });
        for (before, after, expected) in [
            (json!(true), json!(false), Stricter),
            (json!(false), json!(true), Looser),
            (Value::Null, json!(false), Stricter),
            (Value::Null, json!(true), Other),
            (json!(false), Value::Null, Looser),
            (json!(100), json!(88), Stricter),
            (json!(88), json!(100), Looser),
            (json!("vaulted"), refused.clone(), Stricter),
            (refused.clone(), json!("vaulted"), Looser),
            (refused, json!("refused: later"), Other),
            (json!("Allowed"), consent.clone(), Stricter),
            (consent, json!("Allowed"), Looser),
            (json!("vaulted"), json!("completed"), Other),
            (json!([1]), json!([2]), Other),
        ] {
            assert_eq!(direction(&before, &after), expected, "{before} to {after}");
        }
    }

    #[test]
    fn groups_count_all_and_keep_one_example() {
        let mut groups = DifferenceGroups::default();
        let before = vec![check("Hash", "", true, "a")];
        let after = vec![check("Hash", "", false, "b")];
        for record in ["env_1", "env_2", "env_3"] {
            for found in differences(record, &before, &after) {
                groups.add(&found);
            }
        }

        let groups = groups.into_sorted();
        assert_eq!((groups.len(), groups[0].count), (1, 3));
        assert_eq!(groups[0].example.record_id, "env_1");
    }
}
