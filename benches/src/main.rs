//! `holdfast-bench`: performance of holdfast, printed as ratios measured in one run.
//!
//! | Section | Measures |
//! |---|---|
//! | `compliance` | cost of the sandbox, compared with other policy engines |
//! | `components` | cost of a call of each slot and of an upload, and its effect on other callers |
//! | `start-up` | time until `holdfast serve` is ready, and its memory when idle |
//! | `documents` | time and memory of finding anchors, marking and drawing |
//! | `facts` | facts of a contract, funding checks, and tapes of up to a million rows over stored facts |
//! | `partner` | cost of credentials, limits and records; duration of creates; memory of uploads |
//! | `signing` | waiting time of a signer, alone and among a hundred |
//! | `console` | latency of lists with 100,000 envelopes of one organization, and the daily run of retention over them |
//! | `webhooks` | latency and cost of deliveries, and the effect of a slow receiver on others |
//! | `bulk` | batches compared with single creates, and their effect on other requests |
//! | `neighbours` | latency of a quiet tenant while another tenant or a crowd attacks |
//! | `nodes` | throughput of one, two and three nodes |
//! | `scale` | cost of the same requests with a million envelopes; runs only if named |
//! | `vault` | time and memory of vault-in, compared with a lower bound |
//!
//! Without arguments all sections run except `scale`, with arguments those named. No time limit is
//! asserted; a run fails only if compared engines give different results.

mod bulk;
mod compliance;
mod components;
mod console;
mod documents;
mod facts;
mod floor;
mod load;
mod meter;
mod neighbours;
mod nodes;
mod partner;
#[path = "../../guest-rules/reader/tests/support/mod.rs"]
mod pdf;
mod report;
mod scale;
mod server;
mod signing;
mod start_up;
mod vault;
mod webhooks;

use std::process::ExitCode;

/// Any failure, with a message for the developer who runs the benchmark.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Name of a section, and the function that runs it.
type Section = (&'static str, fn() -> Result<(), Failure>);

const SECTIONS: [Section; 13] = [
    ("compliance", compliance::run),
    ("components", components::run),
    ("start-up", start_up::run),
    ("documents", documents::run),
    ("facts", facts::run),
    ("partner", partner::run),
    ("console", console::run),
    ("signing", signing::run),
    ("vault", vault::run),
    ("webhooks", webhooks::run),
    ("bulk", bulk::run),
    ("nodes", nodes::run),
    ("neighbours", neighbours::run),
];

/// Runs only if named, because its duration depends on `SCALE`.
const SCALE: Section = ("scale", scale::run);

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let done = match wanted.first().map(String::as_str) {
        // Baseline of the partner section, run as a program of its own.
        Some(partner::BARE_SERVER) => partner::serve_bare(&wanted[1..]),
        Some(floor::FLOOR_PROGRAM) => floor::run(&wanted[1..]),
        _ => run(&wanted),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("holdfast-bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(wanted: &[String]) -> Result<(), Failure> {
    if let Some(unknown) = wanted.iter().find(|name| {
        let mut all = SECTIONS.iter().chain([&SCALE]);
        all.all(|(known, _)| known != name)
    }) {
        let known = SECTIONS.map(|(name, _)| name).join(", ");
        return Err(format!("no section is called {unknown}; there are {known}").into());
    }

    report::preamble();
    if wanted.iter().any(|wanted| wanted == SCALE.0) {
        return SCALE.1();
    }

    for (name, section) in SECTIONS {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            section()?;
        }
    }

    Ok(())
}
