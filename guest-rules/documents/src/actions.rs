//! Removing the actions that a document runs by itself.

use lopdf::{Dictionary, Document, Object};

use crate::error::{Result, unreadable};
use crate::read_back::ShownPages;
use crate::source::{SourceDocument, is_signed, resolve_in};
use crate::target::OverlayTarget;

/// Types of actions that do more than to show something (ISO 32000-1, table 198).
pub(crate) const ACTING: [&[u8]; 4] = [b"JavaScript", b"Launch", b"SubmitForm", b"ImportData"];

/// Entries with actions of a document, page, annotation or form field (ISO 32000-1, 12.6).
const HOLDERS: [&[u8]; 5] = [b"A", b"AA", b"Next", b"PA", b"NA"];

/// Removes scripts, and actions that start programs, send or fetch data, or happen when the document is opened.
/// Returns none for a document without them.
///
/// # Errors
///
/// `encrypted`, `unreadable` and `over-limit` for the document; `unreadable` also for a signed one.
pub fn without_actions(pdf: &[u8]) -> Result<Option<Vec<u8>>> {
    if is_signed(pdf) {
        return Err(unreadable(
            "it is signed, and removing its scripts would break the signatures",
        ));
    }

    let SourceDocument {
        mut document,
        bytes,
        ..
    } = SourceDocument::open_for_rewrite(pdf)?;
    // Without a change the caller keeps the uploaded bytes, and their hash stays the one in the ledger.
    if !remove_actions(&mut document) {
        return Ok(None);
    }

    // The pages must not depend on the removed actions: the signer saw them without any script.
    let shown = ShownPages::of(&bytes)?;

    // The removed actions are in no object any more.
    document.prune_objects();
    let written = OverlayTarget::Rewrite(Box::new(document)).save(pdf, "inert")?;
    shown.confirm(written.clone())?;

    Ok(Some(written))
}

/// Returns whether there was one.
fn remove_actions(document: &mut Document) -> bool {
    let mut found = remove_at_opening(document);
    let held: Vec<_> = document.objects.keys().copied().collect();
    for id in held {
        let Some(object) = document.objects.get(&id) else {
            continue;
        };

        // A copy changes, because the search for actions follows references through the whole document.
        let mut changed = object.clone();
        if remove_in(document, &mut changed) {
            document.objects.insert(id, changed);
            found = true;
        }
    }

    found
}

/// Removes the actions that run when the document is opened, and its named scripts.
fn remove_at_opening(document: &mut Document) -> bool {
    let Ok(catalog) = document.catalog() else {
        return false;
    };

    let opening = catalog
        .get(b"OpenAction")
        .map(|entry| resolve_in(document, entry));
    let acts = opening.is_ok_and(|action| {
        // A destination, or an action that goes to one, only shows a page.
        action.as_dict().is_ok_and(|action| {
            let kind = action.get(b"S").map(|kind| resolve_in(document, kind));
            let is_going = kind.is_ok_and(|kind| *kind == Object::Name(b"GoTo".to_vec()));
            !is_going || action.has(b"Next")
        })
    });

    let names = catalog.get(b"Names").and_then(Object::as_reference);

    // `Names` is an object of its own in some documents and a direct entry of the catalog in others.
    let mut found = acts;
    if acts && let Ok(catalog) = document.catalog_mut() {
        catalog.remove(b"OpenAction");
    }

    if let Ok(names) = names
        && let Ok(names) = document.get_dictionary_mut(names)
    {
        found |= names.remove(b"JavaScript").is_some();
    }

    if let Ok(catalog) = document.catalog_mut()
        && let Ok(Object::Dictionary(names)) = catalog.get_mut(b"Names")
    {
        found |= names.remove(b"JavaScript").is_some();
    }

    found
}

/// Removes actions from an object and everything directly in it.
fn remove_in(document: &Document, object: &mut Object) -> bool {
    let entries = match object {
        Object::Dictionary(entries) => entries,
        Object::Stream(stream) => &mut stream.dict,
        Object::Array(items) => {
            let mut found = false;
            for item in items {
                found |= remove_in(document, item);
            }
            return found;
        }
        _ => return false,
    };

    let mut found = false;
    for key in HOLDERS {
        let holds = entries.get(key).is_ok_and(|held| acts(document, held));
        if holds {
            entries.remove(key);
            found = true;
        }
    }

    // Only direct entries are visited here. The caller visits every object that a reference leads to.
    for (_, entry) in entries.iter_mut() {
        found |= remove_in(document, entry);
    }

    found
}

/// Returns whether an action acts, or one that follows it, or one of a dictionary of actions.
fn acts(document: &Document, action: &Object) -> bool {
    /// More than any document has in one place. If there are more, the action counts as acting.
    const MOST: usize = 2_000;

    let mut open = vec![action];
    let mut seen = 0;
    while let Some(action) = open.pop() {
        seen += 1;
        if seen > MOST {
            return true;
        }

        match resolve_in(document, action) {
            Object::Array(actions) => open.extend(actions),
            Object::Dictionary(entries) => {
                if is_acting(document, entries) {
                    return true;
                }

                // A dictionary without a type, such as `AA`, has one action for each event.
                if entries.has(b"S") {
                    open.extend(entries.get(b"Next"));
                } else {
                    open.extend(entries.iter().map(|(_, entry)| entry));
                }
            }
            _ => {}
        }
    }

    false
}

/// Returns whether a dictionary is an action of an acting type, or has a script.
pub(crate) fn is_acting(document: &Document, entries: &Dictionary) -> bool {
    let kind = entries.get(b"S").map(|kind| resolve_in(document, kind));
    let kind = kind.ok().and_then(|kind| kind.as_name().ok());
    kind.is_some_and(|kind| ACTING.contains(&kind)) || entries.has(b"JS")
}
