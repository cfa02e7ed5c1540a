//! Reserving space for a signature, as an incremental update.
//!
//! The host makes the signature, as it holds the key: this component only prepares the bytes to
//! sign and reports the position of the signature (PAdES, ETSI EN 319 142-1; ISO 32000-1, 12.8.1).

use std::ops::Range;
use std::sync::Arc;

use lopdf::{Dictionary, Object, ObjectId, Stream, StringFormat, text_string};

use crate::error::{Result, other, over_limit, unreadable};
use crate::moment::CalendarTime;
use crate::source::{SourceDocument, SourcePage};
use crate::target::OverlayTarget;
use crate::updating::CheckedUpdates;
use crate::{SealRequest, SealSpace};

/// Limit on the bytes of a signature with its certificates and time stamp.
pub(crate) const MAX_SIGNATURE_BYTES: u32 = 64 * 1024;

/// Placeholder for a number of the byte range until the length of the file is known: ten digits,
/// the widest number in a PDF that this component writes.
const PLACEHOLDER: usize = 1_234_567_890;

/// Appends an invisible signature field with an empty space for the signature.
///
/// The bytes of the document stay unchanged, so a document that needs a repair is refused: marking
/// has already rewritten such a document.
///
/// # Errors
///
/// `encrypted`, `unreadable` and `over-limit` for the document and the size of the signature,
/// `other` for a malformed time.
pub fn prepare_seal(pdf: Vec<u8>, request: &SealRequest) -> Result<SealSpace> {
    let seal = CheckedSeal::new(request)?;
    let pdf = Arc::new(pdf);
    let source = SourceDocument::open_for_update(&pdf)?;
    if source.needs_rewrite() {
        return Err(unreadable("it has to be rewritten before it is sealed"));
    }

    let length = pdf.len();
    let mut updates = CheckedUpdates::of(pdf, source)?;
    let (update, looks) = updates.append(&format!("{request:?}"), |target, pages| {
        seal.add_field(target, pages, length)?;
        Ok(Vec::new())
    })?;
    // The byte range is written before the update is read back, so the checked bytes are the signed ones.
    let space = seal.space(update, length)?;
    updates.confirm(&space.appended, &looks)?;

    Ok(space)
}

/// A request for a seal that can be met.
pub(crate) struct CheckedSeal<'a> {
    request: &'a SealRequest,
    at: CalendarTime,
}

impl<'a> CheckedSeal<'a> {
    pub(crate) fn new(request: &'a SealRequest) -> Result<Self> {
        let at = CalendarTime::parse(&request.signed_at, "signed-at")?;
        if !(1..=MAX_SIGNATURE_BYTES).contains(&request.signature_bytes) {
            return Err(over_limit(format!(
                "{MAX_SIGNATURE_BYTES} bytes of signature"
            )));
        }
        Ok(Self { request, at })
    }

    /// Adds an invisible signature field with an empty signature to a document of `length` bytes.
    pub(crate) fn add_field(
        &self,
        target: &mut OverlayTarget,
        pages: &[SourcePage],
        length: usize,
    ) -> Result<()> {
        let first = pages.first().ok_or_else(|| unreadable("no page"))?;
        add_field(target, first.id, length, &self.at, self.request)
    }

    /// Finds the space for the signature in an update of a document of `length` bytes.
    pub(crate) fn space(&self, mut update: Vec<u8>, length: usize) -> Result<SealSpace> {
        let size = self.request.signature_bytes as usize;
        let place = locate(&mut update, length, size)?;
        Ok(SealSpace {
            appended: update,
            place_start: place.start as u64,
            place_end: place.end as u64,
        })
    }
}

fn add_field(
    target: &mut OverlayTarget,
    page: ObjectId,
    length: usize,
    at: &CalendarTime,
    request: &SealRequest,
) -> Result<()> {
    let mut signature = empty_signature("Sig", "ETSI.CAdES.detached", request.signature_bytes);
    signature.set("M", Object::string_literal(at.in_pdf()));
    signature.set("Name", text_string(&request.name));
    signature.set("Reason", text_string(&request.reason));

    // No earlier seal was made at this length, so the name is unique in the document.
    add_invisible_field(target, page, &format!("Seal-{length}"), signature)
}

/// Makes a signature whose byte range and contents are still to be written.
pub(crate) fn empty_signature(kind: &str, format: &str, bytes: u32) -> Dictionary {
    let mut signature = Dictionary::new();
    signature.set("Type", kind);
    signature.set("Filter", "Adobe.PPKLite");
    signature.set("SubFilter", format);
    // The first range begins with the file: a signature over a part would protect only that part.
    let placeholder = Object::Integer(PLACEHOLDER as i64);
    let mut range = vec![placeholder; 4];
    range[0] = Object::Integer(0);

    signature.set("ByteRange", range);
    let empty = vec![0; bytes as usize];
    signature.set("Contents", Object::String(empty, StringFormat::Hexadecimal));
    signature
}

/// Adds an invisible field with a signature to a page and to the form.
pub(crate) fn add_invisible_field(
    target: &mut OverlayTarget,
    page: ObjectId,
    name: &str,
    signature: Dictionary,
) -> Result<()> {
    let signature = target.add(signature)?;

    let mut looks = Dictionary::new();
    looks.set("Type", "XObject");
    looks.set("Subtype", "Form");
    looks.set("BBox", vec![0.into(), 0.into(), 0.into(), 0.into()]);
    let looks = target.add(Stream::new(looks, Vec::new()))?;
    let mut appearance = Dictionary::new();
    appearance.set("N", looks);

    let mut widget = Dictionary::new();
    widget.set("Type", "Annot");
    widget.set("Subtype", "Widget");
    widget.set("FT", "Sig");
    widget.set("T", Object::string_literal(name));
    widget.set("Rect", vec![0.into(), 0.into(), 0.into(), 0.into()]);

    // Annotation flags Print and Locked: the invisible field cannot be moved or deleted.
    widget.set("F", 132);
    widget.set("P", page);
    widget.set("V", signature);
    widget.set("AP", appearance);
    let widget = target.add(widget)?;

    append(target, page, b"Annots", widget)?;
    enter_in_form(target, widget)
}

/// Appends a reference to an array of a dictionary, which may itself be a reference.
fn append(target: &mut OverlayTarget, owner: ObjectId, key: &[u8], item: ObjectId) -> Result<()> {
    // The list may be an object that other pages share. The owner gets a list of its own.
    let dictionary = target.dictionary(owner);
    let existing = dictionary.and_then(|dictionary| dictionary.get(key).ok());
    let mut items = match existing.map(|existing| target.resolve(existing)) {
        Some(Object::Array(items)) => items.clone(),
        _ => Vec::new(),
    };
    items.push(Object::Reference(item));

    target.edit(owner)?.set(key.to_vec(), Object::Array(items));
    Ok(())
}

/// Adds the field to the document's form, which is created if there is none (ISO 32000-1, 12.7.2).
fn enter_in_form(target: &mut OverlayTarget, widget: ObjectId) -> Result<()> {
    let catalog = catalog_of(target)?;
    let form = target
        .dictionary(catalog)
        .and_then(|catalog| catalog.get(b"AcroForm").ok())
        .cloned();
    let (id, entries) = match &form {
        Some(form) => {
            let (id, form) = target.trace(form);
            (id, form.as_dict().cloned().unwrap_or_default())
        }
        None => (None, Dictionary::new()),
    };
    // An update replaces whole objects, so a form inside the catalog moves to an object of its own.
    let id = match id {
        Some(id) if target.dictionary(id).is_some() => id,
        _ => {
            let id = target.add(entries)?;
            target.edit(catalog)?.set("AcroForm", id);
            id
        }
    };

    append(target, id, b"Fields", widget)?;

    // SignaturesExist and AppendOnly: viewers must save changes as incremental updates.
    target.edit(id)?.set("SigFlags", 3);
    Ok(())
}

/// Returns the id of the catalog.
pub(crate) fn catalog_of(target: &OverlayTarget) -> Result<ObjectId> {
    match target.document().trailer.get(b"Root") {
        Ok(Object::Reference(id)) => Ok(*id),
        _ => Err(unreadable("the document has no catalog")),
    }
}

/// Finds the empty space in the update appended after `length` bytes, and writes the byte range
/// around it. Returns the position of the space in the whole document.
///
/// New objects follow the changed ones, which hold content from the upload and may imitate a
/// placeholder. The last match is therefore the real one.
pub(crate) fn locate(
    appended: &mut [u8],
    length: usize,
    signature_bytes: usize,
) -> Result<Range<usize>> {
    let lost = || other("the place of the signature was lost");
    let hexadecimal = [&b"<"[..], &vec![b'0'; 2 * signature_bytes], b">"].concat();
    let start = length + find_last(appended, &hexadecimal).ok_or_else(lost)?;
    let end = start + hexadecimal.len();
    let placeholder = byte_range([PLACEHOLDER; 3]);
    let written = byte_range([start, end, length + appended.len() - end]);
    // A longer number would shift the bytes that it describes.
    if written.len() != placeholder.len() {
        return Err(over_limit("10 digits of file length"));
    }

    let at = find_last(appended, placeholder.as_bytes()).ok_or_else(lost)?;
    appended[at..at + written.len()].copy_from_slice(written.as_bytes());
    Ok(start..end)
}

/// Formats the entry as lopdf writes it, each number padded to ten digits.
fn byte_range([start, end, rest]: [usize; 3]) -> String {
    format!("/ByteRange[0 {start:<10} {end:<10} {rest:<10}]")
}

fn find_last(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .rposition(|window| window == wanted)
}
