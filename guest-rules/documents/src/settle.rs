//! The document that is signed and kept: one that every reader reads alike.

use std::sync::Arc;

use holdfast_reader::{FlateState, PdfDocument};
use lopdf::{Dictionary, Document, Object};

use crate::error::{Result, unreadable};
use crate::read_back::{READS_DIFFERENTLY, ShownPages};
use crate::source::{LEFT_OUT, SourceDocument, dictionary, is_signed, refusal, resolve_in};
use crate::table::is_picture_or_typeface;
use crate::table::{ENCRYPTED, ObjectTable, StreamData};
use crate::target::OverlayTarget;
use crate::{RepairedDocument, SettledDocument, SourceWarning};

/// Checks an upload, repairs it where readers would disagree about it, and lists what signs something else
/// than it seems.
///
/// A signed document stays as it is: its signatures cover its bytes.
///
/// # Errors
///
/// `encrypted` for a document that needs a password; `unreadable` for one that cannot be repaired, or that
/// would show something else after the repair; `over-limit`.
pub fn settle(pdf: Vec<u8>) -> Result<SettledDocument> {
    let pdf = Arc::new(pdf);
    let source = SourceDocument::open_for_update(&pdf)?;
    let mut warnings = Vec::new();
    if let Some(reason) = &source.repair {
        // A repair would break the signatures, and without it readers would show different pages.
        if is_signed(&pdf) {
            return Err(source.signed_and_damaged());
        }

        let code = if reason.contains(ENCRYPTED) {
            "encryption_removed"
        } else {
            "document_repaired"
        };
        warnings.push(SourceWarning {
            code: code.to_owned(),
            message: format!("The document is written anew before it is used: {reason}"),
        });
    }

    // The warnings are about the repaired objects, because these are what the signer gets.
    warnings.extend(active_content(&source.document));
    if source.repair.is_some() {
        // Of a file that was cut or damaged, the pictures and typefaces are examined as well.
        let whole = SourceDocument::open_whole(&source.bytes)?;
        refuse_damaged_data(&whole.document, true)?;
    } else {
        refuse_damaged_data(&source.document, false)?;
    }

    // The limits of the reader hold for all later steps.
    ShownPages::of(&source.bytes)?;
    let SourceDocument { bytes, repair, .. } = source;
    let repaired = repair.map(|reason| RepairedDocument {
        pdf: Arc::unwrap_or_clone(bytes),
        reason,
    });

    Ok(SettledDocument { repaired, warnings })
}

/// Writes a protected document without its protection.
///
/// # Errors
///
/// `encrypted` for a wrong password; `unreadable` for a signed document, and for one that would show something
/// else; `over-limit`.
pub fn unlock(pdf: Vec<u8>, password: &str) -> Result<Vec<u8>> {
    if is_signed(&pdf) {
        return Err(unreadable(
            "it is signed and encrypted: removing its encryption would break the signatures",
        ));
    }

    let pdf = Arc::new(pdf);
    let reader = PdfDocument::open_with(Arc::clone(&pdf), password).map_err(refusal)?;
    let shown = ShownPages::of_reader(&reader)?;
    // The whole file is written anew, so the data of pictures and typefaces are needed, too.
    let table = ObjectTable::read(&reader, StreamData::All)?;

    let shown = shown.arranged(&table.shown_as, &table.without_size);
    let target = OverlayTarget::Rewrite(Box::new(table.document));
    let written = target.save(&pdf, "unlocked")?;
    shown.confirm(written.clone())?;

    Ok(written)
}

/// Refuses compressed data that cannot be decoded: each reader shows another part of them. In a repaired document
/// also pictures and typefaces that end early, which readers replace, each in its own way.
fn refuse_damaged_data(document: &Document, is_repaired: bool) -> Result<()> {
    for ((number, _), object) in &document.objects {
        let Object::Stream(stream) = object else {
            continue;
        };
        let Ok(filters) = stream.filters() else {
            continue;
        };

        let is_flate = |filter: &&&[u8]| matches!(**filter, b"FlateDecode" | b"Fl");
        // Below another filter the data cannot be examined without decoding that one first.
        let layers = filters.iter().take_while(is_flate).count();

        // No page shows them.
        let is_aside = [&b"Metadata"[..], b"EmbeddedFile"]
            .iter()
            .any(|kind| is_named(&stream.dict, b"Type", kind));
        let is_read = layers > 0 && !is_aside && !stream.dict.has(LEFT_OUT);
        if !is_read {
            continue;
        }

        let is_refused = match FlateState::of(&stream.content, layers) {
            FlateState::Whole => false,
            FlateState::Cut => is_repaired && is_picture_or_typeface(&stream.dict),
            FlateState::Damaged => true,
        };
        if is_refused {
            return Err(unreadable(format!(
                "{READS_DIFFERENTLY}: the compressed data of object {number} are damaged"
            )));
        }
    }

    Ok(())
}

/// Lists parts that may show something else than the signed pages, with one warning of each kind.
fn active_content(document: &Document) -> Vec<SourceWarning> {
    let mut found = Vec::new();
    let mut warn = |code: &str, message: &str| {
        found.push(SourceWarning {
            code: code.to_owned(),
            message: message.to_owned(),
        });
    };

    let Ok(catalog) = document.catalog() else {
        return found;
    };

    let entry = |owner: &Dictionary, key: &[u8]| {
        let entry = owner.get(key).ok();
        entry.and_then(|entry| dictionary(document, entry)).cloned()
    };

    // A program with XFA shows the form in place of the pages. The signing page shows the pages.
    if let Some(form) = entry(catalog, b"AcroForm")
        && form.has(b"XFA")
    {
        let needs_rendering = catalog
            .get(b"NeedsRendering")
            .is_ok_and(|entry| *resolve_in(document, entry) == Object::Boolean(true));
        if needs_rendering {
            warn(
                "dynamic_xfa",
                "The pages are only a placeholder: the contract is in an XFA form, which is not signed. Print it to a PDF and send that",
            )
        } else {
            warn(
                "xfa_form",
                "The document has an XFA form beside its pages; only the pages are signed",
            )
        }
    }

    // Viewers open the files of a portfolio and may never show its pages.
    if catalog.has(b"Collection") {
        warn(
            "portfolio",
            "The document is a portfolio: only its cover pages are signed, not the files in it",
        );
    }

    let names = entry(catalog, b"Names").unwrap_or_default();
    if has_any(document, &[&names], b"EmbeddedFiles") || has_kind(document, b"FileAttachment") {
        warn(
            "embedded_files",
            "The document has other files in it; only the pages are signed",
        );
    }

    if has_any(document, &[&names], b"JavaScript") || has_action(document, b"JavaScript") {
        warn(
            "javascript",
            "The document has scripts, which may change what other programs show",
        );
    }

    if has_action(document, b"Launch") {
        warn(
            "launch_action",
            "The document has actions that start programs",
        );
    }

    // Both carry data across the border of the document: one sends them, the other replaces them.
    if has_action(document, b"SubmitForm") || has_action(document, b"ImportData") {
        warn(
            "submit_action",
            "The document has actions that send or fetch the data of its form",
        );
    }

    if catalog.has(b"OpenAction") && has_action_at(document, catalog, b"OpenAction") {
        warn(
            "open_action",
            "The document does something by itself when it is opened",
        );
    }

    if layers_differ(document, catalog) {
        warn(
            "layers_differ",
            "The document has layers that show on screen and in print differently",
        );
    }

    found
}

fn has_any(document: &Document, owners: &[&Dictionary], key: &[u8]) -> bool {
    owners.iter().any(|owner| {
        let entry = owner.get(key).map(|entry| resolve_in(document, entry));
        entry.is_ok_and(|entry| *entry != Object::Null)
    })
}

fn dictionaries(document: &Document) -> impl Iterator<Item = &Dictionary> {
    document.objects.values().flat_map(nested)
}

/// Returns the dictionaries in an object, itself included.
fn nested(object: &Object) -> Vec<&Dictionary> {
    let mut found = Vec::new();
    let mut open = vec![object];
    while let Some(object) = open.pop() {
        match object {
            Object::Dictionary(entries) => {
                found.push(entries);
                open.extend(entries.iter().map(|(_, entry)| entry));
            }
            Object::Stream(stream) => {
                found.push(&stream.dict);
                open.extend(stream.dict.iter().map(|(_, entry)| entry));
            }
            Object::Array(items) => open.extend(items),
            _ => {}
        }
    }

    found
}

fn is_named(entries: &Dictionary, key: &[u8], name: &[u8]) -> bool {
    let entry = entries.get(key).and_then(Object::as_name);
    entry.is_ok_and(|found| found == name)
}

/// Returns whether an action of this type occurs (ISO 32000-1, table 198).
fn has_action(document: &Document, kind: &[u8]) -> bool {
    dictionaries(document).any(|entries| {
        // All dictionaries are searched and not only the known places:
        // readers differ in where they look for actions.
        let found = entries.get(b"S").map(|entry| resolve_in(document, entry));
        let is_kind = found.is_ok_and(|found| *found == Object::Name(kind.to_vec()));
        is_kind || (kind == b"JavaScript" && entries.has(b"JS"))
    })
}

fn has_kind(document: &Document, subtype: &[u8]) -> bool {
    dictionaries(document).any(|entries| is_named(entries, b"Subtype", subtype))
}

/// Returns whether an entry is an action that does more than to show a page.
fn has_action_at(document: &Document, owner: &Dictionary, key: &[u8]) -> bool {
    let action = owner
        .get(key)
        .ok()
        .and_then(|entry| dictionary(document, entry));
    action.is_some_and(|action| !is_named(action, b"S", b"GoTo"))
}

/// Returns whether a layer is switched by printing (ISO 32000-1, 8.11.4.4).
fn layers_differ(document: &Document, catalog: &Dictionary) -> bool {
    let properties = catalog.get(b"OCProperties").ok();
    let Some(properties) = properties.and_then(|entry| dictionary(document, entry)) else {
        return false;
    };

    let groups = properties
        .get(b"OCGs")
        .map(|list| resolve_in(document, list));
    let Ok(Object::Array(groups)) = groups else {
        return false;
    };

    let state = |group: &Dictionary, event: &[u8], key: &[u8]| {
        let usage = dictionary(document, group.get(b"Usage").ok()?)?;
        let usage = dictionary(document, usage.get(event).ok()?)?;
        Some(usage.get(key).ok()?.as_name().ok()? == b"ON")
    };
    groups
        .iter()
        .filter_map(|group| dictionary(document, group))
        .any(|group| {
            // A layer without a state for the screen is visible there.
            let printed = state(group, b"Print", b"PrintState");
            let viewed = state(group, b"View", b"ViewState");
            printed.is_some() && printed != viewed.or(Some(true))
        })
}
