//! How an organization writes dates in documents, and when its day begins.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;

/// Value of a date field that the host replaces by the day on which its signer finishes, as
/// DocuSeal does.
pub const DAY_OF_SIGNING: &str = "{{date}}";

/// Dates of an organization.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DateSettings {
    /// Form of dates in signed documents.
    pub format: DateFormat,
    /// Zone of the day of signing.
    pub time_zone: ZoneName,
}

/// Form of a date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DateFormat {
    /// `2026-11-25` (ISO 8601).
    #[default]
    Iso,
    /// `11/25/2026`.
    MonthFirst,
    /// `25/11/2026`.
    DayFirst,
    /// `25.11.2026`.
    Dotted,
}

/// Name of a time zone in the IANA database, for example `America/New_York`.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("examples" = ["America/New_York"]))]
pub struct ZoneName(jiff::tz::TimeZone);

impl Default for ZoneName {
    fn default() -> Self {
        Self(jiff::tz::TimeZone::UTC)
    }
}

impl fmt::Debug for ZoneName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl ZoneName {
    /// Name in the IANA database.
    pub fn as_str(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// Returns date and time of day in the zone.
    pub fn local(&self, at: Timestamp) -> jiff::civil::DateTime {
        at.civil_in(&self.0)
    }

    /// Returns the instant of a date and time of day in the zone.
    pub fn moment(&self, local: jiff::civil::DateTime) -> Option<Timestamp> {
        let zoned = self.0.to_zoned(local).ok()?;
        Some(Timestamp::from_millis(zoned.timestamp().as_millisecond()))
    }
}

impl ZoneName {
    /// Returns the moment of a local time as forms have it, such as `2026-11-05T09:30`; none for another text.
    pub fn moment_of(&self, local: &str) -> Option<Timestamp> {
        self.moment(local.parse().ok()?)
    }
}

impl TryFrom<String> for ZoneName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        jiff::tz::TimeZone::get(&name)
            .map(Self)
            .map_err(|_| format!("{name} is no time zone; use a name such as America/New_York"))
    }
}

impl From<ZoneName> for String {
    fn from(zone: ZoneName) -> Self {
        zone.as_str().to_owned()
    }
}

impl DateFormat {
    /// Name in settings and pages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Iso => "iso",
            Self::MonthFirst => "month_first",
            Self::DayFirst => "day_first",
            Self::Dotted => "dotted",
        }
    }

    /// Reads a name.
    pub fn parse(name: &str) -> Option<Self> {
        let known = [Self::Iso, Self::MonthFirst, Self::DayFirst, Self::Dotted];
        known.into_iter().find(|format| format.as_str() == name)
    }

    /// Writes a date that is given in ISO 8601. Other text is returned unchanged.
    pub fn written(self, value: &str) -> String {
        let pattern = match self {
            Self::Iso => "%Y-%m-%d",
            Self::MonthFirst => "%m/%d/%Y",
            Self::DayFirst => "%d/%m/%Y",
            Self::Dotted => "%d.%m.%Y",
        };

        match value.parse::<jiff::civil::Date>() {
            Ok(date) => date.strftime(pattern).to_string(),
            Err(_) => value.to_owned(),
        }
    }
}

impl DateSettings {
    /// Returns date and time of day in the organization's time zone.
    pub fn local(&self, at: Timestamp) -> jiff::civil::DateTime {
        self.time_zone.local(at)
    }

    /// Returns the organization's day at an instant, in ISO 8601.
    pub fn day(&self, at: Timestamp) -> String {
        at.date_in(&self.time_zone.0).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(json: &str) -> Result<DateSettings, serde_json::Error> {
        serde_json::from_str(json)
    }

    #[test]
    fn dates_are_written_in_the_organizations_format() {
        for (format, expected) in [
            ("iso", "2026-11-05"),
            ("month_first", "11/05/2026"),
            ("day_first", "05/11/2026"),
            ("dotted", "05.11.2026"),
        ] {
            let dates = settings(&format!(r#"{{"format":"{format}"}}"#)).unwrap();
            assert_eq!(dates.format.written("2026-11-05"), expected);
            assert_eq!(dates.format.as_str(), format);
            assert_eq!(DateFormat::parse(format), Some(dates.format));
            assert_eq!(dates.format.written("next week"), "next week");
        }
    }

    #[test]
    fn the_day_of_signing_is_that_of_the_organizations_time_zone() {
        let evening = Timestamp::parse("2026-11-25T23:30:00Z").unwrap();
        for (zone, day) in [
            ("UTC", "2026-11-25"),
            ("Europe/Berlin", "2026-11-26"),
            ("America/New_York", "2026-11-25"),
        ] {
            let dates = settings(&format!(r#"{{"time_zone":"{zone}"}}"#)).unwrap();
            assert_eq!(dates.day(evening), day, "{zone}");
        }

        let dates = settings(r#"{"time_zone":"America/New_York"}"#).unwrap();
        assert_eq!(dates.local(evening).to_string(), "2026-11-25T18:30:00");
    }

    #[test]
    fn unknown_zones_and_formats_are_refused() {
        let wrong = settings(r#"{"time_zone":"Mars/Olympus"}"#).unwrap_err();
        assert!(wrong.to_string().contains("America/New_York"), "{wrong}");
        assert!(settings(r#"{"format":"roman"}"#).is_err());
        let stored = serde_json::to_string(&DateSettings::default()).unwrap();
        assert_eq!(stored, r#"{"format":"iso","time_zone":"UTC"}"#);
    }
}
