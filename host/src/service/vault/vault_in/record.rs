//! The content of the custody record.

use crate::components::rules::{compliance, documents};
use crate::domain::component::ComponentIdentity;
use crate::domain::envelope::{Custodian, Envelope, StoredFile};
use crate::domain::ledger::LedgerEntry;
use crate::service::envelopes::facts::{IDENTITY_REBOUND, SANDBOX};
use crate::service::vault::history::{actor_in_words, in_words};
use crate::store::vault::VaultIntent;
use crate::texts::Texts;

/// Inputs of the custody record.
pub(super) struct CustodySource<'a> {
    pub(super) envelope: &'a Envelope,
    pub(super) intent: &'a VaultIntent,
    pub(super) facts: &'a compliance::EnvelopeFacts,
    pub(super) evaluation: &'a compliance::Evaluation,
    pub(super) component: &'a ComponentIdentity,
    pub(super) copy: &'a StoredFile,
    pub(super) custodian: &'a Custodian,
    pub(super) told: &'a [LedgerEntry],
    pub(super) certificate_json: String,
    /// Additional facts, by name.
    pub(super) further: Vec<(String, String)>,
}

/// Builds the facts from which the documents component writes the custody record.
pub(super) fn custody_facts(source: CustodySource<'_>) -> documents::CustodyFacts {
    let CustodySource {
        envelope,
        facts,
        component,
        ..
    } = source;
    documents::CustodyFacts {
        envelope_id: envelope.id.to_string(),
        envelope_name: envelope.name.clone(),
        customer_id: envelope.customer.to_string(),
        issuer: source.intent.issuer.clone(),
        recorded_at: source.intent.frozen_at.to_string(),
        hash_algorithm: "SHA-256".into(),
        document_hash: facts.document_hash.clone().unwrap_or_default(),
        copy_hash: source.copy.sha256.clone(),
        secured_party: facts.secured_party.as_ref().map(|party| party.name.clone()),
        custodian: source.custodian.email.clone(),
        parties: facts
            .submitters
            .iter()
            .map(|submitter| documents::Party {
                name: submitter.name.clone(),
                email: submitter.email.clone(),
                role: submitter.role.clone(),
                signed_at: facts
                    .signed_documents
                    .iter()
                    .find(|signed| signed.signer_email == submitter.email)
                    .map(|signed| signed.signed_at.clone()),
            })
            .collect(),
        timeline: source.told.iter().map(timeline_entry).collect(),
        checks: source
            .evaluation
            .checks
            .iter()
            .map(|check| documents::CheckResult {
                requirement: check.requirement.clone(),
                reference: check.ucc_reference.clone(),
                satisfied: check.satisfied,
                detail: check.detail.clone(),
            })
            .collect(),
        rules_component: format!(
            "{} {} ({})",
            component.name, component.version, component.sha256
        ),
        certificate_json: source.certificate_json,
        attributes: source.further.into_iter().chain(notes(facts)).collect(),
    }
}

/// Returns notes about results that prove less than usual.
fn notes(facts: &compliance::EnvelopeFacts) -> Vec<(String, String)> {
    let known = [
        (
            SANDBOX,
            "Sandbox",
            "a payment or an identity check was simulated and proves nothing",
        ),
        (
            IDENTITY_REBOUND,
            "Identity",
            "a signer came with another browser than the one that passed the identity check",
        ),
    ];
    let noted = |mark: &str| facts.attributes.iter().any(|(name, _)| name == mark);
    known
        .into_iter()
        .filter(|(mark, _, _)| noted(mark))
        .map(|(_, name, text)| (name.to_owned(), text.to_owned()))
        .collect()
}

/// Writes an entry of the ledger in words, with what an auditor needs to find it.
pub fn timeline_entry(entry: &LedgerEntry) -> documents::TimelineEntry {
    documents::TimelineEntry {
        at: entry.at.to_string(),
        actor: actor_in_words(&entry.actor),
        action: in_words(Texts::default(), entry).unwrap_or_else(|| entry.action.clone()),
        detail: format!("{}, SHA-256 {}", entry.action, entry.hash),
    }
}
