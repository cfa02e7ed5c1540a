//! Text of annotations, above all the values of form fields. Insurance and tax forms keep contract
//! text in read-only fields.

use hayro_syntax::object::{Array, Dict, Name, Object, Rect as PdfRect, Stream};
use hayro_syntax::page::Page;

use crate::error::ReadError;
use crate::geometry::AffineMap;
use crate::interpret::{ContentInterpreter, HiddenLayers};
use crate::objects::resolved;

/// Annotation flags that hide it on screen (ISO 32000-1, 12.5.3).
const HIDDEN: i32 = 1 << 1;
const NO_VIEW: i32 = 1 << 5;

/// Runs the normal appearance of every annotation that is visible on the page.
pub(crate) fn run_appearances<'a>(
    page: &Page<'a>,
    interpreter: &mut ContentInterpreter<'_, 'a>,
    hidden_layers: &HiddenLayers,
    to_page: &AffineMap,
) -> Result<(), ReadError> {
    let Some(annotations) = page.raw().get::<Array<'a>>("Annots") else {
        return Ok(());
    };

    for annotation in resolved(&annotations, page.xref()).filter_map(Object::into_dict) {
        let flags = annotation.get::<i32>("F").unwrap_or(0);
        // A pop-up shows only after a click, so its text is not part of the page.
        let is_popup = annotation.get::<Name<'_>>("Subtype").as_deref() == Some(b"Popup");
        if flags & (HIDDEN | NO_VIEW) != 0
            || is_popup
            || hidden_layers.hides_entry(&annotation, "OC")
        {
            continue;
        }
        let Some(appearance) = normal_appearance(&annotation) else {
            continue;
        };

        let Some(placed) = placement(&annotation, &appearance) else {
            continue;
        };

        interpreter.run_appearance(&appearance, page.resources(), placed.then(to_page))?;
    }

    Ok(())
}

/// Returns `/AP /N`: a stream, or one stream per state of a check box.
fn normal_appearance<'a>(annotation: &Dict<'a>) -> Option<Stream<'a>> {
    let appearances = annotation.get::<Dict<'a>>("AP")?;
    if let Some(stream) = appearances.get::<Stream<'a>>("N") {
        return Some(stream);
    }
    let state = annotation.get::<Name<'_>>("AS")?;
    appearances
        .get::<Dict<'a>>("N")?
        .get::<Stream<'a>>(state.as_ref())
}

/// Returns the map that fits the appearance's box into the annotation's rectangle (ISO 32000-1,
/// 12.5.5, algorithm 8.1).
fn placement(annotation: &Dict<'_>, appearance: &Stream<'_>) -> Option<AffineMap> {
    let rect = annotation.get::<PdfRect>("Rect")?;
    let dict = appearance.dict();
    let bounds = dict.get::<PdfRect>("BBox")?;
    let matrix = dict
        .get::<[f64; 6]>("Matrix")
        .map_or(AffineMap::IDENTITY, AffineMap::new);
    let transformed = matrix.bounds_of(bounds.x0, bounds.y0, bounds.x1, bounds.y1);

    // An appearance without a size shows nothing. A division would make places that are no numbers.
    let scale = |target: f64, source: f64| {
        if source > 0.0 { target / source } else { 1.0 }
    };
    let scale_x = scale(rect.width(), transformed.width());
    let scale_y = scale(rect.height(), transformed.height());
    let fit = AffineMap::new([
        scale_x,
        0.0,
        0.0,
        scale_y,
        rect.x0 - transformed.x0 * scale_x,
        rect.y0 - transformed.y0 * scale_y,
    ]);

    Some(matrix.then(&fit))
}
