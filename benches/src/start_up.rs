//! Start-up time of `holdfast serve`, and its memory when idle.

use std::thread;
use std::time::Duration;

use crate::Failure;
use crate::report::{self, ReportTable, median, millis};
use crate::server::{BenchServer, POLL, ServerLog, program};

const RUNS: usize = 5;
/// Idle time before the memory is read. The allocator gives freed memory back after ten seconds.
const IDLE: Duration = Duration::from_secs(15);

/// Starts servers on empty and on used data folders and prints the table.
pub fn run() -> Result<(), Failure> {
    report::heading("Start-up of `holdfast serve`");
    let program = program()?;
    let (mut cold, mut warm, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let folder = tempfile::tempdir()?;
        let mut server = BenchServer::spawn(&program, folder.path(), &[], ServerLog::Watched)?;
        cold.push(server.start()?);
        server.stop()?;

        let mut server = BenchServer::spawn(&program, folder.path(), &[], ServerLog::Watched)?;
        warm.push(server.start()?);
        thread::sleep(IDLE);
        memory.push(server.memory()?);

        server.stop()?;
    }

    let mut table = ReportTable::new(&["start", "until", "median ms", "fastest", "slowest"]);
    for (name, starts) in [
        ("cold: empty data folder", &cold),
        ("warm: second start on it", &warm),
    ] {
        let listening: Vec<f64> = starts.iter().map(|start| millis(start.listening)).collect();
        let ready: Vec<f64> = starts.iter().map(|start| millis(start.ready)).collect();
        times(&mut table, name, "\"listening on\"", &listening);
        times(&mut table, name, "GET /readyz = 200", &ready);
    }

    table.print();
    println!(
        "\n{RUNS} runs each, from spawning the process, looking every {} ms.\n",
        POLL.as_millis()
    );

    let mut table = ReportTable::new(&["memory, idle, warm", "median MB", "least", "most"]);
    let megabytes = |kibibytes: f64| kibibytes * 1024.0 / 1e6;
    let resident: Vec<f64> = memory
        .iter()
        .map(|memory| megabytes(memory.resident))
        .collect();

    let anonymous: Vec<f64> = memory
        .iter()
        .map(|memory| megabytes(memory.anonymous))
        .collect();
    for (name, values) in [
        ("resident (VmRSS)", &resident),
        ("without pages of files (RssAnon)", &anonymous),
    ] {
        table.row(std::iter::once(name.to_owned()).chain(spread(values)));
    }

    table.print();
    println!(
        "\n{RUNS} runs, {} s after the server was ready, no requests but those to /readyz.",
        IDLE.as_secs()
    );
    let size = std::fs::metadata(&program)?.len() as f64 / 1e6;
    println!(
        "The program has {size:.0} MB; those of the profile `dist` have no names of functions."
    );

    Ok(())
}

fn times(table: &mut ReportTable, name: &str, until: &str, values: &[f64]) {
    table.row(
        [name.to_owned(), until.to_owned()]
            .into_iter()
            .chain(spread(values)),
    );
}

/// Returns median, minimum and maximum.
fn spread(values: &[f64]) -> [String; 3] {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    [median(values), least, most].map(|value| format!("{value:.1}"))
}
