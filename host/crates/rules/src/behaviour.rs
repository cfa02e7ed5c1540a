//! Differences between the answers of two components to generated questions. A report without
//! differences does not prove that there are none, so each report has the number of questions.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::answers::{self, ComponentAnswer};
use super::branches::{Branch, branch_of, is_decision, merged, texts_of};
use super::drawing;
use super::known;
use super::questions::{self, GeneratedQuestion, QuestionSet};
use super::vectors::VectorSet;
use holdfast_domain::component::{ComponentIdentity, Slot};
use holdfast_domain::component_change::{Counterexample, DecisionDifference, DifferenceDirection};

pub use holdfast_domain::component_change::{BehaviourGroup, DrawnPage, FactChange};

pub use super::program::RulesProgram;
pub use super::questions::{BaseQuestion, QuestionCounts};

/// Seed of the random questions. It is fixed, so that a report can be repeated.
const SEED: u64 = 9_105;
/// Groups of differences in a report.
const MAX_GROUPS: usize = 500;
/// Groups with drawn pages.
const MAX_DRAWN: usize = 5;
/// Outcomes of a component in a report.
const MAX_OUTCOMES: usize = 2_000;
/// Bytes of a sentence or value in a report.
const MAX_SENTENCE: usize = 2_000;
/// Letters of an excerpt, and of its part before the difference.
const EXCERPT: usize = 120;
const BEFORE_DIFFERENCE: usize = 40;
/// Questions that a thread takes at once.
const CHUNK: usize = 250;

/// Differences between two components on generated facts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "slot": "rules.compliance",
    "before": { "name": "holdfast-compliance", "version": "0.1.0", "sha256": "4be1…" },
    "after": { "name": "acme-compliance", "version": "1.2.0", "sha256": "9f86…" },
    "functions": [{
        "function": "evaluate",
        "asked": { "bases": 28, "single": 5000, "all_single": 9083, "pairs": 2500, "all_pairs": 1_430_992,
                   "random": 2500, "combinations": 0, "exhaustive": false },
        "stopped_after": null, "differing": 210, "failed": 0, "unanswered": 0, "left_out": 0, "outcomes": [],
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
    /// The questions. Differences on other facts are possible.
    pub asked: QuestionCounts,
    /// Number of questions that were asked, if the time did not suffice for all.
    pub stopped_after: Option<u64>,
    /// Number of questions with another answer.
    pub differing: u64,
    /// Number of questions on which one of the two failed.
    pub failed: u64,
    /// Number of questions on which both failed. They show nothing.
    pub unanswered: u64,
    /// Differences by check and direction, those with most questions first. At most 500.
    pub groups: Vec<BehaviourGroup>,
    /// Number of differences without a group.
    pub left_out: u64,
    /// Every answer of the two about each check, transition or act, and how often it was given. For
    /// transitions this is the whole matrix.
    pub outcomes: Vec<OutcomeCount>,
}

/// How often an answer was given.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutcomeCount {
    #[serde(flatten)]
    pub branch: Branch,
    pub before: u64,
    pub after: u64,
}

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
    /// Time after which no further question is asked.
    pub time: Option<Duration>,
}

/// Compares two components of a slot.
pub fn compare(before: &RulesProgram, after: &RulesProgram, plan: &QuestionPlan) -> BehaviourDiff {
    let deadline = plan.time.map(|time| Instant::now() + time);
    let shared = before.functions().keys();
    let shared = shared.filter(|name| after.functions().contains_key(*name));

    // Decisions first: documents repeat them.
    let (decide, others): (Vec<_>, Vec<_>) = shared.partition(|name| is_decision(name));
    let functions = decide.into_iter().chain(others).map(|name| {
        let set = plan.questions(before, name);
        let comparison = Comparison::new([before, after], name, &set, deadline);
        comparison.report(comparison.ask(plan.threads))
    });

    BehaviourDiff {
        slot: before.slot,
        before: before.identity.clone(),
        after: after.identity.clone(),
        functions: functions.collect(),
    }
}

impl QuestionPlan {
    /// Returns the questions for a function.
    pub(super) fn questions(&self, rules: &RulesProgram, function: &str) -> QuestionSet {
        let signature = &rules.functions()[function].signature;
        let own = self.vectors.iter().flat_map(|set| &set.vectors);
        let own = own.filter(|vector| vector.call == function);
        let own = own.map(|vector| BaseQuestion {
            name: vector.name.clone(),
            with: vector.given.clone(),
        });

        let recorded = self.recorded.get(function).into_iter().flatten().cloned();
        // The team's own vectors come first, because the number of bases is limited.
        let bases = own
            .chain(recorded)
            .chain(known::calls(rules.slot, function));
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

/// A check and the direction of its difference.
type DifferenceKey = (String, DifferenceDirection);

/// Comparison of one function.
struct Comparison<'a> {
    rules: [&'a RulesProgram; 2],
    function: &'a str,
    set: &'a QuestionSet,
    deadline: Option<Instant>,
    /// Differences on each base without edits.
    of_bases: Vec<BTreeSet<DifferenceKey>>,
}

/// Answers to some of the questions.
#[derive(Default)]
struct ComparedAnswers {
    asked: u64,
    differing: u64,
    failed: u64,
    unanswered: u64,
    left_out: u64,
    groups: BTreeMap<DifferenceKey, ExampleGroup>,
    outcomes: [BTreeMap<Branch, u64>; 2],
}

/// Questions with the same difference.
struct ExampleGroup {
    count: u64,
    question: GeneratedQuestion,
    difference: DecisionDifference,
    /// Lowest for the best example: the components agree on its base, it has few edits, and its base is listed
    /// early.
    rank: (bool, usize, usize),
}

impl<'a> Comparison<'a> {
    fn new(
        rules: [&'a RulesProgram; 2],
        function: &'a str,
        set: &'a QuestionSet,
        deadline: Option<Instant>,
    ) -> Self {
        let mut new = Self {
            rules,
            function,
            set,
            deadline,
            of_bases: vec![BTreeSet::new(); set.bases.len()],
        };

        // Combinations have no edits, and so no other question with their base.
        for question in set.questions.iter().take(set.counts.bases) {
            if new.is_over() {
                break;
            }
            // A difference of the base is not caused by an edit, so examples with it rank behind others.
            let found = new.differences(question).into_iter();
            new.of_bases[question.base] = found.map(|one| (one.check, one.direction)).collect();
        }

        new
    }

    fn is_over(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
    }

    fn answers(&self, question: &GeneratedQuestion) -> ComparedAnswer {
        let with = self.set.parameters(question);
        let raw = self.rules.map(|rules| rules.call(self.function, &with));
        let parts = raw
            .each_ref()
            .map(|answer| answers::parts(self.function, &with, answer));
        ComparedAnswer { with, raw, parts }
    }

    fn differences(&self, question: &GeneratedQuestion) -> Vec<DecisionDifference> {
        self.answers(question).differences()
    }

    /// Asks all questions, until the deadline. The number of threads does not change the result.
    fn ask(&self, threads: usize) -> ComparedAnswers {
        // Small chunks keep all threads busy when some questions take longer than others.
        let chunks: Vec<&[GeneratedQuestion]> = self.set.questions.chunks(CHUNK).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(chunk) = chunks.get(at) else {
                    return done;
                };

                let mut part = ComparedAnswers::default();
                for question in *chunk {
                    if self.is_over() {
                        done.push((at, part));
                        return done;
                    }
                    self.note(question, &mut part);
                }

                done.push((at, part));
            }
        };

        let mut parts = thread::scope(|scope| {
            let running: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
            let done = running.into_iter().map(|thread| match thread.join() {
                Ok(parts) => parts,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            done.flatten().collect::<Vec<_>>()
        });
        // Threads end in any order, and the report must not depend on it.
        parts.sort_by_key(|(at, _)| *at);

        let mut all = ComparedAnswers::default();
        for (_, part) in parts {
            all.add(part);
        }

        all
    }

    /// Asks one question.
    fn note(&self, question: &GeneratedQuestion, into: &mut ComparedAnswers) {
        let answers = self.answers(question);
        into.asked += 1;
        if is_decision(self.function) {
            let texts = texts_of(&answers.with);
            for (answer, outcomes) in answers.parts.iter().zip(&mut into.outcomes) {
                for part in answer {
                    let branch = branch_of(part, &texts);
                    // A component with random words in its sentences would otherwise fill the memory.
                    if outcomes.len() < MAX_OUTCOMES || outcomes.contains_key(&branch) {
                        *outcomes.entry(branch).or_default() += 1;
                    }
                }
            }
        }

        let failures = answers.raw.iter().filter(|answer| answer.is_err()).count() as u64;
        // If both fail, the question is usually an impossible one and shows no difference.
        into.unanswered += u64::from(failures == 2);
        if answers.raw[0] == answers.raw[1] || failures == 2 {
            return;
        }

        into.differing += 1;
        into.failed += failures;
        for difference in answers.differences() {
            let key = (difference.check.clone(), difference.direction);
            let of_base = self.of_bases[question.base].contains(&key);
            let group = ExampleGroup {
                count: 1,
                question: question.clone(),
                difference,
                rank: (of_base, question.size(), question.base),
            };

            into.add_group(key, group);
        }
    }

    /// Shrinks the examples and sorts the report.
    fn report(&self, compared: ComparedAnswers) -> FunctionDiff {
        let find = |question: &GeneratedQuestion, key: &DifferenceKey| {
            let mut found = self.differences(question).into_iter();
            found.find(|one| one.check == key.0 && one.direction == key.1)
        };
        let groups = compared.groups.into_iter().map(|(key, group)| {
            let differs =
                |smaller: &GeneratedQuestion| !self.is_over() && find(smaller, &key).is_some();
            let question = self.set.shrunk(&group.question, differs);
            // The unchanged question has its answer already.
            let unchanged = question.edits == group.question.edits;
            let smaller = if unchanged {
                None
            } else {
                find(&question, &key)
            };
            let (question, difference) = match smaller {
                Some(difference) => (question, difference),
                None => (group.question, group.difference),
            };

            BehaviourGroup {
                counterexample: counterexample(self.set, &question, difference),
                check: key.0,
                direction: key.1,
                count: group.count,
            }
        });

        let mut groups: Vec<BehaviourGroup> = groups.collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.count));
        if self.rules[0].slot == Slot::Placement && self.function == drawing::FUNCTION {
            // A drawing takes several calls, so only the most frequent groups get one.
            for group in groups.iter_mut().take(MAX_DRAWN) {
                let example = &mut group.counterexample;
                example.pages = drawing::pages(self.rules, &example.given);
            }
        }

        // Each component's own sentences: those of the other may differ from them by one word only.
        let [before, after] = compared
            .outcomes
            .map(|outcomes| merged(outcomes, |known, one| *known += one));
        let mut outcomes: BTreeMap<Branch, (u64, u64)> = BTreeMap::new();
        for (branch, count) in before {
            outcomes.entry(branch).or_default().0 = count;
        }

        for (branch, count) in after {
            outcomes.entry(branch).or_default().1 = count;
        }

        let outcomes = outcomes.into_iter();
        FunctionDiff {
            function: self.function.to_owned(),
            asked: self.set.counts,
            stopped_after: (compared.asked < self.set.questions.len() as u64)
                .then_some(compared.asked),
            differing: compared.differing,
            failed: compared.failed,
            unanswered: compared.unanswered,
            groups,
            left_out: compared.left_out,
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

/// Answers of both components to one question.
struct ComparedAnswer {
    with: Map<String, Value>,
    raw: [Result<Value, String>; 2],
    parts: [ComponentAnswer; 2],
}

impl ComparedAnswer {
    /// Returns the differences. Answers that are not equal have at least one.
    fn differences(&self) -> Vec<DecisionDifference> {
        let mut found = answers::differences("", &self.parts[0], &self.parts[1]);
        if found.is_empty() && self.raw[0] != self.raw[1] {
            // Another order of the parts, or other blanks in a certificate.
            let [before, after] = excerpts(self.raw.each_ref().map(text_of));
            found.push(DecisionDifference {
                record_id: String::new(),
                check: "text of the answer".into(),
                direction: DifferenceDirection::Other,
                before: before.into(),
                after: after.into(),
                before_sentence: None,
                after_sentence: None,
            });
        }

        for difference in &mut found {
            let sentences = [
                &mut difference.before_sentence,
                &mut difference.after_sentence,
            ];
            for sentence in sentences.into_iter().flatten() {
                sentence.truncate(sentence.floor_char_boundary(MAX_SENTENCE));
            }

            for value in [&mut difference.before, &mut difference.after] {
                let mut text = value.to_string();
                if text.len() > MAX_SENTENCE {
                    text.truncate(text.floor_char_boundary(MAX_SENTENCE));
                    *value = text.into();
                }
            }
        }

        found
    }
}

fn text_of(answer: &Result<Value, String>) -> String {
    match answer {
        Ok(Value::String(text)) | Err(text) => text.clone(),
        Ok(other) => other.to_string(),
    }
}

/// Returns the parts of two texts around the first letter that differs.
fn excerpts(texts: [String; 2]) -> [String; 2] {
    let letters = texts[0].chars().zip(texts[1].chars());
    let equal = letters.take_while(|(one, other)| one == other).count();
    texts.map(|text| {
        let from = equal.saturating_sub(BEFORE_DIFFERENCE);
        text.chars().skip(from).take(EXCERPT).collect()
    })
}

impl ComparedAnswers {
    /// Adds a group. When there are too many, those that permit more or less stay.
    fn add_group(&mut self, key: DifferenceKey, group: ExampleGroup) {
        let is_full = self.groups.len() >= MAX_GROUPS && !self.groups.contains_key(&key);
        if is_full {
            let decides = |key: &DifferenceKey| {
                use DifferenceDirection::{Looser, Stricter};
                matches!(key.1, Looser | Stricter)
            };
            let other = self.groups.keys().rev().find(|key| !decides(key)).cloned();
            match other.filter(|_| decides(&key)) {
                Some(other) => {
                    let dropped = self.groups.remove(&other);
                    self.left_out += dropped.map_or(0, |group| group.count);
                }
                None => {
                    self.left_out += group.count;
                    return;
                }
            }
        }

        match self.groups.entry(key) {
            Entry::Vacant(vacant) => {
                vacant.insert(group);
            }
            Entry::Occupied(mut known) => {
                let count = known.get().count + group.count;
                // The simplest example stays, and the count is that of the whole group.
                if group.rank < known.get().rank {
                    known.insert(group);
                }
                known.get_mut().count = count;
            }
        }
    }

    fn add(&mut self, part: Self) {
        self.asked += part.asked;
        self.differing += part.differing;
        self.failed += part.failed;
        self.unanswered += part.unanswered;
        self.left_out += part.left_out;
        for (key, group) in part.groups {
            self.add_group(key, group);
        }

        for (all, outcomes) in self.outcomes.iter_mut().zip(part.outcomes) {
            for (branch, count) in outcomes {
                if all.len() < MAX_OUTCOMES || all.contains_key(&branch) {
                    *all.entry(branch).or_default() += count;
                }
            }
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
        // The edit may have created this member, which was null before.
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
            to: Value::clone(&edit.to),
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
        pages: Vec::new(),
    }
}
