//! Small generated PDFs, and readers that check a PDF: poppler and pyHanko.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::authority::with_clock;
use crate::builder::PdfBuilder;

/// Extracts the text of a PDF with `pdftotext`.
pub fn text(pdf: &[u8]) -> String {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(pdf).unwrap();
    let output = Command::new("pdftotext")
        .args(["-layout"])
        .arg(file.path())
        .arg("-")
        .output()
        .expect("pdftotext is missing: run `apt-get install poppler-utils`");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );

    String::from_utf8(output.stdout).unwrap()
}

/// Lists the fonts of a document with `pdffonts`.
pub fn fonts(pdf: &[u8]) -> String {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(pdf).unwrap();
    let output = Command::new("pdffonts")
        .arg(file.path())
        .output()
        .expect("pdffonts is missing: run `apt-get install poppler-utils`");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the report of poppler's `pdfsig` on a document's signatures.
pub fn signatures(pdf: &[u8]) -> String {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(pdf).unwrap();
    let output = Command::new("pdfsig")
        .arg("-nocert")
        .arg(file.path())
        .output()
        .expect("pdfsig is missing: run `apt-get install poppler-utils`");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns a page with a form: a name, a signature, and a field that is filled in already.
pub fn with_form() -> Vec<u8> {
    let mut pdf = PdfBuilder::new();
    let widgets: Vec<String> = [
        "/FT /Tx /T (f1) /TU (Your name) /Ff 2 /Rect [72 600 300 624]",
        "/FT /Sig /T (Signature) /Rect [72 520 300 556]",
        "/FT /Tx /T (Dealer) /V (Oak & Pine) /Rect [72 460 300 484]",
    ]
    .into_iter()
    .map(|field| pdf.object(&format!("<< /Type /Annot /Subtype /Widget {field} >>")))
    .map(|number| format!("{number} 0 R"))
    .collect();

    let widgets = widgets.join(" ");
    pdf.catalog(&format!("/AcroForm << /Fields [{widgets}] >>"));
    let page = format!("/MediaBox [0 0 612 792] /Annots [{widgets}]");
    pdf.page_with(&page, "", "BT /F1 18 Tf 72 700 Td (Lease) Tj ET");

    pdf.build()
}

/// Repeats the pages of a document.
pub fn repeated(pdf: &[u8], times: usize) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let (one, all) = (folder.path().join("one"), folder.path().join("all"));
    std::fs::write(&one, pdf).unwrap();
    let mut command = Command::new("qpdf");
    command.args(["--empty", "--pages"]);
    for _ in 0..times {
        command.arg(&one);
    }

    let status = command.arg("--").arg(&all).status();
    assert!(
        status
            .expect("qpdf is missing: run `apt-get install qpdf`")
            .success()
    );

    std::fs::read(all).unwrap()
}

/// Encrypts a document for an owner, so it opens with an empty password.
pub fn encrypted(pdf: &[u8]) -> Vec<u8> {
    with_password(pdf, "")
}

/// Encrypts a document, so it opens with this password.
pub fn with_password(pdf: &[u8], password: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let (plain, encrypted) = (folder.path().join("plain"), folder.path().join("encrypted"));
    std::fs::write(&plain, pdf).unwrap();
    let status = Command::new("qpdf")
        .args(["--encrypt", password, "owner", "256", "--"])
        .args([&plain, &encrypted])
        .status()
        .expect("qpdf is missing: run `apt-get install qpdf`");
    assert!(status.success());

    std::fs::read(encrypted).unwrap()
}

/// Returns pyHanko's report on a document's last signature, with the last of the certificates in
/// `authorities` as root.
pub fn seal(pdf: &[u8], authorities: &Path) -> serde_json::Value {
    inspect_seal(pdf, serde_json::json!({ "authorities": authorities }))
}

/// Like [`seal`], for a seal with a time stamp. Its root is in `times`.
pub fn stamped_seal(pdf: &[u8], authorities: &Path, times: &Path) -> serde_json::Value {
    inspect_seal(
        pdf,
        serde_json::json!({ "authorities": authorities, "times": times }),
    )
}

fn inspect_seal(pdf: &[u8], mut request: serde_json::Value) -> serde_json::Value {
    let file = written(pdf);
    request["do"] = "seal".into();
    request["path"] = serde_json::json!(file.path());
    ask_readers(&request)
}

/// Returns the report of poppler's `pdfsig` on a document's signatures, by a clock that is ahead.
pub fn signatures_at(pdf: &[u8], ahead: Duration) -> String {
    let file = written(pdf);
    let output = with_clock("pdfsig", ahead)
        .arg("-nocert")
        .arg(file.path())
        .output()
        .expect("pdfsig is missing: run `apt-get install poppler-utils`");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns pyHanko's report on the first signature and the long-term data of a document, by a clock that is ahead. `lists` are
/// those of revoked certificates about the newest time stamp.
pub fn long_term(
    pdf: &[u8],
    ahead: Duration,
    roots: &[PathBuf],
    lists: &[PathBuf],
    distrusted: Option<(&str, u32)>,
) -> serde_json::Value {
    let file = written(pdf);
    let request = serde_json::json!({
        "do": "long_term", "path": file.path(), "roots": roots, "lists": lists, "distrusted": distrusted,
    });
    ask_readers_at(&request, ahead)
}

/// Returns grey pages with the sizes of a document's pages; none if MuPDF cannot read it.
pub fn blank(like: &[u8]) -> Option<Vec<u8>> {
    let (like, made) = (written(like), written(&[]));
    let answer = ask_readers(&serde_json::json!({
        "do": "blank", "like": like.path(), "write": made.path(),
    }));
    let is_made = answer["pages"].as_u64().is_some_and(|pages| pages > 0);
    is_made.then(|| std::fs::read(made.path()).unwrap())
}

/// Returns whether MuPDF and PDFium show both copies as they show the source, outside of a field on the first page
/// (left, top, right, bottom) and of the marks alone.
pub fn survives(
    source: &[u8],
    field: Option<[f64; 4]>,
    copies: &[Vec<u8>; 2],
    marks: &[Vec<u8>; 2],
) -> serde_json::Value {
    let source = written(source);
    let copies = copies.each_ref().map(|copy| written(copy));
    let marks = marks.each_ref().map(|mark| written(mark));
    ask_readers(&serde_json::json!({
        "do": "survives", "before": source.path(), "field": field,
        "after": [
            ["authoritative", copies[0].path(), marks[0].path()],
            ["other copy", copies[1].path(), marks[1].path()],
        ],
    }))
}

fn written(pdf: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(pdf).unwrap();
    file
}

fn ask_readers(request: &serde_json::Value) -> serde_json::Value {
    ask_readers_at(request, Duration::ZERO)
}

fn ask_readers_at(request: &serde_json::Value, ahead: Duration) -> serde_json::Value {
    let python = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../pdf-readers/bin/python");
    let mut readers = with_clock(python, ahead)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/readers.py"))
        .env("HOLDFAST_LINES", "1")
        .env("HOLDFAST_PAGES", "60")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("MuPDF, PDFium and pyHanko are missing: run `tests/set-up test`");
    let mut input = readers.stdin.take().unwrap();
    writeln!(input, "{request}").unwrap();

    drop(input);
    let output = readers.wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout).expect("an answer of tests/readers.py")
}

/// Returns a PDF with one page that has these lines of text in Helvetica.
pub fn with_lines(lines: &[&str]) -> Vec<u8> {
    with_metadata(lines, 0)
}

/// Like [`with_lines`], with `size` bytes of invisible metadata.
pub fn with_metadata(lines: &[&str], size: usize) -> Vec<u8> {
    with_pages(&[lines], size)
}

/// Makes a document of pages of text, with `size` bytes of invisible metadata.
pub fn with_pages(pages: &[&[&str]], size: usize) -> Vec<u8> {
    let kids: Vec<String> = (0..pages.len())
        .map(|page| format!("{} 0 R", 5 + 2 * page))
        .collect();
    let mut objects = vec![
        "<</Type/Catalog/Pages 2 0 R/Metadata 4 0 R>>".to_owned(),
        format!(
            "<</Type/Pages/Kids[{}]/Count {}>>",
            kids.join(" "),
            pages.len()
        ),
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>".to_owned(),
        format!(
            "<</Type/Metadata/Subtype/XML/Length {size}>>stream\n{}\nendstream",
            " ".repeat(size)
        ),
    ];
    for lines in pages {
        objects.push(format!(
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents {} 0 R\
             /Resources<</Font<</F1 3 0 R>>>>>>",
            objects.len() + 2
        ));
        let mut content = String::from("BT /F1 12 Tf 72 720 Td 18 TL\n");
        for line in *lines {
            content += &format!("({line}) Tj T*\n");
        }

        content += "ET";
        let length = content.len();
        objects.push(format!("<</Length {length}>>stream\n{content}\nendstream"));
    }

    let mut pdf = String::from("%PDF-1.7\n");
    let mut table = String::from("0000000000 65535 f \n");
    for (index, object) in objects.iter().enumerate() {
        table += &format!("{:010} 00000 n \n", pdf.len());
        pdf += &format!("{} 0 obj{object}endobj\n", index + 1);
    }

    let (start, count) = (pdf.len(), objects.len() + 1);
    pdf += &format!(
        "xref\n0 {count}\n{table}trailer<</Size {count}/Root 1 0 R>>\nstartxref\n{start}\n%%EOF\n"
    );

    pdf.into_bytes()
}
