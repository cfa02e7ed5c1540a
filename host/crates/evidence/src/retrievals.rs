//! Retrievals of the authoritative copy that the ledger records, and the notice in a bundle.

use super::Bundle;
use super::formats::NOTICE;
use super::report::{ReportFinding, RetrievalCounts};
use holdfast_domain::hash::sha256;
use holdfast_domain::ledger::LedgerEntry;

const CHECK: &str = "notice";

/// Counts the retrievals in a ledger. It has those up to the export of the bundle.
pub(super) fn count(entries: &[LedgerEntry]) -> RetrievalCounts {
    let mut counts = RetrievalCounts::default();
    for entry in entries {
        let file = entry.details["file"].as_str();
        let counted = match (entry.action.as_str(), file) {
            ("authoritative.downloaded", Some("archive")) => &mut counts.archive,
            ("authoritative.downloaded", _) => &mut counts.authoritative,
            ("paper_original.downloaded", _) => &mut counts.paper_original,
            ("bundle.exported", _) => &mut counts.bundle,
            ("authoritative.download_broken_off", _) => &mut counts.broken_off,
            _ => continue,
        };

        *counted += 1;
    }

    counts
}

/// Checks that the notice of a bundle is the one that its export recorded. `None` if neither is there, or
/// the evidence is no export: the files of a vault-out come without a notice.
pub(super) fn notice(bundle: &Bundle, entries: &[LedgerEntry]) -> Option<ReportFinding> {
    if !bundle.is_of_export() {
        return None;
    }

    // The ledger of a bundle ends with its own export, so the last such entry belongs to this notice.
    let exported = super::last(entries, "bundle.exported");
    let recorded = exported.and_then(|entry| entry.details["notice_sha256"].as_str());
    let carried = bundle.optional(NOTICE);

    // A notice that comes or goes could present an evidence copy as the authoritative one.
    let (recorded, carried) = match (recorded, carried) {
        (None, None) => return None,
        (Some(recorded), Some(carried)) => (recorded, carried),
        (Some(_), None) => {
            let why = format!("the bundle lacks {NOTICE}, which its export recorded");
            return Some(ReportFinding::fails(CHECK, why));
        }
        (None, Some(_)) => {
            let why = format!("{NOTICE} is no file of this bundle: its export recorded none");
            return Some(ReportFinding::fails(CHECK, why));
        }
    };

    let actual = sha256(carried);
    Some(if recorded == actual {
        let detail = "the notice that this is an evidence copy is the one of the export";
        ReportFinding::holds(CHECK, detail)
    } else {
        let why =
            format!("the notice was changed: its SHA-256 is {actual}, recorded is {recorded}");
        ReportFinding::fails(CHECK, why)
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::{Value, json};

    use holdfast_domain::clock::Timestamp;

    use super::*;

    fn entry(action: &str, details: Value) -> LedgerEntry {
        LedgerEntry {
            sequence: 1,
            at: Timestamp::from_millis(0),
            actor: "download".into(),
            action: action.into(),
            details,
            previous_hash: String::new(),
            hash: String::new(),
            withheld: false,
        }
    }

    #[test]
    fn retrievals_are_counted_by_what_was_retrieved() {
        let downloaded = |file: &str| entry("authoritative.downloaded", json!({ "file": file }));
        let entries = [
            downloaded("authoritative"),
            downloaded("authoritative"),
            downloaded("archive"),
            entry(
                "authoritative.download_broken_off",
                json!({ "file": "archive" }),
            ),
            entry(
                "paper_original.downloaded",
                json!({ "file": "paper_original" }),
            ),
            entry("bundle.exported", json!({ "as": "evidence_copy" })),
            entry("download_link.issued", json!({ "file": "archive" })),
        ];

        let expected = RetrievalCounts {
            authoritative: 2,
            archive: 1,
            paper_original: 1,
            bundle: 1,
            broken_off: 1,
        };
        assert_eq!(count(&entries), expected);
    }

    fn checked(text: Option<&str>, entries: &[LedgerEntry]) -> Option<(bool, String)> {
        let text = text.map(|text| (NOTICE.to_owned(), Bytes::copy_from_slice(text.as_bytes())));
        let component_ledger = ("component-ledger.json".to_owned(), Bytes::new());
        let files = text.into_iter().chain([component_ledger]);
        let finding = notice(&Bundle::of_files(files), entries)?;
        Some((finding.ok?, finding.detail))
    }

    fn fails(why: &str) -> Option<(bool, String)> {
        Some((false, why.to_owned()))
    }

    #[test]
    fn the_notice_is_the_one_of_the_newest_export() {
        let exported = |text: &str| {
            let details = json!({ "notice_sha256": sha256(text.as_bytes()) });
            entry("bundle.exported", details)
        };
        let entries = [exported("first"), exported("second")];
        let same = "the notice that this is an evidence copy is the one of the export";
        let expected = Some((true, same.to_owned()));
        assert_eq!(checked(Some("second"), &entries), expected);

        let (first, second) = (sha256(b"first"), sha256(b"second"));
        let changed =
            format!("the notice was changed: its SHA-256 is {first}, recorded is {second}");
        assert_eq!(checked(Some("first"), &entries), fails(&changed));

        let missing = "the bundle lacks EVIDENCE-COPY.txt, which its export recorded";
        assert_eq!(checked(None, &entries), fails(missing));
    }

    #[test]
    fn a_bundle_without_a_recorded_notice_has_none() {
        let entries = [entry("bundle.exported", json!({ "as": "evidence_copy" }))];
        assert_eq!(checked(None, &entries), None);
        let unknown = "EVIDENCE-COPY.txt is no file of this bundle: its export recorded none";
        assert_eq!(checked(Some("notice"), &entries), fails(unknown));
        assert_eq!(checked(Some("notice"), &[]), fails(unknown));
    }
}
