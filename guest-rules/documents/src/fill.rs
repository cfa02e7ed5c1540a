//! Writing field values into documents.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_handwriting::Handwriting;
use krilla::color::rgb;
use krilla::geom::PathBuilder;
use krilla::num::NormalizedF32;
use krilla::paint::{Fill, LineCap, LineJoin, Stroke};
use krilla::surface::Surface;

use crate::error::{Result, other, unreadable};
use crate::fit::{self, FittedText};
use crate::flatten::{self, FlattenedForm};
use crate::geometry::DisplayedBox;
use crate::overlay::OverlayDocument;
use crate::painting::{ContentRole, FormPlacement};
use crate::picture::DrawableImage;
use crate::read_back::ShownPages;
use crate::source::{SourceDocument, SourcePage, is_signed};
use crate::target::{DocumentUpdates, OverlayTarget};
use crate::text::{FontSet, TextStyle};
use crate::{FieldValue, FilledField, HandwritingStyle, WrittenField};

/// Colour of values: near black, with enough blue to be distinguishable from the print.
const INK: (u8, u8, u8) = (16, 24, 72);
const LINE_UNDER_SIGNATURE: (u8, u8, u8) = (120, 126, 150);

/// Writes values into their areas and flattens them, together with the values of form fields that
/// the document already has, into the pages.
///
/// Texts are set in Noto Sans and fitted to their boxes, never cut off: they wrap in tall boxes and
/// shrink in low ones. Typed signatures stand on a thin line, pictures keep their proportions, a
/// checkbox is a drawn tick. Values stay searchable text.
///
/// The document is rewritten as a whole and loses its form (AcroForm): appearances of widgets are
/// painted into the pages first, and text fields with a value but no appearance are drawn from the
/// value. Other annotations are kept. A signed document is updated incrementally instead and keeps
/// its form, so that its signatures stay valid for the revisions that they cover. The output is read
/// back before it is returned.
///
/// # Errors
///
/// `encrypted` and `unreadable` for the document, `unreadable` also for a signed one that permits no
/// changes or has to be repaired, `over-limit` for a value that does not fit its
/// box at any size or a picture with too many pixels, `other` for an area outside of its page.
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
type StyledField<'a> = (&'a FilledField, Option<Handwriting>);

fn fill_styled(pdf: &[u8], fields: &[StyledField<'_>]) -> Result<Vec<u8>> {
    if is_signed(pdf) {
        return fill_signed(pdf, fields);
    }
    let source = SourceDocument::open_for_rewrite(pdf)?;
    let shown = ShownPages::of(&source.bytes)?;
    let SourceDocument {
        document, pages, ..
    } = source;
    let mut target = OverlayTarget::Rewrite(Box::new(document));
    write_values(&mut target, &pages, fields)?;
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
    if source.needs_rewrite() {
        return Err(source.signed_and_damaged());
    }
    if source.certification_level() == Some(1) {
        return Err(unreadable("its author certified it against any change"));
    }
    let shown = ShownPages::of(&original)?;
    let SourceDocument {
        document,
        pages,
        bytes,
        ..
    } = source;
    drop(bytes);
    let tail = DocumentUpdates::of(original, document).append("filled", |target| {
        paint_values(target, &pages, fields, FlattenedForm::default())
    })?;
    let filled = [pdf, &tail].concat();
    shown.confirm(filled.clone())?;
    Ok(filled)
}

/// Flattens the form of a document and paints values on its pages.
pub(crate) fn write_values(
    target: &mut OverlayTarget,
    pages: &[SourcePage],
    fields: &[StyledField<'_>],
) -> Result<()> {
    let flattened = flatten::form(target, pages)?;
    paint_values(target, pages, fields, flattened)
}

fn paint_values(
    target: &mut OverlayTarget,
    pages: &[SourcePage],
    fields: &[StyledField<'_>],
    flattened: FlattenedForm,
) -> Result<()> {
    let fonts = FontSet::load()?;
    let mut drawings: BTreeMap<usize, Vec<FieldDrawing>> = BTreeMap::new();
    for (field, hand) in fields {
        for area in &field.areas {
            let (index, page) = page_of(pages, area.page)?;
            let space = page.geometry.area(area)?;
            let drawing = prepare(&fonts, &field.value, *hand, space)?;
            drawings.entry(index).or_default().extend(drawing);
        }
    }

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
        if let Some(drawing) = prepare(&fonts, &missing.value, None, space)? {
            overlay.page(missing.size, |surface| drawing.draw(&fonts, surface))?;
            drawn.push((missing.page, missing.matrix));
        }
    }
    for (index, drawings) in drawings.iter().filter(|(_, drawings)| !drawings.is_empty()) {
        let geometry = &pages[*index].geometry;
        overlay.page((geometry.width, geometry.height), |surface| {
            drawings
                .iter()
                .try_for_each(|drawing| drawing.draw(&fonts, surface))
        })?;
        drawn.push((*index, geometry.to_user));
    }
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
    Ok(())
}

fn page_of(pages: &[SourcePage], number: u32) -> Result<(usize, &SourcePage)> {
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

/// Lays out a value. Returns `None` for values that draw nothing: empty text, an unticked box.
pub(crate) fn prepare(
    fonts: &FontSet,
    value: &FieldValue,
    hand: Option<Handwriting>,
    space: DisplayedBox,
) -> Result<Option<FieldDrawing>> {
    Ok(match value {
        FieldValue::Text(text) if text.trim().is_empty() => None,
        FieldValue::Text(text) => Some(FieldDrawing::Text(fit::text(
            fonts,
            text,
            TextStyle::Regular,
            space,
        )?)),
        FieldValue::Typed(name) if name.trim().is_empty() => None,
        FieldValue::Typed(name) => Some(FieldDrawing::Signature {
            name: fit::signature(fonts, name, hand, space)?,
            space,
        }),
        FieldValue::Drawn(picture) => Some(FieldDrawing::Picture {
            picture: Box::new(DrawableImage::read(picture)?),
            space,
        }),
        FieldValue::Checkbox(true) => Some(FieldDrawing::Tick(space)),
        FieldValue::Checkbox(false) => None,
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
    surface.set_stroke(None);
}
