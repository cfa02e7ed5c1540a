//! Sentences of the record about each person of an envelope: their acts, and notes that a reader of the
//! evidence has to know.

use serde_json::Value;

use holdfast_adapters::texts::Texts;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, OPEN_LINK, Signer, SignerKind, same_address};
use holdfast_domain::event::EventType;
use holdfast_domain::ledger::LedgerEntry;
use holdfast_platform::signers::witnessed;

/// Ledger action: the signing provider reported that another person took a signer's place.
const DELEGATED: &str = "signer.delegated";

/// Ledger action: the page of a signer opened the form of the witness.
pub const DEVICE_PASSED: &str = "signer.device_passed";

/// Note about a person with an address or a signature that establishes less than usual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PersonNote {
    /// Other signers of the envelope have the same e-mail address.
    SharesAddress(Vec<String>),
    /// The sender has the same e-mail address.
    SendersAddress,
    /// The earlier signer named this person to act in their place.
    NamedBy(String),
    /// The sender put this person in the place of an earlier signer.
    Replaces(String),
    /// The person took the place of another member of their group.
    TookPlace { group: String, previous: String },
    /// The person witnesses the signature of this signer.
    WitnessOf(String),
    /// The page of this signer opened the form of the witness.
    OnDeviceOf(String),
    /// The witness stated this name and this postal address. They are not checked.
    StatedAddress { name: String, address: String },
    /// A mail could not be delivered, for this reason.
    Undelivered(String),
    /// A bounce reports that a mail could not be delivered, for this reason. Bounces are not signed.
    Returned(String),
    /// Opened an open link and entered the address, which was not verified.
    OpenedLink,
    /// Opened an open link and entered the address, to which the signing link was mailed.
    OpenedLinkByMail,
}

impl PersonNote {
    /// Returns the note as part of a sentence.
    pub fn in_words(&self, texts: Texts) -> String {
        match self {
            Self::SharesAddress(names) => {
                let names = names.join(&texts.text("list-separator"));
                texts.with("note-shares-address", [("names", names)])
            }
            Self::SendersAddress => texts.text("note-sender"),
            Self::NamedBy(previous) => {
                texts.with("note-delegated", [("previous", previous.as_str())])
            }
            Self::Replaces(previous) => {
                texts.with("note-replaced", [("previous", previous.as_str())])
            }
            Self::TookPlace { group, previous } => {
                let named = [("group", group.as_str()), ("previous", previous)];
                texts.with("note-substitute", named)
            }
            Self::WitnessOf(signer) => texts.with("note-witness", [("signer", signer.as_str())]),
            Self::OnDeviceOf(signer) => {
                texts.with("note-same-device", [("signer", signer.as_str())])
            }
            Self::StatedAddress { name, address } => {
                let stated = [("name", name.as_str()), ("address", address)];
                texts.with("note-witness-address", stated)
            }
            Self::Undelivered(reason) => {
                texts.with("note-undelivered", [("reason", reason.as_str())])
            }
            Self::Returned(reason) => texts.with("note-returned", [("reason", reason.as_str())]),
            Self::OpenedLink => texts.text("note-open-link"),
            Self::OpenedLinkByMail => texts.text("note-open-link-mailed"),
        }
    }
}

/// Returns the notes about a signer.
pub fn notes(
    envelope: &Envelope,
    signers: &[Signer],
    entries: &[LedgerEntry],
    signer: &Signer,
) -> Vec<PersonNote> {
    let mut notes = Vec::new();
    // An address alone does not tell which of these people acted.
    let others: Vec<String> = signers
        .iter()
        .filter(|other| other.id != signer.id && same_address(&other.email, &signer.email))
        .map(|other| format!("{} ({})", other.name, other.role))
        .collect();
    if !others.is_empty() {
        notes.push(PersonNote::SharesAddress(others));
    }

    // The sender could read the mails of this signer, and a reader of the evidence has to know.
    if is_sender(envelope, entries, signer) {
        notes.push(PersonNote::SendersAddress);
    }

    notes.extend(opened_link(entries, signer));
    if let Some(witnessed) = witnessed(signers, signer) {
        let words = format!("{} ({})", witnessed.name, witnessed.role);
        notes.push(PersonNote::WitnessOf(words));
    }

    for entry in entries.iter().filter(|entry| is_about(entry, signer)) {
        let previous = entry.details["previous"]["name"].as_str();
        // A delegation at a provider names the earlier person by address.
        let previous = previous.or_else(|| entry.details["from"].as_str());
        let previous = previous.unwrap_or_default().to_owned();
        match entry.action.as_str() {
            action if action == EventType::SignerChanged.as_str() => {
                // A correction of the same person's name or address replaces no person.
                let before = &entry.details["previous"]["signer_id"];
                if before == signer.id.as_str() {
                    continue;
                }

                // Signers name another person, and members of a group take a place, without help. Every
                // other change comes from the sender.
                let group = entry.details["group"].as_str().map(ToOwned::to_owned);
                notes.push(if let Some(group) = group {
                    PersonNote::TookPlace { group, previous }
                } else if entry.actor.starts_with("signer:") {
                    PersonNote::NamedBy(previous)
                } else {
                    PersonNote::Replaces(previous)
                });
            }
            action if action == EventType::SignerCompleted.as_str() => {
                let stated = &entry.details["witness"];
                let (name, address) = (stated["name"].as_str(), stated["address"].as_str());
                if let Some((name, address)) = name.zip(address) {
                    let (name, address) = (name.to_owned(), address.to_owned());
                    notes.push(PersonNote::StatedAddress { name, address });
                }
            }
            DEVICE_PASSED => {
                let of = entry.details["device_of"]["name"].as_str();
                let note = PersonNote::OnDeviceOf(of.unwrap_or_default().to_owned());
                // The page may have opened the form several times.
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
            DELEGATED => notes.push(PersonNote::NamedBy(previous)),
            action if action == EventType::SignerDeliveryFailed.as_str() => {
                let reason = entry.details["reason"].as_str().unwrap_or_default();
                let note = match entry.details["bounce"] {
                    Value::Null => PersonNote::Undelivered,
                    _ => PersonNote::Returned,
                };
                notes.push(note(reason.to_owned()));
            }
            _ => {}
        }
    }

    notes
}

/// Returns how a visitor of an open link got the document; none for other people.
fn opened_link(entries: &[LedgerEntry], signer: &Signer) -> Option<PersonNote> {
    let created = EventType::EnvelopeCreated.as_str();
    let created = entries.iter().find(|entry| entry.action == created)?;
    let link = &created.details[OPEN_LINK];
    // A person who takes the place of the visitor was named by the visitor or the sender.
    if link["signer_id"] != signer.id.as_str() {
        return None;
    }

    Some(if link["reached_by"] == "email" {
        PersonNote::OpenedLinkByMail
    } else {
        PersonNote::OpenedLink
    })
}

/// Whether a signer has the address of the person who created or sent the envelope.
fn is_sender(envelope: &Envelope, entries: &[LedgerEntry], signer: &Signer) -> bool {
    let sent = entries
        .iter()
        .filter(|entry| entry.action == EventType::EnvelopeSent.as_str())
        .filter_map(|entry| entry.actor.strip_prefix("user:"));
    envelope
        .creator_email()
        .into_iter()
        .chain(sent)
        .any(|sender| same_address(sender, &signer.email))
}

/// Whether a ledger entry is about this signer. Entries of earlier releases name no id: within an
/// envelope a role belongs to one signer, and a person who took their place has another address.
pub fn is_about(entry: &LedgerEntry, signer: &Signer) -> bool {
    let about = &entry.details["signer"];
    match about["signer_id"].as_str() {
        Some(id) => id == signer.id.as_str(),
        None => {
            let email = about["email"].as_str();
            about["role"] == signer.role.as_str()
                && email.is_some_and(|email| same_address(email, &signer.email))
        }
    }
}

/// Returns what a signer did, in words: signed, approved, or completed a form that asked for no
/// signature.
pub fn act_in_words(
    texts: Texts,
    signer: &Signer,
    moment: impl FnOnce(Timestamp) -> String,
) -> String {
    let Some(at) = signer.completed_at else {
        return texts.text("vault-unsigned");
    };

    let key = match signer.signed_at() {
        Some(_) => "vault-signed-at",
        None if signer.kind == SignerKind::Approver => "person-approved-at",
        None => "person-completed-at",
    };
    texts.with(key, [("moment", moment(at))])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use holdfast_domain::envelope::{EnvelopeKind, SignatureExecution, SignerStatus};
    use holdfast_domain::id::{CustomerId, OrgId};

    fn signer(name: &str, email: &str) -> Signer {
        let role = format!("Role of {name}");
        Signer {
            status: SignerStatus::Completed,
            completed_at: Some(Timestamp::from_millis(0)),
            execution: Some(SignatureExecution::Executed),
            ..Signer::new(0, name.into(), email.into(), role)
        }
    }

    fn envelope(created_by: &str) -> Envelope {
        Envelope::new(
            OrgId::new(),
            CustomerId::new(),
            "Contract".into(),
            EnvelopeKind::Esign,
            created_by.into(),
            Timestamp::from_millis(0),
        )
    }

    fn entry(actor: &str, action: &str, details: Value) -> LedgerEntry {
        LedgerEntry {
            sequence: 1,
            at: Timestamp::from_millis(0),
            actor: actor.into(),
            action: action.into(),
            details,
            previous_hash: String::new(),
            hash: String::new(),
            withheld: false,
        }
    }

    #[test]
    fn people_with_one_address_and_the_senders_address_are_named() {
        let people = [
            signer("Ann", "home@example.com"),
            signer("Bob", "Home@Example.com"),
            signer("Cy", "cy@example.com"),
        ];
        let of = |person: &Signer| notes(&envelope("cy@example.com"), &people, &[], person);
        assert_eq!(
            of(&people[0]),
            [PersonNote::SharesAddress(vec!["Bob (Role of Bob)".into()])]
        );
        assert_eq!(of(&people[2]), [PersonNote::SendersAddress]);
    }

    #[test]
    fn a_delegation_and_a_failed_invitation_are_noted_for_that_person_alone() {
        let (ann, bob) = (
            signer("Ann", "home@example.com"),
            signer("Bob", "home@example.com"),
        );
        let people = [ann.clone(), bob.clone()];
        let about = |person: &Signer| json!({ "signer_id": person.id, "role": person.role, "email": person.email });
        let entries = [
            entry(
                "signer:cy@example.com",
                "signer.changed",
                json!({ "signer": about(&ann), "previous": { "signer_id": "sgn_0", "name": "Cy" } }),
            ),
            entry(
                "system",
                "signer.delivery_failed",
                json!({ "signer": about(&bob), "reason": "550 no such user" }),
            ),
            entry(
                "system",
                "signer.delivery_failed",
                json!({ "signer": about(&bob), "reason": "5.1.1", "bounce": "6a09" }),
            ),
        ];

        let of = |person: &Signer| notes(&envelope("key:key_1"), &people, &entries, person);
        assert_eq!(of(&ann)[1..], [PersonNote::NamedBy("Cy".into())]);
        assert_eq!(
            of(&bob)[1..],
            [
                PersonNote::Undelivered("550 no such user".into()),
                PersonNote::Returned("5.1.1".into())
            ]
        );
    }

    #[test]
    fn the_visitor_of_an_open_link_is_noted_with_the_way_to_the_document() {
        let people = [
            signer("Ann", "ann@example.com"),
            signer("Bob", "bob@example.com"),
        ];
        for (way, note) in [
            ("browser", PersonNote::OpenedLink),
            ("email", PersonNote::OpenedLinkByMail),
        ] {
            let link = json!({ "signer_id": people[0].id, "reached_by": way });
            let entries = [entry(
                "open_link:opl_1",
                "envelope.created",
                json!({ "open_link": link }),
            )];
            let of = |person: &Signer| notes(&envelope("key:key_1"), &people, &entries, person);
            assert_eq!(of(&people[0]), [note]);
            assert!(of(&people[1]).is_empty());
        }
    }

    #[test]
    fn each_note_is_written_as_the_fact_that_it_is_about() {
        let name = || "Cy".to_owned();
        for (note, words) in [
            (
                PersonNote::SharesAddress(vec!["Bob (Co-buyer)".into(), "Cy (Witness)".into()]),
                "shares the e-mail address with Bob (Co-buyer), Cy (Witness)",
            ),
            (
                PersonNote::SendersAddress,
                "has the e-mail address of the sender",
            ),
            (
                PersonNote::NamedBy(name()),
                "named by Cy to act in their place",
            ),
            (
                PersonNote::Replaces(name()),
                "takes the place of Cy, by the sender’s change",
            ),
            (
                PersonNote::TookPlace {
                    group: "Managers".into(),
                    previous: name(),
                },
                "takes the place of Cy, as a substitute named by the sender for the group Managers",
            ),
            (
                PersonNote::WitnessOf("Cy (Buyer)".into()),
                "witness of the signature of Cy (Buyer)",
            ),
            (
                PersonNote::OnDeviceOf(name()),
                "the form was opened on the page of Cy, after that signature; who filled it in was not checked",
            ),
            (
                PersonNote::StatedAddress {
                    name: name(),
                    address: "1 Main Street, Dallas".into(),
                },
                "stated as witness the name Cy and the address 1 Main Street, Dallas, which were not checked",
            ),
            (
                PersonNote::Undelivered("550 no such user".into()),
                "a mail could not be delivered: 550 no such user",
            ),
            (
                PersonNote::Returned("5.1.1".into()),
                "a bounce reports that a mail was not delivered: 5.1.1. Nobody signs bounces",
            ),
            (
                PersonNote::OpenedLink,
                "opened an open link; the address was not verified",
            ),
            (
                PersonNote::OpenedLinkByMail,
                "opened an open link; the signing link was mailed to the address entered there",
            ),
        ] {
            assert_eq!(note.in_words(Texts::default()), words);
        }
    }

    #[test]
    fn entries_of_earlier_releases_are_joined_by_role() {
        let (ann, bob) = (
            signer("Ann", "home@example.com"),
            signer("Bob", "home@example.com"),
        );
        let old = entry(
            "signer:home@example.com",
            "signer.completed",
            json!({ "signer": { "email": "home@example.com", "name": "Bob", "role": "Role of Bob" } }),
        );
        assert!(is_about(&old, &bob) && !is_about(&old, &ann));
    }

    #[test]
    fn nobody_is_said_to_have_signed_without_a_signature() {
        let said = |person: &Signer| act_in_words(Texts::default(), person, |_| "today".into());
        let mut person = signer("Ann", "ann@example.com");
        assert_eq!(said(&person), "Signed today");

        person.execution = Some(SignatureExecution::NotAsked);
        assert_eq!(
            said(&person),
            "Completed the form today; no signature was asked"
        );

        person.kind = SignerKind::Approver;
        assert_eq!(said(&person), "Approved today");

        person.completed_at = None;
        assert_eq!(said(&person), "Has not signed");
    }
}
