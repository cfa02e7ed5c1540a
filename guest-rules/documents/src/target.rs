//! A document while it is written: rewritten as a whole, or updated behind its own bytes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use hayro_syntax::content::UntypedIter;
use lopdf::{Dictionary, Document, IncrementalDocument, Object, ObjectId, Stream, StringFormat};
use sha2::{Digest, Sha256};

use crate::error::{Result, other, unreadable};
use crate::geometry::Matrix;
use crate::source::{MAX_STREAM_BYTES, resolve_in};

/// How deep a page may sit in the page tree before inherited resources are given up.
const MAX_TREE_DEPTH: usize = 64;

pub(crate) enum Target {
    /// Every object is written anew; earlier revisions disappear.
    Rewrite(Document),
    /// Changed and new objects follow the original bytes, which stay as they are.
    Update(IncrementalDocument),
}

/// A form XObject and where it goes.
pub(crate) struct Placement {
    pub(crate) form: ObjectId,
    /// From the form's space to the page's user space.
    pub(crate) matrix: Matrix,
    pub(crate) role: Role,
}

/// What painted content is to a reader of tagged documents.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Part of the document.
    Content,
    /// Added to the page from outside, like a page number; screen readers skip it.
    Artifact,
}

impl Target {
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

    /// Follows references; what leads nowhere, or in circles, is null.
    pub(crate) fn resolve<'a>(&'a self, object: &'a Object) -> &'a Object {
        self.trace(object).1
    }

    /// Follows references and names the last one.
    fn trace<'a>(&'a self, object: &'a Object) -> (Option<ObjectId>, &'a Object) {
        static NULL: Object = Object::Null;
        let (mut id, mut object) = (None, object);
        for _ in 0..32 {
            let Object::Reference(next) = object else {
                return (id, object);
            };
            id = Some(*next);
            object = self.object(*next).unwrap_or(&NULL);
        }
        (None, &NULL)
    }

    /// A dictionary (also that of a stream) that will be part of the output.
    pub(crate) fn edit(&mut self, id: ObjectId) -> Result<&mut Dictionary> {
        let object = match self {
            Self::Rewrite(document) => document.objects.get_mut(&id),
            Self::Update(update) => {
                if !update.new_document.objects.contains_key(&id)
                    && let Some(previous) = update.get_prev_documents().objects.get(&id)
                {
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

    /// Copies an object and all it refers to out of another document.
    ///
    /// `known` remembers what was copied before, so that what two objects share is shared
    /// again: a font used on every page arrives once.
    pub(crate) fn import(
        &mut self,
        from: &Document,
        object: &Object,
        known: &mut BTreeMap<ObjectId, ObjectId>,
    ) -> Result<Object> {
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

    /// Paints forms on top of a page, whatever state its own content leaves behind.
    pub(crate) fn paint(&mut self, page: ObjectId, placements: &[Placement]) -> Result<()> {
        if placements.is_empty() {
            return Ok(());
        }
        let balance = self.balance(page);
        let mut tail = String::from("\n");
        tail.push_str(if balance.inside_text { "ET\n" } else { "" });
        tail.push_str(&"Q ".repeat(1 + balance.left_open));
        for placement in placements {
            let name = self.name_form(page, placement.form)?;
            let [a, b, c, d, e, f] = placement.matrix.0.map(number);
            let (open, close) = match placement.role {
                Role::Content => ("", ""),
                Role::Artifact => (
                    "/Artifact <</Type/Pagination/Subtype/Watermark>> BDC ",
                    " EMC",
                ),
            };
            // Writing to a string cannot fail.
            let _ = write!(
                tail,
                "\n{open}q {a} {b} {c} {d} {e} {f} cm /{name} Do Q{close}"
            );
        }
        tail.push('\n');
        let head = self.add(Stream::new(
            Dictionary::new(),
            format!("{}\n", "q ".repeat(1 + balance.closed_too_often)).into_bytes(),
        ))?;
        let tail = self.add(Stream::new(Dictionary::new(), tail.into_bytes()))?;

        let existing = match self
            .dictionary(page)
            .and_then(|page| page.get(b"Contents").ok())
        {
            None => Vec::new(),
            Some(contents) => match self.resolve(contents) {
                Object::Array(streams) => streams.clone(),
                Object::Stream(_) => vec![contents.clone()],
                _ => Vec::new(),
            },
        };
        let mut contents = vec![Object::Reference(head)];
        contents.extend(existing);
        contents.push(Object::Reference(tail));
        self.edit(page)?.set("Contents", contents);
        Ok(())
    }

    /// Makes a form known to a page's resources, under a name nothing else there has.
    fn name_form(&mut self, page: ObjectId, form: ObjectId) -> Result<String> {
        let resources = self.own_resources(page)?;
        let holder = match resources {
            Holder::Page => {
                let page_dictionary = self.edit(page)?;
                match page_dictionary.get(b"Resources").and_then(Object::as_dict) {
                    Ok(resources) => resources.get(b"XObject").ok().cloned(),
                    Err(_) => None,
                }
            }
            Holder::Object(id) => self.edit(id)?.get(b"XObject").ok().cloned(),
        };
        let shared = holder.as_ref().and_then(|object| match self.trace(object) {
            (Some(id), Object::Dictionary(_)) => Some(id),
            _ => None,
        });
        let forms = match shared {
            Some(id) => self.edit(id)?,
            None => {
                let resources = match resources {
                    Holder::Object(id) => self.edit(id)?,
                    Holder::Page => dictionary_at(self.edit(page)?, b"Resources")?,
                };
                dictionary_at(resources, b"XObject")?
            }
        };
        let mut name = format!("Hf{}", form.0);
        while forms
            .get(name.as_bytes())
            .is_ok_and(|taken| *taken != Object::Reference(form))
        {
            name.push('x');
        }
        forms.set(name.as_bytes(), Object::Reference(form));
        Ok(name)
    }

    /// Finds the dictionary that holds a page's resources, and gives the page one of its own
    /// where it inherited: adding a key to the page would otherwise hide the inherited ones.
    fn own_resources(&mut self, page: ObjectId) -> Result<Holder> {
        let mut node = page;
        for depth in 0..MAX_TREE_DEPTH {
            let Some(dictionary) = self.dictionary(node) else {
                break;
            };
            if let Ok(resources) = dictionary.get(b"Resources") {
                match self.trace(resources) {
                    (Some(id), Object::Dictionary(_)) => {
                        if depth > 0 {
                            self.edit(page)?.set("Resources", Object::Reference(id));
                        }
                        return Ok(Holder::Object(id));
                    }
                    (None, Object::Dictionary(_)) if depth == 0 => return Ok(Holder::Page),
                    (None, Object::Dictionary(inherited)) => {
                        // Shared by all pages below: copied out once, referred to by each.
                        let inherited = inherited.clone();
                        let id = self.add(inherited)?;
                        self.edit(node)?.set("Resources", Object::Reference(id));
                        self.edit(page)?.set("Resources", Object::Reference(id));
                        return Ok(Holder::Object(id));
                    }
                    _ => {}
                }
            }
            match dictionary.get(b"Parent").and_then(Object::as_reference) {
                Ok(parent) => node = parent,
                Err(_) => break,
            }
        }
        self.edit(page)?.set("Resources", Dictionary::new());
        Ok(Holder::Page)
    }

    /// Counts what a page's content opens and does not close.
    fn balance(&self, page: ObjectId) -> Balance {
        let document = match self {
            Self::Rewrite(document) => document,
            Self::Update(update) => update.get_prev_documents(),
        };
        let Ok(content) = document.get_page_content_with_limit(page, MAX_STREAM_BYTES) else {
            return Balance::default();
        };
        let mut balance = Balance::default();
        let mut operators = UntypedIter::new(&content);
        while let Some(instruction) = operators.next() {
            match &**instruction.operator {
                b"q" => balance.left_open += 1,
                b"Q" if balance.left_open > 0 => balance.left_open -= 1,
                b"Q" => balance.closed_too_often += 1,
                b"BT" => balance.inside_text = true,
                b"ET" => balance.inside_text = false,
                _ => {}
            }
        }
        // More than any viewer keeps: such content is broken anyhow, and the repair would be
        // as large as the damage.
        balance.left_open = balance.left_open.min(512);
        balance.closed_too_often = balance.closed_too_often.min(512);
        balance
    }

    /// Writes the document. `purpose` goes into its identifier beside the original bytes, so
    /// that different results have different identifiers and equal ones the same.
    pub(crate) fn save(mut self, original: &[u8], purpose: &str) -> Result<Vec<u8>> {
        let digest = Sha256::new()
            .chain_update(original)
            .chain_update(purpose)
            .finalize();
        let changed = Object::String(digest[..16].to_vec(), StringFormat::Hexadecimal);
        let document = self.document_mut();
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
        let mut bytes = Vec::with_capacity(original.len() + original.len() / 8 + 64 * 1024);
        match &mut self {
            Self::Rewrite(document) => document.save_to(&mut bytes)?,
            Self::Update(update) => update.save_to(&mut bytes)?,
        }
        Ok(bytes)
    }
}

enum Holder {
    /// A direct dictionary in the page.
    Page,
    Object(ObjectId),
}

#[derive(Default)]
struct Balance {
    left_open: usize,
    closed_too_often: usize,
    inside_text: bool,
}

/// The dictionary under a key, made where there is none.
pub(crate) fn dictionary_at<'a>(
    dictionary: &'a mut Dictionary,
    key: &[u8],
) -> Result<&'a mut Dictionary> {
    if !matches!(dictionary.get(key), Ok(Object::Dictionary(_))) {
        dictionary.set(key, Dictionary::new());
    }
    match dictionary.get_mut(key) {
        Ok(Object::Dictionary(inner)) => Ok(inner),
        _ => Err(other("a dictionary could not be made")),
    }
}

/// A number as PDF content writes it: no exponent, no needless digits.
fn number(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text {
        "" | "-0" => "0".to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_never_exponential() {
        let written = [0.0, -0.0, 1.0, -0.5, 1e-9, 612.25].map(number);
        assert_eq!(written, ["0", "0", "1", "-0.5", "0", "612.25"]);
    }
}
