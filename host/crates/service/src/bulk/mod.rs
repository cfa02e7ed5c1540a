//! Bulk send: one document for up to 1,000 clients, with an envelope for each (specification, "Bulk
//! send").
//!
//! A batch is created (`draft`), gets its clients (`ready`) and is submitted (`running`). Workers
//! of all nodes then send its items: see [`drive`].

mod claim;
mod clients;
pub mod drive;
mod ending;
mod running;
pub mod watch;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::envelopes::consent::VaultConsent;
use crate::envelopes::lifecycle;
use crate::templates as template_service;
use crate::templates::selection::TemplateSelection;
use holdfast_components::rules::lifecycle::BatchTrigger;
use holdfast_domain::bulk::{
    Batch, BatchCounts, BatchItem, BatchStatus, DocumentSource, ItemStatus,
};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::VaultTerms;
use holdfast_domain::id::{BatchId, CustomerId, EnvelopeId, ItemId, PackageId, TemplateId};
use holdfast_domain::template::{SourceFormat, Template};
use holdfast_domain::warning::Warning;
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::permits::legal_holds;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::{WriteTransaction, bulk, templates};

pub use clients::{AddedClients, SetClients, set_clients};
pub use ending::tidy;
pub use running::{cancel, retry, submit};

/// Per-node state of bulk send.
#[derive(Default)]
pub struct BulkState {
    /// Limits concurrency at the providers.
    pub gates: drive::ProviderGates,
    /// Open progress streams.
    pub streams: watch::ProgressStreams,
    /// Open streams of console pages. They take no place from programs.
    pub pages: watch::ProgressStreams,
}

/// Body of `POST /bulk-send`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "name": "Privacy notice 2027", "document_source": "template",
    "source_template_id": "tmpl_01jdk7m3e8f4x9s2w5v6b0c1da", "add_me_as_signer": false,
    "auto_vault_enabled": true, "tag_ids": ["2027"],
}]))]
pub struct CreateBatch {
    #[schemars(length(min = 1, max = 500))]
    pub name: String,
    pub document_source: DocumentSource,
    /// Required for `template`.
    pub source_template_id: Option<String>,
    /// Required for `package`.
    pub source_package_id: Option<String>,
    /// Read only for `new`; otherwise the source decides.
    #[serde(default)]
    pub kba_required: bool,
    /// Whether the client signs before the sender. If not, both are invited at once.
    #[serde(default = "yes")]
    pub preserve_signing_order: bool,
    /// Whether the sender signs too, as the second party.
    #[serde(default)]
    pub add_me_as_signer: bool,
    #[serde(default)]
    pub auto_vault_enabled: bool,
    #[serde(default)]
    #[schemars(length(max = 100), inner(length(min = 1, max = 200)))]
    pub tag_ids: Vec<String>,
}

fn yes() -> bool {
    true
}

impl CreateBatch {
    /// Warns when `kba_required` has no effect: the specification reads it for a new document only.
    pub fn warnings(&self) -> Vec<Warning> {
        if !self.kba_required || self.document_source == DocumentSource::New {
            return Vec::new();
        }
        let message = "kba_required is as the source has it";
        let path = ["kba_required"];
        vec![Warning::new("member_without_effect", &path, message)]
    }
}

/// Body of `PATCH /bulk-send/{id}`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "name": "Privacy notice 2027, second run" }]))]
pub struct ChangeBatch {
    #[schemars(length(min = 1, max = 500))]
    pub name: Option<String>,
    /// Template that is cloned for each client.
    pub master_template_id: Option<String>,
    pub preserve_signing_order: Option<bool>,
    pub add_me_as_signer: Option<bool>,
    pub auto_vault_enabled: Option<bool>,
    #[schemars(length(max = 100), inner(length(min = 1, max = 200)))]
    pub tag_ids: Option<Vec<String>>,
    /// Only for `new`, and only before the editor was opened.
    pub kba_required: Option<bool>,
}

/// Bulk batch.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "batch_id": "bsb_01jdk7m3e8f4x9s2w5v6b0c1dh", "name": "Privacy notice 2027",
    "document_source": "template", "source_template_id": "tmpl_01jdk7m3e8f4x9s2w5v6b0c1da",
    "source_package_id": null, "kba_required": false, "preserve_signing_order": true,
    "add_me_as_signer": false, "auto_vault_enabled": false,
    "vault_in_terms_accepted_at": null, "vault_in_terms_accepted_by": null, "tag_ids": ["2027"],
    "master_template_id": "tmpl_01jdk7m3e8f4x9s2w5v6b0c1dj", "provider_instance": "embedded",
    "status": "running", "total_count": 1000, "sent_count": 412, "failed_count": 0,
    "skipped_count": 3, "created_by": "alex@maple.example",
    "created_at": "2026-11-21T09:30:00.000Z", "updated_at": "2026-11-21T09:41:07.250Z",
}]))]
pub struct BatchView {
    pub batch_id: BatchId,
    pub name: String,
    pub document_source: DocumentSource,
    pub source_template_id: Option<TemplateId>,
    pub source_package_id: Option<PackageId>,
    pub kba_required: bool,
    pub preserve_signing_order: bool,
    pub add_me_as_signer: bool,
    pub auto_vault_enabled: bool,
    /// Time of the acceptance that authorizes unattended vaulting.
    pub vault_in_terms_accepted_at: Option<Timestamp>,
    pub vault_in_terms_accepted_by: Option<String>,
    pub tag_ids: Vec<String>,
    pub master_template_id: Option<TemplateId>,
    pub provider_instance: Option<String>,
    pub status: BatchStatus,
    pub total_count: i64,
    pub sent_count: i64,
    pub failed_count: i64,
    pub skipped_count: i64,
    pub created_by: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl BatchView {
    fn of(batch: &Batch, counts: &BatchCounts) -> Self {
        let terms = batch.terms.as_ref();
        Self {
            batch_id: batch.id.clone(),
            name: batch.name.clone(),
            document_source: batch.source,
            source_template_id: batch.source_template.clone(),
            source_package_id: batch.source_package.clone(),
            kba_required: batch.kba_required,
            preserve_signing_order: batch.preserve_signing_order,
            add_me_as_signer: batch.add_me_as_signer,
            auto_vault_enabled: batch.auto_vault_enabled,
            vault_in_terms_accepted_at: terms.map(|terms| terms.accepted_at),
            vault_in_terms_accepted_by: terms.map(|terms| terms.accepted_by.clone()),
            tag_ids: batch.tags.clone(),
            master_template_id: batch.master.clone(),
            provider_instance: batch.provider_instance.clone(),
            status: batch.status,
            total_count: counts.total(),
            sent_count: counts.sent,
            failed_count: counts.failed,
            skipped_count: counts.skipped,
            created_by: batch.created_by.clone(),
            created_at: batch.created_at,
            updated_at: batch.updated_at,
        }
    }
}

/// One client of a batch.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ItemView {
    pub item_id: ItemId,
    pub customer_id: CustomerId,
    pub customer_name: String,
    pub email: Option<String>,
    pub status: ItemStatus,
    /// Null until the envelope is created.
    pub envelope_id: Option<EnvelopeId>,
    pub error: Option<String>,
    pub sent_at: Option<Timestamp>,
}

impl From<BatchItem> for ItemView {
    fn from(item: BatchItem) -> Self {
        Self {
            item_id: item.id,
            customer_id: item.customer,
            customer_name: item.customer_name,
            email: item.email,
            status: item.status,
            envelope_id: item.envelope,
            error: item.error,
            sent_at: item.sent_at,
        }
    }
}

/// Batch with all its items.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BatchOverview {
    pub batch: BatchView,
    pub counts: BatchCounts,
    /// In the order of the client list.
    pub items: Vec<ItemView>,
}

/// Progress of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BatchProgress {
    pub batch_id: BatchId,
    pub status: BatchStatus,
    pub counts: BatchCounts,
}

/// Deleted batch.
#[derive(Clone, Serialize, JsonSchema)]
pub struct DeletedBatch {
    pub batch_id: BatchId,
    pub deleted: bool,
}

const UNKNOWN: ServiceError = ServiceError::NotFound("Batch");

/// Creates a batch.
pub async fn create(
    core: &Core,
    caller: &Caller,
    request: CreateBatch,
    answer: &ResponseRecorder<BatchView>,
) -> Result<BatchView, ServiceError> {
    let source = source(&request)?;
    // Read before the batch exists, so a batch never begins with a document that cannot be sent.
    let selected = source.read(core, caller).await?;
    if let Some(selected) = &selected {
        check_priced(&selected.templates())?;
        check_fixed_text(&selected.templates())?;
    }

    // The requirement belongs to the document, as fixed at its creation. A
    // request decides for a new one only.
    let kba_required = match &selected {
        Some(selected) => selected.kba_required(),
        None => request.kba_required,
    };
    let status =
        lifecycle::next_batch_status(core, &caller.org, None, BatchTrigger::Create).await?;
    let now = core.clock.now();

    let id = |text: Option<String>| text.and_then(|text| TemplateId::parse(&text));
    let batch = Batch {
        id: BatchId::new(),
        org: caller.org.clone(),
        name: request.name,
        source: request.document_source,
        source_template: id(source.template_id),
        source_package: source.package_id.and_then(|text| PackageId::parse(&text)),
        kba_required,
        preserve_signing_order: request.preserve_signing_order,
        add_me_as_signer: request.add_me_as_signer,
        auto_vault_enabled: request.auto_vault_enabled,
        terms: None,
        tags: request.tag_ids,
        master: None,
        provider_instance: Some(core.signing_instance(&caller.org, kba_required)),
        submitted: None,
        status,
        runs: 0,
        created_by: caller.creator(),
        created_at: now,
        updated_at: now,
    };

    let view = BatchView::of(&batch, &BatchCounts::default());
    let mut tx = core.store.begin().await?;
    // Batch and idempotent answer commit together, so a repeat of the request finds this batch.
    bulk::insert(&mut tx, &batch).await?;
    answer.commit(tx, &view).await?;

    Ok(view)
}

/// Rejects Word templates with pricing tables, as the specification requires.
fn check_priced(templates: &[&Template]) -> Result<(), ServiceError> {
    let priced = |template: &&Template| {
        template.source_format == SourceFormat::Word && template.pricing_table
    };
    if templates.iter().any(priced) {
        Err(ServiceError::Semantic(
            "A word template with a pricing table cannot be sent in bulk".into(),
        ))
    } else {
        Ok(())
    }
}

/// Rejects templates with variables: a batch has one document for all clients.
fn check_fixed_text(templates: &[&Template]) -> Result<(), ServiceError> {
    if templates.iter().any(|one| one.word_source.is_some()) {
        Err(ServiceError::Semantic(
            "A template with variables cannot be sent in bulk: use fields with values of the clients"
                .into(),
        ))
    } else {
        Ok(())
    }
}

/// Returns the selection of the batch's source document.
fn source(request: &CreateBatch) -> Result<TemplateSelection, ServiceError> {
    let required = |name: &str, value: &Option<String>| match value {
        Some(_) => Ok(value.clone()),
        None => Err(ServiceError::Invalid(vec![
            holdfast_platform::ValidationIssue::new(
                "invalid_type",
                &[name],
                "string",
                "undefined",
                "Required",
            ),
        ])),
    };

    let mut source = TemplateSelection::default();
    match request.document_source {
        DocumentSource::Template => {
            source.template_id = required("source_template_id", &request.source_template_id)?;
        }
        DocumentSource::Package => {
            source.package_id = required("source_package_id", &request.source_package_id)?;
        }
        DocumentSource::New => {}
    }

    Ok(source)
}

/// Changes a batch that has not been submitted.
pub async fn change(
    core: &Core,
    caller: &Caller,
    id: &str,
    request: ChangeBatch,
) -> Result<BatchView, ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let mut batch = lock(&mut tx, caller, id).await?;
    if let Some(master) = &request.master_template_id {
        let unknown = || ServiceError::NotFound("Template");
        let master = TemplateId::parse(master).ok_or_else(unknown)?;
        let master = templates::get(&mut tx, &caller.org, &master).await?;
        let master = master.filter(|master| caller.sees(master));
        let master = master.ok_or_else(unknown)?;
        // Before the template is judged, so that a running batch is refused as such.
        check_open(core, &batch).await?;
        check_priced(&[&master])?;
        check_fixed_text(&[&master])?;

        // Taking such a template would drop the verification that the batch was created with.
        if batch.kba_required && !master.kba_required {
            return Err(ServiceError::Conflict(
                "The batch needs identity verification, which the template does not ask for".into(),
            ));
        }

        use_master(&mut batch, &master);
    }

    check_open(core, &batch).await?;
    if let Some(wanted) = request.kba_required
        && wanted != batch.kba_required
    {
        // Verified documents are stored at another provider instance, so the choice ends with the document.
        let free = batch.source == DocumentSource::New && batch.master.is_none();
        if !free {
            return Err(ServiceError::Conflict(
                "kba_required can be changed only of a new document and before the editor opens"
                    .into(),
            ));
        }

        batch.kba_required = wanted;
        batch.provider_instance = Some(core.signing_instance(&caller.org, wanted));
    }

    if let Some(name) = request.name {
        batch.name = name;
    }

    if let Some(tags) = request.tag_ids {
        batch.tags = tags;
    }

    batch.preserve_signing_order = request
        .preserve_signing_order
        .unwrap_or(batch.preserve_signing_order);
    batch.add_me_as_signer = request.add_me_as_signer.unwrap_or(batch.add_me_as_signer);

    if let Some(enabled) = request.auto_vault_enabled {
        // Switching unattended vaulting off also withdraws the consent to it.
        let terms = batch.terms.take().filter(|_| enabled);
        set_vaulting(&mut batch, enabled, terms);
    }

    write(tx, batch, now).await
}

/// Records consent to unattended vaulting, or its withdrawal.
pub async fn consent(
    core: &Core,
    caller: &Caller,
    id: &str,
    request: VaultConsent,
    answer: &ResponseRecorder<BatchView>,
) -> Result<BatchView, ServiceError> {
    let now = core.clock.now();
    let terms = request.terms(caller, now)?;
    let mut tx = core.store.begin().await?;
    let mut batch = lock(&mut tx, caller, id).await?;
    // Each envelope gets the acceptance when it is created, so a later one would not cover all of them.
    check_open(core, &batch).await?;
    set_vaulting(&mut batch, request.auto_vault_enabled, terms);
    batch.updated_at = now;

    bulk::update(&mut tx, &batch, now).await?;
    let counts = bulk::counts_of(&mut tx, &batch.org, &batch.id).await?;
    let view = BatchView::of(&batch, &counts);
    answer.commit(tx, &view).await?;

    Ok(view)
}

fn set_vaulting(batch: &mut Batch, enabled: bool, terms: Option<VaultTerms>) {
    batch.auto_vault_enabled = enabled;
    batch.terms = terms;
}

fn use_master(batch: &mut Batch, master: &Template) {
    batch.master = Some(master.id.clone());
    batch.provider_instance = Some(master.provider_instance.clone());
    batch.kba_required = master.kba_required;
}

/// Sets the master template that the builder works on.
pub async fn set_master(core: &Core, batch: &Batch, master: &Template) -> Result<(), ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let batch = bulk::lock(&mut tx, &batch.org, &batch.id).await?;
    let mut batch = batch.ok_or(UNKNOWN)?;
    // Under the lock: the batch may have been submitted while the editor was open.
    check_open(core, &batch).await?;
    use_master(&mut batch, master);
    bulk::update(&mut tx, &batch, now).await?;
    Ok(tx.commit().await?)
}

/// Refuses changes of a submitted batch.
pub async fn check_open(core: &Core, batch: &Batch) -> Result<(), ServiceError> {
    let change = BatchTrigger::Update;
    lifecycle::next_batch_status(core, &batch.org, Some(batch.status), change).await?;
    Ok(())
}

async fn write(
    mut tx: WriteTransaction,
    mut batch: Batch,
    now: Timestamp,
) -> Result<BatchView, ServiceError> {
    batch.updated_at = now;
    bulk::update(&mut tx, &batch, now).await?;
    let counts = bulk::counts_of(&mut tx, &batch.org, &batch.id).await?;
    tx.commit().await?;
    Ok(BatchView::of(&batch, &counts))
}

async fn lock(tx: &mut WriteTransaction, caller: &Caller, id: &str) -> Result<Batch, ServiceError> {
    let id = BatchId::parse(id).ok_or(UNKNOWN)?;
    bulk::lock(tx, &caller.org, &id).await?.ok_or(UNKNOWN)
}

/// Returns a batch of the caller's organization.
pub async fn get(core: &Core, caller: &Caller, id: &str) -> Result<Batch, ServiceError> {
    let id = BatchId::parse(id).ok_or(UNKNOWN)?;
    let mut connection = core.store.read().await?;
    let found = bulk::get(&mut connection, &caller.org, &id).await?;
    found.ok_or(UNKNOWN)
}

/// Returns a batch with its counts and items.
pub async fn overview(
    core: &Core,
    caller: &Caller,
    id: &str,
) -> Result<BatchOverview, ServiceError> {
    let id = BatchId::parse(id).ok_or(UNKNOWN)?;
    let mut connection = core.store.read().await?;
    let found = bulk::get(&mut connection, &caller.org, &id).await?;
    let batch = found.ok_or(UNKNOWN)?;
    // All items without pages: a batch has at most a thousand.
    let items = bulk::items(&mut connection, &batch.org, &batch.id).await?;

    // Counted from the items that are returned, so that both agree while the batch is running.
    let mut counts = BatchCounts::default();
    for item in &items {
        *counts.of(item.status) += 1;
    }

    Ok(BatchOverview {
        batch: BatchView::of(&batch, &counts),
        counts,
        items: items.into_iter().map(ItemView::from).collect(),
    })
}

/// Returns the progress of a batch.
pub async fn progress(
    core: &Core,
    caller: &Caller,
    id: &str,
) -> Result<BatchProgress, ServiceError> {
    let id = BatchId::parse(id).ok_or(UNKNOWN)?;
    let mut connection = core.store.read().await?;
    let found = bulk::get(&mut connection, &caller.org, &id).await?;
    let batch = found.ok_or(UNKNOWN)?;
    let counts = bulk::counts_of(&mut connection, &batch.org, &batch.id).await?;
    Ok(BatchProgress {
        batch_id: batch.id,
        status: batch.status,
        counts,
    })
}

/// Returns a page of batches, newest first, and the total number.
pub async fn list(
    core: &Core,
    caller: &Caller,
    page: i64,
    limit: i64,
) -> Result<(Vec<BatchView>, i64), ServiceError> {
    let mut connection = core.store.read().await?;
    let (found, total) = bulk::list(&mut connection, &caller.org, page, limit).await?;
    let ids: Vec<&BatchId> = found.iter().map(|batch| &batch.id).collect();
    let counts = bulk::counts(&mut connection, &caller.org, &ids).await?;
    let of = |batch: &Batch| counts.get(&batch.id).copied().unwrap_or_default();
    let views = found.iter().map(|batch| BatchView::of(batch, &of(batch)));
    Ok((views.collect(), total))
}

/// Deletes a batch that has not been submitted, and the master template that was made for it.
pub async fn delete(core: &Core, caller: &Caller, id: &str) -> Result<DeletedBatch, ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let batch = lock(&mut tx, caller, id).await?;
    let trigger = BatchTrigger::Delete;
    lifecycle::next_batch_status(core, &batch.org, Some(batch.status), trigger).await?;
    legal_holds::permit_deletion(&mut tx, &batch.org).await?;
    // In the transaction that locks the batch, so that no submission can come in between.
    bulk::delete(&mut tx, &batch, now).await?;

    // A master from the library is kept.
    if let Some(master) = &batch.master
        && let Some(master) = templates::get(&mut tx, &batch.org, master).await?
        && master
            .made_for
            .as_ref()
            .is_some_and(|made| made.owner == batch.id.as_str())
    {
        template_service::deletion::remove(&mut tx, &master, &caller.actor, now).await?;
    }

    tx.commit().await?;
    Ok(DeletedBatch {
        batch_id: batch.id,
        deleted: true,
    })
}
