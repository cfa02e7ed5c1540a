//! Both copies of an executed document, in one pass.

use std::sync::Arc;

use crate::error::Result;
use crate::marks::{WordedRequest, paint};
use crate::seal::CheckedSeal;
use crate::source::SourceDocument;
use crate::updating::CheckedUpdates;
use crate::{MarkWords, VaultCopies, VaultRequest};

/// Marks the authoritative and the non-authoritative copy, and reserves space for the signature of the
/// authoritative one. The document is read once; each copy is the document and one update.
///
/// Returns none for a document that [`crate::mark`] would rewrite, or leave unchanged because its author
/// certified it against any change.
///
/// # Errors
///
/// Those of [`crate::worded_mark`] and [`crate::prepare_seal`].
pub fn prepare_copies(pdf: Vec<u8>, request: &VaultRequest) -> Result<Option<VaultCopies>> {
    let words = request.words.clone().map(|words| MarkWords {
        authoritative: words.authoritative,
        non_authoritative: words.non_authoritative,
        secured_party: words.secured_party,
    });
    let words = words.as_ref();
    // All requests are checked before the document is read, which takes most of the time.
    let authoritative = WordedRequest::new(&request.authoritative, words)?;

    let copy = WordedRequest::new(&request.copy, words)?;
    let seal = CheckedSeal::new(&request.seal)?;
    let pdf = Arc::new(pdf);
    let source = SourceDocument::open_for_update(&pdf)?;
    // The host then takes the separate steps, which can rewrite a document or leave it unchanged.
    if source.needs_rewrite() || source.certification_level() == Some(1) {
        return Ok(None);
    }

    let length = pdf.len();
    let mut updates = CheckedUpdates::of(pdf, source)?;

    let purpose = format!("{authoritative:?} {:?}", request.seal);
    let (update, looks) = updates.append(&purpose, |target, pages| {
        // Mark and seal are one update, so the signature covers the mark.
        let looks = paint(target, pages, &authoritative)?;
        seal.add_field(target, pages, length)?;
        Ok(looks)
    })?;
    let authoritative = seal.space(update, length)?;
    updates.confirm(&authoritative.appended, &looks)?;

    let (update, looks) = updates.append(&format!("{copy:?}"), |target, pages| {
        paint(target, pages, &copy)
    })?;
    updates.confirm(&update, &looks)?;

    Ok(Some(VaultCopies {
        authoritative,
        copy: update,
    }))
}
