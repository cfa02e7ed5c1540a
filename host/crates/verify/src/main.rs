//! `holdfast-verify`: checks a bundle without a server, a database or a network.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use holdfast_evidence::{
    Bundle, BundleError, DecisionsReport, EvidenceVerdict, ExpectedExport, IssuedStatement,
    PoolReport, StatementReport, TrustedLogs, VerificationReport, verify_decisions, verify_pool,
    verify_statement,
};
use holdfast_rules::compiler::{self, ComponentCompiler};
use holdfast_verify::{
    Failure, USAGE, VerifyArguments, decisions_text, pool_text, statement_text, text,
};
use serde::Serialize;

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
    #[arg(required_unless_present_any = ["pool", "statement", "decisions"])]
    bundle: Option<PathBuf>,
    /// Zip with the proofs of a pool, instead of a bundle.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["bundle", "component"])]
    pool: Option<PathBuf>,
    /// JSON of a statement of control, instead of a bundle.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["bundle", "component", "pool"])]
    statement: Option<PathBuf>,
    /// Export of decisions in JSON Lines, instead of a bundle.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["bundle", "component", "pool", "statement"])]
    decisions: Option<PathBuf>,
    /// Last block of an export of decisions that was verified before: this one begins behind it.
    #[arg(
        long,
        value_name = "BLOCK",
        requires = "decisions",
        default_value_t = 0
    )]
    after: i64,
    /// Accept masked values in an export of decisions.
    #[arg(long, requires = "decisions")]
    masked: bool,
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
    let trusted = match command
        .arguments
        .trusted(command.timestamp_trust.as_deref())
    {
        Ok(trusted) => trusted,
        Err(error) => return failed(&error, USAGE),
    };
    // A file that is no pool at all gives no verdict. Exit code 1 would state that the evidence is not valid.
    if let Some(file) = &command.pool {
        return match pool(file, &trusted) {
            Ok(report) => printed(command.json, &report, pool_text, report.verdict),
            Err(error) => failed(&error, USAGE),
        };
    }

    if let Some(file) = &command.statement {
        return match statement(file, &trusted) {
            Ok(report) => printed(command.json, &report, statement_text, report.verdict),
            Err(error) => failed(&error, USAGE),
        };
    }
    if let Some(file) = &command.decisions {
        let expected = ExpectedExport {
            after: command.after,
            masked: command.masked,
        };
        return match decisions(file, expected, &trusted) {
            Ok(report) => printed(command.json, &report, decisions_text, report.verdict),
            Err(error) => failed(&error, USAGE),
        };
    }

    let bundle = command.bundle.as_deref();
    let bundle = bundle.ok_or_else(|| BundleError::Read("none is given".into()));
    let bundle = match bundle.and_then(Bundle::read) {
        Ok(bundle) => bundle,
        Err(error) => return failed(&error.into(), USAGE),
    };
    match checked(&command, &bundle, &trusted) {
        Ok(report) => printed(command.json, &report, text, report.verdict),
        Err(error) => failed(&error, 1),
    }
}

fn printed<T: Serialize>(
    json: bool,
    report: &T,
    text: impl Fn(&T) -> String,
    verdict: EvidenceVerdict,
) -> ExitCode {
    match (json, serde_json::to_string_pretty(report)) {
        (true, Ok(json)) => println!("{json}"),
        _ => println!("{}", text(report)),
    }
    ExitCode::from(verdict.exit_code())
}

fn pool(file: &Path, trusted: &TrustedLogs) -> Result<PoolReport, Failure> {
    let opened = std::fs::File::open(file);
    let opened = opened.map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(verify_pool(std::io::BufReader::new(opened), trusted)?)
}

fn decisions(
    file: &Path,
    expected: ExpectedExport,
    trusted: &TrustedLogs,
) -> Result<DecisionsReport, Failure> {
    let opened = std::fs::File::open(file);
    let opened = opened.map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(verify_decisions(
        std::io::BufReader::new(opened),
        expected,
        trusted,
    )?)
}

fn statement(file: &Path, trusted: &TrustedLogs) -> Result<StatementReport, Failure> {
    let read = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let unreadable = |error| format!("{} is no statement of control: {error}", file.display());
    let issued = IssuedStatement::read(&read).map_err(unreadable)?;
    let report = verify_statement(&issued, trusted);
    Ok(report.map_err(|error| unreadable(error.to_string()))?)
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
