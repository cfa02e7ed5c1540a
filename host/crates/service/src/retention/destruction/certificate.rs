//! Certificates of destruction: the destroyed record, the acts that led to it, and the proof that the log has it.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::UNKNOWN;
use crate::vault::custody_sheet::RecordWriter;
use crate::vault::{Vault, copies, custody};
use holdfast_base::fair_queue::WorkOwner;
use holdfast_domain::destruction::{DestroyedRecord, DestructionCause, DestructionCertificate};
use holdfast_domain::event::EventType;
use holdfast_domain::hash::canonical_sha256;
use holdfast_domain::id::{DestructionId, EnvelopeId, OrgId};
use holdfast_domain::ledger::LedgerEntry;
use holdfast_evidence::formats::LogEvidence;
use holdfast_platform::{Caller, Core, Problem, ProblemKind, ServiceError};
use holdfast_store::{SqlConnection, destructions as rows, envelopes};

/// States where to find the certificate of a record that `holdfast restore` destroyed again.
pub const NOT_RESTORED: &str = "The record was destroyed before this database was restored from an older backup; the certificate is in \
                                the later database and its ledger";

/// A certificate of destruction, with the entry of the ledger that records it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct IssuedCertificate {
    /// The certificate, with all its members: `certificate_sha256` of the entry is the SHA-256 of its canonical JSON
    /// (RFC 8785).
    #[schemars(with = "DestructionCertificate")]
    pub certificate: Value,
    /// The entry `record.destroyed`.
    pub issued: LedgerEntry,
    /// Proof that this entry is in the log with the signed head.
    pub log: LogEvidence,
}

/// Returns the certificate of a record of a request, for the organization of the request and for the party that controlled
/// the record.
///
/// # Errors
/// `NotFound` for an unknown request, and one without this record; `Problem` with `not_destroyed` before the destruction
/// begins, and with `certificate_not_restored` for a record that was destroyed again when an older backup was restored.
pub async fn of_record(
    core: &Core,
    vault: &Vault,
    caller: &Caller,
    id: &str,
    envelope: &EnvelopeId,
) -> Result<IssuedCertificate, ServiceError> {
    let destroyed = found(core, caller, id, envelope).await?;
    issued(core, vault, &destroyed).await
}

/// Writes the certificate as a PDF in the language of the organization, with the JSON of [`of_record`] attached. Equal
/// evidence gives equal bytes.
pub async fn pdf(
    core: &Core,
    vault: &Vault,
    caller: &Caller,
    id: &str,
    envelope: &EnvelopeId,
) -> Result<Bytes, ServiceError> {
    let destroyed = found(core, caller, id, envelope).await?;
    let issued = issued(core, vault, &destroyed).await?;
    let certificate = parsed(&destroyed)?;
    let attached = serde_json::to_string_pretty(&issued);
    let attached = attached.map_err(|error| ServiceError::Internal(error.to_string()))?;

    let org = &destroyed.org;
    let wording = copies::wording(&mut *core.store.read().await?, org).await?;
    let writer = RecordWriter::new(&wording);
    let sheet = writer.destruction_sheet(&certificate, &issued.issued.hash, attached);
    let documents = core
        .components
        .embedded_documents(org, core.store.priority())
        .for_owner(WorkOwner::new(org, envelope.as_str()));
    Ok(documents.sheet(sheet).await??.into())
}

/// Returns the destroyed record of an envelope; none for a whole one, and for one that was destroyed again when an older backup
/// was restored.
pub async fn of_envelope(
    core: &Core,
    org: &OrgId,
    envelope: &EnvelopeId,
) -> Result<Option<DestroyedRecord>, ServiceError> {
    let mut connection = core.store.read().await?;
    Ok(rows::destroyed(&mut connection, org, envelope).await?)
}

/// Returns a certificate with the entry that records it, and the proof.
pub async fn issued(
    core: &Core,
    vault: &Vault,
    destroyed: &DestroyedRecord,
) -> Result<IssuedCertificate, ServiceError> {
    let own = Caller::system(destroyed.org.clone());
    let ledger = custody::ledger(core, vault, &own, destroyed.envelope.as_str()).await?;
    let action = EventType::RecordDestroyed.as_str();
    let issued = ledger
        .entries
        .into_iter()
        .find(|entry| entry.action == action);
    // The newest entry is placed within a second.
    let (Some(issued), Some(log)) = (issued, ledger.log) else {
        return Err(ServiceError::Busy);
    };

    let mut inclusion = log.inclusion;
    inclusion.retain(|proof| proof.sequence == issued.sequence);
    if inclusion.is_empty() {
        return Err(ServiceError::Busy);
    }

    let certificate: Value = serde_json::from_str(&destroyed.certificate)
        .map_err(|error| unreadable(destroyed, &error))?;
    let recorded = issued.details["certificate_sha256"].as_str();
    if recorded != Some(canonical_sha256(&certificate).as_str()) {
        let why = format!("the certificate of {} was changed", destroyed.envelope);
        return Err(ServiceError::Internal(why));
    }
    Ok(IssuedCertificate {
        certificate,
        issued,
        // How the log grew since the vault-in belongs to the bundle.
        log: LogEvidence {
            inclusion,
            certified: None,
            ..log
        },
    })
}

fn parsed(destroyed: &DestroyedRecord) -> Result<DestructionCertificate, ServiceError> {
    let certificate = serde_json::from_str(&destroyed.certificate);
    certificate.map_err(|error| unreadable(destroyed, &error))
}

fn unreadable(destroyed: &DestroyedRecord, error: &serde_json::Error) -> ServiceError {
    ServiceError::Internal(format!("certificate of {}: {error}", destroyed.envelope))
}

/// Returns the destroyed record of a request, for those who may have its certificate.
async fn found(
    core: &Core,
    caller: &Caller,
    id: &str,
    envelope: &EnvelopeId,
) -> Result<DestroyedRecord, ServiceError> {
    let id = DestructionId::parse(id).ok_or(UNKNOWN)?;
    let mut connection = core.store.read().await?;
    let org = originator(&mut connection, caller, &id, envelope).await?;
    let Some(destroyed) = rows::destroyed(&mut connection, &org, envelope).await? else {
        let record = envelopes::get_with_destroyed(&mut connection, &org, envelope).await?;
        let is_destroyed = record.is_some_and(|record| record.destruction.is_some());
        let (code, message) = if is_destroyed {
            ("certificate_not_restored", NOT_RESTORED)
        } else {
            let message = "The record is not destroyed; there is no certificate yet";
            ("not_destroyed", message)
        };
        return Err(Problem::new(ProblemKind::State, code, message).into());
    };

    // A record of a withdrawn or refused request may have been destroyed by another one since.
    if parsed(&destroyed)?.cause == DestructionCause::Destruction(id) {
        Ok(destroyed)
    } else {
        Err(UNKNOWN)
    }
}

/// Returns the organization of a request with a record, if it is the caller's or the caller's controls the record.
async fn originator(
    connection: &mut SqlConnection,
    caller: &Caller,
    id: &DestructionId,
    envelope: &EnvelopeId,
) -> Result<OrgId, ServiceError> {
    let own = rows::records(connection, &caller.org, id).await?;
    let controlled = rows::controlled_by(connection, &caller.org, Some(id), i64::MAX).await?;
    let mut records = own.into_iter().chain(controlled);
    let record = records.find(|record| record.envelope == *envelope);
    record.map(|record| record.org).ok_or(UNKNOWN)
}
