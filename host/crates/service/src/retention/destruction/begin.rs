//! The beginning of a destruction: what stands against it, and the transaction from which on a record is unreadable.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::UNKNOWN;
use crate::vault::vault_in;
use holdfast_components::rules::control::RefusalReason;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::control::{ControlRecord, ControlStage};
use holdfast_domain::destruction::{
    CERTIFICATE_TYPE, CertifiedAct, CertifiedLedger, CertifiedRecord, DestroyedRecord,
    DestructionCause, DestructionCertificate, DestructionRecord,
};
use holdfast_domain::envelope::{Envelope, EnvelopeDestruction, EnvelopeStatus};
use holdfast_domain::event::EventType;
use holdfast_domain::hash::canonical_sha256;
use holdfast_domain::id::{OrgId, UserId};
use holdfast_domain::job::DestroyRecord;
use holdfast_domain::organization::Role;
use holdfast_domain::retention::Retention;
use holdfast_platform::permits::legal_holds;
use holdfast_platform::problems::ControlProblem;
use holdfast_platform::{Core, Problem, ProblemKind, ServiceError, events, log};
use holdfast_store::{
    SqlConnection, StoreError, WriteTransaction, control as control_rows, destructions as rows,
    envelopes, jobs, ledger, record_rows, retention, seal_states, users,
};

/// Begins the destruction of one record, in the caller's transaction and with the envelope's row locked. From its commit on,
/// the record is unreadable, the ledger has `record.destroyed`, the certificate exists, and the job `record.destroy` deletes
/// everything else.
///
/// `cause` is a request that two people made, or the erasure of a person. `actor` is the actor of the order, such as
/// `user:…`; of a user, ledger and certificate get the id alone. A caller that is about to begin several destructions locks
/// their envelopes in the order of their ids.
///
/// # Errors
/// `Control` with `legal_hold`, and with the parties' rights in the record; `Problem` with `record_not_final`,
/// `retention_running` or `consent_missing`; [`StoreError::Destroyed`] if the destruction of the record has begun.
pub async fn begin(
    core: &Core,
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    cause: &DestructionCause,
    actor: &str,
    at: Timestamp,
) -> Result<(), ServiceError> {
    let control = control_rows::of_envelope(tx, envelope).await?;
    let is_erasure = matches!(cause, DestructionCause::Erasure(_));
    require_destroyable(tx, envelope, &control, is_erasure, at).await?;
    // With the lock of the controller's organization: a hold that is placed at this moment comes first, or too late.
    legal_holds::permit_controlled(tx, Some(&envelope.org), envelope, &control).await?;

    let by = actor_by_id(tx, &envelope.org, actor).await?;
    let order = ordered(tx, envelope, &control, cause, &by, at).await?;
    let certificate = DestructionCertificate {
        certificate_type: CERTIFICATE_TYPE.into(),
        certificate_version: "1.0".into(),
        issuer: vault_in::issuer(core, &envelope.org),
        installation: log::installation(core, tx).await?,
        made_out_to: order.made_out_to,
        record: CertifiedRecord {
            envelope_id: envelope.id.clone(),
            organization_id: envelope.org.clone(),
            controller_id: control.controller.clone(),
            kind: envelope.kind,
            status: envelope.status,
            created_at: envelope.created_at,
            hash_algorithm: "SHA-256".into(),
            document_hash: envelope.record.document_hash.clone(),
        },
        cause: cause.clone(),
        acts: order.acts,
        destroyed: files(tx, envelope).await?,
        ledger: last_entry(tx, envelope).await?,
        destroyed_at: at,
    };

    let content = json!(certificate);
    let sha256 = canonical_sha256(&content);
    let destroyed = DestroyedRecord {
        org: envelope.org.clone(),
        envelope: envelope.id.clone(),
        certificate: content.to_string(),
        begun_at: at,
        destroyed_at: None,
    };
    envelopes::set_destruction(tx, envelope, EnvelopeDestruction::Destroying, at).await?;
    rows::insert_destroyed(tx, &destroyed).await?;
    record_rows::close(tx, envelope).await?;

    let mut details = json!(cause);
    details["certificate_sha256"] = json!(sha256);
    details["destroyed"] = json!(certificate.destroyed);
    let action = EventType::RecordDestroyed.as_str();
    events::record(tx, envelope, &by, action, details, at).await?;

    // After the jobs of the record were removed. Without it, a crash would leave the record unreadable and undeleted.
    let job = DestroyRecord {
        envelope: envelope.id.clone(),
        cause: cause.clone(),
    };
    let key = envelope.id.as_str();
    if is_erasure {
        // One of an earlier request may have failed for good. A request begins within its own job, which continues.
        jobs::remove::<DestroyRecord>(tx, &envelope.org, key).await?;
    }
    jobs::insert(tx, &envelope.org, &job, Some(key), at).await?;
    Ok(())
}

/// Refuses a destruction early, with all reasons of [`begin`] and without a lock. A record of a request also needs the
/// consent of the party that controls it.
pub(super) async fn check(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    record: Option<&DestructionRecord>,
    now: Timestamp,
) -> Result<ControlRecord, ServiceError> {
    let control = control_rows::of_envelope(connection, envelope).await?;
    require_destroyable(connection, envelope, &control, false, now).await?;
    legal_holds::check(connection, Some(&envelope.org), envelope).await?;
    if let Some(record) = record {
        require_consent(&control, Some(record))?;
    }
    Ok(control)
}

/// Refuses the destruction of a record that is not final, is retained, or in which another party has an open right. The erasure
/// of a person takes envelopes that were never sent along: nothing but the sender's work is in them.
async fn require_destroyable(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    control: &ControlRecord,
    is_erasure: bool,
    now: Timestamp,
) -> Result<(), ServiceError> {
    if envelope.destruction.is_some() {
        return Err(StoreError::Destroyed.into());
    }
    let is_draft = is_erasure && envelope.status.is_unsent();
    if !is_final(envelope.status) && !is_draft {
        let message = format!(
            "An envelope with status {} is not final; only final records are destroyed",
            envelope.status
        );
        return Err(Problem::new(ProblemKind::State, "record_not_final", message).into());
    }

    if control.pledge.is_some() {
        return Err(ControlProblem::Pledged.into());
    }
    let is_offered = control.named.is_some() || control.transfer.is_some();
    let is_asked = control.release.is_some() && control.stage != ControlStage::Released;
    if is_offered || is_asked {
        let message = "The record is offered to a party, or a release of it waits for an answer";
        return Err(ControlProblem::refused(RefusalReason::OutOfOrder, message).into());
    }

    let Some(retained) = retained(connection, envelope, now).await? else {
        return Ok(());
    };
    let message = format!(
        "The schedule {} keeps this record longer",
        retained.schedule
    );
    let details = json!({ "schedule": retained.schedule, "destroy_after": retained.destroy_after });
    let problem = Problem::new(ProblemKind::State, "retention_running", message);
    Err(problem.with_details(details).into())
}

/// Returns whether nothing can happen to an envelope any more but a release from the vault.
fn is_final(status: EnvelopeStatus) -> bool {
    matches!(
        status,
        EnvelopeStatus::Vaulted
            | EnvelopeStatus::VaultedOut
            | EnvelopeStatus::Voided
            | EnvelopeStatus::Declined
            | EnvelopeStatus::Expired
    )
}

/// Returns the retention that keeps a record; none if it is due, or no schedule matches it.
async fn retained(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    now: Timestamp,
) -> Result<Option<Retention>, StoreError> {
    let own = retention::schedules(connection, &envelope.org).await?;
    let found = retention::candidate(connection, &envelope.org, &envelope.id).await?;
    let kept = own.zip(found);
    let kept = kept.and_then(|(own, found)| Retention::of(&own.schedules, &found.facts));
    Ok(kept.filter(|kept| !kept.is_due(now.date())))
}

/// Requires the consent of the party that controls a record, unless its originator does.
fn require_consent(
    control: &ControlRecord,
    record: Option<&DestructionRecord>,
) -> Result<(), ServiceError> {
    // A consent of an earlier controller does not bind the present one.
    let consented = record.filter(|record| record.controller == control.controller);
    let consented = consented.is_some_and(|record| record.consented.is_some());
    if control.controller == control.org || consented {
        return Ok(());
    }

    let message = "Another organization controls this record and has to consent first; after a change of control, request the \
                   destruction again";
    let problem = Problem::new(ProblemKind::State, "consent_missing", message);
    let details = json!({ "controller": control.controller });
    Err(problem.with_details(details).into())
}

/// Acts behind a destruction.
struct DestructionOrder {
    acts: Vec<CertifiedAct>,
    made_out_to: Option<String>,
}

/// Returns the acts behind a destruction. Refuses one that people did not order in two steps, or that lacks a consent.
async fn ordered(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    control: &ControlRecord,
    cause: &DestructionCause,
    by: &str,
    at: Timestamp,
) -> Result<DestructionOrder, ServiceError> {
    let id = match cause {
        DestructionCause::Destruction(id) => id,
        DestructionCause::Erasure(_) => {
            require_consent(control, None)?;
            let act = CertifiedAct {
                act: "erased".into(),
                organization_id: envelope.org.clone(),
                by: by.into(),
                role: None,
                at,
            };
            return Ok(DestructionOrder {
                acts: vec![act],
                made_out_to: None,
            });
        }
    };

    let request = rows::get(tx, &envelope.org, id).await?.ok_or(UNKNOWN)?;
    let record = rows::record(tx, envelope, id).await?.ok_or(UNKNOWN)?;
    require_consent(control, Some(&record))?;
    let (Some(authorized), Some(carried_out)) = (&request.authorized, &request.carried_out) else {
        let message = "The destruction was not authorized and carried out by two people";
        return Err(ServiceError::Conflict(message.into()));
    };

    let mut acts = vec![
        CertifiedAct::of("requested", &request.requested),
        CertifiedAct::of("authorized", authorized),
        CertifiedAct::of("carried_out", carried_out),
    ];
    let consented = record.consented.iter();
    acts.extend(consented.map(|step| CertifiedAct::of("consented", step)));
    acts.sort_by_key(|act| act.at);
    Ok(DestructionOrder {
        acts,
        made_out_to: request.certificate_recipient,
    })
}

/// Returns the SHA-256 of each file of a record, by the file's role.
async fn files(
    connection: &mut SqlConnection,
    envelope: &Envelope,
) -> Result<BTreeMap<String, Vec<String>>, StoreError> {
    let (org, record) = (&envelope.org, &envelope.record);
    let seal = seal_states::of_envelope(connection, org, &envelope.id).await?;
    let updates = seal.and_then(|seal| seal.updates);
    let imported = envelope.imported().and_then(|origin| origin.certificate);
    let imported = imported.map(|certificate| certificate.file.0);
    let named = [
        ("upload", envelope.upload.as_ref()),
        ("authoritative", record.authoritative.file()),
        ("copy", record.copy.as_ref()),
        ("certificate", record.certificate.as_ref()),
        ("custody_record", record.custody_record.as_ref()),
        ("seal_updates", updates.as_ref()),
        ("certificate_of_completion", imported.as_ref()),
    ];
    let named = named.into_iter().filter_map(|(name, file)| {
        let digest = file?.sha256.clone();
        Some((name.to_owned(), vec![digest]))
    });
    let mut files: BTreeMap<String, Vec<String>> = named.collect();

    let (signed, attached) = record_rows::room_digests(connection, envelope).await?;
    for (name, digests) in [("executed", signed), ("attachments", attached)] {
        if !digests.is_empty() {
            files.insert(name.to_owned(), digests);
        }
    }
    Ok(files)
}

/// Returns the last entry of a record's ledger.
async fn last_entry(
    connection: &mut SqlConnection,
    envelope: &Envelope,
) -> Result<CertifiedLedger, StoreError> {
    let (org, id) = (&envelope.org, &envelope.id);
    let sequence = ledger::last_sequence(connection, org, id).await?;
    let last = ledger::behind(connection, org, id, sequence - 1, 1).await?;
    let hash = last.into_iter().next().map(|entry| entry.hash);
    Ok(CertifiedLedger {
        sequence,
        hash: hash.unwrap_or_default(),
    })
}

/// Returns id and role of the user behind an actor; none for keys, and for people known only to an issuer.
pub(super) async fn user_of(
    connection: &mut SqlConnection,
    org: &OrgId,
    actor: &str,
) -> Result<Option<(UserId, Role)>, StoreError> {
    let Some(email) = actor.strip_prefix("user:") else {
        return Ok(None);
    };
    let found = users::by_address(connection, org, &email.trim().to_lowercase()).await?;
    Ok(found.map(|user| (user.id, user.role)))
}

/// Returns an actor without the address of a person.
async fn actor_by_id(
    connection: &mut SqlConnection,
    org: &OrgId,
    actor: &str,
) -> Result<String, StoreError> {
    let Some(name) = actor.strip_prefix("user:") else {
        return Ok(actor.to_owned());
    };
    // Steps of a request name the id already.
    if UserId::parse(name).is_some() {
        return Ok(actor.to_owned());
    }
    let user = user_of(connection, org, actor).await?;
    Ok(user.map_or_else(|| "user".to_owned(), |(id, _)| format!("user:{id}")))
}

/// Adds the envelope to the details of a refusal, for requests about several.
pub(super) fn about(error: ServiceError, envelope: &Envelope) -> ServiceError {
    let mut problem = match error {
        ServiceError::Problem(problem) => problem,
        ServiceError::Control(problem) => Problem::from(&problem),
        error => return error,
    };
    let mut details = problem
        .details
        .map_or_else(|| json!({}), |details| *details);
    if let Value::Object(members) = &mut details {
        members.insert("envelope_id".into(), json!(envelope.id));
    }
    problem.details = Some(Box::new(details));
    problem.into()
}
