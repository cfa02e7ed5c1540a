//! The document of an envelope as it was sent, before the first signature, and the files that signers
//! attached.

use bytes::Bytes;

use crate::App;
use holdfast_adapters::files::FilesError;
use holdfast_base::fair_queue::WorkOwner;
use holdfast_domain::envelope::{AuthoritativeCopy, Envelope, EnvelopeKind, FileType, StoredFile};
use holdfast_domain::locale::Message;
use holdfast_domain::template::Template;
use holdfast_platform::documents::{DocumentUpload, admit};
use holdfast_platform::lookup::room_submission;
use holdfast_platform::room::attachments::{AttachedFile, FILE_MIB, ReceivedFile, SignersFile};
use holdfast_platform::room::form::FormError;
use holdfast_platform::room::shown::ShownDocument;
use holdfast_platform::{Core, ServiceError};
use holdfast_store::{room, templates};

/// Returns the unsigned document of an envelope.
///
/// # Errors
///
/// `Conflict` for an envelope without a document, one that was signed elsewhere, and one of another
/// signing provider if its template has changed since.
pub async fn unsigned(core: &Core, envelope: &Envelope) -> Result<Bytes, ServiceError> {
    if envelope.kind == EnvelopeKind::Paper {
        let why = "Envelope was signed elsewhere: there is no unsigned document";
        return Err(ServiceError::Conflict(why.into()));
    }
    let file = file(core, envelope).await?;
    let file = file.ok_or_else(|| ServiceError::Conflict("Envelope has no document".into()))?;
    Ok(core.files.get(&file).await?)
}

/// Returns the document of an envelope before vault-in, as a page shows it: with the entries of those who have signed.
/// None if there is no document to draw, or the signing provider keeps it.
pub async fn shown(app: &App, envelope: &Envelope) -> Result<Option<ShownDocument>, ServiceError> {
    // From then on, copies are read through links that the ledger names.
    if envelope.record.authoritative != AuthoritativeCopy::Nowhere {
        return Ok(None);
    }
    if let Some(submission) = room_submission(envelope) {
        return Ok(Some(app.room().shown(&envelope.org, submission).await?));
    }

    let file = match file(app, envelope).await {
        Err(ServiceError::Conflict(_)) => None,
        read => read?,
    };
    // An upload can be a photograph, which has no pages.
    let is_pdf = |file: &StoredFile| file.content_type == FileType::Pdf.as_str();
    Ok(file.filter(is_pdf).map(ShownDocument::from))
}

/// Returns the stored document of an envelope as it was sent, before the first signature.
pub(super) async fn file(
    core: &Core,
    envelope: &Envelope,
) -> Result<Option<StoredFile>, ServiceError> {
    let mut connection = core.store.read().await?;
    let org = &envelope.org;
    // The room keeps the document of each submission. Later edits of the template do not reach it.
    if let Some(id) = room_submission(envelope) {
        let submission = room::submission(&mut connection, org, id).await?;
        return Ok(submission.map(|submission| submission.file()));
    }
    if let Some(id) = &envelope.template {
        let template = templates::find(&mut connection, org, id).await?;
        // The provider has its own copy. After an edit, this template would show another document.
        let changed = |template: &Template| {
            envelope.sending.submission.is_some() && template.updated_at > envelope.created_at
        };
        if template.as_ref().is_some_and(changed) {
            let why = "The signing provider keeps the document as it was sent";
            return Err(ServiceError::Conflict(why.into()));
        }

        return Ok(template.and_then(|template| template.document));
    }

    Ok(envelope.upload.clone())
}

/// Returns the files that signers of an envelope attached, in signing order, or the certificate of completion that was
/// imported with its document.
pub async fn attachments(app: &App, envelope: &Envelope) -> Result<Vec<SignersFile>, ServiceError> {
    if let Some(submission) = room_submission(envelope) {
        return Ok(app.room().attachments(&envelope.org, submission).await?);
    }

    let certificate = envelope.imported().and_then(|origin| origin.certificate);
    let certificate = certificate.map(|one| SignersFile::of_import(&one.name, one.file.0));
    Ok(certificate.into_iter().collect())
}

/// Returns one of these files by its SHA-256, with its bytes.
pub async fn attachment(
    app: &App,
    envelope: &Envelope,
    sha256: &str,
) -> Result<(AttachedFile, Bytes), ServiceError> {
    let files = attachments(app, envelope).await?;
    // Looked up among the files of this envelope only: the hash opens no file of another one.
    let file = files.iter().find(|file| file.file.sha256 == sha256);
    let file = file.ok_or(ServiceError::NotFound("Attachment"))?;
    Ok((file.file.clone(), app.room().attached(file).await?))
}

/// Attaches an uploaded file to a field of a signer, given with their address; returns its name.
pub async fn attach(
    app: &App,
    envelope: &Envelope,
    signer: (i64, &str),
    field: &str,
    upload: DocumentUpload,
) -> Result<String, FormError> {
    // Refused by its size before it takes a place in memory.
    if upload.file.size() > (FILE_MIB as u64) << 20 {
        let why = Message::with_limit("problem-attachment-size", FILE_MIB);
        return Err(FormError::Invalid([(field.to_owned(), why)].into()));
    }

    let owner = WorkOwner::new(&envelope.org, envelope.id.as_str());
    let admitted = admit(app, &owner, upload.file.size()).await;
    let _room = admitted.map_err(|_| FormError::Busy)?;
    let file = ReceivedFile {
        bytes: upload.file.read().await.map_err(FilesError::Spool)?,
        name: upload.file_name,
    };

    app.room().attach(&envelope.org, signer, field, file).await
}
