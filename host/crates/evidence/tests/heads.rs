//! A head of the log that the verifier kept: older, newer, the same, or of another log.

#![allow(clippy::unwrap_used)]

mod support;

use holdfast_domain::succession::KeySuccession;
use holdfast_evidence::{
    AnchorKind, EvidenceVerdict, ReportFinding, TrustedLogs, VerificationReport,
};
use serde_json::{Value, json};

use support::{Evidence, ORIGIN, TestLog};

fn judged(evidence: &Evidence, head: &str) -> VerificationReport {
    let mut trusted = TrustedLogs::default();
    trusted.head(head).unwrap();
    evidence.verify(&evidence.files, &trusted).unwrap()
}

fn check(report: &VerificationReport) -> &ReportFinding {
    let mut checks = report.checks.iter();
    checks.find(|check| check.check == "head").unwrap()
}

#[track_caller]
fn is_anchored(evidence: &Evidence, head: &str) {
    let report = judged(evidence, head);
    assert_eq!(report.verdict, EvidenceVerdict::Valid, "{report:#?}");
    assert_eq!(report.anchor.as_ref().unwrap().kind, AnchorKind::Head);
    assert_eq!(check(&report).ok, Some(true));
}

#[track_caller]
fn is_not_anchored(evidence: &Evidence, head: &str) -> String {
    let report = judged(evidence, head);
    assert_eq!(report.verdict, EvidenceVerdict::NotAnchored, "{report:#?}");
    assert_eq!((report.anchored, check(&report).ok), (false, None));
    check(&report).detail.clone()
}

#[track_caller]
fn is_refused(evidence: &Evidence, head: &str) {
    let report = judged(evidence, head);
    assert_eq!(report.verdict, EvidenceVerdict::NotValid, "{report:#?}");
}

#[test]
fn the_bundles_own_head_anchors_it() {
    let evidence = Evidence::new();
    is_anchored(&evidence, &evidence.log.answer(evidence.size, None));
    let head = evidence.log.note(evidence.size);
    is_anchored(&evidence, &head);
    let detail = format!(
        "the given head is the bundle's, of {} entries",
        evidence.size
    );
    assert_eq!(check(&judged(&evidence, &head)).detail, detail);
}

#[test]
fn a_newer_head_with_a_proof_from_the_bundles_anchors_it() {
    let evidence = Evidence::new();
    let newest = evidence.log.size;
    assert!(newest > evidence.size);

    let head = evidence.log.answer(newest, Some(evidence.size));
    is_anchored(&evidence, &head);
    let own = evidence.size;
    assert_eq!(
        check(&judged(&evidence, &head)).detail,
        format!("the given head of {newest} entries goes on from the bundle's of {own}")
    );
}

#[test]
fn a_newer_head_without_a_proof_leaves_the_bundle_consistent() {
    let evidence = Evidence::new();
    let (own, newest) = (evidence.size, evidence.log.size);
    for head in [
        evidence.log.answer(newest, None),
        evidence.log.answer(newest, Some(own - 1)),
        evidence.log.note(newest),
    ] {
        let detail = is_not_anchored(&evidence, &head);
        let advice = format!("/api/v2/ledger/head?since={own}");
        assert!(detail.contains(&advice), "{detail}");
    }
}

#[test]
fn the_head_of_the_certificate_anchors_the_bundle() {
    let evidence = Evidence::new();
    assert!(evidence.certified < evidence.size);

    is_anchored(&evidence, &evidence.log.answer(evidence.certified, None));
    let head = evidence.log.note(evidence.certified);
    is_anchored(&evidence, &head);
    let (own, given) = (evidence.size, evidence.certified);
    assert_eq!(
        check(&judged(&evidence, &head)).detail,
        format!("the bundle's head of {own} entries goes on from the given one of {given}")
    );
}

#[test]
fn an_older_head_anchors_where_the_bundles_proofs_lead_to_it() {
    let evidence = Evidence::new();
    let mut anchored = 0;
    for size in 1..evidence.size {
        let report = judged(&evidence, &evidence.log.note(size));
        match check(&report).ok {
            Some(true) => {
                anchored += 1;
                assert_eq!(
                    report.verdict,
                    EvidenceVerdict::Valid,
                    "{size}: {report:#?}"
                );
            }
            open => assert_eq!(
                (open, report.verdict),
                (None, EvidenceVerdict::NotAnchored),
                "{size}: {report:#?}"
            ),
        }
    }

    // All heads since the newest entries, which follow each other.
    assert!(anchored >= 10, "{anchored} of {}", evidence.size);
}

#[test]
fn an_older_head_without_a_proof_says_how_to_get_one() {
    let evidence = Evidence::new();
    let sizes = 1..evidence.size;
    let unproven = sizes.filter(|size| {
        let report = judged(&evidence, &evidence.log.note(*size));
        check(&report).ok.is_none()
    });
    let unproven: Vec<u64> = unproven.collect();
    assert!(!unproven.is_empty());

    for size in unproven {
        let detail = is_not_anchored(&evidence, &evidence.log.note(size));
        let advice = format!(
            "let `ledger monitor` check that the log goes on from your head, then fetch GET \
             /api/v2/ledger/head?since={} and give the answer with --head",
            evidence.size
        );
        assert!(detail.ends_with(&advice), "{detail}");
    }
}

#[test]
fn a_head_of_a_rewritten_log_is_refused() {
    let evidence = Evidence::new();
    // The same key signed heads of a log with other entries.
    let mut rewritten = TestLog::new(7);
    rewritten.others(evidence.log.size);
    is_refused(&evidence, &rewritten.note(evidence.size));
    is_refused(&evidence, &rewritten.note(evidence.certified));
    let newest = evidence.log.size;
    is_refused(&evidence, &rewritten.answer(newest, Some(evidence.size)));
}

#[test]
fn a_head_of_another_log_is_refused() {
    let evidence = Evidence::new();
    let mut other = TestLog::new(8);
    other.others(evidence.log.size);
    for size in [evidence.certified, evidence.size, evidence.log.size] {
        is_refused(&evidence, &other.answer(size, None));
        is_refused(&evidence, &other.note(size));
    }
}

#[test]
fn a_head_that_was_signed_with_a_later_key_anchors_the_bundle() {
    let evidence = Evidence::new();
    let newest = evidence.log.size;
    let later = TestLog::new(9).signer;
    let mut head: Value =
        serde_json::from_str(&evidence.log.answer(newest, Some(evidence.size))).unwrap();
    let succession = KeySuccession::sign(&evidence.log.signer, &later, ORIGIN, evidence.size);
    head["data"]["successions"] = json!([succession]);

    head["data"]["checkpoint"] = json!(later.sign(&evidence.log.head(newest)));
    head["data"]["public_key"] = json!(later.verifier(ORIGIN).to_string());
    is_anchored(&evidence, &head.to_string());
}

#[test]
fn a_known_key_does_not_hide_that_the_head_was_not_compared() {
    let evidence = Evidence::new();
    let mut trusted = evidence.trusted();
    trusted.head(&evidence.log.note(evidence.log.size)).unwrap();
    let report = evidence.verify(&evidence.files, &trusted).unwrap();
    assert_eq!(report.verdict, EvidenceVerdict::NotAnchored, "{report:#?}");
}

#[test]
fn evidence_of_an_earlier_release_names_no_organization_and_stays_valid() {
    let evidence = Evidence::of_earlier_release();
    let report = evidence.verify(&evidence.files, &evidence.trusted());
    assert_eq!(report.unwrap().verdict, EvidenceVerdict::Valid);
}
