//! Facts about an upload, read before any other operation.

use holdfast_reader::{PdfDocument, ReadError as Unread, ReadLimit, TextLayer};

use crate::area::page_index;
use crate::{Area, DocumentFacts, PageFacts, ReadError, TextLine};

impl From<Unread> for ReadError {
    fn from(error: Unread) -> Self {
        match error {
            Unread::Unreadable(why) => Self::Unreadable(why),
            Unread::Encrypted => Self::Encrypted,
            Unread::OverLimit(limit) => Self::OverLimit(over(limit)),
        }
    }
}

fn over(limit: ReadLimit) -> String {
    format!("the PDF has {limit}")
}

/// Returns page sizes, signatures and whether each page has text.
///
/// # Errors
///
/// If the bytes are not a PDF, need a password or exceed a limit.
pub fn inspect(pdf: Vec<u8>) -> Result<DocumentFacts, ReadError> {
    let document = PdfDocument::open(pdf)?;
    let mut reader = document.text_reader();
    let mut pages = Vec::with_capacity(document.page_count());
    for (index, page) in document.pages().into_iter().enumerate() {
        pages.push(PageFacts {
            width: page.width,
            height: page.height,
            rotation: page.rotation,
            has_text: reader.has_text(index)?,
        });
    }

    let signatures = document.signatures();
    Ok(DocumentFacts {
        pages,
        signatures: signatures.count,
        certification_level: signatures.certification_level,
        needs_rewrite: document.needs_rewrite(),
    })
}

/// Returns the lines of a page (1-based) in document order; empty for a page past the end.
///
/// # Errors
///
/// Those of [`inspect`].
pub fn text(pdf: Vec<u8>, page: u32) -> Result<Vec<TextLine>, ReadError> {
    let document = PdfDocument::open(pdf)?;
    // Page 0 is treated like a page past the end: the contract knows no error for it.
    let Some(index) = page_index(page) else {
        return Ok(Vec::new());
    };

    let page_text = document.text_reader().page(index)?;
    Ok(TextLayer::visible(&page_text)
        .lines(&page_text)
        .into_iter()
        .map(|line| TextLine {
            area: Area::on_page(index, &line.rect),
            text: line.text,
        })
        .collect())
}
