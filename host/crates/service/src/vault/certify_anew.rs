//! A new certificate after a change of control. The certificate of vault-in speaks of the originator; the
//! one that a controller shows names its own chain of control (UCC §9-105(a) as amended in 2022).

use serde_json::{Value, json};

use crate::envelopes::facts;
use crate::vault::vault_in::{deciding_rules, issuer, rules_owner};
use holdfast_adapters::files::StorageArea;
use holdfast_domain::component::{EvidenceParticipant, Slot};
use holdfast_domain::control::ControlRecord;
use holdfast_domain::envelope::{Envelope, EnvelopeStatus, StoredFile};
use holdfast_domain::id::{EnvelopeId, OrgId};
use holdfast_domain::ledger::{CERTIFIED, LedgerEntry};
use holdfast_platform::log::check_clock;
use holdfast_platform::{Core, ServiceError, events};
use holdfast_store::{control, envelopes, ledger, vault};

/// Prefix of the attributes about how the evidence was made at vault-in.
const PROVENANCE: &str = "provenance.";

/// A certificate that is not stored yet, with the content of its ledger entry.
struct NewCertificate {
    text: String,
    score: u32,
    details: Value,
}

/// Certifies a vaulted record for its present controller, unless that was done already. May run twice:
/// the ledger names since when the party had control that each certificate is about.
pub async fn certify_anew(core: &Core, org: &OrgId, id: &EnvelopeId) -> Result<(), ServiceError> {
    // The certificate states the time of this node, and nothing could correct a wrong one later.
    check_clock(core).await?;
    let mut connection = core.store.read().await?;
    let Some(envelope) = envelopes::get(&mut connection, org, id).await? else {
        return Ok(());
    };

    let held = control::of_envelope(&mut connection, &envelope).await?;
    let entries = ledger::list(&mut connection, Some(org), id).await?;
    drop(connection);
    if !is_due(&envelope, &entries, &held) {
        return Ok(());
    }

    // The rules answer without an open transaction. `settle` checks under the lock that the answer is
    // still due.
    let made = certificate(core, &envelope, &entries, &held).await?;
    let bytes = made.text.clone().into_bytes().into();
    let (area, kind) = (StorageArea::Certificates, "application/json");
    let file = core.files.put(area, org, id.as_str(), bytes, kind).await?;

    settle(core, &envelope, &held, &file, made).await
}

/// Whether the record is in the vault, control has passed on, and no certificate speaks of the present
/// controller yet.
fn is_due(envelope: &Envelope, entries: &[LedgerEntry], held: &ControlRecord) -> bool {
    let since = json!(held.controlled_since);
    let certified = entries
        .iter()
        .filter(|entry| entry.action == CERTIFIED)
        .any(|entry| entry.details["controlled_since"] == since);
    // Epoch 0 means that no act of control took place: the first certificate still names the controller.
    envelope.status == EnvelopeStatus::Vaulted && held.epoch > 0 && !certified
}

/// Asks the rules of the originator's organization for the certificate.
async fn certificate(
    core: &Core,
    envelope: &Envelope,
    entries: &[LedgerEntry],
    held: &ControlRecord,
) -> Result<NewCertificate, ServiceError> {
    let now = core.clock.now();
    let rules = core.components.compliance(Some(&envelope.org));
    let mut connection = core.store.read().await?;
    let mut facts = facts::compliance_facts(&mut connection, envelope, now).await?;
    let first = entries
        .iter()
        .find(|entry| entry.action == "compliance.evaluated");
    let first = first.map_or(&Value::Null, |entry| &entry.details["facts"]);
    facts.attributes.extend(provenance(first));

    // The head that the bundle proves to be in the log.
    let checkpoint = vault::checkpoint(&mut connection, &envelope.org, &envelope.id).await?;
    facts
        .attributes
        .extend(checkpoint.map(|checkpoint| ("ledger_checkpoint".to_owned(), checkpoint)));
    let identity = rules.identity()?;
    let participants = deciding_rules(&mut connection, envelope, &identity, now).await?;

    let owner = rules_owner(&mut connection, envelope, &identity, now).await?;
    facts
        .attributes
        .extend(owner.map(|owner| (facts::RULES_OWNER.to_owned(), owner)));
    drop(connection);

    let judgement = rules.judge_for_request(&facts).await?;
    let (at, issuer) = (now.to_string(), issuer(core, &envelope.org));
    let (text, component) = rules.certificate_for_request(&facts, &at, &issuer).await?;

    let evaluation = &judgement.evaluation;
    let mut details = json!({
        "controlled_since": held.controlled_since,
        "score": evaluation.score,
        "missing_requirements": evaluation.missing_requirements,
        "component": component,
        "components": participants,
        "issued_at": now,
        "issuer": issuer,
        "facts": facts,
    });

    if !judgement.opinions.is_empty() {
        details["evaluations"] = json!(judgement.opinions);
    }

    Ok(NewCertificate {
        text,
        score: evaluation.score,
        details,
    })
}

/// Returns how the evidence was made, as the first certificate has it. The rules of that certificate are
/// left out: this one has been written by those of today, which its entry names.
fn provenance(facts: &Value) -> Vec<(String, String)> {
    let attributes = facts["attributes"].as_array().into_iter().flatten();
    let kept = attributes.filter_map(|attribute| {
        let (name, value) = (attribute[0].as_str()?, attribute[1].as_str()?);
        let value = match name.strip_prefix(PROVENANCE)? {
            "components" => {
                let made: Vec<EvidenceParticipant> = serde_json::from_str(value).ok()?;
                let made = made.into_iter().filter(|one| one.slot != Slot::Compliance);
                json!(made.collect::<Vec<_>>()).to_string()
            }
            // Sandboxes and browsers are among the facts of today.
            "sandbox" | "identity_rebound" => return None,
            _ => value.to_owned(),
        };

        Some((name.to_owned(), value))
    });

    kept.collect()
}

/// Replaces the certificate, unless control has passed on meanwhile: then another job is due.
async fn settle(
    core: &Core,
    envelope: &Envelope,
    certified: &ControlRecord,
    file: &StoredFile,
    made: NewCertificate,
) -> Result<(), ServiceError> {
    let now = core.clock.now();
    let (org, id) = (&envelope.org, &envelope.id);
    let mut tx = core.store.begin().await?;
    let Some(envelope) = envelopes::lock(&mut tx, org, id).await? else {
        return Ok(());
    };

    // Another run may have certified, or control may have passed on, while the rules answered.
    let held = control::of_envelope(&mut tx, &envelope).await?;
    let entries = ledger::list(&mut tx, Some(org), id).await?;
    let has_passed = held.controlled_since != certified.controlled_since;
    if has_passed || !is_due(&envelope, &entries, &held) {
        return Ok(());
    }

    envelopes::set_certificate(&mut tx, &envelope, file, made.score, now).await?;
    let mut details = made.details;
    details["certificate_hash"] = file.sha256.as_str().into();
    events::record(&mut tx, &envelope, "system", CERTIFIED, details, now).await?;

    Ok(tx.commit().await?)
}
