//! Height of glyph boxes.
//!
//! There is no single correct value: readers take it from the font descriptor, from the embedded
//! font or from their substitute font. These rules stay close to the middle of the values of
//! poppler, MuPDF and PDFium.

use hayro_syntax::object::{Array, Dict, Name, Rect};

/// Vertical extent of a font's glyph boxes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FontMetrics {
    /// Extent above the baseline, in ems.
    pub(crate) ascent: f64,
    /// Extent below the baseline, in ems; not positive.
    pub(crate) descent: f64,
    /// Ems per unit of font size: 1 except for Type 3 fonts, which choose their own scale.
    pub(crate) em_scale: f64,
}

const DEFAULT: FontMetrics = FontMetrics {
    ascent: 0.9,
    descent: -0.22,
    em_scale: 1.0,
};

impl FontMetrics {
    pub(crate) fn of(font: &Dict<'_>) -> Self {
        if font.get::<Name<'_>>("Subtype").as_deref() == Some(b"Type3") {
            return type3(font);
        }

        let descendant = font
            .get::<Array<'_>>("DescendantFonts")
            .and_then(|fonts| fonts.iter::<Dict<'_>>().next());
        let descriptor = descendant
            .as_ref()
            .unwrap_or(font)
            .get::<Dict<'_>>("FontDescriptor");

        descriptor
            .and_then(|descriptor| from_descriptor(&descriptor))
            .or_else(|| standard(font))
            .unwrap_or(DEFAULT)
    }
}

fn from_descriptor(descriptor: &Dict<'_>) -> Option<FontMetrics> {
    let ascent = in_ems(descriptor.get::<f64>("Ascent")?).abs();
    // Some producers write the descent with the wrong sign.
    let descent = -in_ems(descriptor.get::<f64>("Descent").unwrap_or(-220.0)).abs();
    let is_sane = (0.3..=1.6).contains(&ascent) && (-0.8..=0.0).contains(&descent);
    is_sane.then_some(FontMetrics {
        ascent,
        descent,
        em_scale: 1.0,
    })
}

/// Converts a descriptor value to ems. Some producers write ems instead of thousandths.
fn in_ems(value: f64) -> f64 {
    if value.abs() < 3.0 {
        value
    } else {
        value / 1000.0
    }
}

/// Returns the metrics of the standard fonts, which may lack a descriptor.
fn standard(font: &Dict<'_>) -> Option<FontMetrics> {
    let name = font.get::<Name<'_>>("BaseFont")?;
    let name = name.as_str();
    let (ascent, descent) = if name.starts_with("Helvetica") || name.starts_with("Arial") {
        (0.931, -0.225)
    } else if name.starts_with("Times") {
        (0.898, -0.218)
    } else if name.starts_with("Courier") {
        (0.805, -0.250)
    } else if name.starts_with("Symbol") {
        (1.010, -0.293)
    } else if name.starts_with("ZapfDingbats") {
        (0.820, -0.143)
    } else {
        return None;
    };

    Some(FontMetrics {
        ascent,
        descent,
        em_scale: 1.0,
    })
}

fn type3(font: &Dict<'_>) -> FontMetrics {
    let matrix = font
        .get::<[f64; 6]>("FontMatrix")
        .unwrap_or([0.001, 0.0, 0.0, 0.001, 0.0, 0.0]);
    let [_, b, _, d, ..] = matrix;
    // The matrix may turn the glyphs by a quarter, and then their height is in the other number.
    let scale = if d == 0.0 { b } else { d };
    let bounds = font.get::<Rect>("FontBBox").unwrap_or(Rect::ZERO);
    let (top, bottom) = if scale < 0.0 {
        (bounds.y0 * scale, bounds.y1 * scale)
    } else {
        (bounds.y1 * scale, bounds.y0 * scale)
    };
    let height = top - bottom;
    if !height.is_finite() || height <= 0.0 {
        // An empty box is allowed and carries no information; the matrix alone gives the size.
        let unit = (scale * 1000.0).abs();
        let em_scale = if unit.is_finite() && unit > 0.0 {
            unit.min(1.0)
        } else {
            1.0
        };

        return FontMetrics {
            ascent: DEFAULT.ascent * em_scale,
            descent: DEFAULT.descent * em_scale,
            em_scale,
        };
    }

    FontMetrics {
        ascent: top,
        descent: bottom.min(0.0),
        em_scale: height,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hayro_syntax::object::FromBytes;

    fn metrics(font: &[u8]) -> FontMetrics {
        FontMetrics::of(&Dict::from_bytes(font).unwrap())
    }

    #[test]
    fn plausible_font_descriptor_metrics_are_used() {
        let m = metrics(b"<< /FontDescriptor << /Ascent 891 /Descent 216 >> >>");
        assert_eq!((m.ascent, m.descent), (0.891, -0.216));
        let m = metrics(b"<< /BaseFont /Courier /FontDescriptor << /Ascent 0 /Descent 0 >> >>");
        assert_eq!((m.ascent, m.descent), (0.805, -0.25));
        let m = metrics(b"<< /FontDescriptor << /Ascent 99999 >> >>");
        assert_eq!(m, DEFAULT);
    }

    #[test]
    fn a_type3_font_box_is_transformed_by_the_font_matrix() {
        let m = metrics(
            b"<< /Subtype /Type3 /FontMatrix [0.01 0 0 0.01 0 0] /FontBBox [0 -20 100 80] >>",
        );
        assert_eq!((m.ascent, m.descent, m.em_scale), (0.8, -0.2, 1.0));
    }
}
