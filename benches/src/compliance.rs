//! Compliance evaluation: the same eight checks over the same record, called natively, in the
//! sandboxed component, and written for two policy engines.
//!
//! Before any measurement, all engines evaluate all records of [`records`]: comparing engines that
//! disagree would be meaningless.

mod cedar;
pub mod records;
mod rego;

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use holdfast::components::rules::{ComplianceRules, compliance as component};
use holdfast_compliance::types::{EnvelopeFacts, Evaluation};

use self::cedar::CedarEngine;
use self::records::BenchRecord;
use self::rego::RegoEngine;
use crate::Failure;
use crate::report::{self, ReportTable, median, micros, percentile, thousands};

/// Number of rounds in which every case takes a turn.
const ROUNDS: usize = 80;
/// Approximate duration of one turn.
const TURN: Duration = Duration::from_millis(12);

/// Checks that all engines agree, times them and prints the table.
pub fn run() -> Result<(), Failure> {
    report::heading("Compliance evaluation");
    let cache = tempfile::tempdir()?;
    let (_engines, sandbox) = holdfast::components::load_compliance(cache.path().into(), [0; 32])?;
    let mut rego = RegoEngine::new()?;
    let cedar = CedarEngine::new()?;

    let records = records::all();
    for record in &records {
        agree(record, &sandbox, &mut rego, &cedar)
            .map_err(|why| format!("record \"{}\": {why}; nothing was timed", record.name))?;
    }

    println!(
        "All four give the same eight answers to each of {} records.\n",
        records.len()
    );

    let mut cases = cases(records::passing(), &sandbox, &mut rego, &cedar)?;
    take_turns(&mut cases)?;
    print(&cases);

    Ok(())
}

/// Checks that all engines agree. Native and component must give identical evaluations, Rego the
/// same results and sentences, and Cedar the same results: it has no sentences.
fn agree(
    record: &BenchRecord,
    sandbox: &ComplianceRules,
    rego: &mut RegoEngine,
    cedar: &CedarEngine,
) -> Result<(), Failure> {
    let native = holdfast_compliance::evaluate(&record.facts);
    let answers: Vec<bool> = native.checks.iter().map(|check| check.satisfied).collect();
    let failing: Vec<usize> = (1..)
        .zip(&answers)
        .filter(|(_, ok)| !**ok)
        .map(|(n, _)| n)
        .collect();
    if answers.len() != 8 || failing != record.failing {
        return Err(format!("natively checks {failing:?} fail, not {:?}", record.failing).into());
    }

    let isolated = sandbox.evaluate(&records::for_component(&record.facts))?;
    if !same(&native, &isolated) {
        return Err(format!("native says {native:?}, the component says {isolated:?}").into());
    }

    let by_rego = rego::read(&rego.decide(rego::input(&record.facts))?)?;
    let sentences = native
        .checks
        .into_iter()
        .map(|check| (check.satisfied, check.detail));
    let sentences: Vec<(bool, String)> = sentences.collect();
    if by_rego != sentences {
        return Err(format!("native says {sentences:?}, Rego says {by_rego:?}").into());
    }

    let by_cedar = cedar.decide(&cedar.subject(&record.facts)?)?;
    if by_cedar[..] != answers {
        return Err(format!("native says {answers:?}, Cedar says {by_cedar:?}").into());
    }

    Ok(())
}

fn same(native: &Evaluation, isolated: &component::Evaluation) -> bool {
    native.compliant == isolated.compliant
        && native.score == isolated.score
        && native.missing_requirements == isolated.missing_requirements
        && native.checks.len() == isolated.checks.len()
        && native
            .checks
            .iter()
            .zip(&isolated.checks)
            .all(|(left, right)| {
                left.requirement == right.requirement
                    && left.ucc_reference == right.ucc_reference
                    && left.satisfied == right.satisfied
                    && left.detail == right.detail
            })
}

/// One row of the table.
struct EngineCase<'a> {
    name: &'static str,
    threads: usize,
    /// Makes the given number of calls on each thread and returns the duration of the slowest
    /// thread.
    turn: Box<dyn FnMut(u32) -> Result<Duration, Failure> + 'a>,
    calls: u32,
    /// Microseconds per call and thread, one value a round.
    micros: Vec<f64>,
}

const NATIVE: &str = "native: the same Rust code";
const COMPONENT: &str = "component: fresh instance, fuel, epoch";
const REGO_READY: &str = "regorus bytecode, input ready";
const REGO_BUILT: &str = "regorus bytecode, input built per call";
const CEDAR_READY: &str = "cedar-policy, 8 requests, context ready";
const CEDAR_BUILT: &str = "cedar-policy, 8 requests, context built per call";

fn cases<'a>(
    facts: EnvelopeFacts,
    sandbox: &'a ComplianceRules,
    rego: &'a mut RegoEngine,
    cedar: &'a CedarEngine,
) -> Result<Vec<EngineCase<'a>>, Failure> {
    let lifted = records::for_component(&facts);
    let input = rego::input(&facts);
    let subject = cedar.subject(&facts)?;

    // Both cases of an engine share one machine, one after the other.
    let rego = std::rc::Rc::new(std::cell::RefCell::new(rego));
    let rego_ready = rego.clone();
    let (facts_1, facts_2, facts_rego) = (facts.clone(), facts.clone(), facts.clone());
    let lifted_2 = lifted.clone();
    Ok(vec![
        case(NATIVE, 1, move |calls| {
            repeated(calls, || {
                Ok(holdfast_compliance::evaluate(black_box(&facts_1)))
            })
        }),
        case(COMPONENT, 1, move |calls| {
            repeated(calls, || Ok(sandbox.evaluate(black_box(&lifted))?))
        }),
        case(NATIVE, 2, move |calls| {
            on_threads(2, calls, || {
                Ok(holdfast_compliance::evaluate(black_box(&facts_2)))
            })
        }),
        case(COMPONENT, 2, move |calls| {
            on_threads(2, calls, || Ok(sandbox.evaluate(black_box(&lifted_2))?))
        }),
        case(REGO_READY, 1, move |calls| {
            let mut rego = rego_ready.borrow_mut();
            repeated(calls, || rego.decide(black_box(&input).clone()))
        }),
        case(REGO_BUILT, 1, move |calls| {
            let mut rego = rego.borrow_mut();
            repeated(calls, || rego.decide(rego::input(black_box(&facts_rego))))
        }),
        case(CEDAR_READY, 1, move |calls| {
            repeated(calls, || cedar.decide(black_box(&subject)))
        }),
        case(CEDAR_BUILT, 1, move |calls| {
            repeated(calls, || cedar.decide(&cedar.subject(black_box(&facts))?))
        }),
    ])
}

fn case<'a>(
    name: &'static str,
    threads: usize,
    turn: impl FnMut(u32) -> Result<Duration, Failure> + 'a,
) -> EngineCase<'a> {
    EngineCase {
        name,
        threads,
        turn: Box::new(turn),
        calls: 1,
        micros: Vec::new(),
    }
}

/// Determines the number of calls that fill a turn, then runs the cases in turns.
fn take_turns(cases: &mut [EngineCase]) -> Result<(), Failure> {
    for case in cases.iter_mut() {
        let mut took = (case.turn)(case.calls)?;
        while took < TURN {
            case.calls *= 2;
            took = (case.turn)(case.calls)?;
        }
    }

    for _ in 0..ROUNDS {
        for case in cases.iter_mut() {
            let took = (case.turn)(case.calls)?;
            case.micros.push(micros(took) / f64::from(case.calls));
        }
    }

    Ok(())
}

fn repeated<R>(
    calls: u32,
    mut call: impl FnMut() -> Result<R, Failure>,
) -> Result<Duration, Failure> {
    let start = Instant::now();
    for _ in 0..calls {
        black_box(call()?);
    }
    Ok(start.elapsed())
}

/// Runs calls on threads that start together, and returns the duration of the slowest thread.
fn on_threads<R>(
    threads: usize,
    calls: u32,
    call: impl Fn() -> Result<R, Failure> + Sync,
) -> Result<Duration, Failure> {
    let together = Barrier::new(threads);
    let one_thread = || {
        together.wait();
        repeated(calls, &call)
    };
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(one_thread)).collect();
        let mut slowest = Duration::ZERO;
        for thread in running {
            slowest = slowest.max(
                thread
                    .join()
                    .map_err(|_| "a thread of the benchmark panicked")??,
            );
        }

        Ok(slowest)
    })
}

fn print(cases: &[EngineCase]) {
    let mut table = ReportTable::new(&["case", "threads", "µs/call", "p95", "calls/s", "x native"]);
    for case in cases {
        let native = find(cases, NATIVE, case.threads);
        table.row([
            case.name.to_owned(),
            case.threads.to_string(),
            format!("{:.2}", median(&case.micros)),
            format!("{:.2}", percentile(&case.micros, 95)),
            thousands(calls_per_second(case)),
            native.map_or_else(
                || "-".into(),
                |native| format!("{:.1}", ratio(case, native)),
            ),
        ]);
    }

    table.print();
    println!(
        "\nOne turn of about {} ms for each case in each of {ROUNDS} rounds: median and p95 over",
        TURN.as_millis()
    );
    println!(
        "rounds; \"x native\" is the median of the rounds' own ratios, at the same number of threads."
    );

    println!(
        "The record: 3 submitters, 3 signed documents, 2 custodians, every optional field filled."
    );
    println!(
        "Cedar gives no sentences and is handed lower-cased addresses and the verdict on the hash."
    );
    println!();

    for (name, threads) in [(NATIVE, 1), (COMPONENT, 1)] {
        if let (Some(one), Some(two)) = (find(cases, name, threads), find(cases, name, 2)) {
            println!(
                "- two threads do {:.2} x the calls of one: {name}",
                2.0 * ratio(one, two)
            );
        }
    }

    if let Some(sandbox) = find(cases, COMPONENT, 1) {
        for name in [REGO_READY, REGO_BUILT, CEDAR_READY, CEDAR_BUILT] {
            if let Some(other) = find(cases, name, 1) {
                println!(
                    "- the component takes 1/{:.1} of the time of {name}",
                    ratio(other, sandbox)
                );
            }
        }
    }
}

fn find<'a, 'b>(
    cases: &'b [EngineCase<'a>],
    name: &str,
    threads: usize,
) -> Option<&'b EngineCase<'a>> {
    cases
        .iter()
        .find(|case| case.name == name && case.threads == threads)
}

fn calls_per_second(case: &EngineCase) -> f64 {
    case.threads as f64 * 1e6 / median(&case.micros)
}

/// Returns how many times longer a call of `left` takes than one of `right`.
fn ratio(left: &EngineCase, right: &EngineCase) -> f64 {
    let ratios: Vec<f64> = left
        .micros
        .iter()
        .zip(&right.micros)
        .map(|(left, right)| left / right)
        .collect();
    median(&ratios)
}
