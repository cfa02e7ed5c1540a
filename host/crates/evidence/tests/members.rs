//! Every member of every file of a bundle is bound: after any change, the evidence is not VALID.

#![allow(clippy::unwrap_used)]

mod support;
mod walk;

use bytes::Bytes;
use holdfast_domain::hash::sha256;
use holdfast_domain::succession::KeySuccession;
use holdfast_evidence::{Bundle, EvidenceVerdict, TrustedLogs, VerificationReport};
use serde_json::{Value, json};

use support::{Evidence, TestLog};
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

/// Returns result and detail of a check.
#[track_caller]
fn finding(report: &VerificationReport, check: &str) -> (Option<bool>, String) {
    let mut checks = report.checks.iter();
    let found = checks.find(|one| one.check == check);
    let found = found.unwrap_or_else(|| panic!("no {check}: {report:#?}"));
    (found.ok, found.detail.clone())
}

const LEDGER: &str = "custody-ledger.json";
const COMPONENTS: &str = "component-ledger.json";
const CERTIFICATE: &str = "ucc-compliance-certificate.json";

/// Returns the files with a change of one JSON file.
fn edited(evidence: &Evidence, name: &str, change: impl FnOnce(&mut Value)) -> Files {
    let mut files = evidence.files.clone();
    let mut value = serde_json::from_slice(&files[name]).unwrap();
    change(&mut value);
    let text = serde_json::to_vec_pretty(&value).unwrap();
    files.insert(name.to_owned(), text);
    files
}

/// Returns the details of an entry.
fn details<'a>(ledger: &'a mut Value, action: &str) -> &'a mut Value {
    let entries = ledger["entries"].as_array_mut().unwrap();
    let mut entries = entries.iter_mut();
    let entry = entries.find(|entry| entry["action"] == action);
    &mut entry.unwrap()["details"]
}

#[test]
fn the_findings_about_unchanged_evidence_name_what_they_rest_on() {
    let evidence = Evidence::new();
    let report = judged(&evidence, &evidence.files).unwrap();
    for (check, detail) in [
        ("archive", "10 files, each once and with a name of a bundle"),
        ("ledger", "12 entries, each follows from the one before"),
        (
            "organization",
            &format!("the record was created by {}", support::ORGANIZATION),
        ),
        ("history", "the document was vaulted once and released once"),
        (
            "document",
            &format!(
                "the authoritative copy has the recorded SHA-256 {}",
                sha256(&evidence.files["authoritative.pdf"])
            ),
        ),
        (
            "subject",
            &format!("ledger and certificate are about {}", support::ENVELOPE),
        ),
        (
            "seal",
            "no seal is recorded, as for a document that its author certified against any change",
        ),
        (
            "executed document",
            "the authoritative copy begins with the executed document of 4 bytes",
        ),
        (
            "re-evaluation",
            "acme-rules 1.0.0 gives the same certificate again",
        ),
        (
            "components",
            "rules.compliance: acme-rules 1.0.0 (the organization's own); rules.lifecycle: acme-moves 1.0.0 (the \
             organization's own); rules.documents: holdfast-documents 1.0.0 (default of another release)",
        ),
        (
            "component ledger",
            "it holds the activations of 2 components, and the log holds it",
        ),
    ] {
        assert_eq!(finding(&report, check), (Some(true), detail.to_owned()));
    }

    let (_, log) = finding(&report, "log");
    assert!(log.starts_with("every entry is among the "), "{log}");
    assert!(!log.contains("by its own word"), "{log}");

    let unanchored = evidence.verify(&evidence.files, &TrustedLogs::default());
    let (_, log) = finding(&unanchored.unwrap(), "log");
    let advice = "(by its own word: give --key, --head or --trust to anchor it)";
    assert!(log.ends_with(advice), "{log}");
}

/// Each change has a sentence in the check that it is about.
#[test]
fn the_finding_about_a_change_says_what_was_changed() {
    let evidence = Evidence::new();
    let other = "0".repeat(64);
    let document = sha256(&evidence.files["authoritative.pdf"]);
    let replaced = |name: &str, bytes: &[u8]| {
        let mut files = evidence.files.clone();
        files.insert(name.into(), bytes.into());
        files
    };

    let proofs = |change: fn(&mut Vec<Value>)| {
        edited(&evidence, LEDGER, |ledger| {
            change(ledger["log"]["inclusion"].as_array_mut().unwrap());
        })
    };
    for (files, check, why) in [
        (
            edited(&evidence, CERTIFICATE, |certificate| {
                certificate["document_integrity"]["document_hash"] = other.as_str().into();
            }),
            "certified hash",
            format!(
                "the authoritative copy was changed: its SHA-256 is {document}, recorded is {other}"
            ),
        ),
        (
            edited(&evidence, CERTIFICATE, |certificate| {
                certificate["provenance"]["components"][0]["name"] = "others".into();
            }),
            "components",
            "the certificate names rules.compliance others, which the ledger does not".into(),
        ),
        (
            edited(&evidence, LEDGER, |ledger| {
                details(ledger, "compliance.evaluated")["component"]["sha256"] =
                    other.as_str().into();
            }),
            "components",
            "the rules that evaluated the record are not among the components".into(),
        ),
        (
            edited(&evidence, LEDGER, |ledger| {
                details(ledger, "vault.stored")["components"] = "none".into();
            }),
            "components",
            "the ledger's components cannot be read".into(),
        ),
        (
            edited(&evidence, LEDGER, |ledger| {
                details(ledger, "vault.stored")["copy_hash"] = Value::Null;
            }),
            "copy",
            "no hash of the non-authoritative copy is recorded".into(),
        ),
        (
            edited(&evidence, COMPONENTS, |components| {
                components["entries"].as_array_mut().unwrap().remove(0);
            }),
            "component ledger",
            "it does not hold the upload of acme-rules 1.0.0".into(),
        ),
        (
            replaced("evidence-copy.pdf", b"other"),
            "evidence copy",
            "the bundle has both authoritative.pdf and evidence-copy.pdf".into(),
        ),
        (
            replaced("authoritative.pdf", b"other"),
            "executed document",
            "the authoritative copy does not begin with the executed document".into(),
        ),
        (
            replaced(LEDGER, b"{"),
            "ledger",
            "the ledger cannot be read: ".into(),
        ),
        (
            proofs(|proofs| proofs.truncate(2)),
            "log",
            "there is no proof for entry 3".into(),
        ),
        (
            proofs(|proofs| {
                let mut last = proofs.last().unwrap().clone();
                last["sequence"] = json!(last["sequence"].as_i64().unwrap() + 1);
                proofs.push(last);
            }),
            "log",
            "the log holds entries that the ledger lacks".into(),
        ),
        (
            edited(&evidence, LEDGER, |ledger| {
                ledger["log"]["certified"]["proof"] = json!([]);
            }),
            "certified head",
            format!(
                "the log of {} entries does not begin with the {} that the certificate saw",
                evidence.size, evidence.certified
            ),
        ),
        (
            edited(&evidence, LEDGER, |ledger| {
                let signers = [9, 10, 11, 12].map(|seed| TestLog::new(seed).signer);
                let changed = |one: usize| {
                    KeySuccession::sign(&signers[one], &signers[one + 1], support::ORIGIN, 1)
                };
                ledger["log"]["successions"] = json!([changed(0), changed(2)]);
            }),
            "log",
            "the successions of the log's keys do not follow from each other".into(),
        ),
    ] {
        let report = judged(&evidence, &files).unwrap();
        let (ok, detail) = finding(&report, check);
        assert_eq!(ok, Some(false), "{check}: {detail}");
        assert!(detail.starts_with(&why), "{check}: {detail}");
    }
}

#[test]
fn a_paper_original_is_one_by_the_form_of_the_release() {
    let evidence = Evidence::new();
    let to_paper = |files: &Files| {
        let mut files = files.clone();
        let pdf = files.remove("authoritative.pdf").unwrap();
        files.insert("evidence-copy.pdf".into(), pdf);
        judged(&evidence, &files).unwrap()
    };
    let report = to_paper(&evidence.files);

    let none = (Some(false), "the ledger has no conversion to paper".into());
    assert_eq!(finding(&report, "evidence copy"), none);

    let converted = edited(&evidence, LEDGER, |ledger| {
        details(ledger, "vault.released")["form"]["medium"] = "paper".into();
    });
    let report = to_paper(&converted);
    let holds = (
        Some(true),
        "a paper original has replaced the record".into(),
    );
    assert_eq!(finding(&report, "evidence copy"), holds);

    let history = "the document was vaulted once, and a paper original has replaced it";
    assert_eq!(finding(&report, "history"), (Some(true), history.into()));
}

#[test]
fn what_a_bundle_does_not_show_is_named() {
    let evidence = Evidence::new();
    let mut files = evidence.files.clone();
    files.remove("component-ledger.json");
    let exported = "not in this bundle: who activated the components is not shown";
    let report = judged(&evidence, &files).unwrap();
    assert_eq!(
        finding(&report, "component ledger"),
        (None, exported.into())
    );

    let mut trusted = evidence.trusted();
    let rules = evidence.files.keys().find_map(|name| {
        let digest = name.strip_prefix("components/")?.strip_suffix(".wasm")?;
        (sha256(b"rules of the organization") == digest).then(|| digest.to_owned())
    });
    trusted.rules(rules.unwrap());
    let report = evidence.verify(&of_vault_out(&evidence), &trusted).unwrap();

    let of_vault_out =
        "not among the files of a vault-out: who activated the components is not shown";
    assert_eq!(
        finding(&report, "component ledger"),
        (None, of_vault_out.into())
    );
}

#[test]
fn components_without_an_activation_need_no_entry() {
    let evidence = Evidence::new();
    let mut files = edited(&evidence, LEDGER, |ledger| {
        let named = &mut details(ledger, "vault.stored")["components"];
        for one in named.as_array_mut().unwrap() {
            one["activation_id"] = Value::Null;
        }
    });

    let without = edited(&evidence, COMPONENTS, |components| {
        components["entries"] = json!([]);
    });
    files.insert(COMPONENTS.into(), without[COMPONENTS].clone());
    let report = judged(&evidence, &files).unwrap();
    let every = (Some(true), "every component is a default".into());
    assert_eq!(finding(&report, "component ledger"), every);

    files.retain(|name, _| !name.contains("component") && !name.contains("disclosures/"));
    files.remove("EVIDENCE-COPY.txt");
    let report = judged(&evidence, &files).unwrap();
    let none = "not among the files of a vault-out; the ledger names no activated component";
    assert_eq!(finding(&report, "component ledger"), (None, none.into()));
}
