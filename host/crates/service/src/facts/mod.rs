//! Facts of contracts: amounts, dates and numbers, with the places where they stand.
//!
//! A fact map of the organization names the facts. The component that reads documents gives values, and the sheet is a
//! function of map, document, fields and metadata: a verifier computes it again from the bundle.

mod inputs;
pub mod maps;
pub mod trial;

use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;

use holdfast_base::fair_queue::{QueueTurn, WorkOwner};
use holdfast_components::{CallFailure, ComponentError, Placement};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::ComponentIdentity;
use holdfast_domain::envelope::{Envelope, StoredFile};
use holdfast_domain::fact_map::{
    FACTS_READ, FactAnswers, FactInputs, FactMap, FactMapDocument, FactRecord, FactWords,
};
use holdfast_domain::facts::FactSheet;
use holdfast_domain::hash::sha256;
use holdfast_domain::id::{EnvelopeId, FactMapId, OrgId};
use holdfast_platform::documents::admit;
use holdfast_platform::providers::provider;
use holdfast_platform::{Caller, Core, Problem, ProblemKind, ServiceError, events, lookup};
use holdfast_store::contract_facts::{self, ContractFacts};
use holdfast_store::{WriteTransaction, envelopes, ledger, templates};
use inputs::ReadStage;

/// Returns the stored sheet of an envelope. Reads no document.
pub async fn stored(
    core: &Core,
    org: &OrgId,
    id: &EnvelopeId,
) -> Result<Option<FactSheet>, ServiceError> {
    let mut connection = core.store.read().await?;
    let stored = contract_facts::of_envelope(&mut connection, org, id).await?;
    Ok(stored.map(|stored| stored.sheet))
}

/// Returns the stored sheet of an envelope that is signed or in the vault, and reads it if there is none yet. `None` if
/// no map applies, and before the last signature.
pub async fn of_envelope(
    core: &Core,
    org: &OrgId,
    id: &EnvelopeId,
) -> Result<Option<FactSheet>, ServiceError> {
    if let Some(stored) = stored(core, org, id).await? {
        return Ok(Some(stored));
    }

    let mut connection = core.store.read().await?;
    let envelope = envelopes::get(&mut connection, org, id).await?;
    let envelope = envelope.ok_or(ServiceError::NotFound("Envelope"))?;
    if !envelope.status.is_signed() {
        return Ok(None);
    }
    let Some(map) = maps::applying(&mut connection, &envelope).await? else {
        return Ok(None);
    };

    drop(connection);
    let Some(record) = read_signed(core, &envelope, &map).await? else {
        return Ok(None);
    };
    Ok(Some(keep_late(core, &envelope, record).await?))
}

/// Returns the sheet of an envelope before it is sent: present entries count as signed, because they will be.
/// `None` if no map applies, or there is no document.
pub async fn of_draft(core: &Core, envelope: &Envelope) -> Result<Option<FactSheet>, ServiceError> {
    let mut connection = core.store.read().await?;
    let Some(map) = maps::applying(&mut connection, envelope).await? else {
        return Ok(None);
    };

    drop(connection);
    let record = read_unsigned(core, envelope, &map).await?;
    Ok(record.map(|record| record.sheet))
}

/// Returns the facts of an envelope of the caller's organization in any status.
///
/// # Errors
/// A problem with the code `no_facts` if no map applies, or the envelope has no document.
pub async fn shown(core: &Core, caller: &Caller, id: &str) -> Result<FactSheet, ServiceError> {
    let envelope = lookup::envelope(core, caller, id).await?;
    let sheet = if envelope.status.is_signed() {
        of_envelope(core, &envelope.org, &envelope.id).await?
    } else {
        of_draft(core, &envelope).await?
    };

    sheet.ok_or_else(|| {
        let why = "The envelope has no facts: no fact map applies to it, or it has no document. \
                   POST /fact-maps creates a map";
        Problem::new(ProblemKind::NotFound, "no_facts", why).into()
    })
}

/// Returns the facts that the custody ledger names, with all that is needed to read them again. `None` for an envelope
/// without any.
pub async fn record(core: &Core, envelope: &Envelope) -> Result<Option<FactRecord>, ServiceError> {
    let mut connection = core.store.read().await?;
    let stored = contract_facts::of_envelope(&mut connection, &envelope.org, &envelope.id).await?;
    let Some(stored) = stored else {
        return Ok(None);
    };

    let map = &stored.sheet.fact_map;
    let id = FactMapId::parse(&map.fact_map_id).ok_or(ServiceError::NotFound("Fact map"))?;
    let map = maps::version(&mut connection, &envelope.org, &id, map.version).await?;
    let map = map.ok_or(ServiceError::NotFound("Fact map"))?;
    Ok(Some(FactRecord {
        sheet: stored.sheet,
        map: map.document,
        inputs: stored.inputs,
    }))
}

/// Reads the facts of an executed document at vault-in. `None` if no map applies.
pub(crate) async fn read_executed(
    core: &Core,
    envelope: &Envelope,
    document: impl FnOnce() -> Option<Bytes> + Send,
) -> Result<Option<FactRecord>, ServiceError> {
    let mut connection = core.store.read().await?;
    let Some(map) = maps::applying(&mut connection, envelope).await? else {
        return Ok(None);
    };

    drop(connection);
    let Some(document) = document() else {
        return Ok(None);
    };
    let inputs = inputs::of(core, envelope, &map.document, ReadStage::Signed).await?;
    Ok(Some(read(core, envelope, &map, inputs, document).await?))
}

/// Stores the facts of an envelope that is vaulted in this transaction, or removes those that were read before. The
/// ledger gets the digests.
pub(crate) async fn keep(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    record: Option<&FactRecord>,
    now: Timestamp,
) -> Result<(), ServiceError> {
    let Some(record) = record else {
        // A map may have applied before, which no entry of the ledger names.
        return Ok(contract_facts::delete(tx, envelope).await?);
    };

    let (sheet, inputs) = (record.sheet.clone(), record.inputs.clone());
    let facts = ContractFacts::new(envelope, sheet, inputs, now);
    contract_facts::insert(tx, envelope, &facts).await?;
    let details = json!(record.commitment());
    events::record(tx, envelope, "system", FACTS_READ, details, now).await?;
    Ok(())
}

/// Stores facts that were read after the last signature, unless the envelope has some by now. Returns those that it has.
async fn keep_late(
    core: &Core,
    envelope: &Envelope,
    record: FactRecord,
) -> Result<FactSheet, ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let locked = envelopes::lock(&mut tx, &envelope.org, &envelope.id).await?;
    let Some(locked) = locked.filter(|locked| locked.status == envelope.status) else {
        return Ok(record.sheet);
    };
    let known = contract_facts::of_envelope(&mut tx, &locked.org, &locked.id).await?;
    // Another node can have read them with a newer map.
    if let Some(known) = known {
        return Ok(known.sheet);
    }

    // Before vault-in, which reads again, the ledger has nothing about facts.
    if locked.record.authoritative.file().is_some() {
        keep(&mut tx, &locked, Some(&record), now).await?;
    } else {
        let (sheet, inputs) = (record.sheet.clone(), record.inputs.clone());
        let facts = ContractFacts::new(&locked, sheet, inputs, now);
        contract_facts::insert(&mut tx, &locked, &facts).await?;
    }

    tx.commit().await?;
    Ok(record.sheet)
}

/// Reads the facts of an envelope with all signatures.
async fn read_signed(
    core: &Core,
    envelope: &Envelope,
    map: &FactMap,
) -> Result<Option<FactRecord>, ServiceError> {
    let Some((document, _room)) = signed_document(core, envelope).await? else {
        return Ok(None);
    };
    let inputs = inputs::of(core, envelope, &map.document, ReadStage::Signed).await?;
    Ok(Some(read(core, envelope, map, inputs, document).await?))
}

/// Reads the facts of an envelope that waits for signatures, or was not sent.
async fn read_unsigned(
    core: &Core,
    envelope: &Envelope,
    map: &FactMap,
) -> Result<Option<FactRecord>, ServiceError> {
    let Some(file) = unsigned_document(core, envelope).await? else {
        return Ok(None);
    };
    let (document, _room) = held(core, envelope, &file).await?;
    let inputs = inputs::of(core, envelope, &map.document, ReadStage::Draft).await?;
    Ok(Some(read(core, envelope, map, inputs, document).await?))
}

/// A document, with the right to hold it in memory. A document of a provider has none, because its size is unknown.
type HeldDocument = (Bytes, Option<QueueTurn>);

/// Returns the executed document: the beginning of the authoritative copy, or what the provider or the uploader has.
async fn signed_document(
    core: &Core,
    envelope: &Envelope,
) -> Result<Option<HeldDocument>, ServiceError> {
    if let Some(file) = envelope.record.authoritative.file() {
        let size = executed_size(core, envelope).await?;
        let (copy, room) = held(core, envelope, file).await?;
        let size = size.filter(|size| *size <= copy.len());
        return Ok(size.map(|size| (copy.slice(..size), room)));
    }

    match (envelope.submitted(), &envelope.upload) {
        (Some((instance, submission)), _) => {
            let signing = provider(core, &envelope.org, instance)?;
            Ok(Some((signing.signed_document(submission).await?, None)))
        }
        (None, Some(upload)) => Ok(Some(held(core, envelope, upload).await?)),
        (None, None) => Ok(None),
    }
}

async fn held(
    core: &Core,
    envelope: &Envelope,
    file: &StoredFile,
) -> Result<HeldDocument, ServiceError> {
    let owner = WorkOwner::new(&envelope.org, envelope.id.as_str());
    let room = admit(core, &owner, file.size.unsigned_abs()).await?;
    Ok((core.files.get(file).await?, Some(room)))
}

/// Returns the size of the document that the authoritative copy begins with. `None` for records of early releases.
async fn executed_size(core: &Core, envelope: &Envelope) -> Result<Option<usize>, ServiceError> {
    let mut connection = core.store.read().await?;
    let entries = ledger::list(&mut connection, Some(&envelope.org), &envelope.id).await?;
    let stored = entries.iter().rfind(|entry| entry.action == "vault.stored");
    let size = stored.and_then(|stored| {
        let rewritten = &stored.details["rewritten"]["rewritten_size"];
        let size = rewritten
            .as_u64()
            .or_else(|| stored.details["signed_document_size"].as_u64())?;
        usize::try_from(size).ok()
    });
    Ok(size)
}

/// Returns the document before its signatures.
async fn unsigned_document(
    core: &Core,
    envelope: &Envelope,
) -> Result<Option<StoredFile>, ServiceError> {
    let Some(id) = &envelope.template else {
        return Ok(envelope.upload.clone());
    };
    let mut connection = core.store.read().await?;
    let template = templates::find(&mut connection, &envelope.org, id).await?;
    Ok(template.and_then(|template| template.document))
}

/// Reads the facts of a document with a map.
async fn read(
    core: &Core,
    envelope: &Envelope,
    map: &FactMap,
    inputs: FactInputs,
    document: Bytes,
) -> Result<FactRecord, ServiceError> {
    let document_sha256 = sha256(&document);
    let words = map.document.words(&inputs);
    let (answers, component) = answers(core, envelope, &map.document, words, document).await?;
    let facts = map.document.facts(&inputs, &answers).ok_or_else(|| {
        let why = "it returned another number of readings than of facts".into();
        ComponentError::new(&component, CallFailure::Answer(why))
    })?;

    Ok(FactRecord {
        sheet: FactSheet {
            fact_map: map.identity(),
            component,
            document_sha256,
            facts,
        },
        map: map.document.clone(),
        inputs,
    })
}

/// Asks the organization's component, or the built-in one if that has no such function.
async fn answers(
    core: &Core,
    envelope: &Envelope,
    map: &FactMapDocument,
    words: Vec<FactWords>,
    document: Bytes,
) -> Result<(FactAnswers, ComponentIdentity), ServiceError> {
    let (map, words): (_, Arc<[FactWords]>) = (Arc::new(map.clone()), words.into());
    let owner = || WorkOwner::new(&envelope.org, envelope.id.as_str());
    let own = core.placement(Some(&envelope.org)).for_owner(owner());
    let embedded = core
        .components
        .embedded_placement(&envelope.org, core.store.priority())
        .for_owner(owner());

    for component in [&own, &embedded] {
        let asked = component.facts(document.clone(), map.clone(), words.clone());
        let answers = match asked.await {
            Err(error) if error.by_document => {
                tracing::warn!(envelope = %envelope.id, %error, "facts of a document cannot be read");
                without_document(component, &map, words.clone()).await?
            }
            answers => answers?,
        };
        if let Some(answers) = answers {
            return Ok((answers, component.identity()?));
        }
    }

    let component = embedded.identity()?;
    Err(ComponentError::absent(component, "it cannot read facts").into())
}

/// Gives values to fields and metadata only. What a map expects in the printed text is unreadable.
async fn without_document(
    component: &Placement,
    map: &FactMapDocument,
    words: Arc<[FactWords]>,
) -> Result<Option<FactAnswers>, ServiceError> {
    let mut unprinted = map.clone();
    for fact in &mut unprinted.facts {
        fact.printed.clear();
    }

    let asked = component.facts(Bytes::new(), Arc::new(unprinted), words);
    let answers = asked.await?.map(|answers| FactAnswers {
        printed: map.unreadable(),
        ..answers
    });
    Ok(answers)
}
