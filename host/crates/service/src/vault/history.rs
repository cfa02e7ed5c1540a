//! The history of a document in plain words, made from its custody ledger.

use holdfast_adapters::texts::Texts;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::OPEN_LINK;
use holdfast_domain::event::EventType;
use holdfast_domain::ledger::LedgerEntry;

/// Something that happened to a document.
pub struct HistoryLine {
    pub at: Timestamp,
    pub text: String,
}

/// Returns what the parties of a document want to know. Entries that concern auditors only are left
/// out.
pub fn history(texts: Texts, entries: &[LedgerEntry]) -> Vec<HistoryLine> {
    let line = |entry: &LedgerEntry| {
        let text = in_words(texts, entry)?;
        let at = entry.at;
        Some(HistoryLine { at, text })
    };
    entries.iter().filter_map(line).collect()
}

/// Returns what happened, or none for an entry that concerns auditors only.
pub fn in_words(texts: Texts, entry: &LedgerEntry) -> Option<String> {
    // Without its details, an entry does not say which of several words are true.
    if entry.withheld {
        let action = [("action", entry.action.as_str())];
        return Some(texts.with("history-withheld", action));
    }

    let details = &entry.details;
    let name = |member: &str| {
        let name = details[member]["name"].as_str();
        name.map_or_else(|| texts.text("history-signer"), str::to_owned)
    };
    // Actions that are no events, such as an issued link, concern auditors only.
    let key = match EventType::parse(&entry.action)? {
        EventType::EnvelopeCreated => match details[OPEN_LINK]["name"].as_str() {
            Some(link) => return Some(texts.with("history-open-link", [("link", link)])),
            None => "history-created",
        },
        EventType::EnvelopeSent => "history-sent",
        EventType::SignerViewed => {
            return Some(texts.with("history-viewed", [("name", name("signer"))]));
        }
        EventType::SignerCompleted => {
            let address = details["witness"]["address"].as_str();
            if let Some(address) = address.filter(|_| details["signature"] == "executed") {
                let role = details["witness_of"].as_str().unwrap_or_default();
                let signer = name("signer");
                let said = [
                    ("name", signer.as_str()),
                    ("role", role),
                    ("address", address),
                ];
                return Some(texts.with("history-witnessed", said));
            }

            // Entries of earlier releases do not say whether a signature was executed.
            let key = match (details["kind"].as_str(), details["signature"].as_str()) {
                (Some("approver"), _) => "history-approved",
                (_, Some("not_asked")) => "history-form",
                _ => "history-signed",
            };
            return Some(texts.with(key, [("name", name("signer"))]));
        }
        EventType::SignerDeliveryFailed => {
            // A bounce arrives after the mail server took the mail, so it needs other words than a
            // refusal.
            let is_reported = !entry.details["bounce"].is_null();
            let key = if is_reported {
                "history-returned"
            } else {
                "history-undelivered"
            };
            return Some(texts.with(key, [("name", name("signer"))]));
        }
        EventType::SignerChanged => {
            let names = [("name", name("signer")), ("previous", name("previous"))];
            return Some(texts.with("history-changed", names));
        }
        EventType::EnvelopeCompleted => "history-completed",
        EventType::EnvelopeDeclined => "history-declined",
        EventType::EnvelopeVoided if details["corrected_by"].is_string() => {
            let void = details["void_signatures"].as_array();
            let names = void.into_iter().flatten();
            let names: Vec<&str> = names.filter_map(|one| one["name"].as_str()).collect();
            if names.is_empty() {
                "history-corrected"
            } else {
                let names = names.join(&texts.text("list-separator"));
                return Some(texts.with("history-corrected-signed", [("names", names)]));
            }
        }
        EventType::EnvelopeVoided => "history-voided",
        EventType::EnvelopeExpired => "history-expired",
        EventType::VaultStored => "history-stored",
        EventType::VaultReleased => {
            let recipient = details["form"]["recipient_organization"].as_str();
            let other = || texts.text("history-recipient");
            let recipient = recipient.map_or_else(other, str::to_owned);
            let key = if details["form"]["medium"] == "paper" {
                "history-paper"
            } else {
                "history-released"
            };

            return Some(texts.with(key, [("recipient", recipient)]));
        }
        EventType::ControlAccepted | EventType::ControlTransferConfirmed => {
            let party = details["controller"]["name"].as_str().unwrap_or_default();
            return Some(texts.with("history-control", [("party", party)]));
        }
        EventType::VaultTamperDetected => "history-tampered",
        _ => return None,
    };

    Some(texts.text(key))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(action: &str, details: serde_json::Value) -> LedgerEntry {
        LedgerEntry {
            sequence: 1,
            at: Timestamp::from_millis(0),
            actor: "system".into(),
            action: action.into(),
            details,
            previous_hash: String::new(),
            hash: String::new(),
            withheld: false,
        }
    }

    #[test]
    fn the_history_names_people_and_leaves_out_what_auditors_need() {
        let lines = history(
            Texts::default(),
            &[
                entry("signer.completed", json!({ "signer": { "name": "Ann" } })),
                entry("download_link.issued", json!({})),
                entry(
                    "vault.released",
                    json!({ "form": { "recipient_organization": "Second Bank" } }),
                ),
            ],
        );

        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "Ann signed",
                "The authoritative copy was handed over to Second Bank"
            ]
        );
    }

    /// Each action has its words, and the details that make them untrue have others.
    #[test]
    fn each_line_of_the_history_is_of_one_action() {
        let ann = json!({ "signer": { "name": "Ann" }, "previous": { "name": "Bo" } });
        let with = |member: &str, value: &str| {
            let mut details = ann.clone();
            details[member] = value.into();
            details
        };
        let form = |medium: &str| json!({ "form": { "medium": medium, "recipient_organization": "Second Bank" } });

        let witnessed = |signature: &str| {
            let mut details = with("witness_of", "Buyer");
            details["witness"] = json!({ "name": "Ann", "address": "1 Main Street" });
            details["signature"] = signature.into();
            details
        };
        let controller = json!({ "controller": { "name": "First Bank" } });
        let plain = || json!({});
        for (action, details, words) in [
            ("envelope.created", plain(), "The document was prepared"),
            (
                "envelope.created",
                json!({ "open_link": { "name": "Membership" } }),
                "A visitor of the open link Membership made the document",
            ),
            ("envelope.sent", plain(), "It was sent to the signers"),
            ("signer.viewed", ann.clone(), "Ann opened it"),
            ("signer.viewed", plain(), "A signer opened it"),
            (
                "signer.completed",
                with("signature", "executed"),
                "Ann signed",
            ),
            (
                "signer.completed",
                with("signature", "not_asked"),
                "Ann completed the form; no signature was asked",
            ),
            ("signer.completed", with("kind", "approver"), "Ann approved"),
            (
                "signer.completed",
                witnessed("executed"),
                "Ann signed as a witness of the party Buyer and stated the address 1 Main Street",
            ),
            (
                "signer.completed",
                witnessed("not_asked"),
                "Ann completed the form; no signature was asked",
            ),
            (
                "signer.delivery_failed",
                with("reason", "550"),
                "A mail to Ann could not be delivered",
            ),
            (
                "signer.delivery_failed",
                with("bounce", "6a09"),
                "A bounce reported that a mail to Ann was not delivered",
            ),
            (
                "signer.changed",
                ann.clone(),
                "Ann signs in the place of Bo",
            ),
            (
                "envelope.completed",
                plain(),
                "Everybody has completed their part",
            ),
            ("envelope.declined", plain(), "A signer declined"),
            ("envelope.voided", plain(), "The sender withdrew it"),
            (
                "envelope.voided",
                json!({ "corrected_by": "env_1", "void_signatures": [] }),
                "The sender corrected it and sent it again",
            ),
            (
                "envelope.voided",
                json!({ "corrected_by": "env_1", "void_signatures": [{ "name": "Ann" }] }),
                "The sender corrected it and sent it again; the signatures on it no longer count: Ann",
            ),
            ("envelope.expired", plain(), "The time for signing ended"),
            (
                "vault.stored",
                plain(),
                "The authoritative copy was put into the vault",
            ),
            (
                "vault.released",
                form("electronic"),
                "The authoritative copy was handed over to Second Bank",
            ),
            (
                "vault.released",
                form("paper"),
                "A paper original for Second Bank replaced the authoritative copy",
            ),
            (
                "vault.released",
                plain(),
                "The authoritative copy was handed over to another custodian",
            ),
            (
                "control.accepted",
                controller.clone(),
                "First Bank took control",
            ),
            (
                "control.transfer.confirmed",
                controller,
                "First Bank took control",
            ),
            (
                "vault.tamper_detected",
                plain(),
                "A check found that what is stored of this record was changed",
            ),
        ] {
            let said = in_words(Texts::default(), &entry(action, details));
            assert_eq!(said.as_deref(), Some(words), "{action}");
        }

        for unsaid in ["control.designated", "download_link.issued"] {
            assert_eq!(in_words(Texts::default(), &entry(unsaid, plain())), None);
        }
    }

    #[test]
    fn a_withheld_entry_says_so_instead_of_what_happened() {
        for action in ["signer.completed", "download_link.issued"] {
            let withheld = LedgerEntry {
                withheld: true,
                ..entry(action, serde_json::Value::Null)
            };
            let said = in_words(Texts::default(), &withheld);
            let words = format!("The details of this entry were destroyed: {action}");
            assert_eq!(said, Some(words));
        }
    }
}
