//! Limits on the work that one document may cause.

use std::fmt;

use crate::error::ReadError;

/// Most pages in a document.
pub(crate) const MAX_PAGES: usize = 5_000;
/// Most content operators interpreted for a document, counting form XObjects at every use.
pub(crate) const MAX_OPERATORS: u32 = 5_000_000;
/// Most glyphs shown in a document. A dense 500-page contract has about 2.2 million.
pub(crate) const MAX_GLYPHS: u32 = 4_000_000;
/// Most glyphs shown on one page, which are in memory together; a full page has about 5,000.
pub(crate) const MAX_PAGE_GLYPHS: u32 = 500_000;
/// Deepest nesting of form XObjects.
pub(crate) const MAX_FORM_DEPTH: usize = 20;
/// Most bytes of decoded content for one page, form XObjects and appearances included.
pub(crate) const MAX_PAGE_CONTENT_BYTES: usize = 32 * 1024 * 1024;
/// Most bytes between `{{` and `}}`.
pub(crate) const MAX_TAG_BYTES: usize = 16 * 1024;

/// A limit of this reader. `Display` completes the sentence "the PDF has ...".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadLimit {
    /// More than 5,000 pages.
    Pages,
    /// More than 5 million content operators in the document.
    Operators,
    /// More than 4 million glyphs in the document.
    Glyphs,
    /// More than 500,000 glyphs on one page.
    PageGlyphs,
    /// Form XObjects nested more than 20 deep.
    FormDepth,
    /// More than 32 MiB of decoded content on one page.
    PageContent,
    /// More than 16 KiB of text between `{{` and `}}`.
    TagText,
}

impl fmt::Display for ReadLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pages => "more than 5,000 pages",
            Self::Operators => "more than 5,000,000 content operators",
            Self::Glyphs => "more than 4,000,000 glyphs",
            Self::PageGlyphs => "more than 500,000 glyphs on one page",
            Self::FormDepth => "form XObjects nested more than 20 deep",
            Self::PageContent => "more than 32 MiB of decoded content on one page",
            Self::TagText => "more than 16 KiB of text in one embedded tag",
        })
    }
}

/// Remaining work that a document may cause.
#[derive(Debug)]
pub(crate) struct ReadBudget {
    operators: u32,
    glyphs: u32,
    page_glyphs: u32,
    page_content_bytes: usize,
}

impl ReadBudget {
    pub(crate) fn new() -> Self {
        Self {
            operators: MAX_OPERATORS,
            glyphs: MAX_GLYPHS,
            page_glyphs: MAX_PAGE_GLYPHS,
            page_content_bytes: MAX_PAGE_CONTENT_BYTES,
        }
    }

    /// Resets the limits on memory that is freed after each page.
    pub(crate) fn start_page(&mut self) {
        self.page_glyphs = MAX_PAGE_GLYPHS;
        self.page_content_bytes = MAX_PAGE_CONTENT_BYTES;
    }

    pub(crate) fn page_content_left(&self) -> usize {
        self.page_content_bytes
    }

    pub(crate) fn spend_operator(&mut self) -> Result<(), ReadError> {
        self.operators = self
            .operators
            .checked_sub(1)
            .ok_or(ReadError::OverLimit(ReadLimit::Operators))?;
        Ok(())
    }

    pub(crate) fn spend_glyph(&mut self) -> Result<(), ReadError> {
        self.glyphs = self
            .glyphs
            .checked_sub(1)
            .ok_or(ReadError::OverLimit(ReadLimit::Glyphs))?;
        // The glyphs of a page are in memory together, so a page has a limit of its own.
        self.page_glyphs = self
            .page_glyphs
            .checked_sub(1)
            .ok_or(ReadError::OverLimit(ReadLimit::PageGlyphs))?;

        Ok(())
    }

    pub(crate) fn spend_page_content(&mut self, bytes: usize) -> Result<(), ReadError> {
        self.page_content_bytes = self
            .page_content_bytes
            .checked_sub(bytes)
            .ok_or(ReadError::OverLimit(ReadLimit::PageContent))?;
        Ok(())
    }
}
