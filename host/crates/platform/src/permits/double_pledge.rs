//! The guard against double pledging: a record that is registered twice gets one controller.
//!
//! Fingerprints are compared over all organizations of the installation. They are keyed hashes, so that
//! the database reveals no collateral. A refusal contains a date and a reference for both sides.

use std::time::Duration;

use serde_json::{Value, json};

use super::{PartyNames, control_view};
use crate::events;
use crate::problems::{ControlProblem, FoundConflict};
use crate::{Core, Problem, ProblemKind, ServiceError, ValidationIssue};
use holdfast_domain::at_rest::AtRestCipher;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::collateral::Collateral;
use holdfast_domain::control::ControlRecord;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::event::EventType;
use holdfast_domain::hash::hmac_sha256;
use holdfast_domain::id::OrgId;
use holdfast_domain::token::random;
use holdfast_store::fingerprints::{self as rows, DOCUMENT, Fingerprint, SIGNED_HERE};
use holdfast_store::row::OwnedEnvelope;
use holdfast_store::{Store, StoreError, WriteTransaction, control, disputes, envelopes, ledger};

/// Context that the key is sealed with.
pub const KEY_CONTEXT: &str = "fingerprints";

/// Time over which claims of unsigned documents are counted.
const CLAIM_PERIOD: Duration = Duration::from_secs(30 * 86_400);

/// Key of the fingerprints.
pub type FingerprintKey = [u8; 32];

/// Reports the claims that a record's act has outranked, once. May run twice.
pub async fn report_outranked(
    core: &Core,
    envelope: &Envelope,
    control: &ControlRecord,
) -> Result<(), ServiceError> {
    // Only a contract that was signed here outranks a claim.
    if envelope.is_upload() {
        return Ok(());
    }

    // Other records of the party that gained by the last act are no claims against it.
    let party = control.pledgee().or(control.named.as_ref());
    let party = party.unwrap_or(&control.controller);
    let record = OwnedEnvelope {
        org: control.org.clone(),
        envelope: control.envelope.clone(),
    };
    let mut connection = core.store.read().await?;
    let others = rows::other_records(&mut connection, control, control, party, true).await?;

    let mut found = Vec::new();
    for other in others.into_iter().filter(|other| other.outranked) {
        let claim = &other.record.envelope;
        // A pair that has met is in both ledgers already.
        if !disputes::have_met(&mut connection, &record, claim).await? {
            let record = record.clone();
            found.push(FoundConflict { record, other });
        }
    }

    drop(connection);
    for one in found {
        report(core, one).await?;
    }

    Ok(())
}

/// Returns the key of the fingerprints, which stays the same when the master key is replaced. Generates
/// it at the first start. `None` if no master key of this node opens it.
pub async fn load_key(
    store: &Store,
    cipher: &AtRestCipher,
) -> Result<Option<FingerprintKey>, StoreError> {
    let mut connection = store.read().await?;
    let stored = rows::key(&mut connection).await?;
    drop(connection);
    let sealed = match stored {
        Some(sealed) => Some(sealed),
        None => {
            let new = cipher.encrypt(&hex::encode(random::<32>()), KEY_CONTEXT);
            let mut tx = store.begin().await?;
            rows::insert_key(&mut tx, &new).await?;

            // Another node may have been first.
            let sealed = rows::key(&mut tx).await?;
            tx.commit().await?;
            sealed
        }
    };

    let opened = sealed.and_then(|sealed| cipher.open(&sealed, KEY_CONTEXT));
    let bytes = opened.and_then(|text| hex::decode(text).ok());
    Ok(bytes.and_then(|bytes| bytes.try_into().ok()))
}

pub fn key(core: &Core) -> Result<&FingerprintKey, ServiceError> {
    let key = core.fingerprint_key.as_ref();
    key.ok_or_else(|| ServiceError::Internal("the key of the fingerprints is unreadable".into()))
}

fn fingerprint(key: &FingerprintKey, kind: &str, of: &str) -> Fingerprint {
    Fingerprint {
        value: hex::encode(hmac_sha256(key, &[of.as_bytes()])),
        kind: kind.into(),
    }
}

/// Returns the fingerprints of declared collateral.
///
/// # Errors
/// The identifiers that are not valid.
pub fn of_collateral(
    core: &Core,
    originator: &OrgId,
    collateral: &[Collateral],
) -> Result<Vec<Fingerprint>, ServiceError> {
    if collateral.is_empty() {
        return Ok(Vec::new());
    }

    let (mut texts, mut issues) = (Vec::new(), Vec::new());
    for (index, one) in collateral.iter().enumerate() {
        match one.normalized(originator) {
            Ok(text) => texts.push((one.kind, text)),
            Err(message) => issues.push(ValidationIssue::new(
                "invalid_identifier",
                &["collateral", &index.to_string(), "value"],
                one.kind.as_str(),
                // Not repeated: it may be a mistyped number of another vehicle.
                "",
                message,
            )),
        }
    }

    if !issues.is_empty() {
        return Err(ServiceError::Invalid(issues));
    }

    let key = key(core)?;
    let all = texts.iter();
    Ok(all
        .map(|(kind, text)| fingerprint(key, kind.as_str(), text))
        .collect())
}

/// Refuses further declared collateral of documents that were signed elsewhere. Every organization can upload such a document, and
/// its claim holds up the records of others.
pub async fn permit_claims(
    core: &Core,
    tx: &mut WriteTransaction,
    org: &OrgId,
    declared: usize,
    now: Timestamp,
) -> Result<(), ServiceError> {
    let most = i64::from(core.config.control.unsigned_claims);
    // 0 is the operator's setting for no limit.
    if most == 0 || declared == 0 {
        return Ok(());
    }

    let known = rows::unsigned_claims(tx, org, now - CLAIM_PERIOD).await?;
    let declared = i64::try_from(declared).unwrap_or(i64::MAX);
    if known.saturating_add(declared) <= most {
        return Ok(());
    }

    let message = format!(
        "An organization declares collateral of {most} documents that were signed elsewhere in 30 days"
    );
    Err(Problem::new(ProblemKind::Quota(86_400), None, message).into())
}

/// Stores the fingerprints of a vaulted record's document, unless it has them: of the executed document,
/// and of both copies that this system made of it.
async fn register(
    core: &Core,
    tx: &mut WriteTransaction,
    envelope: &Envelope,
) -> Result<(), ServiceError> {
    if rows::has_document(tx, envelope).await? {
        return Ok(());
    }

    // Only the ledger has the hash of the executed document; the record has those of the marked copies.
    let stored = ledger::last_of(tx, &envelope.org, &envelope.id, "vault.stored").await?;
    let executed = stored
        .as_ref()
        .and_then(|entry| entry.details["signed_document_hash"].as_str());
    // The copies, too: a copy that left the vault could come back as an upload.
    let record = &envelope.record;
    let copies = [record.authoritative.file(), record.copy.as_ref()];
    let copies = copies
        .into_iter()
        .flatten()
        .map(|file| file.sha256.as_str());

    // Two people may sign the same words here, each in a ceremony of their own.
    let kind = if envelope.is_upload() {
        DOCUMENT
    } else {
        SIGNED_HERE
    };
    let key = key(core)?;
    let executed = executed.map(|hash| fingerprint(key, kind, hash));

    let copies = copies.map(|hash| fingerprint(key, DOCUMENT, hash));
    let all: Vec<Fingerprint> = executed.into_iter().chain(copies).collect();
    Ok(rows::insert(tx, &envelope.org, &envelope.id, &all).await?)
}

/// Refuses a change after which a party would have control, an offer of it or a pledge, while another
/// party has control or a pledge of a record with the same fingerprint. Passing control on waits for other such acts until the
/// transaction ends.
pub async fn check(
    core: &Core,
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    before: &ControlRecord,
    next: &ControlRecord,
) -> Result<(), ServiceError> {
    if next == before {
        return Ok(());
    }

    let passes = next.controller != before.controller;
    let pledges = next.pledge.is_some() && next.pledge != before.pledge;
    let gains = next
        .named
        .as_ref()
        .or(passes.then_some(&next.controller))
        .or(next.pledgee().filter(|_| pledges));

    // A record that returns to its originator is no longer pledged.
    let Some(party) = gains.filter(|party| **party != next.org) else {
        return Ok(());
    };

    // Before the lock, which is on the stored fingerprints.
    register(core, tx, envelope).await?;
    // An offer or a designation needs no lock: its acceptance is checked again.
    if passes || pledges {
        rows::lock(tx, next).await?;
    }

    let signed_here = !envelope.is_upload();
    let others = rows::other_records(tx, before, next, party, signed_here).await?;

    // Outranked claims are reported to both sides afterwards.
    let Some(other) = others.into_iter().find(|other| !other.outranked) else {
        return Ok(());
    };

    let record = OwnedEnvelope {
        org: next.org.clone(),
        envelope: next.envelope.clone(),
    };
    let found = FoundConflict { record, other };
    Err(ControlProblem::DoublePledge(Box::new(found)).into())
}

/// Records a refused act, or one that outranked a claim, in the ledgers of both records and emits events to their parties, after the
/// transaction of the act. The owner of the other record learns of the first attempt only. A dry run is recorded
/// too, as it shows its caller that the record is controlled. Returns the answer to the refused act.
pub async fn report(core: &Core, found: FoundConflict) -> Result<Problem, ServiceError> {
    let FoundConflict { record, other } = found;
    let event = if other.outranked {
        EventType::ControlDisputed
    } else {
        EventType::ControlConflict
    };
    let now = core.clock.now();

    let mut tx = core.store.committing().begin().await?;

    // In a fixed order, so that two reports of the same pair do not wait for each other forever.
    let mut pair = [record.clone(), other.record.clone()];
    pair.sort_by(|left, right| left.envelope.as_str().cmp(right.envelope.as_str()));
    let mut locked = Vec::new();
    for one in &pair {
        // Also of a record that is being destroyed: the claim of the other one was refused because of it.
        locked.extend(envelopes::lock_with_destroyed(&mut tx, &one.org, &one.envelope).await?);
    }

    for envelope in locked.iter().filter(|one| one.destruction.is_none()) {
        // The transaction of the refused act is gone, with the fingerprints of its document.
        register(core, &mut tx, envelope).await?;
    }

    // Counted for the pair, so that repeated attempts keep one reference.
    let counted = rows::count_conflict(&mut tx, &record, &other.record.envelope, now).await?;
    let (reference, attempts) = counted;
    let mut names = PartyNames::default();
    for envelope in locked {
        let own = envelope.id == record.envelope;
        if !own && attempts > 1 {
            continue;
        }

        let control = control::of_envelope(&mut tx, &envelope).await?;
        let mut data = json!(control_view(&mut names, &mut tx, &control).await?);
        data["reference"] = json!(reference);
        data["kind"] = json!(other.kind);
        data["since"] = json!(other.since);

        if other.outranked {
            data["step"] = "outranked".into();
            data["suspension"] = Value::Null;
        }

        let told = data.clone();
        events::record(&mut tx, &envelope, "system", event.as_str(), told, now).await?;
        events::emit(&mut tx, &envelope, event, data.clone(), now).await?;

        for party in control.parties() {
            if *party != envelope.org {
                events::emit_to_party(&mut tx, &envelope, party, event, &data, now).await?;
            }
        }
    }

    tx.commit().await?;

    // No name of the other party: a refusal must not tell who financed the collateral. The reference
    // serves a dispute.
    let message = format!(
        "Another party has controlled a record of this document or collateral since {}",
        other.since
    );
    let problem = Problem::new(ProblemKind::State, "already_controlled", message);
    Ok(problem.with_details(json!({ "since": other.since, "reference": reference })))
}

/// Reports the refusal of a double pledge, and returns the error for its caller. Returns other errors
/// as they are.
pub async fn reported(core: &Core, error: ServiceError) -> ServiceError {
    let ServiceError::Control(ControlProblem::DoublePledge(found)) = error else {
        return error;
    };
    let reported = report(core, *found).await;
    // A refusal without its reference is of no use to the sides, so a failed report is answered itself.
    reported.map_or_else(|error| error, Into::into)
}
