//! Documents with unusual structure and known results.

#[path = "../../../reader/tests/support/mod.rs"]
mod builder;

use builder::PdfBuilder;

type Failure = Box<dyn std::error::Error>;

/// Returns all documents, by file name.
pub fn all() -> Result<Vec<(&'static str, Vec<u8>)>, Failure> {
    Ok(vec![
        ("synth-geometry.pdf", geometry()),
        ("synth-tags.pdf", tags()),
        ("synth-scan.pdf", scan()),
        ("hostile-form-self.pdf", form_in_itself()),
        ("hostile-pages-cycle.pdf", pages_in_a_circle()),
        ("hostile-flate-bomb.pdf", flate_bomb()?),
        ("hostile-truncated.pdf", truncated()),
    ])
}

/// Size of each page as displayed.
const WIDTH: i32 = 600;
const HEIGHT: i32 = 400;
/// Position of `Sign here: Buyer` on each displayed page: from the left, and its baseline from the
/// top.
const LEFT: i32 = 60;
const DOWN: i32 = 100;

/// Every rotation with every way to place the page boxes. All pages look the same when displayed.
fn geometry() -> Vec<u8> {
    let mut pdf = PdfBuilder::new();
    // Readers take `/Rotate` modulo 360. Pages with 450 and -90 have to look like those with 90 and 270.
    for rotate in [0, 90, 180, 270, 450, -90] {
        for (left, bottom, margin) in [(0, 0, 0), (-50, 30, 0), (20, -70, 35)] {
            page(&mut pdf, rotate, (left, bottom), margin);
        }
    }
    pdf.build()
}

fn page(pdf: &mut PdfBuilder, rotate: i32, (left, bottom): (i32, i32), margin: i32) {
    let turned = rotate.rem_euclid(180) == 90;
    let (width, height) = if turned {
        (HEIGHT, WIDTH)
    } else {
        (WIDTH, HEIGHT)
    };
    let (right, top) = (left + width, bottom + height);

    // Maps from the displayed page to user space: the start of the text, and the directions of its
    // right and its top.
    let (x, y, matrix) = match rotate.rem_euclid(360) {
        0 => (left + LEFT, top - DOWN, "1 0 0 1"),
        90 => (left + DOWN, bottom + LEFT, "0 1 -1 0"),
        180 => (right - LEFT, bottom + DOWN, "-1 0 0 -1"),
        _ => (right - DOWN, top - LEFT, "0 -1 1 0"),
    };

    let boxes = format!(
        "/MediaBox [{} {} {} {}] /CropBox [{left} {bottom} {right} {top}] /Rotate {rotate}",
        left - margin,
        bottom - margin,
        right + margin,
        top + margin,
    );

    let content = format!("BT /F1 12 Tf {matrix} {x} {y} Tm (Sign here: Buyer) Tj ET");
    pdf.page_with(&boxes, "", &content);
}

/// Tags that are whole, split over runs, interrupted by other operators, or in a form that two
/// pages share, next to words that must not move.
fn tags() -> Vec<u8> {
    let mut pdf = PdfBuilder::new();
    let shared = pdf.stream(
        "/Type /XObject /Subtype /Form /BBox [0 0 600 400] /Resources << /Font << /F1 3 0 R >> >>",
        b"BT /F1 10 Tf 60 60 Td (left {{Initials;type=initials;role=Buyer;width=60;height=20}} right) Tj ET",
    );
    let resources = format!("/XObject << /Shared {shared} 0 R >>");
    let boxes = "/MediaBox [0 0 600 400]";
    pdf.page_with(
        boxes,
        &resources,
        "BT /F1 10 Tf 60 340 Td (whole {{Buyer signature;type=signature;role=Buyer;required=true}} after) Tj ET \
         BT /F1 10 Tf 60 300 Td [(split {{Signed) -20 ( on;ty) 15 (pe=date;role=Bu) (yer}} after)] TJ ET \
         BT /F1 10 Tf 60 260 Td (parted {{Vin;type=text;) Tj 0.2 g 0 Tc (role=Seller;default=1HGCM}}) Tj ( after) Tj ET \
         /Shared Do",
    );

    // The second page draws the shared form, too, so that an edit in place has to fit both pages.
    pdf.page_with(
        boxes,
        &resources,
        "BT /F1 10 Tf 60 340 Td (second {{Buyer signature;type=signature;role=Buyer;required=true}} page) Tj ET /Shared Do",
    );

    pdf.build()
}

/// A page that consists of a picture, without any text.
fn scan() -> Vec<u8> {
    let mut pdf = PdfBuilder::new();
    let pixels: Vec<u8> = (0..64 * 64_u32)
        .map(|at| ((at % 64 + at / 64) * 2) as u8)
        .collect();
    let picture = pdf.stream(
        "/Type /XObject /Subtype /Image /Width 64 /Height 64 /BitsPerComponent 8 /ColorSpace /DeviceGray",
        &pixels,
    );
    let resources = format!("/XObject << /Scan {picture} 0 R >>");

    let content = "q 612 0 0 792 0 0 cm /Scan Do Q";
    pdf.page_with("/MediaBox [0 0 612 792]", &resources, content);
    pdf.build()
}

/// A form that draws itself. The text around it must survive.
fn form_in_itself() -> Vec<u8> {
    let mut pdf = PdfBuilder::new();
    // The form names itself, so its number is needed before the builder gives it out.
    let number = pdf.objects_planned() + 1;
    let form = pdf.stream(
        &format!(
            "/Type /XObject /Subtype /Form /BBox [0 0 200 100] \
             /Resources << /Font << /F1 3 0 R >> /XObject << /X {number} 0 R >> >>"
        ),
        b"BT /F1 10 Tf 10 50 Td (inside) Tj ET /X Do",
    );
    let resources = format!("/XObject << /X {form} 0 R >>");

    let content = "BT /F1 10 Tf 10 80 Td (before) Tj ET /X Do BT /F1 10 Tf 10 20 Td (after) Tj ET";
    pdf.page_with("/MediaBox [0 0 200 100]", &resources, content);
    pdf.build()
}

/// A page tree with a node that is its own kid.
fn pages_in_a_circle() -> Vec<u8> {
    let mut pdf = PdfBuilder::new();
    let node = pdf.objects_planned() + 1;
    pdf.object(&format!(
        "<< /Type /Pages /Count 9 /Kids [{node} 0 R {node} 0 R] /Parent 2 0 R >>"
    ));
    pdf.page("BT /F1 10 Tf 10 50 Td (page) Tj ET");
    let text = String::from_utf8_lossy(&pdf.build()).into_owned();

    // Makes the page tree's first kid the cycle, without changing any offset.
    text.replace("/Kids [6 0 R ]", "/Kids [4 0 R ]")
        .into_bytes()
}

/// 64 MiB of spaces in a content stream of 64 KiB.
fn flate_bomb() -> Result<Vec<u8>, Failure> {
    let mut blanks = lopdf::Stream::new(lopdf::Dictionary::new(), vec![b' '; 64 * 1024 * 1024]);
    blanks.compress()?;
    Ok(PdfBuilder::new().page_of(&blanks.content).build())
}

/// A truncated file: its cross-reference table is missing.
fn truncated() -> Vec<u8> {
    let mut bytes = geometry();
    let table = bytes.windows(5).rposition(|window| window == b"xref\n");
    // The cut goes through the last object, as after an interrupted download.
    bytes.truncate(table.unwrap_or(bytes.len()) - 20);
    bytes
}
