//! Limits of numbers and dates.

use jiff::ToSpan as _;
use jiff::civil::Date;
use rust_decimal::Decimal;

/// Reads a number as signers and authors write it. Exact, because it is mostly an amount of money.
pub(super) fn decimal(text: &str) -> Option<Decimal> {
    let text = text.trim();
    // Number fields of browsers accept 1e3, too.
    let read = Decimal::from_str_exact(text).or_else(|_| Decimal::from_scientific(text));
    read.ok()
}

/// A day, or a number of days from the day of signing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum DateLimit {
    Day(Date),
    FromToday(i32),
}

impl DateLimit {
    /// Parses `2026-01-31`, `today`, `today+30` or `today-1`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        let Some(rest) = text.strip_prefix("today") else {
            return text.parse().ok().map(Self::Day);
        };

        let rest: String = rest.split_whitespace().collect();
        if rest.is_empty() {
            return Some(Self::FromToday(0));
        }

        // Without the sign, `today30` would count as a limit.
        let is_signed = rest.starts_with(['+', '-']);
        let days = rest.parse::<i32>().ok().filter(|_| is_signed)?;
        (days.abs() <= 73_000).then_some(Self::FromToday(days))
    }

    /// Returns the day that the limit means.
    pub(super) fn day(self, today: Date) -> Option<Date> {
        match self {
            Self::Day(day) => Some(day),
            Self::FromToday(days) => today.checked_add(days.days()).ok(),
        }
    }

    /// Returns whether this limit is later than another on every day.
    pub(super) fn is_after(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Day(this), Self::Day(other)) => this > other,
            (Self::FromToday(this), Self::FromToday(other)) => this > other,
            _ => false,
        }
    }
}
