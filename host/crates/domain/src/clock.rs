//! Time: one fixed-width text form, and the only code that reads the clock.

use std::fmt;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Instant in UTC with millisecond precision.
///
/// The text form (`2026-11-21T09:30:00.000Z`) has a fixed width: texts sort in the order of
/// time, also in the database.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(jiff::Timestamp);

impl Timestamp {
    /// Converts milliseconds since 1970; saturates at the limits of the calendar.
    pub fn from_millis(millis: i64) -> Self {
        // A wrong machine clock or a huge offset must not end the process, so
        // the value stays within the calendar.
        let limit = if millis < 0 {
            jiff::Timestamp::MIN
        } else {
            jiff::Timestamp::MAX
        };
        Self(jiff::Timestamp::from_millisecond(millis).unwrap_or(limit))
    }

    /// Returns milliseconds since 1970.
    pub fn as_millis(self) -> i64 {
        self.0.as_millisecond()
    }

    /// Returns whole seconds since 1970.
    pub fn as_seconds(self) -> i64 {
        self.0.as_second()
    }

    /// Returns the date in UTC.
    pub fn date(self) -> jiff::civil::Date {
        self.date_in(&jiff::tz::TimeZone::UTC)
    }

    /// Returns the date in a time zone.
    pub fn date_in(self, zone: &jiff::tz::TimeZone) -> jiff::civil::Date {
        self.0.to_zoned(zone.clone()).date()
    }

    /// Returns date and time of day in a time zone.
    pub fn civil_in(self, zone: &jiff::tz::TimeZone) -> jiff::civil::DateTime {
        self.0.to_zoned(zone.clone()).datetime()
    }

    /// Returns the calendar month in UTC as `2026-11`.
    pub fn month(self) -> String {
        self.0.strftime("%Y-%m").to_string()
    }

    /// Returns the begins of the last days in UTC, in order. The last one is the begin of this instant's day.
    pub fn last_days(self, days: u32) -> impl Iterator<Item = Self> {
        const DAY: i64 = 86_400_000;
        let millis = self.as_millis();
        let today = millis - millis.rem_euclid(DAY);
        let days = (0..days).rev();
        days.map(move |before| Self::from_millis(today - DAY * i64::from(before)))
    }

    /// Returns the time from `earlier` to this instant; zero if that is later.
    pub fn since(self, earlier: Self) -> Duration {
        let millis = self.as_millis().saturating_sub(earlier.as_millis());
        Duration::from_millis(u64::try_from(millis).unwrap_or(0))
    }

    /// Parses RFC 3339; `None` for anything else. Digits below milliseconds are dropped.
    pub fn parse(text: &str) -> Option<Self> {
        let timestamp: jiff::Timestamp = text.parse().ok()?;
        Some(Self::from_millis(timestamp.as_millisecond()))
    }
}

impl std::ops::Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.as_millis().saturating_add(millis))
    }
}

impl std::ops::Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.as_millis().saturating_sub(millis))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0.strftime("%Y-%m-%dT%H:%M:%S%.3fZ"))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}")
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl schemars::JsonSchema for Timestamp {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "date-time" })
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not an RFC 3339 time"))
    }
}

/// Offset from milliseconds since boot (including suspend) to milliseconds since 1970. The wall
/// clock of the machine is read once, so setting it later does not move the time of the service.
static SINCE_1970: LazyLock<AtomicI64> =
    LazyLock::new(|| AtomicI64::new(of_machine().as_millis() - since_boot()));

/// Limit of the correction in [`follow`]: one millisecond for this many elapsed ones.
const SLEW: i64 = 20;

fn since_boot() -> i64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    time.tv_sec * 1000 + time.tv_nsec / 1_000_000
}

fn present() -> i64 {
    since_boot().saturating_add(SINCE_1970.load(Ordering::Relaxed))
}

/// Reads the wall clock of the machine.
pub fn of_machine() -> Timestamp {
    Timestamp(jiff::Timestamp::now())
}

/// Sets all clocks of this process to `time`.
pub fn begin_at(time: Timestamp) {
    SINCE_1970.store(time.as_millis() - since_boot(), Ordering::Relaxed);
}

/// Slews all clocks of this process towards `reference`, by at most 1/20 of the time `since` the
/// last comparison. Returns how many milliseconds the reference was ahead.
pub fn follow(reference: Timestamp, since: Duration) -> i64 {
    let ahead = reference.as_millis() - present();
    let most = i64::try_from(since.as_millis()).unwrap_or(i64::MAX) / SLEW;
    SINCE_1970.fetch_add(ahead.clamp(-most, most), Ordering::Relaxed);
    ahead
}

/// Clock of the service.
///
/// `offset` moves it forward to rehearse future deadlines (`HOLDFAST_CLOCK_OFFSET`, refused in
/// production).
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    /// Milliseconds that this clock is ahead.
    offset: i64,
}

impl Clock {
    /// Returns a clock that runs `offset` ahead.
    pub fn ahead_by(offset: Duration) -> Self {
        Self {
            offset: i64::try_from(offset.as_millis()).unwrap_or(i64::MAX),
        }
    }

    /// Returns a clock that starts at `now` and runs.
    pub fn at(now: Timestamp) -> Self {
        Self {
            offset: now.as_millis().saturating_sub(present()),
        }
    }

    /// Returns the present time.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_millis(present().saturating_add(self.offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_written_with_milliseconds_and_a_z() {
        assert_eq!(
            Timestamp::from_millis(0).to_string(),
            "1970-01-01T00:00:00.000Z"
        );
        assert_eq!(
            Timestamp::parse("2026-11-21T10:30:00.1234+01:00")
                .unwrap()
                .to_string(),
            "2026-11-21T09:30:00.123Z"
        );
        assert_eq!(Timestamp::parse("yesterday"), None);
    }

    /// A difference of one hour takes twenty hours to correct; the time never jumps.
    #[test]
    fn the_clock_follows_its_reference_slowly() {
        let away = Clock::default().now() + Duration::from_secs(3600);
        let ahead = follow(away, Duration::from_secs(5));
        assert!((3_599_000..3_601_000).contains(&ahead), "{ahead}");
        let left = away.as_millis() - Clock::default().now().as_millis();
        assert!((3_598_000..=3_599_800).contains(&left), "{left}");
        let near = Clock::default().now();
        assert!(follow(near, Duration::from_secs(5)).abs() < 100);
    }

    #[test]
    fn a_clock_with_an_offset_reads_later() {
        let ahead = Clock::ahead_by(Duration::from_secs(3600)).now();
        assert!(ahead > Clock::default().now() + Duration::from_secs(3590));
    }
}
