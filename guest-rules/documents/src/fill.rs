//! Writing field values into documents.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_handwriting::Handwriting;
use krilla::color::rgb;
use krilla::geom::{PathBuilder, Rect};
use krilla::num::NormalizedF32;
use krilla::paint::{Fill, LineCap, LineJoin, Stroke};
use krilla::surface::Surface;

use crate::error::{Result, other, over_limit, unreadable};
use crate::fit::{self, FAINT, FittedText};
use crate::flatten::{self, FlattenedForm};
use crate::geometry::DisplayedBox;
use crate::look::{AddedInk, Grounds, PageLook};
use crate::overlay::OverlayDocument;
use crate::painting::{ContentRole, FormPlacement};
use crate::picture::DrawableImage;
use crate::read_back::ShownPages;
use crate::source::{SourceDocument, SourcePage, is_signed};
use crate::target::OverlayTarget;
use crate::text::{FontSet, TextStyle};
use crate::updating::CheckedUpdates;
use crate::{FieldValue, FilledField, HandwritingStyle, Misfit, WrittenField};

/// Colour of values: near black, with enough blue to be distinguishable from the print.
const INK: (u8, u8, u8) = (16, 24, 72);
const LINE_UNDER_SIGNATURE: (u8, u8, u8) = (120, 126, 150);

/// Writes values into their areas and flattens them, together with the values of form fields that
/// the document already has, into the pages.
///
/// Texts are set in Noto Sans and fitted to their boxes, never cut off: they wrap in tall boxes and
/// shrink in low ones; [`crate::check_values`] refuses small letters before a value is signed. A dark page
/// gets a light ground under a value. Typed signatures stand on a thin line, pictures keep their proportions,
/// a checkbox is a drawn tick. Values stay searchable text.
///
/// The document is rewritten as a whole and loses its form (AcroForm): appearances of widgets are
/// painted into the pages first, and text fields with a value but no appearance are drawn from the
/// value. Other annotations are kept, unless one would cover a value: it becomes part of the page, too. A signed document is updated incrementally instead and keeps
/// its form, so its signatures stay valid for the revisions that they cover. The output is read
/// back before it is returned.
///
/// # Errors
///
/// `encrypted` and `unreadable` for the document, `unreadable` also for a signed one that permits no
/// changes, has to be repaired, or would hide a signature under an annotation; `over-limit` for a value that
/// does not fit its box at any size or a picture with too many pixels, `other` for an area outside of its page.
pub fn fill(pdf: &[u8], fields: &[FilledField]) -> Result<Vec<u8>> {
    let fields: Vec<StyledField<'_>> = fields.iter().map(|field| (field, None)).collect();
    fill_styled(pdf, &fields)
}

/// Like [`fill`], with a style for typed signatures.
///
/// # Errors
///
/// As [`fill`].
pub fn fill_written(pdf: &[u8], fields: &[WrittenField]) -> Result<Vec<u8>> {
    let fields: Vec<StyledField<'_>> = fields
        .iter()
        .map(|written| (&written.field, written.style.map(hand)))
        .collect();
    fill_styled(pdf, &fields)
}

/// A value, and the style of a typed signature.
pub(crate) type StyledField<'a> = (&'a FilledField, Option<Handwriting>);

pub(crate) fn fill_styled(pdf: &[u8], fields: &[StyledField<'_>]) -> Result<Vec<u8>> {
    if is_signed(pdf) {
        return fill_signed(pdf, fields);
    }

    let source = SourceDocument::open_for_rewrite(pdf)?;
    let shown = ShownPages::of(&source.bytes)?;
    let SourceDocument {
        document,
        pages,
        bytes,
        ..
    } = source;

    let mut target = OverlayTarget::Rewrite(Box::new(document));

    // Nothing can hide a value here: open content ends before it, and annotations over it become part of the page.
    write_values(&mut target, &pages, fields, &bytes)?;

    // The flattened form and its fields are unreachable now; pruning keeps their values out of the
    // file.
    target.document_mut().prune_objects();
    let filled = target.save(pdf, "filled")?;
    shown.confirm(filled.clone())?;

    Ok(filled)
}

fn fill_signed(pdf: &[u8], fields: &[StyledField<'_>]) -> Result<Vec<u8>> {
    let original = Arc::new(pdf.to_vec());
    let source = SourceDocument::open_for_update(&original)?;
    // A repair writes the file anew, and the signatures cover its bytes.
    if source.needs_rewrite() {
        return Err(source.signed_and_damaged());
    }
    // Level 1 of DocMDP permits no change at all (ISO 32000-1, table 254).
    if source.certification_level() == Some(1) {
        return Err(unreadable(
            "its author certified it against any change; accept_certification_loss uses it without the certification",
        ));
    }

    let mut updates = CheckedUpdates::of(Arc::clone(&original), source)?;
    let (tail, looks) = updates.append("filled", |target, pages| {
        let drawings = placed(&FontSet::load()?, pages, fields, &original)?;
        // The form stays as it is: flattening would remove the fields of the signatures.
        paint_values(target, pages, drawings, FlattenedForm::default())
    })?;
    updates.confirm(&tail, &looks)?;

    Ok([pdf, &tail].concat())
}

/// Flattens the form of a document and paints values on its pages. `source` has the document's bytes.
pub(crate) fn write_values(
    target: &mut OverlayTarget,
    pages: &[SourcePage],
    fields: &[StyledField<'_>],
    source: &Arc<Vec<u8>>,
) -> Result<()> {
    let drawings = placed(&FontSet::load()?, pages, fields, source)?;
    // Flattening needs the places first, because an annotation that would cover a value is flattened, too.
    let places: Vec<_> = drawings
        .iter()
        .flat_map(|(page, values)| values.iter().map(move |value| (*page, value.ink.place)))
        .filter_map(|(page, place)| Some((page, pages.get(page)?.geometry.in_user_space(place))))
        .collect();

    let flattened = flatten::form(target, pages, &places)?;
    paint_values(target, pages, drawings, flattened)?;
    Ok(())
}

/// A value after layout, with its place.
struct PlacedValue {
    drawing: FieldDrawing,
    ink: AddedInk,
    /// The page is dark there.
    needs_ground: bool,
}

/// Returns the pages to look at, with the values on them.
fn paint_values(
    target: &mut OverlayTarget,
    pages: &[SourcePage],
    drawings: BTreeMap<usize, Vec<PlacedValue>>,
    flattened: FlattenedForm,
) -> Result<Vec<PageLook>> {
    let fonts = FontSet::load()?;
    let mut overlay = OverlayDocument::new();
    let mut placements = flattened.placements;

    let mut drawn = Vec::new();
    for missing in flattened.without_appearance {
        let (width, height) = missing.size;
        let space = DisplayedBox {
            x: 0.0,
            y: 0.0,
            width,
            height,
        };
        // These values are in the document already. A refusal would help no one, so they may become tiny.
        if let Some(drawing) = prepare(&fonts, &missing.value, None, space, FAINT)? {
            overlay.page(missing.size, |surface| drawing.draw(&fonts, surface))?;
            drawn.push((missing.page, missing.matrix));
        }
    }

    for (index, values) in &drawings {
        let geometry = &pages[*index].geometry;
        overlay.page((geometry.width, geometry.height), |surface| {
            values.iter().try_for_each(|value| {
                if value.needs_ground {
                    lighten(surface, value.ink.place);
                }
                value.drawing.draw(&fonts, surface)
            })
        })?;

        drawn.push((*index, geometry.to_user));
    }

    // `drawn` has the order of the overlay pages, and the forms come back in that order.
    let forms = overlay.import_into(target)?;
    for ((index, matrix), form) in drawn.into_iter().zip(forms) {
        placements.entry(index).or_default().push(FormPlacement {
            form,
            matrix,
            role: ContentRole::Content,
        });
    }

    for (index, placements) in &placements {
        target.paint(&pages[*index], placements)?;
    }

    // Drawing a page is slow, so pages without annotations and open content are only read back.
    let looks = drawings.into_iter().filter_map(|(page, values)| {
        let needs_look = pages.get(page).is_some_and(SourcePage::needs_look);
        needs_look.then(|| PageLook {
            page,
            added: values.iter().map(|value| value.ink).collect(),
        })
    });

    Ok(looks.collect())
}

/// Lays out values for their places, by page.
fn placed(
    fonts: &FontSet,
    pages: &[SourcePage],
    fields: &[StyledField<'_>],
    source: &Arc<Vec<u8>>,
) -> Result<BTreeMap<usize, Vec<PlacedValue>>> {
    let mut drawings: BTreeMap<usize, Vec<PlacedValue>> = BTreeMap::new();
    let mut grounds = None;
    for (field, hand) in fields {
        for area in &field.areas {
            let (index, page) = page_of(pages, area.page)?;
            let place = page.geometry.area(area)?;
            let Some(drawing) = prepare(fonts, &field.value, *hand, place, FAINT)? else {
                continue;
            };

            // The document is parsed again for its looks. Without any value to draw, that is not needed.
            let grounds = match &mut grounds {
                Some(grounds) => grounds,
                none => none.insert(Grounds::of(Arc::clone(source))?),
            };
            let has_to_show = matches!(drawing, FieldDrawing::Signature { .. });
            drawings.entry(index).or_default().push(PlacedValue {
                drawing,
                ink: AddedInk { place, has_to_show },
                needs_ground: grounds.is_dark(index, place)?,
            });
        }
    }

    Ok(drawings)
}

/// Lightens a place for dark ink. The page still shows through.
pub(crate) fn lighten(surface: &mut Surface<'_>, place: DisplayedBox) {
    let Some(shape) = Rect::from_xywh(place.x, place.y, place.width, place.height) else {
        return;
    };

    let mut path = PathBuilder::new();
    path.push_rect(shape);
    if let Some(path) = path.finish() {
        // An opaque ground would hide a line of the form that the value stands on.
        surface.set_stroke(None);
        surface.set_fill(Some(Fill {
            opacity: NormalizedF32::new(0.8).unwrap_or(NormalizedF32::ONE),
            ..solid((255, 255, 255))
        }));
        surface.draw_path(&path);
    }
}

pub(crate) fn page_of(pages: &[SourcePage], number: u32) -> Result<(usize, &SourcePage)> {
    // The number comes from the caller, and page 0 must not wrap around to the last page.
    usize::try_from(number)
        .ok()
        .and_then(|number| number.checked_sub(1))
        .and_then(|index| Some((index, pages.get(index)?)))
        .ok_or_else(|| other(format!("page {number} of {}", pages.len())))
}

pub(crate) fn hand(style: HandwritingStyle) -> Handwriting {
    match style {
        HandwritingStyle::Casual => Handwriting::Casual,
        HandwritingStyle::Formal => Handwriting::Formal,
        HandwritingStyle::Light => Handwriting::Light,
    }
}

/// A value after layout.
pub(crate) enum FieldDrawing {
    Text(FittedText),
    Signature {
        name: FittedText,
        space: DisplayedBox,
    },
    Picture {
        picture: Box<DrawableImage>,
        space: DisplayedBox,
    },
    Tick(DisplayedBox),
}

/// Lays out a value, with letters of `smallest` points at the least. Returns `None` for values that draw
/// nothing: empty text, an unticked box.
pub(crate) fn prepare(
    fonts: &FontSet,
    value: &FieldValue,
    hand: Option<Handwriting>,
    space: DisplayedBox,
    smallest: f32,
) -> Result<Option<FieldDrawing>> {
    // A picture scales to every box, so it has no size that does not fit.
    if let FieldValue::Drawn(picture) = value {
        return Ok(Some(FieldDrawing::Picture {
            picture: Box::new(DrawableImage::read(picture)?),
            space,
        }));
    }

    layout(fonts, value, hand, space, smallest).map_err(|misfit| match misfit {
        Misfit::TooLong(room) => over_limit(format!(
            "a text for a box of {:.1} x {:.1} points, which has room for {room} characters",
            space.width, space.height
        )),
        Misfit::NotDrawable(characters) => other(format!("no typeface has {characters}")),
    })
}

/// Lays out a value that is no picture, as [`prepare`].
pub(crate) fn layout(
    fonts: &FontSet,
    value: &FieldValue,
    hand: Option<Handwriting>,
    space: DisplayedBox,
    smallest: f32,
) -> std::result::Result<Option<FieldDrawing>, Misfit> {
    Ok(match value {
        FieldValue::Text(text) if text.trim().is_empty() => None,
        FieldValue::Text(text) => {
            let text = fit::text(fonts, text, TextStyle::Regular, space, smallest)?;
            Some(FieldDrawing::Text(text))
        }
        FieldValue::Typed(name) if name.trim().is_empty() => None,
        FieldValue::Typed(name) => Some(FieldDrawing::Signature {
            name: fit::signature(fonts, name, hand, space, smallest)?,
            space,
        }),
        FieldValue::Checkbox(true) => Some(FieldDrawing::Tick(space)),
        FieldValue::Drawn(_) | FieldValue::Checkbox(false) => None,
    })
}

impl FieldDrawing {
    pub(crate) fn draw(&self, fonts: &FontSet, surface: &mut Surface<'_>) -> Result<()> {
        surface.set_stroke(None);
        surface.set_fill(Some(solid(INK)));
        match self {
            Self::Text(fitted) => fitted.draw(fonts, surface),
            Self::Signature { name, space } => {
                name.draw(fonts, surface);
                rule(surface, *space);
            }
            Self::Picture { picture, space } => picture.draw(surface, *space)?,
            Self::Tick(space) => tick(surface, *space),
        }

        Ok(())
    }
}

/// Returns an opaque fill of one colour.
pub(crate) fn solid((red, green, blue): (u8, u8, u8)) -> Fill {
    Fill {
        paint: rgb::Color::new(red, green, blue).into(),
        opacity: NormalizedF32::ONE,
        ..Fill::default()
    }
}

fn rule(surface: &mut Surface<'_>, space: DisplayedBox) {
    let mut path = PathBuilder::new();
    let y = fit::signature_baseline(space);
    path.move_to(space.x, y);
    path.line_to(space.x + space.width, y);
    stroke(surface, path, LINE_UNDER_SIGNATURE, 0.5);
}

fn tick(surface: &mut Surface<'_>, space: DisplayedBox) {
    let side = space.width.min(space.height);
    let left = space.x + (space.width - side) / 2.0;
    let top = space.y + (space.height - side) / 2.0;
    let mut path = PathBuilder::new();
    path.move_to(left + side * 0.18, top + side * 0.54);
    path.line_to(left + side * 0.41, top + side * 0.78);
    path.line_to(left + side * 0.84, top + side * 0.22);
    stroke(surface, path, INK, side * 0.11);
}

fn stroke(
    surface: &mut Surface<'_>,
    path: PathBuilder,
    (red, green, blue): (u8, u8, u8),
    width: f32,
) {
    let Some(path) = path.finish() else {
        return;
    };

    surface.set_fill(None);
    surface.set_stroke(Some(Stroke {
        paint: rgb::Color::new(red, green, blue).into(),
        width,
        line_cap: LineCap::Round,
        line_join: LineJoin::Round,
        ..Stroke::default()
    }));

    surface.draw_path(&path);
    // The next item of the page may be text, which would get this outline.
    surface.set_stroke(None);
}
