//! A record from a row of an import: a paper envelope with its document, and the certificate of completion.

use serde_json::{Map, Value, json};

use crate::customers::is_person;
use crate::envelopes::lifecycle;
use crate::envelopes::uploads::{self, AttachedFile};
use holdfast_adapters::files::SpooledFile;
use holdfast_base::faults;
use holdfast_components::rules::lifecycle::EnvelopeTrigger;
use holdfast_domain::envelope::{Envelope, EnvelopeKind, FileType, KeptFile, StoredFile};
use holdfast_domain::id::{CustomerId, EnvelopeId};
use holdfast_domain::import::{
    DeclaredFacts, Import, ImportCustomer, ImportOrigin, ImportRow, ImportRowStatus,
    ImportedCertificate, PlannedRecord, SignatureCounts,
};
use holdfast_domain::template::DocumentRepair;
use holdfast_platform::documents::DocumentUpload;
use holdfast_platform::organizations as settings;
use holdfast_platform::{Caller, Core, Problem, ProblemKind, ServiceError, events};
use holdfast_store::imports as rows;
use holdfast_store::{WriteTransaction, customers, envelopes, organizations};

/// Files of a row, unpacked.
pub(super) struct ImportedFiles {
    document: SpooledFile,
    /// With its name in the archive.
    certificate: Option<(String, SpooledFile)>,
}

impl ImportedFiles {
    /// # Errors
    /// One of the files is damaged in the archive.
    pub(super) fn of(
        document: Result<SpooledFile, String>,
        certificate: Option<(String, Result<SpooledFile, String>)>,
    ) -> Result<Self, ServiceError> {
        let damaged = |why: String| refused("damaged_file", why);
        let certificate = certificate
            .map(|(name, file)| Ok::<_, String>((name, file?)))
            .transpose();
        Ok(Self {
            document: document.map_err(damaged)?,
            certificate: certificate.map_err(damaged)?,
        })
    }
}

fn refused(code: &'static str, message: impl Into<String>) -> ServiceError {
    Problem::new(ProblemKind::Request, code, message).into()
}

fn upload(file: SpooledFile) -> DocumentUpload {
    DocumentUpload {
        content_type: Some(FileType::Pdf.as_str().to_owned()),
        file_name: None,
        password: None,
        file,
    }
}

/// Makes the record, and commits it with the result of its row.
pub(super) async fn make(
    core: &Core,
    import: &Import,
    result: &mut ImportRow,
    planned: PlannedRecord,
    files: ImportedFiles,
) -> Result<(), ServiceError> {
    let sha256 = files.document.sha256().to_owned();
    result.document_sha256 = Some(sha256.clone());
    // Looked up again under the lock below; most duplicates need not be read for that.
    let mut connection = core.store.read().await?;
    let known = rows::with_document(&mut connection, &import.org, &sha256).await?;
    drop(connection);
    if let Some(known) = known {
        let tx = core.store.begin().await?;
        return add_duplicate(tx, import, result, known).await;
    }

    let customer = planned.customer.as_ref().or(import.customer.as_ref());
    let customer = customer.filter(|one| is_person(&one.name, &one.email));
    let customer = customer.cloned().ok_or_else(|| {
        let message =
            "The row names no customer with an e-mail address, and neither does the import";
        refused("no_customer", message)
    })?;
    if let Some((_, certificate)) = &files.certificate
        && certificate.sha256() == sha256
    {
        let message = "The document and its certificate of completion are the same file";
        return Err(refused("certificate_is_document", message));
    }

    let made = received(core, import, result.number, &planned, files).await?;
    result.signatures = Some(SignatureCounts::of(&made.envelope.existing_signatures));
    write(core, import, result, made, &customer).await
}

/// Commits that a document has a record already.
async fn add_duplicate(
    mut tx: WriteTransaction,
    import: &Import,
    result: &mut ImportRow,
    known: EnvelopeId,
) -> Result<(), ServiceError> {
    result.status = ImportRowStatus::Duplicate;
    result.envelope = Some(known);
    rows::add_row(&mut tx, import, result).await?;
    tx.commit().await?;
    Ok(())
}

/// An envelope with stored files that no row refers to yet.
struct ReceivedRecord {
    envelope: Envelope,
    document: StoredFile,
    repair: Option<DocumentRepair>,
    /// What the first entry of the ledger says about the import.
    origin: Value,
}

/// Checks and stores the files of a row.
async fn received(
    core: &Core,
    import: &Import,
    row: i64,
    planned: &PlannedRecord,
    files: ImportedFiles,
) -> Result<ReceivedRecord, ServiceError> {
    let organization = settings::read(core, &import.org).await?;
    // The customer is filled in when the envelope is written.
    let mut envelope = Envelope::new(
        import.org.clone(),
        CustomerId::new(),
        planned.name.clone(),
        EnvelopeKind::Paper,
        import.creator.clone(),
        core.clock.now(),
    );
    envelope.external_id.clone_from(&planned.external_id);
    envelope
        .metadata
        .insert("document_source".into(), "upload".into());
    let jurisdiction = organization.settings.chattel_paper_jurisdiction.as_ref();
    envelope.set_jurisdiction(jurisdiction);

    let (org, id) = (&import.org, &envelope.id);
    let document = upload(files.document);
    document.file_type()?;
    let (file, checked) = uploads::receive(core, org, id, FileType::Pdf, &document).await?;
    let certificate = match files.certificate {
        Some((name, certificate)) => {
            let certificate = upload(certificate);
            certificate.file_type()?;
            let kind = FileType::Pdf;
            let (file, checked) = uploads::receive(core, org, id, kind, &certificate).await?;
            Some(ImportedCertificate {
                file: KeptFile(file),
                name: name.rsplit('/').next().unwrap_or_default().to_owned(),
                existing_signatures: checked.signatures,
            })
        }
        None => None,
    };

    let origin = ImportOrigin {
        import: import.id.clone(),
        row,
        source: import.layout,
        declared: DeclaredFacts::clone(&planned.declared),
        certificate,
    };
    envelope.set_imported(&origin);
    envelope.existing_signatures.clone_from(&checked.signatures);
    Ok(ReceivedRecord {
        origin: entry(&origin),
        document: file,
        repair: checked.repair,
        envelope,
    })
}

/// Returns the import as the ledger has it: without the place of a file.
fn entry(origin: &ImportOrigin) -> Value {
    let certificate = origin.certificate.as_ref().map(|certificate| {
        let KeptFile(file) = &certificate.file;
        json!({
            "sha256": file.sha256, "size": file.size,
            "existing_signatures": certificate.existing_signatures,
        })
    });
    json!({
        "import_id": origin.import, "row": origin.row, "source": origin.source, "declared": origin.declared,
        "certificate_of_completion": certificate,
    })
}

/// Writes the envelope with its document and the result of its row.
async fn write(
    core: &Core,
    import: &Import,
    result: &mut ImportRow,
    made: ReceivedRecord,
    customer: &ImportCustomer,
) -> Result<(), ServiceError> {
    let ReceivedRecord {
        mut envelope,
        document,
        repair,
        origin,
    } = made;
    let (org, now) = (&import.org, envelope.created_at);
    let created = lifecycle::first_status(core, &envelope).await?;
    envelope.status = created.status;
    let attached = lifecycle::decide(core, &envelope, EnvelopeTrigger::Upload).await?;

    let mut tx = core.store.begin().await?;
    // Another import with the same document waits here, and finds this one then.
    organizations::lock(&mut tx, org).await?;
    let sha256 = result.document_sha256.as_deref().unwrap_or_default();
    let known = rows::with_document(&mut tx, org, sha256).await?;
    if let Some(known) = known {
        return add_duplicate(tx, import, result, known).await;
    }

    // A manifest that has the address of a customer must not rename that customer.
    let known = customers::by_email(&mut tx, org, &customer.email).await?;
    let name = known.map_or_else(|| customer.name.clone(), |known| known.name);
    let customer = customers::upsert_by_email(&mut tx, org, &customer.email, &name, now).await?;
    envelope.customer = customer.id;
    envelopes::insert(&mut tx, &envelope).await?;
    created.record(&mut tx, &envelope, now).await?;
    let more = Map::from_iter([("import".to_owned(), origin)]);
    events::record_created(&mut tx, &envelope, &import.made_by, more, now).await?;

    envelope.upload = Some(document.clone());
    let file = AttachedFile {
        file: &document,
        repair: repair.as_ref(),
    };
    let caller = Caller::named(org.clone(), import.made_by.as_str());
    uploads::attach(&mut tx, &caller, &envelope, attached.status, file, now).await?;
    attached.record(&mut tx, &envelope, now).await?;

    result.status = ImportRowStatus::Imported;
    result.envelope = Some(envelope.id.clone());
    rows::add_row(&mut tx, import, result).await?;
    faults::pass("import record");
    tx.commit().await?;
    Ok(())
}
