//! `holdfast ledger`: monitoring a log from outside, and the witnesses of this installation's log.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::Failure;
use super::output::CommandOutput;
use crate::start;
use holdfast_base::config::Config;
use holdfast_base::tls;
use holdfast_domain::checkpoint::{Checkpoint, VerifierKey};
use holdfast_domain::merkle::{self, Hash};
use holdfast_domain::succession::BelievedKeys;
use holdfast_evidence::formats::LogHead;
use holdfast_platform::log::cosignatures;

/// Maximum response size in bytes, more than any head has.
const ANSWER_LIMIT: usize = 1024 * 1024;

#[derive(Subcommand)]
pub enum LedgerCommand {
    /// Fetch the head of a log, and check that it extends the last one seen.
    Monitor(LogMonitor),
    /// List the witnesses of this installation's log: what each has cosigned, and both heads where one contradicts
    /// the log.
    Witnesses,
}

#[derive(Args)]
pub struct LogMonitor {
    /// Address of the installation, such as https://sign.example. One that ends in /api/v2 is taken as it is.
    #[arg(long, env = "HOLDFAST_URL")]
    url: Url,
    /// File with the last head seen; created by the first run.
    #[arg(long, value_name = "FILE")]
    state: PathBuf,
    /// Public key of the log that you trust. Without it the first run trusts
    /// the log's key, and later runs require the same key.
    #[arg(long)]
    key: Option<String>,
    /// Interval for repeating the check; without it, check once.
    #[arg(long, value_parser = super::duration)]
    every: Option<Duration>,
}

/// Result of checking the head of a log.
enum MonitorVisit {
    First,
    Same,
    Grown { from: u64 },
}

/// Runs a command.
pub async fn run(
    command: LedgerCommand,
    config: Config,
    output: &CommandOutput,
) -> Result<ExitCode, Failure> {
    match command {
        LedgerCommand::Monitor(monitor) => watch(monitor, output).await,
        LedgerCommand::Witnesses => witnesses(config, output).await,
    }
}

async fn witnesses(config: Config, output: &CommandOutput) -> Result<ExitCode, Failure> {
    let app = start::start(config).await?;
    let witnesses = cosignatures::list(&app).await?;
    let mut lines = Vec::new();
    for witness in &witnesses {
        let (name, size) = (&witness.name, witness.tree_size);
        let problem = witness.problem.as_deref().unwrap_or("ok");
        lines.push(format!("{name}  {size} entries  {problem}"));
        if let Some(conflict) = &witness.conflict {
            let (at, reason) = (conflict.at, &conflict.reason);
            lines.push(format!("CONFLICT at {at}: {reason}"));
            lines.push(conflict.own_head.clone());
            lines.extend(conflict.witness_head.clone());
        }
    }

    output.one(&json!(witnesses), &lines.join("\n"));
    Ok(ExitCode::SUCCESS)
}

async fn watch(monitor: LogMonitor, output: &CommandOutput) -> Result<ExitCode, Failure> {
    tls::use_one();
    // Without a limit, a log that never answers would stop the monitoring in silence.
    let http = reqwest::Client::builder()
        .timeout(Duration::from_secs(30))
        .build()?;
    loop {
        let (head, look) = match (monitor.look(&http).await, monitor.every) {
            (Ok(seen), _) => seen,
            // A log that is unreachable for a while is no reason to stop monitoring.
            (Err(error), Some(period)) if error.is::<reqwest::Error>() => {
                output.failure(error.as_ref());
                tokio::time::sleep(period).await;
                continue;
            }
            (Err(error), _) => return Err(error),
        };

        let text = match look {
            MonitorVisit::First => format!("first seen at {} entries", head.size),
            MonitorVisit::Same => format!("still at {} entries", head.size),
            MonitorVisit::Grown { from } => {
                format!("grown from {from} to {} entries, consistently", head.size)
            }
        };

        let found = json!({
            "origin": head.origin,
            "tree_size": head.size,
            "root_hash": hex::encode(head.root),
            "consistent": true,
        });
        output.one(&found, &format!("{}: {text}", head.origin));

        match monitor.every {
            None => return Ok(ExitCode::SUCCESS),
            Some(period) => tokio::time::sleep(period).await,
        }
    }
}

impl LogMonitor {
    async fn look(&self, http: &reqwest::Client) -> Result<(Checkpoint, MonitorVisit), Failure> {
        // Only a missing file means a first run. Another error must not make the
        // monitor forget the head it trusts.
        let seen = match std::fs::read(&self.state) {
            Ok(text) => Some(serde_json::from_slice::<LogHead>(&text)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        // The log is asked for a proof from the last size, because two signed heads alone prove no history.
        let since = seen.as_ref().map(|seen| seen.tree_size);
        let text = self.ask(http, since).await?;
        let mut head: LogHead = serde_json::from_slice::<HeadAnswer>(&text)?.data;
        // The key of the answer counts at the first visit only. Later, a log with another key is refused
        // unless the old and the new key have both signed the succession.
        let key = match (&self.key, &seen) {
            (Some(key), _) => key,
            (None, Some(seen)) => &seen.public_key,
            (None, None) => &head.public_key,
        };
        let key = VerifierKey::parse(key).ok_or("the log's key is not a verifier key")?;
        let keys = BelievedKeys::new(key, &head.successions);
        let (checkpoint, key) = keys.open(&head.checkpoint)?;
        let look = match &seen {
            None => MonitorVisit::First,
            Some(seen) => {
                let (seen, _) = keys.open(&seen.checkpoint)?;
                follows(&seen, &checkpoint, &head)?;
                if seen == checkpoint {
                    MonitorVisit::Same
                } else {
                    MonitorVisit::Grown { from: seen.size }
                }
            }
        };

        // The file keeps the signed note and the trusted key.
        head.public_key = key.to_string();
        head.origin = checkpoint.origin.clone();
        head.tree_size = checkpoint.size;
        head.root_hash = hex::encode(checkpoint.root);
        // Written only after all checks: a head that does not follow the last one must never replace it.
        super::keep(&self.state, &serde_json::to_vec_pretty(&head)?)?;

        Ok((checkpoint, look))
    }

    async fn ask(&self, http: &reqwest::Client, since: Option<u64>) -> Result<Vec<u8>, Failure> {
        let mut url = head_of(&self.url)?;
        if let Some(since) = since {
            url.query_pairs_mut()
                .append_pair("since", &since.to_string());
        }

        let answer = http.get(url).send().await?;
        // An honest log only grows, so a size that it does not know any more is evidence of a rewrite.
        if since.is_some() && answer.status() == 404 {
            return Err("NOT CONSISTENT: the log has fewer entries than before".into());
        }

        let mut answer = answer.error_for_status()?;
        // The log may be hostile, so its answer must not fill the monitor's memory.
        let mut text = Vec::new();
        while let Some(piece) = answer.chunk().await? {
            text.extend_from_slice(&piece);
            if text.len() > ANSWER_LIMIT {
                return Err("the log's answer is too large".into());
            }
        }

        Ok(text)
    }
}

/// Returns the address of the log's head, from that of the installation or of its API.
fn head_of(installation: &Url) -> Result<Url, Failure> {
    let mut url = installation.clone();
    let of_api = installation
        .path()
        .trim_end_matches('/')
        .ends_with("/api/v2");
    let api: &[&str] = if of_api { &[] } else { &["api", "v2"] };
    url.path_segments_mut()
        .map_err(|()| "the address cannot have a path")?
        .pop_if_empty()
        .extend(api)
        .extend(["ledger", "head"]);

    Ok(url)
}

#[derive(Deserialize)]
struct HeadAnswer {
    data: LogHead,
}

fn follows(seen: &Checkpoint, now: &Checkpoint, head: &LogHead) -> Result<(), Failure> {
    // A proof from another size does not cover the head that was seen.
    let proof = head
        .consistency
        .as_ref()
        .filter(|proof| proof.from == seen.size)
        .ok_or("the log gave no consistency proof")?;
    let proof: Option<Vec<Hash>> = proof.proof.iter().map(|node| merkle::parse(node)).collect();
    let proof = proof.ok_or("the consistency proof is malformed")?;
    if merkle::extends(seen.size, &seen.root, &proof, now.size, &now.root) {
        return Ok(());
    }

    Err(format!(
        "NOT CONSISTENT: the log of {} entries does not begin with the {} entries seen before",
        now.size, seen.size
    )
    .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_monitor_takes_the_address_of_the_installation_or_of_its_api() {
        for (given, head) in [
            (
                "https://sign.example",
                "https://sign.example/api/v2/ledger/head",
            ),
            (
                "https://sign.example/api/v2",
                "https://sign.example/api/v2/ledger/head",
            ),
            (
                "https://sign.example/api/v2/",
                "https://sign.example/api/v2/ledger/head",
            ),
            (
                "https://example.org/sign/",
                "https://example.org/sign/api/v2/ledger/head",
            ),
        ] {
            let url = Url::parse(given).unwrap();
            assert_eq!(head_of(&url).unwrap().as_str(), head, "{given}");
        }

        let mail = Url::parse("mailto:log@example.org").unwrap();
        assert!(head_of(&mail).is_err());
    }
}
