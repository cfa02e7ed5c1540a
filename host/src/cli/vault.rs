//! `holdfast vault`: integrity checks of the vault.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use clap::Subcommand;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::Failure;
use super::output::CommandOutput;
use crate::start;
use holdfast_base::config::Config;
use holdfast_platform::log;
use holdfast_service::vault::integrity::{self, IntegrityCheck};
use holdfast_service::vault::orphans;

/// Maximum wait for documents that other processes have claimed, in tenths of a second.
const OTHERS: u32 = 600;

#[derive(Subcommand)]
pub enum VaultCommand {
    /// Re-read all vaulted documents and their ledgers now. A running server does this
    /// every week, spread over the week.
    Sweep {
        /// Continue an interrupted sweep.
        #[arg(long)]
        resume: bool,
        /// Then remove stored objects that are older than a day and that no record refers to.
        #[arg(long)]
        orphans: bool,
    },
    /// Accept the clock of this machine although the ledger has entries of a later time, because a clock was ahead
    /// when they were written. The installation's ledger records it.
    ConfirmClock,
}

/// Runs a command. Exit status 1 if a check fails.
pub async fn run(
    command: VaultCommand,
    config: Config,
    output: &CommandOutput,
) -> Result<ExitCode, Failure> {
    let app = start::start(config).await?;
    let (resume, orphans) = match command {
        VaultCommand::Sweep { resume, orphans } => (resume, orphans),
        VaultCommand::ConfirmClock => {
            let behind = log::confirm_clock(&app).await?.as_secs();
            let text = match behind {
                0 => "the clock is not behind the ledger: nothing to confirm".to_owned(),
                behind => format!("confirmed: the ledger had entries {behind} seconds ahead"),
            };
            output.one(&json!({ "behind_seconds": behind }), &text);
            return Ok(ExitCode::SUCCESS);
        }
    };

    // A new sweep makes everything due. A resumed one only finishes the envelopes that are still due.
    let started = app.clock.now();
    if !resume {
        integrity::make_due(&app, started).await?;
    }

    let total = integrity::progress(&app, started)
        .await?
        .total
        .unsigned_abs();
    let bar = ProgressBar::new(total).with_style(ProgressStyle::with_template(
        "{bar:40} {pos} of {len} envelopes, {eta} left",
    )?);

    let mut unread = BTreeMap::new();
    let mut idle = 0;
    let checked = loop {
        let looked = integrity::sweep(&app).await?;
        if !looked.is_empty() {
            idle = 0;
            bar.inc(looked.len() as u64);
            let failed =
                |looked: IntegrityCheck| Some((looked.envelope, looked.unread?.to_string()));
            unread.extend(looked.into_iter().filter_map(failed));
            continue;
        }

        // A running server may have claimed a part of the same sweep.
        let checked = integrity::progress(&app, started).await?.checked;
        let checked = checked.unsigned_abs();
        idle += 1;

        if resume || idle > OTHERS || checked + unread.len() as u64 >= total {
            break checked;
        }

        bar.set_position(checked);
        tokio::time::sleep(Duration::from_millis(100)).await;
    };

    bar.finish_and_clear();
    // Orphans come last: a sweep that fails to read the vault must not begin to remove objects.
    let removed = if orphans {
        Some(orphans::sweep(&app, &app.vault).await?)
    } else {
        None
    };
    // Read from the database, because another process may have found problems in its part of the sweep.
    let found = integrity::with_problems(&app).await?;

    let mut lines: Vec<String> = Vec::new();
    for (envelope, problems) in &found {
        for problem in problems {
            lines.push(format!("{envelope}: {}: {}", problem.check, problem.detail));
        }
    }

    // An envelope that could not be read is no proof of tampering, but it was not checked either.
    for (envelope, why) in &unread {
        lines.push(format!("{envelope}: could not be read: {why}"));
    }

    lines.push(format!(
        "{checked} envelopes re-read, {} with problems, {} unread",
        found.len(),
        unread.len()
    ));
    lines.extend(removed.map(|removed| format!("{removed} orphaned objects removed")));
    let problems: Vec<_> = found
        .iter()
        .map(|(envelope, problems)| json!({ "envelope_id": envelope, "problems": problems }))
        .collect();
    let value = json!({
        "checked": checked,
        "with_problems": problems,
        "unread": unread,
        "orphans_removed": removed,
    });

    let broken = found.iter().map(|(envelope, _)| envelope);
    let pages = broken.filter_map(|id| app.config.console_page(&format!("envelopes/{id}")));
    output.with_pages(&value, &lines.join("\n"), pages);

    Ok(if found.is_empty() && unread.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
