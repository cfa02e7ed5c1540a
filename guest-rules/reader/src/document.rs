//! A document, its pages, and page-by-page access to their text.

use hayro_syntax::object::{Array, Dict, Object, ObjectIdentifier, Stream};
use hayro_syntax::page::{Page, Rotation};
use hayro_syntax::{DecryptionError, LoadPdfError, Pdf, PdfData};

use crate::annotations::run_appearances;
use crate::decode::{FlateState, decode, flate_state};
use crate::error::ReadError;
use crate::facts::{self, SignatureFacts};
use crate::font::FontTable;
use crate::geometry::AffineMap;
use crate::interpret::{ContentInterpreter, HiddenLayers, TextExtent};
use crate::limits::{MAX_PAGES, ReadBudget, ReadLimit};
use crate::objects::resolved;
use crate::page_text::PageText;
use crate::xref::{FileSurvey, survey};

/// An opened PDF.
pub struct PdfDocument {
    pdf: Pdf,
    survey: FileSurvey,
}

impl std::fmt::Debug for PdfDocument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Document")
            .field("pages", &self.pdf.pages().len())
            .finish_non_exhaustive()
    }
}

/// A page as displayed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PageInfo {
    /// Width in points, after rotation, `UserUnit` applied.
    pub width: f64,
    /// Height in points, after rotation, `UserUnit` applied.
    pub height: f64,
    /// Clockwise: 0, 90, 180 or 270.
    pub rotation: u32,
    /// Map from default user space (the initial coordinates of the content stream) to points of the
    /// displayed page with the origin in its top-left corner.
    pub matrix: AffineMap,
}

impl PdfDocument {
    /// Opens a document.
    ///
    /// # Errors
    ///
    /// [`ReadError::Unreadable`] if no page can be found in the bytes, [`ReadError::Encrypted`] if
    /// a password is needed, [`ReadError::OverLimit`] for too many pages.
    pub fn open(bytes: impl Into<PdfData>) -> Result<Self, ReadError> {
        Self::open_with(bytes, "")
    }

    /// Opens a document with a password.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open); [`ReadError::Encrypted`] also for a wrong password.
    pub fn open_with(bytes: impl Into<PdfData>, password: &str) -> Result<Self, ReadError> {
        let bytes = bytes.into();
        let data = bytes.as_ref();
        // Readers accept a header behind some other bytes, so it need not be the first.
        let has_header = data
            .get(..data.len().min(2_000))
            .is_some_and(|head| head.windows(5).any(|window| window == b"%PDF-"));
        if !has_header {
            return Err(ReadError::Unreadable(
                "it has no %PDF- header near its start".into(),
            ));
        }

        // The survey comes before the parser, which repairs a broken table silently.
        let survey = survey(data);
        let pdf = Pdf::new_with_password(bytes, password).map_err(|error| match error {
            LoadPdfError::Decryption(
                DecryptionError::PasswordProtected | DecryptionError::UnsupportedAlgorithm,
            ) => ReadError::Encrypted,
            LoadPdfError::Decryption(_) => {
                ReadError::Unreadable("its encryption dictionary is damaged".into())
            }
            LoadPdfError::Invalid => ReadError::Unreadable("it has no page tree".into()),
        })?;
        match pdf.pages().len() {
            0 => Err(ReadError::Unreadable("it has no pages".into())),
            count if count > MAX_PAGES => Err(ReadError::OverLimit(ReadLimit::Pages)),
            _ => Ok(Self { pdf, survey }),
        }
    }

    /// Returns the number of pages, at least one.
    pub fn page_count(&self) -> usize {
        self.pdf.pages().len()
    }

    /// Returns every page as displayed, in order.
    pub fn pages(&self) -> Vec<PageInfo> {
        self.pdf.pages().iter().map(page_info).collect()
    }

    /// Returns whether the cross-reference data fails to locate an object it lists, so readers
    /// have to rebuild it. An incremental update would make such a file worse: rewrite it first.
    pub fn needs_rewrite(&self) -> bool {
        !self.survey.is_sound
    }

    /// Returns the cross-reference data of the file.
    pub fn survey(&self) -> &FileSurvey {
        &self.survey
    }

    /// Returns the parsed file, for a writer that takes its objects from this reader.
    pub fn parsed(&self) -> &Pdf {
        &self.pdf
    }

    /// Returns the decoded content of a page by its 0-based index; empty for an index past the end.
    ///
    /// # Errors
    ///
    /// [`ReadError::OverLimit`].
    pub fn content(&self, index: usize) -> Result<PageContent, ReadError> {
        let mut budget = ReadBudget::new();
        match self.pdf.pages().get(index) {
            Some(page) => page_content(page, &mut budget),
            None => Ok(PageContent::default()),
        }
    }

    /// Returns whether the file is encrypted; it was opened with the empty password.
    pub fn is_encrypted(&self) -> bool {
        self.survey.is_encrypted
    }

    /// Returns the existing digital signatures and their permissions.
    pub fn signatures(&self) -> SignatureFacts {
        self.catalog()
            .map(|catalog| facts::signatures(&catalog, self.pdf.xref()))
            .unwrap_or_default()
    }

    /// Starts reading text. A reader serves one pass over the document: the limits apply to
    /// everything it reads.
    pub fn text_reader(&self) -> TextReader<'_> {
        TextReader {
            pages: self.pdf.pages(),
            fonts: FontTable::new(),
            budget: ReadBudget::new(),
            compact_budget: ReadBudget::new(),
            hidden_layers: HiddenLayers::of(self.catalog().as_ref()),
        }
    }

    fn catalog(&self) -> Option<Dict<'_>> {
        let root: ObjectIdentifier = self.pdf.xref().root_id();
        self.pdf.xref().get::<Dict<'_>>(root)
    }
}

/// Reader of page text; caches fonts across pages.
pub struct TextReader<'a> {
    pages: &'a [Page<'a>],
    fonts: FontTable<'a>,
    budget: ReadBudget,
    /// Of its own, because a page may be read both ways.
    compact_budget: ReadBudget,
    hidden_layers: HiddenLayers,
}

impl std::fmt::Debug for TextReader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextReader")
            .field("fonts", &self.fonts)
            .finish_non_exhaustive()
    }
}

impl<'a> TextReader<'a> {
    /// Starts another pass: the limits apply anew.
    pub fn start_over(&mut self) {
        self.budget = ReadBudget::new();
        self.compact_budget = ReadBudget::new();
    }

    /// Returns the text of a page by its 0-based index; empty for an index past the end.
    ///
    /// # Errors
    ///
    /// [`ReadError::OverLimit`]. Damaged parts of a page are skipped, as viewers do.
    pub fn page(&mut self, index: usize) -> Result<PageText, ReadError> {
        Ok(self.read(index, TextExtent::All)?.finish())
    }

    /// Returns whether a page has readable text; reads no further than to the first of it.
    ///
    /// # Errors
    ///
    /// [`ReadError::OverLimit`] for the part that was read.
    pub fn has_text(&mut self, index: usize) -> Result<bool, ReadError> {
        Ok(self.read(index, TextExtent::First)?.finish().has_text())
    }

    /// Returns the visible text of a page in lower case, without white space and invisible characters. That
    /// takes a fraction of the time of [`TextReader::page`]. None if some of the text may lie beside the page.
    ///
    /// # Errors
    ///
    /// [`ReadError::OverLimit`].
    pub fn compact(&mut self, index: usize) -> Result<Option<String>, ReadError> {
        Ok(self.read(index, TextExtent::Compact)?.finish_compact())
    }

    fn read(
        &mut self,
        index: usize,
        extent: TextExtent,
    ) -> Result<ContentInterpreter<'_, 'a>, ReadError> {
        let budget = match extent {
            TextExtent::All | TextExtent::First => &mut self.budget,
            TextExtent::Compact => &mut self.compact_budget,
        };
        budget.start_page();
        let page = self.pages.get(index);
        let info = page.map(page_info);

        let content = match page {
            Some(page) => page_content(page, budget)?.bytes,
            None => Vec::new(),
        };
        let size = info.map_or((0.0, 0.0), |info| (info.width, info.height));
        let mut interpreter =
            ContentInterpreter::new(&mut self.fonts, budget, &self.hidden_layers, size, extent);
        // Appearances come last, because readers draw annotations on top of the page.
        if let (Some(page), Some(info)) = (page, info) {
            interpreter.run_page(content, page.resources(), info.matrix)?;
            run_appearances(page, &mut interpreter, &self.hidden_layers, &info.matrix)?;
        }

        Ok(interpreter)
    }
}

fn page_info(page: &Page<'_>) -> PageInfo {
    let (width, height) = page.render_dimensions();
    // A hostile factor would make the page infinite or empty, and every place on it with it.
    let user_unit = page
        .raw()
        .get::<f64>("UserUnit")
        .filter(|unit| unit.is_finite() && (0.01..=10_000.0).contains(unit))
        .unwrap_or(1.0);
    let displayed = AffineMap::new(page.initial_transform(true).as_coeffs());

    let scale = AffineMap::new([user_unit, 0.0, 0.0, user_unit, 0.0, 0.0]);
    PageInfo {
        width: f64::from(width) * user_unit,
        height: f64::from(height) * user_unit,
        rotation: match page.rotation() {
            Rotation::None => 0,
            Rotation::Horizontal => 90,
            Rotation::Flipped => 180,
            Rotation::FlippedHorizontal => 270,
        },
        matrix: displayed.then(&scale),
    }
}

/// The decoded content of a page.
#[derive(Debug, Clone, Default)]
pub struct PageContent {
    /// The content streams, joined.
    pub bytes: Vec<u8>,
    /// The compressed data of a stream end early or are damaged, so readers may get less or more of it.
    pub is_damaged: bool,
}

/// Returns the decoded content of a page. An array of streams counts as one stream (ISO 32000-1,
/// 7.8.2).
fn page_content(page: &Page<'_>, budget: &mut ReadBudget) -> Result<PageContent, ReadError> {
    let contents = page.raw();
    let parts: Vec<Stream<'_>> = match contents.get::<Stream<'_>>("Contents") {
        Some(single) => vec![single],
        None => contents
            .get::<Array<'_>>("Contents")
            .map(|parts| {
                resolved(&parts, page.xref())
                    .filter_map(Object::into_stream)
                    .collect()
            })
            .unwrap_or_default(),
    };

    let mut content = PageContent::default();
    let joined = parts.len() > 1;
    for part in parts {
        content.is_damaged |= flate_state(&part) != FlateState::Whole;
        if let Some(decoded) = decode(&part, budget.page_content_left())? {
            budget.spend_page_content(decoded.len() + 1)?;
            if !joined {
                content.bytes = decoded;
                return Ok(content);
            }

            // A token does not go on in the next stream (ISO 32000-1, 7.8.2), so a space may separate them.
            content.bytes.extend_from_slice(&decoded);
            content.bytes.push(b' ');
        }
    }

    Ok(content)
}
