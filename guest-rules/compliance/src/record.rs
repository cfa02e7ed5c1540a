//! Helpers over the facts of a record, independent of the statute.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::types::{EnvelopeFacts, EnvelopeStatus};

/// Attribute with the signers as a JSON list of [`RecordSigner`]. Hosts before it join signers and
/// signatures by e-mail address.
const SIGNERS: &str = "signers";
/// Attribute: `esign`, or `paper` for a document that was uploaded already signed.
const KIND: &str = "envelope_kind";
/// Attribute with the time at which the record was released.
const RELEASED_AT: &str = "released_at";
/// Attribute with the state of the mark on the authoritative copy: `none` if it has none.
const MARK: &str = "authoritative_mark";

/// Person who signs, approves or witnesses, by the host's record. Two of them may share an e-mail
/// address.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RecordSigner {
    pub signer_id: Option<String>,
    /// Place in the list of signers, from 1.
    pub position: Option<u64>,
    pub name: String,
    pub email: String,
    pub role: String,
    /// `signer`, `approver` or `witness`.
    pub kind: Option<String>,
    /// Time at which a signature or initials were executed (RFC 3339).
    pub signed_at: Option<String>,
    /// Time at which the form was completed.
    pub completed_at: Option<String>,
    /// Notes on who acted, for example that another person acted in this one's place.
    pub notes: Vec<String>,
}

impl RecordSigner {
    /// Whether this person approves, and does not sign.
    pub fn is_approver(&self) -> bool {
        self.kind.as_deref() == Some("approver")
    }
}

/// Returns the signers in signing order.
pub(crate) fn signers(facts: &EnvelopeFacts) -> Vec<RecordSigner> {
    if let Some(signers) = json(facts, SIGNERS) {
        return signers;
    }

    let joined = facts.submitters.iter().map(|submitter| {
        let mut signed = facts.signed_documents.iter();
        let signed = signed.find(|signed| same_email(&signed.signer_email, &submitter.email));
        let signed_at = signed.map(|signed| signed.signed_at.clone());
        RecordSigner {
            name: submitter.name.clone(),
            email: submitter.email.clone(),
            role: submitter.role.clone(),
            completed_at: signed_at.clone(),
            signed_at,
            ..RecordSigner::default()
        }
    });

    joined.collect()
}

/// Returns whether every required signer has signed, with a sentence that gives the reason.
///
/// A signer or witness signs by an executed signature or initials; an approver approves. A document
/// that was uploaded already signed has no signers here.
pub(crate) fn signatures_executed(facts: &EnvelopeFacts) -> (bool, String) {
    let signers = signers(facts);
    if signers.is_empty() {
        // An upload has no signers here and passes, so its sentence has to name the source of the statement.
        let sentence = if is_paper(facts) {
            "No signers are recorded. The uploader states that the document was signed elsewhere; this service did not check it."
        } else {
            "No signers are recorded."
        };
        return (true, sentence.into());
    }

    let (approvers, signing): (Vec<_>, Vec<_>) =
        signers.iter().partition(|signer| signer.is_approver());
    let missing = problems(&signing, &approvers);
    if !missing.is_empty() {
        return (false, missing.join(" "));
    }

    // Approvers alone make no signed contract.
    if signing.is_empty() {
        return (
            false,
            "Nobody was asked to sign; approvals are no signatures.".into(),
        );
    }

    let count = signing.len().to_string();
    let mut sentence = [
        "Every required signer has signed (",
        &count,
        " of ",
        &count,
        ").",
    ]
    .concat();
    if !approvers.is_empty() {
        let count = approvers.len().to_string();
        sentence += &[" Approvals without a signature: ", &count, "."].concat();
    }

    (true, sentence)
}

/// Returns a sentence for each kind of open act.
fn problems(signing: &[&RecordSigner], approvers: &[&RecordSigner]) -> Vec<String> {
    let unsigned = signing.iter().filter(|signer| signer.signed_at.is_none());
    let (completed, open): (Vec<_>, Vec<_>) =
        unsigned.partition(|signer| signer.completed_at.is_some());
    let waiting = approvers
        .iter()
        .filter(|signer| signer.completed_at.is_none());

    let mut sentences = Vec::new();
    if !open.is_empty() {
        sentences.push(["Not yet signed by: ", &listed(&open), "."].concat());
    }

    // Such a person is not late: no field of theirs asks for a signature.
    for signer in completed {
        sentences.push(
            [
                &called(signer),
                " completed the form; no signature was asked of them.",
            ]
            .concat(),
        );
    }

    let waiting: Vec<_> = waiting.collect();
    if !waiting.is_empty() {
        sentences.push(["Not yet approved by: ", &listed(&waiting), "."].concat());
    }

    sentences
}

fn listed(signers: &[&&RecordSigner]) -> String {
    let names: Vec<String> = signers.iter().map(|signer| called(signer)).collect();
    names.join(", ")
}

/// Names a signer so that two with one e-mail address are distinct.
fn called(signer: &RecordSigner) -> String {
    match signer.signer_id {
        // Hosts without ids tell signers apart by their address alone.
        None => signer.email.clone(),
        Some(_) => [&signer.name, " (", &signer.role, ", ", &signer.email, ")"].concat(),
    }
}

/// Whether the document was uploaded already signed.
pub(crate) fn is_paper(facts: &EnvelopeFacts) -> bool {
    match attribute(facts, KIND) {
        Some(kind) => kind == "paper",
        // Hosts before this attribute record no signers for such documents only.
        None => facts.submitters.is_empty(),
    }
}

/// Returns when the record left the vault, for a released one.
pub(crate) fn released_at(facts: &EnvelopeFacts) -> Option<&str> {
    let is_released = facts.status == EnvelopeStatus::VaultedOut;
    let at = attribute(facts, RELEASED_AT).unwrap_or("a time that is in the custody ledger");
    is_released.then_some(at)
}

/// Whether the authoritative copy has no mark, because its author certified it against any change.
pub(crate) fn is_unmarked(facts: &EnvelopeFacts) -> bool {
    attribute(facts, MARK) == Some("none")
}

/// Returns the attribute with this name.
pub(crate) fn attribute<'a>(facts: &'a EnvelopeFacts, name: &str) -> Option<&'a str> {
    let mut attributes = facts.attributes.iter();
    let found = attributes.find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str())
}

/// Returns an attribute with a JSON value; none if it cannot be read.
pub(crate) fn json<T: DeserializeOwned>(facts: &EnvelopeFacts, name: &str) -> Option<T> {
    serde_json::from_str(attribute(facts, name)?).ok()
}

/// Returns whether a storage path is set.
pub(crate) fn is_set(path: Option<&str>) -> bool {
    path.is_some_and(|path| !path.is_empty())
}

/// Returns whether `text` is a SHA-256 digest in hexadecimal.
pub(crate) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Compares two mail addresses without regard to case, as mail systems do.
pub(crate) fn same_email(left: &str, right: &str) -> bool {
    let (left, right) = (left.trim(), right.trim());
    if left.is_ascii() && right.is_ascii() {
        left.eq_ignore_ascii_case(right)
    } else {
        left.to_lowercase() == right.to_lowercase()
    }
}

/// Returns the status as the API spells it.
pub fn status_text(status: EnvelopeStatus) -> &'static str {
    match status {
        EnvelopeStatus::Pending => "pending",
        EnvelopeStatus::Uploaded => "uploaded",
        EnvelopeStatus::Preparing => "preparing",
        EnvelopeStatus::Sent => "sent",
        EnvelopeStatus::Viewed => "viewed",
        EnvelopeStatus::Completed => "completed",
        EnvelopeStatus::Vaulted => "vaulted",
        EnvelopeStatus::VaultedOut => "vaulted_out",
        EnvelopeStatus::Declined => "declined",
        EnvelopeStatus::Voided => "voided",
        EnvelopeStatus::Expired => "expired",
    }
}
