//! Behaviour of rules on generated questions: the branches that one component takes, and the
//! differences between two. It finds differences; that it finds none is no proof that there are none,
//! which is why a report states what was asked.

use std::collections::BTreeMap;
use std::thread;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::answers::{self, AnswerPart, REFUSED, gave_no_answer};
use super::known;
use super::questions::{self, GeneratedQuestion, QuestionSet};
use super::vectors::VectorSet;
use holdfast_domain::component::{ComponentIdentity, Slot};
use holdfast_domain::component_change::{DecisionDifference, DifferenceDirection};

pub use super::program::RulesProgram;
pub use super::questions::{BaseQuestion, QuestionCounts};

/// Seed of the random questions. It is fixed, so that a report can be repeated.
const SEED: u64 = 9_105;
/// Most groups of differences in a report.
const GROUPS: usize = 500;
/// Longest fact that is looked for in a sentence.
const LONGEST: usize = 500;
/// Stands for a fact in a sentence.
const FACT: &str = "…";

/// Differences between two components on generated facts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "slot": "rules.compliance",
    "before": { "name": "holdfast-compliance", "version": "0.1.0", "sha256": "4be1…" },
    "after": { "name": "acme-compliance", "version": "1.2.0", "sha256": "9f86…" },
    "functions": [{
        "function": "evaluate",
        "asked": { "bases": 56, "single": 4900, "pairs": 2500, "all_pairs": 430_000, "random": 2544,
                   "combinations": 0, "exhaustive": false },
        "differing": 210, "failed": 0, "outcomes": [],
        "groups": [{
            "check": "Secured party identified", "direction": "stricter", "count": 210,
            "counterexample": {
                "base": "everything in place",
                "changes": [{ "field": "facts/secured-party/identifier", "from": "NMLS 100200", "to": null }],
                "given": {}, "before": true, "after": false,
                "before_sentence": "The secured party is First Example Bank.",
                "after_sentence": "The secured party has no identifier.",
            },
        }],
    }],
}]))]
pub struct BehaviourDiff {
    pub slot: Slot,
    pub before: ComponentIdentity,
    pub after: ComponentIdentity,
    pub functions: Vec<FunctionDiff>,
}

/// Differences of one function of the slot's interface.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FunctionDiff {
    pub function: String,
    /// What was asked. Differences on other facts are possible.
    pub asked: QuestionCounts,
    /// Number of questions with another answer.
    pub differing: u64,
    /// Number of questions on which one of the two failed.
    pub failed: u64,
    /// Differences by check and direction, those with most questions first.
    pub groups: Vec<BehaviourGroup>,
    /// Every answer of the two about each check, transition or act, and how often it was given. For
    /// transitions this is the whole matrix.
    pub outcomes: Vec<OutcomeCount>,
}

/// Differences about the same check in the same direction.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BehaviourGroup {
    pub check: String,
    pub direction: DifferenceDirection,
    /// Number of questions.
    pub count: u64,
    pub counterexample: Counterexample,
}

/// Smallest found facts on which two components differ.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Counterexample {
    /// Known facts that it begins with.
    pub base: String,
    /// What it changes in them. Without any one of these changes the difference is gone.
    pub changes: Vec<FactChange>,
    /// All parameters.
    pub given: Map<String, Value>,
    pub before: Value,
    pub after: Value,
    pub before_sentence: Option<String>,
    pub after_sentence: Option<String>,
}

/// Change of one field.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FactChange {
    pub field: String,
    pub from: Value,
    pub to: Value,
}

/// How often an answer was given.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutcomeCount {
    #[serde(flatten)]
    pub branch: Branch,
    pub before: u64,
    pub after: u64,
}

/// Answer about a check, transition or act, without the values of the facts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Branch {
    pub check: String,
    /// The value, and the words of the sentence that are no facts.
    pub outcome: String,
}

impl Branch {
    /// Whether another sentence of the same check has all the words of this one, in this order.
    pub fn is_within(&self, longer: &Self) -> bool {
        let mut words = longer.outcome.split(' ');
        self.check == longer.check
            && self.verdict().1 == longer.verdict().1
            && self
                .outcome
                .split(' ')
                .all(|word| words.any(|other| other == word))
    }

    /// Returns the check and the value, without the sentence.
    pub fn verdict(&self) -> (&str, &str) {
        let value = match self.outcome.strip_prefix(REFUSED) {
            Some(refused) => refused.split(": ").next().unwrap_or_default(),
            None => self.outcome.split(": ").next().unwrap_or_default(),
        };
        (&self.check, value)
    }
}

/// Branches that a component takes on generated questions, with an example of each.
pub type Branches = BTreeMap<Branch, Map<String, Value>>;

/// What the questions of a comparison begin with, and how many are asked.
#[derive(Clone, Default)]
pub struct QuestionPlan {
    /// Vectors of the two teams.
    pub vectors: Vec<VectorSet>,
    /// Recorded calls, by function, with names of the host or of the WIT package.
    pub recorded: BTreeMap<String, Vec<BaseQuestion>>,
    /// Most questions for each function.
    pub most: usize,
    /// Threads that ask.
    pub threads: usize,
}

/// Compares two components of a slot.
pub fn compare(before: &RulesProgram, after: &RulesProgram, plan: &QuestionPlan) -> BehaviourDiff {
    let shared = before.functions().keys();
    let shared = shared.filter(|name| after.functions().contains_key(*name));
    // Decisions first: documents repeat them.
    let (decide, others): (Vec<_>, Vec<_>) = shared.partition(|name| is_decision(name));
    let functions = decide.into_iter().chain(others).map(|name| {
        let set = plan.questions(before, name);
        FunctionComparison::of(before, after, name, &set, plan.threads)
            .finish(before, after, name, &set)
    });
    BehaviourDiff {
        slot: before.slot,
        before: before.identity.clone(),
        after: after.identity.clone(),
        functions: functions.collect(),
    }
}

impl QuestionPlan {
    fn questions(&self, rules: &RulesProgram, function: &str) -> QuestionSet {
        let signature = &rules.functions()[function].signature;
        let own = self.vectors.iter().flat_map(|set| &set.vectors);
        let own = own.filter(|vector| vector.call == function);
        let own = own.map(|vector| BaseQuestion {
            name: vector.name.clone(),
            with: vector.given.clone(),
        });
        let recorded = self.recorded.get(function).into_iter().flatten().cloned();
        let bases = known::calls(rules.slot, function).into_iter();
        let bases = bases.chain(own).chain(recorded);
        let bases = bases.map(|base| known::with_wit_names(signature, &base));
        questions::generate(signature, bases.collect(), self.most, SEED)
    }
}

impl BehaviourDiff {
    /// Returns whether no difference was found.
    pub fn is_equal(&self) -> bool {
        self.functions.iter().all(|one| one.differing == 0)
    }
}

/// Comparison of one function, or of a part of its questions.
#[derive(Default)]
struct FunctionComparison {
    differing: u64,
    failed: u64,
    groups: BTreeMap<(String, DifferenceDirection), (u64, GeneratedQuestion)>,
    outcomes: BTreeMap<Branch, (u64, u64)>,
}

impl FunctionComparison {
    /// Asks all questions.
    fn of(
        before: &RulesProgram,
        after: &RulesProgram,
        function: &str,
        set: &QuestionSet,
        threads: usize,
    ) -> Self {
        let size = set.questions.len().div_ceil(threads.max(1)).max(1);
        let compared = thread::scope(|scope| {
            let chunks = set.questions.chunks(size);
            let running: Vec<_> = chunks
                .map(|chunk| {
                    scope.spawn(move || {
                        let mut part = Self::default();
                        for question in chunk {
                            part.ask([before, after], function, set, question);
                        }
                        part
                    })
                })
                .collect();
            let done = running.into_iter().filter_map(|thread| thread.join().ok());
            done.collect::<Vec<_>>()
        });
        let mut all = Self::default();
        for part in compared {
            all.add(part);
        }
        all
    }

    fn ask(
        &mut self,
        rules: [&RulesProgram; 2],
        function: &str,
        set: &QuestionSet,
        question: &GeneratedQuestion,
    ) {
        let with = set.parameters(question);
        let answers = rules.map(|rules| rules.call(function, &with));
        let equal = answers[0] == answers[1];
        let before = answers::parts(function, &with, &answers[0]);
        let after = match equal {
            true => before.clone(),
            false => answers::parts(function, &with, &answers[1]),
        };
        if is_decision(function) {
            let texts = texts_of(&with);
            for part in &before {
                let outcome = self.outcomes.entry(branch(part, &texts)).or_default();
                *outcome = (outcome.0 + 1, outcome.1 + u64::from(equal));
            }
            for part in after.iter().filter(|_| !equal) {
                self.outcomes.entry(branch(part, &texts)).or_default().1 += 1;
            }
        }
        if equal {
            return;
        }
        self.differing += 1;
        self.failed += u64::from(gave_no_answer(&before) || gave_no_answer(&after));
        for difference in answers::differences("", &before, &after) {
            let known = self.groups.len();
            let key = (difference.check, difference.direction);
            match self.groups.get_mut(&key) {
                Some((count, example)) => {
                    *count += 1;
                    if question.edits.len() < example.edits.len() {
                        *example = question.clone();
                    }
                }
                None if known < GROUPS => {
                    self.groups.insert(key, (1, question.clone()));
                }
                None => {}
            }
        }
    }

    fn add(&mut self, part: Self) {
        self.differing += part.differing;
        self.failed += part.failed;
        for (key, (count, question)) in part.groups {
            let group = self
                .groups
                .entry(key)
                .or_insert_with(|| (0, question.clone()));
            group.0 += count;
            if question.edits.len() < group.1.edits.len() {
                group.1 = question;
            }
        }
        for (branch, (before, after)) in part.outcomes {
            let outcome = self.outcomes.entry(branch).or_default();
            *outcome = (outcome.0 + before, outcome.1 + after);
        }
    }

    /// Shrinks the examples and sorts the report.
    fn finish(
        self,
        before: &RulesProgram,
        after: &RulesProgram,
        function: &str,
        set: &QuestionSet,
    ) -> FunctionDiff {
        let difference = |question: &GeneratedQuestion, key: &(String, DifferenceDirection)| {
            let with = set.parameters(question);
            let parts = [before, after]
                .map(|rules| answers::parts(function, &with, &rules.call(function, &with)));
            let found = answers::differences("", &parts[0], &parts[1]);
            found
                .into_iter()
                .find(|one| one.check == key.0 && one.direction == key.1)
        };
        let mut groups: Vec<BehaviourGroup> = self
            .groups
            .into_iter()
            .filter_map(|(key, (count, question))| {
                let question = set.shrunk(&question, |smaller| difference(smaller, &key).is_some());
                let found = difference(&question, &key)?;
                Some(BehaviourGroup {
                    counterexample: counterexample(set, &question, found),
                    check: key.0,
                    direction: key.1,
                    count,
                })
            })
            .collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.count));
        let outcomes = merged(self.outcomes, |known, one| {
            *known = (known.0 + one.0, known.1 + one.1);
        });
        let outcomes = outcomes.into_iter();
        FunctionDiff {
            function: function.to_owned(),
            asked: set.counts,
            differing: self.differing,
            failed: self.failed,
            groups,
            outcomes: outcomes
                .map(|(branch, (before, after))| OutcomeCount {
                    branch,
                    before,
                    after,
                })
                .collect(),
        }
    }
}

fn counterexample(
    set: &QuestionSet,
    question: &GeneratedQuestion,
    found: DecisionDifference,
) -> Counterexample {
    let base = &set.bases[question.base];
    let changes = question.edits.iter().map(|edit| {
        let field = edit.path.join("/");
        let known = base.with.get(&edit.path[0]).unwrap_or(&Value::Null);
        let from = edit.path[1..].iter().fold(known, |value, name| {
            match value {
                Value::Array(items) => name.parse().ok().and_then(|at: usize| items.get(at)),
                value => value.get(name),
            }
            .unwrap_or(&Value::Null)
        });
        FactChange {
            field,
            from: from.clone(),
            to: edit.to.clone(),
        }
    });
    Counterexample {
        base: base.name.clone(),
        changes: changes.collect(),
        given: set.parameters(question),
        before: found.before,
        after: found.after,
        before_sentence: found.before_sentence,
        after_sentence: found.after_sentence,
    }
}

/// Returns the branches that rules take on generated questions.
pub fn branches(rules: &RulesProgram, plan: &QuestionPlan) -> Branches {
    let mut found = Branches::new();
    for function in rules.functions().keys().filter(|name| is_decision(name)) {
        let set = plan.questions(rules, function);
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

/// Returns the branches that rules take on one call. None if the function does not decide.
pub fn taken(rules: &RulesProgram, function: &str, with: &Map<String, Value>) -> Vec<Branch> {
    if !is_decision(function) {
        return Vec::new();
    }
    let answer = answers::parts(function, with, &rules.call(function, with));
    let texts = texts_of(with);
    // A score is the sum of the checks.
    let checks = answer.iter().filter(|part| !part.value.is_number());
    checks.map(|part| branch(part, &texts)).collect()
}

/// Whether a function's answers are few, apart from the facts that they repeat.
fn is_decision(function: &str) -> bool {
    ["evaluate", "envelope", "batch", "decide"].contains(&function)
}

fn branch(part: &AnswerPart, texts: &[String]) -> Branch {
    let value = match &part.value {
        Value::Bool(true) => "satisfied".to_owned(),
        Value::Bool(false) => "not satisfied".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let outcome = match &part.sentence {
        Some(sentence) => format!("{value}: {}", without_facts(sentence, texts)),
        None => value,
    };
    Branch {
        check: part.name.clone(),
        outcome,
    }
}

/// Returns the texts among parameters, the longest first.
fn texts_of(with: &Map<String, Value>) -> Vec<String> {
    fn collect(value: &Value, texts: &mut Vec<String>) {
        match value {
            Value::String(text) if text.trim().len() > 1 && text.len() <= LONGEST => {
                texts.push(text.trim().to_owned());
                texts.push(text.replace('-', "_"));
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
            Value::Object(members) => members.values().for_each(|item| collect(item, texts)),
            _ => {}
        }
    }
    let mut texts = Vec::new();
    with.values().for_each(|value| collect(value, &mut texts));
    texts.sort_unstable_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
    texts.dedup();
    texts
}

/// Returns the words of a sentence that are neither facts nor numbers.
fn without_facts(sentence: &str, texts: &[String]) -> String {
    let mut plain = sentence.to_owned();
    for text in texts.iter().filter(|text| sentence.contains(text.as_str())) {
        plain = plain.replace(text.as_str(), FACT);
    }
    let words = plain.split_whitespace();
    let words = words
        .map(|word| word.trim_matches(|letter: char| !letter.is_alphanumeric() && letter != '…'));
    let words = words.filter(|word| {
        !word.is_empty()
            && !word.contains(FACT)
            && !word.contains(|letter: char| letter.is_ascii_digit())
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Merges branches that differ by a word which is also a fact, by chance: the longer sentence stays.
fn merged<V>(found: BTreeMap<Branch, V>, add: impl Fn(&mut V, V)) -> BTreeMap<Branch, V> {
    let mut found: Vec<(Branch, V)> = found.into_iter().collect();
    found.sort_by_key(|(branch, _)| std::cmp::Reverse(branch.outcome.len()));
    let mut kept: Vec<(Branch, V)> = Vec::new();
    for (branch, value) in found {
        match kept.iter_mut().find(|(longer, _)| branch.is_within(longer)) {
            Some((_, known)) => add(known, value),
            None => kept.push((branch, value)),
        }
    }
    kept.into_iter().collect()
}
