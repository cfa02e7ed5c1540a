//! Values before they are signed: whether they fit their fields, and how they will look.

use crate::error::{Result, other, over_limit};
use crate::fill::{FieldDrawing, hand, layout, prepare};
use crate::fit::SMALLEST;
use crate::geometry::DisplayedBox;
use crate::overlay::OverlayDocument;
use crate::render::transparent;
use crate::text::FontSet;
use crate::{BoxedValue, FieldValue, Misfit, PageImage};

pub use crate::continuation::fill_flowing;

/// Returns for each value why it cannot be written into a field of its size: the layout of [`crate::fill`].
#[must_use]
#[expect(
    clippy::expect_used,
    reason = "without faces there is no answer, and a yes would be wrong"
)]
pub fn check_values(values: &[BoxedValue]) -> Vec<Option<Misfit>> {
    let fonts = FontSet::load().expect("the built-in faces can be read");
    let misfit = |boxed: &BoxedValue| {
        // Ticks and pictures scale to every box.
        let (FieldValue::Text(text) | FieldValue::Typed(text)) = &boxed.value else {
            return None;
        };

        // Missing letters come first: a shorter text would not help the signer.
        let missing = fonts.missing(text);
        if !missing.is_empty() {
            return Some(Misfit::NotDrawable(missing));
        }

        layout(
            &fonts,
            &boxed.value,
            boxed.style.map(hand),
            space(boxed),
            SMALLEST,
        )
        .err()
    };

    values.iter().map(misfit).collect()
}

/// Draws a value as it is written into a field, on a transparent ground.
///
/// # Errors
///
/// `over-limit` for a text that does not fit, `other` for characters that no typeface has, for a field
/// without a size and for an empty value.
pub fn draw_value(boxed: &BoxedValue, pixels: u32) -> Result<PageImage> {
    let fonts = FontSet::load()?;
    if let FieldValue::Text(text) | FieldValue::Typed(text) = &boxed.value {
        // The check refuses such a value, so no document ever has this look.
        let missing = fonts.missing(text);
        if !missing.is_empty() {
            return Err(other(format!("no typeface has {missing}")));
        }
    }

    if pixels == 0 {
        return Err(over_limit("a picture is at least one pixel wide"));
    }

    let drawing = prepare(
        &fonts,
        &boxed.value,
        boxed.style.map(hand),
        space(boxed),
        SMALLEST,
    )?;
    let drawing: FieldDrawing = drawing.ok_or_else(|| other("an empty value has no look"))?;

    let mut overlay = OverlayDocument::new();
    overlay.page((boxed.width, boxed.height), |surface| {
        drawing.draw(&fonts, surface)
    })?;

    transparent(&overlay.into_pdf()?, pixels)
}

fn space(boxed: &BoxedValue) -> DisplayedBox {
    DisplayedBox {
        x: 0.0,
        y: 0.0,
        width: boxed.width,
        height: boxed.height,
    }
}
