//! `holdfast move`: to another database and object store.

use clap::Args;
use serde_json::json;

use super::Failure;
use super::output::CommandOutput;
use crate::moving::{self, Destination, MoveReport};
use holdfast_base::config::Config;

#[derive(Args)]
pub struct MoveArguments {
    /// New, empty database: postgres://… or sqlite:…, or a folder for an SQLite file.
    /// PGPASSWORD keeps a password out of the list of processes.
    #[arg(long, value_name = "URL")]
    to: String,
    /// New, empty object store: file:///…, s3://…, az://… or gs://…. Without it, objects stay where they are.
    #[arg(long, value_name = "URL")]
    storage: Option<String>,
    /// Give the move up: the present database is used again, and the new one never. Refused once the new one has been used.
    #[arg(long, conflicts_with = "storage")]
    abandon: bool,
}

pub async fn run(
    command: MoveArguments,
    config: &Config,
    output: &CommandOutput,
) -> Result<(), Failure> {
    if command.abandon {
        let place = moving::abandon(config, &command.to).await?;
        let text = format!("the move was given up: start the server with {place}");
        output.one(&json!({ "abandoned": true, "database_url": place }), &text);
        return Ok(());
    }

    let to = Destination {
        database: &command.to,
        storage: command.storage.as_deref(),
    };
    let report = moving::run(config, &to).await?;
    let text = summary(&report);
    output.one(&serde_json::to_value(&report)?, &text);

    Ok(())
}

/// Describes the moved and compared data, and the settings to change.
fn summary(report: &MoveReport) -> String {
    let rows: u64 = report.tables.values().map(|table| table.rows).sum();
    let (ledgers, objects) = (&report.ledgers, &report.objects);
    let moved = if objects.are_moved {
        format!("{} objects with equal SHA-256", objects.count)
    } else {
        format!("{} objects stay in {}", objects.count, objects.store)
    };
    let mut lines = vec![
        format!(
            "moved and compared: {rows} rows in {} tables; {} ledgers with {} entries; log of {} entries, root {}; {moved}",
            report.tables.len(),
            ledgers.ledgers,
            ledgers.entries,
            ledgers.log_size,
            ledgers.log_root,
        ),
        "set these, with user and password where needed, and start the server:".to_owned(),
        format!("  database_url = \"{}\"", report.to),
    ];
    if objects.are_moved {
        lines.push(format!("  storage_url = \"{}\"", objects.store));
    }
    lines.push(format!(
        "nothing was removed at {}, which cannot be used any more",
        report.from
    ));

    lines.join("\n")
}
