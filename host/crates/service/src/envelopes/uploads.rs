//! Documents that are attached to envelopes.

use serde_json::json;

use crate::envelopes::lifecycle;
use crate::envelopes::paper_original::PaperStatement;
use holdfast_adapters::files::{FilesError, StorageArea};
use holdfast_base::fair_queue::WorkOwner;
use holdfast_components::rules::lifecycle::EnvelopeTrigger;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, EnvelopeStatus, FileType, StoredFile};
use holdfast_domain::id::{EnvelopeId, OrgId};
use holdfast_domain::job::VaultEnvelope;
use holdfast_domain::signature::ExistingSignature;
use holdfast_domain::template::DocumentRepair;
use holdfast_domain::warning::Warning;
use holdfast_platform::documents::{CheckedUpload, DocumentUpload, check_readable};
use holdfast_platform::events;
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::lookup;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::{WriteTransaction, envelopes, jobs, vault};

/// A stored upload, as the response shows it.
pub struct StoredUpload {
    /// Opaque reference to the stored file.
    pub path: String,
    pub file: StoredFile,
    pub existing_signatures: Vec<ExistingSignature>,
    pub warnings: Vec<Warning>,
}

/// Attaches a document to an envelope, or replaces the attached one.
pub async fn upload(
    core: &Core,
    caller: &Caller,
    id: &str,
    upload: DocumentUpload,
    paper: Option<PaperStatement>,
    answer: &ResponseRecorder<StoredUpload>,
) -> Result<StoredUpload, ServiceError> {
    let file_type = upload.file_type()?;
    let envelope = lookup::envelope(core, caller, id).await?;
    // Refused before the document is read. Decided again under the lock below.
    lifecycle::next_status(core, &envelope, EnvelopeTrigger::Upload).await?;
    let (file, checked) = receive(core, &caller.org, &envelope.id, file_type, &upload).await?;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let replace = EnvelopeTrigger::Upload;
    let (mut envelope, decided) =
        lifecycle::lock_for(core, &mut tx, &caller.org, &envelope.id, replace).await?;
    envelope.upload = Some(file.clone());
    envelope.existing_signatures = checked.signatures;

    if let Some(statement) = paper {
        if !envelope.is_upload() {
            return Err(ServiceError::Conflict(
                "The envelope is signed here and has no paper original".into(),
            ));
        }

        envelope.set_paper_original(&statement.of(caller, now));
        envelope.updated_at = now;
        envelopes::set_metadata(&mut tx, &envelope).await?;
    }

    let attached = AttachedFile {
        file: &file,
        repair: checked.repair.as_ref(),
    };
    attach(&mut tx, caller, &envelope, decided.status, attached, now).await?;
    decided.record(&mut tx, &envelope, now).await?;
    let stored = StoredUpload {
        path: envelope.upload_file_path().unwrap_or_default(),
        file,
        existing_signatures: envelope.existing_signatures,
        warnings: checked.warnings,
    };
    answer.commit(tx, &stored).await?;

    Ok(stored)
}

/// Checks an upload for an envelope, and stores it until vault-in.
pub async fn receive(
    core: &Core,
    org: &OrgId,
    envelope: &EnvelopeId,
    file_type: FileType,
    upload: &DocumentUpload,
) -> Result<(StoredFile, CheckedUpload), ServiceError> {
    let owner = WorkOwner::new(org, envelope.as_str());
    let mut checked = check_readable(core, org, &owner, file_type, upload).await?;
    // A reduced document takes the place of the upload: removed scripts must not reach a signer.
    let file = match checked.reduced.take() {
        Some(pdf) => {
            let (area, kind) = (StorageArea::Uploads, file_type.as_str());
            let put = core.files.put(area, org, envelope.as_str(), pdf, kind);
            put.await?
        }
        None => store(core, org, envelope, file_type, upload).await?,
    };

    Ok((file, checked))
}

/// Stores an upload until vault-in.
pub async fn store(
    core: &Core,
    org: &OrgId,
    envelope: &EnvelopeId,
    file_type: FileType,
    upload: &DocumentUpload,
) -> Result<StoredFile, FilesError> {
    let (owner, content_type) = (envelope.as_str(), file_type.as_str());
    core.files
        .put_spooled(StorageArea::Uploads, org, owner, &upload.file, content_type)
        .await
}

/// A stored file, and its replacement in the vault.
pub struct AttachedFile<'a> {
    pub file: &'a StoredFile,
    pub repair: Option<&'a DocumentRepair>,
}

/// Sets a stored file as the envelope's document, and records it with the signatures that it has.
pub async fn attach(
    tx: &mut WriteTransaction,
    caller: &Caller,
    envelope: &Envelope,
    status: EnvelopeStatus,
    AttachedFile { file, repair }: AttachedFile<'_>,
    now: Timestamp,
) -> Result<(), ServiceError> {
    envelopes::set_upload(tx, envelope, status, file, now).await?;
    // A vault-in that was requested for the previous document must not vault this one.
    vault::forget_intent(tx, envelope).await?;
    jobs::remove::<VaultEnvelope>(tx, &envelope.org, envelope.id.as_str()).await?;
    let mut details =
        json!({ "sha256": file.sha256, "size": file.size, "content_type": file.content_type });
    if !envelope.existing_signatures.is_empty() {
        details["existing_signatures"] = json!(envelope.existing_signatures);
    }

    if let Some(repair) = repair {
        details["rewritten"] = json!(repair);
    }

    if envelope.is_upload() {
        details["paper_original"] = json!(envelope.paper_original());
    }

    events::record(
        tx,
        envelope,
        &caller.actor,
        "document.uploaded",
        details,
        now,
    )
    .await?;

    Ok(())
}
