//! Report of an import as a table.

use std::io;

use super::{ImportRowView, find};
use holdfast_adapters::files::{FilesError, SpooledFile};
use holdfast_domain::cell::inert;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::imports as rows;

/// Names of the columns.
const COLUMNS: [&str; 11] = [
    "number",
    "line",
    "file",
    "status",
    "envelope_id",
    "document_sha256",
    "signatures_found",
    "signatures_intact",
    "signatures_trusted",
    "code",
    "message",
];

/// Writes all results so far as CSV.
pub async fn report(core: &Core, caller: &Caller, id: &str) -> Result<SpooledFile, ServiceError> {
    let import = find(core, caller, id).await?;
    let mut connection = core.store.read().await?;
    // A few megabytes at most: rows and names of files are limited.
    let results = rows::rows(&mut connection, &import, None, 0, import.planned).await?;
    drop(connection);

    let write = move |file: &mut std::fs::File| {
        let mut table = csv::Writer::from_writer(io::BufWriter::new(file));
        table.write_record(COLUMNS)?;
        for row in results {
            table.write_record(cells(ImportRowView::from(row)))?;
        }
        table.flush()
    };
    let folder = core.config.spool_folder();
    let written = SpooledFile::written(&folder, write).await;
    Ok(written.map_err(FilesError::Spool)?)
}

/// Returns the cells of a row. Names of files come from the archive, and could be formulas.
fn cells(row: ImportRowView) -> [String; COLUMNS.len()] {
    let counts = row.signatures;
    let count = |of: Option<usize>| of.map(|count| count.to_string()).unwrap_or_default();
    let (code, message) = row
        .problem
        .map(|problem| (problem.code, problem.message))
        .unwrap_or_default();
    [
        row.number.to_string(),
        row.line.to_string(),
        inert(&row.file),
        row.status.to_string(),
        row.envelope_id.map(|id| id.to_string()).unwrap_or_default(),
        row.document_sha256.unwrap_or_default(),
        count(counts.map(|counts| counts.found)),
        count(counts.map(|counts| counts.intact)),
        count(counts.map(|counts| counts.trusted)),
        code,
        inert(&message),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imports::ImportProblem;
    use holdfast_domain::import::ImportRowStatus;

    #[test]
    fn names_of_files_are_no_formulas() {
        let cells = cells(ImportRowView {
            number: 7,
            line: 8,
            file: "=cmd.pdf".into(),
            status: ImportRowStatus::Failed,
            envelope_id: None,
            document_sha256: None,
            signatures: None,
            problem: Some(ImportProblem {
                code: "unreadable".into(),
                message: "@x".into(),
            }),
        });
        assert_eq!(cells[2], "'=cmd.pdf");
        assert_eq!((cells[0].as_str(), cells[9].as_str()), ("7", "unreadable"));
        assert_eq!((cells[6].as_str(), cells[10].as_str()), ("", "'@x"));
    }
}
