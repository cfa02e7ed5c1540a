//! Comparison of two revisions of a document: the weightiest change in the later one.

use std::collections::BTreeSet;

use lopdf::{Dictionary, Document, Object, ObjectId};

use crate::LaterChange;
use crate::signatures::{FormField, fields};
use crate::source::{MAX_PAGES, dictionary, resolve_in};

/// Limit on the nesting of compared objects. Deeper ones count as different.
const MAX_DEPTH: usize = 96;

/// Entries that point upwards, or have no effect on what a reader shows.
const IGNORED: [&[u8]; 6] = [
    b"Parent",
    b"P",
    b"StructParent",
    b"StructParents",
    b"LastModified",
    b"PieceInfo",
];

/// Entries of the catalog that signing changes, or that are compared by themselves.
const CATALOG: [&[u8]; 9] = [
    b"AcroForm",
    b"DSS",
    b"Extensions",
    b"Perms",
    b"Pages",
    b"Metadata",
    b"Version",
    b"StructTreeRoot",
    b"MarkInfo",
];

/// Entries of a page that it inherits (ISO 32000-1, table 30).
const INHERITED: [&[u8]; 4] = [b"Resources", b"MediaBox", b"CropBox", b"Rotate"];

/// Returns the weightiest change from one revision to a later one.
pub(crate) fn change(before: &Document, after: &Document) -> LaterChange {
    let mut revisions = Revisions {
        before,
        after,
        same: BTreeSet::new(),
    };

    // In this order, because objects that were found to differ count as the same afterwards: by
    // then the weightier change is already known.
    if revisions.content_differs() {
        LaterChange::Content
    } else if revisions.annotations_differ() {
        LaterChange::Annotations
    } else if revisions.fields_differ() {
        LaterChange::FormFields
    } else {
        LaterChange::Signatures
    }
}

struct Revisions<'a> {
    before: &'a Document,
    after: &'a Document,
    /// Pairs that were compared already.
    same: BTreeSet<(ObjectId, ObjectId)>,
}

impl<'a> Revisions<'a> {
    /// Compares the pages without their annotations, and everything else that the catalog names.
    fn content_differs(&mut self) -> bool {
        let pages = self.pages();
        // A catalog that cannot be read may hide any change, so it counts as the weightiest.
        let (Some(pages), Ok(before), Ok(after)) =
            (pages, self.before.catalog(), self.after.catalog())
        else {
            return true;
        };

        let leave_out = |key: &[u8]| CATALOG.contains(&key);
        if !self.same_entries(before, after, leave_out, 0) {
            return true;
        }

        pages.into_iter().any(|(before, after)| {
            let leave_out = |key: &[u8]| key == b"Annots" || INHERITED.contains(&key);
            // The entries are compared as they apply to the page:
            // an update may move them up or down in the tree.
            let inherited = INHERITED.into_iter().all(|key| {
                let old = inherited(self.before, before, key);
                let new = inherited(self.after, after, key);
                match (old, new) {
                    (Some(old), Some(new)) => self.same(old, new, 0),
                    (old, new) => old.is_none() && new.is_none(),
                }
            });

            !inherited || !self.same_entries(before, after, leave_out, 0)
        })
    }

    /// Compares the annotations, apart from widgets that people fill in.
    fn annotations_differ(&mut self) -> bool {
        let Some(pages) = self.pages() else {
            return true;
        };

        pages.into_iter().any(|(before, after)| {
            let old = annotations(self.before, before);
            let new = annotations(self.after, after);
            // A reference identifies an annotation, because an update
            // keeps the number of an object that it changes.
            let lost = old.iter().any(|one| !new.contains(one));
            let mut added = new.iter().filter(|one| !old.contains(one));
            let document = self.after;
            // A new field for a signature is how the next signer signs, and no annotation of the content.
            let foreign = added.any(|one| {
                dictionary(document, one).is_none_or(|added| !is_signature_field(document, added))
            });

            lost || foreign
                || old
                    .into_iter()
                    .any(|one| self.annotation_differs(one, false))
        })
    }

    /// Compares the fields of the form: their values, and their widgets.
    fn fields_differ(&mut self) -> bool {
        let widgets: Vec<&'a Object> = self
            .pages()
            .unwrap_or_default()
            .into_iter()
            .flat_map(|(before, _)| annotations(self.before, before))
            .collect();
        if widgets
            .into_iter()
            .any(|one| self.annotation_differs(one, true))
        {
            return true;
        }

        let (old, new) = (values(self.before), values(self.after));
        // The number is compared first, because pairs would leave the rest of a longer list out.
        if old.len() != new.len() {
            return true;
        }

        old.into_iter()
            .zip(new)
            .any(|((old_name, old), (new_name, new))| {
                old_name != new_name || !self.same_entries(old, new, |key| key == b"Kids", 0)
            })
    }

    /// Compares an annotation that both revisions have: a widget that people fill in, or any
    /// other. A signature, once made, must look the same; before that, it may change.
    fn annotation_differs(&mut self, annotation: &'a Object, filled_in: bool) -> bool {
        let old = dictionary(self.before, annotation);
        let new = dictionary(self.after, annotation);
        let (Some(old), Some(new)) = (old, new) else {
            return old.is_some() != new.is_some();
        };

        let signature = is_signature_field(self.before, old);
        let unsigned = signature && inherited(self.before, old, b"V").is_none();
        (is_widget(self.before, old) && !signature) == filled_in
            && !unsigned
            && !self.same_entries(old, new, |_| false, 0)
    }

    /// Returns the pages in pairs; none if their number differs.
    fn pages(&self) -> Option<Vec<(&'a Dictionary, &'a Dictionary)>> {
        let ids = |document: &'a Document| -> Vec<ObjectId> {
            document.page_iter().take(MAX_PAGES + 1).collect()
        };
        let (old, new) = (ids(self.before), ids(self.after));
        if old.len() != new.len() {
            return None;
        }

        old.into_iter()
            .zip(new)
            .map(|(old, new)| {
                let old = self.before.get_dictionary(old).ok()?;
                Some((old, self.after.get_dictionary(new).ok()?))
            })
            .collect()
    }

    fn same(&mut self, old: &'a Object, new: &'a Object, depth: usize) -> bool {
        // An attacker must not hide a change below the limit, so deeper objects count as different.
        if depth > MAX_DEPTH {
            return false;
        }
        // A pair that is being compared already counts as equal. Otherwise a cycle would not end.
        if let (Object::Reference(old), Object::Reference(new)) = (old, new)
            && !self.same.insert((*old, *new))
        {
            return true;
        }

        let old = resolve_in(self.before, old);
        let new = resolve_in(self.after, new);
        match (old, new) {
            (Object::Dictionary(old), Object::Dictionary(new)) => {
                self.same_entries(old, new, |_| false, depth + 1)
            }
            (Object::Stream(old), Object::Stream(new)) => {
                old.content == new.content
                    && self.same_entries(&old.dict, &new.dict, |key| key == b"Length", depth + 1)
            }
            (Object::Array(old), Object::Array(new)) => {
                old.len() == new.len()
                    && old
                        .iter()
                        .zip(new)
                        .all(|(old, new)| self.same(old, new, depth + 1))
            }
            (Object::String(old, _), Object::String(new, _)) => old == new,
            (old, new) => old == new,
        }
    }

    fn same_entries(
        &mut self,
        old: &'a Dictionary,
        new: &'a Dictionary,
        leave_out: impl Fn(&[u8]) -> bool,
        depth: usize,
    ) -> bool {
        // Equal numbers and a match for each old entry leave no room for a new one.
        let counts = |key: &[u8]| !IGNORED.contains(&key) && !leave_out(key);
        let number = |entries: &Dictionary| entries.iter().filter(|(key, _)| counts(key)).count();
        number(old) == number(new)
            && old
                .iter()
                .filter(|(key, _)| counts(key))
                .all(|(key, old)| new.get(key).is_ok_and(|new| self.same(old, new, depth)))
    }
}

/// Returns an entry of a page, or of the nearest node above it.
fn inherited<'a>(document: &'a Document, page: &'a Dictionary, key: &[u8]) -> Option<&'a Object> {
    let mut node = page;
    for _ in 0..MAX_DEPTH {
        if let Ok(entry) = node.get(key) {
            return Some(entry);
        }
        node = dictionary(document, node.get(b"Parent").ok()?)?;
    }
    None
}

fn annotations<'a>(document: &'a Document, page: &'a Dictionary) -> Vec<&'a Object> {
    let list = page.get(b"Annots").map(|list| resolve_in(document, list));
    list.and_then(Object::as_array)
        .map(|list| list.iter().collect())
        .unwrap_or_default()
}

fn is_widget(document: &Document, annotation: &Dictionary) -> bool {
    let kind = annotation
        .get(b"Subtype")
        .map(|kind| resolve_in(document, kind));
    kind.and_then(Object::as_name)
        .is_ok_and(|kind| kind == b"Widget")
}

fn is_signature_field(document: &Document, widget: &Dictionary) -> bool {
    let kind = inherited(document, widget, b"FT").map(|kind| resolve_in(document, kind));
    kind.is_some_and(|kind| kind.as_name().is_ok_and(|kind| kind == b"Sig"))
}

/// Returns the fields with their names, without those for signatures.
fn values(document: &Document) -> Vec<(String, &Dictionary)> {
    fields(document)
        .into_iter()
        .filter(|field| !field.is_signature)
        .map(|FormField { name, entry, .. }| (name, entry))
        .collect()
}
