//! Checks the updates behind the authoritative copy that keep its seal provable: the ledger has their digests, and each time
//! stamp covers the document with all that was added before it.

use bytes::Bytes;
use serde_json::Value;

use super::formats::SEAL_UPDATES;
use super::log::TrustedLogs;
use super::report::{OpenQuestion, ReportFinding};
use super::{Bundle, seal};
use crate::stamp::TimeStamp;
use holdfast_domain::hash::sha256;
use holdfast_domain::ledger::{LedgerEntry, SEAL_EXTENDED};

const CHECK: &str = "long-term seal";

/// Compares the updates with the ledger, and verifies their time stamps. `None` for evidence without any.
pub(super) fn finding(
    bundle: &Bundle,
    entries: &[LedgerEntry],
    authoritative: &Bytes,
    trusted: &TrustedLogs,
) -> Option<ReportFinding> {
    let extended = entries.iter();
    let extended = extended.filter(|entry| entry.action == SEAL_EXTENDED);
    let extended: Vec<&Value> = extended.map(|entry| &entry.details).collect();

    Some(match (extended.last(), bundle.optional(SEAL_UPDATES)) {
        (None, None) => return None,
        (None, Some(_)) => {
            let why = format!("the ledger has no entry about the {SEAL_UPDATES} of the bundle");
            ReportFinding::fails(CHECK, why)
        }
        (Some(_), None) if bundle.is_of_export() => {
            let why = format!("the bundle lacks {SEAL_UPDATES}, which the ledger names");
            ReportFinding::fails(CHECK, why)
        }
        (Some(_), None) => {
            let why =
                "not among the files of a vault-out: what keeps the seal provable is not shown";
            ReportFinding::unchecked(CHECK, OpenQuestion::Nothing, why)
        }
        (Some(newest), Some(updates)) => {
            match checked(&extended, updates, authoritative, trusted) {
                Ok(stamps) => ReportFinding::holds(CHECK, in_words(newest, &stamps)),
                Err(why) => ReportFinding::fails(CHECK, why),
            }
        }
    })
}

/// Checks each update against its entry. Returns the time stamps over the document, oldest first.
fn checked(
    extended: &[&Value],
    updates: &[u8],
    authoritative: &[u8],
    trusted: &TrustedLogs,
) -> Result<Vec<TimeStamp>, String> {
    let own = seal::verify(authoritative)?.stamp;
    let mut good_until = own.and_then(Result::ok).map(|stamp| stamp.ends_at);
    let mut stamps = Vec::new();
    let mut named = 0;
    for entry in extended {
        let size = entry["updates_size"].as_u64();
        named = size
            .and_then(|size| usize::try_from(size).ok())
            .unwrap_or_default();
        let update = updates.get(..named);
        let update =
            update.filter(|update| entry["updates_hash"].as_str() == Some(&sha256(update)));
        let update =
            update.ok_or_else(|| format!("{SEAL_UPDATES} is not the one in the ledger"))?;

        let recorded = &entry["time_stamp"];
        if recorded.is_null() {
            continue;
        }
        let stamp = seal::verify_stamp(&[authoritative, update].concat())?.stamp;
        if recorded["at"].as_str() != Some(&stamp.at.to_string()) {
            return Err("a time stamp over the document is not the one in the ledger".into());
        }
        // A time stamp vouches for the one before it only if that one was still good.
        if good_until.is_some_and(|until| until < stamp.at) {
            let at = stamp.at;
            return Err(format!(
                "the time stamp before that of {at} had ended already"
            ));
        }
        if let Some(roots) = &trusted.timestamps {
            stamp
                .leads_to(roots)
                .map_err(|why| format!("a time stamp over the document: {why}"))?;
        }

        good_until = Some(stamp.ends_at);
        stamps.push(stamp);
    }

    if named != updates.len() {
        return Err(format!(
            "{SEAL_UPDATES} has bytes that the ledger does not name"
        ));
    }
    Ok(stamps)
}

/// Describes what was verified. Statements about revocation are for readers of PDF signatures.
fn in_words(newest: &Value, stamps: &[TimeStamp]) -> String {
    let level = newest["level"].as_str().unwrap_or_default();
    match stamps.last() {
        None => format!("level {level} as recorded, without time stamps over the document"),
        Some(last) => format!(
            "level {level} as recorded; {} saw the document and its seal at {}, with a certificate until {}; time stamps over \
             the document: {}",
            last.authority,
            last.at,
            last.ends_at,
            stamps.len()
        ),
    }
}
