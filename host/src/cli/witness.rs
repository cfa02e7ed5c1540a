//! `holdfast witness`: this installation as a witness of the logs of others.

use std::sync::Arc;

use clap::Subcommand;
use holdfast_http::witness;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::output::CommandOutput;
use super::{Failure, termination};
use crate::start;
use holdfast_base::config::Config;
use holdfast_platform::log::witness::witnessed_logs;

#[derive(Subcommand)]
pub enum WitnessCommand {
    /// Print the key that verifies the cosignatures of this witness. The first call generates it.
    Key,
    /// Serve logs that ask for cosignatures.
    Serve,
    /// List the logs, each with its newest cosigned head, and with the heads that contradict it.
    Logs,
}

pub async fn run(
    command: WitnessCommand,
    config: Config,
    output: &CommandOutput,
) -> Result<(), Failure> {
    match command {
        WitnessCommand::Key => {
            let key = start::open_witness(&config).await?.key().to_string();
            output.one(&json!({ "key": key }), &key);
        }
        WitnessCommand::Serve => serve(config).await?,
        WitnessCommand::Logs => logs(&config, output).await?,
    }

    Ok(())
}

async fn serve(config: Config) -> Result<(), Failure> {
    let witness = start::open_witness(&config).await?;
    let address = config.witness.listen;
    let listener = TcpListener::bind(address).await;
    let listener = listener.map_err(|error| format!("cannot listen on {address}: {error}"))?;
    // The port may be 0 in tests, so the log names the port that the system chose.
    let address = listener.local_addr().unwrap_or(address);
    tracing::info!(key = %witness.key(), "the witness is listening on {address}");

    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        termination().await;
        stopping.cancel();
    });
    witness::serve(listener, Arc::new(witness), config.http, stop).await;

    Ok(())
}

async fn logs(config: &Config, output: &CommandOutput) -> Result<(), Failure> {
    let store = start::open_store(config).await?;
    let logs = witnessed_logs(&store).await?;
    let lines = logs.iter().map(|log| {
        let (origin, size, at) = (&log.origin, log.tree_size, log.cosigned_at);
        let mut lines = vec![format!("{origin}  {size} entries, cosigned at {at}")];
        for conflict in &log.conflicts {
            let at = conflict.at;
            lines.push(format!(
                "CONFLICT at {at}: the log has signed both of these heads"
            ));
            lines.push(conflict.cosigned.clone());
            lines.push(conflict.refused.clone());
        }
        lines.join("\n")
    });

    let lines: Vec<String> = lines.collect();
    output.one(&json!(logs), &lines.join("\n"));
    Ok(())
}
