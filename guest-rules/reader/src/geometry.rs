//! Points, rectangles and the affine maps between coordinate systems.

/// An affine map `x' = a x + c y + e`, `y' = b x + d y + f`, in the order PDF writes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Matrix {
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

impl Matrix {
    /// Leaves every point where it is.
    pub const IDENTITY: Self = Self::new([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    /// The map with these six numbers.
    pub const fn new([a, b, c, d, e, f]: [f64; 6]) -> Self {
        Self { a, b, c, d, e, f }
    }

    /// A shift.
    pub const fn translation(x: f64, y: f64) -> Self {
        Self::new([1.0, 0.0, 0.0, 1.0, x, y])
    }

    /// The map that applies `self` first and `outer` after it.
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

    /// Where a point goes.
    pub fn apply(&self, x: f64, y: f64) -> (f64, f64) {
        (
            self.a * x + self.c * y + self.e,
            self.b * x + self.d * y + self.f,
        )
    }

    /// Where a direction goes (the shift does not matter).
    pub fn apply_vector(&self, x: f64, y: f64) -> (f64, f64) {
        (self.a * x + self.c * y, self.b * x + self.d * y)
    }

    /// The upright rectangle around the image of a rectangle.
    pub fn bounds_of(&self, x0: f64, y0: f64, x1: f64, y1: f64) -> Rect {
        let corners = [
            self.apply(x0, y0),
            self.apply(x1, y0),
            self.apply(x0, y1),
            self.apply(x1, y1),
        ];
        let mut bounds = Rect::EMPTY;
        for (x, y) in corners {
            bounds.x0 = bounds.x0.min(x);
            bounds.y0 = bounds.y0.min(y);
            bounds.x1 = bounds.x1.max(x);
            bounds.y1 = bounds.y1.max(y);
        }
        bounds
    }
}

/// An upright rectangle; in this crate's answers, in fractions of the displayed page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rect {
    /// Left edge.
    pub x0: f64,
    /// Top edge.
    pub y0: f64,
    /// Right edge.
    pub x1: f64,
    /// Bottom edge.
    pub y1: f64,
}

impl Rect {
    /// Contains nothing; the union with it is the other rectangle.
    pub const EMPTY: Self = Self {
        x0: f64::INFINITY,
        y0: f64::INFINITY,
        x1: f64::NEG_INFINITY,
        y1: f64::NEG_INFINITY,
    };

    /// The smallest rectangle around both.
    pub fn union(&self, other: &Self) -> Self {
        Self {
            x0: self.x0.min(other.x0),
            y0: self.y0.min(other.y0),
            x1: self.x1.max(other.x1),
            y1: self.y1.max(other.y1),
        }
    }

    /// Horizontal extent.
    pub fn width(&self) -> f64 {
        self.x1 - self.x0
    }

    /// Vertical extent.
    pub fn height(&self) -> f64 {
        self.y1 - self.y0
    }

    /// Whether all four edges are numbers and none is on the wrong side of its opposite.
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
    fn then_applies_the_left_map_first() {
        let scale = Matrix::new([2.0, 0.0, 0.0, 2.0, 0.0, 0.0]);
        let shift = Matrix::translation(10.0, 0.0);
        assert_eq!(scale.then(&shift).apply(1.0, 1.0), (12.0, 2.0));
        assert_eq!(shift.then(&scale).apply(1.0, 1.0), (22.0, 2.0));
    }

    #[test]
    fn bounds_of_a_turned_rectangle_are_upright() {
        let quarter_turn = Matrix::new([0.0, 1.0, -1.0, 0.0, 0.0, 0.0]);
        let bounds = quarter_turn.bounds_of(0.0, 0.0, 4.0, 1.0);
        assert_eq!(
            bounds,
            Rect {
                x0: -1.0,
                y0: 0.0,
                x1: 0.0,
                y1: 4.0
            }
        );
    }
}
