//! The content of the custody record.

use crate::envelopes::facts::{IDENTITY_REBOUND, SANDBOX};
use crate::vault::custody_sheet::{RecordWriter, signing_party};
use holdfast_adapters::texts::Texts;
use holdfast_components::rules::{compliance, documents};
use holdfast_domain::component::ComponentIdentity;
use holdfast_domain::envelope::{Custodian, Envelope, Signer, StoredFile};
use holdfast_domain::ledger::LedgerEntry;
use holdfast_store::vault::VaultIntent;

/// Inputs of the custody record.
pub(super) struct CustodySource<'a> {
    pub(super) envelope: &'a Envelope,
    pub(super) intent: &'a VaultIntent,
    pub(super) facts: &'a compliance::EnvelopeFacts,
    pub(super) signers: &'a [Signer],
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
    let writer = RecordWriter::new(&source.intent.wording);

    let is_marked = |mark: &str| facts.attributes.iter().any(|(name, _)| name == mark);
    documents::CustodyFacts {
        envelope_id: envelope.id.to_string(),
        envelope_name: envelope.name.clone(),
        customer_id: envelope.customer.to_string(),
        issuer: source.intent.issuer.clone(),
        // The frozen time, so that a repeated run writes the same bytes.
        recorded_at: source.intent.frozen_at.to_string(),
        hash_algorithm: "SHA-256".into(),
        document_hash: facts.document_hash.clone().unwrap_or_default(),
        copy_hash: source.copy.sha256.clone(),
        secured_party: facts.secured_party.as_ref().map(|party| party.name.clone()),
        custodian: source.custodian.email.clone(),
        parties: source.signers.iter().map(signing_party).collect(),
        timeline: source
            .told
            .iter()
            .map(|entry| writer.timeline_entry(entry))
            .collect(),
        checks: source
            .evaluation
            .checks
            .iter()
            .map(|check| documents::CheckResult {
                requirement: check.requirement.clone(),
                // The specification and the statute number some checks differently.
                reference: writer.reference(
                    &check.requirement,
                    &check.ucc_reference,
                    &source.certificate_json,
                ),
                satisfied: check.satisfied,
                detail: check.detail.clone(),
            })
            .collect(),
        rules_component: format!(
            "{} {} ({})",
            component.name, component.version, component.sha256
        ),
        certificate_json: source.certificate_json,
        attributes: source
            .further
            .into_iter()
            .chain(notes(is_marked, writer.texts))
            .collect(),
    }
}

/// Returns notes about results that prove less than usual, for the marks that the facts have.
pub(in crate::vault) fn notes(
    is_marked: impl Fn(&str) -> bool,
    texts: Texts,
) -> Vec<(String, String)> {
    let known = [
        (SANDBOX, "custody-sandbox", "custody-sandbox-note"),
        (
            IDENTITY_REBOUND,
            "custody-identity",
            "custody-identity-note",
        ),
    ];
    let known = known.into_iter().filter(|(mark, _, _)| is_marked(mark));

    known
        .map(|(_, name, note)| (texts.text(name), texts.text(note)))
        .collect()
}
