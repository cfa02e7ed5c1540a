//! Documents as files: checks of uploads, marks, and the memory budget for reading them.

pub mod existing;
pub mod marks;

use crate::{Core, Problem, ProblemKind, ServiceError, organizations};
use bytes::Bytes;
use holdfast_adapters::files::{FilesError, SpooledFile};
use holdfast_base::fair_queue::{QueueCapacity, QueueTurn, WorkOwner};
use holdfast_components::Placement;
use holdfast_components::rules::copies::SignatureHandling;
use holdfast_components::rules::placement::DocumentFacts;
use holdfast_components::rules::{documents, sources};
use holdfast_domain::component::ComponentIdentity;
use holdfast_domain::envelope::FileType;
use holdfast_domain::hash::sha256;
use holdfast_domain::id::OrgId;
use holdfast_domain::organization::ActiveContent;
use holdfast_domain::signature::ExistingSignature;
use holdfast_domain::template::{DocumentRepair, WordDocument};
use holdfast_domain::warning::Warning;

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
            unsupported(format!("File must be one of: {}", names.join(", ")))
        })?;

    check_declared(declared, detected.as_str())?;
    Ok(detected)
}

/// Checks that the type declared by the client is the detected one.
fn check_declared(declared: Option<&str>, detected: &str) -> Result<(), ServiceError> {
    // Parameters such as a charset say nothing about the type.
    let declared = declared.and_then(|declared| declared.split(';').next());
    match declared.map(str::trim) {
        // Clients send these when they do not know the type.
        None | Some("" | "application/octet-stream" | "binary/octet-stream") => Ok(()),
        Some(declared) if declared.eq_ignore_ascii_case(detected) => Ok(()),
        // The name of the type before it was registered.
        Some("application/x-pdf") if detected == FileType::Pdf.as_str() => Ok(()),
        Some(declared) => Err(unsupported(format!(
            "File is {detected}, not {declared} as declared"
        ))),
    }
}

fn unsupported(message: String) -> ServiceError {
    Problem::new(ProblemKind::UnsupportedType, None, message).into()
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
            given_up = existing::existing_signatures(core, &documents, pdf.clone()).await?;
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
    ServiceError::invalid(
        "active_content",
        &["file"],
        "a document without scripts and actions, as the organization demands",
        warning.code.as_str(),
        warning.message.clone(),
    )
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
            let signatures = existing::existing_signatures(core, &documents, bytes.clone()).await?;

            marks::check_vaultable(&documents, &reader, bytes, core.clock.now()).await?;
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
    marks::check_vaultable(&documents, &reader, pdf, core.clock.now()).await?;
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

/// Reads a document of a word processor into memory, as [`read_whole`] does a PDF.
pub async fn read_word(
    core: &Core,
    owner: &WorkOwner,
    upload: &DocumentUpload,
) -> Result<(WordDocument, Bytes, QueueTurn), ServiceError> {
    let (bytes, room) = admitted(core, owner, upload).await?;
    let detected = WordDocument::detect(&bytes).ok_or_else(|| {
        let words = WordDocument::ALL.iter().map(|kind| kind.as_str());
        let names: Vec<&str> = [FileType::Pdf.as_str()].into_iter().chain(words).collect();
        unsupported(format!("File must be one of: {}", names.join(", ")))
    })?;

    check_declared(upload.content_type.as_deref(), detected.as_str())?;
    Ok((detected, bytes, room))
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
