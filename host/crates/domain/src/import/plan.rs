//! Which files of an archive become records, and what belongs to each. The same archive always has the same rows, so that
//! an interrupted import continues with the row at which it stopped.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

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
/// What stands between the name of a document and one of these words.
const SEPARATORS: [&str; 4] = [" - ", "-", "_", " "];
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
    /// Name of the document in the archive, or the one that the manifest has for it; empty if there is none.
    pub file: String,
    pub record: Result<PlannedRecord, RowProblem>,
}

/// Files and data of a record that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedRecord {
    /// Name of the certificate of completion in the archive.
    pub certificate: Option<String>,
    pub name: String,
    pub external_id: Option<String>,
    /// None: that of the import.
    pub customer: Option<ImportCustomer>,
    /// Shared by the documents of a row.
    pub declared: Arc<DeclaredFacts>,
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
            (manifest.layout, files.rows_of(manifest.rows))
        }
        None => {
            let files = ArchiveFiles::of(names, "");
            (files.layout(), files.rows())
        }
    };

    let refusal = |code, message| TapeRefusal { code, message };
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
    /// Documents by the name of their folder.
    by_folder: HashMap<String, Vec<&'n str>>,
    /// By the name without `.pdf`.
    by_stem: HashMap<String, Vec<&'n str>>,
    /// Files with the name of a certificate alone, by the path of their folder.
    certificates: HashMap<&'n str, Vec<&'n str>>,
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
    ending.eq_ignore_ascii_case(".pdf").then_some(())?;
    last.get(..at)
}

fn lower_stem(path: &str) -> String {
    stem_of(path).unwrap_or_default().to_lowercase()
}

/// Whether a file is a certificate of completion by its name: `Summary.pdf`, or `Audit Log - Lease.pdf`.
fn is_certificate(path: &str) -> bool {
    let stem = lower_stem(path);
    let audits = ["audit log - ", "audit report - "];
    CERTIFICATES.contains(&stem.as_str()) || audits.iter().any(|begin| stem.starts_with(begin))
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
            by_stem: HashMap::new(),
            certificates: HashMap::new(),
            paths: Vec::new(),
        };
        for path in paths.iter().copied() {
            let named = files.by_stem.entry(lower_stem(path)).or_default();
            named.push(path);
            if is_certificate(path) {
                let of_folder = files.certificates.entry(folder_of(path)).or_default();
                of_folder.push(path);
            }
        }
        // Behind the names of all files, by which certificates are told from documents.
        for path in paths.iter().copied() {
            if files.is_document(path) {
                let folder = last_of(folder_of(path)).to_lowercase();
                files.by_folder.entry(folder).or_default().push(path);
            }
        }
        files.paths = paths;
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

    /// Returns a row for each document, without a manifest. A certificate that belongs to no document is one itself, so
    /// that no file is left out.
    fn rows(&self) -> Vec<PlannedRow> {
        let all = self.paths.iter().copied();
        let documents: Vec<&str> = all.filter(|path| self.is_document(path)).collect();
        let used: HashSet<&str> = documents
            .iter()
            .filter_map(|path| self.certificate_of(path))
            .collect();

        let (row, declared) = (ManifestRow::default(), Arc::default());
        let others = self.paths.iter().copied();
        let others = others.filter(|path| !self.is_document(path) && !used.contains(path));
        let all = documents.iter().copied().chain(others);
        all.map(|path| self.planned(path, &row, &declared))
            .collect()
    }

    /// Returns the rows of a manifest, one for each of its documents, and behind them the files that it does not name. More
    /// rows than an import may have are not planned to their end: a thousand rows can each name a folder of thousands.
    fn rows_of(&self, rows: Vec<Result<ManifestRow, RowProblem>>) -> Vec<PlannedRow> {
        let mut planned = Vec::new();
        let mut used = HashSet::new();
        for row in rows {
            let found = row.and_then(|row| Ok((self.documents_of(&row)?, row)));
            match found {
                Ok((documents, row)) => {
                    let declared = Arc::new(row.declared.clone());
                    for path in documents {
                        used.insert(path);
                        used.extend(self.certificate(path, &row));
                        planned.push(self.planned(path, &row, &declared));
                    }
                }
                Err(problem) => planned.push(PlannedRow {
                    line: problem.line,
                    file: String::new(),
                    record: Err(problem),
                }),
            }
            if planned.len() > ROWS {
                return planned;
            }
        }

        let unused = self.paths.iter().filter(|path| !used.contains(*path));
        planned.extend(unused.map(|path| PlannedRow {
            line: 0,
            file: format!("{}{path}", self.base),
            record: Err(RowProblem {
                line: 0,
                code: "not_listed",
                message: "No row of the manifest has this file".to_owned(),
            }),
        }));
        planned
    }

    /// Finds a file that a manifest names: by its path, in the folder with the id, or by its name alone.
    fn find(&self, path: &str, row: &ManifestRow) -> Option<&'n str> {
        let in_folder = row.external_id.as_ref().map(|id| format!("{id}/{path}"));
        let exact = self.known.get(path).copied();
        let exact = exact.or_else(|| self.known.get(in_folder?.as_str()).copied());
        if exact.is_some() || path.contains('/') {
            return exact;
        }

        let named = self.by_stem.get(&lower_stem(path))?;
        match named.as_slice() {
            [found] if stem_of(path).is_some() => Some(*found),
            _ => None,
        }
    }

    fn documents_of(&self, row: &ManifestRow) -> Result<Vec<&'n str>, RowProblem> {
        if let Some(certificate) = &row.certificate
            && self.find(certificate, row).is_none()
        {
            return Err(unknown_file(row, "no_certificate", certificate));
        }
        if !row.documents.is_empty() {
            let found = row.documents.iter().map(|name| {
                let found = self.find(name, row);
                found.ok_or_else(|| unknown_file(row, "no_document", name))
            });
            return found.collect();
        }

        let keys = [row.external_id.as_ref(), row.name.as_ref()];
        for key in keys.into_iter().flatten() {
            let key = key.to_lowercase();
            if let Some(documents) = self.by_folder.get(&key) {
                return Ok(documents.clone());
            }
            match self.by_stem.get(&key).map(Vec::as_slice) {
                None | Some([]) => {}
                Some([path]) => return Ok(vec![*path]),
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

    fn planned(
        &self,
        path: &'n str,
        row: &ManifestRow,
        declared: &Arc<DeclaredFacts>,
    ) -> PlannedRow {
        let certificate = self.certificate(path, row);
        let stem: String = stem_of(path).unwrap_or(path).chars().take(NAME).collect();
        let mut signers = row.declared.signers.iter();
        let first = signers.find(|signer| signer.email.is_some());
        let name = row.customer_name.clone();
        let name = name.or_else(|| first?.name.clone());
        let email = row.customer_email.clone();
        let email = email.or_else(|| first?.email.clone());

        let record = PlannedRecord {
            certificate: certificate.map(|path| format!("{}{path}", self.base)),
            name: row.name.clone().unwrap_or(stem),
            external_id: row.external_id.clone(),
            // The address stands for a name that is missing.
            customer: email.map(|email| ImportCustomer {
                name: name.unwrap_or_else(|| email.clone()),
                email,
            }),
            declared: Arc::clone(declared),
        };
        PlannedRow {
            line: row.line,
            file: format!("{}{path}", self.base),
            record: Ok(record),
        }
    }

    fn certificate(&self, path: &str, row: &ManifestRow) -> Option<&'n str> {
        match &row.certificate {
            Some(named) => self.find(named, row),
            None => self.certificate_of(path),
        }
    }

    /// Finds the certificate beside a document: the one with its name, or the only one in its folder.
    fn certificate_of(&self, path: &str) -> Option<&'n str> {
        let (folder, stem) = (folder_of(path), lower_stem(path));
        let behind = CERTIFICATES
            .iter()
            .flat_map(|word| SEPARATORS.map(|between| format!("{stem}{between}{word}")));
        let audits = ["audit log", "audit report"].map(|word| format!("{word} - {stem}"));
        let of_name = behind
            .chain(audits)
            .find_map(|name| self.beside(folder, &name));
        if of_name.is_some() || folder.is_empty() {
            return of_name;
        }

        match self.certificates.get(folder)?.as_slice() {
            [only] if *only != path => Some(*only),
            _ => None,
        }
    }

    /// Finds the file of a folder with this name in lower case, without `.pdf`.
    fn beside(&self, folder: &str, stem: &str) -> Option<&'n str> {
        let mut named = self.by_stem.get(stem)?.iter().copied();
        named.find(|other| folder_of(other) == folder)
    }

    /// Whether a file is none of the certificates by its name and those of the files beside it.
    fn is_document(&self, path: &str) -> bool {
        let stem = lower_stem(path);
        let is_beside = CERTIFICATES.iter().any(|word| {
            let begin = stem.strip_suffix(word).unwrap_or_default();
            let mut cut = SEPARATORS.iter().filter_map(|one| begin.strip_suffix(one));
            cut.any(|begin| self.beside(folder_of(path), begin).is_some())
        });
        !is_beside && !is_certificate(path)
    }
}

fn unknown_file(row: &ManifestRow, code: &'static str, name: &str) -> RowProblem {
    let message = format!("The archive has no file {name}, or several of this name; give its path");
    problem(row, code, message)
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
                row.file.as_str(),
                record.certificate.as_deref().unwrap_or_default(),
            ),
            Err(problem) => (row.file.as_str(), problem.code),
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
            ("x/Twice.pdf", "not_listed"),
            ("x/other/Twice.pdf", "not_listed"),
        ];
        assert_eq!(files(&plan), expected);
        assert_eq!((plan.rows[2].line, plan.rows[4].line), (4, 0));

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
            ("a.pdf", "not_listed"),
        ];
        assert_eq!(files(&plan), expected);
    }

    #[test]
    fn a_certificate_without_a_document_is_a_document_itself() {
        let names = [
            "Certificate of insurance.pdf",
            "Title-certificate.pdf",
            "a/Summary.pdf",
            "b/Certificate.pdf",
            "b/Lease.pdf",
            "b/Summary.pdf",
        ];
        let plan = planned(&names, None);
        let mut found = files(&plan);
        found.sort_unstable();
        assert_eq!(found, names.map(|name| (name, "")));
    }

    #[test]
    fn an_archive_has_one_manifest_and_a_limited_number_of_rows() {
        let code = |result: Result<ImportPlan, TapeRefusal>| result.unwrap_err().code;
        assert_eq!(code(plan(&["a/", "a.txt"], None)), "no_rows");
        let many: Vec<String> = (0..=ROWS).map(|number| format!("{number}.pdf")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(code(plan(&many, None)), "too_many_rows");

        // Each row names a folder with many documents.
        let folder: Vec<String> = (0..200).map(|number| format!("x/{number}.pdf")).collect();
        let folder: Vec<&str> = folder.iter().map(String::as_str).collect();
        let rows = format!("document,external_id\n{}", ",x\n".repeat(ROWS));
        let manifest = Manifest::read(rows.into(), false, None).unwrap();
        let code_of_folders = code(plan(&folder, Some(("manifest.csv", manifest))));
        assert_eq!(code_of_folders, "too_many_rows");

        let names = ["a/manifest.csv", "__MACOSX/manifest.csv"];
        assert_eq!(manifest_of(names).unwrap(), Some("a/manifest.csv"));
        assert_eq!(manifest_of(["a.pdf"]).unwrap(), None);
        let two = manifest_of(["manifest.json", "a/manifest.csv"]);
        assert_eq!(two.unwrap_err().code, "several_manifests");
    }
}
