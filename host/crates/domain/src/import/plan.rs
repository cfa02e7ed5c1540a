//! Which files of an archive become records, and what belongs to each. The same archive always has the same rows, so that
//! an interrupted import continues with the row at which it stopped.

use std::collections::{HashMap, HashSet};

use super::manifest::{Manifest, ManifestRow};
use super::{DeclaredFacts, ImportCustomer, ImportLayout, ROWS};
use crate::tape::{RowProblem, TapeRefusal};

/// Names of certificates of completion without `.pdf`: DocuSign's download of an envelope has `Summary.pdf`.
const CERTIFICATES: [&str; 5] = [
    "summary",
    "certificate",
    "certificate of completion",
    "audit report",
    "audit log",
];
/// Longest name of a record, in characters.
const NAME: usize = 500;

/// Rows of an archive.
#[derive(Debug)]
pub struct ImportPlan {
    pub layout: ImportLayout,
    pub rows: Vec<PlannedRow>,
}

/// A row, or why it becomes no record.
#[derive(Debug)]
pub struct PlannedRow {
    /// Line of the manifest; 0 without one.
    pub line: u64,
    pub record: Result<PlannedRecord, RowProblem>,
}

/// Files and data of a record that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedRecord {
    /// Name of the document in the archive.
    pub document: String,
    /// Name of the certificate of completion in the archive.
    pub certificate: Option<String>,
    pub name: String,
    pub external_id: Option<String>,
    /// None: that of the import.
    pub customer: Option<ImportCustomer>,
    pub declared: DeclaredFacts,
}

/// Returns the name of the manifest, if the archive has one.
///
/// # Errors
/// It has several.
pub fn manifest_of<'n>(
    names: impl IntoIterator<Item = &'n str>,
) -> Result<Option<&'n str>, TapeRefusal> {
    let mut found = names.into_iter().filter(|name| {
        let last = name.rsplit('/').next().unwrap_or_default();
        is_visible(name) && matches!(last, "manifest.csv" | "manifest.json")
    });
    let (first, second) = (found.next(), found.next());
    match (first, second) {
        (Some(first), Some(second)) => Err(TapeRefusal {
            code: "several_manifests",
            message: format!("The archive has two manifests: {first} and {second}"),
        }),
        (first, _) => Ok(first),
    }
}

/// Whether people see a file: folders of systems are left out.
fn is_visible(name: &str) -> bool {
    let is_hidden = |part: &str| part.starts_with('.') || part == "__MACOSX";
    !name.ends_with('/') && !name.split('/').any(is_hidden)
}

/// Plans the rows of an archive with these files.
///
/// # Errors
/// It has no rows, or too many.
pub fn plan(names: &[&str], manifest: Option<(&str, Manifest)>) -> Result<ImportPlan, TapeRefusal> {
    let (layout, rows) = match manifest {
        Some((path, manifest)) => {
            let base = path
                .rsplit_once('/')
                .map_or(0, |(folder, _)| folder.len() + 1);
            let files = ArchiveFiles::of(names, path.get(..base).unwrap_or_default());
            let rows = manifest.rows.into_iter();
            let rows = rows.flat_map(|row| files.rows_of(row));
            (manifest.layout, rows.collect())
        }
        None => {
            let files = ArchiveFiles::of(names, "");
            (files.layout(), files.rows())
        }
    };

    let refusal = |code, message| TapeRefusal { code, message };
    let rows: Vec<PlannedRow> = rows;
    if rows.is_empty() {
        let message = "The archive has no documents (PDF), or its manifest no rows";
        return Err(refusal("no_rows", message.to_owned()));
    }
    if rows.len() > ROWS {
        let message = format!("The archive has more than {ROWS} documents; split it");
        return Err(refusal("too_many_rows", message));
    }
    Ok(ImportPlan { layout, rows })
}

/// PDFs of an archive, by names in lower case.
struct ArchiveFiles<'n> {
    /// Path in front of all names.
    base: &'n str,
    /// Paths behind the base, sorted.
    paths: Vec<&'n str>,
    known: HashSet<&'n str>,
    /// By the name of their folder.
    by_folder: HashMap<String, Vec<&'n str>>,
    /// By the path of their folder.
    siblings: HashMap<&'n str, Vec<&'n str>>,
    /// By the name without `.pdf`.
    by_stem: HashMap<String, Vec<&'n str>>,
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn last_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Returns the name of a file without its ending; none if it is no PDF.
fn stem_of(path: &str) -> Option<&str> {
    let last = last_of(path);
    let at = last.len().checked_sub(4)?;
    let ending = last.get(at..)?;
    ending
        .eq_ignore_ascii_case(".pdf")
        .then(|| last.get(..at))?
}

/// Whether a file is a certificate of completion by its name: `Summary.pdf`, or `Lease - Audit Report.pdf`.
fn is_certificate(path: &str) -> bool {
    let stem = stem_of(path).unwrap_or_default().to_lowercase();
    let is_named = |known: &&str| {
        let begins = stem.strip_prefix(*known);
        let ends = stem.strip_suffix(*known);
        [begins, ends].into_iter().flatten().any(|rest| {
            rest.is_empty() || rest.starts_with([' ', '-', '_']) || rest.ends_with([' ', '-', '_'])
        })
    };
    CERTIFICATES.iter().any(|known| is_named(&known))
}

impl<'n> ArchiveFiles<'n> {
    fn of(names: &[&'n str], base: &'n str) -> Self {
        let visible = names.iter().filter(|name| is_visible(name));
        let below = visible.filter_map(|name| name.strip_prefix(base));
        let mut paths: Vec<&str> = below.filter(|path| stem_of(path).is_some()).collect();
        paths.sort_unstable();

        let mut files = Self {
            base,
            known: paths.iter().copied().collect(),
            by_folder: HashMap::new(),
            siblings: HashMap::new(),
            by_stem: HashMap::new(),
            paths,
        };
        for path in &files.paths {
            let folder = folder_of(path);
            let name = last_of(folder).to_lowercase();
            let stem = stem_of(path).unwrap_or_default().to_lowercase();
            files.by_folder.entry(name).or_default().push(path);
            files.siblings.entry(folder).or_default().push(path);
            files.by_stem.entry(stem).or_default().push(path);
        }
        files
    }

    /// Finds the layout of an archive without a manifest.
    fn layout(&self) -> ImportLayout {
        let is_summary = |path: &&str| last_of(path).eq_ignore_ascii_case("summary.pdf");
        if self.paths.iter().any(is_summary) {
            ImportLayout::Docusign
        } else {
            ImportLayout::Columns
        }
    }

    /// Returns a row for each document, without a manifest.
    fn rows(&self) -> Vec<PlannedRow> {
        let documents = self.paths.iter().filter(|path| !is_certificate(path));
        let rows = documents.map(|path| PlannedRow {
            line: 0,
            record: Ok(self.record(path, &ManifestRow::default())),
        });
        rows.collect()
    }

    /// Returns the rows of a row of the manifest: one for each of its documents.
    fn rows_of(&self, row: Result<ManifestRow, RowProblem>) -> Vec<PlannedRow> {
        let failed = |problem: RowProblem| {
            vec![PlannedRow {
                line: problem.line,
                record: Err(problem),
            }]
        };
        let row = match row {
            Ok(row) => row,
            Err(problem) => return failed(problem),
        };
        if let Some(certificate) = &row.certificate
            && self.find(certificate, &row).is_none()
        {
            let message = format!("The archive has no file {certificate}");
            return failed(problem(&row, "no_certificate", message));
        }

        match self.documents_of(&row) {
            Ok(documents) => documents
                .into_iter()
                .map(|path| PlannedRow {
                    line: row.line,
                    record: Ok(self.record(path, &row)),
                })
                .collect(),
            Err(problem) => failed(problem),
        }
    }

    /// Finds a file that a manifest names: by its path, in the folder with the id, or by its name alone.
    fn find(&self, path: &str, row: &ManifestRow) -> Option<&'n str> {
        if let Some(found) = self.known.get(path) {
            return Some(found);
        }
        let id = row.external_id.as_ref();
        if let Some(found) = id.and_then(|id| self.known.get(format!("{id}/{path}").as_str())) {
            return Some(found);
        }

        let stem = stem_of(path)?.to_lowercase();
        let mut named = self.by_stem.get(&stem)?.iter();
        match (named.next(), named.next()) {
            (Some(found), None) if !path.contains('/') => Some(found),
            _ => None,
        }
    }

    fn documents_of(&self, row: &ManifestRow) -> Result<Vec<&'n str>, RowProblem> {
        if !row.documents.is_empty() {
            let found = row.documents.iter().map(|name| {
                self.find(name, row).ok_or_else(|| {
                    let message = format!(
                        "The archive has no file {name}, or several of this name; give its path"
                    );
                    problem(row, "no_document", message)
                })
            });
            return found.collect();
        }

        let keys = [row.external_id.as_ref(), row.name.as_ref()];
        for key in keys.into_iter().flatten() {
            let key = key.to_lowercase();
            if let Some(paths) = self.by_folder.get(&key) {
                let documents = paths.iter().filter(|path| !is_certificate(path));
                let documents: Vec<&str> = documents.copied().collect();
                if !documents.is_empty() {
                    return Ok(documents);
                }
            }
            match self.by_stem.get(&key).map(Vec::as_slice) {
                None | Some([]) => {}
                Some([path]) => return Ok(vec![path]),
                Some([_, ..]) => {
                    let message = format!("The archive has several files {key}.pdf");
                    return Err(problem(row, "ambiguous_document", message));
                }
            }
        }
        let message = "The archive has no folder and no file with the id or name of this row; name the file in a \
                       column document";
        Err(problem(row, "no_document", message))
    }

    fn record(&self, path: &'n str, row: &ManifestRow) -> PlannedRecord {
        let certificate = match &row.certificate {
            Some(named) => self.find(named, row),
            None => self.certificate_of(path),
        };
        let stem: String = stem_of(path).unwrap_or(path).chars().take(NAME).collect();
        let first = row.declared.signers.first();
        let customer =
            |own: &Option<String>, of_signer: Option<&String>| own.as_ref().or(of_signer).cloned();
        let name = customer(
            &row.customer_name,
            first.and_then(|first| first.name.as_ref()),
        );
        let email = customer(
            &row.customer_email,
            first.and_then(|first| first.email.as_ref()),
        );

        PlannedRecord {
            document: format!("{}{path}", self.base),
            certificate: certificate.map(|path| format!("{}{path}", self.base)),
            name: row.name.clone().unwrap_or(stem),
            external_id: row.external_id.clone(),
            // The address stands for a name that is missing.
            customer: email.map(|email| ImportCustomer {
                name: name.unwrap_or_else(|| email.clone()),
                email,
            }),
            declared: row.declared.clone(),
        }
    }

    /// Finds the certificate beside a document: the only one in its folder, or the one with its name in front.
    fn certificate_of(&self, path: &str) -> Option<&'n str> {
        let folder = folder_of(path);
        let siblings = self.siblings.get(folder)?;
        let stem = stem_of(path)?.to_lowercase();
        let mut certificates = siblings.iter().filter(|path| is_certificate(path));
        let of_name = certificates.clone().find(|path| {
            let other = stem_of(path).unwrap_or_default().to_lowercase();
            other
                .strip_prefix(stem.as_str())
                .is_some_and(|rest| !rest.is_empty())
        });
        if of_name.is_some() || folder.is_empty() {
            return of_name.copied();
        }
        match (certificates.next(), certificates.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        }
    }
}

fn problem(row: &ManifestRow, code: &'static str, message: impl Into<String>) -> RowProblem {
    RowProblem {
        line: row.line,
        code,
        message: message.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(names: &[&str], manifest: Option<(&str, &str)>) -> ImportPlan {
        let manifest = manifest.map(|(path, text)| {
            let read = Manifest::read(text.into(), path.ends_with(".json"), None);
            (path, read.unwrap())
        });
        plan(names, manifest).unwrap()
    }

    /// Returns documents and certificates, or codes of problems.
    fn files(plan: &ImportPlan) -> Vec<(&str, &str)> {
        let files = plan.rows.iter().map(|row| match &row.record {
            Ok(record) => (
                record.document.as_str(),
                record.certificate.as_deref().unwrap_or_default(),
            ),
            Err(problem) => ("", problem.code),
        });
        files.collect()
    }

    #[test]
    fn folders_of_envelopes_need_no_manifest() {
        let names = [
            "export/b/Summary.pdf",
            "export/b/Loan.pdf",
            "export/a/Lease.PDF",
            "export/a/Rider.pdf",
            "export/a/Summary.pdf",
            "export/a/",
            "__MACOSX/export/a/Lease.pdf",
            "export/.hidden/x.pdf",
            "export/readme.txt",
        ];
        let plan = planned(&names, None);
        assert_eq!(plan.layout, ImportLayout::Docusign);
        let expected = [
            ("export/a/Lease.PDF", "export/a/Summary.pdf"),
            ("export/a/Rider.pdf", "export/a/Summary.pdf"),
            ("export/b/Loan.pdf", "export/b/Summary.pdf"),
        ];
        assert_eq!(files(&plan), expected);
        let record = plan.rows[0].record.as_ref().unwrap();
        assert_eq!((record.name.as_str(), &record.customer), ("Lease", &None));
    }

    #[test]
    fn a_report_finds_folders_by_id_and_files_by_name() {
        let names = [
            "x/manifest.csv",
            "x/E1/Lease.pdf",
            "x/E1/Summary.pdf",
            "x/Loan.pdf",
            "x/Twice.pdf",
            "x/other/Twice.pdf",
        ];
        let manifest = "Envelope ID,Subject,Recipient Email\ne1,A,j@example.com\ne2,loan,\ne3,gone,\ne4,twice,\n";
        let plan = planned(&names, Some(("x/manifest.csv", manifest)));
        let expected = [
            ("x/E1/Lease.pdf", "x/E1/Summary.pdf"),
            ("x/Loan.pdf", ""),
            ("", "no_document"),
            ("", "ambiguous_document"),
        ];
        assert_eq!(files(&plan), expected);
        assert_eq!(plan.rows[2].line, 4);

        let record = plan.rows[0].record.as_ref().unwrap();
        let customer = record.customer.as_ref().unwrap();
        assert_eq!(record.name, "A");
        assert_eq!(customer.email, "j@example.com");
        assert_eq!(customer.name, "j@example.com");
    }

    #[test]
    fn an_audit_report_belongs_to_the_agreement_of_its_name() {
        let names = [
            "Lease.pdf",
            "Lease - Audit Report.pdf",
            "Loan.pdf",
            "Loan_certificate.pdf",
        ];
        let manifest = "Agreement Name,Agreement ID\nLease,1\nLoan,2\n";
        let plan = planned(&names, Some(("manifest.csv", manifest)));
        let expected = [
            ("Lease.pdf", "Lease - Audit Report.pdf"),
            ("Loan.pdf", "Loan_certificate.pdf"),
        ];
        assert_eq!(files(&plan), expected);
    }

    #[test]
    fn named_files_are_found_by_path_and_in_the_folder_of_the_submission() {
        let names = ["7/lease.pdf", "7/Audit Log.pdf", "8/lease.pdf", "a.pdf"];
        let manifest = r#"[{"id":7,"submitters":[],"combined_document_url":"https://x.example/lease.pdf",
            "audit_log_url":"https://x.example/Audit%20Log.pdf"},
            {"document":"a.pdf","certificate":"gone.pdf"},{"document":"b.pdf"},{"document":"lease.pdf"},
            {"document":"8/lease.pdf"}]"#;
        let plan = planned(&names, Some(("manifest.json", manifest)));
        let expected = [
            ("7/lease.pdf", "7/Audit Log.pdf"),
            ("", "no_certificate"),
            ("", "no_document"),
            ("", "no_document"),
            ("8/lease.pdf", ""),
        ];
        assert_eq!(files(&plan), expected);
    }

    #[test]
    fn an_archive_has_one_manifest_and_a_limited_number_of_rows() {
        let code = |result: Result<ImportPlan, TapeRefusal>| result.unwrap_err().code;
        assert_eq!(code(plan(&["Summary.pdf", "a.txt"], None)), "no_rows");
        let many: Vec<String> = (0..=ROWS).map(|number| format!("{number}.pdf")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(code(plan(&many, None)), "too_many_rows");

        let names = ["a/manifest.csv", "__MACOSX/manifest.csv"];
        assert_eq!(manifest_of(names).unwrap(), Some("a/manifest.csv"));
        assert_eq!(manifest_of(["a.pdf"]).unwrap(), None);
        let two = manifest_of(["manifest.json", "a/manifest.csv"]);
        assert_eq!(two.unwrap_err().code, "several_manifests");
    }
}
