//! Circuit breaker of an endpoint: a receiver that only fails gets single probes.
//!
//! While it is open, deliveries wait without using up their attempts. The next due delivery is the
//! probe.

use std::time::Duration;

use holdfast_domain::clock::Timestamp;

/// Consecutive failures that open the breaker.
const FAILURES: u32 = 10;
/// Maximum interval between probes.
const PAUSE: Duration = Duration::from_secs(60);

/// State of a breaker, by the deliveries that it permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// All due deliveries.
    Closed,
    /// One delivery at a time, as a probe.
    HalfOpen,
    /// No delivery before this time.
    Open(Timestamp),
}

/// Circuit breaker of one endpoint.
#[derive(Clone, Debug)]
pub struct CircuitBreaker {
    failures: u32,
    paused_until: Option<Timestamp>,
    pause: Duration,
}

impl CircuitBreaker {
    /// Restores a breaker. `delay` is the first retry delay of deliveries; probes are not further
    /// apart.
    pub fn new(paused_until: Option<Timestamp>, delay: Option<Duration>) -> Self {
        Self {
            // Only the pause is stored. A new holder of the lease counts from its own attempts.
            failures: 0,
            paused_until,
            pause: delay.map_or(PAUSE, |delay| delay.min(PAUSE)),
        }
    }

    /// Returns a closed breaker, for a new receiver.
    pub fn closed(&self) -> Self {
        Self {
            failures: 0,
            paused_until: None,
            pause: self.pause,
        }
    }

    /// Returns which deliveries are permitted now.
    pub fn gate(&self, now: Timestamp) -> BreakerState {
        match self.paused_until {
            None => BreakerState::Closed,
            Some(until) if now < until => BreakerState::Open(until),
            Some(_) => BreakerState::HalfOpen,
        }
    }

    /// Records the result of an attempt.
    pub fn note(&mut self, succeeded: bool, now: Timestamp) {
        if succeeded {
            self.failures = 0;
            self.paused_until = None;
            return;
        }

        self.failures = self.failures.saturating_add(1);
        // A failed probe extends the pause, however few failures this holder has counted itself.
        if self.failures >= FAILURES || self.paused_until.is_some() {
            self.paused_until = Some(now + self.pause);
        }
    }

    /// Returns the time until which no delivery is permitted; none while the breaker is closed.
    pub fn paused_until(&self) -> Option<Timestamp> {
        self.paused_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    #[test]
    fn ten_consecutive_failures_open_the_breaker_and_a_probe_closes_it() {
        let mut breaker = CircuitBreaker::new(None, Some(Duration::from_secs(60)));
        for _ in 0..9 {
            breaker.note(false, at(0));
        }
        assert_eq!(breaker.gate(at(0)), BreakerState::Closed);

        breaker.note(true, at(0));
        for _ in 0..9 {
            breaker.note(false, at(0));
        }
        assert_eq!(breaker.gate(at(0)), BreakerState::Closed, "not in a row");

        breaker.note(false, at(1));
        assert_eq!(breaker.gate(at(1)), BreakerState::Open(at(61)));
        assert_eq!(breaker.gate(at(60)), BreakerState::Open(at(61)));
        assert_eq!(breaker.gate(at(61)), BreakerState::HalfOpen);

        breaker.note(false, at(62));
        assert_eq!(breaker.gate(at(121)), BreakerState::Open(at(122)));
        assert_eq!(breaker.gate(at(122)), BreakerState::HalfOpen);

        breaker.note(true, at(123));
        assert_eq!(breaker.gate(at(123)), BreakerState::Closed);
    }

    #[test]
    fn the_breaker_state_carries_over_to_another_node() {
        let breaker = CircuitBreaker::new(Some(at(50)), None);
        assert_eq!(breaker.gate(at(49)), BreakerState::Open(at(50)));
        assert_eq!(breaker.gate(at(50)), BreakerState::HalfOpen);
    }

    #[test]
    fn a_probe_waits_no_longer_than_the_first_retry() {
        let mut breaker = CircuitBreaker::new(None, Some(Duration::from_secs(2)));
        for _ in 0..10 {
            breaker.note(false, at(0));
        }
        assert_eq!(breaker.gate(at(0)), BreakerState::Open(at(2)));
    }
}
