//! The compliance certificate, version 1.0.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::checks::{CERTIFICATE_TYPE, ESIGN_CHECKS, LEGAL_NOTICES};
use crate::evaluate::{evaluate, statute_references};
use crate::record::status_text;
use crate::types::{ComponentIdentity, EnvelopeFacts};

/// Prefix of the attributes that become members of the certificate's `provenance`.
const PROVENANCE: &str = "provenance.";

/// Returns the certificate of `facts` as pretty-printed JSON with a trailing newline.
///
/// Members and their order follow the specification; check 7 requires `issuer`, `signer_timeline`,
/// `legal_notices` and `rules_component`. `identity_verification` is present only when a signer was
/// challenged, and affects neither checks nor score. `ledger_checkpoint` is the signed head of the
/// log of all custody ledgers, taken from the attribute of that name. `provenance` repeats the
/// attributes `provenance.<member>`: they record how the evidence was produced, for readers to
/// weigh, and affect no check either. `chattel_paper_jurisdiction` and `control_chain` are those
/// attributes: the jurisdiction of UCC 9-306A(b)(1), and the parties that had control, oldest first.
/// `consumer_consent` is that attribute, too: for each signer, the disclosure of 15 U.S.C. 7001(c)(1) that was
/// shown, the consent, and the demonstrated access.
pub fn certificate(
    facts: &EnvelopeFacts,
    issued_at: &str,
    issuer: &str,
    component: &ComponentIdentity,
) -> String {
    let evaluation = evaluate(facts);
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
        esign_act_compliance: EsignAct {
            act: "Electronic Signatures in Global and National Commerce Act",
            citation: "15 U.S.C. §7001 et seq.",
            compliant: all_signed(&evaluation.checks),
        },
        identity_verification: identity_verification(facts),
        signer_timeline: signer_timeline(facts),
        legal_notices: LEGAL_NOTICES,
        rules_component: RulesComponent {
            name: &component.name,
            version: &component.version,
            sha256: &component.sha256,
        },
        ledger_checkpoint: attribute(facts, "ledger_checkpoint"),
        provenance: provenance(facts),
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

fn attribute<'a>(facts: &'a EnvelopeFacts, name: &str) -> Option<&'a str> {
    let mut attributes = facts.attributes.iter();
    let found = attributes.find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str())
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

fn signer_timeline(facts: &EnvelopeFacts) -> Vec<SignerEvent<'_>> {
    facts
        .submitters
        .iter()
        .map(|submitter| SignerEvent {
            name: &submitter.name,
            email: &submitter.email,
            role: &submitter.role,
            signed_at: facts
                .signed_documents
                .iter()
                .find(|signed| signed.signer_email.eq_ignore_ascii_case(&submitter.email))
                .map(|signed| signed.signed_at.as_str()),
        })
        .collect()
}

fn identity_verification(facts: &EnvelopeFacts) -> Option<Vec<ComponentName<'_>>> {
    if facts.identity_verifications.is_empty() {
        return None;
    }
    Some(
        facts
            .identity_verifications
            .iter()
            .map(|verification| ComponentName {
                signer: &verification.signer_email,
                outcome: &verification.outcome,
                timestamp: &verification.occurred_at,
                ip_address: verification.ip_address.as_deref(),
                session_id: verification.provider_session_id.as_deref(),
            })
            .collect(),
    )
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
    identity_verification: Option<Vec<ComponentName<'a>>>,
    signer_timeline: Vec<SignerEvent<'a>>,
    legal_notices: &'a [&'a str],
    rules_component: RulesComponent<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ledger_checkpoint: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provenance: Option<Map<String, Value>>,
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
    compliant: bool,
}

#[derive(Serialize)]
struct ComponentName<'a> {
    signer: &'a str,
    outcome: &'a str,
    timestamp: &'a str,
    ip_address: Option<&'a str>,
    session_id: Option<&'a str>,
}

#[derive(Serialize)]
struct SignerEvent<'a> {
    name: &'a str,
    email: &'a str,
    role: &'a str,
    signed_at: Option<&'a str>,
}

#[derive(Serialize)]
struct RulesComponent<'a> {
    name: &'a str,
    version: &'a str,
    sha256: &'a str,
}
