//! Concatenating documents.

use std::collections::BTreeMap;

use lopdf::{Dictionary, Document, Object, ObjectId};

use crate::error::{Result, other, over_limit};
use crate::fill::write_values;
use crate::read_back::ShownPages;
use crate::source::{MAX_PAGES, SourceDocument};
use crate::target::OverlayTarget;

/// Limit on the documents of one package.
const MAX_DOCUMENTS: usize = 100;

/// Page attributes that a page may inherit from the page tree.
const INHERITABLE: [&[u8]; 4] = [b"Resources", b"MediaBox", b"CropBox", b"Rotate"];

/// Makes one document from the pages of all documents, in the given order.
///
/// Forms are flattened as in [`crate::fill`]: fields of different documents may share a name, and
/// one name must not end up with two values. Links and other annotations stay, and layers keep
/// their visibility; bookmarks, named destinations, attachments, scripts and metadata are dropped.
/// A single document takes the same path as several.
///
/// # Errors
///
/// The errors of every part, with its number (1-based) in the text; `over-limit` for more than 100
/// documents or 5,000 pages; `other` for an empty list.
pub fn merge(pdfs: &[Vec<u8>]) -> Result<Vec<u8>> {
    if pdfs.is_empty() {
        return Err(other("nothing to merge"));
    }
    if pdfs.len() > MAX_DOCUMENTS {
        return Err(over_limit(format!("{MAX_DOCUMENTS} documents")));
    }

    let mut target = OverlayTarget::Rewrite(Box::new(Document::with_version("1.7")));
    // The tree gets its number before the pages, because each page refers to it.
    let root = target.add(Dictionary::new())?;
    let tree = target.add(Dictionary::new())?;
    let mut pages = Vec::new();
    let mut shown = ShownPages::none();

    let mut layers = LayerMerge::default();
    for (index, pdf) in pdfs.iter().enumerate() {
        append(&mut target, pdf, tree, &mut pages, &mut layers, &mut shown)
            .map_err(|error| with_part(error, index + 1))?;
    }

    let count = pages.len();
    let node = target.edit(tree)?;
    node.set("Type", "Pages");
    node.set("Count", count as i64);
    node.set("Kids", pages);
    let catalog = target.edit(root)?;
    catalog.set("Type", "Catalog");

    catalog.set("Pages", Object::Reference(tree));
    if let Some(properties) = layers.into_properties() {
        catalog.set("OCProperties", properties);
    }

    target
        .document_mut()
        .trailer
        .set("Root", Object::Reference(root));
    target.document_mut().prune_objects();
    let merged = target.save(&pdfs.concat(), "merged")?;
    shown.confirm(merged.clone())?;

    Ok(merged)
}

fn append(
    target: &mut OverlayTarget,
    pdf: &[u8],
    tree: ObjectId,
    pages: &mut Vec<Object>,
    layers: &mut LayerMerge,
    shown: &mut ShownPages,
) -> Result<()> {
    let (flat, ids) = flattened(pdf, shown)?;
    if pages.len() + ids.len() > MAX_PAGES {
        return Err(over_limit(format!("more than {MAX_PAGES} pages")));
    }

    let mut known = BTreeMap::new();

    // Pages refer to each other (links) and to their parents. Registering them beforehand keeps the
    // old page tree out of the copy.
    let mut news = Vec::with_capacity(ids.len());
    for id in &ids {
        let new = target.add(Object::Null)?;
        known.insert(*id, new);
        news.push(new);
    }

    for (id, new) in ids.iter().zip(&news) {
        let mut page = flat.get_dictionary(*id)?.clone();
        for key in INHERITABLE {
            if !page.has(key)
                && let Some(value) = inherited(&flat, *id, key)
            {
                page.set(key, value);
            }
        }

        // These keys refer to structures that are not copied: page tree, structure tree, article
        // threads and scripts.
        for key in ["Parent", "StructParents", "B", "AA"] {
            page.remove(key.as_bytes());
        }

        let Object::Dictionary(mut copy) =
            target.import(&flat, &Object::Dictionary(page), &mut known)?
        else {
            return Err(other("a page was lost"));
        };

        copy.set("Type", "Page");
        copy.set("Parent", Object::Reference(tree));
        target
            .document_mut()
            .objects
            .insert(*new, Object::Dictionary(copy));

        pages.push(Object::Reference(*new));
    }

    layers.add(target, &flat, &mut known)
}

/// Returns the document without its form, and its pages in order.
fn flattened(pdf: &[u8], shown: &mut ShownPages) -> Result<(Document, Vec<ObjectId>)> {
    let source = SourceDocument::open_for_rewrite(pdf)?;
    // The pages are noted before the form is flattened, so its values must survive as well.
    shown.extend(ShownPages::of(&source.bytes)?);
    let SourceDocument {
        document,
        pages,
        bytes,
        ..
    } = source;
    let ids: Vec<ObjectId> = pages.iter().map(|page| page.id).collect();

    let mut target = OverlayTarget::Rewrite(Box::new(document));
    write_values(&mut target, &pages, &[], &bytes)?;
    match target {
        OverlayTarget::Rewrite(document) => Ok((*document, ids)),
        OverlayTarget::Update(_) => Err(other("a document to merge is rewritten")),
    }
}

fn inherited(document: &Document, page: ObjectId, key: &[u8]) -> Option<Object> {
    let mut node = page;
    // Bounded, because the parents in a hostile document can form a cycle.
    for _ in 0..64 {
        let dictionary = document.get_dictionary(node).ok()?;
        if let Ok(value) = dictionary.get(key) {
            return Some(value.clone());
        }
        node = dictionary.get(b"Parent").ok()?.as_reference().ok()?;
    }

    None
}

/// Optional content of all parts. Layers that were hidden in their own document stay hidden.
#[derive(Default)]
struct LayerMerge {
    all: Vec<Object>,
    hidden: Vec<Object>,
}

impl LayerMerge {
    fn add(
        &mut self,
        target: &mut OverlayTarget,
        from: &Document,
        known: &mut BTreeMap<ObjectId, ObjectId>,
    ) -> Result<()> {
        let Some(properties) = from.catalog().ok().and_then(|catalog| {
            catalog
                .get_deref(b"OCProperties", from)
                .ok()?
                .as_dict()
                .ok()
        }) else {
            return Ok(());
        };

        let list = |dictionary: &Dictionary, key: &[u8]| -> Vec<Object> {
            let items = dictionary.get_deref(key, from).and_then(Object::as_array);
            items.cloned().unwrap_or_default()
        };
        let all = list(properties, b"OCGs");
        let hidden = match properties.get_deref(b"D", from).and_then(Object::as_dict) {
            Ok(configuration) => {
                let on = list(configuration, b"ON");
                // With the base state OFF, only the layers in `ON` are visible (ISO 32000-1, table 101).
                let starts_off = configuration
                    .get_deref(b"BaseState", from)
                    .and_then(Object::as_name)
                    .is_ok_and(|state| state == b"OFF");
                if starts_off {
                    all.iter()
                        .filter(|layer| !on.contains(layer))
                        .cloned()
                        .collect()
                } else {
                    list(configuration, b"OFF")
                }
            }
            Err(_) => Vec::new(),
        };

        for layer in all {
            self.all.push(target.import(from, &layer, known)?);
        }

        for layer in hidden {
            self.hidden.push(target.import(from, &layer, known)?);
        }

        Ok(())
    }

    fn into_properties(self) -> Option<Dictionary> {
        if self.all.is_empty() {
            return None;
        }

        // Viewers offer only the layers that `Order` lists.
        let mut configuration = Dictionary::new();
        configuration.set("Order", self.all.clone());
        configuration.set("OFF", self.hidden);
        let mut properties = Dictionary::new();
        properties.set("OCGs", self.all);
        properties.set("D", configuration);

        Some(properties)
    }
}

fn with_part(error: crate::DocumentError, number: usize) -> crate::DocumentError {
    use crate::DocumentError::{Encrypted, Other, OverLimit, Unreadable};
    match error {
        Unreadable(reason) => Unreadable(format!("document {number}: {reason}")),
        OverLimit(limit) => OverLimit(format!("document {number}: {limit}")),
        Other(reason) => Other(format!("document {number}: {reason}")),
        Encrypted => Encrypted,
    }
}
