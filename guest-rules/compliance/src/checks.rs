//! One function per check, in the order of the specification.
//!
//! Each function returns whether its check is satisfied, with a sentence that gives the reason.
//!
//! Checks are called directly, and sentences are concatenated instead of formatted: in a fresh
//! instance the first call through each function pointer costs about as much as a check, and
//! `format!` uses several.

use crate::record::{
    attribute, is_paper, is_set, is_sha256, is_unmarked, released_at, signatures_executed,
    status_text,
};
use crate::types::{CustodianStatus, EnvelopeFacts, EnvelopeStatus};

/// Outcome of one check: whether it is satisfied, and the reason as a sentence.
pub(crate) type Answer = (bool, String);

/// Name and references of a check, as specified.
pub(crate) struct CheckRule {
    pub requirement: &'static str,
    pub ucc_reference: &'static str,
    /// Paragraph of the uniform text that states the requirement. The references of the
    /// specification number some paragraphs differently.
    pub statute_reference: &'static str,
}

/// The eight checks.
pub(crate) const RULES: [CheckRule; 8] = [
    CheckRule {
        requirement: "Single authoritative copy",
        ucc_reference: "UCC §9-105(b)(2)",
        statute_reference: "UCC §9-105(b)(1)",
    },
    CheckRule {
        requirement: "Tamper-evident record",
        ucc_reference: "UCC §9-105(b)(4)",
        statute_reference: "UCC §9-105(b)(6)",
    },
    CheckRule {
        requirement: "Controlling party identified",
        ucc_reference: "UCC §9-105(b)(1)",
        statute_reference: "UCC §9-105(b)(3)",
    },
    CheckRule {
        requirement: "All required signatories executed",
        ucc_reference: "UCC §9-105(b)(3)",
        statute_reference: "UCC §9-105(a)",
    },
    CheckRule {
        requirement: "Non-authoritative copies identifiable",
        ucc_reference: "UCC §9-105(b)(5)",
        statute_reference: "UCC §9-105(b)(5)",
    },
    CheckRule {
        requirement: "Electronic record fully executed",
        ucc_reference: "UCC §9-105 general",
        statute_reference: "UCC §9-105(a)",
    },
    CheckRule {
        requirement: "Audit certificate generated",
        ucc_reference: "UCC §9-105 best practice",
        statute_reference: "UCC §9-105(a)",
    },
    CheckRule {
        requirement: "Secured party identified",
        ucc_reference: "UCC §9-105(b)(1)",
        statute_reference: "UCC §9-105(b)(2)",
    },
];

/// Value of the certificate's `certificate_type`.
pub(crate) const CERTIFICATE_TYPE: &str = "ucc_9105_electronic_chattel_paper";

/// Indices (0-based) of the checks that cover the E-SIGN Act: executed signatures and a retained
/// record.
pub(crate) const ESIGN_CHECKS: [usize; 2] = [1, 3];

/// Texts of the certificate's `legal_notices`. They claim no more than this service established.
pub(crate) const LEGAL_NOTICES: &[&str] = &[
    "This certificate describes one electronic record. Whether the record evidences a monetary obligation and a security interest in or a lease of specific goods was not checked.",
    "The authoritative copy is the one whose SHA-256 digest is stated here. The copies that this service makes of it are marked as non-authoritative; of copies made elsewhere it knows nothing.",
    "Whether the secured party has control under UCC §9-105 is a question of law. This certificate states the facts that were recorded and the checks that were run on them.",
];

/// Runs the checks, in the order of [`RULES`].
pub(crate) fn answers(facts: &EnvelopeFacts) -> [Answer; RULES.len()] {
    [
        single_authoritative_copy(facts),
        tamper_evident_record(facts),
        controlling_party_identified(facts),
        all_signatories_executed(facts),
        copies_identifiable(facts),
        record_fully_executed(facts),
        audit_certificate_generated(facts),
        secured_party_identified(facts),
    ]
}

// Check 1.
fn single_authoritative_copy(facts: &EnvelopeFacts) -> Answer {
    if is_set(facts.vault_file_path.as_deref()) {
        let mark = if is_unmarked(facts) {
            "without a mark, because its author certified it against any change."
        } else {
            "with a mark that names it."
        };
        return (
            true,
            [
                "The authoritative copy is stored in this vault, written without overwrite, ",
                mark,
            ]
            .concat(),
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
        None => "No authoritative copy is stored in the vault.".into(),
    };

    (false, sentence)
}

// Check 2.
fn tamper_evident_record(facts: &EnvelopeFacts) -> Answer {
    // Rules see no bytes. The host compares the stored ones with this digest.
    match facts.document_hash.as_deref() {
        Some(hash) if is_sha256(hash) => (
            true,
            ["SHA-256 of the stored bytes is on record: ", hash, "."].concat(),
        ),
        Some(_) => (false, "The recorded hash is not a SHA-256 digest.".into()),
        None => (false, "No hash of the stored bytes is on record.".into()),
    }
}

// Check 3: the first accepted permission names the active custodian.
fn controlling_party_identified(facts: &EnvelopeFacts) -> Answer {
    let mut custodians = facts.custodians.iter();
    let active = custodians.find(|custodian| custodian.status == CustodianStatus::Accepted);
    let Some(custodian) = active else {
        return (
            false,
            "No custodian has accepted control of the record.".into(),
        );
    };

    let mut sentence = ["The custodian on record is ", &custodian.email].concat();
    if let Some(at) = released_at(facts) {
        sentence += ", until the record was released on ";
        sentence += at;
    }

    // The custodian keeps the copy and the controller decides about it. They may be two parties.
    if let Some(controller) = attribute(facts, "control.controller") {
        sentence += "; ";
        sentence += controller;
        sentence += " accepted control";

        if let Some(since) = attribute(facts, "control.since") {
            sentence += " on ";
            sentence += since;
        }
    }

    (true, sentence + ".")
}

// Check 4: a paper envelope has no submitters and passes.
fn all_signatories_executed(facts: &EnvelopeFacts) -> Answer {
    signatures_executed(facts)
}

// Check 5: the copy must be in the location for copies, not in any other.
fn copies_identifiable(facts: &EnvelopeFacts) -> Answer {
    // The prefix is that of the storage location, which only marked copies are written to.
    match facts.copy_file_path.as_deref() {
        Some(path) if path.starts_with("copies:") => (
            true,
            "A copy marked as non-authoritative is stored apart from the authoritative one.".into(),
        ),
        Some(_) => (
            false,
            "The stored copy is not in the copies location.".into(),
        ),
        None => (false, "No non-authoritative copy is stored.".into()),
    }
}

// Check 6. The status of an upload establishes nothing about signatures.
fn record_fully_executed(facts: &EnvelopeFacts) -> Answer {
    let status = status_text(facts.status);
    match facts.status {
        // The sentence about the parties would be false for an upload: no party did its part here.
        EnvelopeStatus::Completed | EnvelopeStatus::Vaulted if is_paper(facts) => (
            true,
            [
                "The status is ",
                status,
                ". Whether the uploaded document is executed is the uploader's statement.",
            ]
            .concat(),
        ),
        EnvelopeStatus::Completed | EnvelopeStatus::Vaulted => (
            true,
            [
                "Every party has completed their part (status ",
                status,
                ").",
            ]
            .concat(),
        ),
        EnvelopeStatus::VaultedOut => (
            false,
            "The status is vaulted_out: the record was released from this vault.".into(),
        ),
        EnvelopeStatus::Pending
        | EnvelopeStatus::Uploaded
        | EnvelopeStatus::Preparing
        | EnvelopeStatus::Sent
        | EnvelopeStatus::Viewed
        | EnvelopeStatus::Declined
        | EnvelopeStatus::Voided
        | EnvelopeStatus::Expired => (
            false,
            [
                "The record is not in a fully executed status (status ",
                status,
                ").",
            ]
            .concat(),
        ),
    }
}

// Check 7.
fn audit_certificate_generated(facts: &EnvelopeFacts) -> Answer {
    if is_set(facts.vault_out_certificate_path.as_deref()) {
        (
            true,
            "A compliance certificate is stored with the record.".into(),
        )
    } else {
        (
            false,
            "The compliance certificate is not yet generated.".into(),
        )
    }
}

// Check 8: a secured party needs a non-blank name.
fn secured_party_identified(facts: &EnvelopeFacts) -> Answer {
    // The name is the statement of the originator. The sentence claims no more than that.
    match &facts.secured_party {
        Some(party) if !party.name.trim().is_empty() => (
            true,
            [
                "The originator names ",
                party.name.trim(),
                " as the secured party.",
            ]
            .concat(),
        ),
        Some(_) => (false, "The secured party has no name.".into()),
        None => (false, "No secured party is recorded.".into()),
    }
}
