//! Exact decimal amounts.

use std::fmt;

/// Decimals that are held. Amounts have two, percentages up to six.
const DECIMALS: u32 = 6;
const ONE: i128 = 10_i128.pow(DECIMALS);
/// Largest absolute value, in millionths: sums of all payments of a schedule and the search for the rate stay far
/// from the limits of the integers.
const LARGEST: i128 = 1 << 54;

/// Decimal number in millionths: an amount of money, or a percentage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount(i128);

impl Amount {
    /// Number of millionths.
    pub const fn of_millionths(millionths: i128) -> Self {
        Self(millionths)
    }

    /// Returns the number of millionths.
    pub const fn millionths(self) -> i128 {
        self.0
    }

    /// Parses a canonical number; none if it is no number, too large, or has more than six decimals.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let places = u32::try_from(fraction.len()).ok()?;
        if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) || places > DECIMALS {
            return None;
        }

        let whole: i128 = whole.parse().ok()?;
        let fraction: i128 = match fraction {
            "" => 0,
            digits => digits.parse().ok()?,
        };
        let millionths = whole
            .checked_mul(ONE)?
            .checked_add(fraction * 10_i128.pow(DECIMALS - places))?;
        if millionths > LARGEST {
            return None;
        }

        Some(Self(if negative { -millionths } else { millionths }))
    }

    /// Sum; none if it is too large.
    pub fn plus(self, other: Self) -> Option<Self> {
        let sum = self.0 + other.0;
        (sum.abs() <= LARGEST).then_some(Self(sum))
    }

    /// Difference; none if it is too large.
    pub fn minus(self, other: Self) -> Option<Self> {
        self.plus(Self(-other.0))
    }

    /// Product with a number of payments; none if it is too large.
    pub fn times(self, count: u32) -> Option<Self> {
        let product = self.0.checked_mul(i128::from(count))?;
        (product.abs() <= LARGEST).then_some(Self(product))
    }

    /// Absolute difference.
    pub fn distance(self, other: Self) -> Self {
        Self((self.0 - other.0).abs())
    }

    /// Rounds half away from zero to fewer decimals.
    pub fn rounded(self, decimals: u32) -> Self {
        let step = 10_i128.pow(DECIMALS.saturating_sub(decimals));
        let half = if self.0 < 0 { -step / 2 } else { step / 2 };
        Self((self.0 + half) / step * step)
    }

    /// Whether the number is more than nothing.
    pub fn is_positive(self) -> bool {
        self.0 > 0
    }
}

/// Writes at least two decimals, and no closing zeros after them.
impl fmt::Display for Amount {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (whole, fraction) = (self.0.abs() / ONE, self.0.abs() % ONE);
        let digits = format!("{fraction:06}");
        let (cents, rest) = digits.split_at(2);
        write!(
            formatter,
            "{sign}{whole}.{cents}{}",
            rest.trim_end_matches('0')
        )
    }
}
