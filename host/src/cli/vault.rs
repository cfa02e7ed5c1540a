//! `holdfast vault`: looking after what is in the vault.

use std::process::ExitCode;

use clap::Subcommand;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::Failure;
use super::output::Output;
use crate::app;
use crate::config::Config;
use crate::service::{integrity, orphans};

#[derive(Subcommand)]
pub enum Command {
    /// Re-read every vaulted document and its ledger, now. A server does this by
    /// itself, spread over each week.
    Sweep {
        /// Go on with a sweep that was interrupted.
        #[arg(long)]
        resume: bool,
        /// Then remove stored bytes older than a day that nothing points to.
        #[arg(long)]
        orphans: bool,
    },
}

/// Runs a command. Exit status 1 when something does not hold.
pub async fn run(command: Command, config: Config, output: &Output) -> Result<ExitCode, Failure> {
    let Command::Sweep { resume, orphans } = command;
    let app = app::start(config).await?;
    let started = app.clock.now();
    if !resume {
        integrity::make_due(&app, started).await?;
    }
    let due = integrity::due(&app).await?;
    let bar = ProgressBar::new(due).with_style(ProgressStyle::with_template(
        "{bar:40} {pos} of {len} envelopes, {eta} left {msg}",
    )?);
    let mut checked = 0;
    let mut found = Vec::new();
    loop {
        let looked = integrity::sweep(&app).await?;
        if looked.is_empty() {
            break;
        }
        for looked in looked {
            checked += 1;
            bar.inc(1);
            if !looked.problems.is_empty() {
                found.push(looked);
                bar.set_message(format!("({} with problems)", found.len()));
            }
        }
    }
    bar.finish_and_clear();
    let removed = if orphans {
        Some(orphans::sweep(&app).await?)
    } else {
        None
    };
    let mut lines: Vec<String> = found
        .iter()
        .flat_map(|looked| {
            let line = |problem: &integrity::Problem| {
                format!("{}: {}: {}", looked.envelope, problem.check, problem.detail)
            };
            looked.problems.iter().map(line).collect::<Vec<_>>()
        })
        .collect();
    lines.push(format!(
        "{checked} envelopes re-read, {} with problems",
        found.len()
    ));
    lines.extend(removed.map(|removed| format!("{removed} orphaned objects removed")));
    let problems: Vec<_> = found
        .iter()
        .map(|looked| json!({ "envelope_id": looked.envelope, "problems": looked.problems }))
        .collect();
    let value = json!({
        "checked": checked,
        "with_problems": problems,
        "orphans_removed": removed,
    });
    output.one(&value, &lines.join("\n"));
    Ok(if found.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
