//! `holdfast decisions`: decisions of rules as data.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Seek as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::Instant;

use clap::{Args, Subcommand};
use serde_json::json;
use tempfile::NamedTempFile;

use super::output::CommandOutput;
use super::rules::Workbench;
use super::{Failure, org_id};
use crate::start;
use holdfast_base::config::Config;
use holdfast_components::replay::{self, ExportReplay};
use holdfast_domain::id::OrgId;
use holdfast_domain::ledger::LedgerEntry;
use holdfast_evidence::decisions::ExportLine;
use holdfast_platform::components::decisions::{self, ExportFormat, ExportOptions, ExportPage};
use holdfast_platform::log;

/// Decisions that are read at once.
const PAGE: u64 = 10_000;

#[derive(Subcommand)]
pub enum DecisionsCommand {
    /// Export all decisions of an organization's rules, with the proof that none is left out.
    Export(ExportDecisions),
    /// Make the decisions of an export again with another component. Needs no installation.
    Replay(ReplayDecisions),
}

#[derive(Args)]
pub struct ExportDecisions {
    #[arg(long, value_parser = org_id)]
    org: OrgId,
    /// File to write. An export in JSON Lines that exists is continued.
    file: PathBuf,
    /// `jsonl` or `parquet`.
    #[arg(long, value_parser = format, default_value = "jsonl")]
    format: ExportFormat,
    /// Only blocks behind this one.
    #[arg(long, default_value_t = 0)]
    after: i64,
    /// Names of members and of named values that are left out, separated by commas.
    #[arg(long, default_value = "")]
    mask: String,
}

#[derive(Args)]
pub struct ReplayDecisions {
    /// Export in JSON Lines.
    file: PathBuf,
    /// Component file, or name of a built-in component.
    #[arg(long)]
    component: String,
    /// Number of threads; all processors if absent.
    #[arg(long)]
    threads: Option<usize>,
}

fn format(text: &str) -> Result<ExportFormat, String> {
    ExportFormat::parse(text).ok_or_else(|| "known are jsonl and parquet".into())
}

/// Runs a command. A replay has exit status 1 if a decision differs.
pub async fn run(
    command: DecisionsCommand,
    config: Config,
    output: &CommandOutput,
) -> Result<ExitCode, Failure> {
    match command {
        DecisionsCommand::Export(wanted) => export(wanted, config, output).await,
        DecisionsCommand::Replay(wanted) => replay(wanted, &config, output).await,
    }
}

async fn export(
    wanted: ExportDecisions,
    config: Config,
    output: &CommandOutput,
) -> Result<ExitCode, Failure> {
    let app = start::start(config).await?;
    // The latest decisions belong to the export.
    decisions::record(&app, &wanted.org).await?;
    log::cosignatures::catch_up(&app, &app.vault.log).await?;
    let mut options = ExportOptions {
        format: wanted.format,
        after: wanted.after,
        limit: PAGE,
        mask: decisions::mask_of(&wanted.mask),
    };
    // Lines are appended page by page, so an export of years neither needs memory
    // nor starts again after a crash.
    let last = match wanted.format {
        ExportFormat::JsonLines => {
            let (mut file, known) = continued(&wanted.file)?;
            if let Some(last) = &known.last {
                // Checked before the first write, so a file that was named by mistake stays as it is.
                if !decisions::is_block_of(&app, &wanted.org, last).await? {
                    let name = wanted.file.display();
                    return Err(format!("{name}: it is the export of another organization").into());
                }
                options.after = last.sequence;
            }

            // A crash may have left half a page behind the last block. The next page has those lines again.
            file.set_len(known.kept)?;
            file.seek(io::SeekFrom::End(0))?;
            loop {
                let page = decisions::export(&app, &wanted.org, options.clone()).await?;
                options.after = page.last;
                let has_more = page.has_more;
                append(page, &mut file)?;

                if !has_more {
                    break;
                }
            }

            file.sync_all()?;
            options.after
        }
        ExportFormat::Parquet => {
            // One file has all its metadata at the end, so it is written whole or not at all.
            options.limit = u64::MAX;
            let page = decisions::export(&app, &wanted.org, options).await?;
            let folder = wanted
                .file
                .parent()
                .filter(|folder| *folder != Path::new(""));
            let mut file = NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;

            let last = page.last;
            append(page, file.as_file_mut())?;
            file.as_file().sync_all()?;
            // Synced before it gets its name, so the file is whole or not there.
            file.persist(&wanted.file)?;

            last
        }
    };

    let name = wanted.file.display();
    let text = match last {
        0 => format!("{name}: there are no decisions yet"),
        last => format!("{name} has the decisions up to block {last}"),
    };
    output.one(&json!({ "file": wanted.file, "last_block": last }), &text);

    Ok(ExitCode::SUCCESS)
}

fn append(page: ExportPage, file: &mut File) -> io::Result<()> {
    io::copy(&mut page.file.into_file()?, file)?;
    Ok(())
}

/// What a file has of an export.
struct KnownExport {
    /// Length up to the end of the last block. The next page has the lines behind it again.
    kept: u64,
    /// Entry of the last block.
    last: Option<LedgerEntry>,
}

/// Opens an export, or a new file, and changes nothing.
fn continued(path: &Path) -> Result<(File, KnownExport), Failure> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    let mut reader = BufReader::new(file);

    let (mut line, mut read) = (Vec::new(), 0);
    let mut known = KnownExport {
        kept: 0,
        last: None,
    };
    loop {
        line.clear();
        let length = reader.read_until(b'\n', &mut line)?;
        read += length as u64;
        if length == 0 {
            break;
        }

        let is_cut_off = line.last() != Some(&b'\n');
        match serde_json::from_slice(&line) {
            Ok(ExportLine::Block(block)) if !is_cut_off => {
                (known.kept, known.last) = (read, Some(block.entry));
            }
            Ok(_) => {}
            // Only the last line can be cut off. A broken one in the middle means
            // another file, or a damaged one.
            Err(error) if is_cut_off && error.is_eof() => break,
            Err(error) => {
                let name = path.display();
                return Err(format!("{name}: it is no export of decisions: {error}").into());
            }
        }
    }

    Ok((reader.into_inner(), known))
}

async fn replay(
    wanted: ReplayDecisions,
    config: &Config,
    output: &CommandOutput,
) -> Result<ExitCode, Failure> {
    let bench = Workbench::new(config)?;
    let (rules, _) = bench.rules(&wanted.component).await?;
    let export = BufReader::new(File::open(&wanted.file)?);
    // The components share nothing between calls, so every processor can evaluate at once.
    let processors = || thread::available_parallelism().map_or(1, usize::from);
    let threads = wanted.threads.unwrap_or_else(processors);
    let began = Instant::now();
    let report = replay::replay(export, &rules, threads)?;

    let seconds = began.elapsed().as_secs_f64();
    output.one(&json!(report), &told(&report, seconds));
    Ok(match report.differing + report.failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

fn told(report: &ExportReplay, seconds: f64) -> String {
    let mut lines: Vec<String> = report
        .groups
        .iter()
        .map(|group| {
            let direction = json!(group.direction);
            format!(
                "{}: {} ({}), for example {}: {} -> {}",
                direction.as_str().unwrap_or_default(),
                group.check,
                group.count,
                group.example.record_id,
                group.example.before,
                group.example.after
            )
        })
        .collect();

    // Decisions that were not compared are counted too, or the last line would claim more than was checked.
    let further = [
        (report.other_slots, "of other slots"),
        (report.incomplete, "cannot be made again"),
    ];
    for (number, what) in further {
        if number > 0 {
            lines.push(format!("{number} {what}"));
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let rate = report.replayed as f64 / seconds.max(0.001);
    lines.push(format!(
        "{} decisions made again: {} the same, {} differ, {} failed; {rate:.0} a second",
        report.replayed, report.same, report.differing, report.failed
    ));

    lines.join("\n")
}
