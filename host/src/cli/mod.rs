//! Commands for operators.
//!
//! Each command prints text, or with `--json` one JSON value, on stdout. Logs go
//! to stderr. The exit status is 0, or 1 with an error message.

mod component;
mod components;
mod decisions;
mod declared;
mod dev;
mod diff_page;
mod import;
mod keys;
mod ledger;
mod listen;
mod log_lines;
mod mail;
mod moves;
mod organizations;
mod output;
mod registry;
mod rotation;
mod rules;
mod scaffold;
mod tape;
mod tokens;
mod usage;
mod users;
mod vault;
mod verify;
mod witness;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use rustix::fs::Mode;
use serde_json::json;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use crate::backup::{self, BackupManifest, RestoredBackup};
use crate::server;
use crate::start;
use holdfast_base::config::{self, Config, LogFormat, parse_duration};
use holdfast_base::traces::TraceExporter;
use holdfast_components::compiler::{self, COMMAND as COMPILE};
use holdfast_components::shared_files;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::OrgId;
use holdfast_domain::organization::Role;
use holdfast_platform::log;
use holdfast_service::doctor;
use log_lines::LogGuard;
use output::CommandOutput;
use witness::WitnessCommand;

/// Electronic signatures, tamper-evident authoritative copies, and their proof.
#[derive(Parser)]
#[command(name = "holdfast", version)]
struct CommandLine {
    /// Settings file (TOML).
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print one JSON value on stdout.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Subcommand)]
enum CliCommand {
    /// Serve HTTP and run background jobs.
    Serve,
    /// Serve on this machine with sample data and keys, and rebuild a project of rules or a plugin after each change.
    Dev(dev::Dev),
    /// Migrate the database schema.
    Migrate,
    /// Manage organizations and their settings.
    #[command(subcommand)]
    Org(organizations::OrganizationCommand),
    /// Manage API keys.
    #[command(subcommand)]
    Key(keys::KeyCommand),
    /// Manage web-app bearer tokens.
    #[command(subcommand)]
    Token(tokens::TokenCommand),
    /// Manage the users of an organization, who sign in to the console.
    #[command(subcommand)]
    User(users::UserCommand),
    /// Take in mails that other servers return.
    #[command(subcommand)]
    Mail(mail::MailCommand),
    /// Rotate the keys of this installation.
    #[command(subcommand)]
    Keys(rotation::KeyRotationCommand),
    /// Verify a released bundle (folder or zip), or an envelope of this installation.
    Verify(verify::VerifyTarget),
    /// Compare a loan tape with the contracts of bundles, offline.
    #[command(subcommand)]
    Tape(tape::TapeCommand),
    /// Send documents that were signed in another system to an installation, which makes records of them.
    Import(import::ImportArguments),
    /// Check the contents of the vault.
    #[command(subcommand)]
    Vault(vault::VaultCommand),
    /// Monitor the log of all custody ledgers from outside.
    #[command(subcommand)]
    Ledger(ledger::LedgerCommand),
    /// Be a witness: cosign the heads of the logs of others.
    #[command(subcommand)]
    Witness(WitnessCommand),
    /// Print events of an installation as they happen, and forward them to a receiver on this machine.
    Listen(listen::Listen),
    /// Send a sample of an event to a receiver on this machine.
    Trigger(listen::Trigger),
    /// Send events of an installation again.
    #[command(subcommand)]
    Events(listen::EventsCommand),
    /// Manage components: check, admit, activate, roll back.
    #[command(subcommand)]
    Component(component::ComponentCommand),
    /// Compare components with a signed desired state, and bring them to it.
    #[command(subcommand)]
    Components(components::ComponentsCommand),
    /// Export decisions of rules, and make them again with another component.
    #[command(subcommand)]
    Decisions(decisions::DecisionsCommand),
    /// Repeat all decisions of rules about an envelope, with exactly the components
    /// that decided.
    Replay(component::ReplayArguments),
    /// Back up the data folder, whether its server runs or not.
    Backup {
        /// A folder that is empty or does not exist yet.
        #[arg(required_unless_present = "forget_before")]
        to: Option<PathBuf>,
        /// Make no backup, and forget those of before this time, which are deleted: `doctor` names the oldest known one.
        #[arg(long, value_name = "TIME", conflicts_with = "to", value_parser = time)]
        forget_before: Option<Timestamp>,
    },
    /// Restore a backup into an empty data folder.
    Restore {
        /// Folder of the backup.
        from: PathBuf,
    },
    /// Move the installation to another database, for example from SQLite to PostgreSQL, and its objects to another
    /// store. Every server has to be stopped. An interrupted move is finished by the same command.
    Move(moves::MoveArguments),
    /// Show billed usage.
    #[command(subcommand)]
    Usage(usage::UsageCommand),
    /// List every setting with its default and meaning.
    Settings,
    /// Check each dependency.
    Doctor,
    /// List the files beside this program, for `sha256sum --check`.
    #[command(hide = true)]
    SharedFiles,
    /// Compile the component on standard input.
    #[command(name = COMPILE, hide = true)]
    Compile {
        /// Show how this machine confines the compiler instead.
        #[arg(long)]
        confinement: bool,
    },
}

impl CliCommand {
    /// Whether the command runs until it is stopped, with a log for its operator.
    fn is_server(&self) -> bool {
        matches!(self, Self::Serve | Self::Witness(WitnessCommand::Serve))
    }
}

/// Failure of a command, with a message for the operator.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Runs the command line and returns the exit status.
pub fn main() -> ExitCode {
    let cli = CommandLine::parse();
    // Before everything else: this child confines itself and reads unknown
    // bytes. It needs no settings or keys.
    if let CliCommand::Compile { confinement } = cli.command {
        let done = if confinement {
            compiler::show_confinement()
        } else {
            compiler::run_child()
        };
        return match done {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }

    // Keys, documents and the database are readable by this user only, even with a laxer umask.
    rustix::process::umask(Mode::from_raw_mode(0o077));
    let output = CommandOutput::new(cli.json);

    // Runs without loading the settings, because it helps to repair invalid ones.
    if let CliCommand::Settings = cli.command {
        let settings = json!(config::settings());
        output.one(&settings, config::reference().trim_end());
        return ExitCode::SUCCESS;
    }

    // Runs without settings as well: it is for those who make packages.
    if let CliCommand::SharedFiles = cli.command {
        for line in shared_files().filter_map(|file| file.checksum()) {
            println!("{line}");
        }
        return ExitCode::SUCCESS;
    }

    // The guard lives until the command has ended. Dropping it writes the last lines.
    let result = Config::load(cli.config.as_deref())
        .map_err(Failure::from)
        .and_then(|config| {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .enable_all()
                .build()?;
            let _log = {
                let _runtime = runtime.enter();
                start_logging(&config, cli.command.is_server())?
            };

            runtime.block_on(run(cli.command, config, &output))
        });

    match result {
        Ok(status) => status,
        Err(error) => {
            output.failure(error.as_ref());
            ExitCode::FAILURE
        }
    }
}

async fn run(
    command: CliCommand,
    config: Config,
    output: &CommandOutput,
) -> Result<ExitCode, Failure> {
    match command {
        CliCommand::Serve => {
            // Only a server is exposed. Other commands may run with the settings of any environment.
            config.check_exposure()?;
            if !config.is_production() {
                tracing::warn!(
                    "env is not production: sandbox payment, KBA and text message providers are active, their results prove nothing"
                );
            }

            if config.webhooks.allow_insecure {
                tracing::warn!("webhooks.allow_insecure: http and loopback receivers are admitted");
            }

            let app = start::start(config).await?;
            backup::remove_unsealed(&app.config, &app.store, app.clock.now()).await?;
            server::serve(app, termination()).await?;
        }
        CliCommand::Dev(command) => return dev::run(command, config, output).await,
        // Opening the database migrates it. The command exists so that a deployment
        // can do so before the nodes start.
        CliCommand::Migrate => {
            start::open_store(&config).await?;
            output.one(&json!({ "migrated": true }), "the schema is up to date");
        }
        CliCommand::Org(command) => organizations::run(command, &config, output).await?,
        CliCommand::Key(command) => keys::run(command, &config, output).await?,
        CliCommand::Token(command) => tokens::run(command, &config, output).await?,
        CliCommand::User(command) => users::run(command, config, output).await?,
        CliCommand::Mail(command) => mail::run(command, config, output).await?,
        CliCommand::Keys(command) => return rotation::run(command, &config, output).await,
        CliCommand::Verify(verify) => return verify::run(verify, config, output).await,
        CliCommand::Tape(command) => return tape::run(command, &config, output).await,
        CliCommand::Import(import) => return import::run(import, output).await,
        CliCommand::Vault(command) => return vault::run(command, config, output).await,
        CliCommand::Ledger(command) => return ledger::run(command, config, output).await,
        CliCommand::Witness(command) => witness::run(command, config, output).await?,
        CliCommand::Listen(command) => return listen::listen(command, output).await,
        CliCommand::Trigger(command) => return listen::trigger(command, output).await,
        CliCommand::Events(command) => return listen::events(command, output).await,
        CliCommand::Component(command) => return component::run(command, config, output).await,
        CliCommand::Components(command) => {
            return components::run(command, config, output).await;
        }
        CliCommand::Decisions(command) => return decisions::run(command, config, output).await,
        CliCommand::Replay(replay) => return component::replay(replay, config, output).await,
        CliCommand::Backup { to, forget_before } => {
            if let Some(before) = forget_before {
                let forgotten = backup::forget(&config, before).await?;
                let text = format!("{forgotten} backups forgotten");
                output.one(&json!({ "forgotten": forgotten }), &text);
            }
            if let Some(to) = to {
                let keys = config.record_keys();
                let files = keys.map(|_| start::open_files(&config)).transpose()?;
                let manifest = backup::back_up(&config, files.as_ref(), &to).await?;
                backed_up(output, &manifest, "backed up");
            }
        }
        CliCommand::Restore { from } => {
            let open_files = || start::open_files(&config).map_err(Failure::from);
            let restored = backup::restore(&config, &from, open_files).await?;
            put_back(output, &config, &restored);
        }
        CliCommand::Move(command) => moves::run(command, &config, output).await?,
        CliCommand::Usage(command) => usage::run(command, &config, output).await?,
        CliCommand::Doctor => return look(config, output).await,
        CliCommand::Compile { .. } | CliCommand::Settings | CliCommand::SharedFiles => {}
    }

    Ok(ExitCode::SUCCESS)
}

fn backed_up(output: &CommandOutput, manifest: &BackupManifest, done: &str) {
    let files = manifest.files.len();
    let bytes: u64 = manifest.files.values().map(|file| file.size).sum();
    let at = manifest.created_at;
    let text = format!("{done}: {files} files, {bytes} bytes, as of {at}");
    output.one(
        &json!({ "created_at": at, "files": files, "bytes": bytes }),
        &text,
    );
}

fn put_back(output: &CommandOutput, config: &Config, restored: &RestoredBackup) {
    // Without keys of records nothing was sealed.
    if config.record_keys().is_none() {
        return backed_up(output, &restored.manifest, "restored");
    }

    let RestoredBackup {
        manifest,
        unsealed,
        destroyed,
        without_key,
    } = restored;
    let files = manifest.files.len();
    let bytes: u64 = manifest.files.values().map(|file| file.size).sum();
    let at = manifest.created_at;
    let text = format!(
        "restored: {files} files, {bytes} bytes, as of {at}; {unsealed} records unsealed, {destroyed} destroyed since the \
         backup, {without_key} without a key"
    );
    let told = json!({
        "created_at": at, "files": files, "bytes": bytes, "unsealed": unsealed, "destroyed": destroyed,
        "without_key": without_key,
    });
    output.one(&told, &text);
}

async fn look(config: Config, output: &CommandOutput) -> Result<ExitCode, Failure> {
    let app = start::start(config).await?;
    // A start checks only that these files are there.
    for file in shared_files() {
        file.bytes()?;
    }

    let components = app.components.clone();
    // Loaded at their first use otherwise. Here a failure has to show, and loading them blocks for seconds.
    tokio::task::spawn_blocking(move || components.load_documents()).await?;

    // A running server has checked the log at its start.
    let _ = log::check(&app, &app.vault.log).await;
    let checks = doctor::checks(&app).await;
    let lines: Vec<String> = checks
        .iter()
        .map(|check| {
            format!(
                "{} {}: {}",
                if check.ok { "ok  " } else { "FAIL" },
                check.name,
                check.detail
            )
        })
        .collect();

    output.one(&serde_json::to_value(&checks)?, &lines.join("\n"));
    let healthy = checks.iter().all(|check| check.ok);
    Ok(if healthy {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Starts logging to stderr; commands other than `serve` log warnings only. A separate thread
/// writes the lines, so that no request waits for a slow reader. No line is dropped,
/// and dropping the returned guard flushes the rest.
fn start_logging(
    config: &Config,
    serving: bool,
) -> Result<(Option<TraceExporter>, LogGuard), Failure> {
    let filter = if serving {
        config.log.filter.as_str()
    } else {
        "warn"
    };

    // The library of the Model Context Protocol logs whole messages, which have credentials.
    let filter = format!("{filter},rmcp=warn");
    let (writer, guard) = log_lines::start(std::io::stderr())?;
    let lines = tracing_subscriber::fmt::layer().with_writer(writer);
    let lines = match config.log.format {
        LogFormat::Text => lines.with_ansi(false).boxed(),
        LogFormat::Json => lines.json().boxed(),
    };

    // Other commands end within seconds, and their operator sees the result without a trace.
    let exporter = if serving {
        TraceExporter::start(&config.traces)?
    } else {
        None
    };
    tracing_subscriber::registry()
        .with(exporter.as_ref().map(TraceExporter::layer))
        .with(lines.with_filter(EnvFilter::new(filter)))
        .init();

    Ok((exporter, guard))
}

/// Waits for SIGTERM or SIGINT.
async fn termination() {
    use tokio::signal::unix::{SignalKind, signal};

    // Orchestrators end a process with SIGTERM, a terminal with SIGINT.
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        }
        Err(error) => {
            tracing::error!(%error, "the handler for SIGTERM could not be installed");
            let _ = tokio::signal::ctrl_c().await;
        }
    }
}

/// Writes a temporary file and renames it, so that a crash leaves the old content or the new one.
fn keep(path: &Path, text: &[u8]) -> Result<(), Failure> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    // In the same folder, because a rename is atomic within one file system only.
    let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    std::io::Write::write_all(&mut file, text)?;
    // Without this sync, a crash could leave an empty file under the final name.
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

fn time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).ok_or_else(|| "not a time, for example 2027-01-01T05:00:00Z".into())
}

fn org_id(text: &str) -> Result<OrgId, String> {
    OrgId::parse(text).ok_or_else(|| "not an organization id (org_…)".into())
}

fn role(text: &str) -> Result<Role, String> {
    Role::parse(text).ok_or_else(|| {
        let known: Vec<&str> = Role::ALL.iter().map(|role| role.as_str()).collect();
        format!("unknown role; known are {}", known.join(", "))
    })
}

/// Returns the list of roles for `--help`.
fn roles_help() -> String {
    let mut help = "Role (docs/roles.md has the operations of each):".to_owned();
    for role in Role::ALL {
        help.push_str(&format!("\n  {:<10} {}", role.as_str(), role.allows()));
    }

    help
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "no duration like 30m or 8h".into())
}
