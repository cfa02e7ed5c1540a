//! Offline verification of the evidence of an envelope.
//!
//! A bundle is a folder or zip with the four files of a vault-out, the custody
//! ledger, the entries of the component ledger that activated its components, the rules components that
//! decided, the disclosures that signers saw, the facts of the contract, and a notice that it is an evidence copy. Verification needs nothing from the installation that
//! made the bundle except a key or a head of its log, which anchors the verdict.

mod acts;
pub mod archive;
mod ber;
mod bundle;
mod components;
mod control;
pub mod decisions;
mod disclosures;
pub mod existing;
mod facts;
pub mod formats;
mod log;
mod long_term;
pub mod pool;
mod report;
mod retrievals;
pub mod revocation;
pub mod seal;
pub mod signed;
pub mod stamp;
pub mod statement;
pub mod strict;
mod trust;
mod witnesses;

use serde_json::Value;

use self::formats::{
    AUTHORITATIVE, CERTIFICATE, COPY, CUSTODY_RECORD, CustodyLedger, EVIDENCE_COPY, LEDGER,
};
use self::report::OpenQuestion;
use holdfast_domain::component::ComponentIdentity;
use holdfast_domain::hash::sha256;
use holdfast_domain::ledger::{LedgerEntry, verify_chain};

pub use bundle::{Bundle, BundleError};
pub use decisions::{DecisionsReport, ExpectedExport, verify_decisions};
pub use facts::{FactReader, Facts};
pub use log::TrustedLogs;
pub use pool::{PoolProblem, PoolReport, verify_pool};
pub use report::{
    AnchorKind, EvidenceVerdict, ReportFinding, RetrievalCounts, RulesResult, SignerReport,
    VerdictAnchor, VerificationReport,
};
pub use statement::{IssuedStatement, StatementReport, verify_statement};
pub use trust::{TrustError, TrustRoots};
pub use witnesses::PolicyError;

/// Rules that can write a compliance certificate again.
pub trait CertificateRules {
    /// Returns the identity of the component that writes the certificate.
    ///
    /// # Errors
    /// The component cannot be loaded.
    fn identity(&self) -> Result<ComponentIdentity, String>;

    /// Whether the built-in pack with this SHA-256 is available as the baseline of other rules.
    fn has_pack(&self, sha256: &str) -> bool;

    /// Writes the certificate for the facts in the ledger. `pack` is the SHA-256 of the built-in pack that
    /// other rules were compared with; without one, the certificate is that of the rules alone, as those of
    /// a built-in pack and of early releases are.
    ///
    /// # Errors
    /// The facts cannot be parsed, or the component fails.
    fn certificate(
        &self,
        facts: &Value,
        issued_at: &str,
        issuer: &str,
        pack: Option<&str>,
    ) -> Result<String, String>;
}

/// Rules component that made the certificate, or the reason why it is not available.
pub type Rules = Result<Box<dyn CertificateRules>, String>;

/// Runs all checks on the evidence of an envelope.
///
/// # Errors
/// A file of the bundle is missing.
pub fn verify(
    bundle: &Bundle,
    rules: &Rules,
    reader: &Facts,
    trusted: &TrustedLogs,
) -> Result<VerificationReport, BundleError> {
    let mut findings = Vec::from_iter(bundle.finding());
    // Two readers could see different files in a refused bundle, so none of them is judged.
    if bundle.is_refused() {
        return Ok(VerificationReport::new(String::new(), None, findings));
    }

    let certificate = bundle.file(CERTIFICATE)?;
    let ledger: CustodyLedger = match strict::read(bundle.file(LEDGER)?) {
        Ok(ledger) => ledger,
        Err(error) => {
            // Every other check compares with the ledger, so the report ends here.
            let why = format!("the ledger cannot be read: {error}");
            findings.push(ReportFinding::fails("ledger", why));
            return Ok(VerificationReport::new(String::new(), None, findings));
        }
    };

    // An unreadable certificate becomes null here and fails in each check that looks into it.
    let certified: Value = serde_json::from_slice(certificate).unwrap_or_default();
    let stored = last(&ledger.entries, "vault.stored").map(|entry| &entry.details);

    findings.push(chain(&ledger.entries));
    findings.push(organization(&ledger));
    let (name, authoritative) = bundle.authoritative()?;
    findings.push(history(
        &ledger.entries,
        authoritative,
        bundle.is_in_vault(),
    ));

    findings.extend(replaced_by_paper(bundle, &ledger.entries));
    // Rules can certify again after a change of control. The bundle has the last certificate.
    let anew = last(&ledger.entries, CERTIFIED_ANEW).map(|entry| &entry.details);
    findings.extend(files(bundle, name, stored, anew)?);
    findings.extend(executed(authoritative, stored));
    let log = log::check(&ledger, &certified, trusted);
    findings.extend(log.findings);
    findings.extend(seal(authoritative, stored, trusted));
    findings.extend(long_term::finding(
        bundle,
        &ledger.entries,
        authoritative,
        trusted,
    ));

    findings.push(hash_finding(
        "certified hash",
        "authoritative copy",
        authoritative,
        certified["document_integrity"]["document_hash"].as_str(),
    ));
    let envelope_id = ledger.envelope_id.to_string();

    let subject = certified["subject"]["envelope_id"].as_str();
    findings.push(ReportFinding::new(
        "subject",
        subject == Some(envelope_id.as_str()),
        format!("ledger and certificate are about {envelope_id}"),
    ));
    let checkpoint = log.checkpoint.as_ref();
    findings.extend(components::findings(
        bundle, &ledger, &certified, checkpoint, trusted,
    ));

    findings.extend(disclosures::finding(bundle, &certified));
    findings.extend(facts::finding(
        bundle,
        &ledger.entries,
        authoritative,
        reader,
    ));
    findings.extend(retrievals::notice(bundle, &ledger.entries));
    // The ledger entry holds all facts of the decision, so no other file is needed for a second run.
    let re_evaluated = re_evaluation(&ledger.entries, certificate, rules);
    let is_same = re_evaluated.ok == Some(true);
    findings.push(re_evaluated);

    let control = control::replay(&envelope_id, &ledger.entries, ledger.log.as_ref());
    let (control, report) = control.unzip();
    findings.extend(control);
    let (controlled_by, signers) = report
        .flatten()
        .map(|report| (report.controller, report.signers))
        .unzip();
    let mut report = VerificationReport {
        controlled_by,
        signers: signers.unwrap_or_default(),
        retrievals: retrievals::count(&ledger.entries),
        ..VerificationReport::new(envelope_id, log.anchor, findings)
    };
    // A score is reported only after the rules gave it again. The recorded number alone proves nothing.
    if is_same && report.verdict != EvidenceVerdict::NotValid {
        report.rules_result = rules_result(&ledger.entries, &certified);
    }

    Ok(report)
}

/// Returns the result of the rules: of the statute's section and of an organization's own checks
/// together, as the entry of the certificate has it.
fn rules_result(entries: &[LedgerEntry], certificate: &Value) -> Option<RulesResult> {
    let entry = self::certified(entries)?;
    let missing = entry.details["missing_requirements"].as_array();
    let own = certificate["ucc_9105_compliance"]["compliant"].as_bool()?;
    Some(RulesResult {
        score: entry.details["score"].as_u64()?,
        compliant: own && missing.is_some_and(Vec::is_empty),
    })
}

/// Ledger action of a certificate after the first: control has passed to another party.
const CERTIFIED_ANEW: &str = "compliance.certified";

/// Returns the entry of the newest certificate.
fn certified(entries: &[LedgerEntry]) -> Option<&LedgerEntry> {
    last(entries, CERTIFIED_ANEW).or_else(|| last(entries, "compliance.evaluated"))
}

/// Whether the evidence is of a release that binds each member of the files: its first entry names the
/// organization.
fn is_of_this_format(ledger: &CustodyLedger) -> bool {
    let first = ledger.entries.first();
    first.is_some_and(|first| !first.details["org_id"].is_null())
}

/// Checks that the ledger is of the organization that created the envelope, by its first entry. Earlier
/// releases named it in the acts of control only.
fn organization(ledger: &CustodyLedger) -> ReportFinding {
    const CHECK: &str = "organization";

    let created = ledger.entries.first();
    let created = created.and_then(|entry| entry.details["org_id"].as_str());
    let act = |entry: &&LedgerEntry| entry.action.starts_with("control.");
    let originator = ledger.entries.iter().find(act);
    let originator =
        originator.and_then(|act| act.details["originator"]["organization_id"].as_str());

    // No hash covers the `org_id` of the file, so an entry has to confirm it.
    match created.or(originator) {
        Some(named) if named == ledger.org_id.as_str() => {
            ReportFinding::holds(CHECK, format!("the record was created by {named}"))
        }
        Some(named) => {
            let given = &ledger.org_id;
            let why = format!("the record was created by {named}, the file names {given}");
            ReportFinding::fails(CHECK, why)
        }
        None => ReportFinding::unchecked(
            CHECK,
            OpenQuestion::Nothing,
            "the ledger is of an earlier release, whose entries do not name the organization that \
             created the record",
        ),
    }
}

/// Checks that the authoritative copy is called an evidence copy only where a paper original has
/// replaced it, and that there is one of both. `None` for the usual name.
fn replaced_by_paper(bundle: &Bundle, entries: &[LedgerEntry]) -> Option<ReportFinding> {
    const CHECK: &str = "evidence copy";

    bundle.optional(EVIDENCE_COPY)?;
    if bundle.optional(AUTHORITATIVE).is_some() {
        let why = format!("the bundle has both {AUTHORITATIVE} and {EVIDENCE_COPY}");
        return Some(ReportFinding::fails(CHECK, why));
    }

    let released = last(entries, "vault.released");
    let is_paper = released.is_some_and(|entry| entry.details["form"]["medium"] == "paper");
    Some(if is_paper {
        ReportFinding::holds(CHECK, "a paper original has replaced the record")
    } else {
        ReportFinding::fails(CHECK, "the ledger has no conversion to paper")
    })
}

fn chain(entries: &[LedgerEntry]) -> ReportFinding {
    match verify_chain(entries) {
        Ok(()) => ReportFinding::holds(
            "ledger",
            format!(
                "{} entries, each follows from the one before{}",
                entries.len(),
                destroyed(entries).unwrap_or_default()
            ),
        ),
        Err(error) => ReportFinding::fails("ledger", error.to_string()),
    }
}

/// Describes how many entries lost their details; `None` for a record that was not destroyed.
fn destroyed(entries: &[LedgerEntry]) -> Option<String> {
    let withheld = entries.iter().filter(|entry| entry.withheld).count();
    (withheld > 0).then(|| {
        format!(
            "; the details of {withheld} of them were destroyed, and their hashes alone are checked"
        )
    })
}

/// Checks the files against the hashes in the ledger.
fn files(
    bundle: &Bundle,
    authoritative: &'static str,
    stored: Option<&Value>,
    anew: Option<&Value>,
) -> Result<Vec<ReportFinding>, BundleError> {
    let files = [
        (
            "document",
            authoritative,
            "document_hash",
            "authoritative copy",
        ),
        ("copy", COPY, "copy_hash", "non-authoritative copy"),
        (
            "certificate",
            CERTIFICATE,
            "certificate_hash",
            "certificate",
        ),
        (
            "custody record",
            CUSTODY_RECORD,
            "custody_record_hash",
            "custody record",
        ),
    ];

    // Only the certificate is made anew. The other files stay as they were at the vaulting.
    let finding = |(check, file, member, name): (&'static str, &'static str, &str, &str)| {
        let recorded = match (member, anew) {
            ("certificate_hash", Some(anew)) => anew["certificate_hash"].as_str(),
            _ => stored.and_then(|stored| stored[member].as_str()),
        };
        Ok(hash_finding(check, name, bundle.file(file)?, recorded))
    };

    files.into_iter().map(finding).collect()
}

/// Checks that the authoritative copy begins with the executed document, or that the ledger
/// gives the reason for rewriting it. `None` for evidence of early releases, which did not record
/// the size.
fn executed(authoritative: &[u8], stored: Option<&Value>) -> Option<ReportFinding> {
    const CHECK: &str = "executed document";

    let stored = stored?;
    // A rewritten copy cannot begin with the executed bytes, so the ledger has the hash of its beginning.
    let rewritten = stored.get("rewritten").filter(|value| !value.is_null());
    let (hash, size) = match rewritten {
        Some(rewritten) => (&rewritten["rewritten_hash"], &rewritten["rewritten_size"]),
        None => (
            &stored["signed_document_hash"],
            stored.get("signed_document_size")?,
        ),
    };
    let size = size.as_u64().and_then(|size| usize::try_from(size).ok());
    let beginning = size.and_then(|size| authoritative.get(..size));
    let holds = beginning.is_some_and(|bytes| hash.as_str() == Some(&sha256(bytes)));
    let detail = match (holds, rewritten) {
        (false, _) => "the authoritative copy does not begin with the executed document".into(),
        (true, None) => format!(
            "the authoritative copy begins with the executed document of {} bytes",
            size.unwrap_or_default()
        ),
        (true, Some(rewritten)) => format!(
            "REWRITTEN: {}; executed was {}, the authoritative copy begins with {}",
            rewritten["reason"].as_str().unwrap_or_default(),
            rewritten["executed_hash"].as_str().unwrap_or_default(),
            rewritten["rewritten_hash"].as_str().unwrap_or_default(),
        ),
    };

    Some(ReportFinding::new(CHECK, holds, detail))
}

/// Checks that the ledger has one vaulting and one evaluation, and in a bundle one release of
/// this document. A bundle cannot show that there are no later entries.
fn history(entries: &[LedgerEntry], authoritative: &[u8], in_vault: bool) -> ReportFinding {
    const CHECK: &str = "history";

    // UCC §9-105 asks for a single authoritative copy, so a second vaulting or release is a contradiction.
    let released = usize::from(!in_vault);
    for (action, expected) in [
        ("vault.stored", 1),
        ("compliance.evaluated", 1),
        ("vault.released", released),
    ] {
        let found = entries.iter().filter(|entry| entry.action == action);
        let times = found.count();
        if times != expected {
            let why = format!("the ledger has {times} entries {action}, expected are {expected}");
            return ReportFinding::fails(CHECK, why);
        }
    }

    if in_vault {
        return ReportFinding::holds(
            CHECK,
            "the document was vaulted once, and the ledger has no release",
        );
    }

    let released = last(entries, "vault.released").map(|entry| &entry.details);
    let hash = released.and_then(|released| released["document_hash"].as_str());
    let is_paper = released.is_some_and(|released| released["form"]["medium"] == "paper");
    if hash != Some(sha256(authoritative).as_str()) {
        ReportFinding::fails(CHECK, "the ledger has the release of another document")
    } else if is_paper {
        let how = "the document was vaulted once, and a paper original has replaced it";
        ReportFinding::holds(CHECK, how)
    } else {
        ReportFinding::holds(CHECK, "the document was vaulted once and released once")
    }
}

fn hash_finding(
    check: &'static str,
    name: &str,
    bytes: &[u8],
    recorded: Option<&str>,
) -> ReportFinding {
    let actual = sha256(bytes);
    match recorded {
        Some(recorded) if recorded == actual => ReportFinding::holds(
            check,
            format!("the {name} has the recorded SHA-256 {actual}"),
        ),
        Some(recorded) => ReportFinding::fails(
            check,
            format!("the {name} was changed: its SHA-256 is {actual}, recorded is {recorded}"),
        ),
        None => ReportFinding::fails(check, format!("no hash of the {name} is recorded")),
    }
}

/// Checks that the seal is valid and was made with the certificate that the ledger names.
fn seal(authoritative: &[u8], stored: Option<&Value>, trusted: &TrustedLogs) -> Vec<ReportFinding> {
    const CHECK: &str = "seal";

    let recorded = stored.and_then(|stored| stored["seal_certificate_hash"].as_str());
    let Some(recorded) = recorded else {
        let why =
            "no seal is recorded, as for a document that its author certified against any change";
        return vec![ReportFinding::new(CHECK, stored.is_some(), why)];
    };

    let seal = match seal::verify(authoritative) {
        Ok(seal) => seal,
        Err(why) => return vec![ReportFinding::fails(CHECK, why)],
    };
    // Anyone can seal a document with a key of their own, so the recorded certificate decides.
    let sealed = if seal.certificate == recorded {
        ReportFinding::holds(
            CHECK,
            format!("the authoritative copy is sealed by {}", seal.subject),
        )
    } else {
        ReportFinding::fails(
            CHECK,
            format!(
                "the seal is of the certificate {}, recorded is {recorded}",
                seal.certificate
            ),
        )
    };

    let recorded = stored.map(|stored| &stored["trusted_time"]);
    [Some(sealed), time(&seal, recorded, trusted)]
        .into_iter()
        .flatten()
        .collect()
}

/// Checks that the time stamp in the seal is the one in the ledger. `None` if no time stamp was
/// requested.
fn time(
    seal: &seal::DocumentSeal,
    recorded: Option<&Value>,
    trusted: &TrustedLogs,
) -> Option<ReportFinding> {
    const CHECK: &str = "trusted time";

    let recorded = recorded.filter(|recorded| !recorded.is_null());
    // The installation may seal without an authority that it cannot reach, but it has to record that.
    Some(match (&seal.stamp, recorded) {
        (None, None) => return None,
        (Some(Ok(stamp)), Some(recorded)) if recorded["at"] == stamp.at.to_string() => {
            let chain = trusted.timestamps.as_ref();
            let chain = chain.map(|roots| stamp.leads_to(roots));
            let note = match (&chain, recorded["statement"].as_str()) {
                (Some(Ok(())), _) => " (its certificate leads to a given root)".to_owned(),
                (Some(Err(why)), _) => {
                    return Some(ReportFinding::fails(
                        CHECK,
                        format!("the time stamp: {why}"),
                    ));
                }
                (None, Some(statement)) => format!(" ({statement})"),
                (None, None) => String::new(),
            };

            let (authority, at) = (&stamp.authority, stamp.at);
            ReportFinding::holds(CHECK, format!("{authority} saw the seal at {at}{note}"))
        }
        (None, Some(recorded)) if recorded["status"] == "no trusted time" => {
            let reason = recorded["reason"].as_str().unwrap_or_default();
            ReportFinding::holds(CHECK, format!("no trusted time: {reason}"))
        }
        (Some(Err(why)), _) => ReportFinding::fails(CHECK, format!("the time stamp: {why}")),
        _ => ReportFinding::fails(
            CHECK,
            "the time stamp in the seal is not the one in the ledger",
        ),
    })
}

/// Evaluates the recorded facts again with the same component, and compares the resulting
/// certificate byte for byte.
fn re_evaluation(entries: &[LedgerEntry], certificate: &[u8], rules: &Rules) -> ReportFinding {
    const CHECK: &str = "re-evaluation";

    let Some(entry) = certified(entries) else {
        return ReportFinding::fails(CHECK, "the ledger holds no evaluation");
    };

    // A verifier without the rules can still check the rest, so a missing component is no failure.
    let unchecked = |why: &str| ReportFinding::unchecked(CHECK, OpenQuestion::Rules, why);
    let rules = match rules {
        Ok(rules) => rules,
        Err(why) => return unchecked(why),
    };

    let details = &entry.details;
    if entry.withheld {
        return unchecked("the facts were destroyed with the record");
    }

    let named = details["component"]["sha256"].as_str().unwrap_or_default();
    let identity = match rules.identity() {
        Ok(identity) if identity.sha256 == named => identity,
        Ok(identity) => {
            let why = format!("the rules component {named} is not at hand, only {identity}");
            return unchecked(&why);
        }
        Err(error) => return unchecked(&error),
    };

    // Another release can compare the same answer with another pack, and get another result.
    let pack = details["evaluations"].is_array().then(|| {
        let pack = details["evaluations"][1]["component"]["sha256"].as_str();
        pack.unwrap_or_default()
    });
    if let Some(pack) = pack
        && !rules.has_pack(pack)
    {
        let why = format!("the built-in rules {pack}, asked as well, are not at hand");
        return unchecked(&why);
    }

    // Rules have neither clock nor settings, so time and issuer are arguments like the facts.
    let facts = &details["facts"];
    let issued_at = details["issued_at"].as_str().unwrap_or_default();
    let issuer = details["issuer"].as_str().unwrap_or_default();
    match rules.certificate(facts, issued_at, issuer, pack) {
        Ok(text) if text.as_bytes() == certificate => ReportFinding::holds(
            CHECK,
            format!(
                "{} {} gives the same certificate again",
                identity.name, identity.version
            ),
        ),
        Ok(_) => ReportFinding::fails(CHECK, "the rules give another certificate for these facts"),
        Err(error) => ReportFinding::fails(CHECK, error),
    }
}

fn last<'a>(entries: &'a [LedgerEntry], action: &str) -> Option<&'a LedgerEntry> {
    entries.iter().rev().find(|entry| entry.action == action)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use holdfast_domain::clock::Timestamp;
    use holdfast_domain::ledger::{DESTROYED, NewEntry};

    use super::*;

    /// Rules that give the certificate `{}` for all facts.
    struct KnownComponents(ComponentIdentity);

    impl CertificateRules for KnownComponents {
        fn identity(&self) -> Result<ComponentIdentity, String> {
            Ok(self.0.clone())
        }

        fn has_pack(&self, sha256: &str) -> bool {
            sha256 == self.0.sha256
        }

        fn certificate(
            &self,
            _: &Value,
            _: &str,
            _: &str,
            _: Option<&str>,
        ) -> Result<String, String> {
            Ok("{}".into())
        }
    }

    fn evaluated(details: Value) -> LedgerEntry {
        LedgerEntry {
            sequence: 1,
            at: Timestamp::from_millis(0),
            actor: "system".into(),
            action: "compliance.evaluated".into(),
            details,
            previous_hash: String::new(),
            hash: String::new(),
            withheld: false,
        }
    }

    #[test]
    fn a_re_evaluation_says_what_the_rules_gave() {
        let identity = ComponentIdentity {
            name: "rules".into(),
            version: "1.0.0".into(),
            sha256: "1".repeat(64),
        };
        let rules = || -> Rules { Ok(Box::new(KnownComponents(identity.clone()))) };
        let by = |sha256: &str| [evaluated(json!({ "component": { "sha256": sha256 } }))];

        let (own, other) = (by(&"1".repeat(64)), by(&"2".repeat(64)));
        for (entries, certificate, rules, ok, detail) in [
            (
                &own[..],
                "{}",
                rules(),
                Some(true),
                "rules 1.0.0 gives the same certificate again".to_owned(),
            ),
            (
                &own,
                "{ }",
                rules(),
                Some(false),
                "the rules give another certificate for these facts".into(),
            ),
            (
                &other,
                "{}",
                rules(),
                None,
                format!(
                    "the rules component {} is not at hand, only rules 1.0.0",
                    "2".repeat(64)
                ),
            ),
            (&own, "{}", Err("no rules".into()), None, "no rules".into()),
            (
                &[],
                "{}",
                rules(),
                Some(false),
                "the ledger holds no evaluation".into(),
            ),
        ] {
            let finding = re_evaluation(entries, certificate.as_bytes(), &rules);
            assert_eq!((finding.ok, finding.detail), (ok, detail));
        }
    }

    #[test]
    fn destroyed_facts_are_not_re_evaluated() {
        let rules = KnownComponents(ComponentIdentity {
            name: "rules".into(),
            version: "1.0.0".into(),
            sha256: "1".repeat(64),
        });
        let entry = LedgerEntry {
            withheld: true,
            ..evaluated(Value::Null)
        };
        let finding = re_evaluation(&[entry], b"{}", &Ok(Box::new(rules)));
        let detail = "the facts were destroyed with the record";
        assert_eq!((finding.ok, finding.detail.as_str()), (None, detail));
    }

    #[test]
    fn the_ledger_of_a_destroyed_record_says_how_many_entries_lost_their_details() {
        let mut entries: Vec<LedgerEntry> = Vec::new();
        for (actor, action) in [
            ("signer:ann@example.com", "signer.viewed"),
            ("signer:ann@example.com", "signer.completed"),
            ("system", DESTROYED),
        ] {
            let new = NewEntry {
                at: Timestamp::from_millis(0),
                actor: actor.into(),
                action: action.into(),
                details: json!({}),
            };
            entries.push(LedgerEntry::after(entries.last(), new));
        }

        assert_eq!(
            chain(&entries).detail,
            "3 entries, each follows from the one before"
        );
        let redacted: Vec<LedgerEntry> = entries.iter().map(LedgerEntry::redacted).collect();
        assert_eq!(
            chain(&redacted).detail,
            "3 entries, each follows from the one before; the details of 2 of them were destroyed, and their hashes alone \
             are checked"
        );
    }

    /// A later release can compare the same rules with a pack that this release lacks.
    #[test]
    fn rules_under_an_unknown_baseline_pack_are_not_re_evaluated() {
        let decided = "1".repeat(64);
        let rules = KnownComponents(ComponentIdentity {
            name: "rules".into(),
            version: "1.0.0".into(),
            sha256: decided.clone(),
        });
        let unknown = "0".repeat(64);
        let evaluated = evaluated(json!({
            "component": { "sha256": decided },
            "evaluations": [
                { "component": { "sha256": decided } }, { "component": { "sha256": unknown } },
            ],
        }));
        let finding = re_evaluation(&[evaluated], b"{}", &Ok(Box::new(rules)));
        assert_eq!(finding.ok, None, "{}", finding.detail);

        assert!(finding.detail.contains(&unknown), "{}", finding.detail);
    }
}
