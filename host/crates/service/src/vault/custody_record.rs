//! The custody record for people. It is stored at vault-in; after a release, a final one is made from the
//! ledger: the checks as at the release, and everything that happened until now.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use crate::envelopes::compliance::{self, ComplianceView};
use crate::envelopes::consumer;
use crate::vault::custody_sheet::{RecordPeople, RecordWriter, signing_party};
use crate::vault::vault_in::{issuer, notes};
use holdfast_base::fair_queue::WorkOwner;
use holdfast_components::rules::documents;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, Signer};
use holdfast_domain::event::EventType;
use holdfast_domain::ledger::LedgerEntry;
use holdfast_platform::components::ComponentManager;
use holdfast_platform::lookup;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::{ledger, signers, vault};

/// Returns the custody record as a PDF: the stored one, or the final one of a released envelope. Equal
/// ledgers give equal bytes.
///
/// # Errors
///
/// `Conflict` before the envelope is vaulted.
pub async fn custody_record(
    core: &Core,
    management: &Arc<ComponentManager>,
    caller: &Caller,
    id: &str,
) -> Result<Bytes, ServiceError> {
    let envelope = lookup::envelope(core, caller, id).await?;
    let not_vaulted = || ServiceError::Conflict("Envelope is not vaulted".into());
    let stored = &envelope.record.custody_record;
    let stored = stored.as_ref().ok_or_else(not_vaulted)?;
    let (org, owner) = (&envelope.org, &envelope.id);
    let mut connection = core.store.read().await?;
    let entries = ledger::list(&mut connection, Some(org), owner).await?;

    let signers = signers::list(&mut connection, org, owner).await?;
    let consents = consumer::consents(&mut connection, &envelope, &signers).await?;
    drop(connection);
    let released = |entry: &LedgerEntry| entry.action == EventType::VaultReleased.as_str();
    // Before the release, the stored file is the record. Its hash is in the ledger.
    let Some(end) = entries.iter().position(released) else {
        return Ok(core.files.get(stored).await?);
    };

    // Most checks ask about the vault, and the record is no longer there. Its state at the release
    // counts.
    let released_at = entries[end].at;
    let compliance =
        compliance::evaluate_at_release(core, management, caller, &envelope, released_at).await?;
    let certificate = envelope.record.certificate.as_ref();
    let certificate = core.files.get(certificate.ok_or_else(not_vaulted)?).await?;
    let facts = FinalRecord {
        envelope: &envelope,
        signers: &signers,
        compliance: &compliance,
        history: &entries,
        release: &entries[end],
    };

    let wording = vault::wording(&mut *core.store.read().await?, &envelope).await?;
    let writer = RecordWriter::new(&wording);
    let facts = facts.facts(issuer(core, &envelope.org), &certificate, writer);
    let people = RecordPeople {
        envelope: &envelope,
        signers: &signers,
        entries: &entries,
        consents: &consents,
    };
    let mut sheet = writer.custody_sheet(&facts, people);
    writer.date_checks(&mut sheet, &facts.checks, &entries[end].at.to_string());

    let documents = core
        .components
        .embedded_documents(org, core.store.priority())
        .for_owner(WorkOwner::new(org, owner.as_str()));
    Ok(documents.custody_record(facts, sheet).await??.into())
}

/// Inputs of the final record.
struct FinalRecord<'a> {
    envelope: &'a Envelope,
    signers: &'a [Signer],
    compliance: &'a ComplianceView,
    /// All entries, those after the release, too.
    history: &'a [LedgerEntry],
    release: &'a LedgerEntry,
}

impl FinalRecord<'_> {
    fn facts(
        &self,
        issuer: String,
        certificate: &[u8],
        writer: RecordWriter<'_>,
    ) -> documents::CustodyFacts {
        let envelope = self.envelope;
        let rules = &self.compliance.rules_component;
        let party = envelope.secured_party.as_ref();
        let copy = envelope.record.copy.as_ref();
        documents::CustodyFacts {
            envelope_id: envelope.id.to_string(),
            envelope_name: envelope.name.clone(),
            customer_id: envelope.customer.to_string(),
            issuer,
            // Not the present time: equal ledgers have to give equal bytes.
            recorded_at: self.last_at().to_string(),
            hash_algorithm: "SHA-256".into(),
            document_hash: envelope.record.document_hash.clone().unwrap_or_default(),
            copy_hash: copy.map(|copy| copy.sha256.clone()).unwrap_or_default(),
            secured_party: party.map(|party| party.name.clone()),
            custodian: self.custodian(writer),
            parties: self.signers.iter().map(signing_party).collect(),
            timeline: self
                .history
                .iter()
                .map(|entry| writer.timeline_entry(entry))
                .collect(),
            checks: self
                .compliance
                .checks
                .iter()
                .map(|check| documents::CheckResult {
                    requirement: check.requirement.clone(),
                    reference: writer.reference(
                        &check.requirement,
                        &check.ucc_reference,
                        &String::from_utf8_lossy(certificate),
                    ),
                    satisfied: check.satisfied,
                    detail: check.detail.clone(),
                })
                .collect(),
            rules_component: format!("{} {} ({})", rules.name, rules.version, rules.sha256),
            certificate_json: String::from_utf8_lossy(certificate).into_owned(),
            attributes: self
                .about_the_release(writer)
                .into_iter()
                .chain(self.marks_of_origin(writer))
                .collect(),
        }
    }

    /// Returns the moment of the last entry, which is the newest thing that the record knows.
    fn last_at(&self) -> Timestamp {
        self.history.last().unwrap_or(self.release).at
    }

    /// Returns who kept the authoritative copy, from when until when. There is no keeper here after the release.
    fn custodian(&self, writer: RecordWriter<'_>) -> String {
        let stored = |entry: &&LedgerEntry| entry.action == EventType::VaultStored.as_str();
        let Some(stored) = self.history.iter().rfind(stored) else {
            return String::new();
        };

        let (from, until) = (
            writer.moment(&stored.at.to_string()),
            writer.moment(&self.release.at.to_string()),
        );
        let custodian = stored.details["custodian"].as_str().unwrap_or_default();
        let values = [("custodian", custodian), ("from", &from), ("until", &until)];

        writer.texts.with("custody-custodian-until", values)
    }

    /// Returns the newest details of an action.
    fn details(&self, action: &str) -> &Value {
        let mut entries = self.history.iter();
        let entry = entries.rfind(|entry| entry.action == action);
        entry.map_or(&Value::Null, |entry| &entry.details)
    }

    /// Returns what the stored record has on the document's origin, its files and simulated results.
    fn marks_of_origin(&self, writer: RecordWriter<'_>) -> Vec<(String, String)> {
        let (envelope, texts) = (self.envelope, writer.texts);
        let is_upload = envelope.is_upload();
        let is_test = envelope.org.is_test();
        let stored = self.details(EventType::VaultStored.as_str());

        // Entries of earlier releases lack members. Nothing is stated about those.
        let copy_form = serde_json::from_value(stored["copy_kind"].clone()).ok();
        let seal = stored.get("seal_certificate_hash");
        let time = stored.get("trusted_time");
        // The head comes from the facts of the certificate, so both files name the same one.
        let evaluated = &self.details("compliance.evaluated")["facts"]["attributes"];
        let mut attributes = evaluated.as_array().into_iter().flatten();
        let head = attributes.find(|attribute| attribute[0] == "ledger_checkpoint");
        let head = head.and_then(|attribute| attribute[1].as_str());
        let named = [
            (
                "certificate-note",
                is_test.then(|| texts.text("certificate-test")),
            ),
            (
                "custody-second",
                writer.second_evaluation(&self.compliance.evaluations),
            ),
            // Only a document that was signed elsewhere can have a paper original.
            (
                "certificate-signed",
                is_upload.then(|| texts.text("custody-uploaded")),
            ),
            (
                "custody-paper",
                is_upload.then(|| writer.paper_original(&envelope.paper_original())),
            ),
            (
                "custody-copy-form",
                copy_form.map(|form| writer.copy_form(form)),
            ),
            ("custody-rewritten", writer.rewritten(&stored["rewritten"])),
            ("custody-seal", seal.map(|seal| writer.seal(seal.as_str()))),
            (
                "custody-trusted-time",
                time.map(|time| writer.trusted_time(time)),
            ),
            ("custody-log", head.and_then(|note| writer.log_head(note))),
        ];

        let named = named
            .into_iter()
            .filter_map(|(name, value)| Some((texts.text(name), value?)));
        let signatures = envelope.existing_signatures.iter();
        let signatures = signatures.map(|signature| writer.existing_signature(signature));

        // A later certificate has facts of its own. A mark counts from whichever certificate it comes.
        let facts = self
            .history
            .iter()
            .filter_map(|entry| entry.details["facts"]["attributes"].as_array());
        let marks: Vec<&Value> = facts.flatten().map(|attribute| &attribute[0]).collect();
        let is_marked = |mark: &str| marks.iter().any(|known| *known == mark);

        named
            .chain(signatures)
            .chain(notes(is_marked, texts))
            .collect()
    }

    /// Returns an entry of the form with which the release was requested.
    fn form(&self, name: &str) -> String {
        let text = self.release.details["form"][name].as_str();
        text.unwrap_or_default().to_owned()
    }

    fn about_the_release(&self, writer: RecordWriter<'_>) -> Vec<(String, String)> {
        let texts = writer.texts;
        let recipient = format!(
            "{}, {} ({})",
            self.form("recipient_name"),
            self.form("recipient_organization"),
            self.form("recipient_email")
        );

        let note = if self.form("medium") == "paper" {
            "custody-final-paper"
        } else {
            "custody-final-note"
        };
        let moment = writer.moment(&self.release.at.to_string());
        let organization = self.form("recipient_organization");
        let values = [("moment", moment.as_str()), ("recipient", &organization)];
        let rows = [
            ("custody-final", texts.with(note, values)),
            ("custody-handed-over-to", recipient),
            ("custody-purpose", self.form("purpose_of_release")),
            // The form names the person who authorized the release. The ledger knows which key or session
            // asked for it.
            ("custody-authorized-by", self.form("authorized_signature")),
            ("custody-requested-by", writer.actor(&self.release.actor)),
        ];

        rows.map(|(name, value)| (texts.text(name), value)).into()
    }
}
