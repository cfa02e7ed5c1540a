//! Every member of every file of a bundle is bound: after any change, the evidence is not VALID.

#![allow(clippy::unwrap_used)]

mod support;
mod walk;

use bytes::Bytes;
use holdfast_evidence::{Bundle, EvidenceVerdict, VerificationReport};

use support::Evidence;
use walk::{Files, changed_bundles};

/// Returns the report on files as they come from a zip; `None` if a required file is missing.
fn judged(evidence: &Evidence, files: &Files) -> Option<VerificationReport> {
    evidence.verify(files, &evidence.trusted()).ok()
}

#[test]
fn the_generated_evidence_is_valid() {
    let evidence = Evidence::new();
    let report = judged(&evidence, &evidence.files).unwrap();
    assert_eq!(report.verdict, EvidenceVerdict::Valid, "{report:#?}");
    assert!(report.checks.iter().all(|check| check.ok == Some(true)));
}

#[test]
fn no_changed_member_and_no_missing_file_is_valid() {
    let evidence = Evidence::new();
    let mut changes = 0;
    let mut unnoticed = Vec::new();
    for changed in changed_bundles(&evidence.files) {
        changes += 1;
        let report = judged(&evidence, &changed.files);
        if report.is_some_and(|report| report.verdict == EvidenceVerdict::Valid) {
            unnoticed.push(changed.change);
        }
    }
    println!("{changes} changed bundles");
    assert!(unnoticed.is_empty(), "{unnoticed:#?}");
    assert!(changes > 1500, "{changes}");
}

#[test]
fn activations_that_were_not_shown_are_not_said_to_hold() {
    let evidence = Evidence::new();
    let mut files = evidence.files.clone();
    files.remove("component-ledger.json");
    let report = judged(&evidence, &files).unwrap();
    let mut checks = report.checks.iter();
    let check = checks.find(|check| check.check == "component ledger");
    assert_eq!(check.unwrap().ok, None);
    assert_eq!(report.verdict, EvidenceVerdict::NotReEvaluated);
}

#[test]
fn a_ledger_of_another_organization_is_not_valid() {
    let evidence = Evidence::new();
    let mut files = evidence.files.clone();
    let ledger = String::from_utf8(files["custody-ledger.json"].clone()).unwrap();
    let own = format!("\"org_id\": \"{}\"", support::ORGANIZATION);
    // The first is that of the file, the second that of the first entry.
    let other = ledger.replacen(&own, "\"org_id\": \"org_01h455vb4pex5vsknk084sn02z\"", 1);
    assert_ne!(ledger, other);
    files.insert("custody-ledger.json".into(), other.into_bytes());
    let report = judged(&evidence, &files).unwrap();
    assert_eq!(report.verdict, EvidenceVerdict::NotValid);
    let mut checks = report.checks.iter();
    let check = checks.find(|check| check.check == "organization").unwrap();
    assert_eq!(check.ok, Some(false), "{}", check.detail);
}

/// Returns the files of a vault-out and the ledger, without the rest of an export.
fn of_vault_out(evidence: &Evidence) -> Files {
    let mut files = evidence.files.clone();
    let is_of_vault_out = |name: &str| name.ends_with(".pdf") || name.ends_with("e.json");
    files.retain(|name, _| is_of_vault_out(name) || name == "custody-ledger.json");
    assert_eq!(files.len(), 5);
    files
}

#[test]
fn the_files_of_a_vault_out_do_not_show_who_activated_the_rules() {
    let evidence = Evidence::new();
    let report = judged(&evidence, &of_vault_out(&evidence)).unwrap();
    assert_eq!(
        report.verdict,
        EvidenceVerdict::NotReEvaluated,
        "{report:#?}"
    );
}

#[test]
fn the_files_of_a_vault_out_are_valid_for_a_verifier_with_the_rules() {
    let evidence = Evidence::new();
    let mut trusted = evidence.trusted();
    let decided = Bundle::of_files(evidence.files.iter().map(|(name, bytes)| {
        let bytes = Bytes::from(bytes.clone());
        (name.clone(), bytes)
    }));
    trusted.rules(decided.deciding_component().unwrap().sha256);
    let report = evidence.verify(&of_vault_out(&evidence), &trusted).unwrap();
    assert_eq!(report.verdict, EvidenceVerdict::Valid, "{report:#?}");
    let mut checks = report.checks.iter();
    let check = checks.find(|check| check.check == "component ledger");
    assert_eq!(check.unwrap().ok, None);
}

#[test]
fn test_data_under_rules_of_its_organization_is_valid() {
    let evidence = Evidence::of_test_data();
    let report = judged(&evidence, &evidence.files).unwrap();
    assert_eq!(report.verdict, EvidenceVerdict::Valid, "{report:#?}");
}
