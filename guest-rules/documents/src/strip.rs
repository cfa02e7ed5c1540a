//! Removing tags from pages.
//!
//! The reader crate finds the glyphs of a tag and rewrites operators without them. This module
//! stores the new content in place of the old: in the page, in annotation appearances, and in form
//! XObjects, which several pages may share.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use holdfast_reader::{
    ContentEdit, ContentStream, PdfDocument as Reader, TextSource as Origin, cut, find_tags,
};
use lopdf::{Dictionary, Object, ObjectId, Stream};

use crate::error::{Result, other, unreadable};
use crate::read_back::ShownPages;
use crate::source::{SourceDocument, refusal};
use crate::target::OverlayTarget;

/// Removes `{{…}}` tags from the pages and moves nothing else.
///
/// Every complete tag is removed, including tags that are split over several pieces of text,
/// repeated, or part of a form XObject or an annotation's appearance; all other glyphs keep their
/// positions. The document is rewritten as a whole, so no earlier revision contains the tags.
/// A document without complete tags is returned unchanged, byte for byte. Values of form fields and
/// properties of tagged content are data, not page content, and stay.
///
/// # Errors
///
/// `encrypted`, `unreadable` and `over-limit` for the document, `unreadable` also for a signed
/// document with tags; `other` if a tag is still readable
/// on a page afterwards.
pub fn strip_tags(pdf: &[u8]) -> Result<Vec<u8>> {
    let survey = TagSurvey::of(pdf)?;
    if survey.pages.is_empty() {
        return Ok(pdf.to_vec());
    }

    let source = SourceDocument::open_for_rewrite(pdf)?;
    let ids: Vec<ObjectId> = source.pages.iter().map(|page| page.id).collect();
    let mut target = OverlayTarget::Rewrite(Box::new(source.document));
    // A shared form changes in place only if all its uses change alike.
    // Otherwise a page would lose other words.
    for (id, content) in survey.edited_everywhere_alike() {
        let old = stream(&target, id)?;
        let new = with_content(&old.dict, content)?;
        target
            .document_mut()
            .objects
            .insert(id, Object::Stream(new));
    }

    for (index, page) in &survey.pages {
        let id = ids
            .get(*index)
            .ok_or_else(|| unreadable("a page disappeared"))?;
        rewrite_page(&mut target, *id, page, &survey)?;
    }

    // Pruning removes the replaced streams, which still contain the tags.
    target.document_mut().prune_objects();
    let stripped = target.save(pdf, "stripped")?;
    survey.shown.confirm(stripped.clone())?;

    // Verify the result: a remaining tag would show its name and attributes to every signer.
    if TagSurvey::of(&stripped)?.pages.is_empty() {
        Ok(stripped)
    } else {
        Err(other("a tag could not be removed"))
    }
}

/// Edits of all pages.
struct TagSurvey {
    /// Pages with tags, by page index (0-based).
    pages: BTreeMap<usize, TaggedPage>,
    /// New content for each use of a shared stream; `None` for a use without edits.
    uses: BTreeMap<ObjectId, Vec<Option<Vec<u8>>>>,
    /// All pages without the glyphs of the tags.
    shown: ShownPages,
}

struct TaggedPage {
    streams: Vec<ContentStream>,
    /// Edits by stream.
    edits: BTreeMap<usize, Vec<ContentEdit>>,
}

impl TagSurvey {
    fn of(pdf: &[u8]) -> Result<Self> {
        let reader = Reader::open(pdf.to_vec()).map_err(refusal)?;
        let mut text = reader.text_reader();
        let mut survey = Self {
            pages: BTreeMap::new(),
            uses: BTreeMap::new(),
            shown: ShownPages::none(),
        };
        for (index, info) in reader.pages().into_iter().enumerate() {
            let page = text.page(index).map_err(refusal)?;
            let tags = find_tags(&page).map_err(refusal)?;
            let glyphs: BTreeSet<usize> = tags
                .into_iter()
                .filter(|tag| tag.is_closed)
                .flat_map(|tag| tag.glyphs)
                .collect();
            // The stripped document is compared with these pages: everything but the tags has to survive.
            survey.shown.push(info, &page, &glyphs);

            let mut edits: BTreeMap<usize, Vec<ContentEdit>> = BTreeMap::new();
            for edit in cut(&page, &glyphs) {
                edits.entry(edit.stream).or_default().push(edit);
            }

            // A use without a tag counts as well, because the form must stay as it is there.
            for (number, stream) in page.streams.iter().enumerate() {
                if let Some(id) = object_of(stream.source) {
                    let new = edits
                        .get(&number)
                        .map(|edits| applied(&stream.content, edits));
                    survey.uses.entry(id).or_default().push(new.transpose()?);
                }
            }

            if !edits.is_empty() {
                survey.pages.insert(
                    index,
                    TaggedPage {
                        streams: page.streams,
                        edits,
                    },
                );
            }
        }

        Ok(survey)
    }

    /// Returns the shared streams that change in the same way at every use; these are edited in
    /// place.
    fn edited_everywhere_alike(&self) -> impl Iterator<Item = (ObjectId, Vec<u8>)> {
        self.uses
            .keys()
            .filter_map(|id| Some((*id, self.in_place(*id)?.to_vec())))
    }

    fn in_place(&self, id: ObjectId) -> Option<&[u8]> {
        let uses = self.uses.get(&id)?;
        let first = uses.first()?.as_deref()?;
        uses.iter()
            .all(|other| other.as_deref() == Some(first))
            .then_some(first)
    }
}

/// A copied form: the bytes of its `Do` in the parent, and the new object.
struct RedrawnPage {
    invocation: Range<usize>,
    form: ObjectId,
}

/// Rewrites a page. Streams are listed parents first, so the reverse order handles every child
/// before its parent.
fn rewrite_page(
    target: &mut OverlayTarget,
    id: ObjectId,
    page: &TaggedPage,
    survey: &TagSurvey,
) -> Result<()> {
    let mut redrawn: BTreeMap<usize, Vec<RedrawnPage>> = BTreeMap::new();
    for (number, stream) in page.streams.iter().enumerate().rev() {
        let children = redrawn.remove(&number).unwrap_or_default();
        let mut edits = page.edits.get(&number).cloned().unwrap_or_default();
        match object_of(stream.source) {
            // This form was edited in place, for every page that draws it.
            Some(shared) if children.is_empty() && survey.in_place(shared).is_some() => continue,
            _ if children.is_empty() && edits.is_empty() => continue,
            Some(shared) => {
                let copy = copied_form(target, id, shared, &children, &mut edits, &stream.content)?;
                match (stream.source, stream.parent) {
                    (Origin::Form { .. }, Some(parent)) => {
                        let invocation = stream.invocation.clone();
                        redrawn.entry(parent).or_default().push(RedrawnPage {
                            invocation,
                            form: copy,
                        });
                    }
                    // An appearance belongs to its annotation alone.
                    _ => {
                        let copy = stream_object(target, copy)?;
                        target.document_mut().objects.insert(shared, copy);
                    }
                }
            }
            None => {
                for child in &children {
                    let name = target.name_form(id, child.form)?;
                    edits.push(call(number, child, &name));
                }

                let content = applied(&stream.content, &edits)?;
                let content = target.add(with_content(&Dictionary::new(), content)?)?;
                target.edit(id)?.set("Contents", Object::Reference(content));
            }
        }
    }

    Ok(())
}

/// Copies a form with edited content and with references to the edited forms that it draws.
fn copied_form(
    target: &mut OverlayTarget,
    page: ObjectId,
    form: ObjectId,
    children: &[RedrawnPage],
    edits: &mut Vec<ContentEdit>,
    content: &Rc<[u8]>,
) -> Result<ObjectId> {
    // Other pages may draw the same form and need it unchanged, so this page gets a copy.
    let mut dictionary = stream(target, form)?.dict.clone();
    let resources = match dictionary
        .get(b"Resources")
        .map(|object| target.resolve(object))
    {
        Ok(Object::Dictionary(resources)) => Some(resources.clone()),
        _ => None,
    };
    match resources {
        Some(mut resources) => {
            let mut forms = match resources
                .get(b"XObject")
                .map(|object| target.resolve(object))
            {
                Ok(Object::Dictionary(forms)) => forms.clone(),
                _ => Dictionary::new(),
            };
            for child in children {
                let mut name = format!("Hf{}", child.form.0);
                while forms.has(name.as_bytes()) {
                    name.push('x');
                }
                forms.set(name.as_bytes(), Object::Reference(child.form));
                edits.push(call(0, child, &name));
            }

            resources.set("XObject", forms);
            dictionary.set("Resources", resources);
        }
        // A form without resources uses those of the page.
        None => {
            for child in children {
                let name = target.name_form(page, child.form)?;
                edits.push(call(0, child, &name));
            }
        }
    }

    let content = applied(content, edits)?;
    target.add(with_content(&dictionary, content)?)
}

fn call(stream: usize, child: &RedrawnPage, name: &str) -> ContentEdit {
    ContentEdit {
        stream,
        range: child.invocation.clone(),
        replacement: format!("/{name} Do").into_bytes(),
    }
}

fn applied(content: &[u8], edits: &[ContentEdit]) -> Result<Vec<u8>> {
    // Edits of tags and calls of copied forms come in no common order.
    let mut edits: Vec<&ContentEdit> = edits.iter().collect();
    edits.sort_by_key(|edit| edit.range.start);
    let mut new = Vec::with_capacity(content.len());

    let mut at = 0;
    for edit in edits {
        let kept = content.get(at..edit.range.start);
        new.extend_from_slice(kept.ok_or_else(|| other("two tags overlap in the page content"))?);
        new.extend_from_slice(&edit.replacement);
        at = edit.range.end;
    }

    let rest = content
        .get(at..)
        .ok_or_else(|| other("a tag ends past the page content"))?;
    new.extend_from_slice(rest);

    Ok(new)
}

fn with_content(dictionary: &Dictionary, content: Vec<u8>) -> Result<Stream> {
    let mut dictionary = dictionary.clone();
    // These entries describe the encoding of the former data.
    for key in [
        "Filter",
        "DecodeParms",
        "F",
        "FFilter",
        "FDecodeParms",
        "DL",
        "Length",
    ] {
        dictionary.remove(key.as_bytes());
    }

    let mut stream = Stream::new(dictionary, content);
    stream.compress()?;
    Ok(stream)
}

fn stream(target: &OverlayTarget, id: ObjectId) -> Result<&Stream> {
    match target.document().objects.get(&id) {
        Some(Object::Stream(stream)) => Ok(stream),
        _ => Err(unreadable(format!("object {} {} is no stream", id.0, id.1))),
    }
}

fn stream_object(target: &OverlayTarget, id: ObjectId) -> Result<Object> {
    Ok(Object::Stream(stream(target, id)?.clone()))
}

fn object_of(source: Origin) -> Option<ObjectId> {
    match source {
        Origin::Page => None,
        Origin::Form { number, generation } | Origin::Appearance { number, generation } => {
            Some((number, u16::try_from(generation).unwrap_or(0)))
        }
    }
}
