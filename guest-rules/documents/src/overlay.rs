//! New content for existing pages.
//!
//! An overlay is a small document with one page for each distinct piece of new content, as large as
//! the *displayed* size of its target page. Drawing uses displayed coordinates (origin top-left),
//! embedded subset fonts and real text. Each overlay page becomes a form XObject of the target: the
//! original content stays unchanged, and rotation is one matrix instead of a concern of every
//! drawing routine.

use std::collections::BTreeMap;

use krilla::SerializeSettings;
use krilla::page::PageSettings;
use krilla::surface::Surface;
use lopdf::{Dictionary, Document, Object, ObjectId, Stream};

use crate::error::{Result, other, over_limit};
use crate::target::OverlayTarget;

pub(crate) struct OverlayDocument {
    document: krilla::Document,
    pages: usize,
}

impl OverlayDocument {
    pub(crate) fn new() -> Self {
        let document = krilla::Document::new_with(SerializeSettings {
            xmp_metadata: false,
            enable_tagging: false,
            ..SerializeSettings::default()
        });
        Self { document, pages: 0 }
    }

    /// Draws one piece of content on a page of the given size and returns its number.
    pub(crate) fn page(
        &mut self,
        (width, height): (f32, f32),
        draw: impl FnOnce(&mut Surface<'_>) -> Result<()>,
    ) -> Result<usize> {
        let settings = PageSettings::from_wh(width, height)
            .ok_or_else(|| over_limit(format!("a page of {width} x {height} points")))?;
        let mut page = self.document.start_page_with(settings);
        let mut surface = page.surface();
        let drawn = draw(&mut surface);
        surface.finish();
        page.finish();

        drawn?;
        self.pages += 1;
        Ok(self.pages - 1)
    }

    /// Returns the pages as a document of their own.
    pub(crate) fn into_pdf(self) -> Result<Vec<u8>> {
        finish(self.document)
    }

    /// Imports the pages into the target as form XObjects, in the order they were drawn.
    pub(crate) fn import_into(self, target: &mut OverlayTarget) -> Result<Vec<ObjectId>> {
        if self.pages == 0 {
            return Ok(Vec::new());
        }

        let bytes = finish(self.document)?;
        let overlay = Document::load_mem(&bytes)?;
        // All pages share this map, so a typeface comes into the target once.
        let mut known = BTreeMap::new();
        overlay
            .page_iter()
            .map(|page| {
                let form = as_form(&overlay, page)?;
                let form = target.import(&overlay, &Object::Stream(form), &mut known)?;
                target.add(form)
            })
            .collect()
    }
}

/// Serializes a document that this component drew; only its pictures can still make that fail.
pub(crate) fn finish(document: krilla::Document) -> Result<Vec<u8>> {
    use krilla::error::KrillaError;
    document.finish().map_err(|error| match error {
        KrillaError::Image(..) => other("a picture could not be decoded"),
        error => other(format!("the new content could not be written: {error:?}")),
    })
}

fn as_form(overlay: &Document, page: ObjectId) -> Result<Stream> {
    let dictionary = overlay.get_dictionary(page)?;
    let mut form = Dictionary::new();
    form.set("Type", "XObject");
    form.set("Subtype", "Form");
    form.set("BBox", dictionary.get(b"MediaBox")?.clone());

    // The group names the colour space in which transparent parts are blended.
    for key in ["Resources", "Group"] {
        if let Ok(entry) = dictionary.get(key.as_bytes()) {
            form.set(key, entry.clone());
        }
    }

    let mut stream = Stream::new(form, overlay.get_page_content(page));
    stream.compress()?;
    Ok(stream)
}
