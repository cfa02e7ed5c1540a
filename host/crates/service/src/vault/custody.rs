//! The custody ledger of an envelope, and its evidence bundle.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::control::releases;
use crate::envelopes::consumer::CONSUMER_CONSENT;
use crate::facts;
use crate::vault::{Vault, evidence_copy, long_term};
use holdfast_adapters::files::{FilesError, SpooledFile};
use holdfast_components::contract_facts::LoneFactReader;
use holdfast_components::rules::ComplianceRules;
use holdfast_components::{known_compliance, known_digests};
use holdfast_domain::component::EvidenceParticipant;
use holdfast_domain::envelope::{Envelope, StoredFile};
use holdfast_domain::event::EventType;
use holdfast_domain::fact_map::FACTS_READ;
use holdfast_domain::ledger::LedgerChain as _;
use holdfast_domain::ledger::{CERTIFIED, SEAL_EXTENDED, shown};
use holdfast_evidence::formats::{
    AUTHORITATIVE, CERTIFICATE, COMPONENT_LEDGER, COMPONENTS, COPY, CUSTODY_RECORD, ComponentEntry,
    ComponentLedger, CustodyLedger, DISCLOSURES, FACTS, LEDGER, SEAL_UPDATES,
};
use holdfast_evidence::{Bundle, Facts, Rules, TrustRoots, TrustedLogs, VerificationReport};
use holdfast_platform::components::{self, ComponentManager, ComponentOwner};
use holdfast_platform::log;
use holdfast_platform::lookup;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::{disclosures, ledger};

/// Interval and limit of waiting for the newest entries to be placed in the log.
const PLACE_WAIT: Duration = Duration::from_millis(100);
const PLACE_WAITS: u32 = 30;

/// Returns the ledger of an envelope of the caller's organization.
///
/// Waits for recent entries to be placed in the log first: this process places them, or
/// the node that holds the sequencer's lease does within a second.
pub async fn ledger(
    core: &Core,
    vault: &Vault,
    caller: &Caller,
    id: &str,
) -> Result<CustodyLedger, ServiceError> {
    // Also of a destroyed record, because its ledger stays.
    let envelope = lookup::with_destroyed(core, caller, id).await?;
    ledger_of(core, vault, &envelope).await
}

pub(super) async fn ledger_of(
    core: &Core,
    vault: &Vault,
    envelope: &Envelope,
) -> Result<CustodyLedger, ServiceError> {
    let (org, id) = (&envelope.org, &envelope.id);
    let mut waits = 0;
    loop {
        // Read the proofs first: entries appended in between have none, so the loop waits.
        let log = log::evidence(core, org, id).await?;
        let mut connection = core.store.read().await?;
        let entries = shown(ledger::list(&mut connection, Some(org), id).await?);
        drop(connection);
        let proved = log.as_ref().map_or(0, |log| log.inclusion.len());
        // After three seconds the ledger goes out with the proofs that exist: a log that stands still
        // must not block its readers.
        if proved >= entries.len() || waits == PLACE_WAITS {
            return Ok(CustodyLedger {
                envelope_id: id.clone(),
                org_id: org.clone(),
                entries,
                log,
            });
        }

        // Zero means that another node holds the sequencer's lease. Otherwise this node has placed
        // entries, and reads again at once.
        if log::sequence(core, &vault.log).await? == 0 {
            waits += 1;
            tokio::time::sleep(PLACE_WAIT).await;
        }
    }
}

/// Returns the ledger of an envelope with a head that the quorum of witnesses has cosigned, if they do so in time.
async fn cosigned_ledger(
    core: &Core,
    vault: &Vault,
    envelope: &Envelope,
) -> Result<CustodyLedger, ServiceError> {
    let ledger = ledger_of(core, vault, envelope).await?;
    let head = ledger.log.as_ref().map(|log| log.checkpoint.as_str());
    let size = head.and_then(log::size_of).unwrap_or_default();
    if log::cosignatures::wait(core, size).await? {
        // Read again as a whole: another entry may have come meanwhile.
        return ledger_of(core, vault, envelope).await;
    }

    Ok(ledger)
}

/// Returns the disclosures that the stored certificate names, each once, as `disclosures/<sha256>.txt`.
async fn shown_disclosures(
    core: &Core,
    envelope: &Envelope,
    certificate: &StoredFile,
) -> Result<Vec<(String, BundleContent)>, ServiceError> {
    let certificate = core.files.get(certificate).await?;
    // Rules of an organization may write another certificate.
    let certificate: Value = serde_json::from_slice(&certificate).unwrap_or_default();
    let consents = certificate[CONSUMER_CONSENT].as_array();
    let digest = |consent: &Value| Some(consent["disclosure_sha256"].as_str()?.to_owned());
    let digests: BTreeSet<String> = consents.into_iter().flatten().filter_map(digest).collect();
    let mut files = Vec::new();

    let mut connection = core.store.read().await?;
    for digest in digests {
        let body = disclosures::body(&mut connection, &envelope.org, &digest).await?;
        if let Some(body) = body {
            let name = format!("{DISCLOSURES}/{digest}.txt");
            files.push((name, BundleContent::Made(body.into())));
        }
    }

    Ok(files)
}

/// Size limit in bytes of components in bundles. Larger ones can be downloaded instead.
const COMPONENT_LIMIT: i64 = 1024 * 1024;

/// Content of a bundle's file.
pub(crate) enum BundleContent {
    Stored(StoredFile),
    Made(Bytes),
    Spooled(SpooledFile),
}

/// Writes the evidence of a released envelope to a zip file, for its organization and for the party that
/// controls it. Documents are streamed and never held in memory.
///
/// A bundle exists only after vault-out: the live copy leaves the vault only through its single-use links. Its
/// PDF has the bytes of the authoritative copy, so that every recipient can verify them; a notice in the zip and in
/// the ledger names it an evidence copy. Every export is recorded before it is made.
pub async fn bundle(
    core: &Core,
    vault: &Vault,
    caller: &Caller,
    id: &str,
) -> Result<SpooledFile, ServiceError> {
    let envelope = exportable(core, caller, id).await?;
    // Recorded first: a crash leaves an entry without an export, never an export without an entry.
    let released = evidence_copy::record_export(core, caller, &envelope).await?;
    let name_of_pdf = evidence_copy::name_of_pdf(&released);

    zipped(core, files(core, vault, &envelope, name_of_pdf).await?).await
}

/// Writes files to a zip file. Documents are streamed and never held in memory.
pub(crate) async fn zipped(
    core: &Core,
    files: Vec<(String, BundleContent)>,
) -> Result<SpooledFile, ServiceError> {
    let folder = core.config.spool_folder();
    // One waits while another one is written: many files need few open ones, and little space beside the zip.
    let (sender, mut receiver) = mpsc::channel::<(String, Box<dyn io::Read + Send>)>(1);
    let written = SpooledFile::written(&folder, move |file| {
        let mut zip = zip::ZipWriter::new(file);
        while let Some((name, mut source)) = receiver.blocking_recv() {
            zip.start_file(name, zip::write::SimpleFileOptions::default())?;
            io::copy(&mut source, &mut zip)?;
        }

        zip.finish()?;
        Ok(())
    });
    let read = async {
        // Owned by this future, so that the channel closes and the writer ends after the last file.
        let sender = sender;
        for (name, content) in files {
            let source = opened(core, content).await?;
            // The writer failed, which has the reason.
            if sender.send((name, source)).await.is_err() {
                break;
            }
        }
        Ok::<(), ServiceError>(())
    };

    // The writer succeeds with half of the files after a failed read, so the reader's error counts first.
    let (written, read) = tokio::join!(written, read);
    read?;
    Ok(written.map_err(FilesError::Spool)?)
}

/// Opens the content of a file for a blocking reader.
async fn opened(
    core: &Core,
    content: BundleContent,
) -> Result<Box<dyn io::Read + Send>, ServiceError> {
    let spooled = match content {
        BundleContent::Made(bytes) => return Ok(Box::new(io::Cursor::new(bytes))),
        BundleContent::Stored(file) => {
            core.files
                .spooled(&file, &core.config.spool_folder())
                .await?
        }
        BundleContent::Spooled(file) => file,
    };
    Ok(Box::new(spooled.into_file().map_err(FilesError::Spool)?))
}

/// Returns a released envelope with a bundle that the caller may have: one of its own organization, or one that it
/// controls.
pub async fn exportable(core: &Core, caller: &Caller, id: &str) -> Result<Envelope, ServiceError> {
    let envelope = match lookup::envelope(core, caller, id).await {
        // `get` finds records of the caller's organization only. The controller is often another
        // organization.
        Err(ServiceError::NotFound(_)) => releases::controlled(core, caller, id).await?,
        own => own?,
    };
    if envelope.record.authoritative.archived().is_none() {
        return Err(ServiceError::Conflict(
            "Envelope has not been released".into(),
        ));
    }

    releases::permit_archive(&mut *core.store.read().await?, caller, &envelope).await?;
    Ok(envelope)
}

/// Verifies the evidence of a vaulted or released envelope with all that this installation knows.
///
/// # Errors
/// [`ServiceError::NotFound`] for an unknown envelope, [`ServiceError::Conflict`] for one without evidence.
pub async fn verify(
    core: &Core,
    management: &Arc<ComponentManager>,
    vault: &Vault,
    caller: &Caller,
    id: &str,
    mut trusted: TrustedLogs,
) -> Result<VerificationReport, ServiceError> {
    if let Some(key) = log::verifier(core).await? {
        trusted.installation(key);
    }

    let bundle = evidence(core, vault, caller, id).await?;
    let rules = deciding_rules(core, management, &bundle).await;
    let reader = fact_reader(core, management, &bundle).await;

    // Hashes and signatures of whole documents, off the threads of requests.
    let verified = tokio::task::spawn_blocking(move || {
        let rules: Rules = match rules {
            Ok(rules) => Ok(Box::new(rules)),
            Err(why) => Err(why),
        };
        let reader: Facts = match reader {
            Ok(reader) => Ok(Box::new(reader)),
            Err(why) => Err(why),
        };
        holdfast_evidence::verify(&bundle, &rules, &reader, &trusted)
    });
    let verified = verified
        .await
        .map_err(|error| ServiceError::Internal(error.to_string()))?;

    verified.map_err(|error| ServiceError::Internal(format!("evidence of {id}: {error}")))
}

/// Returns the trust anchors that this installation has besides its log: built-in components, and the
/// configured roots of time stamping authorities.
///
/// # Errors
/// The file with the roots cannot be read.
pub fn own_trust(core: &Core) -> Result<TrustedLogs, ServiceError> {
    let mut trusted = TrustedLogs::default();
    trusted.components(known_digests());
    if let Some(file) = &core.config.seal.timestamp_trust_file {
        let roots = TrustRoots::read(file);
        let roots = roots.map_err(|error| ServiceError::Internal(error.to_string()))?;
        trusted.timestamps(roots);
    }
    Ok(trusted)
}

/// Returns the rules component that made the certificate.
async fn deciding_rules(
    core: &Core,
    management: &Arc<ComponentManager>,
    bundle: &Bundle,
) -> Result<ComplianceRules, String> {
    let Some(named) = bundle.deciding_component() else {
        return Err("the ledger names no rules component".into());
    };

    // The packs of all releases are part of this program. Only an uploaded component has to be loaded.
    let artifact = match known_compliance(&named) {
        Some(known) => known,
        None => components::that_decided(core, management, &named)
            .await
            .map_err(|error| format!("the rules component {named}: {error}"))?,
    };
    let rules = core.components.compliance_from(&artifact);

    rules.map_err(|error| error.to_string())
}

/// Returns the component that read the facts of the contract.
async fn fact_reader(
    core: &Core,
    management: &Arc<ComponentManager>,
    bundle: &Bundle,
) -> Result<LoneFactReader, String> {
    let Some(named) = bundle.fact_reader() else {
        return Err("the bundle has no facts".into());
    };

    let artifact = components::that_decided(core, management, &named).await;
    let artifact = artifact.map_err(|error| format!("the component {named}: {error}"))?;
    let reader = core.components.fact_reader_from(&artifact);
    reader.map_err(|error| error.to_string())
}

/// Returns the evidence of a vaulted or released envelope for verification on this
/// machine. It may contain the live authoritative copy, which must not leave the vault.
pub async fn evidence(
    core: &Core,
    vault: &Vault,
    caller: &Caller,
    id: &str,
) -> Result<Bundle, ServiceError> {
    let envelope = lookup::envelope(core, caller, id).await?;
    let in_vault = envelope.record.authoritative.archived().is_none();
    let mut read = Vec::new();
    for (name, content) in files(core, vault, &envelope, AUTHORITATIVE).await? {
        let bytes = match content {
            BundleContent::Made(bytes) => bytes,
            BundleContent::Stored(file) => core.files.get(&file).await?,
            BundleContent::Spooled(file) => file.read().await.map_err(FilesError::Spool)?,
        };
        read.push((name, bytes));
    }

    Ok(Bundle::of_installation(read, in_vault))
}

/// Returns the bundle's files with their names.
async fn files(
    core: &Core,
    vault: &Vault,
    envelope: &Envelope,
    name_of_pdf: &str,
) -> Result<Vec<(String, BundleContent)>, ServiceError> {
    let ledger = cosigned_ledger(core, vault, envelope).await?;
    let authoritative = envelope.record.authoritative.file();
    let mut files = Vec::new();
    for (name, file) in [
        (name_of_pdf, authoritative),
        (COPY, envelope.record.copy.as_ref()),
        (CERTIFICATE, envelope.record.certificate.as_ref()),
        (CUSTODY_RECORD, envelope.record.custody_record.as_ref()),
    ] {
        let file =
            file.ok_or_else(|| ServiceError::Conflict("Envelope has not been vaulted".into()))?;
        files.push((name.to_owned(), BundleContent::Stored(file.clone())));
    }

    // Of the newest export, which may be one that ran at the same time: a verifier compares the two.
    if let Some(notice) = evidence_copy::notice_of(&ledger.entries) {
        let notice = Bytes::from(notice.to_owned());
        files.push((
            evidence_copy::NOTICE.to_owned(),
            BundleContent::Made(notice),
        ));
    }

    let named = participants(&ledger);
    let mut activations = activations(core, &ledger, &named).await?;

    // Only rules are replayed by a verifier, so provider plugins are left out.
    let rules = named.iter().filter(|one| !one.slot.is_provider());
    let digests: BTreeSet<&str> = rules.map(|one| one.identity.sha256.as_str()).collect();

    let mut carried = Vec::new();
    for digest in digests {
        if let Some(bytes) = components::bytes_of(core, digest, COMPONENT_LIMIT).await? {
            let name = format!("{COMPONENTS}/{digest}.wasm");
            files.push((name, BundleContent::Made(bytes)));
            carried.push(digest.to_owned());
        }
    }

    // The list shows whether a component was too large or was taken out.
    activations.carried_components = Some(carried);

    files.push((LEDGER.to_owned(), pretty(&ledger)?));
    files.push((COMPONENT_LEDGER.to_owned(), pretty(&activations)?));
    if let Some(certificate) = &envelope.record.certificate {
        files.extend(shown_disclosures(core, envelope, certificate).await?);
    }
    let updates = seal_updates(core, envelope, &ledger).await?;
    files.extend(updates.map(|updates| (SEAL_UPDATES.to_owned(), BundleContent::Made(updates))));
    // Facts that are being read for the first time have no entry in the ledger above.
    let has_facts = ledger
        .entries
        .iter()
        .any(|entry| entry.action == FACTS_READ);
    if has_facts && let Some(record) = facts::record(core, envelope).await? {
        files.push((FACTS.to_owned(), pretty(&record)?));
    }

    Ok(files)
}

/// Returns the updates behind the seal that the ledger names. Later ones, made since the ledger was read, are left out.
async fn seal_updates(
    core: &Core,
    envelope: &Envelope,
    ledger: &CustodyLedger,
) -> Result<Option<Bytes>, ServiceError> {
    let mut entries = ledger.entries.iter();
    let newest = entries.rfind(|entry| entry.action == SEAL_EXTENDED);
    let size = newest.and_then(|entry| entry.details["updates_size"].as_u64());
    let size = size.and_then(|size| usize::try_from(size).ok());
    let Some(size) = size else {
        return Ok(None);
    };
    let Some(file) = long_term::updates(core, envelope).await? else {
        return Ok(None);
    };

    let updates = core.files.get(&file).await?;
    Ok(Some(updates.slice(..size.min(updates.len()))))
}

fn pretty(value: &impl Serialize) -> Result<BundleContent, ServiceError> {
    let text = serde_json::to_vec_pretty(value);
    let text = text.map_err(|error| ServiceError::Internal(error.to_string()))?;
    Ok(BundleContent::Made(text.into()))
}

/// Returns the components that took part in the vaulting and in the newest certificate; none for ledgers of
/// earlier releases.
fn participants(ledger: &CustodyLedger) -> Vec<EvidenceParticipant> {
    let mut participants: Vec<EvidenceParticipant> = Vec::new();
    for action in [EventType::VaultStored.as_str(), CERTIFIED] {
        let newest = ledger.entries.iter().rfind(|entry| entry.action == action);
        let named = newest.map(|entry| entry.details["components"].clone());
        let named = named.and_then(|named| serde_json::from_value(named).ok());
        let named: Vec<EvidenceParticipant> = named.unwrap_or_default();
        for one in named {
            if !participants.contains(&one) {
                participants.push(one);
            }
        }
    }

    participants
}

/// Returns the component ledgers' entries with the activation and the upload of each activated component,
/// with inclusion proofs for the custody ledger's checkpoint.
async fn activations(
    core: &Core,
    ledger: &CustodyLedger,
    named: &[EvidenceParticipant],
) -> Result<ComponentLedger, ServiceError> {
    let mut entries = Vec::new();
    let activated: Vec<&EvidenceParticipant> = named
        .iter()
        .filter(|one| one.activation_id.is_some())
        .collect();
    if let Some(evidence) = ledger.log.as_ref().filter(|_| !activated.is_empty()) {
        // Test data is judged by the rules of its organization.
        let org = ComponentOwner::of(ledger.org_id.live());
        for owner in [org, ComponentOwner::installation()] {
            let history = components::history(core, &owner).await?;
            let proofs = log::inclusions(core, &owner, &evidence.checkpoint).await?;
            let placed = history.into_iter().filter_map(|entry| {
                let mut proofs = proofs.iter();
                // An entry behind the checkpoint has no proof yet, and a verifier could not place it.
                let place = proofs.find(|proof| proof.sequence == entry.sequence)?;
                Some(ComponentEntry {
                    chain: owner.chain().to_owned(),
                    entry,
                    leaf_index: place.leaf_index,
                    proof: place.proof.clone(),
                })
            });

            let is_needed = |entry: &ComponentEntry| {
                let mut activated = activated.iter();
                activated.any(|one| entry.activates(one) || entry.uploads(one))
            };
            entries.extend(placed.filter(is_needed));
        }
    }

    Ok(ComponentLedger {
        entries,
        carried_components: None,
    })
}
