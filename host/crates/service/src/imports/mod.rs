//! Imports: records of documents that were signed in another system, from an archive of PDFs.
//!
//! Each row of the archive becomes a paper envelope with its document. The signatures in the document are verified and
//! reported like those of any upload; what a manifest says is kept as declared. Nothing of either is claimed as a signature
//! of this service. A job makes the records one after the other, and continues behind the last one after a crash ([`run`]).

mod archive;
mod record;
pub mod report;
pub mod run;

use schemars::JsonSchema;
use serde::Serialize;

use crate::customers::is_person;
use holdfast_adapters::files::{FilesError, SpooledFile, StorageArea};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, StoredFile};
use holdfast_domain::id::{EnvelopeId, ImportId, OrgId};
use holdfast_domain::import::{
    DeclaredFacts, Import, ImportCustomer, ImportLayout, ImportPlan, ImportRow, ImportRowStatus,
    ImportStatus, SignatureCounts,
};
use holdfast_domain::job::ImportRecords;
use holdfast_domain::signature::ExistingSignature;
use holdfast_domain::tape::{OpenError, StoredRefusal};
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::{Caller, Core, Problem, ProblemKind, ServiceError};
use holdfast_store::imports as rows;
use holdfast_store::{WriteTransaction, jobs, organizations};

/// Largest archive: 250 MiB. The open uploads of a credential have 256 MiB together.
pub const IMPORT_LIMIT: u64 = 262_144_000;
/// Imports of an organization that run at once.
const UNFINISHED: i64 = 20;
/// Seconds until another import is accepted.
const WAIT: u32 = 60;

/// An archive as it is sent.
pub struct SentImport {
    pub file: SpooledFile,
    /// None: found by the names in the archive.
    pub layout: Option<ImportLayout>,
    /// Name and e-mail address of the customer of rows that name none.
    pub customer: Option<(String, String)>,
}

/// An import with the counts of its rows.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "import_id": "imp_01jdk7m3e8f4x9s2w5v6b0c1dc", "layout": "docusign", "status": "running", "rows": 1200, "done": 417,
    "imported": 410, "duplicates": 5, "failed": 2, "archive_sha256": "9f86d081884c7d65…", "refusal": null,
    "made_by": "key:key_01jdk7m3e8f4x9s2w5v6b0c1dc", "created_at": "2026-11-21T09:45:00.000Z", "finished_at": null,
}]))]
pub struct ImportView {
    /// Id of the import.
    pub import_id: ImportId,
    /// System whose export the archive is, by its layout.
    pub layout: ImportLayout,
    /// Whether the import continues. `failed`: the stored archive is damaged or gone; the rows before that stay.
    pub status: ImportStatus,
    /// Number of rows of the archive.
    pub rows: i64,
    /// Rows with a result.
    pub done: i64,
    /// Rows that became a record.
    pub imported: i64,
    /// Rows with a document that an import of your organization made a record of before.
    pub duplicates: i64,
    /// Rows without a record; each has its reason.
    pub failed: i64,
    /// SHA-256 of the archive, lower-case hex.
    pub archive_sha256: String,
    /// Why the import was given up.
    pub refusal: Option<ImportProblem>,
    /// Who sent the archive: `key:…` or `user:…`.
    pub made_by: String,
    pub created_at: Timestamp,
    /// Time of the last result.
    pub finished_at: Option<Timestamp>,
}

/// Why there is no record, or why an import was given up.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ImportProblem {
    /// Stable code for programs, such as `no_document`.
    pub code: String,
    pub message: String,
}

impl From<&StoredRefusal> for ImportProblem {
    fn from(refusal: &StoredRefusal) -> Self {
        Self {
            code: refusal.code.clone(),
            message: refusal.message.clone(),
        }
    }
}

impl From<&Import> for ImportView {
    fn from(import: &Import) -> Self {
        Self {
            import_id: import.id.clone(),
            layout: import.layout,
            status: import.status,
            rows: import.planned,
            done: import.done,
            imported: import.imported,
            duplicates: import.duplicates,
            failed: import.failed,
            archive_sha256: import.file.sha256.clone(),
            refusal: import.refusal.as_ref().map(ImportProblem::from),
            made_by: import.made_by.clone(),
            created_at: import.created_at,
            finished_at: import.finished_at,
        }
    }
}

/// Result of a row.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "number": 41, "line": 42, "file": "4f2c/Lease.pdf", "status": "imported",
    "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "document_sha256": "9f86d081884c7d65…",
    "signatures": { "found": 1, "intact": 1, "trusted": 0 }, "problem": null,
}]))]
pub struct ImportRowView {
    /// Place of the row in the archive, from 1.
    pub number: i64,
    /// Line of a table, or place in a list of JSON, from 1; 0 without a manifest.
    pub line: i64,
    /// Document in the archive; empty if none was found.
    pub file: String,
    /// Whether the row became a record.
    pub status: ImportRowStatus,
    /// The record. Of a duplicate the one that has the document already.
    pub envelope_id: Option<EnvelopeId>,
    /// SHA-256 of the document as it is in the archive, lower-case hex.
    pub document_sha256: Option<String>,
    /// Numbers of the signatures that the document had. They are signatures of others, none of this service;
    /// `existing_signatures` of the envelope names who signed by the certificates.
    pub signatures: Option<SignatureCounts>,
    /// Why there is no record.
    pub problem: Option<ImportProblem>,
}

impl From<ImportRow> for ImportRowView {
    fn from(row: ImportRow) -> Self {
        Self {
            number: row.number,
            line: row.line,
            file: row.file,
            status: row.status,
            envelope_id: row.envelope,
            document_sha256: row.document_sha256,
            signatures: row.signatures,
            problem: row.problem.as_ref().map(ImportProblem::from),
        }
    }
}

/// Import that made a record, with what its manifest says.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ImportedView {
    /// Id of the import.
    pub import_id: ImportId,
    /// Number of the row.
    pub row: i64,
    /// System whose export the archive was, by its layout.
    pub source: ImportLayout,
    /// Signers and times, as the manifest declares them. Nothing of it is verified.
    pub declared: DeclaredFacts,
    /// Certificate of completion of the other system. Its bytes are among the attachments of the envelope.
    pub certificate: Option<ImportedCertificateView>,
}

/// Certificate of completion of another system.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ImportedCertificateView {
    /// Name in the archive, without folders.
    pub name: String,
    /// SHA-256, lower-case hex.
    pub sha256: String,
    /// Size in bytes.
    pub size: i64,
    /// Signatures in the certificate: those of others, none of this service.
    pub existing_signatures: Vec<ExistingSignature>,
}

impl ImportedView {
    /// Describes the import that made an envelope; `None` for other envelopes.
    pub fn of(envelope: &Envelope) -> Option<Self> {
        let origin = envelope.imported()?;
        let certificate = origin.certificate.map(|certificate| {
            let StoredFile { sha256, size, .. } = certificate.file.0;
            ImportedCertificateView {
                name: certificate.name,
                sha256,
                size,
                existing_signatures: certificate.existing_signatures,
            }
        });
        Some(Self {
            import_id: origin.import,
            row: origin.row,
            source: origin.source,
            declared: origin.declared,
            certificate,
        })
    }
}

/// Accepts an archive, and queues the making of its records. One that is no archive of documents is refused at once.
pub async fn submit(
    core: &Core,
    caller: &Caller,
    sent: SentImport,
    answer: &ResponseRecorder<ImportView>,
) -> Result<ImportView, ServiceError> {
    let customer = checked_customer(sent.customer)?;
    let plan = planned(&sent.file, sent.layout).await?;
    let (id, org) = (ImportId::new(), &caller.org);
    let area = StorageArea::Imports;
    let file = core
        .files
        .put_spooled(area, org, id.as_str(), &sent.file, "application/zip")
        .await?;

    let import = Import {
        id,
        org: org.clone(),
        layout: plan.layout,
        file,
        customer,
        status: ImportStatus::Running,
        planned: i64::try_from(plan.rows.len()).unwrap_or(i64::MAX),
        done: 0,
        imported: 0,
        duplicates: 0,
        failed: 0,
        failures: 0,
        refusal: None,
        made_by: caller.actor.clone(),
        creator: caller.creator(),
        created_at: core.clock.now(),
        finished_at: None,
    };
    let mut tx = core.store.begin().await?;
    admit(&mut tx, org).await?;
    rows::insert(&mut tx, &import).await?;
    let job = ImportRecords {
        import: import.id.clone(),
    };
    jobs::insert(
        &mut tx,
        org,
        &job,
        Some(import.id.as_str()),
        import.created_at,
    )
    .await?;
    let view = ImportView::from(&import);
    answer.commit(tx, &view).await?;

    Ok(view)
}

fn checked_customer(
    customer: Option<(String, String)>,
) -> Result<Option<ImportCustomer>, ServiceError> {
    let Some((name, email)) = customer else {
        return Ok(None);
    };
    if is_person(&name, &email) {
        return Ok(Some(ImportCustomer { name, email }));
    }
    Err(ServiceError::invalid(
        "invalid_value",
        &["customer_email"],
        "an e-mail address, and customer_name with 1 to 500 characters",
        email,
        "The customer of rows that name none needs both a name and an address",
    ))
}

/// Plans the rows of an archive before it is stored.
async fn planned(
    file: &SpooledFile,
    layout: Option<ImportLayout>,
) -> Result<ImportPlan, ServiceError> {
    let file = file.open().await.map_err(FilesError::Spool)?;
    let file = file.into_std().await;
    let opened = tokio::task::spawn_blocking(move || archive::open(file, layout));
    let opened = opened
        .await
        .map_err(|error| ServiceError::Internal(error.to_string()))?;

    match opened {
        Ok((_, plan)) => Ok(plan),
        Err(OpenError::Read(error)) => Err(FilesError::Spool(error).into()),
        Err(OpenError::Refused(refusal)) => Err(ServiceError::invalid(
            refusal.code,
            &["file"],
            "a zip with documents (PDF), and perhaps manifest.csv or manifest.json",
            "",
            refusal.message,
        )),
    }
}

/// Refuses a further import while many of the organization run.
async fn admit(tx: &mut WriteTransaction, org: &OrgId) -> Result<(), ServiceError> {
    // Without the lock, two requests at once would both count the imports before the other one's.
    organizations::lock(tx, org).await?;
    if rows::unfinished(tx, org).await? < UNFINISHED {
        return Ok(());
    }

    let message = format!(
        "{UNFINISHED} imports of your organization are running; try again when one is done"
    );
    Err(Problem::new(ProblemKind::Quota(WAIT), "too_many_imports", message).into())
}

/// Lists the caller's imports, newest first.
pub async fn list(
    core: &Core,
    caller: &Caller,
    after: Option<&ImportId>,
    limit: i64,
) -> Result<Vec<ImportView>, ServiceError> {
    let mut connection = core.store.read().await?;
    let found = rows::list(&mut connection, &caller.org, after, limit).await?;
    Ok(found.iter().map(ImportView::from).collect())
}

/// Returns an import of the caller.
pub async fn get(core: &Core, caller: &Caller, id: &str) -> Result<ImportView, ServiceError> {
    Ok(ImportView::from(&find(core, caller, id).await?))
}

async fn find(core: &Core, caller: &Caller, id: &str) -> Result<Import, ServiceError> {
    let unknown = || ServiceError::NotFound("Import");
    let id = ImportId::parse(id).ok_or_else(unknown)?;
    let mut connection = core.store.read().await?;
    let import = rows::get(&mut connection, &caller.org, &id).await?;
    import.ok_or_else(unknown)
}

/// Lists results of rows behind a number.
pub async fn rows(
    core: &Core,
    caller: &Caller,
    id: &str,
    status: Option<ImportRowStatus>,
    after: i64,
    limit: i64,
) -> Result<Vec<ImportRowView>, ServiceError> {
    let import = find(core, caller, id).await?;
    let mut connection = core.store.read().await?;
    let found = rows::rows(&mut connection, &import, status, after, limit).await?;
    Ok(found.into_iter().map(ImportRowView::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_customer_has_a_name_and_an_address() {
        let of = |name: &str, email: &str| checked_customer(Some((name.into(), email.into())));
        let customer = of("Jordan Lee", "jordan@example.com").unwrap().unwrap();
        assert_eq!(customer.name, "Jordan Lee");
        assert!(checked_customer(None).unwrap().is_none());
        for (name, email) in [
            ("", "jordan@example.com"),
            ("Jordan Lee", ""),
            ("Jordan Lee", "x"),
        ] {
            assert!(of(name, email).is_err(), "{name} {email}");
        }
    }
}
