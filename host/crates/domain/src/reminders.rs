//! Reminders that are sent without a person's call: when, how often, and at which hours.

use std::time::Duration;

use jiff::ToSpan as _;
use jiff::civil::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::dates::ZoneName;
use crate::id::SignerId;

const DAY: Duration = Duration::from_secs(86_400);

/// When signers who have not signed are reminded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReminderPlan {
    /// Days from a signer's last message, such as the invitation, to the first reminder by the plan.
    #[schemars(range(min = 1, max = 90))]
    pub first_after_days: u8,
    /// Days from a reminder of a signer to the next one.
    #[schemars(range(min = 1, max = 90))]
    pub every_days: u8,
    /// Most reminders of one envelope. 0 sends none.
    #[schemars(range(min = 0, max = 30))]
    pub at_most: u8,
    /// Days before the envelope expires on which those who can sign get one more reminder, beyond `at_most`. None when
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 90))]
    pub before_expiry_days: Option<u8>,
}

impl ReminderPlan {
    /// Returns the member that is out of its range, and the range.
    pub fn problem(&self) -> Option<(&'static str, &'static str)> {
        let days = 1..=90;
        if !days.contains(&self.first_after_days) {
            return Some(("first_after_days", "1 to 90"));
        }
        if !days.contains(&self.every_days) {
            return Some(("every_days", "1 to 90"));
        }
        let before = self.before_expiry_days;
        if before.is_some_and(|before| !days.contains(&before)) {
            return Some(("before_expiry_days", "1 to 90"));
        }
        (self.at_most > 30).then_some(("at_most", "0 to 30"))
    }

    /// Returns when those who can sign are warned that the envelope expires.
    pub fn warning(&self, expires_at: Timestamp) -> Option<Timestamp> {
        let days = self.before_expiry_days?;
        Some(expires_at - DAY * u32::from(days))
    }

    /// Returns how long after the last message to a signer the next reminder is due.
    pub fn wait(&self, is_first: bool) -> Duration {
        let days = if is_first {
            self.first_after_days
        } else {
            self.every_days
        };
        DAY * u32::from(days)
    }
}

/// A plan, and the reminders of it that were sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedReminders {
    #[serde(flatten)]
    pub plan: ReminderPlan,
    /// Reminders sent by the plan.
    pub sent: u8,
    /// Signers that the plan has reminded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reminded: Vec<SignerId>,
    /// Time limit that signers were warned of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warned_of: Option<Timestamp>,
    /// Signers who were warned of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warned: Vec<SignerId>,
}

impl PlannedReminders {
    /// Returns a plan that has sent no reminders.
    pub fn new(plan: ReminderPlan) -> Self {
        Self {
            plan,
            sent: 0,
            reminded: Vec::new(),
            warned_of: None,
            warned: Vec::new(),
        }
    }

    /// Returns when a signer is reminded next, who got the last message at this time.
    pub fn due(&self, signer: &SignerId, last: Timestamp) -> Timestamp {
        last + self.plan.wait(!self.reminded.contains(signer))
    }
}

/// Hours without reminders, in the organization's time zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuietHours {
    /// Time of the day at which they begin, such as `20:00`.
    #[schemars(with = "String", regex(pattern = "^[0-2][0-9]:[0-5][0-9]$"))]
    pub from: DayTime,
    /// Time of the day, of the next one if it is earlier, at which they end.
    #[schemars(with = "String", regex(pattern = "^[0-2][0-9]:[0-5][0-9]$"))]
    pub until: DayTime,
}

/// Hour and minute of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DayTime(Time);

impl TryFrom<String> for DayTime {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let refuse =
            || format!("{text} is no time of the day; write hours and minutes, as in 20:00");
        if text.len() != 5 {
            return Err(refuse());
        }
        Time::strptime("%H:%M", &text)
            .map(Self)
            .map_err(|_| refuse())
    }
}

impl From<DayTime> for String {
    fn from(DayTime(time): DayTime) -> Self {
        time.strftime("%H:%M").to_string()
    }
}

impl QuietHours {
    /// Returns the end of the quiet hours that `now` lies in, if it does. In the hour that a change of the clocks
    /// repeats, the end may have passed.
    pub fn end(&self, zone: &ZoneName, now: Timestamp) -> Option<Timestamp> {
        let (DayTime(from), DayTime(until)) = (self.from, self.until);
        let local = zone.local(now);
        let time = local.time();

        let (is_quiet, is_tomorrow) = if from <= until {
            (from <= time && time < until, false)
        } else {
            (time >= from || time < until, time >= from)
        };
        if !is_quiet {
            return None;
        }

        let day = if is_tomorrow {
            local.date().checked_add(1.day()).ok()?
        } else {
            local.date()
        };
        zone.moment(day.to_datetime(until)).filter(|end| *end > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(from: &str, until: &str) -> QuietHours {
        QuietHours {
            from: DayTime::try_from(from.to_owned()).unwrap(),
            until: DayTime::try_from(until.to_owned()).unwrap(),
        }
    }

    fn zone(name: &str) -> ZoneName {
        ZoneName::try_from(name.to_owned()).unwrap()
    }

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn quiet_hours_over_midnight_end_in_the_morning() {
        let (night, zone) = (hours("20:00", "08:00"), zone("America/New_York"));
        let end = |text: &str| night.end(&zone, at(text));

        // New York is five hours behind in November.
        assert_eq!(end("2026-11-10T00:59:59.000Z"), None);
        let morning = Some(at("2026-11-10T13:00:00.000Z"));
        assert_eq!(end("2026-11-10T01:00:00.000Z"), morning);
        assert_eq!(end("2026-11-10T12:59:59.000Z"), morning);
        assert_eq!(end("2026-11-10T13:00:00.000Z"), None);
    }

    #[test]
    fn quiet_hours_within_a_day_end_on_it() {
        let (noon, zone) = (hours("12:00", "13:30"), zone("UTC"));
        assert_eq!(noon.end(&zone, at("2026-11-10T11:59:00.000Z")), None);
        assert_eq!(
            noon.end(&zone, at("2026-11-10T12:00:00.000Z")),
            Some(at("2026-11-10T13:30:00.000Z"))
        );
    }

    /// On 1 November 2026 the hour from 01:00 comes twice in New York.
    #[test]
    fn quiet_hours_end_once_in_a_repeated_hour() {
        let (night, zone) = (hours("20:00", "01:30"), zone("America/New_York"));
        let end = |text: &str| night.end(&zone, at(text));
        let first = Some(at("2026-11-01T05:30:00.000Z"));
        assert_eq!(end("2026-11-01T05:10:00.000Z"), first);
        assert_eq!(end("2026-11-01T06:10:00.000Z"), None);
    }

    #[test]
    fn equal_times_are_no_quiet_hours() {
        let none = hours("08:00", "08:00");
        assert_eq!(none.end(&zone("UTC"), at("2026-11-10T08:00:00.000Z")), None);
    }

    #[test]
    fn a_time_of_the_day_has_hours_and_minutes() {
        for wrong in ["24:00", "8:00", "08:60", "08:00:00", "eight", ""] {
            assert!(DayTime::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
        let text: String = hours("07:05", "08:00").from.into();
        assert_eq!(text, "07:05");
    }

    #[test]
    fn a_plan_out_of_its_ranges_names_the_member() {
        let plan = ReminderPlan {
            first_after_days: 3,
            every_days: 2,
            at_most: 5,
            before_expiry_days: Some(2),
        };
        assert_eq!(plan.problem(), None);
        assert_eq!((plan.wait(true), plan.wait(false)), (DAY * 3, DAY * 2));
        let warning = plan.warning(at("2026-11-10T12:00:00.000Z"));
        assert_eq!(warning, Some(at("2026-11-08T12:00:00.000Z")));

        for (name, wrong) in [
            (
                "first_after_days",
                ReminderPlan {
                    first_after_days: 0,
                    ..plan
                },
            ),
            (
                "every_days",
                ReminderPlan {
                    every_days: 91,
                    ..plan
                },
            ),
            (
                "at_most",
                ReminderPlan {
                    at_most: 31,
                    ..plan
                },
            ),
            (
                "before_expiry_days",
                ReminderPlan {
                    before_expiry_days: Some(0),
                    ..plan
                },
            ),
        ] {
            assert_eq!(wrong.problem().map(|(member, _)| member), Some(name));
        }
    }
}
