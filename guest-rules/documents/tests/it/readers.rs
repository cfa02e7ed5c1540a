//! MuPDF and PDFium, driven through `tests/readers.py`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::support::TempFile;

/// A running `tests/readers.py` process.
pub struct PdfReaders {
    program: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// A rectangle in which pages may differ: page, then left, top, right and bottom as fractions.
pub type Ignored = (u32, [f64; 4]);

impl PdfReaders {
    pub fn start() -> Self {
        let python = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../pdf-readers/bin/python");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/readers.py");
        let mut program = Command::new(&python)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| {
                panic!(
                    "MuPDF and PDFium are not there ({error}); install them with: tests/set-up test"
                )
            });

        let requests = program.stdin.take().expect("a pipe");
        let answers = BufReader::new(program.stdout.take().expect("a pipe"));
        Self {
            program,
            requests,
            answers,
        }
    }

    /// Sends one request and returns its response. Neither contains characters that JSON has to
    /// escape.
    fn ask(&mut self, request: &str) -> String {
        writeln!(self.requests, "{request}").expect("the readers are running");
        let mut answer = String::new();
        self.answers
            .read_line(&mut answer)
            .expect("the readers answer");
        assert!(!answer.is_empty(), "the readers ended at {request}");
        answer
    }

    /// Describes how the pages of `after`, beginning with `first`, differ from those of `before`,
    /// outside of the ink of `mask` and of the rectangles in `ignored`. Returns an empty text if
    /// they look the same.
    pub fn differences(
        &mut self,
        before: &[u8],
        after: &[u8],
        first: usize,
        mask: Option<&[u8]>,
        ignored: &[Ignored],
    ) -> String {
        let (before, after) = (TempFile::new(before), TempFile::new(after));
        let mask = mask.map(TempFile::new);
        let mask = mask
            .as_ref()
            .map_or_else(|| "null".to_owned(), |mask| format!("\"{}\"", mask.path()));
        let ignored: Vec<String> = ignored
            .iter()
            .map(|(page, [x0, y0, x1, y1])| format!("[{page},{x0},{y0},{x1},{y1}]"))
            .collect();
        let answer = self.ask(&format!(
            "{{\"do\":\"compare\",\"before\":\"{}\",\"after\":\"{}\",\"first\":{first},\
             \"mask\":{mask},\"ignore\":[{}]}}",
            before.path(),
            after.path(),
            ignored.join(",")
        ));
        let problems = answer.trim().strip_prefix("{\"problems\": [");
        let problems = problems.and_then(|problems| problems.strip_suffix("]}"));

        problems.expect("an answer to a comparison").to_owned()
    }

    /// Returns whether every document of `after` (a name, the document, a mask) still has what both readers
    /// show of `before`, outside of `field` (left, top, right, bottom) on its first page and of the masks. The
    /// first text is the verdict (listed in `tests/readers.py`), the second one lists the losses.
    pub fn survives(
        &mut self,
        before: &[u8],
        field: [f64; 4],
        after: &[(&str, &[u8], Option<&TempFile>)],
    ) -> (String, String) {
        let before = TempFile::new(before);
        let files: Vec<TempFile> = after.iter().map(|(_, pdf, _)| TempFile::new(pdf)).collect();
        let listed: Vec<String> = after
            .iter()
            .zip(&files)
            .map(|((name, _, mask), file)| {
                let mask =
                    mask.map_or_else(|| "null".to_owned(), |mask| format!("\"{}\"", mask.path()));
                format!("[\"{name}\",\"{}\",{mask}]", file.path())
            })
            .collect();

        let answer = self.ask(&format!(
            "{{\"do\":\"survives\",\"before\":\"{}\",\"field\":{field:?},\"after\":[{}]}}",
            before.path(),
            listed.join(",")
        ));
        let answer = answer.trim().strip_prefix("{\"verdict\": \"");
        let answer = answer.and_then(|answer| answer.strip_suffix("]}"));
        let parts = answer.and_then(|answer| answer.split_once("\", \"problems\": ["));
        let (verdict, lost) = parts.expect("an answer with a verdict");

        (verdict.to_owned(), lost.to_owned())
    }

    /// Returns grey pages, upright and of the displayed size of the pages of `like`, or `None` if
    /// MuPDF cannot read it.
    pub fn blank(&mut self, like: &[u8]) -> Option<Vec<u8>> {
        let (like, written) = (TempFile::new(like), TempFile::new(b""));
        let answer = self.ask(&format!(
            "{{\"do\":\"blank\",\"like\":\"{}\",\"write\":\"{}\"}}",
            like.path(),
            written.path()
        ));

        answer
            .starts_with("{\"pages\"")
            .then(|| std::fs::read(written.path()).expect("it was just written"))
    }
}

impl Drop for PdfReaders {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}
