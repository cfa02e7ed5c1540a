//! `holdfast mail`: mails that other servers return.

use std::io::Read as _;

use clap::Subcommand;
use serde_json::json;

use super::Failure;
use super::output::CommandOutput;
use crate::start;
use holdfast_base::config::Config;
use holdfast_platform::mails::{self, BounceOutcome};

/// Maximum size of a returned mail in bytes: a status report with the mail and its attachments.
const LARGEST: u64 = 40 * 1024 * 1024;

#[derive(Subcommand)]
pub enum MailCommand {
    /// Record the bounce on standard input, a mail that arrived at `mail_bounces`. A message that is
    /// no bounce of a mail to a signer is ignored, with exit status 0.
    Bounced,
}

/// Runs a command. Exit status 1 if the bounce could not be recorded: the mail server should try
/// again.
pub async fn run(
    command: MailCommand,
    config: Config,
    output: &CommandOutput,
) -> Result<(), Failure> {
    let MailCommand::Bounced = command;
    let mut message = Vec::new();
    std::io::stdin().take(LARGEST).read_to_end(&mut message)?;

    // Parts of a bounce may have another encoding. The parts that the node reads are ASCII.
    let message = String::from_utf8_lossy(&message);

    let app = start::start(config).await?;
    // An error and not an ignored mail: the mail server keeps the bounce until the setting is there.
    let mailbox = app.mailer.bounces();
    let mailbox = mailbox.ok_or("mail_bounces is not set, so no mail has an address of its own")?;
    match mails::take_bounce(&app, mailbox, &message).await? {
        BounceOutcome::Recorded {
            envelope,
            signer,
            reason,
        } => {
            let text = format!("recorded for signer {signer} of {envelope}: {reason}");
            let value = json!({
                "recorded": true, "envelope_id": envelope, "signer_id": signer, "reason": reason,
            });
            output.one(&value, &text);
        }
        BounceOutcome::Ignored(why) => {
            let value = json!({ "recorded": false, "reason": why });
            output.one(&value, &format!("ignored: {why}"));
        }
    }

    Ok(())
}
