//! `holdfast-bench`: what holdfast costs, printed as ratios taken in one run.
//!
//! | Section | Asks |
//! |---|---|
//! | `compliance` | what does the sandbox cost, and what would other engines? |
//! | `components` | what does a call of each slot cost, what does an upload, and who notices? |
//! | `start-up` | how soon does `holdfast serve` answer, and how much memory does it hold? |
//! | `documents` | what do finding anchors, marking and drawing cost, and how much memory? |
//! | `partner` | what do credentials, limits and records cost a request? how long does a create take, and how much memory do uploads? |
//! | `signing` | how long does a signer wait, alone and among a hundred? |
//! | `webhooks` | how soon is an event received, at what cost, and what does a slow receiver cost the others? |
//! | `bulk` | how long does a batch take beside single creates, and who notices? what do two nodes do with ten? |
//! | `neighbours` | what does a quiet tenant wait for while another one, or a crowd of clients, does its worst? |
//! | `nodes` | what do one, two and three nodes answer together? |
//! | `scale` | what do the same requests cost with a million envelopes? only where it is named |
//! | `vault` | what does vault-in cost beside the least that it can, and how much memory? |
//!
//! Without arguments all sections run, with arguments those named. Nothing
//! here passes or fails on a time; it fails when engines that are compared do
//! not give the same answers.

mod bulk;
mod compliance;
mod components;
mod documents;
mod load;
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

/// Any failure, in words for whoever runs this.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What it is called, and what runs it.
type Section = (&'static str, fn() -> Result<(), Failure>);

const SECTIONS: [Section; 11] = [
    ("compliance", compliance::run),
    ("components", components::run),
    ("start-up", start_up::run),
    ("documents", documents::run),
    ("partner", partner::run),
    ("signing", signing::run),
    ("vault", vault::run),
    ("webhooks", webhooks::run),
    ("bulk", bulk::run),
    ("nodes", nodes::run),
    ("neighbours", neighbours::run),
];

/// Takes as long as it is told to.
const SCALE: Section = ("scale", scale::run);

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let done = match wanted.first().map(String::as_str) {
        // What the partner section compares with, as a program of its own.
        Some(partner::BARE_SERVER) => partner::serve_bare(&wanted[1..]),
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
