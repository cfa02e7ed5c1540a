//! An uploaded document, checked before any other operation.

use std::sync::Arc;

use hayro_syntax::object::{Array, Dict, Name, Rect};
use hayro_syntax::page::Page;
use holdfast_reader::{ContentEnding, PdfDocument, ReadError};
use lopdf::{Dictionary, Document, Object, ObjectId};
use memchr::memmem;

use crate::DocumentError;
use crate::error::{Result, over_limit, unreadable};
use crate::geometry::PageGeometry;
use crate::look::compare_same;
use crate::read_back::{ShownPages, differs};
use crate::table::{DAMAGED_TREE, ENCRYPTED, ObjectTable, StreamData};
use crate::target::OverlayTarget;

/// Limit on the pages of a document. Contracts have about a dozen; the limit only bounds work.
pub(crate) const MAX_PAGES: usize = 5_000;

/// Limit on the bytes that one stream may inflate to while a document is loaded or inspected.
pub(crate) const MAX_STREAM_BYTES: usize = 64 * 1024 * 1024;

/// A document that every reader reads alike: its bytes, and the objects that the reader finds in them.
pub(crate) struct SourceDocument {
    pub(crate) document: Document,
    pub(crate) pages: Vec<SourcePage>,
    /// The given bytes, or the repaired ones.
    pub(crate) bytes: Arc<Vec<u8>>,
    /// Why the bytes are repaired ones.
    pub(crate) repair: Option<String>,
}

pub(crate) struct SourcePage {
    pub(crate) id: ObjectId,
    pub(crate) geometry: PageGeometry,
    pub(crate) ending: ContentEnding,
    /// The decoded content, closed at its end, where readers may disagree about that end.
    pub(crate) closed: Option<Vec<u8>>,
    /// Annotations are drawn on top, and could hide additions.
    pub(crate) is_annotated: bool,
}

impl SourcePage {
    /// Returns whether additions to the page could be hidden.
    pub(crate) fn needs_look(&self) -> bool {
        self.closed.is_some() || self.is_annotated
    }
}

/// Refuses a document that needs a password.
pub(crate) fn refuse_encrypted(pdf: &[u8]) -> Result<()> {
    if memmem::find(pdf, b"/Encrypt").is_some() && holdfast_reader::is_encrypted(pdf) {
        Err(DocumentError::Encrypted)
    } else {
        Ok(())
    }
}

impl SourceDocument {
    /// Loads a document that will be written anew as a whole.
    ///
    /// Refuses signed input, because its signatures cover the original bytes.
    pub(crate) fn open_for_rewrite(pdf: &[u8]) -> Result<Self> {
        if is_signed(pdf) {
            return Err(unreadable(
                "it is signed, and would lose its signatures by being written anew",
            ));
        }
        Self::read(&Arc::new(pdf.to_vec()), StreamData::All)
    }

    /// Loads a document that will be written anew, with or without signatures.
    pub(crate) fn open_whole(pdf: &Arc<Vec<u8>>) -> Result<Self> {
        Self::read(pdf, StreamData::All)
    }

    /// Loads a document for an incremental update.
    pub(crate) fn open_for_update(pdf: &Arc<Vec<u8>>) -> Result<Self> {
        Self::read(pdf, StreamData::WithoutBulk)
    }

    fn read(pdf: &Arc<Vec<u8>>, wanted: StreamData) -> Result<Self> {
        if is_cut_short(pdf) {
            return Err(unreadable("a signature covers bytes behind its end"));
        }

        let reader = opened(pdf)?;
        let mut table = ObjectTable::read(&reader, wanted)?;
        if is_signed(pdf) {
            // The walk and the reader found the same pages, and its signatures cover the tree.
            table.repairs.retain(|repair| *repair != DAMAGED_TREE);
        }

        if table.repairs.is_empty() {
            let document = table.document;
            let pages = source_pages(&reader, table.pages)?;
            return Ok(Self {
                document,
                pages,
                bytes: Arc::clone(pdf),
                repair: None,
            });
        }

        // An update of such a file would be read differently by different readers. The repaired one is
        // written of what this reader found, and read again.
        let table = match wanted {
            StreamData::All => table,
            StreamData::WithoutBulk => ObjectTable::read(&reader, StreamData::All)?,
        };
        let repair = table.repairs.join("; ");

        let shown = ShownPages::of(pdf)?.arranged(&table.shown_as, &table.without_size);
        drop(reader);
        let target = OverlayTarget::Rewrite(Box::new(table.document));
        let bytes = Arc::new(target.save(pdf, "repaired")?);
        shown.confirm(Arc::clone(&bytes))?;

        // Of a page without a size the given file shows another part.
        let pairs = table.shown_as.iter().copied().zip(0..);
        let sized = pairs.filter(|(_, page)| !table.without_size.contains(page));
        compare_same(Arc::clone(pdf), Arc::clone(&bytes), sized)?;
        let reader = opened(&bytes)?;
        let table = ObjectTable::read(&reader, wanted)?;
        if let Some(left) = table.repairs.first() {
            return Err(unreadable(format!("it could not be repaired: {left}")));
        }

        let pages = source_pages(&reader, table.pages)?;
        Ok(Self {
            document: table.document,
            pages,
            bytes,
            repair: Some(repair),
        })
    }

    /// Returns whether the document had to be repaired: its bytes are not the given ones.
    pub(crate) fn needs_rewrite(&self) -> bool {
        self.repair.is_some()
    }

    pub(crate) fn certification_level(&self) -> Option<i64> {
        certification_level(&self.document)
    }

    /// Returns why a signed document that needs a repair is refused.
    pub(crate) fn signed_and_damaged(&self) -> DocumentError {
        let is_protected = self
            .repair
            .as_ref()
            .is_some_and(|why| why.contains(ENCRYPTED));
        unreadable(if is_protected {
            "it is signed and encrypted: removing its encryption would break the signatures"
        } else {
            "it is signed, and its structure is damaged: repairing it would break the signatures"
        })
    }
}

fn source_pages(reader: &PdfDocument, ids: Vec<ObjectId>) -> Result<Vec<SourcePage>> {
    let mut pages = Vec::with_capacity(ids.len());
    for (index, (id, page)) in ids
        .into_iter()
        .zip(reader.parsed().pages().iter())
        .enumerate()
    {
        let geometry = PageGeometry::of(page)
            .ok_or_else(|| unreadable(format!("page {} has no usable size", index + 1)))?;
        let content = reader.content(index).map_err(refusal)?;
        let ending = ContentEnding::of(&content.bytes);

        // Readers that draw the existing part of the picture, and those that draw nothing, both have reasons.
        if ending.is_inside_image {
            return Err(differs(index + 1, "a picture that does not end"));
        }

        // Those that skip it, and those that draw the operators in it.
        if ending.has_broken_dictionary {
            return Err(differs(index + 1, "content with a broken dictionary"));
        }

        let closed =
            (ending.is_unclear() || content.is_damaged).then(|| closed(content.bytes, &ending));
        pages.push(SourcePage {
            id,
            geometry,
            ending,
            closed,
            is_annotated: is_annotated(page),
        });
    }

    Ok(pages)
}

/// Returns whether a page has an annotation that stays on top of it: form fields become part of the page, apart
/// from signatures.
fn is_annotated(page: &Page<'_>) -> bool {
    let annotations = page.raw().get::<Array<'_>>("Annots");
    annotations.is_some_and(|annotations| {
        let mut found = annotations.iter::<Dict<'_>>();
        found.any(|annotation| {
            let is = |key, name| annotation.get::<Name<'_>>(key).as_deref() == Some(name);
            let is_flattened = is("Subtype", b"Widget".as_slice()) && !is("FT", b"Sig");
            // Signatures without a look have an appearance of no size.
            let place = annotation.get::<Rect>("Rect");
            let has_size = place.is_none_or(|place| place.x0 != place.x1 && place.y0 != place.y1);
            annotation.contains_key("AP") && has_size && !is_flattened
        })
    })
}

/// Ends content with its last operator, and closes the constructs that it leaves open.
fn closed(mut content: Vec<u8>, ending: &ContentEnding) -> Vec<u8> {
    content.truncate(ending.complete);
    if ending.is_inside_text {
        content.extend_from_slice(b"\nET");
    }
    content.push(b'\n');
    content.extend_from_slice(&b"EMC ".repeat(ending.open_marks.min(MAX_CLOSERS)));
    content.extend_from_slice(&b"Q ".repeat(ending.open_states.min(MAX_CLOSERS)));
    content
}

/// No viewer keeps more saved states. Such content is broken anyway, and the repair would be as large as the
/// damage.
pub(crate) const MAX_CLOSERS: usize = 512;

fn opened(pdf: &Arc<Vec<u8>>) -> Result<PdfDocument> {
    if pdf.is_empty() {
        return Err(unreadable("the file is empty"));
    }
    PdfDocument::open(Arc::clone(pdf)).map_err(refusal)
}

/// Returns the reader's refusal as one of this component.
pub(crate) fn refusal(error: ReadError) -> DocumentError {
    match error {
        ReadError::Unreadable(reason) => unreadable(reason),
        ReadError::Encrypted => DocumentError::Encrypted,
        ReadError::OverLimit(limit) => over_limit(limit.to_string()),
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

/// Follows references. Dangling and circular references resolve to null.
pub(crate) fn resolve_in<'a>(document: &'a Document, object: &'a Object) -> &'a Object {
    static NULL: Object = Object::Null;

    let mut object = object;
    // Bounded, because references of a hostile document can form a cycle.
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

/// Parses a document to draw its pages.
pub(crate) fn parse(pdf: &[u8]) -> Result<PdfDocument> {
    opened(&Arc::new(pdf.to_vec()))
}
