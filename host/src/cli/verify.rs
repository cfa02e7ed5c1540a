//! `holdfast verify`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bytes::Bytes;
use clap::Args;

use super::Failure;
use super::output::Output;
use crate::components::ComponentError;
use crate::components::compiler::Compiler;
use crate::components::rules::Compliance;
use crate::components::{Artifact, compliance_alone, known_compliance, known_digests};
use crate::config::Config;
use crate::domain::component::{ComponentIdentity, Slot};
use crate::domain::hash::sha256;
use crate::domain::id::EnvelopeId;
use crate::domain::token::random;
use crate::evidence::{self, Bundle, Finding, Report, Rules, Trusted};
use crate::sealing::TimestampTrust;
use crate::service::vault::{custody, log};
use crate::service::{App, Caller, ServiceError, components};
use crate::start;
use crate::store::organizations;

/// Exit code of arguments that cannot be used, as clap has it.
const USAGE: u8 = 2;

#[derive(Args)]
pub struct Verify {
    /// A folder, a zip, or the id of a vaulted or released envelope.
    subject: String,
    /// A head of the log that you kept: what `ledger monitor` wrote, the answer
    /// of `/ledger/head`, or a checkpoint. With `?since=` of the bundle's own
    /// size, a later head works too.
    #[arg(long, value_name = "FILE")]
    head: Option<PathBuf>,
    /// Public keys of logs that you know, one on each line.
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// The rules component that made the certificate, where neither this program
    /// nor the bundle has it.
    #[arg(long, value_name = "FILE")]
    component: Option<PathBuf>,
    /// The log's public key, as you know it.
    #[arg(long)]
    key: Option<String>,
}

/// Checks a bundle without anything of this installation, or an envelope of it.
pub async fn run(verify: Verify, config: Config, output: &Output) -> Result<ExitCode, Failure> {
    let (subject, path) = (verify.subject.as_str(), Path::new(&verify.subject));
    let is_envelope = EnvelopeId::parse(subject).is_some() && !path.exists();
    let (trusted, bundle) = match arguments(&verify, path, is_envelope, &config) {
        Ok(arguments) => arguments,
        Err(error) => {
            output.failure(error.as_ref());
            return Ok(ExitCode::from(USAGE));
        }
    };
    let report = match bundle {
        Some(bundle) => verify_bundle(&bundle, &verify, &trusted, &config).await?,
        None => verify_envelope(subject, trusted, config).await?,
    };
    output.one(&serde_json::to_value(&report)?, &text(&report));
    Ok(ExitCode::from(report.verdict.exit_code()))
}

/// What the reader trusts, and the bundle unless the subject is an envelope.
fn arguments(
    verify: &Verify,
    path: &Path,
    is_envelope: bool,
    config: &Config,
) -> Result<(Trusted, Option<Bundle>), Failure> {
    let mut trusted = Trusted::default();
    trusted.components(known_digests());
    if let Some(file) = &config.seal.timestamp_trust_file {
        trusted.timestamps(TimestampTrust::read(file)?);
    }
    if let Some(key) = &verify.key {
        trusted
            .key(key)
            .map_err(|error| format!("--key: {error}"))?;
    }
    if let Some(head) = &verify.head {
        let text = read(head)?;
        let about = |error| format!("--head {}: {error}", head.display());
        trusted.head(&text).map_err(about)?;
    }
    if let Some(trust) = &verify.trust {
        let text = read(trust)?;
        let about = |error| format!("--trust {}: {error}", trust.display());
        trusted.logs(&text).map_err(about)?;
    }
    let bundle = match is_envelope {
        true => None,
        false => Some(Bundle::read(path)?),
    };
    Ok((trusted, bundle))
}

fn read(file: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(file);
    Ok(text.map_err(|error| format!("{}: {error}", file.display()))?)
}

async fn verify_bundle(
    bundle: &Bundle,
    verify: &Verify,
    trusted: &Trusted,
    config: &Config,
) -> Result<Report, Failure> {
    // Native code is made anew: nothing on this machine is trusted.
    let cache = std::env::temp_dir().join(format!("holdfast-verify-{}", std::process::id()));
    let rules = rules(bundle, verify.component.as_deref(), &cache, config).await;
    let report = rules.map(|rules| evidence::verify(bundle, &rules, trusted));
    let _ = std::fs::remove_dir_all(&cache);
    Ok(report??)
}

/// The rules component that the ledger names: of a release, of the bundle, or of
/// the given file.
async fn rules(
    bundle: &Bundle,
    given: Option<&Path>,
    cache: &Path,
    config: &Config,
) -> Result<Rules, Failure> {
    let Some(named) = bundle.deciding_component() else {
        return Ok(Err("the ledger names no rules component".into()));
    };
    if let Some(known) = known_compliance(&named) {
        let rules = compliance_alone(cache.into(), random::<32>(), &known, None);
        return Ok(ready(rules));
    }
    let given = match given {
        Some(file) => Some(Bytes::from(std::fs::read(file)?)),
        None => None,
    };
    let fits = |bytes: &Bytes| sha256(bytes) == named.sha256;
    let Some(bytes) = given
        .filter(fits)
        .or_else(|| bundle.component(&named.sha256))
    else {
        return Ok(Err(format!(
            "the rules component {named} ({}) that made the certificate is not at hand: give its \
             file with --component",
            named.sha256
        )));
    };
    let compiled = compiled(&named, bytes, cache, config).await;
    match compiled {
        Ok(rules) => Ok(Ok(Box::new(rules))),
        Err(error) => Ok(Err(format!(
            "the rules component {named} cannot be used: {error}"
        ))),
    }
}

/// Rules that may be anyone's: another process parses and compiles them.
async fn compiled(
    named: &ComponentIdentity,
    bytes: Bytes,
    cache: &Path,
    config: &Config,
) -> Result<Compliance, Failure> {
    let settings = &config.components;
    let compiler = Compiler::new(settings.compiler.clone(), settings.compile_limit);
    let (inspected, native) = compiler.compile(bytes.clone()).await?;
    if inspected.slot != Slot::Compliance {
        return Err(format!("it is for {}", inspected.slot).into());
    }
    let artifact = Artifact::uploaded(inspected.slot, &named.name, &named.version, bytes);
    let rules = compliance_alone(cache.into(), random::<32>(), &artifact, Some(&native));
    Ok(rules?)
}

async fn verify_envelope(
    id: &str,
    mut trusted: Trusted,
    config: Config,
) -> Result<Report, Failure> {
    let app = start::start(config).await?;
    // Where no server runs, as in a backup just restored, this process extends the log.
    if let Err(error) = log::catch_up(&app, &app.vault).await {
        tracing::warn!(%error, "the log could not be extended");
    }
    if let Some(key) = log::verifier(&app, &app.vault).await? {
        trusted.installation(key);
    }
    let mut connection = app.store.read().await?;
    let organizations = organizations::list(&mut connection).await?;
    drop(connection);
    for organization in organizations {
        let caller = Caller::system(organization.id);
        match custody::evidence(&app, &app.vault, &caller, id).await {
            Ok(bundle) => {
                let rules = deciding_rules(&app, &bundle).await;
                return Ok(evidence::verify(&bundle, &rules, &trusted)?);
            }
            Err(ServiceError::NotFound(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(format!("there is no envelope {id}").into())
}

async fn deciding_rules(app: &App, bundle: &Bundle) -> Rules {
    let Some(named) = bundle.deciding_component() else {
        return Err("the ledger names no rules component".into());
    };
    let artifact = match known_compliance(&named) {
        Some(known) => known,
        None => components::that_decided(app, &named)
            .await
            .map_err(|error| format!("the rules component {named}: {error}"))?,
    };
    ready(app.components.compliance_from(&artifact))
}

fn ready(rules: Result<Compliance, ComponentError>) -> Rules {
    match rules {
        Ok(rules) => Ok(Box::new(rules)),
        Err(error) => Err(error.to_string()),
    }
}

fn text(report: &Report) -> String {
    let mark = |check: &Finding| match check.ok {
        Some(true) => "ok  ",
        Some(false) => "FAIL",
        None => "--  ",
    };
    let line = |check: &Finding| format!("{} {}: {}", mark(check), check.check, check.detail);
    let mut lines: Vec<String> = report.checks.iter().map(line).collect();
    lines.push(format!("{}: {}", report.verdict, report.envelope_id));
    lines.join("\n")
}
