//! Good documents, damaged. Other readers show the signed document as they showed the upload, or the upload is
//! refused before it is sent.

mod made;
mod ways;

use std::collections::{BTreeMap, HashMap};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use holdfast_documents::{DocumentError, fill, settle};
use holdfast_reader::PdfDocument;

use crate::damage::DamageSequence;
use crate::damages::made::{MadePdf, TextChange};
use crate::damages::ways::{Damage, WAYS};
use crate::readers::PdfReaders;
use crate::support::{TempFile, authoritative, field, mark, non_authoritative, pages, text};

/// Documents of an ordinary run.
const FEW: usize = 12;

/// Where the value is written: left, top, width, height.
const VALUE: [f64; 4] = [0.52, 0.81, 0.3, 0.03];

/// Where pages may therefore differ: left, top, right, bottom.
const FIELD: [f64; 4] = [0.51, 0.8, 0.83, 0.85];

/// `HOLDFAST_DAMAGED` sets the number of documents. PDFs in the folder `HOLDFAST_CORPUS` are damaged as well.
#[test]
fn a_damaged_document_looks_the_same_or_is_refused() {
    let count = std::env::var("HOLDFAST_DAMAGED").ok();
    let count = count.and_then(|count| count.parse().ok()).unwrap_or(FEW);
    let uploads = uploads();
    let mut drill = Drill::new();

    let (mut table, mut problems) = (ResultTable::default(), Vec::new());
    for index in 0..count {
        let damaged = DamagedPdf::new(index, &uploads);
        let outcome = drill.outcome(&damaged.pdf);
        if let Outcome::Problem(what) = &outcome {
            problems.push(format!("{what}: {}", damaged.keep(index)));
        }
        table.count(damaged.way, outcome);
    }

    table.print();
    let found = problems.len();
    assert!(problems.is_empty(), "{found}:\n{}", problems.join("\n"));
}

/// Without this, the comparison of damaged documents would prove nothing.
#[test]
fn a_sound_document_is_equal_in_both_readers() {
    let mut drill = Drill::new();
    for seed in [4, 7] {
        let outcome = drill.outcome(&MadePdf::new(seed, "").write());
        assert!(
            matches!(outcome, Outcome::Equal { is_repaired: false }),
            "document {seed}: {outcome:?}"
        );
    }
}

/// Returns names and bytes of further documents. Forms are left out: their fields become part of the pages,
/// which readers draw a little differently.
fn uploads() -> Vec<(String, Vec<u8>)> {
    let Some(folder) = std::env::var_os("HOLDFAST_CORPUS") else {
        return Vec::new();
    };

    let files = std::fs::read_dir(folder).expect("the folder of HOLDFAST_CORPUS is there");
    let paths = files.map(|file| file.expect("a file of the folder").path());
    let mut uploads: Vec<(String, Vec<u8>)> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "pdf"))
        .map(|path| (file_name(&path), std::fs::read(&path).expect("a PDF")))
        .filter(|(name, pdf)| {
            let has_form = memchr::memmem::find(pdf, b"/AcroForm").is_some();
            !name.starts_with("hostile-") && !has_form
        })
        .collect();
    uploads.sort();

    uploads
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

struct DamagedPdf {
    way: &'static str,
    /// The document before.
    base: String,
    pdf: Vec<u8>,
}

impl DamagedPdf {
    /// Damages a document. Each round of all ways takes other documents.
    fn new(index: usize, uploads: &[(String, Vec<u8>)]) -> Self {
        /// Seeds to try. Some ways of damage need a certain kind of document.
        const SEEDS: usize = 60;

        let (round, (way, damage)) = (index / WAYS.len(), WAYS[index % WAYS.len()]);
        let mut sequence = DamageSequence(index as u64);

        if let Damage::File(change) = damage
            && round % 2 == 1
            && let Some((base, pdf)) = uploads.get(sequence.below(uploads.len()))
        {
            let mut pdf = pdf.clone();
            if change(&mut pdf, &mut sequence).is_some() {
                let base = base.clone();
                return Self { way, base, pdf };
            }
        }

        // Every property of a made document then changes from round to round.
        let first = index % WAYS.len() + 11 * round;
        for seed in first..first + SEEDS {
            if let Some(pdf) = damaged(seed, damage, &mut sequence) {
                let base = format!("made document {seed}");
                return Self { way, base, pdf };
            }
        }

        panic!("no document can be damaged this way: {way}");
    }

    /// Writes the document to a file and returns how it came about.
    fn keep(&self, index: usize) -> String {
        let folder = PathBuf::from(concat!(env!("CARGO_TARGET_TMPDIR"), "/damages"));
        std::fs::create_dir_all(&folder).expect("the folder for temporary files is writable");
        let path = folder.join(format!("{index}.pdf"));
        std::fs::write(&path, &self.pdf).expect("the folder for temporary files is writable");
        format!("{} ({}): {}", self.way, self.base, path.display())
    }
}

/// Returns a made document with this damage, or `None` if it has nothing to be damaged this way.
fn damaged(seed: usize, damage: Damage, sequence: &mut DamageSequence) -> Option<Vec<u8>> {
    match damage {
        Damage::Text(from, to) => [sequence.below(3), 0].into_iter().find_map(|skip| {
            let mut change = TextChange::new(from, to, skip);
            let pdf = MadePdf::new(seed, "").write_with(&mut change);
            change.is_done.then_some(pdf)
        }),
        Damage::Ending(ending) => Some(MadePdf::new(seed, ending).write()),
        Damage::Flate(change) => {
            let mut made = MadePdf::new(seed, "");
            let content = made.compressed_content(sequence)?;
            change(content, sequence)?;
            Some(made.write())
        }
        Damage::File(change) => {
            let mut pdf = MadePdf::new(seed, "").write();
            change(&mut pdf, sequence)?;
            Some(pdf)
        }
    }
}

#[derive(Debug)]
enum Outcome {
    Equal {
        is_repaired: bool,
    },
    /// The readers disagreed about the upload. Now both show one of the two versions.
    OneReader,
    /// The readers disagreed about the upload and still do. At least one shows no difference.
    StillDisagree,
    /// No other reader opens the upload.
    Unread,
    Refused(String),
    Problem(String),
}

/// A document as it goes to the vault.
struct WrittenPdf {
    filled: Vec<u8>,
    copies: [Vec<u8>; 2],
    is_repaired: bool,
}

impl WrittenPdf {
    fn new(pdf: &[u8]) -> Result<Self, Outcome> {
        let settled = settle(pdf.to_vec()).map_err(refused)?;
        let is_repaired = settled.repaired.is_some();
        let accepted = settled
            .repaired
            .map_or_else(|| pdf.to_vec(), |repaired| repaired.pdf);

        // The sender could not be asked for another document any more.
        let late = |step: &str, error: DocumentError| {
            Outcome::Problem(format!("settled, and then {step} is refused: {error:?}"))
        };
        let value = field(1, VALUE, text("value"));
        let filled = fill(&accepted, &[value]).map_err(|error| late("fill", error))?;
        let copy = |request| mark(&filled, &request).map_err(|error| late("mark", error));
        let copies = [copy(authoritative())?, copy(non_authoritative())?];

        Ok(Self {
            filled,
            copies,
            is_repaired,
        })
    }
}

fn refused(error: DocumentError) -> Outcome {
    Outcome::Refused(match error {
        DocumentError::Encrypted => "encrypted".to_owned(),
        DocumentError::OverLimit(limit) => format!("over limit: {limit}"),
        DocumentError::Unreadable(reason) => {
            let reason = reason.split(|letter: char| letter.is_ascii_digit());
            let parts: Vec<&str> = reason.filter(|part| !part.is_empty()).collect();
            parts.join("#")
        }
        DocumentError::Other(reason) => {
            return Outcome::Problem(format!("refused for no good reason: {reason}"));
        }
    })
}

struct Drill {
    readers: PdfReaders,
    /// Both marks on grey pages, by the sizes of the pages.
    masks: HashMap<Vec<(u64, u64)>, [TempFile; 2]>,
}

impl Drill {
    fn new() -> Self {
        Self {
            readers: PdfReaders::start(),
            masks: HashMap::new(),
        }
    }

    fn outcome(&mut self, pdf: &[u8]) -> Outcome {
        match catch_unwind(|| WrittenPdf::new(pdf)) {
            Ok(Ok(written)) => self.compare(pdf, &written),
            Ok(Err(outcome)) => outcome,
            Err(_) => Outcome::Problem("panic".to_owned()),
        }
    }

    fn compare(&mut self, pdf: &[u8], written: &WrittenPdf) -> Outcome {
        let reader = PdfDocument::open(written.filled.clone()).expect("it was read to be marked");
        let pages = reader.pages();
        let sizes = pages
            .iter()
            .map(|page| (page.width.to_bits(), page.height.to_bits()));
        let masks = self
            .masks
            .entry(sizes.collect())
            .or_insert_with_key(|sizes| masks(sizes));

        let after = [
            ("fill", &written.filled[..], None),
            ("authoritative", &written.copies[0], Some(&masks[0])),
            ("other copy", &written.copies[1], Some(&masks[1])),
        ];
        let (verdict, lost) = self.readers.survives(pdf, FIELD, &after);
        match verdict.as_str() {
            "equal" => Outcome::Equal {
                is_repaired: written.is_repaired,
            },
            "one" => Outcome::OneReader,
            "undecided" => Outcome::StillDisagree,
            "unread" => Outcome::Unread,
            _ => Outcome::Problem(lost),
        }
    }
}

fn masks(sizes: &[(u64, u64)]) -> [TempFile; 2] {
    let grey: Vec<(String, String)> = sizes
        .iter()
        .map(|(width, height)| {
            let (width, height) = (f64::from_bits(*width), f64::from_bits(*height));
            let content = format!("0.5 g 0 0 {width} {height} re f");
            (format!("/MediaBox[0 0 {width} {height}]"), content)
        })
        .collect();
    let grey: Vec<(&str, &str)> = grey
        .iter()
        .map(|(entries, content)| (entries.as_str(), content.as_str()))
        .collect();
    let grey = pages(&grey);

    [authoritative(), non_authoritative()]
        .map(|request| TempFile::new(&mark(&grey, &request).expect("grey pages can be marked")))
}

/// Numbers of documents, by way of damage and outcome.
#[derive(Default)]
struct ResultTable {
    rows: BTreeMap<&'static str, OutcomeCounts>,
    total: OutcomeCounts,
}

#[derive(Default)]
struct OutcomeCounts {
    /// In the order of [`COLUMNS`].
    columns: [usize; COLUMNS.len()],
    refused: BTreeMap<String, usize>,
}

const COLUMNS: [&str; 6] = [
    "equal",
    "repaired",
    "one reader",
    "disagree",
    "unread",
    "PROBLEM",
];

impl ResultTable {
    fn count(&mut self, way: &'static str, outcome: Outcome) {
        let (column, reason) = match outcome {
            Outcome::Equal { is_repaired } => (usize::from(is_repaired), None),
            Outcome::OneReader => (2, None),
            Outcome::StillDisagree => (3, None),
            Outcome::Unread => (4, None),
            Outcome::Problem(_) => (5, None),
            Outcome::Refused(reason) => (0, Some(reason)),
        };

        for counts in [self.rows.entry(way).or_default(), &mut self.total] {
            match &reason {
                Some(reason) => *counts.refused.entry(reason.clone()).or_default() += 1,
                None => counts.columns[column] += 1,
            }
        }
    }

    fn print(&self) {
        let columns: String = COLUMNS.iter().map(|name| format!("{name:>11}")).collect();
        println!("{:42}{columns}  refused", "");
        let rows = WAYS
            .iter()
            .filter_map(|(way, _)| Some((*way, self.rows.get(way)?)));
        for (name, counts) in rows.chain([("total", &self.total)]) {
            let columns: String = counts
                .columns
                .iter()
                .map(|count| format!("{count:>11}"))
                .collect();
            let refused: Vec<String> = counts
                .refused
                .iter()
                .map(|(reason, count)| format!("{count} {reason}"))
                .collect();

            println!("{name:42}{columns}  {}", refused.join("; "));
        }
    }
}
