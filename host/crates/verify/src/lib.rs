//! Checking a bundle: what the reader trusts, and the rules that are asked again.
//!
//! The program `holdfast-verify` and the command `holdfast verify` are made of this.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::Args;
use holdfast_domain::component::{ComponentIdentity, Slot};
use holdfast_domain::hash::sha256;
use holdfast_domain::token::random;
use holdfast_evidence::{Bundle, Finding, Report, Rules, TimestampTrust, Trusted, verify};
use holdfast_rules::compiler::Compiler;
use holdfast_rules::rules::Compliance;
use holdfast_rules::{Artifact, ComponentError, compliance_alone, known_compliance, known_digests};

/// Why nothing could be checked, in words for the reader.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Exit code of arguments that cannot be used, as clap has it.
pub const USAGE: u8 = 2;

/// What the reader knows from elsewhere than the bundle.
#[derive(Args, Clone, Debug, Default)]
pub struct Arguments {
    /// A head of the log that you kept: what `ledger monitor` wrote, the answer
    /// of `/ledger/head`, or a checkpoint. With `?since=` of the bundle's own
    /// size, a later head works too.
    #[arg(long, value_name = "FILE")]
    pub head: Option<PathBuf>,
    /// Public keys of logs that you know, one on each line.
    #[arg(long, value_name = "FILE")]
    pub trust: Option<PathBuf>,
    /// The rules component that made the certificate, where neither this program
    /// nor the bundle has it.
    #[arg(long, value_name = "FILE")]
    pub component: Option<PathBuf>,
    /// The log's public key, as you know it.
    #[arg(long)]
    pub key: Option<String>,
}

impl Arguments {
    /// What they say to trust; `roots` is a file with the roots of time stamping authorities.
    ///
    /// # Errors
    /// A file or a key cannot be read: names the argument.
    pub fn trusted(&self, roots: Option<&Path>) -> Result<Trusted, Failure> {
        let mut trusted = Trusted::default();
        trusted.components(known_digests());
        if let Some(file) = roots {
            trusted.timestamps(TimestampTrust::read(file)?);
        }
        if let Some(key) = &self.key {
            let about = |error| format!("--key: {error}");
            trusted.key(key).map_err(about)?;
        }
        if let Some(head) = &self.head {
            let about = |error| format!("--head {}: {error}", head.display());
            trusted.head(&read(head)?).map_err(about)?;
        }
        if let Some(trust) = &self.trust {
            let about = |error| format!("--trust {}: {error}", trust.display());
            trusted.logs(&read(trust)?).map_err(about)?;
        }
        Ok(trusted)
    }

    /// Runs every check on a bundle.
    ///
    /// # Errors
    /// A file of the bundle is missing, or the given component cannot be read.
    pub async fn verify(
        &self,
        bundle: &Bundle,
        trusted: &Trusted,
        compiler: &Compiler,
    ) -> Result<Report, Failure> {
        // Native code is made anew: nothing on this machine is trusted.
        let cache = tempfile::tempdir()?;
        let rules = self.rules(bundle, cache.path(), compiler).await?;
        Ok(verify(bundle, &rules, trusted)?)
    }

    /// The rules component that the ledger names: of a release, of the bundle, or of
    /// the given file.
    async fn rules(
        &self,
        bundle: &Bundle,
        cache: &Path,
        compiler: &Compiler,
    ) -> Result<Rules, Failure> {
        let Some(named) = bundle.deciding_component() else {
            return Ok(Err("the ledger names no rules component".into()));
        };
        if let Some(known) = known_compliance(&named) {
            return Ok(ready(compliance_alone(
                cache.into(),
                random::<32>(),
                &known,
                None,
            )));
        }
        let given = match &self.component {
            Some(file) => Some(Bytes::from(std::fs::read(file)?)),
            None => None,
        };
        let fits = |bytes: &Bytes| sha256(bytes) == named.sha256;
        let Some(bytes) = given
            .filter(fits)
            .or_else(|| bundle.component(&named.sha256))
        else {
            return Ok(Err(format!(
                "the rules component {named} ({}) that made the certificate is not at hand: give \
                 its file with --component",
                named.sha256
            )));
        };
        match compiled(&named, bytes, cache, compiler).await {
            Ok(rules) => Ok(Ok(Box::new(rules))),
            Err(error) => Ok(Err(format!(
                "the rules component {named} cannot be used: {error}"
            ))),
        }
    }
}

fn read(file: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(file);
    Ok(text.map_err(|error| format!("{}: {error}", file.display()))?)
}

/// Rules that may be anyone's: another process parses and compiles them.
async fn compiled(
    named: &ComponentIdentity,
    bytes: Bytes,
    cache: &Path,
    compiler: &Compiler,
) -> Result<Compliance, Failure> {
    let (inspected, native) = compiler.compile(bytes.clone()).await?;
    if inspected.slot != Slot::Compliance {
        return Err(format!("it is for {}", inspected.slot).into());
    }
    let artifact = Artifact::uploaded(inspected.slot, &named.name, &named.version, bytes);
    let rules = compliance_alone(cache.into(), random::<32>(), &artifact, Some(&native));
    Ok(rules?)
}

/// Rules as the checks take them.
pub fn ready(rules: Result<Compliance, ComponentError>) -> Rules {
    match rules {
        Ok(rules) => Ok(Box::new(rules)),
        Err(error) => Err(error.to_string()),
    }
}

/// A report for people: a line for each check, the verdict last.
pub fn text(report: &Report) -> String {
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
