//! A document being written: rewritten as a whole, or updated incrementally.

use std::collections::BTreeMap;
use std::sync::Arc;

use lopdf::{Dictionary, Document, IncrementalDocument, Object, ObjectId, Stream, StringFormat};
use sha2::{Digest, Sha256};

use crate::error::{Result, other, unreadable};
use crate::source::{LEFT_OUT, resolve_in};

pub(crate) enum OverlayTarget {
    /// Every object is written again; earlier revisions disappear.
    Rewrite(Box<Document>),
    /// Changed and new objects follow the original bytes, which stay unchanged.
    Update(Box<IncrementalDocument>),
}

impl OverlayTarget {
    pub(crate) fn document(&self) -> &Document {
        match self {
            Self::Rewrite(document) => document,
            Self::Update(update) => &update.new_document,
        }
    }

    pub(crate) fn document_mut(&mut self) -> &mut Document {
        match self {
            Self::Rewrite(document) => document,
            Self::Update(update) => &mut update.new_document,
        }
    }

    fn object(&self, id: ObjectId) -> Option<&Object> {
        match self {
            Self::Rewrite(document) => document.objects.get(&id),
            Self::Update(update) => update
                .new_document
                .objects
                .get(&id)
                .or_else(|| update.get_prev_documents().objects.get(&id)),
        }
    }

    /// Follows references. Dangling and circular references resolve to null.
    pub(crate) fn resolve<'a>(&'a self, object: &'a Object) -> &'a Object {
        self.trace(object).1
    }

    /// Follows references and returns the last one together with its object.
    pub(crate) fn trace<'a>(&'a self, object: &'a Object) -> (Option<ObjectId>, &'a Object) {
        static NULL: Object = Object::Null;

        let (mut id, mut object) = (None, object);

        // Bounded, because references of a hostile document can form a cycle.
        for _ in 0..32 {
            let Object::Reference(next) = object else {
                return (id, object);
            };
            id = Some(*next);
            object = self.object(*next).unwrap_or(&NULL);
        }

        (None, &NULL)
    }

    /// Returns a dictionary of the output, or that of a stream, for editing.
    pub(crate) fn edit(&mut self, id: ObjectId) -> Result<&mut Dictionary> {
        let object = match self {
            Self::Rewrite(document) => document.objects.get_mut(&id),
            Self::Update(update) => {
                if !update.new_document.objects.contains_key(&id)
                    && let Some(previous) = update.get_prev_documents().objects.get(&id)
                {
                    // An update would write this stream again, without the data that were left out.
                    if let Object::Stream(stream) = previous
                        && stream.dict.has(LEFT_OUT)
                    {
                        return Err(other("data that was left out is to be changed"));
                    }

                    let copy = previous.clone();
                    update.new_document.objects.insert(id, copy);
                }

                update.new_document.objects.get_mut(&id)
            }
        };

        match object {
            Some(Object::Dictionary(dictionary)) => Ok(dictionary),
            Some(Object::Stream(stream)) => Ok(&mut stream.dict),
            _ => Err(unreadable(format!(
                "object {} {} is no dictionary",
                id.0, id.1
            ))),
        }
    }

    pub(crate) fn dictionary(&self, id: ObjectId) -> Option<&Dictionary> {
        self.object(id)?.as_dict().ok()
    }

    pub(crate) fn add(&mut self, object: impl Into<Object>) -> Result<ObjectId> {
        Ok(self.document_mut().try_add_object(object)?)
    }

    /// Copies an object and everything it refers to from another document.
    ///
    /// `known` maps the objects copied so far, so shared objects stay shared: a font used on
    /// every page is copied once.
    pub(crate) fn import(
        &mut self,
        from: &Document,
        object: &Object,
        known: &mut BTreeMap<ObjectId, ObjectId>,
    ) -> Result<Object> {
        // A work list instead of recursion over references: hostile documents nest arbitrarily
        // deep.
        let mut waiting = Vec::new();
        let copy = self.renumbered(object, known, &mut waiting)?;

        while let Some((old, new)) = waiting.pop() {
            let original = from.objects.get(&old).unwrap_or(&Object::Null);
            let copied = self.renumbered(original, known, &mut waiting)?;
            self.document_mut().objects.insert(new, copied);
        }

        Ok(copy)
    }

    fn renumbered(
        &mut self,
        object: &Object,
        known: &mut BTreeMap<ObjectId, ObjectId>,
        waiting: &mut Vec<(ObjectId, ObjectId)>,
    ) -> Result<Object> {
        Ok(match object {
            Object::Reference(old) => {
                let new = match known.get(old) {
                    Some(new) => *new,
                    None => {
                        // Reserve the number before copying the content, so cyclic references
                        // terminate.
                        let new = self.add(Object::Null)?;
                        known.insert(*old, new);
                        waiting.push((*old, new));
                        new
                    }
                };

                Object::Reference(new)
            }
            Object::Array(items) => Object::Array(
                items
                    .iter()
                    .map(|item| self.renumbered(item, known, waiting))
                    .collect::<Result<_>>()?,
            ),
            Object::Dictionary(entries) => {
                Object::Dictionary(self.renumbered_entries(entries, known, waiting)?)
            }
            Object::Stream(stream) => {
                let mut dict = self.renumbered_entries(&stream.dict, known, waiting)?;
                // The length may have been a reference; the writer needs the number.
                dict.set("Length", stream.content.len() as i64);
                Object::Stream(Stream {
                    dict,
                    ..stream.clone()
                })
            }
            plain => plain.clone(),
        })
    }

    fn renumbered_entries(
        &mut self,
        entries: &Dictionary,
        known: &mut BTreeMap<ObjectId, ObjectId>,
        waiting: &mut Vec<(ObjectId, ObjectId)>,
    ) -> Result<Dictionary> {
        let mut copy = Dictionary::new();
        for (key, value) in entries.iter() {
            copy.set(key.clone(), self.renumbered(value, known, waiting)?);
        }
        Ok(copy)
    }

    /// Writes the document. `purpose` is hashed into its identifier together with the original
    /// bytes, so different results have different identifiers and equal ones the same.
    pub(crate) fn save(mut self, original: &[u8], purpose: &str) -> Result<Vec<u8>> {
        self.identify(identifier(original, purpose));
        let mut bytes = Vec::with_capacity(original.len() + original.len() / 8 + 64 * 1024);
        match &mut self {
            Self::Rewrite(document) => document.save_to(&mut bytes)?,
            Self::Update(update) => update.save_to(&mut bytes)?,
        }
        Ok(bytes)
    }

    fn identify(&mut self, changed: Object) {
        let document = self.document_mut();
        // The first part of the ID stays the same across revisions (ISO 32000-1, 14.4).
        let permanent = match document
            .trailer
            .get(b"ID")
            .map(|id| resolve_in(document, id))
        {
            Ok(Object::Array(parts)) => match parts.first() {
                Some(Object::String(bytes, _)) => {
                    Object::String(bytes.clone(), StringFormat::Hexadecimal)
                }
                _ => changed.clone(),
            },
            _ => changed.clone(),
        };

        document.trailer.set("ID", vec![permanent, changed]);
    }
}

/// Returns the identifier of the document made from these bytes; `purpose` includes the envelope
/// and the time. For large documents only the beginning, the end and the length are hashed, as
/// hashing the rest would take longer than all other work on the document.
fn identifier(original: &[u8], purpose: &str) -> Object {
    const ENOUGH: usize = 64 * 1024;

    let head = &original[..original.len().min(ENOUGH)];
    let tail = &original[original.len().saturating_sub(ENOUGH)..];
    let digest = Sha256::new()
        .chain_update(original.len().to_be_bytes())
        .chain_update(head)
        .chain_update(tail)
        .chain_update(purpose)
        .finalize();

    Object::String(digest[..16].to_vec(), StringFormat::Hexadecimal)
}

/// Incremental updates of one document, each apart from the others.
pub(crate) struct DocumentUpdates {
    target: OverlayTarget,
}

impl DocumentUpdates {
    pub(crate) fn of(pdf: Arc<Vec<u8>>, document: Document) -> Self {
        let update = IncrementalDocument::create_from(Arc::unwrap_or_clone(pdf), document);
        Self {
            target: OverlayTarget::Update(Box::new(update)),
        }
    }

    /// Returns the document with an update appended.
    pub(crate) fn with(&self, update: &[u8]) -> Vec<u8> {
        let original = match &self.target {
            OverlayTarget::Update(document) => document.get_prev_documents_bytes(),
            OverlayTarget::Rewrite(_) => &[],
        };
        [original, update].concat()
    }

    /// Makes an update and returns the bytes to append. `change` receives the document to change.
    pub(crate) fn append(
        &mut self,
        purpose: &str,
        change: impl FnOnce(&mut OverlayTarget) -> Result<()>,
    ) -> Result<Vec<u8>> {
        let OverlayTarget::Update(update) = &mut self.target else {
            return Err(other("a rewritten document has no updates"));
        };

        // Each update starts from the original: the mark of one copy must not be in the other.
        update.new_document = Document::new_from_prev(update.get_prev_documents());
        let original = update.get_prev_documents_bytes();
        let mut behind = OverlayPlacement {
            skipped: original.len(),
            bytes: Vec::new(),
        };
        let identifier = identifier(original, purpose);

        change(&mut self.target)?;
        self.target.identify(identifier);
        if let OverlayTarget::Update(update) = &mut self.target {
            update.save_to(&mut behind)?;
        }

        Ok(behind.bytes)
    }
}

/// A writer that drops the first bytes and keeps the rest.
struct OverlayPlacement {
    skipped: usize,
    bytes: Vec<u8>,
}

impl std::io::Write for OverlayPlacement {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let skipped = self.skipped.min(bytes.len());
        self.skipped -= skipped;
        self.bytes.extend_from_slice(&bytes[skipped..]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
