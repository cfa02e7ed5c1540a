//! One function per check, in the order of the statute.
//!
//! Each function returns whether its check is satisfied, with a sentence that gives the reason.
//!
//! Control belongs to a *purchaser*, the person to which the copy was assigned. What the originator
//! types about a secured party establishes no assignment: without a party that accepted control here,
//! the checks about the assignee are not established.

use crate::record::{
    attribute, is_set, is_sha256, is_unmarked, released_at, signatures_executed, status_text,
};
use crate::types::{EnvelopeFacts, EnvelopeStatus};

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

/// Texts of the certificate's `legal_notices`. They claim no more than this service established.
pub(crate) const LEGAL_NOTICES: &[&str] = &[
    "This certificate describes one electronic record under the Uniform Commercial Code as amended in 2022. Whether the record evidences chattel paper was not checked.",
    "The authoritative electronic copy is the one whose SHA-256 digest is stated here. The copies that this service makes of it are marked as non-authoritative; of copies made elsewhere it knows nothing.",
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

/// Why a check about the assignee is not established.
fn not_established(facts: &EnvelopeFacts) -> String {
    // The sentence names that party all the same, because readers look
    // for it and need to know why it does not count.
    match secured_party(facts) {
        Some(name) => [
            "Not established: the originator names ",
            name,
            " as the secured party, and no party has accepted control of the record.",
        ]
        .concat(),
        None => "Not established: no party has accepted control of the record.".into(),
    }
}

// (a): only the acts in the custody ledger, the last of them by the accepting party, establish the
// assignee of the copy.
fn assignee_established(facts: &EnvelopeFacts) -> Answer {
    let Some(controller) = Controller::of(facts) else {
        return (false, not_established(facts));
    };

    (
        true,
        [
            "Acts in the custody ledger establish ",
            controller.name,
            " as the person to which the record was assigned, since ",
            controller.since,
            ".",
        ]
        .concat(),
    )
}

// (b)(1): "unique, identifiable, and […] unalterable".
fn single_authoritative_copy(facts: &EnvelopeFacts) -> Answer {
    if is_set(facts.vault_file_path.as_deref()) {
        return (
            true,
            "The authoritative copy is stored in this vault, written without overwrite.".into(),
        );
    }

    // Without the release, the record would look as if it still waited for the vault.
    let sentence = match released_at(facts) {
        Some(at) => [
            "The authoritative copy left this vault: the record was released on ",
            at,
            ".",
        ]
        .concat(),
        None => "No authoritative copy is stored.".into(),
    };

    (false, sentence)
}

// (b)(2): the mark on the copy names the purchaser as the assignee. The mark is made at vault-in from
// the originator's statement, so it is compared with the party that accepted control later.
fn copy_identifies_assignee(facts: &EnvelopeFacts) -> Answer {
    let Some(marked) = secured_party(facts) else {
        return (false, "The authoritative copy names no assignee.".into());
    };
    // A name in the ledger does not identify the assignee on the copy itself.
    if is_unmarked(facts) {
        return (
            false,
            "The authoritative copy has no mark, because its author certified it against any change.".into(),
        );
    }

    match Controller::of(facts) {
        // Paragraph (b)(2) is about the name on the copy.
        // Control of that party is the subject of (a) and (c).
        None => (
            true,
            [
                "The authoritative copy is marked with ",
                marked,
                ", which the originator names as the secured party; it has not accepted control.",
            ]
            .concat(),
        ),
        Some(controller) if same_name(controller.name, marked) => (
            true,
            [
                "The authoritative copy is marked with ",
                marked,
                ", which has control.",
            ]
            .concat(),
        ),
        // The mark stays as it was at vault-in, so the copy of a sold record names an earlier party.
        Some(controller) => (
            false,
            [
                "The authoritative copy is marked with ",
                marked,
                "; ",
                controller.name,
                " has control.",
            ]
            .concat(),
        ),
    }
}

// (b)(3): "communicated to and maintained by the purchaser or its designated custodian". Under (g) the
// transferor cannot be the one that holds it for the purchaser, so the originator's custodian alone
// does not count.
fn maintained_by_custodian(facts: &EnvelopeFacts) -> Answer {
    let Some(controller) = Controller::of(facts) else {
        return (false, not_established(facts));
    };
    // A released copy is kept elsewhere, out of sight of this service.
    if !is_held(facts) {
        return (false, not_held(facts));
    }

    (
        true,
        [
            "The authoritative copy is kept in this vault for ",
            controller.name,
            ", which accepted control.",
        ]
        .concat(),
    )
}

// (b)(6): any amendment changes the digest and is therefore readily identifiable.
fn amendments_identifiable(facts: &EnvelopeFacts) -> Answer {
    // Rules see no bytes. The host compares the stored ones with this digest.
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

// (c)(1), and (b)(5): each copy that this service makes is readily identifiable. Copies made elsewhere
// are not in its sight.
fn copies_identifiable(facts: &EnvelopeFacts) -> Answer {
    match facts.copy_file_path.as_deref() {
        Some(path) if path.starts_with("copies:") => (
            true,
            "The copy that this service hands out is marked as non-authoritative on every page."
                .into(),
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

// (c)(2): the purchaser identifies *itself*, "in any way, including by name, identifying number,
// cryptographic key, office, or account number".
fn assignee_identifies_itself(facts: &EnvelopeFacts) -> Answer {
    let Some(controller) = Controller::of(facts) else {
        return (false, not_established(facts));
    };

    let mut detail = ["The assignee identifies itself as ", controller.name].concat();

    // A number stands in the record of the party that it was given for.
    let party = facts.secured_party.as_ref();
    let number = party
        .filter(|party| same_name(&party.name, controller.name))
        .and_then(|party| party.identifier.as_deref())
        .map(str::trim)
        .filter(|number| !number.is_empty());
    if let Some(number) = number {
        detail += ", ";
        detail += number;
    }

    // A key is one of the ways that (c)(2) names, and needs no trust in this service.
    if let Some(key) = controller.signs_with {
        detail += ", and by the key with the thumbprint ";
        detail += key;
    }

    (true, detail + ".")
}

// (c)(3)(A) and (B), and (b)(4): the exclusive power to prevent others from changing the assignee,
// and to transfer control. The host enforces the power of a party that accepted control. Under (d)(2) a
// shared power is still exclusive unless, (e), the other party can exercise it alone or is the
// transferor: a pledgee may be another party, but not the one that the controller has the record from.
fn exclusive_power(facts: &EnvelopeFacts) -> Answer {
    let Some(controller) = Controller::of(facts) else {
        return (false, not_established(facts));
    };
    // The host enforces the power over a copy in its vault, and over no other.
    if !is_held(facts) {
        return (false, not_held(facts));
    }

    if let Some(pledgee) = controller.pledgee
        && controller.is_pledged_to_transferor
    {
        return (
            false,
            [
                "The power of ",
                controller.name,
                " is not exclusive: it needs the consent of ",
                pledgee,
                ", from which it has the record.",
            ]
            .concat(),
        );
    }

    let mut detail = [
        "The authoritative copy does not leave this vault, and control does not pass, without the consent of ",
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

    (true, detail + ".")
}

// A paper envelope has no submitters and passes: it was signed elsewhere, by its uploader's statement.
fn signed_by_every_debtor(facts: &EnvelopeFacts) -> Answer {
    signatures_executed(facts)
}

/// Whether the copy is held here.
fn is_held(facts: &EnvelopeFacts) -> bool {
    matches!(
        facts.status,
        EnvelopeStatus::Completed | EnvelopeStatus::Vaulted
    )
}

fn not_held(facts: &EnvelopeFacts) -> String {
    let status = status_text(facts.status);
    ["The copy is not held here (status ", status, ")."].concat()
}

/// The party that accepted control, as the host enforces it.
struct Controller<'a> {
    name: &'a str,
    /// RFC 3339.
    since: &'a str,
    pledgee: Option<&'a str>,
    /// Whether the pledgee is the party that the controller has the record from.
    is_pledged_to_transferor: bool,
    /// Thumbprint of the key that it signs its acts with.
    signs_with: Option<&'a str>,
}

impl<'a> Controller<'a> {
    /// None while the originator has control.
    fn of(facts: &'a EnvelopeFacts) -> Option<Self> {
        // A blank name would establish a party without a name.
        let given = |name| attribute(facts, name).filter(|value| !value.trim().is_empty());
        Some(Self {
            name: given("control.controller")?,
            since: given("control.since")?,
            pledgee: given("control.pledgee"),
            is_pledged_to_transferor: given("control.pledgee_is_transferor") == Some("true"),
            signs_with: given("control.signs_with"),
        })
    }
}

fn secured_party(facts: &EnvelopeFacts) -> Option<&str> {
    let name = facts.secured_party.as_ref()?.name.trim();
    (!name.is_empty()).then_some(name)
}

/// Compares two names of organizations without regard to case and spacing.
fn same_name(left: &str, right: &str) -> bool {
    let words = |name: &str| {
        let words = name.split_whitespace().map(str::to_lowercase);
        words.collect::<Vec<String>>()
    };
    words(left) == words(right)
}
