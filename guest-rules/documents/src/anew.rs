//! Copies as files of their own.
//!
//! A mark that is appended to a document comes off by cutting the file where the document ended. A copy is
//! therefore written anew as one revision. The content of each page and the mark on it share one stream, and the
//! catalog, without which no reader finds the pages, is the last object of the file.

use std::sync::Arc;

use lopdf::{Dictionary, Document, Object, ObjectId, Stream};

use crate::SignatureHandling;
use crate::error::{Result, unreadable};
use crate::fill::write_values;
use crate::read_back::ShownPages;
use crate::signatures::has_signature;
use crate::source::{MAX_STREAM_BYTES, SourceDocument, SourcePage};
use crate::target::OverlayTarget;

/// Entries of the trailer that a file of one revision has. Others describe the file it was read from.
const TRAILER: [&[u8]; 3] = [b"Root", b"Info", b"ID"];

/// Entries of a page that show it as it was before the mark, for programs that do not draw it.
const STALE: [&[u8]; 2] = [b"Thumb", b"PieceInfo"];

/// Writes a marked document anew: one revision, and one content stream for each page. A stream in
/// an encoding that is unknown here stays apart, as it is.
///
/// Returns none for a document that has signatures, if they are to be kept: they cover its bytes.
///
/// # Errors
///
/// `encrypted`, `unreadable` and `over-limit` for the document, also for one with pages that do not survive.
pub fn write_anew(pdf: Vec<u8>, signatures: SignatureHandling) -> Result<Option<Vec<u8>>> {
    let pdf = Arc::new(pdf);
    let SourceDocument {
        document,
        pages,
        bytes,
        ..
    } = SourceDocument::open_whole(&pdf)?;
    let is_signed = has_signature(&document);
    if is_signed && signatures == SignatureHandling::Keep {
        return Ok(None);
    }

    let mut target = OverlayTarget::Rewrite(Box::new(document));
    if is_signed {
        // Paints the content that the form shows, and removes the form with its signatures.
        write_values(&mut target, &pages, &[], &bytes)?;
        remove_validation_data(&mut target)?;
    }

    for page in &pages {
        join_content(&mut target, page)?;
        let page = target.edit(page.id)?;
        for entry in STALE {
            page.remove(entry);
        }
    }

    let document = target.document_mut();
    keep_own_entries(&mut document.trailer);

    // Objects that only earlier revisions and the old content streams used.
    document.prune_objects();
    move_catalog_to_the_end(document)?;

    let written = target.save(&pdf, "written anew")?;
    ShownPages::of(&bytes)?.confirm(written.clone())?;
    Ok(Some(written))
}

/// Removes the certificates and revocation lists of signatures that are gone.
fn remove_validation_data(target: &mut OverlayTarget) -> Result<()> {
    let root = target.document().trailer.get(b"Root");
    if let Ok(root) = root.and_then(Object::as_reference) {
        target.edit(root)?.remove(b"DSS");
    }
    Ok(())
}

/// Puts the content of a page into one stream.
fn join_content(target: &mut OverlayTarget, page: &SourcePage) -> Result<()> {
    let contents = target.dictionary(page.id);
    let contents = contents.and_then(|page| page.get(b"Contents").ok());
    let parts: Vec<Object> = match contents.map(|contents| target.resolve(contents)) {
        Some(Object::Array(parts)) => parts.clone(),
        // A single stream is one already, and a page without content has none.
        _ => return Ok(()),
    };

    let mut joined = Vec::new();
    for part in &parts {
        let Object::Stream(stream) = target.resolve(part) else {
            // Readers skip it, too.
            continue;
        };

        let room = MAX_STREAM_BYTES.saturating_sub(joined.len());
        let Some(content) = plain(target, stream, room) else {
            return Ok(());
        };

        joined.extend_from_slice(&content);

        // Content is split between tokens, so a separator changes nothing.
        joined.push(b'\n');
    }

    let mut stream = Stream::new(Dictionary::new(), joined);
    stream.compress()?;
    let stream = target.add(stream)?;
    target.edit(page.id)?.set("Contents", stream);

    Ok(())
}

/// Decodes a content stream; none if its encoding is unknown or damaged, or refers to other objects.
fn plain(target: &OverlayTarget, stream: &Stream, room: usize) -> Option<Vec<u8>> {
    let is_direct = |key: &[u8]| {
        let entry = stream.dict.get(key);
        entry.is_err() || entry.is_ok_and(holds_no_reference)
    };

    // The data of a stream with `F` are in another file.
    if stream.dict.has(b"F") || !is_direct(b"Filter") || !is_direct(b"DecodeParms") {
        let resolved = resolved_filters(target, stream)?;
        return resolved.get_plain_content_with_limit(room).ok();
    }

    stream.get_plain_content_with_limit(room).ok()
}

fn holds_no_reference(object: &Object) -> bool {
    match object {
        Object::Reference(_) => false,
        Object::Array(items) => items.iter().all(holds_no_reference),
        Object::Dictionary(entries) => entries.iter().all(|(_, entry)| holds_no_reference(entry)),
        _ => true,
    }
}

/// Copies a stream with its filters in place of references to them; none for data in another file.
fn resolved_filters(target: &OverlayTarget, stream: &Stream) -> Option<Stream> {
    if stream.dict.has(b"F") {
        return None;
    }

    let mut copy = stream.clone();
    for key in [&b"Filter"[..], b"DecodeParms"] {
        let Ok(entry) = stream.dict.get(key) else {
            continue;
        };

        let entry = match target.resolve(entry) {
            Object::Array(items) => Object::Array(
                items
                    .iter()
                    .map(|item| target.resolve(item).clone())
                    .collect(),
            ),
            plain => plain.clone(),
        };

        // Parameters that lead to further objects are those of picture formats, and no text is encoded so.
        if !holds_no_reference(&entry) {
            return None;
        }

        copy.dict.set(key, entry);
    }

    Some(copy)
}

fn keep_own_entries(trailer: &mut Dictionary) {
    let others: Vec<Vec<u8>> = trailer
        .iter()
        .map(|(key, _)| key.clone())
        .filter(|key| !TRAILER.contains(&key.as_slice()))
        .collect();
    for key in others {
        trailer.remove(&key);
    }
}

/// Gives the catalog the highest number, because objects are written in the order of their numbers: a part of
/// the file that lacks its end has no catalog. A program that repairs the part finds no pages by it.
fn move_catalog_to_the_end(document: &mut Document) -> Result<()> {
    let no_catalog = || unreadable("the document has no catalog");
    let old: ObjectId = document
        .trailer
        .get(b"Root")
        .and_then(Object::as_reference)
        .map_err(|_| no_catalog())?;
    let catalog = document.objects.remove(&old).ok_or_else(no_catalog)?;
    let new = document.try_add_object(catalog)?;
    document.trailer.set("Root", new);

    // Hardly any document refers to its catalog from elsewhere; a reader would follow such a reference.
    for object in document.objects.values_mut() {
        replace(object, old, new);
    }

    Ok(())
}

fn replace(object: &mut Object, old: ObjectId, new: ObjectId) {
    match object {
        Object::Reference(id) if *id == old => *id = new,
        Object::Array(items) => {
            for item in items {
                replace(item, old, new);
            }
        }
        Object::Dictionary(entries) => replace_in(entries, old, new),
        Object::Stream(stream) => replace_in(&mut stream.dict, old, new),
        _ => {}
    }
}

fn replace_in(entries: &mut Dictionary, old: ObjectId, new: ObjectId) {
    for (_, entry) in entries.iter_mut() {
        replace(entry, old, new);
    }
}
