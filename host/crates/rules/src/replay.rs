//! Replays the decisions of an export with another component.
//!
//! Parameters and answers are as they were recorded; members of records have underscores.
//! Components give equal answers to equal questions, so a question with its recorded answer is asked once.

use std::collections::HashMap;
use std::io::{self, BufRead};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Mutex, PoisonError};
use std::thread;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::answers::{self, DifferenceGroups};
use super::program::RulesProgram;
use super::rules::compliance;
use holdfast_domain::component_change::{DecisionDifference, DifferenceGroup};

/// Lines that a thread takes at once.
const BATCH: usize = 512;
/// Answers that a thread remembers.
const REMEMBERED: usize = 50_000;
/// Longest question that is remembered, in bytes. Others are about one record.
const REMEMBERED_BYTES: usize = 512;
/// Differing decisions that a report names.
const NAMED: usize = 100;

/// Result of replaying an export.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ExportReplay {
    /// Number of decisions that were made again.
    pub replayed: u64,
    /// Number of them with the same answer.
    pub same: u64,
    /// Number of them with another answer or other sentences.
    pub differing: u64,
    /// Number of calls without an answer.
    pub failed: u64,
    /// Number of decisions of other slots.
    pub other_slots: u64,
    /// Number of decisions that cannot be made again: parameters or the answer are masked or not in the export, as
    /// documents are.
    pub incomplete: u64,
    /// Ids of the first differing decisions.
    pub differing_ids: Vec<String>,
    /// Differences by check and direction.
    pub groups: Vec<DifferenceGroup>,
}

/// The members of a line that a replay needs.
#[derive(Deserialize)]
struct ReplayedLine<'a> {
    r#type: &'a str,
    #[serde(default)]
    decision_id: &'a str,
    #[serde(default)]
    slot: &'a str,
    #[serde(default)]
    function: &'a str,
    #[serde(borrow)]
    given: Option<&'a RawValue>,
    #[serde(borrow)]
    answer: Option<&'a RawValue>,
    #[serde(default)]
    masked: bool,
}

/// Asks a component all questions of its slot in an export in JSON Lines, with this number of threads.
///
/// # Errors
/// The export cannot be read, or a line is not of one.
pub fn replay(
    export: impl BufRead + Send,
    rules: &RulesProgram,
    threads: usize,
) -> io::Result<ExportReplay> {
    // The file is read faster than it is replayed, so the queue is short, or a large export fills the memory.
    let (sender, receiver) = mpsc::sync_channel::<Vec<String>>(threads * 2);
    let receiver = Mutex::new(receiver);
    thread::scope(|scope| {
        let receiver = &receiver;
        let workers: Vec<_> = (0..threads.max(1))
            .map(|_| scope.spawn(move || work(receiver, rules)))
            .collect();
        let mut batch = Vec::with_capacity(BATCH);

        let mut unread = None;
        for line in export.lines() {
            match line {
                Ok(line) => batch.push(line),
                Err(error) => {
                    unread = Some(error);
                    break;
                }
            }

            if batch.len() == BATCH {
                // Workers receive until the end, after an error too.
                let _ = sender.send(std::mem::take(&mut batch));
            }
        }

        let _ = sender.send(batch);
        // Workers end when the sender is gone, so it is dropped before they are joined.
        drop(sender);
        let mut all = ReplayWork::default();
        for worker in workers {
            let done = worker
                .join()
                .map_err(|_| io::Error::other("a thread failed"))?;
            all.add(done?);
        }

        match unread {
            Some(error) => Err(error),
            None => Ok(all.report()),
        }
    })
}

fn work(receiver: &Mutex<Receiver<Vec<String>>>, rules: &RulesProgram) -> io::Result<ReplayWork> {
    let mut done = Ok(ReplayWork::default());
    loop {
        let batch = receiver
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recv();
        let Ok(batch) = batch else {
            return done;
        };

        // Receives after an error, too: the reader of the file waits for room in the queue.
        done = done.and_then(|done| done.lines(rules, &batch));
    }
}

/// Results of one thread.
#[derive(Default)]
struct ReplayWork {
    report: ExportReplay,
    groups: DifferenceGroups,
    /// Differences by function, parameters and recorded answer.
    known: HashMap<String, Option<Vec<DecisionDifference>>>,
}

impl ReplayWork {
    fn lines(mut self, rules: &RulesProgram, lines: &[String]) -> io::Result<Self> {
        for line in lines {
            let line = serde_json::from_str(line)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            self.line(rules, &line);
        }
        Ok(self)
    }

    fn line(&mut self, rules: &RulesProgram, line: &ReplayedLine<'_>) {
        if line.r#type != "decision" {
            return;
        }
        if line.slot != rules.slot.as_str() {
            self.report.other_slots += 1;
            return;
        }
        let (Some(given), Some(answer), false) = (line.given, line.answer, line.masked) else {
            self.report.incomplete += 1;
            return;
        };

        let (given, answer) = (given.get(), answer.get());
        // With a hash in place of the document, or no answer, there is nothing to ask or to compare.
        if answer == "null" || given.contains("\"document_sha256\"") {
            self.report.incomplete += 1;
            return;
        }

        self.report.replayed += 1;
        // Long questions hardly repeat, and remembering them would fill the memory.
        if given.len() + answer.len() > REMEMBERED_BYTES {
            let found = asked(rules, line.function, given, answer);
            self.note(line.decision_id, found.as_deref());
            return;
        }

        let question = format!("{}\n{given}\n{answer}", line.function);
        let found = match self.known.get(&question) {
            Some(found) => found.clone(),
            None => {
                // Emptying is enough: equal questions mostly stand close together.
                if self.known.len() >= REMEMBERED {
                    self.known.clear();
                }
                let found = asked(rules, line.function, given, answer);
                self.known.insert(question, found.clone());
                found
            }
        };

        self.note(line.decision_id, found.as_deref());
    }

    fn note(&mut self, id: &str, found: Option<&[DecisionDifference]>) {
        let report = &mut self.report;
        match found {
            None => report.failed += 1,
            Some([]) => report.same += 1,
            Some(found) => {
                report.differing += 1;
                if report.differing_ids.len() < NAMED {
                    report.differing_ids.push(id.to_owned());
                }

                for difference in found {
                    let mut difference = difference.clone();
                    id.clone_into(&mut difference.record_id);
                    self.groups.add(&difference);
                }
            }
        }
    }

    fn add(&mut self, other: Self) {
        let (all, one) = (&mut self.report, other.report);
        all.replayed += one.replayed;
        all.same += one.same;
        all.differing += one.differing;
        all.failed += one.failed;
        all.other_slots += one.other_slots;
        all.incomplete += one.incomplete;

        all.differing_ids.extend(one.differing_ids);
        self.groups.merge(other.groups);
    }

    fn report(mut self) -> ExportReplay {
        self.report.differing_ids.sort();
        self.report.differing_ids.truncate(NAMED);
        self.report.groups = self.groups.into_sorted();
        self.report
    }
}

/// Returns the differences between the recorded answer and the component's. `None` if it gives none.
fn asked(
    rules: &RulesProgram,
    function: &str,
    given: &str,
    answer: &str,
) -> Option<Vec<DecisionDifference>> {
    if function == "evaluate" && is_repeated(rules, given, answer) {
        return Some(Vec::new());
    }

    let given: Map<String, Value> = serde_json::from_str(given).ok()?;
    let recorded: Value = serde_json::from_str(answer).ok()?;
    let (with, recorded) = rules.with_wit_names(function, given, &recorded)?;
    let now = rules.call(function, &with);
    if now.is_err() {
        return None;
    }

    let before = answers::parts(function, &with, &Ok(recorded));
    let after = answers::parts(function, &with, &now);
    Some(answers::differences("", &before, &after))
}

/// Parameters of an evaluation.
#[derive(Deserialize)]
struct EvaluatedFacts {
    facts: compliance::EnvelopeFacts,
}

/// Whether the component evaluates a record as recorded. Each record is another question, so this is the fast way.
fn is_repeated(rules: &RulesProgram, given: &str, answer: &str) -> bool {
    let given = serde_json::from_str::<EvaluatedFacts>(given);
    let recorded = serde_json::from_str::<compliance::Evaluation>(answer);
    match (given, recorded) {
        (Ok(given), Ok(recorded)) => rules.evaluate(&given.facts) == Some(recorded),
        _ => false,
    }
}
