//! Small PDFs built in code, and the independent readers that judge the output.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use holdfast_documents::{
    Area, CopyKind, DocumentError, FieldValue, FilledField, MarkRequest, Marked, SealRequest,
};

pub fn contract() -> Vec<u8> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/fixtures/retail-installment-contract.pdf"
    );
    std::fs::read(path).expect("the fixture is part of the repository")
}

/// Returns a file of `tests/fixtures/hunt`, which has what once went wrong.
pub fn hunted(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/hunt");
    std::fs::read(format!("{folder}/{name}.pdf")).expect("the fixture is part of the repository")
}

pub fn authoritative() -> MarkRequest {
    MarkRequest {
        kind: CopyKind::Authoritative,
        envelope_id: "env_01jt8s5gq2e6m9x4k7w3c5d8fa".to_owned(),
        secured_party: Some("Crescent Auto Finance, LLC".to_owned()),
        marked_at: "2026-05-04T15:04:05.000Z".to_owned(),
        rewrite: false,
    }
}

/// Marks a document as the host does: joins the update, reads the result back, and has the document
/// rewritten if that fails.
pub fn mark(pdf: &[u8], request: &MarkRequest) -> Result<Vec<u8>, DocumentError> {
    match holdfast_documents::mark(pdf.to_vec(), request) {
        Ok(Marked::Unchanged) => return Ok(pdf.to_vec()),
        Ok(Marked::Rewritten(whole)) => return Ok(whole),
        Ok(Marked::Appended(tail)) => {
            let whole = [pdf, &tail].concat();
            if hayro_syntax::Pdf::new(whole.clone()).is_ok_and(|read| !read.pages().is_empty()) {
                return Ok(whole);
            }
        }
        Err(_) => {}
    }

    let anew = MarkRequest {
        rewrite: true,
        ..request.clone()
    };
    match holdfast_documents::mark(pdf.to_vec(), &anew)? {
        Marked::Rewritten(whole) => Ok(whole),
        other => panic!("{other:?}"),
    }
}

/// A document with an empty space for a signature.
pub struct PreparedSeal {
    pub pdf: Vec<u8>,
    pub place_start: u64,
    pub place_end: u64,
}

/// Prepares a seal and joins the update.
pub fn prepare_seal(pdf: &[u8], request: &SealRequest) -> Result<PreparedSeal, DocumentError> {
    let space = holdfast_documents::prepare_seal(pdf.to_vec(), request)?;
    Ok(PreparedSeal {
        pdf: [pdf, &space.appended].concat(),
        place_start: space.place_start,
        place_end: space.place_end,
    })
}

pub fn non_authoritative() -> MarkRequest {
    MarkRequest {
        kind: CopyKind::NonAuthoritative,
        secured_party: None,
        ..authoritative()
    }
}

pub fn field(page: u32, [x, y, w, h]: [f64; 4], value: FieldValue) -> FilledField {
    FilledField {
        areas: vec![Area { page, x, y, w, h }],
        value,
    }
}

pub fn text(value: &str) -> FieldValue {
    FieldValue::Text(value.to_owned())
}

/// A PDF assembled from the text of its objects; object 1 is the catalog.
pub struct TestPdf {
    objects: Vec<Vec<u8>>,
}

impl TestPdf {
    pub fn new() -> Self {
        Self {
            objects: Vec::new(),
        }
    }

    /// Adds an object and returns its number.
    pub fn add(&mut self, object: impl Into<Vec<u8>>) -> usize {
        self.objects.push(object.into());
        self.objects.len()
    }

    pub fn stream(&mut self, entries: &str, content: &[u8]) -> usize {
        let mut object = format!("<<{entries}/Length {}>>\nstream\n", content.len()).into_bytes();
        object.extend_from_slice(content);
        object.extend_from_slice(b"\nendstream");
        self.add(object)
    }

    pub fn finish(self) -> Vec<u8> {
        let mut bytes = b"%PDF-1.7\n%\xE2\xE3\xCF\xD3\n".to_vec();
        let mut offsets = Vec::new();
        for (index, object) in self.objects.iter().enumerate() {
            offsets.push(bytes.len());
            bytes.extend_from_slice(format!("{} 0 obj\n", index + 1).as_bytes());
            bytes.extend_from_slice(object);
            bytes.extend_from_slice(b"\nendobj\n");
        }

        let start = bytes.len();
        let mut tail = format!("xref\n0 {}\n0000000000 65535 f \n", offsets.len() + 1);
        for offset in &offsets {
            let _ = writeln!(tail, "{offset:010} 00000 n ");
        }

        let _ = write!(
            tail,
            "trailer\n<</Size {}/Root 1 0 R>>\nstartxref\n{start}\n%%EOF\n",
            offsets.len() + 1
        );
        bytes.extend_from_slice(tail.as_bytes());

        bytes
    }
}

/// Returns a document of one page with the given page entries (boxes, rotation and so on) and
/// content.
pub fn page(entries: &str, content: &str) -> Vec<u8> {
    pages(&[(entries, content)])
}

/// Returns a document of several pages. Objects: 1 catalog, 2 page tree, 3 font, then page and
/// content alternating.
pub fn pages(pages: &[(&str, &str)]) -> Vec<u8> {
    let mut pdf = TestPdf::new();
    pdf.add("<</Type/Catalog/Pages 2 0 R>>");
    let kids: String = (0..pages.len())
        .map(|index| format!("{} 0 R ", 4 + 2 * index))
        .collect();
    pdf.add(format!(
        "<</Type/Pages/Count {}/Kids[{kids}]>>",
        pages.len()
    ));

    pdf.add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>");
    for (index, (entries, content)) in pages.iter().enumerate() {
        let resources = if entries.contains("/Resources") {
            ""
        } else {
            "/Resources<</Font<</F1 3 0 R>>>>"
        };
        pdf.add(format!(
            "<</Type/Page/Parent 2 0 R/Contents {} 0 R{resources}{entries}>>",
            5 + 2 * index
        ));

        pdf.stream("", content.as_bytes());
    }

    pdf.finish()
}

/// Runs a program of a Debian package on a file and returns its exit code and both outputs.
pub fn run(program: &str, package: &str, arguments: &[&str]) -> (i32, Vec<u8>, String) {
    let output = Command::new(program).args(arguments).output().unwrap_or_else(|error| {
        panic!("{program} could not be started ({error}); install it with: apt-get install {package}")
    });
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap_or(-1), output.stdout, errors)
}

/// A temporary file, removed on drop.
pub struct TempFile(PathBuf);

impl TempFile {
    pub fn new(bytes: &[u8]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);

        let name = format!(
            "holdfast-documents-{}-{}.pdf",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, bytes).expect("the folder for temporary files is writable");

        Self(path)
    }

    pub fn path(&self) -> &str {
        self.0.to_str().expect("temporary paths are text")
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Returns the complaint of `qpdf --check`, if there is one.
pub fn qpdf_complaint(pdf: &[u8]) -> Option<String> {
    let file = TempFile::new(pdf);
    let (code, _, errors) = run("qpdf", "qpdf", &["--check", file.path()]);
    (code != 0).then(|| format!("qpdf --check: exit {code}: {errors}"))
}

pub fn assert_clean(pdf: &[u8]) {
    if let Some(complaint) = qpdf_complaint(pdf) {
        panic!("{complaint}");
    }
}

pub fn extracted(pdf: &[u8], page: u32) -> String {
    let file = TempFile::new(pdf);
    let page = page.to_string();
    let arguments = ["-f", &page, "-l", &page, "-raw", file.path(), "-"];
    let (code, output, errors) = run("pdftotext", "poppler-utils", &arguments);
    assert_eq!(code, 0, "pdftotext: {errors}");
    String::from_utf8(output).expect("pdftotext writes UTF-8")
}

/// A word and its box in points: left, top, right, bottom.
#[derive(Clone, Debug)]
pub struct PlacedWord {
    pub page: usize,
    pub text: String,
    pub edges: [f64; 4],
}

/// Returns all words of a document with their positions according to poppler; empty if poppler
/// cannot read it.
pub fn words(pdf: &[u8]) -> Vec<PlacedWord> {
    let file = TempFile::new(pdf);
    let (_, output, _) = run("pdftotext", "poppler-utils", &["-bbox", file.path(), "-"]);
    let (mut page, mut words) = (0, Vec::new());
    for line in String::from_utf8_lossy(&output).lines() {
        page += usize::from(line.contains("<page "));
        if let Some((_, word)) = line.split_once("<word ") {
            let mut parts = word.split('"');
            let mut edge = || {
                parts
                    .by_ref()
                    .nth(1)
                    .and_then(|edge| edge.parse().ok())
                    .unwrap_or(f64::NAN)
            };
            let edges = [edge(), edge(), edge(), edge()];

            let text = word.split(['>', '<']).nth(1).unwrap_or_default().to_owned();
            words.push(PlacedWord { page, text, edges });
        }
    }

    words
}

/// Returns the first word of `before` that is not at its position in `after`. Writers shorten
/// numbers, so moves below a thousandth of a point do not count.
pub fn moved(before: &[PlacedWord], after: &[PlacedWord]) -> Option<PlacedWord> {
    before
        .iter()
        .find(|word| {
            !after.iter().any(|other| {
                other.page == word.page
                    && other.text == word.text
                    && other
                        .edges
                        .iter()
                        .zip(word.edges)
                        .all(|(a, b)| (a - b).abs() < 1e-3)
            })
        })
        .cloned()
}

pub fn facts(pdf: &[u8], arguments: &[&str]) -> String {
    let file = TempFile::new(pdf);
    let (_, output, _) = run(
        "pdfinfo",
        "poppler-utils",
        &[arguments, &[file.path()]].concat(),
    );
    String::from_utf8_lossy(&output).into_owned()
}

/// An RGB picture of a page.
pub struct PageRaster {
    pub width: usize,
    pub height: usize,
    pub rgb: Vec<u8>,
}

impl PageRaster {
    /// Renders a page with poppler at 72 dots per inch, cropped as displayed.
    pub fn poppler(pdf: &[u8], page: u32) -> Self {
        Self::poppler_at(pdf, page, 72)
    }

    pub fn poppler_at(pdf: &[u8], page: u32, dots_per_inch: u32) -> Self {
        let file = TempFile::new(pdf);
        let page = page.to_string();
        let resolution = dots_per_inch.to_string();
        let arguments = [
            "-r",
            &resolution,
            "-cropbox",
            "-f",
            &page,
            "-l",
            &page,
            file.path(),
        ];

        let (code, ppm, errors) = run("pdftoppm", "poppler-utils", &arguments);
        assert_eq!(code, 0, "pdftoppm: {errors}");

        Self::ppm(&ppm)
    }

    /// Renders a page with this component.
    pub fn own(pdf: &[u8], page: u32, width: u32) -> Result<Self, DocumentError> {
        let picture = holdfast_documents::page_image(pdf, page, width)?;
        let decoded = image::load_from_memory(&picture.png)
            .expect("the PNG is sound")
            .to_rgb8();
        assert_eq!((picture.width, picture.height), decoded.dimensions());

        Ok(Self {
            width: picture.width as usize,
            height: picture.height as usize,
            rgb: decoded.into_raw(),
        })
    }

    fn ppm(bytes: &[u8]) -> Self {
        let mut fields = Vec::new();
        let mut at = 0;
        while fields.len() < 4 {
            let end = at
                + bytes[at..]
                    .iter()
                    .position(u8::is_ascii_whitespace)
                    .expect("a PPM header");
            fields.push(String::from_utf8_lossy(&bytes[at..end]).into_owned());
            at = end + 1;
        }

        let number = |index: usize| fields[index].parse::<usize>().expect("a number");
        Self {
            width: number(1),
            height: number(2),
            rgb: bytes[at..].to_vec(),
        }
    }

    /// Returns the colour at fractions of width and height.
    pub fn at(&self, x: f64, y: f64) -> [u8; 3] {
        let column = ((x * self.width as f64) as usize).min(self.width - 1);
        let row = ((y * self.height as f64) as usize).min(self.height - 1);
        let start = (row * self.width + column) * 3;
        [self.rgb[start], self.rgb[start + 1], self.rgb[start + 2]]
    }

    /// Returns the average difference of channels (0 to 255) after averaging blocks of 4 x 4
    /// pixels, which hides how each renderer smooths its edges.
    pub fn distance(&self, other: &Self) -> f64 {
        assert_eq!((self.width, self.height), (other.width, other.height));
        let block = |raster: &Self, x: usize, y: usize, channel: usize| -> f64 {
            let pixel =
                |dx, dy| f64::from(raster.rgb[((y + dy) * raster.width + x + dx) * 3 + channel]);
            (0..16)
                .map(|index| pixel(index % 4, index / 4))
                .sum::<f64>()
                / 16.0
        };

        let (mut total, mut count) = (0.0, 0.0);
        for y in (0..self.height - 3).step_by(4) {
            for x in (0..self.width - 3).step_by(4) {
                for channel in 0..3 {
                    total += (block(self, x, y, channel) - block(other, x, y, channel)).abs();
                    count += 1.0;
                }
            }
        }

        total / count
    }

    /// Returns the bounding box of the pixels that differ from another picture: left, top, right,
    /// bottom as fractions.
    pub fn difference(&self, other: &Self) -> Option<[f64; 4]> {
        assert_eq!((self.width, self.height), (other.width, other.height));
        let mut bounds: Option<[usize; 4]> = None;
        for (index, (one, two)) in self.rgb.chunks(3).zip(other.rgb.chunks(3)).enumerate() {
            if one.iter().zip(two).all(|(a, b)| a.abs_diff(*b) < 24) {
                continue;
            }
            let (x, y) = (index % self.width, index / self.width);
            let [left, top, right, bottom] = bounds.unwrap_or([x, y, x, y]);
            bounds = Some([left.min(x), top.min(y), right.max(x), bottom.max(y)]);
        }

        bounds.map(|[left, top, right, bottom]| {
            let (width, height) = (self.width as f64, self.height as f64);
            [
                left as f64 / width,
                top as f64 / height,
                (right + 1) as f64 / width,
                (bottom + 1) as f64 / height,
            ]
        })
    }
}

/// Colours of the quarters of the test picture, from top left, clockwise.
pub const QUARTERS: [[u8; 3]; 4] = [[220, 30, 30], [30, 160, 40], [30, 60, 220], [230, 200, 20]];

/// Returns a picture with quarters of different colours, so that any rotation or flip is detected.
pub fn quarters(width: u32, height: u32) -> image::DynamicImage {
    image::DynamicImage::ImageRgb8(image::RgbImage::from_fn(width, height, |x, y| {
        image::Rgb(match (x < width / 2, y < height / 2) {
            (true, true) => QUARTERS[0],
            (false, true) => QUARTERS[1],
            (false, false) => QUARTERS[2],
            (true, false) => QUARTERS[3],
        })
    }))
}

pub fn encoded(picture: &image::DynamicImage, format: image::ImageFormat) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    picture
        .write_to(&mut bytes, format)
        .expect("a picture in memory can be encoded");
    bytes.into_inner()
}

/// Checks that a rectangle (fractions) of a page shows the test picture upright.
pub fn assert_upright(raster: &PageRaster, [x, y, w, h]: [f64; 4], what: &str) {
    let places = [(0.25, 0.25), (0.75, 0.25), (0.75, 0.75), (0.25, 0.75)];
    for ((across, down), expected) in places.into_iter().zip(QUARTERS) {
        let found = raster.at(x + w * across, y + h * down);
        let close = found.iter().zip(expected).all(|(a, b)| a.abs_diff(b) < 40);
        assert!(
            close,
            "{what}: at {across} {down} is {found:?}, not {expected:?}"
        );
    }
}
