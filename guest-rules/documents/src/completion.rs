//! The certificate of completion: a summary of the signing for people.

use krilla::metadata::Metadata;
use qrcodegen::{QrCode, QrCodeEcc};

use crate::error::{Result, over_limit};
use crate::geometry::DisplayedBox;
use crate::moment::CalendarTime;
use crate::typeset::{Ink, SheetStyle, TextStyle, TypesetSheet};
use crate::{CompletionFacts, FieldValue, SignatureAppearance, SignerSummary, fill, overlay};

/// US Letter, in points.
const PAGE: (f32, f32) = (612.0, 792.0);
const MARGIN: f32 = 48.0;
const RIGHT: f32 = PAGE.0 - MARGIN;
const BOTTOM: f32 = PAGE.1 - 60.0;
/// Side of the QR code with its quiet zone.
const CODE: f32 = 108.0;
/// Quiet zone of a QR code, in modules (ISO/IEC 18004, 5.3.8).
const QUIET: f32 = 4.0;
/// Width of the column of labels.
const LABELS: f32 = 118.0;
/// Box of a signature.
const SIGNATURE: (f32, f32) = (150.0, 46.0);

/// Limit on the characters of all facts together.
const MAX_CHARACTERS: usize = 200_000;

const INK: Ink = (17, 24, 39);
const SOFT: Ink = (84, 96, 117);
const LINE: Ink = (206, 212, 222);
const TITLE: SheetStyle = SheetStyle::new(TextStyle::Bold, 20.0, INK);
const NAME: SheetStyle = SheetStyle::new(TextStyle::Bold, 12.0, INK);
const TEXT: SheetStyle = SheetStyle::new(TextStyle::Regular, 9.0, INK);
const LABEL: SheetStyle = SheetStyle::new(TextStyle::Regular, 9.0, SOFT);
const SMALL: SheetStyle = SheetStyle::new(TextStyle::Regular, 7.5, SOFT);

/// Writes the certificate of completion. All text comes from the facts, so its language is the
/// host's choice.
///
/// # Errors
///
/// `other` when `issued-at` is not an RFC 3339 time, `over-limit` for facts of more than 200,000
/// characters or a URL too long for a QR code, `unreadable` for a picture that cannot be drawn.
pub fn completion_certificate(facts: &CompletionFacts) -> Result<Vec<u8>> {
    let issued_at = CalendarTime::parse(&facts.issued_at, "issued-at")?;
    // The limit comes before the layout: shaping a huge text would use up the time of the sandbox.
    if characters(facts) > MAX_CHARACTERS {
        return Err(over_limit(format!("{MAX_CHARACTERS} characters of facts")));
    }

    let mut layout = CertificateLayout {
        sheet: TypesetSheet::new(PAGE.0, PAGE.1)?,
        y: MARGIN,
    };
    layout.sheet.follow(&facts.title);
    layout.head(facts)?;
    layout.rows(MARGIN, &facts.rows);

    for signer in &facts.signers {
        layout.signer(signer)?;
    }

    // Footers state the number of pages, so every page has to exist first.
    layout.footers(facts);
    let mut document = krilla::Document::new_with(krilla::SerializeSettings {
        enable_tagging: false,
        ..krilla::SerializeSettings::default()
    });
    layout.sheet.draw_into(&mut document)?;
    // Time and identifier come from the facts. Equal facts have to give equal bytes.
    document.set_metadata(
        Metadata::new()
            .title(format!("{}: {}", facts.title, facts.document_name))
            .creator("holdfast".to_owned())
            .document_id(format!("completion:{}", facts.verification_url))
            .creation_date(issued_at.to_krilla()),
    );

    overlay::finish(document)
}

fn characters(facts: &CompletionFacts) -> usize {
    let of_rows = |rows: &[(String, String)]| -> usize {
        rows.iter()
            .map(|(label, value)| label.len() + value.len())
            .sum()
    };
    let of_signer =
        |signer: &SignerSummary| signer.name.len() + signer.about.len() + of_rows(&signer.rows);

    facts.title.len()
        + facts.document_name.len()
        + facts.verification_caption.len()
        + of_rows(&facts.rows)
        + facts.signers.iter().map(of_signer).sum::<usize>()
}

/// Pages of the certificate, filled from top to bottom.
struct CertificateLayout {
    sheet: TypesetSheet,
    /// Upper edge of the free space on the current page.
    y: f32,
}

impl CertificateLayout {
    /// Starts a new page if less than `height` is free.
    fn reserve(&mut self, height: f32) {
        if self.y + height > BOTTOM && self.y > MARGIN {
            self.sheet.add_page();
            self.y = MARGIN;
        }
    }

    fn head(&mut self, facts: &CompletionFacts) -> Result<()> {
        let left = RIGHT - CODE;
        self.code(&facts.verification_url, left, MARGIN)?;
        let width = left - MARGIN - 18.0;
        let sheet = &mut self.sheet;
        let mut y = MARGIN + 4.0;
        y += sheet.paragraph(MARGIN, y, width, &facts.title, TITLE) + 4.0;
        y += sheet.paragraph(MARGIN, y, width, &facts.document_name, NAME) + 8.0;

        y += sheet.paragraph(MARGIN, y, width, &facts.verification_caption, TEXT);
        // A long caption may end below the code, and a short one beside it.
        y = y.max(MARGIN + CODE) + 4.0;

        // As wide as the page, so most addresses stay on one line and can be copied.
        let address = &facts.verification_url;
        y += sheet.paragraph(MARGIN, y, RIGHT - MARGIN, address, SMALL);
        self.y = y + 12.0;

        Ok(())
    }

    /// Draws a QR code as rectangles, one for each run of dark modules.
    fn code(&mut self, text: &str, x: f32, y: f32) -> Result<()> {
        let code = QrCode::encode_text(text, QrCodeEcc::Medium)
            .map_err(|_| over_limit("a URL that does not fit into a QR code".to_owned()))?;
        let size = code.size();
        let module = CODE / (size as f32 + 2.0 * QUIET);
        let at = |index: i32| (index as f32 + QUIET) * module;

        // A code is never mirrored.
        let mirrored = self.sheet.is_mirrored();
        let across = |start: i32, end: i32| {
            if mirrored {
                x + at(size - end)
            } else {
                x + at(start)
            }
        };
        for row in 0..size {
            let mut column = 0;
            while column < size {
                let start = column;
                while column < size && code.get_module(column, row) {
                    column += 1;
                }

                let width = (column - start) as f32 * module;
                if width > 0.0 {
                    let left = across(start, column);
                    self.sheet.fill(left, y + at(row), width, module, INK);
                }

                column += 1;
            }
        }

        Ok(())
    }

    fn rows(&mut self, x: f32, rows: &[(String, String)]) {
        let width = RIGHT - x - LABELS;
        for (label, value) in rows {
            // Label and value wrap separately, so the taller of the two decides about the page break.
            let labelled = self.sheet.height(label, LABEL, LABELS - 8.0);
            let height = self.sheet.height(value, TEXT, width).max(labelled);
            self.reserve(height);
            self.sheet.paragraph(x, self.y, LABELS - 8.0, label, LABEL);
            self.sheet.paragraph(x + LABELS, self.y, width, value, TEXT);
            self.y += height + 2.0;
        }
    }

    fn signer(&mut self, signer: &SignerSummary) -> Result<()> {
        // Name and signature of a person stay on one page. A signature alone at the top would have no name.
        self.reserve(24.0 + NAME.leading() + TEXT.leading() + SIGNATURE.1);
        self.y += 10.0;
        let line = [(MARGIN, self.y), (RIGHT, self.y)];
        self.sheet.stroke(&line, 0.75, LINE);
        self.y += 10.0;
        let width = RIGHT - MARGIN;
        self.y += self
            .sheet
            .paragraph(MARGIN, self.y, width, &signer.name, NAME);

        let about = self
            .sheet
            .paragraph(MARGIN, self.y, width, &signer.about, LABEL);
        self.y += about + 6.0;
        let (page, top) = (self.sheet.page_count(), self.y);
        if let Some(signature) = &signer.signature {
            self.signature(signature)?;
        }

        self.rows(MARGIN + SIGNATURE.0 + 18.0, &signer.rows);
        // On a new page the rows are below everything: the box of the signature is on an earlier page.
        if self.sheet.page_count() == page {
            self.y = self.y.max(top + SIGNATURE.1);
        }

        Ok(())
    }

    fn signature(&mut self, signature: &SignatureAppearance) -> Result<()> {
        let (width, height) = SIGNATURE;
        self.sheet.frame(MARGIN, self.y, width, height, 0.75, LINE);
        let space = DisplayedBox {
            x: MARGIN + 4.0,
            y: self.y + 4.0,
            width: width - 8.0,
            height: height - 8.0,
        };

        let (value, hand) = match signature {
            SignatureAppearance::Typed(typed) => {
                let value = FieldValue::Typed(typed.name.clone());
                (value, typed.style.map(fill::hand))
            }
            SignatureAppearance::Drawn(picture) => (FieldValue::Drawn(picture.clone()), None),
        };

        self.sheet.field(&value, hand, space)
    }

    fn footers(&mut self, facts: &CompletionFacts) {
        let pages = self.sheet.page_count();
        for page in 0..pages {
            self.sheet.select_page(page);
            let baseline = PAGE.1 - 34.0;
            let left = format!("{} \u{b7} {}", facts.title, facts.document_name);
            // The footer has room for one line. The head of the first page has the whole name.
            let left = self.sheet.wrap(&left, SMALL, RIGHT - MARGIN - 60.0);
            let left = left.first().map_or("", String::as_str);
            self.sheet.text(MARGIN, baseline, left, SMALL);
            let number = format!("{} / {pages}", page + 1);
            self.sheet.text_right(RIGHT, baseline, &number, SMALL);
        }
    }
}
