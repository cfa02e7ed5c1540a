use std::path::{Path, PathBuf};

use holdfast_documents::{
    DocumentError, SignatureHandling, fill, merge, page_image, strip_tags, write_anew,
};

use crate::readers::{Ignored, PdfReaders};
use crate::seals::seal;
use crate::support::{
    PlacedWord, authoritative, field, mark, moved, non_authoritative, prepare_seal, qpdf_complaint,
    text, words,
};

/// Number of PDFs in the shared corpus, reported when the corpus is missing.
const CASES: usize = 21;

/// Rectangle in which [`fill`] writes its value, as left, top, right, bottom.
const FILLED: Ignored = (1, [0.1, 0.1, 0.4, 0.15]);

#[test]
fn every_fixture_yields_a_valid_document_or_an_error() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures");
    let files = pdfs(Path::new(folder)).expect("the fixtures are part of the repository");
    assert!(files.len() >= 8, "{files:?}");
    round_trip(&files);
}

#[test]
fn every_damaged_fixture_keeps_its_words_and_looks() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/hunt");
    let files = pdfs(Path::new(folder)).expect("the fixtures are part of the repository");
    assert!(files.len() >= 14, "{files:?}");
    round_trip(&files);
}

#[test]
fn marks_and_values_are_visible_on_pages_that_leave_something_open() {
    let mut readers = PdfReaders::start();
    let mut problems = Vec::new();
    for name in [
        "hidden-layer-left-open",
        "content-ends-in-string",
        "content-flate-cut",
        "content-length-too-large",
        "content-edited-by-hand",
        "xref-entry-off-by-one",
    ] {
        let pdf = crate::support::hunted(name);
        let value = field(1, [0.55, 0.84, 0.3, 0.05], text("Signed by Alice"));
        let filled = fill(&pdf, &[value]).expect("it can be filled in");
        let kinds = [
            ("value", filled.clone()),
            (
                "authoritative",
                mark(&filled, &authoritative()).expect("a mark"),
            ),
            (
                "other",
                mark(&filled, &non_authoritative()).expect("a mark"),
            ),
            ("paper", mark(&pdf, &authoritative()).expect("a mark")),
        ];
        for (kind, written) in kinds {
            let before = if kind == "value" || kind == "paper" {
                &pdf
            } else {
                &filled
            };
            let seen = readers.differences(before, &written, 0, None, &[]);
            for reader in ["MuPDF: page 1", "PDFium: page 1"] {
                if !seen.contains(reader) {
                    problems.push(format!("{name}: {kind} is invisible in {reader}: {seen}"));
                }
            }
        }
    }

    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn marks_are_visible_on_dark_large_and_tiny_pages() {
    let mut readers = PdfReaders::start();
    let mut problems = Vec::new();
    for (name, width, height, ink) in [
        ("dark", 612, 792, "0.1 g"),
        ("grey", 612, 792, "0.44 0.44 0.46 rg"),
        ("red", 612, 792, "0.62 0.1 0.14 rg"),
        ("A0", 2384, 3370, "0 g"),
        ("tiny", 72, 72, "0 g"),
    ] {
        let pdf = crate::support::page(
            &format!("/MediaBox[0 0 {width} {height}]"),
            &format!("{ink} 0 0 {width} {height} re f"),
        );
        for request in [authoritative(), non_authoritative()] {
            let marked = mark(&pdf, &request).expect("a mark");
            let seen = readers.differences(&pdf, &marked, 0, None, &[]);
            for reader in ["MuPDF: page 1", "PDFium: page 1"] {
                if !seen.contains(reader) {
                    problems.push(format!("{name}: {:?} is invisible: {seen}", request.kind));
                }
            }

            let highest = words(&marked)
                .iter()
                .map(|word| (word.edges[3] - word.edges[1]) / f64::from(height))
                .fold(0.0, f64::max);
            if highest < 0.007 {
                problems.push(format!(
                    "{name}: {:?} is too small: {highest}",
                    request.kind
                ));
            }
        }
    }

    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Third-party files are not part of the repository; the test looks for them in `HOLDFAST_CORPUS`,
/// or next to the workspace.
#[test]
fn every_corpus_file_yields_a_valid_document_or_an_error() {
    let folder = std::env::var_os("HOLDFAST_CORPUS").map_or_else(
        || {
            PathBuf::from(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../../shared/corpus"
            ))
        },
        PathBuf::from,
    );

    match pdfs(&folder) {
        Some(files) => round_trip(&files),
        None => println!(
            "skipped: {CASES} corpus files, because {} is not there",
            folder.display()
        ),
    }
}

fn pdfs(folder: &Path) -> Option<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "pdf"))
        .collect();
    files.sort();
    Some(files)
}

/// Marks, fills and merges each file. The output must pass qpdf, open in MuPDF and PDFium, keep
/// every word that poppler finds, and look the same except for the additions.
fn round_trip(files: &[PathBuf]) {
    let mut readers = PdfReaders::start();
    let mut problems = Vec::new();
    for path in files {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let pdf = std::fs::read(path).expect("the file can be read");
        let document = CorpusDocument {
            name: &name,
            pdf: &pdf,
            sound: qpdf_complaint(&pdf).is_none(),
            words: words(&pdf),
            // Some documents are built to make other readers use up all memory.
            drawn: !name.starts_with("hostile-"),
        };
        for change in document.changes(&mut readers) {
            let verdict = document.judge(&change, &mut readers, &mut problems);
            println!("{name}: {}: {verdict}", change.name);
        }

        document.strip(&mut problems);
        let image = page_image(&pdf, 1, 600).map(|image| (image.width, image.height));
        println!("{name}: page image: {image:?}");
    }

    println!("{} files", files.len());
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

struct CorpusDocument<'a> {
    name: &'a str,
    pdf: &'a [u8],
    /// Whether the original passes qpdf.
    sound: bool,
    /// Words as found by poppler.
    words: Vec<PlacedWord>,
    /// Whether other readers render it for comparison.
    drawn: bool,
}

/// Result of one operation on a document, and the areas in which it may look different.
struct DocumentChange {
    name: &'static str,
    written: Result<Vec<u8>, DocumentError>,
    /// Grey pages with the same marks, used as a mask.
    mask: Option<Vec<u8>>,
    ignored: Vec<Ignored>,
    /// Number of copies of the document's pages in the result.
    times: usize,
}

impl CorpusDocument<'_> {
    fn changes(&self, readers: &mut PdfReaders) -> [DocumentChange; 6] {
        let grey = if self.drawn {
            readers.blank(self.pdf)
        } else {
            None
        };
        let marked = |name, request| DocumentChange {
            name,
            written: mark(self.pdf, &request),
            mask: grey
                .as_ref()
                .map(|grey| mark(grey, &request).expect("grey pages can be marked")),
            ignored: Vec::new(),
            times: 1,
        };

        let value = field(1, [0.1, 0.1, 0.3, 0.05], text("value"));
        [
            marked("mark", authoritative()),
            DocumentChange {
                name: "seal",
                written: mark(self.pdf, &authoritative())
                    .and_then(|marked| prepare_seal(&marked, &seal()))
                    .map(|space| space.pdf),
                ..marked("mark", authoritative())
            },
            marked("copy", non_authoritative()),
            DocumentChange {
                name: "copy written anew",
                written: mark(self.pdf, &non_authoritative()).and_then(|marked| {
                    let anew = write_anew(marked.clone(), SignatureHandling::Keep)?;
                    Ok(anew.unwrap_or(marked))
                }),
                ..marked("copy", non_authoritative())
            },
            DocumentChange {
                name: "fill",
                written: fill(self.pdf, &[value]),
                mask: None,
                ignored: vec![FILLED],
                times: 1,
            },
            DocumentChange {
                name: "merge",
                written: merge(&[self.pdf.to_vec(), self.pdf.to_vec()]),
                mask: None,
                ignored: Vec::new(),
                times: 2,
            },
        ]
    }

    fn judge(
        &self,
        change: &DocumentChange,
        readers: &mut PdfReaders,
        problems: &mut Vec<String>,
    ) -> &'static str {
        let name = format!("{}: {}", self.name, change.name);
        let written = match &change.written {
            Ok(written) => written,
            Err(DocumentError::Encrypted) => return "refused: encrypted",
            Err(DocumentError::Unreadable(_)) => return "refused: unreadable",
            Err(DocumentError::OverLimit(_)) => return "refused: over a limit",
            Err(DocumentError::Other(reason)) => {
                problems.push(format!("{name}: {reason}"));
                return "refused for no good reason";
            }
        };
        match qpdf_complaint(written) {
            Some(_) if !self.sound => return "written; the damage it came with is still there",
            Some(complaint) => {
                problems.push(format!("{name}: {complaint}"));
                return "not clean";
            }
            None if !self.sound => return "clean",
            None => {}
        }

        // Values that the original left to the viewer to draw may end up slightly elsewhere.
        let flattened = change.mask.is_none();
        if flattened && self.name == "libreoffice-form.pdf" {
            assert!(words(written).iter().any(|word| word.text == "Alice"));
            return "clean; its form is drawn by us";
        }

        if let Some(word) = moved(&self.words, &words(written)) {
            problems.push(format!("{name}: moved: {word:?}"));
        }

        let Some(pages) = page_count(self.pdf).filter(|_| self.drawn) else {
            return "clean";
        };

        let mask = change.mask.as_deref();
        for time in 0..change.times {
            let first = time * pages;
            let found = readers.differences(self.pdf, written, first, mask, &change.ignored);
            if !found.is_empty() {
                problems.push(format!("{name}: {found}"));
            }
        }

        "clean, and looks the same"
    }

    fn strip(&self, problems: &mut Vec<String>) {
        let name = self.name;
        match strip_tags(self.pdf) {
            Ok(stripped) if stripped == self.pdf => {}
            Ok(stripped) => {
                let left = words(&stripped).iter().any(|word| word.text.contains("{{"));
                let complaint = qpdf_complaint(&stripped).filter(|_| self.sound);
                if left || complaint.is_some() {
                    problems.push(format!("{name}: strip: tags left: {left}, {complaint:?}"));
                }
                println!("{name}: strip: stripped");
            }
            Err(error) => println!("{name}: strip: {error:?}"),
        }
    }
}

/// Returns the number of pages that poppler counts, or `None` if poppler cannot read the document.
fn page_count(pdf: &[u8]) -> Option<usize> {
    crate::support::facts(pdf, &[])
        .lines()
        .find_map(|line| line.strip_prefix("Pages:")?.trim().parse().ok())
}
