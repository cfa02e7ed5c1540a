//! Retention of records: how long an organization keeps them after an event.

use jiff::ToSpan as _;
pub use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::envelope::{EnvelopeKind, EnvelopeStatus, words};
use super::jurisdiction::Jurisdiction;

words! {
    /// Event after which a record is kept for a time.
    EndEvent {
        // Reported by the organization.
        PaidOff = "paid_off",
        Released = "released",
        Declined = "declined",
        Expired = "expired",
        Created = "created",
    }
}

/// Reads a day in ISO 8601.
pub fn parse_day(text: &str) -> Option<Date> {
    text.parse().ok()
}

/// How long records are kept after an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetentionSchedule {
    /// Name, such as `Retail contracts`. Each name is there once.
    #[schemars(length(min = 1, max = 80))]
    pub name: String,
    /// Kind of the envelopes. All kinds when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<EnvelopeKind>,
    /// Jurisdiction of the envelopes, as their `chattel_paper_jurisdiction`. Every one, and none, when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jurisdiction: Option<Jurisdiction>,
    /// Event that the time begins with.
    pub event: EndEvent,
    /// Months from the day of the event, in UTC.
    #[schemars(range(min = 1, max = 1200))]
    pub keep_months: u16,
}

impl RetentionSchedule {
    /// Longest time: a hundred years.
    pub const LONGEST: u16 = 1200;

    /// Whether it is about a record with these facts.
    fn matches(&self, facts: &RetentionFacts) -> bool {
        let of_kind = self.kind.is_none_or(|kind| kind == facts.kind);
        let place = self.jurisdiction.as_ref();
        of_kind && place.is_none_or(|place| Some(place.as_str()) == facts.jurisdiction.as_deref())
    }

    /// Returns how closely it describes its records: a jurisdiction counts more than a kind.
    fn closeness(&self) -> u8 {
        u8::from(self.jurisdiction.is_some()) * 2 + u8::from(self.kind.is_some())
    }

    /// Whether two schedules are about the same records and event.
    pub fn rivals(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.jurisdiction == other.jurisdiction
            && self.event == other.event
    }
}

/// What the retention of a record depends on. Days are in UTC.
#[derive(Clone, Debug)]
pub struct RetentionFacts {
    /// Signed here or uploaded.
    pub kind: EnvelopeKind,
    /// Jurisdiction that the record states.
    pub jurisdiction: Option<String>,
    /// Status of the envelope.
    pub status: EnvelopeStatus,
    /// Day of the creation.
    pub created: Date,
    /// Day on which a declined or expired envelope ended.
    pub ended: Date,
    /// Day of the release.
    pub released: Option<Date>,
    /// Day on which the contract was paid off.
    pub paid_off: Option<Date>,
}

impl RetentionFacts {
    /// Returns the day of an event that has happened.
    fn day_of(&self, event: EndEvent) -> Option<Date> {
        match event {
            EndEvent::PaidOff => self.paid_off,
            EndEvent::Released => self.released,
            EndEvent::Declined => (self.status == EnvelopeStatus::Declined).then_some(self.ended),
            EndEvent::Expired => (self.status == EnvelopeStatus::Expired).then_some(self.ended),
            EndEvent::Created => Some(self.created),
        }
    }

    /// Whether the contract may still be paid off.
    fn is_payable(&self) -> bool {
        let is_over = matches!(
            self.status,
            EnvelopeStatus::Declined | EnvelopeStatus::Expired | EnvelopeStatus::Voided
        );
        self.paid_off.is_none() && !is_over
    }
}

/// Retention of one record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Retention {
    /// Name of the schedule that decides.
    pub schedule: String,
    /// Event of the schedule.
    pub event: EndEvent,
    /// Day of the event. Null while it has not happened.
    #[schemars(with = "Option<String>", extend("format" = "date"))]
    pub event_date: Option<Date>,
    /// Day on which the record is proposed for destruction. Null while the event has not happened.
    #[schemars(with = "Option<String>", extend("format" = "date"))]
    pub destroy_after: Option<Date>,
}

impl Retention {
    /// Returns the retention of a record by the schedules of its organization. None if no schedule gives it a day.
    ///
    /// The closest schedule of each event counts, and of their days the latest. While one of them waits for the contract
    /// to be paid off, there is no day: another schedule must not end the retention of an open contract.
    pub fn of(schedules: &[RetentionSchedule], facts: &RetentionFacts) -> Option<Self> {
        let matching = EndEvent::ALL.iter().filter_map(|event| {
            let all = schedules.iter().filter(|one| one.event == *event);
            all.filter(|one| one.matches(facts))
                .max_by_key(|one| one.closeness())
        });
        let matching: Vec<&RetentionSchedule> = matching.collect();

        let mut waiting = matching.iter().filter(|one| one.event == EndEvent::PaidOff);
        if let Some(schedule) = waiting.find(|_| facts.is_payable()) {
            return Some(Self {
                schedule: schedule.name.clone(),
                event: schedule.event,
                event_date: None,
                destroy_after: None,
            });
        }

        let ended = matching.iter().filter_map(|schedule| {
            let day = facts.day_of(schedule.event)?;
            // A day beyond the calendar is never reached.
            let until = day.checked_add(i64::from(schedule.keep_months).months());
            Some((until.ok()?, day, schedule))
        });
        let (until, day, schedule) = ended.max_by_key(|(until, ..)| *until)?;
        Some(Self {
            schedule: schedule.name.clone(),
            event: schedule.event,
            event_date: Some(day),
            destroy_after: Some(until),
        })
    }

    /// Whether the record is due on a day.
    pub fn is_due(&self, today: Date) -> bool {
        self.destroy_after.is_some_and(|until| until <= today)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    fn schedule(name: &str, event: EndEvent, keep_months: u16) -> RetentionSchedule {
        RetentionSchedule {
            name: name.into(),
            kind: None,
            jurisdiction: None,
            event,
            keep_months,
        }
    }

    fn vaulted() -> RetentionFacts {
        RetentionFacts {
            kind: EnvelopeKind::Esign,
            jurisdiction: Some("US-OH".into()),
            status: EnvelopeStatus::Vaulted,
            created: date(2020, 1, 31),
            ended: date(2020, 2, 3),
            released: None,
            paid_off: None,
        }
    }

    fn days(schedules: &[RetentionSchedule], facts: &RetentionFacts) -> Option<Date> {
        Retention::of(schedules, facts)?.destroy_after
    }

    #[test]
    fn without_a_schedule_nothing_is_ever_due() {
        assert_eq!(Retention::of(&[], &vaulted()), None);
    }

    #[test]
    fn a_month_that_is_too_short_ends_on_its_last_day() {
        let found = days(&[schedule("all", EndEvent::Created, 1)], &vaulted());
        assert_eq!(found, Some(date(2020, 2, 29)));
    }

    #[test]
    fn an_open_contract_has_no_day_while_a_schedule_waits_for_its_payoff() {
        let both = [
            schedule("all", EndEvent::Created, 84),
            schedule("contracts", EndEvent::PaidOff, 24),
        ];
        let waiting = Retention::of(&both, &vaulted()).unwrap();
        assert_eq!(waiting.schedule, "contracts");
        assert_eq!((waiting.event_date, waiting.destroy_after), (None, None));
        assert!(!waiting.is_due(date(2099, 1, 1)));

        // The later of the two days counts.
        let paid = RetentionFacts {
            paid_off: Some(date(2021, 6, 1)),
            ..vaulted()
        };
        assert_eq!(days(&both, &paid), Some(date(2027, 1, 31)));
        let late = RetentionFacts {
            paid_off: Some(date(2026, 6, 1)),
            ..vaulted()
        };
        assert_eq!(days(&both, &late), Some(date(2028, 6, 1)));
    }

    #[test]
    fn a_declined_contract_waits_for_no_payoff() {
        let both = [
            schedule("declined", EndEvent::Declined, 25),
            schedule("contracts", EndEvent::PaidOff, 24),
        ];
        let declined = RetentionFacts {
            status: EnvelopeStatus::Declined,
            ..vaulted()
        };
        assert_eq!(days(&both, &declined), Some(date(2022, 3, 3)));

        let expired = RetentionFacts {
            status: EnvelopeStatus::Expired,
            ..vaulted()
        };
        assert_eq!(days(&both, &expired), None);
    }

    #[test]
    fn the_closest_schedule_of_an_event_counts() {
        let ohio = Jurisdiction::try_from("US-OH".to_owned()).unwrap();
        let all = [
            schedule("all", EndEvent::Created, 1),
            RetentionSchedule {
                kind: Some(EnvelopeKind::Esign),
                ..schedule("signed here", EndEvent::Created, 2)
            },
            RetentionSchedule {
                jurisdiction: Some(ohio),
                ..schedule("Ohio", EndEvent::Created, 3)
            },
        ];
        let found = Retention::of(&all, &vaulted()).unwrap();
        assert_eq!(found.schedule, "Ohio");

        let elsewhere = RetentionFacts {
            jurisdiction: None,
            ..vaulted()
        };
        let found = Retention::of(&all, &elsewhere).unwrap();
        assert_eq!(found.schedule, "signed here");
    }

    #[test]
    fn a_record_is_due_on_its_day() {
        let released = RetentionFacts {
            status: EnvelopeStatus::VaultedOut,
            released: Some(date(2024, 5, 10)),
            ..vaulted()
        };
        let found = Retention::of(&[schedule("out", EndEvent::Released, 12)], &released);
        let found = found.unwrap();
        assert!(!found.is_due(date(2025, 5, 9)));
        assert!(found.is_due(date(2025, 5, 10)));
    }
}
