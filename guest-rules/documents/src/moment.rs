//! Points in time, as given by the facts; this component has no clock.

use krilla::metadata::DateTime;

use crate::error::{Result, other};

/// An RFC 3339 time in UTC, to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CalendarTime {
    year: u16,
    month: u8,
    day: u8,
    hour: u8,
    minute: u8,
    second: u8,
}

impl CalendarTime {
    /// Reads `2026-05-01T12:30:00.123Z`; fractions of a second are dropped.
    pub(crate) fn parse(text: &str, name: &str) -> Result<Self> {
        Self::read(text)
            .ok_or_else(|| other(format!("{name} is no RFC 3339 time in UTC: {text:?}")))
    }

    fn read(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let layout = bytes.len() >= 20
            && bytes[4] == b'-'
            && bytes[7] == b'-'
            && bytes[10] == b'T'
            && bytes[13] == b':'
            && bytes[16] == b':';

        // The text comes from a caller. `get` refuses a place inside a character, where slicing would panic.
        let zone = text.get(19..)?;
        let fraction = zone
            .strip_suffix('Z')
            .or_else(|| zone.strip_suffix("+00:00"))?;
        let fraction_is_sound = fraction.is_empty()
            || fraction.strip_prefix('.').is_some_and(|digits| {
                !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
            });
        if !layout || !fraction_is_sound {
            return None;
        }

        // Parsing alone would take a sign for a digit.
        let number = |from: usize, to: usize| -> Option<u16> {
            let digits = text.get(from..to)?;
            digits
                .bytes()
                .all(|byte| byte.is_ascii_digit())
                .then(|| digits.parse().ok())?
        };
        let small = |from: usize, lowest: u16, highest: u16| -> Option<u8> {
            let value = number(from, from + 2)?;
            (lowest..=highest)
                .contains(&value)
                .then(|| u8::try_from(value).ok())?
        };

        Some(Self {
            year: number(0, 4)?,
            month: small(5, 1, 12)?,
            day: small(8, 1, 31)?,
            hour: small(11, 0, 23)?,
            minute: small(14, 0, 59)?,
            // 60 is a leap second (RFC 3339, 5.6).
            second: small(17, 0, 60)?,
        })
    }

    pub(crate) fn to_krilla(self) -> DateTime {
        DateTime::new(self.year)
            .month(self.month)
            .day(self.day)
            .hour(self.hour)
            .minute(self.minute)
            .second(self.second)
            .utc_offset_hour(0)
    }

    /// Formats the time as `D:20260501123000Z` (ISO 32000-1, 7.9.4).
    pub(crate) fn in_pdf(self) -> String {
        format!(
            "D:{:04}{:02}{:02}{:02}{:02}{:02}Z",
            self.year, self.month, self.day, self.hour, self.minute, self.second
        )
    }

    /// Formats the time as `1 May 2026, 12:30:00 UTC`, which reads the same in the US and in
    /// Europe.
    pub(crate) fn in_words(self) -> String {
        const MONTHS: [&str; 12] = [
            "January",
            "February",
            "March",
            "April",
            "May",
            "June",
            "July",
            "August",
            "September",
            "October",
            "November",
            "December",
        ];

        let month = MONTHS[usize::from(self.month.clamp(1, 12)) - 1];
        format!(
            "{} {month} {}, {:02}:{:02}:{:02} UTC",
            self.day, self.year, self.hour, self.minute, self.second
        )
    }
}

/// Returns a fact's time in words, or the fact unchanged if it is not a time.
pub(crate) fn in_words(text: &str) -> String {
    CalendarTime::read(text).map_or_else(|| text.to_owned(), CalendarTime::in_words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_times_with_and_without_fractions() {
        let moment = CalendarTime::parse("2026-05-01T12:30:09.123Z", "at").unwrap();
        assert_eq!(moment.in_words(), "1 May 2026, 12:30:09 UTC");
        assert!(CalendarTime::parse("2026-05-01T12:30:09Z", "at").is_ok());
    }

    #[test]
    fn an_invalid_time_is_refused() {
        for text in [
            "",
            "2026-05-01",
            "2026-13-01T00:00:00Z",
            "2026-05-01T12:30:09+02:00",
            "2026-05-01T12:30:09.Z",
            "２０２６-05-01T12:30:09Z",
        ] {
            assert!(CalendarTime::parse(text, "at").is_err(), "{text}");
        }
    }
}
