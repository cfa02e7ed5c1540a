//! Exact decimal numbers of conditions, with six decimals. Products and quotients are rounded half away from zero.

use std::any::Any;
use std::cmp::Ordering;

use cel::ExecutionError;
use cel::common::traits::{Adder, Comparer, Divider, Multiplier, Negator, Subtractor};
use cel::common::types::{CelDouble, CelInt, CelString, CelUInt, Type};
use cel::common::value::{CowVal, StaticVal, Val};

use crate::amount::Amount;

static DECIMAL: Type = Type::new_unspecified_type("decimal");
/// Millionths of one.
const ONE: i128 = 1_000_000;

/// Number of a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal(pub Amount);

/// Function `decimal`: reads a text.
pub fn decimal(text: &CelString<'_>) -> Result<Decimal, ExecutionError> {
    let text = text.inner();
    let amount = Amount::parse(text);
    amount.map(Decimal).ok_or_else(|| {
        let why = format!("{text} is no number with at most six decimals");
        ExecutionError::function_error("decimal", why)
    })
}

/// Returns the amount of a number. Literals of the language are binary fractions; their shortest decimal form is the one that
/// was written.
fn amount_of(value: &dyn Val) -> Option<Amount> {
    if let Some(decimal) = value.downcast_ref::<Decimal>() {
        return Some(decimal.0);
    }

    let text = if let Some(number) = value.downcast_ref::<CelInt>() {
        number.inner().to_string()
    } else if let Some(number) = value.downcast_ref::<CelUInt>() {
        number.inner().to_string()
    } else {
        value.downcast_ref::<CelDouble>()?.inner().to_string()
    };
    Amount::parse(&text)
}

/// Divides half away from zero.
fn divided(numerator: i128, denominator: i128) -> Option<Amount> {
    let half = denominator.abs() / 2;
    let sign = numerator.signum() * denominator.signum();
    let quotient = (numerator.abs() + half).checked_div(denominator.abs())?;
    // Adding nothing checks the range.
    Amount::of_millionths(sign * quotient).plus(Amount::default())
}

impl Decimal {
    /// Combines two numbers.
    fn with<'b, 'v>(
        self,
        operator: &str,
        other: &(dyn Val + 'v),
        result: impl Fn(Amount, Amount) -> Option<Amount>,
    ) -> Result<CowVal<'b, 'v>, ExecutionError> {
        let other = amount_of(other).ok_or_else(|| {
            ExecutionError::function_error(operator, "the other value is no number")
        })?;
        let result = result(self.0, other);
        let result = result.ok_or_else(|| {
            ExecutionError::function_error(
                operator,
                "the result is too large, or a division by zero",
            )
        })?;

        Ok(CowVal::owned(Self(result)))
    }
}

impl Val for Decimal {
    fn get_type(&self) -> &Type {
        <Self as Val>::cel_type()
    }

    fn cel_type() -> &'static Type {
        &DECIMAL
    }

    fn as_adder<'b, 'v>(&'b self) -> Option<&'b (dyn Adder + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_comparer(&self) -> Option<&dyn Comparer> {
        Some(self)
    }

    fn as_divider<'b, 'v>(&'b self) -> Option<&'b (dyn Divider + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_multiplier<'b, 'v>(&'b self) -> Option<&'b (dyn Multiplier + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_negator<'b, 'v>(&'b self) -> Option<&'b (dyn Negator + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_subtractor<'b, 'v>(&'b self) -> Option<&'b (dyn Subtractor + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn equals(&self, other: &dyn Val) -> bool {
        amount_of(other) == Some(self.0)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(*self)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Decimal {}

impl Adder for Decimal {
    fn add<'b, 'v>(&'b self, rhs: &(dyn Val + 'v)) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.with("+", rhs, Amount::plus)
    }
}

impl Subtractor for Decimal {
    fn sub<'b, 'v>(&'b self, rhs: &(dyn Val + 'v)) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.with("-", rhs, Amount::minus)
    }
}

impl Multiplier for Decimal {
    fn mul<'b, 'v>(&'b self, rhs: &(dyn Val + 'v)) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.with("*", rhs, |one, other| {
            divided(one.millionths().checked_mul(other.millionths())?, ONE)
        })
    }
}

impl Divider for Decimal {
    fn div<'b, 'v>(&'b self, rhs: &(dyn Val + 'v)) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.with("/", rhs, |one, other| {
            divided(one.millionths() * ONE, other.millionths())
        })
    }
}

impl Negator for Decimal {
    fn negate<'v>(&self) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        Ok(Box::new(Self(Amount::of_millionths(-self.0.millionths()))))
    }
}

impl Comparer for Decimal {
    fn compare(&self, rhs: &dyn Val) -> Result<Ordering, ExecutionError> {
        let other = amount_of(rhs).ok_or_else(|| {
            ExecutionError::function_error("compare", "the other value is no number")
        })?;
        Ok(self.0.cmp(&other))
    }
}
