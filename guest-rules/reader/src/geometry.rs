//! Points, rectangles and the affine maps between coordinate systems.

/// An affine map `x' = a x + c y + e`, `y' = b x + d y + f`, in the order PDF writes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AffineMap {
    /// See the type.
    pub a: f64,
    /// See the type.
    pub b: f64,
    /// See the type.
    pub c: f64,
    /// See the type.
    pub d: f64,
    /// See the type.
    pub e: f64,
    /// See the type.
    pub f: f64,
}

impl AffineMap {
    /// The identity map.
    pub const IDENTITY: Self = Self::new([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    /// Creates the map from its six numbers.
    pub const fn new([a, b, c, d, e, f]: [f64; 6]) -> Self {
        Self { a, b, c, d, e, f }
    }

    /// Creates a translation.
    pub const fn translation(x: f64, y: f64) -> Self {
        Self::new([1.0, 0.0, 0.0, 1.0, x, y])
    }

    /// Returns the map that applies `self` first and `outer` second.
    pub fn then(&self, outer: &Self) -> Self {
        Self {
            a: self.a * outer.a + self.b * outer.c,
            b: self.a * outer.b + self.b * outer.d,
            c: self.c * outer.a + self.d * outer.c,
            d: self.c * outer.b + self.d * outer.d,
            e: self.e * outer.a + self.f * outer.c + outer.e,
            f: self.e * outer.b + self.f * outer.d + outer.f,
        }
    }

    /// Maps a point.
    pub fn apply(&self, x: f64, y: f64) -> (f64, f64) {
        (
            self.a * x + self.c * y + self.e,
            self.b * x + self.d * y + self.f,
        )
    }

    /// Maps a direction, ignoring the translation.
    pub fn apply_vector(&self, x: f64, y: f64) -> (f64, f64) {
        (self.a * x + self.c * y, self.b * x + self.d * y)
    }

    /// Returns the bounding box of a mapped rectangle.
    pub fn bounds_of(&self, x0: f64, y0: f64, x1: f64, y1: f64) -> PageRect {
        // On a turned page any corner can become the outermost one.
        let corners = [
            self.apply(x0, y0),
            self.apply(x1, y0),
            self.apply(x0, y1),
            self.apply(x1, y1),
        ];

        let mut bounds = PageRect::EMPTY;
        for (x, y) in corners {
            bounds.x0 = bounds.x0.min(x);
            bounds.y0 = bounds.y0.min(y);
            bounds.x1 = bounds.x1.max(x);
            bounds.y1 = bounds.y1.max(y);
        }

        bounds
    }
}

/// An axis-parallel rectangle; in results of this crate, in fractions of the displayed page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PageRect {
    /// Left edge.
    pub x0: f64,
    /// Top edge.
    pub y0: f64,
    /// Right edge.
    pub x1: f64,
    /// Bottom edge.
    pub y1: f64,
}

impl PageRect {
    /// The empty rectangle, neutral in a union.
    pub const EMPTY: Self = Self {
        x0: f64::INFINITY,
        y0: f64::INFINITY,
        x1: f64::NEG_INFINITY,
        y1: f64::NEG_INFINITY,
    };

    /// Returns the smallest rectangle around both.
    pub fn union(&self, other: &Self) -> Self {
        Self {
            x0: self.x0.min(other.x0),
            y0: self.y0.min(other.y0),
            x1: self.x1.max(other.x1),
            y1: self.y1.max(other.y1),
        }
    }

    /// Returns the width.
    pub fn width(&self) -> f64 {
        self.x1 - self.x0
    }

    /// Returns the height.
    pub fn height(&self) -> f64 {
        self.y1 - self.y0
    }

    /// Returns whether all edges are finite and none is beyond its opposite.
    pub fn is_sane(&self) -> bool {
        [self.x0, self.y0, self.x1, self.y1]
            .iter()
            .all(|edge| edge.is_finite())
            && self.x0 <= self.x1
            && self.y0 <= self.y1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrix_then_applies_the_left_operand_first() {
        let scale = AffineMap::new([2.0, 0.0, 0.0, 2.0, 0.0, 0.0]);
        let shift = AffineMap::translation(10.0, 0.0);
        assert_eq!(scale.then(&shift).apply(1.0, 1.0), (12.0, 2.0));
        assert_eq!(shift.then(&scale).apply(1.0, 1.0), (22.0, 2.0));
    }

    #[test]
    fn bounds_of_a_rotated_rectangle_are_axis_aligned() {
        let quarter_turn = AffineMap::new([0.0, 1.0, -1.0, 0.0, 0.0, 0.0]);
        let bounds = quarter_turn.bounds_of(0.0, 0.0, 4.0, 1.0);
        assert_eq!(
            bounds,
            PageRect {
                x0: -1.0,
                y0: 0.0,
                x1: 0.0,
                y1: 4.0
            }
        );
    }
}
