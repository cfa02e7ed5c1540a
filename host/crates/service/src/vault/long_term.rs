//! Seals that outlive their certificates (PAdES, ETSI EN 319 142-1).
//!
//! Behind the authoritative copy, as updates stored apart from it: the certificates with statements that they were not
//! revoked (B-LT), and time stamps over all of it, renewed before the newest one ends (B-LTA). The authoritative copy never
//! changes. A worker claims the seals that are due, soon after vault-in and then when a time stamp is about to end.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::Vault;
use holdfast_adapters::delivery::revocation::RevocationFetcher;
use holdfast_adapters::files::StorageArea;
use holdfast_adapters::sealing::{SIGNATURE_BYTES, UnstampedDocument, verify, verify_stamp};
use holdfast_base::fair_queue::WorkOwner;
use holdfast_base::faults;
use holdfast_components::rules::long_term::{ExtensionRequest, SignatureData, ValidationData};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, StoredFile};
use holdfast_domain::ledger::SEAL_EXTENDED;
use holdfast_domain::signature::{DigestAlgorithm, SealLevel, SealState};
use holdfast_evidence::revocation::{Certificate, NeededStatement, needed, vri_name};
use holdfast_evidence::stamp::TimeStamp;
use holdfast_platform::documents::{admit, marks};
use holdfast_platform::log::check_clock;
use holdfast_platform::{Core, ServiceError, events};
use holdfast_store::row::OwnedEnvelope;
use holdfast_store::seal_states::{self, StoredSealState};
use holdfast_store::{StoreError, WriteTransaction, chores, envelopes};

/// A new time stamp is added this long before the certificate of the newest one ends, or in the second half of its time if
/// that is shorter.
const AHEAD: Duration = Duration::from_secs(180 * 86_400);
/// Remaining time below which `doctor` warns, and below which a time stamp is added even without validation data.
pub const WARNING: Duration = Duration::from_secs(90 * 86_400);
/// Interval of attempts to get missing data, and the time after vault-in for which validation data are looked for.
const RETRY: Duration = Duration::from_secs(6 * 3600);
const LOOKED_FOR: Duration = Duration::from_secs(30 * 86_400);
/// Limit on the time of fetching the statements for one seal.
const PATIENCE: Duration = Duration::from_secs(20);
/// Interval at which the setting of the digest algorithm is compared.
const COMPARING: Duration = Duration::from_secs(3600);

/// Lease on a seal being worked on, and the number of seals claimed at once.
const LEASE: Duration = Duration::from_secs(900);
const BATCH: i64 = 8;

/// Returns what an envelope's seal proves. None for an envelope without a seal.
pub async fn state(core: &Core, envelope: &Envelope) -> Result<Option<SealState>, ServiceError> {
    // Most envelopes that are read are not in the vault yet.
    if envelope.record.authoritative.file().is_none() {
        return Ok(None);
    }

    let mut connection = core.store.read().await?;
    let stored = seal_states::of_envelope(&mut connection, &envelope.org, &envelope.id).await?;
    Ok(stored.map(|stored| SealState {
        level: stored.level,
        reason: stored.reason,
        provable_until: stored.ends_at,
    }))
}

/// Returns the file with the updates behind an envelope's seal.
pub(super) async fn updates(
    core: &Core,
    envelope: &Envelope,
) -> Result<Option<StoredFile>, StoreError> {
    let mut connection = core.store.read().await?;
    let stored = seal_states::of_envelope(&mut connection, &envelope.org, &envelope.id).await?;
    Ok(stored.and_then(|stored| stored.updates))
}

/// Stores the state of a seal that vault-in made. `untimed` is the reason why it has no trusted time.
pub(super) async fn begin(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    untimed: Option<String>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let has_time = untimed.is_none();
    let state = StoredSealState {
        level: if has_time {
            SealLevel::Time
        } else {
            SealLevel::Signature
        },
        reason: untimed,
        updates: None,
        stamps: 0,
        digest: None,
        ends_at: None,
        created_at: now,
        // Without a trusted time, nothing that is added later could show that the certificate was good.
        due_at: has_time.then_some(now),
    };
    seal_states::insert(tx, envelope, &state).await
}

/// Works on the seals that are due; returns their number. Several nodes may run it: each seal is leased to one of them, and an
/// update counts only if no other one was added meanwhile.
pub async fn sweep(core: &Core, vault: &Vault) -> Result<usize, ServiceError> {
    let now = core.clock.now();
    if vault.timestamps.is_some()
        && chores::claim(&core.store, "seal digests", now, now + COMPARING).await?
    {
        let mut tx = core.store.begin().await?;
        seal_states::make_due(&mut tx, core.config.seal.digest(), now, now + RETRY).await?;
        tx.commit().await?;
    }

    let due = seal_states::claim(&core.store, now, now + LEASE, BATCH).await?;
    for due in &due {
        // The claim ends with its lease, so the seal is due again after a failure.
        if let Err(error) = extend(core, vault, due).await {
            tracing::error!(envelope = %due.envelope, %error, "seal could not be extended");
        }
    }

    Ok(due.len())
}

/// Returns how many seals have a newest time stamp that ends within [`WARNING`], and the earliest end.
pub async fn ending(core: &Core) -> Result<(i64, Option<String>), StoreError> {
    let mut connection = core.store.read().await?;
    seal_states::ending(&mut connection, core.clock.now() + WARNING).await
}

/// The newest time stamp of a seal: its own, or one over the document.
struct NewestStamp {
    stamp: TimeStamp,
    digest: DigestAlgorithm,
    /// Encoded as in the document; none for the seal's own, which is a part of the seal.
    contents: Option<Vec<u8>>,
}

/// Returns when another time stamp is added.
fn renewal(stamp: &TimeStamp) -> Timestamp {
    let lasting = stamp.ends_at.as_millis() - stamp.at.as_millis();
    let half = Duration::from_millis(lasting.max(0).unsigned_abs() / 2);
    stamp.ends_at - AHEAD.min(half)
}

/// A sealed document with the updates behind it.
struct ExtendedSeal {
    whole: Bytes,
    /// Size of the authoritative copy, which the document begins with.
    sealed: usize,
    /// Certificates of the seal, the sealing one first.
    certificates: Vec<Certificate>,
    contents: Vec<u8>,
    /// The seal's own time stamp.
    own: TimeStamp,
    newest: NewestStamp,
}

impl ExtendedSeal {
    /// Reads a seal. The error is the reason why nothing can be added.
    fn read(authoritative: &[u8], whole: Bytes, stamps: i64) -> Result<Self, String> {
        let seal = verify(authoritative)?;
        let own = seal.stamp.ok_or("it has no trusted time")??;
        let newest = if stamps == 0 {
            NewestStamp {
                stamp: own.clone(),
                digest: DigestAlgorithm::Sha256,
                contents: None,
            }
        } else {
            let last = verify_stamp(&whole)?;
            NewestStamp {
                stamp: last.stamp,
                digest: last.algorithm,
                contents: Some(last.contents),
            }
        };

        Ok(Self {
            sealed: authoritative.len(),
            whole,
            certificates: seal.certificates,
            contents: seal.contents,
            own,
            newest,
        })
    }
}

/// Additions to a seal.
struct Addition {
    data: Option<SignatureData>,
    is_stamped: bool,
    /// Level afterwards, and why it is not higher.
    level: SealLevel,
    reason: Option<String>,
}

/// Adds missing data behind a seal, and schedules the next look at it. May run twice: of two workers that add to the
/// same seal, the first one to commit wins.
async fn extend(core: &Core, vault: &Vault, due: &OwnedEnvelope) -> Result<(), ServiceError> {
    let mut connection = core.store.read().await?;
    let envelope = envelopes::get(&mut connection, &due.org, &due.envelope).await?;
    let before = seal_states::of_envelope(&mut connection, &due.org, &due.envelope).await?;
    drop(connection);
    let (Some(envelope), Some(before)) = (envelope, before) else {
        return Ok(());
    };
    let Some(file) = envelope.record.authoritative.file() else {
        return settle(core, &envelope, &before, &given_up(&before, None), None).await;
    };

    let owner = WorkOwner::new(&envelope.org, envelope.id.as_str());
    let behind = before.updates.as_ref().map_or(0, |file| file.size);
    let _room = admit(core, &owner, (file.size + behind).unsigned_abs()).await?;
    let authoritative = core.files.get(file).await?;
    let updates = match &before.updates {
        Some(file) => core.files.get(file).await?,
        None => Bytes::new(),
    };

    // Hashes and signatures of whole documents, off the threads of requests.
    let stamps = before.stamps;
    let read = tokio::task::spawn_blocking(move || {
        let sealed = authoritative.len();
        let whole = marks::joined(authoritative, &updates);
        ExtendedSeal::read(&whole.slice(..sealed), whole, stamps)
    });
    let seal = match read.await.map_err(internal)? {
        Ok(seal) => seal,
        Err(why) => {
            let after = given_up(&before, Some(why));
            return settle(core, &envelope, &before, &after, None).await;
        }
    };
    let NewestStamp { stamp, digest, .. } = &seal.newest;
    if stamp.ends_at <= core.clock.now() {
        let ended = stamp.ends_at;
        let why =
            format!("its newest time stamp ended at {ended}: a later one cannot vouch for it");
        let after = StoredSealState {
            digest: Some(*digest),
            ends_at: Some(ended),
            ..given_up(&before, Some(why))
        };
        return settle(core, &envelope, &before, &after, None).await;
    }

    let work = SealWork {
        core,
        vault,
        envelope: &envelope,
        before: &before,
        seal: &seal,
    };
    let addition = work.decide().await;
    if addition.data.is_some() || addition.is_stamped {
        return work.add(addition, owner).await;
    }

    let after = work.after(&addition, &seal.newest.stamp, seal.newest.digest);
    settle(core, &envelope, &before, &after, None).await
}

/// Returns the state of a seal that nothing can be added to.
fn given_up(before: &StoredSealState, why: Option<String>) -> StoredSealState {
    StoredSealState {
        reason: why.or_else(|| before.reason.clone()),
        due_at: None,
        ..before.clone()
    }
}

/// One seal that is worked on.
struct SealWork<'a> {
    core: &'a Core,
    vault: &'a Vault,
    envelope: &'a Envelope,
    before: &'a StoredSealState,
    seal: &'a ExtendedSeal,
}

impl SealWork<'_> {
    /// Fetches missing data, and decides about the additions.
    async fn decide(&self) -> Addition {
        let (before, newest) = (self.before, &self.seal.newest);
        let now = self.core.clock.now();
        let had_data = matches!(before.level, SealLevel::Validation | SealLevel::Archive);
        let is_archived = before.level == SealLevel::Archive;
        let wants_stamp = self.wants_stamp(&newest.stamp, newest.digest, now);

        let missing = match self.gathered(is_archived, wants_stamp).await {
            Ok(data) => {
                // Statements prove something from their first time stamp on, so they get one at once, while they are
                // current and before the sealing certificate ends. A time stamp stays at the end, and covers all data.
                let is_stamped = wants_stamp || data.is_some();
                return Addition {
                    data,
                    is_stamped,
                    level: level(true, before.stamps > 0 || is_stamped),
                    reason: None,
                };
            }
            Err(missing) => missing,
        };

        // Data about the newest time stamp can be had until it ends. Without them, the chain would have a gap for ever.
        let can_wait = had_data && newest.stamp.ends_at > now + WARNING;
        // Data that were written without a time stamp need one, even if newer data cannot be had.
        let is_unstamped = before.level == SealLevel::Validation;
        let is_stamped = is_unstamped || (wants_stamp && !can_wait);
        let has_gap = is_stamped && before.stamps > 0;
        Addition {
            data: None,
            is_stamped,
            level: level(had_data && !has_gap, before.stamps > 0 || is_stamped),
            reason: (!is_unstamped).then_some(missing),
        }
    }

    /// Whether a time stamp is about to end, or has another digest algorithm than the operator wants.
    fn wants_stamp(&self, stamp: &TimeStamp, digest: DigestAlgorithm, now: Timestamp) -> bool {
        renewal(stamp) <= now || digest != self.core.config.seal.digest()
    }

    /// Fetches the statements that are missing. None if there are all. The error is the reason why they cannot be had.
    async fn gathered(
        &self,
        is_archived: bool,
        wants_stamp: bool,
    ) -> Result<Option<SignatureData>, String> {
        let seal = self.seal;
        let newest = seal.newest.contents.as_ref();
        let mut wanted = Vec::new();
        if !is_archived {
            wanted.extend([seal.certificates.clone(), seal.own.certificates()]);
        }
        // Those about the newest time stamp are taken before the next one, which covers them.
        if newest.is_some() && (wants_stamp || !is_archived) {
            wanted.push(seal.newest.stamp.certificates());
        }
        if wanted.is_empty() {
            return Ok(None);
        }

        let fetching = tokio::time::timeout(PATIENCE, self.fetched(&wanted));
        let data = fetching.await.map_err(|_| {
            let seconds = PATIENCE.as_secs();
            format!(
                "fetching the statements about the certificates took longer than {seconds} seconds"
            )
        })??;
        let about = newest.filter(|_| is_archived).unwrap_or(&seal.contents);
        Ok(Some(SignatureData {
            data,
            signature: vri_name(about),
        }))
    }

    /// Fetches the statements about lists of certificates, each with the signer's first.
    async fn fetched(&self, wanted: &[Vec<Certificate>]) -> Result<ValidationData, String> {
        let roots = self.vault.timestamps.as_ref();
        let roots = roots.map(|authority| authority.roots()).unwrap_or_default();
        let mut data = ValidationData {
            certificates: Vec::new(),
            crls: Vec::new(),
            ocsps: Vec::new(),
        };
        for carried in wanted {
            let needed = needed(carried, &roots)?;
            for statement in &needed.statements {
                let now = self.core.clock.now();
                fetch(&self.vault.revocation, statement, now, &mut data).await?;
            }
            for certificate in needed.certificates {
                add_new(&mut data.certificates, certificate);
            }
        }

        Ok(data)
    }

    /// Returns the state after an addition; `newest` is then the newest time stamp.
    fn after(
        &self,
        addition: &Addition,
        newest: &TimeStamp,
        digest: DigestAlgorithm,
    ) -> StoredSealState {
        let now = self.core.clock.now();
        let before = self.before;
        let is_looked_for = addition.reason.is_some() && now < before.created_at + LOOKED_FOR;
        let is_unarchived = addition.level == SealLevel::Validation;
        let due = if is_looked_for || is_unarchived || self.wants_stamp(newest, digest, now) {
            now + RETRY
        } else {
            renewal(newest)
        };

        StoredSealState {
            level: addition.level,
            reason: addition.reason.clone(),
            digest: Some(digest),
            ends_at: Some(newest.ends_at),
            due_at: Some(due),
            stamps: before.stamps + i64::from(addition.is_stamped),
            ..before.clone()
        }
    }

    /// Writes an addition behind the document. Validation data are written without a time stamp if there is none, unless
    /// they would stand behind an earlier one.
    async fn add(&self, addition: Addition, owner: WorkOwner) -> Result<(), ServiceError> {
        let Self {
            core,
            envelope,
            before,
            seal,
            ..
        } = *self;
        let documents = core
            .components
            .embedded_documents(&envelope.org, core.store.priority())
            .for_owner(owner.clone());
        let request = ExtensionRequest {
            data: addition.data.clone(),
            time_stamp_bytes: addition.is_stamped.then_some(SIGNATURE_BYTES),
        };
        let extension = match documents.extend(seal.whole.clone(), request).await? {
            Ok(extension) => extension,
            Err(error) => {
                let why = match ServiceError::from(error) {
                    ServiceError::Unreadable(file) => file.reason,
                    error => error.to_string(),
                };
                return settle(core, envelope, before, &given_up(before, Some(why)), None).await;
            }
        };

        let longer = [&seal.whole[..], &extension.appended].concat();
        let stamped = match extension.place {
            None => Ok((longer, seal.newest.stamp.clone(), seal.newest.digest)),
            Some((start, end)) => self.stamped(longer, (start, end)).await,
        };
        let (longer, stamp, digest) = match stamped {
            Ok(stamped) => stamped,
            Err(why) => {
                tracing::error!(envelope = %envelope.id, why, "seal gets no new time stamp");
                let unstamped = Addition {
                    is_stamped: false,
                    level: SealLevel::Validation,
                    reason: Some(why.clone()),
                    ..addition
                };
                let has_none = matches!(before.level, SealLevel::Signature | SealLevel::Time);
                if unstamped.data.is_some() && has_none && before.stamps == 0 {
                    return Box::pin(self.add(unstamped, owner)).await;
                }

                let after = StoredSealState {
                    reason: Some(why),
                    due_at: Some(core.clock.now() + RETRY),
                    ..before.clone()
                };
                return settle(core, envelope, before, &after, None).await;
            }
        };

        // Stored before the row refers to it. What a crash leaves is swept.
        let updates = Bytes::from(longer).slice(seal.sealed..);
        let (area, kind) = (StorageArea::Certificates, "application/octet-stream");
        let file = core
            .files
            .put(area, &envelope.org, envelope.id.as_str(), updates, kind)
            .await?;
        faults::pass("seal extended");

        let mut after = self.after(&addition, &stamp, digest);
        let added = addition.data.as_ref().map(|added| &added.data);
        let details = json!({
            "level": after.level,
            "reason": after.reason,
            "document_hash": envelope.record.document_hash,
            "updates_hash": file.sha256,
            "updates_size": file.size,
            "replaced_hash": before.updates.as_ref().map(|file| file.sha256.as_str()),
            "certificates": added.map_or(0, |data| data.certificates.len()),
            "lists": added.map_or(0, |data| data.crls.len()),
            "answers": added.map_or(0, |data| data.ocsps.len()),
            "time_stamp": addition.is_stamped.then(|| json!({
                "at": stamp.at.to_string(),
                "authority": stamp.authority,
                "ends_at": stamp.ends_at.to_string(),
                "digest": digest,
            })),
            "component": documents.identity()?,
        });
        after.updates = Some(file);

        // The entry has the time of this node, and nothing could correct a wrong one later.
        check_clock(core).await?;
        settle(core, envelope, before, &after, Some(details)).await
    }

    /// Asks the authority for a time stamp over a document, and writes it into its place. The error is the reason why there
    /// is none.
    async fn stamped(
        &self,
        longer: Vec<u8>,
        (start, end): (u64, u64),
    ) -> Result<(Vec<u8>, TimeStamp, DigestAlgorithm), String> {
        let authority = self.vault.timestamps.as_ref();
        let authority = authority.ok_or("no time stamping authority is configured")?;
        let place = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
        let place = place(start)..place(end);
        // The component chooses the place, and may not change anything else.
        if place.start < self.seal.whole.len() {
            return Err("the place of the time stamp is outside its update".into());
        }

        let algorithm = self.core.config.seal.digest();
        let unstamped = UnstampedDocument::new(longer, place).map_err(|error| error.to_string())?;
        let stamp = authority
            .stamp(algorithm, &unstamped.digest(algorithm))
            .await
            .map_err(|error| error.to_string())?;
        let longer = unstamped
            .finish(&stamp)
            .map_err(|error| error.to_string())?;

        Ok((longer, stamp, algorithm))
    }
}

/// Returns the level of a seal with a trusted time.
fn level(has_data: bool, is_archived: bool) -> SealLevel {
    match (has_data, is_archived) {
        (true, true) => SealLevel::Archive,
        (true, false) => SealLevel::Validation,
        (false, _) => SealLevel::Time,
    }
}

/// Fetches a statement about a certificate: from its responders, or else a list. The error is the reason why there is none.
async fn fetch(
    fetcher: &RevocationFetcher,
    statement: &NeededStatement,
    now: Timestamp,
    data: &mut ValidationData,
) -> Result<(), String> {
    // Without a time stamp before its end, nothing shows that the certificate was not revoked while it was good.
    let ends_at = statement.ends_at();
    if ends_at <= now {
        let subject = statement.subject();
        return Err(format!("the certificate of {subject} ended at {ends_at}"));
    }

    let sources = statement.sources();
    let mut why = "it names no list of revoked certificates and no responder".to_owned();
    for url in &sources.responders {
        match answer(fetcher, statement, url, now).await {
            Ok(answer) => {
                add_new(&mut data.ocsps, answer.into());
                return Ok(());
            }
            Err(problem) => why = problem,
        }
    }
    for url in &sources.lists {
        match list(fetcher, statement, url, now).await {
            Ok(list) => {
                add_new(&mut data.crls, list.into());
                return Ok(());
            }
            Err(problem) => why = problem,
        }
    }

    Err(format!("the certificate of {}: {why}", statement.subject()))
}

async fn answer(
    fetcher: &RevocationFetcher,
    statement: &NeededStatement,
    url: &str,
    now: Timestamp,
) -> Result<Bytes, String> {
    let is_current = |answer: &[u8]| statement.check_answer(answer, now).is_ok();
    let answer = fetcher.answer(url, statement.question()?, is_current).await;
    let answer = answer.map_err(|error| error.to_string())?;
    let checked = statement.check_answer(&answer, now);
    checked
        .map(|()| answer)
        .map_err(|why| format!("{url}: {why}"))
}

async fn list(
    fetcher: &RevocationFetcher,
    statement: &NeededStatement,
    url: &str,
    now: Timestamp,
) -> Result<Bytes, String> {
    let is_current = |list: &[u8]| statement.check_list(list, now).is_ok();
    let list = fetcher.list(url, is_current).await;
    let list = list.map_err(|error| error.to_string())?;
    let checked = statement.check_list(&list, now);
    checked
        .map(|()| list)
        .map_err(|why| format!("{url}: {why}"))
}

/// Adds bytes that are not in the list yet.
fn add_new(list: &mut Vec<Vec<u8>>, bytes: Vec<u8>) {
    if !list.contains(&bytes) {
        list.push(bytes);
    }
}

/// Stores the new state of a seal, with an entry of the ledger if something was added.
async fn settle(
    core: &Core,
    envelope: &Envelope,
    before: &StoredSealState,
    after: &StoredSealState,
    details: Option<Value>,
) -> Result<(), ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let Some(envelope) = envelopes::lock(&mut tx, &envelope.org, &envelope.id).await? else {
        return Ok(());
    };

    match seal_states::replace(&mut tx, &envelope, before, after).await {
        // Another worker added an update meanwhile, and scheduled the next look.
        Err(StoreError::Conflict) => return Ok(()),
        replaced => replaced?,
    }
    if let Some(details) = details {
        events::record(&mut tx, &envelope, "system", SEAL_EXTENDED, details, now).await?;
    }

    faults::pass("seal settled");
    Ok(tx.commit().await?)
}

fn internal(error: impl std::fmt::Display) -> ServiceError {
    ServiceError::Internal(error.to_string())
}
