//! `holdfast keys`: the keys of the installation.

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::{Value, json};

use super::Failure;
use super::output::CommandOutput;
use crate::start;
use holdfast_adapters::files::{Files, WalkedRecordKeys};
use holdfast_base::config::Config;
use holdfast_base::keys;
use holdfast_domain::checkpoint::CheckpointSigner;
use holdfast_domain::clock::Clock;
use holdfast_domain::succession::KeySuccession;
use holdfast_platform::access::credentials;
use holdfast_service::signing::reencryption;
use holdfast_store::log;

#[derive(Subcommand)]
pub enum KeyRotationCommand {
    /// Create the next master key, which nodes can read from their next start on. Needed
    /// before a rotation if several nodes restart one after the other.
    Prepare,
    /// Replace the master key. Data sealed with the previous key stays readable; servers use
    /// the new key from their next start on.
    Rotate {
        /// Replace the key that signs the head of the log, instead of the master key.
        #[arg(long)]
        log: bool,
    },
    /// Reseal data of the previous master key with the current one, and wrap the keys of records with the first key of
    /// documents. Needed between two rotations, once all servers run with the current key.
    Reseal,
}

pub async fn run(
    command: KeyRotationCommand,
    config: &Config,
    output: &CommandOutput,
) -> Result<ExitCode, Failure> {
    match command {
        KeyRotationCommand::Prepare => {
            keys::prepare(&config.data_dir)?;
            let text = "the next master key is prepared: give keys/master.next.key to every \
                        node and restart them, then rotate";
            output.one(&json!({ "prepared": true }), text);
        }
        KeyRotationCommand::Rotate { log: false } => return rotate(config, output).await,
        KeyRotationCommand::Rotate { log: true } => rotate_log(config, output).await?,
        KeyRotationCommand::Reseal => {
            let store = start::open_store(config).await?;
            let cipher = start::keys(config)?
                .cipher()
                .ok_or("the keys cannot be used")?;
            // The next rotation forgets the previous key, so data that still needs it would be lost.
            let secrets = reencryption::reencrypt(&store, &cipher).await?;
            let records = match record_keys(config)? {
                Some(files) => files.rewrap_record_keys().await?,
                None => WalkedRecordKeys::default(),
            };

            let resealed = secrets + records.count;
            let text = format!("{resealed} secrets were sealed with the current key");
            let shown = json!({ "resealed": resealed, "damaged_keys": records.damaged });
            return Ok(done(output, &shown, &text, &records.damaged));
        }
    }

    Ok(ExitCode::SUCCESS)
}

/// Shows what a command has done, and the records with keys that it had to leave. They make its exit status.
fn done(output: &CommandOutput, shown: &Value, text: &str, damaged: &[String]) -> ExitCode {
    if damaged.is_empty() {
        output.one(shown, text);
        return ExitCode::SUCCESS;
    }

    let damaged = damaged.join(", ");
    let text = format!(
        "{text}\nthe keys of these records do not open with any key of this installation; put their files in \
         storage.record_keys back from a copy: {damaged}"
    );
    output.one(shown, &text);
    ExitCode::FAILURE
}

/// Opens the store with the keys of records, if they are configured.
fn record_keys(config: &Config) -> Result<Option<Files>, Failure> {
    let configured = config.record_keys();
    Ok(configured.map(|_| start::open_files(config)).transpose()?)
}

async fn rotate(config: &Config, output: &CommandOutput) -> Result<ExitCode, Failure> {
    let store = start::open_store(config).await?;
    let cipher = start::keys(config)?
        .cipher()
        .ok_or("the keys cannot be used")?;
    // Only two master keys are kept, and this rotation replaces the older one.
    let records = match record_keys(config)? {
        Some(files) => files.record_keys_of_older_master().await?,
        None => WalkedRecordKeys::default(),
    };
    let older = reencryption::count(&store, &cipher).await? + records.count;
    if older > 0 {
        return Err(format!(
            "{older} secrets are sealed with the previous master key, which this rotation \
             would forget: run `holdfast keys reseal` first"
        )
        .into());
    }

    let now = Clock::ahead_by(config.clock_offset.unwrap_or_default()).now();
    // The entry commits after the key is replaced: a rotation that fails leaves no entry about one.
    let mut tx = store.begin().await?;
    credentials::record(&mut tx, None, "master_key.rotated", json!({}), now).await?;
    keys::rotate(&config.data_dir)?;
    tx.commit().await?;
    let text = "the master key is replaced: restart the servers, then run `holdfast keys reseal`";
    let shown = json!({ "rotated": "master", "damaged_keys": records.damaged });
    Ok(done(output, &shown, text, &records.damaged))
}

/// Replaces the log's key. Both keys sign the succession, which is published with the log's head.
/// The next run finishes an interrupted one.
async fn rotate_log(config: &Config, output: &CommandOutput) -> Result<(), Failure> {
    let store = start::open_store(config).await?;
    let old = start::keys(config)?;
    let next = keys::prepare_log(&config.data_dir)?;
    let unusable = "the key of the log cannot be used";
    let old = CheckpointSigner::new(old.log()).ok_or(unusable)?;
    let new = CheckpointSigner::new(&next).ok_or(unusable)?;
    let now = Clock::ahead_by(config.clock_offset.unwrap_or_default()).now();

    let mut tx = store.begin().await?;
    // No node may extend the log while the succession names its size, up to which the old key may sign.
    let head = log::locked(&mut tx).await?;
    if let Some(head) = head.filter(|head| head.public_key.is_some()) {
        let (before, after) = (old.verifier(&head.origin), new.verifier(&head.origin));
        let known = log::successions(&mut tx).await?;
        let recorded = known.iter().any(|note| {
            KeySuccession::open(note).is_ok_and(|succession| succession.new_key() == &after)
        });
        // An earlier run may have ended between its commit and the promotion.
        // Then only the promotion is missing.
        if !recorded {
            let current = known
                .last()
                .and_then(|note| KeySuccession::open(note).ok())
                .map_or(head.public_key.clone(), |last| {
                    Some(last.new_key().to_string())
                });
            // A succession by an untrusted key would cut the log off from its verifiers.
            if current != Some(before.to_string()) {
                return Err(
                    "the log is signed with another key than this node's keys/log.key".into(),
                );
            }

            let note = KeySuccession::sign(&old, &new, &head.origin, head.size);
            log::add_succession(&mut tx, &note, now).await?;
            let details = json!({ "old": before.to_string(), "new": after.to_string() });
            credentials::record(&mut tx, None, "log_key.rotated", details, now).await?;
        }
    }

    // In this order: the promotion deletes the old key, and without it a missing
    // succession could never be signed.
    tx.commit().await?;
    keys::promote_log(&config.data_dir)?;
    let text = "the key of the log is replaced: give keys/log.key to every node and restart \
                the servers now, as none extends the log with the old key any more";
    output.one(&json!({ "rotated": "log" }), text);

    Ok(())
}
