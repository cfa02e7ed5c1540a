//! Uploaded documents: type checks, storage, and the memory budget for reading them.

use crate::components::Placement;
use crate::components::rules::copies::SignatureHandling;
use crate::components::rules::lifecycle::EnvelopeTrigger;
use crate::components::rules::placement::DocumentFacts;
use crate::components::rules::{documents, sources};
use crate::domain::clock::Timestamp;
use crate::domain::component::ComponentIdentity;
use crate::domain::envelope::{Envelope, EnvelopeStatus, FileType, StoredFile};
use crate::domain::hash::sha256;
use crate::domain::id::{EnvelopeId, OrgId};
use crate::domain::job::VaultEnvelope;
use crate::domain::organization::ActiveContent;
use crate::domain::signature::ExistingSignature;
use crate::domain::template::DocumentRepair;
use crate::domain::warning::Warning;
use crate::fair_queue::{QueueCapacity, QueueTurn, WorkOwner};
use crate::files::{FilesError, SpooledFile, StorageArea};
use crate::service::envelopes::lifecycle;
use crate::service::envelopes::paper_original::PaperStatement;
use crate::service::events;
use crate::service::idempotency::ResponseRecorder;
use crate::service::vault::copies;
use crate::service::vault::existing::existing_signatures;
use crate::service::{
    Caller, Core, ServiceError, ValidationIssue, envelopes as envelope_service, organizations,
};
use crate::store::{WriteTransaction, envelopes, jobs, vault};
use bytes::Bytes;
use serde_json::json;

/// Maximum size of an upload: 50 MiB.
pub const UPLOAD_LIMIT: u64 = 52_428_800;
/// Budget in bytes for documents that are held in memory for inspection. A document larger
/// than an organization's share counts as the whole share.
pub const IN_MEMORY: QueueCapacity = QueueCapacity {
    units: 64 * 1024 * 1024,
    of_organization: 32 * 1024 * 1024,
    waiting: 2_048,
    waiting_of_organization: 256,
    waiting_of_item: 64,
};

/// An uploaded file, spooled to disk.
pub struct DocumentUpload {
    /// Content type declared by the client.
    pub content_type: Option<String>,
    /// File name given by the client.
    pub file_name: Option<String>,
    /// Opens the document; it is not kept.
    pub password: Option<String>,
    pub file: SpooledFile,
}

impl DocumentUpload {
    /// Returns the type detected from the file's first bytes. It must agree with the type
    /// declared by the client.
    pub fn file_type(&self) -> Result<FileType, ServiceError> {
        checked_type(
            self.file.head(),
            self.content_type.as_deref(),
            FileType::ALL,
        )
    }
}

/// An upload as it will be signed and kept.
pub struct SettledUpload {
    /// The upload, or what takes its place.
    pub pdf: Bytes,
    pub repair: Option<DocumentRepair>,
    /// Whether the upload is kept without a part of it: scripts, or its protection.
    pub is_reduced: bool,
    pub warnings: Vec<Warning>,
}

/// An upload that was checked, with the facts to record.
#[derive(Default)]
pub struct CheckedUpload {
    /// Signatures that it has.
    pub signatures: Vec<ExistingSignature>,
    pub repair: Option<DocumentRepair>,
    /// Document to store instead of the upload.
    pub reduced: Option<Bytes>,
    pub warnings: Vec<Warning>,
}

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
    let envelope = envelope_service::get(core, caller, id).await?;
    // Refused before the document is read. Decided again under the lock below.
    lifecycle::next_status(core, &envelope, EnvelopeTrigger::Upload).await?;
    let owner = WorkOwner::new(&caller.org, envelope.id.as_str());
    let checked = check_readable(core, &caller.org, &owner, file_type, &upload).await?;
    // A reduced document takes the place of the upload: removed scripts must not reach a signer.
    let file = match checked.reduced {
        Some(pdf) => {
            let (owner, kind) = (envelope.id.as_str(), file_type.as_str());
            let area = StorageArea::Uploads;
            core.files
                .put(area, &envelope.org, owner, pdf, kind)
                .await?
        }
        None => store(core, &envelope.org, &envelope.id, file_type, &upload).await?,
    };

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

/// Returns the type detected from the first bytes. It must be allowed, and agree with the
/// type declared by the client.
fn checked_type(
    head: &[u8],
    declared: Option<&str>,
    allowed: &[FileType],
) -> Result<FileType, ServiceError> {
    let detected = FileType::detect(head)
        .filter(|detected| allowed.contains(detected))
        .ok_or_else(|| {
            let names: Vec<&str> = allowed.iter().map(|kind| kind.as_str()).collect();
            ServiceError::UnsupportedType(format!("File must be one of: {}", names.join(", ")))
        })?;

    // Parameters such as a charset say nothing about the type.
    let declared = declared.and_then(|declared| declared.split(';').next());
    match declared.map(str::trim) {
        // Clients send these when they do not know the type.
        None | Some("" | "application/octet-stream" | "binary/octet-stream") => Ok(detected),
        Some(declared) if declared.eq_ignore_ascii_case(detected.as_str()) => Ok(detected),
        // The name of the type before it was registered.
        Some("application/x-pdf") if detected == FileType::Pdf => Ok(detected),
        Some(declared) => Err(ServiceError::UnsupportedType(format!(
            "File is {detected}, not {declared} as declared"
        ))),
    }
}

/// Checks a PDF, and repairs it where readers would disagree about it. `password` opens a protected one. With
/// `gives_up`, the sender gives up the certification of its author: it becomes a document without signatures.
pub async fn settled(
    core: &Core,
    org: &OrgId,
    owner: &WorkOwner,
    upload: Bytes,
    (password, gives_up): (Option<&str>, bool),
) -> Result<SettledUpload, ServiceError> {
    // The built-in component: what readers disagree about is no choice of an organization.
    let documents = core
        .components
        .embedded_documents(org, core.store.priority())
        .for_owner(owner.clone());
    let mut pdf = upload.clone();
    let (mut reasons, mut given_up) = (Vec::new(), Vec::new());

    let mut is_reduced = false;
    // First, because every later step has to read the document.
    if let Some(password) = password {
        let unlocked = documents.unlock(pdf, password.to_owned()).await??;
        pdf = unlocked.into();
        is_reduced = true;
        reasons.push("its protection by a password is removed".to_owned());
    }

    if gives_up {
        let flatten = SignatureHandling::Flatten;
        let level = documents
            .signatures(pdf.clone())
            .await??
            .certification_level;

        // Other levels permit the changes that are written here.
        if level == Some(1)
            && let Some(plain) = documents.write_anew(pdf.clone(), flatten).await??
        {
            // Verified before they are removed, so the record lists them as given up.
            given_up = existing_signatures(core, &documents, pdf.clone()).await?;
            pdf = plain.into();
            reasons.push("the sender gave up its signatures".to_owned());
        }
    }

    let mut settled = documents.settle(pdf.clone()).await??;
    if let Some(repaired) = settled.repaired.take() {
        pdf = repaired.pdf.into();
        reasons.push(repaired.reason);
    }

    let mut warnings = settled.warnings;
    if password.is_some() {
        warnings.push(sources::SourceWarning {
            code: "encryption_removed".to_owned(),
            message: "The protection of the document by a password is removed".to_owned(),
        });
    }

    let active = warnings.iter().find(|warning| is_active(warning));
    if let Some(active) = active {
        match organizations::read(core, org)
            .await?
            .settings
            .active_content
        {
            ActiveContent::Warn => {}
            ActiveContent::Refuse => return Err(refused_content(active)),
            ActiveContent::Remove => {
                if let Some(inert) = documents.without_actions(pdf.clone()).await?? {
                    pdf = inert.into();
                    is_reduced = true;
                    reasons.push("its scripts and actions are removed".to_owned());
                }

                // The removal is checked: a place that it does not know must not slip through.
                let left = documents.settle(pdf.clone()).await??.warnings;
                if let Some(active) = left.iter().find(|warning| is_active(warning)) {
                    return Err(refused_content(active));
                }

                warnings.retain(|warning| !is_active(warning));
                warnings.push(sources::SourceWarning {
                    code: "actions_removed".to_owned(),
                    message: "The scripts and actions of the document are removed".to_owned(),
                });
            }
        }
    }

    let repair = (!reasons.is_empty()).then(|| DocumentRepair {
        uploaded_hash: sha256(&upload),
        rewritten_hash: sha256(&pdf),
        rewritten_size: pdf.len() as u64,
        reason: reasons.join("; "),
        given_up,
    });

    Ok(SettledUpload {
        pdf,
        repair,
        is_reduced,
        warnings: warnings.into_iter().map(source_warning).collect(),
    })
}

/// Returns whether a warning is about something that a document does by itself.
fn is_active(warning: &sources::SourceWarning) -> bool {
    const ACTIVE: [&str; 4] = [
        "javascript",
        "launch_action",
        "submit_action",
        "open_action",
    ];
    ACTIVE.contains(&warning.code.as_str())
}

fn refused_content(warning: &sources::SourceWarning) -> ServiceError {
    ServiceError::Invalid(vec![ValidationIssue::new(
        "active_content",
        &["file"],
        "a document without scripts and actions, as the organization demands",
        warning.code.as_str(),
        warning.message.clone(),
    )])
}

fn source_warning(warning: sources::SourceWarning) -> Warning {
    /// Codes of the built-in component; docs/documents.md has their meanings.
    const CODES: [&str; 12] = [
        "actions_removed",
        "encryption_removed",
        "document_repaired",
        "dynamic_xfa",
        "xfa_form",
        "portfolio",
        "embedded_files",
        "javascript",
        "launch_action",
        "submit_action",
        "open_action",
        "layers_differ",
    ];

    // Codes of warnings are a documented list, so an unknown one gets the general code.
    let known = CODES.into_iter().find(|code| *code == warning.code);
    Warning::new(known.unwrap_or("document"), &["file"], warning.message)
}

/// Rejects a document that could not be vaulted later.
pub async fn check_readable(
    core: &Core,
    org: &OrgId,
    owner: &WorkOwner,
    kind: FileType,
    upload: &DocumentUpload,
) -> Result<CheckedUpload, ServiceError> {
    let (bytes, _room) = admitted(core, owner, upload).await?;
    match picture(kind, &bytes) {
        None => {
            let reader = core.placement(Some(org));
            // A protected document can be read only after `settled` has opened it.
            if upload.password.is_none() {
                reader.inspect(bytes.clone()).await??;
            }

            let SettledUpload {
                pdf,
                repair,
                is_reduced,
                warnings,
            } = settled(
                core,
                org,
                owner,
                bytes.clone(),
                (upload.password.as_deref(), false),
            )
            .await?;

            let reduced = is_reduced.then_some(pdf);
            let bytes = reduced.clone().unwrap_or(bytes);
            keeps_limits(&reader, bytes.clone()).await?;

            // The built-in components: an upload does not wait for those of an organization.
            let (components, priority) = (&core.components, core.store.priority());
            let documents = components.embedded_documents(org, priority);
            let documents = documents.for_owner(owner.clone());
            let reader = components.embedded_placement(org, priority);
            let reader = reader.for_owner(owner.clone());
            let signatures = existing_signatures(core, &documents, bytes.clone()).await?;

            copies::check_vaultable(&documents, &reader, bytes, core.clock.now()).await?;
            Ok(CheckedUpload {
                signatures,
                repair,
                reduced,
                warnings,
            })
        }
        Some(picture) => {
            // The picture holds its own copy.
            drop(bytes);
            let drawn = core.documents(Some(org)).picture_to_pdf(picture).await?;
            drawn.map_err(|error| ServiceError::from(error).about_picture())?;
            Ok(CheckedUpload::default())
        }
    }
}

/// Rejects a document with text beyond the limits of the reader: searching for a text that cannot occur
/// reads all pages.
async fn keeps_limits(reader: &Placement, pdf: Bytes) -> Result<(), ServiceError> {
    let nothing = "\u{10ffff}".to_owned();
    reader.occurrences(pdf, nothing, None).await??;
    Ok(())
}

/// Rejects a document of a template that signers could not open, or that could not be vaulted. Also
/// rejects one in which values could not be written after signing, such as a signed document for which
/// its author permits no changes.
/// Returns the facts about the document, with the component that read them.
pub async fn check_signable(
    core: &Core,
    owner: WorkOwner,
    pdf: Bytes,
) -> Result<(DocumentFacts, ComponentIdentity), ServiceError> {
    let reader = core.placement(None).for_owner(owner.clone());
    let documents = core.documents(None).for_owner(owner);
    let facts = reader.inspect(pdf.clone()).await??;
    keeps_limits(&reader, pdf.clone()).await?;
    // Filling in nothing shows now whether values can be written after the last signature.
    documents.fill(pdf.clone(), Vec::new()).await??;
    copies::check_vaultable(&documents, &reader, pdf, core.clock.now()).await?;
    Ok((facts, reader.identity()?))
}

/// Reads a PDF into memory. The returned turn reserves the memory and must live as long.
pub async fn read_whole(
    core: &Core,
    owner: &WorkOwner,
    upload: &DocumentUpload,
) -> Result<(Bytes, QueueTurn), ServiceError> {
    let declared = upload.content_type.as_deref();
    checked_type(upload.file.head(), declared, &[FileType::Pdf])?;
    admitted(core, owner, upload).await
}

async fn admitted(
    core: &Core,
    owner: &WorkOwner,
    upload: &DocumentUpload,
) -> Result<(Bytes, QueueTurn), ServiceError> {
    let room = admit(core, owner, upload.file.size()).await?;
    let bytes = upload.file.read().await.map_err(FilesError::Spool)?;
    Ok((bytes, room))
}

/// Waits until a document of `size` bytes may be held in memory.
///
/// # Errors
/// [`ServiceError::Busy`] when too many callers wait already.
pub async fn admit(core: &Core, owner: &WorkOwner, size: u64) -> Result<QueueTurn, ServiceError> {
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let turn = core
        .document_memory
        .turn(owner, core.store.priority(), size)
        .await;
    turn.ok_or(ServiceError::Busy)
}

/// Returns the file as a picture; none for a PDF.
pub fn picture(kind: FileType, bytes: &Bytes) -> Option<documents::Picture> {
    let format = match kind {
        FileType::Pdf => return None,
        FileType::Png => documents::PictureFormat::Png,
        FileType::Jpeg => documents::PictureFormat::Jpeg,
    };
    Some(documents::Picture {
        format,
        bytes: bytes.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(head: &[u8], declared: Option<&str>) -> Result<FileType, String> {
        checked_type(head, declared, FileType::ALL).map_err(|error| error.to_string())
    }

    #[test]
    fn a_declared_file_type_has_to_match_the_content() {
        let pdf = b"%PDF-1.7";
        assert_eq!(checked(pdf, Some("application/pdf")), Ok(FileType::Pdf));
        assert_eq!(
            checked(pdf, Some("application/pdf; charset=x")),
            Ok(FileType::Pdf)
        );
        assert_eq!(
            checked(pdf, Some("application/octet-stream")),
            Ok(FileType::Pdf)
        );
        assert_eq!(checked(pdf, Some("binary/octet-stream")), Ok(FileType::Pdf));
        assert_eq!(checked(pdf, Some("application/x-pdf")), Ok(FileType::Pdf));
        assert!(checked(b"\x89PNG\r\n\x1a\n", Some("application/x-pdf")).is_err());
        assert_eq!(checked(pdf, None), Ok(FileType::Pdf));

        assert!(checked(pdf, Some("image/png")).is_err());
        assert!(checked(b"MZ", Some("application/pdf")).is_err());
    }
}
