//! Mapping between a displayed page and the coordinates of its content.

use hayro_syntax::page::Page;

use crate::Area;
use crate::error::{Result, other};

/// An affine map in PDF order: `x' = a x + c y + e`, `y' = b x + d y + f`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PageTransform(pub(crate) [f64; 6]);

impl PageTransform {
    pub(crate) const IDENTITY: Self = Self([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    /// Returns the map that applies `self` first and `next` second.
    pub(crate) fn then(self, next: Self) -> Self {
        let ([a, b, c, d, e, f], [na, nb, nc, nd, ne, nf]) = (self.0, next.0);
        Self([
            a * na + b * nc,
            a * nb + b * nd,
            c * na + d * nc,
            c * nb + d * nd,
            e * na + f * nc + ne,
            e * nb + f * nd + nf,
        ])
    }

    /// Returns `None` for a singular map.
    pub(crate) fn inverse(self) -> Option<Self> {
        let [a, b, c, d, e, f] = self.0;
        // A page box of a hostile file can be flat, and the division would spread infinities over all places.
        let determinant = a * d - b * c;
        if !determinant.is_finite() || determinant.abs() < 1e-12 {
            return None;
        }

        Some(Self([
            d / determinant,
            -b / determinant,
            -c / determinant,
            a / determinant,
            (c * f - d * e) / determinant,
            (b * e - a * f) / determinant,
        ]))
    }

    pub(crate) fn apply(self, (x, y): (f64, f64)) -> (f64, f64) {
        let [a, b, c, d, e, f] = self.0;
        (a * x + c * y + e, b * x + d * y + f)
    }

    /// Returns the bounding box of a mapped rectangle.
    pub(crate) fn apply_to_box(self, rectangle: UserSpaceBox) -> UserSpaceBox {
        let corners = [
            (rectangle.x0, rectangle.y0),
            (rectangle.x1, rectangle.y0),
            (rectangle.x0, rectangle.y1),
            (rectangle.x1, rectangle.y1),
        ];
        UserSpaceBox::around(corners.map(|corner| self.apply(corner)))
    }
}

/// An axis-parallel rectangle with `x0 <= x1` and `y0 <= y1`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct UserSpaceBox {
    pub(crate) x0: f64,
    pub(crate) y0: f64,
    pub(crate) x1: f64,
    pub(crate) y1: f64,
}

impl UserSpaceBox {
    pub(crate) fn around(points: [(f64, f64); 4]) -> Self {
        let mut around = Self {
            x0: f64::INFINITY,
            y0: f64::INFINITY,
            x1: f64::NEG_INFINITY,
            y1: f64::NEG_INFINITY,
        };
        for (x, y) in points {
            around.x0 = around.x0.min(x);
            around.y0 = around.y0.min(y);
            around.x1 = around.x1.max(x);
            around.y1 = around.y1.max(y);
        }

        around
    }

    /// Builds a box from the four numbers of a PDF rectangle, which may name any two opposite
    /// corners.
    pub(crate) fn from_corners([ax, ay, bx, by]: [f64; 4]) -> Option<Self> {
        // `min` and `max` drop a NaN silently, so each number is checked before.
        [ax, ay, bx, by]
            .iter()
            .all(|number| number.is_finite())
            .then(|| Self {
                x0: ax.min(bx),
                y0: ay.min(by),
                x1: ax.max(bx),
                y1: ay.max(by),
            })
    }

    pub(crate) fn width(self) -> f64 {
        self.x1 - self.x0
    }

    pub(crate) fn height(self) -> f64 {
        self.y1 - self.y0
    }
}

/// A page as displayed, after /Rotate and CropBox.
///
/// The numbers come from the crate that the placement component reads pages with, so a field is
/// written exactly into the area that placement resolved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageGeometry {
    /// Default user space units.
    pub(crate) width: f32,
    pub(crate) height: f32,
    /// From displayed coordinates (origin bottom-left, y up) to the page's user space.
    pub(crate) to_user: PageTransform,
}

impl PageGeometry {
    /// Returns `None` for a page box that cannot be mapped, for example one that is not finite.
    pub(crate) fn of(page: &Page<'_>) -> Option<Self> {
        let (width, height) = page.render_dimensions();
        let to_top_left = PageTransform(page.initial_transform(true).as_coeffs());
        // The renderer counts from the top, and PDF content from the bottom.
        let flip = PageTransform([1.0, 0.0, 0.0, -1.0, 0.0, f64::from(height)]);
        let to_user = flip.then(to_top_left.inverse()?);
        let sound = width.is_finite()
            && height.is_finite()
            && width > 0.0
            && height > 0.0
            && to_user.0.iter().all(|number| number.is_finite());

        sound.then_some(Self {
            width,
            height,
            to_user,
        })
    }

    /// Returns the visible part of the page in its user space: left, bottom, right, top.
    pub(crate) fn user_box(&self) -> [f64; 4] {
        let shown = UserSpaceBox {
            x0: 0.0,
            y0: 0.0,
            x1: f64::from(self.width),
            y1: f64::from(self.height),
        };
        let UserSpaceBox { x0, y0, x1, y1 } = self.to_user.apply_to_box(shown);
        [x0, y0, x1, y1]
    }

    /// Converts a place on the displayed page to the page's user space.
    pub(crate) fn in_user_space(&self, place: DisplayedBox) -> UserSpaceBox {
        let (x, y) = (f64::from(place.x), f64::from(self.height - place.y));
        self.to_user.apply_to_box(UserSpaceBox {
            x0: x,
            y0: y - f64::from(place.height),
            x1: x + f64::from(place.width),
            y1: y,
        })
    }

    /// Converts an area of the contract to points. Refuses one that is not a rectangle on the page.
    pub(crate) fn area(&self, area: &Area) -> Result<DisplayedBox> {
        // Placement rounds its fractions, so an area may exceed the edge by a hair.
        const SLACK: f64 = 0.001;

        // Placement has checked its areas, but an uploaded component may have placed these.
        let numbers = [area.x, area.y, area.w, area.h];
        let sound = numbers.iter().all(|number| number.is_finite())
            && area.w > 0.0
            && area.h > 0.0
            && area.x >= -SLACK
            && area.y >= -SLACK
            && area.x + area.w <= 1.0 + SLACK
            && area.y + area.h <= 1.0 + SLACK;
        if !sound {
            return Err(other(format!(
                "an area is no rectangle on page {}: x {} y {} w {} h {}",
                area.page, area.x, area.y, area.w, area.h
            )));
        }

        let (width, height) = (f64::from(self.width), f64::from(self.height));
        Ok(DisplayedBox {
            x: (area.x * width) as f32,
            y: (area.y * height) as f32,
            width: (area.w * width) as f32,
            height: (area.h * height) as f32,
        })
    }
}

/// A rectangle on a displayed page in points, origin top-left, y growing downward.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DisplayedBox {
    pub(crate) x: f32,
    pub(crate) y: f32,
    pub(crate) width: f32,
    pub(crate) height: f32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_times_its_inverse_is_the_identity() {
        let matrix = PageTransform([0.0, 2.0, -3.0, 0.5, 7.0, -11.0]);
        let there_and_back = matrix.then(matrix.inverse().unwrap());
        for (number, expected) in there_and_back.0.iter().zip(PageTransform::IDENTITY.0) {
            assert!((number - expected).abs() < 1e-9);
        }
        assert_eq!(
            PageTransform([1.0, 1.0, 1.0, 1.0, 0.0, 0.0]).inverse(),
            None
        );
    }
}
