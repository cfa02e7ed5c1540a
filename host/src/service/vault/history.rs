//! The history of a document in plain words, made from its custody ledger.

use crate::domain::clock::Timestamp;
use crate::domain::event::EventType;
use crate::domain::ledger::LedgerEntry;

/// Something that happened to a document.
pub struct HistoryLine {
    pub at: Timestamp,
    pub text: String,
}

/// Returns what the parties of a document want to know. Entries that concern auditors only are left
/// out.
pub fn history(entries: &[LedgerEntry]) -> Vec<HistoryLine> {
    let line = |entry: &LedgerEntry| {
        let text = in_words(entry)?;
        let at = entry.at;
        Some(HistoryLine { at, text })
    };
    entries.iter().filter_map(line).collect()
}

/// Returns what happened, or none for an entry that concerns auditors only.
pub fn in_words(entry: &LedgerEntry) -> Option<String> {
    let details = &entry.details;
    let signer = details["signer"]["name"].as_str().unwrap_or("A signer");
    let text = match EventType::parse(&entry.action)? {
        EventType::EnvelopeCreated => "The document was prepared",
        EventType::EnvelopeSent => "It was sent to the signers",
        EventType::SignerViewed => return Some(format!("{signer} opened it")),
        EventType::SignerCompleted => return Some(format!("{signer} signed")),
        EventType::EnvelopeCompleted => "Everybody has signed",
        EventType::EnvelopeDeclined => "A signer declined",
        EventType::EnvelopeVoided => "The sender withdrew it",
        EventType::EnvelopeExpired => "The time for signing ended",
        EventType::VaultStored => "The original was put into the vault",
        EventType::VaultReleased => {
            let recipient = details["form"]["recipient_organization"].as_str();
            let recipient = recipient.unwrap_or("another custodian");
            return Some(format!("The original was handed over to {recipient}"));
        }
        EventType::VaultTamperDetected => "The stored original was found changed",
        _ => return None,
    };
    Some(text.to_owned())
}

/// Returns who caused an entry.
pub fn actor_in_words(actor: &str) -> String {
    match actor.split_once(':') {
        Some(("key", id)) => format!("API key {id}"),
        Some(("payer", email)) => format!("{email} (payer)"),
        Some((_, person)) => person.to_owned(),
        None if actor == "system" => "holdfast".to_owned(),
        None => actor.to_owned(),
    }
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
        }
    }

    #[test]
    fn the_history_names_people_and_leaves_out_what_auditors_need() {
        let lines = history(&[
            entry("signer.completed", json!({ "signer": { "name": "Ann" } })),
            entry("download_link.issued", json!({})),
            entry(
                "vault.released",
                json!({ "form": { "recipient_organization": "Second Bank" } }),
            ),
        ]);
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(
            texts,
            ["Ann signed", "The original was handed over to Second Bank"]
        );
    }
}
