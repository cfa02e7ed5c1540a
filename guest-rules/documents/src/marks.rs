//! Marks that distinguish the authoritative copy from every other copy.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use krilla::color::rgb;
use krilla::geom::{PathBuilder, Rect, Transform};
use krilla::num::NormalizedF32;
use krilla::paint::Fill;
use krilla::surface::Surface;
use lopdf::{Dictionary, IncrementalDocument, Object, text_string};

use crate::error::{Result, other, over_limit};
use crate::fill::{lighten, solid};
use crate::geometry::DisplayedBox;
use crate::look::{AddedInk, PageLook, compare};
use crate::moment::CalendarTime;
use crate::overlay::OverlayDocument;
use crate::painting::{ContentRole, FormPlacement};
use crate::read_back::ShownPages;
use crate::source::{SourceDocument, SourcePage, is_signed};
use crate::target::OverlayTarget;
use crate::text::{ASCENT, DESCENT, FontSet, LEADING, TextLine, TextStyle};
use crate::updating::CheckedUpdates;
use crate::{CopyKind, MarkRequest, MarkWords, Marked};

const AUTHORITATIVE: &str = "Authoritative copy";
const NON_AUTHORITATIVE: &str = "Non-authoritative copy";
const SECURED_PARTY: &str = "Secured party:";

const GREY: (u8, u8, u8) = (112, 112, 118);
const RED: (u8, u8, u8) = (158, 27, 36);

/// Limit on the characters of a name. Longer ones would push the mark off the page.
const MAX_CHARACTERS: usize = 300;

/// Marks every page, as an incremental update after the original bytes.
///
/// The authoritative copy carries one small grey line in the bottom margin: `Authoritative copy`,
/// the envelope and, when given, the secured party. Every other copy carries `Non-authoritative
/// copy` across the page and, as text, at its top. The lines are searchable, upright on the
/// displayed page, and artifacts to screen readers. The information dictionary repeats the facts
/// under the keys `CopyStatus`, `EnvelopeId`, `SecuredParty` and `MarkedAt`; existing XMP metadata
/// and all other objects stay unchanged.
///
/// The update leaves the original bytes unchanged, so an existing signature stays valid. A document
/// with a broken cross-reference table is rewritten instead, or refused if it is signed. A document certified with "no changes
/// allowed" (DocMDP level 1) stays **unchanged** as the authoritative copy, because any mark would
/// break the certification; its non-authoritative copies are marked like all others.
///
/// # Errors
///
/// `encrypted`, `unreadable` and `over-limit` for the document; `other` for a request without an
/// envelope id or with a malformed time.
pub fn mark(pdf: Vec<u8>, request: &MarkRequest) -> Result<Marked> {
    worded_mark(pdf, request, None)
}

/// Like [`mark`], with words of another language after the English ones. The phrase across the pages
/// is in that language only.
///
/// # Errors
///
/// Those of [`mark`]; `over-limit` for words of more than 300 characters.
pub fn worded_mark(
    pdf: Vec<u8>,
    request: &MarkRequest,
    words: Option<&MarkWords>,
) -> Result<Marked> {
    let request = &WordedRequest::new(request, words)?;
    let pdf = Arc::new(pdf);
    let source = SourceDocument::open_for_update(&pdf)?;

    // Also refuses a damaged document that is certified: its other copies could not be marked.
    if request.request.rewrite || source.needs_rewrite() {
        return Ok(Marked::Rewritten(mark_rewritten(&pdf, source, request)?));
    }
    // Its other copies are marked all the same: only the original has to keep its certification.
    if request.request.kind == CopyKind::Authoritative && source.certification_level() == Some(1) {
        return Ok(Marked::Unchanged);
    }

    let mut updates = CheckedUpdates::of(pdf, source)?;
    let (mark, looks) = updates.append(&format!("{request:?}"), |target, pages| {
        paint(target, pages, request)
    })?;
    updates.confirm(&mark, &looks)?;

    Ok(Marked::Appended(mark))
}

/// Request for a mark, with the words of its text.
#[derive(Debug)]
pub(crate) struct WordedRequest<'a> {
    pub(crate) request: &'a MarkRequest,
    words: Option<&'a MarkWords>,
}

impl<'a> WordedRequest<'a> {
    /// Checks a request.
    pub(crate) fn new(request: &'a MarkRequest, words: Option<&'a MarkWords>) -> Result<Self> {
        // The time is written as it was given. Parsing it only refuses a malformed one.
        CalendarTime::parse(&request.marked_at, "marked-at")?;
        if request.envelope_id.trim().is_empty() {
            return Err(other("a mark names its envelope"));
        }

        let mut named = vec![&request.envelope_id];
        named.extend(&request.secured_party);
        if let Some(words) = words {
            named.extend([
                &words.authoritative,
                &words.non_authoritative,
                &words.secured_party,
            ]);
        }

        if named
            .iter()
            .any(|name| name.chars().count() > MAX_CHARACTERS)
        {
            return Err(over_limit(format!(
                "{MAX_CHARACTERS} characters in a name on a mark"
            )));
        }

        Ok(Self { request, words })
    }

    /// Returns the English phrase for the kind of copy.
    fn status(&self) -> &'static str {
        match self.request.kind {
            CopyKind::Authoritative => AUTHORITATIVE,
            CopyKind::NonAuthoritative => NON_AUTHORITATIVE,
        }
    }

    /// Returns the phrase in the other language.
    fn translated(&self) -> Option<&'a str> {
        self.words.map(|words| match self.request.kind {
            CopyKind::Authoritative => words.authoritative.as_str(),
            CopyKind::NonAuthoritative => words.non_authoritative.as_str(),
        })
    }

    /// Returns the phrases and the envelope, as on every page.
    fn line(&self) -> String {
        let id = &self.request.envelope_id;
        match self.translated() {
            Some(translated) => format!("{} · {translated} · {id}", self.status()),
            None => format!("{} · {id}", self.status()),
        }
    }
}

/// Marks a repaired document. The mark is an update of it, so the document without the mark stays the
/// beginning of the marked one.
fn mark_rewritten(
    pdf: &Arc<Vec<u8>>,
    source: SourceDocument,
    request: &WordedRequest<'_>,
) -> Result<Vec<u8>> {
    if is_signed(pdf) {
        return Err(source.signed_and_damaged());
    }

    let source = match source.repair {
        Some(_) => source,
        // The host could not read an update of it.
        None => {
            let document = SourceDocument::open_for_rewrite(pdf)?.document;
            let written = OverlayTarget::Rewrite(Box::new(document)).save(pdf, "rewritten")?;
            SourceDocument::open_for_rewrite(&written)?
        }
    };

    let SourceDocument {
        document,
        pages,
        bytes,
        ..
    } = source;
    let shown = ShownPages::of(&bytes)?;

    // The update takes the bytes over, and the comparison of the looks needs them afterwards.
    let repaired = bytes.to_vec();
    let update = IncrementalDocument::create_from(Arc::unwrap_or_clone(bytes), document);
    let mut target = OverlayTarget::Update(Box::new(update));
    let looks = paint(&mut target, &pages, request)?;
    let marked = Arc::new(target.save(pdf, &format!("{request:?}"))?);
    shown.confirm(Arc::clone(&marked))?;
    if !looks.is_empty() {
        compare(repaired, Arc::clone(&marked), &looks)?;
    }

    Ok(Arc::unwrap_or_clone(marked))
}

pub(crate) fn paint(
    target: &mut OverlayTarget,
    pages: &[SourcePage],
    request: &WordedRequest<'_>,
) -> Result<Vec<PageLook>> {
    let fonts = FontSet::load()?;
    let looks = paint_each(target, pages, |surface, size| {
        draw(&fonts, surface, size, request)
    })?;
    describe(target, request.status(), request.request)?;
    Ok(looks)
}

/// Draws the same on every page, as far as its size allows. `draw` returns the places of its lines. Returns
/// the pages to look at, with these places.
pub(crate) fn paint_each(
    target: &mut OverlayTarget,
    pages: &[SourcePage],
    draw: impl Fn(&mut Surface<'_>, (f32, f32)) -> Vec<DisplayedBox>,
) -> Result<Vec<PageLook>> {
    // Pages of one size share one mark.
    let mut overlay = OverlayDocument::new();
    let mut sizes = BTreeMap::new();
    for page in pages {
        let size = (page.geometry.width, page.geometry.height);
        let key = (size.0.to_bits(), size.1.to_bits());
        if let Entry::Vacant(vacant) = sizes.entry(key) {
            let mut places = Vec::new();
            let drawn = overlay.page(size, |surface| {
                places = draw(surface, size);
                Ok(())
            });
            vacant.insert((drawn?, places));
        }
    }

    let forms = overlay.import_into(target)?;
    let mut looks = Vec::new();
    for (index, page) in pages.iter().enumerate() {
        let key = (
            page.geometry.width.to_bits(),
            page.geometry.height.to_bits(),
        );
        let (form, places) = sizes.get(&key).ok_or_else(|| other("a mark was lost"))?;
        let form = *forms.get(*form).ok_or_else(|| other("a mark was lost"))?;

        if page.needs_look() {
            let ink = |place: &DisplayedBox| AddedInk {
                place: *place,
                has_to_show: true,
            };
            looks.push(PageLook {
                page: index,
                added: places.iter().map(ink).collect(),
            });
        }

        let placement = FormPlacement {
            form,
            matrix: page.geometry.to_user,
            role: ContentRole::Artifact,
        };
        target.paint(page, &[placement])?;
    }

    Ok(looks)
}

fn draw(
    fonts: &FontSet,
    surface: &mut Surface<'_>,
    size: (f32, f32),
    request: &WordedRequest<'_>,
) -> Vec<DisplayedBox> {
    match request.request.kind {
        CopyKind::Authoritative => draw_authoritative(fonts, surface, size, request),
        CopyKind::NonAuthoritative => {
            draw_across(fonts, surface, size, request.translated());
            vec![draw_banner(fonts, surface, size, request)]
        }
    }
}

/// Draws one discreet line, which grows upwards where a narrow page wraps it.
fn draw_authoritative(
    fonts: &FontSet,
    surface: &mut Surface<'_>,
    (width, height): (f32, f32),
    request: &WordedRequest<'_>,
) -> Vec<DisplayedBox> {
    let mut text = request.line();
    // The mark names the assignee of the record (UCC 9-105(b)(2)).
    let party = request.request.secured_party.as_deref();
    if let Some(party) = party.filter(|name| !name.trim().is_empty()) {
        let words = request.words.map(|words| words.secured_party.as_str());
        let label = words.unwrap_or(SECURED_PARTY);
        text.push_str(&format!(" · {label} {party}"));
    }
    draw_foot(fonts, surface, (width, height), &text)
}

/// Returns the size of the letters of a mark: a share of a small page, `usual` on a letter page, and as large
/// on a plan when that is shown as a whole.
fn mark_size((width, height): (f32, f32), share: f32, usual: f32) -> f32 {
    /// Smaller letters cannot be read in print.
    const READABLE: f32 = 4.0;
    /// Width of a letter page.
    const LETTER: f32 = 612.0;

    let side = width.min(height);

    // Some lines have to fit on the smallest pages, too.
    let least = READABLE.min(side / 14.0);
    (side * share)
        .clamp(least, usual.max(least))
        .max(side / LETTER * usual)
}

/// Draws a line of a mark on a light ground, so it shows on dark pages as well. A ground is a few bytes;
/// outlines around the letters would be read again with every page.
fn draw_on_light(
    fonts: &FontSet,
    surface: &mut Surface<'_>,
    line: &TextLine,
    (x, baseline): (f32, f32),
    size: f32,
    colour: (u8, u8, u8),
) -> DisplayedBox {
    let place = DisplayedBox {
        x,
        y: baseline - size * ASCENT,
        width: line.width(size),
        height: size * 1.25,
    };
    lighten(surface, place);

    surface.set_fill(Some(solid(colour)));
    fonts.draw(surface, line, x, baseline, size);
    place
}

/// Draws a small grey line at the foot of the page.
pub(crate) fn draw_foot(
    fonts: &FontSet,
    surface: &mut Surface<'_>,
    (width, height): (f32, f32),
    text: &str,
) -> Vec<DisplayedBox> {
    let size = mark_size((width, height), 0.02, 6.5);
    let lines = fonts.wrap(text, TextStyle::Regular, size, width * 0.92);
    // The last line keeps its place at the foot, and the others stand above it.
    let lines = lines.iter().rev().enumerate().map(|(above, line)| {
        let baseline = height - size * (1.1 + LEADING * above as f32);
        let x = (width - line.width(size)) / 2.0;
        draw_on_light(fonts, surface, line, (x, baseline), size, GREY)
    });
    lines.collect()
}

/// Draws a bold line at the head of the page. It grows downwards where a narrow page wraps it, and hides
/// nothing.
pub(crate) fn draw_head(
    fonts: &FontSet,
    surface: &mut Surface<'_>,
    (width, height): (f32, f32),
    text: &str,
) -> Vec<DisplayedBox> {
    let size = mark_size((width, height), 0.02, 7.5);
    let lines = fonts.wrap(text, TextStyle::Bold, size, width * 0.92);
    let lines = lines.iter().enumerate().map(|(below, line)| {
        let baseline = size * (1.6 + LEADING * below as f32);
        let x = (width - line.width(size)) / 2.0;
        draw_on_light(fonts, surface, line, (x, baseline), size, (0, 0, 0))
    });
    lines.collect()
}

/// Draws the phrase from corner to corner, light enough to read the contract through it. It is
/// drawn as outlines, not as text: slanted text would end up between the words of the contract in a
/// search or when read aloud. The banner carries the text.
fn draw_across(
    fonts: &FontSet,
    surface: &mut Surface<'_>,
    (width, height): (f32, f32),
    translated: Option<&str>,
) {
    let line = fonts.line(translated.unwrap_or(NON_AUTHORITATIVE), TextStyle::Bold);
    let diagonal = width.hypot(height);
    let size = (diagonal * 0.72 / line.width(1.0)).min(width.min(height) * 0.3);
    let angle = -height.atan2(width);
    surface.set_fill(Some(Fill {
        paint: rgb::Color::new(RED.0, RED.1, RED.2).into(),
        opacity: NormalizedF32::new(0.13).unwrap_or(NormalizedF32::ONE),
        ..Fill::default()
    }));

    surface.push_transform(&Transform::from_translate(width / 2.0, height / 2.0));
    surface.push_transform(&Transform::from_rotate(angle.to_degrees()));
    let baseline = size * (ASCENT - DESCENT) / 2.0;
    fonts.draw_outlines(surface, &line, -line.width(size) / 2.0, baseline, size);
    surface.pop();

    surface.pop();
}

/// Draws the phrase in a small frame that is visible on any background.
fn draw_banner(
    fonts: &FontSet,
    surface: &mut Surface<'_>,
    (width, height): (f32, f32),
    request: &WordedRequest<'_>,
) -> DisplayedBox {
    let mut size = mark_size((width, height), 0.022, 8.0);
    let mut line = fonts.line(&request.line(), TextStyle::Bold);
    // On a narrow page the phrase matters more than the envelope, which is in the metadata as well.
    if line.width(size) > width * 0.94 {
        line = fonts.line(NON_AUTHORITATIVE, TextStyle::Bold);
        size = size.min(width * 0.94 / line.width(1.0));
    }

    let (x, top) = ((width - line.width(size)) / 2.0, size * 0.6);
    let pad = size * 0.5;
    let place = DisplayedBox {
        x: x - pad,
        y: top,
        width: line.width(size) + 2.0 * pad,
        height: size * 1.5,
    };
    if let Some(frame) = Rect::from_xywh(place.x, place.y, place.width, place.height) {
        let mut path = PathBuilder::new();
        path.push_rect(frame);
        if let Some(path) = path.finish() {
            surface.set_fill(Some(solid((255, 255, 255))));
            surface.draw_path(&path);
        }
    }

    surface.set_fill(Some(solid(RED)));
    fonts.draw(surface, &line, x, top + size * 1.1, size);
    place
}

/// Repeats the facts of the mark in the metadata.
fn describe(target: &mut OverlayTarget, status: &'static str, request: &MarkRequest) -> Result<()> {
    let dictionary = information(target)?;
    dictionary.set("CopyStatus", text_string(status));
    dictionary.set("EnvelopeId", text_string(&request.envelope_id));
    dictionary.set("MarkedAt", text_string(&request.marked_at));

    // The document may have an older mark, with a party that this one does not name.
    match &request.secured_party {
        Some(party) => dictionary.set("SecuredParty", text_string(party)),
        None => drop(dictionary.remove(b"SecuredParty")),
    }

    Ok(())
}

/// Returns the information dictionary, to be changed.
pub(crate) fn information(target: &mut OverlayTarget) -> Result<&mut Dictionary> {
    let information = target.document().trailer.get(b"Info").ok().cloned();
    let existing = information
        .as_ref()
        .and_then(|object| target.resolve(object).as_dict().ok())
        .cloned()
        .unwrap_or_else(Dictionary::new);
    // An update replaces whole objects, so a dictionary in the trailer itself moves to an object of its own.
    let id = match information.and_then(|object| object.as_reference().ok()) {
        Some(id) if target.dictionary(id).is_some() => id,
        _ => target.add(existing)?,
    };
    target
        .document_mut()
        .trailer
        .set("Info", Object::Reference(id));

    target.edit(id)
}
