//! The compliance certificate, version 1.0.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::checks::{CERTIFICATE_TYPE, ESIGN_CHECKS, LEGAL_NOTICES};
use crate::evaluate::{evaluate, statute_references};
use crate::record::{attribute, is_paper, json, signers, status_text};
use crate::types::{ComponentIdentity, EnvelopeFacts};

/// Prefix of the attributes that become members of the certificate's `provenance`.
const PROVENANCE: &str = "provenance.";
/// Attribute with the identity checks as a JSON list, each with the id of its signer.
const IDENTITY_CHECKS: &str = "identity_checks";

/// Explanation of knowledge questions, beside every result of them.
const KNOWLEDGE_QUESTIONS: &str = "Result of knowledge-based questions. NIST SP 800-63A-4 (2025) does not accept them as identity verification.";
/// First notice of a certificate about test data.
const TEST_NOTICE: &str = "TEST: this certificate is about test data. No contract was signed and nothing is stored as an original.";
/// Notice of a certificate about an upload.
const PAPER_NOTICE: &str = "The document was uploaded as a signed one. Whether it is signed, and by whom, is the uploader's statement; this service did not check it. While a paper original exists beside this record, the record is not the sole original: perfection by possession and control needs every authoritative tangible copy as well (UCC §9-314A as amended in 2022).";
/// Why there is no result under the E-SIGN Act for an upload.
const PAPER_REASON: &str =
    "The document was signed elsewhere, if it was; no electronic signature was made here.";

/// Returns the certificate of `facts` as pretty-printed JSON with a trailing newline.
///
/// Members and their order follow the specification; check 7 requires `issuer`, `signer_timeline`,
/// `legal_notices` and `rules_component`. `identity_verification` is present only when a signer was
/// challenged, and affects neither checks nor score. `ledger_checkpoint` is the signed head of the
/// log of all custody ledgers, taken from the attribute of that name. `provenance` repeats the
/// attributes `provenance.<member>`: they record how the evidence was produced, for readers to
/// weigh, and affect no check either. `chattel_paper_jurisdiction` and `control_chain` are those
/// attributes: the jurisdiction of UCC 9-306A(b)(1), and the parties that had control, oldest first.
/// `environment` is `test` for test data. `paper_original` and `existing_signatures` are what the
/// uploader stated about the paper, and the signatures that were found in the document.
/// `consumer_consent` is that attribute, too: for each signer, the disclosure of 15 U.S.C. 7001(c)(1) that was
/// shown, the consent, and the demonstrated access.
pub fn certificate(
    facts: &EnvelopeFacts,
    issued_at: &str,
    issuer: &str,
    component: &ComponentIdentity,
) -> String {
    let evaluation = evaluate(facts);
    let is_paper = is_paper(facts);
    // The order of the members is specified. A struct keeps it.
    let certificate = Certificate {
        certificate_type: CERTIFICATE_TYPE,
        certificate_version: "1.0",
        issued_at,
        issuer,
        subject: CertificateSubject {
            envelope_id: &facts.envelope_id,
            envelope_name: &facts.envelope_name,
            customer_id: &facts.customer_id,
            status: status_text(facts.status),
        },
        secured_party: facts.secured_party.as_ref().map(|party| SecuredParty {
            name: &party.name,
            role: party.role.as_deref(),
        }),
        document_integrity: DocumentIntegrity {
            hash_algorithm: "SHA-256",
            document_hash: facts.document_hash.as_deref(),
        },
        ucc_9105_compliance: CertifiedEvaluation {
            compliant: evaluation.compliant,
            score: evaluation.score,
            checks: evaluation
                .checks
                .iter()
                .zip(statute_references())
                .map(|(check, statute_reference)| CertifiedCheck {
                    requirement: &check.requirement,
                    ucc_reference: &check.ucc_reference,
                    statute_reference: statute_reference.into(),
                    satisfied: check.satisfied,
                    detail: &check.detail,
                })
                .collect(),
        },
        // The upload was signed elsewhere, if at all, so no result is better than a wrong one.
        esign_act_compliance: EsignAct {
            act: "Electronic Signatures in Global and National Commerce Act",
            citation: "15 U.S.C. §7001(a) and (d)",
            compliant: (!is_paper).then(|| all_signed(&evaluation.checks)),
            reason: is_paper.then_some(PAPER_REASON),
            tested: (!is_paper).then_some(
                "Whether every required signer executed an electronic signature, and whether the record is retained with its digest. Consent of consumers under §7001(c) is not part of this result.",
            ),
        },
        identity_verification: identity_verification(facts),
        signer_timeline: signer_timeline(facts),
        legal_notices: legal_notices(facts, is_paper, LEGAL_NOTICES),
        rules_component: RulesComponent {
            name: &component.name,
            version: &component.version,
            sha256: &component.sha256,
        },
        ledger_checkpoint: attribute(facts, "ledger_checkpoint"),
        provenance: provenance(facts),
        environment: is_test(facts).then_some("test"),
        paper_original: json(facts, "paper_original"),
        existing_signatures: json(facts, "existing_signatures"),
        chattel_paper_jurisdiction: attribute(facts, "chattel_paper_jurisdiction"),
        control_chain: attribute(facts, "control_chain")
            .and_then(|chain| serde_json::from_str(chain).ok()),
        consumer_consent: attribute(facts, "consumer_consent")
            .and_then(|consents| serde_json::from_str(consents).ok()),
    };

    // A struct of strings, numbers and lists always serializes.
    let mut text = serde_json::to_string_pretty(&certificate).unwrap_or_default();
    text.push('\n');

    text
}

fn is_test(facts: &EnvelopeFacts) -> bool {
    attribute(facts, "environment") == Some("test")
}

/// Returns the notices of a pack, with those about test data and uploads.
pub(crate) fn legal_notices(
    facts: &EnvelopeFacts,
    is_paper: bool,
    of_pack: &[&'static str],
) -> Vec<&'static str> {
    // The notice about test data comes first: all others read as if a contract existed.
    let test = is_test(facts).then_some(TEST_NOTICE);
    let paper = is_paper.then_some(PAPER_NOTICE);
    test.into_iter()
        .chain(of_pack.iter().copied())
        .chain(paper)
        .collect()
}

/// Collects the attributes prefixed with `provenance.` into one object. A value that does not parse
/// as JSON becomes a string.
fn provenance(facts: &EnvelopeFacts) -> Option<Map<String, Value>> {
    let members: Map<String, Value> = facts
        .attributes
        .iter()
        .filter_map(|(name, text)| Some((name.strip_prefix(PROVENANCE)?, text)))
        .filter(|(member, _)| !member.is_empty())
        .map(|(member, text)| {
            // Attributes are texts. Numbers and lists in them become members that programs can read.
            let value = serde_json::from_str(text);
            let value = value.unwrap_or_else(|_| Value::from(text.as_str()));
            (member.to_owned(), value)
        })
        .collect();

    (!members.is_empty()).then_some(members)
}

fn all_signed(checks: &[crate::types::Check]) -> bool {
    ESIGN_CHECKS
        .iter()
        .all(|index| checks.get(*index).is_some_and(|check| check.satisfied))
}

fn signer_timeline(facts: &EnvelopeFacts) -> Vec<SignerEvent> {
    let events = signers(facts).into_iter().map(|signer| {
        let is_approver = signer.is_approver();
        SignerEvent {
            signer_id: signer.signer_id,
            position: signer.position,
            name: signer.name,
            email: signer.email,
            role: signer.role,
            kind: signer.kind,
            // An approval is no signature, so an approver has no time of one.
            signed_at: signer.signed_at.filter(|_| !is_approver),
            completed_at: signer.completed_at,
            notes: signer.notes,
        }
    });

    events.collect()
}

/// Returns the people who were challenged. Checks by a host without ids of signers are joined by address.
fn identity_verification(facts: &EnvelopeFacts) -> Option<Vec<IdentityResult>> {
    let checks = json(facts, IDENTITY_CHECKS).unwrap_or_else(|| {
        // An address may stand for two people here. Hosts of that time knew no ids.
        let checks = facts.identity_verifications.iter();
        let known = checks.map(|check| IdentityResult {
            signer: check.signer_email.clone(),
            outcome: check.outcome.clone(),
            timestamp: check.occurred_at.clone(),
            ip_address: check.ip_address.clone(),
            session_id: check.provider_session_id.clone(),
            ..IdentityResult::default()
        });

        known.collect::<Vec<_>>()
    });

    let noted = checks.into_iter().map(|check| IdentityResult {
        note: KNOWLEDGE_QUESTIONS.into(),
        ..check
    });
    let noted: Vec<IdentityResult> = noted.collect();
    (!noted.is_empty()).then_some(noted)
}

#[derive(Serialize)]
struct Certificate<'a> {
    certificate_type: &'a str,
    certificate_version: &'a str,
    issued_at: &'a str,
    issuer: &'a str,
    subject: CertificateSubject<'a>,
    secured_party: Option<SecuredParty<'a>>,
    document_integrity: DocumentIntegrity<'a>,
    ucc_9105_compliance: CertifiedEvaluation<'a>,
    esign_act_compliance: EsignAct<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    identity_verification: Option<Vec<IdentityResult>>,
    signer_timeline: Vec<SignerEvent>,
    legal_notices: Vec<&'a str>,
    rules_component: RulesComponent<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ledger_checkpoint: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provenance: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paper_original: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    existing_signatures: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chattel_paper_jurisdiction: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    control_chain: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    consumer_consent: Option<Vec<Value>>,
}

#[derive(Serialize)]
struct CertificateSubject<'a> {
    envelope_id: &'a str,
    envelope_name: &'a str,
    customer_id: &'a str,
    status: &'a str,
}

#[derive(Serialize)]
struct SecuredParty<'a> {
    name: &'a str,
    role: Option<&'a str>,
}

#[derive(Serialize)]
struct DocumentIntegrity<'a> {
    hash_algorithm: &'a str,
    document_hash: Option<&'a str>,
}

#[derive(Serialize)]
struct CertifiedEvaluation<'a> {
    compliant: bool,
    score: u32,
    checks: Vec<CertifiedCheck<'a>>,
}

#[derive(Serialize)]
struct CertifiedCheck<'a> {
    requirement: &'a str,
    ucc_reference: &'a str,
    statute_reference: Cow<'a, str>,
    satisfied: bool,
    detail: &'a str,
}

#[derive(Serialize)]
struct EsignAct<'a> {
    act: &'a str,
    citation: &'a str,
    /// Null without a result, for the reason beside it.
    compliant: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tested: Option<&'a str>,
}

/// Identity check of a signer. `sandbox` is set for one that asked no person.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct IdentityResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    signer_id: Option<String>,
    signer: String,
    outcome: String,
    timestamp: String,
    ip_address: Option<String>,
    session_id: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    sandbox: bool,
    note: Cow<'static, str>,
}

#[derive(Serialize)]
struct SignerEvent {
    #[serde(skip_serializing_if = "Option::is_none")]
    signer_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
    name: String,
    email: String,
    role: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// Null for approvers, and for people who were asked for no signature.
    signed_at: Option<String>,
    completed_at: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

#[derive(Serialize)]
struct RulesComponent<'a> {
    name: &'a str,
    version: &'a str,
    sha256: &'a str,
}
