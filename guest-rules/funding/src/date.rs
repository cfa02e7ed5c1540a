//! Dates of the proleptic Gregorian calendar.

use std::fmt;

/// A day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    year: i32,
    month: i32,
    day: i32,
}

impl Date {
    /// Parses `2026-06-03`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let mut part = |length: usize| {
            let part = parts.next().filter(|part| part.len() == length)?;
            let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse::<i32>().ok().filter(|_| is_number)
        };
        let (year, month, day) = (part(4)?, part(2)?, part(2)?);
        let is_day = (1..=12).contains(&month) && (1..=days_of(year, month)).contains(&day);

        (is_day && parts.next().is_none()).then_some(Self { year, month, day })
    }

    /// Days since 1970-01-01.
    pub fn days(self) -> i64 {
        // The year begins in March, so that the leap day is its last.
        let year = i64::from(self.year) - i64::from(self.month <= 2);
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let month = i64::from((self.month + 9) % 12);
        let day_of_year = (153 * month + 2) / 5 + i64::from(self.day) - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;

        era * 146_097 + day_of_era - 719_468
    }

    /// Returns the same day of a month before or after, or the last one of a shorter month.
    pub fn plus_months(self, months: i32) -> Self {
        let month = self.year * 12 + self.month - 1 + months;
        let (year, month) = (month.div_euclid(12), month.rem_euclid(12) + 1);
        Self {
            year,
            month,
            day: self.day.min(days_of(year, month)),
        }
    }

    /// Returns the last day of the month.
    pub fn end_of_month(self) -> Self {
        Self {
            day: days_of(self.year, self.month),
            ..self
        }
    }

    /// Whether the month has no later day.
    pub fn is_end_of_month(self) -> bool {
        self == self.end_of_month()
    }

    /// Returns the number of whole months from `start` to here, measured back from here, and the day on which the first of
    /// these months begins.
    pub fn months_since(self, start: Self) -> (i32, Self) {
        let mut months = (self.year - start.year) * 12 + self.month - start.month;
        let mut begins = self.months_before(months);
        if begins < start {
            months -= 1;
            begins = self.months_before(months);
        }

        (months, begins)
    }

    /// Months before the last day of a month lead to last days.
    fn months_before(self, months: i32) -> Self {
        let before = self.plus_months(-months);
        if self.is_end_of_month() {
            before.end_of_month()
        } else {
            before
        }
    }
}

impl fmt::Display for Date {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{:04}-{:02}-{:02}",
            self.year, self.month, self.day
        )
    }
}

fn days_of(year: i32, month: i32) -> i32 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}
