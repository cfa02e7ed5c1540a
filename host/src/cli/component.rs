//! `holdfast component` and `holdfast replay`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bytes::Bytes;
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};

use super::declared::{self, BuildRules};
use super::output::CommandOutput;
use super::registry::{self, FoundComponent};
use super::rules::{self, DiffRules, PreparedComponent, TestRules, Workbench};
use super::scaffold::{self, NewComponent};
use super::{Failure, org_id, time};
use crate::start;
use holdfast_adapters::files::{FilesError, SpoolWriter};
use holdfast_base::config::Config;
use holdfast_base::disk;
use holdfast_components::inspection::{self, AdmissionReason, InspectedComponent};
use holdfast_components::script::FarEndScript;
use holdfast_components::vectors::VectorSet;
use holdfast_components::worlds;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::{ConformanceResult, Slot};
use holdfast_domain::envelope::EnvelopeKind;
use holdfast_domain::id::{EnvelopeId, OrgId};
use holdfast_platform::components::attestations::{self, AttestationView};
use holdfast_platform::components::shadow::{self, ReplayRequest};
use holdfast_platform::components::{
    self, ActivationRequest, ComponentOwner, ComponentUpload, ComponentView, RollbackRequest,
};
use holdfast_platform::{Caller, ServiceError};
use holdfast_service::App;
use holdfast_store::organizations;

#[derive(Subcommand)]
pub enum ComponentCommand {
    /// Create a folder with a new component that builds, and its tests.
    New(NewComponent),
    /// Convert a core module from a compiler to a component.
    Encode {
        module: PathBuf,
        /// Output file.
        component: PathBuf,
        /// Slot of a module that names no world, as Go's compiler makes it. It may use WASI preview 1.
        #[arg(long, value_parser = slot)]
        slot: Option<Slot>,
        /// Vectors of your rules, in YAML. They travel inside the component.
        #[arg(long, value_name = "FILE")]
        vectors: Option<PathBuf>,
    },
    /// Make a component from declared rules. No compiler is needed.
    Build(BuildRules),
    /// Run the vectors of your rules, and report the checks and branches that they cover.
    Test(TestRules),
    /// Compare two rules components on generated facts, with a smallest example of each difference.
    Diff(DiffRules),
    /// Check whether a component would be admitted. Needs no installation.
    Check {
        file: PathBuf,
        /// Script of a provider's external service: JSON, see the plugin guide.
        /// Can be given several times.
        #[arg(long, value_name = "FILE")]
        script: Vec<PathBuf>,
    },
    /// Admit a component for one organization, or for all.
    Upload(UploadFile),
    /// Download a component from an OCI registry, by digest. Needs no installation.
    Pull {
        /// `oci://host/name@sha256:…`.
        reference: String,
        /// Output file.
        file: PathBuf,
    },
    /// Upload a component to an OCI registry and print its reference by digest. Needs no installation.
    Push {
        file: PathBuf,
        /// `oci://host/name:tag`.
        reference: String,
    },
    /// Attach bundles of Sigstore to a component in an OCI registry.
    Attach {
        /// `oci://host/name@sha256:…`.
        reference: String,
        /// Files with bundles about the component or its manifest.
        #[arg(required = true)]
        bundle: Vec<PathBuf>,
    },
    /// Show what publishers say about a component: signatures, provenance, bills of materials.
    Attestations {
        component: String,
        #[command(flatten)]
        whose: OwnerArguments,
    },
    /// List components, newest first.
    List {
        #[command(flatten)]
        whose: OwnerArguments,
    },
    /// Show the present and past activations of every slot.
    Slots {
        #[command(flatten)]
        whose: OwnerArguments,
    },
    /// Show the component ledger: all changes of components, with actor and reason.
    History {
        #[command(flatten)]
        whose: OwnerArguments,
    },
    /// Activate a component in its slot. All nodes follow within two seconds.
    Activate(ActivateComponent),
    /// Roll back the current activation: the previous component is active again.
    Rollback(RollBackSlot),
    /// Evaluate an organization's latest records again with a candidate and with the
    /// active component, and list all differences. Changes nothing.
    Shadow {
        component: String,
        #[arg(long, value_parser = org_id)]
        org: OrgId,
        /// Number of records.
        #[arg(long, default_value_t = 1000)]
        records: i64,
        /// Only decisions from this time on, for example 2026-01-01T00:00:00Z.
        #[arg(long, value_parser = time)]
        since: Option<Timestamp>,
        /// Only decisions before this time.
        #[arg(long, value_parser = time)]
        until: Option<Timestamp>,
        /// Only decisions about envelopes of this kind: esign or paper.
        #[arg(long, value_parser = kind)]
        kind: Option<EnvelopeKind>,
    },
}

#[derive(Args)]
pub struct OwnerArguments {
    /// Organization; without it, the installation.
    #[arg(long, value_parser = org_id)]
    org: Option<OrgId>,
}

#[derive(Args)]
pub struct UploadFile {
    /// File, or `oci://host/name@sha256:…`.
    file: String,
    #[arg(long)]
    name: String,
    /// Semantic version.
    #[arg(long)]
    version: String,
    /// Ed25519 signature of the file, in base64.
    #[arg(long)]
    signature: Option<String>,
    /// File with bundles of Sigstore about the file. Can be given several times.
    #[arg(long, value_name = "FILE")]
    bundle: Vec<PathBuf>,
    /// Manifest of the component, as `pull` wrote it. The bundles came from the registry then: those that prove nothing
    /// are left out.
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    #[command(flatten)]
    whose: OwnerArguments,
}

#[derive(Args)]
pub struct ActivateComponent {
    #[arg(value_parser = slot)]
    slot: Slot,
    component: String,
    /// Provider instance; the built-in one if absent.
    #[arg(long)]
    instance: Option<String>,
    /// JSON file with the configuration of an organization's own instance.
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    #[arg(long)]
    reason: Option<String>,
    /// Start of the activation, for example 2027-01-01T05:00:00Z; now if absent.
    #[arg(long, value_parser = time)]
    at: Option<Timestamp>,
    #[command(flatten)]
    whose: OwnerArguments,
}

#[derive(Args)]
pub struct RollBackSlot {
    #[arg(value_parser = slot)]
    slot: Slot,
    #[arg(long)]
    instance: Option<String>,
    #[arg(long)]
    reason: Option<String>,
    /// Activation to roll back, if not the current one.
    #[arg(long)]
    activation: Option<String>,
    #[command(flatten)]
    whose: OwnerArguments,
}

fn slot(text: &str) -> Result<Slot, String> {
    Slot::parse(text).ok_or_else(|| {
        format!(
            "unknown slot; known are {}",
            Slot::ALL.map(Slot::as_str).join(", ")
        )
    })
}

fn kind(text: &str) -> Result<EnvelopeKind, String> {
    EnvelopeKind::parse(text).ok_or_else(|| "not a kind: esign or paper".into())
}

impl OwnerArguments {
    /// Returns the organization, which must exist, or the installation.
    async fn owner(&self, app: &App) -> Result<ComponentOwner, Failure> {
        if let Some(org) = &self.org {
            organizations_check(app, org).await?;
        }
        Ok(ComponentOwner {
            org: self.org.clone(),
            ..ComponentOwner::installation()
        })
    }
}

async fn organizations_check(app: &App, org: &OrgId) -> Result<(), Failure> {
    let mut connection = app.store.read().await?;
    match organizations::get(&mut connection, org).await? {
        Some(_) => Ok(()),
        None => Err(format!("there is no organization {org}").into()),
    }
}

/// Runs a command. Exit status 1 if a component is refused.
pub async fn run(
    command: ComponentCommand,
    config: Config,
    output: &CommandOutput,
) -> Result<ExitCode, Failure> {
    // Authors have no installation. These commands must neither open nor migrate a database.
    let command = match command {
        ComponentCommand::New(new) => return scaffold::new(&new, output),
        ComponentCommand::Encode {
            module,
            component,
            slot,
            vectors,
        } => return encode(&module, &component, slot, vectors.as_deref(), output),
        ComponentCommand::Build(build) => return declared::build(&build, output),
        ComponentCommand::Test(test) => return rules::test(test, &config, output).await,
        ComponentCommand::Diff(diff) => return rules::diff(diff, &config, output).await,
        ComponentCommand::Pull { reference, file } => {
            registry::pull(&reference, &file, &config, output).await?;
            return Ok(ExitCode::SUCCESS);
        }
        ComponentCommand::Push { file, reference } => {
            registry::push(&file, &reference, &config, output).await?;
            return Ok(ExitCode::SUCCESS);
        }
        ComponentCommand::Attach { reference, bundle } => {
            registry::attach(&reference, &bundle, &config, output).await?;
            return Ok(ExitCode::SUCCESS);
        }
        ComponentCommand::Check { file, script } => {
            return check(&file, &script, &config, output).await;
        }
        other => other,
    };

    let app = start::start(config).await?;
    match command {
        ComponentCommand::New(_)
        | ComponentCommand::Encode { .. }
        | ComponentCommand::Build(_)
        | ComponentCommand::Test(_)
        | ComponentCommand::Diff(_)
        | ComponentCommand::Pull { .. }
        | ComponentCommand::Push { .. }
        | ComponentCommand::Attach { .. }
        | ComponentCommand::Check { .. } => {}
        ComponentCommand::Upload(upload) => return self::upload(&app, upload, output).await,
        ComponentCommand::Attestations { component, whose } => {
            let owner = whose.owner(&app).await?;
            let found = attestations::list(&app, &owner, &component)
                .await
                .map_err(told)?;
            let lines: Vec<String> = found.iter().map(attestation_line).collect();
            output.one(&json!(found), &lines.join("\n"));
        }
        ComponentCommand::List { whose } => {
            let owner = whose.owner(&app).await?;
            // Built-in components get their rows only now if no server of this version has run yet.
            components::keep_defaults(&app).await?;
            let (found, _) = components::list(&app, &owner, None, 1, i64::MAX).await?;
            let lines: Vec<String> = found
                .iter()
                .map(|one| {
                    format!(
                        "{}  {:<18} {} {}",
                        one.component_id, one.slot, one.name, one.version
                    )
                })
                .collect();

            output.one(&json!(found), &lines.join("\n"));
        }
        ComponentCommand::Slots { whose } => {
            let owner = whose.owner(&app).await?;
            let slots = components::slots(&app, &app.management, &owner).await?;
            let lines: Vec<String> = slots
                .iter()
                .map(|slot| {
                    let active = &slot.active;
                    format!(
                        "{:<18} {} {}  {}",
                        slot.slot, active.name, active.version, active.component_id
                    )
                })
                .collect();

            output.one(&json!(slots), &lines.join("\n"));
        }
        ComponentCommand::History { whose } => {
            let owner = whose.owner(&app).await?;
            let entries = components::history(&app, &owner).await?;
            let lines: Vec<String> = entries
                .iter()
                .map(|entry| {
                    let reason = entry.details["reason"]
                        .as_str()
                        .unwrap_or("no reason given");
                    format!("{}  {}  {}  {reason}", entry.at, entry.action, entry.actor)
                })
                .collect();

            output.one(&json!(entries), &lines.join("\n"));
        }
        ComponentCommand::Activate(request) => {
            let owner = request.whose.owner(&app).await?;
            let config = match request.settings {
                Some(file) => Some(serde_json::from_slice(&disk::read(&file)?)?),
                None => None,
            };
            let activate = ActivationRequest {
                component_id: request.component,
                config,
                instance: request.instance,
                reason: request.reason,
                effective_at: request.at,
            };
            let activation =
                components::activate(&app, &app.management, &owner, request.slot, activate).await;
            let activation = activation.map_err(told)?;
            let text = format!(
                "{} counts from {} on",
                activation.component_id, activation.effective_at
            );

            let page = app
                .config
                .console_page(&format!("rules/{}", activation.slot));
            output.with_pages(&json!(activation), &text, page);
        }
        ComponentCommand::Rollback(request) => {
            let owner = request.whose.owner(&app).await?;
            let roll_back = RollbackRequest {
                instance: request.instance,
                reason: request.reason,
                activation_id: request.activation,
            };
            let back =
                components::roll_back(&app, &app.management, &owner, request.slot, roll_back).await;
            let back = back.map_err(told)?;
            let text = format!("{} does not count any more", back.activation_id);

            let page = app.config.console_page(&format!("rules/{}", back.slot));
            output.with_pages(&json!(back), &text, page);
        }
        ComponentCommand::Shadow {
            component,
            org,
            records,
            since,
            until,
            kind,
        } => {
            organizations_check(&app, &org).await?;
            let bar = ProgressBar::no_length()
                .with_style(ProgressStyle::with_template("{spinner} {pos} records")?);
            let progress = |done| bar.set_position(done);
            let request = ReplayRequest {
                records: Some(records),
                after: None,
                since,
                until,
                kind,
            };

            let caller = Caller::system(org);
            let report = shadow::replay(
                &app,
                &app.management,
                &caller,
                &component,
                &request,
                progress,
            )
            .await;

            // Before the result is looked at, or the bar would stay above an error.
            bar.finish_and_clear();
            let report = report.map_err(told)?;
            let mut lines = vec![format!(
                "{} compared, {} differ, {} without an answer; {:.1} ms active, {:.1} ms candidate",
                report.compared,
                report.differing,
                report.failed,
                report.active_ms,
                report.candidate_ms
            )];
            lines.extend(report.differences.iter().map(|one| {
                format!(
                    "{}  {}: {} -> {}",
                    one.record_id, one.check, one.before, one.after
                )
            }));

            output.one(&json!(report), &lines.join("\n"));
        }
    }

    Ok(ExitCode::SUCCESS)
}

fn attestation_line(one: &AttestationView) -> String {
    let kind = one.predicate_type.as_deref().unwrap_or("signature");
    let by = match (&one.identity, &one.issuer) {
        (Some(identity), Some(issuer)) => format!("{identity} of {issuer}"),
        _ => "a key".to_owned(),
    };
    let publisher = one.publisher.as_deref().unwrap_or("not trusted");
    let logged = one.logged_at.map(|at| format!(", logged {at}"));
    format!("{kind}  {publisher}: {by}{}", logged.unwrap_or_default())
}

/// Converts a service error, with its details.
pub fn told(error: ServiceError) -> Failure {
    match error {
        ServiceError::Invalid(issues) => issues
            .iter()
            .map(|issue| format!("{}: {}", json!(issue.path), issue.message))
            .collect::<Vec<_>>()
            .join("\n")
            .into(),
        other => other.into(),
    }
}

async fn upload(
    app: &App,
    upload: UploadFile,
    output: &CommandOutput,
) -> Result<ExitCode, Failure> {
    let owner = upload.whose.owner(app).await?;
    let mut found = registry::component(&app.config, &upload.file, Path::new(""), true).await?;
    let bundles = registry::bundles(&upload.bundle)?;
    match &upload.manifest {
        // Files of a pull, in which others may have put bundles.
        Some(manifest) => {
            found.bundles.manifest = Some(disk::read(manifest)?.into());
            found.bundles.attached.extend(bundles);
        }
        None => found.bundles.given = bundles,
    }

    let named = (upload.name, upload.version);
    match admitted(app, &owner, named, found, upload.signature).await {
        Ok(component) => {
            let text = format!(
                "{} {} is {} for {}",
                component.name, component.version, component.component_id, component.slot
            );
            let page = format!("components/{}", component.component_id);
            output.with_pages(&json!(component), &text, app.config.console_page(&page));
            Ok(ExitCode::SUCCESS)
        }
        // A refusal is a result about the component and not a failure of the command.
        Err(ServiceError::NotAdmitted(reasons)) => Ok(refused(output, &reasons)),
        Err(error) => Err(told(error)),
    }
}

/// Uploads a component under a name and version.
pub async fn admitted(
    app: &App,
    owner: &ComponentOwner,
    (name, version): (String, String),
    found: FoundComponent,
    signature: Option<String>,
) -> Result<ComponentView, ServiceError> {
    // The service takes a file, as from HTTP, so that both ways run the same checks.
    let spooled = async {
        let mut spool = SpoolWriter::new(&std::env::temp_dir()).await?;
        spool.write(&found.bytes).await?;
        spool.finish().await
    };
    let request = ComponentUpload {
        name,
        version,
        file: spooled.await.map_err(FilesError::Spool)?,
        signature,
        bundles: found.bundles,
        from: found.from,
    };

    // The service admits only uploads that hold a place. In this process no other upload competes for one.
    let _place = components::place(app, &app.management, owner)?;
    // An operator may upload for any slot. Tenants are limited by their role.
    let any = |_| Ok::<_, ServiceError>(());
    let (component, _) = components::upload(app, &app.management, owner, request, any).await?;
    Ok(component)
}

fn refused(output: &CommandOutput, reasons: &[AdmissionReason]) -> ExitCode {
    let lines: Vec<String> = reasons
        .iter()
        .map(|reason| format!("{}: {}", reason.code, reason.message))
        .collect();
    let value = json!({ "admitted": false, "reasons": reasons });
    output.one(&value, &format!("NOT ADMITTED\n{}", lines.join("\n")));
    ExitCode::FAILURE
}

async fn check(
    file: &Path,
    scripts: &[PathBuf],
    config: &Config,
    output: &CommandOutput,
) -> Result<ExitCode, Failure> {
    let bytes = Bytes::from(disk::read(file)?);
    // Read first, so that a mistake in a script shows before the component is compiled.
    let scripts = scripts
        .iter()
        .map(|file| read_script(file))
        .collect::<Result<Vec<_>, _>>()?;
    match examined(bytes, &scripts, config).await? {
        Ok((inspected, conformance)) => {
            let value = json!({
                "admitted": true, "slot": inspected.slot, "imports": inspected.imports,
                "conformance": conformance,
                "script_calls": scripts.iter().map(FarEndScript::calls).sum::<usize>(),
            });
            let fuel = match conformance.fuel {
                Some(fuel) => format!("{fuel} units of fuel, "),
                None => String::new(),
            };

            let told: String = scripts
                .iter()
                .map(|script| format!("\n{} calls went as the script says", script.calls()))
                .collect();
            let text = format!(
                "ADMITTED for {}\nasks for: {}\n{} questions answered; at most {fuel}{} KiB, {} µs of processor time on this machine{told}",
                inspected.slot,
                if inspected.imports.is_empty() {
                    "nothing".to_owned()
                } else {
                    inspected.imports.join(", ")
                },
                conformance.vectors,
                conformance.memory_bytes / 1024,
                conformance.slowest_us
            );

            output.one(&value, &text);
            Ok(ExitCode::SUCCESS)
        }
        Err(reasons) => Ok(refused(output, &reasons)),
    }
}

/// Runs the checks of an upload in a temporary folder, and stores nothing.
async fn examined(
    bytes: Bytes,
    scripts: &[FarEndScript],
    config: &Config,
) -> Result<Result<(InspectedComponent, ConformanceResult), Vec<AdmissionReason>>, Failure> {
    let bench = Workbench::new(config)?;
    let PreparedComponent {
        artifact,
        inspected,
    } = match bench.prepare("candidate", bytes).await? {
        Ok(prepared) => prepared,
        Err(reasons) => return Ok(Err(reasons)),
    };

    // The report has the failed calls; their log lines would repeat it.
    let examined = bench
        .components
        .examine(artifact.clone(), VectorSet::default())
        .with_subscriber(NoSubscriber::new());
    let examined = match examined.await {
        Ok(examined) => examined,
        Err(reasons) => return Ok(Err(reasons)),
    };

    for script in scripts {
        // Rules call no service, so a script would pass without having tested anything.
        if !artifact.slot.is_provider() {
            return Err("scripts are for providers".into());
        }
        if let Err(reasons) = bench.components.rehearse(artifact.clone(), script).await {
            return Ok(Err(reasons));
        }
    }

    Ok(Ok((inspected, examined.conformance)))
}

fn read_script(file: &Path) -> Result<FarEndScript, Failure> {
    let text = std::fs::read_to_string(file)?;
    FarEndScript::parse(&text)
        .map_err(|why| format!("{} is no script: {why}", file.display()).into())
}

/// Converts a core module to a component, like `wasm-tools component new`, and puts vectors into it.
fn encode(
    module: &Path,
    component: &Path,
    slot: Option<Slot>,
    vectors: Option<&Path>,
    output: &CommandOutput,
) -> Result<ExitCode, Failure> {
    let mut core = disk::read(module)?;
    if let Some(slot) = slot {
        worlds::put_into(slot, &mut core)?;
    }

    let encoder = wit_component::ComponentEncoder::default().module(&core);
    let encoder = match slot {
        // Compilers without worlds use the earlier system interface, which the adapter maps to the present one.
        Some(_) => encoder.and_then(|encoder| {
            encoder.adapter(
                WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME,
                WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
            )
        }),
        None => encoder,
    };

    let mut bytes = encoder
        .and_then(|encoder| encoder.validate(true).encode())
        .map_err(|error| {
            format!(
                "{} is no module of a component: {error:#}",
                module.display()
            )
        })?;

    if let Some(file) = vectors {
        // The form of vectors depends on the slot, which only the finished component shows.
        let inspected = inspection::inspect(&bytes);
        let slot = inspected.map_err(|reasons| {
            let reasons = reasons.iter().map(|reason| reason.message.as_str());
            reasons.collect::<Vec<_>>().join("; ")
        })?;
        rules::read_vectors(file, slot.slot)?.put_into(&mut bytes)?;
    }

    std::fs::write(component, &bytes)?;
    let text = format!("{} has {} bytes", component.display(), bytes.len());
    output.one(
        &json!({ "component": component, "size": bytes.len() }),
        &text,
    );

    Ok(ExitCode::SUCCESS)
}

#[derive(Args)]
pub struct ReplayArguments {
    /// Id of the envelope.
    envelope: String,
}

/// Repeats all decisions of rules about an envelope.
pub async fn replay(
    replay: ReplayArguments,
    config: Config,
    output: &CommandOutput,
) -> Result<ExitCode, Failure> {
    let id = EnvelopeId::parse(&replay.envelope).ok_or("not an envelope's id (env_…)")?;
    let app = start::start(config).await?;
    let mut connection = app.store.read().await?;
    let all = organizations::list(&mut connection).await?;
    // Each replay takes connections of its own, so this one goes back to the pool first.
    drop(connection);

    // An operator knows the envelope's id only, and decisions are stored by organization.
    for organization in all {
        let found = shadow::replay_envelope(&app, &app.management, &organization.id, &id).await?;
        if found.is_empty() {
            continue;
        }

        let lines: Vec<String> = found
            .iter()
            .map(|one| {
                let mark = if one.same { "same " } else { "OTHER" };
                let named =
                    |what: &str| one.component[what].as_str().unwrap_or_default().to_owned();
                let component = format!("{} {}", named("name"), named("version"));
                format!("{mark} {}: {} ({component})", one.decision, one.detail)
            })
            .collect();

        output.one(&json!(found), &lines.join("\n"));
        let same = found.iter().all(|one| one.same);
        return Ok(if same {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        });
    }

    Err(format!("nothing is recorded about {id}").into())
}
