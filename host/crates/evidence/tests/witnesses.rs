//! Cosignatures of witnesses behind the head of a bundle, and the verifier's policy about them.

#![allow(clippy::unwrap_used)]

mod support;

use holdfast_domain::checkpoint::{CheckpointSigner, split_note};
use holdfast_evidence::{EvidenceVerdict, VerificationReport};
use serde_json::{Value, json};

use support::Evidence;

const LEDGER: &str = "custody-ledger.json";

fn witness(seed: u8) -> CheckpointSigner {
    CheckpointSigner::new(&[seed; 32]).unwrap()
}

/// Returns the policy of a verifier that demands both witnesses.
fn policy() -> String {
    let (one, two) = (
        witness(21).witness("w1.example"),
        witness(22).witness("w2.example"),
    );
    format!("witness w1 {one}\nwitness w2 {two}\ngroup both all w1 w2\nquorum both\n")
}

/// Returns the bundle's head with these lines behind it.
fn with_lines(evidence: &Evidence, lines: &str) -> Evidence {
    let mut ledger: Value = serde_json::from_slice(&evidence.files[LEDGER]).unwrap();
    let note = ledger["log"]["checkpoint"].as_str().unwrap();
    ledger["log"]["checkpoint"] = json!(format!("{note}{lines}"));
    let mut changed = Evidence::new();
    changed.files = evidence.files.clone();
    let text = serde_json::to_vec_pretty(&ledger).unwrap();
    changed.files.insert(LEDGER.into(), text);
    changed
}

/// Returns the line of a witness about the bundle's head.
fn line(evidence: &Evidence, seed: u8, name: &str) -> String {
    let note = evidence.log.note(evidence.size);
    let (text, _) = split_note(&note).unwrap();
    witness(seed).cosign(name, text, 1_790_000_000)
}

fn judged(evidence: &Evidence, policy: Option<&str>) -> VerificationReport {
    let mut trusted = evidence.trusted();
    if let Some(policy) = policy {
        trusted.witness_policy(policy).unwrap();
    }
    evidence.verify(&evidence.files, &trusted).unwrap()
}

/// Returns result and detail of the check of the quorum.
fn quorum(report: &VerificationReport) -> Option<(Option<bool>, &str)> {
    let mut checks = report.checks.iter();
    let check = checks.find(|check| check.check == "witnesses")?;
    Some((check.ok, &check.detail))
}

#[test]
fn a_cosigned_bundle_is_valid_with_and_without_a_policy() {
    let plain = Evidence::new();
    let lines = [
        line(&plain, 21, "w1.example"),
        line(&plain, 22, "w2.example"),
    ];
    let cosigned = with_lines(&plain, &lines.concat());

    let report = judged(&cosigned, None);
    assert_eq!(report.verdict, EvidenceVerdict::Valid, "{report:#?}");
    assert_eq!(quorum(&report), None);

    let report = judged(&cosigned, Some(&policy()));
    assert_eq!(report.verdict, EvidenceVerdict::Valid, "{report:#?}");
    let (ok, detail) = quorum(&report).unwrap();
    assert_eq!(ok, Some(true));
    assert!(detail.contains("cosigned by w1 at 2026-"), "{detail}");
}

#[test]
fn a_bundle_without_the_quorum_is_not_valid_under_a_policy() {
    let plain = Evidence::new();
    let other = with_lines(&plain, &line(&plain, 23, "w2.example"));
    let one = with_lines(&plain, &line(&plain, 21, "w1.example"));
    for (evidence, missing) in [
        (&plain, "not by w1, w2"),
        (&other, "not by w1, w2"),
        (&one, "not by w2"),
    ] {
        assert_eq!(judged(evidence, None).verdict, EvidenceVerdict::Valid);

        let report = judged(evidence, Some(&policy()));
        assert_eq!(report.verdict, EvidenceVerdict::NotValid, "{report:#?}");
        let (ok, detail) = quorum(&report).unwrap();
        assert_eq!(ok, Some(false));
        assert!(detail.ends_with(missing), "{detail}");
    }
}

#[test]
fn the_logs_of_a_policy_are_known_logs() {
    let evidence = Evidence::new();
    let mut trusted = holdfast_evidence::TrustedLogs::default();
    let policy = format!("log {}\nquorum none\n", evidence.log.key());
    trusted.witness_policy(&policy).unwrap();
    let report = evidence.verify(&evidence.files, &trusted).unwrap();
    assert_eq!(report.verdict, EvidenceVerdict::Valid, "{report:#?}");
}

/// Nothing but different cosignatures may be behind the signature of the log.
#[test]
fn other_lines_behind_the_signature_of_the_log_are_not_valid() {
    let plain = Evidence::new();
    let cosignature = line(&plain, 21, "w1.example");
    for lines in [
        "text\n".to_owned(),
        "\n".to_owned(),
        "— w1.example AAAA\n".to_owned(),
        cosignature.repeat(2),
        format!("{cosignature}\n"),
        format!("{cosignature}text\n"),
        cosignature.trim_end().to_owned(),
        cosignature.replace('\n', "\r\n"),
    ] {
        let report = judged(&with_lines(&plain, &lines), None);
        assert_eq!(report.verdict, EvidenceVerdict::NotValid, "{lines:?}");
    }
}
