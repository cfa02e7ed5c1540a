//! `holdfast verify`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bytes::Bytes;
use clap::Args;

use super::Failure;
use super::output::Output;
use crate::app;
use crate::components::compiler::Compiler;
use crate::components::rules::Compliance;
use crate::components::{Artifact, Components, load_compliance};
use crate::config::Config;
use crate::domain::clock::Clock;
use crate::domain::id::EnvelopeId;
use crate::domain::token::random;
use crate::evidence::{self, Bundle, Report, Trusted};
use crate::service::{Caller, components, custody, log};
use crate::store::organizations;

#[derive(Args)]
pub struct Verify {
    /// A folder, a zip, or an envelope id.
    subject: String,
    /// A head of the log that you kept: what `ledger monitor` wrote, the answer
    /// of `/ledger/head`, or a checkpoint. With `?since=` of the bundle's own
    /// size, a later head does too.
    #[arg(long, value_name = "FILE")]
    head: Option<PathBuf>,
    /// The rules component that made the certificate, when it is none of this
    /// program's.
    #[arg(long, value_name = "FILE")]
    component: Option<PathBuf>,
    /// The log's public key, as you know it.
    #[arg(long)]
    key: Option<String>,
}

/// Checks a bundle without anything of this installation, or an envelope of it.
pub async fn run(verify: Verify, config: Config, output: &Output) -> Result<ExitCode, Failure> {
    let subject = verify.subject.as_str();
    let trusted = Trusted {
        key: verify.key,
        head: verify.head.map(std::fs::read_to_string).transpose()?,
    };
    let report = match EnvelopeId::parse(subject) {
        Some(_) if !Path::new(subject).exists() => {
            verify_envelope(subject, &trusted, config).await?
        }
        _ => {
            let bundle = Bundle::read(Path::new(subject))?;
            // Native code is made anew: nothing on this machine is trusted.
            let cache =
                std::env::temp_dir().join(format!("holdfast-verify-{}", std::process::id()));
            let report = async {
                let compliance = match verify.component {
                    Some(file) => given(&file, &bundle, &cache, &config).await?,
                    None => load_compliance(cache.clone(), random::<32>())?.1,
                };
                Ok::<_, Failure>(evidence::verify(&bundle, &compliance, &trusted)?)
            };
            let report = report.await;
            let _ = std::fs::remove_dir_all(&cache);
            report?
        }
    };
    output.one(&serde_json::to_value(&report)?, &text(&report));
    Ok(if report.valid {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The rules in a file. Engines live as long as something refers to them.
async fn given(
    file: &Path,
    bundle: &Bundle,
    cache: &Path,
    config: &Config,
) -> Result<Compliance, Failure> {
    let bytes = Bytes::from(std::fs::read(file)?);
    let settings = &config.components;
    let compiler = Compiler::new(settings.compiler.clone(), settings.compile_limit);
    let (inspected, native) = compiler.compile(bytes.clone()).await.map_err(|error| {
        let file = file.display();
        format!("{file} cannot be used as rules: {error}; see `holdfast component check {file}`")
    })?;
    let components = Components::load(
        cache.to_path_buf(),
        random::<32>(),
        settings.limits()?,
        Clock::default(),
    )?;
    let named = evidence::deciding_component(bundle).ok_or("the bundle names no component")?;
    let artifact = Artifact::uploaded(inspected.slot, &named.name, &named.version, bytes);
    components.keep_native(&artifact, &native)?;
    Ok(components.compliance_from(&artifact)?)
}

async fn verify_envelope(id: &str, trusted: &Trusted, config: Config) -> Result<Report, Failure> {
    let app = app::start(config).await?;
    // Where no server runs, as in a backup just restored, nobody else does it.
    if let Err(error) = log::catch_up(&app).await {
        tracing::warn!(%error, "the log could not be extended");
    }
    let mut connection = app.store.read().await?;
    let organizations = organizations::list(&mut connection).await?;
    drop(connection);
    for organization in organizations {
        let caller = Caller::system(organization.id);
        match custody::bundle(&app, &caller, id).await {
            Ok(zip) => {
                let bundle = Bundle::from_zip(zip)?;
                let rules = match evidence::deciding_component(&bundle) {
                    Some(named) => {
                        let rules = components::that_decided(&app, &named).await?;
                        app.components.compliance_from(&rules)?
                    }
                    None => app.components.compliance(None),
                };
                return Ok(evidence::verify(&bundle, &rules, trusted)?);
            }
            Err(crate::service::ServiceError::NotFound(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(format!("there is no envelope {id}").into())
}

fn text(report: &Report) -> String {
    let mut lines: Vec<String> = report
        .findings
        .iter()
        .map(|finding| {
            let mark = if finding.ok { "ok  " } else { "FAIL" };
            format!("{mark} {}: {}", finding.check, finding.detail)
        })
        .collect();
    lines.push(match report.valid {
        true => format!("VALID: {}", report.envelope_id),
        false => format!("NOT VALID: {}", report.envelope_id),
    });
    lines.join("\n")
}
