//! Verification of a bundle: command-line arguments, trust anchors, and re-evaluation.
//!
//! The program `holdfast-verify` and the command `holdfast verify` share this code.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::Args;
use holdfast_domain::component::{ComponentIdentity, Slot};
use holdfast_domain::hash::sha256;
use holdfast_domain::token::random;
use holdfast_evidence::{
    Bundle, DecisionsReport, EvidenceVerdict, Facts, PoolReport, ReportFinding, RetrievalCounts,
    Rules, StatementReport, TrustRoots, TrustedLogs, VerificationReport, verify,
};
use holdfast_rules::compiler::ComponentCompiler;
use holdfast_rules::contract_facts::LoneFactReader;
use holdfast_rules::rules::ComplianceRules;
use holdfast_rules::{
    ComponentArtifact, ComponentError, built_in, compliance_alone, fact_reader_alone,
    known_compliance, known_digests,
};

/// Reason why nothing could be checked, for the user.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Exit code for unusable arguments, the same as clap's.
pub const USAGE: u8 = 2;

/// Trust anchors and files that the user provides.
#[derive(Args, Clone, Debug, Default)]
pub struct VerifyArguments {
    /// Head of the log that you kept: the output of `ledger monitor`, the response
    /// of `/ledger/head`, or a checkpoint. One later than the bundle's works if it
    /// was fetched with `?since=` and the size of the bundle's head, an earlier one if
    /// the proofs in the bundle lead to it.
    #[arg(long, value_name = "FILE")]
    pub head: Option<PathBuf>,
    /// Public keys of logs that you know, one on each line.
    #[arg(long, value_name = "FILE")]
    pub trust: Option<PathBuf>,
    /// Witness policy (C2SP tlog-policy): names witnesses with their keys, and the quorum
    /// that has to have cosigned the head of the log.
    #[arg(long, value_name = "FILE")]
    pub witness_policy: Option<PathBuf>,
    /// Rules component that made the certificate, if neither this program
    /// nor the bundle has it.
    #[arg(long, value_name = "FILE")]
    pub component: Option<PathBuf>,
    /// Public key of the log that you trust.
    #[arg(long)]
    pub key: Option<String>,
}

impl VerifyArguments {
    /// Collects the trust anchors. `roots` is a file with the root certificates of time stamping
    /// authorities.
    ///
    /// # Errors
    /// A file or a key cannot be read. The message names the argument.
    pub fn trusted(&self, roots: Option<&Path>) -> Result<TrustedLogs, Failure> {
        let mut trusted = TrustedLogs::default();
        // The digests are compiled into this program, so no bundle can claim that its component is a default.
        trusted.components(known_digests());
        if let Some(file) = roots {
            trusted.timestamps(TrustRoots::read(file)?);
        }

        if let Some(key) = &self.key {
            let about = |error| format!("--key: {error}");
            trusted.key(key).map_err(about)?;
        }

        if let Some(head) = &self.head {
            let about = |error| format!("--head {}: {error}", head.display());
            trusted.head(&read(head)?).map_err(about)?;
        }

        // A file that cannot be read is an error when its rules are needed.
        let component = self.component.as_ref();
        if let Some(bytes) = component.and_then(|file| std::fs::read(file).ok()) {
            trusted.rules(sha256(&bytes));
        }

        if let Some(trust) = &self.trust {
            let about = |error| format!("--trust {}: {error}", trust.display());
            trusted.logs(&read(trust)?).map_err(about)?;
        }

        if let Some(policy) = &self.witness_policy {
            let about = |error| format!("--witness-policy {}: {error}", policy.display());
            trusted.witness_policy(&read(policy)?).map_err(about)?;
        }

        Ok(trusted)
    }

    /// Runs all checks on a bundle.
    ///
    /// # Errors
    /// A file of the bundle is missing, or the given component cannot be read.
    pub async fn verify(
        &self,
        bundle: &Bundle,
        trusted: &TrustedLogs,
        compiler: &ComponentCompiler,
    ) -> Result<VerificationReport, Failure> {
        // An empty cache: native code left on this machine by other programs is not trusted.
        let cache = tempfile::tempdir()?;
        let reader = self.fact_reader(bundle, cache.path(), compiler).await?;
        let rules = self.rules(bundle, cache.path(), compiler).await?;
        Ok(verify(bundle, &rules, &reader, trusted)?)
    }

    /// Loads the rules component that the ledger names: from a release, the given file, or the
    /// bundle.
    async fn rules(
        &self,
        bundle: &Bundle,
        cache: &Path,
        compiler: &ComponentCompiler,
    ) -> Result<Rules, Failure> {
        let Some(named) = bundle.deciding_component() else {
            return Ok(Err("the ledger names no rules component".into()));
        };
        // Rules of a release are part of this program, so no code of the bundle runs for them.
        if let Some(known) = known_compliance(&named) {
            return Ok(ready(compliance_alone(
                cache.into(),
                random::<32>(),
                &known,
                None,
            )));
        }

        let Some(bytes) = self.bytes_of(&named, bundle)? else {
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

    /// Loads the component that read the facts of the contract: from this program, the given file, or the bundle.
    async fn fact_reader(
        &self,
        bundle: &Bundle,
        cache: &Path,
        compiler: &ComponentCompiler,
    ) -> Result<Facts, Failure> {
        let Some(named) = bundle.fact_reader() else {
            return Ok(Err("the bundle has no facts".into()));
        };
        let mut known = built_in();
        if let Some(known) = known.find(|known| known.identity.sha256 == named.sha256) {
            let reader = fact_reader_alone(cache.into(), random::<32>(), &known, None);
            return Ok(match reader {
                Ok(reader) => Ok(Box::new(reader)),
                Err(error) => Err(error.to_string()),
            });
        }

        let Some(bytes) = self.bytes_of(&named, bundle)? else {
            return Ok(Err(format!(
                "{named} ({}), which read them, is not at hand",
                named.sha256
            )));
        };
        match compiled_reader(&named, bytes, cache, compiler).await {
            Ok(reader) => Ok(Ok(Box::new(reader))),
            Err(error) => Ok(Err(format!("{named} cannot be used: {error}"))),
        }
    }

    /// Returns the bytes of a component from the given file or the bundle.
    fn bytes_of(
        &self,
        named: &ComponentIdentity,
        bundle: &Bundle,
    ) -> Result<Option<Bytes>, Failure> {
        let given = match &self.component {
            Some(file) => Some(Bytes::from(std::fs::read(file)?)),
            None => None,
        };
        // The digest decides, so the source of the bytes does not matter.
        let given = given.filter(|bytes| sha256(bytes) == named.sha256);
        Ok(given.or_else(|| bundle.component(&named.sha256)))
    }
}

fn read(file: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(file);
    Ok(text.map_err(|error| format!("{}: {error}", file.display()))?)
}

/// Compiles untrusted rules in another process.
async fn compiled(
    named: &ComponentIdentity,
    bytes: Bytes,
    cache: &Path,
    compiler: &ComponentCompiler,
) -> Result<ComplianceRules, Failure> {
    let (inspected, native) = compiler.compile(bytes.clone()).await?;
    // The ledger could name a component of another slot as its rules.
    if inspected.slot != Slot::Compliance {
        return Err(format!("it is for {}", inspected.slot).into());
    }
    let artifact = ComponentArtifact::uploaded(inspected.slot, &named.name, &named.version, bytes);
    // The key of the cache is random, so native code that another program left there is not accepted.
    let rules = compliance_alone(cache.into(), random::<32>(), &artifact, Some(&native));
    Ok(rules?)
}

/// Compiles an untrusted reader of documents in another process.
async fn compiled_reader(
    named: &ComponentIdentity,
    bytes: Bytes,
    cache: &Path,
    compiler: &ComponentCompiler,
) -> Result<LoneFactReader, Failure> {
    let (inspected, native) = compiler.compile(bytes.clone()).await?;
    if inspected.slot != Slot::Placement {
        return Err(format!("it is for {}", inspected.slot).into());
    }
    let artifact = ComponentArtifact::uploaded(inspected.slot, &named.name, &named.version, bytes);
    let reader = fact_reader_alone(cache.into(), random::<32>(), &artifact, Some(&native));
    Ok(reader?)
}

/// Converts rules to the argument of [`verify`].
pub fn ready(rules: Result<ComplianceRules, ComponentError>) -> Rules {
    match rules {
        Ok(rules) => Ok(Box::new(rules)),
        Err(error) => Err(error.to_string()),
    }
}

/// Formats a report for people: the verdict and its limits first, then the record, then a line for each
/// check.
pub fn text(report: &VerificationReport) -> String {
    let mut lines = vec![format!("{}: {}", report.verdict, meaning(report))];
    if !report.envelope_id.is_empty() {
        lines.push(format!("     {}", report.envelope_id));
    }

    // Evidence that does not hold proves no controller.
    if report.verdict != EvidenceVerdict::NotValid {
        if let Some(name) = &report.controlled_by {
            lines.push(format!("     controlled by {name}"));
        }
        lines.extend(retrievals(&report.retrievals));
    }

    let mark = |check: &ReportFinding| match check.ok {
        Some(true) => "ok  ",
        Some(false) => "FAIL",
        None => "--  ",
    };
    let line = |check: &ReportFinding| format!("{} {}: {}", mark(check), check.check, check.detail);
    lines.extend(report.checks.iter().map(line));

    lines.join("\n")
}

/// Returns the meaning of a verdict, and that it is no finding on enforceability.
fn meaning(report: &VerificationReport) -> String {
    let evidence = match report.verdict {
        EvidenceVerdict::Valid => "evidence unchanged and anchored",
        EvidenceVerdict::NotAnchored => {
            "no check fails; that a log known to you has all of the evidence is not shown"
        }
        EvidenceVerdict::NotReEvaluated | EvidenceVerdict::NotComplete => {
            "no check fails; what decided on the record could not be checked completely"
        }
        EvidenceVerdict::NotValid => {
            return "the evidence is changed, incomplete or contradictory, see FAIL; \
                    no finding on the rules result or on enforceability"
                .into();
        }
    };

    let result = match &report.rules_result {
        Some(result) => format!("rules result {} of 100", result.score),
        None => "rules result not checked".into(),
    };
    format!("{evidence}; {result}; no finding on enforceability")
}

/// Returns a line about the files that left the vault.
fn retrievals(counts: &RetrievalCounts) -> Option<String> {
    let kinds = [
        (
            counts.authoritative,
            "authoritative copy before its release",
        ),
        (
            counts.archive,
            "authoritative copy by the link of its release",
        ),
        (counts.paper_original, "file of a paper original"),
        (counts.bundle, "bundle as an evidence copy"),
        (counts.broken_off, "download that broke off"),
    ];

    let counted = kinds.iter().filter(|(count, _)| *count > 0);
    let counted: Vec<String> = counted
        .map(|(count, kind)| format!("{count} × {kind}"))
        .collect();
    (!counted.is_empty()).then(|| format!("     retrieved: {}", counted.join(", ")))
}

/// Returns a line for each check that could not be made.
fn open_lines(unproven: &[String]) -> impl Iterator<Item = String> {
    unproven.iter().map(|open| format!("--   {open}"))
}

/// Formats the report on a statement of control for people: a line for each problem, the verdict last.
pub fn statement_text(report: &StatementReport) -> String {
    let problems = report.problems.iter();
    let mut lines: Vec<String> = problems.map(|problem| format!("FAIL {problem}")).collect();
    lines.extend(open_lines(&report.unproven));
    lines.push(format!("     document {} (SHA-256)", report.document_hash));
    if let Some(key) = &report.signed_with {
        lines.push(format!("     {} signs with {key}", report.organization_id));
    }

    lines.push(format!(
        "{}: {}, controlled by {} ({}) at {}",
        report.verdict,
        report.statement_id,
        report.controller,
        report.organization_id,
        report.issued_at
    ));

    lines.join("\n")
}

/// Returns the report about an export of decisions as text.
pub fn decisions_text(report: &DecisionsReport) -> String {
    let problems = report.problems.iter();
    let mut lines: Vec<String> = problems.map(|problem| format!("FAIL {problem}")).collect();
    lines.extend(open_lines(&report.unproven));
    for (slot, decisions) in &report.by_slot {
        lines.push(format!("     {decisions} decisions of {slot}"));
    }

    // A masked line proves none of its values, so the reader has to know how many there are.
    if report.masked > 0 {
        lines.push(format!(
            "     {} have masked values, of which the rest is not proven",
            report.masked
        ));
    }

    let organization = report
        .organization_id
        .as_deref()
        .unwrap_or("no organization");
    let blocks = match (report.first_block, report.last_block) {
        (Some(first), Some(last)) => format!("blocks {first} to {last}"),
        _ => "no block".into(),
    };

    let until = report.last_block_at;
    let until = until.map_or(String::new(), |time| format!(", the last of {time}"));
    lines.push(format!(
        "{}: {organization}, {} decisions, {blocks}{until}",
        report.verdict, report.decisions
    ));

    lines.join("\n")
}

/// Formats the report on a pool for people: a line for each problem, the verdict last.
pub fn pool_text(report: &PoolReport) -> String {
    let mut lines = Vec::new();
    for problem in &report.problems {
        let about = problem.envelope_id.as_deref().unwrap_or("pool");
        lines.push(format!("FAIL {about}: {}", problem.detail));
    }

    lines.extend(open_lines(&report.unproven));
    for signer in &report.signers {
        let keys = signer.thumbprints.join(", ");
        lines.push(format!("     {} signs with {keys}", signer.organization_id));
    }

    for (name, records) in &report.controlled_by {
        lines.push(format!("     {records} records are controlled by {name}"));
    }

    lines.push(format!(
        "{}: {}, {} records",
        report.verdict, report.transfer_id, report.records
    ));

    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use holdfast_domain::clock::Timestamp;
    use holdfast_evidence::{PoolProblem, RulesResult, SignerReport};

    use super::*;

    fn report(verdict: EvidenceVerdict) -> VerificationReport {
        VerificationReport {
            verdict,
            valid: verdict == EvidenceVerdict::Valid,
            anchored: true,
            anchor: None,
            envelope_id: "env_1".into(),
            controlled_by: Some("First Bank".into()),
            signers: Vec::new(),
            rules_result: Some(RulesResult {
                score: 88,
                compliant: false,
            }),
            retrievals: RetrievalCounts::default(),
            checks: Vec::new(),
        }
    }

    #[test]
    fn the_first_line_says_what_each_verdict_means() {
        for (verdict, meaning) in [
            (EvidenceVerdict::Valid, "evidence unchanged and anchored"),
            (
                EvidenceVerdict::NotAnchored,
                "no check fails; that a log known to you has all of the evidence is not shown",
            ),
            (
                EvidenceVerdict::NotReEvaluated,
                "no check fails; what decided on the record could not be checked completely",
            ),
        ] {
            let lines = text(&report(verdict));
            let first = lines.lines().next().unwrap();
            let limits = "rules result 88 of 100; no finding on enforceability";
            assert_eq!(first, format!("{verdict}: {meaning}; {limits}"));
            assert!(lines.contains("controlled by First Bank"), "{lines}");

            let without_rules = VerificationReport {
                rules_result: None,
                ..report(verdict)
            };
            let lines = text(&without_rules);
            let limits = "rules result not checked; no finding on enforceability";
            assert!(
                lines.starts_with(&format!("{verdict}: {meaning}; {limits}")),
                "{lines}"
            );
        }

        // Evidence that does not hold proves no controller.
        assert_eq!(
            text(&report(EvidenceVerdict::NotValid)),
            "NOT VALID: the evidence is changed, incomplete or contradictory, see FAIL; no finding on the rules \
             result or on enforceability\n     env_1"
        );
    }

    #[test]
    fn what_left_the_vault_is_counted_by_its_kind() {
        let none = RetrievalCounts::default();
        assert_eq!(retrievals(&none), None);

        let all = RetrievalCounts {
            authoritative: 1,
            archive: 2,
            paper_original: 3,
            bundle: 4,
            broken_off: 5,
        };
        assert_eq!(
            retrievals(&all).unwrap().trim(),
            "retrieved: 1 × authoritative copy before its release, 2 × authoritative copy by the link of its \
             release, 3 × file of a paper original, 4 × bundle as an evidence copy, 5 × download that broke off"
        );

        let bundle = RetrievalCounts { bundle: 1, ..none };
        assert_eq!(
            retrievals(&bundle).unwrap().trim(),
            "retrieved: 1 × bundle as an evidence copy"
        );
    }

    #[test]
    fn a_report_on_a_pool_names_problems_open_checks_and_controllers() {
        let problem = |envelope: Option<&str>| PoolProblem {
            envelope_id: envelope.map(str::to_owned),
            detail: "its ledger was changed".into(),
        };
        let report = PoolReport {
            verdict: EvidenceVerdict::NotValid,
            valid: false,
            anchor: None,
            transfer_id: "trf_1".into(),
            records: 2,
            controlled_by: BTreeMap::from([("First Bank".to_owned(), 2)]),
            signers: vec![SignerReport {
                organization_id: "org_1".into(),
                thumbprints: vec!["key".into()],
            }],
            problems: vec![problem(Some("env_1")), problem(None)],
            unproven: vec!["the log is not known".into()],
            listed: BTreeSet::new(),
        };
        assert_eq!(
            pool_text(&report).lines().collect::<Vec<_>>(),
            [
                "FAIL env_1: its ledger was changed",
                "FAIL pool: its ledger was changed",
                "--   the log is not known",
                "     org_1 signs with key",
                "     2 records are controlled by First Bank",
                "NOT VALID: trf_1, 2 records",
            ]
        );
    }

    #[test]
    fn a_report_on_a_statement_names_its_controller_and_moment() {
        let at = Timestamp::from_millis(0);
        let report = |signed_with: Option<&str>| StatementReport {
            verdict: EvidenceVerdict::NotAnchored,
            valid: false,
            anchor: None,
            statement_id: "cst_1".into(),
            controller: "First Bank".into(),
            organization_id: "org_1".into(),
            signed_with: signed_with.map(str::to_owned),
            issued_at: at,
            document_hash: "ab".into(),
            problems: vec!["entry 2 was changed".into()],
            unproven: vec!["the log is not known".into()],
        };

        let last =
            format!("CONSISTENT, NOT ANCHORED: cst_1, controlled by First Bank (org_1) at {at}");
        let unsigned = [
            "FAIL entry 2 was changed",
            "--   the log is not known",
            "     document ab (SHA-256)",
            &last,
        ];

        let lines = statement_text(&report(None));
        assert_eq!(lines.lines().collect::<Vec<_>>(), unsigned);

        let lines = statement_text(&report(Some("key")));
        assert!(lines.contains("\n     org_1 signs with key\n"), "{lines}");
    }

    #[test]
    fn a_report_on_decisions_names_its_blocks() {
        let at = Timestamp::from_millis(0);
        let empty = DecisionsReport {
            verdict: EvidenceVerdict::Valid,
            valid: true,
            anchor: None,
            organization_id: None,
            decisions: 0,
            by_slot: BTreeMap::new(),
            masked: 0,
            first_block: None,
            last_block: None,
            last_block_at: None,
            problems: Vec::new(),
            unproven: Vec::new(),
        };
        assert_eq!(
            decisions_text(&empty),
            "VALID: no organization, 0 decisions, no block"
        );

        let some = DecisionsReport {
            organization_id: Some("org_1".into()),
            decisions: 3,
            by_slot: BTreeMap::from([("rules.compliance".to_owned(), 3)]),
            masked: 1,
            first_block: Some(1),
            last_block: Some(2),
            last_block_at: Some(at),
            ..empty
        };
        assert_eq!(
            decisions_text(&some).lines().collect::<Vec<_>>(),
            [
                "     3 decisions of rules.compliance",
                "     1 have masked values, of which the rest is not proven",
                &format!("VALID: org_1, 3 decisions, blocks 1 to 2, the last of {at}"),
            ]
        );
    }
}
