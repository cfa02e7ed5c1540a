//! Validation data and time stamps behind a seal, as incremental updates (PAdES, ETSI EN 319 142-1, 5.4 and 5.5;
//! ISO 32000-2, 12.8.4 and 12.8.5).
//!
//! The host fetches certificates, lists and answers, and it asks for the time stamp: this component only writes them
//! and reads them.

use std::sync::Arc;

use lopdf::{Dictionary, Document, LoadOptions, Object, Stream};
use sha2::{Digest as _, Sha256};

use crate::error::{Result, other, over_limit, unreadable};
use crate::seal::{MAX_SIGNATURE_BYTES, add_invisible_field, catalog_of, empty_signature, locate};
use crate::source::{
    MAX_STREAM_BYTES, SourceDocument, dictionary, is_signed, refuse_encrypted, resolve_in,
};
use crate::target::OverlayTarget;
use crate::updating::CheckedUpdates;
use crate::{DocumentExtension, ExtensionRequest, SignatureData, ValidationData};

/// Limits on the validation data that are read: entries of each kind, and bytes of all together.
const MAX_ENTRIES: usize = 256;
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// Keys of the streams in the store of a document.
const CERTIFICATES: &str = "Certs";
const LISTS: &str = "CRLs";
const ANSWERS: &str = "OCSPs";

/// Adds validation data and an empty space for a time stamp over the document.
///
/// # Errors
///
/// `encrypted`, `unreadable` and `over-limit` for the document and the size of the time stamp, `other` for a malformed
/// name of a signature.
pub fn extend(pdf: Vec<u8>, request: &ExtensionRequest) -> Result<DocumentExtension> {
    let data = request.data.as_ref();
    if data.is_some_and(|data| !is_name(&data.signature)) {
        return Err(other("the name of the signature is no SHA-1"));
    }
    let size = request.time_stamp_bytes;
    if size.is_some_and(|size| !(1..=MAX_SIGNATURE_BYTES).contains(&size)) {
        return Err(over_limit(format!(
            "{MAX_SIGNATURE_BYTES} bytes of time stamp"
        )));
    }

    let pdf = Arc::new(pdf);
    let source = SourceDocument::open_for_update(&pdf)?;
    if source.needs_rewrite() {
        return Err(unreadable("it has to be rewritten before it is extended"));
    }

    let length = pdf.len();
    let mut updates = CheckedUpdates::of(pdf, source)?;
    let (mut appended, looks) = updates.append(&purpose(request), |target, pages| {
        if let Some(data) = data {
            store(target, data)?;
        }
        // Last, because the space for the time stamp is found from the end.
        if let Some(size) = size {
            let first = pages.first().ok_or_else(|| unreadable("no page"))?;
            let stamp = empty_signature("DocTimeStamp", "ETSI.RFC3161", size);
            add_invisible_field(target, first.id, &format!("Time-{length}"), stamp)?;
        }
        Ok(Vec::new())
    })?;

    let place = match size {
        Some(size) => {
            let place = locate(&mut appended, length, size as usize)?;
            Some((place.start as u64, place.end as u64))
        }
        None => None,
    };
    updates.confirm(&appended, &looks)?;

    Ok(DocumentExtension { appended, place })
}

/// Whether a text is a name of a signature: 40 upper-case hexadecimal digits.
fn is_name(text: &str) -> bool {
    let is_digit = |digit: u8| digit.is_ascii_digit() || (b'A'..=b'F').contains(&digit);
    text.len() == 40 && text.bytes().all(is_digit)
}

/// Returns a text that differs for different requests.
fn purpose(request: &ExtensionRequest) -> String {
    let mut digest = Sha256::new();
    if let Some(SignatureData { data, signature }) = &request.data {
        digest.update(signature);
        for list in [&data.certificates, &data.crls, &data.ocsps] {
            digest.update(list.len().to_be_bytes());
            for item in list {
                digest.update(item.len().to_be_bytes());
                digest.update(item);
            }
        }
    }

    format!("{:?} {:?}", digest.finalize(), request.time_stamp_bytes)
}

/// Adds validation data to the store of the document, which is created if there is none.
fn store(target: &mut OverlayTarget, added: &SignatureData) -> Result<()> {
    let catalog = catalog_of(target)?;
    let known = target
        .dictionary(catalog)
        .and_then(|catalog| catalog.get(b"DSS").ok())
        .cloned();
    let (id, mut entries) = match &known {
        Some(known) => {
            let (id, known) = target.trace(known);
            (id, known.as_dict().cloned().unwrap_or_default())
        }
        None => (None, Dictionary::new()),
    };

    let mut of_signature = Dictionary::new();
    of_signature.set("Type", "VRI");
    for (key, key_of_signature, streams) in [
        (CERTIFICATES, "Cert", &added.data.certificates),
        (LISTS, "CRL", &added.data.crls),
        (ANSWERS, "OCSP", &added.data.ocsps),
    ] {
        if streams.is_empty() {
            continue;
        }

        let mut all = array(target, &entries, key);
        let mut own = Vec::new();
        for bytes in streams {
            let stream = target.add(Stream::new(Dictionary::new(), bytes.clone()))?;
            own.push(Object::Reference(stream));
        }

        all.extend(own.iter().cloned());
        entries.set(key, Object::Array(all));
        of_signature.set(key_of_signature, Object::Array(own));
    }

    // Entries of other signatures stay as they are: a changed one would count as a manipulation.
    let signatures = entries.get(b"VRI").ok().map(|known| target.resolve(known));
    let signatures = signatures.and_then(|known| known.as_dict().ok());
    let mut signatures = signatures.cloned().unwrap_or_default();
    signatures.set(added.signature.as_str(), Object::Dictionary(of_signature));
    entries.set("VRI", Object::Dictionary(signatures));
    entries.set("Type", "DSS");

    // A store of its own number keeps it, so that a reader recognizes it in the later revision.
    match id.filter(|id| target.dictionary(*id).is_some()) {
        Some(id) => *target.edit(id)? = entries,
        None => {
            let id = target.add(entries)?;
            target.edit(catalog)?.set("DSS", id);
        }
    }
    Ok(())
}

/// Returns the items of an array of the store.
fn array(target: &OverlayTarget, entries: &Dictionary, key: &str) -> Vec<Object> {
    let known = entries.get(key.as_bytes()).ok();
    match known.map(|known| target.resolve(known)) {
        Some(Object::Array(items)) => items.clone(),
        _ => Vec::new(),
    }
}

/// Returns the validation data that a document has.
///
/// # Errors
///
/// `encrypted` and `unreadable` for the document.
pub fn validation_data_of(pdf: &[u8]) -> Result<ValidationData> {
    let mut found = ValidationData {
        certificates: Vec::new(),
        crls: Vec::new(),
        ocsps: Vec::new(),
    };
    if !is_signed(pdf) {
        return Ok(found);
    }

    refuse_encrypted(pdf)?;
    let options = LoadOptions::with_max_decompressed_size(MAX_STREAM_BYTES);
    let document = Document::load_mem_with_options(pdf, options)?;
    let store = document
        .catalog()
        .ok()
        .and_then(|catalog| dictionary(&document, catalog.get(b"DSS").ok()?));
    let Some(store) = store else {
        return Ok(found);
    };

    let mut room = MAX_BYTES;
    for (key, list) in [
        (CERTIFICATES, &mut found.certificates),
        (LISTS, &mut found.crls),
        (ANSWERS, &mut found.ocsps),
    ] {
        *list = streams(&document, store, key, &mut room);
    }

    Ok(found)
}

/// Reads the streams of an array of the store. Those beyond the limits, or that cannot be read, are left out: they prove
/// nothing.
fn streams(document: &Document, store: &Dictionary, key: &str, room: &mut usize) -> Vec<Vec<u8>> {
    let items = store.get(key.as_bytes()).ok();
    let Some(Object::Array(items)) = items.map(|items| resolve_in(document, items)) else {
        return Vec::new();
    };

    let mut read = Vec::new();
    for item in items.iter().take(MAX_ENTRIES) {
        let Object::Stream(stream) = resolve_in(document, item) else {
            continue;
        };
        let Ok(bytes) = stream.get_plain_content_with_limit(*room) else {
            continue;
        };

        *room -= bytes.len();
        read.push(bytes);
    }

    read
}
