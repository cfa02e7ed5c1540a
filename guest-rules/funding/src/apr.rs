//! The annual percentage rate by the actuarial method (12 CFR part 1026, appendix J).
//!
//! The rate of one unit-period is searched in integers with 56 binary places. Its error is below 10⁻¹¹, and the
//! result is rounded to a millionth of a percentage point.

use crate::amount::Amount;
use crate::date::Date;

/// Binary places of rates and discounts.
const PLACES: u32 = 56;
const ONE: u128 = 1 << PLACES;
/// Advances or payments of a schedule. A discounted sum of so many units still fits.
const MOST_PAYMENTS: u32 = 1000;
/// Latest begin of a run, in unit-periods: more than a century of days. Later ones would leave the integers.
const LATEST: u32 = 40_000;
/// Binary places that differences lose before they are multiplied by a rate.
const LOST: u32 = 48;
/// Width of the interval at which the search ends.
const NARROW: u128 = 1 << 14;
/// Lowest rate at which an interval of the search ends, for several advances: about 0.006 % for one unit-period.
const LOWEST: u128 = ONE >> 14;
/// Steps of the search. It needs about twelve.
const STEPS: usize = 200;

/// Unit-period: the interval between payments that occurs most often (appendix J, (b)(4)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitPeriod {
    /// A day.
    Day,
    /// A number of weeks.
    Weeks(u32),
    /// Half a month.
    HalfMonth,
    /// A number of months below twelve.
    Months(u32),
    /// A year.
    Year,
    /// The term of a single payment in less than a year, in days.
    TermOfDays(u32),
    /// The term of a single payment in less than a year, in months.
    TermOfMonths(u32),
}

impl UnitPeriod {
    /// Unit-periods of a year, as numerator and denominator.
    fn per_year(self) -> (u128, u128) {
        match self {
            Self::Day => (365, 1),
            Self::Weeks(weeks) => (52, weeks.into()),
            Self::HalfMonth => (24, 1),
            Self::Months(months) => (12, months.into()),
            Self::Year => (1, 1),
            Self::TermOfDays(days) => (365, days.into()),
            Self::TermOfMonths(months) => (12, months.into()),
        }
    }
}

/// Time from the beginning of the term to an advance or a payment: whole unit-periods and a fraction of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Whole unit-periods.
    pub periods: u32,
    /// Numerator and denominator of the fraction.
    pub fraction: (u32, u32),
}

impl Position {
    /// Measures the time between two dates (appendix J, (b)(5)). None if the second is earlier.
    pub fn between(unit: UnitPeriod, from: Date, to: Date) -> Option<Self> {
        let days = u32::try_from(to.days() - from.days()).ok()?;
        let (months, begins) = to.months_since(from);
        let months = u32::try_from(months).ok()?;
        let odd_days = u32::try_from(begins.days() - from.days()).ok()?;
        // Months are equal: each has thirty days.
        let equal_days = months.checked_mul(30)?.checked_add(odd_days)?;
        let divided = |days: u32, by: u32| Self {
            periods: days / by,
            fraction: (days % by, by),
        };

        Some(match unit {
            UnitPeriod::Day => divided(days, 1),
            UnitPeriod::Weeks(weeks) => divided(days, weeks.checked_mul(7)?.max(1)),
            UnitPeriod::HalfMonth => divided(equal_days, 15),
            UnitPeriod::Months(1) => Self {
                periods: months,
                fraction: (odd_days, 30),
            },
            UnitPeriod::Months(number) => divided(equal_days, number.checked_mul(30)?.max(1)),
            UnitPeriod::Year if odd_days == 0 => divided(months, 12),
            UnitPeriod::Year => {
                let years = months / 12;
                let begins = to.plus_months(-i32::try_from(years * 12).ok()?);
                let rest = u32::try_from(begins.days() - from.days()).ok()?;
                Self {
                    periods: years,
                    fraction: (rest, 365),
                }
            }
            // The term is the unit-period.
            UnitPeriod::TermOfDays(_) | UnitPeriod::TermOfMonths(_) => Self {
                periods: 1,
                fraction: (0, 1),
            },
        })
    }

    /// Returns the position a number of unit-periods later.
    pub fn later(self, periods: u32) -> Option<Self> {
        Some(Self {
            periods: self.periods.checked_add(periods)?,
            ..self
        })
    }
}

/// Equal advances or payments, one unit-period apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Amount of each of them.
    pub amount: Amount,
    /// Number of them.
    pub count: u32,
    /// Time of the first one.
    pub first: Position,
}

impl Run {
    /// Returns the run of one advance at the beginning of the term.
    pub fn at_once(amount: Amount) -> Self {
        Self {
            amount,
            count: 1,
            first: Position {
                periods: 0,
                fraction: (0, 1),
            },
        }
    }
}

/// Computes the annual percentage rate of advances and payments, in percent. None if there is no advance or payment, or too
/// many; if one begins after more than a century; if the payments do not exceed the advances; or if the rate is above 100 %
/// for one unit-period.
pub fn annual_percentage_rate(
    unit: UnitPeriod,
    advances: &[Run],
    payments: &[Run],
) -> Option<Amount> {
    let (advanced, paid) = (sum(advances)?, sum(payments)?);
    let is_usable = |run: &Run| run.amount.is_positive() && run.first.periods <= LATEST;
    if paid <= advanced || !advances.iter().chain(payments).all(is_usable) {
        return None;
    }

    let rate = rate_of_unit_period(advances, payments)?;
    let (numerator, denominator) = unit.per_year();
    let divisor = denominator * ONE;
    let millionths = (rate * 100_000_000 * numerator + divisor / 2) / divisor;

    i128::try_from(millionths).ok().map(Amount::of_millionths)
}

/// Sum of all amounts; none if there are none or too many, or if it is too large.
fn sum(runs: &[Run]) -> Option<Amount> {
    let number = runs
        .iter()
        .try_fold(0_u32, |number, run| number.checked_add(run.count))?;
    if number == 0 || number > MOST_PAYMENTS {
        return None;
    }

    runs.iter().try_fold(Amount::default(), |sum, run| {
        sum.plus(run.amount.times(run.count)?)
    })
}

/// Searches the rate at which the payments are worth the advances, by the Illinois variant of regula falsi: both ends of the
/// interval enclose it all the time.
fn rate_of_unit_period(advances: &[Run], payments: &[Run]) -> Option<u128> {
    let surplus = |rate| present_value(rate, payments) - present_value(rate, advances);
    let reduced = |surplus: i128| surplus >> LOST;
    let end = upper_end(advances, |rate| reduced(surplus(rate)))?;
    let (mut low, mut high) = (0_u128, end);
    let (mut above, mut below) = (reduced(surplus(low)), reduced(surplus(high)));

    let mut previous_side = 0;
    for _ in 0..STEPS {
        if high - low <= NARROW || above == 0 {
            break;
        }

        let width = i128::try_from(high - low).ok()?;
        let step = width.checked_mul(above)? / (above - below);
        // The step stays inside, or the interval would no longer shrink.
        let middle = (low + u128::try_from(step).ok()?).clamp(low + 1, high - 1);
        let value = reduced(surplus(middle));
        let side = value.signum();
        match side {
            0 => return Some(middle),
            1 => {
                (low, above) = (middle, value);
                if previous_side == 1 {
                    below /= 2;
                }
            }
            _ => {
                (high, below) = (middle, value);
                if previous_side == -1 {
                    above /= 2;
                }
            }
        }

        // A weight of nothing would stop the search at one end.
        above = above.max(1);
        below = below.min(-1);
        previous_side = side;
    }

    Some(low.midpoint(high))
}

/// Returns a rate above the one that is searched, at which the payments are worth less than the advances. None if there is no
/// such rate up to 100 %.
fn upper_end(advances: &[Run], surplus: impl Fn(u128) -> i128) -> Option<u128> {
    // After a single advance, the value falls with the rate.
    if let [_] = advances {
        return (surplus(ONE) <= 0).then_some(ONE);
    }

    // Payments before an advance can make it rise again, and then several rates solve the equation. The lowest one counts.
    let mut rate = LOWEST;
    while rate < ONE {
        if surplus(rate) <= 0 {
            return Some(rate);
        }
        rate += rate / 8;
    }

    (surplus(ONE) <= 0).then_some(ONE)
}

/// Value of all amounts at the beginning of the term, in millionths with binary places (appendix J, (b)(8)).
fn present_value(rate: u128, runs: &[Run]) -> i128 {
    let factor = ONE + rate;
    let discount = ((ONE << PLACES) + factor / 2) / factor;
    let values = runs.iter().map(|run| {
        let (numerator, denominator) = run.first.fraction;
        // Interest of a fraction of a unit-period is simple.
        let odd = ONE + rate * u128::from(numerator) / u128::from(denominator.max(1));
        let (units, _) = annuity(discount, run.count);
        let (_, delay) = annuity(discount, run.first.periods);
        let units = ((product(units, delay) << PLACES) + odd / 2) / odd;
        i128::try_from(units).unwrap_or(i128::MAX >> PLACES) * run.amount.millionths()
    });

    values.sum()
}

/// Returns `1 + v + … + v^(count-1)`, and `v^count`. Doubling the number of terms needs no division, so that a rate near
/// zero loses no digits.
fn annuity(discount: u128, count: u32) -> (u128, u128) {
    let (mut sum, mut power) = (0, ONE);
    for bit in (0..u32::BITS - count.leading_zeros()).rev() {
        sum = product(sum, ONE + power);
        power = product(power, power);
        if count >> bit & 1 == 1 {
            sum += power;
            power = product(power, discount);
        }
    }

    (sum, power)
}

fn product(left: u128, right: u128) -> u128 {
    (left * right + ONE / 2) >> PLACES
}
