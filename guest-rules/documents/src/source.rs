//! An uploaded document, checked before any other operation.

use std::sync::Arc;

use hayro_syntax::{DecryptionError, LoadPdfError, Pdf, PdfData};
use lopdf::{Dictionary, Document, FilterFunc, LoadOptions, Object, ObjectId};
use memchr::memmem;

use crate::DocumentError;
use crate::error::{Result, over_limit, unreadable};
use crate::geometry::PageGeometry;

/// Limit on the pages of a document. Contracts have about a dozen; the limit only bounds work.
pub(crate) const MAX_PAGES: usize = 5_000;

/// Limit on the bytes that one stream may inflate to while a document is loaded or inspected.
pub(crate) const MAX_STREAM_BYTES: usize = 64 * 1024 * 1024;

/// Highest object number accepted. New objects are numbered after it, and cross-reference tables
/// grow with it.
const MAX_OBJECT_NUMBER: u32 = 8_000_000;

/// A document that two independent parsers can read.
pub(crate) struct SourceDocument {
    pub(crate) document: Document,
    pub(crate) pages: Vec<SourcePage>,
}

pub(crate) struct SourcePage {
    pub(crate) id: ObjectId,
    pub(crate) geometry: PageGeometry,
}

/// Refuses an encrypted document before lopdf decrypts it, which can exceed the limits of a call.
pub(crate) fn refuse_encrypted(pdf: &[u8]) -> Result<()> {
    match memmem::find(pdf, b"/Encrypt").is_some() && holdfast_reader::is_encrypted(pdf) {
        true => Err(DocumentError::Encrypted),
        false => Ok(()),
    }
}

impl SourceDocument {
    /// Loads a document that will be written anew as a whole.
    ///
    /// Refuses encrypted input even if the user password is empty: a writer would have to keep or
    /// break restrictions of the owner, and this component must not decide that. Refuses signed
    /// input, because its signatures cover the original bytes.
    pub(crate) fn open_for_rewrite(pdf: &[u8]) -> Result<Self> {
        if is_signed(pdf) {
            return Err(unreadable(
                "it is signed, and would lose its signatures by being written anew",
            ));
        }
        Self::read(&Arc::new(pdf.to_vec()), None)
    }

    /// Loads a document that will be written anew, with or without signatures.
    pub(crate) fn open_whole(pdf: &Arc<Vec<u8>>) -> Result<Self> {
        Self::read(pdf, None)
    }

    /// Loads a document for an incremental update, without the data of its pictures and typefaces.
    /// They are most of a document, and no update touches them.
    pub(crate) fn open_for_update(pdf: &Arc<Vec<u8>>) -> Result<Self> {
        match Self::read(pdf, Some(without_bulk)) {
            // A damaged page tree can be repaired only in a document that was read completely.
            Err(_) => Self::read(pdf, None),
            opened => opened,
        }
    }

    fn read(pdf: &Arc<Vec<u8>>, filter: Option<FilterFunc>) -> Result<Self> {
        refuse_encrypted(pdf)?;
        if is_cut_short(pdf) {
            return Err(unreadable("a signature covers bytes behind its end"));
        }
        let geometries = page_geometries(pdf)?;
        let options = LoadOptions {
            filter,
            ..LoadOptions::with_max_decompressed_size(MAX_STREAM_BYTES)
        };
        let document = Document::load_mem_with_options(pdf, options)?;
        if document.is_encrypted() || document.was_encrypted() {
            return Err(DocumentError::Encrypted);
        }
        if document.max_id > MAX_OBJECT_NUMBER {
            return Err(over_limit(format!(
                "object numbers end at {MAX_OBJECT_NUMBER}"
            )));
        }
        let ids: Vec<ObjectId> = document.page_iter().take(MAX_PAGES + 1).collect();
        if ids.is_empty() {
            return Err(unreadable("the document has no pages"));
        }
        if ids.len() != geometries.len() {
            return Err(unreadable(format!(
                "its page tree reads as {} pages one way and {} another",
                ids.len(),
                geometries.len()
            )));
        }
        let pages = ids
            .into_iter()
            .zip(geometries)
            .map(|(id, geometry)| SourcePage { id, geometry })
            .collect();
        Ok(Self { document, pages })
    }

    /// Returns whether the cross-reference table had to be repaired. Other readers could not read
    /// an incremental update of such a file.
    pub(crate) fn needs_rewrite(&self) -> bool {
        self.document.xref_recovery.is_some()
    }

    pub(crate) fn certification_level(&self) -> Option<i64> {
        certification_level(&self.document)
    }
}

/// Returns the DocMDP level (1 to 3) of a certified document, which defines the changes that keep
/// the author's certification valid. Level 1 allows none.
pub(crate) fn certification_level(document: &Document) -> Option<i64> {
    let permissions = dictionary(document, document.catalog().ok()?.get(b"Perms").ok()?)?;
    let signature = dictionary(document, permissions.get(b"DocMDP").ok()?)?;
    let Object::Array(references) = resolve_in(document, signature.get(b"Reference").ok()?) else {
        return Some(2);
    };
    let level = references.iter().find_map(|reference| {
        let reference = dictionary(document, reference)?;
        let method = resolve_in(document, reference.get(b"TransformMethod").ok()?);
        if method.as_name().ok()? != b"DocMDP" {
            return None;
        }
        let parameters = dictionary(document, reference.get(b"TransformParams").ok()?)?;
        resolve_in(document, parameters.get(b"P").ok()?)
            .as_i64()
            .ok()
    });
    // ISO 32000-1, table 254: the default is 2.
    Some(level.unwrap_or(2))
}

/// Returns the dictionary that an object is or refers to.
pub(crate) fn dictionary<'a>(document: &'a Document, object: &'a Object) -> Option<&'a Dictionary> {
    resolve_in(document, object).as_dict().ok()
}

/// Entry of a signature that lists the bytes it covers.
const BYTE_RANGE: &[u8] = b"/ByteRange";

/// Returns whether the bytes contain a signature. Its `/ByteRange` has to be found at a fixed place
/// in the file, so it is never compressed (ISO 32000-2, 12.8.1).
pub(crate) fn is_signed(pdf: &[u8]) -> bool {
    memmem::find(pdf, BYTE_RANGE).is_some()
}

/// Returns whether a signature covers more bytes than the file has. Bytes appended to it would
/// become part of the signed content.
fn is_cut_short(pdf: &[u8]) -> bool {
    memmem::find_iter(pdf, BYTE_RANGE).any(|at| {
        /// More than four numbers of ten digits, with spaces.
        const LONGEST: usize = 100;
        let start = at + BYTE_RANGE.len();
        let array = pdf.get(start..pdf.len().min(start + LONGEST));
        let text = String::from_utf8_lossy(array.unwrap_or_default());
        let array = text.trim_start().trim_start_matches('[').split(']').next();
        let numbers = array.unwrap_or_default().split_whitespace();
        let numbers: Vec<u64> = numbers.map_while(|number| number.parse().ok()).collect();
        // Pairs of offset and length: the last one is behind the signature itself.
        match numbers.as_slice() {
            [.., offset, length] => offset.saturating_add(*length) > pdf.len() as u64,
            _ => false,
        }
    })
}

/// Key that marks a stream as loaded without its data.
pub(crate) const LEFT_OUT: &[u8] = b"HoldfastLeftOut";

/// Drops large data that only a viewer needs.
fn without_bulk(id: ObjectId, object: &mut Object) -> Option<(ObjectId, Object)> {
    const SMALL: usize = 4 * 1024;
    if let Object::Stream(stream) = object
        && stream.content.len() > SMALL
    {
        let entry = |key: &[u8]| stream.dict.get(key).and_then(Object::as_name).ok();
        let picture = entry(b"Subtype") == Some(b"Image");
        let typeface = stream.dict.has(b"Length1") || entry(b"Subtype") == Some(b"OpenType");
        if picture || typeface {
            // One byte, because the parser would read an empty stream again.
            stream.content = vec![b' '];
            stream.dict.set(LEFT_OUT, true);
        }
    }
    // lopdf takes the returned object only for members of an object stream. Any other object is
    // kept as changed in place, so that streams need no copy here.
    match object {
        Object::Stream(_) => Some((id, Object::Null)),
        plain => Some((id, plain.clone())),
    }
}

/// Follows references. Dangling and circular references resolve to null.
pub(crate) fn resolve_in<'a>(document: &'a Document, object: &'a Object) -> &'a Object {
    static NULL: Object = Object::Null;
    let mut object = object;
    for _ in 0..32 {
        let Object::Reference(id) = object else {
            return object;
        };
        match document.objects.get(id) {
            Some(target) => object = target,
            None => return &NULL,
        }
    }
    &NULL
}

/// Parses with hayro, which provides the errors and the page geometry.
pub(crate) fn parse(pdf: impl Into<PdfData>) -> Result<Pdf> {
    let pdf = pdf.into();
    if pdf.as_ref().is_empty() {
        return Err(unreadable("the file is empty"));
    }
    let parsed = Pdf::new(pdf).map_err(|error| match error {
        LoadPdfError::Decryption(DecryptionError::PasswordProtected) => DocumentError::Encrypted,
        LoadPdfError::Decryption(_) => unreadable("its encryption is damaged or unknown"),
        LoadPdfError::Invalid => unreadable("the bytes are not a PDF, or damaged beyond reading"),
    })?;
    match parsed.pages().len() {
        0 => Err(unreadable("the document has no pages")),
        count if count > MAX_PAGES => Err(over_limit(format!("more than {MAX_PAGES} pages"))),
        _ => Ok(parsed),
    }
}

fn page_geometries(pdf: &Arc<Vec<u8>>) -> Result<Vec<PageGeometry>> {
    let parsed = parse(pdf.clone())?;
    parsed
        .pages()
        .iter()
        .enumerate()
        .map(|(index, page)| {
            PageGeometry::of(page)
                .ok_or_else(|| unreadable(format!("page {} has no usable size", index + 1)))
        })
        .collect()
}

/// Reads the output back with the parser that did not write it. A document that cannot be opened
/// again must not leave this component.
pub(crate) fn confirm(written: &[u8], pages: usize) -> Result<()> {
    let found = parse(written.to_vec())?.pages().len();
    if found == pages {
        Ok(())
    } else {
        Err(unreadable(format!(
            "{found} of {pages} pages survive being written"
        )))
    }
}
