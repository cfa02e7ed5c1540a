use std::path::PathBuf;

use holdfast_documents::{DocumentError, fill, mark, merge, page_image, strip_tags};

use crate::support::{authoritative, field, moved, non_authoritative, qpdf_complaint, text, words};

/// Number of PDFs in the shared corpus, said when it is not there.
const CASES: usize = 21;

/// Third-party files are not part of the repository; they are looked for in `HOLDFAST_CORPUS`,
/// or beside the workspace.
#[test]
fn every_corpus_file_ends_in_a_sound_document_or_a_reason() {
    let folder = std::env::var_os("HOLDFAST_CORPUS").map_or_else(
        || {
            PathBuf::from(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../../shared/corpus"
            ))
        },
        PathBuf::from,
    );
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!(
            "skipped: {CASES} corpus files, because {} is not there",
            folder.display()
        );
        return;
    };
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "pdf"))
        .collect();
    files.sort();
    let mut problems = Vec::new();
    for path in &files {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let pdf = std::fs::read(path).expect("a corpus file can be read");
        let sound = qpdf_complaint(&pdf).is_none();
        let value = field(1, [0.1, 0.1, 0.3, 0.05], text("value"));
        let outcomes = [
            ("mark", mark(&pdf, &authoritative())),
            ("copy", mark(&pdf, &non_authoritative())),
            ("fill", fill(&pdf, &[value])),
            ("merge", merge(&[pdf.clone(), pdf.clone()])),
        ];
        for (function, outcome) in outcomes {
            let verdict = match outcome {
                Ok(written) => match qpdf_complaint(&written) {
                    Some(complaint) if sound => {
                        problems.push(format!("{name}: {function}: {complaint}"));
                        "not clean"
                    }
                    Some(_) => "written; the damage it came with is still there",
                    None => {
                        // Where a form leaves drawing to the viewer, its values may stand a
                        // little elsewhere once they are drawn by us.
                        let flattens = function == "fill" || function == "merge";
                        let drawn_by_viewer = flattens && name == "libreoffice-form.pdf";
                        if drawn_by_viewer {
                            assert!(words(&written).iter().any(|word| word.text == "Alice"));
                        } else if sound && let Some(word) = moved(&words(&pdf), &words(&written)) {
                            problems.push(format!("{name}: {function}: moved: {word:?}"));
                        }
                        "clean"
                    }
                },
                Err(DocumentError::Encrypted) => "refused: encrypted",
                Err(DocumentError::Unreadable(_)) => "refused: unreadable",
                Err(DocumentError::OverLimit(_)) => "refused: over a limit",
                Err(DocumentError::Other(reason)) => {
                    problems.push(format!("{name}: {function}: {reason}"));
                    "refused for no good reason"
                }
            };
            println!("{name}: {function}: {verdict}");
        }
        match strip_tags(&pdf) {
            Ok(stripped) if stripped == pdf => {}
            Ok(stripped) => {
                let left = words(&stripped).iter().any(|word| word.text.contains("{{"));
                let complaint = qpdf_complaint(&stripped).filter(|_| sound);
                if left || complaint.is_some() {
                    problems.push(format!("{name}: strip: tags left: {left}, {complaint:?}"));
                }
                println!("{name}: strip: stripped");
            }
            Err(error) => println!("{name}: strip: {error:?}"),
        }
        let image = page_image(&pdf, 1, 600).map(|image| (image.width, image.height));
        println!("{name}: page image: {image:?}");
    }
    println!("{} corpus files", files.len());
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
