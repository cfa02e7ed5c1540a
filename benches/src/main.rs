//! `holdfast-bench`: what holdfast costs, printed as ratios taken in one run.
//!
//! | Section | Asks |
//! |---|---|
//! | `compliance` | what does the sandbox cost, and what would other engines? |
//! | `start-up` | how soon does `holdfast serve` answer, and how much memory does it hold? |
//!
//! Without arguments all sections run, with arguments those named. Nothing
//! here passes or fails on a time; it fails when engines that are compared do
//! not give the same answers.

mod compliance;
mod report;
mod start_up;

use std::process::ExitCode;

/// Any failure, in words for whoever runs this.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What it is called, and what runs it.
type Section = (&'static str, fn() -> Result<(), Failure>);

const SECTIONS: [Section; 2] = [("compliance", compliance::run), ("start-up", start_up::run)];

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    match run(&wanted) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("holdfast-bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(wanted: &[String]) -> Result<(), Failure> {
    if let Some(unknown) = wanted
        .iter()
        .find(|name| SECTIONS.iter().all(|(known, _)| known != name))
    {
        let known = SECTIONS.map(|(name, _)| name).join(", ");
        return Err(format!("no section is called {unknown}; there are {known}").into());
    }
    report::preamble();
    for (name, section) in SECTIONS {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            section()?;
        }
    }
    Ok(())
}
