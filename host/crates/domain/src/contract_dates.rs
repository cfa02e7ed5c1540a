//! Dates of a contract, such as the end of its term, and the notices before them.

use jiff::ToSpan as _;
use jiff::civil::{Date, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::dates::ZoneName;
use crate::facts::{FactKind, FactSheet, FactStatus};

/// Most dates of one contract.
pub const MOST_DATES: usize = 20;

/// Hour of the day at which notices are given, in the organization's time zone.
const HOUR: i8 = 9;

/// A day that matters to a contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContractDate {
    /// What happens on the day, such as `End of the term`. Each name is there once.
    #[schemars(length(min = 1, max = 80))]
    pub name: String,
    /// The day, in ISO 8601.
    #[schemars(with = "String", extend("format" = "date"))]
    pub date: Date,
    /// Days before it on which people are notified, at 9 o'clock in the organization's time zone. 0 is that day.
    #[serde(default)]
    #[schemars(length(max = 5), inner(range(min = 0, max = 365)))]
    pub notice_days: Vec<u16>,
    /// E-mail addresses to notify. Without any, the person who created the envelope is notified.
    #[serde(default)]
    #[schemars(length(max = 10), inner(email))]
    pub notify: Vec<String>,
}

/// Fact that becomes a date of each contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DateOfFact {
    /// Name of the fact in the fact map, such as `maturity_date`. Its kind is `date`; it may come from the text, from a
    /// field or from metadata.
    #[schemars(length(min = 1, max = 200))]
    pub fact: String,
    /// What happens on the day, such as `End of the term`. Each name is there once.
    #[schemars(length(min = 1, max = 80))]
    pub name: String,
    /// Days before it on which people are notified, as in the dates of an envelope.
    #[serde(default)]
    #[schemars(length(max = 5), inner(range(min = 0, max = 365)))]
    pub notice_days: Vec<u16>,
    /// E-mail addresses to notify. Without any, the person who created the envelope is notified.
    #[serde(default)]
    #[schemars(length(max = 10), inner(email))]
    pub notify: Vec<String>,
}

impl DateOfFact {
    /// Returns the date of a contract by its facts. None if the fact is missing, or if its sources differ.
    pub fn of(&self, sheet: &FactSheet) -> Option<ContractDate> {
        let fact = sheet.get(&self.fact)?;
        let is_known = fact.kind == FactKind::Date && fact.status == FactStatus::Known;
        let value = fact.value.as_deref().filter(|_| is_known)?;
        Some(ContractDate {
            name: self.name.clone(),
            date: value.parse().ok()?,
            notice_days: self.notice_days.clone(),
            notify: self.notify.clone(),
        })
    }
}

/// A date, and the notices of it that are left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedDate {
    #[serde(flatten)]
    pub date: ContractDate,
    /// Those of `notice_days` that are to come.
    pub left: Vec<u16>,
}

impl PlannedDate {
    /// Plans the notices that are not past.
    pub fn new(date: ContractDate, zone: &ZoneName, now: Timestamp) -> Self {
        let is_to_come = |days: &u16| date.moment(*days, zone).is_some_and(|at| at > now);
        let left = date.notice_days.iter().copied().filter(is_to_come);
        Self {
            left: left.collect(),
            date,
        }
    }

    /// Returns the time of the next notice.
    pub fn next(&self, zone: &ZoneName) -> Option<Timestamp> {
        let moments = self.left.iter().map(|days| self.date.moment(*days, zone));
        moments.flatten().min()
    }

    /// Takes the notices that are due, and returns the days of the newest. After an outage, the ones before it would
    /// only repeat it.
    pub fn take_due(&mut self, zone: &ZoneName, now: Timestamp) -> Option<u16> {
        let is_due = |days: &u16| self.date.moment(*days, zone).is_none_or(|at| at <= now);
        let (due, left) = self.left.iter().copied().partition(is_due);
        self.left = left;
        let due: Vec<u16> = due;
        due.into_iter().min()
    }
}

/// Returns the days from now until a day, in a time zone; negative once the day is past.
pub fn days_until(date: Date, zone: &ZoneName, now: Timestamp) -> i32 {
    let today = zone.local(now).date();
    // Two dates are never too far apart to be counted.
    today.until(date).map_or(0, |span| span.get_days())
}

impl ContractDate {
    /// Returns the time of the notice so many days before.
    fn moment(&self, days: u16, zone: &ZoneName) -> Option<Timestamp> {
        let day = self.date.checked_sub(i64::from(days).days()).ok()?;
        zone.moment(day.to_datetime(Time::constant(HOUR, 0, 0, 0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(notice_days: &[u16]) -> ContractDate {
        ContractDate {
            name: "End of the term".to_owned(),
            date: "2027-03-15".parse().unwrap(),
            notice_days: notice_days.to_vec(),
            notify: Vec::new(),
        }
    }

    fn new_york() -> ZoneName {
        ZoneName::try_from("America/New_York".to_owned()).unwrap()
    }

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    /// The clocks change between the two notices: New York is five hours behind on the first day, four on the second.
    #[test]
    fn notices_come_at_nine_in_the_zone_of_the_organization() {
        let zone = new_york();
        let mut planned = PlannedDate::new(date(&[0, 7]), &zone, at("2027-01-01T00:00:00.000Z"));
        let first = at("2027-03-08T14:00:00.000Z");
        assert_eq!(planned.next(&zone), Some(first));
        assert_eq!(
            planned.take_due(&zone, at("2027-03-08T13:59:59.000Z")),
            None
        );
        assert_eq!(planned.take_due(&zone, first), Some(7));

        let second = at("2027-03-15T13:00:00.000Z");
        assert_eq!(planned.next(&zone), Some(second));
        assert_eq!(planned.take_due(&zone, second), Some(0));
        assert_eq!(planned.next(&zone), None);
    }

    #[test]
    fn notices_of_the_past_are_not_planned() {
        let now = at("2027-03-01T00:00:00.000Z");
        assert_eq!(PlannedDate::new(date(&[30, 7]), &new_york(), now).left, [7]);
    }

    #[test]
    fn after_an_outage_one_notice_is_given() {
        let zone = new_york();
        let mut planned =
            PlannedDate::new(date(&[30, 7, 0]), &zone, at("2027-01-01T00:00:00.000Z"));
        assert_eq!(
            planned.take_due(&zone, at("2027-03-10T00:00:00.000Z")),
            Some(7)
        );
        assert_eq!(planned.left, [0]);
    }

    /// In New York, the sixteenth begins at four o'clock in UTC.
    #[test]
    fn a_late_notice_counts_from_today_in_the_zone_of_the_organization() {
        let days = |now| days_until(date(&[]).date, &new_york(), at(now));
        assert_eq!(days("2027-03-10T12:00:00.000Z"), 5);
        assert_eq!(days("2027-03-16T03:59:59.000Z"), 0);
        assert_eq!(days("2027-03-16T04:00:00.000Z"), -1);
    }
}
