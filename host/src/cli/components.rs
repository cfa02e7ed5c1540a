//! `holdfast components`: the signed desired state of components.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Args, Subcommand};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::json;

use super::Failure;
use super::component::{self, told};
use super::output::CommandOutput;
use super::registry;
use crate::start;
use holdfast_base::config::{Config, SecretText};
use holdfast_base::disk;
use holdfast_domain::component_state::{
    DesiredComponent, DesiredState, DesiredStatus, SecretReference, signed_bytes,
};
use holdfast_domain::hash::sha256;
use holdfast_domain::organization::Role;
use holdfast_platform::components::changes::ChangeOfficer;
use holdfast_platform::components::desired_state::{self, SignedState, StateSecrets, StateView};
use holdfast_platform::components::{self, ComponentOwner};
use holdfast_platform::{Caller, ServiceError};
use holdfast_service::App;

#[derive(Subcommand)]
pub enum ComponentsCommand {
    /// Compare a state with the active components. Changes nothing.
    Plan(StateFile),
    /// Set a signed state: upload missing components, and request or make the changes.
    Apply(StateFile),
    /// Sign a state. Needs no installation.
    Sign {
        file: PathBuf,
        /// Ed25519 private key (PKCS #8, PEM).
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
    },
}

#[derive(Args)]
pub struct StateFile {
    /// `holdfast.components.yaml`.
    file: PathBuf,
    /// File with a signature by `holdfast components sign`. Can be given several times.
    #[arg(long, value_name = "FILE")]
    signature: Vec<PathBuf>,
    /// File with a bundle of Sigstore by `cosign sign-blob`. Can be given several times.
    #[arg(long, value_name = "FILE")]
    bundle: Vec<PathBuf>,
}

/// Runs a command.
pub async fn run(
    command: ComponentsCommand,
    config: Config,
    output: &CommandOutput,
) -> Result<ExitCode, Failure> {
    match command {
        ComponentsCommand::Sign { file, key } => sign(&file, &key, output)?,
        ComponentsCommand::Plan(file) => apply(file, true, config, output).await?,
        ComponentsCommand::Apply(file) => apply(file, false, config, output).await?,
    }
    Ok(ExitCode::SUCCESS)
}

fn sign(file: &Path, key: &Path, output: &CommandOutput) -> Result<(), Failure> {
    let text = fs::read_to_string(file)?;
    let unusable = || format!("{} is no Ed25519 private key in PEM", key.display());
    let (_, der) = x509_cert::der::pem::decode_vec(&disk::read(key)?).map_err(|_| unusable())?;
    // Keys that OpenSSL generates lack the public half, which the checked form would require.
    let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).map_err(|_| unusable())?;
    let signature = STANDARD.encode(key.sign(&signed_bytes(&text)));
    let public = hex::encode(key.public_key());
    output.one(
        &json!({ "signature": signature, "public_key": public }),
        &signature,
    );

    Ok(())
}

async fn apply(
    wanted: StateFile,
    dry_run: bool,
    config: Config,
    output: &CommandOutput,
) -> Result<(), Failure> {
    let text = fs::read_to_string(&wanted.file)
        .map_err(|error| format!("{}: {error}", wanted.file.display()))?;
    let named: DesiredState = serde_saphyr::from_str(&text)?;
    let owner = ComponentOwner {
        org: named.organization.clone(),
        ..ComponentOwner::installation()
    };
    let state = desired_state::parsed(&owner, &text).map_err(told)?;

    // Paths in a state are relative to it, so that it can be moved together with its files.
    let beside = wanted.file.parent().unwrap_or_else(|| Path::new("."));
    let mut signatures = Vec::new();
    for file in &wanted.signature {
        signatures.push(fs::read_to_string(file)?);
    }

    let bundles = registry::bundles(&wanted.bundle)?;
    let bundles = bundles
        .iter()
        .map(|bundle| serde_json::from_str(bundle))
        .collect::<Result<_, _>>()?;
    let mut signed = SignedState {
        secrets: StateSecrets::new(),
        state: text,
        signatures,
        bundles,
        dry_run,
    };

    let app = start::start(config).await?;

    // The signatures first: a state comes from others, who may not read secrets of this machine. A plan without them
    // compares no secrets.
    match desired_state::check_signatures(&app, &owner, &signed).await {
        Ok(()) => signed.secrets = secrets(&state, beside, dry_run)?,
        Err(_) if dry_run => {}
        Err(error) => return Err(told(error)),
    }

    components::keep_defaults(&app).await?;
    // An organization's changes become requests for its reviewers, and a request needs a person. The
    // signatures alone approve those of the installation.
    let officer = owner.org.clone().map(|org| ChangeOfficer {
        caller: Caller::named(org, owner.actor.clone()),
        role: Role::Admin,
        token: None,
        identity: None,
    });

    let officer = officer.as_ref();
    if !dry_run {
        // A change can only name a stored component, so the missing ones are
        // uploaded first. The plan finds them.
        let plan = SignedState {
            dry_run: true,
            ..signed.clone()
        };
        let plan = desired_state::apply(&app, &app.management, &owner, officer, &plan).await;
        let plan = plan.map_err(told)?;
        for (desired, found) in state.components.iter().zip(&plan.components) {
            if found.status == DesiredStatus::Missing {
                upload(&app, &owner, beside, desired).await?;
            }
        }
    }

    let view = desired_state::apply(&app, &app.management, &owner, officer, &signed).await;
    let view = view.map_err(told)?;
    let requests = view
        .components
        .iter()
        .filter_map(|one| one.change_id.as_ref());
    let pages = requests.filter_map(|id| app.config.console_page(&format!("changes/{id}")));
    output.with_pages(&json!(view), &lines(&view).join("\n"), pages);

    Ok(())
}

/// Reads the secrets that a state refers to. A plan does without those that are not there.
fn secrets(state: &DesiredState, beside: &Path, dry_run: bool) -> Result<StateSecrets, Failure> {
    let mut secrets = StateSecrets::new();
    for desired in &state.components {
        for (name, reference) in desired.config.iter().flat_map(|config| &config.secrets) {
            // Only files beside the state are read: its author may be a tenant, and
            // this machine has other secrets.
            let found = match reference {
                SecretReference::Env(variable) => std::env::var(variable)
                    .map_err(|_| format!("the environment variable {variable} is not set")),
                SecretReference::File(file) => registry::below(beside, file)
                    .and_then(fs::read_to_string)
                    .map(|text| text.trim_end().to_owned())
                    .map_err(|error| format!("{file}: {error}")),
            };

            match found {
                Ok(secret) => {
                    let of_place = secrets.entry(desired.place()).or_default();
                    of_place.insert(name.clone(), SecretText::new(secret));
                }
                // A plan often runs where the secrets are not, for example in the CI of a tenant.
                Err(_) if dry_run => {}
                Err(why) => return Err(format!("{}: {name}: {why}", desired.place()).into()),
            }
        }
    }

    Ok(secrets)
}

async fn upload(
    app: &App,
    owner: &ComponentOwner,
    beside: &Path,
    desired: &DesiredComponent,
) -> Result<(), Failure> {
    let place = desired.place();
    let Some(from) = &desired.from else {
        return Err(format!(
            "{place}: {} was not uploaded, and `from` names no file",
            desired.name
        )
        .into());
    };

    // A state of an organization is not pulled with the operator's logins.
    let logins = owner.org.is_none();
    let found = registry::component(&app.config, from, beside, logins).await;
    let found = found.map_err(|error| format!("{place}: {error}"))?;
    // The publishers signed this digest. Other bytes at the same place have no approval.
    if sha256(&found.bytes) != desired.sha256 {
        return Err(format!("{place}: {from} is not the component with this sha256").into());
    }

    let signature = desired.signature.clone();
    let named = (desired.name.clone(), desired.version.clone());
    match component::admitted(app, owner, named, found, signature).await {
        Ok(_) => Ok(()),
        Err(ServiceError::NotAdmitted(reasons)) => {
            let reasons: Vec<&str> = reasons.iter().map(|one| one.message.as_str()).collect();
            Err(format!("{place}: {from} is not admitted: {}", reasons.join("; ")).into())
        }
        Err(error) => Err(told(error)),
    }
}

fn lines(view: &StateView) -> Vec<String> {
    let mut lines: Vec<String> = view
        .components
        .iter()
        .map(|one| {
            let place = match &one.instance {
                Some(instance) => format!("{}/{instance}", one.slot),
                None => one.slot.to_string(),
            };
            let instead = one.active.as_ref().map(|active| format!(" (now {active})"));

            let request = one.change_id.as_ref().map(|change| format!(", {change}"));
            format!(
                "{:<9} {place}: {}{}{}",
                one.status.as_str(),
                one.component,
                instead.unwrap_or_default(),
                request.unwrap_or_default()
            )
        })
        .collect();

    lines.push(format!(
        "version {}, signed by {} of {} required publishers",
        view.version,
        view.signed_by.len(),
        view.signatures_required
    ));

    lines
}
