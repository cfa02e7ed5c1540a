//! Branches of rules: the results of a check, transition or act with the sentences about them.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::answers::{self, AnswerPart};
use super::behaviour::QuestionPlan;
use super::program::RulesProgram;
use super::questions::GeneratedQuestion;

/// Bytes of a value, and of a sentence in a branch.
const MAX_TEXT: usize = 300;
/// Longest sentence in which facts are looked for, in bytes.
const MAX_SENTENCE: usize = 2_000;
/// Longest fact that is looked for in a sentence, in bytes.
const MAX_FACT: usize = 500;
/// Stands for a fact in a sentence.
const FACT: char = '…';

/// Answer about a check, transition or act, without the facts that it repeats.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Branch {
    pub check: String,
    /// `satisfied`, `not satisfied`, a status, a decision, or `refused: ` with the reason.
    pub value: String,
    /// The words of the sentence that are neither facts nor numbers.
    pub sentence: String,
}

impl Branch {
    /// Whether another branch has the same result, and all words of this one in this order.
    pub fn is_within(&self, longer: &Self) -> bool {
        let mut words = longer.sentence.split(' ');
        let mut own = self.sentence.split(' ').filter(|word| !word.is_empty());
        self.outcome() == longer.outcome() && own.all(|word| words.any(|other| other == word))
    }

    /// Returns the check and its result.
    pub fn outcome(&self) -> (&str, &str) {
        (&self.check, &self.value)
    }
}

/// The result and the sentence.
impl fmt::Display for Branch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.sentence.is_empty() {
            formatter.write_str(&self.value)
        } else {
            write!(formatter, "{}: {}", self.value, self.sentence)
        }
    }
}

/// Branches that a component takes on generated questions, with an example of each.
pub type Branches = BTreeMap<Branch, Map<String, Value>>;

/// Returns the branches that rules take on generated questions.
pub fn branches(rules: &RulesProgram, plan: &QuestionPlan) -> Branches {
    let mut found = Branches::new();
    for function in rules.functions().keys() {
        let set = plan.questions(rules, function);
        // Simple questions come first, so each branch gets an example with few changes.
        let mut questions: Vec<&GeneratedQuestion> = set.questions.iter().collect();
        questions.sort_by_key(|question| question.edits.len());

        for question in questions {
            let with = set.parameters(question);
            for branch in taken(rules, function, &with) {
                found.entry(branch).or_insert_with(|| with.clone());
            }
        }
    }

    merged(found, |_, _| {})
}

/// Returns the branches that rules take on one call. None for a document, as a certificate.
pub fn taken(rules: &RulesProgram, function: &str, with: &Map<String, Value>) -> Vec<Branch> {
    let answer = rules.call(function, with);
    if !is_decision(function) {
        return answer
            .iter()
            .filter_map(|answer| reading(function, answer))
            .collect();
    }

    let answer = answers::parts(function, with, &answer);
    let texts = texts_of(with);

    // A score is the sum of the checks.
    let checks = answer.iter().filter(|part| !part.value.is_number());
    checks.map(|part| branch_of(part, &texts)).collect()
}

/// Returns the branch of a call that reads a document: whether it succeeds, or the codes of its errors.
fn reading(function: &str, answer: &Value) -> Option<Branch> {
    if answer.get("ok").is_some() {
        return Some(Branch {
            check: function.to_owned(),
            value: "answered".into(),
            sentence: String::new(),
        });
    }

    let error = answer.get("err")?;
    let issues = error["rejected"].as_array().into_iter().flatten();
    // Order and number of equal faults make no other branch.
    let mut codes: Vec<&str> = issues.filter_map(|issue| issue["code"].as_str()).collect();
    codes.sort_unstable();
    codes.dedup();
    let codes = match (codes.is_empty(), error) {
        (false, _) => codes.join(" "),
        (true, Value::Object(case)) => case.keys().next()?.clone(),
        (true, other) => other.as_str()?.to_owned(),
    };

    Some(Branch {
        check: function.to_owned(),
        value: answers::refused(&codes),
        sentence: String::new(),
    })
}

/// Whether a function's answers are few, apart from the facts that they repeat.
pub(super) fn is_decision(function: &str) -> bool {
    ["evaluate", "envelope", "batch", "decide", "check"].contains(&function)
}

/// Returns the branch of a part of an answer. `texts` are the facts.
pub(super) fn branch_of(part: &AnswerPart, texts: &[String]) -> Branch {
    let value = match &part.value {
        Value::Bool(true) => "satisfied".to_owned(),
        Value::Bool(false) => "not satisfied".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };

    let sentence = match &part.sentence {
        Some(sentence) if sentence.len() > MAX_SENTENCE => "a long text".to_owned(),
        Some(sentence) => without_facts(sentence, texts),
        None => String::new(),
    };
    let shortened = |mut text: String| {
        text.truncate(text.floor_char_boundary(MAX_TEXT));
        text
    };

    Branch {
        check: part.name.clone(),
        value: shortened(value),
        sentence: shortened(sentence),
    }
}

/// Returns the texts among parameters, the longest first.
pub(super) fn texts_of(with: &Map<String, Value>) -> Vec<String> {
    fn collect(value: &Value, texts: &mut Vec<String>) {
        match value {
            Value::String(text) if text.trim().len() > 1 && text.len() <= MAX_FACT => {
                texts.push(text.trim().to_owned());
                // Sentences use either spelling of a word.
                texts.push(text.replace('-', "_"));
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
            Value::Object(members) => members.values().for_each(|item| collect(item, texts)),
            _ => {}
        }
    }

    let mut texts = Vec::new();
    with.values().for_each(|value| collect(value, &mut texts));
    // A short fact inside a longer one would leave a rest of it in the sentence.
    texts.sort_unstable_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
    texts.dedup();

    texts
}

/// Returns the words of a sentence that are neither facts nor numbers.
fn without_facts(sentence: &str, texts: &[String]) -> String {
    let mut plain = sentence.to_owned();
    for text in texts.iter().filter(|text| sentence.contains(text.as_str())) {
        plain = plain.replace(text.as_str(), &FACT.to_string());
    }

    let words = plain.split_whitespace();
    let words = words
        .map(|word| word.trim_matches(|letter: char| !letter.is_alphanumeric() && letter != FACT));
    let words = words.filter(|word| {
        !word.is_empty()
            && !word.contains(FACT)
            && !word.contains(|letter: char| letter.is_ascii_digit())
    });

    words.collect::<Vec<_>>().join(" ")
}

/// Merges branches that differ by a word which is also a fact, by chance: the longer sentence stays.
pub(super) fn merged<V>(
    found: BTreeMap<Branch, V>,
    add: impl Fn(&mut V, V),
) -> BTreeMap<Branch, V> {
    let mut found: Vec<(Branch, V)> = found.into_iter().collect();
    found.sort_by_key(|(branch, _)| std::cmp::Reverse(branch.sentence.len()));
    let mut kept: Vec<(Branch, V)> = Vec::new();
    for (branch, value) in found {
        match kept.iter_mut().find(|(longer, _)| branch.is_within(longer)) {
            Some((_, known)) => add(known, value),
            None => kept.push((branch, value)),
        }
    }

    kept.into_iter().collect()
}
