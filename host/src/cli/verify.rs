//! `holdfast verify`.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use holdfast_verify::{USAGE, VerifyArguments, text};
use serde_json::{Value, json};

use super::Failure;
use super::output::CommandOutput;
use crate::start;
use holdfast_base::config::Config;
use holdfast_components::compiler::ComponentCompiler;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::id::EnvelopeId;
use holdfast_domain::ledger::{DESTROYED, LedgerEntry, verify_chain};
use holdfast_evidence::{Bundle, TrustedLogs, VerificationReport};
use holdfast_platform::Caller;
use holdfast_platform::log;
use holdfast_service::retention::destruction::certificate;
use holdfast_service::vault::custody;
use holdfast_service::{App, envelopes};
use holdfast_store::organizations;

#[derive(Args)]
pub struct VerifyTarget {
    /// Folder or zip, or the id of a vaulted or released envelope.
    subject: String,
    #[command(flatten)]
    arguments: VerifyArguments,
}

/// Verifies a bundle without data of this installation, or an envelope of this installation.
pub async fn run(
    verify: VerifyTarget,
    config: Config,
    output: &CommandOutput,
) -> Result<ExitCode, Failure> {
    let (subject, path) = (verify.subject.as_str(), Path::new(&verify.subject));
    // A file of that name wins, so a bundle is always verified without data of this installation.
    let is_envelope = EnvelopeId::parse(subject).is_some() && !path.exists();
    let (trusted, bundle) = match given(&verify, path, is_envelope, &config) {
        Ok(given) => given,
        // Unusable input has its own exit status, so that scripts do not take it for evidence that failed.
        Err(error) => {
            output.failure(error.as_ref());
            return Ok(ExitCode::from(USAGE));
        }
    };
    let report = match bundle {
        Some(bundle) => {
            let settings = &config.components;
            let compiler =
                ComponentCompiler::new(settings.compiler.clone(), settings.compile_limit);
            let checked = verify.arguments.verify(&bundle, &trusted, &compiler);
            checked.await?
        }
        None => match verify_envelope(subject, trusted, config).await? {
            EnvelopeReport::Whole(report) => *report,
            EnvelopeReport::Destroyed(report) => {
                let at = report["destroyed_at"].as_str().unwrap_or_default();
                let words = format!("{subject} was destroyed at {at}; the ledger is intact\n");
                output.one(&report, &words);
                return Ok(ExitCode::SUCCESS);
            }
        },
    };

    output.one(&serde_json::to_value(&report)?, &text(&report));
    Ok(ExitCode::from(report.verdict.exit_code()))
}

/// Returns the trust anchors, and the bundle unless the subject is an envelope.
fn given(
    verify: &VerifyTarget,
    path: &Path,
    is_envelope: bool,
    config: &Config,
) -> Result<(TrustedLogs, Option<Bundle>), Failure> {
    let roots = config.seal.timestamp_trust_file.as_deref();
    let trusted = verify.arguments.trusted(roots)?;
    let bundle = if is_envelope {
        None
    } else {
        Some(Bundle::read(path)?)
    };
    Ok((trusted, bundle))
}

/// Report about an envelope of this installation.
enum EnvelopeReport {
    Whole(Box<VerificationReport>),
    /// The certificate of its destruction, with its entry in an intact ledger.
    Destroyed(Value),
}

/// Checks the ledger that a destroyed record has left, and returns the certificate with its proof.
async fn verify_destroyed(
    app: &App,
    caller: &Caller,
    envelope: &Envelope,
) -> Result<Value, Failure> {
    let id = envelope.id.as_str();
    let ledger = custody::ledger(app, &app.vault, caller, id).await?;
    verify_chain(&ledger.entries)?;
    let destroyed = certificate::of_envelope(app, &envelope.org, &envelope.id).await?;
    let Some(destroyed) = destroyed else {
        return destroyed_again(id, &ledger.entries);
    };
    let issued = certificate::issued(app, &app.vault, &destroyed).await?;

    if !issued.issued.is_intact() {
        return Err(format!("the entry about the destruction of {id} was changed").into());
    }
    Ok(json!({
        "verdict": "DESTROYED", "envelope_id": id, "destroyed_at": destroyed.begun_at,
        "is_complete": destroyed.destroyed_at.is_some(), "entries": ledger.entries.len(),
        "certificate": issued,
    }))
}

/// Returns the facts known about a record that `holdfast restore` has destroyed again, from its intact ledger.
fn destroyed_again(id: &str, entries: &[LedgerEntry]) -> Result<Value, Failure> {
    let mut newest = entries.iter().rev();
    let entry = newest.find(|entry| entry.action == DESTROYED);
    let entry =
        entry.ok_or_else(|| format!("the ledger of {id} has no entry of its destruction"))?;
    Ok(json!({
        "verdict": "DESTROYED", "envelope_id": id, "destroyed_at": entry.at, "is_complete": true,
        "entries": entries.len(), "certificate": null, "message": certificate::NOT_RESTORED,
    }))
}

async fn verify_envelope(
    id: &str,
    trusted: TrustedLogs,
    config: Config,
) -> Result<EnvelopeReport, Failure> {
    let app = start::start(config).await?;
    // Without a running server, for example after a restore, this process extends the log.
    if let Err(error) = log::cosignatures::catch_up(&app, &app.vault.log).await {
        tracing::warn!(%error, "the log could not be extended");
    }

    let mut connection = app.store.read().await?;
    let organizations = organizations::list(&mut connection).await?;
    drop(connection);

    // The operator names an envelope without its organization, and each lookup is bound to one tenant.
    for organization in organizations {
        let caller = Caller::system(organization.id);
        let Ok(envelope) = envelopes::get_with_destroyed(&app, &caller, id).await else {
            continue;
        };
        if envelope.destruction.is_some() {
            return Ok(EnvelopeReport::Destroyed(
                verify_destroyed(&app, &caller, &envelope).await?,
            ));
        }

        let verified =
            custody::verify(&app, &app.management, &app.vault, &caller, id, trusted).await;
        return Ok(EnvelopeReport::Whole(Box::new(verified?)));
    }

    Err(format!("there is no envelope {id}").into())
}
