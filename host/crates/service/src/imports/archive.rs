//! Archives of imports: opened with limits, and read file by file.
//!
//! The strict reader of evidence takes them apart. What is in a document is read in the sandbox only.

use std::collections::HashMap;
use std::io::{self, Read, Seek, SeekFrom};

use holdfast_domain::import::{ImportLayout, ImportPlan, Manifest, manifest_of, plan};
use holdfast_domain::tape::{OpenError, TapeRefusal};
use holdfast_evidence::archive::{Archive, ArchiveLimits};
use holdfast_platform::documents::UPLOAD_LIMIT;

/// How many times larger the files of an archive may be than the archive. PDFs hardly shrink.
const RATIO: u64 = 20;
/// Smallest limit of all files, for archives of a few bytes.
const LEAST: u64 = 1024 * 1024;
/// Longest path of a file, in bytes. Many rows can name the same one.
const PATH: usize = 1_000;
/// Problems that an error names.
const NAMED: usize = 3;

fn refused(code: &'static str, message: impl Into<String>) -> OpenError {
    let message = message.into();
    TapeRefusal { code, message }.into()
}

/// Opens an archive, and plans its rows. Blocks.
///
/// # Errors
/// It is no archive of documents, or the disk fails.
pub(super) fn open<R: Read + Seek>(
    mut file: R,
    layout: Option<ImportLayout>,
) -> Result<(Archive<R>, ImportPlan), OpenError> {
    let size = file.seek(SeekFrom::End(0))?;
    let limits = ArchiveLimits {
        file: UPLOAD_LIMIT,
        total: size.saturating_mul(RATIO).max(LEAST),
    };
    let mut archive = Archive::open(file, limits).map_err(unopened)?;
    if !archive.problems.is_empty() {
        let named: Vec<&str> = archive.problems.iter().map(String::as_str).collect();
        let named = named.get(..NAMED).unwrap_or(&named).join("; ");
        return Err(refused(
            "unsafe_archive",
            format!("The archive cannot be used: {named}"),
        ));
    }

    if archive.names().any(|name| name.len() > PATH) {
        let message = format!("The archive has a file with a path of more than {PATH} bytes");
        return Err(refused("unsafe_archive", message));
    }

    let names: Vec<String> = archive.names().map(str::to_owned).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let manifest = match manifest_of(names.iter().copied())? {
        Some(path) => {
            let bytes = archive.read(path).unwrap_or_else(|| Ok(Vec::new()));
            let bytes = bytes.map_err(|why| refused("unreadable_manifest", why))?;
            let is_json = path.ends_with(".json");
            Some((path, Manifest::read(bytes, is_json, layout)?))
        }
        None => None,
    };
    let plan = plan(&names, manifest)?;
    // Each row is unpacked and stored by itself, and many can have one large certificate.
    let planned = bytes_of(&plan, &archive.sizes().collect());
    if planned > limits.total {
        let limit = limits.total;
        let message = format!(
            "The files of all rows have {planned} bytes, each row counted by itself; the limit is {limit}: split the \
             archive"
        );
        return Err(refused("too_large", message));
    }
    Ok((archive, plan))
}

/// Returns the bytes of the files of all rows.
fn bytes_of(plan: &ImportPlan, sizes: &HashMap<&str, u64>) -> u64 {
    let size = |name: &str| sizes.get(name).copied().unwrap_or_default();
    let records = plan.rows.iter().filter_map(|row| {
        let certificate = row.record.as_ref().ok()?.certificate.as_deref();
        Some(size(&row.file) + certificate.map_or(0, size))
    });
    records.sum()
}

fn unopened(error: io::Error) -> OpenError {
    // The reader names its own errors so; those of the disk have another kind.
    let is_content = matches!(
        error.kind(),
        io::ErrorKind::Other | io::ErrorKind::UnexpectedEof
    );
    if is_content {
        refused("no_archive", format!("The file is no zip: {error}"))
    } else {
        error.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn zipped(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut zip = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
        for (name, bytes) in files {
            zip.start_file(*name, zip::write::SimpleFileOptions::default())
                .unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    fn opened(bytes: &[u8]) -> Result<ImportPlan, &'static str> {
        match open(io::Cursor::new(bytes), None) {
            Ok((_, plan)) => Ok(plan),
            Err(OpenError::Refused(refusal)) => Err(refusal.code),
            Err(OpenError::Read(error)) => panic!("{error}"),
        }
    }

    #[test]
    fn an_archive_is_opened_with_its_manifest() {
        let manifest: &[u8] = b"document,name\na.pdf,Lease\n";
        let plan = opened(&zipped(&[
            ("x/manifest.csv", manifest),
            ("x/a.pdf", b"%PDF-"),
        ]));
        let plan = plan.unwrap();
        assert_eq!(plan.layout, ImportLayout::Columns);
        assert_eq!(plan.rows[0].file, "x/a.pdf");
    }

    #[test]
    fn what_is_no_archive_of_documents_is_refused() {
        assert_eq!(opened(b"no zip").unwrap_err(), "no_archive");
        assert_eq!(opened(&zipped(&[("a.txt", b"")])).unwrap_err(), "no_rows");
        assert_eq!(
            opened(&zipped(&[("../a.pdf", b"")])).unwrap_err(),
            "unsafe_archive"
        );
        let path = format!("{}.pdf", "x".repeat(PATH));
        assert_eq!(
            opened(&zipped(&[(path.as_str(), b"%PDF-")])).unwrap_err(),
            "unsafe_archive"
        );
        let wrong = zipped(&[("manifest.json", b"{")]);
        assert_eq!(opened(&wrong).unwrap_err(), "json");
        let two = zipped(&[("manifest.json", b"[]"), ("manifest.csv", b"document\n")]);
        assert_eq!(opened(&two).unwrap_err(), "several_manifests");

        // A few kilobytes that unpack to megabytes.
        let zeros = vec![0; 4 * 1024 * 1024];
        let bomb = zipped(&[("a.pdf", &zeros)]);
        assert!(bomb.len() < 64 * 1024);
        assert_eq!(opened(&bomb).unwrap_err(), "unsafe_archive");
        // A certificate that each of many documents would be stored with.
        let certificate = vec![0_u8; 300_000];
        let names: Vec<String> = (0..50).map(|number| format!("a/{number}.pdf")).collect();
        let mut files: Vec<(&str, &[u8])> = vec![("a/Summary.pdf", certificate.as_slice())];
        files.extend(
            names
                .iter()
                .map(|name| (name.as_str(), b"%PDF-".as_slice())),
        );
        assert_eq!(opened(&zipped(&files)).unwrap_err(), "too_large");

        let mut damaged = zipped(&[("manifest.csv", b"document\na.pdf\n"), ("a.pdf", b"%PDF-")]);
        damaged[50] ^= 1;
        assert_eq!(opened(&damaged).unwrap_err(), "unreadable_manifest");
    }
}
