//! The job that makes the records of an import, one after the other.
//!
//! Each row is one transaction: its record, its result and the count of rows commit together, so that a crash in between
//! repeats the row and makes no second record.

use std::fs::File;
use std::io::Write as _;

use super::archive;
use super::record::{self, ImportedFiles};
use holdfast_adapters::files::{FilesError, SpooledFile};
use holdfast_base::faults;
use holdfast_domain::id::{ImportId, OrgId};
use holdfast_domain::import::{
    Import, ImportPlan, ImportRow, ImportRowStatus, ImportStatus, PlannedRecord, PlannedRow,
};
use holdfast_domain::job::DeleteObject;
use holdfast_domain::tape::{OpenError, StoredRefusal};
use holdfast_evidence::archive::Archive;
use holdfast_platform::{Core, ServiceError};
use holdfast_store::imports as rows;
use holdfast_store::{StoreError, jobs};

/// Runs after which a damaged or missing archive is given up: with the pauses of a job, an hour in which an operator can put
/// it back.
const ATTEMPTS: i64 = 8;

/// Makes the records of an import to its end. May run twice, also at once: the first worker counts.
pub async fn run(core: &Core, org: &OrgId, id: &ImportId) -> Result<(), ServiceError> {
    let mut connection = core.store.read().await?;
    let import = rows::get(&mut connection, org, id).await?;
    drop(connection);
    let Some(import) = import.filter(|import| import.status == ImportStatus::Running) else {
        return Ok(());
    };

    match process(core, &import).await {
        Ok(()) => end(core, &import, None).await,
        // Also a conflict with another worker: that one may have died or lost its lease by now, so the job has to run
        // again until the import has an end.
        Err(error) => again(core, &import, error).await,
    }
}

/// Returns the error, so that the job runs again, unless the stored archive was damaged or missing several times.
async fn again(core: &Core, import: &Import, error: ServiceError) -> Result<(), ServiceError> {
    let defect = match &error {
        ServiceError::Files(FilesError::Tampered { .. } | FilesError::Damaged) => StoredRefusal {
            code: "file_damaged".into(),
            message: "The stored archive is not the one that was sent; send it again".into(),
        },
        ServiceError::Files(FilesError::Gone) => StoredRefusal {
            code: "file_missing".into(),
            message: "The stored archive is missing; send it again".into(),
        },
        _ => return Err(error),
    };
    if import.failures + 1 >= ATTEMPTS {
        tracing::warn!(import_id = %import.id, %error, "import given up");
        return end(core, import, Some(&defect)).await;
    }

    let mut tx = core.store.begin().await?;
    rows::count_failure(&mut tx, import).await?;
    tx.commit().await?;
    Err(error)
}

/// Ends the import. The archive is deleted: its documents are with their records.
async fn end(
    core: &Core,
    import: &Import,
    refusal: Option<&StoredRefusal>,
) -> Result<(), ServiceError> {
    let now = core.clock.now();
    let file = DeleteObject {
        key: import.file.key.clone(),
        instead: None,
    };
    let mut tx = core.store.begin().await?;
    rows::end(&mut tx, import, refusal, now).await?;
    jobs::insert(&mut tx, &import.org, &file, Some(&import.file.key), now).await?;
    tx.commit().await?;
    Ok(())
}

async fn process(core: &Core, import: &Import) -> Result<(), ServiceError> {
    let spooled = core
        .files
        .spooled(&import.file, &core.config.spool_folder())
        .await?;
    let layout = import.layout;
    let opened = tokio::task::spawn_blocking(move || {
        let file = spooled.into_file().map_err(OpenError::Read)?;
        archive::open(file, Some(layout))
    });
    let (mut archive, plan) = joined(opened.await)?.map_err(unopened)?;

    let done = usize::try_from(import.done).unwrap_or(usize::MAX);
    let ImportPlan { rows, .. } = plan;
    for (number, row) in (1..).zip(rows).skip(done) {
        let lane = core.pace.begin();
        archive = add(core, import, archive, number, row).await?;
        faults::pass("import row");
        tokio::time::sleep(lane.end()).await;
    }
    Ok(())
}

/// Returns what a blocking task returned.
fn joined<T>(result: Result<T, tokio::task::JoinError>) -> Result<T, ServiceError> {
    result.map_err(|error| ServiceError::Internal(error.to_string()))
}

/// An archive that was opened before cannot be opened again: the disk failed, or this program reads it in another way, which
/// no further run changes.
fn unopened(error: OpenError) -> ServiceError {
    match error {
        OpenError::Read(error) => FilesError::Spool(error).into(),
        OpenError::Refused(_) => FilesError::Damaged.into(),
    }
}

/// Makes the record of a row, or notes why there is none. Returns the archive.
async fn add(
    core: &Core,
    import: &Import,
    archive: Archive<File>,
    number: i64,
    row: PlannedRow,
) -> Result<Archive<File>, ServiceError> {
    let mut result = ImportRow {
        number,
        line: i64::try_from(row.line).unwrap_or(i64::MAX),
        file: row.file.clone(),
        status: ImportRowStatus::Failed,
        envelope: None,
        document_sha256: None,
        signatures: None,
        problem: None,
    };
    let (archive, made) = match row.record {
        Ok(planned) => make(core, import, archive, &mut result, row.file, planned).await?,
        Err(problem) => {
            let problem = StoredRefusal {
                code: problem.code.to_owned(),
                message: problem.message,
            };
            (archive, Err(problem))
        }
    };
    if let Err(problem) = made {
        result.problem = Some(problem);
        add_result(core, import, &result).await?;
    }

    let rows = &core.metrics.import_rows;
    rows.get_or_create(&result.status.into()).inc();
    Ok(archive)
}

/// Makes the record of a row, and commits it with the result. Returns the archive, and why there is no record.
async fn make(
    core: &Core,
    import: &Import,
    archive: Archive<File>,
    result: &mut ImportRow,
    document: String,
    planned: PlannedRecord,
) -> Result<(Archive<File>, Result<(), StoredRefusal>), ServiceError> {
    let (archive, document) = unpacked(core, archive, document).await?;
    let (archive, certificate) = match planned.certificate.clone() {
        Some(name) => {
            let (archive, file) = unpacked(core, archive, name.clone()).await?;
            (archive, Some((name, file)))
        }
        None => (archive, None),
    };

    let made = match ImportedFiles::of(document, certificate) {
        Ok(files) => record::make(core, import, result, planned, files).await,
        Err(error) => Err(error),
    };
    let made = match made {
        Ok(()) => Ok(()),
        Err(error) => Err(problem_of(error)?),
    };
    Ok((archive, made))
}

/// Commits the result of a row that makes no record.
async fn add_result(core: &Core, import: &Import, row: &ImportRow) -> Result<(), StoreError> {
    let mut tx = core.store.begin().await?;
    rows::add_row(&mut tx, import, row).await?;
    tx.commit().await
}

/// A file of the archive, or why it cannot be read.
type UnpackedFile = Result<SpooledFile, String>;

/// Unpacks a file of the archive to the disk.
async fn unpacked(
    core: &Core,
    mut archive: Archive<File>,
    name: String,
) -> Result<(Archive<File>, UnpackedFile), ServiceError> {
    let read = tokio::task::spawn_blocking(move || {
        let read = archive.read(&name);
        let read = read.unwrap_or_else(|| Err(format!("{name} is not in the archive")));
        (archive, read)
    });
    let (archive, read) = joined(read.await)?;
    let bytes = match read {
        Ok(bytes) => bytes,
        Err(why) => return Ok((archive, Err(why))),
    };

    let folder = core.config.spool_folder();
    let spooled = SpooledFile::written(&folder, move |file| file.write_all(&bytes)).await;
    Ok((archive, Ok(spooled.map_err(FilesError::Spool)?)))
}

/// Returns why a row makes no record, or the error itself if another try can help.
fn problem_of(error: ServiceError) -> Result<StoredRefusal, ServiceError> {
    if error.is_outage() {
        return Err(error);
    }

    let (code, message) = match error {
        ServiceError::Store(_) | ServiceError::Files(_) | ServiceError::Seal(_) => {
            return Err(error);
        }
        ServiceError::Invalid(issues) => {
            let code = issues.first().map(|issue| issue.code.clone());
            let messages: Vec<String> = issues.into_iter().map(|issue| issue.message).collect();
            (code.unwrap_or_default(), messages.join("; "))
        }
        ServiceError::Unreadable(file) => (
            "unreadable".to_owned(),
            format!("{}: {}", file.message, file.reason),
        ),
        ServiceError::Problem(problem) => {
            let code = problem.code.unwrap_or("refused").to_owned();
            (code, problem.message)
        }
        // A document on which its reader fails must not stop the others.
        ServiceError::Internal(_) | ServiceError::Component(_) => {
            tracing::error!(%error, "row of an import failed");
            let message =
                "The document could not be processed; the log of the installation has the reason";
            ("internal".to_owned(), message.to_owned())
        }
        error => ("refused".to_owned(), error.to_string()),
    };
    // PostgreSQL stores no NUL, and a reason can quote the document.
    let message = message.replace('\0', " ");
    Ok(StoredRefusal { code, message })
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_platform::{Problem, ProblemKind, ValidationIssue};

    #[test]
    fn a_wrong_document_is_a_result_and_an_outage_is_none() {
        let issue = ValidationIssue::new("active_content", &["file"], "", "", "It has scripts");
        let code = |error: ServiceError| problem_of(error).map(|problem| problem.code).ok();
        for (error, expected) in [
            (ServiceError::Invalid(vec![issue]), "active_content"),
            (ServiceError::Internal("a defect".into()), "internal"),
            (ServiceError::Conflict("no".into()), "refused"),
            (
                Problem::new(ProblemKind::State, "held", "no").into(),
                "held",
            ),
        ] {
            assert_eq!(code(error).as_deref(), Some(expected));
        }
        for passing in [
            ServiceError::Busy,
            ServiceError::Store(StoreError::Conflict),
            ServiceError::Files(FilesError::TimedOut),
        ] {
            assert_eq!(code(passing), None);
        }
    }
}
