//! Updates of a document, each read back before its bytes leave this component.

use std::sync::Arc;

use crate::error::Result;
use crate::look::{PageLook, compare};
use crate::read_back::ShownPages;
use crate::source::{SourceDocument, SourcePage};
use crate::target::{DocumentUpdates, OverlayTarget};

/// A document, its pages as they were read, and updates of it.
pub(crate) struct CheckedUpdates {
    pages: Vec<SourcePage>,
    shown: ShownPages,
    updates: DocumentUpdates,
}

impl CheckedUpdates {
    /// Takes a document that needs no repair: `pdf` has its bytes.
    pub(crate) fn of(pdf: Arc<Vec<u8>>, source: SourceDocument) -> Result<Self> {
        let SourceDocument {
            document,
            pages,
            bytes,
            ..
        } = source;

        // The updates take over the only copy of the bytes.
        drop(bytes);
        let shown = ShownPages::of(&pdf)?;

        Ok(Self {
            pages,
            shown,
            updates: DocumentUpdates::of(pdf, document),
        })
    }

    /// Makes an update, apart from the others. Returns the bytes to append, and the additions that have to show.
    pub(crate) fn append(
        &mut self,
        purpose: &str,
        change: impl FnOnce(&mut OverlayTarget, &[SourcePage]) -> Result<Vec<PageLook>>,
    ) -> Result<(Vec<u8>, Vec<PageLook>)> {
        let Self { pages, updates, .. } = self;
        let mut looks = Vec::new();
        let update = updates.append(purpose, |target| {
            looks = change(target, pages)?;
            Ok(())
        })?;
        Ok((update, looks))
    }

    /// Requires that the document with an update appended still has its pages, and shows the additions.
    pub(crate) fn confirm(&self, update: &[u8], looks: &[PageLook]) -> Result<()> {
        let written = Arc::new(self.updates.with(update));
        self.shown.confirm(Arc::clone(&written))?;
        if looks.is_empty() {
            return Ok(());
        }
        // Drawing pages is slow, so only additions that something could hide are looked at.
        let before = Arc::new(self.updates.with(&[]));
        compare(before, written, looks)
    }
}
