//! `holdfast-verify`: checks a bundle without a server, a database or a network.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use holdfast_evidence::{Bundle, TrustedLogs, VerificationReport};
use holdfast_rules::compiler::{self, ComponentCompiler};
use holdfast_verify::{Failure, USAGE, VerifyArguments, text};

/// Time limit for compiling the rules of a bundle.
const COMPILE_LIMIT: Duration = Duration::from_secs(120);

/// Checks the evidence of an envelope.
#[derive(Parser)]
#[command(
    name = "holdfast-verify",
    version,
    after_help = "Exit codes: 0 valid, 1 not valid, 2 arguments that cannot be used, \
                  3 consistent and not anchored, 4 intact and not re-evaluated."
)]
struct VerifyCommand {
    /// Folder or zip with the evidence.
    bundle: PathBuf,
    #[command(flatten)]
    arguments: VerifyArguments,
    /// Root certificates of time stamping authorities, in PEM.
    #[arg(long, value_name = "FILE")]
    timestamp_trust: Option<PathBuf>,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    // This program starts itself with this argument to compile the rules of a bundle.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|argument| argument == compiler::COMMAND)
    {
        return match compiler::run_child() {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    let command = VerifyCommand::parse();
    let (trusted, bundle) = match given(&command) {
        Ok(given) => given,
        Err(error) => return failed(&error, USAGE),
    };
    match checked(&command, &bundle, &trusted) {
        Ok(report) => {
            match (command.json, serde_json::to_string_pretty(&report)) {
                (true, Ok(json)) => println!("{json}"),
                _ => println!("{}", text(&report)),
            }
            ExitCode::from(report.verdict.exit_code())
        }
        Err(error) => failed(&error, 1),
    }
}

fn given(command: &VerifyCommand) -> Result<(TrustedLogs, Bundle), Failure> {
    let trusted = command
        .arguments
        .trusted(command.timestamp_trust.as_deref())?;
    Ok((trusted, Bundle::read(&command.bundle)?))
}

fn checked(
    command: &VerifyCommand,
    bundle: &Bundle,
    trusted: &TrustedLogs,
) -> Result<VerificationReport, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let compiler = ComponentCompiler::new(None, COMPILE_LIMIT);
    runtime.block_on(command.arguments.verify(bundle, trusted, &compiler))
}

fn failed(error: &Failure, code: u8) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::from(code)
}
