//! One function per check, in the order of the statute.
//!
//! Each function returns whether its check is satisfied, with a sentence that gives the reason.

use crate::record::{is_set, is_sha256, same_email, status_text};
use crate::types::{Custodian, CustodianStatus, EnvelopeFacts, EnvelopeStatus};

/// Outcome of one check: whether it is satisfied, and the reason as a sentence.
pub(crate) type Answer = (bool, String);

/// Name of a check and the provisions of the statute that it covers.
pub(crate) struct CheckRule {
    pub requirement: &'static str,
    pub ucc_reference: &'static str,
    pub statute_reference: &'static str,
}

/// The nine checks.
pub(crate) const RULES: [CheckRule; 9] = [
    CheckRule {
        requirement: "Assignee reliably established",
        ucc_reference: "UCC §9-105(a) (2022)",
        statute_reference: "UCC §9-105(a) (2022)",
    },
    CheckRule {
        requirement: "Single authoritative copy",
        ucc_reference: "UCC §9-105(b)(1) (2022)",
        statute_reference: "UCC §9-105(b)(1) (2022)",
    },
    CheckRule {
        requirement: "Authoritative copy identifies the assignee",
        ucc_reference: "UCC §9-105(b)(2) (2022)",
        statute_reference: "UCC §9-105(b)(2) (2022)",
    },
    CheckRule {
        requirement: "Maintained by the assignee or its designated custodian",
        ucc_reference: "UCC §9-105(b)(3) (2022)",
        statute_reference: "UCC §9-105(b)(3) (2022)",
    },
    CheckRule {
        requirement: "Amendments identifiable as authorized or unauthorized",
        ucc_reference: "UCC §9-105(b)(6) (2022)",
        statute_reference: "UCC §9-105(b)(6) (2022)",
    },
    CheckRule {
        requirement: "Authoritative and non-authoritative copies identifiable",
        ucc_reference: "UCC §9-105(c)(1) (2022)",
        statute_reference: "UCC §9-105(b)(5) and (c)(1) (2022)",
    },
    CheckRule {
        requirement: "Assignee can identify itself",
        ucc_reference: "UCC §9-105(c)(2) (2022)",
        statute_reference: "UCC §9-105(c)(2) (2022)",
    },
    CheckRule {
        requirement: "Exclusive power to keep others from changing the assignee, and to transfer control",
        ucc_reference: "UCC §9-105(c)(3) (2022)",
        statute_reference: "UCC §9-105(b)(4), (c)(3)(A), (c)(3)(B) and (d) (2022)",
    },
    CheckRule {
        requirement: "Signed by every debtor",
        ucc_reference: "UCC §9-203(b)(3)(A) (2022)",
        statute_reference: "UCC §9-203(b)(3)(A) (2022)",
    },
];

/// Value of the certificate's `certificate_type`.
pub(crate) const CERTIFICATE_TYPE: &str = "ucc_9105_2022_electronic_copy";

/// Indices (0-based) of the checks that cover the E-SIGN Act: executed signatures and a retained
/// record.
pub(crate) const ESIGN_CHECKS: [usize; 2] = [4, 8];

/// Texts of the certificate's `legal_notices`.
pub(crate) const LEGAL_NOTICES: &[&str] = &[
    "This certificate describes the authoritative electronic copy of a record that evidences chattel paper, under the Uniform Commercial Code as amended in 2022.",
    "Only the copy whose SHA-256 digest is stated here is the authoritative electronic copy. Every other copy is a non-authoritative copy and is marked as one.",
    "Whether a purchaser has control under UCC §9-105 is a question of law, and of whether the amended section applies. This certificate states the facts that were recorded and the checks that were run on them.",
];

/// Runs the checks, in the order of [`RULES`].
pub(crate) fn answers(facts: &EnvelopeFacts) -> [Answer; RULES.len()] {
    [
        assignee_established(facts),
        single_authoritative_copy(facts),
        copy_identifies_assignee(facts),
        maintained_by_custodian(facts),
        amendments_identifiable(facts),
        copies_identifiable(facts),
        assignee_identifies_itself(facts),
        exclusive_power(facts),
        signed_by_every_debtor(facts),
    ]
}

// (a): the acts in the custody ledger name the party that took control; without such acts the
// certificate, which is written from the ledger, names the assignee.
fn assignee_established(facts: &EnvelopeFacts) -> Answer {
    if let Some(controller) = Controller::of(facts) {
        let since = controller.since;
        return (
            true,
            [
                "Acts in the custody ledger establish ",
                controller.name,
                " as the person to which the record was assigned, since ",
                since,
                ".",
            ]
            .concat(),
        );
    }
    match is_set(facts.vault_out_certificate_path.as_deref()) {
        true => (
            true,
            "A certificate over the custody ledger establishes to whom the authoritative copy is assigned.".into(),
        ),
        false => (
            false,
            "No certificate establishes to whom the authoritative copy is assigned.".into(),
        ),
    }
}

// (b)(1): "unique, identifiable, and […] unalterable".
fn single_authoritative_copy(facts: &EnvelopeFacts) -> Answer {
    match is_set(facts.vault_file_path.as_deref()) {
        true => (
            true,
            "One authoritative copy is stored, written without overwrite.".into(),
        ),
        false => (false, "No authoritative copy is stored.".into()),
    }
}

// (b)(2): the copy carries the name of the secured party in its mark.
fn copy_identifies_assignee(facts: &EnvelopeFacts) -> Answer {
    match secured_party(facts) {
        Some(name) => (
            true,
            [
                "The authoritative copy is marked with ",
                name,
                " as assignee.",
            ]
            .concat(),
        ),
        None => (false, "No assignee is named.".into()),
    }
}

// (b)(3): "communicated to and maintained by the purchaser or its designated
// custodian".
fn maintained_by_custodian(facts: &EnvelopeFacts) -> Answer {
    if let (true, Some(controller)) = (is_held(facts), Controller::of(facts)) {
        let detail = [
            "The authoritative copy is maintained here for ",
            controller.name,
            ", which has control.",
        ];
        return (true, detail.concat());
    }
    match active_custodian(facts) {
        Some(custodian) => (
            true,
            [&custodian.email, " maintains the authoritative copy."].concat(),
        ),
        None => (
            false,
            "No custodian has accepted the authoritative copy.".into(),
        ),
    }
}

// (b)(6): any amendment changes the digest and is therefore readily identifiable.
fn amendments_identifiable(facts: &EnvelopeFacts) -> Answer {
    match facts.document_hash.as_deref() {
        Some(hash) if is_sha256(hash) => (
            true,
            [
                "Any amendment shows: SHA-256 of the authoritative copy is ",
                hash,
                ".",
            ]
            .concat(),
        ),
        Some(_) => (false, "The recorded hash is not a SHA-256 digest.".into()),
        None => (
            false,
            "No hash of the authoritative copy is on record.".into(),
        ),
    }
}

// (c)(1), and (b)(5): every copy is readily identifiable as authoritative or non-authoritative.
fn copies_identifiable(facts: &EnvelopeFacts) -> Answer {
    match facts.copy_file_path.as_deref() {
        Some(path) if path.starts_with("copies:") => (
            true,
            "Every page of every copy says whether it is the authoritative copy.".into(),
        ),
        Some(_) => (
            false,
            "The stored copy is not in the copies location.".into(),
        ),
        None => (
            false,
            "No copy that is marked as non-authoritative is stored.".into(),
        ),
    }
}

// (c)(2): "in any way, including by name, identifying number, cryptographic key, office, or account
// number". An identifying number is included when there is one; the name is required, because
// (b)(2) needs it.
fn assignee_identifies_itself(facts: &EnvelopeFacts) -> Answer {
    if let Some(controller) = Controller::of(facts) {
        let mut detail = ["The assignee identifies itself as ", controller.name].concat();
        if let Some(key) = controller.signs_with {
            detail += ", and by the key with the thumbprint ";
            detail += key;
        }
        return (true, detail + ".");
    }
    let number = facts
        .secured_party
        .as_ref()
        .and_then(|party| party.identifier.as_deref())
        .map(str::trim)
        .filter(|number| !number.is_empty());
    match (secured_party(facts), number) {
        (Some(name), Some(number)) => (
            true,
            [
                "The assignee identifies itself as ",
                name,
                ", ",
                number,
                ".",
            ]
            .concat(),
        ),
        (Some(name), None) => (
            true,
            ["The assignee identifies itself by its name, ", name, "."].concat(),
        ),
        (None, _) => (
            false,
            "The assignee has nothing to identify itself by.".into(),
        ),
    }
}

// (c)(3)(A) and (B), and (b)(4): the exclusive power to prevent others from changing the assignee,
// and to transfer control. Under (d)(2) a shared power is still exclusive unless, (e), the other
// party can exercise it alone. The host enforces the power of a party that took control. Without one, the
// custodian holds the copy; several custodians are no defect. A released copy, or the copy of a contract
// that never came about, is not under anyone's power here.
fn exclusive_power(facts: &EnvelopeFacts) -> Answer {
    let status = status_text(facts.status);
    let held = is_held(facts);
    if let (true, Some(controller)) = (held, Controller::of(facts)) {
        let mut detail = [
            "The authoritative copy does not leave the vault, and control does not pass, without the consent of ",
            controller.name,
        ]
        .concat();
        if controller.signs_with.is_some() {
            detail += ", which it signs with its own key";
        }
        if let Some(pledgee) = controller.pledgee {
            detail += ", and of its pledgee ";
            detail += pledgee;
        }
        return (true, detail + ".");
    }
    match (held, active_custodian(facts)) {
        (false, _) => (
            false,
            ["The copy is not held here (status ", status, ")."].concat(),
        ),
        (true, None) => (false, "Nobody holds the power over the copy.".into()),
        (true, Some(custodian)) => (
            true,
            [
                &custodian.email,
                " holds the power over the copy; no other party was given control.",
            ]
            .concat(),
        ),
    }
}

// A paper envelope has no submitters and passes: it was signed before the upload.
fn signed_by_every_debtor(facts: &EnvelopeFacts) -> Answer {
    if facts.submitters.is_empty() {
        return (
            true,
            "No signers are recorded; the document was signed before it was uploaded.".into(),
        );
    }
    let signed = |email: &str| {
        let mut documents = facts.signed_documents.iter();
        documents.any(|document| same_email(&document.signer_email, email))
    };
    let missing: Vec<&str> = facts
        .submitters
        .iter()
        .map(|submitter| submitter.email.as_str())
        .filter(|email| !signed(email))
        .collect();
    match missing.is_empty() {
        true => (true, "Everybody who has to sign has signed.".into()),
        false => (
            false,
            ["Not yet signed by: ", &missing.join(", "), "."].concat(),
        ),
    }
}

/// Whether the copy is held here.
fn is_held(facts: &EnvelopeFacts) -> bool {
    matches!(
        facts.status,
        EnvelopeStatus::Completed | EnvelopeStatus::Vaulted
    )
}

/// The party that took control, as the host enforces it.
struct Controller<'a> {
    name: &'a str,
    /// RFC 3339.
    since: &'a str,
    pledgee: Option<&'a str>,
    /// Thumbprint of the key that it signs its acts with.
    signs_with: Option<&'a str>,
}

impl<'a> Controller<'a> {
    /// None while the originator has control.
    fn of(facts: &'a EnvelopeFacts) -> Option<Self> {
        let attribute = |name: &str| {
            let mut attributes = facts.attributes.iter();
            let (_, value) = attributes.find(|(known, _)| known == name)?;
            (!value.trim().is_empty()).then_some(value.as_str())
        };
        Some(Self {
            name: attribute("control.controller")?,
            since: attribute("control.since")?,
            pledgee: attribute("control.pledgee"),
            signs_with: attribute("control.signs_with"),
        })
    }
}

fn secured_party(facts: &EnvelopeFacts) -> Option<&str> {
    let name = facts.secured_party.as_ref()?.name.trim();
    (!name.is_empty()).then_some(name)
}

fn active_custodian(facts: &EnvelopeFacts) -> Option<&Custodian> {
    let mut custodians = facts.custodians.iter();
    custodians.find(|custodian| custodian.status == CustodianStatus::Accepted)
}
