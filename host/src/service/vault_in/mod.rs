//! Vault-in: from an executed document to its authoritative copy.
//!
//! The steps: intend, fetch, mark, store, copy, certify, record, settle. The
//! intent is committed first and freezes the time, so that a pipeline that is
//! run again after a crash, or twice at once, makes the same bytes under the
//! same keys; the last transaction lets one of them win.

use bytes::Bytes;
use serde_json::json;

use super::uploads::picture;
use super::{Caller, ServiceError, envelopes as envelope_service, events, facts, lifecycle};
use crate::app::App;
use crate::components::Identity;
use crate::components::rules::lifecycle::EnvelopeTrigger;
use crate::components::rules::{compliance, documents};
use crate::domain::envelope::{
    Custodian, CustodianStatus, Envelope, EnvelopeStatus, FileType, StoredFile,
};
use crate::domain::event::EventType;
use crate::domain::id::EnvelopeId;
use crate::domain::ledger::LedgerEntry;
use crate::files::Area;
use crate::sealing::SIGNATURE_BYTES;
use crate::store::envelopes::VaultedFiles;
use crate::store::vault::Intent;
use crate::store::{StoreError, envelopes, ledger, signers, vault};

/// Which of the two endpoints asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entrance {
    /// Signed through the provider.
    Signed,
    /// Uploaded already signed.
    Upload,
}

impl Entrance {
    fn trigger(self) -> EnvelopeTrigger {
        match self {
            Self::Signed => EnvelopeTrigger::VaultInSigned,
            Self::Upload => EnvelopeTrigger::VaultInUpload,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Signed => "vault_in_signed",
            Self::Upload => "vault_in_upload",
        }
    }
}

/// Vaults an envelope. One that is vaulted already is returned as it is.
pub async fn vault_in(
    app: &App,
    caller: &Caller,
    id: &str,
    entrance: Entrance,
) -> Result<Envelope, ServiceError> {
    let id = envelope_service::get(app, caller, id).await?.id;
    let lock = app.vaulting(&id);
    let _one_at_a_time = lock.lock().await;
    let Some((envelope, intent)) = intend(app, caller, &id, entrance).await? else {
        return envelope_service::get(app, caller, id.as_str()).await;
    };
    let executed = fetch(app, &envelope).await?;
    let prepared = prepare(app, &envelope, &intent, executed).await?;
    match settle(app, &envelope, &intent, &prepared).await {
        // Another node was faster with the same bytes.
        Err(ServiceError::Store(StoreError::Conflict)) => {}
        result => result?,
    }
    envelope_service::get(app, caller, id.as_str()).await
}

/// Asks the rules and records the intent; none when the envelope is vaulted.
async fn intend(
    app: &App,
    caller: &Caller,
    id: &EnvelopeId,
    entrance: Entrance,
) -> Result<Option<(Envelope, Intent)>, ServiceError> {
    let now = app.clock.now();
    let mut tx = app.store.begin().await?;
    let (envelope, next) =
        lifecycle::lock_for(app, &mut tx, &caller.org, id, entrance.trigger()).await?;
    if next == envelope.status {
        return Ok(None);
    }
    let wanted = Intent {
        trigger: entrance.name().into(),
        requested_by: caller.actor.clone(),
        frozen_at: now,
        issuer: issuer(app),
        ledger_sequence: ledger::last_sequence(&mut tx, &envelope.org, &envelope.id).await?,
    };
    let intent = vault::intend(&mut tx, &envelope, &wanted).await?;
    tx.commit().await?;
    Ok(Some((envelope, intent)))
}

/// The executed document as the provider, or the uploader, gave it.
struct Executed {
    pdf: Bytes,
    /// The untouched original.
    source: StoredFile,
}

async fn fetch(app: &App, envelope: &Envelope) -> Result<Executed, ServiceError> {
    if let Some(upload) = envelope.upload.as_ref().filter(|_| envelope.is_upload) {
        let bytes = app.files.get(upload).await?;
        let kind = FileType::parse(&upload.content_type).unwrap_or(FileType::Pdf);
        let pdf = match picture(kind, &bytes) {
            None => bytes,
            Some(picture) => app.components.rules.picture_to_pdf(picture).await??.into(),
        };
        return Ok(Executed {
            pdf,
            source: upload.clone(),
        });
    }
    let (Some(instance), Some(submission)) = (&envelope.provider_instance, &envelope.submission)
    else {
        return Err(ServiceError::Conflict(
            "Envelope has no signed document".into(),
        ));
    };
    let lease = app.signing_lease(Some(&envelope.org), instance)?;
    let pdf = app
        .components
        .providers
        .signing
        .signed_document(lease, submission)
        .await?;
    let source = app
        .files
        .put(
            Area::Signed,
            &envelope.org,
            envelope.id.as_str(),
            pdf.clone(),
            "application/pdf",
        )
        .await?;
    Ok(Executed { pdf, source })
}

/// Everything that is stored before the envelope is vaulted.
struct Prepared {
    source: StoredFile,
    authoritative: StoredFile,
    copy: StoredFile,
    certificate: StoredFile,
    custody_record: StoredFile,
    facts: compliance::EnvelopeFacts,
    evaluation: compliance::Evaluation,
    component: Identity,
    custodian: Custodian,
    /// SHA-256 of the certificate that the authoritative copy is sealed with.
    seal: Option<String>,
}

async fn prepare(
    app: &App,
    envelope: &Envelope,
    intent: &Intent,
    executed: Executed,
) -> Result<Prepared, ServiceError> {
    let pdf = executed.pdf.clone();
    let marked = mark(
        app,
        envelope,
        intent,
        &pdf,
        documents::CopyKind::Authoritative,
    );
    let (sealed, seal) = seal(app, envelope, intent, &pdf, marked.await?).await?;
    let authoritative = store(app, envelope, Area::Vault, sealed).await?;
    let copy = mark(
        app,
        envelope,
        intent,
        &pdf,
        documents::CopyKind::NonAuthoritative,
    );
    let copy = store(app, envelope, Area::Copies, copy.await?).await?;
    drop(pdf);

    let custodian = Custodian {
        email: envelope.created_by.clone(),
        status: CustodianStatus::Accepted,
    };
    let facts = facts_as_vaulted(app, envelope, &authoritative, &copy, &custodian).await?;
    let evaluation = app.components.rules.compliance.evaluate(&facts)?;
    let frozen_at = intent.frozen_at.to_string();
    let (certificate_json, component) =
        app.components
            .rules
            .compliance
            .certificate(&facts, &frozen_at, &intent.issuer)?;
    let certificate = app
        .files
        .put(
            Area::Certificates,
            &envelope.org,
            envelope.id.as_str(),
            certificate_json.clone().into(),
            "application/json",
        )
        .await?;

    let told = told_ledger(app, envelope, intent).await?;
    let record = custody_facts(CustodySource {
        envelope,
        intent,
        facts: &facts,
        evaluation: &evaluation,
        component: &component,
        copy: &copy,
        custodian: &custodian,
        told: &told,
        certificate_json,
    });
    let record = app.components.rules.custody_record(record).await??;
    let custody_record = app
        .files
        .put(
            Area::Certificates,
            &envelope.org,
            envelope.id.as_str(),
            record.into(),
            "application/pdf",
        )
        .await?;
    Ok(Prepared {
        source: executed.source,
        authoritative,
        copy,
        certificate,
        custody_record,
        facts,
        evaluation,
        component,
        custodian,
        seal,
    })
}

/// Seals the marked document. One that came back without a mark is certified
/// against any change, and is kept as it is.
async fn seal(
    app: &App,
    envelope: &Envelope,
    intent: &Intent,
    executed: &Bytes,
    marked: Vec<u8>,
) -> Result<(Vec<u8>, Option<String>), ServiceError> {
    if marked == *executed {
        return Ok((marked, None));
    }
    let request = documents::SealRequest {
        name: intent.issuer.clone(),
        reason: format!("Authoritative copy of {}", envelope.id),
        signed_at: intent.frozen_at.to_string(),
        signature_bytes: SIGNATURE_BYTES,
    };
    let rules = &app.components.rules;
    let space = rules.prepare_seal(marked.into(), request).await??;
    let place = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
    let place = place(space.place_start)..place(space.place_end);
    let sealed = app.sealing.seal(space.pdf, place, app.clock.now())?;
    Ok((sealed, Some(app.sealing.fingerprint()?)))
}

async fn mark(
    app: &App,
    envelope: &Envelope,
    intent: &Intent,
    pdf: &Bytes,
    kind: documents::CopyKind,
) -> Result<Vec<u8>, ServiceError> {
    let request = documents::MarkRequest {
        kind,
        envelope_id: envelope.id.to_string(),
        secured_party: envelope
            .secured_party
            .as_ref()
            .map(|party| party.name.trim().to_owned())
            .filter(|name| !name.is_empty()),
        marked_at: intent.frozen_at.to_string(),
    };
    Ok(app.components.rules.mark(pdf.clone(), request).await??)
}

async fn store(
    app: &App,
    envelope: &Envelope,
    area: Area,
    bytes: Vec<u8>,
) -> Result<StoredFile, ServiceError> {
    let owner = envelope.id.as_str();
    Ok(app
        .files
        .put(area, &envelope.org, owner, bytes.into(), "application/pdf")
        .await?)
}

/// The record as the pipeline is about to leave it: the certificate is
/// evaluated as of the vaulted state.
async fn facts_as_vaulted(
    app: &App,
    envelope: &Envelope,
    authoritative: &StoredFile,
    copy: &StoredFile,
    custodian: &Custodian,
) -> Result<compliance::EnvelopeFacts, ServiceError> {
    let vaulted = Envelope {
        status: EnvelopeStatus::Vaulted,
        vault: Some(authoritative.clone()),
        document_hash: Some(authoritative.sha256.clone()),
        copy: Some(copy.clone()),
        certificate: Some(authoritative.clone()),
        ..envelope.clone()
    };
    let mut connection = app.store.read().await?;
    let mut facts = facts::compliance_facts(&mut connection, &vaulted).await?;
    if !facts
        .custodians
        .iter()
        .any(|known| known.email == custodian.email)
    {
        facts.custodians.push(compliance::Custodian {
            email: custodian.email.clone(),
            status: compliance::CustodianStatus::Accepted,
        });
    }
    Ok(facts)
}

/// The ledger up to the intent: later entries are no part of the record.
async fn told_ledger(
    app: &App,
    envelope: &Envelope,
    intent: &Intent,
) -> Result<Vec<LedgerEntry>, ServiceError> {
    let mut connection = app.store.read().await?;
    let mut entries = ledger::list(&mut connection, &envelope.org, &envelope.id).await?;
    entries.retain(|entry| entry.sequence <= intent.ledger_sequence);
    Ok(entries)
}

/// How this installation calls itself in documents.
fn issuer(app: &App) -> String {
    format!("holdfast at {}", app.config.public_url())
}

struct CustodySource<'a> {
    envelope: &'a Envelope,
    intent: &'a Intent,
    facts: &'a compliance::EnvelopeFacts,
    evaluation: &'a compliance::Evaluation,
    component: &'a Identity,
    copy: &'a StoredFile,
    custodian: &'a Custodian,
    told: &'a [LedgerEntry],
    certificate_json: String,
}

fn custody_facts(source: CustodySource<'_>) -> documents::CustodyFacts {
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
        attributes: Vec::new(),
    }
}

fn timeline_entry(entry: &LedgerEntry) -> documents::TimelineEntry {
    documents::TimelineEntry {
        at: entry.at.to_string(),
        actor: entry.actor.clone(),
        action: entry.action.clone(),
        detail: entry.hash.clone(),
    }
}

/// One transaction: pointers, custodian, status, ledger and events.
async fn settle(
    app: &App,
    decided: &Envelope,
    intent: &Intent,
    prepared: &Prepared,
) -> Result<(), ServiceError> {
    let now = app.clock.now();
    let mut tx = app.store.begin().await?;
    let envelope = envelopes::lock(&mut tx, &decided.org, &decided.id)
        .await?
        .ok_or(ServiceError::NotFound("Envelope"))?;
    if envelope.status != decided.status {
        return Err(StoreError::Conflict.into());
    }
    if envelope.upload != decided.upload {
        return Err(ServiceError::Conflict(
            "The document was replaced while it was being vaulted".into(),
        ));
    }
    let files = VaultedFiles {
        authoritative: &prepared.authoritative,
        copy: &prepared.copy,
        certificate: &prepared.certificate,
        custody_record: &prepared.custody_record,
    };
    envelopes::set_vaulted(&mut tx, &envelope, &files, now).await?;
    signers::assign_custodian(&mut tx, &envelope, &prepared.custodian, now).await?;
    vault::finish_intent(&mut tx, &envelope, now).await?;

    let component = json!({
        "name": prepared.component.name,
        "version": prepared.component.version,
        "sha256": prepared.component.sha256,
    });
    let facts = serde_json::to_value(&prepared.facts)
        .map_err(|error| ServiceError::Internal(error.to_string()))?;
    vault::insert_evaluation(&mut tx, &envelope, &facts, &component, intent.frozen_at).await?;
    let hash = &prepared.authoritative.sha256;
    let stored = json!({
        "document_hash": hash,
        "signed_document_hash": prepared.source.sha256,
        "copy_hash": prepared.copy.sha256,
        "certificate_hash": prepared.certificate.sha256,
        "custody_record_hash": prepared.custody_record.sha256,
        "seal_certificate_hash": prepared.seal,
        "custodian": prepared.custodian.email,
    });
    let actor = intent.requested_by.as_str();
    let action = EventType::VaultStored.as_str();
    events::record(&mut tx, &envelope, actor, action, stored, now).await?;
    let evaluated = json!({
        "score": prepared.evaluation.score,
        "missing_requirements": prepared.evaluation.missing_requirements,
        "component": component,
        "issued_at": intent.frozen_at,
        "issuer": intent.issuer,
        "facts": facts,
    });
    events::record(
        &mut tx,
        &envelope,
        "system",
        "compliance.evaluated",
        evaluated,
        now,
    )
    .await?;

    let path = format!("vault:{}/authoritative", envelope.id);
    let data = json!({ "path": path, "hash": hash });
    events::emit(&mut tx, &envelope, EventType::VaultStored, data, now).await?;
    let verdict = if prepared.evaluation.compliant {
        EventType::VaultCompliancePassed
    } else {
        EventType::VaultComplianceFailed
    };
    let data = json!({
        "score": prepared.evaluation.score,
        "missing_requirements": prepared.evaluation.missing_requirements,
    });
    events::emit(&mut tx, &envelope, verdict, data, now).await?;
    Ok(tx.commit().await?)
}
