//! Time: one fixed-width text form, and the only place that reads the clock.

use std::fmt;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A moment in UTC with millisecond precision.
///
/// Its text (`2026-11-21T09:30:00.000Z`) has a fixed width, so that the order
/// of texts is the order of times, in a database too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(jiff::Timestamp);

impl Timestamp {
    /// From milliseconds since 1970; saturates at the calendar's ends.
    pub fn from_millis(millis: i64) -> Self {
        let limit = if millis < 0 {
            jiff::Timestamp::MIN
        } else {
            jiff::Timestamp::MAX
        };
        Self(jiff::Timestamp::from_millisecond(millis).unwrap_or(limit))
    }

    /// Milliseconds since 1970.
    pub fn as_millis(self) -> i64 {
        self.0.as_millisecond()
    }

    /// Whole seconds since 1970.
    pub fn as_seconds(self) -> i64 {
        self.0.as_second()
    }

    /// The day that it is, in UTC.
    pub fn date(self) -> jiff::civil::Date {
        self.0.to_zoned(jiff::tz::TimeZone::UTC).date()
    }

    /// The calendar month, as `2026-11`.
    pub fn month(self) -> String {
        self.0.strftime("%Y-%m").to_string()
    }

    /// None unless `text` is RFC 3339.
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

/// What makes milliseconds since the machine was started (with the time it slept) those
/// since 1970. The machine's clock is read once: whoever sets it later changes nothing
/// here by itself.
static SINCE_1970: LazyLock<AtomicI64> =
    LazyLock::new(|| AtomicI64::new(of_machine().as_millis() - since_boot()));

/// Time that goes by is believed to differ by no more than one in so many.
const SLEW: i64 = 20;

fn since_boot() -> i64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    time.tv_sec * 1000 + time.tv_nsec / 1_000_000
}

fn present() -> i64 {
    since_boot().saturating_add(SINCE_1970.load(Ordering::Relaxed))
}

/// What the machine's clock says now.
pub fn of_machine() -> Timestamp {
    Timestamp(jiff::Timestamp::now())
}

/// Goes on from `time`, for all clocks of this process.
pub fn begin_at(time: Timestamp) {
    SINCE_1970.store(time.as_millis() - since_boot(), Ordering::Relaxed);
}

/// Comes nearer to `reference`, by what may be made good in the time `since` the last
/// look. Returns how many milliseconds the reference was ahead.
pub fn follow(reference: Timestamp, since: Duration) -> i64 {
    let ahead = reference.as_millis() - present();
    let most = i64::try_from(since.as_millis()).unwrap_or(i64::MAX) / SLEW;
    SINCE_1970.fetch_add(ahead.clamp(-most, most), Ordering::Relaxed);
    ahead
}

/// Where the service reads the time.
///
/// `offset` moves it forward, for rehearsals of what happens in two days
/// (`HOLDFAST_CLOCK_OFFSET`, refused in production).
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    /// How many milliseconds it is ahead.
    offset: i64,
}

impl Clock {
    /// A clock that runs `offset` ahead.
    pub fn ahead_by(offset: Duration) -> Self {
        Self {
            offset: i64::try_from(offset.as_millis()).unwrap_or(i64::MAX),
        }
    }

    /// A clock that shows `now` and runs on.
    pub fn at(now: Timestamp) -> Self {
        Self {
            offset: now.as_millis().saturating_sub(present()),
        }
    }

    /// The present.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_millis(present().saturating_add(self.offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_milliseconds_and_a_z() {
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

    /// An hour is made good in twenty, and never by a jump.
    #[test]
    fn time_follows_a_reference_slowly() {
        let away = Clock::default().now() + Duration::from_secs(3600);
        let ahead = follow(away, Duration::from_secs(5));
        assert!((3_599_000..3_601_000).contains(&ahead), "{ahead}");
        let left = away.as_millis() - Clock::default().now().as_millis();
        assert!((3_598_000..=3_599_800).contains(&left), "{left}");
        let near = Clock::default().now();
        assert!(follow(near, Duration::from_secs(5)).abs() < 100);
    }

    #[test]
    fn a_clock_ahead_reads_later() {
        let ahead = Clock::ahead_by(Duration::from_secs(3600)).now();
        assert!(ahead > Clock::default().now() + Duration::from_secs(3590));
    }
}
