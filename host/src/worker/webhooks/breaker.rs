//! A breaker: a receiver that only fails is asked now and then and not all the time.
//!
//! While it is open, deliveries wait without using up their attempts; a probe is
//! the next delivery that is due.

use std::time::Duration;

use crate::domain::clock::Timestamp;

/// Failures in a row that open it.
const FAILURES: u32 = 10;
/// Longest time between two probes.
const PAUSE: Duration = Duration::from_secs(60);

/// What may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Everything that is due.
    Open,
    /// One delivery, when no other is under way.
    Probe,
    /// Nothing before then.
    Shut(Timestamp),
}

/// The breaker of one endpoint.
#[derive(Clone, Debug)]
pub struct Breaker {
    failures: u32,
    paused_until: Option<Timestamp>,
    pause: Duration,
}

impl Breaker {
    /// As it stood, for receivers that are tried again after `delay` at the soonest.
    pub fn new(paused_until: Option<Timestamp>, delay: Option<Duration>) -> Self {
        Self {
            failures: 0,
            paused_until,
            pause: delay.map_or(PAUSE, |delay| delay.min(PAUSE)),
        }
    }

    /// For another receiver.
    pub fn closed(&self) -> Self {
        Self {
            failures: 0,
            paused_until: None,
            pause: self.pause,
        }
    }

    /// What may be sent now.
    pub fn gate(&self, now: Timestamp) -> Gate {
        match self.paused_until {
            None => Gate::Open,
            Some(until) if now < until => Gate::Shut(until),
            Some(_) => Gate::Probe,
        }
    }

    /// Notes an attempt.
    pub fn note(&mut self, succeeded: bool, now: Timestamp) {
        if succeeded {
            self.failures = 0;
            self.paused_until = None;
            return;
        }
        self.failures = self.failures.saturating_add(1);
        if self.failures >= FAILURES || self.paused_until.is_some() {
            self.paused_until = Some(now + self.pause);
        }
    }

    /// Until when nothing is sent; none while it is closed.
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
    fn ten_failures_in_a_row_open_it_and_a_probe_closes_it() {
        let mut breaker = Breaker::new(None, Some(Duration::from_secs(60)));
        for _ in 0..9 {
            breaker.note(false, at(0));
        }
        assert_eq!(breaker.gate(at(0)), Gate::Open);
        breaker.note(true, at(0));
        for _ in 0..9 {
            breaker.note(false, at(0));
        }
        assert_eq!(breaker.gate(at(0)), Gate::Open, "not in a row");
        breaker.note(false, at(1));
        assert_eq!(breaker.gate(at(1)), Gate::Shut(at(61)));
        assert_eq!(breaker.gate(at(60)), Gate::Shut(at(61)));
        assert_eq!(breaker.gate(at(61)), Gate::Probe);
        breaker.note(false, at(62));
        assert_eq!(breaker.gate(at(121)), Gate::Shut(at(122)));
        assert_eq!(breaker.gate(at(122)), Gate::Probe);
        breaker.note(true, at(123));
        assert_eq!(breaker.gate(at(123)), Gate::Open);
    }

    #[test]
    fn another_node_goes_on_where_one_stood() {
        let breaker = Breaker::new(Some(at(50)), None);
        assert_eq!(breaker.gate(at(49)), Gate::Shut(at(50)));
        assert_eq!(breaker.gate(at(50)), Gate::Probe);
    }

    #[test]
    fn no_probe_waits_longer_than_a_first_retry() {
        let mut breaker = Breaker::new(None, Some(Duration::from_secs(2)));
        for _ in 0..10 {
            breaker.note(false, at(0));
        }
        assert_eq!(breaker.gate(at(0)), Gate::Shut(at(2)));
    }
}
